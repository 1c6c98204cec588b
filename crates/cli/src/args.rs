//! The command line.

use clap::{Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

const ABOUT: &str = "\
Runs programs for the Tenstorrent Blackhole chip on a simulated one: its command queue, its firmware and its cores, \
instruction by instruction.";

const EXIT_CODES: &str = "\
Exit codes: 0 done; 1 the program failed (fault, deadlock, broken capture, unwritable output); 2 wrong use (arguments, \
missing or malformed files, a program that does not fit the board).";

/// The `tilework` command.
#[derive(Parser, Debug)]
#[command(name = "tilework", version, about = ABOUT, after_help = EXIT_CODES)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Run a kernel program and write its output arrays
    Run(RunArgs),
    /// Show the tiles of a board and the memory maps of its cores
    Board {
        /// The board.
        #[arg(value_enum, default_value_t = BoardName::P100)]
        board: BoardName,
    },
    /// Make the folder that tt-metal, ttnn, tt-umd and tt-exalens take for a card
    Simdir(SimdirArgs),
    /// Look into command queues
    #[command(subcommand)]
    Cq(CqCommand),
}

/// Arguments of `tilework simdir`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
DIR gets libtilework.so, the simulated card with the interface of libttsim, and soc_descriptor.yaml, which says where its tiles are.

Example:
  cargo build --release -p tilework-libttsim
  tilework simdir sim --board p150
  TT_METAL_SIMULATOR=$PWD/sim/libtilework.so python3 model.py

The environment of the program that loads the card: TILEWORK_ON_FAULT=abort ends it at the first fault.")]
pub struct SimdirArgs {
    /// The folder; made when it does not exist.
    pub dir: PathBuf,
    /// The board to simulate.
    #[arg(long, value_enum, default_value_t = BoardName::P150)]
    pub board: BoardName,
    /// The built library, when it does not lie beside this command.
    #[arg(long, value_name = "FILE")]
    pub library: Option<PathBuf>,
}

/// Commands about command queues.
#[derive(Subcommand, Debug)]
pub enum CqCommand {
    /// Print a raw issue region or a capture, command by command
    #[command(after_help = "\
Each line starts with the offset in the file. Decoding stops at the first bad byte, says why, and exits with 1.

Example:
  tilework run examples/increment/program.toml --input x=examples/increment/x.npy --out out --capture run.cq
  tilework cq decode run.cq")]
    Decode {
        /// The file: records back to back, as the prefetcher reads them; at most 1 GiB.
        file: PathBuf,
    },
}

/// Arguments of `tilework run`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  tilework run examples/increment/program.toml --input x=examples/increment/x.npy --out out
  tilework run examples/ring/program.toml --out out --board p150 --report json
  tilework run program.toml --input a=a.npy --input b=b.npy --out out --dispatch slow
  tilework run examples/ring/program.toml --out out --firmware riscv-firmware/p100a

The formats of program files and of firmware folders are described in docs/program.md.")]
pub struct RunArgs {
    /// The kernel program, a .toml file.
    pub program: PathBuf,
    /// The array for an input of the program; once for each input.
    #[arg(long, value_name = "NAME=FILE.npy", value_parser = parse_input)]
    pub input: Vec<(String, PathBuf)>,
    /// The folder for the output arrays, NAME.npy each; made when it does not exist.
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// The board to simulate.
    #[arg(long, value_enum, default_value_t = BoardName::P100)]
    pub board: BoardName,
    /// How programs reach the cores: through the command queue and its firmware, or by writes of the host.
    #[arg(long, value_enum, default_value_t = DispatchName::Fast)]
    pub dispatch: DispatchName,
    /// Other firmware for the workers: a folder with brisc.elf, ncrisc.elf, trisc0.elf, trisc1.elf and trisc2.elf, and
    /// memory-map.toml if their memory map is not the usual one. Dispatch firmware and kernels stay ours.
    #[arg(long, value_name = "DIR")]
    pub firmware: Option<PathBuf>,
    /// The form of the report. json: one object on standard output, and nothing else there.
    #[arg(long, value_enum, default_value_t = ReportForm::Text)]
    pub report: ReportForm,
    /// Also write every record that went to the command queue, for `tilework cq decode`. Needs fast dispatch.
    #[arg(long, value_name = "FILE")]
    pub capture: Option<PathBuf>,
    /// Measure each core's kernel from start to end. Needs fast dispatch and our own worker firmware.
    #[arg(long)]
    pub core_timing: bool,
    /// Give up when the program has run for this many cycles; 20 billion unless given.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_cycles: Option<u64>,
}

/// A board by its name.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum BoardName {
    /// 120 Tensix tiles and 7 DRAM banks
    P100,
    /// 140 Tensix tiles and 8 DRAM banks
    P150,
}

impl From<BoardName> for tilework_abi::board::Board {
    fn from(name: BoardName) -> Self {
        match name {
            BoardName::P100 => Self::P100,
            BoardName::P150 => Self::P150,
        }
    }
}

/// How programs reach the cores.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum DispatchName {
    /// Command queue, prefetcher and dispatcher firmware
    Fast,
    /// The host writes launch messages and polls go messages
    Slow,
}

impl DispatchName {
    /// The name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fast => "fast",
            Self::Slow => "slow",
        }
    }
}

/// The form of a report.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReportForm {
    /// A few lines for people
    Text,
    /// One JSON object
    Json,
}

fn parse_input(text: &str) -> Result<(String, PathBuf), String> {
    match text.split_once('=') {
        Some((name, file)) if !name.is_empty() && !file.is_empty() => Ok((name.to_owned(), file.into())),
        _ => Err("expected NAME=FILE.npy".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn an_input_is_a_name_and_a_file() {
        assert_eq!(parse_input("x=a=b.npy"), Ok(("x".into(), "a=b.npy".into())));
        for wrong in ["x", "=a.npy", "x=", ""] {
            assert!(parse_input(wrong).is_err());
        }
    }
}
