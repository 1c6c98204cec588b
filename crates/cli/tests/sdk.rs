//! `tilework sdk`: the folder's kernels build outside the repository and give right results.

mod common;

use common::{folder, read_npy, tilework};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Debian's cross compiler, which `.ci/run` installs.
const GCC: &str = "riscv64-unknown-elf-";
/// The prefix of SFPI's compiler, for those who have it.
const SFPI: &str = "TILEWORK_SFPI";
const DEBIAN_RUSTC: &str = "/usr/bin/rustc";
const DEBIAN_CORE: &str = "/usr/src";

/// Makes the folder.
fn sdk(folder: &Path) -> PathBuf {
    let sdk = folder.join("sdk");
    let made = tilework(&["sdk", sdk.to_str().unwrap(), "--report", "json"]).code(0).json();
    assert_eq!((made["kind"].as_str(), made["status"].as_str()), (Some("sdk"), Some("ok")));
    sdk
}

/// Runs a program of the folder; returns the folder of its outputs.
fn run(program: &Path) -> PathBuf {
    let here = program.parent().unwrap();
    let out = here.join("out");
    let input = format!("x={}", here.join("x.npy").display());
    tilework(&["run", program.to_str().unwrap(), "--input", &input, "--out", out.to_str().unwrap()]).code(0);
    out
}

/// Runs a command in a folder; it must succeed.
#[track_caller]
fn succeeds(command: &mut Command) {
    let output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{command:?}\n{}{}", text(&output.stdout), text(&output.stderr));
}

fn starts(program: &str) -> bool {
    let started = Command::new(program).arg("--version").output().is_ok();
    if !started {
        println!("skipped: {program} does not start");
    }
    started
}

/// Builds the kernels in C and compares what they compute.
fn c_kernels_give_right_results(cross: &str) {
    let folder = folder();
    let sdk = sdk(folder.path());
    let strict = "WARNINGS=-Wall -Wextra -Werror";
    succeeds(Command::new("make").arg("-C").arg(sdk.join("c")).args([cross, strict]));
    let out = run(&sdk.join("c/program.toml"));
    let (shape, x) = read_npy::<u32>(&sdk.join("c/x.npy"));
    let (found, y) = read_npy::<u32>(&out.join("y.npy"));
    assert_eq!(found, shape);
    assert!(x.len() > 10_000 && x.iter().zip(&y).all(|(x, y)| 3 * x + 1 == *y));
    assert_eq!(read_npy::<u32>(&out.join("cores.npy")).1, [4]);
}

#[test]
fn kernels_in_c_build_outside_the_repository_and_give_right_results() {
    if starts("make") && starts(&format!("{GCC}gcc")) {
        c_kernels_give_right_results(&format!("CROSS={GCC}"));
    }
}

#[test]
fn kernels_in_c_build_with_sfpi_and_give_right_results() {
    match std::env::var(SFPI) {
        Ok(prefix) => c_kernels_give_right_results(&format!("CROSS={prefix}")),
        Err(_) => println!("skipped: {SFPI} does not name SFPI's compiler (.../bin/riscv-tt-elf-)"),
    }
}

/// A toolchain for the chip's cores: rustup's, or Debian's.
fn cargo(folder: &Path) -> Option<Command> {
    let mut cargo = Command::new("cargo");
    cargo.current_dir(folder).args(["build", "--release"]);
    // What cargo has set for the test itself is no business of that build.
    for (name, _) in std::env::vars_os().filter(|(name, _)| {
        let name = name.to_string_lossy();
        name.starts_with("CARGO") && name != "CARGO_HOME" || name.starts_with("RUST")
    }) {
        cargo.env_remove(name);
    }
    let sysroot = Command::new("rustc").args(["--print", "sysroot"]).output().ok()?;
    let sysroot = String::from_utf8(sysroot.stdout).ok()?;
    if Path::new(sysroot.trim()).join("lib/rustlib/riscv32im-unknown-none-elf").is_dir() {
        return Some(cargo);
    }
    let version = Command::new(DEBIAN_RUSTC).arg("--version").output().ok()?;
    let version = String::from_utf8(version.stdout).ok()?;
    let release = version.split(' ').nth(1)?;
    let core = Path::new(DEBIAN_CORE).join(format!("rustc-{release}"));
    (core.is_dir() && starts("ld.lld")).then(|| {
        let path = std::env::var("PATH").unwrap_or_default();
        cargo.env("PATH", format!("/usr/bin:{path}")).env("RUSTC", DEBIAN_RUSTC).env("RUSTC_BOOTSTRAP", "1");
        cargo.env("CARGO_TARGET_RISCV32IM_UNKNOWN_NONE_ELF_LINKER", "ld.lld").arg("-Zbuild-std=core");
        cargo
    })
}

#[test]
fn kernels_in_rust_build_outside_the_repository_and_give_right_results() {
    let folder = folder();
    let sdk = sdk(folder.path()).join("rust");
    let Some(mut cargo) = cargo(&sdk) else {
        return println!("skipped: no Rust toolchain for riscv32im");
    };
    succeeds(&mut cargo);
    let out = run(&sdk.join("program.toml"));
    let (shape, x) = read_npy::<f32>(&sdk.join("x.npy"));
    let (found, y) = read_npy::<f32>(&out.join("y.npy"));
    assert_eq!(found, shape);
    assert!(x.contains(&15.0) && x.iter().zip(&y).all(|(x, y)| x * x == *y));
}

#[test]
fn a_folder_that_has_such_files_is_left_alone_unless_forced() {
    let folder = folder();
    let sdk = sdk(folder.path());
    let kernel = sdk.join("c/compute.c");
    std::fs::write(&kernel, "mine").unwrap();
    tilework(&["sdk", sdk.to_str().unwrap()]).code(2).says("--force");
    assert_eq!(std::fs::read_to_string(&kernel).unwrap(), "mine");
    tilework(&["sdk", sdk.to_str().unwrap(), "--force"]).code(0);
    assert!(std::fs::read_to_string(&kernel).unwrap().contains("kernel_main"));
}

#[test]
fn the_readme_names_the_oldest_compiler() {
    let folder = folder();
    let readme = std::fs::read_to_string(sdk(folder.path()).join("README.md")).unwrap();
    let manifest = std::fs::read_to_string(common::repository().join("firmware/Cargo.toml")).unwrap();
    let manifest: toml::Table = manifest.parse().unwrap();
    let oldest = manifest["workspace"]["package"]["rust-version"].as_str().unwrap();
    assert!(readme.contains(&format!("Rust {oldest} or later")) && !readme.contains('@'), "{readme}");
}
