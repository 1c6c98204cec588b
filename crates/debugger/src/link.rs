//! The link to a chip that a debugger stops while the host waits.

use crate::control::Debugger;
use crate::goal::{Goal, Stop};
use crate::history::{Answer, Begin, Frame, PastLook};
use crate::machine::Machine;
use crate::monitor::title;
use crate::server::{Answer as Reply, Reason, signal};
use crate::target::tid_of;
use gdbstub::common::Signal;
use gdbstub::target::ext::base::reverse_exec::ReplayLogPosition;
use tilework_abi::addr::{Cycle, PcieAddr};
use tilework_abi::noc::NocXy;
use tilework_abi::tlb::Bar;
use tilework_driver::{HostLink, Inspect, LinkError, Note};
use tilework_sim::{Advanced, Chip, Thread};

/// Windows between two looks at the connection.
const LOOK: u32 = 4096;
/// No cycle.
const NEVER: Cycle = Cycle::MAX;

/// How the link runs the chip.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mode {
    /// Under the debugger.
    Watched,
    /// Nobody is attached any more.
    Free,
    /// Nothing more is run.
    Over,
}

/// A chip under the debugger. Its calls are those of the chip: they take the same cycles, and the
/// host finds the same bytes.
pub struct DebugLink {
    /// Absent only while it is dropped.
    machine: Option<Box<Machine>>,
    debugger: Debugger,
    mode: Mode,
    windows: u32,
    /// Calls of the host that have ended.
    calls: usize,
    /// The call that is under way.
    frame: Frame,
    /// The checkpoint to go on from, while calls before it are answered.
    past: Option<usize>,
    /// What the host sees of the chip meanwhile.
    look: PastLook,
}

impl DebugLink {
    pub(crate) fn new(machine: Machine, debugger: Debugger) -> Self {
        let mode = if debugger.session().is_over { Mode::Free } else { Mode::Watched };
        let mut machine = Box::new(machine);
        let past = machine.nearest();
        let (frame, look) = (Frame::AtOnce, PastLook::default());
        Self { machine: Some(machine), debugger, mode, windows: 0, calls: 0, frame, past, look }
    }

    /// The chip.
    pub fn chip(&self) -> Option<&Chip> {
        self.machine.as_ref().map(|machine| &machine.chip)
    }

    /// The chip, for what takes no time.
    pub fn chip_mut(&mut self) -> &mut Chip {
        match &mut self.machine {
            Some(machine) => &mut machine.chip,
            None => unreachable!("only `drop` takes it"),
        }
    }

    /// Waits for gdb, and lets it do what it wants before the chip runs.
    pub(crate) fn attach(&mut self) -> Result<(), LinkError> {
        self.stopped(Stop::Kernel(Thread::new(0)))
    }

    fn machine(&mut self) -> Result<&mut Machine, LinkError> {
        match (self.mode, &mut self.machine) {
            (Mode::Over, _) | (_, None) => Err(over()),
            (_, Some(machine)) => Ok(machine),
        }
    }

    // Calls

    /// How the next call of the host begins.
    fn begin(&mut self) -> Result<Begin, LinkError> {
        let (past, calls) = (self.past, self.calls);
        let Some(index) = past else { return Ok(Begin::Anew) };
        let machine = self.machine()?;
        match machine.state.history.answer(index, calls) {
            Some((answer, look)) => {
                (self.calls, self.look) = (calls + 1, look);
                Ok(Begin::Answered(answer))
            }
            None => {
                let frame = machine.restore(index)?;
                self.past = None;
                Ok(Begin::GoesOn(frame))
            }
        }
    }

    /// A call: `start` makes it, `wait` lets the chip run until it has ended.
    fn call(
        &mut self,
        start: impl FnOnce(&mut Chip) -> Result<Frame, LinkError>,
        wait: impl FnOnce(&mut Self, Frame) -> Result<Answer, LinkError>,
    ) -> Result<Answer, LinkError> {
        let frame = match self.begin()? {
            Begin::Answered(answer) => return answer,
            Begin::GoesOn(frame) => Ok(frame),
            Begin::Anew => start(&mut self.machine()?.chip),
        };
        let answer = frame.and_then(|frame| {
            self.frame = frame;
            wait(self, frame)
        });
        if let (Mode::Watched, Some(machine)) = (self.mode, &mut self.machine) {
            machine.state.history.ended(self.calls, &answer, &machine.chip);
        }
        self.calls += 1;
        answer
    }

    /// A call that takes no time.
    fn at_once(&mut self, act: impl FnOnce(&mut Chip) -> Result<Answer, LinkError>) -> Result<Answer, LinkError> {
        self.call(|_| Ok(Frame::AtOnce), |link, _| act(&mut link.machine()?.chip))
    }

