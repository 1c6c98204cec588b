//! What holds of the command queue at every moment, looked at in debug builds after every call that
//! uses it: credits are neither lost nor made, pointers stay in their rings, and what was sent is
//! executed once. Looking takes no time of the chip, so that debug and release builds have the same
//! cycles. A chip that cannot be looked into is not checked, nor are the queue kernels of others.
//!
//! Counts on two tiles are compared while packets are on their way: each is behind what its tile
//! has sent, so that the differences are bounded but not exact until the queue is idle.

use super::Device;
use crate::RuntimeError;
use crate::queue::{CommandQueue, Waited};
use tilework_abi::addr::L1Addr;
use tilework_abi::board::Board;
use tilework_abi::cq::layout::prefetch_core::{
    PREFETCH_Q, PREFETCH_Q_ENTRY_SIZE, PREFETCH_Q_PCIE_RD_PTR, PREFETCH_Q_RD_PTR, SEM_DISPATCH_PAGES,
    SEM_DISPATCH_S_PAGES,
};
use tilework_abi::cq::layout::{PageRing, SEMAPHORE_OFFSET, SemaphoreId, dispatch_core, host};
use tilework_abi::cq::status::{Kernel, word};
use tilework_abi::cq::tiles::QueueTiles;
use tilework_abi::noc::NocXy;
use tilework_driver::{HostLink, Inspect};

/// What does not hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
enum Broken {
    /// More pages came than the ring has and were not given back, or more were given
    /// back than came.
    #[error("credits: {filled} pages came to the {reader} and {given_back} were given back, in a ring of {pages}")]
    Credits { reader: &'static str, filled: u32, given_back: u32, pages: u32 },
    /// The prefetcher's place in its queue.
    #[error("ring pointers: the prefetcher reads entry {found:#x}, the queue is {:#x} to {:#x}", .from.get(), .to.get())]
    Entry { found: u32, from: L1Addr, to: L1Addr },
    /// Its place in the issue region.
    #[error("ring pointers: the prefetcher reads records at {found:#x}, the issue region is {from:#x} to {to:#x}")]
    Record { found: u32, from: u32, to: u32 },
    /// An entry in an idle queue.
    #[error("nothing lost: entry {index} of the prefetch queue is {found:#x} though all is done")]
    Left { index: u32, found: u16 },
    /// Completion pages that nobody takes.
    #[error("nothing lost: the dispatcher's completion pointer is {written:#x}, the host has read to {read:#x}")]
    Completion { written: u32, read: u32 },
    /// A command that was not executed, or twice.
    #[error("nothing lost: the dispatcher has executed {executed} commands of {sent}")]
    Commands { executed: u32, sent: u32 },
}

impl<C: HostLink> Device<C> {
    /// Checks the queue, in debug builds and if its kernels are ours.
    pub(super) fn check_invariants(&self) -> Result<(), Waited> {
        if !cfg!(debug_assertions) || !self.own_kernels {
            return Ok(());
        }
        let Some(chip) = self.card.link().inspect().filter(|chip| chip.shows_memory()) else { return Ok(()) };
        let (layout, board) = (self.config.layout, self.config.board);
        // Until a command is known to be done, what the host wrote at the start may be on its way.
        for queue in self.queues().filter(|queue| queue.completed() > 0) {
            let tiles = layout.queue(queue.id());
            let semaphores = self.map.kernel_config.get() + SEMAPHORE_OFFSET;
            let look = Look { chip, tiles, board, semaphores, base: queue.base() };
            let found = look.always().and_then(|()| if queue.is_idle() { look.idle(queue) } else { Ok(()) });
            found.map_err(|broken| {
                let queue = queue.id();
                Waited::Other(RuntimeError::Protocol(format!("an invariant of queue {queue} is broken: {broken}")))
            })?;
        }
        Ok(())
    }
}

/// A look at the tiles of the queue.
struct Look<'a> {
    chip: &'a dyn Inspect,
    tiles: QueueTiles,
    board: Board,
    /// L1 address of semaphore 0.
    semaphores: u32,
    /// Where the device sees the queue's region of host memory.
    base: u32,
}

