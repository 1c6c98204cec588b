//! Pages of tensors against their definition, element by element, and there and back.

use proptest::prelude::*;
use tilework_dtype::DType;
use tilework_dtype::block::BlockFormat;
use tilework_rng::SplitMix64;
use tilework_tensor_layout::{Extent, Layout, LayoutError, PageLayout, TileShape};

/// Shapes of rank 0 to 5: empty dimensions, single elements and sizes beside multiples of 32.
fn shapes() -> impl Strategy<Value = Vec<usize>> {
    let inner = prop_oneof![3 => 0usize..70, 1 => prop::sample::select(vec![1, 16, 31, 32, 33, 64])];
    (prop::collection::vec(0usize..4, 0..=3), prop::collection::vec(inner, 0..=2))
        .prop_map(|(outer, inner)| [outer, inner].concat())
}

fn layouts() -> impl Strategy<Value = Layout> {
    let tiles = prop::sample::select(TileShape::all().collect::<Vec<_>>()).prop_map(Layout::Tile);
    prop_oneof![1 => Just(Layout::RowMajor), 3 => tiles]
}

/// Random elements of a type that stands alone; floats are numbers of moderate size, so that blocks
/// hold several of them.
fn elements(dtype: DType, n: usize, seed: u64) -> Vec<u8> {
    let mut random = SplitMix64::new(seed);
    let mut float = || (random.bits() as i32 >> 8) as f32 / f32::from(1u16 << (random.bits() % 16));
    match dtype {
        DType::F32 => (0..n).flat_map(|_| float().to_le_bytes()).collect(),
        _ => (0..n * dtype.bytes().unwrap()).map(|_| random.bits() as u8).collect(),
    }
}

/// What a block of tiles holds of float32 values whose blocks are cut by the width.
fn rounded(dims: &[usize], dtype: DType, values: &[u8]) -> Vec<u8> {
    let block = BlockFormat::of(dtype).unwrap();
    let mut floats: Vec<f32> = values.as_chunks().0.iter().map(|&b| f32::from_le_bytes(b)).collect();
    floats.chunks_mut(dims.last().copied().unwrap_or(1).max(1)).for_each(|row| block.round(row, false));
    floats.into_iter().flat_map(f32::to_le_bytes).collect()
}

/// Where element `flat` of a tensor lies: its page, and its number within the page.
fn place(dims: &[usize], layout: Layout, page_width: Option<usize>, flat: usize) -> (usize, usize) {
    let width = dims.last().copied().unwrap_or(1);
    let height = if dims.len() < 2 { 1 } else { dims[dims.len() - 2] };
    let (row, column) = (flat / width, flat % width);
    let (matrix, row) = (row / height, row % height);
    match layout {
        Layout::RowMajor => {
            let page = page_width.unwrap_or(width);
            let row = matrix * height + row;
            (row * width.div_ceil(page) + column / page, column % page)
        }
        Layout::Tile(tile) => {
            let (h, w) = (tile.height(), tile.width());
            let page = (matrix * height.div_ceil(h) + row / h) * width.div_ceil(w) + column / w;
            let (row, column, face) = (row % h, column % w, h.min(16));
            let faces = row / face * (w / 16) + column / 16;
            (page, faces * face * 16 + row % face * 16 + column % 16)
        }
    }
}

