//! The unpack thread: L1 to SrcA and SrcB.
//!
//! Follows WormholeB0/TensixTile/TensixCoprocessor/UNPACR_Regular.md. There are two contexts with
//! an address each: while the unpackers work with one, the core writes the other.

use crate::Broadcast;
use crate::format::Format;
use crate::mop::{self, Mop};
use crate::push::{Word, block, set, stall, sync, until, write_word};
use crate::sync::UNPACK_SYNC;
use crate::ttinsn;
use tilework_abi::tensix::cfg::{self, Field};
use tilework_abi::tensix::insn::{Setadcxx, Setadcxy, Setadczw, Unpacr, UnpacrNop};

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
/// Rows before the first of SrcA (UNPACR_Regular.md), in elements.
const BEFORE_SRC_A: u32 = 4 * 16;
/// Throttle mode of the field's kernels; the pages do not describe it.
const THROTTLE: u32 = 2;

/// With tilize mode: the distance of rows, in units, four bits each.
const SHIFTS: [Field; 4] = [
    cfg::THCON_SEC_REG2_SHIFT_AMOUNT_CNTX0,
    cfg::THCON_SEC_REG2_SHIFT_AMOUNT_CNTX1,
    cfg::THCON_SEC_REG2_SHIFT_AMOUNT_CNTX2,
    cfg::THCON_SEC_REG2_SHIFT_AMOUNT_CNTX3,
];

/// By unpacker: the addresses of the two contexts.
const BASES: [[Field; 2]; 2] = [
    [cfg::THCON_SEC_REG3_BASE_ADDRESS, cfg::THCON_SEC_REG3_BASE_CNTX1_ADDRESS],
    [cfg::THCON_SEC_REG3_BASE_ADDRESS.copy(1), cfg::THCON_SEC_REG3_BASE_CNTX1_ADDRESS.copy(1)],
];

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
/// The matrix unit gets SrcB as zeros.
const ZERO_B: u32 = UnpacrNop::build().which_unpacker(1).set_dvalid(true).unpack_pop(CLEAR).word();

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
    context: usize,
}

impl Unpacker {
    /// Formats of both inputs, and everything that does not depend on the operation.
    pub(crate) fn configure(&mut self, a: Format, b: Format) {
        Word::of(cfg::CFG_STATE_ID_STATEID, 0).write();
        ttinsn!(UNPACK_SYNC.init(0, CONTEXTS));
        ttinsn!(Setadcxy::build().cnt_set_mask(A | B).bit_mask(0b1011).word());
        ttinsn!(ALL_FACES_0);
        Word::of(cfg::SRCA_SET_BASE, 0).with(cfg::SRCA_SET_SETOVRDWITHADDR, 1).write();
        Word::of(cfg::SRCB_SET_BASE, 0).write();
        Self::context_offset(0);
        sync();
        formats(0, a);
        formats(1, b);
        Word::of(cfg::UNP0_ADD_DEST_ADDR_CNTR_ADD_DEST_ADDR_CNTR, 1).write();
        let to = Word::of(cfg::THCON_SEC_REG5_DEST_CNTX0_ADDRESS, BEFORE_SRC_A);
        to.with(cfg::THCON_SEC_REG5_DEST_CNTX1_ADDRESS, BEFORE_SRC_A).write();
        let x = Word::of(cfg::THCON_SEC_REG5_TILE_X_DIM_CNTX0, FACE);
        x.with(cfg::THCON_SEC_REG5_TILE_X_DIM_CNTX1, FACE).write();
        for unit in 0..2 {
            for offset in [cfg::THCON_SEC_REG7_OFFSET_ADDRESS, cfg::THCON_SEC_REG7_OFFSET_CNTX1_ADDRESS] {
                write_word(offset.copy(unit), 0);
            }
        }
        self.context = 0;
    }

