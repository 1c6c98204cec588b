//! What the prefetcher keeps: command buffers in DRAM, and the ring buffer.

use super::{Rig, Sourced};
use tilework_abi::cq::dispatch::WaitFlags;
use tilework_abi::cq::layout::dispatch_core::DISPATCH_CB;
use tilework_abi::cq::layout::prefetch_core::{PREFETCH_Q_LOG_UNIT, PREFETCH_Q_STALL_BIT};
use tilework_abi::cq::prefetch::DispatcherSelect;
use tilework_cq::prefetch::{ExecBuf, Inline, PagedToRing};
use tilework_cq::{DispatchCommand, PrefetchCommand, Record};
use tilework_driver::Target;

/// Where the first command buffer lies in each bank: behind what the shadow covers. Others follow
/// it, because one may be stored while those before it are still to be executed.
pub(super) const BUFFER_BASE: u32 = 0x40_0000;

impl Rig {
    /// From here on records go into a command buffer, until [`Rig::execute`].
    pub(crate) fn begin_buffer(&mut self) {
        self.buffer = Some(Vec::new());
    }

    /// Ends the command buffer with `last`, stores it in pages of `1 << log_page_size` bytes and
    /// sends the command that executes it. `spare` pages behind its end belong to it, too. The end
    /// of a buffer for a split prefetcher carries the dispatcher's `EXEC_BUF_END` and nothing else.
    pub(crate) fn execute(&mut self, last: &DispatchCommand, log_page_size: u32, spare: u32) {
        let mut last = last;
        if self.is_split() {
            self.send(last);
            last = &DispatchCommand::ExecBufEnd;
        }
        self.execute_to(last, log_page_size, spare);
    }

    /// As [`Rig::execute`], with `last` at the end in every layout.
    pub(crate) fn execute_to(&mut self, last: &DispatchCommand, log_page_size: u32, spare: u32) {
        let payload = self.note(last);
        self.dispatch.append(DISPATCH_CB, payload.len() as u32, true);
        self.prefetch_commands += 1;
        let end = PrefetchCommand::ExecBufEnd(Inline { dispatcher: DispatcherSelect::Master, payload });
        self.record(Record::new(&end).unwrap().bytes(), None);
        let mut bytes = self.buffer.take().expect("a command buffer was begun");
        let pages = (bytes.len() as u32).div_ceil(1 << log_page_size) + spare;
        // What follows the end must not be executed.
        bytes.resize((pages << log_page_size) as usize, 0xEE);
        let (banks, base_addr) = (self.shadow.banks(), self.next_buffer);
        self.next_buffer += pages.div_ceil(banks as u32) << log_page_size;
        for (page, bytes) in bytes.chunks(1 << log_page_size).enumerate() {
            let port = self.shadow.dram_port(page % banks);
            let address = base_addr + ((page / banks) << log_page_size) as u32;
            self.card.write(&Target::tile(port), address, bytes).unwrap();
        }
        let command = PrefetchCommand::ExecBuf(ExecBuf { base_addr, log_page_size, pages });
        self.prefetch_as(&command, PREFETCH_Q_STALL_BIT | (64 >> PREFETCH_Q_LOG_UNIT));
    }

    /// Notes that the device side of a split prefetcher will release its host side, as the end of a
    /// command buffer does.
    pub(crate) fn host_side_released(&mut self) {
        self.exec_buf_ends += 1;
    }

    /// Sends a command of the prefetcher that relays nothing, with this entry for its record.
    pub(crate) fn prefetch_as(&mut self, command: &PrefetchCommand, entry: u16) {
        self.prefetch_commands += 1;
        self.record(Record::new(command).unwrap().bytes(), Some(entry));
    }

    /// Sends a command whose bytes are relayed inline without a flush, and a prefetch command of
    /// any bytes that brings nothing more and closes it.
    pub(crate) fn close_with(&mut self, command: &DispatchCommand, closing: &[u8]) {
        let bytes = self.note(command);
        self.raw_open(&bytes);
        self.dispatch.append(DISPATCH_CB, 0, true);
        self.scratch_used = true;
        self.raw_prefetch(closing);
    }

    /// Sends the commands that fill the ring buffer and that relay from it. What was written before
    /// has arrived.
    pub(crate) fn send_ring(&mut self, fills: &[PagedToRing], relays: &[Sourced]) {
        self.stall();
        for fill in fills {
            self.prefetch(&PrefetchCommand::PagedToRingbuffer(*fill));
        }
        relays.iter().for_each(|sourced| self.send_from(sourced, true));
        // The ring buffer is filled again only when its pieces have left: the
        // prefetcher sees to it.
        self.send(&super::wait(WaitFlags::BARRIER, 0, 0, 0));
    }
}
