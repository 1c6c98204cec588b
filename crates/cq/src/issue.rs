//! The issue region: where in pinned host memory each record goes, and when that is safe.
//!
//! Host and prefetcher each walk the region with a pointer of their own and never tell each other:
//! both put the next record behind the last one, and both start again at zero when it would pass
//! the end. The rule must be the same bit by bit (seed 001 section 2.4), and the host must not
//! overwrite bytes that have not been read. The original does not check that; here every record is
//! tracked until it is certain that its bytes have left host memory.
//!
//! When is that certain? A free ring entry only says that the read of its record has been
//! *started*. But the prefetcher keeps one read in flight and waits for it before it starts the
//! next, so a record has been read when the entry *behind* it is free, or when an effect of the
//! record has been seen (its completion event). The one record in between cannot block the host for
//! ever: a region at least three times as long as the longest record always has room for the next
//! record without touching the last, and [`IssueRegion::new`] insists on that.
//!
//! Sources: seed 001 sections 2.4 and 3, figure 5; the prefetcher's `read_from_pcie` (the
//! original).

use crate::record::Record;
use crate::ring::{PrefetchPort, PrefetchRing, RingError};
use std::collections::VecDeque;
use std::fmt;
use tilework_abi::PCIE_ALIGN;
use tilework_abi::cq::layout::host;
use tilework_abi::cq::layout::prefetch_core::MAX_RECORD_BYTES;

/// Where something lies in the issue region, in bytes from the start of that region. The host
/// region that holds it has offsets of its own.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct IssueOffset(u32);

impl IssueOffset {
    /// The offset as a number.
    pub const fn get(self) -> u32 {
        self.0
    }
    /// Bytes from the start of the host region, where the issue region lies at [`host::ISSUE`].
    pub fn in_host_region(self) -> u64 {
        u64::from(host::ISSUE.offset()) + u64::from(self.0)
    }
    /// First offset behind `size` bytes that start here: inside the region by the caller's check.
    const fn end(self, size: u32) -> Self {
        Self(self.0 + size)
    }
}

impl fmt::Display for IssueOffset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

/// Why a record cannot be placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IssueError {
    /// A region that cannot work.
    #[error(
        "issue region of {size} bytes, expected a multiple of 64 and at least {min}: three records of the longest size"
    )]
    RegionSize {
        /// Its size.
        size: u32,
        /// The least size.
        min: u64,
    },
    /// A record that no region takes.
    #[error("record of {size} bytes, expected 64 to {max} in steps of 64")]
    RecordSize {
        /// Its size.
        size: u32,
        /// The longest record.
        max: u32,
    },
    /// The place is still occupied.
    #[error(
        "issue region is full: a record of {size} bytes at offset {offset} would overwrite one at {blocker} that has not been read"
    )]
    Full {
        /// The record's size.
        size: u32,
        /// Where it would have to go.
        offset: IssueOffset,
        /// The oldest record that is not known to be read.
        blocker: IssueOffset,
    },
}

/// Where a record goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    /// Its first byte.
    pub offset: IssueOffset,
    /// Whether the region was started again for it.
    pub wrapped: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Span {
    start: IssueOffset,
    size: u32,
}

/// The host's record of which parts of the issue region are occupied.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct IssueRegion {
    size: u32,
    max_record: u32,
    write: IssueOffset,
    /// Records whose bytes may still be needed, oldest first.
    spans: VecDeque<Span>,
    /// How many of `spans`, from the front, have a free ring entry; at most one after each step.
    taken: usize,
}

impl Default for IssueRegion {
    /// The region of [`host::ISSUE`] with records of up to 256 KiB.
    fn default() -> Self {
        const _: () = assert!(host::ISSUE.size() / 3 >= MAX_RECORD_BYTES);
        Self::empty(host::ISSUE.size(), MAX_RECORD_BYTES)
    }
}

