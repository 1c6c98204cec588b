//! Compiled models for several devices on the command line: real files of the compiler, whose
//! results are those of a plain product.

use crate::common;
use common::{Ended, files, folder, read_npy, repository, tilework, write_npy};
use std::path::{Path, PathBuf};

fn model(name: &str) -> String {
    repository().join("crates/model/tests/data/mesh").join(name).display().to_string()
}

/// Numbers of a matrix: small fractions, so that sums in any order are equal.
fn matrix(rows: usize, columns: usize, step: usize) -> Vec<f32> {
    (0..rows * columns).map(|n| ((n * step) % 17) as f32 / 4.0 - 2.0).collect()
}

/// `x * w`, and zeros instead of negative elements if asked.
fn product(x: &[f32], w: &[f32], inner: usize, relu: bool) -> Vec<f32> {
    let columns = w.len() / inner;
    let element = |n: usize| {
        let (row, column) = (n / columns, n % columns);
        let sum: f32 = (0..inner).map(|k| x[row * inner + k] * w[k * columns + column]).sum();
        if relu { sum.max(0.0) } else { sum }
    };
    (0..x.len() / inner * columns).map(element).collect()
}

/// A folder with arrays `x.npy` and `w.npy`.
struct Case {
    folder: tempfile::TempDir,
    x: Vec<f32>,
    w: Vec<f32>,
}

impl Case {
    fn new(x: [usize; 2], w: [usize; 2]) -> Self {
        let case = Self { folder: folder(), x: matrix(x[0], x[1], 5), w: matrix(w[0], w[1], 7) };
        case.write("x.npy", x, &case.x);
        case.write("w.npy", w, &case.w);
        case
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, shape: [usize; 2], values: &[f32]) {
        write_npy(&self.path(name), &shape.map(|n| n as u64), values);
    }

    /// Runs a model; each `NAME=FILE` is an input from the folder.
    fn run(&self, name: &str, inputs: &[&str], more: &[&str]) -> Ended {
        let mut args = vec!["run".to_owned(), model(name), "--out".to_owned(), self.path("out").display().to_string()];
        for input in inputs {
            let (name, file) = input.split_once('=').unwrap();
            args.extend(["--input".to_owned(), format!("{name}={}", self.path(file).display())]);
        }
        args.extend(more.iter().map(|&part| part.to_owned()));
        tilework(&args)
    }

    fn out(&self, name: &str) -> (Vec<u64>, Vec<f32>) {
        read_npy::<f32>(&self.path("out").join(name))
    }
}

#[test]
fn whole_arrays_are_split_and_outputs_joined_along_two_axes() {
    let case = Case::new([64, 32], [32, 96]);
    let run = |more: &[&str]| case.run("mesh_matmul.ttnn", &["0=x.npy", "w=w.npy"], more);
    run(&[]).code(2).says("--input 0: ").says("in several ways: along the mesh's axes -,0 or 0,-; --shard 0=AXES");
    run(&["--shard", "x=0,-", "--shard", "1=-,1", "--join", "0=0,1"]).code(0);
    assert_eq!(case.out("out0.npy"), (vec![64, 96], product(&case.x, &case.w, 32, false)));
    // Joined the other way round the parts make another shape; unjoined, each has its own file.
    run(&["--shard", "0=0,-", "--shard", "1=-,1"]).code(0);
    assert_eq!(case.out("out0_dev3.npy").0, [32, 48]);
    run(&["--shard", "0=0,-", "--shard", "1=-,1", "--join", "0=0,-"]).code(1).says("devices 0 and 1 have different");
}

#[test]
fn each_device_gets_its_own_part() {
    let case = Case::new([64, 32], [32, 32]);
    case.write("upper.npy", [32, 32], &case.x[..32 * 32]);
    case.write("lower.npy", [32, 32], &case.x[32 * 32..]);
    let wanted = (vec![64, 32], product(&case.x, &case.w, 32, true));
    let parts = ["0_dev0=upper.npy", "x_dev1=lower.npy", "1_all=w.npy"];
    case.run("mesh_batch.ttnn", &parts, &["--join", "0=0"]).code(0);
    assert_eq!(case.out("out0.npy"), wanted);
    // The shape of the whole leaves no choice here.
    case.run("mesh_batch.ttnn", &["0=x.npy", "w_all=w.npy"], &["--join", "0=0"]).code(0);
    assert_eq!(case.out("out0.npy"), wanted);
    case.run("mesh_batch.ttnn", &parts, &[]).code(0);
    assert_eq!(case.out("out0_dev1.npy").1, wanted.1[32 * 32..]);
}

