//! Convolutions in one program: arguments of the kernels `conv`, `conv-read` and `conv-write`.
//!
//! The result is a matrix with a row for each window, in order of images, rows and columns, and a
//! column for each output channel. A core makes some rows of its tiles and some of its columns: it
//! reads the pixels that their windows have, gathers the rows of windows in L1 as tiles, and
//! multiplies them with weights, a row for each element of the window and channel.

/// Unique arguments.
pub mod own {
    /// The first row of tiles.
    pub const FIRST: u32 = 0;
    /// How many (may be 0).
    pub const ROWS: u32 = 1;
    /// The first column of tiles.
    pub const COLUMN: u32 = 2;
    /// How many arguments there are.
    pub const WORDS: u32 = 3;
}

/// Common arguments.
pub mod arg {
    /// Addresses in each DRAM bank: of pixels, weights and results.
    pub const PIXELS: u32 = 0;
    /// See [`PIXELS`].
    pub const WEIGHTS: u32 = 1;
    /// See [`PIXELS`].
    pub const RESULT: u32 = 2;
    /// Bytes of a row of channels of a pixel, of which each is a page; 0: pixels are rows of tiles.
    pub const ROW_BYTES: u32 = 3;
    /// Distance of such pages in a bank.
    pub const STRIDE: u32 = 4;
    /// Tiles of channels.
    pub const CHANNELS: u32 = 5;
    /// Tiles of a row of weights: elements of the window times tiles of channels.
    pub const INNER: u32 = 6;
    /// Tiles of a column of the result on this core, and of all.
    pub const COLUMNS: u32 = 7;
    /// See [`COLUMNS`].
    pub const ALL_COLUMNS: u32 = 8;
    /// Columns that are summed up at once, by which [`COLUMNS`] can be divided.
    pub const PART: u32 = 9;
    /// Phases of a product.
    pub const PHASES: u32 = 10;
    /// Whether Dst has elements of 32 bits.
    pub const WIDE: u32 = 11;
    /// Formats of pixels, weights and results (`Format` of the library of compute kernels).
    pub const FORMATS: u32 = 12;
    /// Bytes of a tile of results.
    pub const RESULT_PAGE: u32 = 15;
    /// Rows of tiles of the result for which pixels are in L1 at once.
    pub const CHUNK: u32 = 16;
    /// [`crate::conv::Windows`], [`crate::conv::Windows::WORDS`] numbers.
    pub const WINDOWS: u32 = 17;
    /// How many arguments there are.
    pub const WORDS: u32 = WINDOWS + super::Windows::WORDS;
}

/// Numbers of the circular buffers.
pub mod cb {
    /// Rows of windows: a row of tiles has [`super::arg::INNER`] of them.
    pub const ROWS: u32 = 0;
    /// Weights, which stay.
    pub const WEIGHTS: u32 = 1;
    /// Pixels in tiles; one page, for the reader alone.
    pub const PIXELS: u32 = 2;
    /// Pixels in rows, and zeros; one page, for the reader alone.
    pub const ASIDE: u32 = 3;
    /// The result.
    pub const RESULT: u32 = 16;
}

/// Rows of a tile.
pub const TILE: u32 = 32;
/// Bytes of a tile of pixels or weights.
pub const PAGE: u32 = 2048;
/// Bytes of zeros: as much as is gathered at once.
pub const ZEROS: u32 = 512;
/// Pixels in rows that are brought to tiles at once.
pub const AT_ONCE: u32 = 64;

/// Windows along one dimension.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Axis {
    /// Elements of the image.
    pub length: u32,
    /// Windows.
    pub output: u32,
    /// Elements of the window.
    pub kernel: u32,
    /// From window to window, and from element to element.
    pub stride: u32,
    /// See [`Self::stride`].
    pub dilation: u32,
    /// Where the first window begins before the image.
    pub before: u32,
}

/// Windows over rows and columns of images.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Windows {
    /// Images.
    pub batch: u32,
    /// Rows.
    pub rows: Axis,
    /// Columns.
    pub columns: Axis,
}

impl Axis {
    const WORDS: u32 = 6;

