//! What one `UNPACR` does, worked out from the configuration and the address counters when the
//! instruction starts: the first half of the functional model of
//! WormholeB0/TensixTile/TensixCoprocessor/UNPACR_Regular.md (Blackhole's page refers to it).
//!
//! Addresses within L1 are kept in bits, and those of exponents in sixteenths of a byte, because a
//! datum has as little as two bits and its share of an exponent is half a bit.

use super::super::config::{Config, Refusal};
use super::super::counters::{Adcs, Xyzw};
use super::super::dst::RowMap;
use super::fields::{
    ADD_DEST, BASE, BLOBS_Y_START, DEST, Descriptor, FORCED_EXPONENT, FORMATS, OFFSET, OUT_BASE, OUT_STRIDES, SHIFT,
    TO_DST, UNCOMPRESSED, UNSIGNED, X_DIM,
};
use super::format::{Conversion, Format};
use crate::{Cycle, FaultClass, timing};
use tilework_abi::tensix::cfg::{self, Field};
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
    /// Every block's exponent.
    pub(super) forced_exponent: Option<u8>,
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
    pub(super) fn spans(&self, block: bool) -> impl Iterator<Item = (u32, u32)> {
        let (count, bits) = (self.data_count(), u64::from(self.bits));
        let runs = if count == 0 || self.zeros.is_some() { 0 } else { count.div_ceil(self.run.max(1)) };
        let data = (0..runs).map(move |i| {
            let from = self.data + u64::from(i) * self.stride;
            (from, (count - i * self.run).min(self.run), from + self.stride * u64::from(i + 1 < runs))
        });
        let wraps = move |&(.., next): &(u64, u32, u64)| self.wrap(next, 8) == next;
        let data =
            data.take_while(wraps).map(move |(from, data, _)| (from / 8, (from + u64::from(data) * bits).div_ceil(8)));
        let exponents = (block && runs > 0 && self.forced_exponent.is_none())
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
#[derive(Clone, Debug)]
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

/// The configuration as one unpacker sees it.
struct Reader<'a> {
    at: &'a At<'a>,
    /// The bank that the thread uses.
    words: &'a [u32],
    unit: usize,
}

/// The extent of the input, as far as it is not the data themselves.
struct Shape {
    x: u32,
    y: u32,
    z: u32,
    w: u32,
    blobs: u32,
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

