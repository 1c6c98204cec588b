//! Tables that are asked by number for every packet: with a hash that costs a multiplication. They
//! are never walked, so that no order depends on it. The numbers are the chip's own, not a file's.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A table by number.
pub(crate) type ByNumber<K, V> = HashMap<K, V, BuildHasherDefault<NumberHasher>>;

/// Multiplies by an odd number near 2^64 divided by the golden ratio (Knuth, "The Art of Computer
/// Programming", 6.4), and brings the upper bits, which depend on all of a number, down.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NumberHasher(u64);

impl Hasher for NumberHasher {
    #[inline]
    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0 ^ number).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
    #[inline]
    fn write_u32(&mut self, number: u32) {
        self.write_u64(number.into());
    }
    #[inline]
    fn write_u8(&mut self, number: u8) {
        self.write_u64(number.into());
    }
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u8(*byte));
    }
    #[inline]
    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_follow_one_another_are_found_and_spread() {
        let mut table = ByNumber::default();
        table.extend((0..5000u64).map(|number| (number << 40 | number, number)));
        assert!((0..5000u64).all(|number| table.get(&(number << 40 | number)) == Some(&number)));
        let hash = |number: u64| {
            let mut hasher = NumberHasher::default();
            hasher.write_u64(number);
            hasher.finish() % 1024
        };
        let mut used: Vec<u64> = (0..1024).map(|number| hash(number * 4096)).collect();
        used.sort_unstable();
        used.dedup();
        assert!(used.len() > 512, "{} of 1024 places", used.len());
    }
}
