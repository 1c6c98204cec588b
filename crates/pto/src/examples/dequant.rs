//! `A W`, where `W` is whole numbers times a scale for each column: the Vectors multiply by the
//! scales and push their shares, the Cube pops and accumulates (`tpushpop_vc` of `pto-isa`).

use super::{Draw, Matrix, Ran, Setting, corner, finish, refused, require, vectors};
use crate::{Cluster, Core, CoreId, DType, Direction, Fault, Lane, Pipe, Ring, RingSpec, Shape, Split, timing};
use std::rc::Rc;

/// The example.
#[derive(Clone, PartialEq, Debug)]
pub struct DequantMatmul {
    /// m x k.
    pub a: Matrix,
    /// k x n, whole numbers.
    pub q: Matrix,
    /// 1 x n.
    pub scale: Matrix,
    /// What the whole numbers are stored as: I8 or I16.
    pub stored: DType,
    /// Rows of `W` in a tile; a divisor of k.
    pub tile_rows: usize,
    /// How the Vectors share a tile.
    pub split: Split,
}

impl DequantMatmul {
    /// 16 x 512 x 64 of 8-bit numbers in 8 tiles, upper and lower halves.
    pub fn of_seed(seed: u64) -> Self {
        let mut draw = Draw::new(seed);
        let (a, q) = (draw.unit(16, 512), draw.whole(512, 64, 127));
        let scale = draw.unit(1, 64).map(|s| (s + 1.5) / 1024.0);
        Self { a, q, scale, stored: DType::I8, tile_rows: 64, split: Split::UpDown }
    }

    /// Plain arithmetic.
    pub fn expected(&self) -> Matrix {
        self.a.times(&self.scaled(&self.q, 0))
    }

    /// A part of `q` that starts at this column, times the scales.
    fn scaled(&self, q: &Matrix, first: usize) -> Matrix {
        Matrix::from_fn(q.rows(), q.cols(), |row, col| q.row(row)[col] * self.scale.row(0)[first + col])
    }

    fn whole(&self) -> Shape {
        Shape::new(self.tile_rows, self.q.cols(), DType::F32)
    }

    fn tiles(&self) -> usize {
        self.q.rows() / self.tile_rows.max(1)
    }

    fn check(&self) -> Result<(), Fault> {
        require(self.a.cols() == self.q.rows(), "A needs as many columns as W has rows")?;
        let scales = (self.scale.rows(), self.scale.cols());
        require(scales == (1, self.q.cols()), "there must be one row of scales, one for each column of W")?;
        require(self.q.rows().is_multiple_of(self.tile_rows), "the rows of a tile must divide those of W")
    }

    /// Runs it.
    pub fn run(&self, setting: &Setting) -> Ran {
        if let Err(fault) = self.check() {
            return refused(fault);
        }
        let mut cluster = Cluster::new(setting.config);
        let spec = RingSpec::new("weights", Direction::V2C, self.whole()).split(self.split);
        let ring = match cluster.ring(setting.ring(spec)) {
            Ok(ring) => ring,
            Err(error) => return refused(error),
        };
        let (example, setting) = (Rc::new(self.clone()), *setting);
        let (this, end) = (Rc::clone(&example), ring.clone());
        let product = cluster.spawn(CoreId::Cube, async move |core| this.cube(core, end, setting).await);
        for (id, lane) in vectors(&setting, self.split) {
            let (this, end) = (Rc::clone(&example), ring.clone());
            cluster.spawn(id, async move |core| this.vector(core, end, lane).await);
        }
        finish(cluster, || product.take())
    }

    async fn vector(&self, core: Core, ring: Ring, lane: Lane) -> Result<(), Fault> {
        let mut end = core.open(&ring).await?;
        let (row, col) = corner(self.split, self.whole(), lane);
        let share = self.split.share(self.whole(), lane).unwrap_or(self.whole());
        for tile in 0..self.tiles() {
            core.work(Pipe::Mte2, timing::copy(Pipe::Mte2, share.len() * self.stored.bytes()), "load").await;
            let stored = self.q.part((tile * self.tile_rows + row, col), share.rows, share.cols).tile(self.stored);
            core.work(Pipe::V, timing::vector(share.len()), "scale").await;
            end.push(&self.scaled(&Matrix::of(&stored), col).tile(DType::F32)).await?;
        }
        end.close().await
    }

    async fn cube(&self, core: Core, ring: Ring, setting: Setting) -> Result<Matrix, Fault> {
        let mut end = core.open(&ring).await?;
        let mut sum = Matrix::from_fn(self.a.rows(), self.q.cols(), |_, _| 0.0);
        for tile in 0..self.tiles() {
            let weights = Matrix::of(&end.pop_tile().await?);
            let cycles = timing::matmul(self.a.rows(), weights.rows(), weights.cols());
            setting.consume(&core, Pipe::M, cycles, "A W").await;
            end.free().await?;
            sum.add_product(&self.a.part((0, tile * self.tile_rows), self.a.rows(), self.tile_rows), &weights);
        }
        end.close().await?;
        Ok(sum)
    }
}
