//! Commands whose data comes from memory: the header is relayed inline and stays open, a relay from
//! a node or from an interleaved buffer brings the rest.

use crate::random::Random;
use crate::shadow::{DRAM_BASE, DRAM_BYTES, L1_BASE, L1_BYTES, Shadow};
use tilework_abi::cq::layout::prefetch_core::SCRATCH_DB;
use tilework_abi::cq::prefetch::{MAX_PAGED_SOURCE_BYTES, RELAY_PAGED_PACKED_MAX_SUBS};
use tilework_abi::noc::NocXy;
use tilework_cq::dispatch::{HostWrite, LinearWrite, PagedWrite};
use tilework_cq::prefetch::{LinearRelay, LinearRelayH, PagedRelay, PagedSource};
use tilework_cq::{DispatchCommand, PrefetchCommand};

/// Most bytes that a write may carry, so that it stays in the part of memory that the shadow
/// covers.
const MOST: usize = 200_000;

/// A command in two parts.
pub(crate) struct Sourced {
    /// The whole command, as the dispatcher sees it.
    pub command: DispatchCommand,
    /// Its first bytes, which are relayed inline.
    pub header: usize,
    /// What brings the others.
    pub source: PrefetchCommand,
}

impl Sourced {
    /// `command`, which carries `data` at its end.
    pub(crate) fn new(command: DispatchCommand, data: usize, source: PrefetchCommand) -> Self {
        let header = command.to_bytes().unwrap().len() - data;
        Self { command, header, source }
    }

    /// A write of `data` to the host.
    pub(crate) fn to_host(data: Vec<u8>, source: PrefetchCommand) -> Self {
        let bytes = data.len();
        Self::new(DispatchCommand::WriteLinearHHost(HostWrite { is_event: false, payload: data }), bytes, source)
    }
}

/// The relay of all of an interleaved DRAM buffer, and what it brings.
pub(crate) fn dram_pages(shadow: &Shadow, relay: PagedRelay) -> (Vec<u8>, PrefetchCommand) {
    let PagedRelay { is_dram, length_adjust, start_page, base_addr, page_size, pages } = relay;
    let mut data = shadow.pages(is_dram, start_page.into(), base_addr, page_size, pages);
    data.truncate(data.len() - usize::from(length_adjust));
    (data, PrefetchCommand::RelayPaged(relay))
}

impl Random {
    /// A command of about `bytes` bytes of data that lie in memory.
    pub(crate) fn sourced(&mut self, shadow: &Shadow, bytes: usize) -> Sourced {
        let bytes = bytes.clamp(1, MOST);
        let (data, source) = match self.below(5) {
            0 => self.node_source(shadow, bytes),
            1 => self.l1_source(shadow, bytes),
            2 => self.packed_source(shadow, bytes),
            _ => self.dram_source(shadow, bytes),
        };
        let length = data.len();
        // More than half of the scratch buffer is still being read when its start is written: it
        // must not go where it comes from.
        let from_dram = matches!(source, PrefetchCommand::RelayPagedPacked(_))
            || matches!(source, PrefetchCommand::RelayPaged(PagedRelay { is_dram: true, .. }));
        let command = loop {
            let command = self.carrying(data.clone());
            let apart = match command {
                DispatchCommand::WriteLinearHHost(_) => true,
                DispatchCommand::WriteLinear(_) => from_dram,
                _ => matches!(source, PrefetchCommand::RelayPaged(PagedRelay { is_dram: false, .. })),
            };
            if apart || length <= SCRATCH_DB.size() as usize / 2 {
                break command;
            }
        };
        Sourced::new(command, length, source)
    }

    /// Bytes of one worker or one bank.
    fn node_source(&mut self, shadow: &Shadow, bytes: usize) -> (Vec<u8>, PrefetchCommand) {
        let (node, base, room) = match self.coin() {
            true => (self.worker(), L1_BASE, L1_BYTES),
            false => (shadow.dram_port(self.below(7) as usize), DRAM_BASE, DRAM_BYTES),
        };
        let addr = base + 16 * self.below((room - bytes as u32) / 16);
        let data = shadow.node(node, addr, bytes);
        let (noc_xy, addr) = (node.encode(), addr.into());
        let source = match self.coin() && bytes <= 100_000 {
            true => PrefetchCommand::RelayLinearH(LinearRelayH { noc_xy, addr, length: bytes as u32 }),
            false => PrefetchCommand::RelayLinear(LinearRelay { noc_xy, addr, length: bytes as u64 }),
        };
        (data, source)
    }

    /// What a relay leaves out at its end: less than a page.
    fn adjust(&mut self, page_size: u32) -> u16 {
        let most = page_size.min(0x8000);
        match self.coin() {
            true => 0,
            false => self.below(most) as u16,
        }
    }

