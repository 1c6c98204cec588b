//! Cores and the coprocessor together: who waits for whom, in which cycle, and that neither sleep
//! nor windows change any of it.

use super::tests::{insn, li, load_program, release, run, tile, word};
use super::*;
use crate::noc::Dest;
use proptest::prelude::*;
use tilework_riscv::Op;

const NOP: u32 = 0x0200_0000;
/// Where each core's program and log are, by [`Processor::index`].
const PROGRAMS: [u32; 5] = [0, 0x1_2000, 0x6000, 0xA000, 0xE000];
const LOGS: i32 = 0x10_0000;
const LOG_BYTES: i32 = 0x400;
/// Flags in L1 that cores and threads write and poll.
const FLAGS: i32 = 0x4000;

/// Something a core's program does.
#[derive(Clone, Copy, Debug)]
enum Act {
    /// `.ttinsn`.
    Push(u32),
    /// A store to the thread's instruction buffer.
    PushByStore(u32),
    /// BRISC pushes into this thread.
    PushFromB(u8, u32),
    /// Polls a semaphore until it is not zero.
    PollSemaphore(u8),
    /// Polls a flag until it is not zero.
    PollFlag(u8),
    /// Polls one of the thread's GPRs until it is not zero.
    PollGpr(u8),
    /// Waits until the thread has drained.
    Sync,
    /// Posts (false) or gets (true) a semaphore.
    Semaphore(u8, bool),
    SetFlag(u8, i8),
    /// Sends to one of B, T0, T1, T2, or receives from it.
    Send(u8),
    Receive(u8),
    Delay(u8),
}

/// The program: the acts, each but pushes followed by the wall clock in the log, and a loop without
/// end.
fn program(core: Processor, acts: &[Act]) -> Vec<u32> {
    let mut p = Vec::new();
    p.extend(li(8, map::WALL_CLOCK_L.cast_signed()));
    p.extend(li(9, LOGS + core.index() as i32 * LOG_BYTES));
    p.extend(li(10, map::PC_BUF_BASE.cast_signed()));
    p.extend(li(11, FLAGS));
    p.extend(li(12, map::GPR_BASE.cast_signed()));
    p.extend(li(13, map::MAILBOX_BASE.cast_signed()));
    p.extend(li(15, map::INSTRN_BUF_BASE.cast_signed()));
    let poll = |base: u8, offset: i32| {
        [insn(Op::Fence, 0, 0, 0, 0), insn(Op::Lw, 5, base, 0, offset), insn(Op::Beq, 0, 5, 0, -8)]
    };
    for act in acts {
        match *act {
            Act::Push(word) => p.push(word.rotate_left(2)),
            Act::PushByStore(word) => {
                p.extend(li(5, word.cast_signed()));
                p.push(insn(Op::Sw, 0, 15, 5, 0));
            }
            Act::PushFromB(thread, word) => {
                p.extend(li(5, word.cast_signed()));
                p.extend(li(6, (map::INSTRN_BUF_BASE + 0x1_0000 * u32::from(thread)).cast_signed()));
                p.push(insn(Op::Sw, 0, 6, 5, 0));
            }
            Act::PollSemaphore(i) => p.extend(poll(10, 0x20 + 4 * i32::from(i))),
            Act::PollFlag(i) => p.extend(poll(11, 16 * i32::from(i))),
            Act::PollGpr(i) => p.extend(poll(12, 4 * i32::from(i))),
            Act::Sync => {
                p.push(insn(Op::Sw, 0, 10, 0, 4));
                p.push(insn(Op::Lw, 5, 10, 0, 4));
                p.push(insn(Op::Addi, 5, 5, 0, 0));
            }
            Act::Semaphore(i, get) => {
                p.push(insn(Op::Addi, 5, 0, 0, get.into()));
                p.push(insn(Op::Sw, 0, 10, 5, 0x20 + 4 * i32::from(i)));
            }
            Act::SetFlag(i, value) => {
                p.push(insn(Op::Addi, 5, 0, 0, value.into()));
                p.push(insn(Op::Sw, 0, 11, 5, 16 * i32::from(i)));
            }
            Act::Send(to) => {
                p.extend(li(6, 0x1000 * i32::from(to)));
                p.push(insn(Op::Add, 6, 6, 13, 0));
                p.push(insn(Op::Sw, 0, 6, 6, 0));
            }
            Act::Receive(from) => {
                p.extend(li(6, 0x1000 * i32::from(from)));
                p.push(insn(Op::Add, 6, 6, 13, 0));
                p.push(insn(Op::Lw, 5, 6, 0, 0));
                p.push(insn(Op::Addi, 5, 5, 0, 0));
            }
            Act::Delay(n) => {
                p.push(insn(Op::Addi, 5, 0, 0, i32::from(n) + 1));
                p.push(insn(Op::Addi, 5, 5, 0, -1));
                p.push(insn(Op::Bne, 0, 5, 0, -4));
            }
        }
        if !matches!(act, Act::Push(_)) {
            p.push(insn(Op::Lw, 14, 8, 0, 0));
            p.push(insn(Op::Sw, 0, 9, 14, 0));
            p.push(insn(Op::Addi, 9, 9, 0, 4));
        }
    }
    p.push(insn(Op::Jal, 0, 0, 0, 0));
    p
}

