//! The vector unit: its registers are loaded from Dst, which an unpacker has filled with numbers,
//! and random instructions follow; also under lane flags.

use tilework_abi::tensix::insn::*;

use super::super::super::rng::Rng;
use super::dump::Dumps;
use super::operands::{Pick, pick};
use super::setup::*;
use super::step::Step;
use super::{Group, expand, input, is_broad};

/// Writable registers.
const REGISTERS: u32 = 8;
/// Sources: these, eight constants of which four are programmed. The lane number (15)
/// is an integer.
const SOURCES: u32 = 16;
/// Faces of Dst that are filled.
const FACES: u32 = 4;

const ONE: u32 = 10;
const ZERO: u32 = 9;

/// What can stand anywhere. The values of `mod0` and `mod1` are those that the page of the
/// instruction defines and the other library has built.
const PICKS: [Pick; 41] = [
    Pick { row: Sfpload::ROW, choices: &[("mod0", &[0, 2, 3, 4, 6, 12, 14, 15]), ("addr_mod", &[7])], weight: 6 },
    Pick {
        row: Sfpstore::ROW,
        choices: &[("mod0", &[0, 2, 3, 4, 6, 7, 9, 12, 14, 15]), ("addr_mod", &[7])],
        weight: 6,
    },
    Pick { row: Sfploadi::ROW, choices: &[("mod0", &[0, 1, 2, 4, 8, 10])], weight: 6 },
    Pick { row: Sfpmad::ROW, choices: &[("mod1", &[0, 0, 0, 1, 2, 3])], weight: 8 },
    Pick { row: Sfpadd::ROW, choices: &[("va", &[ONE]), ("mod1", &[0, 0, 1, 2, 3])], weight: 4 },
    Pick { row: Sfpmul::ROW, choices: &[("vc", &[ZERO]), ("mod1", &[0, 0, 1])], weight: 4 },
    Pick { row: Sfpmuli::ROW, choices: &[("mod1", &[0])], weight: 2 },
    Pick { row: Sfpaddi::ROW, choices: &[("mod1", &[0])], weight: 2 },
    Pick { row: Sfpdivp2::ROW, choices: &[("mod1", &[0, 1]), ("imm8", &[0, 1, 2, 5, 31, 127])], weight: 2 },
    Pick { row: Sfpexexp::ROW, choices: &[("mod1", &[0, 1])], weight: 2 },
    Pick { row: Sfpexman::ROW, choices: &[("mod1", &[0, 1])], weight: 2 },
    Pick { row: Sfpiadd::ROW, choices: &[("mod1", &[4, 5, 6])], weight: 4 },
    Pick { row: Sfpshft::ROW, choices: &[("mod1", &[1, 3, 5, 7])], weight: 2 },
    Pick { row: Sfpshft::ROW, choices: &[("mod1", &[0, 2]), ("imm12", &[0])], weight: 2 },
    Pick { row: Sfpmov::ROW, choices: &[("mod1", &[0, 1, 2])], weight: 3 },
    Pick { row: Sfpabs::ROW, choices: &[("mod1", &[0, 1])], weight: 2 },
    Pick { row: Sfpand::ROW, choices: &[("mod1", &[0]), ("vb", &[0])], weight: 1 },
    Pick { row: Sfpand::ROW, choices: &[("mod1", &[1])], weight: 1 },
    Pick { row: Sfpor::ROW, choices: &[("mod1", &[0]), ("vb", &[0])], weight: 1 },
    Pick { row: Sfpor::ROW, choices: &[("mod1", &[1])], weight: 1 },
    Pick { row: Sfpnot::ROW, choices: &[], weight: 2 },
    Pick { row: Sfpxor::ROW, choices: &[], weight: 2 },
    Pick { row: Sfplz::ROW, choices: &[("mod1", &[0, 4])], weight: 2 },
    Pick { row: Sfpsetexp::ROW, choices: &[("mod1", &[1])], weight: 2 },
    Pick { row: Sfpsetexp::ROW, choices: &[("mod1", &[0, 2]), ("imm8", &[0])], weight: 2 },
    Pick { row: Sfpsetman::ROW, choices: &[("mod1", &[0, 1]), ("imm12", &[0])], weight: 2 },
    Pick { row: Sfpsetsgn::ROW, choices: &[("mod1", &[1])], weight: 1 },
    Pick { row: Sfpsetsgn::ROW, choices: &[("mod1", &[0]), ("imm1", &[0])], weight: 1 },
    Pick { row: Sfpcast::ROW, choices: &[("mod1", &[0, 3])], weight: 2 },
    Pick { row: Sfpswap::ROW, choices: &[("mod1", &[0, 1, 2, 3, 9])], weight: 3 },
    Pick { row: Sfptransp::ROW, choices: &[("vd", &[0])], weight: 2 },
    Pick {
        row: SfpStochRnd::ROW,
        choices: &[("use_imm5", &[0]), ("mod1", &[1, 2, 3, 6, 7]), ("rounding_mode", &[0]), ("vb", &[0])],
        weight: 3,
    },
    Pick { row: Sfpgt::ROW, choices: &[("mod1", &[8])], weight: 2 },
    Pick { row: Sfple::ROW, choices: &[("mod1", &[8])], weight: 2 },
    Pick { row: Sfpmul24::ROW, choices: &[("vc", &[ZERO]), ("mod1", &[0, 1])], weight: 2 },
    Pick { row: Sfparecip::ROW, choices: &[("mod1", &[0]), ("vb", &[0])], weight: 2 },
    Pick { row: Sfpshft2::ROW, choices: &[("mod1", &[3, 4]), ("vb", &[0])], weight: 2 },
    Pick { row: Sfpshft2::ROW, choices: &[("mod1", &[5])], weight: 1 },
    Pick { row: Sfplutfp32::ROW, choices: &[("mod1", &[2]), ("mod1_mirror", &[0])], weight: 1 },
    Pick { row: Sfplut::ROW, choices: &[("mod0", &[4])], weight: 1 },
    Pick { row: Sfpnop::ROW, choices: &[], weight: 1 },
];

