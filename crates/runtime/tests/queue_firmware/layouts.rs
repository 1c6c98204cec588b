//! Dispatch layouts: what differs with who sends go signals and which tiles run the queue.

use crate::faults::{check_stopped, let_go};
use crate::random::{Form, Random};
use crate::rig::{Rig, wait};
use tilework_abi::board::{self, Board};
use tilework_abi::cq::dispatch::WaitFlags;
use tilework_abi::cq::layout::prefetch_core::SEM_EXEC_BUF;
use tilework_abi::cq::layout::{DONE_STREAM, PCIE_NOC_XY_MARK, host};
use tilework_abi::cq::status::{Fault, Kernel};
use tilework_abi::cq::tiles::DispatchLayout;
use tilework_abi::noc::NocXy;
use tilework_abi::stream;
use tilework_cq::DispatchCommand;
use tilework_cq::dispatch::{GoSignal, NotifySubordinate, NumWorkerSems, Timestamp};
use tilework_driver::Target;

/// Adds to a stream of a tile as a worker does.
fn report(rig: &mut Rig, tile: NocXy, stream_id: u32, n: u32) {
    let at = stream::reg_addr(stream_id, stream::SPACE_AVAILABLE_UPDATE);
    rig.poke(tile, at, n << stream::UPDATE_INC_SHIFT);
}

/// The count of a stream of a tile.
fn count(rig: &mut Rig, tile: NocXy, stream_id: u32) -> u32 {
    let at = stream::reg_addr(stream_id, stream::SPACE_AVAILABLE);
    rig.card.read32(&Target::tile(tile), at).unwrap() & stream::COUNTER_MASK
}

fn notify(index_bitmask: u16) -> DispatchCommand {
    DispatchCommand::NotifySubordinateGoSignal(NotifySubordinate { wait: false, index_bitmask })
}

fn go(index: u32, wait_count: u32) -> DispatchCommand {
    DispatchCommand::SendGoSignal(GoSignal {
        go_signal: 0,
        multicast_go_offset: None,
        num_unicast_txns: 0,
        noc_data_start_index: 0,
        wait_count,
        wait_stream: DONE_STREAM + index,
    })
}

/// The end of an exec buffer is told to the core that reads records when all before it is done.
#[test]
fn the_end_of_an_exec_buffer_reaches_the_core_that_reads_records() {
    for layout in DispatchLayout::ALL {
        let mut rig = Rig::boot_with(Board::P100, layout);
        let (gate, reader) = (rig.spare_word(), layout.issue_tile(Board::P100));
        for round in 1..=5 {
            rig.send(&wait(WaitFlags::WAIT_MEMORY, 0, gate, round));
            rig.send(&DispatchCommand::ExecBufEnd);
            rig.settle();
            assert_eq!(rig.semaphore(reader, SEM_EXEC_BUF), round - 1, "{layout}: told too early");
            rig.poke(rig.core_of(Kernel::Dispatch), gate, round);
            rig.settle();
            assert_eq!(rig.semaphore(reader, SEM_EXEC_BUF), round, "{layout}");
        }
        rig.finish();
        rig.terminate();
    }
}

/// Semaphores beyond the number in use are refused by whoever is told to use them, until the number
/// is raised again.
#[test]
fn worker_semaphores_that_are_not_in_use_are_refused() {
    for layout in DispatchLayout::ALL {
        let mut rig = Rig::boot_with(Board::P100, layout);
        let three = DispatchCommand::SetNumWorkerSems(NumWorkerSems { count: 3 });
        rig.send(&three);
        rig.send(&notify(0b111));
        let address = rig.dispatch_address();
        rig.raw(&notify(0b1001).to_bytes().unwrap());
        check_stopped(&mut rig, Kernel::Dispatch, Fault::BadIndex, 0b1001, address);
        let_go(&mut rig, Kernel::Dispatch);

        rig.send_subordinate(&three);
        rig.send_subordinate(&go(2, 0));
        let address = rig.subordinate_address();
        rig.send_subordinate(&go(3, 0));
        check_stopped(&mut rig, Kernel::DispatchS, Fault::BadIndex, DONE_STREAM + 3, address);
        let_go(&mut rig, Kernel::DispatchS);

        let eight = DispatchCommand::SetNumWorkerSems(NumWorkerSems { count: 8 });
        rig.send(&eight);
        rig.send_subordinate(&eight);
        rig.send(&notify(0b1000_0000));
        rig.send_subordinate(&go(7, 0));
        rig.finish();
        rig.terminate();
    }
}

