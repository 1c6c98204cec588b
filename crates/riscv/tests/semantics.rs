//! What each instruction computes, against expectations that are written down here and
//! nowhere else.

mod common;

use common::{CLOCK, LOCAL_BASE, Toy, Unmapped, li, run, word};
use tilework_riscv::{Core, CoreFault, Exit, HartKind, Op, Width};

const MIN: u32 = 0x8000_0000;
const MAX: u32 = 0x7fff_ffff;
const ONES: u32 = 0xffff_ffff;

/// Runs `code` from 0 up to an `ebreak` that is added to it, with x5 and x6 set.
fn execute(code: &[u32], a: u32, b: u32) -> (Core, Toy) {
    let mut code = code.to_vec();
    code.push(word(Op::Ebreak, 0, 0, 0, 0));
    let mut bus = Toy::with_code(0, &code);
    let mut core = Core::new(HartKind::B);
    core.reset(0, 0);
    core.regs[5] = a;
    core.regs[6] = b;
    let exit = run(&mut core, &mut bus, 1_000_000);
    assert!(matches!(exit, Exit::Fault(CoreFault::Ebreak { .. })), "{exit:?}");
    (core, bus)
}

fn binary(op: Op, a: u32, b: u32) -> u32 {
    execute(&[word(op, 7, 5, 6, 0)], a, b).0.regs[7]
}

fn immediate(op: Op, a: u32, imm: i32) -> u32 {
    execute(&[word(op, 7, 5, 0, imm)], a, 0).0.regs[7]
}

#[track_caller]
fn check_binary(op: Op, cases: &[(u32, u32, u32)]) {
    for &(a, b, expected) in cases {
        let got = binary(op, a, b);
        assert_eq!(got, expected, "{op:?} {a:#x}, {b:#x}: got {got:#x}, expected {expected:#x}");
    }
}

#[track_caller]
fn check_unary(op: Op, cases: &[(u32, u32)]) {
    for &(a, expected) in cases {
        let got = immediate(op, a, 0);
        assert_eq!(got, expected, "{op:?} {a:#x}: got {got:#x}, expected {expected:#x}");
    }
}

#[track_caller]
fn check_immediate(op: Op, cases: &[(u32, i32, u32)]) {
    for &(a, imm, expected) in cases {
        let got = immediate(op, a, imm);
        assert_eq!(got, expected, "{op:?} {a:#x}, {imm}: got {got:#x}, expected {expected:#x}");
    }
}

#[test]
fn base_register_operations() {
    check_binary(Op::Add, &[(1, 2, 3), (ONES, 1, 0), (MAX, 1, MIN)]);
    check_binary(Op::Sub, &[(1, 2, ONES), (0, MIN, MIN), (5, 3, 2)]);
    check_binary(Op::Sll, &[(1, 31, MIN), (1, 32, 1), (3, 33, 6), (ONES, 4, 0xffff_fff0)]);
    check_binary(Op::Srl, &[(MIN, 31, 1), (MIN, 32, MIN), (ONES, 28, 15)]);
    check_binary(Op::Sra, &[(MIN, 31, ONES), (MIN, 32, MIN), (MAX, 30, 1), (0xf000_0000, 4, 0xff00_0000)]);
    check_binary(Op::Slt, &[(ONES, 0, 1), (0, ONES, 0), (MIN, MAX, 1), (4, 4, 0)]);
    check_binary(Op::Sltu, &[(ONES, 0, 0), (0, ONES, 1), (MIN, MAX, 0), (4, 4, 0)]);
    check_binary(Op::Xor, &[(0b1100, 0b1010, 0b0110)]);
    check_binary(Op::Or, &[(0b1100, 0b1010, 0b1110)]);
    check_binary(Op::And, &[(0b1100, 0b1010, 0b1000)]);
}

