//! How a copy of the simulator library says which board it simulates.
//!
//! Whoever makes the copy (`tilework simdir`) overwrites the name that stands behind the mark in the file; the library reads it when the card is powered on.

use crate::board::Board;

/// What stands before the board's name in the file.
pub const MARK: &[u8; 28] = b"tilework libttsim for board ";
/// Bytes of the name.
pub const NAME_BYTES: usize = 4;

/// The name of `board`, of [`NAME_BYTES`] bytes.
pub const fn board_name(board: Board) -> &'static str {
    match board {
        Board::P100 => "p100",
        Board::P150 => "p150",
    }
}

/// The board of that name.
pub fn board_named(name: &str) -> Option<Board> {
    [Board::P100, Board::P150].into_iter().find(|&board| board_name(board) == name)
}

const _: () = assert!(board_name(Board::P100).len() == NAME_BYTES && board_name(Board::P150).len() == NAME_BYTES);
