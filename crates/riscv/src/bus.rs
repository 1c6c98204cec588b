//! The bus interface of a core: loads, stores, atomics, fences, instruction fetch and the Tensix
//! instruction push.
//!
//! The trait is generic in the core's run loop, so that a bus with a plain array for L1 inlines
//! into it. Responses are classified ([`Access`], [`Effect`]) for one purpose: the core must know
//! which accesses allow it to sleep (see [`crate::PollLoop`]). The bus determines the latencies of
//! memory regions; `BabyRISCV/README.md`, section "Load/Store Unit", lists them.

use std::sync::Arc;

use crate::{CodePage, CsrFile, Cycle, Insn};

/// Width of an access. The core only issues naturally aligned accesses.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Width {
    /// One byte.
    Byte,
    /// Two bytes, two-byte aligned.
    Half,
    /// Four bytes, four-byte aligned.
    Word,
}

impl Width {
    /// The number of bytes.
    #[inline]
    pub const fn bytes(self) -> u32 {
        match self {
            Width::Byte => 1,
            Width::Half => 2,
            Width::Word => 4,
        }
    }

    /// Mask of the low bits of a word that it covers.
    #[inline]
    pub const fn mask(self) -> u32 {
        match self {
            Width::Byte => 0xFF,
            Width::Half => 0xFFFF,
            Width::Word => u32::MAX,
        }
    }
}

/// Who else can change the word that a load returned.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Access {
    /// Only this core can change the word: local RAM through its fast path.
    Private,
    /// Others can change it, and the bus wakes a parked core before they do: L1, stream
    /// registers, semaphores.
    ///
    /// A hit in the L0 cache is one of these too, although it does not see the change at once:
    /// the next iteration of a poll loop may flush the line and read it again by way of a
    /// neighbouring word.
    Watched,
    /// The value changes with time, or reading has a side effect: the core never sleeps on it.
    Volatile,
}

/// Response to a load or an atomic.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Load {
    /// The loaded bits, zero-extended; the core sign-extends.
    pub value: u32,
    /// An instruction that needs the value can enter EX1 this many cycles after the load did (2
    /// for local RAM).
    pub latency: u32,
    /// Who else can change the word. Ignored for atomics.
    pub access: Access,
}

/// Response to a store.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Store {
    /// Extra cycles for which the core is held in EX1, because the store queue is full.
    pub hold: u32,
    /// Effect of the store.
    pub effect: Effect,
}

/// Effect of a store, as far as the core must know.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[repr(u32)] // as wide as its neighbour in `Store`: the answer to a store stays in registers
pub enum Effect {
    /// The store went to private memory of this core and changed nothing there.
    Silent,
    /// The store went to shared memory that already held the value. While nobody else writes there,
    /// repeating it has no side effect.
    Same,
    /// Something changed, or the store is visible to others.
    Visible,
    /// The store changed code that [`Bus::code`] has returned: the core drops all its pages.
    Code,
}

/// Why the bus did not perform an access. The instruction has had no side effect on core or bus.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Refuse<F> {
    /// Not yet: another agent must run first. The instruction is executed again;
    /// [`crate::Core::run`] returns [`crate::Exit::Sync`] with `core.now` at the cycle
    /// of the access.
    Sync,
    /// Blocked, for example on an empty mailbox: the core sleeps until [`crate::Core::wake`] and
    /// tries again.
    Block,
    /// A fault of the bus.
    Fault(F),
}

/// Why an access cannot be done within the run loop.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[repr(u32)] // as wide as the value in whose place it is returned, which is not taken apart then
pub enum NotQuick {
    /// The core has to call [`Bus::load`] or [`Bus::store`].
    Ask,
    /// Those would return [`Refuse::Sync`].
    Sync,
    /// [`Bus::ttinsn`], or the store to [`crate::INSTRN_BUF_BASE`], would return [`Refuse::Block`].
    Full,
}

/// The nine read-modify-write operations of Zaamo.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Amo {
    /// Memory becomes the operand.
    Swap,
    /// Memory plus operand, wrapping.
    Add,
    /// Bitwise exclusive or.
    Xor,
    /// Bitwise and.
    And,
    /// Bitwise or.
    Or,
    /// Signed minimum.
    Min,
    /// Signed maximum.
    Max,
    /// Unsigned minimum.
    Minu,
    /// Unsigned maximum.
    Maxu,
}

impl Amo {
    /// The new value of the word.
    #[inline]
    pub const fn apply(self, old: u32, operand: u32) -> u32 {
        match self {
            Amo::Swap => operand,
            Amo::Add => old.wrapping_add(operand),
            Amo::Xor => old ^ operand,
            Amo::And => old & operand,
            Amo::Or => old | operand,
            Amo::Min => {
                if old.cast_signed() < operand.cast_signed() {
                    old
                } else {
                    operand
                }
            }
            Amo::Max => {
                if old.cast_signed() > operand.cast_signed() {
                    old
                } else {
                    operand
                }
            }
            Amo::Minu => {
                if old < operand {
                    old
                } else {
                    operand
                }
            }
            Amo::Maxu => {
                if old > operand {
                    old
                } else {
                    operand
                }
            }
        }
    }
}

/// Everything outside the core.
///
/// `at` is the cycle at which the instruction enters EX1. Every access happens at `at < limit` of
/// the current [`crate::Core::run`], and `at` never decreases, except that a parked core which is
/// woken starts again at the head of its last poll iteration (see [`crate::PollLoop`]).
pub trait Bus {
    /// A fault of an access.
    type Fault;

    /// Whether [`Bus::issue`] is called.
    const COUNTS: bool = false;

