//! `cq_dispatch_subordinate`: sends go messages while the dispatcher goes on.
//!
//! Runs on the NCRISC of the dispatch core, or of a tile of its own, as a kernel in host mode, on
//! NoC 0. Follows seed 001 section 5. Unless the dispatch layout says otherwise the host sends it
//! nothing, and it is asleep on its first page.
//!
//! On a tile of its own the workers report to that tile ([`counts`]).
//!
//! Next to the dispatcher it shares NIU 0 with it and makes only posted requests, so that the
//! dispatcher's count of answers stays its own ([`tilework_cq_core::initiators`]). Its ring and its
//! semaphore are its own as well; in the original both rings count pages in semaphore 0, and the
//! subordinate would wake for the dispatcher's.
//!
//! It does not check that the data of a program has arrived: the dispatcher does, by
//! `NOTIFY_SUBORDINATE_GO_SIGNAL` with its wait flag.
#![no_std]
#![no_main]

mod counts;
mod ring;

use counts::Counts;
use ring::Ring;
use tilework_abi::cq::CMD_SIZE;
use tilework_abi::cq::count::WrapCount;
use tilework_abi::cq::dispatch::{
    DispatchCmdId, GO_NO_MULTICAST, GO_SIGNAL_NOC_DATA_MAX_WORDS, SendGoSignal, SetGoSignalNocData, SetNumWorkerSems,
    Wait,
};
use tilework_abi::cq::layout::{DONE_STREAM, WORKER_SEMS, dispatch_core, prefetch_core};
use tilework_abi::cq::status::{Fault, Kernel};
use tilework_abi::noc::NocRect;
use tilework_abi::stream;
use tilework_cq_core::halt::Status;
use tilework_cq_core::initiators::dispatch_s::{CREDIT, CREDIT_ID, GO_ID, NIU, WRITES};
use tilework_cq_core::local::Table;
use tilework_cq_core::peers::Peers;
use tilework_cq_core::{command, go};
use tilework_rt::niu::{ATOMIC_POSTED, MULTICAST_POSTED, WRITE_POSTED};
use tilework_rt::reg::read8;
use tilework_rt::{KernelContext, kernel};

/// Bytes of a header.
const HEADER: u32 = CMD_SIZE as u32;

/// Coordinates that go messages are sent to.
static GO_TARGETS: Table<GO_SIGNAL_NOC_DATA_MAX_WORDS> = Table::new();

kernel!(main);

fn main(ctx: &KernelContext) {
    let semaphores = ctx.semaphores;
    let peers = Peers::told(ctx);
    let mut sub = Subordinate {
        my_xy: ctx.my_xy,
        go: ctx.go,
        peers,
        status: Status::new(Kernel::DispatchS),
        counts: Counts::new(ctx.my_xy, peers.dispatch),
        ring: Ring::new(dispatch_core::SEM_S_CB_PAGES.addr(semaphores), peers.first_count),
        sent: [peers.first_count; WORKER_SEMS as usize],
    };
    CREDIT.setup_increments(ATOMIC_POSTED, CREDIT_ID, prefetch_core::SEM_DISPATCH_S_PAGES.addr(semaphores));
    while sub.execute() {}
    CREDIT.wait_ready();
    // Whatever came behind TERMINATE was not executed: waiting here for ever is where it shows.
    sub.ring.wait_nothing_more(&mut sub.counts);
}

struct Subordinate {
    my_xy: u32,
    /// The first go message of every worker.
    go: u32,
    peers: Peers,
    status: Status,
    counts: Counts,
    ring: Ring,
    /// Go messages sent so far, per worker semaphore.
    sent: [WrapCount; WORKER_SEMS as usize],
}

