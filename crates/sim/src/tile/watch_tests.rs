//! What cores that sleep are woken by, and what is beside that.

use super::tests::{
    FLAG, RESULT, insn, li, load_program, pause, poller_of, release, run, tile, without_periodic_flush, word,
};
use super::watches::{COPROCESSOR, CoreSet, Watches};
use super::*;
use proptest::prelude::*;
use std::ops::Range;
use tilework_abi::stream;
use tilework_riscv::Op;

/// Beside the byte that a core waits for.
const NEIGHBOUR: i32 = FLAG + 1;
/// The first register of a stream that keeps what is written.
const SCRATCH: u32 = stream::reg::SCRATCH;

/// Stores 1, 2, ... `times` to `addr` with `store`, and then 1 to `last`.
fn neighbour(store: Op, addr: u32, times: i32, last: u32) -> Vec<u32> {
    let mut words = Vec::new();
    words.extend(li(6, addr.cast_signed()));
    words.extend(li(7, last.cast_signed()));
    words.extend(li(8, times));
    words.extend(pause(40));
    words.push(insn(Op::Addi, 9, 9, 0, 1));
    words.push(insn(store, 0, 6, 9, 0));
    words.push(insn(Op::Bne, 0, 9, 8, -6 * 4));
    words.push(insn(Op::Addi, 9, 0, 0, 1));
    words.push(insn(store, 0, 7, 9, 0));
    words.push(insn(Op::Jal, 0, 0, 0, 0));
    words
}

/// What the waiter saw, and how many instructions it executed, when the other core stores so often
/// to a neighbour of what it waits for.
fn woken(load: Op, store: Op, (addr, beside): (u32, u32), times: i32, parking: bool) -> (u32, u64) {
    let mut tile = tile(parking);
    load_program(&mut tile, 0, &poller_of(true, load, addr.cast_signed()));
    load_program(&mut tile, 0x1_2000, &neighbour(store, beside, times, addr));
    release(&mut tile, &[Processor::Brisc, Processor::Ncrisc], 5);
    run(&mut tile, 10_000);
    (word(&tile, RESULT), tile.slots[0].core.retired)
}

#[test]
fn a_store_beside_what_a_core_waits_for_does_not_wake_it() {
    let stream = |id| stream::reg_addr(id, SCRATCH);
    let bytes = (Op::Lbu, Op::Sb, (FLAG as u32, NEIGHBOUR as u32));
    let streams = (Op::Lw, Op::Sw, (stream(9), stream(10)));
    for (load, store, at) in [bytes, streams] {
        let (few, executed) = woken(load, store, at, 2, true);
        let (many, executed_beside_many) = woken(load, store, at, 50, true);
        assert!(few != 0 && many > few);
        // An iteration more or less before it sleeps; each wake-up would be one at least.
        assert!(executed.abs_diff(executed_beside_many) < 10, "{load:?} {at:x?}: {executed} {executed_beside_many}");
        for times in [2, 50] {
            let slept = woken(load, store, at, times, true).0;
            assert_eq!(slept, woken(load, store, at, times, false).0, "{load:?} {at:x?}");
        }
    }
}

#[test]
fn a_store_to_the_same_stream_wakes() {
    let (first, second) = (stream::reg_addr(9, SCRATCH), stream::reg_addr(9, SCRATCH + 1));
    let [few, many] = [2, 50].map(|times| woken(Op::Lw, Op::Sw, (first, second), times, true));
    assert!(many.1 > few.1 + 48, "one register may stand for another: {few:?} {many:?}");
}