#[test]
fn base_immediate_operations() {
    check_immediate(Op::Addi, &[(1, -2, ONES), (MAX, 1, MIN), (0, 2047, 2047), (0, -2048, 0xffff_f800)]);
    check_immediate(Op::Slti, &[(ONES, 0, 1), (0, -1, 0), (MIN, -2048, 1)]);
    check_immediate(Op::Sltiu, &[(0, -1, 1), (ONES, -1, 0), (0, 1, 1), (1, 1, 0)]);
    check_immediate(Op::Xori, &[(0x0f0f, -1, 0xffff_f0f0)]);
    check_immediate(Op::Ori, &[(0x1000, -2048, 0xffff_f800)]);
    check_immediate(Op::Andi, &[(ONES, -16, 0xffff_fff0), (0x1234, 0xff, 0x34)]);
    check_immediate(Op::Slli, &[(1, 31, MIN), (5, 0, 5)]);
    check_immediate(Op::Srli, &[(MIN, 31, 1), (5, 0, 5)]);
    check_immediate(Op::Srai, &[(MIN, 31, ONES), (MAX, 31, 0), (MIN, 0, MIN)]);
}

#[test]
fn upper_immediates() {
    let (core, _) = execute(
        &[
            word(Op::Addi, 0, 0, 0, 0),
            word(Op::Auipc, 7, 0, 0, 0x1000),
            word(Op::Lui, 8, 0, 0, 0xabcd_e000_u32.cast_signed()),
            word(Op::Auipc, 9, 0, 0, -4096),
        ],
        0,
        0,
    );
    assert_eq!(core.regs[7], 0x1004);
    assert_eq!(core.regs[8], 0xabcd_e000);
    assert_eq!(core.regs[9], 12_u32.wrapping_sub(4096));
}

#[test]
fn multiply() {
    check_binary(Op::Mul, &[(7, 6, 42), (ONES, ONES, 1), (MIN, 2, 0), (0x1_0001, 0x1_0001, 0x2_0001)]);
    check_binary(
        Op::Mulh,
        &[(MIN, MIN, 0x4000_0000), (ONES, ONES, 0), (ONES, 1, ONES), (MAX, MAX, 0x3fff_ffff), (MIN, MAX, 0xc000_0000)],
    );
    check_binary(Op::Mulhu, &[(MIN, MIN, 0x4000_0000), (ONES, ONES, 0xffff_fffe), (ONES, 1, 0)]);
    check_binary(
        Op::Mulhsu,
        &[(MIN, MIN, 0xc000_0000), (ONES, ONES, ONES), (ONES, 1, ONES), (1, ONES, 0), (2, ONES, 1)],
    );
}

#[test]
fn divide() {
    let minus = |value: i32| (-value).cast_unsigned();
    check_binary(
        Op::Div,
        &[
            (7, 2, 3),
            (minus(7), 2, minus(3)),
            (7, minus(2), minus(3)),
            (MIN, ONES, MIN),
            (5, 0, ONES),
            (minus(5), 0, ONES),
            (MIN, 1, MIN),
        ],
    );
    check_binary(
        Op::Rem,
        &[
            (7, 2, 1),
            (minus(7), 2, minus(1)),
            (7, minus(2), 1),
            (MIN, ONES, 0),
            (5, 0, 5),
            (minus(5), 0, minus(5)),
            (MIN, 1, 0),
        ],
    );
    check_binary(Op::Divu, &[(7, 2, 3), (minus(7), 2, 0x7fff_fffc), (MIN, ONES, 0), (5, 0, ONES), (ONES, ONES, 1)]);
    check_binary(Op::Remu, &[(7, 2, 1), (minus(7), 2, 1), (MIN, ONES, MIN), (5, 0, 5), (ONES, ONES, 0)]);
}

#[test]
fn zba() {
    check_binary(Op::Sh1add, &[(3, 10, 16), (MIN, 1, 1)]);
    check_binary(Op::Sh2add, &[(3, 10, 22), (0x4000_0000, 1, 1), (ONES, 4, 0)]);
    check_binary(Op::Sh3add, &[(3, 10, 34), (0x2000_0000, 1, 1), (ONES, 8, 0)]);
}

#[test]
fn zbb_counts_and_extensions() {
    check_unary(Op::Clz, &[(0, 32), (1, 31), (MIN, 0), (0x0001_0000, 15)]);
    check_unary(Op::Ctz, &[(0, 32), (1, 0), (MIN, 31), (0x0001_0000, 16)]);
    check_unary(Op::Cpop, &[(0, 0), (ONES, 32), (0x8000_0001, 2), (0x5555_5555, 16)]);
    check_unary(Op::SextB, &[(0x80, 0xffff_ff80), (0x17f, 0x7f), (0xffff_ff00, 0)]);
    check_unary(Op::SextH, &[(0x8000, 0xffff_8000), (0x1_7fff, 0x7fff)]);
}

