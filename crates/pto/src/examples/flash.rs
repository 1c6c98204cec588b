//! Flash attention through three rings (`pto-isa`, `kernels/manual/common/flash_atten`).
//!
//! | ring | flag | way | tile |
//! |---|---|---|---|
//! | QK | 0 | C2V | scores, `rows` x `cols`, F32 |
//! | P | 2 | V2C | weights, `rows` x `cols`, halves |
//! | PV | 4 | C2V | their product with V, `rows` x d, F32 |
//!
//! All are split into upper and lower halves. The Cube computes `Q K^T`, the Vectors turn it into
//! weights with a running maximum, the Cube multiplies these with `V`, the Vectors rescale and add.
//! The Cube computes `preload` tiles of scores before it waits for the first weights, and the
//! Vectors compute as many tiles of weights before they take the first product, so that they work
//! in parallel. On A2A3 scores are sent in the global-data form, in two stores; on A5 as tiles into
//! the Vectors' UBs.
//!
//! # Reference
//!
//! Weights in F16 have 11 bits: compared with attention in single precision throughout, such a
//! result is off by up to 2^-11 of the largest element of V, however correct the rings are, so
//! that a tolerance of 1e-5 is impossible. So there are two forms. With P in F32 the reference
//! is [`attention`], the plain formula. With P in F16 it is [`attention_by_blocks`], which
//! uses no rings and rounds the weights to F16 at the same point of the computation. Both must
//! agree to 1e-5.

mod plain;

pub use plain::{attention, attention_by_blocks};

use super::{Draw, Matrix, Parts, Ran, Setting, assemble, corner, finish, refused, require, vectors};
use crate::{
    Arch, Cluster, Core, CoreId, DType, Direction, Fault, Lane, Pipe, Ring, RingEnd, RingError, RingSpec, Shape,
};
use crate::{Split, timing};
use std::collections::VecDeque;
use std::rc::Rc;

/// The inputs of a head.
#[derive(Clone, PartialEq, Debug)]
pub struct Head {
    /// s x d.
    pub q: Matrix,
    /// t x d.
    pub k: Matrix,
    /// t x d.
    pub v: Matrix,
}

/// The example.
#[derive(Clone, PartialEq, Debug)]
pub struct Attention {
    /// The heads, all of one shape.
    pub heads: Vec<Head>,
    /// Rows of a tile (Cube_S0); a divisor of s, even.
    pub rows: usize,
    /// Columns of a tile of scores (Tile_S1); a divisor of t, even.
    pub cols: usize,
    /// Element type of the weights: F16 or F32.
    pub p: DType,
    /// Tiles of scores that the Cube computes ahead (1 to 4 in `pto-isa`); at most the
    /// number of slots.
    pub preload: usize,
}

/// A tile of the pipeline.
#[derive(Clone, Copy)]
struct Step {
    head: usize,
    /// First row of Q.
    row: usize,
    /// First row of K and V.
    col: usize,
    /// Whether it is the first of its rows.
    first: bool,
    /// Whether it is the last of its rows.
    last: bool,
}

impl Attention {
    /// Largest difference from the reference, of values of at most 1.
    pub const TOLERANCE: f32 = 1e-5;

    /// 2 heads of 128 x 64, in tiles of 32 x 32, two of them ahead; elements of Q and K from -2 to
    /// 2, of V from -1 to 1.
    pub fn of_seed(seed: u64, p: DType) -> Self {
        let mut draw = Draw::new(seed);
        let mut head = || {
            let [q, k] = [(); 2].map(|()| draw.unit(128, 64).map(|v| 2.0 * v));
            Head { q, k, v: draw.unit(128, 64) }
        };
        Self { heads: vec![head(), head()], rows: 32, cols: 32, p, preload: 2 }
    }

    /// The reference, which rounds where the pipeline rounds; heads one below the other.
    pub fn expected(&self) -> Matrix {
        self.each(|head| match self.p {
            DType::F32 => attention(&head.q, &head.k, &head.v),
            _ => attention_by_blocks(&head.q, &head.k, &head.v, self.cols, self.p),
        })
    }

    /// The plain formula in single precision, whatever the type of P; heads one below the other.
    pub fn unrounded(&self) -> Matrix {
        self.each(|head| attention(&head.q, &head.k, &head.v))
    }

    fn each(&self, compute: impl Fn(&Head) -> Matrix) -> Matrix {
        let (s, d) = self.head_shape();
        let mut all = Matrix::from_fn(s * self.heads.len(), d, |_, _| 0.0);
        for (index, head) in self.heads.iter().enumerate() {
            all.put((index * s, 0), &compute(head));
        }
        all
    }

    /// Rows of Q and columns of V.
    fn head_shape(&self) -> (usize, usize) {
        self.heads.first().map_or((0, 0), |head| (head.q.rows(), head.v.cols()))
    }

    fn steps(&self) -> Vec<Step> {
        let (s, _) = self.head_shape();
        let mut steps = Vec::new();
        for (head, inputs) in self.heads.iter().enumerate() {
            let t = inputs.k.rows();
            for row in (0..s).step_by(self.rows.max(1)) {
                let cols = (0..t).step_by(self.cols.max(1));
                steps.extend(cols.map(|col| Step { head, row, col, first: col == 0, last: col + self.cols >= t }));
            }
        }
        steps
    }

