//! Moving data in rows of 16: what kernels do nearly always. The formats are decided once for an
//! instruction; the loops are over arrays of 16, which the compiler turns into vector
//! instructions.
//!
//! Follows WormholeB0/TensixTile/TensixCoprocessor/UNPACR_Regular.md, as `moves.rs` does.

use super::super::config::Refusal;
use super::super::dst::{Writer, each};
use super::super::number::{
    dst_of_bf16, dst_of_fp16, dst_of_fp32, src_of_bf16, src_of_fp16, src_of_int16, src_of_tf32,
};
use super::format::{BLOCK_EXPONENT, Conversion, Family, fp8_of_4_bit_exponent, fp32_to_bf16, fp32_to_fp16, int8};
use super::moves::Registers;
use super::plan::{OUTSIDE, Plan, ROW, Target};

/// The data of a row.
type Halves = [u16; ROW as usize];
type Words = [u32; ROW as usize];

/// What a datum of a block is, whatever its exponent.
#[derive(Clone, Copy)]
struct Mantissa {
    /// Sign and mantissa, or all of it if the exponent does not count.
    bits: u16,
    /// What is taken off the exponent.
    zeros: u8,
    /// All bits set if the exponent counts.
    exponent: u8,
}

/// By the bits of a BFP8 or BFP8a datum: `BFP8ToBF16` and `BFP8aToFP16`.
static BF16: [Mantissa; 256] = mantissas(0, 0xFF80);
static FP16: [Mantissa; 256] = mantissas(3, 0xFC00);

const fn mantissas(shift: u32, minus_zero: u16) -> [Mantissa; 256] {
    let mut table = [Mantissa { bits: 0, zeros: 0, exponent: 0 }; 256];
    let mut datum = 0;
    while datum < 256 {
        let (sign, magnitude) = ((datum as u16) >> 7, (datum as u8) << 1);
        table[datum] = if magnitude == 0 {
            Mantissa { bits: sign * minus_zero, zeros: 0, exponent: 0 }
        } else {
            let zeros = magnitude.leading_zeros();
            let mantissa = (magnitude << zeros & 0x7E) as u16;
            Mantissa { bits: sign << 15 | mantissa << shift, zeros: zeros as u8, exponent: 0xFF }
        };
        datum += 1;
    }
    table
}

/// Whether all data are whole rows of 16 that lie side by side in L1 and in a row of the registers,
/// with one exponent.
pub(super) fn can_move(plan: &Plan) -> bool {
    let (input, output) = (&plan.input, &plan.output);
    let blocks = matches!(plan.conversion, Conversion::Block { .. }) && input.forced_exponent.is_none();
    input.zeros.is_none()
        && input.count.is_multiple_of(ROW)
        && input.data.is_multiple_of(8)
        && (!blocks || input.exponents.is_multiple_of(16))
        && output.addr.is_multiple_of(ROW)
        && output.upsample == 0
        && output.shift == 0
        && output.copies == 1
}

/// Moves all data of `plan`, for which [`can_move`] holds.
pub(super) fn execute(plan: &Plan, l1: &[u8], to: &mut Registers<'_>) -> Result<(), Refusal> {
    let mover = Mover { plan, l1 };
    if plan.zero {
        return mover.halves(to, Family::Opaque, |_, _| [0; 16]);
    }
    match plan.conversion {
        Conversion::Wide => mover.words(to, |bytes, _| each(words(bytes), dst_of_fp32)),
        Conversion::Fp32ToTf32 => mover.words(to, |bytes, _| each(words(bytes), |word| src_of_tf32(word >> 13))),
        Conversion::Fp32ToBf16 => mover.halves(to, Family::Bf16, |bytes, _| each(words(bytes), fp32_to_bf16)),
        Conversion::Half(family) => mover.halves(to, family, |bytes, _| halves(bytes)),
        Conversion::Fp32ToFp16 => mover.halves(to, Family::Fp16, |bytes, _| each(words(bytes), fp32_to_fp16)),
        Conversion::Fp8 { narrow: false } => {
            mover.halves(to, Family::Fp16, |bytes, _| each(octets(bytes), |datum| u16::from(datum) << 8))
        }
        Conversion::Fp8 { narrow: true } => {
            mover.halves(to, Family::Fp16, |bytes, _| each(octets(bytes), fp8_of_4_bit_exponent))
        }
        Conversion::Int8 { unsigned: true } => {
            mover.halves(to, Family::Fp16, |bytes, _| each(octets(bytes), |datum| int8(datum, true)))
        }
        Conversion::Int8 { unsigned: false } => {
            mover.halves(to, Family::Fp16, |bytes, _| each(octets(bytes), |datum| int8(datum, false)))
        }
        Conversion::Block { bits, family: Family::Bf16 } => match bits {
            8 => mover.halves(to, Family::Bf16, |bytes, exponent| to_bf16(octets(bytes), exponent)),
            4 => mover.halves(to, Family::Bf16, |bytes, exponent| to_bf16(nibbles(bytes), exponent)),
            _ => mover.halves(to, Family::Bf16, |bytes, exponent| to_bf16(crumbs(bytes), exponent)),
        },
        Conversion::Block { bits, .. } => {
            let mut bad = 0;
            let done = mover.halves(to, Family::Fp16, |bytes, exponent| {
                let data = match bits {
                    8 => octets(bytes),
                    4 => nibbles(bytes),
                    _ => crumbs(bytes),
                };
                to_fp16(data, exponent, &mut bad)
            });
            if bad & 0xE0 != 0 { Err(BLOCK_EXPONENT) } else { done }
        }
    }
}

