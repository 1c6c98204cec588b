//! What can go wrong when programs run.

use crate::device::SubDeviceError;
use crate::elf::ElfError;
use crate::explain::{BudgetReport, DeadlockReport, FaultPlace};
use crate::firmware::FirmwareError;
use crate::memory::{MemoryError, WorkerCoresError};
use crate::prints::PrintLine;
use crate::program::ProgramError;
use crate::tensor::TensorError;
use crate::trace::TraceError;
use tilework_abi::board::Harvesting;
use tilework_abi::cq::layout::QueueId;
use tilework_abi::noc::NocXy;
use tilework_cq::EncodeError;
use tilework_driver::{ChipFault, DriverError};

/// Why the runtime could not do what was asked. After [`RuntimeError::Fault`],
/// [`RuntimeError::Assertion`],
/// [`RuntimeError::Deadlock`], [`RuntimeError::Budget`], [`RuntimeError::Interrupted`] and
/// [`RuntimeError::Protocol`] the device is unusable: every further call answers
/// [`RuntimeError::Lost`].
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RuntimeError {
    /// A program that cannot run.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// An ELF file that cannot be used.
    #[error(transparent)]
    Elf(#[from] ElfError),
    /// Worker firmware that cannot be used.
    #[error(transparent)]
    Firmware(#[from] FirmwareError),
    /// No memory, or data that does not fit a buffer.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// A tensor that cannot be, or an array that does not fit it.
    #[error(transparent)]
    Tensor(#[from] TensorError),
    /// A call that traces do not allow.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The host has not the memory for the elements of a buffer.
    #[error("buffer {name}: not enough memory of the host for its {bytes} bytes")]
    HostMemory {
        /// The buffer.
        name: String,
        /// How much was asked for.
        bytes: usize,
    },
    /// A command that cannot be written.
    #[error("cannot lower program to commands: {0}")]
    Encode(#[from] EncodeError),
    /// The host could not reach the chip.
    #[error(transparent)]
    Driver(DriverError),
    /// The chip is not that of the configuration.
    #[error("the chip is that of a {found} which lacks {lacks}, expected a {expected} which lacks {expected_lacks}")]
    Board {
        /// The kind of card that the chip says it is on.
        found: &'static str,
        /// What it lacks.
        lacks: Harvesting,
        /// The kind of card of the configuration.
        expected: &'static str,
        /// What that lacks.
        expected_lacks: Harvesting,
    },
    /// The chip stopped at a fault: a program did what the hardware leaves undefined.
    #[error("{fault}{}", .place.as_ref().map(|place| format!("\n{place}")).unwrap_or_default())]
    Fault {
        /// The fault.
        fault: Box<ChipFault>,
        /// Which core did it and what it was running; absent when no core is to blame.
        place: Option<FaultPlace>,
    },
    /// An assertion of a kernel did not hold; its core stopped, and with it the run.
    #[error("{}", crate::prints::assertion(line))]
    Assertion {
        /// Where, and what the kernel said.
        line: Box<PrintLine>,
        /// How that stopped the run.
        stopped: Box<RuntimeError>,
    },
    /// A deadlock: no core can run and nothing is in flight.
    #[error("{0}")]
    Deadlock(Box<DeadlockReport>),
    /// The budget of cycles is exhausted.
    #[error("{0}")]
    Budget(Box<BudgetReport>),
    /// The caller ended the run ([`Device::on_progress`](crate::Device::on_progress)).
    #[error("{0}")]
    Interrupted(Box<BudgetReport>),
    /// The firmware broke the protocol of the command queue.
    #[error("command queue: {0}")]
    Protocol(String),
    /// The device has no command queue to take commands.
    #[error("slow dispatch has no command queue; open the device with fast dispatch")]
    NoQueue,
    /// The device has no program cache.
    #[error(
        "programs are not cached: that takes fast dispatch, the cached lowering, and worker firmware with a text cache"
    )]
    NoCache,
    /// An event of another device.
    #[error("the event is one of another device")]
    ForeignEvent,
    /// The device was closed, or dropped before it came so far.
    #[error("the device was closed")]
    Closed,
    /// More command queues than a device has.
    #[error("{asked} command queues were asked for; a device has 1 or 2")]
    Queues {
        /// How many were asked for.
        asked: u8,
    },
    /// A queue that the device does not have.
    #[error("there is no queue {asked}: the device was opened with {queues}")]
    NoSuchQueue {
        /// The queue.
        asked: QueueId,
        /// Queues that the device has.
        queues: u8,
    },
    /// Programs of two queues would meet on a worker, in no order.
    #[error(
        "program {second:?} on queue {second_queue} would meet program {first:?} on queue {first_queue} on core {core}: \
         nothing says which comes first. Record an event behind {first:?} on queue {first_queue} and let queue \
         {second_queue} wait for it, or finish queue {first_queue}"
    )]
    Unordered {
        /// The program that was enqueued first.
        first: String,
        /// Its queue.
        first_queue: QueueId,
        /// The program that was refused.
        second: String,
        /// Its queue.
        second_queue: QueueId,
        /// The first worker that both have.
        core: NocXy,
    },
    /// Sub-devices that cannot be, or a program that is not on one of them.
    #[error(transparent)]
    SubDevice(#[from] SubDeviceError),
    /// Worker cores that the board does not have, or has for something else.
    #[error(transparent)]
    Workers(#[from] WorkerCoresError),
    /// The device stopped in an earlier call.
    #[error("the device stopped earlier ({0}); open it again")]
    Lost(String),
}

impl RuntimeError {
    /// Whether the device is unusable afterwards.
    pub(crate) fn is_fatal(&self) -> bool {
        matches!(
            self,
            Self::Fault { .. }
                | Self::Assertion { .. }
                | Self::Deadlock(_)
                | Self::Budget(_)
                | Self::Interrupted(_)
                | Self::Protocol(_)
                | Self::Driver(_)
        )
    }
}
