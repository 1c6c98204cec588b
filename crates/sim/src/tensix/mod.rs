//! The Tensix coprocessor, and what the cores of a tile see of it and of each other.
//!
//! An instruction that the table marks as not built, or a mode of one that has no meaning here, is
//! a fault that names it when it reaches its unit.
//!
//! What of it its tile sees, and what it sees of its tile, is in [`border`].

mod attempt;
mod awaits;
#[cfg(test)]
mod bench;
mod border;
mod config;
mod coprocessor;
mod counters;
mod coverage;
mod debug;
mod decoded;
mod dst;
mod expand;
mod fifo;
mod frontend;
mod issue;
mod mailbox;
mod matrix;
mod mover;
mod number;
mod origin;
mod pack;
mod pcbuf;
mod random;
mod reset;
mod scalar;
#[cfg(test)]
mod scalar_tests;
mod show;
mod src;
mod status;
mod step_queue;
mod steps;
mod supply;
mod sync;
mod tdma;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod thread_tests;
mod ttsync;
mod unpack;
mod vector;
mod wait;

#[cfg(doc)]
use crate::NEVER;
use crate::{Bugs, Cycle};
pub(crate) use awaits::{Awaits, Changed};
use border::Client;
pub(crate) use border::{Hold, Outside, thread_of};
use coprocessor::Coprocessor;
use mailbox::Mailboxes;
pub(crate) use origin::Issuer;
pub use origin::Origin;
use pcbuf::PcBuf;
pub(crate) use show::PARTS;
use std::collections::BTreeMap;
pub(crate) use supply::Row;
use tdma::Tdma;
use tilework_abi::address_map::MOP_WORDS;
use tilework_abi::tensix::Processor;
use tilework_abi::tensix::insn::Mode;

/// Words of one thread's general-purpose registers.
const GPRS: u32 = coprocessor::GPRS as u32;

// The map leaves as much room for the MOP configuration as there is.
const _: () = assert!(MOP_WORDS as usize == expand::WORDS);

/// The shared part of a tile that belongs to the coprocessor.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tensix {
    mailboxes: Mailboxes,
    pc_bufs: [PcBuf; 3],
    tdma: Tdma,
    coprocessor: Coprocessor,
}

impl Tensix {
    /// Which documented bugs the coprocessor has; all unless this is called.
    pub(crate) fn set_bugs(&mut self, bugs: Bugs) {
        self.coprocessor.bugs = bugs;
        self.coprocessor.vector.set_bugs(bugs);
        self.coprocessor.mover.set_bugs(bugs);
        self.coprocessor.threads.iter_mut().for_each(|thread| thread.front.set_bugs(bugs));
    }

    /// The next cycle in which the coprocessor does something; [`NEVER`]: not by itself.
    #[inline]
    pub(crate) fn next(&self) -> Cycle {
        self.coprocessor.next()
    }

    /// The cycle of the coprocessor's last step.
    pub(crate) fn last_step(&self) -> Cycle {
        self.coprocessor.last()
    }

    /// Instructions that have passed the wait gates.
    pub(crate) fn instructions(&self) -> u64 {
        self.coprocessor.passed
    }

    /// From now on what the expanders execute themselves is told to observers.
    pub(crate) fn tell_expanders(&mut self) {
        self.coprocessor.tell_expanders();
    }

    /// From now on counts what it executes.
    pub(crate) fn count_modes(&mut self) {
        self.coprocessor.count_modes();
    }

    /// How often it executed which mode, if it counts.
    pub(crate) fn counted_modes(&self) -> Option<&BTreeMap<Mode, u64>> {
        Some(self.coprocessor.executed.as_ref()?.counts())
    }

    /// Does what is due before `end`, until something has a side effect outside the coprocessor:
    /// [`Tensix::has_changed`], [`Outside::has_side_effects`]. All cores have come to `end`.
    ///
    /// # Errors
    /// [`Hold`]; the step that was due then has changed nothing.
    pub(crate) fn run(&mut self, end: Cycle, outside: &mut impl Outside) -> Result<(), Hold> {
        self.coprocessor.run(end, outside)
    }

