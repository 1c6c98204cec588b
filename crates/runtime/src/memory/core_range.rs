//! Logical coordinates of cores, and sets of them.
//!
//! A logical coordinate counts the working Tensix tiles of a board from (0, 0) on, whatever columns
//! are harvested: x along the columns, y along the rows (tt-metal's `CoreCoord`, `core_coord.hpp`).
//! The dispatch cores have logical coordinates, too, but are no workers. [`CoreGrid`] translates
//! into the coordinates that packets have.

use std::fmt;
use tilework_abi::board::{Board, WORKER_Y_FIRST, WORKER_Y_LAST};
use tilework_abi::convert::u32_of;
use tilework_abi::noc::NocXy;

/// A logical coordinate: of a Tensix tile, or (bank, 0) of a DRAM bank.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CoreCoord {
    /// Column.
    pub x: u32,
    /// Row.
    pub y: u32,
}

impl CoreCoord {
    /// The coordinate of column `x` and row `y`.
    pub const fn new(x: u32, y: u32) -> Self {
        Self { x, y }
    }
}

impl fmt::Display for CoreCoord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "({},{})", self.x, self.y)
    }
}

/// The order in which the cores of a range are counted.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum ShardOrientation {
    /// Along x first: (0,0), (1,0), ...
    #[default]
    RowMajor,
    /// Along y first: (0,0), (0,1), ...
    ColMajor,
}

/// A rectangle of cores, both corners included.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct CoreRange {
    /// The corner with the smaller coordinates.
    pub start: CoreCoord,
    /// The corner with the larger ones.
    pub end: CoreCoord,
}

impl CoreRange {
    /// The rectangle between two corners.
    pub const fn new(start: CoreCoord, end: CoreCoord) -> Self {
        Self { start, end }
    }
    /// One core.
    pub const fn one(core: CoreCoord) -> Self {
        Self::new(core, core)
    }
    /// Whether `core` is inside.
    pub const fn contains(&self, core: CoreCoord) -> bool {
        self.start.x <= core.x && core.x <= self.end.x && self.start.y <= core.y && core.y <= self.end.y
    }
    /// Whether the two have a core in common.
    pub const fn intersects(&self, other: &Self) -> bool {
        self.start.x <= other.end.x
            && other.start.x <= self.end.x
            && self.start.y <= other.end.y
            && other.start.y <= self.end.y
    }
    /// Columns and rows.
    pub const fn size(&self) -> (u32, u32) {
        ((self.end.x - self.start.x).saturating_add(1), (self.end.y - self.start.y).saturating_add(1))
    }
    /// The cores, in the order that `orientation` says.
    pub fn cores(self, orientation: ShardOrientation) -> impl Iterator<Item = CoreCoord> {
        let (columns, rows) = self.size();
        (0..u64::from(columns) * u64::from(rows)).map(move |i| {
            let (along, across) = match orientation {
                ShardOrientation::RowMajor => (i % u64::from(columns), i / u64::from(columns)),
                ShardOrientation::ColMajor => (i / u64::from(rows), i % u64::from(rows)),
            };
            // Both are below the sizes, which have 32 bits.
            CoreCoord::new(self.start.x + u32_of_small(along), self.start.y + u32_of_small(across))
        })
    }
}

/// A number that is known to have 32 bits.
fn u32_of_small(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

impl fmt::Display for CoreRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.start == self.end {
            true => write!(f, "{}", self.start),
            false => write!(f, "{}-{}", self.start, self.end),
        }
    }
}

/// What is wrong with a set of core ranges.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CoreRangeError {
    /// The corners are the wrong way round.
    #[error("core range {0}: its start is behind its end")]
    Reversed(CoreRange),
    /// Two ranges have a core in common.
    #[error("core ranges {0} and {1} overlap")]
    Overlap(CoreRange, CoreRange),
    /// A coordinate that no chip has.
    #[error("core range {0}: expected coordinates below {MAX_COORDINATE}")]
    Coordinate(CoreRange),
}

/// Coordinates are below this: the torus of a chip is smaller (ISA documentation, NoC/Coordinates),
/// and numbers of cores cannot overflow.
const MAX_COORDINATE: u32 = 64;

/// Rectangles of cores that do not overlap, in their order.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct CoreRangeSet {
    ranges: Vec<CoreRange>,
}