#[test]
fn zbkb() {
    let [low, high] = [0x1234_5678, 0x9abc_def0];
    check_binary(Op::Pack, &[(low, high, 0xdef0_5678), (ONES, 0, 0xffff), (0, ONES, 0xffff_0000)]);
    // `zext.h`
    check_binary(Op::Pack, &[(0xffff_8000, 0, 0x8000), (low, 0, 0x5678)]);
    check_unary(Op::Brev8, &[(0x0102_0480, 0x8040_2001), (low, 0x482c_6a1e), (ONES, ONES)]);
}

#[test]
fn zbb_bytes() {
    check_unary(Op::Rev8, &[(0x1234_5678, 0x7856_3412), (0xff, 0xff00_0000)]);
    check_unary(
        Op::OrcB,
        &[
            (0, 0),
            (ONES, ONES),
            (0x0001_0080, 0x00ff_00ff),
            (0x0100_8000, 0xff00_ff00),
            (0x0000_0001, 0x0000_00ff),
            (0x8000_0000, 0xff00_0000),
            (0x7f80_0010, 0xffff_00ff),
        ],
    );
}

#[test]
fn zbb_logic_and_rotates() {
    check_binary(Op::Andn, &[(0b1100, 0b1010, 0b0100)]);
    check_binary(Op::Orn, &[(0b1100, 0b1010, 0xffff_fffd)]);
    check_binary(Op::Xnor, &[(0b1100, 0b1010, 0xffff_fff9)]);
    check_binary(Op::Min, &[(ONES, 1, ONES), (1, ONES, ONES), (MIN, MAX, MIN), (3, 3, 3)]);
    check_binary(Op::Minu, &[(ONES, 1, 1), (MIN, MAX, MAX)]);
    check_binary(Op::Max, &[(ONES, 1, 1), (MIN, MAX, MAX), (3, 3, 3)]);
    check_binary(Op::Maxu, &[(ONES, 1, ONES), (MIN, MAX, MIN)]);
    check_binary(Op::Rol, &[(MIN, 1, 1), (0x1234_5678, 8, 0x3456_7812), (5, 32, 5)]);
    check_binary(Op::Ror, &[(1, 1, MIN), (0x1234_5678, 8, 0x7812_3456), (5, 32, 5), (6, 33, 3)]);
    check_immediate(Op::Rori, &[(1, 1, MIN), (0x1234_5678, 8, 0x7812_3456), (5, 0, 5)]);
}

#[test]
fn loads_extend_and_stores_truncate() {
    for base in [LOCAL_BASE + 64, 0x1000] {
        let code = [
            li(10, base).to_vec(),
            vec![
                word(Op::Sw, 0, 10, 5, 0),
                word(Op::Sb, 0, 10, 6, 3),
                word(Op::Sh, 0, 10, 6, 4),
                word(Op::Lb, 11, 10, 0, 0),
                word(Op::Lbu, 12, 10, 0, 0),
                word(Op::Lh, 13, 10, 0, 0),
                word(Op::Lhu, 14, 10, 0, 0),
                word(Op::Lw, 15, 10, 0, 0),
                word(Op::Lw, 16, 10, 0, 4),
                word(Op::Lb, 17, 10, 0, 3),
            ],
        ]
        .concat();
        let (core, _) = execute(&code, 0x8070_f0f1, 0xdead_9abc);
        assert_eq!(core.regs[11], 0xffff_fff1);
        assert_eq!(core.regs[12], 0xf1);
        assert_eq!(core.regs[13], 0xffff_f0f1);
        assert_eq!(core.regs[14], 0xf0f1);
        assert_eq!(core.regs[15], 0xbc70_f0f1);
        assert_eq!(core.regs[16], 0x9abc);
        assert_eq!(core.regs[17], 0xffff_ffbc);
    }
}

