//! Which kernel uses which request initiator of which NIU, and with which transaction ids.
//!
//! NIU 1 of a dispatch core is the dispatcher's. The subordinate has half of NIU 0, not three
//! initiators of NIU 1 as in seed 001 figure 8: while a chain of linked multicasts is open on an
//! NIU nobody may send anything else through it (BlackholeA0/NoC/MemoryMap.md,
//! `NOC_CMD_VC_LINKED`), and two cores cannot know that of each other. The subordinate only makes
//! posted requests, so that the answers that NIU 0 counts are all the dispatcher's.
//!
//! **Data before credit.** A write and a later atomic are not ordered, not even on one virtual
//! channel: the list of guarantees has write before *read* and atomic before atomic only
//! (WormholeB0/NoC/Ordering.md, "Ordering properties of two packets"). So a credit, a go message or
//! a completion pointer is sent after the *acknowledgements* of the data it announces have arrived,
//! never after a mere "sent" (tt-metal#52233, field 1.B 20).

/// The prefetcher: BRISC of the prefetch core.
pub mod prefetch {
    use crate::fetch;
    use tilework_rt::niu::{Initiator, Niu};

    /// The NIU of all its requests.
    pub const NIU: Niu = Niu::new(0);
    /// Writes into both rings of the dispatch core.
    pub const WRITES: Initiator = NIU.initiator(0);
    /// Transaction ids of [`WRITES`], alternating by portion.
    pub const WRITE_IDS: [u32; 2] = [1, 3];
    /// All reads. Who starts one stores the upper address word first.
    pub const READS: Initiator = NIU.initiator(1);
    /// Transaction ids of the reads into the scratch buffer, by its halves.
    pub const SCRATCH_READ_IDS: [u32; 2] = [4, 5];
    /// Transaction id of the reads into the ring buffer.
    pub const RING_READ_ID: u32 = 6;
    /// Transaction id of the first read of records; one id for each that may be in flight.
    pub const FIRST_READ_ID: u32 = 8;
    /// Credits to the dispatcher.
    pub const CREDIT: Initiator = NIU.initiator(2);
    /// Credits to the dispatch subordinate.
    pub const CREDIT_S: Initiator = NIU.initiator(3);
    /// Transaction id of [`CREDIT`] and [`CREDIT_S`].
    pub const CREDIT_ID: u32 = 2;

    const _: () = assert!(FIRST_READ_ID + fetch::READS <= 16 && fetch::READS.is_power_of_two());
}

/// The device side of a split prefetcher, besides [`prefetch`].
pub mod prefetch_d {
    use tilework_rt::niu::{Initiator, Niu};

    /// The NIU of credits to the host side.
    pub const CREDIT_NIU: Niu = Niu::new(1);
    /// Pages of the record ring given back.
    pub const CREDIT: Initiator = CREDIT_NIU.initiator(0);
    /// Transaction id of [`CREDIT`].
    pub const CREDIT_ID: u32 = 1;
}

/// The dispatcher: BRISC of the dispatch core.
pub mod dispatch {
    use tilework_rt::niu::{Initiator, Niu};

    /// The NIU of all writes.
    pub const NIU: Niu = Niu::new(1);
    /// All writes.
    pub const WRITES: Initiator = NIU.initiator(3);
    /// Transaction ids of [`WRITES`], by the parity of the block their data lies in.
    pub const WRITE_IDS: [u32; 2] = [1, 2];
    /// Transaction ids of [`WRITES`] for data of the host, which takes turns.
    pub const HOST_IDS: [u32; 2] = [5, 6];
    /// Transaction id of [`WRITES`] for the completion pointer.
    pub const POINTER_ID: u32 = 7;
    /// The NIU of credits.
    pub const CREDIT_NIU: Niu = Niu::new(0);
    /// Pages given back to the prefetcher.
    pub const CREDIT: Initiator = CREDIT_NIU.initiator(0);
    /// All other counts of other cores: those of `NOTIFY_PREFETCH`, `EXEC_BUF_END` and
    /// `NOTIFY_SUBORDINATE_GO_SIGNAL`, and of pages filled in the ring of the host side.
    pub const NOTIFY: Initiator = CREDIT_NIU.initiator(1);
    /// Transaction id of [`CREDIT`] and [`NOTIFY`].
    pub const CREDIT_ID: u32 = 3;
}

/// The dispatch subordinate: NCRISC of the dispatch core or of a tile of its own.
pub mod dispatch_s {
    use tilework_rt::niu::{Initiator, Niu};

    /// The NIU of all its requests, which are all posted.
    pub const NIU: Niu = Niu::new(0);
    /// Go messages.
    pub const WRITES: Initiator = NIU.initiator(2);
    /// Transaction id of [`WRITES`].
    pub const GO_ID: u32 = 4;
    /// Counts of workers, passed on to the dispatcher on another tile: next to it this initiator is
    /// the dispatcher's.
    pub const COUNTS: Initiator = NIU.initiator(1);
    /// Pages given back to the prefetcher.
    pub const CREDIT: Initiator = NIU.initiator(3);
    /// Transaction id of [`CREDIT`].
    pub const CREDIT_ID: u32 = 5;
}