/// What sets lane flags, between `SFPPUSHC` and `SFPPOPC`.
const FLAGS: [Pick; 7] = [
    Pick { row: Sfpsetcc::ROW, choices: &[("vd", &[0]), ("mod1", &[0, 2, 4, 6]), ("imm1", &[0])], weight: 4 },
    Pick { row: Sfpgt::ROW, choices: &[("mod1", &[1])], weight: 2 },
    Pick { row: Sfple::ROW, choices: &[("mod1", &[1])], weight: 2 },
    Pick { row: Sfpiadd::ROW, choices: &[("mod1", &[0, 1, 2, 8, 9, 10])], weight: 2 },
    Pick { row: Sfpexexp::ROW, choices: &[("mod1", &[2, 10])], weight: 1 },
    Pick { row: Sfplz::ROW, choices: &[("mod1", &[2])], weight: 1 },
    Pick { row: Sfpcompc::ROW, choices: &[("vd", &[0])], weight: 2 },
];

/// What the pages define besides, for cases that are broad.
const BROAD: [Pick; 11] = [
    Pick { row: Sfpload::ROW, choices: &[("mod0", &[1, 5, 7, 8, 9, 13]), ("addr_mod", &[7])], weight: 3 },
    Pick { row: Sfpstore::ROW, choices: &[("mod0", &[1, 5, 8, 11, 13]), ("addr_mod", &[7])], weight: 3 },
    Pick { row: Sfpand::ROW, choices: &[("mod1", &[0])], weight: 1 },
    Pick { row: Sfpor::ROW, choices: &[("mod1", &[0])], weight: 1 },
    Pick { row: Sfpsetman::ROW, choices: &[("mod1", &[1])], weight: 1 },
    Pick { row: Sfplz::ROW, choices: &[("mod1", &[6, 8, 10, 12, 14])], weight: 1 },
    Pick { row: Sfpexexp::ROW, choices: &[("mod1", &[8, 9, 11])], weight: 1 },
    Pick { row: Sfparecip::ROW, choices: &[("mod1", &[1, 2, 3]), ("vb", &[0])], weight: 1 },
    Pick { row: Sfpgt::ROW, choices: &[("mod1", &[2, 4, 9])], weight: 1 },
    Pick { row: Sfple::ROW, choices: &[("mod1", &[2, 4, 9])], weight: 1 },
    Pick { row: Sfpcast::ROW, choices: &[("mod1", &[2])], weight: 1 },
];

