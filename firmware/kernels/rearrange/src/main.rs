//! Makes the pages of a tensor from elements of others (`tilework_abi::rearrange`). Runs on either
//! data-movement core; brings tensors from one layout to another, and permutes, slices,
//! concatenates, pads, repeats and reshapes them.
//!
//! For each page of the result it goes through the elements row by row, in runs that are neighbours
//! on both sides. A run waits in a list until its source is in L1; the core copies all runs
//! of the list when the reads are done. Sources are read in pieces of pages, which stay in L1 as
//! long as no other piece needs their slot. The last page of the index stays, too.
//!
//! Where the result has fewer pages than there are cores, several cores have a part of a page each:
//! bytes that follow each other, which are rows of a tile's faces.
#![no_std]
#![no_main]

use tilework_abi::rearrange::{BOXES, DIMS, RUN_BYTES, RUNS, TAG_BYTES, arg, index, of_box, own};
use tilework_rt::cb::Producer;
use tilework_rt::dram::Interleaved;
use tilework_rt::reg::{publish, read, read8, read16, stop, write, write8, write16};
use tilework_rt::{KernelContext, Noc, crta, kernel, rta};

kernel!(main);

/// Rows and columns of a tile, and of a face.
const TILE: u32 = 32;
const FACE: u32 = 16;
/// The tag of an empty slot: no piece has this number.
const EMPTY: u32 = u32::MAX;
/// Where the number of a piece ends and that of its box begins.
const BOX_SHIFT: u32 = 28;

/// How the elements of a tensor lie in pages.
#[derive(Clone, Copy)]
struct Form {
    tiles: bool,
    columns: u32,
    rows: u32,
    /// Tiles side by side, and one below the other in a matrix.
    across: u32,
    down: u32,
}

impl Form {
    #[inline(always)]
    fn new(tiles: bool, columns: u32, rows: u32) -> Self {
        Self { tiles, columns, rows, across: columns.div_ceil(TILE), down: rows.div_ceil(TILE) }
    }

    /// The page of an element, its row in it, and its column in its row.
    #[inline(always)]
    fn find(&self, element: u32) -> [u32; 3] {
        let line = element / self.columns;
        let column = element - line * self.columns;
        if self.tiles {
            let matrix = line / self.rows;
            let row = line - matrix * self.rows;
            let down = matrix * self.down + row / TILE;
            [down * self.across + column / TILE, row % TILE, column]
        } else {
            [line, 0, column]
        }
    }
}

/// The place of an element in a row or a tile.
#[inline(always)]
fn in_page(tiles: bool, row: u32, column: u32) -> u32 {
    if tiles {
        let face = (row & FACE) * 2 + (column & FACE);
        face * FACE + (row % FACE) * FACE + column % FACE
    } else {
        column
    }
}

/// A part of the result, and the source of its elements.
#[derive(Clone, Copy)]
struct Part {
    pages: Interleaved,
    bytes: u32,
    /// Pieces of a page.
    pieces: u32,
    form: Form,
    base: u32,
    low: [u32; DIMS],
    high: [u32; DIMS],
    strides: [u32; DIMS],
    step: u32,
}

impl Part {
    #[inline(always)]
    fn new(ctx: &KernelContext, at: u32) -> Self {
        let arg = |i| crta(ctx, at + i);
        let list = |first: u32| core::array::from_fn(|k| arg(first + k as u32));
        Self {
            pages: Interleaved::new(ctx, arg(of_box::ADDRESS), arg(of_box::STRIDE)),
            bytes: arg(of_box::BYTES),
            pieces: ((arg(of_box::BYTES) - 1) >> crta(ctx, arg::SLOT_SHIFT)) + 1,
            form: Form::new(arg(of_box::TILES) != 0, arg(of_box::COLUMNS), arg(of_box::ROWS)),
            base: arg(of_box::BASE),
            low: list(of_box::LOW),
            high: list(of_box::HIGH),
            strides: list(of_box::STRIDES),
            step: arg(of_box::STEP),
        }
    }

    /// The source's element for the first of the box's columns in a row of the result, if the row
    /// is in the box.
    #[inline(always)]
    fn row(&self, at: &[u32; DIMS - 1]) -> Option<u32> {
        let mut element = self.base;
        for k in 0..DIMS - 1 {
            if at[k] < self.low[k] || at[k] >= self.high[k] {
                return None;
            }
            element = element.wrapping_add(self.strides[k].wrapping_mul(at[k] - self.low[k]));
        }
        Some(element)
    }
}

