//! Kernels that the tests share: a producer and consumers that check what they get.

use std::cell::Cell;
use std::rc::Rc;
use tilework_pto::{Cluster, Config, Core, CoreId, Direction, Fault, Output, Report, Ring, RingSpec, Shape, Tile};

/// The whole tile of this number: every element says which it is (`iteration * 1000 + index + 1`, as the documents'
/// tests have it).
pub fn whole(shape: Shape, number: usize) -> Tile {
    Tile::from_fn(shape, |row, col| (number * 1000 + row * shape.cols + col + 1) as f32)
}

/// What a Vector has of a whole tile, by plain indexing: rows `r0..r1`, columns `c0..c1`.
pub fn cut(tile: &Tile, rows: (usize, usize), cols: (usize, usize)) -> Tile {
    let (values, width) = (tile.to_f32(), tile.shape().cols);
    let shape = Shape::new(rows.1 - rows.0, cols.1 - cols.0, tile.shape().dtype);
    Tile::from_fn(shape, |row, col| values[(rows.0 + row) * width + cols.0 + col])
}

/// The upper or lower half.
pub fn half(tile: &Tile, core: CoreId) -> Tile {
    let (rows, cols) = (tile.shape().rows, tile.shape().cols);
    let middle = rows / 2;
    cut(tile, if core == CoreId::Vector0 { (0, middle) } else { (middle, rows) }, (0, cols))
}

/// Is the core on the sending end of a ring in one direction?
pub fn sends(direction: Direction, core: CoreId) -> bool {
    core.is_vector() != matches!(direction, Direction::C2V | Direction::C2vGm)
}

/// Runs `tiles` tiles over a ring in one direction, split up and down, and compares all of them. `pause` cycles pass
/// between pop and free.
pub fn stream(config: Config, spec: RingSpec, tiles: usize, pause: u64) -> Result<Report, Fault> {
    let mut cluster = Cluster::new(config);
    let ring = cluster.ring(spec)?;
    let wrong = Rc::new(Cell::new(0));
    let done: Vec<Output<()>> = CoreId::ALL
        .into_iter()
        .map(|id| {
            let (ring, wrong) = (ring.clone(), Rc::clone(&wrong));
            cluster.spawn(id, move |core| part(core, ring, tiles, pause, wrong))
        })
        .collect();
    let report = cluster.run()?;
    assert!(done.iter().all(|output| output.take().is_some()), "all kernels ended");
    if wrong.get() > 0 {
        return Err(Fault::Kernel(format!("{} tiles are not what was sent", wrong.get())));
    }
    Ok(report)
}

async fn part(core: Core, ring: Ring, tiles: usize, pause: u64, wrong: Rc<Cell<usize>>) -> Result<(), Fault> {
    let spec = ring.spec().clone();
    let id = core.id();
    let frees = !spec.pop_frees(core.arch());
    let mut end = core.open(&ring).await?;
    for number in 0..tiles {
        let tile = whole(spec.tile, number);
        let mine = if id.is_vector() { half(&tile, id) } else { tile };
        if sends(spec.direction, id) {
            end.push(&mine).await?;
            continue;
        }
        let popped = end.pop().await?;
        assert_eq!(popped.number() as usize, number);
        core.work(tilework_pto::Pipe::V, pause, "use").await;
        if end.read(&popped).await? != mine {
            wrong.set(wrong.get() + 1);
        }
        if frees {
            end.free().await?;
        }
    }
    end.close().await
}
