//! The command line of `tilework pto`.

use crate::answer::{ReportArgs, ReportOrJsonArgs};
use clap::Subcommand;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use std::path::{Path, PathBuf};
use tilework_pto::examples::Example;
use tilework_pto::{Arch, Direction, Profile, RacePolicy, Split};

/// Commands about the Ascend cluster.
#[derive(Subcommand, Debug)]
pub enum PtoCommand {
    /// List the cores of a chip: kind, subblock, cluster
    Ids(IdsArgs),
    /// Run an example, or rings and schedules of a file, on a simulated cluster
    ///
    /// The result of an example is compared with plain arithmetic, the tiles of a file with what
    /// was pushed.
    Run(RingRunArgs),
    /// Try every interleaving of the cores of a small ring, and show the shortest way to each
    /// mistake
    Explore(ExploreArgs),
}

/// Arguments of `tilework pto ids`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
On a2a3 the scheduler binds Vectors to Cubes when it launches; the list shows how the simulated one does.

Examples:
  tilework pto ids --arch a5 --report json
  tilework pto ids --arch a5 --core 20 --subblock 0")]
pub struct IdsArgs {
    /// The architecture.
    #[arg(long, value_parser = one_of(ARCHS), default_value = ARCHS[0].0)]
    pub arch: Named<Arch>,
    /// Only this core.
    #[arg(long, value_name = "ID")]
    pub core: Option<u32>,
    /// The subblock that the core should have. Another one is an error that says what the
    /// documents' formula would have given.
    #[arg(long, value_name = "0|1", requires = "core")]
    pub subblock: Option<u32>,
    #[command(flatten)]
    pub report: ReportOrJsonArgs,
}

/// Arguments of `tilework pto run`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  tilework pto run flash --arch a2a3 --slots 8 --seed 7 --trace flash.pftrace
  tilework pto run round-trip --arch a5 --slots 1 --report json
  tilework pto run bias --arch a2a3 --slots 5 --profile headers --seed 3
  tilework pto run examples/rings/there-and-back.toml --seed 3

A trace is written also when the run ends with a fault. docs/pto.md describes examples, profiles and what they show.")]
pub struct RingRunArgs {
    /// The example: bias, dequant, round-trip, flash or flash-f32 (docs/pto.md); or a file (.toml)
    /// with rings and what each core does with them.
    #[arg(value_parser = named_or_file(EXAMPLES))]
    pub example: NamedOrFile<Example>,
    #[command(flatten)]
    pub over: OverArgs,
    /// Seed of the inputs, the cores' starts and the jitter of all latencies.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
    /// How much longer than stated a latency may be.
    #[arg(long, value_name = "PERCENT", default_value_t = 25, value_parser = clap::value_parser!(u64).range(..=10_000))]
    pub jitter: u64,
    /// Cycles that a core spends on every popped tile beyond what its arithmetic costs.
    #[arg(long, value_name = "CYCLES", default_value_t = 0, value_parser = clap::value_parser!(u64).range(..=1_000_000))]
    pub slow_consumer: u64,
    /// What happens when a tile is overwritten before it was read.
    #[arg(long, value_parser = one_of(RACES), default_value = RACES[0].0)]
    pub races: Named<RacePolicy>,
    /// Also write a timeline: .pftrace (opens in ui.perfetto.dev), .json (trace events) or .txt.
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    #[command(flatten)]
    pub report: ReportArgs,
}

/// Arguments of `tilework pto explore`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
A step of a core is a wait, a set, or the start or the end of a transfer; between two steps of a core the others may do \
anything. Steps take no time here.

Examples:
  tilework pto explore --slots 2 --tiles 6
  tilework pto explore push-push --slots 2 --tiles 3
  tilework pto explore --arch a2a3 --slots 5 --tiles 6 --profile headers
  tilework pto explore examples/rings/there-and-back.toml

Exit codes: 0 every interleaving ends well, with all semaphores at zero; 1 one does not, or there are more states than \
--max-states; 2 wrong use.")]
pub struct ExploreArgs {
    /// What the cores do: one-way (the producer pushes all tiles, the consumer pops and frees
    /// each), never-freed (the same without TFREE), push-push (Cube and Vectors push some tiles
    /// each before they pop as many); or a file (.toml) with rings and what each core does with
    /// them.
    #[arg(value_parser = named_or_file(SCENARIOS), default_value = SCENARIOS[0].0)]
    pub scenario: NamedOrFile<Actions>,
    #[command(flatten)]
    pub over: OverArgs,
    /// Which way the ring goes; c2v unless given, for push-push both.
    #[arg(long, value_parser = one_of(DIRECTIONS))]
    pub direction: Option<Named<Direction>>,
    /// Tiles; for push-push, those that each core pushes before it pops as many. 6 unless given.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub tiles: Option<u32>,
    /// How often push-push does so; once unless given.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub rounds: Option<u32>,
    /// Whether both Vectors have a part of each tile; up-down unless given.
    #[arg(long, value_parser = one_of(SPLITS))]
    pub split: Option<Named<Split>>,
    /// Stop after this many states.
    #[arg(long, value_name = "N", default_value_t = 5_000_000)]
    pub max_states: usize,
    #[command(flatten)]
    pub report: ReportArgs,
}

/// The architecture and what all rings have in common. What a file states, these replace.
#[derive(clap::Args, Clone, Copy, Debug)]
pub struct OverArgs {
    /// The architecture; that of the file, or a5, unless given.
    #[arg(long, value_parser = one_of(ARCHS))]
    pub arch: Option<Named<Arch>>,
    /// Slots of each ring and direction: 1 to 15; with tags up to 8 (4 in both directions), with
    /// headers up to 64. Unless given those of the file, 8 for an example, 2 for an exploration.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub slots: Option<u32>,
    /// The protocol of the rings; that of the file, or counting, unless given.
    #[arg(long, value_parser = one_of(PROFILES))]
    pub profile: Option<Named<Profile>>,
}

