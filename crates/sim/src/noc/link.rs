//! One link of a NoC: in which cycles it carries flits.
//!
//! The network handles packets in the order of departure, and they come to a link in another one:
//! the answer from the far end of the chip comes a hundred cycles after it left, what the next tile
//! sends later comes in ten. So a link remembers the cycles between those that it has given away
//! ([`Gap`]), and a packet takes the first free ones from the arrival of its head on. What a packet
//! has got is not taken away from it: of one whose head comes just before, as many flits pass as
//! fit, and the others behind.
//!
//! Packets on the same way do not overtake each other: the first one takes all free cycles between
//! its head and its tail, and the head of the second comes later.

use crate::{Cycle, timing};

/// A link: free from `free_at` on, and in the last gap before it, if that is not empty.
#[derive(Clone, Copy, Debug)]
pub(super) struct Link {
    free_at: Cycle,
    gap: Gap,
}

/// Free cycles between those of packets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gap {
    from: Cycle,
    until: Cycle,
}

/// The gaps of a link before its last one, in the order of time; some of them may be over.
pub(super) type Gaps = Vec<Gap>;

/// A packet on its way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Front {
    /// When it left: no packet that is handled later comes to any link before this.
    pub(super) left: Cycle,
    /// When its head comes to the next link.
    pub(super) head: Cycle,
    /// How many cycles its tail has fallen back, because other packets' flits are between its own.
    pub(super) behind: Cycle,
    /// How many cycles of a link it takes.
    pub(super) flits: Cycle,
}

impl Front {
    /// A packet that leaves its NIU.
    pub(super) const fn new(left: Cycle, flits: u64) -> Self {
        Self { left, head: left, behind: 0, flits: flits * timing::FLIT }
    }

    /// When its last flit has come.
    pub(super) const fn tail(&self) -> Cycle {
        self.head + self.flits + self.behind
    }
}

impl Link {
    /// A link that has carried nothing.
    pub(super) const NEW: Self = Self { free_at: 0, gap: Gap { from: 0, until: 0 } };

    /// Carries a packet, whose head is at the other end `latency` after its first cycle here.
    #[inline]
    pub(super) fn cross(&mut self, gaps: &mut Gaps, front: &mut Front, latency: u64) {
        if front.head >= self.free_at {
            // Behind all others, and with a gap before it.
            if self.gap.until > front.left {
                keep(gaps, self.gap, front.left);
            }
            self.gap = Gap { from: self.free_at, until: front.head };
            self.free_at = front.head + front.flits;
        } else if self.gap.until <= front.head {
            // Behind all others, for which it waits.
            front.behind = front.behind.saturating_sub(self.free_at - front.head);
            front.head = self.free_at;
            self.free_at += front.flits;
        } else if self.gap.from <= front.head && front.head + front.flits <= self.gap.until {
            // In the last gap, of which it leaves the ends.
            if front.head > front.left {
                keep(gaps, Gap { from: self.gap.from, until: front.head }, front.left);
            }
            self.gap.from = front.head + front.flits;
        } else {
            self.pass(gaps, front);
        }
        front.head += latency;
    }

    /// Gives a packet cycles between others: in the gaps that end after its head comes, and behind
    /// all others if they do not suffice.
    #[inline(never)]
    fn pass(&mut self, gaps: &mut Gaps, front: &mut Front) {
        // What is left of a gap may need a place.
        make_room(gaps, front.left);
        let mut flits = Flits { first: None, end: front.head, left: front.flits };
        let mut at = gaps.len();
        while at > 0 && gaps[at - 1].until > front.head {
            at -= 1;
        }
        // What is left of the first one before the head.
        let mut before = None;
        let full = at;
        while flits.left > 0 && at < gaps.len() {
            before = before.or(flits.take(&mut gaps[at], front.head));
            at += 1;
        }
        if flits.left > 0 {
            before = before.or(flits.take(&mut self.gap, front.head));
            flits.take(&mut Gap { from: self.free_at, until: Cycle::MAX }, front.head);
            self.free_at = self.free_at.max(flits.end);
        }
        let empty = gaps[full..at].iter().take_while(|gap| gap.from == gap.until).count();
        match before {
            Some(gap) if empty > 0 => {
                gaps[full] = gap;
                gaps.drain(full + 1..full + empty);
            }
            Some(gap) => gaps.insert(full, gap),
            None => drop(gaps.drain(full..full + empty)),
        }
        let first = flits.first.unwrap_or(front.head);
        let spread = flits.end - first - front.flits;
        front.behind = front.behind.saturating_sub(first - front.head).max(spread);
        front.head = first;
    }
}

