//! What stands before L1: the packer's output streams, which write whole 16-byte units.
//!
//! Follows WormholeB0/TensixTile/TensixCoprocessor/Packers/OutputAddressGenerator.md; for
//! accumulation WormholeB0/TensixTile/L1.md, which leaves open how sums are rounded.

use super::convert::{self, Row};
use super::plan::Accumulate;
use crate::FaultClass;
use crate::tensix::config::Refusal;
use multiversion::multiversion;
use tilework_abi::tensix::L1_SIZE;

/// Bytes that are written at once.
pub(super) const UNIT: usize = 16;
/// Bits of a unit.
const UNIT_BITS: usize = 8 * UNIT;
/// What a stream holds, and the most that a `PACR` adds: four rows of 16 data of four bytes, and
/// zeros up to the next 16. Whole units.
const MOST: usize = UNIT + 256 + 64;
/// The same of the stream of exponents: four, and zeros.
pub(super) const EXPONENTS: usize = UNIT + UNIT;

/// A stream of bytes into L1.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stream {
    /// Where the next unit goes; `None`: the next instruction says where.
    at: Option<u32>,
    /// What is not a whole unit yet, and its bits.
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

/// The bytes of a stream while an instruction adds to them, room for whole units; behind what came
/// they are zero.
pub(super) struct Staged<const N: usize = MOST> {
    bytes: [u8; N],
    /// In bits.
    len: usize,
}

impl Stream {
    /// Where the stream goes on, if `addr` is what the instruction has as a fresh address.
    pub(super) fn address(&self, addr: u32) -> u32 {
        self.at.unwrap_or((addr & 0x1_FFFF) << 4)
    }

    /// What it holds, in bits.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// What it will write if `added` bits come, and it is closed or not.
    pub(super) fn plan(&self, addr: u32, added: usize, close: bool) -> Result<Write, Refusal> {
        let (addr, len) = (self.address(addr), self.len + added);
        let units = if close { len.div_ceil(UNIT_BITS) } else { len / UNIT_BITS };
        let whole = (units * UNIT) as u32;
        if whole != 0 && addr + whole > L1_SIZE {
            return Err((FaultClass::UndefinedBehavior, "a write past the end of L1"));
        }
        Ok(Write { addr, len: whole })
    }

    /// Starts to add to it; nothing has come to `staged`, which is large, so it is not returned.
    #[inline]
    pub(super) fn stage<const N: usize>(&self, staged: &mut Staged<N>) {
        staged.bytes[..UNIT].copy_from_slice(&self.held);
        staged.len = self.len;
    }

    /// Ends what `stage` began: the stream goes on behind `write`, or, when closed, anywhere.
    pub(super) fn advance<const N: usize>(&mut self, write: Write, staged: &Staged<N>, close: bool) {
        let whole = write.len as usize;
        self.at = (!close).then_some(write.addr + write.len);
        self.len = staged.len.saturating_sub(8 * whole);
        self.held = match staged.bytes[whole..].first_chunk() {
            Some(unit) => *unit, // behind what came it is zero
            None => [0; UNIT],
        };
    }
}

impl<const N: usize> Default for Staged<N> {
    #[inline(always)]
    fn default() -> Self {
        const { assert!(N.is_multiple_of(UNIT)) }
        Self { bytes: [0; N], len: 0 }
    }
}

impl<const N: usize> Staged<N> {
    /// Room for whole bytes that come next; they follow whole bytes.
    #[inline]
    pub(super) fn room(&mut self) -> &mut [u8] {
        &mut self.bytes[self.len / 8..]
    }

    /// So many bytes have come.
    #[inline]
    pub(super) fn add(&mut self, bytes: usize) {
        self.len += 8 * bytes;
    }

    /// Whether it ends with a whole byte.
    #[inline]
    pub(super) fn is_aligned(&self) -> bool {
        self.len.is_multiple_of(8)
    }