impl IssueRegion {
    /// A region of `size` bytes for records of at most `max_record` bytes.
    ///
    /// # Errors
    /// [`IssueError::RegionSize`] unless both are multiples of 64 and `size >= 3 * max_record`.
    pub fn new(size: u32, max_record: u32) -> Result<Self, IssueError> {
        let min = 3 * u64::from(max_record.max(PCIE_ALIGN));
        let aligned = size.is_multiple_of(PCIE_ALIGN) && max_record.is_multiple_of(PCIE_ALIGN);
        if !aligned || u64::from(size) < min {
            return Err(IssueError::RegionSize { size, min });
        }
        Ok(Self::empty(size, max_record))
    }

    fn empty(size: u32, max_record: u32) -> Self {
        Self { size, max_record, write: IssueOffset::default(), spans: VecDeque::new(), taken: 0 }
    }

    /// Bytes of the region.
    pub fn size(&self) -> u32 {
        self.size
    }

    /// Records whose bytes may still be needed.
    pub fn outstanding(&self) -> usize {
        self.spans.len()
    }

    /// Where a record of `size` bytes would go, without taking the place.
    ///
    /// # Errors
    /// [`IssueError::RecordSize`], or [`IssueError::Full`] when the place is occupied.
    pub fn find(&self, size: u32) -> Result<Placement, IssueError> {
        if size == 0 || size > self.max_record || !size.is_multiple_of(PCIE_ALIGN) {
            return Err(IssueError::RecordSize { size, max: self.max_record });
        }
        // The prefetcher's own rule: start again when the record would pass the end, not when it
        // would end there. (`write <= self.size`, both below 4 GiB: no overflow in u64.)
        let wrapped = u64::from(self.write.0) + u64::from(size) > u64::from(self.size);
        let offset = if wrapped { IssueOffset::default() } else { self.write };
        let Some(tail) = self.spans.front().map(|span| span.start) else {
            return Ok(Placement { offset, wrapped });
        };
        // Occupied is tail..write, or tail..end and 0..write once the writer has started again.
        let split = self.write <= tail;
        let free = match (split, wrapped) {
            (false, false) => true,
            (false, true) | (true, false) => offset.end(size) <= tail,
            (true, true) => false,
        };
        if free { Ok(Placement { offset, wrapped }) } else { Err(IssueError::Full { size, offset, blocker: tail }) }
    }

    /// Takes the place that [`IssueRegion::find`] names.
    ///
    /// # Errors
    /// As [`IssueRegion::find`].
    pub fn place(&mut self, size: u32) -> Result<Placement, IssueError> {
        let placement = self.find(size)?;
        self.occupy(placement, size);
        Ok(placement)
    }

    /// Takes a place that was just found.
    fn occupy(&mut self, placement: Placement, size: u32) {
        self.spans.push_back(Span { start: placement.offset, size });
        self.write = placement.offset.end(size);
    }

    /// The ring entries of the `n` oldest records not yet reported have become free: their reads
    /// have started, and all but the last of those have ended.
    pub fn taken(&mut self, n: u32) {
        self.taken = (self.taken + n as usize).min(self.spans.len());
        while self.taken > 1 {
            self.spans.pop_front();
            self.taken -= 1;
        }
    }

    /// An effect of the newest record whose ring entry is free has been seen (its completion
    /// event): its bytes have been read as well.
    pub fn settle(&mut self) {
        self.spans.drain(..self.taken);
        self.taken = 0;
    }
}

/// Why a record could not be issued.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum QueueError<E> {
    /// Ring or region is full: wait until entry `slot` of the prefetch queue is zero, then try
    /// again.
    #[error("the device is behind: waiting for prefetch queue entry {slot} to become free")]
    Blocked {
        /// The entry to wait for.
        slot: u32,
    },
    /// The record has no place whatever the device does.
    #[error(transparent)]
    Issue(IssueError),
    /// Another record was published after this one was prepared.
    #[error(
        "record prepared for offset {prepared}, but the next record goes to {current}: records must be published in the order they were prepared"
    )]
    Stale {
        /// Where its bytes were put.
        prepared: IssueOffset,
        /// Where the prefetcher will look.
        current: IssueOffset,
    },
    /// The ring's port failed.
    #[error(transparent)]
    Ring(RingError<E>),
}

