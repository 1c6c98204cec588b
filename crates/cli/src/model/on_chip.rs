//! What the report of a run says about the chip.

use super::engine::AnyMachine;
use crate::chip::AnyChip;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use tilework_abi::board::AICLK_MHZ;
use tilework_driver::HostLink;
use tilework_model::ttnn::OpKind;
use tilework_onchip::{Carried, Chips, Record, TraceCounts};
use tilework_profile::CLOCK;
use tilework_timeline::Timeline;

/// What the chip did. The fields are those of the JSON form, in their order.
#[derive(Serialize, Debug)]
pub struct ChipReport {
    board: &'static str,
    /// Whose chip, unless it is the built-in one: `tt-kmd: /dev/tenstorrent/0`.
    #[serde(skip_serializing_if = "Option::is_none")]
    chip_of: Option<String>,
    /// Chips, one for each device of the mesh.
    devices: usize,
    /// Cycles from power-on to the end; of several chips the most. Of a card by its own counter.
    cycles: u64,
    /// Cycles of the programs of all operations.
    program_cycles: u64,
    /// Operations that programs of the chip carried out.
    chip: usize,
    /// Transfers and other names of the same tensor.
    moved: usize,
    /// Operations of the host, because the program has their tensors there.
    stated: usize,
    /// Operations of the host, because the chip has no program for them.
    host: usize,
    /// Which these were.
    by_host: Vec<ByHost>,
    /// Programs that only moved tensors between L1 and DRAM, for programs that take those in DRAM.
    l1_moves: usize,
    /// Tensors in interleaved DRAM that the program has elsewhere, and why.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    displaced: BTreeMap<String, String>,
    /// What devices exchanged by copies through the host's memory, counted on each, and the bytes
    /// that were read and written for it.
    exchanged: usize,
    exchanged_bytes: u64,
    /// Programs that were found in the cache, and those that were lowered.
    cache_hits: u64,
    cache_misses: u64,
    /// Traces of the file: captured, replayed, and why others were not captured.
    traces: Traces,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    operations: Vec<Operation>,
}

/// An operation that the host computed instead of the chip.
#[derive(Serialize, Debug)]
struct ByHost {
    program: usize,
    operation: usize,
    kind: OpKind,
    why: String,
}

/// What became of the file's traces.
#[derive(Serialize, Debug)]
struct Traces {
    captured: u64,
    replays: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    not_captured: Vec<String>,
}

/// An operation and what it took.
#[derive(Serialize, Debug)]
struct Operation {
    /// The device of the mesh.
    device: usize,
    program: usize,
    operation: usize,
    kind: OpKind,
    /// Where it comes from in the user's source.
    loc: String,
    carried: &'static str,
    /// Cycles with transfers, by the dispatcher's clock.
    cycles: u64,
    /// The same as time of the chip.
    microseconds: f64,
    /// The most cores of a program.
    cores: usize,
    /// Bytes of operands and results, the fewest cycles by each need, and the part of its programs'
    /// cycles that the greatest of them is.
    #[serde(skip_serializing_if = "Option::is_none")]
    roofline: Option<Roofline>,
    /// Bytes to the device, and from it.
    written: u64,
    read: u64,
    programs: Vec<Program>,
}

/// What an operation needs at least, and how near its programs come to that.
#[derive(Serialize, Debug)]
struct Roofline {
    bytes: u64,
    math: u64,
    dram: u64,
    noc: u64,
    bound: &'static str,
    utilisation: Option<f64>,
}

/// A program of an operation.
#[derive(Serialize, Debug)]
struct Program {
    name: String,
    cores: usize,
    cycles: Option<u64>,
}