/// What one run came to: L1 (with the cores' logs), the semaphores, the coprocessor's count.
#[derive(PartialEq)]
struct Outcome {
    l1: Vec<u8>,
    semaphores: Vec<Option<u32>>,
    tensix: u64,
}

fn outcome(programs: &[(Processor, Vec<Act>)], parking: bool, step: Cycle, cycles: Cycle) -> Outcome {
    let mut tile = tile(parking);
    for (core, acts) in programs {
        load_program(&mut tile, PROGRAMS[core.index()], &program(*core, acts));
    }
    let cores: Vec<Processor> = programs.iter().map(|(core, _)| *core).collect();
    release(&mut tile, &cores, 5);
    let mut until = 0;
    while until < cycles {
        until += step;
        run(&mut tile, until.min(cycles));
    }
    let semaphores = (0..8).map(|i| tile.shared.tensix.peek(Processor::Trisc0, map::PC_BUF_BASE + 0x20 + 4 * i));
    Outcome { semaphores: semaphores.collect(), tensix: tile.stats().tensix, l1: tile.l1().to_vec() }
}

fn log(outcome: &Outcome, core: Processor) -> Vec<u32> {
    let at = (LOGS + core.index() as i32 * LOG_BYTES) as usize;
    let words = outcome.l1[at..at + LOG_BYTES as usize].chunks_exact(4);
    words.map(|w| u32::from_le_bytes(w.try_into().expect("4 bytes"))).take_while(|&w| w != 0).collect()
}

/// GPR 1 names the flags, GPR 2 is one; the mover's operands copy the first flag's block to the
/// fourth.
fn set_up(thread: u32) -> Vec<Act> {
    let half = |half: u32, value: u32| Act::Push(0x4500_0000 | value << 8 | half);
    let cfg = |gpr: u32, index: u32| Act::Push(0xB000_0000 | gpr << 16 | index);
    let flags = FLAGS as u32 >> 4;
    // Semaphores start at two of four, so that not everybody waits at once.
    let semaphores = if thread == 0 { 0xA300_0000 | 4 << 20 | 2 << 16 | 0xF << 2 } else { NOP };
    vec![
        Act::Push(semaphores),
        half(2, flags),
        half(4, 1),
        half(6, flags + 3),
        half(8, 1),
        half(9, 0xC000),
        cfg(1, 88),
        cfg(3, 89),
        cfg(4, 90),
        Act::Push(0xB200_0000 | thread << 16),
        Act::Push(0x0400_0000 | 2 << 4 | 3),
        Act::Push(NOP),
        Act::Push(0xA400_0000 | 4),
    ]
}

fn any_word() -> impl Strategy<Value = u32> {
    let mask = 0u32..4;
    prop_oneof![
        Just(NOP),
        Just(0x6000_0000),
        Just(0x1018_0000),
        mask.clone().prop_map(|i| 0xA400_0000 | 4 << i),
        mask.clone().prop_map(|i| 0xA500_0000 | 4 << i),
        (0u32..0x200, mask.clone(), 1u32..3).prop_map(|(b, i, c)| 0xA600_0000 | b << 15 | 4 << i | c),
        (0u32..0x200, 0u32..0x2000).prop_map(|(b, c)| 0xA200_0000 | b << 15 | c & !(1 << 7 | 1 << 8)),
        Just(0xA000_0002),
        Just(0xA100_0002),
        // ATINCGET of flag 0, STOREIND of one word to it, LOADIND of it, ATCAS of flag 1 from 1 to
        // 0.
        Just(0x6100_0000 | 31 << 14 | 2 << 6 | 1),
        Just(0x6680_0000 | 1 << 21 | 20 << 14 | 2 << 6 | 1),
        Just(0x4900_0000 | 1 << 22 | 20 << 14 | 11 << 6 | 1),
        Just(0x6400_0000 | 1 << 14 | 1),
        Just(0x5880_0000 | 12 << 12 | 1 << 6 | 12),
        Just(0x4000_0000),
        Just(0xB100_0000 | 13 << 16 | 88),
        Just(0xB300_0000 | 0xFF << 16 | 7 << 8 | 100),
    ]
}

