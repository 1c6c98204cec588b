//! Which shard a page is in, and where in it.
//!
//! A tensor of R x C pages is divided into shards of r x c pages, counted along its rows. Within a
//! shard pages lie row by row; a shard at the edge leaves out what the tensor does not have, so
//! that every row begins at a multiple of c (tt-metal's `generate_buffer_page_mapping`).

use super::{CoreCoord, ShardError, ShardSpecBuffer, TensorMemoryLayout};

/// The shards of a buffer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Shards {
    /// Rows and columns of the tensor, in pages.
    pub(super) tensor: [u32; 2],
    /// Rows and columns of a shard, in pages.
    pub(super) shard: [u32; 2],
}

impl Shards {
    /// The shards of `spec`, after the checks of its layout.
    pub(super) fn new(layout: TensorMemoryLayout, spec: &ShardSpecBuffer) -> Result<Self, ShardError> {
        let (shape, page) = (spec.tensor_shard_spec.shape, spec.page_shape);
        let whole = |i: usize| page[i] > 0 && shape[i] > 0 && shape[i].is_multiple_of(page[i]);
        if !whole(0) || !whole(1) {
            return Err(ShardError::PageShape { shard: shape, page });
        }
        let shards = Self { tensor: spec.tensor2d_shape_in_pages, shard: [shape[0] / page[0], shape[1] / page[1]] };
        if shards.shard_pages() > u32::MAX.into() {
            return Err(ShardError::Pages(shards.shard));
        }
        let must_be_whole = match layout {
            TensorMemoryLayout::HeightSharded => Some(("width", 1)),
            TensorMemoryLayout::WidthSharded => Some(("height", 0)),
            TensorMemoryLayout::BlockSharded | TensorMemoryLayout::Interleaved => None,
        };
        if let Some((dimension, i)) = must_be_whole
            && shards.shard[i] != shards.tensor[i]
            && shards.pages() > 0
        {
            let (found, expected) = (shards.shard[i], shards.tensor[i]);
            return Err(ShardError::Whole { dimension, found, expected });
        }
        Ok(shards)
    }
    /// Pages of the tensor.
    pub(super) fn pages(&self) -> u64 {
        u64::from(self.tensor[0]) * u64::from(self.tensor[1])
    }
    /// Pages of a whole shard.
    pub(super) fn shard_pages(&self) -> u64 {
        u64::from(self.shard[0]) * u64::from(self.shard[1])
    }
    /// Rows and columns of shards.
    pub(super) fn grid(&self) -> [u32; 2] {
        match self.pages() {
            0 => [0, 0],
            _ => [self.tensor[0].div_ceil(self.shard[0]), self.tensor[1].div_ceil(self.shard[1])],
        }
    }
    /// Number of shards.
    pub(super) fn count(&self) -> u64 {
        let [rows, columns] = self.grid();
        u64::from(rows) * u64::from(columns)
    }
    /// The shard of a page of the tensor, and its place there.
    pub(super) fn place(&self, page: u32) -> (u32, u32) {
        let ([_, columns], [r, c]) = (self.tensor, self.shard);
        let (row, column) = (page / columns, page % columns);
        let [_, across] = self.grid();
        (row / r * across + column / c, row % r * c + column % c)
    }
    /// Lines of pages that follow one another in memory and are evenly spaced in the tensor: all
    /// pages of a shard if it is as wide as the tensor or one page wide, otherwise those of each of
    /// its rows.
    pub(super) fn lines(&self) -> u64 {
        match self.in_one_line() {
            true => self.count(),
            false => self.count() * u64::from(self.rows()),
        }
    }
    /// Line number `line`: its first page and number of pages in the tensor, and their distance
    /// there. A row that an edge shard does not have is empty.
    pub(super) fn line(&self, line: u64) -> Line {
        let ([rows, columns], [r, c]) = (self.tensor, self.shard);
        let [_, across] = self.grid();
        let (shard, inner) = match self.in_one_line() {
            true => (line, 0),
            false => (line / u64::from(self.rows()), line % u64::from(self.rows())),
        };
        // Shards are fewer than pages, which have 32 bits, and so have rows within one.
        let (shard, inner) = (u32::try_from(shard).unwrap_or(u32::MAX), u32::try_from(inner).unwrap_or(u32::MAX));
        let (top, left) = (shard / across * r + inner, shard % across * c);
        if top >= rows {
            return Line { first: 0, pages: 0, stride: 1 };
        }
        let first = top * columns + left;
        let high = r.min(rows - top);
        match (self.in_one_line(), c) {
            (true, 1) => Line { first, pages: high, stride: columns },
            (true, _) => Line { first, pages: high * columns, stride: 1 },
            (false, _) => Line { first, pages: c.min(columns - left), stride: 1 },
        }
    }
    /// Rows of a shard that the tensor can fill.
    fn rows(&self) -> u32 {
        self.shard[0].min(self.tensor[0]).max(1)
    }
    fn in_one_line(&self) -> bool {
        self.shard[1] == 1 || self.shard[1] == self.tensor[1]
    }

