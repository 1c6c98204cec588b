//! Defects that were reported of the original's command queue and its traces, and the tests here
//! that find each. Tests without a file are below.
//!
//! - tt-metal#8062, #8160: a command buffer and records that were read ahead meet in the command
//!   data queue. `exec::issue_8160_nothing_is_fetched_behind_a_command_buffer`,
//!   `replays_work_from_every_start_of_the_rings` of `traces.rs`, and `FetchesPastStall` and
//!   `OverrunsCmddat` of the protocol's model (`crates/cq/tests/model.rs`).
//! - tt-metal#9459: a command that wraps in a ring never runs. `wraps::issue_9459_*`,
//!   [`tt_metal_9459_a_command_buffer_begins_at_every_offset_of_the_command_data_queue`].
//! - tt-metal#9113: a wait is satisfied by a semaphore's value from before its wrap.
//!   `sync::issue_9113_*`, `exec::issue_9113_counts_that_start_near_their_wrap_pass_it`,
//!   `tt_metal_9113_a_trace_counts_beyond_the_width_of_a_stream` of `traces_regressions.rs`;
//!   `ComparesPlainly` and `StallTakesOldNotice` of the model, and `ComparesPlainly` of the models
//!   of two queues and of traces (`model_queues.rs`, `model_traces.rs`).
//! - tt-metal#13484: in traces on two queues, two cores disagree on the size of a ring.
//!   [`tt_metal_13484_both_ends_of_every_ring_have_its_size`],
//!   `tt_metal_13484_traces_of_two_queues_share_no_ring_and_lose_no_credit` of
//!   `traces_regressions.rs`.
//! - tt-metal#37233: one page too few is given back for some sizes, and writes have no bytes.
//!   `wraps::issue_37233_*`, `faults::a_lost_credit_is_found`, the rig's checks at every look, the
//!   invariants of credits in `invariants.rs`, and `ReleasesOnePageTooFew` of the model.
//! - tt-metal#52233: a header is read before its payload has landed.
//!   `late::tt_metal_52233_random_streams_do_not_depend_on_the_order_of_packets`,
//!   `two_queues_are_right_however_late_packets_are` of `two_queues_faults.rs`,
//!   `tt_metal_52233_replays_on_two_queues_do_not_depend_on_the_order_of_packets` of
//!   `traces_regressions.rs`; `CreditBeforeData` of the model, `ExecutesBeforeStored` and
//!   `GoesBeforeData` of that of traces.
//! - tt-metal#55419: a completion pointer, reduced, lands in another queue's L1.
//!   `issue_55419_foreign_pointers_name_no_page` of `tilework_abi`,
//!   [`tt_metal_55419_a_foreign_completion_pointer_writes_nothing`],
//!   `tt_metal_55419_the_words_of_two_queues_are_their_own` of `two_queues.rs`, and
//!   `a_run_on_either_queue_reports_the_times_of_that_queue` of `two_queues_run.rs`.
//! - tt-metal#7892, #7072: larger transfers overflow L1 unseen, and events are garbage. The asserts
//!   of `tilework_abi::cq::layout`,
//!   [`tt_metal_7892_the_longest_records_leave_their_neighbours_alone`].
//! - tt-metal#51738: two queues hang each other.
//!   `tt_metal_51738_a_deadlock_names_queue_and_program` of `two_queues_faults.rs`, whose other
//!   tests put faults into either queue, `every_call_works_on_both_queues` of `two_queues.rs`, and
//!   the model of two queues.
//! - tt-metal#54032: memory that is allocated beside a live trace makes its replay hang.
//!   `tt_metal_54032_allocating_beside_a_live_trace_harms_no_replay` of `traces_regressions.rs`,
//!   `memory_of_a_trace_is_neither_freed_nor_given_to_others` of `traces.rs`, and `StoresPastQueue`
//!   of the model of traces.
//! - tt-metal#48869: what one trace uses is guarded, what another one uses is not.
//!   `tt_metal_48869_every_live_trace_guards_what_it_uses` of `traces_regressions.rs`.
//! - tt-metal#35259, #29797, #36999, tt-inference-server#4005: the size of the trace region is
//!   guessed, in bytes of a bank or of all. `a_trace_region_that_is_too_small_says_what_is_needed`
//!   of `traces.rs`; without a size the region grows.
//! - tt-metal#8383, #12481: an error in a capture hangs the closing of a device, and blocking
//!   replays hang. `tt_metal_8383_12481_a_device_closes_in_and_behind_captures` of
//!   `traces_faults.rs`, `what_a_replay_would_not_do_is_refused_in_a_capture` and
//!   `a_dropped_capture_is_given_up` of `traces.rs`, `queue_api_faults.rs`.
//! - tt-metal#46535: a cache miss in a capture is a cryptic error.
//!   `a_program_that_is_not_on_the_workers_is_refused_in_a_capture` of `traces.rs`.
//! - tt-metal#45435, #7343: a cached program has old addresses.
//!   `tt_metal_7343_45435_a_cached_program_and_its_trace_keep_their_own_addresses` of
//!   `traces_regressions.rs`.
//! - tt-metal#22790: what hangs is not named.
//!   `a_kernel_that_never_ends_is_named_with_its_word_and_line` of `deadlocks.rs`,
//!   `tt_metal_22790_a_deadlock_in_a_replay_names_trace_program_and_queue` of `traces_faults.rs`.
//! - tt-metal#14014, #51272: tests of paged reads never wrap. `relays`,
//!   [`tt_metal_51272_paged_relays_go_round_every_buffer`].

