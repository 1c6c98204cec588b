//! Programs of a few instructions on one tile: the order among its cores, sleep and waking, caches,
//! resets.

use super::*;
use crate::noc::{Body, Data, Dest};
use crate::probe::RequestId;
use tilework_abi::stream;
use tilework_riscv::{Insn, Op, encode};

pub(super) const FLAG: i32 = 0x1000;
pub(super) const RESULT: i32 = 0x2000;

pub(super) fn place() -> Place {
    Place { node: 0, x: 1, y: 2 }
}

pub(super) fn tile(parking: bool) -> Tile {
    let grid = Grid::builder().add(place(), NocXy::new(1, 2)).build().expect("one tile fits");
    let mut tile = Tile::new(place(), NocXy::new(1, 2), 0, &Arc::new(grid), &CodeBook::new());
    tile.set_parking(parking);
    tile
}

pub(super) fn insn(op: Op, rd: u8, rs1: u8, rs2: u8, imm: i32) -> u32 {
    encode(Insn { op, rd, rs1, rs2, imm }).expect("operands fit")
}

/// rd = value
pub(super) fn li(rd: u8, value: i32) -> [u32; 2] {
    let low = value << 20 >> 20;
    [insn(Op::Lui, rd, 0, 0, value.wrapping_sub(low)), insn(Op::Addi, rd, rd, 0, low)]
}

pub(super) fn load_program(tile: &mut Tile, at: u32, words: &[u32]) {
    for (i, word) in words.iter().enumerate() {
        tile.shared.fabric.l1_write(at + 4 * i as u32, &word.to_le_bytes());
    }
}

/// Waits for FLAG to be non-zero, then stores the wall clock to RESULT and stops.
pub(super) fn poller(fence: bool) -> Vec<u32> {
    poller_of(fence, Op::Lw, FLAG)
}

/// The same with `load` for what is at `addr`.
pub(super) fn poller_of(fence: bool, load: Op, addr: i32) -> Vec<u32> {
    let mut words = Vec::new();
    words.extend(li(10, addr));
    words.extend(li(11, RESULT));
    words.extend(li(12, tilework_abi::tensix::WALL_CLOCK_L as i32));
    let head = words.len();
    if fence {
        words.push(insn(Op::Fence, 0, 0, 0, 0));
    }
    words.push(insn(load, 13, 10, 0, 0));
    let back = (head as i32 - words.len() as i32) * 4;
    words.push(insn(Op::Beq, 0, 13, 0, back));
    words.push(insn(Op::Lw, 14, 12, 0, 0));
    words.push(insn(Op::Sw, 0, 11, 14, 0));
    words.push(insn(Op::Jal, 0, 0, 0, 0));
    words
}

/// Counts down from `n`.
pub(super) fn pause(n: i32) -> [u32; 4] {
    let [high, low] = li(11, n);
    [high, low, insn(Op::Addi, 11, 11, 0, -1), insn(Op::Bne, 0, 11, 0, -4)]
}

/// Keeps the cache from flushing itself (`cfg0`).
pub(super) fn without_periodic_flush() -> [u32; 3] {
    let [high, low] = li(5, 1 << 24);
    [high, low, insn(Op::Csrrs, 0, 5, 0, 0x7c0)]
}

/// Counts down from `n`, then stores 1 to FLAG and stops.
fn counter(n: i32) -> Vec<u32> {
    let mut words = Vec::new();
    words.extend(li(10, FLAG));
    words.extend(pause(n));
    words.push(insn(Op::Addi, 12, 0, 0, 1));
    words.push(insn(Op::Sw, 0, 10, 12, 0));
    words.push(insn(Op::Jal, 0, 0, 0, 0));
    words
}

pub(super) fn release(tile: &mut Tile, cores: &[Processor], at: Cycle) {
    let mut value = map::SOFT_RESET_ALL_CORES;
    for core in cores {
        value &= !core.soft_reset_bit();
    }
    tile.shared.fabric.debug.write(map::SOFT_RESET_0, value, false).expect("a register");
    tile.shared.fabric.reset_changed = Some(at);
    tile.handle_side_effects();
}

