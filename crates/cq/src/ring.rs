//! The prefetch queue: a ring of 16-bit sizes in the prefetch core's L1.
//!
//! The host writes the size of a record into the next entry; the prefetcher zeroes the entry when
//! it has *asked for* the record's bytes. An entry that has become free therefore says that the
//! read of its record is in flight, and that the read of the record before it has ended;
//! [`crate::issue`] builds on that.
//!
//! The ring keeps two indices and the number of entries in flight; no free-running counter, so
//! nothing here can wrap wrongly. Invariant: `known_free() + in_flight() == entries()`.
//!
//! Source: seed 001 section 2.3 and figures 4 and 5.

use crate::record::Record;
use tilework_abi::cq::layout::prefetch_core::PREFETCH_Q_ENTRIES;

/// How the entries in the prefetch core's L1 are reached.
pub trait PrefetchPort {
    /// Why an access failed.
    type Error;

    /// Reads entry `index`.
    ///
    /// # Errors
    /// As the device reports.
    fn read_slot(&mut self, index: u32) -> Result<u16, Self::Error>;

    /// Writes entry `index` in one 16-bit access.
    ///
    /// # Errors
    /// As the device reports.
    fn write_slot(&mut self, index: u32, entry: u16) -> Result<(), Self::Error>;
}

/// Why an entry could not be pushed.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum RingError<E> {
    /// Every entry is in flight.
    #[error("prefetch queue is full: all {entries} entries wait for the prefetcher, the oldest is entry {oldest}")]
    Full {
        /// Entries of the ring.
        entries: u32,
        /// The entry that becomes free first.
        oldest: u32,
    },
    /// The port failed.
    #[error("access to prefetch queue entry {index} failed")]
    Port {
        /// The entry.
        index: u32,
        /// Why.
        #[source]
        source: E,
    },
}

/// The host's side of the prefetch queue.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PrefetchRing {
    entries: u32,
    write: u32,
    oldest: u32,
    in_flight: u32,
}

impl Default for PrefetchRing {
    /// The ring of [`PREFETCH_Q_ENTRIES`] entries, all zeroed by the host.
    fn default() -> Self {
        Self::with_entries(PREFETCH_Q_ENTRIES)
    }
}

impl PrefetchRing {
    /// A ring of another size (at least one entry), for other maps and for tests.
    pub fn with_entries(entries: u32) -> Self {
        Self { entries: entries.max(1), write: 0, oldest: 0, in_flight: 0 }
    }

    /// Entries of the ring.
    pub fn entries(&self) -> u32 {
        self.entries
    }

    /// Entries that are known to be free. More may be; [`PrefetchRing::poll`] finds out.
    pub fn known_free(&self) -> u32 {
        self.entries - self.in_flight
    }

    /// Entries written and not known to be free again.
    pub fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// The entry that the next push writes.
    pub fn next_index(&self) -> u32 {
        self.write
    }

    /// The entry that becomes free first, when one is in flight: the word to wait for.
    pub fn oldest_in_flight(&self) -> Option<u32> {
        (self.in_flight > 0).then_some(self.oldest)
    }

    /// Looks at the entries in flight, oldest first, and counts those that have become free.
    ///
    /// # Errors
    /// When the port fails; entries found free before that stay counted.
    pub fn poll<P: PrefetchPort>(&mut self, port: &mut P) -> Result<u32, RingError<P::Error>> {
        let before = self.in_flight;
        while self.in_flight > 0 {
            let index = self.oldest;
            let entry = port.read_slot(index).map_err(|source| RingError::Port { index, source })?;
            if entry != 0 {
                break;
            }
            self.oldest = self.after(self.oldest);
            self.in_flight -= 1;
        }
        Ok(before - self.in_flight)
    }

    /// The oldest `n` entries in flight are free: an effect of the newest of them has been seen.
    pub(crate) fn settle(&mut self, n: u32) {
        let n = n.min(self.in_flight);
        self.oldest = (self.oldest + n) % self.entries;
        self.in_flight -= n;
    }

    /// Writes the entry of `record`, whose bytes must lie in the issue region already, and returns
    /// its index.
    ///
    /// # Errors
    /// [`RingError::Full`] when no entry is known to be free; the port's error.
    pub fn push<P: PrefetchPort>(&mut self, port: &mut P, record: &Record) -> Result<u32, RingError<P::Error>> {
        self.push_entry(port, record.entry())
    }

    pub(crate) fn push_entry<P: PrefetchPort>(&mut self, port: &mut P, entry: u16) -> Result<u32, RingError<P::Error>> {
        if self.in_flight == self.entries {
            return Err(RingError::Full { entries: self.entries, oldest: self.oldest });
        }
        let index = self.write;
        port.write_slot(index, entry).map_err(|source| RingError::Port { index, source })?;
        self.write = self.after(index);
        self.in_flight += 1;
        Ok(index)
    }

    fn after(&self, index: u32) -> u32 {
        if index + 1 == self.entries { 0 } else { index + 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Slots(Vec<u16>);

    impl PrefetchPort for Slots {
        type Error = std::convert::Infallible;
        fn read_slot(&mut self, index: u32) -> Result<u16, Self::Error> {
            Ok(self.0[index as usize])
        }
        fn write_slot(&mut self, index: u32, entry: u16) -> Result<(), Self::Error> {
            assert_eq!(self.0[index as usize], 0, "entry {index} overwritten");
            self.0[index as usize] = entry;
            Ok(())
        }
    }

    #[test]
    fn all_1534_entries_are_used_and_the_index_wraps() {
        let mut ring = PrefetchRing::default();
        let mut port = Slots(vec![0; 1534]);
        for index in 0..1534 {
            assert_eq!(ring.push_entry(&mut port, 4), Ok(index));
        }
        assert_eq!(ring.known_free(), 0);
        let full = RingError::Full { entries: 1534, oldest: 0 };
        assert_eq!(ring.push_entry(&mut port, 4), Err(full));
        assert_eq!(ring.poll(&mut port), Ok(0));
        port.0[0] = 0;
        port.0[1] = 0;
        // An entry that is free before its predecessors says nothing yet: the prefetcher goes in
        // order.
        port.0[3] = 0;
        assert_eq!(ring.poll(&mut port), Ok(2));
        assert_eq!(ring.oldest_in_flight(), Some(2));
        assert_eq!(ring.push_entry(&mut port, 8), Ok(0));
        assert_eq!(port.0[0], 8);
        assert_eq!(ring.known_free() + ring.in_flight(), ring.entries());
    }

    #[test]
    fn a_failing_port_leaves_the_account_as_it_was() {
        struct Broken;
        impl PrefetchPort for Broken {
            type Error = &'static str;
            fn read_slot(&mut self, _: u32) -> Result<u16, Self::Error> {
                Err("bus error")
            }
            fn write_slot(&mut self, _: u32, _: u16) -> Result<(), Self::Error> {
                Err("bus error")
            }
        }
        let mut ring = PrefetchRing::with_entries(2);
        let error = ring.push_entry(&mut Broken, 4).unwrap_err();
        assert_eq!(error, RingError::Port { index: 0, source: "bus error" });
        assert_eq!((ring.in_flight(), ring.next_index()), (0, 0));
    }
}
