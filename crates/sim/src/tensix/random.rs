//! Generators of random numbers: of each lane of the vector unit, and of the columns of the packer
//! and of the matrix unit for stochastic rounding.
//!
//! How a generator goes on is in BlackholeA0/TensixTile/TensixCoprocessor/VectorUnit.md, "PRNG".
//! That the packer and the matrix unit have generators, that reset resets them and that
//! `PRNG_SEED_Seed_Val` seeds them is in WormholeB0/TensixTile/SoftReset.md and
//! BackendConfiguration.md; how many they are, which number rounds which datum, and what they hold
//! after reset is not documented. Here each column has one, of the vector unit's kind, which draws
//! a number for every row that is rounded; after reset they are as if the seed were zero.

use super::dst::COLUMNS;

/// Whose generators a seed is for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Owner {
    Vector,
    Packer,
    Matrix,
}

/// How many of them there are.
pub(super) const OWNERS: usize = 3;

/// Numbers that are drawn from a seed before it is used.
const SEED_STEPS: u32 = 34;

/// The bits of a number with which rounding compares what is cut off: it rounds up if that, as so
/// many bits, is not less (SFPSTOCHRND_FloatFloat.md). Packers/FormatConversion.md describes the
/// packer's rounding in the same words, its bias included.
const BITS: u32 = 23;

/// The state after `state`.
#[inline(always)]
pub(super) fn next(state: u32) -> u32 {
    // The taps are bits 0, 1, 21 and 31.
    let parity = state ^ state >> 1 ^ state >> 21 ^ state >> 31;
    (parity + 1) << 31 | state >> 1
}

/// The states of `N` generators after `seed`. What each of them gets is not documented; as found on
/// another simulator for the vector unit, the seed goes through the generator for [`SEED_STEPS`]
/// numbers, and then every second number is the state of one, from the last one down.
pub(super) fn seeded<const N: usize>(seed: u32) -> [u32; N] {
    let mut state = (0..SEED_STEPS).fold(seed, |state, _| next(state));
    let mut states = [0; N];
    for each in states.iter_mut().rev() {
        *each = state;
        state = next(next(state));
    }
    states
}

/// `magnitude` without its lowest `drop` bits, rounded up by chance.
#[inline]
pub(super) fn rounded(magnitude: u32, drop: u32, random: u32) -> u32 {
    let fixed = u64::from(magnitude) << BITS >> drop;
    let up = (fixed & ((1 << BITS) - 1)) >= u64::from(random);
    (fixed >> BITS) as u32 + u32::from(up)
}

/// A generator for each column.
#[derive(Clone, Debug)]
pub(super) struct Generators([u32; COLUMNS]);

impl Default for Generators {
    fn default() -> Self {
        Self(seeded(0))
    }
}

impl Generators {
    pub(super) fn seed(&mut self, seed: u32) {
        self.0 = seeded(seed);
    }

    /// A number of [`BITS`] bits for each column.
    pub(super) fn draw(&mut self) -> [u32; COLUMNS] {
        let drawn = self.0.map(|state| state & ((1 << BITS) - 1));
        self.0 = self.0.map(next);
        drawn
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_draw_other_numbers_and_a_seed_repeats_them() {
        let mut g = Generators::default();
        let first: Vec<_> = (0..64).map(|_| g.draw()).collect();
        for (column, other) in (0..COLUMNS).zip(1..COLUMNS) {
            assert!(first.iter().any(|row| row[column] != row[other]), "columns {column} and {other}");
        }
        // About half of them round one half up.
        let up = first.as_flattened().iter().filter(|&&x| x <= 1 << (BITS - 1)).count();
        assert!((400..624).contains(&up), "{up} of 1024");
        g.seed(0);
        assert_eq!(first, (0..64).map(|_| g.draw()).collect::<Vec<_>>());
        g.seed(1);
        assert_ne!(first[0], g.draw());
    }
}
