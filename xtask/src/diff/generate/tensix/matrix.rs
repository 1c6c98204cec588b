//! The matrix unit: faces are unpacked to SrcA and SrcB, a few instructions follow, and the banks
//! go back to the unpackers.
//!
//! A case has one format of Dst, because 16-bit and 32-bit rows share their storage.

use tilework_abi::tensix::cfg;
use tilework_abi::tensix::insn::*;

use super::super::super::rng::Rng;
use super::dump::Dumps;
use super::operands::{Pick, pick};
use super::setup::*;
use super::step::Step;
use super::{GROUPS, Group, expand, input, is_broad};

/// Formats that go together.
struct Style {
    /// Of SrcA and SrcB: in L1, in the register.
    a: (Format, Format),
    b: (Format, Format),
    int8: bool,
    /// What the matrix unit can do with them.
    can: Can,
}

/// Groups of instructions by what a format allows.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Can {
    /// Arithmetic only: moves of this format are not built in the other library.
    Compute,
    /// Moves only.
    Move,
    /// Both.
    All,
}

const fn style(a: (Format, Format), b: (Format, Format), can: Can) -> Style {
    Style { a, b, int8: false, can }
}

const STYLES: [Style; 12] = [
    style((BF16, BF16), (BF16, BF16), Can::All),
    style((FP16, FP16), (FP16, FP16), Can::All),
    style((FP32, TF32), (FP32, TF32), Can::All),
    style((FP32, BF16), (FP32, BF16), Can::All),
    // Banks of different formats, whose data have different lengths.
    style((BF16, BF16), (FP32, TF32), Can::Compute),
    style((FP32, TF32), (BF16, BF16), Can::Compute),
    style((BFP8, BFP8), (BFP8, BFP8), Can::All),
    style((BFP8, BFP8), (BF16, BF16), Can::All),
    style((BFP4, BFP4), (BF16, BF16), Can::All),
    style((FP8, FP8), (FP8, FP8), Can::Compute),
    Style { a: (INT8, INT8), b: (INT8, INT8), int8: true, can: Can::Compute },
    style((INT16, INT16), (INT16, INT16), Can::Move),
];

const NONE: (&str, &[u32]) = ("clear_dvalid", &[0]);

/// Arithmetic.
const COMPUTE: [Pick; 5] = [
    Pick { row: Elwadd::ROW, choices: &[NONE], weight: 3 },
    Pick { row: Elwsub::ROW, choices: &[NONE], weight: 3 },
    Pick { row: Elwmul::ROW, choices: &[NONE, ("add_dst", &[0])], weight: 4 },
    Pick { row: Mvmul::ROW, choices: &[NONE, ("broadcast_src_b_row", &[0])], weight: 6 },
    Pick { row: Gapool::ROW, choices: &[NONE, ("instr_mod19", &[1]), ("arg_max", &[0])], weight: 3 },
];

/// Moves from SrcA and SrcB to Dst, and between them. Of each only the forms that kernels use; the
/// other library has no others.
const MOVES: [Pick; 6] = [
    Pick { row: Mova2d::ROW, choices: &[("use_dst32b_lo", &[0]), ("move_8_rows", &[1])], weight: 4 },
    Pick {
        row: Movb2d::ROW,
        choices: &[("use_dst32b_lo", &[0]), ("move_4_rows", &[1]), ("broadcast_1_row_to_8", &[0])],
        weight: 3,
    },
    Pick {
        row: Movb2d::ROW,
        choices: &[("use_dst32b_lo", &[0]), ("move_4_rows", &[0]), ("broadcast_1_row_to_8", &[1])],
        weight: 3,
    },
    Pick { row: Movb2a::ROW, choices: &[("move_4_rows", &[1])], weight: 2 },
    Pick { row: Trnspsrcb::ROW, choices: &[], weight: 2 },
    Pick {
        row: Incrwc::ROW,
        choices: &[("dst_cr", &[0]), ("src_b_cr", &[0]), ("src_a_cr", &[0]), ("src_a_inc", &[0])],
        weight: 2,
    },
];

/// Moves from Dst: they need the format of Dst to be that of the registers.
const BACK: [Pick; 2] = [
    Pick { row: Movd2a::ROW, choices: &[("use_dst32b_lo", &[0]), ("move_4_rows", &[1])], weight: 1 },
    Pick { row: Movd2b::ROW, choices: &[("use_dst32b_lo", &[0])], weight: 1 },
];

