//! The option `--board`: which board is simulated.

use clap::ValueEnum;
use tilework_abi::board::Board;

/// A board by its name.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum BoardName {
    /// 120 Tensix tiles and 7 DRAM banks
    P100,
    /// 140 Tensix tiles and 8 DRAM banks
    P150,
}

impl From<BoardName> for Board {
    fn from(name: BoardName) -> Self {
        match name {
            BoardName::P100 => Self::P100,
            BoardName::P150 => Self::P150,
        }
    }
}

/// The option, for commands on kernel programs.
#[derive(clap::Args, Clone, Copy, Debug)]
pub struct BoardOption {
    /// The board to simulate.
    #[arg(long = "board", value_enum, default_value_t = BoardName::P100)]
    name: BoardName,
}

impl BoardOption {
    /// The board that was chosen.
    pub fn board(self) -> Board {
        self.name.into()
    }
}
