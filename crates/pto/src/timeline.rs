//! A run as a timeline.
//!
//! A track for each core, on which whole operations (TPUSH, TPOP, ...) hold what they are made of:
//! waits, transfers, sets. Arrows lead from the transfer into a slot to the transfer out of it; a
//! counter for each way and Vector says how many tiles are in slots and not popped.
//!
//! No document says how long a cycle is, so one is shown as a nanosecond.

use crate::core_id::Lanes;
use crate::{CoreId, Event, EventKind, Fault, Lane};
use std::collections::BTreeMap;
use tilework_timeline::{Arrow, Clock, Timeline, Track};

/// The events of a run as a timeline, and the fault that ended it, if one did: as open slices of
/// the cores that wait for ever, or as an instant.
pub fn timeline(events: &[Event], fault: Option<&Fault>) -> Timeline {
    let mut timeline = Timeline::new(Clock::one_ns("cycle"));
    let cluster = timeline.track("cluster", None);
    let tracks = CoreId::ALL.map(|core| timeline.track(&core.to_string(), Some(cluster)));
    let arrows = arrows(&mut timeline, events);
    // Of two events of equal span the one that is told first is shown around the other: whole
    // operations first.
    let (whole, parts): (Vec<_>, Vec<_>) = events.iter().enumerate().partition(|(_, event)| event.pipe.is_none());
    for (index, event) in whole.into_iter().chain(parts) {
        let arrows = arrows.get(&index).map_or(&[][..], Vec::as_slice);
        slice(&mut timeline, tracks[event.core.index()], event, arrows);
    }
    counters(&mut timeline, cluster, events);
    if let Some(fault) = fault {
        show_fault(&mut timeline, cluster, tracks, fault, events);
    }
    timeline
}

fn slice(timeline: &mut Timeline, track: Track, event: &Event, arrows: &[End]) {
    let name = if event.kind == EventKind::Work { &event.name } else { event.kind.name() };
    let mut slice = timeline.slice(track, event.start, event.end, name);
    if event.kind != EventKind::Work && !event.name.is_empty() {
        slice = slice.arg("ring", &*event.name);
    }
    if let Some(pipe) = event.pipe {
        slice = slice.arg("pipe", &pipe.to_string());
    }
    for (key, value) in [("tile", event.tile), ("slot", event.slot), ("semaphore", event.semaphore.map(u32::from))] {
        if let Some(value) = value {
            slice = slice.arg(key, value);
        }
    }
    for end in arrows {
        slice = match *end {
            End::From(arrow) => slice.from_here(arrow),
            End::To(arrow) => slice.to_here(arrow),
        };
    }
}

/// Which end of an arrow is at an event.
enum End {
    From(Arrow),
    To(Arrow),
}

fn lanes(core: CoreId) -> Lanes {
    core.lane().map_or(Lanes::BOTH, Lanes::one)
}

/// What is asked of a tile on its way to or from a Vector: way, tile, Vector.
type Key<'a> = (&'a str, u32, Lane);

/// The events of this kind by tile, in their order.
fn of_kind(events: &[Event], kind: EventKind) -> impl Iterator<Item = (Key<'_>, usize)> {
    let of = events.iter().enumerate().filter(move |(_, event)| event.kind == kind);
    of.flat_map(|(index, event)| {
        let tile = event.tile.into_iter();
        tile.flat_map(move |tile| lanes(event.core).iter().map(move |lane| ((&*event.name, tile, lane), index)))
    })
}

/// The last event that wrote each tile.
fn written(events: &[Event]) -> BTreeMap<Key<'_>, usize> {
    of_kind(events, EventKind::Write).collect()
}

/// The arrows at each event: from the last that wrote a tile to the first that read it.
fn arrows(timeline: &mut Timeline, events: &[Event]) -> BTreeMap<usize, Vec<End>> {
    let mut read = BTreeMap::new();
    for (key, index) in of_kind(events, EventKind::Read) {
        read.entry(key).or_insert(index);
    }
    let mut ends: BTreeMap<usize, Vec<End>> = BTreeMap::new();
    for (key, from) in written(events) {
        let Some(to) = read.get(&key) else { continue };
        let arrow = timeline.arrow();
        ends.entry(from).or_default().push(End::From(arrow));
        ends.entry(*to).or_default().push(End::To(arrow));
    }
    ends
}

