//! The scratch buffer: relays of bytes that are not in the record go through it.
//!
//! Relays from memory use it in two halves. While one half is written to the dispatcher the reads
//! of the other are in flight. A byte is read over when the write of what was there is
//! acknowledged.
//!
//! The ring buffer is the same memory, in which the host keeps what it relays again and again; a
//! relay from memory overwrites it, as in the original.

use super::fetcher::Fetcher;
use super::relay::{PORTION, Payload, Relay};
use super::source::{Banks, Linear, PACKED_WORDS, PIECE_WORDS, Packed, Pages, Reads, SUBS, Source};
use super::{BARE, HEADER};
use tilework_abi::cq::layout::prefetch_core::SCRATCH_DB;
use tilework_abi::cq::prefetch::{
    PagedToRingbuffer, RELAY_PAGED_IS_DRAM, RELAY_PAGED_LENGTH_ADJUST_MASK, RELAY_PAGED_PACKED_MAX_SUBS,
    RELAY_RINGBUFFER_MAX_SUBS, RelayLinear, RelayLinearH, RelayPaged, RelayPagedPacked, RelayRingbuffer,
    RingbufferFlags, SetRingbufferOffset,
};
use tilework_abi::cq::status::Fault;
use tilework_abi::{DRAM_ALIGN, PCIE_ALIGN};
use tilework_cq_core::command;
use tilework_cq_core::halt::Status;
use tilework_cq_core::initiators::prefetch::{NIU, READS, RING_READ_ID, SCRATCH_READ_IDS};

/// Bytes of a half.
const HALF: u32 = SCRATCH_DB.size() / 2;
const BASE: u32 = SCRATCH_DB.base().get();

/// What the commands that use the scratch buffer work on.
pub struct Scratch {
    my_xy: u32,
    banks: Banks,
    /// Where the next bytes go in the ring buffer, and what its pieces are counted from: bytes from
    /// its start.
    write: u32,
    offset: u32,
}

/// The parts of the kernel that a relay works with.
pub struct Ends<'a> {
    /// Where the commands come from.
    pub fetcher: &'a mut Fetcher,
    /// Where the bytes go.
    pub relay: &'a mut Relay,
    /// Where errors go.
    pub status: &'a Status,
}

/// What a command says when it cannot be executed: the fault and its detail.
pub type Refused = (Fault, u32);

impl Scratch {
    /// The ring buffer is empty. `my_xy` is this tile.
    pub const fn new(my_xy: u32, banks: Banks) -> Self {
        Self { my_xy, banks, write: 0, offset: 0 }
    }

    /// Relays `bytes` bytes of `source` to the dispatcher and closes the page, which an inline
    /// relay without a flush has opened.
    #[inline(never)]
    fn relay(&self, source: &mut Source, bytes: u64, ends: &mut Ends<'_>) {
        let mut left = bytes;
        // What of the source fits behind `from` in a half, and where.
        let mut next = |half: usize, skew: u32| {
            let bytes = u32::try_from(left).unwrap_or(u32::MAX).min(HALF - skew);
            left -= u64::from(bytes);
            Payload { from: BASE + half as u32 * HALF + skew, bytes }
        };
        self.wait_ring();
        let (mut half, mut present) = (0, next(0, source.skew()));
        source.read(&mut Reads::new(self.my_xy, SCRATCH_READ_IDS[half]), present.from, present.bytes);
        loop {
            // Of the other half, only the newest portion may still be on its way to the dispatcher:
            // its end.
            let Payload { from, bytes } = next(half ^ 1, 0);
            let early = bytes.min(HALF - PORTION);
            let mut reads = Reads::new(self.my_xy, SCRATCH_READ_IDS[half ^ 1]);
            source.read(&mut reads, from, early);
            ends.relay.announce();
            source.read(&mut reads, from + early, bytes - early);
            ends.fetcher.look(ends.status);
            READS.wait_ready();
            NIU.wait_answered(SCRATCH_READ_IDS[half]);
            ends.relay.stream(present, true);
            if bytes == 0 {
                return close(ends);
            }
            (half, present) = (half ^ 1, Payload { from, bytes });
        }
    }

    /// `RELAY_LINEAR`; as all that follow, at `at`, and returns what is left of its stride behind
    /// what it has taken out of the record.
    pub fn relay_linear(&self, at: u32, ends: &mut Ends<'_>) -> u32 {
        let cmd: RelayLinear = command(at);
        let mut source = Source::Linear(Linear::new(cmd.noc_xy_addr.get(), cmd.addr.get()));
        self.relay(&mut source, cmd.length.get(), ends);
        BARE
    }

    /// `RELAY_LINEAR_H`: in this variant the node is on the same chip.
    pub fn relay_linear_h(&self, at: u32, ends: &mut Ends<'_>) -> u32 {
        let cmd: RelayLinearH = command(at);
        let mut source = Source::Linear(Linear::new(cmd.noc_xy_addr.get(), cmd.addr.get()));
        self.relay(&mut source, cmd.length.get().into(), ends);
        BARE
    }

