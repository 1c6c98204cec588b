//! The issue queue against a model of host and prefetcher.

use super::*;
use std::collections::{BTreeMap, HashSet, VecDeque};
use std::convert::Infallible;
use tilework_abi::convert::{u16_of, u32_of};

/// Host and prefetcher on a small region and ring, with the bytes of the region reduced to the
/// number of the record that wrote them.
#[derive(Clone, PartialEq, Eq, Hash)]
struct World {
    queue: IssueQueue,
    slots: Vec<u16>,
    /// Who wrote each 64-byte unit, as an age: 0 is the next record the prefetcher will finish
    /// reading.
    units: Vec<Option<u32>>,
    /// Published records that are not read to the end.
    pending: u32,
    /// The prefetcher: ring index, read pointer (bytes), and the read in flight.
    slot: usize,
    read: u32,
    reading: Option<(u32, u32)>,
}

struct Slots<'a>(&'a mut Vec<u16>);

impl PrefetchPort for Slots<'_> {
    type Error = Infallible;
    fn read_slot(&mut self, index: u32) -> Result<u16, Infallible> {
        Ok(self.0[index as usize])
    }
    fn write_slot(&mut self, index: u32, entry: u16) -> Result<(), Infallible> {
        assert_eq!(self.0[index as usize], 0, "entry {index} is not free");
        self.0[index as usize] = entry;
        Ok(())
    }
}

const UNIT: u32 = 64;

impl World {
    fn new(units: u32, slots: u32, max_record: u32) -> Self {
        let region = IssueRegion::new(units * UNIT, max_record * UNIT).unwrap();
        Self {
            queue: IssueQueue::new(region, PrefetchRing::with_entries(slots)),
            slots: vec![0; slots as usize],
            units: vec![None; units as usize],
            pending: 0,
            slot: 0,
            read: 0,
            reading: None,
        }
    }

    /// The host issues a record of `size` units. Reports what it waits for when it cannot.
    fn issue(&mut self, size: u32) -> Result<(), u32> {
        let entry = u16_of(size * UNIT / 16);
        let mut port = Slots(&mut self.slots);
        let prepared = match self.queue.prepare_sized(&mut port, size * UNIT, entry) {
            Ok(prepared) => prepared,
            Err(QueueError::Blocked { slot }) => return Err(slot),
            Err(error) => panic!("{error}"),
        };
        let first = prepared.placement.offset.get() / UNIT;
        for unit in first..first + size {
            self.units[unit as usize] = Some(self.pending);
        }
        self.queue.publish(&mut port, prepared).unwrap();
        self.pending += 1;
        self.check();
        Ok(())
    }

    /// The prefetcher starts the read of the next record (`read_from_pcie`).
    fn start_read(&mut self) -> bool {
        let entry = self.slots[self.slot];
        if self.reading.is_some() || entry == 0 {
            return false;
        }
        let size = u32::from(entry) << 4;
        if self.read + size > u32_of(self.units.len()) * UNIT {
            self.read = 0;
        }
        self.reading = Some((self.read, size));
        self.read += size;
        self.slots[self.slot] = 0;
        self.slot = (self.slot + 1) % self.slots.len();
        true
    }

    /// The bytes of the read in flight leave host memory.
    fn finish_read(&mut self) -> bool {
        let Some((start, size)) = self.reading.take() else { return false };
        for unit in start / UNIT..(start + size) / UNIT {
            assert_eq!(self.units[unit as usize], Some(0), "overwritten before it was read");
        }
        for unit in &mut self.units {
            *unit = unit.and_then(|age| age.checked_sub(1));
        }
        self.pending -= 1;
        true
    }

    /// Credits are neither lost nor made.
    fn check(&self) {
        let ring = self.queue.ring();
        assert_eq!(ring.known_free() + ring.in_flight(), ring.entries());
        let written = u32_of(self.slots.iter().filter(|&&entry| entry != 0).count());
        let reading = u32::from(self.reading.is_some());
        assert!(written <= ring.in_flight());
        assert_eq!(written + reading, self.pending);
        assert!(u32_of(self.queue.region().outstanding()) >= self.pending);
    }
}

/// Every order of host and prefetcher steps, for small regions and rings, until no new state
/// appears. Both wrap many times on the way.
#[test]
fn no_order_of_steps_overwrites_unread_bytes_or_loses_a_credit() {
    for (units, slots, max_record) in [(6, 2, 2), (7, 3, 2), (9, 3, 3), (10, 4, 3)] {
        let mut seen = HashSet::new();
        let mut open = vec![World::new(units, slots, max_record)];
        let mut blocked = BTreeMap::<u32, u32>::new();
        while let Some(world) = open.pop() {
            if !seen.insert(world.clone()) {
                continue;
            }
            assert!(seen.len() < 2_000_000, "the state space is not finite");
            for size in 1..=max_record {
                let mut next = world.clone();
                if let Err(slot) = next.issue(size) {
                    *blocked.entry(slot).or_default() += 1;
                    // What the host waits for must come without the host: no deadlock.
                    let mut device = next.clone();
                    while device.slots[slot as usize] != 0 {
                        let moved = device.finish_read() | device.start_read();
                        assert!(moved, "host waits for entry {slot}, prefetcher for the host");
                    }
                }
                open.push(next);
            }
            for step in [World::start_read, World::finish_read] {
                let mut next = world.clone();
                if step(&mut next) {
                    next.check();
                    open.push(next);
                }
            }
        }
        assert_eq!(u32_of(blocked.len()), slots, "the host has waited for every entry");
    }
}

