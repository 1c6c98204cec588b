//! Traces: capture, replay, release.
//!
//! While a capture is under way, programs that are enqueued become commands that are kept
//! instead of sent. What a replay would not do again as it was captured is refused there, and
//! the capture is given up: waiting, events, transfers, accesses to L1, and programs that are
//! not on the workers.

use super::in_flight::Flight;
use super::{Device, Running, SubDeviceId};
use crate::RuntimeError;
use crate::cache::{self, Prepared};
use crate::event::Blocking;
use crate::lower::{self, Go};
use crate::memory::Buffer;
use crate::memory::trace::{LOG_PAGE, pages};
use crate::program::{Layout, Program};
use crate::queue::{CommandQueue, Sequence, Stored};
use crate::trace::{CallSite, Trace, TraceCapture, TraceError, TraceName};
use std::collections::BTreeMap;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use tilework_abi::cq::layout::QueueId;
use tilework_abi::msg::{MODE_DEV, MODE_HOST};
use tilework_abi::noc::NocXy;
use tilework_cq::prefetch::ExecBuf;
use tilework_driver::HostLink;

/// The traces of a device.
#[derive(Default)]
pub(super) struct Tracing {
    next: u64,
    capture: Option<Capturing>,
    /// The capture that was given up last, and why.
    given_up: Option<(TraceName, String)>,
    live: BTreeMap<u64, Rc<Live>>,
}

/// A capture under way.
struct Capturing {
    name: TraceName,
    of: Of,
    /// Whether the caller still has it.
    held: Weak<()>,
    recorded: Recorded,
    /// Its programs, each with where it lies and how often it is launched.
    programs: Vec<Running>,
    /// Which of them each launch is of.
    launches: Vec<usize>,
}

/// What a capture has recorded.
enum Recorded {
    /// Launches of cached programs.
    Cached(Box<cache::Capture>),
    /// The commands of the plain lowering.
    Plain(Sequence),
    /// Under slow dispatch the programs themselves.
    Slow,
}

/// What a trace is of.
#[derive(Clone, Copy)]
struct Of {
    queue: QueueId,
    /// The sub-device of its programs, when there are any.
    sub: Option<SubDeviceId>,
    /// How often sub-devices had been changed.
    division: u64,
}

/// A trace that can be replayed.
struct Live {
    name: TraceName,
    of: Of,
    stored: Option<InDram>,
    flight: Flight,
    launches: Vec<usize>,
}

/// Its commands, and what the launcher knows of them.
struct InDram {
    commands: Stored,
    buffer: Buffer,
    cached: Option<cache::Captured>,
}

impl Capturing {
    /// Adds a launch.
    fn add(&mut self, program: Arc<Program>, layout: Arc<Layout>) {
        let same = |r: &Running| Arc::ptr_eq(&r.program, &program) && Arc::ptr_eq(&r.layout, &layout);
        let at = self.programs.iter().position(same).unwrap_or_else(|| {
            self.programs.push(Running::new(program, layout).launched(0));
            self.programs.len() - 1
        });
        self.programs[at].launches += 1;
        self.launches.push(at);
    }
}

impl<C: HostLink> Device<C> {
    /// Begins a capture: programs that are enqueued from here on are recorded, and nothing
    /// runs. Each of them must have run before, so that it is compiled and its kernel text is
    /// on the workers.
    ///
    /// # Errors
    /// A capture that is under way, which is given up; a device that stopped.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use tilework_abi::{board::Board, tensix::Processor};
    /// # use tilework_runtime::{Blocking, Cores, Device, DeviceConfig, KernelImage, Program, Role, prebuilt};
    /// # use tilework_sim::{Chip, ChipConfig};
    /// # let board = Board::P100;
    /// # let mut device = Device::open(Chip::new(ChipConfig::new(board))?, DeviceConfig::new(board))?;
    /// # let elf = prebuilt::kernel_elf("empty").ok_or("no such kernel")?;
    /// # let kernel = Arc::new(KernelImage::load("empty", elf, Processor::Brisc)?);
    /// let program = Program::new("empty", Cores::All).role(Role::all().kernel(Processor::Brisc, kernel));
    /// device.enqueue_program(&program, Blocking::Yes)?;
    /// let capture = device.begin_trace_capture()?;
    /// for _ in 0..100 {
    ///     device.enqueue_program(&program, Blocking::No)?;
    /// }
    /// let trace = device.end_trace_capture(capture)?;
    /// device.replay_trace(&trace, Blocking::Yes)?;
    /// device.release_trace(trace)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[track_caller]
    pub fn begin_trace_capture(&mut self) -> Result<TraceCapture, RuntimeError> {
        let begun = CallSite::here();
        self.alive()?;
        self.outside_capture("begin_trace_capture", begun)?;
        let name = TraceName { number: self.tracing.next, begun };
        self.tracing.next += 1;
        let recorded = match (&self.launcher, &self.queue) {
            (Some(launcher), _) => Recorded::Cached(Box::new(launcher.begin_trace())),
            (None, Some(_)) => Recorded::Plain(Sequence::default()),
            (None, None) => Recorded::Slow,
        };
        let held = Rc::new(());
        let weak = Rc::downgrade(&held);
        let of = Of { queue: self.at, sub: None, division: self.sub_devices.division() };
        let capture = Capturing { name, of, held: weak, recorded, programs: Vec::new(), launches: Vec::new() };
        self.tracing.capture = Some(capture);
        Ok(TraceCapture { device: self.number, name, _held: held })
    }