impl CoreRangeSet {
    /// The set of these ranges. Their order is that in which cores are counted.
    ///
    /// # Errors
    /// Ranges that overlap, or the wrong way round.
    ///
    /// ```
    /// use tilework_runtime::memory::{CoreCoord, CoreRange, CoreRangeSet, ShardOrientation};
    /// let square = CoreRange::new(CoreCoord::new(0, 0), CoreCoord::new(1, 1));
    /// let set = CoreRangeSet::new([square, CoreRange::one(CoreCoord::new(5, 0))])?;
    /// let cores: Vec<_> = set.cores(ShardOrientation::ColMajor).map(|c| (c.x, c.y)).collect();
    /// assert_eq!(cores, [(0, 0), (0, 1), (1, 0), (1, 1), (5, 0)]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn new(ranges: impl IntoIterator<Item = CoreRange>) -> Result<Self, CoreRangeError> {
        let ranges: Vec<CoreRange> = ranges.into_iter().collect();
        for (i, range) in ranges.iter().enumerate() {
            if range.start.x > range.end.x || range.start.y > range.end.y {
                return Err(CoreRangeError::Reversed(*range));
            }
            if range.end.x >= MAX_COORDINATE || range.end.y >= MAX_COORDINATE {
                return Err(CoreRangeError::Coordinate(*range));
            }
            if let Some(before) = ranges[..i].iter().find(|before| before.intersects(range)) {
                return Err(CoreRangeError::Overlap(*before, *range));
            }
        }
        Ok(Self { ranges })
    }
    /// The ranges.
    pub fn ranges(&self) -> &[CoreRange] {
        &self.ranges
    }
    /// Number of cores.
    pub fn num_cores(&self) -> usize {
        self.ranges.iter().map(|range| range.size()).map(|(columns, rows)| columns as usize * rows as usize).sum()
    }
    /// Whether `core` is in one of the ranges.
    pub fn contains(&self, core: CoreCoord) -> bool {
        self.ranges.iter().any(|range| range.contains(core))
    }
    /// The cores: range by range, each in the order that `orientation` says (tt-metal's
    /// `corerange_to_cores`).
    pub fn cores(&self, orientation: ShardOrientation) -> impl Iterator<Item = CoreCoord> {
        self.ranges.iter().flat_map(move |range| range.cores(orientation))
    }
}

impl From<CoreCoord> for CoreRangeSet {
    /// One core; a coordinate that no chip has is found when the set is used.
    fn from(core: CoreCoord) -> Self {
        Self { ranges: vec![CoreRange::one(core)] }
    }
}

impl fmt::Display for CoreRangeSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, range) in self.ranges.iter().enumerate() {
            write!(f, "{}{range}", if i == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

/// The Tensix tiles of a board by their logical coordinates.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CoreGrid {
    columns: &'static [u8],
}

impl CoreGrid {
    /// The grid of a board, dispatch cores included.
    pub const fn new(board: Board) -> Self {
        Self { columns: board.worker_columns() }
    }
    /// Columns and rows.
    pub fn size(&self) -> (u32, u32) {
        (u32_of(self.columns.len()), u32::from(WORKER_Y_LAST - WORKER_Y_FIRST) + 1)
    }
    /// The tile at a logical coordinate, in the coordinates of packets; `None` outside the grid.
    pub fn tile(&self, core: CoreCoord) -> Option<NocXy> {
        let x = *self.columns.get(core.x as usize)?;
        let y = u8::try_from(core.y).ok()?.checked_add(WORKER_Y_FIRST)?;
        (y <= WORKER_Y_LAST).then_some(NocXy::new(x, y))
    }
    /// The logical coordinate of a Tensix tile.
    pub fn core(&self, tile: NocXy) -> Option<CoreCoord> {
        let x = self.columns.iter().position(|&x| x == tile.x)?;
        let y = tile.y.checked_sub(WORKER_Y_FIRST).filter(|_| tile.y <= WORKER_Y_LAST)?;
        Some(CoreCoord::new(u32_of(x), y.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(x0: u32, y0: u32, x1: u32, y1: u32) -> CoreRange {
        CoreRange::new(CoreCoord::new(x0, y0), CoreCoord::new(x1, y1))
    }

    #[test]
    fn sets_are_checked() {
        let error = |ranges: &[CoreRange]| CoreRangeSet::new(ranges.iter().copied()).unwrap_err().to_string();
        assert_eq!(error(&[range(2, 0, 1, 0)]), "core range (2,0)-(1,0): its start is behind its end");
        assert_eq!(error(&[range(0, 0, 3, 3), range(3, 3, 4, 4)]), "core ranges (0,0)-(3,3) and (3,3)-(4,4) overlap");
        assert_eq!(error(&[range(0, 0, 64, 0)]), "core range (0,0)-(64,0): expected coordinates below 64");
        let set = CoreRangeSet::new([range(0, 0, 3, 1), range(0, 2, 0, 2)]).unwrap();
        assert_eq!((set.num_cores(), set.to_string().as_str()), (9, "(0,0)-(3,1),(0,2)"));
        assert!(set.contains(CoreCoord::new(3, 1)) && !set.contains(CoreCoord::new(1, 2)));
    }

    #[test]
    fn logical_coordinates_leave_out_what_is_no_tensix_tile() {
        let grid = CoreGrid::new(Board::P100);
        assert_eq!(grid.size(), (12, 10));
        // Columns 8 and 9 hold DRAM and others (ISA documentation, grid).
        assert_eq!(grid.tile(CoreCoord::new(6, 0)), Some(NocXy::new(7, 2)));
        assert_eq!(grid.tile(CoreCoord::new(7, 0)), Some(NocXy::new(10, 2)));
        assert_eq!(grid.tile(CoreCoord::new(11, 1)), Some(Board::P100.dispatch_core()));
        assert_eq!(grid.tile(CoreCoord::new(12, 0)), None);
        assert_eq!(grid.tile(CoreCoord::new(0, 10)), None);
        for tile in Board::P100.tensix_tiles() {
            assert_eq!(grid.core(tile).and_then(|core| grid.tile(core)), Some(tile));
        }
        assert_eq!(grid.core(NocXy::new(8, 2)), None);
        assert_eq!(grid.core(NocXy::new(1, 1)), None);
    }
}