impl OverArgs {
    /// The architecture, where no file states one.
    pub fn arch(&self) -> Named<Arch> {
        self.arch.unwrap_or(usual(ARCHS))
    }

    /// The protocol, where no file states one.
    pub fn profile(&self) -> Named<Profile> {
        self.profile.unwrap_or(usual(PROFILES))
    }
}

/// A value of the library by its name, or a file.
#[derive(Clone, Debug)]
pub enum NamedOrFile<T: 'static> {
    /// One of the names.
    Named(Named<T>),
    /// A file.
    File(PathBuf),
}

/// Reads one of these names, or the path of a file.
fn named_or_file<T: Copy + Send + Sync + 'static>(
    names: Names<T>,
) -> impl Fn(&str) -> Result<NamedOrFile<T>, String> + Clone + Send + Sync + 'static {
    move |given: &str| match (find(names, given), Path::new(given).extension()) {
        (Some(named), _) => Ok(NamedOrFile::Named(named)),
        (None, Some(ending)) if ending == "toml" => Ok(NamedOrFile::File(given.into())),
        (None, _) => Err(format!("expected {} or a file (.toml)", list(names))),
    }
}

/// A value of the library by its name on the command line.
#[derive(Clone, Copy, Debug)]
pub struct Named<T> {
    /// Its name.
    pub name: &'static str,
    /// What it stands for.
    pub value: T,
}

/// Names, what they mean, and values.
pub type Names<T> = &'static [(&'static str, &'static str, T)];

/// The value of a name.
pub fn find<T: Copy>(names: Names<T>, given: &str) -> Option<Named<T>> {
    names.iter().find(|(name, ..)| *name == given).map(|&(name, _, value)| Named { name, value })
}

/// The names, for messages.
pub fn list<T>(names: Names<T>) -> String {
    names.iter().map(|(name, ..)| *name).collect::<Vec<_>>().join(", ")
}

/// The name of a value.
pub fn name_of<T: PartialEq>(names: Names<T>, value: &T) -> &'static str {
    names.iter().find(|(.., known)| known == value).map_or("", |(name, ..)| name)
}

/// The first of some names, which is meant unless another is given.
pub const fn usual<T: Copy>(names: Names<T>) -> Named<T> {
    let (name, _, value) = names[0];
    Named { name, value }
}

/// Reads one of these names.
fn one_of<T: Copy + Send + Sync + 'static>(names: Names<T>) -> impl TypedValueParser<Value = Named<T>> {
    let possible = names.iter().map(|&(name, meaning, _)| PossibleValue::new(name).help(meaning));
    PossibleValuesParser::new(possible).try_map(move |given| find(names, &given).ok_or("unknown name"))
}

/// The architectures.
pub const ARCHS: Names<Arch> = &[
    ("a5", "Two dies, 36 clusters; tiles go into the consumer's SRAM", Arch::A5),
    ("a2a3", "25 clusters; tiles go through global memory", Arch::A2A3),
];

/// The protocols.
pub const PROFILES: Names<Profile> = &[
    ("counting", "The seed's four counting semaphores: a credit for each tile", Profile::Counting),
    ("tags", "The design document's flags: two for each slot", Profile::PerTagFlags),
    (
        "headers",
        "What pto-isa's headers do: a credit for every second half of the slots, with their defects",
        Profile::SparseCredits,
    ),
];

const EXAMPLES: Names<Example> = &[
    ("bias", "A B + bias: Cube to Vectors", Example::Bias),
    ("dequant", "Whole numbers times scales, then A W: Vectors to Cube", Example::Dequant),
    ("round-trip", "C = A + B, E = C D, G = E - F: both directions at once", Example::RoundTrip),
    ("flash", "Flash attention through three rings, weights in halves", Example::Flash),
    ("flash-f32", "The same with weights in single precision", Example::FlashF32),
];

const RACES: Names<RacePolicy> = &[
    ("stop", "It ends the run", RacePolicy::Stop),
    ("record", "It is recorded, and the run goes on with what is in the slot", RacePolicy::Record),
];

const DIRECTIONS: Names<Direction> = &[
    ("c2v", "Cube to Vectors", Direction::C2V),
    ("v2c", "Vectors to Cube", Direction::V2C),
    ("both", "Both", Direction::Both),
    ("c2v-gm", "Cube to Vectors through global memory, on a5", Direction::C2vGm),
    ("v2c-gm", "Vectors to Cube through global memory, on a5", Direction::V2cGm),
    ("both-gm", "Both through global memory, on a5", Direction::BothGm),
];

/// The direction of a ring when none is given.
pub const fn usual_direction(both: bool) -> Named<Direction> {
    let (name, _, value) = if both { DIRECTIONS[2] } else { DIRECTIONS[0] };
    Named { name, value }
}

/// Splits of an exploration.
pub const SPLITS: Names<Split> =
    &[("up-down", "Both have a part", Split::UpDown), ("none", "Vector 0 has it all", Split::None)];

const SCENARIOS: Names<Actions> = &[
    ("one-way", "The producer pushes all tiles, the consumer pops and frees each", Actions::OneWay),
    ("never-freed", "The same without TFREE", Actions::NeverFreed),
    ("push-push", "Cube and Vectors push some tiles each before they pop as many", Actions::PushPush),
];

/// What the cores of an exploration do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Actions {
    /// The producer pushes all tiles, the consumer pops and frees each.
    OneWay,
    /// The same without TFREE.
    NeverFreed,
    /// Cube and Vectors push some tiles each before they pop as many.
    PushPush,
}
