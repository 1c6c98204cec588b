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
//!   `EXEC_BUF` is over: the buffer has the command data queue to itself (tt-metal#8062). The
//!   record ends with `EXEC_BUF`.
//! - **`DEBUG`** has a checksum in what is padding in the public header; zero is not checked.
//! - The device side of a split prefetcher is made of the same sources (feature `device-side`): its
//!   commands come from the ring that the host side fills, and command buffers go through its own
//!   command data queue. The host side passes nothing on behind a record with the stall flag until
//!   the dispatcher's `EXEC_BUF_END` has come there, so that is what `EXEC_BUF_END` must carry.
#![no_std]
#![no_main]

mod buffer;
#[cfg_attr(feature = "device-side", path = "records.rs")]
mod fetcher;
mod relay;
mod scratch;
mod source;

use fetcher::Fetcher;
use relay::{Payload, Relay};
use scratch::{Ends, Refused, Scratch};
use source::{Banks, Pages};
use tilework_abi::cq::count::WrapCount;
use tilework_abi::cq::dispatch::DispatchCmdId;
use tilework_abi::cq::layout::prefetch_core::{SEM_DISPATCH_PAGES, SEM_SYNC};
use tilework_abi::cq::prefetch::{DebugCmd, DispatcherSelect, ExecBuf, PrefetchCmdId, RelayInline};
use tilework_abi::cq::status::{Fault, Kernel};
use tilework_abi::cq::{CMD_SIZE, PREFETCH_BARE_STRIDE};
use tilework_cq_core::command;
use tilework_cq_core::halt::Status;
use tilework_cq_core::peers::Peers;
use tilework_rt::reg::{read, read8, wait};
use tilework_rt::{KernelContext, kernel};

/// Bytes of a header.
const HEADER: u32 = CMD_SIZE as u32;
/// Bytes of a command without an explicit stride.
const BARE: u32 = PREFETCH_BARE_STRIDE as u32;

/// The ids of the commands that are quick, or end the loop.
const RELAY_INLINE: u8 = PrefetchCmdId::RelayInline as u8;
const RELAY_INLINE_NOFLUSH: u8 = PrefetchCmdId::RelayInlineNoflush as u8;
const STALL: u8 = PrefetchCmdId::Stall as u8;
const TERMINATE: u8 = PrefetchCmdId::Terminate as u8;

kernel!(main);

