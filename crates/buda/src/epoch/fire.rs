//! Runs the operations of an epoch until all inputs are processed.

use super::engine::{Engine, Uninitialised, Warning};
use super::error::EpochError;
use super::launch::Prepared;
use super::node::{Feed, Node, QueueWriter, Taken};
use crate::epoch::Arithmetic;
use crate::queue::error::QueueProblem;
use crate::queue::shared::{Guarded, Role};
use crate::queue::{Entry, Monitor, QueueError, Queues, Wait, WaitKind, WaitOutcome};
use std::collections::BTreeMap;
use tilework_netlist::types::{Netlist, QueueId, QueueKind};

/// A running epoch.
#[derive(Debug)]
pub(super) struct Running<E> {
    pub epoch: String,
    pub nodes: Vec<Node<E>>,
    pub pops: Vec<Pops>,
    pub turns: Vec<Vec<usize>>,
    /// Bytes of results that wait for a consumer.
    pub held: u64,
}

/// A queue that the device pops (`global_rdptr_autoinc`): by this many entries after all readers
/// have processed an input.
#[derive(Debug)]
pub(super) struct Pops {
    queue: QueueId,
    stride: u32,
    readers: Vec<usize>,
    popped: u32,
}

/// An operation to execute, with its operands.
struct Job<E> {
    node: usize,
    inputs: Vec<Taken<E>>,
    previous: Option<Taken<E>>,
}

/// The next operation, `None` if all are done, or the reason why none can run.
type Found<E> = Result<Option<Job<E>>, EpochError>;

/// Why an operation is not ready.
enum Blocked {
    /// It waits for a queue.
    Queue(QueueId, WaitKind),
    /// It waits for another operation of the epoch.
    Node,
}

impl Pops {
    pub(crate) fn new<E>(nodes: &[Node<E>], prepared: &[Prepared]) -> Vec<Self> {
        let mut pops: BTreeMap<QueueId, Pops> = BTreeMap::new();
        for (i, node) in nodes.iter().enumerate() {
            for operand in &node.operands {
                let Feed::Queue(reader) = operand else { continue };
                let graph = prepared.iter().find(|prepared| prepared.launch.graph == node.op.graph);
                let stride = graph.and_then(|graph| graph.queues.get(&reader.queue));
                let stride = stride.map_or(0, |setting| setting.settings.global_rdptr_autoinc);
                if reader.kind == QueueKind::Ram || reader.holds || stride <= 0 {
                    continue;
                }
                let stride = u32::try_from(stride).unwrap_or(u32::MAX);
                let new = Pops { queue: reader.queue, stride, readers: Vec::new(), popped: 0 };
                pops.entry(reader.queue).or_insert(new).readers.push(i);
            }
        }
        pops.into_values().collect()
    }
}

