//! Device prints of tt-metal's newer form (`DEVICE_PRINT("x = {}", x)`): from the records of a
//! tile's one buffer, and the texts in the ELF files, to lines.
//!
//! Follows the public headers `hostdev/device_print_common.h` (the buffer),
//! `hostdev/device_print_structures.h` (header of a record, entries of texts),
//! `internal/tt-1xx/blackhole/device_print_mem.h` (sizes) and `api/debug/device_print.h` (who
//! stores what, order of values, types), as the wheel `ttnn` 0.81.1 has them. All cores of a tile
//! append to one ring under a lock; the storing of `wpos` ends a record. A record has the number of
//! its text and the bytes of its values, the largest first, padded to a word. The first record of a
//! kernel says by which number the host knows it. Texts are in sections of the file that is not
//! sent to the chip: [`Texts`].

mod format;
mod texts;

pub use texts::{Section, Text, Texts, TextsError};

use crate::copy::Copy;
use tilework_abi::convert::u32_of;
use tilework_abi::tensix::Processor;

/// Bytes of a tile's buffer (`DevicePrintBuffer<1020, 5>`).
pub const BUFFER_BYTES: u32 = 1020;
/// Bytes in front of its records: `wpos`, `rpos`, a state of each core, and the lock (`Aux`).
pub const HEADER_BYTES: u32 = 20;
/// Offset of the end of the records (u32).
pub const WPOS: u32 = crate::metal::WPOS;
/// Offset of the end of what the host has read (u32).
pub const RPOS: u32 = crate::metal::RPOS;
/// What a host stores as `wpos` so that cores print (`DEBUG_PRINT_SERVER_STARTING_MAGIC`).
pub const STARTING: u32 = crate::metal::STARTING;

/// Set in `wpos` by a core that waits for room (`DEVICE_PRINT_WRITE_STALL_FLAG`).
const STALLED: u32 = 1 << 31;
/// Bytes of records in a buffer.
const DATA: usize = (BUFFER_BYTES - HEADER_BYTES) as usize;
/// Bytes of a record's header (`DevicePrintHeader`).
const HEADER: usize = 4;
/// `message_payload` of a record whose `info_id` is a kernel's number.
const KERNEL_PAYLOAD: u32 = 1023;
/// `info_id` of a record that has no text, and of the mark at which the ring begins anew.
const NO_TEXT: u16 = u16::MAX;

/// What a core has appended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Record {
    /// From now on this core runs the kernel that the host knows by this number
    /// (`watcher_kernel_ids` of the launch message).
    Kernel {
        /// The core.
        core: Option<Processor>,
        /// The number.
        id: u16,
    },
    /// A print.
    Print {
        /// The core.
        core: Option<Processor>,
        /// Whether a kernel printed it; otherwise the firmware.
        by_kernel: bool,
        /// The number of its text in the file; none if it has too many.
        text: Option<u16>,
        /// The bytes of its values.
        values: Vec<u8>,
    },
}

/// The buffer of a tile as a reader sees it.
#[derive(Clone, Debug)]
pub struct Buffer {
    copy: Copy,
    /// Where the next record begins, and what the cores know of that.
    read: usize,
    given_back: usize,
}

impl Default for Buffer {
    fn default() -> Self {
        Self { copy: Copy::new(BUFFER_BYTES, HEADER_BYTES), read: 0, given_back: 0 }
    }
}

impl Buffer {
    /// Takes a store of some bytes, `offset` from the buffer's start; returns the records that it
    /// ends.
    pub fn store(&mut self, offset: u32, bytes: &[u8]) -> Vec<Record> {
        self.copy.store(offset, bytes).map_or_else(Vec::new, |end| self.end(end))
    }

    /// Takes the buffer as it is in L1 now; returns the records that have come.
    pub fn load(&mut self, bytes: &[u8]) -> Vec<Record> {
        self.copy.load(bytes).map_or_else(Vec::new, |end| self.end(end))
    }

    /// The end of what has been read, for the cores, if they do not know it.
    pub fn give_back(&mut self) -> Option<u32> {
        let new = self.read != std::mem::replace(&mut self.given_back, self.read);
        new.then(|| u32_of(self.read))
    }

    /// The records end at `end` now.
    fn end(&mut self, end: u32) -> Vec<Record> {
        let mut records = Vec::new();
        // Magic numbers are no end.
        let Some(end) = usize::try_from(end & !STALLED).ok().filter(|&end| end <= DATA) else { return records };
        if end < self.read {
            // Behind the last record there is a mark, or no room for one.
            self.take(DATA, &mut records);
            self.read = 0;
        }
        self.take(end, &mut records);
        records
    }

    /// Takes records up to `end`, or to the mark before it.
    fn take(&mut self, end: usize, records: &mut Vec<Record>) {
        while let Some(header) = self.copy.records()[self.read..end].first_chunk::<HEADER>() {
            let header = Header::of(u32::from_le_bytes(*header));
            if header == Header::MARK {
                return;
            }
            let from = self.read + HEADER;
            if header.payload == KERNEL_PAYLOAD && header.by_kernel {
                records.push(Record::Kernel { core: header.core, id: header.info });
                self.read = from;
                continue;
            }
            let Some(values) = self.copy.records()[..end].get(from..from + header.payload as usize) else { return };
            let text = Some(header.info).filter(|&info| info != NO_TEXT);
            let (core, by_kernel, values) = (header.core, header.by_kernel, values.to_vec());
            self.read = from + values.len();
            records.push(Record::Print { core, by_kernel, text, values });
        }
    }
}