fn main(ctx: &KernelContext) {
    let semaphores = ctx.semaphores;
    let peers = Peers::told(ctx);
    let mut status = Status::new(Kernel::Prefetch);
    let mut fetcher = Fetcher::new(ctx, &peers);
    let mut relay = Relay::new(ctx.my_xy, &peers, semaphores);
    let banks = Banks::new(ctx);
    let mut scratch = Scratch::new(ctx.my_xy, banks);
    let mut stalls = WrapCount(read(SEM_SYNC.addr(semaphores)));

    loop {
        let (at, left) = fetcher.next_command(&status);
        // No table between a command and its code: it would be a load from L1.
        let stride = match read8(at) {
            RELAY_INLINE => relay_inline(&mut relay, &mut fetcher, &status, at, left, true),
            RELAY_INLINE_NOFLUSH => relay_inline(&mut relay, &mut fetcher, &status, at, left, false),
            STALL => {
                stalls = stalls.plus(1);
                wait(SEM_SYNC.addr(semaphores), |count| WrapCount(count).wrap_ge(stalls));
                BARE
            }
            TERMINATE if !fetcher.in_buffer() => break,
            id => {
                let ends = Ends { fetcher: &mut fetcher, relay: &mut relay, status: &status };
                other(id, &mut scratch, &banks, at, left, ends)
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
    fetcher.finish();
}

/// Executes a command that need not be quick; returns what is left of its stride.
#[inline(never)]
fn other(id: u8, scratch: &mut Scratch, banks: &Banks, at: u32, left: u32, mut ends: Ends<'_>) -> u32 {
    let Ok(command) = PrefetchCmdId::try_from(id) else {
        return refuse(&ends, at, left, (Fault::UnknownCommand, id.into()));
    };
    let done = match command {
        PrefetchCmdId::RelayLinear => Ok(scratch.relay_linear(at, &mut ends)),
        PrefetchCmdId::RelayLinearH => Ok(scratch.relay_linear_h(at, &mut ends)),
        PrefetchCmdId::RelayPaged => scratch.relay_paged(at, &mut ends),
        PrefetchCmdId::RelayPagedPacked => scratch.relay_paged_packed(at, left, &mut ends),
        PrefetchCmdId::PagedToRingbuffer => scratch.paged_to_ringbuffer(at),
        PrefetchCmdId::SetRingbufferOffset => scratch.set_ringbuffer_offset(at),
        PrefetchCmdId::RelayRingbuffer => scratch.relay_ringbuffer(at, left, &mut ends),
        PrefetchCmdId::Debug => debug(at, left, &ends),
        PrefetchCmdId::ExecBuf => exec_buf(banks, at, left, &mut ends),
        PrefetchCmdId::ExecBufEnd if ends.fetcher.in_buffer() => exec_buf_end(at, left, &mut ends),
        _ => Err((Fault::UnknownCommand, id.into())),
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

/// `EXEC_BUF_END`: relays what it carries; records follow again.
fn exec_buf_end(at: u32, left: u32, ends: &mut Ends<'_>) -> Result<u32, Refused> {
    let inline = Inline::new(at, left).map_err(|stride| (Fault::BadStride, stride))?;
    if cfg!(feature = "device-side") {
        // Chunks begin and end at multiples of 64 bytes, so the first byte behind the header is
        // here.
        let carried = read8(at + HEADER);
        if inline.bytes == 0 || carried != DispatchCmdId::ExecBufEnd as u8 {
            return Err((Fault::BadExecBufEnd, carried.into()));
        }
    }
    relay_in_parts(ends.relay, ends.fetcher, ends.status, inline, true);
    ends.fetcher.leave();
    Ok(0)
}

/// The header of an inline relay, in registers.
#[derive(Clone, Copy)]
struct Inline {
    dispatcher: u8,
    bytes: u32,
    stride: u32,
}

impl Inline {
    /// The header at `at`, when its payload lies between header and stride and its stride within
    /// the `left` bytes of its record; otherwise the stride.
    #[inline(always)]
    fn new(at: u32, left: u32) -> Result<Self, u32> {
        let cmd: RelayInline = command(at);
        let (bytes, stride) = (cmd.length.get(), cmd.stride.get());
        // `bytes` is checked against `left` first so that the sum cannot wrap.
        if bytes > left || stride < bytes + HEADER || stride > left {
            return Err(stride);
        }
        Ok(Self { dispatcher: cmd.dispatcher_type, bytes, stride })
    }
}

/// Executes `RELAY_INLINE` or, without `flush`, `RELAY_INLINE_NOFLUSH`; returns what is left of its
/// stride.
#[inline(always)]
fn relay_inline(relay: &mut Relay, fetcher: &mut Fetcher, status: &Status, at: u32, left: u32, flush: bool) -> u32 {
    match Inline::new(at, left) {
        Ok(inline) if inline.bytes + HEADER <= fetcher.present() => {
            relay_payload(relay, fetcher, status, inline, at + HEADER, flush);
            inline.stride
        }
        Ok(inline) => relay_in_parts(relay, fetcher, status, inline, flush),
        Err(stride) => {
            status.halt(Fault::BadStride, stride, at);
            left
        }
    }
}

/// Relays the payload of `inline` at `from`, or what is here of it.
#[inline(always)]
fn relay_payload(relay: &mut Relay, fetcher: &mut Fetcher, status: &Status, inline: Inline, from: u32, flush: bool) {
    let payload = Payload { from, bytes: inline.bytes };
    match DispatcherSelect::try_from(inline.dispatcher) {
        Ok(DispatcherSelect::Master) => relay.to_dispatch(fetcher, status, payload, flush),
        Ok(DispatcherSelect::Subordinate) => relay.to_subordinate(fetcher, status, payload, flush),
        Err(unknown) => status.halt(Fault::UnknownDispatcher, u32::from(unknown.found), from - HEADER),
    }
}

/// As [`relay_inline`], when the payload passes the end of a chunk of a command buffer.
#[inline(never)]
fn relay_in_parts(relay: &mut Relay, fetcher: &mut Fetcher, status: &Status, inline: Inline, flush: bool) -> u32 {
    let mut left = inline.bytes;
    fetcher.advance(HEADER, status);
    while left != 0 {
        if fetcher.present() == 0 {
            fetcher.next_chunk(status);
        }
        let bytes = left.min(fetcher.present());
        left -= bytes;
        relay_payload(relay, fetcher, status, Inline { bytes, ..inline }, fetcher.at(), flush && left == 0);
        fetcher.advance(bytes, status);
    }
    inline.stride - HEADER - inline.bytes
}
