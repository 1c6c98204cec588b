//! Ordering and checks of a timeline's events.
//!
//! Readers of trace formats sort events by time and keep the file's order among equal times; the
//! nesting of slices follows from that order. It is computed here for all writers: by time; for the
//! same track and time first ends, inner slices first, then starts, outer slices first. A slice
//! that starts when another ends is not nested in it.

use std::cmp::Reverse;

use crate::event::{ArrowEnd, Details, Event, What};
use crate::{Timeline, TimelineError};

/// One entry of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) at: u64,
    pub(crate) kind: MarkKind,
    /// Index of the event.
    pub(crate) event: usize,
    /// 1 at the end of an arrow, so that it follows the arrow's start if both have the same time.
    phase: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MarkKind {
    /// Start of a slice, an instant, or a value.
    Start,
    /// A slice ends.
    End,
}

/// Checks a timeline and returns its ordered marks.
pub(crate) fn marks(timeline: &Timeline) -> Result<Vec<Mark>, TimelineError> {
    check_references(timeline)?;
    let mut by_track: Vec<Vec<usize>> = vec![Vec::new(); timeline.tracks.len()];
    for (index, event) in timeline.events.iter().enumerate() {
        by_track[event.track as usize].push(index);
    }
    let mut marks = Vec::with_capacity(2 * timeline.events.len());
    for mut events in by_track {
        events.sort_by_key(|&i| (timeline.events[i].start, Reverse(end(&timeline.events[i]))));
        let first = marks.len();
        nest(timeline, &events, &mut marks)?;
        delay_arrow_ends(timeline, &mut marks[first..]);
    }
    marks.sort_by_key(|mark| (mark.at, mark.phase));
    Ok(marks)
}

fn check_references(timeline: &Timeline) -> Result<(), TimelineError> {
    let tracks = timeline.tracks.len();
    let parents = timeline.tracks.iter().enumerate().filter_map(|(i, track)| track.parent.map(|p| (p, i)));
    let used = timeline.events.iter().map(|event| (event.track, tracks));
    for (index, count) in parents.chain(used) {
        // Parents precede their children, so this also excludes cycles.
        if index as usize >= count {
            return Err(TimelineError::Foreign { what: "track", index, count });
        }
    }
    for end in &timeline.arrows {
        let (ArrowEnd::From(arrow) | ArrowEnd::To(arrow)) = end;
        if arrow.0 >= timeline.arrow_count {
            let count = timeline.arrow_count as usize;
            return Err(TimelineError::Foreign { what: "arrow", index: arrow.0, count });
        }
    }
    Ok(())
}

/// The end of an event; open slices end last.
fn end(event: &Event) -> u64 {
    match event.what {
        What::Slice(end, _) => end.unwrap_or(u64::MAX),
        What::Instant(_) | What::Count(_) => event.start,
    }
}

fn details(event: &Event) -> Option<&Details> {
    match &event.what {
        What::Slice(_, details) | What::Instant(details) => Some(details),
        What::Count(_) => None,
    }
}

/// Adds the marks of one track, whose events are sorted by start, longer ones first.
fn nest(timeline: &Timeline, events: &[usize], marks: &mut Vec<Mark>) -> Result<(), TimelineError> {
    let name = |i: usize| details(&timeline.events[i]).map_or(String::new(), |d| timeline.names.get(d.name).to_owned());
    let mut open: Vec<usize> = Vec::new();
    for &index in events {
        let event = &timeline.events[index];
        if end(event) < event.start {
            let (track, name) = (timeline.path(event.track), name(index));
            return Err(TimelineError::Backwards { track, name, start: event.start, end: end(event) });
        }
        close(timeline, &mut open, event.start, marks);
        if let Some(&around) = open.last()
            && end(&timeline.events[around]) < end(event)
        {
            let (track, first, second) = (timeline.path(event.track), name(around), name(index));
            return Err(TimelineError::Overlap { track, first, second, starts: event.start });
        }
        marks.push(Mark { at: event.start, kind: MarkKind::Start, event: index, phase: 0 });
        if matches!(event.what, What::Slice(..)) {
            open.push(index);
        }
    }
    close(timeline, &mut open, u64::MAX, marks);
    Ok(())
}

/// Ends the slices that are over at a time. Open slices get no end.
fn close(timeline: &Timeline, open: &mut Vec<usize>, at: u64, marks: &mut Vec<Mark>) {
    while let Some(&index) = open.last() {
        let event = &timeline.events[index];
        if end(event) > at || matches!(event.what, What::Slice(None, _)) {
            break;
        }
        open.pop();
        marks.push(Mark { at: end(event), kind: MarkKind::End, event: index, phase: 0 });
    }
}

/// Moves the marks of a track where arrows end, and later ones at the same time, after other
/// tracks' marks of that time: readers show an arrow only if its start comes first.
fn delay_arrow_ends(timeline: &Timeline, marks: &mut [Mark]) {
    let ends_arrow = |mark: &Mark| {
        let arrows = details(&timeline.events[mark.event]).map_or(&[][..], |d| &timeline.arrows[d.arrows.clone()]);
        mark.kind == MarkKind::Start && arrows.iter().any(|end| matches!(end, ArrowEnd::To(_)))
    };
    let mut before: Option<Mark> = None;
    for mark in marks {
        let delayed = before.is_some_and(|b| b.at == mark.at && b.phase == 1);
        mark.phase = u8::from(delayed || ends_arrow(mark));
        before = Some(*mark);
    }
}