/// The header of a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Header {
    by_kernel: bool,
    core: Option<Processor>,
    payload: u32,
    info: u16,
}

impl Header {
    /// Where the ring begins anew, as BRISC's firmware could not have it: a text that is none.
    const MARK: Self = Self { by_kernel: false, core: Some(Processor::Brisc), payload: 0, info: NO_TEXT };

    /// `is_kernel`, `risc_id`, `message_payload` and `info_id`, from the lowest bit on.
    fn of(word: u32) -> Self {
        let [_, _, low, high] = word.to_le_bytes();
        Self {
            by_kernel: word & 1 != 0,
            core: Processor::ALL.get((word >> 1 & 0x1F) as usize).copied(),
            payload: word >> 6 & 0x3FF,
            info: u16::from_le_bytes([low, high]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn header(by_kernel: bool, core: Processor, payload: u32, info: u16) -> u32 {
        u32::from(by_kernel) | u32_of(core.index()) << 1 | payload << 6 | u32::from(info) << 16
    }

    /// Cores that print, as `begin_message_write` and `end_message_write` do, with a reader that
    /// tells how far it is.
    #[derive(Default)]
    struct Cores {
        buffer: Buffer,
        wpos: u32,
        rpos: u32,
        records: Vec<Record>,
    }

    impl Cores {
        fn wpos(&mut self, end: u32) {
            let records = self.buffer.store(WPOS, &end.to_le_bytes());
            self.records.extend(records);
            self.rpos = self.buffer.give_back().unwrap_or(self.rpos);
        }
        fn word(&mut self, word: u32) {
            self.buffer.store(HEADER_BYTES + self.wpos, &word.to_le_bytes());
        }
        fn print(&mut self, core: Processor, info: u16, values: &[u8]) {
            let payload = u32_of(values.len().next_multiple_of(4));
            if self.wpos + 4 + payload > BUFFER_BYTES - HEADER_BYTES {
                self.wpos(self.wpos | STALLED);
                if self.wpos + 4 <= BUFFER_BYTES - HEADER_BYTES {
                    self.word(header(false, Processor::Brisc, 0, NO_TEXT));
                }
                self.wpos = 0;
                self.wpos(0);
            }
            self.word(header(true, core, payload, info));
            for (i, byte) in values.iter().enumerate() {
                self.buffer.store(HEADER_BYTES + self.wpos + 4 + u32_of(i), &[*byte]);
            }
            for i in values.len()..payload as usize {
                self.buffer.store(HEADER_BYTES + self.wpos + 4 + u32_of(i), &[0]);
            }
            self.wpos += 4 + payload;
            self.wpos(self.wpos);
        }
    }

    #[test]
    fn a_kernel_names_itself_and_prints() {
        let mut cores = Cores::default();
        cores.wpos(STARTING);
        cores.word(header(true, Processor::Trisc1, KERNEL_PAYLOAD, 7));
        cores.wpos = 4;
        cores.print(Processor::Trisc1, 2, &[1, 2, 3, 4, 5]);
        let print = |values: &[u8]| Record::Print {
            core: Some(Processor::Trisc1),
            by_kernel: true,
            text: Some(2),
            values: values.to_vec(),
        };
        let kernel = Record::Kernel { core: Some(Processor::Trisc1), id: 7 };
        assert_eq!(cores.records, [kernel, print(&[1, 2, 3, 4, 5, 0, 0, 0])]);
        assert_eq!(cores.rpos, 16);
    }

    #[test]
    fn a_word_that_is_no_end_is_left_alone() {
        let mut buffer = Buffer::default();
        for end in [STARTING, 0xF8F8_F8F8, 0xF0E1_D2C3, 2000] {
            assert_eq!(buffer.store(WPOS, &end.to_le_bytes()), []);
        }
        assert_eq!((buffer.store(BUFFER_BYTES + 8, &[1]), buffer.load(&[1; 3])), (vec![], vec![]));
    }

    proptest! {
        #[test]
        fn the_ring_loses_nothing_when_it_begins_anew(
            prints in proptest::collection::vec((0..5_usize, 0..60_u16, proptest::collection::vec(any::<u8>(), 0..90)), 1..80),
        ) {
            let mut cores = Cores::default();
            let mut expected = Vec::new();
            for (core, info, mut values) in prints {
                let core = Processor::ALL[core];
                cores.print(core, info, &values);
                values.resize(values.len().next_multiple_of(4), 0);
                expected.push(Record::Print { core: Some(core), by_kernel: true, text: Some(info), values });
            }
            prop_assert_eq!(cores.records, expected);
        }

        #[test]
        fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..1100), end in 0..1100_u32) {
            let mut buffer = Buffer::default();
            buffer.load(&bytes);
            buffer.store(WPOS, &end.to_le_bytes());
        }
    }
}
