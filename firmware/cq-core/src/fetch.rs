//! Records in flight from the host: the issue region, the reads, and the command data queue.
//!
//! The host writes records one behind the other and begins again at the region's start when one
//! does not fit; nothing announces that, both sides apply the same rule to the same sizes
//! ([`IssueCursor`], seed 001 section 2.4). A record is read into the command data queue in one
//! piece and never wraps in it ([`FetchQueue`]): when it does not fit behind the newest record it
//! goes to the queue's base, as soon as the oldest unread records there are gone. So a command is
//! always contiguous for the code that executes it, at every offset (tt-metal#9459, field 1.B 16),
//! and nothing is read over bytes that are still needed (tt-metal#8062, 15).
//!
//! Several reads may be in flight; they are taken in the order in which they were started, each
//! with a transaction id of its own. One read may bring several records, which then lie one behind
//! the other.

use tilework_abi::PCIE_ALIGN;

/// Records that may be in flight or waiting at once.
pub const RECORDS: usize = 16;

/// Reads of records that may be in flight at once.
pub const READS: u32 = 8;

const _: () = assert!(RECORDS.is_power_of_two());

/// The next record's place in the host's issue region.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct IssueCursor {
    base: u32,
    size: u32,
    at: u32,
}

impl IssueCursor {
    /// At the start of a region of `size` bytes that the device sees at `base` (low 32 bits).
    pub const fn new(base: u32, size: u32) -> Self {
        Self { base, size, at: 0 }
    }

    /// Where the next record of `bytes` begins; moves behind it.
    #[inline]
    pub fn take(&mut self, bytes: u32) -> u32 {
        let aligned = (self.at + (PCIE_ALIGN - 1)) & !(PCIE_ALIGN - 1);
        let at = if aligned + bytes > self.size { 0 } else { aligned };
        self.at = at + bytes;
        self.base + at
    }

    /// Where [`take`](Self::take) would put the next record of `bytes`.
    #[inline]
    pub fn next(mut self, bytes: u32) -> u32 {
        self.take(bytes)
    }

    /// Device address behind the last record taken.
    #[inline]
    pub const fn position(&self) -> u32 {
        self.base + self.at
    }
}

/// A record in the command data queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Record {
    /// First byte in L1.
    pub start: u32,
    /// Bytes.
    pub bytes: u32,
    /// Device address behind the record in the issue region: what the host is told once it has
    /// arrived.
    pub host_end: u32,
    /// Number of the read that brings it, a count that wraps.
    pub read: u32,
}

impl Record {
    /// Which of the [`READS`] reads brings it.
    #[inline]
    pub const fn read_index(self) -> u32 {
        self.read % READS
    }
}

/// The command data queue: bytes `base..end` of L1, and the records in it, oldest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FetchQueue {
    base: u32,
    end: u32,
    /// Where the next record would begin.
    next: u32,
    records: [Record; RECORDS],
    /// Records started so far, and records removed so far; they differ by at most `RECORDS`.
    started: u32,
    removed: u32,
    /// Reads started so far.
    reads: u32,
}

impl FetchQueue {
    /// An empty queue over `base..end`.
    pub const fn new(base: u32, end: u32) -> Self {
        Self {
            base,
            end,
            next: base,
            records: [Record { start: 0, bytes: 0, host_end: 0, read: 0 }; RECORDS],
            started: 0,
            removed: 0,
            reads: 0,
        }
    }

    /// Whether no record is in flight or waiting.
    #[inline(always)]
    pub const fn is_empty(&self) -> bool {
        self.started == self.removed
    }

    /// Whether exactly one record is in flight or waiting.
    #[inline]
    pub const fn is_single(&self) -> bool {
        self.started.wrapping_sub(self.removed) == 1
    }

    /// Whether so many of the records are gone that it is worth while to look for others: those
    /// that are found together are one read.
    #[inline(always)]
    pub const fn runs_low(&self) -> bool {
        self.started.wrapping_sub(self.removed) <= RECORDS as u32 / 2
    }

    /// Whether another record could be added, if there is room for its bytes.
    #[inline(always)]
    pub const fn has_slot(&self) -> bool {
        self.started.wrapping_sub(self.removed) < RECORDS as u32
    }

    /// Whether another read could be started: none of those whose records are here has its number.
    #[inline]
    pub const fn has_read(&self) -> bool {
        self.is_empty() || self.reads.wrapping_sub(self.records[self.removed as usize % RECORDS].read) < READS
    }

    /// Begins a read and returns its number.
    #[inline]
    pub const fn begin_read(&mut self) -> u32 {
        let read = self.reads;
        self.reads = read.wrapping_add(1);
        read
    }