/// A subordinate on its own tile counts for the dispatcher: through every wrap of the streams,
/// whoever clears first, and only the semaphores in use.
#[test]
fn workers_that_report_to_the_subordinates_tile_are_counted_on_the_dispatchers() {
    let layout = DispatchLayout::SubordinateTile;
    for board in [Board::P100, Board::P150] {
        let mut rig = Rig::boot_with(board, layout);
        let (sub, dispatch) = (layout.subordinate_tile(board), layout.dispatch_tile(board));
        for (index, n) in [(0, 5), (7, 140), (0, stream::COUNTER_MASK - 20), (7, 1), (0, 17), (3, 65_000), (3, 65_000)]
        {
            let id = DONE_STREAM + index;
            let before = [count(&mut rig, sub, id), count(&mut rig, dispatch, id)];
            report(&mut rig, sub, id, n);
            rig.settle();
            for (tile, before) in [sub, dispatch].into_iter().zip(before) {
                let expected = (before + n) & stream::COUNTER_MASK;
                assert_eq!(count(&mut rig, tile, id), expected, "stream {id} of {tile}");
            }
            // Clearing on one side leaves the other.
            if n == 17 {
                rig.send_subordinate(&wait(WaitFlags::WAIT_STREAM | WaitFlags::CLEAR_STREAM, id as u16, 0, 1));
                rig.settle();
                assert_eq!([count(&mut rig, sub, id), count(&mut rig, dispatch, id)], [0, 1]);
            }
            if n == 140 {
                rig.send(&DispatchCommand::wait_stream_and_clear(id as u16, n));
                rig.event();
                assert_eq!([count(&mut rig, sub, id), count(&mut rig, dispatch, id)], [n, 0]);
            }
        }
        rig.send_subordinate(&DispatchCommand::SetNumWorkerSems(NumWorkerSems { count: 5 }));
        rig.settle();
        report(&mut rig, sub, DONE_STREAM + 5, 9);
        rig.settle();
        assert_eq!(count(&mut rig, dispatch, DONE_STREAM + 5), 0, "a semaphore that is not in use");
        rig.finish();
        rig.terminate();
    }
}

/// A go signal of the subordinate waits for its workers, and the dispatcher goes on meanwhile.
#[test]
fn the_dispatcher_goes_on_while_the_subordinate_waits_for_workers() {
    for layout in [DispatchLayout::Subordinate, DispatchLayout::SubordinateTile] {
        let mut rig = Rig::boot_with(Board::P150, layout);
        let mut random = Random::with(Board::P150, layout, 21);
        let sub = layout.subordinate_tile(Board::P150);
        let mut second = go(1, 0);
        if let DispatchCommand::SendGoSignal(second) = &mut second {
            (second.go_signal, second.multicast_go_offset) = (0x1234, Some(3));
        }
        rig.send(&notify(0b11));
        rig.send_subordinate(&go(0, 100));
        rig.send_subordinate(&second);
        for _ in 0..20 {
            let command = random.any_write();
            rig.send(&command);
        }
        rig.event();
        let worker = layout.workers(Board::P150).next().unwrap();
        let word = tilework_abi::l1::WORKER.go.get() + 12;
        for reported in [60, 39] {
            report(&mut rig, sub, DONE_STREAM, reported);
            rig.settle();
            assert_eq!(rig.l1(worker, word), 0, "{layout}: sent too early");
        }
        report(&mut rig, sub, DONE_STREAM, 1);
        rig.go_words[3] = 0x1234;
        rig.finish();
        rig.terminate();
    }
}

/// What is for the host goes through both halves of a split dispatcher in order, whatever its size:
/// data, time stamps, linear writes with a write offset, and the event behind them.
#[test]
fn everything_for_the_host_passes_a_split_dispatcher_in_order() {
    let layout = DispatchLayout::Split;
    let mut rig = Rig::boot_with(Board::P150, layout);
    let mut random = Random::with(Board::P150, layout, 22);
    for bytes in [1, 16, 4080, 4081, 131_056, 131_073, 200_000] {
        let command = random.write(Form::Host, bytes);
        rig.send(&command);
        rig.collect();
    }
    let noc_xy = board::PCIE.encode() | PCIE_NOC_XY_MARK;
    rig.send(&DispatchCommand::Timestamp(Timestamp { noc_xy, addr: host::TIMESTAMPS.noc_addr() }));
    rig.event();
    let mut found = [0; 16];
    rig.region.read(rig.card.link_mut(), host::TIMESTAMPS.offset().into(), &mut found).unwrap();
    let time = u64::from_le_bytes(found[..8].try_into().unwrap());
    assert!(time != 0 && time < rig.card.link().now(), "time stamp {time}");
    assert_eq!(found[8..], [0; 8]);
    // Half a slot cannot be passed on.
    let address = rig.dispatch_address();
    let at = host::TIMESTAMPS.noc_addr() + 24;
    rig.send(&DispatchCommand::Timestamp(Timestamp { noc_xy, addr: at }));
    check_stopped(&mut rig, Kernel::Dispatch, Fault::Misaligned, at, address);
    let_go(&mut rig, Kernel::Dispatch);
    rig.finish();
    rig.terminate();
}

/// Records of the greatest size and of every place in the ring of a split prefetcher.
#[test]
fn records_of_every_size_pass_a_split_prefetcher() {
    let layout = DispatchLayout::Split;
    let mut rig = Rig::boot_with(Board::P100, layout);
    let mut random = Random::with(Board::P100, layout, 23);
    for round in 0..60 {
        let bytes = [1, 3_900, 4_000, 4_100, 120_000, 261_000][round % 6] + random.below(500) as usize;
        let command = random.write(Form::LinearUnicast, bytes);
        rig.send(&command);
    }
    rig.finish();
    rig.terminate();
}