impl<A: Arithmetic, M: Monitor<Guarded<A::Entry>>> Engine<'_, A, M> {
    /// Runs an epoch to its end.
    pub(super) fn fire_all(&mut self, mut running: Running<A::Entry>) -> Result<u64, EpochError> {
        let mut fired = 0;
        while let Some(job) = self.next_job(&mut running)? {
            self.spend()?;
            fired += 1;
            let node = &running.nodes[job.node];
            let (op, input) = (node.op, node.done);
            let inputs =
                job.inputs.into_iter().map(|taken| self.entry(&running, taken)).collect::<Result<Vec<_>, _>>()?;
            let previous = job.previous.map(|taken| self.entry(&running, taken)).transpose()?;
            let (result, notes) =
                self.arithmetic.execute(&self.netlist, op, &inputs, previous.as_ref()).map_err(|error| {
                    let op = self.netlist.op(op).name.clone();
                    EpochError::Arithmetic { epoch: running.epoch.clone(), op, input, error: Box::new(error) }
                })?;
            if notes.inexact {
                let op = self.netlist.op(op).name.clone();
                self.warn(Warning::Inexact { op, input });
            }
            self.deposit(&mut running, job.node, result)?;
        }
        self.epilogue(&mut running)?;
        Ok(fired)
    }

    /// Returns the next ready operation with its operands; `None` if all are done. Waits if
    /// none is ready.
    fn next_job(&mut self, running: &mut Running<A::Entry>) -> Result<Option<Job<A::Entry>>, EpochError> {
        loop {
            let netlist = &self.netlist;
            let outcome = self.shared.wait(Role::Run, self.patience(), |queues| running.find(netlist, queues));
            match outcome {
                WaitOutcome::Done(found) => return found,
                WaitOutcome::Stuck(_) if self.host_helps() => {}
                WaitOutcome::Stuck(stuck) => return Err(EpochError::Stuck(stuck)),
                WaitOutcome::TimedOut(wait) => return Err(EpochError::TimedOut(wait)),
                WaitOutcome::GivenUp => return Err(EpochError::GivenUp),
            }
        }
    }

    /// Returns the entry that was read, or what a read of unwritten RAM gives.
    fn entry(&mut self, running: &Running<A::Entry>, taken: Taken<A::Entry>) -> Result<A::Entry, EpochError> {
        let (queue, at) = match taken {
            Taken::Entry(entry) => return Ok(entry),
            Taken::Unwritten(queue, at) => (queue, at),
        };
        if self.options.uninitialised == Uninitialised::Fault {
            return Err(self.queue_error(&running.epoch, queue, QueueProblem::Uninitialised { at }));
        }
        self.warn(Warning::Uninitialised { queue: self.netlist.queue(queue).name.clone() });
        self.arithmetic.zeros(&self.netlist, queue).map_err(|error| EpochError::Arithmetic {
            epoch: running.epoch.clone(),
            op: format!("read of {}", self.netlist.queue(queue).name),
            input: at,
            error: Box::new(error),
        })
    }

    /// Writes a result and frees its operands.
    fn deposit(&mut self, running: &mut Running<A::Entry>, node: usize, result: A::Entry) -> Result<(), EpochError> {
        let mut writes = Vec::new();
        let now = &mut running.nodes[node];
        for output in &mut now.outputs {
            output.zero = false;
            if output.epilogue {
                output.last = Some(result.clone());
            } else {
                writes.push((output.queue, output.kind, output.stride));
            }
        }
        if !now.consumers.is_empty() {
            running.held += result.bytes();
            now.results.push_back(result.clone());
        }
        now.done += 1;
        running.free(node);
        if running.held > self.options.result_bytes {
            let most = self.options.result_bytes;
            return Err(EpochError::ResultMemory { epoch: running.epoch.clone(), most });
        }
        for (queue, kind, stride) in writes {
            self.write(&running.epoch, queue, kind, stride, &result)?;
        }
        let epoch = &running.epoch;
        for pops in running.pops.iter_mut().filter(|pops| pops.readers.contains(&node)) {
            let done = pops.readers.iter().map(|reader| running.nodes[*reader].done).min().unwrap_or(0);
            while pops.popped < done {
                let popped = self.shared.with(|queues| queues.pop(pops.queue, pops.stride));
                popped.map_err(|error| EpochError::Queue { epoch: epoch.clone(), error: Box::new(error) })?;
                pops.popped += 1;
            }
        }
        Ok(())
    }

    fn write(
        &self,
        epoch: &str,
        queue: QueueId,
        kind: QueueKind,
        stride: i64,
        result: &A::Entry,
    ) -> Result<(), EpochError> {
        let stored = self.arithmetic.stored(&self.netlist, queue, result).map_err(|error| EpochError::Arithmetic {
            epoch: epoch.to_string(),
            op: format!("write of {}", self.netlist.queue(queue).name),
            input: 0,
            error: Box::new(error),
        })?;
        let written = self.shared.with(|queues| match kind {
            QueueKind::Queue => queues.push(queue, stored),
            QueueKind::Ram => {
                let pointers = queues.pointers(queue);
                queues.ram_write(queue, pointers.wr(), stored)?;
                let next = (i128::from(pointers.wr()) + i128::from(stride)).rem_euclid(pointers.entries().into());
                queues.set_wr(queue, u32::try_from(next).expect("a remainder of a u32"));
                Ok(())
            }
        });
        written.map_err(|error| EpochError::Queue { epoch: epoch.to_string(), error: Box::new(error) })
    }

    /// After the last input: writes what is written once and moves the read pointers of rams.
    fn epilogue(&mut self, running: &mut Running<A::Entry>) -> Result<(), EpochError> {
        for node in 0..running.nodes.len() {
            let drains: Vec<_> = running.nodes[node]
                .outputs
                .iter_mut()
                .filter_map(|QueueWriter { queue, kind, stride, last, .. }| {
                    last.take().map(|last| (*queue, *kind, *stride, last))
                })
                .collect();
            for (queue, kind, stride, last) in drains {
                self.write(&running.epoch, queue, kind, stride, &last)?;
            }
            for operand in &running.nodes[node].operands {
                if let Feed::Queue(reader) = operand
                    && reader.kind == QueueKind::Ram
                    && reader.stride != 0
                {
                    let count = running.nodes[node].count;
                    self.shared.with(|queues| queues.set_rd(reader.queue, reader.place(queues, count)));
                }
            }
        }
        Ok(())
    }
}

