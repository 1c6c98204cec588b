//! What the configuration says of the `UNPACR`s of an unpacker with one context, but for what
//! changes from tile to tile: the address in L1. It is decoded once and kept.

use super::{Context, Output, ROW, Shared, Target, not_built, undefined};
use crate::FaultClass;
use crate::tensix::config::{Config, Refusal};
use crate::tensix::decoded::{Kept, Reader};
use crate::tensix::dst::RowMap;
use crate::tensix::unpack::UNPACKERS;
use crate::tensix::unpack::fields::{
    ADD_DEST, BLOBS_Y_START, DEST, Descriptor, FORCED_EXPONENT, FORMATS, OUT_BASE, OUT_STRIDES, SHIFT, TO_DST,
    UNCOMPRESSED, UNSIGNED, X_DIM,
};
use crate::tensix::unpack::format::{Conversion, Format};
use tilework_abi::tensix::cfg::{self, Field};

/// Contexts, and the configuration without one.
const CONTEXTS: usize = 8 + 1;

/// The extent of the input, as far as it is not the data themselves.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub(super) x: u32,
    pub(super) y: u32,
    pub(super) z: u32,
    pub(super) w: u32,
    pub(super) blobs: u32,
    /// Where blobs begin.
    pub(super) blobs_y_start: u32,
}

impl Shape {
    /// Bytes of the starts of rows of compressed data.
    fn row_starts(&self) -> u64 {
        let rows = if self.blobs != 0 { self.blobs } else { self.y * self.z * self.w };
        (2 * (u64::from(rows) + 1)).next_multiple_of(16)
    }

    /// Bytes of the data's shared exponents.
    fn exponents(&self) -> u64 {
        let data = u64::from(self.x) * u64::from(self.y) * u64::from(self.z) * u64::from(self.w);
        data.div_ceil(ROW.into()).next_multiple_of(16)
    }
}

/// What lies around the input in L1: bytes, but for the first.
#[derive(Clone, Copy, Debug)]
pub(super) struct Surroundings {
    /// From the address to what follows, in units of 16 bytes.
    pub(super) header: u32,
    /// Starts of rows of compressed data.
    pub(super) row_starts: Option<u64>,
    /// Exponents before the data.
    pub(super) exponents: u64,
    /// From behind the first address it goes back by the other.
    pub(super) limit: u64,
    pub(super) fifo: u64,
}

/// Where the output begins, in bytes: what counters of Y, Z and W are multiplied by.
#[derive(Clone, Copy, Debug)]
struct Begin {
    base: u32,
    strides: [u32; 3],
    /// The power of two that addresses are divided by.
    shift: u32,
    /// What is added to the address, or takes its place.
    dest: Option<(u32, Dest)>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Dest {
    Added,
    Instead,
}

/// What the configuration says.
#[derive(Clone, Debug)]
pub(in super::super) struct Setup {
    /// The encodings of the formats of input and output.
    pub(super) formats: [u32; 2],
    pub(super) conversion: Conversion,
    /// Bits of a datum.
    pub(super) bits: u32,
    pub(super) shape: Shape,
    pub(super) around: Surroundings,
    pub(super) shared: Shared,
    /// Runs of data lie apart.
    pub(super) strided: bool,
    pub(super) run: u32,
    pub(super) stride: u64,
    /// How many blocks of 16 bytes a cycle it would fetch.
    pub(super) wants: u32,
    begin: Begin,
    /// But for the address.
    output: Output,
}

/// By unpacker and context.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct Setups(Box<[[Kept<Setup>; CONTEXTS]; UNPACKERS]>);

impl Setups {
    /// What the configuration says of an instruction of `thread` for `unit`.
    ///
    /// # Errors
    /// What the page calls undefined, and what is not built.
    #[inline]
    pub(in super::super) fn get(
        &mut self,
        config: &Config,
        (thread, unit): (usize, usize),
        context: Context,
    ) -> Result<&Setup, Refusal> {
        let place = if context.multi { context.index as usize } else { CONTEXTS - 1 };
        self.0[unit][place].get(config, thread, |reader| Setup::decode(&Of { reader, unit }, context))
    }
}

/// The configuration as one unpacker sees it.
struct Of<'a> {
    reader: &'a Reader<'a>,
    unit: usize,
}