/// The real sizes, across several wraps of region and ring, against a prefetcher that is always
/// late.
#[test]
fn the_real_region_and_ring_wrap_together() {
    let mut queue = IssueQueue::default();
    let mut slots = vec![0u16; 1534];
    let mut sizes = VecDeque::new();
    let (mut read, mut slot, mut wraps, mut blocked) = (0u32, 0usize, 0, 0);
    let mut random = 1u32;
    for _ in 0..20_000 {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let size = (random >> 16) % 4096 * 64 + 64;
        let entry = u16_of(size >> 4);
        loop {
            let mut port = Slots(&mut slots);
            match queue.prepare_sized(&mut port, size, entry) {
                Ok(prepared) => {
                    sizes.push_back((prepared.placement.offset.get(), size));
                    wraps += u32::from(prepared.placement.wrapped);
                    queue.publish(&mut port, prepared).unwrap();
                    break;
                }
                Err(QueueError::Blocked { slot: wanted }) => {
                    blocked += 1;
                    assert_eq!(wanted as usize, slot);
                    // The prefetcher reads one record at the offset that its own rule gives.
                    let (offset, size) = sizes.pop_front().unwrap();
                    if u64::from(read) + u64::from(size) > 64 << 20 {
                        read = 0;
                    }
                    assert_eq!((offset, slots[slot]), (read, u16_of(size >> 4)));
                    read += size;
                    slots[slot] = 0;
                    slot = (slot + 1) % 1534;
                }
                Err(error) => panic!("{error}"),
            }
        }
    }
    assert!(wraps > 30 && blocked > 10_000, "{wraps} wraps, blocked {blocked} times");
}

#[test]
fn a_completion_frees_the_whole_region() {
    let mut queue = IssueQueue::default();
    let mut slots = vec![0u16; 1534];
    let mut port = Slots(&mut slots);
    let prepared = queue.prepare_sized(&mut port, 64, 4).unwrap();
    queue.publish(&mut port, prepared).unwrap();
    assert_eq!(queue.region().outstanding(), 1);
    port.0[0] = 0;
    // The free entry alone says only that the read has started.
    assert_eq!(queue.poll(&mut port), Ok(1));
    assert_eq!(queue.region().outstanding(), 1);
    queue.settle(0);
    assert_eq!(queue.region().outstanding(), 0);
}

#[test]
fn a_completion_frees_the_records_before_it_only() {
    let mut queue = IssueQueue::default();
    let mut slots = vec![0u16; 1534];
    let mut port = Slots(&mut slots);
    for _ in 0..4 {
        let prepared = queue.prepare_sized(&mut port, 64, 4).unwrap();
        queue.publish(&mut port, prepared).unwrap();
    }
    // The event behind the second record.
    queue.settle(2);
    assert_eq!((queue.region().outstanding(), queue.ring().in_flight()), (2, 2));
    assert_eq!(queue.ring().oldest_in_flight(), Some(2));
    // The third was seen to be taken: a later look at an older event frees nothing more.
    port.0[2] = 0;
    assert_eq!(queue.poll(&mut port), Ok(1));
    queue.settle(2);
    assert_eq!((queue.region().outstanding(), queue.ring().in_flight()), (2, 1));
    queue.settle(0);
    assert_eq!((queue.region().outstanding(), queue.ring().in_flight()), (0, 0));
    assert_eq!((queue.ring().oldest_in_flight(), queue.ring().next_index()), (None, 4));
}

#[test]
fn bad_sizes_and_stale_places_are_errors() {
    let mut queue = IssueQueue::default();
    let mut slots = vec![0u16; 1534];
    let mut port = Slots(&mut slots);
    for size in [0, 63, 65, 262_208, u32::MAX] {
        let error = queue.prepare_sized(&mut port, size, 4).unwrap_err();
        assert!(matches!(error, QueueError::Issue(IssueError::RecordSize { .. })), "{size}");
    }
    let first = queue.prepare_sized(&mut port, 128, 8).unwrap();
    let second = queue.prepare_sized(&mut port, 64, 4).unwrap();
    queue.publish(&mut port, first).unwrap();
    let error = queue.publish(&mut port, second).unwrap_err();
    assert_eq!(error, QueueError::Stale { prepared: IssueOffset::default(), current: IssueOffset(128) });
    let error = IssueRegion::new(191, 64).unwrap_err();
    assert_eq!(error, IssueError::RegionSize { size: 191, min: 192 });
}
