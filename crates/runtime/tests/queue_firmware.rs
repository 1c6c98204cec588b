//! The command queue's firmware under load: random streams, every offset, every wrap, every way to
//! fail.
//!
//! Prefetcher, dispatcher and subordinate run as the built-in images on the simulated chip. A host
//! sends them records over the real rings; workers' L1, DRAM and the completion FIFO are compared
//! with a model that knows the documents only ([`shadow`]), and at the end of each stream all
//! credits must be accounted for. Streams come from fixed seeds, so a failure repeats.
//!
//! Tests named `issue_<number>` stand for defects that were reported against tt-metal.

#[path = "queue_firmware/random.rs"]
mod random;
#[path = "queue_firmware/rig.rs"]
mod rig;
#[path = "queue_firmware/shadow.rs"]
mod shadow;
#[path = "queue_firmware/sources.rs"]
mod sources;

#[path = "queue_firmware/captures.rs"]
mod captures;
#[path = "queue_firmware/corrupted.rs"]
mod corrupted;
#[path = "queue_firmware/exec.rs"]
mod exec;
#[path = "queue_firmware/faults.rs"]
mod faults;
#[path = "queue_firmware/late.rs"]
mod late;
#[path = "queue_firmware/layouts.rs"]
mod layouts;
#[path = "queue_firmware/regressions.rs"]
mod regressions;
#[path = "queue_firmware/relays.rs"]
mod relays;
#[path = "queue_firmware/speed.rs"]
mod speed;
#[path = "queue_firmware/sync.rs"]
mod sync;
#[path = "queue_firmware/wraps.rs"]
mod wraps;

use random::Random;
use rig::Rig;
use tilework_abi::board::Board;
use tilework_abi::cq::layout::{DONE_STREAM, QueueId, WORKER_SEMS};
use tilework_abi::cq::tiles::{DispatchLayout, QueueTiles};
use tilework_abi::l1::GO_ENTRIES;
use tilework_cq::DispatchCommand;
use tilework_cq::dispatch::{GoSignal, NotifySubordinate, NumWorkerSems};

/// One step of a random stream.
fn random_step(rig: &mut Rig, random: &mut Random) {
    match random.below(22) {
        0..=15 => random_command(rig, random),
        16 => rig.event(),
        17 => {
            let steps = random.below(8);
            exec::random_buffer(rig, random, steps);
        }
        18..=19 => subordinate_step(rig, random),
        _ => rig.collect(),
    }
}

/// Sends a random command, or a few that belong together.
fn random_command(rig: &mut Rig, random: &mut Random) {
    match random.below(16) {
        0..=5 => rig.send(&random.any_write()),
        6..=9 => {
            let bytes = random.size(200_000);
            let sourced = random.sourced(&rig.shadow, bytes);
            rig.send_from(&sourced, random.coin());
        }
        10 => {
            let (fills, relays) = exec::random_ring(random, &rig.shadow);
            rig.send_ring(&fills, &relays);
        }
        11..=12 => rig.send(&random.other()),
        13..=14 => {
            let bytes = random.size(20_000);
            let form = random.one_of(&random::Form::ALL);
            let command = random.write(form, bytes);
            cut(rig, random, &command);
        }
        _ => rig.stall(),
    }
}

/// A command for the subordinate; go messages that nobody obeys, which the dispatcher allows before
/// or after they were sent.
fn subordinate_step(rig: &mut Rig, random: &mut Random) {
    match random.below(4) {
        0 => {
            let words = (0..random.below(257)).map(|_| random.worker().encode()).collect();
            rig.send_subordinate(&DispatchCommand::SetGoSignalNocData(words));
        }
        1 => rig.send_subordinate(&DispatchCommand::SetNumWorkerSems(NumWorkerSems { count: WORKER_SEMS })),
        _ => {
            let (index, entry) = (random.below(WORKER_SEMS), 1 + random.below(GO_ENTRIES - 1));
            let go_signal = random.below(u32::MAX);
            let go = DispatchCommand::SendGoSignal(GoSignal {
                go_signal,
                multicast_go_offset: Some(entry as u8),
                num_unicast_txns: 0,
                noc_data_start_index: 0,
                wait_count: 0,
                wait_stream: DONE_STREAM + index,
            });
            let notify = NotifySubordinate { wait: random.coin(), index_bitmask: 1 << index };
            let notify = DispatchCommand::NotifySubordinateGoSignal(notify);
            if random.coin() {
                rig.send(&notify);
                rig.send_subordinate(&go);
            } else {
                rig.send_subordinate(&go);
                rig.send(&notify);
            }
            rig.go_words[entry as usize] = go_signal;
        }
    }
}

