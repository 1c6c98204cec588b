//! A timeline that is written while it happens, in bounded memory.
//!
//! Events may come somewhat out of order: they are kept until [`Stream::advance`] says that none
//! will come for an earlier time. Only what lies within a window of time is written; slices that
//! are open when the window begins start there, and those that are open when it ends end there.
//!
//! A track is written before its first event, not when it is added: so what is written does not
//! depend on how often somebody says how far time has come.

use std::io::Write;
use std::ops::Range;

use crate::event::{Arg, ArrowEnd, Named, Told, TrackRecord, path};
use crate::names::{Name, Names};
use crate::{Arrow, Clock, CounterTrack, Format, TimelineError, Track, Value, json, perfetto, text};

/// The name of a slice or an instant, with its arguments and arrows.
#[derive(Clone, Debug, Default)]
pub struct Label<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its arguments.
    pub args: &'a [(&'static str, Value<'a>)],
    /// The arrow that starts here.
    pub from: Option<Arrow>,
    /// The arrow that ends here.
    pub to: Option<Arrow>,
}

impl<'a> Label<'a> {
    /// Only a name.
    pub fn named(name: &'a str) -> Self {
        Self { name, ..Self::default() }
    }
}

/// Writes a timeline as it grows.
#[derive(Debug)]
pub struct Stream<W> {
    out: W,
    format: Format,
    clock: Clock,
    window: Range<u64>,
    names: Names,
    tracks: Vec<TrackRecord>,
    states: Vec<State>,
    packets: perfetto::Packets,
    /// In the order of their coming, behind those that were left when they were last put in order.
    pending: Vec<Item>,
    /// Their arguments.
    args: Vec<Arg>,
    /// Memory for what is put in order: the time of each, what it comes behind, and its place.
    order: Vec<(u64, u32, u32)>,
    /// With so many they are put in order: not again and again for the sake of a few.
    limit: usize,
    /// Events so far, for the order of those of one time.
    sequence: u64,
    arrows: u32,
    /// Whether the first time of the window has been passed.
    started: bool,
    /// Whether a line of JSON has been written, after which there is a comma.
    comma: bool,
}

/// What is known of a track.
#[derive(Debug, Default)]
struct State {
    /// The name of the track with those of its ancestors, for the text format.
    path: String,
    /// Slices that are open, and were begun before the window.
    before: Vec<(Item, Box<[Arg]>)>,
    /// The last value before the window.
    value: Option<Item>,
    /// Slices that are open and have been written, or will be.
    depth: u32,
    /// The track has been written.
    told: bool,
    /// Slices that are open and began behind the window.
    skipped: u32,
}

/// An event that waits for its turn.
#[derive(Clone, Debug)]
struct Item {
    at: u64,
    sequence: u64,
    track: u32,
    /// Zero; of a span that was told when it was over a number of its track.
    behind: u32,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    Start(Details),
    End,
    Instant(Details),
    Count(i64),
}

#[derive(Clone, Debug)]
struct Details {
    name: Name,
    /// Which of the arguments of all that waits.
    args: Range<u32>,
    /// The first so many.
    arrows: ([ArrowEnd; 2], u8),
}

/// Events are put in order when there are so many more than could not be written the last time.
const PENDING: usize = 1 << 12;
/// Arguments of each for which there is room at first.
const ARGS: usize = 4;

impl<W: Write> Stream<W> {
    /// A timeline in `format` with times in `clock`, of which `window` is written to `out`.
    ///
    /// # Errors
    /// `out` fails.
    pub fn new(mut out: W, format: Format, clock: Clock, window: Range<u64>) -> Result<Self, TimelineError> {
        let mut packets = perfetto::Packets::default();
        match format {
            Format::Perfetto => packets.start(&mut out)?,
            Format::Json => writeln!(out, "{}", json::first_line(clock))?,
            Format::Text => writeln!(out, "# {clock}\n# time ( begins, ) ends: event argument=value... arrows")?,
        }
        Ok(Self {
            out,
            format,
            clock,
            window,
            names: Names::default(),
            tracks: Vec::new(),
            states: Vec::new(),
            packets,
            pending: Vec::with_capacity(PENDING),
            args: Vec::with_capacity(ARGS * PENDING),
            order: Vec::new(),
            limit: PENDING,
            sequence: 0,
            arrows: 0,
            started: false,
            comma: false,
        })
    }

    /// Adds a track for slices and instants, shown below `parent` in the order of creation.
    pub fn track(&mut self, name: &str, parent: Option<Track>) -> Track {
        Track(self.add_track(name, parent, None))
    }

    /// Adds a track for the values of a counter.
    pub fn counter_track(&mut self, name: &str, parent: Option<Track>, unit: &'static str) -> CounterTrack {
        CounterTrack(self.add_track(name, parent, Some(unit)))
    }

