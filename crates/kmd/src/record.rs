//! The record of what a program does to a card: each access to a BAR, each span of time that
//! passes, each reset, and what the device reads and writes of host memory meanwhile, in order. The
//! chip's run follows from it without the program.
//!
//! A record is a stream: [`MAGIC`], then entries of one byte for the kind and numbers of 7 bits a
//! byte, the low ones first (LEB128). Bytes that are written to the card, or that the device has
//! read of host memory, are there; of those that come from the chip a [`digest`] is. A zero ends
//! the stream, so that a file with zeros behind its last entry is whole.
//!
//! | kind | entry | numbers |
//! |---|---|---|
//! | 1 | [`Entry::Read`] | BAR, offset, bytes |
//! | 2 | [`Entry::Write`] | BAR, offset, bytes; the bytes |
//! | 3 | [`Entry::Clock`] | cycles |
//! | 4 | [`Entry::Reset`] | |
//! | 5 | [`Entry::Fetched`] | bus address, bytes; the bytes |
//! | 6 | [`Entry::Stored`] | bus address, bytes, digest |
//! | 7 | [`Entry::Answer`] | digest, cycle |
//! | 8 | [`Entry::End`] | cycle, instructions |

use std::io::{self, BufRead, Read, Write};
use tilework_abi::tlb::Bar;

/// How a record begins.
pub const MAGIC: &[u8; 16] = b"tilework card 1\n";
/// Bytes of one access or transfer, at most.
pub const MOST: u64 = 1 << 30;

/// What has happened. `B` is how its bytes are held.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Entry<B> {
    /// A read of a BAR begins.
    Read(Bar, u64, u64),
    /// A write to a BAR.
    Write(Bar, u64, B),
    /// Cycles pass.
    Clock(u64),
    /// The chip is as after power-on.
    Reset,
    /// The device has read host memory at this bus address.
    Fetched(u64, B),
    /// The device has written host memory.
    Stored {
        /// The bus address.
        address: u64,
        /// Bytes.
        len: u64,
        /// Of the bytes.
        digest: u32,
    },
    /// The read has ended.
    Answer {
        /// Of what was read.
        digest: u32,
        /// The host's time then.
        cycle: u64,
    },
    /// The program has ended, and with it the use of the card.
    End {
        /// The host's time.
        cycle: u64,
        /// Instructions that cores have executed.
        instructions: u64,
    },
}

/// A number that two equal strings of bytes have in common, and others hardly ever: FNV-1a over
/// words of eight bytes, the last with zeros, and the length.
pub fn digest(bytes: &[u8]) -> u32 {
    const BASIS: u64 = 0xCBF2_9CE4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01B3;
    let mut hash = BASIS ^ bytes.len() as u64;
    for chunk in bytes.chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        hash = (hash ^ u64::from_le_bytes(word)).wrapping_mul(PRIME);
        // The product's high bits depend on all, its low bits on few.
        hash ^= hash >> 32;
    }
    let [a, b, c, d, ..] = hash.to_le_bytes();
    u32::from_le_bytes([a, b, c, d])
}

fn bar_number(bar: Bar) -> u64 {
    match bar {
        Bar::Bar0 => 0,
        Bar::Bar2 => 2,
        Bar::Bar4 => 4,
    }
}

fn bar_of(number: u64) -> Option<Bar> {
    [Bar::Bar0, Bar::Bar2, Bar::Bar4].into_iter().find(|&bar| bar_number(bar) == number)
}

/// The most bytes of a number.
const NUMBER: usize = 10;

impl Entry<&[u8]> {
    /// Writes the entry.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let (kind, numbers, bytes): (u8, [u64; 3], &[u8]) = match *self {
            Self::Read(bar, offset, len) => (1, [bar_number(bar), offset, len], &[]),
            Self::Write(bar, offset, data) => (2, [bar_number(bar), offset, data.len() as u64], data),
            Self::Clock(cycles) => (3, [cycles, 0, 0], &[]),
            Self::Reset => (4, [0; 3], &[]),
            Self::Fetched(address, data) => (5, [address, data.len() as u64, 0], data),
            Self::Stored { address, len, digest } => (6, [address, len, digest.into()], &[]),
            Self::Answer { digest, cycle } => (7, [digest.into(), cycle, 0], &[]),
            Self::End { cycle, instructions } => (8, [cycle, instructions, 0], &[]),
        };
        let mut head = [0; 1 + 3 * NUMBER];
        head[0] = kind;
        let mut len = 1;
        for &number in &numbers[..count(kind)] {
            let mut left = number;
            loop {
                let [low, ..] = left.to_le_bytes();
                left >>= 7;
                head[len] = low & 0x7F | if left == 0 { 0 } else { 0x80 };
                len += 1;
                if left == 0 {
                    break;
                }
            }
        }
        out.write_all(&head[..len])?;
        out.write_all(bytes)
    }
}

/// Numbers of an entry.
const fn count(kind: u8) -> usize {
    match kind {
        1 | 2 | 6 => 3,
        5 | 7 | 8 => 2,
        3 => 1,
        _ => 0,
    }
}

/// Reads a record.
pub struct Records<R> {
    from: R,
}

impl<R: BufRead> Records<R> {
    /// The record that `from` has.
    ///
    /// # Errors
    /// Those of `from`; what is no record.
    pub fn new(mut from: R) -> io::Result<Self> {
        let mut magic = [0; MAGIC.len()];
        from.read_exact(&mut magic)?;
        if &magic != MAGIC { Err(wrong("it does not begin as a record")) } else { Ok(Self { from }) }
    }