/// What the pages define besides, for cases that are broad.
const BROAD: [Pick; 6] = [
    Pick { row: Mvmul::ROW, choices: &[NONE, ("broadcast_src_b_row", &[1])], weight: 1 },
    Pick { row: Gapool::ROW, choices: &[NONE, ("instr_mod19", &[0]), ("arg_max", &[0])], weight: 1 },
    Pick { row: Gmpool::ROW, choices: &[NONE, ("arg_max", &[0])], weight: 1 },
    Pick { row: Mova2d::ROW, choices: &[("use_dst32b_lo", &[0]), ("move_8_rows", &[0])], weight: 1 },
    Pick {
        row: Movb2d::ROW,
        choices: &[("use_dst32b_lo", &[0]), ("move_4_rows", &[0]), ("broadcast_1_row_to_8", &[0])],
        weight: 1,
    },
    Pick { row: Shiftxb::ROW, choices: &[], weight: 1 },
];

/// Clears rows of Dst; seldom all.
const CLEAR: [Pick; 3] = [
    Pick {
        row: Zeroacc::ROW,
        choices: &[("mode", &[1]), ("use_dst32b", &[0]), ("revert", &[0]), ("imm10", &[0, 1, 2, 3, 5, 8, 30])],
        weight: 8,
    },
    Pick {
        row: Zeroacc::ROW,
        choices: &[("mode", &[2]), ("use_dst32b", &[0]), ("revert", &[0]), ("imm10", &[1])],
        weight: 1,
    },
    Pick {
        row: Zerosrc::ROW,
        choices: &[
            ("negative_inf_src_a", &[0]),
            ("single_bank_matrix_unit", &[1]),
            ("both_banks", &[0]),
            ("src_mask", &[1, 2, 3]),
        ],
        weight: 2,
    },
];

/// Random groups.
pub(super) fn groups(rng: &mut Rng) -> (Group, Vec<Group>, Dumps) {
    let dst32 = rng.one_in(2);
    let (data, broad) = (Data::any(rng), is_broad(rng));
    // Rows of 16 bits have one layout for data with exponents of five bits and one for eight. In
    // 32-bit rows, zeros of five bits change small numbers of eight bits (docs/differences.md).
    let short = rng.one_in(3);
    let is_short = |style: &Style| [FP16, FP8].contains(&style.a.1);
    let fits = |style: &&Style| match (dst32, short) {
        (true, _) => style.can != Can::Move && (style.int8 || data == Data::Tame || is_short(style) == short),
        (false, true) => is_short(style),
        (false, false) => !is_short(style) && style.a.1 != TF32 && !style.int8,
    };
    let styles: Vec<&Style> = STYLES.iter().filter(fits).collect();
    // Integers stay among themselves: their bits in Dst mean something else.
    let integers = dst32 && rng.one_in(5);
    let styles: Vec<&Style> = styles.into_iter().filter(|style| style.int8 == integers).collect();
    let count = rng.within(1..GROUPS.min(16));
    let mut groups = Vec::new();
    for index in 0..count {
        let style = styles[rng.within(0..styles.len() as u32) as usize];
        groups.push(group(rng, index, style, Mode { dst32, data, broad }));
    }
    (Group::default(), groups, Dumps { dst: true, ..Dumps::default() })
}

/// What a case has throughout.
#[derive(Clone, Copy)]
struct Mode {
    dst32: bool,
    data: Data,
    broad: bool,
}

/// What instructions a group has.
#[derive(Clone, Copy)]
struct Kinds {
    /// The phase of fidelity changes: no sums.
    products: bool,
    /// Products of matrices, which use SrcA in steps of 16 rows, or else of elements.
    matrices: bool,
}

fn group(rng: &mut Rng, index: u32, style: &Style, mode: Mode) -> Group {
    let Mode { dst32, data, .. } = mode;
    let (a_at, b_at) = (input(index), input(index) + 0x1000);
    let mut steps = Alu { a: style.a.1, b: style.b.1, dst32, int8: style.int8 }.steps();
    let mut set_up = Unpack::new((style.a.0, style.a.1, a_at), (style.b.0, style.b.1, b_at));
    set_up.transpose = rng.one_in(4);
    steps.extend(set_up.steps());
    steps.extend([unpack(0), unpack(1), reset_counters(false)]);
    // A phase other than zero only makes sense for products (ELWADD.md).
    let products = rng.one_in(2);
    let matrices = rng.one_in(2);
    steps.extend(modes(rng, products, matrices));
    let kinds = Kinds { products, matrices };
    let each = (0..rng.within(1..8)).filter_map(|_| instruction(rng, style, mode, kinds)).map(|step| vec![step]);
    let mut each: Vec<Vec<Step>> = each.collect();
    if rng.one_in(5) {
        let words: Vec<u32> = each.drain(..).flatten().filter_map(Step::pushed).collect();
        steps.extend(expand::replayed(rng, &words));
    }
    let data = vec![(a_at, style.a.0.face(rng, data)), (b_at, style.b.0.face(rng, data))];
    Group { steps, each, end: vec![reset_counters(true)], data, outputs: Vec::new() }
}

