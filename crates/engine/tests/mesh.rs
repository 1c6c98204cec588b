//! Tensors spread over the devices of a mesh.

use std::sync::Arc;

use crate::common::build::{add, f32, list, model, on_host, operation, program, values};
use tilework_engine::{Engine, Options, RunResult, Value};
use tilework_model::common::Dim2d;
use tilework_model::ttnn::ops::ccl::{
    AggregateTensorOp, AllGatherOp, AllReduceOp, DistributeTensorOp, MeshPartitionOp, PointToPointOp, ReduceScatterOp,
};
use tilework_model::ttnn::types::{MeshComposerConfig, MeshMapperConfig, Placement, PlacementType, ShardStatus};
use tilework_model::ttnn::{Op, Operation, TensorRef};
use tilework_ops::Tensor;

/// Runs one operation on a mesh of 2 rows and 3 columns.
fn on_mesh(inputs: &[&TensorRef], out: &TensorRef, operations: Vec<Operation>, given: Vec<Value>) -> RunResult {
    let mut of = program("main", inputs, &[out], operations);
    of.mesh_shape = Some(Dim2d { y: 2, x: 3 });
    let model = model(vec![of]);
    let mut session = Engine::native(Options::default()).session(&model).unwrap();
    session.run(0, given, &mut ()).unwrap_or_else(|error| panic!("{error}"))
}

/// A vector of two for each device: ten times its number, and 1 more.
fn numbered() -> Value {
    let of = |device: usize| values(&[2], &[10.0 * device as f32, 10.0 * device as f32 + 1.0]);
    Value::shards((0..6).map(of).collect()).unwrap()
}

fn each(value: &Value) -> Vec<Vec<f32>> {
    value.tensors().map(Tensor::to_f32).collect()
}

fn collective(out_length: i32, op: impl FnOnce(TensorRef, TensorRef) -> Op) -> Vec<Vec<f32>> {
    let (input, out) = (f32(0, &[2]), f32(9, &[out_length]));
    let operations = vec![operation(op(input.clone(), out.clone()))];
    each(&on_mesh(&[&input], &out, operations, vec![numbered()]).outputs[0])
}

fn reduced(reduce_type: u32, cluster_axis: u32) -> Vec<Vec<f32>> {
    collective(2, |input, out| {
        Op::AllReduce(AllReduceOp {
            input,
            out,
            reduce_type,
            cluster_axis,
            sub_device_id: None,
            memory_config: None,
            num_links: None,
            topology: None,
        })
    })
}

#[test]
fn a_tensor_is_spread_computed_on_and_put_together() {
    // 4 rows go to 2 rows of devices, 3 columns to 3 columns of devices.
    let (mut whole, result) = (on_host(f32(0, &[4, 3])), on_host(f32(9, &[4, 3])));
    Arc::make_mut(&mut whole.desc).shard_status = ShardStatus::Unsharded;
    let [part, sum] = [1, 2].map(|id| f32(id, &[2, 1]));
    let shard = |dim| Placement { kind: PlacementType::Shard, dim };
    let spread = DistributeTensorOp {
        input: whole.clone(),
        out: part.clone(),
        mapper_config: Some(MeshMapperConfig { placements: vec![shard(0), shard(1)], mesh_shape_override: Vec::new() }),
        device: None,
        cq_id: None,
    };
    let together = AggregateTensorOp {
        input: sum.clone(),
        out: result.clone(),
        composer_config: Some(MeshComposerConfig { dims: vec![0, 1], mesh_shape_override: Vec::new() }),
        device: None,
    };
    let operations = vec![
        operation(Op::DistributeTensor(spread)),
        add(&part, &part, &sum),
        operation(Op::AggregateTensor(together)),
    ];
    let numbers: Vec<f32> = (0..12).map(|n| n as f32).collect();
    let outputs = on_mesh(&[&whole], &result, operations, vec![values(&[4, 3], &numbers).into()]).outputs;
    assert_eq!(outputs[0].single().unwrap().to_f32(), numbers.iter().map(|n| 2.0 * n).collect::<Vec<_>>());
}

#[test]
fn devices_of_a_row_or_a_column_gather() {
    let gathered = |cluster_axis, length| {
        collective(length, |input, out| {
            Op::AllGather(AllGatherOp {
                input,
                out,
                all_gather_dim: 0,
                cluster_axis,
                sub_device_id: None,
                memory_config: None,
                num_links: None,
                topology: None,
            })
        })
    };
    let row = |first: f32| vec![first, first + 1.0, first + 10.0, first + 11.0, first + 20.0, first + 21.0];
    assert_eq!(gathered(1, 6), [row(0.0), row(0.0), row(0.0), row(30.0), row(30.0), row(30.0)]);
    let column = |first: f32| vec![first, first + 1.0, first + 30.0, first + 31.0];
    let columns = [column(0.0), column(10.0), column(20.0)];
    assert_eq!(gathered(0, 4), [columns.clone(), columns].concat());
}

