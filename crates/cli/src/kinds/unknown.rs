//! Files of no kind.

use super::KINDS;
use crate::failure::Failure;
use crate::files;
use std::path::Path;

/// The kind in the reports of their refusals.
pub const KIND: &str = "unknown";

/// Why a file whose ending belongs to no kind is refused.
pub fn refuse(file: &Path) -> Failure {
    match std::fs::metadata(file) {
        Err(error) => files::cannot_read(file, &error),
        Ok(is) if is.is_dir() => {
            Failure::usage(format!("{} is a folder; expected a file", file.display())).of_file(file)
        }
        Ok(_) => {
            let known: Vec<String> =
                KINDS.iter().map(|row| format!("{} ends in {}", row.about.one, row.about.dotted_endings())).collect();
            let not = "not a compiled model, a netlist or a program";
            Failure::file(file, format_args!("{not}: {}", known.join(", ")))
        }
    }
}
