//! Waiting, stalls, go signals, time stamps and the subordinate.

use crate::random::Random;
use crate::rig::{Rig, first_difference, wait};
use tilework_abi::board::{self, Board};
use tilework_abi::cq::dispatch::WaitFlags;
use tilework_abi::cq::layout::{DONE_STREAM, PCIE_NOC_XY_MARK, WORKER_SEMS, dispatch_core, host};
use tilework_abi::cq::status::{Kernel, word};
use tilework_abi::l1::{LAUNCH_ENTRIES, WORKER};
use tilework_abi::msg::{GoMsg, LAUNCH_MSG_BYTES, LaunchMsg, MODE_DEV, RUN_DONE, RUN_GO};
use tilework_abi::noc::NocXy;
use tilework_abi::stream;
use tilework_cq::dispatch::{
    Delay, GoSignal, LinearWrite, NotifySubordinate, NumWorkerSems, PackedTargets, PackedWrite, Packets, Timestamp,
};
use tilework_cq::{DispatchCommand, PrefetchCommand};
use zerocopy::IntoBytes;

const BOARDS: [Board; 2] = [Board::P100, Board::P150];

/// Sends an event behind a wait and checks that it only comes after `release`.
fn passes_only_after(rig: &mut Rig, wait: DispatchCommand, release: impl FnOnce(&mut Rig)) {
    rig.send(&wait);
    rig.send(&DispatchCommand::host_event(0x1234));
    rig.settle();
    rig.collect();
    assert_eq!(rig.pages_expected(), 1, "{wait:?} did not wait");
    release(rig);
    rig.wait_all();
}

/// Adds to a stream of the dispatch core as a worker does.
fn add_to_stream(rig: &mut Rig, stream_id: u32, n: u32) {
    let at = stream::reg_addr(stream_id, stream::SPACE_AVAILABLE_UPDATE);
    rig.poke(rig.core_of(Kernel::Dispatch), at, n << stream::UPDATE_INC_SHIFT);
}

/// The count of a stream of the dispatch core.
fn stream_count(rig: &mut Rig, stream_id: u32) -> u32 {
    let target = tilework_driver::Target::tile(rig.core_of(Kernel::Dispatch));
    let at = stream::reg_addr(stream_id, stream::SPACE_AVAILABLE);
    rig.card.read32(&target, at).unwrap() & stream::COUNTER_MASK
}

/// tt-metal#9113: counts that wrap at 2^32 are waited for on the right side of the wrap.
#[test]
fn issue_9113_memory_counts_wrap() {
    let mut rig = Rig::boot(Board::P100);
    let (core, at) = (rig.board.dispatch_core(), rig.spare_word());
    for (now, almost, count) in
        [(0, 9, 10), (0xFFFF_FFF0, 1, 2), (0xFFFF_FFFE, 0xFFFF_FFFE, 0xFFFF_FFFF), (0xFFFF_FFFF, 0xFFFF_FFFF, 0)]
    {
        rig.poke(core, at, now);
        let command = wait(WaitFlags::WAIT_MEMORY, 0, at, count);
        passes_only_after(&mut rig, command, |rig| {
            rig.poke(core, at, almost);
            rig.settle();
            rig.collect();
            assert_eq!(rig.pages_expected(), 1, "{almost:#x} is not {count:#x}");
            rig.poke(core, at, count);
        });
        // A count that was passed does not wait, on either side of the wrap.
        for passed in [count, count.wrapping_sub(1), count.wrapping_sub(0x1000)] {
            rig.send(&wait(WaitFlags::WAIT_MEMORY, 0, at, passed));
            rig.event();
        }
    }
    rig.finish();
    rig.terminate();
}

