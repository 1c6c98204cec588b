//! An allocator over one address range that all banks of a memory have, whose ranges have named
//! owners.
//!
//! All banks are allocated in lock-step: a range is taken at the same addresses in every bank (seed
//! 004, section 3.3; tt-metal's `BankManager`). Where it is asked for, a range is taken only in
//! some banks, at an address that is free in all of these. Free ranges are what lies between the
//! taken ones, so that neighbours that are freed are one range again. Buffers get the smallest free
//! range that is long enough (best fit); buffers of L1 come from the top, what belongs to one
//! program from the bottom, so that the two meet only when the memory is full.

use super::{BufferType, MemoryError, MemoryStatistics, Overflow, Owned};
use crate::log::MEMORY;
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;
use tilework_abi::addr::{DramAddr, L1Addr};
use tilework_abi::convert::addr32_of;
use tracing::debug;

/// The address type of an allocator.
pub trait Address: Copy + Into<u64> {
    /// The address `value`, which lies in the range of an allocator of such addresses.
    fn of(value: u64) -> Self;
}

impl Address for L1Addr {
    fn of(value: u64) -> Self {
        Self::new(addr32_of(value))
    }
}

impl Address for DramAddr {
    fn of(value: u64) -> Self {
        Self::new(value)
    }
}

impl Address for u64 {
    fn of(value: u64) -> Self {
        value
    }
}

/// Banks of a memory.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Banks {
    /// All.
    #[default]
    All,
    /// Those with these numbers, in their order.
    Some(Arc<[u32]>),
}

impl Banks {
    /// The banks with these numbers.
    pub fn of(banks: impl IntoIterator<Item = u32>) -> Self {
        let mut banks: Vec<u32> = banks.into_iter().collect();
        banks.sort_unstable();
        banks.dedup();
        Self::Some(banks.into())
    }
    /// Whether the two have a bank in common.
    pub fn meet(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Some(a), Self::Some(b)) => {
                let (few, many) = if a.len() < b.len() { (a, b) } else { (b, a) };
                few.iter().any(|bank| many.binary_search(bank).is_ok())
            }
            _ => true,
        }
    }
}

impl fmt::Display for Banks {
    /// What follows the size of a range in messages: nothing if all banks have it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => Ok(()),
            Self::Some(banks) if banks.len() == 1 => f.write_str(" in 1 bank"),
            Self::Some(banks) => write!(f, " in {} banks", banks.len()),
        }
    }
}

/// Which of the free ranges is taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fit {
    /// The smallest that is long enough, of several the lowest; the low end of it.
    BestLow,
    /// The smallest that is long enough, of several the highest; the high end of it.
    BestHigh,
    /// The lowest address.
    Lowest,
    /// The highest.
    Highest,
}

/// The name of an allocation, for [`Allocator::free_id`]. It is not given twice.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct AllocationId(u64);

impl AllocationId {
    /// The number of the allocation in its allocator.
    pub(super) const fn number(self) -> u64 {
        self.0
    }
}

/// An allocator over one address range of a memory whose addresses are `A`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Allocator<A> {
    memory: String,
    range: Range<u64>,
    align: u64,
    /// By start; ranges in different banks may have the same.
    taken: BTreeMap<(u64, AllocationId), Owned>,
    /// Where each allocation starts.
    starts: BTreeMap<AllocationId, u64>,
    next: u64,
    addresses: PhantomData<A>,
}

impl<A: Address> Allocator<A> {
    /// An allocator over `range` of the memory called `memory`, all free; every range starts at a
    /// multiple of `align`.
    ///
    /// # Panics
    /// When `align` is not a power of two.
    pub fn new(memory: impl Into<String>, range: Range<A>, align: u64) -> Self {
        assert!(align.is_power_of_two());
        let range = range.start.into()..range.end.into();
        let (taken, starts) = (BTreeMap::new(), BTreeMap::new());
        Self { memory: memory.into(), range, align, taken, starts, next: 0, addresses: PhantomData }
    }

    /// The whole range.
    pub fn range(&self) -> Range<A> {
        A::of(self.range.start)..A::of(self.range.end)
    }
    /// Whether it has no bytes at all.
    pub fn is_empty(&self) -> bool {
        self.range.is_empty()
    }
    /// The owned ranges, by address.
    pub fn owners(&self) -> impl Iterator<Item = &Owned> {
        self.taken.values()
    }
    /// An owner of the byte at `addr`; ranges in other banks may have the same.
    pub fn owner_of(&self, addr: A) -> Option<&Owned> {
        let addr = addr.into();
        self.taken.range(..=(addr, AllocationId(u64::MAX))).rev().map(|(_, o)| o).find(|o| o.range.contains(&addr))
    }
    /// The owned ranges that have the byte at `addr`, in some banks at least.
    pub(super) fn ranges(&self, addr: u64) -> Vec<Range<u64>> {
        self.owners().filter(|owned| owned.range.contains(&addr)).map(|owned| owned.range.clone()).collect()
    }
    /// The ranges that are free in all banks, by address; each starts where an allocation could
    /// start.
    pub fn free(&self) -> Vec<Range<u64>> {
        self.free_in(&Banks::All)
    }
    /// The ranges that are free in all of `banks`.
    pub fn free_in(&self, banks: &Banks) -> Vec<Range<u64>> {
        let mut holes = Vec::new();
        let mut at = self.range.start;
        let taken = self.taken.values().filter(|o| o.banks.meet(banks)).map(|o| (o.range.start, o.range.end));
        for (start, end) in taken.chain([(self.range.end, self.range.end)]) {
            let aligned = at.next_multiple_of(self.align);
            if aligned < start {
                holes.push(aligned..start);
            }
            at = at.max(end);
        }
        holes
    }
    /// How much is taken and free, and by whom.
    pub fn statistics(&self, kind: BufferType) -> MemoryStatistics {
        let free = self.free();
        let lengths = || free.iter().map(|hole| hole.end - hole.start);
        MemoryStatistics {
            kind,
            total: self.range.end - self.range.start,
            free: lengths().sum(),
            largest_free_block: lengths().max().unwrap_or(0),
            owners: self.owners().cloned().collect(),
        }
    }

