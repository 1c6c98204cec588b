//! Coordinates of the queue's cores and of the PCIe tile.
//!
//! In the original they are compiled in. Here one image serves all boards and dispatch layouts, so
//! our host stores them in the first 16 bytes of the kernel configuration, which are the run-time
//! arguments ([`DispatchLayout::arguments`](tilework_abi::cq::tiles::DispatchLayout::arguments)). A
//! host that leaves these bytes zero, as the original does (the original's `device.py`), gets the
//! board table's values: the prefetcher is in the same column, one row above the dispatcher. A
//! word that is zero stands for the original's layout, in which the dispatch core runs the
//! subordinate as well and nothing is split.

use tilework_abi::board::{self, Board, WORKER_Y_FIRST};
use tilework_abi::cq::count::WrapCount;
use tilework_abi::noc::{NocRect, NocXy};
use tilework_rt::niu::XY_MASK;
use tilework_rt::{KernelContext, rta};

/// Encoded coordinates, `y << 6 | x`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peers {
    /// The core that executes prefetch commands.
    pub prefetch: u32,
    /// The core that executes dispatch commands.
    pub dispatch: u32,
    /// The core of the subordinate.
    pub subordinate: u32,
    /// The core that reads records from host memory; [`prefetch`](Self::prefetch) unless split.
    pub issue: u32,
    /// The core that writes the completion FIFO; [`dispatch`](Self::dispatch) unless split.
    pub completion: u32,
    /// The PCIe tile.
    pub pcie: u32,
    /// What every count of pages begins at: zero, except in tests of the wrap. Who takes pages does
    /// not learn it from the semaphore, to which the other side may have added already.
    pub first_count: WrapCount,
    /// Tiles at the top of the last column that are no workers.
    tiles: u32,
}

impl Peers {
    /// What the host has told the kernel.
    pub fn told(ctx: &KernelContext) -> Self {
        Self::new([rta(ctx, 0), rta(ctx, 1), rta(ctx, 2), rta(ctx, 3)], ctx.my_xy)
    }

    /// From the run-time arguments and the core's own coordinates.
    pub fn new(rta: [u32; 4], my_xy: u32) -> Self {
        let or = |word: u32, default: u32| if word & XY_MASK != 0 { word & XY_MASK } else { default };
        let (prefetch, dispatch) = if rta[0] != 0 {
            (rta[0] & XY_MASK, rta[0] >> 16 & XY_MASK)
        } else {
            let board = board_of(my_xy);
            (board.prefetch_core().encode(), board.dispatch_core().encode())
        };
        Self {
            prefetch,
            dispatch,
            subordinate: or(rta[2], dispatch),
            issue: or(rta[3], prefetch),
            completion: or(rta[2] >> 16, dispatch),
            pcie: or(rta[1], board::PCIE.encode()),
            first_count: WrapCount((rta[3].cast_signed() >> 16).cast_unsigned()),
            tiles: if rta[1] >> 16 != 0 { rta[1] >> 16 } else { 2 },
        }
    }

    /// The rectangles that hold every worker and no core of the queue, as `encode` packs them for a
    /// NoC, with their number of tiles. The queue's cores are the topmost of the last column;
    /// columns without Tensix tiles are excluded from multicasts. Right for the columns of a p100
    /// and of a p150 alone: for a board with others, the host must send go signals by unicast, as
    /// ours does for all.
    pub fn worker_rects(&self, encode: fn(NocRect) -> u32) -> [(u32, u32); 2] {
        let board = board_of(self.dispatch);
        let column = board.dispatch_column();
        let rows = u32::from(board::WORKER_Y_LAST - board::WORKER_Y_FIRST + 1);
        let columns = board.columns();
        let below = NocRect {
            // A column has ten rows.
            start: NocXy::new(column, WORKER_Y_FIRST + self.tiles as u8),
            end: NocXy::new(column, board::WORKER_Y_LAST),
        };
        let left = NocRect {
            start: NocXy::new(columns[0], board::WORKER_Y_FIRST),
            end: NocXy::new(column - 1, board::WORKER_Y_LAST),
        };
        [(encode(left), (columns.len() as u32 - 1) * rows), (encode(below), below.area())]
    }
}

