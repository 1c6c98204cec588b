//! Cores and the coprocessor together: who waits for whom, in which cycle, and that neither sleep
//! nor windows change any of it.

use super::tests::{insn, li, load_program, release, run, tile, word};
use super::*;
use crate::noc::Dest;
use crate::probe::RequestId;
use proptest::prelude::*;
use tilework_abi::address_map::THREAD_STRIDE;
use tilework_abi::tensix::insn::*;
use tilework_abi::{noc, stream};
use tilework_riscv::Op;

const NOP: u32 = Nop::build().word();
/// Where each core's program and log are, by [`Processor::index`].
const PROGRAMS: [u32; 5] = [0, 0x1_2000, 0x6000, 0xA000, 0xE000];
const LOGS: i32 = 0x10_0000;
const LOG_BYTES: i32 = 0x400;
/// Flags in L1 that cores and threads write and poll.
const FLAGS: i32 = 0x4000;

/// The block mask of a wait that lets nothing pass.
const ALL_BLOCKED: u32 = BLOCK_ALL as u32;

fn setdmareg(half: u32, value: u32) -> u32 {
    Setdmareg::build().new_value(value).result_half_reg(half).word()
}
fn sempost(semaphore: u32) -> u32 {
    Sempost::build().semaphore_mask(1 << semaphore).word()
}
fn semwait(block: u32, semaphore: u32, condition: u32) -> u32 {
    Semwait::build().block_mask(block).semaphore_mask(1 << semaphore).condition_mask(condition).word()
}
fn stallwait(block: u32, conditions: u32) -> u32 {
    Stallwait::build().block_mask(block).condition_mask(conditions).word()
}
/// Stores GPR 2, one word, to where GPR `addr` points.
fn storeind(addr: u32) -> u32 {
    Storeind::build().to_l1(true).size(1).offset_half_reg(20).data_reg(2).addr_reg(addr).word()
}
/// Sets the low byte of a configuration register.
fn rmwcib0(value: u32, index: u32) -> u32 {
    Rmwcib0::build().mask(0xFF).new_value(value).index4(index).word()
}

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
    /// Polls a flag until it is not zero, and stores in each iteration: to L1 or to local RAM, a
    /// count or always the same.
    PollFlagAndStore {
        flag: u8,
        to_l1: bool,
        counts: bool,
    },
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

/// The program: the acts, each but pushes followed by the wall clock in the log, and an
/// endless loop.
fn program(core: Processor, acts: &[Act]) -> Vec<u32> {
    let mut p = Vec::new();
    p.extend(li(8, map::WALL_CLOCK_L.cast_signed()));
    p.extend(li(9, LOGS + core.index() as i32 * LOG_BYTES));
    p.extend(li(10, map::PC_BUF_BASE.cast_signed()));
    p.extend(li(11, FLAGS));
    p.extend(li(12, map::GPR_BASE.cast_signed()));
    p.extend(li(13, map::MAILBOX_BASE.cast_signed()));
    p.extend(li(15, map::INSTRN_BUF_BASE.cast_signed()));
    for act in acts {
        code(&mut p, act);
        if !matches!(act, Act::Push(_)) {
            p.push(insn(Op::Lw, 14, 8, 0, 0));
            p.push(insn(Op::Sw, 0, 9, 14, 0));
            p.push(insn(Op::Addi, 9, 9, 0, 4));
        }
    }
    p.push(insn(Op::Jal, 0, 0, 0, 0));
    p
}

