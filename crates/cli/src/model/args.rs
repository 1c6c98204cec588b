//! Options that only compiled models have.

use crate::args::EngineName;
use crate::board_option::{BoardOption, ChipPlace};
use crate::comparison::ToleranceArgs;
use crate::failure::{Failure, Outcome};
use crate::kinds::{INSPECT, Verb};
use crate::program::args::DispatchName;
use crate::program::inspect;
use clap::ValueEnum;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use tilework_checks::{Allow, Level, Policy, Word};
use tilework_engine::Feed;

/// How a compiled model is read, and which of its programs is meant.
#[derive(clap::Args, Debug)]
pub struct ModelArgs {
    /// The program of the file, by index or name; the first unless given.
    #[arg(long, value_name = "PROGRAM")]
    pub entry: Option<String>,
    #[command(flatten)]
    pub schema: SchemaArgs,
    /// Where results of floating-point operations are rounded to the program's types; after each
    /// operation unless given. With `ends` all between is float32, on the chip, too. `check` also
    /// tries `ends` when an output is beyond its tolerance, and says so.
    #[arg(long, value_enum)]
    pub rounding: Option<RoundingName>,
    /// Let functions in native libraries of the file run on this machine: each call in a process of
    /// its own, but with all your rights. Programs that call such functions are refused without it.
    #[arg(long)]
    pub allow_native_code: bool,
    /// How an input that is given whole is split over the devices of a program for several: for
    /// each axis of the mesh a dimension, or - where devices get the same. Needed where its shape
    /// allows several ways.
    #[arg(long, value_name = "INPUT=AXES", value_parser = parse_axes, allow_hyphen_values = true)]
    pub shard: Vec<Axes>,
    /// Join the devices' parts of an output: for each axis of the mesh a dimension, or - where
    /// devices have the same. `check` needs it where the expected shape allows several ways.
    #[arg(long, value_name = "OUTPUT=AXES", value_parser = parse_axes, allow_hyphen_values = true)]
    pub join: Vec<Axes>,
}

/// The dimensions of an input or output along the axes of a mesh, as they are given.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Axes {
    /// The input's name or position, or the output's position.
    pub name: String,
    /// A dimension or `-` for each axis.
    pub axes: String,
}

/// On what a compiled model runs, if on the chip.
#[derive(clap::Args, Debug)]
pub struct OnChipArgs {
    #[command(flatten)]
    pub board: BoardOption,
    #[command(flatten)]
    pub place: ChipPlace,
    /// How programs reach the workers of the chip; through the command queue (fast) unless given.
    /// Under slow dispatch cycles are those that the host has waited.
    #[arg(long, value_enum)]
    pub dispatch: Option<DispatchName>,
    /// Threads that run the chip's tiles when many of them are busy; one for each processor of the
    /// machine unless given. Results and cycles do not depend on it.
    #[arg(long, value_name = "N")]
    pub threads: Option<NonZeroUsize>,
    /// Refuse operations that the chip has no program for. Without this the host computes them, and
    /// the report says which and why.
    #[arg(long)]
    pub strict: bool,
}

/// Which files are read.
#[derive(clap::Args, Clone, Copy, Debug)]
pub struct SchemaArgs {
    /// Also read files of unknown compilers, by the names of their operations.
    #[arg(long)]
    pub any_schema: bool,
}

/// How a compiled model is run.
#[derive(clap::Args, Debug)]
#[command(next_help_heading = "Options of compiled models")]
pub struct ModelRunArgs {
    #[command(flatten)]
    pub model: ModelArgs,
    #[command(flatten)]
    pub on_chip: OnChipArgs,
    /// Also write the results of operation N of the program, or of all operations, to the output
    /// folder.
    #[arg(long, value_name = "N|all", value_parser = parse_dump)]
    pub dump_op: Option<DumpOp>,
    /// Print the time of each operation and of each kind; on the chip its cycles.
    #[arg(long)]
    pub profile: bool,
    /// Run it so often with the same inputs, which are brought to the device once. The report has
    /// the first run and the usual one of the others, and is about the last in all else.
    #[arg(long, value_name = "N", default_value = "1")]
    pub repeat: NonZeroUsize,
    /// Also write a timeline of the operations on the chip, which runs it then: .pftrace
    /// (Perfetto), .json or .txt.
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    /// Compare each operation of the chip, which runs it then, with host arithmetic. The first that
    /// differs too much is named, and what it has read and both results are written to the output
    /// folder (departure_in0.npy...).
    #[arg(long, value_enum)]
    pub compare: Option<CompareName>,
    #[command(flatten)]
    pub checks: ModelChecksArgs,
}

/// What is looked for in the kernels of a compiled model.
#[derive(clap::Args, Clone, Debug, Default)]
#[command(next_help_heading = INSPECT)]
pub struct ModelChecksArgs {
    /// What is looked for while the chip runs the model's kernels: off, warn (report what is
    /// certainly wrong), error (end at the first finding, with exit code 1), races (also accesses
    /// without order), suspicious (also what correct programs do now and then); a list with commas,
    /// or once for each. off unless given. The program is for one device, and the chip runs it
    /// then.
    #[arg(long, value_name = "WORDS", value_delimiter = ',', value_parser = inspect::word)]
    pub checks: Vec<Word>,
    /// A finding that is meant to be: its id, everywhere or at a place (ID@KERNEL, ID@FILE,
    /// ID@FILE:LINE); once for each. `tilework explain` lists the ids.
    #[arg(long, value_name = "ID[@PLACE]", value_parser = inspect::allow)]
    pub allow: Vec<Allow>,
}

