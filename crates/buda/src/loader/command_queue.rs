//! Command queue of one core, as the host sees it (tt-budabackend,
//! `src/firmware/riscv/*/epoch_q.h`).
//!
//! The host writes commands and keeps the write pointer itself (the core has a shadow of it in L1).
//! The read pointer is in DRAM, where the core writes it back; the host keeps a copy and reads it
//! again only when the queue seems full. Inside a device loop a core does not write it back until
//! all loops are over.

use super::stats::ModelCycle;
use std::collections::VecDeque;

/// The queue of a core. Pointers count commands; the slot of a command is its pointer modulo the
/// number of slots.
#[derive(Debug)]
pub struct CommandQueue {
    slots: usize,
    /// The write pointer.
    wr: u64,
    /// The host's copy of the read pointer.
    rd_known: u64,
    /// The commands from `rd_known` on.
    commands: VecDeque<Written>,
    /// When the core is done with all of them.
    free_at: ModelCycle,
}

/// A command in its slot.
#[derive(Debug, Clone, Copy)]
struct Written {
    /// When the read pointer that passes it is written back; `None` in a loop that is not over.
    passed: Option<ModelCycle>,
    /// Whether it is part of a loop, whose read pointer is written back after the last iteration.
    in_loop: bool,
}

impl CommandQueue {
    /// An empty queue; at least two slots, for a loop's start and end.
    pub fn new(slots: usize) -> Self {
        Self { slots: slots.max(2), wr: 0, rd_known: 0, commands: VecDeque::new(), free_at: 0 }
    }

    /// Number of slots.
    pub fn slots(&self) -> usize {
        self.slots
    }

    /// Free slots as far as the host knows.
    pub fn known_free(&self) -> usize {
        self.slots - self.known_used()
    }

    /// Commands that the core has not passed, as far as the host knows.
    pub fn known_used(&self) -> usize {
        (self.wr - self.rd_known) as usize
    }

    /// The host reads the read pointer from the device.
    pub fn refresh(&mut self, now: ModelCycle) {
        while matches!(self.commands.front(), Some(Written { passed: Some(passed), .. }) if *passed <= now) {
            self.commands.pop_front();
            self.rd_known += 1;
        }
    }

    /// When `count` slots will be free; `None` if a loop holds them or the queue has fewer slots.
    pub fn free_by(&self, count: usize) -> Option<ModelCycle> {
        match count.checked_sub(self.known_free()) {
            None | Some(0) => Some(0),
            Some(missing) => self.commands.get(missing - 1).and_then(|command| command.passed),
        }
    }

    /// Whether the last of `count` slots to become free belongs to a loop.
    pub fn held_by_loop(&self, count: usize) -> bool {
        let missing = count.saturating_sub(self.known_free());
        missing.checked_sub(1).and_then(|last| self.commands.get(last)).is_some_and(|command| command.in_loop)
    }

    /// When the core has executed all commands.
    pub fn free_at(&self) -> ModelCycle {
        self.free_at
    }

    /// Writes a command that the core completes at `done`. `in_loop`: the read pointer is not
    /// written back until the loop is over.
    pub fn push(&mut self, done: ModelCycle, in_loop: bool) {
        debug_assert!(self.known_used() < self.slots, "the host waits for a free slot");
        self.wr += 1;
        self.commands.push_back(Written { passed: (!in_loop).then_some(done), in_loop });
        self.free_at = self.free_at.max(done);
    }

    /// The core is busy in a loop until `until`.
    pub fn busy(&mut self, until: ModelCycle) {
        self.free_at = self.free_at.max(until);
    }

    /// The loop is over: the read pointer passes its commands now.
    pub fn end_loop(&mut self) {
        let free_at = self.free_at;
        self.commands.iter_mut().for_each(|command| _ = command.passed.get_or_insert(free_at));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against a list of all commands ever written: the host never assumes more free space than
        /// there is, and after a refresh it is exact.
        #[test]
        fn the_host_never_believes_in_more_space_than_there_is(
            slots in 2usize..9,
            acts in proptest::collection::vec((0u64..50, any::<bool>()), 1..100),
        ) {
            let mut queue = CommandQueue::new(slots);
            let (mut all, mut now) = (Vec::new(), 0);
            for (time, read) in acts {
                now += time;
                if queue.known_free() == 0 {
                    now = now.max(queue.free_by(1).unwrap());
                    queue.refresh(now);
                } else if read {
                    queue.refresh(now);
                }
                let in_queue = all.iter().filter(|done| **done > now).count();
                prop_assert!(queue.known_free() >= 1 && queue.known_free() <= slots - in_queue);
                if read {
                    prop_assert_eq!(queue.known_free(), slots - in_queue);
                }
                let done = queue.free_at().max(now) + 20;
                queue.push(done, false);
                all.push(done);
            }
        }
    }

    #[test]
    fn a_loop_keeps_its_slots_until_it_is_over() {
        let mut queue = CommandQueue::new(3);
        queue.push(10, false);
        queue.push(20, true);
        queue.push(30, true);
        assert_eq!((queue.known_free(), queue.free_by(1), queue.free_by(2)), (0, Some(10), None));
        queue.refresh(100);
        assert_eq!(queue.known_free(), 1);
        queue.busy(200);
        queue.end_loop();
        assert_eq!([1, 2, 3].map(|count| queue.held_by_loop(count)), [false, true, true]);
        assert_eq!(queue.free_by(3), Some(200));
        queue.refresh(200);
        assert_eq!(queue.known_free(), 3);
    }
}
