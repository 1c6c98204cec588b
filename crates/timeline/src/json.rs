//! The trace-event format in JSON ("Trace Event Format", the document of `chrome://tracing`;
//! Perfetto reads it as well).
//!
//! Every top-level track is a process, every track a thread of its top-level track's process, with
//! its full name. Slices are complete events (`X`), those without end begin events (`B`), instants
//! `i`, counters `C`, arrows `s` and `f`. Times are microseconds with three decimals, so
//! nanoseconds; the key `otherData` relates nanoseconds to simulated time.
//!
//! In this format arrows bind to slices: an arrow at an instant is shown at the enclosing slice.
//!
//! Numbers that JavaScript cannot represent (integers past 2^53, non-finite floats) are
//! written as strings.

use std::io::Write;

use serde_json::Value as Json;

use crate::event::{ArrowEnd, Details, Kept, What};
use crate::order::{Mark, MarkKind};
use crate::{Timeline, TimelineError};

/// The largest integer up to which every integer is exact in a JavaScript number.
const EXACT: u64 = 1 << 53;

pub(crate) fn write(timeline: &Timeline, marks: &[Mark], out: &mut impl Write) -> Result<(), TimelineError> {
    let other = serde_json::json!({ "unit": timeline.clock.unit(), "clock": timeline.clock.to_string() });
    writeln!(out, "{{\"displayTimeUnit\":\"ns\",\"otherData\":{other},\"traceEvents\":[")?;
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
        let mut lines = Vec::new();
        for (index, record) in (0_u32..).zip(&self.timeline.tracks) {
            let (process, thread) = (self.process(index), index + 1);
            let mut tell = |name: &str, key: &str, value: Json| {
                let args = serde_json::json!({ key: value });
                lines.push(format!(r#"{{"ph":"M","pid":{process},"tid":{thread},"name":"{name}","args":{args}}}"#));
            };
            if record.parent.is_none() {
                tell("process_name", "name", record.name.as_str().into());
                tell("process_sort_index", "sort_index", process.into());
            }
            if record.unit.is_none() {
                tell("thread_name", "name", self.below(index).into());
                tell("thread_sort_index", "sort_index", thread.into());
            }
        }
        lines
    }

    fn process(&self, track: u32) -> u32 {
        self.timeline.top(track) + 1
    }

    /// The name of a track without that of its top-level track; a top-level track's own.
    fn below(&self, track: u32) -> String {
        let (path, top) = (self.timeline.path(track), self.timeline.top(track));
        let above = self.timeline.tracks[top as usize].name.len() + 1;
        path.get(above..).map_or(path.clone(), str::to_owned)
    }

    fn event(&self, mark: &Mark) -> Result<Vec<String>, TimelineError> {
        let event = &self.timeline.events[mark.event];
        let start = self.timeline.clock.checked(event.start)?;
        let place = format!(r#""pid":{},"tid":{},"ts":{}"#, self.process(event.track), event.track + 1, Micros(start));
        let (head, details) = match &event.what {
            What::Slice(Some(end), d) => {
                let long = Micros(self.timeline.clock.checked(*end)? - start);
                (format!(r#""ph":"X",{place},"dur":{long}"#), d)
            }
            What::Slice(None, d) => (format!(r#""ph":"B",{place}"#), d),
            What::Instant(d) => (format!(r#""ph":"i","s":"t",{place}"#), d),
            What::Count(value) => {
                let record = &self.timeline.tracks[event.track as usize];
                let unit = record.unit.filter(|unit| !unit.is_empty()).unwrap_or("value");
                let (name, unit) = (Json::from(self.below(event.track)), Json::from(unit));
                return Ok(vec![format!(r#"{{"ph":"C",{place},"name":{name},"args":{{{unit}:{}}}}}"#, signed(*value))]);
            }
        };
        let name = Json::from(self.timeline.names.get(details.name));
        let mut lines = vec![format!(r#"{{{head},"name":{name}{}}}"#, self.args(details))];
        for end in &self.timeline.arrows[details.arrows.clone()] {
            lines.push(match end {
                ArrowEnd::From(a) => format!(r#"{{"ph":"s","id":{},"cat":"arrow","name":"arrow",{place}}}"#, a.0 + 1),
                ArrowEnd::To(a) => {
                    format!(r#"{{"ph":"f","bp":"e","id":{},"cat":"arrow","name":"arrow",{place}}}"#, a.0 + 1)
                }
            });
        }
        Ok(lines)
    }

    fn args(&self, details: &Details) -> String {
        let args = &self.timeline.args[details.args.clone()];
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
                    Kept::Str(v) => self.timeline.names.get(v).into(),
                };
                (self.timeline.names.get(arg.key).to_owned(), value)
            })
            .collect();
        format!(r#","args":{}"#, Json::Object(object))
    }
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
