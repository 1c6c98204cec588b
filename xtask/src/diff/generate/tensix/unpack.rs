//! The unpackers: faces of all formats go to SrcA, SrcB and Dst; the matrix unit moves what is in
//! SrcA and SrcB on to Dst.

use tilework_abi::tensix::insn::{Addrcrzw, Incadczw, Mova2d, Movb2d, Setadc, Setadcxx, Setadcxy, Setadczw};

use super::super::super::rng::Rng;
use super::dump::Dumps;
use super::setup::*;
use super::step::Step;
use super::{Group, input, is_broad};

/// Conversions on the way to SrcA and SrcB, of which the other library has built the moves to Dst.
const TO_SRC: [(Format, Format); 6] =
    [(BF16, BF16), (FP16, FP16), (FP32, BF16), (BFP8, BFP8), (BFP4, BFP4), (INT16, INT16)];
/// Conversions of one that moves from SrcA only.
const TO_SRC_A: [(Format, Format); 2] = [(BFP2, BFP2), (FP8, FP8)];
/// Conversions on the way to Dst.
const TO_DST: [(Format, Format); 3] = [(FP32, FP32), (FP32, TF32), (INT32, INT32)];

/// Parts of rows of tilized input are less than this many bytes apart: sixteen of them
/// fit the input.
const TILIZED_STRIDE: u32 = 0x200;

/// 32-bit rows of Dst that belong to a group: a face for each unpacker.
const ROWS: u32 = 32;

/// Random groups.
pub(super) fn groups(rng: &mut Rng) -> (Group, Vec<Group>, Dumps) {
    let (data, broad) = (Data::any(rng), is_broad(rng));
    let dst32 = rng.one_in(2);
    let count = rng.within(1..16);
    let groups = (0..count).map(|index| group(rng, index, dst32, data, broad)).collect();
    (Group::default(), groups, Dumps { dst: true, ..Dumps::default() })
}

fn group(rng: &mut Rng, index: u32, dst32: bool, data: Data, broad: bool) -> Group {
    let (a_at, b_at) = (input(index), input(index) + 0x2000);
    let to_dst = dst32 && rng.one_in(3);
    let only_a = !to_dst && rng.one_in(6);
    let a = match (to_dst, only_a) {
        (true, _) => rng.pick(&TO_DST),
        (_, true) => rng.pick(&TO_SRC_A),
        _ if broad && rng.one_in(4) => rng.pick(&[(BFP8A, BFP8A), (FP32, FP16)]),
        // TF32 only fills 32-bit rows.
        _ if dst32 && rng.one_in(2) => (FP32, TF32),
        _ => rng.pick(&TO_SRC),
    };
    let b = a;
    let mut set_up = Unpack::new((a.0, a.1, a_at), (b.0, b.1, b_at));
    set_up.to_dst = to_dst;
    set_up.transpose = !to_dst && rng.one_in(3);
    if !to_dst && !set_up.transpose && a.0.is_plain() && rng.one_in(4) {
        set_up.stride = Some(rng.within(8..TILIZED_STRIDE / 16) * 16);
    }
    // Moves of data without TF32 to 32-bit rows differ (docs/differences.md): these go to
    // 16-bit rows.
    let dst32 = to_dst || a.1.code == TF32.code;
    let mut steps = Alu { a: a.1, b: b.1, dst32, int8: false }.steps();
    steps.extend(set_up.steps());
    if to_dst {
        steps.extend(part(rng, index));
        steps.extend([unpack_to_dst(), Step::Sync]);
    } else {
        if set_up.stride.is_none() && a.0.is_plain() && rng.one_in(3) {
            steps.push(second_face(rng));
        } else if !set_up.transpose && set_up.stride.is_none() {
            steps.extend(rows(rng));
        }
        steps.extend([unpack(0), unpack(1), reset_counters(false)]);
        // A 32-bit row lies in two 16-bit rows.
        steps.extend(moves(index * if dst32 { ROWS } else { 2 * ROWS }, only_a));
        steps.push(reset_counters(true));
    }
    // Parts of rows lie apart if they are tilized.
    let faces = if set_up.stride.is_some() { TILIZED_STRIDE * 16 / a.0.face_bytes() } else { 2 };
    let face = |rng: &mut Rng, format: Format| (0..faces).flat_map(|_| format.face(rng, data)).collect::<Vec<u8>>();
    let faces = vec![(a_at, face(rng, a.0)), (b_at, face(rng, b.0))];
    Group { steps, data: faces, ..Group::default() }
}

/// Both unpackers start at the second face, by one of the ways to change their counters.
fn second_face(rng: &mut Rng) -> Step {
    let words = [
        Setadc::build().cnt_set_mask(3).xyzw(2).new_value(1).word(),
        Setadczw::build().cnt_set_mask(3).ch0_z(1).bit_mask(1).word(),
        Incadczw::build().cnt_set_mask(3).ch0_z(1).word(),
        Addrcrzw::build().cnt_set_mask(3).ch0_z(1).bit_mask(1).word(),
    ];
    Step::Push(rng.pick(&words))
}

/// Which rows of a face are read, for both unpackers: whole rows, from any row on.
fn rows(rng: &mut Rng) -> Option<Step> {
    let first = rng.within(0..16);
    let last = rng.within(first..16);
    let insn = Setadcxx::build().cnt_set_mask(3).x0_val(first * 16).x1_val(last * 16 + 15);
    rng.one_in(3).then_some(Step::Push(insn.word()))
}

/// The face of Dst that the group writes, by the counters of its output.
fn part(rng: &mut Rng, index: u32) -> Vec<Step> {
    let y = rng.within(0..8);
    let z = Setadc::build().cnt_set_mask(1).channel(1).xyzw(2).new_value(index);
    let zero = Setadcxy::build().cnt_set_mask(1).ch1_y(y).bit_mask(0b1000).word();
    vec![Step::Push(z.word()), Step::Push(zero)]
}

/// Moves both faces to Dst, from row `to`.
fn moves(to: u32, only_a: bool) -> Vec<Step> {
    let a = |i: u32| Mova2d::build().move_8_rows(true).src_row(8 * i).addr_mod(7).dst_row(to + 8 * i).word();
    let b = |i: u32| Movb2d::build().move_4_rows(true).src_row(4 * i).addr_mod(7).dst_row(to + 16 + 4 * i).word();
    let b_rows = if only_a { 0 } else { 4 };
    (0..2).map(a).chain((0..b_rows).map(b)).map(Step::Push).collect()
}
