//! Normalisation along the rows: x, or its difference from the mean, divided by the root of the
//! mean of the squares of that; then a weight and a bias.

use crate::{Rows, tiles_to};
use tilework_abi::rowwise::{arg, cb, flag};
use tilework_compute::{Binary, Broadcast, Cb, Compute, Fidelity, Format, Pool, Statistic, Thread};

/// The kernel.
pub fn main<T: Thread>(k: &mut Compute<T>) {
    let mut r = Rows::new(k);
    if r.rows == 0 {
        return;
    }
    let (part, epsilon, flags) = (k.arg(arg::PART), k.arg(arg::EPSILON), k.arg(arg::FLAGS));
    let [weight, bias] =
        [(cb::WEIGHT, arg::WEIGHT), (cb::BIAS, arg::BIAS)].map(|(id, i)| k.cb(id, Format::of(k.arg(i))));
    // A buffer that the program lacks has no settings: another stands for it, which is not used.
    let of = |id, needed| if flags & needed != 0 { id } else { cb::SQUARES };
    let [mut squares, mut scaled, mut weighted] =
        [cb::SQUARES, of(cb::SCALED, flag::WEIGHTED), of(cb::WEIGHTED, flag::BIASED)]
            .map(|id| k.cb(id, Format::Float32));
    r.ones.wait_front(1);
    for _ in 0..r.rows {
        r.x.wait_front(r.columns);
        if flags & flag::CENTRED != 0 {
            r.without_padding(k, 0);
            r.pool_argument(k, Pool::Sum, Statistic::Scale(part));
            differences(k, &mut r);
            r.terms.wait_front(r.columns);
        }
        let Rows { columns, width, x, ones, statistic, terms, y, .. } = &mut r;
        let (columns, x_format) = (*columns, x.format());
        // Differences have no padding any more.
        let (source, width) = if flags & flag::CENTRED != 0 { (terms, 0) } else { (x, *width) };
        k.reformat_a(source.format());
        k.reformat_b(source.format());
        let count = sum_of_squares(k, source, &mut squares, columns, width);

        squares.wait_front(count);
        k.reformat_a(Format::Float32);
        k.reformat_b(Format::Float32);
        k.pool_init(Pool::Sum, ones);
        k.tile_to(statistic, |k| {
            (0..count).for_each(|i| k.pool_tile(&squares, i));
            k.pooled_to_column(Statistic::Deviation(part, epsilon));
        });
        squares.pop_front(count);

        statistic.wait_front(1);
        k.reformat_a(source.format());
        {
            let out = if flags & flag::WEIGHTED != 0 {
                &mut scaled
            } else if flags & flag::BIASED != 0 {
                &mut weighted
            } else {
                &mut *y
            };
            pass(k, (Binary::Multiply, Broadcast::Column), source, statistic, out, columns);
        }
        statistic.pop_front(1);
        source.pop_front(columns);
        if flags & flag::WEIGHTED != 0 {
            let out = if flags & flag::BIASED != 0 { &mut weighted } else { &mut *y };
            by_row(k, Binary::Multiply, &mut scaled, &weight, out, columns);
        }
        if flags & flag::BIASED != 0 {
            by_row(k, Binary::Add, &mut weighted, &bias, y, columns);
        }
        k.pack_reconfig_data_format(Format::Float32);
        k.reformat_a(x_format);
        k.reformat_b(Format::Float32);
    }
}

/// The differences of the argument from the means; zeros in the padding.
#[inline(always)]
fn differences<T: Thread>(k: &mut Compute<T>, r: &mut Rows<T>) {
    let Rows { columns, width, x, statistic, terms, .. } = r;
    let (columns, width) = (*columns, *width);
    k.binary_init(Binary::Subtract, Broadcast::Column, Fidelity::LoFi);
    if width != 0 {
        k.mask_init();
    }
    tiles_to(
        k,
        terms,
        columns,
        |k, i, tile| k.binary_tiles(x, statistic, i, 0, tile),
        |k, i, tile| {
            if width != 0 && i + 1 == columns {
                k.mask_columns(tile, width, 0);
            }
        },
    );
    statistic.pop_front(1);
    x.pop_front(columns);
}

/// Sums of the squares of the tiles, element by element. The last tile, if it has padding, becomes
/// a sum of its own. Returns how many there are.
#[inline(always)]
fn sum_of_squares<T: Thread>(k: &mut Compute<T>, of: &Cb<T>, squares: &mut Cb<T>, columns: u32, width: u32) -> u32 {
    k.binary_init(Binary::Multiply, Broadcast::None, Fidelity::HiFi4);
    let whole = if width == 0 { columns } else { columns - 1 };
    if whole != 0 {
        k.tile_to(squares, |k| (0..whole).for_each(|i| k.binary_tiles(of, of, i, i, 0)));
    }
    if width != 0 {
        k.mask_init();
        k.tile_to(squares, |k| {
            k.binary_tiles(of, of, columns - 1, columns - 1, 0);
            k.mask_columns(0, width, 0);
        });
    }
    u32::from(whole != 0) + u32::from(width != 0)
}

/// A function of a row of tiles and what is spread over it.
#[inline(always)]
fn pass<T: Thread>(
    k: &mut Compute<T>,
    (op, spread): (Binary, Broadcast),
    a: &Cb<T>,
    b: &Cb<T>,
    out: &mut Cb<T>,
    columns: u32,
) {
    let each = spread == Broadcast::Row;
    k.pack_reconfig_data_format(out.format());
    k.binary_init(op, spread, Fidelity::HiFi4);
    tiles_to(k, out, columns, |k, i, tile| k.binary_tiles(a, b, i, if each { i } else { 0 }, tile), |_, _, _| ());
}

/// A function of a row of tiles, which it takes, and of a vector.
#[inline(always)]
fn by_row<T: Thread>(k: &mut Compute<T>, op: Binary, a: &mut Cb<T>, b: &Cb<T>, out: &mut Cb<T>, columns: u32) {
    a.wait_front(columns);
    b.wait_front(columns);
    k.reformat_a(a.format());
    k.reformat_b(b.format());
    pass(k, (op, Broadcast::Row), a, b, out, columns);
    a.pop_front(columns);
}