impl Of<'_> {
    /// A field of `THCON_SEC0` or `THCON_SEC1`.
    fn thcon(&self, field: Field) -> u32 {
        self.reader.get(field.copy(self.unit))
    }
    fn is_set(&self, field: Field) -> bool {
        self.thcon(field) != 0
    }
    /// A field that each unpacker has.
    fn unp(&self, fields: [Field; 2]) -> u32 {
        self.reader.get(fields[self.unit])
    }

    fn descriptor(&self) -> Result<Descriptor, Refusal> {
        let first = u32::from(cfg::THCON_SEC_REG0_TILEDESCRIPTOR.copy(self.unit).word);
        let mut words = [0; 4];
        for (i, word) in (first..).zip(&mut words) {
            *word = self.reader.word(i)?;
        }
        Ok(Descriptor(words))
    }

    fn formats(&self, context: Context, descriptor: &Descriptor) -> [u32; 2] {
        if context.multi && self.is_set(cfg::THCON_SEC_REG2_OVRD_DATA_FORMAT) {
            FORMATS[context.index as usize].map(|field| self.thcon(field))
        } else {
            [descriptor.format(), self.thcon(cfg::THCON_SEC_REG2_OUT_DATA_FORMAT)]
        }
    }

    fn shape(&self, context: Context, descriptor: &Descriptor) -> Shape {
        let index = context.index as usize;
        let of_context = context.multi && self.unit == 0;
        let x = if of_context { self.thcon(X_DIM[index & 3]) } else { descriptor.x_dim() };
        let blobs_y_start = match of_context {
            true => self.reader.get(BLOBS_Y_START[(index & 2) >> 1]),
            false => descriptor.blobs_y_start(),
        };
        let [y, z, w] = [descriptor.y_dim(), descriptor.z_dim(), descriptor.w_dim()];
        Shape { x, y, z, w, blobs: descriptor.blobs(), blobs_y_start }
    }

    /// From behind which address it goes back, and by how much.
    fn limits(&self, context: Context) -> [u64; 2] {
        // Context 1 has its own limit if that is enabled (tt-llk's hal/cfg/thcon.h).
        let limits = if context.index == 1 && self.is_set(cfg::THCON_SEC_REG10_UNPACK_LIMIT_ADDRESS_EN) {
            [cfg::THCON_SEC_REG10_UNPACK_LIMIT_ADDRESS, cfg::THCON_SEC_REG10_UNPACK_FIFO_SIZE]
        } else {
            [cfg::THCON_SEC_REG2_UNPACK_LIMIT_ADDRESS, cfg::THCON_SEC_REG2_UNPACK_FIFO_SIZE]
        };
        limits.map(|field| u64::from(self.thcon(field)) * 16)
    }

    fn begin(&self, context: Context, out: Format, to_dst: bool) -> Begin {
        let dest = (context.multi && self.unit == 0).then(|| {
            let added = to_dst || self.unp(ADD_DEST) != 0;
            let dest = self.thcon(DEST[context.index as usize & 3]);
            (dest, if added { Dest::Added } else { Dest::Instead })
        });
        let strides = OUT_STRIDES[self.unit].map(|field| self.reader.get(field));
        Begin { base: self.unp(OUT_BASE), strides, shift: out.address_shift(), dest }
    }

    /// The output, but for its address.
    fn output(&self, context: Context, out: Format, to_dst: bool) -> Result<Output, Refusal> {
        let whole_bank = self.reader.has(cfg::SRCA_SET_SETOVRDWITHADDR);
        if to_dst && whole_bank {
            return Err(undefined("unpacking to Dst while SRCA_SET_SetOvrdWithAddr is set"));
        }
        let target = match self.unit {
            0 if to_dst => Target::Dst { wide: out.is_wide(), map: RowMap::read(|field| self.reader.has(field)) },
            0 => Target::SrcA,
            _ => Target::SrcB,
        };
        // Unpacker 1 ignores the shift and transposition.
        let shifts = self.unit == 0 && !self.is_set(cfg::THCON_SEC_REG2_TILEIZE_MODE);
        Ok(Output {
            target,
            addr: 0,
            src_row: 0,
            whole_bank,
            transpose: self.unit == 0 && self.is_set(cfg::THCON_SEC_REG2_HALOIZE_MODE),
            shift: if shifts { self.thcon(SHIFT[context.index as usize & 3]) } else { 0 },
            copies: 1,
            // As the model has it: 1, 3 and 7, where Unpackers/README.md has 1, 2 and 4.
            upsample: (1 << self.thcon(cfg::THCON_SEC_REG2_UPSAMPLE_RATE)) - 1,
            skip: self.is_set(cfg::THCON_SEC_REG2_UPSAMPLE_AND_INTERLEAVE),
        })
    }

    /// How fast it would fetch: "Performance" of the page.
    fn speed(&self, from: Format, strided: bool, compressed: bool, output: &Output) -> Result<u32, Refusal> {
        let throttle = self.thcon(cfg::THCON_SEC_REG2_THROTTLE_MODE);
        if throttle == 3 {
            return Err((FaultClass::MissingSpecification, "a Throttle_mode of 3"));
        }
        if strided {
            return Ok(4);
        }
        let to_dst = matches!(output.target, Target::Dst { .. });
        let slowest = compressed || output.upsample >= 3 || from.bits() == 2;
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

impl Setup {
    #[cold]
    fn decode(of: &Of<'_>, context: Context) -> Result<Self, Refusal> {
        if of.is_set(cfg::THCON_SEC_REG2_METADATA_X_END) {
            return Err(not_built("unpacking of metadata, which no document describes"));
        }
        let index = context.index as usize;
        let descriptor = of.descriptor()?;
        let formats = of.formats(context, &descriptor);
        let [Some(from), Some(out)] = formats.map(Format::of) else {
            return Err(undefined("a data format that does not exist"));
        };
        let to_dst = if context.multi { TO_DST[index] } else { cfg::THCON_SEC_REG2_UNPACK_IF_SEL };
        let to_dst = of.unit == 0 && of.is_set(to_dst);
        let (unsigned, narrow) = (of.unp(UNSIGNED) != 0, of.is_set(cfg::THCON_SEC_REG1_UNP_LF8_4B_EXP));
        let conversion = Conversion::of(from, out, to_dst, unsigned, narrow)?;
        let uncompressed = if context.multi { of.is_set(UNCOMPRESSED[index]) } else { descriptor.is_uncompressed() };
        let shared = if !from.is_block() {
            Shared::Nothing
        } else if of.is_set(cfg::THCON_SEC_REG2_FORCE_SHARED_EXP) {
            Shared::Forced(of.unp(FORCED_EXPONENT) as u8)
        } else {
            Shared::Read
        };
        let shape = of.shape(context, &descriptor);
        let has_exponents = shared == Shared::Read
            && (matches!(from, Format::Bfp8 | Format::Bfp8a) || !descriptor.has_no_small_exponents());
        let [limit, fifo] = of.limits(context);
        let around = Surroundings {
            header: 1 + descriptor.digest_size(),
            row_starts: (!uncompressed).then(|| shape.row_starts()),
            exponents: if has_exponents { shape.exponents() } else { 0 },
            limit,
            fifo,
        };
        let strided = of.is_set(cfg::THCON_SEC_REG2_TILEIZE_MODE);
        let (run, stride) = match strided {
            true => {
                let units = (0..3).fold(0, |all, i| all | u64::from(of.thcon(SHIFT[i])) << (4 + 4 * i));
                (tilize_run(from), 8 * units)
            }
            false => (ROW, u64::from(ROW * from.bits())),
        };
        let output = of.output(context, out, to_dst)?;
        if strided && (output.upsample > 0 || !uncompressed) {
            return Err(undefined("strided input that is compressed or upsampled"));
        }
        if to_dst && (output.shift != 0 || output.transpose) {
            return Err(undefined("data for Dst that are shifted or transposed"));
        }
        let wants = of.speed(from, strided, !uncompressed, &output)?;
        Ok(Self {
            formats,
            conversion,
            bits: from.bits(),
            shape,
            around,
            shared,
            strided,
            run,
            stride,
            wants,
            begin: of.begin(context, out, to_dst),
            output,
        })
    }

    /// The output of an instruction, by the counters of Y, Z and W.
    pub(super) fn output(&self, counters: [u32; 3], src_row: u32) -> Result<Output, Refusal> {
        let Begin { base, strides, shift, dest } = self.begin;
        let steps = counters.into_iter().zip(strides);
        let mut addr = steps.fold(base, |addr, (n, stride)| addr.wrapping_add(n * stride));
        if !addr.is_multiple_of(1 << shift) {
            return Err(undefined("an output address that is no multiple of a datum"));
        }
        addr >>= shift;
        addr = match dest {
            Some((dest, Dest::Added)) => addr.wrapping_add(dest),
            Some((dest, Dest::Instead)) => dest,
            None => addr,
        };
        Ok(Output { addr, src_row, ..self.output })
    }
}

/// How many data of strided input lie side by side. WormholeB0's page says 16. Blackhole takes 32
/// of formats that have more than 8 bits: as found on ttsim, another simulator, not documented. So
/// tt-llk uses it: `_llk_unpack_tilize_` unpacks 64 half rows in one go and `_llk_pack_` with
/// `tilize` sorts them into faces, while 8-bit formats go the way that they go on Wormhole.
fn tilize_run(from: Format) -> u32 {
    if from.bits() > 8 { 2 * ROW } else { ROW }
}