#[test]
fn sums_over_devices_are_the_same_on_all() {
    let case = Case::new([32, 64], [64, 32]);
    case.run("mesh_reduce.ttnn", &["0=x.npy", "1=w.npy"], &["--join", "0=-"]).code(0);
    assert_eq!(case.out("out0.npy"), (vec![32, 32], product(&case.x, &case.w, 64, false)));
}

#[test]
fn what_is_not_a_part_of_each_device_is_refused() {
    let case = Case::new([64, 32], [32, 32]);
    let refused = |inputs: &[&str], more: &[&str]| case.run("mesh_batch.ttnn", inputs, more).code(2);
    refused(&["0=x.npy", "1=w.npy"], &[])
        .says("--input 1: shape [32x32] is that of one device's part; --input 1_dev0=FILE to --input 1_dev1=FILE");
    refused(&["0_dev0=w.npy", "1_all=w.npy"], &[]).says("--input 0: not given for device 1 of 2");
    refused(&["0_dev2=w.npy", "1_all=w.npy"], &[]).says("--input 0_dev2: the program has 2 devices");
    refused(&["0_dev0=w.npy", "x_dev0=w.npy"], &[]).says("--input x_dev0 is given twice");
    refused(&["0=x.npy", "0_all=w.npy", "1_all=w.npy"], &[]).says("input 0 is given twice");
    refused(&["0=x.npy", "1_all=w.npy"], &["--shard", "1=0"]).says("--shard 1: no such input is given whole");
    refused(&["0=x.npy", "1_all=w.npy"], &["--shard", "0=7"]).says("--shard 0: ");
    refused(&["0=x.npy", "1_all=w.npy"], &["--shard", "0=0,1,2"]).says("--shard 0: \"0,1,2\"");
    refused(&["0=x.npy", "1_all=w.npy"], &["--join", "3=0"]).says("--join 3: the program has outputs 0 to 0");
    refused(&["0_dev0=w.npy", "0_dev1=x.npy", "1_all=w.npy"], &[]).says("its shape is [64x32]");
    assert!(files(&case.path("out")).is_empty());
    // Options for several devices have no meaning for a program for one.
    let one = repository().join("crates/model/tests/data/0.1.0/atan2.ttnn").display().to_string();
    let out = case.path("out").display().to_string();
    let args = ["run", &one, "--input", "0=random:1", "--input", "1=random:2", "--out", &out];
    tilework(&[&args[..], &["--join", "0=0"]].concat()).code(2).says("--join 0: the program is for one device");
    tilework(&[&args[..], &["--shard", "0=0"]].concat()).code(2).says("--shard 0: all devices get the whole");
}

#[test]
fn show_tells_which_inputs_are_parts() {
    let shown = tilework(&["show", &model("mesh_batch.ttnn")]).code(0).stdout;
    assert!(shown.contains("mesh 1x2"), "{shown}");
    assert_eq!(shown.matches(", each device its own").count(), 2, "{shown}");
    let plain = repository().join("crates/model/tests/data/0.1.0/atan2.ttnn").display().to_string();
    assert!(!tilework(&["show", &plain]).code(0).stdout.contains("each device"));
}

#[test]
fn random_numbers_of_devices_differ() {
    let case = Case::new([64, 32], [32, 32]);
    case.run("mesh_batch.ttnn", &["1_all=w.npy"], &["--input", "0=random:7"]).code(0);
    assert_ne!(case.out("out0_dev0.npy").1, case.out("out0_dev1.npy").1);
}

/// `check` of a model with the files of a folder.
fn check(name: &str, folder: &Path, more: &[&str]) -> Ended {
    let folder = folder.display().to_string();
    tilework(&[&["check", &model(name), "--expect", &folder], more].concat())
}

