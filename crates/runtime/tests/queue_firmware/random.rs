//! Random commands from a seed: every form, any size, any place.

use crate::shadow::{DRAM_BASE, L1_BASE};
use tilework_abi::board::Board;
use tilework_abi::cq::dispatch::{WaitFlags, WritePackedLargeType, WritePackedType};
use tilework_abi::cq::layout::WORKER_SEMS;
use tilework_abi::cq::tiles::{DispatchLayout, Queues};
use tilework_abi::noc::{NocRect, NocXy};
use tilework_cq::DispatchCommand;
use tilework_cq::dispatch::{
    DebugMark, Delay, HostWrite, LargeSub, LinearWrite, NotifySubordinate, NumWorkerSems, PackedLargeWrite,
    PackedTargets, PackedWrite, Packets, PagedWrite, Wait, WriteOffsets,
};

/// The write forms, by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    LinearUnicast,
    LinearMulticast,
    PagedDram,
    PagedL1,
    PackedUnicast,
    PackedUnicastShared,
    PackedMulticast,
    PackedMulticastShared,
    PackedLarge,
    Host,
}

impl Form {
    /// All forms.
    pub(crate) const ALL: [Self; 10] = [
        Self::LinearUnicast,
        Self::LinearMulticast,
        Self::PagedDram,
        Self::PagedL1,
        Self::PackedUnicast,
        Self::PackedUnicastShared,
        Self::PackedMulticast,
        Self::PackedMulticastShared,
        Self::PackedLarge,
        Self::Host,
    ];
}

/// Xorshift with 64 bits, and commands made of it.
pub(crate) struct Random {
    state: u64,
    board: Board,
    /// Tiles of the queues, at the top of the last column.
    tiles: u32,
    workers: Vec<NocXy>,
}

