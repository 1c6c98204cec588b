//! Waiting, go messages, time stamps and the commands that only set something (seed 001 sections
//! 4.5 and 6).

use tilework_abi::cq::count::WrapCount;
use tilework_abi::cq::dispatch::{
    GO_NO_MULTICAST, GO_SIGNAL_NOC_DATA_MAX_WORDS, NotifySubordinateGoSignal, SendGoSignal, SetGoSignalNocData,
    SetNumWorkerSems, SetWriteOffset, Timestamp, WRITE_OFFSETS, Wait, WaitFlags,
};
use tilework_abi::cq::layout::prefetch_core::{SEM_EXEC_BUF, SEM_SYNC};
use tilework_abi::cq::layout::{WORKER_SEMS, dispatch_core};
use tilework_abi::cq::status::Fault;
use tilework_abi::noc::{NocRect, PCIE_HOST_MID};
use tilework_abi::stream;
use tilework_cq_core::initiators::dispatch::WRITES;
use tilework_cq_core::local::Table;
use tilework_cq_core::{command, go};
use tilework_rt::niu::{MULTICAST, WRITE, XY_MASK};
use tilework_rt::reg::{publish, read, wait, wall_clock, write};

use crate::HEADER;
use crate::core::Core;
use crate::write::marked_mid;

/// Coordinates that go messages are sent to.
static GO_TARGETS: Table<GO_SIGNAL_NOC_DATA_MAX_WORDS> = Table::new();

impl Core {
    /// `WAIT`, its flags in the order of their documentation.
    pub fn wait_command(&mut self) {
        let cmd: Wait = command(self.at());
        let flags = WaitFlags::from_bits_retain(cmd.flags);
        let count = cmd.count.get();
        let stream_id = u32::from(cmd.stream.get());
        if flags.intersects(WaitFlags::WAIT_STREAM.union(WaitFlags::CLEAR_STREAM)) && stream_id >= stream::COUNT {
            return self.refuse(Fault::BadIndex, stream_id);
        }
        if flags.contains(WaitFlags::BARRIER) {
            self.barrier();
        }
        if flags.contains(WaitFlags::WAIT_MEMORY) {
            wait(cmd.addr.get(), |word| WrapCount(word).wrap_ge(WrapCount(count)));
        }
        if flags.contains(WaitFlags::WAIT_STREAM) {
            go::wait_stream(stream_id, count);
        }
        if flags.contains(WaitFlags::CLEAR_STREAM) {
            go::clear_stream(stream_id);
        }
        if flags.contains(WaitFlags::NOTIFY_PREFETCH) {
            self.notify_semaphore(self.peers.prefetch, SEM_SYNC, 1);
        }
        self.advance(HEADER);
    }

    /// `SEND_GO_SIGNAL`: when the stream has reached its count and all data is where it belongs,
    /// the go message, to rectangles and to single tiles.
    pub fn send_go_signal(&mut self) {
        let cmd: SendGoSignal = command(self.at());
        let stream_id = cmd.wait_stream.get();
        if stream_id >= stream::COUNT {
            return self.refuse(Fault::BadIndex, stream_id);
        }
        let (start, number) = (usize::from(cmd.noc_data_start_index), usize::from(cmd.num_unicast_txns));
        if start + number > GO_SIGNAL_NOC_DATA_MAX_WORDS {
            return self.refuse(Fault::TooMany, (start + number) as u32);
        }
        let message = cmd.go_signal.get();
        let multicast = cmd.multicast_go_offset;
        let count = cmd.wait_count.get();
        self.barrier();
        if multicast != GO_NO_MULTICAST {
            // What can be done before the workers report is: the way from the last report to the
            // next go message is what a stream of short programs consists of.
            let to = go::multicast_address(self.go, multicast);
            let from = go::stage(self.at(), message, to);
            let rects = self.peers.worker_rects(NocRect::encode_noc1);
            self.setup_writes(MULTICAST, 0);
            go::prepare(WRITES, from, to);
            go::wait_stream(stream_id, count);
            // Neither is linked to the other, so neither waits for the other: the NIU reserves
            // their paths one after the other (NoC/MemoryMap.md, `NOC_CMD_PATH_RESERVE`).
            for (rect, recipients) in rects {
                go::send(WRITES, self.my_xy, rect);
                self.expect(recipients);
            }
        }
        if number != 0 {
            let from = go::stage(self.at(), message, self.go);
            self.setup_writes(WRITE, 0);
            go::prepare(WRITES, from, self.go);
            go::wait_stream(stream_id, count);
            GO_TARGETS.words(start, number).iter().for_each(|&xy| go::send(WRITES, self.my_xy, xy));
            self.expect(number as u32);
        } else if multicast == GO_NO_MULTICAST {
            go::wait_stream(stream_id, count);
        }
        self.advance(HEADER);
    }

