//! Command buffers in DRAM and the ring buffer.

use crate::random::{Form, Random};
use crate::rig::{Rig, wait};
use crate::shadow::{DRAM_BASE, Shadow};
use crate::sources::Sourced;
use tilework_abi::board::Board;
use tilework_abi::cq::dispatch::WaitFlags;
use tilework_abi::cq::layout::SEMAPHORE_OFFSET;
use tilework_abi::cq::layout::dispatch_core::{DISPATCH_CB, SEM_CB_PAGES};
use tilework_abi::cq::layout::prefetch_core::{CMDDAT_Q, PREFETCH_Q, PREFETCH_Q_RD_PTR, SCRATCH_DB};
use tilework_abi::cq::prefetch::{RELAY_RINGBUFFER_MAX_SUBS, RingbufferFlags};
use tilework_abi::cq::status::Kernel;
use tilework_abi::cq::tiles::DispatchLayout;
use tilework_abi::l1::WORKER;
use tilework_cq::dispatch::DebugMark;
use tilework_cq::prefetch::{PagedToRing, RingOffset, RingPiece};
use tilework_cq::{DispatchCommand, PrefetchCommand};

/// A random filling of the ring buffer and relays from it, each of which brings the data of a
/// command.
pub(crate) fn random_ring(random: &mut Random, shadow: &Shadow) -> (Vec<PagedToRing>, Vec<Sourced>) {
    let mut ring = vec![0; SCRATCH_DB.size() as usize];
    let (mut fills, mut write, mut offset) = (Vec::new(), 0, 0);
    for i in 0..1 + random.below(4) {
        let log2_page_size = 6 + random.below(8) as u8;
        let length = 64 * (1 + random.below(500));
        let wp_offset_update = length + 64 * random.below(10);
        let (start_page, base_addr) = (random.below(256) as u8, DRAM_BASE + 64 * random.below(64));
        let pages = length.div_ceil(1 << log2_page_size);
        let data = shadow.pages(true, start_page.into(), base_addr, 1 << log2_page_size, pages);
        let flags = if i == 0 { RingbufferFlags::RESET_TO_START } else { RingbufferFlags::empty() };
        fills.push(PagedToRing { flags, log2_page_size, start_page, wp_offset_update, base_addr, length });
        ring[write..write + length as usize].copy_from_slice(&data[..length as usize]);
        offset = write;
        write += wp_offset_update as usize;
    }
    let end = offset + fills.last().expect("one at least").length as usize;
    let relays = (0..1 + random.below(3)).map(|_| {
        let (mut data, mut pieces) = (Vec::new(), Vec::new());
        let count = 1 + random.below(RELAY_RINGBUFFER_MAX_SUBS as u32);
        for i in 0..count {
            let start = 16 * random.below((end - offset) as u32 / 16);
            let most = ((end - offset) as u32 - start).min(3000);
            let length = if i + 1 == count { 1 + random.below(most) } else { 16 * (1 + random.below(most / 16)) };
            let from = offset + start as usize;
            data.extend(&ring[from..from + length as usize]);
            pieces.push(RingPiece { start, length });
        }
        let bytes = data.len();
        Sourced::new(random.carrying(data), bytes, PrefetchCommand::RelayRingbuffer(pieces))
    });
    let relays = relays.collect();
    (fills, relays)
}

/// A command buffer of random commands in pages of a random size.
pub(crate) fn random_buffer(rig: &mut Rig, random: &mut Random, steps: u32) {
    rig.begin_buffer();
    for _ in 0..steps {
        crate::random_command(rig, random);
    }
    let last = if random.coin() { random.any_write() } else { DispatchCommand::ExecBufEnd };
    let (log, spare) = (6 + random.below(9), random.below(3));
    rig.execute(&last, log, spare);
}

/// The layouts in which the prefetcher differs.
const PREFETCHERS: [DispatchLayout; 2] = [DispatchLayout::Dispatcher, DispatchLayout::Split];

/// Command buffers of every page size, longer and shorter than the command data queue, with
/// commands that end everywhere in a chunk.
#[test]
fn command_buffers_of_every_page_size_are_executed() {
    for (board, layout) in [Board::P100, Board::P150].into_iter().flat_map(|b| PREFETCHERS.map(|l| (b, l))) {
        let mut rig = Rig::boot_with(board, layout);
        let mut random = Random::with(board, layout, 30);
        for log in 6..=16 {
            for spare in [0, 3] {
                rig.begin_buffer();
                for _ in 0..random.below(12) {
                    crate::random_command(&mut rig, &mut random);
                }
                let last = random.any_write();
                rig.execute(&last, log, spare);
                let command = random.any_write();
                rig.send(&command);
            }
        }
        rig.finish();
        rig.terminate();
    }
}

