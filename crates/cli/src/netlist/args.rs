//! Options that only netlists have.

use crate::comparison::ToleranceArgs;
use crate::failure::{Failure, Outcome};
use crate::kinds::Verb;
use crate::model::RoundingName;
use clap::ValueEnum;
use std::path::PathBuf;
use tilework_buda::epoch::{Golden, Rounding};
use tilework_buda::op::Precision;
use tilework_netlist::Arch;

/// How a netlist is run.
#[derive(clap::Args, Debug)]
#[command(next_help_heading = "Options of Buda netlists")]
pub struct NetlistRunArgs {
    #[command(flatten)]
    pub drive: DriveArgs,
    #[command(flatten)]
    pub rounding: RoundingArgs,
    /// The architecture that the loader models; of those that the netlist names, Blackhole or else
    /// the first unless given.
    #[arg(long, value_enum)]
    pub arch: Option<ArchName>,
    /// Also write a timeline of epochs, caches and queues: .pftrace (Perfetto), .json or .txt.
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
}

/// How a netlist is checked.
#[derive(clap::Args, Debug)]
#[command(next_help_heading = "Options of Buda netlists")]
pub struct NetlistCheckArgs {
    /// The folder with QUEUE.npy for each queue that is to be filled or compared. Without it a
    /// netlist is only checked, and not run.
    #[arg(long, value_name = "DIR")]
    pub expect: Option<PathBuf>,
    #[command(flatten)]
    pub tolerance: ToleranceArgs,
    /// The architecture for which the netlist must be right; any of those that it names unless
    /// given.
    #[arg(long, value_enum)]
    pub arch: Option<ArchName>,
    #[command(flatten)]
    pub drive: DriveArgs,
    #[command(flatten)]
    pub rounding: RoundingArgs,
}

/// What of a netlist is shown.
#[derive(clap::Args, Debug)]
#[command(next_help_heading = "Options of Buda netlists")]
pub struct NetlistShowArgs {
    /// Show what it takes of DRAM channels and cores.
    #[arg(long, conflicts_with_all = ["ops", "mlir"])]
    pub memory: bool,
    /// The architecture; the last one that the netlist names and is right for unless given.
    #[arg(long, value_enum)]
    pub arch: Option<ArchName>,
    /// List every operation, not only the first of each graph.
    #[arg(long)]
    pub ops: bool,
}

/// In which precision values are computed, and where they are rounded.
#[derive(clap::Args, Clone, Copy, Debug)]
pub struct RoundingArgs {
    /// Compute in float32, as the golden model of tt-budabackend, whatever acc_df, intermed_df and
    /// math_fidelity say.
    #[arg(long)]
    exact: bool,
    /// Where values are rounded to the netlist's formats: at the ends, where the host writes and
    /// reads queues, unless given; operations: at every queue.
    #[arg(long, value_enum)]
    rounding: Option<RoundingName>,
}

impl RoundingArgs {
    /// The same, as the backend has it.
    pub fn golden(self) -> Golden {
        let rounding = match self.rounding {
            None | Some(RoundingName::Ends) => Rounding::Host,
            Some(RoundingName::Operations) => Rounding::Queues,
        };
        Golden { rounding, precision: if self.exact { Precision::Exact } else { Precision::Device } }
    }
}

/// Instructions and operations of a call unless `--max-steps` says otherwise: a loop of
/// instructions alone ends there within seconds.
const DEFAULT_STEPS: u64 = 10_000_000;

/// Which programs of a netlist run, with what, and how.
#[derive(clap::Args, Debug)]
pub struct DriveArgs {
    /// A program to run, with parameters of its own after a colon; given several times, in this
    /// order. All programs in the order of the file unless given.
    #[arg(long = "program", value_name = "NAME[:P=V,...]", value_parser = parse_call)]
    pub calls: Vec<ProgramArg>,
    /// The value of a parameter, with or without its $, in each program that has it.
    #[arg(long, value_name = "NAME=V", value_parser = parse_param)]
    pub param: Vec<(String, i64)>,
    /// The value of every parameter that is not given.
    #[arg(long, value_name = "V", allow_negative_numbers = true)]
    pub default_param: Option<i64>,
    /// How queues without an array are filled; as the netlist's test-config says unless given.
    #[arg(long, value_enum)]
    pub stimulus: Option<StimulusName>,
    /// The seed of a test-config's random numbers; 0 unless given.
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Entries that a stimulus puts into each queue, at most; as many as it holds unless given.
    #[arg(long, value_name = "N")]
    pub entries: Option<u32>,
    /// Let a queue of N entries take up to 2N, as the golden model of tt-budabackend does by
    /// mistake.
    #[arg(long)]
    pub golden_compat: bool,
    /// Refuse reads of unwritten RAM, which otherwise give zeros.
    #[arg(long)]
    pub deny_uninitialised: bool,
    /// Whether one thread pushes, runs and pops, or three do.
    #[arg(long, value_enum, default_value_t = ModeName::Sequential)]
    pub mode: ModeName,
    /// In sequential mode, pop full outputs when a program cannot go on otherwise; concurrent mode
    /// always does.
    #[arg(long)]
    pub pop_outputs: bool,
    /// The most instructions, and the most operations, of each call of a program.
    #[arg(long, value_name = "N", default_value_t = DEFAULT_STEPS)]
    pub max_steps: u64,
    /// End the run after this time, whatever it does; a deadlock is found without it.
    #[arg(long, value_name = "SECONDS")]
    pub timeout: Option<u32>,
    /// The loader's optimisation level.
    #[arg(long, value_name = "0-4", default_value_t = 4)]
    #[arg(value_parser = clap::value_parser!(u8).range(0..=4))]
    pub opt_level: u8,
}