    fn scores(&self) -> Shape {
        Shape::new(self.rows, self.cols, DType::F32)
    }

    fn weights(&self) -> Shape {
        Shape { dtype: self.p, ..self.scores() }
    }

    fn products(&self) -> Shape {
        Shape::new(self.rows, self.head_shape().1, DType::F32)
    }

    fn rings(&self, cluster: &mut Cluster, setting: &Setting) -> Result<Rings, RingError> {
        let mut ring = |number, name, direction, tile| {
            cluster.ring(setting.ring(RingSpec::new(name, direction, tile).flag(setting.flag(number))))
        };
        Ok(Rings {
            qk: ring(0, "QK", Direction::C2V, self.scores())?,
            p: ring(1, "P", Direction::V2C, self.weights())?,
            pv: ring(2, "PV", Direction::C2V, self.products())?,
        })
    }

    fn check(&self) -> Result<(), Fault> {
        let shape = |m: &Matrix| (m.rows(), m.cols());
        let Some(first) = self.heads.first() else { return require(false, "there must be a head") };
        let of = |head: &Head| [shape(&head.q), shape(&head.k), shape(&head.v)];
        require(self.heads.iter().all(|head| of(head) == of(first)), "all heads need the same shape")?;
        let ((s, d), (t, k_cols)) = (shape(&first.q), shape(&first.k));
        require((k_cols, first.v.rows()) == (d, t), "K needs the columns of Q, and V the rows of K")?;
        require(s.is_multiple_of(self.rows), "the rows of a tile must divide those of Q")?;
        require(t.is_multiple_of(self.cols), "the columns of a tile must divide the rows of K")?;
        require(self.cols.is_multiple_of(2), "the columns of a tile must be even: its scores are stored in two parts")
    }

    /// Runs it.
    pub fn run(&self, setting: &Setting) -> Ran {
        if let Err(fault) = self.check() {
            return refused(fault);
        }
        let mut cluster = Cluster::new(setting.config);
        let rings = match self.rings(&mut cluster, setting) {
            Ok(rings) => rings,
            Err(error) => return refused(error),
        };
        let preload = self.preload.min(usize::try_from(setting.slots).unwrap_or(usize::MAX));
        let (example, setting) = (Rc::new(Self { preload, ..self.clone() }), *setting);
        let (this, ends) = (Rc::clone(&example), rings.clone());
        cluster.spawn(CoreId::Cube, async move |core| this.cube(core, ends, setting).await);
        let outputs: Vec<_> = vectors(&setting, Split::UpDown)
            .map(|(id, lane)| {
                let (this, ends) = (Rc::clone(&example), rings.clone());
                cluster.spawn(id, async move |core| this.vector(core, ends, lane, setting).await)
            })
            .collect();
        let (s, d) = self.head_shape();
        finish(cluster, || assemble(s * self.heads.len(), d, &outputs))
    }

    async fn cube(&self, core: Core, rings: Rings, setting: Setting) -> Result<(), Fault> {
        let (mut qk, mut p, mut pv) =
            (core.open(&rings.qk).await?, core.open(&rings.p).await?, core.open(&rings.pv).await?);
        let steps = self.steps();
        let mut ahead = steps.iter();
        for step in ahead.by_ref().take(self.preload) {
            self.push_scores(&core, &mut qk, step).await?;
        }
        for step in &steps {
            if let Some(next) = ahead.next() {
                self.push_scores(&core, &mut qk, next).await?;
            }
            let weights = Matrix::of(&p.pop_tile().await?);
            let v = &self.heads[step.head].v;
            setting.consume(&core, Pipe::M, timing::matmul(self.rows, self.cols, v.cols()), "P V").await;
            p.free().await?;
            let product = weights.times(&v.part((step.col, 0), self.cols, v.cols()));
            pv.push(&product.tile(DType::F32)).await?;
        }
        qk.close().await?;
        pv.close().await
    }

    async fn push_scores(&self, core: &Core, qk: &mut RingEnd, step: &Step) -> Result<(), Fault> {
        let Head { q, k, .. } = &self.heads[step.head];
        let q = q.part((step.row, 0), self.rows, q.cols());
        let scores =
            |first, cols| q.times(&k.part((step.col + first, 0), cols, k.cols()).transposed()).tile(DType::F32);
        if core.arch() == Arch::A5 {
            core.work(Pipe::M, timing::matmul(self.rows, q.cols(), self.cols), "Q K").await;
            return qk.push(&scores(0, self.cols)).await;
        }
        // As in `pto-isa`: one TALLOC, a TSTORE for each subtile of Cube_S1 columns, one TPUSH.
        let half = self.cols / 2;
        let slot = qk.alloc().await?;
        for first in [0, half] {
            core.work(Pipe::M, timing::matmul(self.rows, q.cols(), half), "Q K").await;
            qk.store(&slot, 0, first, &scores(first, half)).await?;
        }
        qk.push_slot(slot).await
    }

