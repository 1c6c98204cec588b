//! Parking never changes anything: a core that sleeps through its poll loops ends in the
//! same state, at the same cycle and with the same instruction count as one that executes
//! every iteration.

mod common;

use common::{CLOCK, LOCAL_BASE, REGISTER, SLOW, Toy, li, word};
use proptest::collection::vec;
use proptest::prelude::*;
use tilework_abi::tensix::insn::Nop;
use tilework_riscv::{Core, Cycle, Exit, HartKind, Op};

/// The polled words; some share a line of the L0.
const WORDS: u32 = 0x8000;
/// A function that the loops call, in another page.
const FUNCTION: u32 = 0x1000;
/// The word (see [`offset`]) that the loops write and do not read. Others write it too.
const STORED: u8 = 12;
/// The cycle at which each simulation ends.
const END: Cycle = 12_000;

/// A write by another agent.
#[derive(Clone, Copy, Debug)]
struct Write {
    at: Cycle,
    addr: u32,
    value: u32,
}

/// How a simulation is run; none of it may change the result.
#[derive(Clone, Copy, Debug)]
struct Manner {
    parking: bool,
    /// The longest run in cycles.
    slice: Cycle,
    /// L1 loads ask for a sync first.
    sync: bool,
}

/// Everything that must not depend on [`Manner`].
#[derive(Clone, PartialEq, Debug)]
struct Outcome {
    now: Cycle,
    pc: u32,
    regs: [u32; 32],
    instructions: u64,
    l1: Vec<u8>,
    local: Vec<u8>,
    cache: [u32; 4],
    pushed: usize,
    fault: bool,
}

struct Simulation {
    core: Core,
    bus: Toy,
    parked: u32,
}

impl Simulation {
    fn new(code: &[u32], manner: Manner) -> Simulation {
        let mut bus = Toy::with_code(0, code);
        bus.sync_loads = manner.sync;
        let function = [word(Op::Lw, 28, 18, 0, 0x40), word(Op::Sltiu, 29, 28, 0, 1), word(Op::Jalr, 0, 1, 0, 0)];
        for (addr, word) in (FUNCTION..).step_by(4).zip(function) {
            bus.poke(addr, word);
        }
        let mut core = Core::new(HartKind::B);
        core.reset(0, 0);
        core.set_parking(manner.parking);
        Simulation { core, bus, parked: 0 }
    }

    /// Brings the core to cycle `to`, or past it in the middle of an instruction. True after a
    /// fault. `touched`: the address of the word that is about to be written.
    fn advance(&mut self, to: Cycle, slice: Cycle, touched: Option<u32>) -> bool {
        loop {
            let limit = to.min(self.core.now.saturating_add(slice));
            match self.core.run(&mut self.bus, limit) {
                Exit::Limit if limit == to => return false,
                Exit::Limit | Exit::Sync => {}
                Exit::Parked => {
                    self.parked += 1;
                    let poll = self.core.parked().expect("parked");
                    let stale =
                        poll.watched.iter().any(|watch| self.bus.peek_at(watch.addr, watch.width) != watch.value);
                    let woken =
                        touched.is_none_or(|touched| poll.watched.iter().any(|watch| watch.addr & !3 == touched & !3));
                    if stale {
                        self.core.wake(self.core.now);
                    } else if woken {
                        let skipped = self.core.wake(to);
                        self.bus.skip(self.core.now - skipped, skipped);
                    } else {
                        return false;
                    }
                }
                Exit::Fault(_) => return true,
                Exit::Blocked { .. } => unreachable!("nothing blocks here"),
            }
        }
    }
}

fn simulate(code: &[u32], writes: &[Write], manner: Manner) -> (Outcome, Simulation) {
    let mut simulation = Simulation::new(code, manner);
    let mut fault = false;
    for write in writes {
        fault = fault || simulation.advance(write.at, manner.slice, Some(write.addr));
        simulation.bus.poke(write.addr, write.value);
    }
    fault = fault || simulation.advance(END, manner.slice, None);
    let Simulation { core, bus, .. } = &simulation;
    let outcome = Outcome {
        now: core.now,
        pc: core.pc,
        regs: core.regs,
        instructions: core.retired + core.skipped,
        l1: bus.l1.clone(),
        local: bus.local().to_vec(),
        cache: tilework_riscv::Bus::cache_token(bus),
        pushed: bus.pushed.len(),
        fault,
    };
    (outcome, simulation)
}

