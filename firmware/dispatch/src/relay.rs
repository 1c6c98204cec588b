//! The device side of a split dispatcher: what is for the host goes to the host side.
//!
//! The host side is the same kernel on another tile. It executes what arrives in its ring, whose
//! pages are counted as those of the first ring are. A command is passed on with its header, in
//! pieces of whole pages but for its end, each announced when it has arrived.

use tilework_abi::cq::count::WrapCount;
use tilework_abi::cq::dispatch::DispatchCmdId;
use tilework_abi::cq::layout::PCIE_NOC_XY_MARK;
use tilework_abi::cq::layout::dispatch_core::{DISPATCH_CB, SEM_CB_PAGES};
use tilework_abi::cq::status::Fault;
use tilework_cq_core::span::packet;
use tilework_cq_core::writer::PageWriter;
use tilework_rt::niu::WRITE;
use tilework_rt::reg::{publish, wait, write};

use crate::core::Core;
use crate::{HEADER, LARGE_HEADER};

type Ring = PageWriter<{ DISPATCH_CB.base().get() }, { DISPATCH_CB.log_page_size() }, { DISPATCH_CB.pages().get() }>;

/// The writing end of the host side's ring.
pub struct HostSide {
    ring: Ring,
    /// L1 address of the semaphore of free pages.
    credits: u32,
}

impl HostSide {
    /// The ring empty, of which `spent` pages were used.
    pub const fn new(credits: u32, spent: WrapCount) -> Self {
        Self { ring: Ring::new(spent), credits }
    }

    /// Waits until the host side has given every page back: a missing one is a leaked credit, and
    /// here is where it shows.
    pub fn wait_all_back(&self) {
        wait(self.credits, |count| self.ring.all_back(WrapCount(count)));
    }
}

impl Core {
    /// Passes on the next `bytes` bytes, a whole command. False, and nothing done, where this
    /// dispatcher writes to the host itself.
    #[inline(never)]
    pub fn pass_on(&mut self, bytes: u64) -> bool {
        let Some(mut host_side) = self.host_side.take() else { return false };
        self.setup_writes(WRITE, 0);
        let mut left = bytes;
        while left != 0 {
            let here = self.wait_for_data();
            let n = u32::try_from(left).unwrap_or(u32::MAX).min(here);
            self.append(&mut host_side, n);
            self.advance(n);
            left -= u64::from(n);
        }
        self.host_side = Some(host_side);
        true
    }

    /// Writes `bytes` that are present, at most a block, to the host side's ring and announces
    /// their pages when they have arrived.
    fn append(&mut self, host_side: &mut HostSide, bytes: u32) {
        let ring = &mut host_side.ring;
        let pages = ring.pages_needed(bytes);
        wait(host_side.credits, |count| ring.can_acquire(WrapCount(count), pages));
        ring.acquire(pages);
        let (mut from, mut left) = (self.at(), bytes);
        while left != 0 {
            let (to, n) = ring.piece(packet(left, left));
            self.write(from, self.peers.completion, to, n, 1);
            from += n;
            left -= n;
        }
        self.barrier();
        self.notify_semaphore(self.peers.completion, SEM_CB_PAGES, ring.release());
    }

    /// Passes on the present `WRITE_LINEAR` of `bytes` bytes to `to` of `xy`, which includes the
    /// write offset: the host side has none.
    pub fn pass_on_linear(&mut self, xy: u32, recipients: u32, to: u64, bytes: u64) -> bool {
        if self.host_side.is_none() {
            return false;
        }
        store(self.at(), &linear(xy, recipients, to));
        self.pass_on(bytes.saturating_add(u64::from(LARGE_HEADER)))
    }

    /// Passes on a time stamp for host address `to` of node `xy`, as a write of `now`. The command
    /// lies alone in its page, which has room for that.
    pub fn pass_on_time(&mut self, xy: u32, to: u32, now: u64) -> bool {
        if self.host_side.is_none() {
            return false;
        }
        if !to.is_multiple_of(HEADER) {
            // The data lie behind a header and keep their place in 16 bytes.
            self.refuse(Fault::Misaligned, to);
            return true;
        }
        let at = self.at();
        let bytes = size_of::<u64>() as u32;
        store(at, &linear(xy | PCIE_NOC_XY_MARK, 0, to.into()));
        store(at + 16, &[bytes, 0, 0, 0, now as u32, (now >> 32) as u32]);
        self.pass_on(u64::from(LARGE_HEADER + bytes))
    }
}

/// The first four words of a `WRITE_LINEAR_H` without a write offset.
const fn linear(xy: u32, recipients: u32, to: u64) -> [u32; 4] {
    [DispatchCmdId::WriteLinearH as u32 | recipients << 8, xy, to as u32, (to >> 32) as u32]
}

/// Stores words at `at` and makes them visible to the NIU.
fn store(at: u32, words: &[u32]) {
    let mut to = at;
    for &word in words {
        write(to, word);
        to += 4;
    }
    publish(to - 4);
}
