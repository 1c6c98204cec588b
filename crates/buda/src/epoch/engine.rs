//! Executes the graphs of a program; those of one temporal epoch together.

use super::deadline::Deadline;
use super::error::EpochError;
use super::launch::Prepared;
use super::plan::Plan;
use crate::epoch::Arithmetic;
use crate::program::{Effect, Launch};
use crate::queue::shared::Guarded;
use crate::queue::{Monitor, Queues, Shared};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;
use tilework_netlist::types::{GraphId, Netlist};

/// How a read of unwritten RAM behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Uninitialised {
    /// It returns zeros, with a warning.
    #[default]
    Zeros,
    /// It is an error.
    Fault,
}

/// How epochs run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EngineOptions {
    /// How long the run thread waits for another thread. Default: without limit, since a deadlock
    /// is detected without a clock.
    pub timeout: Option<Duration>,
    /// When the run ends, whatever it does. Default: without limit.
    pub deadline: Option<Deadline>,
    /// How a read of an unwritten ram behaves.
    pub uninitialised: Uninitialised,
    /// The most operations of a run.
    pub operations: u64,
    /// The most bytes of results that wait for a consumer.
    pub result_bytes: u64,
}

impl Default for EngineOptions {
    /// A hundred million operations and 16 GiB of results.
    fn default() -> Self {
        let (uninitialised, operations, result_bytes) = (Uninitialised::default(), 100_000_000, 16 << 30);
        Self { timeout: None, deadline: None, uninitialised, operations, result_bytes }
    }
}

/// Something legal that may not be what was intended.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Error)]
#[allow(missing_docs)]
pub enum Warning {
    #[error("ram {queue} is read before it was written; it reads as zeros")]
    Uninitialised { queue: String },
    #[error("a pointer of queue {queue} was given beyond 2N - 1 and taken modulo 2N; wrap it with incwrap")]
    Wrapped { queue: String },
    #[error("the read pointer of queue {queue} was set past its write pointer")]
    PassesWrite { queue: String },
    #[error(
        "op {op}, input {input}: its integers exceed 2^24, beyond which this arithmetic rounds them; compare its \
         results with a tolerance, or use smaller values"
    )]
    Inexact { op: String, input: u32 },
}

/// The warnings, each once.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Warnings(BTreeSet<Warning>);

impl Warnings {
    /// Adds a warning; inexact sums of an operation are reported once, with the first input.
    pub fn add(&mut self, warning: Warning) {
        let known = |old: &Warning| match (old, &warning) {
            (Warning::Inexact { op, .. }, Warning::Inexact { op: new, .. }) => op == new,
            (old, new) => old == new,
        };
        if !self.0.iter().any(known) {
            self.0.insert(warning);
        }
    }

    /// All warnings, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Warning> {
        self.0.iter()
    }
}

/// Record of a temporal epoch that has run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EpochRecord {
    /// Its graphs, in the order of the program.
    pub launches: Vec<Launch>,
    /// Operations that were executed.
    pub operations: u64,
}

/// Runs epochs on shared queues.
pub struct Engine<'a, A: Arithmetic, M> {
    pub(super) netlist: Arc<Netlist>,
    pub(super) plan: Arc<Plan>,
    pub(super) shared: &'a Shared<A::Entry, M>,
    pub(super) arithmetic: &'a A,
    pub(super) options: EngineOptions,
    /// Graphs that wait for others of their temporal epoch, by group.
    pending: BTreeMap<usize, Vec<Prepared>>,
    /// Pointer changes to apply after the pending graphs that use the pointers.
    delayed: Vec<Effect>,
    warnings: Warnings,
    spent: u64,
    host: Option<Host<'a, A::Entry>>,
}

/// Acts as the host in a single-threaded session if the program cannot continue; returns whether it
/// changed anything.
pub type Host<'a, E> = &'a mut dyn FnMut(&mut Queues<E>) -> bool;

impl<A: Arithmetic, M> fmt::Debug for Engine<'_, A, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").field("pending", &self.pending.len()).finish_non_exhaustive()
    }
}

impl<'a, A: Arithmetic, M: Monitor<Guarded<A::Entry>>> Engine<'a, A, M> {
    /// An engine for one run of a program.
    pub fn new(
        netlist: Arc<Netlist>,
        plan: Arc<Plan>,
        shared: &'a Shared<A::Entry, M>,
        arithmetic: &'a A,
        options: EngineOptions,
        host: Option<Host<'a, A::Entry>>,
    ) -> Self {
        let (pending, delayed, warnings) = (BTreeMap::new(), Vec::new(), Warnings::default());
        Self { netlist, plan, shared, arithmetic, options, pending, delayed, warnings, spent: 0, host }
    }

