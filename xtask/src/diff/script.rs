//! Scripts: host operations and their replies.
//!
//! A script is a list of host operations with the same meaning for every library. It runs in a
//! child process (a library may end its process, which is a result as well) that writes each reply
//! to a file before it continues, so that none is lost.

use std::fmt;

use serde::{Deserialize, Serialize};
use tilework_abi::noc::NocXy;
use tilework_abi::tlb::{Ordering, Window};

/// Target of a window access.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Place {
    /// The tile (x, y), or the start corner of a rectangle.
    pub tile: (u8, u8),
    /// The end corner of a rectangle, for a multicast write.
    pub end: Option<(u8, u8)>,
    /// Address in the tile.
    pub addr: u64,
    /// The window used: 0..202 are of 2 MiB, 202..210 of 4 GiB.
    pub window: u32,
    /// Ordering mode of the window: 0 relaxed, 1 strict, 2 posted.
    pub ordering: u32,
}

impl Place {
    /// An address of one tile, through the usual window in strict order.
    pub(crate) const fn new(tile: (u8, u8), addr: u64) -> Self {
        Self { tile, end: None, addr, window: tilework_libttsim_client::WINDOW, ordering: 1 }
    }

    /// The window's settings, except for the address, which the client sets.
    pub(crate) fn window(&self) -> Window {
        let xy = |(x, y)| NocXy::new(x, y);
        let mut window = Window::unicast(xy(self.end.unwrap_or(self.tile)), 0);
        window.ordering = Ordering::from_bits(self.ordering);
        if self.end.is_some() {
            window.start = xy(self.tile);
            window.multicast = true;
        }
        window
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (x, y) = self.tile;
        write!(f, "({x},{y})")?;
        if let Some((x, y)) = self.end {
            write!(f, "..({x},{y})")?;
        }
        write!(f, " {:#x}", self.addr)?;
        if (self.window, self.ordering) != (tilework_libttsim_client::WINDOW, 1) {
            write!(f, " by window {} order {}", self.window, self.ordering)?;
        }
        Ok(())
    }
}

/// A host operation.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) enum Op {
    /// Reads configuration space.
    Config(u32),
    /// Reads a word of BAR0.
    BarWord(u64),
    /// Writes through a window.
    Write(Place, Vec<u8>),
    /// Reads through a window.
    Read(Place, u32),
    /// Lets the chip run.
    Clock(u32),
    /// Reads a word, and lets the chip run `step` clocks, until the word is `value`; at most
    /// `turns` times.
    Wait {
        /// The word.
        at: Place,
        /// The value to wait for.
        value: u32,
        /// Clocks between two reads.
        step: u32,
        /// The most reads.
        turns: u32,
    },
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config(offset) => write!(f, "config {offset:#x}"),
            Self::BarWord(offset) => write!(f, "BAR0 word {offset:#x}"),
            Self::Write(at, data) => write!(f, "write {at}, {}", Hex(data)),
            Self::Read(at, len) => write!(f, "read {at}, {len} bytes"),
            Self::Clock(n) => write!(f, "clock {n}"),
            Self::Wait { at, value, .. } => write!(f, "wait until {at} is {value:#x}"),
        }
    }
}

/// Result of an operation.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) enum Reply {
    /// Done, without data.
    Done,
    /// The word or bytes read.
    Bytes(Vec<u8>),
    /// The wait ended without the value; the word's last value.
    Never(u32),
}

impl fmt::Display for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Done => f.write_str("done"),
            Self::Bytes(data) => write!(f, "{}", Hex(data)),
            Self::Never(last) => write!(f, "never; last seen {last:#x}"),
        }
    }
}

/// Displays bytes: a word as a word, few bytes in full, many by their number and beginning.
pub(crate) struct Hex<'a>(pub &'a [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Ok(word) = <[u8; 4]>::try_from(self.0) {
            return write!(f, "{:#010x}", u32::from_le_bytes(word));
        }
        for byte in self.0.iter().take(16) {
            write!(f, "{byte:02x}")?;
        }
        if self.0.len() > 16 {
            write!(f, ".. ({} bytes)", self.0.len())?;
        }
        Ok(())
    }
}
