//! [`Backend`] and its calls.

use super::error::BackendError;
use crate::epoch::plan::Plan;
use crate::epoch::{Arithmetic, Deadline, Engine, EngineOptions, Golden, Host, Warning, Warnings};
use crate::loader::{Loader, LoaderConfig};
use crate::program::{Interpreter, Limits, Parameters, Statics, Step};
use crate::queue::error::QueueProblem;
use crate::queue::shared::{Guarded, Role};
use crate::queue::{Fullness, Monitor, Pointers, Queues, Shared, StdMonitor, Wait, WaitKind, WaitOutcome};
use crate::tensor::Tensor;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tilework_netlist::types::{GraphId, InstructionKind, Netlist, Program, QueueId, QueueKind};

/// How a backend runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BackendOptions {
    /// When a queue counts as full.
    pub fullness: Fullness,
    /// Bounds on a program's run.
    pub limits: Limits,
    /// How epochs run.
    pub engine: EngineOptions,
    /// How the loader works.
    pub loader: LoaderConfig,
    /// Bytes that all queues together may hold.
    pub most_bytes: u64,
    /// Records the fill levels of queues on the loader's timeline. With other threads they depend
    /// on when those push and pop.
    pub levels: bool,
}

impl Default for BackendOptions {
    /// Strict queues, 16 GiB of them.
    fn default() -> Self {
        Self {
            fullness: Fullness::default(),
            limits: Limits::default(),
            engine: EngineOptions::default(),
            loader: LoaderConfig::default(),
            most_bytes: 16 << 30,
            levels: false,
        }
    }
}

/// A call of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The program's name.
    pub program: String,
    /// Its parameters.
    pub parameters: Parameters,
}

/// Summary of a call of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunRecord {
    /// The program.
    pub program: String,
    /// `execute` instructions.
    pub executes: u64,
    /// Epochs, of one graph or several linked ones.
    pub epochs: u64,
    /// Operations that were executed.
    pub operations: u64,
    /// Global read and write pointer of each queue at the end.
    pub pointers: Vec<(u32, u32)>,
}

/// A runnable netlist. `M` is the monitor through which threads share the queues.
#[derive(Debug)]
pub struct Backend<A: Arithmetic = Golden, M = StdMonitor<Guarded<Tensor>>> {
    netlist: Arc<Netlist>,
    plan: Arc<Plan>,
    arithmetic: A,
    options: BackendOptions,
    shared: Shared<A::Entry, M>,
    /// Only one program runs at a time.
    runner: Mutex<Runner>,
}

#[derive(Debug)]
struct Runner {
    stage: Stage,
    statics: BTreeMap<usize, Statics>,
    loader: Loader,
    executes: u64,
    warnings: Warnings,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    New,
    Ready,
    Finished,
}

impl Backend {
    /// A backend for a checked netlist, with golden arithmetic.
    pub fn new(netlist: Netlist, arithmetic: Golden, options: BackendOptions) -> Self {
        Self::with(Arc::new(netlist), arithmetic, options)
    }
}

impl<A: Arithmetic, M: Monitor<Guarded<A::Entry>>> Backend<A, M> {
    /// A backend with the caller's arithmetic and synchronisation primitives.
    pub fn with(netlist: Arc<Netlist>, arithmetic: A, options: BackendOptions) -> Self {
        let plan = Arc::new(Plan::new(&netlist));
        let queues = Queues::new(netlist.clone(), options.fullness, options.most_bytes);
        let loader = Loader::new(netlist.clone(), plan.clone(), options.loader);
        let (statics, warnings) = (BTreeMap::new(), Warnings::default());
        let runner = Runner { stage: Stage::New, statics, loader, executes: 0, warnings };
        Self { netlist, plan, arithmetic, options, shared: Shared::new(queues), runner: Mutex::new(runner) }
    }

    /// The netlist.
    pub fn netlist(&self) -> &Netlist {
        &self.netlist
    }