/// The type of host elements from which blocks are made.
fn host_type(dtype: DType) -> DType {
    if dtype.is_block() { DType::F32 } else { dtype }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn elements_lie_where_the_definition_says(
        dims in shapes(),
        layout in layouts(),
        page_width in prop::option::of(1usize..40),
        dtype in prop::sample::select(vec![DType::F32, DType::BF16, DType::U8, DType::I64]),
        seed in any::<u64>(),
    ) {
        let pages = PageLayout::new(&dims, dtype, layout, page_width).unwrap();
        let page_width = page_width.filter(|_| layout == Layout::RowMajor);
        let (n, size) = (dims.iter().product::<usize>(), dtype.bytes().unwrap());
        let data = elements(dtype, n, seed);
        let bytes = pages.encode(dtype, &data, 0.0).unwrap();
        prop_assert_eq!(bytes.len(), pages.pages() * pages.page_bytes());
        prop_assert_eq!(pages.elements(), n);

        let mut wanted = vec![0; bytes.len()];
        for flat in 0..n {
            let (page, within) = place(&dims, layout, page_width, flat);
            let at = page * pages.page_bytes() + within * size;
            wanted[at..at + size].copy_from_slice(&data[flat * size..][..size]);
        }
        prop_assert!(bytes == wanted);
    }

    #[test]
    fn tensors_come_back(
        dims in shapes(),
        layout in layouts(),
        page_width in prop::option::of(1usize..40),
        dtype in prop::sample::select(DType::ALL.to_vec()),
        pad in -3i8..3,
        seed in any::<u64>(),
    ) {
        let pages = match PageLayout::new(&dims, dtype, layout, page_width) {
            Err(error) => {
                prop_assert_eq!(error, LayoutError::BlockRows(dtype));
                prop_assert!(dtype.is_block() && layout == Layout::RowMajor);
                return Ok(());
            }
            Ok(pages) => pages,
        };
        let host = host_type(dtype);
        let data = elements(host, dims.iter().product(), seed);
        let Ok(bytes) = pages.encode(host, &data, f64::from(pad)) else {
            // A negative number is no unsigned one, and few types have a number as padding.
            prop_assert!(pad != 0 && ![DType::F32, DType::BF16, DType::F16, DType::I32].contains(&dtype));
            return Ok(());
        };
        let wanted = if dtype.is_block() && pad == 0 { rounded(&dims, dtype, &data) } else { data };
        let back = pages.decode(&bytes, host).unwrap();
        if dtype.is_block() && pad != 0 {
            // The padding may have the largest exponent of a block. A second time nothing changes.
            prop_assert!(pages.encode(host, &back, f64::from(pad)).unwrap() == bytes);
        } else {
            prop_assert!(back == wanted);
        }
    }

    #[test]
    fn padding_surrounds_every_matrix(dims in shapes(), tile in prop::sample::select(TileShape::all().collect::<Vec<_>>())) {
        let pages = PageLayout::new(&dims, DType::I32, Layout::Tile(tile), None).unwrap();
        let n = dims.iter().product::<usize>();
        let ones: Vec<u8> = 1i32.to_le_bytes().repeat(n);
        let bytes = pages.encode(DType::I32, &ones, -7.0).unwrap();
        let (mut used, mut padding) = (0, 0);
        for word in bytes.as_chunks().0 {
            match i32::from_le_bytes(*word) {
                1 => used += 1,
                -7 => padding += 1,
                other => prop_assert!(false, "found {other}"),
            }
        }
        let Extent { height, width } = pages.physical();
        prop_assert_eq!((used, used + padding), (n, height * width));
        prop_assert_eq!(pages.padded_dims().iter().product::<usize>(), height * width);
    }
}

