//! Vector clocks: what an agent knows of what others have done.
//!
//! An agent has one or more *parts*, each with a count of its own. An access has the count of its
//! part ([`Stamp`]); it comes before whatever knows of that count. Cores have two parts, because
//! what a core does and what of its stores has reached L1 are two things; requests of an NIU have
//! one part for each thing that is waited for separately.

use std::sync::Arc;

/// A part of an agent: an index into the table of parts.
pub(super) type Part = u32;

/// The count of a part at an access.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Stamp {
    pub part: Part,
    pub count: u32,
}

/// Parts of a piece of a clock.
const PIECE: usize = 64;

type Piece = Arc<[u32; PIECE]>;

/// What is known of all parts; of pieces that are not there nothing. Clones share all pieces that
/// neither has changed since, and clocks that have learned the same: most of what agents learn is
/// known to them, and is then found by its place.
#[derive(Clone, Debug, Default)]
pub(super) struct Clock(Arc<Vec<Option<Piece>>>);

impl Clock {
    /// Whether an access is known.
    #[inline]
    pub(super) fn knows(&self, stamp: Stamp) -> bool {
        self.count(stamp.part) >= stamp.count
    }

    /// The latest count of `part` that is known.
    #[inline]
    pub(super) fn count(&self, part: Part) -> u32 {
        let piece = self.0.get(part as usize / PIECE).and_then(Option::as_ref);
        piece.map_or(0, |piece| piece[part as usize % PIECE])
    }

    /// Whether the two have not changed since one was copied from the other.
    pub(super) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Learns of an access.
    pub(super) fn learn(&mut self, stamp: Stamp) {
        if self.knows(stamp) {
            return;
        }
        let pieces = Arc::make_mut(&mut self.0);
        let at = stamp.part as usize / PIECE;
        if pieces.len() <= at {
            pieces.resize(at + 1, None);
        }
        let piece = pieces[at].get_or_insert_with(|| Arc::new([0; PIECE]));
        Arc::make_mut(piece)[stamp.part as usize % PIECE] = stamp.count;
    }

    /// Whether it knows all that `other` does.
    fn covers(&self, other: &Self) -> bool {
        let pieces = |(at, theirs): (usize, &Option<Piece>)| {
            let Some(theirs) = theirs else { return true };
            self.0.get(at).and_then(Option::as_ref).is_some_and(|mine| covers(mine, theirs))
        };
        self.is(other) || other.0.iter().enumerate().all(pieces)
    }

    /// Learns all that `other` knows; says whether anything was new.
    pub(super) fn join(&mut self, other: &Self) -> bool {
        if Arc::ptr_eq(&self.0, &other.0) {
            return false;
        }
        let mut news = false;
        for (at, theirs) in other.0.iter().enumerate() {
            let Some(theirs) = theirs else { continue };
            let learned = match self.0.get(at).and_then(Option::as_ref) {
                Some(mine) => joined(mine, theirs),
                None => Some(Arc::clone(theirs)),
            };
            let Some(learned) = learned else { continue };
            let pieces = Arc::make_mut(&mut self.0);
            if pieces.len() < other.0.len() {
                pieces.resize(other.0.len(), None);
            }
            pieces[at] = Some(learned);
            news = true;
        }
        news
    }
}

/// Whether none of `theirs` is later than those of `mine`.
fn covers(mine: &Piece, theirs: &Piece) -> bool {
    // All of both, as in [`joined`].
    Arc::ptr_eq(mine, theirs)
        || !mine.iter().zip(&theirs[..]).fold(false, |newer, (mine, theirs)| newer | (mine < theirs))
}

/// The later count of each part; none if those are all of `mine`.
fn joined(mine: &Piece, theirs: &Piece) -> Option<Piece> {
    if Arc::ptr_eq(mine, theirs) {
        return None;
    }
    // All of both, without a way out before the end: several counts are compared at once.
    let compared = mine.iter().zip(&theirs[..]);
    let (newer, older) = compared
        .fold((false, false), |(newer, older), (mine, theirs)| (newer | (mine < theirs), older | (mine > theirs)));
    match (newer, older) {
        (false, _) => None,
        (true, false) => Some(Arc::clone(theirs)),
        (true, true) => Some(Arc::new(std::array::from_fn(|at| mine[at].max(theirs[at])))),
    }
}

