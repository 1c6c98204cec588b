//! Accesses of copies, which go to the card together as those of `memcpy` do.
//!
//! Stores of whole vectors to a window, each right behind the one before, wait: what such a loop
//! copies is data, and no register. They go out at the next other access to the card, at a fence,
//! and before the program goes on by itself.
//!
//! Loads of whole vectors of a tile's L1, some of them near each other, read ahead: what the
//! following ones find was read with the first of them, as if the processor had executed them all
//! at once. What is loaded a second time is read anew. Anything else that the program does to the
//! card, a fence, and its going on by itself end that.

use crate::state::State;
use crate::trap;

/// Bytes that wait at most.
const MOST: usize = 4096;
/// The fewest bytes of a store that waits.
const LEAST: usize = 16;

/// The most bytes of such an access.
const WIDEST: usize = 64;
/// Loads near each other after which the next ones are read ahead.
const LOADS: u32 = 4;
/// How near they are, in bytes.
const NEAR: usize = 512;
/// Bytes that are given out together.
const UNIT: usize = 16;

/// What waits, and what was read ahead.
pub(crate) struct Combined {
    start: usize,
    len: usize,
    /// The end of the mapping that they go to.
    end: usize,
    data: [u8; MOST],
    ahead: Ahead,
}

/// What was read ahead: each unit of it is given out once.
struct Ahead {
    /// Where the last loads began, and how many there were, all of them near.
    near: usize,
    loads: u32,
    /// Where `data` comes from.
    start: usize,
    /// Units that nobody has loaded yet, a bit each.
    units: [u64; MOST / UNIT / 64],
    data: [u8; MOST],
}

impl Combined {
    pub(crate) const fn new() -> Self {
        let ahead = Ahead { near: 0, loads: 0, start: 0, units: [0; MOST / UNIT / 64], data: [0; MOST] };
        Self { start: 0, len: 0, end: 0, data: [0; MOST], ahead }
    }
}

impl Ahead {
    /// Takes `out.len()` bytes at `at`, if all of them are there.
    fn take(&mut self, at: usize, out: &mut [u8]) -> bool {
        let from = at.wrapping_sub(self.start);
        let whole = from.is_multiple_of(UNIT) && out.len().is_multiple_of(UNIT);
        if !whole || from >= MOST || out.len() > MOST - from {
            return false;
        }
        // Up to four units, which may be in two words.
        let (word, bit) = (from / UNIT / 64, from / UNIT % 64);
        let mask = u128::from((1u64 << (out.len() / UNIT)) - 1) << bit;
        let upper = (mask >> 64) as u64;
        let has =
            |index: usize, bits: u64| bits == 0 || self.units.get(index).is_some_and(|units| units & bits == bits);
        if !has(word, mask as u64) || !has(word + 1, upper) {
            return false;
        }
        self.units[word] &= !(mask as u64);
        if upper != 0 {
            self.units[word + 1] &= !upper;
        }
        copy(out, &self.data[from..]);
        true
    }
}

/// Copies the first bytes: of a whole vector, as the processor does it.
#[inline]
fn copy(out: &mut [u8], from: &[u8]) {
    fn whole<const N: usize>(out: &mut [u8], from: &[u8]) {
        if let (Some(out), Some(from)) = (out.first_chunk_mut::<N>(), from.first_chunk::<N>()) {
            *out = *from;
        }
    }
    match out.len() {
        16 => whole::<16>(out, from),
        32 => whole::<32>(out, from),
        64 => whole::<64>(out, from),
        len => out.copy_from_slice(&from[..len]),
    }
}

/// Takes what was read ahead of a load, if it is that: the usual case of a copy.
#[inline]
pub(crate) fn take(state: &mut State, at: usize, out: &mut [u8]) -> bool {
    let ahead = &mut state.combined.ahead;
    at.wrapping_sub(ahead.start) < MOST && (LEAST..=WIDEST).contains(&out.len()) && ahead.take(at, out)
}

