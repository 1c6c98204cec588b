//! Which workers do which part of an operation.

use tilework_abi::noc::NocXy;

/// A rectangle of workers: every crossing of its columns and rows is one. The columns need not be
/// neighbours; those between are no workers (DRAM, PCIe, the command queue).
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Rectangle {
    columns: Vec<u8>,
    rows: Vec<u8>,
}

impl Rectangle {
    /// The largest one that begins in the first row, by leaving out columns with fewer workers.
    pub(crate) fn of(workers: &[NocXy]) -> Self {
        let sorted = |of: fn(&NocXy) -> u8| {
            let mut all: Vec<u8> = workers.iter().map(of).collect();
            all.sort_unstable();
            all.dedup();
            all
        };
        let (columns, rows) = (sorted(|tile| tile.x), sorted(|tile| tile.y));
        let full = |x: &u8| rows.iter().all(|&y| workers.contains(&NocXy { x: *x, y }));
        Self { columns: columns.into_iter().filter(full).collect(), rows }
    }

    /// Its columns and rows.
    pub(crate) fn size(&self) -> (u32, u32) {
        (self.columns.len() as u32, self.rows.len() as u32)
    }

    /// The first columns and rows of it.
    pub(crate) fn first(&self, columns: u32, rows: u32) -> Self {
        let cut = |list: &[u8], n: u32| list.iter().copied().take(n as usize).collect();
        Self { columns: cut(&self.columns, columns), rows: cut(&self.rows, rows) }
    }

    /// The worker at a column and row.
    pub(crate) fn at(&self, column: u32, row: u32) -> NocXy {
        NocXy { x: self.columns[column as usize], y: self.rows[row as usize] }
    }

    /// All workers, column by column.
    pub(crate) fn workers(&self) -> Vec<NocXy> {
        self.columns.iter().flat_map(|&x| self.rows.iter().map(move |&y| NocXy { x, y })).collect()
    }
}

/// The largest divisor of `n` that is at most `most`; at least 1.
pub(crate) fn divisor(n: u32, most: u32) -> u32 {
    (1..=most.min(n)).rev().find(|d| n.is_multiple_of(*d)).unwrap_or(1)
}

/// The first of `n` things that part `i` of `parts` has, and how many; as even as can be.
pub(crate) fn share(n: u32, parts: u32, i: u32) -> (u32, u32) {
    let (each, more) = (n / parts, n % parts);
    (each * i + more.min(i), each + u32::from(i < more))
}

/// A worker as kernels take it.
pub(crate) fn word(tile: NocXy) -> u32 {
    u32::from(tile.y) << 6 | u32::from(tile.x)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rectangle_leaves_out_what_is_no_worker() {
        let tiles = |skip: NocXy| {
            let all = [1, 2, 4].into_iter().flat_map(|x| (2..5).map(move |y| NocXy { x, y }));
            all.filter(|tile| *tile != skip).collect::<Vec<_>>()
        };
        let whole = Rectangle::of(&tiles(NocXy { x: 0, y: 0 }));
        assert_eq!(whole.size(), (3, 3));
        assert_eq!(whole.at(2, 1), NocXy { x: 4, y: 3 });
        assert_eq!(Rectangle::of(&tiles(NocXy { x: 2, y: 4 })).columns, [1, 4]);
    }

    #[test]
    fn parts_are_even_and_whole() {
        for (n, parts) in [(10, 3), (3, 10), (0, 4), (118, 118)] {
            let shares: Vec<_> = (0..parts).map(|i| share(n, parts, i)).collect();
            assert_eq!(shares.iter().map(|(_, count)| count).sum::<u32>(), n);
            assert!(shares.windows(2).all(|pair| pair[0].0 + pair[0].1 == pair[1].0));
        }
        assert_eq!([divisor(12, 8), divisor(13, 10), divisor(4, 10)], [6, 1, 4]);
    }
}