impl ModelChecksArgs {
    /// The first of the options that was given.
    pub fn given(&self) -> Option<&'static str> {
        let given = [(!self.checks.is_empty(), "--checks"), (!self.allow.is_empty(), "--allow")];
        given.into_iter().find_map(|(given, option)| given.then_some(option))
    }

    /// The policy of these options; none if nothing is to be looked for.
    ///
    /// # Errors
    /// Words that exclude each other; options that have no effect.
    pub fn policy(&self, engine: EngineName) -> Outcome<Option<Policy>> {
        if let Some(option) = self.given().filter(|_| engine != EngineName::Chip) {
            return Err(Failure::option(option, " is for --engine chip"));
        }
        let policy = Policy::new(&self.checks, self.allow.clone());
        let policy = policy.map_err(|error| Failure::option("--checks", format_args!(": {error}")))?;
        let is_on = !self.checks.is_empty() && policy.level() != Level::Off;
        if !is_on && !self.allow.is_empty() {
            return Err(Failure::option("--allow", " has no effect without --checks"));
        }
        Ok(is_on.then_some(policy))
    }
}

/// What a compiled model is compared with.
#[derive(clap::Args, Debug)]
#[command(next_help_heading = "Options of compiled models")]
pub struct ModelCheckArgs {
    /// The folder with in0.npy, in1.npy... and the expected out0.npy, out1.npy...; needed for a
    /// compiled model.
    #[arg(long, value_name = "DIR")]
    pub expect: Option<PathBuf>,
    /// Name the first operation whose result differs from the one in this folder, which `tilework
    /// run --dump-op all` has written.
    #[arg(long, value_name = "DIR")]
    pub bisect: Option<PathBuf>,
    #[command(flatten)]
    pub tolerance: ToleranceArgs,
    #[command(flatten)]
    pub model: ModelArgs,
    /// What runs it; native unless given: expected arrays are often computed with fewer roundings
    /// than the chip has.
    #[arg(long, value_enum)]
    pub engine: Option<EngineName>,
    #[command(flatten)]
    pub on_chip: OnChipArgs,
}

/// What of a compiled model is shown.
#[derive(clap::Args, Debug)]
#[command(next_help_heading = "Options of compiled models")]
pub struct ModelShowArgs {
    /// Print the compiler's text of the whole file instead.
    #[arg(long, conflicts_with = "json")]
    pub mlir: bool,
    /// List every operation, not only how many there are of each kind.
    #[arg(long, conflicts_with_all = ["json", "mlir"])]
    pub ops: bool,
    /// Print the memory that the programs need on the chip over time: DRAM and L1 after each
    /// operation that takes or gives some, the peaks, and who holds what then.
    #[arg(long, conflicts_with_all = ["mlir", "ops"])]
    pub memory: bool,
    #[command(flatten)]
    pub board: BoardOption,
    #[command(flatten)]
    pub schema: SchemaArgs,
}

/// Which operations' results to keep.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DumpOp {
    /// One of the program that runs.
    One(usize),
    /// All, those of called programs included.
    All,
}

/// What the chip's operations read while they are compared with host arithmetic.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum CompareName {
    /// The chip's own results, so that errors add up as without a comparison
    Native,
    /// The results of host arithmetic, so that each operation is judged by itself
    NativeInputs,
}

impl CompareName {
    /// The same for the engine.
    pub const fn feed(self) -> Feed {
        match self {
            Self::Native => Feed::Own,
            Self::NativeInputs => Feed::Native,
        }
    }

    /// What operations read, in reports.
    pub const fn inputs(self) -> &'static str {
        match self {
            Self::Native => "own",
            Self::NativeInputs => "native",
        }
    }
}

/// Where results are rounded.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum RoundingName {
    /// After each operation, as the program says
    #[default]
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

/// Reads `0=1,-`.
fn parse_axes(text: &str) -> Result<Axes, String> {
    match text.split_once('=') {
        Some((name, axes)) if !name.is_empty() && !axes.is_empty() => {
            Ok(Axes { name: name.to_owned(), axes: axes.to_owned() })
        }
        _ => Err("expected a name or position, =, and for each axis a dimension or -, such as 0=1,-".to_owned()),
    }
}

fn parse_dump(text: &str) -> Result<DumpOp, String> {
    match text {
        "all" => Ok(DumpOp::All),
        _ => text.parse().map(DumpOp::One).map_err(|_| "expected the index of an operation or all".to_owned()),
    }
}

/// What help says behind the options.
pub fn examples(verb: Verb) -> &'static str {
    match verb {
        Verb::Run => {
            "\
Examples:
  tilework run model.ttnn --input 0=x.npy --input 1=weights.safetensors:w --input 2=random:7 --out out --profile
  tilework run model.ttnn --input 0=x.npy --out out --dump-op all --report json
  tilework run mesh.ttnn --input 0=x.npy --input 1_dev0=a.npy --input 1_dev1=b.npy --input 2_all=w.npy --join 0=0 --out out

docs/models.md describes compiled models, docs/report.md the report."
        }
        Verb::Check => {
            "\
Without --pcc, --max-error, --atol and --rtol the tolerance follows the program's types: integers exactly; float32 a
correlation of 0.9999 and an error of 1e-4 of the range; bfloat16 0.999 and 2 %.

Examples:
  tilework check model.ttnn --expect expected
  tilework run model.ttnn --input 0=in0.npy --out good --dump-op all
  tilework check model.ttnn --expect expected --bisect good"
        }
        Verb::Show => {
            "\
Examples:
  tilework show model.ttnn --ops
  tilework show model.ttnn --mlir > model.mlir
  tilework show model.ttnn --report json | jq .contents.programs[0].inputs"
        }
    }
}