/// Random groups.
pub(super) fn groups(rng: &mut Rng) -> (Group, Vec<Group>, Dumps) {
    let data = Data::any(rng);
    let start = start(rng, data);
    let broad = is_broad(rng);
    let groups = (0..rng.within(1..60)).map(|_| group(rng, broad)).collect();
    (start, groups, Dumps { dst: true, lregs: true, ..Dumps::default() })
}

/// Fills rows of Dst and all registers.
fn start(rng: &mut Rng, data: Data) -> Group {
    let at = input(0);
    let mut steps = Alu { a: FP32, b: FP32, dst32: rng.one_in(2), int8: false }.steps();
    let face = (FP32, FP32, at);
    let mut set_up = Unpack::new(face, (BF16, BF16, at));
    set_up.to_dst = true;
    steps.extend(set_up.steps());
    steps.extend((0..FACES).map(|_| unpack_to_dst()));
    steps.extend([Step::Sync, reset_counters(false)]);
    // All lanes are enabled, and lane flags decide.
    steps.push(Step::Push(Sfpencc::build().imm2(3).mod1(10).word()));
    for reg in 0..REGISTERS {
        steps.push(Step::Push(Sfpload::build().vd(reg).mod0(4).addr_mod(7).imm10(4 * reg).word()));
        steps.push(nop());
    }
    let words = (0..FACES).flat_map(|_| if rng.one_in(4) { INT32.face(rng, data) } else { FP32.face(rng, data) });
    Group { steps, data: vec![(at, words.collect())], ..Group::default() }
}

/// One instruction, or a few under lane flags.
fn group(rng: &mut Rng, broad: bool) -> Group {
    if rng.one_in(24) {
        return Group { steps: constant(rng), ..Group::default() };
    }
    if rng.one_in(12) {
        return Group { steps: expanded(rng), ..Group::default() };
    }
    if !rng.one_in(4) {
        let table: &[Pick] = if broad && rng.one_in(8) { &BROAD } else { &PICKS };
        return Group { steps: one(rng, table), ..Group::default() };
    }
    let mut each = Vec::new();
    for _ in 0..rng.within(1..4) {
        each.push(one(rng, &FLAGS));
        for _ in 0..rng.within(0..3) {
            each.push(one(rng, &PICKS));
        }
    }
    let steps = vec![Step::Push(Sfppushc::build().word()), nop()];
    let end = vec![Step::Push(Sfppopc::build().word()), nop()];
    Group { steps, each, end, ..Group::default() }
}

/// Instructions that are replayed, or come out of the MOP expander.
fn expanded(rng: &mut Rng) -> Vec<Step> {
    let word = |rng: &mut Rng| one(rng, &PICKS).first().and_then(|step| step.pushed()).unwrap_or(PAUSE);
    match rng.within(0..3) {
        0 => {
            let words: Vec<u32> = (0..rng.within(1..16)).flat_map(|_| [word(rng), PAUSE]).collect();
            expand::replayed(rng, &words)
        }
        1 => {
            let pair = [word(rng), word(rng)];
            expand::loops(rng, pair, PAUSE)
        }
        _ => {
            let pair = [word(rng), word(rng)];
            expand::masked(rng, pair, PAUSE)
        }
    }
}

/// A random instruction and the pause that some instructions need after them.
fn one(rng: &mut Rng, table: &[Pick]) -> Vec<Step> {
    let Some(pick) = pick(rng, table, |_| true) else { return Vec::new() };
    let step = pick.word(rng, |rng, name| {
        Some(match name {
            "vd" => rng.within(0..REGISTERS),
            "va" | "vb" | "vc" if rng.one_in(4) => rng.within(0..SOURCES),
            "va" | "vb" | "vc" => rng.within(0..REGISTERS),
            // Rows that are filled, and as many behind them.
            "imm10" => rng.within(0..64) * 2,
            _ => return None,
        })
    });
    vec![step, nop()]
}

/// Programs a constant with a value that is the same in all lanes.
fn constant(rng: &mut Rng) -> Vec<Step> {
    let value = Sfploadi::build().mod0(0).imm16(number(rng, 8, 7, Data::Tame)).word();
    let constant = Sfpconfig::build().vd(11 + rng.within(0..4)).word();
    vec![Step::Push(value), nop(), Step::Push(constant), nop()]
}

/// What some instructions need after them.
const PAUSE: u32 = Sfpnop::build().word();

fn nop() -> Step {
    Step::Push(PAUSE)
}
