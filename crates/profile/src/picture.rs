//! What a page shows: load over time of tiles, links and banks, and the buffers.
//!
//! Time is divided into a fixed number of bins. When the run goes on past the last one, each two of
//! them become one, so that memory is bounded however long the run is.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::{Activity, Kernel, Link, Listener, Place, links_of};
use tilework_abi::addr::Cycle;
use tilework_abi::noc::{GRID_X, GRID_Y, NocXy};
use tilework_driver::{BankNote, BufferNote, CbNote, MemoryKind};
use tilework_sim::{PacketEvent, PacketKind, Spot, Way};

/// Bins, an even number.
const BINS: usize = 240;
/// Cycles of a bin at first.
const FIRST_WIDTH: Cycle = 64;

/// The page, without the data.
const PAGE: &str = include_str!("page.html");
/// Where the data goes.
const DATA: &str = "/*DATA*/";

/// Cycles or bytes by bin.
type Series = Vec<u64>;

/// Collects what a page shows.
#[derive(Clone, Debug)]
pub struct Picture {
    /// When the first program was announced: the start of the board before it is not shown.
    start: Option<Cycle>,
    width: Cycle,
    /// Cycles of kernels and of waiting, of all cores of a tile.
    tiles: BTreeMap<NocXy, [Series; 2]>,
    links: BTreeMap<Link, Series>,
    /// Bytes at DRAM banks and the host.
    banks: BTreeMap<Spot, Series>,
    /// What stands at the physical places from which packets left.
    places: BTreeMap<(u8, u8), Spot>,
    /// By number, with whether it has been freed.
    buffers: BTreeMap<u64, (BufferNote, bool)>,
    /// Circular buffers, by program, number and first byte.
    circular: BTreeMap<(String, u32, u32), CbNote>,
    /// Since when kernels run and wait that have not ended, with their names and reasons.
    running: BTreeMap<Place, (Cycle, Arc<Kernel>)>,
    waiting: BTreeMap<Place, (Cycle, String)>,
    /// What the cores of a tile were doing when the run ended.
    left: BTreeMap<NocXy, Vec<String>>,
    /// Programs in the order of their launches, and when they were announced.
    launches: Vec<(Cycle, String)>,
}

impl Default for Picture {
    fn default() -> Self {
        Self {
            start: None,
            width: FIRST_WIDTH,
            tiles: BTreeMap::new(),
            links: BTreeMap::new(),
            banks: BTreeMap::new(),
            places: BTreeMap::new(),
            buffers: BTreeMap::new(),
            circular: BTreeMap::new(),
            running: BTreeMap::new(),
            waiting: BTreeMap::new(),
            left: BTreeMap::new(),
            launches: Vec::new(),
        }
    }
}

/// Launches that a page names; of more it shows the first ones.
const LAUNCHES: usize = 500;

/// Circular buffers that a page shows: programs may be launched at many places of L1.
const CIRCULAR: usize = 200;

impl Picture {
    /// Cycles since the first program was announced.
    fn since_start(&self, at: Cycle) -> Option<Cycle> {
        at.checked_sub(self.start?)
    }

    /// Makes room for a cycle since the start.
    fn reach(&mut self, at: Cycle) {
        while at / self.width >= BINS as Cycle {
            self.width *= 2;
            let tiles = self.tiles.values_mut().flatten();
            tiles.chain(self.links.values_mut()).chain(self.banks.values_mut()).for_each(halve);
        }
    }

    fn span(&mut self, tile: NocXy, which: usize, from: Cycle, to: Cycle) {
        let Some((from, to)) = self.since_start(from).zip(self.since_start(to)) else { return };
        self.reach(to);
        let width = self.width;
        let series = &mut self.tiles.entry(tile).or_default()[which];
        let mut at = from;
        while at < to {
            let end = to.min((at / width + 1) * width);
            add(series, at / width, end - at);
            at = end;
        }
    }

    fn packet(&mut self, at: Cycle, spot: Spot, noc: u8, leaves: bool, packet: &PacketEvent) {
        let Some(at) = self.since_start(at) else { return };
        self.reach(at);
        let bin = at / self.width;
        if let (true, Some([from, to])) = (leaves, packet.way.map(Way::ends)) {
            self.places.entry(from).or_insert(spot);
            for link in links_of(noc, from, to) {
                add(self.links.entry(link).or_default(), bin, packet.flits.into());
            }
        }
        let is_request = matches!(packet.kind, PacketKind::ReadRequest | PacketKind::WriteRequest);
        if !leaves && is_request && matches!(spot, Spot::Dram(_) | Spot::Pcie) {
            add(self.banks.entry(spot).or_default(), bin, packet.len.into());
        }
    }

    /// The run has ended.
    pub fn finish(&mut self, at: Cycle) {
        let waiting = std::mem::take(&mut self.waiting);
        for (place, (since, kernel)) in std::mem::take(&mut self.running) {
            let doing = match waiting.get(&place) {
                Some((_, what)) => format!("waits for {what}"),
                None => "runs".to_owned(),
            };
            let line = format!("{}: {} of {} {doing}", place.core, kernel.name, kernel.program);
            self.left.entry(place.tile).or_default().push(line);
            self.span(place.tile, 0, since, at);
        }
        for (place, (since, _)) in waiting {
            self.span(place.tile, 1, since, at);
        }
        self.reach(self.since_start(at).unwrap_or(0));
    }