/// The boards that the kernels know, by the last column that has Tensix tiles. Plain constants, so
/// that the kernels hold neither the board table nor its search.
#[derive(Clone, Copy)]
enum Known {
    P100,
    P150,
}

/// The board whose dispatch column `xy` lies in.
fn board_of(xy: u32) -> Known {
    const P100_COLUMN: u8 = Board::P100.dispatch_column();
    if NocXy::decode(xy).x == P100_COLUMN { Known::P100 } else { Known::P150 }
}

impl Known {
    const fn columns(self) -> &'static [u8] {
        const P100: &[u8] = Board::P100.worker_columns();
        const P150: &[u8] = Board::P150.worker_columns();
        match self {
            Self::P100 => P100,
            Self::P150 => P150,
        }
    }
    const fn dispatch_column(self) -> u8 {
        const P100: u8 = Board::P100.dispatch_column();
        const P150: u8 = Board::P150.dispatch_column();
        match self {
            Self::P100 => P100,
            Self::P150 => P150,
        }
    }
    const fn prefetch_core(self) -> NocXy {
        NocXy::new(self.dispatch_column(), WORKER_Y_FIRST)
    }
    const fn dispatch_core(self) -> NocXy {
        NocXy::new(self.dispatch_column(), WORKER_Y_FIRST + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;
    use tilework_abi::cq::tiles::DispatchLayout;

    #[test]
    fn zero_arguments_give_the_board_of_the_own_column() {
        for board in [Board::P100, Board::P150] {
            let told = DispatchLayout::Dispatcher.arguments(board);
            let expected = Peers::new(told, 0);
            assert_eq!(expected.prefetch, board.prefetch_core().encode());
            assert_eq!(expected.dispatch, board.dispatch_core().encode());
            assert_eq!(expected.pcie, 24 << 6 | 19);
            assert_eq!(Peers::new([0; 4], expected.prefetch), expected);
            assert_eq!(Peers::new([0; 4], expected.dispatch), expected);
        }
    }

    #[test]
    fn arguments_take_precedence() {
        let xy = |x: u32, y: u32| y << 6 | x;
        let first = 0xFFFE << 16;
        let words = [xy(4, 5) | xy(4, 6) << 16, xy(9, 7) | 5 << 16, xy(4, 7) | xy(4, 8) << 16, xy(4, 9) | first];
        let expected = Peers {
            prefetch: xy(4, 5),
            dispatch: xy(4, 6),
            subordinate: xy(4, 7),
            issue: xy(4, 9),
            completion: xy(4, 8),
            pcie: xy(9, 7),
            first_count: WrapCount(u32::MAX - 1),
            tiles: 5,
        };
        assert_eq!(Peers::new(words, xy(14, 2)), expected);
    }

    #[test]
    fn multicast_rectangles_hold_exactly_the_workers() {
        for (board, layout) in [Board::P100, Board::P150].into_iter().flat_map(|b| DispatchLayout::ALL.map(|l| (b, l)))
        {
            let rects = Peers::new(layout.arguments(board), 0).worker_rects(NocRect::encode_noc1);
            let inside = |xy: NocXy| {
                rects.iter().any(|&(r, _)| {
                    // NoC 1: the larger corner is the start.
                    let (hi, lo) = (NocXy::decode(r >> 12), NocXy::decode(r));
                    (lo.x..=hi.x).contains(&xy.x) && (lo.y..=hi.y).contains(&xy.y)
                })
            };
            let workers: Vec<NocXy> = layout.workers(board).collect();
            assert!(workers.iter().all(|&xy| inside(xy)));
            assert!(layout.tiles(board).all(|(xy, _)| !inside(xy)), "{layout}");
            assert_eq!(rects.iter().map(|r| r.1).sum::<u32>() as usize, workers.len());
        }
    }
}