/// Numbers of another tensor that boxes take.
struct Index {
    pages: Interleaved,
    bytes: u32,
    form: Form,
    base: u32,
    strides: [u32; DIMS],
    size: u32,
    bound: u32,
    /// Which page is in L1, and where.
    page: u32,
    at: u32,
}

impl Index {
    #[inline(always)]
    fn new(ctx: &KernelContext, at: u32) -> Self {
        let arg = |i| crta(ctx, arg::INDEX + i);
        Self {
            pages: Interleaved::new(ctx, arg(of_box::ADDRESS), arg(of_box::STRIDE)),
            bytes: arg(of_box::BYTES),
            form: Form::new(arg(of_box::TILES) != 0, arg(of_box::COLUMNS), arg(of_box::ROWS)),
            base: arg(index::BASE),
            strides: core::array::from_fn(|k| arg(index::STRIDES + k as u32)),
            size: arg(index::SIZE),
            bound: arg(index::BOUND),
            page: EMPTY,
            at,
        }
    }

    /// The element of a row of a box, its last coordinate taken as zero.
    #[inline(always)]
    fn row(&self, at: &[u32; DIMS - 1], low: &[u32; DIMS]) -> u32 {
        (0..DIMS - 1).fold(self.base, |sum, k| sum.wrapping_add(self.strides[k].wrapping_mul(at[k] - low[k])))
    }

    /// The number at an element.
    #[inline(never)]
    fn get(&mut self, noc: &mut Noc, element: u32) -> u32 {
        let [page, row, column] = self.form.find(element);
        if page != self.page {
            noc.read(self.pages.page(page), self.at, self.bytes);
            noc.read_barrier();
            self.page = page;
        }
        let at = self.at + (in_page(self.form.tiles, row, column) << self.size);
        let number = match self.size {
            0 => read8(at).into(),
            1 => read16(at).into(),
            _ => read(at),
        };
        if number >= self.bound {
            stop();
        }
        number
    }
}

/// The kernel's memory, and what waits in it.
struct Work {
    noc: Noc,
    size: u32,
    slots: u32,
    slot_shift: u32,
    tags: u32,
    runs: u32,
    pages: u32,
    waiting: u32,
    batch: u32,
}

impl Work {
    /// The address in L1 of a byte of a source's page, which is there when [`Work::flush`] has been
    /// called.
    #[inline(always)]
    fn find(&mut self, number: u32, part: &Part, page: u32, byte: u32) -> u32 {
        let in_page = byte >> self.slot_shift;
        let piece = page * part.pieces + in_page;
        let tag = number << BOX_SHIFT | piece;
        let slot = (piece + number * 5) & (self.slots - 1);
        let (entry, at) = (self.tags + slot * TAG_BYTES, self.pages + (slot << self.slot_shift));
        let begin = in_page << self.slot_shift;
        if read(entry) != tag {
            if read(entry + 4) == self.batch {
                self.flush();
            }
            let bytes = (part.bytes - begin).min(1 << self.slot_shift);
            self.noc.read(part.pages.page(page).plus(begin), at, bytes);
            write(entry, tag);
        }
        write(entry + 4, self.batch);
        at + byte - begin
    }

    /// Remembers a run of elements.
    #[inline(always)]
    fn run(&mut self, from: u32, to: u32, elements: u32) {
        let entry = self.runs + self.waiting * RUN_BYTES;
        write(entry, from);
        write(entry + 4, to);
        write(entry + 8, elements << self.size);
        self.waiting += 1;
    }

    /// Copies all runs that wait.
    #[inline(never)]
    fn flush(&mut self) {
        self.noc.read_barrier();
        let (mut entry, mut end) = (self.runs, 0);
        for _ in 0..self.waiting {
            let (from, to, bytes) = (read(entry), read(entry + 4), read(entry + 8));
            copy(from, to, bytes);
            end = to + bytes;
            entry += RUN_BYTES;
        }
        // The last of these stores, wherever in the page: those before it come before it.
        if end != 0 {
            publish((end - 1) & !3);
        }
        self.waiting = 0;
        self.batch += 1;
    }
}

