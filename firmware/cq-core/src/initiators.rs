//! Which kernel uses which request initiator of which NIU, and with which transaction ids.
//!
//! Initiators 0 to 2 of NIU 1 are the subordinate's and 3 is the dispatcher's (seed 001 figure 8).
//! The subordinate only makes posted requests, so that the acknowledgements that NIU 1 counts are
//! all the dispatcher's.
//!
//! **Data before credit.** A write and a later atomic are not ordered, not even on one virtual
//! channel: the list of guarantees has write before *read* and atomic before atomic only
//! (WormholeB0/NoC/Ordering.md, "Ordering properties of two packets"). So a credit, a go message or
//! a completion pointer is sent after the *acknowledgements* of the data it announces have arrived,
//! never after a mere "sent" (tt-metal#52233, field 1.B 20).

/// The prefetcher: BRISC of the prefetch core.
pub mod prefetch {
    use crate::fetch::RECORDS;
    use tilework_rt::niu::{Initiator, Niu};

    /// The NIU of all its requests.
    pub const NIU: Niu = Niu::new(0);
    /// Writes into both rings of the dispatch core.
    pub const WRITES: Initiator = NIU.initiator(0);
    /// Transaction id of [`WRITES`].
    pub const WRITE_ID: u32 = 1;
    /// Reads of host memory.
    pub const READS: Initiator = NIU.initiator(1);
    /// Transaction id of the read of record 0; one id for each record.
    pub const FIRST_READ_ID: u32 = 8;
    /// Credits to the dispatcher.
    pub const CREDIT: Initiator = NIU.initiator(2);
    /// Credits to the dispatch subordinate.
    pub const CREDIT_S: Initiator = NIU.initiator(3);
    /// Transaction id of [`CREDIT`] and [`CREDIT_S`].
    pub const CREDIT_ID: u32 = 2;

    const _: () = assert!(FIRST_READ_ID as usize + RECORDS <= 16 && RECORDS.is_power_of_two());
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
    /// The NIU of credits.
    pub const CREDIT_NIU: Niu = Niu::new(0);
    /// Pages given back to the prefetcher.
    pub const CREDIT: Initiator = CREDIT_NIU.initiator(0);
    /// `NOTIFY_PREFETCH`: the count that the prefetcher's `STALL` waits for.
    pub const NOTIFY: Initiator = CREDIT_NIU.initiator(1);
    /// `EXEC_BUF_END`: the count that the core that reads records waits for. On the device side of
    /// a split dispatcher, which passes that command on: pages filled in the ring of the host side.
    pub const EXEC_BUF: Initiator = CREDIT_NIU.initiator(2);
    /// `NOTIFY_SUBORDINATE_GO_SIGNAL` to a subordinate on another tile.
    pub const SYNC: Initiator = CREDIT_NIU.initiator(3);
    /// Transaction id of all initiators of [`CREDIT_NIU`].
    pub const CREDIT_ID: u32 = 3;
}

/// The dispatch subordinate: NCRISC of the dispatch core or of a tile of its own.
pub mod dispatch_s {
    use tilework_rt::niu::{Initiator, Niu};

    /// The NIU of all its requests, which are all posted.
    pub const NIU: Niu = Niu::new(1);
    /// Go messages.
    pub const WRITES: Initiator = NIU.initiator(0);
    /// Transaction id of [`WRITES`].
    pub const GO_ID: u32 = 4;
    /// Counts of workers, passed on to the dispatcher on another tile.
    pub const COUNTS: Initiator = NIU.initiator(1);
    /// Pages given back to the prefetcher.
    pub const CREDIT: Initiator = NIU.initiator(2);
    /// Transaction id of [`CREDIT`].
    pub const CREDIT_ID: u32 = 5;
}
