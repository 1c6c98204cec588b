//! Works on lines of elements (`tilework_abi::lines`): puts them in order, chooses the first ones,
//! writes elements to places in them, or runs over them. Runs on either data-movement core.
//!
//! A line is a page of a tensor in rows. Elements are words while the kernel works on them: floats
//! in float32, integers as they are. Arithmetic of floats is that of software: the core has none.
#![no_std]
#![no_main]

mod draw;

use tilework_abi::lines::{PIECE, arg, by, element, flag, own, table, what};
use tilework_rt::cb::Producer;
use tilework_rt::dram::Interleaved;
use tilework_rt::reg::{publish, read, read8, read16, stop, write, write8, write16};
use tilework_rt::{KernelContext, Noc, crta, kernel, rta};

kernel!(main);

/// A tensor, and where in L1 a page of it is.
#[derive(Clone, Copy)]
struct Pages {
    pages: Interleaved,
    bytes: u32,
    at: u32,
}

impl Pages {
    /// The tensor with these arguments; its page is at `free`, which goes behind it.
    fn new(ctx: &KernelContext, first: u32, free: &mut u32, room: Option<u32>) -> Self {
        let bytes = crta(ctx, first + 2);
        let at = *free;
        *free += room.unwrap_or(bytes).next_multiple_of(64);
        Self { pages: Interleaved::new(ctx, crta(ctx, first), crta(ctx, first + 1)), bytes, at }
    }

    fn read(&self, noc: &mut Noc, page: u32) {
        noc.read(self.pages.page(page), self.at, self.bytes);
    }

    fn write(&self, noc: &mut Noc, page: u32) {
        publish(self.at + (self.bytes - 1) / 4 * 4);
        noc.write(self.at, self.pages.page(page), self.bytes);
    }
}

/// What is worked on.
struct Work {
    noc: Noc,
    by: u32,
    element: u32,
    value: u32,
    index: u32,
    length: u32,
    count: u32,
    flags: u32,
    lines: Pages,
    places: Pages,
    updates: Pages,
    values: Pages,
    numbers: Pages,
    tables: [u32; 3],
}

/// Element `i` of a line at an address.
#[inline(always)]
fn load(at: u32, kind: u32, i: u32) -> u32 {
    match kind {
        element::BF16 => u32::from(read16(at + i * 2)) << 16,
        element::U16 => read16(at + i * 2).into(),
        element::U8 => read8(at + i).into(),
        _ => read(at + i * 4),
    }
}

/// Stores element `i` of a line.
#[inline(always)]
fn store(at: u32, kind: u32, i: u32, word: u32) {
    match kind {
        element::BF16 => write16(at + i * 2, bfloat16(word)),
        element::U16 => write16(at + i * 2, word as u16),
        element::U8 => write8(at + i, word as u8),
        _ => write(at + i * 4, word),
    }
}

/// A float32 rounded to the nearest bfloat16, ties to even.
#[inline(always)]
fn bfloat16(word: u32) -> u16 {
    if is_nan(word) {
        return (word >> 16) as u16 | 0x40;
    }
    (word.wrapping_add(0x7FFF + (word >> 16 & 1)) >> 16) as u16
}

#[inline(always)]
fn is_nan(word: u32) -> bool {
    word & 0x7FFF_FFFF > 0x7F80_0000
}

#[inline(always)]
fn is_float(kind: u32) -> bool {
    kind <= element::BF16
}

/// A number that is the larger the later the element comes in order.
#[inline(always)]
fn rank(kind: u32, word: u32) -> u32 {
    match kind {
        element::I32 => word ^ 1 << 31,
        element::F32 | element::BF16 => {
            if is_nan(word) {
                u32::MAX
            } else if word == 1 << 31 {
                1 << 31
            } else if word >> 31 == 1 {
                !word
            } else {
                word | 1 << 31
            }
        }
        _ => word,
    }
}

