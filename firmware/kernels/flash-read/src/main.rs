//! Reads queries, keys and values of attention (`tilework_abi::flash`). Runs on NCRISC; feeds
//! `flash`.
//!
//! Rows of tiles come in groups, some of which are on their way at once, so that the first products
//! can be made while the last keys are read.
#![no_std]
#![no_main]

use tilework_abi::flash::{Band, HAS_POSITIONS, arg, cb, own};
use tilework_rt::cb::Producer;
use tilework_rt::dram::Interleaved;
use tilework_rt::reg::{publish, read, stop, write};
use tilework_rt::sem::Semaphore;
use tilework_rt::{KernelContext, Noc, crta, kernel, rta};

kernel!(main);

/// Bytes of a tile.
const PAGE: u32 = 2048;
/// Two ones of bfloat16.
const ONES: u32 = 0x3F80_3F80;
/// Groups that are on their way at once, each with a transaction id, and tiles of keys of a group.
const IN_FLIGHT: u32 = 8;
const GROUP: u32 = 2;

/// Pages of a tensor on their way to a circular buffer.
struct Stream {
    pages: Interleaved,
    cb: Producer,
    /// Pages of a row.
    row: u32,
    /// Pages that were asked for, and are not handed over yet.
    coming: u32,
}

impl Stream {
    fn new(ctx: &KernelContext, [address, cb, row]: [u32; 3]) -> Self {
        let [address, row] = [address, row].map(|i| crta(ctx, i));
        Self { pages: Interleaved::new(ctx, address, PAGE), cb: Producer::new(ctx, cb), row, coming: 0 }
    }

    /// Asks for `rows` rows from row `first` on, under a transaction id.
    fn ask(&mut self, noc: &mut Noc, tag: u32, first: u32, rows: u32) {
        let count = rows * self.row;
        self.cb.reserve_back(self.coming + count);
        let (mut from, to) = (self.pages.cursor(first * self.row), self.cb.write_ptr_after(self.coming));
        noc.same_reads(tag, PAGE);
        for page in 0..count {
            noc.read_same(from.next_page(), to + page * PAGE);
        }
        self.coming += count;
    }

    /// Hands over `rows` rows that have come.
    fn hand(&mut self, rows: u32) {
        self.cb.push_back(rows * self.row);
        self.coming -= rows * self.row;
    }
}

/// The streams, and what a core goes through.
struct Reader {
    noc: Noc,
    query: Stream,
    key: Stream,
    value: Stream,
    ones: Producer,
    made_ones: bool,
}

impl Reader {
    /// A row of queries, then keys and values of some tiles, which lie from `head` on; if `room` is
    /// more tiles, the others are handed over as they are.
    fn read(&mut self, query: Option<u32>, head: u32, [begin, end]: [u32; 2], room: u32) {
        let groups = (end - begin).div_ceil(GROUP);
        let first = |group: u32| begin + group % groups * GROUP;
        let rows = |group: u32| GROUP.min(end - first(group));
        if let Some(row) = query {
            self.query.ask(&mut self.noc, IN_FLIGHT, row, 1);
        }
        let mut asked = 0;
        for group in 0..groups * 2 {
            while asked < groups * 2 && asked - group < IN_FLIGHT {
                let stream = if asked < groups { &mut self.key } else { &mut self.value };
                stream.ask(&mut self.noc, asked % IN_FLIGHT, head + first(asked), rows(asked));
                asked += 1;
            }
            if !self.made_ones {
                self.made_ones = true;
                make_ones(&mut self.ones);
            }
            if group == 0 && query.is_some() {
                self.noc.wait_tag(IN_FLIGHT);
                self.query.hand(1);
            }
            self.noc.wait_tag(group % IN_FLIGHT);
            let stream = if group < groups { &mut self.key } else { &mut self.value };
            stream.hand(rows(group));
            if group + 1 == groups || group + 1 == groups * 2 {
                let left = room - (end - begin);
                stream.cb.reserve_back(left * stream.row);
                stream.cb.push_back(left * stream.row);
            }
        }
    }
}

fn make_ones(ones: &mut Producer) {
    ones.reserve_back(1);
    let at = ones.write_ptr();
    for word in (at..at + PAGE).step_by(32) {
        (0..8).for_each(|i| write(word + i * 4, ONES));
    }
    publish(at + PAGE - 4);
    ones.push_back(1);
}

/// Reads the positions of the batch, and lets all cores see them; returns where they are. One that
/// is behind the last key is an error.
fn read_positions(ctx: &KernelContext, noc: &mut Noc, count: u32, keys: u32) -> u32 {
    let at = Producer::new(ctx, cb::POSITIONS).write_ptr();
    let from = Interleaved::new(ctx, crta(ctx, arg::POSITIONS), 0);
    noc.read(from.page(0), at, count * 4);
    noc.read_barrier();
    if (0..count).any(|i| read(at + 4 * i) >= keys) {
        stop();
    }
    let ready = Semaphore::of(ctx, HAS_POSITIONS).addr();
    write(ready, 1);
    publish(ready);
    at
}

fn main(ctx: &KernelContext) {
    let common = |i| crta(ctx, i);
    let mut reader = Reader {
        noc: Noc::of(ctx),
        query: Stream::new(ctx, [arg::QUERY, cb::QUERY, arg::DEPTH]),
        key: Stream::new(ctx, [arg::KEY, cb::KEY, arg::DEPTH]),
        value: Stream::new(ctx, [arg::VALUE, cb::VALUE, arg::WIDTH]),
        ones: Producer::new(ctx, cb::ONES),
        made_ones: false,
    };
    let (rows, keys, split, block) = (common(arg::ROWS), common(arg::KEYS), common(arg::SPLIT), common(arg::BLOCK));
    let (shared, stay) = (common(arg::SHARED), common(arg::STAY) != 0);
    let mut band =
        Band { low: common(arg::LOW) as i32, high: common(arg::HIGH) as i32, length: common(arg::LENGTH) as i32 };
    let (first, units, count) = (rta(ctx, own::FIRST), rta(ctx, own::UNITS), common(arg::POSITION_COUNT));
    let mut positions = 0;
    if count != 0 && units != 0 {
        positions = read_positions(ctx, &mut reader.noc, count, common(arg::LENGTH));
    }
    for unit in first..first + units {
        if count != 0 {
            band = band.up_to(read(positions + unit / split / common(arg::HEADS) * 4));
        }
        let (head, begin) = (unit / split, unit % split);
        let (query, key) = (head * rows, head / shared * keys);
        let last = begin + (rows - 1 - begin) / split * split;
        if stay {
            let range = [band.tiles(begin).0, band.tiles(last).1];
            reader.read(Some(query + begin), key, range, keys);
            for row in (begin + split..rows).step_by(split as usize) {
                reader.query.ask(&mut reader.noc, IN_FLIGHT, query + row, 1);
                reader.noc.wait_tag(IN_FLIGHT);
                reader.query.hand(1);
            }
            continue;
        }
        for row in (begin..rows).step_by(split as usize) {
            let (from, to) = band.tiles(row);
            for at in (from..to).step_by(block as usize) {
                let query = if at == from { Some(query + row) } else { None };
                reader.read(query, key, [at, to.min(at + block)], block);
            }
        }
    }
    reader.noc.full_barrier();
}
