//! The trace-event format in JSON ("Trace Event Format", the document of `chrome://tracing`;
//! Perfetto reads it as well).
//!
//! Every top-level track is a process, every track a thread of its top-level track's process, with
//! its full name. Slices are complete events (`X`), those without end begin events (`B`), instants
//! `i`, counters `C`, arrows `s` and `f`. Times are microseconds with three decimals, so
//! nanoseconds; the key `otherData` relates nanoseconds to simulated time.
//!
//! A stream ([`crate::Stream`]) has begin and end events (`B`, `E`) instead of complete ones.
//!
//! In this format arrows bind to slices: an arrow at an instant is shown at the enclosing slice.
//!
//! Numbers that JavaScript cannot represent (integers past 2^53, non-finite floats) are
//! written as strings.

use std::io::Write;

use serde_json::Value as Json;

use crate::event::{Arg, ArrowEnd, Kept, Named, Told, TrackRecord, What, path, top};
use crate::names::Names;
use crate::order::{Mark, MarkKind};
use crate::{Clock, Timeline, TimelineError};

/// The largest integer up to which every integer is exact in a JavaScript number.
const EXACT: u64 = 1 << 53;

pub(crate) fn write(timeline: &Timeline, marks: &[Mark], out: &mut impl Write) -> Result<(), TimelineError> {
    writeln!(out, "{}", first_line(timeline.clock))?;
    let writer = Writer { timeline };
    let mut lines = writer.tracks();
    for mark in marks.iter().filter(|mark| mark.kind == MarkKind::Start) {
        for line in &lines {
            writeln!(out, "{line},")?;
        }
        lines = writer.event(mark)?;
    }
    writeln!(out, "{}\n]}}", lines.join(",\n"))?;
    Ok(())
}

struct Writer<'a> {
    timeline: &'a Timeline,
}

impl Writer<'_> {
    /// Names and order of processes and threads.
    fn tracks(&self) -> Vec<String> {
        (0..).zip(&self.timeline.tracks).flat_map(|(index, _)| track_lines(&self.timeline.tracks, index)).collect()
    }

    fn event(&self, mark: &Mark) -> Result<Vec<String>, TimelineError> {
        let Timeline { clock, names, tracks, .. } = self.timeline;
        let event = &self.timeline.events[mark.event];
        let start = clock.checked(event.start)?;
        let place = place(tracks, event.track, start);
        let (head, details) = match &event.what {
            What::Slice(Some(end), d) => {
                let long = Micros(clock.checked(*end)? - start);
                (format!(r#""ph":"X",{place},"dur":{long}"#), d)
            }
            What::Slice(None, d) => (format!(r#""ph":"B",{place}"#), d),
            What::Instant(d) => (format!(r#""ph":"i","s":"t",{place}"#), d),
            What::Count(value) => return Ok(vec![count_line(tracks, event.track, &place, *value)]),
        };
        Ok(named_lines(names, &head, &place, self.timeline.named(details)))
    }
}

/// The lines of an event in a stream, where a slice's end is an event of its own.
pub(crate) fn stream_lines(names: &Names, tracks: &[TrackRecord], at: u64, track: u32, told: &Told<'_>) -> Vec<String> {
    let place = place(tracks, track, at);
    let (head, named) = match told {
        Told::Start(named) => (format!(r#""ph":"B",{place}"#), named),
        Told::Instant(named) => (format!(r#""ph":"i","s":"t",{place}"#), named),
        Told::End => return vec![format!(r#"{{"ph":"E",{place}}}"#)],
        Told::Count(value) => return vec![count_line(tracks, track, &place, *value)],
    };
    named_lines(names, &head, &place, *named)
}

/// The first line of a file.
pub(crate) fn first_line(clock: Clock) -> String {
    let other = serde_json::json!({ "unit": clock.unit(), "clock": clock.to_string() });
    format!("{{\"displayTimeUnit\":\"ns\",\"otherData\":{other},\"traceEvents\":[")
}

/// Names and order of a track's process and thread.
pub(crate) fn track_lines(tracks: &[TrackRecord], index: u32) -> Vec<String> {
    let Some(record) = tracks.get(index as usize) else { return Vec::new() };
    let (process, thread) = (top(tracks, index) + 1, index + 1);
    let mut lines = Vec::new();
    let mut tell = |name: &str, key: &str, value: Json| {
        let args = serde_json::json!({ key: value });
        lines.push(format!(r#"{{"ph":"M","pid":{process},"tid":{thread},"name":"{name}","args":{args}}}"#));
    };
    if record.parent.is_none() {
        tell("process_name", "name", record.name.as_str().into());
        tell("process_sort_index", "sort_index", process.into());
    }
    if record.unit.is_none() {
        tell("thread_name", "name", below(tracks, index).into());
        tell("thread_sort_index", "sort_index", thread.into());
    }
    lines
}

fn place(tracks: &[TrackRecord], track: u32, at: u64) -> String {
    format!(r#""pid":{},"tid":{},"ts":{}"#, top(tracks, track) + 1, track + 1, Micros(at))
}

/// The name of a track without that of its top-level track; a top-level track's own.
fn below(tracks: &[TrackRecord], track: u32) -> String {
    let (path, top) = (path(tracks, track), top(tracks, track));
    let above = tracks[top as usize].name.len() + 1;
    path.get(above..).map_or(path.clone(), str::to_owned)
}

fn count_line(tracks: &[TrackRecord], track: u32, place: &str, value: i64) -> String {
    let unit = tracks[track as usize].unit.filter(|unit| !unit.is_empty()).unwrap_or("value");
    let (name, unit) = (Json::from(below(tracks, track)), Json::from(unit));
    format!(r#"{{"ph":"C",{place},"name":{name},"args":{{{unit}:{}}}}}"#, signed(value))
}

fn named_lines(names: &Names, head: &str, place: &str, named: Named<'_>) -> Vec<String> {
    let name = Json::from(names.get(named.name));
    let mut lines = vec![format!(r#"{{{head},"name":{name}{}}}"#, args(names, named.args))];
    for end in named.arrows {
        lines.push(match end {
            ArrowEnd::From(a) => format!(r#"{{"ph":"s","id":{},"cat":"arrow","name":"arrow",{place}}}"#, a.0 + 1),
            ArrowEnd::To(a) => {
                format!(r#"{{"ph":"f","bp":"e","id":{},"cat":"arrow","name":"arrow",{place}}}"#, a.0 + 1)
            }
        });
    }
    lines
}

fn args(names: &Names, args: &[Arg]) -> String {
    if args.is_empty() {
        return String::new();
    }
    let object: serde_json::Map<String, Json> = args
        .iter()
        .map(|arg| {
            let value = match arg.value {
                Kept::U64(v) if v > EXACT => v.to_string().into(),
                Kept::U64(v) => v.into(),
                Kept::I64(v) => signed(v),
                Kept::F64(v) if v.is_finite() => v.into(),
                Kept::F64(v) => v.to_string().into(),
                Kept::Bool(v) => v.into(),
                Kept::Str(v) => names.get(v).into(),
            };
            (names.get(arg.key).to_owned(), value)
        })
        .collect();
    format!(r#","args":{}"#, Json::Object(object))
}

fn signed(value: i64) -> Json {
    if value.unsigned_abs() > EXACT { value.to_string().into() } else { value.into() }
}

/// Nanoseconds, shown as microseconds.
struct Micros(u64);

impl std::fmt::Display for Micros {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{:03}", self.0 / 1000, self.0 % 1000)
    }
}