/// The sizes of tt-metal's own tests (`tests/ttnn/unit_tests/gtests/tensor`,
/// `TensorLayoutComputeTests`).
#[test]
fn physical_sizes_are_those_of_tt_metal() {
    type Case = (&'static [usize], DType, Layout, (usize, usize));
    let cases: [Case; 9] = [
        (&[5, 4, 3, 2], DType::BF16, Layout::TILE, (5 * 4 * 32, 32)),
        (&[6, 5, 4, 3], DType::BF16, Layout::RowMajor, (6 * 5 * 4, 3)),
        (&[6, 5, 4, 8], DType::BF16, Layout::RowMajor, (6 * 5 * 4, 8)),
        (&[1, 1, 1, 1], DType::BF16, Layout::TILE, (32, 32)),
        (&[1, 1, 1, 1], DType::U32, Layout::RowMajor, (1, 1)),
        (&[], DType::U32, Layout::RowMajor, (1, 1)),
        (&[], DType::BF16, Layout::TILE, (32, 32)),
        (&[1], DType::BF16, Layout::RowMajor, (1, 1)),
        (&[1], DType::BF16, Layout::TILE, (32, 32)),
    ];
    for (dims, dtype, layout, (height, width)) in cases {
        let pages = PageLayout::new(dims, dtype, layout, None).unwrap();
        assert_eq!(pages.physical(), Extent { height, width }, "{dims:?} {layout:?}");
    }
}

#[test]
fn shapes_and_pages() {
    let tiles = PageLayout::new(&[3, 33, 40], DType::Bfp8B, Layout::TILE, None).unwrap();
    assert_eq!(tiles.padded_dims(), [3, 64, 64]);
    assert_eq!((tiles.page_bytes(), tiles.pages(), tiles.bytes()), (1088, 12, 12 * 1088));
    assert_eq!(tiles.pages_by_side(), Extent { height: 6, width: 2 });
    assert_eq!(PageLayout::new(&[5], DType::F32, Layout::TILE, None).unwrap().padded_dims(), [32, 32]);

    let rows = PageLayout::new(&[2, 3, 10], DType::BF16, Layout::RowMajor, None).unwrap();
    assert_eq!((rows.page_bytes(), rows.pages(), rows.padded_dims()), (20, 6, vec![2, 3, 10]));
    let parts = PageLayout::new(&[2, 3, 10], DType::BF16, Layout::RowMajor, Some(4)).unwrap();
    assert_eq!((parts.page_bytes(), parts.pages(), parts.padded_dims()), (8, 18, vec![2, 3, 12]));
    assert_eq!(PageLayout::new(&[], DType::U8, Layout::RowMajor, None).unwrap().padded_dims(), [1]);

    for (dims, layout) in [(vec![0], Layout::RowMajor), (vec![4, 0], Layout::RowMajor), (vec![0, 5, 5], Layout::TILE)] {
        let empty = PageLayout::new(&dims, DType::F32, layout, None).unwrap();
        assert_eq!((empty.pages(), empty.bytes(), empty.elements()), (0, 0, 0), "{dims:?}");
        assert!(empty.page_bytes() >= 4);
        assert_eq!(empty.encode(DType::F32, &[], 1.0), Ok(Vec::new()));
        assert_eq!(empty.decode(&[], DType::F32), Ok(Vec::new()));
    }
}

#[test]
fn rows_have_the_padding_of_the_tiles() {
    let tiles = PageLayout::new(&[2, 1, 3], DType::U8, Layout::Tile(TileShape::new(2, 16).unwrap()), None).unwrap();
    let rows = tiles.in_rows().unwrap();
    assert_eq!((rows.page_bytes(), rows.pages(), rows.bytes()), (16, 4, tiles.bytes()));
    let bytes = rows.encode(DType::U8, &[1, 2, 3, 4, 5, 6], 0.0).unwrap();
    assert_eq!((&bytes[..4], &bytes[32..36]), (&[1, 2, 3, 0][..], &[4, 5, 6, 0][..]));
    assert!(bytes[16..32].iter().chain(&bytes[48..]).all(|&b| b == 0));
    assert_eq!(rows.decode(&bytes, DType::U8).unwrap(), [1, 2, 3, 4, 5, 6]);
    let blocks = PageLayout::new(&[2, 2], DType::Bfp8B, Layout::TILE, None).unwrap();
    assert_eq!(blocks.in_rows(), Err(LayoutError::BlockRows(DType::Bfp8B)));
}

#[test]
fn uploads_convert() {
    let pages = PageLayout::new(&[2, 2], DType::BF16, Layout::Tile(TileShape::new(2, 16).unwrap()), None).unwrap();
    let values: Vec<u8> = [1.0f32, -2.0, 0.5, 257.0].into_iter().flat_map(f32::to_le_bytes).collect();
    let bytes = pages.encode(DType::F32, &values, 0.0).unwrap();
    assert_eq!((&bytes[..4], &bytes[32..36]), (&[0x80, 0x3f, 0x00, 0xc0][..], &[0x00, 0x3f, 0x80, 0x43][..]));
    let back = pages.decode(&bytes, DType::F32).unwrap();
    let wanted: Vec<u8> = [1.0f32, -2.0, 0.5, 256.0].into_iter().flat_map(f32::to_le_bytes).collect();
    assert_eq!(back, wanted);
    assert_eq!(pages.decode(&bytes, DType::U8).unwrap(), [1, 254, 0, 0]);
}

#[test]
fn what_does_not_fit_is_refused() {
    let message = |result: Result<Vec<u8>, LayoutError>| result.unwrap_err().to_string();
    let pages = PageLayout::new(&[2, 3], DType::U16, Layout::TILE, None).unwrap();
    assert_eq!(message(pages.encode(DType::F32, &[0; 23], 0.0)), "found 23 bytes, expected 24: shape [2, 3], f32");
    assert_eq!(message(pages.decode(&[0; 100], DType::F32)), "found 100 bytes, expected 2048: shape [2, 3], u16");
    assert_eq!(message(pages.encode(DType::F32, &[0; 24], 0.5)), "padding 0.5 is no element of type u16");
    assert_eq!(message(pages.encode(DType::Bool, &[0; 6], 0.0)), "no conversion from bool to u16");
    assert_eq!(message(pages.decode(&[0; 2048], DType::F64)), "no conversion from u16 to f64");

    let refused =
        |dims: &[usize], dtype, layout, width| PageLayout::new(dims, dtype, layout, width).unwrap_err().to_string();
    assert_eq!(
        refused(&[2, 2], DType::Bfp4B, Layout::RowMajor, None),
        "elements of type bfp4_b in rows: they share exponents and exist in tiles only"
    );
    assert_eq!(
        refused(&[2], DType::U8, Layout::RowMajor, Some(0)),
        "pages of 0 columns: a page has one column at least"
    );
    for dims in [vec![usize::MAX], vec![1 << 40, 1 << 40], vec![0, usize::MAX / 2, 64]] {
        let wanted = format!("a tensor of shape {dims:?} has too many elements");
        assert_eq!(refused(&dims, DType::U8, Layout::TILE, None), wanted);
    }
}