/// A piece of a poll loop. x5 collects what was seen; x18 holds [`WORDS`], x2 the stack,
/// x1 the link.
#[derive(Clone, Copy, Debug)]
enum Piece {
    Load(u8, Op),
    Use,
    Fence,
    Spill(u8),
    Multiply,
    Divide,
    Call,
    Countdown(u8),
    Skip(u8),
    RetryAtOnce(u8),
    Clock,
    StoreL1,
    /// Stores a byte to a fixed place in L1, as firmware does to tell where it is.
    Waypoint(u8),
    Count,
    Instret,
    Atomic,
    Push,
    Prefetch(u8),
    UsePrefetched,
}

fn piece() -> impl Strategy<Value = Piece> {
    prop_oneof![
        8 => (0..12u8, prop_oneof![Just(Op::Lw), Just(Op::Lhu), Just(Op::Lb)])
            .prop_map(|(at, op)| Piece::Load(at, op)),
        4 => Just(Piece::Use),
        5 => Just(Piece::Fence),
        3 => (0..8u8).prop_map(Piece::Spill),
        1 => Just(Piece::Multiply),
        1 => Just(Piece::Divide),
        2 => Just(Piece::Call),
        2 => (1..9u8).prop_map(Piece::Countdown),
        2 => (0..12u8).prop_map(Piece::Skip),
        2 => (0..12u8).prop_map(Piece::RetryAtOnce),
        2 => (0..12u8).prop_map(Piece::Prefetch),
        1 => Just(Piece::UsePrefetched),
        2 => (0..3u8).prop_map(Piece::Waypoint),
        1 => prop_oneof![
            Just(Piece::Clock),
            Just(Piece::StoreL1),
            Just(Piece::Count),
            Just(Piece::Instret),
            Just(Piece::Atomic),
            Just(Piece::Push)
        ],
    ]
}

/// How a loop ends, by the value collected in x5.
#[derive(Clone, Copy, Debug)]
enum Until {
    NonZero,
    AtLeast(u8),
    JumpBack,
}

#[derive(Clone, Debug)]
struct Loop {
    pieces: Vec<Piece>,
    until: Until,
}

fn poll_loop() -> impl Strategy<Value = Loop> {
    let until = prop_oneof![Just(Until::NonZero), (1..6u8).prop_map(Until::AtLeast), Just(Until::JumpBack)];
    (vec(piece(), 1..8), until).prop_map(|(pieces, until)| Loop { pieces, until })
}

fn offset(at: u8) -> i32 {
    i32::from(at) * 12
}

fn emit(code: &mut Vec<u32>, poll: &Loop) {
    let head = code.len() as i32;
    code.push(word(Op::Addi, 5, 0, 0, 0));
    for &piece in &poll.pieces {
        emit_piece(code, piece, head);
    }
    let back = (head - code.len() as i32) * 4;
    match poll.until {
        Until::NonZero => code.push(word(Op::Beq, 0, 5, 0, back)),
        Until::AtLeast(least) => {
            code.push(word(Op::Addi, 15, 0, 0, i32::from(least)));
            code.push(word(Op::Blt, 0, 5, 15, back - 4));
        }
        Until::JumpBack => {
            code.push(word(Op::Bne, 0, 5, 0, 8));
            code.push(word(Op::Jal, 0, 0, 0, back - 4));
        }
    }
}

