//! What one `UNPACR` does, worked out from the configuration and the address counters when the
//! instruction starts: the first half of the functional model of
//! WormholeB0/TensixTile/TensixCoprocessor/UNPACR_Regular.md (Blackhole's page refers to it).
//!
//! Addresses within L1 are kept in bits, and those of exponents in sixteenths of a byte, because a
//! datum has as little as two bits and its share of an exponent is half a bit.

mod input;
mod setup;

use super::super::config::{Config, Refusal};
use super::super::counters::Adcs;
use super::super::dst::RowMap;
use super::format::Conversion;
use crate::{Cycle, FaultClass, timing};
use input::Counters;
pub(super) use setup::{Setup, Setups};
use tilework_abi::tensix::cfg;
use tilework_abi::tensix::insn::{Unpacr, settings};

/// Data that share an exponent, and columns of a row.
pub(super) const ROW: u32 = 16;
/// Bits of the unit in which the configuration counts L1.
const BLOCK_BITS: u64 = 16 * 8;
/// Compressed data come in groups of this many, followed by as many counters of four bits.
pub(super) const GROUP: u32 = 32;
/// An address that is nowhere, from which one can still go on.
const NOWHERE: u64 = 1 << 60;
/// Rows of SrcA that are written at a time.
const BURST: u32 = 8;
/// Rows of data addresses that lie before row 0 of SrcA and Dst.
const FIRST_ROW: u32 = 4;

/// How data that share an exponent get it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Shared {
    /// The data have exponents of their own, or none.
    Nothing,
    /// It is that of all of them.
    Forced(u8),
    /// It is read.
    Read,
}

/// Where the data come from.
#[derive(Clone, Debug)]
pub(super) struct Input {
    /// Bits of a datum.
    pub(super) bits: u32,
    /// The first datum, in bits.
    pub(super) data: u64,
    /// The first exponent, in sixteenths of a byte.
    pub(super) exponents: u64,
    /// The first counter of zeros, in bits; `None`: the data are not compressed.
    pub(super) zeros: Option<u64>,
    /// Data in L1.
    pub(super) count: u32,
    /// Data of compressed input that are dropped, and how many are unpacked at most.
    pub(super) drop: u32,
    pub(super) most: u32,
    /// Data after which the address goes on by `stride` bits from where their run began.
    pub(super) run: u32,
    pub(super) stride: u64,
    pub(super) shared: Shared,
    /// From behind this address it goes back, in bytes.
    limit: u64,
    fifo: u64,
}

impl Input {
    /// `WrapAddr`, for an address that counts in `per_byte` to a byte. What would lie before L1
    /// lies behind it: either faults when it is read.
    pub(super) fn wrap(&self, addr: u64, per_byte: u64) -> u64 {
        if addr > self.limit * per_byte { addr.checked_sub(self.fifo * per_byte).unwrap_or(NOWHERE) } else { addr }
    }

    /// Bytes from `addr` to the last address from which nothing goes back; `None`: it never does.
    pub(super) fn room(&self, addr: u64) -> Option<u64> {
        (self.fifo != 0).then(|| self.limit.saturating_sub(addr))
    }

    /// Spans of L1 that are read, of what is not compressed and does not wrap: address and bytes.
    pub(super) fn spans(&self) -> impl Iterator<Item = (u32, u32)> {
        let (count, bits) = (self.data_count(), u64::from(self.bits));
        let runs = if count == 0 || self.zeros.is_some() { 0 } else { count.div_ceil(self.run.max(1)) };
        let data = (0..runs).map(move |i| {
            let from = self.data + u64::from(i) * self.stride;
            (from, (count - i * self.run).min(self.run), from + self.stride * u64::from(i + 1 < runs))
        });
        let wraps = move |&(.., next): &(u64, u32, u64)| self.wrap(next, 8) == next;
        let data =
            data.take_while(wraps).map(move |(from, data, _)| (from / 8, (from + u64::from(data) * bits).div_ceil(8)));
        let exponents = (self.shared == Shared::Read && runs > 0)
            .then(|| (self.exponents / 16, (self.exponents + u64::from(count)).div_ceil(16)));
        let in_l1 = |(from, to): (u64, u64)| Some((u32::try_from(from).ok()?, u32::try_from(to - from).ok()?));
        data.chain(exponents).filter_map(in_l1)
    }

