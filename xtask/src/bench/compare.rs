//! Compares our library with others that have the libttsim interface: the same work in alternating
//! order, each time in a process of its own.
//!
//! A clock has different meanings (ttsim: an instruction of each core; ours: a cycle), so the
//! comparison is of host time for the same work: instructions executed, clocks of a booted idle
//! chip, packets read, tiles booted.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use clap::Args;
use serde::{Deserialize, Serialize};

use super::workload::{self, Measured};

/// What to compare with.
#[derive(Args, Debug)]
pub struct CompareArgs {
    /// Another library with the libttsim interface; may be given again.
    #[arg(long = "library", value_name = "LIB")]
    libraries: Vec<PathBuf>,
    /// Folder with the five third-party firmware images brisc.elf, ncrisc.elf and trisc0.elf to
    /// trisc2.elf; without it, the rows that need them are left out.
    #[arg(long, value_name = "DIR", requires = "libraries")]
    firmware: Option<PathBuf>,
    /// Our library; without it, it is built from this checkout.
    #[arg(long, value_name = "LIB", requires = "libraries")]
    own: Option<PathBuf>,
    /// Measurements of each row; the median is printed.
    #[arg(long, default_value_t = 5, requires = "libraries")]
    rounds: usize,
}

impl CompareArgs {
    /// Whether a comparison is requested.
    pub fn is_wanted(&self) -> bool {
        !self.libraries.is_empty()
    }
}

/// One row: what is measured, on how many tiles.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) enum Row {
    /// A loop of RV32IM on BRISC of this many tiles: million instructions a second, in total.
    Busy(usize),
    /// Clocks of this many tiles with booted, idle firmware: million clocks a second, called
    /// 10000 at a time.
    Idle(usize),
    /// The same, called one at a time.
    IdleSingle(usize),
    /// Sequential reads of DRAM by this many tiles, of this many bytes: thousand reads a second.
    Reads(usize, u32),
    /// Boot of this many tiles, from the release of BRISC until all say that they are done:
    /// boots a second.
    Boot(usize),
}

/// The rows of the table.
const ROWS: [Row; 14] = [
    Row::Busy(1),
    Row::Busy(8),
    Row::Busy(64),
    Row::Busy(140),
    Row::Idle(1),
    Row::Idle(16),
    Row::Idle(140),
    Row::IdleSingle(140),
    Row::Reads(1, 64),
    Row::Reads(1, 2048),
    Row::Reads(8, 2048),
    Row::Reads(64, 2048),
    Row::Boot(1),
    Row::Boot(140),
];

impl Row {
    fn name(self) -> String {
        match self {
            Self::Busy(n) => format!("RV32IM loop on {n} tiles"),
            Self::Idle(n) => format!("idle firmware on {n} tiles, 10000 clocks a call"),
            Self::IdleSingle(n) => format!("idle firmware on {n} tiles, one clock a call"),
            Self::Reads(n, bytes) => format!("{bytes}-byte reads of DRAM by {n} tiles"),
            Self::Boot(n) => format!("boot of {n} tiles"),
        }
    }

    const fn unit(self) -> &'static str {
        match self {
            Self::Busy(_) => "MIPS",
            Self::Idle(_) | Self::IdleSingle(_) => "ns a clock",
            Self::Reads(..) => "thousand reads a second",
            Self::Boot(_) => "ms",
        }
    }

    /// The figure in its unit, of a rate.
    fn figure(self, rate: f64) -> f64 {
        match self {
            Self::Busy(_) => rate / 1e6,
            Self::Idle(_) | Self::IdleSingle(_) => 1e9 / rate,
            Self::Reads(..) => rate / 1e3,
            Self::Boot(_) => 1e3 / rate,
        }
    }

    const fn needs_firmware(self) -> bool {
        matches!(self, Self::Idle(_) | Self::IdleSingle(_) | Self::Boot(_))
    }
}

/// The arguments of the hidden child command.
#[derive(Args, Debug)]
pub struct ChildArgs {
    library: OsString,
    row: String,
    firmware: Option<PathBuf>,
}

impl ChildArgs {
    /// Measures one row and prints the result.
    ///
    /// # Errors
    /// If the library cannot be loaded or does not do the work.
    pub fn run(&self) -> Result<()> {
        let measured = workload::measure(&self.library, serde_json::from_str(&self.row)?, self.firmware.as_deref())?;
        println!("{}", serde_json::to_string(&measured)?);
        Ok(())
    }
}

/// Prints the table.
///
/// # Errors
/// If a library does not do the work.
pub(crate) fn run(root: &Path, args: &CompareArgs) -> Result<()> {
    ensure!(args.rounds > 0, "no rounds are no measurement");
    let own = match &args.own {
        Some(own) => own.clone(),
        None => crate::own_library::build(root)?,
    };
    let mut libraries = vec![own];
    libraries.extend(args.libraries.iter().cloned());
    for library in &mut libraries {
        *library = library.canonicalize().with_context(|| library.display().to_string())?;
    }
    print!("| what | unit | ours |");
    for (library, n) in libraries[1..].iter().zip(1..) {
        print!(
            " {} | times faster{} |",
            library.file_stem().unwrap_or_default().display(),
            if n > 1 { " than it" } else { "" }
        );
    }
    println!("\n|---|---|---:|{}", "---:|---:|".repeat(libraries.len() - 1));
    for row in ROWS.into_iter().filter(|row| args.firmware.is_some() || !row.needs_firmware()) {
        print_row(row, &libraries, args)?;
    }
    Ok(())
}

/// Measures a row on all libraries in alternating order and prints the medians.
fn print_row(row: Row, libraries: &[PathBuf], args: &CompareArgs) -> Result<()> {
    let mut rates = vec![Vec::new(); libraries.len()];
    for _ in 0..args.rounds {
        for (library, rates) in libraries.iter().zip(&mut rates) {
            rates.push(one(row, library, args.firmware.as_deref())?.rate());
        }
    }
    let medians: Vec<f64> = rates.into_iter().map(median).collect();
    print!("| {} | {} | {:.3} |", row.name(), row.unit(), row.figure(medians[0]));
    for other in &medians[1..] {
        print!(" {:.3} | {:.1} |", row.figure(*other), medians[0] / other);
    }
    println!();
    Ok(())
}

/// One measurement in a process of its own.
fn one(row: Row, library: &Path, firmware: Option<&Path>) -> Result<Measured> {
    let output = Command::new(std::env::current_exe()?)
        .arg("bench-child")
        .arg(library)
        .arg(serde_json::to_string(&row)?)
        .args(firmware)
        .output()
        .context("the child could not be started")?;
    let said = String::from_utf8_lossy(&output.stdout);
    let measured = said.lines().rev().find_map(|line| serde_json::from_str(line).ok());
    measured.with_context(|| {
        let errors = String::from_utf8_lossy(&output.stderr);
        format!("{} on {}: {}\n{said}{errors}", row.name(), library.display(), output.status)
    })
}

/// The median; of an even number, the lower of the two middle values.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[(values.len() - 1) / 2]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_and_rates_become_figures() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![4.0, 1.0, 3.0, 2.0]), 2.0);
        assert_eq!(Row::Busy(1).figure(5e6), 5.0);
        assert_eq!(Row::Idle(1).figure(1e6), 1000.0); // a million clocks a second: a microsecond each
        assert_eq!(Row::Boot(1).figure(20.0), 50.0);
    }
}
