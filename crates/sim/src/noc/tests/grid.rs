//! Coordinates and rectangles of both boards.

use super::{board_grid, tile};
use crate::noc::{Grid, GridError, Place, TileKind};
use std::sync::Arc;
use tilework_abi::board::{self, Board};
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
fn raw_coordinates_work_where_they_do_not_collide() {
    let grid = board_grid(Board::P150);
    let pcie = grid.resolve(0, board::PCIE.encode()).expect("the PCIe tile");
    assert_eq!((pcie.x, pcie.y), (2, 0));
    assert_eq!(grid.resolve(0, NocXy::new(2, 0).encode()), Some(pcie));
    // NoC 1: 16 - 2 = 14, 11 - 0 = 11 collides with a Tensix tile, which wins.
    assert_eq!(grid.resolve(1, NocXy::new(14, 11).encode()), Some(tile(&grid, 14, 11)));
    // Physical (0, 11), a DRAM port, is (16, 0) there, where no tile collides.
    let dram = grid.resolve(1, NocXy::new(16, 0).encode()).expect("a DRAM port");
    assert_eq!((dram.x, dram.y, grid.kind(dram)), (0, 11, Some(TileKind::Dram)));
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
    // StartX 16 > EndX 2: x <= 2 or x >= 16. StartY 11 > EndY 2: y <= 2 or y >= 11 (NoC/MemoryMap.md).
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
fn rectangles_without_receivers_or_with_foreign_corners_are_faults() {
    let grid = board_grid(Board::P100);
    assert!(grid.rectangle(0, rect(15, 2, 16, 11).encode(), None).is_err(), "harvested columns only");
    assert!(grid.rectangle(0, rect(0, 2, 3, 3).encode(), None).is_err(), "DRAM column as a corner");
    let alone = rect(3, 3, 3, 3).encode();
    assert!(grid.rectangle(0, alone, Some(tile(&grid, 3, 3))).is_err(), "nobody but the sender");
}

#[test]
fn a_grid_refuses_tiles_that_do_not_fit() {
    let place = Place { node: 0, x: 1, y: 2 };
    let xy = NocXy::new(1, 2);
    let twice = Grid::builder().add(place, xy).add(place, xy).build();
    assert_eq!(twice.err(), Some(GridError::Twice { place, translated: xy }));
    let outside = Place { node: 0, x: 17, y: 2 };
    let error = Grid::builder().add(outside, xy).build().err();
    assert_eq!(error, Some(GridError::Outside { place: outside, translated: xy }));
    let nowhere = NocXy::new(5, 0);
    let error = Grid::builder().add(place, nowhere).build().err();
    assert_eq!(error, Some(GridError::Unknown { translated: nowhere }));
}
