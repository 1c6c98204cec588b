//! How long the host takes to convert and tilize a matrix, and to undo it:
//!
//!     cargo run --release -p tilework-tensor-layout --example tilize
//!
//! Single thread; the median of seven runs, the smallest and the largest beside it.

use std::error::Error;
use std::hint::black_box;
use std::time::Instant;
use tilework_dtype::DType;
use tilework_tensor_layout::{Layout, PageLayout, TileShape};

/// Rows and columns of the matrix.
const SIZE: usize = 4096;

fn main() -> Result<(), Box<dyn Error>> {
    let words = (0..SIZE * SIZE).map(|i| i.wrapping_mul(2_654_435_761) % 1_000_003);
    let data: Vec<u8> = words.flat_map(|word| (word as f32 / 997.0 - 500.0).to_le_bytes()).collect();
    println!("| {SIZE}x{SIZE} float32 | encode, ms | decode, ms |\n|---|---|---|");
    let cases = [
        (DType::BF16, Layout::TILE),
        (DType::F32, Layout::TILE),
        (DType::Bfp8B, Layout::TILE),
        (DType::Bfp4B, Layout::TILE),
        (DType::BF16, Layout::Tile(TileShape::new(16, 32)?)),
        (DType::BF16, Layout::RowMajor),
    ];
    for (dtype, layout) in cases {
        let pages = PageLayout::new(&[SIZE, SIZE], dtype, layout, None)?;
        let bytes = pages.encode(DType::F32, &data, 0.0)?;
        let encode = times(|| pages.encode(DType::F32, black_box(&data), 0.0))?;
        let decode = times(|| pages.decode(black_box(&bytes), DType::F32))?;
        let layout = match layout {
            Layout::RowMajor => "rows".to_owned(),
            Layout::Tile(shape) => format!("tiles of {shape}"),
        };
        println!("| {}, {layout} | {encode} | {decode} |", dtype.name());
    }
    Ok(())
}

/// Median, smallest and largest time of seven runs, after one more.
fn times<T, E: Error>(mut run: impl FnMut() -> Result<T, E>) -> Result<String, E> {
    let mut times = Vec::new();
    for _ in 0..8 {
        let start = Instant::now();
        black_box(run()?);
        times.push(start.elapsed().as_secs_f64() * 1e3);
    }
    let times = &mut times[1..];
    times.sort_by(f64::total_cmp);
    Ok(format!("{:.1} ({:.1} to {:.1})", times[3], times[0], times[6]))
}
