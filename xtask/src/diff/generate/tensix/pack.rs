//! The packer: Dst is filled once, and each group packs faces of it in another format, with ReLU,
//! masks of columns and accumulation in L1.

use tilework_abi::tensix::cfg;
use tilework_abi::tensix::insn::{Addrcrxy, Incadcxy, Mova2d, Setadc, Setadcxy};

use super::super::super::rng::Rng;
use super::dump::Dumps;
use super::setup::*;
use super::step::Step;
use super::{Group, OUTPUT_BYTES, input, is_broad, output};

/// Bits of `PCK_DEST_RD_CTRL`.
const READ_32: u32 = 1;
const UNSIGNED: u32 = 1 << 1;
const ROUND_10: u32 = 1 << 3;

/// What Dst holds, and as what it can be packed: format before and after the late conversion, and
/// how Dst is read. The other library has built these.
struct Filling {
    /// In L1 and in the register; with 32-bit rows the unpacker writes to Dst.
    fill: (Format, Format),
    dst32: bool,
    conversions: &'static [(Format, Format, u32)],
}

const FILLINGS: [Filling; 4] = [
    Filling {
        fill: (FP32, FP32),
        dst32: true,
        conversions: &[
            (FP32, FP32, READ_32),
            (FP32, FP16, READ_32),
            (FP32, BFP8, READ_32),
            (FP32, BFP4, READ_32),
            (FP32, BFP2, READ_32),
            (FP16, FP8_OF_4, READ_32 | ROUND_10),
            (BF16, BF16, READ_32),
            (BFP8, BFP8, READ_32),
            (BFP8, BFP4, READ_32),
            (FP16, FP16, READ_32 | ROUND_10),
        ],
    },
    Filling {
        fill: (INT32, INT32),
        dst32: true,
        conversions: &[(INT32, INT32, READ_32), (INT8, INT8, READ_32), (INT8, INT8, READ_32 | UNSIGNED)],
    },
    Filling {
        fill: (BF16, BF16),
        dst32: false,
        conversions: &[
            (BF16, FP32, 0),
            (BF16, BF16, 0),
            (BF16, BFP8, 0),
            (BF16, BFP4, 0),
            (BF16, BFP2, 0),
            (BFP8, FP32, 0),
            (BFP8, BF16, 0),
            (BFP8, BFP8, 0),
            (BFP8, BFP4, 0),
            (INT16, INT16, 0),
        ],
    },
    Filling {
        fill: (FP16, FP16),
        dst32: false,
        conversions: &[(FP16, FP32, 0), (FP16, FP16, 0), (FP16, BF16, 0), (FP16, FP8_OF_4, 0), (INT16, INT16, 0)],
    },
];

/// Faces of Dst that are filled.
const FACES: u32 = 4;

/// Random groups.
pub(super) fn groups(rng: &mut Rng) -> (Group, Vec<Group>, Dumps) {
    let (data, broad) = (Data::any(rng), is_broad(rng));
    let filling = &FILLINGS[rng.within(0..FILLINGS.len() as u32) as usize];
    let mapped = rng.one_in(4);
    let start = start(rng, filling, data, mapped);
    let count = rng.within(1..16);
    let groups = (0..count).map(|index| group(rng, index, filling, data, Mode { broad, mapped })).collect();
    // Mapped rows of 32 bits lie elsewhere in those of 16 bits (docs/differences.md).
    let dst = !(mapped && filling.dst32);
    (start, groups, Dumps { dst, ..Dumps::default() })
}

/// What a case has throughout.
#[derive(Clone, Copy)]
struct Mode {
    broad: bool,
    /// Rows of Dst lie where `DEST_ACCESS_CFG` puts them.
    mapped: bool,
}

