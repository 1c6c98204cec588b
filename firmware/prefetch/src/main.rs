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
//! - **`RELAY_LINEAR_H`** is executed as `RELAY_LINEAR`: in this variant both sides of a split
//!   prefetcher are one.
//! - **Command buffers.** Behind a record with the stall flag nothing is fetched until its
//!   `EXEC_BUF` is over: the buffer has the command data queue to itself (tt-metal#8062). The record
//!   ends with `EXEC_BUF`.
//! - **`DEBUG`** has a checksum in what is padding in the public header; zero is not checked.
#![no_std]
#![no_main]

mod fetcher;
mod relay;
mod scratch;
mod source;

use fetcher::Fetcher;
use relay::{Payload, Relay};
use scratch::{Ends, Refused, Scratch};
use source::{Banks, Pages};
use tilework_abi::cq::count::WrapCount;
use tilework_abi::cq::layout::prefetch_core::{SEM_DISPATCH_PAGES, SEM_SYNC};
use tilework_abi::cq::prefetch::{DebugCmd, DispatcherSelect, ExecBuf, PrefetchCmdId, RelayInline};
use tilework_abi::cq::status::{Fault, Kernel};
use tilework_abi::cq::{CMD_SIZE, PREFETCH_BARE_STRIDE};
use tilework_cq_core::command;
use tilework_cq_core::halt::Status;
use tilework_cq_core::peers::Peers;
use tilework_rt::reg::{read, read8, wait};
use tilework_rt::{KernelContext, kernel, rta};

/// Bytes of a header.
const HEADER: u32 = CMD_SIZE as u32;
/// Bytes of a command without an explicit stride.
const BARE: u32 = PREFETCH_BARE_STRIDE as u32;

kernel!(main);

fn main(ctx: &KernelContext) {
    let semaphores = ctx.semaphores;
    let peers = Peers::new([rta(ctx, 0), rta(ctx, 1)], ctx.my_xy);
    let mut status = Status::new(Kernel::Prefetch);
    let mut fetcher = Fetcher::new(ctx.my_xy, peers.pcie);
    let mut relay = Relay::new(ctx.my_xy, peers.dispatch, semaphores);
    let banks = Banks::new(ctx);
    let mut scratch = Scratch::new(ctx.my_xy, banks);
    let mut stalls = WrapCount(0);

    loop {
        let (at, left) = fetcher.next_command(&status);
        let stride = match PrefetchCmdId::try_from(read8(at)) {
            Ok(PrefetchCmdId::RelayInline) => relay_inline(&mut relay, &mut fetcher, &status, at, left, true),
            Ok(PrefetchCmdId::RelayInlineNoflush) => relay_inline(&mut relay, &mut fetcher, &status, at, left, false),
            Ok(PrefetchCmdId::Stall) => {
                stalls = stalls.plus(1);
                wait(SEM_SYNC.addr(semaphores), |count| WrapCount(count).wrap_ge(stalls));
                BARE
            }
            Ok(PrefetchCmdId::Terminate) if !fetcher.in_buffer() => break,
            Ok(id) => {
                let ends = Ends { fetcher: &mut fetcher, relay: &mut relay, status: &status };
                other(id, &mut scratch, &banks, at, left, ends)
            }
            Err(_) => {
                status.halt(Fault::UnknownCommand, u32::from(read8(at)), at);
                left
            }
        };
        fetcher.advance(stride, &status);
        status.count();
    }
    status.count();

    // All pages must come back: a missing one is a leaked credit, and waiting for it here is where
    // that shows.
    let credits = SEM_DISPATCH_PAGES.addr(semaphores);
    wait(credits, |count| relay.dispatch_all_back(WrapCount(count)));
    relay.finish();
    scratch.wait_ring();
}

/// Executes a command that need not be quick; returns what is left of its stride.
#[inline(never)]
fn other(id: PrefetchCmdId, scratch: &mut Scratch, banks: &Banks, at: u32, left: u32, mut ends: Ends<'_>) -> u32 {
    let done = match id {
        PrefetchCmdId::RelayLinear => Ok(scratch.relay_linear(at, &mut ends)),
        PrefetchCmdId::RelayLinearH => Ok(scratch.relay_linear_h(at, &mut ends)),
        PrefetchCmdId::RelayPaged => scratch.relay_paged(at, &mut ends),
        PrefetchCmdId::RelayPagedPacked => scratch.relay_paged_packed(at, left, &mut ends),
        PrefetchCmdId::PagedToRingbuffer => scratch.paged_to_ringbuffer(at),
        PrefetchCmdId::SetRingbufferOffset => scratch.set_ringbuffer_offset(at),
        PrefetchCmdId::RelayRingbuffer => scratch.relay_ringbuffer(at, left, &mut ends),
        PrefetchCmdId::Debug => debug(at, left, &ends),
        PrefetchCmdId::ExecBuf => exec_buf(banks, at, left, &mut ends),
        PrefetchCmdId::ExecBufEnd if ends.fetcher.in_buffer() => {
            let cmd: RelayInline = command(at);
            let (bytes, stride) = (cmd.length.get(), cmd.stride.get());
            if bytes > left || stride < bytes + HEADER || stride > left {
                return refuse(&ends, at, left, (Fault::BadStride, stride));
            }
            relay_in_parts(ends.relay, ends.fetcher, ends.status, cmd, true);
            ends.fetcher.leave();
            Ok(0)
        }
        id => Err((Fault::UnknownCommand, id as u32)),
    };
    done.unwrap_or_else(|refused| refuse(&ends, at, left, refused))
}