/// Modes of addressing 0 to 3, in whole operands; with `phases` they also change the phase of
/// fidelity. A counter is cleared, or set from its copy, or neither: other mixtures are refused.
fn modes(rng: &mut Rng, phases: bool, matrices: bool) -> Vec<Step> {
    let mut settings = Settings::default();
    for slot in 0..4 {
        let source = |rng: &mut Rng, from_copy, clear| rng.pick(&[from_copy, clear]);
        let dst =
            rng.pick(&[cfg::ADDR_MOD_DST_SEC_DESTCR, cfg::ADDR_MOD_DST_SEC_DESTCLEAR, cfg::ADDR_MOD_DST_SEC_DESTCTOCR]);
        let dst = dst.copy(slot);
        let rows = |rng: &mut Rng| rng.pick(&[0, 8, 8, 16]);
        settings
            .set(cfg::ADDR_MOD_AB_SEC_SRCAINCR.copy(slot), if matrices { rng.pick(&[0, 16]) } else { rows(rng) })
            .set(
                source(rng, cfg::ADDR_MOD_AB_SEC_SRCACR, cfg::ADDR_MOD_AB_SEC_SRCACLEAR).copy(slot),
                u32::from(rng.one_in(4)),
            )
            .set(cfg::ADDR_MOD_AB_SEC_SRCBINCR.copy(slot), rows(rng))
            .set(
                source(rng, cfg::ADDR_MOD_AB_SEC_SRCBCR, cfg::ADDR_MOD_AB_SEC_SRCBCLEAR).copy(slot),
                u32::from(rng.one_in(4)),
            )
            .set(cfg::ADDR_MOD_DST_SEC_DESTINCR.copy(slot), rows(rng))
            .set(dst, u32::from(rng.one_in(3)))
            .set(cfg::ADDR_MOD_BIAS_SEC_BIASINCR.copy(slot), 0);
        if phases {
            settings
                .set(cfg::ADDR_MOD_DST_SEC_FIDELITYINCR.copy(slot), rng.within(0..4))
                .set(cfg::ADDR_MOD_DST_SEC_FIDELITYCLEAR.copy(slot), u32::from(rng.one_in(4)));
        }
    }
    settings.steps()
}

fn instruction(rng: &mut Rng, style: &Style, mode: Mode, kinds: Kinds) -> Option<Step> {
    let dst32 = mode.dst32;
    let back = match style.a.1.code {
        code if code == FP16.code => !dst32,
        code if code == TF32.code => dst32,
        _ => true,
    };
    let table: &[Pick] = match rng.within(0..16) {
        0 if mode.broad && style.can != Can::Move => &BROAD,
        0 => &CLEAR,
        1..4 if back && style.can == Can::All => &BACK,
        // Moves of data without TF32 to 32-bit rows differ (docs/differences.md).
        1..7 if style.can != Can::Compute && (!dst32 || style.a.1.code == TF32.code) => &MOVES,
        _ if style.can == Can::Move => &MOVES,
        _ => &COMPUTE,
    };
    let is = |pick: &Pick, rows: &[Row]| rows.iter().any(|row| pick.is(row));
    let fits = |pick: &Pick| {
        let sum = is(pick, &[Elwadd::ROW, Elwsub::ROW]);
        let of_elements = sum || is(pick, &[Elwmul::ROW]);
        let of_matrices = is(pick, &[Mvmul::ROW, Gapool::ROW, Gmpool::ROW]);
        let other_kind = if kinds.matrices { of_elements } else { of_matrices };
        !(other_kind || kinds.products && sum)
    };
    let pick = pick(rng, table, fits)?;
    Some(pick.word(rng, |rng, name| {
        Some(match name {
            "addr_mod" => rng.within(0..4),
            "dst_row" => rng.within(0..64) * 8,
            "src_row" | "src_a_row" | "src_b_row" => rng.within(0..2) * 8,
            "dst_inc" | "src_b_inc" => rng.within(0..2) * 8,
            _ => return None,
        })
    }))
}
