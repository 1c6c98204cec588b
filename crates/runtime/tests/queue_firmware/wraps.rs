//! Commands at every offset of every ring, and rings that go round.

use crate::random::{Form, Random};
use crate::rig::{Rig, first_difference, wait};
use tilework_abi::board::Board;
use tilework_abi::cq::dispatch::WaitFlags;
use tilework_abi::cq::layout::prefetch_core::{CMDDAT_Q, MAX_RECORD_BYTES, PREFETCH_Q_ENTRIES};
use tilework_abi::cq::layout::{PAGE_SIZE, dispatch_core, host};
use tilework_cq::DispatchCommand;
use tilework_cq::dispatch::{HostWrite, LinearWrite, PackedTargets, PackedWrite, Packets};
use tilework_cq::dispatch::{LargeSub, PackedLargeWrite};

/// Every write form begins at every page of the dispatch ring.
///
/// tt-metal#9459: a command that wraps in a ring is taken for incomplete, or its tail for the next
/// command.
#[test]
fn issue_9459_every_form_begins_at_every_page_of_the_dispatch_ring() {
    let mut rig = Rig::boot(Board::P100);
    let mut random = Random::new(Board::P100, 9459);
    let pages = dispatch_core::DISPATCH_CB.pages().get();
    for form in Form::ALL {
        let mut seen = vec![false; pages as usize];
        while seen.iter().any(|s| !s) {
            if std::mem::replace(&mut seen[(rig.dispatch.pages % pages) as usize], true) {
                rig.send(&least(&mut random));
                continue;
            }
            // Four to five pages as a rule; shared packets are shorter.
            let bytes = 4 * PAGE_SIZE as usize + 16 * random.below(250) as usize;
            let command = random.write(form, bytes);
            rig.send(&command);
        }
        rig.finish();
    }
    rig.terminate();
}

/// The least write: one packet of 16 bytes to one worker, a record of 64 bytes.
fn least(random: &mut Random) -> DispatchCommand {
    DispatchCommand::WritePacked(PackedWrite {
        kind: Default::default(),
        write_offset_index: 0,
        addr: random.address(),
        targets: PackedTargets::Unicast(vec![random.worker().encode()]),
        packets: Packets::Shared(random.bytes(16)),
    })
}

/// A write to one worker whose record has exactly `bytes` bytes, at least 128.
fn sized(random: &mut Random, bytes: u32) -> DispatchCommand {
    let (record_header, header) = (16, 32);
    DispatchCommand::WriteLinear(LinearWrite {
        num_mcast_dests: 0,
        write_offset_index: 0,
        noc_xy: random.worker().encode(),
        addr: random.address().into(),
        data: random.bytes((bytes - record_header - header) as usize),
    })
}

/// A record never wraps in the command data queue. One that just fits, one that is one unit too
/// long, one that is shorter, with every rest of up to 70 units left at the queue's end
/// (tt-metal#9459).
#[test]
fn issue_9459_records_meet_the_end_of_the_command_data_queue_at_every_offset() {
    let mut rig = Rig::boot(Board::P150);
    let mut random = Random::new(Board::P150, 1);
    let size = CMDDAT_Q.region().size();
    for rest in 0..=70 {
        for more in [-64i32, 0, 64] {
            let bytes = rest * 64;
            // Up to `bytes` before the end, in two records, so that the prefetcher has two at a
            // time. Behind a round that ended at the queue's end the first of them begins at its
            // start.
            rig.send(&sized(&mut random, size / 2));
            let fill = size - bytes - rig.cmddat();
            rig.send(&sized(&mut random, fill));
            // Half of the rounds let the prefetcher run empty first, the others keep it busy: it
            // places records by two rules.
            if rest % 2 == 0 {
                rig.settle();
            }
            let crossing = bytes.saturating_add_signed(more).max(64);
            let place = rig.cmddat_place(crossing);
            assert_eq!(place == 0, crossing > bytes, "{crossing} bytes with {bytes} left");
            rig.send(&if crossing == 64 { least(&mut random) } else { sized(&mut random, crossing) });
            rig.send(&least(&mut random));
        }
    }
    rig.finish();
    rig.terminate();
}

/// The prefetch ring is filled to the last entry while the dispatcher stands still, twice round and
/// at different places, and nothing is lost.
#[test]
fn the_prefetch_ring_fills_up_and_goes_round() {
    let mut rig = Rig::boot(Board::P100);
    let mut random = Random::new(Board::P100, 2);
    let (gate, mut count) = (rig.spare_word(), 0);
    for round in 0..3 {
        count += 1;
        rig.send(&wait(WaitFlags::WAIT_MEMORY, 0, gate, count));
        let mut sent = 0;
        // Full is what stays full: look again after the prefetcher has taken what it can hold.
        loop {
            while rig.try_send(&least(&mut random)) {
                sent += 1;
            }
            rig.settle();
            let command = least(&mut random);
            if !rig.try_send(&command) {
                break;
            }
            sent += 1;
        }
        // Every page of the dispatch ring is used; one record waits for credits; each of the
        // others, read or not, has its entry.
        let unsent = rig.free_pages().wrapping_add(sent);
        assert_eq!(sent, unsent + PREFETCH_Q_ENTRIES + 1, "records in round {round}");
        rig.poke(rig.board.dispatch_core(), gate, count);
        rig.finish();
        for _ in 0..random.below(400) {
            rig.send(&least(&mut random));
        }
    }
    rig.finish();
    rig.terminate();
}

