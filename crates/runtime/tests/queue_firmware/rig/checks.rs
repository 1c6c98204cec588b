//! What must hold when a stream has ended: credits, counts and rings; and what to say when it does
//! not end.

use super::Rig;
use tilework_abi::cq::layout::prefetch_core::{
    self, PREFETCH_Q, SCRATCH_DB, SEM_DISPATCH_PAGES, SEM_DISPATCH_S_PAGES, SEM_EXEC_BUF,
};
use tilework_abi::cq::layout::{dispatch_core, prefetch_d_core};
use tilework_abi::cq::status::{Kernel, decode_error, word};
use tilework_abi::l1::WORKER;
use tilework_abi::msg::RUN_DONE;
use tilework_cq::{DispatchCommand, PrefetchCommand};

impl Rig {
    /// Ends a stream: everything has arrived, nothing else was written, and no credit is lost.
    pub(crate) fn finish(&mut self) {
        self.event();
        self.settle();
        self.shadow.check(&mut self.card);
        self.check_credits();
        self.check_notifications();
        self.check_progress();
        self.check_empty();
    }

    /// Everybody was told as often as was said, and the go messages that were sent to
    /// all are there.
    fn check_notifications(&self) {
        let ends = self.semaphore(self.prefetch_core(), SEM_EXEC_BUF);
        assert_eq!(ends, self.exec_buf_ends, "ends of exec buffers");
        let subordinate = self.core_of(Kernel::DispatchS);
        for (i, &expected) in (0..).zip(&self.notified) {
            let found = self.count(subordinate, dispatch_core::sync_sem(i).get());
            assert_eq!(found, expected, "sync semaphore {i}");
        }
        for worker in self.queues.workers(self.board) {
            for (i, &expected) in (0..).zip(&self.go_words).skip(1) {
                let found = self.l1(worker, WORKER.go.get() + 4 * i);
                assert_eq!(found, expected, "go message {i} of {worker}");
            }
        }
    }

    /// Credits are conserved: what was sent is filled, and what is not given back is at most the
    /// block being read and the one before it (tt-metal#37233).
    pub(crate) fn check_credits(&self) {
        let [_, dispatch, subordinate] = Kernel::ALL.map(|kernel| self.core_of(kernel));
        let ring = dispatch_core::DISPATCH_CB;
        let filled = self.semaphore(dispatch, dispatch_core::SEM_CB_PAGES);
        assert_eq!(filled, self.dispatch.pages, "pages released to the dispatcher");
        let given_back = self.credits(SEM_DISPATCH_PAGES).wrapping_sub(ring.pages().get());
        let block = ring.pages_per_block().get();
        assert!(given_back.is_multiple_of(block), "{given_back} pages given back");
        let held = filled.wrapping_sub(given_back);
        assert!(held <= 2 * block, "{held} of {filled} pages held by the dispatcher");
        let filled = self.semaphore(subordinate, dispatch_core::SEM_S_CB_PAGES);
        assert_eq!(filled, self.subordinate.pages, "pages released to the subordinate");
        let credits = self.credits(SEM_DISPATCH_S_PAGES);
        assert_eq!(
            credits,
            filled.wrapping_add(dispatch_core::DISPATCH_S_CB.pages().get()),
            "the subordinate's credits"
        );
    }

    /// Every command was executed once, none failed, and the prefetcher says where it is.
    pub(crate) fn check_progress(&self) {
        let sent = [self.prefetch_commands, self.dispatch.commands, self.subordinate.commands];
        for (kernel, sent) in Kernel::ALL.into_iter().zip(sent) {
            assert_eq!(self.status(kernel, word::ERROR), 0, "{}", kernel.name());
            assert_eq!(self.status(kernel, word::COMMANDS), sent, "commands of {}", kernel.name());
        }
        self.check_beside();
        let prefetch = self.prefetch_core();
        assert_eq!(self.l1(prefetch, prefetch_core::PREFETCH_Q_RD_PTR), self.last.0, "the entry last taken");
        assert_eq!(
            self.l1(prefetch, prefetch_core::PREFETCH_Q_PCIE_RD_PTR),
            self.last.1,
            "the end of the record last read"
        );
        let l1 = self.card.link().l1(prefetch).unwrap();
        let entries = &l1[PREFETCH_Q.base().get() as usize..PREFETCH_Q.end().get() as usize];
        assert!(entries.iter().all(|&b| b == 0), "entries are left in the prefetch queue");
        // Behind the last buffer in use there is nothing: what passed its end shows there.
        let end = if self.scratch_used { SCRATCH_DB.end() } else { SCRATCH_DB.base() };
        // The host side of a split prefetcher sends headers of records from here.
        let header = prefetch_d_core::RECORDS.base().get() as usize;
        let (before, header) = l1[end.get() as usize..].split_at(header - end.get() as usize);
        assert!(before.iter().chain(&header[8..]).all(|&b| b == 0), "bytes behind {:#x}", end.get());
        assert!(self.is_split() || header[..8] == [0; 8], "a header of a split prefetcher");
    }

    /// The queues beside this one were sent nothing, and none of their kernels has done anything.
    fn check_beside(&self) {
        for tiles in self.queues.ids().filter(|&id| id != self.tiles.queue).map(|id| self.tiles.layout.queue(id)) {
            for kernel in Kernel::ALL {
                let core = self.core_in(tiles, kernel);
                let found = [word::ERROR, word::COMMANDS].map(|field| self.l1(core, kernel.status().get() + field));
                assert_eq!(found, [0; 2], "{} of queue {}", kernel.name(), tiles.queue);
            }
        }
    }

    /// Ends all three kernels and checks that every page came back and every kernel returned.
    pub(crate) fn terminate(mut self) {
        self.send(&DispatchCommand::Terminate);
        self.send_subordinate(&DispatchCommand::Terminate);
        self.prefetch(&PrefetchCommand::Terminate);
        self.settle();
        let credits = self.credits(SEM_DISPATCH_PAGES);
        assert_eq!(
            credits,
            self.dispatch.pages.wrapping_add(dispatch_core::DISPATCH_CB.pages().get()),
            "all credits are back"
        );
        let credits = self.credits(SEM_DISPATCH_S_PAGES);
        assert_eq!(credits, self.subordinate.pages.wrapping_add(dispatch_core::DISPATCH_S_CB.pages().get()));
        for (core, _) in self.tiles.tiles(self.board) {
            let signal = self.l1(core, WORKER.go.get()).to_le_bytes()[3];
            assert_eq!(signal, RUN_DONE, "the kernels of {core} have not returned");
        }
        self.check_progress();
        self.shadow.check(&mut self.card);
    }

    /// Panics with what the three kernels say and who waits where.
    pub(crate) fn die(&self, why: &str) -> ! {
        let mut text = format!("{why}\n");
        for kernel in Kernel::ALL {
            let words = [word::ERROR, word::DETAIL, word::ADDRESS, word::COMMANDS].map(|f| self.status(kernel, f));
            let error = decode_error(words[0]).map(|(_, fault)| fault.message());
            text += &format!("{}: {words:x?} {error:?}\n", kernel.name());
        }
        for waiting in self.card.link().waiting() {
            if !self.queues.parts_at(self.board, waiting.tile).is_empty() {
                text += &format!("{} {} at {:#x}: {:x?}\n", waiting.tile, waiting.core, waiting.pc, waiting.watched);
            }
        }
        text += &format!("sent: {:?}, {:?}, {} pages expected", self.dispatch, self.subordinate, self.expected.len());
        panic!("{text}");
    }
}
