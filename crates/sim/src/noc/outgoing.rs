//! The source of a write while its flits leave.
//!
//! An NIU reads L1 as it sends: what is stored meanwhile into bytes whose flits have not been read
//! leaves in place of what was there (BlackholeA0/NoC/Counters.md, "Bulk writes": the source may be
//! overwritten when the request is counted as sent). Here a packet takes all bytes when it leaves,
//! and whoever changes the source before the end changes the packet, too: stores into a source
//! that is under way are rare, packets are not. Its bytes are settled when it arrives, which is
//! later than the last flit has left by more than nodes run ahead of each other.
//!
//! A write is counted as sent when its first flit leaves, earlier than on the chip, so whoever has
//! seen that may change the source: the rest of it counts as read (`has_left` of the tile's
//! fabric).
//!
//! The NIU reads each flit [`timing::NIU_ISSUE`] cycles before it leaves, as it does the first one:
//! the estimate of that time includes the first read of L1. So whoever changes a source affects
//! another tile no sooner than a request that it starts.

use super::Data;
use crate::{Cycle, timing};
use std::sync::{Arc, Mutex, PoisonError};
use tilework_abi::noc::{COUNTERS, FLIT_BYTES, counter};

/// Bytes of a flit.
const FLIT: usize = FLIT_BYTES as usize;
/// Flits of data that have been read when the first flit leaves.
const READ_AHEAD: usize = timing::NIU_ISSUE as usize;

/// Whether the register of an NIU at `offset` counts writes that have left.
#[inline]
pub(crate) fn shows_sent(offset: u32) -> bool {
    const OUTGOING: usize = counter::MST_WRITE_REQS_OUTGOING_ID;
    let index = offset.wrapping_sub(COUNTERS) / 4;
    let sent = [counter::MST_NONPOSTED_WR_REQ_SENT, counter::MST_POSTED_WR_REQ_SENT];
    usize::try_from(index).is_ok_and(|index| sent.contains(&index) || (OUTGOING..OUTGOING + 16).contains(&index))
}

/// The bytes of a packet of which some may still change.
#[derive(Debug)]
pub(crate) struct Unsettled {
    bytes: Box<[u8]>,
    /// In the order of time: from which byte on, and what.
    changes: Mutex<Vec<(usize, Box<[u8]>)>>,
}

impl Unsettled {
    /// The bytes as they were when the packet left.
    #[inline]
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The bytes as they arrive; `None`: nothing has changed.
    pub(super) fn settled(&self) -> Option<Box<[u8]>> {
        let changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        let mut bytes = (!changes.is_empty()).then(|| self.bytes.clone())?;
        for (at, change) in changes.iter() {
            bytes[*at..at + change.len()].copy_from_slice(change);
        }
        Some(bytes)
    }
}

/// A write whose flits leave. Twins of a chip share its packet: they do the same, so each changes
/// it to what it is.
#[derive(Clone, Debug)]
pub(crate) struct Outgoing {
    /// The first byte of the source, in L1.
    source: u32,
    /// When its first flit left.
    at: Cycle,
    data: Arc<Unsettled>,
}

impl Outgoing {
    /// The packet of a write that leaves at cycle `at` and has these bytes, which lie at `source`
    /// in L1; `None`: all of it has been read by then.
    pub(super) fn start(at: Cycle, source: u64, bytes: &[u8]) -> Option<(Self, Data)> {
        let source = u32::try_from(source).ok().filter(|_| bytes.len() > READ_AHEAD * FLIT)?;
        let data = Arc::new(Unsettled { bytes: bytes.into(), changes: Mutex::default() });
        Some((Self { source, at, data: data.clone() }, Data::unsettled(data)))
    }

    /// The source: its first byte, and how many.
    pub(crate) fn source(&self) -> (u32, u32) {
        (self.source, self.data.bytes.len() as u32)
    }

    /// From this cycle on nothing of the source is read.
    pub(crate) fn end(&self) -> Cycle {
        self.at + (self.data.bytes.len().div_ceil(FLIT) - READ_AHEAD) as Cycle * timing::FLIT
    }

    /// At cycle `at` bytes of L1 have changed: `len` from `addr` on.
    pub(crate) fn change(&self, at: Cycle, addr: u32, len: u32, l1: &[u8]) {
        // Flits up to this one have been read, in this cycle or before.
        let read =
            usize::try_from(at.saturating_sub(self.at) / timing::FLIT).unwrap_or(usize::MAX).saturating_add(READ_AHEAD);
        let (source, bytes) = self.source();
        let first = u32::try_from(read.saturating_mul(FLIT)).map_or(bytes, |read| read.min(bytes)) + source;
        let (from, to) = (addr.max(first), (addr + len).min(source + bytes));
        if from < to {
            let change = (usize::try_from(from - source).unwrap_or(0), l1[from as usize..to as usize].into());
            self.data.changes.lock().unwrap_or_else(PoisonError::into_inner).push(change);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flits_that_have_not_been_read_take_what_changes() {
        let mut l1 = vec![1; 4096];
        let (outgoing, data) = Outgoing::start(100, 1024, &l1[1024..2048]).unwrap();
        assert_eq!((outgoing.source(), outgoing.end()), ((1024, 1024), 108));
        assert_eq!(data.settled(), Data::from(&l1[1024..2048]));
        // Nine flits have been read in the cycle after the first has left, ten in the next one.
        l1[1024..2048].fill(2);
        outgoing.change(101, 0, 4096, &l1);
        l1[1024..2048].fill(3);
        outgoing.change(102, 1024, 1024, &l1);
        let expected = [vec![1; 9 * 64], vec![2; 64], vec![3; 6 * 64]].concat();
        assert_eq!(*data.settled(), *expected);
        assert_eq!(*data, vec![1; 1024], "as it left");
        outgoing.change(107, 1024 + 1020, 4, &l1);
        assert!(Outgoing::start(100, 0, &l1[..512]).is_none(), "all of it is read ahead");
    }

    #[test]
    fn changes_elsewhere_do_not_matter() {
        let l1 = vec![1; 4096];
        let (outgoing, data) = Outgoing::start(0, 1024, &l1[1024..2048]).unwrap();
        let other = vec![9; 4096];
        outgoing.change(0, 512, 512, &other);
        outgoing.change(0, 2048, 4, &other);
        outgoing.change(0, 1024, 512, &other);
        assert_eq!(*data.settled(), vec![1; 1024]);
    }
}
