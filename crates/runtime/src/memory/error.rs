//! Why memory was refused.

use super::{BufferType, CoreCoord, CoreRangeError};
use std::fmt;
use std::ops::Range;

/// An allocated range and its owner.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Owned {
    /// The owner's name.
    pub owner: String,
    /// The bytes, by their addresses in the memory that the message names.
    pub range: Range<u64>,
    /// The banks that have them.
    pub banks: super::Banks,
}

impl fmt::Display for Owned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Range { start, end } = self.range;
        write!(f, "{:#x}..{:#x} {} ({} bytes{})", start, end, self.owner, end - start, self.banks)
    }
}

/// Why an allocation or a transfer was refused.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum MemoryError {
    /// No free range is long enough.
    #[error("{}", overflow(.0))]
    Overflow(Box<Overflow>),
    /// The device has no memory of this kind.
    #[error("buffer {name}: this device has no {memory}; {}", .memory.remedy())]
    NoMemory {
        /// The buffer.
        name: String,
        /// The kind.
        memory: BufferType,
    },
    /// An explicit address where something else lies.
    #[error("buffer {name}: {start:#x}..{end:#x} of {memory} is taken by {taken}")]
    Taken {
        /// The buffer.
        name: String,
        /// The memory.
        memory: String,
        /// First byte asked for.
        start: u64,
        /// One past the last.
        end: u64,
        /// Who has some of it.
        taken: Box<Owned>,
    },
    /// An explicit address that the memory does not have, or that is not aligned.
    #[error("buffer {name}: address {found:#x} for {bytes} bytes of {memory}, expected a multiple of {align} in {:#x}..{:#x}", .range.start, .range.end)]
    Address {
        /// The buffer.
        name: String,
        /// The memory.
        memory: String,
        /// The address.
        found: u64,
        /// Bytes in each bank.
        bytes: u64,
        /// The alignment.
        align: u64,
        /// What the memory has.
        range: Box<Range<u64>>,
    },
    /// Memory that a trace refers to.
    #[error("{name} cannot be {call} at {at}: {pin}; release the trace first")]
    Pinned {
        /// What was to be freed or allocated.
        name: String,
        /// What was to be done with it.
        call: &'static str,
        /// The call.
        at: crate::trace::CallSite,
        /// What needs the memory.
        pin: Box<super::Pin>,
    },
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
    /// A page size that the memory cannot hold.
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
    /// More pages than can be counted.
    #[error("buffer {name}: {bytes} bytes in pages of {page_size} are more than 4294967295 pages")]
    Pages {
        /// The buffer.
        name: String,
        /// Its bytes.
        bytes: u64,
        /// Bytes of a page.
        page_size: u32,
    },
    /// A sharded buffer whose parts do not fit together.
    #[error("buffer {name}: {kind}")]
    Shard {
        /// The buffer.
        name: String,
        /// What is wrong.
        kind: ShardError,
    },
    /// A region that is no part of the buffer.
    #[error(
        "buffer {name}: region of {size} bytes at {offset}, expected whole pages of {page_size} bytes within {bytes}"
    )]
    Region {
        /// The buffer.
        name: String,
        /// First byte of the region.
        offset: u64,
        /// Bytes of the region.
        size: u64,
        /// Bytes of a page.
        page_size: u32,
        /// Bytes of the buffer.
        bytes: u64,
    },
    /// A buffer that does not fit into the one that it is to be a part of.
    #[error(
        "buffer {name}: {bytes} bytes at {offset} in each bank, expected no more than the {room} that {parent} has, in the same banks"
    )]
    SubBuffer {
        /// The buffer.
        name: String,
        /// The larger one.
        parent: String,
        /// From the start of the larger one's share of a bank.
        offset: u64,
        /// Bytes in each bank.
        bytes: u64,
        /// Bytes that the larger one has in each bank.
        room: u64,
    },
    /// Memory that is not the caller's to free: freed before, or a part of another buffer.
    #[error("{name} owns no memory of this device: it was freed before, or is a part of another buffer")]
    NotOwned {
        /// Whose it would be.
        name: String,
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

/// What is wrong with a sharded buffer, or with a set of cores.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ShardError {
    /// A sharded layout without a specification.
    #[error("its layout is sharded, but it has no shard specification")]
    Missing,
    /// An interleaved layout with one.
    #[error("its layout is interleaved, but it has a shard specification")]
    Unexpected,
    /// This memory is interleaved only.
    #[error("{0} cannot be sharded")]
    Memory(BufferType),
    /// No cores.
    #[error("the set of cores is empty")]
    NoCores,
    /// The set of cores is none.
    #[error(transparent)]
    Cores(#[from] CoreRangeError),
    /// A core that programs cannot use.
    #[error("core {0} is no worker of this device")]
    NotWorker(CoreCoord),
    /// A DRAM bank that the board does not have.
    #[error("core {found} is no DRAM bank, expected (0,0) to ({},0)", .banks - 1)]
    NotBank {
        /// The coordinate.
        found: CoreCoord,
        /// Banks of the board.
        banks: u32,
    },
    /// A shard that is not made of whole pages.
    #[error("a shard of {shard:?} elements, expected whole pages of {page:?}")]
    PageShape {
        /// Rows and columns of a shard.
        shard: [u32; 2],
        /// Rows and columns of a page.
        page: [u32; 2],
    },
    /// More pages than can be counted.
    #[error("a shard of {0:?} pages, expected fewer than 4294967296")]
    Pages([u32; 2]),
    /// The bytes are not those of the pages.
    #[error("{found} bytes, expected {expected}: {pages:?} pages")]
    Bytes {
        /// Bytes of the buffer.
        found: u64,
        /// Bytes of the pages.
        expected: u64,
        /// Rows and columns of pages.
        pages: [u32; 2],
    },
    /// A height-sharded buffer whose shards are not as wide as it is, or a width-sharded one whose
    /// shards are not as high.
    #[error("shards of {found} pages in {dimension}, expected all {expected}: it is sharded in the other")]
    Whole {
        /// `width` or `height`.
        dimension: &'static str,
        /// Pages of a shard.
        found: u32,
        /// Pages of the buffer.
        expected: u32,
    },
    /// More shards than cores.
    #[error("{shards} shards, but {cores} cores: each core holds one shard")]
    TooFewCores {
        /// Shards.
        shards: u64,
        /// Cores.
        cores: usize,
    },
    /// A block-sharded buffer on cores that are no rectangle.
    #[error("block sharding needs one rectangle of cores, found {0} ranges")]
    NotRectangle(usize),
    /// A block-sharded buffer on too small a rectangle.
    #[error("{shards:?} shards (rows, columns), but the cores take {cores:?}")]
    SmallRectangle {
        /// Rows and columns of shards.
        shards: [u32; 2],
        /// Rows and columns of shards that the cores can hold.
        cores: [u32; 2],
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
    /// How many pages of the buffer that was asked for would fit; none for what has no pages.
    pub fits: Option<Fits>,
    /// The owned ranges, by address.
    pub owners: Vec<Owned>,
}

/// What would have fitted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fits {
    /// Pages that were asked for.
    pub pages: u64,
    /// Pages that fit into the longest free range.
    pub most: u64,
    /// Bytes of a page as it lies in memory.
    pub page_size: u64,
    /// Banks that they are distributed over.
    pub banks: u64,
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
    // Writing to a string cannot fail.
    if let Some(Fits { pages, most, page_size, banks }) = o.fits {
        let _ = write!(text, "\n  {most} of its {pages} pages of {page_size} bytes in {banks} banks would fit");
    }
    for owned in &o.owners {
        let _ = write!(text, "\n  {owned}");
    }
    text
}
