//! Coordinates of the prefetch core, the dispatch core and the PCIe tile.
//!
//! In the original they are compiled in. Here one image serves all boards, so our host stores them
//! in the first 16 bytes of the kernel configuration, which are the run-time arguments: word 0 is
//! `prefetch | dispatch << 16`, word 1 the PCIe tile, words 2 and 3 zero. A host that leaves these
//! bytes zero, as the original does (facts, "Host start-up of a card", 3), gets the usual places:
//! both in the core's own column, the last that has Tensix tiles, the prefetcher one row above the
//! dispatcher. Columns are numbered as if the harvested ones came last, so that this column says
//! how many there are: all harvestings are covered, not only the boards of the table.

use tilework_abi::board::{self, WORKER_Y_FIRST, WORKER_Y_LAST};
use tilework_abi::grid::TENSIX_COLUMNS;
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
            let column = NocXy::decode(my_xy).x;
            let [prefetch, dispatch] = [WORKER_Y_FIRST, WORKER_Y_FIRST + 1].map(|y| NocXy::new(column, y).encode());
            Self { prefetch, dispatch, pcie }
        }
    }

    /// The rectangles that hold every worker and neither of the two dispatch cores, as NoC 1 wants
    /// them, with their number of tiles. The dispatch cores are the two topmost of the last column;
    /// columns without Tensix tiles are excluded from multicasts. A board of one column has one
    /// rectangle.
    pub fn worker_rects(&self) -> impl Iterator<Item = (u32, u32)> + use<> {
        let dispatch = NocXy::decode(self.dispatch);
        let rows = u32::from(WORKER_Y_LAST - WORKER_Y_FIRST + 1);
        let below =
            NocRect { start: NocXy::new(dispatch.x, dispatch.y + 1), end: NocXy::new(dispatch.x, WORKER_Y_LAST) };
        let left = NocRect {
            start: NocXy::new(TENSIX_COLUMNS[0], WORKER_Y_FIRST),
            end: NocXy::new(dispatch.x - 1, WORKER_Y_LAST),
        };
        [(left.encode_noc1(), columns_before(dispatch.x) * rows), (below.encode_noc1(), below.area())]
            .into_iter()
            .filter(|&(_, tiles)| tiles != 0)
    }
}

/// The last Tensix column left of the columns without any (Ethernet, DRAM) in the middle.
const LAST_OF_LEFT: u8 = TENSIX_COLUMNS[6];
/// The first Tensix column right of them.
const FIRST_OF_RIGHT: u8 = TENSIX_COLUMNS[7];
const _: () = assert!(TENSIX_COLUMNS.len() == 14 && LAST_OF_LEFT - TENSIX_COLUMNS[0] == 6);

/// How many Tensix columns lie before column `x`, which is one.
const fn columns_before(x: u8) -> u32 {
    let gap = if x > LAST_OF_LEFT { FIRST_OF_RIGHT - LAST_OF_LEFT - 1 } else { 0 };
    (x - TENSIX_COLUMNS[0] - gap) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilework_abi::board::{Board, Harvesting};

    /// The boards of the table, and one for each number of harvested columns.
    fn boards() -> impl Iterator<Item = Board> {
        let harvested = (0..TENSIX_COLUMNS.len()).map(|gone| {
            let harvesting = Harvesting { tensix: (1 << gone) - 1, ..Board::P150.harvesting() };
            Board::harvested(Board::P150.spec(), "test", harvesting).unwrap()
        });
        Board::ALL.into_iter().chain(harvested)
    }

    #[test]
    fn zero_arguments_give_the_board_of_the_own_column() {
        for board in boards() {
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
        for board in boards() {
            let rects: Vec<_> = Peers::new([0, 0], board.dispatch_core().encode()).worker_rects().collect();
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
