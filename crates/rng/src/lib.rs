//! SplitMix64: a seeded stream of numbers that is the same on every machine and in every release.
//!
//! Source: Steele, Lea and Flood, "Fast splittable pseudorandom number generators" (OOPSLA 2014);
//! the constants are those of Vigna's public-domain `splitmix64.c`. It is our own twenty lines
//! because seeds name test cases and inputs: their bits must not follow another crate's releases.
//!
//! Not for secrets.
#![forbid(unsafe_code)]

/// Distance between two states: the golden ratio in 64 bits, made odd.
pub const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// The output for a state, a bijection of 64 bits whose every input bit reaches every output bit.
/// With it, element `i` of the stream of a seed is `mix(seed + (i + 1) * GAMMA)`, in any order.
#[inline]
pub const fn mix(state: u64) -> u64 {
    let z = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

/// A stream of 64-bit numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SplitMix64(u64);

impl SplitMix64 {
    /// The stream of `seed`.
    #[inline]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    #[inline]
    pub const fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GAMMA);
        mix(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first outputs of `splitmix64.c` for the seed 1234567, as Rosetta Code publishes them
    /// ("Pseudo-random numbers/Splitmix64").
    const PUBLISHED: [u64; 5] = [
        6_457_827_717_110_365_317,
        3_203_168_211_198_807_973,
        9_817_491_932_198_370_423,
        4_593_380_528_125_082_431,
        16_408_922_859_458_223_821,
    ];

    #[test]
    fn the_stream_is_the_published_one() {
        let mut stream = SplitMix64::new(1_234_567);
        assert_eq!(PUBLISHED.map(|_| stream.bits()), PUBLISHED);
    }

    #[test]
    fn an_element_is_found_by_its_index() {
        let at = |i: u64| mix(1_234_567_u64.wrapping_add((i + 1).wrapping_mul(GAMMA)));
        assert_eq!([0, 1, 2, 3, 4].map(at), PUBLISHED);
    }
}
