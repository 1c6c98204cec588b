//! Arguments of `tilework check` and `tilework show` that only netlists have.

use clap::ValueEnum;
use tilework_netlist::Arch;

/// Under which heading they are listed.
const NETLISTS: &str = "Netlists";

/// How a netlist is checked.
#[derive(clap::Args, Debug, Default)]
pub struct NetlistCheckArgs {
    /// Print the findings as one JSON object.
    #[arg(long, help_heading = NETLISTS)]
    pub json: bool,
    /// The architecture that the netlist must be right for; one at least of those that it names unless given.
    #[arg(long, value_enum, help_heading = NETLISTS)]
    pub arch: Option<ArchName>,
}

/// What of a netlist is shown.
#[derive(clap::Args, Debug, Default)]
pub struct NetlistShowArgs {
    /// Show what it takes of DRAM channels and cores.
    #[arg(long, conflicts_with_all = ["ops", "mlir"], help_heading = NETLISTS)]
    pub memory: bool,
    /// The architecture; the last one that the netlist names and is right for unless given.
    #[arg(long, value_enum, help_heading = NETLISTS)]
    pub arch: Option<ArchName>,
}

/// An architecture, as netlists name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ArchName {
    /// Grayskull.
    Grayskull,
    /// Wormhole A0.
    Wormhole,
    /// Wormhole B0.
    #[value(name = "wormhole_b0")]
    WormholeB0,
    /// Blackhole.
    Blackhole,
}

impl From<ArchName> for Arch {
    fn from(name: ArchName) -> Self {
        match name {
            ArchName::Grayskull => Arch::Grayskull,
            ArchName::Wormhole => Arch::Wormhole,
            ArchName::WormholeB0 => Arch::WormholeB0,
            ArchName::Blackhole => Arch::Blackhole,
        }
    }
}