#[inline]
fn to_bf16(data: [u8; 16], exponent: u8) -> Halves {
    each(data, |datum| {
        let Mantissa { bits, zeros, exponent: counts } = BF16[usize::from(datum)];
        bits | u16::from(exponent.wrapping_sub(zeros) & counts) << 7
    })
}

/// `bad` collects the exponents' bits.
#[inline]
fn to_fp16(data: [u8; 16], exponent: u8, bad: &mut u8) -> Halves {
    each(data, |datum| {
        let Mantissa { bits, zeros, exponent: counts } = FP16[usize::from(datum)];
        let exponent = exponent.wrapping_sub(zeros) & counts;
        *bad |= exponent;
        bits | u16::from(exponent & 0x1F) << 10
    })
}

/// The data of a row's bytes, as many as they are.
#[inline]
fn words(bytes: &[u8]) -> Words {
    let (chunks, _) = bytes.as_chunks();
    std::array::from_fn(|i| u32::from_le_bytes(chunks[i]))
}
#[inline]
fn halves(bytes: &[u8]) -> Halves {
    let (chunks, _) = bytes.as_chunks();
    std::array::from_fn(|i| u16::from_le_bytes(chunks[i]))
}
#[inline]
fn octets(bytes: &[u8]) -> [u8; 16] {
    std::array::from_fn(|i| bytes[i])
}
/// Data of four bits, as those of eight whose low bits are zero.
#[inline]
fn nibbles(bytes: &[u8]) -> [u8; 16] {
    std::array::from_fn(|i| bytes[i / 2] >> (4 * (i % 2)) << 4)
}
/// Data of two bits, likewise.
#[inline]
fn crumbs(bytes: &[u8]) -> [u8; 16] {
    std::array::from_fn(|i| bytes[i / 4] >> (2 * (i % 4)) << 6)
}

struct Mover<'a> {
    plan: &'a Plan,
    l1: &'a [u8],
}

impl Mover<'_> {
    /// Moves rows of 16-bit data that `load` makes of a row's bytes and its exponent.
    #[inline(always)]
    fn halves(
        &self,
        to: &mut Registers<'_>,
        family: Family,
        mut load: impl FnMut(&[u8], u8) -> Halves,
    ) -> Result<(), Refusal> {
        let src = !matches!(self.plan.output.target, Target::Dst { .. });
        match (src, family) {
            (true, Family::Bf16) => self.words(to, |bytes, exponent| each(load(bytes, exponent), src_of_bf16)),
            (true, Family::Fp16) => self.words(to, |bytes, exponent| each(load(bytes, exponent), src_of_fp16)),
            (true, Family::Opaque) => self.words(to, |bytes, exponent| each(load(bytes, exponent), src_of_int16)),
            (false, Family::Bf16) => {
                self.words(to, |bytes, exponent| each(load(bytes, exponent), |x| dst_of_bf16(x).into()))
            }
            (false, Family::Fp16) => {
                self.words(to, |bytes, exponent| each(load(bytes, exponent), |x| dst_of_fp16(x).into()))
            }
            (false, Family::Opaque) => self.words(to, |bytes, exponent| each(load(bytes, exponent), u32::from)),
        }
    }

    /// Moves rows of data that `load` makes of a row's bytes and its exponent.
    #[inline(always)]
    fn words(&self, to: &mut Registers<'_>, mut load: impl FnMut(&[u8], u8) -> Words) -> Result<(), Refusal> {
        let Plan { input, output, .. } = self.plan;
        let blocks = matches!(self.plan.conversion, Conversion::Block { .. });
        let bytes = (input.bits * ROW / 8) as usize;
        let (mut data, mut exponents) = (input.data / 8, input.exponents / 16);
        let (mut begin, run) = (data, input.run / ROW);
        for i in 0..input.count / ROW {
            let at = usize::try_from(data).map_err(|_| OUTSIDE)?;
            let row = self.l1.get(at..at + bytes).ok_or(OUTSIDE)?;
            let exponent = match input.forced_exponent {
                Some(exponent) => exponent,
                None if blocks => {
                    let exponent = usize::try_from(exponents).ok().and_then(|at| self.l1.get(at));
                    exponents += 1;
                    if exponents.is_multiple_of(16) {
                        exponents = input.wrap(exponents, 1);
                    }
                    *exponent.ok_or(OUTSIDE)?
                }
                None => 0,
            };
            put_row(self.plan, to, output.addr.wrapping_add(i * ROW), load(row, exponent))?;
            data += bytes as u64;
            if (i + 1).is_multiple_of(run) {
                data = input.wrap(begin + input.stride / 8, 1);
                begin = data;
            }
        }
        Ok(())
    }
}

/// Writes a row to where the address `addr` says.
#[inline]
fn put_row(plan: &Plan, to: &mut Registers<'_>, addr: u32, data: Words) -> Result<(), Refusal> {
    let output = &plan.output;
    let Some((row, _)) = output.place(addr)? else { return Ok(()) };
    let row = row as usize;
    match output.target {
        Target::Dst { wide, map } => {
            to.dst.note_write(row, Writer::Unpacker, to.last);
            match wide {
                true => to.dst.write32(map, row, data),
                false => to.dst.write16(map, row, each(data, |datum| datum as u16)),
            }
        }
        target if output.transpose => {
            let face = &mut to.bank(target)[row / 16 * 16..][..16];
            for (line, datum) in face.iter_mut().zip(data) {
                line[row % 16] = datum;
            }
        }
        target => to.bank(target)[row] = data,
    }
    Ok(())
}
