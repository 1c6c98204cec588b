//! Sets of workers, and the rectangles that multicasts reach them by.

use crate::lower::rectangles;
use tilework_abi::convert::{u8_of, u32_of};
use tilework_abi::grid;
use tilework_abi::noc::{NocRect, NocXy};

/// Tensix tiles of a whole chip.
const TILES: usize = grid::TENSIX_COLUMNS.len() * (grid::TENSIX_ROW_LAST - grid::TENSIX_ROW_FIRST + 1) as usize;
/// Words of a set.
const WORDS: usize = TILES.div_ceil(64);

/// A set of workers, by their position in the device's order.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct CoreSet([u64; WORDS]);

impl CoreSet {
    /// The set of these positions.
    pub(super) fn of(positions: impl IntoIterator<Item = usize>) -> Self {
        let mut set = Self::default();
        for i in positions {
            set.0[i / 64] |= 1 << (i % 64);
        }
        set
    }
    /// What is in this set and not in `other`.
    pub(super) fn without(mut self, other: &Self) -> Self {
        self.0.iter_mut().zip(&other.0).for_each(|(word, other)| *word &= !other);
        self
    }
    /// What is in one of them.
    pub(super) fn with(mut self, other: &Self) -> Self {
        self.0.iter_mut().zip(&other.0).for_each(|(word, other)| *word |= other);
        self
    }
    /// Whether it has no member.
    pub(super) fn is_empty(&self) -> bool {
        self.0.iter().all(|&word| word == 0)
    }
    /// Its members, ascending.
    pub(super) fn iter(self) -> impl Iterator<Item = usize> {
        (0..WORDS).flat_map(move |i| {
            let mut left = self.0[i];
            std::iter::from_fn(move || {
                let bit = (left != 0).then(|| left.trailing_zeros() as usize)?;
                left &= left - 1;
                Some(64 * i + bit)
            })
        })
    }
}

/// A rectangle of a multicast: its NoC word for the dispatcher, which writes on NoC 1, and its
/// number of workers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Rect {
    /// The encoded rectangle.
    pub xy: u32,
    /// Tiles that receive and acknowledge.
    pub tiles: u8,
}

/// Rectangles that hold exactly `cores`. `columns` are those that have Tensix tiles, ascending;
/// multicasts pass over the others, so a rectangle may span them.
pub(super) fn multicast(cores: impl IntoIterator<Item = NocXy>, columns: &[u8]) -> Vec<Rect> {
    let position = |c: NocXy| {
        // A core of no such column has no place: it is not a worker.
        let x = columns.binary_search(&c.x).unwrap_or(columns.len());
        NocXy::new(u8_of(u32_of(x)), c.y)
    };
    let cores: Vec<NocXy> = cores.into_iter().map(position).collect();
    let column = |x: u8| columns.get(usize::from(x)).copied().unwrap_or(x);
    let rect = |rect: NocRect| {
        let place = |c: NocXy| NocXy::new(column(c.x), c.y);
        let placed = NocRect { start: place(rect.start), end: place(rect.end) };
        Rect { xy: placed.encode_noc1(), tiles: u8_of(rect.area()) }
    };
    rectangles(&cores).into_iter().map(rect).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tilework_abi::board::Board;

    #[test]
    fn all_workers_are_two_rectangles() {
        for (board, tiles) in [(Board::P100, [110, 8]), (Board::P150, [130, 8])] {
            let rects = multicast(board.workers(), board.worker_columns());
            assert_eq!(rects.iter().map(|r| r.tiles).collect::<Vec<_>>(), tiles);
        }
    }

    proptest! {
        /// Every core is in exactly one rectangle, no other Tensix tile is in any.
        #[test]
        fn rectangles_hold_exactly_the_cores(mask in prop::collection::vec(any::<bool>(), 118)) {
            let board = Board::P100;
            let cores: Vec<NocXy> = board.workers().zip(&mask).filter_map(|(c, &on)| on.then_some(c)).collect();
            let rects = multicast(cores.iter().copied(), board.worker_columns());
            for tile in board.tensix_tiles() {
                let inside = rects.iter().filter(|r| {
                    let (end, start) = (NocXy::decode(r.xy >> 12), NocXy::decode(r.xy));
                    (start.x..=end.x).contains(&tile.x) && (start.y..=end.y).contains(&tile.y)
                });
                prop_assert_eq!(inside.count(), usize::from(cores.contains(&tile)));
            }
            prop_assert_eq!(rects.iter().map(|r| usize::from(r.tiles)).sum::<usize>(), cores.len());
        }

        #[test]
        fn sets_are_sets(a in prop::collection::btree_set(0usize..140, 0..140), b in prop::collection::btree_set(0usize..140, 0..140)) {
            let (x, y) = (CoreSet::of(a.iter().copied()), CoreSet::of(b.iter().copied()));
            prop_assert!(x.iter().eq(a.iter().copied()));
            prop_assert!(x.without(&y).iter().eq(a.difference(&b).copied()));
            prop_assert!(x.with(&y).iter().eq(a.union(&b).copied()));
            prop_assert_eq!(x.without(&y).is_empty(), a.is_subset(&b));
        }
    }
}
