//! What parked cores and the coprocessor sleep on.
//!
//! Cores of a tile often wait for neighbouring bytes of L1, or for different overlay streams, so
//! L1 is watched byte by byte and streams one by one. Other registers are watched by class
//! ([`wake`]). A wake-up for nothing costs some iterations of a poll loop, not a result.

use super::streams;
use super::wake;
use std::ops::Range;
use tilework_abi::address_map::Region;
use tilework_abi::stream;
use tilework_abi::tensix as map;

/// A bit set of cores, by their index, and the coprocessor.
pub(super) type CoreSet = u8;
/// The coprocessor among the sleepers.
pub(super) const COPROCESSOR: usize = 5;
/// Number of agents that can sleep.
const SLEEPERS: usize = 6;

/// The set without this member.
pub(super) fn mask_out(set: CoreSet, member: usize) -> CoreSet {
    set & !(1 << member)
}

/// Registers: classes, and streams.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Registers {
    classes: wake::Set,
    /// By number.
    streams: u64,
}

const _: () = assert!(stream::COUNT <= u64::BITS);

impl Registers {
    /// Those that an access of `len` bytes at `addr` reaches.
    #[inline]
    fn at(addr: u32, len: u32) -> Self {
        let Some(offset) = streams::offset_of(addr) else {
            return Self { classes: wake::classes(Region::decode(addr)), streams: 0 };
        };
        let (first, last) = (offset / stream::STRIDE, offset.saturating_add(len.max(1) - 1) / stream::STRIDE);
        let up_to_last = u64::MAX >> (u64::BITS - 1 - last.min(stream::COUNT - 1));
        Self { classes: 0, streams: up_to_last & u64::MAX << first }
    }

    fn with(self, other: Self) -> Self {
        Self { classes: self.classes | other.classes, streams: self.streams | other.streams }
    }

    #[inline]
    fn meet(self, other: Self) -> bool {
        self.classes & other.classes != 0 || self.streams & other.streams != 0
    }
}

/// The sleepers of a tile with what they watch.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[repr(C)]
pub(super) struct Watches {
    /// The registers that any agent watches.
    any: Registers,
    /// The agents that sleep.
    sleepers: CoreSet,
    /// By sleeper.
    registers: [Registers; SLEEPERS],
    spans: [Vec<Range<u32>>; SLEEPERS],
}

impl Watches {
    /// Puts `sleeper` to sleep, also, on these bytes. Returns true if they are in L1, where the
    /// caller marks them.
    pub(super) fn add(&mut self, sleeper: usize, span: Range<u32>) -> bool {
        self.sleepers |= 1 << sleeper;
        let is_l1 = span.start < map::L1_SIZE;
        if is_l1 {
            let spans = &mut self.spans[sleeper];
            if !spans.contains(&span) {
                spans.push(span);
            }
        } else {
            let registers = Registers::at(span.start, span.len() as u32);
            self.registers[sleeper] = self.registers[sleeper].with(registers);
            self.any = self.any.with(registers);
        }
        is_l1
    }

    /// Ends the sleep of `sleeper`; calls `unmark` with each span of L1 that it watched.
    pub(super) fn remove(&mut self, sleeper: usize, mut unmark: impl FnMut(&Self, Range<u32>)) {
        self.sleepers = mask_out(self.sleepers, sleeper);
        while let Some(span) = self.spans[sleeper].pop() {
            unmark(self, span);
        }
        self.registers[sleeper] = Registers::default();
        self.any = self.registers.iter().fold(Registers::default(), |all, one| all.with(*one));
    }

    /// Whether anybody sleeps.
    #[inline]
    pub(super) fn has_sleepers(&self) -> bool {
        self.sleepers != 0
    }

    /// Whether somebody sleeps on registers of these classes.
    #[inline]
    pub(super) fn is_watched(&self, classes: wake::Set) -> bool {
        self.any.classes & classes != 0
    }

    /// Whether somebody sleeps on the stream whose register is at `offset` of all streams.
    #[inline]
    pub(super) fn is_stream_watched(&self, offset: u32) -> bool {
        self.any.streams >> (offset / stream::STRIDE) & 1 != 0
    }

    /// Whether `sleeper` sleeps on the byte at `addr` of L1.
    pub(super) fn sleeps_on(&self, sleeper: usize, addr: u32) -> bool {
        self.spans[sleeper].iter().any(|span| span.contains(&addr))
    }

    /// Whether `sleeper` sleeps on registers, and on nothing in L1.
    pub(super) fn sleeps_on_registers_only(&self, sleeper: usize) -> bool {
        self.registers[sleeper] != Registers::default() && self.spans[sleeper].is_empty()
    }

    /// Those that sleep on registers of these classes.
    pub(super) fn on_classes(&self, classes: wake::Set) -> CoreSet {
        self.on(Registers { classes, streams: 0 })
    }

    /// Those that sleep on a register which a write of `len` bytes at `addr` changes.
    pub(super) fn on_registers(&self, addr: u32, len: u32) -> CoreSet {
        self.on(Registers::at(addr, len))
    }

    fn on(&self, registers: Registers) -> CoreSet {
        if !self.any.meet(registers) {
            return 0;
        }
        let meets = |set, (i, watched): (usize, &Registers)| set | CoreSet::from(watched.meet(registers)) << i;
        self.registers.iter().enumerate().fold(0, meets)
    }

    /// Those that sleep on one of these bytes of L1.
    pub(super) fn on_l1(&self, span: Range<u32>) -> CoreSet {
        let overlaps = |watched: &Range<u32>| watched.start < span.end && span.start < watched.end;
        let sleeps = |spans: &Vec<Range<u32>>| spans.iter().any(overlaps);
        self.spans.iter().enumerate().fold(0, |set, (i, spans)| set | CoreSet::from(sleeps(spans)) << i)
    }
}
