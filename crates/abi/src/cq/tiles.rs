//! Dispatch layouts: which tiles run the command queue, and who sends go signals.
//!
//! A layout is one row: what each of its tiles runs. The tiles are the topmost of the board's last
//! column, in the order of the row, and what remains of the board are workers. The first tile
//! always faces the host's issue region and the second its completion FIFO, so the host's side of
//! a queue is the same in every layout. A device with two queues has the tiles of the row twice:
//! those of queue 1 lie below those of queue 0 ([`QueueTiles`], [`Queues`]). tt-metal lets two
//! queues share tiles in some layouts; here each has its own.
//!
//! Sources: seed 001 section 5 (the subordinate), section 3 (the variants `_h`, `_d` and `_hd` of
//! the prefetcher); tt-metal's `cq_prefetch.cpp` and `cq_dispatch.cpp` for what each variant does.

use super::layout::{QueueId, SemaphoreId, dispatch_core, prefetch_core, prefetch_d_core};
use crate::board::{Board, WORKER_Y_FIRST, WORKER_Y_LAST};
use crate::convert::{u8_of, u32_of};
use crate::noc::NocXy;
use crate::tensix::Processor;

/// A kernel of the command queue in its place in a layout.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    /// The prefetcher, whole.
    Prefetch,
    /// The half of the prefetcher that reads host memory and passes the records on.
    PrefetchH,
    /// The half of the prefetcher that executes the records.
    PrefetchD,
    /// The dispatcher, whole.
    Dispatch,
    /// The half of the dispatcher that writes to host memory.
    DispatchH,
    /// The half of the dispatcher that executes all other commands.
    DispatchD,
    /// The subordinate.
    Subordinate,
}

impl Part {
    /// The name that reports use.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Prefetch => "prefetcher",
            Self::PrefetchH => "prefetcher, host side",
            Self::PrefetchD => "prefetcher, device side",
            Self::Dispatch => "dispatcher",
            Self::DispatchH => "dispatcher, host side",
            Self::DispatchD => "dispatcher, device side",
            Self::Subordinate => "subordinate",
        }
    }

    /// The core that it runs on.
    pub const fn processor(self) -> Processor {
        match self {
            Self::Subordinate => Processor::Ncrisc,
            _ => Processor::Brisc,
        }
    }

    /// What the host stores in the semaphores of its tile before it starts, by id. Where two parts
    /// share a tile, those of the first.
    pub const fn semaphores(self) -> [u32; SemaphoreId::COUNT as usize] {
        match self {
            Self::Prefetch | Self::PrefetchD => prefetch_core::SEM_INIT,
            Self::PrefetchH => prefetch_d_core::SEM_INIT_H,
            Self::Dispatch | Self::DispatchH | Self::Subordinate => dispatch_core::SEM_INIT,
            Self::DispatchD => dispatch_core::SEM_INIT_D,
        }
    }
}

/// Who sends go signals.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GoSender {
    /// The dispatcher, between its other commands.
    Dispatcher,
    /// The subordinate, when the dispatcher has told it that the data is there.
    Subordinate,
}

/// A dispatch layout, by its row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LayoutRow {
    /// The name that command lines and reports use.
    pub name: &'static str,
    /// What it is, for help and reports.
    pub about: &'static str,
    /// Who sends go signals.
    pub go: GoSender,
    /// What each tile runs, from the topmost on.
    pub tiles: &'static [&'static [Part]],
}

/// The dispatch layouts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum DispatchLayout {
    /// The seed's: the dispatcher sends go signals.
    #[default]
    Dispatcher,
    /// The same tiles; the subordinate sends go signals.
    Subordinate,
    /// The subordinate on a tile of its own.
    SubordinateTile,
    /// Prefetcher and dispatcher in two halves each, as between a card and a remote one.
    Split,
}

impl DispatchLayout {
    /// All layouts.
    pub const ALL: [Self; 4] = [Self::Dispatcher, Self::Subordinate, Self::SubordinateTile, Self::Split];

