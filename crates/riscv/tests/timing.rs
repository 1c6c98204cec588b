//! Cycle counts of short sequences, against the numbers of `BabyRISCV/README.md` worked
//! out by hand.

mod common;

use common::{LOCAL_BASE, MAILBOX, Toy, run, word};
use tilework_riscv::{Core, CoreFault, Cycle, Exit, HartKind, Op};

/// The cycle at which an `ebreak` behind `code` would enter EX1. x5, x6 and x10 (local RAM) and x11
/// (L1) are set.
fn cycles(code: &[u32], a: u32, b: u32) -> Cycle {
    let mut code = code.to_vec();
    code.push(word(Op::Ebreak, 0, 0, 0, 0));
    let mut bus = Toy::with_code(0, &code);
    let mut core = Core::new(HartKind::B);
    core.reset(0, 0);
    [core.regs[5], core.regs[6], core.regs[10], core.regs[11]] = [a, b, LOCAL_BASE, 0x4000];
    let exit = run(&mut core, &mut bus, 1_000_000);
    assert!(matches!(exit, Exit::Fault(CoreFault::Ebreak { .. })), "{exit:?}");
    core.now
}

const NOP: (Op, u8, u8, u8, i32) = (Op::Addi, 0, 0, 0, 0);

fn nop() -> u32 {
    word(NOP.0, NOP.1, NOP.2, NOP.3, NOP.4)
}

#[test]
fn one_instruction_a_cycle() {
    assert_eq!(cycles(&[nop(); 7], 0, 0), 7);
}

#[test]
fn a_load_hides_behind_independent_instructions() {
    let consume = word(Op::Addi, 8, 7, 0, 0);
    for (base, latency) in [(10, 2), (11, 8)] {
        let load = word(Op::Lw, 7, base, 0, 0);
        for between in 0..10_u64 {
            let mut code = vec![load];
            code.extend(std::iter::repeat_n(nop(), between as usize));
            code.push(consume);
            assert_eq!(cycles(&code, 0, 0), latency.max(1 + between) + 1, "{between} between");
        }
    }
    // A hit in the L0, of the same line.
    let hit = [word(Op::Lw, 7, 11, 0, 0), word(Op::Lw, 8, 11, 0, 4), word(Op::Addi, 9, 8, 0, 0)];
    assert_eq!(cycles(&hit, 0, 0), 4);
}

#[test]
fn both_operands_and_store_data_are_waited_for() {
    let load = word(Op::Lw, 7, 11, 0, 0);
    assert_eq!(cycles(&[load, word(Op::Add, 8, 5, 7, 0)], 0, 0), 9);
    assert_eq!(cycles(&[load, word(Op::Sw, 0, 10, 7, 0)], 0, 0), 9);
    assert_eq!(cycles(&[load, word(Op::Beq, 0, 5, 7, 4)], 0, 0), 9 + 4);
}

#[test]
fn multiply_takes_two_cycles_to_a_consumer_and_one_to_others() {
    let mul = word(Op::Mul, 7, 5, 6, 0);
    assert_eq!(cycles(&[mul, nop()], 3, 4), 2);
    assert_eq!(cycles(&[mul, word(Op::Addi, 8, 7, 0, 0)], 3, 4), 3);
}

#[test]
fn divide_holds_ex1() {
    let div = [word(Op::Div, 7, 5, 6, 0)];
    let divu = [word(Op::Divu, 7, 5, 6, 0)];
    let minus_one = u32::MAX;
    let cases = [(100, 0, 2), (100, 1, 2), (0, 7, 6), (31, 7, 6), (32, 7, 7), (0x7fff_ffff, 7, 32)];
    for (a, b, expected) in cases {
        assert_eq!(cycles(&div, a, b), expected, "{a} / {b}");
        assert_eq!(cycles(&divu, a, b), expected, "{a} / {b} unsigned");
    }
    assert_eq!(cycles(&div, 0x8000_0000, minus_one), 2);
    assert_eq!(cycles(&div, minus_one, 7), 6, "the magnitude of -1 is one");
    assert_eq!(cycles(&divu, minus_one, 7), 33);
    assert_eq!(cycles(&div, 0x8000_0000, 3), 33);
}

#[test]
fn mispredicted_branches_cost_four_more() {
    let forward = |op| [word(op, 0, 5, 6, 8), nop()];
    assert_eq!(cycles(&forward(Op::Bne), 1, 1), 2, "forward, not taken");
    assert_eq!(cycles(&forward(Op::Beq), 1, 1), 5, "forward, taken");
    // addi x5, x5, -1; bne x5, x0, -4: four laps, the last one falls through.
    let count = [word(Op::Addi, 5, 5, 0, -1), word(Op::Bne, 0, 5, 0, -4)];
    assert_eq!(cycles(&count, 4, 0), 8 + 4);
    assert_eq!(cycles(&[word(Op::Jal, 1, 0, 0, 4)], 0, 0), 1);
    let back = [word(Op::Jal, 1, 0, 0, 8), word(Op::Jal, 0, 0, 0, 8), word(Op::Jalr, 0, 1, 0, 0)];
    assert_eq!(cycles(&back, 0, 0), 3, "call, return, jump");
    assert_eq!(cycles(&[word(Op::Jalr, 0, 5, 0, 0), nop()], 8, 0), 5, "indirect");
}

