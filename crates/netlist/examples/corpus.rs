//! Checks every netlist below a folder: how many are accepted, why the others are not, and how
//! long it takes.
//!
//! `cargo run --release -p tilework-netlist --example corpus -- DIR [CODE]`; with a code (`N0007`)
//! the files that have it are listed, each with the first finding of that code. What counts as a
//! netlist is a YAML file with the sections queues, graphs and programs at its left margin, or one
//! whose name says that it should be one (`invalid`).

use std::collections::BTreeMap;
use std::io::{Result, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tilework_netlist::{Checked, Code, Options, Severity, check, code};

/// A file should take less.
const LIMIT: Duration = Duration::from_millis(20);

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let Some(folder) = args.next() else {
        eprintln!("usage: corpus DIR [CODE]");
        std::process::exit(2);
    };
    let wanted = args.next();
    let mut files = Vec::new();
    collect(Path::new(&folder), &mut files)?;
    files.sort();
    let mut table = Table::default();
    let mut out = std::io::stdout().lock();
    for path in &files {
        let text = String::from_utf8_lossy(&std::fs::read(path)?).into_owned();
        let short = path.strip_prefix(&folder).unwrap_or(path).display().to_string();
        table.yaml += 1;
        if !is_netlist(&short, &text) {
            continue;
        }
        table.file(&short, &text, wanted.as_deref(), &mut out)?;
    }
    table.print(&mut out)
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|end| end == "yaml" || end == "yml") {
            files.push(path);
        }
    }
    Ok(())
}

fn is_netlist(name: &str, text: &str) -> bool {
    let section = |wanted: &str| {
        text.lines().any(|line| line.strip_prefix(wanted).is_some_and(|rest| rest.trim_start().starts_with(':')))
    };
    name.contains("invalid_netlist") || ["queues", "graphs", "programs"].into_iter().all(section)
}

#[derive(Default)]
struct Table {
    yaml: usize,
    netlists: usize,
    accepted: usize,
    warned: usize,
    panics: Vec<String>,
    /// Files that have an error of a code, and files whose only errors are of it.
    errors: BTreeMap<Code, (usize, usize)>,
    warnings: BTreeMap<Code, usize>,
    times: Vec<(Duration, String)>,
}

impl Table {
    fn file(&mut self, name: &str, text: &str, wanted: Option<&str>, out: &mut impl Write) -> Result<()> {
        self.netlists += 1;
        let run = || {
            let start = Instant::now();
            let result = catch_unwind(AssertUnwindSafe(|| check(name, text, &Options::default())));
            (result, start.elapsed())
        };
        let (result, mut time) = run();
        // The shortest of several, since others use the machine, too.
        for _ in 0..if time > LIMIT / 4 { 4 } else { 0 } {
            time = time.min(run().1);
        }
        self.times.push((time, name.to_owned()));
        let Ok(Checked { netlist, diagnostics, .. }) = result else {
            self.panics.push(name.to_owned());
            return Ok(());
        };
        self.accepted += usize::from(netlist.is_some());
        let of = |severity: Severity| {
            let mut codes: Vec<Code> =
                diagnostics.list().iter().filter(|d| d.severity == severity).map(|d| d.code).collect();
            codes.sort();
            codes.dedup();
            codes
        };
        let (errors, warnings) = (of(Severity::Error), of(Severity::Warning));
        self.warned += usize::from(netlist.is_some() && !warnings.is_empty());
        for code in &errors {
            let row = self.errors.entry(*code).or_default();
            row.0 += 1;
            row.1 += usize::from(errors.len() == 1);
        }
        for code in warnings {
            *self.warnings.entry(code).or_default() += 1;
        }
        if let Some(first) = diagnostics.list().iter().find(|d| Some(d.code.to_string().as_str()) == wanted) {
            writeln!(out, "{name}:{}: {}", first.span.start.line, first.message)?;
        }
        Ok(())
    }

    fn print(mut self, out: &mut impl Write) -> Result<()> {
        let refused = self.netlists - self.accepted;
        writeln!(out, "| | files |\n|---|---|")?;
        writeln!(out, "| YAML files | {} |\n| netlists | {} |", self.yaml, self.netlists)?;
        writeln!(out, "| accepted | {} |\n| of these with warnings | {} |", self.accepted, self.warned)?;
        writeln!(out, "| refused | {refused} |\n| panics | {} |\n", self.panics.len())?;
        writeln!(out, "| code | name | files with this error | with no other error |\n|---|---|---|---|")?;
        for code in code::ALL {
            if let Some((all, only)) = self.errors.get(code) {
                writeln!(out, "| {code} | {} | {all} | {only} |", code.name)?;
            }
        }
        writeln!(out, "\n| code | name | files with this warning |\n|---|---|---|")?;
        for (code, files) in &self.warnings {
            writeln!(out, "| {code} | {} | {files} |", code.name)?;
        }
        self.times.sort();
        let at = |part: usize| self.times.get((self.times.len() * part / 1000).min(self.times.len() - 1));
        let total: Duration = self.times.iter().map(|(time, _)| *time).sum();
        let over = self.times.iter().filter(|(time, _)| *time > LIMIT).count();
        writeln!(out, "\ntime: {total:.2?} for all, {over} files over {LIMIT:?}")?;
        for (name, part) in [("median", 500), ("99 %", 990), ("longest", 1000)] {
            if let Some((time, file)) = at(part) {
                writeln!(out, "  {name:<8} {time:>9.2?}  {file}")?;
            }
        }
        for file in &self.panics {
            writeln!(out, "PANIC {file}")?;
        }
        Ok(())
    }
}
