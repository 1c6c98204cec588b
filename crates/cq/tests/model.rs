//! The protocol of the command queue, checked in every order of events.
//!
//! Issue region, prefetch queue, command data queue, dispatch ring with its credits, `STALL` and
//! its notification, and the completion FIFO, all a few units long, so that everything wraps within
//! a short script and a model checker can try every order in which host, prefetcher, dispatcher and
//! packets may take their turns. What decides anything is the code that runs: [`tilework_cq`] on
//! the host's side, `tilework_cq_core` on the firmware's. The model adds memories, packets, and the
//! order of calls in `firmware/prefetch` and `firmware/dispatch`.
//!
//! Checked of every script: every byte arrives once, in order and unharmed; pages are conserved at
//! every step; no order of events ends in a deadlock; and each situation that the script is there
//! for (a wrap, a full ring, a packet that overtakes) comes about.
//!
//! A model that cannot fail shows nothing. So each [`Defect`] puts one mistake into it, most of
//! them mistakes that were made, and must be found.

#[path = "model/dispatch.rs"]
mod dispatch;
#[path = "model/host.rs"]
mod host;
#[path = "model/machine.rs"]
mod machine;
#[path = "model/prefetch.rs"]
mod prefetch;
#[path = "model/relay.rs"]
mod relay;
#[path = "model/script.rs"]
mod script;

use machine::{CONSERVED, ENDS, Queue, RIGHT, Reached, Who};
use script::Step::{self, Barrier, Event, Exec, Fill, Part, Pieces, Source, Stall, Write};
use stateright::{Checker, HasDiscoveries, Model};

/// A mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Defect {
    /// The dispatcher forgets to flip the toggle of the completion write pointer.
    ForgetsToggle,
    /// The host forgets to flip the toggle of its read pointer.
    HostKeepsToggle,
    /// The dispatcher writes a completion page without room for it.
    IgnoresFullFifo,
    /// The completion pointer is sent before its page has arrived.
    PointerBeforePage,
    /// The prefetcher announces one page too few (tt-metal#37233).
    ReleasesOnePageTooFew,
    /// A page that is left open is acquired again by what follows in it.
    CountsOpenPageTwice,
    /// The prefetcher announces pages before their data has arrived (tt-metal#52233).
    CreditBeforeData,
    /// Credits are compared as plain integers (tt-metal#9113).
    ComparesPlainly,
    /// The dispatcher gives a block back as soon as it has read it.
    GivesBlockBackAtOnce,
    /// The dispatcher gives a block back while it is the source of writes.
    SourcesMayBeInFlight,
    /// The dispatcher gives every block back twice.
    GivesBlockBackTwice,
    /// The prefetcher frees an entry when it starts the read.
    FreesEntryAtStart,
    /// The prefetcher starts a read for an entry that it has already started one for.
    LapsEntries,
    /// The prefetcher reads over records that it has not executed (tt-metal#8062).
    OverrunsCmddat,
    /// Prefetcher and host start the issue region again by different rules.
    OtherIssueRule,
    /// The prefetcher takes any answer for that of the oldest read.
    TakesAnyAnswer,
    /// `STALL` is satisfied by a notification that an earlier one was for (tt-metal#9113).
    StallTakesOldNotice,
    /// The prefetcher goes on fetching behind a record with the stall flag (tt-metal#8062).
    FetchesPastStall,
    /// The prefetcher leaves a command buffer while reads of its rest are in flight.
    LeavesReadsInFlight,
    /// A half of the scratch buffer is read again while writes out of it are in flight.
    ReusesHalfEarly,
    /// Pieces of the ring buffer are relayed before it is filled.
    RelaysRingEarly,
    /// The dispatcher notifies the prefetcher without waiting for its own writes.
    NotifiesWithoutBarrier,
}

/// A script and what it is there for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scenario {
    name: &'static str,
    steps: &'static [Step],
    /// Situations that must come about.
    reached: &'static [Reached],
    /// Who is prompt, because another script is about its turns.
    prompt: &'static [Who],
}

