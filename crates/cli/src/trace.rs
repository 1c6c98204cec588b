//! The file of `--trace`: its form is known before anything runs, and it is written whole
//! or not at all.

use crate::failure::{Failure, Outcome};
use crate::files;
use crate::files::Growing;
use std::io::Write;
use std::ops::Range;
use std::path::Path;
use tilework_timeline::{Clock, Format, Stream, Timeline};

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

    /// Begins the file of a timeline that is written while the run goes on.
    pub fn begin(&self, clock: Clock, window: Range<u64>) -> Outcome<(Growing, Stream<Box<dyn Write + Send>>)> {
        let file = Growing::begin(self.path)?;
        let stream = Stream::new(file.writer()?, self.format, clock, window).map_err(|error| file.failed(&error))?;
        Ok((file, stream))
    }

    /// Writes the file.
    pub fn write(&self, timeline: &Timeline) -> Outcome<()> {
        let mut bytes = Vec::new();
        let written = timeline.write(self.format, &mut bytes);
        written.map_err(|error| files::cannot_write(self.path, format_args!("{}: {error}", self.path.display())))?;
        files::write_whole(self.path, &[&bytes])
    }
}