/// Copies bytes in L1 in the largest pieces that both sides allow.
#[inline(always)]
fn copy(from: u32, to: u32, bytes: u32) {
    let all = from | to | bytes;
    let mut i = 0;
    if all % 4 == 0 {
        // Loads one after the other do not wait for each other.
        while i + 16 <= bytes {
            let words = [read(from + i), read(from + i + 4), read(from + i + 8), read(from + i + 12)];
            write(to + i, words[0]);
            write(to + i + 4, words[1]);
            write(to + i + 8, words[2]);
            write(to + i + 12, words[3]);
            i += 16;
        }
        while i < bytes {
            write(to + i, read(from + i));
            i += 4;
        }
    } else if all % 2 == 0 {
        while i < bytes {
            write16(to + i, read16(from + i));
            i += 2;
        }
    } else {
        while i < bytes {
            write8(to + i, read8(from + i));
            i += 1;
        }
    }
}

fn main(ctx: &KernelContext) {
    let arg = |i| crta(ctx, i);
    let dims: [u32; DIMS] = core::array::from_fn(|k| arg(arg::DIMS + k as u32));
    let form = Form::new(arg(arg::TILES) != 0, dims[DIMS - 1], dims[DIMS - 2]);
    let count = arg(arg::BOXES).min(BOXES as u32);
    let mut parts = [Part::new(ctx, arg::FIRST_BOX); BOXES];
    for (i, part) in (1..count).zip(&mut parts[1..]) {
        *part = Part::new(ctx, arg::FIRST_BOX + i * of_box::WORDS);
    }

    let memory = Producer::new(ctx, arg(arg::CB));
    memory.reserve_back(1);
    let page_bytes = arg(arg::BYTES).next_multiple_of(64);
    let (slots, slot_shift) = (arg(arg::SLOTS), arg(arg::SLOT_SHIFT));
    let staging = memory.write_ptr();
    let pages = staging + 2 * page_bytes;
    let tags = pages + (slots << slot_shift);
    let runs = tags + slots * TAG_BYTES;
    let mut index = Index::new(ctx, tags + (slots * TAG_BYTES + RUNS * RUN_BYTES).next_multiple_of(64));
    for slot in 0..slots {
        write(tags + slot * TAG_BYTES, EMPTY);
        write(tags + slot * TAG_BYTES + 4, 0);
    }
    let size = arg(arg::SIZE);
    let mut work = Work { noc: Noc::of(ctx), size, slots, slot_shift, tags, runs, pages, waiting: 0, batch: 1 };

    for (i, part) in (0..count).zip(&mut parts) {
        let moves = crta(ctx, arg::FIRST_BOX + i * of_box::WORDS + of_box::MOVES) as usize;
        if (1..=DIMS).contains(&moves) {
            let number = index.get(&mut work.noc, index.base);
            part.low[moves - 1] += number;
            part.high[moves - 1] += number;
        }
    }

    let target = Interleaved::new(ctx, arg(arg::ADDRESS), arg(arg::STRIDE));
    let (first, of_page, part_bytes) = (rta(ctx, own::FIRST), arg(arg::PARTS), arg(arg::PART_BYTES));
    let mut page = first / of_page;
    let mut part = first - page * of_page;
    let mut out = target.cursor(page);
    let mut staged = staging;
    for i in 0..rta(ctx, own::PARTS) {
        // The part before may still be leaving; the one before that has left.
        if i >= 2 {
            work.noc.writes_flushed();
        }
        let begin = part * part_bytes;
        let end = (begin + part_bytes).min(arg(arg::BYTES));
        let end_word = end.next_multiple_of(64);
        if arg(arg::FILLS) != 0 {
            for i in (begin..end_word).step_by(4) {
                write(staged + i, arg(arg::FILL));
            }
            publish(staged + end_word - 4);
        }
        let area = area(&form, page, part, of_page, part_bytes >> size);
        fill((&mut work, &mut index), &form, &dims, &parts[..count as usize], area, staged);
        work.flush();
        work.noc.write(staged + begin, out.here().plus(begin), end - begin);
        part += 1;
        if part == of_page {
            (part, page) = (0, page + 1);
            out.next_page();
        }
        staged = if staged == staging { staging + page_bytes } else { staging };
    }
    work.noc.full_barrier();
}

/// Elements of the result: rows and columns of a matrix.
#[derive(Clone, Copy)]
struct Area {
    matrix: u32,
    rows: [u32; 2],
    columns: [u32; 2],
    /// The first column of the page.
    left: u32,
}

