//! Linker scripts of firmware and kernels, for use in build scripts.
//!
//! The scripts are templates; every address in them comes from `tilework_abi` (the original's
//! `hw.py`), so that loader, firmware and linker cannot disagree. Relaxation is off: it would turn
//! absolute references into ones relative to `gp`, which the loader could not move, and nothing
//! here sets `gp`. Firmware and kernels keep their relocations (`--emit-relocs`): kernels because
//! the loader places them anywhere, firmware because it costs nothing at run time and lets the same
//! loader place it on another map.

use std::path::{Path, PathBuf};

use tilework_abi::globals;
use tilework_abi::kernel::{KERNEL_LINK_BASE, KERNEL_LOCAL_DM, KERNEL_LOCAL_TRISC, kernel_local_end};
use tilework_abi::l1::WORKER;
use tilework_abi::tensix::{INSTRN_BUF_BASE, LOCAL_BASE, Processor};

/// First byte of local RAM that belongs to the kernel as it is linked.
const fn kernel_local(core: Processor) -> u32 {
    match core {
        Processor::Brisc | Processor::Ncrisc => KERNEL_LOCAL_DM,
        _ => KERNEL_LOCAL_TRISC,
    }
}

/// Lays out binary `bin` of this package as the worker firmware of `core`.
pub fn firmware(bin: &str, core: Processor) {
    let i = core.index();
    let template = include_str!("../firmware.ld").replace("@GLOBALS@", &global_symbols(core));
    let end = WORKER.kernel_local[i];
    link(
        bin,
        &template,
        &[
            ("TEXT", WORKER.firmware_text[i].get()),
            ("TEXT_END", WORKER.firmware_end[i].get()),
            ("LOCAL", LOCAL_BASE + globals::bytes(core)),
            ("LOCAL_END", end),
            ("GLOBAL_POINTER", globals::GLOBAL_POINTER),
            ("INIT", WORKER.local_init[i].offset(globals::bytes(core)).get()),
            ("STACK_TOP", LOCAL_BASE + core.local_size()),
        ],
    );
}

/// Lines of a script that give the globals of `core` their names.
fn global_symbols(core: Processor) -> String {
    let more: &[globals::Global] = if globals::moves_data(core) { &globals::DATA_MOVEMENT } else { &[] };
    let all = globals::COMMON.iter().chain(more);
    let mut symbols: Vec<(&str, u32)> = all.map(|global| (global.symbol, global.addr())).collect();
    if more.is_empty() {
        symbols.push((globals::INSTRUCTION_BUFFER_SYMBOL, INSTRN_BUF_BASE));
    }
    symbols.push((globals::BANK_TABLE_SYMBOL, WORKER.bank_table.get()));
    symbols.iter().map(|(symbol, address)| format!("    {symbol} = {address:#x};\n")).collect()
}

/// Lays out binary `bin` of this package as a kernel of `core`.
pub fn kernel(bin: &str, core: Processor) {
    link(
        bin,
        include_str!("../kernel.ld"),
        &[
            ("TEXT", KERNEL_LINK_BASE),
            ("TEXT_SIZE", WORKER.kernel_config_size),
            ("LOCAL", kernel_local(core)),
            ("LOCAL_END", kernel_local_end(core)),
        ],
    );
}

/// Lays out the three images of compute kernel `name`: `name-unpack`, `name-math` and `name-pack`.
pub fn compute_kernel(name: &str) {
    let threads = [("unpack", Processor::Trisc0), ("math", Processor::Trisc1), ("pack", Processor::Trisc2)];
    for (thread, core) in threads {
        kernel(&format!("{name}-{thread}"), core);
    }
}

/// Fills in a template and tells cargo to link `bin` with it.
fn link(bin: &str, template: &str, values: &[(&str, u32)]) {
    let script = values
        .iter()
        .fold(template.to_owned(), |s, (name, value)| s.replace(&format!("@{name}@"), &format!("{value:#x}")));
    let path: PathBuf = match std::env::var_os("OUT_DIR") {
        Some(dir) => Path::new(&dir).join(format!("{bin}.ld")),
        None => panic!("tilework-link is for build scripts: OUT_DIR is not set"),
    };
    if let Err(e) = std::fs::write(&path, script) {
        panic!("{}: {e}", path.display());
    }
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-link-arg-bin={bin}=-T{}", path.display());
    for arg in ["--emit-relocs", "--no-relax", "--gc-sections", "--discard-locals", "-zmax-page-size=16"] {
        println!("cargo::rustc-link-arg-bin={bin}={arg}");
    }
}