/// A command buffer of more bytes than the command data queue holds, with relays that pass the ends
/// of chunks.
#[test]
fn a_command_buffer_longer_than_the_command_data_queue_is_executed() {
    for (layout, log) in PREFETCHERS.into_iter().flat_map(|l| [7, 11, 14].map(|log| (l, log))) {
        let mut rig = Rig::boot_with(Board::P100, layout);
        let mut random = Random::with(Board::P100, layout, 31);
        rig.begin_buffer();
        let mut bytes = 0;
        while bytes < 3 * CMDDAT_Q.region().size() as usize {
            let form = random.one_of(&Form::ALL);
            let size = random.size(100_000);
            let command = random.write(form, size);
            bytes += command.to_bytes().unwrap().len();
            rig.send(&command);
        }
        let last = random.any_write();
        rig.execute(&last, log, 0);
        rig.finish();
        rig.terminate();
    }
}

/// Nothing is fetched behind a command buffer while it is executed: the queue of commands is its
/// own (tt-metal#8062, tt-metal#8160).
#[test]
fn issue_8160_nothing_is_fetched_behind_a_command_buffer() {
    PREFETCHERS.into_iter().for_each(nothing_is_fetched_behind_a_command_buffer);
}

fn nothing_is_fetched_behind_a_command_buffer(layout: DispatchLayout) {
    let mut rig = Rig::boot_with(Board::P100, layout);
    let mut random = Random::with(Board::P100, layout, 32);
    rig.event();
    rig.settle();
    let core = rig.board.prefetch_core();
    let before = rig.l1(core, PREFETCH_Q_RD_PTR);
    let (gate, count) = (rig.spare_word(), 7);
    rig.begin_buffer();
    rig.send(&wait(WaitFlags::WAIT_MEMORY | WaitFlags::NOTIFY_PREFETCH, 0, gate, count));
    rig.prefetch(&PrefetchCommand::Stall);
    let last = random.any_write();
    rig.execute(&last, 12, 1);
    let commands: Vec<_> = (0..20).map(|_| random.any_write()).collect();
    commands.iter().for_each(|command| rig.send(command));
    rig.settle();
    let taken = rig.l1(core, PREFETCH_Q_RD_PTR);
    assert_eq!(taken, before + 2, "the entry of the command buffer is the last that was taken");
    let entries = (1..=20).map(|i| rig.l1(core, (taken + 2 * i) & !3) >> (8 * ((taken + 2 * i) & 2)) & 0xFFFF);
    assert!(entries.into_iter().all(|entry| entry != 0), "an entry behind the command buffer was taken");
    rig.poke(rig.core_of(Kernel::Dispatch), gate, count);
    rig.finish();
    rig.terminate();
    assert!(taken < PREFETCH_Q.end().get());
}

/// The ring buffer is filled to its last byte, and pieces reach from its first to its last.
#[test]
fn the_ring_buffer_is_relayed_to_its_last_byte() {
    let mut rig = Rig::boot(Board::P100);
    let mut random = Random::new(Board::P100, 33);
    let size = SCRATCH_DB.size();
    for log2_page_size in [6, 10, 14] {
        let (base_addr, start_page) = (DRAM_BASE, 3);
        let command = random.write(Form::PagedDram, 150_000);
        rig.send(&command);
        let data = rig.shadow.pages(true, 3, base_addr, 1 << log2_page_size, size >> log2_page_size);
        let half = size / 2;
        let fill = |flags, start_page, length| PagedToRing {
            flags,
            log2_page_size,
            start_page,
            wp_offset_update: length,
            base_addr,
            length,
        };
        // All at once, and in halves: the offset is that of the newest fill until it is set.
        let all = [fill(RingbufferFlags::RESET_TO_START, start_page, size)];
        let piece = |start, length| RingPiece { start, length };
        let pieces = vec![piece(size - 16, 16), piece(0, size), piece(half, half - 1)];
        let bytes: Vec<u8> =
            pieces.iter().flat_map(|p| data[p.start as usize..][..p.length as usize].to_vec()).collect();
        let relay = Sourced::to_host(bytes, PrefetchCommand::RelayRingbuffer(pieces));
        rig.send_ring(&all, &[relay]);

        rig.prefetch(&PrefetchCommand::SetRingbufferOffset(RingOffset { offset: half, update_wp: true }));
        let again = [fill(RingbufferFlags::empty(), start_page, half)];
        let relay =
            Sourced::to_host(data[..half as usize].to_vec(), PrefetchCommand::RelayRingbuffer(vec![piece(0, half)]));
        rig.send_ring(&again, &[relay]);

        rig.prefetch(&PrefetchCommand::SetRingbufferOffset(RingOffset { offset: half - 16, update_wp: false }));
        let mut bytes = data[half as usize - 16..half as usize].to_vec();
        bytes.extend(&data[..16]);
        let relay = Sourced::to_host(bytes, PrefetchCommand::RelayRingbuffer(vec![piece(0, 32)]));
        rig.send_ring(&[], &[relay]);
    }
    rig.finish();
    rig.terminate();
}

