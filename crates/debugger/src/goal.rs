//! What the chip runs for: up to where, and why it stopped there.

use crate::witness::Found;
use gdbstub::target::ext::breakpoints::WatchKind;
use std::ops::Range;
use tilework_abi::addr::Cycle;
use tilework_sim::Thread;

/// Up to where the chip runs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Goal {
    /// To the first kernel of the program; nobody is attached yet.
    Start,
    /// To whatever stops it.
    Free,
    /// Until `thread` has executed `count` instructions since power-on, and is out of the range.
    /// `alone`: gdb has taken away a breakpoint for this.
    Step {
        /// The core.
        thread: Thread,
        /// Its instructions then.
        count: u64,
        /// Where it is not to stop.
        range: Range<u32>,
        /// Others are not to stop.
        alone: bool,
    },
    /// To a cycle.
    Until(Cycle),
    /// To a place that the chip has passed: the run is repeated.
    Back(Back),
}

/// A place that the chip has passed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Back {
    /// The beginning.
    Begin,
    /// A cycle.
    Cycle(Cycle),
    /// Where `thread` had executed `count` instructions.
    Count {
        /// The core.
        thread: Thread,
        /// Its instructions.
        count: u64,
    },
    /// The last event before `before`: looked for, and known when the chip is there.
    LastBefore {
        /// Where the chip stood.
        before: Moment,
        /// The last so far.
        last: Option<(Moment, Box<Stop>)>,
    },
    /// An event, and what it is.
    To(Moment, Box<Stop>),
}

/// When something happened that stops the chip: an arrival at a breakpoint, or an access to watched
/// memory, which happens next.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Moment {
    /// All before this cycle has happened.
    pub(crate) cycle: Cycle,
    /// The thread.
    pub(crate) thread: Thread,
}

/// Why the chip stopped.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Stop {
    /// The first kernel of the program is about to begin.
    Kernel(Thread),
    /// Code was found that gdb does not know.
    Library(Thread),
    /// A core is about to execute an instruction with a breakpoint.
    Break(Thread),
    /// A core has executed an instruction with a breakpoint while gdb had taken it away, to step
    /// another one over it.
    Passed(Thread, u32),
    /// Watched memory was accessed.
    Watch {
        /// The thread whose memory it is, or that accessed it.
        thread: Thread,
        /// gdb's kind and address, of a watchpoint of gdb's.
        gdb: Option<(WatchKind, u32)>,
        /// Who accessed it, and how.
        what: String,
    },
    /// Something wrong was found.
    Found(Thread, Found),
    /// A step is done, or the given cycle is reached.
    Done(Thread),
    /// The beginning of the run is reached.
    Begin(Thread),
    /// The user interrupts.
    Interrupt(Thread),
    /// A program did something wrong.
    Fault(Thread, String),
    /// Nothing can happen any more.
    Deadlock(Thread, String),
    /// What was looked for is known: the run is repeated once more.
    Again,
}

impl Stop {
    /// The thread that gdb is to show.
    pub(crate) fn thread(&self) -> Option<Thread> {
        match self {
            Self::Kernel(thread)
            | Self::Library(thread)
            | Self::Break(thread)
            | Self::Passed(thread, _)
            | Self::Watch { thread, .. }
            | Self::Found(thread, _)
            | Self::Done(thread)
            | Self::Begin(thread)
            | Self::Interrupt(thread)
            | Self::Fault(thread, _)
            | Self::Deadlock(thread, _) => Some(*thread),
            Self::Again => None,
        }
    }
}