impl DriveArgs {
    /// Refuses options that others make idle.
    pub fn refuse_idle(&self) -> Outcome<()> {
        if self.seed.is_some() && self.stimulus == Some(StimulusName::Index) {
            return Err(Failure::option("--seed", " is for random numbers; --stimulus index has none"));
        }
        Ok(())
    }
}

/// A program and parameters of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramArg {
    /// Its name.
    pub name: String,
    /// Its parameters, with their $.
    pub parameters: Vec<(String, i64)>,
}

/// How queues are filled.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum StimulusName {
    /// A formula of element, entry and queue (docs/buda.md)
    Index,
    /// The netlist's section test-config
    TestConfig,
}

/// Sequential or concurrent.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ModeName {
    /// One thread
    #[default]
    Sequential,
    /// Three threads
    Concurrent,
}

impl ModeName {
    /// The name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sequential => "sequential",
            Self::Concurrent => "concurrent",
        }
    }
}

fn parse_param(text: &str) -> Result<(String, i64), String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE")?;
    let value = value.parse().map_err(|_| format!("{value:?} is no whole number"))?;
    let name = name.trim_start_matches('$');
    match name.is_empty() {
        true => Err("expected NAME=VALUE".into()),
        false => Ok((format!("${name}"), value)),
    }
}

fn parse_call(text: &str) -> Result<ProgramArg, String> {
    let (name, parameters) = text.split_once(':').unwrap_or((text, ""));
    if name.is_empty() {
        return Err("expected NAME or NAME:P=V,P=V".into());
    }
    let parameters =
        parameters.split(',').filter(|part| !part.is_empty()).map(parse_param).collect::<Result<_, _>>()?;
    Ok(ProgramArg { name: name.to_string(), parameters })
}

/// An architecture, as netlists name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ArchName {
    /// Grayskull
    Grayskull,
    /// Wormhole A0
    Wormhole,
    /// Wormhole B0
    #[value(name = "wormhole_b0")]
    WormholeB0,
    /// Blackhole
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

/// What help says behind the options.
pub fn examples(verb: Verb) -> &'static str {
    match verb {
        Verb::Run => {
            "\
Examples:
  tilework run netlist.yaml --stimulus index --default-param 1 --out out --trace out.pftrace
  tilework run netlist.yaml --input x=x.npy --program run:loops=3 --out out --report json

docs/buda.md describes how netlists run, docs/report.md the report."
        }
        Verb::Check => {
            "\
Without --pcc, --max-error, --atol and --rtol the tolerance follows a queue's format: integers exactly; Float32 a
correlation of 0.9999 and an error of 1e-4 of the range; shorter formats 0.999 and 2 %.

Examples:
  tilework check netlist.yaml --report json
  tilework check netlist.yaml --expect expected --program run

docs/netlist.md describes what is checked."
        }
        Verb::Show => {
            "\
Examples:
  tilework show netlist.yaml --ops
  tilework show netlist.yaml --memory --report json"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_may_have_parameters_of_its_own() {
        let call = |name: &str, parameters: &[(&str, i64)]| {
            let parameters = parameters.iter().map(|(name, value)| (name.to_string(), *value)).collect();
            Ok(ProgramArg { name: name.into(), parameters })
        };
        assert_eq!(parse_call("run_fwd"), call("run_fwd", &[]));
        assert_eq!(parse_call("w:p=3,$q=-1"), call("w", &[("$p", 3), ("$q", -1)]));
        for wrong in ["", ":p=1", "w:p", "w:p=x", "w:=1"] {
            assert!(parse_call(wrong).is_err(), "{wrong}");
        }
    }
}