impl Random {
    /// The commands of `seed` for `board`.
    pub(crate) fn new(board: Board, seed: u64) -> Self {
        Self::with(board, DispatchLayout::Dispatcher, seed)
    }
    /// The commands of `seed` for `board` with the queue on the tiles of `layout`.
    pub(crate) fn with(board: Board, layout: DispatchLayout, seed: u64) -> Self {
        Self::beside(board, layout.queues(1), seed)
    }
    /// The commands of `seed` for the workers that these queues leave.
    pub(crate) fn beside(board: Board, queues: Queues, seed: u64) -> Self {
        let state = (seed + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        Self { state, board, tiles: queues.tile_count() as u32, workers: queues.workers(board).collect() }
    }

    fn step(&mut self) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state
    }
    /// A number below `n`.
    pub(crate) fn below(&mut self, n: u32) -> u32 {
        ((self.step() >> 11) % u64::from(n)) as u32
    }
    /// A coin.
    pub(crate) fn coin(&mut self) -> bool {
        self.below(2) == 0
    }
    /// One of `choices`.
    pub(crate) fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u32) as usize]
    }
    /// Random bytes.
    pub(crate) fn bytes(&mut self, n: usize) -> Vec<u8> {
        let mut out = Vec::with_capacity(n + 8);
        while out.len() < n {
            out.extend_from_slice(&self.step().to_le_bytes());
        }
        out.truncate(n);
        out
    }
    /// 1 to `most` bytes, small and large sizes alike.
    pub(crate) fn size(&mut self, most: usize) -> usize {
        let bound = self.one_of(&[16, 100, 600, 4096, 30_000, most]).min(most);
        1 + self.below(bound as u32) as usize
    }
    /// A worker.
    pub(crate) fn worker(&mut self) -> NocXy {
        let i = self.below(self.workers.len() as u32);
        self.workers[i as usize]
    }
    /// A rectangle of workers and their number. Some of them cross the columns without Tensix
    /// tiles.
    pub(crate) fn rect(&mut self) -> (NocRect, u32) {
        let columns = self.board.worker_columns();
        let last = columns.len() as u32 - 1;
        let (a, b) = (self.below(last + 1), self.below(last + 1));
        let (x0, x1) = (columns[a.min(b) as usize], columns[a.max(b) as usize]);
        // The queue's cores are the top of the last column.
        let top = if a.max(b) == last { 2 + self.tiles } else { 2 };
        let (a, b) = (top + self.below(12 - top), top + self.below(12 - top));
        let rect = NocRect { start: NocXy::new(x0, a.min(b) as u8), end: NocXy::new(x1, a.max(b) as u8) };
        let count = columns.iter().filter(|c| (x0..=x1).contains(c)).count() as u32 * (a.abs_diff(b) + 1);
        (rect, count)
    }
    /// An address in the part of L1 that the shadow covers, with room for a write offset and 256
    /// KiB.
    pub(crate) fn address(&mut self) -> u32 {
        L1_BASE + 16 * self.below(0x1000)
    }

    /// A write of this form with about `bytes` bytes of payload in all.
    pub(crate) fn write(&mut self, form: Form, bytes: usize) -> DispatchCommand {
        let write_offset_index = self.below(4);
        match form {
            Form::LinearUnicast | Form::LinearMulticast => {
                let (noc_xy, num_mcast_dests) = if form == Form::LinearUnicast {
                    (self.worker().encode(), 0)
                } else {
                    let (rect, count) = self.rect();
                    (rect.encode_noc1(), count as u8)
                };
                DispatchCommand::WriteLinear(LinearWrite {
                    num_mcast_dests,
                    write_offset_index: write_offset_index as u8,
                    noc_xy,
                    addr: self.address().into(),
                    data: self.bytes(bytes),
                })
            }
            Form::PagedDram => self.paged(true, bytes),
            Form::PagedL1 => self.paged(false, bytes),
            Form::PackedUnicast | Form::PackedMulticast => {
                let most = if form == Form::PackedUnicast { self.workers.len().min(118) } else { 59 };
                let size = (1 + self.below(4096) as usize).min(bytes);
                let count = (bytes / size.next_multiple_of(16)).clamp(1, most);
                let packets = Packets::PerTarget((0..count).map(|_| self.bytes(size)).collect());
                self.packed(form == Form::PackedMulticast, count, packets)
            }
            Form::PackedUnicastShared | Form::PackedMulticastShared => {
                let multicast = form == Form::PackedMulticastShared;
                let most = if multicast { 8 } else { self.workers.len().min(118) };
                let count = 1 + self.below(most as u32) as usize;
                let packet = self.bytes(bytes.min(4096));
                self.packed(multicast, count, Packets::Shared(packet))
            }
            Form::PackedLarge => self.packed_large(bytes),
            Form::Host => {
                DispatchCommand::WriteLinearHHost(HostWrite { is_event: self.coin(), payload: self.bytes(bytes) })
            }
        }
    }

    fn paged(&mut self, is_dram: bool, bytes: usize) -> DispatchCommand {
        let page_size = 16 * (1 + self.below((bytes / 16).clamp(1, 300) as u32));
        let most = (bytes as u32 / page_size).max(1);
        let (start_page, pages) = (self.below(400), most);
        DispatchCommand::WritePaged(PagedWrite {
            is_dram,
            start_page: start_page as u16,
            base_addr: if is_dram { DRAM_BASE + 64 * self.below(64) } else { L1_BASE + 16 * self.below(64) },
            page_size,
            data: self.bytes((pages * page_size) as usize),
        })
    }

    fn packed(&mut self, multicast: bool, count: usize, packets: Packets) -> DispatchCommand {
        let targets = if multicast {
            PackedTargets::Multicast((0..count).map(|_| self.rect()).map(|(r, n)| (r.encode_noc1(), n)).collect())
        } else {
            let from = self.below((self.workers.len() - count) as u32 + 1) as usize;
            PackedTargets::Unicast(self.workers[from..from + count].iter().map(|w| w.encode()).collect())
        };
        DispatchCommand::WritePacked(PackedWrite {
            kind: WritePackedType::None,
            write_offset_index: self.below(4) as u16,
            addr: self.address(),
            targets,
            packets,
        })
    }

    fn packed_large(&mut self, bytes: usize) -> DispatchCommand {
        let alignment = self.one_of(&[16u16, 64]);
        let (mut left, mut subs) = (bytes, Vec::new());
        let mut rect = self.rect();
        while left != 0 && subs.len() < 35 {
            let size = self.size(65_536).min(left);
            left = left.saturating_sub(size.next_multiple_of(alignment.into()));
            let unlink = self.coin();
            let (noc_xy, num_mcast_dests) = (rect.0.encode_noc1(), rect.1 as u8);
            subs.push(LargeSub { noc_xy, addr: self.address(), num_mcast_dests, unlink, data: self.bytes(size) });
            if unlink {
                rect = self.rect();
            }
        }
        if let Some(last) = subs.last_mut() {
            last.unlink = true;
        }
        DispatchCommand::WritePackedLarge(PackedLargeWrite {
            kind: WritePackedLargeType::Unknown,
            alignment,
            write_offset_index: self.below(4) as u16,
            subs,
        })
    }

    /// Any write of any size.
    pub(crate) fn any_write(&mut self) -> DispatchCommand {
        let form = self.one_of(&Form::ALL);
        let bytes = self.size(200_000);
        self.write(form, bytes)
    }

    /// A notification of the subordinate for any of its semaphores.
    pub(crate) fn notify(&mut self) -> DispatchCommand {
        let index_bitmask = self.below(1 << WORKER_SEMS) as u16;
        DispatchCommand::NotifySubordinateGoSignal(NotifySubordinate { wait: self.coin(), index_bitmask })
    }

    /// A command that writes nothing but may change or delay what comes after it.
    pub(crate) fn other(&mut self) -> DispatchCommand {
        match self.below(8) {
            0 => {
                let flags = self.one_of(&[
                    WaitFlags::empty(),
                    WaitFlags::BARRIER,
                    WaitFlags::WAIT_STREAM,
                    WaitFlags::CLEAR_STREAM,
                    WaitFlags::BARRIER | WaitFlags::WAIT_STREAM | WaitFlags::CLEAR_STREAM,
                ]);
                let stream = 48 + self.below(8) as u16;
                DispatchCommand::Wait(Wait { flags, stream, addr: 0, count: 0 })
            }
            1 => DispatchCommand::Delay(Delay { iterations: self.below(200) }),
            2 => DispatchCommand::Debug(DebugMark {
                key: self.below(1 << 16) as u16,
                size: 0,
                checksum: 0,
                body: Vec::new(),
            }),
            3 => DispatchCommand::Sink,
            4 => DispatchCommand::ExecBufEnd,
            5 => DispatchCommand::SetNumWorkerSems(NumWorkerSems { count: WORKER_SEMS }),
            6 => self.notify(),
            _ => {
                let count = self.below(5);
                let offsets = (0..count).map(|_| 16 * self.below(0x1000)).collect();
                DispatchCommand::SetWriteOffset(WriteOffsets { program_host_id: self.below(1 << 16) as u16, offsets })
            }
        }
    }
}
