//! Tiles against NumPy: the same arrays padded, transposed and rounded by its functions.
//!
//! Needs a Python with NumPy (`python3`, or what `TILEWORK_PYTHON` says); says so and does nothing
//! where there is none.

use std::fmt::Write;
use std::process::Command;
use tilework_dtype::DType;
use tilework_rng::SplitMix64;
use tilework_tensor_layout::{Layout, PageLayout, TileShape};

/// Reads `cases` in the folder `argv[1]`, a line each: name, type, tile and shape. Prints the cases
/// whose tiles differ from those that NumPy makes of the array.
const COMPARE: &str = r#"
import sys, numpy as np
def blocks(runs, bits):
    """Exponents and elements of runs of 16 values: round half away from zero in units of the largest."""
    exponents = np.frexp(np.abs(runs).max(-1))[1] - 1
    unit = 2.0 ** (exponents[:, None] - (bits - 2))
    magnitude = np.minimum(np.floor(np.abs(runs) / unit + 0.5), 2 ** (bits - 1) - 1).astype(np.uint8)
    elements = magnitude | np.where((runs < 0) & (magnitude > 0), 1 << (bits - 1), 0).astype(np.uint8)
    exponents = np.where(np.abs(runs).max(-1) == 0, 0, exponents + 127).astype(np.uint8)
    if bits == 4:
        elements = elements[:, 0::2] | elements[:, 1::2] << 4
    return exponents, elements
for line in open(sys.argv[1] + "/cases"):
    name, dtype, height, width, *dims = line.split()
    h, w, dims = int(height), int(width), [int(d) for d in dims]
    x = np.fromfile(f"{sys.argv[1]}/{name}.in", np.float32).reshape(dims)
    x = x.reshape([-1] + ([1, 1] + dims)[-2:]) if x.size else np.zeros((0, h, w), np.float32)
    x = np.pad(x, [(0, 0), (0, -x.shape[1] % h), (0, -x.shape[2] % w)])
    f = min(h, 16)
    tiles = x.reshape(x.shape[0], x.shape[1] // h, h // f, f, x.shape[2] // w, w // 16, 16).transpose(0, 1, 4, 2, 5, 3, 6)
    tiles = np.ascontiguousarray(tiles).reshape(-1, h * w)
    if dtype == "f32":
        wanted = tiles.tobytes()
    elif dtype == "bf16":
        bits = tiles.view(np.uint32)
        wanted = ((bits + 0x7fff + (bits >> 16 & 1)) >> 16).astype(np.uint16).tobytes()
    else:
        wanted = b""
        for tile in tiles.astype(np.float64):
            exponents, elements = blocks(tile.reshape(-1, 16), int(dtype[3]))
            wanted += exponents.tobytes() + bytes(-len(exponents) % 16) + elements.tobytes()
    if wanted != open(f"{sys.argv[1]}/{name}.out", "rb").read():
        print(line, end="")
"#;

fn python() -> Option<String> {
    let python = std::env::var("TILEWORK_PYTHON").unwrap_or_else(|_| "python3".into());
    let found = Command::new(&python).args(["-c", "import numpy"]).output().is_ok_and(|out| out.status.success());
    if !found {
        println!("left out: {python} has no numpy (TILEWORK_PYTHON names another)");
    }
    found.then_some(python)
}

#[test]
fn tiles_are_those_of_numpy() {
    let Some(python) = python() else { return };
    let folder = std::env::temp_dir().join(format!("tilework-numpy-tiles-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let shapes: [&[usize]; 9] =
        [&[], &[7], &[0], &[33, 40], &[3, 0, 4], &[2, 64, 96], &[2, 3, 31, 65], &[1, 2, 1, 2, 17], &[300, 1]];
    let (mut cases, mut random) = (String::new(), SplitMix64::new(11));
    for (i, dims) in shapes.iter().enumerate() {
        for tile in TileShape::all() {
            for dtype in [DType::F32, DType::BF16, DType::Bfp8B, DType::Bfp4B] {
                // 24 bits each: no NaN, and all magnitudes of a block are exact in double
                // precision.
                let value = |bits: u64| (bits as i32 >> 8) as f32 / (1u32 << (bits >> 60)) as f32;
                let data: Vec<u8> =
                    (0..dims.iter().product()).flat_map(|_| value(random.bits()).to_le_bytes()).collect();
                let pages = PageLayout::new(dims, dtype, Layout::Tile(tile), None).unwrap();
                let name = format!("{i}-{tile}-{}", dtype.name());
                std::fs::write(folder.join(format!("{name}.in")), &data).unwrap();
                let bytes = pages.encode(DType::F32, &data, 0.0).unwrap();
                std::fs::write(folder.join(format!("{name}.out")), bytes).unwrap();
                let dims: String = dims.iter().map(|d| format!(" {d}")).collect();
                writeln!(cases, "{name} {} {} {}{dims}", dtype.name(), tile.height(), tile.width()).unwrap();
            }
        }
    }
    std::fs::write(folder.join("cases"), cases).unwrap();
    let out = Command::new(python).args(["-c", COMPARE]).arg(&folder).output().unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    assert_eq!(String::from_utf8(out.stdout).unwrap(), "", "cases that differ");
}