    /// Runs one window, at most to `limit`, and stops after it if there is a reason.
    fn tick(&mut self, limit: Cycle) -> Result<Advanced, LinkError> {
        let (watched, calls, frame) = (self.mode == Mode::Watched, self.calls, self.frame);
        let machine = self.machine()?;
        if watched {
            machine.keep(calls, frame);
        }
        let stop = if watched { machine.window_end(limit) } else { limit };
        let advanced = match machine.chip.advance(stop) {
            Ok(advanced) => advanced,
            Err(error) => {
                let error = LinkError::from(error);
                if let (true, LinkError::Fault(fault)) = (watched, &error) {
                    let thread = machine.thread_of(fault.tile, fault.core);
                    self.found()?;
                    self.stopped(Stop::Fault(thread, fault.text.clone()))?;
                }
                return Err(error);
            }
        };
        if watched
            && advanced != Advanced::Ran
            && let Some(stop) = machine.check()
        {
            self.stopped(stop)?;
        }
        self.windows = self.windows.wrapping_add(1);
        if watched && self.windows.is_multiple_of(LOOK) {
            self.look()?;
        }
        Ok(advanced)
    }

    /// Stops for what was found before the chip stops for good.
    fn found(&mut self) -> Result<(), LinkError> {
        let found = self.machine()?.found();
        found.into_iter().try_for_each(|stop| self.stopped(stop))
    }

    /// Whether gdb interrupts.
    fn look(&mut self) -> Result<(), LinkError> {
        let Some(machine) = &mut self.machine else { return Err(over()) };
        if self.mode != Mode::Watched || machine.state.goal == Goal::Start {
            return Ok(());
        }
        let polled = self.debugger.session().server.poll(machine);
        match polled {
            Ok(false) => Ok(()),
            Ok(true) => {
                let focus = machine.state.focus;
                self.stopped(Stop::Interrupt(focus))
            }
            Err(answer) => self.answered(answer),
        }
    }

    /// Nothing can happen any more, and the host waits.
    fn deadlock(&mut self) -> LinkError {
        let result = self.machine().map(|machine| {
            let (cycle, waiting) = (machine.chip.last_event(), machine.chip.waiting());
            let first = waiting.first().map(|core| (core.tile, core.core)).unzip();
            (cycle, machine.thread_of(first.0, first.1), waiting.len())
        });
        match result {
            Err(error) => error,
            Ok((cycle, thread, cores)) => {
                let error = LinkError::Deadlock { cycle };
                let what = format!("{error}; {cores} cores wait");
                let stopped = self.found().and_then(|()| self.stopped(Stop::Deadlock(thread, what)));
                stopped.err().unwrap_or(error)
            }
        }
    }

    /// The chip has stopped: gdb does what it wants with it.
    fn stopped(&mut self, stop: Stop) -> Result<(), LinkError> {
        let mut stop = Some(stop);
        while let (Some(why), Mode::Watched) = (stop.take(), self.mode) {
            let Some(machine) = &mut self.machine else { return Err(over()) };
            let Some(thread) = why.thread() else { return self.go_back() };
            machine.stopped(thread);
            machine.state.why = describe(&why);
            if let Stop::Found(_, found) = &why {
                machine.state.told.insert(found.clone());
            }
            let mut session = self.debugger.session();
            let answer = match &why {
                Stop::Kernel(_) => session.server.attach(machine).map_err(|error| {
                    LinkError::Failed(format!("the port of the debugger cannot be had any more: {error}"))
                })?,
                _ => {
                    if let Some(line) = told(machine, &why) {
                        session.server.print(&line);
                    }
                    session.server.stopped(machine, reason(&why))
                }
            };
            drop(session);
            self.answered(answer)?;
            if self.mode == Mode::Watched {
                stop = self.machine()?.resumed();
            }
        }
        Ok(())
    }

    /// What gdb's answer to a stop means for the run.
    fn answered(&mut self, answer: Reply) -> Result<(), LinkError> {
        match answer {
            Reply::Runs => match self.machine()?.state.goal {
                Goal::Back(_) => self.go_back(),
                _ => Ok(()),
            },
            Reply::Gone => {
                self.mode = Mode::Free;
                self.debugger.session().is_over = true;
                Ok(())
            }
            Reply::Killed => {
                self.mode = Mode::Over;
                let mut session = self.debugger.session();
                (session.is_over, session.killed) = (true, true);
                Err(over())
            }
        }
    }

