//! The event sink: what observers of a chip get to see.
//!
//! An [`Observer`] says what it wants ([`Wants`]) and is handed events in the order of (cycle,
//! tile, agent); what nobody wants is not recorded. Observing changes neither cycles nor bytes: it
//! switches speculation off, which changes nothing but the time that a run takes, and runs the
//! cores through a second copy of the interpreter when accesses are wanted.
//!
//! An observer of all accesses may say of which it knows enough ([`Known`]); these are left out.
//!
//! Tiles record into a [`Recorder`] of their own; packets are recorded where they are routed. Both
//! come to the [`Hub`], which puts them in order as far as the clock has come.

mod copies;
mod counters;
mod counts;
mod event;
mod filter;
mod gates;
mod hub;
#[cfg(test)]
mod left_out_tests;
mod lines;
mod local;
mod packets;
mod pages;
mod recorder;
mod requests;
mod spans;

pub use counts::PcCount;
pub use event::{Agent, Event, Spot, Unit, What};
pub use filter::{Known, KnownOf};
pub(crate) use gates::Passing;
pub(crate) use hub::Hub;
pub use lines::{FieldStore, LineAccess, LineSteps};
pub(crate) use packets::Packets;
pub(crate) use pages::Boundaries;
pub(crate) use recorder::{Loaded, Recorder, Stored};
pub use requests::{PacketEvent, PacketKind, Request, RequestId, RequestKind, Way};
pub use spans::Spans;

use crate::Cycle;
use std::ops::{BitOr, Range};
use std::sync::{Arc, Mutex};
use tilework_abi::noc::NocXy;
use tilework_driver::Note;

/// Kinds of events.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Wants(u16);

impl Wants {
    /// Nothing but stores to observed lines.
    pub const NOTHING: Self = Self(0);
    /// Cores that wait and go on, resets.
    pub const CORES: Self = Self(1);
    /// Requests, packets that arrive, and those of the host that leave.
    pub const ARRIVALS: Self = Self(2);
    /// Requests and packets.
    pub const NOC: Self = Self(2 | 64);
    /// Stores of cores and of the coprocessor to registers other than fields of a request.
    pub const REGISTERS: Self = Self(4);
    /// All loads, stores, atomics and fences of cores in L1 and in registers, and what the
    /// coprocessor reads and writes in L1. Much: about every third instruction.
    pub const ACCESSES: Self = Self(8);
    /// With the accesses those of cores to their local RAM.
    pub const LOCAL: Self = Self(1 << 8);
    /// With the accesses those to the registers of an NIU that are no counters: fields of requests.
    pub const FIELDS: Self = Self(1 << 9);
    /// Spans in which units of the coprocessor are busy.
    pub const UNITS: Self = Self(16);
    /// How often each instruction of a core was executed, and its cycles ([`What::Counted`]).
    pub const COUNTS: Self = Self(32);
    /// What orders the threads and units of the coprocessor: pushes, instructions at the wait
    /// gates, jobs of the unpackers, uses of Dst and of the configuration.
    pub const COPROCESSOR: Self = Self(128);

    /// Every instruction that the coprocessor executes ([`What::Tensix`]).
    pub const TENSIX: Self = Self(128);

