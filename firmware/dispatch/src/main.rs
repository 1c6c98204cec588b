//! `cq_dispatch`: executes the commands that the prefetcher relays.
//!
//! Runs on the BRISC of the dispatch core as a kernel in host mode; its writes use NoC 1, its
//! credits to the prefetcher NoC 0. Follows seed 001 sections 4, 6 and 7; who owns which command
//! buffer is in [`tilework_cq_core::initiators`].
//!
//! Decisions where the documents leave room:
//!
//! - **Sources.** The data of a write stays in the ring until it has left: the block it lies in is
//!   released one block late, and only when the NIU says that every write of that block was read
//!   out of L1 ([`tilework_cq_core::reader`]). Go messages and time stamps are sent from the bytes
//!   of their own command, so they need no other buffer and the same rule covers them.
//! - **Data before go and before the completion pointer.** `SEND_GO_SIGNAL` and the completion
//!   pointer wait for the acknowledgements of everything written before; the documents promise no
//!   weaker order, least of all between multicasts and unicasts.
//! - **Every command works at every offset.** Headers and sub-commands lie in the command's first
//!   page; everything else is streamed, and a packet that crosses the end of what is present is cut
//!   in two.
//! - **Multicasts** wait for all acknowledgements before they reserve a path, as the original does,
//!   and are only linked to a next packet that is already present, because a linked transaction
//!   blocks the NIU until it is completed (NoC/MemoryMap.md, `NOC_CMD_VC_LINKED`).
//! - **Split.** On the device side of a split dispatcher, commands for the host are passed on to
//!   the host side ([`relay`]), which is this kernel on another tile. Each finds out from the
//!   coordinates of the others what it is.
//! - A host that places its region elsewhere than the original's fixed address says so by the
//!   completion write pointer it stores before the start.
#![no_std]
#![no_main]

mod core;
mod host;
mod large;
mod packed;
mod relay;
mod sync;
mod write;

use crate::core::Core;
use tilework_abi::cq::dispatch::{DebugCmd, Delay, DispatchCmdId};
use tilework_abi::cq::status::Fault;
use tilework_abi::cq::{CMD_LARGE_SIZE, CMD_SIZE};
use tilework_cq_core::{command, go};
use tilework_rt::reg::read8;
use tilework_rt::{KernelContext, kernel};

/// Bytes of an ordinary header.
const HEADER: u32 = CMD_SIZE as u32;
/// Bytes of a large header.
const LARGE_HEADER: u32 = CMD_LARGE_SIZE as u32;

kernel!(main);

fn main(ctx: &KernelContext) {
    let mut core = Core::new(ctx);
    go::clear_worker_streams();
    while execute(&mut core) {}
    core.finish();
}

/// Executes the next command; false after `TERMINATE`.
#[inline(always)]
fn execute(core: &mut Core) -> bool {
    core.wait_for_data();
    let at = core.at();
    let id = read8(at);
    let mut more = true;
    match DispatchCmdId::try_from(id) {
        Ok(DispatchCmdId::WriteLinear | DispatchCmdId::WriteLinearH) => core.write_linear(),
        Ok(DispatchCmdId::WriteLinearHHost) => core.write_host(),
        Ok(DispatchCmdId::WritePaged) => core.write_paged(),
        Ok(DispatchCmdId::WritePacked) => core.write_packed(),
        Ok(DispatchCmdId::WritePackedLarge) => core.write_packed_large(),
        Ok(DispatchCmdId::Wait) => core.wait_command(),
        Ok(DispatchCmdId::SetWriteOffset) => core.set_write_offset(),
        Ok(DispatchCmdId::SendGoSignal) => core.send_go_signal(),
        Ok(DispatchCmdId::NotifySubordinateGoSignal) => core.notify_subordinate(),
        Ok(DispatchCmdId::SetGoSignalNocData) => core.set_go_signal_noc_data(),
        Ok(DispatchCmdId::Timestamp) => core.timestamp(),
        Ok(DispatchCmdId::Debug) => {
            let cmd: DebugCmd = command(at);
            core.status.waypoint(u32::from(cmd.key.get()));
            core.skip(cmd.stride.get().max(HEADER));
        }
        Ok(DispatchCmdId::Delay) => {
            let cmd: Delay = command(at);
            for i in 0..cmd.delay.get() {
                ::core::hint::black_box(i);
            }
            core.skip(HEADER);
        }
        Ok(DispatchCmdId::SetNumWorkerSems) => core.set_num_worker_sems(),
        Ok(DispatchCmdId::ExecBufEnd) => core.exec_buf_end(),
        // It has no length: it swallows its page.
        Ok(DispatchCmdId::Sink) => core.skip(HEADER),
        Ok(DispatchCmdId::Terminate) => {
            if !core.pass_on(u64::from(HEADER)) {
                core.skip(HEADER);
            }
            more = false;
        }
        Ok(DispatchCmdId::Illegal) | Err(_) => {
            core.status.halt(Fault::UnknownCommand, u32::from(id), at);
            core.skip(HEADER);
        }
    }
    core.next_page();
    core.status.count();
    more
}