    /// What the page shows, as data.
    fn data(&self, title: &str, cycles: Cycle, scene: Option<&str>) -> Value {
        let cycles = self.since_start(cycles).unwrap_or(0);
        let bins = (cycles / self.width + 1).min(BINS as Cycle);
        let place = |spot: Spot| self.places.iter().filter(move |(_, at)| **at == spot).map(|(place, _)| *place);
        let tiles = self.tiles.iter().map(|(tile, [busy, waiting])| {
            let at = place(Spot::Tensix(*tile)).next();
            let left = self.left.get(tile);
            json!({ "name": tile.to_string(), "at": at, "busy": busy, "waiting": waiting, "left": left })
        });
        let banks = self.banks.iter().map(
            |(spot, bytes)| json!({ "name": spot.to_string(), "at": place(*spot).collect::<Vec<_>>(), "bytes": bytes }),
        );
        let links = self.links.iter().map(|(link, flits)| {
            json!({ "noc": link.noc, "x": link.x, "y": link.y, "way": link.direction(), "flits": flits })
        });
        let buffers = self.buffers.values().map(|(buffer, freed)| buffer_data(buffer, *freed));
        json!({
            "title": title,
            "start": self.start,
            "cycles": cycles,
            "width": self.width,
            "bins": bins,
            "grid": [GRID_X, GRID_Y],
            "tiles": tiles.collect::<Vec<_>>(),
            "banks": banks.collect::<Vec<_>>(),
            "links": links.collect::<Vec<_>>(),
            "buffers": buffers.collect::<Vec<_>>(),
            "circular": self.circular.iter().map(|((program, ..), cb)| cb_data(program, cb)).collect::<Vec<_>>(),
            "launches": self.launches,
            "scene": scene,
        })
    }
}

fn buffer_data(buffer: &BufferNote, freed: bool) -> Value {
    let kind = match buffer.kind {
        MemoryKind::Dram => "DRAM",
        MemoryKind::L1 => "L1",
        MemoryKind::Host => "host",
    };
    let bank = |bank: &BankNote| match bank {
        BankNote::Dram(bank) => format!("DRAM bank {bank}"),
        BankNote::Core(tile) => format!("tile {tile}"),
        BankNote::Host => "host".to_owned(),
    };
    json!({
        "name": buffer.name,
        "kind": kind,
        "from": buffer.taken.start,
        "to": buffer.taken.end,
        "page": buffer.page_size,
        "pages": buffer.pages,
        "banks": buffer.banks.iter().map(bank).collect::<Vec<_>>(),
        "freed": freed,
    })
}

fn cb_data(program: &str, cb: &CbNote) -> Value {
    let bytes = u64::from(cb.page_size) * u64::from(cb.pages);
    json!({
        "program": program,
        "name": cb.name,
        "from": cb.address,
        "to": u64::from(cb.address) + bytes,
        "pages": cb.pages,
    })
}

fn add(series: &mut Series, bin: Cycle, amount: u64) {
    let bin = usize::try_from(bin).unwrap_or(usize::MAX).min(BINS - 1);
    if series.len() <= bin {
        series.resize(bin + 1, 0);
    }
    series[bin] += amount;
}

/// Makes one bin of each two.
fn halve(series: &mut Series) {
    *series = series.chunks(2).map(|pair| pair.iter().sum()).collect();
}

/// The page: one file that needs nothing else. `scene` is what the run failed with.
pub fn page(picture: &Picture, title: &str, cycles: Cycle, scene: Option<&str>) -> String {
    // A name could end the script; in JSON, `<` may be written as an escape.
    let data = picture.data(title, cycles, scene).to_string().replace('<', "\\u003c");
    PAGE.replacen(DATA, &data, 1)
}

impl Listener for Picture {
    fn hear(&mut self, at: Cycle, activity: &Activity<'_>) {
        match *activity {
            Activity::KernelStarts(place, kernel) if kernel.launch.is_some() => {
                self.running.insert(place, (at, kernel.clone()));
            }
            Activity::KernelEnds(place, _, since) if self.running.remove(&place).is_some() => {
                self.span(place.tile, 0, since, at);
            }
            Activity::WaitStarts(place, kernel, why, _) if kernel.launch.is_some() => {
                self.waiting.insert(place, (at, why.what.to_string()));
            }
            Activity::WaitEnds(place, _, _, _, since) if self.waiting.remove(&place).is_some() => {
                self.span(place.tile, 1, since, at);
            }
            Activity::Packet(spot, noc, leaves, packet) => self.packet(at, spot, noc, leaves, packet),
            Activity::Buffer(buffer) => {
                self.buffers.insert(buffer.id, (buffer.clone(), false));
            }
            Activity::Freed(id) => {
                if let Some((_, freed)) = self.buffers.get_mut(&id) {
                    *freed = true;
                }
            }
            Activity::Launch(launch) => {
                self.start.get_or_insert(at);
                if self.launches.len() < LAUNCHES {
                    self.launches.push((at, launch.program.clone()));
                }
                for cb in launch.cbs.iter().take(CIRCULAR.saturating_sub(self.circular.len())) {
                    self.circular.insert((launch.program.clone(), cb.index, cb.address), cb.clone());
                }
            }
            _ => {}
        }
    }
}
