//! Looks at the clock that lead to accesses of the card.
//!
//! Drivers measure their accesses: right before one, they look at the clock, by a function of this
//! library. Where accesses have trapped behind a look, the next looks begin runs of instructions,
//! which come to the access without a trap. A place from which they do not, because the access lies
//! far behind, begins none for a while, longer each time.
//!
//! It is counted, not measured, so that it is the same in every run of the program. Changes are
//! made under the card's lock.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Places that are remembered.
const PLACES: usize = 256;
/// Runs without an access, beyond those with one, after which a place begins none.
const MISSES: u32 = 4;
/// Traps behind looks at a place until it begins runs again.
const PAUSE: u32 = 16;
const PAUSE_MOST: u32 = 1 << 16;

/// A place at which the program looks at the clock.
struct Place {
    /// Where the program goes on behind the look; zero if nothing is known.
    back: AtomicU64,
    /// Zero if it begins no runs.
    left: AtomicU32,
    /// Traps to come until it does.
    waits: AtomicU32,
    pause: AtomicU32,
}

/// What is known of such places.
pub(crate) struct Leads([Place; PLACES]);

impl Leads {
    pub(super) const fn new() -> Self {
        Self(
            [const {
                Place {
                    back: AtomicU64::new(0),
                    left: AtomicU32::new(0),
                    waits: AtomicU32::new(0),
                    pause: AtomicU32::new(0),
                }
            }; PLACES],
        )
    }

    fn place(&self, back: u64) -> &Place {
        // Multiplicative hashing.
        &self.0[(back.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as usize % PLACES]
    }

    /// Whether a look behind which the program goes on at `back` begins a run.
    #[inline]
    pub(crate) fn begins(&self, back: u64) -> bool {
        let place = self.place(back);
        place.back.load(Ordering::Relaxed) == back && place.left.load(Ordering::Relaxed) != 0
    }

    /// An access has trapped, and that look was the last before it.
    pub(crate) fn trapped(&self, back: u64) {
        let place = self.place(back);
        if place.back.swap(back, Ordering::Relaxed) != back {
            place.pause.store(PAUSE, Ordering::Relaxed);
            place.waits.store(0, Ordering::Relaxed);
            place.left.store(MISSES, Ordering::Relaxed);
        } else if place.left.load(Ordering::Relaxed) == 0 {
            let waits = place.waits.load(Ordering::Relaxed).saturating_sub(1);
            place.waits.store(waits, Ordering::Relaxed);
            if waits == 0 {
                place.left.store(MISSES, Ordering::Relaxed);
            }
        }
    }

    /// A run from there has ended, which has come to an access or not.
    pub(crate) fn ended(&self, back: u64, found: bool) {
        let place = self.place(back);
        if place.back.load(Ordering::Relaxed) != back {
            return;
        }
        let left = place.left.load(Ordering::Relaxed);
        let left = if found { (left + 1).min(MISSES) } else { left.saturating_sub(1) };
        place.left.store(left, Ordering::Relaxed);
        if found {
            place.pause.store(PAUSE, Ordering::Relaxed);
        } else if left == 0 {
            let pause = place.pause.load(Ordering::Relaxed);
            place.waits.store(pause, Ordering::Relaxed);
            place.pause.store((2 * pause).min(PAUSE_MOST), Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: u64 = 0x40_1000;

    /// Looks at `back`, behind which the access is near or not: whether a run began.
    fn look(leads: &Leads, back: u64, near: bool) -> bool {
        let begins = leads.begins(back);
        if begins {
            leads.ended(back, near);
        }
        if !(begins && near) {
            leads.trapped(back);
        }
        begins
    }

    #[test]
    fn a_look_begins_runs_once_an_access_has_trapped_behind_it() {
        let leads = Leads::new();
        assert!(!leads.begins(HERE) && !leads.begins(0));
        assert!(!look(&leads, HERE, true));
        assert!((0..100).all(|_| look(&leads, HERE, true)));
        // Some runs that come to nothing do not end that.
        assert!((0..100).all(|at| look(&leads, HERE, at % 3 != 0)));
    }

    #[test]
    fn a_place_whose_accesses_are_far_begins_fewer_and_fewer_runs() {
        let leads = Leads::new();
        let began = |count: usize| (0..count).filter(|_| look(&leads, HERE, false)).count() as u32;
        assert_eq!(began(1 + 4), MISSES);
        assert_eq!(began(PAUSE as usize - 1), 0);
        assert_eq!(began(4), MISSES);
        assert_eq!(began(2 * PAUSE as usize - 1), 0);
        assert_eq!(began(4), MISSES);
        let later = began(1 << 18);
        assert!((1..20 * MISSES).contains(&later), "{later}");
        // One that has come near begins them all again.
        while !look(&leads, HERE, true) {}
        assert!((0..100).all(|_| look(&leads, HERE, true)));
    }

    #[test]
    fn a_place_that_takes_the_place_of_another_begins_anew() {
        let leads = Leads::new();
        let other = (1..).map(|at| HERE + 4 * at).find(|&at| std::ptr::eq(leads.place(at), leads.place(HERE))).unwrap();
        look(&leads, HERE, true);
        assert!(leads.begins(HERE) && !leads.begins(other));
        look(&leads, other, false);
        assert!(leads.begins(other) && !leads.begins(HERE));
        // What ends now is not the other's.
        (0..10).for_each(|_| leads.ended(HERE, false));
        assert!(leads.begins(other));
    }
}
