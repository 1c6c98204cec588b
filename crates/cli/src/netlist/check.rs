//! `tilework check NETLIST.yaml` without expected arrays: everything that is wrong with it.

use super::args::NetlistCheckArgs;
use super::checked;
use crate::answer::Answer;
use crate::failure::{Failure, Outcome};
use serde::Serialize;
use std::io::IsTerminal;
use std::path::Path;
use tilework_netlist::{Record, Severity};

/// The findings. The fields are those of the JSON form, in their order.
#[derive(Serialize)]
struct NetlistFindings {
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

/// Reports the findings. A netlist with errors is a malformed file, whatever the command.
pub fn check(file: &Path, own: &NetlistCheckArgs) -> Outcome<Answer> {
    let checked = checked(file, own.arch)?;
    let (found, name) = (checked.diagnostics, file.display().to_string());
    let warnings = found.list().iter().filter(|d| d.severity == Severity::Warning).count();
    let report = NetlistFindings {
        file: name.clone(),
        accepted: checked.netlist.is_some(),
        archs: checked.archs.iter().map(|arch| arch.name()).collect(),
        errors: found.errors(),
        warnings,
        findings: found.records(),
        left_out: found.left_out(),
    };
    let plural = |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
    let counts = format!("{name}: {}, {}", plural(report.errors, "error"), plural(warnings, "warning"));
    let failure = (!report.accepted).then(|| Failure::usage(counts).of_file(file));
    let styled = std::io::stdout().is_terminal();
    let answer = Answer::new(report, move |report, out| {
        write!(out, "{}", found.render(styled))?;
        if report.accepted {
            writeln!(out, "ok   {}: right for {}", report.file, report.archs.join(", "))?;
        }
        Ok(())
    });
    Ok(answer.failing(failure).styled(styled))
}