    /// Data to fetch, or of part of a compressed row at most so many.
    fn data_count(&self) -> u32 {
        self.count.min(self.drop.saturating_add(self.most))
    }
}

/// What the data go to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Target {
    SrcA,
    SrcB,
    Dst { wide: bool, map: RowMap },
}

/// Where the data go.
#[derive(Clone, Copy, Debug)]
pub(super) struct Output {
    pub(super) target: Target,
    /// Of the first datum, in data.
    pub(super) addr: u32,
    /// `SrcRow`, to which rows of SrcA and SrcB are relative.
    src_row: u32,
    /// Addresses of SrcA reach the whole bank.
    whole_bank: bool,
    pub(super) transpose: bool,
    /// Columns by which SrcA's data are shifted to the left.
    pub(super) shift: u32,
    /// Rows of SrcB that get the data of each row.
    pub(super) copies: u32,
    /// Positions that follow each datum, and whether they are skipped or get zeros.
    pub(super) upsample: u32,
    pub(super) skip: bool,
}

impl Output {
    /// The first row goes to eight rows of SrcB (`srcb_bcast` of the public list, `assembly.yaml`
    /// of tt-llk). The list does not say what becomes of other rows, or which rows these eight are
    /// if they do not begin at a multiple of eight.
    fn broadcast(&mut self, input: &Input) -> Result<(), Refusal> {
        let one_row = input.zeros.is_none() && self.upsample == 0 && self.addr % ROW + input.count <= ROW;
        if !one_row || !(self.addr / ROW + self.src_row).is_multiple_of(BURST) {
            return Err(not_built(
                "a broadcast of other than one row to eight aligned rows of SrcB, which no document describes",
            ));
        }
        self.copies = BURST;
        Ok(())
    }

    /// The row and the column of the datum at `addr`, before transposition; `None`: it is dropped.
    pub(super) fn place(&self, addr: u32) -> Result<Option<(u32, u32)>, Refusal> {
        let (row, column) = (addr / ROW, addr % ROW);
        Ok(match self.target {
            Target::SrcB => Some(((row + self.src_row) & 0x3F, column)),
            Target::SrcA if row < FIRST_ROW || column < self.shift => None,
            Target::SrcA => {
                let row = row - FIRST_ROW;
                if !self.whole_bank && row >= 16 {
                    return Err((FaultClass::UndefinedBehavior, "data for rows behind the first 16 of SrcA"));
                }
                // Rows behind the end wrap, but those of the burst of eight that crosses it are
                // lost, and the page does not say where bursts begin.
                let begin = (self.addr / ROW).wrapping_sub(FIRST_ROW).wrapping_add(self.src_row);
                if row + self.src_row >= 64 && !begin.is_multiple_of(BURST) {
                    return Err((FaultClass::UndefinedBehavior, "a burst of rows across the end of SrcA"));
                }
                Some(((row + self.src_row) & 0x3F, column - self.shift))
            }
            Target::Dst { .. } => Some((row.wrapping_sub(FIRST_ROW) & 0x3FF, column)),
        })
    }
}

/// What one `UNPACR` does.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) input: Input,
    pub(super) output: Output,
    pub(super) conversion: Conversion,
    /// Zeros are written, whatever is read.
    pub(super) zero: bool,
    /// The encoding of the output format, for the matrix unit.
    pub(super) format: u32,
    /// The encoding of the input format.
    in_format: u32,
    /// How many blocks of 16 bytes a cycle it would fetch.
    pub(super) wants: u32,
}

/// What surrounds an `UNPACR` of `thread` when it starts.
pub(super) struct At<'a> {
    pub(super) config: &'a Config,
    pub(super) adcs: &'a Adcs,
    pub(super) l1: &'a [u8],
    pub(super) thread: usize,
    /// The unpacker's state of the thread.
    pub(super) counter: u32,
    pub(super) src_row: u32,
}

