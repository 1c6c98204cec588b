//! What was decoded: a table of the library's, not of the heap, because the handler of a signal
//! fills it.
//!
//! Each instruction knows which one came behind it last. The bytes of each are compared once in
//! each run, and anew when the run has stored to a page with code: the program may have changed
//! them.

use super::limits::{self, Limits};
use super::plan::Plan;
use crate::client;
use iced_x86::{Decoder, DecoderOptions, Instruction};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// Instructions that are kept.
pub(super) const TABLE: usize = 16384;
/// Sets of places where an instruction is looked for by its address, and the places of each.
const SETS: usize = TABLE;
const WAYS: usize = 4;
/// The longest instruction.
const BYTES: usize = 15;

/// What is needed of an instruction each time: a line of the processor's cache.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Known {
    rip: u64,
    /// The run in which its bytes were compared last.
    checked: u64,
    /// Where the one is that came behind it last.
    follower: u16,
    plan: Plan,
}

const _: () = assert!(size_of::<Known>() == 64);

/// Where an instruction is, and the one that came behind it last: known before it is carried out,
/// so that what comes next need not be found out after its jump.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Spot {
    pub at: usize,
    follower: usize,
}

impl Spot {
    /// Before the first instruction of a run.
    pub(super) const NONE: Self = Self { at: 0, follower: 0 };
}

/// What it was decoded from.
#[derive(Clone, Copy)]
struct Source {
    bytes: [u8; 16],
    instruction: Option<Instruction>,
}

/// What a run has met.
pub(super) struct Run {
    /// What it has cost since its last access to the card.
    pub idle: u32,
    pub pages: Pages,
}

impl Run {
    pub(super) const fn new() -> Self {
        Self { idle: 0, pages: Pages([0; PAGES / 64]) }
    }
    /// An instruction that the run has not carried out before.
    fn is_new(&mut self, rip: u64) {
        self.idle += limits::NEW;
        self.pages.add(rip as usize);
        self.pages.add(rip as usize + BYTES);
    }
}

/// Pages that hold code of a run: a bit for each, which several may share.
pub(super) struct Pages([u64; PAGES / 64]);

/// Those bits.
const PAGES: usize = 4096;
const PAGE: usize = 4096;

impl Pages {
    fn bit(at: usize) -> (usize, u64) {
        let page = at / PAGE;
        let bit = (page ^ page >> 12) % PAGES;
        (bit / 64, 1 << (bit % 64))
    }
    fn add(&mut self, at: usize) {
        let (word, bit) = Self::bit(at);
        self.0[word] |= bit;
    }
    /// Whether `len` bytes at `at` may be code of the run: false is certain.
    #[inline]
    pub(super) fn touch(&self, at: usize, len: usize) -> bool {
        let has = |at| {
            let (word, bit) = Self::bit(at);
            self.0[word] & bit != 0
        };
        let last = at.wrapping_add(len.max(1) - 1);
        has(at) || (at / PAGE != last / PAGE && (has(last) || (at..last).step_by(PAGE).any(has)))
    }
}

pub(super) struct Table {
    index: Box<[[u16; WAYS]; SETS]>,
    known: Box<[Known; TABLE]>,
    sources: Box<[Source; TABLE]>,
    /// Where the next new one goes.
    next: usize,
    pub(super) limits: Limits,
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
            index: filled([0; WAYS]),
            known: filled(Known { rip: 0, checked: 0, follower: 0, plan: Plan::NOTHING }),
            sources: filled(Source { bytes: [0; 16], instruction: None }),
            next: 0,
            limits: Limits::new(),
            run: 0,
        })
    };
    DECODED.get_or_init(new).lock().unwrap_or_else(PoisonError::into_inner)
}

/// The set in which an instruction is looked for (multiplicative hashing).
fn set(rip: u64) -> usize {
    (rip.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 50) as usize % SETS
}

impl Table {
    /// A run begins, or the program may have changed code.
    pub(super) fn check_anew(&mut self) {
        self.run += 1;
    }

    /// Where the instruction at `rip` is, which was met behind that at `before`. `None` if there is
    /// none, or none that is known. `run` is told what it has not met before.
    pub(super) fn find(&mut self, rip: u64, before: Spot, run: &mut Run) -> Option<Spot> {
        if let Some(next) = self.follow(rip, before) {
            return Some(next);
        }
        let at = self.look_up(rip, run)?;
        self.known[before.at % TABLE].follower = at as u16;
        Some(self.spot(at))
    }

    /// The same, if it came behind that one the last time, and is compared.
    #[inline]
    pub(super) fn follow(&self, rip: u64, before: Spot) -> Option<Spot> {
        let follower = before.follower % TABLE;
        self.is_checked(follower, rip).then(|| self.spot(follower))
    }

