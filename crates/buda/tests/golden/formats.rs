//! Data formats against references in another manner: tables of all values, exact arithmetic in
//! double precision, and addresses counted by nested loops.

use proptest::prelude::*;
use tilework_buda::Tensor;
use tilework_buda::format::block::BlockFormat;
use tilework_buda::format::element::{decode, encode};
use tilework_buda::format::tile::TileLayout;
use tilework_buda::format::{EntryLayout, FormatError, Options, quantise};
use tilework_netlist::DataFormat::{self, *};
use tilework_netlist::types::{Arch, Blocks, Layout, Order, Shape, Size};

/// The value of a float of so many bits of exponent and mantissa, by the definition of IEEE 754.
fn ieee(bits: u32, exponent: u32, mantissa: u32) -> f64 {
    let bias = (1 << (exponent - 1)) - 1;
    let e = (bits >> mantissa & ((1 << exponent) - 1)) as i32;
    let m = f64::from(bits & ((1 << mantissa) - 1)) / f64::from(1u32 << mantissa);
    let sign = if bits >> (exponent + mantissa) & 1 == 1 { -1.0 } else { 1.0 };
    match e {
        0 => sign * m * 2f64.powi(1 - bias),
        e if e == (1 << exponent) - 1 && m == 0.0 => sign * f64::INFINITY,
        e if e == (1 << exponent) - 1 => f64::NAN,
        e => sign * (1.0 + m) * 2f64.powi(e - bias),
    }
}

/// The next float32 above a positive one.
fn above(x: f32) -> f32 {
    f32::from_bits(x.to_bits() + 1)
}

/// The next float32 below a positive one.
fn below(x: f32) -> f32 {
    f32::from_bits(x.to_bits() - 1)
}

/// Checks that what lies between two neighbours of a format goes to the nearer, and the middle
/// where `tie` says.
fn between(format: DataFormat, low: u32, tie_up: bool) {
    let middle = (f64::from(decode(format, low)) + f64::from(decode(format, low + 1))) / 2.0;
    assert_eq!(f64::from(middle as f32), middle, "{format} {low:#x}: the middle is no float32");
    let middle = middle as f32;
    assert_eq!(encode(format, middle), low + u32::from(tie_up), "{format} above {low:#x}: tie");
    assert_eq!(encode(format, above(middle)), low + 1, "{format} above {low:#x}");
    assert_eq!(encode(format, below(middle)), low, "{format} above {low:#x}: below the middle");
    let sign = decode(format, low).to_bits();
    assert_eq!(sign >> 31, 0);
}

#[test]
fn all_halves_of_16_bits_are_what_ieee_says_and_come_back() {
    for (format, exponent, mantissa) in [(Float16, 5, 10), (Float16B, 8, 7)] {
        for bits in 0..=0xffffu32 {
            let (value, expected) = (decode(format, bits), ieee(bits, exponent, mantissa));
            if expected.is_nan() {
                assert!(value.is_nan(), "{format} {bits:#x}");
                assert!(decode(format, encode(format, value)).is_nan());
                continue;
            }
            assert_eq!(f64::from(value), expected, "{format} {bits:#x}");
            assert_eq!(value.is_sign_negative(), bits >> 15 == 1);
            assert_eq!(encode(format, value), bits, "{format} {bits:#x}");
        }
    }
}

#[test]
fn halves_round_to_nearest_even() {
    for (format, largest) in [(Float16, 0x7bff), (Float16B, 0x7f7f)] {
        for low in 0..largest {
            // The middle of bfloat16's smallest pair is the smallest that float32 splits as well.
            between(format, low, low & 1 == 1);
        }
    }
    // Half a step beyond the largest finite value begins infinity.
    assert_eq!(encode(Float16, 65519.996), 0x7bff);
    assert_eq!(encode(Float16, 65520.0), 0x7c00);
    assert_eq!(encode(Float16, f32::NEG_INFINITY), 0xfc00);
    assert_eq!(encode(Float16B, f32::MAX), 0x7f80);
    assert_eq!(encode(Float16B, -0.0), 0x8000);
}

