//! What the queue tells those who observe its chip of the commands that it sends: each with its
//! size and its program, in the order in which the queue's kernels will execute them. The records
//! are read back by the decoder of raw streams, so that what is told is what was sent.

use super::sent::Sent;
use super::{CommandQueue, Position};
use std::sync::Arc;
use tilework_abi::cq::prefetch::DispatcherSelect;
use tilework_abi::cq::status::Kernel;
use tilework_cq::decode::InnerCommand;
use tilework_cq::{DecodedRecord, PrefetchCommand, decode_stream};
use tilework_driver::{Card, CommandNote, CommandsNote, HostLink, Note};

/// The commands in `bytes`, of which `sent` are those for the dispatcher. What has no place among
/// them is of `program`, or of the program of the command before it.
pub(super) fn describe(bytes: &[u8], sent: &[Sent], program: Option<usize>) -> Vec<CommandNote> {
    let (mut notes, mut sent, mut last) = (Vec::new(), sent.iter(), program);
    for record in decode_stream(bytes) {
        // An observer that misses commands finds that out by their ids.
        let Ok(record) = record else { break };
        relay(&record, &mut sent, &mut last, &mut notes);
    }
    notes
}

fn relay<'a>(
    record: &DecodedRecord,
    sent: &mut impl Iterator<Item = &'a Sent>,
    last: &mut Option<usize>,
    notes: &mut Vec<CommandNote>,
) {
    let first = notes.len();
    let note = |kernel, id, bytes, program: Option<usize>| CommandNote {
        kernel,
        id,
        bytes,
        program: program.map(|program| program as u64),
    };
    let to = match &record.command {
        PrefetchCommand::RelayInline(inline)
        | PrefetchCommand::RelayInlineNoflush(inline)
        | PrefetchCommand::ExecBufEnd(inline) => inline.dispatcher,
        _ => DispatcherSelect::Master,
    };
    notes.push(note(Kernel::Prefetch, record.command.id() as u8, record.size as u64, *last));
    for inner in &record.inner {
        let (id, missing) = match &inner.command {
            InnerCommand::Whole(command) => (command.id(), 0),
            InnerCommand::Head { id, missing } => (*id, *missing),
        };
        let bytes = (inner.size as u64).saturating_add(missing);
        let kernel = match to {
            DispatcherSelect::Master => {
                *last = sent.next().and_then(|sent| sent.program);
                Kernel::Dispatch
            }
            DispatcherSelect::Subordinate => Kernel::DispatchS,
        };
        notes.push(note(kernel, id as u8, bytes, *last));
    }
    // The relay is of the program of what it relays.
    if let (Some(relay), false) = (notes.get_mut(first), record.inner.is_empty()) {
        relay.program = last.map(|program| program as u64);
    }
}

impl CommandQueue {
    /// Tells of the commands of a record that is about to be written.
    pub(super) fn tell<C: HostLink>(&self, card: &mut Card<C>, commands: Vec<CommandNote>) {
        let queue = self.id().number();
        card.link_mut().note(&Note::Commands(Arc::new(CommandsNote { queue, commands })));
    }
}

/// The commands of a trace, whose programs are counted from that of `position` on.
pub(super) fn replayed(commands: &[CommandNote], position: &Position) -> Vec<CommandNote> {
    let shifted = |note: &CommandNote| CommandNote {
        program: note.program.map(|program| position.programs.saturating_add(program)),
        ..note.clone()
    };
    commands.iter().map(shifted).collect()
}
