//! The clock of a timeline: the unit of its times and its length.

use std::fmt;

use crate::TimelineError;

/// The unit of a timeline's times, and its length in nanoseconds. Perfetto and the trace-event
/// format have nanoseconds only; the text format keeps the original times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    unit: &'static str,
    numerator: u64,
    denominator: u64,
}

impl Clock {
    /// One `unit` (singular: `cycle`) for each period of a clock of `mhz` megahertz; 0
    /// is taken as 1.
    pub const fn mhz(unit: &'static str, mhz: u64) -> Self {
        Self { unit, numerator: 1000, denominator: if mhz == 0 { 1 } else { mhz } }
    }

    /// One `unit` is shown as one nanosecond, so that no time is rounded.
    pub const fn one_ns(unit: &'static str) -> Self {
        Self { unit, numerator: 1, denominator: 1 }
    }

    /// The unit of the times.
    pub const fn unit(&self) -> &'static str {
        self.unit
    }

    /// Converts a time to nanoseconds, rounded down. `None` past the range of the formats, which is
    /// that of an `i64`.
    ///
    /// Rounding down keeps order and nesting: what did not overlap does not overlap in nanoseconds.
    pub fn nanoseconds(&self, time: u64) -> Option<u64> {
        if let Some(times) = time.checked_mul(self.numerator) {
            // Mostly: a division of 128 bits takes far longer.
            return Some(times / self.denominator).filter(|&ns| i64::try_from(ns).is_ok());
        }
        let ns = u128::from(time) * u128::from(self.numerator) / u128::from(self.denominator);
        i64::try_from(ns).ok().and_then(|ns| u64::try_from(ns).ok())
    }

    pub(crate) fn checked(&self, time: u64) -> Result<u64, TimelineError> {
        self.nanoseconds(time).ok_or(TimelineError::TooLate { time, clock: *self })
    }
}

impl fmt::Display for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.numerator, self.denominator) {
            (n, d) if n % d == 0 => write!(f, "1 {} = {} ns", self.unit, n / d),
            (n, d) => write!(f, "1 {} = {n}/{d} ns", self.unit),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Clock;

    #[test]
    fn a_clock_says_what_a_cycle_is() {
        assert_eq!(Clock::mhz("cycle", 1000).to_string(), "1 cycle = 1 ns");
        assert_eq!(Clock::mhz("cycle", 1350).to_string(), "1 cycle = 1000/1350 ns");
        assert_eq!(Clock::one_ns("step").to_string(), "1 step = 1 ns");
    }

    #[test]
    fn times_are_rounded_down_and_bounded() {
        let clock = Clock::mhz("cycle", 1350);
        let ns: Vec<_> = [0, 1, 2, 26, 27, 1_350_000_000].map(|t| clock.nanoseconds(t).unwrap()).into();
        assert_eq!(ns, [0, 0, 1, 19, 20, 1_000_000_000]);
        assert_eq!(Clock::one_ns("cycle").nanoseconds(i64::MAX as u64), Some(i64::MAX as u64));
        assert_eq!(Clock::one_ns("cycle").nanoseconds(i64::MAX as u64 + 1), None);
        assert_eq!(Clock::mhz("cycle", 1).nanoseconds(u64::MAX), None);
        // Past 64 bits before the division.
        assert_eq!(Clock::mhz("cycle", 1350).nanoseconds(27 << 50), Some(20 << 50));
        assert_eq!(Clock::mhz("cycle", 1350).nanoseconds(27 << 56), Some(20 << 56));
        assert_eq!(Clock::mhz("cycle", 0).nanoseconds(2), Some(2000));
    }
}
