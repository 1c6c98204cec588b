//! The border to a chip: what a host can do to it, and what only a simulator can tell.
//!
//! Everything above this crate reaches a chip through [`HostLink`] alone, so the simulator, a
//! library with the libttsim interface and a real card are exchanged by a type parameter.
//! An implementation lives beside its chip and depends on this crate, never the other way round.

use crate::{ChipFault, LinkError, Note};
use std::ops::Range;
use tilework_abi::addr::{Cycle, PcieAddr};
use tilework_abi::noc::NocXy;
use tilework_abi::tensix::Processor;
use tilework_abi::tlb::Bar;

/// A chip as its host sees it: memory windows, pinned memory and time.
///
/// What an implementation promises:
///
/// - **Order.** Writes to the BARs reach the chip in the order of the calls; window registers and
///   data count as one sequence, so a window may be turned right after a write. A `bar_read`
///   returns what is there after all earlier writes through the same window have landed.
/// - **Posted writes.** `bar_write` may return before the chip has the data; an error of such a
///   write may be reported by any later call. It blocks while the link has no room.
/// - **Pinned memory.** Addresses are the device's ([`PcieAddr`]). Once [`HostLink::pin`] has
///   returned, the device can read and write every byte of the region there; address translation
///   (an IOMMU, an outbound region of the controller) is the implementation's business. The bytes
///   stay at their place until the link is dropped. Host and device see each other's writes without
///   further calls; an aligned word is never seen half written, and device writes become visible in
///   the order in which they leave the PCIe tile.
/// - **Time.** The chip runs on during every call that takes time. A wait is an event or a
///   deterministic poll, never a sleep of the host, where the chip's clock is simulated.
pub trait HostLink {
    /// Stores `data` at `offset` of `bar`. Posted: it takes effect later, in order.
    ///
    /// # Errors
    /// The link or the chip failed.
    fn bar_write(&mut self, bar: Bar, offset: u64, data: &[u8]) -> Result<(), LinkError>;
    /// Loads `out.len()` bytes from `offset` of `bar`.
    ///
    /// # Errors
    /// The link or the chip failed.
    fn bar_read(&mut self, bar: Bar, offset: u64, out: &mut [u8]) -> Result<(), LinkError>;
    /// Pins `len` bytes of host memory, all zero, and returns the address at which the device finds
    /// them: `wish` where the link can choose. Bytes that are pinned already, neither more nor
    /// less, are emptied: a device that is opened again pins what it had.
    ///
    /// # Errors
    /// The link failed, or the memory cannot be had.
    fn pin(&mut self, len: usize, wish: PcieAddr) -> Result<PcieAddr, LinkError>;
    /// Reads pinned memory.
    ///
    /// # Errors
    /// The bytes are not pinned.
    fn pinned_read(&mut self, address: PcieAddr, out: &mut [u8]) -> Result<(), LinkError>;
    /// Writes pinned memory.
    ///
    /// # Errors
    /// The bytes are not pinned.
    fn pinned_write(&mut self, address: PcieAddr, data: &[u8]) -> Result<(), LinkError>;
    /// Waits until the pinned word at `address` is no longer `seen`, for at most `budget` cycles,
    /// and returns it.
    ///
    /// # Errors
    /// [`LinkError::Budget`] when the budget is used up; [`LinkError::Deadlock`] from a link that
    /// knows that nothing can change the word any more; otherwise the chip failed.
    fn wait_word(&mut self, address: PcieAddr, seen: u32, budget: Cycle) -> Result<u32, LinkError>;
    /// Waits until one of the pinned words no longer is what the host has seen of it, for at most
    /// `budget` cycles. A link that can wait for one word only looks at the others once in a
    /// microsecond.
    ///
    /// # Errors
    /// As [`HostLink::wait_word`].
    fn wait_words(&mut self, words: &[(PcieAddr, u32)], budget: Cycle) -> Result<(), LinkError> {
        let mut left = budget;
        loop {
            for &(address, seen) in words {
                let mut word = [0; 4];
                self.pinned_read(address, &mut word)?;
                if u32::from_le_bytes(word) != seen {
                    return Ok(());
                }
            }
            let turn = left.min(TURN);
            let Some(&(address, seen)) = words.first().filter(|_| turn > 0) else {
                return Err(LinkError::Budget { cycles: budget });
            };
            match self.wait_word(address, seen, turn) {
                Err(LinkError::Budget { .. }) => left -= turn,
                result => return result.map(|_| ()),
            }
        }
    }
    /// Lets `cycles` pass, for instance between two looks at a word of the device.
    ///
    /// # Errors
    /// The chip failed.
    fn idle(&mut self, cycles: Cycle) -> Result<(), LinkError>;
    /// The host's clock, in AI clock cycles since power-on: what budgets are measured by. It grows
    /// by what [`HostLink::idle`] and [`HostLink::wait_word`] let pass; a link that cannot tell how
    /// long accesses take leaves those out. Measured time comes from [`HostLink::measured`].
    fn cycles(&self) -> Cycle;
    /// The chip's time by a counter of its own, from a link that can read one: what took how long
    /// is told by it.
    fn measured(&self) -> Option<Cycle> {
        self.inspect().map(Inspect::cycles)
    }
    /// Shows `seen` every store of a core to `range` of L1, on every Tensix tile and from now on,
    /// in the order of cycles. False from a link that cannot; a caller then looks at L1 itself.
    fn watch_stores(&mut self, range: Range<u32>, seen: StoreSink) -> bool {
        let _ = (range, seen);
        false
    }
    /// Shows what has happened so far to those who asked for it.
    fn settle(&mut self) {}
    /// The chip's inner state, from a link that can show it. A caller does without it otherwise
    /// and says so; it never replaces what is unknown by zeros.
    #[inline]
    fn inspect(&self) -> Option<&dyn Inspect> {
        None
    }
    /// Copies bytes of a tile's L1 as they are now, which takes no time of the chip. False where
    /// there are none, and from a link that cannot look into its chip.
    fn peek(&mut self, tile: NocXy, at: u32, out: &mut [u8]) -> bool {
        let start = usize::try_from(at).unwrap_or(usize::MAX);
        let l1 = self.inspect().and_then(|chip| chip.l1(tile));
        let Some(bytes) = l1.and_then(|l1| l1.get(start..start.checked_add(out.len())?)) else { return false };
        out.copy_from_slice(bytes);
        true
    }
    /// Whether anybody reads [`HostLink::note`]: a caller builds no notes otherwise.
    #[inline]
    fn listens(&self) -> bool {
        false
    }
    /// Takes a note of what the host does. It has no effect on the chip.
    fn note(&mut self, note: &Note) {
        let _ = note;
    }
    /// Shows those who observe the chip all that has happened so far.
    fn settle_observers(&mut self) {}
}

