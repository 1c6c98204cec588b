//! `WRITE_LINEAR_H_HOST`: the completion FIFO (seed 001 sections 4.4 and 7, figure 10).
//!
//! The command goes to the host with its header, in portions of whole pages of the FIFO: wait until
//! the host's read pointer leaves room, write, wait for the acknowledgements, then move the pointer
//! on, here and in host memory. While a portion's acknowledgements are on their way the next one is
//! written, so that the way to the host and back costs nothing in a long stream.
//!
//! Which portion is acknowledged is known by its transaction id; these ids are only used here, for
//! unicasts, and all are answered when the command ends. Two portions are shorter than a block of
//! the ring, so the block that is given back never holds the source of one
//! ([`tilework_cq_core::reader`]).

use tilework_abi::cq::completion::{CompletionPtr, CompletionRange};
use tilework_abi::cq::dispatch::WriteHost;
use tilework_abi::cq::layout::dispatch_core::{COMPLETION_Q_RD_PTR, COMPLETION_Q_WR_PTR, DISPATCH_CB};
use tilework_abi::cq::layout::{HOST_REGION_NOC_BASE, PAGE_SIZE, host};
use tilework_abi::cq::status::Fault;
use tilework_abi::noc::{PCIE_HOST_MID, TAG_TRID_SHIFT, init};
use tilework_cq_core::command;
use tilework_cq_core::initiators::dispatch::{HOST_IDS, NIU, POINTER_ID, WRITES};
use tilework_cq_core::span::packet;
use tilework_rt::niu::WRITE;
use tilework_rt::reg::{fence, publish, read, wait, write};

use crate::HEADER;
use crate::core::Core;

/// The completion FIFO and the position in it.
#[derive(Clone, Copy)]
pub struct Completion {
    range: CompletionRange,
    wr: CompletionPtr,
    /// Where the host looks for the write pointer.
    host_word: u32,
}

impl Completion {
    /// From the pointer that the host stored before the start. A pointer into the original's FIFO
    /// is a place in that; any other is the start of a FIFO in a host region at another address.
    fn from_word(word: u32) -> Option<Self> {
        let wr = CompletionPtr::from_word(word);
        let base = if CompletionRange::STANDARD.page_of(wr).is_some() {
            HOST_REGION_NOC_BASE
        } else {
            let base = wr.noc_addr().checked_sub(host::COMPLETION.offset())?;
            if wr.toggle() || base > u32::MAX - host::REGION_SIZE {
                return None;
            }
            base
        };
        let range = CompletionRange::new(base, host::COMPLETION);
        Some(Self { range, wr, host_word: base + host::CQ_WR.offset() })
    }
}

/// Most bytes of a portion.
const PORTION: u32 = 8 * PAGE_SIZE;
const _: () = assert!(2 * PORTION < DISPATCH_CB.pages_per_block().get() * PAGE_SIZE);

/// The writes of one command.
struct Stream {
    /// Where the next portion goes.
    next: CompletionPtr,
    /// The portion that the host has not been told of: its transaction id and its end.
    pending: Option<(u32, CompletionPtr)>,
    /// Whether everything that earlier commands wrote is acknowledged.
    all_before: bool,
    /// Which transaction id the next portion has.
    parity: bool,
}

impl Core {
    /// `WRITE_LINEAR_H_HOST`: an event, or buffer data that is read back.
    pub fn write_host(&mut self) {
        let cmd: WriteHost = command(self.at());
        let mut left = cmd.length.get();
        if left < u64::from(HEADER) {
            return self.refuse(Fault::BadSize, left as u32);
        }
        if self.pass_on(left) {
            return;
        }
        let mut fifo = match self.completion {
            Some(fifo) => fifo,
            None => {
                let word = read(COMPLETION_Q_WR_PTR);
                match Completion::from_word(word) {
                    Some(fifo) => fifo,
                    None => return self.refuse(Fault::BadCompletionPointer, word),
                }
            }
        };
        self.setup_writes(WRITE, PCIE_HOST_MID);
        let mut stream = Stream { next: fifo.wr, pending: None, all_before: false, parity: false };
        while left != 0 {
            if self.is_starved() {
                // Nothing is there to be written meanwhile: the host gets what was.
                self.settle(&mut fifo, &mut stream);
            }
            let bytes = u32::try_from(left).unwrap_or(u32::MAX).min(self.wait_for_data()).min(PORTION);
            self.portion(&mut fifo, &mut stream, bytes);
            self.advance(bytes);
            left -= u64::from(bytes);
        }
        self.settle(&mut fifo, &mut stream);
        self.completion = Some(fifo);
    }

    /// Writes `bytes` that are present, at most [`PORTION`], to the next pages of the FIFO, and
    /// tells the host of the portion before.
    fn portion(&mut self, fifo: &mut Completion, stream: &mut Stream, bytes: u32) {
        let pages = bytes.div_ceil(PAGE_SIZE);
        let (range, next) = (fifo.range, stream.next);
        let room = |word| range.free_pages(next, CompletionPtr::from_word(word)) >= pages;
        fence();
        if !room(read(COMPLETION_Q_RD_PTR)) {
            // The host makes room when it knows of everything.
            self.settle(fifo, stream);
            wait(COMPLETION_Q_RD_PTR, room);
        }
        let id = HOST_IDS[usize::from(stream.parity)];
        WRITES.wait_ready();
        WRITES.set(init::PACKET_TAG, id << TAG_TRID_SHIFT);
        let (mut from, mut to, mut left) = (self.at(), next.noc_addr(), bytes);
        while left != 0 {
            let n = packet(left, range.end_addr() - to);
            self.write(from, self.peers.pcie, to, n, 1);
            from += n;
            left -= n;
            to += n;
            if to == range.end_addr() {
                to = range.base_addr();
            }
        }
        self.settle(fifo, stream);
        stream.next = range.advance(next, pages);
        stream.parity = !stream.parity;
        stream.pending = Some((id, stream.next));
    }

    /// Waits for the acknowledgements of the portion that the host has not been told of, if there
    /// is one, and moves the pointer on behind it, here and in host memory.
    fn settle(&mut self, fifo: &mut Completion, stream: &mut Stream) {
        let Some((id, wr)) = stream.pending.take() else { return };
        if ::core::mem::replace(&mut stream.all_before, true) {
            WRITES.wait_ready();
            NIU.wait_answered(id);
        } else {
            // The host must not see the first pointer before what earlier commands wrote, either.
            self.barrier();
        }
        // The word is the source of the last pointer's write, and pointers must not overtake.
        NIU.wait_answered(POINTER_ID);
        fifo.wr = wr;
        write(COMPLETION_Q_WR_PTR, wr.word());
        publish(COMPLETION_Q_WR_PTR);
        WRITES.set(init::PACKET_TAG, POINTER_ID << TAG_TRID_SHIFT);
        self.write(COMPLETION_Q_WR_PTR, self.peers.pcie, fifo.host_word, 4, 1);
    }
}
