//! How a copy of the simulator library says which board it simulates.
//!
//! Whoever makes the copy (`tilework simdir`) overwrites the text that stands behind the mark in the
//! file; the library reads it when the card is powered on. The text is the name of the kind of card,
//! padded to eight characters, and the masks of what its chip lacks in hexadecimal: Tensix columns,
//! DRAM banks, Ethernet channels ([`Harvesting`]).

use crate::board::{Board, BoardSpec, Harvesting};
use core::fmt::Write;

/// What stands before the board's text in the file.
pub const MARK: &[u8; 28] = b"tilework libttsim for board ";
/// Bytes of the text.
pub const TEXT_BYTES: usize = 20;
/// Bytes of the name.
const NAME_BYTES: usize = 8;
/// The text of the board that the library is built as.
pub const DEFAULT: &[u8; TEXT_BYTES] = b"p150    0000 00 0120";

/// A text of [`TEXT_BYTES`] bytes that is being written.
struct Text {
    bytes: [u8; TEXT_BYTES],
    len: usize,
}

impl Write for Text {
    fn write_str(&mut self, s: &str) -> core::fmt::Result {
        let end = self.len + s.len();
        self.bytes.get_mut(self.len..end).ok_or(core::fmt::Error)?.copy_from_slice(s.as_bytes());
        self.len = end;
        Ok(())
    }
}

/// The text of `board`.
pub fn text_of(board: Board) -> [u8; TEXT_BYTES] {
    let mut text = Text { bytes: [b' '; TEXT_BYTES], len: 0 };
    let Harvesting { tensix, dram, ethernet } = board.harvesting();
    // The names of all kinds fit, as a test shows.
    let _ = write!(text, "{:<NAME_BYTES$}{tensix:04x} {dram:02x} {ethernet:04x}", board.spec().name);
    text.bytes
}

/// The board of a text; `None` when it is none.
pub fn board_of(text: &[u8]) -> Option<Board> {
    let text = core::str::from_utf8(text).ok()?;
    let (name, masks) = text.split_at_checked(NAME_BYTES)?;
    let spec = BoardSpec::named(name.trim_end())?;
    let mut masks = masks.split(' ').map(|mask| u16::from_str_radix(mask, 16).ok());
    let mut mask = || masks.next().flatten();
    let (tensix, dram, ethernet) = (mask()?, mask()?, mask()?);
    let harvesting = Harvesting { tensix, dram: dram.try_into().ok()?, ethernet };
    Board::harvested(spec, spec.name, harvesting).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_says_which_board() {
        for board in Board::ALL {
            let text = text_of(board);
            assert_eq!(board_of(&text), Some(board), "{text:?}");
        }
        assert_eq!(board_of(DEFAULT), Some(Board::P150));
        let harvesting = Harvesting { tensix: 1 << 4, dram: 1, ethernet: 0x3FFF };
        let other = Board::harvested(Board::P300.spec(), "p300", harvesting).expect("it is sound");
        assert_eq!(&text_of(other), b"p300    0010 01 3fff");
        assert_eq!(board_of(b"p300    0010 01 3fff"), Some(other));
    }

    #[test]
    fn what_is_no_board_is_none() {
        let wrong: [&[u8]; 7] = [
            b"p150",
            b"p999    0000 00 0120",
            b"p150    3fff 00 0120",
            b"p150    0000 03 0120",
            b"p150    0000 00 4000",
            b"p150    zzzz 00 0120",
            b"p150    0000 \xff\xff 0120",
        ];
        for text in wrong {
            assert_eq!(board_of(text), None, "{text:?}");
        }
    }
}
