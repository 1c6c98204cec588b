//! Prepares an epoch: from the settings of an `execute` to nodes that can run.
//!
//! Global pointers are set when the program executes the graph; operations begin when all graphs of
//! the temporal epoch have been executed.

use super::engine::{Engine, Warning};
use super::error::EpochError;
use super::fire::{Pops, Running};
use super::node::{Feed, Node, QueueReader, QueueWriter};
use super::plan;
use crate::epoch::Arithmetic;
use crate::program::{Launch, Pointer, ResolvedSettings};
use crate::queue::error::QueueProblem;
use crate::queue::shared::{Guarded, Role};
use crate::queue::{Monitor, QueueError, Queues, Wait, WaitKind, WaitOutcome};
use std::collections::{BTreeMap, VecDeque};
use tilework_netlist::types::{GraphId, OpId, QueueId, QueueKind, Source};

/// A graph whose pointers have been set.
#[derive(Debug)]
pub(super) struct Prepared {
    pub launch: Launch,
    /// Settings of all queues that the graph reads or writes.
    pub queues: BTreeMap<QueueId, Setting>,
}

/// Settings of a queue, and the pointer where reading begins.
#[derive(Debug, Clone, Copy)]
pub(super) struct Setting {
    pub settings: ResolvedSettings,
    pub base: u32,
}

