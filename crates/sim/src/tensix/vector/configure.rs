//! The unit's configuration, and immediates.
//!
//! Follows BlackholeA0/TensixTile/TensixCoprocessor/SFPCONFIG.md and, shared with Wormhole,
//! SFPLOADI.md.

use super::regs::Regs;
use super::{COLUMNS, DEFAULTS, LANES, Lanes, Vector, WRITABLE, blend, undefined};
use crate::tensix::config::Refusal;
use tilework_abi::tensix::insn::{Sfpconfig, Sfploadi};

/// `LaneConfig`'s fields of one bit.
const ENABLE_FP16A_INF: u32 = 0;
const DISABLE_BACKDOOR_LOAD: u32 = 1;
const ENABLE_DEST_INDEX: u32 = 2;
const CAPTURE_DEFAULT_DEST_INDEX: u32 = 3;
const BLOCK_DEST_WR_FROM_SFPU: u32 = 4;
const BLOCK_SFPU_RD_FROM_DEST: u32 = 5;
const DEST_RD_COL_EXCHANGE: u32 = 6;
const DEST_WR_COL_EXCHANGE: u32 = 7;
const EXCHANGE_SRCB_SRCC: u32 = 8;
/// First bit of `LaneConfig.BLOCK_DEST_MOV`, of two columns of Dst.
const BLOCK_DEST_MOV: u32 = 9;
/// First bit of `LaneConfig.ROW_MASK`; four rows.
const ROW_MASK: u32 = 12;
/// Bits of `LaneConfig`.
const LANE_CONFIG: u32 = 0x3_FFFF;
/// Bits of `LoadMacroConfig.Misc`.
const MISC: u32 = 0xFFF;

/// What `LaneConfig` says, for each of its meanings the lanes for which it holds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Modes {
    /// The lanes that `ROW_MASK` disables.
    pub(super) masked: u32,
    /// An instruction whose VD is a template's number is stored as that template.
    pub(super) backdoor: u32,
    pub(super) fp16_infinity: u32,
    pub(super) dest_index: u32,
    pub(super) capture_index: u32,
    pub(super) block_store: u32,
    pub(super) block_load: u32,
    pub(super) load_odd: u32,
    pub(super) store_odd: u32,
    pub(super) exchange: u32,
    /// By column of Dst: moves of the matrix unit leave it alone.
    pub(super) block_move: u16,
}

impl Default for Modes {
    fn default() -> Self {
        Self::of(&[0; COLUMNS])
    }
}

impl Modes {
    fn of(config: &[u32; COLUMNS]) -> Self {
        let columns = |bit: u32| (0..COLUMNS).fold(0, |mask, column| mask | (config[column] >> bit & 1) << column);
        let lanes = |bit: u32| columns(bit) * 0x0101_0101;
        Self {
            masked: (0..4).fold(0, |mask, row| mask | columns(ROW_MASK + row) << (8 * row)),
            backdoor: !lanes(DISABLE_BACKDOOR_LOAD),
            fp16_infinity: lanes(ENABLE_FP16A_INF),
            dest_index: lanes(ENABLE_DEST_INDEX),
            capture_index: lanes(ENABLE_DEST_INDEX) & lanes(CAPTURE_DEFAULT_DEST_INDEX),
            block_store: lanes(BLOCK_DEST_WR_FROM_SFPU),
            block_load: lanes(BLOCK_SFPU_RD_FROM_DEST),
            load_odd: lanes(DEST_RD_COL_EXCHANGE),
            store_odd: lanes(DEST_WR_COL_EXCHANGE),
            exchange: lanes(EXCHANGE_SRCB_SRCC),
            block_move: (0..COLUMNS)
                .fold(0, |mask, column| mask | ((config[column] >> BLOCK_DEST_MOV & 3) as u16) << (2 * column)),
        }
    }
}

