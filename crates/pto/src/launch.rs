//! How a cluster comes to its block.

use crate::arch::Arch;
use crate::core_id::CoreId;

/// What the scheduler gave to a cluster.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Binding {
    block_idx: u32,
    cores: [u32; 3],
    ffts_ready: bool,
}

impl Binding {
    /// Block 0 on the first cluster, launched by FFTS itself.
    pub fn direct(arch: Arch) -> Self {
        let first_vector = arch.clusters_per_die();
        Self { block_idx: 0, cores: [0, first_vector, first_vector + 1], ffts_ready: true }
    }

    /// The block.
    pub fn block_idx(&self) -> u32 {
        self.block_idx
    }

    /// The physical core.
    pub fn core_id(&self, core: CoreId) -> u32 {
        self.cores[core.index()]
    }

    /// Is `ffts_addr` initialised (on A2A3; A5 needs none)?
    pub fn ffts_ready(&self) -> bool {
        self.ffts_ready
    }
}
