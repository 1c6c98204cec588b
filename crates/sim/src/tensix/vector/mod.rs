//! The vector unit, as far as start-up code sets it up: constants, lane flags and configuration.
//!
//! Follows BlackholeA0/TensixTile/TensixCoprocessor/VectorUnit.md, the pages of its instructions
//! and WormholeB0/TensixTile/TensixCoprocessor/LReg.md (the same on Blackhole). Every other vector
//! instruction is a fault that names it.

use super::config::Refusal;
use crate::FaultClass;
use tilework_abi::tensix::insn::{self, Sfpconfig, Sfpencc, Sfploadi};

const LANES: usize = 32;
/// Lanes from which `SFPCONFIG` takes its input.
const COLUMNS: usize = 8;
/// `LaneConfig.DISABLE_BACKDOOR_LOAD`.
const DISABLE_BACKDOOR_LOAD: u32 = 1 << 1;
/// First bit of `LaneConfig.BLOCK_DEST_MOV`.
const BLOCK_DEST_MOV: u32 = 9;
/// First bit of `LaneConfig.ROW_MASK`.
const ROW_MASK: u32 = 12;
/// Bits of `LaneConfig`.
const LANE_CONFIG: u32 = 0x3_FFFF;
/// From this `VD` on, an instruction is stored as a template instead of being executed.
const TEMPLATES: usize = 12;

type LReg = [u32; LANES];

/// The vector unit's state.
#[derive(Debug)]
pub(super) struct Vector {
    /// `LReg[0..8]`, and in 11..15 the constants that `SFPCONFIG` sets.
    lregs: [LReg; 15],
    lane_config: LReg,
    /// `LaneFlags`, by lane.
    flags: u32,
    /// `UseLaneFlagsForLaneEnable`, by lane.
    use_flags: u32,
    /// `LoadMacroConfig`: four templates, four sequences, `Misc`.
    macros: [LReg; 9],
}

/// What `LReg[11..15]` hold after reset, and what `SFPCONFIG` without a value puts there: -1,
/// 1/65536, -0.67487759, -0.34484843.
const DEFAULTS: [u32; 4] =
    [(-1.0f32).to_bits(), (1.0f32 / 65536.0).to_bits(), (-0.674_877_6f32).to_bits(), (-0.344_848_43f32).to_bits()];

impl Default for Vector {
    fn default() -> Self {
        let mut lregs = [[0; LANES]; 15];
        lregs[8] = [0.8373f32.to_bits(); LANES];
        lregs[10] = [1.0f32.to_bits(); LANES];
        for (lreg, value) in lregs[11..].iter_mut().zip(DEFAULTS) {
            *lreg = [value; LANES];
        }
        Self { lregs, lane_config: [0; LANES], flags: 0, use_flags: 0, macros: [[0; LANES]; 9] }
    }
}

impl Vector {
    /// Executes one instruction.
    pub(super) fn execute(&mut self, insn: insn::VectorOp) -> Result<(), Refusal> {
        match insn {
            insn::VectorOp::Sfploadi(insn) => self.load_immediate(insn)?,
            insn::VectorOp::Sfpencc(insn) => self.enable_flags(insn),
            insn::VectorOp::Sfpnop(_) => {}
            insn::VectorOp::Sfpconfig(insn) => self.configure(insn),
        }
        Ok(())
    }

    /// By column of Dst: moves of the matrix unit leave it alone (`BLOCK_DEST_MOV`, SFPCONFIG.md).
    pub(super) fn blocked_columns(&self) -> u16 {
        let lanes = self.lane_config[..COLUMNS].iter().enumerate();
        lanes.fold(0, |all, (lane, config)| all | ((config >> BLOCK_DEST_MOV & 3) as u16) << (2 * lane))
    }

    fn is_lane_enabled(&self, lane: usize) -> bool {
        let masked = self.lane_config[lane % COLUMNS] >> ROW_MASK >> (lane / COLUMNS) & 1 != 0;
        !masked && (self.use_flags >> lane & 1 == 0 || self.flags >> lane & 1 != 0)
    }

    /// Whether the lane executes an instruction whose destination is `vd`; if not, it stores it as
    /// a template.
    fn executes(&self, lane: usize, vd: usize) -> bool {
        vd < TEMPLATES || self.lane_config[lane] & DISABLE_BACKDOOR_LOAD != 0
    }

    fn load_immediate(&mut self, insn: Sfploadi) -> Result<(), Refusal> {
        let (vd, mode, imm) = (insn.vd() as usize, insn.mod0(), insn.imm16());
        if !matches!(mode, 0 | 1 | 2 | 4 | 8 | 10) {
            return Err((FaultClass::UndefinedBehavior, "SFPLOADI in a mode that does not exist"));
        }
        for lane in 0..LANES {
            if !self.executes(lane, vd) {
                self.macros[vd - TEMPLATES][lane] = insn.word();
            } else if vd < 8 && self.is_lane_enabled(lane) {
                let slot = &mut self.lregs[vd][lane];
                *slot = match mode {
                    0 => imm << 16,
                    1 => (imm >> 15) << 31 | ((imm >> 10 & 0x1F) + 112) << 23 | (imm & 0x3FF) << 13,
                    2 => imm,
                    4 => i32::from(imm as u16 as i16).cast_unsigned(),
                    8 => imm << 16 | *slot & 0xFFFF,
                    _ => *slot & 0xFFFF_0000 | imm,
                };
            }
        }
        Ok(())
    }

