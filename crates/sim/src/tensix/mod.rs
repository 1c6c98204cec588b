//! The Tensix coprocessor, and what the cores of a tile see of it and of each other.
//!
//! Address decoding follows the memory map of BlackholeA0/TensixTile/BabyRISCV/README.md; which core sees what differs from core to
//! core, and NC and the NoC see nothing of it. Built are the front ends of the three threads, the sync, configuration, scalar, miscellaneous
//! unit and the mover, and of the matrix and vector units what start-up code uses; every other instruction is a fault that names it when it
//! reaches its unit.
//!
//! Accesses are words: a load answers with the word shifted so that the addressed byte comes first, and the tile cuts it to the width.
//! Stores are words only.

#[cfg(test)]
mod bench;
mod config;
mod coprocessor;
mod counters;
mod debug;
mod expand;
mod frontend;
mod issue;
mod mailbox;
mod matrix;
mod mover;
pub mod opcodes;
mod outside;
mod pcbuf;
mod reset;
mod scalar;
#[cfg(test)]
mod scalar_tests;
mod sync;
mod tdma;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod thread_tests;
mod ttsync;
mod vector;
mod wait;

#[cfg(doc)]
use crate::NEVER;
use crate::{Cycle, Fault, FaultClass, timing};
use config::Refusal;
use coprocessor::Coprocessor;
use mailbox::Mailboxes;
pub use outside::{Hold, Outside};
use pcbuf::PcBuf;
use tdma::Tdma;
use tilework_abi::address_map::{MOP_WORDS, Region};
use tilework_abi::tensix::{self as map, Processor};
use tilework_riscv::{Access, Load, Refuse};
use ttsync::Resource;

const MAP: &str = "BlackholeA0/TensixTile/BabyRISCV/README.md, memory map";
/// Words of one thread's general-purpose registers.
const GPRS: u32 = coprocessor::GPRS as u32;

// The map leaves as much room for the MOP configuration as there is.
const _: () = assert!(MOP_WORDS as usize == expand::WORDS);