pub(super) fn run(tile: &mut Tile, until: Cycle) -> Outbox {
    let mut out = Outbox::default();
    tile.run(until, &mut out).expect("no fault");
    out
}

pub(super) fn word(tile: &Tile, addr: i32) -> u32 {
    let at = addr as usize;
    u32::from_le_bytes(tile.l1()[at..at + 4].try_into().expect("4 bytes"))
}

#[test]
fn a_sleeping_core_sees_a_store_in_the_same_cycle_as_a_polling_one() {
    for n in 1..150 {
        let outcome = |parking| {
            let mut tile = tile(parking);
            load_program(&mut tile, 0, &poller(true));
            load_program(&mut tile, 0x1_2000, &counter(n));
            release(&mut tile, &[Processor::Brisc, Processor::Ncrisc], 5);
            run(&mut tile, 3000);
            let stats = tile.stats();
            (word(&tile, RESULT), stats.retired, stats.skipped)
        };
        let (seen, retired, skipped) = outcome(true);
        let (polled_seen, polled_retired, _) = outcome(false);
        assert_ne!(seen, 0, "count {n}");
        assert_eq!(seen, polled_seen, "count {n}");
        // Both end in `j .`, which sleeps as well: the skipped iterations after the last wake are
        // not counted yet.
        assert!(retired + skipped <= polled_retired, "count {n}");
    }
}

#[test]
fn cutting_time_into_windows_changes_nothing() {
    let outcome = |step: Cycle| {
        let mut tile = tile(true);
        load_program(&mut tile, 0, &poller(true));
        load_program(&mut tile, 0x1_2000, &counter(57));
        release(&mut tile, &[Processor::Brisc, Processor::Ncrisc], 5);
        let mut until = 0;
        while until < 3000 {
            until += step;
            run(&mut tile, until);
        }
        word(&tile, RESULT)
    };
    let whole = outcome(3000);
    assert_ne!(whole, 0);
    for step in [1, 2, 7, 20, 333] {
        assert_eq!(outcome(step), whole, "windows of {step}");
    }
}

/// Reads the low and the latched high half of the wall clock 30 times, every so often; stores the
/// high halves as bits, and the sum of the low ones.
fn clock_reader(result: i32, pause: usize) -> Vec<u32> {
    let latched = (map::WALL_CLOCK_H_LATCHED - map::WALL_CLOCK_L) as i32;
    let mut words = Vec::new();
    words.extend(li(10, map::WALL_CLOCK_L as i32));
    words.extend(li(11, result));
    words.extend(li(12, 30));
    let head = words.len();
    words.push(insn(Op::Lw, 13, 10, 0, 0));
    words.extend(std::iter::repeat_n(insn(Op::Addi, 0, 0, 0, 0), pause));
    words.push(insn(Op::Lw, 14, 10, 0, latched));
    words.push(insn(Op::Sh1add, 15, 15, 14, 0));
    words.push(insn(Op::Add, 16, 16, 13, 0));
    words.push(insn(Op::Addi, 12, 12, 0, -1));
    words.push(insn(Op::Bne, 0, 12, 0, (head as i32 - words.len() as i32) * 4));
    words.push(insn(Op::Sw, 0, 11, 15, 0));
    words.push(insn(Op::Sw, 0, 11, 16, 4));
    words.push(insn(Op::Jal, 0, 0, 0, 0));
    words
}

