//! Arguments of `tilework run` and `tilework check` that only netlists have.

use crate::args::first_given;
use clap::ValueEnum;
use std::path::PathBuf;

const NETLISTS: &str = "Netlists";

/// How a netlist is run.
#[derive(clap::Args, Debug, Default)]
pub struct NetlistRunArgs {
    /// The program to run, once for each time that it is given, in this order; all programs in the order of the file
    /// unless given. With NAME:P=V,P=V... it has parameters of its own.
    #[arg(long = "program", value_name = "NAME[:P=V,...]", value_parser = parse_call, help_heading = NETLISTS)]
    pub calls: Vec<ProgramArg>,
    /// The value of a parameter, with or without its $, in each program that has it.
    #[arg(long, value_name = "NAME=V", value_parser = parse_param, help_heading = NETLISTS)]
    pub param: Vec<(String, i64)>,
    /// The value of every parameter that is not given.
    #[arg(long, value_name = "V", allow_negative_numbers = true, help_heading = NETLISTS)]
    pub default_param: Option<i64>,
    /// How queues without --input are filled; as the netlist's test-config says unless given.
    #[arg(long, value_enum, help_heading = NETLISTS)]
    pub stimulus: Option<StimulusName>,
    /// The seed of a test-config's random numbers.
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = NETLISTS)]
    pub seed: u64,
    /// Entries that a stimulus puts into each queue, at most; as many as it holds unless given.
    #[arg(long, value_name = "N", help_heading = NETLISTS)]
    pub entries: Option<u32>,
    /// Let a queue of N entries take up to 2N, as the original's golden model does by mistake.
    #[arg(long, help_heading = NETLISTS)]
    pub golden_compat: bool,
    /// Refuse to read rams that nothing was written to, instead of taking them for zeros.
    #[arg(long, help_heading = NETLISTS)]
    pub deny_uninitialised: bool,
    /// One thread, or three that push, run and pop.
    #[arg(long, value_enum, default_value_t = ModeName::Sequential, help_heading = NETLISTS)]
    pub mode: ModeName,
    /// Let the one thread pop outputs that are full when a program cannot go on otherwise; three threads always do.
    #[arg(long, help_heading = NETLISTS)]
    pub pop_outputs: bool,
    /// How long a thread waits for another one; a wait that nobody can end is found without it.
    #[arg(long, value_name = "SECONDS", help_heading = NETLISTS)]
    pub timeout: Option<u32>,
    /// The loader's optimisation level.
    #[arg(long, value_name = "0-4", default_value_t = 4, help_heading = NETLISTS)]
    #[arg(value_parser = clap::value_parser!(u8).range(0..=4))]
    pub opt_level: u8,
    /// Also write a timeline of epochs, caches and queues: .pftrace (Perfetto), .json or .txt.
    #[arg(long, value_name = "FILE", help_heading = NETLISTS)]
    pub trace: Option<PathBuf>,
}

impl NetlistRunArgs {
    /// The first option that was given and means nothing without a netlist.
    pub fn given(&self) -> Option<&'static str> {
        first_given(&[
            (!self.calls.is_empty(), "--program"),
            (!self.param.is_empty(), "--param"),
            (self.default_param.is_some(), "--default-param"),
            (self.stimulus.is_some(), "--stimulus"),
            (self.entries.is_some(), "--entries"),
            (self.golden_compat, "--golden-compat"),
            (self.deny_uninitialised, "--deny-uninitialised"),
            (self.mode == ModeName::Concurrent, "--mode"),
            (self.pop_outputs, "--pop-outputs"),
            (self.timeout.is_some(), "--timeout"),
            (self.trace.is_some(), "--trace"),
        ])
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