    /// Ends a capture. The commands go to DRAM, through the queue; the call waits until they are
    /// there.
    ///
    /// # Errors
    /// A capture that was given up, with the reason; no room for the commands; a device that
    /// stopped.
    #[track_caller]
    pub fn end_trace_capture(&mut self, capture: TraceCapture) -> Result<Trace, RuntimeError> {
        let (at, name) = (CallSite::here(), capture.name);
        self.alive()?;
        if capture.device != self.number {
            return Err(TraceError::Foreign { trace: name, at }.into());
        }
        let Some(capturing) = self.tracing.capture.take_if(|capturing| capturing.name == name) else {
            let why = match &self.tracing.given_up {
                Some((given_up, why)) if *given_up == name => why.clone(),
                _ => "its capture was given up".to_owned(),
            };
            return Err(TraceError::GivenUp { trace: name, at, why }.into());
        };
        drop(capture);
        let launches = capturing.launches.len();
        let queue = capturing.of.queue;
        let live = self.on(queue, |device| device.store(capturing)).inspect_err(|_| self.memory.unpin(name))?;
        let bytes = live.stored.as_ref().map_or(0, |stored| stored.buffer.bytes());
        self.tracing.live.insert(name.number, Rc::new(live));
        Ok(Trace { device: self.number, name, programs: launches, bytes })
    }

    /// Brings the commands of a capture to DRAM.
    fn store(&mut self, capturing: Capturing) -> Result<Live, RuntimeError> {
        let Capturing { name, of, recorded, programs, launches, .. } = capturing;
        let (mut sequence, cached) = match (recorded, &mut self.launcher) {
            (Recorded::Cached(capture), Some(launcher)) => {
                launcher.select(of.queue, of.sub.unwrap_or_default())?;
                let (sequence, captured) = launcher.end_trace(*capture)?;
                (sequence, Some(captured))
            }
            (Recorded::Plain(sequence), _) => (sequence, None),
            _ => return Ok(Live { name, of, stored: None, flight: Flight::new(programs.into()), launches }),
        };
        sequence.end()?;
        let Sequence { bytes, mut sent, subordinate } = sequence;
        for command in &mut sent {
            command.program = command.program.and_then(|launch| launches.get(launch).copied());
        }
        let buffer = self.memory.alloc_trace(name, bytes.len())?;
        let written = self.enqueue_write_buffer(&buffer, &bytes, Blocking::Yes);
        let commands = written.and_then(|()| {
            let base_addr = buffer.address.word();
            let buffer = ExecBuf { base_addr, log_page_size: LOG_PAGE, pages: pages(bytes.len()) };
            let stored = Stored::new(name, sent, subordinate, programs.len(), buffer)?;
            Ok(if self.card.link().listens() { stored.described(&bytes) } else { stored })
        });
        let commands = commands.inspect_err(|_| {
            // What cannot be freed was never allocated.
            let _ = self.memory.free(&buffer);
        })?;
        let stored = Some(InDram { commands, buffer, cached });
        Ok(Live { name, of, stored, flight: Flight::new(programs.into()), launches })
    }

    /// Tells of the launches of a replay those who want to know of them.
    fn tell_replay(&mut self, live: &Live) {
        if self.launched.is_none() && !self.card.link().listens() {
            return;
        }
        let programs = live.flight.programs();
        programs.iter().for_each(|running| self.remember(running));
        let first = self.queue.as_ref().map_or(0, CommandQueue::next_program);
        for &launch in &live.launches {
            self.tell_launch(Some((self.at, first + launch as u64)), &programs[launch]);
        }
    }

