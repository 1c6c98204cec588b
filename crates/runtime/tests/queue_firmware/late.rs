//! Packets that are late, in every way that the documents allow (`LatePackets` of the simulator):
//! what the firmware waits for is enough, and nothing depends on how fast a route is.

use crate::random::{Form, Random};
use crate::rig::Rig;
use crate::{cut, random_step};
use tilework_abi::board::Board;
use tilework_abi::cq::layout::QueueId;
use tilework_abi::noc::NocXy;
use tilework_cq::DispatchCommand;
use tilework_cq::dispatch::{PackedTargets, PackedWrite, Packets};
use tilework_sim::{ChipConfig, LatePackets};

/// Longer than any way through the chip, so that any two packets may change places.
const MOST: u64 = 1_500;

fn late(board: Board, queue: QueueId, seed: u64) -> Rig {
    Rig::boot_chip(ChipConfig { late: Some(LatePackets { seed, most: MOST }), ..ChipConfig::new(board) }, queue)
}

/// Whether two tiles or rectangles, as NoC 1 names them, have a tile in common.
fn meet(a: u32, b: u32) -> bool {
    // A tile has no second corner.
    let corners = |xy: u32| (NocXy::decode(xy), NocXy::decode(if xy >> 12 == 0 { xy } else { xy >> 12 }));
    let ((low, high), (other_low, other_high)) = (corners(a), corners(b));
    low.x <= other_high.x && other_low.x <= high.x && low.y <= other_high.y && other_low.y <= high.y
}

/// Whether a command writes a byte twice: then which of its packets is last is not said.
fn writes_twice(command: &DispatchCommand) -> bool {
    let any_pair = |targets: &[u32]| (1..targets.len()).any(|i| targets[..i].iter().any(|&t| meet(t, targets[i])));
    match command {
        DispatchCommand::WritePacked(write) => match &write.targets {
            PackedTargets::Unicast(targets) => any_pair(targets),
            PackedTargets::Multicast(targets) => any_pair(&targets.iter().map(|t| t.0).collect::<Vec<_>>()),
        },
        DispatchCommand::WritePackedLarge(write) => {
            let end = |i: usize| write.subs[i].addr + write.subs[i].data.len() as u32;
            let overlap = |i: usize, j: usize| write.subs[i].addr < end(j) && write.subs[j].addr < end(i);
            let meet = |i: usize, j: usize| meet(write.subs[i].noc_xy, write.subs[j].noc_xy) && overlap(i, j);
            (1..write.subs.len()).any(|i| (0..i).any(|j| meet(i, j)))
        }
        _ => false,
    }
}

/// A write of a form that writes no byte twice.
fn write(random: &mut Random, most: usize) -> DispatchCommand {
    loop {
        let form = random.one_of(&Form::ALL);
        let bytes = random.size(most);
        let command = random.write(form, bytes);
        if !writes_twice(&command) {
            return command;
        }
    }
}

fn step(rig: &mut Rig, random: &mut Random) {
    match random.below(8) {
        0..=2 => rig.send(&write(random, 100_000)),
        3..=4 => {
            let bytes = random.size(100_000);
            let sourced = random.sourced(&rig.shadow, bytes);
            rig.send_from(&sourced, random.coin());
        }
        5 => {
            let command = write(random, 20_000);
            cut(rig, random, &command);
        }
        6 => rig.stall(),
        _ => rig.event(),
    }
}

/// tt-metal#52233: a header was read before its payload had landed, once in 22 soak runs. Credits
/// that leave before their data, blocks that are given back before their writes have left, and
/// completion pointers that pass their page all show here.
#[test]
fn tt_metal_52233_random_streams_do_not_depend_on_the_order_of_packets() {
    for (seed, queue) in (0..6).map(|seed| (seed, QueueId::FIRST)).chain((6..10).map(|seed| (seed, QueueId::SECOND))) {
        let board = if seed % 2 == 0 { Board::P100 } else { Board::P150 };
        let mut rig = late(board, queue, seed);
        let mut random = Random::beside(board, rig.queues, 52233 + seed);
        for _ in 0..80 {
            step(&mut rig, &mut random);
            // Two writes to one address may change places, unless the host says otherwise.
            rig.send(&DispatchCommand::barrier());
        }
        rig.finish();
        rig.terminate();
    }
}

#[test]
fn late_packets_are_late_in_the_same_way_again() {
    let run = |seed| {
        let mut rig = late(Board::P100, QueueId::FIRST, seed);
        let mut random = Random::new(Board::P100, 8);
        (0..20).for_each(|_| random_step(&mut rig, &mut random));
        rig.event();
        rig.card.link().stats()
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1).cycles, run(2).cycles);
}

/// The delays do something: packets of one command to one address change places for some seed, and
/// commands with a barrier between them for none.
#[test]
fn packets_that_nothing_orders_change_places() {
    let last = |seed, barrier: bool| {
        let mut rig = late(Board::P100, QueueId::FIRST, seed);
        let (worker, addr) = (rig.board.workers().last().unwrap(), 0x40_000);
        let values: Vec<Vec<u8>> = (1..=4).map(|value| vec![value; 16]).collect();
        let write = |packets: &[Vec<u8>]| {
            DispatchCommand::WritePacked(PackedWrite {
                kind: Default::default(),
                write_offset_index: 0,
                addr,
                targets: PackedTargets::Unicast(vec![worker.encode(); packets.len()]),
                packets: Packets::PerTarget(packets.to_vec()),
            })
        };
        if barrier {
            for value in &values {
                rig.send(&write(std::slice::from_ref(value)));
                rig.send(&DispatchCommand::barrier());
            }
        } else {
            rig.send(&write(&values));
        }
        rig.event();
        rig.settle();
        rig.l1(worker, addr) & 0xFF
    };
    assert!((0..4).any(|seed| last(seed, false) != 4));
    assert!((0..4).all(|seed| last(seed, true) == 4));
}