impl ChipReport {
    /// What a machine did, if it is the chip, that of `place` or the built-in one; with each
    /// operation if `all`.
    pub fn of(machine: &AnyMachine, place: Option<&Path>, all: bool) -> Option<Self> {
        let AnyMachine::Chip(both) = machine else { return None };
        let (chips, chip) = (both.machine(), both.machine().first());
        let devices = chips.all().count();
        let records: Vec<(usize, &Record)> = records(both.machine()).collect();
        let count = |name| records.iter().filter(|(_, record)| record.carried.name() == name).count();
        // The same operations on every device.
        let by_host = chip.records().iter().filter_map(|record| match &record.carried {
            Carried::Host(why) => Some(ByHost {
                program: record.place.program,
                operation: record.place.operation,
                kind: record.place.kind,
                why: why.clone(),
            }),
            _ => None,
        });
        let cache = chips.all().map(|chip| chip.device().statistics().cache);
        let (hits, misses) = cache.fold((0, 0), |(hits, misses), cache| (hits + cache.hits, misses + cache.misses));
        let TraceCounts { captured, replays, not_captured } = chip.traces().clone();
        Some(Self {
            board: chip.device().board().name(),
            chip_of: place.map(|place| AnyChip::name(Some(place))),
            devices,
            cycles: machine.cycles()?,
            program_cycles: records.iter().map(|(_, record)| record.busy()).sum(),
            chip: count("chip"),
            moved: count("moved"),
            stated: count("stated"),
            host: count("host"),
            by_host: by_host.collect(),
            l1_moves: records.iter().map(|(_, record)| record.moves()).sum(),
            displaced: chip.displaced().clone(),
            exchanged: count("exchanged"),
            exchanged_bytes: records.iter().map(|(_, record)| exchanged(record)).sum(),
            cache_hits: hits,
            cache_misses: misses,
            traces: Traces { captured, replays, not_captured },
            operations: records.iter().filter(|_| all).map(|&(device, record)| Operation::of(device, record)).collect(),
        })
    }

    pub fn text(&self, out: &mut dyn Write) -> std::io::Result<()> {
        let of = self.chip_of.as_ref().map_or_else(String::new, |of| format!(" ({of})"));
        writeln!(out, "  board            {}{of}", self.board)?;
        let (cycles, programs) = (self.cycles, self.program_cycles);
        let time = self.program_cycles as f64 / f64::from(AICLK_MHZ);
        writeln!(out, "  cycles           {cycles}, {programs} of them in programs of operations ({time:.1} us)")?;
        writeln!(out, "  program cache    {} hits, {} misses", self.cache_hits, self.cache_misses)?;
        if self.devices > 1 {
            let Self { devices, exchanged, exchanged_bytes, .. } = self;
            writeln!(
                out,
                "  devices          {devices}: {exchanged} exchanges, {exchanged_bytes} bytes through the host"
            )?;
        }
        for (tensor, why) in &self.displaced {
            writeln!(out, "  in DRAM instead  {tensor}: {why}")?;
        }
        if self.l1_moves > 0 {
            writeln!(out, "  L1 to DRAM, back {} programs", self.l1_moves)?;
        }
        let Traces { captured, replays, not_captured } = &self.traces;
        if captured + replays > 0 || !not_captured.is_empty() {
            writeln!(out, "  traces           {captured} captured, {replays} replays")?;
        }
        not_captured.iter().try_for_each(|why| writeln!(out, "    not captured: {why}"))?;
        let Self { chip, moved, stated, host, .. } = self;
        writeln!(
            out,
            "  operations by    chip {chip}, transfers {moved}, host as stated {stated}, host instead {host}"
        )?;
        for ByHost { program, operation, kind, why } in &self.by_host {
            writeln!(out, "    {program}.{operation:<5} {:<30} {why}", kind.name())?;
        }
        if !self.operations.is_empty() {
            writeln!(
                out,
                "\n  {:<12} {:<26} {:<7} {:>9} {:>9} {:>5} {:>11} {:>9}  programs",
                "operation", "kind", "by", "cycles", "us", "cores", "of bound", "moved"
            )?;
        }
        for operation in &self.operations {
            let device = if self.devices > 1 { format!("{}:", operation.device) } else { String::new() };
            let place = format!("{device}{}.{}", operation.program, operation.operation);
            let programs = operation.programs.iter().map(|program| {
                let cycles = program.cycles.map_or_else(|| "?".to_owned(), |cycles| cycles.to_string());
                let on = if program.cores == 0 { String::new() } else { format!(" on {}", program.cores) };
                format!("{} {cycles}{on}", program.name)
            });
            let (kind, bytes) = (operation.kind.name(), operation.written + operation.read);
            let programs = programs.collect::<Vec<_>>().join(", ");
            let Operation { carried, cycles, .. } = operation;
            let of = operation.roofline.as_ref().and_then(|roofline| Some((roofline.bound, roofline.utilisation?)));
            let of = of.map_or_else(String::new, |(bound, part)| format!("{:.1} % {bound}", 100.0 * part));
            let (time, cores) = (operation.microseconds, operation.cores);
            writeln!(
                out,
                "  {place:<12} {kind:<26} {carried:<7} {cycles:>9} {time:>9.2} {cores:>5} {of:>11} {bytes:>9}  {programs}"
            )?;
        }
        Ok(())
    }
}

