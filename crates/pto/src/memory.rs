//! The memories of a cluster and their reserved regions.
//!
//! A consumer reserves a buffer for a ring's slots and the producer imports it by name (HL,
//! `reserve_buffer` and `import_peer_buffer`): the base is a constant in both programs, so
//! nothing else may use the region. Overlaps are errors, and so are imports of buffers that were
//! not reserved.

use crate::core_id::{CoreId, Lane};
use crate::ring::Base;
use std::fmt;

/// A memory.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Space {
    /// Global memory.
    Gm,
    /// The unified buffer of a lane's Vector.
    Ub(Lane),
    /// The Cube's L1.
    L1,
    /// The scalar units' control words.
    Control,
}

impl Space {
    /// Bytes. UB 256 KiB and L1 512 KiB are the public figures of these generations (A2A3 has 192
    /// KiB of UB; the larger size is used for both); 64 MiB of global memory are the most that
    /// rings of this model need; 4 KiB of control words are an estimate.
    pub fn bytes(self) -> usize {
        match self {
            Self::Gm => 64 << 20,
            Self::Ub(_) => 256 << 10,
            Self::L1 => 512 << 10,
            Self::Control => 4 << 10,
        }
    }

    /// Every space, in order.
    pub const ALL: [Self; 5] = [Self::Gm, Self::Ub(Lane::L0), Self::Ub(Lane::L1), Self::L1, Self::Control];

    fn index(self) -> usize {
        match self {
            Self::Gm => 0,
            Self::Ub(lane) => 1 + lane.index(),
            Self::L1 => 3,
            Self::Control => 4,
        }
    }
}

impl fmt::Display for Space {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gm => f.write_str("global memory"),
            Self::Ub(lane) => write!(f, "UB of {}", CoreId::vector(*lane)),
            Self::L1 => f.write_str("L1"),
            Self::Control => f.write_str("control words"),
        }
    }
}

/// A reserved part of a memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Region {
    /// Its name.
    pub name: String,
    /// The memory.
    pub space: Space,
    /// First byte.
    pub base: usize,
    /// Bytes.
    pub bytes: usize,
}

/// Why a buffer cannot be reserved, imported or accessed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum MemoryError {
    /// Another buffer lies there.
    #[error(
        "`{name}` at {base:#x}, {bytes} bytes of {space}, overlaps `{other}` at {other_base:#x}; choose another \
         base or AUTO"
    )]
    Overlap {
        /// The buffer.
        name: String,
        /// The memory.
        space: Space,
        /// Its base.
        base: usize,
        /// Its bytes.
        bytes: usize,
        /// The buffer that it overlaps.
        other: String,
        /// The other's base.
        other_base: usize,
    },
    /// It does not fit.
    #[error("`{name}` of {bytes} bytes does not fit into {space} of {} bytes beside what is reserved", space.bytes())]
    Full {
        /// The buffer.
        name: String,
        /// The memory.
        space: Space,
        /// Its bytes.
        bytes: usize,
    },
    /// Nobody reserved it.
    #[error("no buffer `{name}` is reserved in {space}; the consumer reserves before the producer imports")]
    NotReserved {
        /// The buffer.
        name: String,
        /// The memory.
        space: Space,
    },
    /// An access past the end.
    #[error("access to {bytes} bytes at {at:#x}, past the end of {space}")]
    Outside {
        /// The memory.
        space: Space,
        /// First byte.
        at: usize,
        /// Bytes.
        bytes: usize,
    },
}

/// Automatic bases are multiples of this (a block of 32 bytes is what the cores' copies
/// move; `pto-isa`).
pub const ALIGNMENT: usize = 32;

/// The reserved regions of the memories.
#[derive(Clone, Debug, Default)]
pub struct Regions(Vec<Region>);

impl Regions {
    /// Reserves a buffer at the same address in all of these memories and returns the address; the
    /// consumer's side of a ring.
    pub fn reserve(&mut self, name: &str, spaces: &[Space], bytes: usize, base: Base) -> Result<usize, MemoryError> {
        let full = |space: Space| MemoryError::Full { name: name.to_owned(), space, bytes };
        let base = match base {
            Base::At(base) => base,
            Base::Auto => {
                self.first_gap(spaces, bytes).ok_or_else(|| full(spaces.first().copied().unwrap_or(Space::Gm)))?
            }
        };
        for &space in spaces {
            if base.checked_add(bytes).is_none_or(|end| end > space.bytes()) {
                return Err(full(space));
            }
            let overlaps = |other: &&Region| base < other.base + other.bytes && other.base < base + bytes;
            if let Some(other) = self.of(&[space]).find(overlaps) {
                let (other, other_base) = (other.name.clone(), other.base);
                return Err(MemoryError::Overlap { name: name.to_owned(), space, base, bytes, other, other_base });
            }
        }
        self.0.extend(spaces.iter().map(|&space| Region { name: name.to_owned(), space, base, bytes }));
        Ok(base)
    }

    /// The buffer that a peer has reserved; the producer's side of a ring.
    pub fn import(&self, name: &str, space: Space) -> Result<&Region, MemoryError> {
        let found = self.0.iter().find(|region| region.space == space && region.name == name);
        found.ok_or_else(|| MemoryError::NotReserved { name: name.to_owned(), space })
    }

    fn of<'a>(&'a self, spaces: &'a [Space]) -> impl Iterator<Item = &'a Region> {
        self.0.iter().filter(|region| spaces.contains(&region.space))
    }

    /// The lowest address that is free in all of these memories.
    fn first_gap(&self, spaces: &[Space], bytes: usize) -> Option<usize> {
        let mut taken: Vec<_> = self.of(spaces).collect();
        taken.sort_by_key(|region| region.base);
        let mut base = 0_usize;
        for region in taken {
            if base.checked_add(bytes)? <= region.base {
                break;
            }
            base = base.max((region.base + region.bytes).next_multiple_of(ALIGNMENT));
        }
        Some(base)
    }
}

/// The bytes of a cluster's memories. They are initially zero.
#[derive(Clone, Debug, Default)]
pub struct Memories([Vec<u8>; 5]);

impl Memories {
    /// Clears all memories except global memory.
    pub fn keep_global(&mut self) {
        for space in Space::ALL {
            if space != Space::Gm {
                self.0[space.index()].clear();
            }
        }
    }

    /// Reads bytes.
    pub fn read(&self, space: Space, at: usize, into: &mut [u8]) -> Result<(), MemoryError> {
        inside(space, at, into.len())?;
        let data = &self.0[space.index()];
        let have = data.get(at..).unwrap_or(&[]);
        let known = have.len().min(into.len());
        into[..known].copy_from_slice(&have[..known]);
        into[known..].fill(0);
        Ok(())
    }

    /// Writes bytes.
    pub fn write(&mut self, space: Space, at: usize, bytes: &[u8]) -> Result<(), MemoryError> {
        inside(space, at, bytes.len())?;
        let data = &mut self.0[space.index()];
        if data.len() < at + bytes.len() {
            data.resize(at + bytes.len(), 0);
        }
        data[at..at + bytes.len()].copy_from_slice(bytes);
        Ok(())
    }
}

fn inside(space: Space, at: usize, bytes: usize) -> Result<(), MemoryError> {
    match at.checked_add(bytes) {
        Some(end) if end <= space.bytes() => Ok(()),
        _ => Err(MemoryError::Outside { space, at, bytes }),
    }
}
