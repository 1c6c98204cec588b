//! Words by which agents tell each other something: semaphores, mailboxes, counters, flags.
//!
//! Whoever changes such a word tells what it knows, whoever loads it learns that. In L1 these are
//! the words that the memory map sets aside for it, semaphores of programs, words that atomics
//! change, and words that a core has been seen to poll. All others are data.

use super::clock::{Clock, Moment};
use crate::numbers::ByNumber;
use std::collections::BTreeMap;
use std::ops::Range;
use tilework_abi::cq::layout::{dispatch_core, prefetch_core};
use tilework_abi::l1::{GO_ENTRIES, LAUNCH_ENTRIES, MemoryMap};
use tilework_abi::msg::{LAUNCH_MSG_BYTES, LaunchMsg};
use tilework_abi::tensix::L1_SIZE;
use tilework_abi::{L1_ALIGN, stream};

/// Semaphores of a program (tt-metal, `NUM_SEMAPHORES`).
const SEMAPHORES: u32 = 16;
/// Where the mailboxes of all public firmware are, with the words for small writes in front of them
/// (tt-metal, `dev_mem_map.h`: up to `MEM_MAILBOX_END`).
pub(super) const MAILBOXES: Range<u32> = 0..96 + 13_440;
/// Bytes of L1 that 64 marks are for.
const MARKED: usize = 256;
/// Bytes of a write that may be a flag, at most.
pub(super) const FLAG_BYTES: u64 = 16;

/// The words of one tile's L1 and streams.
#[derive(Clone, Debug, Default)]
pub(super) struct Words {
    /// One bit for each word of L1 that is one.
    marks: Vec<u64>,
    known: BTreeMap<u32, Word>,
    /// Base of the kernel configuration in use.
    config: u32,
    /// What came with the last small write of the NoC to a word that may be a flag.
    flags: ByNumber<u32, Moment>,
}

/// What is told by a word.
#[derive(Clone, Debug, Default)]
struct Word {
    /// What was told last, with all that was told before and is not in `clock`: most words are told
    /// by agents that know of the time before, and are never loaded.
    last: Moment,
    /// What was told before that the last one did not know.
    clock: Clock,
    version: u32,
    /// Who has learned which version.
    readers: Vec<(usize, u32)>,
}

/// Ranges of L1 that the memory map sets aside for such words, on any tile.
pub(super) fn reserved(map: &MemoryMap) -> Vec<Range<u32>> {
    let words = |first: u32, bytes: u32| first..first + bytes;
    let mut all = vec![
        map.mailbox.get()..map.launch.get(),
        words(map.go.get(), 4 * GO_ENTRIES),
        words(map.go_index.get(), 4),
        prefetch_core::PREFETCH_Q_RD_PTR..dispatch_core::SYNC_SEMS.end().get(),
        words(prefetch_core::PREFETCH_Q.base().get(), prefetch_core::PREFETCH_Q.size()),
    ];
    all.sort_by_key(|range| range.start);
    all
}

/// The register that stands for the stream register at `addr`: the counts of free space are changed
/// through another register, which stands for all of them.
pub(super) fn stands_for(addr: u32) -> u32 {
    let index = (addr - stream::BASE) % stream::STRIDE / 4;
    let counts = stream::SPACE_AVAILABLE..stream::SPACE_AVAILABLE + stream::RECEIVERS;
    if counts.contains(&index) {
        return addr - 4 * (index - stream::SPACE_AVAILABLE_UPDATE);
    }
    addr
}

impl Word {
    fn tell(&mut self, moment: &Moment) {
        if !moment.covers(&self.last) {
            self.last.tell(&mut self.clock);
        }
        self.last.clone_from(moment);
        self.version += 1;
    }

    /// All that was told.
    fn learn(&self, clock: &mut Clock) {
        clock.join(&self.clock);
        self.last.tell(clock);
    }
}