/// Tiles that were written and not popped, for each way and Vector.
fn counters(timeline: &mut Timeline, cluster: Track, events: &[Event]) {
    let written = written(events);
    let mut changes: BTreeMap<(&str, Lane), Vec<(u64, i64)>> = BTreeMap::new();
    let added = written.iter().map(|(key, &index)| (*key, index, 1));
    let popped = of_kind(events, EventKind::Pop).filter(|(key, _)| written.contains_key(key));
    for ((way, _, lane), index, change) in added.chain(popped.map(|(key, index)| (key, index, -1))) {
        changes.entry((way, lane)).or_default().push((events[index].end, change));
    }
    for ((way, lane), mut changes) in changes {
        // A tile is written before it is popped, also within one cycle.
        changes.sort_by_key(|&(cycle, change)| (cycle, -change));
        let name = format!("{way}, {}", CoreId::vector(lane));
        let track = timeline.counter_track(&name, Some(cluster), "tiles");
        let mut tiles = 0;
        timeline.count(track, 0, tiles);
        for (cycle, change) in changes {
            tiles += change;
            timeline.count(track, cycle, tiles);
        }
    }
}

fn show_fault(timeline: &mut Timeline, cluster: Track, tracks: [Track; 3], fault: &Fault, events: &[Event]) {
    let last = |core: Option<CoreId>| {
        let of = events.iter().filter(|event| core.is_none_or(|core| event.core == core));
        of.map(|event| event.end).max().unwrap_or(0)
    };
    if let Fault::Deadlock(deadlock) = fault {
        for wait in &deadlock.waits {
            let what = wait.to_string();
            timeline.open(tracks[wait.core.index()], last(Some(wait.core)), "waits for ever").arg("what", &what);
        }
    } else {
        timeline.instant(cluster, last(None), "fault").arg("what", &fault.to_string());
    }
}

#[cfg(test)]
mod tests {
    use super::timeline;
    use crate::examples::{Example, RoundTrip, Setting};
    use crate::{Arch, Config};
    use tilework_timeline::Format;

    fn setting(arch: Arch, slots: u32) -> Setting {
        Setting { slots, ..Setting::new(Config::new(arch, 7)) }
    }

    fn text(timeline: &tilework_timeline::Timeline) -> String {
        let mut out = Vec::new();
        timeline.write(Format::Text, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn every_example_makes_a_timeline_whose_counters_end_at_zero() {
        for arch in Arch::ALL {
            for example in Example::ALL {
                let run = example.run(&setting(arch, 3));
                let text = text(&timeline(&run.events, None));
                let counters = text.lines().filter(|line| line.starts_with("# counter")).count();
                let rings = if matches!(example, Example::Flash | Example::FlashF32) { 3 } else { 1 };
                let ways = if example == Example::RoundTrip { 2 } else { rings };
                assert_eq!(counters, 2 * ways, "{example:?}");
                for name in text.lines().filter_map(|line| line.strip_prefix("# counter ")) {
                    let name = name.split(" [").next().unwrap();
                    let values: Vec<i64> = text
                        .lines()
                        .filter_map(|line| {
                            line.split_once(' ')?.1.strip_prefix(name)?.strip_prefix(" = ")?.parse().ok()
                        })
                        .collect();
                    assert!(values.iter().all(|v| (0..=3).contains(v)), "{name}: {values:?}");
                    assert_eq!((values.first(), values.last()), (Some(&0), Some(&0)), "{name}");
                }
                let words = || text.lines().filter(|line| !line.starts_with('#')).flat_map(str::split_whitespace);
                let ends = |end: fn(&str) -> Option<&str>| {
                    let mut ends: Vec<u32> = words().filter_map(|word| end(word)?.parse().ok()).collect();
                    ends.sort_unstable();
                    ends
                };
                let (from, to) = (ends(|word| word.strip_suffix('>')), ends(|word| word.strip_prefix('>')));
                assert!(from.len() >= 2 * 8, "{example:?}: {} arrows", from.len());
                assert_eq!(from, to, "every arrow has two ends");
            }
        }
    }

    #[test]
    fn a_deadlock_is_open_slices_of_those_who_wait() {
        let example = RoundTrip { ahead: 7, ..RoundTrip::of_seed(1) };
        let run = example.run(&setting(Arch::A5, 1));
        let fault = run.outcome.unwrap_err();
        let text = text(&timeline(&run.events, Some(&fault)));
        let waits: Vec<_> = text.lines().filter(|line| line.contains("waits for ever")).collect();
        assert_eq!(waits.len(), 3);
        for (line, core) in waits.iter().zip(["Cube", "Vector 0", "Vector 1"]) {
            assert!(waits.iter().any(|line| line.contains(&format!(" +? cluster/{core}: "))), "{line}");
        }
    }
}
