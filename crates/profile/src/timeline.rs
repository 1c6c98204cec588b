//! The timeline of a run: a stream of tracks for each tile, written as the run goes on.
//!
//! A tile has a track for each core that runs kernels, with the kernel and within it its waits;
//! lanes for the requests of each NoC, as many as are in flight at once; tracks for the units of
//! the coprocessor; counters for the levels of circular buffers. A DRAM bank and the host have a
//! track with what arrives there, to which arrows lead from the requests, and a counter of requests
//! that have not been answered. Tracks appear with their first event.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Arc;

use crate::tables::{ByRequest, ByTile};
use crate::tracks::{EndTracks, InFlight, TileTracks, Units, Working, of_spot};
use crate::{Activity, Command, Kernel, Listener, Place, Why};
use tilework_abi::addr::Cycle;
use tilework_abi::board::AICLK_MHZ;
use tilework_abi::noc::NocXy;
use tilework_sim::{PacketEvent, PacketKind, Request, RequestId, RequestKind, Spot, Unit, Wants};
use tilework_timeline::{Arrow, Clock, CounterTrack, Label, Stream, TimelineError, Track, Value};

/// The clock of the timeline: cycles of the AI clock.
pub const CLOCK: Clock = Clock::mhz("cycle", AICLK_MHZ as u64);

/// A unit that pauses for fewer cycles counts as busy.
const PAUSE: Cycle = 32;

/// A longer span is written in parts, so that what comes behind its start need not wait in memory.
const LONGEST: Cycle = 1 << 16;

/// Which tiles a timeline is about.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Choice {
    /// These Tensix tiles; all, if there are none. DRAM banks and the host are shown with the
    /// requests of these tiles.
    pub tiles: Vec<NocXy>,
}

impl Choice {
    fn has(&self, tile: NocXy) -> bool {
        self.tiles.is_empty() || self.tiles.contains(&tile)
    }
}

/// Writes the timeline of a chip.
pub struct ChipTimeline<W> {
    /// None after a failure.
    stream: Option<Stream<W>>,
    failure: Option<TimelineError>,
    choice: Choice,
    tiles: ByTile<TileTracks>,
    ends: Vec<(Spot, EndTracks)>,
    requests: ByRequest<InFlight>,
    /// The names of what requests go to: of tiles, and of others.
    tile_names: ByTile<Box<str>>,
    other_names: Vec<(Spot, Box<str>)>,
    /// Memory for texts.
    text: String,
    /// Launches: the track of each queue.
    launches: BTreeMap<Option<u8>, Track>,
}

impl<W: Write + Send> ChipTimeline<W> {
    /// A timeline of these tiles, written to `stream`.
    pub fn new(stream: Stream<W>, choice: Choice) -> Self {
        Self {
            stream: Some(stream),
            failure: None,
            choice,
            tiles: ByTile::default(),
            ends: Vec::new(),
            requests: ByRequest::default(),
            tile_names: ByTile::default(),
            other_names: Vec::new(),
            text: String::new(),
            launches: BTreeMap::new(),
        }
    }

    /// Writes the rest and returns the output.
    ///
    /// # Errors
    /// The first failure of the output.
    pub fn finish(mut self) -> Result<Option<W>, TimelineError> {
        self.settle_units(Cycle::MAX);
        match (self.failure, self.stream) {
            (Some(failure), _) => Err(failure),
            (None, stream) => stream.map(Stream::finish).transpose(),
        }
    }

    /// Does something with the stream, until it fails.
    fn with<T>(&mut self, act: impl FnOnce(&mut Stream<W>) -> Result<T, TimelineError>) -> Option<T> {
        match act(self.stream.as_mut()?) {
            Ok(done) => Some(done),
            Err(failure) => {
                (self.failure, self.stream) = (Some(failure), None);
                None
            }
        }
    }

    fn begin(&mut self, track: Track, at: Cycle, label: &Label<'_>) {
        self.with(|stream| {
            stream.begin(track, at, label);
            Ok(())
        });
    }

