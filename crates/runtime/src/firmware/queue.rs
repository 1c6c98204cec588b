//! Kernels of the command queue that others built.
//!
//! Prefetcher, dispatcher and subordinate have everything compiled in that ours get as arguments:
//! rings, pages, the host region, their own tiles. Host and kernels share one map, so what others'
//! are compiled for must be what the host has. It comes from three places: the symbols of the files
//! (the prefetcher's variables start with its addresses), a file of values that the user gives
//! ([`QueueValues`]), and otherwise the original's configuration (`cq_fixed_config.hpp`), which is
//! ours as well. The kernels themselves may lie anywhere; semaphores are those of the original's
//! `device.py`.

use super::FirmwareError;
use crate::elf::{KernelImage, initial_word};
use crate::prebuilt::{self, CqKernels};
use std::sync::Arc;
use tilework_abi::board::Board;
use tilework_abi::cq::layout::{DONE_STREAM, HOST_REGION_NOC_BASE, SemaphoreId, dispatch_core, host, prefetch_core};
use tilework_abi::cq::tiles::DispatchLayout;
use tilework_abi::tensix::Processor;

/// The files of a set: their names here, and in public folders.
pub const QUEUE_FILES: [[&str; 2]; 3] = [
    ["prefetch.elf", "cq_prefetch_brisc.elf"],
    ["dispatch.elf", "cq_dispatch_brisc.elf"],
    ["dispatch-s.elf", "cq_dispatch_subordinate_ncrisc.elf"],
];

/// What a set is compiled for, where it is not the original's configuration.
#[derive(serde::Deserialize, Clone, PartialEq, Eq, Default, Debug)]
#[serde(deny_unknown_fields)]
pub struct QueueValues {
    /// Tile of the prefetcher, x and y.
    pub prefetch_tile: Option<[u8; 2]>,
    /// Tile of the dispatcher, x and y.
    pub dispatch_tile: Option<[u8; 2]>,
    /// Where the cores see the issue region.
    pub issue: Option<u32>,
    /// Its bytes.
    pub issue_size: Option<u32>,
    /// Where the cores see the completion FIFO.
    pub completion: Option<u32>,
    /// Its bytes.
    pub completion_size: Option<u32>,
    /// The fetch queue in the prefetcher's L1.
    pub prefetch_q: Option<u32>,
    /// Its entries.
    pub prefetch_q_entries: Option<u32>,
    /// The dispatch ring in the dispatcher's L1.
    pub dispatch_cb: Option<u32>,
    /// Its pages of 4096 bytes.
    pub dispatch_cb_pages: Option<u32>,
    /// First completion stream of the workers.
    pub first_stream: Option<u32>,
    /// Initial values of the prefetch tile's semaphores.
    pub prefetch_semaphores: Option<[u32; SemaphoreId::COUNT as usize]>,
    /// Initial values of the dispatch tile's semaphores.
    pub dispatch_semaphores: Option<[u32; SemaphoreId::COUNT as usize]>,
}

