//! Attention in one pass over the keys: for each row of tiles of queries the scores of a block of
//! keys, their largest, the weights, and sums of weights and of weighted values, which replace
//! those of the blocks before.
//!
//! Arguments, circular buffers and which tiles there are: `tilework_abi::flash`. Queries, keys,
//! values and weights are bfloat16, all else is f32. Blocks of the buffers of scores, weights, keys
//! and values are handed over as a whole, so that each begins at the buffer's first page.
#![no_std]

use tilework_abi::flash::{Band, HAS_POSITIONS, arg, cb, own, parts};
use tilework_compute::{Binary, Broadcast, Cb, Compute, Fidelity, Format, Pool, Reduce, SfpuBinary, Thread};

/// Tiles of half of Dst.
const DST: u32 = 4;
/// Pages that are handed over together: the largest scores, now and before.
const PAIR: u32 = 2;
const F32: Format = Format::Float32;
const BF16: Format = Format::Bf16;

/// Lengths in tiles, and what all rows have in common.
struct Shape {
    depth: u32,
    width: u32,
    block: u32,
    band: Band,
    scale: u32,
    factor: u32,
    mask: Format,
    masked: bool,
}

struct Buffers<T> {
    query: Cb<T>,
    key: Cb<T>,
    value: Cb<T>,
    ones: Cb<T>,
    mask: Cb<T>,
    result: Cb<T>,
    scores: Cb<T>,
    largest: Cb<T>,
    weights: Cb<T>,
    rescale: Cb<T>,
    sums: Cb<T>,
}

/// A block of the keys of a row of tiles of queries.
#[derive(Clone, Copy)]
struct Block {
    row: u32,
    /// Its first tile of keys, and how many.
    first: u32,
    tiles: u32,
    /// Which tile the first one of the buffers of keys and values is.
    begin: u32,
    is_first: bool,
    is_last: bool,
}

/// The kernel.
pub fn main<T: Thread>(k: &mut Compute<T>) {
    let common = |k: &Compute<T>, i| k.common_arg(i);
    let bytes = common(k, arg::MASK);
    let mut shape = Shape {
        depth: common(k, arg::DEPTH),
        width: common(k, arg::WIDTH),
        block: common(k, arg::BLOCK),
        band: Band {
            low: common(k, arg::LOW) as i32,
            high: common(k, arg::HIGH) as i32,
            length: common(k, arg::LENGTH) as i32,
        },
        scale: common(k, arg::SCALE),
        factor: common(k, arg::FACTOR),
        mask: if bytes == 4 { F32 } else { BF16 },
        masked: bytes != 0,
    };
    let mut b = Buffers {
        query: k.cb(cb::QUERY, BF16),
        key: k.cb(cb::KEY, BF16),
        value: k.cb(cb::VALUE, BF16),
        ones: k.cb(cb::ONES, BF16),
        mask: k.cb(cb::MASK, shape.mask),
        result: k.cb(cb::RESULT, BF16),
        scores: k.cb(cb::SCORES, F32),
        largest: k.cb(cb::LARGEST, F32),
        weights: k.cb(cb::WEIGHTS, BF16),
        rescale: k.cb(cb::RESCALE, F32),
        sums: k.cb(cb::SUMS, F32),
    };
    let (rows, keys, split, stay) =
        (common(k, arg::ROWS), common(k, arg::KEYS), common(k, arg::SPLIT), common(k, arg::STAY) != 0);
    let (mut unit, units) = (k.arg(own::FIRST), k.arg(own::UNITS));
    k.hw_configure(BF16, BF16, F32, true);
    let positions = k.cb(cb::POSITIONS, F32);
    let (heads, has_positions) = (common(k, arg::HEADS), common(k, arg::POSITION_COUNT) != 0);
    if has_positions && units != 0 {
        k.semaphore_wait_min(HAS_POSITIONS, 1);
    }
    for _ in 0..units {
        // Units are counted through all heads; which head it is, the others know.
        let first = unit % split;
        if has_positions {
            shape.band = shape.band.up_to(k.word(&positions, unit / split / heads));
        }
        unit += 1;
        let begin = shape.band.tiles(first).0;
        for row in (first..rows).step_by(split as usize) {
            let (from, to) = shape.band.tiles(row);
            for at in (from..to).step_by(shape.block as usize) {
                let tiles = shape.block.min(to - at);
                let begin = if stay { begin } else { at };
                let block = Block { row, first: at, tiles, begin, is_first: at == from, is_last: at + tiles == to };
                attend(k, &shape, &mut b, block);
                if !stay {
                    b.key.pop_front(shape.block * shape.depth);
                    b.value.pop_front(shape.block * shape.width);
                }
            }
        }
        if stay {
            b.key.pop_front(keys * shape.depth);
            b.value.pop_front(keys * shape.width);
        }
    }
}

