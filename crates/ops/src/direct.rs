//! The convolution kernel: elements under the kernel are multiplied where they lie.
//!
//! A result's sum goes over runs of neighbouring elements of the image, at the same distances from
//! each position's first element. So six positions are computed together, each weight is read once
//! for them, and nothing is gathered. Padding is part of the image: it is copied once with its
//! edges, if there are any. A transposed convolution has other runs for each of the phases that
//! its stride makes, and the same kernel otherwise.
//!
//! Each element sums over the runs in one order, so the bits do not depend on the number of
//! threads or on how results are divided among them.

use std::borrow::Cow;

use multiversion::multiversion;
use multiversion::target::target_cfg_f;
use rayon::prelude::*;

use crate::window::Axis;

/// Positions that are computed together: with sixteen columns each, their sums fill twelve of the
/// sixteen vector registers of AVX2.
pub(crate) const ROWS: usize = 6;

/// Lines of an image that a thread copies at least.
const LINES: usize = 32;

/// Neighbouring elements of the image and the rows of weights that belong to them.
#[derive(Debug, Clone, Copy)]
struct Run {
    /// From a position's first element.
    from: usize,
    length: usize,
    /// Of the first element.
    weight: usize,
}

/// How the taps of a kernel fall on one axis of the image with its edges.
struct Along {
    /// By phase: taps, and what they read after a position's first element.
    phases: Vec<Vec<(usize, usize)>>,
    /// By position: its phase and its first element.
    positions: Vec<(usize, usize)>,
    /// Elements that are added before the image's, and its length with edges.
    before: usize,
    length: usize,
}

impl Along {
    /// `count` positions of a convolution of `length` elements.
    fn forward(axis: &Axis, length: usize, count: usize) -> Self {
        let last = count.saturating_sub(1) * axis.stride + (axis.kernel - 1) * axis.dilation;
        Self {
            phases: vec![(0..axis.kernel).map(|tap| (tap, tap * axis.dilation)).collect()],
            positions: (0..count).map(|i| (0, i * axis.stride)).collect(),
            before: axis.before,
            length: (last + 1).max(axis.before + length),
        }
    }

    /// `count` positions of a transposed convolution of `length` elements: position `i` reads
    /// element `(i + before - tap * dilation) / stride` where that is whole.
    fn transposed(axis: &Axis, length: usize, count: usize) -> Self {
        let Axis { kernel, stride, dilation, before: cut, .. } = *axis;
        let before = ((kernel - 1) * dilation).div_ceil(stride);
        // From `before` elements further back, so that no distance is negative.
        let reads = |phase: usize, tap: usize| {
            let at = (phase + before * stride).checked_sub(tap * dilation)?;
            at.is_multiple_of(stride).then_some((tap, at / stride))
        };
        let phases = (0..stride.min(count)).map(|i| (i + cut) % stride);
        let phases: Vec<usize> = phases.collect();
        let last = (count.saturating_sub(1) + cut) / stride + before;
        Self {
            phases: phases.iter().map(|&phase| (0..kernel).filter_map(|tap| reads(phase, tap)).collect()).collect(),
            positions: (0..count).map(|i| (i % stride, (i + cut) / stride)).collect(),
            before,
            length: (last + 1).max(before + length),
        }
    }
}

/// What is convolved: three axes, channels last.
pub(crate) struct Geometry<'a> {
    pub batch: usize,
    pub input: [usize; 3],
    pub output: [usize; 3],
    pub axes: &'a [Axis; 3],
    /// Of the input and of the result.
    pub channels: [usize; 2],
    pub groups: usize,
    pub transposed: bool,
    /// Edges repeat the image's last elements instead of being zero.
    pub replicate: bool,
}

/// A convolution that is ready to be computed.
pub(crate) struct Direct<'a> {
    image: Cow<'a, [f32]>,
    along: [Along; 3],
    output: [usize; 3],
    channels: [usize; 2],
    groups: usize,
    /// By phase of all axes: the runs of the first group.
    runs: Vec<Vec<Run>>,
    weights: Weights,
}

/// Weights by group and by columns that are computed together.
enum Weights {
    Sixteen(Vec<Vec<[f32; 16]>>),
    Four(Vec<Vec<[f32; 4]>>),
    /// One channel for each group: rows of all channels.
    Depthwise(Vec<f32>),
}

/// The columns of each group of a matrix of row length `stride`, in panels; zeros fill
/// the last one.
fn panels<const N: usize>(weights: &[f32], stride: usize, groups: usize) -> Vec<Vec<[f32; N]>> {
    let columns = stride / groups;
    let count = groups * columns.div_ceil(N);
    let mut panels: Vec<Vec<[f32; N]>> = (0..count).map(|_| Vec::with_capacity(weights.len() / stride)).collect();
    for row in weights.chunks_exact(stride) {
        let pieces = row.chunks_exact(columns).flat_map(|group| group.chunks(N));
        for (panel, piece) in panels.iter_mut().zip(pieces) {
            let mut lanes = [0.0; N];
            lanes[..piece.len()].copy_from_slice(piece);
            panel.push(lanes);
        }
    }
    panels
}

