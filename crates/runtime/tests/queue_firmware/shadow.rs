//! What memory must look like: the write commands of seed 001 section 4.2 and 4.3, on plain arrays.
//!
//! Nothing here is shared with the firmware or the simulator: a command's fields, and which tile
//! has which coordinates.

use crate::rig::first_difference;
use std::collections::BTreeMap;
use tilework_abi::board::Board;
use tilework_abi::cq::tiles::Queues;
use tilework_abi::noc::NocXy;
use tilework_cq::DispatchCommand;
use tilework_cq::dispatch::{PackedTargets, Packets, WriteOffsets};
use tilework_driver::{Card, Target};
use tilework_sim::Chip;

/// First byte of each worker's L1 that the shadow covers.
pub(crate) const L1_BASE: u32 = 0x40_000;
/// Bytes of each worker's L1 that it covers.
pub(crate) const L1_BYTES: u32 = 0x60_000;
/// First byte of each DRAM bank that it covers.
pub(crate) const DRAM_BASE: u32 = 0x10_0000;
/// Bytes of each DRAM bank that it covers.
pub(crate) const DRAM_BYTES: u32 = 0x8_0000;

/// L1 of all workers, and DRAM.
pub(crate) struct Shadow {
    board: Board,
    /// Tiles of the queues.
    tiles: usize,
    workers: BTreeMap<NocXy, Vec<u8>>,
    banks: Vec<Vec<u8>>,
    offsets: [u32; 4],
}

impl Shadow {
    /// All zero, as on a chip that was just powered on.
    pub(crate) fn new(board: Board, queues: Queues) -> Self {
        Self {
            board,
            tiles: queues.tile_count(),
            workers: queues.workers(board).map(|w| (w, vec![0; L1_BYTES as usize])).collect(),
            banks: vec![vec![0; DRAM_BYTES as usize]; board.dram().banks().len()],
            offsets: [0; 4],
        }
    }

    /// The board.
    pub(crate) fn board(&self) -> Board {
        self.board
    }
    /// Number of DRAM banks.
    pub(crate) fn banks(&self) -> usize {
        self.banks.len()
    }
    /// Number of L1 banks: all workers.
    pub(crate) fn l1_banks(&self) -> usize {
        self.workers.len()
    }
    /// What DRAM bank `bank` must hold.
    pub(crate) fn bank(&self, bank: usize) -> &[u8] {
        &self.banks[bank]
    }
    /// What worker `tile` must hold.
    pub(crate) fn worker(&self, tile: NocXy) -> &[u8] {
        self.workers.get(&tile).unwrap_or_else(|| panic!("{tile} is no worker"))
    }

    /// The tile of L1 bank `bank`: along the rows of all Tensix columns, the queues' cores at the
    /// top of the last column left out.
    pub(crate) fn l1_bank(&self, bank: usize) -> NocXy {
        let columns = self.board.worker_columns();
        let (short, long) = (columns.len() - 1, columns.len());
        let (row, column) = match bank.checked_sub(self.tiles * short) {
            None => (bank / short, bank % short),
            Some(behind) => (self.tiles + behind / long, behind % long),
        };
        NocXy::new(columns[column], 2 + row as u8)
    }

    fn store(&mut self, tile: NocXy, address: u32, data: &[u8]) {
        let l1 = self.workers.get_mut(&tile).unwrap_or_else(|| panic!("{tile} is no worker"));
        let at = (address - L1_BASE) as usize;
        l1[at..at + data.len()].copy_from_slice(data);
    }

    /// Stores in all workers of a rectangle as NoC 1 names it: larger corner first. It must hold
    /// `count` of them.
    fn store_rect(&mut self, rect: u32, count: u32, address: u32, data: &[u8]) {
        let (high, low) = (NocXy::decode(rect >> 12), NocXy::decode(rect));
        let inside = |w: &NocXy| (low.x..=high.x).contains(&w.x) && (low.y..=high.y).contains(&w.y);
        let tiles: Vec<NocXy> = self.board.tensix_tiles().filter(inside).collect();
        assert_eq!(tiles.len() as u32, count, "recipients of {low} to {high}");
        for tile in tiles {
            self.store(tile, address, data);
        }
    }

    /// Does what a command must do to memory.
    pub(crate) fn apply(&mut self, command: &DispatchCommand) {
        match command {
            DispatchCommand::WriteLinear(write) => {
                let address = write.addr as u32 + self.offsets[usize::from(write.write_offset_index)];
                match write.num_mcast_dests {
                    0 => self.store(NocXy::decode(write.noc_xy), address, &write.data),
                    n => self.store_rect(write.noc_xy, n.into(), address, &write.data),
                }
            }
            DispatchCommand::WritePaged(write) => {
                let size = write.page_size;
                for (page, data) in write.data.chunks(size as usize).enumerate() {
                    let page = usize::from(write.start_page) + page;
                    let banks = if write.is_dram { self.banks.len() } else { self.workers.len() };
                    let address = write.base_addr + (page / banks) as u32 * size;
                    if write.is_dram {
                        let at = (address - DRAM_BASE) as usize;
                        self.banks[page % banks][at..at + data.len()].copy_from_slice(data);
                    } else {
                        self.store(self.l1_bank(page % banks), address, data);
                    }
                }
            }
            DispatchCommand::WritePacked(write) => {
                let address = write.addr + self.offsets[usize::from(write.write_offset_index)];
                let packet = |i: usize| match &write.packets {
                    Packets::Shared(packet) => packet,
                    Packets::PerTarget(packets) => &packets[i],
                };
                match &write.targets {
                    PackedTargets::Unicast(targets) => {
                        for (i, &xy) in targets.iter().enumerate() {
                            self.store(NocXy::decode(xy), address, packet(i));
                        }
                    }
                    PackedTargets::Multicast(targets) => {
                        for (i, &(rect, count)) in targets.iter().enumerate() {
                            self.store_rect(rect, count, address, packet(i));
                        }
                    }
                }
            }
            DispatchCommand::WritePackedLarge(write) => {
                let offset = self.offsets[usize::from(write.write_offset_index)];
                for sub in &write.subs {
                    self.store_rect(sub.noc_xy, sub.num_mcast_dests.into(), sub.addr + offset, &sub.data);
                }
            }
            DispatchCommand::SetWriteOffset(WriteOffsets { offsets, .. }) => {
                self.offsets[..offsets.len()].copy_from_slice(offsets)
            }
            _ => {}
        }
    }

    /// Compares the chip's memory with this.
    pub(crate) fn check(&self, card: &mut Card<Chip>) {
        for (&tile, expected) in &self.workers {
            let l1 = card.link().l1(tile).unwrap();
            let found = &l1[L1_BASE as usize..(L1_BASE + L1_BYTES) as usize];
            if let Some((at, found, expected)) = first_difference(found, expected) {
                panic!("L1 of {tile} at {:#x}: found {found:#x}, expected {expected:#x}", L1_BASE as usize + at);
            }
        }
        let dram = self.board.dram();
        for (bank, expected) in self.banks.iter().enumerate() {
            let mut found = vec![0; DRAM_BYTES as usize];
            card.read(&Target::tile(dram.port(bank, 0)), DRAM_BASE, &mut found).unwrap();
            if let Some((at, found, expected)) = first_difference(&found, expected) {
                panic!("DRAM bank {bank} at {:#x}: found {found:#x}, expected {expected:#x}", DRAM_BASE as usize + at);
            }
        }
    }
}
