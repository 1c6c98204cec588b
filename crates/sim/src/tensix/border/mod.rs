//! The border of the coprocessor with its tile.
//!
//! Inwards it is what cores load, store and push: [`Tensix::load`], [`Tensix::store`] and
//! [`Tensix::push`], with the meaning of an address in [`target`]. Outwards it is [`Outside`],
//! what the coprocessor needs of its tile; the tile implements it and says when the coprocessor
//! takes its steps.
//!
//! Accesses are words: a load answers with the word shifted so that the addressed byte comes first,
//! and the tile cuts it to the width. Stores are words only.

mod dst_window;
mod outside;
mod target;

pub(crate) use outside::{Hold, Outside};
pub(super) use target::Client;

use super::config::Refusal;
use super::frontend::FrontEnd;
use super::issue::unit_of;
use super::origin::{Issuer, Origin};
use super::ttsync::Resource;
use super::{GPRS, Tensix, coprocessor, reset, tdma};
use crate::{Cycle, Fault, FaultClass, timing};
use target::{Target, decode};
use tilework_abi::tensix::insn::{self, Insn};
use tilework_abi::tensix::{self as map, Processor};
use tilework_riscv::{Access, Load, NotQuick, Refuse};

const MAP: &str = "BlackholeA0/TensixTile/BabyRISCV/README.md, memory map";

fn fault(class: FaultClass, what: impl Into<String>, read: &'static str, core: Processor, addr: u32) -> Refuse<Fault> {
    let mut fault = Fault::new(class, what, read).at_addr(u64::from(addr));
    fault.site.core = Some(core);
    Refuse::Fault(fault)
}

impl Tensix {
    /// The word at `addr` as `core` would load it now, without any effect. `None` when a load would
    /// have an effect, wait or fault.
    pub(crate) fn peek(&self, core: Processor, addr: u32) -> Option<u32> {
        let client = Client::of(core)?;
        let cop = &self.coprocessor;
        let word = match decode(core, addr).ok()? {
            Target::Tdma(reg) if self.is_of_packer(reg & !3) => return None,
            Target::Tdma(reg) => self.tdma.load(client.index(), reg & !3, &cop.mover).ok()?,
            Target::Gpr(word) => cop.gprs[word as usize],
            Target::Semaphore(i) => cop.semaphores[i].value(),
            Target::Mailbox { other, query: true } => self.mailboxes.has_value(other, client.index()).into(),
            Target::Config(index) => cop.config.load(index).ok()?,
            _ => return None,
        };
        Some(word >> (8 * (addr & 3)))
    }

    /// Whether the register says what the packer does or has done, and it has done something.
    fn is_of_packer(&self, reg: u32) -> bool {
        let scalers = reg & 0x3C == map::tdma::SCALERS & 0x3C;
        (scalers || tdma::size_of(reg).is_some()) && self.coprocessor.packer.has_packed()
    }