    /// Its row.
    pub const fn row(self) -> &'static LayoutRow {
        use Part::{Dispatch, DispatchD, DispatchH, Prefetch, PrefetchD, PrefetchH, Subordinate};
        match self {
            Self::Dispatcher => &LayoutRow {
                name: "dispatcher",
                about: "prefetcher and dispatcher on a tile each; the dispatcher sends go signals",
                go: GoSender::Dispatcher,
                tiles: &[&[Prefetch], &[Dispatch, Subordinate]],
            },
            Self::Subordinate => &LayoutRow {
                name: "subordinate",
                about: "the same tiles; the subordinate on the dispatcher's tile sends go signals",
                go: GoSender::Subordinate,
                tiles: &[&[Prefetch], &[Dispatch, Subordinate]],
            },
            Self::SubordinateTile => &LayoutRow {
                name: "subordinate-tile",
                about: "prefetcher, dispatcher and subordinate on a tile each; the subordinate sends go signals",
                go: GoSender::Subordinate,
                tiles: &[&[Prefetch], &[Dispatch], &[Subordinate]],
            },
            Self::Split => &LayoutRow {
                name: "split",
                about: "prefetcher and dispatcher in two halves, host and device side, on a tile each",
                go: GoSender::Dispatcher,
                tiles: &[&[PrefetchH], &[DispatchH], &[PrefetchD], &[DispatchD, Subordinate]],
            },
        }
    }

    /// Its name.
    pub const fn name(self) -> &'static str {
        self.row().name
    }

    /// The layout of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|layout| layout.name() == name)
    }

    /// Who sends go signals.
    pub const fn go(self) -> GoSender {
        self.row().go
    }

    /// Number of tiles that are no workers.
    pub const fn tile_count(self) -> usize {
        self.row().tiles.len()
    }

    /// The tiles of one of a device's queues.
    pub const fn queue(self, queue: QueueId) -> QueueTiles {
        QueueTiles { layout: self, queue }
    }

    /// The tiles of a device's queues.
    ///
    /// Evaluation fails (at compile time for a constant) unless there are one or two.
    pub const fn queues(self, count: u8) -> Queues {
        assert!(count as usize >= 1 && count as usize <= QueueId::ALL.len());
        Queues { layout: self, count }
    }

    /// The tiles of a single queue on `board` and what each of them runs.
    pub fn tiles(self, board: Board) -> impl Iterator<Item = (NocXy, &'static [Part])> {
        self.queue(QueueId::FIRST).tiles(board)
    }

    /// What `tile` of `board` runs for a single queue; nothing on a worker.
    pub fn parts_at(self, board: Board, tile: NocXy) -> &'static [Part] {
        self.queues(1).parts_at(board, tile)
    }

    /// The tile of queue 0 that reads the host's records.
    pub const fn issue_tile(self, board: Board) -> NocXy {
        self.queue(QueueId::FIRST).issue_tile(board)
    }

    /// The tile of queue 0 that executes the prefetcher's commands.
    pub const fn prefetch_tile(self, board: Board) -> NocXy {
        self.queue(QueueId::FIRST).prefetch_tile(board)
    }

    /// The tile of queue 0 that executes the dispatcher's commands.
    pub const fn dispatch_tile(self, board: Board) -> NocXy {
        self.queue(QueueId::FIRST).dispatch_tile(board)
    }

    /// The tile of queue 0 that writes the completion FIFO.
    pub const fn completion_tile(self, board: Board) -> NocXy {
        self.queue(QueueId::FIRST).completion_tile(board)
    }

    /// The tile of the subordinate of queue 0.
    pub const fn subordinate_tile(self, board: Board) -> NocXy {
        self.queue(QueueId::FIRST).subordinate_tile(board)
    }

    /// The tile that workers report to when queue 0 has started them.
    pub const fn done_tile(self, board: Board) -> NocXy {
        self.queue(QueueId::FIRST).done_tile(board)
    }

    /// The tiles of `board` that run programs beside a single queue, in the order of
    /// [`Board::tensix_tiles`].
    pub fn workers(self, board: Board) -> impl Iterator<Item = NocXy> {
        self.queues(1).workers(board)
    }

    /// The run-time arguments of a single queue's kernels ([`QueueTiles::arguments`]).
    pub const fn arguments(self, board: Board) -> [u32; 4] {
        self.queue(QueueId::FIRST).arguments(board, 1)
    }
}

/// The tiles of one queue: those of its layout's row, below those of the queues before it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QueueTiles {
    /// The layout.
    pub layout: DispatchLayout,
    /// The queue.
    pub queue: QueueId,
}

impl QueueTiles {
    /// Tile `index` of the row on `board`.
    const fn tile(self, board: Board, index: usize) -> NocXy {
        // At most as many as a column has rows, see below.
        let row = self.queue.index() * self.layout.tile_count() + index;
        NocXy::new(board.dispatch_column(), WORKER_Y_FIRST + u8_of(u32_of(row)))
    }

