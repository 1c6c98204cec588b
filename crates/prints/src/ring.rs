//! The ring of a core as a reader sees it: finding records behind the counts.
//!
//! Follows `tilework_abi::print`. A kernel overwrites old records without asking, so a reader walks
//! back from the newest record to the last one that it has seen, as far as the ring still has them.

use tilework_abi::print::{FRONT_WORDS, HEADER_BYTES, Head, RECORDS, RING_WORDS, STRIDE, WRITTEN};

/// Words of a ring, for indices.
const WORDS: usize = RING_WORDS as usize;

/// What a kernel has ever written to its ring; both wrap.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Words.
    pub words: u32,
    /// Records.
    pub records: u32,
}

/// A record, taken apart but not understood.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Record {
    /// The kernel's number.
    pub kernel: u32,
    /// The wall clock of its tile when the print began.
    pub cycle: u64,
    /// Number of the text.
    pub text: u16,
    /// Types of the values, 4 bits each.
    pub types: u32,
    /// Words of the values.
    pub values: Vec<u32>,
}

/// A copy of a core's ring.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ring {
    /// What has been read.
    seen: Counts,
    counts: Counts,
    words: Box<[u32; WORDS]>,
}

impl Default for Ring {
    fn default() -> Self {
        Self { seen: Counts::default(), counts: Counts::default(), words: Box::new([0; WORDS]) }
    }
}

impl Ring {
    /// Takes a store to the ring, `offset` bytes from its start; says whether it ends a record.
    pub fn store(&mut self, offset: u32, value: u32) -> bool {
        match offset {
            WRITTEN => {
                let new = self.counts.words != value;
                self.counts.words = value;
                return new;
            }
            RECORDS => self.counts.records = value,
            HEADER_BYTES.. => {
                if let Some(word) = self.words.get_mut((offset - HEADER_BYTES) as usize / 4) {
                    *word = value;
                }
            }
            _ => {}
        }
        false
    }

    /// Takes the ring's bytes as they are in L1 now.
    pub fn load(&mut self, bytes: &[u8]) {
        for (i, word) in bytes.chunks_exact(4).take(STRIDE as usize / 4).enumerate() {
            let word = u32::from_le_bytes([word[0], word[1], word[2], word[3]]);
            // The index is that of a word of the ring.
            self.store(4 * tilework_abi::convert::u32_of(i), word);
        }
    }

    /// Forgets what was: the counts have been cleared.
    pub fn clear(&mut self) {
        (self.seen, self.counts) = Default::default();
    }

    /// The records since the last call, oldest first, and how many are missing.
    pub fn take(&mut self) -> (Vec<Record>, u32) {
        let (from, to) = (self.seen, self.counts);
        self.seen = to;
        let left = to.words.wrapping_sub(from.words).min(RING_WORDS);
        let mut records = Vec::new();
        let mut back = 0;
        while back < left {
            let Some(head) = Head::of(self.back(to.words, back + 1)).filter(|head| back + head.words() <= left) else {
                break;
            };
            records.push(self.record(to.words.wrapping_sub(back + head.words()), head));
            back += head.words();
        }
        records.reverse();
        let found = tilework_abi::convert::u32_of(records.len());
        (records, to.records.wrapping_sub(from.records).saturating_sub(found))
    }

    /// The word that was written `back` words before `end`.
    fn back(&self, end: u32, back: u32) -> u32 {
        self.words[end.wrapping_sub(back) as usize % WORDS]
    }

    /// The record that starts where `start` words had been written.
    fn record(&self, start: u32, head: Head) -> Record {
        let word = |i: u32| self.words[start.wrapping_add(i) as usize % WORDS];
        let values = u32::from(head.values);
        Record {
            kernel: word(0),
            cycle: u64::from(word(2)) << 32 | u64::from(word(1)),
            text: head.text,
            types: word(FRONT_WORDS + values),
            values: (0..values).map(|i| word(FRONT_WORDS + i)).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tilework_abi::print::FIXED_WORDS;

    /// What a kernel does.
    struct Kernel {
        bytes: Vec<u8>,
        counts: Counts,
    }

    impl Kernel {
        fn new(counts: Counts) -> Self {
            let mut kernel = Self { bytes: vec![0; STRIDE as usize], counts };
            kernel.store(WRITTEN, counts.words);
            kernel.store(RECORDS, counts.records);
            kernel
        }
        fn store(&mut self, offset: u32, word: u32) {
            self.bytes[offset as usize..offset as usize + 4].copy_from_slice(&word.to_le_bytes());
        }
        fn put(&mut self, word: u32) {
            self.store(HEADER_BYTES + self.counts.words % RING_WORDS * 4, word);
            self.counts.words = self.counts.words.wrapping_add(1);
        }
        fn print(&mut self, record: &Record) {
            let values = u8::try_from(record.values.len()).unwrap();
            for word in [record.kernel, record.cycle as u32, (record.cycle >> 32) as u32] {
                self.put(word);
            }
            record.values.iter().for_each(|&word| self.put(word));
            self.put(record.types);
            self.put(Head { text: record.text, values }.word());
            self.counts.records = self.counts.records.wrapping_add(1);
            self.store(RECORDS, self.counts.records);
            self.store(WRITTEN, self.counts.words);
        }
    }

    fn record() -> impl Strategy<Value = Record> {
        (any::<[u32; 2]>(), any::<u64>(), any::<u16>(), proptest::collection::vec(any::<u32>(), 0..40))
            .prop_map(|([kernel, types], cycle, text, values)| Record { kernel, cycle, text, types, values })
    }

    proptest! {
        #[test]
        fn the_newest_records_come_back_and_the_others_are_counted(
            batches in proptest::collection::vec(proptest::collection::vec(record(), 0..12), 1..6),
            words: u32,
            records: u32,
        ) {
            let start = Counts { words, records };
            let mut kernel = Kernel::new(start);
            let mut ring = Ring { seen: start, counts: start, ..Ring::default() };
            for batch in batches {
                batch.iter().for_each(|record| kernel.print(record));
                ring.load(&kernel.bytes);
                let (found, missing) = ring.take();
                prop_assert_eq!(found.len() + missing as usize, batch.len());
                prop_assert_eq!(&found, &batch[missing as usize..]);
                // None is missing that would have had room.
                let mut room = WORDS;
                let fits = |record: &&Record| {
                    let words = record.values.len() + FIXED_WORDS as usize;
                    room = room.saturating_sub(words);
                    room > 0
                };
                prop_assert!(found.len() >= batch.iter().rev().take_while(fits).count());
            }
        }

        #[test]
        fn any_bytes_are_read_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..STRIDE as usize + 9)) {
            let mut ring = Ring::default();
            ring.load(&bytes);
            let (found, _) = ring.take();
            prop_assert!(found.len() <= WORDS / FIXED_WORDS as usize);
        }
    }

    #[test]
    fn a_record_ends_with_the_count_of_words() {
        let mut ring = Ring::default();
        let record = Record { kernel: 7, cycle: 5 << 32 | 6, text: 9, types: 3, values: vec![11] };
        for (i, word) in [7, 6, 5, 11, 3, Head { text: 9, values: 1 }.word()].into_iter().enumerate() {
            assert!(!ring.store(HEADER_BYTES + 4 * i as u32, word));
        }
        assert!(!ring.store(RECORDS, 1));
        assert!(ring.store(WRITTEN, 6));
        assert_eq!(ring.take(), (vec![record], 0));
        assert_eq!(ring.take(), (Vec::new(), 0));
    }
}