/// The shared part of a tile that belongs to the coprocessor.
#[derive(Debug, Default)]
pub struct Tensix {
    mailboxes: Mailboxes,
    pc_bufs: [PcBuf; 3],
    tdma: Tdma,
    coprocessor: Coprocessor,
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

/// A register of the coprocessor, as a core reaches it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Target {
    Tdma(u32),
    Mop { thread: usize, word: u32 },
    Dst,
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

/// What `core` reaches at `addr`.
fn decode(core: Processor, addr: u32) -> Result<Target, Refuse<Fault>> {
    let Some(client) = Client::of(core) else {
        return Err(unmapped(core, addr, "the coprocessor's registers are for BRISC and the TRISCs"));
    };
    Ok(match (Region::decode(addr), client) {
        (Region::Tdma { offset }, _) => Target::Tdma(offset),
        (Region::Mop { word }, Client::T(thread)) => Target::Mop { thread, word },
        (Region::Mop { .. }, Client::B) => return Err(unmapped(core, addr, "MOP configuration is for the TRISCs")),
        (Region::Dst { .. }, Client::T(_)) => Target::Dst,
        (Region::Dst { .. }, Client::B) => return Err(unmapped(core, addr, "Dst is for the TRISCs")),
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
    match offset {
        0..0x4 => Ok(Target::PcBufT(thread)),
        0x4..0x8 => Ok(Target::CoprocessorDone(thread)),
        0x8..0xC => Ok(Target::MopDone(thread)),
        0x20..0x40 => Ok(Target::Semaphore(((offset - 0x20) / 4) as usize)),
        _ => {
            let read = "BlackholeA0/TensixTile/TensixCoprocessor/SyncUnit.md";
            let what = "neither Manual TTSync nor one of the eight semaphores";
            Err(fault(FaultClass::MissingSpecification, what, read, core, addr))
        }
    }
}

impl Tensix {
    /// A tile just powered on.
    pub fn new() -> Self {
        Self::default()
    }

    /// The next cycle in which the coprocessor does something; [`NEVER`]: not by itself.
    #[inline]
    pub fn next(&self) -> Cycle {
        self.coprocessor.next()
    }

    /// The cycle of the coprocessor's last step.
    pub fn last_step(&self) -> Cycle {
        self.coprocessor.last()
    }

    /// Instructions that have passed the wait gates.
    pub fn instructions(&self) -> u64 {
        self.coprocessor.passed
    }

    /// Does one step of cycle [`Tensix::next`]. Several may be due in one cycle; all cores have come to its end before.
    ///
    /// # Errors
    /// [`Hold`]; nothing has changed.
    pub fn step(&mut self, outside: &mut impl Outside) -> Result<(), Hold> {
        self.coprocessor.step(outside)
    }

    /// At cycle `at` somebody changes something for which [`Outside::sleep_on`] was called.
    pub fn wake(&mut self, at: Cycle) {
        self.coprocessor.wake(at);
    }

    /// The cycle, once, at which something changed for which a blocked core may be waiting.
    pub fn take_changed(&mut self) -> Option<Cycle> {
        self.coprocessor.changed.take()
    }

    /// True until [`Tensix::take_changed`] when something changed for which a blocked core may be waiting.
    #[inline]
    pub fn has_changed(&self) -> bool {
        self.coprocessor.changed.is_some()
    }

    /// The threads that stand at their wait gates, and what for, if `core` may be waiting for them.
    pub fn explain(&self, core: Processor) -> Vec<String> {
        let threads = match Client::of(core) {
            None => return Vec::new(),
            Some(Client::B) => 0..coprocessor::THREADS,
            Some(Client::T(thread)) => thread..thread + 1,
        };
        threads.filter_map(|thread| self.coprocessor.explain(thread)).collect()
    }

    /// `core` was reset: it does not wait for anything any more, its mailboxes' contents are lost, and what it pushed stays only behind
    /// the MOP expander (BlackholeA0/TensixTile/SoftReset.md, "RISCV soft reset").
    pub fn reset_core(&mut self, core: Processor, at: Cycle) {
        if let Some(client) = Client::of(core) {
            self.mailboxes.discard_from(client.index());
        }
        if let Some(Client::T(thread)) = Client::of(core) {
            self.pc_bufs[thread].reset_reader();
            self.coprocessor.threads[thread].front.reset();
            self.coprocessor.unblock(at);
        }
    }

    /// `core` leaves soft reset: its PC buffer is empty (same page).
    pub fn release_core(&mut self, core: Processor, at: Cycle) {
        if let Some(Client::T(thread)) = Client::of(core) {
            self.pc_bufs[thread].discard();
            self.coprocessor.unblock(at);
        }
    }

    /// The soft reset register was written: its bits for the coprocessor's units (BlackholeA0/TensixTile/SoftReset.md).
    pub fn soft_reset(&mut self, bits: u32, at: Cycle) {
        let entered = self.coprocessor.soft_reset(bits, at);
        if entered & reset::TDMA != 0 {
            self.tdma.clear_params();
        }
    }

    /// `RISCV_DEBUG_REG_TRISC_PC_BUF_OVERRIDE` was written: ten bits for each PC buffer (BabyRISCV/PCBufs.md).
    pub fn set_pc_buf_override(&mut self, value: u32, at: Cycle) {
        for (buf, shift) in self.pc_bufs.iter_mut().zip([0, 10, 20]) {
            buf.configure(value >> shift);
        }
        self.coprocessor.unblock(at);
    }

    /// The word at `addr` as `core` would load it now, without any effect. `None` when a load would have an effect, wait or
    /// fault.
    pub fn peek(&self, core: Processor, addr: u32) -> Option<u32> {
        let client = Client::of(core)?;
        let cop = &self.coprocessor;
        let word = match decode(core, addr).ok()? {
            Target::Tdma(reg) => self.tdma.load(client.index(), reg & !3, &cop.mover).ok()?,
            Target::Gpr(word) => cop.gprs[word as usize],
            Target::Semaphore(i) => cop.semaphores[i].value(),
            Target::Mailbox { other, query: true } => self.mailboxes.has_value(other, client.index()).into(),
            Target::Config(index) => cop.config.load(index).ok()?,
            _ => return None,
        };
        Some(word >> (8 * (addr & 3)))
    }

    /// True when Auto TTSync holds the access of `core` until instructions that it pushed before have passed the wait gate.
    fn must_wait(&mut self, core: Processor, target: Target, store: bool) -> bool {
        let Some(Client::T(thread)) = Client::of(core) else { return false };
        let resource = match target {
            Target::Gpr(_) => Resource::Gpr,
            Target::Config(_) => Resource::Config,
            Target::Tdma(_) => Resource::Tdma,
            _ => return false,
        };
        let cop = &mut self.coprocessor;
        let t = &mut cop.threads[thread];
        t.tracking.must_wait(&t.front, &cop.config, thread, resource, store)
    }

    /// `core` loads the word at `addr` at cycle `at`.
    ///
    /// # Errors
    /// `Block` on an empty queue or for instructions under way; a fault for what is not there, not built or write-only.
    pub fn load(&mut self, core: Processor, addr: u32, at: Cycle) -> Result<Load, Refuse<Fault>> {
        let target = decode(core, addr)?;
        if self.must_wait(core, target, false) {
            return Err(Refuse::Block);
        }
        // `decode` refuses the core that has no index.
        let me = Client::of(core).map_or(0, Client::index);
        let refused = |(class, what): Refusal| fault(class, what, MAP, core, addr).at_cycle(at);
        let refused_by_tdma = |(class, what): tdma::Refusal| fault(class, what, MAP, core, addr).at_cycle(at);
        let word = |value: u32, latency, access| Load { value: value >> (8 * (addr & 3)), latency, access };
        match target {
            Target::Tdma(reg) => {
                let value = self.tdma.load(me, reg & !3, &self.coprocessor.mover).map_err(refused_by_tdma)?;
                Ok(word(value, timing::LOAD_CONFIG, Access::Watched))
            }
            Target::Gpr(i) => Ok(word(self.coprocessor.gprs[i as usize], timing::LOAD_CONFIG, Access::Watched)),
            Target::Config(i) => {
                let value = self.coprocessor.config.load(i).map_err(refused)?;
                Ok(word(value, timing::LOAD_CONFIG, Access::Watched))
            }
            Target::Semaphore(i) => {
                Ok(word(self.coprocessor.semaphores[i].value(), timing::LOAD_MAILBOX, Access::Watched))
            }
            Target::CoprocessorDone(thread) => {
                let until = self.drained(thread).ok_or(Refuse::Block)?;
                Ok(word(0, timing::LOAD_MAILBOX + cycles_until(until, at), Access::Volatile))
            }
            Target::MopDone(thread) => {
                let done =
                    self.coprocessor.threads[thread].front.mop_done() || self.pc_bufs[thread].is_overridden_busy();
                if done { Ok(word(0, timing::LOAD_MAILBOX, Access::Volatile)) } else { Err(Refuse::Block) }
            }
            Target::Mailbox { other, query: true } => {
                let value = self.mailboxes.has_value(other, me).into();
                Ok(word(value, timing::LOAD_MAILBOX, Access::Watched))
            }
            Target::Mailbox { other, query: false } => {
                let value = self.mailboxes.pop(other, me).ok_or(Refuse::Block)?;
                self.coprocessor.unblock(at);
                Ok(word(value, timing::LOAD_MAILBOX, Access::Volatile))
            }
            Target::PcBufB(i) => {
                let idle = self.drained(i);
                let value = self.pc_bufs[i].drained(idle.is_some()).ok_or(Refuse::Block)?;
                let latency = timing::LOAD_MAILBOX + cycles_until(idle.unwrap_or(0), at);
                Ok(word(value, latency, Access::Volatile))
            }
            Target::PcBufT(i) => {
                let waited = self.pc_bufs[i].is_waited_for();
                let value = self.pc_bufs[i].pop();
                // A value taken makes room for B; the first fruitless try is what B's read waits for.
                if value.is_some() || !waited {
                    self.coprocessor.unblock(at);
                }
                let value = value.ok_or(Refuse::Block)?;
                Ok(word(value, timing::LOAD_MAILBOX, Access::Volatile))
            }
            Target::Mop { .. } => {
                let read = "WormholeB0/TensixTile/TensixCoprocessor/MOPExpander.md";
                let what = "a load of MOP configuration, which is write-only";
                Err(fault(FaultClass::UndefinedBehavior, what, read, core, addr))
            }
            Target::Push { .. } => {
                let read = "BlackholeA0/TensixTile/BabyRISCV/PushTensixInstruction.md";
                let what = "a load from an instruction buffer";
                Err(fault(FaultClass::MissingSpecification, what, read, core, addr))
            }
            Target::Dst => Err(dst(core, addr)),
        }
        .map_err(|refuse| refuse.at_cycle(at))
    }

    /// From when on nothing of the thread is under way; `None` while its front end still holds instructions.
    fn drained(&self, thread: usize) -> Option<Cycle> {
        if self.pc_bufs[thread].is_overridden_busy() {
            return Some(0);
        }
        let cop = &self.coprocessor;
        cop.is_drained(thread).then_some(cop.threads[thread].busy.any)
    }

    /// `core` stores the word `value` at `addr` at cycle `at`.
    ///
    /// # Errors
    /// `Block` on a full queue or for instructions under way; a fault for what is not there, not built, read-only or not a word.
    pub fn store(&mut self, core: Processor, addr: u32, value: u32, at: Cycle) -> Result<(), Refuse<Fault>> {
        let target = decode(core, addr)?;
        let me = Client::of(core).map_or(0, Client::index);
        if addr & 3 != 0 {
            let what = "a store to part of a register";
            return Err(fault(FaultClass::UnsupportedFunctionality, what, MAP, core, addr).at_cycle(at));
        }
        if self.must_wait(core, target, true) {
            return Err(Refuse::Block);
        }
        let refused = |(class, what): Refusal| fault(class, what, MAP, core, addr).at_cycle(at);
        let refused_by_tdma = |(class, what): tdma::Refusal| fault(class, what, MAP, core, addr).at_cycle(at);
        let full = |pushed: bool| if pushed { Ok(()) } else { Err(Refuse::Block) };
        let cop = &mut self.coprocessor;
        match target {
            // The writes are discarded (SoftReset.md, "TDMA-RISC soft reset").
            Target::Tdma(_) if cop.held & reset::TDMA != 0 => {}
            Target::Tdma(reg) => {
                full(self.tdma.store(me, reg, value, &mut cop.mover).map_err(refused_by_tdma)?)?;
                if reg == map::tdma::COMMAND_ADDR {
                    cop.schedule_mover(at);
                }
            }
            Target::Mop { thread, word } => cop.mop[thread][word as usize] = value,
            Target::Gpr(i) => cop.gprs[i as usize] = value,
            Target::Config(i) => cop.config.store(i, value).map_err(refused)?,
            Target::Push { thread } if me == 0 => {
                check_instruction(core, thread, value, at)?;
                full(cop.threads[thread].front.push_behind_mop(value, at))?;
                cop.schedule(thread, at + 1);
            }
            Target::Push { thread } => full(self.push(core, thread, value, at)?)?,
            Target::PcBufB(i) => {
                full(self.pc_bufs[i].push(value))?;
                cop.unblock(at);
            }
            Target::Mailbox { other, .. } => {
                full(self.mailboxes.push(me, other, value))?;
                cop.unblock(at);
            }
            Target::Semaphore(i) => {
                cop.semaphores[i].store(value);
                // The access takes the sync unit's turn.
                cop.units.sync = cop.units.sync.max(at + 1);
                cop.notify_all(at);
            }
            // Discarded; the store only orders earlier stores before a later load (ManualTTSync.md, PCBufs.md).
            Target::PcBufT(_) | Target::CoprocessorDone(_) | Target::MopDone(_) => {}
            Target::Dst => return Err(dst(core, addr).at_cycle(at)),
        }
        Ok(())
    }

    /// Stores the word `value` at `addr`, if that is a GPR of the Tensix thread whose core `core` is, and nothing that this core pushed can make
    /// it wait. False, and nothing is done: [`Tensix::store`] is the way.
    #[inline]
    pub fn quick_store(&mut self, core: Processor, addr: u32, value: u32) -> bool {
        let Some(thread) = thread_of(core) else { return false };
        let offset = addr.wrapping_sub(map::GPR_BASE);
        let cop = &mut self.coprocessor;
        let quick = offset < 4 * GPRS && offset.is_multiple_of(4) && cop.threads[thread].front.is_empty();
        if quick {
            cop.gprs[thread * coprocessor::GPRS + (offset / 4) as usize] = value;
        }
        quick
    }

    /// The core of Tensix thread `thread` pushes an instruction at cycle `at`. `false`: no room.
    ///
    /// Only the thread's front end sees it, and not before the next cycle, so the push may come before the coprocessor has been stepped up
    /// to `at`: what looks like room then is room at `at`, too. What looks full may not be.
    ///
    /// # Errors
    /// A word that is no instruction.
    pub fn push(&mut self, core: Processor, thread: usize, word: u32, at: Cycle) -> Result<bool, Refuse<Fault>> {
        check_instruction(core, thread, word, at)?;
        let cop = &mut self.coprocessor;
        let t = &mut cop.threads[thread];
        if t.tracking.declare(word) {
            return Ok(true);
        }
        let pushed = t.front.push(word, at);
        if pushed {
            cop.schedule(thread, at + 1);
        }
        Ok(pushed)
    }
}

/// A core that runs into data pushes what is no instruction; it is told where.
fn check_instruction(core: Processor, thread: usize, word: u32, at: Cycle) -> Result<(), Refuse<Fault>> {
    if opcodes::unit(word).is_some() {
        return Ok(());
    }
    let what = format!("{word:#010x} pushed to Tensix thread T{thread} is no instruction");
    let read = "WormholeB0/TensixTile/TensixCoprocessor/README.md";
    let mut fault = Fault::new(FaultClass::UndefinedBehavior, what, read).at_cycle(at);
    fault.site.core = Some(core);
    Err(Refuse::Fault(fault))
}

/// The Tensix thread into which `core` pushes by `.ttinsn` or a store to `INSTRN_BUF_BASE` and what follows it; `None`: none of its own.
pub fn thread_of(core: Processor) -> Option<usize> {
    match Client::of(core) {
        Some(Client::T(thread)) => Some(thread),
        _ => None,
    }
}

fn cycles_until(until: Cycle, at: Cycle) -> u32 {
    // A unit is busy for no longer than the mover, whose jobs are bounded.
    u32::try_from(until.saturating_sub(at)).unwrap_or(0)
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
