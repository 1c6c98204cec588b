//! Worker firmware: five images built together, and their memory map.
//!
//! Ours is built in. Another set is five ELF files ([`FILES`]) whose memory map ([`MemoryMap`])
//! comes from three places: what the files say (text, local data), what its user says
//! ([`MapValues`]), and for the rest the original's map (`map`). What is
//! impossible in it is an error with file and field, before anything runs.

mod map;
mod queue;
#[cfg(test)]
mod tests;

pub use map::{LocalInit, MapValues};
pub use queue::{QUEUE_FILES, QueueFirmware, QueueValues};

use crate::device::l1_banks;
use crate::elf::{ElfError, Exports, FirmwareImage, KernelImage, Outline, symbol_address, symbol_size};
use crate::prebuilt::{self, CqKernels};
use std::sync::Arc;
use tilework_abi::addr::L1Addr;
use tilework_abi::board::Board;
use tilework_abi::convert::u32_of;
use tilework_abi::cq::layout::{KERNEL_TEXT_OFFSET, dispatch_core, prefetch_core, prefetch_d_core};
use tilework_abi::cq::tiles::{DispatchLayout, Part};
use tilework_abi::globals::BANK_TABLE_SYMBOL;
use tilework_abi::l1::{MemoryMap, WORKER, bank_table};
use tilework_abi::noc::NocXy;
use tilework_abi::tensix::Processor;

/// Names of the files of a set, in the order of [`Processor::ALL`].
pub const FILES: [&str; 5] = ["brisc.elf", "ncrisc.elf", "trisc0.elf", "trisc1.elf", "trisc2.elf"];

/// What is wrong with a set of firmware.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum FirmwareError {
    /// A file that is not firmware of its core.
    #[error(transparent)]
    Elf(#[from] ElfError),
    /// An impossible value of the memory map, given or derived.
    #[error("{file}: {field}: found {found}, expected {expected}")]
    Map {
        /// The map's file, or the ELF file that shows it.
        file: String,
        /// The value.
        field: String,
        /// What it is.
        found: String,
        /// What it should be.
        expected: String,
    },
}

impl FirmwareError {
    fn map(file: &str, field: impl Into<String>, found: impl ToString, expected: impl Into<String>) -> Self {
        let (field, found, expected) = (field.into(), found.to_string(), expected.into());
        Self::Map { file: file.to_owned(), field, found, expected }
    }
}

/// One file of a set.
#[derive(Clone, Debug)]
pub struct FirmwareFile {
    /// Its name in messages.
    pub name: String,
    /// Its content.
    pub data: Arc<[u8]>,
}

/// Firmware for the five cores of a worker, with its memory map.
#[derive(Clone, Debug)]
pub struct FirmwareSet {
    pub(crate) images: [FirmwareImage; 5],
    pub(crate) map: MemoryMap,
    /// The file that is compiled for a number of DRAM banks, and the number.
    dram_banks: Option<(String, u32)>,
    /// How many L1 banks it is compiled for.
    l1_banks: L1Banks,
}

/// How many L1 banks firmware is compiled for.
#[derive(Clone, Debug)]
enum L1Banks {
    /// Any: it reads the number from the bank table.
    Any,
    /// No file says; those of the seed's, if there are as many.
    Usual,
    /// As the file says.
    Table(String, u32),
}

impl FirmwareSet {
    /// Our own.
    ///
    /// # Errors
    /// None with images that pass the tests.
    pub fn prebuilt() -> Result<Self, FirmwareError> {
        Ok(Self { images: prebuilt::worker_firmware(&WORKER)?, map: WORKER, dram_banks: None, l1_banks: L1Banks::Any })
    }

    /// A set from its files, in the order of [`Processor::ALL`]. `map_name` is the file of `values`
    /// in messages.
    ///
    /// # Errors
    /// A file that is not firmware of its core; an impossible map.
    pub fn load(files: &[FirmwareFile; 5], map_name: &str, values: &MapValues) -> Result<Self, FirmwareError> {
        let mut outlines = Vec::with_capacity(files.len());
        for (file, processor) in files.iter().zip(Processor::ALL) {
            outlines.push(Outline::read(&file.name, &file.data, processor)?);
        }
        let map = map::derive(&outlines, map_name, values)?;
        map::check(&outlines, &map, map_name, values)?;
        let (dram_banks, l1_banks) = bank_tables(files)?;
        let load = |p: Processor| {
            let file = &files[p.index()];
            FirmwareImage::load(&file.name, file.data.clone(), p, &map)
        };
        let [brisc, ncrisc, trisc0, trisc1, trisc2] = Processor::ALL;
        let images = [load(brisc)?, load(ncrisc)?, load(trisc0)?, load(trisc1)?, load(trisc2)?];
        Ok(Self { images, map, dram_banks, l1_banks })
    }

    /// Its memory map.
    pub fn map(&self) -> &MemoryMap {
        &self.map
    }
    /// The firmware of each core, in the order of [`Processor::ALL`].
    pub fn images(&self) -> &[FirmwareImage; 5] {
        &self.images
    }

    /// The bytes of a kernel as a host stores them at `at` for this firmware, a multiple of 16.
    ///
    /// # Errors
    /// A kernel that was linked with other firmware, or that cannot be moved there.
    pub fn place(&self, kernel: &KernelImage, at: L1Addr) -> Result<Vec<u8>, FirmwareError> {
        let image = &self.images[kernel.processor().index()];
        kernel.check_firmware(&image.exports(&self.map))?;
        Ok(kernel.relocate(at, &self.map)?)
    }

