//! What the cores of a tile see of the Tensix coprocessor and of each other.
//!
//! Address decoding follows the memory map of BlackholeA0/TensixTile/BabyRISCV/README.md; which core sees what differs from core to
//! core, and NC and the NoC see nothing of it. The coprocessor itself is not built: pushing an instruction is a fault that names it, so
//! the threads are always idle and Manual TTSync never waits.
//!
//! Accesses are words: a load answers with the word shifted so that the addressed byte comes first, and the tile cuts it to the width.
//! Stores are words only.

mod config;
mod mailbox;
pub mod opcodes;
mod pcbuf;
mod semaphores;
mod tdma;
#[cfg(test)]
mod tests;

use crate::{Cycle, Fault, FaultClass, timing};
use config::{Config, Refusal};
use mailbox::Mailboxes;
use pcbuf::PcBuf;
use semaphores::Semaphore;
use tdma::Tdma;
use tilework_abi::tensix::{self as map, Processor};
use tilework_riscv::{Access, Load, Refuse};

const MAP: &str = "BlackholeA0/TensixTile/BabyRISCV/README.md, memory map";
/// Words of one thread's general-purpose registers (WormholeB0/TensixTile/TensixCoprocessor/ScalarUnit.md).
const GPRS: u32 = 64;
/// Words of one thread's MOP configuration (WormholeB0/TensixTile/TensixCoprocessor/MOPExpander.md).
const MOP_WORDS: u32 = 9;
/// End of the coprocessor's address space: the top of memory, less what nobody maps.
const CFG_END: u32 = 0xFFEF_FFFF;
/// Distance between the threads' instruction and PC buffers as B sees them.
const PER_THREAD: u32 = 0x1_0000;

/// The shared part of a tile that belongs to the coprocessor.
#[derive(Debug, Default)]
pub struct Tensix {
    mailboxes: Mailboxes,
    pc_bufs: [PcBuf; 3],
    semaphores: [Semaphore; semaphores::COUNT],
    config: Config,
    tdma: Tdma,
    gprs: Gprs,
    mop: [[u32; MOP_WORDS as usize]; 3],
    changed: bool,
}

#[derive(Debug)]
struct Gprs([u32; 3 * GPRS as usize]);

impl Default for Gprs {
    fn default() -> Self {
        Self([0; 3 * GPRS as usize])
    }
}

/// A core that sees the coprocessor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Client {
    B,
    T(usize),
}

impl Client {
    fn of(core: Processor) -> Option<Self> {
        match core {
            Processor::Brisc => Some(Self::B),
            Processor::Ncrisc => None,
            Processor::Trisc0 => Some(Self::T(0)),
            Processor::Trisc1 => Some(Self::T(1)),
            Processor::Trisc2 => Some(Self::T(2)),
        }
    }
    /// Position among B, T0, T1, T2.
    fn index(self) -> usize {
        match self {
            Self::B => 0,
            Self::T(i) => i + 1,
        }
    }
}

/// What an address means to a core.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    Tdma(u32),
    Mop { thread: usize, word: u32 },
    Dst,
    Gpr(u32),
    Push { thread: usize },
    PcBufB(usize),
    PcBufT(usize),
    TtSync,
    Semaphore(usize),
    Mailbox { other: usize, query: bool },
    Config(u32),
}

fn fault(class: FaultClass, what: impl Into<String>, read: &'static str, core: Processor, addr: u32) -> Refuse<Fault> {
    let mut fault = Fault::new(class, what, read).at_addr(u64::from(addr));
    fault.site.core = Some(core);
    Refuse::Fault(fault)
}

/// The documents say nothing, or something is not there for this core.
fn unmapped(core: Processor, addr: u32, who: &str) -> Refuse<Fault> {
    let what = format!("{core} has nothing at this address; {who}");
    fault(FaultClass::UndefinedBehavior, what, MAP, core, addr)
}