/// Cycles between two looks of [`HostLink::wait_words`] at one word (estimate: a microsecond).
const TURN: Cycle = 1_350;

/// A store of a core to L1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SeenStore {
    /// When.
    pub cycle: Cycle,
    /// The tile.
    pub tile: NocXy,
    /// The core.
    pub core: Processor,
    /// Where.
    pub address: u32,
    /// 1, 2 or 4.
    pub bytes: u8,
    /// The value; higher bits are zero.
    pub value: u32,
}

/// Who is shown stores.
pub type StoreSink = Box<dyn FnMut(&SeenStore) + Send>;

/// What only a simulator can tell about its chip. Looking changes nothing and takes no time.
pub trait Inspect {
    /// Whether nothing will happen by itself any more: no core can run, nothing is in flight.
    fn is_quiet(&self) -> bool;
    /// The chip's time in AI clock cycles since power-on.
    fn cycles(&self) -> Cycle;
    /// Counts since power-on.
    fn counts(&self) -> ChipCounts;
    /// Every core that waits.
    fn waiting(&self) -> Vec<WaitingCore>;
    /// Every core that executes.
    fn busy(&self) -> Vec<RunningCore>;
    /// The L1 of the Tensix tile at `tile` (translated coordinates), as it is now.
    fn l1(&self, tile: NocXy) -> Option<&[u8]>;
    /// Whether memory can be looked at now. False while a run is repeated from what was kept of it.
    fn shows_memory(&self) -> bool {
        true
    }
}

/// Counts of everything that a chip did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ChipCounts {
    /// Cycles of the AI clock.
    pub cycles: Cycle,
    /// Instructions executed by all cores.
    pub instructions: u64,
    /// Instructions of poll loops that were skipped because their core slept.
    pub skipped: u64,
    /// Payload bytes that left any NIU, both NoCs.
    pub noc_bytes: u64,
    /// Bytes over PCIe, both directions.
    pub pcie_bytes: u64,
}

impl ChipCounts {
    /// What was added since `earlier`.
    #[must_use]
    pub const fn since(&self, earlier: &Self) -> Self {
        Self {
            cycles: self.cycles - earlier.cycles,
            instructions: self.instructions - earlier.instructions,
            skipped: self.skipped - earlier.skipped,
            noc_bytes: self.noc_bytes - earlier.noc_bytes,
            pcie_bytes: self.pcie_bytes - earlier.pcie_bytes,
        }
    }
}

/// A core that executes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RunningCore {
    /// The tile.
    pub tile: NocXy,
    /// The core.
    pub core: Processor,
    /// Its next instruction.
    pub pc: u32,
}

/// A core that waits, and for what.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WaitingCore {
    /// The tile.
    pub tile: NocXy,
    /// The core.
    pub core: Processor,
    /// The instruction at the head of its poll loop, or the blocked one.
    pub pc: u32,
    /// The words it waits for. Empty: it loops without looking at anything.
    pub watched: Vec<WatchedWord>,
    /// The address of a blocked access.
    pub blocked_on: Option<u32>,
    /// The Tensix threads at whose wait gates something stands that the core may be waiting for.
    pub coprocessor: Vec<WaitingThread>,
}

/// A Tensix thread at whose wait gate an instruction stands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WaitingThread {
    /// The thread, the instruction and what it waits for, in words.
    pub what: String,
    /// How the instruction came there, in words.
    pub pushed: String,
    /// The core that pushed it.
    pub core: Option<Processor>,
    /// The address of the instruction with which the core did.
    pub pc: Option<u32>,
}

/// A word that a sleeping core waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WatchedWord {
    /// Its address in the core's address space.
    pub address: u32,
    /// What the core sees there.
    pub value: u32,
    /// The core looks at its cache's copy and will never see what others write: a fence is missing.
    pub stale: bool,
}

impl From<ChipFault> for LinkError {
    fn from(fault: ChipFault) -> Self {
        Self::Fault(Box::new(fault))
    }
}
