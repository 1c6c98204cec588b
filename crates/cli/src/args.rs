//! The command line: the commands, and what all kinds of files have in common.
//!
//! What only one kind has is in the folder of the kind ([`crate::kinds`]), and added here when the
//! command line is read.

use crate::answer::{ReportArgs, ReportOrJsonArgs};
use crate::board_file;
use crate::board_option::LayoutOption;
use crate::bundle::ReplayArgs;
use crate::card_options::CardLookArgs;
use crate::disasm::DisasmArgs;
use crate::explain::ExplainArgs;
use crate::kinds::{Focus, KindRow, Topic, Verb, add_options, focus, help_after};
use crate::link_kernel::LinkKernelArgs;
use crate::loudness::LoudnessArgs;
use crate::manual::{CompletionsArgs, ManArgs};
use crate::program::ProfileArgs;
use crate::pto::args::PtoCommand;
use crate::sdk::SdkArgs;
use clap::{CommandFactory, Parser, Subcommand, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;
use tilework_abi::board::Board;

const ABOUT: &str = "\
Runs programs for the Tenstorrent Blackhole chip on a simulated one: its command queue, its firmware and its cores, \
instruction by instruction. Runs compiled models (.ttnn) on that chip or in host arithmetic, Buda netlists (.yaml) in \
host arithmetic, and the Ascend cluster with its rings of tiles.";

const AFTER_HELP: &str = "\
Every command takes -q, --quiet, to say nothing but errors, and -v, --verbose, to tell each step on standard error. \
Colours are for terminals; NO_COLOR and CLICOLOR_FORCE are obeyed.

Exit codes: 0 done; 1 the program failed (fault, deadlock, broken capture, unwritable output); 2 wrong use (arguments, \
missing or malformed files, a program that does not fit the board).";

/// The `tilework` command.
#[derive(Parser, Debug)]
#[command(name = "tilework", version, about = ABOUT, after_help = AFTER_HELP)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
    #[command(flatten)]
    pub loudness: LoudnessArgs,
}

impl Cli {
    /// The whole command line, as clap has it; help shows the options of one kind of files, or
    /// those of a topic.
    pub fn whole(shown: &'static KindRow, topic: Option<&Topic>) -> clap::Command {
        Verb::ALL.into_iter().fold(Self::command(), |cli, verb| {
            cli.mut_subcommand(verb.name(), |command| {
                add_options(command, verb, shown, topic).after_help(help_after(verb, shown))
            })
        })
    }

    /// The command line for these words, and the words as clap is to read them.
    pub fn reading(words: Vec<OsString>) -> (clap::Command, Vec<OsString>) {
        let Focus { words, kind, topic } = focus(words);
        (Self::whole(kind, topic), words)
    }
}

/// What to do.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Run a kernel program, a compiled model or a netlist, and write its output arrays
    Run(RunArgs),
    /// Check a file without running it, or its outputs against expected ones
    Check(CheckArgs),
    /// Show what is in a file: buffers and cores, programs and operations, memory
    Show(ShowArgs),
    /// Run a kernel program and tell where its time goes: kernels, waits, lines, links, banks
    Profile(ProfileArgs),
    /// Show the tiles of a board and the memory maps of its cores
    Board(BoardArgs),
    /// Make the folder that tt-metal, ttnn, tt-umd and tt-exalens take for a card
    Simdir(SimdirArgs),
    /// Run a program that knows only a real card on a simulated one (Linux on x86-64)
    Card(CardArgs),
    /// Write out what a kernel of one's own needs: C header, linker scripts, templates
    /// in C and Rust
    Sdk(SdkArgs),
    /// List the instructions of a kernel: RISC-V and Tensix, with operands and source lines
    Disasm(DisasmArgs),
    /// Write a kernel as a flat image for a place in L1 and the firmware that it will meet
    LinkKernel(LinkKernelArgs),
    /// Say what a finding, a fault or a code means, with an example and its repair
    Explain(ExplainArgs),
    /// Repeat a run from its crash bundle, and compare how it ends
    Replay(ReplayArgs),
    /// Print the completions of a shell
    Completions(CompletionsArgs),
    /// Print the manual page, or write those of all commands
    Man(ManArgs),
    /// List what there is
    #[command(subcommand)]
    List(ListCommand),
    /// Look into command queues
    #[command(subcommand)]
    Cq(CqCommand),
    /// Simulate the Ascend cluster: cluster ids, rings of tiles between Cube and Vectors
    #[command(subcommand)]
    Pto(PtoCommand),
    /// Execute one call of native code, which comes on the standard input: `--allow-native-code`
    /// starts this command for each call
    #[command(name = NATIVE_CALL, hide = true)]
    NativeCall,
}