    #[inline(always)]
    fn context_offset(context: u32) {
        Word::of(cfg::UNPACK_MISC_CFG_CFGCONTEXTOFFSET_0, context)
            .with(cfg::UNPACK_MISC_CFG_CFGCONTEXTOFFSET_1, context)
            .write();
    }

    /// Changes the formats of both inputs when the unpackers are done.
    pub(crate) fn reconfigure(&mut self, a: Format, b: Format) {
        sync();
        formats(0, a);
        formats(1, b);
    }

    /// Two tiles face by face, and how B is spread over A.
    pub(crate) fn init_two(&self, broadcast: Broadcast) {
        transpose_faces(false);
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
    pub(crate) fn init_one(&self, transpose: bool) {
        transpose_faces(transpose);
        ttinsn!(count(A, FACE));
        if transpose {
            // Faces 0 and 2, then 1 and 3.
            Mop::of_two(2, 2, ZERO_B, const { unpack(0, 2) }).end(face(A, 1)).program();
        } else {
            Mop::new(FACES, 1, ZERO_B).start(NEXT_A).program();
        }
    }

    /// A tile with transposed faces, and row 0 of each face of B.
    pub(crate) fn init_reduce(&self) {
        transpose_faces(true);
        ttinsn!(count(A, FACE));
        ttinsn!(count(B, COLUMNS));
        Mop::of_two(1, FACES, NEXT_A, NEXT_B).program();
    }

    /// Whole tiles; `transpose`: each face of A is transposed.
    pub(crate) fn init_matmul(&self, transpose: bool) {
        transpose_faces(transpose);
        ttinsn!(count(A | B, FACES * FACE));
    }

    /// A tile of rows that are `row_bytes` apart, a multiple of 16: 64 half rows of 16 elements,
    /// left and right by turns (see the packer's part). SrcB is zero.
    pub(crate) fn init_tilize(&self, row_bytes: u32) {
        transpose_faces(false);
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

    /// A whole tile to SrcB and one to SrcA.
    #[inline(always)]
    pub(crate) fn tiles(&mut self, a: u32, b: u32) {
        ttinsn!(ALL_FACES_0);
        self.with_addresses([Some(a), Some(b)], || {
            ttinsn!(TILE_B);
            ttinsn!(TILE_A);
        });
    }

    /// A whole tile to SrcA.
    #[inline(always)]
    pub(crate) fn tile_a(&mut self, a: u32) {
        ttinsn!(ALL_FACES_0);
        self.with_addresses([Some(a), None], || ttinsn!(TILE_A));
    }

    #[inline(always)]
    pub(crate) fn with_addresses(&mut self, addresses: [Option<u32>; 2], f: impl FnOnce()) {
        UNPACK_SYNC.wait_below(CONTEXTS);
        for (bases, addr) in BASES.iter().zip(addresses) {
            if let Some(addr) = addr {
                write_word(bases[self.context], addr / UNIT - HEADER);
            }
        }
        UNPACK_SYNC.post_now();
        ttinsn!(stall(block::UNPACK, until::TRISC_CFG));
        f();
        ttinsn!(UNPACK_SYNC.get());
        self.context = 1 - self.context;
        Self::context_offset(self.context as u32);
    }
}

/// The unpacker transposes each face of SrcA.
#[inline(always)]
fn transpose_faces(on: bool) {
    ttinsn!(stall(block::CFG, until::UNPACK));
    set(cfg::THCON_SEC_REG2_HALOIZE_MODE, on.into());
}

/// Sets what an unpacker reads and writes.
fn formats(unit: usize, format: Format) {
    let strides = [cfg::UNP0_ADDR_CTRL_ZW_REG_1_ZSTRIDE, cfg::UNP1_ADDR_CTRL_ZW_REG_1_ZSTRIDE][unit];
    let bytes = match format {
        Format::Float32 => 4,
        Format::Bf16 => 2,
        Format::Bfp8 => 1,
    };
    Word::of(strides, FACE * bytes).write();
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
}