impl<A: Arithmetic, M: Monitor<Guarded<A::Entry>>> Engine<'_, A, M> {
    /// Sets the pointers of a graph's queues.
    pub(super) fn prepare(&mut self, launch: Launch) -> Result<Prepared, EpochError> {
        let epoch = self.graph_name(launch.graph);
        let mut queues = self.defaults(&launch);
        for settings in &launch.settings {
            let Some(setting) = queues.get_mut(&settings.queue) else {
                let why = "the graph neither reads nor writes it";
                return Err(self.settings_error(&epoch, settings.queue, why));
            };
            setting.settings = *settings;
        }
        for (queue, setting) in &mut queues {
            if setting.settings.zero && !setting.settings.prologue {
                let queue = self.netlist.queue(*queue).name.clone();
                return Err(EpochError::ZeroWithoutPrologue { epoch, queue });
            }
            setting.base = self.set_pointers(&epoch, &setting.settings)?;
        }
        Ok(Prepared { launch, queues })
    }

    fn defaults(&self, launch: &Launch) -> BTreeMap<QueueId, Setting> {
        let ops = &self.netlist.graph(launch.graph).ops;
        let read = ops.iter().flat_map(|op| &op.inputs).filter_map(|input| match input.source {
            Source::Queue(queue) => Some(queue),
            Source::Op(_) => None,
        });
        let written = (0..ops.len()).flat_map(|op| self.plan.outputs(OpId { graph: launch.graph, op }).iter().copied());
        let default = |queue| ResolvedSettings::default_of(&self.netlist, queue, launch.at);
        read.chain(written).map(|queue| (queue, Setting { settings: default(queue), base: 0 })).collect()
    }

    fn settings_error(&self, epoch: &str, queue: QueueId, why: &'static str) -> EpochError {
        EpochError::Settings { epoch: epoch.to_string(), queue: self.netlist.queue(queue).name.clone(), why }
    }

    /// Sets the global pointers of a queue; returns the pointer where reading begins.
    fn set_pointers(&mut self, epoch: &str, settings: &ResolvedSettings) -> Result<u32, EpochError> {
        let queue = settings.queue;
        if let Some(value) = settings.wr_ptr_global.filter(|_| !settings.read_only) {
            self.set_write(epoch, queue, value)?;
        }
        match self.netlist.queue(queue).kind {
            QueueKind::Ram => {
                if let Some(value) = settings.rd_ptr_global {
                    self.set_ram_read(epoch, queue, value)?;
                }
                let rd = self.shared.with(|queues| queues.pointers(queue).rd());
                Ok(rd)
            }
            QueueKind::Queue => {
                if let Some(value) = settings.rd_ptr_global {
                    self.set_read(epoch, queue, value)?;
                }
                match settings.rd_ptr_local {
                    Some(value) => self.pointer(epoch, queue, value),
                    None => Ok(self.shared.with(|queues| queues.pointers(queue).rd())),
                }
            }
        }
    }

    /// Sets a pointer to a variable's new value. A ram's pointer may leave the ram, as after the
    /// last iteration of a loop; only its use is an error.
    pub(super) fn follow(&mut self, queue: QueueId, pointer: Pointer, value: i64) -> Result<(), EpochError> {
        const WHERE: &str = "(variable)";
        if (pointer, self.netlist.queue(queue).kind) == (Pointer::Read, QueueKind::Queue) {
            return self.set_read(WHERE, queue, value);
        }
        let value = self.pointer(WHERE, queue, value)?;
        self.shared.with(|queues| match pointer {
            Pointer::Read => queues.set_rd(queue, value),
            Pointer::Write => queues.set_wr(queue, value),
        });
        Ok(())
    }

    /// Sets a global write pointer.
    fn set_write(&mut self, epoch: &str, queue: QueueId, value: i64) -> Result<(), EpochError> {
        let pointer = match self.netlist.queue(queue).kind {
            QueueKind::Ram => self.ram_entry(epoch, queue, value)?,
            QueueKind::Queue => self.pointer(epoch, queue, value)?,
        };
        self.shared.with(|queues| queues.set_wr(queue, pointer));
        Ok(())
    }

    /// Sets the global read pointer of a ram.
    fn set_ram_read(&mut self, epoch: &str, queue: QueueId, value: i64) -> Result<(), EpochError> {
        let at = self.ram_entry(epoch, queue, value)?;
        self.shared.with(|queues| queues.set_rd(queue, at));
        Ok(())
    }

    /// Sets the global read pointer of a queue, which pops entries. If entries have not been pushed
    /// yet, it waits for them; it is a warning if they will never be pushed.
    fn set_read(&mut self, epoch: &str, queue: QueueId, value: i64) -> Result<(), EpochError> {
        let pointer = self.pointer(epoch, queue, value)?;
        let name = self.netlist.queue(queue).name.clone();
        loop {
            let outcome = self.shared.wait(Role::Run, self.patience(), |queues| {
                let now = queues.pointers(queue);
                let passes = now.distance(pointer, now.wr()) > now.entries();
                if passes && now.occupancy() <= now.entries() {
                    let kind = WaitKind::Written { pointer };
                    let (entries, rd, wr) = (now.entries(), now.rd(), now.wr());
                    let on_behalf = Some(format!("epoch {epoch}"));
                    return Err(Wait { role: Role::Run, queue, name: name.clone(), kind, entries, rd, wr, on_behalf });
                }
                queues.set_rd(queue, pointer);
                Ok(())
            });
            match outcome {
                WaitOutcome::Done(()) => return Ok(()),
                WaitOutcome::Stuck(_) if self.host_helps() => {}
                WaitOutcome::Stuck(_) => {
                    self.warn(Warning::PassesWrite { queue: name });
                    self.shared.with(|queues| queues.set_rd(queue, pointer));
                    return Ok(());
                }
                WaitOutcome::TimedOut(wait) => return Err(EpochError::TimedOut(wait)),
                WaitOutcome::GivenUp => return Err(EpochError::GivenUp),
            }
        }
    }

    /// Converts a program's number to a pointer.
    fn pointer(&mut self, epoch: &str, queue: QueueId, value: i64) -> Result<u32, EpochError> {
        let pointers = self.shared.with(|queues| queues.pointers(queue));
        let (pointer, wrapped) =
            pointers.pointer(value).map_err(|error| self.queue_error(epoch, queue, error.into()))?;
        if wrapped {
            self.warn(Warning::Wrapped { queue: self.netlist.queue(queue).name.clone() });
        }
        Ok(pointer)
    }

    /// Converts a program's number to an entry of a ram.
    fn ram_entry(&self, epoch: &str, queue: QueueId, value: i64) -> Result<u32, EpochError> {
        let entries = self.netlist.queue(queue).entries;
        let at = u32::try_from(value).ok().filter(|at| *at < entries);
        at.ok_or_else(|| self.queue_error(epoch, queue, QueueProblem::OutOfRange { entries, at: value }))
    }

    pub(super) fn queue_error(&self, epoch: &str, queue: QueueId, problem: QueueProblem) -> EpochError {
        EpochError::Queue { epoch: epoch.to_string(), error: Box::new(problem.of(&self.netlist, queue)) }
    }

    pub(super) fn graph_name(&self, graph: GraphId) -> String {
        self.netlist.graph(graph).name.clone()
    }

    /// The nodes of a temporal epoch.
    pub(super) fn nodes(&self, prepared: &[Prepared], epoch: String) -> Result<Running<A::Entry>, EpochError> {
        let graphs: Vec<GraphId> = prepared.iter().map(|prepared| prepared.launch.graph).collect();
        let order = plan::order(&self.netlist, &graphs);
        let index: BTreeMap<OpId, usize> = order.iter().enumerate().map(|(i, op)| (*op, i)).collect();
        let mut nodes: Vec<Node<A::Entry>> = order
            .iter()
            .map(|op| {
                let prepared = prepared.iter().find(|prepared| prepared.launch.graph == op.graph);
                self.node(*op, prepared.expect("the order is of these graphs"), &index)
            })
            .collect();
        for consumer in 0..nodes.len() {
            let producers: Vec<usize> = nodes[consumer].operands.iter().filter_map(Feed::node).collect();
            producers.into_iter().for_each(|producer| nodes[producer].consumers.push(consumer));
        }
        let pops = Pops::new(&nodes, prepared);
        let turns = turns(&self.netlist, &nodes);
        let mut running = Running { epoch, nodes, pops, turns, held: 0 };
        self.shared
            .with(|queues| begin(queues, &mut running.nodes))
            .map_err(|error| EpochError::Queue { epoch: running.epoch.clone(), error: Box::new(error) })?;
        self.zero(prepared, &running)?;
        Ok(running)
    }

    fn node(&self, op: OpId, prepared: &Prepared, index: &BTreeMap<OpId, usize>) -> Node<A::Entry> {
        let is = self.netlist.op(op);
        let operands = is.inputs.iter().map(|input| match input.source {
            Source::Op(producer) => Feed::Node(index[&producer]),
            Source::Queue(queue) => {
                let Setting { settings, base } = &prepared.queues[&queue];
                Feed::Queue(QueueReader::new(settings, self.netlist.queue(queue).kind, *base))
            }
        });
        let outputs = self.plan.outputs(op).iter().map(|&queue| {
            let settings = &prepared.queues[&queue].settings;
            QueueWriter {
                queue,
                kind: self.netlist.queue(queue).kind,
                epilogue: settings.epilogue,
                stride: if settings.read_only { 0 } else { settings.global_wrptr_autoinc },
                zero: settings.zero,
                last: None,
            }
        });
        Node {
            op,
            count: self.netlist.graph(op.graph).input_count,
            done: 0,
            operands: operands.collect(),
            outputs: outputs.collect(),
            gradient: is.gradient_op,
            results: VecDeque::new(),
            first: 0,
            consumers: Vec::new(),
        }
    }

    /// `zero`: clears the entry of a ram, unless the first gradient overwrites it anyway.
    fn zero(&self, prepared: &[Prepared], running: &Running<A::Entry>) -> Result<(), EpochError> {
        let gradients: Vec<QueueId> = running
            .nodes
            .iter()
            .filter(|node| node.gradient)
            .flat_map(|node| node.outputs.iter().map(|output| output.queue))
            .collect();
        for (queue, setting) in prepared.iter().flat_map(|prepared| &prepared.queues) {
            let is_ram = self.netlist.queue(*queue).kind == QueueKind::Ram;
            if !is_ram || !setting.settings.zero || gradients.contains(queue) {
                continue;
            }
            let zeros = self.arithmetic.zeros(&self.netlist, *queue).map_err(|error| EpochError::Arithmetic {
                epoch: running.epoch.clone(),
                op: format!("zero of {}", self.netlist.queue(*queue).name),
                input: 0,
                error: Box::new(error),
            })?;
            let written = self.shared.with(|queues| queues.ram_write(*queue, queues.pointers(*queue).wr(), zeros));
            written.map_err(|error| EpochError::Queue { epoch: running.epoch.clone(), error: Box::new(error) })?;
        }
        Ok(())
    }
}