    /// Whether it includes any of `other`.
    #[inline]
    pub(crate) const fn has_any(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether it includes all of `other`.
    #[inline]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl BitOr for Wants {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// What an observer of all accesses needs to see little of, if nobody else wants to see it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unjudged {
    /// Instructions on Tensix tiles whose loads from local RAM it does not look at, and of whose
    /// stores there it needs to know the words only, before the next event of the core's local RAM
    /// ([`What::Prepared`]): firmware.
    pub code: Range<u32>,
    /// From which address of its local RAM on it does not look at loads of each core from words
    /// that were stored, and needs to know of stores as of those: above whatever stack pointer is
    /// wrong.
    pub stacks: [u32; 5],
    /// The [`boundaries`](Observer::boundaries) that BRISC polls: a load from there begins and ends
    /// nothing if the access to a boundary before it was one that found the same there.
    pub polled: Range<u32>,
    /// Registers of which it looks at no access of a core, outside the NIUs.
    pub registers: Range<u32>,
    /// Tiles of whose cores it only needs to know what they read and write in L1, besides what
    /// arrives: all code there is as the above, requests and loads of registers are not told, nor
    /// packets that ask for something to be read for them or acknowledge what they wrote.
    pub tiles: Vec<NocXy>,
    /// It does not look at fences: of copies that are loaded from it is told which there are
    /// ([`What::Holds`]).
    pub fences: bool,
    /// It takes what a unit reads at once as one event ([`What::UnitReads`]). It is told so when
    /// all others do who see accesses, or take lines.
    pub spans: bool,
}

impl Default for Unjudged {
    /// All is to be seen.
    fn default() -> Self {
        Self {
            code: 0..0,
            stacks: [u32::MAX; 5],
            polled: 0..0,
            registers: 0..0,
            tiles: Vec::new(),
            fences: false,
            spans: false,
        }
    }
}

/// Somebody who looks at what happens on a chip.
pub trait Observer: Send {
    /// What it wants, asked once.
    fn wants(&self) -> Wants;
    /// Addresses of L1, the same on every Tensix tile, to which it wants to see the stores of cores
    /// without [`Wants::ACCESSES`]: mailboxes, counters. They are rounded to lines of 64 bytes.
    fn lines(&self) -> Vec<Range<u32>> {
        Vec::new()
    }
    /// Addresses of L1, the same on every Tensix tile, at which BRISC learns or tells that a
    /// program begins or ends: each of its accesses there ends what is [`Known`] of the tile. Asked
    /// after each note.
    fn boundaries(&self) -> Vec<Range<u32>> {
        Vec::new()
    }
    /// What it needs to see little of; asked, of the first observer that wants accesses, after
    /// notes of firmware, of command queues and of launches: then for the tiles of the launch.
    fn unjudged(&self) -> Unjudged {
        Unjudged::default()
    }
    /// Whether it needs to see only the first load of a counter of an NIU, by each core, since a
    /// request was last started there, and the first of that of each transaction id. Asked once, of
    /// the first observer that wants accesses.
    fn sees_counters_once(&self) -> bool {
        false
    }
    /// Whether it takes accesses that are known as lines ([`What::Line`]), fields of requests
    /// together ([`What::Fields`]), and what a unit reads at once ([`What::UnitReads`]), asked
    /// once. They are told so when everybody takes them who sees accesses that are known.
    fn takes_lines(&self) -> bool {
        false
    }
    /// Hands over what it has come to know; asked of the first observer that wants accesses.
    fn known(&mut self) -> Vec<Known> {
        Vec::new()
    }
    /// Whether it may end the run, asked once: it then gets its events at the end of each window.
    fn judges(&self) -> bool {
        false
    }
    /// Whether it ends the run, asked at the end of each window if it judges.
    fn ends(&self) -> bool {
        false
    }
    /// Addresses of L1 of single tiles, of which it wants to see the loads of cores without
    /// [`Wants::ACCESSES`]: rings that a kernel takes its commands from. Asked whenever a command
    /// queue is about to start ([`Note::Queue`]).
    fn loads(&self) -> Vec<(NocXy, Range<u32>)> {
        Vec::new()
    }
    /// Takes the next events, in the order of cycles. It may get more than it wants, when another
    /// observer wants more.
    fn events(&mut self, events: &[Event]);
    /// Takes those of these events that have the given places, in this order, which is that of
    /// cycles: as [`Observer::events`].
    fn in_order(&mut self, events: &[Event], places: &[u32]) {
        places.iter().for_each(|&place| self.events(std::slice::from_ref(&events[place as usize])));
    }
    /// The host has told something about its own doings at this cycle. It may be ahead of the chip,
    /// of which all events that have been handed over come before.
    fn note(&mut self, at: Cycle, note: &Note) {
        let _ = (at, note);
    }
    /// All events before this cycle have been handed over.
    fn reached(&mut self, at: Cycle) {
        let _ = at;
    }
}

/// Shared with somebody who asks it later.
impl<T: Observer> Observer for Arc<Mutex<T>> {
    fn wants(&self) -> Wants {
        self.lock().map_or(Wants::NOTHING, |observer| observer.wants())
    }
    fn lines(&self) -> Vec<Range<u32>> {
        self.lock().map_or(Vec::new(), |observer| observer.lines())
    }
    fn boundaries(&self) -> Vec<Range<u32>> {
        self.lock().map_or(Vec::new(), |observer| observer.boundaries())
    }
    fn unjudged(&self) -> Unjudged {
        self.lock().map_or_else(|_| Unjudged::default(), |observer| observer.unjudged())
    }
    fn sees_counters_once(&self) -> bool {
        self.lock().is_ok_and(|observer| observer.sees_counters_once())
    }
    fn takes_lines(&self) -> bool {
        self.lock().is_ok_and(|observer| observer.takes_lines())
    }
    fn known(&mut self) -> Vec<Known> {
        self.lock().map_or(Vec::new(), |mut observer| observer.known())
    }
    fn judges(&self) -> bool {
        self.lock().is_ok_and(|observer| observer.judges())
    }
    fn ends(&self) -> bool {
        self.lock().is_ok_and(|observer| observer.ends())
    }
    fn loads(&self) -> Vec<(NocXy, Range<u32>)> {
        self.lock().map_or(Vec::new(), |observer| observer.loads())
    }
    fn events(&mut self, events: &[Event]) {
        if let Ok(mut observer) = self.lock() {
            observer.events(events);
        }
    }
    fn in_order(&mut self, events: &[Event], places: &[u32]) {
        if let Ok(mut observer) = self.lock() {
            observer.in_order(events, places);
        }
    }
    fn note(&mut self, at: Cycle, note: &Note) {
        if let Ok(mut observer) = self.lock() {
            observer.note(at, note);
        }
    }
    fn reached(&mut self, at: Cycle) {
        if let Ok(mut observer) = self.lock() {
            observer.reached(at);
        }
    }
}