#[test]
fn atomics_return_the_old_word_and_write_the_new() {
    let cases = [
        (Op::AmoSwap, 5, 9, 9),
        (Op::AmoAdd, ONES, 2, 1),
        (Op::AmoXor, 0b1100, 0b1010, 0b0110),
        (Op::AmoAnd, 0b1100, 0b1010, 0b1000),
        (Op::AmoOr, 0b1100, 0b1010, 0b1110),
        (Op::AmoMin, ONES, 1, ONES),
        (Op::AmoMin, 3, MIN, MIN),
        (Op::AmoMax, ONES, 1, 1),
        (Op::AmoMax, MAX, MIN, MAX),
        (Op::AmoMinu, ONES, 1, 1),
        (Op::AmoMinu, 2, MIN, 2),
        (Op::AmoMaxu, ONES, 1, ONES),
        (Op::AmoMaxu, 2, MIN, MIN),
    ];
    for (op, old, operand, new) in cases {
        let code = [
            word(Op::Addi, 10, 0, 0, 0x400),
            word(Op::Sw, 0, 10, 5, 0),
            word(op, 7, 10, 6, 0),
            word(Op::Lw, 8, 10, 0, 0),
        ];
        let (core, bus) = execute(&code, old, operand);
        assert_eq!(core.regs[7], old, "{op:?} returns");
        assert_eq!(core.regs[8], new, "{op:?} {old:#x}, {operand:#x}");
        assert_eq!(bus.peek(0x400), new);
    }
}

#[test]
fn an_atomic_may_overwrite_its_own_operands() {
    let code = [word(Op::Addi, 10, 0, 0, 0x400), word(Op::Sw, 0, 10, 5, 0), word(Op::AmoAdd, 10, 10, 10, 0)];
    let (core, bus) = execute(&code, 7, 0);
    assert_eq!(core.regs[10], 7);
    assert_eq!(bus.peek(0x400), 0x407);
}

#[test]
fn branches_go_where_they_should() {
    let cases = [
        (Op::Beq, [(1, 1, true), (1, 2, false)]),
        (Op::Bne, [(1, 1, false), (1, 2, true)]),
        (Op::Blt, [(ONES, 1, true), (1, ONES, false)]),
        (Op::Bge, [(ONES, 1, false), (1, 1, true)]),
        (Op::Bltu, [(ONES, 1, false), (1, ONES, true)]),
        (Op::Bgeu, [(ONES, 1, true), (1, ONES, false)]),
    ];
    for (op, outcomes) in cases {
        for (a, b, taken) in outcomes {
            // Forward over one instruction, and backward by way of a jump.
            let forward = [word(op, 0, 5, 6, 8), word(Op::Addi, 7, 0, 0, 1)];
            assert_eq!(execute(&forward, a, b).0.regs[7], u32::from(!taken), "{op:?}");
            let backward = [
                word(Op::Jal, 0, 0, 0, 12),
                word(Op::Addi, 7, 0, 0, 1),
                word(Op::Jal, 0, 0, 0, 8),
                word(op, 0, 5, 6, -8),
            ];
            assert_eq!(execute(&backward, a, b).0.regs[7], u32::from(taken), "{op:?} back");
        }
    }
}

#[test]
fn calls_link_and_return_across_pages() {
    let mut bus = Toy::with_code(0, &[word(Op::Jal, 1, 0, 0, 0x1000), word(Op::Ebreak, 0, 0, 0, 0)]);
    bus.poke(0x1000, word(Op::Addi, 5, 1, 0, 0));
    bus.poke(0x1004, word(Op::Jalr, 1, 1, 0, 1)); // the low bit is dropped; rd = rs1
    let mut core = Core::new(HartKind::B);
    let exit = run(&mut core, &mut bus, 1000);
    assert_eq!(exit, Exit::Fault(CoreFault::Ebreak { pc: 4 }));
    assert_eq!((core.regs[5], core.regs[1]), (4, 0x1008));
}

#[test]
fn code_runs_on_into_the_next_page_and_sees_what_it_wrote() {
    // Two laps over an instruction of the next page; the first lap overwrites it.
    let patched = word(Op::Addi, 7, 7, 0, 100);
    let code = [
        li(5, patched).to_vec(),
        vec![word(Op::Addi, 10, 0, 0, 0x100), word(Op::Addi, 8, 8, 0, 1), word(Op::Jal, 0, 0, 0, 0xf0)],
    ]
    .concat();
    let mut bus = Toy::with_code(0, &code);
    let end = [
        word(Op::Addi, 7, 7, 0, 1),
        word(Op::Sw, 0, 10, 5, 0),
        word(Op::Addi, 9, 0, 0, 2),
        word(Op::Bne, 0, 8, 9, -0x100),
        word(Op::Ebreak, 0, 0, 0, 0),
    ];
    for (addr, word) in (0x100..).step_by(4).zip(end) {
        bus.poke(addr, word);
    }
    let mut core = Core::new(HartKind::B);
    assert_eq!(run(&mut core, &mut bus, 1000), Exit::Fault(CoreFault::Ebreak { pc: 0x110 }));
    assert_eq!(core.regs[7], 101);
}

