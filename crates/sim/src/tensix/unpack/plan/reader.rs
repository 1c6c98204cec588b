//! What the configuration and the counters say of the input and the output of one `UNPACR`.

use super::{At, Context, GROUP, Input, OUTSIDE, Output, ROW, Target, not_built, undefined};
use crate::FaultClass;
use crate::tensix::config::Refusal;
use crate::tensix::counters::Xyzw;
use crate::tensix::dst::RowMap;
use crate::tensix::unpack::fields::{
    ADD_DEST, BASE, BLOBS_Y_START, DEST, Descriptor, FORCED_EXPONENT, FORMATS, OFFSET, OUT_BASE, OUT_STRIDES, SHIFT,
    UNCOMPRESSED, X_DIM,
};
use crate::tensix::unpack::format::Format;
use tilework_abi::tensix::cfg::{self, Field};
use tilework_abi::tensix::insn::Unpacr;

/// The configuration as one unpacker sees it.
pub(super) struct Reader<'a> {
    pub(super) at: &'a At<'a>,
    /// The bank that the thread uses.
    pub(super) words: &'a [u32],
    pub(super) unit: usize,
}

/// The extent of the input, as far as it is not the data themselves.
struct Shape {
    x: u32,
    y: u32,
    z: u32,
    w: u32,
    blobs: u32,
}

impl Reader<'_> {
    /// A field of `THCON_SEC0` or `THCON_SEC1`.
    fn thcon(&self, field: Field) -> u32 {
        self.bank(field.copy(self.unit))
    }
    pub(super) fn is_set(&self, field: Field) -> bool {
        self.thcon(field) != 0
    }
    /// A field that each unpacker has.
    pub(super) fn unp(&self, fields: [Field; 2]) -> u32 {
        self.bank(fields[self.unit])
    }
    fn bank(&self, field: Field) -> u32 {
        field.of(self.words[usize::from(field.word)])
    }

    pub(super) fn refuse_what_is_not_built(&self, insn: Unpacr) -> Result<(), Refusal> {
        if insn.srcb_bcast() && self.unit == 0 {
            return Err(not_built("a row that is broadcast to rows of SrcA, which no document describes"));
        }
        if self.is_set(cfg::THCON_SEC_REG2_METADATA_X_END) {
            return Err(not_built("unpacking of metadata, which no document describes"));
        }
        Ok(())
    }

    pub(super) fn descriptor(&self) -> Descriptor {
        let first = cfg::THCON_SEC_REG0_TILEDESCRIPTOR.copy(self.unit).word;
        Descriptor(std::array::from_fn(|i| self.words[usize::from(first) + i]))
    }

    pub(super) fn formats(&self, context: Context, descriptor: &Descriptor) -> [u32; 2] {
        if context.multi && self.is_set(cfg::THCON_SEC_REG2_OVRD_DATA_FORMAT) {
            FORMATS[context.index as usize].map(|field| self.thcon(field))
        } else {
            [descriptor.format(), self.thcon(cfg::THCON_SEC_REG2_OUT_DATA_FORMAT)]
        }
    }

    /// Where the input begins, in bytes, and how it goes on.
    pub(super) fn input(
        &self,
        insn: Unpacr,
        context: Context,
        from: Format,
        descriptor: &Descriptor,
    ) -> Result<Input, Refusal> {
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

    pub(super) fn output(&self, context: Context, out: Format, to_dst: bool) -> Result<Output, Refusal> {
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
    pub(super) fn speed(
        &self,
        from: Format,
        strided: bool,
        input: &Input,
        output: &Output,
        to_dst: bool,
    ) -> Result<u32, Refusal> {
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

/// How many data of strided input lie side by side. WormholeB0's page says 16. Blackhole takes 32
/// of formats that have more than 8 bits: as found on ttsim, another simulator, not documented. So
/// tt-llk uses it: `_llk_unpack_tilize_` unpacks 64 half rows in one go and `_llk_pack_` with
/// `tilize` sorts them into faces, while 8-bit formats go the way that they go on Wormhole.
fn tilize_run(from: Format) -> u32 {
    if from.bits() > 8 { 2 * ROW } else { ROW }
}