impl Subordinate {
    /// Executes the next command; false after `TERMINATE`.
    fn execute(&mut self) -> bool {
        let at = self.ring.wait_for_page(&mut self.counts);
        let id = read8(at);
        let mut more = true;
        match DispatchCmdId::try_from(id) {
            Ok(DispatchCmdId::SendGoSignal) => self.send_go_signal(at),
            Ok(DispatchCmdId::SetGoSignalNocData) => self.set_go_signal_noc_data(at),
            Ok(DispatchCmdId::SetNumWorkerSems) => {
                let cmd: SetNumWorkerSems = command(at);
                let number = cmd.num_worker_sems.get();
                if number > WORKER_SEMS {
                    self.status.halt(Fault::TooMany, number, at);
                } else {
                    self.counts.set_number(number);
                }
            }
            Ok(DispatchCmdId::Wait) => self.wait_command(at),
            Ok(DispatchCmdId::Terminate) => more = false,
            _ => self.status.halt(Fault::UnknownCommand, u32::from(id), at),
        }
        // Go messages are sent from the command's page: it is given back when they have left.
        WRITES.wait_ready();
        NIU.wait_left(GO_ID);
        CREDIT.increment(self.my_xy, self.peers.prefetch, self.ring.finish_command());
        self.status.count();
        more
    }

    /// `SEND_GO_SIGNAL`: when the dispatcher allows it and the stream has reached its count.
    fn send_go_signal(&mut self, at: u32) {
        let cmd: SendGoSignal = command(at);
        let stream_id = cmd.wait_stream.get();
        let index = stream_id.wrapping_sub(DONE_STREAM);
        let sent = match self.sent.get_mut(index as usize) {
            Some(sent) if index < self.counts.number() => sent,
            _ => return self.status.halt(Fault::BadIndex, stream_id, at),
        };
        let (start, number) = (usize::from(cmd.noc_data_start_index), usize::from(cmd.num_unicast_txns));
        if start + number > GO_SIGNAL_NOC_DATA_MAX_WORDS {
            return self.status.halt(Fault::TooMany, (start + number) as u32, at);
        }
        let message = cmd.go_signal.get();
        let multicast = cmd.multicast_go_offset;
        let before = *sent;
        self.counts.wait(dispatch_core::sync_sem(index).get(), |allowed| WrapCount(allowed).wrap_gt(before));
        *sent = before.plus(1);
        self.counts.wait_stream(stream_id, cmd.wait_count.get());
        if multicast != GO_NO_MULTICAST {
            let to = go::multicast_address(self.go, multicast);
            let from = go::stage(at, message, to);
            WRITES.setup_writes(MULTICAST_POSTED, GO_ID, 0);
            for (rect, _) in self.peers.worker_rects(NocRect::encode) {
                WRITES.write(self.my_xy, from, rect, to, 4);
            }
        }
        let from = go::stage(at, message, self.go);
        WRITES.setup_writes(WRITE_POSTED, GO_ID, 0);
        go::prepare(WRITES, from, self.go);
        GO_TARGETS.words(start, number).iter().for_each(|&xy| go::send(WRITES, self.my_xy, xy));
    }

    /// `SET_GO_SIGNAL_NOC_DATA`: up to five pages of this ring.
    fn set_go_signal_noc_data(&mut self, at: u32) {
        let cmd: SetGoSignalNocData = command(at);
        let words = cmd.num_words.get() as usize;
        if words > GO_SIGNAL_NOC_DATA_MAX_WORDS {
            return self.status.halt(Fault::TooMany, words as u32, at);
        }
        let (mut done, mut from) = (0, at + HEADER);
        loop {
            let here = (self.ring.page_end() - from) as usize / 4;
            let n = here.min(words - done);
            GO_TARGETS.fill(done, from, n);
            done += n;
            if done == words {
                return;
            }
            from = self.ring.wait_for_page(&mut self.counts);
        }
    }

    /// `WAIT`: for a stream, which is then zero again. Other flags are the dispatcher's.
    fn wait_command(&mut self, at: u32) {
        let cmd: Wait = command(at);
        let stream_id = u32::from(cmd.stream.get());
        if stream_id >= stream::COUNT {
            return self.status.halt(Fault::BadIndex, stream_id, at);
        }
        self.counts.wait_stream(stream_id, cmd.count.get());
        self.counts.clear(stream_id);
    }
}