    /// The next entry; `None` behind the last. One that was cut off does not count: the program was
    /// ended while it was written.
    ///
    /// # Errors
    /// Those of the source; what is no entry.
    pub fn read(&mut self) -> io::Result<Option<Entry<Vec<u8>>>> {
        match self.entry() {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
            other => other,
        }
    }

    fn entry(&mut self) -> io::Result<Option<Entry<Vec<u8>>>> {
        let mut kind = [0];
        self.from.read_exact(&mut kind)?;
        let [kind] = kind;
        if kind == 0 {
            return Ok(None);
        }
        let mut numbers = [0; 3];
        for number in &mut numbers[..count(kind)] {
            *number = self.number()?;
        }
        let [a, b, c] = numbers;
        let bar = || bar_of(a).ok_or_else(|| wrong("a BAR that there is not"));
        let digest = |number: u64| u32::try_from(number).map_err(|_| wrong("a digest of more than 32 bits"));
        Ok(Some(match kind {
            1 => Entry::Read(bar()?, b, within(c)?),
            2 => Entry::Write(bar()?, b, self.bytes(c)?),
            3 => Entry::Clock(a),
            4 => Entry::Reset,
            5 => Entry::Fetched(a, self.bytes(b)?),
            6 => Entry::Stored { address: a, len: b, digest: digest(c)? },
            7 => Entry::Answer { digest: digest(a)?, cycle: b },
            8 => Entry::End { cycle: a, instructions: b },
            _ => return Err(wrong("an entry of an unknown kind")),
        }))
    }

    fn number(&mut self) -> io::Result<u64> {
        let mut number = 0u64;
        for place in 0..NUMBER {
            let mut byte = [0];
            self.from.read_exact(&mut byte)?;
            let part = u64::from(byte[0] & 0x7F);
            let shifted = part << (7 * place);
            if shifted >> (7 * place) != part {
                break;
            }
            number |= shifted;
            if byte[0] & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(wrong("a number of more than 64 bits"))
    }

    fn bytes(&mut self, len: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let read = (&mut self.from).take(within(len)?).read_to_end(&mut bytes)?;
        if read as u64 == len { Ok(bytes) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }
}

fn within(len: u64) -> io::Result<u64> {
    if len <= MOST { Ok(len) } else { Err(wrong("an access of more bytes than there are")) }
}

fn wrong(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries() -> Vec<Entry<Vec<u8>>> {
        vec![
            Entry::Read(Bar::Bar0, 0x1FD0_0000, 4),
            Entry::Stored { address: 1 << 40, len: 4, digest: u32::MAX },
            Entry::Answer { digest: digest(b"abc"), cycle: 127 },
            Entry::Write(Bar::Bar4, u64::MAX, vec![0, 1, 2]),
            Entry::Fetched(128, vec![9; 300]),
            Entry::Clock(0),
            Entry::Reset,
            Entry::Write(Bar::Bar2, 5, Vec::new()),
            Entry::End { cycle: u64::MAX, instructions: 1 << 63 },
        ]
    }

    fn borrowed(entry: &Entry<Vec<u8>>) -> Entry<&[u8]> {
        match *entry {
            Entry::Read(bar, offset, len) => Entry::Read(bar, offset, len),
            Entry::Write(bar, offset, ref data) => Entry::Write(bar, offset, data),
            Entry::Clock(cycles) => Entry::Clock(cycles),
            Entry::Reset => Entry::Reset,
            Entry::Fetched(address, ref data) => Entry::Fetched(address, data),
            Entry::Stored { address, len, digest } => Entry::Stored { address, len, digest },
            Entry::Answer { digest, cycle } => Entry::Answer { digest, cycle },
            Entry::End { cycle, instructions } => Entry::End { cycle, instructions },
        }
    }

    fn read(bytes: &[u8]) -> io::Result<Vec<Entry<Vec<u8>>>> {
        let mut records = Records::new(bytes)?;
        let mut found = Vec::new();
        while let Some(entry) = records.read()? {
            found.push(entry);
        }
        Ok(found)
    }

    #[test]
    fn what_is_written_is_read_and_a_cut_entry_is_left_out() {
        let mut bytes = MAGIC.to_vec();
        let mut ends = Vec::new();
        for entry in entries() {
            borrowed(&entry).write(&mut bytes).unwrap();
            ends.push(bytes.len());
        }
        assert_eq!(read(&bytes).unwrap(), entries());
        // Zeros behind the last entry.
        assert_eq!(read(&[&bytes[..], &[0; 100]].concat()).unwrap(), entries());
        for cut in MAGIC.len()..bytes.len() {
            let whole = ends.iter().filter(|&&end| end <= cut).count();
            assert_eq!(read(&bytes[..cut]).unwrap(), entries()[..whole], "{cut}");
        }
    }

    #[test]
    fn what_is_no_record_is_told() {
        assert!(read(b"tilework card 2\n").is_err() && read(b"tile").is_err());
        let with = |more: &[u8]| read(&[MAGIC.as_slice(), more].concat()).unwrap_err().to_string();
        assert_eq!(with(&[9]), "an entry of an unknown kind");
        assert_eq!(with(&[1, 1, 0, 0]), "a BAR that there is not");
        assert_eq!(with(&[1, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F]), "an access of more bytes than there are");
        assert_eq!(
            with(&[3, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 2]),
            "a number of more than 64 bits"
        );
    }

    #[test]
    fn a_digest_tells_strings_apart() {
        let strings: [&[u8]; 7] = [b"", b"\0", b"\0\0", b"a", b"abcdefgh", b"abcdefgi", b"abcdefgh\0"];
        let mut digests: Vec<_> = strings.iter().map(|bytes| digest(bytes)).collect();
        digests.sort_unstable();
        digests.dedup();
        assert_eq!(digests.len(), strings.len());
    }
}
