//! Softmax along the rows: e^(x - max) / sum.

use crate::{Rows, tiles_to};
use tilework_compute::{Binary, Broadcast, Compute, Fidelity, Format, PackRelu, Pool, Statistic, Thread};

/// Less than all that is in a row: the least number.
const LEAST: u32 = f32::MIN.to_bits();

/// The kernel.
pub fn main<T: Thread>(k: &mut Compute<T>) {
    let mut r = Rows::new(k);
    if r.rows == 0 {
        return;
    }
    r.ones.wait_front(1);
    for _ in 0..r.rows {
        r.x.wait_front(r.columns);
        r.without_padding(k, LEAST);
        r.pool_argument(k, Pool::Max, Statistic::Same);

        let Rows { columns, width, x, ones, statistic, terms, y, .. } = &mut r;
        let (columns, width, x_format) = (*columns, *width, x.format());
        k.binary_init(Binary::Subtract, Broadcast::Column, Fidelity::LoFi);
        k.small_exp_init();
        k.pack_relu_config(PackRelu::Zero);
        tiles_to(
            k,
            terms,
            columns,
            |k, i, tile| k.binary_tiles(x, statistic, i, 0, tile),
            |k, i, tile| {
                k.small_exp_tile(tile);
                if width != 0 && i + 1 == columns {
                    k.mask_columns(tile, width, 0);
                }
            },
        );
        statistic.pop_front(1);
        x.pop_front(columns);
        k.pack_relu_config(PackRelu::None);

        terms.wait_front(columns);
        k.reformat_a(Format::Float32);
        k.pool_init(Pool::Sum, ones);
        k.tile_to(statistic, |k| {
            (0..columns).for_each(|i| k.pool_tile(terms, i));
            k.pooled_to_column(Statistic::Reciprocal);
        });

        statistic.wait_front(1);
        k.binary_init(Binary::Multiply, Broadcast::Column, Fidelity::HiFi4);
        k.pack_reconfig_data_format(y.format());
        tiles_to(k, y, columns, |k, i, tile| k.binary_tiles(terms, statistic, i, 0, tile), |_, _, _| ());
        statistic.pop_front(1);
        terms.pop_front(columns);
        k.pack_reconfig_data_format(Format::Float32);
        k.reformat_a(x_format);
    }
}
