//! Tensors on the device: every memory, layout and element type, there and back; shards where
//! tt-metal has them; and what is refused.

use crate::common::{Device, open};
use proptest::prelude::*;
use tilework_abi::addr::L1Addr;
use tilework_abi::board::Board;
use tilework_abi::l1::WORKER;
use tilework_abi::noc::NocXy;
use tilework_runtime::memory::{Bank, CoreGrid, MemorySpace, ShardOrientation, ShardSpec, TensorMemoryLayout};
use tilework_runtime::tensor::{
    HostTensor, Layout, MemoryConfig, TENSOR_TYPES, TensorDesc, TensorSpec, TileShape, Tilize,
};
use tilework_runtime::{BufferType, CoreCoord, CoreRange, CoreRangeSet, DType, DeviceConfig, Dispatch};

const BOARD: Board = Board::P100;

fn device() -> Device {
    open(DeviceConfig { dispatch: Dispatch::Slow, ..DeviceConfig::new(BOARD) })
}

/// An array whose elements are small integers, which every type holds. Blocks hold them, too: those
/// of a row have the same exponent and three significant bits.
fn array(shape: &[usize], dtype: DType) -> HostTensor {
    let width = shape.last().copied().unwrap_or(1).max(1);
    let value = |i: usize| ((4 + i % width % 4) << (i / width % 2)) as u32;
    let n = shape.iter().product();
    match dtype {
        DType::F32 => HostTensor::from_values(shape, &(0..n).map(|i| value(i) as f32).collect::<Vec<_>>()).unwrap(),
        DType::I32 => HostTensor::from_values(shape, &(0..n).map(|i| value(i) as i32).collect::<Vec<_>>()).unwrap(),
        _ => HostTensor::from_values(shape, &(0..n).map(value).collect::<Vec<_>>()).unwrap(),
    }
}

/// Writes an array of the type and reads it as float32.
fn round_trip(device: &mut Device, desc: &TensorDesc) {
    let tensor = device.create_tensor("x", desc).unwrap();
    device.write_tensor(&tensor, &array(&desc.shape, DType::F32)).unwrap();
    assert_eq!(device.read_tensor_as(&tensor, DType::F32).unwrap(), array(&desc.shape, DType::F32), "{desc:?}");
    let found = device.read_tensor(&tensor).unwrap();
    assert_eq!(found.dtype(), if desc.dtype.is_block() { DType::F32 } else { desc.dtype });
    device.free_tensor(&tensor).unwrap();
}

/// A rectangle of cores from (0, 0) on.
fn cores(columns: u32, rows: u32) -> CoreRangeSet {
    CoreRangeSet::new([CoreRange::new(CoreCoord::new(0, 0), CoreCoord::new(columns - 1, rows - 1))]).unwrap()
}

fn sharded(layout: TensorMemoryLayout, grid: CoreRangeSet, shape: [u32; 2], by: ShardOrientation) -> MemoryConfig {
    MemoryConfig::sharded(layout, BufferType::L1, ShardSpec { grid, shape, orientation: by })
}

#[test]
fn all_types_and_layouts_come_back() {
    let mut device = device();
    let layouts = [Layout::TILE, Layout::Tile(TileShape::new(16, 32).unwrap()), Layout::RowMajor];
    for (dtype, layout) in TENSOR_TYPES.into_iter().flat_map(|dtype| layouts.map(|layout| (dtype, layout))) {
        if dtype.is_block() && layout == Layout::RowMajor {
            continue;
        }
        for memory in [MemoryConfig::DRAM, MemoryConfig::L1] {
            round_trip(&mut device, &TensorDesc::new([2, 3, 33, 70]).dtype(dtype).layout(layout).memory(memory));
        }
    }
}

#[test]
fn all_shapes_come_back() {
    let mut device = device();
    let shapes: [&[usize]; 9] = [&[], &[1], &[100], &[0], &[5, 0], &[32, 32], &[0, 3, 3], &[2, 1, 2, 5, 9], &[65, 1]];
    for shape in shapes {
        for layout in [Layout::TILE, Layout::RowMajor] {
            round_trip(&mut device, &TensorDesc::new(shape).layout(layout));
        }
    }
}

/// The tile of a core.
fn tile(core: CoreCoord) -> NocXy {
    CoreGrid::new(BOARD).tile(core).unwrap()
}

