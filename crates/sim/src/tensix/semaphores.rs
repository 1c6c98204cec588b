//! The eight semaphores of the Tensix Sync Unit.
//!
//! Follows BlackholeA0/TensixTile/TensixCoprocessor/SyncUnit.md: four-bit values that saturate at both ends.

/// Semaphores of a tile.
pub(super) const COUNT: usize = 8;
/// Largest value.
const MAX: u8 = 15;

/// One semaphore.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Semaphore {
    value: u8,
}

impl Semaphore {
    /// The value, 0..15.
    pub(super) fn value(self) -> u32 {
        u32::from(self.value)
    }

    /// A store of a T core: an odd value is `SEMGET`, an even one `SEMPOST`. Returns whether the value changed.
    pub(super) fn store(&mut self, value: u32) -> bool {
        let old = self.value;
        self.value = if value & 1 != 0 { old.saturating_sub(1) } else { (old + 1).min(MAX) };
        self.value != old
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_semaphore_saturates_at_both_ends() {
        let mut s = Semaphore::default();
        assert!(!s.store(1), "get at zero changes nothing");
        assert_eq!(s.value(), 0);
        for want in 1..=15 {
            assert!(s.store(0));
            assert_eq!(s.value(), want);
        }
        assert!(!s.store(0xFFFF_FFFE), "post at fifteen changes nothing");
        assert_eq!(s.value(), 15);
        assert!(s.store(0xFFFF_FFFF));
        assert_eq!(s.value(), 14);
    }
}