/// One piece of a loop that starts with the `head`-th instruction.
fn emit_piece(code: &mut Vec<u32>, piece: Piece, head: i32) {
    let back = (head - code.len() as i32) * 4;
    match piece {
        Piece::Load(at, op) => {
            let align = if op == Op::Lw { 3 } else { 1 };
            code.push(word(op, 6, 18, 0, offset(at) & !align));
            code.push(word(Op::Add, 5, 5, 6, 0));
        }
        Piece::Use => code.push(word(Op::Add, 5, 5, 6, 0)),
        Piece::Fence => code.push(word(Op::Fence, 0, 0, 0, 0xff)),
        Piece::Spill(slot) => {
            code.push(word(Op::Sw, 0, 2, 5, i32::from(slot) * 4));
            code.push(word(Op::Lw, 7, 2, 0, i32::from(slot) * 4));
        }
        Piece::Multiply => code.push(word(Op::Mul, 8, 5, 6, 0)),
        Piece::Divide => code.push(word(Op::Divu, 8, 5, 6, 0)),
        Piece::Call => {
            let distance = FUNCTION as i32 - code.len() as i32 * 4;
            code.push(word(Op::Jal, 1, 0, 0, distance));
        }
        Piece::Countdown(from) => {
            code.push(word(Op::Addi, 9, 0, 0, i32::from(from)));
            code.push(word(Op::Addi, 9, 9, 0, -1));
            code.push(word(Op::Bne, 0, 9, 0, -4));
        }
        Piece::Skip(at) => {
            code.push(word(Op::Lw, 10, 18, 0, offset(at)));
            code.push(word(Op::Beq, 0, 10, 0, 8));
            code.push(word(Op::Addi, 11, 10, 0, 1));
        }
        Piece::RetryAtOnce(at) => {
            code.push(word(Op::Lw, 10, 18, 0, offset(at)));
            code.push(word(Op::Blt, 0, 10, 0, back - 4));
        }
        Piece::Clock => code.push(word(Op::Lw, 12, 19, 0, 0)),
        Piece::StoreL1 => code.push(word(Op::Sw, 0, 18, 5, offset(STORED))),
        Piece::Waypoint(value) => {
            code.push(word(Op::Addi, 31, 0, 0, value.into()));
            code.push(word(Op::Sb, 0, 18, 31, offset(STORED) + 1));
        }
        Piece::Count => code.push(word(Op::Addi, 13, 13, 0, 1)),
        Piece::Instret => code.push(word(Op::Csrrs, 14, 0, 0, 0xb02)),
        Piece::Atomic => {
            code.push(word(Op::Addi, 30, 18, 0, offset(STORED)));
            code.push(word(Op::AmoAnd, 0, 30, 5, 0));
        }
        Piece::Push => code.push(word(Op::Ttinsn, 0, 0, 0, Nop::build().word().cast_signed())),
        Piece::Prefetch(at) => code.push(word(Op::Lw, 16, 18, 0, offset(at))),
        Piece::UsePrefetched => code.push(word(Op::Add, 17, 16, 16, 0)),
    }
}

/// Runs through the loops three times, notes cycle and instruction count after each, and stops.
fn program(loops: &[Loop]) -> Vec<u32> {
    let mut code = Vec::new();
    code.extend(li(2, LOCAL_BASE + 0x100));
    code.extend(li(18, WORDS));
    code.extend(li(19, CLOCK));
    code.push(word(Op::Addi, 20, 0, 0, 3));
    let outer = code.len() as i32;
    for poll in loops {
        code.push(word(Op::Lw, 24, 19, 0, (SLOW - CLOCK).cast_signed()));
        emit(&mut code, poll);
        code.push(word(Op::Csrrs, 21, 0, 0, 0xc00));
        code.push(word(Op::Csrrs, 22, 0, 0, 0xc02));
        code.push(word(Op::Add, 23, 23, 21, 0));
        code.push(word(Op::Add, 23, 23, 22, 0));
        code.push(word(Op::Add, 23, 23, 24, 0));
        code.push(word(Op::Csrrs, 25, 0, 0, 0xc00));
        code.push(word(Op::Add, 23, 23, 16, 0));
        code.push(word(Op::Csrrs, 26, 0, 0, 0xc00));
    }
    code.push(word(Op::Addi, 20, 20, 0, -1));
    let back = (outer - code.len() as i32) * 4;
    code.push(word(Op::Bne, 0, 20, 0, back));
    code.push(word(Op::Ebreak, 0, 0, 0, 0));
    code
}

fn writes() -> impl Strategy<Value = Vec<Write>> {
    let value = prop_oneof![3 => Just(0), 3 => 0..4u32, 1 => any::<u32>()];
    let write = (1..END, 0..14u8, value).prop_map(|(at, word, value)| Write {
        at,
        addr: WORDS + offset(word).cast_unsigned(),
        value,
    });
    vec(write, 0..40).prop_map(|mut writes| {
        writes.sort_by_key(|write| write.at);
        writes
    })
}

