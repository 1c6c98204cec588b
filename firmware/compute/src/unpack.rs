//! The unpack thread: L1 to SrcA and SrcB.
//!
//! Follows WormholeB0/TensixTile/TensixCoprocessor/UNPACR_Regular.md. There are two contexts with
//! an address each: while the unpackers work with one, the core writes the other.

use crate::cb::Cb;
use crate::format::Format;
use crate::math::{HALF, TILE_ROWS};
use crate::mop::{self, Mop};
use crate::push::{Word, block, set, stall, sync, until, write_word};
use crate::sync::{DST_FREE, DST_TAKEN, UNPACK_SYNC, While};
use crate::thread::Thread;
use crate::ttinsn;
use crate::{Broadcast, Reduce};
use tilework_abi::tensix::CFG_BASE;
use tilework_abi::tensix::cfg::{self, Field};
use tilework_abi::tensix::insn::{Incadczw, Setadcxx, Setadcxy, Setadczw, Unpacr, UnpacrNop};
use tilework_rt::reg::write;

/// Contexts in use.
const CONTEXTS: u32 = 2;
/// Elements of a face, and faces of a tile.
const FACE: u32 = 256;
const FACES: u32 = 4;
/// Columns of a face.
const COLUMNS: u32 = 16;
/// Bytes of the unit of addresses. A unit is skipped for a tile header, which our tiles do not
/// have.
const UNIT: u32 = 16;
const HEADER: u32 = 1;
/// `SETADC...`: the counters of unpacker 0 and 1.
const A: u32 = 1 << 0;
const B: u32 = 1 << 1;
/// `UNPACR_NOP`: clears SrcA or SrcB, or only gives the bank to the matrix unit.
const CLEAR: u32 = 1;
/// `TileDescriptor` (UNPACR_Regular.md): bit of the first word that says that the data are not
/// compressed, lowest bits of the sizes in X (first word) and Z (second word); Y has the lowest.
const UNCOMPRESSED: u32 = 1 << 4;
const X_DIM: u32 = 16;
const Z_DIM: u32 = 16;
/// Rows before the first of SrcA and of Dst (UNPACR_Regular.md), in elements.
const BEFORE_FIRST_ROW: u32 = 4 * 16;
/// Throttle mode of the field's kernels; the pages do not describe it.
const THROTTLE: u32 = 2;

/// With tilize mode: the distance of rows, in units, four bits each.
const SHIFTS: [Field; 4] = [
    cfg::THCON_SEC_REG2_SHIFT_AMOUNT_CNTX0,
    cfg::THCON_SEC_REG2_SHIFT_AMOUNT_CNTX1,
    cfg::THCON_SEC_REG2_SHIFT_AMOUNT_CNTX2,
    cfg::THCON_SEC_REG2_SHIFT_AMOUNT_CNTX3,
];

/// By unpacker: whether integers of eight bits have no sign.
const UNSIGNED: [Field; 2] = [cfg::ALU_FORMAT_SPEC_REG0_SRCAUNSIGNED, cfg::ALU_FORMAT_SPEC_REG0_SRCBUNSIGNED];

/// By context: whether unpacker 0 writes to Dst, and where.
const TO_DST: [Field; 2] = [cfg::THCON_SEC_REG2_UNPACK_IF_SEL_CNTX0, cfg::THCON_SEC_REG2_UNPACK_IF_SEL_CNTX1];
const DESTINATIONS: [Field; 2] = [cfg::THCON_SEC_REG5_DEST_CNTX0_ADDRESS, cfg::THCON_SEC_REG5_DEST_CNTX1_ADDRESS];

/// The address of unpacker 0 in the first context; bytes from there to the second, and
/// to unpacker 1.
const BASE: Field = cfg::THCON_SEC_REG3_BASE_ADDRESS;
const TO_SECOND: u32 = 4 * (cfg::THCON_SEC_REG3_BASE_CNTX1_ADDRESS.word - BASE.word) as u32;
const TO_B: u32 = 4 * (BASE.copy(1).word - BASE.word) as u32;

/// The word that makes both unpackers use a context.
const fn context_offset(context: u32) -> Word {
    Word::of(cfg::UNPACK_MISC_CFG_CFGCONTEXTOFFSET_0, context).with(cfg::UNPACK_MISC_CFG_CFGCONTEXTOFFSET_1, context)
}