/// A matrix of 32-bit words whose values are their places in the padded matrix, and its device.
struct Matrix {
    height: usize,
    width: usize,
    /// Columns with padding.
    padded: usize,
}

impl Matrix {
    fn array(&self) -> HostTensor {
        let words: Vec<u32> = (0..self.height)
            .flat_map(|row| (0..self.width).map(move |column| (row * self.padded + column + 1) as u32))
            .collect();
        HostTensor::from_values(&[self.height, self.width], &words).unwrap()
    }
    /// The word at a place of the padded matrix, padding zero.
    fn word(&self, row: usize, column: usize) -> u32 {
        if row < self.height && column < self.width { (row * self.padded + column + 1) as u32 } else { 0 }
    }
}

/// Writes the matrix in shards of `shape`, and looks for each of them on the core that `core` says,
/// by its row and column of shards.
fn shards_are_found(
    matrix: &Matrix,
    layout: Layout,
    memory: MemoryConfig,
    shards: [usize; 2],
    core: impl Fn(u32, u32) -> CoreCoord,
) {
    let mut device = device();
    let shape = memory.shard_spec.as_ref().unwrap().shape.map(|n| n as usize);
    let desc = TensorDesc::new([matrix.height, matrix.width]).dtype(DType::U32).layout(layout).memory(memory);
    let tensor = device.create_tensor("x", &desc).unwrap();
    device.write_tensor(&tensor, &matrix.array()).unwrap();
    assert_eq!(device.read_tensor(&tensor).unwrap(), matrix.array());

    let page = tensor.spec.page_size() as usize;
    let in_page = match layout {
        Layout::RowMajor => [1, shape[1]],
        Layout::Tile(tile) => [tile.height(), tile.width()],
    };
    let (rows, columns) = (tensor.spec.physical_shape().height, tensor.spec.physical_shape().width);
    for (i, j) in (0..shards[0]).flat_map(|i| (0..shards[1]).map(move |j| (i, j))) {
        let at = tile(core(i as u32, j as u32));
        let mut bytes = vec![0; shape[0] / in_page[0] * (shape[1] / in_page[1]) * page];
        device.read_l1(at, L1Addr::new(tensor.buffer.address.word()), &mut bytes).unwrap();
        for (r, c) in (0..shape[0]).flat_map(|r| (0..shape[1]).map(move |c| (r, c))) {
            let (row, column) = (i * shape[0] + r, j * shape[1] + c);
            if row >= rows || column >= columns {
                continue;
            }
            let page_of = r / in_page[0] * (shape[1] / in_page[1]) + c / in_page[1];
            let (r, c) = (r % in_page[0], c % in_page[1]);
            let within = match layout {
                Layout::RowMajor => c,
                Layout::Tile(_) => {
                    let face = r / 16 * (in_page[1] / 16) + c / 16;
                    face * 256 + r % 16 * 16 + c % 16
                }
            };
            let found = u32::from_le_bytes(bytes[page_of * page + within * 4..][..4].try_into().unwrap());
            assert_eq!(found, matrix.word(row, column), "({row},{column}) in shard ({i},{j})");
        }
    }
}

#[test]
fn height_shards_are_whole_rows() {
    use ShardOrientation::{ColMajor, RowMajor};
    let matrix = Matrix { height: 150, width: 60, padded: 64 };
    let layout = TensorMemoryLayout::HeightSharded;
    // Three shards of 64 rows, the last with 32 of them.
    let config = |by| sharded(layout, cores(2, 2), [64, 64], by);
    shards_are_found(&matrix, Layout::TILE, config(RowMajor), [3, 1], |i, _| CoreCoord::new(i % 2, i / 2));
    shards_are_found(&matrix, Layout::TILE, config(ColMajor), [3, 1], |i, _| CoreCoord::new(i / 2, i % 2));
    // The same in rows; the width is padded to that of a shard.
    shards_are_found(&matrix, Layout::RowMajor, config(RowMajor), [3, 1], |i, _| CoreCoord::new(i % 2, i / 2));
}

