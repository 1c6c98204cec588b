//! Coordinates and rectangles of both boards.

use super::{board_grid, tile};
use crate::noc::{Grid, GridBuilder, GridError, Place, TileKind};
use std::sync::Arc;
use tilework_abi::board::{self, Board, Harvesting};
use tilework_abi::grid::Site;
use tilework_abi::noc::{NocRect, NocXy};

fn rect(x0: u8, y0: u8, x1: u8, y1: u8) -> NocRect {
    NocRect { start: NocXy::new(x0, y0), end: NocXy::new(x1, y1) }
}

fn xys(tiles: &[Place]) -> Vec<(u8, u8)> {
    tiles.iter().map(|p| (p.x, p.y)).collect()
}

#[test]
fn translated_coordinates_are_the_same_on_both_nocs() {
    for board in [Board::P100, Board::P150] {
        let grid = board_grid(board);
        for xy in board.tensix_tiles().chain([board::PCIE, board::ARC]) {
            let (a, b) = (grid.resolve(0, xy.encode()), grid.resolve(1, xy.encode()));
            assert!(a.is_some() && a == b, "{xy}");
        }
        for bank in 0..board.dram().banks().len() {
            for noc in 0..2 {
                let port = board.dram().port(bank, noc);
                let place = grid.resolve(noc as u8, port.encode()).expect("a port");
                assert_eq!(grid.kind(place), Some(TileKind::Dram));
            }
        }
    }
}

#[test]
fn noc_0_coordinates_work_beside_the_translated_ones() {
    let grid = board_grid(Board::P150);
    let pcie = grid.resolve(0, board::PCIE.encode()).expect("the PCIe tile");
    assert_eq!((pcie.x, pcie.y), (2, 0));
    assert_eq!(grid.resolve(0, NocXy::new(2, 0).encode()), Some(pcie));
    assert_eq!(grid.resolve(1, NocXy::new(14, 11).encode()), Some(tile(&grid, 14, 11)));
    // The tables of NoC 1 mirror those of NoC 0, so that (0, 11), a DRAM port, is the same
    // tile on both.
    let dram = grid.resolve(1, NocXy::new(0, 11).encode()).expect("a DRAM port");
    assert_eq!((dram.x, dram.y, grid.kind(dram)), (0, 11, Some(TileKind::Dram)));
    // Rows 0 and 1 keep the X of NoC 1: (16, 0) is NoC 0's (0, 0).
    let corner = grid.resolve(1, NocXy::new(16, 0).encode()).expect("a DRAM port");
    assert_eq!((corner.x, corner.y), (0, 0));
}

/// The 18 empty tiles as tt-umd reaches them over NoC 1 (`ROUTER_NOC1_TO_TRANSLATED_BLACKHOLE`):
/// NoC 1 coordinates, then what software writes.
#[test]
fn empty_tiles_are_where_the_public_driver_finds_them_on_noc_1() {
    let grid = GridBuilder::new(Board::P150.harvesting(), true).fill(0).build().expect("everything fits");
    let top = [15, 13, 12, 11, 10, 9, 6, 4, 3, 2, 1, 0].map(|x| ((x, 11), (x, 0)));
    let middle =
        [((8, 10), (8, 1)), ((8, 1), (8, 10)), ((8, 3), (8, 8)), ((8, 5), (8, 6)), ((8, 7), (8, 4)), ((8, 0), (8, 11))];
    for ((x, y), software) in top.into_iter().chain(middle) {
        let place = grid.resolve(1, NocXy::new(software.0, software.1).encode()).expect("a tile");
        assert_eq!((place.x, place.y), (16 - x, 11 - y), "{software:?}");
        assert_eq!(Site::at(place.x, place.y), Some(Site::Empty));
    }
}

/// Ethernet channels at (20..31, 25), without channels 5 and 8 as on tt-umd's P150; L2CPU and
/// security as in tt-zephyr-platforms `noc_init.c`.
#[test]
fn ethernet_l2cpu_and_security_tiles_have_translated_coordinates() {
    let grid = GridBuilder::new(Board::P150.harvesting(), true).fill(0).build().expect("everything fits");
    for (i, column) in (0..).zip([1, 16, 2, 15, 3, 4, 13, 12, 6, 11, 7, 10]) {
        let software = NocXy::new(20 + i, 25);
        for noc in 0..2 {
            let place = grid.resolve(noc, software.encode()).expect("an Ethernet tile");
            assert_eq!((place.x, place.y), (column, 1), "channel {i} on NoC {noc}");
            assert_eq!(grid.logical(noc, place), software);
        }
    }
    // A harvested channel keeps its NoC 0 coordinates.
    let gone = grid.resolve(0, NocXy::new(14, 1).encode()).expect("a tile");
    assert!(!grid.works(gone) && grid.logical(0, gone) == NocXy::new(14, 1));
    for (software, at) in
        [((8, 26), (8, 3)), ((8, 27), (8, 9)), ((8, 28), (8, 5)), ((8, 29), (8, 7)), ((8, 30), (8, 2))]
    {
        let place = grid.resolve(0, NocXy::new(software.0, software.1).encode()).expect("a tile");
        assert_eq!((place.x, place.y), at);
        assert_eq!(grid.logical(1, place), NocXy::new(software.0, software.1));
    }
}