#[test]
fn the_wall_clock_latches_in_the_order_of_cycles_however_time_is_cut() {
    // The high half changes while both cores read.
    let start = (1 << 32) - 150;
    let outcome = |step: Cycle| {
        let mut tile = tile(true);
        load_program(&mut tile, 0, &clock_reader(RESULT, 1));
        load_program(&mut tile, 0x1_2000, &clock_reader(RESULT + 8, 6));
        release(&mut tile, &[Processor::Brisc, Processor::Ncrisc], start);
        for until in (start..start + 2000 + step).step_by(step as usize) {
            run(&mut tile, until);
        }
        [0, 4, 8, 12].map(|at| word(&tile, RESULT + at))
    };
    let in_order = outcome(1);
    for highs in [in_order[0], in_order[2]] {
        assert!(highs.count_ones() > 5 && highs.count_ones() < 30, "{highs:#x} has both");
    }
    for step in [3, 20, 333, 2000] {
        assert_eq!(outcome(step), in_order, "windows of {step}");
    }
}

#[test]
fn without_a_fence_a_poller_never_sees_the_store_once_the_cache_stays() {
    let mut tile = tile(true);
    let mut words = Vec::from(without_periodic_flush());
    words.extend(poller(false));
    load_program(&mut tile, 0, &words);
    load_program(&mut tile, 0x1_2000, &counter(40));
    release(&mut tile, &[Processor::Brisc, Processor::Ncrisc], 5);
    run(&mut tile, 5000);
    assert_eq!(word(&tile, FLAG), 1);
    assert_eq!(word(&tile, RESULT), 0, "the stale line is never looked past");
    assert_eq!(tile.activity(Processor::Brisc), Activity::Parked);
    let waiting = tile.waiting();
    let brisc = waiting.iter().find(|w| w.core == Processor::Brisc).expect("it waits");
    assert_eq!(brisc.watched.len(), 1);
    assert!(brisc.watched[0].stale, "it looks at a copy that nobody else can change: {brisc:?}");
}

#[test]
fn a_packet_wakes_a_sleeper_as_if_it_had_polled() {
    for at in 100..160 {
        let outcome = |parking| {
            let mut tile = tile(parking);
            load_program(&mut tile, 0, &poller(true));
            release(&mut tile, &[Processor::Brisc], 5);
            let body =
                Body::WriteRequest { addr: FLAG as u64, data: Data::from([1u8, 0, 0, 0]), mask: None, reply: None };
            let packet = Packet { noc: 0, from: place(), to: Dest::Unicast(place()), id: RequestId::default(), body };
            tile.deliver(at, packet);
            run(&mut tile, 400);
            word(&tile, RESULT)
        };
        assert_ne!(outcome(true), 0);
        assert_eq!(outcome(true), outcome(false), "arrival at {at}");
    }
}

#[test]
fn a_store_to_code_takes_effect() {
    let mut tile = tile(true);
    let mut words = vec![];
    words.extend(li(10, RESULT));
    words.extend(li(11, 0x100));
    words.extend(li(12, insn(Op::Addi, 13, 0, 0, 42).cast_signed()));
    words.push(insn(Op::Jal, 0, 0, 0, 0x100 - 4 * 6)); // run it once as it is
    words.resize(0x40, 0);
    words.push(insn(Op::Addi, 13, 0, 0, 1)); // at 0x100
    words.push(insn(Op::Bne, 0, 14, 0, 16));
    words.push(insn(Op::Addi, 14, 0, 0, 1));
    words.push(insn(Op::Sw, 0, 11, 12, 0));
    words.push(insn(Op::Jal, 0, 0, 0, -16));
    words.push(insn(Op::Sw, 0, 10, 13, 0));
    words.push(insn(Op::Jal, 0, 0, 0, 0));
    load_program(&mut tile, 0, &words);
    release(&mut tile, &[Processor::Brisc], 0);
    run(&mut tile, 1000);
    assert_eq!(word(&tile, RESULT), 42);
}

