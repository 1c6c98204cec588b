//! The status blocks of the command-queue kernels: progress, and why a kernel stopped.
//!
//! Each of the three kernels has one block of four words in the L1 of its core, in the gap between the sync semaphores and the rings,
//! where the original keeps nothing (seed 001 sections 1.1 and 1.2). A kernel counts the commands it has executed, so that
//! a hang can be told from slow progress (tt-metal#35102, field.md 1.B item 3), and stops at a command that it cannot obey with
//! the reason in the error word instead of running on with wrong bytes.

use super::layout::{L1Region, dispatch_core, prefetch_core};
use crate::L1_ALIGN;

/// Byte offsets of the words of a status block.
pub mod word {
    /// Zero while all is well, else a [`Kernel::error_word`](super::Kernel::error_word).
    pub const ERROR: u32 = 0;
    /// The value that was wrong; while there is no error, the key of the last `DEBUG` command.
    pub const DETAIL: u32 = 4;
    /// L1 address of the command that was wrong.
    pub const ADDRESS: u32 = 8;
    /// Commands executed since the start; wraps.
    pub const COMMANDS: u32 = 12;
}

/// Bytes of a status block.
pub const STATUS_BYTES: u32 = L1_ALIGN;

/// The blocks of a core: first the kernel on the BRISC, then the one on the NCRISC.
pub const STATUS: L1Region = L1Region::new(0x19790, 2 * STATUS_BYTES);

/// Upper half of every error word.
pub const ERROR_MARK: u32 = 0xFD00_0000;

/// The three kernels of the command queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kernel {
    /// The prefetcher: BRISC of the prefetch core.
    Prefetch = 1,
    /// The dispatcher: BRISC of the dispatch core.
    Dispatch = 2,
    /// The dispatch subordinate: NCRISC of the dispatch core.
    DispatchS = 3,
}

impl Kernel {
    /// All three.
    pub const ALL: [Self; 3] = [Self::Prefetch, Self::Dispatch, Self::DispatchS];

    /// The name that reports use.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Prefetch => "cq_prefetch",
            Self::Dispatch => "cq_dispatch",
            Self::DispatchS => "cq_dispatch_subordinate",
        }
    }

    /// Address of the kernel's status block in the L1 of its core.
    pub const fn status(self) -> u32 {
        match self {
            Self::Prefetch | Self::Dispatch => STATUS.base(),
            Self::DispatchS => STATUS.base() + STATUS_BYTES,
        }
    }

    /// The error word for `fault` in this kernel: mark, kernel in bits 16..23, fault in bits 0..15.
    pub const fn error_word(self, fault: Fault) -> u32 {
        ERROR_MARK | (self as u32) << 16 | fault as u32
    }
}

/// Why a kernel stopped. The documentation of a variant is its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u16)]
pub enum Fault {
    /// The command id is unknown, or names a command that this kernel does not have. Detail: the id.
    UnknownCommand = 1,
    /// The prefetch queue names a record longer than the command data queue. Detail: the entry.
    RecordTooLong = 2,
    /// The prefetch queue's stall flag is set, but there is no EXEC_BUF to stall for. Detail: the entry.
    StallEntry = 3,
    /// A prefetch command's stride is zero, shorter than the command, or leads behind its record. Detail: the stride.
    BadStride = 4,
    /// A relay is longer than the ring it goes to can ever take at once. Detail: the length.
    RelayTooLong = 5,
    /// The dispatcher type of a relay is unknown. Detail: the type.
    UnknownDispatcher = 6,
    /// More sub-commands, words or offsets than the kernel has room for. Detail: the number.
    TooMany = 7,
    /// The index of a write offset, worker semaphore or stream is out of range. Detail: the index.
    BadIndex = 8,
    /// A size that must not be zero is zero, or an alignment is no power of two. Detail: the value.
    BadSize = 9,
    /// The completion write pointer in L1 does not name host memory. Detail: the word.
    BadCompletionPointer = 10,
}

impl Fault {
    /// All faults, in numeric order.
    pub const ALL: [Self; 10] = [
        Self::UnknownCommand,
        Self::RecordTooLong,
        Self::StallEntry,
        Self::BadStride,
        Self::RelayTooLong,
        Self::UnknownDispatcher,
        Self::TooMany,
        Self::BadIndex,
        Self::BadSize,
        Self::BadCompletionPointer,
    ];

    /// What to tell a person.
    pub const fn message(self) -> &'static str {
        match self {
            Self::UnknownCommand => "unknown command id, or a command that this kernel does not have",
            Self::RecordTooLong => "the prefetch queue names a record longer than the command data queue",
            Self::StallEntry => "the prefetch queue's stall flag is set without an EXEC_BUF",
            Self::BadStride => "the stride is zero, shorter than the command, or leads behind its record",
            Self::RelayTooLong => "the relay is longer than its ring can ever take at once",
            Self::UnknownDispatcher => "unknown dispatcher type",
            Self::TooMany => "more sub-commands, words or offsets than there is room for",
            Self::BadIndex => "the index of a write offset, worker semaphore or stream is out of range",
            Self::BadSize => "a size is zero or an alignment is no power of two",
            Self::BadCompletionPointer => "the completion write pointer does not name host memory",
        }
    }
}

/// Kernel and fault of an error word, or `None` when it is no error word.
pub fn decode_error(word: u32) -> Option<(Kernel, Fault)> {
    let kernel = Kernel::ALL.into_iter().find(|&k| word & 0xFFFF_0000 == ERROR_MARK | (k as u32) << 16)?;
    let fault = Fault::ALL.into_iter().find(|&f| word & 0xFFFF == f as u32)?;
    Some((kernel, fault))
}

const _: () = {
    assert!(dispatch_core::SYNC_SEMS.end() <= STATUS.base());
    assert!(STATUS.end() <= dispatch_core::DISPATCH_CB.base());
    assert!(prefetch_core::PREFETCH_Q_PCIE_RD_PTR + 4 <= STATUS.base());
    assert!(STATUS.end() <= prefetch_core::PREFETCH_Q.base());
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_words_decode_to_what_they_were_made_of() {
        for kernel in Kernel::ALL {
            for fault in Fault::ALL {
                assert_eq!(decode_error(kernel.error_word(fault)), Some((kernel, fault)));
            }
        }
        assert_eq!(Kernel::Dispatch.error_word(Fault::UnknownCommand), 0xFD02_0001);
        assert_eq!(decode_error(0), None);
        assert_eq!(decode_error(0xFD04_0001), None);
        assert_eq!(decode_error(0xFD01_0000), None);
    }
}
