//! Random traffic ends in the same state, at the same cycle and with the same fault on any number
//! of threads, and a host sees the same of it whether nodes run ahead of it or not.

use crate::pcie::Bar;
use crate::{Chip, ChipConfig, ChipError, ChipStats, Event, LateCores, Observer, Wants, What};
use proptest::prelude::*;
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};
use tilework_abi::board::{Board, PCIE};
use tilework_abi::noc::{self, NocRect, NocXy, atomic, ctrl, init};
use tilework_abi::tensix as map;
use tilework_abi::tlb::{self, Window, WindowSize};
use tilework_riscv::{Insn, Op, encode};

type Code = Vec<(Op, u8, u8, u8, i32)>;

/// Where a program notes the cycles at which it started requests.
const LOG: u32 = 0x9000;
/// What tiles send and what they receive by writes, reads and atomics: of any tile, this much.
const SPACES: [u32; 4] = [0x1_0000, 0x2_0000, 0x3_0000, 0x4_0000];
const SPACE: u32 = 0x8000;
/// Host memory that tiles write and read, as large as a space.
const HOST: u64 = 0x100_0000;
/// No memory is here.
const NOWHERE: u32 = 0x00F0_0000;

/// Marsaglia's xorshift.
struct Random(u32);

impl Random {
    fn below(&mut self, bound: u32) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 17;
        self.0 ^= self.0 << 5;
        self.0 % bound
    }
    fn one_of(&mut self, places: &[NocXy]) -> NocXy {
        places[self.below(places.len() as u32) as usize]
    }
    /// A multiple of 64 in a space, with room for a packet of 2 KiB.
    fn line(&mut self) -> u32 {
        64 * self.below((SPACE - 0x800) / 64)
    }
}

fn li(rd: u8, value: u32) -> Code {
    let low = value.cast_signed() << 20 >> 20;
    let high = value.wrapping_sub(low.cast_unsigned());
    vec![(Op::Lui, rd, 0, 0, high.cast_signed()), (Op::Addi, rd, rd, 0, low)]
}

/// The fields of a random request of the tile at `own`.
fn request(random: &mut Random, own: NocXy, tiles: &[NocXy], banks: &[NocXy]) -> Vec<(u32, u32)> {
    let (here, there) = (random.line(), random.line());
    let (me, peer) = (own.encode(), random.one_of(tiles).encode());
    let bytes = 16 * (1 + random.below(128));
    let [source, written, read, counted] = SPACES;
    let acknowledged = ctrl::RESP_MARKED * random.below(2);
    let mut middle = [0, 0];
    let (from, to, control, len) = match random.below(8) {
        0 => ((random.one_of(banks).encode(), there), (me, read + here), ctrl::CMD_RD | ctrl::RESP_MARKED, bytes),
        1 => ((peer, written + there), (me, read + here), ctrl::CMD_RD | ctrl::RESP_MARKED, bytes),
        2 => ((me, source + here), (random.one_of(banks).encode(), there), ctrl::CMD_WR | acknowledged, bytes),
        3 => {
            let count = counted + 16 * random.below(8);
            ((peer, count), (me, read + here), ctrl::CMD_AT | acknowledged, atomic::incr32(0))
        }
        4 => {
            let end = NocXy::new(own.x.max(2), own.y.max(4));
            let rect = NocRect { start: NocXy::new(1, 2), end }.encode();
            let control = ctrl::CMD_WR | ctrl::BRCST | ctrl::BRCST_SRC_INCLUDE | (ctrl::BRCST_XY * random.below(2));
            ((me, source + here), (rect, written + there), control, bytes)
        }
        5 => {
            middle = [0, noc::PCIE_HOST_MID];
            ((me, source + here), (PCIE.encode(), HOST as u32 + there), ctrl::CMD_WR | acknowledged, bytes)
        }
        6 => {
            middle = [noc::PCIE_HOST_MID, 0];
            ((PCIE.encode(), HOST as u32 + there), (me, read + here), ctrl::CMD_RD | ctrl::RESP_MARKED, bytes)
        }
        _ => ((me, source + here), (peer, written + there), ctrl::CMD_WR | acknowledged, bytes),
    };
    vec![
        (init::TARG_ADDR_LO, from.1),
        (init::TARG_ADDR_MID, middle[0]),
        (init::TARG_ADDR_HI, from.0),
        (init::RET_ADDR_LO, to.1),
        (init::RET_ADDR_MID, middle[1]),
        (init::RET_ADDR_HI, to.0),
        (init::CTRL, control),
        (init::AT_LEN_BE, len),
        (init::AT_DATA, random.0),
    ]
}

