//! The command line.

use crate::board_file;
use crate::failure::{Failure, Outcome};
use crate::netlist::args::{ArchName, NetlistCheckArgs, NetlistShowArgs};
use crate::netlist::run_args::NetlistRunArgs;
use crate::pto::args::PtoCommand;
use clap::{Parser, Subcommand, ValueEnum};
use std::path::{Path, PathBuf};
use tilework_abi::board::Board;
use tilework_engine::Tolerance;

const ABOUT: &str = "\
Runs programs for the Tenstorrent Blackhole chip on a simulated one: its command queue, its firmware and its cores, \
instruction by instruction. Runs compiled models (.ttnn) and Buda netlists (.yaml) in host arithmetic, and the Ascend cluster with \
its rings of tiles.";

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
    /// Run a kernel program or a compiled model and write its output arrays
    Run(RunArgs),
    /// Run a compiled model and compare its outputs with expected ones, or check a netlist
    Check(CheckArgs),
    /// Show what is in a compiled model or a netlist: programs, operations, memory
    Show(ShowArgs),
    /// Show the tiles of a board and the memory maps of its cores
    Board {
        /// The board: p100, p150, p300, or a file that says what its chip lacks (docs/card.md).
        #[arg(default_value = "p100", value_parser = board_file::parse)]
        board: Board,
    },
    /// Make the folder that tt-metal, ttnn, tt-umd and tt-exalens take for a card
    Simdir(SimdirArgs),
    /// Look into command queues
    #[command(subcommand)]
    Cq(CqCommand),
    /// Simulate the Ascend cluster: cluster ids, rings of tiles between Cube and Vectors
    #[command(subcommand)]
    Pto(PtoCommand),
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
    /// The board to simulate: p100, p150, p300, or a file that says what its chip lacks (docs/card.md).
    #[arg(long, default_value = "p150", value_parser = board_file::parse)]
    pub board: Board,
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
  tilework run model.ttnn --input 0=x.npy --input 1=weights.safetensors:w --input 2=random:7 --out out --profile
  tilework run netlist.yaml --stimulus index --default-param 1 --out out --trace out.pftrace

The formats of program files and of firmware folders are described in docs/program.md, compiled models in docs/models.md, netlists in docs/buda.md.")]
pub struct RunArgs {
    /// The program: a kernel program (.toml), a compiled model (.ttnn) or a Buda netlist (.yaml).
    pub program: PathBuf,
    /// The array for an input, by name or, for a model, by position; once for each input. For a netlist the name of a queue, and an array of
    /// shape (entries, t, rows, columns). FILE is a .npy file, or an array of a .npz or
    /// .safetensors file (FILE:ARRAY when it has several); random:SEED draws numbers for an input of a model.
    #[arg(long, value_name = "NAME=FILE", value_parser = parse_input)]
    pub input: Vec<Input>,
    /// The folder for the output arrays; made when it does not exist. Those of a kernel program are NAME.npy, those of a model out0.npy, out1.npy..., those of a
    /// netlist QUEUE.npy.
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// The form of the report. json: one object on standard output, and nothing else there.
    #[arg(long, value_enum, default_value_t = ReportForm::Text)]
    pub report: ReportForm,
    /// What runs the program: device for kernel programs, native (host arithmetic) for compiled models and netlists.
    #[arg(long, value_enum)]
    pub engine: Option<EngineName>,
    /// The board to simulate: p100, p150, p300, or a file that says what its chip lacks (docs/card.md); p100 unless given.
    #[arg(long, value_parser = board_file::parse, help_heading = KERNEL_PROGRAMS)]
    pub board: Option<Board>,
    /// Run on the chip behind a shared library with the libttsim interface, instead of the built-in one. The board is
    /// the library's; --board must agree with it.
    #[arg(long, value_name = "LIB.so", help_heading = KERNEL_PROGRAMS)]
    pub chip: Option<PathBuf>,
    /// How programs reach the cores: through the command queue and its firmware, or by writes of the host; fast unless given.
    #[arg(long, value_enum, help_heading = KERNEL_PROGRAMS)]
    pub dispatch: Option<DispatchName>,
    /// Other firmware for the workers: a folder with brisc.elf, ncrisc.elf, trisc0.elf, trisc1.elf and trisc2.elf, and
    /// memory-map.toml if their memory map is not the usual one. Dispatch firmware and kernels stay ours.
    #[arg(long, value_name = "DIR", help_heading = KERNEL_PROGRAMS)]
    pub firmware: Option<PathBuf>,
    /// Also write every record that went to the command queue, for `tilework cq decode`. Needs fast dispatch.
    #[arg(long, value_name = "FILE", help_heading = KERNEL_PROGRAMS)]
    pub capture: Option<PathBuf>,
    /// Measure each core's kernel from start to end. Needs fast dispatch and our own worker firmware.
    #[arg(long, help_heading = KERNEL_PROGRAMS)]
    pub core_timing: bool,
    /// Give up when the program has run for this many cycles; 20 billion unless given.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), help_heading = KERNEL_PROGRAMS)]
    pub max_cycles: Option<u64>,
    #[command(flatten)]
    pub model: ModelArgs,
    #[command(flatten)]
    pub netlist: NetlistRunArgs,
    /// The architecture that the loader's model is of; of those that the netlist is for, Blackhole or else the first unless given.
    #[arg(long, value_enum, help_heading = NETLISTS)]
    pub arch: Option<ArchName>,
    /// Also write the results of operation N of the program, or of all operations, to the output folder.
    #[arg(long, value_name = "N|all", value_parser = parse_dump, help_heading = MODELS)]
    pub dump_op: Option<DumpOp>,
    /// Print the time of each operation and of each kind.
    #[arg(long, help_heading = MODELS)]
    pub profile: bool,
}

