//! Printing to standard output, where the reader may go away (`tilework board | head`).

use crate::failure::{Failure, Outcome};
use std::io::{ErrorKind, Write};

/// Lets `f` print to standard output, buffered. A closed pipe ends it without a failure.
pub fn to_stdout(f: impl FnOnce(&mut dyn Write) -> std::io::Result<()>) -> Outcome<()> {
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    match f(&mut out).and_then(|()| out.flush()) {
        Err(e) if e.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::failed("output", format!("cannot write to standard output: {e}")))
        }
        _ => Ok(()),
    }
}