    /// Allocates `bytes` at the lowest address with room, in all banks.
    ///
    /// # Errors
    /// [`MemoryError::Overflow`].
    pub fn low(&mut self, owner: &str, bytes: u64) -> Result<A, MemoryError> {
        Ok(self.allocate(owner, bytes, &Banks::All, Fit::Lowest)?.1)
    }

    /// Allocates `bytes` at the highest address with room, in all banks.
    ///
    /// # Errors
    /// [`MemoryError::Overflow`].
    pub fn high(&mut self, owner: &str, bytes: u64) -> Result<A, MemoryError> {
        Ok(self.allocate(owner, bytes, &Banks::All, Fit::Highest)?.1)
    }

    /// Allocates `bytes` in `banks`.
    ///
    /// # Errors
    /// [`MemoryError::Overflow`].
    pub fn allocate(
        &mut self,
        owner: &str,
        bytes: u64,
        banks: &Banks,
        fit: Fit,
    ) -> Result<(AllocationId, A), MemoryError> {
        // Where the range would start in a free one, if that is long enough.
        let start = |hole: &Range<u64>| match fit {
            Fit::BestLow | Fit::Lowest => (hole.end - hole.start >= bytes).then_some(hole.start),
            Fit::BestHigh | Fit::Highest => {
                let start = hole.end.checked_sub(bytes)? / self.align * self.align;
                (start >= hole.start).then_some(start)
            }
        };
        let holes = self.free_in(banks);
        let mut fitting = holes.iter().filter_map(|hole| start(hole).map(|start| (hole.end - hole.start, start)));
        let found = match fit {
            Fit::Lowest => fitting.next(),
            Fit::Highest => fitting.next_back(),
            // Of several with one length these take the first one, and the last one.
            Fit::BestLow => fitting.min_by_key(|&(length, start)| (length, start)),
            Fit::BestHigh => fitting.min_by_key(|&(length, start)| (length, u64::MAX - start)),
        };
        let Some((_, start)) = found else { return Err(self.overflow(owner, bytes, banks)) };
        Ok((self.take(owner, start, bytes, banks), A::of(start)))
    }

    /// Allocates `bytes` at `address` in `banks`.
    ///
    /// # Errors
    /// An address that is not aligned, outside the memory, or taken.
    pub fn allocate_at(
        &mut self,
        owner: &str,
        bytes: u64,
        banks: &Banks,
        address: u64,
    ) -> Result<AllocationId, MemoryError> {
        let end = address.checked_add(bytes).filter(|&end| self.range.start <= address && end <= self.range.end);
        let Some(end) = end.filter(|_| address.is_multiple_of(self.align)) else {
            let (name, memory, range) = (owner.to_owned(), self.memory.clone(), Box::new(self.range.clone()));
            return Err(MemoryError::Address { name, memory, found: address, bytes, align: self.align, range });
        };
        // An empty range lies in no other.
        let overlaps = |o: &&Owned| bytes > 0 && o.range.start < end && address < o.range.end && o.banks.meet(banks);
        if let Some(taken) = self.owners().find(overlaps) {
            let (name, memory, taken) = (owner.to_owned(), self.memory.clone(), Box::new(taken.clone()));
            return Err(MemoryError::Taken { name, memory, start: address, end, taken });
        }
        Ok(self.take(owner, address, bytes, banks))
    }

    /// Frees an allocation; false when it was freed before.
    pub fn free_id(&mut self, id: AllocationId) -> bool {
        let start = self.starts.remove(&id);
        start.is_some_and(|start| {
            let memory = &self.memory;
            if let Some(Owned { owner, range, .. }) = self.taken.remove(&(start, id)) {
                debug!(target: MEMORY, "{memory}: {owner} frees {:#x}..{:#x}", range.start, range.end);
            }
            true
        })
    }

    fn take(&mut self, owner: &str, start: u64, bytes: u64, banks: &Banks) -> AllocationId {
        let id = AllocationId(self.next);
        self.next += 1;
        self.starts.insert(id, start);
        // An empty range owns nothing, so that it cannot hide another one.
        if bytes > 0 {
            let range = start..start + bytes;
            debug!(target: MEMORY, "{}: {owner} gets {:#x}..{:#x}", self.memory, range.start, range.end);
            self.taken.insert((start, id), Owned { owner: owner.to_owned(), range, banks: banks.clone() });
        }
        id
    }

    fn overflow(&self, owner: &str, bytes: u64, banks: &Banks) -> MemoryError {
        let free = self.free_in(banks);
        let end = self.range.end;
        let largest = free.iter().max_by_key(|hole| (hole.end - hole.start, hole.start));
        MemoryError::Overflow(Box::new(Overflow {
            memory: self.memory.clone(),
            owner: owner.to_owned(),
            bytes,
            free: free.iter().map(|hole| hole.end - hole.start).sum(),
            largest: largest.cloned().unwrap_or(end..end),
            fits: None,
            owners: self.owners().filter(|o| o.banks.meet(banks)).cloned().collect(),
        }))
    }
}

#[cfg(test)]
mod tests;