impl RunArgs {
    /// The first option that was given and means nothing without a chip.
    pub fn chip_option(&self) -> Option<&'static str> {
        first_given(&[
            (self.board.is_some(), "--board"),
            (self.chip.is_some(), "--chip"),
            (self.dispatch.is_some(), "--dispatch"),
            (self.firmware.is_some(), "--firmware"),
            (self.capture.is_some(), "--capture"),
            (self.core_timing, "--core-timing"),
            (self.max_cycles.is_some(), "--max-cycles"),
        ])
    }

    /// The first option that was given and is for compiled models alone.
    pub fn model_option(&self) -> Option<&'static str> {
        first_given(&[
            (self.model.entry.is_some(), "--entry"),
            (self.model.any_schema, "--any-schema"),
            (self.model.allow_native_code, "--allow-native-code"),
            (self.dump_op.is_some(), "--dump-op"),
            (self.profile, "--profile"),
        ])
    }
}

/// The first option of a list of which it is known whether each was given.
pub fn first_given(options: &[(bool, &'static str)]) -> Option<&'static str> {
    options.iter().find_map(|(given, option)| given.then_some(*option))
}

const KERNEL_PROGRAMS: &str = "Kernel programs";
const MODELS: &str = "Compiled models";
const NETLISTS: &str = "Netlists";

/// How a compiled model is read and run.
#[derive(clap::Args, Debug)]
pub struct ModelArgs {
    /// The program of the file, by index or name; the first unless given.
    #[arg(long, value_name = "PROGRAM", help_heading = MODELS)]
    pub entry: Option<String>,
    /// Read files of compilers that are not known, too, by the names of their operations.
    #[arg(long, help_heading = MODELS)]
    pub any_schema: bool,
    /// Where results of floating-point operations are rounded to the program's types; after operations unless given. `check` tries ends, too, when
    /// an output is beyond its tolerance otherwise, and says so.
    #[arg(long, value_enum, help_heading = MODELS)]
    pub rounding: Option<RoundingName>,
    /// Let native libraries in the file run on this machine. There is no loader for them yet: such programs are refused with or without it.
    #[arg(long, help_heading = MODELS)]
    pub allow_native_code: bool,
}

/// Arguments of `tilework check`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Without --pcc, --max-error, --atol and --rtol the tolerance follows the program's types: integers exactly; float32 a correlation of 0.9999 and an \
error of 1e-4 of the range; bfloat16 0.999 and 2 %.

Examples:
  tilework check model.ttnn --expect expected
  tilework run model.ttnn --input 0=in0.npy --out good --dump-op all
  tilework check model.ttnn --expect expected --bisect good
  tilework check netlist.yaml --json

What is checked in netlists is described in docs/netlist.md.")]
pub struct CheckArgs {
    /// The compiled model, a .ttnn file, or a Buda netlist, a .yaml file.
    pub program: PathBuf,
    /// The folder with in0.npy, in1.npy... and the expected out0.npy, out1.npy...; for a netlist QUEUE.npy for each queue that is to be filled or
    /// compared. A netlist without it is only checked.
    #[arg(long, value_name = "DIR")]
    pub expect: Option<PathBuf>,
    /// Name the first operation whose result leaves the one in this folder, which `tilework run --dump-op all` has written.
    #[arg(long, value_name = "DIR")]
    pub bisect: Option<PathBuf>,
    /// The smallest correlation (Pearson) of each output.
    #[arg(long, value_name = "R")]
    pub pcc: Option<f64>,
    /// The largest absolute error, as a part of the range of the expected output.
    #[arg(long, value_name = "PART")]
    pub max_error: Option<f64>,
    /// Every element within ATOL + RTOL * |expected|.
    #[arg(long, value_name = "ATOL")]
    pub atol: Option<f64>,
    /// See --atol.
    #[arg(long, value_name = "RTOL")]
    pub rtol: Option<f64>,
    /// The form of the result.
    #[arg(long, value_enum, default_value_t = ReportForm::Text)]
    pub report: ReportForm,
    #[command(flatten)]
    pub model: ModelArgs,
    #[command(flatten)]
    pub netlist: NetlistCheckArgs,
    #[command(flatten)]
    pub netlist_run: NetlistRunArgs,
}

impl CheckArgs {
    /// The folder with expected arrays, which compiled models need.
    pub fn expected(&self) -> Outcome<&Path> {
        self.expect.as_deref().ok_or_else(|| Failure::usage("a compiled model is checked with --expect DIR"))
    }

    /// The tolerance: `usual`, or what was asked for instead.
    pub fn tolerance(&self, usual: Tolerance) -> Tolerance {
        if self.pcc.is_none() && self.max_error.is_none() && self.atol.is_none() && self.rtol.is_none() {
            return usual;
        }
        let all_close = self.atol.is_some() || self.rtol.is_some();
        let (atol, rtol) = match all_close {
            true => (self.atol.unwrap_or(0.0), self.rtol.unwrap_or(0.0)),
            false => (usual.atol, usual.rtol),
        };
        Tolerance { atol, rtol, all_close, pcc: self.pcc, of_range: self.max_error }
    }
}

/// Arguments of `tilework show`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  tilework show model.ttnn
  tilework show model.ttnn --mlir > model.mlir
  tilework show model.ttnn --json | jq .contents.Ttnn.programs[0].inputs
  tilework show netlist.yaml --memory")]
pub struct ShowArgs {
    /// The file: .ttnn, .ttm, .ttsys or .yaml.
    pub file: PathBuf,
    /// Print the compiler's text of the whole file instead.
    #[arg(long, conflicts_with = "json")]
    pub mlir: bool,
    /// Print everything as one JSON object.
    #[arg(long)]
    pub json: bool,
    /// List every operation, not only how many there are of each kind.
    #[arg(long, conflicts_with_all = ["json", "mlir"])]
    pub ops: bool,
    /// Read files of compilers that are not known, too, by the names of their operations.
    #[arg(long)]
    pub any_schema: bool,
    #[command(flatten)]
    pub netlist: NetlistShowArgs,
}

/// An input as it is given.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Input {
    /// Its name, or its position.
    pub name: String,
    /// Where its elements come from.
    pub source: Source,
}

/// Where elements come from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Source {
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

/// Which operations' results to keep.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DumpOp {
    /// One of the program that runs.
    One(usize),
    /// All, those of called programs included.
    All,
}

/// Where results are rounded.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum RoundingName {
    /// After each operation, as a device does it
    Operations,
    /// At inputs and outputs only, as a reference in float32 does it
    Ends,
}