    /// Its tiles on `board` and what each of them runs.
    pub fn tiles(self, board: Board) -> impl Iterator<Item = (NocXy, &'static [Part])> {
        self.layout.row().tiles.iter().enumerate().map(move |(i, &parts)| (self.tile(board, i), parts))
    }

    /// The tile that runs the first of `parts` that this layout has.
    const fn tile_of(self, board: Board, wanted: &[Part]) -> NocXy {
        let tiles = self.layout.row().tiles;
        let mut i = 0;
        while i < tiles.len() {
            let mut j = 0;
            while j < tiles[i].len() {
                let mut k = 0;
                while k < wanted.len() {
                    if tiles[i][j] as u8 == wanted[k] as u8 {
                        return self.tile(board, i);
                    }
                    k += 1;
                }
                j += 1;
            }
            i += 1;
        }
        panic!("every layout has a prefetcher, a dispatcher and a subordinate")
    }

    /// The tile that reads the host's records.
    pub const fn issue_tile(self, board: Board) -> NocXy {
        self.tile_of(board, &[Part::Prefetch, Part::PrefetchH])
    }

    /// The tile that executes the prefetcher's commands.
    pub const fn prefetch_tile(self, board: Board) -> NocXy {
        self.tile_of(board, &[Part::Prefetch, Part::PrefetchD])
    }

    /// The tile that executes the dispatcher's commands.
    pub const fn dispatch_tile(self, board: Board) -> NocXy {
        self.tile_of(board, &[Part::Dispatch, Part::DispatchD])
    }

    /// The tile that writes the completion FIFO.
    pub const fn completion_tile(self, board: Board) -> NocXy {
        self.tile_of(board, &[Part::Dispatch, Part::DispatchH])
    }

    /// The tile of the subordinate.
    pub const fn subordinate_tile(self, board: Board) -> NocXy {
        self.tile_of(board, &[Part::Subordinate])
    }

    /// The tile that workers report to: that of the sender of their go signals.
    pub const fn done_tile(self, board: Board) -> NocXy {
        match self.layout.go() {
            GoSender::Dispatcher => self.dispatch_tile(board),
            GoSender::Subordinate => self.subordinate_tile(board),
        }
    }

    /// The run-time arguments of the queue's kernels on a device with `queues` queues, which tell
    /// them where the others are: word 0 `prefetch | dispatch << 16` (the tiles that execute
    /// commands), word 1 `PCIe | tiles << 16` (how many tiles at the top of the column are no
    /// workers), word 2 `subordinate | completion << 16`, word 3 the tile that reads records, with
    /// what all counts of pages begin at in its upper half: zero, except in tests of their wrap.
    pub const fn arguments(self, board: Board, queues: u8) -> [u32; 4] {
        let tiles = self.layout.queues(queues).tile_count();
        [
            self.prefetch_tile(board).encode() | self.dispatch_tile(board).encode() << 16,
            crate::board::PCIE.encode() | u32_of(tiles) << 16,
            self.subordinate_tile(board).encode() | self.completion_tile(board).encode() << 16,
            self.issue_tile(board).encode(),
        ]
    }
}

/// The tiles of a device's queues, one or two.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Queues {
    layout: DispatchLayout,
    count: u8,
}

impl Queues {
    /// The queues.
    pub fn ids(self) -> impl Iterator<Item = QueueId> {
        QueueId::ALL.into_iter().take(self.count.into())
    }

    /// How many queues there are.
    pub const fn count(self) -> u8 {
        self.count
    }

    /// The layout of each.
    pub const fn layout(self) -> DispatchLayout {
        self.layout
    }

    /// Number of tiles that are no workers.
    pub const fn tile_count(self) -> usize {
        self.layout.tile_count() * self.count as usize
    }

    /// The tiles on `board`: whose each is, and what it runs.
    pub fn tiles(self, board: Board) -> impl Iterator<Item = (QueueId, NocXy, &'static [Part])> {
        let of = move |queue| self.layout.queue(queue).tiles(board).map(move |(xy, parts)| (queue, xy, parts));
        self.ids().flat_map(of)
    }

    /// Whose `tile` of `board` is, and what it runs; nothing on a worker.
    pub fn at(self, board: Board, tile: NocXy) -> Option<(QueueId, &'static [Part])> {
        self.tiles(board).find(|&(_, xy, _)| xy == tile).map(|(queue, _, parts)| (queue, parts))
    }