/// The context and the address counters that an instruction uses.
#[derive(Clone, Copy)]
pub(super) struct Context {
    /// `MultiContextMode`.
    multi: bool,
    pub(super) index: u32,
    /// Whose X and Y counters.
    pub(super) adc: usize,
}

fn undefined(what: &'static str) -> Refusal {
    (FaultClass::UndefinedBehavior, what)
}

fn not_built(what: &'static str) -> Refusal {
    (FaultClass::UnimplementedFunctionality, what)
}

impl Context {
    /// The context of an instruction.
    ///
    /// # Errors
    /// Contexts and counters that do not exist.
    pub(super) fn of(insn: Unpacr, at: &At<'_>) -> Result<Self, Refusal> {
        if !insn.multi_context_mode() {
            return Ok(Self { multi: false, index: 0, adc: at.thread });
        }
        let unit = insn.which_unpacker() as usize;
        let offset = [cfg::UNPACK_MISC_CFG_CFGCONTEXTOFFSET_0, cfg::UNPACK_MISC_CFG_CFGCONTEXTOFFSET_1][unit];
        let chosen = if insn.use_context_counter() { at.counter } else { insn.context_number() };
        let index = (chosen + at.config.read(at.thread, offset)) & 7;
        if unit == 1 && index >= 2 {
            return Err(undefined("unpacker 1 with a context beyond the second"));
        }
        let adc = insn.context_adc() as usize;
        if adc >= 3 {
            return Err(undefined("the address counters of a fourth thread"));
        }
        Ok(Self { multi: true, index, adc })
    }
}

impl Plan {
    /// What it adds to the mode of its instruction.
    pub(super) fn settings(&self) -> u32 {
        settings::OUT_FORMAT.put(settings::IN_FORMAT.put(0, self.in_format), self.format)
    }

    /// Works out what `insn` does, for which the configuration says `setup`.
    ///
    /// # Errors
    /// What the page calls undefined, and what is not built.
    pub(super) fn new(insn: Unpacr, context: Context, setup: &Setup, at: &At<'_>) -> Result<Self, Refusal> {
        let unit = insn.which_unpacker() as usize;
        if insn.srcb_bcast() && unit == 0 {
            return Err(not_built("a row that is broadcast to rows of SrcA, which no document describes"));
        }
        let input = Counters::of(insn, context, at).input(context, setup)?;
        let counters = at.adcs.get(at.thread, unit, 1);
        let mut output = setup.output([counters.y, counters.z, counters.w], at.src_row)?;
        if (output.transpose || setup.strided) && !input.data.is_multiple_of(BLOCK_BITS) {
            return Err(undefined("transposed or strided input that does not begin at a multiple of 16 bytes"));
        }
        if insn.srcb_bcast() {
            output.broadcast(&input)?;
        }
        let Setup { conversion, wants, formats: [in_format, format], .. } = *setup;
        Ok(Self { input, output, conversion, zero: insn.all_datums_are_zero(), format, in_format, wants })
    }

    /// Cycles that fetching takes at `speed` words of L1 a cycle: one at least. Runs of strided
    /// input that lie apart do not share words.
    pub(super) fn duration(&self, speed: u32) -> Cycle {
        let Input { bits, run, stride, zeros, .. } = self.input;
        let count = self.input.data_count();
        let words = |data: u32| {
            let with_zeros = if zeros.is_some() { bits + 4 } else { bits };
            (u64::from(data) * u64::from(with_zeros)).div_ceil(8 * timing::L1_WORD)
        };
        let fetched =
            if stride == u64::from(run * bits) { words(count) } else { u64::from(count.div_ceil(run)) * words(run) };
        fetched.div_ceil(speed.into()).max(1)
    }
}

/// An address behind the end of L1.
pub(super) const OUTSIDE: Refusal = (FaultClass::UndefinedBehavior, "an address behind the end of L1");