impl<'a> Direct<'a> {
    /// A convolution of `image` with weights `[tap, channel of a group, out]`. `None`: its edges
    /// are so large that they should not be stored.
    pub(crate) fn new(of: &Geometry<'_>, image: &'a [f32], weights: &[f32]) -> Option<Self> {
        let along = [0, 1, 2].map(|i| match of.transposed {
            true => Along::transposed(&of.axes[i], of.input[i], of.output[i]),
            false => Along::forward(&of.axes[i], of.input[i], of.output[i]),
        });
        let [inputs, outputs] = of.channels;
        let (group_in, group_out) = (inputs / of.groups, outputs / of.groups);
        let size = along.iter().try_fold(of.batch * inputs, |size, along| size.checked_mul(along.length))?;
        if size > (4 * image.len()).max(1 << 20) {
            return None;
        }
        let weights = match (group_in, group_out) {
            (1, 1) => Weights::Depthwise(weights.to_vec()),
            (_, ..=4) => Weights::Four(panels(weights, outputs, of.groups)),
            _ => Weights::Sixteen(panels(weights, outputs, of.groups)),
        };
        let joins = of.groups == 1 && !matches!(weights, Weights::Depthwise(_));
        let runs = runs(&along, of.axes, inputs, group_in, joins);
        let has_edges = (0..3).any(|i| along[i].length != of.input[i]);
        let image = if has_edges { Cow::Owned(with_edges(of, &along, image)) } else { Cow::Borrowed(image) };
        Some(Self { image, along, output: of.output, channels: of.channels, groups: of.groups, runs, weights })
    }

    /// Results of the positions from `first` on.
    pub(crate) fn compute(&self, first: usize, results: &mut [f32]) {
        let outputs = self.channels[1];
        // Positions by phase, each with its first element.
        let mut buckets: Vec<Vec<(usize, usize)>> = vec![Vec::new(); self.runs.len()];
        for row in 0..results.len() / outputs {
            let (phase, start) = self.locate(first + row);
            buckets[phase].push((row, start));
        }
        for (runs, positions) in self.runs.iter().zip(&buckets) {
            match &self.weights {
                Weights::Sixteen(panels) => self.columns(panels, runs, positions, results),
                Weights::Four(panels) => self.columns(panels, runs, positions, results),
                Weights::Depthwise(weights) => {
                    for &(row, start) in positions {
                        depthwise(&self.image[start..], runs, weights, &mut results[row * outputs..][..outputs]);
                    }
                }
            }
        }
    }

    /// The phase and the first element of a position.
    fn locate(&self, position: usize) -> (usize, usize) {
        let [depth, height, width] = self.output;
        let at = [position / (height * width) % depth, position / width % height, position % width];
        let (mut phase, mut start) = (0, position / (height * width) / depth);
        for (along, at) in self.along.iter().zip(at) {
            let (own, first) = along.positions[at];
            phase = phase * along.phases.len() + own;
            start = start * along.length + first;
        }
        (phase, start * self.channels[0])
    }

    fn columns<const N: usize>(
        &self,
        panels: &[Vec<[f32; N]>],
        runs: &[Run],
        positions: &[(usize, usize)],
        results: &mut [f32],
    ) {
        let [inputs, outputs] = self.channels;
        let (group_in, group_out) = (inputs / self.groups, outputs / self.groups);
        let each = group_out.div_ceil(N);
        for (i, panel) in panels.iter().enumerate() {
            let (group, column) = (i / each, i % each * N);
            let count = N.min(group_out - column);
            for positions in positions.chunks(ROWS) {
                // The last ones repeat one of them.
                let starts = std::array::from_fn(|r| positions[r.min(positions.len() - 1)].1 + group * group_in);
                let mut sums = [[0.0; N]; ROWS];
                multiply(&self.image, starts, runs, panel, &mut sums);
                for (&(row, _), sums) in positions.iter().zip(&sums) {
                    results[row * outputs + group * group_out + column..][..count].copy_from_slice(&sums[..count]);
                }
            }
        }
    }
}