    /// `SET_GO_SIGNAL_NOC_DATA`.
    pub fn set_go_signal_noc_data(&mut self) {
        let cmd: SetGoSignalNocData = command(self.at());
        let words = cmd.num_words.get();
        if words as usize > GO_SIGNAL_NOC_DATA_MAX_WORDS {
            return self.refuse(Fault::TooMany, words);
        }
        // All of them lie in the command's first page.
        GO_TARGETS.fill(0, self.at() + HEADER, words as usize);
        self.advance(HEADER + 4 * words);
    }

    /// `SET_WRITE_OFFSET`.
    pub fn set_write_offset(&mut self) {
        let cmd: SetWriteOffset = command(self.at());
        let count = usize::from(cmd.offset_count);
        if count > WRITE_OFFSETS {
            return self.refuse(Fault::TooMany, count as u32);
        }
        let words = self.at() + HEADER;
        for (i, offset) in self.write_offset.iter_mut().take(count).enumerate() {
            *offset = read(words + 4 * i as u32);
        }
        self.advance(HEADER + 4 * count as u32);
    }

    /// `SET_NUM_WORKER_SEMS`.
    pub fn set_num_worker_sems(&mut self) {
        let cmd: SetNumWorkerSems = command(self.at());
        let number = cmd.num_worker_sems.get();
        if number > WORKER_SEMS {
            return self.refuse(Fault::TooMany, number);
        }
        self.worker_sems = number;
        self.advance(HEADER);
    }

    /// `EXEC_BUF_END`: tells the core that reads records that nothing of the exec buffer is left.
    pub fn exec_buf_end(&mut self) {
        if self.pass_on(u64::from(HEADER)) {
            return;
        }
        self.notify_semaphore(self.peers.issue, SEM_EXEC_BUF, 1);
        self.advance(HEADER);
    }

    /// `NOTIFY_SUBORDINATE_GO_SIGNAL`: on this tile the subordinate's semaphores are plain words of
    /// which this core is the only writer.
    pub fn notify_subordinate(&mut self) {
        let cmd: NotifySubordinateGoSignal = command(self.at());
        let mut mask = u32::from(cmd.index_bitmask.get());
        if mask >> self.worker_sems != 0 {
            return self.refuse(Fault::BadIndex, mask);
        }
        if cmd.wait != 0 {
            self.barrier();
        }
        let here = self.peers.subordinate == self.my_xy;
        while mask != 0 {
            let sem = dispatch_core::sync_sem(mask.trailing_zeros()).get();
            if here {
                write(sem, read(sem).wrapping_add(1));
            } else {
                self.notify(self.peers.subordinate, sem, 1);
            }
            mask &= mask - 1;
        }
        self.advance(HEADER);
    }

    /// `TIMESTAMP`: the wall clock, sent from the command's own bytes. Eight bytes aligned to
    /// eight; source and destination must agree in their low four bits. Whoever reads the slot
    /// waits for a later completion, which waits for this write.
    pub fn timestamp(&mut self) {
        let cmd: Timestamp = command(self.at());
        let (named, to) = (cmd.noc_xy_addr.get(), cmd.addr.get());
        let now = wall_clock();
        // The mark of host memory is no coordinate; not every chip ignores it in that register.
        let xy = named & XY_MASK;
        let mid = if xy == self.peers.pcie { PCIE_HOST_MID } else { marked_mid(named) };
        if mid != 0 && self.pass_on_time(xy, to, now) {
            return;
        }
        let from = self.at() + (to & 8);
        write(from, now as u32);
        write(from + 4, (now >> 32) as u32);
        publish(from + 4);
        self.setup_writes(WRITE, mid);
        self.write(from, xy, to, 8, 1);
        self.advance(HEADER);
    }
}
