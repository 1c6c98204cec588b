//! Collective operations between chips of one process, against host arithmetic.

use std::sync::Arc;

use crate::chip::common::build::{add, f32, model, on_host, operation, program, values};
use tilework_abi::board::Board;
use tilework_engine::{Engine, Options, Session, Value};
use tilework_model::common::Dim2d;
use tilework_model::ttnn::ops::ccl::{
    AggregateTensorOp, AllGatherOp, AllReduceOp, DistributeTensorOp, MeshPartitionOp, PointToPointOp, ReduceScatterOp,
};
use tilework_model::ttnn::types::{MeshComposerConfig, MeshMapperConfig, Placement, PlacementType, ShardStatus};
use tilework_model::ttnn::{Op, Operation, TensorRef};
use tilework_onchip::{Carried, Chips, OnChip, Record};
use tilework_ops::Tensor;
use tilework_runtime::{Device, DeviceConfig};
use tilework_sim::{Chip, ChipConfig};

const DEVICES: usize = 4;

fn chip() -> OnChip<Chip> {
    let board = Board::P100;
    let chip = Chip::new(ChipConfig::new(board)).unwrap();
    OnChip::new(Device::open(chip, DeviceConfig::new(board)).unwrap(), true)
}

/// Runs operations on a mesh of 2 by 2 chips and by host arithmetic, which must give the same on
/// each device; gives what became of the operations on the last chip.
fn same(inputs: &[&TensorRef], out: &TensorRef, operations: Vec<Operation>, given: &Value) -> Vec<Record> {
    let mut of = program("main", inputs, &[out], operations);
    of.mesh_shape = Some(Dim2d { y: 2, x: 2 });
    let model = model(vec![of]);
    let native = Engine::native(Options::default()).session(&model).unwrap().run(0, vec![given.clone()], &mut ());
    let chips = Chips::new(chip(), (1..DEVICES).map(|_| chip()).collect());
    let mut session = Session::on(&model, Options::default(), chips).unwrap();
    let found = session.run(0, vec![given.clone()], &mut ()).unwrap_or_else(|error| panic!("{error}"));
    let each = |value: &Value| (0..DEVICES).map(|device| value.on(device).to_f32()).collect::<Vec<_>>();
    assert_eq!(each(&found.outputs[0]), each(&native.unwrap().outputs[0]));
    session.machine().all().last().unwrap().records().to_vec()
}

/// A matrix for each device.
fn numbered() -> Value {
    let of = |device: usize| values(&[4, 6], &(0..24).map(|n| (100 * device + n) as f32).collect::<Vec<_>>());
    Value::shards((0..DEVICES).map(of).collect()).unwrap()
}

/// One collective operation: read on each chip and written to each, and nothing computed.
fn collective(out: &[i32], op: impl FnOnce(TensorRef, TensorRef) -> Op) {
    let (input, out) = (f32(0, &[4, 6]), f32(9, out));
    let records = same(&[&input], &out, vec![operation(op(input.clone(), out.clone()))], &numbered());
    let [record] = &records[..] else { panic!("{records:?}") };
    assert_eq!(record.carried, Carried::Exchanged);
    let names: Vec<_> = record.stages.iter().map(|stage| stage.name.as_str()).collect();
    assert_eq!(names, ["read", "write"]);
    assert!(record.read > 0 && record.written > 0 && record.cycles() > 0 && record.busy() == 0, "{record:?}");
}

#[test]
fn devices_gather_reduce_scatter_and_send() {
    let (sub_device_id, memory_config, num_links, topology) = (None, None, None, None);
    for (cluster_axis, shape) in [(0, [8, 6]), (1, [8, 6])] {
        collective(&shape, |input, out| {
            let all_gather_dim = 0;
            Op::AllGather(AllGatherOp {
                input,
                out,
                all_gather_dim,
                cluster_axis,
                sub_device_id,
                memory_config: memory_config.clone(),
                num_links,
                topology,
            })
        });
        collective(&[4, 6], |input, out| {
            let reduce_type = 0;
            let memory_config = memory_config.clone();
            Op::AllReduce(AllReduceOp {
                input,
                out,
                reduce_type,
                cluster_axis,
                sub_device_id,
                memory_config,
                num_links,
                topology,
            })
        });
        collective(&[4, 3], |input, out| {
            Op::ReduceScatter(ReduceScatterOp {
                input,
                out,
                scatter_dim: 1,
                reduce_type: 0,
                cluster_axis,
                sub_device_id,
                memory_config: memory_config.clone(),
                num_links,
                topology,
                compute_config: None,
            })
        });
    }
    collective(&[2, 6], |input, out| {
        Op::MeshPartition(MeshPartitionOp { input, out, dim: 0, cluster_axis: Some(1), memory_config: None })
    });
    collective(&[4, 6], |input, out| {
        let (sender_coord, receiver_coord) = (vec![0, 1], vec![1, 0]);
        Op::PointToPoint(PointToPointOp { input, out, sender_coord, receiver_coord, optional_output_tensor: None })
    });
}

#[test]
fn a_tensor_is_spread_over_chips_and_put_together() {
    let (mut whole, result) = (on_host(f32(0, &[4, 6])), on_host(f32(9, &[4, 6])));
    Arc::make_mut(&mut whole.desc).shard_status = ShardStatus::Unsharded;
    let [part, sum] = [1, 2].map(|id| f32(id, &[2, 3]));
    let shard = |dim| Placement { kind: PlacementType::Shard, dim };
    let mapper_config =
        Some(MeshMapperConfig { placements: vec![shard(0), shard(1)], mesh_shape_override: Vec::new() });
    let spread =
        DistributeTensorOp { input: whole.clone(), out: part.clone(), mapper_config, device: None, cq_id: None };
    let composer_config = Some(MeshComposerConfig { dims: vec![0, 1], mesh_shape_override: Vec::new() });
    let together = AggregateTensorOp { input: sum.clone(), out: result.clone(), composer_config, device: None };
    let operations = vec![
        operation(Op::DistributeTensor(spread)),
        add(&part, &part, &sum),
        operation(Op::AggregateTensor(together)),
    ];
    let given = Value::from(values(&[4, 6], &(0..24).map(|n| n as f32).collect::<Vec<_>>()));
    let records = same(&[&whole], &result, operations, &given);
    let by: Vec<_> = records.iter().map(|record| record.carried.clone()).collect();
    assert_eq!(by, [Carried::Exchanged, Carried::Chip, Carried::Exchanged]);
}

/// What is the same on all devices is on every chip, so that it need not be sent before it is used.
#[test]
fn replicas_are_on_every_chip() {
    let (mut x, sum) = (f32(0, &[4, 6]), f32(9, &[4, 6]));
    Arc::make_mut(&mut x.desc).shard_status = ShardStatus::Unsharded;
    let given = Value::same(Tensor::clone(numbered().on(2)));
    let records = same(&[&x], &sum, vec![add(&x, &x, &sum)], &given);
    assert!(records.len() == 1 && records[0].carried == Carried::Chip, "{records:?}");
}
