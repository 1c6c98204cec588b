//! The nodes that have work, with what they do next.
//!
//! Most of a chip sleeps most of the time, and of the others many may wait for an answer that comes
//! hundreds of cycles later. The scheduler looks at each node of the list in every step; while only
//! a few have work soon, the others are kept apart, in the order of time.

use crate::distance::Distances;
use crate::node::Outlook;
use crate::{Cycle, NEVER, timing};
use std::collections::VecDeque;

/// So many nodes with work soon are few: they are not divided among threads.
pub(crate) const FEW: usize = 7;
/// Work within so many cycles after the first is soon.
const SOON: Cycle = 64;
/// While the list is longer, every so many steps it is seen whether few have work soon.
const TRY: u32 = 16;

/// A node and what it does next.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Active {
    pub(crate) node: usize,
    pub(crate) outlook: Outlook,
}

/// What the nodes with work do next.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Front {
    /// The first of their next cycles, and where that node is in the list.
    pub(crate) next: Cycle,
    pub(crate) position: usize,
    /// The node that can send first.
    pub(crate) node: usize,
    /// When it can.
    pub(crate) sends: Cycle,
    /// When another can.
    pub(crate) others_send: Cycle,
}

/// Where a node is listed.
#[derive(Clone, Copy)]
enum Listed {
    No,
    Soon(usize),
    Later,
}

/// The nodes that have work.
#[derive(Clone)]
pub(crate) struct ActiveNodes {
    /// The nodes that have work before `later_from`, and perhaps a few others, in no order.
    list: Vec<Active>,
    /// The others, in the order of time.
    later: VecDeque<Active>,
    later_from: Cycle,
    /// Per node.
    listed: Vec<Listed>,
    /// The steps in which the list was long.
    crowded: u32,
}

impl ActiveNodes {
    pub(crate) fn new(nodes: usize) -> Self {
        Self {
            list: Vec::with_capacity(nodes),
            later: VecDeque::with_capacity(nodes),
            later_from: NEVER,
            listed: vec![Listed::No; nodes],
            crowded: 0,
        }
    }

    /// Notes what a node does next.
    #[inline]
    pub(crate) fn set(&mut self, node: usize, outlook: Outlook) {
        match self.listed[node] {
            Listed::Soon(position) => self.list[position].outlook = outlook,
            Listed::Later => self.move_later(node, outlook),
            Listed::No => self.add(node, outlook),
        }
    }

    #[inline(never)]
    fn move_later(&mut self, node: usize, outlook: Outlook) {
        if let Some(position) = self.later.iter().position(|active| active.node == node) {
            if self.later[position].outlook == outlook {
                return;
            }
            self.later.remove(position);
        }
        self.add(node, outlook);
    }

    /// Lists a node that is not listed.
    fn add(&mut self, node: usize, outlook: Outlook) {
        let active = Active { node, outlook };
        self.listed[node] = if outlook.next == NEVER {
            Listed::No
        } else if outlook.next < self.later_from {
            self.list.push(active);
            Listed::Soon(self.list.len() - 1)
        } else {
            // Answers mostly come in the order in which they are delivered.
            self.later.push_back(active);
            let mut place = self.later.len() - 1;
            while place > 0 && self.later[place - 1].outlook.next > outlook.next {
                self.later.swap(place - 1, place);
                place -= 1;
            }
            Listed::Later
        };
    }

    /// Notes what the node at `position` of the list does next. False when it has left the list,
    /// and another may be there now.
    #[inline]
    pub(crate) fn update(&mut self, position: usize, outlook: Outlook) -> bool {
        let stays = outlook.next < self.later_from;
        if stays {
            self.list[position].outlook = outlook;
        } else {
            let Active { node, .. } = self.list.swap_remove(position);
            if let Some(moved) = self.list.get(position) {
                self.listed[moved.node] = Listed::Soon(position);
            }
            self.add(node, outlook);
        }
        stays
    }

    /// Takes those off the list that have no work soon; returns the first cycle at which a node can
    /// send.
    pub(crate) fn tidy(&mut self) -> Cycle {
        let (mut position, mut first) = (0, NEVER);
        while let Some(&Active { outlook, .. }) = self.list.get(position) {
            if self.update(position, outlook) {
                first = first.min(outlook.sends);
                position += 1;
            }
        }
        first.min(self.later_sends())
    }

    /// The nodes that have work soon, and perhaps others.
    #[inline]
    pub(crate) fn list(&self) -> &[Active] {
        &self.list
    }

    /// The nodes that are not in the list do and send nothing before this cycle.
    #[inline]
    pub(crate) fn later_sends(&self) -> Cycle {
        self.later.front().map_or(NEVER, |active| active.outlook.next)
    }