fn decode(core: Processor, addr: u32) -> Result<Place, Refuse<Fault>> {
    const TDMA_END: u32 = map::TDMA_BASE + 0x1000;
    const MOP_END: u32 = map::MOP_CFG_BASE + MOP_WORDS * 4;
    const DST_END: u32 = map::DST_BASE + 0x8000;
    const GPR_END: u32 = map::GPR_BASE + 0x1000;
    const PUSH_END: u32 = map::INSTRN_BUF_BASE + 3 * PER_THREAD;
    const PC_BUF_END: u32 = map::PC_BUF_BASE + 3 * PER_THREAD;
    const MAILBOX_END: u32 = map::MAILBOX_BASE + 4 * 0x1000;
    let Some(client) = Client::of(core) else {
        return Err(unmapped(core, addr, "the coprocessor's registers are for BRISC and the TRISCs"));
    };
    Ok(match addr {
        map::TDMA_BASE..TDMA_END => Place::Tdma(addr - map::TDMA_BASE),
        map::MOP_CFG_BASE..MOP_END => match client {
            Client::T(thread) => Place::Mop { thread, word: (addr - map::MOP_CFG_BASE) / 4 },
            Client::B => return Err(unmapped(core, addr, "MOP configuration is for the TRISCs")),
        },
        map::DST_BASE..DST_END => match client {
            Client::T(_) => Place::Dst,
            Client::B => return Err(unmapped(core, addr, "Dst is for the TRISCs")),
        },
        map::GPR_BASE..GPR_END => {
            let word = (addr - map::GPR_BASE) / 4;
            let (base, count) = match client {
                Client::B => (0, 3 * GPRS),
                Client::T(i) => (i as u32 * GPRS, GPRS),
            };
            if word >= count {
                let what = format!("GPR {word}; {core} has {count}");
                let read = "WormholeB0/TensixTile/TensixCoprocessor/ScalarUnit.md";
                return Err(fault(FaultClass::MissingSpecification, what, read, core, addr));
            }
            Place::Gpr(base + word)
        }
        map::INSTRN_BUF_BASE..PUSH_END => {
            let buffer = (addr - map::INSTRN_BUF_BASE) / PER_THREAD;
            match client {
                Client::B => Place::Push { thread: buffer as usize },
                Client::T(thread) if buffer == 0 => Place::Push { thread },
                Client::T(_) => {
                    return Err(unmapped(core, addr, "a TRISC pushes to its own thread only, others hang it"));
                }
            }
        }
        map::PC_BUF_BASE..PC_BUF_END => {
            let at = addr - map::PC_BUF_BASE;
            match (client, at) {
                (Client::B, _) => Place::PcBufB((at / PER_THREAD) as usize),
                (Client::T(thread), 0..0x4) => Place::PcBufT(thread),
                (Client::T(_), 0x4..0xC) => Place::TtSync,
                (Client::T(_), 0x20..0x40) => Place::Semaphore(((at - 0x20) / 4) as usize),
                (Client::T(_), 0..PER_THREAD) => {
                    let read = "BlackholeA0/TensixTile/TensixCoprocessor/SyncUnit.md";
                    let what = "neither Manual TTSync nor one of the eight semaphores";
                    return Err(fault(FaultClass::MissingSpecification, what, read, core, addr));
                }
                (Client::T(_), _) => return Err(unmapped(core, addr, "the other threads' PC buffers are for BRISC")),
            }
        }
        map::MAILBOX_BASE..MAILBOX_END => {
            let at = addr - map::MAILBOX_BASE;
            Place::Mailbox { other: (at / 0x1000) as usize, query: at & 4 != 0 }
        }
        map::CFG_BASE..=CFG_END => Place::Config((addr - map::CFG_BASE) / 4),
        _ => return Err(unmapped(core, addr, "the memory map has nothing there")),
    })
}

impl Tensix {
    /// A tile just powered on.
    pub fn new() -> Self {
        Self::default()
    }

