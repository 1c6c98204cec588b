//! Options that show what a run does: its timeline and a page of pictures.

use crate::chip::{AnyChip, Device};
use crate::failure::{Failure, Outcome};
use crate::files::{self, Growing};
use crate::kinds::INSPECT;
use crate::trace::TraceFile;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use tilework_abi::addr::Cycle;
use tilework_abi::board::Board;
use tilework_abi::l1::MemoryMap;
use tilework_abi::noc::NocXy;
use tilework_profile::{CLOCK, ChipTimeline, Choice, Listeners, Picture, Tracker, page};

/// What a run shows of itself.
#[derive(clap::Args, Clone, Debug, Default)]
#[command(next_help_heading = INSPECT)]
pub struct LookArgs {
    /// Also write a timeline of kernels, waits, requests and buffers: .pftrace (Perfetto), .json or
    /// .txt. Needs the built-in chip.
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    /// Write only these cycles of the timeline, counted from power-on.
    #[arg(long, value_name = "A..B", value_parser = cycles)]
    pub trace_cycles: Option<Window>,
    /// Write only these tiles of the timeline, as x-y with commas between them, and what their
    /// requests reach.
    #[arg(long, value_name = "TILES", value_delimiter = ',', value_parser = tilework_profile::tile)]
    pub trace_tiles: Vec<NocXy>,
    /// Also write a page with the load of tiles, links and DRAM banks over time, the buffers, and
    /// what the run failed with. Needs the built-in chip.
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

/// Cycles from one to another.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Window(Range<Cycle>);

fn cycles(text: &str) -> Result<Window, String> {
    tilework_profile::cycles(text).map(Window)
}

impl LookArgs {
    /// Refuses options that have no effect.
    ///
    /// # Errors
    /// The first of them.
    pub fn refuse(&self, is_built_in: bool, is_debugged: bool) -> Outcome<()> {
        let given = [(self.trace.is_some(), "--trace"), (self.html.is_some(), "--html")];
        let of_trace =
            [(self.trace_cycles.is_some(), "--trace-cycles"), (!self.trace_tiles.is_empty(), "--trace-tiles")];
        if let Some((_, option)) = of_trace.iter().find(|(given, _)| *given && self.trace.is_none()) {
            return Err(Failure::option(option, " needs --trace FILE"));
        }
        if let Some((_, option)) = given.iter().find(|(given, _)| *given && !is_built_in) {
            return Err(Failure::option(option, " needs the built-in chip: leave out --chip"));
        }
        // A debugger goes back, and what was seen then would be seen again.
        if let Some((_, option)) = given.iter().find(|(given, _)| *given && is_debugged) {
            return Err(Failure::option(option, " needs a run without --gdb"));
        }
        Ok(())
    }

    /// Refuses tiles that the board does not have: a timeline of them would be empty.
    ///
    /// # Errors
    /// The first of them.
    pub fn refuse_tiles(&self, board: Board) -> Outcome<()> {
        match self.trace_tiles.iter().find(|tile| !board.is_tensix(**tile)) {
            Some(NocXy { x, y }) => {
                let why = format_args!(": a {} has no Tensix tile {x}-{y}", board.name());
                Err(Failure::option("--trace-tiles", why))
            }
            None => Ok(()),
        }
    }

    /// Begins what was asked for, on a chip with firmware that has this map.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn begin(&self, chip: &mut AnyChip, map: MemoryMap) -> Outcome<Look> {
        let mut listeners =
            Listeners { picture: self.html.as_ref().map(|_| Picture::default()), ..Listeners::default() };
        let mut timeline = None;
        if let Some(path) = &self.trace {
            let window = self.trace_cycles.clone().map_or(0..Cycle::MAX, |window| window.0);
            let (file, stream) = TraceFile::at(path)?.begin(CLOCK, window)?;
            listeners.timeline = Some(ChipTimeline::new(stream, Choice { tiles: self.trace_tiles.clone() }));
            timeline = Some(file);
        }
        let tracker = (timeline.is_some() || self.html.is_some()).then(|| watch(chip, map, listeners));
        Ok(Look { tracker, timeline, html: self.html.clone() })
    }
}

/// Has a chip observed for these listeners.
pub fn watch(chip: &mut AnyChip, map: MemoryMap, listeners: Listeners) -> Arc<Mutex<Tracker>> {
    let tracker = Arc::new(Mutex::new(Tracker::new(map, listeners)));
    chip.observe(Box::new(Arc::clone(&tracker)));
    tracker
}

/// What the listeners have when the run has ended.
pub fn listened(tracker: &Mutex<Tracker>, device: &mut Device) -> Listeners {
    device.settle_observers();
    tracker.lock().map_or_else(|_| Listeners::default(), |mut tracker| std::mem::take(&mut tracker.listeners))
}

/// What is being written of a run.
pub struct Look {
    tracker: Option<Arc<Mutex<Tracker>>>,
    timeline: Option<Growing>,
    html: Option<PathBuf>,
}

impl Look {
    /// Writes the rest, also of a run that has failed: then it is wanted most.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn finish(self, device: &mut Device, program: &str, failed: Option<&Failure>) -> Outcome<()> {
        let Some(tracker) = self.tracker else { return Ok(()) };
        let Listeners { timeline, picture, .. } = listened(&tracker, device);
        if let (Some(file), Some(timeline)) = (self.timeline, timeline) {
            // The writer is flushed and closed before the file gets its name.
            timeline.finish().map(drop).map_err(|error| file.failed(&error))?;
            file.finish()?;
        }
        if let (Some(path), Some(mut picture)) = (self.html, picture) {
            write_page(&path, &mut picture, device, program, failed)?;
        }
        Ok(())
    }
}

fn write_page(
    path: &Path,
    picture: &mut Picture,
    device: &Device,
    program: &str,
    failed: Option<&Failure>,
) -> Outcome<()> {
    let cycles = device.statistics().chip.map_or(0, |chip| chip.cycles);
    picture.finish(cycles);
    let scene = failed.map(ToString::to_string);
    files::write_whole(path, &[page(picture, program, cycles, scene.as_deref()).as_bytes()])
}