/// Starts `requests` random requests, after random times and some of them after all reads have come
/// back, and faults then if it is told to.
fn program(random: &mut Random, own: NocXy, tiles: &[NocXy], banks: &[NocXy], requests: u32, faults: bool) -> Code {
    let mut code = li(10, LOG);
    code.push((Op::Addi, 12, 0, 0, 1));
    for _ in 0..requests {
        // Multicasts go the other way round on NoC 1.
        let fields = request(random, own, tiles, banks);
        let multicast = fields.iter().any(|&(field, value)| field == init::CTRL && value & ctrl::BRCST != 0);
        let noc = if multicast { 0 } else { random.below(2) };
        code.extend(li(8, noc::NIU0_BASE + noc * (noc::NIU1_BASE - noc::NIU0_BASE)));
        code.extend(li(13, random.below(60)));
        code.extend([(Op::Addi, 13, 13, 0, -1), (Op::Blt, 0, 0, 13, -4)]);
        code.extend([(Op::Lw, 11, 8, 0, 0x40), (Op::Bne, 0, 11, 0, -4)]);
        for (field, value) in fields {
            code.extend(li(11, value));
            code.push((Op::Sw, 0, 8, 11, field.cast_signed()));
        }
        code.push((Op::Sw, 0, 8, 12, init::CMD_CTRL.cast_signed()));
        code.extend([(Op::Csrrs, 14, 0, 0, 0xc00), (Op::Sw, 0, 10, 14, 0), (Op::Addi, 10, 10, 0, 4)]);
        if random.below(2) == 0 {
            // The source of some write may be leaving.
            code.extend(li(15, SPACES[0] + random.line()));
            code.extend([0, 600, 1200, 1996].map(|offset| (Op::Sw, 0, 15, 14, offset)));
        }
        if random.below(4) == 0 {
            // Transaction id 0: none outstanding.
            let outstanding = noc::COUNTERS + 4 * noc::counter::MST_REQS_OUTSTANDING_ID as u32;
            code.extend([(Op::Lw, 11, 8, 0, outstanding.cast_signed()), (Op::Bne, 0, 11, 0, -4)]);
        }
    }
    if faults {
        code.extend(li(11, NOWHERE));
        code.push((Op::Lw, 11, 11, 0, 0));
    }
    code.push((Op::Jal, 0, 0, 0, 0));
    code
}

/// Points window 0 at a tile.
fn aim(chip: &mut Chip, xy: NocXy, base: u64) -> Result<(), ChipError> {
    let words = Window::unicast(xy, base).encode(WindowSize::Small);
    (0..).step_by(4).zip(words).try_for_each(|(i, word)| chip.bar_write(Bar::Bar0, tlb::REGS + i, &word.to_le_bytes()))
}

fn write(chip: &mut Chip, xy: NocXy, addr: u32, data: &[u8]) {
    let base = u64::from(addr) & !(tlb::SIZE_2M - 1);
    aim(chip, xy, base).expect("registers of window 0");
    chip.bar_write(Bar::Bar0, u64::from(addr) - base, data).expect("window 0 shows the tile");
}

/// A run: on how many tiles, of which so many fault, with how many requests each, in slices of how
/// many cycles.
#[derive(Clone, Copy, Debug)]
struct Run {
    seed: u32,
    tiles: usize,
    faulty: usize,
    requests: u32,
    slice: u64,
    /// Nodes may run ahead of the host.
    ahead: bool,
    /// How late cores are.
    late: Option<LateCores>,
}

/// What came of it: what the host saw, in which order the nodes were listed (counts of skipped
/// instructions depend on it), the memories of all tiles, the fault, and the counts.
#[derive(PartialEq, Eq, Debug)]
struct Outcome {
    /// After each slice: the time, a word of a tile, and a digest of host memory.
    seen: Vec<(u64, u32, u64)>,
    listed: Vec<Vec<usize>>,
    memories: Vec<u64>,
    /// How many tiles have started their last request.
    finished: usize,
    fault: Option<String>,
    stats: ChipStats,
}

