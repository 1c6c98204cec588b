//! Stores that wait to go to the card together, as those of `memcpy` do.
//!
//! Only stores of whole vectors to a window, each right behind the one before: what such a loop
//! copies is data, and no register. They go out at the next other access to the card, at a fence,
//! and before the program goes on by itself.

use crate::state::State;
use crate::trap;

/// Bytes that wait at most.
const MOST: usize = 4096;
/// The fewest bytes of a store that waits.
const LEAST: usize = 16;

/// The most bytes of such a store.
const WIDEST: usize = 64;

/// What waits.
pub(crate) struct Combined {
    start: usize,
    len: usize,
    data: [u8; MOST],
}

impl Combined {
    pub(crate) const fn new() -> Self {
        Self { start: 0, len: 0, data: [0; MOST] }
    }
}

/// Stores `data` at an address of the card's, now or with others. False if it is not the card's.
pub(crate) fn store(state: &mut State, at: usize, data: &[u8]) -> bool {
    let fits = |state: &State| {
        let map = state.maps.find(at);
        map.is_some_and(|map| at + data.len() <= map.start + map.len)
    };
    if !(LEAST..=WIDEST).contains(&data.len()) || !fits(state) {
        flush(state);
        return trap::card_write(state, at, data);
    }
    let waiting = &state.combined;
    if waiting.len > 0 && (waiting.start + waiting.len != at || waiting.len + data.len() > MOST) {
        flush(state);
    }
    let waiting = &mut state.combined;
    if waiting.len == 0 {
        waiting.start = at;
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