/// The formats of inputs, that of the output, and products: each is there once, so that the images
/// are small.
#[inline(never)]
fn inputs<T: Thread>(k: &mut Compute<T>, a: Format, b: Format) {
    k.reconfig_data_format(a, b);
}

#[inline(never)]
fn output<T: Thread>(k: &mut Compute<T>, out: Format) {
    k.pack_reconfig_data_format(out);
}

#[inline(never)]
fn products<T: Thread>(k: &mut Compute<T>, transposed: bool) {
    k.matmul_init(Fidelity::HiFi4, transposed);
}

#[inline(never)]
fn product<T: Thread>(k: &mut Compute<T>, [a, b]: [&Cb<T>; 2], pages: [u32; 2], [columns, tile]: [u32; 2]) {
    k.matmul_onto(a, b, pages, columns, tile);
}

/// One block.
#[inline(always)]
fn attend<T: Thread>(k: &mut Compute<T>, shape: &Shape, b: &mut Buffers<T>, block: Block) {
    scores(k, shape, b, block);
    largest(k, b, block);
    weights(k, shape, b, block);
    if !block.is_first {
        rescale(k, shape, b);
    }
    sums(k, shape, b, block);
}

/// Scores: products of queries and keys, with the masks of tiles that have one.
#[inline(never)]
fn scores<T: Thread>(k: &mut Compute<T>, shape: &Shape, b: &mut Buffers<T>, block: Block) {
    inputs(k, BF16, BF16);
    output(k, F32);
    products(k, true);
    b.query.wait_front(shape.depth);
    b.scores.reserve_back(shape.block);
    let has_mask = |i: u32| shape.masked || !shape.band.sees_all(block.row, block.first + i);
    let mut i = 0;
    while i < block.tiles {
        let masked = has_mask(i);
        let mut count = 1;
        while !masked && count < DST && i + count < block.tiles && !has_mask(i + count) {
            count += 1;
        }
        let key = block.first + i - block.begin;
        b.key.wait_front((key + count) * shape.depth);
        k.tile_regs_acquire();
        for tile in 0..count {
            for d in 0..shape.depth {
                product(k, [&b.query, &b.key], [d, (key + tile) * shape.depth + d], [1, tile]);
            }
        }
        if masked {
            b.mask.wait_front(1);
            add_mask(k, shape, b);
        }
        k.tile_regs_commit();
        k.tile_regs_wait();
        (0..count).for_each(|tile| k.pack_tile(tile, &b.scores, i + tile));
        k.tile_regs_release();
        if masked {
            b.mask.pop_front(1);
            products(k, true);
        }
        i += count;
    }
    b.scores.push_back(shape.block);
    if block.is_last {
        b.query.pop_front(shape.depth);
    }
}

/// Adds a tile of the mask to the scores in tile 0 of Dst.
#[inline(always)]
fn add_mask<T: Thread>(k: &mut Compute<T>, shape: &Shape, b: &Buffers<T>) {
    if shape.mask == F32 {
        inputs(k, F32, BF16);
    }
    k.copy_tile_init(shape.mask);
    k.copy_tile(&b.mask, 0, 1);
    k.masked_tile(shape.factor);
    if shape.mask == F32 {
        inputs(k, BF16, BF16);
    }
}