#[test]
fn all_bytes_of_the_8_bit_floats() {
    for bits in 0..=0xffu32 {
        let (value, expected) = (decode(Lf8, bits), ieee(bits, 5, 2));
        assert!(f64::from(value) == expected || value.is_nan() && expected.is_nan(), "Lf8 {bits:#x}: {value}");
        if !value.is_nan() {
            assert_eq!(encode(Lf8, value), bits);
        }
        // OCP's e4m3 has no infinities: the largest exponent is a number but for one mantissa.
        let value = decode(Fp8E4m3, bits);
        let expected = match bits & 0x7f {
            0x7f => f64::NAN,
            m if m >= 0x78 => (1.0 + f64::from(m & 7) / 8.0) * 256.0,
            m => ieee(m, 4, 3),
        };
        let expected = if bits >= 0x80 { -expected } else { expected };
        assert!(f64::from(value) == expected || value.is_nan() && expected.is_nan(), "Fp8_e4m3 {bits:#x}: {value}");
        if !value.is_nan() {
            assert_eq!(encode(Fp8E4m3, value), bits);
        }
    }
    (0..0x7b).for_each(|low| between(Lf8, low, low & 1 == 1));
    (0..0x7e).for_each(|low| between(Fp8E4m3, low, low & 1 == 1));
    assert_eq!(encode(Lf8, 61439.996), 0x7b);
    assert_eq!(encode(Lf8, 61440.0), 0x7c);
    assert_eq!(encode(Lf8, f32::NAN) & 0x7c, 0x7c);
    assert_eq!(decode(Fp8E4m3, encode(Fp8E4m3, 1e30)), 448.0);
    assert_eq!(decode(Fp8E4m3, encode(Fp8E4m3, f32::NEG_INFINITY)), -448.0);
    assert!(decode(Fp8E4m3, encode(Fp8E4m3, f32::NAN)).is_nan());
    assert_eq!(encode(Fp8E4m3, f32::from_bits(1)), 0);
}

#[test]
fn tf32_keeps_ten_bits_and_rounds_ties_away() {
    for (value, expected) in [
        (1.0 + 2f32.powi(-11), 1.0 + 2f32.powi(-10)),
        (1.0 + 2f32.powi(-11) - 2f32.powi(-23), 1.0),
        (-(1.0 + 3.0 * 2f32.powi(-11)), -(1.0 + 2f32.powi(-9))),
        (f32::MAX, f32::INFINITY),
        (f32::INFINITY, f32::INFINITY),
        (-0.0, -0.0),
    ] {
        let bits = encode(Tf32, value);
        assert_eq!(bits & 0x1fff, 0);
        assert_eq!(decode(Tf32, bits).to_bits(), f32::to_bits(expected), "{value}");
    }
    assert!(decode(Tf32, encode(Tf32, f32::from_bits(0x7f80_0001))).is_nan());
}

#[test]
fn integers_are_sign_and_magnitude_rounded_half_away_and_clamped() {
    for quarter in -1200i32..=1200 {
        let value = quarter as f32 / 4.0;
        let magnitude = ((quarter.unsigned_abs() + 2) / 4).min(127);
        let sign = if quarter < 0 && magnitude > 0 { 0x80 } else { 0 };
        assert_eq!(encode(Int8, value), sign | magnitude, "{value}");
        let signed = magnitude as f32 * if quarter < 0 { -1.0 } else { 1.0 };
        assert_eq!(decode(Int8, sign | magnitude), signed);
        let unsigned = if quarter < 0 { 0 } else { ((quarter.unsigned_abs() + 2) / 4).min(255) };
        assert_eq!(encode(UInt8, value), unsigned, "{value}");
        assert_eq!(encode(RawUInt8, value), unsigned);
    }
    // A sign without a magnitude is zero.
    assert_eq!(decode(Int8, 0x80).to_bits(), 0);
    assert_eq!(decode(Int32, 0x8000_0000).to_bits(), 0);
    assert_eq!(encode(Int32, -5.5), 0x8000_0006);
    assert_eq!(encode(Int32, 16_777_216.0), 0x0100_0000);
    assert_eq!(encode(Int32, -3e9), 0xffff_ffff);
    assert_eq!(encode(Int32, f32::INFINITY), 0x7fff_ffff);
    assert_eq!(encode(Int32, f32::NAN), 0);
    assert_eq!(encode(UInt16, 65535.5), 65535);
    assert_eq!(encode(UInt16, -1.0), 0);
    assert_eq!(encode(RawUInt32, 5e9), u32::MAX);
}

