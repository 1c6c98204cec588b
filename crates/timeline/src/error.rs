//! Errors of writing a timeline.

use std::path::PathBuf;

use crate::Clock;

/// A timeline that cannot be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TimelineError {
    /// The file's extension is not that of a format.
    #[error(
        "{}: {} names no form of a timeline; give .pftrace (Perfetto, opens in ui.perfetto.dev), .json (trace events) or \
         .txt",
        path.display(), ending(path)
    )]
    UnknownEnding {
        /// The file.
        path: PathBuf,
    },
    /// The file cannot be written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The output cannot be written.
    #[error("the timeline cannot be written: {0}")]
    Write(#[from] std::io::Error),
    /// Two slices of a track overlap, but neither lies in the other.
    #[error(
        "track {track:?}: {second:?} starts at {starts}, in {first:?}, and ends after it; overlapping slices need tracks of \
         their own"
    )]
    Overlap {
        /// The track, with those above it.
        track: String,
        /// The slice that starts first.
        first: String,
        /// The other.
        second: String,
        /// When that starts.
        starts: u64,
    },
    /// A slice ends before it starts.
    #[error("track {track:?}: {name:?} starts at {start} and ends at {end}, before that")]
    Backwards {
        /// The track, with those above it.
        track: String,
        /// The slice.
        name: String,
        /// Its start.
        start: u64,
        /// Its end.
        end: u64,
    },
    /// A time that the format cannot hold.
    #[error("time {time} is past what the format holds, {} ns ({clock})", i64::MAX)]
    TooLate {
        /// The time.
        time: u64,
        /// The timeline's clock.
        clock: Clock,
    },
    /// A track or an arrow of another timeline.
    #[error("{what} {index} is not one of this timeline, which has {count}")]
    Foreign {
        /// `track` or `arrow`.
        what: &'static str,
        /// Its number.
        index: u32,
        /// How many there are.
        count: usize,
    },
}

fn ending(path: &std::path::Path) -> String {
    match path.extension() {
        Some(ending) => format!("the ending .{}", ending.to_string_lossy()),
        None => "a name without an ending".to_owned(),
    }
}