    /// Adds the first `count` data of a row, of `bits` bits each.
    #[inline]
    pub(super) fn store(&mut self, row: &Row, count: usize, bits: u32) {
        if self.is_aligned() && (count * bits as usize).is_multiple_of(8) {
            let bytes = convert::store(row, count, bits, self.room());
            self.add(bytes);
        } else {
            row[..count].iter().for_each(|x| self.store_bits(*x, bits));
        }
    }

    /// Adds a datum that need not begin with a byte: two bits at a time, which never cross one.
    fn store_bits(&mut self, x: u32, bits: u32) {
        for bit in (0..bits).step_by(2) {
            self.bytes[self.len / 8] |= ((x >> bit & 3) << (self.len % 8)) as u8;
            self.len += 2;
        }
    }

    /// What it adds up to, in bits.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The first `len` bytes.
    pub(super) fn units(&mut self, len: u32) -> &mut [u8] {
        &mut self.bytes[..len as usize]
    }
}

// Sums are worked out without branches, so that the loops over them vectorise.

/// Adds what L1 holds to `units`.
#[multiversion(targets("x86_64+avx512f", "x86_64+avx2"))]
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
        Accumulate::Fp16 => {
            each::<2>(units, l1, |x, l1| add_fp16(u16::from_le_bytes(l1), u16::from_le_bytes(x)).to_le_bytes())
        }
    }
}

#[inline(always)]
fn each<const N: usize>(units: &mut [u8], l1: &[u8], f: impl Fn([u8; N], [u8; N]) -> [u8; N]) {
    let (units, _) = units.as_chunks_mut::<N>();
    let (l1, _) = l1.as_chunks::<N>();
    for (x, l1) in units.iter_mut().zip(l1) {
        *x = f(*x, *l1);
    }
}

/// Without denormals.
#[inline(always)]
fn flushed(x: u32) -> u32 {
    if x & 0x7F80_0000 == 0 { x & 0x8000_0000 } else { x }
}

/// The sum of two FP32: to the nearest, ties to even, no denormals in or out, one NaN. (Not
/// documented; as found on another simulator.)
#[inline(always)]
fn add_fp32(a: u32, b: u32) -> u32 {
    let sum = (f32::from_bits(flushed(a)) + f32::from_bits(flushed(b))).to_bits();
    if sum & 0x7FFF_FFFF > 0x7F80_0000 { 0x7FC0_0000 } else { flushed(sum) }
}

/// The sum of two BF16: as of FP32, rounded once more in the same way. NaN in L1 counts as
/// infinity, unless the other one is infinite. (Not documented; as found on another simulator.)
#[inline(always)]
fn add_bf16(l1: u16, x: u16) -> u16 {
    let magnitude = |x: u16| x & 0x7FFF;
    let of_nan = if magnitude(x) == 0x7F80 { x } else { l1 & 0x8000 | 0x7F80 };
    let sum = add_fp32(u32::from(l1) << 16, u32::from(x) << 16);
    let sum = ((sum + 0x7FFF + (sum >> 16 & 1)) >> 16) as u16;
    if magnitude(l1) > 0x7F80 { of_nan } else { sum }
}

/// The largest magnitude of FP16, which is infinity, too (FloatBitPatterns.md).
const LARGEST_16: u16 = 0x7FFF;

/// The sum of two FP16: to the nearest, ties to even, no denormals in or out; infinity counts as
/// the number that it also is, but for two of other signs, which make a positive one. (Not
/// documented; as found on another simulator, which makes infinity of denormal sums: here they
/// become zero, as those of FP32.)
#[inline(always)]
fn add_fp16(a: u16, b: u16) -> u16 {
    let value = |x: u16| {
        let (exponent, mantissa) = (x >> 10 & 0x1F, x & 0x3FF);
        let magnitude = f64::from(0x400 | mantissa) * f64::from(1u32 << exponent) / f64::from(1 << 25);
        match (exponent, x >> 15) {
            (0, 0) => 0.0,
            (0, _) => -0.0,
            (_, 0) => magnitude,
            _ => -magnitude,
        }
    };
    if a ^ b == 0x8000 && a & LARGEST_16 == LARGEST_16 {
        return LARGEST_16;
    }
    // Exact: 41 bits are enough for all exponents.
    let bits = (value(a) + value(b)).to_bits();
    let sign = (bits >> 48) as u16 & 0x8000;
    let magnitude = bits & (u64::MAX >> 1);
    let rounded = (magnitude + (1 << 41) - 1 + (magnitude >> 42 & 1)) >> 42;
    // From a bias of 1023 to one of 15.
    let rebased = rounded.saturating_sub((1023 - 15) << 10);
    if rebased < 1 << 10 { sign } else { sign | rebased.min(LARGEST_16.into()) as u16 }
}

