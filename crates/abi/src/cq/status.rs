//! The status blocks of the command-queue kernels: progress, and why a kernel stopped.
//!
//! Each of the three kernels has one block of four words in the L1 of its core, in the gap between
//! the sync semaphores and the rings, where the original keeps nothing (seed 001 sections 1.1 and
//! 1.2). A kernel counts the commands it has executed, so that a hang can be told from slow
//! progress (tt-metal#35102, field.md 1.B item 3), and stops at a command that it cannot execute,
//! with the reason in the error word.

use super::layout::{L1Region, dispatch_core, prefetch_core};
use crate::L1_ALIGN;
use crate::addr::L1Addr;

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
const ERROR_MARK: u32 = 0xFD00_0000;

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
    pub const fn status(self) -> L1Addr {
        const SECOND: L1Addr = STATUS.base().offset(STATUS_BYTES);
        match self {
            Self::Prefetch | Self::Dispatch => STATUS.base(),
            Self::DispatchS => SECOND,
        }
    }

    /// The error word for `fault` in this kernel: mark, kernel in bits 16..23, fault in bits 0..15.
    pub const fn error_word(self, fault: Fault) -> u32 {
        ERROR_MARK | (self as u32) << 16 | fault as u32
    }
}

/// Defines the faults from their rows: number, what to tell a person, and what the detail word of
/// the status block holds.
macro_rules! faults {
    ($($fault:ident = $number:literal, $message:literal, $detail:literal;)*) => {
        /// Why a kernel stopped.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u16)]
        pub enum Fault {
            $(#[doc = concat!($message, "; detail: ", $detail)] $fault = $number,)*
        }

        impl Fault {
            /// All faults, in numeric order.
            pub const ALL: [Self; [$($number),*].len()] = [$(Self::$fault,)*];

            /// What to tell a person.
            pub const fn message(self) -> &'static str {
                match self {
                    $(Self::$fault => $message,)*
                }
            }
        }
    };
}

faults! {
    UnknownCommand = 1, "unknown command id, or a command that this kernel does not have", "the id";
    RecordTooLong = 2, "the prefetch queue names a record longer than the command data queue", "the entry";
    StallEntry = 3, "the prefetch queue's stall flag is set on a record without an EXEC_BUF", "the entry";
    BadStride = 4, "the stride is zero, shorter than the command, or leads behind its record", "the stride";
    RelayTooLong = 5, "the relay is longer than its ring can ever take at once", "the length";
    UnknownDispatcher = 6, "unknown dispatcher type", "the type";
    TooMany = 7, "more sub-commands, words or offsets than there is room for", "the number";
    BadIndex = 8, "the index of a write offset, worker semaphore or stream is out of range", "the index";
    BadSize = 9, "a size is zero or an alignment is no power of two", "the value";
    BadCompletionPointer = 10, "the completion write pointer does not name host memory", "the word";
    BadExecBuf = 11, "EXEC_BUF without the stall flag, not alone behind it, or inside of another", "the bytes from it to the end of its record";
    NoExecBufEnd = 12, "a command buffer ends without EXEC_BUF_END", "the pages of the buffer";
    BadChecksum = 13, "the payload of DEBUG does not have the checksum of its header", "the payload's checksum";
    Misaligned = 14, "an address is not aligned as its command needs it", "the address";
    BadExecBufEnd = 15, "EXEC_BUF_END of a split prefetcher does not carry the dispatcher's EXEC_BUF_END, for which its host side waits", "the id of what it carries";
}

/// Kernel and fault of an error word, or `None` when it is no error word.
pub fn decode_error(word: u32) -> Option<(Kernel, Fault)> {
    let kernel = Kernel::ALL.into_iter().find(|&k| word & 0xFFFF_0000 == ERROR_MARK | (k as u32) << 16)?;
    let fault = Fault::ALL.into_iter().find(|&f| word & 0xFFFF == f as u32)?;
    Some((kernel, fault))
}

const _: () = {
    assert!(dispatch_core::SYNC_SEMS.end().get() <= STATUS.base().get());
    assert!(STATUS.end().get() <= dispatch_core::DISPATCH_CB.base().get());
    assert!(prefetch_core::PREFETCH_Q_PCIE_RD_PTR + 4 <= STATUS.base().get());
    assert!(STATUS.end().get() <= prefetch_core::PREFETCH_Q.base().get());
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
