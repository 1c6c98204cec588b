//! What a run of a netlist says at its end.

use crate::output::OutputFile;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::Write;
use tilework_buda::backend::RunRecord;
use tilework_buda::loader::{LoaderStats, Stalls};
use tilework_netlist::types::{Netlist, Queue, QueueKind};

/// What the loader's cycles are worth.
pub const TIMING_MODEL: &str = "modelled: the loader's clock is made of estimates (docs/buda.md); pointers are exact";

/// The report of a run. The fields are those of the JSON form, in their order.
#[derive(Serialize, Debug)]
pub struct NetlistReport {
    /// The file.
    pub netlist: String,
    /// The architecture of the loader's model.
    pub arch: &'static str,
    /// sequential or concurrent.
    pub mode: &'static str,
    /// `execute` instructions.
    pub executes: u64,
    /// Calls of programs, in order.
    pub programs: Vec<CallReport>,
    /// Queues at the end.
    pub queues: BTreeMap<String, QueueReport>,
    /// In which precision values were computed: device or exact.
    pub precision: &'static str,
    /// Settings that no value depends on, by operation.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub only_costed: BTreeMap<String, Vec<&'static str>>,
    /// What the loader has counted.
    pub loader: LoaderReport,
    /// What may be meant otherwise.
    pub warnings: Vec<String>,
    /// Entries for which no space was made, by queue.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub unpushed: BTreeMap<String, usize>,
    /// Seconds of this machine.
    pub host_seconds: f64,
    /// The output arrays by queue.
    pub outputs: BTreeMap<String, OutputFile>,
    /// What cycles are worth.
    pub timing_model: &'static str,
}

/// A call of a program.
#[derive(Serialize, Debug)]
pub struct CallReport {
    name: String,
    executes: u64,
    epochs: u64,
    operations: u64,
    /// Global read pointers after it.
    rd: BTreeMap<String, u32>,
}

impl CallReport {
    /// The report of a call.
    pub fn new(netlist: &Netlist, record: &RunRecord) -> Self {
        let RunRecord { program, executes, epochs, operations, pointers } = record;
        let rd = netlist.queues.iter().zip(pointers).map(|(queue, (rd, _))| (queue.name.clone(), *rd)).collect();
        Self { name: program.clone(), executes: *executes, epochs: *epochs, operations: *operations, rd }
    }
}

/// A queue at the end.
#[derive(Serialize, Debug)]
pub struct QueueReport {
    r#type: &'static str,
    rd: u32,
    wr: u32,
}

impl QueueReport {
    /// The report of a queue.
    pub fn new(queue: &Queue, rd: u32, wr: u32) -> Self {
        let r#type = match queue.kind {
            QueueKind::Queue => "queue",
            QueueKind::Ram => "ram",
        };
        Self { r#type, rd, wr }
    }
}

/// Counts of the loader.
#[derive(Serialize, Debug)]
pub struct LoaderReport {
    opt_level: u8,
    epochs: u64,
    merged_epochs: u64,
    preloads: u64,
    hits: u64,
    misses: u64,
    evictions: u64,
    commands: BTreeMap<&'static str, u64>,
    stalls: BTreeMap<&'static str, StallReport>,
    full_syncs: u64,
    rd_ptr_reads: u64,
    settings_reused: u64,
    header_writes: u64,
    device_loops: u64,
    unrolled_loops: BTreeMap<&'static str, u64>,
    deepest_queue: usize,
    device_cycles: u64,
    host_cycles: u64,
}

#[derive(Serialize, Debug)]
struct StallReport {
    count: u64,
    cycles: u64,
}

impl LoaderReport {
    /// The report of a loader.
    pub fn new(opt_level: u8, stats: LoaderStats) -> Self {
        let stall = |Stalls { count, cycles }| StallReport { count, cycles };
        Self {
            opt_level,
            epochs: stats.epochs,
            merged_epochs: stats.merged_epochs,
            preloads: stats.preloads,
            hits: stats.hits,
            misses: stats.misses,
            evictions: stats.evictions,
            commands: stats.commands.into_iter().map(|(kind, count)| (kind.name(), count)).collect(),
            stalls: stats.stalls.into_iter().map(|(reason, stalls)| (reason.name(), stall(stalls))).collect(),
            full_syncs: stats.full_syncs,
            rd_ptr_reads: stats.rd_ptr_reads,
            settings_reused: stats.settings_reused,
            header_writes: stats.header_writes,
            device_loops: stats.device_loops,
            unrolled_loops: stats.unrolled_loops.into_iter().map(|(why, count)| (why.name(), count)).collect(),
            deepest_queue: stats.deepest_queue,
            device_cycles: stats.device_cycles,
            host_cycles: stats.host_cycles,
        }
    }
}

/// Operations that the form for people names of those with the same settings.
const NAMED: usize = 4;

impl NetlistReport {
    /// Settings that only cost time, with the operations that have them.
    fn costed(&self) -> BTreeMap<String, String> {
        let mut by_settings: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        for (operation, settings) in &self.only_costed {
            by_settings.entry(settings.join(", ")).or_default().push(operation);
        }
        let names = |operations: Vec<&str>| match operations.len().checked_sub(NAMED) {
            None | Some(0) => operations.join(", "),
            Some(more) => format!("{} and {more} more", operations[..NAMED].join(", ")),
        };
        by_settings.into_iter().map(|(settings, operations)| (settings, names(operations))).collect()
    }

    /// The form for people.
    pub fn text(&self, out: &mut dyn Write) -> std::io::Result<()> {
        writeln!(out, "{} ({}, {}): {} executes", self.netlist, self.arch, self.mode, self.executes)?;
        for CallReport { name, executes, epochs, operations, .. } in &self.programs {
            writeln!(out, "  {name}: {executes} executes, {epochs} epochs, {operations} operations")?;
        }
        for (name, QueueReport { r#type, rd, wr }) in &self.queues {
            writeln!(out, "  {type} {name}: rd {rd}, wr {wr}")?;
        }
        for (settings, operations) in self.costed() {
            writeln!(out, "only costed: {settings} of {operations}")?;
        }
        let LoaderReport { opt_level, preloads, hits, misses, evictions, device_cycles, .. } = &self.loader;
        writeln!(
            out,
            "loader, level {opt_level}: {preloads} preloads, {hits} hits, {misses} misses, {evictions} evictions, \
             {device_cycles} cycles"
        )?;
        for (reason, StallReport { count, cycles }) in &self.loader.stalls {
            writeln!(out, "  {count} x {reason}: {cycles} cycles")?;
        }
        for warning in &self.warnings {
            writeln!(out, "warning: {warning}")?;
        }
        for (queue, count) in &self.unpushed {
            writeln!(out, "warning: {count} entries for queue {queue} were not pushed: nobody made space for them")?;
        }
        for OutputFile { file, shape, .. } in self.outputs.values() {
            writeln!(out, "wrote {file} {}", crate::array::shape_text(shape))?;
        }
        writeln!(out, "{:.3} s", self.host_seconds)
    }
}