#[test]
fn a_core_sleeps_on_a_stream_register() {
    let mut tile = tile(true);
    let available = stream::reg_addr(48, stream::SPACE_AVAILABLE);
    let mut words = vec![];
    words.extend(li(10, available.cast_signed()));
    words.extend(li(11, RESULT));
    words.push(insn(Op::Lw, 13, 10, 0, 0));
    words.push(insn(Op::Beq, 0, 13, 0, -4));
    words.push(insn(Op::Sw, 0, 11, 13, 0));
    words.push(insn(Op::Jal, 0, 0, 0, 0));
    load_program(&mut tile, 0, &words);
    release(&mut tile, &[Processor::Brisc], 0);
    run(&mut tile, 500);
    assert_eq!(tile.activity(Processor::Brisc), Activity::Parked);
    let body = Body::WriteRequest {
        addr: u64::from(stream::reg_addr(48, stream::SPACE_AVAILABLE_UPDATE)),
        data: Data::from((3u32 << stream::UPDATE_INC_SHIFT).to_le_bytes()),
        mask: None,
        reply: None,
    };
    tile.deliver(1000, Packet { noc: 1, from: place(), to: Dest::Unicast(place()), id: RequestId::default(), body });
    run(&mut tile, 1500);
    assert_eq!(word(&tile, RESULT), 3);
}

#[test]
fn a_fault_names_tile_core_pc_and_cycle() {
    let mut tile = tile(true);
    load_program(&mut tile, 0, &[insn(Op::Addi, 1, 0, 0, 1), 0]);
    release(&mut tile, &[Processor::Brisc], 0);
    let fault = tile.run(1000, &mut Outbox::default()).expect_err("word 0 pushes a Tensix instruction");
    assert_eq!(fault.site.tile, Some(NocXy::new(1, 2)));
    assert_eq!(fault.site.core, Some(Processor::Brisc));
    assert_eq!(fault.site.pc, Some(4));
    assert!(fault.site.cycle.is_some());
}

fn to_self(body: Body) -> Packet {
    Packet { noc: 0, from: place(), to: Dest::Unicast(place()), id: RequestId::default(), body }
}

pub(super) fn write_word(addr: u32, value: u32) -> Packet {
    let data = Data::from(value.to_le_bytes());
    to_self(Body::WriteRequest { addr: addr.into(), data, mask: None, reply: None })
}

/// A read over the NoC whose answer comes back to the tile and is written to `to`.
pub(super) fn read_word(addr: u32, to: i32) -> Packet {
    let reply = crate::noc::Reply { to: place(), trid: 0, addr: to as u64 };
    to_self(Body::ReadRequest { addr: addr.into(), len: 4, reply })
}

/// The word that the only read in `out` answers.
pub(super) fn answer(mut out: Outbox) -> u32 {
    let Some(Body::ReadResponse { data, .. }) = out.take_all().pop().map(|d| d.packet.body) else {
        panic!("no answer")
    };
    u32::from_le_bytes(data[..].try_into().expect("4 bytes"))
}

/// Asks for a register at cycle `at` of a tile whose BRISC polls and whose NCRISC counts.
fn asked(parking: bool, step: Cycle, at: Cycle, before: Option<Packet>, addr: u32) -> u32 {
    let mut tile = tile(parking);
    load_program(&mut tile, 0, &poller(true));
    load_program(&mut tile, 0x1_2000, &counter(1000));
    release(&mut tile, &[Processor::Brisc, Processor::Ncrisc], 5);
    if let Some(before) = before {
        tile.deliver(10, before);
    }
    tile.deliver(at, read_word(addr, RESULT));
    let mut until = 0;
    while until + step <= at {
        until += step;
        run(&mut tile, until);
    }
    answer(run(&mut tile, at + 1))
}

#[test]
fn program_counters_are_those_of_the_cycle_in_which_they_are_asked_for() {
    let head = 4 * 6;
    for at in 300..330 {
        let snapshot = |parking, step| asked(parking, step, at, None, map::PC_SNAPSHOT);
        let pc = snapshot(true, 1000);
        assert!((head..head + 12).contains(&pc), "BRISC is in its poll loop: {pc:#x} at {at}");
        assert_eq!(pc, snapshot(false, 1000), "parked or not, at {at}");
        assert_eq!(pc, snapshot(true, 7), "windows of 7, at {at}");
        let ncrisc = asked(true, 1000, at, None, map::PC_SNAPSHOT + 4);
        assert!((0x1_2010..0x1_2018).contains(&ncrisc), "NCRISC is in its loop: {ncrisc:#x} at {at}");
        assert_eq!(asked(true, 1000, at, None, map::PC_SNAPSHOT + 8), 0, "TRISC0 is held");
    }
}

