//! Tensors in L1, interleaved and sharded, as a program states them: brought there and back by the
//! chip, read and written by the host.

use std::sync::Arc;

use crate::chip::common::build::{add, model, operation, program, tensor};
use tilework_abi::board::Board;
use tilework_engine::{Options, Session, Value};
use tilework_model::common::{BufferType, DataType};
use tilework_model::ttnn::ops::layout::ToMemoryConfigOp;
use tilework_model::ttnn::types::{
    CoreCoord, CoreRange, CoreRangeSet, MemoryConfig, ShardOrientation, ShardSpec, TensorMemoryLayout,
};
use tilework_model::ttnn::{Op, Operation, TensorRef};
use tilework_onchip::{Carried, OnChip};
use tilework_ops::{DType, Shape, Tensor};
use tilework_runtime::{Device, DeviceConfig};
use tilework_sim::{Chip, ChipConfig};

const ROWS: i32 = 128;
const COLUMNS: i32 = 192;

fn interleaved(buffer_type: BufferType) -> MemoryConfig {
    let tensor_memory_layout = TensorMemoryLayout::Interleaved;
    MemoryConfig { tensor_memory_layout, buffer_type, shard_spec: None, nd_shard_spec: None }
}

/// Shards of this shape on a rectangle of cores from one on.
fn sharded(
    tensor_memory_layout: TensorMemoryLayout,
    first: [u64; 2],
    grid: [u64; 2],
    shape: [i32; 2],
    orientation: ShardOrientation,
) -> MemoryConfig {
    let start_coord = CoreCoord { x: first[0], y: first[1] };
    let end_coord = CoreCoord { x: first[0] + grid[0] - 1, y: first[1] + grid[1] - 1 };
    let core_range_set = Some(CoreRangeSet { core_ranges: vec![CoreRange { start_coord, end_coord }] });
    let shard_spec = Some(ShardSpec { core_range_set, shape: shape.to_vec(), orientation });
    MemoryConfig { tensor_memory_layout, buffer_type: BufferType::L1, shard_spec, nd_shard_spec: None }
}

/// Interleaved; in rows, columns and blocks of whole tiles; a last column of shards that is not
/// full; blocks whose order is by columns.
fn forms() -> Vec<MemoryConfig> {
    use ShardOrientation::{ColMajor, RowMajor};
    use TensorMemoryLayout::{BlockSharded, HeightSharded, WidthSharded};
    vec![
        interleaved(BufferType::L1),
        sharded(HeightSharded, [0, 0], [4, 1], [32, COLUMNS], RowMajor),
        sharded(WidthSharded, [1, 2], [3, 1], [ROWS, 64], RowMajor),
        sharded(BlockSharded, [2, 1], [3, 2], [64, 64], RowMajor),
        sharded(BlockSharded, [0, 0], [2, 4], [32, 128], RowMajor),
        sharded(BlockSharded, [0, 0], [2, 3], [64, 64], ColMajor),
    ]
}

/// A tensor of bfloat16 in some memory.
fn placed(id: u32, memory: &MemoryConfig) -> TensorRef {
    let mut tensor = tensor(id, DataType::BFloat16, &[ROWS, COLUMNS]);
    Arc::make_mut(&mut tensor.desc).layout.memory_desc.memory_config = Some(memory.clone());
    tensor
}

fn to_memory(from: &TensorRef, memory: &MemoryConfig, out: &TensorRef) -> Operation {
    operation(Op::ToMemoryConfig(ToMemoryConfigOp {
        in0: from.clone(),
        memcfg: Some(memory.clone()),
        out: out.clone(),
    }))
}

fn values() -> Tensor {
    let numbers: Vec<i64> = (0..i64::from(ROWS * COLUMNS)).map(|n| n % 251 - 125).collect();
    Tensor::from_i64(DType::BF16, Shape::new([ROWS as usize, COLUMNS as usize]).unwrap(), &numbers).unwrap()
}

/// The first is taken from the host and the second given to it as they are; between them the sum
/// `x + x` is made in the second's memory.
#[test]
fn tensors_are_brought_to_programs_and_taken_back_exactly() {
    let dram = interleaved(BufferType::DRAM);
    for board in [Board::P100, Board::P150] {
        for from in forms() {
            for to in forms() {
                let [x, there, sum, back] = [(0, &from), (1, &to), (2, &to), (3, &dram)].map(|(id, m)| placed(id, m));
                let operations = vec![to_memory(&x, &to, &there), add(&x, &there, &sum), to_memory(&sum, &dram, &back)];
                let model = model(vec![program("main", &[&x], &[&sum, &back], operations)]);
                let chip = Chip::new(ChipConfig::new(board)).unwrap();
                let device = Device::open(chip, DeviceConfig::new(board)).unwrap();
                let mut session = Session::on(&model, Options::default(), OnChip::new(device, true)).unwrap();
                let x = values();
                let result = session.run(0, vec![Value::from(x.clone())], &mut ()).unwrap();
                let expected: Vec<f32> = x.to_f32().into_iter().map(|x| 2.0 * x).collect();
                for output in &result.outputs {
                    assert!(output.on(0).to_f32() == expected, "{}: {from:?} to {to:?}", board.name());
                }
                let records = session.machine().records();
                let by: Vec<_> = records.iter().map(|record| (&record.carried, record.moves())).collect();
                // Away from one memory and into another; two operands and a result; away.
                let first = if from == to { (&Carried::Moved, 0) } else { (&Carried::Chip, 2) };
                assert_eq!(by, [first, (&Carried::Chip, 3), (&Carried::Chip, 1)], "{from:?} to {to:?}");
            }
        }
    }
}

/// The last core of the first row has a part of the command queue.
#[test]
fn shards_that_the_device_cannot_have_are_in_dram_and_that_is_told() {
    let rows = sharded(TensorMemoryLayout::HeightSharded, [8, 0], [4, 1], [32, COLUMNS], ShardOrientation::RowMajor);
    let [x, sum] = [0, 1].map(|id| placed(id, &rows));
    let model = model(vec![program("main", &[&x], &[&sum], vec![add(&x, &x, &sum)])]);
    let chip = Chip::new(ChipConfig::new(Board::P100)).unwrap();
    let device = Device::open(chip, DeviceConfig::new(Board::P100)).unwrap();
    let mut session = Session::on(&model, Options::default(), OnChip::new(device, true)).unwrap();
    let result = session.run(0, vec![Value::from(values())], &mut ()).unwrap();
    assert!(result.outputs[0].on(0).to_f32() == values().to_f32().into_iter().map(|x| 2.0 * x).collect::<Vec<_>>());
    let displaced: Vec<_> = session.machine().displaced().iter().collect();
    assert!(displaced.len() == 2 && displaced.iter().all(|(_, why)| why.contains("is no worker")), "{displaced:?}");
    assert_eq!(session.machine().records()[0].moves(), 0);
}