/// The context that comes next: bytes from the first one's address to its own. A switch is one
/// subtraction, because it is made for each tile.
#[derive(Clone, Copy, Default)]
struct Context(u32);

impl Context {
    fn index(self) -> usize {
        (self.0 / TO_SECOND) as usize
    }
    /// Where the address of unpacker 0 is.
    #[inline(always)]
    fn base(self) -> u32 {
        CFG_BASE + 4 * BASE.word as u32 + self.0
    }
    #[inline(always)]
    fn switch(&mut self) {
        self.0 = TO_SECOND - self.0;
        if self.0 == 0 { context_offset(0).write() } else { context_offset(1).write() }
    }
}

/// The word that unpacks from the current address and gives the bank to the matrix unit; then the
/// address goes on by `faces`.
const fn unpack(unit: u32, faces: u32) -> u32 {
    Unpacr::build().which_unpacker(unit).ch0_z_inc(faces).multi_context_mode(true).flip_src(true).last(true).word()
}
/// The next face of A and of B.
pub(crate) const NEXT_A: u32 = unpack(0, 1);
pub(crate) const NEXT_B: u32 = unpack(1, 1);
/// All of a tile to SrcA, to SrcB.
const TILE_A: u32 = unpack(0, 0);
const TILE_B: u32 = unpack(1, 0);
/// Unpacker 0 goes on to the tile behind its address, and back.
const NEXT_TILE_OF_A: u32 = Incadczw::build().cnt_set_mask(A).ch0_w(1).word();
const FIRST_TILE_OF_A: u32 = Setadczw::build().cnt_set_mask(A).bit_mask(0b0010).word();
/// All of a tile to Dst.
const TILE_TO_DST: u32 = Unpacr::build().multi_context_mode(true).last(true).word();
/// The matrix unit gets SrcB as zeros.
const ZERO_B: u32 = UnpacrNop::build().which_unpacker(1).set_dvalid(true).unpack_pop(CLEAR).word();

/// The matrix unit gets SrcA as zeros.
const ZERO_A: u32 = UnpacrNop::build().which_unpacker(0).set_dvalid(true).unpack_pop(CLEAR).word();

/// The word that sets the face of the input.
const fn face(units: u32, face: u32) -> u32 {
    Setadczw::build().cnt_set_mask(units).ch0_z(face).bit_mask(1).word()
}
const ALL_FACES_0: u32 = Setadczw::build().cnt_set_mask(A | B).bit_mask(0b1111).word();
/// The word that sets how many elements are unpacked at once.
const fn count(units: u32, elements: u32) -> u32 {
    Setadcxx::build().cnt_set_mask(units).x1_val(elements - 1).word()
}

/// The unpackers' state.
#[derive(Default)]
pub(crate) struct Unpacker {
    context: Context,
    /// Dst has elements of 32 bits.
    wide: bool,
    /// Unpacker 0 writes to Dst, and the half of it that math works on.
    to_dst: bool,
    half: u32,
}

impl Unpacker {
    /// Formats of both inputs, and everything that does not depend on the operation.
    pub(crate) fn configure(&mut self, a: Format, b: Format, wide: bool) {
        Word::of(cfg::CFG_STATE_ID_STATEID, 0).write();
        ttinsn!(UNPACK_SYNC.init(0, CONTEXTS));
        ttinsn!(DST_TAKEN.init(0, 1));
        ttinsn!(Setadcxy::build().cnt_set_mask(A | B).bit_mask(0b1011).word());
        ttinsn!(ALL_FACES_0);
        Word::of(cfg::SRCB_SET_BASE, 0).write();
        context_offset(0).write();
        sync();
        formats(0, a);
        formats(1, b);
        Word::of(cfg::UNP0_ADD_DEST_ADDR_CNTR_ADD_DEST_ADDR_CNTR, 1).write();
        let x = Word::of(cfg::THCON_SEC_REG5_TILE_X_DIM_CNTX0, FACE);
        x.with(cfg::THCON_SEC_REG5_TILE_X_DIM_CNTX1, FACE).write();
        for unit in 0..2 {
            for offset in [cfg::THCON_SEC_REG7_OFFSET_ADDRESS, cfg::THCON_SEC_REG7_OFFSET_CNTX1_ADDRESS] {
                write_word(offset.copy(unit), 0);
            }
        }
        *self = Self { wide, ..Self::default() };
        self.source(false);
    }