#[test]
fn x0_stays_zero() {
    let code = [
        word(Op::Addi, 0, 5, 0, 1),
        word(Op::Lw, 0, 0, 0, 0),
        word(Op::Mul, 0, 5, 5, 0),
        word(Op::Jal, 0, 0, 0, 4),
        word(Op::Csrrs, 0, 0, 0, 0x301),
        word(Op::AmoAdd, 0, 0, 5, 0),
        word(Op::Add, 7, 0, 0, 0),
    ];
    let (core, _) = execute(&code, 77, 0);
    assert_eq!((core.regs[0], core.regs[7]), (0, 0));
}

#[test]
fn ttinsn_pushes_the_word_rotated_back() {
    let (_, bus) = execute(&[0x0800_0000, 0xffff_fffe, 0x0000_0001], 0, 0);
    assert_eq!(bus.pushed, [0x0200_0000, 0xbfff_ffff, 0x4000_0000]);
}

#[track_caller]
fn fault_of(code: &[u32], a: u32) -> CoreFault<Unmapped> {
    let mut bus = Toy::with_code(0, code);
    let mut core = Core::new(HartKind::T1);
    core.regs[5] = a;
    let Exit::Fault(first) = run(&mut core, &mut bus, 1000) else { panic!("no fault") };
    assert_eq!(run(&mut core, &mut bus, 1000), Exit::Fault(first.clone()), "faults repeat");
    assert_eq!(core.retired, 0, "a faulting instruction does not retire");
    first
}

#[test]
fn faults_are_named() {
    let word_access = Width::Word;
    assert_eq!(fault_of(&[0x0000_2007], 0), CoreFault::Illegal { pc: 0, word: 0x2007 });
    assert_eq!(fault_of(&[word(Op::Ecall, 0, 0, 0, 0)], 0), CoreFault::Ecall { pc: 0 });
    assert_eq!(
        fault_of(&[word(Op::Lw, 7, 5, 0, 1)], 0x1000),
        CoreFault::MisalignedAccess { pc: 0, addr: 0x1001, width: word_access }
    );
    assert_eq!(
        fault_of(&[word(Op::AmoAdd, 7, 5, 0, 0)], 0x1002),
        CoreFault::MisalignedAccess { pc: 0, addr: 0x1002, width: word_access }
    );
    assert_eq!(
        fault_of(&[word(Op::Sh, 0, 5, 0, 0)], 0x1001),
        CoreFault::MisalignedAccess { pc: 0, addr: 0x1001, width: Width::Half }
    );
    assert_eq!(fault_of(&[word(Op::Jal, 1, 0, 0, 6)], 0), CoreFault::MisalignedTarget { pc: 0, target: 6 });
    assert_eq!(fault_of(&[word(Op::Beq, 0, 0, 0, -2)], 0), CoreFault::MisalignedTarget { pc: 0, target: 0xffff_fffe });
    assert_eq!(fault_of(&[word(Op::Jalr, 1, 5, 0, 0)], 0x102), CoreFault::MisalignedTarget { pc: 0, target: 0x102 });
    assert_eq!(
        fault_of(&[word(Op::Lw, 7, 5, 0, 0)], 0x4000_0000),
        CoreFault::Bus { pc: 0, fault: Unmapped(0x4000_0000) }
    );
    assert_eq!(fault_of(&[word(Op::Csrrw, 7, 0, 0, 0x7ff)], 0), CoreFault::UnknownCsr { pc: 0, csr: 0x7ff });
    // A T core's stream status is the bus's, and this bus has none.
    assert_eq!(fault_of(&[word(Op::Csrrs, 7, 0, 0, 0xbc2)], 0), CoreFault::UnknownCsr { pc: 0, csr: 0xbc2 });
}

