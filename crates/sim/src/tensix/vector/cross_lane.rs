//! What moves data between lanes and between registers: swaps, shuffles, transposition.
//!
//! Follows BlackholeA0/TensixTile/TensixCoprocessor/{SFPSWAP,SFPSHFT2}.md and, shared with
//! Wormhole, SFPTRANSP.md.

use super::hazard;
use super::integer::shift;
use super::predicate::is_smaller;
use super::regs::Regs;
use super::{COLUMNS, LANES, LReg, Lanes, Vector, WRITABLE, blend, lanes_where, undefined};
use crate::tensix::config::Refusal;
use tilework_abi::tensix::insn::{Sfpshft2, Sfpswap};

/// `SFPSWAP_MOD1_SWAP`.
const SWAP: u32 = 0;
/// The lanes in which VD gets the smaller value, by mode: none in mode 9 and, "current silicon
/// behavior", in higher ones.
const MINIMA: [u32; 16] = [
    0,
    0xFFFF_FFFF,
    0x0000_FFFF,
    0x00FF_00FF,
    0xFF00_00FF,
    0x0000_00FF,
    0x0000_FF00,
    0x00FF_0000,
    0xFF00_0000,
    0,
    0,
    0,
    0,
    0,
    0,
    0,
];
/// The first of the registers that hold indices.
const INDICES: usize = 4;
/// Registers whose rows `SFPTRANSP` exchanges.
const BLOCK: usize = 4;

/// In each row, every lane gets the value of the one before; the first that of the last, or zero.
fn shift_lanes(lreg: &LReg, rotate: bool) -> LReg {
    std::array::from_fn(|lane| match lane % COLUMNS {
        0 if rotate => lreg[lane + COLUMNS - 1],
        0 => 0,
        _ => lreg[lane - 1],
    })
}

impl Vector {
    /// In which of the lanes `SFPSWAP` swaps.
    pub(super) fn swaps(&self, mode: u32, r: Regs, lanes: Lanes) -> u32 {
        if mode == SWAP {
            return lanes.enabled;
        }
        self.out_of_order(mode, &self.lregs[r.c], &self.lregs[r.d], lanes)
    }

    /// In which of the lanes the values of VC and VD are to be exchanged.
    fn out_of_order(&self, mode: u32, c: &LReg, d: &LReg, lanes: Lanes) -> u32 {
        let c_is_smaller = lanes_where(|lane| is_smaller(c[lane], d[lane]));
        let minima = MINIMA[mode as usize & 15];
        lanes.enabled & (blend(!c_is_smaller, c_is_smaller, minima) ^ self.modes.exchange)
    }

    pub(super) fn swap(&mut self, insn: Sfpswap, r: Regs, lanes: Lanes) {
        let mask = self.swaps(insn.mod1(), r, lanes);
        self.exchange(r, mask);
    }

    /// `SFPSWAP` that compares a register before the result that is on its way arrives.
    pub(super) fn swap_early(&mut self, insn: Sfpswap, r: Regs, lanes: Lanes) -> Result<(), Refusal> {
        let (old_c, old_d) = (self.hazards.before(r.c), self.hazards.before(r.d));
        if old_c.or(old_d).is_none() {
            // Any register may be the one that is written.
            return hazard::refuse();
        }
        let (c, d) = (old_c.unwrap_or(&self.lregs[r.c]), old_d.unwrap_or(&self.lregs[r.d]));
        let mask = self.out_of_order(insn.mod1(), c, d, lanes);
        self.exchange(r, mask);
        Ok(())
    }

    /// Exchanges VC and VD in the lanes of `mask`, and what belongs to them.
    pub(super) fn exchange(&mut self, r: Regs, mask: u32) {
        let (c, d) = (self.lregs[r.c], self.lregs[r.d]);
        let indexed = mask & self.modes.dest_index;
        let plain = mask & !indexed;
        for (to, values) in [(r.c, &d), (r.d, &c)] {
            if to < WRITABLE {
                self.write(to, values, if to < INDICES { mask } else { plain });
            }
        }
        if indexed != 0 {
            let (ci, di) = (INDICES + r.c % INDICES, INDICES + r.d % INDICES);
            let (c, d) = (self.lregs[ci], self.lregs[di]);
            self.write(ci, &d, indexed);
            self.write(di, &c, indexed);
        }
    }

    pub(super) fn shift_2(&mut self, insn: Sfpshft2, r: Regs, lanes: Lanes) -> Result<(), Refusal> {
        match insn.mod1() {
            0 => self.copy_4(&[0; LANES], lanes),
            1 => {
                let first = self.lregs[0];
                self.copy_4(&std::array::from_fn(|lane| first.get(lane + COLUMNS).copied().unwrap_or(0)), lanes);
            }
            2 => self.copy_4(&shift_lanes(&self.lregs[r.c], true), lanes),
            mode @ (3 | 4) => {
                let shifted = shift_lanes(&self.lregs[r.c], mode == 3);
                self.write(r.d, &shifted, lanes.enabled);
            }
            5 => self.binary(r, lanes, |b, c| shift(b, c, false)),
            6 => {
                let imm = insn.imm12().cast_unsigned();
                self.binary(r, lanes, |b, _| shift(b, imm, false));
            }
            _ => return undefined("SFPSHFT2 in a mode that does not exist"),
        }
        Ok(())
    }

    /// `LReg[0..3]` get the values of the next register, `LReg[3]` those of `last`.
    fn copy_4(&mut self, last: &LReg, lanes: Lanes) {
        let [_, l1, l2, l3] = [0, 1, 2, 3].map(|i| self.lregs[i]);
        for (d, values) in [&l1, &l2, &l3, last].into_iter().enumerate() {
            self.write(d, values, lanes.enabled);
        }
    }

