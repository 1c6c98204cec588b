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

/// What is known of all parts; of those behind the end nothing. Clones share until one changes.
#[derive(Clone, Debug, Default)]
pub(super) struct Clock(Arc<Vec<u32>>);

impl Clock {
    /// Whether an access is known.
    #[inline]
    pub(super) fn knows(&self, stamp: Stamp) -> bool {
        self.count(stamp.part) >= stamp.count
    }

    /// The latest count of `part` that is known.
    #[inline]
    pub(super) fn count(&self, part: Part) -> u32 {
        self.0.get(part as usize).copied().unwrap_or(0)
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
        let counts = Arc::make_mut(&mut self.0);
        let at = stamp.part as usize;
        if counts.len() <= at {
            counts.resize(at + 1, 0);
        }
        counts[at] = stamp.count;
    }

    /// Learns all that `other` knows; says whether anything was new.
    pub(super) fn join(&mut self, other: &Self) -> bool {
        if Arc::ptr_eq(&self.0, &other.0) {
            return false;
        }
        let common = self.0.len().min(other.0.len());
        let news = self.0.iter().zip(other.0.iter()).any(|(mine, theirs)| mine < theirs)
            || other.0[common..].iter().any(|&count| count != 0);
        if !news {
            return false;
        }
        let counts = Arc::make_mut(&mut self.0);
        if counts.len() < other.0.len() {
            counts.resize(other.0.len(), 0);
        }
        for (mine, &theirs) in counts.iter_mut().zip(other.0.iter()) {
            *mine = (*mine).max(theirs);
        }
        true
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
    }
}