impl Vector {
    /// `SFPCONFIG` to destination `vd`.
    pub(super) fn configure(&mut self, insn: Sfpconfig, vd: usize) {
        let (imm, mode) = (insn.imm16(), insn.mod1());
        let is_value = mode & 1 != 0;
        let combine = |old: u32, value: u32| match mode & 6 {
            0 => value,
            2 => old | value,
            4 => old & value,
            _ => old ^ value,
        };
        // The first eight lanes give the values, and their flags decide.
        for column in 0..COLUMNS {
            let masked = mode & 8 != 0 && imm >> (2 * column) & 1 == 0;
            if masked || (self.use_flags & !self.flags) >> column & 1 != 0 {
                continue;
            }
            let from_lreg = self.lregs[0][column];
            let value = if is_value { imm } else { from_lreg };
            match vd {
                0..=3 => self.macro_config[vd][column] = from_lreg,
                4..=7 => self.macro_config[vd][column] = value,
                8 => self.macro_config[8][column] = combine(self.macro_config[8][column], value & MISC),
                11..=14 => {
                    let value = if is_value { DEFAULTS[vd - 11] } else { from_lreg };
                    self.lregs[vd].iter_mut().skip(column).step_by(COLUMNS).for_each(|lane| *lane = value);
                }
                15 => {
                    let old = self.lane_config[column];
                    let high = if is_value { old & !0xFFFF } else { 0 };
                    self.lane_config[column] = combine(old, value) & LANE_CONFIG | high;
                }
                // 9 and 10 do nothing.
                _ => {}
            }
        }
        self.modes = Modes::of(&self.lane_config);
    }

