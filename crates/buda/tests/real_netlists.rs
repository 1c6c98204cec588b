//! The real netlists give the values, pointers and counts that a NumPy model of the original's
//! semantics gave.

#[path = "common/shared.rs"]
mod shared;

use serde_json::Value;
use std::collections::BTreeMap;
use tilework_buda::Tensor;
use tilework_buda::backend::drive::{self, Inputs, Outcome, Popping};
use tilework_buda::backend::stimulus::{StimulusChoice, entry, host_queues};
use tilework_buda::backend::{Backend, BackendOptions, Call, parameters};
use tilework_buda::epoch::{Golden, Rounding};
use tilework_buda::op::Precision;
use tilework_dtype::DType;
use tilework_netlist::types::{Netlist, QueueId, QueueKind};

/// All entries of all queues that the host fills.
fn inputs(netlist: &Netlist) -> Inputs<Tensor> {
    let of = |queue: QueueId| {
        let entries = 0..netlist.queue(queue).entries;
        (queue, entries.map(|e| entry(netlist, queue, e, StimulusChoice::Index).unwrap()).collect())
    };
    host_queues(netlist).into_iter().map(of).collect()
}

/// Every program once, parameters 1; but the cache of the ram with two views is written four times,
/// as its expected values show (five executes, write pointer at 3).
fn calls(name: &str, netlist: &Netlist) -> Vec<Call> {
    let call = |program: &str, value: i64| {
        let of = netlist.programs.iter().find(|of| of.name == program).unwrap();
        let parameters = parameters(of).into_iter().map(|name| (name.to_string(), value)).collect();
        Call { program: program.to_string(), parameters }
    };
    match name {
        "netlist_dual_view_ram.yaml" => (0..4).map(|p| call("write_cache", p)).chain([call("read_cache", 1)]).collect(),
        _ => netlist.programs.iter().map(|program| call(&program.name, 1)).collect(),
    }
}

fn run(name: &str, netlist: &Netlist, golden: Golden) -> (Backend, Outcome<Tensor>) {
    let backend = Backend::new(netlist.clone(), golden, BackendOptions::default());
    backend.initialize().unwrap();
    let outcome = drive::sequential(&backend, inputs(netlist), &calls(name, netlist), Popping::Never)
        .unwrap_or_else(|error| panic!("{name}: {error}"));
    backend.wait_for_idle().unwrap();
    backend.finish().unwrap();
    (backend, outcome)
}

/// How far a value in a format may be from the same in float32: half a unit in the last place of
/// its mantissa, of its block for block formats (17 bits, 8 bits, 7 bits of magnitude and so on).
fn rounding_error(format: DType) -> f64 {
    match format {
        DType::F32 => 0.0,
        DType::F16 | DType::Tf32 => 2f64.powi(-11),
        DType::BF16 => 2f64.powi(-8),
        DType::Bfp8 | DType::Bfp8B => 2f64.powi(-6),
        other => panic!("no real netlist has an output in {other:?}"),
    }
}

fn check(name: &str, expected: &Value, rounding: Rounding) {
    let folder = shared::real_netlists().unwrap();
    let text = std::fs::read_to_string(folder.join(name)).unwrap();
    let netlist = tilework_netlist::read(name, &text).unwrap_or_else(|errors| panic!("{errors}"));
    let (backend, outcome) = run(name, &netlist, Golden { rounding, ..Golden::default() });

    assert_eq!(backend.executes(), expected["executes"].as_u64().unwrap(), "{name}");
    for (queue, state) in expected["queues"].as_object().unwrap() {
        let id = backend.queue(queue).unwrap();
        let kind = match netlist.queue(id).kind {
            QueueKind::Queue => "queue",
            QueueKind::Ram => "ram",
        };
        let pointers = backend.pointers(id);
        let found = (kind, u64::from(pointers.rd()), u64::from(pointers.wr()));
        let wanted = (state["type"].as_str().unwrap(), state["rd"].as_u64().unwrap(), state["wr"].as_u64().unwrap());
        assert_eq!(found, wanted, "{name}: {queue}");
    }
    let programs = expected["rd_ptr_after_program"].as_object().unwrap();
    for (program, queues) in programs {
        let record = outcome.records.iter().rfind(|record| record.program == *program).unwrap();
        for (queue, rd) in queues.as_object().unwrap() {
            let found = record.pointers[backend.queue(queue).unwrap().0].0;
            assert_eq!(u64::from(found), rd.as_u64().unwrap(), "{name}: {queue} after {program}");
        }
    }
    let mut compared = 0;
    for (queue, entries) in expected["outputs"].as_object().unwrap() {
        let id = backend.queue(queue).unwrap();
        let memory = backend.memory(id).unwrap();
        for (at, wanted) in entries.as_object().unwrap() {
            let found = memory.get(at.parse::<usize>().unwrap());
            // The model's rams hold zeros before anything is written; ours hold nothing.
            let Some(found) = found else { panic!("{name}: {queue} has no entry {at}") };
            compare(&format!("{name}: {queue}[{at}]"), found, wanted, netlist.queue(id).format, rounding);
            compared += 1;
        }
    }
    assert!(compared > 0, "{name}: nothing to compare");
}