#[test]
fn width_shards_are_whole_columns() {
    use ShardOrientation::{ColMajor, RowMajor};
    let layout = TensorMemoryLayout::WidthSharded;
    let matrix = Matrix { height: 40, width: 150, padded: 160 };
    // Five tiles across: shards of two, two and one.
    let config = |by| sharded(layout, cores(2, 2), [64, 64], by);
    shards_are_found(&matrix, Layout::TILE, config(RowMajor), [1, 3], |_, j| CoreCoord::new(j % 2, j / 2));
    shards_are_found(&matrix, Layout::TILE, config(ColMajor), [1, 3], |_, j| CoreCoord::new(j / 2, j % 2));
    let rows = sharded(layout, cores(3, 1), [40, 64], RowMajor);
    let matrix = Matrix { padded: 192, ..matrix };
    shards_are_found(&matrix, Layout::RowMajor, rows, [1, 3], |_, j| CoreCoord::new(j, 0));
}

#[test]
fn block_shards_lie_as_in_the_tensor_or_transposed() {
    use ShardOrientation::{ColMajor, RowMajor};
    let layout = TensorMemoryLayout::BlockSharded;
    let matrix = Matrix { height: 100, width: 150, padded: 160 };
    // Four by five tiles in shards of two by two: two rows of three shards.
    let config = |grid, by| sharded(layout, grid, [64, 64], by);
    shards_are_found(&matrix, Layout::TILE, config(cores(3, 2), RowMajor), [2, 3], |i, j| CoreCoord::new(j, i));
    shards_are_found(&matrix, Layout::TILE, config(cores(2, 3), ColMajor), [2, 3], CoreCoord::new);
    let tile = Layout::Tile(TileShape::new(16, 16).unwrap());
    let small = sharded(layout, cores(4, 3), [48, 48], RowMajor);
    shards_are_found(&matrix, tile, small, [3, 4], |i, j| CoreCoord::new(j, i));
    let rows = sharded(layout, cores(3, 2), [50, 64], RowMajor);
    let matrix = Matrix { padded: 192, ..matrix };
    shards_are_found(&matrix, Layout::RowMajor, rows, [2, 3], |i, j| CoreCoord::new(j, i));
}

#[test]
fn the_chip_makes_the_tiles_of_the_host() {
    for dispatch in [Dispatch::Fast, Dispatch::Slow] {
        let mut device = open(DeviceConfig { dispatch, ..DeviceConfig::new(BOARD) });
        // One tile; two matrices of three rows of two tiles; the widest.
        for shape in [vec![20, 7], vec![2, 70, 50], vec![64, 256]] {
            let values: Vec<f32> = (0..shape.iter().product()).map(|i| (i % 251) as f32 - 100.0).collect();
            let array = HostTensor::from_values(&shape, &values).unwrap();
            let tensor = device.create_tensor("x", &TensorDesc::new(shape.clone())).unwrap();
            let free = device.dram().free();
            device.write_tensor_by(&tensor, &array, Tilize::OnChip).unwrap();
            assert_eq!(device.dram().free(), free, "the rows are freed");
            let by_chip = device.download(&tensor.buffer).unwrap();
            assert!(by_chip == tensor.spec.encode(&array, 0.0).unwrap(), "{shape:?} by {}", dispatch.name());
            let rows = device.read_tensor_by(&tensor, Tilize::OnChip).unwrap();
            assert_eq!(rows, device.read_tensor_by(&tensor, Tilize::OnHost).unwrap(), "{shape:?}");
            device.free_tensor(&tensor).unwrap();
        }
    }
}

#[test]
fn what_the_chip_does_not_tilize_is_refused() {
    let mut device = device();
    let shards = sharded(TensorMemoryLayout::HeightSharded, cores(1, 1), [32, 32], ShardOrientation::RowMajor);
    let on_chip = MemoryConfig { buffer_type: BufferType::Dram, ..shards };
    for (desc, why) in [
        (TensorDesc::new([32, 32]).dtype(DType::F32), "elements of another type than bf16"),
        (TensorDesc::new([32, 32]).layout(Layout::RowMajor), "no tiles of 32x32"),
        (TensorDesc::new([32, 32]).memory(MemoryConfig::L1), "another memory than DRAM"),
        (TensorDesc::new([32, 32]).memory(on_chip), "shards"),
        (TensorDesc::new([32, 257]), "rows of more than 8 tiles"),
    ] {
        let tensor = device.create_tensor("x", &desc).unwrap();
        let wanted = format!("the chip tilizes no tensor with {why}; let the host do it");
        let array = array(&desc.shape, DType::F32);
        assert_eq!(device.write_tensor_by(&tensor, &array, Tilize::OnChip).unwrap_err().to_string(), wanted);
        assert_eq!(device.read_tensor_by(&tensor, Tilize::OnChip).unwrap_err().to_string(), wanted);
        device.write_tensor_by(&tensor, &array, Tilize::default()).unwrap();
    }
}