const POLLING: Manner = Manner { parking: false, slice: Cycle::MAX, sync: false };

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 3000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn parking_changes_nothing(
        loops in vec(poll_loop(), 1..4),
        writes in writes(),
        slice in prop_oneof![Just(Cycle::MAX), 1..200u64],
        sync in any::<bool>(),
    ) {
        let code = program(&loops);
        let (polling, _) = simulate(&code, &writes, POLLING);
        let manners = [
            Manner { parking: true, slice: Cycle::MAX, sync: false },
            Manner { parking: true, slice, sync },
            Manner { parking: false, slice, sync },
        ];
        for manner in manners {
            let (other, _) = simulate(&code, &writes, manner);
            prop_assert!(other == polling, "{:?}: {:x?}\n{:x?}", manner,
                (other.now, other.pc, other.instructions, other.regs),
                (polling.now, polling.pc, polling.instructions, polling.regs));
        }
    }
}

/// Runs one loop to the end; returns the executed and skipped instructions and how often it parked.
fn cost(pieces: &[Piece], until: Until, writes: &[Write]) -> (u64, u64, u32) {
    let code = program(&[Loop { pieces: pieces.to_vec(), until }]);
    let manner = Manner { parking: true, ..POLLING };
    let (outcome, simulation) = simulate(&code, writes, manner);
    assert_eq!(outcome, simulate(&code, writes, POLLING).0);
    (simulation.core.retired, simulation.core.skipped, simulation.parked)
}

#[test]
fn poll_loops_park() {
    let load = Piece::Load(0, Op::Lw);
    let cases: [&[Piece]; 10] = [
        &[load, Piece::Fence],
        &[load, Piece::Spill(0), Piece::Fence, Piece::Load(3, Op::Lb)],
        &[Piece::Fence, load, Piece::Call],
        &[Piece::Fence, load, Piece::Countdown(5)],
        &[Piece::Fence, load, Piece::Countdown(5), Piece::Countdown(3), Piece::Call],
        &[Piece::Fence, load, Piece::Multiply, Piece::Divide, Piece::Skip(4)],
        &[Piece::Fence, Piece::RetryAtOnce(5), Piece::Fence, load],
        &[Piece::Waypoint(2), Piece::Fence, load],
        &[Piece::Fence, load, Piece::Waypoint(1)],
        &[Piece::Fence, load, Piece::StoreL1],
    ];
    for pieces in cases {
        for until in [Until::NonZero, Until::AtLeast(3), Until::JumpBack] {
            let (executed, skipped, parked) = cost(pieces, until, &[]);
            assert!(executed < 400 && skipped > 1000, "{pieces:?}: {executed}, {skipped}");
            assert_eq!(parked, 1, "{pieces:?}");
        }
    }
}

#[test]
fn a_jump_to_itself_parks_on_nothing() {
    let mut bus = Toy::with_code(0, &[word(Op::Jal, 0, 0, 0, 0)]);
    let mut core = Core::new(HartKind::B);
    assert_eq!(core.run(&mut bus, 1_000_000), Exit::Parked);
    let poll = core.parked().expect("parked");
    assert_eq!((poll.head_pc, poll.period, poll.insns_per_iteration), (0, 1, 1));
    assert!(poll.watched.is_empty());
    core.wake(1_000_000);
    assert_eq!((core.now, core.retired + core.skipped), (1_000_000, 1_000_000));
}

#[test]
fn the_watch_list_names_each_polled_word_once() {
    let pieces = [Piece::Fence, Piece::Load(2, Op::Lw), Piece::Load(5, Op::Lhu), Piece::Fence, Piece::Load(2, Op::Lw)];
    let polled = Loop { pieces: pieces.to_vec(), until: Until::NonZero };
    let mut bus = Toy::with_code(0, &program(&[polled]));
    let mut core = Core::new(HartKind::B);
    assert_eq!(core.run(&mut bus, END), Exit::Parked);
    let watched: Vec<u32> = core.parked().expect("parked").watched.iter().map(|watch| watch.addr).collect();
    assert_eq!(watched, [WORDS + 24, WORDS + 60]);
}

#[test]
fn a_woken_core_that_sees_no_reason_sleeps_again_at_once() {
    let writes: Vec<Write> = (1..100).map(|n| Write { at: n * 100, addr: WORDS, value: 0 }).collect();
    let (executed, _, parked) = cost(&[Piece::Fence, Piece::Load(0, Op::Lw)], Until::NonZero, &writes);
    assert!(parked >= 99, "{parked}");
    assert!(executed < 99 * 12, "{executed}");
}

