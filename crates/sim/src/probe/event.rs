//! Events: what happened on the chip, when, where and by whom.

use super::{FieldStore, LineAccess, PacketEvent, PcCount, Request, Spans};
use crate::Cycle;
use std::fmt;
use tilework_abi::noc::NocXy;
use tilework_abi::tensix::Processor;

/// A tile, as events name it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Spot {
    /// The Tensix tile at these translated coordinates.
    Tensix(NocXy),
    /// A physical DRAM bank, whichever of its ports was used.
    Dram(u8),
    /// The PCIe tile: the host and its memory.
    Pcie,
    /// The ARC tile.
    Arc,
    /// A tile without a model of its own.
    Inert,
}

impl fmt::Display for Spot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tensix(xy) => write!(f, "tile {xy}"),
            Self::Dram(bank) => write!(f, "DRAM bank {bank}"),
            Self::Pcie => f.write_str("the PCIe tile"),
            Self::Arc => f.write_str("the ARC tile"),
            Self::Inert => f.write_str("a tile without a model"),
        }
    }
}

/// Who does something, in the order in which they act within a cycle.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Agent {
    /// The NIU on this NoC: what arrives and leaves.
    Niu(u8),
    /// A RISC-V core of the tile.
    Core(Processor),
    /// The coprocessor of the tile.
    Coprocessor(Unit),
}

/// A unit of the coprocessor.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Unit {
    /// Unpacker 0 or 1.
    Unpacker(u8),
    /// The packer.
    Packer,
    /// The matrix unit (FPU).
    Matrix,
    /// The vector unit (SFPU).
    Vector,
    /// The mover (`XMOV` and its command queue).
    Mover,
    /// The scalar unit (`LOADIND`, `STOREIND`, atomics).
    Scalar,
    /// The wait gates, with the sync and the configuration unit behind them.
    Gate,
}