    /// `SFPLOADI`.
    pub(super) fn load_immediate(&mut self, insn: Sfploadi, r: Regs, lanes: Lanes) -> Result<(), Refusal> {
        if r.d >= WRITABLE {
            return Ok(());
        }
        let imm = insn.imm16();
        // The value, and which bits of the register it replaces.
        let (value, bits) = match insn.mod0() {
            0 => (imm << 16, u32::MAX),
            1 => ((imm >> 15) << 31 | ((imm >> 10 & 0x1F) + 112) << 23 | (imm & 0x3FF) << 13, u32::MAX),
            2 => (imm, u32::MAX),
            4 => (i32::from(imm as u16 as i16).cast_unsigned(), u32::MAX),
            8 => (imm << 16, 0xFFFF_0000),
            10 => (imm, 0x0000_FFFF),
            _ => return undefined("SFPLOADI in a mode that does not exist"),
        };
        let old = self.lregs[r.d];
        let new = std::array::from_fn::<u32, LANES, _>(|lane| blend(old[lane], value, bits));
        self.write(r.d, &new, lanes.enabled);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::Bench;
    use super::*;
    use tilework_abi::tensix::insn::{Sfpencc, Sfpmov};

    fn run(words: &[u32]) -> Bench {
        let mut b = Bench::default();
        b.run(words);
        b
    }
    fn loadi(vd: u32, mode: u32, imm: u32) -> u32 {
        Sfploadi::build().vd(vd).mod0(mode).imm16(imm).word()
    }
    fn encc(imm: u32, mode: u32) -> u32 {
        Sfpencc::build().imm2(imm).mod1(mode).word()
    }
    fn config(vd: u32, mode: u32, imm: u32) -> u32 {
        Sfpconfig::build().imm16(imm).vd(vd).mod1(mode).word()
    }
    /// A move from the configuration, `vc` as `SFPCONFIG` counts.
    fn special(vc: u32, vd: u32) -> u32 {
        Sfpmov::build().vc(vc).vd(vd).mod1(8).word()
    }

    #[test]
    fn start_up_turns_flags_on_and_puts_minus_one_into_lreg_11() {
        // What BRISC's start-up pushes.
        let mut b = run(&[encc(3, 10), loadi(0, 0, 0xBF00), config(11, 0, 0)]);
        assert_eq!((b.flags(), b.use_flags()), (u32::MAX, u32::MAX));
        assert_eq!(b.lreg(11).map(f32::from_bits), [-0.5; LANES]);
        b.run(&[config(11, 1, 0)]);
        assert_eq!(b.lreg(11).map(f32::from_bits), [-1.0; LANES]);
    }

    #[test]
    fn immediates_are_converted() {
        let mut b = run(&[
            loadi(0, 1, 0x3C00),
            loadi(1, 2, 0xFFFF),
            loadi(2, 4, 0x8000),
            loadi(3, 8, 0x1234),
            loadi(3, 10, 0x5678),
        ]);
        assert_eq!(f32::from_bits(b.lreg(0)[7]), 1.0);
        assert_eq!((b.lreg(1)[0], b.lreg(2)[0], b.lreg(3)[31]), (0xFFFF, 0xFFFF_8000, 0x1234_5678));
        assert!(b.try_run(loadi(0, 3, 0)).is_err());
        b.run(&[loadi(9, 2, 5)]);
        assert_eq!(b.lreg(9), [0; LANES], "read-only");
    }

    #[test]
    fn disabled_lanes_keep_their_values() {
        // Flags on, all lanes off (E = 1, R = 0); then every lane counts again.
        let off = run(&[loadi(1, 2, 5), encc(1, 10), loadi(1, 2, 6)]);
        assert_eq!(off.lreg(1), [5; LANES]);
        let on = run(&[loadi(1, 2, 5), encc(1, 10), encc(0, 2), loadi(1, 2, 6)]);
        assert_eq!(on.lreg(1), [6; LANES]);
        // ROW_MASK bit 1 of all lanes: row 1 (lanes 8..16) is off.
        let rows = run(&[config(15, 1, 0x2000), loadi(1, 2, 6)]);
        assert_eq!([7, 8, 15, 16].map(|lane| rows.lreg(1)[lane]), [6, 0, 0, 6]);
    }

    #[test]
    fn sfpconfig_combines_and_masks_lanes() {
        let or = |imm: u32| config(15, 1 | 2, imm);
        let b = run(&[or(0x10), or(0x20), loadi(0, 2, 7), config(12, 8, 4), special(15, 1)]);
        assert_eq!(b.lreg(1)[5], 0x30);
        let changed: Vec<usize> = (0..LANES).filter(|&lane| b.lreg(12)[lane] == 7).collect();
        assert_eq!(changed, [1, 9, 17, 25], "lane mask bit 2 is column 1");
        assert_eq!(run(&[loadi(0, 2, 7), config(12, 1, 0)]).lreg(12)[0], (1.0f32 / 512.0).to_bits());
        // The high bits of LaneConfig survive an immediate.
        let high = [loadi(0, 8, 3), config(15, 0, 0), config(15, 1, 4), special(15, 1), config(15, 0, 0)];
        assert_eq!(run(&high).lreg(1)[0], 0x3_0004);
        // Misc has twelve bits.
        let misc = [config(8, 1, 0xFFFF), config(8, 1 | 6, 0xF0), special(8, 1)];
        assert_eq!(run(&misc).lreg(1)[0], 0xF0F);
    }

    #[test]
    fn high_destinations_store_the_instruction_as_a_template() {
        let template = |b: &mut Bench| {
            b.run(&[special(1, 0)]);
            b.lreg(0)
        };
        let mut b = run(&[loadi(13, 2, 9)]);
        assert_eq!(template(&mut b), [loadi(13, 2, 9); LANES]);
        let mut b = run(&[config(15, 1, 2), loadi(13, 2, 9)]);
        assert_eq!(template(&mut b), [0; LANES], "the back door is off");
        // Off in column 0 only.
        let mut b = run(&[loadi(0, 2, 2), config(15, 8, 1), loadi(13, 2, 9)]);
        let mixed = template(&mut b);
        assert_eq!((mixed[0], mixed[1], mixed[8]), (0, loadi(13, 2, 9), 0));
    }
}