    /// Runs the programs of a trace as they were captured, behind everything that was enqueued
    /// before. A blocking call waits for their end.
    ///
    /// # Errors
    /// A trace that was released, or of another device or queue, or captured with other
    /// sub-devices; one whose programs would meet one of the other queue; a device that stopped.
    #[track_caller]
    pub fn replay_trace(&mut self, trace: &Trace, blocking: Blocking) -> Result<(), RuntimeError> {
        let at = CallSite::here();
        self.outside_capture("replay_trace", at)?;
        self.begin()?;
        let live = self.live(trace, at)?;
        self.may_replay(&live, at)?;
        let Some(InDram { commands, cached, .. }) = &live.stored else { return self.replay_slow(&live) };
        let sub = live.of.sub.unwrap_or_default();
        if let Some(order) = &mut self.order {
            for running in live.flight.programs() {
                order.launch(self.at, sub, Arc::clone(&running.program), &running.layout.cores);
            }
            // Its last command waits for its programs.
            order.settle(self.at, [sub].into_iter());
        }
        let mut noticed = true;
        if let (Some(launcher), Some(cached)) = (&mut self.launcher, cached) {
            launcher.select(self.at, sub)?;
            let records = launcher.replay(live.name.number, cached)?;
            if !records.is_empty() {
                noticed = false;
                self.with_queue(|queue, card, patience| super::enqueue::push_all(queue, card, records, patience))?;
            }
        }
        self.tell_replay(&live);
        self.in_flight.push(live.flight.clone());
        self.with_queue(|queue, card, patience| queue.execute(card, commands, noticed, patience))?;
        self.check_queue()?;
        if blocking == Blocking::Yes { self.finish_queue() } else { Ok(()) }
    }

    /// Refuses a replay on another queue, with other sub-devices, or beside a program of the other
    /// queue on its workers.
    fn may_replay(&mut self, live: &Live, at: CallSite) -> Result<(), RuntimeError> {
        const CALL: &str = "replay_trace";
        let trace = live.name;
        if live.of.queue != self.at {
            return Err(TraceError::Queue { trace, of: live.of.queue, call: CALL, at, asked: self.at }.into());
        }
        if live.of.division != self.sub_devices.division() {
            return Err(TraceError::OtherSubDevices { trace, call: CALL, at }.into());
        }
        let (queue, programs) = (self.at, live.flight.programs());
        let Some(order) = &mut self.order else { return Ok(()) };
        programs.iter().try_for_each(|running| order.check(queue, &running.program.name, &running.layout.cores))
    }

    fn replay_slow(&mut self, live: &Live) -> Result<(), RuntimeError> {
        let running = live.launches.iter().map(|&i| live.flight.programs()[i].clone().launched(1)).collect();
        let before = self.statistics();
        self.run_all(running, &before).map(|_| ())
    }

    /// Gives the memory of a trace back, and what it kept from being freed. Replays that are in the
    /// queue are not disturbed: whatever is written to that memory comes behind them. With two
    /// queues the call waits for that of the trace.
    ///
    /// # Errors
    /// A trace that was released before, or of another device; a device that stopped.
    #[track_caller]
    pub fn release_trace(&mut self, trace: Trace) -> Result<(), RuntimeError> {
        let at = CallSite::here();
        self.alive()?;
        self.outside_capture("release_trace", at)?;
        let live = self.live(&trace, at)?;
        if self.config.queues > 1 {
            // The other queue may write there before this one has read it.
            self.on(live.of.queue, Self::finish_queue)?;
        }
        self.tracing.live.remove(&trace.name.number);
        self.memory.unpin(trace.name);
        match &live.stored {
            Some(stored) => Ok(self.memory.free(&stored.buffer)?),
            None => Ok(()),
        }
    }

    fn live(&self, trace: &Trace, at: CallSite) -> Result<Rc<Live>, TraceError> {
        if trace.device != self.number {
            return Err(TraceError::Foreign { trace: trace.name, at });
        }
        let live = self.tracing.live.get(&trace.name.number);
        live.cloned().ok_or(TraceError::Released { trace: trace.name, at })
    }

    /// Whether a capture is under way. One that was dropped is given up.
    pub(super) fn is_capturing(&mut self) -> bool {
        match &self.tracing.capture {
            Some(capture) if capture.held.strong_count() == 0 => {
                self.give_up("its capture was dropped");
                false
            }
            capture => capture.is_some(),
        }
    }

    /// Gives the capture under way up.
    fn give_up(&mut self, why: &str) {
        if let Some(capture) = self.tracing.capture.take() {
            self.memory.unpin(capture.name);
            self.tracing.given_up = Some((capture.name, why.to_owned()));
        }
    }

