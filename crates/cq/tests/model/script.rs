//! What the host sends: a script of records, and the commands that the dispatcher must see.

use crate::machine::SCRATCH_CELLS;
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
    /// `RELAY_INLINE` of a write to a worker; the cells of the whole write command, or of its rest.
    Write(usize),
    /// `RELAY_INLINE_NOFLUSH` of so many cells, which begin the next command or go on with it.
    Part(usize),
    /// `RELAY_LINEAR` of so many cells, the rest of a write that a part has begun.
    Source(usize),
    /// `PAGED_TO_RINGBUFFER`: where in the ring buffer, and how many cells.
    Fill(usize, usize),
    /// `RELAY_RINGBUFFER` of pieces, each with its start and its cells, the rest of a write that a
    /// part has begun.
    Pieces(&'static [(usize, usize)]),
    /// `RELAY_INLINE` of a host event: one page of the completion FIFO.
    Event,
    /// `RELAY_INLINE` of a `WAIT` with barrier and notification.
    Barrier,
    /// `STALL`: waits for the notification.
    Stall,
    /// `EXEC_BUF`: so many of the next steps lie in a command buffer, the last as `EXEC_BUF_END`;
    /// behind them it has so many units of 64 bytes that are no commands.
    Exec(usize, usize),
    /// `RELAY_INLINE` of the dispatcher's `TERMINATE`.
    End,
    /// The prefetcher's `TERMINATE`: waits until all pages are back.
    Quit,
}

impl Step {
    /// Cells behind the header in its record, which go to the dispatcher.
    pub(crate) fn payload(self) -> usize {
        match self {
            Self::Write(cells) | Self::Part(cells) => cells,
            Self::Event | Self::Barrier | Self::End => 1,
            _ => 0,
        }
    }

    /// Whether it ends a command of the dispatcher.
    fn ends(self) -> bool {
        use Step::{Barrier, End, Event, Pieces, Source, Write};
        matches!(self, Write(_) | Source(_) | Pieces(_) | Event | Barrier | End)
    }

    /// Whether the command that it ends is a write to a worker.
    pub(crate) fn writes(self) -> bool {
        matches!(self, Self::Write(_) | Self::Source(_) | Self::Pieces(_))
    }

    /// Bytes to the next command.
    pub(crate) fn stride(self) -> u32 {
        ((1 + self.payload()) as u32 * CELL).next_multiple_of(64)
    }

    /// A record of its size: the bytes are the model's own.
    fn record(self) -> Record {
        match self.payload() {
            0 => Record::new(&PrefetchCommand::Stall).unwrap(),
            cells => relay_inline(&vec![0; cells * CELL as usize]).unwrap(),
        }
    }
}

/// A command as the dispatcher must see it.
#[derive(Clone, Debug)]
pub(crate) struct Command {
    /// The step that ends it.
    pub(crate) kind: Step,
    /// All its cells.
    pub(crate) cells: Vec<Cell>,
}

/// A command buffer in DRAM.
#[derive(Clone, Debug)]
pub(crate) struct Buffer {
    /// All of it.
    pub(crate) cells: Vec<Cell>,
    /// The step that is its `EXEC_BUF_END`.
    pub(crate) last: usize,
}

/// A script, with what follows from it.
#[derive(Clone, Debug)]
pub(crate) struct Script {
    pub(crate) steps: Vec<Step>,
    /// The steps that the host sends, each with its record.
    pub(crate) records: Vec<(usize, Record)>,
    pub(crate) commands: Vec<Command>,
    /// The command buffer of each `EXEC_BUF`, by its step.
    pub(crate) buffers: Vec<Option<Buffer>>,
}

impl Script {
    /// The script of `steps`, and at its end both `TERMINATE`s.
    pub(crate) fn new(steps: &[Step]) -> Self {
        let steps = [steps, &[Step::End, Step::Quit]].concat();
        let (mut records, mut buffers) = (Vec::new(), vec![None; steps.len()]);
        let mut i = 0;
        while i < steps.len() {
            records.push((i, steps[i].record()));
            if let Step::Exec(count, spare) = steps[i] {
                let mut cells: Vec<Cell> = (i + 1..=i + count).flat_map(|inner| cells_of(&steps, inner)).collect();
                cells.resize(cells.len() + 4 * spare, Cell::EMPTY);
                buffers[i] = Some(Buffer { cells, last: i + count });
                i += count;
            }
            i += 1;
        }
        Self { records, commands: commands(&steps), buffers, steps }
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

/// The cells of a step's record or of its place in a command buffer.
pub(crate) fn cells_of(steps: &[Step], step: usize) -> impl Iterator<Item = Cell> {
    (0..(steps[step].stride() / CELL) as usize).map(move |part| Cell::new(step, part))
}

fn commands(steps: &[Step]) -> Vec<Command> {
    let (mut commands, mut cells) = (Vec::new(), Vec::new());
    let mut ring = [Cell::EMPTY; SCRATCH_CELLS];
    for (i, &step) in steps.iter().enumerate() {
        match step {
            Step::Fill(at, count) => (0..count).for_each(|k| ring[at + k] = Cell::new(i, 1 + k)),
            Step::Pieces(pieces) => {
                cells.extend(pieces.iter().flat_map(|&(start, count)| ring[start..start + count].to_vec()));
            }
            Step::Source(count) => cells.extend((1..=count).map(|part| Cell::new(i, part))),
            _ => cells.extend((1..=step.payload()).map(|part| Cell::new(i, part))),
        }
        if step.ends() {
            commands.push(Command { kind: step, cells: std::mem::take(&mut cells) });
        }
    }
    commands
}