/// The loop leaves before it empties the cache: what it loads then beside a word that it has waited
/// for comes from a line of the iteration before, and is as old as that. The core that stores comes
/// first in a cycle, so that the loop may end with its first load.
#[test]
fn a_line_in_the_cache_is_as_old_as_if_the_core_had_polled() {
    // Another line of 64 bytes of L1, and of the cache.
    const OTHER: i32 = FLAG + 0x50;
    let mut seen = Vec::new();
    for (n, more) in (1..60).flat_map(|n| (0..4).map(move |more| (n, more))) {
        let outcome = |parking| {
            let mut words = Vec::from(without_periodic_flush());
            words.extend(li(10, FLAG));
            words.extend(li(15, OTHER));
            words.extend(li(16, RESULT));
            words.push(insn(Op::Lw, 13, 10, 0, 0));
            words.push(insn(Op::Bne, 0, 13, 0, 4 * 4));
            words.push(insn(Op::Fence, 0, 0, 0, 0));
            words.push(insn(Op::Lw, 14, 15, 0, 0));
            words.push(insn(Op::Jal, 0, 0, 0, -4 * 4));
            words.push(insn(Op::Lw, 17, 15, 0, 4));
            words.push(insn(Op::Sw, 0, 16, 17, 0));
            words.push(insn(Op::Jal, 0, 0, 0, 0));
            let mut tile = tile(parking);
            load_program(&mut tile, 0x1_2000, &words);
            let mut words = Vec::from(pause(300));
            words.extend(li(6, OTHER));
            words.extend(li(7, FLAG));
            words.push(insn(Op::Addi, 9, 0, 0, 7));
            words.push(insn(Op::Sw, 0, 6, 9, 4));
            words.extend(pause(n));
            words.extend((0..more).map(|_| insn(Op::Addi, 0, 0, 0, 0)));
            words.push(insn(Op::Sw, 0, 7, 9, 0));
            words.push(insn(Op::Jal, 0, 0, 0, 0));
            load_program(&mut tile, 0, &words);
            release(&mut tile, &[Processor::Brisc, Processor::Ncrisc], 5);
            run(&mut tile, 3000);
            (word(&tile, RESULT), tile.slots[1].core.skipped)
        };
        let (slept, polled) = (outcome(true), outcome(false));
        assert_eq!(slept.0, polled.0, "pause of {n} and {more} instructions");
        assert!(slept.1 > 20, "it sleeps");
        seen.push(polled.0);
    }
    assert!(seen.contains(&7), "the line is refreshed by polling");
}

/// A sleeper with the bytes that it watches.
type Sleeper = (usize, Range<u32>);

fn span() -> impl Strategy<Value = Range<u32>> {
    let l1 = (0..600u32, 1..80u32).prop_map(|(start, len)| start..start + len);
    let stream = (0..stream::COUNT, 0..4u32).prop_map(|(id, reg)| {
        let addr = stream::reg_addr(id, SCRATCH + reg);
        addr..addr + 4
    });
    prop_oneof![l1, stream]
}

/// Whether a write of one span changes something in the other.
fn concerns(a: &Range<u32>, b: &Range<u32>) -> bool {
    let stream = |span: &Range<u32>| (span.start >= stream::BASE).then(|| (span.start - stream::BASE) / stream::STRIDE);
    match (stream(a), stream(b)) {
        (None, None) => a.start < b.end && b.start < a.end,
        (a, b) => a == b,
    }
}

proptest! {
    /// Beside a list that is searched every time.
    #[test]
    fn those_that_a_write_concerns_are_found(
        steps in prop::collection::vec((0..=COPROCESSOR, span(), 0..4u8), 1..60),
    ) {
        let mut tile = tile(true);
        let fabric = &mut tile.shared.fabric;
        let (mut list, mut bare): (Vec<Sleeper>, _) = (Vec::new(), Watches::default());
        for (sleeper, span, how) in steps {
            if how == 0 {
                fabric.unwatch(sleeper);
                bare.remove(sleeper, |_, _| ());
                list.retain(|(other, _)| *other != sleeper);
            } else if how < 3 {
                fabric.watch(sleeper, span.clone());
                bare.add(sleeper, span.clone());
                list.push((sleeper, span.clone()));
            }
            let found = |span: &Range<u32>| {
                let concerned = list.iter().filter(|(_, watched)| concerns(watched, span));
                concerned.fold(0, |set: CoreSet, (sleeper, _)| set | 1 << sleeper)
            };
            prop_assert_eq!(fabric.sleepers_on(span.start.into(), span.len() as u32), found(&span));
            prop_assert_eq!(bare.has_sleepers(), !list.is_empty());
            let bare_found = if span.start < map::L1_SIZE { bare.on_l1(span.clone()) } else { bare.on_registers(span.start, 4) };
            prop_assert_eq!(bare_found, found(&span));
        }
        // Whoever asks again and again, as a wait gate does, is in the list once.
        let once = bare.clone();
        list.iter().for_each(|(sleeper, span)| _ = bare.add(*sleeper, span.clone()));
        prop_assert_eq!(once, bare.clone());
        // Nothing stays marked.
        (0..=COPROCESSOR).for_each(|sleeper| fabric.unwatch(sleeper));
        prop_assert!((0..700).all(|addr| fabric.unmarked(addr, 1).is_some()));
    }
}
