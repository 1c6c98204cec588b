//! Gathers rows of windows of images as tiles (`tilework_abi::conv`). Runs on NCRISC; feeds `conv`.
//!
//! Pixels lie as in tiles of a matrix with a row for each of them: sixteen channels of sixteen
//! pixels follow one another. So neighbours of a row of windows are one transfer within L1, as far
//! as the face of a tile goes.
#![no_std]
#![no_main]

use tilework_abi::conv::{AT_ONCE, PAGE, TILE, Windows, ZEROS, arg, cb, own};
use tilework_rt::cb::Producer;
use tilework_rt::dram::Interleaved;
use tilework_rt::reg::{publish, write};
use tilework_rt::{KernelContext, Noc, NocAddr, crta, kernel, rta};

kernel!(main);

/// Rows of a face, bytes of one, and of a face.
const FACE_ROWS: u32 = 16;
const ROW: u32 = 32;
const FACE: u32 = FACE_ROWS * ROW;
/// Bytes of 32 channels side by side.
const CHANNELS: u32 = 64;

/// Where the left half of row `row` of tiles that begin at `at` lies; tiles are `tiles` apart from
/// one row of them to the next. The right half is a face further.
#[inline(always)]
fn half_row(at: u32, row: u32, tiles: u32) -> u32 {
    at + row / TILE * tiles * PAGE + (row & FACE_ROWS) * 2 * ROW + row % FACE_ROWS * ROW
}

/// Transfers within L1.
struct Local {
    noc: Noc,
    me: u32,
    zeros: u32,
}

impl Local {
    /// Starts the transfer of some rows of both halves of a tile.
    #[inline(always)]
    fn copy(&mut self, from: u32, to: u32, rows: u32) {
        self.noc.read(NocAddr::new(self.me, from), to, rows * ROW);
        self.noc.read(NocAddr::new(self.me, from + FACE), to + FACE, rows * ROW);
    }

    /// The same of zeros.
    #[inline(always)]
    fn clear(&mut self, to: u32, rows: u32) {
        self.noc.read(NocAddr::new(self.me, self.zeros), to, rows * ROW);
        self.noc.read(NocAddr::new(self.me, self.zeros), to + FACE, rows * ROW);
    }
}

/// Pixels in L1, and the windows over them.
struct Gather {
    local: Local,
    windows: Windows,
    /// Where the tiles of pixels are, the first pixel there, and tiles of channels.
    at: u32,
    first: u32,
    channels: u32,
}

impl Gather {
    /// A row of tiles of windows, element by element: a tile for each of its channels.
    fn row(&mut self, row: u32, rows: &mut Producer) {
        let kernel = [self.windows.rows.kernel, self.windows.columns.kernel];
        let count = (self.windows.count()[0] - row * TILE).min(TILE);
        let place = self.windows.place(row * TILE);
        for i in 0..kernel[0] {
            rows.reserve_back(kernel[1] * self.channels);
            for j in 0..kernel[1] {
                for channel in 0..self.channels {
                    let to = rows.write_ptr_after(j * self.channels + channel);
                    self.tile(to, [i, j, channel], place, count);
                }
            }
            self.local.noc.read_barrier();
            rows.push_back(kernel[1] * self.channels);
        }
    }

    /// A tile: an element of `count` windows from one on, and zeros behind them.
    fn tile(&mut self, to: u32, [i, j, channel]: [u32; 3], [mut image, mut line, mut column]: [u32; 3], count: u32) {
        let Windows { rows, columns, .. } = self.windows;
        let mut done = 0;
        while done < count {
            // Windows of one row of the image.
            let end = count.min(done + columns.output - column);
            let row = rows.element(line, i);
            while done < end {
                let many =
                    self.run(row.map(|row| (image * rows.length + row) * columns.length), [column, j], end - done);
                let (pixel, many) = many;
                let many = many.min(FACE_ROWS - done % FACE_ROWS);
                let to = half_row(to, done, 1);
                let many = match pixel {
                    Some(pixel) => {
                        let pixel = pixel - self.first;
                        let many = many.min(FACE_ROWS - pixel % FACE_ROWS);
                        let from = half_row(self.at, pixel, self.channels) + channel * PAGE;
                        self.local.copy(from, to, many);
                        many
                    }
                    None => {
                        self.local.clear(to, many);
                        many
                    }
                };
                done += many;
                column += many;
            }
            if column == columns.output {
                column = 0;
                line += 1;
                if line == rows.output {
                    (line, image) = (0, image + 1);
                }
            }
        }
        while done < TILE {
            let many = FACE_ROWS - done % FACE_ROWS;
            self.local.clear(half_row(to, done, 1), many);
            done += many;
        }
    }

