//! A first-fit allocator over one address range whose ranges have named owners.
//!
//! Buffers that live across programs come from the top, what belongs to one program from the
//! bottom, so that the two meet only when the memory is full.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;
use tilework_abi::addr::{DramAddr, L1Addr};
use tilework_abi::convert::addr32_of;

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

/// An allocated range and its owner.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Owned {
    /// The owner's name.
    pub owner: String,
    /// The bytes, by their addresses in the memory that the message names.
    pub range: Range<u64>,
}

impl fmt::Display for Owned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Range { start, end } = self.range;
        write!(f, "{:#x}..{:#x} {} ({} bytes)", start, end, self.owner, end - start)
    }
}

/// Why an allocation or a transfer was refused.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum MemoryError {
    /// No free range is long enough.
    #[error("{}", overflow(.0))]
    Overflow(Box<Overflow>),
    /// Data of another size than the buffer's.
    #[error("buffer {name}: found {found} bytes, expected {expected}")]
    DataSize {
        /// The buffer.
        name: String,
        /// Bytes given.
        found: usize,
        /// Bytes of the buffer.
        expected: usize,
    },
    /// A page size that the DRAM cannot hold.
    #[error("buffer {name}: page size {found}, expected a multiple of {align} from {align} to {max}")]
    PageSize {
        /// The buffer.
        name: String,
        /// The page size.
        found: u64,
        /// The alignment.
        align: u64,
        /// The largest page.
        max: u64,
    },
    /// The elements share exponents, so that a buffer of them has no size.
    #[error("buffer {name}: elements of type {dtype} share exponents and have no bytes alone")]
    Type {
        /// The buffer's name.
        name: String,
        /// The type's name.
        dtype: &'static str,
    },
    /// More elements than can be counted.
    #[error("buffer {name}: shape {shape:?} has too many elements")]
    Shape {
        /// The buffer.
        name: String,
        /// Its shape.
        shape: Vec<usize>,
    },
}

/// The content of an overflow's message: the request, the owners, the free space.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Overflow {
    /// The memory's name.
    pub memory: String,
    /// Who asked.
    pub owner: String,
    /// Bytes asked for.
    pub bytes: u64,
    /// Free bytes in all.
    pub free: u64,
    /// The longest free range.
    pub largest: Range<u64>,
    /// The owned ranges, by address.
    pub owners: Vec<Owned>,
}

fn overflow(o: &Overflow) -> String {
    use fmt::Write;
    let Range { start, end } = o.largest;
    let mut text = format!(
        "{} overflow: {} needs {} bytes, the largest free block is {} bytes ({start:#x}..{end:#x}) of {} free",
        o.memory,
        o.owner,
        o.bytes,
        end - start,
        o.free
    );
    for owned in &o.owners {
        // Writing to a string cannot fail.
        let _ = write!(text, "\n  {owned}");
    }
    text
}

