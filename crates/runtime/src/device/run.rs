//! Running programs, by fast or slow dispatch.

use super::enqueue::push_all;
use super::{Device, Progress, ProgressCall, Statistics, SubDeviceId, default_cycles};
use crate::RuntimeError;
use crate::cache::{Launch, Prepared};
use crate::lower::{self, Addressed, Data, Go, Ir};
use crate::program::{Layout, Program, ProgramError};
use crate::queue::{CommandQueue, Patience, Waited};
use crate::trace::CallSite;
use std::ops::ControlFlow;
use std::sync::Arc;
use tilework_abi::addr::{Cycle, L1Addr};
use tilework_abi::board;
use tilework_abi::convert::u32_of;
use tilework_abi::cq::layout::{QueueId, host};
use tilework_abi::l1::core_timing;
use tilework_abi::msg::{GoMsg, MODE_DEV, MODE_HOST, RUN_GO};
use tilework_abi::noc::{NocXy, PCIE_HOST_MID};
use tilework_cq::DispatchCommand;
use tilework_driver::{HostLink, Target};

/// Programs between two completion events: as many as there are pairs of timestamp slots. A longer
/// run is cut into batches of these.
pub const BATCH_PROGRAMS: usize = host::SLOTS as usize / 2;

/// Most cycles that the usual budget has for a program of a trace, however often it is launched:
/// some 3.6 hours of the chip, so that the sum over all that are in flight has 64 bits.
const MOST_CYCLES: Cycle = 1 << 44;

/// When one core's BRISC ran a kernel, by its tile's wall clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CoreTime {
    /// The core.
    pub core: NocXy,
    /// When the go message had been read.
    pub start: Cycle,
    /// When all kernels of the core had returned.
    pub end: Cycle,
}

/// One program of a run.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ProgramReport {
    /// Its name.
    pub name: String,
    /// Cores it ran on.
    pub cores: usize,
    /// The clock before its first command: the dispatcher's under fast dispatch (absent without
    /// timestamps), the host's under slow dispatch (absent where the host cannot see the chip's).
    pub start: Option<Cycle>,
    /// The clock after its last command.
    pub end: Option<Cycle>,
    /// Times of all its cores, in the order of the program's cores, if
    /// [`DeviceConfig::core_timing`](super::DeviceConfig::core_timing) asked for them and there
    /// were slots; else empty. Each [`Device::run`] assigns [`host::SLOTS`] slots, one per core, in
    /// the order of the programs, and again for every [`BATCH_PROGRAMS`] programs. A program with
    /// more cores than slots are left gets none; a smaller one after it may.
    pub core_times: Vec<CoreTime>,
}

impl ProgramReport {
    /// Cycles from start to end.
    pub fn cycles(&self) -> Option<Cycle> {
        self.end?.checked_sub(self.start?)
    }
}

/// What a run did.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RunReport {
    /// Cycles from the call to its end; absent for a chip whose clock the host cannot see.
    pub cycles: Option<Cycle>,
    /// The programs, in order.
    pub programs: Vec<ProgramReport>,
    /// What the run added to the counts of the device.
    pub statistics: Statistics,
}

/// A program of a run, laid out.
#[derive(Clone, Debug)]
pub(crate) struct Running {
    pub program: Arc<Program>,
    /// Where its parts lie: a cached program's once it is launched.
    pub layout: Arc<Layout>,
    /// Its commands, if they are cached, until it is launched.
    prepared: Option<Prepared>,
    /// First core timing slot, if its cores are timed.
    timing: Option<u32>,
    /// How often it runs: more than once in a trace.
    pub launches: u64,
}

impl Running {
    /// A program without timing of its cores.
    pub(super) fn new(program: Arc<Program>, layout: Arc<Layout>) -> Self {
        Self { program, layout, prepared: None, timing: None, launches: 1 }
    }
    /// The same, launched so many times.
    pub(super) fn launched(self, launches: u64) -> Self {
        Self { launches, ..self }
    }
    fn prepared(prepared: Prepared) -> Self {
        let (program, layout) = (prepared.program(), prepared.plain_layout());
        Self { prepared: Some(prepared), ..Self::new(program, layout) }
    }

