//! File formats of timelines.

use std::path::Path;

use crate::TimelineError;

/// A file format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Perfetto's trace format, `.pftrace` or `.perfetto-trace`: opens
    /// in <https://ui.perfetto.dev>.
    Perfetto,
    /// Trace events in JSON, `.json`: opens there as well, and in `chrome://tracing`.
    Json,
    /// A line for each event, `.txt`.
    Text,
}

impl Format {
    /// The format for a file's extension, ignoring case.
    ///
    /// # Errors
    ///
    /// If there is none.
    pub fn of(path: &Path) -> Result<Self, TimelineError> {
        let ending = path.extension().and_then(|e| e.to_str()).map(str::to_ascii_lowercase);
        match ending.as_deref() {
            Some("pftrace" | "perfetto-trace") => Ok(Self::Perfetto),
            Some("json") => Ok(Self::Json),
            Some("txt") => Ok(Self::Text),
            _ => Err(TimelineError::UnknownEnding { path: path.to_owned() }),
        }
    }
}