/// An allocator over one address range of a memory whose addresses are `A`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Allocator<A> {
    memory: String,
    range: Range<u64>,
    align: u64,
    /// By start.
    taken: BTreeMap<u64, Owned>,
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
        Self { memory: memory.into(), range, align, taken: BTreeMap::new(), addresses: PhantomData }
    }

    /// The whole range.
    pub fn range(&self) -> Range<A> {
        A::of(self.range.start)..A::of(self.range.end)
    }
    /// The owned ranges, by address.
    pub fn owners(&self) -> impl Iterator<Item = &Owned> {
        self.taken.values()
    }
    /// The owner of the byte at `addr`.
    pub fn owner_of(&self, addr: A) -> Option<&Owned> {
        let addr = addr.into();
        let (_, owned) = self.taken.range(..=addr).next_back()?;
        owned.range.contains(&addr).then_some(owned)
    }
    /// The free ranges, by address; each starts where an allocation could start.
    pub fn free(&self) -> Vec<Range<u64>> {
        let mut holes = Vec::new();
        let mut at = self.range.start;
        let ends = self.taken.values().map(|o| (o.range.start, o.range.end));
        for (start, end) in ends.chain([(self.range.end, self.range.end)]) {
            let aligned = at.next_multiple_of(self.align);
            if aligned < start {
                holes.push(aligned..start);
            }
            at = at.max(end);
        }
        holes
    }

    /// Allocates `bytes` at the lowest address with room.
    ///
    /// # Errors
    /// [`MemoryError::Overflow`].
    pub fn low(&mut self, owner: &str, bytes: u64) -> Result<A, MemoryError> {
        let hole = self.free().into_iter().find(|hole| hole.end - hole.start >= bytes);
        let Some(hole) = hole else { return Err(self.overflow(owner, bytes)) };
        Ok(self.take(owner, hole.start, bytes))
    }

    /// Allocates `bytes` at the highest address with room.
    ///
    /// # Errors
    /// [`MemoryError::Overflow`].
    pub fn high(&mut self, owner: &str, bytes: u64) -> Result<A, MemoryError> {
        let start = self.free().into_iter().rev().find_map(|hole| {
            let start = hole.end.checked_sub(bytes)? / self.align * self.align;
            (start >= hole.start).then_some(start)
        });
        let Some(start) = start else { return Err(self.overflow(owner, bytes)) };
        Ok(self.take(owner, start, bytes))
    }

    /// Frees the range that starts at `start`; false when none does.
    pub fn free_at(&mut self, start: A) -> bool {
        self.taken.remove(&start.into()).is_some()
    }

    fn take(&mut self, owner: &str, start: u64, bytes: u64) -> A {
        // An empty range owns nothing, so that it cannot hide another one.
        if bytes > 0 {
            let range = start..start + bytes;
            self.taken.insert(start, Owned { owner: owner.to_owned(), range });
        }
        A::of(start)
    }

    fn overflow(&self, owner: &str, bytes: u64) -> MemoryError {
        let free = self.free();
        let end = self.range.end;
        let largest = free.iter().max_by_key(|hole| (hole.end - hole.start, hole.start));
        MemoryError::Overflow(Box::new(Overflow {
            memory: self.memory.clone(),
            owner: owner.to_owned(),
            bytes,
            free: free.iter().map(|hole| hole.end - hole.start).sum(),
            largest: largest.cloned().unwrap_or(end..end),
            owners: self.owners().cloned().collect(),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_overflow_names_owners_sizes_and_the_largest_block() {
        let mut l1 = Allocator::new("L1", L1Addr::new(0x1000)..L1Addr::new(0x1400), 16);
        assert_eq!(l1.high("weights", 0x100), Ok(L1Addr::new(0x1300)));
        assert_eq!(l1.low("cb 0", 0x80), Ok(L1Addr::new(0x1000)));
        let message = l1.low("cb 1", 0x300).unwrap_err().to_string();
        let expected = "L1 overflow: cb 1 needs 768 bytes, the largest free block is 640 bytes (0x1080..0x1300) of 640 free\n  \
                        0x1000..0x1080 cb 0 (128 bytes)\n  0x1300..0x1400 weights (256 bytes)";
        assert_eq!(message, expected);
        assert_eq!(l1.owner_of(L1Addr::new(0x107f)).map(|o| o.owner.as_str()), Some("cb 0"));
        assert_eq!(l1.owner_of(L1Addr::new(0x1080)), None);
    }

    #[test]
    fn freed_ranges_are_given_again() {
        let mut memory = Allocator::new("m", DramAddr::new(0)..DramAddr::new(0x100), 64);
        let a = memory.low("a", 100).unwrap();
        let b = memory.low("b", 64).unwrap();
        assert_eq!((a, b), (DramAddr::new(0), DramAddr::new(128)));
        assert!(memory.low("c", 128).is_err());
        assert!(memory.free_at(a));
        assert!(!memory.free_at(a));
        assert_eq!(memory.low("c", 128), Ok(DramAddr::new(0)));
    }

    proptest! {
        #[test]
        fn ranges_never_overlap_and_stay_inside(
            steps in prop::collection::vec((any::<bool>(), 0u64..3000, any::<prop::sample::Index>()), 1..80)
        ) {
            let mut memory = Allocator::new("m", DramAddr::new(37)..DramAddr::new(20_000), 64);
            let mut live = Vec::new();
            for (high, bytes, which) in steps {
                if bytes < 300 && !live.is_empty() {
                    let start = live.remove(which.index(live.len()));
                    prop_assert!(memory.free_at(start));
                } else if let Ok(start) = if high { memory.high("x", bytes) } else { memory.low("x", bytes) } {
                    prop_assert_eq!(start.get() % 64, 0);
                    if bytes > 0 {
                        live.push(start);
                    }
                }
                let owned: Vec<_> = memory.owners().map(|o| o.range.clone()).collect();
                prop_assert_eq!(owned.len(), live.len());
                prop_assert!(owned.iter().all(|r| r.start >= 37 && r.end <= 20_000));
                prop_assert!(owned.windows(2).all(|w| w[0].end <= w[1].start));
            }
        }
    }
}