/// The same for the workers' counts, which have 17 bits (tt-metal#9113).
#[test]
fn issue_9113_stream_counts_wrap() {
    let mut rig = Rig::boot(Board::P150);
    for stream_id in [DONE_STREAM, DONE_STREAM + 7] {
        add_to_stream(&mut rig, stream_id, stream::COUNTER_MASK - 2);
        let command = wait(WaitFlags::WAIT_STREAM, stream_id as u16, 0, 3);
        passes_only_after(&mut rig, command, |rig| {
            add_to_stream(rig, stream_id, 5);
            rig.settle();
            rig.collect();
            assert_eq!(rig.pages_expected(), 1, "a count of 2 is not 3");
            add_to_stream(rig, stream_id, 1);
        });
        assert_eq!(stream_count(&mut rig, stream_id), 3);
        // A count from before the wrap was reached long ago.
        rig.send(&wait(WaitFlags::WAIT_STREAM, stream_id as u16, 0, stream::COUNTER_MASK - 1));
        rig.event();
        rig.send(&wait(WaitFlags::CLEAR_STREAM, stream_id as u16, 0, 0));
        rig.event();
        assert_eq!(stream_count(&mut rig, stream_id), 0);
    }
    rig.finish();
    rig.terminate();
}

/// What arrives while a stream is cleared is kept, and each flag does only its own part.
#[test]
fn wait_flags_do_what_they_say_together_and_alone() {
    let mut rig = Rig::boot(Board::P100);
    let (core, at, stream_id) = (rig.board.dispatch_core(), rig.spare_word(), DONE_STREAM + 1);
    add_to_stream(&mut rig, stream_id, 40);
    // Without CLEAR_STREAM the count stays, and a wait without a wait flag does not wait.
    rig.send(&wait(WaitFlags::WAIT_STREAM, stream_id as u16, 0, 40));
    rig.send(&wait(WaitFlags::BARRIER, stream_id as u16, at, 1000));
    rig.send(&wait(WaitFlags::empty(), stream_id as u16, at, 1000));
    rig.event();
    assert_eq!(stream_count(&mut rig, stream_id), 40);
    // Memory and stream both have to be there.
    let both = WaitFlags::WAIT_MEMORY | WaitFlags::WAIT_STREAM | WaitFlags::CLEAR_STREAM | WaitFlags::BARRIER;
    passes_only_after(&mut rig, wait(both, stream_id as u16, at, 41), |rig| {
        add_to_stream(rig, stream_id, 1);
        rig.settle();
        rig.collect();
        assert_eq!(rig.pages_expected(), 1, "the memory word is still zero");
        rig.poke(core, at, 41);
    });
    assert_eq!(stream_count(&mut rig, stream_id), 0);
    rig.finish();
    rig.terminate();
}

/// A stalled prefetcher relays nothing until the dispatcher says that all is done; earlier
/// notifications are not taken for this one.
#[test]
fn a_stall_holds_the_prefetcher_until_it_is_notified() {
    let mut rig = Rig::boot(Board::P100);
    let mut random = Random::new(Board::P100, 11);
    let (dispatch, gate) = (rig.board.dispatch_core(), rig.spare_word());
    for round in 1..=20 {
        let command = random.any_write();
        rig.send(&command);
        rig.send(&wait(WaitFlags::WAIT_MEMORY, 0, gate, round));
        rig.stall();
        let behind = rig.dispatch.pages;
        let command = random.any_write();
        rig.send(&command);
        rig.settle();
        let filled = rig.semaphore(dispatch, dispatch_core::SEM_CB_PAGES);
        assert_eq!(filled, behind, "the prefetcher went on behind its stall in round {round}");
        rig.poke(dispatch, gate, round);
        rig.event();
    }
    rig.finish();
    rig.terminate();
}

/// Without a flush the dispatcher sees nothing, whatever lies in the ring; then it sees one
/// command.
#[test]
fn a_relay_without_flush_is_invisible_until_the_flush() {
    let mut rig = Rig::boot(Board::P150);
    let mut random = Random::new(Board::P150, 12);
    let dispatch = rig.board.dispatch_core();
    for bytes in [32, 4048, 4064, 4080, 20_000, 100_000] {
        let command = DispatchCommand::WriteLinear(LinearWrite {
            num_mcast_dests: 0,
            write_offset_index: 0,
            noc_xy: random.worker().encode(),
            addr: random.address().into(),
            data: random.bytes(bytes),
        });
        let all = command.to_bytes().unwrap();
        let (first, rest) = all.split_at(bytes);
        let before = rig.dispatch.pages;
        rig.raw_open(first);
        rig.settle();
        assert_eq!(rig.semaphore(dispatch, dispatch_core::SEM_CB_PAGES), before, "{bytes} bytes were shown too early");
        rig.raw(rest);
        rig.shadow.apply(&command);
        rig.event();
    }
    rig.finish();
    rig.terminate();
}