impl Look<'_> {
    /// A word of a tile's L1; zero on a tile without L1, of which a layout has none.
    fn word(&self, tile: NocXy, address: u32) -> u32 {
        let at = address as usize;
        let bytes = self.chip.l1(tile).and_then(|l1| l1.get(at..at + 4));
        bytes.and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_le_bytes)
    }

    fn semaphore(&self, tile: NocXy, id: SemaphoreId) -> u32 {
        self.word(tile, id.addr(self.semaphores))
    }

    /// What holds while packets are on their way.
    fn always(&self) -> Result<(), Broken> {
        let (tiles, board) = (self.tiles, self.board);
        let (dispatch, subordinate) = (tiles.dispatch_tile(board), tiles.subordinate_tile(board));
        let ring = (dispatch_core::DISPATCH_CB, SEM_DISPATCH_PAGES);
        self.credits("dispatcher", ring, (dispatch, dispatch_core::SEM_CB_PAGES))?;
        let ring = (dispatch_core::DISPATCH_S_CB, SEM_DISPATCH_S_PAGES);
        self.credits("subordinate", ring, (subordinate, dispatch_core::SEM_S_CB_PAGES))?;
        let issue = tiles.issue_tile(board);
        let (found, from, to) = (self.word(issue, PREFETCH_Q_RD_PTR), PREFETCH_Q.base(), PREFETCH_Q.end());
        if !(from.get()..=to.get()).contains(&found) || !found.is_multiple_of(PREFETCH_Q_ENTRY_SIZE) {
            return Err(Broken::Entry { found, from, to });
        }
        let from = self.base + host::ISSUE.offset();
        let found = self.word(issue, PREFETCH_Q_PCIE_RD_PTR);
        let to = from + host::ISSUE.size();
        if !(from..=to).contains(&found) {
            return Err(Broken::Record { found, from, to });
        }
        Ok(())
    }

    /// The pages that came to a reader and the credits that the prefetcher has for its ring: both
    /// count up, the credits from the pages of the ring on, and both wrap.
    fn credits(
        &self,
        reader: &'static str,
        (ring, credits): (PageRing, SemaphoreId),
        (tile, filled): (NocXy, SemaphoreId),
    ) -> Result<(), Broken> {
        let pages = ring.pages().get();
        let filled = self.semaphore(tile, filled);
        let given_back = self.semaphore(self.tiles.prefetch_tile(self.board), credits).wrapping_sub(pages);
        if filled.wrapping_sub(given_back) > pages {
            return Err(Broken::Credits { reader, filled, given_back, pages });
        }
        Ok(())
    }

    /// What holds when the host has noticed the end of all that it sent.
    fn idle(&self, queue: &CommandQueue) -> Result<(), Broken> {
        let (tiles, board) = (self.tiles, self.board);
        let entries = PREFETCH_Q.base().get() as usize..PREFETCH_Q.end().get() as usize;
        let entries = self.chip.l1(tiles.issue_tile(board)).and_then(|l1| l1.get(entries)).unwrap_or_default();
        for (index, entry) in (0..).zip(entries.as_chunks().0) {
            if *entry != [0; 2] {
                return Err(Broken::Left { index, found: u16::from_le_bytes(*entry) });
            }
        }
        let written = self.word(tiles.completion_tile(board), dispatch_core::COMPLETION_Q_WR_PTR);
        let read = queue.read_word();
        if written != read {
            return Err(Broken::Completion { written, read });
        }
        let executed = self.word(tiles.dispatch_tile(board), Kernel::Dispatch.status().get() + word::COMMANDS);
        // The count has 32 bits and wraps.
        let sent = u32::try_from(queue.completed() & u64::from(u32::MAX)).unwrap_or(u32::MAX);
        if executed != sent {
            return Err(Broken::Commands { executed, sent });
        }
        Ok(())
    }
}
