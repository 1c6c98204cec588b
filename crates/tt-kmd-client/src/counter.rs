//! The card's time: the wall clock of a Tensix tile, which counts cycles of the AI clock
//! (BlackholeA0/TensixTile/TensixCoprocessor, register `WALL_CLOCK`).

use crate::OpenError;
use crate::kernel::{Kernel, Mapped};
use crate::window::Slot;
use std::cell::Cell;
use std::time::{Duration, Instant};
use tilework_abi::addr::Cycle;
use tilework_abi::board::{Board, WORKER_Y_FIRST};
use tilework_abi::noc::NocXy;
use tilework_abi::tensix::{WALL_CLOCK_H_LATCHED, WALL_CLOCK_L};
use tilework_abi::tlb::{self, Ordering, WindowSize};
use tilework_driver::LinkError;

/// How long the counter may stand still before the chip is taken for stopped: a hundred thousand
/// times what a read of it takes.
const STILL: Duration = Duration::from_secs(1);
/// What a bus answers for a device that is gone.
const GONE: u32 = u32::MAX;

/// The counter of one tile.
#[derive(Debug)]
pub(crate) struct Counter<M> {
    slot: Slot<M>,
    /// Offset of the register in the window.
    at: u64,
    latest: Cell<Cycle>,
    /// Since when it has not moved.
    still: Cell<Option<Instant>>,
}

/// The tile whose counter it is: the first in translated coordinates, in which harvested columns
/// come last, so that every chip has it.
const TILE: NocXy = NocXy::new(Board::P100.worker_columns()[0], WORKER_Y_FIRST);

impl<M: Mapped> Counter<M> {
    /// Aims a window at the counter.
    ///
    /// # Errors
    /// The driver refused something.
    pub(crate) fn new<K: Kernel<Mapping = M>>(kernel: &mut K) -> Result<Self, OpenError> {
        let mut slot = Slot::take(kernel, WindowSize::Small)?;
        let at = u64::from(WALL_CLOCK_L) % slot.bytes();
        let base = u64::from(WALL_CLOCK_L) - at;
        let strict = tlb::Window { ordering: Some(Ordering::Strict), ..tlb::Window::unicast(TILE, base) };
        if let Err(error) = slot.aim(kernel, strict) {
            slot.give_back(kernel);
            return Err(error);
        }
        Ok(Self { slot, at, latest: Cell::new(0), still: Cell::new(None) })
    }

    fn word(&self, register: u32) -> u32 {
        let mut word = [0; 4];
        self.slot.read(self.at + u64::from(register - WALL_CLOCK_L), &mut word);
        u32::from_le_bytes(word)
    }

    /// Cycles since the chip left reset.
    ///
    /// # Errors
    /// The chip does not answer, or its clock stands still.
    pub(crate) fn read(&self) -> Result<Cycle, LinkError> {
        // Reading the low half latches the high one.
        let low = self.word(WALL_CLOCK_L);
        let high = self.word(WALL_CLOCK_H_LATCHED);
        if (low, high) == (GONE, GONE) {
            return Err(LinkError::Failed(
                "the card does not answer any more: reads over PCIe return ones. `tt-smi -r` resets it".into(),
            ));
        }
        let now = Cycle::from(high) << 32 | Cycle::from(low);
        if now != self.latest.replace(now) {
            self.still.set(None);
            return Ok(now);
        }
        match self.still.get() {
            None => self.still.set(Some(Instant::now())),
            Some(since) if since.elapsed() > STILL => {
                let what = format!("the AI clock of the card stands still at cycle {now}: is the chip in reset?");
                return Err(LinkError::Failed(what));
            }
            Some(_) => {}
        }
        Ok(now)
    }

    /// The latest value that was read.
    pub(crate) fn latest(&self) -> Cycle {
        self.latest.get()
    }

    /// Gives the window back.
    pub(crate) fn give_back<K: Kernel>(self, kernel: &mut K) -> bool {
        self.slot.give_back(kernel)
    }
}
