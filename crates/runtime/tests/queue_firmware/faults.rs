//! Bytes that cannot be obeyed: each kernel stops with the documented error word, and goes on when
//! a debugger lets it.

use crate::random::{Form, Random};
use crate::rig::{Rig, wait};
use tilework_abi::board::Board;
use tilework_abi::cq::dispatch::{self as cmd, DispatchCmdId};
use tilework_abi::cq::layout::prefetch_core::{CMDDAT_Q, PREFETCH_Q, PREFETCH_Q_STALL_BIT, SEM_DISPATCH_PAGES};
use tilework_abi::cq::layout::prefetch_d_core::RECORDS;
use tilework_abi::cq::layout::{QueueId, SEMAPHORE_OFFSET, dispatch_core, host};
use tilework_abi::cq::prefetch::{BareCmd, PrefetchCmdId, RelayInline};
use tilework_abi::cq::status::{Fault, Kernel, decode_error, word};
use tilework_abi::cq::tiles::DispatchLayout;
use tilework_abi::l1::WORKER;
use tilework_abi::noc::NocXy;
use tilework_cq::prefetch::RingOffset;
use tilework_cq::{DispatchCommand, PrefetchCommand};
use tilework_driver::{DriverError, LinkError};
use zerocopy::IntoBytes;

/// The host waits for what cannot come: the chip says at once that nothing moves, and the stopped
/// core waits on its error word.
pub(crate) fn check_stopped(rig: &mut Rig, kernel: Kernel, fault: Fault, detail: u32, address: u32) {
    let at = u64::from(host::CQ_WR.offset());
    let seen = rig.region.read32(rig.card.link_mut(), at).unwrap();
    let error = rig.region.wait_change(rig.card.link_mut(), at, seen, 1_000_000_000).unwrap_err();
    let DriverError::Link(LinkError::Deadlock { .. }) = error else { panic!("{error}") };
    let waiting = rig.card.link().waiting();
    let (core, error_word) = (rig.core_of(kernel), kernel.status().get() + word::ERROR);
    let mut watched = waiting.iter().filter(|w| w.tile == core).flat_map(|w| &w.watched);
    let stopped = watched.any(|w| w.watch.addr == error_word && !w.stale);
    assert!(stopped, "{} does not wait on its error word", kernel.name());

    let words = [word::ERROR, word::DETAIL, word::ADDRESS].map(|f| rig.status(kernel, f));
    assert_eq!(decode_error(words[0]), Some((kernel, fault)));
    assert_eq!(words, [kernel.error_word(fault), detail, address], "{fault:?} in {}", kernel.name());
}

/// Lets a stopped kernel go on behind the command.
pub(crate) fn let_go(rig: &mut Rig, kernel: Kernel) {
    rig.poke(rig.core_of(kernel), kernel.status().get() + word::ERROR, 0);
    rig.event();
    rig.settle();
}

/// A board with one queue, and the second queue of one with two.
fn rigs(board: Board, layout: DispatchLayout) -> impl Iterator<Item = Rig> {
    QueueId::ALL.into_iter().map(move |queue| Rig::boot_on(board, layout, queue))
}

/// An unknown id stops the dispatcher with the documented words, worked out by hand.
#[test]
fn an_unknown_command_stops_the_dispatcher_with_the_documented_error_word() {
    for (queue, core) in [(QueueId::FIRST, NocXy::new(16, 3)), (QueueId::SECOND, NocXy::new(16, 5))] {
        let mut rig = Rig::boot_on(Board::P150, DispatchLayout::Dispatcher, queue);
        rig.event();
        rig.raw(&[0x77; 16]);
        rig.send(&DispatchCommand::host_event(99));
        check_stopped(&mut rig, Kernel::Dispatch, Fault::UnknownCommand, 0x77, 0x1_B000);
        let words = [0x1_9790, 0x1_9794, 0x1_9798, 0x1_979C].map(|at| rig.l1(core, at));
        assert_eq!(words, [0xFD02_0001, 0x77, 0x1_B000, 1]);
        let_go(&mut rig, Kernel::Dispatch);
        rig.finish();
        rig.terminate();
    }
}

fn packed(count: u16, flags: u8, size: u16) -> Vec<u8> {
    let (count, size) = (count.into(), size.into());
    cmd::WritePacked { cmd_id: 5, flags, count, size, ..Default::default() }.as_bytes().to_vec()
}

fn large(count: u16, alignment: u16) -> Vec<u8> {
    let (count, alignment) = (count.into(), alignment.into());
    cmd::WritePackedLarge { cmd_id: 6, count, alignment, ..Default::default() }.as_bytes().to_vec()
}

