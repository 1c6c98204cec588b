//! The prefetcher's commands as owned values: command to bytes and back.
//!
//! A prefetch command fills a multiple of 64 bytes, so that the next one is aligned for PCIe;
//! `emit` pads and `parse` consumes the whole stride. What a relay carries is bytes here; the
//! commands inside are read by [`crate::decode`].
//!
//! Rows and layout: [`tilework_abi::cq::prefetch`]; seed 001 sections 2.2 and 3.1.

use crate::codec::{Framing, command_set};
use crate::dispatch::DebugMark;
use tilework_abi::cq::prefetch::{BareCmd, DispatcherSelect, PrefetchCmdId};

mod buffer;
mod relay;

pub use buffer::{ExecBuf, PagedToRing, RingOffset, RingPiece};
pub use relay::{Inline, LinearRelay, LinearRelayH, PagedRelay, PagedSource};

tilework_abi::prefetch_commands! { command_set! {
    /// A prefetch command with all it carries.
    pub enum PrefetchCommand: PrefetchCmdId, framing Framing::PREFETCH;
} }

impl PrefetchCommand {
    /// The relay that carries `payload` to the dispatcher.
    pub fn relay_inline(payload: Vec<u8>) -> Self {
        Self::RelayInline(Inline { dispatcher: DispatcherSelect::Master, payload })
    }
}
