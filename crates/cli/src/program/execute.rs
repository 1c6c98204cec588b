//! A plan on a device: inputs written, launches run, outputs read. In the order of the steps, if
//! the program has some; otherwise inputs first, then all launches as one run, then outputs.

use super::launches::LaunchTable;
use super::lower::Placed;
use super::plan::Plan;
use super::schema::Use;
use super::steps::{PlannedStep, Step};
use super::storage;
use crate::array::Array;
use crate::chip::{AnyChip, Device};
use serde::Serialize;
use std::collections::BTreeMap;
use tilework_abi::addr::Cycle;
use tilework_driver::HostLink;
use tilework_runtime::tensor::TensorError;
use tilework_runtime::{Blocking, BufferRead, Event, OnQueue, Program, QueueId, RunReport, RuntimeError, Trace};

/// What is executed.
pub struct Work<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// Where its buffers are.
    pub placed: &'a Placed,
    /// The program of each launch.
    pub programs: &'a [Program],
    /// The arrays of its inputs.
    pub inputs: &'a BTreeMap<String, Array>,
}

/// What came of it.
pub struct Executed {
    /// Counts of the run; of its programs only without steps.
    pub report: RunReport,
    /// What became of each step.
    pub steps: Vec<StepReport>,
    /// What the steps have read, in their order.
    reads: Vec<Vec<u8>>,
}

/// A step of a run. The fields are those of the JSON form, in their order; cycles are those since
/// the first step, by the host's clock.
#[derive(Serialize, Clone, Debug)]
pub struct StepReport {
    /// write, launch, read, record, wait, synchronize, trace, replay or release.
    pub action: &'static str,
    /// The queue that it went into; absent for one that is the host's alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<u8>,
    /// The input that is written, the launch, the read, the event or the trace.
    pub name: String,
    /// The buffer that is written or read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub buffer: Option<String>,
    /// Programs in a trace that was captured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub programs: Option<usize>,
    /// Bytes of its commands in DRAM; 0 with slow dispatch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<usize>,
    /// How often a trace was replayed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub times: Option<u32>,
    /// When the host went on to the next step.
    pub returned: Cycle,
    /// When the host noticed the end of a read or an event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub noticed: Option<Cycle>,
}

