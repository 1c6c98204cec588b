//! PC buffers: three queues from B to T0, T1, T2.
//!
//! Follows BlackholeA0/TensixTile/BabyRISCV/PCBufs.md. B's read waits until the queue is empty, the
//! T core sleeps on it and the coprocessor has nothing of that thread in flight.

use std::collections::VecDeque;

/// Values that one queue holds.
const DEPTH: usize = 16;

/// One PC buffer.
#[derive(Clone, Debug, Default)]
pub(super) struct PcBuf {
    queue: VecDeque<u32>,
    /// The T core has tried to read and found nothing.
    waiting: bool,
    /// `OverrideEn`.
    override_enabled: bool,
    /// `OverrideBusy`.
    override_busy: bool,
    /// `OverrideValue`.
    override_value: u8,
}

impl PcBuf {
    /// B writes. `false`: no room.
    pub(super) fn push(&mut self, value: u32) -> bool {
        if self.queue.len() >= DEPTH {
            return false;
        }
        self.queue.push_back(value);
        true
    }

    /// B reads. `None`: not yet. `idle`: the coprocessor has nothing of the thread in flight.
    pub(super) fn drained(&self, idle: bool) -> Option<u32> {
        (self.is_overridden_busy() || (self.queue.is_empty() && self.waiting && idle)).then_some(0)
    }

    /// `OverrideEn` and `OverrideBusy`: nobody waits for the thread.
    pub(super) fn is_overridden_busy(&self) -> bool {
        self.override_enabled && self.override_busy
    }

    /// The T core reads. `None`: not yet.
    pub(super) fn pop(&mut self) -> Option<u32> {
        let value = match self.queue.pop_front() {
            None if self.override_enabled => Some(u32::from(self.override_value)),
            value => value,
        };
        self.waiting = value.is_none();
        value
    }

    /// Whether the T core sleeps on the queue.
    pub(super) fn is_waited_for(&self) -> bool {
        self.waiting
    }

    /// The T core was reset: it does not wait any more.
    pub(super) fn reset_reader(&mut self) {
        self.waiting = false;
    }

    /// The T core leaves reset: what B has sent is lost.
    pub(super) fn discard(&mut self) {
        self.queue.clear();
    }

    /// The ten configuration bits: enable, busy, value.
    pub(super) fn configure(&mut self, bits: u32) {
        self.override_enabled = bits & 1 != 0;
        self.override_busy = bits & 2 != 0;
        self.override_value = (bits >> 2) as u8;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sixteen_values_fit() {
        let mut p = PcBuf::default();
        assert!((0..16).all(|v| p.push(v)));
        assert!(!p.push(16));
        assert_eq!(p.pop(), Some(0));
        assert!(p.push(16));
    }

    #[test]
    fn b_waits_for_the_queue_and_for_its_reader() {
        let mut p = PcBuf::default();
        assert_eq!(p.drained(true), None, "nobody waits yet");
        assert!(p.push(7));
        assert_eq!(p.drained(true), None);
        assert_eq!((p.pop(), p.drained(true)), (Some(7), None));
        assert_eq!((p.pop(), p.drained(false), p.drained(true)), (None, None, Some(0)));
        p.reset_reader();
        assert_eq!(p.drained(true), None);
    }

    #[test]
    fn the_override_answers_for_an_empty_queue() {
        let mut p = PcBuf::default();
        p.configure(0b01 | 0xA5 << 2);
        assert!(p.push(1));
        assert_eq!((p.pop(), p.pop()), (Some(1), Some(0xA5)));
        assert_eq!(p.drained(true), None, "enabled but not busy");
        p.configure(0b11);
        assert!(p.push(1));
        assert_eq!(p.drained(true), Some(0));
    }
}
