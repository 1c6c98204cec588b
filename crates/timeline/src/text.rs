//! The text format: a line for each event, ordered by start.
//!
//! ```text
//! # 1 cycle = 1 ns
//! # start +duration track: event argument=value... arrows
//! 100 +120 cluster 0/AIC: TPUSH slot=3 1>
//! 230 +30 cluster 0/AIV0: TPOP slot=3 >1
//! ```
//!
//! A stream ([`crate::Stream`]) does not know the end of a slice when it starts:
//! `100 ( TRACK: NAME` begins one, `220 ) TRACK` ends the last one of the track.
//!
//! Times are those of the simulation, not nanoseconds. `+?` marks an open slice; an instant has no
//! duration, a counter's value follows `=`. `1>` is where arrow 1 starts, `>1` where it ends.
//! Control characters of names are escaped, so that every event is one line.

use std::io::{self, Write};

use crate::event::{ArrowEnd, Details, Kept, Named, Told, TrackRecord, What};
use crate::names::Names;
use crate::order::{Mark, MarkKind};
use crate::{Timeline, TimelineError};

pub(crate) fn write(timeline: &Timeline, marks: &[Mark], out: &mut impl Write) -> Result<(), TimelineError> {
    writeln!(out, "# {}", timeline.clock)?;
    writeln!(out, "# start +duration track: event argument=value... arrows")?;
    let paths: Vec<String> = (0..).zip(&timeline.tracks).map(|(track, _)| escaped(&timeline.path(track))).collect();
    for (path, record) in paths.iter().zip(&timeline.tracks) {
        writeln!(out, "{}", track_line(path, record))?;
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
    named(&timeline.names, out, head, timeline.named(details))
}

/// The line of an event in a stream: `(` begins a slice, `)` ends the last one of its track.
pub(crate) fn stream_line(names: &Names, out: &mut impl Write, at: u64, path: &str, told: &Told<'_>) -> io::Result<()> {
    match told {
        Told::Start(what) => named(names, out, format_args!("{at} ( {path}"), *what),
        Told::Instant(what) => named(names, out, format_args!("{at} {path}"), *what),
        Told::End => writeln!(out, "{at} ) {path}"),
        Told::Count(value) => writeln!(out, "{at} {path} = {value}"),
    }
}

/// The line of a track.
pub(crate) fn track_line(path: &str, record: &TrackRecord) -> String {
    match record.unit {
        Some(unit) => format!("# counter {path} [{}]", escaped(unit)),
        None => format!("# track {path}"),
    }
}

fn named(names: &Names, out: &mut impl Write, head: std::fmt::Arguments<'_>, what: Named<'_>) -> io::Result<()> {
    write!(out, "{head}: {}", escaped(names.get(what.name)))?;
    for arg in what.args {
        write!(out, " {}=", escaped(names.get(arg.key)))?;
        match arg.value {
            Kept::U64(v) => write!(out, "{v}")?,
            Kept::I64(v) => write!(out, "{v}")?,
            Kept::F64(v) => write!(out, "{v:?}")?,
            Kept::Bool(v) => write!(out, "{v}")?,
            Kept::Str(v) => write!(out, "{:?}", names.get(v))?,
        }
    }
    for end in what.arrows {
        match end {
            ArrowEnd::From(arrow) => write!(out, " {}>", arrow.0 + 1)?,
            ArrowEnd::To(arrow) => write!(out, " >{}", arrow.0 + 1)?,
        }
    }
    writeln!(out)
}

/// A name without control characters and line ends.
pub(crate) fn escaped(name: &str) -> String {
    let control = |c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}');
    name.chars().map(|c| if control(c) { c.escape_default().to_string() } else { c.to_string() }).collect()
}