    /// True when Auto TTSync holds the access of `core` until instructions that it pushed before
    /// have passed the wait gate.
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
    /// `Block` on an empty queue or for instructions in flight; a fault for what is not there, not
    /// built or write-only.
    pub(crate) fn load(&mut self, core: Processor, addr: u32, at: Cycle) -> Result<Load, Refuse<Fault>> {
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
            Target::Tdma(reg) if self.is_of_packer(reg & !3) => {
                if let Some((thread, which)) = tdma::size_of(reg & !3) {
                    let size = self.coprocessor.packer.sizes(thread)[which];
                    return Ok(word(size, timing::LOAD_CONFIG, Access::Volatile));
                }
                let cop = &self.coprocessor;
                let value = self.tdma.load(me, reg & !3, &cop.mover).map_err(refused_by_tdma)?;
                let busy = if cop.threads[2].busy.packer > at { tdma::PACKER_IS_BUSY } else { 0 };
                Ok(word(value | busy, timing::LOAD_CONFIG, Access::Volatile))
            }
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
            Target::Mailbox { other, query: true } => {
                let value = self.mailboxes.has_value(other, me).into();
                Ok(word(value, timing::LOAD_MAILBOX, Access::Watched))
            }
            Target::Mop { .. } => {
                let read = "WormholeB0/TensixTile/TensixCoprocessor/MOPExpander.md";
                let what = "a load of MOP configuration, which is write-only";
                Err(fault(FaultClass::UndefinedBehavior, what, read, core, addr).at_cycle(at))
            }
            Target::Push { .. } => {
                let read = "BlackholeA0/TensixTile/BabyRISCV/PushTensixInstruction.md";
                let what = "a load from an instruction buffer";
                Err(fault(FaultClass::MissingSpecification, what, read, core, addr).at_cycle(at))
            }
            _ => {
                let (value, more) = self.load_when_ready(me, target, at).ok_or(Refuse::Block)?;
                Ok(word(value, timing::LOAD_MAILBOX + more, Access::Volatile))
            }
        }
    }

    /// A load that takes something away or waits: the word, and the cycles that it takes longer
    /// than others; `None` while there is nothing to load.
    fn load_when_ready(&mut self, me: usize, target: Target, at: Cycle) -> Option<(u32, u32)> {
        match target {
            Target::CoprocessorDone(thread) => Some((0, cycles_until(self.drained(thread)?, at))),
            Target::MopDone(thread) => {
                let done = self.coprocessor.threads[thread].front.mop_done();
                (done || self.pc_bufs[thread].is_overridden_busy()).then_some((0, 0))
            }
            Target::PcBufB(i) => {
                let idle = self.drained(i);
                let value = self.pc_bufs[i].drained(idle.is_some())?;
                Some((value, cycles_until(idle.unwrap_or(0), at)))
            }
            Target::PcBufT(i) => {
                let waited = self.pc_bufs[i].is_waited_for();
                let value = self.pc_bufs[i].pop();
                // A value taken makes room for B; the first fruitless try is what B's
                // read waits for.
                if value.is_some() || !waited {
                    self.coprocessor.unblock(at);
                }
                Some((value?, 0))
            }
            Target::Mailbox { other, .. } => {
                let value = self.mailboxes.pop(other, me)?;
                self.coprocessor.unblock(at);
                Some((value, 0))
            }
            _ => None,
        }
    }

    /// From when on nothing of the thread is in flight; `None` while its front end still holds
    /// instructions.
    fn drained(&self, thread: usize) -> Option<Cycle> {
        if self.pc_bufs[thread].is_overridden_busy() {
            return Some(0);
        }
        let cop = &self.coprocessor;
        cop.is_drained(thread).then_some(cop.threads[thread].busy.any)
    }

    /// A core stores the word `value` at `addr` at cycle `at`.
    ///
    /// # Errors
    /// `Block` on a full queue or for instructions in flight; a fault for what is not there, not
    /// built, read-only or not a word.
    pub(crate) fn store(
        &mut self,
        by: impl Into<Issuer>,
        addr: u32,
        value: u32,
        at: Cycle,
    ) -> Result<(), Refuse<Fault>> {
        let by = by.into();
        let core = by.core;
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
                if let Some(offset) = tdma::offset_of(reg, value) {
                    cop.packer.l1_dest_addr_offset = offset;
                    cop.packer.reset_sizes();
                }
                cop.packer.set_register_addresses(self.tdma.pack_reg_addr());
                if reg == map::tdma::COMMAND_ADDR {
                    cop.mover.queued_by(by);
                    cop.schedule_mover(at);
                }
            }
            Target::Mop { thread, word } => cop.mop[thread][word as usize] = value,
            Target::Gpr(i) => cop.gprs[i as usize] = value,
            Target::Config(i) => cop.config.store(i, value).map_err(refused)?,
            Target::Push { thread } if me == 0 => {
                instruction(by, thread, value, at)?;
                full(cop.threads[thread].front.push_behind_mop(value, Origin::behind_mop(by, at), at))?;
                cop.schedule(thread, at + 1);
            }
            Target::Push { thread } => full(self.push(by, thread, value, at)?)?,
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
            // Discarded: see [`Target::only_orders`].
            Target::PcBufT(_) | Target::CoprocessorDone(_) | Target::MopDone(_) => {}
        }
        Ok(())
    }

    /// The semaphore whose post a store of `value` at `addr` by `core` would be, if it would be
    /// lost.
    pub(crate) fn lost_post(&self, core: Processor, addr: u32, value: u32) -> Option<u8> {
        let Ok(Target::Semaphore(i)) = decode(core, addr) else { return None };
        (value & 1 == 0 && self.coprocessor.semaphores[i].loses_post()).then_some(i as u8)
    }

    /// Stores the word `value` at `addr`, if that is a GPR of the Tensix thread whose core `core`
    /// is, and nothing that this core pushed can make it wait. False, and nothing is done:
    /// [`Tensix::store`] is the way.
    #[inline]
    pub(crate) fn quick_store(&mut self, core: Processor, addr: u32, value: u32) -> bool {
        let Some(thread) = thread_of(core) else { return false };
        let offset = addr.wrapping_sub(map::GPR_BASE);
        let cop = &mut self.coprocessor;
        let quick = offset < 4 * GPRS && offset.is_multiple_of(4) && cop.threads[thread].front.is_empty();
        if quick {
            cop.gprs[thread * coprocessor::GPRS + (offset / 4) as usize] = value;
        }
        quick
    }

    /// The same of a word of the MOP configuration of that thread, of the backend configuration, or
    /// of that thread's PC buffer where a store does nothing. Nobody is told.
    #[inline]
    pub(crate) fn quick_configure(&mut self, core: Processor, addr: u32, value: u32) -> bool {
        let Some(thread) = thread_of(core) else { return false };
        if !addr.is_multiple_of(4) {
            return false;
        }
        let cop = &mut self.coprocessor;
        let word = |base| addr.wrapping_sub(base) / 4;
        if target::in_pc_buf(thread, addr.wrapping_sub(map::PC_BUF_BASE)).is_some_and(Target::only_orders) {
            return true;
        }
        if let Some(place) = cop.mop[thread].get_mut(word(map::MOP_CFG_BASE) as usize) {
            *place = value;
            return true;
        }
        cop.threads[thread].front.is_empty() && cop.config.store(word(map::CFG_BASE), value).is_ok()
    }

    /// [`Tensix::load`] of the word at `addr`, if that is a semaphore, or what a core reads to wait
    /// until its thread or its MOP expander is done, and it does not wait.
    #[inline]
    pub(crate) fn quick_load(&mut self, core: Processor, addr: u32, at: Cycle) -> Option<Load> {
        let offset = addr.wrapping_sub(map::PC_BUF_BASE);
        if offset < target::SEMAPHORES_END { self.load_pc_buf(thread_of(core)?, offset, at) } else { None }
    }

    #[inline(never)]
    fn load_pc_buf(&mut self, thread: usize, offset: u32, at: Cycle) -> Option<Load> {
        let target = target::in_pc_buf(thread, offset)?;
        let (value, more, access) = match target {
            Target::Semaphore(i) => (self.coprocessor.semaphores[i].value(), 0, Access::Watched),
            Target::CoprocessorDone(_) | Target::MopDone(_) => {
                let (value, more) = self.load_when_ready(Client::T(thread).index(), target, at)?;
                (value, more, Access::Volatile)
            }
            _ => return None,
        };
        Some(Load { value, latency: timing::LOAD_MAILBOX + more, access })
    }

    /// As [`Tensix::push`] of words that the core pushes in a row, one a cycle from cycle `at` on,
    /// if it has a thread of its own and they are instructions for its FIFO: as many as there is
    /// room for. Returns how many, at least one.
    ///
    /// # Errors
    /// [`NotQuick`]; nothing has been done.
    #[inline(never)]
    pub(crate) fn quick_pushes(
        &mut self,
        by: Issuer,
        words: impl Iterator<Item = u32>,
        at: Cycle,
    ) -> Result<usize, NotQuick> {
        let Some(thread) = thread_of(by.core) else { return Err(NotQuick::Ask) };
        let front = &mut self.coprocessor.threads[thread].front;
        let (mut pushed, mut why) = (0, NotQuick::Ask);
        for word in words {
            let by = Issuer { pc: by.pc.wrapping_add(4 * pushed as u32), ..by };
            match push_to_fifo(front, by, word, at + pushed as Cycle) {
                Ok(()) => pushed += 1,
                Err(error) => {
                    why = error;
                    break;
                }
            }
        }
        if pushed == 0 {
            return Err(why);
        }
        // The others follow the first one.
        self.coprocessor.schedule(thread, at + 1);
        Ok(pushed)
    }

    /// The core of Tensix thread `thread` pushes an instruction at cycle `at`. `false`: no room.
    ///
    /// Only the thread's front end sees it, and not before the next cycle, so the push may come
    /// before the coprocessor has been stepped up to `at`: what looks like room then is room at
    /// `at`, too. What looks full may not be.
    ///
    /// # Errors
    /// A word that is no instruction.
    pub(crate) fn push(
        &mut self,
        by: impl Into<Issuer>,
        thread: usize,
        word: u32,
        at: Cycle,
    ) -> Result<bool, Refuse<Fault>> {
        let by = by.into();
        match push_to_fifo(&mut self.coprocessor.threads[thread].front, by, word, at) {
            Ok(()) => {
                self.coprocessor.schedule(thread, at + 1);
                return Ok(true);
            }
            Err(NotQuick::Full) => return Ok(false),
            Err(NotQuick::Ask | NotQuick::Sync) => {}
        }
        // What is not for the FIFO: a declaration, or no instruction at all.
        let insn = instruction(by, thread, word, at)?;
        let cop = &mut self.coprocessor;
        if cop.threads[thread].tracking.declare(insn)
            && let Some(executed) = &mut cop.executed
        {
            executed.count(insn);
        }
        Ok(true)
    }
}