    /// Gives the run up, so that it is repeated.
    fn go_back(&mut self) -> Result<(), LinkError> {
        self.mode = Mode::Over;
        self.debugger.session().goes_back = true;
        Err(over())
    }
}

impl Drop for DebugLink {
    fn drop(&mut self) {
        let Some(machine) = self.machine.take() else { return };
        let mut session = self.debugger.session();
        match session.goes_back {
            true => session.state = Some(machine.state),
            false => session.last = Some(*machine),
        }
    }
}

fn over() -> LinkError {
    LinkError::Failed("the debugger has ended the run".into())
}

/// What gdb is told of a stop.
fn reason(stop: &Stop) -> Reason {
    match stop {
        Stop::Library(thread) => Reason::Library(tid_of(*thread)),
        Stop::Break(thread) => Reason::SwBreak(tid_of(*thread)),
        Stop::Watch { thread, gdb: Some((kind, addr)), .. } => {
            Reason::Watch { tid: tid_of(*thread), kind: *kind, addr: *addr }
        }
        Stop::Begin(thread) => Reason::ReplayLog { tid: Some(tid_of(*thread)), pos: ReplayLogPosition::Begin },
        Stop::Interrupt(thread) => signal(*thread, Signal::SIGINT),
        Stop::Fault(thread, _) => signal(*thread, Signal::SIGSEGV),
        Stop::Deadlock(thread, _) => signal(*thread, Signal::SIGSTOP),
        Stop::Done(thread)
        | Stop::Kernel(thread)
        | Stop::Passed(thread, _)
        | Stop::Found(thread, _)
        | Stop::Watch { thread, .. } => signal(*thread, Signal::SIGTRAP),
        Stop::Again => Reason::Signal(Signal::SIGTRAP),
    }
}

/// A stop in words.
fn describe(stop: &Stop) -> String {
    match stop {
        Stop::Kernel(_) => "the first kernel begins".into(),
        Stop::Library(_) => "new code was loaded".into(),
        Stop::Break(_) => "at a breakpoint".into(),
        Stop::Passed(_, at) => format!("has passed the breakpoint at {at:#x}"),
        Stop::Done(_) => "the step is done".into(),
        Stop::Begin(_) => "the beginning of the run".into(),
        Stop::Interrupt(_) => "interrupted".into(),
        Stop::Fault(_, what) | Stop::Deadlock(_, what) | Stop::Watch { what, .. } => what.clone(),
        Stop::Found(_, found) => found.what.clone(),
        Stop::Again => String::new(),
    }
}

/// What gdb prints of a stop besides its own words.
fn told(machine: &Machine, stop: &Stop) -> Option<String> {
    let thread = match stop {
        Stop::Break(thread) | Stop::Passed(thread, _) | Stop::Fault(thread, _) | Stop::Deadlock(thread, _) => thread,
        Stop::Watch { what, .. } => return Some(what.clone()),
        Stop::Found(thread, found) => {
            return Some(format!("cycle {}, {}: {}", found.at, title(&machine.chip, *thread), found.what));
        }
        _ => return None,
    };
    let cycle = machine.chip.clock_now();
    Some(format!("cycle {cycle}, {}: {}", title(&machine.chip, *thread), machine.state.why))
}

/// The answer of a call is that of another one: the host has not done the same again.
fn other_call() -> LinkError {
    LinkError::Failed("the run was not the same when it was repeated".into())
}

/// Fills `out` with the bytes of an answer.
fn fill(answer: &Answer, out: &mut [u8]) -> Result<(), LinkError> {
    match answer {
        Answer::Bytes(bytes) if bytes.len() == out.len() => {
            out.copy_from_slice(bytes);
            Ok(())
        }
        _ => Err(other_call()),
    }
}

impl HostLink for DebugLink {
    fn bar_write(&mut self, bar: Bar, offset: u64, data: &[u8]) -> Result<(), LinkError> {
        let start = |chip: &mut Chip| Ok(chip.begin_write(bar, offset, data).map(|()| Frame::Write)?);
        self.call(start, |link, _| {
            while !link.machine()?.chip.has_room() {
                if link.tick(NEVER)? == Advanced::Quiet {
                    return Err(link.deadlock());
                }
            }
            Ok(Answer::Done)
        })
        .map(drop)
    }

    fn bar_read(&mut self, bar: Bar, offset: u64, out: &mut [u8]) -> Result<(), LinkError> {
        let len = out.len();
        let answer = self.call(
            |chip| Ok(Frame::Read(chip.begin_read(bar, offset, len)?)),
            |link, frame| {
                let Frame::Read(ticket) = frame else { return Err(other_call()) };
                let mut bytes = vec![0; len];
                while !link.machine()?.chip.end_read(ticket, &mut bytes)? {
                    if link.tick(NEVER)? == Advanced::Quiet {
                        return Err(link.deadlock());
                    }
                }
                Ok(Answer::Bytes(bytes.into()))
            },
        )?;
        fill(&answer, out)
    }

