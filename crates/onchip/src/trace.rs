//! Traces of a run: programs that were carried out between the operations that begin and end a
//! trace, captured as one of the device, which replays it by one small record.

use std::collections::{BTreeMap, HashMap, HashSet};

use tilework_driver::HostLink;
use tilework_engine::{Held, OperationPlace};
use tilework_ops::{self as ops, Tensor as Array};
use tilework_runtime::tensor::Tensor;
use tilework_runtime::{Blocking, Program, RuntimeError, Trace};

use crate::machine::{OnChip, Stopped};
use crate::placed::{Place, Placed};
use crate::record::{Carried, Record, Stage};

/// What became of the traces of a machine.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TraceCounts {
    /// Traces that were captured.
    pub captured: u64,
    /// Replays of them.
    pub replays: u64,
    /// Why others were not captured: their programs run one by one each time.
    pub not_captured: Vec<String>,
}

/// A trace that is recorded.
#[derive(Default)]
pub(crate) struct Recording {
    programs: Vec<Program>,
    /// All tensors of its programs, so that their memory stays theirs.
    held: HashMap<usize, Placed>,
    /// Those that they make.
    made: HashSet<usize>,
    /// Why it cannot be replayed.
    broken: Option<String>,
}

/// One that can be replayed.
pub(crate) struct Captured {
    trace: Trace,
    cores: usize,
    held: HashMap<usize, Placed>,
    made: HashSet<usize>,
}

/// The traces of a machine.
#[derive(Default)]
pub(crate) struct Traces {
    next: u64,
    recording: Option<Recording>,
    live: BTreeMap<u64, Captured>,
    pub(crate) counts: TraceCounts,
}

impl Traces {
    /// Notes programs that run while a trace is recorded, and their tensors.
    pub(crate) fn ran<'p>(
        &mut self,
        programs: Vec<Program>,
        tensors: impl Iterator<Item = &'p Placed>,
        made: &'p [Placed],
    ) {
        let Some(recording) = &mut self.recording else { return };
        recording.programs.extend(programs);
        recording.held.extend(tensors.chain(made).map(|placed| (placed.address(), placed.clone())));
        recording.made.extend(made.iter().map(Held::address));
    }

    /// Notes what a replay would not do.
    pub(crate) fn breaks(&mut self, why: &str) {
        if let Some(recording) = &mut self.recording {
            recording.broken.get_or_insert_with(|| why.to_owned());
        }
    }

    pub(crate) fn begin(&mut self) {
        self.recording = Some(Recording::default());
    }
}

impl<C: HostLink> OnChip<C> {
    /// Captures what was recorded; its number, unless a replay would not do the same.
    pub(crate) fn capture(&mut self) -> Result<Option<u64>, RuntimeError> {
        let Some(recording) = self.traces.recording.take() else { return Ok(None) };
        let captured = match recording.broken {
            Some(why) => Err(why),
            None if recording.programs.is_empty() => Err("the chip does nothing in it".into()),
            None => self.capture_programs(&recording.programs)?,
        };
        match captured {
            Ok((trace, cores)) => {
                let number = self.traces.next;
                self.traces.next += 1;
                self.traces.counts.captured += 1;
                let Recording { held, made, .. } = recording;
                self.traces.live.insert(number, Captured { trace, cores, held, made });
                Ok(Some(number))
            }
            Err(why) => {
                self.traces.counts.not_captured.push(why);
                Ok(None)
            }
        }
    }

    fn capture_programs(&mut self, programs: &[Program]) -> Result<Result<(Trace, usize), String>, RuntimeError> {
        let mut cores = 0;
        for program in programs {
            cores = cores.max(self.device.layout(program).map_err(RuntimeError::from)?.cores.len());
        }
        let capture = self.device.begin_trace_capture()?;
        for program in programs {
            match self.device.enqueue_program(program, Blocking::No) {
                Ok(()) => {}
                // Programs that share the workers' memory for kernels with too many others.
                Err(error @ RuntimeError::Trace(_)) => return Ok(Err(error.to_string())),
                Err(error) => return Err(error),
            }
        }
        match self.device.end_trace_capture(capture) {
            Ok(trace) => Ok(Ok((trace, cores))),
            // No room for its commands.
            Err(error @ RuntimeError::Trace(_)) => Ok(Err(error.to_string())),
            Err(error) => Err(error),
        }
    }

    /// Replays a trace, as [`Machine::replay`](tilework_engine::Machine::replay) says.
    pub(crate) fn replay_captured(
        &mut self,
        number: u64,
        place: OperationPlace,
        inputs: &[(&Placed, &Placed)],
        results: &[&Placed],
    ) -> Result<bool, Stopped> {
        let Some(captured) = self.traces.live.get(&number) else { return Ok(false) };
        let alone = |placed: &&Placed| {
            let held = captured.held.contains_key(&placed.address());
            placed.on_device().is_some() && placed.names() <= 1 + usize::from(held)
        };
        let mut slots = Vec::new();
        for (from, to) in inputs {
            match (from.place(), to.place()) {
                (Place::Host(array), Place::Device(slot)) if !captured.made.contains(&to.address()) => {
                    slots.push((ops::typecast(array, slot.spec.dtype()), slot.clone()));
                }
                _ => return Ok(false),
            }
        }
        if !results.iter().all(alone) {
            return Ok(false);
        }
        let (trace, cores) = (captured.trace.clone(), captured.cores);
        self.under_way = Some(Record { carried: Carried::Chip, ..Record::at(place) });
        let replayed = self.replay_into(&slots, &trace, cores);
        let record = self.under_way.take();
        replayed?;
        self.records.extend(record);
        self.traces.counts.replays += 1;
        Ok(true)
    }

    fn replay_into(&mut self, slots: &[(Array, Box<Tensor>)], trace: &Trace, cores: usize) -> Result<(), Stopped> {
        for (array, slot) in slots {
            self.write(array, slot)?;
        }
        let name = format!("trace of {} programs", trace.programs());
        let stage = Stage { name, cores, times: None };
        self.stage(stage, |device, slot| {
            device.enqueue_timed(slot, |device| device.replay_trace(trace, Blocking::No))
        })?;
        Ok(())
    }

    /// Gives a trace back.
    pub(crate) fn release_captured(&mut self, number: u64) -> Result<(), RuntimeError> {
        match self.traces.live.remove(&number) {
            Some(captured) => self.device.release_trace(captured.trace),
            None => Ok(()),
        }
    }
}