/// Decodes what a core pushes. A core that runs into data pushes what is no instruction; it is told
/// where.
fn instruction(by: Issuer, thread: usize, word: u32, at: Cycle) -> Result<Insn, Refuse<Fault>> {
    let insn = Insn::decode(word);
    if !matches!(insn, Insn::Undefined(_)) {
        return Ok(insn);
    }
    let what = format!("{word:#010x} pushed to Tensix thread T{thread} is no instruction");
    let read = "WormholeB0/TensixTile/TensixCoprocessor/README.md";
    Err(Refuse::Fault(Fault::new(FaultClass::UndefinedBehavior, what, read).at_cycle(at).at_core(by.core, by.pc)))
}

/// Pushes a word that is an instruction for the FIFO, if that has room.
#[inline]
pub(super) fn push_to_fifo(front: &mut FrontEnd, by: Issuer, word: u32, at: Cycle) -> Result<(), NotQuick> {
    if insn::Resourcedecl::is(word) || unit_of(word).is_none() {
        return Err(NotQuick::Ask);
    }
    if front.push(word, by, at) { Ok(()) } else { Err(NotQuick::Full) }
}

/// The Tensix thread into which `core` pushes by `.ttinsn` or a store to `INSTRN_BUF_BASE` and what
/// follows it; `None`: none of its own.
pub(crate) fn thread_of(core: Processor) -> Option<usize> {
    match Client::of(core) {
        Some(Client::T(thread)) => Some(thread),
        _ => None,
    }
}

fn cycles_until(until: Cycle, at: Cycle) -> u32 {
    // A unit is busy for no longer than the mover, whose jobs are bounded.
    u32::try_from(until.saturating_sub(at)).unwrap_or(0)
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