/// Records of one and two units through issue region, entries and command data queue.
const FETCH: Scenario = Scenario {
    name: "fetch",
    steps: &[Write(6), Write(1), Write(6), Write(6), Write(2)],
    reached: &[Reached::IssueWrap, Reached::HostBlocked, Reached::CmddatWrap, Reached::ReadOvertakes],
    prompt: &[Who::Dispatch, Who::Collect],
};
/// More records than there are entries; the last ends at the end of the issue region.
const ENTRIES: Scenario = Scenario {
    name: "entries",
    steps: &[Write(1), Write(1), Write(1), Write(6), Write(1)],
    reached: &[Reached::HostBlocked, Reached::CmddatWrap, Reached::ReadOvertakes],
    prompt: &[Who::Relay, Who::Dispatch, Who::Collect],
};
/// Commands of all lengths through the dispatch ring.
const RING: Scenario = Scenario {
    name: "ring",
    steps: &[Write(3), Write(5), Part(1), Part(1), Write(2), Write(6), Write(1), Write(4), Write(6)],
    reached: &[Reached::RingFull, Reached::RingCut, Reached::BlockWaits],
    prompt: &[Who::Fetch, Who::Collect],
};
/// More events than the completion FIFO has pages, twice over.
const COMPLETION: Scenario = Scenario {
    name: "completion",
    steps: &[Event, Event, Event, Event, Event],
    reached: &[Reached::FifoFull, Reached::ToggleFlipped],
    prompt: &[Who::Fetch],
};
/// Stalls, each with its own notification.
const STALL: Scenario = Scenario {
    name: "stall",
    steps: &[Write(1), Barrier, Stall, Write(2), Barrier, Stall, Write(3)],
    reached: &[Reached::Stalled],
    prompt: &[Who::Fetch],
};
/// A command longer than the ring, through the halves of the scratch buffer.
const SCRATCH: Scenario = Scenario {
    name: "scratch",
    steps: &[Part(2), Source(13), Write(1), Part(1), Source(3)],
    reached: &[Reached::RingFull, Reached::RingCut],
    prompt: &[Who::Fetch, Who::Collect],
};
/// The ring buffer, filled twice.
const RINGBUFFER: Scenario = Scenario {
    name: "ring buffer",
    steps: &[
        Fill(0, 4),
        Fill(4, 4),
        Part(1),
        Pieces(&[(6, 2), (0, 5), (3, 1)]),
        Fill(2, 4),
        Part(2),
        Pieces(&[(0, 8)]),
    ],
    reached: &[Reached::RingPending, Reached::RingFull],
    prompt: &[Who::Fetch, Who::Collect],
};
/// Command buffers, whose commands pass the ends of chunks; one with a rest that is no command.
const EXEC: Scenario = Scenario {
    name: "exec",
    steps: &[Write(1), Exec(3, 3), Write(2), Write(5), Write(2), Write(3), Exec(1, 0), Write(1), Write(1)],
    reached: &[Reached::InBuffer, Reached::ChunkCut, Reached::LeftEarly],
    prompt: &[Who::Dispatch, Who::Collect],
};
/// A little of everything, everyone at any time.
const TOGETHER: Scenario =
    Scenario { name: "together", steps: &[Write(3), Event, Barrier, Stall], reached: &[], prompt: &[] };

fn check(scenario: Scenario) {
    let checker = Queue::new(scenario, None).checker().spawn_bfs().join();
    println!("{}: {} states", scenario.name, checker.unique_state_count());
    checker.assert_properties();
}

#[test]
fn records_pass_the_issue_region_and_the_command_data_queue() {
    check(FETCH);
}

#[test]
fn records_pass_the_prefetch_queue() {
    check(ENTRIES);
}

#[test]
fn commands_pass_the_dispatch_ring() {
    check(RING);
}

#[test]
fn events_pass_the_completion_fifo() {
    check(COMPLETION);
}

#[test]
fn a_stall_waits_for_its_own_notification() {
    check(STALL);
}

#[test]
fn long_commands_pass_the_scratch_buffer() {
    check(SCRATCH);
}

#[test]
fn pieces_of_the_ring_buffer_are_relayed() {
    check(RINGBUFFER);
}

#[test]
fn command_buffers_are_executed_alone() {
    check(EXEC);
}

#[test]
fn everything_together_ends() {
    check(TOGETHER);
}

/// Where each mistake shows, and as what.
const FOUND: [(Defect, Scenario, &str); 22] = [
    (Defect::ForgetsToggle, COMPLETION, RIGHT),
    (Defect::HostKeepsToggle, COMPLETION, ENDS),
    (Defect::IgnoresFullFifo, COMPLETION, RIGHT),
    (Defect::PointerBeforePage, COMPLETION, RIGHT),
    (Defect::ReleasesOnePageTooFew, RING, CONSERVED),
    (Defect::CountsOpenPageTwice, RING, RIGHT),
    (Defect::CreditBeforeData, RING, RIGHT),
    (Defect::ComparesPlainly, RING, ENDS),
    (Defect::GivesBlockBackAtOnce, RING, CONSERVED),
    (Defect::SourcesMayBeInFlight, RING, RIGHT),
    (Defect::GivesBlockBackTwice, RING, CONSERVED),
    (Defect::FreesEntryAtStart, FETCH, RIGHT),
    (Defect::LapsEntries, ENTRIES, RIGHT),
    (Defect::OverrunsCmddat, FETCH, RIGHT),
    (Defect::OtherIssueRule, ENTRIES, RIGHT),
    (Defect::TakesAnyAnswer, FETCH, RIGHT),
    (Defect::StallTakesOldNotice, STALL, RIGHT),
    (Defect::NotifiesWithoutBarrier, STALL, RIGHT),
    (Defect::FetchesPastStall, EXEC, RIGHT),
    (Defect::LeavesReadsInFlight, EXEC, RIGHT),
    (Defect::ReusesHalfEarly, SCRATCH, RIGHT),
    (Defect::RelaysRingEarly, RINGBUFFER, RIGHT),
];

#[test]
fn every_defect_is_found() {
    for (defect, scenario, property) in FOUND {
        let queue = Queue::new(scenario, Some(defect));
        let checker = queue.checker().finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
        let found = checker.discoveries();
        println!("{defect:?}: {:?} after {} states", found.keys(), checker.unique_state_count());
        assert!(found.contains_key(property), "{defect:?} does not show as a violation of \"{property}\"");
    }
}