    fn end(&mut self, track: Track, at: Cycle) {
        self.with(|stream| {
            stream.end(track, at);
            Ok(())
        });
    }

    fn count(&mut self, track: CounterTrack, at: Cycle, value: i64) {
        self.with(|stream| {
            stream.count(track, at, value);
            Ok(())
        });
    }

    // Tracks

    /// The tracks of a tile that is shown.
    fn tile(&mut self, tile: NocXy) -> Option<&mut TileTracks> {
        if !self.choice.has(tile) {
            return None;
        }
        if self.tiles.get(tile).is_none() {
            let root = self.with(|stream| Ok(stream.track(&format!("tile {tile}"), None)))?;
            self.tiles.get_or_insert_with(tile, || TileTracks {
                root,
                cores: [None; 5],
                units: Units::default(),
                lanes: [Vec::new(), Vec::new()],
                arrivals: None,
                levels: BTreeMap::new(),
                queue: None,
                commands: BTreeMap::new(),
            });
        }
        self.tiles.get_mut(tile)
    }

    fn core(&mut self, place: Place) -> Option<Track> {
        let tracks = self.tile(place.tile)?;
        let (root, known) = (tracks.root, tracks.cores[place.core.index()]);
        if known.is_some() {
            return known;
        }
        let track = self.with(|stream| Ok(stream.track(place.core.name(), Some(root))))?;
        self.tile(place.tile)?.cores[place.core.index()] = Some(track);
        Some(track)
    }

    /// A counter of a tile, made when it is first needed.
    fn counter(
        &mut self,
        tile: NocXy,
        name: &str,
        unit: &'static str,
        known: impl Fn(&mut TileTracks) -> Option<CounterTrack>,
        keep: impl FnOnce(&mut TileTracks, CounterTrack),
    ) -> Option<CounterTrack> {
        let tracks = self.tile(tile)?;
        let (root, found) = (tracks.root, known(tracks));
        if found.is_some() {
            return found;
        }
        let track = self.with(|stream| Ok(stream.counter_track(name, Some(root), unit)))?;
        keep(self.tile(tile)?, track);
        Some(track)
    }

    // Activity

    fn kernel_starts(&mut self, at: Cycle, place: Place, kernel: &Arc<Kernel>) {
        let Some(track) = self.core(place) else { return };
        let args = [("program", Value::Str(&kernel.program)), ("role", Value::Str(&kernel.role))];
        let launch = kernel.launch.map(|launch| ("launch", Value::U64(launch)));
        let args: Vec<_> = args.into_iter().chain(launch).collect();
        self.begin(track, at, &Label { name: &kernel.name, args: &args, ..Label::default() });
    }

    fn wait_starts(&mut self, at: Cycle, place: Place, why: &Why) {
        let Some(track) = self.core(place) else { return };
        let args = [("reason", Value::Str(why.kind))];
        self.begin_named(track, at, ["waits for ", &why.what], &args);
    }

    fn command_starts(&mut self, at: Cycle, place: Place, command: &Command) {
        let Some(track) = self.core(place) else { return };
        let (colon, name) = command.program.as_deref().map_or(("", ""), |program| (": ", program));
        let args = [("queue", Value::U64(command.queue.into())), ("number", Value::U64(command.number))];
        let bytes = command.bytes.map(|bytes| ("bytes", Value::U64(bytes)));
        let program = command.program.as_deref().map(|program| ("program", Value::Str(program)));
        let args: Vec<_> = args.into_iter().chain(bytes).chain(program).collect();
        self.begin_named(track, at, [command.name, colon, name], &args);
    }

    /// Begins a slice whose name has parts.
    fn begin_named<const N: usize>(
        &mut self,
        track: Track,
        at: Cycle,
        parts: [&str; N],
        args: &[(&'static str, Value<'_>)],
    ) {
        let mut name = std::mem::take(&mut self.text);
        name.clear();
        parts.iter().for_each(|part| name.push_str(part));
        self.begin(track, at, &Label { name: &name, args, ..Label::default() });
        self.text = name;
    }

