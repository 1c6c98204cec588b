//! Memory for programs, and data in and out: through the command queue, or by window accesses.

use super::{Device, Transfers};
use crate::RuntimeError;
use crate::event::Blocking;
use crate::memory::{Bank, BankAddr, Buffer, BufferType, DType, L1Buffer, Place};
use crate::queue::{CommandQueue, Waited};
use crate::trace::CallSite;
use std::collections::BTreeMap;
use tilework_abi::addr::{Cycle, L1Addr, PcieAddr};
use tilework_abi::cq::layout::QueueId;
use tilework_abi::noc::NocXy;
use tilework_driver::{HostLink, Ordering, Pinned, Target};

impl<C: HostLink> Device<C> {
    /// Lets `cycles` of the chip's time pass. Completions are noticed as they come.
    ///
    /// # Errors
    /// A fault; then the device is lost.
    pub fn idle(&mut self, cycles: Cycle) -> Result<(), RuntimeError> {
        self.alive()?;
        self.pass(cycles)
    }

    /// Whether a buffer moves through the queue. One in system memory is the host's own.
    pub(super) fn transfers_queue(&self, buffer: &Buffer) -> bool {
        let queue = self.queue.is_some() && self.config.transfers == Transfers::Queue;
        queue && buffer.buffer_type != BufferType::SystemMemory
    }

    /// Allocates DRAM for an array, interleaved over the banks in pages of `page_size` bytes (a
    /// multiple of 64). Its content is what was there before.
    ///
    /// # Errors
    /// No room; an invalid page size or shape.
    #[track_caller]
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

    /// Frees the memory of a buffer; nothing if it was freed before.
    ///
    /// # Errors
    /// A buffer that a trace uses.
    #[track_caller]
    pub fn free_dram(&mut self, buffer: &Buffer) -> Result<(), RuntimeError> {
        Ok(self.memory.free_dram(buffer)?)
    }

    /// Allocates `bytes` bytes of every worker's L1, at the same address on all.
    ///
    /// # Errors
    /// No room; the message lists the owners.
    #[track_caller]
    pub fn alloc_l1(&mut self, name: &str, bytes: u32) -> Result<L1Buffer, RuntimeError> {
        self.alive()?;
        Ok(self.memory.alloc_l1(name, bytes)?)
    }

    /// Frees the memory of an L1 buffer; nothing if it was freed before.
    ///
    /// # Errors
    /// A buffer that a trace uses.
    #[track_caller]
    pub fn free_l1(&mut self, buffer: &L1Buffer) -> Result<(), RuntimeError> {
        Ok(self.memory.free_l1(buffer)?)
    }

    /// Writes an array to its buffer, behind everything that was enqueued before, and waits until
    /// it has landed: a blocking [`Device::enqueue_write_buffer`].
    ///
    /// # Errors
    /// Data of another size than the buffer's; a device that stopped.
    #[track_caller]
    pub fn upload(&mut self, buffer: &Buffer, data: &[u8]) -> Result<(), RuntimeError> {
        self.enqueue_write_buffer(buffer, data, Blocking::Yes)
    }

    /// Reads an array from its buffer: a blocking [`Device::enqueue_read_buffer`].
    ///
    /// # Errors
    /// A device that stopped.
    #[track_caller]
    pub fn download(&mut self, buffer: &Buffer) -> Result<Vec<u8>, RuntimeError> {
        let read = self.enqueue_read_buffer(buffer, Blocking::Yes)?;
        self.wait_for_read(read)
    }