/// What happened. Cores' accesses come in the program order of the core.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum What {
    /// A core loads: every load with [`Wants::ACCESSES`](super::Wants::ACCESSES), and loads from
    /// chosen bytes of a tile ([`Observer::loads`](super::Observer::loads)).
    Load {
        /// The address.
        addr: u32,
        /// 1, 2 or 4.
        bytes: u8,
        /// The value, zero-extended.
        value: u32,
        /// The core's own copy of the line was read, not L1.
        cached: bool,
    },
    /// A core stores: every store with [`Wants::ACCESSES`](super::Wants::ACCESSES), stores to
    /// registers with [`Wants::REGISTERS`](super::Wants::REGISTERS), and stores to observed lines
    /// of L1 ([`Observer::lines`](super::Observer::lines)).
    Store {
        /// The address.
        addr: u32,
        /// 1, 2 or 4.
        bytes: u8,
        /// The value; higher bits are zero.
        value: u32,
    },
    /// A core loads or stores all words of a line of L1 one after the other, from the event's cycle
    /// on: accesses that are known, for observers that take them so
    /// ([`Observer::takes_lines`](super::Observer::takes_lines)).
    Line(LineAccess),
    /// A core sets fields of requests one after the other, from the event's cycle on: stores of
    /// words to registers of an NIU that are no counters (`FIELDS`), for observers that take lines.
    /// Of the core nothing else was recorded meanwhile, and of others no such stores.
    Fields(Box<[FieldStore]>),
    /// A core does an atomic operation on a word of L1 (`ACCESSES`).
    Atomic {
        /// The address.
        addr: u32,
        /// The old value.
        value: u32,
    },
    /// A core executes `fence` or `fence.i` (`ACCESSES`).
    Fence,
    /// The data caches of cores have held a line since loads that were left out
    /// ([`Known`](super::Known)). Comes before what makes that matter, and has its agent
    /// (`ACCESSES`).
    Holds {
        /// The cores, a bit each in the order of [`Processor`].
        cores: u8,
        /// The first byte of the line.
        addr: u32,
    },
    /// Words of its local RAM that a core has stored by code that is not judged
    /// ([`Unjudged`](super::Unjudged)), instead of an event for each store: told before the next
    /// event of its local RAM (`LOCAL`).
    Prepared {
        /// The core.
        core: Processor,
        /// Which 64 words, from 0.
        page: u8,
        /// Which of them, a bit each.
        words: u64,
    },
    /// A core is about to execute what was written since it last emptied its instruction cache,
    /// which may have what was there before (`ACCESSES`). Told at the event's `pc` when the core
    /// comes there from elsewhere.
    StaleCode,
    /// A core or, for a request, an NIU counts a word of L1 past its width, in either direction
    /// (`ACCESSES`).
    Wrapped {
        /// The address.
        addr: u32,
        /// The old value, as wide as the count.
        value: u32,
        /// What was added: a negative number as its two's complement.
        added: u32,
    },
    /// A post of a semaphore of the coprocessor is lost, because the semaphore has its largest
    /// value (`ACCESSES`). The agent is the core that pushed the instruction, or stored.
    PostLost {
        /// The semaphore, 0 to 7.
        semaphore: u8,
    },
    /// The coprocessor executes an instruction (`TENSIX`). The agent is the core that pushed it, at
    /// the event's `pc`.
    Tensix {
        /// The Tensix thread.
        thread: u8,
        /// The instruction.
        word: u32,
    },
    /// A request of a core is refused with a fault, because its addresses are not aligned alike
    /// (`NOC`).
    Misaligned(Box<str>),
    /// The coprocessor reads L1 (`ACCESSES`).
    UnitRead {
        /// The core that pushed the instruction, at the event's `pc`.
        by: Option<Processor>,
        /// The first byte.
        addr: u32,
        /// Bytes.
        len: u32,
    },
    /// The coprocessor reads several spans of L1 at once, each as by a [`What::UnitRead`], for
    /// observers that take them so ([`Unjudged::spans`](super::Unjudged::spans)).
    UnitReads {
        /// The core that pushed the instruction, at the event's `pc`.
        by: Option<Processor>,
        /// The spans.
        spans: Spans,
    },
    /// The coprocessor writes L1 (`ACCESSES`).
    UnitWrite {
        /// The core that pushed the instruction, at the event's `pc`.
        by: Option<Processor>,
        /// The first byte.
        addr: u32,
        /// Bytes.
        len: u32,
    },
    /// The coprocessor writes a word of a register outside itself (`ACCESSES`, `REGISTERS`).
    UnitStore {
        /// The core that pushed the instruction, at the event's `pc`.
        by: Option<Processor>,
        /// The address.
        addr: u32,
        /// The value.
        value: u32,
    },
    /// A core starts a request (`NOC`).
    Request(Box<Request>),
    /// A packet leaves (`NOC`).
    Leaves(PacketEvent),
    /// A packet's last flit arrives: memory is read or written now (`NOC`).
    Arrives(PacketEvent),
    /// A core comes out of reset (`CORES`).
    Released,
    /// A core is held in reset (`CORES`).
    Held,
    /// A core parks in a poll loop on these addresses; `pc` is the head of the loop (`CORES`).
    Parked(Box<[u32]>),
    /// A core waits in an access to this address (`CORES`).
    Blocked(u32),
    /// A core that was parked or blocked goes on (`CORES`). One that was parked has been in an
    /// iteration of its poll loop when what it waited for changed, at the event's cycle: what it
    /// did there before is told as of that cycle, too ([`Event::early`]).
    Resumed,
    /// A unit of the coprocessor works (`UNITS`): instructions that follow one another at once are
    /// one event.
    Busy {
        /// The Tensix thread of the last instruction.
        thread: u8,
        /// The first cycle in which the unit could take another instruction.
        until: Cycle,
    },
    /// A core pushes an instruction that its code contains (`COPROCESSOR`). Others are pushed by
    /// stores.
    Pushes,
    /// An instruction passes a wait gate (`COPROCESSOR`), if it waits, orders or changes something
    /// for others: those of the sync, configuration, scalar and packer unit, of unpackers and
    /// mover, those of the matrix unit that give banks of SrcA or SrcB back, and the first one of
    /// any kind that a wait instruction may have held back. It comes behind what the instruction
    /// does in its cycle.
    Passes {
        /// The Tensix thread.
        thread: u8,
        /// The core that pushed it, or what it was expanded from, at the event's `pc`.
        by: Option<Processor>,
        /// The low bits of the cycle of that push.
        pushed: u32,
        /// The instruction.
        insn: u32,
    },
    /// An unpacker starts what passed the wait gate before (`COPROCESSOR`).
    Starts {
        /// The Tensix thread.
        thread: u8,
        /// When it passed.
        passed: Cycle,
    },
    /// An unpacker has done what passed the wait gate before (`COPROCESSOR`).
    Ends {
        /// When it passed.
        passed: Cycle,
        /// A bank of SrcA or SrcB is now the matrix unit's.
        gives: bool,
    },
    /// Rows of Dst are used for a thread (`COPROCESSOR`): by unit and thread once between two wait
    /// instructions.
    Dst {
        /// The Tensix thread.
        thread: u8,
        /// Matrix or vector unit, packer, unpacker.
        unit: Unit,
        /// A bit for each eight rows, as instructions name them.
        blocks: [u64; 2],
        /// They are written, otherwise read.
        writes: bool,
    },
    /// An instruction changes a word of the configuration (`COPROCESSOR`).
    Configures {
        /// The Tensix thread.
        thread: u8,
        /// The word, from [`CFG_BASE`](tilework_abi::tensix::CFG_BASE) on.
        word: u16,
        /// Which bits.
        mask: u32,
        /// What the word is now.
        value: u32,
    },
    /// What a core executed since the last of these, by address (`COUNTS`). There is one before
    /// every store of the core to an observed line, so that counts of kernels that come one after
    /// the other at the same addresses stay apart, and one when the observers are settled.
    Counted(Box<[PcCount]>),
}