fn go(stream: u32, first: u8, count: u8) -> Vec<u8> {
    let header = cmd::SendGoSignal {
        cmd_id: 14,
        multicast_go_offset: 0xFF,
        noc_data_start_index: first,
        num_unicast_txns: count,
        wait_stream: stream.into(),
        ..Default::default()
    };
    header.as_bytes().to_vec()
}

/// Commands that the dispatcher cannot obey, each with its fault and the fault's detail.
fn refused_by_the_dispatcher() -> Vec<(Vec<u8>, Fault, u32)> {
    let paged = cmd::WritePaged { cmd_id: 4, pages: 1.into(), ..Default::default() };
    let short = cmd::WriteHost { cmd_id: 3, length: 15.into(), ..Default::default() };
    let stream = cmd::Wait { cmd_id: 7, flags: 8, stream: 64.into(), ..Default::default() };
    let offsets = cmd::SetWriteOffset { cmd_id: 12, offset_count: 5, ..Default::default() };
    let targets = cmd::SetGoSignalNocData { cmd_id: 17, num_words: 257.into(), ..Default::default() };
    let notify = cmd::NotifySubordinateGoSignal { cmd_id: 15, index_bitmask: 0x100.into(), ..Default::default() };
    let semaphores = cmd::SetNumWorkerSems { cmd_id: 16, num_worker_sems: 9.into(), ..Default::default() };
    vec![
        (vec![0; 16], Fault::UnknownCommand, 0),
        (vec![19; 16], Fault::UnknownCommand, 19),
        (vec![255; 4000], Fault::UnknownCommand, 255),
        (packed(119, 0, 16), Fault::TooMany, 119),
        (packed(60, 1, 16), Fault::TooMany, 60),
        (packed(1, 0, 0), Fault::BadSize, 0),
        (packed(0, 0, 16), Fault::BadSize, 0),
        (large(36, 16), Fault::TooMany, 36),
        (large(1, 3), Fault::BadSize, 3),
        (large(1, 0), Fault::BadSize, 0),
        (go(64, 0, 0), Fault::BadIndex, 64),
        (go(48, 200, 57), Fault::TooMany, 257),
        (paged.as_bytes().to_vec(), Fault::BadSize, 0),
        (short.as_bytes().to_vec(), Fault::BadSize, 15),
        (stream.as_bytes().to_vec(), Fault::BadIndex, 64),
        (offsets.as_bytes().to_vec(), Fault::TooMany, 5),
        (targets.as_bytes().to_vec(), Fault::TooMany, 257),
        (notify.as_bytes().to_vec(), Fault::BadIndex, 0x100),
        (semaphores.as_bytes().to_vec(), Fault::TooMany, 9),
    ]
}

#[test]
fn every_command_that_the_dispatcher_cannot_obey_stops_it() {
    for mut rig in rigs(Board::P100, DispatchLayout::Dispatcher) {
        for (payload, fault, detail) in refused_by_the_dispatcher() {
            let address = rig.dispatch_address();
            rig.raw(&payload);
            check_stopped(&mut rig, Kernel::Dispatch, fault, detail, address);
            let_go(&mut rig, Kernel::Dispatch);
        }
        rig.finish();
        rig.terminate();
    }
}

/// A write offset that does not exist; let go, the write is done without one.
#[test]
fn a_write_offset_out_of_range_stops_the_dispatcher() {
    for mut rig in rigs(Board::P100, DispatchLayout::Dispatcher) {
        let mut random = Random::beside(Board::P100, rig.queues, 15);
        // Where the index lies in each header.
        let forms = [(Form::LinearUnicast, 2), (Form::PackedUnicast, 4), (Form::PackedLarge, 6)];
        for (form, at) in forms {
            let command = random.write(form, 5000);
            let mut bytes = command.to_bytes().unwrap();
            bytes[at] = 4;
            let address = rig.dispatch_address();
            rig.raw(&bytes);
            check_stopped(&mut rig, Kernel::Dispatch, Fault::BadIndex, 4, address);
            // All offsets are zero.
            rig.shadow.apply(&command);
            let_go(&mut rig, Kernel::Dispatch);
        }
        rig.finish();
        rig.terminate();
    }
}

/// A completion pointer that names no host memory is not written through.
#[test]
fn a_completion_pointer_to_nowhere_stops_the_dispatcher() {
    for mut rig in rigs(Board::P100, DispatchLayout::Dispatcher) {
        let core = rig.dispatch_core();
        rig.poke(core, dispatch_core::COMPLETION_Q_WR_PTR, 0x8000_0001);
        rig.settle();
        let address = rig.dispatch_address();
        rig.send(&DispatchCommand::host_event(1));
        check_stopped(&mut rig, Kernel::Dispatch, Fault::BadCompletionPointer, 0x8000_0001, address);
    }
}

