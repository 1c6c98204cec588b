//! Nodes: what the scheduler and the NoC see of a tile.

use crate::Fault;
use crate::noc::{Data, Outbox, Outgoing, Packet};
use tilework_riscv::Cycle;

/// The cycle of an event that will not happen by itself.
pub(crate) const NEVER: Cycle = Cycle::MAX;

/// What a node does next, if no packet comes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Outlook {
    /// The earliest cycle at which something happens, or [`NEVER`].
    pub(crate) next: Cycle,
    /// A cycle before which nothing leaves: not earlier than the next one.
    pub(crate) sends: Cycle,
}

impl Outlook {
    /// Nothing happens.
    pub(crate) const ASLEEP: Self = Self { next: NEVER, sends: NEVER };
}

/// A tile (or a group of tiles with one memory) that runs by itself between packets.
pub(crate) trait Node: Send {
    /// The earliest cycle at which something happens here, or [`NEVER`].
    fn next(&self) -> Cycle;
    /// What happens here next, and when something may leave.
    fn outlook(&self) -> Outlook {
        let next = self.next();
        Outlook { next, sends: next }
    }
    /// Whether cores run here. The scheduler lets such a node run until another can affect it. The
    /// others only answer packets and advance window by window.
    fn computes(&self) -> bool {
        false
    }
    /// The cycle of the last event of a node that computes and now sleeps.
    fn rested(&self) -> Cycle {
        0
    }
    /// Whether the host can see at once what happens here. Such a node does not run ahead of it.
    fn faces_host(&self) -> bool {
        false
    }
    /// Executes speculatively past the window's end `end`, but not up to `limit`, if it can roll
    /// back when a packet arrives earlier.
    fn speculate(&mut self, end: Cycle, limit: Cycle) {
        let _ = (end, limit);
    }
    /// Accepts a packet whose last flit arrives at cycle `at`. Called between windows only; packets
    /// of one cycle are handled in the order of the calls. `at` is never in the node's past,
    /// speculation apart.
    fn deliver(&mut self, at: Cycle, packet: impl Into<Box<Packet>>);
    /// Handles every event before cycle `until`, and puts departures into `out`.
    ///
    /// # Errors
    /// A fault of the program; the chip stops.
    fn run(&mut self, until: Cycle, out: &mut Outbox) -> Result<(), Fault>;
}

/// The address space behind an NIU, as packets access it.
pub(crate) trait Memory {
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
    /// The `len` bytes at `addr`, if they are contiguous in memory without read side effects; saves
    /// the caller a copy.
    fn span(&self, addr: u64, len: usize) -> Option<&[u8]> {
        let _ = (addr, len);
        None
    }
    /// The same bytes as they are now, without a copy; `None` where the memory has no pages that a
    /// packet can hold on to.
    fn share(&mut self, addr: u64, len: usize) -> Option<Data> {
        let _ = (addr, len);
        None
    }
    /// A write whose source lies in this memory begins to leave by the NIU of NoC `noc`: until its
    /// end whoever changes the source changes the write.
    fn leaves(&mut self, noc: u8, outgoing: Outgoing) {
        let _ = (noc, outgoing);
    }
    /// True when `addr` is memory on which atomics work (L1).
    fn is_l1(&self, addr: u64) -> bool;
}
