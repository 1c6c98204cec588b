//! What the host puts into the command queue, step by step: `[[queue]]`. The actions are those of
//! the runtime's asynchronous calls ([`tilework_runtime::Device`]).

use super::check::Planner;
use super::launches::LaunchTable;
use super::plan::{Home, PlannedBuffer};
use super::schema::{ProgramFile, Use};
use super::storage::array_dtype;
use super::wrong::consequence;
use crate::array::shape_text;
use crate::failure::{Failure, Outcome};
use std::ops::Range;
use tilework_runtime::{Blocking, QueueId};
use toml::Spanned;

/// Steps that one program may have.
pub const MAX_STEPS: usize = 1024;

/// A step as the file has it: one action, and what belongs to it.
#[derive(serde::Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub struct StepDecl {
    /// Writes an array to this buffer.
    pub write: Option<Spanned<String>>,
    /// Runs the launches of the `[[launch]]` of this name.
    pub launch: Option<Spanned<String>>,
    /// Reads this buffer.
    pub read: Option<Spanned<String>>,
    /// Puts an event of this name into the queue.
    pub record: Option<Spanned<String>>,
    /// Lets the queue wait for an event or a read.
    pub wait: Option<Spanned<String>>,
    /// Lets the host wait for an event or a read.
    pub synchronize: Option<Spanned<String>>,
    /// Captures launches in a trace of this name.
    pub trace: Option<Spanned<String>>,
    /// Replays this trace.
    pub replay: Option<Spanned<String>>,
    /// Gives the memory of this trace back.
    pub release: Option<Spanned<String>>,
    /// The command queue that it goes into, 0 or 1; 0 unless given.
    pub queue: Option<Spanned<i64>>,
    /// The input whose array is written; the buffer itself unless given.
    pub from: Option<Spanned<String>>,
    /// The name of what is read; the buffer's unless given.
    pub name: Option<Spanned<String>>,
    /// The `[[launch]]` tables that are captured, by name.
    pub launches: Option<Spanned<Vec<Spanned<String>>>>,
    /// How often a trace is replayed; once unless given.
    pub times: Option<Spanned<i64>>,
    /// Whether the host waits until a write, launch, read or replay is done.
    pub blocking: Option<Spanned<bool>>,
}

/// A step with its queue and its place in the file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlannedStep {
    /// What it does.
    pub step: Step,
    /// The queue that it goes into; none for one that is the host's alone.
    pub queue: Option<QueueId>,
    pub(super) span: Range<usize>,
}

/// A step.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Step {
    /// Writes the array of an input to a buffer; both by position.
    Write { buffer: usize, from: usize, blocking: Blocking },
    /// Runs launches, which are one table of the file.
    Launch { name: String, launches: Range<usize>, blocking: Blocking },
    /// Reads a buffer, by position.
    Read { buffer: usize, name: String, blocking: Blocking },
    /// Puts an event into the queue.
    Record { event: String },
    /// Lets the queue wait for an event or a read.
    Wait { on: String },
    /// Lets the host wait for it.
    Synchronize { on: String },
    /// Captures the launches of these tables in turn.
    Trace { name: String, launches: Vec<LaunchTable> },
    /// Replays a trace so many times.
    Replay { trace: String, times: u32, blocking: Blocking },
    /// Releases a trace.
    Release { trace: String },
}