    const fn words(self) -> [u32; Self::WORDS as usize] {
        [self.length, self.output, self.kernel, self.stride, self.dilation, self.before]
    }
    fn of(word: impl Fn(u32) -> u32) -> Self {
        Self { length: word(0), output: word(1), kernel: word(2), stride: word(3), dilation: word(4), before: word(5) }
    }
    /// The element of the image of a window's element, if it is one of the image.
    #[inline(always)]
    pub const fn element(self, window: u32, element: u32) -> Option<u32> {
        let at = (window * self.stride + element * self.dilation).wrapping_sub(self.before);
        if at < self.length { Some(at) } else { None }
    }
}

impl Windows {
    /// Numbers that say which they are.
    pub const WORDS: u32 = 1 + 2 * Axis::WORDS;

    /// These numbers.
    pub fn words(self) -> [u32; Self::WORDS as usize] {
        let mut words = [self.batch; Self::WORDS as usize];
        let (rows, columns) = words[1..].split_at_mut(Axis::WORDS as usize);
        rows.copy_from_slice(&self.rows.words());
        columns.copy_from_slice(&self.columns.words());
        words
    }

    /// From these numbers.
    pub fn of(word: impl Fn(u32) -> u32) -> Self {
        let axis = |first: u32| Axis::of(|i| word(first + i));
        Self { batch: word(0), rows: axis(1), columns: axis(1 + Axis::WORDS) }
    }

    /// How many windows there are, and pixels.
    pub const fn count(self) -> [u32; 2] {
        let Self { batch, rows, columns } = self;
        [batch * rows.output * columns.output, batch * rows.length * columns.length]
    }

    /// Image, row and column of a window.
    #[inline(always)]
    pub const fn place(self, window: u32) -> [u32; 3] {
        let (columns, rows) = (self.columns.output, self.rows.output);
        let line = window / columns;
        [line / rows, line % rows, window % columns]
    }

    /// The rows of tiles of pixels of which windows of some rows of tiles of the result have
    /// pixels: the first one and the one behind the last.
    pub fn pixels(self, first: u32, rows: u32) -> (u32, u32) {
        let [count, _] = self.count();
        let end = (first + rows) * TILE;
        let last = if end < count { end } else { count } - 1;
        let line = |window: u32, element: u32| {
            let [image, row, _] = self.place(window);
            let at = (row * self.rows.stride + element * self.rows.dilation).saturating_sub(self.rows.before);
            let at = if at < self.rows.length { at } else { self.rows.length - 1 };
            image * self.rows.length + at
        };
        let begin = line(first * TILE, 0) * self.columns.length;
        let end = (line(last, self.rows.kernel - 1) + 1) * self.columns.length;
        (begin / TILE, end.div_ceil(TILE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every pixel of every window is among those that are read.
    #[test]
    fn pixels_of_windows_are_read() {
        let axis = |length, kernel, stride, dilation, before, after: u32| {
            let output = (length + before + after - (kernel - 1) * dilation - 1) / stride + 1;
            Axis { length, output, kernel, stride, dilation, before }
        };
        let axes = [axis(20, 3, 1, 1, 1, 1), axis(13, 3, 2, 1, 1, 0), axis(9, 2, 1, 3, 0, 0), axis(7, 7, 1, 1, 6, 6)];
        for (rows, columns) in axes.into_iter().flat_map(|rows| axes.map(|columns| (rows, columns))) {
            let windows = Windows { batch: 3, rows, columns };
            assert_eq!(Windows::of(|i| windows.words()[i as usize]), windows);
            let [count, pixels] = windows.count();
            for first in 0..count.div_ceil(TILE) {
                let (from, to) = windows.pixels(first, 1);
                assert!(from < to && to <= pixels.div_ceil(TILE));
                for window in first * TILE..count.min((first + 1) * TILE) {
                    let [image, row, column] = windows.place(window);
                    for i in 0..rows.kernel {
                        for j in 0..columns.kernel {
                            let at = rows.element(row, i).zip(columns.element(column, j));
                            let pixel = at.map(|(y, x)| (image * rows.length + y) * columns.length + x);
                            assert!(pixel.is_none_or(|pixel| (from..to).contains(&(pixel / TILE))), "{windows:?}");
                        }
                    }
                }
            }
        }
    }
}
