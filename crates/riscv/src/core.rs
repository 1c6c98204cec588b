//! The state of one core and the exits of its run loop. The run loop is in `exec.rs`, the detection
//! of poll loops in `poll.rs`.

use crate::pages::Pages;
use crate::poll::{PollLoop, Polls};
use crate::{CODE_PAGE_BYTES, CodePage, CsrFile, Cycle, Width};
use std::sync::Arc;

/// The five cores of a tile. The kind decides only which CSRs are scratch (`BabyRISCV/CSRs.md`).
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum HartKind {
    /// RISCV B
    B,
    /// RISCV NC
    Nc,
    /// RISCV T0
    T0,
    /// RISCV T1
    T1,
    /// RISCV T2
    T2,
}

impl HartKind {
    /// Whether `tt_cfg_sstatus*` are scratch registers of the core.
    pub(crate) fn owns_stream_status(self) -> bool {
        matches!(self, HartKind::B | HartKind::Nc)
    }
}

/// Why [`Core::run`] returned.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Exit<F> {
    /// `now` has reached the limit, or the next access to the bus would happen at or after it.
    Limit,
    /// The bus asked for another agent to run first; `now` is the cycle of the access, which has
    /// not happened.
    Sync,
    /// The bus blocked the access at this address; [`Core::wake`] to try again.
    Blocked {
        /// The address of the blocked access; `INSTRN_BUF_BASE` for `.ttinsn`.
        addr: u32,
    },
    /// The core is parked in a poll loop; see [`Core::parked`].
    Parked,
    /// A fault. `pc` is at the instruction; running again repeats the fault.
    Fault(CoreFault<F>),
}

/// A fault of the program on this core.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CoreFault<F> {
    /// The word is not an instruction of this core.
    #[error("illegal instruction {word:#010x} at pc {pc:#x}")]
    Illegal {
        /// Address of the instruction.
        pc: u32,
        /// The instruction word.
        word: u32,
    },
    /// A taken jump to an address that is not a multiple of four.
    #[error("jump at pc {pc:#x} to the misaligned address {target:#x}")]
    MisalignedTarget {
        /// Address of the jump.
        pc: u32,
        /// Where it goes.
        target: u32,
    },
    /// An access that is not naturally aligned.
    #[error("misaligned {}-byte access to {addr:#x} at pc {pc:#x}", width.bytes())]
    MisalignedAccess {
        /// Address of the instruction.
        pc: u32,
        /// The accessed address.
        addr: u32,
        /// How much it accesses.
        width: Width,
    },
    /// A CSR that neither the core nor its bus has.
    #[error("unknown CSR {csr:#x} at pc {pc:#x}")]
    UnknownCsr {
        /// Address of the instruction.
        pc: u32,
        /// The CSR's number.
        csr: u16,
    },
    /// `ecall`
    #[error("ecall at pc {pc:#x}")]
    Ecall {
        /// Address of the instruction.
        pc: u32,
    },
    /// `ebreak`
    #[error("ebreak at pc {pc:#x}")]
    Ebreak {
        /// Address of the instruction.
        pc: u32,
    },
    /// The bus refused an instruction fetch.
    #[error("instruction fetch at pc {pc:#x}: {fault}")]
    Fetch {
        /// Address of the instruction.
        pc: u32,
        /// What the bus said.
        fault: F,
    },
    /// The bus refused a data access.
    #[error("at pc {pc:#x}: {fault}")]
    Bus {
        /// Address of the instruction.
        pc: u32,
        /// What the bus said.
        fault: F,
    },
}

/// A snapshot of a core for [`Core::restore`]: everything that determines its further execution,
/// apart from its bus.
#[derive(Clone, Debug)]
pub struct CoreState {
    now: Cycle,
    pc: u32,
    regs: [u32; 32],
    retired: u64,
    skipped: u64,
    csr: CsrFile,
    outstanding: Cycle,
    ready: [Cycle; 32],
}

/// One baby RISC-V core.
///
/// What every turn needs lies in few lines of the processor's cache: when many cores are simulated,
/// each turn of one finds its state outside the nearest of them. These lines are the third and the
/// fourth, from the last word of `csr` to the first ones of `polls`, those of the registers, and
/// those of `ready` that a load needs.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub struct Core {
    /// Instructions of poll iterations that were skipped while parked; `retired + skipped` does not
    /// depend on parking.
    pub skipped: u64,
    /// The core's own CSRs.
    pub csr: CsrFile,
    /// The cycle at which the next instruction enters EX1 if its operands are ready.
    pub now: Cycle,
    /// Instructions executed.
    pub retired: u64,
    /// The next instruction.
    pub pc: u32,
    /// The cycle from which on no load, atomic or multiply is outstanding: the latest
    /// completion so far.
    pub(crate) outstanding: Cycle,
    pub(crate) pages: Pages,
    pub(crate) polls: Polls,
    /// x0..x31. `regs[0]` must stay zero.
    pub regs: [u32; 32],
    /// For each register, the cycle from which an instruction that reads it can enter EX1.
    pub(crate) ready: [Cycle; 32],
}

// As it is said above.
const _: () = {
    assert!(std::mem::offset_of!(Core, csr) + size_of::<CsrFile>() == 160);
    assert!(std::mem::offset_of!(Core, pages) == 192);
    assert!(std::mem::offset_of!(Core, regs).is_multiple_of(64));
};

