//! Late cores: schedules that the chip allows and that the modelled times do not show.
//!
//! How long a core needs for an instruction is not promised: caches miss, accesses to L1 meet
//! others, clocks of tiles drift. With this switched on, a core that leaves reset or a poll loop
//! goes on some cycles later than it could, by a function of seed, tile, core and cycle. So each
//! seed is a schedule of its own, which does not depend on windows and threads. Together with late
//! packets ([`crate::LatePackets`]) it changes who comes first wherever a program does not say it.

use crate::Cycle;
use tilework_abi::noc::NocXy;
use tilework_rng::{GAMMA, mix};

/// How late cores are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LateCores {
    /// Seed of the delays.
    pub seed: u64,
    /// The longest delay in cycles.
    pub most: Cycle,
}

impl LateCores {
    /// The delay of core number `core` of the tile at `xy`, which could go on at cycle `at`.
    pub(crate) fn delay(self, xy: NocXy, core: usize, at: Cycle) -> Cycle {
        let who = u64::from(xy.x) << 16 | u64::from(xy.y) << 8 | core as u64;
        mix(mix(self.seed.wrapping_mul(GAMMA) ^ who).wrapping_add(at)) % (self.most + 1)
    }
}
