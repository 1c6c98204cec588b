//! What stands before L1: the packer's output streams, which write whole 16-byte units.
//!
//! Follows WormholeB0/TensixTile/TensixCoprocessor/Packers/OutputAddressGenerator.md; for
//! accumulation WormholeB0/TensixTile/L1.md, which leaves open how sums are rounded.

use super::plan::Accumulate;
use crate::FaultClass;
use crate::tensix::config::Refusal;
use tilework_abi::tensix::L1_SIZE;

/// Bytes that are written at once.
pub(super) const UNIT: usize = 16;
/// The most that a `PACR` adds: four rows of 16 data of four bytes.
const MOST: usize = 256;

/// A stream of bytes into L1.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stream {
    /// Where the next unit goes; `None`: the next instruction says where.
    at: Option<u32>,
    /// What is not a whole unit yet.
    held: [u8; UNIT],
    len: usize,
}

impl Default for Stream {
    fn default() -> Self {
        Self { at: None, held: [0; UNIT], len: 0 }
    }
}

/// What an instruction does to a stream.
#[derive(Clone, Copy, Debug)]
pub(super) struct Write {
    /// Where in L1.
    pub(super) addr: u32,
    /// Whole units, in bytes.
    pub(super) len: u32,
}

/// The bytes of a stream while an instruction adds to them.
pub(super) struct Staged {
    bytes: [u8; UNIT + MOST],
    len: usize,
}

impl Stream {
    /// Where the stream goes on, if `addr` is what the instruction has as a fresh address.
    pub(super) fn address(&self, addr: u32) -> u32 {
        self.at.unwrap_or((addr & 0x1_FFFF) << 4)
    }

    /// What it will write if `added` bytes come, and it is closed or not.
    pub(super) fn plan(&self, addr: u32, added: usize, close: bool) -> Result<Write, Refusal> {
        let (addr, len) = (self.address(addr), self.len + added);
        let whole = if close { len.next_multiple_of(UNIT) } else { len / UNIT * UNIT } as u32;
        if whole != 0 && addr + whole > L1_SIZE {
            return Err((FaultClass::UndefinedBehavior, "a write past the end of L1"));
        }
        Ok(Write { addr, len: whole })
    }

    /// Starts to add to it.
    pub(super) fn stage(&self) -> Staged {
        let mut bytes = [0; UNIT + MOST];
        bytes[..UNIT].copy_from_slice(&self.held);
        Staged { bytes, len: self.len }
    }

    /// Ends what `stage` began: the stream goes on behind `write`, or, when closed, anywhere.
    pub(super) fn advance(&mut self, write: Write, staged: &Staged, close: bool) {
        let whole = write.len as usize;
        self.at = (!close).then_some(write.addr + write.len);
        self.len = staged.len.saturating_sub(whole);
        self.held = [0; UNIT];
        self.held[..self.len].copy_from_slice(&staged.bytes[whole..][..self.len]);
    }
}

impl Staged {
    /// Room for what comes next.
    #[inline]
    pub(super) fn room(&mut self) -> &mut [u8] {
        &mut self.bytes[self.len..]
    }

    /// So many bytes have come.
    #[inline]
    pub(super) fn add(&mut self, bytes: usize) {
        self.len += bytes;
    }

    /// The first `len` bytes; behind what came they are zero.
    pub(super) fn units(&mut self, len: u32) -> &mut [u8] {
        &mut self.bytes[..len as usize]
    }
}

// Sums are worked out without branches, so that the loops over them vectorise.

/// Adds what L1 holds to `units`.
pub(super) fn accumulate(units: &mut [u8], l1: &[u8], how: Accumulate) {
    match how {
        Accumulate::Fp32 => {
            each::<4>(units, l1, |x, l1| add_fp32(u32::from_le_bytes(l1), u32::from_le_bytes(x)).to_le_bytes())
        }
        Accumulate::Int32 => {
            each::<4>(units, l1, |x, l1| add_int32(u32::from_le_bytes(l1), u32::from_le_bytes(x)).to_le_bytes())
        }
        Accumulate::Bf16 => {
            each::<2>(units, l1, |x, l1| add_bf16(u16::from_le_bytes(l1), u16::from_le_bytes(x)).to_le_bytes())
        }
    }
}

fn each<const N: usize>(units: &mut [u8], l1: &[u8], f: impl Fn([u8; N], [u8; N]) -> [u8; N]) {
    let (units, _) = units.as_chunks_mut::<N>();
    let (l1, _) = l1.as_chunks::<N>();
    for (x, l1) in units.iter_mut().zip(l1) {
        *x = f(*x, *l1);
    }
}