#[test]
fn every_command_that_the_subordinate_cannot_obey_stops_it() {
    let sems = cmd::SetNumWorkerSems { cmd_id: 16, num_worker_sems: 9.into(), ..Default::default() };
    let targets = cmd::SetGoSignalNocData { cmd_id: 17, num_words: 257.into(), ..Default::default() };
    let cases = [
        (vec![0x55; 16], Fault::UnknownCommand, 0x55),
        (sems.as_bytes().to_vec(), Fault::TooMany, 9),
        (targets.as_bytes().to_vec(), Fault::TooMany, 257),
        (go(47, 0, 0), Fault::BadIndex, 47),
        (go(56, 0, 0), Fault::BadIndex, 56),
        (go(48, 255, 2), Fault::TooMany, 257),
    ];
    // Writes, for example, are the dispatcher's.
    let not_built = DispatchCmdId::ALL.into_iter().filter(|id| !id.executed_by().contains(&Kernel::DispatchS));
    let not_built = not_built.map(|id| (vec![id as u8; 32], Fault::UnknownCommand, u32::from(id as u8)));
    for mut rig in rigs(Board::P150, DispatchLayout::Dispatcher) {
        for (payload, fault, detail) in cases.iter().cloned().chain(not_built.clone()) {
            let address = rig.subordinate_address();
            rig.raw_subordinate(&payload);
            check_stopped(&mut rig, Kernel::DispatchS, fault, detail, address);
            let_go(&mut rig, Kernel::DispatchS);
        }
        rig.finish();
        rig.terminate();
    }
}

/// A record of `size` bytes with a relay header of these fields.
fn relay(dispatcher_type: u8, length: u32, stride: u32, size: usize) -> Vec<u8> {
    let (length, stride) = (length.into(), stride.into());
    let header = RelayInline { cmd_id: 5, dispatcher_type, length, stride, ..Default::default() };
    let mut record = header.as_bytes().to_vec();
    record.resize(size, 0);
    record
}

#[test]
fn every_record_that_the_prefetcher_cannot_obey_stops_it() {
    let bare = |id: u8| {
        let mut record = BareCmd { cmd_id: id, ..Default::default() }.as_bytes().to_vec();
        record.resize(64, 0);
        record
    };
    let cases = [
        (bare(0), Fault::UnknownCommand, 0),
        (bare(15), Fault::UnknownCommand, 15),
        (relay(0, 16, 0, 64), Fault::BadStride, 0),
        (relay(0, 16, 16, 64), Fault::BadStride, 16),
        (relay(0, 16, 128, 64), Fault::BadStride, 128),
        (relay(0, 65, 64, 64), Fault::BadStride, 64),
        (relay(0, u32::MAX, 64, 64), Fault::BadStride, 64),
        (relay(9, 16, 64, 64), Fault::UnknownDispatcher, 9),
        // Outside of a command buffer.
        (bare(PrefetchCmdId::ExecBufEnd as u8), Fault::UnknownCommand, 8),
    ];
    for mut rig in rigs(Board::P100, DispatchLayout::Dispatcher) {
        for (record, fault, detail) in &cases {
            let address = CMDDAT_Q.base().get() + rig.cmddat_place(64);
            rig.raw_prefetch(record);
            check_stopped(&mut rig, Kernel::Prefetch, *fault, *detail, address);
            let_go(&mut rig, Kernel::Prefetch);
        }
        rig.finish();
        rig.terminate();
    }
}

/// More than the subordinate's ring can ever take at once, in relays without a flush.
#[test]
fn a_command_longer_than_the_subordinates_ring_stops_the_prefetcher() {
    for mut rig in rigs(Board::P100, DispatchLayout::Dispatcher) {
        rig.raw_subordinate_open(&vec![1; 100 * 256]);
        let address = CMDDAT_Q.base().get() + rig.cmddat_place(29 * 256 + 64) + 16;
        rig.raw_subordinate_open(&vec![1; 29 * 256]);
        check_stopped(&mut rig, Kernel::Prefetch, Fault::RelayTooLong, 29 * 256, address);
    }
}

