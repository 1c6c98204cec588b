//! Coordinates of the prefetch core, the dispatch core and the PCIe tile.
//!
//! In the original they are compiled in. Here one image serves all boards, so our host stores them
//! in the first 16 bytes of the kernel configuration, which are the run-time arguments: word 0 is
//! `prefetch | dispatch << 16`, word 1 the PCIe tile, words 2 and 3 zero. A host that leaves these
//! bytes zero, as the original does (the original's `device.py`), gets the board table's
//! values: the prefetcher is in the same column, one row above the dispatcher.

use tilework_abi::board::{self, Board, WORKER_Y_FIRST};
use tilework_abi::noc::{NocRect, NocXy};
use tilework_rt::niu::XY_MASK;

/// Encoded coordinates, `y << 6 | x`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peers {
    /// The prefetch core.
    pub prefetch: u32,
    /// The dispatch core.
    pub dispatch: u32,
    /// The PCIe tile.
    pub pcie: u32,
}

impl Peers {
    /// From the first two words of the run-time arguments and the core's own coordinates.
    pub fn new(rta: [u32; 2], my_xy: u32) -> Self {
        let pcie = if rta[1] & XY_MASK != 0 { rta[1] & XY_MASK } else { board::PCIE.encode() };
        if rta[0] != 0 {
            Self { prefetch: rta[0] & XY_MASK, dispatch: rta[0] >> 16 & XY_MASK, pcie }
        } else {
            let board = board_of(my_xy);
            Self { prefetch: board.prefetch_core().encode(), dispatch: board.dispatch_core().encode(), pcie }
        }
    }

    /// The rectangles that hold every worker and neither of the two dispatch cores, as NoC 1 wants
    /// them, with their number of tiles. The dispatch cores are the two topmost of the last column;
    /// columns without Tensix tiles are excluded from multicasts. Right for the columns of a p100
    /// and of a p150 alone: for a board with others, the host must send go signals by unicast, as
    /// ours does for all.
    pub fn worker_rects(&self) -> [(u32, u32); 2] {
        let board = board_of(self.dispatch);
        let dispatch = board.dispatch_core();
        let rows = u32::from(board::WORKER_Y_LAST - board::WORKER_Y_FIRST + 1);
        let columns = board.columns();
        let below = NocRect {
            start: NocXy::new(dispatch.x, dispatch.y + 1),
            end: NocXy::new(dispatch.x, board::WORKER_Y_LAST),
        };
        let left = NocRect {
            start: NocXy::new(columns[0], board::WORKER_Y_FIRST),
            end: NocXy::new(dispatch.x - 1, board::WORKER_Y_LAST),
        };
        [(left.encode_noc1(), (columns.len() as u32 - 1) * rows), (below.encode_noc1(), below.area())]
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

    #[test]
    fn zero_arguments_give_the_board_of_the_own_column() {
        for board in [Board::P100, Board::P150] {
            let expected = Peers {
                prefetch: board.prefetch_core().encode(),
                dispatch: board.dispatch_core().encode(),
                pcie: 24 << 6 | 19,
            };
            assert_eq!(Peers::new([0, 0], expected.prefetch), expected);
            assert_eq!(Peers::new([0, 0], expected.dispatch), expected);
        }
    }

    #[test]
    fn arguments_take_precedence() {
        let peers = Peers::new([5 << 6 | 4 | (6 << 6 | 4) << 16, 7 << 6 | 9], 2 << 6 | 14);
        assert_eq!(peers, Peers { prefetch: 5 << 6 | 4, dispatch: 6 << 6 | 4, pcie: 7 << 6 | 9 });
    }

    #[test]
    fn multicast_rectangles_hold_exactly_the_workers() {
        for board in [Board::P100, Board::P150] {
            let rects = Peers::new([0, 0], board.dispatch_core().encode()).worker_rects();
            let inside = |xy: NocXy| {
                rects.iter().any(|&(r, _)| {
                    // NoC 1: the larger corner is the start.
                    let (hi, lo) = (NocXy::decode(r >> 12), NocXy::decode(r));
                    (lo.x..=hi.x).contains(&xy.x) && (lo.y..=hi.y).contains(&xy.y)
                })
            };
            assert!(board.workers().all(inside));
            assert!(!inside(board.prefetch_core()) && !inside(board.dispatch_core()));
            assert_eq!(rects.iter().map(|r| r.1).sum::<u32>() as usize, board.workers().count());
        }
    }
}
