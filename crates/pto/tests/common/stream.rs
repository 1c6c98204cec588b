//! A stream of tiles over one ring, whose consumers check the tiles.

use crate::tiles;
use std::cell::Cell;
use std::rc::Rc;
use tilework_pto::{Cluster, ClusterReport, Config, Core, CoreId, Direction, Fault, Output, Ring, RingSpec};

/// Whether the core sends on a ring in one direction.
fn sends(direction: Direction, core: CoreId) -> bool {
    core.is_vector() != matches!(direction, Direction::C2V | Direction::C2vGm)
}

/// Runs `tiles` tiles over a ring in one direction, split up and down, and compares all of them.
/// `pause` cycles pass between pop and free.
pub(crate) fn stream(config: Config, spec: RingSpec, tiles: usize, pause: u64) -> Result<ClusterReport, Fault> {
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
        let tile = tiles::whole(spec.tile, number);
        let mine = if id.is_vector() { tiles::half(&tile, id) } else { tile };
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
