//! Where the input of one `UNPACR` begins and how much of it there is, by the address counters.

use super::setup::{Setup, Shape};
use super::{At, Context, GROUP, Input, OUTSIDE, undefined};
use crate::tensix::config::Refusal;
use crate::tensix::counters::Xyzw;
use crate::tensix::unpack::fields::{BASE, OFFSET};
use tilework_abi::tensix::insn::Unpacr;

/// The counters of an instruction's input.
pub(super) struct Counters<'a> {
    insn: Unpacr,
    at: &'a At<'a>,
    /// The context's X and Y, and X behind the last datum.
    start: Xyzw,
    end: Xyzw,
    /// Of the thread itself.
    own: Xyzw,
}

impl<'a> Counters<'a> {
    pub(super) fn of(insn: Unpacr, context: Context, at: &'a At<'a>) -> Self {
        let unit = insn.which_unpacker() as usize;
        let [start, end] = [0, 1].map(|channel| at.adcs.get(context.adc, unit, channel));
        Self { insn, at, start, end, own: at.adcs.get(at.thread, unit, 0) }
    }

    /// Where the input begins, in bytes, and how it goes on.
    pub(super) fn input(&self, context: Context, setup: &Setup) -> Result<Input, Refusal> {
        let at = self.at;
        let (unit, index) = (self.insn.which_unpacker() as usize, context.index as usize);
        let [base, offset] = [BASE[index], OFFSET[index & 3]].map(|field| at.config.read(at.thread, field.copy(unit)));
        let (shape, around) = (&setup.shape, &setup.around);
        // Sixteen times a 32-bit number of blocks: the sum wraps as the page's unsigned ones do.
        let row_starts = u64::from(base.wrapping_add(offset).wrapping_add(around.header).wrapping_mul(16));
        let exponents = row_starts + around.row_starts.unwrap_or(0);
        let addr = exponents + around.exponents;
        let (first, count, drop, most) = match around.row_starts {
            None => {
                let (first, count) = self.span(shape)?;
                (first, count, 0, u32::MAX)
            }
            Some(_) => self.compressed_span(row_starts, shape)?,
        };
        let (first, width) = (u64::from(first), u64::from(setup.bits));
        let mut input = Input {
            bits: setup.bits,
            data: addr * 8 + first * width,
            exponents: exponents * 16 + first,
            zeros: None,
            count,
            drop,
            most,
            run: setup.run,
            stride: setup.stride,
            shared: setup.shared,
            limit: around.limit,
            fifo: around.fifo,
        };
        if around.row_starts.is_some() {
            let (group, within) = (first / u64::from(GROUP), first % u64::from(GROUP));
            let start = addr * 8 + group * u64::from(GROUP) * (width + 4);
            input.data = start + within * width;
            input.zeros = Some(input.wrap(start + u64::from(GROUP) * width + within * 4, 8));
        }
        input.data = input.wrap(input.data, 8);
        input.exponents = input.wrap(input.exponents, 16);
        Ok(input)
    }

    /// The first datum of uncompressed input, and how many there are.
    fn span(&self, shape: &Shape) -> Result<(u32, u32), Refusal> {
        let Self { start, end, own, .. } = self;
        let (x, y, x_end) = if !self.insn.row_search() {
            (start.x, start.y, end.x + 1)
        } else if shape.blobs != 0 {
            let blob = |i: u32| (shape.blobs_y_start >> (4 * (i & 7)) & 0xF) << 4;
            let next = (start.x & 7) + 1;
            (blob(start.y), 0, if next == shape.blobs { shape.x & 0x1F0 } else { blob(next) })
        } else {
            (0, start.y, end.x)
        };
        let Some(count) = x_end.checked_sub(x) else {
            return Err(undefined("X counters whose end lies before their start"));
        };
        let first = own.w.wrapping_mul(shape.z).wrapping_add(own.z).wrapping_mul(shape.y).wrapping_add(y);
        Ok((first.wrapping_mul(shape.x).wrapping_add(x), count))
    }

    /// The first datum of compressed input, how many there are in L1, how many of the unpacked ones
    /// are dropped, and how many follow at most.
    fn compressed_span(&self, row_starts: u64, shape: &Shape) -> Result<(u32, u32, u32, u32), Refusal> {
        let Self { start, end, own, .. } = self;
        let y_dim = if self.insn.row_search() && shape.blobs != 0 { shape.blobs } else { shape.y };
        let row = (own.w * shape.z + own.z) * y_dim;
        let row_start = |i: u32| {
            let at = row_starts + 2 * u64::from(row + i);
            let bytes = usize::try_from(at).ok().and_then(|at| self.at.l1.get(at..at + 2));
            let word = bytes.and_then(|bytes| bytes.first_chunk());
            word.map(|word| u32::from(u16::from_le_bytes(*word))).ok_or(OUTSIDE)
        };
        let first = row_start(start.y & 0xFF)?;
        let next = if self.insn.row_search() {
            (start.x & 0xFF) + 1
        } else if start.x == 0 && end.x + 1 == shape.x {
            (start.y & 0xFF) + 1
        } else {
            let Some(most) = (end.x + 1).checked_sub(start.x) else {
                return Err(undefined("X counters whose end lies before their start"));
            };
            return Ok((first, u32::MAX, start.x, most));
        };
        let Some(count) = row_start(next)?.checked_sub(first) else {
            return Err(undefined("compressed rows whose end lies before their start"));
        };
        Ok((first, count, 0, u32::MAX))
    }
}