/// Appends the instructions of one act; x8 to x15 hold what [`program`] has put there.
fn code(p: &mut Vec<u32>, act: &Act) {
    let poll = |base: u8, offset: i32| {
        [insn(Op::Fence, 0, 0, 0, 0), insn(Op::Lw, 5, base, 0, offset), insn(Op::Beq, 0, 5, 0, -8)]
    };
    match *act {
        Act::Push(word) => p.push(word.rotate_left(2)),
        Act::PushByStore(word) => {
            p.extend(li(5, word.cast_signed()));
            p.push(insn(Op::Sw, 0, 15, 5, 0));
        }
        Act::PushFromB(thread, word) => {
            p.extend(li(5, word.cast_signed()));
            p.extend(li(6, (map::INSTRN_BUF_BASE + THREAD_STRIDE * u32::from(thread)).cast_signed()));
            p.push(insn(Op::Sw, 0, 6, 5, 0));
        }
        Act::PollSemaphore(i) => p.extend(poll(10, 0x20 + 4 * i32::from(i))),
        Act::PollFlag(i) => p.extend(poll(11, 16 * i32::from(i))),
        Act::PollFlagAndStore { flag, to_l1, counts } => {
            // In memory alone, so that the registers are the same in each iteration.
            p.extend(li(6, if to_l1 { FLAGS + 16 * 15 } else { map::LOCAL_BASE.cast_signed() + 64 }));
            p.push(insn(Op::Lw, 5, 6, 0, 0));
            p.push(insn(Op::Addi, 5, 5, 0, counts.into()));
            p.push(insn(Op::Sw, 0, 6, 5, 0));
            p.extend(poll(11, 16 * i32::from(flag)));
            *p.last_mut().expect("the branch") = insn(Op::Beq, 0, 5, 0, -20);
            p.push(insn(Op::Lw, 5, 6, 0, 0));
            p.push(insn(Op::Addi, 5, 5, 0, 1));
            p.push(insn(Op::Sw, 0, 9, 5, 0));
            p.push(insn(Op::Addi, 9, 9, 0, 4));
        }
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
}

/// The result of one run: L1 (with the cores' logs), the semaphores, the coprocessor's count.
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
    let half = |half: u32, value: u32| Act::Push(setdmareg(half, value));
    let cfg = |gpr: u32, index: u32| Act::Push(Wrcfg::build().input_reg(gpr).cfg_index(index).word());
    let flags = FLAGS as u32 >> 4;
    // Semaphores start at two of four, so that not everybody waits at once.
    let semaphores = Seminit::build().new_max(4).new_value(2).semaphore_mask(0xF).word();
    let semaphores = if thread == 0 { semaphores } else { NOP };
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
        Act::Push(Setc16::build().cfg_index(thread).word()),
        Act::Push(Replay::build().count(2).exec(true).load(true).word()),
        Act::Push(NOP),
        Act::Push(sempost(0)),
    ]
}

fn any_word() -> impl Strategy<Value = u32> {
    let mask = 0u32..4;
    prop_oneof![
        Just(NOP),
        Just(Dmanop::build().word()),
        Just(Zeroacc::build().mode(3).word()),
        mask.clone().prop_map(sempost),
        mask.clone().prop_map(|i| Semget::build().semaphore_mask(1 << i).word()),
        (0u32..0x200, mask.clone(), 1u32..3).prop_map(|(block, i, condition)| semwait(block, i, condition)),
        (0u32..0x200, 0u32..0x2000).prop_map(|(block, conditions)| stallwait(block, conditions & !(1 << 7 | 1 << 8))),
        Just(Atgetm::build().index(2).word()),
        Just(Atrelm::build().index(2).word()),
        // ATINCGET of flag 0, STOREIND of one word to it, LOADIND of it, ATCAS of flag 1 from 1 to
        // 0.
        Just(Atincget::build().int_width(31).in_out_reg(2).addr_reg(1).word()),
        Just(storeind(1)),
        Just(Loadind::build().size(1).offset_half_reg(20).result_reg(11).addr_reg(1).word()),
        Just(Atcas::build().cmp_val(1).addr_reg(1).word()),
        Just(Adddmareg::build().right_is_imm(true).result_reg(12).right_imm6(1).left_reg(12).word()),
        Just(Xmov::build().word()),
        Just(Rdcfg::build().result_reg(13).cfg_index(88).word()),
        Just(rmwcib0(7, 100)),
    ]
}

