//! The memory that programs of a board share: the data space of every worker's L1 and the DRAM
//! banks. It is a value of its own, so that a program can be placed without a chip.

use super::{Allocator, Buffer, DType, L1Buffer, MemoryError};
use tilework_abi::addr::{DramAddr, L1Addr};
use tilework_abi::board::{Board, DRAM_BANK_BYTES};
use tilework_abi::convert::u32_of;
use tilework_abi::l1::MemoryMap;
use tilework_abi::{DRAM_ALIGN, L1_ALIGN};

/// The first bytes of each bank hold the flags that a host's barrier uses (seed's system,
/// `Dram.WRITE_OFFSET`).
const DRAM_START: u64 = 0x40;

/// The allocators of a board's L1 and DRAM.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MemorySpace {
    l1: Allocator<L1Addr>,
    dram: Allocator<DramAddr>,
    banks: u32,
}

impl MemorySpace {
    /// The memory of `board` under firmware with `map`, all free.
    pub fn new(board: Board, map: &MemoryMap) -> Self {
        let dram = DramAddr::new(DRAM_START)..DramAddr::new(DRAM_BANK_BYTES);
        // 64 rather than 16: data often goes straight to and from DRAM.
        let align = u64::from(L1_ALIGN.max(DRAM_ALIGN));
        Self {
            l1: Allocator::new("L1", map.data..map.data_end, align),
            dram: Allocator::new("DRAM (each bank)", dram, DRAM_ALIGN.into()),
            banks: u32_of(board.dram().banks().len()),
        }
    }

    /// The allocator of the workers' data space.
    pub fn l1(&self) -> &Allocator<L1Addr> {
        &self.l1
    }
    /// The allocator of the DRAM banks, all of which are allocated alike.
    pub fn dram(&self) -> &Allocator<DramAddr> {
        &self.dram
    }

    /// Allocates DRAM for an array, interleaved over the banks in pages of `page_size` bytes (a
    /// multiple of 64).
    ///
    /// # Errors
    /// No room; an invalid page size or shape.
    pub fn alloc_dram(
        &mut self,
        name: &str,
        shape: &[usize],
        dtype: DType,
        page_size: u32,
    ) -> Result<Buffer, MemoryError> {
        let mut buffer = Buffer::layout(name, shape, dtype, page_size, self.banks)?;
        buffer.address = self.dram.low(name, buffer.bytes_per_bank())?;
        Ok(buffer)
    }

    /// Frees the memory of a buffer.
    pub fn free_dram(&mut self, buffer: &Buffer) {
        self.dram.free_at(buffer.address);
    }

    /// Allocates `bytes` bytes of every worker's L1, at the same address on all.
    ///
    /// # Errors
    /// No room; the message lists the owners.
    pub fn alloc_l1(&mut self, name: &str, bytes: u32) -> Result<L1Buffer, MemoryError> {
        let address = self.l1.high(name, bytes.into())?;
        Ok(L1Buffer { name: name.to_owned(), address, bytes })
    }

    /// Frees the memory of an L1 buffer.
    pub fn free_l1(&mut self, buffer: &L1Buffer) {
        self.l1.free_at(buffer.address);
    }
}