    /// The end of what a core began last.
    fn core_ends(&mut self, at: Cycle, place: Place) {
        if let Some(track) = self.core(place) {
            self.end(track, at);
        }
    }

    fn request_starts(&mut self, at: Cycle, place: Place, request: &Request) {
        let noc = usize::from(request.noc & 1);
        let Some((lane, track)) = self.lane(place.tile, noc) else { return };
        let what = match request.kind {
            RequestKind::Read => "read",
            RequestKind::Write if request.receivers > 1 => "multicast",
            RequestKind::Write => "write",
            RequestKind::Inline => "write of a word",
            RequestKind::Atomic => "atomic",
        };
        let Some(arrow) = self.with(|stream| Ok(stream.arrow())) else { return };
        let Self { stream: Some(stream), tile_names, other_names, .. } = self else { return };
        let name = || request.remote.to_string().into_boxed_str();
        let remote = match request.remote {
            Spot::Tensix(tile) => tile_names.get_or_insert_with(tile, name),
            spot => of_spot(other_names, spot, name),
        };
        let args = [
            ("bytes", Value::U64(request.len)),
            ("core", Value::Str(place.core.name())),
            ("remote", Value::Str(remote)),
            ("remote address", Value::U64(request.remote_addr)),
            ("local address", Value::U64(request.local_addr)),
            ("receivers", Value::U64(request.receivers.into())),
            ("transaction id", Value::U64(request.trid.into())),
        ];
        stream.begin(track, at, &Label { name: what, args: &args, from: Some(arrow), to: None });
        self.requests.insert(request.id, InFlight { tile: place.tile, noc, lane, arrow, what });
    }

    /// A lane without a request, taken from now on.
    fn lane(&mut self, tile: NocXy, noc: usize) -> Option<(usize, Track)> {
        let tracks = self.tile(tile)?;
        let (root, lanes) = (tracks.root, &mut tracks.lanes[noc]);
        if let Some((lane, (track, taken))) = lanes.iter_mut().enumerate().find(|(_, (_, taken))| !*taken) {
            *taken = true;
            return Some((lane, *track));
        }
        let number = lanes.len();
        let track = self.with(|stream| Ok(stream.track(&format!("NoC {noc} requests {number}"), Some(root))))?;
        self.tile(tile)?.lanes[noc].push((track, true));
        Some((number, track))
    }

    fn request_ends(&mut self, at: Cycle, id: RequestId) {
        let Some(InFlight { tile, noc, lane, .. }) = self.requests.remove(id) else { return };
        let lane = self.tiles.get_mut(tile).and_then(|tracks| tracks.lanes[noc].get_mut(lane));
        if let Some((track, taken)) = lane {
            *taken = false;
            let track = *track;
            self.end(track, at);
        }
    }

    /// A request of a shown tile arrives at its other end, or its answer leaves there.
    fn packet(&mut self, at: Cycle, spot: Spot, leaves: bool, packet: &PacketEvent) {
        let Some(request) = self.requests.get(packet.id) else { return };
        let (arrow, what) = (request.arrow, request.what);
        let is_request =
            matches!(packet.kind, PacketKind::ReadRequest | PacketKind::WriteRequest | PacketKind::AtomicRequest);
        let is_memory = matches!(spot, Spot::Dram(_) | Spot::Pcie);
        match (is_request, leaves) {
            (true, false) => self.arrival(at, spot, arrow, what, packet),
            (false, true) if is_memory => {
                self.waiting(at, spot, -1);
            }
            _ => {}
        }
    }

    fn arrival(&mut self, at: Cycle, spot: Spot, arrow: Arrow, what: &'static str, packet: &PacketEvent) {
        let track = match spot {
            Spot::Dram(_) | Spot::Pcie => self.waiting(at, spot, 1),
            Spot::Tensix(tile) => self.incoming(tile),
            Spot::Arc | Spot::Inert => None,
        };
        let Some(track) = track else { return };
        let args = [("bytes", Value::U64(packet.len.into())), ("address", Value::U64(packet.addr))];
        self.with(|stream| {
            stream.instant(track, at, &Label { name: what, args: &args, from: None, to: Some(arrow) });
            Ok(())
        });
    }