    fn add_track(&mut self, name: &str, parent: Option<Track>, unit: Option<&'static str>) -> u32 {
        let index = u32::try_from(self.tracks.len()).expect("memory ends before tracks do");
        self.tracks.push(TrackRecord { name: name.to_owned(), parent: parent.map(|t| t.0), unit });
        // Of long texts only one format has any use.
        let path = match self.format {
            Format::Text => text::escaped(&path(&self.tracks, index)),
            Format::Perfetto | Format::Json => String::new(),
        };
        self.states.push(State { path, ..State::default() });
        index
    }

    /// Writes a track, behind those above it, unless that has been done.
    fn tell_track(&mut self, index: u32) -> Result<(), TimelineError> {
        let state = &mut self.states[index as usize];
        if std::mem::replace(&mut state.told, true) {
            return Ok(());
        }
        if let Some(parent) = self.tracks[index as usize].parent {
            self.tell_track(parent)?;
        }
        let (state, record) = (&self.states[index as usize], &self.tracks[index as usize]);
        match self.format {
            Format::Perfetto => self.packets.track(&mut self.out, self.clock, index, record)?,
            Format::Text => writeln!(self.out, "{}", text::track_line(&state.path, record))?,
            Format::Json => {
                let lines = json::track_lines(&self.tracks, index);
                self.put_lines(&lines)?;
            }
        }
        Ok(())
    }

    /// A new arrow: from the label that has it as `from` to the one that has it as `to`.
    pub fn arrow(&mut self) -> Arrow {
        self.arrows = self.arrows.wrapping_add(1);
        Arrow(self.arrows.wrapping_sub(1))
    }

    /// Begins a slice. Slices of a track are nested: the one that began last ends first.
    pub fn begin(&mut self, track: Track, at: u64, label: &Label<'_>) {
        self.begin_behind(track, at, label, 0);
    }

    fn begin_behind(&mut self, track: Track, at: u64, label: &Label<'_>, behind: u32) {
        let details = self.details(label);
        let state = &mut self.states[track.0 as usize];
        if at >= self.window.end {
            state.skipped += 1;
            return;
        }
        state.depth += 1;
        self.push(at, track.0, behind, Kind::Start(details));
    }

    /// Ends the slice of a track that began last; without one nothing happens.
    pub fn end(&mut self, track: Track, at: u64) {
        self.end_behind(track, at, 0);
    }

    /// Names that will come get their numbers now: those of spans, which are told later than they
    /// happen, would depend on when that is.
    pub fn expect(&mut self, label: &Label<'_>) {
        self.names.add(label.name);
        for (key, value) in label.args {
            let _ = Arg::with_constant(&mut self.names, key, *value);
        }
    }

    /// Adds a slice that is over, on a track that has no others: both of its ends come behind all
    /// else of their times, in the order of tracks, whenever it is told.
    pub fn span(&mut self, track: Track, from: u64, until: u64, label: &Label<'_>) {
        let behind = track.0.saturating_add(1);
        self.begin_behind(track, from, label, behind);
        self.end_behind(track, until, behind);
    }

    fn end_behind(&mut self, track: Track, at: u64, behind: u32) {
        let state = &mut self.states[track.0 as usize];
        if state.skipped > 0 {
            state.skipped -= 1;
        } else if state.depth > 0 {
            state.depth -= 1;
            self.push(at.min(self.window.end), track.0, behind, Kind::End);
        }
    }

    /// Adds an instant.
    pub fn instant(&mut self, track: Track, at: u64, label: &Label<'_>) {
        if self.window.contains(&at) {
            let details = self.details(label);
            self.push(at, track.0, 0, Kind::Instant(details));
        }
    }

    /// Adds the value of a counter from a time on.
    pub fn count(&mut self, track: CounterTrack, at: u64, value: i64) {
        if at < self.window.end {
            self.push(at, track.0, 0, Kind::Count(value));
        }
    }

    fn details(&mut self, label: &Label<'_>) -> Details {
        let first = number(&self.args);
        self.args.extend(label.args.iter().map(|(key, value)| Arg::with_constant(&mut self.names, key, *value)));
        let args = first..number(&self.args);
        let none = ArrowEnd::From(Arrow(0));
        let arrows = match (label.from.map(ArrowEnd::From), label.to.map(ArrowEnd::To)) {
            (Some(from), Some(to)) => ([from, to], 2),
            (None, None) => ([none; 2], 0),
            (Some(one), None) | (None, Some(one)) => ([one, none], 1),
        };
        Details { name: self.names.add(label.name), args, arrows }
    }

    fn push(&mut self, at: u64, track: u32, behind: u32, kind: Kind) {
        self.sequence += 1;
        self.pending.push(Item { at, sequence: self.sequence, track, behind, kind });
    }

    /// Whether so much waits that [`Self::advance`] writes something.
    pub fn is_due(&self) -> bool {
        self.pending.len() >= self.limit
    }

    /// Nothing more will come for a time before `at`: writes what comes before that, when it is
    /// worth it.
    ///
    /// # Errors
    /// The output fails; a time that the format cannot hold.
    pub fn advance(&mut self, at: u64) -> Result<(), TimelineError> {
        if !self.is_due() {
            return Ok(());
        }
        self.write_before(at)?;
        self.limit = PENDING + 2 * self.pending.len();
        Ok(())
    }

