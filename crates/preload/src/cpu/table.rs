//! What was decoded: a table of the library's, not of the heap, because the handler of a signal
//! fills it.
//!
//! Instructions lie in the order in which they were met, so that those of a loop are neighbours,
//! and the one behind is mostly the next. The bytes of each are compared once in each run: the
//! program may have changed them.

use super::plan::Plan;
use crate::client;
use iced_x86::{Decoder, DecoderOptions, Instruction};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// Instructions that are kept.
pub(super) const TABLE: usize = 16384;
/// Places where an instruction is looked for by its address.
const INDEX: usize = 4 * TABLE;
/// The longest instruction.
const BYTES: usize = 15;

/// Instructions without an access to the card after which the processor goes on.
const LIMIT: u32 = 64;
/// The same in a loop, which has trapped at the same instruction before, while it is not known how
/// far apart its accesses are. So many take about as long as a trap.
const LIMIT_OF_LOOP: u32 = 1024;
/// Runs from a place after which that is found out anew.
const EXPLORE: u32 = 64;
/// Instructions beyond twice that distance.
const MORE: u32 = 16;
/// Places of traps that are remembered.
const TRAPS: usize = 64;
/// Runs from a place that have found no second access to the card, after which only the instruction
/// itself is carried out; and how many of those, until it is tried again.
const FRUITLESS: u32 = 4;
const AGAIN: u32 = 1000;

/// What is needed of an instruction each time.
#[derive(Clone, Copy)]
struct Known {
    rip: u64,
    /// The run in which its bytes were compared last.
    checked: u64,
    plan: Plan,
}

/// What it was decoded from.
#[derive(Clone, Copy)]
struct Source {
    bytes: [u8; 16],
    instruction: Option<Instruction>,
}

/// A place where the program has trapped.
#[derive(Clone, Copy, Default)]
struct Trap {
    rip: u64,
    /// Runs from there.
    runs: u32,
    /// Those since one that was worth it.
    fruitless: u32,
    /// Instructions between two accesses, the most of late.
    apart: u32,
}

pub(super) struct Table {
    index: Box<[u16; INDEX]>,
    known: Box<[Known; TABLE]>,
    sources: Box<[Source; TABLE]>,
    /// Where the next new one goes.
    next: usize,
    traps: [Trap; TRAPS],
    /// Counts traps, and stores to what may be code.
    run: u64,
}

static DECODED: OnceLock<Mutex<Table>> = OnceLock::new();

/// `N` equal values, made where they stay.
fn filled<T: Copy, const N: usize>(value: T) -> Box<[T; N]> {
    match vec![value; N].into_boxed_slice().try_into() {
        Ok(filled) => filled,
        Err(_) => unreachable!("there are as many as were asked for"),
    }
}

/// The table, which is used under the card's lock; made at the first call, before there is a trap.
pub(super) fn table() -> MutexGuard<'static, Table> {
    let new = || {
        Mutex::new(Table {
            index: filled(0),
            known: filled(Known { rip: 0, checked: 0, plan: Plan::NOTHING }),
            sources: filled(Source { bytes: [0; 16], instruction: None }),
            next: 0,
            traps: [Trap::default(); TRAPS],
            run: 0,
        })
    };
    DECODED.get_or_init(new).lock().unwrap_or_else(PoisonError::into_inner)
}

/// Where an instruction is looked for: at one of two neighbours. Pages of several libraries take
/// part in a loop.
fn place(rip: u64) -> usize {
    (rip ^ rip >> 12 ^ rip >> 24) as usize % INDEX
}

impl Table {
    /// A run begins with a trap at `rip`: gives the number of instructions without an access after
    /// which it ends.
    pub(super) fn begin(&mut self, rip: u64) -> u32 {
        self.run += 1;
        let trap = &mut self.traps[rip as usize % TRAPS];
        if trap.rip != rip {
            *trap = Trap { rip, ..Trap::default() };
            return LIMIT;
        }
        trap.runs = trap.runs.wrapping_add(1);
        match trap.fruitless % AGAIN {
            0..FRUITLESS if trap.runs % EXPLORE == 1 => LIMIT_OF_LOOP,
            0..FRUITLESS => (2 * trap.apart + MORE).min(LIMIT_OF_LOOP),
            _ => 0,
        }
    }

    /// The run that a trap at `rip` began has ended. It had so many accesses, and at most so many
    /// instructions between two of them.
    pub(super) fn end(&mut self, rip: u64, accesses: u32, apart: u32) {
        let trap = &mut self.traps[rip as usize % TRAPS];
        if trap.rip != rip {
            return;
        }
        if accesses > 1 {
            // Less far apart than before: slowly.
            (trap.fruitless, trap.apart) = (0, apart.max(trap.apart - trap.apart / 8));
        } else {
            trap.fruitless = trap.fruitless.wrapping_add(1);
        }
    }

    /// The program may have changed code.
    pub(super) fn check_anew(&mut self) {
        self.run += 1;
    }

    /// Where the instruction at `rip` is, which was met behind that at `before`. `None` if there is
    /// none, or none that is known.
    #[inline]
    pub(super) fn find(&mut self, rip: u64, before: usize) -> Option<usize> {
        let behind = (before + 1) % TABLE;
        if self.is_checked(behind, rip) {
            return Some(behind);
        }
        let at = usize::from(self.index[place(rip)]) % TABLE;
        if self.is_checked(at, rip) { Some(at) } else { self.look_at(rip) }
    }

    #[inline]
    pub(super) fn plan(&self, at: usize) -> &Plan {
        &self.known[at % TABLE].plan
    }

    pub(super) fn instruction(&self, at: usize) -> Option<&Instruction> {
        self.sources[at % TABLE].instruction.as_ref()
    }

    #[inline]
    fn is_checked(&self, at: usize, rip: u64) -> bool {
        let known = &self.known[at];
        known.rip == rip && known.checked == self.run
    }

    #[inline(never)]
    fn look_at(&mut self, rip: u64) -> Option<usize> {
        let mut bytes = [0; 16];
        if !client::load(rip as usize, &mut bytes) {
            // Near the end of memory: as many as there are.
            let len = (1..=BYTES).rev().find(|&len| client::load(rip as usize, &mut bytes[..len]))?;
            bytes[len..].fill(0);
        }
        let places = [place(rip), place(rip) ^ 1];
        let is_its = |&at: &usize| self.known[at].rip == rip;
        let known = places.map(|place| usize::from(self.index[place])).into_iter().find(is_its);
        if let Some(at) = known
            && self.sources[at].bytes == bytes
        {
            self.known[at].checked = self.run;
            return Some(at);
        }
        let instruction = Decoder::with_ip(64, &bytes[..BYTES], rip, DecoderOptions::NONE).decode();
        if instruction.is_invalid() {
            return None;
        }
        let at = known.unwrap_or(self.next);
        if known.is_none() {
            self.next = (at + 1) % TABLE;
            // The place that is found first is the newer one's.
            self.index[places[1]] = self.index[places[0]];
            self.index[places[0]] = at as u16;
        }
        self.known[at] = Known { rip, checked: self.run, plan: Plan::of(&instruction) };
        self.sources[at] = Source { bytes, instruction: Some(instruction) };
        Some(at)
    }
}
