//! Memory that traces refer to: what must not be freed, and where nothing else may be allocated.
//!
//! A replay has the addresses of the capture in it. The runtime does not know which of a program's
//! arguments are addresses, so every argument that lies within an allocated range counts as one: a
//! number that happens to do so keeps a buffer until the trace is released, which is safe.

use super::{BufferType, MemoryError, MemorySpace};
use crate::trace::{CallSite, TraceName};
use std::ops::Range;

/// Why bytes are needed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum PinUse {
    /// An argument is an address in a buffer.
    Argument,
    /// A circular buffer lies there.
    CircularBuffer,
}

impl PinUse {
    const fn name(self) -> &'static str {
        match self {
            Self::Argument => "an argument",
            Self::CircularBuffer => "a circular buffer",
        }
    }
}

/// Bytes that a trace needs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pin {
    /// The trace.
    pub trace: TraceName,
    /// The call that captured the program.
    pub at: CallSite,
    /// The program.
    pub program: String,
    /// What of it.
    pub by: PinUse,
    memory: Memory,
    range: Range<u64>,
}

impl std::fmt::Display for Pin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { trace, at, program, by, range, .. } = self;
        let by = by.name();
        write!(f, "{:#x}..{:#x} is {by} of program {program}, which {trace} got at {at}", range.start, range.end)
    }
}

/// Memories by their addresses: the kinds of one memory share them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Memory {
    Dram,
    L1,
    System,
}

impl From<BufferType> for Memory {
    fn from(kind: BufferType) -> Self {
        match kind {
            BufferType::Dram | BufferType::Trace => Self::Dram,
            BufferType::L1 | BufferType::L1Small => Self::L1,
            BufferType::SystemMemory => Self::System,
        }
    }
}

/// The pins of all traces.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Pins(Vec<Pin>);

impl Pins {
    fn find(&self, kind: BufferType, range: &Range<u64>) -> Option<&Pin> {
        let memory = Memory::from(kind);
        self.0.iter().find(|p| p.memory == memory && p.range.start < range.end && range.start < p.range.end)
    }
}

impl MemorySpace {
    /// Pins what the words of a program's arguments point into, and the bytes of its circular
    /// buffers.
    pub(crate) fn pin(
        &mut self,
        (trace, at, program): (TraceName, CallSite, &str),
        words: impl IntoIterator<Item = u32>,
        cbs: impl IntoIterator<Item = Range<u64>>,
    ) {
        let mut words: Vec<u32> = words.into_iter().collect();
        words.sort_unstable();
        words.dedup();
        let named = words.into_iter().flat_map(|word| self.owners_of(word.into()));
        let mut found: Vec<_> = named.map(|(memory, range)| (memory, range, PinUse::Argument)).collect();
        found.extend(cbs.into_iter().map(|range| (Memory::L1, range, PinUse::CircularBuffer)));
        for (memory, range, by) in found {
            let same = |p: &Pin| p.trace == trace && p.memory == memory && p.range == range;
            if !range.is_empty() && !self.pins.0.iter().any(same) {
                self.pins.0.push(Pin { trace, at, program: program.to_owned(), by, memory, range });
            }
        }
    }

    /// The allocated ranges in which an address lies.
    fn owners_of(&self, address: u64) -> Vec<(Memory, Range<u64>)> {
        let kinds = [BufferType::Dram, BufferType::L1, BufferType::L1Small, BufferType::SystemMemory];
        let of = |kind: BufferType| {
            let owners = match kind {
                BufferType::Dram | BufferType::Trace => self.dram.ranges(address),
                BufferType::L1 => self.l1.ranges(address),
                BufferType::L1Small => self.l1_small.ranges(address),
                BufferType::SystemMemory => self.system.ranges(address),
            };
            owners.into_iter().map(move |range| (Memory::from(kind), range))
        };
        kinds.into_iter().flat_map(of).collect()
    }

    /// Gives up all pins of a trace.
    pub(crate) fn unpin(&mut self, trace: TraceName) {
        self.pins.0.retain(|pin| pin.trace != trace);
    }

    /// Refuses to free `bytes` at `address` when a trace needs some of them.
    pub(super) fn check_free(
        &self,
        name: &str,
        kind: BufferType,
        (address, bytes): (u64, u64),
        at: CallSite,
    ) -> Result<(), MemoryError> {
        match self.pins.find(kind, &(address..address + bytes)) {
            Some(pin) => {
                Err(MemoryError::Pinned { name: name.to_owned(), call: "freed", at, pin: Box::new(pin.clone()) })
            }
            None => Ok(()),
        }
    }

    /// Refuses memory that was just allocated when a trace writes there.
    pub(super) fn check_allocated(
        &mut self,
        name: &str,
        kind: BufferType,
        (address, bytes): (u64, u64),
        (id, at): (super::AllocationId, CallSite),
    ) -> Result<(), MemoryError> {
        // Buffers that arguments name are allocated: nothing overlaps them in the same banks.
        let pin = self.pins.find(kind, &(address..address + bytes)).filter(|pin| pin.by == PinUse::CircularBuffer);
        let Some(pin) = pin.cloned() else { return Ok(()) };
        self.free_id(kind, id);
        Err(MemoryError::Pinned { name: name.to_owned(), call: "allocated", at, pin: Box::new(pin) })
    }
}