/// Keeps the contents of rams before the first operation for operands that are read once.
fn begin<E: crate::queue::Entry>(queues: &Queues<E>, nodes: &mut [Node<E>]) -> Result<(), QueueError> {
    for operand in nodes.iter_mut().flat_map(|node| &mut node.operands) {
        if let Feed::Queue(reader) = operand
            && reader.holds
            && reader.kind == QueueKind::Ram
        {
            reader.take(queues, 0)?;
        }
    }
    Ok(())
}

/// Operations that take turns: for each ram memory that one operation writes and others use, all of
/// them in order.
fn turns<E>(netlist: &tilework_netlist::types::Netlist, nodes: &[Node<E>]) -> Vec<Vec<usize>> {
    let memory = |queue: QueueId| netlist.queue(queue).alias.unwrap_or(queue);
    let mut users: BTreeMap<QueueId, (bool, Vec<usize>)> = BTreeMap::new();
    for (i, node) in nodes.iter().enumerate() {
        let reads = node.operands.iter().filter_map(|operand| match operand {
            Feed::Queue(reader) if reader.kind == QueueKind::Ram && !reader.holds => Some((reader.queue, false)),
            _ => None,
        });
        let writes = node.outputs.iter().filter(|output| output.kind == QueueKind::Ram && !output.epilogue);
        for (queue, writes) in reads.chain(writes.map(|output| (output.queue, true))) {
            let (written, nodes) = users.entry(memory(queue)).or_default();
            *written |= writes;
            if nodes.last() != Some(&i) {
                nodes.push(i);
            }
        }
    }
    users.into_values().filter(|(written, nodes)| *written && nodes.len() > 1).map(|(_, nodes)| nodes).collect()
}

impl<E> Feed<E> {
    /// The node that produces it.
    pub(super) fn node(&self) -> Option<usize> {
        match self {
            Feed::Node(node) => Some(*node),
            Feed::Queue(_) => None,
        }
    }
}