    /// How its graphs and queues are connected.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    pub(super) fn shared(&self) -> &Shared<A::Entry, M> {
        &self.shared
    }

    pub(super) fn arithmetic(&self) -> &A {
        &self.arithmetic
    }

    /// A queue by name.
    pub fn queue(&self, name: &str) -> Result<QueueId, BackendError> {
        let found = self.netlist.queues.iter().position(|queue| queue.name == name);
        found.map(QueueId).ok_or_else(|| BackendError::UnknownQueue { name: name.to_string() })
    }

    /// Fills the binary caches; programs can run from then on.
    pub fn initialize(&self) -> Result<(), BackendError> {
        let mut runner = self.runner();
        match runner.stage {
            Stage::Finished => Err(BackendError::Finished),
            Stage::Ready => Ok(()),
            Stage::New => {
                runner.loader.initialize()?;
                runner.stage = Stage::Ready;
                Ok(())
            }
        }
    }

    /// Pushes an entry into a queue that the host fills, or writes entry `at` of a ram.
    ///
    /// # Errors
    /// If the queue is full and stays full for `timeout`; at once without one.
    pub fn push_input(
        &self,
        queue: QueueId,
        entry: &A::Entry,
        timeout: Option<Duration>,
        at: Option<u32>,
    ) -> Result<(), BackendError> {
        self.shared.with(|queues| queues.expect_host(queue))?;
        let entry = self.arithmetic.pushed(&self.netlist, queue, entry)?;
        match (self.netlist.queue(queue).kind, at) {
            (QueueKind::Ram, Some(at)) => Ok(self.shared.with(|queues| queues.ram_write(queue, at, entry))?),
            (QueueKind::Queue, Some(_)) => Err(QueueProblem::NotARam.of(&self.netlist, queue).into()),
            (_, None) => self.wait(Role::Push, queue, timeout, WaitKind::Space, |queues| {
                if self.netlist.queue(queue).kind == QueueKind::Queue && !queues.has_space(queue) {
                    return Ok(None);
                }
                queues.push(queue, entry.clone()).map(Some)
            }),
        }
    }

    /// Returns the next entry of a queue without removing it, or entry `at` of a ram.
    ///
    /// # Errors
    /// If the queue is empty and stays empty for `timeout` (at once without one), or if the entry
    /// of a ram was never written.
    pub fn get_output(
        &self,
        queue: QueueId,
        timeout: Option<Duration>,
        at: Option<u32>,
    ) -> Result<A::Entry, BackendError> {
        let entry = match (self.netlist.queue(queue).kind, at) {
            (QueueKind::Ram, Some(at)) => {
                let entry = self.shared.with(|queues| queues.ram_read(queue, at))?;
                entry.ok_or_else(|| QueueProblem::Uninitialised { at }.of(&self.netlist, queue))?
            }
            (QueueKind::Queue, Some(_)) => return Err(QueueProblem::NotARam.of(&self.netlist, queue).into()),
            (_, None) => self.next(queue, timeout, false)?,
        };
        Ok(self.arithmetic.got(&self.netlist, queue, &entry)?)
    }

    /// Removes and returns the next entry of a queue.
    ///
    /// # Errors
    /// As [`Backend::get_output`]; a ram has nothing to pop.
    pub fn pop_output(&self, queue: QueueId, timeout: Option<Duration>) -> Result<A::Entry, BackendError> {
        if self.netlist.queue(queue).kind == QueueKind::Ram {
            return Err(QueueProblem::RamPop.of(&self.netlist, queue).into());
        }
        let entry = self.next(queue, timeout, true)?;
        Ok(self.arithmetic.got(&self.netlist, queue, &entry)?)
    }

    fn next(&self, queue: QueueId, timeout: Option<Duration>, pop: bool) -> Result<A::Entry, BackendError> {
        let pointer = self.pointers(queue).rd();
        self.wait(Role::Pop, queue, timeout, WaitKind::Entry { pointer }, |queues| {
            let entry = queues.peek(queue, queues.pointers(queue).rd())?;
            if pop && entry.is_some() {
                queues.pop(queue, 1)?;
            }
            Ok(entry)
        })
    }

    /// Waits until `try_act` returns a value.
    fn wait<R>(
        &self,
        role: Role,
        queue: QueueId,
        timeout: Option<Duration>,
        kind: WaitKind,
        mut try_act: impl FnMut(&mut Queues<A::Entry>) -> Result<Option<R>, crate::queue::QueueError>,
    ) -> Result<R, BackendError> {
        let waits = timeout.is_some_and(|timeout| !timeout.is_zero());
        let outcome = self.shared.wait(role, timeout, |queues| match try_act(queues) {
            Ok(Some(result)) => Ok(Ok(result)),
            Err(error) => Ok(Err(error.into())),
            Ok(None) => {
                let wait = describe(role, queues, queue, kind, None);
                if waits { Err(wait) } else { Ok(Err(BackendError::WouldWait(wait))) }
            }
        });
        match outcome {
            WaitOutcome::Done(result) => result,
            WaitOutcome::Stuck(stuck) => Err(BackendError::Stuck(stuck)),
            WaitOutcome::TimedOut(wait) => Err(BackendError::TimedOut(wait)),
            WaitOutcome::GivenUp => Err(BackendError::GivenUp),
        }
    }

    /// Runs a program to its end.
    ///
    /// # Errors
    /// If the program, an epoch or the loader cannot continue. Earlier effects remain; static
    /// variables keep their values from before the call.
    pub fn run_program(&self, call: &Call) -> Result<RunRecord, BackendError> {
        self.run_with(call, None)
    }

    /// [`Backend::run_program`] with a host on the same thread.
    pub(super) fn run_with<'h>(
        &'h self,
        call: &Call,
        host: Option<Host<'h, A::Entry>>,
    ) -> Result<RunRecord, BackendError> {
        let mut runner = self.runner();
        match runner.stage {
            Stage::New => return Err(BackendError::NotInitialised),
            Stage::Finished => return Err(BackendError::Finished),
            Stage::Ready => {}
        }
        let (index, program) = self.program(call)?;
        let kept = runner.statics.get(&index).cloned().unwrap_or_default();
        let mut interpreter = Interpreter::new(&self.netlist, program, &call.parameters, kept, self.options.limits);
        let mut engine = Engine::new(
            self.netlist.clone(),
            self.plan.clone(),
            &self.shared,
            &self.arithmetic,
            self.options.engine,
            host,
        );
        let mut record =
            RunRecord { program: call.program.clone(), executes: 0, epochs: 0, operations: 0, pointers: Vec::new() };
        let ran = self.steps(program, &mut interpreter, &mut engine, &mut runner.loader, &mut record);
        engine.warnings().iter().for_each(|warning| runner.warnings.add(warning.clone()));
        runner.executes += record.executes;
        if ran.is_err() {
            runner.loader.abandon_program();
        }
        ran?;
        runner.statics.insert(index, interpreter.into_statics());
        record.pointers = self.shared.with(|queues| {
            let pointers = (0..self.netlist.queues.len()).map(|queue| queues.pointers(QueueId(queue)));
            pointers.map(|pointers| (pointers.rd(), pointers.wr())).collect()
        });
        Ok(record)
    }

    fn steps(
        &self,
        program: &Program,
        interpreter: &mut Interpreter<'_>,
        engine: &mut Engine<'_, A, M>,
        loader: &mut Loader,
        record: &mut RunRecord,
    ) -> Result<(), BackendError> {
        while let Some(step) = interpreter.step()? {
            self.options.engine.deadline.map_or(Ok(()), Deadline::check)?;
            match step {
                Step::Changed { effects, .. } => {
                    loader.changed(&effects);
                    effects.into_iter().try_for_each(|effect| engine.effect(effect))?;
                }
                Step::Allocate(queues) => {
                    loader.allocate(&queues);
                    queues.into_iter().try_for_each(|queue| self.shared.with(|queues| queues.allocate(queue)))?;
                }
                Step::Deallocate(queues) => {
                    loader.deallocate(&queues);
                    queues.into_iter().try_for_each(|queue| self.shared.with(|queues| queues.deallocate(queue)))?;
                }
                Step::LoopStart(body) => loader.loop_start(&body, &program.instructions),
                Step::LoopTurn { last } => loader.loop_turn(last),
                Step::Execute(launch) => {
                    record.executes += 1;
                    if let Some(epoch) = engine.execute(launch)? {
                        record.epochs += 1;
                        record.operations += epoch.operations;
                        let graphs: Vec<GraphId> = epoch.launches.iter().map(|launch| launch.graph).collect();
                        loader.execute(epoch.launches)?;
                        if self.options.levels {
                            self.shared.with(|queues| {
                                loader.levels(&graphs, |queue| queues.pointers(queue).occupancy());
                            });
                        }
                    }
                }
            }
        }
        engine.finish()?;
        loader.end_program();
        Ok(())
    }

    fn program(&self, call: &Call) -> Result<(usize, &Program), BackendError> {
        let programs = &self.netlist.programs;
        let index = programs.iter().position(|program| program.name == call.program).ok_or_else(|| {
            let known: Vec<&str> = programs.iter().map(|program| program.name.as_str()).collect();
            BackendError::UnknownProgram { name: call.program.clone(), known: known.join(", ") }
        })?;
        let declared = parameters(&programs[index]);
        match call.parameters.keys().find(|name| !declared.contains(&name.as_str())) {
            None => Ok((index, &programs[index])),
            Some(name) => {
                Err(BackendError::UnknownParameter { program: call.program.clone(), parameter: name.clone() })
            }
        }
    }

    /// Waits until everything issued is done on the devices' clock.
    pub fn wait_for_idle(&self) -> Result<(), BackendError> {
        let mut runner = self.runner();
        match runner.stage {
            Stage::Finished => Err(BackendError::Finished),
            _ => {
                runner.loader.wait_for_idle();
                Ok(())
            }
        }
    }

    /// Ends the devices' cores. Queues can still be read.
    pub fn finish(&self) -> Result<(), BackendError> {
        let mut runner = self.runner();
        if runner.stage == Stage::Ready {
            runner.loader.finish();
        }
        runner.stage = Stage::Finished;
        Ok(())
    }

    /// Pointers of a queue.
    pub fn pointers(&self, queue: QueueId) -> Pointers {
        self.shared.with(|queues| queues.pointers(queue))
    }

    /// All entries of a queue that are still in memory, by slot, as the host reads them; slots in
    /// between that were never written are zero.
    pub fn memory(&self, queue: QueueId) -> Result<Vec<A::Entry>, BackendError> {
        let slots = self.shared.with(|queues| {
            (0..queues.written(queue)).map(|slot| queues.slot(queue, slot)).collect::<Result<Vec<_>, _>>()
        })?;
        let entry = |entry: Option<A::Entry>| match entry {
            Some(entry) => Ok(self.arithmetic.got(&self.netlist, queue, &entry)?),
            None => Ok(self.arithmetic.zeros(&self.netlist, queue)?),
        };
        slots.into_iter().map(entry).collect()
    }

    /// `execute` instructions of all programs so far.
    pub fn executes(&self) -> u64 {
        self.runner().executes
    }

    /// Warnings so far.
    pub fn warnings(&self) -> Vec<Warning> {
        self.runner().warnings.iter().cloned().collect()
    }

    /// Calls `look` with the loader.
    pub fn loader<R>(&self, look: impl FnOnce(&Loader) -> R) -> R {
        look(&self.runner().loader)
    }

    fn runner(&self) -> MutexGuard<'_, Runner> {
        self.runner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Parameters that a program declares.
pub fn parameters(program: &Program) -> Vec<&str> {
    let names = program.instructions.iter().filter_map(|instruction| match &instruction.kind {
        InstructionKind::Param(names) => Some(names),
        _ => None,
    });
    names.flatten().map(String::as_str).collect()
}

/// Describes a wait for a queue in its present state.
pub(super) fn describe<E: crate::queue::Entry>(
    role: Role,
    queues: &Queues<E>,
    queue: QueueId,
    kind: WaitKind,
    on_behalf: Option<String>,
) -> Wait {
    let pointers = queues.pointers(queue);
    Wait {
        role,
        queue,
        name: queues.netlist().queue(queue).name.clone(),
        kind,
        entries: pointers.entries(),
        rd: pointers.rd(),
        wr: pointers.wr(),
        on_behalf,
    }
}