impl Operation {
    fn of(device: usize, record: &Record) -> Self {
        let programs = record.stages.iter().map(|stage| Program {
            name: stage.name.clone(),
            cores: stage.cores,
            cycles: stage.cycles(),
        });
        Self {
            device,
            program: record.place.program,
            operation: record.place.operation,
            kind: record.place.kind,
            loc: record.place.loc.clone(),
            carried: record.carried.name(),
            cycles: record.cycles(),
            microseconds: record.cycles() as f64 / f64::from(AICLK_MHZ),
            cores: record.cores(),
            roofline: record.bounds.map(|bounds| Roofline {
                bytes: bounds.bytes,
                math: bounds.math,
                dram: bounds.dram,
                noc: bounds.noc,
                bound: bounds.greatest().0,
                utilisation: bounds.utilisation(record.busy()),
            }),
            written: record.written,
            read: record.read,
            programs: programs.collect(),
        }
    }
}

/// What became of the operations on each device.
fn records<C: HostLink>(chips: &Chips<C>) -> impl Iterator<Item = (usize, &Record)> {
    chips.all().enumerate().flat_map(|(device, chip)| chip.records().iter().map(move |record| (device, record)))
}

/// Bytes that a device exchanged with others.
fn exchanged(record: &Record) -> u64 {
    if record.carried == Carried::Exchanged { record.written + record.read } else { 0 }
}

/// The operations of a run as a timeline: each with its name and place in the source, its transfers
/// and programs below it.
pub fn timeline(machine: &AnyMachine) -> Timeline {
    let mut timeline = Timeline::new(CLOCK);
    let AnyMachine::Chip(both) = machine else { return timeline };
    let several = both.machine().all().nth(1).is_some();
    let tracks = both.machine().all().enumerate().map(|(device, _)| {
        let parent = several.then(|| timeline.track(&format!("device {device}"), None));
        (timeline.track("operations", parent), timeline.track("transfers and programs", parent))
    });
    let tracks: Vec<_> = tracks.collect();
    for (device, record) in records(both.machine()) {
        let (operations, stages) = tracks[device];
        let Some([start, end]) = record.times() else { continue };
        let place = &record.place;
        let name = place.name.as_deref().unwrap_or(place.kind.name());
        let event = timeline.slice(operations, start, end, name);
        let event = event.arg("operation", format!("{}.{}", place.program, place.operation).as_str());
        let event = event.arg("loc", place.loc.as_str()).arg("by", record.carried.name());
        if let Some(bounds) = record.bounds {
            event.arg("bytes", bounds.bytes).arg("bound", bounds.greatest().0).arg("at least", bounds.greatest().1);
        }
        for stage in &record.stages {
            if let Some([start, end]) = stage.times {
                timeline.slice(stages, start, end, &stage.name).arg("cores", stage.cores as u64);
            }
        }
    }
    timeline
}