#[test]
fn a_check_takes_wholes_and_parts_alike() {
    let case = Case::new([64, 32], [32, 32]);
    let wanted = product(&case.x, &case.w, 32, true);
    let (whole, parts) = (folder(), folder());
    let write =
        |folder: &Path, name: &str, rows: u64, values: &[f32]| write_npy(&folder.join(name), &[rows, 32], values);
    write(whole.path(), "in0.npy", 64, &case.x);
    write(whole.path(), "in1_all.npy", 32, &case.w);
    write(whole.path(), "out0.npy", 64, &wanted);
    for device in 0..2 {
        let range = device * 1024..(device + 1) * 1024;
        write(parts.path(), &format!("in0_dev{device}.npy"), 32, &case.x[range.clone()]);
        write(parts.path(), &format!("in1_dev{device}.npy"), 32, &case.w);
        write(parts.path(), &format!("out0_dev{device}.npy"), 32, &wanted[range]);
    }
    let good = check("mesh_batch.ttnn", whole.path(), &[]).code(0);
    assert!(good.stdout.starts_with("ok   out0 f32"), "{}", good.stdout);
    let good = check("mesh_batch.ttnn", parts.path(), &[]).code(0);
    assert!(
        good.stdout.contains("ok   out0_dev0 f32") && good.stdout.contains("ok   out0_dev1 f32"),
        "{}",
        good.stdout
    );
    // One wrong element of one device is found.
    let mut wrong = wanted[1024..].to_vec();
    wrong[5] += 100.0;
    write(parts.path(), "out0_dev1.npy", 32, &wrong);
    let bad = check("mesh_batch.ttnn", parts.path(), &[]).code(1);
    assert!(bad.stdout.contains("ok   out0_dev0") && bad.stdout.contains("FAIL out0_dev1"), "{}", bad.stdout);
    // An input of one part's shape is refused here, too.
    std::fs::rename(whole.path().join("in1_all.npy"), whole.path().join("in1.npy")).unwrap();
    check("mesh_batch.ttnn", whole.path(), &[]).code(2).says("--input 1: shape [32x32] is that of one device's part");
}

#[test]
fn a_check_of_an_output_that_can_be_joined_in_several_ways_asks_how() {
    let case = Case::new([64, 32], [32, 96]);
    for (from, to) in [("x.npy", "in0.npy"), ("w.npy", "in1.npy")] {
        std::fs::rename(case.path(from), case.path(to)).unwrap();
    }
    case.write("out0.npy", [64, 96], &product(&case.x, &case.w, 32, false));
    let split = ["--shard", "0=0,-", "--shard", "1=-,1"];
    check("mesh_matmul.ttnn", case.folder.path(), &split).code(2).says("--join 0=AXES says how its parts are joined");
    check("mesh_matmul.ttnn", case.folder.path(), &[&split[..], &["--join", "0=0,1"]].concat()).code(0);
}

/// On the chip each device is one of its own: parts of a product, sums over devices, the same on
/// all, and what devices exchange is counted.
#[test]
fn devices_of_a_mesh_are_chips() {
    let on = |case: &Case, name: &str, inputs: &[&str], more: &[&str]| {
        let options = ["--engine", "chip", "--report", "json", "--profile"];
        let report = case.run(name, inputs, &[more, &options].concat()).code(0).json();
        assert_eq!((&report["engine"], &report["chip"]["host"]), (&"chip".into(), &0.into()), "{report}");
        report["chip"].clone()
    };
    let case = Case::new([64, 32], [32, 96]);
    let axes = ["--shard", "x=0,-", "--shard", "1=-,1", "--join", "0=0,1"];
    let chip = on(&case, "mesh_matmul.ttnn", &["0=x.npy", "w=w.npy"], &axes);
    assert_eq!(chip["devices"], 4);
    assert_eq!(case.out("out0.npy"), (vec![64, 96], product(&case.x, &case.w, 32, false)));

    let case = Case::new([64, 32], [32, 32]);
    on(&case, "mesh_batch.ttnn", &["0=x.npy", "w_all=w.npy"], &["--join", "0=0"]);
    assert_eq!(case.out("out0.npy"), (vec![64, 32], product(&case.x, &case.w, 32, true)));

    let case = Case::new([32, 64], [64, 32]);
    let chip = on(&case, "mesh_reduce.ttnn", &["0=x.npy", "1=w.npy"], &["--join", "0=-"]);
    assert_eq!(case.out("out0.npy"), (vec![32, 32], product(&case.x, &case.w, 64, false)));
    let operations = chip["operations"].as_array().unwrap();
    let exchanges: Vec<_> = operations.iter().filter(|operation| operation["carried"] == "exchanged").collect();
    assert!(!exchanges.is_empty() && chip["exchanged"] == exchanges.len(), "{chip}");
    let bytes: u64 = exchanges.iter().map(|op| op["read"].as_u64().unwrap() + op["written"].as_u64().unwrap()).sum();
    assert!(bytes > 0 && chip["exchanged_bytes"] == bytes, "{chip}");
    assert!(exchanges.iter().all(|exchange| exchange["cycles"].as_u64() > Some(0)), "{exchanges:?}");
}