    /// The track of what arrives at a tile.
    fn incoming(&mut self, tile: NocXy) -> Option<Track> {
        let tracks = self.tile(tile)?;
        let (root, known) = (tracks.root, tracks.arrivals);
        if known.is_some() {
            return known;
        }
        let track = self.with(|stream| Ok(stream.track("arrivals", Some(root))))?;
        self.tile(tile)?.arrivals = Some(track);
        Some(track)
    }

    /// Requests at a bank or the host that have not been answered become more or fewer.
    fn waiting(&mut self, at: Cycle, spot: Spot, change: i64) -> Option<Track> {
        let Self { stream: Some(stream), ends, .. } = self else { return None };
        let end = of_spot(ends, spot, || {
            let name = match spot {
                Spot::Pcie => "host (PCIe)".to_owned(),
                spot => spot.to_string(),
            };
            let arrivals = stream.track(&name, None);
            let waiting = stream.counter_track("requests under way", Some(arrivals), "requests");
            EndTracks { arrivals, waiting, level: 0 }
        });
        end.level = (end.level + change).max(0);
        stream.count(end.waiting, at, end.level);
        Some(end.arrivals)
    }

    fn works(&mut self, at: Cycle, tile: NocXy, unit: Unit, thread: u8, until: Cycle) {
        let Some(tracks) = self.tile(tile) else { return };
        let (root, working) = (tracks.root, tracks.units.of(unit));
        let track = match working {
            Some(Working { track, span: Some((from, end, last)) }) => {
                if at <= end.saturating_add(PAUSE) && at.saturating_sub(*from) < LONGEST {
                    (*end, *last) = (until.max(*end), thread);
                    return;
                }
                Some(*track)
            }
            Some(Working { track, span: None }) => Some(*track),
            None => None,
        };
        let new = |stream: &mut Stream<W>| {
            stream.expect(&Label { name: "busy", args: &[("thread", Value::U64(0))], ..Label::default() });
            Ok(stream.track(&unit_name(unit), Some(root)))
        };
        let track = track.or_else(|| self.with(new));
        let (Some(track), Some(tracks)) = (track, self.tile(tile)) else { return };
        let working = tracks.units.of(unit).get_or_insert(Working { track, span: None });
        let from = working.span.map_or(at, |(_, end, _)| at.max(end));
        let done = working.span.replace((from, until.max(from), thread));
        self.write_work(track, done);
    }

    fn write_work(&mut self, track: Track, span: Option<(Cycle, Cycle, u8)>) {
        let Some((from, until, thread)) = span else { return };
        let args = [("thread", Value::U64(thread.into()))];
        self.with(|stream| {
            stream.span(track, from, until, &Label { name: "busy", args: &args, ..Label::default() });
            Ok(())
        });
    }

    /// Writes the spans of units that have paused when this cycle is reached.
    fn settle_units(&mut self, at: Cycle) {
        let units = self.tiles.values_mut().flat_map(|tracks| tracks.units.iter_mut());
        let paused = |working: &mut Working| {
            let (_, until, _) = working.span.filter(|(_, until, _)| until.saturating_add(PAUSE) < at)?;
            debug_assert!(until < at);
            Some((working.track, working.span.take()))
        };
        let done: Vec<_> = units.filter_map(paused).collect();
        done.into_iter().for_each(|(track, span)| self.write_work(track, span));
    }

    /// The first cycle for which something may still be written.
    fn settled_before(&self, at: Cycle) -> Cycle {
        let units = self.tiles.values().flat_map(|tracks| tracks.units.iter());
        units.filter_map(|working| working.span).map(|(from, ..)| from).fold(at, Cycle::min)
    }

    fn reached(&mut self, at: Cycle) {
        // Spans come behind all other events of their time, whenever that is.
        if !self.stream.as_ref().is_some_and(Stream::is_due) {
            return;
        }
        self.settle_units(at);
        let before = self.settled_before(at);
        self.with(|stream| stream.advance(before));
    }

