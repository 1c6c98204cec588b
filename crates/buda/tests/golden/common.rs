//! What the tests of golden arithmetic share.

use tilework_buda::Tensor;
use tilework_netlist::types::{Blocks, Netlist, Order, Shape, Size};

/// A tile for tests.
pub(crate) const SMALL: Size = Size { r: 4, c: 4 };

/// A shape.
pub(crate) fn shape(t: usize, rows: usize, columns: usize) -> Shape {
    Shape { t, rows, columns }
}

/// Whole numbers, so that sums are exact in any order.
pub(crate) fn whole(s: Shape, seed: u32) -> Tensor {
    let mut state = seed;
    Tensor::from_fn(s, SMALL, |_, _, _| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as f32 % 9.0 - 4.0
    })
    .unwrap()
}

/// The value at a place.
pub(crate) fn at(x: &Tensor, z: usize, r: usize, c: usize) -> f32 {
    x.values()[(z * x.shape().rows + r) * x.shape().columns + c]
}

/// Blocks of small tiles: all tiles in ublocks of one.
pub(crate) fn blocks(grid: (u32, u32), t: u32, mblock: (u32, u32), ublock: (u32, u32)) -> Blocks {
    let size = |(r, c)| Size { r, c };
    Blocks { grid: size(grid), t, mblock: size(mblock), ublock: size(ublock), order: Order::Row, tile: SMALL }
}

/// A netlist of one operation: shapes of its inputs as t, rows and columns of tiles, the text of
/// the operation after its grid and inputs, and a format for everything.
pub(crate) fn netlist(inputs: &[(u32, u32, u32)], output: (u32, u32, u32), format: &str, op: &str) -> Netlist {
    let blocks = |(t, r, c): (u32, u32, u32)| format!("t: {t}, mblock: [{r}, {c}], ublock: [1, 1]");
    let queue = |name: &str, input: &str, at: usize, size| {
        format!(
            "  {name}: {{type: ram, input: {input}, entries: 1, grid_size: [1, 1], {}, df: {format}, target_device: 0, \
             loc: dram, dram: [[{at}, 0x10000000]]}}\n",
            blocks(size)
        )
    };
    let names: Vec<String> = (0..inputs.len()).map(|i| format!("q{i}")).collect();
    let queues: String = inputs.iter().enumerate().map(|(i, &size)| queue(&names[i], "HOST", i, size)).collect();
    let settings: Vec<String> = names
        .iter()
        .chain([&"out".to_string()])
        .map(|q| format!("{q}: {{prologue: false, epilogue: false, zero: false, rd_ptr_global: 0, wr_ptr_global: 0}}"))
        .collect();
    let text = format!(
        "devices: {{arch: wormhole_b0}}\nqueues:\n{queues}{}graphs:\n  g:\n    target_device: 0\n    \
         input_count: 1\n    op0: {{{op}, grid_loc: [0, 0], grid_size: [1, 1], inputs: [{}], in_df: [{}], \
         acc_df: {format}, out_df: {format}, intermed_df: {format}, ublock_order: r, buf_size_mb: 1, math_fidelity: HiFi4, \
         {}}}\nprograms:\n  - p:\n    - \
         execute: {{graph_name: g, queue_settings: {{{}}}}}\n",
        queue("out", "op0", 5, output),
        names.join(", "),
        vec![format; inputs.len()].join(", "),
        blocks(output),
        settings.join(", "),
    );
    tilework_netlist::read("test.yaml", &text).unwrap_or_else(|errors| panic!("{errors}\n{text}"))
}
