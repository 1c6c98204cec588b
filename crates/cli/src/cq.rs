//! `tilework cq decode`.

use crate::failure::{Failure, Outcome};
use crate::{files, print};
use std::io::Write;
use std::path::Path;
use tilework_cq::decode_stream;

/// Budget of a capture in bytes: sixteen times the issue region. The help of the command and `docs/report.md` state it.
const MAX_CAPTURE_BYTES: u64 = 1 << 30;

/// Prints the records of a file up to the first bad byte.
pub fn decode(file: &Path) -> Outcome<()> {
    let bytes = files::read_within(file, MAX_CAPTURE_BYTES, "an issue region or capture")?;
    let (mut records, mut commands, mut bad) = (0u64, 0u64, None);
    let mut decoder = decode_stream(&bytes);
    print::to_stdout(|out| {
        for record in decoder.by_ref() {
            match record {
                Ok(record) => {
                    records += 1;
                    commands += record.inner.len() as u64;
                    writeln!(out, "{record}")?;
                }
                Err(error) => bad = Some(error),
            }
        }
        Ok(())
    })?;
    let good = decoder.offset();
    match bad {
        Some(error) => Err(Failure::failed(format!(
            "{}: {error}\n{records} records ({commands} dispatch commands, {good} bytes) before it are good",
            file.display()
        ))),
        None => {
            let said = format!("{records} records, {commands} dispatch commands, {good} of {} bytes", bytes.len());
            let _ = writeln!(std::io::stderr(), "{said}");
            Ok(())
        }
    }
}