    fn write_before(&mut self, at: u64) -> Result<(), TimelineError> {
        let (mut items, mut args) = (std::mem::take(&mut self.pending), std::mem::take(&mut self.args));
        // Those of one time stay in the order of their coming, and all where they are: they are
        // large.
        let mut order = std::mem::take(&mut self.order);
        order.extend(items.iter().zip(0..).map(|(item, place)| (item.at, item.behind, place)));
        order.sort_unstable();
        let ready = order.partition_point(|(of, ..)| *of < at);
        for &(.., place) in &order[..ready] {
            let item = &items[place as usize];
            let args = item.args(&args);
            if item.at < self.window.start {
                self.keep(item, args);
            } else {
                self.start()?;
                self.write(item, args)?;
            }
        }
        // What stays moves up, in the order of its coming, and so do its arguments.
        let mut kept = 0;
        items.retain_mut(|item| {
            let stays = item.at >= at;
            if stays && let Kind::Start(details) | Kind::Instant(details) = &mut item.kind {
                let (own, first) = (details.args.clone(), kept);
                args.copy_within(own.start as usize..own.end as usize, first as usize);
                kept += own.end - own.start;
                details.args = first..kept;
            }
            stays
        });
        args.truncate(kept as usize);
        order.clear();
        (self.pending, self.args, self.order) = (items, args, order);
        if at > self.window.start {
            self.start()?;
        }
        Ok(())
    }

    /// Remembers what an event before the window means for the window.
    fn keep(&mut self, item: &Item, args: &[Arg]) {
        let state = &mut self.states[item.track as usize];
        match item.kind {
            Kind::Start(_) => state.before.push((item.clone(), args.into())),
            Kind::End => drop(state.before.pop()),
            Kind::Count(_) => state.value = Some(item.clone()),
            Kind::Instant(_) => {}
        }
    }

    /// Writes what is open when the window begins, once.
    fn start(&mut self) -> Result<(), TimelineError> {
        if self.started {
            return Ok(());
        }
        self.started = true;
        let states = self.states.iter_mut();
        let value = |state: &mut State| state.value.take().map(|item| (item, Box::default()));
        let mut open: Vec<(Item, Box<[Arg]>)> = states
            .flat_map(|state| {
                let value = value(state);
                std::mem::take(&mut state.before).into_iter().chain(value)
            })
            .collect();
        open.sort_by_key(|(item, _)| (item.behind, item.sequence));
        for (mut item, args) in open {
            item.at = self.window.start;
            self.write(&item, &args)?;
        }
        Ok(())
    }

    fn write(&mut self, item: &Item, args: &[Arg]) -> Result<(), TimelineError> {
        let told = match &item.kind {
            Kind::Start(details) => Told::Start(details.named(args)),
            Kind::Instant(details) => Told::Instant(details.named(args)),
            Kind::End => Told::End,
            Kind::Count(value) => Told::Count(*value),
        };
        self.tell_track(item.track)?;
        let at = self.clock.checked(item.at)?;
        match self.format {
            Format::Perfetto => self.packets.event(&mut self.out, &self.names, at, item.track, &told)?,
            Format::Json => {
                let lines = json::stream_lines(&self.names, &self.tracks, at, item.track, &told);
                self.put_lines(&lines)?;
            }
            Format::Text => {
                let path = &self.states[item.track as usize].path;
                text::stream_line(&self.names, &mut self.out, item.at, path, &told)?;
            }
        }
        Ok(())
    }

    fn put_lines(&mut self, lines: &[String]) -> Result<(), TimelineError> {
        for line in lines {
            if std::mem::replace(&mut self.comma, true) {
                self.out.write_all(b",\n")?;
            }
            self.out.write_all(line.as_bytes())?;
        }
        Ok(())
    }

    /// Writes the rest and returns the output. Slices that have not ended stay open.
    ///
    /// # Errors
    /// As [`Self::advance`].
    pub fn finish(mut self) -> Result<W, TimelineError> {
        self.write_before(u64::MAX)?;
        for index in (0..).take(self.tracks.len()) {
            self.tell_track(index)?;
        }
        if self.format == Format::Json {
            self.out.write_all(b"\n]}\n")?;
        }
        self.out.flush()?;
        Ok(self.out)
    }
}

/// The number of the next argument.
fn number(args: &[Arg]) -> u32 {
    u32::try_from(args.len()).expect("memory ends before arguments do")
}

impl Item {
    /// Its arguments, of all those of what waits.
    fn args<'a>(&self, all: &'a [Arg]) -> &'a [Arg] {
        match &self.kind {
            Kind::Start(details) | Kind::Instant(details) => {
                &all[details.args.start as usize..details.args.end as usize]
            }
            Kind::End | Kind::Count(_) => &[],
        }
    }
}

impl Details {
    fn named<'a>(&'a self, args: &'a [Arg]) -> Named<'a> {
        let (arrows, count) = &self.arrows;
        Named { name: self.name, args, arrows: &arrows[..usize::from(*count)] }
    }
}