    /// What kernels may be linked with, of each processor.
    pub(crate) fn exports(&self) -> [Exports; 5] {
        self.images.each_ref().map(|image| image.exports(&self.map))
    }

    /// The tiles of the L1 banks on a board with these workers. Other firmware than ours is
    /// compiled for a number of banks, and so are its kernels; it gets the first ones.
    ///
    /// # Errors
    /// A table of more banks than there are workers.
    pub fn l1_banks(&self, workers: &[NocXy]) -> Result<Vec<NocXy>, FirmwareError> {
        let mut banks = l1_banks(workers);
        match &self.l1_banks {
            L1Banks::Any => {}
            L1Banks::Usual => banks.truncate(bank_table::SEED_L1_BANKS as usize),
            L1Banks::Table(file, count) => {
                if *count as usize > banks.len() {
                    let found = format!("a table for {count} L1 banks");
                    let expected = format!("one for at most {}: the workers", banks.len());
                    return Err(FirmwareError::map(file, format!("symbol {L1_TABLE}"), found, expected));
                }
                banks.truncate(*count as usize);
            }
        }
        Ok(banks)
    }

    /// Checks that it fits a board and, where there is a command queue, that the queue's memory and
    /// its own do not overlap.
    ///
    /// # Errors
    /// Bank tables of another size; a map that reaches into the queues.
    pub fn check(&self, board: Board, queue: Option<(DispatchLayout, &CqKernels)>) -> Result<(), FirmwareError> {
        let banks = u32_of(board.dram().banks().len());
        if let Some((file, found)) = &self.dram_banks
            && *found != banks
        {
            let expected = format!("one for {banks}: the DRAM banks of a {}", board.name());
            return Err(FirmwareError::map(
                file,
                format!("symbol {DRAM_TABLE}"),
                format!("a table for {found} DRAM banks"),
                expected,
            ));
        }
        match queue {
            Some((layout, kernels)) => self.check_queue(layout, kernels),
            None => Ok(()),
        }
    }

    /// Checks that the command queue's memory on the dispatch cores does not overlap this set's.
    fn check_queue(&self, layout: DispatchLayout, kernels: &CqKernels) -> Result<(), FirmwareError> {
        let m = &self.map;
        let of_tile = |parts: &&[Part]| parts.iter().map(|&part| u64::from(kernels.of(part).size()) + 16).sum();
        let text: u64 = layout.row().tiles.iter().map(of_tile).max().unwrap_or(0);
        let text = u32::try_from(text).unwrap_or(u32::MAX);
        let own = |field: &'static str, start: L1Addr, bytes: u32| {
            (field, start..start.checked_add(bytes).unwrap_or(L1Addr::new(u32::MAX)))
        };
        let mut areas = vec![
            own("mailbox", m.mailbox, m.profiler_control.offset_from(m.mailbox).unwrap_or(0)),
            own("kernel_config", m.kernel_config, KERNEL_TEXT_OFFSET.saturating_add(text)),
            own("bank_table", m.bank_table, bank_table::BYTES),
        ];
        areas.extend(Processor::ALL.map(|p| ("firmware text", m.firmware_text[p.index()]..m.firmware_end[p.index()])));
        let last = match layout {
            DispatchLayout::Split => prefetch_d_core::RECORDS.end(),
            _ => dispatch_core::DISPATCH_S_CB.end(),
        };
        let queues = L1Addr::new(prefetch_core::PREFETCH_Q_RD_PTR)..last;
        for (field, area) in areas {
            if area.start < queues.end && queues.start < area.end {
                let found = format!("{}..{} on a dispatch core", area.start, area.end);
                let expected = format!(
                    "no overlap with the command queue at {}..{}; slow dispatch needs none",
                    queues.start, queues.end
                );
                return Err(FirmwareError::map("memory map", field, found, expected));
            }
        }
        Ok(())
    }
}

/// The firmware's own copies of the bank table (public sources of tt-metal, `noc_nonblocking_api.h`
/// and its firmware): arrays `[2][banks]` of u16.
const DRAM_TABLE: &str = "dram_bank_to_noc_xy";
const L1_TABLE: &str = "l1_bank_to_noc_xy";
/// Bytes of such an array for each bank.
const TABLE_BYTES: u32 = 4;

/// Firmware that copies the bank table is compiled for its size: the numbers of banks of DRAM and
/// of L1, if the symbols have sizes. Ours reads the number of L1 banks, and says so by a symbol.
fn bank_tables(files: &[FirmwareFile; 5]) -> Result<(Option<(String, u32)>, L1Banks), FirmwareError> {
    let reads_it = files.iter().any(|file| symbol_address(&file.data, BANK_TABLE_SYMBOL).is_some());
    let (mut dram, mut l1) = (None, if reads_it { L1Banks::Any } else { L1Banks::Usual });
    for file in files {
        if let Some(banks) = symbol_size(&file.data, L1_TABLE).map(|bytes| bytes / TABLE_BYTES) {
            match &l1 {
                L1Banks::Table(first, expected) if *expected != banks => {
                    let (found, expected) =
                        (format!("a table for {banks} L1 banks"), format!("{expected}, as in {first}"));
                    return Err(FirmwareError::map(&file.name, format!("symbol {L1_TABLE}"), found, expected));
                }
                _ => l1 = L1Banks::Table(file.name.clone(), banks),
            }
        }
        let banks = symbol_size(&file.data, DRAM_TABLE).map(|bytes| (file.name.clone(), bytes / TABLE_BYTES));
        dram = dram.or(banks);
    }
    Ok((dram, l1))
}
