//! Strided reading: any broadcast, permutation or slice of a tensor as a sequence of runs.
//!
//! Operations produce their result in row-major order in pieces. For each piece a [`View`] says
//! where its elements lie in an operand: runs of equal stride along the innermost dimension, after
//! neighbouring dimensions that are contiguous have been merged. A contiguous operand is one run, a
//! broadcast scalar a run of stride 0.

use crate::Shape;
use crate::produce;
use crate::tensor::{Tensor, with_storage};
use tilework_dtype::convert::Element;

/// Where the elements of a row-major index space lie in a tensor's values.
#[derive(Debug, Clone)]
pub(crate) struct View {
    /// Length and stride (in elements, possibly 0 or negative) of each dimension, outermost first;
    /// never empty.
    dims: Vec<(usize, isize)>,
    /// Element at index zero.
    offset: isize,
}

impl View {
    /// A view of these dimensions and strides, with dimensions merged where they can be.
    pub(crate) fn new(dims: impl IntoIterator<Item = (usize, isize)>, offset: isize) -> View {
        let mut merged: Vec<(usize, isize)> = Vec::new();
        for (length, stride) in dims {
            if length == 0 {
                return View { dims: vec![(0, 1)], offset };
            }
            match merged.last_mut() {
                _ if length == 1 => {}
                Some(outer) if outer.1 == stride.wrapping_mul(length as isize) => {
                    *outer = (outer.0.saturating_mul(length), stride);
                }
                _ => merged.push((length, stride)),
            }
        }
        if merged.is_empty() {
            merged.push((1, 1));
        }
        View { dims: merged, offset }
    }

    /// All elements of a shape in order.
    pub(crate) fn contiguous(shape: &Shape) -> View {
        View::new([(shape.elements(), 1)], 0)
    }

    /// A tensor of shape `from` repeated to shape `to`, which must be a broadcast of it.
    pub(crate) fn broadcast(from: &Shape, to: &Shape) -> View {
        let strides = from.strides();
        let lead = to.rank() - from.rank();
        View::new(
            to.iter().enumerate().map(|(i, &length)| match i.checked_sub(lead) {
                Some(k) if from[k] == length => (length, strides[k] as isize),
                _ => (length, 0),
            }),
            0,
        )
    }

    /// Calls `f(done, position, stride, length)` for each run of the elements
    /// `start..start + length`.
    #[inline]
    pub(crate) fn runs(&self, start: usize, length: usize, mut f: impl FnMut(usize, isize, isize, usize)) {
        let Some(&(inner, stride)) = self.dims.last() else { return };
        let outer = &self.dims[..self.dims.len() - 1];
        let (mut row, mut column) = (start / inner.max(1), start % inner.max(1));
        let mut done = 0;
        while done < length {
            let mut position = self.offset;
            let mut rest = row;
            for &(n, s) in outer.iter().rev() {
                position += (rest % n) as isize * s;
                rest /= n;
            }
            let run = (inner - column).min(length - done);
            f(done, position + column as isize * stride, stride, run);
            done += run;
            column = 0;
            row += 1;
        }
    }

    /// Copies the elements from `start` on into `out`.
    pub(crate) fn copy<T: Copy>(&self, values: &[T], start: usize, out: &mut [T]) {
        self.map(values, start, out, |v| v);
    }

    /// Converts the elements from `start` on into `out`.
    #[inline]
    pub(crate) fn map<T: Copy, U: Copy>(&self, values: &[T], start: usize, out: &mut [U], f: impl Fn(T) -> U) {
        self.runs(start, out.len(), |done, position, stride, length| {
            let out = &mut out[done..done + length];
            match stride {
                1 => {
                    let from = &values[position as usize..position as usize + length];
                    for (o, &v) in out.iter_mut().zip(from) {
                        *o = f(v);
                    }
                }
                0 => out.fill(f(values[position as usize])),
                _ => {
                    for (i, o) in out.iter_mut().enumerate() {
                        *o = f(values[(position + i as isize * stride) as usize]);
                    }
                }
            }
        });
    }
}

/// A type in which operations compute: float32 for floats, `i64` for integers.
pub(crate) trait Lane: Copy + Default + PartialOrd + Send + Sync + 'static {
    /// Reads the elements of a view from `start` on.
    fn load(tensor: &Tensor, view: &View, start: usize, out: &mut [Self]);
    /// The value in a stored type.
    fn into_element<T: Element>(self) -> T;
    /// Whether it counts as true.
    fn truth(self) -> bool;
    /// Values computed piece by piece, as float32.
    fn as_f32(count: usize, grain: usize, f: impl Fn(usize, &mut [Self]) + Sync) -> Vec<f32>;
}

impl Lane for f32 {
    fn load(tensor: &Tensor, view: &View, start: usize, out: &mut [f32]) {
        with_storage!(tensor.storage(), |v| view.map(v, start, out, |x| x.to_f32()));
    }

    #[inline]
    fn into_element<T: Element>(self) -> T {
        T::from_f32(self)
    }

    fn truth(self) -> bool {
        self != 0.0
    }

    fn as_f32(count: usize, grain: usize, f: impl Fn(usize, &mut [f32]) + Sync) -> Vec<f32> {
        produce::natives(count, grain, f)
    }
}

impl Lane for i64 {
    fn load(tensor: &Tensor, view: &View, start: usize, out: &mut [i64]) {
        with_storage!(tensor.storage(), |v| view.map(v, start, out, |x| x.to_i64()));
    }

    #[inline]
    fn into_element<T: Element>(self) -> T {
        T::from_i64(self)
    }

    fn truth(self) -> bool {
        self != 0
    }

    fn as_f32(count: usize, grain: usize, f: impl Fn(usize, &mut [i64]) + Sync) -> Vec<f32> {
        produce::natives(count, grain, |start, out: &mut [f32]| {
            let mut buffer = vec![0; out.len()];
            f(start, &mut buffer);
            out.iter_mut().zip(&buffer).for_each(|(o, &v)| *o = v as f32);
        })
    }
}
