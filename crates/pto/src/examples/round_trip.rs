//! `C = A + B` on the Vectors, `E = C D` on the Cube, `G = E - F` on the Vectors: one ring in
//! both directions, with tiles on both ways at the same time (`tpushpop_dir_both_concurrent`
//! of `pto-isa`).
//!
//! A Vector keeps `ahead` tiles of sums in flight. The Cube pops before it pushes, so both
//! directions together hold twice the slots and one more tile; if a Vector pushed more than that
//! before its first pop, it and the Cube would deadlock.

use super::{Draw, Matrix, Parts, Ran, Setting, assemble, corner, finish, refused, require, vectors};
use crate::{
    Cluster, Core, CoreId, DType, Direction, Fault, Lane, Pipe, Ring, RingEnd, RingSpec, Shape, Split, timing,
};
use std::rc::Rc;

/// The example.
#[derive(Clone, PartialEq, Debug)]
pub struct RoundTrip {
    /// m x k.
    pub a: Matrix,
    /// m x k.
    pub b: Matrix,
    /// k x n.
    pub d: Matrix,
    /// m x n.
    pub f: Matrix,
    /// Rows of a tile; a divisor of m, even.
    pub tile_rows: usize,
    /// Tiles that a Vector has pushed before it pops the first.
    pub ahead: usize,
}

impl RoundTrip {
    /// 128 x 64 x 128 (the shape of `tpushpop_dir_both`) in 8 tiles, two of them ahead.
    pub fn of_seed(seed: u64) -> Self {
        let mut draw = Draw::new(seed);
        let (a, b, d, f) = (draw.unit(128, 64), draw.unit(128, 64), draw.unit(64, 128), draw.unit(128, 128));
        Self { a, b, d, f, tile_rows: 16, ahead: 2 }
    }

    /// Plain arithmetic.
    pub fn expected(&self) -> Matrix {
        self.a.with(&self.b, |a, b| a + b).times(&self.d).with(&self.f, |e, f| e - f)
    }

    fn sums(&self) -> Shape {
        Shape::new(self.tile_rows, self.a.cols(), DType::F32)
    }

    fn products(&self) -> Shape {
        Shape::new(self.tile_rows, self.d.cols(), DType::F32)
    }

    fn tiles(&self) -> usize {
        self.a.rows() / self.tile_rows.max(1)
    }

    fn check(&self) -> Result<(), Fault> {
        let ((m, k), n) = ((self.a.rows(), self.a.cols()), self.d.cols());
        require((self.b.rows(), self.b.cols()) == (m, k), "A and B need the same shape")?;
        require(self.d.rows() == k, "D needs as many rows as A has columns")?;
        require((self.f.rows(), self.f.cols()) == (m, n), "F needs the rows of A and the columns of D")?;
        require(m.is_multiple_of(self.tile_rows), "the rows of a tile must divide those of A")
    }

    /// Runs it.
    pub fn run(&self, setting: &Setting) -> Ran {
        if let Err(fault) = self.check() {
            return refused(fault);
        }
        let mut cluster = Cluster::new(setting.config);
        let spec = RingSpec::new("round trip", Direction::Both, self.products()).v2c_tile(self.sums());
        let ring = match cluster.ring(setting.ring(spec)) {
            Ok(ring) => ring,
            Err(error) => return refused(error),
        };
        let (example, setting) = (Rc::new(self.clone()), *setting);
        let (this, end) = (Rc::clone(&example), ring.clone());
        cluster.spawn(CoreId::Cube, async move |core| this.cube(core, end, setting).await);
        let outputs: Vec<_> = vectors(&setting, Split::UpDown)
            .map(|(id, lane)| {
                let (this, end) = (Rc::clone(&example), ring.clone());
                cluster.spawn(id, async move |core| this.vector(core, end, lane, setting).await)
            })
            .collect();
        finish(cluster, || assemble(self.f.rows(), self.f.cols(), &outputs))
    }

    async fn cube(&self, core: Core, ring: Ring, setting: Setting) -> Result<(), Fault> {
        let mut end = core.open(&ring).await?;
        for _ in 0..self.tiles() {
            let c = Matrix::of(&end.pop_tile().await?);
            let cycles = timing::matmul(c.rows(), c.cols(), self.d.cols());
            setting.consume(&core, Pipe::M, cycles, "C D").await;
            end.free().await?;
            end.push(&c.times(&self.d).tile(DType::F32)).await?;
        }
        end.close().await
    }

    async fn vector(&self, core: Core, ring: Ring, lane: Lane, setting: Setting) -> Result<Parts, Fault> {
        let mut end = core.open(&ring).await?;
        let mut parts = Vec::new();
        for step in 0..self.tiles() + self.ahead {
            if step < self.tiles() {
                self.push_sum(&core, &mut end, lane, step).await?;
            }
            if let Some(tile) = step.checked_sub(self.ahead) {
                parts.push(self.pop_product(&setting, &mut end, lane, tile).await?);
            }
        }
        end.close().await?;
        Ok(parts)
    }

    async fn push_sum(&self, core: &Core, end: &mut RingEnd, lane: Lane, tile: usize) -> Result<(), Fault> {
        let (row, col) = corner(Split::UpDown, self.sums(), lane);
        let at = (tile * self.tile_rows + row, col);
        let (rows, cols) = (self.tile_rows / 2, self.a.cols());
        core.work(Pipe::V, timing::vector(rows * cols), "A + B").await;
        let sum = self.a.part(at, rows, cols).with(&self.b.part(at, rows, cols), |a, b| a + b);
        end.push(&sum.tile(DType::F32)).await
    }

    async fn pop_product(
        &self,
        setting: &Setting,
        end: &mut RingEnd,
        lane: Lane,
        tile: usize,
    ) -> Result<((usize, usize), Matrix), Fault> {
        let (row, col) = corner(Split::UpDown, self.products(), lane);
        let at = (tile * self.tile_rows + row, col);
        let e = Matrix::of(&end.pop_tile().await?);
        setting.consume(end.core(), Pipe::V, timing::vector(e.values().len()), "E - F").await;
        end.free().await?;
        let f = self.f.part(at, e.rows(), e.cols());
        Ok((at, e.with(&f, |e, f| e - f)))
    }
}