impl Step {
    /// The name of its action in the file.
    pub fn action(&self) -> &'static str {
        match self {
            Self::Write { .. } => Action::Write.name(),
            Self::Launch { .. } => Action::Launch.name(),
            Self::Read { .. } => Action::Read.name(),
            Self::Record { .. } => Action::Record.name(),
            Self::Wait { .. } => Action::Wait.name(),
            Self::Synchronize { .. } => Action::Synchronize.name(),
            Self::Trace { .. } => Action::Trace.name(),
            Self::Replay { .. } => Action::Replay.name(),
            Self::Release { .. } => Action::Release.name(),
        }
    }
    /// What it names: the input of a write, a launch, what a read, an event or a trace is called.
    pub fn name<'a>(&'a self, buffers: &'a [PlannedBuffer]) -> &'a str {
        match self {
            Self::Write { from, .. } => &buffers[*from].name,
            Self::Launch { name, .. } | Self::Read { name, .. } | Self::Trace { name, .. } => name,
            Self::Replay { trace, .. } | Self::Release { trace } => trace,
            Self::Record { event: on } | Self::Wait { on } | Self::Synchronize { on } => on,
        }
    }
    /// The buffer that it writes or reads, by position.
    pub fn buffer(&self) -> Option<usize> {
        match self {
            Self::Write { buffer, .. } | Self::Read { buffer, .. } => Some(*buffer),
            _ => None,
        }
    }
    /// The name of the trace that it captures.
    pub(super) fn trace(&self) -> Option<&str> {
        match self {
            Self::Trace { name, .. } => Some(name),
            _ => None,
        }
    }
    /// The name of the trace that it releases.
    pub(super) fn released(&self) -> Option<&str> {
        match self {
            Self::Release { trace } => Some(trace),
            _ => None,
        }
    }
    /// The tables whose launches a trace has, by name; none for other steps.
    pub fn captured(&self) -> Vec<String> {
        match self {
            Self::Trace { launches, .. } => launches.iter().map(|(name, _)| name.clone()).collect(),
            _ => Vec::new(),
        }
    }
    /// How often a trace is replayed.
    pub fn times(&self) -> Option<u32> {
        match self {
            Self::Replay { times, .. } => Some(*times),
            _ => None,
        }
    }
    /// The name that later steps can wait for.
    pub(super) fn mark(&self) -> Option<&str> {
        match self {
            Self::Read { name, .. } | Self::Record { event: name } => Some(name),
            _ => None,
        }
    }
}

/// What a step does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Action {
    Write,
    Launch,
    Read,
    Record,
    Wait,
    Synchronize,
    Trace,
    Replay,
    Release,
}

impl Action {
    const ALL: [Self; 9] = [
        Self::Write,
        Self::Launch,
        Self::Read,
        Self::Record,
        Self::Wait,
        Self::Synchronize,
        Self::Trace,
        Self::Replay,
        Self::Release,
    ];
    /// Those that go into the queue that the step names.
    const QUEUED: [Self; 6] = [Self::Write, Self::Launch, Self::Read, Self::Record, Self::Wait, Self::Trace];

    const fn name(self) -> &'static str {
        match self {
            Self::Write => "write",
            Self::Launch => "launch",
            Self::Read => "read",
            Self::Record => "record",
            Self::Wait => "wait",
            Self::Synchronize => "synchronize",
            Self::Trace => "trace",
            Self::Replay => "replay",
            Self::Release => "release",
        }
    }
    fn of(self, decl: &StepDecl) -> Option<&Spanned<String>> {
        let value = match self {
            Self::Write => &decl.write,
            Self::Launch => &decl.launch,
            Self::Read => &decl.read,
            Self::Record => &decl.record,
            Self::Wait => &decl.wait,
            Self::Synchronize => &decl.synchronize,
            Self::Trace => &decl.trace,
            Self::Replay => &decl.replay,
            Self::Release => &decl.release,
        };
        value.as_ref()
    }
}

/// What steps can name.
pub(super) struct Named<'a> {
    pub(super) file: &'a ProgramFile,
    pub(super) buffers: &'a [PlannedBuffer],
    pub(super) launches: &'a [LaunchTable],
}

impl StepDecl {
    pub(super) fn blocking(&self) -> Blocking {
        match self.blocking.as_ref().map(Spanned::get_ref) {
            Some(true) => Blocking::Yes,
            _ => Blocking::No,
        }
    }
}