impl Outcome {
    /// Of a run whose windows are others.
    fn of_other_windows(self) -> Self {
        Self { listed: Vec::new(), ..self }
    }
}

/// The host looks at the chip in between, often or seldom, and changes a word of its own memory.
fn look(chip: &mut Chip, xy: NocXy, turn: u64) -> Result<(u64, u32, u64), ChipError> {
    let mut memory = vec![0; SPACE as usize];
    chip.pinned_read(HOST, &mut memory)?;
    chip.pinned_write(HOST + 16 * (turn % 512), &(turn as u32).to_le_bytes())?;
    let mut word = [0; 4];
    if turn.is_multiple_of(3) {
        aim(chip, xy, 0)?;
        chip.bar_read(Bar::Bar0, u64::from(SPACES[3]) + 4, &mut word)?;
    }
    let mut hasher = DefaultHasher::new();
    memory.hash(&mut hasher);
    Ok((chip.now(), u32::from_le_bytes(word), hasher.finish()))
}

/// Also says whether several threads shared a window.
fn outcome(run: Run, threads: usize) -> (Outcome, bool) {
    outcome_before(run, threads, |_| {}, |_| {})
}

/// As [`outcome`], of a chip that is prepared before the run and looked at after it.
fn outcome_before(
    run: Run,
    threads: usize,
    prepare: impl FnOnce(&mut Chip),
    after: impl FnOnce(&mut Chip),
) -> (Outcome, bool) {
    outcome_between(run, threads, prepare, |_, _| {}, after)
}

/// The same; `between` gets the chip after each slice.
fn outcome_between(
    run: Run,
    threads: usize,
    prepare: impl FnOnce(&mut Chip),
    mut between: impl FnMut(&mut Chip, u64),
    after: impl FnOnce(&mut Chip),
) -> (Outcome, bool) {
    let config =
        ChipConfig { threads: NonZeroUsize::new(threads), late_cores: run.late, ..ChipConfig::new(Board::P100) };
    let mut chip = Chip::new(config).expect("the board tables fit");
    chip.share_every_window();
    prepare(&mut chip);
    chip.pin(HOST, SPACE as usize).expect("a free region");
    let tiles: Vec<NocXy> = Board::P100.workers().take(run.tiles).collect();
    let banks: Vec<NocXy> = Board::P100.dram().banks().iter().map(|bank| bank.first_port).collect();
    let mut random = Random(run.seed | 1);
    for (i, &xy) in tiles.iter().enumerate() {
        let code = program(&mut random, xy, &tiles, &banks, run.requests, i < run.faulty);
        let words = code.iter().map(|&(op, rd, rs1, rs2, imm)| encode(Insn { op, rd, rs1, rs2, imm }));
        let bytes: Vec<u8> = words.flat_map(|word| word.expect("operands fit").to_le_bytes()).collect();
        write(&mut chip, xy, 0, &bytes);
        let data: Vec<u8> = (0..0x200).flat_map(|_| random.below(u32::MAX).to_le_bytes()).collect();
        write(&mut chip, xy, SPACES[0], &data);
    }
    for &xy in &tiles {
        write(&mut chip, xy, map::SOFT_RESET_0, &map::SOFT_RESET_BRISC_RUNS.to_le_bytes());
    }
    let (mut fault, mut seen, mut listed) = (None, Vec::new(), Vec::new());
    for turn in 0..(40_000 + u64::from(run.requests) * 2000) / run.slice {
        let passed = if run.ahead { chip.clock(run.slice) } else { chip.run(run.slice) };
        let looked = passed.and_then(|()| look(&mut chip, tiles[turn as usize % tiles.len()], turn));
        match looked {
            Ok(what) => seen.push(what),
            Err(error) => {
                fault = Some(error.to_string());
                break;
            }
        }
        listed.push(chip.listed());
        between(&mut chip, turn);
    }
    if fault.is_none() {
        fault = chip.run(400_000).err().map(|error| error.to_string());
    }
    after(&mut chip);
    let memory = |&xy: &NocXy| {
        let mut hasher = DefaultHasher::new();
        chip.l1(xy).expect("a worker").hash(&mut hasher);
        hasher.finish()
    };
    let last = LOG as usize + 4 * (run.requests as usize - 1);
    let has_finished = |&&xy: &&NocXy| chip.l1(xy).expect("a worker")[last..last + 4] != [0; 4];
    let outcome = Outcome {
        seen,
        listed,
        memories: tiles.iter().map(memory).collect(),
        finished: tiles.iter().filter(has_finished).count(),
        fault,
        stats: chip.stats(),
    };
    (outcome, chip.has_shared_windows())
}