/// Fills the first faces of Dst.
fn start(rng: &mut Rng, filling: &Filling, data: Data, mapped: bool) -> Group {
    // Behind the inputs of all groups.
    let at = input(super::GROUPS - 1);
    let (from, to) = filling.fill;
    let mut set_up = Unpack::new((from, to, at), (from, to, at));
    set_up.to_dst = filling.dst32;
    let mut steps = Alu { a: to, b: to, dst32: filling.dst32, int8: false }.steps();
    let map = |field| (field, u32::from(mapped));
    let mut settings = Settings::default();
    for (field, on) in [map(cfg::DEST_ACCESS_CFG_REMAP_ADDRS), map(cfg::DEST_ACCESS_CFG_SWIZZLE_32B)] {
        settings.set(field, on);
    }
    steps.extend(settings.steps());
    steps.extend(set_up.steps());
    for face in 0..FACES {
        if filling.dst32 {
            steps.push(unpack_to_dst());
            continue;
        }
        steps.extend([unpack(0), unpack(1), reset_counters(false)]);
        for half in 0..2 {
            let insn = Mova2d::build().move_8_rows(true).src_row(8 * half).addr_mod(7).dst_row(16 * face + 8 * half);
            steps.push(Step::Push(insn.word()));
        }
        steps.push(reset_counters(true));
    }
    steps.push(Step::Sync);
    let words = (0..FACES).flat_map(|_| from.face(rng, data)).collect();
    Group { steps, data: vec![(at, words)], ..Group::default() }
}

fn group(rng: &mut Rng, index: u32, filling: &Filling, data: Data, mode: Mode) -> Group {
    let at = output(index);
    let (from, to, read) = rng.pick(filling.conversions);
    let mut pack = Pack { from, to, read, ..Pack::new(at) };
    let floats = ![INT32, INT16, INT8].contains(&to);
    if floats && rng.one_in(3) {
        // Thresholds for FP16 and FP32 out of 32-bit rows are known differences
        // (docs/differences.md).
        let modes = if read & READ_32 != 0 && [FP16, FP32].contains(&from) { 1..2 } else { 1..4 };
        pack.relu = (rng.within(modes), number(rng, 8, 7, Data::Tame) & 0x7FFF);
    }
    if mode.broad && rng.one_in(4) {
        pack.mask = rng.word() & 0xFFFF;
    }
    pack.strided = mode.mapped && rng.one_in(2);
    if !pack.strided && rng.one_in(3) {
        pack.interfaces = rng.pick(&[1, 3, 5, 10]);
    }
    if rng.one_in(3) {
        // At most half of what there is, so that it holds the faces as well.
        pack.moved = (rng.within(0..OUTPUT_BYTES / 2 / 7), rng.within(0..8));
    }
    let faces = if pack.strided { FACES } else { rng.within(1..FACES + 1) };
    // No document gives the rounding of accumulation: these formats were compared. Sums of FP16
    // that are denormal differ (docs/differences.md); numbers near one have none.
    let adds = [FP32, BF16].contains(&to) || to == FP16 && data == Data::Tame;
    pack.accumulate = rng.one_in(6) && adds;
    let moved = pack.moved.0 * pack.moved.1;
    let before = if pack.accumulate {
        let faces = faces + moved.div_ceil(to.face_bytes());
        (0..faces).flat_map(|_| to.face(rng, data)).collect()
    } else {
        vec![0xA5; OUTPUT_BYTES as usize]
    };
    let mut steps = pack.steps();
    if !pack.strided && faces < FACES && rng.one_in(3) {
        steps.push(later_row(rng));
    }
    steps.extend(pack.faces(faces));
    steps.push(Step::Sync);
    Group {
        steps,
        data: vec![(at, before)],
        outputs: vec![(at, moved + faces * to.face_bytes() + 64)],
        ..Group::default()
    }
}

/// The first face starts with the fifth row, by one of the ways to change the counter.
fn later_row(rng: &mut Rng) -> Step {
    let words = [
        Setadc::build().cnt_set_mask(4).xyzw(1).new_value(4).word(),
        Setadcxy::build().cnt_set_mask(4).ch0_y(4).bit_mask(0b10).word(),
        Incadcxy::build().cnt_set_mask(4).ch0_y(4).word(),
        Addrcrxy::build().cnt_set_mask(4).ch0_y(4).bit_mask(0b10).word(),
    ];
    Step::Push(rng.pick(&words))
}