impl Work<'_> {
    /// Writes the inputs, unless the program has steps for it.
    ///
    /// # Errors
    /// What the device says; no memory.
    pub fn upload(&self, device: &mut Device) -> Result<(), RuntimeError> {
        if !self.plan.steps.is_empty() {
            return Ok(());
        }
        for (i, buffer) in self.plan.buffers_for(Use::Input) {
            if let (Some(pages), Some(array)) = (&self.placed.buffers[i], self.inputs.get(&buffer.name)) {
                device.upload(pages, &storage::on_chip(buffer, array).map_err(TensorError::from)?)?;
            }
        }
        Ok(())
    }

    /// Runs the launches, or does the steps and waits for what they have put into the queue.
    ///
    /// # Errors
    /// What the device says, and the step at which it did; no memory.
    pub fn execute(&self, device: &mut Device) -> Result<Executed, Stopped<'_>> {
        if self.plan.steps.is_empty() {
            return Ok(Executed { report: device.run(self.programs)?, steps: Vec::new(), reads: Vec::new() });
        }
        let (before, start) = (device.statistics(), device.chip().cycles());
        let mut marks = Marks::default();
        let mut steps = Vec::with_capacity(self.plan.steps.len());
        for planned in &self.plan.steps {
            let PlannedStep { step, queue, .. } = planned;
            self.step(device, planned, &mut marks).map_err(|error| Stopped { error, at: Some(planned) })?;
            let trace = match step {
                Step::Trace { name, .. } => marks.traces.get(name),
                _ => None,
            };
            steps.push(StepReport {
                action: step.action(),
                queue: queue.map(QueueId::number),
                name: step.name(&self.plan.buffers).to_owned(),
                buffer: step.buffer().map(|buffer| self.plan.buffers[buffer].name.clone()),
                programs: trace.map(Trace::programs),
                bytes: trace.map(Trace::bytes),
                times: step.times(),
                returned: device.chip().cycles().saturating_sub(start),
                noticed: None,
            });
        }
        device.finish()?;
        for (planned, report) in self.plan.steps.iter().zip(&mut steps) {
            let event = planned.step.mark().and_then(|mark| marks.events.get(mark));
            let noticed = event.and_then(Event::poll).transpose()?;
            report.noticed = noticed.map(|cycle| cycle.saturating_sub(start));
        }
        let mut reads = Vec::with_capacity(marks.reads.len());
        for read in marks.reads {
            reads.push(match read {
                Some(read) => device.wait_for_read(read)?,
                None => Vec::new(),
            });
        }
        let statistics = device.statistics().since(&before);
        let cycles = statistics.time;
        Ok(Executed { report: RunReport { cycles, programs: Vec::new(), statistics }, steps, reads })
    }

    fn step(&self, device: &mut Device, planned: &PlannedStep, marks: &mut Marks) -> Result<(), RuntimeError> {
        let (buffers, placed) = (&self.plan.buffers, &self.placed.buffers);
        let mut queue = device.on_queue(planned.queue.unwrap_or_default())?;
        match &planned.step {
            Step::Write { buffer, from, blocking } => {
                if let (Some(pages), Some(array)) = (&placed[*buffer], self.inputs.get(&buffers[*from].name)) {
                    let data = storage::on_chip(&buffers[*buffer], array).map_err(TensorError::from)?;
                    queue.enqueue_write_buffer(pages, &data, *blocking)?;
                }
            }
            Step::Launch { launches, blocking, .. } => {
                for program in &self.programs[launches.clone()] {
                    queue.enqueue_program(program, *blocking)?;
                }
            }
            Step::Read { buffer, name, blocking } => {
                // An empty buffer is read at once.
                let read = match &placed[*buffer] {
                    Some(pages) => Some(queue.enqueue_read_buffer(pages, *blocking)?),
                    None => None,
                };
                let event = match &read {
                    Some(read) => read.event().clone(),
                    None => queue.record_event()?,
                };
                marks.events.insert(name.clone(), event);
                marks.reads.push(read);
            }
            Step::Record { event } => {
                marks.events.insert(event.clone(), queue.record_event()?);
            }
            Step::Wait { on } => {
                if let Some(event) = marks.events.get(on) {
                    queue.wait_for_event(event)?;
                }
            }
            Step::Synchronize { on } => {
                if let Some(event) = marks.events.get(on) {
                    queue.with(|device| device.event_synchronize(event))?;
                }
            }
            Step::Trace { name, launches } => {
                let trace = self.capture(&mut queue, launches)?;
                marks.traces.insert(name.clone(), trace);
            }
            Step::Replay { trace, times, blocking } => {
                let Some(trace) = marks.traces.get(trace) else { return Ok(()) };
                for _ in 1..*times {
                    queue.replay_trace(trace, Blocking::No)?;
                }
                queue.replay_trace(trace, *blocking)?;
            }
            Step::Release { trace } => {
                let Some(trace) = marks.traces.remove(trace) else { return Ok(()) };
                queue.with(|device| device.release_trace(trace))?;
            }
        }
        Ok(())
    }

    /// A trace of the launches of these tables.
    fn capture(&self, queue: &mut OnQueue<'_, AnyChip>, launches: &[LaunchTable]) -> Result<Trace, RuntimeError> {
        let capture = queue.begin_trace_capture()?;
        for program in launches.iter().flat_map(|(_, launches)| &self.programs[launches.clone()]) {
            queue.enqueue_program(program, Blocking::No)?;
        }
        queue.with(|device| device.end_trace_capture(capture))
    }

    /// The arrays that the run gives, by name.
    ///
    /// # Errors
    /// What the device says; no memory.
    pub fn outputs(
        &self,
        device: &mut Device,
        reads: impl IntoIterator<Item = Vec<u8>>,
    ) -> Result<Vec<(String, Array)>, RuntimeError> {
        let mut reads = reads.into_iter();
        let mut arrays = Vec::new();
        for (name, i) in self.plan.outputs() {
            let data = match (reads.next(), &self.placed.buffers[i]) {
                (Some(read), _) => read,
                (None, Some(pages)) => device.download(pages)?,
                (None, None) => Vec::new(),
            };
            let array = storage::array(&self.plan.buffers[i], data).map_err(TensorError::from)?;
            arrays.push((name.to_owned(), array));
        }
        Ok(arrays)
    }
}

impl Executed {
    /// What the steps have read, to be made arrays.
    pub fn take_reads(&mut self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.reads)
    }
}

/// Why a run ended early.
pub struct Stopped<'a> {
    /// What the device said.
    pub error: RuntimeError,
    /// The step whose call it answered.
    pub at: Option<&'a PlannedStep>,
}

impl From<RuntimeError> for Stopped<'_> {
    fn from(error: RuntimeError) -> Self {
        Self { error, at: None }
    }
}

/// What steps have begun and others can use.
#[derive(Default)]
struct Marks {
    events: BTreeMap<String, Event>,
    traces: BTreeMap<String, Trace>,
    /// Absent for an empty buffer.
    reads: Vec<Option<BufferRead>>,
}
