//! `tilework simdir`: a folder that drivers take for a card.
//!
//! tt-metal, ttnn, tt-umd and tt-exalens load a simulator from `TT_METAL_SIMULATOR`: a shared
//! library with a `soc_descriptor.yaml` beside it.

use crate::answer::Answer;
use crate::failure::{Failure, Outcome};
use crate::files;
use serde::Serialize;
use std::path::Path;
use tilework_abi::board::Board;
use tilework_abi::simlib::{MARK, TEXT_BYTES, board_of, text_of};
use tilework_driver::soc_descriptor;

/// The library's file, here and where the workspace builds it.
const LIBRARY: &str = "libtilework.so";
/// Budget of a shared library in bytes, far above the size of ours with debug information.
pub const LIBRARY_BUDGET: u64 = 1 << 30;

/// The folder that was made. The fields are those of the JSON form, in their order.
#[derive(Serialize)]
struct SimulatorFolder {
    board: &'static str,
    folder: String,
    library: String,
}

/// Makes the folder for `board`, with a copy of `library`, or of the one that is built in.
pub fn make(dir: &Path, board: Board, library: Option<&Path>) -> Outcome<Answer> {
    let mut bytes = match library {
        Some(path) => files::read_within(path, LIBRARY_BUDGET, "the simulator's shared library")?,
        None => built_in()?,
    };
    choose(&mut bytes, board).map_err(|NotThisLibrary| {
        let shown = library.unwrap_or(Path::new("the library that is built in"));
        let what = "is not the simulator's shared library (cargo build --release -p tilework-libttsim makes it)";
        Failure::usage(format!("{} {what}", shown.display())).of_file(shown)
    })?;
    files::make_folder(dir)?;
    let copy = dir.join(LIBRARY);
    if library.is_some_and(|source| files::same_place(source, &copy)) {
        return Err(Failure::usage(format!("{} is the library itself; choose another folder", copy.display())));
    }
    files::write_whole(&dir.join("soc_descriptor.yaml"), &[soc_descriptor(board).as_bytes()])?;
    files::write_whole(&copy, &[&bytes])?;
    let shown = copy.canonicalize().unwrap_or(copy);
    let report = SimulatorFolder {
        board: board.name(),
        folder: dir.display().to_string(),
        library: shown.display().to_string(),
    };
    Ok(Answer::new(report, |SimulatorFolder { board, folder, library }, out| {
        write!(out, "a {board} in {folder}\nexport TT_METAL_SIMULATOR={library}\n")
    }))
}

fn built_in() -> Outcome<Vec<u8>> {
    tilework_card::library().map(<[u8]>::to_vec).ok_or_else(|| {
        let what = "this command was built without the card's library";
        let todo = "build it with cargo build --release -p tilework-libttsim, and name it with --library";
        Failure::usage(format!("{what}; {todo}"))
    })
}

struct NotThisLibrary;

/// Writes `board` into the bytes of a library. The mark must be there with a board behind it, once.
fn choose(library: &mut [u8], board: Board) -> Result<(), NotThisLibrary> {
    let places: Vec<usize> = library
        .windows(MARK.len() + TEXT_BYTES)
        .enumerate()
        .filter(|(_, bytes)| bytes.starts_with(MARK) && board_of(&bytes[MARK.len()..]).is_some())
        .map(|(at, _)| at + MARK.len())
        .collect();
    let [at] = places[..] else { return Err(NotThisLibrary) };
    library[at..at + TEXT_BYTES].copy_from_slice(&text_of(board));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_can_be_made_for_another_board() {
        let mut file = b"..tilework libttsim for board ..tilework libttsim for board p150    0000 00 0120..".to_vec();
        for (board, text) in [(Board::P100, "p100    000a 80 3fff"), (Board::P300, "p300    2002 00 0120")] {
            assert!(choose(&mut file, board).is_ok());
            assert!(file.ends_with(format!("board {text}..").as_bytes()), "{}", String::from_utf8_lossy(&file));
        }
        assert!(choose(&mut b"something else".to_vec(), Board::P100).is_err());
    }
}