    /// Cycles that the usual budget has for all of its launches.
    pub(super) fn usual_cycles(&self) -> Cycle {
        super::program_cycles(self.layout.kernels()).saturating_mul(self.launches).min(MOST_CYCLES)
    }

    /// The number of the role that a tile has.
    pub(crate) fn role_of(&self, tile: NocXy) -> Option<usize> {
        self.layout.roles.iter().position(|role| role.cores.contains(&tile))
    }
}

impl<C: HostLink> Device<C> {
    /// Runs programs one after the other and waits for the last; on the first queue, when all
    /// queues are finished.
    ///
    /// # Errors
    /// A program that cannot run (then none of them was started); a fault, a deadlock or an
    /// exhausted budget (then the device is lost).
    #[track_caller]
    pub fn run(&mut self, programs: &[Program]) -> Result<RunReport, RuntimeError> {
        self.outside_capture("run", CallSite::here())?;
        self.alive()?;
        // What was enqueued before is not part of the run.
        self.finish_everything()?;
        let before = self.statistics();
        let running = self.lay_out(programs)?;
        self.on(QueueId::FIRST, |device| device.run_all(running, &before))
    }

    pub(super) fn run_all(&mut self, running: Vec<Running>, before: &Statistics) -> Result<RunReport, RuntimeError> {
        let mut progress = self.progress.take();
        let result = self.run_batches(&running, &mut progress);
        self.progress = progress;
        let reports = result?;
        self.last_prints();
        self.check_invariants().map_err(|e| self.explain(e, &[]))?;
        self.programs += running.len() as u64;
        let statistics = self.statistics().since(before);
        let cycles = statistics.time;
        Ok(RunReport { cycles, programs: reports, statistics })
    }

    /// Puts the caller's own dispatch commands into the queue and waits for an event after them;
    /// returns the cycles that took. For measurements and for tests of the dispatcher:
    /// nothing checks what the commands do.
    ///
    /// # Errors
    /// Slow dispatch has no queue; otherwise as [`Device::run`].
    #[track_caller]
    pub fn run_commands(&mut self, commands: &[DispatchCommand]) -> Result<Cycle, RuntimeError> {
        self.outside_capture("run_commands", CallSite::here())?;
        self.alive()?;
        self.finish_everything()?;
        let Some(mut queue) = self.queue.take() else { return Err(RuntimeError::NoQueue) };
        let budget = self.config.max_cycles.unwrap_or_else(|| default_cycles([1]));
        let start = self.card.link().cycles();
        let mut ignore = |_| ControlFlow::Continue(());
        let until = start.saturating_add(budget);
        let mut patience = Patience { until, budget, progress: &mut ignore, beside: None, room: None };
        let mut push = |command: &DispatchCommand| queue.push(&mut self.card, None, command.clone(), &mut patience);
        let pushed = commands.iter().try_for_each(&mut push);
        let result = pushed.and_then(|()| queue.finish(&mut self.card, &mut patience));
        self.queue = Some(queue);
        if let Some(launcher) = &mut self.launcher {
            launcher.forget();
        }
        result.map_err(|e| self.explain(e, &[]))?;
        Ok(self.card.link().cycles() - start)
    }

    /// Checks a program and encodes its commands, or finds them in the cache.
    /// [`Device::run_prepared`] launches it as often as wanted, with arguments of the moment.
    ///
    /// # Errors
    /// A program that cannot run. Without a program cache (slow dispatch, plain lowering, firmware
    /// without a text cache) there is nothing to prepare.
    pub fn prepare(&mut self, program: &Program) -> Result<Prepared, RuntimeError> {
        self.alive()?;
        self.check_kernels(program)?;
        let launcher = self.launcher.as_mut().ok_or(RuntimeError::NoCache)?;
        launcher.prepare(program, self.memory.l1())
    }

    /// Runs prepared programs as [`Device::run`] runs programs.
    ///
    /// # Errors
    /// As [`Device::run`].
    #[track_caller]
    pub fn run_prepared(&mut self, programs: &[&Prepared]) -> Result<RunReport, RuntimeError> {
        self.outside_capture("run_prepared", CallSite::here())?;
        self.alive()?;
        self.finish_everything()?;
        let before = self.statistics();
        let running = self.lay_out_prepared(programs)?;
        self.on(QueueId::FIRST, |device| device.run_all(running, &before))
    }

