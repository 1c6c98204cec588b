//! Printing to standard output, where the reader may go away (`tilework board | head`).

use crate::args::ReportForm;
use crate::failure::{Failure, Outcome};
use serde::Serialize;
use std::io::{ErrorKind, Write};

/// Prints a report: as one JSON object, or as `text` writes it for people.
pub fn report<T: Serialize>(
    report: &T,
    form: ReportForm,
    text: impl FnOnce(&mut dyn Write) -> std::io::Result<()>,
) -> Outcome<()> {
    to_stdout(|out| match form {
        ReportForm::Json => {
            serde_json::to_writer_pretty(&mut *out, report)?;
            writeln!(out)
        }
        ReportForm::Text => text(out),
    })
}

/// Lets `f` print to standard output, buffered. A closed pipe ends it without a failure.
pub fn to_stdout(f: impl FnOnce(&mut dyn Write) -> std::io::Result<()>) -> Outcome<()> {
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    match f(&mut out).and_then(|()| out.flush()) {
        Err(e) if e.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::failed(format!("cannot write to standard output: {e}")))
        }
        _ => Ok(()),
    }
}