/// Time stamps go to any slot of the host and to L1, and never run backwards.
#[test]
fn timestamps_are_written_where_they_belong_and_grow() {
    for board in BOARDS {
        let mut rig = Rig::boot(board);
        let started = rig.card.link().now();
        let slots: Vec<u32> = (0..64).chain(host::SLOTS - 64..host::SLOTS).collect();
        for (i, &slot) in slots.iter().enumerate() {
            // With and without the mark of host memory, in both halves of a slot.
            let noc_xy = board::PCIE.encode() | if i % 2 == 0 { PCIE_NOC_XY_MARK } else { 0 };
            let addr = host::TIMESTAMPS.noc_addr() + slot * host::SLOT_SIZE + 8 * (slot % 2);
            rig.send(&DispatchCommand::Timestamp(Timestamp { noc_xy, addr }));
        }
        let (worker, at) = (board.workers().last().unwrap(), 0x20_008);
        rig.send(&DispatchCommand::Timestamp(Timestamp { noc_xy: worker.encode(), addr: at }));
        rig.finish();
        let ended = rig.card.link().now();
        let mut last = started;
        for &slot in &slots {
            let mut words = [0; 16];
            let offset = host::TIMESTAMPS.offset() + slot * host::SLOT_SIZE;
            rig.region.read(rig.card.link_mut(), offset.into(), &mut words).unwrap();
            let halves = [0, 8].map(|i| u64::from_le_bytes(words[i..i + 8].try_into().unwrap()));
            let (time, other) = (halves[slot as usize % 2], halves[1 - slot as usize % 2]);
            assert!(time > last && time < ended, "slot {slot}: {time} after {last}");
            assert_eq!(other, 0, "slot {slot}: the other half was written");
            last = time;
        }
        let time = u64::from(rig.l1(worker, at)) | u64::from(rig.l1(worker, at + 4)) << 32;
        assert!(time > last && time < ended, "L1: {time} after {last}");
        rig.terminate();
    }
}

/// A coordinate with the mark of host memory makes a linear write one over PCIe.
#[test]
fn linear_writes_reach_host_memory() {
    let mut rig = Rig::boot(Board::P150);
    let mut random = Random::new(Board::P150, 14);
    let mut expected = vec![0; host::CORE_TIMING.size() as usize];
    for bytes in [1, 8, 16, 17, 4096, 16_384, 16_385, 50_000] {
        let (offset, data) = (64 * random.below(200) as usize, random.bytes(bytes));
        expected[offset..offset + bytes].copy_from_slice(&data);
        let command = DispatchCommand::WriteLinear(LinearWrite {
            num_mcast_dests: 0,
            write_offset_index: 0,
            noc_xy: board::PCIE.encode() | PCIE_NOC_XY_MARK,
            addr: u64::from(host::CORE_TIMING.noc_addr()) + offset as u64,
            data,
        });
        // Past the model, which covers the device's memory.
        rig.raw(&command.to_bytes().unwrap());
    }
    rig.finish();
    let mut found = vec![0; expected.len()];
    rig.region.read(rig.card.link_mut(), host::CORE_TIMING.offset().into(), &mut found).unwrap();
    assert_eq!(first_difference(&found, &expected), None);
    rig.terminate();
}

/// A host's view of the workers that obey go signals: how often each has been launched.
struct Launches {
    workers: Vec<NocXy>,
    count: Vec<u32>,
    go: GoMsg,
}

