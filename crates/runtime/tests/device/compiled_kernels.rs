//! Kernels that others compile: C by GCC, linked by a script of their own, moved to wherever the
//! program puts them.
//!
//! What a file needs for that is what `firmware/link` does for ours: text at a nominal address,
//! initialisers behind it, no relaxation, and relocations kept. The last is the one that is easily
//! forgotten, and a file without them must be refused instead of run; so must one of which the
//! linker has changed what its relocations say.

use crate::common::{open_with, other_firmware};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use tilework_abi::board::Board;
use tilework_abi::kernel::{KERNEL_LINK_BASE, KERNEL_LOCAL_DM, STACK_BYTES};
use tilework_abi::tensix::{LOCAL_BASE, Processor};
use tilework_runtime::{ArgSet, Cores, DeviceConfig, Dispatch, FirmwareSet, KernelImage, Program, Role, UniqueArgs};

const GCC: &str = "riscv64-unknown-elf-gcc";
/// Words that the kernel writes.
const RESULTS: usize = 18;

/// Text, constants and initialisers from the nominal address on; data and bss in the kernel's part
/// of local RAM.
fn linker_script() -> String {
    let local_end = LOCAL_BASE + Processor::Brisc.local_size() - STACK_BYTES;
    let mut script = String::new();
    writeln!(
        script,
        "ENTRY(_start)
         PHDRS {{ text PT_LOAD FLAGS(5); data PT_LOAD FLAGS(6); }}
         SECTIONS {{
             . = {KERNEL_LINK_BASE:#x};
             .text : {{ KEEP(*(.text.start)) *(.text .text.*) }} :text
             .rodata : {{ *(.rodata .rodata.* .srodata .srodata.*) . = ALIGN(4); __data_load = .; }} :text
             . = {KERNEL_LOCAL_DM:#x};
             .data : AT(__data_load) {{
                 __data_start = .; *(.data .data.* .sdata .sdata.*) . = ALIGN(4); __data_end = .;
             }} :data
             .bss (NOLOAD) : {{
                 __bss_start = .; *(.bss .bss.* .sbss .sbss.* COMMON) . = ALIGN(4); __bss_end = .;
             }} :data
             ASSERT(__bss_end <= {local_end:#x}, \"data and bss reach into the stack\")
             /DISCARD/ : {{ *(.eh_frame .eh_frame.* .comment .note .note.* .riscv.attributes) }}
         }}"
    )
    .unwrap();
    script
}

/// Compiles `kernel.c` with further arguments to the ELF file `name`; `None`, with a reason
/// printed, where there is no compiler.
fn compile(name: &str, more: &[&str]) -> Option<PathBuf> {
    if let Err(e) = Command::new(GCC).arg("--version").output() {
        eprintln!("skipped: {GCC} does not start ({e})");
        return None;
    }
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (elf, script) = (directory.join(name), directory.join(format!("{name}.ld")));
    std::fs::write(&script, linker_script()).unwrap();
    let output = Command::new(GCC)
        .args(["-march=rv32im", "-mabi=ilp32", "-mcmodel=medlow", "-O2", "-g", "-Wall", "-Werror"])
        .args(["-ffreestanding", "-nostdlib", "-static", "-msmall-data-limit=0"])
        .args(["-Wl,--no-relax", "-Wl,-z,max-page-size=16", "-Wl,--build-id=none"])
        .args(more)
        .arg("-T")
        .arg(&script)
        .arg("-o")
        .arg(&elf)
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/device/compiled_kernels/kernel.c"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(elf)
}

#[test]
fn a_c_kernel_with_compressed_instructions_is_told_the_flag() {
    let Some(elf) = compile("compressed.elf", &["-Wl,--emit-relocs", "-march=rv32imc"]) else { return };
    let error = KernelImage::load("compressed.elf", std::fs::read(elf).unwrap(), Processor::Brisc).unwrap_err();
    assert!(error.to_string().contains("the extension C") && error.to_string().contains("-march=rv32im "), "{error}");
}

/// What the kernel writes for `n`, except where it is.
fn expected(n: u32) -> [u32; RESULTS - 1] {
    let digits = [3, 1, 4, 1, 5, 9, 2, 6];
    let digit = digits[n as usize % 8];
    let [twice, next, flip] = [n.wrapping_mul(2), n.wrapping_add(1), !n];
    let count = n.wrapping_add(40);
    let mut out = [0; RESULTS - 1];
    out[..9].copy_from_slice(&[40, 0, next.wrapping_add(9), digit, twice, next, flip, count, flip]);
    out[9..].copy_from_slice(&[
        twice.wrapping_add(5),
        n.wrapping_mul(n),
        flip >> 3,
        n.wrapping_sub(count),
        next.wrapping_mul(7),
        n ^ n.wrapping_mul(3),
        digit,
        99,
    ]);
    out
}

#[test]
fn a_c_kernel_computes_the_same_wherever_it_is_put() {
    let Some(elf) = compile("kernel.elf", &["-Wl,--emit-relocs"]) else { return };
    computes_the_same(&std::fs::read(elf).unwrap());
}

/// The linker shortens calls, and says so in the relocations that it keeps.
#[test]
fn a_c_kernel_linked_with_relaxation_computes_the_same() {
    let relaxed = ["-Wl,--emit-relocs", "-Wl,--relax"];
    let Some(elf) = compile("relaxed.elf", &relaxed) else { return };
    let elf = std::fs::read(elf).unwrap();
    assert_ne!(elf.len(), std::fs::metadata(compile("kernel-2.elf", &relaxed[..1]).unwrap()).unwrap().len() as usize);
    computes_the_same(&elf);
}

/// With a global pointer the linker makes references to local data relative to it.
#[test]
fn a_c_kernel_with_references_relative_to_the_global_pointer_is_told_how_to_link() {
    let pointer = ["-Wl,--emit-relocs", "-Wl,--relax", "-Wl,--defsym=__global_pointer$=0xFFB00600"];
    let Some(elf) = compile("global-pointer.elf", &pointer) else { return };
    let error = KernelImage::load("g.elf", std::fs::read(elf).unwrap(), Processor::Brisc).unwrap_err().to_string();
    assert!(error.contains("made by relaxation, expected references as compiled (link with --no-relax)"), "{error}");
}

/// Runs a kernel at several places under several firmwares.
fn computes_the_same(elf: &[u8]) {
    let image = |processor| Arc::new(KernelImage::load("kernel.elf", elf, processor).unwrap());
    let mut sets = other_firmware();
    sets.push(("ours", FirmwareSet::prebuilt().unwrap()));
    for (name, set, dispatch) in sets.iter().flat_map(|(n, s)| [(n, s, Dispatch::Fast), (n, s, Dispatch::Slow)]) {
        let config = DeviceConfig { dispatch, ..DeviceConfig::new(Board::P100) };
        let mut device = open_with(config, true, set.clone());
        let out = device.alloc_l1("results", 256).unwrap();
        // BRISC and NCRISC each have a copy, at different places.
        let sets = [(ArgSet::Brisc, Processor::Brisc, 0), (ArgSet::Ncrisc, Processor::Ncrisc, 128)];
        let numbers = |i: u32, offset: u32| 0xDEAD_BEE0_u32.wrapping_mul(i + 1) + 3 * i + offset;
        let mut role = Role::all();
        let mut program = Program::new("compiled", Cores::Count(3));
        for (set, processor, offset) in sets {
            role = role.kernel(processor, image(processor));
            let args = (0..3).map(|i| vec![numbers(i, offset), out.address.get() + offset]).collect();
            program = program.unique_args(set, UniqueArgs::PerCore(args));
        }
        let program = program.role(role);
        let layout = device.layout(&program).unwrap();
        // The second run finds local RAM as the first left it.
        for run in 0..2 {
            for &core in &layout.cores {
                device.write_l1(core, out.address, &[0xAA; 256]).unwrap();
            }
            device.run(std::slice::from_ref(&program)).unwrap();
            for (i, &core) in (0..).zip(&layout.cores) {
                for (_, processor, offset) in sets {
                    let mut bytes = [0; 4 * RESULTS];
                    device.read_l1(core, out.address.offset(offset), &mut bytes).unwrap();
                    let words: Vec<u32> =
                        bytes.chunks_exact(4).map(|w| u32::from_le_bytes(w.try_into().unwrap())).collect();
                    let place = format!("{processor} of {core}, {dispatch:?}, firmware {name}, run {run}");
                    assert_eq!(words[..RESULTS - 1], expected(numbers(i, offset)), "{place}");
                    // It ran where the layout puts it, not where it was linked.
                    let text = layout.base.get() + layout.roles[0].text[processor.index()];
                    let size = image(processor).size();
                    assert!((text..text + size).contains(&words[RESULTS - 1]), "{place}: {:#x}", words[RESULTS - 1]);
                    assert!(!(KERNEL_LINK_BASE..KERNEL_LINK_BASE + size).contains(&text));
                }
            }
        }
    }
}

#[test]
fn a_c_kernel_linked_without_its_relocations_is_refused_by_name() {
    let Some(elf) = compile("no-relocations.elf", &[]) else { return };
    let error = KernelImage::load("no-relocations.elf", std::fs::read(elf).unwrap(), Processor::Brisc).unwrap_err();
    assert_eq!(
        error.to_string(),
        "no-relocations.elf: relocations: found none for .text, expected those of its code, because a kernel is moved: link the kernel \
         with --emit-relocs"
    );
}
