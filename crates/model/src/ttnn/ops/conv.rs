//! Convolutions, and the preparation of their weights.
//!
//! Source: `TTNN/operations/conv.fbs` of the schema ([`crate::schema`]).
//! Tables repeat each other's fields as they do there: the order of a table's fields is its layout.

use crate::common::{DataType, DeviceRef, TensorLayout};
use crate::flat::declare::{enums, tables};
use crate::ttnn::ops::fused::{DeviceComputeKernelConfig, UnaryWithParam};
use crate::ttnn::types::{CoreCoord, CoreRangeSet, MemoryConfig, TensorMemoryLayout, TensorRef};

enums! {
    /// The dimension along which a convolution is sliced when it does not fit into L1.
    Conv2dSliceType: u16 { DramHeight, DramWidth, L1Full }
}

tables! {
    /// Blocking and sharding of a convolution.
    Conv2dConfig {
        weights_dtype: Option<DataType>, activation: Option<UnaryWithParam>,
        deallocate_activation: Option<bool>, reallocate_halo_output: Option<bool>,
        act_block_h_override: Option<u32>, act_block_w_div: Option<u32>, reshard_if_not_optimal: Option<bool>,
        override_sharding_config: Option<bool>, shard_layout: Option<TensorMemoryLayout>,
        core_grid: Option<CoreRangeSet>, transpose_shards: Option<bool>, output_layout: Option<TensorLayout>,
        enable_act_double_buffer: Option<bool>, enable_weights_double_buffer: Option<bool>,
        enable_kernel_stride_folding: Option<bool>, config_tensors_in_dram: Option<bool>,
    }

    /// How a convolution is sliced when it does not fit into L1.
    Conv2dSliceConfig { slice_type: Conv2dSliceType, num_slices: u32 }

    /// Blocking of a three-dimensional convolution.
    Conv3dConfig {
        weights_dtype: Option<DataType>, t_out_block: Option<u32>, w_out_block: Option<u32>,
        h_out_block: Option<u32>, c_out_block: Option<u32>, c_in_block: Option<u32>,
        compute_with_storage_grid_size: Option<CoreCoord>,
    }

    /// Converts the weights of a [`Conv2dOp`] to the layout of its kernels.
    PrepareConv2dWeightsOp {
        weight_tensor: TensorRef, out: TensorRef as out, input_memory_config: Option<MemoryConfig>,
        input_tensor_layout: TensorLayout, weights_format: String, in_channels: u32, out_channels: u32,
        batch_size: u32, input_height: u32, input_width: u32, kernel_size: Vec<i32>, stride: Vec<i32>,
        padding: Vec<i32>, dilation: Vec<i32>, has_bias: bool, groups: u32, device: Option<DeviceRef>,
        input_dtype: DataType, output_dtype: Option<DataType>, conv2d_config: Option<Conv2dConfig>,
        compute_config: Option<DeviceComputeKernelConfig>, conv2d_slice_config: Option<Conv2dSliceConfig>,
    }

    /// Converts the bias of a [`Conv2dOp`] to the layout of its kernels.
    PrepareConv2dBiasOp {
        bias_tensor: TensorRef, out: TensorRef as out, input_memory_config: Option<MemoryConfig>,
        input_tensor_layout: TensorLayout, in_channels: u32, out_channels: u32, batch_size: u32,
        input_height: u32, input_width: u32, kernel_size: Vec<i32>, stride: Vec<i32>, padding: Vec<i32>,
        dilation: Vec<i32>, groups: u32, device: Option<DeviceRef>, input_dtype: DataType,
        output_dtype: Option<DataType>, conv2d_config: Option<Conv2dConfig>,
        compute_config: Option<DeviceComputeKernelConfig>, conv2d_slice_config: Option<Conv2dSliceConfig>,
    }

    /// Converts the weights of a [`Conv3dOp`] to the layout of its kernels.
    PrepareConv3dWeightsOp {
        weight_tensor: TensorRef, out: TensorRef as out, groups: u32, c_in_block: u32, alignment: u32,
        device: Option<DeviceRef>,
    }

    /// Converts the weights of a [`ConvTranspose2dOp`] to the layout of its kernels.
    PrepareConvTranspose2dWeightsOp {
        weight_tensor: TensorRef, out: TensorRef as out, input_memory_config: Option<MemoryConfig>,
        input_tensor_layout: TensorLayout, weights_format: String, in_channels: u32, out_channels: u32,
        batch_size: u32, input_height: u32, input_width: u32, kernel_size: Vec<i32>, stride: Vec<i32>,
        padding: Vec<i32>, output_padding: Vec<i32>, dilation: Vec<i32>, has_bias: bool, groups: u32,
        device: Option<DeviceRef>, input_dtype: DataType, output_dtype: Option<DataType>,
        conv2d_config: Option<Conv2dConfig>, compute_config: Option<DeviceComputeKernelConfig>,
        conv2d_slice_config: Option<Conv2dSliceConfig>, mirror_kernel: bool = true,
    }

    /// Converts the bias of a [`ConvTranspose2dOp`] to the layout of its kernels.
    PrepareConvTranspose2dBiasOp {
        bias_tensor: TensorRef, out: TensorRef as out, input_memory_config: Option<MemoryConfig>,
        input_tensor_layout: TensorLayout, in_channels: u32, out_channels: u32, batch_size: u32,
        input_height: u32, input_width: u32, kernel_size: Vec<i32>, stride: Vec<i32>, padding: Vec<i32>,
        dilation: Vec<i32>, groups: u32, device: Option<DeviceRef>, input_dtype: DataType,
        output_dtype: Option<DataType>, conv2d_config: Option<Conv2dConfig>,
        compute_config: Option<DeviceComputeKernelConfig>, conv2d_slice_config: Option<Conv2dSliceConfig>,
    }

    /// Convolution over one dimension.
    Conv1dOp {
        input: TensorRef, weight: TensorRef, bias: Option<TensorRef>, out: TensorRef as out,
        device: Option<DeviceRef>, in_channels: u32, out_channels: u32, batch_size: u32, input_length: u32,
        kernel_size: u32, stride: u32, padding: Vec<i32>, dilation: u32, groups: u32,
        output_dtype: Option<DataType>, conv2d_config: Option<Conv2dConfig>,
        compute_config: Option<DeviceComputeKernelConfig>, conv2d_slice_config: Option<Conv2dSliceConfig>,
    }

    /// Convolution over two dimensions. Input and output are `(1, 1, N*H*W, C)`, the weight is
    /// `OIHW`; the padding is top, bottom, left, right or height, width.
    Conv2dOp {
        input: TensorRef, weight: TensorRef, bias: Option<TensorRef>, out: TensorRef as out,
        device: Option<DeviceRef>, in_channels: u32, out_channels: u32, batch_size: u32, input_height: u32,
        input_width: u32, kernel_size: Vec<i32>, stride: Vec<i32>, padding: Vec<i32>, dilation: Vec<i32>,
        groups: u32, output_dtype: Option<DataType>, conv2d_config: Option<Conv2dConfig>,
        compute_config: Option<DeviceComputeKernelConfig>, conv2d_slice_config: Option<Conv2dSliceConfig>,
    }

    /// Transposed convolution over two dimensions, shaped as [`Conv2dOp`].
    ConvTranspose2dOp {
        input: TensorRef, weight: TensorRef, bias: Option<TensorRef>, out: TensorRef as out,
        device: Option<DeviceRef>, in_channels: u32, out_channels: u32, batch_size: u32, input_height: u32,
        input_width: u32, kernel_size: Vec<i32>, stride: Vec<i32>, padding: Vec<i32>, output_padding: Vec<i32>,
        dilation: Vec<i32>, groups: u32, output_dtype: Option<DataType>, conv2d_config: Option<Conv2dConfig>,
        compute_config: Option<DeviceComputeKernelConfig>, memory_config: Option<MemoryConfig>,
        conv2d_slice_config: Option<Conv2dSliceConfig>,
    }

    /// Convolution over three dimensions.
    Conv3dOp {
        input: TensorRef, weight: TensorRef, bias: Option<TensorRef>, out: TensorRef as out,
        device: Option<DeviceRef>, in_channels: u32, out_channels: u32, batch_size: u32, input_depth: u32,
        input_height: u32, input_width: u32, kernel_size: Vec<i32>, stride: Vec<i32>, padding: Vec<i32>,
        padding_mode: String, groups: u32, output_dtype: Option<DataType>, conv3d_config: Option<Conv3dConfig>,
        compute_config: Option<DeviceComputeKernelConfig>, memory_config: Option<MemoryConfig>,
        dilation: Vec<i32> [if conv3d_dilation],
    }
}
