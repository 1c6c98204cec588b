//! Random numbers on the chip: the arguments of the kernel `random`, and how a number follows from
//! a seed and a place.
//!
//! The stream is that of SplitMix64 as `tilework-rng` has it, which says where it is from; element
//! `i` of seed `s` is that of state `(s * 2^32 + i + 1) * GAMMA`.

use crate::walk::number;

/// Elements of a page, numbers in float32.
pub const ELEMENTS: u32 = 1024;
/// Bytes of a page.
pub const PAGE_BYTES: u32 = 4 * ELEMENTS;
/// Bits of a number: it is one of so many fractions from 0 to below 1.
pub const BITS: u32 = 24;

/// Common arguments, behind the numbers of cores ([`number`]).
pub mod arg {
    use super::number;

    /// The seed.
    pub const SEED: u32 = number::WORDS;
    /// Address of the buffer in each DRAM bank; its pages have [`super::PAGE_BYTES`].
    pub const ADDRESS: u32 = SEED + 1;
    /// Pages of the buffer.
    pub const PAGES: u32 = SEED + 2;
    /// From a core's page to its next one.
    pub const STEP: u32 = SEED + 3;
    /// What the number of its first page is more than twice the core's number; also the number of
    /// the circular buffer that the page is made in.
    pub const WHICH: u32 = SEED + 4;
}

/// Distance of the states of two neighbours.
pub const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// The state of an element.
#[inline(always)]
pub const fn state(seed: u32, element: u64) -> u64 {
    ((seed as u64) << 32).wrapping_add(element).wrapping_add(1).wrapping_mul(GAMMA)
}

/// The first [`BITS`] bits of a state's output.
#[inline(always)]
pub const fn bits(state: u64) -> u32 {
    let z = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((z ^ z >> 31) >> 40) as u32
}

/// The fraction `bits / 2^24` as the bits of an f32, exactly.
#[inline(always)]
pub const fn fraction(mut bits: u32) -> u32 {
    if bits == 0 {
        return 0;
    }
    let mut exponent = 126;
    while bits >> (BITS - 1) == 0 {
        bits <<= 1;
        exponent -= 1;
    }
    exponent << 23 | bits & 0x7F_FFFF
}

#[cfg(test)]
mod tests {
    use super::{BITS, fraction};

    #[test]
    fn fractions_are_exact() {
        for bits in [0, 1, 2, 3, 5, 0x1234, 0x7F_FFFF, 0x80_0000, 0xFF_FFFF] {
            assert_eq!(f32::from_bits(fraction(bits)), bits as f32 / (1 << BITS) as f32, "{bits}");
        }
    }
}