    fn pin(&mut self, len: usize, wish: PcieAddr) -> Result<PcieAddr, LinkError> {
        match self.at_once(|chip| HostLink::pin(chip, len, wish).map(Answer::Address))? {
            Answer::Address(address) => Ok(address),
            _ => Err(other_call()),
        }
    }

    fn pinned_read(&mut self, address: PcieAddr, out: &mut [u8]) -> Result<(), LinkError> {
        let len = out.len();
        let answer = self.at_once(|chip| {
            let mut bytes = vec![0; len];
            HostLink::pinned_read(chip, address, &mut bytes)?;
            Ok(Answer::Bytes(bytes.into()))
        })?;
        fill(&answer, out)
    }

    fn pinned_write(&mut self, address: PcieAddr, data: &[u8]) -> Result<(), LinkError> {
        self.at_once(|chip| HostLink::pinned_write(chip, address, data).map(|()| Answer::Done)).map(drop)
    }

    fn wait_word(&mut self, address: PcieAddr, seen: u32, budget: Cycle) -> Result<u32, LinkError> {
        match self.wait(&[(address.get(), seen)], budget)? {
            Answer::Word(word) => Ok(word),
            _ => Err(other_call()),
        }
    }

    fn wait_words(&mut self, words: &[(PcieAddr, u32)], budget: Cycle) -> Result<(), LinkError> {
        let words: Vec<(u64, u32)> = words.iter().map(|&(address, seen)| (address.get(), seen)).collect();
        self.wait(&words, budget).map(drop)
    }

    fn idle(&mut self, cycles: Cycle) -> Result<(), LinkError> {
        let start = |chip: &mut Chip| Ok(Frame::Until(chip.now().saturating_add(cycles)));
        self.call(start, |link, frame| {
            let Frame::Until(stop) = frame else { return Err(other_call()) };
            while link.machine()?.chip.clock_now() < stop {
                if link.tick(stop)? == Advanced::Quiet {
                    break;
                }
            }
            link.machine()?.chip.host_at(stop);
            Ok(Answer::Done)
        })
        .map(drop)
    }

    fn cycles(&self) -> Cycle {
        match (self.past, &self.machine) {
            (Some(_), _) => self.look.now,
            (None, machine) => machine.as_ref().map_or(0, |machine| machine.chip.now()),
        }
    }

    fn peek(&mut self, tile: NocXy, at: u32, out: &mut [u8]) -> bool {
        let len = out.len();
        let answer = self.at_once(|chip| {
            let mut bytes = vec![0; len];
            let is_there = HostLink::peek(chip, tile, at, &mut bytes);
            Ok(if is_there { Answer::Bytes(bytes.into()) } else { Answer::Done })
        });
        answer.is_ok_and(|answer| fill(&answer, out).is_ok())
    }

    fn listens(&self) -> bool {
        self.machine.as_ref().is_some_and(|machine| machine.witness.is_some())
    }

    fn note(&mut self, note: &Note) {
        // What was told before a checkpoint is known there.
        if let (None, Some(machine)) = (self.past, &mut self.machine) {
            machine.chip.note(note);
        }
    }

    fn settle_observers(&mut self) {
        if let (None, Some(machine)) = (self.past, &mut self.machine) {
            machine.chip.settle_observers();
        }
    }

    fn inspect(&self) -> Option<&dyn Inspect> {
        match (self.past, &self.machine) {
            (Some(_), _) => Some(&self.look),
            (None, machine) => machine.as_ref().map(|machine| &machine.chip as &dyn Inspect),
        }
    }
}

impl DebugLink {
    fn wait(&mut self, words: &[(u64, u32)], budget: Cycle) -> Result<Answer, LinkError> {
        let start = |chip: &mut Chip| Ok(Frame::Until(chip.now().saturating_add(budget)));
        self.call(start, |link, frame| {
            let Frame::Until(stop) = frame else { return Err(other_call()) };
            let mut version = None;
            loop {
                if let Some((_, word)) = link.machine()?.chip.changed(words, &mut version)? {
                    return Ok(Answer::Word(word));
                }
                match link.tick(stop)? {
                    Advanced::Quiet => return Err(link.deadlock()),
                    Advanced::Reached if link.machine()?.chip.clock_now() >= stop => {
                        return Err(LinkError::Budget { cycles: budget });
                    }
                    Advanced::Ran | Advanced::Reached => {}
                }
            }
        })
    }
}