/// Entries that name no record of ours.
#[test]
fn entries_that_name_no_record_stop_the_prefetcher() {
    for (entry, queue) in [0x4001, 0xC001, PREFETCH_Q_STALL_BIT].into_iter().flat_map(|e| QueueId::ALL.map(|q| (e, q)))
    {
        let mut rig = Rig::boot_on(Board::P100, DispatchLayout::Dispatcher, queue);
        rig.record(&[0; 64], Some(entry));
        check_stopped(&mut rig, Kernel::Prefetch, Fault::RecordTooLong, entry.into(), PREFETCH_Q.base().get());
    }
}

/// A record with the stall flag and no `EXEC_BUF`; let go, the next records are fetched.
#[test]
fn a_stall_flag_without_a_command_buffer_stops_the_prefetcher() {
    for mut rig in rigs(Board::P100, DispatchLayout::Dispatcher) {
        rig.event();
        let address = PREFETCH_Q.base().get() + 2;
        let entry = PREFETCH_Q_STALL_BIT | 4;
        rig.prefetch_as(&PrefetchCommand::SetRingbufferOffset(RingOffset { offset: 0, update_wp: false }), entry);
        check_stopped(&mut rig, Kernel::Prefetch, Fault::StallEntry, entry.into(), address);
        let_go(&mut rig, Kernel::Prefetch);
        rig.finish();
        rig.terminate();
    }
}

/// The same for a split prefetcher: its device side stops at the record's header in its ring; let
/// go, its host side passes on what is behind.
#[test]
fn a_stall_flag_without_a_command_buffer_stops_a_split_prefetcher() {
    for mut rig in rigs(Board::P100, DispatchLayout::Split) {
        rig.event();
        let entry = PREFETCH_Q_STALL_BIT | 4;
        rig.prefetch_as(&PrefetchCommand::SetRingbufferOffset(RingOffset { offset: 0, update_wp: false }), entry);
        // The record of the event and that of the command take a page each.
        let address = RECORDS.base().get() + RECORDS.page_size();
        check_stopped(&mut rig, Kernel::Prefetch, Fault::StallEntry, entry.into(), address);
        rig.host_side_released();
        let_go(&mut rig, Kernel::Prefetch);
        rig.finish();
        rig.terminate();
    }
}

/// What a command buffer of a split prefetcher ends with must reach its host side.
#[test]
fn the_end_of_a_command_buffer_that_the_host_side_does_not_see_stops_a_split_prefetcher() {
    for mut rig in rigs(Board::P100, DispatchLayout::Split) {
        rig.begin_buffer();
        rig.execute_to(&DispatchCommand::Sink, 6, 0);
        let id = DispatchCmdId::Sink as u32;
        check_stopped(&mut rig, Kernel::Prefetch, Fault::BadExecBufEnd, id, CMDDAT_Q.base().get());
    }
}

