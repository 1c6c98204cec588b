//! Models made in memory: the types of a file are plain structures.

use std::sync::Arc;

use tilework_model::bytes::Bytes;
use tilework_model::common::{DataType, Dim2d, OOBVal};
use tilework_model::schema::Edition;
use tilework_model::ttnn::ops::control::FuncCallOp;
use tilework_model::ttnn::ops::creation::FullOp;
use tilework_model::ttnn::ops::eltwise::{EltwiseBinaryOp, EltwiseBinaryOpType};
use tilework_model::ttnn::ops::layout::DeallocateOp;
use tilework_model::ttnn::types::{
    FloatingPointType, LayoutDesc, MemoryDesc, NumberType, ShardStatus, StorageType, TensorDesc,
};
use tilework_model::ttnn::{Op, Operation, Program, TTNNBinary, TensorRef};
use tilework_model::{Contents, Model};
use tilework_ops::{Shape, Tensor};

/// A float32 tensor on the device.
pub(crate) fn f32(id: u32, shape: &[i32]) -> TensorRef {
    tensor(id, DataType::Float32, shape)
}

/// A tensor on the device.
pub(crate) fn tensor(id: u32, data_type: DataType, shape: &[i32]) -> TensorRef {
    let tile_shape = Dim2d { y: 32, x: 32 };
    let memory_desc = MemoryDesc { storage_type: StorageType::Device, tile_shape, data_type, memory_config: None };
    let desc = TensorDesc {
        shape: shape.to_vec(),
        mesh_shape: vec![1, 1],
        layout: LayoutDesc { oob_val: OOBVal::Undef, memory_desc },
        shard_status: ShardStatus::Presharded,
        local_shape: Vec::new(),
    };
    TensorRef { global_id: id, desc: Arc::new(desc) }
}

/// The same on the host.
pub(crate) fn on_host(mut tensor: TensorRef) -> TensorRef {
    Arc::make_mut(&mut tensor.desc).layout.memory_desc.storage_type = StorageType::Host;
    tensor
}

pub(crate) fn operation(op: Op) -> Operation {
    Operation { op, debug_info: String::new(), loc_info: "loc(\"here\")".to_owned() }
}

pub(crate) fn binary(kind: EltwiseBinaryOpType, lhs: &TensorRef, rhs: &TensorRef, out: &TensorRef) -> Operation {
    operation(Op::EltwiseBinary(EltwiseBinaryOp {
        kind,
        lhs: lhs.clone(),
        rhs: rhs.clone(),
        output_dtype: None,
        memory_config: None,
        activations: Vec::new(),
        input_tensor_a_activations: Vec::new(),
        input_tensor_b_activations: Vec::new(),
        out: out.clone(),
    }))
}

pub(crate) fn add(lhs: &TensorRef, rhs: &TensorRef, out: &TensorRef) -> Operation {
    binary(EltwiseBinaryOpType::Add, lhs, rhs, out)
}

pub(crate) fn multiply(lhs: &TensorRef, rhs: &TensorRef, out: &TensorRef) -> Operation {
    binary(EltwiseBinaryOpType::Multiply, lhs, rhs, out)
}

pub(crate) fn full(value: f32, out: &TensorRef) -> Operation {
    operation(Op::Full(FullOp {
        device: None,
        shape: out.desc.shape.iter().map(|&n| i64::from(n)).collect(),
        fill_value: NumberType::FP(FloatingPointType { value }),
        dtype: None,
        layout: None,
        memcfg: None,
        out: out.clone(),
    }))
}

pub(crate) fn deallocate(input: &TensorRef) -> Operation {
    operation(Op::Deallocate(DeallocateOp { input: input.clone(), force: false }))
}

pub(crate) fn call(program_id: u32, inputs: &[&TensorRef], outputs: &[&TensorRef]) -> Operation {
    operation(Op::FuncCall(FuncCallOp {
        program_id,
        inputs: list(inputs),
        outputs: list(outputs),
        semaphore_inputs: Vec::new(),
    }))
}

pub(crate) fn list(tensors: &[&TensorRef]) -> Vec<TensorRef> {
    tensors.iter().map(|&tensor| tensor.clone()).collect()
}

pub(crate) fn program(
    name: &str,
    inputs: &[&TensorRef],
    outputs: &[&TensorRef],
    operations: Vec<Operation>,
) -> Program {
    Program {
        name: name.to_owned(),
        inputs: list(inputs),
        outputs: list(outputs),
        operations,
        dylibs: Vec::new(),
        debug_info: None,
        private: false,
        mesh_shape: None,
        semaphore_inputs: Vec::new(),
    }
}

pub(crate) fn model(programs: Vec<Program>) -> Model {
    let contents = Contents::Ttnn(TTNNBinary {
        version: None,
        schema_hash: String::new(),
        ttmlir_git_hash: String::new(),
        system_desc: None,
        mlir: None,
        programs,
    });
    let file = Some("test.ttnn".into());
    Model { file, size: 0, schema_name: None, edition: Edition::default(), contents }
}

pub(crate) fn values(shape: &[usize], values: &[f32]) -> Tensor {
    Tensor::new(Shape::new(shape).unwrap(), values.to_vec()).unwrap()
}

/// Empty bytes: other crates cannot construct any others.
pub(crate) fn no_bytes() -> Bytes {
    Bytes::default()
}