#[test]
fn the_debug_daisychain_shows_program_counters() {
    const CNTL: u32 = 0xFFB1_2054;
    const DATA: u32 = 0xFFB1_205C;
    let select = |signal: u32, word: u32| 1 << 29 | word << 25 | 7 << 16 | signal;
    let at = 311;
    let shown = |control| asked(true, 1000, at, Some(write_word(CNTL, control)), DATA);
    // The selectors of the public debugger (tt-exalens, brisc_pc and ncrisc_pc): group B, bits 32
    // to 61.
    for (core, signal) in [(0, 11), (1, 25)] {
        let pc = asked(true, 1000, at, None, map::PC_SNAPSHOT + 4 * core);
        assert_eq!(shown(select(signal, 1)), pc | 1 << 31, "group B: an instruction enters decode");
        assert_eq!(shown(select(signal, 3)), 1 << 7);
        assert_eq!(shown(select(signal - 1, 0)), pc, "group A: nothing waits to retire");
        assert_eq!(shown(select(signal - 1, 2)), pc, "group A: the next fetch");
        assert_eq!(shown(select(signal, 1) & !(1 << 29)), 0, "not enabled");
    }
    assert_eq!(shown(select(13, 1)), 0, "TRISC0 is held");
    assert_eq!(shown(1 << 29 | 6 << 16 | 9), 0, "a signal that is not there");
}

#[test]
fn a_core_that_asks_for_a_program_counter_is_told_that_it_cannot() {
    let mut tile = tile(true);
    let mut words = vec![];
    words.extend(li(10, map::PC_SNAPSHOT.cast_signed()));
    words.push(insn(Op::Lw, 13, 10, 0, 4));
    load_program(&mut tile, 0, &words);
    release(&mut tile, &[Processor::Brisc], 0);
    let fault = tile.run(1000, &mut Outbox::default()).expect_err("modelled for packets only");
    assert_eq!(fault.class, FaultClass::UnimplementedFunctionality);
    assert_eq!(fault.site.addr, Some(u64::from(map::PC_SNAPSHOT) + 4));
}

#[test]
fn a_released_core_starts_at_the_same_cycle_however_time_is_cut() {
    let outcome = |step: Cycle| {
        let mut tile = tile(true);
        // BRISC releases NCRISC and then works by itself; NCRISC stores the cycle at which it runs.
        let mut words = Vec::new();
        words.extend(li(10, map::SOFT_RESET_0.cast_signed()));
        words.extend(li(11, (map::SOFT_RESET_ALL_CORES & !(1 << 18 | 1 << 11)).cast_signed()));
        words.extend(li(12, 500));
        words.push(insn(Op::Sw, 0, 10, 11, 0));
        words.push(insn(Op::Addi, 12, 12, 0, -1));
        words.push(insn(Op::Bne, 0, 12, 0, -4));
        words.push(insn(Op::Jal, 0, 0, 0, 0));
        load_program(&mut tile, 0, &words);
        let mut words = Vec::new();
        words.extend(li(10, RESULT));
        words.extend(li(12, map::WALL_CLOCK_L.cast_signed()));
        words.push(insn(Op::Lw, 13, 12, 0, 0));
        words.push(insn(Op::Sw, 0, 10, 13, 0));
        words.push(insn(Op::Jal, 0, 0, 0, 0));
        load_program(&mut tile, 0x1_2000, &words);
        release(&mut tile, &[Processor::Brisc], 5);
        let mut until = 0;
        while until < 3000 {
            until += step;
            run(&mut tile, until);
        }
        word(&tile, RESULT)
    };
    let whole = outcome(3000);
    for step in [1, 7, 100] {
        assert_eq!(outcome(step), whole, "windows of {step}");
    }
}