    /// The layout of a program, without running it: where the parts of a run of it alone would
    /// lie that came next. Cached programs share the configuration space and the text cache
    /// with others.
    ///
    /// # Errors
    /// A program that cannot run.
    pub fn layout(&self, program: &Program) -> Result<Layout, ProgramError> {
        let layout = program.layout(&self.workers, &self.map, self.memory.l1())?;
        match &self.launcher {
            Some(launcher) => launcher.layout(program, layout),
            None => Ok(layout),
        }
    }

    /// Refuses a program with a kernel that was linked with other firmware than this device's, or
    /// compiled for other banks; gets ready for the prints of the others.
    pub(super) fn check_kernels(&mut self, program: &Program) -> Result<(), RuntimeError> {
        for kernel in program.roles.iter().flat_map(|role| role.kernels.iter().flatten()) {
            if !kernel.is_self_contained() {
                kernel.check_firmware(&self.exports[kernel.processor().index()])?;
                kernel.check_banks([u32_of(self.dram_banks()), u32_of(self.memory.l1_banks().len())])?;
            }
        }
        self.expect_prints(program)
    }

    pub(super) fn lay_out(&mut self, programs: &[Program]) -> Result<Vec<Running>, RuntimeError> {
        let mut running = Vec::with_capacity(programs.len());
        for program in programs {
            self.check_kernels(program)?;
            running.push(match &mut self.launcher {
                Some(launcher) => Running::prepared(launcher.prepare(program, self.memory.l1())?),
                None => Running::new(Arc::new(program.clone()), Arc::new(self.layout(program)?)),
            });
        }
        for running in &running {
            self.sub_devices.holding(&running.program.name, &running.layout.cores)?;
        }
        Ok(running)
    }

    pub(super) fn lay_out_prepared(&self, programs: &[&Prepared]) -> Result<Vec<Running>, RuntimeError> {
        let launcher = self.launcher.as_ref().ok_or(RuntimeError::NoCache)?;
        let mut running = Vec::with_capacity(programs.len());
        for &prepared in programs {
            let mut prepared = prepared.clone();
            launcher.place_cbs(&mut prepared, self.memory.l1())?;
            self.sub_devices.holding(prepared.name(), &prepared.plain_layout().cores)?;
            running.push(Running::prepared(prepared));
        }
        Ok(running)
    }

    fn run_batches(
        &mut self,
        running: &[Running],
        progress: &mut Option<ProgressCall>,
    ) -> Result<Vec<ProgramReport>, RuntimeError> {
        let kernels = running.iter().map(|running| running.layout.kernels());
        let budget = self.config.max_cycles.unwrap_or_else(|| default_cycles(kernels));
        let until = self.card.link().cycles().saturating_add(budget);
        let mut reports = Vec::with_capacity(running.len());
        // Slow dispatch waits for every program by itself, so what stops is the one program of its
        // batch.
        let programs = if self.queue.is_some() { BATCH_PROGRAMS } else { 1 };
        for batch in running.chunks(programs) {
            let done = reports.len();
            let mut tell = |cycles| match progress {
                Some(f) => f(Progress { cycles, until, done, programs: running.len() }),
                None => ControlFlow::Continue(()),
            };
            let mut batch = batch.to_vec();
            self.plan_core_timing(&mut batch);
            let mut beside = self.parked.queue.take();
            let room = self.prints.room();
            let mut patience = Patience { until, budget, progress: &mut tell, beside: beside.as_mut(), room };
            let result = match self.queue.take() {
                Some(mut queue) => {
                    let result = self.run_fast(&mut queue, &mut batch, &mut patience);
                    self.queue = Some(queue);
                    result
                }
                None => self.run_slow(&batch, &mut patience),
            };
            self.parked.queue = beside;
            self.note_all_completed();
            batch.iter().for_each(|running| self.remember(running));
            match result {
                Ok(part) => reports.extend(part),
                Err(error) => return Err(self.explain(error, &batch)),
            }
        }
        Ok(reports)
    }