impl<E: Entry> Running<E> {
    /// Drops results that every consumer has taken.
    fn free(&mut self, consumer: usize) {
        let producers: Vec<usize> = self.nodes[consumer].operands.iter().filter_map(Feed::node).collect();
        for producer in producers {
            let taken = self.nodes[producer].consumers.iter().map(|c| self.nodes[*c].done).min().unwrap_or(0);
            let producer = &mut self.nodes[producer];
            while producer.first < taken
                && let Some(result) = producer.results.pop_front()
            {
                self.held -= result.bytes();
                producer.first += 1;
            }
        }
    }

    /// Returns the operation to execute next, or what the foremost one waits for.
    fn find(&mut self, netlist: &Netlist, queues: &Queues<E>) -> Result<Found<E>, Wait> {
        let mut order: Vec<usize> = (0..self.nodes.len()).filter(|node| !self.nodes[*node].is_done()).collect();
        order.sort_by_key(|node| (self.nodes[*node].done, *node));
        let mut first = None;
        for &node in &order {
            match self.try_fire(queues, node) {
                Ok(Ok(job)) => return Ok(Ok(Some(job))),
                Ok(Err(Blocked::Queue(queue, kind))) if first.is_none() => first = Some((node, queue, kind)),
                Ok(Err(_)) => {}
                Err(error) => return Ok(Err(EpochError::Queue { epoch: self.epoch.clone(), error: Box::new(error) })),
            }
        }
        if order.is_empty() {
            return Ok(Ok(None));
        }
        let Some((node, queue, kind)) = first else {
            let names: Vec<&str> = order.iter().map(|node| netlist.op(self.nodes[*node].op).name.as_str()).collect();
            return Ok(Err(EpochError::Circle { epoch: self.epoch.clone(), ops: names.join(", ") }));
        };
        let (pointers, node) = (queues.pointers(queue), &self.nodes[node]);
        let op = &netlist.op(node.op).name;
        let on_behalf = format!("epoch {}, op {op}, input {} of {}", self.epoch, node.done + 1, node.count);
        Err(Wait {
            role: Role::Run,
            queue,
            name: netlist.queue(queue).name.clone(),
            kind,
            entries: pointers.entries(),
            rd: pointers.rd(),
            wr: pointers.wr(),
            on_behalf: Some(on_behalf),
        })
    }

    fn try_fire(&mut self, queues: &Queues<E>, index: usize) -> Result<Result<Job<E>, Blocked>, QueueError> {
        let input = self.nodes[index].done;
        if !self.has_turn(index) {
            return Ok(Err(Blocked::Node));
        }
        let mut inputs = Vec::with_capacity(self.nodes[index].operands.len());
        for operand in 0..self.nodes[index].operands.len() {
            let taken = match &mut self.nodes[index].operands[operand] {
                Feed::Node(producer) => {
                    let producer = *producer;
                    match self.nodes[producer].result(input) {
                        Some(result) => Taken::Entry(result.clone()),
                        None => return Ok(Err(Blocked::Node)),
                    }
                }
                Feed::Queue(reader) => match reader.take(queues, input)? {
                    Some(taken) => taken,
                    None => {
                        let pointer = reader.place(queues, input);
                        return Ok(Err(Blocked::Queue(reader.queue, WaitKind::Entry { pointer })));
                    }
                },
            };
            inputs.push(taken);
        }
        let full = |output: &&QueueWriter<E>| {
            output.kind == QueueKind::Queue && !output.epilogue && !queues.has_space(output.queue)
        };
        if let Some(output) = self.nodes[index].outputs.iter().find(full) {
            return Ok(Err(Blocked::Queue(output.queue, WaitKind::Space)));
        }
        let previous = previous(&self.nodes[index], queues)?;
        Ok(Ok(Job { node: index, inputs, previous }))
    }

    /// Whether it is the operation's turn on the rams that it shares.
    fn has_turn(&self, index: usize) -> bool {
        let input = self.nodes[index].done;
        self.turns.iter().filter(|turn| turn.contains(&index)).all(|turn| {
            turn.iter().filter(|other| **other != index).all(|&other| {
                let node = &self.nodes[other];
                node.is_done() || if other < index { node.done > input } else { node.done >= input }
            })
        })
    }
}

/// Returns the value that a gradient is added to.
fn previous<E: Entry>(node: &Node<E>, queues: &Queues<E>) -> Result<Option<Taken<E>>, QueueError> {
    let ram = node.outputs.iter().find(|output| output.kind == QueueKind::Ram);
    let Some(output) = ram.filter(|output| node.gradient && !output.zero) else { return Ok(None) };
    if let Some(last) = &output.last {
        return Ok(Some(Taken::Entry(last.clone())));
    }
    let at = queues.pointers(output.queue).wr();
    Ok(Some(match queues.ram_read(output.queue, at)? {
        Some(entry) => Taken::Entry(entry),
        None => Taken::Unwritten(output.queue, at),
    }))
}
