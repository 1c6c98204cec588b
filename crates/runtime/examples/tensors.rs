//! Tensors on a simulated chip: a matrix to DRAM, to the L1 of all workers, and in shards to some
//! of them, and back:
//!
//!     cargo run --release -p tilework-runtime --example tensors
//!
//! Prints what each tensor is in memory and how many cycles its way there and back took.

use std::error::Error;
use tilework_abi::board::Board;
use tilework_runtime::memory::{ShardOrientation, ShardSpec, TensorMemoryLayout};
use tilework_runtime::tensor::{HostTensor, Layout, MemoryConfig, TensorDesc};
use tilework_runtime::{BufferType, CoreCoord, CoreRange, CoreRangeSet, DType, Device, DeviceConfig};
use tilework_sim::{Chip, ChipConfig};

fn main() -> Result<(), Box<dyn Error>> {
    let board = Board::P100;
    let mut device = Device::open(Chip::new(ChipConfig::new(board))?, DeviceConfig::new(board))?;
    let shape = [250, 500];
    // Whole numbers below 256, which bfloat16 holds.
    let values: Vec<f32> = (0..shape[0] * shape[1]).map(|i| (i % 251) as f32).collect();
    let array = HostTensor::from_values(&shape, &values)?;

    // Blocks of 64 x 128 on four by four cores; those at the edges are smaller.
    let grid = CoreRangeSet::new([CoreRange::new(CoreCoord::new(0, 0), CoreCoord::new(3, 3))])?;
    let spec = ShardSpec { grid, shape: [64, 128], orientation: ShardOrientation::RowMajor };
    let blocks = MemoryConfig::sharded(TensorMemoryLayout::BlockSharded, BufferType::L1, spec);
    let tensors = [
        ("bfloat16 tiles in DRAM", TensorDesc::new(shape)),
        ("float32 rows in DRAM", TensorDesc::new(shape).dtype(DType::F32).layout(Layout::RowMajor)),
        ("bfp8 tiles in L1", TensorDesc::new(shape).dtype(DType::Bfp8B).memory(MemoryConfig::L1)),
        ("bfloat16 tiles in shards", TensorDesc::new(shape).memory(blocks)),
    ];
    for (what, desc) in tensors {
        let before = device.statistics();
        let tensor = device.create_tensor(what, &desc)?;
        device.write_tensor(&tensor, &array)?;
        let back = device.read_tensor_as(&tensor, DType::F32)?;
        let same = back == array;
        let cycles = device.statistics().since(&before).chip.map(|counts| counts.cycles);
        let (pages, bytes) = (tensor.spec.pages(), tensor.spec.page_size());
        let first = tensor.buffer.place(0);
        println!(
            "{what}: {pages} pages of {bytes} bytes, the first at {} of {}; {} cycles; {}",
            first.address,
            first.bank,
            cycles.unwrap_or_default(),
            if same { "all elements came back" } else { "elements lost their last bits" }
        );
        device.free_tensor(&tensor)?;
    }
    Ok(())
}
