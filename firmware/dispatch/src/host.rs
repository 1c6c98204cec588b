//! `WRITE_LINEAR_H_HOST`: the completion FIFO (seed 001 sections 4.4 and 7, figure 10).
//!
//! The command goes to the host with its header. Each piece that is present takes whole pages of
//! the FIFO: wait until the host's read pointer leaves room, write, wait for the acknowledgements,
//! then move the pointer on, here and in host memory.

use tilework_abi::cq::completion::{CompletionPtr, CompletionRange};
use tilework_abi::cq::dispatch::WriteHost;
use tilework_abi::cq::layout::dispatch_core::{COMPLETION_Q_RD_PTR, COMPLETION_Q_WR_PTR};
use tilework_abi::cq::layout::{HOST_REGION_NOC_BASE, PAGE_SIZE, host};
use tilework_abi::cq::status::Fault;
use tilework_abi::noc::PCIE_HOST_MID;
use tilework_cq_core::command;
use tilework_cq_core::span::packet;
use tilework_rt::niu::WRITE;
use tilework_rt::reg::{publish, read, wait, write};

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
        while left != 0 {
            let here = self.wait_for_data();
            let bytes = u32::try_from(left).unwrap_or(u32::MAX).min(here);
            self.push(&mut fifo, bytes);
            self.advance(bytes);
            left -= u64::from(bytes);
        }
        self.completion = Some(fifo);
    }

    /// Writes `bytes` that are present to the next pages of the FIFO and tells the host.
    fn push(&mut self, fifo: &mut Completion, bytes: u32) {
        let pages = bytes.div_ceil(PAGE_SIZE);
        wait(COMPLETION_Q_RD_PTR, |word| fifo.range.free_pages(fifo.wr, CompletionPtr::from_word(word)) >= pages);
        let (mut from, mut to, mut left) = (self.at(), fifo.wr.noc_addr(), bytes);
        while left != 0 {
            let n = packet(left, fifo.range.end_addr() - to);
            self.write(from, self.peers.pcie, to, n, 1);
            from += n;
            left -= n;
            to += n;
            if to == fifo.range.end_addr() {
                to = fifo.range.base_addr();
            }
        }
        // The host must not see the pointer before the data.
        self.barrier();
        fifo.wr = fifo.range.advance(fifo.wr, pages);
        write(COMPLETION_Q_WR_PTR, fifo.wr.word());
        publish(COMPLETION_Q_WR_PTR);
        self.write(COMPLETION_Q_WR_PTR, self.peers.pcie, fifo.host_word, 4, 1);
        // The word is the source of that write: it must have left before the word changes again.
        self.wait_left();
    }
}