impl Words {
    /// Makes the words of these ranges of L1 such words.
    pub(super) fn reserve(&mut self, ranges: &[Range<u32>]) {
        ranges.iter().flat_map(|range| range.clone().step_by(4)).for_each(|addr| self.mark(addr));
    }

    /// Whether the word at `addr` of L1 is one.
    pub(super) fn has(&self, addr: u32) -> bool {
        self.marks.get(addr as usize / MARKED).is_some_and(|marks| marks >> (addr / 4 % 64) & 1 != 0)
    }

    /// Makes it one.
    pub(super) fn add(&mut self, addr: u32) {
        self.mark(addr);
        self.known.entry(addr).or_default();
    }

    /// Whether any word of a range of L1 is one.
    pub(super) fn any(&self, range: &Range<u32>) -> bool {
        let (first, last) = (range.start as usize / MARKED, (range.end as usize).div_ceil(MARKED));
        let marks = self.marks.get(first..last.min(self.marks.len())).unwrap_or_default();
        marks.iter().any(|marks| *marks != 0) && (range.start & !3..range.end).step_by(4).any(|addr| self.has(addr))
    }

    fn mark(&mut self, addr: u32) {
        if self.marks.is_empty() {
            self.marks = vec![0; L1_SIZE as usize / MARKED];
        }
        if let Some(marks) = self.marks.get_mut(addr as usize / MARKED) {
            *marks |= 1 << (addr / 4 % 64);
        }
    }

    /// Tells what `moment` knows by the word at `addr`.
    pub(super) fn tell(&mut self, addr: u32, moment: &Moment) {
        self.mark(addr);
        self.known.entry(addr).or_default().tell(moment);
    }

    /// A small write of the NoC that may be a flag.
    pub(super) fn may_tell(&mut self, addr: u32, moment: Moment) {
        self.flags.insert(addr, moment);
    }

    /// `reader` learns what is told by the word at `addr`.
    pub(super) fn learn(&mut self, addr: u32, reader: usize, clock: &mut Clock) {
        if let Some(word) = self.known.get_mut(&addr) {
            match word.readers.iter_mut().find(|(other, _)| *other == reader) {
                Some((_, version)) if *version == word.version => {}
                known => {
                    match known {
                        Some((_, version)) => *version = word.version,
                        None => word.readers.push((reader, word.version)),
                    }
                    word.learn(clock);
                }
            }
        }
        if let Some(flag) = self.flags.get(&addr) {
            flag.tell(clock);
        }
    }

    /// All that is told by registers of streams: somebody has waited for one of them.
    pub(super) fn streams(&self, clock: &mut Clock) {
        for word in self.known.range(stream::BASE..).map(|(_, word)| word) {
            word.learn(clock);
        }
    }

    /// All that is told by the word at `addr`, for a read by the NoC.
    pub(super) fn read(&self, addr: u32, clock: &mut Clock) {
        if let Some(word) = self.known.get(&addr) {
            word.learn(clock);
        }
        self.learn_flag(addr, clock);
    }

    /// Whether a small write to the word at `addr` is known, and its clock has been learned.
    pub(super) fn learn_flag(&self, addr: u32, clock: &mut Clock) -> bool {
        self.flags.get(&addr).map(|flag| flag.tell(clock)).is_some()
    }

    /// A core loads `value` from the launch messages, which say where semaphores are.
    pub(super) fn launch(&mut self, map: &MemoryMap, addr: u32, value: u32) {
        let size = LAUNCH_MSG_BYTES as u32;
        let Some(offset) = addr.checked_sub(map.launch.get()).filter(|at| *at < LAUNCH_ENTRIES * size) else { return };
        let field = (offset % size) as usize;
        if field == std::mem::offset_of!(LaunchMsg, kernel_config_base) {
            self.config = value;
        } else if field == std::mem::offset_of!(LaunchMsg, sem_offset) {
            let first = self.config.wrapping_add(value & 0xFFFF);
            (0..SEMAPHORES).for_each(|id| self.mark(first.wrapping_add(id * L1_ALIGN)));
        }
    }
}
