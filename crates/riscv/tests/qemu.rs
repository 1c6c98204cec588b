//! Random programs under `qemu-riscv32` and on our core end in the same registers and memory.
//!
//! Each program is a static ELF made here: it sets its registers, runs a hundred random
//! instructions over a scratch area, stores its registers behind the area, writes the lot to
//! standard output and exits. Our core runs the same image and stops at the first `ecall`. Skipped,
//! with the reason printed, when qemu is missing.

mod common;

use std::path::Path;
use std::process::Command;

use common::{Toy, li, run, word};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use tilework_riscv::{Core, CoreFault, Exit, Format, HartKind, Insn, Op, TABLE, encode};

/// Every qemu knows this CPU, and older ones no `max`.
const CPU: &str = "rv32,zba=true,zbb=true,zbkb=true";
const PROGRAMS: usize = 400;
const LENGTH: usize = 100;
/// Where the ELF is loaded: in L1 and above qemu's lowest mappable address.
const BASE: u32 = 0x10000;
/// The headers of the ELF.
const HEADERS: u32 = 52 + 32;
/// The scratch area, a page of its own, and the dump of registers behind it.
const SCRATCH: u32 = 0x14000;
const SCRATCH_BYTES: u32 = 256;
const IMAGE_BYTES: u32 = SCRATCH + SCRATCH_BYTES + 128 - BASE;
/// Points to the middle of the scratch area; no random instruction writes it.
const POINTER: u8 = 31;
/// Holds the address of an atomic; written just before.
const ATOMIC: u8 = 30;

/// One step of a program: an instruction, or the two that make an atomic.
fn step() -> impl Strategy<Value = Vec<Insn>> {
    let fields = (0..TABLE.len(), 0..30u8, 0..30u8, 0..30u8, any::<i32>());
    fields.prop_filter_map("no such operands", |(row, rd, rs1, rs2, imm)| {
        let info = TABLE[row];
        let op = info.op;
        let within = imm.rem_euclid(SCRATCH_BYTES as i32);
        let insn = |rd, rs1, rs2, imm| vec![Insn { op, rd, rs1, rs2, imm }];
        let align = match op {
            Op::Lb | Op::Lbu | Op::Sb => 1,
            Op::Lh | Op::Lhu | Op::Sh => 2,
            _ => 4,
        };
        let place = (within & -align) - SCRATCH_BYTES as i32 / 2;
        Some(match info.format {
            Format::R => insn(rd, rs1, rs2, 0),
            Format::Unary => insn(rd, rs1, 0, 0),
            Format::I => insn(rd, rs1, 0, imm << 20 >> 20),
            Format::Shift => insn(rd, rs1, 0, imm & 31),
            Format::Load => insn(rd, POINTER, 0, place),
            Format::Store => insn(0, POINTER, rs2, place),
            // Forward, over up to seven steps of the program.
            Format::Branch => insn(0, rs1, rs2, (1 + imm.rem_euclid(7)) * 4),
            Format::U => insn(rd, 0, 0, imm & !0xfff),
            Format::Jal => insn(rd, 0, 0, (1 + imm.rem_euclid(7)) * 4),
            Format::Amo => vec![
                Insn { op: Op::Addi, rd: ATOMIC, rs1: POINTER, rs2: 0, imm: place },
                Insn { op, rd, rs1: ATOMIC, rs2, imm: imm & 3 },
            ],
            Format::Fence => insn(0, 0, 0, 0xff * i32::from(op == Op::Fence)),
            _ => return None,
        })
    })
}

fn program() -> impl Strategy<Value = (Vec<u32>, Vec<u32>)> {
    let register = prop_oneof![
        2 => any::<u32>(),
        1 => 0..40u32,
        1 => prop_oneof![Just(u32::MAX), Just(1 << 31), Just(i32::MAX.cast_unsigned())],
    ];
    (
        proptest::collection::vec(register, 30),
        proptest::collection::vec(step(), LENGTH),
        proptest::collection::vec(any::<u32>(), SCRATCH_BYTES as usize / 4),
    )
        .prop_map(|(registers, steps, scratch)| (assemble(&registers, steps), scratch))
}