/// The checksum of a `DEBUG` command: the words of its payload, which may be the next commands.
#[test]
fn debug_payloads_are_checked() {
    let mut rig = Rig::boot(Board::P100);
    for words in [1, 4, 12, 28] {
        let body: Vec<u8> = (0..112u8).map(|i| i.wrapping_mul(37)).collect();
        let checked = body.chunks_exact(4).take(words).map(|w| u32::from_le_bytes(w.try_into().unwrap()));
        let checksum = checked.fold(0u32, u32::wrapping_add);
        let mark = DebugMark { key: words as u16, size: 4 * words as u32, checksum, body };
        rig.prefetch(&PrefetchCommand::Debug(mark));
    }
    rig.finish();
    rig.terminate();
}

/// Neighbouring entries become one read: a ring full of small records behind a closed gate arrives
/// with fewer packets than a read and its answer for each would make.
#[test]
fn neighbouring_entries_are_one_read() {
    let mut rig = Rig::boot(Board::P100);
    let mut random = Random::new(Board::P100, 34);
    let (gate, count) = (rig.spare_word(), 9);
    rig.send(&wait(WaitFlags::WAIT_MEMORY, 0, gate, count));
    let records = 8 * u64::from(DISPATCH_CB.pages().get());
    for _ in 0..records {
        let command = random.write(Form::LinearUnicast, 16);
        rig.send(&command);
    }
    rig.settle();
    let before = rig.card.link().stats().noc_packets;
    rig.poke(rig.board.dispatch_core(), gate, count);
    rig.finish();
    let packets = rig.card.link().stats().noc_packets - before;
    // Each record is written twice and its credit given once, which is answered: six packets.
    println!("{packets} packets for {records} records");
    assert!(packets < 7 * records, "{packets} packets for {records} records");
    rig.terminate();
}

/// Every count starts where it wraps: pages filled and pages free of every ring, on both sides,
/// notifications of the prefetcher and of the subordinate, ends of command buffers. Nothing is lost
/// while they pass.
#[test]
fn issue_9113_counts_that_start_near_their_wrap_pass_it() {
    let layouts = DispatchLayout::ALL.into_iter();
    for (layout, before) in layouts.flat_map(|layout| [0, 1, 127, 128, 300].map(|before| (layout, before))) {
        let mut rig = Rig::boot_counted(Board::P100, layout, -before);
        let mut random = Random::with(Board::P100, layout, before.unsigned_abs().into());
        for _ in 0..40 {
            crate::random_command(&mut rig, &mut random);
            crate::subordinate_step(&mut rig, &mut random);
            rig.stall();
        }
        random_buffer(&mut rig, &mut random, 5);
        rig.finish();
        for _ in 0..300 {
            rig.stall();
        }
        rig.finish();
        let wrapped = rig.l1(rig.core_of(Kernel::Dispatch), filled_pages()) < 1 << 31;
        assert!(wrapped, "{layout}: the dispatcher's count of pages has not passed its wrap");
        rig.terminate();
    }
}

/// Address of the dispatcher's count of filled pages.
fn filled_pages() -> u32 {
    SEM_CB_PAGES.addr(WORKER.kernel_config.get() + SEMAPHORE_OFFSET)
}
