//! Kernels in C that are linked with firmware, as tt-metal links its own: they read the firmware's
//! globals in local RAM, and their data lies behind the firmware's.
//!
//! They run under the firmware that they were linked with, wherever the program puts their text,
//! and are refused under any other. `TILEWORK_BH_FIRMWARE` names a folder of firmware that others
//! built, which the same kernels are tried with.

use crate::common::{Device, load_firmware, moved_firmware, open_with};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use tilework_abi::addr::PageCount;
use tilework_abi::board::Board;
use tilework_abi::globals;
use tilework_abi::noc::NocXy;
use tilework_abi::tensix::Processor;
use tilework_runtime::firmware::FILES;
use tilework_runtime::{
    ArgSet, CircularBuffer, Cores, DType, DeviceConfig, Dispatch, FirmwareSet, KernelImage, L1Buffer, MapValues,
    Program, Role, UniqueArgs,
};

const GCC: &str = "riscv64-unknown-elf-gcc";
/// Words that the kernel writes on a TRISC, and on the cores that move data.
const RESULTS: [usize; 2] = [11, 18];

/// Text where the firmware's ends, data where the firmware's ends, as the scripts of tt-metal's
/// kernels have it.
const SCRIPT: &str = "ENTRY(_start)
PHDRS { text PT_LOAD FLAGS(5); data PT_LOAD FLAGS(6); }
SECTIONS {
    .text __fw_export_text_end : { *(.start) *(.text .text.*) . = ALIGN(4); } :text
    __kernel_data_lma = .;
    .data __fw_export_ldm_end : AT(__kernel_data_lma) {
        __ldm_data_start = .; *(.rodata .rodata.* .srodata .srodata.* .sdata .sdata.* .data .data.*)
        . = ALIGN(4); __ldm_data_end = .;
    } :data
    .bss (NOLOAD) : { __ldm_bss_start = .; *(.sbss .sbss.* .bss .bss.* COMMON) . = ALIGN(4); __ldm_bss_end = .; } :data
    /DISCARD/ : { *(.eh_frame .eh_frame.* .comment .note .note.* .riscv.attributes) }
}";

/// Our firmware's folder.
fn ours() -> PathBuf {
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../firmware/prebuilt").into()
}

/// Compiles the kernel for `processor`, linked with the firmware in `folder` for a board with so
/// many banks of DRAM and of L1; `None`, with a reason printed, where there is no compiler.
fn compile(name: &str, folder: &Path, processor: Processor, banks: [usize; 2]) -> Option<Vec<u8>> {
    if let Err(e) = Command::new(GCC).arg("--version").output() {
        eprintln!("skipped: {GCC} does not start ({e})");
        return None;
    }
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (elf, script) = (directory.join(format!("{name}.elf")), directory.join(format!("{name}.ld")));
    let firmware = directory.join(format!("{name}-firmware.elf"));
    // As tt-metal does it: what a kernel has itself is not the firmware's.
    let status = Command::new("riscv64-unknown-elf-objcopy")
        .args(["--localize-symbol=_start", "--localize-symbol=main", "--localize-symbol=exit", "--weaken"])
        .arg(folder.join(FILES[processor.index()]))
        .arg(&firmware)
        .status()
        .unwrap();
    assert!(status.success());
    std::fs::write(&script, SCRIPT).unwrap();
    let mut gcc = Command::new(GCC);
    gcc.args(["-march=rv32im", "-mabi=ilp32", "-mcmodel=medlow", "-O2", "-g", "-Wall", "-Werror"])
        .args(["-ffreestanding", "-nostdlib", "-static", "-Wl,--emit-relocs", "-Wl,--relax"])
        .args(["-Wl,-z,max-page-size=16", "-Wl,--build-id=none"])
        .args([format!("-DDRAM_BANKS={}", banks[0]), format!("-DL1_BANKS={}", banks[1])])
        .arg(format!("-Wl,--just-symbols={}", firmware.display()))
        // Weakened symbols do not count for the linker, which then makes no references relative to
        // it.
        .arg(format!("-Wl,--defsym=__global_pointer$={:#x}", globals::GLOBAL_POINTER));
    if globals::moves_data(processor) {
        gcc.args([
            format!("-Wl,--defsym=__tilework_dram_banks={}", banks[0]),
            format!("-Wl,--defsym=__tilework_l1_banks={}", banks[1]),
        ]);
        gcc.arg("-DDATA_MOVEMENT");
    }
    gcc.arg("-T").arg(&script).arg("-o").arg(&elf);
    gcc.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/device/linked_kernels/kernel.c"));
    let output = gcc.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let elf = std::fs::read(elf).unwrap();
    let listed = tilework_runtime::elf::list("kernel.elf", &elf).unwrap();
    let mut words = listed.iter().flat_map(|function| &function.words);
    // A load whose base is register 3.
    let relative = words.any(|w| w.word & 0x7F == 0x03 && w.word >> 15 & 0x1F == 3);
    assert!(relative, "{name}: no reference relative to the global pointer");
    Some(elf)
}