fn assemble(registers: &[u32], steps: Vec<Vec<Insn>>) -> Vec<u32> {
    let mut code = Vec::new();
    for (number, value) in (0..).zip(registers) {
        code.extend(li(number, *value));
    }
    code.extend(li(POINTER, SCRATCH + SCRATCH_BYTES / 2));
    code.extend(li(ATOMIC, SCRATCH));
    let mut body: Vec<Insn> = steps.concat();
    let end = body.len() as i32 * 4;
    for (at, insn) in (0..).step_by(4).zip(&mut body) {
        if matches!(insn.op.format(), Format::Branch | Format::Jal) {
            insn.imm = insn.imm.min(end - at);
        }
    }
    // An atomic that is jumped to directly uses the address of an earlier one, which is as good.
    code.extend(body.iter().map(|insn| encode(*insn).expect("operands fit")));
    for number in 0..31_u8 {
        let place = SCRATCH_BYTES as i32 / 2 + i32::from(number) * 4;
        code.push(word(Op::Sw, 0, POINTER, number, place));
    }
    // write(1, SCRATCH, size); exit(0)
    for (number, value) in [(10, 1), (11, SCRATCH), (12, SCRATCH_BYTES + 124), (17, 64)] {
        code.extend(li(number, value));
    }
    code.push(word(Op::Ecall, 0, 0, 0, 0));
    code.extend(li(10, 0));
    code.extend(li(17, 93));
    code.push(word(Op::Ecall, 0, 0, 0, 0));
    code
}

/// A static executable of one segment that holds headers, code and scratch.
fn elf(code: &[u32], scratch: &[u32]) -> Vec<u8> {
    let mut image: Vec<u8> = vec![0x7f, b'E', b'L', b'F', 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let halves = |image: &mut Vec<u8>, values: &[u16]| {
        image.extend(values.iter().flat_map(|value| value.to_le_bytes()));
    };
    let words = |image: &mut Vec<u8>, values: &[u32]| {
        image.extend(values.iter().flat_map(|value| value.to_le_bytes()));
    };
    halves(&mut image, &[2, 243]); // executable, RISC-V
    words(&mut image, &[1, BASE + HEADERS, 52, 0, 0]);
    halves(&mut image, &[52, 32, 1, 0, 0, 0]);
    words(&mut image, &[1, 0, BASE, BASE, IMAGE_BYTES, IMAGE_BYTES, 7, 0x1000]);
    words(&mut image, code);
    assert!(image.len() as u32 <= SCRATCH - BASE, "the code ends before the scratch area");
    image.resize((SCRATCH - BASE) as usize, 0);
    words(&mut image, scratch);
    image.resize(IMAGE_BYTES as usize, 0);
    image
}

fn under_qemu(path: &Path) -> Vec<u8> {
    let output = Command::new("qemu-riscv32").args(["-cpu", CPU]).arg(path).output();
    let output = output.expect("qemu was there a moment ago");
    assert!(output.status.success(), "qemu: {output:?}");
    output.stdout
}

fn on_our_core(image: &[u8]) -> Vec<u8> {
    let mut bus = Toy::new();
    bus.l1[BASE as usize..BASE as usize + image.len()].copy_from_slice(image);
    let mut core = Core::new(HartKind::B);
    core.reset(BASE + HEADERS, 0);
    let exit = run(&mut core, &mut bus, 1_000_000);
    assert!(matches!(exit, Exit::Fault(CoreFault::Ecall { .. })), "{exit:x?}");
    let end = SCRATCH + core.regs[12];
    bus.l1[SCRATCH as usize..end as usize].to_vec()
}

#[test]
fn qemu_agrees() {
    if Command::new("qemu-riscv32").arg("--version").output().is_err() {
        return println!("skipped: no qemu-riscv32");
    }
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("program");
    let mut runner = TestRunner::deterministic();
    for number in 0..PROGRAMS {
        let (code, scratch) = program().new_tree(&mut runner).expect("generated").current();
        let image = elf(&code, &scratch);
        std::fs::write(&path, &image).expect("writable");
        make_executable(&path);
        let [theirs, ours] = [under_qemu(&path), on_our_core(&image)];
        assert_eq!(theirs.len(), SCRATCH_BYTES as usize + 124);
        for (offset, pair) in theirs.chunks_exact(4).zip(ours.chunks_exact(4)).enumerate() {
            let (theirs, ours) = pair;
            if theirs != ours {
                let listing: Vec<String> = code.iter().map(|word| Insn::decode(*word).to_string()).collect();
                panic!(
                    "program {number}, word {offset} (registers from 64): qemu {theirs:02x?}, ours {ours:02x?}\n{}",
                    listing.join("\n")
                );
            }
        }
    }
    println!("{PROGRAMS} programs of {LENGTH} steps agree");
}

#[cfg(unix)]
fn make_executable(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(path, mode).expect("our own file");
}

#[cfg(not(unix))]
fn make_executable(_path: &Path) {}
