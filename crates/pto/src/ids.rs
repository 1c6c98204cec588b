//! Cluster ids, computed from the id of a physical core or of a block.
//!
//! Follows seed 002, "Recommended" and appendices A and B. The formulas of the documents accept
//! every number: a core of the wrong kind, the other subblock's id or an id past the last
//! silently gives a wrong cluster. Here ids are checked on construction, so
//! [`PhysicalCube::cluster`] and [`PhysicalVector::cluster`] cannot be wrong; [`formula`] has the
//! unchecked arithmetic for comparison.

use crate::arch::{Arch, CV_COMM_SLOT_BYTES};

/// The unchecked formulas of the documents.
pub mod formula {
    use crate::arch::Arch;

    /// A5, Cube: `die * CORE_PER_DIE + id % AIC_AIV_PER_DIE`.
    pub fn a5_cube(core_id: u32) -> u32 {
        let (per_die, cores) = (Arch::A5.clusters_per_die(), Arch::A5.cores_per_die());
        core_id / cores * per_die + core_id % cores
    }

    /// A5, Vector: `die * CORE_PER_DIE + (id % AIC_AIV_PER_DIE - CORE_PER_DIE - subblock) /
    /// AIV_RATIO`, with C's division, which rounds to zero.
    pub fn a5_vector(core_id: u32, subblock: u32) -> i64 {
        let (per_die, cores) = (i64::from(Arch::A5.clusters_per_die()), i64::from(Arch::A5.cores_per_die()));
        let core_id = i64::from(core_id);
        core_id / cores * per_die
            + (core_id % cores - per_die - i64::from(subblock)) / i64::from(Arch::A5.vectors_per_cube())
    }

    /// A2A3, Cube: `(id & 0x7f) % CV_MAX_CORES`. There is none for Vectors; they read what
    /// their Cube wrote.
    pub fn a2a3_cube(core_id: u32) -> u32 {
        (core_id & 0x7f) % Arch::A2A3.clusters()
    }
}

/// The kind of a core.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum CoreKind {
    /// A Cube, AIC.
    Cube,
    /// A Vector, AIV, of this subblock.
    Vector {
        /// 0 or 1.
        subblock: u32,
    },
}

impl CoreKind {
    /// `cube` or `vector`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cube => "cube",
            Self::Vector { .. } => "vector",
        }
    }

    /// The subblock of a Vector.
    pub fn subblock(self) -> Option<u32> {
        match self {
            Self::Cube => None,
            Self::Vector { subblock } => Some(subblock),
        }
    }

    /// The kind of a physical core. A die's Cubes come first, then its Vectors in pairs: on A5
    /// according to the seed; on A2A3, where the scheduler may bind any Vectors, as this model's
    /// scheduler does.
    pub fn of(arch: Arch, core_id: u32) -> Result<Self, IdError> {
        let last = arch.cores_per_die() * arch.dies() - 1;
        if core_id > last {
            return Err(IdError::PastLast { arch, core_id, last });
        }
        let in_die = core_id % arch.cores_per_die();
        Ok(match in_die.checked_sub(arch.clusters_per_die()) {
            None => Self::Cube,
            Some(vector) => Self::Vector { subblock: vector % arch.vectors_per_cube() },
        })
    }
}

/// The checked id of a Cube.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PhysicalCube {
    arch: Arch,
    core_id: u32,
}

impl PhysicalCube {
    /// Checks that the id is a Cube's.
    pub fn new(arch: Arch, core_id: u32) -> Result<Self, IdError> {
        match CoreKind::of(arch, core_id)? {
            CoreKind::Cube => Ok(Self { arch, core_id }),
            CoreKind::Vector { subblock } => {
                let formula = match arch {
                    Arch::A5 => formula::a5_cube(core_id),
                    Arch::A2A3 => formula::a2a3_cube(core_id),
                };
                Err(IdError::NotACube { arch, core_id, subblock, formula })
            }
        }
    }

    /// The cluster's id.
    pub fn cluster(self) -> u32 {
        match self.arch {
            Arch::A5 => formula::a5_cube(self.core_id),
            Arch::A2A3 => formula::a2a3_cube(self.core_id),
        }
    }
}

