//! Moving data: the main loop of WormholeB0/TensixTile/TensixCoprocessor/UNPACR_Regular.md, datum
//! by datum. Whatever `rows.rs` can do in whole rows gives the same result there.

use super::super::config::Refusal;
use super::super::dst::{Dst, RowMap, Writer};
use super::super::src::{A, B, Row, Sources};
use super::plan::{GROUP, Input, OUTSIDE, Plan, ROW, Shared, Target};
use super::rows;
use crate::Cycle;

/// What an unpacker writes.
pub(super) struct Registers<'a> {
    pub(super) src: &'a mut Sources,
    pub(super) dst: &'a mut Dst,
    /// The last cycle in which it writes.
    pub(super) last: Cycle,
}

impl Registers<'_> {
    /// The rows of SrcA or SrcB that the unpacker fills.
    pub(super) fn bank(&mut self, target: Target) -> &mut [Row] {
        self.src.0[if target == Target::SrcB { B } else { A }].unpacked_mut()
    }

    /// Writes one datum of Dst.
    fn write_dst(&mut self, wide: bool, map: RowMap, row: u32, column: u32, datum: u32) {
        let (row, column) = (row as usize, column as usize);
        self.dst.note_write(row, Writer::Unpacker, self.last);
        if wide {
            let mut data = self.dst.read32(map, row);
            data[column] = datum;
            self.dst.write32(map, row, data);
        } else {
            let mut data = self.dst.read16(map, row);
            data[column] = datum as u16;
            self.dst.write16(map, row, data);
        }
    }
}

/// Moves all data of `plan`.
///
/// # Errors
/// Addresses outside L1 and the registers, and data that cannot be converted.
pub(super) fn execute(plan: &Plan, l1: &[u8], to: &mut Registers<'_>) -> Result<(), Refusal> {
    if rows::can_move(plan) { rows::execute(plan, l1, to) } else { one_by_one(plan, l1, to) }
}

/// Bits of L1.
fn bits(l1: &[u8], at: u64, count: u32) -> Result<u32, Refusal> {
    let (from, to) = (at / 8, (at + u64::from(count)).div_ceil(8));
    let (Ok(from), Ok(to)) = (usize::try_from(from), usize::try_from(to)) else { return Err(OUTSIDE) };
    let bytes = l1.get(from..to).ok_or(OUTSIDE)?;
    let word = bytes.iter().rev().fold(0u64, |word, &byte| word << 8 | u64::from(byte));
    Ok((word >> (at % 8)) as u32 & u32::MAX >> (32 - count))
}

/// Reads data, their exponents and the counters of zeros, one after the other.
struct Reader<'a> {
    input: &'a Input,
    l1: &'a [u8],
    data: u64,
    exponents: u64,
    zeros: Option<u64>,
    /// Data read.
    count: u32,
}

impl Reader<'_> {
    /// A datum, its block's exponent, and how many zeros follow it.
    fn next(&mut self) -> Result<(u32, u8, u32), Refusal> {
        let (input, l1) = (self.input, self.l1);
        let width = u64::from(input.bits);
        let datum = bits(l1, self.data, input.bits)?;
        self.data += width;
        self.count += 1;
        if self.count.is_multiple_of(input.run) {
            self.data = input.wrap(self.data - width * u64::from(input.run) + input.stride, 8);
        }
        let exponent = match input.shared {
            Shared::Forced(exponent) => exponent,
            Shared::Read => {
                let exponent = bits(l1, self.exponents / 16 * 8, 8)? as u8;
                self.exponents += 1;
                if self.exponents.is_multiple_of(16 * 16) {
                    self.exponents = input.wrap(self.exponents, 16);
                }
                exponent
            }
            Shared::Nothing => 0,
        };
        let Some(at) = self.zeros else { return Ok((datum, exponent, 0)) };
        let zeros = bits(l1, at, 4)?;
        let mut next = at + 4;
        if next.is_multiple_of(16 * 8) {
            self.data += 16 * 8;
            next = input.wrap(next + u64::from(GROUP) * width, 8);
        }
        self.zeros = Some(next);
        Ok((datum, exponent, zeros))
    }
}

/// The loop of the page.
pub(super) fn one_by_one(plan: &Plan, l1: &[u8], to: &mut Registers<'_>) -> Result<(), Refusal> {
    let Plan { input, output, conversion, .. } = plan;
    let Input { data, exponents, zeros, .. } = *input;
    let mut reader = Reader { input, l1, data, exponents, zeros, count: 0 };
    let to_dst = matches!(output.target, Target::Dst { .. });
    let (mut addr, mut drop, mut left) = (output.addr, input.drop, input.most);
    while reader.count < input.count && left > 0 {
        let (bits, exponent, zeros) = reader.next()?;
        let (datum, zeros) = if plan.zero { (0, 0) } else { (conversion.datum(bits, exponent, to_dst)?, zeros) };
        for i in 0..=zeros {
            if drop > 0 {
                drop -= 1;
                continue;
            }
            for j in 0..=output.upsample {
                if j == 0 || !output.skip {
                    put(plan, to, addr, if i == 0 && j == 0 { datum } else { 0 })?;
                }
                addr = addr.wrapping_add(1);
            }
            left -= 1;
            if left == 0 {
                break;
            }
        }
    }
    Ok(())
}

/// Writes one datum to where `addr` says.
fn put(plan: &Plan, to: &mut Registers<'_>, addr: u32, datum: u32) -> Result<(), Refusal> {
    let Some((row, column)) = plan.output.place(addr)? else { return Ok(()) };
    match plan.output.target {
        Target::Dst { wide, map } => to.write_dst(wide, map, row, column, datum),
        target => {
            let (row, column) =
                if plan.output.transpose { (row / ROW * ROW + column, row % ROW) } else { (row, column) };
            for row in to.bank(target)[row as usize..].iter_mut().take(plan.output.copies as usize) {
                row[column as usize] = datum;
            }
        }
    }
    Ok(())
}
