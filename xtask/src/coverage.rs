//! `cargo xtask coverage`: which documented modes of Tensix instructions the tests have reached.
//!
//! Runs tests with an environment variable that makes every simulated coprocessor append what it
//! executed to a file (`crates/sim/src/tensix/coverage.rs`), and compares that with the instruction
//! table, in which operands that choose what an instruction does have their documented values.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use clap::Args;
use tilework_abi::tensix::insn::{Field, Kind, Mode, Row, Unit, format_name};

/// Makes the simulator write what its tests execute.
const VARIABLE: &str = "TILEWORK_TEST_COVERAGE";

/// Arguments of `cargo xtask coverage`.
#[derive(Args, Debug)]
pub struct CoverageArgs {
    /// Do not run tests: what they reached is in this file.
    #[arg(long, value_name = "FILE", conflicts_with = "test")]
    reached: Option<PathBuf>,
    /// Arguments of `cargo test`; --workspace unless given.
    #[arg(last = true, value_name = "ARGS")]
    test: Vec<String>,
}

/// Runs the tests, unless they have run, and prints the table.
///
/// # Errors
/// Tests that fail, and a file that cannot be read.
pub fn run(root: &Path, args: &CoverageArgs) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let file = match &args.reached {
        Some(file) => file.clone(),
        None => {
            let file = folder.path().join("reached");
            let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
            cargo.arg("test").current_dir(root).env(VARIABLE, &file);
            match args.test.is_empty() {
                true => cargo.arg("--workspace"),
                false => cargo.args(&args.test),
            };
            ensure!(cargo.status()?.success(), "the tests fail");
            file
        }
    };
    let text = std::fs::read_to_string(&file).with_context(|| file.display().to_string())?;
    print!("{}", table(&read(&text)?));
    Ok(())
}

/// The modes in a file of the simulator: two hexadecimal numbers in each line.
fn read(text: &str) -> Result<BTreeSet<Mode>> {
    let mode = |line: &str| {
        let (word, settings) = line.split_once(' ')?;
        let number = |text| u32::from_str_radix(text, 16).ok();
        Mode::from_numbers([number(word)?, number(settings)?])
    };
    text.lines().map(|line| mode(line).with_context(|| format!("{line:?} is no mode of an instruction"))).collect()
}

/// Documented modes, and how many of them were reached.
#[derive(Default)]
struct Sum {
    documented: u32,
    reached: u32,
}

/// For each built instruction which of its documented modes were reached.
fn table(reached: &BTreeSet<Mode>) -> String {
    let (mut text, mut sum, mut built, mut never) = (String::new(), Sum::default(), 0, 0);
    for unit in Unit::ALL {
        let rows: Vec<&Row> = unit.rows().iter().filter(|row| row.is_built()).collect();
        // Writing to a string does not fail.
        let _ = writeln!(text, "{}:", unit.name());
        for row in rows {
            built += 1;
            let modes: Vec<Mode> = reached.iter().copied().filter(|mode| is_of(*mode, row)).collect();
            never += u32::from(modes.is_empty());
            let _ = writeln!(text, "  {:16}{}", row.mnemonic, line(row, &modes, &mut sum));
        }
    }
    let _ = writeln!(text, "{} of {built} instructions were executed", built - never);
    let _ = writeln!(text, "{} of {} documented values of their modes were reached", sum.reached, sum.documented);
    text
}

fn is_of(mode: Mode, row: &Row) -> bool {
    mode.row().is_some_and(|other| other.opcode == row.opcode)
}

/// What was reached of one instruction, and the values that were not.
fn line(row: &Row, modes: &[Mode], sum: &mut Sum) -> String {
    let fields = row.fields.iter().filter(|field| field.modes != 0).chain(row.settings());
    let seen = |field: &Field| {
        let values = modes.iter().flat_map(|mode| mode.values()).filter(|(other, _)| other.name == field.name);
        values.fold(0, |seen, (_, value)| seen | 1u32 << value.min(31))
    };
    let mut missing = Vec::new();
    for field in fields {
        let (documented, seen) = (u32::from(field.modes), seen(field));
        sum.documented += documented.count_ones();
        sum.reached += (documented & seen).count_ones();
        let unseen: Vec<String> =
            (0..16).filter(|i| documented & !seen & 1 << i != 0).map(|i| value(field, i)).collect();
        if !unseen.is_empty() {
            missing.push(format!("{} {}", field.name, unseen.join(" ")));
        }
    }
    match (modes.is_empty(), missing.is_empty()) {
        (true, _) => "not executed".into(),
        (false, true) => "all".into(),
        (false, false) => format!("all but {}", missing.join(", ")),
    }
}

fn value(field: &Field, value: u32) -> String {
    match (field.kind, format_name(value)) {
        (Kind::Format, Some(name)) => name.into(),
        (Kind::Flag, _) => (if value == 0 { "clear" } else { "set" }).into(),
        _ => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilework_abi::tensix::insn::{Elwadd, Insn, Sfpabs, settings};

    #[test]
    fn what_no_test_reached_is_named() {
        let elwadd = Insn::decode(Elwadd::build().clear_dvalid(3).add_dst(true).dst_row(64).word());
        let bf16 = settings::SRC_FORMAT.put(0, 5);
        let abs = |mode| Insn::decode(Sfpabs::build().vc(1).vd(2).mod1(mode).word());
        let executed = [(elwadd, Some(bf16)), (abs(0), None), (abs(1), None)];
        let lines = executed.map(|(insn, settings)| Mode::of(insn, settings).unwrap().numbers());
        let file: String = lines.iter().map(|[word, set]| format!("{word:08x} {set:08x}\n")).collect();
        let text = table(&read(&file).unwrap());
        let of = |name: &str| text.lines().find(|line| line.split_whitespace().next() == Some(name)).unwrap();
        assert_eq!(of("SFPABS"), "  SFPABS          all");
        assert_eq!(of("SFPADD"), "  SFPADD          not executed");
        let said = of("ELWADD");
        assert!(said.contains("all but clear_dvalid 0 1 2, add_dst clear, broadcast_src_b_row set"), "{said}");
        assert!(said.contains("src_format fp32 fp16 bfp8a bfp4a tf32 bfp8 bfp4 int32"), "{said}");
        let built = Unit::ALL.iter().flat_map(|unit| unit.rows()).filter(|row| row.is_built()).count();
        assert!(text.contains(&format!("\n2 of {built} instructions were executed\n")), "{text}");
        assert!(read("ff000000 0").is_err() && read("nonsense").is_err(), "no instruction, no numbers");
    }
}
