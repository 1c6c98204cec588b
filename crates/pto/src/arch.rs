//! The two architectures and their constants: the table of seed 002, appendix A, and the values
//! of the `pto-isa` headers (commit 3186c381, `include/pto/npu/*/custom/TSyncCVID.hpp`) where
//! they differ.

use crate::core_id::Lane;
use std::fmt;

/// An architecture of Ascend clusters.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Arch {
    /// Cube and Vectors are bound by hardware; tiles go into the consumer's SRAM.
    A5,
    /// The scheduler binds Cube and Vectors at launch; tiles go through global memory.
    A2A3,
}

/// Number of semaphore ids of a cluster (seed: `SEMAPHORE_IDS`).
pub const SEMAPHORE_IDS: u8 = 16;
/// Largest value of a semaphore (seed: `SEMA_BITS` = 4).
pub const SEMAPHORE_MAX: u8 = 15;
/// Number of semaphore ids of a bidirectional ring (seed: `TPUSH_TPOP_SEMA_IDS`).
pub const RING_SEMAPHORES: u8 = 4;
/// The id by which the Cube announces the cluster id on A2A3 (`CV_COMM_CTRL` of `TSyncCVID.hpp`).
/// This and higher ids are reserved; the seed does not name the number.
pub const CV_COMM_CTRL: u8 = 12;
/// On A5 the Cube reaches AIV1's copy of flag f as f + 16 (`VEC_CORE_ID_OFFSET` of
/// `include/pto/npu/a5/TPush.hpp`).
pub const VEC_CORE_ID_OFFSET: u8 = 16;
/// Bytes of `cv_comm_buf` for one block (seed: `CV_COMM_SLOT_BYTES`).
pub const CV_COMM_SLOT_BYTES: u32 = 512;
/// Alignment of the reservation (seed, appendix B: 12.5 KB, "round up to 16KB").
pub const CV_COMM_ALIGNMENT: u32 = 16 * 1024;

impl Arch {
    /// Both architectures.
    pub const ALL: [Self; 2] = [Self::A5, Self::A2A3];

    /// Clusters, that is Cubes, of a die (seed: `CORE_PER_DIE`).
    pub const fn clusters_per_die(self) -> u32 {
        match self {
            Self::A5 => 18,
            Self::A2A3 => 25,
        }
    }

    /// Vector cores per Cube (seed: `AIV_RATIO`).
    pub const fn vectors_per_cube(self) -> u32 {
        2
    }

    /// Cores of a die, Cubes and Vectors (seed: `AIC_AIV_PER_DIE`: 54 and 75).
    pub const fn cores_per_die(self) -> u32 {
        self.clusters_per_die() * (1 + self.vectors_per_cube())
    }

    /// Dies: the A5 has two, 36 clusters of 18 a die.
    pub const fn dies(self) -> u32 {
        match self {
            Self::A5 => 2,
            Self::A2A3 => 1,
        }
    }

    /// The most clusters (seed: `CV_MAX_CORES`: 36 and 25). The A5 header has `kCvMaxCores` = 25 as
    /// well, but only as the threshold above which flash attention uses `cv_comm`; the ids of the
    /// formula go up to 35.
    pub const fn clusters(self) -> u32 {
        self.clusters_per_die() * self.dies()
    }

    /// `kCvMaxCores` of the headers: 25 on both, which on A5 differs from the seed's 36.
    pub const fn header_max_cores(self) -> u32 {
        25
    }

    /// Bytes that `cv_comm_buf` takes at the bottom of the working buffer (seed: 0 and 12.5 KB).
    pub const fn comm_bytes(self) -> u32 {
        match self {
            Self::A5 => 0,
            Self::A2A3 => CV_COMM_SLOT_BYTES * self.clusters(),
        }
    }

    /// [`Self::comm_bytes`] rounded up: where the rest of the working buffer starts (seed: 16
    /// KB on A2A3).
    pub const fn comm_reserved(self) -> u32 {
        self.comm_bytes().next_multiple_of(CV_COMM_ALIGNMENT)
    }

    /// The Cube's flag for a semaphore of a lane: A5 adds 16 for AIV1, A2A3 addresses both lanes by
    /// one id (mode 2).
    pub const fn cube_flag(self, id: u8, lane: Lane) -> u8 {
        match (self, lane) {
            (Self::A5, Lane::L1) => id + VEC_CORE_ID_OFFSET,
            _ => id,
        }
    }
}

impl fmt::Display for Arch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::A5 => "a5",
            Self::A2A3 => "a2a3",
        })
    }
}

impl std::str::FromStr for Arch {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text.to_ascii_lowercase().as_str() {
            "a5" => Ok(Self::A5),
            "a2a3" | "a2" | "a3" => Ok(Self::A2A3),
            _ => Err(format!("no architecture `{text}`; there are a5 and a2a3")),
        }
    }
}
