//! Counters that wrap, and their comparisons.
//!
//! Credits (semaphores), NoC transaction counts and stream registers count up for ever and wrap.
//! Comparing two of them as plain integers fails once they are 2^31 steps along, which is how
//! tt-metal#9113 waited on a stale semaphore value. So a counter is a type, and the comparison
//! looks at the sign of the difference: `a` is not behind `b` when `a - b`, taken modulo the width,
//! is in the lower half.
//!
//! Source: seed 001 section 3.2 (signed-difference comparison past 2^31); field.md 1.B item 17.

/// A free-running 32-bit count, such as a credit semaphore or a NIU counter.
///
/// Two counts may be compared while they are less than 2^31 steps apart. There is deliberately no
/// `Ord`: an order of wrapping counts is not transitive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct WrapCount(pub u32);

impl WrapCount {
    /// Whether this count has reached `other`.
    #[inline]
    pub const fn wrap_ge(self, other: Self) -> bool {
        self.0.wrapping_sub(other.0).cast_signed() >= 0
    }

    /// Whether this count has gone past `other`.
    #[inline]
    pub const fn wrap_gt(self, other: Self) -> bool {
        self.0.wrapping_sub(other.0).cast_signed() > 0
    }

    /// This count `n` steps later.
    #[inline]
    #[must_use]
    pub const fn plus(self, n: u32) -> Self {
        Self(self.0.wrapping_add(n))
    }

    /// This count `n` steps earlier.
    #[inline]
    #[must_use]
    pub const fn minus(self, n: u32) -> Self {
        Self(self.0.wrapping_sub(n))
    }

    /// Steps from `earlier` to this count, modulo 2^32.
    #[inline]
    pub const fn since(self, earlier: Self) -> u32 {
        self.0.wrapping_sub(earlier.0)
    }
}

/// A count held in a stream register (`REMOTE_DEST_BUF_SPACE_AVAILABLE`), which is
/// [`StreamCount::BITS`] wide. Workers report completion by adding to one of these.
///
/// Source: [`stream::COUNTER_BITS`](crate::stream::COUNTER_BITS).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct StreamCount(u32);

impl StreamCount {
    /// Width of the register.
    pub const BITS: u32 = crate::stream::COUNTER_BITS;

    /// All bits that the register has.
    pub const MASK: u32 = (1 << Self::BITS) - 1;

    /// The count held in `word`; bits above the register's width are dropped.
    #[inline]
    pub const fn new(word: u32) -> Self {
        Self(word & Self::MASK)
    }

    /// The register's value.
    #[inline]
    pub const fn get(self) -> u32 {
        self.0
    }

    /// Whether this count has reached `other`; right while they are less than 2^16 apart.
    #[inline]
    pub const fn wrap_ge(self, other: Self) -> bool {
        (self.0.wrapping_sub(other.0) << (32 - Self::BITS)).cast_signed() >= 0
    }

    /// Steps from `earlier` to this count, modulo the register's width.
    #[inline]
    pub const fn since(self, earlier: Self) -> u32 {
        self.0.wrapping_sub(earlier.0) & Self::MASK
    }

    /// This count `n` steps later, as the register would hold it.
    #[inline]
    #[must_use]
    pub const fn plus(self, n: u32) -> Self {
        Self::new(self.0.wrapping_add(n))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// tt-metal#9113: a waiter must not take the value from before the wrap for one that has
    /// already been reached, nor the reverse.
    #[test]
    fn issue_9113_compare_is_right_on_both_sides_of_the_wrap() {
        for start in [0u32, u32::MAX - 1, u32::MAX, i32::MAX as u32 - 1, 1 << 31] {
            let at = WrapCount(start);
            for n in [1u32, 2, 127, 128, i32::MAX as u32] {
                let later = at.plus(n);
                assert!(later.wrap_gt(at) && later.wrap_ge(at), "{start} + {n}");
                assert!(!at.wrap_ge(later) && !at.wrap_gt(later), "{start} + {n}");
                assert_eq!(later.since(at), n);
                assert_eq!(later.minus(n), at);
            }
            assert!(at.wrap_ge(at) && !at.wrap_gt(at));
        }
    }

    #[test]
    fn stream_count_compares_in_seventeen_bits() {
        let last = StreamCount::new(StreamCount::MASK);
        assert_eq!(last.plus(1).get(), 0);
        assert_eq!(last.plus(3).since(last), 3);
        assert!(last.plus(1).wrap_ge(last));
        assert!(!last.wrap_ge(last.plus(1)));
        // The seed's trivial wait: any count below 2^16 has reached 0.
        assert!(StreamCount::new(118).wrap_ge(StreamCount::new(0)));
        assert!(!StreamCount::new(117).wrap_ge(StreamCount::new(118)));
        // Bits that the register does not have cannot influence the comparison.
        assert_eq!(StreamCount::new(0xffff_0005), StreamCount::new(0x1_0005));
    }
}