    /// Works out what `insn` does.
    ///
    /// # Errors
    /// What the page calls undefined, and what is not built.
    pub(super) fn new(insn: Unpacr, context: Context, at: &At<'_>) -> Result<Self, Refusal> {
        let reader = Reader { at, words: at.config.bank(at.thread), unit: insn.which_unpacker() as usize };
        reader.refuse_what_is_not_built(insn)?;
        let descriptor = reader.descriptor();
        let [from, to] = reader.formats(context, &descriptor);
        let in_format = from;
        let (Some(from), Some(out)) = (Format::of(from), Format::of(to)) else {
            return Err(undefined("a data format that does not exist"));
        };
        let to_dst = reader.unit == 0
            && reader.is_set(if context.multi {
                TO_DST[context.index as usize]
            } else {
                cfg::THCON_SEC_REG2_UNPACK_IF_SEL
            });
        let (unsigned, narrow) = (reader.unp(UNSIGNED) != 0, reader.is_set(cfg::THCON_SEC_REG1_UNP_LF8_4B_EXP));
        let conversion = Conversion::of(from, out, to_dst, unsigned, narrow)?;
        let input = reader.input(insn, context, from, &descriptor)?;
        let mut output = reader.output(context, out, to_dst)?;
        let strided = reader.is_set(cfg::THCON_SEC_REG2_TILEIZE_MODE);
        if (output.transpose || strided) && !input.data.is_multiple_of(BLOCK_BITS) {
            return Err(undefined("transposed or strided input that does not begin at a multiple of 16 bytes"));
        }
        if strided && (output.upsample > 0 || input.zeros.is_some()) {
            return Err(undefined("strided input that is compressed or upsampled"));
        }
        if to_dst && (output.shift != 0 || output.transpose) {
            return Err(undefined("data for Dst that are shifted or transposed"));
        }
        if insn.srcb_bcast() {
            output.broadcast(&input)?;
        }
        let wants = reader.speed(from, strided, &input, &output, to_dst)?;
        Ok(Self { input, output, conversion, zero: insn.all_datums_are_zero(), format: to, in_format, wants })
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

impl Reader<'_> {
    /// A field of `THCON_SEC0` or `THCON_SEC1`.
    fn thcon(&self, field: Field) -> u32 {
        self.bank(field.copy(self.unit))
    }
    fn is_set(&self, field: Field) -> bool {
        self.thcon(field) != 0
    }
    /// A field that each unpacker has.
    fn unp(&self, fields: [Field; 2]) -> u32 {
        self.bank(fields[self.unit])
    }
    fn bank(&self, field: Field) -> u32 {
        field.of(self.words[usize::from(field.word)])
    }

    fn refuse_what_is_not_built(&self, insn: Unpacr) -> Result<(), Refusal> {
        if insn.srcb_bcast() && self.unit == 0 {
            return Err(not_built("a row that is broadcast to rows of SrcA, which no document describes"));
        }
        if self.is_set(cfg::THCON_SEC_REG2_METADATA_X_END) {
            return Err(not_built("unpacking of metadata, which no document describes"));
        }
        Ok(())
    }

    fn descriptor(&self) -> Descriptor {
        let first = cfg::THCON_SEC_REG0_TILEDESCRIPTOR.copy(self.unit).word;
        Descriptor(std::array::from_fn(|i| self.words[usize::from(first) + i]))
    }

    fn formats(&self, context: Context, descriptor: &Descriptor) -> [u32; 2] {
        if context.multi && self.is_set(cfg::THCON_SEC_REG2_OVRD_DATA_FORMAT) {
            FORMATS[context.index as usize].map(|field| self.thcon(field))
        } else {
            [descriptor.format(), self.thcon(cfg::THCON_SEC_REG2_OUT_DATA_FORMAT)]
        }
    }

    /// Where the input begins, in bytes, and how it goes on.
    fn input(&self, insn: Unpacr, context: Context, from: Format, descriptor: &Descriptor) -> Result<Input, Refusal> {
        let index = context.index as usize;
        let uncompressed = if context.multi { self.is_set(UNCOMPRESSED[index]) } else { descriptor.is_uncompressed() };
        let x = if context.multi && self.unit == 0 { self.thcon(X_DIM[index & 3]) } else { descriptor.x_dim() };
        let shape =
            Shape { x, y: descriptor.y_dim(), z: descriptor.z_dim(), w: descriptor.w_dim(), blobs: descriptor.blobs() };
        let base = self.thcon(BASE[index]).wrapping_add(self.thcon(OFFSET[index & 3]));
        // Sixteen times a 32-bit number of blocks: the sum wraps as the page's unsigned ones do.
        let mut addr = u64::from(base.wrapping_add(1 + descriptor.digest_size()).wrapping_mul(16));
        let row_starts = addr;
        if !uncompressed {
            let rows = u64::from(if shape.blobs != 0 { shape.blobs } else { shape.y } * shape.z * shape.w);
            addr += (2 * (rows + 1)).next_multiple_of(16);
        }
        let forced_exponent =
            self.is_set(cfg::THCON_SEC_REG2_FORCE_SHARED_EXP).then(|| self.unp(FORCED_EXPONENT) as u8);
        let mut exponents = addr;
        if from.is_block() && forced_exponent.is_none() {
            exponents = addr;
            if matches!(from, Format::Bfp8 | Format::Bfp8a) || !descriptor.has_no_small_exponents() {
                let data = u64::from(shape.x) * u64::from(shape.y) * u64::from(shape.z) * u64::from(shape.w);
                addr += data.div_ceil(ROW.into()).next_multiple_of(16);
            }
        }
        let (first, count, drop, most) = if uncompressed {
            let (first, count) = self.span(insn, context, descriptor, &shape)?;
            (first, count, 0, u32::MAX)
        } else {
            self.compressed_span(insn, context, row_starts, &shape)?
        };
        // Context 1 has its own limit if that is enabled (tt-llk's hal/cfg/thcon.h).
        let [limit, fifo] = if index == 1 && self.is_set(cfg::THCON_SEC_REG10_UNPACK_LIMIT_ADDRESS_EN) {
            [cfg::THCON_SEC_REG10_UNPACK_LIMIT_ADDRESS, cfg::THCON_SEC_REG10_UNPACK_FIFO_SIZE]
        } else {
            [cfg::THCON_SEC_REG2_UNPACK_LIMIT_ADDRESS, cfg::THCON_SEC_REG2_UNPACK_FIFO_SIZE]
        };
        let bits = from.bits();
        let (first, width) = (u64::from(first), u64::from(bits));
        let mut input = Input {
            bits,
            data: addr * 8 + first * width,
            exponents: exponents * 16 + first,
            zeros: None,
            count,
            drop,
            most,
            run: ROW,
            stride: u64::from(ROW * bits),
            forced_exponent,
            limit: u64::from(self.thcon(limit)) * 16,
            fifo: u64::from(self.thcon(fifo)) * 16,
        };
        if !uncompressed {
            let (group, within) = (first / u64::from(GROUP), first % u64::from(GROUP));
            let start = addr * 8 + group * u64::from(GROUP) * (width + 4);
            input.data = start + within * width;
            input.zeros = Some(start + u64::from(GROUP) * width + within * 4);
        }
        input.data = input.wrap(input.data, 8);
        input.exponents = input.wrap(input.exponents, 16);
        input.zeros = input.zeros.map(|at| input.wrap(at, 8));
        if self.is_set(cfg::THCON_SEC_REG2_TILEIZE_MODE) {
            input.run = tilize_run(from);
            input.stride = 8 * (0..3).fold(0, |all, i| all | u64::from(self.thcon(SHIFT[i])) << (4 + 4 * i));
        }
        Ok(input)
    }

    /// The first datum of uncompressed input, and how many there are.
    fn span(
        &self,
        insn: Unpacr,
        context: Context,
        descriptor: &Descriptor,
        shape: &Shape,
    ) -> Result<(u32, u32), Refusal> {
        let adcs = self.at.adcs;
        let [start, end]: [Xyzw; 2] = [0, 1].map(|channel| adcs.get(context.adc, self.unit, channel));
        let own = adcs.get(self.at.thread, self.unit, 0);
        let (x, y, x_end) = if !insn.row_search() {
            (start.x, start.y, end.x + 1)
        } else if shape.blobs != 0 {
            let starts = if context.multi && self.unit == 0 {
                let field = BLOBS_Y_START[(context.index as usize & 2) >> 1];
                self.bank(field)
            } else {
                descriptor.blobs_y_start()
            };
            let blob = |i: u32| (starts >> (4 * (i & 7)) & 0xF) << 4;
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
    fn compressed_span(
        &self,
        insn: Unpacr,
        context: Context,
        row_starts: u64,
        shape: &Shape,
    ) -> Result<(u32, u32, u32, u32), Refusal> {
        let adcs = self.at.adcs;
        let [start, end]: [Xyzw; 2] = [0, 1].map(|channel| adcs.get(context.adc, self.unit, channel));
        let own = adcs.get(self.at.thread, self.unit, 0);
        let y_dim = if insn.row_search() && shape.blobs != 0 { shape.blobs } else { shape.y };
        let row = (own.w * shape.z + own.z) * y_dim;
        let row_start = |i: u32| {
            let at = row_starts + 2 * u64::from(row + i);
            let bytes = usize::try_from(at).ok().and_then(|at| self.at.l1.get(at..at + 2));
            let word = bytes.and_then(|bytes| bytes.first_chunk());
            word.map(|word| u32::from(u16::from_le_bytes(*word))).ok_or(OUTSIDE)
        };
        let first = row_start(start.y & 0xFF)?;
        let next = if insn.row_search() {
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

    fn output(&self, context: Context, out: Format, to_dst: bool) -> Result<Output, Refusal> {
        let at = self.at;
        let index = context.index as usize;
        let counters = at.adcs.get(at.thread, self.unit, 1);
        let strides = OUT_STRIDES[self.unit].map(|field| self.bank(field));
        let steps = [counters.y, counters.z, counters.w].into_iter().zip(strides);
        let mut addr = steps.fold(self.unp(OUT_BASE), |addr, (n, stride)| addr.wrapping_add(n * stride));
        if !addr.is_multiple_of(1 << out.address_shift()) {
            return Err(undefined("an output address that is no multiple of a datum"));
        }
        addr >>= out.address_shift();
        if context.multi && self.unit == 0 {
            let dest = self.thcon(DEST[index & 3]);
            let added = to_dst || self.unp(ADD_DEST) != 0;
            addr = if added { addr.wrapping_add(dest) } else { dest };
        }
        let whole_bank = at.config.is_set(at.thread, cfg::SRCA_SET_SETOVRDWITHADDR);
        if to_dst && whole_bank {
            return Err(undefined("unpacking to Dst while SRCA_SET_SetOvrdWithAddr is set"));
        }
        let target = match self.unit {
            0 if to_dst => Target::Dst { wide: out.is_wide(), map: RowMap::of(at.config) },
            0 => Target::SrcA,
            _ => Target::SrcB,
        };
        // Unpacker 1 ignores the shift and transposition.
        let shifts = self.unit == 0 && !self.is_set(cfg::THCON_SEC_REG2_TILEIZE_MODE);
        Ok(Output {
            target,
            addr,
            src_row: at.src_row,
            whole_bank,
            transpose: self.unit == 0 && self.is_set(cfg::THCON_SEC_REG2_HALOIZE_MODE),
            shift: if shifts { self.thcon(SHIFT[index & 3]) } else { 0 },
            copies: 1,
            // As the model has it: 1, 3 and 7, where Unpackers/README.md has 1, 2 and 4.
            upsample: (1 << self.thcon(cfg::THCON_SEC_REG2_UPSAMPLE_RATE)) - 1,
            skip: self.is_set(cfg::THCON_SEC_REG2_UPSAMPLE_AND_INTERLEAVE),
        })
    }

    /// How fast it would fetch: "Performance" of the page.
    fn speed(&self, from: Format, strided: bool, input: &Input, output: &Output, to_dst: bool) -> Result<u32, Refusal> {
        let throttle = self.thcon(cfg::THCON_SEC_REG2_THROTTLE_MODE);
        if throttle == 3 {
            return Err((FaultClass::MissingSpecification, "a Throttle_mode of 3"));
        }
        if strided {
            return Ok(4);
        }
        let slowest = input.zeros.is_some() || output.upsample >= 3 || from.bits() == 2;
        let slow = output.upsample == 1 || to_dst && from.bits() == 4;
        let most = if slowest {
            1
        } else if slow {
            2
        } else {
            4
        };
        Ok(most.min(1 << throttle))
    }
}

/// An address behind the end of L1.
pub(super) const OUTSIDE: Refusal = (FaultClass::UndefinedBehavior, "an address behind the end of L1");

/// How many data of strided input lie side by side. WormholeB0's page says 16. Blackhole takes 32
/// of formats that have more than 8 bits: as found on ttsim, another simulator, not documented. So
/// tt-llk uses it: `_llk_unpack_tilize_` unpacks 64 half rows in one go and `_llk_pack_` with
/// `tilize` sorts them into faces, while 8-bit formats go the way that they go on Wormhole.
fn tilize_run(from: Format) -> u32 {
    if from.bits() > 8 { 2 * ROW } else { ROW }
}
