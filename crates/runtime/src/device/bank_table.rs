//! The bank-to-NoC table that the host writes into every tile.
//!
//! Follows the seed's system (`build_bank_noc_table`) and [`tilework_abi::l1::bank_table`]: encoded
//! coordinates (u16) of each logical DRAM bank on NoC 0 and NoC 1, then of 110 L1 banks twice, then
//! an offset (i32, zero) for each bank. The number of DRAM banks follows at its own place, because
//! ours is one firmware for boards with seven and eight.
//!
//! As in the seed's system the L1 banks count through all Tensix tiles, the two dispatch cores
//! included: pages interleaved over L1 banks would reach their queues too. The runtime interleaves
//! over DRAM only.

use tilework_abi::board::{DramMap, WORKER_Y_FIRST, WORKER_Y_LAST};
use tilework_abi::convert::{u16_of, u32_of};
use tilework_abi::l1::bank_table as abi;
use tilework_abi::noc::NocXy;

/// L1 banks of the table (the original's `hw.py`).
const L1_BANKS: usize = 110;

/// The bytes of the table for `dram` and the tile columns `columns`, from the table's start to the
/// end of the number of banks.
pub fn bank_table(dram: &DramMap, columns: &[u8]) -> Vec<u8> {
    let banks = dram.banks().len();
    let mut out = Vec::with_capacity(abi::DRAM_BANKS as usize + 4);
    // Coordinates have twelve bits.
    let mut put = |xy: NocXy| out.extend_from_slice(&u16_of(xy.encode()).to_le_bytes());
    for noc in 0..2 {
        for bank in 0..banks {
            put(dram.port(bank, noc));
        }
    }
    for _ in 0..2 {
        // Row by row, and from the first row again while there are banks.
        let rows = (WORKER_Y_FIRST..=WORKER_Y_LAST).cycle();
        let tiles = rows.flat_map(|y| columns.iter().map(move |&x| NocXy::new(x, y)));
        tiles.take(L1_BANKS).for_each(&mut put);
    }
    out.resize(abi::DRAM_BANKS as usize, 0);
    out.extend_from_slice(&u32_of(banks).to_le_bytes());
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilework_abi::board::Board;

    fn half(table: &[u8], at: usize) -> u16 {
        u16::from_le_bytes([table[at], table[at + 1]])
    }
    fn xy(x: u16, y: u16) -> u16 {
        y << 6 | x
    }

    /// By hand from the seed's function with bank 7 harvested: banks 0, 1, 2 are the first three of
    /// column 17, bank 3 (the mirror of 7) its last, banks 4 to 6 are column 18; ports [2,1] for
    /// banks 0, 4, 5, 6 and [0,1] for 1, 2, 3.
    #[test]
    fn p100_table_is_the_seeds() {
        let table = bank_table(&Board::P100.dram(), Board::P100.worker_columns());
        let noc0 = [xy(17, 14), xy(17, 15), xy(17, 18), xy(17, 21), xy(18, 14), xy(18, 17), xy(18, 20)];
        let noc1 = [xy(17, 13), xy(17, 16), xy(17, 19), xy(17, 22), xy(18, 13), xy(18, 16), xy(18, 19)];
        for bank in 0..7 {
            assert_eq!(half(&table, 2 * bank), noc0[bank], "bank {bank} on NoC 0");
            assert_eq!(half(&table, 14 + 2 * bank), noc1[bank], "bank {bank} on NoC 1");
        }
        let l1 = 28;
        assert_eq!(half(&table, l1), xy(1, 2));
        assert_eq!(half(&table, l1 + 2 * 7), xy(10, 2));
        assert_eq!(half(&table, l1 + 2 * 12), xy(1, 3));
        assert_eq!(half(&table, l1 + 2 * 109), xy(2, 11));
        assert_eq!(half(&table, l1 + 220), xy(1, 2));
        assert!(table[l1 + 440..0xFF0].iter().all(|&b| b == 0));
        assert_eq!(table[0xFF0..], [7, 0, 0, 0]);
    }

    #[test]
    fn p150_table_has_eight_banks() {
        let table = bank_table(&Board::P150.dram(), Board::P150.worker_columns());
        let first = [xy(17, 14), xy(17, 15), xy(17, 18), xy(17, 21), xy(18, 14), xy(18, 17), xy(18, 20), xy(18, 23)];
        for (bank, &at) in first.iter().enumerate() {
            assert_eq!(half(&table, 2 * bank), at, "bank {bank} on NoC 0");
        }
        assert_eq!(half(&table, 16 + 2 * 7), xy(18, 22));
        assert_eq!(half(&table, 32 + 2 * 14), xy(1, 3));
        assert_eq!(table[0xFF0..], [8, 0, 0, 0]);
    }
}
