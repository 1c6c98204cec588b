//! Traces: programs that were captured once and are replayed by one small record.
//!
//! [`Device::begin_trace_capture`](crate::Device::begin_trace_capture) begins a capture: from then
//! on programs that are enqueued are recorded and nothing runs, until
//! [`Device::end_trace_capture`](crate::Device::end_trace_capture). The names are tt-metal's.
//! docs/protocol.md says what a trace holds and why its order is right.

use crate::device::SubDeviceId;
use std::fmt;
use std::panic::Location;
use std::rc::Rc;
use tilework_abi::cq::layout::QueueId;

/// A place in the source of the program that uses the runtime: where a call was made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CallSite(&'static Location<'static>);

impl CallSite {
    /// The caller of the function that is marked `#[track_caller]`.
    #[track_caller]
    pub(crate) fn here() -> Self {
        Self(Location::caller())
    }
    /// The file.
    pub fn file(&self) -> &'static str {
        self.0.file()
    }
    /// The line, from 1 on.
    pub fn line(&self) -> u32 {
        self.0.line()
    }
}

impl fmt::Display for CallSite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file(), self.line())
    }
}

/// A trace in messages: its number and where its capture began.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TraceName {
    /// Its number: the traces of a device are counted from 0 on.
    pub number: u64,
    /// The call of `begin_trace_capture`.
    pub begun: CallSite,
}

impl fmt::Display for TraceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "trace {} (captured from {} on)", self.number, self.begun)
    }
}

/// A capture under way. When it is dropped the capture is given up: the next call to the device is
/// an ordinary one.
#[derive(Debug)]
#[must_use = "a capture that is dropped is given up"]
pub struct TraceCapture {
    pub(crate) device: u64,
    pub(crate) name: TraceName,
    /// The device has a weak reference to it.
    pub(crate) _held: Rc<()>,
}

/// A captured trace. [`Device::release_trace`](crate::Device::release_trace) gives its memory back.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Trace {
    pub(crate) device: u64,
    pub(crate) name: TraceName,
    pub(crate) programs: usize,
    pub(crate) bytes: usize,
}

impl Trace {
    /// Its number and where its capture began.
    pub fn name(&self) -> TraceName {
        self.name
    }
    /// Launches of programs in it.
    pub fn programs(&self) -> usize {
        self.programs
    }
    /// Bytes of its commands in DRAM; none under slow dispatch.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

/// Why a call that has to do with traces was refused. An error in a capture gives it up.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TraceError {
    /// A call that would wait for the device, or that would be missing from a replay.
    #[error("{call} at {at} is not possible while {trace} is captured; the capture is given up")]
    InCapture {
        /// What was called.
        call: &'static str,
        /// Where.
        at: CallSite,
        /// The trace.
        trace: TraceName,
    },
    /// A program that is not on the workers: a capture runs nothing, and a replay sends no kernel
    /// text of its own.
    #[error(
        "program {program} is not compiled, or its kernel text is not on all of its workers: run it once before the capture"
    )]
    NotResident {
        /// The program.
        program: String,
    },
    /// Another error, in a capture.
    #[error("{why}, at {at} in {trace}; the capture is given up")]
    Program {
        /// What was wrong.
        why: String,
        /// Where.
        at: CallSite,
        /// The trace.
        trace: TraceName,
    },
    /// The end of a capture that was given up.
    #[error("{trace} cannot be ended at {at}: {why}")]
    GivenUp {
        /// The trace.
        trace: TraceName,
        /// The call.
        at: CallSite,
        /// What ended the capture.
        why: String,
    },
    /// More bytes than the trace region has left.
    #[error(
        "{trace} needs {bytes} bytes of each DRAM bank and the trace region has {free} left in one piece: open the device with a trace_region_size of at least {expected}, or with none, so that it grows"
    )]
    Region {
        /// The trace.
        trace: TraceName,
        /// Bytes of each bank.
        bytes: u64,
        /// What is left.
        free: u64,
        /// The least size that holds all traces that there are.
        expected: u64,
    },
    /// A queue that the trace is not of: its commands are for the kernels of one queue.
    #[error("{trace} is of queue {of}, and {call} at {at} is about queue {asked}")]
    Queue {
        /// The trace.
        trace: TraceName,
        /// Its queue.
        of: QueueId,
        /// What was called.
        call: &'static str,
        /// Where.
        at: CallSite,
        /// For which queue.
        asked: QueueId,
    },
    /// Programs of two sub-devices in one trace, whose commands count the workers of one.
    #[error("a trace is of one sub-device: program {program} is on sub-device {sub}, those before it on {before}")]
    SubDevices {
        /// The program.
        program: String,
        /// Its sub-device.
        sub: SubDeviceId,
        /// That of the trace.
        before: SubDeviceId,
    },
    /// A trace that was captured with other sub-devices.
    #[error(
        "{trace} was captured before the sub-devices were changed; {call} at {at} would wait for the wrong workers"
    )]
    OtherSubDevices {
        /// The trace.
        trace: TraceName,
        /// What was called.
        call: &'static str,
        /// Where.
        at: CallSite,
    },
    /// A trace that was released before.
    #[error("{trace} is used at {at}, but it was released")]
    Released {
        /// The trace.
        trace: TraceName,
        /// The call.
        at: CallSite,
    },
    /// A trace of another device.
    #[error("{trace} is used at {at}, but it is one of another device")]
    Foreign {
        /// The trace.
        trace: TraceName,
        /// The call.
        at: CallSite,
    },
}
