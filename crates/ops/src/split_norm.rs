//! Normalisations of rows that lie on several devices, in two steps with a gather between them:
//! `ttnn`'s `layer_norm_pre_all_gather`, `layer_norm_post_all_gather`, `rms_norm_pre_all_gather`,
//! and `distributed_rms_norm`, which is all of it in one (tt-mlir `normalization.fbs`).
//!
//! The first step computes each row's statistics in tiles of 32 columns, of which the first holds a
//! value and the others are zero: the sum of squares and then the sum for a layer norm (raw sums,
//! not means), the mean of squares for an RMS norm. Gathered along the last dimension, the tiles of
//! all devices are side by side.

use crate::error::{OpError, Reason, Within};
use crate::layout::TILE;
use crate::mesh::Mesh;
use crate::norm::Affine;
use crate::produce;
use crate::tensor::Tensor;
use crate::view::{Lane, View};
use crate::{DType, math};

/// Statistics of each row in `tiles` tiles; `f` writes the first column of each.
fn statistics(
    op: &'static str,
    input: &Tensor,
    residual: Option<&Tensor>,
    tiles: usize,
    out: DType,
    f: impl Fn(&[f32], &mut [f32]) + Sync,
) -> Result<Tensor, OpError> {
    if let Some(r) = residual.filter(|r| r.shape() != input.shape()) {
        return Err(Reason::shape(r.shape(), input.shape().to_string()).of(op, &[input, r]));
    }
    let last = input.shape().rank().saturating_sub(1);
    let shape = input.shape().with(last, tiles * TILE).within(op, &[input])?;
    let length = input.shape().last();
    let view = View::contiguous(input.shape());
    Ok(produce::floats(shape, out, tiles * TILE, |start, values| {
        let mut row = vec![0f32; length];
        let mut addend = vec![0f32; length];
        for (i, result) in values.chunks_mut(tiles * TILE).enumerate() {
            let at = (start / (tiles * TILE) + i) * length;
            f32::load(input, &view, at, &mut row);
            if let Some(residual) = residual {
                f32::load(residual, &view, at, &mut addend);
                row.iter_mut().zip(&addend).for_each(|(v, a)| *v += a);
            }
            f(&row, result);
        }
    }))
}

/// Sum of squares and sum of each row of this device's part: `[.., 64]`, in columns 0 and 32.
pub fn layer_norm_pre_all_gather(input: &Tensor, residual: Option<&Tensor>, out: DType) -> Result<Tensor, OpError> {
    statistics("layer_norm_pre_all_gather", input, residual, 2, out, |row, result| {
        result[0] = math::dot(row, row);
        result[TILE] = math::sum(row);
    })
}

/// Mean of squares of each row of this device's part: `[.., 32]`, in column 0.
pub fn rms_norm_pre_all_gather(input: &Tensor, residual: Option<&Tensor>, out: DType) -> Result<Tensor, OpError> {
    statistics("rms_norm_pre_all_gather", input, residual, 1, out, |row, result| {
        result[0] = math::dot(row, row) / row.len() as f32;
    })
}

/// Normalises this device's part of each row by the gathered statistics `[.., 64 * devices]`; all
/// parts are equally long.
pub fn layer_norm_post_all_gather(
    input: &Tensor,
    stats: &Tensor,
    affine: Affine<'_>,
    epsilon: f32,
    out: DType,
) -> Result<Tensor, OpError> {
    const OP: &str = "layer_norm_post_all_gather";
    let length = input.shape().last();
    let rows = input.elements().checked_div(length).unwrap_or(0);
    let width = stats.shape().last();
    if width == 0 || !width.is_multiple_of(2 * TILE) || stats.elements() != rows * width {
        let wanted = format!("{rows} rows of 64 columns for each device");
        return Err(Reason::shape(stats.shape(), wanted).of(OP, &[input, stats]));
    }
    let (weight, bias) = affine.vectors(OP, input, length)?;
    let stats = produce::as_f32(stats);
    let count = (length * (width / (2 * TILE))) as f32;
    let view = View::contiguous(input.shape());
    Ok(produce::floats(input.shape().clone(), out, length, |start, values| {
        f32::load(input, &view, start, values);
        for (i, row) in values.chunks_mut(length.max(1)).enumerate() {
            let at = (start / length + i) * width;
            let devices = stats[at..at + width].chunks(2 * TILE);
            let (squares, sum) = devices.fold((0.0, 0.0), |(q, s), d| (q + d[0], s + d[TILE]));
            let mean = sum / count;
            let scale = 1.0 / (squares / count - mean * mean + epsilon).sqrt();
            for ((v, w), b) in row.iter_mut().zip(&weight).zip(&bias) {
                *v = (*v - mean) * scale * w + b;
            }
        }
    }))
}

/// Parts of rows on each device, with their weights and what is added before.
#[derive(Debug, Clone, Copy)]
pub struct Parts<'a> {
    /// The parts, one for each device.
    pub input: &'a [Tensor],
    /// Factors of each device's columns, in any shape with as many elements.
    pub weight: Option<&'a [Tensor]>,
    /// Added to the input before.
    pub residual: Option<&'a [Tensor]>,
}

/// Divides rows, of which each device along an axis of the mesh has a part, by the root of their
/// mean square. All parts are equally long.
pub fn distributed_rms_norm(
    parts: Parts<'_>,
    (mesh, axis): (Mesh, usize),
    epsilon: f32,
    out: DType,
) -> Result<Vec<Tensor>, OpError> {
    const OP: &str = "distributed_rms_norm";
    let Parts { input, weight, residual } = parts;
    let of = |list: Option<&'_ [Tensor]>, device: usize| list.and_then(|list| list.get(device)).cloned();
    let mut results = input.to_vec();
    for group in mesh.checked(OP, input, axis)? {
        let squares: Vec<Tensor> = group
            .iter()
            .map(|&d| rms_norm_pre_all_gather(&input[d], of(residual, d).as_ref(), DType::F32))
            .collect::<Result<_, _>>()?;
        let squares: Vec<Vec<f32>> = squares.iter().map(|t| t.to_f32().into_iter().step_by(TILE).collect()).collect();
        let rows = squares.first().map_or(0, Vec::len);
        let mean = |row: usize| squares.iter().map(|of| of[row]).sum::<f32>() / group.len() as f32;
        let scale: Vec<f32> = (0..rows).map(|row| 1.0 / (mean(row) + epsilon).sqrt()).collect();
        for &device in &group {
            let (input, residual) = (&input[device], of(residual, device));
            let length = input.shape().last();
            let (weight, _) = Affine { weight: of(weight, device).as_ref(), bias: None }.vectors(OP, input, length)?;
            let view = View::contiguous(input.shape());
            results[device] = produce::floats(input.shape().clone(), out, length, |start, values| {
                f32::load(input, &view, start, values);
                let mut addend = vec![0f32; values.len()];
                if let Some(residual) = &residual {
                    f32::load(residual, &view, start, &mut addend);
                }
                for (i, (row, addend)) in values.chunks_mut(length.max(1)).zip(addend.chunks(length.max(1))).enumerate()
                {
                    let scale = scale[start / length + i];
                    row.iter_mut().zip(addend).zip(&weight).for_each(|((v, a), w)| *v = (*v + a) * scale * w);
                }
            });
        }
    }
    Ok(results)
}