#[test]
fn loops_with_effects_or_a_sense_of_time_never_park() {
    let watched = Piece::Load(0, Op::Lw);
    let effects: [&[Piece]; 6] = [
        &[Piece::Clock],
        &[Piece::Waypoint(1), Piece::Waypoint(2)],
        &[Piece::Count],
        &[Piece::Instret],
        &[Piece::Atomic],
        &[Piece::Push],
    ];
    for never in effects {
        let pieces = [never, &[watched, Piece::Fence]].concat();
        let (_, skipped, parked) = cost(&pieces, Until::NonZero, &[]);
        assert_eq!((skipped, parked), (0, 0), "{never:?}");
    }
}

#[test]
fn more_than_sixteen_words_do_not_park() {
    let spread = |count: u32| {
        let mut code = li(18, WORDS).to_vec();
        code.push(word(Op::Fence, 0, 0, 0, 0xff));
        for n in 0..count {
            code.push(word(Op::Lw, 5, 18, 0, n as i32 * 16));
        }
        code.push(word(Op::Jal, 0, 0, 0, -4 * (count as i32 + 1)));
        let mut bus = Toy::with_code(0, &code);
        Core::new(HartKind::B).run(&mut bus, END)
    };
    assert_eq!(spread(16), Exit::Parked);
    assert_eq!(spread(17), Exit::Limit);
}

/// Counts the values of a register, with `pause` instructions after each change. The wait is a loop
/// of two or of three instructions. The register changes after each of `gaps` cycles, and `steady`
/// says that the bus knows it without a load. Returns the core and how often it parked.
fn count_changes(
    pause: u8,
    jumps_back: bool,
    gaps: &[Cycle],
    parking: bool,
    (finish, steady): (bool, bool),
) -> (Core, u32) {
    let mut code = li(18, REGISTER).to_vec();
    let wait = [word(Op::Lw, 5, 18, 0, 0), word(Op::Beq, 0, 5, 7, -4)];
    let wait_and_jump = [word(Op::Lw, 5, 18, 0, 0), word(Op::Bne, 0, 5, 7, 8), word(Op::Jal, 0, 0, 0, -8)];
    code.extend_from_slice(if jumps_back { &wait_and_jump } else { &wait });
    code.extend([word(Op::Addi, 7, 5, 0, 0), word(Op::Addi, 6, 6, 0, 1)]);
    code.extend((0..pause).map(|_| word(Op::Addi, 8, 8, 0, 1)));
    code.push(word(Op::Jal, 0, 0, 0, 4 * (2 - code.len() as i32)));
    let mut bus = Toy::with_code(0, &code);
    bus.steady = steady;
    let mut core = Core::new(HartKind::B);
    core.set_parking(parking);
    let (mut at, mut parked) = (0, 0);
    // The last wait is executed as far as it goes, for the comparison.
    for (n, gap) in gaps.iter().chain([&997]).enumerate() {
        at += gap;
        while core.now < at {
            match core.run(&mut bus, at) {
                // The register has changed since the last iteration loaded it.
                Exit::Parked if core.parked().is_some_and(|poll| poll.watched[0].value != bus.register) => {
                    core.wake(core.now);
                }
                Exit::Parked => {
                    parked += 1;
                    core.wake_for_change(at);
                    if finish && n < gaps.len() {
                        core.finish_iteration(at);
                    }
                }
                exit => assert_eq!(exit, Exit::Limit),
            }
        }
        bus.register += 1;
    }
    (core, parked)
}

proptest! {
    #[test]
    fn an_iteration_in_one_step_is_as_one_that_is_executed(
        pause in 0..9u8, jumps_back: bool, gaps in vec(prop_oneof![1..40u64, 100..400u64], 1..60)
    ) {
        let (polling, _) = count_changes(pause, jumps_back, &gaps, false, (false, false));
        let (stepping, parked) = count_changes(pause, jumps_back, &gaps, true, (false, false));
        for manner in [(true, false), (false, true), (true, true)] {
            let (core, also_parked) = count_changes(pause, jumps_back, &gaps, true, manner);
            prop_assert_eq!((core.now, core.pc, core.regs), (polling.now, polling.pc, polling.regs));
            prop_assert_eq!(core.retired + core.skipped, polling.retired);
            // Not only the sum: a report has both.
            prop_assert_eq!((core.retired, core.skipped), (stepping.retired, stepping.skipped));
            prop_assert_eq!(also_parked, parked);
        }
    }
}
