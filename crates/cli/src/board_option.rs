//! The options `--board`, `--dispatch-layout` and `--chip`: what a kernel program runs on.

use crate::board_file;
use std::path::PathBuf;
use tilework_abi::board::Board;
use tilework_abi::cq::tiles::{DispatchLayout, Queues};
use tilework_abi::noc::NocXy;
use tilework_runtime::WorkerCores;
use tilework_sim::{Bug, Bugs};

/// The board.
#[derive(clap::Args, Clone, Copy, Debug)]
pub struct BoardOption {
    /// The board to simulate: p100, p150, p300, or a file that says what its chip lacks
    /// (docs/card.md); p100 unless given.
    #[arg(long = "board", value_name = "BOARD", value_parser = board_file::parse)]
    pub given: Option<Board>,
}

impl BoardOption {
    /// The board that was chosen.
    pub fn board(self) -> Board {
        self.given.unwrap_or(Board::P100)
    }
}

/// The dispatch layout.
#[derive(clap::Args, Clone, Copy, Debug)]
pub struct LayoutOption {
    /// Which tiles run the command queue and who sends go signals: dispatcher, subordinate,
    /// subordinate-tile or split (docs/protocol.md); dispatcher unless given.
    #[arg(id = "dispatch-layout", long = "dispatch-layout", value_name = "NAME", value_parser = layout_named)]
    pub given: Option<DispatchLayout>,
}

impl LayoutOption {
    /// The layout that was chosen.
    pub fn layout(self) -> DispatchLayout {
        self.given.unwrap_or_default()
    }
}

fn layout_named(name: &str) -> Result<DispatchLayout, String> {
    DispatchLayout::named(name).ok_or_else(|| {
        let names = DispatchLayout::ALL.map(DispatchLayout::name);
        format!("no dispatch layout; there are {}", names.join(", "))
    })
}

/// A board, its dispatch layout, the number of its command queues and a choice of its workers,
/// which decide which tiles run programs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BoardLayout {
    /// The board.
    pub board: Board,
    /// The layout.
    pub layout: DispatchLayout,
    /// Command queues: 1 or 2.
    pub queues: u8,
    /// The cores of which the workers are, if not all.
    pub chosen: Option<WorkerCores>,
}

impl BoardLayout {
    /// A board with one command queue and all its workers.
    pub const fn new(board: Board, layout: DispatchLayout) -> Self {
        Self { board, layout, queues: 1, chosen: None }
    }

    /// The tiles that run the command queues.
    pub fn dispatch(self) -> Queues {
        self.layout.queues(self.queues)
    }

    /// The tiles that run programs, in the board's order.
    pub fn workers(self) -> Vec<NocXy> {
        let chosen = |tile: &NocXy| self.chosen.is_none_or(|chosen| chosen.has_tile(self.board, *tile));
        self.dispatch().workers(self.board).filter(chosen).collect()
    }
}

impl From<Board> for BoardLayout {
    /// The board with the usual layout.
    fn from(board: Board) -> Self {
        Self::new(board, DispatchLayout::default())
    }
}

/// Whose chip: `--chip`.
#[derive(clap::Args, Clone, Debug)]
pub struct ChipPlace {
    /// Run on the chip behind a shared library with the libttsim interface, or on the card of a
    /// device file (/dev/tenstorrent/0), instead of the built-in chip. The board is the chip's;
    /// --board must agree with it.
    #[arg(long = "chip", value_name = "LIB.so|DEVICE")]
    pub library: Option<PathBuf>,
}

/// The chip.
#[derive(clap::Args, Clone, Debug)]
pub struct ChipOption {
    #[command(flatten)]
    pub place: ChipPlace,
    /// Leave out a documented bug of the built-in chip; once for each. docs/card.md lists them.
    #[arg(long = "without-bug", value_name = "BUG", value_parser = Bug::named, conflicts_with = "library")]
    pub without_bugs: Vec<Bug>,
}

impl ChipOption {
    /// The bugs that the chip has.
    pub fn bugs(&self) -> Bugs {
        self.without_bugs.iter().fold(Bugs::AS_CHIP, |bugs, &bug| bugs.without(bug))
    }
}
