//! The file of `--trace`: its form is known before anything runs, and it is written whole
//! or not at all.

use crate::failure::{Failure, Outcome};
use crate::files;
use std::path::Path;
use tilework_timeline::{Format, Timeline};

/// Where a timeline goes, and in which form.
pub struct TraceFile<'a> {
    path: &'a Path,
    format: Format,
}

impl<'a> TraceFile<'a> {
    /// Takes the form from the ending of the file; another ending is a wrong use.
    pub fn at(path: &'a Path) -> Outcome<Self> {
        let format = Format::of(path).map_err(|error| Failure::usage(error.to_string()).with("option", "--trace"))?;
        Ok(Self { path, format })
    }

    /// Writes the file.
    pub fn write(&self, timeline: &Timeline) -> Outcome<()> {
        let mut bytes = Vec::new();
        let written = timeline.write(self.format, &mut bytes);
        written.map_err(|error| files::cannot_write(self.path, format_args!("{}: {error}", self.path.display())))?;
        files::write_whole(self.path, &[&bytes])
    }
}
