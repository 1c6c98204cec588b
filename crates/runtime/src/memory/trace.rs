//! Memory for the commands of traces.

use super::{BankAddr, Banks, Buffer, BufferConfig, BufferType, Fit, MemoryError, MemorySpace};
use crate::trace::{TraceError, TraceName};
use tilework_abi::DRAM_ALIGN;
use tilework_abi::convert::u32_of;

/// Binary logarithm of the size of a trace's pages: 4 KiB, so that the prefetcher's reads of 16 KiB
/// go to four banks (tt-metal's `kExecBufPageMax`).
pub(crate) const LOG_PAGE: u32 = 12;

impl MemorySpace {
    /// Memory for `bytes` bytes of commands. In the trace region when the device was opened with
    /// one; else from the end of DRAM, so that the traces there take what they need.
    ///
    /// # Errors
    /// No room: [`TraceError::Region`] with the size that would do, or what DRAM has.
    pub(crate) fn alloc_trace(&mut self, trace: TraceName, bytes: usize) -> Result<Buffer, crate::RuntimeError> {
        let kind = if self.trace.is_empty() { BufferType::Dram } else { BufferType::Trace };
        let name = format!("trace {}", trace.number);
        let config = BufferConfig::interleaved(name, kind, bytes as u64, 1 << LOG_PAGE);
        let mut buffer = self.lay_out(&config)?;
        let of_bank = buffer.bytes_per_bank();
        let allocated = match kind {
            BufferType::Trace => self.trace.allocate(&buffer.name, of_bank, &Banks::All, Fit::BestLow),
            _ => self.dram.allocate(&buffer.name, of_bank, &Banks::All, Fit::Highest),
        };
        let (id, address) = match allocated {
            Ok(allocated) => allocated,
            Err(MemoryError::Overflow(_)) if kind == BufferType::Trace => {
                return Err(self.region_error(trace, of_bank).into());
            }
            Err(error) => return Err(error.into()),
        };
        (buffer.allocation, buffer.address) = (Some(id), BankAddr::new(address.get()));
        Ok(buffer)
    }

    fn region_error(&self, trace: TraceName, bytes: u64) -> TraceError {
        let statistics = self.statistics(BufferType::Trace);
        let taken: u64 = statistics.owners.iter().map(|owned| owned.range.end - owned.range.start).sum();
        let expected = (taken + bytes).next_multiple_of(DRAM_ALIGN.into());
        TraceError::Region { trace, bytes, free: statistics.largest_free_block, expected }
    }
}

/// Pages of a buffer for commands.
pub(crate) fn pages(bytes: usize) -> u32 {
    u32_of(bytes.div_ceil(1 << LOG_PAGE))
}
