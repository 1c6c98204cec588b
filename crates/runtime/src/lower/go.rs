//! Who sends the go signals of a launch, and to whom workers report.

use super::DispatchCommand;
use tilework_abi::board::Board;
use tilework_abi::convert::{u8_of, u16_of, u32_of};
use tilework_abi::cq::layout::{DONE_STREAM, QueueId};
use tilework_abi::cq::prefetch::DispatcherSelect;
use tilework_abi::cq::tiles::{DispatchLayout, GoSender, QueueTiles};
use tilework_abi::msg::{GoMsg, RUN_GO};
use tilework_abi::noc::NocXy;
use tilework_cq::dispatch::{GoSignal, NotifySubordinate};

/// A command and who executes it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Addressed {
    /// The dispatcher or its subordinate.
    pub to: DispatcherSelect,
    /// The command.
    pub command: DispatchCommand,
}

impl Addressed {
    /// A command for the subordinate.
    pub const fn subordinate(command: DispatchCommand) -> Self {
        Self { to: DispatcherSelect::Subordinate, command }
    }
}

impl From<DispatchCommand> for Addressed {
    /// A command for the dispatcher.
    fn from(command: DispatchCommand) -> Self {
        Self { to: DispatcherSelect::Master, command }
    }
}

/// How a launch is said to a command queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Go {
    /// The go message.
    pub word: u32,
    sender: GoSender,
    /// Whether the sender counts its workers on another tile than the dispatcher.
    counts_apart: bool,
}

impl Go {
    /// As `layout` has it on `board`.
    pub fn of(layout: DispatchLayout, board: Board) -> Self {
        Self::at(layout.queue(QueueId::FIRST), board)
    }

    /// As the queue with these tiles has it on `board`.
    pub fn at(tiles: QueueTiles, board: Board) -> Self {
        let done = tiles.done_tile(board);
        Self { word: go_word(done), sender: tiles.layout.go(), counts_apart: done != tiles.dispatch_tile(board) }
    }

    /// The same for programs of sub-device `sub`, whose workers report to its own stream.
    pub(crate) fn on_sub_device(self, sub: u8) -> Self {
        let word = GoMsg { dispatch_message_offset: sub, ..GoMsg::from_word(self.word) }.word();
        Self { word, ..self }
    }

    /// Who executes the go signals.
    pub(crate) const fn sender(&self) -> DispatcherSelect {
        match self.sender {
            GoSender::Dispatcher => DispatcherSelect::Master,
            GoSender::Subordinate => DispatcherSelect::Subordinate,
        }
    }

    /// Whether the sender counts its workers on another tile than the dispatcher, so that both wait
    /// for them and clear their counts.
    pub(crate) const fn counts_apart(&self) -> bool {
        self.counts_apart
    }

    /// By the dispatcher, with the go message `word`.
    pub const fn by_dispatcher(word: u32) -> Self {
        Self { word, sender: GoSender::Dispatcher, counts_apart: false }
    }

    /// The commands of a launch on `cores` (seed section 6): four, when the dispatcher sends the go
    /// signals. The subordinate waits until the dispatcher has notified it that all data is there,
    /// and on a tile of its own it clears its count as well.
    pub(super) fn launch(&self, cores: &[NocXy]) -> Vec<Addressed> {
        let stream = u16_of(DONE_STREAM);
        let count = u32_of(cores.len());
        let targets = DispatchCommand::SetGoSignalNocData(cores.iter().map(|c| c.encode()).collect());
        let arm = DispatchCommand::wait_stream_and_clear(stream, 0);
        let send = DispatchCommand::SendGoSignal(GoSignal {
            go_signal: self.word,
            multicast_go_offset: None,
            // A board has fewer workers than 256.
            num_unicast_txns: u8_of(count),
            noc_data_start_index: 0,
            wait_count: 0,
            wait_stream: DONE_STREAM,
        });
        let done = DispatchCommand::wait_stream_and_clear(stream, count);
        match self.sender {
            GoSender::Dispatcher => [targets, arm, send, done].map(Addressed::from).into(),
            GoSender::Subordinate => {
                let mut out =
                    vec![arm.into(), notify(0).into(), Addressed::subordinate(targets), Addressed::subordinate(send)];
                out.extend(self.counts_apart.then(|| Addressed::subordinate(done.clone())));
                out.push(done.into());
                out
            }
        }
    }
}

/// What the dispatcher is told when the subordinate may send the next go signal to sub-device
/// `sub`: all data is there.
pub(crate) fn notify(sub: u8) -> DispatchCommand {
    DispatchCommand::NotifySubordinateGoSignal(NotifySubordinate { wait: true, index_bitmask: 1 << sub })
}

/// The go message of a program under fast dispatch, whose workers report to `done`.
pub fn go_word(done: NocXy) -> u32 {
    GoMsg { dispatch_message_offset: 0, master_x: done.x, master_y: done.y, signal: RUN_GO }.word()
}
