//! What all families ask of tiled tensors.

use tilework_model::common::MathFidelity;
use tilework_model::ttnn::ops::fused::DeviceComputeKernelConfig;
use tilework_ops::DType;
use tilework_runtime::memory::{BufferType, TensorMemoryLayout};
use tilework_runtime::tensor::{Layout, TensorSpec};

/// Half of Dst in tiles of 16 bits, and of 32: what math fills while pack empties the other half.
pub(super) const DST_TILES: u32 = 8;
pub(super) const WIDE_DST_TILES: u32 = 4;

/// A tensor of tiles of 32 by 32, interleaved over DRAM: `Ok` with its rows and columns of tiles,
/// all matrices one below the other.
pub(super) fn in_dram(spec: &TensorSpec) -> Result<[u32; 2], String> {
    interleaved(spec)?;
    if spec.layout() != Layout::TILE {
        return Err("a tensor that is not of tiles of 32x32".into());
    }
    Ok(spec.shape_in_pages())
}

/// A tensor interleaved over DRAM.
pub(super) fn interleaved(spec: &TensorSpec) -> Result<(), String> {
    let memory = spec.memory();
    if memory.memory_layout != TensorMemoryLayout::Interleaved {
        return Err("a sharded tensor".into());
    }
    if memory.buffer_type != BufferType::Dram {
        return Err("a tensor in L1".into());
    }
    Ok(())
}

/// The number of a format for the library of compute kernels (`Format`).
pub(super) fn format(dtype: DType) -> Result<u32, String> {
    Ok(match dtype {
        DType::F32 => 0,
        DType::BF16 => 5,
        DType::Bfp8B => 6,
        DType::I32 => 8,
        DType::U16 => 9,
        DType::U32 => 24,
        DType::U8 => 30,
        other => return Err(format!("elements of type {}", other.name())),
    })
}

/// Phases of a product.
pub(super) fn phases(config: Option<&DeviceComputeKernelConfig>) -> u32 {
    match config.and_then(|config| config.math_fidelity) {
        Some(MathFidelity::LoFi) => 1,
        Some(MathFidelity::HiFi2) => 2,
        Some(MathFidelity::HiFi3) => 3,
        Some(MathFidelity::HiFi4) | None => 4,
    }
}