    /// Changes the formats of both inputs when the unpackers are done.
    pub(crate) fn reconfigure(&mut self, a: Format, b: Format) {
        sync();
        formats(0, a);
        formats(1, b);
    }

    /// Unpacker 0 writes to SrcA, with each face `transposed`.
    #[inline(always)]
    fn source(&mut self, transposed: bool) {
        self.target(false);
        set(cfg::THCON_SEC_REG2_HALOIZE_MODE, transposed.into());
    }

    /// Unpacker 0 writes to Dst, or to SrcA.
    #[inline(always)]
    fn target(&mut self, dst: bool) {
        ttinsn!(stall(block::CFG, until::UNPACK));
        Word::of(cfg::SRCA_SET_BASE, 0).with(cfg::SRCA_SET_SETOVRDWITHADDR, (!dst).into()).write();
        for (to_dst, address) in TO_DST.into_iter().zip(DESTINATIONS) {
            set(to_dst, dst.into());
            set(address, BEFORE_FIRST_ROW);
        }
        self.to_dst = dst;
    }

    /// [`Unpacker::target`] for kernels that change it often: it is there once.
    #[inline(never)]
    fn target_of_tiles(&mut self, dst: bool) {
        ttinsn!(stall(block::CFG, until::UNPACK));
        Word::of(cfg::SRCA_SET_BASE, 0).with(cfg::SRCA_SET_SETOVRDWITHADDR, (!dst).into()).write();
        set(const { TO_DST[0] }, dst.into());
        set(const { TO_DST[1] }, dst.into());
        set(const { DESTINATIONS[0] }, BEFORE_FIRST_ROW);
        set(const { DESTINATIONS[1] }, BEFORE_FIRST_ROW);
        self.to_dst = dst;
    }

    /// [`Unpacker::source`] likewise.
    #[inline(never)]
    fn source_of_tiles(&mut self, transposed: bool) {
        self.target_of_tiles(false);
        set(cfg::THCON_SEC_REG2_HALOIZE_MODE, transposed.into());
    }

    /// Goes to the other half of Dst.
    #[inline(always)]
    pub(crate) fn commit(&mut self) {
        self.half = HALF - self.half;
    }

    /// Two tiles face by face, and how B is spread over A.
    pub(crate) fn init_two(&mut self, broadcast: Broadcast) {
        self.source_of_tiles(false);
        ttinsn!(count(A | B, FACE));
        match broadcast {
            Broadcast::None => Mop::of_two(2, 2, NEXT_A, NEXT_B),
            // A face of B for two faces side by side.
            Broadcast::Column => Mop::new(2, 2, NEXT_A).start(NEXT_B).end(face(B, 2)),
            // The two upper faces of B, twice.
            Broadcast::Row => Mop::of_two(2, 2, NEXT_B, NEXT_A).end(face(B, 0)),
            Broadcast::Scalar => Mop::new(1, FACES, NEXT_A).start(NEXT_B),
        }
        .program();
    }

    /// One tile face by face, or its transpose; SrcB is zero.
    pub(crate) fn init_one(&mut self, transpose: bool) {
        self.source_of_tiles(transpose);
        ttinsn!(count(A, FACE));
        if transpose {
            // Faces 0 and 2, then 1 and 3.
            Mop::of_two(2, 2, ZERO_B, const { unpack(0, 2) }).end(face(A, 1)).program();
        } else {
            Mop::new(FACES, 1, ZERO_B).start(NEXT_A).program();
        }
    }

    /// Copies of tiles of this format: whole tiles to Dst if it takes all of their bits.
    pub(crate) fn init_copy(&mut self, format: Format) {
        if format.goes_to_dst(self.wide) {
            self.target_of_tiles(true);
            set(cfg::THCON_SEC_REG2_HALOIZE_MODE, 0);
            ttinsn!(count(A, FACES * FACE));
        } else {
            self.init_one(false);
        }
    }