/// The command that executes native code of a compiled model in a process of its own.
pub const NATIVE_CALL: &str = "native-call";

/// Arguments of `tilework board`.
#[derive(clap::Args, Debug)]
pub struct BoardArgs {
    /// The board: p100, p150, p300, or a file that says what its chip lacks (docs/card.md).
    #[arg(default_value = "p100", value_parser = board_file::parse)]
    pub board: Board,
    #[command(flatten)]
    pub layout: LayoutOption,
    #[command(flatten)]
    pub report: ReportArgs,
}

/// Arguments of `tilework simdir`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
DIR gets libtilework.so, the simulated card with the interface of libttsim, and soc_descriptor.yaml, which says where its
tiles are.

Example:
  tilework simdir sim --board p150
  TT_METAL_SIMULATOR=$PWD/sim/libtilework.so python3 model.py

The environment of the program that loads the card: TILEWORK_ON_FAULT=abort ends it at the first fault.")]
pub struct SimdirArgs {
    /// The folder; made when it does not exist.
    pub dir: PathBuf,
    /// The board to simulate: p100, p150, p300, or a file that says what its chip lacks
    /// (docs/card.md).
    #[arg(long, default_value = "p150", value_parser = board_file::parse)]
    pub board: Board,
    /// Another build of the library than the one that this command has built in.
    #[arg(long, value_name = "FILE")]
    pub library: Option<PathBuf>,
    #[command(flatten)]
    pub report: ReportArgs,
}

/// How the time of a card moves besides the accesses of its program.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum CardClock {
    /// When the program sleeps, yields, looks at the clock or is silent.
    Lazy,
    /// Always.
    Free,
}

/// Arguments of `tilework card`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
The program finds /dev/tenstorrent/0 and the card in /sys, and reads and writes BARs, as with the kernel driver. It must
be dynamically linked, or it is refused with exit code 103. A fault on the chip ends it with a report and exit code 101,
a deadlock with 102; otherwise its exit code is the command's. docs/card.md says what is served and what is not.

Examples:
  tilework card --board p150 -- tt-smi -s
  tilework card --board p100 --trace card.pftrace --counts counts.json -- python3 examples/jax/add.py")]
pub struct CardArgs {
    /// The board to simulate, as its firmware shows it: p100, p150 (with 12 of its 14 Tensix
    /// columns), p300, or a file that says what its chip lacks (docs/card.md); once for each card
    /// of the machine.
    #[arg(long, default_value = "p150", value_parser = board_file::parse_shown)]
    pub board: Vec<Board>,
    /// How the time of the chip moves.
    #[arg(long, value_enum, default_value = "lazy")]
    pub clock: CardClock,
    #[command(flatten)]
    pub look: CardLookArgs,
    /// The program and its arguments.
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND")]
    pub command: Vec<std::ffi::OsString>,
}

/// What can be listed.
#[derive(Subcommand, Debug)]
pub enum ListCommand {
    /// The devices that programs can be run on: simulated boards, with their tiles, workers, DRAM
    /// and dispatch cores
    Devices(DevicesArgs),
}

/// Arguments of `tilework list devices`.
#[derive(clap::Args, Debug)]
pub struct DevicesArgs {
    #[command(flatten)]
    pub report: ReportArgs,
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
    Decode(DecodeArgs),
}

/// Arguments of `tilework cq decode`.
#[derive(clap::Args, Debug)]
pub struct DecodeArgs {
    /// The file: records back to back, as the prefetcher reads them; at most 1 GiB.
    pub file: PathBuf,
    #[command(flatten)]
    pub report: ReportArgs,
}

