//! The command line of `tilework pto`.

use crate::args::ReportForm;
use clap::{Subcommand, ValueEnum};
use std::path::PathBuf;
use tilework_pto::examples::Example;
use tilework_pto::{Arch, Direction, Profile, RacePolicy, Split};

/// Commands about the Ascend cluster.
#[derive(Subcommand, Debug)]
pub enum PtoCommand {
    /// List the cores of a chip: kind, subblock, cluster
    Ids(IdsArgs),
    /// Run an example on a simulated cluster and compare its result with plain arithmetic
    Run(RunArgs),
    /// Try every interleaving of the cores of a small ring and show the shortest way to what goes wrong
    Explore(ExploreArgs),
}

/// Arguments of `tilework pto ids`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
On a2a3 the scheduler binds Vectors to Cubes when it launches; the list shows how the simulated one does.

Examples:
  tilework pto ids --arch a5 --json
  tilework pto ids --arch a5 --core 20 --subblock 0")]
pub struct IdsArgs {
    /// The architecture.
    #[arg(long, value_enum, default_value_t = ArchName::A5)]
    pub arch: ArchName,
    /// Only this core.
    #[arg(long, value_name = "ID")]
    pub core: Option<u32>,
    /// The subblock that the core is taken for; another one is an error that says what the documents' formula would have
    /// given.
    #[arg(long, value_name = "0|1", requires = "core")]
    pub subblock: Option<u32>,
    /// Print a JSON array with an object for each core.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `tilework pto run`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  tilework pto run flash --arch a2a3 --slots 8 --seed 7 --trace flash.pftrace
  tilework pto run round-trip --arch a5 --slots 1 --report json
  tilework pto run bias --arch a2a3 --slots 5 --profile headers --seed 3

A trace is written also when the run ends with a fault. docs/pto.md describes examples, profiles and what they show.")]
pub struct RunArgs {
    /// The example.
    #[arg(value_enum)]
    pub example: ExampleName,
    /// The architecture.
    #[arg(long, value_enum, default_value_t = ArchName::A5)]
    pub arch: ArchName,
    /// Slots of each ring and direction: 1 to 15; with tags up to 8 (4 in both directions), with headers up to 64.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub slots: u32,
    /// What the inputs, the cores' starts and the jitter of all latencies are drawn from.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
    /// The protocol of the rings.
    #[arg(long, value_enum, default_value_t = ProfileName::Counting)]
    pub profile: ProfileName,
    /// By how many hundredths a latency may be longer than stated.
    #[arg(long, value_name = "PERCENT", default_value_t = 25, value_parser = clap::value_parser!(u64).range(..=10_000))]
    pub jitter: u64,
    /// Cycles that a core spends on every popped tile beyond what its arithmetic costs.
    #[arg(long, value_name = "CYCLES", default_value_t = 0, value_parser = clap::value_parser!(u64).range(..=1_000_000))]
    pub slow_consumer: u64,
    /// What the overwriting of a tile that was not read does.
    #[arg(long, value_enum, default_value_t = RacesName::Stop)]
    pub races: RacesName,
    /// Also write a timeline: .pftrace (opens in ui.perfetto.dev), .json (trace events) or .txt.
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    /// The form of the report.
    #[arg(long, value_enum, default_value_t = ReportForm::Text)]
    pub report: ReportForm,
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

Exit codes: 0 every interleaving ends well, with all semaphores at zero; 1 one does not, or there are more states than \
--max-states; 2 wrong use.")]
pub struct ExploreArgs {
    /// What the cores do.
    #[arg(value_enum, default_value_t = ScenarioName::OneWay)]
    pub scenario: ScenarioName,
    /// The architecture.
    #[arg(long, value_enum, default_value_t = ArchName::A5)]
    pub arch: ArchName,
    /// Which way the ring goes; c2v unless given, for push-push both.
    #[arg(long, value_enum)]
    pub direction: Option<DirectionName>,
    /// Slots of each direction.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub slots: u32,
    /// Tiles; for push-push those that each core pushes before it pops as many.
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub tiles: u32,
    /// How often push-push does so.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub rounds: u32,
    /// The protocol.
    #[arg(long, value_enum, default_value_t = ProfileName::Counting)]
    pub profile: ProfileName,
    /// Whether both Vectors have a part of each tile.
    #[arg(long, value_enum, default_value_t = SplitName::UpDown)]
    pub split: SplitName,
    /// Stop when so many states were reached.
    #[arg(long, value_name = "N", default_value_t = 5_000_000)]
    pub max_states: usize,
    /// The form of the report.
    #[arg(long, value_enum, default_value_t = ReportForm::Text)]
    pub report: ReportForm,
}

/// Declares names of the command line for values of the library.
macro_rules! names {
    (
        $(#[$doc:meta])*
        $name:ident for $of:ty { $($(#[$variant_doc:meta])* $variant:ident = $text:literal: $value:expr,)+ }
    ) => {
        $(#[$doc])*
        #[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
        pub enum $name {
            $($(#[$variant_doc])* #[value(name = $text)] $variant,)+
        }

        impl $name {
            /// Its name.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)+
                }
            }

            /// What it stands for.
            pub const fn value(self) -> $of {
                match self {
                    $(Self::$variant => $value,)+
                }
            }
        }
    };
}

names! {
    /// An architecture.
    ArchName for Arch {
        /// Two dies, 36 clusters; tiles go into the consumer's SRAM
        A5 = "a5": Arch::A5,
        /// 25 clusters; tiles go through global memory
        A2A3 = "a2a3": Arch::A2A3,
    }
}

names! {
    /// A protocol.
    ProfileName for Profile {
        /// The seed's four counting semaphores: a credit for each tile
        Counting = "counting": Profile::Counting,
        /// The design document's flags: two for each slot
        Tags = "tags": Profile::PerTagFlags,
        /// What pto-isa's headers do: a credit for every second half of the slots, with their defects
        Headers = "headers": Profile::SparseCredits,
    }
}

names! {
    /// An example.
    ExampleName for Example {
        /// A B + bias: Cube to Vectors
        Bias = "bias": Example::Bias,
        /// Whole numbers times scales, then A W: Vectors to Cube
        Dequant = "dequant": Example::Dequant,
        /// C = A + B, E = C D, G = E - F: both directions at once
        RoundTrip = "round-trip": Example::RoundTrip,
        /// Flash attention through three rings, weights in halves
        Flash = "flash": Example::Flash,
        /// The same with weights in single precision
        FlashF32 = "flash-f32": Example::FlashF32,
    }
}

names! {
    /// What a race does.
    RacesName for RacePolicy {
        /// It ends the run
        Stop = "stop": RacePolicy::Stop,
        /// It is recorded, and the run goes on with what is in the slot
        Record = "record": RacePolicy::Record,
    }
}

names! {
    /// A direction.
    DirectionName for Direction {
        /// Cube to Vectors
        C2v = "c2v": Direction::C2V,
        /// Vectors to Cube
        V2c = "v2c": Direction::V2C,
        /// Both
        Both = "both": Direction::Both,
        /// Cube to Vectors through global memory, on a5
        C2vGm = "c2v-gm": Direction::C2vGm,
        /// Vectors to Cube through global memory, on a5
        V2cGm = "v2c-gm": Direction::V2cGm,
        /// Both through global memory, on a5
        BothGm = "both-gm": Direction::BothGm,
    }
}

names! {
    /// How the Vectors share a tile.
    SplitName for Split {
        /// Both have a part
        UpDown = "up-down": Split::UpDown,
        /// Vector 0 has it all
        None = "none": Split::None,
    }
}

/// What the cores of an exploration do.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum ScenarioName {
    /// The producer pushes all tiles, the consumer pops and frees each
    OneWay,
    /// The same without TFREE
    NeverFreed,
    /// Cube and Vectors push some tiles each before they pop as many
    PushPush,
}

impl ScenarioName {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::OneWay => "one-way",
            Self::NeverFreed => "never-freed",
            Self::PushPush => "push-push",
        }
    }
}