fn any_act() -> impl Strategy<Value = Act> {
    prop_oneof![
        12 => any_word().prop_map(Act::Push),
        3 => any_word().prop_map(Act::PushByStore),
        1 => (0u8..4).prop_map(Act::PollSemaphore),
        1 => (0u8..4).prop_map(Act::PollFlag),
        1 => (11u8..14).prop_map(Act::PollGpr),
        1 => Just(Act::Sync),
        3 => (0u8..4, any::<bool>()).prop_map(|(i, get)| Act::Semaphore(i, get)),
        3 => (0u8..4, 0i8..3).prop_map(|(i, v)| Act::SetFlag(i, v)),
        2 => (0u8..4).prop_map(Act::Send),
        1 => (0u8..4).prop_map(Act::Receive),
        2 => any::<u8>().prop_map(Act::Delay),
    ]
}

fn any_act_of_b() -> impl Strategy<Value = Act> {
    prop_oneof![
        3 => (0u8..3, any_word()).prop_map(|(t, w)| Act::PushFromB(t, w)),
        1 => (0u8..4).prop_map(Act::PollFlag),
        2 => (0u8..4, 0i8..3).prop_map(|(i, v)| Act::SetFlag(i, v)),
        1 => (0u8..4).prop_map(Act::Send),
        1 => (0u8..4).prop_map(Act::Receive),
        2 => any::<u8>().prop_map(Act::Delay),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    #[test]
    fn neither_sleep_nor_windows_change_what_cores_and_threads_do(
        t in prop::collection::vec(prop::collection::vec(any_act(), 0..60), 3),
        b in prop::collection::vec(any_act_of_b(), 0..12),
    ) {
        const CYCLES: Cycle = 6000;
        let mut programs = vec![(Processor::Brisc, b)];
        let cores = [Processor::Trisc0, Processor::Trisc1, Processor::Trisc2];
        for ((thread, core), acts) in (0..).zip(cores).zip(t) {
            programs.push((core, set_up(thread).into_iter().chain(acts).collect()));
        }
        let whole = outcome(&programs, true, CYCLES, CYCLES);
        for (parking, step) in [(true, 1), (false, CYCLES), (false, 13), (true, 37)] {
            let other = outcome(&programs, parking, step, CYCLES);
            for core in Processor::ALL {
                prop_assert_eq!(log(&whole, core), log(&other, core), "{} with parking {} in steps of {}", core, parking, step);
            }
            prop_assert!(whole == other, "parking {} in steps of {}", parking, step);
        }
    }
}

#[test]
fn a_core_that_sleeps_on_a_semaphore_wakes_in_the_cycle_after_the_thread_s_post() {
    let programs = [
        (Processor::Trisc0, vec![Act::PollSemaphore(2), Act::SetFlag(0, 1)]),
        (Processor::Trisc1, vec![Act::Delay(200), Act::Push(0xA400_0000 | 4 << 2)]),
    ];
    let sleeping = outcome(&programs, true, 4000, 4000);
    let polling = outcome(&programs, false, 4000, 4000);
    assert_eq!(log(&sleeping, Processor::Trisc0), log(&polling, Processor::Trisc0));
    assert_eq!(log(&sleeping, Processor::Trisc0).len(), 2, "it was woken");
}

#[test]
fn a_full_front_end_blocks_the_core_until_the_gate_lets_something_pass() {
    let mut acts = vec![Act::Push(0xA600_0000 | 0x1FF << 15 | 4 | 1)];
    acts.extend([Act::PushByStore(NOP); 60]);
    let other = vec![Act::Delay(255), Act::Delay(255), Act::Semaphore(0, false)];
    let result = outcome(&[(Processor::Trisc0, acts), (Processor::Trisc1, other)], true, 4000, 4000);
    let (pushes, posts) = (log(&result, Processor::Trisc0), log(&result, Processor::Trisc1));
    assert_eq!((pushes.len(), result.tensix), (60, 61));
    let before = pushes.iter().filter(|&&at| at < posts[2]).count();
    assert_eq!(before, 29, "they fit behind the wait, which has passed");
    assert!(pushes[before] < posts[2] + 20);
}

#[test]
fn a_core_can_run_code_that_the_coprocessor_wrote() {
    let mut t = tile(true);
    // BRISC runs the word at 0x4010 once, waits for flag 0, and runs it again; thread 0 replaces it
    // by STOREIND before.
    let mut p = Vec::new();
    p.extend(li(10, FLAGS));
    p.push(insn(Op::Jal, 1, 0, 0, 0x4010 - 8));
    p.extend([insn(Op::Fence, 0, 0, 0, 0), insn(Op::Lw, 5, 10, 0, 0), insn(Op::Beq, 0, 5, 0, -8)]);
    p.push(insn(Op::Jal, 1, 0, 0, 0x4010 - 24));
    p.push(insn(Op::Sw, 0, 10, 13, 0x40));
    p.push(insn(Op::Jal, 0, 0, 0, 0));
    load_program(&mut t, 0, &p);
    load_program(&mut t, 0x4010, &[insn(Op::Addi, 13, 0, 0, 1), insn(Op::Jalr, 0, 1, 0, 0)]);
    let new = insn(Op::Addi, 13, 0, 0, 42);
    let half = |half: u32, value: u32| Act::Push(0x4500_0000 | (value & 0xFFFF) << 8 | half);
    let store = |addr: u32| Act::Push(0x6680_0000 | 1 << 21 | 20 << 14 | 2 << 6 | addr);
    let acts = [
        Act::Delay(100),
        half(2, FLAGS as u32 / 16 + 1),
        half(6, FLAGS as u32 / 16),
        half(4, new),
        half(5, new >> 16),
        store(1),
        store(3),
    ];
    load_program(&mut t, PROGRAMS[2], &program(Processor::Trisc0, &acts));
    release(&mut t, &[Processor::Brisc, Processor::Trisc0], 5);
    run(&mut t, 3000);
    assert_eq!(word(&t, FLAGS + 0x40), 42);
}

#[test]
fn reports_say_what_a_thread_waits_for() {
    let mut t = tile(true);
    let acts = [Act::Push(0xA600_0000 | 0x1FF << 15 | 4 << 3 | 1), Act::Push(NOP), Act::Sync];
    load_program(&mut t, PROGRAMS[3], &program(Processor::Trisc1, &acts));
    release(&mut t, &[Processor::Trisc1], 5);
    run(&mut t, 3000);
    let waiting = t.waiting();
    assert_eq!(waiting[0].blocked_on, Some(map::PC_BUF_BASE + 4));
    assert_eq!(
        waiting[0].coprocessor,
        ["Tensix thread T1: NOP (0x02000000) waits for semaphore 3 (SEMWAIT 0xa6ff8021)"]
    );
}

/// A packet of NoC 0 that writes (some) or reads one register.
fn register(tile: &mut Tile, at: Cycle, addr: u32, value: u32) {
    let data = Arc::from(value.to_le_bytes());
    let body = Body::WriteRequest { addr: addr.into(), data, mask: None, reply: None };
    let place = Place { node: 0, x: 1, y: 2 };
    tile.deliver(at, Packet { noc: 0, from: place, to: Dest::Unicast(place), body });
}

#[test]
fn a_debugger_pushes_instructions_and_reads_configuration_over_the_noc() {
    let mut t = tile(true);
    // The debug bus takes thread 1 and pushes RMWCIB0 0x5A to register 70 by a rising edge of bit
    // 5, and again.
    register(&mut t, 100, 0xFFB1_20A4, 0xB300_0000 | 0xFF << 16 | 0x5A << 8 | 70);
    for (at, value) in [(110, 0x22), (120, 0x22), (130, 0x02), (140, 0x22)] {
        register(&mut t, at, 0xFFB1_20A0, value);
    }
    register(&mut t, 200, 0xFFB1_2058, 70);
    run(&mut t, 300);
    assert_eq!(t.stats().tensix, 2, "one for each rising edge");
    let read =
        |t: &mut Tile, addr| t.reach().load(None, 300, addr, tilework_riscv::Width::Word).expect("it is there").value;
    assert_eq!((read(&mut t, 0xFFB1_2078), read(&mut t, 0xFFB1_20A8)), (0x5A, 0x77));
}

#[test]
fn the_coprocessor_reaches_every_register_without_a_panic() {
    // LOADREG and STOREREG of whatever the tile maps: an answer or a fault. (A zero in the soft
    // reset register lets the cores run.)
    let ranges = (0xFFB1_2000..0xFFB1_3200u32).chain(0xFFB2_0000..0xFFB2_0200).chain(0xFFB4_0000..0xFFB4_0800);
    let mut t = tile(true);
    let (mut at, mut passed) = (0, 0);
    for addr in ranges.step_by(4).filter(|&addr| addr != map::SOFT_RESET_0) {
        for opcode in [0x68, 0x67] {
            let word = opcode << 24 | 1 << 18 | (addr >> 2 & 0x3_FFFF);
            assert_eq!(t.shared.tensix.push(Processor::Trisc0, 0, word, at), Ok(true));
            at += 100;
            passed += 1;
            match t.run(at, &mut Outbox::default()) {
                Ok(()) => assert_eq!(t.stats().tensix, passed, "{addr:#x}"),
                Err(fault) => {
                    assert_eq!(fault.site.core, Some(Processor::Trisc0), "{fault}");
                    (t, at, passed) = (tile(true), 0, 0);
                }
            }
        }
    }
}