/// Columns 1, 16 and 3 harvested (bits 0, 1 and 4): the others move to the left, and the harvested
/// ones come last, the first bit at the very end (tt-umd `fill_tensix_noc0_translated_mapping`).
#[test]
fn harvested_columns_are_translated_to_the_end() {
    let harvesting = Harvesting { tensix: 0b1_0011, ..Harvesting::NONE };
    let grid = GridBuilder::new(harvesting, true).fill(0).build().expect("everything fits");
    let expected = [2, 4, 5, 6, 7, 10, 11, 12, 13, 14, 15, 3, 16, 1];
    for (x, column) in [1, 2, 3, 4, 5, 6, 7, 10, 11, 12, 13, 14, 15, 16].into_iter().zip(expected) {
        for noc in 0..2 {
            let place = grid.resolve(noc, NocXy::new(x, 5).encode()).expect("a tile");
            assert_eq!((place.x, place.y), (column, 5), "x {x} on NoC {noc}");
            assert_eq!(grid.logical(noc, place), NocXy::new(x, 5));
        }
        // Rows 0 and 1 are not moved.
        assert_eq!(grid.resolve(0, NocXy::new(x, 1).encode()).map(|p| p.x), Some(x));
    }
    // A multicast over all columns that work passes the harvested ones by.
    let tiles = grid.rectangle(0, rect(1, 2, 13, 2).encode(), None).expect("tiles");
    assert_eq!(tiles.iter().map(|p| p.x).collect::<Vec<_>>(), [2, 4, 5, 6, 7, 10, 11, 12, 13, 14, 15]);
    let noc1 = grid.rectangle(1, rect(1, 2, 13, 2).encode_noc1(), None).expect("tiles");
    assert_eq!(tiles, noc1);
}

/// Every chip with one DRAM bank gone: its ports are where the logical map of the driver's
/// tables has them.
#[test]
fn any_dram_bank_may_be_harvested() {
    for gone in [None, Some(0), Some(1), Some(2), Some(3), Some(4), Some(5), Some(6), Some(7)] {
        let dram = gone.map_or(0, |bank: u8| 1 << bank);
        let grid = GridBuilder::new(Harvesting { dram, ..Harvesting::NONE }, true).fill(0).build().expect("fits");
        for bank in board::DramMap::new(gone).banks() {
            for (port, at) in
                (0..3).map(|port| (port, tilework_abi::grid::dram_port(bank.physical.into(), port.into())))
            {
                let software = NocXy::new(bank.first_port.x, bank.first_port.y + port);
                for noc in 0..2 {
                    let place = grid.resolve(noc, software.encode()).expect("a port");
                    assert_eq!((place.x, place.y), (at.x, at.y), "bank {} port {port}, {gone:?} gone", bank.physical);
                    assert_eq!(grid.logical(noc, place), software);
                }
            }
        }
    }
    let two = GridBuilder::new(Harvesting { dram: 3, ..Harvesting::NONE }, true).build();
    assert_eq!(two.err(), Some(GridError::Harvesting { columns: 0, banks: 2 }));
}