    /// What `tile` of `board` runs; nothing on a worker.
    pub fn parts_at(self, board: Board, tile: NocXy) -> &'static [Part] {
        self.at(board, tile).map_or(&[], |(_, parts)| parts)
    }

    /// The tiles of `board` that run programs, in the order of [`Board::tensix_tiles`].
    pub fn workers(self, board: Board) -> impl Iterator<Item = NocXy> {
        board.tensix_tiles().filter(move |&xy| self.at(board, xy).is_none())
    }
}

impl core::fmt::Display for DispatchLayout {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.name())
    }
}

// A column has room for two queues of every layout and for a worker; the host's tiles are the first
// two of a queue.
const _: () = {
    let mut i = 0;
    while i < DispatchLayout::ALL.len() {
        let layout = DispatchLayout::ALL[i];
        assert!(layout.queues(2).tile_count() < (WORKER_Y_LAST - WORKER_Y_FIRST + 1) as usize);
        let (board, issue, completion) =
            (Board::P100, layout.issue_tile(Board::P100).encode(), layout.completion_tile(Board::P100).encode());
        assert!(issue == board.prefetch_core().encode() && completion == board.dispatch_core().encode());
        i += 1;
    }
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_board_and_layout_divides_all_tiles_between_queue_and_workers() {
        for board in Board::ALL {
            for layout in DispatchLayout::ALL {
                let queue: std::vec::Vec<NocXy> = layout.tiles(board).map(|(xy, _)| xy).collect();
                assert!(queue.iter().all(|&xy| board.is_tensix(xy) && !layout.parts_at(board, xy).is_empty()));
                assert!(layout.workers(board).all(|xy| !queue.contains(&xy)));
                assert_eq!(layout.workers(board).count() + queue.len(), board.tensix_count(), "{layout}");
                assert_eq!(DispatchLayout::named(layout.name()), Some(layout));
            }
            assert!(DispatchLayout::Dispatcher.workers(board).eq(board.workers()));
        }
    }

    #[test]
    fn two_queues_have_tiles_of_their_own() {
        for (board, layout) in Board::ALL.into_iter().flat_map(|b| DispatchLayout::ALL.map(|l| (b, l))) {
            let queues = layout.queues(2);
            let tiles: std::vec::Vec<_> = queues.tiles(board).collect();
            assert_eq!((tiles.len(), queues.tile_count()), (2 * layout.tile_count(), 2 * layout.tile_count()));
            for (i, &(queue, xy, parts)) in tiles.iter().enumerate() {
                assert!(board.is_tensix(xy) && tiles[..i].iter().all(|&(_, other, _)| other != xy), "{layout}");
                assert_eq!(queues.at(board, xy), Some((queue, parts)));
            }
            assert!(tiles[..layout.tile_count()].iter().map(|&(_, xy, p)| (xy, p)).eq(layout.tiles(board)));
            assert_eq!(queues.workers(board).count() + tiles.len(), board.tensix_count());
        }
    }

    /// By hand for a p100, whose last column is 14: rows 2 and 3 are queue 0's, 4 and 5 queue 1's.
    #[test]
    fn the_second_queue_of_the_dispatcher_layout_lies_below_the_first() {
        let xy = |x: u32, y: u32| y << 6 | x;
        let second = DispatchLayout::Dispatcher.queue(QueueId::SECOND);
        assert_eq!(
            second.arguments(Board::P100, 2),
            [xy(14, 4) | xy(14, 5) << 16, xy(19, 24) | 4 << 16, xy(14, 5) | xy(14, 5) << 16, xy(14, 4)]
        );
        assert_eq!(QueueId::SECOND.region_noc_base(), 0x4800_0000);
        assert_eq!(QueueId::new(1), Some(QueueId::SECOND));
        assert_eq!(QueueId::new(2), None);
    }

    /// By hand for a p100, whose last column is 14.
    #[test]
    fn the_parts_of_the_split_layout_know_each_other() {
        let xy = |x: u32, y: u32| y << 6 | x;
        assert_eq!(
            DispatchLayout::Split.arguments(Board::P100),
            [xy(14, 4) | xy(14, 5) << 16, xy(19, 24) | 4 << 16, xy(14, 5) | xy(14, 3) << 16, xy(14, 2)]
        );
        assert_eq!(
            DispatchLayout::SubordinateTile.arguments(Board::P100),
            [xy(14, 2) | xy(14, 3) << 16, xy(19, 24) | 3 << 16, xy(14, 4) | xy(14, 3) << 16, xy(14, 2)]
        );
    }

    extern crate std;
}