/// Commands with fields that the prefetcher cannot obey, each with its fault and the
/// fault's detail.
fn refused_by_the_prefetcher() -> Vec<(Vec<u8>, Fault, u32)> {
    use tilework_abi::cq::prefetch as p;
    let dram = p::RELAY_PAGED_IS_DRAM;
    let paged = |flags: u16, base: u32, page_size: u32| {
        let (base_addr, page_size) = (base.into(), page_size.into());
        let header = p::RelayPaged {
            cmd_id: 3,
            is_dram_and_length_adjust: flags.into(),
            base_addr,
            page_size,
            ..Default::default()
        };
        header.as_bytes().to_vec()
    };
    let packed = |count: u16, total: u32, stride: u32, sub: (u16, u32, u32)| {
        let (total_length, stride) = (total.into(), stride.into());
        let header = p::RelayPagedPacked { cmd_id: 4, count: count.into(), total_length, stride, ..Default::default() };
        let (log_page_size, base_addr, length) = (sub.0.into(), sub.1.into(), sub.2.into());
        let sub = p::RelayPagedPackedSub { log_page_size, base_addr, length, ..Default::default() };
        [header.as_bytes(), sub.as_bytes()].concat()
    };
    let ring = |log2_page_size: u8, wp: u32, length: u32| {
        let (wp_offset_update, length) = (wp.into(), length.into());
        let header =
            p::PagedToRingbuffer { cmd_id: 12, log2_page_size, wp_offset_update, length, ..Default::default() };
        header.as_bytes().to_vec()
    };
    let pieces = |count: u16, stride: u32, start: u32, length: u32| {
        let header =
            p::RelayRingbuffer { cmd_id: 14, count: count.into(), stride: stride.into(), ..Default::default() };
        let sub = p::RelayRingbufferSub { start: start.into(), length: length.into() };
        [header.as_bytes(), sub.as_bytes()].concat()
    };
    let offset = p::SetRingbufferOffset { cmd_id: 13, offset: 0x2_0001.into(), ..Default::default() };
    let exec = |log: u32, pages: u32| {
        let header = p::ExecBuf { cmd_id: 7, log_page_size: log.into(), pages: pages.into(), ..Default::default() };
        header.as_bytes().to_vec()
    };
    let debug = |size: u32, stride: u32, checksum: u32| {
        let (size, stride, checksum) = (size.into(), stride.into(), checksum.into());
        [p::DebugCmd { cmd_id: 10, size, stride, checksum, ..Default::default() }.as_bytes(), &[1; 48]].concat()
    };
    vec![
        (paged(dram, 0, 0), Fault::BadSize, 0),
        (paged(dram, 0, 96), Fault::BadSize, 96),
        (paged(dram, 32, 64), Fault::BadSize, 64),
        (paged(0, 0, 24), Fault::BadSize, 24),
        (paged(0, 8, 16), Fault::BadSize, 16),
        (packed(36, 64, 64, (6, 0, 64)), Fault::TooMany, 36),
        (packed(1, 64, 16, (6, 0, 64)), Fault::BadStride, 16),
        (packed(1, 64, 128, (6, 0, 64)), Fault::BadStride, 128),
        (packed(1, 128, 64, (6, 0, 64)), Fault::BadSize, 128),
        (packed(1, 64, 64, (6, 0, 128)), Fault::BadSize, 64),
        (packed(1, 64, 64, (5, 0, 64)), Fault::BadSize, 64),
        (packed(1, 64, 64, (32, 0, 64)), Fault::BadSize, 64),
        (packed(1, 64, 64, (6, 16, 64)), Fault::BadSize, 64),
        (packed(1, 80, 64, (6, 0, 80)), Fault::BadSize, 80),
        (ring(5, 64, 64), Fault::BadSize, 5),
        (ring(32, 64, 64), Fault::BadSize, 32),
        (ring(6, 64, 128), Fault::BadSize, 128),
        (ring(6, 0x2_0040, 64), Fault::BadSize, 64),
        (ring(6, 64, 32), Fault::BadSize, 32),
        (offset.as_bytes().to_vec(), Fault::BadSize, 0x2_0001),
        (pieces(53, 64, 0, 16), Fault::TooMany, 53),
        (pieces(1, 0, 0, 16), Fault::BadStride, 0),
        (pieces(1, 64, 0x2_0000, 16), Fault::BadSize, 0x2_0000),
        (pieces(1, 64, 16, u32::MAX), Fault::BadSize, 16),
        (exec(12, 1), Fault::BadExecBuf, 64),
        (exec(12, 0), Fault::BadSize, 0),
        (exec(12, 1 << 20), Fault::BadSize, 1 << 20),
        (exec(5, 1), Fault::BadSize, 5),
        (debug(0, 0, 0), Fault::BadStride, 0),
        (debug(0, 80, 0), Fault::BadStride, 80),
        (debug(52, 64, 1), Fault::BadSize, 52),
        (debug(8, 64, 0x0202_0201), Fault::BadChecksum, 0x0202_0202),
    ]
}

#[test]
fn every_field_that_the_prefetcher_cannot_obey_stops_it() {
    for mut rig in rigs(Board::P100, DispatchLayout::Dispatcher) {
        for (mut record, fault, detail) in refused_by_the_prefetcher() {
            record.resize(64, 0);
            let address = CMDDAT_Q.base().get() + rig.cmddat_place(64);
            rig.raw_prefetch(&record);
            check_stopped(&mut rig, Kernel::Prefetch, fault, detail, address);
            let_go(&mut rig, Kernel::Prefetch);
        }
        rig.finish();
        rig.terminate();
    }
}

/// The accounts themselves: a credit that is lost on the way is found.
#[test]
#[should_panic(expected = "pages given back")]
fn a_lost_credit_is_found() {
    lose_a_credit(QueueId::FIRST);
}

#[test]
#[should_panic(expected = "pages given back")]
fn a_lost_credit_of_the_second_queue_is_found() {
    lose_a_credit(QueueId::SECOND);
}

fn lose_a_credit(queue: QueueId) {
    let mut rig = Rig::boot_on(Board::P100, DispatchLayout::Dispatcher, queue);
    for _ in 0..100 {
        rig.send(&wait(cmd::WaitFlags::BARRIER, 0, 0, 0));
    }
    rig.event();
    rig.settle();
    let core = rig.prefetch_core();
    let at = SEM_DISPATCH_PAGES.addr(WORKER.kernel_config.get() + SEMAPHORE_OFFSET);
    let credits = rig.l1(core, at);
    rig.poke(core, at, credits - 1);
    rig.finish();
}