/// Without denormals.
fn flushed(x: u32) -> u32 {
    if x & 0x7F80_0000 == 0 { x & 0x8000_0000 } else { x }
}

/// The sum of two FP32: to the nearest, ties to even, no denormals in or out, one NaN. (Not
/// documented; as found on another simulator.)
fn add_fp32(a: u32, b: u32) -> u32 {
    let sum = (f32::from_bits(flushed(a)) + f32::from_bits(flushed(b))).to_bits();
    if sum & 0x7FFF_FFFF > 0x7F80_0000 { 0x7FC0_0000 } else { flushed(sum) }
}

/// The sum of two BF16: as of FP32, rounded once more in the same way. NaN in L1 counts as
/// infinity, unless the other one is infinite. (Not documented; as found on another simulator.)
fn add_bf16(l1: u16, x: u16) -> u16 {
    let magnitude = |x: u16| x & 0x7FFF;
    let of_nan = if magnitude(x) == 0x7F80 { x } else { l1 & 0x8000 | 0x7F80 };
    let sum = add_fp32(u32::from(l1) << 16, u32::from(x) << 16);
    let sum = ((sum + 0x7FFF + (sum >> 16 & 1)) >> 16) as u16;
    if magnitude(l1) > 0x7F80 { of_nan } else { sum }
}

/// The sum of two integers in sign and magnitude, saturated.
fn add_int32(a: u32, b: u32) -> u32 {
    let value = |x: u32| {
        let magnitude = i64::from(x & 0x7FFF_FFFF);
        if x >> 31 != 0 { -magnitude } else { magnitude }
    };
    let sum = value(a) + value(b);
    let magnitude = sum.unsigned_abs().min(0x7FFF_FFFF) as u32;
    if sum < 0 { 1 << 31 | magnitude } else { magnitude }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_those_that_were_found() {
        let fp32 = [
            (0x3F80_0000, 0x3F80_0000, 0x4000_0000),
            (0x3F80_0000, 0x3380_0000, 0x3F80_0000),
            (0x3F80_0001, 0x3380_0000, 0x3F80_0002),
            (0x007F_FFFF, 0x0000_0001, 0),
            (0x0080_0000, 0x8080_0001, 0x8000_0000),
            (0x7F80_0000, 0xFF80_0000, 0x7FC0_0000),
            (0x7F7F_FFFF, 0x7F7F_FFFF, 0x7F80_0000),
        ];
        for (a, b, sum) in fp32 {
            assert_eq!((add_fp32(a, b), add_fp32(b, a)), (sum, sum), "{a:#x} + {b:#x}");
        }
        let bf16 = [
            (0xFFC0, 0x3F80, 0xFF80),
            (0xFFC0, 0x7F80, 0x7F80),
            (0xFF80, 0x7F80, 0x7FC0),
            (0x8001, 0x0080, 0x0080),
            (0x4000, 0x3B80, 0x4000),
            (0x4001, 0x3C00, 0x4002),
        ];
        for (l1, x, sum) in bf16 {
            assert_eq!(add_bf16(l1, x), sum, "{l1:#x} + {x:#x}");
        }
        assert_eq!(add_int32(0x7FFF_FFFF, 1), 0x7FFF_FFFF);
        assert_eq!(add_int32(0xFFFF_FFFF, 0x8000_0001), 0xFFFF_FFFF);
        assert_eq!((add_int32(5, 0x8000_0007), add_int32(0x8000_0005, 5)), (0x8000_0002, 0));
    }

    #[test]
    fn a_stream_keeps_what_is_not_a_whole_unit() {
        let mut s = Stream::default();
        let add = |s: &mut Stream, n: usize, close| {
            let write = s.plan(0x100, n, close).unwrap();
            let mut staged = s.stage();
            staged.room()[..n].fill(7);
            staged.add(n);
            let units = staged.units(write.len).to_vec();
            s.advance(write, &staged, close);
            (write.addr, units)
        };
        assert_eq!(add(&mut s, 10, false), (0x1000, vec![]));
        assert_eq!(add(&mut s, 10, false), (0x1000, vec![7; 16]));
        let mut last = vec![7; 14];
        last.extend([0; 2]);
        assert_eq!(add(&mut s, 10, true), (0x1010, last));
        assert_eq!(add(&mut s, 0, true), (0x1000, vec![]), "nothing is held, nothing is written");
        assert!(s.plan(L1_SIZE / 16 - 1, 17, true).is_err());
        assert!(s.plan(L1_SIZE / 16 - 1, 17, false).is_ok());
    }
}