/// The checked id of a Vector, with its subblock.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PhysicalVector {
    arch: Arch,
    core_id: u32,
    subblock: u32,
}

impl PhysicalVector {
    /// Checks that the id is a Vector's of this subblock.
    pub fn new(arch: Arch, core_id: u32, subblock: u32) -> Result<Self, IdError> {
        match CoreKind::of(arch, core_id)? {
            CoreKind::Cube => Err(IdError::NotAVector { arch, core_id }),
            CoreKind::Vector { subblock: own } if own == subblock => Ok(Self { arch, core_id, subblock }),
            CoreKind::Vector { subblock: own } => {
                let formula = formula::a5_vector(core_id, subblock);
                let cluster = vector_cluster(arch, core_id);
                Err(IdError::OtherSubblock { arch, core_id, own, given: subblock, cluster, formula })
            }
        }
    }

    /// The subblock.
    pub fn subblock(self) -> u32 {
        self.subblock
    }

    /// The cluster's id, by the formula of A5. A2A3 has none: the Vector learns it from its Cube
    /// ([`crate::sim::Core::sync_cluster_id`]).
    pub fn cluster(self) -> Result<u32, IdError> {
        match self.arch {
            Arch::A5 => Ok(vector_cluster(self.arch, self.core_id)),
            Arch::A2A3 => Err(IdError::NoFormula { core_id: self.core_id }),
        }
    }
}

/// The cluster of a Vector if Vectors follow the Cubes in pairs.
fn vector_cluster(arch: Arch, core_id: u32) -> u32 {
    let (per_die, cores) = (arch.clusters_per_die(), arch.cores_per_die());
    core_id / cores * per_die + (core_id % cores).saturating_sub(per_die) / arch.vectors_per_cube()
}

/// A row of the core table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CoreEntry {
    /// The physical core.
    pub core_id: u32,
    /// Cube or Vector, with its subblock.
    pub kind: CoreKind,
    /// The cluster; on A2A3 the one to which this model's scheduler binds it.
    pub cluster: u32,
}

/// All cores of an architecture, by id.
pub fn table(arch: Arch) -> Vec<CoreEntry> {
    let entry = |core_id| {
        let kind = CoreKind::of(arch, core_id).ok()?;
        let cluster = match kind {
            CoreKind::Cube => PhysicalCube { arch, core_id }.cluster(),
            CoreKind::Vector { .. } => vector_cluster(arch, core_id),
        };
        Some(CoreEntry { core_id, kind, cluster })
    };
    (0..arch.cores_per_die() * arch.dies()).filter_map(entry).collect()
}

/// The cluster id of a block by the recommended formula, `cluster_id = get_block_idx()`: valid if
/// there are no more blocks than clusters.
pub fn cluster_of_block(arch: Arch, block_idx: u32, block_dim: u32) -> Result<u32, IdError> {
    if block_idx >= block_dim {
        return Err(IdError::NoSuchBlock { block_idx, block_dim });
    }
    if block_dim > arch.clusters() {
        return Err(IdError::OverSubscribed { arch, block_dim, clusters: arch.clusters() });
    }
    Ok(block_idx)
}

/// Address of a cluster's slots in `GM_SLOT_BUFFER`: `base + cluster * bytes per cluster`; `None`
/// past the address space.
pub fn slot_buffer(base: usize, cluster: u32, bytes_per_cluster: usize) -> Option<usize> {
    usize::try_from(cluster).ok()?.checked_mul(bytes_per_cluster)?.checked_add(base)
}

/// `cv_comm_buf`: a slot of 512 bytes for each block, where the Cube of A2A3 writes its cluster id
/// (seed, appendix B).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CommBuffer {
    base: usize,
    bytes: u32,
}

impl CommBuffer {
    /// The seed's reservation at the bottom of the working buffer: 12.5 KiB, 25 blocks; the 3.5 KiB
    /// up to the rounded 16 KiB are not slots.
    pub fn reserved(base: usize) -> Self {
        Self { base, bytes: Arch::A2A3.comm_bytes() }
    }