#[test]
fn padding_is_what_the_caller_says() {
    let mut device = device();
    let desc = TensorDesc::new([1, 1]).dtype(DType::F32).layout(Layout::Tile(TileShape::new(1, 16).unwrap()));
    let tensor = device.create_tensor("x", &desc).unwrap();
    device
        .write_tensor_padded(&tensor, &HostTensor::from_values(&[1, 1], &[2f32]).unwrap(), f64::NEG_INFINITY)
        .unwrap();
    let bytes = device.download(&tensor.buffer).unwrap();
    let values: Vec<f32> = bytes.as_chunks().0.iter().map(|&b| f32::from_le_bytes(b)).collect();
    assert_eq!(values, [vec![2.0], vec![f32::NEG_INFINITY; 15]].concat());
}

#[test]
fn what_cannot_be_is_refused() {
    let mut device = device();
    let mut refused = |desc: &TensorDesc| device.create_tensor("x", desc).unwrap_err().to_string();
    assert_eq!(
        refused(&TensorDesc::new([4]).dtype(DType::F64)),
        "tensors have no elements of type f64, expected bf16, f32, f16, bfp8_b, bfp4_b, u32, i32, u16, u8"
    );
    assert_eq!(
        refused(&TensorDesc::new([4]).dtype(DType::Bfp8B).layout(Layout::RowMajor)),
        "elements of type bfp8_b in rows: they share exponents and exist in tiles only"
    );
    assert_eq!(
        refused(&TensorDesc::new([1 << 20, 1 << 20, 1 << 10])),
        "found 1099511627776 pages, expected at most 4294967295"
    );
    let layout = TensorMemoryLayout::HeightSharded;
    let memory = sharded(layout, cores(1, 1), [48, 64], ShardOrientation::RowMajor);
    assert_eq!(
        refused(&TensorDesc::new([64, 64]).memory(memory)),
        "buffer x: a shard of [48, 64] elements, expected whole pages of [32, 32]"
    );
    let memory = sharded(layout, cores(1, 1), [32, 64], ShardOrientation::RowMajor);
    assert_eq!(
        refused(&TensorDesc::new([64, 64]).memory(memory)),
        "buffer x: 2 shards, but 1 cores: each core holds one shard"
    );
    let interleaved = MemoryConfig { memory_layout: layout, ..MemoryConfig::L1 };
    assert_eq!(
        refused(&TensorDesc::new([64, 64]).memory(interleaved)),
        "buffer x: its layout is sharded, but it has no shard specification"
    );

    let tensor = device.create_tensor("x", &TensorDesc::new([4, 4])).unwrap();
    let array = HostTensor::from_values(&[4, 5], &[0f32; 20]).unwrap();
    let message = device.write_tensor(&tensor, &array).unwrap_err().to_string();
    assert_eq!(message, "found an array of shape [4, 5], expected [4, 4]");
    let message = device.read_tensor_as(&tensor, DType::Bfp8B).unwrap_err().to_string();
    assert_eq!(message, "no conversion from bf16 to bfp8_b");
    device.free_tensor(&tensor).unwrap();
    assert!(device.free_tensor(&tensor).is_err(), "freed before");
    let message = HostTensor::from_values(&[3], &[1u8, 2]).unwrap_err().to_string();
    assert_eq!(message, "found 2 bytes for shape [3] of u8, expected 3");
    let message = HostTensor::from_le_bytes(&[3], DType::Bfp4B, vec![]).unwrap_err().to_string();
    assert_eq!(message, "found 0 bytes for shape [3] of bfp4_b, expected elements with bytes of their own");
}