    fn dram_source(&mut self, shadow: &Shadow, bytes: usize) -> (Vec<u8>, PrefetchCommand) {
        // A row of pages holds at least 7 of them.
        let page_size = 64 * (1 + self.below((bytes / 64).clamp(1, 1500) as u32));
        let start_page = self.below(256.min(7 * (DRAM_BYTES / 4 / page_size)));
        let pages = (bytes as u32 / page_size).max(1);
        let base_addr = DRAM_BASE + 64 * self.below(64);
        let (start_page, length_adjust) = (start_page as u8, self.adjust(page_size));
        dram_pages(shadow, PagedRelay { is_dram: true, length_adjust, start_page, base_addr, page_size, pages })
    }

    /// Up to 35 buffers.
    fn packed_source(&mut self, shadow: &Shadow, bytes: usize) -> (Vec<u8>, PrefetchCommand) {
        let (mut data, mut sources) = (Vec::new(), Vec::new());
        let count = 1 + self.below(RELAY_PAGED_PACKED_MAX_SUBS as u32) as usize;
        while sources.len() < count && (data.is_empty() || data.len() < bytes) {
            let log_page_size = 6 + self.below(11) as u16;
            let most = (bytes / count).clamp(64, MAX_PAGED_SOURCE_BYTES as usize) as u32;
            let length = 64 * (1 + self.below(most / 64));
            let (start_page, base_addr) = (self.below(7) as u16, DRAM_BASE + 64 * self.below(64));
            let size = 1 << log_page_size;
            let pages = shadow.pages(true, start_page.into(), base_addr, size, length.div_ceil(size));
            data.extend(&pages[..length as usize]);
            sources.push(PagedSource { start_page, log_page_size, base_addr, length });
        }
        (data, PrefetchCommand::RelayPagedPacked(sources))
    }

    fn l1_source(&mut self, shadow: &Shadow, bytes: usize) -> (Vec<u8>, PrefetchCommand) {
        let page_size = 16 * (1 + self.below((bytes / 16).clamp(1, 3000) as u32));
        let start_page = self.below(256);
        let pages = (bytes as u32 / page_size).max(1);
        let base_addr = L1_BASE + 16 * self.below(64);
        let (start_page, length_adjust) = (start_page as u8, self.adjust(page_size));
        dram_pages(shadow, PagedRelay { is_dram: false, length_adjust, start_page, base_addr, page_size, pages })
    }

    /// Any write that carries exactly `data`.
    pub(crate) fn carrying(&mut self, data: Vec<u8>) -> DispatchCommand {
        let bytes = data.len();
        match self.below(4) {
            0 => DispatchCommand::WriteLinearHHost(HostWrite { is_event: self.coin(), payload: data }),
            1 if bytes.is_multiple_of(16) => {
                let sizes = [16, 64, 512, 2048, bytes].into_iter().filter(|&size| bytes.is_multiple_of(size));
                let sizes: Vec<usize> = sizes.filter(|&size| bytes / size <= 2000).collect();
                let page_size = self.one_of(&sizes) as u32;
                let (start_page, base_addr) = (self.below(7) as u16, DRAM_BASE + 64 * self.below(64));
                DispatchCommand::WritePaged(PagedWrite { is_dram: true, start_page, base_addr, page_size, data })
            }
            n => {
                let (noc_xy, num_mcast_dests) = match n {
                    2 => {
                        let (rect, count) = self.rect();
                        (rect.encode_noc1(), count as u8)
                    }
                    _ => (self.worker().encode(), 0),
                };
                let (write_offset_index, addr) = (self.below(4) as u8, self.address().into());
                DispatchCommand::WriteLinear(LinearWrite { num_mcast_dests, write_offset_index, noc_xy, addr, data })
            }
        }
    }
}

impl Shadow {
    /// What lies in `pages` pages of an interleaved buffer.
    pub(crate) fn pages(&self, is_dram: bool, first: usize, base: u32, size: u32, pages: u32) -> Vec<u8> {
        let banks = if is_dram { self.banks() } else { self.l1_banks() };
        (first..first + pages as usize)
            .flat_map(|page| {
                let node = match is_dram {
                    true => self.dram_port(page % banks),
                    false => self.l1_bank(page % banks),
                };
                self.node(node, base + (page / banks) as u32 * size, size as usize)
            })
            .collect()
    }

    /// Where bank `bank` is read.
    pub(crate) fn dram_port(&self, bank: usize) -> NocXy {
        self.board().dram().port(bank, 0)
    }

    /// `bytes` bytes of the worker or the bank at `node`.
    pub(crate) fn node(&self, node: NocXy, address: u32, bytes: usize) -> Vec<u8> {
        let bank = (0..self.banks()).find(|&bank| self.dram_port(bank) == node);
        let (memory, base) = match bank {
            Some(bank) => (self.bank(bank), DRAM_BASE),
            None => (self.worker(node), L1_BASE),
        };
        let at = (address - base) as usize;
        memory[at..at + bytes].to_vec()
    }
}
