//! A resource that serves one request after another at a fixed rate: a memory, a link, a port.

use crate::timing::Rate;
use crate::{Cycle, NEVER};

/// The time at which a resource of limited bandwidth is free.
///
/// It counts in fractions of a cycle, so that small requests are not rounded up one by one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Pipe {
    rate: Rate,
    /// When it is free: a whole cycle, and less than a cycle more, in units of `1 / rate.bytes`
    /// cycles.
    free: Cycle,
    units: u64,
}

impl Pipe {
    pub(crate) const fn new(rate: Rate) -> Self {
        Self { rate, free: 0, units: 0 }
    }
    /// Serves `bytes` bytes that arrive at cycle `at`, and returns the cycle at which the last
    /// byte has passed.
    pub(crate) fn serve(&mut self, at: Cycle, bytes: u64) -> Cycle {
        let (start, before) = if self.free < at { (at, 0) } else { (self.free, self.units) };
        let work = bytes.checked_mul(self.rate.cycles).and_then(|work| work.checked_add(before));
        (self.free, self.units) = match work {
            Some(work) => (start.saturating_add(work / self.rate.bytes), work % self.rate.bytes),
            None => (NEVER, 0),
        };
        self.whole()
    }
    /// The first whole cycle at which a request that arrives at `at` is accepted.
    pub(crate) fn start(&self, at: Cycle) -> Cycle {
        self.whole().max(at)
    }
    /// What arrives now does not pass before this cycle.
    pub(crate) fn busy_until(&self) -> Cycle {
        self.free
    }
    /// The first whole cycle at which it is free.
    fn whole(&self) -> Cycle {
        self.free.saturating_add(u64::from(self.units > 0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_does_not_round_up_each_request() {
        // 27 cycles for 1280 bytes: ten requests of 128 bytes take 27 cycles, not ten times three.
        let mut p = Pipe::new(Rate { cycles: 27, bytes: 1280 });
        let last = (0..10).map(|_| p.serve(100, 128)).last();
        assert_eq!(last, Some(127));
        // Idle time is not saved up.
        assert_eq!(p.serve(1000, 1280), 1027);
        assert_eq!(p.start(1010), 1027);
    }

    #[test]
    fn a_pipe_at_the_end_of_time_saturates() {
        let mut p = Pipe::new(Rate { cycles: 27, bytes: 430 });
        assert_eq!(p.serve(NEVER, u64::MAX), NEVER);
    }
}