proptest! {
    /// Whatever the shape and layout, pages hold the array and nothing of it is lost.
    #[test]
    fn specifications_keep_arrays(
        shape in prop::collection::vec(0usize..40, 0..=5),
        dtype in prop::sample::select(TENSOR_TYPES.to_vec()),
        tile in prop::option::of(prop::sample::select(TileShape::all().collect::<Vec<_>>())),
        shard_width in prop::option::of(1u32..50),
    ) {
        let layout = tile.map_or(Layout::RowMajor, Layout::Tile);
        prop_assume!(!dtype.is_block() || tile.is_some());
        prop_assume!(shape.iter().product::<usize>() < 1 << 17);
        let memory = match shard_width {
            Some(width) => {
                sharded(TensorMemoryLayout::BlockSharded, cores(1, 1), [32, width], ShardOrientation::RowMajor)
            }
            None => MemoryConfig::DRAM,
        };
        let spec = TensorSpec::new(&TensorDesc::new(shape.clone()).dtype(dtype).layout(layout).memory(memory)).unwrap();
        let pages = spec.encode(&array(&shape, DType::F32), 0.0).unwrap();
        let config = spec.buffer_config("x");
        prop_assert_eq!((pages.len() as u64, pages.len()), (config.size, spec.pages() * spec.page_size() as usize));
        if let Some(shard) = config.shard {
            let [rows, columns] = shard.tensor2d_shape_in_pages;
            prop_assert_eq!((rows * columns) as usize, spec.pages());
        }
        prop_assert_eq!(spec.decode(&pages, DType::F32).unwrap(), array(&shape, DType::F32));
        let (padded, physical) = (spec.padded_shape(), spec.physical_shape());
        prop_assert_eq!(padded.iter().product::<usize>(), physical.height * physical.width);
    }
}

/// Rectangles of cores, `x,y-x,y` each.
fn rectangles(text: &str) -> CoreRangeSet {
    let corner = |text: &str| {
        let (x, y) = text.split_once(',').unwrap();
        CoreCoord::new(x.parse().unwrap(), y.parse().unwrap())
    };
    let ranges = text.split(' ').map(|text| {
        let (start, end) = text.split_once('-').unwrap();
        CoreRange::new(corner(start), corner(end))
    });
    CoreRangeSet::new(ranges).unwrap()
}

fn dims(text: &str) -> Vec<usize> {
    text.split('x').map(|d| d.parse().unwrap()).collect()
}

/// The description in the first two columns of `data/ttnn_shards.txt`.
fn described(tensor: &str, memory: &str) -> TensorDesc {
    let [shape, dtype, layout] = tensor.split(' ').collect::<Vec<_>>()[..] else { panic!("{tensor}") };
    let [sharding, orientation, shard, grid] = memory.splitn(4, ' ').collect::<Vec<_>>()[..] else {
        panic!("{memory}")
    };
    let layout = match layout {
        "rows" => Layout::RowMajor,
        tile => Layout::Tile(TileShape::new(dims(tile)[0], dims(tile)[1]).unwrap()),
    };
    let sharding = match sharding {
        "height" => TensorMemoryLayout::HeightSharded,
        "width" => TensorMemoryLayout::WidthSharded,
        _ => TensorMemoryLayout::BlockSharded,
    };
    let by = if orientation == "row" { ShardOrientation::RowMajor } else { ShardOrientation::ColMajor };
    let shard = [dims(shard)[0] as u32, dims(shard)[1] as u32];
    let memory = sharded(sharding, rectangles(grid), shard, by);
    TensorDesc::new(dims(shape)).dtype(DType::of_name(dtype).unwrap()).layout(layout).memory(memory)
}

/// The pages of sharded tensors are where ttnn 0.81.1 puts them (`data/ttnn_shards.txt`, written by
/// `data/ttnn_shards.py`).
#[test]
fn pages_of_shards_are_where_ttnn_puts_them() {
    let lines: Vec<&str> = include_str!("data/ttnn_shards.txt").lines().collect();
    assert_eq!(lines.len(), 40);
    let grid = CoreGrid::new(BOARD);
    for line in lines {
        let columns: Vec<&str> = line.split(" : ").collect();
        let spec = TensorSpec::new(&described(columns[0], columns[1])).unwrap();
        let mut memory = MemorySpace::new(BOARD, &WORKER);
        let buffer = memory.alloc(&spec.buffer_config("x")).unwrap();
        let distance = buffer.aligned_page_size();
        assert_eq!(format!("{},{distance}", spec.page_size()), columns[2], "{line}");
        let places = (0..buffer.pages().get()).map(|page| {
            let place = buffer.place(page);
            let Bank::Core(tile) = place.bank else { panic!("page {page} in {}", place.bank) };
            let CoreCoord { x, y } = grid.core(tile).unwrap();
            format!("{x},{y},{}", (place.address.get() - buffer.address.get()) / u64::from(distance))
        });
        assert_eq!(places.collect::<Vec<_>>().join(" "), columns[3], "{line}");
    }
}