#[test]
fn without_translation_each_noc_has_its_own_coordinates() {
    let harvesting = Harvesting { tensix: 0xFF, dram: 0x11, ethernet: 0 };
    let grid = GridBuilder::new(harvesting, false).fill(0).build().expect("everything fits");
    for (noc, software, at) in
        [(0, (8, 0), (8, 0)), (1, (8, 11), (8, 0)), (1, (14, 11), (2, 0)), (0, (16, 2), (16, 2)), (1, (0, 9), (16, 2))]
    {
        let place = grid.resolve(noc, NocXy::new(software.0, software.1).encode()).expect("a tile");
        assert_eq!((place.x, place.y), at);
        assert_eq!(grid.logical(noc, place), NocXy::new(software.0, software.1), "NOC_ID_LOGICAL as after power-on");
    }
    for nowhere in [board::PCIE, NocXy::new(17, 12), NocXy::new(17, 0), NocXy::new(0, 12)] {
        assert_eq!(grid.resolve(0, nowhere.encode()), None);
    }
    assert_eq!(
        grid.niu_register(0, tile(&grid, 1, 2), 0x100),
        Some(1 << 12),
        "no translation, and the tile's clock is off"
    );
    // Columns 5, 12, 6, 11, 7 and 10 are left.
    let tiles = grid.rectangle(1, rect(16, 9, 0, 9).encode_noc1(), None).expect("tiles");
    assert_eq!(xys(&tiles), [(5, 2), (6, 2), (7, 2), (10, 2), (11, 2), (12, 2)], "row 9 of NoC 1 from edge to edge");
    let tiles = grid.rectangle(0, rect(1, 9, 16, 9).encode(), None).expect("tiles");
    assert_eq!(xys(&tiles), [(5, 9), (6, 9), (7, 9), (10, 9), (11, 9), (12, 9)]);
}

/// Register values worked by hand from the tables above: six entries of five bits a register
/// (NoC/MemoryMap.md).
#[test]
fn nius_show_the_translation_tables() {
    let grid = GridBuilder::new(Board::P100.harvesting(), true).fill(0).build().expect("everything fits");
    let place = tile(&grid, 3, 4);
    let read = |noc, off| grid.niu_register(noc, place, off).expect("a register");
    let pack = |entries: [u32; 6]| entries.iter().rev().fold(0, |word, entry| word << 5 | entry);
    assert_eq!(read(0, 0x118), pack([0, 1, 2, 3, 4, 5]));
    assert_eq!(read(0, 0x118 + 4 * 2), pack([12, 13, 14, 15, 16, 0]), "X 12..17");
    assert_eq!(read(0, 0x118 + 4 * 3), pack([9, 2, 1, 16, 2, 15]), "X 18..23: DRAM, PCIe, Ethernet");
    assert_eq!(read(0, 0x130 + 4 * 2), pack([0, 1, 11, 2, 10, 3]), "Y 12..17: banks 0 and 1");
    assert_eq!(read(0, 0x130 + 4 * 4), pack([0, 1, 3, 9, 5, 7]), "Y 24..29: PCIe, Ethernet, L2CPU");
    assert_eq!(read(1, 0x118), pack([16, 15, 14, 13, 12, 11]));
    assert_eq!(read(1, 0x130 + 4 * 2), pack([11, 10, 0, 9, 1, 8]));
    assert_eq!((read(0, 0x154), read(0, 0x150)), (0b11, 0));
    assert_eq!((read(0, 0x148), read(1, 0x148)), (4 << 6 | 3, 4 << 6 | 3));
    // NODE_ID: X 3, Y 4, 17 x 12, X first; on NoC 1 X 13, Y 7, Y first.
    assert_eq!(
        (read(0, 0x44), read(1, 0x44)),
        (3 | 4 << 6 | 17 << 12 | 12 << 19 | 1 << 28, 13 | 7 << 6 | 17 << 12 | 12 << 19)
    );
    // Opt-out: columns 0, 8, 9 and the harvested 15 and 16; rows 0 and 1; mirrored on NoC 1.
    assert_eq!((read(0, 0x108), read(0, 0x110)), (1 | 3 << 8 | 3 << 15, 3));
    assert_eq!((read(1, 0x108), read(1, 0x110)), (1 << 16 | 3 << 7 | 3, 3 << 10));
}

#[test]
fn endpoint_ids_name_the_kind_of_tile() {
    let grid = GridBuilder::new(Board::P100.harvesting(), true).fill(0).build().expect("everything fits");
    let at = |x, y| Place { node: 0, x, y };
    for (place, id) in [
        (at(1, 2), 0x1_0000),
        (at(14, 11), 0x1_0000 | 119),
        (at(15, 2), 0x1_0000 | 120),
        (at(16, 1), 0x2_0001),
        (at(2, 0), 0x3_0002),
        (at(8, 0), 0x5_0000),
        (at(9, 5), 0x8_0007),
        (at(8, 9), 0x9_0101),
        (at(8, 2), 0xA_0000),
    ] {
        assert_eq!(grid.endpoint_id(0, place), id, "({},{})", place.x, place.y);
        assert_eq!(grid.endpoint_id(1, place), 1 << 24 | id);
    }
}