impl ProgramFile {
    /// Command queues of the program: as many as its steps name.
    pub(super) fn queues(&self) -> u8 {
        let named = self.queue.iter().filter_map(|step| step.get_ref().queue.as_ref().and_then(queue_id));
        1 + named.max().unwrap_or_default().number()
    }
}

/// The queue of this number.
fn queue_id(number: &Spanned<i64>) -> Option<QueueId> {
    QueueId::new(u8::try_from(*number.get_ref()).ok()?)
}

impl Planner<'_> {
    /// The steps in their order; none if the file has none.
    pub(super) fn steps(&mut self, named: &Named<'_>) -> Vec<PlannedStep> {
        let file = named.file;
        if let Some(extra) = file.queue.get(MAX_STEPS) {
            let message = format!("{} steps; a program has at most {MAX_STEPS}", file.queue.len());
            self.wrong.add(self.source.error(extra.span(), message));
        }
        let (mut steps, mut whole) = (Vec::new(), !file.broken.steps);
        for decl in file.queue.iter().take(MAX_STEPS) {
            let step = self.step(decl, named, &steps, whole);
            match self.wrong.keep(step) {
                Some(step) => steps.push(step),
                None => whole = false,
            }
        }
        if whole && !file.queue.is_empty() {
            self.left_out(named, &steps);
        }
        steps
    }

    /// A step behind `before`; `whole` tells whether these are all before it.
    fn step(
        &self,
        decl: &Spanned<StepDecl>,
        named: &Named<'_>,
        before: &[PlannedStep],
        whole: bool,
    ) -> Outcome<PlannedStep> {
        let (action, what) = self.action(decl)?;
        let decl = decl.get_ref();
        let mut queue = match action {
            Action::Synchronize => None,
            _ => Some(self.queue(decl)?),
        };
        let step = match action {
            Action::Trace => self.trace(what, decl, named, before, whole)?,
            Action::Replay => {
                queue = self.captured(what, before, whole)?.queue;
                self.replay(what, decl)?
            }
            Action::Release => {
                queue = self.captured(what, before, whole)?.queue;
                Step::Release { trace: what.get_ref().clone() }
            }
            _ => self.command(action, what, decl, named, (before, whole))?,
        };
        let own = decl.name.as_ref().unwrap_or(what);
        let same = |mark: &&str| before.iter().any(|other| other.step.mark() == Some(mark));
        match step.mark().filter(same) {
            Some(mark) => self.fail(own.span(), format!("two reads or events are named \"{mark}\"")),
            None => Ok(PlannedStep { step, queue, span: what.span() }),
        }
    }

    /// A step that has nothing to do with traces.
    fn command(
        &self,
        action: Action,
        what: &Spanned<String>,
        decl: &StepDecl,
        named: &Named<'_>,
        (before, whole): (&[PlannedStep], bool),
    ) -> Outcome<Step> {
        let blocking = decl.blocking();
        Ok(match action {
            Action::Write => {
                let buffer = self.buffer_of(what, named)?;
                let from = match &decl.from {
                    Some(from) => self.input_of(from, named)?,
                    None if named.buffers[buffer].usage == Use::Input => buffer,
                    None => {
                        let message = format!("buffer \"{}\" is no input; give from = \"INPUT\"", what.get_ref());
                        return self.fail(what.span(), message);
                    }
                };
                self.fits(decl.from.as_ref().unwrap_or(what), &named.buffers[from], &named.buffers[buffer])?;
                Step::Write { buffer, from, blocking }
            }
            Action::Launch => {
                let launches = self.launches_of(what, named)?;
                Step::Launch { name: what.get_ref().clone(), launches, blocking }
            }
            Action::Read => {
                let (buffer, name) = (self.buffer_of(what, named)?, decl.name.as_ref().unwrap_or(what));
                self.check_word("read", name)?;
                Step::Read { buffer, name: name.get_ref().clone(), blocking }
            }
            Action::Record => {
                self.check_word("event", what)?;
                Step::Record { event: what.get_ref().clone() }
            }
            Action::Wait => Step::Wait { on: self.mark_of(what, before, whole)? },
            _ => Step::Synchronize { on: self.mark_of(what, before, whole)? },
        })
    }

    /// The action of a step, which has nothing that belongs to others.
    fn action<'d>(&self, decl: &'d Spanned<StepDecl>) -> Outcome<(Action, &'d Spanned<String>)> {
        let (span, decl) = (decl.span(), decl.get_ref());
        let mut given = Action::ALL.into_iter().filter_map(|action| Some((action, action.of(decl)?)));
        let Some((action, what)) = given.next() else {
            let names = Action::ALL.map(Action::name).join(", ");
            return self.fail(span, format!("a step without an action; give one of {names}"));
        };
        if let Some((second, other)) = given.next() {
            let message = format!("a step has {} and {}; give each its own step", action.name(), second.name());
            return self.fail(other.span(), message);
        }
        let only = |key: &str, of: &[Action], span: Option<Range<usize>>| match span {
            Some(span) if !of.contains(&action) => {
                let names: Vec<_> = of.iter().map(|action| action.name()).collect();
                self.fail(
                    span,
                    format!("\"{key}\" belongs to {}, but this step has {}", names.join(", "), action.name()),
                )
            }
            _ => Ok(()),
        };
        only("from", &[Action::Write], decl.from.as_ref().map(Spanned::span))?;
        only("name", &[Action::Read], decl.name.as_ref().map(Spanned::span))?;
        only("launches", &[Action::Trace], decl.launches.as_ref().map(Spanned::span))?;
        only("times", &[Action::Replay], decl.times.as_ref().map(Spanned::span))?;
        // A trace stays in its queue, and a host that waits is of none.
        only("queue", &Action::QUEUED, decl.queue.as_ref().map(Spanned::span))?;
        let moving = [Action::Write, Action::Launch, Action::Read, Action::Replay];
        only("blocking", &moving, decl.blocking.as_ref().map(Spanned::span))?;
        Ok((action, what))
    }

    /// A buffer that moves, by position.
    fn buffer_of(&self, name: &Spanned<String>, named: &Named<'_>) -> Outcome<usize> {
        let position = self.known_buffer(name, named, |_| true, "buffer")?;
        if matches!(named.buffers[position].home, Home::EachCore) {
            let message = format!("buffer \"{}\" is the same range of every core: it cannot be moved", name.get_ref());
            return self.fail(name.span(), message);
        }
        Ok(position)
    }

    /// An input, by position.
    fn input_of(&self, name: &Spanned<String>, named: &Named<'_>) -> Outcome<usize> {
        self.known_buffer(name, named, |usage| usage == Use::Input, "input")
    }

    fn known_buffer(
        &self,
        name: &Spanned<String>,
        named: &Named<'_>,
        is: impl Fn(Use) -> bool,
        kind: &str,
    ) -> Outcome<usize> {
        let text = name.get_ref();
        if let Some(position) = named.buffers.iter().position(|one| one.name == *text && is(one.usage)) {
            return Ok(position);
        }
        let declared = named.file.buffers.0.iter().filter(|(_, decl)| is(*decl.get_ref().usage.get_ref()));
        let names: Vec<&str> = declared.map(|(name, _)| name.get_ref().as_str()).collect();
        if names.contains(&text.as_str()) || named.file.broken.buffers.contains(text) {
            return Err(consequence());
        }
        let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        self.fail(name.span(), format!("no {kind} \"{text}\"; there are: {known}"))
    }

    /// Whether an input's array is one for a buffer; `at` is what names it.
    fn fits(&self, at: &Spanned<String>, input: &PlannedBuffer, buffer: &PlannedBuffer) -> Outcome<()> {
        let (found, expected) = (array_dtype(input.dtype), array_dtype(buffer.dtype));
        if found == expected && input.shape == buffer.shape {
            return Ok(());
        }
        let of = |dtype: tilework_dtype::DType, shape: &[u64]| format!("{} {}", dtype.name(), shape_text(shape));
        let (found, expected) = (of(found, &input.shape), of(expected, &buffer.shape));
        let message =
            format!("the array of \"{}\" is {found}, buffer \"{}\" takes {expected}", input.name, buffer.name);
        self.fail(at.span(), message)
    }

    /// The queue that a step goes into.
    fn queue(&self, decl: &StepDecl) -> Outcome<QueueId> {
        let Some(number) = &decl.queue else { return Ok(QueueId::FIRST) };
        match queue_id(number) {
            Some(queue) => Ok(queue),
            None => {
                let message =
                    format!("no queue {}; a device has queue 0 and, if a step names it, queue 1", number.get_ref());
                self.fail(number.span(), message)
            }
        }
    }

    /// The launches of a table.
    pub(super) fn launches_of(&self, name: &Spanned<String>, named: &Named<'_>) -> Outcome<Range<usize>> {
        match named.launches.iter().find(|(known, _)| known == name.get_ref()) {
            // One that is wrong has none.
            Some((_, launches)) if launches.is_empty() => Err(consequence()),
            Some((_, launches)) => Ok(launches.clone()),
            None if named.file.broken.launches => Err(consequence()),
            None => {
                let names: Vec<&str> = named.launches.iter().map(|(name, _)| name.as_str()).collect();
                self.fail(name.span(), format!("no launch \"{}\"; there are: {}", name.get_ref(), names.join(", ")))
            }
        }
    }

    /// The name of an event or a read of an earlier step.
    fn mark_of(&self, name: &Spanned<String>, before: &[PlannedStep], whole: bool) -> Outcome<String> {
        let marks: Vec<&str> = before.iter().filter_map(|other| other.step.mark()).collect();
        match name.get_ref() {
            text if marks.contains(&text.as_str()) => Ok(text.clone()),
            _ if !whole => Err(consequence()),
            text => {
                let known = if marks.is_empty() { "none".to_owned() } else { marks.join(", ") };
                self.fail(name.span(), format!("no event or read \"{text}\" before this step; there are: {known}"))
            }
        }
    }

    /// Refuses what the steps leave out: nothing else moves or runs it.
    fn left_out(&mut self, named: &Named<'_>, steps: &[PlannedStep]) {
        let mut found: Vec<Failure> = Vec::new();
        for (position, buffer) in named.buffers.iter().enumerate() {
            let used = |planned: &PlannedStep| match &planned.step {
                Step::Write { from, .. } => buffer.usage == Use::Input && *from == position,
                Step::Read { buffer: read, .. } => buffer.usage == Use::Output && *read == position,
                _ => false,
            };
            let missing = match buffer.usage {
                Use::Input => "input \"{}\" is written by no step; add { write = \"{}\" }",
                Use::Output => "output \"{}\" is read by no step; add { read = \"{}\" }",
                Use::Scratch => continue,
            };
            if !steps.iter().any(used) {
                found.push(self.source.error(buffer.span.clone(), missing.replace("{}", &buffer.name)));
            }
        }
        for (position, (name, launches)) in named.launches.iter().enumerate() {
            let runs =
                |planned: &PlannedStep| matches!(&planned.step, Step::Launch { launches: run, .. } if run == launches);
            if !launches.is_empty() && !steps.iter().any(runs) {
                let message = format!("launch \"{name}\" is run by no step; add {{ launch = \"{name}\" }}");
                // The launch of a file that says nothing of launches has no place.
                let span = named.file.launch.get(position).map_or_else(|| named.file.name.span(), Spanned::span);
                found.push(self.source.error(span, message));
            }
        }
        found.into_iter().for_each(|failure| self.wrong.add(failure));
    }
}