    fn go(&mut self, at: Cycle, place: Place, program: &str, number: u64) {
        let Some(track) = self.core(place) else { return };
        let (name, args) = (format!("go: {program}"), [("launch", Value::U64(number))]);
        self.with(|stream| {
            stream.instant(track, at, &Label { name: &name, args: &args, ..Label::default() });
            Ok(())
        });
    }

    fn launch(&mut self, at: Cycle, queue: Option<u8>, program: &str, number: u64) {
        let track = match self.launches.get(&queue) {
            Some(track) => Some(*track),
            None => {
                let name =
                    queue.map_or("launches of the host".to_owned(), |queue| format!("launches in queue {queue}"));
                self.with(|stream| Ok(stream.track(&name, None)))
            }
        };
        let Some(track) = track else { return };
        self.launches.insert(queue, track);
        let args = [("launch", Value::U64(number))];
        self.with(|stream| {
            stream.instant(track, at, &Label { name: program, args: &args, ..Label::default() });
            Ok(())
        });
    }
}

/// The name of a unit's track.
fn unit_name(unit: Unit) -> String {
    match unit {
        Unit::Unpacker(number) => format!("unpacker {number}"),
        Unit::Packer => "packer".into(),
        Unit::Matrix => "matrix unit (FPU)".into(),
        Unit::Vector => "vector unit (SFPU)".into(),
        Unit::Mover => "mover".into(),
        Unit::Scalar => "scalar unit".into(),
        Unit::Gate => "wait gates".into(),
    }
}

impl<W: Write + Send> Listener for ChipTimeline<W> {
    fn wants(&self) -> Wants {
        Wants::UNITS
    }

    fn hear(&mut self, at: Cycle, activity: &Activity<'_>) {
        match *activity {
            Activity::Launch(launch) => self.launch(at, launch.queue, &launch.program, launch.number),
            Activity::KernelStarts(place, kernel) => self.kernel_starts(at, place, kernel),
            Activity::WaitStarts(place, _, why, _) => self.wait_starts(at, place, why),
            Activity::CommandStarts(place, command) => self.command_starts(at, place, command),
            Activity::KernelEnds(place, ..) | Activity::WaitEnds(place, ..) | Activity::CommandEnds(place) => {
                self.core_ends(at, place)
            }
            Activity::Go(place, launch) => self.go(at, place, &launch.program, launch.number),
            Activity::RequestStarts(place, _, request) => self.request_starts(at, place, request),
            Activity::RequestEnds(id, _) => self.request_ends(at, id),
            Activity::Packet(spot, _, leaves, packet) => self.packet(at, spot, leaves, packet),
            Activity::Level(tile, buffer, name, pages) => {
                let name = format!("circular buffer {name}");
                let known = |tracks: &mut TileTracks| tracks.levels.get(&buffer).copied();
                let keep = |tracks: &mut TileTracks, track| {
                    tracks.levels.insert(buffer, track);
                };
                if let Some(track) = self.counter(tile, &name, "pages", known, keep) {
                    self.count(track, at, pages);
                }
            }
            Activity::QueueLevel(tile, entries) => {
                let keep = |tracks: &mut TileTracks, track| tracks.queue = Some(track);
                if let Some(track) = self.counter(tile, "prefetch queue", "entries", |tracks| tracks.queue, keep) {
                    self.count(track, at, entries);
                }
            }
            Activity::Commands(place, commands) => {
                let known = |tracks: &mut TileTracks| tracks.commands.get(&place.core).copied();
                let keep = |tracks: &mut TileTracks, track| {
                    tracks.commands.insert(place.core, track);
                };
                let name = format!("commands executed by {}", place.core);
                if let Some(track) = self.counter(place.tile, &name, "commands", known, keep) {
                    self.count(track, at, commands.into());
                }
            }
            Activity::Works(tile, unit, thread, until) => self.works(at, tile, unit, thread, until),
            Activity::Reached => self.reached(at),
            Activity::Buffer(_) | Activity::Freed(_) | Activity::Counted(..) => {}
        }
    }
}
