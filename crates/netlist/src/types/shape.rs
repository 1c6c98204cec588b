//! Shapes of tensors, as blocks on a grid of cores and in elements, and what changes
//! them on the way.

/// Order in which tiles or ublocks are visited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Order {
    /// Row by row.
    #[default]
    Row,
    /// Column by column.
    Column,
}

/// Rows and columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Size {
    /// Rows.
    pub r: u32,
    /// Columns.
    pub c: u32,
}

/// Shape of a tensor as blocks on a grid of cores: `t` times (grid x mblock x ublock) tiles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Blocks {
    /// Cores, or buffers of a queue.
    pub grid: Size,
    /// Outermost count: matrices of a tensor.
    pub t: u32,
    /// Macro block: ublocks of a core.
    pub mblock: Size,
    /// Micro block: tiles.
    pub ublock: Size,
    /// Order of ublocks in an mblock.
    pub order: Order,
    /// Rows and columns of a tile; 32 x 32 unless the file says otherwise.
    pub tile: Size,
}

/// Shape of a tensor in elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Shape {
    /// Matrices.
    pub t: usize,
    /// Rows.
    pub rows: usize,
    /// Columns.
    pub columns: usize,
}

impl Blocks {
    /// Rows and columns in tiles of the whole tensor.
    pub fn tiles(&self) -> Size {
        Size { r: self.grid.r * self.mblock.r * self.ublock.r, c: self.grid.c * self.mblock.c * self.ublock.c }
    }

    /// The whole tensor in elements.
    pub fn shape(&self) -> Shape {
        let tiles = self.tiles();
        Shape {
            t: self.t as usize,
            rows: tiles.r as usize * self.tile.r as usize,
            columns: tiles.c as usize * self.tile.c as usize,
        }
    }
}

/// A dimension.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dim {
    /// Rows.
    R,
    /// Columns.
    C,
    /// Matrices (t).
    Z,
}

/// Padding in tiles.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pad {
    /// Rows of tiles.
    pub rt: u32,
    /// Columns of tiles.
    pub ct: u32,
    /// Value of the padding.
    pub value: f32,
}

/// A tensor manipulation on the way into an operation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Tm {
    /// Repeats the tensor.
    Broadcast(Dim, u32),
    /// Cuts columns into n matrices.
    HSlice(u32),
    /// Joins n matrices side by side; 0 joins all.
    HStack(u32),
    /// Cuts rows into n matrices.
    VSlice(u32),
    /// Joins n matrices one below the other; 0 joins all.
    VStack(u32),
    /// Swaps rows and columns of tiles (the operation swaps within a tile).
    Transpose,
    /// Repeats the first row or column of every tile; operands of fused operations only.
    TileBroadcast(Dim),
    /// Pads at the bottom and the right.
    Pad(Pad),
}
