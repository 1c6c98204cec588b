//! Sizes against tables worked out by hand from tt-budabackend's `common/size_lib.cpp`.

use tilework_netlist::DataFormat::{self, *};
use tilework_netlist::size::{buffer_bytes, entry_bytes, exponent_bytes, payload_bytes, raw_tile_bytes, tile_bytes};
use tilework_netlist::types::{Arch, Blocks, Order, Size};

const FULL: Size = Size { r: 32, c: 32 };

/// Bytes of a 32 x 32 tile with header: Grayskull and Wormhole, Blackhole.
const TABLE: [(&[DataFormat], u64, u64); 6] = [
    (&[Float32, Int32, RawUInt32], 4128, 4160),
    (&[Float16, Float16B, UInt16, RawUInt16], 2080, 2112),
    (&[Int8, UInt8, RawUInt8, Lf8, Fp8E4m3], 1056, 1088),
    (&[Bfp8, Bfp8B], 1120, 1152),
    (&[Bfp4, Bfp4B], 608, 640),
    (&[Bfp2, Bfp2B], 352, 384),
];

#[test]
fn tiles_of_32_by_32() {
    let mut formats = 0;
    for (all, wormhole, blackhole) in TABLE {
        for format in all {
            formats += 1;
            for arch in [Arch::Grayskull, Arch::Wormhole, Arch::WormholeB0] {
                assert_eq!(tile_bytes(*format, FULL, arch), wormhole, "{format} on {arch:?}");
            }
            assert_eq!(tile_bytes(*format, FULL, Arch::Blackhole), blackhole, "{format} on Blackhole");
        }
    }
    // All but Tf32, which is no format of memory.
    assert_eq!(formats, DataFormat::ALL.len() - 1);
}

#[test]
fn tiles_of_one_row() {
    let flat = Size { r: 1, c: 32 };
    for (format, wormhole, blackhole) in [(Float16, 96, 128), (Bfp8, 64, 64), (Float32, 160, 192)] {
        assert_eq!(tile_bytes(format, flat, Arch::WormholeB0), wormhole, "{format}");
        assert_eq!(tile_bytes(format, flat, Arch::Blackhole), blackhole, "{format}");
    }
}

#[test]
fn exponents_and_data() {
    for (r, c, exponents) in
        [(32, 32, 64), (16, 32, 32), (32, 16, 32), (8, 32, 16), (4, 32, 16), (2, 32, 16), (1, 32, 16)]
    {
        let tile = Size { r, c };
        assert_eq!(exponent_bytes(Bfp4B, tile), exponents, "{r} x {c}");
        assert_eq!(exponent_bytes(Float16, tile), 0);
        assert_eq!(payload_bytes(Bfp2, tile), u64::from(r) * u64::from(c) / 4);
        assert_eq!(raw_tile_bytes(Bfp8, tile), exponents + u64::from(r) * u64::from(c));
    }
}

#[test]
fn entries_and_buffers() {
    let (grid, two) = (Size { r: 1, c: 1 }, Size { r: 2, c: 2 });
    let blocks = Blocks { grid, t: 3, mblock: two, ublock: two, order: Order::Row, tile: FULL };
    // 3 x 4 x 4 tiles, and a header of 32 or 64 bytes before the first entry.
    assert_eq!(entry_bytes(&blocks, Float16, Arch::Grayskull), Some(48 * 2080));
    assert_eq!(buffer_bytes(&blocks, Float16, 5, Arch::Grayskull), Some(48 * 2080 * 5 + 32));
    assert_eq!(buffer_bytes(&blocks, Float16, 5, Arch::Blackhole), Some(48 * 2112 * 5 + 64));
    let most = Size { r: u32::MAX, c: u32::MAX };
    let huge = Blocks { grid: most, t: u32::MAX, mblock: most, ublock: most, order: Order::Row, tile: FULL };
    assert_eq!(buffer_bytes(&huge, Float32, u32::MAX, Arch::Blackhole), None);
}

#[test]
fn codes_of_formats() {
    let of = |name: &str| DataFormat::ALL.iter().find(|(_, known, _)| *known == name).map(|(_, _, code)| *code);
    for (name, code) in
        [("Float32", 0), ("Bfp8_b", 6), ("Int8", 14), ("Fp8_e4m3", 0x1a), ("UInt8", 30), ("RawUInt32", 0xf2)]
    {
        assert_eq!(of(name), Some(code), "{name}");
    }
}
