//! Memory for programs, and data in and out, by window accesses.

use super::Device;
use crate::RuntimeError;
use crate::memory::{Buffer, DType, L1Buffer, MemoryError};
use crate::queue::Waited;
use tilework_abi::addr::{Cycle, L1Addr};
use tilework_abi::noc::NocXy;
use tilework_driver::{HostLink, Ordering, Target};

impl<C: HostLink> Device<C> {
    /// Lets `cycles` of the chip's time pass.
    ///
    /// # Errors
    /// A fault; then the device is lost.
    pub fn idle(&mut self, cycles: Cycle) -> Result<(), RuntimeError> {
        self.alive()?;
        let result = self.card.link_mut().idle(cycles);
        result.map_err(|e| self.explain(Waited::Link(e), &[]))
    }

    /// Allocates DRAM for an array, interleaved over the banks in pages of `page_size` bytes (a
    /// multiple of 64). Its content is what was there before.
    ///
    /// # Errors
    /// No room; an invalid page size or shape.
    pub fn alloc_dram(
        &mut self,
        name: &str,
        shape: &[usize],
        dtype: DType,
        page_size: u32,
    ) -> Result<Buffer, RuntimeError> {
        self.alive()?;
        Ok(self.memory.alloc_dram(name, shape, dtype, page_size)?)
    }

    /// Frees the memory of a buffer.
    pub fn free_dram(&mut self, buffer: &Buffer) {
        self.memory.free_dram(buffer);
    }

    /// Allocates `bytes` bytes of every worker's L1, at the same address on all.
    ///
    /// # Errors
    /// No room; the message lists the owners.
    pub fn alloc_l1(&mut self, name: &str, bytes: u32) -> Result<L1Buffer, RuntimeError> {
        self.alive()?;
        Ok(self.memory.alloc_l1(name, bytes)?)
    }

    /// Frees the memory of an L1 buffer.
    pub fn free_l1(&mut self, buffer: &L1Buffer) {
        self.memory.free_l1(buffer);
    }

    /// Writes an array to its buffer.
    ///
    /// # Errors
    /// Data of another size than the buffer's; a device that stopped.
    pub fn upload(&mut self, buffer: &Buffer, data: &[u8]) -> Result<(), RuntimeError> {
        self.alive()?;
        if data.len() != buffer.bytes() {
            let (found, expected) = (data.len(), buffer.bytes());
            return Err(MemoryError::DataSize { name: buffer.name.clone(), found, expected }.into());
        }
        let result = self.upload_pages(buffer, data);
        result.map_err(|e| self.explain(e, &[]))
    }

    fn upload_pages(&mut self, buffer: &Buffer, data: &[u8]) -> Result<(), Waited> {
        let mut written = Vec::new();
        for bank in 0..buffer.banks.min(buffer.pages().get()) {
            let bytes = buffer.gather(data, bank);
            let port = Target::tile(self.dram_map.port(bank as usize, 0)).ordered(Ordering::Relaxed);
            self.card.write(&port, buffer.address, &bytes)?;
            written.push((port, buffer.address.offset(bytes.len() as u64 - 4)));
        }
        // A read through a window waits for the writes before it; afterwards all data has landed.
        for (port, last) in written {
            self.card.read32(&port, last)?;
        }
        Ok(())
    }

    /// Reads an array from its buffer.
    ///
    /// # Errors
    /// A device that stopped.
    pub fn download(&mut self, buffer: &Buffer) -> Result<Vec<u8>, RuntimeError> {
        self.alive()?;
        let result = self.download_pages(buffer);
        result.map_err(|e| self.explain(e, &[]))
    }

    fn download_pages(&mut self, buffer: &Buffer) -> Result<Vec<u8>, Waited> {
        let mut data = host_memory(buffer, buffer.bytes())?;
        for bank in 0..buffer.banks.min(buffer.pages().get()) {
            let rows = (buffer.pages().get() - bank).div_ceil(buffer.banks);
            let mut bytes = host_memory(buffer, rows as usize * buffer.page_size as usize)?;
            let port = Target::tile(self.dram_map.port(bank as usize, 0)).ordered(Ordering::Relaxed);
            self.card.read(&port, buffer.address, &mut bytes)?;
            buffer.scatter(&bytes, bank, &mut data);
        }
        Ok(data)
    }

    /// Reads L1 of one tile.
    ///
    /// # Errors
    /// A device that stopped.
    pub fn read_l1(&mut self, tile: NocXy, address: L1Addr, out: &mut [u8]) -> Result<(), RuntimeError> {
        self.alive()?;
        let result = self.card.read(&Target::tile(tile), address, out);
        result.map_err(|e| self.explain(e.into(), &[]))
    }

    /// Writes L1 of one tile. The write is posted: it takes effect before any later access through
    /// this device.
    ///
    /// # Errors
    /// A device that stopped.
    pub fn write_l1(&mut self, tile: NocXy, address: L1Addr, data: &[u8]) -> Result<(), RuntimeError> {
        self.alive()?;
        let result = self.card.write(&Target::tile(tile), address, data);
        if let Some(launcher) = self.launcher.as_mut().filter(|_| address < self.map.data) {
            launcher.forget();
        }
        result.map_err(|e| self.explain(e.into(), &[]))
    }
}

/// Zeros for so many bytes of a buffer. They are asked for before they are needed, so that too
/// little memory is an error and not an abort.
fn host_memory(buffer: &Buffer, bytes: usize) -> Result<Vec<u8>, Waited> {
    let mut memory = Vec::new();
    if memory.try_reserve_exact(bytes).is_err() {
        return Err(Waited::Other(RuntimeError::HostMemory { name: buffer.name.clone(), bytes }));
    }
    memory.resize(bytes, 0);
    Ok(memory)
}