/// What a block format makes of 16 values, in exact arithmetic: magnitudes are multiples of a unit,
/// half a unit goes up.
fn blocks_reference(values: &[f32], magnitude: i32, small: bool, truncate: bool) -> Vec<f64> {
    let (lowest, largest) = if small { (-15, 16) } else { (-127, 128) };
    // Exponents as a count of halvings or doublings.
    let parts: Vec<(f64, i32)> = values
        .iter()
        .map(|&v| {
            let (mut m, mut e) = (f64::from(v.abs()), 0);
            if m == 0.0 {
                return (0.0, lowest);
            }
            while m >= 2.0 {
                (m, e) = (m / 2.0, e + 1);
            }
            while m < 1.0 {
                (m, e) = (m * 2.0, e - 1);
            }
            match e {
                e if e > largest => (2.0 - 2f64.powi(-23), largest),
                e if e < lowest => (1.0, lowest),
                e => (m, e),
            }
        })
        .collect();
    let shared = parts.iter().map(|p| p.1).max().unwrap();
    let unit = 2f64.powi(shared - (magnitude - 1));
    let half = if truncate { 0.0 } else { 0.5 };
    let limit = 2f64.powi(magnitude) - 1.0;
    let scaled = parts.iter().map(|&(m, e)| (m * 2f64.powi(e) / unit + half).floor().min(limit) * unit);
    scaled.zip(values).map(|(s, v)| if *v < 0.0 { -s } else { s }).collect()
}

const BLOCK_FORMATS: [(DataFormat, i32, bool); 6] =
    [(Bfp8, 7, true), (Bfp4, 3, true), (Bfp2, 1, true), (Bfp8B, 7, false), (Bfp4B, 3, false), (Bfp2B, 1, false)];

/// A tensor of one 16x16 tile.
fn tile16(values: Vec<f32>) -> Tensor {
    Tensor::new(Shape { t: 1, rows: 16, columns: 16 }, Size { r: 16, c: 16 }, values).unwrap()
}

