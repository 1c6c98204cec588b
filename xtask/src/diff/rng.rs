//! Random numbers of the generators: SplitMix64, so that a seed gives the same case on every
//! machine and with every version of the dependencies.

use std::ops::Range;
use tilework_rng::SplitMix64;

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub(crate) struct Rng(SplitMix64);

impl Rng {
    /// The stream of `seed`.
    pub(crate) const fn new(seed: u64) -> Self {
        Self(SplitMix64::new(seed))
    }

    /// 64 random bits.
    pub(crate) const fn bits(&mut self) -> u64 {
        self.0.bits()
    }

    /// 32 random bits.
    pub(crate) const fn word(&mut self) -> u32 {
        (self.bits() >> 32) as u32
    }

    /// A number of `range`, which is not empty.
    pub(crate) fn within(&mut self, range: Range<u32>) -> u32 {
        let span = u64::from(range.end - range.start);
        range.start + (self.bits() % span) as u32
    }

    /// True once in `n` times.
    pub(crate) fn one_in(&mut self, n: u32) -> bool {
        self.within(0..n) == 0
    }

    /// One of `choices`, which are not empty.
    pub(crate) fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.within(0..choices.len() as u32) as usize]
    }

    /// `n` random bytes.
    pub(crate) fn bytes(&mut self, n: usize) -> Vec<u8> {
        let mut out: Vec<u8> = (0..n.div_ceil(8)).flat_map(|_| self.bits().to_le_bytes()).collect();
        out.truncate(n);
        out
    }

    /// A word that is mostly an edge case: zero, one, all ones, the extremes, a single bit.
    pub(crate) fn edge(&mut self) -> u32 {
        match self.within(0..8) {
            0 => self.pick(&[0, 1, u32::MAX, 0x7FFF_FFFF, 0x8000_0000]),
            1 => 1 << self.within(0..32),
            2 => self.within(0..64),
            3 => self.within(0..64).wrapping_neg(),
            _ => self.word(),
        }
    }
}
