//! `cq_prefetch`, the unified "hd" variant: reads records from host memory and relays what is in
//! them to the dispatch core.
//!
//! Runs on the BRISC of the prefetch core, on NoC 0, as a kernel in host mode. Follows seed 001
//! section 3 and figure 5; who owns which command buffer is in [`tilework_cq_core::initiators`].
//!
//! Decisions where the documents leave room:
//!
//! - **Where the issue region is.** The word `PREFETCH_Q_PCIE_RD_PTR` holds its address when the
//!   first entry appears (the host writes the word before it pushes, the original's `device.py`).
//!   Zero means the original's fixed address.
//! - **Wrap of the issue region.** The same rule on both sides: align to 64, then begin at the
//!   start when the record does not fit.
//! - **A record never wraps in the command data queue** and holds whole commands, so every command
//!   is contiguous.
//! - **Several reads in flight**, up to eight, taken in order. An entry is zeroed and the two
//!   pointer words are echoed when the record has *arrived*, not when its read was started: then
//!   the host may overwrite what the words say is done.
//! - **Credit after acknowledgement**: see [`tilework_cq_core::initiators`]. While the
//!   acknowledgement is on its way the next reads are started, so the wait is not lost.
//! - The device side of a split prefetcher is made of the same sources (feature `device-side`): its
//!   commands come from the ring that the host side fills.
//! - Commands of other variants (paged and linear relays, exec buffers, the ring buffer) stop the
//!   kernel with an error word.
#![no_std]
#![no_main]

#[cfg_attr(feature = "device-side", path = "records.rs")]
mod fetcher;
mod relay;

use fetcher::Fetcher;
use relay::{Payload, Relay};
use tilework_abi::cq::count::WrapCount;
use tilework_abi::cq::layout::prefetch_core::{SEM_DISPATCH_PAGES, SEM_SYNC};
use tilework_abi::cq::prefetch::{DebugCmd, DispatcherSelect, PrefetchCmdId, RelayInline};
use tilework_abi::cq::status::{Fault, Kernel};
use tilework_abi::cq::{CMD_SIZE, PREFETCH_BARE_STRIDE};
use tilework_cq_core::command;
use tilework_cq_core::halt::Status;
use tilework_cq_core::peers::Peers;
use tilework_rt::reg::{read8, wait};
use tilework_rt::{KernelContext, kernel};

kernel!(main);

fn main(ctx: &KernelContext) {
    let semaphores = ctx.semaphores;
    let peers = Peers::told(ctx);
    let mut status = Status::new(Kernel::Prefetch);
    let mut fetcher = Fetcher::new(ctx, &peers);
    let mut relay = Relay::new(ctx.my_xy, &peers, semaphores);
    let mut stalls = WrapCount(0);

    loop {
        let (at, left) = fetcher.next_command(&status);
        let stride = match PrefetchCmdId::try_from(read8(at)) {
            Ok(PrefetchCmdId::RelayInline) => relay_inline(&mut relay, &mut fetcher, &status, at, left, true),
            Ok(PrefetchCmdId::RelayInlineNoflush) => relay_inline(&mut relay, &mut fetcher, &status, at, left, false),
            Ok(PrefetchCmdId::Stall) => {
                stalls = stalls.plus(1);
                wait(SEM_SYNC.addr(semaphores), |count| WrapCount(count).wrap_ge(stalls));
                PREFETCH_BARE_STRIDE as u32
            }
            Ok(PrefetchCmdId::Debug) => {
                let cmd: DebugCmd = command(at);
                status.waypoint(u32::from(cmd.key.get()));
                checked_stride(&status, cmd.stride.get(), CMD_SIZE as u32, left, at)
            }
            Ok(PrefetchCmdId::Terminate) => break,
            _ => {
                status.halt(Fault::UnknownCommand, u32::from(read8(at)), at);
                left
            }
        };
        fetcher.advance(stride);
        status.count();
    }
    status.count();

    // All pages must come back: a missing one is a leaked credit, and waiting for it here is where
    // that shows.
    let credits = SEM_DISPATCH_PAGES.addr(semaphores);
    wait(credits, |count| relay.dispatch_all_back(WrapCount(count)));
    relay.finish();
    fetcher.finish();
}

/// Executes `RELAY_INLINE` or, without `flush`, `RELAY_INLINE_NOFLUSH`; returns its stride.
#[inline(always)]
fn relay_inline(relay: &mut Relay, fetcher: &mut Fetcher, status: &Status, at: u32, left: u32, flush: bool) -> u32 {
    let cmd: RelayInline = command(at);
    let bytes = cmd.length.get();
    let stride = cmd.stride.get();
    // The payload lies between header and stride; `bytes` is checked against `left` first so that
    // the sum cannot wrap.
    if bytes > left || stride < bytes + CMD_SIZE as u32 || stride > left {
        status.halt(Fault::BadStride, stride, at);
        return left;
    }
    let payload = Payload { from: at + CMD_SIZE as u32, bytes };
    match DispatcherSelect::try_from(cmd.dispatcher_type) {
        Ok(DispatcherSelect::Master) => relay.to_dispatch(fetcher, status, payload, flush),
        Ok(DispatcherSelect::Subordinate) => relay.to_subordinate(fetcher, status, payload, flush),
        Err(unknown) => status.halt(Fault::UnknownDispatcher, u32::from(unknown.found), at),
    }
    stride
}

/// `stride` when it leads over at least `least` bytes and not out of the record; otherwise stops,
/// and then the rest of the record.
fn checked_stride(status: &Status, stride: u32, least: u32, left: u32, at: u32) -> u32 {
    if stride < least || stride > left {
        status.halt(Fault::BadStride, stride, at);
        return left;
    }
    stride
}