    pub(super) fn transpose(&mut self, lanes: Lanes) {
        for base in [0, BLOCK] {
            let old: [LReg; BLOCK] = std::array::from_fn(|i| self.lregs[base + i]);
            for i in 0..BLOCK {
                let new = std::array::from_fn(|lane| old[lane / COLUMNS][i * COLUMNS + lane % COLUMNS]);
                self.write(base + i, &new, lanes.enabled);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Bench, lane_values};
    use super::*;
    use tilework_abi::tensix::insn::{Sfpconfig, Sfptransp};

    fn numbered(first: u32) -> LReg {
        std::array::from_fn(|lane| first + lane as u32)
    }

    #[test]
    fn minima_and_maxima_by_rows() {
        // Rows in which VD gets the smaller value, by mode.
        let rows = [0b1111, 0b0011, 0b0101, 0b1001, 0b0001, 0b0010, 0b0100, 0b1000, 0, 0];
        for (mode, rows) in (1..).zip(rows) {
            let mut b = Bench::default();
            b.set(0, std::array::from_fn(|lane| if lane % 2 == 0 { 5 } else { 9 }));
            b.set(1, std::array::from_fn(|lane| if lane % 2 == 0 { 9 } else { 5 }));
            b.run(&[Sfpswap::build().vc(0).vd(1).mod1(mode).word()]);
            for row in 0..4 {
                let (small, great) = if rows >> row & 1 != 0 { (1, 0) } else { (0, 1) };
                assert_eq!(b.lreg(small)[row * 8..][..8], [5; 8], "{mode}, row {row}");
                assert_eq!(b.lreg(great)[row * 8..][..8], [9; 8], "{mode}, row {row}");
            }
        }
    }

    #[test]
    fn swaps_can_be_inverted_and_carry_indices() {
        let exchange = Sfpconfig::build().imm16(0x100).vd(15).mod1(1).word();
        let mut b = Bench::default();
        b.set(0, [5; LANES]);
        b.set(1, [9; LANES]);
        b.run(&[exchange, Sfpswap::build().vc(0).vd(1).mod1(1).word()]);
        assert_eq!((b.lreg(0)[0], b.lreg(1)[0]), (5, 9), "VD has the greater one");
        let mut b = Bench::default();
        (0..8).for_each(|i| b.set(i, [100 + i as u32; LANES]));
        b.set(2, lane_values(&[1000, 1]));
        b.run(&[Sfpconfig::build().imm16(4).vd(15).mod1(1).word(), Sfpswap::build().vc(1).vd(2).mod1(1).word()]);
        // Lane 0: 1000 goes to VC, and the indices with it; lane 1 stays.
        assert_eq!([1, 2, 5, 6].map(|i| b.lreg(i)[0]), [1000, 101, 106, 105]);
        assert_eq!([1, 2, 5, 6].map(|i| b.lreg(i)[1]), [101, 1, 105, 106]);
        b.run(&[Sfpswap::build().vc(4).vd(3).word()]);
        // With indices, a register behind the first four only names a pair of indices.
        assert_eq!([3, 4, 7].map(|i| b.lreg(i)[0]), [104, 107, 104]);
    }

    #[test]
    fn shuffles_of_registers_and_lanes() {
        let after = |word: u32| {
            let mut b = Bench::default();
            (0..4).for_each(|i| b.set(i, numbered(100 * i as u32)));
            b.run(&[word]);
            [0, 1, 2, 3].map(|i| b.lreg(i))
        };
        let shuffle = |mode: u32| Sfpshft2::build().vc(0).vd(3).mod1(mode).word();
        assert_eq!(after(shuffle(0)), [numbered(100), numbered(200), numbered(300), [0; LANES]]);
        let chained = after(shuffle(1))[3];
        assert_eq!((chained[0], chained[23], chained[24], chained[31]), (8, 31, 0, 0));
        let rotated = after(shuffle(2));
        assert_eq!((rotated[2], rotated[3][..9].to_vec()), (numbered(300), vec![7, 0, 1, 2, 3, 4, 5, 6, 15]));
        assert_eq!(after(shuffle(3))[3], rotated[3]);
        let shifted = after(shuffle(4))[3];
        assert_eq!((shifted[0], shifted[1], shifted[8], shifted[31]), (0, 0, 0, 30));
    }

    #[test]
    fn shifts_of_the_second_kind() {
        let mut b = Bench::default();
        b.set(0, [0x8000_0010; LANES]);
        b.set(1, lane_values(&[4, 0u32.wrapping_sub(4)]));
        b.run(&[Sfpshft2::build().vb(0).vc(1).vd(2).mod1(5).word()]);
        assert_eq!((b.lreg(2)[0], b.lreg(2)[1]), (0x100, 0x0800_0001));
        // An immediate of 0x10: VB 0, by 16; of -16: VB 0, by 16 to the right.
        b.run(&[Sfpshft2::build().imm12(16).vd(2).mod1(6).word(), Sfpshft2::build().imm12(-16).vd(3).mod1(6).word()]);
        assert_eq!((b.lreg(2)[0], b.lreg(3)[0]), (0x10_0000, 0x8000));
        assert!(b.try_run(Sfpshft2::build().mod1(7).word()).is_err());
    }

    #[test]
    fn rows_are_transposed_within_blocks_of_four_registers() {
        let mut b = Bench::default();
        (0..8).for_each(|i| b.set(i, numbered(100 * i as u32)));
        b.run(&[Sfptransp::build().word()]);
        assert_eq!((b.lreg(1)[0], b.lreg(1)[7], b.lreg(1)[31], b.lreg(0)[10]), (8, 15, 315, 102));
        assert_eq!((b.lreg(6)[0], b.lreg(6)[8], b.lreg(7)[31]), (416, 516, 731));
    }
}
