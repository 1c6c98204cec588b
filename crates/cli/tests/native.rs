//! Native code in a compiled model: refused, or run in a process of its own with a warning.

#[path = "../../model/tests/common/builder.rs"]
#[allow(dead_code, reason = "each test uses a part of it")]
mod builder;
use crate::common;
use builder::{Builder, Field, KNOWN_HASH, tensor};
use common::{Ended, folder, read_npy, tilework, write_npy};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Functions as the compiler makes them: descriptors of tensors in, descriptors out.
const SOURCE: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
struct tensor { void *start, *aligned; long first; long *sizes_and_strides; };
static struct tensor *result(const float *values, long count, const long *shape) {
    char *start = malloc(count * 4 + 64);
    struct tensor *out = malloc(sizeof *out);
    long *sizes = malloc(4 * sizeof *sizes);
    memcpy(sizes, shape, 4 * sizeof *sizes);
    *out = (struct tensor){start, start + 64, 0, sizes};
    memcpy(out->aligned, values, count * 4);
    return out;
}
struct tensor *weighted(struct tensor *in) {
    const float *a = in[0].aligned, *b = in[1].aligned;
    long rows = in[0].sizes_and_strides[0], columns = in[0].sizes_and_strides[1], stride = in[0].sizes_and_strides[2];
    float values[64];
    for (long r = 0; r < rows; r++)
        for (long c = 0; c < columns; c++)
            values[r * columns + c] = 10 * a[r * stride + c] + b[r * stride + c];
    return result(values, rows * columns, in[0].sizes_and_strides);
}
struct tensor *talkative(struct tensor *in) {
    puts("text on the standard output");
    fflush(stdout);
    return weighted(in);
}
struct tensor *crashing(struct tensor *in) { return (struct tensor *)(*(volatile long *)8 + (long)in); }
struct tensor *leaving(struct tensor *in) { exit(3); }
struct tensor *nothing(struct tensor *in) { return 0; }
"#;

/// The library. A C compiler is there wherever Rust links.
fn library(folder: &Path) -> Vec<u8> {
    let (source, library) = (folder.join("code.c"), folder.join("code.so"));
    std::fs::write(&source, SOURCE).unwrap();
    let mut cc = Command::new("cc");
    let made = cc.args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).arg(&source).status().unwrap();
    assert!(made.success());
    std::fs::read(library).unwrap()
}

/// A list of offsets in a field, and where each goes.
fn list(builder: &mut Builder, field: usize, count: usize) -> impl Fn(usize) -> usize + use<> {
    let at = builder.offsets(count);
    builder.link(field, at);
    move |index| at + 4 + 4 * index
}

/// A model of one program: a call of a native function on two tensors of 2 by 3.
fn model(folder: &Path, function: &str) -> PathBuf {
    use Field::{Absent, Inline, Offset};
    let number = |n: u32| Inline(n.to_le_bytes().to_vec());
    let mut b = Builder::new("TTNN");
    let root = b.table(&[Inline(vec![0; 8]), Offset, Offset, Absent, Absent, Offset]);
    b.text(root.fields[1], KNOWN_HASH);
    b.text(root.fields[2], "unknown");
    let place = list(&mut b, root.fields[5], 1);
    let program = b.table(&[Offset, Offset, Offset, Offset, Offset]);
    b.link(place(0), program.at);
    b.text(program.fields[0], "main");
    // References point forwards only: what refers to a table is written before it.
    let place = list(&mut b, program.fields[3], 1);
    let operation = b.table(&[Inline(vec![30]), Offset, Offset, Absent]);
    b.link(place(0), operation.at);
    let cpu = b.table(&[Offset, Offset, Offset, number(5)]);
    b.text(operation.fields[2], "%2 = call @f(%0, %1) {ttir.cpu_hoist_call} : (tensor<2x3xf32>) -> tensor<2x3xf32>");
    b.link(operation.fields[1], cpu.at);
    b.text(cpu.fields[2], function);
    for (field, ids) in
        [(program.fields[1], &[1, 2][..]), (program.fields[2], &[3]), (cpu.fields[0], &[1, 2]), (cpu.fields[1], &[3])]
    {
        let place = list(&mut b, field, ids.len());
        for (index, &id) in ids.iter().enumerate() {
            let at = tensor(&mut b, id, &[2, 3]);
            b.link(place(index), at);
        }
    }
    let place = list(&mut b, program.fields[4], 1);
    let dylib = b.table(&[number(5), Offset]);
    b.link(place(0), dylib.at);
    let bytes = library(folder);
    let at = b.vector(bytes.len(), &bytes);
    b.link(dylib.fields[1], at);
    let file = folder.join("native.ttnn");
    std::fs::write(&file, b.finish(&root)).unwrap();
    file
}

fn run(folder: &Path, function: &str, more: &[&str]) -> Ended {
    let path = |name: &str| folder.join(name).display().to_string();
    write_npy(&folder.join("a.npy"), &[2, 3], &[1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0]);
    write_npy(&folder.join("b.npy"), &[2, 3], &[6.0_f32, 5.0, 4.0, 3.0, 2.0, 1.0]);
    let (file, out) = (model(folder, function).display().to_string(), path("out"));
    let (a, b) = (format!("0={}", path("a.npy")), format!("1={}", path("b.npy")));
    let args = ["run", &file, "--input", &a, "--input", &b, "--out", &out];
    tilework(&[&args[..], more].concat())
}

#[test]
fn native_code_runs_only_when_it_is_allowed_and_is_warned_of() {
    let dir = folder();
    run(dir.path(), "weighted", &[]).code(2).says("it executes native code of the file, which is not allowed");
    assert!(!dir.path().join("out/out0.npy").exists());
    let ran = run(dir.path(), "weighted", &["--allow-native-code"]).code(0);
    let (shape, values) = read_npy::<f32>(&dir.path().join("out/out0.npy"));
    assert_eq!((shape, values), (vec![2, 3], vec![16.0, 25.0, 34.0, 43.0, 52.0, 61.0]));
    let ran = ran.says("warning: --allow-native-code: native code that came with").says("native.ttnn");
    ran.says("runs on this machine with all your rights, each call in a process of its own: weighted");
    // A model without native code needs no warning.
    let plain = common::repository().join("crates/model/tests/data/0.1.0/atan2.ttnn").display().to_string();
    let out = dir.path().join("plain").display().to_string();
    let args = ["run", &plain, "--input", "0=random:1", "--input", "1=random:2", "--out", &out, "--allow-native-code"];
    assert!(!tilework(&args).code(0).stderr.contains("warning"));
}

#[test]
fn what_native_code_prints_does_not_reach_the_report() {
    let dir = folder();
    let ran = run(dir.path(), "talkative", &["--allow-native-code", "--report", "json"]).code(0);
    assert_eq!(ran.json()["outputs"]["out0"]["shape"], serde_json::json!([2, 3]));
    ran.says("text on the standard output");
}

#[test]
fn native_code_that_fails_ends_its_own_process_only() {
    let dir = folder();
    for (function, expected) in [
        ("crashing", "native function crashing ended its process: signal 11"),
        ("leaving", "native function leaving ended its process: exit code 3"),
        ("nothing", "the native function returned no results"),
        ("absent", "no native function \"absent\""),
    ] {
        let failed = run(dir.path(), function, &["--allow-native-code"]).code(1).says(expected);
        failed.says("program 0 (main), operation 0, CpuOp");
    }
}