use crate::random::{Form, Random};
use crate::rig::Rig;
use crate::shadow::{DRAM_BASE, DRAM_BYTES};
use crate::sources::{Sourced, dram_pages};
use tilework_abi::board::Board;
use tilework_abi::cq::completion::CompletionRange;
use tilework_abi::cq::layout::prefetch_core::{
    self, CMDDAT_Q, MAX_RECORD_BYTES, PREFETCH_Q, PREFETCH_Q_RD_PTR, SCRATCH_DB,
};
use tilework_abi::cq::layout::{PAGE_SIZE, dispatch_core, host};
use tilework_abi::cq::status::{Kernel, word};
use tilework_cq::DispatchCommand;
use tilework_cq::dispatch::{HostWrite, LinearWrite, PagedWrite};
use tilework_cq::prefetch::PagedRelay;
use tilework_driver::DriverError;

/// A command buffer and the record that executes it, with the command data queue standing at every
/// place in steps of 64 bytes around its end.
#[test]
fn tt_metal_9459_a_command_buffer_begins_at_every_offset_of_the_command_data_queue() {
    let mut rig = Rig::boot(Board::P100);
    let mut random = Random::new(Board::P100, 9460);
    let size = CMDDAT_Q.region().size();
    for rest in 0..40 {
        // Up to `rest` units before the end, in two records.
        let filler = |random: &mut Random, bytes: u32| {
            let data = random.bytes(bytes as usize - 48);
            let (noc_xy, addr) = (random.worker().encode(), random.address().into());
            DispatchCommand::WriteLinear(LinearWrite { num_mcast_dests: 0, write_offset_index: 0, noc_xy, addr, data })
        };
        let command = filler(&mut random, size / 2);
        rig.send(&command);
        let left = size - rest * 64 - rig.cmddat();
        let command = filler(&mut random, left);
        rig.send(&command);
        if rest % 2 == 0 {
            rig.settle();
        }
        rig.begin_buffer();
        for bytes in [40, 3000, 17_000] {
            let command = random.write(Form::LinearUnicast, bytes);
            rig.send(&command);
        }
        let last = random.write(Form::PackedUnicast, 500);
        rig.execute(&last, 6 + rest % 9, rest % 2);
    }
    rig.finish();
    rig.terminate();
}

/// The credits that the host gives at the start are the ring's pages, for each ring; and each
/// FIFO's pointers start where its pages do.
#[test]
fn tt_metal_13484_both_ends_of_every_ring_have_its_size() {
    let rig = Rig::boot(Board::P100);
    let rings = [
        (dispatch_core::DISPATCH_CB, prefetch_core::SEM_DISPATCH_PAGES),
        (dispatch_core::DISPATCH_S_CB, prefetch_core::SEM_DISPATCH_S_PAGES),
    ];
    for (ring, credits) in rings {
        assert_eq!(rig.credits(credits), ring.pages().get());
        assert_eq!(ring.pages().get() * ring.page_size(), ring.region().size());
    }
    let fifo = CompletionRange::STANDARD;
    assert_eq!(fifo.pages() * PAGE_SIZE, host::COMPLETION.size());
    for at in [dispatch_core::COMPLETION_Q_WR_PTR, dispatch_core::COMPLETION_Q_RD_PTR] {
        assert_eq!(rig.l1(rig.board.dispatch_core(), at), fifo.start().word());
    }
}

