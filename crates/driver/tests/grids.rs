//! Chips that differ in what is fused off and in whether they translate coordinates, as a host sees
//! them through its windows.

use tilework_abi::addr::{DramAddr, L1Addr};
use tilework_abi::board::{Board, Harvesting};
use tilework_abi::grid::{Site, dram_port};
use tilework_abi::noc::{NocRect, NocXy};
use tilework_driver::{Card, Target};
use tilework_sim::{Chip, ChipConfig};

fn card(config: ChipConfig) -> Card<Chip> {
    Card::open(Chip::new(config).unwrap()).unwrap()
}

fn word(card: &mut Card<Chip>, xy: NocXy, addr: u64) -> u32 {
    let mut bytes = [0; 4];
    card.read(&Target::tile(xy), addr, &mut bytes).unwrap();
    u32::from_le_bytes(bytes)
}

/// The place on NoC 0 that the NIU at `xy` names, and what it calls itself.
fn identity(card: &mut Card<Chip>, xy: NocXy, base: u64) -> (NocXy, NocXy) {
    let node_id = word(card, xy, base + 0x44);
    (NocXy::decode(node_id), NocXy::decode(word(card, xy, base + 0x148)))
}

#[test]
fn memory_is_reached_wherever_columns_and_banks_are_missing() {
    // Columns 2, 14 and 7 (bits 2, 5 and 12) and bank 2 are gone.
    let harvesting = Harvesting { tensix: 1 << 2 | 1 << 5 | 1 << 12, dram: 1 << 2, ethernet: 0x120 };
    for translation in [true, false] {
        let mut card = card(ChipConfig { harvesting, translation, ..ChipConfig::new(Board::P150) });
        let tiles: Vec<NocXy> = card.link().tiles().collect();
        assert_eq!(tiles.len(), 110);
        let columns = if translation { [1, 2, 12, 13] } else { [1, 3, 15, 16] };
        let ends = [tiles[0].x, tiles[10].x, tiles[90].x, tiles[100].x];
        assert_eq!(ends, columns, "translation {translation}");
        for &xy in &[tiles[0], tiles[57], tiles[109]] {
            card.write(&Target::tile(xy), L1Addr::new(0x1_0000), &[xy.x, xy.y, 7]).unwrap();
            assert_eq!(word(&mut card, xy, 0x1_0000), u32::from_le_bytes([xy.x, xy.y, 7, 0]));
            let (place, logical) = identity(&mut card, xy, 0xFFB2_0000);
            assert_eq!(logical, xy);
            assert_eq!(place == xy, !translation || xy.x == 1, "{xy} is {place}");
            assert!(harvesting.has_column(place.x));
        }
        // Bank 5 (physical), whose ports are its own on every kind of chip; bank 2 has none.
        for port in 0..3 {
            let physical = dram_port(5, port);
            // Without bank 2 of the west column, the east column is 17, and its bank 5 comes second
            // there.
            let xy = if translation { NocXy::new(17, 15 + port as u8) } else { physical };
            card.write(&Target::tile(xy), DramAddr::new(0x1000 + port as u64 * 64), &[port as u8 + 1; 4]).unwrap();
            assert_eq!(identity(&mut card, xy, 0xFFB2_0000).0, physical);
            assert_eq!(word(&mut card, xy, 0x1000), 0x0101_0101, "one memory behind three ports");
        }
        let gone = dram_port(2, 0);
        let logical = if translation { NocXy::new(18, 21) } else { gone };
        assert_eq!(identity(&mut card, gone, 0xFFB2_0000), (gone, logical), "the NIUs of the bank that is gone answer");
        let telemetry = card.telemetry().unwrap();
        assert_eq!(telemetry.harvesting().unwrap(), harvesting);
        assert_eq!(telemetry.translation().unwrap(), translation);
        // tt-umd asks the NIU of the PCIe tile's bus side and of the ARC.
        assert_eq!(word(&mut card, NocXy::new(8, 0), 0x8005_0100) >> 14 & 1, u32::from(translation));
    }
}

#[test]
fn a_multicast_reaches_the_columns_that_work() {
    let harvesting = Harvesting { tensix: 1 << 2 | 1 << 5, ..Harvesting::NONE };
    let mut card = card(ChipConfig { harvesting, ..ChipConfig::new(Board::P150) });
    let all = NocRect { start: NocXy::new(1, 2), end: NocXy::new(14, 11) };
    card.write(&Target::rect(all), L1Addr::new(0x2000), &[1, 2, 3, 4]).unwrap();
    for xy in [NocXy::new(1, 2), NocXy::new(2, 7), NocXy::new(13, 3), NocXy::new(14, 11)] {
        assert_eq!(word(&mut card, xy, 0x2000), 0x0403_0201, "{xy}");
    }
}

/// Every position answers with its own place under the coordinates that it calls its own, over both
/// NoCs.
#[test]
fn every_tile_of_both_boards_answers_at_its_own_coordinates() {
    for board in [Board::P100, Board::P150] {
        let mut card = card(ChipConfig::new(board));
        for (x, y) in (0..17).flat_map(|x| (0..12).map(move |y| (x, y))) {
            let base = match Site::at(x, y).unwrap() {
                Site::Tensix | Site::Ethernet { .. } | Site::Dram { .. } | Site::Empty => 0xFFB2_0000,
                _ => 0xFFFF_FFFF_FFB2_0000,
            };
            let at = NocXy::new(x, y);
            // On these boards the columns that work keep their NoC 0 coordinates, and so do the
            // harvested ones.
            let (place, logical) = identity(&mut card, at, base);
            assert_eq!(place, at, "{}", board.name());
            let again = identity(&mut card, logical, base);
            assert_eq!(again, (place, logical), "{} at {at}", board.name());
        }
    }
}
