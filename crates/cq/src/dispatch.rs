//! The dispatcher's commands as owned values: command to bytes and back.
//!
//! `parse(emit(x)) == x` for every command that `emit` accepts. Counts and lengths that follow from
//! the payload are not fields here, so they cannot contradict it. Both directions refuse what the
//! dispatcher could not execute: sub-commands beyond its local cache, write offsets it does not
//! have, and packets of zero bytes (tt-metal#37233).
//!
//! Rows and layout: [`tilework_abi::cq::dispatch`]; seed 001 sections 2.1 and 4.

use crate::codec::{Framing, command_set};
use tilework_abi::cq::dispatch::{BareCmd, DispatchCmdId, WaitFlags};

mod packed;
mod sync;
mod write;

pub use packed::{LargeSub, PackedLargeWrite, PackedTargets, PackedWrite, Packets};
pub use sync::{DebugMark, Delay, GoSignal, NotifySubordinate, NumWorkerSems, Timestamp, Wait, WriteOffsets};
pub use write::{HostWrite, LinearWrite, PagedWrite};

/// Payload alignment.
const ALIGN: usize = tilework_abi::L1_ALIGN as usize;

tilework_abi::dispatch_commands! { command_set! {
    /// A dispatch command with all it carries.
    pub enum DispatchCommand: DispatchCmdId, framing Framing::DISPATCH;
} }

impl DispatchCommand {
    /// The event that the host waits for: `event_id` in a payload of 16 bytes (seed 001 section 7).
    pub fn host_event(event_id: u32) -> Self {
        let mut payload = vec![0; ALIGN];
        payload[..4].copy_from_slice(&event_id.to_le_bytes());
        Self::WriteLinearHHost(HostWrite { is_event: true, payload })
    }

    /// Wait until `stream` has reached `count`, then set it back to zero (seed 001 section 6).
    pub fn wait_stream_and_clear(stream: u16, count: u32) -> Self {
        let flags = WaitFlags::WAIT_STREAM | WaitFlags::CLEAR_STREAM;
        Self::Wait(Wait { flags, stream, addr: 0, count })
    }

    /// Wait until all writes of the dispatcher are acknowledged.
    pub fn barrier() -> Self {
        Self::Wait(Wait { flags: WaitFlags::BARRIER, stream: 0, addr: 0, count: 0 })
    }
}