    /// The first cycle at which something that another node sends may reach the one at `position`
    /// of the list.
    #[inline]
    pub(crate) fn reaches(&self, position: usize, distances: &Distances) -> Cycle {
        let to = distances.to(self.list[position].node);
        let arrival = |active: &Active| active.outlook.sends.saturating_add(Cycle::from(to[active.node]));
        let (before, rest) = self.list.split_at(position);
        let others = before.iter().chain(&rest[1..]);
        let mut first = others.map(arrival).fold(NEVER, Cycle::min);
        for active in &self.later {
            if active.outlook.next.saturating_add(timing::LOOKAHEAD) >= first {
                break;
            }
            first = first.min(arrival(active));
        }
        first
    }

    /// Whether no node has work.
    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty() && self.later.is_empty()
    }

    /// Whether all listed nodes sleep.
    pub(crate) fn is_asleep(&self) -> bool {
        self.later.is_empty() && self.list.iter().all(|active| active.outlook.next == NEVER)
    }

    /// What happens next. The node that is first is in the list.
    #[inline]
    pub(crate) fn front(&mut self) -> Front {
        let front = self.look();
        if front.next >= self.later_sends() && !self.later.is_empty() {
            self.advance();
            return self.look();
        }
        if self.list.len() > FEW {
            self.crowded = self.crowded.wrapping_add(1);
            if self.crowded.is_multiple_of(TRY) {
                self.divide(front.next);
                return self.look();
            }
        }
        front
    }

    fn look(&self) -> Front {
        let later = self.later_sends();
        let mut front = Front { next: NEVER, position: 0, node: usize::MAX, sends: later, others_send: later };
        for (position, &Active { node, outlook: Outlook { next, sends } }) in self.list.iter().enumerate() {
            if next < front.next {
                (front.next, front.position) = (next, position);
            }
            if sends < front.sends {
                (front.others_send, front.sends, front.node) = (front.sends, sends, node);
            } else {
                front.others_send = front.others_send.min(sends);
            }
        }
        front
    }

    /// Puts those on the list that have work soon after the first of the others. When they are not
    /// few, all are.
    fn advance(&mut self) {
        let all = self.list.len() + self.later.len();
        self.later_from = if all <= FEW { NEVER } else { self.later_sends().saturating_add(SOON) };
        while self.list.len() > FEW || self.later_sends() < self.later_from {
            let Some(Active { node, outlook }) = self.later.pop_front() else {
                self.later_from = NEVER;
                return;
            };
            self.list.push(Active { node, outlook });
            self.listed[node] = Listed::Soon(self.list.len() - 1);
        }
    }

    /// If few have work soon after the first one, keeps the others apart.
    #[inline(never)]
    fn divide(&mut self, first: Cycle) {
        let soon = first.saturating_add(SOON);
        if self.list.iter().filter(|active| active.outlook.next < soon).count() > FEW {
            return;
        }
        self.later_from = self.later_from.min(soon);
        self.tidy();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn outlook(next: Cycle) -> Outlook {
        Outlook { next, sends: next.saturating_add(next % 7) }
    }

    proptest! {
        #[test]
        fn the_front_is_that_of_all_nodes(
            changes in prop::collection::vec(
                (0_usize..40, prop_oneof![Just(NEVER), 0_u64..3000, 0_u64..90], any::<bool>()), 1..400
            )
        ) {
            let mut active = ActiveNodes::new(40);
            let mut all = [Outlook::ASLEEP; 40];
            for (node, next, look) in changes {
                all[node] = outlook(next);
                active.set(node, all[node]);
                if !look {
                    continue;
                }
                let front = active.front();
                let later = active.later_sends();
                let mut nodes: Vec<usize> = active.list().iter().map(|active| active.node).collect();
                nodes.sort_unstable();
                nodes.dedup();
                prop_assert_eq!(nodes.len(), active.list().len());
                prop_assert_eq!(front.next, all.iter().map(|outlook| outlook.next).min().unwrap_or(NEVER));
                prop_assert!(front.next == NEVER || active.list()[front.position].outlook.next == front.next);
                let mut sends: Vec<Cycle> = all.iter().map(|outlook| outlook.sends).collect();
                sends.sort_unstable();
                prop_assert_eq!(front.sends.min(later), sends[0].min(later));
                prop_assert_eq!(front.others_send.min(later), sends[1].min(later));
                for (node, outlook) in all.iter().enumerate() {
                    prop_assert!(outlook.next >= later || nodes.contains(&node));
                }
                let first = active.tidy();
                let later = active.later_sends();
                prop_assert_eq!(first.min(later), sends[0].min(later));
            }
            prop_assert_eq!(active.is_asleep(), all.iter().all(|outlook| outlook.next == NEVER));
        }
    }
}
