//! Moving data in rows of 16: what kernels do nearly always. As many rows as lie side by side, in L1
//! and in the registers, are converted in one go: their formats are decided once, and the loops
//! are over arrays of 16, which the compiler turns into vector instructions.
//!
//! Follows WormholeB0/TensixTile/TensixCoprocessor/UNPACR_Regular.md, as `moves.rs` does.

use super::super::config::Refusal;
use super::super::dst::{Writer, each};
use super::super::number::{
    dst_of_bf16, dst_of_fp16, dst_of_fp32, src_of_bf16, src_of_fp16, src_of_int16, src_of_tf32,
};
use super::format::{BLOCK_EXPONENT, Conversion, Family, fp8_of_4_bit_exponent, fp32_to_bf16, fp32_to_fp16, int8};
use super::moves::Registers;
use super::plan::{Input, OUTSIDE, Plan, ROW, Shared, Target};
use multiversion::multiversion;

/// Columns of a row.
const COLUMNS: usize = ROW as usize;
/// Rows that are moved at a time, at most.
const PIECE: usize = 64;
/// Rows of a face, which is transposed as a whole.
const FACE: usize = 16;

/// The data of a row.
type Halves = [u16; COLUMNS];
type Words = [u32; COLUMNS];

/// Whether all data are whole rows of 16 that lie side by side in L1 and in a row of the registers,
/// with one exponent.
pub(super) fn can_move(plan: &Plan) -> bool {
    let (input, output) = (&plan.input, &plan.output);
    input.zeros.is_none()
        && input.count.is_multiple_of(ROW)
        && input.data.is_multiple_of(8)
        && (input.shared != Shared::Read || input.exponents.is_multiple_of(16))
        && output.addr.is_multiple_of(ROW)
        && output.upsample == 0
        && output.shift == 0
        && output.copies == 1
}

/// Moves all data of `plan`, for which [`can_move`] holds.
pub(super) fn execute(plan: &Plan, l1: &[u8], to: &mut Registers<'_>) -> Result<(), Refusal> {
    let mut bad = 0;
    let done = move_all(plan, l1, to, &mut bad);
    if bad & 0xE0 != 0 { Err(BLOCK_EXPONENT) } else { done }
}

/// `bad` collects exponents that FP16 may not have.
fn move_all(plan: &Plan, l1: &[u8], to: &mut Registers<'_>, bad: &mut u8) -> Result<(), Refusal> {
    let mut from = Source::of(plan, l1);
    let mut addr = plan.output.addr;
    let mut left = (plan.input.count / ROW) as usize;
    while left > 0 {
        let most = from.rows(left)?;
        let place = plan.output.place(addr)?.map(|(row, _)| row as usize);
        let rows = match place {
            Some(row) => side_by_side(plan, addr, row, most),
            None => 1,
        };
        let (bytes, exponents) = from.take(rows);
        if let Some(row) = place {
            *bad |= put(plan, to, row, rows, |rows| match plan.zero {
                true => {
                    rows.fill([0; COLUMNS]);
                    0
                }
                false => {
                    let dst = matches!(plan.output.target, Target::Dst { .. });
                    convert(plan.conversion, &From { bytes, exponents: &exponents, dst }, rows)
                }
            });
        }
        addr = addr.wrapping_add(rows as u32 * ROW);
        left -= rows;
    }
    Ok(())
}

/// How many of `most` rows from address `addr` on lie side by side in the registers, from `row` on:
/// all or one. Transposed, they are one face or one row.
fn side_by_side(plan: &Plan, addr: u32, row: usize, most: usize) -> usize {
    let rows = match plan.output.transpose {
        true if most < FACE || !row.is_multiple_of(FACE) => 1,
        true => FACE,
        false => most,
    };
    let last = rows - 1;
    // What `place` refuses it refuses from some row on.
    match plan.output.place(addr.wrapping_add(last as u32 * ROW)) {
        Ok(Some((to, _))) if to as usize == row + last => rows,
        _ => 1,
    }
}

/// Where the next row comes from.
struct Source<'a> {
    input: &'a Input,
    l1: &'a [u8],
    /// Bytes of a row.
    bytes: usize,
    /// Rows that follow each other without a look at the end of the buffer.
    run: usize,
    /// Where the run began, and how many of its rows have been read.
    begin: u64,
    read: usize,
    exponents: u64,
}