/// What an element and one that comes to it make.
#[inline(never)]
fn fold(way: u32, kind: u32, a: u32, b: u32) -> u32 {
    let (x, y) = (f32::from_bits(a), f32::from_bits(b));
    match (way, is_float(kind)) {
        (by::SUM, true) => (x + y).to_bits(),
        (by::SUM, false) => a.wrapping_add(b),
        (by::PRODUCT, true) => (x * y).to_bits(),
        (by::PRODUCT, false) => a.wrapping_mul(b),
        (by::MAX, _) if rank(kind, a) > rank(kind, b) => a,
        (by::MIN, float) if float && is_nan(a) => a,
        (by::MIN, float) if rank(kind, a) < rank(kind, b) && !(float && is_nan(b)) => a,
        _ => b,
    }
}

fn main(ctx: &KernelContext) {
    let arg = |i| crta(ctx, i);
    let memory = Producer::new(ctx, arg(arg::CB));
    memory.reserve_back(1);
    let (does, length, count) = (arg(arg::WHAT), arg(arg::LENGTH), arg(arg::COUNT));
    let mut free = memory.write_ptr();
    let piece = if does == what::FIRST { Some(PIECE) } else { None };
    let mut work = Work {
        noc: Noc::of(ctx),
        by: arg(arg::BY),
        element: arg(arg::ELEMENT),
        value: arg(arg::VALUE),
        index: arg(arg::INDEX),
        length,
        count,
        flags: arg(arg::FLAGS),
        lines: Pages::new(ctx, arg::LINES, &mut free, piece),
        places: Pages::new(ctx, arg::PLACES, &mut free, None),
        updates: Pages::new(ctx, arg::UPDATES, &mut free, None),
        values: Pages::new(ctx, arg::VALUES, &mut free, None),
        numbers: Pages::new(ctx, arg::NUMBERS, &mut free, None),
        tables: [0; 3],
    };
    let each = table(does, length, count) as u32;
    work.tables = [free, free + each, free + 2 * each];
    let first = rta(ctx, own::FIRST);
    for line in first..first + rta(ctx, own::LINES) {
        match does {
            what::FIRST => work.choose(line),
            what::SORT => work.sort(line),
            what::WRITE => work.write(line),
            what::DRAW => work.draw(line),
            _ => work.run(line),
        }
        // The staged pages are used again.
        work.noc.writes_flushed();
    }
    work.noc.full_barrier();
}

impl Work {
    /// The rank of an element as its line is ordered.
    #[inline(always)]
    fn key(&self, word: u32) -> u32 {
        let rank = rank(self.element, word);
        if self.by == 0 { rank } else { !rank }
    }

    /// Keeps the first elements in order while it goes through the line in pieces.
    fn choose(&mut self, line: u32) {
        let size = element::size(self.element);
        let in_piece = PIECE >> size;
        let [keys, words, numbers] = self.tables;
        let (mut held, mut last, mut begin) = (0, 0, 0);
        while begin < self.length {
            let here = (self.length - begin).min(in_piece);
            let from = self.lines.pages.page(line).plus(begin << size);
            self.noc.read(from, self.lines.at, here << size);
            self.noc.read_barrier();
            for i in 0..here {
                let word = load(self.lines.at, self.element, i);
                let key = self.key(word);
                // Of equal elements the first one stays.
                if held == self.count && key >= last {
                    continue;
                }
                let mut to = if held == self.count { held - 1 } else { held };
                while to > 0 && read(keys + to * 4 - 4) > key {
                    for table in [keys, words, numbers] {
                        write(table + to * 4, read(table + to * 4 - 4));
                    }
                    to -= 1;
                }
                write(keys + to * 4, key);
                write(words + to * 4, word);
                write(numbers + to * 4, begin + i);
                held = (held + 1).min(self.count);
                last = read(keys + held * 4 - 4);
            }
            begin += here;
        }
        if self.flags & flag::VALUES != 0 {
            for i in 0..self.count {
                store(self.values.at, self.element, i, read(words + i * 4));
            }
            self.values.write(&mut self.noc, line);
        }
        self.give_numbers(numbers, line);
    }