/// The flits of a packet while they get their cycles.
struct Flits {
    first: Option<Cycle>,
    end: Cycle,
    left: u64,
}

impl Flits {
    /// Takes as many cycles of a gap as are needed and come after the head. Returns what of it is
    /// before.
    #[inline]
    fn take(&mut self, gap: &mut Gap, head: Cycle) -> Option<Gap> {
        let from = gap.from.max(head);
        let count = self.left.min(gap.until - from);
        if count == 0 {
            return None;
        }
        self.first = self.first.or(Some(from));
        (self.end, self.left) = (from + count, self.left - count);
        let before = Gap { from: gap.from, until: from };
        gap.from = self.end;
        (before.from < from).then_some(before)
    }
}

/// Puts a link's last gap to the others, before a new one takes its place.
#[inline]
fn keep(gaps: &mut Gaps, gap: Gap, now: Cycle) {
    make_room(gaps, now);
    gaps.push(gap);
}

/// Makes room for one gap more.
#[inline]
fn make_room(gaps: &mut Gaps, now: Cycle) {
    if gaps.len() == gaps.capacity() {
        forget(gaps, now);
    }
}

/// Forgets the gaps that are over, and doubles the room if it is full of others.
#[cold]
fn forget(gaps: &mut Gaps, now: Cycle) {
    gaps.drain(..gaps.partition_point(|gap| gap.until <= now));
    gaps.reserve(gaps.len().max(3) + 1);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        /// Against a link that knows of each cycle whether it is free.
        #[test]
        fn a_packet_gets_the_first_free_cycles(
            packets in prop::collection::vec((0..40u64, 0..300u64, prop_oneof![1..4u64, 1..70u64]), 1..300),
        ) {
            let (mut link, mut gaps, mut taken) = (Link::NEW, Gaps::new(), BTreeSet::<Cycle>::new());
            let mut now = 0;
            for (later, way, flits) in packets {
                now += later;
                let cycles: Vec<Cycle> = (now + way..).filter(|at| !taken.contains(at)).take(flits as usize).collect();
                taken.extend(&cycles);
                let mut front = Front { left: now, head: now + way, behind: 0, flits };
                link.cross(&mut gaps, &mut front, 9);
                prop_assert_eq!((front.head, front.tail()), (cycles[0] + 9, cycles[cycles.len() - 1] + 10));
            }
        }
    }

    #[test]
    fn gaps_that_are_over_are_forgotten() {
        let (mut link, mut gaps) = (Link::NEW, Gaps::new());
        let mut number = 1u32;
        for left in (0..2_000_000).step_by(10) {
            number = number.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let (way, flits) = (u64::from(number >> 24), u64::from(number >> 8 & 0xF) + 1);
            link.cross(&mut gaps, &mut Front { left, head: left + way, behind: 0, flits }, 9);
        }
        assert!(gaps.capacity() <= 256, "{}", gaps.capacity());
    }

    #[test]
    fn a_tail_that_fell_back_catches_up_while_the_head_waits() {
        let (mut link, mut gaps) = (Link::NEW, Gaps::new());
        let mut first = Front::new(0, 20);
        link.cross(&mut gaps, &mut first, 0);
        for (behind, left) in [(25, 5), (20, 0), (3, 0)] {
            let mut front = Front { left: 0, head: 0, behind, flits: 4 };
            link.clone().cross(&mut gaps, &mut front, 9);
            assert_eq!((front.head, front.behind), (29, left));
        }
    }
}
