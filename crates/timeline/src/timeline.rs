//! The timeline, to which a simulation adds events as they happen.

use std::io::Write;
use std::path::Path;

use crate::event::path;
use crate::event::{Arg, ArrowEnd, Details, Event, Named, TrackRecord, What};
use crate::names::Names;
use crate::{Arrow, Clock, CounterTrack, Format, TimelineError, Track, Value};

/// Tracks and their events.
#[derive(Clone, Debug)]
pub struct Timeline {
    pub(crate) clock: Clock,
    pub(crate) names: Names,
    pub(crate) tracks: Vec<TrackRecord>,
    pub(crate) events: Vec<Event>,
    pub(crate) args: Vec<Arg>,
    pub(crate) arrows: Vec<ArrowEnd>,
    pub(crate) arrow_count: u32,
}

impl Timeline {
    /// An empty timeline with times in `clock`.
    pub fn new(clock: Clock) -> Self {
        Self {
            clock,
            names: Names::default(),
            tracks: Vec::new(),
            events: Vec::new(),
            args: Vec::new(),
            arrows: Vec::new(),
            arrow_count: 0,
        }
    }

    /// The clock of its times.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// The number of slices, instants and values.
    pub fn len(&self) -> usize {
        self.events.len()
    }

    /// Whether there are no events.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// Adds a track for slices and instants, shown below `parent` in the order of creation. Tracks
    /// may have equal names.
    pub fn track(&mut self, name: &str, parent: Option<Track>) -> Track {
        Track(self.add_track(name, parent, None))
    }

    /// Adds a track for the values of a counter; `unit` is the unit of its values, as
    /// `slots`, or empty.
    pub fn counter_track(&mut self, name: &str, parent: Option<Track>, unit: &'static str) -> CounterTrack {
        CounterTrack(self.add_track(name, parent, Some(unit)))
    }

    fn add_track(&mut self, name: &str, parent: Option<Track>, unit: Option<&'static str>) -> u32 {
        let index = u32::try_from(self.tracks.len()).expect("memory ends before tracks do");
        self.tracks.push(TrackRecord { name: name.to_owned(), parent: parent.map(|t| t.0), unit });
        index
    }

    /// Adds a slice from `start` to `end`.
    pub fn slice(&mut self, track: Track, start: u64, end: u64, name: &str) -> EventMut<'_> {
        self.add_named(track, start, name, |details| What::Slice(Some(end), details))
    }

    /// Adds a slice that had not ended when the simulation did.
    pub fn open(&mut self, track: Track, start: u64, name: &str) -> EventMut<'_> {
        self.add_named(track, start, name, |details| What::Slice(None, details))
    }

    /// Adds an instant, an event without duration.
    pub fn instant(&mut self, track: Track, at: u64, name: &str) -> EventMut<'_> {
        self.add_named(track, at, name, What::Instant)
    }

    /// Adds the value of a counter from a time on.
    pub fn count(&mut self, track: CounterTrack, at: u64, value: i64) {
        self.events.push(Event { track: track.0, start: at, what: What::Count(value) });
    }

    /// Creates an arrow. It goes from the event that passes it to [`EventMut::from_here`] to the
    /// one that passes it to [`EventMut::to_here`], which should not start earlier; an arrow with
    /// only one end is not shown.
    pub fn arrow(&mut self) -> Arrow {
        self.arrow_count = self.arrow_count.checked_add(1).expect("memory ends before arrows do");
        Arrow(self.arrow_count - 1)
    }

    /// The name, the arguments and the arrows of an event.
    pub(crate) fn named(&self, details: &Details) -> Named<'_> {
        let (args, arrows) = (&self.args[details.args.clone()], &self.arrows[details.arrows.clone()]);
        Named { name: details.name, args, arrows }
    }

    fn add_named(&mut self, track: Track, start: u64, name: &str, what: impl Fn(Details) -> What) -> EventMut<'_> {
        let (args, arrows) = (self.args.len(), self.arrows.len());
        let details = Details { name: self.names.add(name), args: args..args, arrows: arrows..arrows };
        self.events.push(Event { track: track.0, start, what: what(details) });
        EventMut { timeline: self }
    }

    /// Writes the whole timeline.
    ///
    /// # Errors
    ///
    /// If slices overlap or end before they start, if a track belongs to another timeline, if
    /// a time exceeds the format's range, or if `out` fails. Only the last two can leave
    /// partial output.
    pub fn write(&self, format: Format, out: &mut impl Write) -> Result<(), TimelineError> {
        let marks = crate::order::marks(self)?;
        match format {
            Format::Perfetto => crate::perfetto::write(self, &marks, out)?,
            Format::Json => crate::json::write(self, &marks, out)?,
            Format::Text => crate::text::write(self, &marks, out)?,
        }
        Ok(out.flush()?)
    }

    /// Writes a file in the format of its extension.
    ///
    /// # Errors
    ///
    /// As [`Self::write`], or if the extension is unknown or the file cannot be created.
    pub fn save(&self, path: &Path) -> Result<(), TimelineError> {
        let format = Format::of(path)?;
        let at = |source| TimelineError::File { path: path.to_owned(), source };
        let mut out = std::io::BufWriter::new(std::fs::File::create(path).map_err(at)?);
        self.write(format, &mut out).map_err(|e| match e {
            TimelineError::Write(source) => at(source),
            other => other,
        })
    }

    /// The name of a track with those of its ancestors.
    pub(crate) fn path(&self, track: u32) -> String {
        path(&self.tracks, track)
    }
}

/// A slice or an instant that was just added, for its arguments and arrows.
#[derive(Debug)]
pub struct EventMut<'a> {
    timeline: &'a mut Timeline,
}

impl EventMut<'_> {
    /// Adds an argument.
    pub fn arg<'v>(self, key: &str, value: impl Into<Value<'v>>) -> Self {
        let arg = Arg::new(&mut self.timeline.names, key, value.into());
        self.timeline.args.push(arg);
        let end = self.timeline.args.len();
        self.details(|details| details.args.end = end)
    }

    /// The arrow starts here.
    pub fn from_here(self, arrow: Arrow) -> Self {
        self.arrow(ArrowEnd::From(arrow))
    }

    /// The arrow ends here.
    pub fn to_here(self, arrow: Arrow) -> Self {
        self.arrow(ArrowEnd::To(arrow))
    }

    fn arrow(self, end: ArrowEnd) -> Self {
        self.timeline.arrows.push(end);
        let end = self.timeline.arrows.len();
        self.details(|details| details.arrows.end = end)
    }

    fn details(self, change: impl FnOnce(&mut Details)) -> Self {
        match self.timeline.events.last_mut() {
            Some(Event { what: What::Slice(_, details) | What::Instant(details), .. }) => change(details),
            Some(Event { what: What::Count(_), .. }) | None => unreachable!("made by telling of a slice or an instant"),
        }
        self
    }
}