fn compare(what: &str, found: &Tensor, wanted: &Value, format: DType, rounding: Rounding) {
    let shape = found.shape();
    let dims: Vec<u64> = wanted["shape"].as_array().unwrap().iter().map(|n| n.as_u64().unwrap()).collect();
    assert_eq!([shape.t as u64, shape.rows as u64, shape.columns as u64].as_slice(), dims, "{what}");
    // Sums of float32 in another order, transcendental functions of another library.
    let tolerance = 1e-5 + if rounding == Rounding::Never { 0.0 } else { rounding_error(format) };
    let probes = wanted["probe_index"].as_array().unwrap().iter().zip(wanted["probe"].as_array().unwrap());
    for (index, value) in probes {
        let (index, value) = (index.as_u64().unwrap() as usize, value.as_f64().unwrap());
        let found = f64::from(found.values()[index]);
        let near = (found - value).abs() <= tolerance * value.abs().max(1e-3);
        assert!(near, "{what}: element {index} is {found}, not {value}");
    }
    let sums = found.values().iter().map(|v| f64::from(*v)).fold((0.0, 0.0), |(s, a), v| (s + v, a + v.abs()));
    for (found, key) in [(sums.0, "sum"), (sums.1, "abs_sum")] {
        let value = wanted[key].as_f64().unwrap();
        assert!((found - value).abs() <= tolerance * value.abs().max(1e-3), "{what}: {key} is {found}, not {value}");
    }
}

fn expected() -> BTreeMap<String, Value> {
    let Some(folder) = shared::real_netlists() else { return BTreeMap::new() };
    let all: BTreeMap<String, Value> =
        serde_json::from_slice(&std::fs::read(folder.join("expected.json")).unwrap()).unwrap();
    assert_eq!(all.len(), 23);
    all
}

/// Between operations the original's golden model is float32, too: only what the host
/// gets is rounded.
#[test]
fn the_twenty_three_give_what_numpy_gives_within_the_rounding_of_their_outputs() {
    for (name, expected) in expected() {
        check(&name, &expected, Rounding::Host);
    }
}

#[test]
fn without_rounding_they_give_it_to_five_digits() {
    for (name, expected) in expected() {
        check(&name, &expected, Rounding::Never);
    }
}

/// With the formats that the netlists ask for (HiFi3, 16-bit registers, once Bfp8 buffers) values
/// are near those of float32, and not the same. Each rounding of a BF16 sum loses up to 2^-9 of it,
/// the longest sums of these netlists have 32, and one ends in an exponential.
#[test]
fn in_the_precision_of_a_device_they_are_near_what_numpy_gives() {
    let mut changed = 0;
    for (name, expected) in expected() {
        let text = std::fs::read_to_string(shared::real_netlists().unwrap().join(&name)).unwrap();
        let netlist = tilework_netlist::read(&name, &text).unwrap_or_else(|errors| panic!("{errors}"));
        let golden = |precision| Golden { precision, rounding: Rounding::Host };
        let [(device, _), (exact, _)] =
            [Precision::Device, Precision::Exact].map(|precision| run(&name, &netlist, golden(precision)));
        for queue in expected["outputs"].as_object().unwrap().keys() {
            let id = device.queue(queue).unwrap();
            let pairs = device.memory(id).unwrap().into_iter().zip(exact.memory(id).unwrap());
            for (at, (device, exact)) in pairs.enumerate() {
                let worst = device.values().iter().zip(exact.values()).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
                let largest = exact.values().iter().fold(0f32, |largest, v| largest.max(v.abs()));
                assert!(worst <= 0.05 * largest, "{name}: {queue}[{at}] differs by {worst} of {largest}");
                changed += usize::from(worst > 0.0);
            }
        }
    }
    assert!(shared::real_netlists().is_none() || changed > 0);
}