impl<'a> Source<'a> {
    fn of(plan: &'a Plan, l1: &'a [u8]) -> Self {
        let input = &plan.input;
        Self {
            input,
            l1,
            bytes: (input.bits * ROW / 8) as usize,
            run: (input.run / ROW) as usize,
            begin: input.data / 8,
            read: 0,
            exponents: input.exponents / 16,
        }
    }

    /// Where the next row lies.
    fn at(&self) -> u64 {
        self.begin + (self.read * self.bytes) as u64
    }

    /// How many of the next `most` rows, and their exponents, can be taken in one go.
    ///
    /// # Errors
    /// Not even the next one lies in L1.
    fn rows(&self, most: usize) -> Result<usize, Refusal> {
        let in_l1 = |at: u64, bytes| Some(self.l1.len().checked_sub(usize::try_from(at).ok()?)? / bytes);
        let most = most.min(PIECE).min(in_l1(self.at(), self.bytes).unwrap_or(0));
        let most = match self.input.shared {
            // Exponents may go on elsewhere after 16.
            Shared::Read => most.min(16 - (self.exponents % 16) as usize).min(in_l1(self.exponents, 1).unwrap_or(0)),
            Shared::Nothing | Shared::Forced(_) => most,
        };
        if most == 0 { Err(OUTSIDE) } else { Ok(most.min(self.until_jump())) }
    }

    /// How many rows follow each other from here on.
    fn until_jump(&self) -> usize {
        let stride = self.input.stride / 8;
        if stride != (self.run * self.bytes) as u64 {
            return self.run - self.read;
        }
        match self.input.room(self.begin) {
            Some(room) => (room / stride) as usize * self.run + self.run - self.read,
            None => usize::MAX,
        }
    }

    /// The next `rows` rows, as many as [`Self::rows`] has said, and their exponents.
    fn take(&mut self, rows: usize) -> (&'a [u8], [u8; PIECE]) {
        let bytes = &self.l1[self.at() as usize..][..rows * self.bytes];
        let mut exponents = [0; PIECE];
        match self.input.shared {
            Shared::Forced(exponent) => exponents.fill(exponent),
            Shared::Read => {
                exponents[..rows].copy_from_slice(&self.l1[self.exponents as usize..][..rows]);
                self.exponents += rows as u64;
                if self.exponents.is_multiple_of(16) {
                    self.exponents = self.input.wrap(self.exponents, 1);
                }
            }
            Shared::Nothing => {}
        }
        self.read += rows;
        let runs = self.read / self.run;
        if runs > 0 {
            self.read %= self.run;
            self.begin = self.input.wrap(self.begin + runs as u64 * (self.input.stride / 8), 1);
        }
        (bytes, exponents)
    }
}

/// Writes `rows` rows, which `fill` makes, from row `row` of the registers on; returns what `fill`
/// does.
#[inline(always)]
fn put(plan: &Plan, to: &mut Registers<'_>, row: usize, rows: usize, fill: impl FnOnce(&mut [Words]) -> u8) -> u8 {
    match plan.output.target {
        Target::Dst { wide, map } => {
            let mut data = [[0; COLUMNS]; PIECE];
            let bad = fill(&mut data[..rows]);
            for (row, data) in (row..).zip(&data[..rows]) {
                to.dst.note_write(row, Writer::Unpacker, to.last);
                match wide {
                    true => to.dst.write32(map, row, *data),
                    false => to.dst.write16(map, row, each(*data, |datum| datum as u16)),
                }
            }
            bad
        }
        target if plan.output.transpose => {
            let mut data = [[0; COLUMNS]; FACE];
            let bad = fill(&mut data[..rows]);
            let face = &mut to.bank(target).as_chunks_mut().0[row / FACE];
            if rows == FACE {
                transpose(&data, face);
            } else {
                for (line, datum) in face.iter_mut().zip(data[0]) {
                    line[row % FACE] = datum;
                }
            }
            bad
        }
        target => fill(&mut to.bank(target)[row..][..rows]),
    }
}