#[test]
fn without_the_predictor_every_taken_transfer_costs_four_more() {
    // cfg0.DisBp is bit 1; the CSR instruction takes two cycles.
    let off = word(Op::Csrrsi, 0, 0, 0, 0x7c0 | 2 << 12);
    assert_eq!(cycles(&[off, word(Op::Jal, 1, 0, 0, 4)], 0, 0), 2 + 5);
    let count = [off, word(Op::Addi, 5, 5, 0, -1), word(Op::Bne, 0, 5, 0, -4)];
    assert_eq!(cycles(&count, 4, 0), 2 + 8 + 3 * 4);
}

#[test]
fn fences_wait_for_loads_and_stores() {
    let fence = word(Op::Fence, 0, 0, 0, 0xff);
    assert_eq!(cycles(&[fence], 0, 0), 2);
    assert_eq!(cycles(&[word(Op::Lw, 7, 11, 0, 0), fence], 0, 0), 8 + 2);
    // The toy's store queue drains five cycles after the store.
    assert_eq!(cycles(&[word(Op::Sw, 0, 11, 5, 0), fence], 0, 0), 5 + 2);
}

#[test]
fn atomics_wait_for_loads_and_take_twelve() {
    let amo = word(Op::AmoAdd, 7, 11, 5, 0);
    assert_eq!(cycles(&[amo], 0, 0), 1);
    assert_eq!(cycles(&[amo, word(Op::Addi, 8, 7, 0, 0)], 0, 0), 13);
    assert_eq!(cycles(&[word(Op::Lw, 8, 11, 0, 0), amo], 0, 0), 8 + 1);
}

#[test]
fn csr_instructions_retire_before_the_next_enters() {
    let csr = word(Op::Csrrs, 7, 0, 0, 0x7c3);
    assert_eq!(cycles(&[csr, csr], 0, 0), 4);
    assert_eq!(cycles(&[word(Op::Lw, 8, 11, 0, 0), csr], 0, 0), 8 + 2);
    // cfg0.DisCsrSync is bit 10.
    let off = word(Op::Csrrs, 0, 5, 0, 0x7c0);
    assert_eq!(cycles(&[off, csr, csr], 1 << 10, 0), 2 + 2);
}

#[test]
fn no_access_happens_at_or_after_the_limit() {
    // The store waits for the load until cycle 8.
    let code = [word(Op::Lw, 7, 11, 0, 0), word(Op::Sw, 0, 11, 7, 64), nop()];
    for limit in 1..=8 {
        let mut bus = Toy::with_code(0, &code);
        bus.poke(0x4000, 99);
        let mut core = Core::new(HartKind::B);
        core.regs[11] = 0x4000;
        assert_eq!(core.run(&mut bus, limit), Exit::Limit);
        assert_eq!(bus.peek(0x4040), 0, "limit {limit}");
        assert_eq!(core.pc, 4);
        assert_eq!(core.run(&mut bus, 9), Exit::Limit);
        assert_eq!((bus.peek(0x4040), core.now), (99, 9));
    }
}

#[test]
fn a_blocked_load_happens_at_the_cycle_of_the_wake() {
    // The address of the mailbox comes out of memory at cycle 8.
    let code =
        [word(Op::Lw, 7, 11, 0, 0), word(Op::Lw, 8, 7, 0, 0), word(Op::Addi, 9, 8, 0, 1), word(Op::Ebreak, 0, 0, 0, 0)];
    let mut bus = Toy::with_code(0, &code);
    bus.poke(0x4000, MAILBOX);
    let mut core = Core::new(HartKind::B);
    core.regs[11] = 0x4000;
    for _ in 0..2 {
        assert_eq!(core.run(&mut bus, 1000), Exit::Blocked { addr: MAILBOX });
        assert_eq!((core.now, core.pc, core.retired), (8, 4, 1));
    }
    bus.mail = Some(41);
    core.wake(100);
    assert_eq!(core.run(&mut bus, 1000), Exit::Fault(CoreFault::Ebreak { pc: 12 }));
    assert_eq!((core.regs[9], core.now), (42, 104));
}

#[test]
fn a_sync_leaves_the_core_at_the_cycle_of_the_access() {
    let code = [word(Op::Lw, 7, 10, 0, 0), word(Op::Add, 11, 11, 7, 0), word(Op::Lw, 8, 11, 0, 0)];
    let mut bus = Toy::with_code(0, &code);
    bus.sync_loads = true;
    let mut core = Core::new(HartKind::B);
    [core.regs[10], core.regs[11]] = [LOCAL_BASE, 0x4000];
    assert_eq!(core.run(&mut bus, 1000), Exit::Sync);
    assert_eq!((core.now, core.pc, core.retired), (3, 8, 2));
    assert_eq!(core.run(&mut bus, 4), Exit::Limit);
    assert_eq!((core.now, core.pc, core.retired), (4, 12, 3));
}
