//! Wake classes: the kinds of registers that a parked core can sleep on, and what a write touches.
//!
//! L1 and overlay streams are watched more closely (`watches.rs`); of other registers only the
//! class, because few cores sleep on them.

use tilework_abi::address_map::Region;
use tilework_abi::noc;
use tilework_abi::tensix as map;

/// A set of classes.
pub(super) type Set = u16;
/// NIU 0 and, one bit up, NIU 1, apart from [`NIU_SERVED`].
pub(super) const NIU: Set = 2;
/// Mailboxes, GPRs, configuration and the other registers of the coprocessor.
pub(super) const TENSIX: Set = 8;
/// Tile control and debug.
const DEBUG: Set = 16;
/// Local RAMs, seen from outside.
const LOCAL: Set = 32;
/// Tensix semaphores and PC buffers, which change more often than the coprocessor's other
/// registers.
pub(super) const SEMAPHORE: Set = 64;
/// The registers of both NIUs that their own tile changes.
pub(super) const ANY_NIU: Set = NIU | NIU << 1;
/// The counters of NIU 0 and, one bit up, NIU 1 that requests of other tiles change: a core that
/// waits for an answer does not wake for them.
pub(super) const NIU_SERVED: Set = 128;

/// The first of the counters that requests of other tiles change (Counters.md), from the NIU's
/// base.
const SERVED: u32 = noc::COUNTERS + 4 * noc::counter::SLV_ATOMIC_RESP_SENT as u32;
const SOFT_RESET: u32 = map::SOFT_RESET_0 - map::DEBUG_BASE;

/// The classes of a region outside L1.
pub(super) const fn classes(region: Region) -> Set {
    match region {
        // A reset empties mailboxes and clears configuration.
        Region::Debug { offset: SOFT_RESET } => DEBUG | TENSIX,
        Region::Debug { .. } => DEBUG,
        Region::LocalOf { .. } => LOCAL,
        Region::Niu { noc, offset: SERVED..noc::COUNTERS_END } => NIU_SERVED << noc,
        Region::Niu { noc, .. } => NIU << noc,
        Region::PcBuf { .. } => SEMAPHORE,
        Region::Tdma { .. }
        | Region::Mop { .. }
        | Region::Dst { .. }
        | Region::Gpr { .. }
        | Region::Mailbox { .. }
        | Region::Config { .. } => TENSIX,
        // Instruction buffers are write-only, and local RAM is private: nobody sleeps on them.
        Region::InstructionBuffer { .. } | Region::Local { .. } | Region::L1 { .. } | Region::Unmapped => 0,
        // Watched one by one.
        Region::Stream { .. } => 0,
    }
}