#[test]
fn higher_bits_of_a_coordinate_word_are_ignored_and_unknown_ones_mean_nothing() {
    let grid = board_grid(Board::P100);
    let word = NocXy::new(1, 2).encode();
    assert_eq!(grid.resolve(0, word | 0xFFFF_F000), grid.resolve(0, word));
    assert_eq!(grid.resolve(0, NocXy::new(15, 2).encode()), None, "harvested column of a P100");
    assert_eq!(grid.resolve(1, NocXy::new(63, 63).encode()), None);
    assert_eq!(grid.resolve(0, NocXy::new(4, 1).encode()), None, "a router without a tile that is modelled");
}

#[test]
fn a_rectangle_skips_columns_that_hold_no_tensix_tiles() {
    for (board, count) in [(Board::P100, 120), (Board::P150, 140)] {
        let grid = board_grid(board);
        let whole = rect(1, 2, 16, 11);
        let noc0 = grid.rectangle(0, whole.encode(), None).expect("tiles");
        let noc1 = grid.rectangle(1, whole.encode_noc1(), None).expect("tiles");
        assert_eq!(noc0.len(), count);
        assert_eq!(noc0, noc1);
        assert_eq!(count, board.tensix_count());
    }
    let grid = board_grid(Board::P150);
    let across = grid.rectangle(0, rect(7, 3, 10, 3).encode(), None).expect("tiles");
    assert_eq!(xys(&across), [(7, 3), (10, 3)]);
}

#[test]
fn start_beyond_end_wraps_around() {
    let grid = board_grid(Board::P150);
    // StartX 16 > EndX 2: x <= 2 or x >= 16. StartY 11 > EndY 2: y <= 2 or y >= 11
    // (NoC/MemoryMap.md).
    let word = rect(16, 11, 2, 2).encode();
    let tiles = grid.rectangle(0, word, None).expect("tiles");
    assert_eq!(xys(&tiles), [(1, 2), (2, 2), (16, 2), (1, 11), (2, 11), (16, 11)]);
    // On NoC 1 the same word is the plain rectangle from (2, 2) to (16, 11).
    assert_eq!(grid.rectangle(1, word, None).expect("tiles").len(), 13 * 10);
}

#[test]
fn the_sender_is_left_out_on_request_and_repeated_rectangles_share_their_list() {
    let grid = board_grid(Board::P150);
    let word = rect(1, 2, 2, 2).encode();
    let all = grid.rectangle(0, word, None).expect("tiles");
    let others = grid.rectangle(0, word, Some(tile(&grid, 1, 2))).expect("tiles");
    assert_eq!((xys(&all), xys(&others)), (vec![(1, 2), (2, 2)], vec![(2, 2)]));
    assert!(Arc::ptr_eq(&all, &grid.rectangle(0, word | 0xFF00_0000, None).expect("tiles")));
}

#[test]
fn rectangles_without_receivers_or_beyond_the_torus_are_faults() {
    let grid = board_grid(Board::P100);
    assert!(grid.rectangle(0, rect(15, 2, 16, 11).encode(), None).is_err(), "harvested columns only");
    assert!(grid.rectangle(0, rect(0, 2, 40, 3).encode(), None).is_err(), "a corner beyond the tables");
    // Every tile takes part whose NIU is not opted out; corners may lie anywhere on the torus
    // (NoC/MemoryMap.md).
    let tiles = grid.rectangle(0, rect(0, 1, 3, 3).encode(), None).expect("tiles");
    assert_eq!(xys(&tiles), [(1, 2), (2, 2), (3, 2), (1, 3), (2, 3), (3, 3)]);
    let alone = rect(3, 3, 3, 3).encode();
    assert!(grid.rectangle(0, alone, Some(tile(&grid, 3, 3))).is_err(), "nobody but the sender");
}

#[test]
fn a_grid_refuses_tiles_that_do_not_fit() {
    let place = Place { node: 0, x: 1, y: 2 };
    let xy = NocXy::new(1, 2);
    let twice = Grid::builder().add(place, xy).add(place, xy).build();
    assert_eq!(twice.err(), Some(GridError::Twice { place }));
    let outside = Place { node: 0, x: 17, y: 2 };
    let error = Grid::builder().add(outside, xy).build().err();
    assert_eq!(error, Some(GridError::Outside { place: outside, xy }));
    let elsewhere = NocXy::new(2, 2);
    let error = Grid::builder().add(place, elsewhere).build().err();
    assert_eq!(error, Some(GridError::Elsewhere { place, xy: elsewhere }));
}
