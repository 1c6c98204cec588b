//! The scalar unit and the configuration unit: arithmetic on general-purpose registers, loads,
//! stores and atomics of L1, and configuration words that no unit uses here.

use tilework_abi::tensix::GPR_BASE;
use tilework_abi::tensix::cfg;
use tilework_abi::tensix::insn::*;

use super::super::super::rng::Rng;
use super::dump::Dumps;
use super::operands::{Pick, pick};
use super::step::Step;
use super::{Group, input, is_broad};

/// Registers with random contents; those behind them hold addresses and offsets.
const FREE: u32 = 56;
/// Address of the data, in units of 16 bytes, for atomics, `LOADIND` and `STOREIND`.
const ADDRESS: u32 = 60;
/// Half registers with offsets in bytes. Instructions may increment them, so each group sets them.
const OFFSET: u32 = 61;
/// L1 that is read and written.
const DATA_BYTES: u32 = 0x400;

/// Words that are written: only unpackers and the packer read them, when they start.
const WORDS: [u16; 8] = {
    let base = cfg::THCON_SEC_REG3_BASE_ADDRESS;
    let (a, b) = (base.word, base.word + base.stride as u16);
    let out = cfg::UNP0_ADDR_CTRL_ZW_REG_1_ZSTRIDE.word;
    [a, a + 1, b, b + 1, out, out + 2, cfg::PCK0_ADDR_CTRL_XY_REG_0_XSTRIDE.word, cfg::THCON_SEC_REG1_L1_DEST_ADDR.word]
};

/// What can stand anywhere.
const PICKS: [Pick; 9] = [
    Pick { row: Setdmareg::ROW, choices: &[("set_signals_mode", &[0])], weight: 5 },
    Pick { row: Adddmareg::ROW, choices: &[("right_is_imm", &[0])], weight: 4 },
    Pick { row: Muldmareg::ROW, choices: &[("right_is_imm", &[0])], weight: 4 },
    Pick { row: Wrcfg::ROW, choices: &[("is_128bit", &[0])], weight: 3 },
    Pick { row: Rdcfg::ROW, choices: &[], weight: 3 },
    Pick { row: Rmwcib0::ROW, choices: &[], weight: 1 },
    Pick { row: Rmwcib1::ROW, choices: &[], weight: 1 },
    Pick { row: Rmwcib2::ROW, choices: &[], weight: 1 },
    Pick { row: Rmwcib3::ROW, choices: &[], weight: 1 },
];

/// What the pages define besides, for cases that are broad.
const BROAD: [Pick; 8] = [
    Pick { row: Adddmareg::ROW, choices: &[("right_is_imm", &[1])], weight: 1 },
    Pick { row: Subdmareg::ROW, choices: &[], weight: 1 },
    Pick { row: Bitwopdmareg::ROW, choices: &[("mode", &[0, 1, 2])], weight: 1 },
    Pick { row: Shiftdmareg::ROW, choices: &[("mode", &[0, 1])], weight: 1 },
    Pick { row: Cmpdmareg::ROW, choices: &[("mode", &[0, 1, 2])], weight: 1 },
    Pick { row: Loadind::ROW, choices: &[("addr_reg", &[ADDRESS]), ("offset_half_reg", &[2 * OFFSET])], weight: 1 },
    Pick {
        row: Storeind::ROW,
        choices: &[
            ("to_l1", &[1]),
            ("addr_reg", &[ADDRESS]),
            ("offset_half_reg", &[2 * OFFSET]),
            // Of 16 bytes: the register's number is a multiple of four.
            ("data_reg", &[0, 4, 8, 20]),
        ],
        weight: 1,
    },
    Pick { row: Atincget::ROW, choices: &[("addr_reg", &[ADDRESS])], weight: 1 },
];

/// Random groups.
pub(super) fn groups(rng: &mut Rng) -> (Group, Vec<Group>, Dumps) {
    let (at, broad) = (input(0), is_broad(rng));
    let mut steps: Vec<Step> = (0..FREE).map(|reg| Step::Write(GPR_BASE + 4 * reg, rng.edge())).collect();
    steps.extend((FREE..64).map(|reg| Step::Write(GPR_BASE + 4 * reg, 0)));
    steps.push(Step::Write(GPR_BASE + 4 * ADDRESS, at / 16));
    steps.push(Step::Copy(GPR_BASE, super::SCRATCH));
    let data = vec![(at, rng.bytes(DATA_BYTES as usize))];
    let start = Group { steps, data, outputs: vec![(at, DATA_BYTES)], ..Group::default() };
    let groups = (0..rng.within(1..80)).map(|_| group(rng, broad)).collect();
    (start, groups, Dumps { gprs: true, config: WORDS.to_vec(), ..Dumps::default() })
}

fn group(rng: &mut Rng, broad: bool) -> Group {
    let table: &[Pick] = if broad && rng.one_in(4) { &BROAD } else { &PICKS };
    let Some(pick) = pick(rng, table, |_| true) else { return Group::default() };
    let offset = rng.within(0..DATA_BYTES / 32) * 16;
    let set = Setdmareg::build().new_value(offset).result_half_reg(2 * OFFSET).word();
    let step = pick.word(rng, |rng, name| {
        Some(match name {
            "result_reg" | "left_reg" | "right_reg" | "input_reg" | "in_out_reg" => rng.within(0..FREE),
            "result_half_reg" => rng.within(0..2 * FREE),
            "cfg_index" => u32::from(rng.pick(&WORDS)),
            "index4" => u32::from(rng.pick(&WORDS)),
            _ => return None,
        })
    });
    Group { steps: vec![Step::Push(set), Step::Sync, step, Step::Sync], ..Group::default() }
}