    /// Assigns the core timing slots of a batch, as [`ProgramReport::core_times`] says.
    fn plan_core_timing(&self, batch: &mut [Running]) {
        if !self.config.core_timing {
            return;
        }
        let mut next = 0;
        for running in batch {
            let cores = u32_of(running.layout.cores.len());
            if next + cores <= host::SLOTS {
                running.timing = Some(next);
                next += cores;
            }
        }
    }

    /// The steps of a program, after the one that arms or disarms the timing of its cores.
    pub(super) fn steps(&self, running: &Running, mode: u8) -> Result<Vec<Ir>, Waited> {
        let mut ir = Vec::new();
        // Under slow dispatch there is no host region to write times to.
        if self.config.core_timing && mode == MODE_DEV {
            ir.push(arm(self.bases[self.at.index()], running, self.map.profiler_control));
        }
        let steps = lower::build_ir(&running.program, &running.layout, &self.map, mode);
        ir.extend(steps.map_err(|e| Waited::Other(e.into()))?);
        Ok(ir)
    }

    fn run_fast(
        &mut self,
        queue: &mut CommandQueue,
        batch: &mut [Running],
        patience: &mut Patience,
    ) -> Result<Vec<ProgramReport>, Waited> {
        for (i, running) in batch.iter_mut().enumerate() {
            match running.prepared.take() {
                Some(prepared) => self.push_launch(queue, i, running, &prepared, patience)?,
                None => self.push_plain(queue, i, running, patience)?,
            }
        }
        for sub in SubDeviceId::all().take(self.sub_devices()) {
            let Some(launcher) = &mut self.launcher else { break };
            let settled = launcher.select(queue.id(), sub).and_then(|()| launcher.settle());
            push_all(queue, &mut self.card, settled.map_err(|e| Waited::Other(e.into()))?, patience)?;
        }
        queue.finish(&mut self.card, patience)?;
        batch.iter().enumerate().map(|(i, running)| self.read_report(queue, i, running)).collect()
    }

    /// Puts a program whole into the queue, and the wait for its end.
    fn push_plain(
        &mut self,
        queue: &mut CommandQueue,
        i: usize,
        running: &Running,
        patience: &mut Patience,
    ) -> Result<(), Waited> {
        let go = Go::at(self.config.layout.queue(self.at), self.config.board);
        let slot = 2 * u32_of(i);
        let stamp = |slot| self.config.timestamps.then(|| lower::timestamp(queue.base(), slot));
        let mut commands: Vec<Addressed> = stamp(slot).map(Addressed::from).into_iter().collect();
        commands.extend(lower::addressed(&self.steps(running, MODE_DEV)?, &go));
        commands.extend(stamp(slot + 1).map(Addressed::from));
        self.tell_launch(Some((queue.id(), i as u64)), running);
        for command in commands {
            queue.push(&mut self.card, Some(i), command, patience)?;
        }
        Ok(())
    }

    /// Puts a launch of a cached program into the queue. Its end is waited for by the next launch,
    /// or at the end of the batch.
    fn push_launch(
        &mut self,
        queue: &mut CommandQueue,
        i: usize,
        running: &mut Running,
        prepared: &Prepared,
        patience: &mut Patience,
    ) -> Result<(), Waited> {
        let sub = self.sub_devices.holding(prepared.name(), &running.layout.cores);
        let sub = sub.map_err(|e| Waited::Other(e.into()))?;
        self.turn_launcher(queue.id(), sub).map_err(Waited::Other)?;
        let Some(launcher) = &mut self.launcher else { return Ok(()) };
        let slot = 2 * u32_of(i);
        let blocks = running.timing.map(|first| timing_blocks(queue.base(), first, running.layout.cores.len()));
        let launch = Launch {
            tag: Some(i),
            stamps: self.config.timestamps.then_some((slot, slot + 1)),
            timing: blocks.as_deref(),
        };
        let launched = launcher.launch(prepared, &launch).map_err(Waited::Other)?;
        running.layout = launched.layout;
        self.tell_prepared((queue.id(), i as u64), prepared, &running.layout);
        let records = push_all(queue, &mut self.card, launched.records, patience)?;
        if let Some(launcher) = &mut self.launcher {
            records.into_iter().for_each(|record| launcher.reuse(record));
        }
        Ok(())
    }

