//! The bank-to-NoC table that the host writes into every tile.
//!
//! Follows the seed's system (`build_bank_noc_table`) and [`tilework_abi::l1::bank_table`]: encoded
//! coordinates (u16) of each logical DRAM bank on NoC 0 and NoC 1, then of each L1 bank twice, then
//! an offset (i32, zero) for each bank. The numbers of banks follow at their own places, because
//! ours is one firmware for all boards and dispatch layouts.
//!
//! The seed's table has 110 L1 banks that count through all Tensix tiles, the two dispatch cores
//! among them, so that a buffer interleaved over them would overwrite the queues. Here the banks
//! are the workers of the dispatch layout ([`l1_banks`]).

use tilework_abi::board::DramMap;
use tilework_abi::convert::{u16_of, u32_of};
use tilework_abi::l1::bank_table as abi;
use tilework_abi::noc::NocXy;

/// The L1 banks of a board with these workers: row by row, as in the seed's table.
pub fn l1_banks(workers: &[NocXy]) -> Vec<NocXy> {
    let mut banks = workers.to_vec();
    banks.sort_by_key(|tile| (tile.y, tile.x));
    banks
}

/// The bytes of the table for `dram` and the tiles `l1` of the L1 banks, from the table's start to
/// the end of the numbers of banks.
pub fn bank_table(dram: &DramMap, l1: &[NocXy]) -> Vec<u8> {
    let banks = dram.banks().len();
    let mut out = Vec::with_capacity(abi::BYTES as usize);
    // Coordinates have twelve bits.
    let mut put = |xy: NocXy| out.extend_from_slice(&u16_of(xy.encode()).to_le_bytes());
    for noc in 0..2 {
        for bank in 0..banks {
            put(dram.port(bank, noc));
        }
    }
    for _ in 0..2 {
        l1.iter().copied().for_each(&mut put);
    }
    out.resize(abi::DRAM_BANKS as usize, 0);
    out.extend_from_slice(&u32_of(banks).to_le_bytes());
    out.extend_from_slice(&u32_of(l1.len()).to_le_bytes());
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilework_abi::board::Board;

    fn half(table: &[u8], at: u32) -> u16 {
        u16::from_le_bytes([table[at as usize], table[at as usize + 1]])
    }
    fn xy(x: u16, y: u16) -> u16 {
        y << 6 | x
    }
    fn table(board: Board) -> (Vec<NocXy>, Vec<u8>) {
        let banks = l1_banks(&board.workers().collect::<Vec<_>>());
        let table = bank_table(&board.dram(), &banks);
        assert_eq!(table.len(), abi::BYTES as usize);
        (banks, table)
    }

    /// The DRAM banks by hand from the seed's function with bank 7 harvested: banks 0, 1, 2 are the
    /// first three of column 17, bank 3 (the mirror of 7) its last, banks 4 to 6 are column 18;
    /// ports [2,1] for banks 0, 4, 5, 6 and [0,1] for 1, 2, 3.
    #[test]
    fn p100_table_is_the_seeds_without_the_dispatch_cores() {
        let (_, table) = table(Board::P100);
        let noc0 = [xy(17, 14), xy(17, 15), xy(17, 18), xy(17, 21), xy(18, 14), xy(18, 17), xy(18, 20)];
        let noc1 = [xy(17, 13), xy(17, 16), xy(17, 19), xy(17, 22), xy(18, 13), xy(18, 16), xy(18, 19)];
        for (bank, (&on0, &on1)) in (0..).zip(noc0.iter().zip(&noc1)) {
            assert_eq!(half(&table, abi::dram_xy(0, bank, 7)), on0, "bank {bank} on NoC 0");
            assert_eq!(half(&table, abi::dram_xy(1, bank, 7)), on1, "bank {bank} on NoC 1");
        }
        let l1 = |noc, bank| half(&table, abi::l1_xy(noc, bank, 7, 118));
        assert_eq!(abi::l1_xy(0, 0, 7, 118), 28);
        // The rows of the prefetcher and the dispatcher have eleven banks each, the others twelve.
        assert_eq!(
            [0, 7, 10, 11, 21, 22, 33, 34].map(|bank| l1(0, bank)),
            [xy(1, 2), xy(10, 2), xy(13, 2), xy(1, 3), xy(13, 3), xy(1, 4), xy(14, 4), xy(1, 5),]
        );
        assert_eq!([l1(0, 117), l1(1, 0), l1(1, 117)], [xy(14, 11), xy(1, 2), xy(14, 11)]);
        assert!(table[28 + 4 * 118..0xFF0].iter().all(|&b| b == 0));
        assert_eq!(table[0xFF0..], [7, 0, 0, 0, 118, 0, 0, 0]);
    }

    #[test]
    fn p150_table_has_eight_banks() {
        let (_, table) = table(Board::P150);
        let first = [xy(17, 14), xy(17, 15), xy(17, 18), xy(17, 21), xy(18, 14), xy(18, 17), xy(18, 20), xy(18, 23)];
        for (bank, &at) in (0..).zip(&first) {
            assert_eq!(half(&table, abi::dram_xy(0, bank, 8)), at, "bank {bank} on NoC 0");
        }
        assert_eq!(half(&table, abi::dram_xy(1, 7, 8)), xy(18, 22));
        assert_eq!(half(&table, abi::l1_xy(0, 13, 8, 138)), xy(1, 3));
        assert_eq!(table[0xFF0..], [8, 0, 0, 0, 138, 0, 0, 0]);
    }

    #[test]
    fn no_dispatch_core_is_a_bank() {
        for board in Board::ALL {
            let (banks, table) = table(board);
            let dram = u32_of(board.dram().banks().len());
            let found: Vec<u16> = (0..u32_of(banks.len()))
                .map(|bank| half(&table, abi::l1_xy(1, bank, dram, u32_of(banks.len()))))
                .collect();
            assert_eq!(found.len(), board.tensix_count() - 2);
            for core in [board.prefetch_core(), board.dispatch_core()] {
                assert!(!found.contains(&u16_of(core.encode())), "{core} of a {}", board.name());
            }
        }
    }
}