/// Adds a store to those that wait, if it is right behind them: the usual case of a copy.
#[inline]
pub(crate) fn append(state: &mut State, at: usize, data: &[u8]) -> bool {
    let waiting = &mut state.combined;
    let (len, end) = (waiting.len, at.wrapping_add(data.len()));
    let follows = len > 0 && at == waiting.start + len && end <= waiting.end;
    if !follows || len + data.len() > MOST || !(LEAST..=WIDEST).contains(&data.len()) {
        return false;
    }
    copy(&mut waiting.data[len..len + data.len()], data);
    waiting.len += data.len();
    state.polls.forget();
    true
}

/// Loads from an address of the card's. False if it is not the card's.
pub(crate) fn load(state: &mut State, at: usize, out: &mut [u8]) -> bool {
    let ahead = &mut state.combined.ahead;
    let is_vector = (LEAST..=WIDEST).contains(&out.len());
    if is_vector && ahead.take(at, out) {
        return true;
    }
    let near = is_vector && at.wrapping_sub(ahead.near) < NEAR;
    ahead.units = [0; MOST / UNIT / 64];
    (ahead.near, ahead.loads) = if near { (ahead.near, ahead.loads + 1) } else { (at & !(NEAR / 2 - 1), 0) };
    let reads_ahead = ahead.loads >= LOADS;
    flush(state);
    if reads_ahead && read_ahead(state, at, out) {
        return true;
    }
    trap::card_read(state, at, out)
}

/// Reads from the beginning of `at`'s neighbourhood to the end of the page, if that is L1.
fn read_ahead(state: &mut State, at: usize, out: &mut [u8]) -> bool {
    let start = at & !(NEAR / 2 - 1);
    let Some(map) = state.maps.find(start) else { return false };
    let (bar, offset, room) = map.place(start);
    let len = (MOST - start % MOST).min(room);
    let fits = start % MOST + len <= MOST && at - start + out.len() <= len && len.is_multiple_of(UNIT);
    if !fits || !state.seat(map.file).is_some_and(|seat| seat.card.is_l1(bar, offset, len)) {
        return false;
    }
    let mut data = [0; MOST];
    if !trap::card_read(state, start, &mut data[..len]) {
        return false;
    }
    let ahead = &mut state.combined.ahead;
    ahead.data = data;
    ahead.start = start;
    for unit in 0..len / UNIT {
        ahead.units[unit / 64] |= 1 << (unit % 64);
    }
    // The page behind is read at its first load.
    ahead.near = start + len;
    ahead.take(at, out)
}

/// What was read ahead does not count any more.
#[inline]
pub(crate) fn forget(state: &mut State) {
    let ahead = &mut state.combined.ahead;
    (ahead.units, ahead.loads, ahead.near) = ([0; MOST / UNIT / 64], 0, 0);
}

/// Stores `data` at an address of the card's, now or with others. False if it is not the card's.
pub(crate) fn store(state: &mut State, at: usize, data: &[u8]) -> bool {
    forget(state);
    let end = state.maps.find(at).map(|map| map.start + map.len).filter(|&end| at + data.len() <= end);
    let Some(end) = end.filter(|_| (LEAST..=WIDEST).contains(&data.len())) else {
        flush(state);
        return trap::card_write(state, at, data);
    };
    let waiting = &state.combined;
    if waiting.len > 0 && (waiting.start + waiting.len != at || waiting.len + data.len() > MOST) {
        flush(state);
    }
    let waiting = &mut state.combined;
    if waiting.len == 0 {
        (waiting.start, waiting.end) = (at, end);
    }
    waiting.data[waiting.len..waiting.len + data.len()].copy_from_slice(data);
    waiting.len += data.len();
    true
}

/// Sends what waits.
pub(crate) fn flush(state: &mut State) {
    let len = std::mem::take(&mut state.combined.len);
    if len > 0 {
        let (start, data) = (state.combined.start, state.combined.data);
        trap::card_write(state, start, &data[..len]);
    }
}
