//! How the two Vectors share a tile (`TileSplitAxis` of `pto-isa`).

use crate::arch::Arch;
use crate::core_id::{Lane, Lanes};
use crate::tile::Shape;

/// How a tile is shared by the two Vectors.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Split {
    /// Vector 0 has the whole tile. On A2A3 Vector 1 still takes part in the signals, without data.
    None,
    /// Vector 0 has the upper half of the rows.
    UpDown,
    /// Vector 0 has the left half of the columns.
    LeftRight,
    /// An odd number of rows: Vector 0 has one more.
    UpDownOdd,
    /// An odd number of columns: Vector 0 has one more.
    LeftRightOdd,
}

/// Layout of a Vector's share in a slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ShareLayout {
    /// Bytes from the slot's start to the share's first element.
    pub offset: usize,
    /// Bytes from one row to the next.
    pub stride: usize,
}

impl Split {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::None, Self::UpDown, Self::LeftRight, Self::UpDownOdd, Self::LeftRightOdd];

    /// The lanes that carry data.
    pub fn data_lanes(self) -> Lanes {
        if self == Self::None { Lanes::FIRST } else { Lanes::BOTH }
    }

    /// The lanes that signal: on A2A3 always both (mode 2 addresses both), on A5 those with data.
    pub fn signal_lanes(self, arch: Arch) -> Lanes {
        match arch {
            Arch::A5 => self.data_lanes(),
            Arch::A2A3 => Lanes::BOTH,
        }
    }

    /// Whether it splits an odd number of rows or columns.
    pub fn is_odd(self) -> bool {
        matches!(self, Self::UpDownOdd | Self::LeftRightOdd)
    }

    /// A lane's share of a whole tile; `None` if the tile cannot be split this way.
    pub fn share(self, whole: Shape, lane: Lane) -> Option<Shape> {
        let s = lane.index();
        let (rows, cols) = match self {
            Self::None => (whole.rows, whole.cols),
            Self::UpDown if whole.rows.is_multiple_of(2) => (whole.rows / 2, whole.cols),
            Self::LeftRight if whole.cols.is_multiple_of(2) => (whole.rows, whole.cols / 2),
            Self::UpDownOdd if !whole.rows.is_multiple_of(2) => (whole.rows / 2 + 1 - s, whole.cols),
            Self::LeftRightOdd if !whole.cols.is_multiple_of(2) => (whole.rows, whole.cols / 2 + 1 - s),
            _ => return None,
        };
        Some(Shape { rows, cols, ..whole })
    }

    /// Layout of a lane's share in a slot, from the share's own rows and columns, by the formulas
    /// of `pto-isa` (`include/pto/npu/*/TPop.hpp`).
    pub fn place(self, share: Shape, lane: Lane) -> ShareLayout {
        let (s, r, c, size) = (lane.index(), share.rows, share.cols, share.dtype.bytes());
        match self {
            Self::None => ShareLayout { offset: 0, stride: c * size },
            Self::UpDown => ShareLayout { offset: s * r * c * size, stride: c * size },
            Self::LeftRight => ShareLayout { offset: s * c * size, stride: 2 * c * size },
            Self::UpDownOdd => ShareLayout { offset: s * (r + s) * c * size, stride: c * size },
            Self::LeftRightOdd => {
                ShareLayout { offset: s * (c + s) * size, stride: (2 * c + 2 * s).saturating_sub(1) * size }
            }
        }
    }
}
