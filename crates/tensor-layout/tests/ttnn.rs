//! Layouts against ttnn's own: padded shapes, lengths and hashes of the bytes that ttnn 0.81.1
//! makes of the same arrays (`data/ttnn_layouts.txt`, written by `data/ttnn_layouts.py`).

use tilework_dtype::DType;
use tilework_tensor_layout::{Layout, PageLayout, TileShape};

fn dims(text: &str) -> Vec<usize> {
    text.split('x').map(|d| d.parse().unwrap()).collect()
}

fn word(i: usize) -> u32 {
    (i as u32).wrapping_mul(2_654_435_761).wrapping_add(12345)
}

/// The script's `element`.
fn float(i: usize) -> f32 {
    let word = word(i);
    let magnitude = (word >> 8 | 1) as f32 / (1 << (word >> 1 & 7)) as f32;
    if word & 1 == 0 { magnitude } else { -magnitude }
}

fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &b| (hash ^ u64::from(b)).wrapping_mul(0x100_0000_01b3))
}

#[test]
fn bytes_are_those_of_ttnn() {
    let mut cases = 0;
    for line in include_str!("data/ttnn_layouts.txt").lines() {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [shape, dtype, layout, ":", padded, ":", length, wanted] = fields[..] else { panic!("{line}") };
        let (shape, dtype) = (dims(shape), DType::of_name(dtype).unwrap());
        let layout = match layout {
            "rows" => Layout::RowMajor,
            tile => Layout::Tile(TileShape::new(dims(tile)[0], dims(tile)[1]).unwrap()),
        };
        let (n, host) = (shape.iter().product(), if dtype.is_float() { DType::F32 } else { dtype });
        let size = host.bytes().unwrap();
        let data: Vec<u8> = match dtype.is_float() {
            true => (0..n).flat_map(|i| float(i).to_le_bytes()).collect(),
            false => (0..n).flat_map(|i| word(i).to_le_bytes()[..size].to_vec()).collect(),
        };
        let pages = PageLayout::new(&shape, dtype, layout, None).unwrap();
        let bytes = pages.encode(host, &data, 0.0).unwrap();
        assert_eq!(pages.padded_dims(), dims(padded), "{line}");
        assert_eq!(bytes.len().to_string(), length, "{line}");
        assert_eq!(format!("{:016x}", hash(&bytes)), wanted, "{line}");
        cases += 1;
    }
    assert_eq!(cases, 254);
}