    /// Writes the numbers in a table to the result.
    fn give_numbers(&mut self, numbers: u32, line: u32) {
        if self.flags & flag::NUMBERS != 0 {
            for i in 0..self.count {
                store(self.numbers.at, self.index, i, read(numbers + i * 4));
            }
            self.numbers.write(&mut self.noc, line);
        }
    }

    /// Writes one number to the result.
    fn give_number(&mut self, number: u32, line: u32) {
        store(self.numbers.at, self.index, 0, number);
        self.numbers.write(&mut self.noc, line);
    }

    /// Puts the line in order by merging ever longer runs, which keeps the order of equal elements.
    fn sort(&mut self, line: u32) {
        self.lines.read(&mut self.noc, line);
        self.noc.read_barrier();
        let [from, _] = self.ordered();
        if self.flags & flag::VALUES != 0 {
            for i in 0..self.count {
                let word = load(self.lines.at, self.element, read(from + i * 4));
                store(self.values.at, self.element, i, word);
            }
            self.values.write(&mut self.noc, line);
        }
        self.give_numbers(from, line);
    }

    /// A table of the numbers of the line's elements in order, and one that is free.
    fn ordered(&self) -> [u32; 2] {
        let [keys, mut from, mut to] = self.tables;
        for i in 0..self.length {
            write(keys + i * 4, self.key(load(self.lines.at, self.element, i)));
            write(from + i * 4, i);
        }
        let mut run = 1;
        while run < self.length {
            let mut begin = 0;
            while begin < self.length {
                let (middle, end) = ((begin + run).min(self.length), (begin + 2 * run).min(self.length));
                merge(keys, [from, to], [begin, middle, end]);
                begin = end;
            }
            (from, to) = (to, from);
            run *= 2;
        }
        [from, to]
    }

    /// Writes updates to their places in the line, one after the other.
    fn write(&mut self, line: u32) {
        let numbered = self.flags & flag::NUMBERED != 0;
        self.places.read(&mut self.noc, line);
        if !numbered {
            self.lines.read(&mut self.noc, line);
            self.updates.read(&mut self.noc, line);
        }
        self.noc.read_barrier();
        let [words, ..] = self.tables;
        for i in 0..self.length {
            write(words + i * 4, if numbered { i } else { load(self.lines.at, self.element, i) });
        }
        for i in 0..self.count {
            let place = load(self.places.at, self.index, i);
            if place >= self.length {
                if self.flags & flag::SKIP == 0 {
                    stop();
                }
                continue;
            }
            let new = if numbered { self.length + i } else { load(self.updates.at, self.element, i) };
            let at = words + place * 4;
            write(at, fold(self.by, self.element, read(at), new));
        }
        for i in 0..self.length {
            store(self.values.at, self.element, i, read(words + i * 4));
        }
        self.values.write(&mut self.noc, line);
    }

    /// Folds each element with all before it.
    fn run(&mut self, line: u32) {
        self.lines.read(&mut self.noc, line);
        self.noc.read_barrier();
        let mut so_far = 0;
        for n in 0..self.length {
            let i = if self.flags & flag::BACK != 0 { self.length - 1 - n } else { n };
            let word = load(self.lines.at, self.element, i);
            so_far = if n == 0 { word } else { fold(self.by, self.element, so_far, word) };
            store(self.values.at, self.value, i, so_far);
        }
        self.values.write(&mut self.noc, line);
    }
}

/// Merges two runs of numbers, one behind the other, by the keys that they stand for.
#[inline(always)]
fn merge(keys: u32, [from, to]: [u32; 2], [begin, middle, end]: [u32; 3]) {
    let key = |i: u32| read(keys + read(from + i * 4) * 4);
    let (mut a, mut b) = (begin, middle);
    for out in begin..end {
        let first = b == end || (a < middle && key(a) <= key(b));
        let i = if first { &mut a } else { &mut b };
        write(to + out * 4, read(from + *i * 4));
        *i += 1;
    }
}