/// Transposes a face, in blocks of four rows and columns, for which the compiler needs no loop.
#[inline(never)]
fn transpose(data: &[Words; FACE], face: &mut [Words; FACE]) {
    for (i, rows) in data.as_chunks::<4>().0.iter().enumerate() {
        for (k, lines) in face.as_chunks_mut::<4>().0.iter_mut().enumerate() {
            let block = rows.each_ref().map(|row| row.as_chunks::<4>().0[k]);
            for (j, line) in lines.iter_mut().enumerate() {
                line.as_chunks_mut::<4>().0[i] = std::array::from_fn(|row| block[row][j]);
            }
        }
    }
}

// What is marked `multiversion` is compiled for wider registers, too, and chosen when it runs; what
// it calls is inlined into each version: functions that are marked so, because closures are not
// always.

/// Rows that `$load` makes of the bytes of each, and `$place` of its data. A macro: `$load` must be
/// called by its name to be inlined.
///
/// The compiler does not know where the next row's bytes are, so that it takes a row at a time:
/// otherwise it takes single columns of eight rows, in three times as many instructions.
macro_rules! each_row {
    ($from:ident, $rows:ident, $load:expr, $place:expr) => {
        for ((row, bytes), exponent) in $rows.iter_mut().zip($from.bytes.as_chunks().0).zip($from.exponents) {
            *row = each($load(std::hint::black_box(bytes), *exponent), $place);
        }
    };
}

/// As `each_row`, of 16-bit data.
macro_rules! halves {
    ($from:ident, $rows:ident, $family:expr, $load:expr) => {
        match ($from.dst, $family) {
            (false, Family::Bf16) => each_row!($from, $rows, $load, src_of_bf16),
            (false, Family::Fp16) => each_row!($from, $rows, $load, src_of_fp16),
            (false, Family::Opaque) => each_row!($from, $rows, $load, src_of_int16),
            (true, Family::Bf16) => each_row!($from, $rows, $load, |x| dst_of_bf16(x).into()),
            (true, Family::Fp16) => each_row!($from, $rows, $load, |x| dst_of_fp16(x).into()),
            (true, Family::Opaque) => each_row!($from, $rows, $load, u32::from),
        }
    };
}

/// What is converted: rows of L1 with their exponents, to SrcA and SrcB or to Dst.
struct From<'a> {
    bytes: &'a [u8],
    exponents: &'a [u8; PIECE],
    dst: bool,
}

/// Converts rows; returns bits of exponents that FP16 may not have.
#[multiversion(targets("x86_64+avx2"))]
fn convert(conversion: Conversion, from: &From<'_>, rows: &mut [Words]) -> u8 {
    match conversion {
        Conversion::Wide => each_row!(from, rows, words, dst_of_fp32),
        Conversion::Fp32ToTf32 => each_row!(from, rows, words, |word: u32| src_of_tf32(word >> 13)),
        Conversion::Fp32ToBf16 => halves!(from, rows, Family::Bf16, bf16_of_fp32),
        Conversion::Half(family) => halves!(from, rows, family, halves),
        Conversion::Fp32ToFp16 => halves!(from, rows, Family::Fp16, fp16_of_fp32),
        Conversion::Fp8 { narrow: false } => halves!(from, rows, Family::Fp16, fp16_of_fp8),
        Conversion::Fp8 { narrow: true } => halves!(from, rows, Family::Fp16, fp16_of_narrow_fp8),
        Conversion::Int8 { unsigned: true } => halves!(from, rows, Family::Fp16, fp16_of_uint8),
        Conversion::Int8 { unsigned: false } => halves!(from, rows, Family::Fp16, fp16_of_int8),
        Conversion::Block { bits, family: Family::Fp16 } => {
            return match bits {
                8 => blocks_of_fp16::<16>(from, rows),
                4 => blocks_of_fp16::<8>(from, rows),
                _ => blocks_of_fp16::<4>(from, rows),
            };
        }
        Conversion::Block { bits, .. } => match bits {
            8 => halves!(from, rows, Family::Bf16, bf16_of_block::<16>),
            4 => halves!(from, rows, Family::Bf16, bf16_of_block::<8>),
            _ => halves!(from, rows, Family::Bf16, bf16_of_block::<4>),
        },
    }
    0
}