    /// An instruction enters the pipeline at cycle `at`, before it waits for its operands; the core
    /// has executed `executed` others. One that the bus refuses comes again with the same number.
    #[inline(always)]
    fn issue(&mut self, at: Cycle, pc: u32, executed: u64) {
        let _ = (at, pc, executed);
    }

    /// The decoded page of [`crate::CODE_PAGE_BYTES`] that holds `pc`, the next instruction. The
    /// core caches a few pages until [`Bus::take_code_changed`], so that calls are rare.
    fn code(&mut self, at: Cycle, pc: u32) -> Result<Arc<CodePage>, Self::Fault>;

    /// Loads `width` at `addr`.
    fn load(&mut self, at: Cycle, pc: u32, addr: u32, width: Width) -> Result<Load, Refuse<Self::Fault>>;

    /// Stores the low `width` of `value` at `addr`. Higher bits of `value` are unspecified.
    fn store(&mut self, at: Cycle, pc: u32, addr: u32, width: Width, value: u32) -> Result<Store, Refuse<Self::Fault>>;

    /// [`Bus::load`] for fast accesses. It is inlined into the run loop and should call nothing.
    ///
    /// # Errors
    /// [`NotQuick`], without a side effect.
    #[inline(always)]
    fn quick_load(&mut self, at: Cycle, pc: u32, addr: u32, width: Width) -> Result<Load, NotQuick> {
        let _ = (at, pc, addr, width);
        Err(NotQuick::Ask)
    }

    /// [`Bus::store`] for fast accesses, as [`Bus::quick_load`]. A store that changes code
    /// ([`Effect::Code`]) is never quick.
    ///
    /// # Errors
    /// [`NotQuick`], without a side effect.
    #[inline(always)]
    fn quick_store(&mut self, at: Cycle, pc: u32, addr: u32, width: Width, value: u32) -> Result<Store, NotQuick> {
        let _ = (at, pc, addr, width, value);
        Err(NotQuick::Ask)
    }

    /// Whether [`Bus::quick_store`] tells the effect of this store as [`Bus::store`] would: of one
    /// that is [`Effect::Same`] it may say that it is [`Effect::Visible`].
    #[inline(always)]
    fn knows_effect(&self, addr: u32, width: Width, value: u32) -> bool {
        let _ = (addr, width, value);
        false
    }

    /// A Zaamo operation on the word at `addr`; returns the old word. Flushes the L0 cache.
    fn amo(&mut self, at: Cycle, pc: u32, op: Amo, addr: u32, value: u32) -> Result<Load, Refuse<Self::Fault>>;

    /// `fence` and, if `code`, `fence.i`: flushes the L0 cache and returns the cycles until the
    /// store queue has drained.
    fn fence(&mut self, at: Cycle, pc: u32, code: bool) -> u32;

    /// [`Bus::ttinsn`] of a core whose own FIFO has room, which holds it for no cycle: of the first
    /// of `insns`, at `pc`, and of those that follow it as long as they are pushes, too, there is
    /// room and it is not cycle `limit`. Returns how many were pushed, one a cycle from `at` on.
    ///
    /// # Errors
    /// As [`Bus::quick_load`]; nothing has been done.
    #[inline(always)]
    fn quick_ttinsns(&mut self, _at: Cycle, _limit: Cycle, _pc: u32, _insns: &[Insn]) -> Result<usize, NotQuick> {
        Err(NotQuick::Ask)
    }

    /// `.ttinsn`: pushes one Tensix instruction word (already rotated back); returns the cycles for
    /// which the core is held. [`Refuse::Block`] when the FIFO is full.
    fn ttinsn(&mut self, at: Cycle, pc: u32, word: u32) -> Result<u32, Refuse<Self::Fault>>;

    /// Returns true once after a write changed code that [`Bus::code`] has returned: the core drops
    /// all its pages. It is called after each atomic and at the start of each [`crate::Core::run`],
    /// so that writes of other agents are included. A store reports it by [`Effect::Code`] instead.
    fn take_code_changed(&mut self) -> bool;

    /// The value and the latency of a load of the word at `addr` at cycle `at`, if it is a register
    /// of which that is known without the load: it would be quick, [`Access::Watched`], and without
    /// any side effect on the core, its caches and observers. The bus may do what is due by `at`,
    /// as for the load, which comes at that cycle in any case.
    #[inline]
    fn steady_word(&mut self, at: Cycle, addr: u32) -> Option<(u32, u32)> {
        let _ = (at, addr);
        None
    }

    /// A token of the L0 cache's tags: if two tokens are equal and there was no visible store in
    /// between, the same loads hit and miss.
    fn cache_token(&self) -> [u32; 4];

    /// Cycles until the last store of this core has drained; 0 if none is in flight.
    fn draining(&self, at: Cycle) -> Cycle;

    /// Reads a CSR that is not in [`crate::CsrFile`] (`tt_cfg_*status*` on a T core).
    /// `None`: unknown.
    ///
    /// # Errors
    /// As for a load.
    fn csr_read(&mut self, at: Cycle, csr: u16) -> Result<Option<u32>, Refuse<Self::Fault>> {
        let _ = (at, csr);
        Ok(None)
    }

    /// Writes a CSR that is not in [`crate::CsrFile`]. `false`: unknown.
    fn csr_write(&mut self, at: Cycle, csr: u16, value: u32) -> bool {
        let _ = (at, csr, value);
        false
    }

    /// Notifies the bus that a CSR of the core was written, for `cfg0` (L0 cache, store queue).
    fn csr_changed(&mut self, at: Cycle, csr: &CsrFile) {
        let _ = (at, csr);
    }
}