    /// Where a record of `bytes` may be put now, or `None` while older records occupy the space. A
    /// record that fits in the queue at all always fits when the queue is empty.
    #[inline]
    pub fn place(&self, bytes: u32) -> Option<u32> {
        let room = self.end - self.next;
        if self.is_empty() {
            return Some(if bytes <= room { self.next } else { self.base });
        }
        let oldest = self.records[self.removed as usize % RECORDS].start;
        // Not equal: the position only meets the oldest record when nothing is left between them.
        if self.next > oldest {
            if bytes <= room {
                Some(self.next)
            } else if bytes < oldest - self.base {
                Some(self.base)
            } else {
                None
            }
        } else if bytes < oldest - self.next {
            Some(self.next)
        } else {
            None
        }
    }

    /// Adds a record at the place that [`place`](Self::place) gave.
    #[inline]
    pub fn start(&mut self, record: Record) {
        self.records[self.started as usize % RECORDS] = record;
        self.started = self.started.wrapping_add(1);
        self.next = (record.start + record.bytes + (PCIE_ALIGN - 1)) & !(PCIE_ALIGN - 1);
    }

    /// The oldest record; meaningful when the queue is not empty.
    #[inline]
    pub fn oldest(&self) -> Record {
        self.records[self.removed as usize % RECORDS]
    }

    /// Where the next record would begin, for [`resume`](Self::resume).
    #[inline]
    pub const fn position(&self) -> u32 {
        self.next
    }

    /// Goes on at `position`, when the queue is empty.
    #[inline]
    pub const fn resume(&mut self, position: u32) {
        self.next = position;
    }

    /// Removes the oldest record: its commands have been executed.
    #[inline]
    pub fn remove(&mut self) {
        self.removed = self.removed.wrapping_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    proptest! {
        /// Host rule and device rule name the same offsets, for every sequence of sizes (seed 001
        /// section 2.4).
        #[test]
        fn issue_region_both_sides_agree(sizes in prop::collection::vec(1u32..40, 1..300)) {
            const SIZE: u32 = 64 * 64;
            let mut device = IssueCursor::new(0x4000_0100, SIZE);
            let mut host = 0u32;
            for units in sizes {
                let bytes = units * 16;
                host = host.next_multiple_of(64);
                if host + bytes > SIZE {
                    host = 0;
                }
                prop_assert_eq!(device.take(bytes), 0x4000_0100 + host);
                host += bytes;
                prop_assert_eq!(device.position(), 0x4000_0100 + host);
            }
        }

        /// Records never overlap living ones, never leave the queue, never wrap, come out in order,
        /// and never get stuck.
        #[test]
        fn records_never_meet(
            ops in prop::collection::vec((1u32..=64, any::<bool>(), any::<bool>()), 1..400),
            base in prop_oneof![Just(0u32), Just(0x1A440)],
        ) {
            const SIZE: u32 = 64 * 64;
            let mut queue = FetchQueue::new(base, base + SIZE);
            queue.started = u32::MAX - 5;
            queue.removed = u32::MAX - 5;
            queue.reads = u32::MAX - 5;
            let mut living: VecDeque<Record> = VecDeque::new();
            let mut read = queue.reads.wrapping_sub(1);
            for (units, remove, together) in ops {
                let bytes = units * 64;
                loop {
                    if queue.has_slot()
                        && (queue.has_read() || together)
                        && let Some(start) = queue.place(bytes)
                    {
                        prop_assert!(start >= base && start + bytes <= base + SIZE);
                        prop_assert_eq!(start % 64, base % 64);
                        for r in &living {
                            prop_assert!(start + bytes <= r.start || r.start + r.bytes <= start);
                        }
                        // The number of a read is that of no other whose records are here.
                        if !together || living.is_empty() {
                            read = queue.begin_read();
                            let index = |r: &Record| r.read_index();
                            let record = Record { read, ..Record::default() };
                            prop_assert!(living.iter().all(|r| index(r) != index(&record)));
                        }
                        let record = Record { start, bytes, host_end: bytes, read };
                        queue.start(record);
                        living.push_back(record);
                        break;
                    }
                    prop_assert!(!living.is_empty(), "an empty queue takes any record");
                    let record = living.pop_front().expect("not empty");
                    prop_assert_eq!(queue.oldest(), record);
                    queue.remove();
                }
                if remove && let Some(record) = living.pop_front() {
                    prop_assert_eq!(queue.oldest(), record);
                    queue.remove();
                }
                prop_assert_eq!(queue.is_empty(), living.is_empty());
            }
        }
    }
}
