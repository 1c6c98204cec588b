//! Running programs, by fast or slow dispatch.

use super::{Device, Progress, ProgressCall, Statistics, default_cycles};
use crate::RuntimeError;
use crate::lower::{self, Addressed, Data, Go, Ir};
use crate::program::{Layout, Program, ProgramError};
use crate::queue::{CommandQueue, Patience, Waited};
use std::ops::ControlFlow;
use tilework_abi::addr::{Cycle, L1Addr};
use tilework_abi::board;
use tilework_abi::convert::u32_of;
use tilework_abi::cq::layout::host;
use tilework_abi::l1::core_timing;
use tilework_abi::msg::{GoMsg, MODE_DEV, MODE_HOST, RUN_GO};
use tilework_abi::noc::{NocXy, PCIE_HOST_MID};
use tilework_cq::DispatchCommand;
use tilework_driver::{HostLink, Inspect, Target};

/// Programs between two completion events: as many as there are pairs of timestamp slots. A longer
/// run is cut into batches of these.
pub const BATCH_PROGRAMS: usize = host::SLOTS as usize / 2;

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
pub(crate) struct Running<'a> {
    pub program: &'a Program,
    pub layout: Layout,
    /// First core timing slot, if its cores are timed.
    timing: Option<u32>,
}

impl Running<'_> {
    /// The number of the role that a tile has.
    pub(crate) fn role_of(&self, tile: NocXy) -> Option<usize> {
        self.layout.roles.iter().position(|role| role.cores.contains(&tile))
    }
}

impl<C: HostLink> Device<C> {
    /// Runs programs one after the other and waits for the last.
    ///
    /// # Errors
    /// A program that cannot run (then none of them was started); a fault, a deadlock or an
    /// exhausted budget (then the device is lost).
    pub fn run(&mut self, programs: &[Program]) -> Result<RunReport, RuntimeError> {
        self.alive()?;
        let running = self.lay_out(programs)?;
        let before = self.statistics();
        let mut progress = self.progress.take();
        let result = self.run_batches(&running, &mut progress);
        self.progress = progress;
        let reports = result?;
        self.programs += programs.len() as u64;
        let statistics = self.statistics().since(&before);
        let cycles = statistics.chip.map(|chip| chip.cycles);
        Ok(RunReport { cycles, programs: reports, statistics })
    }

    /// Puts the caller's own dispatch commands into the queue and waits for an event after them;
    /// returns the cycles that took. For measurements and for tests of the dispatcher:
    /// nothing checks what the commands do.
    ///
    /// # Errors
    /// Slow dispatch has no queue; otherwise as [`Device::run`].
    pub fn run_commands(&mut self, commands: &[DispatchCommand]) -> Result<Cycle, RuntimeError> {
        self.alive()?;
        let Some(mut queue) = self.queue.take() else { return Err(RuntimeError::NoQueue) };
        let budget = self.config.max_cycles.unwrap_or_else(|| default_cycles([1]));
        let start = self.card.link().cycles();
        let mut ignore = |_| ControlFlow::Continue(());
        let mut patience = Patience { until: start.saturating_add(budget), budget, progress: &mut ignore };
        let mut push = |command: &DispatchCommand| queue.push(&mut self.card, None, command.clone(), &mut patience);
        let pushed = commands.iter().try_for_each(&mut push);
        let result = pushed.and_then(|()| queue.finish(&mut self.card, &mut patience));
        self.queue = Some(queue);
        result.map_err(|e| self.explain(e, &[]))?;
        Ok(self.card.link().cycles() - start)
    }

    /// The layout of a program, without running it.
    ///
    /// # Errors
    /// A program that cannot run.
    pub fn layout(&self, program: &Program) -> Result<Layout, ProgramError> {
        program.layout(&self.workers, &self.map, self.memory.l1())
    }

    fn lay_out<'a>(&self, programs: &'a [Program]) -> Result<Vec<Running<'a>>, ProgramError> {
        let lay_out = |program: &'a Program| {
            let layout = self.layout(program)?;
            Ok(Running { program, layout, timing: None })
        };
        programs.iter().map(lay_out).collect()
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
            let mut patience = Patience { until, budget, progress: &mut tell };
            let mut batch = batch.to_vec();
            self.plan_core_timing(&mut batch);
            let result = match self.queue.take() {
                Some(mut queue) => {
                    let result = self.run_fast(&mut queue, &batch, &mut patience);
                    self.queue = Some(queue);
                    result
                }
                None => self.run_slow(&batch, &mut patience),
            };
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
    fn steps(&self, running: &Running, mode: u8) -> Result<Vec<Ir>, Waited> {
        let mut ir = Vec::new();
        // Under slow dispatch there is no host region to write times to.
        if self.config.core_timing && mode == MODE_DEV {
            ir.push(arm(running, self.map.profiler_control));
        }
        let steps = lower::build_ir(running.program, &running.layout, &self.map, mode);
        ir.extend(steps.map_err(|e| Waited::Other(e.into()))?);
        Ok(ir)
    }

    fn run_fast(
        &mut self,
        queue: &mut CommandQueue,
        batch: &[Running],
        patience: &mut Patience,
    ) -> Result<Vec<ProgramReport>, Waited> {
        let go = Go::of(self.config.layout, self.config.board);
        for (i, running) in batch.iter().enumerate() {
            let slot = 2 * u32_of(i);
            let stamp = |slot| self.config.timestamps.then(|| lower::timestamp(slot));
            let mut commands: Vec<Addressed> = stamp(slot).map(Addressed::from).into_iter().collect();
            commands.extend(lower::addressed(&self.steps(running, MODE_DEV)?, &go));
            commands.extend(stamp(slot + 1).map(Addressed::from));
            for command in commands {
                queue.push(&mut self.card, Some(i), command, patience)?;
            }
        }
        queue.finish(&mut self.card, patience)?;
        batch.iter().enumerate().map(|(i, running)| self.read_report(queue, i, running)).collect()
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
        self.card.link().inspect().map(Inspect::cycles)
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
fn arm(running: &Running, profiler_control: L1Addr) -> Ir {
    let cores = running.layout.cores.clone();
    let block = |slot: u32| {
        let at = host::CORE_TIMING.noc_addr() + slot * host::SLOT_SIZE;
        let mut words = [0u32; core_timing::WORDS as usize];
        words[core_timing::ENABLE as usize] = 1;
        words[core_timing::START_LO as usize] = at;
        words[core_timing::END_LO as usize] = at + 8;
        words[core_timing::ADDR_MID as usize] = PCIE_HOST_MID;
        words[core_timing::NOC_XY as usize] = board::PCIE.encode();
        words.iter().flat_map(|w| w.to_le_bytes()).collect::<Vec<u8>>()
    };
    let data = match running.timing {
        Some(first) => Data::PerCore((first..).take(cores.len()).map(block).collect()),
        None => Data::Uniform(vec![0; 4]),
    };
    Ir::Write { cores, addr: profiler_control, data }
}
