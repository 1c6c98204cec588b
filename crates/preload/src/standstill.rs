//! A program that polls a chip in which nothing will ever happen.
//!
//! The chip is quiet when no core can run and nothing is in flight: only the program could change
//! that. A program that reads the same few words all the time, finds them as they were and writes
//! nothing, does not. After [`PATIENCE`] of that:
//!
//! - work on the chip is stuck for good if a core waits for what no host gives and no firmware
//!   waits for while it has no work ([`is_stuck`]): an instruction of the coprocessor that waits, a
//!   word in a data cache that nothing will refresh, an access that is not answered, an answer to a
//!   request of its own NIU, pages of a circular buffer. That is a deadlock: it is told, and the
//!   process ends;
//! - otherwise firmware that has nothing to do looks the same. It is told, once, and the program
//!   goes on to its own limit. `--deadlock end` ends it, too.
//!
//! A program that does not touch the card, or pauses between its looks, is never ended: it may wait
//! for its user.

use crate::tell;
use std::fmt::Write;
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use tilework_abi::address_map::Region;
use tilework_abi::tlb::Bar;
use tilework_abi::{noc, stream};
use tilework_sim::{Chip, WaitWord, Waiting};

/// Bytes of a register.
const WORD: u32 = 4;

/// How long a program polls before it is told.
const PATIENCE: Duration = Duration::from_secs(5);
/// Without a look for so long, it does not poll.
const PAUSE: Duration = Duration::from_millis(250);
/// Looks after which the time is looked at, and the fewest of a program that polls.
const LOOKS: u64 = 64;
/// Words that a loop looks at.
const WORDS: usize = 32;
/// Waiting cores that are told one by one.
const NAMED: usize = 24;

/// What happens to a program that polls a quiet chip.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Policy {
    /// It is told, and ended.
    End,
    /// It is told; ended if work on the chip is stuck for good.
    Certain,
    /// It is told.
    Warn,
    /// Nothing.
    Off,
}

fn policy() -> Policy {
    static POLICY: OnceLock<Policy> = OnceLock::new();
    *POLICY.get_or_init(|| match std::env::var("TILEWORK_CARD_DEADLOCK").as_deref() {
        Ok("end") => Policy::End,
        Ok("warn") => Policy::Warn,
        Ok("off") => Policy::Off,
        _ => Policy::Certain,
    })
}

/// A word of the card or of pinned memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Word {
    /// Of a BAR.
    Bar(Bar, u64),
    /// Of the program's memory.
    Memory(usize),
}

/// What the program looks at.
pub(crate) struct Standstill {
    words: Vec<(Word, u64)>,
    /// Looks since the first that found nothing new.
    looks: u64,
    /// When the first and the last of them were whose time is known.
    since: Option<(Instant, Instant)>,
    told: bool,
}

impl Standstill {
    pub(crate) fn new() -> Self {
        // The handler of a trap does not allocate.
        Self { words: Vec::with_capacity(WORDS), looks: 0, since: None, told: false }
    }

    /// The program has done something, or has found something new.
    #[inline]
    pub(crate) fn forget(&mut self) {
        if self.looks > 0 || !self.words.is_empty() {
            self.words.clear();
            (self.looks, self.since) = (0, None);
        }
    }

    /// The program has found `value` in `word`. True when it has polled a quiet chip for too long.
    pub(crate) fn looked(&mut self, word: Word, value: u64, quiet: bool) -> bool {
        if !quiet || policy() == Policy::Off {
            self.forget();
            return false;
        }
        match self.words.iter().find(|(other, _)| *other == word) {
            Some(&(_, seen)) if seen == value => {}
            Some(_) => {
                self.forget();
                return false;
            }
            None => {
                if self.words.len() == WORDS {
                    self.forget();
                }
                self.words.push((word, value));
                (self.looks, self.since) = (0, None);
                return false;
            }
        }
        self.looks += 1;
        self.looks.is_multiple_of(LOOKS) && self.is_too_long(Instant::now())
    }

    fn is_too_long(&mut self, now: Instant) -> bool {
        match &mut self.since {
            Some((since, last)) if now.duration_since(*last) <= PAUSE => {
                *last = now;
                now.duration_since(*since) >= PATIENCE
            }
            _ => {
                self.since = Some((now, now));
                false
            }
        }
    }

    /// Tells what stands still on the chip of card `number`. True if the process is to end.
    pub(crate) fn tell(&mut self, number: usize, chip: &Chip) -> bool {
        // It is looked at anew after the same time.
        self.since = None;
        let waiting = chip.waiting();
        let stuck = waiting.iter().any(is_stuck);
        let ends = match policy() {
            Policy::End => true,
            Policy::Certain => stuck,
            Policy::Warn | Policy::Off => false,
        };
        if ends || !std::mem::replace(&mut self.told, true) {
            tell::say_last(&text((number, chip.last_event()), &self.words, &waiting, stuck, ends));
        }
        ends
    }
}

