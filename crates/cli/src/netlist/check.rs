//! `tilework check NETLIST.yaml` without expected arrays: everything that is wrong with it.

use super::checked;
use crate::args::{CheckArgs, ReportForm};
use crate::failure::{Failure, Outcome};
use crate::print;
use serde::Serialize;
use std::io::IsTerminal;
use tilework_netlist::{Record, Severity};

/// The findings as JSON.
#[derive(Serialize)]
struct Report {
    file: String,
    accepted: bool,
    /// Architectures that it is right for.
    archs: Vec<&'static str>,
    errors: usize,
    warnings: usize,
    findings: Vec<Record>,
    /// Findings that are counted only.
    left_out: usize,
}

/// Prints the findings. Errors in a netlist are a failed check.
pub fn check(args: &CheckArgs) -> Outcome<()> {
    let checked = checked(&args.program, args.netlist.arch)?;
    let (found, file) = (&checked.diagnostics, args.program.display().to_string());
    let warnings = found.list().iter().filter(|d| d.severity == Severity::Warning).count();
    let report = Report {
        file: file.clone(),
        accepted: checked.netlist.is_some(),
        archs: checked.archs.iter().map(|arch| arch.name()).collect(),
        errors: found.errors(),
        warnings,
        findings: found.records(),
        left_out: found.left_out(),
    };
    let json = args.netlist.json || args.report == ReportForm::Json;
    let form = if json { ReportForm::Json } else { ReportForm::Text };
    print::report(&report, form, |out| {
        write!(out, "{}", found.render(std::io::stdout().is_terminal()))?;
        if report.accepted {
            writeln!(out, "ok   {file}: right for {}", report.archs.join(", "))?;
        }
        Ok(())
    })?;
    if report.accepted {
        return Ok(());
    }
    let plural = |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
    Err(Failure::failed(format!("{file}: {}, {}", plural(report.errors, "error"), plural(warnings, "warning"))))
}