    /// A buffer for this many blocks, needed if there are more blocks than clusters.
    pub fn for_blocks(base: usize, block_dim: u32) -> Self {
        Self { base, bytes: block_dim.saturating_mul(CV_COMM_SLOT_BYTES) }
    }

    /// Where it starts.
    pub fn base(&self) -> usize {
        self.base
    }

    /// Its bytes.
    pub fn bytes(&self) -> u32 {
        self.bytes
    }

    /// The address of a block's slot.
    pub fn slot(&self, block_idx: u32) -> Result<usize, IdError> {
        let past = IdError::PastReservation { block_idx, reserved: self.bytes };
        let end = block_idx.checked_add(1).and_then(|blocks| blocks.checked_mul(CV_COMM_SLOT_BYTES));
        if end.is_none_or(|end| end > self.bytes) {
            return Err(past);
        }
        let offset = usize::try_from(block_idx * CV_COMM_SLOT_BYTES).map_err(|_| past.clone())?;
        self.base.checked_add(offset).ok_or(past)
    }
}

/// Invalid ids, which the formulas would accept.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum IdError {
    /// No such core.
    #[error("core {core_id} does not exist: the cores of {arch} are 0 to {last}")]
    PastLast {
        /// The architecture.
        arch: Arch,
        /// The id.
        core_id: u32,
        /// The last id.
        last: u32,
    },
    /// A Vector's id where a Cube's belongs.
    #[error(
        "core {core_id} of {arch} is a Vector (subblock {subblock}), not a Cube; the Cube's formula would give \
         cluster {formula}"
    )]
    NotACube {
        /// The architecture.
        arch: Arch,
        /// The id.
        core_id: u32,
        /// Its subblock.
        subblock: u32,
        /// What the formula says.
        formula: u32,
    },
    /// A Cube's id where a Vector's belongs.
    #[error("core {core_id} of {arch} is a Cube, not a Vector")]
    NotAVector {
        /// The architecture.
        arch: Arch,
        /// The id.
        core_id: u32,
    },
    /// The other subblock's id.
    #[error(
        "core {core_id} of {arch} is subblock {own} of cluster {cluster}, not subblock {given}; with {given} \
         the formula would give cluster {formula}"
    )]
    OtherSubblock {
        /// The architecture.
        arch: Arch,
        /// The id.
        core_id: u32,
        /// The core's subblock.
        own: u32,
        /// The subblock given.
        given: u32,
        /// The cluster.
        cluster: u32,
        /// What A5's formula says.
        formula: i64,
    },
    /// A Vector of A2A3, which has no formula.
    #[error(
        "core {core_id} of a2a3 is a Vector: no formula gives its cluster, it must read what its Cube wrote to \
         cv_comm_buf"
    )]
    NoFormula {
        /// The id.
        core_id: u32,
    },
    /// A block that the launch does not have.
    #[error("block {block_idx} does not exist: the launch has {block_dim} blocks")]
    NoSuchBlock {
        /// The block.
        block_idx: u32,
        /// Blocks of the launch.
        block_dim: u32,
    },
    /// More blocks than clusters, with the block's id as cluster id.
    #[error(
        "{block_dim} blocks on {clusters} clusters of {arch}: block_idx is no cluster id then; take it from the \
         core's id (on a2a3 through a cv_comm_buf of block_dim * 512 bytes), and let blocks of one cluster follow \
         one another"
    )]
    OverSubscribed {
        /// The architecture.
        arch: Arch,
        /// Blocks.
        block_dim: u32,
        /// Clusters.
        clusters: u32,
    },
    /// A block whose slot lies past the reservation.
    #[error(
        "block {block_idx} would use cv_comm_buf from byte {} on, past the {reserved} bytes reserved; more than {} \
         blocks need block_dim * 512 bytes",
        block_idx.saturating_mul(CV_COMM_SLOT_BYTES), reserved / CV_COMM_SLOT_BYTES
    )]
    PastReservation {
        /// The block.
        block_idx: u32,
        /// Bytes reserved.
        reserved: u32,
    },
}