#[test]
fn leaving_memory_is_a_fetch_fault() {
    let code = [li(6, 0xffb0_0000).to_vec(), vec![word(Op::Jalr, 0, 6, 0, 0)]].concat();
    let mut bus = Toy::with_code(0, &code);
    let mut core = Core::new(HartKind::B);
    let exit = run(&mut core, &mut bus, 1000);
    let fault = Unmapped(0xffb0_0000);
    assert_eq!(exit, Exit::Fault(CoreFault::Fetch { pc: 0xffb0_0000, fault }));
}

#[test]
fn csrs_read_write_set_and_clear() {
    let code = [
        word(Op::Csrrs, 10, 0, 0, 0x7c0),              // cfg0 at reset
        word(Op::Csrrsi, 11, 0, 0, 0x7c0 | 0x8 << 12), // L0 off
        word(Op::Csrrc, 12, 5, 0, 0x7c0),              // clears what x5 has
        word(Op::Csrrw, 13, 6, 0, 0x7c0),
        word(Op::Csrrs, 14, 0, 0, 0x301),
        word(Op::Csrrw, 15, 6, 0, 0xf14), // read-only: ignored
        word(Op::Csrrs, 16, 0, 0, 0xf14),
        word(Op::Csrrwi, 0, 0, 0, 0xbc9 | 21 << 12), // scratch on B
        word(Op::Csrrci, 17, 0, 0, 0xbc9 | 1 << 12),
        word(Op::Csrrs, 18, 0, 0, 0xbc9),
        word(Op::Csrrs, 19, 0, 0, 0x300),
        word(Op::Csrrs, 20, 0, 0, 0xc22),
    ];
    let (core, _) = execute(&code, 16 << 13, 1 << 24);
    assert_eq!(core.regs[10], 16 << 13);
    assert_eq!(core.regs[11], 16 << 13);
    assert_eq!(core.regs[12], 16 << 13 | 8);
    assert_eq!(core.regs[13], 8);
    assert_eq!(core.regs[14], 0x4020_1123);
    assert_eq!((core.regs[15], core.regs[16]), (0, 0));
    assert_eq!((core.regs[17], core.regs[18]), (21, 20));
    assert_eq!((core.regs[19], core.regs[20]), (0x8000_6600, 16));
    assert!(core.csr.cfg0_dis_low_cache_periodic_flush());
    assert!(!core.csr.cfg0_dis_low_cache());
}

#[test]
fn counters_count_cycles_and_instructions() {
    let code = [
        word(Op::Addi, 7, 0, 0, 1),
        word(Op::Csrrs, 10, 0, 0, 0xc00),
        word(Op::Csrrs, 11, 0, 0, 0xb02),
        word(Op::Csrrw, 0, 5, 0, 0xb00),
        word(Op::Csrrw, 0, 6, 0, 0xb80),
        word(Op::Csrrs, 12, 0, 0, 0xc00),
        word(Op::Csrrs, 13, 0, 0, 0xc80),
    ];
    let (core, _) = execute(&code, 1000, 3);
    assert_eq!(core.regs[10], 1);
    assert_eq!(core.regs[11], 2);
    assert_eq!(core.regs[12], 1004, "two cycles a CSR instruction");
    assert_eq!(core.regs[13], 3);
}

#[test]
fn a_clock_register_reads_the_cycle() {
    let code = [li(10, CLOCK).to_vec(), vec![word(Op::Lw, 7, 10, 0, 0)]].concat();
    assert_eq!(execute(&code, 0, 0).0.regs[7], 2);
}

#[test]
fn faults_say_what_and_where() {
    let text = |fault: CoreFault<&str>| fault.to_string();
    let misaligned = CoreFault::MisalignedAccess { pc: 0x40, addr: 0x1001, width: Width::Half };
    assert_eq!(text(misaligned), "misaligned 2-byte access to 0x1001 at pc 0x40");
    let illegal = CoreFault::Illegal { pc: 0x40, word: 0x7 };
    assert_eq!(text(illegal), "illegal instruction 0x00000007 at pc 0x40");
    let bus = CoreFault::Bus { pc: 0x40, fault: "nothing at 0x4" };
    assert_eq!(text(bus), "at pc 0x40: nothing at 0x4");
}
