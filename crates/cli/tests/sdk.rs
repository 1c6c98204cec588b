//! `tilework sdk`: the folder's kernels build outside the repository and give right results.

use crate::common;
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

/// A kernel in C that prints values of every type, a tile and an array, and whose last assertion
/// does not hold.
const PRINTS: &str = r#"#include "tilework_print.h"

void kernel_main(void)
{
    tw_context c = tw_begin();
    uint32_t at = tw_arg(&c, 0);
    TW_PRINT("hello {{}}");
    TW_PRINT("{} {} {} {} {} {} {:.2} {}", (unsigned char)255, (short)-2, 3u, -4ll, (char)'c', (_Bool)1, 1.5, 1ull << 40);
    TW_PRINT("{:#010x} {:x} {:?}", c.processor, (signed char)-1, 2.0f);
    for (uint32_t i = 0; i < 1024; i++) ((volatile uint16_t *)at)[i] = 0x3F80 + (i / 16 % 2 << 6);
    tw_publish(at + 2044);
    TW_PRINT_TILE("tile", at, TW_BF16, 15, 2, 15, 2);
    TW_PRINT_ARRAY("words", at + 32, TW_U32, 2);
    TW_ASSERT(at % 16 == 0);
    TW_ASSERT(at == 0, "at {} is {:#x}", "x"[0], at);
}
"#;

/// What it prints.
const PRINTED: [&str; 6] = [
    "hello {}",
    "255 -2 3 -4 c true 1.50 1099511627776",
    "0x00000000 ff 2.0",
    "tile: Bf16 at 0x17f800, rows 15..17, columns 15..17\n  1.5 1.5\n  1.0 1.0",
    "words: U32 at 0x17f820, 2 elements\n  1069563840 1069563840",
    "at x is 0x17f800",
];

fn kernels_in_c_print(cross: &str) {
    let folder = folder();
    let c = sdk(folder.path()).join("c");
    std::fs::write(c.join("prints.c"), PRINTS).unwrap();
    let strict = "WARNINGS=-Wall -Wextra -Werror";
    succeeds(Command::new("make").arg("-C").arg(&c).args(["build/prints.elf", "CORE=brisc", cross, strict]));
    let program = "name = \"p\"\n[buffers.at]\nuse = \"scratch\"\ndtype = \"u8\"\nshape = [2048]\npage_size = 2048\n\
                   location = \"l1\"\n[[roles]]\nname = \"r\"\ncores = 1\n[roles.brisc]\n\
                   elf = \"build/prints.elf\"\nargs = [\"at.addr\"]\n";
    let file = c.join("prints.toml");
    std::fs::write(&file, program).unwrap();
    let out = c.join("out");
    let args = ["run", file.to_str().unwrap(), "--out", out.to_str().unwrap(), "--report", "json"];
    let error = &tilework(&args).code(1).json()["error"];
    assert_eq!((error["class"].as_str(), error["condition"].as_str()), (Some("assertion"), Some("at == 0")));
    let lines = error["prints"]["lines"].as_array().unwrap();
    assert_eq!(lines.iter().map(|line| line["text"].as_str().unwrap()).collect::<Vec<_>>(), PRINTED);
    let numbers: Vec<u64> = lines.iter().map(|line| line["line"].as_u64().unwrap()).collect();
    assert_eq!(numbers, [7, 8, 9, 12, 13, 15]);
    assert!(lines.iter().all(|line| line["file"] == "prints.c"));
}

#[test]
fn kernels_in_c_print_what_their_texts_say() {
    if starts("make") && starts(&format!("{GCC}gcc")) {
        kernels_in_c_print(&format!("CROSS={GCC}"));
    }
}

#[test]
fn kernels_built_by_sfpi_print_what_their_texts_say() {
    match std::env::var(SFPI) {
        Ok(prefix) => kernels_in_c_print(&format!("CROSS={prefix}")),
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
