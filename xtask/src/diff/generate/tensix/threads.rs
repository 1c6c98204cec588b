//! All three threads: one unpacks tiles, one computes with them, one packs the results, and
//! semaphores keep them in order, so that the result depends on no time.

use tilework_abi::tensix::cfg;
use tilework_abi::tensix::insn::*;

use super::super::super::rng::Rng;
use super::setup::*;
use super::step::Step;
use super::{Group, input, output};

/// Faces of a tile, and its 16-bit rows.
const FACES: u32 = 4;
const ROWS: u32 = 64;
/// Posted by the pack thread: configuration may begin. Posted by the math thread: a tile is in Dst.
const CONFIGURE: u32 = 1 << 0;
const COMPUTED: u32 = 1 << 1;
/// Block masks and conditions of waits (STALLWAIT.md, SEMWAIT.md).
const ALL: u32 = 0x1FF;
const SYNC: u32 = 1 << 1;
const PACKER: u32 = 1 << 2;
const MATRIX_IS_BUSY: u32 = 1 << 4;
const PACKER_IS_BUSY: u32 = 1 << 3;
const IS_ZERO: u32 = 1;

/// What the threads do, and what is compared; of the math and the pack thread, which steps can be
/// left out.
pub(super) fn group(rng: &mut Rng) -> (Group, [Vec<(Step, bool)>; 2]) {
    let data = Data::any(rng);
    let tiles = rng.within(1..5);
    let format = rng.pick(&[(BF16, BF16), (FP16, FP16), (BFP8, BFP8), (FP32, BF16)]);
    let (a_at, b_at, at) = (input(0), input(8), output(0));
    let set_up = Unpack::new((format.0, format.1, a_at), (format.0, format.1, b_at));
    let to = rng.pick(if format.1 == FP16 { &[FP16, FP32] } else { &[BF16, BFP8] });
    let pack = Pack { from: format.1, to, ..Pack::new(at) };

    let wait = Semwait::build().block_mask(ALL).semaphore_mask(CONFIGURE).condition_mask(IS_ZERO).word();
    let mut unpacks = vec![Step::Push(wait), Step::Push(Semget::build().semaphore_mask(CONFIGURE).word()), Step::Sync];
    unpacks.extend(Alu { a: format.1, b: format.1, dst32: false, int8: false }.steps());
    unpacks.extend(set_up.steps());
    unpacks.extend((0..tiles * FACES).flat_map(|_| [unpack(0), unpack(1)]));

    let output_bytes = tiles * FACES * to.face_bytes();
    let inputs = |rng: &mut Rng| (0..tiles * FACES).flat_map(|_| format.0.face(rng, data)).collect::<Vec<u8>>();
    let unpacked = vec![(a_at, inputs(rng)), (b_at, inputs(rng)), (at, vec![0xA5; output_bytes as usize + 64])];
    let group = Group { steps: unpacks, data: unpacked, outputs: vec![(at, output_bytes + 64)], ..Group::default() };
    (group, [computes(rng, tiles), packs(&pack, tiles)])
}

/// Each face is computed in two halves; the second one gives both banks back, so that only the
/// first can be left out.
fn computes(rng: &mut Rng, tiles: u32) -> Vec<(Step, bool)> {
    let mut settings = Settings::default();
    // Of elements, of the end of a face, and of matrices, which take all of SrcA each time.
    for (slot, a, b) in [(0, 8, 8), (1, 0, 0), (2, 0, 8)] {
        let clear = u32::from(b == 0);
        settings
            .set(cfg::ADDR_MOD_AB_SEC_SRCAINCR.copy(slot), a)
            .set(cfg::ADDR_MOD_AB_SEC_SRCBINCR.copy(slot), b)
            .set(cfg::ADDR_MOD_AB_SEC_SRCACLEAR.copy(slot), clear)
            .set(cfg::ADDR_MOD_AB_SEC_SRCBCLEAR.copy(slot), clear)
            .set(cfg::ADDR_MOD_DST_SEC_DESTINCR.copy(slot), 0)
            .set(cfg::ADDR_MOD_BIAS_SEC_BIASINCR.copy(slot), 0);
    }
    let mut out: Vec<_> = settings.steps().into_iter().map(|step| (step, false)).collect();
    out.push((reset_counters(false), false));
    let post = Sempost::build().semaphore_mask(COMPUTED).word();
    let done = Stallwait::build().block_mask(SYNC).condition_mask(MATRIX_IS_BUSY).word();
    for tile in 0..tiles {
        let what = rng.within(0..4);
        for half in 0..2 * FACES {
            let end = half % 2 != 0;
            let (dst, flips) = (ROWS * tile + 8 * half, if end { 3 } else { 0 });
            let slot = u32::from(end);
            let insn = match what {
                0 => Elwadd::build().addr_mod(slot).dst_row(dst).clear_dvalid(flips).word(),
                1 => Elwsub::build().addr_mod(slot).dst_row(dst).clear_dvalid(flips).word(),
                2 => Elwmul::build().addr_mod(slot).dst_row(dst).clear_dvalid(flips).word(),
                _ => Mvmul::build().addr_mod(2 - slot).dst_row(dst).clear_dvalid(flips).word(),
            };
            out.push((Step::Push(insn), !end));
        }
        out.extend([(Step::Push(done), false), (Step::Push(post), false)]);
    }
    out
}

/// Each tile goes to L1 behind the one before.
fn packs(pack: &Pack, tiles: u32) -> Vec<(Step, bool)> {
    let mut out: Vec<Step> = [CONFIGURE, COMPUTED]
        .map(|semaphore| Step::Push(Seminit::build().semaphore_mask(semaphore).new_max(15).word()))
        .into();
    out.extend(pack.steps());
    out.extend([Step::Sync, Step::Push(Sempost::build().semaphore_mask(CONFIGURE).word())]);
    let wait = Semwait::build().block_mask(PACKER).semaphore_mask(COMPUTED).condition_mask(IS_ZERO).word();
    let done = Stallwait::build().block_mask(SYNC).condition_mask(PACKER_IS_BUSY).word();
    for tile in 0..tiles {
        out.push(Step::Push(wait));
        out.push(Step::Push(Setadc::build().cnt_set_mask(4).xyzw(3).new_value(tile).word()));
        for i in 0..4 * FACES {
            // Rows go on; at the end of a face the next face's, at the end of a tile the first.
            let addr_mod = match i {
                15 => 1,
                3 | 7 | 11 => 2,
                _ => 0,
            };
            let last = tile + 1 == tiles && i == 15;
            out.push(Step::Push(Pacr::build().addr_mod(addr_mod).last(last).word()));
        }
        out.extend([Step::Push(done), Step::Push(Semget::build().semaphore_mask(COMPUTED).word())]);
    }
    out.into_iter().map(|step| (step, false)).collect()
}