/// Whether a core, or what it has given the coprocessor, waits for what cannot come from a chip in
/// which nothing is in flight, nor from its host.
fn is_stuck(waiting: &Waiting) -> bool {
    let for_kernel = |word: &WaitWord| word.stale || is_kernels(word.watch.addr);
    !waiting.coprocessor.is_empty() || waiting.blocked_on.is_some() || waiting.watched.iter().any(for_kernel)
}

/// Whether only a kernel in the middle of its work waits for a change of what is at `addr`.
fn is_kernels(addr: u32) -> bool {
    match Region::decode(addr) {
        // Answers to requests of the tile's own: none is under way any more.
        Region::Niu { offset, .. } => {
            let counter = offset.checked_sub(noc::COUNTERS).map(|at| (at / WORD) as usize);
            counter.is_some_and(|counter| counter < noc::counter::SLV_ATOMIC_RESP_SENT)
        }
        // The counts of a circular buffer's pages, which the other core of the tile changes. Queues
        // of firmware have their semaphores in L1, and dispatchers count in other registers.
        Region::Stream { offset } => {
            let register = offset % stream::STRIDE / WORD;
            [stream::REMOTE_DEST_BUF_SIZE, stream::REMOTE_DEST_BUF_START].contains(&register)
        }
        _ => false,
    }
}

fn text((number, cycle): (usize, u64), words: &[(Word, u64)], waiting: &[Waiting], stuck: bool, ends: bool) -> String {
    let mut out = String::new();
    let name = if stuck || ends { "deadlock" } else { "warning" };
    let seconds = PATIENCE.as_secs();
    let of_card = if number > 0 { format!(" of card {number}") } else { String::new() };
    let _ = write!(
        out,
        "{name}: nothing can happen on the chip{of_card} by itself since cycle {cycle}: no core can run and nothing is \
         in flight. The program has polled it for {seconds} s without a change, at"
    );
    for (word, value) in words {
        let _ = match word {
            Word::Bar(bar, offset) => write!(out, " {bar:?}+{offset:#x} (= {value:#x})"),
            Word::Memory(at) => write!(out, " pinned memory {at:#x} (= {value:#x})"),
        };
    }
    // Cores that wait alike, in the order of the first of each.
    let mut groups: Vec<(&Waiting, usize)> = Vec::new();
    for one in waiting {
        let words = |w: &Waiting| w.watched.iter().map(|word| word.watch.addr).collect::<Vec<_>>();
        let alike = |other: &&mut (&Waiting, usize)| {
            let other = other.0;
            (other.core, other.pc, other.blocked_on) == (one.core, one.pc, one.blocked_on)
                && words(other) == words(one)
                && other.coprocessor.iter().map(|c| &c.0).eq(one.coprocessor.iter().map(|c| &c.0))
        };
        match groups.iter_mut().find(alike) {
            Some((_, count)) => *count += 1,
            None => groups.push((one, 1)),
        }
    }
    // What is stuck first.
    groups.sort_by_key(|(one, _)| !is_stuck(one));
    for (one, count) in groups.iter().take(NAMED) {
        let _ = write!(out, "\n  {} of {}", one.core, one.tile);
        if *count > 1 {
            let _ = write!(out, " and of {} more tiles", count - 1);
        }
        let _ = write!(out, " at pc {:#x}", one.pc);
        if let Some(at) = one.blocked_on {
            let _ = write!(out, ": its access to {at:#x}, {}, is not answered", Region::decode(at));
        }
        for word in &one.watched {
            let _ = write!(out, ": polls {:#x} (= {:#x})", word.watch.addr, word.watch.value);
            let region = Region::decode(word.watch.addr);
            if !matches!(region, Region::L1 { .. }) {
                let _ = write!(out, ", {region}");
            }
            if word.stale {
                let _ = out.write_str(", a stale copy in its data cache: a fence is missing");
            }
        }
        for (what, origin) in &one.coprocessor {
            let _ = write!(out, "\n    {what}, {origin}");
        }
    }
    if groups.len() > NAMED {
        let _ = write!(out, "\n  and {} more places", groups.len() - NAMED);
    }
    out.push_str(match (ends, stuck) {
        (true, _) => "\nThe process ends (--deadlock warn lets it go on)",
        (false, true) => "\nThe program goes on, as --deadlock warn asks for",
        (false, false) => {
            "\nFirmware that waits for work looks the same, so that the program goes on to its own limit (--deadlock \
             end ends it)"
        }
    });
    out
}
