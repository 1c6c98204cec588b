//! Faults: program errors, and uses of the chip that the simulator does not model.
//!
//! One taxonomy for the whole chip. A fault is a value: it stops the chip and reaches the caller;
//! it never ends the process.

use crate::noc::Place;
use crate::tensix::Origin;
use std::fmt;
use std::ops::{Deref, DerefMut};
use tilework_abi::noc::NocXy;
use tilework_abi::tensix::Processor;
use tilework_riscv::Cycle;

/// The kinds of faults.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FaultClass {
    /// The documents say that anything may happen.
    UndefinedBehavior,
    /// A value was used that the documents leave undefined.
    UnpredictableValueUsed,
    /// It works on this chip, but no document promises it.
    NonContractualBehavior,
    /// The chip does not have this.
    UnsupportedFunctionality,
    /// The chip has this; the simulator does not, yet.
    UnimplementedFunctionality,
    /// No document says what happens.
    MissingSpecification,
}

impl fmt::Display for FaultClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::UndefinedBehavior => "undefined behaviour",
            Self::UnpredictableValueUsed => "unpredictable value used",
            Self::NonContractualBehavior => "non-contractual behaviour",
            Self::UnsupportedFunctionality => "unsupported functionality",
            Self::UnimplementedFunctionality => "unimplemented functionality",
            Self::MissingSpecification => "missing specification",
        })
    }
}

/// Where a fault happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FaultSite {
    /// The tile.
    pub tile: Option<NocXy>,
    /// The core.
    pub core: Option<Processor>,
    /// The instruction.
    pub pc: Option<u32>,
    /// Of a coprocessor's instruction: where `core` pushed it, at `pc`.
    pub pushed: Option<Origin>,
    /// The accessed address.
    pub addr: Option<u64>,
    /// The cycle.
    pub cycle: Option<Cycle>,
    /// The sender of the packet that caused it: the physical NoC 0 coordinates of its NIU, which
    /// for a Tensix tile are also its translated ones.
    pub sender: Option<NocXy>,
}

/// A fault. It is as small as a pointer, so that a `Result` with it costs little on success.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault(Box<FaultReport>);

/// The contents of a [`Fault`]: its class, what happened, where, and what to read about it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FaultReport {
    /// Which kind.
    pub class: FaultClass,
    /// What happened, in one sentence without a full stop.
    pub what: String,
    /// Where.
    pub site: FaultSite,
    /// The page to read.
    pub read: &'static str,
}

impl Deref for Fault {
    type Target = FaultReport;
    fn deref(&self) -> &FaultReport {
        &self.0
    }
}

impl DerefMut for Fault {
    fn deref_mut(&mut self) -> &mut FaultReport {
        &mut self.0
    }
}

impl Fault {
    // Whatever makes a fault or adds to it is cold, so that its code stands apart from that of
    // programs without any: a packet's way through the chip just fits into an instruction cache.

    /// A fault without a site; callers that know the site add it.
    #[cold]
    #[inline(never)]
    pub fn new(class: FaultClass, what: impl Into<String>, read: &'static str) -> Self {
        Self(Box::new(FaultReport { class, what: what.into(), site: FaultSite::default(), read }))
    }
    /// Names the address, unless it is named already.
    #[must_use]
    #[cold]
    #[inline(never)]
    pub fn at_addr(mut self, addr: u64) -> Self {
        self.site.addr.get_or_insert(addr);
        self
    }
    /// Names the tile, unless it is named already.
    #[must_use]
    #[cold]
    #[inline(never)]
    pub fn at_tile(mut self, tile: NocXy) -> Self {
        self.site.tile.get_or_insert(tile);
        self
    }
    /// Names the core and instruction, unless named already.
    #[must_use]
    #[cold]
    #[inline(never)]
    pub fn at_core(mut self, core: Processor, pc: u32) -> Self {
        self.site.core.get_or_insert(core);
        self.site.pc.get_or_insert(pc);
        self
    }
    /// Names who pushed the coprocessor's instruction, unless that is named already.
    #[must_use]
    #[cold]
    #[inline(never)]
    pub(crate) fn of_push(mut self, origin: Origin) -> Self {
        let site = &mut self.site;
        if site.pushed.is_none() {
            (site.core, site.pc, site.pushed) = (origin.core().or(site.core), origin.pc(), Some(origin));
        }
        self
    }
    /// Names the NIU that sent the packet, unless it is named already.
    #[must_use]
    #[cold]
    #[inline(never)]
    pub fn sent_by(mut self, from: Place) -> Self {
        self.site.sender.get_or_insert(NocXy::new(from.x, from.y));
        self
    }
    /// Names the cycle, unless it is named already.
    #[must_use]
    #[cold]
    #[inline(never)]
    pub fn at_cycle(mut self, cycle: Cycle) -> Self {
        self.site.cycle.get_or_insert(cycle);
        self
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.class, self.what)?;
        let site = &self.site;
        if let Some(tile) = site.tile {
            write!(f, ", tile {tile}")?;
        }
        match (site.pushed, site.core, site.pc) {
            (Some(origin), ..) => write!(f, ", {origin}")?,
            (None, Some(core), Some(pc)) => write!(f, ", {core}, pc {pc:#x}")?,
            (None, Some(core), None) => write!(f, ", {core}")?,
            (None, None, Some(pc)) => write!(f, ", pc {pc:#x}")?,
            (None, None, None) => {}
        }
        if let Some(addr) = site.addr {
            write!(f, ", address {addr:#x}")?;
        }
        if let Some(cycle) = site.cycle {
            write!(f, ", cycle {cycle}")?;
        }
        if let Some(sender) = site.sender {
            write!(f, ", by a packet from the NIU at {sender}")?;
        }
        write!(f, " (see {})", self.read)
    }
}

impl std::error::Error for Fault {}