/// Sends a command in up to four relays. The header of a packed write and its targets stay in one
/// page, so any cut is right.
fn cut(rig: &mut Rig, random: &mut Random, command: &DispatchCommand) {
    let bytes = command.to_bytes().unwrap().len();
    let units = bytes.div_ceil(16) as u32;
    let mut cuts: Vec<usize> = (0..random.below(4)).map(|_| 16 * random.below(units) as usize).collect();
    cuts.retain(|&at| at != 0);
    cuts.sort_unstable();
    cuts.dedup();
    let together = random.coin();
    rig.send_cut(command, &cuts, together);
}

/// Says how to repeat the stream of a seed that fails.
struct Named(Board, QueueTiles, u64);

impl Drop for Named {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let Self(board, QueueTiles { layout, queue }, seed) = *self;
            let test = match (layout, queue) {
                (_, QueueId::SECOND) => "documents_say_on_the_second_queue".to_owned(),
                (DispatchLayout::Dispatcher, _) => format!("documents_say_on_{}", board.spec().name),
                _ => "documents_say_in_every_layout".to_owned(),
            };
            eprintln!(
                "{layout}, queue {queue}: TILEWORK_SEED={seed} cargo test -p tilework-runtime --test queue_firmware {test}"
            );
        }
    }
}

fn random_stream(board: Board, layout: DispatchLayout, seed: u64, steps: u32) {
    stream_on(board, layout.queue(QueueId::FIRST), seed, steps);
}

fn stream_on(board: Board, tiles: QueueTiles, seed: u64, steps: u32) {
    let _named = Named(board, tiles, seed);
    let mut rig = Rig::boot_on(board, tiles.layout, tiles.queue);
    let mut random = Random::beside(board, rig.queues, seed);
    for step in 0..steps {
        random_step(&mut rig, &mut random);
        if step % 100 == 99 {
            rig.finish();
        }
    }
    rig.finish();
    rig.terminate();
}

/// The seeds of a test: `usual` from `first` on, or the one that `TILEWORK_SEED` names, or as many
/// as `TILEWORK_SEEDS` says.
fn seeds(first: u64, usual: u64) -> std::ops::Range<u64> {
    let number = |name| std::env::var(name).ok().map(|value| value.parse::<u64>().unwrap());
    match number("TILEWORK_SEED") {
        Some(seed) => seed..seed + 1,
        None => first..first + number("TILEWORK_SEEDS").unwrap_or(usual),
    }
}

#[test]
fn random_streams_leave_the_memory_that_the_documents_say_on_p100() {
    seeds(0, 12).for_each(|seed| random_stream(Board::P100, DispatchLayout::Dispatcher, seed, 300));
}

#[test]
fn random_streams_leave_the_memory_that_the_documents_say_on_p150() {
    seeds(100_000, 12).for_each(|seed| random_stream(Board::P150, DispatchLayout::Dispatcher, seed, 300));
}

#[test]
fn random_streams_leave_the_memory_that_the_documents_say_in_every_layout() {
    for (first, layout) in (200_000..).step_by(100_000).zip(DispatchLayout::ALL) {
        for seed in seeds(first, 3) {
            random_stream(Board::P100, layout, seed, 300);
            random_stream(Board::P150, layout, seed + 50_000, 300);
        }
    }
}

/// In every layout, with an idle queue beside it.
#[test]
fn random_streams_leave_the_memory_that_the_documents_say_on_the_second_queue() {
    for (first, layout) in (600_000..).step_by(100_000).zip(DispatchLayout::ALL) {
        for seed in seeds(first, 2) {
            let board = if seed % 2 == 0 { Board::P100 } else { Board::P150 };
            stream_on(board, layout.queue(QueueId::SECOND), seed, 300);
        }
    }
}

#[test]
fn the_same_stream_takes_the_same_cycles() {
    let run = || {
        let mut rig = Rig::boot(Board::P100);
        let mut random = Random::new(Board::P100, 7);
        (0..60).for_each(|_| random_step(&mut rig, &mut random));
        rig.finish();
        rig.card.link().stats()
    };
    assert_eq!(run(), run());
}
