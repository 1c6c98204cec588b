//! An open file of the device.

use crate::layout::{NocCleanup, POWER_ALL, POWER_MAX_AI_CLOCK, PowerState, power_validity};
use std::collections::{BTreeMap, BTreeSet};

/// An open file: what several descriptors can stand for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FileId(pub(crate) u32);

impl FileId {
    /// The number, from 0 on.
    pub const fn number(self) -> u32 {
        self.0
    }
    /// The file with that number.
    pub const fn of(number: u32) -> Self {
        Self(number)
    }
}

/// A DMA buffer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DmaBuffer {
    /// Where it lies in the process.
    pub address: u64,
    pub size: u64,
    pub bus: u64,
    /// Its region of the address translation.
    pub region: Option<usize>,
}

/// Pinned memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pin {
    pub address: u64,
    pub size: u64,
    pub bus: u64,
    pub region: Option<usize>,
}

/// What belongs to an open file (`chardev_private.h`).
#[derive(Debug)]
pub(crate) struct File {
    /// Resets that had been when it was opened; other resets make it invalid.
    pub generation: u64,
    pub exclusive: bool,
    /// No descriptor is left; mappings are.
    pub closed: bool,
    /// Mappings that are left.
    pub maps: usize,
    /// Windows that it owns, and how many mappings each has.
    pub windows: BTreeMap<u32, usize>,
    pub locks: BTreeSet<u8>,
    pub buffers: BTreeMap<u8, DmaBuffer>,
    pub pins: Vec<Pin>,
    pub power: PowerState,
    pub cleanup: Option<NocCleanup>,
}

impl File {
    /// A file that is opened after `generation` resets. One that knows of power asks for it itself.
    pub(crate) fn new(generation: u64, exclusive: bool, knows_power: bool) -> Self {
        let flags = if knows_power { 0 } else { POWER_ALL & !POWER_MAX_AI_CLOCK };
        let power = PowerState { validity: power_validity(15, 0), power_flags: flags, ..PowerState::default() };
        Self {
            generation,
            exclusive,
            closed: false,
            maps: 0,
            windows: BTreeMap::new(),
            locks: BTreeSet::new(),
            buffers: BTreeMap::new(),
            pins: Vec::new(),
            power,
            cleanup: None,
        }
    }
}