#[test]
fn devices_of_a_row_or_a_column_reduce() {
    let [sum, mean, max] = [0, 1, 2];
    assert_eq!(reduced(sum, 1), [vec![vec![30.0, 33.0]; 3], vec![vec![120.0, 123.0]; 3]].concat());
    assert_eq!(reduced(mean, 1), [vec![vec![10.0, 11.0]; 3], vec![vec![40.0, 41.0]; 3]].concat());
    let columns = [vec![30.0, 31.0], vec![40.0, 41.0], vec![50.0, 51.0]];
    assert_eq!(reduced(max, 0), [columns.clone(), columns].concat());
}

#[test]
fn devices_keep_their_part_of_a_sum_or_of_their_own() {
    let scattered = collective(1, |input, out| {
        Op::ReduceScatter(ReduceScatterOp {
            input,
            out,
            scatter_dim: 0,
            reduce_type: 0,
            cluster_axis: 0,
            sub_device_id: None,
            memory_config: None,
            num_links: None,
            topology: None,
            compute_config: None,
        })
    });
    assert_eq!(scattered, [[30.0], [50.0], [70.0], [32.0], [52.0], [72.0]]);
    let kept = collective(1, |input, out| {
        Op::MeshPartition(MeshPartitionOp { input, out, dim: 0, cluster_axis: Some(0), memory_config: None })
    });
    assert_eq!(kept, [[0.0], [10.0], [20.0], [31.0], [41.0], [51.0]]);
}

#[test]
fn one_device_sends_to_another() {
    let sent = collective(2, |input, out| {
        let (sender_coord, receiver_coord) = (vec![1, 2], vec![0, 1]);
        Op::PointToPoint(PointToPointOp { input, out, sender_coord, receiver_coord, optional_output_tensor: None })
    });
    let mut expected = each(&numbered());
    expected[1] = expected[5].clone();
    assert_eq!(sent, expected);
}

#[test]
fn a_tensor_of_other_devices_is_refused() {
    let (input, out) = (f32(0, &[2]), f32(9, &[2]));
    let model = model(vec![program("main", &[&input], &[&out], vec![add(&input, &input, &out)])]);
    let mut session = Engine::native(Options::default()).session(&model).unwrap();
    let error = session.run(0, vec![numbered()], &mut ()).unwrap_err();
    assert!(error.to_string().ends_with("input 0: 6 shards for 1 devices"), "{error}");
    assert_eq!(list(&[&input]).len(), 1);
}

/// What a program on a mesh of `rows` by `columns`, whose input is cut by the caller, makes of it.
fn doubled(rows: i32, columns: i32, given: Value) -> Result<Vec<Vec<f32>>, String> {
    let (input, out) = (f32(0, &[2, 2]), f32(9, &[2, 2]));
    let mut of = program("main", &[&input], &[&out], vec![add(&input, &input, &out)]);
    of.mesh_shape = Some(Dim2d { y: rows, x: columns });
    let model = model(vec![of]);
    let mut session = Engine::native(Options::default()).session(&model).unwrap();
    assert!(session.inputs(0).unwrap()[0].sharded);
    session.run(0, vec![given], &mut ()).map(|ran| each(&ran.outputs[0])).map_err(|error| error.to_string())
}

#[test]
fn a_whole_input_is_split_if_its_shape_leaves_no_choice() {
    let numbers: Vec<f32> = (0..8).map(|n| n as f32).collect();
    let rows = doubled(1, 2, values(&[4, 2], &numbers).into()).unwrap();
    assert_eq!(rows, [[0.0, 2.0, 4.0, 6.0], [8.0, 10.0, 12.0, 14.0]]);
    let columns = doubled(2, 1, values(&[2, 4], &numbers).into()).unwrap();
    assert_eq!(columns, [[0.0, 2.0, 8.0, 10.0], [4.0, 6.0, 12.0, 14.0]]);
    let several = doubled(2, 2, values(&[4, 2], &numbers).into()).unwrap_err();
    assert!(several.contains("input 0: shape [4x2] gives parts of shape [2x2] in several ways"), "{several}");
    let none = doubled(1, 2, values(&[3, 2], &numbers[..6]).into()).unwrap_err();
    assert!(none.contains("input 0: no split of shape [3x2] over 1 by 2 devices gives parts of shape [2x2]"), "{none}");
}

#[test]
fn a_part_is_given_to_all_devices_only_if_the_caller_says_so() {
    let part = values(&[2, 2], &[1.0, 2.0, 3.0, 4.0]);
    let error = doubled(1, 2, part.clone().into()).unwrap_err();
    assert!(error.contains("input 0: shape [2x2] is that of one device's part, and there are 2 devices"), "{error}");
    let same = doubled(1, 2, Value::shards(vec![part.clone(), part]).unwrap()).unwrap();
    assert_eq!(same, vec![vec![2.0, 4.0, 6.0, 8.0]; 2]);
}