fn any_act() -> impl Strategy<Value = Act> {
    prop_oneof![
        12 => any_word().prop_map(Act::Push),
        3 => any_word().prop_map(Act::PushByStore),
        1 => (0u8..4).prop_map(Act::PollSemaphore),
        1 => (0u8..4).prop_map(Act::PollFlag),
        1 => (0u8..4, any::<bool>(), any::<bool>())
            .prop_map(|(flag, to_l1, counts)| Act::PollFlagAndStore { flag, to_l1, counts }),
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

/// What the cores have done whenever a multiple of `each` cycles is over, in steps of `step`.
fn views(
    programs: &[(Processor, Vec<u32>)],
    step: Cycle,
    each: Cycle,
    cycles: Cycle,
) -> Vec<Vec<(u32, Activity, u64)>> {
    let mut tile = tile(true);
    programs.iter().for_each(|(core, words)| load_program(&mut tile, PROGRAMS[core.index()], words));
    let cores: Vec<Processor> = programs.iter().map(|(core, _)| *core).collect();
    release(&mut tile, &cores, 5);
    let mut views = Vec::new();
    for until in (1..=cycles).filter(|until| until % step == 0) {
        run(&mut tile, until);
        if until % each == 0 {
            let view = |core: Processor| (tile.pc(core), tile.activity(core), tile.slots[core.index()].core.retired);
            views.push(cores.iter().map(|&core| view(core)).collect());
        }
    }
    let instructions = tile.stats().tensix;
    views.push(vec![(0, Activity::Running, instructions)]);
    views
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    /// A window of one cycle leaves no time for pushes of which the core is told afterwards.
    #[test]
    fn windows_do_not_change_when_rows_of_pushes_find_room(
        t in prop::collection::vec(prop::collection::vec((any_word(), 1usize..60), 1..8), 3),
    ) {
        let mut programs = Vec::new();
        for ((thread, core), rows) in (0..).zip([Processor::Trisc0, Processor::Trisc1, Processor::Trisc2]).zip(t) {
            let row = |(word, count): (u32, usize)| vec![Act::Push(word); count];
            let acts: Vec<Act> = set_up(thread).into_iter().chain(rows.into_iter().flat_map(row)).collect();
            programs.push((core, program(core, &acts)));
        }
        let whole = views(&programs, 250, 250, 4000);
        for step in [1, 5] {
            prop_assert_eq!(&whole, &views(&programs, step, 250, 4000), "in steps of {}", step);
        }
    }
}

#[test]
fn a_row_of_pushes_that_the_coprocessor_changes_is_pushed_as_it_is_then() {
    // Thread 0 stores SEMPOST 5 to the row's word 60, on the same page of code, while its core
    // waits for room at some earlier word. Before that it loads what it need not, one by one, so
    // that the core that lets it go has come to rest.
    const CHANGED: u32 = 60;
    let post = sempost(5).rotate_left(2);
    let target = PROGRAMS[2] + 4 * CHANGED;
    let half = |half: u32, value: u32| setdmareg(half, value & 0xFFFF);
    let mut row = vec![semwait(ALL_BLOCKED, 0, 1)];
    row.extend([half(2, target / 16), half(4, post), half(5, post >> 16)]);
    let load = Loadind::build().size(1).offset_half_reg(20).result_reg(11).addr_reg(1).word();
    row.extend([load, stallwait(ALL_BLOCKED, 1)].repeat(7));
    row.push(storeind(1));
    row.resize(CHANGED as usize + 20, NOP);
    let mut pushes: Vec<u32> = row.iter().map(|word| word.rotate_left(2)).collect();
    pushes.push(insn(Op::Jal, 0, 0, 0, 0));
    let other = program(Processor::Trisc1, &[Act::Delay(255), Act::Delay(255), Act::Semaphore(0, false)]);
    for step in [1, 3000] {
        let mut t = tile(true);
        load_program(&mut t, PROGRAMS[2], &pushes);
        load_program(&mut t, PROGRAMS[3], &other);
        release(&mut t, &[Processor::Trisc0, Processor::Trisc1], 5);
        for until in (1..=3000).filter(|until| until % step == 0) {
            run(&mut t, until);
        }
        let posted = t.shared.tensix.peek(Processor::Trisc0, map::PC_BUF_BASE + 0x20 + 4 * 5);
        assert_eq!((word(&t, target.cast_signed()), posted), (post, Some(1)), "in steps of {step}");
    }
}

#[test]
fn a_core_that_sleeps_on_a_semaphore_wakes_in_the_cycle_after_the_thread_s_post() {
    let programs = [
        (Processor::Trisc0, vec![Act::PollSemaphore(2), Act::SetFlag(0, 1)]),
        (Processor::Trisc1, vec![Act::Delay(200), Act::Push(sempost(2))]),
    ];
    let sleeping = outcome(&programs, true, 4000, 4000);
    let polling = outcome(&programs, false, 4000, 4000);
    assert_eq!(log(&sleeping, Processor::Trisc0), log(&polling, Processor::Trisc0));
    assert_eq!(log(&sleeping, Processor::Trisc0).len(), 2, "it was woken");
}

#[test]
fn a_full_front_end_blocks_the_core_until_the_gate_lets_something_pass() {
    let mut acts = vec![Act::Push(semwait(ALL_BLOCKED, 0, 1))];
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
    let half = |half: u32, value: u32| Act::Push(setdmareg(half, value & 0xFFFF));
    let store = |addr: u32| Act::Push(storeind(addr));
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
    let acts = [Act::Push(semwait(ALL_BLOCKED, 3, 1)), Act::Push(NOP), Act::Sync];
    load_program(&mut t, PROGRAMS[3], &program(Processor::Trisc1, &acts));
    release(&mut t, &[Processor::Trisc1], 5);
    run(&mut t, 3000);
    let waiting = t.waiting();
    assert_eq!(waiting[0].blocked_on, Some(map::PC_BUF_BASE + 4));
    let [(why, origin)] = &waiting[0].coprocessor[..] else { panic!("{:?}", waiting[0].coprocessor) };
    assert_eq!(why, "Tensix thread T1: NOP (0x02000000) waits for semaphore 3 (SEMWAIT 0xa6ff8021)");
    let (start, end) = (PROGRAMS[3], waiting[0].pc);
    assert!(origin.core() == Some(Processor::Trisc1) && (start..end).contains(&origin.pc().unwrap()), "{origin}");
}

/// A packet of NoC 0 that writes (some) or reads one register.
fn register(tile: &mut Tile, at: Cycle, addr: u32, value: u32) {
    let data = value.to_le_bytes().into();
    let body = Body::WriteRequest { addr: addr.into(), data, mask: None, reply: None };
    let place = Place { node: 0, x: 1, y: 2 };
    tile.deliver(at, Packet { noc: 0, from: place, to: Dest::Unicast(place), id: RequestId::default(), body });
}

#[test]
fn a_debugger_pushes_instructions_and_reads_configuration_over_the_noc() {
    let mut t = tile(true);
    // The debug bus takes thread 1 and pushes RMWCIB0 0x5A to register 70 by a rising edge of bit
    // 5, and again.
    register(&mut t, 100, map::INSTRN_BUF_CTRL1, rmwcib0(0x5A, 70));
    for (at, value) in [(110, 0x22), (120, 0x22), (130, 0x02), (140, 0x22)] {
        register(&mut t, at, map::INSTRN_BUF_CTRL0, value);
    }
    register(&mut t, 200, map::CFGREG_RD_CNTL, 70);
    run(&mut t, 300);
    assert_eq!(t.stats().tensix, 2, "one for each rising edge");
    let read =
        |t: &mut Tile, addr| t.reach().load(None, 300, addr, tilework_riscv::Width::Word).expect("it is there").value;
    assert_eq!((read(&mut t, map::CFGREG_RDDATA), read(&mut t, map::INSTRN_BUF_STATUS)), (0x5A, 0x77));
}

#[test]
fn the_coprocessor_reaches_every_register_without_a_panic() {
    // LOADREG and STOREREG of whatever the tile maps: an answer or a fault. (A zero in the soft
    // reset register lets the cores run.)
    let debug = map::DEBUG_BASE..map::DEBUG_BASE + 0x1200;
    let (niu, streams) = (noc::NIU0_BASE..noc::NIU0_BASE + 0x200, stream::BASE..stream::BASE + 0x800);
    let ranges = debug.chain(niu).chain(streams);
    let mut t = tile(true);
    let (mut at, mut passed) = (0, 0);
    for addr in ranges.step_by(4).filter(|&addr| addr != map::SOFT_RESET_0) {
        let addr_lo = addr >> 2 & 0x3_FFFF;
        let load = Loadreg::build().result_reg(1).addr_lo(addr_lo).word();
        for word in [load, Storereg::build().data_reg(1).addr_lo(addr_lo).word()] {
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