/// Arguments of `tilework run` that files of all kinds have.
#[derive(clap::Args, Debug)]
pub struct RunArgs {
    /// The file to run; its ending says of which kind it is: a kernel program (.toml), a compiled
    /// model (.ttnn) or a Buda netlist (.yaml).
    pub program: PathBuf,
    /// The array for an input; once for each input.
    ///
    /// NAME is the input's name, for a compiled model also its position, for one of several devices
    /// also the part of one or the same for all (0_dev1, 0_all); for a netlist the name of a queue,
    /// whose array has the shape (entries, t, rows, columns). FILE is a .npy file, or an
    /// array of a .npz or .safetensors file (FILE:ARRAY when it has several). random:SEED draws
    /// numbers for an input of a model.
    #[arg(long, value_name = "NAME=FILE", value_parser = parse_input)]
    pub input: Vec<Input>,
    /// The folder for the output arrays; made when it does not exist.
    ///
    /// A kernel program writes NAME.npy for each output, a model out0.npy, out1.npy..., a netlist
    /// QUEUE.npy.
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    #[command(flatten)]
    pub report: ReportArgs,
    /// What runs it. Unless given the chip runs kernel programs, and models of whose operations
    /// none is left to the host; native runs other models, whose reports say why, and netlists.
    /// Options for the chip choose the chip, `--rounding ends` native.
    #[arg(long, value_enum)]
    pub engine: Option<EngineName>,
}

/// Arguments of `tilework check` that files of all kinds have.
#[derive(clap::Args, Debug)]
pub struct CheckArgs {
    /// The file to check: a kernel program (.toml), a compiled model (.ttnn) or a Buda netlist
    /// (.yaml).
    pub file: PathBuf,
    #[command(flatten)]
    pub report: ReportOrJsonArgs,
}

/// Arguments of `tilework show` that files of all kinds have.
#[derive(clap::Args, Debug)]
pub struct ShowArgs {
    /// The file to show: a kernel program (.toml), a compiled model (.ttnn, .ttm, .ttsys) or a Buda
    /// netlist (.yaml).
    pub file: PathBuf,
    #[command(flatten)]
    pub report: ReportOrJsonArgs,
}

/// What runs a program.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum EngineName {
    /// The simulated chip
    #[value(alias = "device")]
    Chip,
    /// Host arithmetic
    Native,
}

/// An input as it is given.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Input {
    /// Its name, or its position.
    pub name: String,
    /// Where its elements come from.
    pub source: ArraySource,
}

/// Where elements come from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ArraySource {
    /// An array of a file.
    File {
        /// The file.
        path: PathBuf,
        /// Its name in the file, for files of several arrays.
        key: Option<String>,
    },
    /// Random numbers of this seed.
    Random(u32),
}

/// Reads `NAME=FILE`.
pub fn parse_input(text: &str) -> Result<Input, String> {
    match text.split_once('=') {
        Some((name, source)) if !name.is_empty() && !source.is_empty() => {
            Ok(Input { name: name.to_owned(), source: parse_source(source)? })
        }
        _ => Err("expected NAME=FILE".to_owned()),
    }
}

fn parse_source(text: &str) -> Result<ArraySource, String> {
    if let Some(seed) = text.strip_prefix("random:") {
        let seed = seed.parse().map_err(|_| format!("random:{seed}: expected a seed from 0 to {}", u32::MAX))?;
        return Ok(ArraySource::Random(seed));
    }
    for ending in [".npz:", ".safetensors:"] {
        if let Some(at) = text.find(ending) {
            let (path, key) = text.split_at(at + ending.len() - 1);
            return Ok(ArraySource::File { path: path.into(), key: Some(key[1..].to_owned()) });
        }
    }
    Ok(ArraySource::File { path: text.into(), key: None })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::KINDS;

    #[test]
    fn the_command_line_is_consistent() {
        for kind in &KINDS {
            Cli::whole(kind, None).debug_assert();
        }
    }

    #[test]
    fn an_input_is_a_name_and_a_file() {
        let file = |path: &str, key: Option<&str>| ArraySource::File { path: path.into(), key: key.map(str::to_owned) };
        let input = |name: &str, source| Ok(Input { name: name.into(), source });
        assert_eq!(parse_input("x=a=b.npy"), input("x", file("a=b.npy", None)));
        assert_eq!(parse_input("0=w.npz:a:b"), input("0", file("w.npz", Some("a:b"))));
        assert_eq!(parse_input("w=w.safetensors:q.weight"), input("w", file("w.safetensors", Some("q.weight"))));
        assert_eq!(parse_input("1=random:7"), input("1", ArraySource::Random(7)));
        for wrong in ["x", "=a.npy", "x=", "", "x=random:", "x=random:-1"] {
            assert!(parse_input(wrong).is_err());
        }
    }
}
