//! What the queue remembers of a command until the device has completed it, for reports about a
//! device that stopped.

use crate::program::Program;
use crate::trace::TraceName;
use std::fmt;
use std::sync::Arc;
use tilework_cq::DispatchCommand;

/// What one record has brought to the queue.
#[derive(Debug)]
pub(super) enum Batch {
    /// A command.
    One(Sent),
    /// The commands of a trace, whose programs are counted from the given one on.
    Trace(usize, TraceName, Arc<[Sent]>),
}

impl Batch {
    /// Number of commands.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::One(_) => 1,
            Self::Trace(_, _, sent) => sent.len(),
        }
    }

    /// The commands, with the positions of their programs in the queue.
    pub(super) fn commands(&self) -> impl Iterator<Item = Sent> {
        let (first, trace, commands) = match self {
            Self::One(sent) => (0, None, std::slice::from_ref(sent)),
            Self::Trace(first, trace, sent) => (*first, Some(*trace), &sent[..]),
        };
        let program = move |sent: &Sent| sent.program.map(|i| first + i);
        commands.iter().map(move |sent| Sent { program: program(sent), trace, what: sent.what.clone() })
    }
}

/// A dispatch command in the queue and the program it belongs to.
#[derive(Clone, Debug)]
pub struct Sent {
    /// Position of the program in the run; `None` for the queue's own commands and for transfers.
    pub program: Option<usize>,
    /// The trace whose replay it is part of.
    pub trace: Option<TraceName>,
    /// The command.
    pub what: What,
}

/// A command as reports show it.
#[derive(Clone, Debug)]
pub enum What {
    /// The command itself, which a cached program shares with each of its launches.
    Command(Arc<DispatchCommand>),
    /// A command with bulk data, in words: its data is not kept.
    Transfer(Transfer),
    /// A command with data of a cached program, whose bytes are patched for each launch.
    Part {
        /// What it writes.
        part: &'static str,
        /// The program.
        program: Arc<Program>,
        /// To how many cores.
        cores: u32,
    },
}

/// A command that carries part of a buffer.
#[derive(Clone, Debug)]
pub struct Transfer {
    /// Name of the command.
    pub command: &'static str,
    /// Bytes of the buffer that it carries.
    pub bytes: u64,
    /// The buffer.
    pub buffer: Arc<str>,
    /// The first of its bytes.
    pub at: u64,
}

impl Sent {
    /// A command of a program of the run, or of none.
    pub fn command(program: Option<usize>, command: impl Into<Arc<DispatchCommand>>) -> Self {
        Self { program, trace: None, what: What::Command(command.into()) }
    }
}

impl What {
    /// The command, unless it is one with bulk data.
    pub fn command(&self) -> Option<&DispatchCommand> {
        match self {
            Self::Command(command) => Some(command),
            Self::Transfer(_) | Self::Part { .. } => None,
        }
    }
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Command(command) => write!(f, "{command}"),
            Self::Transfer(Transfer { command, bytes, buffer, at }) => {
                write!(f, "{command} {bytes} bytes of buffer {buffer} from byte {at}")
            }
            Self::Part { part, program, cores } => {
                write!(f, "write {part} of program {} to {cores} cores", program.name)
            }
        }
    }
}