/// Stops at a command that cannot be executed; returns what is skipped of its record afterwards.
#[cold]
#[inline(never)]
fn refuse(ends: &Ends<'_>, at: u32, left: u32, (fault, detail): Refused) -> u32 {
    ends.status.halt(fault, detail, at);
    // Without a stride that makes sense, the rest of the record is as unknown.
    if matches!(fault, Fault::UnknownCommand | Fault::BadStride) { left } else { left.min(BARE) }
}

/// `DEBUG`: leaves its key in the status block and checks its payload.
fn debug(at: u32, left: u32, ends: &Ends<'_>) -> Result<u32, Refused> {
    let cmd: DebugCmd = command(at);
    ends.status.waypoint(u32::from(cmd.key.get()));
    let (stride, size, checksum) = (cmd.stride.get(), cmd.size.get(), cmd.checksum.get());
    if stride < HEADER || stride > left {
        return Err((Fault::BadStride, stride));
    }
    if checksum != 0 {
        // The payload may go on behind the stride, but not behind what is here.
        let words = size / size_of::<u32>() as u32;
        if size > ends.fetcher.present() - HEADER {
            return Err((Fault::BadSize, size));
        }
        let word = |i| read(at + HEADER + i * size_of::<u32>() as u32);
        let found = (0..words).fold(0u32, |sum, i| sum.wrapping_add(word(i)));
        if found != checksum {
            ends.status.halt(Fault::BadChecksum, found, at);
        }
    }
    Ok(stride)
}

/// `EXEC_BUF`: the next commands are those of a buffer.
fn exec_buf(banks: &Banks, at: u32, left: u32, ends: &mut Ends<'_>) -> Result<u32, Refused> {
    let cmd: ExecBuf = command(at);
    let (log, count) = (cmd.log_page_size.get(), cmd.pages.get());
    let page_size = 1u32.checked_shl(log).unwrap_or(0);
    let pages = Pages::new(banks, true, 0, cmd.base_addr.get(), page_size).ok_or((Fault::BadSize, log))?;
    let bytes = page_size.checked_mul(count).filter(|&bytes| bytes != 0).ok_or((Fault::BadSize, count))?;
    if left != BARE || !ends.fetcher.enter(pages, bytes, count) {
        return Err((Fault::BadExecBuf, left));
    }
    Ok(0)
}

/// Executes `RELAY_INLINE` or, without `flush`, `RELAY_INLINE_NOFLUSH`; returns what is left of its
/// stride.
#[inline(always)]
fn relay_inline(relay: &mut Relay, fetcher: &mut Fetcher, status: &Status, at: u32, left: u32, flush: bool) -> u32 {
    let cmd: RelayInline = command(at);
    let bytes = cmd.length.get();
    let stride = cmd.stride.get();
    // The payload lies between header and stride; `bytes` is checked against `left` first so that
    // the sum cannot wrap.
    if bytes > left || stride < bytes + HEADER || stride > left {
        status.halt(Fault::BadStride, stride, at);
        return left;
    }
    if bytes + HEADER > fetcher.present() {
        return relay_in_parts(relay, fetcher, status, cmd, flush);
    }
    relay_payload(relay, fetcher, status, cmd, Payload { from: at + HEADER, bytes }, flush);
    stride
}

/// Relays what is here of an inline relay's payload.
#[inline(always)]
fn relay_payload(
    relay: &mut Relay,
    fetcher: &mut Fetcher,
    status: &Status,
    cmd: RelayInline,
    payload: Payload,
    flush: bool,
) {
    match DispatcherSelect::try_from(cmd.dispatcher_type) {
        Ok(DispatcherSelect::Master) => relay.to_dispatch(fetcher, status, payload, flush),
        Ok(DispatcherSelect::Subordinate) => relay.to_subordinate(fetcher, status, payload, flush),
        Err(unknown) => status.halt(Fault::UnknownDispatcher, u32::from(unknown.found), payload.from - HEADER),
    }
}

/// As [`relay_inline`], when the payload passes the end of a chunk of a command buffer.
#[inline(never)]
fn relay_in_parts(relay: &mut Relay, fetcher: &mut Fetcher, status: &Status, cmd: RelayInline, flush: bool) -> u32 {
    let mut left = cmd.length.get();
    fetcher.advance(HEADER, status);
    while left != 0 {
        if fetcher.present() == 0 {
            fetcher.next_chunk(status);
        }
        let bytes = left.min(fetcher.present());
        left -= bytes;
        let payload = Payload { from: fetcher.at(), bytes };
        relay_payload(relay, fetcher, status, cmd, payload, flush && left == 0);
        fetcher.advance(bytes, status);
    }
    cmd.stride.get() - HEADER - cmd.length.get()
}
