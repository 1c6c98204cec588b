//! How `tilework cq decode` prints commands: one line each, name first, payloads by size and first
//! bytes. What a command carries shows itself ([`crate::codec::Payload::show`]); its parts are
//! here.

use crate::decode::{DecodedInner, DecodedRecord, InnerCommand};
use std::fmt::{Display, Formatter, Result};
use tilework_abi::cq::layout::PCIE_NOC_XY_MARK;

/// How many bytes of a payload are shown.
const SHOWN: usize = 8;

/// How many targets of a list are shown.
pub(crate) const TARGETS: usize = 4;

impl Display for DecodedRecord {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "{:#010x}  {}, record of {} bytes", self.offset, self.command, self.size)?;
        for inner in &self.inner {
            write!(f, "\n{inner}")?;
        }
        Ok(())
    }
}

impl Display for DecodedInner {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "{:#010x}    {}", self.offset, self.command)
    }
}

impl Display for InnerCommand {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Self::Whole(command) => command.fmt(f),
            Self::Head { id, missing } => {
                write!(f, "{} (the next relay brings the other {missing} bytes)", id.name())
            }
        }
    }
}

/// Where an interleaved buffer lies.
pub(crate) fn bank(is_dram: bool) -> &'static str {
    if is_dram { "DRAM" } else { "L1" }
}

/// The number of nodes and the first of them.
pub(crate) fn list<T: Display>(f: &mut Formatter<'_>, items: impl ExactSizeIterator<Item = T>) -> Result {
    let count = items.len();
    write!(f, "{count} nodes")?;
    let mut separator = ": ";
    for item in items.take(TARGETS) {
        write!(f, "{separator}{item}")?;
        separator = " ";
    }
    if count > TARGETS { f.write_str(" ...") } else { Ok(()) }
}

/// A node word as coordinates.
pub(crate) struct Node(pub(crate) u32);

impl Display for Node {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let (x, y) = (self.0 & 0x3f, self.0 >> 6 & 0x3f);
        let host = if self.0 & PCIE_NOC_XY_MARK == 0 { "" } else { " host" };
        write!(f, "({x},{y}){host}")
    }
}

/// A rectangle word as its two corners.
pub(crate) struct Rect(pub(crate) u32);

impl Display for Rect {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "{}..{}", Node(self.0 & 0xfff), Node(self.0 >> 12 & 0xfff))
    }
}

/// A write offset, unless it is the first, which everyone uses.
pub(crate) struct Plus(pub(crate) u16);

impl Display for Plus {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        if self.0 == 0 { Ok(()) } else { write!(f, "+offset[{}]", self.0) }
    }
}

/// A payload: its size and first bytes.
pub(crate) struct Data<'a>(pub(crate) &'a [u8]);

impl Display for Data<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "{} bytes", self.0.len())?;
        for byte in self.0.iter().take(SHOWN) {
            write!(f, " {byte:02x}")?;
        }
        if self.0.len() > SHOWN { f.write_str(" ...") } else { Ok(()) }
    }
}