/// The area of a part of a page; one of a row has so many elements.
#[inline(always)]
fn area(form: &Form, page: u32, part: u32, of_page: u32, elements: u32) -> Area {
    if !form.tiles {
        let matrix = page / form.rows;
        let (row, column) = (page - matrix * form.rows, part * elements);
        let right = (column + elements).min(form.columns);
        return Area { matrix, rows: [row, row + 1], columns: [column, right], left: 0 };
    }
    let row = page / form.across;
    let matrix = row / form.down;
    let (down, left) = (row - matrix * form.down, (page - row * form.across) * TILE);
    let (mut top, mut column, mut height, mut width) = (down * TILE, left, TILE, TILE);
    if of_page == 2 {
        height = FACE;
        top += part * FACE;
    } else if of_page > 2 {
        // Rows of faces one after the other.
        (height, width) = (4 * FACE / of_page, FACE);
        let first = part * height;
        top += (first & (2 * FACE)) / 2 + first % FACE;
        column += first & FACE;
    }
    let (bottom, right) = ((top + height).min(form.rows), (column + width).min(form.columns));
    Area { matrix, rows: [top, bottom], columns: [column, right], left }
}

/// Collects the elements of an area of the result.
#[inline(always)]
fn fill(
    (work, index): (&mut Work, &mut Index),
    form: &Form,
    dims: &[u32; DIMS],
    parts: &[Part],
    area: Area,
    staged: u32,
) {
    let Area { matrix, rows: [top, bottom], columns: [begin, end], left } = area;
    let mut at = [0; DIMS - 1];
    let mut rest = matrix;
    for k in (0..DIMS - 2).rev() {
        at[k] = rest % dims[k];
        rest /= dims[k];
    }
    for row in top..bottom {
        at[DIMS - 2] = row;
        for (number, part) in (0..).zip(parts) {
            let Some(first) = part.row(&at) else { continue };
            let (low, high) = (part.low[DIMS - 1].max(begin), part.high[DIMS - 1].min(end));
            if low < high {
                let step = part.strides[DIMS - 1];
                let element = first.wrapping_add(step.wrapping_mul(low - part.low[DIMS - 1]));
                if part.step == 0 {
                    columns(work, form, (number, part), [row, low, high, left], [element, step], staged);
                } else {
                    let here = (number, part);
                    indexed((work, index), form, here, (&at, [low, high, left]), [element, step], staged);
                }
            }
        }
    }
}

/// Collects the elements of a row of a page that are further on by numbers of the index.
#[inline(never)]
fn indexed(
    (work, index): (&mut Work, &mut Index),
    form: &Form,
    (number, part): (u32, &Part),
    (at, [low, high, left]): (&[u32; DIMS - 1], [u32; 3]),
    [element, step]: [u32; 2],
    staged: u32,
) {
    let along = index.strides[DIMS - 1];
    let first = index.row(at, &part.low);
    let (row, mut column, mut element) = (at[DIMS - 2], low, element);
    while column < high {
        // Without a stride along the row all its elements have the same number.
        let end = if along == 0 { high } else { column + 1 };
        let of = first.wrapping_add(along.wrapping_mul(column - part.low[DIMS - 1]));
        let further = part.step.wrapping_mul(index.get(&mut work.noc, of));
        let from = element.wrapping_add(further);
        columns(work, form, (number, part), [row, column, end, left], [from, step], staged);
        element = element.wrapping_add(step.wrapping_mul(end - column));
        column = end;
    }
}

/// Collects the elements of a row of a page, from column `low` to before `high`.
#[inline(always)]
fn columns(
    work: &mut Work,
    form: &Form,
    (number, part): (u32, &Part),
    [row, low, high, left]: [u32; 4],
    [element, step]: [u32; 2],
    staged: u32,
) {
    let from = &part.form;
    let (mut column, mut element) = (low, element);
    while column < high {
        let [source_page, source_row, source_column] = from.find(element);
        // How many are neighbours on both sides.
        let mut elements = 1;
        if step == 1 {
            elements = (high - column).min(from.columns - source_column);
            if from.tiles {
                elements = elements.min(FACE - source_column % FACE);
            } else {
                let most = 1 << (work.slot_shift - work.size);
                elements = elements.min(most - (source_column & (most - 1)));
            }
            if form.tiles {
                elements = elements.min(FACE - column % FACE);
            }
        }
        if work.waiting == RUNS {
            work.flush();
        }
        let source = in_page(from.tiles, source_row, source_column) << work.size;
        let at = work.find(number, part, source_page, source);
        let target = in_page(form.tiles, row % TILE, column - left);
        work.run(at, staged + (target << work.size), elements);
        column += elements;
        element = element.wrapping_add(step.wrapping_mul(elements));
    }
}
