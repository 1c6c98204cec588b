//! Mailboxes: sixteen queues, from each of B, T0, T1, T2 to each of them.
//!
//! Follows WormholeB0/TensixTile/BabyRISCV/Mailboxes.md (the same on Blackhole). A write that finds
//! no room waits in the memory subsystem of the chip and stalls the core only when that is full
//! too; here it stalls the core at once, which a program can only see in time.

use std::collections::VecDeque;

/// Cores that have mailboxes.
pub(super) const ENDS: usize = 4;
/// Values that one core may have in flight, in all mailboxes that it writes to together.
const DEPTH: usize = 4;

/// The mailboxes of a tile.
#[derive(Clone, Debug, Default)]
pub(super) struct Mailboxes {
    /// By sender, then receiver.
    queues: [[VecDeque<u32>; ENDS]; ENDS],
}

impl Mailboxes {
    /// `from` writes to `to`. `false`: no room.
    pub(super) fn push(&mut self, from: usize, to: usize, value: u32) -> bool {
        let under_way: usize = self.queues[from].iter().map(VecDeque::len).sum();
        if under_way >= DEPTH {
            return false;
        }
        self.queues[from][to].push_back(value);
        true
    }

    /// `to` takes the oldest value from `from`. `None`: empty.
    pub(super) fn pop(&mut self, from: usize, to: usize) -> Option<u32> {
        self.queues[from][to].pop_front()
    }

    /// What `from` has sent and nobody has taken is lost.
    pub(super) fn discard_from(&mut self, from: usize) {
        self.queues[from].iter_mut().for_each(VecDeque::clear);
    }

    /// Whether `to` would find a value from `from`.
    pub(super) fn has_value(&self, from: usize, to: usize) -> bool {
        !self.queues[from][to].is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sender_has_four_values_under_way_in_all() {
        let mut m = Mailboxes::default();
        assert!(m.push(0, 1, 10) && m.push(0, 1, 11) && m.push(0, 2, 12) && m.push(0, 3, 13));
        assert!(!m.push(0, 0, 14), "the fifth waits, whatever its receiver");
        assert!(m.push(1, 0, 20), "another sender has room");
        assert_eq!((m.pop(0, 1), m.pop(0, 1), m.pop(0, 1)), (Some(10), Some(11), None));
        assert!(m.push(0, 1, 14) && m.push(0, 1, 15) && !m.push(0, 1, 16));
        assert!(m.has_value(0, 2) && !m.has_value(2, 0), "direction matters");
    }
}