    /// The pixel of element `j` of window `column` in a row of the image whose first pixel is
    /// `row`, and how many windows have neighbours of it; none if they lie beyond the image.
    #[inline(always)]
    fn run(&self, row: Option<u32>, [column, j]: [u32; 2], most: u32) -> (Option<u32>, u32) {
        let columns = self.windows.columns;
        let Some(row) = row else { return (None, most) };
        let at = (column * columns.stride + j * columns.dilation).wrapping_sub(columns.before);
        match columns.element(column, j) {
            Some(x) if columns.stride == 1 => (Some(row + x), most.min(columns.length - x)),
            Some(x) => (Some(row + x), 1),
            None if columns.stride != 1 => (None, 1),
            // Before the image, or behind it up to the end.
            None if at > u32::MAX / 2 => (None, most.min(at.wrapping_neg())),
            None => (None, most),
        }
    }
}

/// Reads pixels in tiles.
fn read_tiles(ctx: &KernelContext, noc: &mut Noc, at: u32, [begin, end]: [u32; 2]) {
    let pages = Interleaved::new(ctx, crta(ctx, arg::PIXELS), PAGE);
    let mut page = pages.cursor(begin);
    noc.same_reads(0, PAGE);
    for i in 0..end - begin {
        noc.read_same(page.next_page(), at + i * PAGE);
    }
    noc.read_barrier();
}

/// Reads pixels in rows, some at once, and brings them to tiles. What goes on behind the last
/// channel is zero.
fn read_rows(ctx: &KernelContext, local: &mut Local, [at, aside]: [u32; 2], [begin, end]: [u32; 2]) {
    let [bytes, stride, channels] = [arg::ROW_BYTES, arg::STRIDE, arg::CHANNELS].map(|i| crta(ctx, i));
    let pages = Interleaved::new(ctx, crta(ctx, arg::PIXELS), stride);
    let pitch = channels * CHANNELS;
    if bytes != pitch {
        (aside..aside + AT_ONCE * pitch).step_by(4).for_each(|word| write(word, 0));
        publish(aside + AT_ONCE * pitch - 4);
    }
    let mut page = pages.cursor(begin);
    for first in (begin..end).step_by(AT_ONCE as usize) {
        let count = AT_ONCE.min(end - first);
        for i in 0..count {
            local.noc.read(page.next_page(), aside + i * pitch, bytes);
        }
        local.noc.read_barrier();
        for i in 0..count {
            for channel in 0..channels {
                let to = half_row(at, first + i - begin, channels) + channel * PAGE;
                let from = aside + i * pitch + channel * CHANNELS;
                local.noc.read(NocAddr::new(local.me, from), to, ROW);
                local.noc.read(NocAddr::new(local.me, from + ROW), to + FACE, ROW);
            }
        }
        local.noc.read_barrier();
    }
}

fn main(ctx: &KernelContext) {
    let (first, rows) = (rta(ctx, own::FIRST), rta(ctx, own::ROWS));
    let windows = Windows::of(|i| crta(ctx, arg::WINDOWS + i));
    let (channels, chunk) = (crta(ctx, arg::CHANNELS), crta(ctx, arg::CHUNK));
    let is_in_rows = crta(ctx, arg::ROW_BYTES) != 0;
    let [at, aside] = [cb::PIXELS, cb::ASIDE].map(|id| Producer::new(ctx, id).write_ptr());
    (aside..aside + ZEROS).step_by(4).for_each(|word| write(word, 0));
    publish(aside + ZEROS - 4);
    let local = Local { noc: Noc::of(ctx), me: ctx.my_xy, zeros: aside };
    let mut gather = Gather { local, windows, at, first: 0, channels };
    let mut to = Producer::new(ctx, cb::ROWS);
    for row in (first..first + rows).step_by(chunk as usize) {
        let rows = chunk.min(first + rows - row);
        let (begin, end) = windows.pixels(row, rows);
        if is_in_rows {
            let pixels = [begin * TILE, (end * TILE).min(windows.count()[1])];
            read_rows(ctx, &mut gather.local, [at, aside + ZEROS], pixels);
        } else {
            read_tiles(ctx, &mut gather.local.noc, at, [begin * channels, end * channels]);
        }
        gather.first = begin * TILE;
        (row..row + rows).for_each(|row| gather.row(row, &mut to));
    }
    gather.local.noc.full_barrier();
}