/// What somebody knew at a moment: a clock that is shared, and what it does not have yet.
#[derive(Clone, Debug, Default)]
pub(super) struct Moment {
    pub clock: Clock,
    pub own: [Stamp; 2],
    /// What comes before on the same channel of the NoC.
    pub before: Arc<[Stamp]>,
}

impl Moment {
    /// Whether an access comes before it.
    pub(super) fn knows(&self, stamp: Stamp) -> bool {
        let newer = |known: &Stamp| known.part == stamp.part && known.count >= stamp.count;
        self.own.iter().any(newer) || self.before.iter().any(newer) || self.clock.knows(stamp)
    }

    /// Whether all that came before `other` comes before it.
    pub(super) fn covers(&self, other: &Self) -> bool {
        other.own.iter().chain(other.before.iter()).all(|stamp| self.knows(*stamp)) && self.clock.covers(&other.clock)
    }

    /// Tells all of it to `clock`; says whether anything was new.
    pub(super) fn tell(&self, clock: &mut Clock) -> bool {
        let mut news = clock.join(&self.clock);
        for &stamp in self.own.iter().chain(self.before.iter()) {
            news |= !clock.knows(stamp);
            clock.learn(stamp);
        }
        news
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamp(part: Part, count: u32) -> Stamp {
        Stamp { part, count }
    }

    #[test]
    fn a_clock_knows_what_it_learned_and_all_before() {
        let mut clock = Clock::default();
        assert!(clock.knows(stamp(3, 0)) && !clock.knows(stamp(3, 1)));
        clock.learn(stamp(3, 5));
        clock.learn(stamp(3, 2));
        assert!(clock.knows(stamp(3, 5)) && !clock.knows(stamp(3, 6)) && !clock.knows(stamp(9, 1)));
    }

    #[test]
    fn joining_takes_the_later_of_each_and_says_whether_it_was_news() {
        let (mut a, mut b) = (Clock::default(), Clock::default());
        a.learn(stamp(0, 4));
        b.learn(stamp(0, 2));
        assert!(!a.join(&b));
        b.learn(stamp(7, 1));
        let shared = a.clone();
        assert!(a.join(&b) && !a.join(&b));
        assert_eq!((a.count(0), a.count(7), shared.count(7)), (4, 1, 0));
    }

    #[test]
    fn pieces_that_are_known_already_are_shared() {
        let (mut a, mut b) = (Clock::default(), Clock::default());
        a.learn(stamp(3, 1));
        a.learn(stamp(200, 2));
        b.learn(stamp(130, 4));
        assert!(b.join(&a) && !b.join(&a));
        let shared = b.clone();
        b.learn(stamp(200, 3));
        assert_eq!([3, 130, 200].map(|part| (b.count(part), shared.count(part))), [(1, 1), (4, 4), (3, 2)]);
        assert!(Arc::ptr_eq(b.0[0].as_ref().unwrap(), a.0[0].as_ref().unwrap()));
        assert!(a.join(&b) && a.count(200) == 3 && a.count(130) == 4);
    }

    #[test]
    fn a_moment_tells_what_its_clock_does_not_have() {
        let mut clock = Clock::default();
        clock.learn(stamp(1, 1));
        let moment = Moment { clock, own: [stamp(2, 9), stamp(3, 1)], before: Arc::new([stamp(4, 2)]) };
        let mut other = Clock::default();
        assert!(moment.tell(&mut other) && !moment.tell(&mut other));
        for known in [stamp(1, 1), stamp(2, 9), stamp(3, 1), stamp(4, 2)] {
            assert!(moment.knows(known) && other.knows(known));
        }
        assert!(!moment.knows(stamp(4, 3)) && !other.knows(stamp(2, 10)));
        let later = Moment { own: [stamp(2, 10), stamp(3, 1)], ..moment.clone() };
        assert!(later.covers(&moment) && !moment.covers(&later) && moment.covers(&Moment::default()));
        let of_all = Moment { clock: other, ..Moment::default() };
        assert!(of_all.covers(&moment) && !of_all.covers(&later) && !later.covers(&of_all));
    }
}
