//! A choice of worker cores: the part of a device's tiles that programs may use.

use super::{CoreCoord, CoreGrid, CoreRangeSet, ShardOrientation};
use std::fmt;
use tilework_abi::board::{Board, WORKER_Y_FIRST, WORKER_Y_LAST};
use tilework_abi::grid;
use tilework_abi::noc::NocXy;

/// Rows of Tensix tiles.
const ROWS: usize = (WORKER_Y_LAST - WORKER_Y_FIRST + 1) as usize;
/// Columns of Tensix tiles of a whole chip.
const COLUMNS: usize = grid::TENSIX_COLUMNS.len();

/// A set of cores by logical coordinates, small enough to be a part of a configuration.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct WorkerCores {
    /// Bit x of row y.
    rows: [u16; ROWS],
}

const _: () = assert!(COLUMNS <= u16::BITS as usize);

/// Why a choice of worker cores cannot be.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum WorkerCoresError {
    /// The set has no core.
    #[error("worker cores: the set is empty")]
    Empty,
    /// A core outside of the grid of every chip.
    #[error("worker cores: core {0} is outside of the {COLUMNS} x {ROWS} Tensix tiles of a chip")]
    Outside(CoreCoord),
    /// A core that this board does not have.
    #[error("worker cores: core {core} is not on a {board}, which has {columns} x {rows}")]
    NotOnBoard {
        /// The core.
        core: CoreCoord,
        /// The board's name.
        board: &'static str,
        /// Columns of the board's cores.
        columns: u32,
        /// Rows of them.
        rows: u32,
    },
    /// A core that runs a part of the command queue.
    #[error("worker cores: core {core}, tile ({}, {}), runs the command queue", .tile.x, .tile.y)]
    Queue {
        /// The core.
        core: CoreCoord,
        /// Its tile.
        tile: NocXy,
    },
}

impl WorkerCores {
    /// The cores of a set.
    ///
    /// # Errors
    /// No core; one outside of every chip.
    pub fn new(set: &CoreRangeSet) -> Result<Self, WorkerCoresError> {
        Self::of(set.cores(ShardOrientation::RowMajor))
    }

    /// These cores; one may be named twice.
    ///
    /// # Errors
    /// As [`WorkerCores::new`].
    pub fn of(cores: impl IntoIterator<Item = CoreCoord>) -> Result<Self, WorkerCoresError> {
        let mut rows = [0; ROWS];
        for core in cores {
            let row = rows.get_mut(core.y as usize).filter(|_| (core.x as usize) < COLUMNS);
            *row.ok_or(WorkerCoresError::Outside(core))? |= 1u16 << core.x;
        }
        match rows == [0; ROWS] {
            true => Err(WorkerCoresError::Empty),
            false => Ok(Self { rows }),
        }
    }

    /// Whether a core is chosen.
    pub fn contains(&self, core: CoreCoord) -> bool {
        let row = self.rows.get(core.y as usize).filter(|_| (core.x as usize) < COLUMNS);
        row.is_some_and(|row| row >> core.x & 1 == 1)
    }

    /// The cores, row by row.
    pub fn cores(self) -> impl Iterator<Item = CoreCoord> {
        let all = (0u32..).zip(self.rows).flat_map(|(y, _)| (0u32..16).map(move |x| CoreCoord::new(x, y)));
        all.filter(move |&core| self.contains(core))
    }

    /// Whether the tile of a board is chosen.
    pub fn has_tile(&self, board: Board, tile: NocXy) -> bool {
        CoreGrid::new(board).core(tile).is_some_and(|core| self.contains(core))
    }

    /// Checks the choice against the tiles of a board that can be workers.
    ///
    /// # Errors
    /// A core that the board does not have, or that runs the command queue.
    pub fn check(&self, board: Board, workers: &[NocXy]) -> Result<(), WorkerCoresError> {
        let grid = CoreGrid::new(board);
        for core in self.cores() {
            let (columns, rows) = grid.size();
            let missing = WorkerCoresError::NotOnBoard { core, board: board.name(), columns, rows };
            let tile = grid.tile(core).ok_or(missing)?;
            if !workers.contains(&tile) {
                return Err(WorkerCoresError::Queue { core, tile });
            }
        }
        Ok(())
    }
}

impl fmt::Debug for WorkerCores {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.cores().map(|core| (core.x, core.y))).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::CoreRange;

    fn range(x0: u32, y0: u32, x1: u32, y1: u32) -> Result<WorkerCores, WorkerCoresError> {
        let range = CoreRange::new(CoreCoord::new(x0, y0), CoreCoord::new(x1, y1));
        WorkerCores::new(&CoreRangeSet::new([range]).unwrap())
    }

    #[test]
    fn a_set_has_its_cores_and_no_others() {
        let set = range(2, 1, 3, 4).unwrap();
        assert_eq!(set.cores().count(), 8);
        assert!(set.cores().all(|core| (2..=3).contains(&core.x) && (1..=4).contains(&core.y)));
        // Logical column 7 is tile column 10.
        let right = range(7, 0, 7, 0).unwrap();
        assert!(right.has_tile(Board::P100, NocXy::new(10, 2)) && !right.has_tile(Board::P100, NocXy::new(7, 2)));
        assert!(!right.has_tile(Board::P100, NocXy::new(8, 2)), "no Tensix tile");
        assert_eq!(format!("{:?}", range(0, 9, 1, 9).unwrap()), "{(0, 9), (1, 9)}");
    }

    #[test]
    fn wrong_sets_are_named() {
        let workers: Vec<NocXy> = Board::P100.workers().collect();
        let error = |set: Result<WorkerCores, WorkerCoresError>| {
            set.and_then(|set| set.check(Board::P100, &workers)).unwrap_err().to_string()
        };
        assert_eq!(error(WorkerCores::of([])), "worker cores: the set is empty");
        assert_eq!(
            error(range(13, 0, 14, 0)),
            "worker cores: core (14,0) is outside of the 14 x 10 Tensix tiles of a chip"
        );
        assert_eq!(
            error(range(0, 10, 0, 10)),
            "worker cores: core (0,10) is outside of the 14 x 10 Tensix tiles of a chip"
        );
        assert_eq!(error(range(12, 3, 12, 3)), "worker cores: core (12,3) is not on a p100, which has 12 x 10");
        assert_eq!(error(range(11, 1, 11, 1)), "worker cores: core (11,1), tile (14, 3), runs the command queue");
        assert_eq!(
            range(0, 0, 11, 9).unwrap().check(Board::P100, &Board::P100.tensix_tiles().collect::<Vec<_>>()),
            Ok(())
        );
    }
}
