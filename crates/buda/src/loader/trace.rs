//! Writes the loader's events to a timeline.

use super::model::Loader;
use super::stats::{EventKind, ModelCycle};
use std::collections::BTreeMap;
use tilework_netlist::types::QueueId;
use tilework_timeline::{Clock, CounterTrack, Timeline, Track};

/// AI clock cycles, 1.35 GHz.
pub const CLOCK: Clock = Clock::mhz("cycle", 1350);

/// Parallel tracks, since epochs on different cores of a device may overlap.
struct Lanes<'t> {
    timeline: &'t mut Timeline,
    parents: BTreeMap<String, Track>,
    /// By group: tracks, and when each is free.
    lanes: BTreeMap<(String, &'static str), Vec<(Track, ModelCycle)>>,
    counters: BTreeMap<QueueId, CounterTrack>,
}

impl Lanes<'_> {
    fn parent(&mut self, name: &str) -> Track {
        *self.parents.entry(name.to_string()).or_insert_with(|| self.timeline.track(name, None))
    }

    fn free(&mut self, parent: &str, name: &'static str, start: ModelCycle, end: ModelCycle) -> Track {
        let above = self.parent(parent);
        let lanes = self.lanes.entry((parent.to_string(), name)).or_default();
        // Do not reuse a lane whose last slice is empty and starts at the same time: the
        // slices would nest.
        if let Some((track, free)) = lanes.iter_mut().find(|(_, free)| *free <= start) {
            *free = end.max(start + 1);
            return *track;
        }
        let title = if lanes.is_empty() { name.to_string() } else { format!("{name} {}", lanes.len() + 1) };
        let track = self.timeline.track(&title, Some(above));
        lanes.push((track, end.max(start + 1)));
        track
    }
}

impl Loader {
    /// Adds the events to a timeline whose clock counts AI clock cycles.
    pub fn trace(&self, timeline: &mut Timeline) {
        let mut lanes = Lanes { timeline, parents: BTreeMap::new(), lanes: BTreeMap::new(), counters: BTreeMap::new() };
        let mut events: Vec<_> = self.events().iter().collect();
        events.sort_by_key(|event| (event.start, event.end));
        for event in events {
            let (start, end) = (event.start, event.end);
            match &event.kind {
                EventKind::Epoch { device, graph, epoch, slot, issued, passed } => {
                    let track = lanes.free(&format!("device {device}"), "epochs", start, end);
                    let name = &self.netlist.graph(*graph).name;
                    let slice = lanes.timeline.slice(track, start, end, name);
                    slice.arg("epoch", *epoch).arg("slot", *slot).arg("issued", *issued).arg("passed", *passed);
                }
                EventKind::Binary { device, graph, slot, evicted, preload } => {
                    let track = lanes.free(&format!("device {device}"), "binary cache", start, end);
                    let name = &self.netlist.graph(*graph).name;
                    let slice = lanes.timeline.slice(track, start, end, name);
                    let slice = slice.arg("slot", *slot).arg("preload", *preload);
                    if let Some(evicted) = evicted {
                        slice.arg("evicted", self.netlist.graph(*evicted).name.as_str());
                    }
                }
                EventKind::Level { queue, entries } => {
                    let queues = lanes.parent("queues");
                    let counter = *lanes.counters.entry(*queue).or_insert_with(|| {
                        lanes.timeline.counter_track(&self.netlist.queue(*queue).name, Some(queues), "entries")
                    });
                    lanes.timeline.count(counter, start, i64::from(*entries));
                }
                EventKind::Stall(reason) => {
                    let track = lanes.free("host", "stalls", start, end);
                    lanes.timeline.slice(track, start, end, reason.name());
                }
                // The end event has the whole loop.
                EventKind::LoopStart { .. } => {}
                EventKind::LoopEnd => {
                    let track = lanes.free("host", "loops on devices", start, end);
                    lanes.timeline.slice(track, start, end, "loop");
                }
            }
        }
    }
}