/// Data of blocks with exponents of FP16; returns the exponents' bits.
#[inline(always)]
fn blocks_of_fp16<const N: usize>(from: &From<'_>, rows: &mut [Words]) -> u8 {
    halves!(from, rows, Family::Fp16, fp16_of_block::<N>);
    let mut all = 0;
    for (bytes, exponent) in from.bytes.as_chunks::<N>().0.iter().zip(from.exponents) {
        let exponents =
            each(unpacked(bytes), |x| if x & 0x7F == 0 { 0 } else { rebased(magnitude(x), *exponent) as u8 });
        all = exponents.iter().fold(all, |all, x| all | x);
    }
    all
}

#[inline(always)]
fn words(bytes: &[u8; 64], _: u8) -> Words {
    let mut row = [0; COLUMNS];
    row.iter_mut().zip(bytes.as_chunks().0).for_each(|(to, bytes)| *to = u32::from_le_bytes(*bytes));
    row
}
#[inline(always)]
fn halves(bytes: &[u8; 32], _: u8) -> Halves {
    let mut row = [0; COLUMNS];
    row.iter_mut().zip(bytes.as_chunks().0).for_each(|(to, bytes)| *to = u16::from_le_bytes(*bytes));
    row
}
#[inline(always)]
fn bf16_of_fp32(bytes: &[u8; 64], _: u8) -> Halves {
    each(words(bytes, 0), fp32_to_bf16)
}
#[inline(always)]
fn fp16_of_fp32(bytes: &[u8; 64], _: u8) -> Halves {
    each(words(bytes, 0), fp32_to_fp16)
}
#[inline(always)]
fn fp16_of_fp8(bytes: &[u8; 16], _: u8) -> Halves {
    each(*bytes, |x| u16::from(x) << 8)
}
#[inline(always)]
fn fp16_of_narrow_fp8(bytes: &[u8; 16], _: u8) -> Halves {
    each(*bytes, fp8_of_4_bit_exponent)
}
#[inline(always)]
fn fp16_of_int8(bytes: &[u8; 16], _: u8) -> Halves {
    each(*bytes, |x| int8(x, false))
}
#[inline(always)]
fn fp16_of_uint8(bytes: &[u8; 16], _: u8) -> Halves {
    each(*bytes, |x| int8(x, true))
}

/// The data of a block's bytes, as data of eight bits whose low bits are zero.
#[inline(always)]
fn unpacked<const N: usize>(bytes: &[u8; N]) -> [u8; COLUMNS] {
    let (bits, in_byte) = (N / 2, COLUMNS / N);
    std::array::from_fn(|i| bytes[i / in_byte] >> (bits * (i % in_byte)) << (8 - bits))
}

/// The magnitude of a datum of a block as the bits of f32, which normalise it.
#[inline(always)]
fn magnitude(datum: u8) -> u32 {
    f32::from(datum & 0x7F).to_bits()
}

/// The exponent of a datum with this `magnitude` in a block with `exponent`, which is that of a
/// magnitude with its highest bit set; its low eight bits count.
#[inline(always)]
fn rebased(magnitude: u32, exponent: u8) -> u32 {
    const HIGHEST: u32 = 127 + 6;
    ((magnitude >> 23) + u32::from(exponent)).wrapping_sub(HIGHEST)
}

/// `BFP8ToBF16`.
#[inline(always)]
fn bf16_of_block<const N: usize>(bytes: &[u8; N], exponent: u8) -> Halves {
    each(unpacked(bytes), |datum| {
        let (sign, magnitude) = (u32::from(datum >> 7), magnitude(datum));
        let number = sign << 15 | (rebased(magnitude, exponent) & 0xFF) << 7 | magnitude >> 16 & 0x7F;
        if magnitude == 0 { sign as u16 * 0xFF80 } else { number as u16 }
    })
}

/// `BFP8aToFP16`.
#[inline(always)]
fn fp16_of_block<const N: usize>(bytes: &[u8; N], exponent: u8) -> Halves {
    each(unpacked(bytes), |datum| {
        let (sign, magnitude) = (u32::from(datum >> 7), magnitude(datum));
        let number = sign << 15 | (rebased(magnitude, exponent) & 0x1F) << 10 | (magnitude >> 16 & 0x7F) << 3;
        if magnitude == 0 { sign as u16 * 0xFC00 } else { number as u16 }
    })
}