    /// Writes an array run by run through windows, when nothing is in the queue.
    pub(super) fn write_by_windows(&mut self, buffer: &Buffer, data: &[u8]) -> Result<(), Waited> {
        self.tell_memory();
        let mut written: BTreeMap<Bank, BankAddr> = BTreeMap::new();
        for run in buffer.runs() {
            let (bytes, Place { bank, address }) = (buffer.gather(&run, data), run.place);
            match self.window(bank) {
                Some(target) => {
                    self.card.write(&target, address, &bytes)?;
                    // A page has at least 16 bytes.
                    written.insert(bank, address.offset(bytes.len() as u64 - 4));
                }
                None => {
                    let region = self.system_memory()?;
                    region.write(self.card.link_mut(), within(&region, address), &bytes)?;
                }
            }
        }
        // A read through a window waits for the writes before it; afterwards all data has landed.
        for (bank, last) in written {
            if let Some(target) = self.window(bank) {
                self.card.read32(&target, last)?;
            }
        }
        Ok(())
    }

    /// The window to a bank; none to host memory.
    fn window(&self, bank: Bank) -> Option<Target> {
        let tile = match bank {
            Bank::Dram(bank) => self.dram_map.port(bank as usize, 0),
            Bank::Core(tile) => tile,
            Bank::Host => return None,
        };
        Some(Target::tile(tile).ordered(Ordering::Relaxed))
    }

    /// The pinned region that system memory is a part of.
    fn system_memory(&self) -> Result<Pinned, Waited> {
        // Behind the FIFO of the first queue.
        let region = self.queue_of(QueueId::FIRST).map(CommandQueue::region);
        region.ok_or(Waited::Other(RuntimeError::NoQueue))
    }

    /// The inverse of [`Device::write_by_windows`].
    pub(super) fn read_by_windows(&mut self, buffer: &Buffer) -> Result<Vec<u8>, Waited> {
        let mut data = host_memory(buffer, buffer.bytes()).map_err(Waited::Other)?;
        for run in buffer.runs() {
            let Place { bank, address } = run.place;
            let mut bytes =
                host_memory(buffer, run.pages as usize * buffer.aligned_page_size() as usize).map_err(Waited::Other)?;
            match self.window(bank) {
                Some(target) => self.card.read(&target, address, &mut bytes)?,
                None => {
                    let region = self.system_memory()?;
                    region.read(self.card.link_mut(), within(&region, address), &mut bytes)?;
                }
            }
            buffer.scatter(&run, &bytes, &mut data);
        }
        Ok(data)
    }

    /// Reads L1 of one tile, past the queue: what was enqueued may still be under way.
    ///
    /// # Errors
    /// A device that stopped.
    #[track_caller]
    pub fn read_l1(&mut self, tile: NocXy, address: L1Addr, out: &mut [u8]) -> Result<(), RuntimeError> {
        self.outside_capture("read_l1", CallSite::here())?;
        self.alive()?;
        let result = self.card.read(&Target::tile(tile), address, out);
        result.map_err(|e| self.explain(e.into(), &[]))
    }

    /// Writes L1 of one tile, past the queue: what was enqueued may still be under way. The write
    /// is posted: it takes effect before any later access through a window.
    ///
    /// # Errors
    /// A device that stopped.
    #[track_caller]
    pub fn write_l1(&mut self, tile: NocXy, address: L1Addr, data: &[u8]) -> Result<(), RuntimeError> {
        self.outside_capture("write_l1", CallSite::here())?;
        self.alive()?;
        let result = self.card.write(&Target::tile(tile), address, data);
        if let Some(launcher) = self.launcher.as_mut().filter(|_| address < self.map.data) {
            launcher.forget();
        }
        result.map_err(|e| self.explain(e.into(), &[]))
    }
}

/// Where an address of system memory is in the pinned region.
fn within(region: &Pinned, address: BankAddr) -> u64 {
    address.get().saturating_sub(PcieAddr::new(region.noc_address()).get())
}

/// Zeros for so many bytes of a buffer. They are asked for before they are needed, so that too
/// little memory is an error and not an abort.
pub(super) fn host_memory(buffer: &Buffer, bytes: usize) -> Result<Vec<u8>, RuntimeError> {
    let mut memory = Vec::new();
    if memory.try_reserve_exact(bytes).is_err() {
        return Err(RuntimeError::HostMemory { name: buffer.name.clone(), bytes });
    }
    memory.resize(bytes, 0);
    Ok(memory)
}
