//! Events of simulated time and their writers.
//!
//! A simulation records what happened on which track and when, in its own clock; a writer produces
//! a file: Perfetto's trace format, trace-event JSON, or text. Nothing here reads a wall clock or
//! knows what is simulated.
//!
//! A [`Timeline`] collects, in any order:
//!
//! - [tracks](Timeline::track) in a hierarchy, and [counter tracks](Timeline::counter_track);
//! - [slices](Timeline::slice) with start and end, [open](Timeline::open) ones without end, and
//!   [instants](Timeline::instant), each with [arguments](EventMut::arg);
//! - [values](Timeline::count) of counters;
//! - [arrows](Timeline::arrow) from one slice or instant to another.
//!
//! A [`Stream`] takes events about in the order of time and writes them as they come, for runs
//! whose events do not fit into memory.
//!
//! Writing checks the whole timeline: slices of one track are nested or disjoint, and none ends
//! before it starts. The same calls give the same bytes.
//!
//! ```
//! use tilework_timeline::{Clock, Format, Timeline};
//!
//! let mut timeline = Timeline::new(Clock::mhz("cycle", 1350));
//! let cluster = timeline.track("cluster 0", None);
//! let cube = timeline.track("AIC", Some(cluster));
//! let vector = timeline.track("AIV0", Some(cluster));
//! let full = timeline.counter_track("full slots", Some(cluster), "slots");
//! let tile = timeline.arrow();
//! timeline.slice(cube, 100, 220, "TPUSH").arg("slot", 3_u64).from_here(tile);
//! timeline.count(full, 220, 1);
//! timeline.slice(vector, 230, 260, "TPOP").arg("slot", 3_u64).to_here(tile);
//! let mut text = Vec::new();
//! timeline.write(Format::Text, &mut text)?;
//! # assert_eq!(text.iter().filter(|b| **b == b'\n').count(), 9);
//! # Ok::<(), tilework_timeline::TimelineError>(())
//! ```

#![forbid(unsafe_code)]
#![warn(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)]

mod clock;
mod error;
mod event;
mod format;
mod json;
mod names;
mod order;
mod perfetto;
mod stream;
mod text;
mod timeline;

pub use clock::Clock;
pub use error::TimelineError;
pub use event::{Arrow, CounterTrack, Track, Value};
pub use format::Format;
pub use stream::{Label, Stream};
pub use timeline::{EventMut, Timeline};