/// Compares a run on one thread with the same on others; also says whether these shared windows.
fn is_the_same_on_any_number_of_threads(run: Run) -> (Outcome, bool) {
    let (one, shared) = outcome(run, 1);
    assert!(!shared);
    let mut all_shared = true;
    for threads in [2, 3, 5] {
        let (other, shared) = outcome(run, threads);
        assert_eq!(other, one, "{run:?} on {threads} threads");
        all_shared &= shared;
    }
    (one, all_shared)
}

#[test]
fn traffic_of_many_tiles_is_the_same_on_any_number_of_threads() {
    let run = Run { seed: 0x9E37_79B9, tiles: 40, faulty: 0, requests: 24, slice: 6000, ahead: false, late: None };
    let (outcome, shared) = is_the_same_on_any_number_of_threads(run);
    assert!(shared);
    assert_eq!(outcome.fault, None);
    assert_eq!(outcome.finished, 40);
}

/// What arrives of a write of 4 KiB of 0x11 whose first and last words are overwritten with 0xEE
/// when some of it has left, or when it is counted as sent.
fn overwritten(threads: usize, waits: bool) -> Vec<u8> {
    const LEN: u32 = 4096;
    let mut chip = Chip::new(ChipConfig { threads: NonZeroUsize::new(threads), ..ChipConfig::new(Board::P100) })
        .expect("the board tables fit");
    chip.share_every_window();
    let tiles: Vec<NocXy> = Board::P100.workers().take(2).collect();
    let [source, written, ..] = SPACES;
    let mut code = li(8, noc::NIU0_BASE);
    for (field, value) in [
        (init::TARG_ADDR_LO, source),
        (init::TARG_ADDR_HI, tiles[0].encode()),
        (init::RET_ADDR_LO, written),
        (init::RET_ADDR_HI, tiles[1].encode()),
        (init::CTRL, ctrl::CMD_WR | ctrl::RESP_MARKED),
        (init::AT_LEN_BE, LEN),
        (init::CMD_CTRL, 1),
    ] {
        code.extend(li(11, value));
        code.push((Op::Sw, 0, 8, 11, field.cast_signed()));
    }
    code.extend([li(12, 1), li(13, 20), li(14, 0xEEEE_EEEE), li(15, source), li(16, source + LEN - 4)].concat());
    if waits {
        let sent = noc::COUNTERS + 4 * noc::counter::MST_NONPOSTED_WR_REQ_SENT as u32;
        code.extend([(Op::Lw, 11, 8, 0, sent.cast_signed()), (Op::Bne, 0, 11, 12, -4)]);
    } else {
        code.extend([(Op::Addi, 13, 13, 0, -1), (Op::Blt, 0, 0, 13, -4)]);
    }
    code.extend([(Op::Sw, 0, 15, 14, 0), (Op::Sw, 0, 16, 14, 0), (Op::Jal, 0, 0, 0, 0)]);
    let words = code.iter().map(|&(op, rd, rs1, rs2, imm)| encode(Insn { op, rd, rs1, rs2, imm }));
    let bytes: Vec<u8> = words.flat_map(|word| word.expect("operands fit").to_le_bytes()).collect();
    write(&mut chip, tiles[0], 0, &bytes);
    write(&mut chip, tiles[0], source, &[0x11; LEN as usize]);
    write(&mut chip, tiles[0], map::SOFT_RESET_0, &map::SOFT_RESET_BRISC_RUNS.to_le_bytes());
    chip.run(3000).expect("nothing faults");
    let l1 = |xy| chip.l1(xy).expect("a worker");
    assert_eq!(l1(tiles[0])[source as usize..][..4], [0xEE; 4], "it has been overwritten");
    l1(tiles[1])[written as usize..][..LEN as usize].to_vec()
}

#[test]
fn a_source_that_is_overwritten_too_early_sends_mixed_bytes() {
    for threads in [1, 2] {
        let mixed = overwritten(threads, false);
        assert_eq!((mixed[0], mixed[4091], mixed[4092]), (0x11, 0x11, 0xEE), "{threads} threads");
        assert_eq!(mixed.iter().filter(|byte| **byte == 0xEE).count(), 4);
        assert_eq!(overwritten(threads, true), [0x11; 4096], "{threads} threads, counted as sent");
    }
}