    /// Lets the host push and pop in a single-threaded session.
    pub(super) fn host_helps(&mut self) -> bool {
        match &mut self.host {
            Some(host) => self.shared.with(|queues| host(queues)),
            None => false,
        }
    }

    /// Executes a graph, or holds it until the rest of its temporal epoch is executed. Returns the
    /// epoch that has run, if any.
    pub fn execute(&mut self, launch: Launch) -> Result<Option<EpochRecord>, EpochError> {
        let group = self.plan.group_of(launch.graph);
        if self.held(group).any(|held| held == launch.graph) {
            let (graph, missing) = (self.graph_name(launch.graph), self.missing(group));
            return Err(EpochError::TemporalTwice { graph, missing });
        }
        self.refuse_held_device(&launch)?;
        let prepared = self.prepare(launch)?;
        let pending = self.pending.entry(group).or_default();
        pending.push(prepared);
        if pending.len() < self.plan.group(group).len() {
            return Ok(None);
        }
        let prepared = self.pending.remove(&group).unwrap_or_default();
        let names: Vec<String> = prepared.iter().map(|prepared| self.graph_name(prepared.launch.graph)).collect();
        let running = self.nodes(&prepared, names.join("+"))?;
        let operations = self.fire_all(running)?;
        for effect in std::mem::take(&mut self.delayed) {
            self.effect(effect)?;
        }
        let launches = prepared.into_iter().map(|prepared| prepared.launch).collect();
        Ok(Some(EpochRecord { launches, operations }))
    }

    /// Checks at the end of the program that no graph is held.
    pub fn finish(&self) -> Result<(), EpochError> {
        match self.pending.iter().next() {
            None => Ok(()),
            Some((group, held)) => {
                let waiting = held.iter().map(|held| self.graph_name(held.launch.graph)).next().unwrap_or_default();
                Err(EpochError::TemporalIncomplete { waiting, missing: self.missing(*group) })
            }
        }
    }

    /// Applies a variable's change of a pointer; if a held graph uses the queue, after that
    /// graph has run.
    pub fn effect(&mut self, effect: Effect) -> Result<(), EpochError> {
        if self.pending.values().flatten().any(|pending| pending.queues.contains_key(&effect.queue)) {
            self.delayed.push(effect);
            return Ok(());
        }
        self.follow(effect.queue, effect.pointer, effect.value)
    }

    /// Warnings so far.
    pub fn warnings(&self) -> &Warnings {
        &self.warnings
    }

    /// Graphs of a temporal epoch that are held for the rest of it.
    fn held(&self, group: usize) -> impl Iterator<Item = GraphId> {
        self.pending.get(&group).into_iter().flatten().map(|pending| pending.launch.graph)
    }

    /// Refuses a graph on a device that has a held graph: a device runs one graph at a
    /// time, in order.
    fn refuse_held_device(&self, launch: &Launch) -> Result<(), EpochError> {
        let device = self.netlist.graph(launch.graph).target_device;
        let on_device = |held: &Prepared| self.netlist.graph(held.launch.graph).target_device == device;
        let held = self.pending.iter().find_map(|(group, held)| Some((*group, held.iter().find(|h| on_device(h))?)));
        match held {
            None => Ok(()),
            Some((group, held)) => Err(EpochError::TemporalDevice {
                graph: self.graph_name(launch.graph),
                device,
                waiting: self.graph_name(held.launch.graph),
                missing: self.missing(group),
            }),
        }
    }

    /// Names of the graphs that a held temporal epoch waits for.
    fn missing(&self, group: usize) -> String {
        let held: Vec<GraphId> = self.held(group).collect();
        let missing = self.plan.group(group).iter().filter(|graph| !held.contains(graph));
        missing.map(|graph| self.graph_name(*graph)).collect::<Vec<_>>().join(", ")
    }

    pub(super) fn warn(&mut self, warning: Warning) {
        self.warnings.add(warning);
    }

    /// How long the run thread waits for another one.
    pub(super) fn patience(&self) -> Option<Duration> {
        let EngineOptions { timeout, deadline, .. } = self.options;
        timeout.into_iter().chain(deadline.map(Deadline::left)).min()
    }

    /// Counts an operation.
    pub(super) fn spend(&mut self) -> Result<(), EpochError> {
        self.options.deadline.map_or(Ok(()), Deadline::check)?;
        self.spent += 1;
        match self.spent > self.options.operations {
            true => Err(EpochError::Budget(self.options.operations)),
            false => Ok(()),
        }
    }
}