    async fn vector(&self, core: Core, rings: Rings, lane: Lane, setting: Setting) -> Result<Parts, Fault> {
        let (qk, p, pv) = (core.open(&rings.qk).await?, core.open(&rings.p).await?, core.open(&rings.pv).await?);
        let mut state =
            Vector { example: self, setting, lane, core, qk, p, pv, pending: VecDeque::new(), parts: Vec::new() };
        let (mut softmax, mut out) = (Softmax::new(self.rows / 2), state.zeros());
        let steps = self.steps();
        for index in 0..steps.len() + self.preload {
            if let Some(step) = steps.get(index) {
                state.send_weights(step, &mut softmax).await?;
            }
            if let Some(step) = index.checked_sub(self.preload).and_then(|i| steps.get(i)) {
                state.add_product(step, &mut out).await?;
            }
        }
        state.p.close().await?;
        Ok(state.parts)
    }
}

#[derive(Clone)]
struct Rings {
    qk: Ring,
    p: Ring,
    pv: Ring,
}

/// The running maximum and sum of each of a Vector's rows.
struct Softmax {
    max: Vec<f32>,
    sum: Vec<f32>,
}

impl Softmax {
    fn new(rows: usize) -> Self {
        Self { max: vec![f32::NEG_INFINITY; rows], sum: vec![0.0; rows] }
    }

    /// Adds the scores of more columns; returns their weights and the factor of each row's
    /// earlier result.
    fn add(&mut self, scores: &Matrix) -> (Matrix, Vec<f32>) {
        let mut weights = scores.clone();
        let mut factors = Vec::with_capacity(scores.rows());
        for (row, (max, sum)) in self.max.iter_mut().zip(&mut self.sum).enumerate() {
            let weights = weights.row_mut(row);
            let new = weights.iter().copied().fold(*max, f32::max);
            let factor = libm::expf(*max - new);
            weights.iter_mut().for_each(|w| *w = libm::expf(*w - new));
            *sum = *sum * factor + weights.iter().sum::<f32>();
            *max = new;
            factors.push(factor);
        }
        (weights, factors)
    }
}

/// State of a tile of weights until its product arrives.
struct Pending {
    factors: Vec<f32>,
    /// The rows' sums, with their last tile.
    sums: Option<Vec<f32>>,
}

/// A Vector's kernel.
struct Vector<'a> {
    example: &'a Attention,
    setting: Setting,
    lane: Lane,
    core: Core,
    qk: RingEnd,
    p: RingEnd,
    pv: RingEnd,
    pending: VecDeque<Pending>,
    parts: Parts,
}

impl Vector<'_> {
    fn zeros(&self) -> Matrix {
        Matrix::from_fn(self.example.rows / 2, self.example.products().cols, |_, _| 0.0)
    }

    /// QK to P.
    async fn send_weights(&mut self, step: &Step, softmax: &mut Softmax) -> Result<(), Fault> {
        let share = Shape { rows: self.example.rows / 2, ..self.example.scores() };
        if step.first {
            *softmax = Softmax::new(share.rows);
        }
        let scores = if self.core.arch() == Arch::A5 {
            self.qk.pop_tile().await?
        } else {
            let slot = self.qk.pop_slot().await?;
            self.qk.load(&slot, 0, 0, share).await?
        };
        let d = self.example.heads[step.head].q.cols();
        // A maximum, a subtraction and an exponential, a sum: three passes.
        self.setting.consume(&self.core, Pipe::V, 3 * timing::vector(share.len()), "softmax").await;
        self.qk.free().await?;
        let (weights, factors) = softmax.add(&Matrix::of(&scores).map(|s| s * plain::scale(d)));
        self.p.push(&weights.tile(self.example.p)).await?;
        self.pending.push_back(Pending { factors, sums: step.last.then(|| softmax.sum.clone()) });
        Ok(())
    }

    /// PV to the result: rescales the result, adds the product and, after the last tile of its
    /// rows, divides by their sums.
    async fn add_product(&mut self, step: &Step, out: &mut Matrix) -> Result<(), Fault> {
        if step.first {
            *out = self.zeros();
        }
        let product = Matrix::of(&self.pv.pop_tile().await?);
        self.setting.consume(&self.core, Pipe::V, 2 * timing::vector(product.values().len()), "rescale").await;
        self.pv.free().await?;
        let missing = || Fault::Usage("a product came before its weights were sent".to_owned());
        let Pending { factors, sums } = self.pending.pop_front().ok_or_else(missing)?;
        for (row, factor) in factors.iter().enumerate() {
            for (value, part) in out.row_mut(row).iter_mut().zip(product.row(row)) {
                *value = *value * factor + part;
            }
        }
        let Some(sums) = sums else { return Ok(()) };
        for (row, sum) in sums.iter().enumerate() {
            out.row_mut(row).iter_mut().for_each(|value| *value /= sum);
        }
        let (s, _) = self.example.head_shape();
        let (row, col) = corner(Split::UpDown, self.example.products(), self.lane);
        self.parts.push(((step.head * s + step.row + row, col), out.clone()));
        Ok(())
    }
}