#[test]
fn the_first_fault_counts_on_any_number_of_threads() {
    // Twenty-four tiles without a request fault in the order in which they were released; with
    // some requests, in any order.
    for requests in [0, 3] {
        let run = Run {
            seed: 0x1234_5677,
            tiles: 24,
            faulty: 24,
            requests: requests + 1,
            slice: 1500,
            ahead: false,
            late: None,
        };
        let (Outcome { fault, .. }, _) = is_the_same_on_any_number_of_threads(run);
        let fault = fault.expect("a fault");
        assert!(fault.contains("0xf00000"), "{fault}");
    }
}

/// Keeps everything.
#[derive(Default)]
struct Log(Vec<Event>);

impl Observer for Log {
    fn wants(&self) -> Wants {
        Wants::ACCESSES | Wants::NOC | Wants::CORES
    }
    fn events(&mut self, events: &[Event]) {
        self.0.extend_from_slice(events);
    }
}

/// The outcome of an observed run, and what was observed.
fn observed(run: Run, threads: usize) -> (Outcome, Vec<Event>) {
    let log = Arc::new(Mutex::new(Log::default()));
    let observer = Box::new(log.clone());
    let (outcome, _) = outcome_before(run, threads, |chip| chip.observe(observer), Chip::settle_observers);
    let events = std::mem::take(&mut log.lock().expect("nothing panics").0);
    (outcome, events)
}

/// Packets leave before they arrive, and what is answered was asked.
fn check_packets(events: &[Event]) {
    let (mut left, mut asked) = (HashSet::new(), HashSet::new());
    for event in events {
        match &event.what {
            What::Leaves(packet) => {
                left.insert((packet.id, packet.kind as u8));
            }
            What::Arrives(packet) => assert!(left.contains(&(packet.id, packet.kind as u8)), "{event:?}"),
            What::Request(request) => assert!(asked.insert(request.id), "{event:?}"),
            _ => {}
        }
    }
    assert!(asked.iter().all(|id| left.iter().any(|(sent, _)| sent == id)));
}

#[test]
fn an_observer_changes_nothing_and_sees_the_same_on_any_number_of_threads() {
    for (seed, tiles, requests, ahead) in [(0x9E37_79B9, 20, 12, false), (0x51, 1, 8, true), (0x77, 12, 6, true)] {
        let run = Run { seed, tiles, faulty: 0, requests, slice: 700, ahead, late: None };
        let (plain, _) = outcome(run, 1);
        let (one, events) = observed(run, 1);
        let (one, plain) = (one.of_other_windows(), plain.of_other_windows());
        assert_eq!(one, plain, "{run:?}");
        assert!(events.windows(2).all(|pair| pair[0].at <= pair[1].at));
        let started = events.iter().filter(|event| matches!(event.what, What::Request(_))).count();
        assert_eq!(started, tiles * requests as usize);
        check_packets(&events);
        for threads in [2, 3] {
            let (other, again) = observed(run, threads);
            assert_eq!(other.of_other_windows(), plain, "{run:?} on {threads} threads");
            assert!(again == events, "{run:?} on {threads} threads");
        }
    }
}

#[test]
fn a_twin_goes_on_as_its_chip_would_have() {
    for (seed, tiles, requests, ahead) in [(0x9E37_79B9, 20, 12, false), (0x51, 3, 8, true)] {
        let run = Run { seed, tiles, faulty: 0, requests, slice: 700, ahead, late: None };
        let (plain, _) = outcome(run, 1);
        let (_, events) = observed(run, 1);
        for threads in [1, 2] {
            let mut old = None;
            let twin = |chip: &mut Chip, turn: u64| {
                if turn % 5 == 2 {
                    let twin = chip.twin(Vec::new()).expect("the host's memory is its own");
                    old = Some(std::mem::replace(chip, twin));
                }
            };
            assert_eq!(outcome_between(run, threads, |_| {}, twin, |_| {}).0, plain, "{run:?}");
            // What the twins did left the chips before them as they were.
            let mut old = old.expect("some slices");
            let before = old.stats();
            assert!(before.cycles < plain.stats.cycles);
            old.run(1000).expect("it goes on, too");
            assert_eq!(old.stats().cycles, before.cycles + 1000);
        }
        // Observers see what is under way at the moment of the change.
        let seen = Arc::new(Mutex::new(Log::default()));
        let (first, again) = (Box::new(seen.clone()), seen.clone());
        let twin = |chip: &mut Chip, turn: u64| {
            if turn % 7 == 3 {
                *chip = chip.twin(vec![Box::new(again.clone())]).expect("the host's memory is its own");
            }
        };
        let (outcome, _) = outcome_between(run, 1, |chip| chip.observe(first), twin, Chip::settle_observers);
        assert_eq!(outcome, plain);
        assert!(seen.lock().expect("nothing panics").0 == events, "{run:?}");
    }
}