    #[inline]
    fn spot(&self, at: usize) -> Spot {
        Spot { at, follower: self.known[at % TABLE].follower.into() }
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

    /// Looks an instruction up, and compares its bytes with the program's, once in each run.
    fn look_up(&mut self, rip: u64, run: &mut Run) -> Option<usize> {
        let ways = self.index[set(rip)];
        let known = ways.into_iter().map(|at| usize::from(at) % TABLE).find(|&at| self.known[at].rip == rip);
        if let Some(at) = known {
            if self.known[at].checked == self.run {
                return Some(at);
            }
            if client::is_same(rip as usize, &self.sources[at].bytes) {
                self.known[at].checked = self.run;
                run.is_new(rip);
                return Some(at);
            }
        }
        let at = self.decode(rip, known)?;
        run.is_new(rip);
        Some(at)
    }

    /// Decodes an instruction anew, which had place `known` before.
    #[inline(never)]
    fn decode(&mut self, rip: u64, known: Option<usize>) -> Option<usize> {
        let mut bytes = [0; 16];
        if !client::load(rip as usize, &mut bytes) {
            // Near the end of memory: as many as there are.
            let len = (1..=BYTES).rev().find(|&len| client::load(rip as usize, &mut bytes[..len]))?;
            bytes[len..].fill(0);
        }
        let instruction = Decoder::with_ip(64, &bytes[..BYTES], rip, DecoderOptions::NONE).decode();
        if instruction.is_invalid() {
            return None;
        }
        let at = known.unwrap_or_else(|| self.place_for(rip));
        let follower = self.known[at].follower;
        self.known[at] = Known { rip, checked: self.run, follower, plan: Plan::of(&instruction) };
        self.sources[at] = Source { bytes, instruction: Some(instruction) };
        Some(at)
    }

    /// A place for an instruction that has none: the oldest's.
    fn place_for(&mut self, rip: u64) -> usize {
        let at = self.next;
        self.next = (at + 1) % TABLE;
        let set = set(rip);
        // What was there is gone: it was overwritten, or it never was. Else the oldest of the set.
        let age = |place: u16| (at + TABLE - usize::from(place)) % TABLE;
        let is_gone = |place: u16| {
            let known = &self.known[usize::from(place) % TABLE];
            known.rip == 0 || usize::from(place) == at || self::set(known.rip) != set
        };
        let ways = self.index[set];
        let way = (0..WAYS).find(|&way| is_gone(ways[way]));
        let way = way.or_else(|| (0..WAYS).max_by_key(|&way| age(ways[way]))).unwrap_or(0);
        self.index[set][way] = at as u16;
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::Code;

    /// `mov eax, value` at the beginning of 16 bytes.
    fn number(value: u32) -> [u8; 16] {
        let mut bytes = [0x90; 16];
        bytes[0] = 0xB8;
        bytes[1..5].copy_from_slice(&value.to_le_bytes());
        bytes
    }

    /// Code of the program: each of them an instruction at the start of 16 bytes.
    fn program(count: usize) -> Vec<[u8; 16]> {
        (0..count as u32).map(number).collect()
    }

    fn address(code: &[[u8; 16]], at: usize) -> u64 {
        code[at].as_ptr().expose_provenance() as u64
    }

    /// A table of its own: the one of the library is there once.
    fn new() -> Table {
        Table {
            index: filled([0; WAYS]),
            known: filled(Known { rip: 0, checked: 0, follower: 0, plan: Plan::NOTHING }),
            sources: filled(Source { bytes: [0; 16], instruction: None }),
            next: 0,
            limits: Limits::new(),
            run: 1,
        }
    }

    impl Table {
        /// Finds an instruction behind another: its place, its immediate and what that has cost.
        fn met(&mut self, rip: u64, before: usize) -> (usize, u64, u32) {
            let mut run = Run::new();
            let place = self.find(rip, self.spot(before), &mut run).unwrap().at;
            let instruction = self.instruction(place).unwrap();
            assert_eq!((instruction.code(), instruction.ip()), (Code::Mov_r32_imm32, rip));
            (place, self.plan(place).immediate, run.idle)
        }
    }

    #[test]
    fn an_instruction_is_new_once_in_each_run() {
        let code = program(2);
        let mut table = new();
        let (first, value, cost) = table.met(address(&code, 0), 0);
        assert_eq!((value, cost), (0, limits::NEW));
        let (second, value, cost) = table.met(address(&code, 1), first);
        assert_eq!((value, cost), (1, limits::NEW));
        assert_ne!(first, second);
        // As the follower of the one before, and of another.
        assert_eq!(table.met(address(&code, 1), first), (second, 1, 0));
        assert_eq!(table.met(address(&code, 1), second), (second, 1, 0));
        table.check_anew();
        assert_eq!(table.met(address(&code, 1), first), (second, 1, limits::NEW));
        assert_eq!(table.met(address(&code, 1), first), (second, 1, 0));
    }

    #[test]
    fn changed_code_is_decoded_anew_where_it_was() {
        let mut code = program(1);
        let mut table = new();
        let (place, ..) = table.met(address(&code, 0), 0);
        code[0] = number(77);
        // What the run has compared counts until it stores to a page with code.
        assert_eq!(table.met(address(&code, 0), 0), (place, 0, 0));
        table.check_anew();
        assert_eq!(table.met(address(&code, 0), 0), (place, 77, limits::NEW));
        code[0] = number(78);
        table.check_anew();
        assert_eq!(table.met(address(&code, 0), place), (place, 78, limits::NEW));
        // A byte behind the instruction is compared, too, and changes nothing.
        code[0][15] = 0xCC;
        table.check_anew();
        assert_eq!(table.met(address(&code, 0), place).1, 78);
        // What is no instruction is none.
        code[0][0] = 0x06;
        table.check_anew();
        assert_eq!(table.find(address(&code, 0), table.spot(place), &mut Run::new()), None);
    }

    #[test]
    fn pages_of_code_are_known() {
        let mut pages = Pages([0; PAGES / 64]);
        pages.add(0x7000_1FFF);
        assert!(pages.touch(0x7000_1000, 1) && pages.touch(0x7000_1FF8, 8) && pages.touch(0x7000_0FFF, 2));
        assert!(!pages.touch(0x7000_0FFF, 1) && !pages.touch(0x7000_2000, 64));
        // What begins before and ends behind.
        assert!(pages.touch(0x7000_0000, 3 * PAGE) && pages.touch(0x6FFF_F000, 4 * PAGE));
        assert!(!pages.touch(0x7000_2000, 3 * PAGE));
        // An instruction may lie in two pages.
        let mut run = Run::new();
        run.is_new(0x7000_1FFC);
        assert!(run.pages.touch(0x7000_1000, 1) && run.pages.touch(0x7000_2000, 1));
        assert!(!run.pages.touch(0x7000_3000, 1) && !run.pages.touch(0x7000_0000, PAGE));
    }

    #[test]
    fn a_full_set_loses_its_oldest() {
        let code = program(1 << 18);
        let wanted = set(address(&code, 0));
        let same: Vec<_> = (0..code.len()).filter(|&at| set(address(&code, at)) == wanted).take(WAYS + 1).collect();
        assert_eq!(same.len(), WAYS + 1, "more code is needed");
        let mut table = new();
        let places: Vec<_> = same[..WAYS].iter().map(|&at| table.met(address(&code, at), TABLE - 1).0).collect();
        for (&at, &place) in same.iter().zip(&places) {
            assert_eq!(table.met(address(&code, at), TABLE - 2), (place, at as u64, 0));
        }
        // The first is also the follower of one that nobody else looks behind.
        let before = 1000;
        assert_eq!(table.met(address(&code, same[0]), before).0, places[0]);
        let (fifth, ..) = table.met(address(&code, same[WAYS]), TABLE - 1);
        assert!(!places.contains(&fifth));
        for which in 1..WAYS {
            let at = same[which];
            assert_eq!(table.met(address(&code, at), TABLE - 2), (places[which], at as u64, 0));
        }
        assert_eq!(table.met(address(&code, same[WAYS]), TABLE - 2), (fifth, same[WAYS] as u64, 0));
        // It is still found behind that one, and decoded anew behind others.
        assert_eq!(table.met(address(&code, same[0]), before), (places[0], same[0] as u64, 0));
        let (again, value, cost) = table.met(address(&code, same[0]), TABLE - 2);
        assert_eq!((value, cost), (same[0] as u64, limits::NEW));
        assert!(again != places[0] && again != fifth);
    }

    #[test]
    fn the_oldest_places_are_used_again() {
        let code = program(TABLE + 100);
        let mut table = new();
        let mut before = 0;
        let mut places = Vec::new();
        for at in 0..TABLE {
            before = table.met(address(&code, at), before).0;
            places.push(before);
        }
        let distinct: std::collections::HashSet<_> = places.iter().collect();
        assert_eq!(distinct.len(), TABLE);
        for at in TABLE..code.len() {
            let (place, value, cost) = table.met(address(&code, at), before);
            assert_eq!((place, value, cost), (places[at - TABLE], at as u64, limits::NEW));
            before = place;
        }
        // Those whose places were taken are not mistaken for what is there now, not even as the
        // followers that they were.
        for at in 1..100 {
            let (_, value, cost) = table.met(address(&code, at), places[at - 1]);
            assert_eq!((value, cost), (at as u64, limits::NEW), "{at}");
        }
    }
}
