//! `WRITE_LINEAR` and `WRITE_PAGED`: one destination, or the pages of an interleaved buffer (seed
//! 001 section 4.2).

use tilework_abi::cq::dispatch::{DispatchCmdId, WriteLinear, WritePaged};
use tilework_abi::cq::layout::PCIE_NOC_XY_MARK;
use tilework_abi::cq::status::Fault;
use tilework_abi::noc::{MAX_PACKET_BYTES, PCIE_HOST_MID, init};
use tilework_cq_core::command;
use tilework_cq_core::initiators::dispatch::WRITES;
use tilework_cq_core::paged::PageWalk;
use tilework_cq_core::span::packet;
use tilework_rt::niu::{MULTICAST, WRITE};
use tilework_rt::reg::read16;

use crate::core::Core;
use crate::{HEADER, LARGE_HEADER};

/// High address word of a destination that is named by a coordinate word, which may carry the mark
/// of host memory.
#[inline(always)]
pub fn marked_mid(xy: u32) -> u32 {
    if xy & PCIE_NOC_XY_MARK != 0 { PCIE_HOST_MID } else { 0 }
}

impl Core {
    /// `WRITE_LINEAR`: any number of bytes to one tile or one rectangle, 64-bit addresses.
    pub fn write_linear(&mut self) {
        let cmd: WriteLinear = command(self.at());
        let xy = cmd.noc_xy_addr.get();
        let mut to = cmd.addr.get().wrapping_add(u64::from(self.offset(u32::from(cmd.write_offset_index))));
        let mut left = cmd.length.get();
        let recipients = u32::from(cmd.num_mcast_dests);
        let mark = marked_mid(xy);
        let for_host_side = mark != 0 || cmd.cmd_id == DispatchCmdId::WriteLinearH as u8;
        if for_host_side && self.pass_on_linear(xy, recipients, to, left) {
            return;
        }
        self.advance(LARGE_HEADER);
        if recipients != 0 {
            self.barrier();
        }
        let (control, acks) = if recipients == 0 { (WRITE, 1) } else { (MULTICAST, recipients) };
        let mut mid = (to >> 32) as u32 | mark;
        self.setup_writes(control, mid);
        while left != 0 {
            let here = self.wait_for_data();
            let n = packet(u32::try_from(left).unwrap_or(u32::MAX), here);
            if mid != (to >> 32) as u32 | mark {
                mid = (to >> 32) as u32 | mark;
                WRITES.wait_ready();
                WRITES.set(init::RET_ADDR_MID, mid);
            }
            self.write(self.at(), xy, to as u32, n, acks);
            self.advance(n);
            to = to.wrapping_add(u64::from(n));
            left -= u64::from(n);
        }
    }

    /// `WRITE_PAGED`: whole pages, distributed over the banks of DRAM or L1.
    pub fn write_paged(&mut self) {
        let cmd: WritePaged = command(self.at());
        let (banks, table) = if cmd.is_dram != 0 { self.dram } else { self.l1 };
        let page_size = cmd.page_size.get();
        if page_size == 0 || banks == 0 {
            return self.refuse(Fault::BadSize, page_size);
        }
        let mut walk = PageWalk::new(u32::from(cmd.start_page.get()), cmd.base_addr.get(), page_size, banks);
        self.advance(HEADER);
        self.setup_writes(WRITE, 0);
        let mut pages = cmd.pages.get();
        while pages != 0 {
            let here = self.wait_for_data();
            if page_size <= MAX_PACKET_BYTES && page_size <= here {
                pages -= self.whole_pages(&mut walk, table, page_size, pages, here);
                continue;
            }
            let xy = u32::from(read16(table + 2 * walk.bank()));
            let (mut to, mut left) = (walk.addr(), page_size);
            while left != 0 {
                let here = self.wait_for_data();
                let n = packet(left, here);
                self.write(self.at(), xy, to, n, 1);
                self.advance(n);
                to = to.wrapping_add(n);
                left -= n;
            }
            walk.step();
            pages -= 1;
        }
    }

    /// Writes the whole pages, at most `pages`, that are present in `here` bytes, each in one
    /// packet of `size` bytes; returns their number. The loop stores only what differs between two
    /// pages.
    #[inline(always)]
    fn whole_pages(&mut self, walk: &mut PageWalk, table: u32, size: u32, pages: u32, here: u32) -> u32 {
        let my_xy = self.my_xy;
        let (mut from, mut left, mut written) = (self.at(), here, 0);
        WRITES.wait_ready();
        WRITES.set(init::AT_LEN_BE, size);
        while written != pages && left >= size {
            let xy = u32::from(read16(table + 2 * walk.bank()));
            WRITES.wait_ready();
            WRITES.set(init::TARG_ADDR_LO, from);
            WRITES.set(init::TARG_ADDR_HI, my_xy);
            WRITES.set(init::RET_ADDR_LO, walk.addr());
            WRITES.set(init::RET_ADDR_HI, xy);
            WRITES.start();
            from += size;
            left -= size;
            written += 1;
            walk.step();
        }
        self.expect(written);
        self.advance(written * size);
        written
    }
}