impl Launches {
    fn new(board: Board) -> Self {
        let workers: Vec<NocXy> = board.workers().collect();
        let master = board.dispatch_core();
        let go = GoMsg { dispatch_message_offset: 0, master_x: master.x, master_y: master.y, signal: RUN_GO };
        Self { count: vec![0; workers.len()], workers, go }
    }
    /// Sends a launch message without kernels to the workers with these numbers.
    fn send(&mut self, rig: &mut Rig, numbers: &[usize]) {
        let launch = LaunchMsg { mode: MODE_DEV, ..LaunchMsg::default() };
        for &i in numbers {
            let entry = self.count[i] % LAUNCH_ENTRIES;
            rig.raw(&packed(
                WORKER.launch.get() + entry * LAUNCH_MSG_BYTES as u32,
                &[self.workers[i]],
                launch.as_bytes(),
            ));
            self.count[i] += 1;
        }
    }
    /// The same to all workers at once, which have all been launched equally often.
    fn send_all(&mut self, rig: &mut Rig) {
        let launch = LaunchMsg { mode: MODE_DEV, ..LaunchMsg::default() };
        let entry = self.count[0] % LAUNCH_ENTRIES;
        for workers in self.workers.chunks(118) {
            rig.raw(&packed(WORKER.launch.get() + entry * LAUNCH_MSG_BYTES as u32, workers, launch.as_bytes()));
        }
        self.count.iter_mut().for_each(|n| *n += 1);
    }
    /// Every worker has obeyed as many go messages as it was sent.
    fn check(&self, rig: &Rig) {
        for (&worker, &count) in self.workers.iter().zip(&self.count) {
            let obeyed = rig.l1(worker, WORKER.launch_rd_ptr().get());
            assert_eq!(obeyed, count % LAUNCH_ENTRIES, "launches of {worker}");
            assert_eq!(rig.l1(worker, WORKER.go.get()).to_le_bytes()[3], RUN_DONE, "go message of {worker}");
        }
    }
}

/// The bytes of a packed write of one packet. The model does not cover the workers' mailboxes, so
/// these go past it.
fn packed(addr: u32, workers: &[NocXy], packet: &[u8]) -> Vec<u8> {
    let command = DispatchCommand::WritePacked(PackedWrite {
        kind: Default::default(),
        write_offset_index: 3,
        addr,
        targets: PackedTargets::Unicast(workers.iter().map(|w| w.encode()).collect()),
        packets: Packets::Shared(packet.to_vec()),
    });
    command.to_bytes().unwrap()
}

fn go_signal(go: GoMsg, multicast_go_offset: Option<u8>, first: u8, count: u8) -> DispatchCommand {
    DispatchCommand::SendGoSignal(GoSignal {
        go_signal: go.word(),
        multicast_go_offset,
        num_unicast_txns: count,
        noc_data_start_index: first,
        wait_count: 0,
        wait_stream: DONE_STREAM,
    })
}

/// Go signals to any run of the stored coordinates, and to all by multicast: exactly those workers
/// run and report.
#[test]
fn go_signals_start_exactly_the_workers_they_name() {
    for board in BOARDS {
        let mut rig = Rig::boot(board);
        let mut random = Random::new(board, 13);
        let mut launches = Launches::new(board);
        let all = launches.workers.len();
        rig.send(&DispatchCommand::SetGoSignalNocData(launches.workers.iter().map(|w| w.encode()).collect()));
        let stream_id = DONE_STREAM as u16;
        // All by unicast and all by multicast, more often than there are launch messages.
        for round in 0..10 {
            launches.send_all(&mut rig);
            let go = launches.go;
            rig.send(&match round % 2 {
                0 => go_signal(go, None, 0, all as u8),
                _ => go_signal(go, Some(0), 0, 0),
            });
            rig.send(&DispatchCommand::wait_stream_and_clear(stream_id, all as u32));
        }
        rig.finish();
        launches.check(&rig);
        // Some of them.
        for _ in 0..10 {
            let count = 1 + random.below(12) as usize;
            let first = random.below((all - count) as u32) as usize;
            let numbers: Vec<usize> = (first..first + count).collect();
            launches.send(&mut rig, &numbers);
            let go = launches.go;
            rig.send(&go_signal(go, None, first as u8, count as u8));
            rig.send(&DispatchCommand::wait_stream_and_clear(stream_id, count as u32));
        }
        rig.finish();
        launches.check(&rig);
        assert_eq!(stream_count(&mut rig, DONE_STREAM), 0, "a worker reported once too often");
        // A multicast to a go message that nobody looks at reaches all workers and neither dispatch
        // core.
        let go = launches.go;
        rig.send(&go_signal(go, Some(5), 0, 0));
        rig.finish();
        for &worker in &launches.workers {
            assert_eq!(rig.l1(worker, WORKER.go.get() + 20), launches.go.word(), "{worker}");
        }
        for core in [board.prefetch_core(), board.dispatch_core()] {
            assert_eq!(rig.l1(core, WORKER.go.get() + 20), 0, "{core} is no worker");
        }
        rig.terminate();
    }
}

