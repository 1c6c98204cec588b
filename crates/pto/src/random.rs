//! A seeded random stream, the same on every machine.

use tilework_rng::SplitMix64;

/// The stream.
#[derive(Clone, Debug)]
pub(crate) struct Random(SplitMix64);

impl Random {
    pub(crate) fn new(seed: u64, stream: u64) -> Self {
        let mut mixed = SplitMix64::new(seed ^ stream.wrapping_mul(0xd1b5_4a32_d192_ed03));
        mixed.bits();
        Self(mixed)
    }

    /// A number from 0 to `most`.
    pub(crate) fn up_to(&mut self, most: u64) -> u64 {
        match most.checked_add(1) {
            Some(count) => self.0.bits() % count,
            None => self.0.bits(),
        }
    }
}
