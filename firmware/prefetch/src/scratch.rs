//! The scratch buffer: relays of bytes that are not in the record go through it, in two halves.
//!
//! While one half is written to the dispatcher the reads of the other are in flight. A half is read
//! again when the writes out of it are acknowledged.

use tilework_abi::cq::layout::prefetch_core::SCRATCH_DB;
use tilework_abi::{DRAM_ALIGN, PCIE_ALIGN};
use tilework_cq_core::halt::Status;
use tilework_cq_core::initiators::prefetch::{NIU, READS, SCRATCH_READ_IDS};

use super::fetcher::Fetcher;
use super::relay::{Payload, Relay};
use super::source::{Reads, Source};

/// Bytes of a half.
const HALF: u32 = SCRATCH_DB.size() / 2;

/// Relays `bytes` bytes of `source` to the dispatcher and closes the page, which an inline relay
/// without a flush has opened. `my_xy` is this tile.
#[inline(never)]
pub fn relay(my_xy: u32, source: &mut Source, bytes: u64, relay: &mut Relay, fetcher: &mut Fetcher, status: &Status) {
    let mut left = bytes;
    let skew = source.skew();
    let mut fill = |half: usize, skew: u32, left: &mut u64| {
        let from = SCRATCH_DB.base().get() + half as u32 * HALF + skew;
        let bytes = u32::try_from(*left).unwrap_or(u32::MAX).min(HALF - skew);
        *left -= u64::from(bytes);
        source.read(&mut Reads::new(my_xy, SCRATCH_READ_IDS[half]), from, bytes);
        Payload { from, bytes }
    };
    let (mut half, mut present) = (0, fill(0, skew, &mut left));
    loop {
        // Out of the other half, only the newest portion may still be on its way.
        relay.announce();
        let next = fill(half ^ 1, 0, &mut left);
        fetcher.start_reads(status);
        READS.wait_ready();
        NIU.wait_answered(SCRATCH_READ_IDS[half]);
        relay.stream(present, true);
        if next.bytes == 0 {
            return relay.close(fetcher, status, true);
        }
        (half, present) = (half ^ 1, next);
    }
}

const _: () = assert!(HALF.is_multiple_of(DRAM_ALIGN) && SCRATCH_DB.base().get().is_multiple_of(PCIE_ALIGN));
const _: () = assert!(DRAM_ALIGN <= PCIE_ALIGN);