impl RoundingName {
    /// The name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Operations => "operations",
            Self::Ends => "ends",
        }
    }
}

/// What runs a program.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum EngineName {
    /// The simulated chip
    Device,
    /// Host arithmetic
    Native,
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

fn parse_input(text: &str) -> Result<Input, String> {
    match text.split_once('=') {
        Some((name, source)) if !name.is_empty() && !source.is_empty() => {
            Ok(Input { name: name.to_owned(), source: parse_source(source)? })
        }
        _ => Err("expected NAME=FILE".to_owned()),
    }
}

fn parse_source(text: &str) -> Result<Source, String> {
    if let Some(seed) = text.strip_prefix("random:") {
        let seed = seed.parse().map_err(|_| format!("random:{seed}: expected a seed from 0 to {}", u32::MAX))?;
        return Ok(Source::Random(seed));
    }
    for ending in [".npz:", ".safetensors:"] {
        if let Some(at) = text.find(ending) {
            let (path, key) = text.split_at(at + ending.len() - 1);
            return Ok(Source::File { path: path.into(), key: Some(key[1..].to_owned()) });
        }
    }
    Ok(Source::File { path: text.into(), key: None })
}

fn parse_dump(text: &str) -> Result<DumpOp, String> {
    match text {
        "all" => Ok(DumpOp::All),
        _ => text.parse().map(DumpOp::One).map_err(|_| "expected the index of an operation or all".to_owned()),
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
        let file = |path: &str, key: Option<&str>| Source::File { path: path.into(), key: key.map(str::to_owned) };
        let input = |name: &str, source| Ok(Input { name: name.into(), source });
        assert_eq!(parse_input("x=a=b.npy"), input("x", file("a=b.npy", None)));
        assert_eq!(parse_input("0=w.npz:a:b"), input("0", file("w.npz", Some("a:b"))));
        assert_eq!(parse_input("w=w.safetensors:q.weight"), input("w", file("w.safetensors", Some("q.weight"))));
        assert_eq!(parse_input("1=random:7"), input("1", Source::Random(7)));
        for wrong in ["x", "=a.npy", "x=", "", "x=random:", "x=random:-1"] {
            assert!(parse_input(wrong).is_err());
        }
    }
}
