//! A finding as plain data: what is wrong, who did it, where and when.

use crate::catalogue::Row;
use std::fmt;
use tilework_abi::noc::NocXy;
use tilework_abi::tensix::Processor;

/// One finding. Equal ones are one finding with a count ([`crate::Checks`]).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// Which kind it is.
    pub check: &'static Row,
    /// The access or instruction that is wrong; of a race the later one.
    pub place: Place,
    /// The facts of this case in one sentence without a full stop: names, addresses, counts.
    pub what: String,
    /// The other side: of a race the earlier access, of an overwritten byte who wrote it.
    pub other: Option<Place>,
    /// Of a race: what would have ordered the two, in words.
    pub missing: Option<String>,
    /// How often it was seen.
    pub count: u64,
}

impl Finding {
    /// A finding that was seen once.
    pub fn new(check: &'static Row, place: Place, what: impl Into<String>) -> Self {
        Self { check, place, what: what.into(), other: None, missing: None, count: 1 }
    }

    /// The same finding with its other side.
    #[must_use]
    pub fn against(mut self, other: Place) -> Self {
        self.other = Some(other);
        self
    }

    /// The same finding with what would have ordered the two sides.
    #[must_use]
    pub fn missing(mut self, edge: impl Into<String>) -> Self {
        self.missing = Some(edge.into());
        self
    }
}

/// Who did something, where and when.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// The tile of the agent.
    pub tile: NocXy,
    /// Who.
    pub agent: Agent,
    /// The instruction that did it or set it off; none of the host.
    pub code: Option<Code>,
    /// The cycle.
    pub cycle: u64,
    /// The bytes, of an access.
    pub target: Option<Target>,
}

/// Who accesses memory. What a core sets off is an agent of its own, because it goes on by itself.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Agent {
    /// A core itself.
    Core(Processor),
    /// Reads of the NIU of this NoC.
    NocRead(u8),
    /// Writes of the NIU of this NoC.
    NocWrite(u8),
    /// Atomics of the NIU of this NoC.
    NocAtomic(u8),
    /// An unpacker of the coprocessor.
    Unpacker(u8),
    /// The packer of the coprocessor, by number.
    Packer(u8),
    /// Another unit of the coprocessor, for this thread.
    Thread(u8),
    /// The host.
    Host,
}

/// An instruction of a core.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Code {
    /// The core.
    pub core: Processor,
    /// Its program counter. Of an instruction of the coprocessor that of the push.
    pub pc: u32,
}

/// Accessed bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Target {
    /// Which memory.
    pub space: Space,
    /// The tile that has it.
    pub tile: NocXy,
    /// The first byte.
    pub addr: u64,
    /// The number of bytes.
    pub bytes: u32,
}

/// A kind of memory.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Space {
    /// L1 of a Tensix tile.
    L1,
    /// Local RAM of a core.
    Local(Processor),
    /// A DRAM bank.
    Dram,
    /// Memory of the host, which is behind the PCIe tile.
    Host,
    /// Registers.
    Registers,
}

impl fmt::Display for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Core(core) => f.write_str(core.name()),
            Self::NocRead(noc) => write!(f, "a read of NoC {noc}"),
            Self::NocWrite(noc) => write!(f, "a write of NoC {noc}"),
            Self::NocAtomic(noc) => write!(f, "an atomic of NoC {noc}"),
            Self::Unpacker(unit) => write!(f, "unpacker {unit}"),
            Self::Packer(unit) => write!(f, "packer {unit}"),
            Self::Thread(thread) => write!(f, "coprocessor thread {thread}"),
            Self::Host => f.write_str("the host"),
        }
    }
}

impl fmt::Display for Space {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::L1 => f.write_str("L1"),
            Self::Local(core) => write!(f, "local RAM of {}", core.name()),
            Self::Dram => f.write_str("DRAM"),
            Self::Host => f.write_str("memory of the host"),
            Self::Registers => f.write_str("registers"),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { space, tile, addr, bytes } = self;
        write!(f, "{bytes} byte{} at {addr:#x} in {space}", if *bytes == 1 { "" } else { "s" })?;
        match space {
            Space::Host => Ok(()),
            _ => write!(f, " of {tile}"),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let by_core = matches!((self.agent, self.code), (Agent::Core(agent), Some(code)) if agent == code.core);
        match (self.agent, self.code) {
            (Agent::Host, _) => f.write_str("the host")?,
            (agent, Some(code)) if !by_core => write!(f, "{agent} by {} of {}", code.core.name(), self.tile)?,
            (agent, _) => write!(f, "{agent} of {}", self.tile)?,
        }
        write!(f, ", cycle {}", self.cycle)?;
        match self.code {
            Some(code) => write!(f, ", pc {:#x}", code.pc),
            None => Ok(()),
        }
    }
}