    /// True, once, when something changed for which another core may be waiting.
    pub fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.changed)
    }

    /// `core` was reset: it does not wait for anything any more.
    pub fn reset_core(&mut self, core: Processor) {
        if let Some(Client::T(thread)) = Client::of(core) {
            self.pc_bufs[thread].reset_reader();
        }
    }

    /// `RISCV_DEBUG_REG_TRISC_PC_BUF_OVERRIDE` was written: ten bits for each PC buffer (BabyRISCV/PCBufs.md).
    pub fn set_pc_buf_override(&mut self, value: u32) {
        for (buf, shift) in self.pc_bufs.iter_mut().zip([0, 10, 20]) {
            buf.configure(value >> shift);
        }
        self.changed = true;
    }

    /// The word at `addr` as `core` would load it now, without any effect. `None` when a load would have an effect, wait or
    /// fault.
    pub fn peek(&self, core: Processor, addr: u32) -> Option<u32> {
        let client = Client::of(core)?;
        let word = match decode(core, addr).ok()? {
            Place::Tdma(reg) => self.tdma.load(client.index(), reg & !3).ok()?,
            Place::Gpr(word) => self.gprs.0[word as usize],
            Place::Semaphore(i) => self.semaphores[i].value(),
            Place::Mailbox { other, query: true } => self.mailboxes.has_value(other, client.index()).into(),
            Place::Config(index) => self.config.load(index).ok()?,
            _ => return None,
        };
        Some(word >> (8 * (addr & 3)))
    }

    /// `core` loads the word at `addr` at cycle `at`.
    ///
    /// # Errors
    /// `Block` on an empty queue; a fault for what is not there, not built or write-only.
    pub fn load(&mut self, core: Processor, addr: u32, at: Cycle) -> Result<Load, Refuse<Fault>> {
        let place = decode(core, addr)?;
        // `decode` refuses the core that has no index.
        let me = Client::of(core).map_or(0, Client::index);
        let refused = |(class, what): Refusal| fault(class, what, MAP, core, addr).at_cycle(at);
        let word = |value: u32, latency, access| Load { value: value >> (8 * (addr & 3)), latency, access };
        match place {
            Place::Tdma(reg) => {
                let value = self.tdma.load(me, reg & !3).map_err(refused)?;
                Ok(word(value, timing::LOAD_CONFIG, Access::Watched))
            }
            Place::Gpr(i) => Ok(word(self.gprs.0[i as usize], timing::LOAD_CONFIG, Access::Watched)),
            Place::Config(i) => {
                let value = self.config.load(i).map_err(refused)?;
                Ok(word(value, timing::LOAD_CONFIG, Access::Watched))
            }
            Place::Semaphore(i) => Ok(word(self.semaphores[i].value(), timing::LOAD_MAILBOX, Access::Watched)),
            Place::TtSync => Ok(word(0, timing::LOAD_MAILBOX, Access::Volatile)),
            Place::Mailbox { other, query: true } => {
                let value = self.mailboxes.has_value(other, me).into();
                Ok(word(value, timing::LOAD_MAILBOX, Access::Watched))
            }
            Place::Mailbox { other, query: false } => {
                let value = self.mailboxes.pop(other, me).ok_or(Refuse::Block)?;
                self.changed = true;
                Ok(word(value, timing::LOAD_MAILBOX, Access::Volatile))
            }
            Place::PcBufB(i) => {
                let value = self.pc_bufs[i].drained().ok_or(Refuse::Block)?;
                Ok(word(value, timing::LOAD_MAILBOX, Access::Volatile))
            }
            Place::PcBufT(i) => {
                let waited = self.pc_bufs[i].is_waited_for();
                let value = self.pc_bufs[i].pop();
                // A value taken makes room for B; the first fruitless try is what B's read waits for.
                self.changed |= value.is_some() || !waited;
                let value = value.ok_or(Refuse::Block)?;
                Ok(word(value, timing::LOAD_MAILBOX, Access::Volatile))
            }
            Place::Mop { .. } => {
                let read = "WormholeB0/TensixTile/TensixCoprocessor/MOPExpander.md";
                let what = "a load of MOP configuration, which is write-only";
                Err(fault(FaultClass::UndefinedBehavior, what, read, core, addr))
            }
            Place::Push { .. } => {
                let read = "BlackholeA0/TensixTile/BabyRISCV/PushTensixInstruction.md";
                let what = "a load from an instruction buffer";
                Err(fault(FaultClass::MissingSpecification, what, read, core, addr))
            }
            Place::Dst => Err(dst(core, addr)),
        }
        .map_err(|refuse| refuse.at_cycle(at))
    }

    /// `core` stores the word `value` at `addr` at cycle `at`.
    ///
    /// # Errors
    /// `Block` on a full queue; a fault for what is not there, not built, read-only or not a word.
    pub fn store(&mut self, core: Processor, addr: u32, value: u32, at: Cycle) -> Result<(), Refuse<Fault>> {
        let place = decode(core, addr)?;
        let me = Client::of(core).map_or(0, Client::index);
        if addr & 3 != 0 {
            let what = "a store to part of a register";
            return Err(fault(FaultClass::UnsupportedFunctionality, what, MAP, core, addr).at_cycle(at));
        }
        let refused = |(class, what): Refusal| fault(class, what, MAP, core, addr).at_cycle(at);
        let full = |pushed: bool| if pushed { Ok(()) } else { Err(Refuse::Block) };
        match place {
            Place::Tdma(reg) => self.tdma.store(me, reg, value).map_err(refused)?,
            Place::Mop { thread, word } => self.mop[thread][word as usize] = value,
            Place::Gpr(i) => self.gprs.0[i as usize] = value,
            Place::Config(i) => self.config.store(i, value).map_err(refused)?,
            Place::Push { thread } => return Err(push(core, thread, value).at_cycle(at)),
            Place::PcBufB(i) => full(self.pc_bufs[i].push(value))?,
            Place::Mailbox { other, .. } => full(self.mailboxes.push(me, other, value))?,
            Place::Semaphore(i) => {
                self.semaphores[i].store(value);
            }
            // Discarded; the store only orders earlier stores before a later load (ManualTTSync.md, PCBufs.md).
            Place::PcBufT(_) | Place::TtSync => return Ok(()),
            Place::Dst => return Err(dst(core, addr).at_cycle(at)),
        }
        self.changed = true;
        Ok(())
    }

    /// `core` executes `.ttinsn word` at cycle `at`; the answer is the cycles for which it is held.
    ///
    /// # Errors
    /// Always a fault: no coprocessor instruction is built yet. It names the instruction.
    pub fn ttinsn(&mut self, core: Processor, word: u32, at: Cycle) -> Result<u32, Refuse<Fault>> {
        self.store(core, map::INSTRN_BUF_BASE, word, at).map(|()| 0)
    }
}