    /// Refuses a call that a capture cannot have in it, and gives the capture up.
    pub(super) fn outside_capture(&mut self, call: &'static str, at: CallSite) -> Result<(), RuntimeError> {
        if !self.is_capturing() {
            return Ok(());
        }
        let Some(trace) = self.tracing.capture.as_ref().map(|capture| capture.name) else { return Ok(()) };
        let error = TraceError::InCapture { call, at, trace };
        self.give_up(&error.to_string());
        Err(error.into())
    }

    /// Records a program in the capture under way.
    pub(super) fn capture_program(
        &mut self,
        program: &Program,
        blocking: Blocking,
        at: CallSite,
    ) -> Result<(), RuntimeError> {
        self.capture_with(blocking, at, |device, capture| device.record_program(capture, program, at))
    }

    /// Records a prepared program in the capture under way.
    pub(super) fn capture_prepared(
        &mut self,
        prepared: &mut Prepared,
        blocking: Blocking,
        at: CallSite,
    ) -> Result<(), RuntimeError> {
        self.capture_with(blocking, at, |device, capture| {
            let Some(launcher) = &device.launcher else { return Err(RuntimeError::NoCache) };
            launcher.place_cbs(prepared, device.memory.l1())?;
            device.record_prepared(capture, prepared, at)
        })
    }

    /// Records something in the capture under way; an error gives it up.
    fn capture_with(
        &mut self,
        blocking: Blocking,
        at: CallSite,
        f: impl FnOnce(&mut Self, &mut Capturing) -> Result<(), RuntimeError>,
    ) -> Result<(), RuntimeError> {
        self.alive()?;
        if blocking == Blocking::Yes {
            return self.outside_capture("a blocking call", at);
        }
        let Some(mut capture) = self.tracing.capture.take() else { return Ok(()) };
        let trace = capture.name;
        let recorded = match capture.of.queue {
            of if of == self.at => f(self, &mut capture),
            of => Err(TraceError::Queue { trace, of, call: "enqueue_program", at, asked: self.at }.into()),
        };
        self.tracing.capture = Some(capture);
        recorded.map_err(|error| {
            let error = TraceError::Program { why: error.to_string(), at, trace };
            self.give_up(&error.to_string());
            error.into()
        })
    }

    fn record_program(&mut self, capture: &mut Capturing, program: &Program, at: CallSite) -> Result<(), RuntimeError> {
        if let Some(launcher) = &mut self.launcher {
            if !launcher.is_compiled(program) {
                return Err(TraceError::NotResident { program: program.name.clone() }.into());
            }
            let prepared = launcher.prepare(program, self.memory.l1())?;
            return self.record_prepared(capture, &prepared, at);
        }
        let layout = Arc::new(self.layout(program)?);
        self.of_one_sub_device(capture, &program.name, &layout.cores)?;
        let running = Running::new(Arc::new(program.clone()), layout);
        let mode = if self.queue.is_some() { MODE_DEV } else { MODE_HOST };
        let steps = self.steps(&running, mode).map_err(|e| self.explain(e, &[]))?;
        if let Recorded::Plain(sequence) = &mut capture.recorded {
            let go = Go::at(self.config.layout.queue(self.at), self.config.board);
            let number = capture.launches.len();
            lower::addressed(&steps, &go).into_iter().try_for_each(|command| sequence.push(number, command))?;
        }
        self.memory.pin((capture.name, at, &program.name), program.argument_words(), running.layout.cb_ranges());
        capture.add(running.program, running.layout);
        Ok(())
    }

    fn record_prepared(
        &mut self,
        capture: &mut Capturing,
        prepared: &Prepared,
        at: CallSite,
    ) -> Result<(), RuntimeError> {
        let sub = self.of_one_sub_device(capture, prepared.name(), &prepared.plain_layout().cores)?;
        let number = capture.launches.len();
        let (Recorded::Cached(recorded), Some(launcher)) = (&mut capture.recorded, &mut self.launcher) else {
            return Err(RuntimeError::NoCache);
        };
        launcher.select(capture.of.queue, sub)?;
        let layout = launcher.capture(recorded, prepared, number)?;
        self.memory.pin((capture.name, at, prepared.name()), prepared.argument_words(), layout.cb_ranges());
        capture.add(prepared.program(), layout);
        Ok(())
    }

    /// The sub-device of a program that is recorded: that of the programs before it.
    fn of_one_sub_device(
        &self,
        capture: &mut Capturing,
        program: &str,
        cores: &[NocXy],
    ) -> Result<SubDeviceId, RuntimeError> {
        let sub = self.sub_devices.holding(program, cores)?;
        match capture.of.sub.replace(sub) {
            Some(before) if before != sub => {
                Err(TraceError::SubDevices { program: program.to_owned(), sub, before }.into())
            }
            _ => Ok(sub),
        }
    }
}