/// The runs of each phase. If `joins`, runs that continue each other, in the image and in the
/// weights, are one.
fn runs(along: &[Along; 3], axes: &[Axis; 3], channels: usize, group_in: usize, joins: bool) -> Vec<Vec<Run>> {
    let mut all = Vec::new();
    for depth in &along[0].phases {
        for rows in &along[1].phases {
            for columns in &along[2].phases {
                let mut runs: Vec<Run> = Vec::new();
                for (tap_d, d) in depth {
                    for (tap_h, h) in rows {
                        for (tap_w, w) in columns {
                            let tap = (tap_d * axes[1].kernel + tap_h) * axes[2].kernel + tap_w;
                            let from = ((d * along[1].length + h) * along[2].length + w) * channels;
                            let run = Run { from, length: group_in, weight: tap * group_in };
                            match runs.last_mut() {
                                Some(last)
                                    if joins
                                        && last.from + last.length == run.from
                                        && last.weight + last.length == run.weight =>
                                {
                                    last.length += run.length;
                                }
                                _ => runs.push(run),
                            }
                        }
                    }
                }
                all.push(runs);
            }
        }
    }
    all
}

/// The image with its edges.
fn with_edges(of: &Geometry<'_>, along: &[Along; 3], image: &[f32]) -> Vec<f32> {
    let channels = of.channels[0];
    let [depth, height, width] = [0, 1, 2].map(|i| along[i].length);
    let mut padded = vec![0.0; of.batch * depth * height * width * channels];
    // The element of the image that belongs to one of the image with edges.
    let source = |axis: usize, at: usize| {
        let (before, length) = (along[axis].before, of.input[axis]);
        match of.replicate {
            true if length > 0 => Some(at.saturating_sub(before).min(length - 1)),
            _ => at.checked_sub(before).filter(|&at| at < length),
        }
    };
    let (row, whole) = (width * channels, of.input[2] * channels);
    padded.par_chunks_exact_mut(row.max(1)).with_min_len(LINES).enumerate().for_each(|(i, padded)| {
        let (n, d, h) = (i / height / depth, i / height % depth, i % height);
        let (Some(d), Some(h)) = (source(0, d), source(1, h)) else { return };
        let line = &image[((n * of.input[0] + d) * of.input[1] + h) * whole..][..whole];
        let before = along[2].before;
        if !of.replicate {
            padded[before * channels..][..whole].copy_from_slice(line);
            return;
        }
        for (w, pixel) in padded.chunks_exact_mut(channels).enumerate() {
            if let Some(w) = source(2, w) {
                pixel.copy_from_slice(&line[w * channels..][..channels]);
            }
        }
    });
    padded
}

/// Sums of six positions, which begin at `starts`, and the columns of a panel.
#[multiversion(targets("x86_64+avx2+fma"))]
fn multiply<const N: usize>(
    image: &[f32],
    starts: [usize; ROWS],
    runs: &[Run],
    panel: &[[f32; N]],
    sums: &mut [[f32; N]; ROWS],
) {
    let mut all = [[0.0; N]; ROWS];
    for run in runs {
        let weights = &panel[run.weight..][..run.length];
        let [a, b, c, d, e, f] = starts.map(|start| &image[start + run.from..][..run.length]);
        let elements = a.iter().zip(b).zip(c).zip(d).zip(e).zip(f);
        for (weights, (((((a, b), c), d), e), f)) in weights.iter().zip(elements) {
            let weights = *weights;
            for (sums, &x) in all.iter_mut().zip([a, b, c, d, e, f]) {
                for (sum, weight) in sums.iter_mut().zip(weights) {
                    *sum = add_product(x, weight, *sum, target_cfg_f!(target_feature = "fma"));
                }
            }
        }
    }
    *sums = all;
}

/// Sums of one position and all channels, each with a weight of its own.
#[multiversion(targets("x86_64+avx2+fma"))]
fn depthwise(image: &[f32], runs: &[Run], weights: &[f32], sums: &mut [f32]) {
    const LANES: usize = 32;
    let channels = sums.len();
    let (blocks, rest) = sums.as_chunks_mut::<LANES>();
    for (i, block) in blocks.iter_mut().enumerate() {
        let mut all = [0.0; LANES];
        for run in runs {
            let elements = &image[run.from + i * LANES..][..LANES];
            let weights = &weights[run.weight * channels + i * LANES..][..LANES];
            for j in 0..LANES {
                all[j] = add_product(elements[j], weights[j], all[j], target_cfg_f!(target_feature = "fma"));
            }
        }
        *block = all;
    }
    let first = channels - rest.len();
    for (j, sum) in rest.iter_mut().enumerate() {
        *sum = runs.iter().fold(0.0, |sum, run| {
            let (x, weight) = (image[run.from + first + j], weights[run.weight * channels + first + j]);
            add_product(x, weight, sum, target_cfg_f!(target_feature = "fma"))
        });
    }
}

#[inline(always)]
fn add_product(x: f32, weight: f32, sum: f32, fused: bool) -> f32 {
    if fused { x.mul_add(weight, sum) } else { x * weight + sum }
}
