//! The text format: a line for each event, ordered by start.
//!
//! ```text
//! # 1 cycle = 1 ns
//! # start +duration track: event argument=value... arrows
//! 100 +120 cluster 0/AIC: TPUSH slot=3 1>
//! 230 +30 cluster 0/AIV0: TPOP slot=3 >1
//! ```
//!
//! Times are those of the simulation, not nanoseconds. `+?` marks an open slice; an instant has no
//! duration, a counter's value follows `=`. `1>` is where arrow 1 starts, `>1` where it ends.
//! Control characters of names are escaped, so that every event is one line.

use std::io::{self, Write};

use crate::event::{ArrowEnd, Details, Kept, What};
use crate::order::{Mark, MarkKind};
use crate::{Timeline, TimelineError};

pub(crate) fn write(timeline: &Timeline, marks: &[Mark], out: &mut impl Write) -> Result<(), TimelineError> {
    writeln!(out, "# {}", timeline.clock)?;
    writeln!(out, "# start +duration track: event argument=value... arrows")?;
    let paths: Vec<String> = (0..).zip(&timeline.tracks).map(|(track, _)| escaped(&timeline.path(track))).collect();
    for (path, record) in paths.iter().zip(&timeline.tracks) {
        match record.unit {
            Some(unit) => writeln!(out, "# counter {path} [{}]", escaped(unit))?,
            None => writeln!(out, "# track {path}")?,
        }
    }
    for mark in marks.iter().filter(|mark| mark.kind == MarkKind::Start) {
        let event = &timeline.events[mark.event];
        let path = &paths[event.track as usize];
        match &event.what {
            What::Slice(Some(end), d) => {
                line(timeline, out, format_args!("{} +{} {path}", mark.at, end - event.start), d)?;
            }
            What::Slice(None, d) => line(timeline, out, format_args!("{} +? {path}", mark.at), d)?,
            What::Instant(d) => line(timeline, out, format_args!("{} {path}", mark.at), d)?,
            What::Count(value) => writeln!(out, "{} {path} = {value}", mark.at)?,
        }
    }
    Ok(())
}

fn line(timeline: &Timeline, out: &mut impl Write, head: std::fmt::Arguments<'_>, details: &Details) -> io::Result<()> {
    write!(out, "{head}: {}", escaped(timeline.names.get(details.name)))?;
    for arg in &timeline.args[details.args.clone()] {
        write!(out, " {}=", escaped(timeline.names.get(arg.key)))?;
        match arg.value {
            Kept::U64(v) => write!(out, "{v}")?,
            Kept::I64(v) => write!(out, "{v}")?,
            Kept::F64(v) => write!(out, "{v:?}")?,
            Kept::Bool(v) => write!(out, "{v}")?,
            Kept::Str(v) => write!(out, "{:?}", timeline.names.get(v))?,
        }
    }
    for end in &timeline.arrows[details.arrows.clone()] {
        match end {
            ArrowEnd::From(arrow) => write!(out, " {}>", arrow.0 + 1)?,
            ArrowEnd::To(arrow) => write!(out, " >{}", arrow.0 + 1)?,
        }
    }
    writeln!(out)
}

/// A name without control characters and line ends.
fn escaped(name: &str) -> String {
    let control = |c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}');
    name.chars().map(|c| if control(c) { c.escape_default().to_string() } else { c.to_string() }).collect()
}