/// Issue region and prefetch ring together: the order of the steps that make a record visible.
///
/// For each record: [`IssueQueue::prepare`], copy the bytes to the offset it returns, then
/// [`IssueQueue::publish`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct IssueQueue {
    region: IssueRegion,
    ring: PrefetchRing,
}

/// A place that is free, and the entry that will announce it.
#[derive(Debug)]
#[must_use = "the record must be copied and published"]
pub struct Prepared {
    /// Where the bytes go, from the start of the issue region.
    pub placement: Placement,
    size: u32,
    entry: u16,
}

impl IssueQueue {
    /// A queue over a region and a ring of other sizes.
    pub fn new(region: IssueRegion, ring: PrefetchRing) -> Self {
        Self { region, ring }
    }

    /// The region.
    pub fn region(&self) -> &IssueRegion {
        &self.region
    }

    /// The ring.
    pub fn ring(&self) -> &PrefetchRing {
        &self.ring
    }

    /// Finds a place and an entry for `record`, asking the device only when its own state says that
    /// there is none.
    ///
    /// # Errors
    /// [`QueueError::Blocked`] when the device must progress first.
    pub fn prepare<P: PrefetchPort>(
        &mut self,
        port: &mut P,
        record: &Record,
    ) -> Result<Prepared, QueueError<P::Error>> {
        self.prepare_sized(port, record.size(), record.entry())
    }

    pub(crate) fn prepare_sized<P: PrefetchPort>(
        &mut self,
        port: &mut P,
        size: u32,
        entry: u16,
    ) -> Result<Prepared, QueueError<P::Error>> {
        let free = |region: &IssueRegion, ring: &PrefetchRing| match region.find(size) {
            Ok(placement) => Ok(Some(placement).filter(|_| ring.known_free() > 0)),
            Err(IssueError::Full { .. }) => Ok(None),
            Err(error) => Err(QueueError::Issue(error)),
        };
        let mut found = free(&self.region, &self.ring)?;
        if found.is_none() {
            self.poll(port)?;
            found = free(&self.region, &self.ring)?;
        }
        let placement = match (found, self.ring.oldest_in_flight()) {
            (Some(placement), _) => placement,
            (None, Some(slot)) => return Err(QueueError::Blocked { slot }),
            (None, None) => self.region.find(size).map_err(QueueError::Issue)?,
        };
        Ok(Prepared { placement, size, entry })
    }

    /// Announces a prepared record whose bytes are in place. Returns the ring index.
    ///
    /// # Errors
    /// The port's error; the place is then free again.
    pub fn publish<P: PrefetchPort>(&mut self, port: &mut P, prepared: Prepared) -> Result<u32, QueueError<P::Error>> {
        let placement = self.region.find(prepared.size).map_err(QueueError::Issue)?;
        if placement != prepared.placement {
            let (prepared, current) = (prepared.placement.offset, placement.offset);
            return Err(QueueError::Stale { prepared, current });
        }
        let index = self.ring.push_entry(port, prepared.entry).map_err(QueueError::Ring)?;
        self.region.occupy(placement, prepared.size);
        Ok(index)
    }

    /// Learns from the ring which records have been taken; returns how many.
    ///
    /// # Errors
    /// The port's error.
    pub fn poll<P: PrefetchPort>(&mut self, port: &mut P) -> Result<u32, QueueError<P::Error>> {
        let taken = self.ring.poll(port).map_err(QueueError::Ring)?;
        self.region.taken(taken);
        Ok(taken)
    }

    /// The device has completed all records but the newest `left` (a completion event behind the
    /// others has been read): their entries are free, and their bytes have left the region.
    pub fn settle(&mut self, left: u32) {
        let Some(done) = self.ring.in_flight().checked_sub(left) else { return };
        self.ring.settle(done);
        self.region.taken(done);
        self.region.settle();
    }
}

#[cfg(test)]
mod tests;