fn push(core: Processor, thread: usize, word: u32) -> Refuse<Fault> {
    let read = "BlackholeA0/TensixTile/TensixCoprocessor/README.md";
    let fault = match opcodes::mnemonic(word) {
        Some(name) => Fault::new(
            FaultClass::UnimplementedFunctionality,
            format!("{name} ({word:#010x}) pushed to Tensix thread T{thread}: coprocessor instruction not built yet"),
            read,
        ),
        None => Fault::new(
            FaultClass::UndefinedBehavior,
            format!("{word:#010x} pushed to Tensix thread T{thread} is no instruction"),
            read,
        ),
    };
    let mut fault = fault;
    fault.site.core = Some(core);
    Refuse::Fault(fault)
}

fn dst(core: Processor, addr: u32) -> Refuse<Fault> {
    let read = "BlackholeA0/TensixTile/TensixCoprocessor/Dst.md";
    fault(FaultClass::UnimplementedFunctionality, "an access to Dst, which is not built yet", read, core, addr)
}

/// Puts the cycle into a refusal that is a fault.
trait AtCycle {
    fn at_cycle(self, at: Cycle) -> Self;
}

impl AtCycle for Refuse<Fault> {
    fn at_cycle(self, at: Cycle) -> Self {
        match self {
            Self::Fault(fault) => Self::Fault(fault.at_cycle(at)),
            other => other,
        }
    }
}
