//! What the scheduler and the NoC see of a tile.

use crate::Fault;
use crate::noc::{Outbox, Packet};
use tilework_riscv::Cycle;

/// "Nothing will happen by itself."
pub const NEVER: Cycle = Cycle::MAX;

/// A tile (or a group of tiles with one memory) that runs by itself between packets.
pub trait Node: Send {
    /// The earliest cycle at which something happens here, or [`NEVER`].
    fn next(&self) -> Cycle;
    /// For a node that computes: the cycle up to which it has done something. The scheduler lets such a node run far ahead when it is alone,
    /// and must know where it came to rest. Other nodes only answer to packets; their time goes window by window.
    fn rested(&self) -> Option<Cycle> {
        None
    }
    /// The window up to `end` is done; may go on alone, not to cycle `limit` or past it, if it can come back when a packet arrives earlier.
    fn run_ahead(&mut self, end: Cycle, limit: Cycle) {
        let _ = (end, limit);
    }
    /// Accepts a packet that arrives (its last flit) at cycle `at`. Called between windows only, `at` is never in the node's past, and
    /// packets of one cycle are handled in the order of the calls.
    fn deliver(&mut self, at: Cycle, packet: Packet);
    /// Does everything that happens before cycle `until`, and puts what leaves into `out`.
    ///
    /// # Errors
    /// A fault of the program; the chip stops.
    fn run(&mut self, until: Cycle, out: &mut Outbox) -> Result<(), Fault>;
}

/// The address space behind an NIU, as packets access it.
pub trait Memory {
    /// Reads `out.len()` bytes at `addr` as they are at cycle `at`.
    ///
    /// # Errors
    /// An address that does not exist, or an access that its registers do not allow.
    fn read(&mut self, at: Cycle, addr: u64, out: &mut [u8]) -> Result<(), Fault>;
    /// Writes `data` at `addr`.
    ///
    /// # Errors
    /// As [`Memory::read`].
    fn write(&mut self, at: Cycle, addr: u64, data: &[u8]) -> Result<(), Fault>;
    /// The `len` bytes at `addr`, when they lie together in memory that reading does not change: they are copied once less then.
    fn span(&self, addr: u64, len: usize) -> Option<&[u8]> {
        let _ = (addr, len);
        None
    }
    /// True when `addr` is memory on which atomics work (L1).
    fn is_l1(&self, addr: u64) -> bool;
}