/// Adds up what cores executed.
#[derive(Default)]
struct Executed {
    executed: u64,
    cycles: u64,
}

impl Observer for Executed {
    fn wants(&self) -> Wants {
        Wants::COUNTS
    }
    fn events(&mut self, events: &[Event]) {
        for event in events {
            assert!(matches!(event.what, What::Counted(_)), "{event:?}");
            if let What::Counted(counts) = &event.what {
                self.executed += counts.iter().map(|count| count.executed).sum::<u64>();
                self.cycles += counts.iter().map(|count| count.cycles).sum::<u64>();
            }
        }
    }
}

#[test]
fn counts_of_instructions_are_those_of_the_chip_and_change_nothing() {
    let run = Run { seed: 0x9E37_79B9, tiles: 12, faulty: 0, requests: 12, slice: 700, ahead: false, late: None };
    let (plain, _) = outcome(run, 1);
    for threads in [1, 3] {
        let counts = Arc::new(Mutex::new(Executed::default()));
        let observer = Box::new(counts.clone());
        let (mut instructions, mut cycles) = (0, 0);
        let after = |chip: &mut Chip| {
            chip.settle_observers();
            (instructions, cycles) = (chip.stats().instructions, chip.stats().cycles);
        };
        let (counted, _) = outcome_before(run, threads, |chip| chip.observe(observer), after);
        assert_eq!(counted, plain);
        let counts = counts.lock().expect("nothing panics");
        // The last instruction of a core may have been counted and not be done.
        let under_way = counts.executed - instructions;
        assert!(instructions > 1000 && under_way <= run.tiles as u64, "{under_way} of {instructions}");
        // Every instruction takes a cycle; together those of a core do not take more
        // than there are.
        assert!(counts.executed <= counts.cycles + under_way && counts.cycles <= cycles * run.tiles as u64);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6))]

    #[test]
    fn random_traffic_is_the_same_on_any_number_of_threads(
        seed: u32, tiles in 9_usize..30, faulty in 0_usize..3, requests in 1_u32..10, slice in 50_u64..3000
    ) {
        is_the_same_on_any_number_of_threads(Run { seed, tiles, faulty, requests, slice, ahead: slice.is_multiple_of(2), late: None });
    }

    #[test]
    fn late_cores_are_late_in_the_same_way_on_any_number_of_threads(
        seed: u32, tiles in 9_usize..30, requests in 1_u32..10, slice in 50_u64..3000, most in 1_u64..3000
    ) {
        let late = Some(LateCores { seed: seed.into(), most });
        let run = Run { seed, tiles, faulty: 0, requests, slice, ahead: slice.is_multiple_of(2), late };
        let (outcome, _) = is_the_same_on_any_number_of_threads(run);
        let punctual = Run { late: None, ..run };
        prop_assert!(outcome != self::outcome(punctual, 1).0, "nobody was late");
    }

    #[test]
    fn a_host_sees_the_same_whether_nodes_run_ahead_of_it_or_not(
        seed: u32, tiles in prop_oneof![Just(1_usize), 2_usize..20], faulty in 0_usize..3, requests in 1_u32..10, slice in 1_u64..90
    ) {
        let run = Run { seed, tiles, faulty, requests, slice, ahead: false, late: None };
        let ahead = Run { ahead: true, ..run };
        let (with, without) = (outcome(ahead, 1).0, outcome(run, 1).0);
        prop_assert_eq!(&with.seen, &without.seen);
        prop_assert_eq!(&with.fault, &without.fault);
        if without.fault.is_none() {
            // Tiles that ran ahead of a fault have done more.
            prop_assert_eq!(with.of_other_windows(), without.of_other_windows());
        }
    }
}
