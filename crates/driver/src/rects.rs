//! Multicast rectangles for a set of tiles.

use std::collections::{BTreeMap, BTreeSet};
use tilework_abi::noc::{NocRect, NocXy};

/// Rectangles that hold exactly the given tiles, each once, in the order of their start corners.
///
/// Columns with the same run of rows are joined while they are neighbours, as the seed's host does
/// with whole columns. For a set of whole columns (all workers of a board) this is the smallest
/// number of rectangles; in general it is not.
pub fn cover(tiles: &[NocXy]) -> Vec<NocRect> {
    let mut columns: BTreeMap<u8, BTreeSet<u8>> = BTreeMap::new();
    for tile in tiles {
        columns.entry(tile.x).or_default().insert(tile.y);
    }
    let mut rects: Vec<NocRect> = Vec::new();
    for (x, rows) in columns {
        for (y0, y1) in runs(rows) {
            let grown =
                rects.iter_mut().find(|r| (r.start.y, r.end.y) == (y0, y1) && r.end.x.checked_add(1) == Some(x));
            match grown {
                Some(rect) => rect.end.x = x,
                None => rects.push(NocRect { start: NocXy::new(x, y0), end: NocXy::new(x, y1) }),
            }
        }
    }
    rects
}

/// Runs of consecutive numbers: first and last.
fn runs(sorted: BTreeSet<u8>) -> Vec<(u8, u8)> {
    let mut runs: Vec<(u8, u8)> = Vec::new();
    for v in sorted {
        match runs.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(v) => *last = v,
            _ => runs.push((v, v)),
        }
    }
    runs
}