    /// `RELAY_PAGED`.
    pub fn relay_paged(&self, at: u32, ends: &mut Ends<'_>) -> Result<u32, Refused> {
        let cmd: RelayPaged = command(at);
        let packed = cmd.is_dram_and_length_adjust.get();
        let is_dram = packed & RELAY_PAGED_IS_DRAM != 0;
        let (first, page_size) = (u32::from(cmd.start_page), cmd.page_size.get());
        let pages = Pages::new(&self.banks, is_dram, first, cmd.base_addr.get(), page_size);
        let pages = pages.ok_or((Fault::BadSize, page_size))?;
        let all = u64::from(cmd.pages.get()) * u64::from(page_size);
        let bytes = all.saturating_sub(u64::from(packed & RELAY_PAGED_LENGTH_ADJUST_MASK));
        self.relay(&mut Source::Pages(pages), bytes, ends);
        Ok(BARE)
    }

    /// `RELAY_PAGED_PACKED`, of whose record `left` bytes are left.
    pub fn relay_paged_packed(&self, at: u32, left: u32, ends: &mut Ends<'_>) -> Result<u32, Refused> {
        let cmd: RelayPagedPacked = command(at);
        let count = usize::from(cmd.count.get());
        let rest = take_subs(count, RELAY_PAGED_PACKED_MAX_SUBS, PACKED_WORDS, cmd.stride.get(), left, ends)?;
        let total = cmd.total_length.get();
        match Packed::new(&self.banks, count, total) {
            Some(packed) => self.relay(&mut Source::Packed(packed), total.into(), ends),
            None => ends.status.halt(Fault::BadSize, total, at),
        }
        Ok(rest)
    }

    /// `PAGED_TO_RINGBUFFER`. The reads are in flight when it returns.
    pub fn paged_to_ringbuffer(&mut self, at: u32) -> Result<u32, Refused> {
        let cmd: PagedToRingbuffer = command(at);
        let (length, log) = (cmd.length.get(), u32::from(cmd.log2_page_size));
        if cmd.flags & RingbufferFlags::RESET_TO_START.bits() != 0 {
            self.write = 0;
        }
        let (room, moves) = (SCRATCH_DB.size() - self.write, cmd.wp_offset_update.get());
        let page_size = 1u32.checked_shl(log).unwrap_or(0);
        let first = u32::from(cmd.start_page);
        let pages = Pages::new(&self.banks, true, first, cmd.base_addr.get(), page_size);
        let mut pages = pages.ok_or((Fault::BadSize, log))?;
        if moves > room || length > moves || (length | self.write) & (DRAM_ALIGN - 1) != 0 {
            return Err((Fault::BadSize, length));
        }
        pages.read(&mut Reads::new(self.my_xy, RING_READ_ID), BASE + self.write, length);
        self.offset = self.write;
        self.write += moves;
        Ok(BARE)
    }

    /// `SET_RINGBUFFER_OFFSET`.
    pub fn set_ringbuffer_offset(&mut self, at: u32) -> Result<u32, Refused> {
        let cmd: SetRingbufferOffset = command(at);
        let offset = cmd.offset.get();
        if offset > SCRATCH_DB.size() {
            return Err((Fault::BadSize, offset));
        }
        if cmd.update_wp != 0 {
            self.write = offset;
        } else {
            self.offset = offset;
        }
        Ok(BARE)
    }

    /// `RELAY_RINGBUFFER`, of whose record `left` bytes are left.
    pub fn relay_ringbuffer(&self, at: u32, left: u32, ends: &mut Ends<'_>) -> Result<u32, Refused> {
        let cmd: RelayRingbuffer = command(at);
        let count = usize::from(cmd.count.get());
        let rest = take_subs(count, RELAY_RINGBUFFER_MAX_SUBS, PIECE_WORDS, cmd.stride.get(), left, ends)?;
        let words = SUBS.words(0, count * PIECE_WORDS);
        let room = SCRATCH_DB.size() - self.offset;
        for piece in words.chunks_exact(PIECE_WORDS) {
            if let &[start, length] = piece
                && (start > room || length > room - start)
            {
                ends.status.halt(Fault::BadSize, start, at);
                return Ok(rest);
            }
        }
        self.wait_ring();
        for piece in words.chunks_exact(PIECE_WORDS) {
            if let &[start, bytes] = piece {
                ends.relay.stream(Payload { from: BASE + self.offset + start, bytes }, true);
            }
        }
        close(ends);
        Ok(rest)
    }

    /// Waits until the ring buffer holds what was read into it.
    pub fn wait_ring(&self) {
        READS.wait_ready();
        NIU.wait_answered(RING_READ_ID);
    }
}

/// Closes the page that an inline relay without a flush has opened.
#[inline(never)]
fn close(ends: &mut Ends<'_>) {
    ends.relay.close(ends.fetcher, ends.status, true);
}

/// Takes the `count` sub-commands of `words` words each out of a command with this stride; returns
/// the rest of the stride.
#[inline(never)]
fn take_subs(
    count: usize,
    most: usize,
    words: usize,
    stride: u32,
    left: u32,
    ends: &mut Ends<'_>,
) -> Result<u32, Refused> {
    if count > most {
        return Err((Fault::TooMany, count as u32));
    }
    let taken = HEADER + (count * words * size_of::<u32>()) as u32;
    if stride < taken || stride > left {
        return Err((Fault::BadStride, stride));
    }
    ends.fetcher.advance(HEADER, ends.status);
    ends.fetcher.take_words(&SUBS, count * words, ends.status);
    Ok(stride - taken)
}

const _: () = assert!(HALF.is_multiple_of(DRAM_ALIGN) && BASE.is_multiple_of(PCIE_ALIGN));
const _: () = assert!(DRAM_ALIGN <= PCIE_ALIGN && PORTION < HALF && PORTION.is_multiple_of(PCIE_ALIGN));
