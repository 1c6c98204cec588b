//! The registers of the coprocessor as cores reach them.
//!
//! The address map says what an address means; which core sees what differs from core to core, and
//! NCRISC and the NoC see nothing of it (BlackholeA0/TensixTile/BabyRISCV/README.md, memory map).

use super::super::{GPRS, sync::SEMAPHORES};
use super::{MAP, fault};
use crate::{Fault, FaultClass};
use tilework_abi::address_map::Region;
use tilework_abi::tensix::{Processor, pc_buf};
use tilework_riscv::Refuse;

/// Behind the last semaphore in a PC buffer.
pub(super) const SEMAPHORES_END: u32 = pc_buf::SEMAPHORE + 4 * SEMAPHORES as u32;

/// A core that sees the coprocessor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::tensix) enum Client {
    B,
    T(usize),
}

impl Client {
    pub(in crate::tensix) fn of(core: Processor) -> Option<Self> {
        match core {
            Processor::Brisc => Some(Self::B),
            Processor::Ncrisc => None,
            Processor::Trisc0 => Some(Self::T(0)),
            Processor::Trisc1 => Some(Self::T(1)),
            Processor::Trisc2 => Some(Self::T(2)),
        }
    }
    /// Position among B, T0, T1, T2.
    pub(in crate::tensix) fn index(self) -> usize {
        match self {
            Self::B => 0,
            Self::T(i) => i + 1,
        }
    }
}

/// A register of the coprocessor, as a core reaches it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Target {
    Tdma(u32),
    Mop { thread: usize, word: u32 },
    Gpr(u32),
    Push { thread: usize },
    PcBufB(usize),
    PcBufT(usize),
    CoprocessorDone(usize),
    MopDone(usize),
    Semaphore(usize),
    Mailbox { other: usize, query: bool },
    Config(u32),
}

/// The documents say nothing, or something is not there for this core.
fn unmapped(core: Processor, addr: u32, who: &str) -> Refuse<Fault> {
    let what = format!("{core} has nothing at this address; {who}");
    fault(FaultClass::UndefinedBehavior, what, MAP, core, addr)
}

/// What `core` reaches at `addr`.
pub(super) fn decode(core: Processor, addr: u32) -> Result<Target, Refuse<Fault>> {
    let Some(client) = Client::of(core) else {
        return Err(unmapped(core, addr, "the coprocessor's registers are for BRISC and the TRISCs"));
    };
    Ok(match (Region::decode(addr), client) {
        (Region::Tdma { offset }, _) => Target::Tdma(offset),
        (Region::Mop { word }, Client::T(thread)) => Target::Mop { thread, word },
        (Region::Mop { .. }, Client::B) => return Err(unmapped(core, addr, "MOP configuration is for the TRISCs")),
        (Region::Gpr { word }, _) => decode_gpr(core, client, addr, word)?,
        (Region::InstructionBuffer { index }, Client::B) => Target::Push { thread: index },
        (Region::InstructionBuffer { index: 0 }, Client::T(thread)) => Target::Push { thread },
        (Region::InstructionBuffer { .. }, Client::T(_)) => {
            return Err(unmapped(core, addr, "a TRISC pushes to its own thread only, others hang it"));
        }
        (Region::PcBuf { index, .. }, Client::B) => Target::PcBufB(index),
        (Region::PcBuf { index: 0, offset }, Client::T(thread)) => decode_pc_buf(core, thread, addr, offset)?,
        (Region::PcBuf { .. }, Client::T(_)) => {
            return Err(unmapped(core, addr, "the other threads' PC buffers are for BRISC"));
        }
        (Region::Mailbox { peer, query }, _) => {
            // Every peer has mailboxes, and so is a client.
            Target::Mailbox { other: Client::of(peer).map_or(0, Client::index), query }
        }
        (Region::Config { word }, _) => Target::Config(word),
        _ => return Err(unmapped(core, addr, "the memory map has nothing there")),
    })
}

fn decode_gpr(core: Processor, client: Client, addr: u32, word: u32) -> Result<Target, Refuse<Fault>> {
    let (base, count) = match client {
        Client::B => (0, 3 * GPRS),
        Client::T(i) => (i as u32 * GPRS, GPRS),
    };
    if word >= count {
        let what = format!("GPR {word}; {core} has {count}");
        let read = "WormholeB0/TensixTile/TensixCoprocessor/ScalarUnit.md";
        return Err(fault(FaultClass::MissingSpecification, what, read, core, addr));
    }
    Ok(Target::Gpr(base + word))
}

/// What lies in the PC buffer of a TRISC's own thread.
fn decode_pc_buf(core: Processor, thread: usize, addr: u32, offset: u32) -> Result<Target, Refuse<Fault>> {
    in_pc_buf(thread, offset & !3).ok_or_else(|| {
        let read = "BlackholeA0/TensixTile/TensixCoprocessor/SyncUnit.md";
        let what = "neither Manual TTSync nor one of the eight semaphores";
        fault(FaultClass::MissingSpecification, what, read, core, addr)
    })
}

/// What lies at a byte offset in the PC buffer of a TRISC's own thread, if that is a word's.
pub(super) fn in_pc_buf(thread: usize, offset: u32) -> Option<Target> {
    match offset {
        pc_buf::QUEUE => Some(Target::PcBufT(thread)),
        pc_buf::TENSIX_SYNC => Some(Target::CoprocessorDone(thread)),
        pc_buf::MOP_SYNC => Some(Target::MopDone(thread)),
        pc_buf::SEMAPHORE..SEMAPHORES_END if offset.is_multiple_of(4) => {
            Some(Target::Semaphore(((offset - pc_buf::SEMAPHORE) / 4) as usize))
        }
        _ => None,
    }
}

impl Target {
    /// Whether a store there only orders earlier stores before a later load (ManualTTSync.md,
    /// PCBufs.md).
    pub(super) const fn only_orders(self) -> bool {
        matches!(self, Self::PcBufT(_) | Self::CoprocessorDone(_) | Self::MopDone(_))
    }
}
