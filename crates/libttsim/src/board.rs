//! Which card the library is.
//!
//! A driver only has the path of the file, and may load it from a copy in memory. So the choice is a part of the file: `tilework simdir --board` writes
//! it into the copy that it makes. `TILEWORK_BOARD` overrules it.

use std::hint::black_box;
use tilework_abi::board::Board;
use tilework_abi::simlib::{MARK, NAME_BYTES, board_named};

/// The mark with the name behind it.
#[used]
static CHOICE: [u8; MARK.len() + NAME_BYTES] = *b"tilework libttsim for board p150";

/// The board of this library.
pub fn chosen() -> Board {
    if let Ok(name) = std::env::var("TILEWORK_BOARD") {
        match board_named(&name) {
            Some(board) => return board,
            None => {
                crate::say(&format!(
                    "TILEWORK_BOARD is {name:?}; p100 or p150 was expected. The file's own board is used"
                ));
            }
        }
    }
    // Not a constant to the compiler: the file may have been changed.
    let choice = black_box(&CHOICE);
    std::str::from_utf8(&choice[MARK.len()..]).ok().and_then(board_named).unwrap_or(Board::P150)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_made_for_a_p150() {
        assert!(CHOICE.starts_with(MARK));
        assert_eq!(board_named(std::str::from_utf8(&CHOICE[MARK.len()..]).unwrap()), Some(Board::P150));
    }
}