/// The sum of two integers in sign and magnitude, saturated.
#[inline(always)]
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
        let fp16 = [
            (0x3C00, 0x3C00, 0x4000),
            (0x3C00, 0xBC00, 0),
            (0xBC00, 0x3C01, 0x1400),
            (0x3C01, 0x3C00, 0x4000),
            (0x3C01, 0x3C01, 0x4001),
            (0x0400, 0x0001, 0x0400),
            (0x8400, 0x8400, 0x8800),
            (0x03FF, 0x83FF, 0),
            (0x8000, 0x8000, 0x8000),
            (0x8000, 0x0000, 0),
            (0x0401, 0x8400, 0),
            (0x7BFF, 0x7C00, 0x7FFF),
            (0x7BFF, 0xFFFF, 0xFBFF),
            (0x7C00, 0xFFFF, 0xFBFE),
            (0x7FFF, 0xBC00, 0x7FFF),
            (0x7FFF, 0xFFFF, 0x7FFF),
            (0xFFFF, 0xFFFF, 0xFFFF),
            (0x7BFF, 0x3C00, 0x7BFF),
        ];
        for (a, b, sum) in fp16 {
            assert_eq!((add_fp16(a, b), add_fp16(b, a)), (sum, sum), "{a:#x} + {b:#x}");
        }
        assert_eq!(add_int32(0x7FFF_FFFF, 1), 0x7FFF_FFFF);
        assert_eq!(add_int32(0xFFFF_FFFF, 0x8000_0001), 0xFFFF_FFFF);
        assert_eq!((add_int32(5, 0x8000_0007), add_int32(0x8000_0005, 5)), (0x8000_0002, 0));
    }

    #[test]
    fn a_stream_keeps_what_is_not_a_whole_unit() {
        let mut s = Stream::default();
        let add = |s: &mut Stream, n: usize, close| {
            let write = s.plan(0x100, 8 * n, close).unwrap();
            let mut staged = Staged::<MOST>::default();
            s.stage(&mut staged);
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
        assert!(s.plan(L1_SIZE / 16 - 1, 8 * 16 + 1, true).is_err());
        assert!(s.plan(L1_SIZE / 16 - 1, 8 * 17, false).is_ok());
    }

    #[test]
    fn data_need_not_begin_with_a_byte() {
        let row: Row = std::array::from_fn(|i| i as u32 & 3);
        let mut s = Stream::default();
        for _ in 0..2 {
            let write = s.plan(0, 3 * 2, false).unwrap();
            let mut staged = Staged::<MOST>::default();
            s.stage(&mut staged);
            staged.store(&row, 3, 2);
            s.advance(write, &staged, false);
        }
        let write = s.plan(0, 5 * 4, true).unwrap();
        let mut staged = Staged::<MOST>::default();
        s.stage(&mut staged);
        staged.store(&row, 5, 4);
        // 0, 1, 2, 0, 1, 2 of two bits, then 0, 1, 2, 3, 0 of four.
        assert_eq!(
            (write.len, &staged.units(16)[..5]),
            (16, &[0b00_10_01_00, 0b0000_1001, 0b0010_0001, 0b0011, 0][..])
        );
        assert_eq!(staged.len(), 32);
    }
}