/// Values whose exponents differ much or little, ties and zeros among them.
fn lively() -> impl Strategy<Value = f32> {
    prop_oneof![
        4 => -4.0f32..4.0,
        2 => (-40i32..40, -1.0f32..1.0).prop_map(|(e, m)| m * 2f32.powi(e)),
        2 => (-600i32..600).prop_map(|n| n as f32 / 128.0),
        1 => (-70000i32..70000).prop_map(|n| n as f32),
        1 => Just(0.0),
        1 => Just(-0.0),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn blocks_are_what_exact_arithmetic_gives(values in prop::collection::vec(lively(), 256), truncate: bool) {
        let x = tile16(values);
        for (format, magnitude, small) in BLOCK_FORMATS {
            let got = quantise(format, &x, Options { truncate });
            for (row, got) in x.values().chunks(16).zip(got.values().chunks(16)) {
                let expected = blocks_reference(row, magnitude, small, truncate);
                for (g, e) in got.iter().zip(&expected) {
                    prop_assert_eq!(f64::from(*g), *e, "{} {:?}", format, row);
                    prop_assert!(*g != 0.0 || g.is_sign_positive());
                }
            }
            // What a format gives is what it keeps.
            let again = quantise(format, &got, Options { truncate });
            prop_assert!(again == got, "{}", format);
        }
    }

    #[test]
    fn bytes_give_what_quantising_gives(
        values in prop::collection::vec(lively(), 2 * 64 * 32),
        index in 0..DataFormat::ALL.len(),
        tile in prop::sample::select(vec![(32, 32), (16, 32), (32, 16), (8, 32), (4, 32), (2, 32), (1, 32)]),
        blackhole: bool,
    ) {
        let format = DataFormat::ALL[index].0;
        let tile = Size { r: tile.0, c: tile.1 };
        let blocks = Blocks {
            grid: Size { r: 2, c: 1 },
            t: 2,
            mblock: Size { r: 32 / tile.r, c: 32 / tile.c },
            ublock: Size { r: 1, c: 1 },
            order: Order::Column,
            tile,
        };
        let x = Tensor::new(Shape { t: 2, rows: 64, columns: 32 }, tile, values).unwrap();
        let arch = if blackhole { Arch::Blackhole } else { Arch::WormholeB0 };
        for layout in [Layout::Tilized, Layout::Flat] {
            let Ok(layout) = EntryLayout::new(format, &blocks, layout, arch) else {
                prop_assert!(layout == Layout::Flat && BlockFormat::of(format).is_some());
                continue;
            };
            let bytes = layout.pack(&x, Options::default()).unwrap();
            prop_assert_eq!(bytes.len(), 2);
            let read = layout.unpack(&bytes.iter().map(Vec::as_slice).collect::<Vec<_>>()).unwrap();
            let rounded = quantise(format, &x, Options::default());
            prop_assert!(read == rounded, "{}", format);
            prop_assert_eq!(layout.pack(&read, Options::default()).unwrap() == bytes, true);
        }
    }
}

#[test]
fn special_values_in_block_formats() {
    let mut values = vec![0.0; 256];
    values[..3].copy_from_slice(&[f32::INFINITY, -1.0, f32::NEG_INFINITY]);
    values[16..18].copy_from_slice(&[f32::NAN, 2f32.powi(127)]);
    values[32] = f32::from_bits(1);
    values[48..51].copy_from_slice(&[1e6, 1.0, -1e-6]);
    values[64] = 1e-6;
    let x = tile16(values);
    let b = quantise(Bfp8B, &x, Options::default());
    // Infinity is 2^128, which no float32 holds; what is beside it vanishes.
    assert_eq!(b.values()[..4], [f32::INFINITY, 0.0, f32::NEG_INFINITY, 0.0]);
    assert_eq!(b.values()[16..18], [f32::INFINITY, 2f32.powi(127)]);
    // A denormal has a hidden one like every other value.
    assert_eq!(b.values()[32], 2f32.powi(-127));
    let a = quantise(Bfp8, &x, Options::default());
    // Beyond 2^17 an A format saturates; 1 is below half a unit of 2^16 / 64.
    assert_eq!(a.values()[48..51], [127.0 * 1024.0, 0.0, 0.0]);
    assert_eq!(a.values()[0], 127.0 * 1024.0);
    // Below its range it counts as the smallest.
    assert_eq!(a.values()[64], 2f32.powi(-15));
    for (format, magnitude, small) in BLOCK_FORMATS {
        let block = BlockFormat::of(format).unwrap();
        let sign_only = block.decode(1 << magnitude, 100);
        assert_eq!(sign_only, if small { -65536.0 } else { f32::NEG_INFINITY });
        for element in 0..1u32 << (magnitude + 1) {
            let value = block.decode(element as u8, 20);
            let bias = if small { 15 } else { 127 };
            let m = f64::from(element & ((1 << magnitude) - 1));
            let expected = m * 2f64.powi(20 - bias - (magnitude - 1));
            if m != 0.0 {
                assert_eq!(f64::from(value.abs()), expected, "{format} {element:#x}");
                assert_eq!(u32::from(block.encode(value, 20, false)), element);
            }
        }
    }
}

#[test]
fn rounding_is_half_up_on_the_magnitude_and_never_bumps_the_exponent() {
    let mut values = vec![0.0; 256];
    // Unit 1/64: ties go up in magnitude, also to odd; 127.5 units clamp instead of becoming 2.
    values[..6].copy_from_slice(&[1.0, 64.5 / 64.0, 65.5 / 64.0, -66.5 / 64.0, 127.5 / 64.0, -0.5 / 64.0]);
    values[6..8].copy_from_slice(&[0.49 / 64.0, -0.49 / 64.0]);
    let x = tile16(values);
    let units = |x: &Tensor| x.values()[..8].iter().map(|v| v * 64.0).collect::<Vec<_>>();
    assert_eq!(units(&quantise(Bfp8B, &x, Options::default())), [64.0, 65.0, 66.0, -67.0, 127.0, -1.0, 0.0, 0.0]);
    assert_eq!(
        units(&quantise(Bfp8B, &x, Options { truncate: true })),
        [64.0, 64.0, 65.0, -66.0, 127.0, 0.0, 0.0, 0.0]
    );
    assert!(quantise(Bfp8B, &x, Options::default()).values()[7].is_sign_positive());
}

#[test]
fn tiles_have_the_documented_sizes() {
    let size = |format, r, c, arch| TileLayout::new(format, Size { r, c }, arch).unwrap().bytes();
    for (formats, wormhole, blackhole) in [
        (&[Float32, Int32, RawUInt32][..], 4128, 4160),
        (&[Float16, Float16B, UInt16, RawUInt16], 2080, 2112),
        (&[Int8, UInt8, RawUInt8, Lf8, Fp8E4m3], 1056, 1088),
        (&[Bfp8, Bfp8B], 1120, 1152),
        (&[Bfp4, Bfp4B], 608, 640),
        (&[Bfp2, Bfp2B], 352, 384),
    ] {
        for &format in formats {
            assert_eq!(size(format, 32, 32, Arch::Grayskull), wormhole, "{format}");
            assert_eq!(size(format, 32, 32, Arch::WormholeB0), wormhole, "{format}");
            assert_eq!(size(format, 32, 32, Arch::Blackhole), blackhole, "{format}");
        }
    }
    assert_eq!(size(Float16, 1, 32, Arch::WormholeB0), 96);
    assert_eq!(size(Bfp8, 1, 32, Arch::WormholeB0), 64);
    assert_eq!(size(Float32, 1, 32, Arch::WormholeB0), 160);
    for (r, c) in [(0, 32), (3, 32), (64, 32), (32, 8), (32, 64), (u32::MAX, u32::MAX)] {
        let refused = TileLayout::new(Float16, Size { r, c }, Arch::Blackhole);
        assert!(matches!(refused, Err(FormatError::TileSize(_))), "{r}x{c}");
    }
}

/// Rows of elements in the order in which an entry's buffer holds them, counted by loops.
fn expected_order(blocks: &Blocks, gr: u32, gc: u32) -> Vec<(u32, u32, u32)> {
    let Blocks { mblock: m, ublock: u, tile, .. } = *blocks;
    let (part_r, part_c) = (m.r * u.r * tile.r, m.c * u.c * tile.c);
    let ublocks: Vec<(u32, u32)> = match blocks.order {
        Order::Row => (0..m.r).flat_map(|r| (0..m.c).map(move |c| (r, c))).collect(),
        Order::Column => (0..m.c).flat_map(|c| (0..m.r).map(move |r| (r, c))).collect(),
    };
    let mut order = Vec::new();
    for z in 0..blocks.t {
        for &(br, bc) in &ublocks {
            for tr in 0..u.r {
                for tc in 0..u.c {
                    let (row, column) =
                        (gr * part_r + (br * u.r + tr) * tile.r, gc * part_c + (bc * u.c + tc) * tile.c);
                    for face_r in (0..tile.r).step_by(16) {
                        for face_c in (0..tile.c).step_by(16) {
                            for r in face_r..(face_r + 16).min(tile.r) {
                                for c in face_c..face_c + 16 {
                                    order.push((z, row + r, column + c));
                                }
                            }
                        }
                    }
                }
            }
        }
    }
    order
}

#[test]
fn buffers_hold_blocks_tiles_and_faces_in_order() {
    for (order, tile) in
        [(Order::Row, (32, 32)), (Order::Column, (32, 32)), (Order::Row, (4, 32)), (Order::Row, (32, 16))]
    {
        let blocks = Blocks {
            grid: Size { r: 2, c: 3 },
            t: 2,
            mblock: Size { r: 3, c: 2 },
            ublock: Size { r: 2, c: 2 },
            order,
            tile: Size { r: tile.0, c: tile.1 },
        };
        let shape = blocks.shape();
        let words = (0..(shape.t * shape.rows * shape.columns) as u32).map(|i| i.wrapping_mul(2_654_435_761)).collect();
        let x = Tensor::from_words(shape, blocks.tile, words).unwrap();
        let layout = EntryLayout::new(RawUInt32, &blocks, Layout::Tilized, Arch::WormholeB0).unwrap();
        let buffers = layout.pack(&x, Options::default()).unwrap();
        let tile_bytes = TileLayout::new(RawUInt32, blocks.tile, Arch::WormholeB0).unwrap().bytes();
        let elements = (tile.0 * tile.1) as usize;
        for (b, buffer) in buffers.iter().enumerate() {
            let expected = expected_order(&blocks, b as u32 / 3, b as u32 % 3);
            for (i, bytes) in buffer.chunks(tile_bytes).enumerate() {
                assert_eq!(u16::from_le_bytes([bytes[0], bytes[1]]) as usize * 16, tile_bytes);
                assert_eq!(bytes[6], 2, "low bits of the code");
                for (j, word) in bytes[16..16 + 4 * elements].chunks(4).enumerate() {
                    let (z, r, c) = expected[i * elements + j];
                    let at = (z as usize * shape.rows + r as usize) * shape.columns + c as usize;
                    assert_eq!(word, (at as u32).wrapping_mul(2_654_435_761).to_le_bytes(), "buffer {b} tile {i} {j}");
                }
            }
        }
        // Words beyond 2^24 survive, though values are float32.
        let read = layout.unpack(&buffers.iter().map(Vec::as_slice).collect::<Vec<_>>()).unwrap();
        assert_eq!(read.words(), x.words());
    }
}

#[test]
fn flat_buffers_hold_rows_of_their_part() {
    let (one, two) = (Size { r: 1, c: 1 }, Size { r: 2, c: 2 });
    let tile = Size { r: 32, c: 32 };
    let blocks = Blocks { grid: two, t: 2, mblock: one, ublock: two, order: Order::Column, tile };
    let x = Tensor::from_fn(blocks.shape(), tile, |z, r, c| (16384 * z + 128 * r + c) as f32).unwrap();
    let layout = EntryLayout::new(Float32, &blocks, Layout::Flat, Arch::Blackhole).unwrap();
    let buffers = layout.pack(&x, Options::default()).unwrap();
    for (b, buffer) in buffers.iter().enumerate() {
        let mut expected = Vec::new();
        for z in 0..2 {
            for r in 0..64 {
                for c in 0..64 {
                    let value = 16384 * z + 128 * (b / 2 * 64 + r) + b % 2 * 64 + c;
                    expected.extend((value as f32).to_le_bytes());
                }
            }
        }
        assert!(*buffer == expected, "buffer {b}");
    }
}

#[test]
fn exponents_come_before_data_and_elements_fill_bytes_from_below() {
    let tile = Size { r: 32, c: 32 };
    let blocks = Blocks {
        grid: Size { r: 1, c: 1 },
        t: 1,
        mblock: Size { r: 1, c: 1 },
        ublock: Size { r: 1, c: 1 },
        order: Order::Row,
        tile,
    };
    // Row r of face f is all 2^(f - r), but for its first element, which is minus half of it.
    let x = Tensor::from_fn(Shape { t: 1, rows: 32, columns: 32 }, tile, |_, r, c| {
        let (face, row) = ((r / 16) * 2 + c / 16, r % 16);
        let value = 2f32.powi(face as i32 - row as i32);
        if c % 16 == 0 { -value / 2.0 } else { value }
    })
    .unwrap();
    for (format, first, rest) in [(Bfp8B, 0xa0u32, 0x40u32), (Bfp4B, 0b1010, 0b0100), (Bfp2B, 0b11, 0b01)] {
        let layout = EntryLayout::new(format, &blocks, Layout::Tilized, Arch::Blackhole).unwrap();
        let bytes = &layout.pack(&x, Options::default()).unwrap()[0];
        for (i, &exponent) in bytes[16..80].iter().enumerate() {
            assert_eq!(i32::from(exponent), 127 + (i / 16) as i32 - (i % 16) as i32);
        }
        let bits = BlockFormat::of(format).unwrap().bits();
        let data = &bytes[80..80 + 1024 * bits as usize / 8];
        for i in 0..1024u32 {
            let at = (i * bits) as usize;
            let element = u32::from(data[at / 8]) >> (at % 8) & ((1 << bits) - 1);
            assert_eq!(element, if i % 16 == 0 { first } else { rest }, "{format} {i}");
        }
        assert!(bytes[80 + data.len()..].iter().all(|&b| b == 0));
    }
}

#[test]
fn wrong_bytes_are_answers() {
    let tile = Size { r: 32, c: 32 };
    let one = Size { r: 1, c: 1 };
    let blocks = Blocks { grid: one, t: 1, mblock: one, ublock: one, order: Order::Row, tile };
    let layout = EntryLayout::new(Float16, &blocks, Layout::Tilized, Arch::WormholeB0).unwrap();
    assert_eq!(layout.buffer_bytes(), 2080);
    assert_eq!(layout.unpack(&[]).unwrap_err(), FormatError::Buffers { found: 0, wanted: 1 });
    assert_eq!(layout.unpack(&[&[0; 2079]]).unwrap_err(), FormatError::Bytes { found: 2079, wanted: 2080 });
    let x = Tensor::full(Shape { t: 1, rows: 64, columns: 32 }, tile, 1.0).unwrap();
    assert!(matches!(layout.pack(&x, Options::default()), Err(FormatError::Shape { .. })));
    let huge = Blocks { t: u32::MAX, mblock: Size { r: u32::MAX, c: u32::MAX }, ..blocks };
    let refused = EntryLayout::new(Float16, &huge, Layout::Tilized, Arch::WormholeB0);
    assert!(matches!(refused, Err(FormatError::Tensor(_))));
    let wide = Blocks { grid: Size { r: u32::MAX, c: u32::MAX }, mblock: Size { r: 0, c: 0 }, ..blocks };
    let refused = EntryLayout::new(Float16, &wide, Layout::Tilized, Arch::WormholeB0);
    assert!(matches!(refused, Err(FormatError::Grid(_))));
    let flat = EntryLayout::new(Bfp4, &blocks, Layout::Flat, Arch::WormholeB0);
    assert_eq!(flat.unwrap_err(), FormatError::Flat(Bfp4));
    // Nothing at all is something that can be packed.
    let empty = Blocks { t: 0, ..blocks };
    let layout = EntryLayout::new(Bfp8, &empty, Layout::Tilized, Arch::WormholeB0).unwrap();
    let x = Tensor::full(Shape { t: 0, rows: 32, columns: 32 }, tile, 0.0).unwrap();
    let bytes = layout.pack(&x, Options::default()).unwrap();
    assert_eq!(layout.unpack(&[&bytes[0]]).unwrap(), x);
}