/// A pointer that names no page of the FIFO stops the dispatcher; nothing is written anywhere, not
/// even where the pointer modulo anything would lead.
#[test]
fn tt_metal_55419_a_foreign_completion_pointer_writes_nothing() {
    let mut rig = Rig::boot(Board::P100);
    let core = rig.board.dispatch_core();
    rig.poke(core, dispatch_core::COMPLETION_Q_WR_PTR, 0x8000_0001);
    rig.settle();
    let before: Vec<Vec<u8>> = rig.board.tensix_tiles().map(|t| rig.card.link().l1(t).unwrap().to_vec()).collect();
    let mut host_before = vec![0; host::ISSUE.offset() as usize];
    rig.region.read(rig.card.link_mut(), 0, &mut host_before).unwrap();
    let payload = vec![0xAB; 4 * PAGE_SIZE as usize];
    rig.send(&DispatchCommand::WriteLinearHHost(HostWrite { is_event: false, payload }));
    let at = u64::from(host::CQ_WR.offset());
    let seen = rig.region.read32(rig.card.link_mut(), at).unwrap();
    let error = rig.region.wait_change(rig.card.link_mut(), at, seen, 10_000_000).unwrap_err();
    assert!(matches!(error, DriverError::Link(_)), "{error}");
    assert_ne!(rig.status(Kernel::Dispatch, word::ERROR), 0);
    let queue = [rig.board.prefetch_core(), core];
    for (tile, before) in rig.board.tensix_tiles().zip(before) {
        assert!(queue.contains(&tile) || rig.card.link().l1(tile).unwrap() == before, "{tile} was written");
    }
    let mut host_after = vec![0; host_before.len()];
    rig.region.read(rig.card.link_mut(), 0, &mut host_after).unwrap();
    assert_eq!(host_after, host_before);
}

/// Records of the longest size, at the start of the command data queue and behind others: the words
/// around it stay as they are, and events are those that were sent.
#[test]
fn tt_metal_7892_the_longest_records_leave_their_neighbours_alone() {
    let mut rig = Rig::boot(Board::P150);
    let mut random = Random::new(Board::P150, 7892);
    let core = rig.board.prefetch_core();
    let outside = |rig: &Rig| {
        let l1 = rig.card.link().l1(core).unwrap();
        let part = |from: u32, to: u32| l1[from as usize..to as usize].to_vec();
        let (queue, data) = (PREFETCH_Q, CMDDAT_Q.region());
        let status = Kernel::Prefetch.status().get();
        [
            part(PREFETCH_Q_RD_PTR + 8, status),
            part(status + 16, queue.base().get()),
            part(queue.end().get(), data.base().get()),
            part(SCRATCH_DB.base().get(), SCRATCH_DB.end().get() + 0x1000),
        ]
    };
    let before = outside(&rig);
    for less in [0, 64, 128, 4096] {
        for _ in 0..2 {
            let data = random.bytes((MAX_RECORD_BYTES - less) as usize - 48);
            let (noc_xy, addr) = (random.worker().encode(), random.address().into());
            let write = LinearWrite { num_mcast_dests: 0, write_offset_index: 0, noc_xy, addr, data };
            rig.send(&DispatchCommand::WriteLinear(write));
            rig.event();
        }
    }
    assert!(outside(&rig) == before, "memory beside the command data queue was written");
    rig.finish();
    rig.terminate();
}

/// Paged relays of many times 70 KB, as pages of every kind: the scratch buffer, the dispatch ring
/// and the completion FIFO go round.
#[test]
fn tt_metal_51272_paged_relays_go_round_every_buffer() {
    let mut rig = Rig::boot(Board::P100);
    let mut random = Random::new(Board::P100, 51272);
    let banks = rig.shadow.banks() as u32;
    for row in 0..DRAM_BYTES / 0x4000 {
        let data = random.bytes((banks * 0x4000) as usize);
        let (base_addr, page_size) = (DRAM_BASE + row * 0x4000, 0x4000);
        rig.send(&DispatchCommand::WritePaged(PagedWrite { is_dram: true, start_page: 0, base_addr, page_size, data }));
    }
    rig.finish();
    let mut relayed = 0;
    for page_size in [64, 192, 4096, 4160, 70_016] {
        let pages = (3 * SCRATCH_DB.size() + 1024).div_ceil(page_size);
        let relay =
            PagedRelay { is_dram: true, length_adjust: 32, start_page: 1, base_addr: DRAM_BASE, page_size, pages };
        let (data, source) = dram_pages(&rig.shadow, relay);
        assert!(data.len() > 5 * 70_000, "{} bytes", data.len());
        relayed += data.len() as u32;
        rig.send_from(&Sourced::to_host(data, source), page_size % 128 == 0);
    }
    rig.finish();
    assert!(relayed > 3 * dispatch_core::DISPATCH_CB.region().size());
    rig.terminate();
}