    /// The cores of the shards, in their order.
    pub(super) fn cores(
        &self,
        layout: TensorMemoryLayout,
        spec: &ShardSpecBuffer,
    ) -> Result<Vec<CoreCoord>, ShardError> {
        let (grid, orientation) = (&spec.tensor_shard_spec.grid, spec.tensor_shard_spec.orientation);
        if grid.num_cores() == 0 {
            return Err(ShardError::NoCores);
        }
        if layout == TensorMemoryLayout::BlockSharded {
            return self.block_cores(spec);
        }
        let (shards, cores) = (self.count(), grid.num_cores());
        if shards > cores as u64 {
            return Err(ShardError::TooFewCores { shards, cores });
        }
        // At most as many as there are cores.
        let shards = usize::try_from(shards).unwrap_or(cores);
        Ok(grid.cores(orientation).take(shards).collect())
    }

    /// Blocks lie on the cores as in the tensor, or transposed; of a rectangle that is larger than
    /// needed the corner at its start is used.
    fn block_cores(&self, spec: &ShardSpecBuffer) -> Result<Vec<CoreCoord>, ShardError> {
        use super::ShardOrientation::{ColMajor, RowMajor};
        let spec = &spec.tensor_shard_spec;
        let [range] = spec.grid.ranges() else { return Err(ShardError::NotRectangle(spec.grid.ranges().len())) };
        let (across, down) = range.size();
        let cores = match spec.orientation {
            RowMajor => [down, across],
            ColMajor => [across, down],
        };
        let shards = self.grid();
        if shards[0] > cores[0] || shards[1] > cores[1] {
            return Err(ShardError::SmallRectangle { shards, cores });
        }
        let core = |row: u32, column: u32| {
            let (x, y) = match spec.orientation {
                RowMajor => (column, row),
                ColMajor => (row, column),
            };
            CoreCoord::new(range.start.x + x, range.start.y + y)
        };
        Ok((0..shards[0]).flat_map(|row| (0..shards[1]).map(move |column| core(row, column))).collect())
    }
}

/// Pages that follow one another in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Line {
    /// The first one.
    pub(super) first: u32,
    /// How many.
    pub(super) pages: u32,
    /// From one to the next, in the tensor.
    pub(super) stride: u32,
}

impl Line {
    /// The pages from `from` on, below `to`.
    pub(super) fn within(self, from: u32, to: u32) -> Self {
        let skip = from.saturating_sub(self.first).div_ceil(self.stride).min(self.pages);
        let first = self.first.saturating_add(skip.saturating_mul(self.stride));
        let room = to.saturating_sub(first).div_ceil(self.stride);
        Self { first, pages: (self.pages - skip).min(room), stride: self.stride }
    }
}