/// The largest score of each query up to this block, in column 0; behind it, that up to the block
/// before.
#[inline(never)]
fn largest<T: Thread>(k: &mut Compute<T>, b: &mut Buffers<T>, block: Block) {
    const MAX: (Pool, Reduce) = (Pool::Max, Reduce::Rows);
    b.ones.wait_front(1);
    b.scores.wait_front(block.tiles);
    inputs(k, F32, BF16);
    k.reduce_init(Reduce::Rows);
    k.tile_regs_acquire();
    (0..block.tiles).for_each(|i| k.reduce_tile(MAX, &b.scores, &b.ones, [i, 0], 0));
    if !block.is_first {
        b.largest.wait_front(PAIR);
        k.copy_tile_init(F32);
        k.copy_tile(&b.largest, 0, 1);
        b.largest.pop_front(PAIR);
        k.sfpu_binary_init();
        k.sfpu_binary_tiles(SfpuBinary::Max, 0, 1, 0);
    }
    k.tile_regs_commit();
    b.largest.reserve_back(PAIR);
    k.tile_regs_wait();
    k.pack_tile(0, &b.largest, 0);
    if !block.is_first {
        k.pack_tile(1, &b.largest, 1);
    }
    k.tile_regs_release();
    b.largest.push_back(PAIR);
}

/// Weights: powers of the scores less the largest one.
#[inline(never)]
fn weights<T: Thread>(k: &mut Compute<T>, shape: &Shape, b: &mut Buffers<T>, block: Block) {
    b.largest.wait_front(PAIR);
    inputs(k, F32, F32);
    output(k, BF16);
    k.binary_init(Binary::Subtract, Broadcast::Column, Fidelity::LoFi);
    k.weights_init(shape.scale);
    b.weights.reserve_back(shape.block);
    for i in (0..block.tiles).step_by(DST as usize) {
        let count = DST.min(block.tiles - i);
        k.tile_regs_acquire();
        for tile in 0..count {
            k.binary_tiles(&b.scores, &b.largest, i + tile, 0, tile);
            k.weights_tile(tile);
        }
        k.tile_regs_commit();
        k.tile_regs_wait();
        (0..count).for_each(|tile| k.pack_tile(tile, &b.weights, i + tile));
        k.tile_regs_release();
    }
    b.weights.push_back(shape.block);
    b.scores.pop_front(shape.block);
}

/// What sums of the blocks before are multiplied by: how much less the largest score was.
#[inline(never)]
fn rescale<T: Thread>(k: &mut Compute<T>, shape: &Shape, b: &mut Buffers<T>) {
    inputs(k, F32, F32);
    output(k, F32);
    k.binary_init(Binary::Subtract, Broadcast::None, Fidelity::LoFi);
    k.weights_init(shape.scale);
    let Buffers { largest, rescale, .. } = b;
    k.tile_to(rescale, |k| {
        k.binary_tiles(largest, largest, 1, 0, 0);
        k.weights_tile(0);
    });
}

/// Sums of weights and of weighted values: kept for the next block, or divided for the result.
#[inline(never)]
fn sums<T: Thread>(k: &mut Compute<T>, shape: &Shape, b: &mut Buffers<T>, block: Block) {
    let (count, each) = parts(shape.width);
    output(k, if block.is_last { BF16 } else { F32 });
    b.weights.wait_front(block.tiles);
    for part in 0..count {
        let left = part * each;
        let columns = each.min(shape.width - left);
        k.tile_regs_acquire();
        if !block.is_first {
            if part == 0 {
                b.rescale.wait_front(1);
            }
            b.sums.wait_front(columns + 1);
            inputs(k, F32, F32);
            k.binary_init(Binary::Multiply, Broadcast::Column, Fidelity::HiFi4);
            (0..=columns).for_each(|tile| k.binary_tiles(&b.sums, &b.rescale, tile, 0, tile));
            b.sums.pop_front(columns + 1);
        }
        inputs(k, BF16, BF16);
        products(k, false);
        for i in 0..block.tiles {
            let value = block.first + i - block.begin;
            b.value.wait_front((value + 1) * shape.width);
            product(k, [&b.weights, &b.value], [i, value * shape.width + left], [columns, 0]);
            product(k, [&b.weights, &b.ones], [i, 0], [1, columns]);
        }
        if block.is_last {
            k.divided_tiles(columns);
        }
        k.tile_regs_commit();
        let (out, tiles) = if block.is_last { (&mut b.result, columns) } else { (&mut b.sums, columns + 1) };
        out.reserve_back(tiles);
        k.tile_regs_wait();
        (0..tiles).for_each(|tile| k.pack_tile(tile, out, tile));
        k.tile_regs_release();
        out.push_back(tiles);
    }
    b.weights.pop_front(shape.block);
    if !block.is_first {
        b.rescale.pop_front(1);
    }
    if block.is_last {
        b.largest.pop_front(PAIR);
    }
}