    fn enable_flags(&mut self, insn: Sfpencc) {
        let (imm, vd, mode) = (insn.imm2(), insn.vd() as usize, insn.mod1());
        for lane in 0..LANES {
            if !self.executes(lane, vd) {
                self.macros[vd - TEMPLATES][lane] = insn.word();
                continue;
            }
            let bit = 1 << lane;
            match mode & 3 {
                2 | 3 if imm & 1 != 0 => self.use_flags |= bit,
                2 | 3 => self.use_flags &= !bit,
                1 => self.use_flags ^= bit,
                _ => {}
            }
            if mode & 8 != 0 && imm & 2 == 0 {
                self.flags &= !bit;
            } else {
                self.flags |= bit;
            }
        }
    }

    fn configure(&mut self, insn: Sfpconfig) {
        let (imm, vd, mode) = (insn.imm16(), insn.vd() as usize, insn.mod1());
        let is_value = mode & 1 != 0;
        let combine = |old: u32, value: u32| match mode & 6 {
            0 => value,
            2 => old | value,
            4 => old & value,
            _ => old ^ value,
        };
        // The first eight lanes decide, as they were before.
        let (flags, use_flags) = (self.flags, self.use_flags);
        for lane in 0..LANES {
            let column = lane % COLUMNS;
            let masked = mode & 8 != 0 && imm >> (2 * column) & 1 == 0;
            if masked || (use_flags >> column & 1 != 0 && flags >> column & 1 == 0) {
                continue;
            }
            let from_lreg = self.lregs[0][column];
            let value = if is_value { imm } else { from_lreg };
            match vd {
                0..=3 => self.macros[vd][lane] = from_lreg,
                4..=7 => self.macros[vd][lane] = value,
                8 => self.macros[8][lane] = combine(self.macros[8][lane], value & 0xFFF),
                11..=14 => self.lregs[vd][lane] = if is_value { DEFAULTS[vd - 11] } else { from_lreg },
                15 => {
                    let old = self.lane_config[lane];
                    let high = if is_value { old & LANE_CONFIG & !0xFFFF } else { 0 };
                    self.lane_config[lane] = combine(old, value) & LANE_CONFIG | high;
                }
                // 9 and 10 do nothing.
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn execute(v: &mut Vector, word: u32) -> Result<(), Refusal> {
        v.execute(insn::VectorOp::decode(word).expect("a built instruction"))
    }

    fn run(words: &[u32]) -> Vector {
        let mut v = Vector::default();
        for &word in words {
            assert_eq!(execute(&mut v, word), Ok(()), "{word:#x}");
        }
        v
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

    #[test]
    fn start_up_turns_flags_on_and_puts_minus_one_into_lreg_11() {
        // What BRISC's start-up pushes.
        let mut v = Vector::default();
        v.lregs[11] = [0; LANES];
        for word in [encc(3, 10), loadi(0, 0, 0xBF80), config(11, 0, 0)] {
            execute(&mut v, word).unwrap();
        }
        assert_eq!((v.flags, v.use_flags), (u32::MAX, u32::MAX));
        assert_eq!(v.lregs[11].map(f32::from_bits), [-1.0; LANES]);
    }

    #[test]
    fn immediates_are_converted() {
        let v = run(&[
            loadi(0, 1, 0x3C00),
            loadi(1, 2, 0xFFFF),
            loadi(2, 4, 0x8000),
            loadi(3, 8, 0x1234),
            loadi(3, 10, 0x5678),
        ]);
        assert_eq!(f32::from_bits(v.lregs[0][7]), 1.0);
        assert_eq!((v.lregs[1][0], v.lregs[2][0], v.lregs[3][31]), (0xFFFF, 0xFFFF_8000, 0x1234_5678));
        assert!(execute(&mut Vector::default(), loadi(0, 3, 0)).is_err());
        assert_eq!(insn::VectorOp::decode(insn::Sfpmad::build().word()), None, "not built");
    }

    #[test]
    fn disabled_lanes_keep_their_values() {
        // Flags on, all lanes off (E = 1, R = 0); then every lane counts again.
        let off = run(&[loadi(1, 2, 5), encc(1, 10), loadi(1, 2, 6)]);
        assert_eq!(off.lregs[1], [5; LANES]);
        let on = run(&[loadi(1, 2, 5), encc(1, 10), encc(0, 2), loadi(1, 2, 6)]);
        assert_eq!(on.lregs[1], [6; LANES]);
        // ROW_MASK bit 1 of all lanes: row 1 (lanes 8..16) is off.
        let rows = run(&[config(15, 1, 0x2000), loadi(1, 2, 6)]);
        assert_eq!((rows.lregs[1][7], rows.lregs[1][8], rows.lregs[1][15], rows.lregs[1][16]), (6, 0, 0, 6));
    }

    #[test]
    fn sfpconfig_combines_and_masks_lanes() {
        let or = |imm: u32| config(15, 1 | 2, imm);
        let v = run(&[or(0x10), or(0x20), loadi(0, 2, 7), config(12, 8, 4)]);
        assert_eq!(v.lane_config[5], 0x30);
        let changed: Vec<usize> = (0..LANES).filter(|&l| v.lregs[12][l] == 7).collect();
        assert_eq!(changed, [1, 9, 17, 25], "lane mask bit 2 is column 1");
        assert_eq!(run(&[loadi(0, 2, 7), config(12, 1, 0)]).lregs[12][0], (1.0f32 / 65536.0).to_bits());
    }

    #[test]
    fn high_destinations_store_the_instruction_as_a_template() {
        let v = run(&[loadi(13, 2, 9)]);
        assert_eq!(v.macros[1], [loadi(13, 2, 9); LANES]);
        let v = run(&[config(15, 1, 2), loadi(13, 2, 9)]);
        assert_eq!(v.macros[1], [0; LANES], "the back door is off");
    }
}