    /// Copies a tile to tile `tile` of Dst, which math gives when it is free.
    #[inline(always)]
    pub(crate) fn copy(&mut self, a: u32, tile: u32) {
        if !self.to_dst {
            return self.run_one(a);
        }
        ttinsn!(ALL_FACES_0);
        let row = self.half + tile * TILE_ROWS;
        set(DESTINATIONS[self.context.index()], BEFORE_FIRST_ROW + row * COLUMNS);
        ttinsn!(DST_FREE.wait(block::UNPACK | block::SYNC, While::Zero));
        ttinsn!(DST_FREE.get());
        ttinsn!(stall(block::UNPACK, until::CFG));
        self.with_addresses([Some(a), None], || ttinsn!(TILE_TO_DST));
        ttinsn!(stall(block::SYNC, until::UNPACK));
        ttinsn!(DST_TAKEN.post());
    }

    /// Gives both banks to the matrix unit.
    #[inline(always)]
    pub(crate) fn give_banks(&self) {
        ttinsn!(ZERO_A);
        ttinsn!(ZERO_B);
    }

    /// A tile face by face, transposed if rows are reduced, and row 0 of each face of B.
    pub(crate) fn init_reduce(&mut self, dim: Reduce) {
        self.source(dim == Reduce::Rows);
        ttinsn!(count(A, FACE));
        ttinsn!(count(B, COLUMNS));
        Mop::of_two(1, FACES, NEXT_A, NEXT_B).program();
    }

    /// Changes the format of one input, SrcA's (0) or SrcB's, when the unpackers are done: from
    /// numbers to numbers.
    #[inline(never)]
    pub(crate) fn reformat<const UNIT: usize>(format: Format) {
        sync();
        let strides = const { [cfg::UNP0_ADDR_CTRL_ZW_REG_1_ZSTRIDE, cfg::UNP1_ADDR_CTRL_ZW_REG_1_ZSTRIDE][UNIT] };
        Word::of(strides, FACE * format.element_bytes()).write();
        let x = const { if UNIT == 0 { 0 } else { FACE } };
        write_word(const { cfg::THCON_SEC_REG0_TILEDESCRIPTOR.copy(UNIT) }, format.code() | UNCOMPRESSED | x << X_DIM);
        Word::of(const { cfg::THCON_SEC_REG2_OUT_DATA_FORMAT.copy(UNIT) }, format.in_src())
            .with(const { cfg::THCON_SEC_REG2_THROTTLE_MODE.copy(UNIT) }, THROTTLE)
            .write();
        ttinsn!(stall(block::UNPACK, until::TRISC_CFG));
    }

    /// Tiles face by face, each transposed; row 0 of the tile at `ones` to SrcB, where it stays.
    pub(crate) fn init_pool(&mut self, ones: u32) {
        self.source_of_tiles(true);
        ttinsn!(count(A, FACE));
        ttinsn!(count(B, COLUMNS));
        Mop::new(1, FACES, NEXT_A).program();
        ttinsn!(ALL_FACES_0);
        self.with_addresses([None, Some(ones)], || ttinsn!(NEXT_B));
    }

    /// Gives SrcA as zeros to the matrix unit.
    #[inline(always)]
    pub(crate) fn give_zeros(&self) {
        ttinsn!(ZERO_A);
    }

    /// Whole tiles; `transpose`: each face of A is transposed.
    pub(crate) fn init_matmul(&mut self, transpose: bool) {
        self.source(transpose);
        ttinsn!(ALL_FACES_0);
        ttinsn!(count(A | B, FACES * FACE));
    }

    /// A tile of rows that are `row_bytes` apart, a multiple of 16: 64 half rows of 16 elements,
    /// left and right by turns (see the packer's part). SrcB is zero.
    pub(crate) fn init_tilize(&mut self, row_bytes: u32) {
        self.source(false);
        set(cfg::THCON_SEC_REG2_TILEIZE_MODE, 1);
        let units = row_bytes / UNIT;
        for (i, shift) in SHIFTS.into_iter().enumerate() {
            set(shift, units >> (4 * i) & 0xF);
        }
        self.x_dim(FACES * FACE);
        ttinsn!(count(A, FACES * FACE));
        Mop::new(1, 1, ZERO_B).start(NEXT_A).program();
    }