/// The banks of a device as kernels are compiled for them.
fn banks(device: &mut Device) -> [usize; 2] {
    [device.dram_banks(), l1_banks(device).len()]
}

fn l1_banks(device: &mut Device) -> Vec<NocXy> {
    device.memory().unwrap().l1_banks().to_vec()
}

fn open(set: &FirmwareSet, board: Board, dispatch: Dispatch) -> Device {
    open_with(DeviceConfig { dispatch, ..DeviceConfig::new(board) }, true, set.clone())
}

/// Where each processor's results are, from the start of the buffer.
fn place(processor: Processor) -> u32 {
    128 * processor.index() as u32
}

/// The program with the kernel on some processors of three cores, and where it stores its results.
fn program(device: &mut Device, name: &str, folder: &Path, processors: &[Processor]) -> Option<(Program, L1Buffer)> {
    let out = device.alloc_l1("results", 5 * 128).unwrap();
    let mut role = Role::all();
    for &p in processors {
        let elf = compile(&format!("{name}-{p}"), folder, p, banks(device))?;
        role = role.kernel(p, Arc::new(KernelImage::load(&format!("{p}.elf"), elf, p).unwrap()));
    }
    let mut program = Program::new("linked", Cores::Count(3))
        .role(role)
        .circular_buffer(CircularBuffer { index: 0, page_size: 64, pages: PageCount::new(1) })
        .circular_buffer(CircularBuffer { index: 3, page_size: 1088, pages: PageCount::new(5) })
        .semaphore(7)
        .semaphore(1234);
    for (i, set) in (0..).zip([ArgSet::Brisc, ArgSet::Ncrisc]) {
        let p = [Processor::Brisc, Processor::Ncrisc][i as usize];
        let args = (0..3).map(|core| vec![out.address.get() + place(p), 10 * core + i]).collect();
        program = program.unique_args(set, UniqueArgs::PerCore(args)).common_args(set, vec![77 + i]);
    }
    // The TRISCs share their arguments, so that all write the same words.
    let args = vec![out.address.get() + place(Processor::Trisc0), 2];
    let program =
        program.unique_args(ArgSet::Compute, UniqueArgs::Uniform(args)).common_args(ArgSet::Compute, vec![79]);
    Some((program, out))
}

/// What the kernel finds on `processor` of core number `i`, at `xy`.
fn expected(device: &mut Device, program: &Program, i: usize, xy: NocXy, processor: Processor) -> Vec<u32> {
    let moves_data = globals::moves_data(processor);
    let layout = device.layout(program).unwrap();
    let cb = layout.cbs.iter().find(|cb| cb.index == 3).unwrap();
    let units = |bytes: u32| if moves_data { bytes } else { bytes / 16 };
    let (start, bytes, page) = (units(cb.address.get()), units(5 * 1088), units(1088));
    let kind = processor.index().min(2) as u32;
    let number = if moves_data { 10 * i as u32 + kind } else { 2 };
    let column = Board::P150.worker_columns().iter().position(|&x| x == xy.x).unwrap() as u32;
    let logical = column << 8 | u32::from(xy.y - 2);
    let mut out = vec![1000 + number, 1, 77 + kind, logical << 16 | logical];
    out.extend([bytes, start + bytes, page, 5, start, start, 0]);
    if moves_data {
        let xy = u32::from(xy.x) << 8 | u32::from(xy.y);
        let drams = device.dram_banks();
        let board = device.board();
        let dram = |bank, noc| board.dram().port(bank, noc).encode();
        let banks = l1_banks(device);
        let l1 = |bank: usize| banks[bank].encode();
        out.extend([1234, xy << 16 | xy, dram(1, 0) << 16 | dram(drams - 1, 1)]);
        out.extend([l1(1) << 16 | l1(banks.len() - 1), 0, 11 << 16 | 11, 0]);
    }
    out
}

fn words(device: &mut Device, core: NocXy, address: tilework_abi::addr::L1Addr, count: usize) -> Vec<u32> {
    let mut bytes = vec![0; 4 * count];
    device.read_l1(core, address, &mut bytes).unwrap();
    bytes.chunks_exact(4).map(|w| u32::from_le_bytes(w.try_into().unwrap())).collect()
}