    /// Reads what the device wrote about a program into the host region.
    fn read_report(&mut self, queue: &CommandQueue, i: usize, running: &Running) -> Result<ProgramReport, Waited> {
        let mut word = |offset: u32| {
            let mut bytes = [0; 8];
            queue.region().read(self.card.link_mut(), offset.into(), &mut bytes)?;
            Ok::<_, Waited>(u64::from_le_bytes(bytes))
        };
        let timestamps = self.config.timestamps;
        let mut stamp =
            |slot: u32| timestamps.then(|| word(host::TIMESTAMPS.offset() + slot * host::SLOT_SIZE)).transpose();
        let slot = 2 * u32_of(i);
        let mut report = ProgramReport {
            name: running.program.name.clone(),
            cores: running.layout.cores.len(),
            start: stamp(slot)?,
            end: stamp(slot + 1)?,
            core_times: Vec::new(),
        };
        if let Some(first) = running.timing {
            for (slot, &core) in (first..).zip(&running.layout.cores) {
                let at = host::CORE_TIMING.offset() + slot * host::SLOT_SIZE;
                report.core_times.push(CoreTime { core, start: word(at)?, end: word(at + 8)? });
            }
        }
        Ok(report)
    }

    /// The same steps by window accesses: multicast writes, one go message for all, then a look at
    /// each core's (seed's system, `slow_dispatch`).
    fn run_slow(&mut self, batch: &[Running], patience: &mut Patience) -> Result<Vec<ProgramReport>, Waited> {
        let mut reports = Vec::new();
        for running in batch {
            let start = self.chip_time();
            self.tell_launch(None, running);
            for step in self.steps(running, MODE_HOST)? {
                self.slow_step(&step, patience)?;
            }
            reports.push(ProgramReport {
                name: running.program.name.clone(),
                cores: running.layout.cores.len(),
                start,
                end: self.chip_time(),
                core_times: Vec::new(),
            });
        }
        Ok(reports)
    }

    /// The chip's time as the host sees it, if it can.
    fn chip_time(&self) -> Option<Cycle> {
        self.card.link().measured()
    }

    fn slow_step(&mut self, step: &Ir, patience: &mut Patience) -> Result<(), Waited> {
        match step {
            Ir::Write { cores, addr, data: Data::Uniform(bytes) } => {
                self.card.write_all(cores, *addr, bytes)?;
            }
            Ir::Write { cores, addr, data: Data::PerCore(blobs) } => {
                for (&core, bytes) in cores.iter().zip(blobs) {
                    self.card.write(&Target::tile(core), *addr, bytes)?;
                }
            }
            Ir::Launch { cores } => {
                let go = GoMsg::signal(RUN_GO).word().to_le_bytes();
                self.card.write_all(cores, self.map.go, &go)?;
                self.wait_done_patiently(cores, patience)?;
            }
        }
        Ok(())
    }
}

/// The write that makes the cores of a program store their times, or not.
fn arm(base: u32, running: &Running, profiler_control: L1Addr) -> Ir {
    let cores = running.layout.cores.clone();
    let data = match running.timing {
        Some(first) => Data::PerCore(timing_blocks(base, first, cores.len())),
        None => Data::Uniform(vec![0; 4]),
    };
    Ir::Write { cores, addr: profiler_control, data }
}

/// The profiler's control blocks of `cores` cores, whose times go to the slots of the host
/// region at `base` from `first` on.
fn timing_blocks(base: u32, first: u32, cores: usize) -> Vec<Vec<u8>> {
    let block = |slot: u32| {
        let at = base + host::CORE_TIMING.offset() + slot * host::SLOT_SIZE;
        let mut words = [0u32; core_timing::WORDS as usize];
        words[core_timing::ENABLE as usize] = 1;
        words[core_timing::START_LO as usize] = at;
        words[core_timing::END_LO as usize] = at + 8;
        words[core_timing::ADDR_MID as usize] = PCIE_HOST_MID;
        words[core_timing::NOC_XY as usize] = board::PCIE.encode();
        words.iter().flat_map(|w| w.to_le_bytes()).collect::<Vec<u8>>()
    };
    (first..).take(cores).map(block).collect()
}