impl Core {
    /// A core with zeroed registers, `pc` 0 at cycle 0.
    pub fn new(hart: HartKind) -> Core {
        Core {
            now: 0,
            pc: 0,
            regs: [0; 32],
            retired: 0,
            skipped: 0,
            csr: CsrFile::new(hart),
            outstanding: 0,
            ready: [0; 32],
            pages: Pages::default(),
            polls: Polls::default(),
        }
    }

    /// Takes the core out of reset at `pc` and cycle `now`: registers zero, CSRs at their reset
    /// values, no decoded code. The counters `retired` and `skipped` run on; `mcycle` and
    /// `minstret` start from zero.
    pub fn reset(&mut self, pc: u32, now: Cycle) {
        self.now = now;
        self.pc = pc;
        self.regs = [0; 32];
        self.csr.reset(now, self.retired + self.skipped);
        (self.outstanding, self.ready) = (0, [0; 32]);
        self.pages.clear();
        self.polls.forget();
    }

    /// Takes a snapshot. The core must not be parked.
    pub fn save(&self) -> CoreState {
        CoreState {
            now: self.now,
            pc: self.pc,
            regs: self.regs,
            retired: self.retired,
            skipped: self.skipped,
            csr: self.csr.clone(),
            outstanding: self.outstanding,
            ready: self.ready,
        }
    }

    /// Rolls back to `state`; the owner rolls back memory and devices. The core is not parked
    /// afterwards and has forgotten its poll loops, so that the sum of `retired` and `skipped` is
    /// the same the second time, but not its parts.
    pub fn restore(&mut self, state: &CoreState) {
        self.now = state.now;
        self.pc = state.pc;
        self.regs = state.regs;
        self.retired = state.retired;
        self.skipped = state.skipped;
        self.csr.clone_from(&state.csr);
        (self.outstanding, self.ready) = (state.outstanding, state.ready);
        self.polls.forget();
    }

    /// What the core sleeps on after [`Exit::Parked`], until [`Core::wake`].
    pub fn parked(&self) -> Option<&PollLoop> {
        self.polls.parked()
    }

    /// Switches parking on (the default) or off. Off, a polling core executes every iteration;
    /// results are the same.
    pub fn set_parking(&mut self, on: bool) {
        self.polls.set_enabled(on);
    }

    /// Does not park the core at the end of the iteration that it is in, of whatever loop: somebody
    /// has stopped it there and wants to stop it in the next one, too.
    pub fn keep_awake(&mut self) {
        self.polls.note_effect();
    }

    /// Wakes a parked or blocked core at cycle `at`.
    ///
    /// Parked: skips the whole iterations before `at`, so that `now` is the start of the iteration
    /// that contains `at`, and the core continues from the loop head exactly as if it had polled
    /// all the time. See [`PollLoop`] for the order of waking and writing. Blocked: `now` becomes
    /// `at` unless it is later. No effect on a running core whose `now` is not before `at`. Returns
    /// the cycles that a parked core has skipped.
    pub fn wake(&mut self, at: Cycle) -> Cycle {
        let Some(poll) = self.polls.unpark() else {
            self.polls.note_effect();
            self.now = self.now.max(at);
            return 0;
        };
        let &PollLoop { start, period, insns_per_iteration, .. } = poll;
        let iterations = at.saturating_sub(start) / period;
        let cycles = iterations * period;
        self.now = start;
        self.skipped += iterations * insns_per_iteration;
        self.repeat(cycles);
        self.polls.resume(self.now);
        cycles
    }

    /// The page of the next instruction, if it is the one of the last.
    pub fn current_page(&self) -> Option<&Arc<CodePage>> {
        self.pages.current(self.pc & !(CODE_PAGE_BYTES - 1))
    }

    /// For a core blocked in a push: it has made this one and others behind it, `count` in all, and
    /// comes to the next at cycle `at`.
    pub fn has_pushed(&mut self, count: usize, at: Cycle) {
        self.polls.note_effect();
        self.pc = self.pc.wrapping_add(4 * count as u32);
        self.retired += count as u64;
        self.now = at;
    }

    /// Holds a running core for `cycles` between two instructions, as something outside it may.
    pub fn hold(&mut self, cycles: Cycle) {
        self.polls.note_effect();
        self.now += cycles;
    }

    /// Advances by whole iterations of the poll loop at whose head the core is.
    fn repeat(&mut self, cycles: Cycle) {
        if self.outstanding > self.now {
            for ready in self.ready.iter_mut().chain([&mut self.outstanding]) {
                if *ready > self.now {
                    *ready += cycles;
                }
            }
        }
        self.now += cycles;
    }

    /// [`Core::wake`] of a parked core by an agent that is about to change one of its watched
    /// words. This only saves work: the core does not examine the iteration in which it wakes for
    /// parking again.
    pub fn wake_for_change(&mut self, at: Cycle) -> Cycle {
        let skipped = self.wake(at);
        self.polls.expect_change();
        skipped
    }

    /// After [`Core::wake_for_change`] at `at`: an iteration of few instructions that has loaded
    /// its words before `at` is as all others were, and is executed in one step.
    ///
    /// Only for a loop that loads nothing through a cache, whose lines would be as old as the last
    /// iteration that was executed one by one, and if nobody looks at the core at `at`.
    pub fn finish_iteration(&mut self, at: Cycle) {
        if let Some((period, insns)) = self.polls.has_loaded(at.saturating_sub(self.now)) {
            self.repeat(period);
            self.retired += insns;
            self.polls.count_visit();
        }
    }
}