/// Variables of the original's prefetcher that start with an address, and what the host has there.
fn variables() -> [(&'static str, u32); 3] {
    [
        ("_ZL13pcie_read_ptr", host::ISSUE.noc_addr()),
        ("_ZL19downstream_data_ptr", dispatch_core::DISPATCH_CB.base().get()),
        ("_ZL21downstream_data_ptr_s", dispatch_core::DISPATCH_S_CB.base().get()),
    ]
}

/// A set of kernels of the command queue that others built.
#[derive(Clone, Debug)]
pub struct QueueFirmware {
    kernels: CqKernels,
    file: String,
    tiles: [(&'static str, Option<[u8; 2]>); 2],
    /// Whether its tiles are compiled in: ours get them as arguments.
    fixed: bool,
}

impl QueueFirmware {
    /// The set of these files (names and contents), in the order of [`QUEUE_FILES`]. `file` is that
    /// of `values` in messages.
    ///
    /// # Errors
    /// A file that is no such kernel; a set that is compiled for other places than the host's.
    pub fn load(files: [(String, Arc<[u8]>); 3], file: &str, values: &QueueValues) -> Result<Self, FirmwareError> {
        check_values(file, values)?;
        let [prefetch, dispatch, subordinate] = files;
        for (symbol, expected) in variables() {
            if let Some(found) = initial_word(&prefetch.1, symbol).filter(|&found| found != expected) {
                let field = format!("first value of {symbol}");
                return Err(FirmwareError::map(&prefetch.0, field, hex(found), ours(expected)));
            }
        }
        let load = |(name, data): (String, Arc<[u8]>), p| KernelImage::load(&name, data, p).map(Arc::new);
        let own = prebuilt::cq_kernels()?;
        let kernels = CqKernels {
            prefetch: load(prefetch, Processor::Brisc)?,
            dispatch: load(dispatch, Processor::Brisc)?,
            dispatch_s: load(subordinate, Processor::Ncrisc)?,
            ..own
        };
        let fixed = !kernels.prefetch.takes_binding();
        let tiles = [("prefetch_tile", values.prefetch_tile), ("dispatch_tile", values.dispatch_tile)];
        Ok(Self { kernels, file: file.to_owned(), tiles, fixed })
    }

    /// The kernels, for a device of `board` in dispatch layout `layout`.
    ///
    /// # Errors
    /// Another layout than the original's; tiles that are not those of the board.
    pub fn kernels(&self, board: Board, layout: DispatchLayout) -> Result<CqKernels, FirmwareError> {
        if layout != DispatchLayout::Dispatcher {
            let expected = format!("{}, for which the kernels are built", DispatchLayout::Dispatcher);
            return Err(FirmwareError::map(&self.file, "dispatch layout", layout, expected));
        }
        // The original runs on a P100 and has its tiles compiled in.
        let usual = [Board::P100.prefetch_core(), Board::P100.dispatch_core()];
        let own = [board.prefetch_core(), board.dispatch_core()];
        for (((field, given), usual), own) in self.tiles.iter().zip(usual).zip(own) {
            let compiled = given.or(self.fixed.then_some([usual.x, usual.y]));
            if let Some(found) = compiled.filter(|&at| at != [own.x, own.y]) {
                let expected = format!("{:?}, that of a {}", [own.x, own.y], board.name());
                return Err(FirmwareError::map(&self.file, *field, format!("{found:?}"), expected));
            }
        }
        Ok(self.kernels.clone())
    }
}

fn hex(value: u32) -> String {
    format!("{value:#x}")
}

fn ours(value: u32) -> String {
    format!("{value:#x}, where the host has it")
}

/// Checks that all given values are those of the host.
fn check_values(file: &str, values: &QueueValues) -> Result<(), FirmwareError> {
    let words = [
        ("issue", values.issue, host::ISSUE.noc_addr()),
        ("issue_size", values.issue_size, host::ISSUE.size()),
        ("completion", values.completion, host::COMPLETION.noc_addr()),
        ("completion_size", values.completion_size, host::COMPLETION.size()),
        ("prefetch_q", values.prefetch_q, prefetch_core::PREFETCH_Q.base().get()),
        ("prefetch_q_entries", values.prefetch_q_entries, prefetch_core::PREFETCH_Q_ENTRIES),
        ("dispatch_cb", values.dispatch_cb, dispatch_core::DISPATCH_CB.base().get()),
        ("dispatch_cb_pages", values.dispatch_cb_pages, dispatch_core::DISPATCH_CB.pages().get()),
        ("first_stream", values.first_stream, DONE_STREAM),
    ];
    if let Some((field, Some(found), own)) = words.into_iter().find(|&(_, given, own)| given.is_some_and(|v| v != own))
    {
        return Err(FirmwareError::map(file, field, hex(found), ours(own)));
    }
    let semaphores = [
        ("prefetch_semaphores", values.prefetch_semaphores, prefetch_core::SEM_INIT),
        ("dispatch_semaphores", values.dispatch_semaphores, dispatch_core::SEM_INIT),
    ];
    match semaphores.into_iter().find(|&(_, given, own)| given.is_some_and(|v| v != own)) {
        Some((field, Some(found), own)) => {
            Err(FirmwareError::map(file, field, format!("{found:?}"), format!("{own:?}, what the host stores")))
        }
        _ => Ok(()),
    }
}
const _: () = assert!(HOST_REGION_NOC_BASE == 0x4000_0000, "cq_fixed_config.hpp");