    /// Something for which [`Outside::sleep_on`] was called changes at cycle `at`.
    pub(crate) fn wake(&mut self, at: Cycle) {
        self.coprocessor.wake(at);
    }

    /// A core is blocked and waits for `what`, until [`Tensix::take_changed`].
    pub(crate) fn core_blocks(&mut self, what: Awaits) {
        self.coprocessor.awaited = self.coprocessor.awaited.with(what);
    }

    /// What the core of thread `thread` pushes next, while it waits for room; nothing when it does
    /// not wait any more.
    #[inline]
    pub(crate) fn set_row(&mut self, thread: usize, row: Option<Row>) {
        self.coprocessor.threads[thread].row = row;
    }

    /// True, once, when pushes of rows have been made: [`Tensix::take_made`].
    #[inline]
    pub(crate) fn take_has_pushed(&mut self) -> bool {
        std::mem::take(&mut self.coprocessor.has_pushed)
    }

    /// How many pushes have been made for the core of thread `thread`, once, and when it comes to
    /// the next one.
    pub(crate) fn take_made(&mut self, thread: usize) -> Option<(usize, Cycle)> {
        self.coprocessor.take_made(thread)
    }

    /// What changed, once, for which a blocked core may be waiting. Those that do try again, and
    /// the others are still blocked ([`Tensix::core_blocks`]).
    pub(crate) fn take_changed(&mut self) -> Option<Changed> {
        let changed = self.coprocessor.changed.take()?;
        self.coprocessor.awaited = Awaits::NOTHING;
        Some(changed)
    }

    /// True until [`Tensix::take_changed`] when something changed for which a blocked core
    /// may be waiting.
    #[inline]
    pub(crate) fn has_changed(&self) -> bool {
        self.coprocessor.changed.is_some()
    }

    /// The threads that stand at their wait gates, what for and with whose instruction, if `core`
    /// may be waiting for them.
    pub(crate) fn explain(&self, core: Processor) -> Vec<(String, Origin)> {
        let threads = match Client::of(core) {
            None => return Vec::new(),
            Some(Client::B) => 0..coprocessor::THREADS,
            Some(Client::T(thread)) => thread..thread + 1,
        };
        threads.filter_map(|thread| self.coprocessor.explain(thread)).collect()
    }

    /// `core` was reset: it does not wait for anything any more, its mailboxes' contents are lost,
    /// and what it pushed stays only behind the MOP expander (BlackholeA0/TensixTile/SoftReset.md,
    /// "RISCV soft reset").
    pub(crate) fn reset_core(&mut self, core: Processor, at: Cycle) {
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
    pub(crate) fn release_core(&mut self, core: Processor, at: Cycle) {
        if let Some(Client::T(thread)) = Client::of(core) {
            self.pc_bufs[thread].discard();
            self.coprocessor.unblock(at);
        }
    }

    /// The soft reset register was written: its bits for the coprocessor's units
    /// (BlackholeA0/TensixTile/SoftReset.md).
    pub(crate) fn soft_reset(&mut self, bits: u32, at: Cycle) {
        let entered = self.coprocessor.soft_reset(bits, at);
        if entered & reset::TDMA != 0 {
            self.tdma.clear_params();
        }
    }

    /// `RISCV_DEBUG_REG_TRISC_PC_BUF_OVERRIDE` was written: ten bits for each PC buffer
    /// (BabyRISCV/PCBufs.md).
    pub(crate) fn set_pc_buf_override(&mut self, value: u32, at: Cycle) {
        for (buf, shift) in self.pc_bufs.iter_mut().zip([0, 10, 20]) {
            buf.configure(value >> shift);
        }
        self.coprocessor.unblock(at);
    }
}
