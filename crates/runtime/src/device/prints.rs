//! Prints of the kernels that a device runs.

use super::Device;
use crate::elf::ElfError;
use crate::prints::PrintLine;
use crate::program::{Cores, Program};
use crate::{KernelImage, RuntimeError};
use tilework_abi::noc::NocXy;
use tilework_abi::print::{BINDING_SYMBOL, HEADER_BYTES, STRIDE, ring};
use tilework_abi::tensix::Processor;
use tilework_driver::{HostLink, Target};

impl<C: HostLink> Device<C> {
    /// Calls `f` with each line that kernels print, in the order of simulated time: when a run, or a
    /// wait for everything, has ended.
    pub fn on_print(&mut self, f: impl FnMut(&PrintLine) + 'static) {
        self.prints.call = Some(Box::new(f));
    }

    /// Prints of kernels that were overwritten before anybody could read them, since the device was
    /// opened. None on a simulator that shows stores ([`HostLink::watch_stores`]).
    pub fn missed_prints(&self) -> u64 {
        self.prints.missed()
    }

    /// Gets ready for the prints of a program: its kernels' texts, and the rings of its cores.
    pub(super) fn expect_prints(&mut self, program: &Program) -> Result<(), RuntimeError> {
        let mut cores = Vec::new();
        for role in &program.roles {
            for kernel in role.kernels.iter().flatten() {
                let Some(prints) = kernel.prints() else { continue };
                if !self.prints.know(kernel.print_number(), kernel.name(), prints) {
                    return Err(same_number(kernel).into());
                }
                // What is no worker is refused when the program is laid out.
                let holds = |tile: &&NocXy| role.cores.as_ref().is_none_or(|own| own.contains(tile));
                let tiles = self.workers.iter().enumerate().filter(|(i, tile)| match &program.cores {
                    Cores::All => true,
                    Cores::Count(count) => i < count,
                    Cores::List(list) => list.contains(tile),
                });
                let tiles = tiles.map(|(_, tile)| tile).filter(holds);
                cores.extend(tiles.map(|&tile| (tile, kernel.processor())));
            }
        }
        if cores.is_empty() || self.map.prints_size == 0 {
            // Without room for rings such a kernel is refused when it is placed.
            return Ok(());
        }
        if !self.prints.is_used() {
            let base = self.map.prints;
            let range = base.get()..base.get() + self.map.prints_size;
            let sink = self.prints.sink(base);
            self.prints.watched = Some(self.card.link_mut().watch_stores(range, sink));
        }
        let fresh = self.prints.fresh(cores.into_iter());
        for core in Processor::ALL {
            let tiles: Vec<NocXy> = fresh.iter().filter(|(_, of)| *of == core).map(|&(tile, _)| tile).collect();
            let Some(ring) = ring(&self.map, core).filter(|_| !tiles.is_empty()) else { continue };
            let cleared = self.card.write_all(&tiles, ring, &[0; HEADER_BYTES as usize]);
            cleared.map_err(|e| self.explain(e.into(), &[]))?;
        }
        Ok(())
    }

    /// Hands over what kernels have printed; returns the first assertion that did not hold.
    pub(super) fn collect_prints(&mut self) -> Option<PrintLine> {
        match self.prints.watched? {
            true => self.card.link_mut().settle(),
            false => self.read_rings(),
        }
        self.prints.tell()
    }

    /// Reads the rings of all cores that print. A chip that has stopped may not answer; then what it
    /// said is lost.
    fn read_rings(&mut self) {
        for ((tile, core), ring) in self.prints.cores(&self.map) {
            let mut bytes = [0; STRIDE as usize];
            let Ok(()) = self.card.read(&Target::tile(tile), ring, &mut bytes) else { return };
            self.prints.load((tile, core), &bytes);
        }
    }
}

/// The error for two kernels that records could not tell apart.
fn same_number(kernel: &KernelImage) -> ElfError {
    let found = format!("number {:#x}, which another kernel of this device has", kernel.print_number());
    ElfError::new(kernel.name(), format!("symbol {BINDING_SYMBOL}"), found, "a number of its own; change a text of it")
}
