//! What the host sends: a script of records, and the commands that the dispatcher must see.

use tilework_cq::{PrefetchCommand, Record, relay_inline};

/// Sixteen bytes of memory: which record's they are, and which of its cells. Every memory of the
/// model is made of these, so that a byte that is old, foreign, lost or doubled is known as such.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Cell {
    step: u8,
    part: u8,
}

impl Cell {
    /// Memory that nobody has written.
    pub(crate) const EMPTY: Self = Self { step: u8::MAX, part: u8::MAX };

    /// Cell `part` of record `step`; the header is part 0.
    pub(crate) fn new(step: usize, part: usize) -> Self {
        Self { step: step.try_into().unwrap(), part: part.try_into().unwrap() }
    }
}

/// Bytes of a [`Cell`]: the unit in which a ring entry counts.
pub(crate) const CELL: u32 = 16;

/// A record of the script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// `RELAY_INLINE` of a write to a worker; the cells of the whole write command.
    Write(usize),
    /// `RELAY_INLINE_NOFLUSH` of so many cells, which begin the next command or go on with it.
    Part(usize),
    /// `RELAY_INLINE` of a host event: one page of the completion FIFO.
    Event,
    /// `RELAY_INLINE` of a `WAIT` with barrier and notification.
    Barrier,
    /// `STALL`: waits for the notification.
    Stall,
    /// `RELAY_INLINE` of the dispatcher's `TERMINATE`.
    End,
    /// The prefetcher's `TERMINATE`: waits until all pages are back.
    Quit,
}

impl Step {
    /// Cells that go to the dispatcher.
    pub(crate) fn payload(self) -> usize {
        match self {
            Self::Write(cells) | Self::Part(cells) => cells,
            Self::Event | Self::Barrier | Self::End => 1,
            Self::Stall | Self::Quit => 0,
        }
    }

    fn record(self) -> Record {
        match self {
            Self::Stall => Record::new(&PrefetchCommand::Stall).unwrap(),
            Self::Quit => Record::new(&PrefetchCommand::Terminate).unwrap(),
            // Sizes are what counts: the bytes are the model's own.
            _ => relay_inline(&vec![0; self.payload() * CELL as usize]).unwrap(),
        }
    }
}

/// A command as the dispatcher must see it.
#[derive(Clone, Debug)]
pub(crate) struct Command {
    /// What ends it: the step that is relayed with a flush.
    pub(crate) kind: Step,
    /// All its cells.
    pub(crate) cells: Vec<Cell>,
}

/// A script, with what follows from it.
#[derive(Clone, Debug)]
pub(crate) struct Script {
    pub(crate) steps: Vec<Step>,
    pub(crate) records: Vec<Record>,
    pub(crate) commands: Vec<Command>,
}

impl Script {
    /// The script of `steps`, and at its end both `TERMINATE`s.
    pub(crate) fn new(steps: &[Step]) -> Self {
        let steps = [steps, &[Step::End, Step::Quit]].concat();
        let records = steps.iter().map(|step| step.record()).collect();
        let mut commands = Vec::new();
        let mut cells = Vec::new();
        for (i, &step) in steps.iter().enumerate() {
            cells.extend((1..=step.payload()).map(|part| Cell::new(i, part)));
            if !matches!(step, Step::Part(_) | Step::Stall | Step::Quit) {
                commands.push(Command { kind: step, cells: std::mem::take(&mut cells) });
            }
        }
        Self { steps, records, commands }
    }

    /// Commands in front of step `step`.
    pub(crate) fn commands_before(&self, step: usize) -> usize {
        self.commands.iter().take_while(|command| command.cells[0] < Cell::new(step, 0)).count()
    }

    /// Events in it.
    pub(crate) fn events(&self) -> usize {
        self.steps.iter().filter(|&&step| step == Step::Event).count()
    }
}
