//! `A B + bias`: the Cube multiplies and pushes, the Vectors pop their shares and add
//! (`tpushpop_cv` and `tpushpop_subtile` of `pto-isa`).

use super::{Draw, Matrix, Parts, Ran, Setting, assemble, corner, finish, refused, require, vectors};
use crate::{Cluster, Core, CoreId, DType, Direction, Fault, Lane, Pipe, Ring, RingSpec, Shape, Split, timing};
use std::rc::Rc;

/// How tiles are transferred.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// TPUSH and TPOP of whole tiles.
    Tiles,
    /// The global-data form, where slots are in global memory: TALLOC, this many TSTOREs of equal
    /// parts of the columns, TPUSH; TPOP, as many TLOADs, TFREE.
    Parts(usize),
}

/// The example.
#[derive(Clone, PartialEq, Debug)]
pub struct MatmulBias {
    /// m x k.
    pub a: Matrix,
    /// k x n.
    pub b: Matrix,
    /// 1 x n, added to every row.
    pub bias: Matrix,
    /// Rows of a tile; a divisor of m.
    pub tile_rows: usize,
    /// How the Vectors share a tile.
    pub split: Split,
    /// C2V, or on A5 C2V through global memory.
    pub direction: Direction,
    /// How tiles are transferred.
    pub form: Form,
}

impl MatmulBias {
    /// 256 x 64 x 64 in 16 tiles, upper and lower halves. The inputs are small whole numbers, so
    /// that every sum is exact.
    pub fn of_seed(seed: u64) -> Self {
        let mut draw = Draw::new(seed);
        let (a, b, bias) = (draw.whole(256, 64, 5), draw.whole(64, 64, 5), draw.whole(1, 64, 5));
        Self { a, b, bias, tile_rows: 16, split: Split::UpDown, direction: Direction::C2V, form: Form::Tiles }
    }

    /// Plain arithmetic.
    pub fn expected(&self) -> Matrix {
        let product = self.a.times(&self.b);
        Matrix::from_fn(product.rows(), product.cols(), |row, col| product.row(row)[col] + self.bias.row(0)[col])
    }

    fn whole(&self) -> Shape {
        Shape::new(self.tile_rows, self.b.cols(), DType::F32)
    }

    fn tiles(&self) -> usize {
        self.a.rows() / self.tile_rows.max(1)
    }

    fn check(&self) -> Result<(), Fault> {
        let n = self.b.cols();
        require(self.a.cols() == self.b.rows(), "A needs as many columns as B has rows")?;
        require((self.bias.rows(), self.bias.cols()) == (1, n), "the bias needs one row and as many columns as B")?;
        require(self.a.rows().is_multiple_of(self.tile_rows), "the rows of a tile must divide those of A")?;
        let fits = |parts: usize| {
            let shares = Lane::ALL.map(|lane| self.split.share(self.whole(), lane).unwrap_or(self.whole()));
            shares.iter().chain([&self.whole()]).all(|share| share.cols.is_multiple_of(parts))
        };
        require(!matches!(self.form, Form::Parts(parts) if !fits(parts)), "parts must divide the columns of each share")
    }

    /// Runs it.
    pub fn run(&self, setting: &Setting) -> Ran {
        if let Err(fault) = self.check() {
            return refused(fault);
        }
        let mut cluster = Cluster::new(setting.config);
        let spec = RingSpec::new("product", self.direction, self.whole()).split(self.split);
        let ring = match cluster.ring(setting.ring(spec)) {
            Ok(ring) => ring,
            Err(error) => return refused(error),
        };
        let (example, setting) = (Rc::new(self.clone()), *setting);
        let (this, end) = (Rc::clone(&example), ring.clone());
        cluster.spawn(CoreId::Cube, async move |core| this.cube(core, end).await);
        let outputs: Vec<_> = vectors(&setting, self.split)
            .map(|(id, lane)| {
                let (this, end) = (Rc::clone(&example), ring.clone());
                cluster.spawn(id, async move |core| this.vector(core, end, lane, setting).await)
            })
            .collect();
        finish(cluster, || assemble(self.a.rows(), self.b.cols(), &outputs))
    }

    async fn cube(&self, core: Core, ring: Ring) -> Result<(), Fault> {
        let mut end = core.open(&ring).await?;
        let whole = self.whole();
        for tile in 0..self.tiles() {
            let a = self.a.part((tile * self.tile_rows, 0), self.tile_rows, self.a.cols());
            let product = a.times(&self.b);
            match self.form {
                Form::Tiles => {
                    core.work(Pipe::M, timing::matmul(a.rows(), a.cols(), whole.cols), "A B").await;
                    end.push(&product.tile(DType::F32)).await?;
                }
                Form::Parts(parts) => {
                    let slot = end.alloc().await?;
                    let cols = whole.cols / parts.max(1);
                    for col in (0..whole.cols).step_by(cols.max(1)) {
                        core.work(Pipe::M, timing::matmul(a.rows(), a.cols(), cols), "A B").await;
                        let part = product.part((0, col), whole.rows, cols.min(whole.cols - col));
                        end.store(&slot, 0, col, &part.tile(DType::F32)).await?;
                    }
                    end.push_slot(slot).await?;
                }
            }
        }
        end.close().await
    }

    async fn vector(&self, core: Core, ring: Ring, lane: Lane, setting: Setting) -> Result<Parts, Fault> {
        let mut end = core.open(&ring).await?;
        let (row, col) = corner(self.split, self.whole(), lane);
        let has_data = self.split.data_lanes().has(lane);
        let share = self.split.share(self.whole(), lane).unwrap_or(self.whole());
        let mut parts = Vec::new();
        for tile in 0..self.tiles() {
            let popped = match self.form {
                Form::Tiles => Matrix::of(&end.pop_tile().await?),
                Form::Parts(count) => {
                    let slot = end.pop_slot().await?;
                    let mut popped = Matrix::from_fn(share.rows, share.cols, |_, _| 0.0);
                    let cols = (share.cols / count.max(1)).max(1);
                    for col in (0..share.cols).step_by(cols) {
                        let part = Shape { cols: cols.min(share.cols - col), ..share };
                        popped.put((0, col), &Matrix::of(&end.load(&slot, 0, col, part).await?));
                    }
                    popped
                }
            };
            setting.consume(&core, Pipe::V, timing::vector(share.len()), "+ bias").await;
            end.free().await?;
            if has_data {
                let bias = &self.bias.row(0)[col..];
                let sum = Matrix::from_fn(share.rows, share.cols, |r, c| popped.row(r)[c] + bias[c]);
                parts.push(((tile * self.tile_rows + row, col), sum));
            }
        }
        Ok(parts)
    }
}