impl Spot {
    /// Its place in the order of tiles. Tensix tiles come first, in the order of columns, then of
    /// rows, each of six bits.
    #[inline]
    pub const fn rank(self) -> u32 {
        match self {
            Self::Tensix(xy) => (xy.x as u32) << 6 | (xy.y & 0x3F) as u32,
            Self::Dram(bank) => 1 << 14 | bank as u32,
            Self::Pcie => 2 << 14,
            Self::Arc => 2 << 14 | 1,
            Self::Inert => 2 << 14 | 2,
        }
    }
}

impl Agent {
    /// Its place in the order of the agents of a tile.
    const fn rank(self) -> u32 {
        match self {
            Self::Niu(noc) => (noc & 1) as u32,
            Self::Core(core) => 2 + core.index() as u32,
            Self::Coprocessor(unit) => {
                7 + match unit {
                    Unit::Mover => 0,
                    Unit::Packer => 1,
                    Unit::Matrix => 2,
                    Unit::Vector => 3,
                    Unit::Scalar => 4,
                    Unit::Gate => 5,
                    Unit::Unpacker(number) => 6 + (number & 1) as u32,
                }
            }
        }
    }
}

impl Event {
    /// Bits of a rank.
    pub(crate) const RANK_BITS: u32 = 20;

    /// The place of its agent in the order of the agents of the chip. What is [`Event::early`] has
    /// one of its own, before those of its tile.
    #[inline]
    pub(crate) const fn rank(&self) -> u32 {
        let agent = if self.early { 0 } else { self.agent.rank() + 1 };
        self.spot.rank() << 4 | agent
    }
}

/// One event.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Event {
    /// When.
    pub at: Cycle,
    /// Where.
    pub spot: Spot,
    /// Who.
    pub agent: Agent,
    /// The instruction of the core on whose behalf it happens; zero when there is none.
    pub pc: u32,
    /// An access of which the observer that has said so ([`Known`](super::Known)) needs to see
    /// nothing; others may.
    pub known: bool,
    /// It comes before all else that its tile does in this cycle: what a core that slept in a poll
    /// loop did in its iteration before the cycle at which it woke, which is the event's, or what
    /// has to be told before a packet.
    pub early: bool,
    /// What.
    pub what: What,
}

// A line of the host's caches.
const _: () = assert!(size_of::<Event>() <= 64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_agent_has_a_rank_of_its_own() {
        let tiles = (0..17).flat_map(|x| (0..12).map(move |y| Spot::Tensix(NocXy::new(x, y))));
        let spots = tiles.chain((0..8).map(Spot::Dram)).chain([Spot::Pcie, Spot::Arc, Spot::Inert]);
        let units = [Unit::Mover, Unit::Packer, Unit::Matrix, Unit::Vector, Unit::Scalar, Unit::Gate];
        let units = units.into_iter().chain([0, 1].map(Unit::Unpacker)).map(Agent::Coprocessor);
        let agents = [0, 1].map(Agent::Niu).into_iter().chain(Processor::ALL.map(Agent::Core)).chain(units);
        let agents: Vec<Agent> = agents.collect();
        let event = |spot, agent| Event { at: 0, spot, agent, pc: 0, known: false, early: false, what: What::Fence };
        let ranks: Vec<u32> =
            spots.flat_map(|spot| agents.iter().map(move |&agent| event(spot, agent).rank())).collect();
        assert!(ranks.windows(2).all(|pair| pair[0] < pair[1]), "in the order of tiles and agents");
    }
}
