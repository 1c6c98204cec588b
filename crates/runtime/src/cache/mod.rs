//! Cached programs: lowered once, launched many times.
//!
//! The steps of [`lower`](crate::lower) send a program whole, every time. Here a program is
//! compiled into encoded commands (`sequence`), kept under everything that shapes their bytes
//! (`key`, `ProgramCache`), and a launch only patches words: arguments, semaphores, addresses
//! of circular buffers, the slot of the configuration and that of the launch message. What the
//! workers' L1 holds already is not sent again; an account on the host knows it (`account`). A
//! launch goes out while the workers still run the program before it (`launch`).
//!
//! Text that does not fit into L1 together with other text is kept in DRAM (`text`).
//!
//! Everything is of one device, so board, memory map and dispatch layout are the same for all
//! programs of a cache and no part of its keys.
//!
//! Why the order is right without the barriers of the plain lowering is in docs/protocol.md.

mod account;
mod cores;
mod key;
mod launch;
mod prepared;
mod records;
mod sequence;
#[cfg(test)]
mod tests;
mod text;
mod trace;

pub use launch::{Launch, Launched, Launcher};
pub use prepared::Prepared;
pub use records::Encoded;
pub(crate) use text::STORE_BYTES;
pub(crate) use trace::{Capture, Captured};

use crate::log::PROGRAM;
use crate::program::Program;
use std::collections::HashMap;
use std::sync::Arc;
use tracing::debug;

/// Programs that a device keeps. The one that was used longest ago makes room for another: which
/// one is gone follows from the order of the calls alone.
pub const CACHED_PROGRAMS: usize = 256;

/// Counts of the program cache and of what launches found in the workers' L1.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CacheCounts {
    /// Programs that were found.
    pub hits: u64,
    /// Programs that were lowered.
    pub misses: u64,
    /// Programs that made room for others.
    pub evictions: u64,
    /// Launches that sent kernel text, to some of their cores at least.
    pub text_sent: u64,
    /// Launches that found all their kernel text in L1.
    pub text_resident: u64,
    /// Those of the launches that sent kernel text which relayed it from DRAM.
    pub text_from_dram: u64,
}

impl CacheCounts {
    /// What was added since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            hits: self.hits - earlier.hits,
            misses: self.misses - earlier.misses,
            evictions: self.evictions - earlier.evictions,
            text_sent: self.text_sent - earlier.text_sent,
            text_resident: self.text_resident - earlier.text_resident,
            text_from_dram: self.text_from_dram - earlier.text_from_dram,
        }
    }
}

/// A compiled program and when it was used last.
#[derive(Debug)]
struct Entry {
    compiled: Arc<sequence::Compiled>,
    used: u64,
}

/// The compiled programs of a device, at most [`CACHED_PROGRAMS`].
#[derive(Debug, Default)]
pub(crate) struct ProgramCache {
    /// By hash of the shape; programs of different shape may have the same hash.
    entries: HashMap<u64, Vec<Entry>>,
    len: usize,
    /// Look-ups so far.
    clock: u64,
    counts: CacheCounts,
}

impl ProgramCache {
    /// The compiled form of `program`, by `compile` if it is not there, which gets a number that no
    /// other call gets.
    pub(crate) fn get<E>(
        &mut self,
        program: &Program,
        compile: impl FnOnce(u64) -> Result<sequence::Compiled, E>,
    ) -> Result<Arc<sequence::Compiled>, E> {
        self.clock += 1;
        let hash = key::hash(program);
        let bucket = self.entries.get_mut(&hash).map_or(&mut [][..], Vec::as_mut_slice);
        if let Some(entry) = bucket.iter_mut().find(|entry| key::same(&entry.compiled.program, program)) {
            entry.used = self.clock;
            self.counts.hits += 1;
            debug!(target: PROGRAM, "{}: found in the cache", program.name);
            return Ok(Arc::clone(&entry.compiled));
        }
        let compiled = Arc::new(compile(self.clock)?);
        self.counts.misses += 1;
        debug!(target: PROGRAM, "{}: compiled", program.name);
        if self.len == CACHED_PROGRAMS {
            self.evict();
        }
        let entry = Entry { compiled: Arc::clone(&compiled), used: self.clock };
        self.entries.entry(hash).or_default().push(entry);
        self.len += 1;
        Ok(compiled)
    }

    /// The compiled form of `program`, if it is there; not counted as a use.
    pub(crate) fn find(&self, program: &Program) -> Option<Arc<sequence::Compiled>> {
        let bucket = self.entries.get(&key::hash(program))?;
        let entry = bucket.iter().find(|entry| key::same(&entry.compiled.program, program))?;
        Some(Arc::clone(&entry.compiled))
    }

    /// Drops the program that was used longest ago. No two were used at the same time.
    fn evict(&mut self) {
        let oldest = self.entries.iter().flat_map(|(&hash, bucket)| bucket.iter().map(move |e| (e.used, hash))).min();
        let Some((used, hash)) = oldest else { return };
        if let Some(bucket) = self.entries.get_mut(&hash) {
            bucket.retain(|entry| entry.used != used);
            if bucket.is_empty() {
                self.entries.remove(&hash);
            }
        }
        self.len -= 1;
        self.counts.evictions += 1;
    }

    /// Counts so far.
    pub(crate) fn counts(&self) -> CacheCounts {
        self.counts
    }

    /// Programs in the cache.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.len
    }
}
