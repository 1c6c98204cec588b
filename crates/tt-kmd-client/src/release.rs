//! Leaving the card: cores held, windows and pinned memory given back, power and lock let go.

use crate::card::lock_ctl;
use crate::kernel::Kernel;
use crate::window::{Slot, ask};
use crate::{KmdCard, OpenError};
use std::time::Duration;
use tilework_abi::convert::u32_of;
use tilework_abi::kmd::{Request, ResetIn, ResetOut, lock, reset};
use tilework_abi::noc::NocXy;
use tilework_abi::tensix::{SOFT_RESET_0, SOFT_RESET_ALL_CORES};
use tilework_abi::tlb::{self, Ordering, WindowSize};

/// How long a chip takes to come back from a reset (tt-umd `POST_RESET_WAIT`).
const RESET: Duration = Duration::from_secs(2);

/// How a card was left.
#[derive(Clone, Debug, Default)]
pub struct Released {
    /// Tiles whose cores were seen to be held.
    pub held: usize,
    /// Tiles that were to be held.
    pub tiles: usize,
    /// The whole chip was reset, because not all cores could be held: whether it came back.
    pub chip_reset: Option<bool>,
    /// Windows and pinned regions that the driver has not taken back. It does so when the file is
    /// closed.
    pub left: usize,
}

impl std::fmt::Display for Released {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.chip_reset {
            None => write!(f, "the cores of {} tiles are held in reset", self.held)?,
            Some(true) => write!(f, "the chip was reset, since {} tiles did not stop", self.tiles - self.held)?,
            Some(false) => write!(
                f,
                "{} of {} tiles could not be stopped, and the driver could not reset the chip: `tt-smi -r` does",
                self.tiles - self.held,
                self.tiles
            )?,
        }
        match self.left {
            0 => f.write_str("; windows, pinned memory and the lock are free"),
            left => write!(f, "; {left} windows or pinned regions are left for the driver to free at the end"),
        }
    }
}

impl<K: Kernel> KmdCard<K> {
    /// Leaves the card: the cores of its tiles are held, or the whole chip is reset if some cannot
    /// be; everything that was taken is given back. The card answers nothing afterwards. Dropping
    /// it does the same without saying how it went.
    pub fn release(&mut self) -> Released {
        if self.released {
            return Released::default();
        }
        self.released = true;
        let tiles = std::mem::take(&mut self.tiles);
        let held = self.hold_all(&tiles);
        let mut left = 0;
        for (_, slot) in std::mem::take(&mut self.slots) {
            left += usize::from(!slot.give_back(&mut self.kernel));
        }
        if let Some(counter) = self.counter.take() {
            left += usize::from(!counter.give_back(&mut self.kernel));
        }
        // The device reaches host memory no more: its cores are held. If they are not, the reset
        // comes before the memory goes.
        let chip_reset = (held < tiles.len()).then(|| self.reset_chip().unwrap_or(false));
        for region in std::mem::take(&mut self.regions) {
            left += usize::from(!region.unpin(&mut self.kernel));
        }
        if chip_reset == Some(true) {
            // The reset has taken them back already, and the driver says that they are not there.
            left = 0;
        }
        // What fails here the driver does when the file is closed.
        let _ = self.set_cleanup(None);
        let _ = self.set_power(0);
        let _ = lock_ctl(&mut self.kernel, lock::RELEASE);
        Released { held, tiles: tiles.len(), chip_reset, left }
    }

    /// Holds all cores of `tiles`; says of how many tiles the register then said so.
    fn hold_all(&mut self, tiles: &[NocXy]) -> usize {
        if tiles.is_empty() {
            return 0;
        }
        let Ok(mut slot) = Slot::take(&mut self.kernel, WindowSize::Small) else { return 0 };
        let at = u64::from(SOFT_RESET_0) % slot.bytes();
        let mut held = 0;
        for &tile in tiles {
            let base = u64::from(SOFT_RESET_0) - at;
            let window = tlb::Window { ordering: Some(Ordering::Strict), ..tlb::Window::unicast(tile, base) };
            if slot.aim(&mut self.kernel, window).is_err() {
                continue;
            }
            slot.write(at, &SOFT_RESET_ALL_CORES.to_le_bytes());
            let mut word = [0; 4];
            slot.read(at, &mut word);
            let value = u32::from_le_bytes(word);
            held += usize::from(value != u32::MAX && value & SOFT_RESET_ALL_CORES == SOFT_RESET_ALL_CORES);
        }
        slot.give_back(&mut self.kernel);
        held
    }

    /// Resets the chip, as `tt-smi -r` does: the driver resets it, and sets it up again when it has
    /// come back. Other files of the device are of no use afterwards, so nobody else may have one.
    fn reset_chip(&mut self) -> Result<bool, OpenError> {
        let mut step = |flags| {
            let wanted = ResetIn { output_size_bytes: u32_of(size_of::<ResetOut>()), flags };
            ask::<K, _, ResetOut>(&mut self.kernel, Request::ResetDevice, &wanted).map(|out| out.result == 0)
        };
        if !step(reset::ASIC)? {
            return Ok(false);
        }
        std::thread::sleep(RESET);
        step(reset::POST)
    }
}

impl<K: Kernel> Drop for KmdCard<K> {
    fn drop(&mut self) {
        self.release();
    }
}