/// The completion FIFO and the issue region go round: read-backs of odd sizes, a host that reads
/// nothing until the FIFO is full, and a second way round with the toggle set.
#[test]
fn the_completion_fifo_fills_up_and_goes_round_with_the_issue_region() {
    let mut rig = Rig::boot(Board::P100);
    let mut random = Random::new(Board::P100, 3);
    let read_back = |random: &mut Random, pages: usize| {
        let last = random.one_of(&[1, 15, 16, 17, 64, 2047, 4095, 4096]);
        let bytes = (pages - 1) * PAGE_SIZE as usize + last;
        DispatchCommand::WriteLinearHHost(HostWrite { is_event: false, payload: random.bytes(bytes.max(17) - 16) })
    };
    // Nothing is read until the dispatcher can go no further.
    let mut pages = 0;
    while pages < host::COMPLETION_PAGES {
        let n = random.one_of(&[1, 2, 31, 60, 63]);
        let command = read_back(&mut random, n);
        pages += command.to_bytes().unwrap().len().div_ceil(PAGE_SIZE as usize) as u32;
        while !rig.try_send(&command) {
            rig.settle();
        }
    }
    rig.settle();
    let ready = rig.ready_pages();
    assert!(ready <= host::COMPLETION_PAGES && ready + 64 > host::COMPLETION_PAGES, "{ready} pages are ready");
    rig.wait_all();
    // From here on the host reads; the FIFO ends inside commands of every size.
    for _ in 0..300 {
        let n = random.one_of(&[3, 59, 61, 63]);
        let command = read_back(&mut random, n);
        rig.send(&command);
        pages += command.to_bytes().unwrap().len().div_ceil(PAGE_SIZE as usize) as u32;
    }
    rig.finish();
    assert!(pages > 2 * host::COMPLETION_PAGES, "{pages} pages are not twice round");
    assert_eq!(rig.issue_wraps(), 1, "the issue region was started again");
    rig.terminate();
}

/// Sizes around every page border, and packets that are no multiple of anything: as many pages are
/// credited as were filled, and no packet is empty (tt-metal#37233).
#[test]
fn issue_37233_sizes_that_round_cost_the_pages_they_fill() {
    let mut rig = Rig::boot(Board::P150);
    let mut random = Random::new(Board::P150, 4);
    for pages in [1, 2, 31, 32, 33] {
        for off in [-33i32, -17, -16, -15, -1, 0, 1, 15, 16, 17, 33] {
            let bytes = (pages * PAGE_SIZE).saturating_add_signed(off) as usize;
            for (form, header) in [(Form::LinearUnicast, 32), (Form::LinearMulticast, 32), (Form::Host, 16)] {
                let before = rig.dispatch.pages;
                let command = random.write(form, bytes - header);
                rig.send(&command);
                assert_eq!(rig.dispatch.pages - before, bytes.div_ceil(PAGE_SIZE as usize) as u32);
            }
        }
        rig.finish();
    }
    // Packets of every size around 16, 64 and a page, for several targets; then large packets
    // behind each other.
    for size in (1..=80).chain(4000..=4096) {
        let packets = Packets::PerTarget((0..5).map(|_| random.bytes(size)).collect());
        let targets = PackedTargets::Unicast((0..5).map(|_| random.worker().encode()).collect());
        let (addr, kind) = (random.address(), Default::default());
        rig.send(&DispatchCommand::WritePacked(PackedWrite { kind, write_offset_index: 0, addr, targets, packets }));
        let sub = |random: &mut Random, size: usize| {
            let (rect, count) = random.rect();
            let (noc_xy, addr) = (rect.encode_noc1(), random.address());
            LargeSub { noc_xy, addr, num_mcast_dests: count as u8, unlink: true, data: random.bytes(size) }
        };
        rig.send(&DispatchCommand::WritePackedLarge(PackedLargeWrite {
            kind: Default::default(),
            alignment: 16,
            write_offset_index: 0,
            subs: vec![sub(&mut random, size), sub(&mut random, 1), sub(&mut random, size + 16 * 1024)],
        }));
    }
    rig.finish();
    rig.terminate();
}

/// The longest record, at the start and in the middle of the dispatch ring.
#[test]
fn the_longest_record_passes_wherever_the_rings_stand() {
    let mut rig = Rig::boot(Board::P100);
    let mut random = Random::new(Board::P100, 5);
    for _ in 0..8 {
        rig.send(&sized(&mut random, MAX_RECORD_BYTES));
        for _ in 0..random.below(40) {
            rig.send(&least(&mut random));
        }
    }
    rig.finish();
    rig.terminate();
}

/// The model itself: a byte that differs is found.
#[test]
#[should_panic(expected = "L1 of ")]
fn a_byte_that_differs_is_found() {
    let mut rig = Rig::boot(Board::P100);
    let mut random = Random::new(Board::P100, 6);
    let command = least(&mut random);
    rig.send(&command);
    rig.event();
    let DispatchCommand::WritePacked(PackedWrite { addr, targets: PackedTargets::Unicast(targets), .. }) = &command
    else {
        unreachable!("least() makes packed writes");
    };
    let tile = tilework_abi::noc::NocXy::decode(targets[0]);
    let word = rig.l1(tile, *addr);
    assert_eq!(first_difference(&[1, 2], &[1, 3]), Some((1, 2, 3)));
    rig.poke(tile, *addr, word ^ 1);
    rig.finish();
}
