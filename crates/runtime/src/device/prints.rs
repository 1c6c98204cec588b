//! Prints of the kernels that a device runs.

use super::Device;
use crate::elf::{ElfError, device_texts};
use crate::prints::{Form, PrintLine};
use crate::program::{Cores, Program};
use crate::{KernelImage, RuntimeError};
use tilework_abi::addr::L1Addr;
use tilework_abi::noc::NocXy;
use tilework_abi::print::{HEADER_BYTES, STRIDE, ring};
use tilework_abi::tensix::Processor;
use tilework_driver::{HostLink, Target};

impl<C: HostLink> Device<C> {
    /// Calls `f` with each line that kernels print, in the order of simulated time: when a run, or
    /// a wait for everything, has ended.
    pub fn on_print(&mut self, f: impl FnMut(&PrintLine) + 'static) {
        self.prints.call = Some(Box::new(f));
    }

    /// Prints of kernels that were overwritten before anybody could read them, since the device was
    /// opened. None on a simulator that shows stores ([`HostLink::watch_stores`]).
    pub fn missed_prints(&self) -> u64 {
        self.prints.missed()
    }

    /// Kernels that were run and have texts of device prints (`DEVICE_PRINT`), while the memory map
    /// of the firmware does not say where their buffer is: nobody reads what they print.
    pub fn unread_prints(&self) -> impl Iterator<Item = &str> {
        self.prints.unread.iter().map(|name| &**name)
    }

    /// Gets ready for the prints of a program: its kernels' texts, and the rings of its cores.
    pub(super) fn expect_prints(&mut self, program: &Program) -> Result<(), RuntimeError> {
        self.expect_device_prints()?;
        let mut cores = Vec::new();
        for role in &program.roles {
            for kernel in role.kernels.iter().flatten() {
                if let Some(texts) = kernel.device_texts() {
                    if !matches!(Form::of(&self.map), Some(Form::Texts(_))) {
                        self.prints.unread.insert(kernel.name().into());
                    }
                    if !self.prints.know_texts(kernel.device_print_number(), kernel.name(), texts) {
                        return Err(same_number(kernel, kernel.device_print_number().into()).into());
                    }
                }
                let Some(prints) = kernel.prints() else { continue };
                if !self.prints.know(kernel.print_number(), kernel.name(), prints) {
                    return Err(same_number(kernel, kernel.print_number()).into());
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
        if self.prints.watched.is_none() && self.prints.metal_watched.is_none() {
            return None;
        }
        self.card.link_mut().settle();
        if self.prints.watched == Some(false) {
            self.read_rings();
        }
        if self.prints.metal_watched == Some(false) {
            self.read_device_prints();
        }
        self.prints.tell()
    }

    /// As [`Device::collect_prints`] at the end of everything: also what has not come to the end of
    /// its line.
    pub(super) fn last_prints(&mut self) -> Option<PrintLine> {
        let failed = self.collect_prints();
        if self.prints.metal_watched.is_some() {
            self.prints.metal_end(self.card.link().cycles());
            self.prints.tell();
        }
        failed
    }

    /// Tells all workers, before the first program, that their device prints are read.
    fn expect_device_prints(&mut self) -> Result<(), RuntimeError> {
        let Some(form) = Form::of(&self.map).filter(|_| self.prints.metal_watched.is_none()) else { return Ok(()) };
        for firmware in &self.firmware {
            if let Some(texts) = device_texts(firmware.name(), firmware.elf())? {
                self.prints.know_firmware(firmware.processor(), firmware.name(), texts);
            }
        }
        let (base, sink) = (form.base().get(), self.prints.metal_sink(form));
        let watched = self.card.link_mut().watch_stores(base..base + form.bytes(), sink);
        self.prints.metal_watched = Some(watched);
        for (at, bytes) in form.starts() {
            let told = self.card.write_all(&self.workers, at, &bytes);
            told.map_err(|e| self.explain(e.into(), &[]))?;
        }
        Ok(())
    }

    /// Reads the buffers of device prints of all workers.
    fn read_device_prints(&mut self) {
        let Some(form) = Form::of(&self.map) else { return };
        for tile in self.workers.clone() {
            let mut bytes = vec![0; form.bytes() as usize];
            let Some(()) = self.look(tile, form.base(), &mut bytes) else { return };
            self.prints.metal_load(tile, self.card.link().cycles(), &bytes);
        }
    }

    /// Copies bytes of L1: without any cost where the chip can be looked into.
    fn look(&mut self, tile: NocXy, at: L1Addr, out: &mut [u8]) -> Option<()> {
        if self.card.link().inspect().is_none() {
            return self.card.read(&Target::tile(tile), at, out).ok();
        }
        self.card.link_mut().peek(tile, at.get(), out).then_some(())
    }

    /// Reads the rings of all cores that print. A chip that has stopped may not answer; then what
    /// it said is lost.
    fn read_rings(&mut self) {
        for ((tile, core), ring) in self.prints.cores(&self.map) {
            let mut bytes = [0; STRIDE as usize];
            let Some(()) = self.look(tile, ring, &mut bytes) else { return };
            self.prints.load((tile, core), &bytes);
        }
    }
}

/// The error for two kernels that records could not tell apart.
fn same_number(kernel: &KernelImage, number: u32) -> ElfError {
    let found = format!("number {number:#x}, which another kernel of this device has");
    ElfError::new(kernel.name(), "texts of its prints", found, "a number of its own; change a text of it")
}
