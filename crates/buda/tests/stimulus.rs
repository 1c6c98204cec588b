//! Inputs as a netlist's own test makes them.

mod common;

use common::{load, parse};
use tilework_buda::backend::stimulus::{StimulusChoice, StimulusError, entry, host_queues};
use tilework_netlist::types::{Netlist, QueueId, StimulusKind};

fn values(netlist: &Netlist, queue: usize, at: u32, seed: u64) -> Vec<f32> {
    let made = entry(netlist, QueueId(queue), at, StimulusChoice::TestConfig { seed }).unwrap();
    made.values().to_vec()
}

fn moments(values: &[f32]) -> (f64, f64) {
    let mean = values.iter().map(|v| f64::from(*v)).sum::<f64>() / values.len() as f64;
    let squares = values.iter().map(|v| (f64::from(*v) - mean).powi(2)).sum::<f64>();
    (mean, (squares / values.len() as f64).sqrt())
}

#[test]
fn every_kind_is_what_it_says() {
    let netlist = load("stimulus.yaml");
    assert_eq!(host_queues(&netlist), [0, 1, 2, 3].map(QueueId));
    let uniform = values(&netlist, 0, 0, 7);
    assert!(uniform.iter().all(|v| (-2.0..6.0).contains(v)));
    let (mean, deviation) = moments(&uniform);
    assert!((mean - 2.0).abs() < 0.1 && (deviation - 8.0 / 12f64.sqrt()).abs() < 0.1, "{mean} {deviation}");
    let (mean, deviation) = moments(&values(&netlist, 1, 0, 7));
    assert!((mean - 3.0).abs() < 0.02 && (deviation - 0.5).abs() < 0.02, "{mean} {deviation}");
    assert!(values(&netlist, 3, 1, 7).iter().all(|v| *v == 1.5));

    // Tiles count row by row, matrix by matrix: 2 x 2 tiles in each of two matrices.
    let tiles = values(&netlist, 2, 0, 7);
    let at = |t: usize, row: usize, column: usize| tiles[t * 4096 + row * 64 + column];
    assert_eq!([at(0, 0, 0), at(0, 31, 31), at(0, 5, 32), at(0, 32, 31), at(0, 63, 63)], [10., 10., 12., 14., 16.]);
    assert_eq!([at(1, 0, 0), at(1, 63, 63)], [18., 24.]);
}

#[test]
fn draws_depend_on_seed_queue_and_entry_only() {
    let netlist = load("stimulus.yaml");
    let one = values(&netlist, 0, 0, 7);
    assert_eq!(one, values(&netlist, 0, 0, 7));
    for other in [values(&netlist, 0, 0, 8), values(&netlist, 0, 1, 7)] {
        let same = one.iter().zip(&other).filter(|(a, b)| a == b).count();
        assert!(same < 10, "{same} equal values");
    }
}

#[test]
fn a_netlist_that_says_nothing_is_asked_about() {
    let netlist = load("ring.yaml");
    let error = entry(&netlist, QueueId(0), 0, StimulusChoice::TestConfig { seed: 0 }).unwrap_err();
    assert_eq!(error, StimulusError::None { queue: "in".into() });
}

/// The kind of each queue's own stimulus, by constant.
fn own(overrides: &str) -> [Option<f32>; 4] {
    let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/stimulus.yaml");
    let text = std::fs::read_to_string(file).unwrap();
    let kept = text.split("    overrides:").next().unwrap();
    let netlist = parse("stimulus.yaml", &format!("{kept}    overrides:\n{overrides}"));
    let own = netlist.stimulus.unwrap().overrides;
    [0, 1, 2, 3].map(|queue| {
        let kinds: Vec<&StimulusKind> = own.iter().filter(|(of, _)| of.0 == queue).map(|(_, kind)| kind).collect();
        match kinds[..] {
            [] => None,
            [StimulusKind::Constant(value)] => Some(*value),
            ref kinds => panic!("{kinds:?}"),
        }
    })
}

/// Queues are uniform, w.normal, w.tiles and one.
#[test]
fn keys_of_overrides_are_names_or_expressions_for_whole_names() {
    let of = |keys: &[&str]| {
        let line = |(i, key): (usize, &&str)| format!("      {key}: {{type: Constant, constant_value: {i}}}\n");
        own(&keys.iter().enumerate().map(line).collect::<String>())
    };
    assert_eq!(of(&[r"w\..*"]), [None, Some(0.0), Some(0.0), None]);
    assert_eq!(
        of(&[r".*\.tiles", r"w\..*", ".*"]),
        [Some(2.0), Some(1.0), Some(0.0), Some(2.0)],
        "the first that fits"
    );
    assert_eq!(of(&[".*", r"w\..*"]), [Some(0.0); 4]);
    assert_eq!(of(&[".*", "w.normal"]), [Some(0.0), Some(1.0), Some(0.0), Some(0.0)], "a name goes before expressions");
    assert_eq!(of(&["on|one", "'[tiles]+'"]), [None, None, None, Some(0.0)], "the whole name");
    assert_eq!(of(&["wxtiles", "w.tile", "on.", "unknown"]), [None; 4], "a dot in a name is a dot");
    // What cannot be read is a warning, and the others count.
    assert_eq!(of(&["'one('", "'a)|(one'", "'x{1000}{1000}'", "o.e?"]), [None, None, None, Some(3.0)]);
}

#[test]
fn an_expression_that_cannot_be_read_has_its_place() {
    let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/stimulus.yaml");
    let text = std::fs::read_to_string(file).unwrap().replace("      one:", "      (one:");
    let line = text.lines().position(|line| line.contains("(one:")).unwrap() as u32 + 1;
    let checked = tilework_netlist::check("stimulus.yaml", &text, &Default::default());
    let records = checked.diagnostics.records();
    assert!(checked.netlist.is_some(), "a warning");
    assert_eq!(records.iter().map(|record| (record.code.as_str(), record.line)).collect::<Vec<_>>(), [("N0022", line)]);
}

/// As many expressions as names would be squares of the file's size.
#[test]
fn expressions_are_bounded() {
    let key = |i: usize| format!("      x{i}.*: {{type: Constant, constant_value: 1}}\n");
    let keys: String = (0..1 << 15).map(key).collect();
    assert_eq!(own(&(keys + "      .*: {type: Constant, constant_value: 2}\n")), [None; 4]);
}
