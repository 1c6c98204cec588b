//! `WRITE_PACKED_LARGE`: packets of any size to rectangles (seed 001 section 4.2; the original's
//! `cq_commands.hpp`).
//!
//! Packets to the same rectangle form a chain, which the host ends with the UNLINK flag. A link is
//! only made to a packet whose data is present: until a linked transaction is completed the NIU can
//! do nothing else and the routers keep the path reserved.

use tilework_abi::L1_ALIGN;
use tilework_abi::align_up;
use tilework_abi::cq::dispatch::{
    WRITE_PACKED_LARGE_MAX_SUBS, WritePackedLarge, WritePackedLargeFlags, WritePackedLargeSub,
};
use tilework_abi::cq::status::Fault;
use tilework_abi::noc::init;
use tilework_cq_core::command;
use tilework_cq_core::initiators::dispatch::WRITES;
use tilework_cq_core::local::Table;
use tilework_cq_core::span::packet;
use tilework_rt::niu::{MULTICAST, MULTICAST_LINKED};

use crate::HEADER;
use crate::core::Core;

/// Words of a sub-command.
const SUB_WORDS: usize = size_of::<WritePackedLargeSub>() / 4;
/// The sub-commands of the command being executed.
static SUBS: Table<{ WRITE_PACKED_LARGE_MAX_SUBS * SUB_WORDS }> = Table::new();

impl Core {
    /// `WRITE_PACKED_LARGE`.
    pub fn write_packed_large(&mut self) {
        let cmd: WritePackedLarge = command(self.at());
        let count = usize::from(cmd.count.get());
        if count > WRITE_PACKED_LARGE_MAX_SUBS {
            return self.refuse(Fault::TooMany, count as u32);
        }
        let alignment = u32::from(cmd.alignment.get());
        if !alignment.is_power_of_two() {
            return self.refuse(Fault::BadSize, alignment);
        }
        let offset = self.offset(u32::from(cmd.write_offset_index.get()));
        let words = count * SUB_WORDS;
        SUBS.fill(0, self.at() + HEADER, words);
        // Header and sub-commands lie in the first page.
        self.advance(align_up(HEADER + 4 * words as u32, L1_ALIGN));
        self.setup_writes(MULTICAST, 0);

        let mut linked = false;
        let mut subs = SUBS.words(0, words).chunks_exact(SUB_WORDS).peekable();
        while let Some(&[rect, addr, rest]) = subs.next() {
            let bytes = (rest & 0xFFFF) + 1;
            let recipients = rest >> 16 & 0xFF;
            let unlink =
                WritePackedLargeFlags::from_bits_retain((rest >> 24) as u8).contains(WritePackedLargeFlags::UNLINK);
            // A link to another rectangle would break the NoC; a host that forgot UNLINK loses only
            // the link.
            let chain_goes_on = !unlink && subs.peek().is_some_and(|next| next[0] == rect);
            let padding = align_up(bytes, alignment) - bytes;
            let (mut to, mut left) = (addr.wrapping_add(offset), bytes);
            while left != 0 {
                let n = packet(left, self.wait_for_data());
                left -= n;
                // What must be passed over to reach the next packet of the chain.
                let gap = if left != 0 { 0 } else { padding };
                let link = (left != 0 || chain_goes_on) && self.present() > n + gap;
                self.multicast(rect, to, n, recipients, linked, link);
                linked = link;
                self.advance(n);
                to = to.wrapping_add(n);
            }
            self.skip(padding);
        }
    }

    /// One packet of a chain: behind a link it goes on, otherwise it begins.
    #[inline(always)]
    fn multicast(&mut self, rect: u32, to: u32, bytes: u32, recipients: u32, linked: bool, link: bool) {
        if !linked {
            // As the original: nothing else may be in flight when a path is reserved.
            self.barrier();
        }
        WRITES.wait_ready();
        WRITES.set(init::CTRL, if link { MULTICAST_LINKED } else { MULTICAST });
        self.write(self.at(), rect, to, bytes, recipients);
    }
}