    /// Goes back to tiles.
    pub(crate) fn end_tilize(&self) {
        ttinsn!(stall(block::CFG, until::UNPACK));
        set(cfg::THCON_SEC_REG2_TILEIZE_MODE, 0);
        for shift in SHIFTS {
            set(shift, 0);
        }
        self.x_dim(FACE);
    }

    /// Sets the size in X of unpacker 0's input.
    fn x_dim(&self, elements: u32) {
        set(cfg::THCON_SEC_REG5_TILE_X_DIM_CNTX0, elements);
        set(cfg::THCON_SEC_REG5_TILE_X_DIM_CNTX1, elements);
        ttinsn!(stall(block::UNPACK, until::CFG));
    }

    /// Runs the program with A and B at these addresses.
    #[inline(always)]
    pub(crate) fn run(&mut self, a: u32, b: u32) {
        ttinsn!(ALL_FACES_0);
        self.with_addresses([Some(a), Some(b)], mop::run);
    }

    /// Runs the program with A at this address.
    #[inline(always)]
    pub(crate) fn run_one(&mut self, a: u32) {
        ttinsn!(ALL_FACES_0);
        self.with_addresses([Some(a), None], mop::run);
    }

    /// The tile at `first` to SrcB, where it stays, and one after the other `count` pages of
    /// `second` from page `j` on to SrcA.
    #[inline(always)]
    pub(crate) fn products<T: Thread>(&mut self, second: &Cb<T>, j: u32, count: u32, first: u32) {
        let of_blocks = second.format() == Format::Bfp8;
        self.with_addresses([Some(second.page(j)), Some(first)], || {
            ttinsn!(TILE_B);
            ttinsn!(TILE_A);
            if !of_blocks {
                for _ in 1..count {
                    ttinsn!(NEXT_TILE_OF_A);
                    ttinsn!(TILE_A);
                }
                ttinsn!(FIRST_TILE_OF_A);
            }
        });
        if of_blocks {
            // Exponents lie before each tile, so the next one has an address of its own.
            for column in 1..count {
                self.with_addresses([Some(second.page(j + column)), None], || ttinsn!(TILE_A));
            }
        }
    }

    #[inline(always)]
    fn with_addresses(&mut self, [a, b]: [Option<u32>; 2], f: impl FnOnce()) {
        UNPACK_SYNC.wait_below(CONTEXTS);
        let base = self.context.base();
        if let Some(a) = a {
            write(base, a / UNIT - HEADER);
        }
        if let Some(b) = b {
            write(base + TO_B, b / UNIT - HEADER);
        }
        UNPACK_SYNC.post_now();
        ttinsn!(stall(block::UNPACK, until::TRISC_CFG));
        f();
        ttinsn!(UNPACK_SYNC.get());
        self.context.switch();
    }
}

/// Sets what an unpacker reads and writes.
fn formats(unit: usize, format: Format) {
    let strides = [cfg::UNP0_ADDR_CTRL_ZW_REG_1_ZSTRIDE, cfg::UNP1_ADDR_CTRL_ZW_REG_1_ZSTRIDE][unit];
    Word::of(strides, FACE * format.element_bytes()).write();
    // Unpacker 0 has the size in X by context.
    let x = if unit == 0 { 0 } else { FACE };
    let descriptor = cfg::THCON_SEC_REG0_TILEDESCRIPTOR.copy(unit);
    write_word(descriptor, format.code() | UNCOMPRESSED | x << X_DIM);
    write_word(Field { word: descriptor.word + 1, ..descriptor }, 1 | FACES << Z_DIM);
    Word::of(cfg::THCON_SEC_REG2_OUT_DATA_FORMAT.copy(unit), format.in_src())
        .with(cfg::THCON_SEC_REG2_THROTTLE_MODE.copy(unit), THROTTLE)
        .write();
    Word::of(cfg::THCON_SEC_REG2_DISABLE_ZERO_COMPRESS_CNTX0.copy(unit), 1)
        .with(cfg::THCON_SEC_REG2_DISABLE_ZERO_COMPRESS_CNTX1.copy(unit), 1)
        .write();
    set(UNSIGNED[unit], (format == Format::UInt8).into());
    ttinsn!(stall(block::UNPACK, until::CFG));
}
