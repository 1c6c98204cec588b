//! Which card the library is.
//!
//! A driver only has the path of the file, and may load it from a copy in memory. So the choice is
//! a part of the file: `tilework simdir --board` writes it into the copy that it makes.
//! `TILEWORK_BOARD` overrules it.

use std::hint::black_box;
use tilework_abi::board::{Board, BoardSpec};
use tilework_abi::simlib::{DEFAULT, MARK, TEXT_BYTES, board_of};
use tilework_pci_device::{Kind, say};

/// The mark with the board's text behind it.
#[used]
static CHOICE: [u8; MARK.len() + TEXT_BYTES] = {
    let mut bytes = [0; MARK.len() + TEXT_BYTES];
    let (mark, text) = bytes.split_at_mut(MARK.len());
    mark.copy_from_slice(MARK);
    text.copy_from_slice(DEFAULT);
    bytes
};

/// The board of this library.
pub(crate) fn chosen() -> Board {
    if let Ok(name) = std::env::var("TILEWORK_BOARD") {
        match BoardSpec::named(&name) {
            Some(spec) => return spec.board(),
            None => {
                let known = Board::ALL.map(Board::name).join(" or ");
                let what = format!("TILEWORK_BOARD is {name:?}; {known} was expected. The file's own board is used");
                say(Kind::Environment, &what);
            }
        }
    }
    // Not a constant to the compiler: the file may have been changed.
    let choice = black_box(&CHOICE);
    board_of(&choice[MARK.len()..]).unwrap_or(Board::P150)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_made_for_a_p150() {
        assert!(CHOICE.starts_with(MARK));
        assert_eq!(board_of(&CHOICE[MARK.len()..]), Some(Board::P150));
    }
}