/// Runs the kernel on all processors under the firmware that it was linked with.
fn finds_everything(name: &str, folder: &Path, set: &FirmwareSet, board: Board) {
    for dispatch in [Dispatch::Fast, Dispatch::Slow] {
        let mut device = open(set, board, dispatch);
        let name = format!("{name}-{dispatch:?}");
        let Some((program, out)) = program(&mut device, &name, folder, &Processor::ALL) else { return };
        let cores = device.layout(&program).unwrap().cores;
        let mut buffer = |name| device.alloc_dram(name, &[25_600], DType::U32, 1024).unwrap();
        let [x, y] = ["x", "y"].map(&mut buffer);
        let slots = device.alloc_l1("slots", 3 * 1024).unwrap();
        device.upload(&x, &[1; 4 * 25_600]).unwrap();
        let own = crate::common::increment(&device, &x, &y, &slots, 3);
        // Launches of other kernels in between leave their own values everywhere.
        for run in 0..3 {
            for &core in &cores {
                device.write_l1(core, out.address, &[0xAA; 5 * 128]).unwrap();
            }
            device.run(&[program.clone(), own.clone()]).unwrap();
            for (i, &core) in cores.iter().enumerate() {
                for p in [Processor::Brisc, Processor::Ncrisc, Processor::Trisc0] {
                    let count = RESULTS[usize::from(globals::moves_data(p))];
                    let found = words(&mut device, core, out.address.offset(place(p)), count);
                    let what = format!("{name}, {p} of {core}, run {run}");
                    assert_eq!(found, expected(&mut device, &program, i, core, p), "{what}");
                }
            }
        }
    }
}

#[test]
fn a_kernel_linked_with_our_firmware_finds_its_globals() {
    for board in [Board::P100, Board::P150] {
        finds_everything(&format!("ours-{}", board.name()), &ours(), &FirmwareSet::prebuilt().unwrap(), board);
    }
}

#[test]
fn a_kernel_linked_with_other_firmware_than_it_meets_is_refused_by_name() {
    // Ours, but with its bank table elsewhere: it does not fill in the tables.
    let mut device = open(&moved_firmware(), Board::P100, Dispatch::Fast);
    let Some((program, _)) = program(&mut device, "refused", &ours(), &Processor::ALL) else { return };
    let error = device.run(std::slice::from_ref(&program)).unwrap_err().to_string();
    let found = "BRISC.elf: firmware symbol __fw_export_ldm_end: found 0xffb00930, expected a kernel without firmware";
    assert!(error.starts_with(found) && error.ends_with("reads the bank table at 0x112b0"), "{error}");
    // Nothing has reached the chip, and the device goes on.
    device.run(&[crate::common::empty(Cores::All)]).unwrap();
    // A kernel of another core: its text begins elsewhere.
    let elf = compile("other-core", &ours(), Processor::Ncrisc, banks(&mut device)).unwrap();
    let mut device = open(&FirmwareSet::prebuilt().unwrap(), Board::P100, Dispatch::Slow);
    let image = KernelImage::load("k.elf", elf, Processor::Brisc).unwrap();
    let wrong = Program::new("wrong", Cores::Count(1)).role(Role::all().kernel(Processor::Brisc, Arc::new(image)));
    let error = device.run(&[wrong]).unwrap_err().to_string();
    assert!(error.starts_with("k.elf: firmware symbol __fw_export_text_end: found"), "{error}");
}

#[test]
fn a_kernel_compiled_for_other_banks_is_refused_by_name() {
    for (board, compiled, found) in
        [(Board::P150, [7, 138], "7, expected 8"), (Board::P100, [7, 110], "110, expected 118")]
    {
        let name = format!("banks-{}", board.name());
        let Some(elf) = compile(&name, &ours(), Processor::Brisc, compiled) else { return };
        let mut device = open(&FirmwareSet::prebuilt().unwrap(), board, Dispatch::Fast);
        let image = Arc::new(KernelImage::load("k.elf", elf, Processor::Brisc).unwrap());
        let wrong = Program::new("wrong", Cores::Count(1)).role(Role::all().kernel(Processor::Brisc, image));
        let error = device.run(&[wrong]).unwrap_err().to_string();
        assert!(error.contains(&format!("found {found}: compile for the board's banks")), "{error}");
    }
}

#[test]
fn a_kernel_linked_with_firmware_of_others_runs_there_and_not_here() {
    let Some(folder) = std::env::var_os("TILEWORK_BH_FIRMWARE").map(PathBuf::from) else {
        eprintln!("skipped: TILEWORK_BH_FIRMWARE names no folder");
        return;
    };
    let data = [Processor::Brisc, Processor::Ncrisc];
    let theirs = load_firmware(folder.clone(), &MapValues::default());
    let mut device = open(&FirmwareSet::prebuilt().unwrap(), Board::P100, Dispatch::Fast);
    let Some((program, _)) = program(&mut device, "theirs", &folder, &data) else { return };
    let error = device.run(&[program]).unwrap_err().to_string();
    assert!(error.contains("firmware symbol") && error.contains("linked with other firmware"), "{error}");
    let mut device = open(&theirs, Board::P100, Dispatch::Fast);
    let (program, out) = self::program(&mut device, "theirs-there", &folder, &data).unwrap();
    let core = device.layout(&program).unwrap().cores[0];
    device.run(std::slice::from_ref(&program)).unwrap();
    // Their host stores the tiles' logical coordinates, ours does not: the words up to there.
    let found = words(&mut device, core, out.address, 3);
    assert_eq!(found, expected(&mut device, &program, 0, core, Processor::Brisc)[..3]);
}