/// A go signal waits for its stream.
#[test]
fn a_go_signal_waits_for_its_count() {
    let mut rig = Rig::boot(Board::P100);
    let mut launches = Launches::new(Board::P100);
    rig.send(&DispatchCommand::SetGoSignalNocData(vec![launches.workers[0].encode()]));
    launches.send(&mut rig, &[0]);
    let DispatchCommand::SendGoSignal(mut go) = go_signal(launches.go, None, 0, 1) else { unreachable!() };
    (go.wait_count, go.wait_stream) = (2, DONE_STREAM + 2);
    passes_only_after(&mut rig, DispatchCommand::SendGoSignal(go), |rig| add_to_stream(rig, DONE_STREAM + 2, 2));
    rig.send(&DispatchCommand::wait_stream_and_clear(DONE_STREAM as u16, 1));
    rig.finish();
    launches.check(&rig);
    rig.terminate();
}

/// The subordinate sends go signals when the dispatcher allows it, over more commands than its ring
/// and its counts have places.
#[test]
fn the_subordinate_sends_go_signals_when_it_is_allowed_to() {
    for board in BOARDS {
        let mut rig = Rig::boot(board);
        let mut launches = Launches::new(board);
        let targets: Vec<u32> = launches.workers.iter().map(|w| w.encode()).collect();
        let all = targets.len() as u32;
        rig.send_subordinate(&DispatchCommand::SetNumWorkerSems(NumWorkerSems { count: WORKER_SEMS }));
        for round in 0..40 {
            // Two to three pages of the subordinate's ring, so that the list wraps in every way.
            rig.send_subordinate(&DispatchCommand::SetGoSignalNocData(targets.clone()));
            launches.send_all(&mut rig);
            let go = launches.go;
            rig.send_subordinate(&match round % 2 {
                0 => go_signal(go, None, 0, all as u8),
                _ => go_signal(go, Some(0), 0, 0),
            });
            if round == 0 {
                rig.event();
                rig.settle();
                assert_eq!(stream_count(&mut rig, DONE_STREAM), 0, "the subordinate was not allowed to send yet");
            }
            rig.send(&DispatchCommand::NotifySubordinateGoSignal(NotifySubordinate { wait: true, index_bitmask: 1 }));
            rig.send(&DispatchCommand::wait_stream_and_clear(DONE_STREAM as u16, all));
        }
        rig.finish();
        launches.check(&rig);
        rig.terminate();
    }
}

/// TERMINATE on an idle and on a busy queue: every page comes back and all kernels return
/// (`Rig::terminate`).
#[test]
fn termination_gives_every_page_back_whatever_was_sent() {
    for pages in [0, 1, 31, 32, 33, 63, 64, 95, 96, 97, 127, 128, 129] {
        let mut rig = Rig::boot(Board::P100);
        for i in 0..pages {
            rig.send(&DispatchCommand::Delay(Delay { iterations: i }));
        }
        rig.terminate();
    }
}

/// A DEBUG command leaves its key in the status block of the kernel that met it.
#[test]
fn debug_commands_leave_their_key() {
    use tilework_cq::dispatch::DebugMark;
    let mut rig = Rig::boot(Board::P100);
    rig.send(&DispatchCommand::Debug(DebugMark { key: 0xBEEF, size: 0, checksum: 0, body: vec![0; 48] }));
    rig.prefetch(&PrefetchCommand::Debug(DebugMark { key: 0xCAFE, size: 0, checksum: 0, body: vec![0; 112] }));
    rig.finish();
    assert_eq!(rig.status(Kernel::Dispatch, word::DETAIL), 0xBEEF);
    assert_eq!(rig.status(Kernel::Prefetch, word::DETAIL), 0xCAFE);
    rig.terminate();
}
