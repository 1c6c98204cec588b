//! Predication: lane flags, their stack, and comparisons.
//!
//! Follows BlackholeA0/TensixTile/TensixCoprocessor/{VectorUnit,SFPENCC,SFPPUSHC,SFPPOPC,SFPGT,
//! SFPLE}.md ("Lane Predication Masks" of the first) and, shared with Wormhole, SFPSETCC.md and
//! SFPCOMPC.md.

use super::regs::Regs;
use super::{LANES, Lanes, SIGN, Vector, blend, lanes_where, undefined};
use crate::tensix::config::Refusal;
use tilework_abi::tensix::insn::{Sfpencc, Sfppopc, Sfppushc, Sfpsetcc};

/// Entries that the stack can hold.
const DEPTH: usize = 8;
/// `SFPSETCC_MOD1_IMM_BIT0`.
const IMMEDIATE: u32 = 1;
/// `SFPSETCC_MOD1_CLEAR`.
const CLEAR: u32 = 8;
/// `SFPGT_MOD1_SET_CC` and its like of `SFPLE`.
const SET_FLAGS: u32 = 1;
/// `SFPGT_MOD1_MUTATE_STACK`.
const CHANGE_STACK: u32 = 2;
/// `SFPGT_MOD1_MUTATE_OR`.
const OR: u32 = 4;
/// `SFPGT_MOD1_SET_VD`.
const SET_VD: u32 = 8;

/// An entry of the stack, a bit for each lane.
#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    flags: u32,
    use_flags: u32,
    /// The lanes whose stack has this entry.
    valid: u32,
}

/// `FlagStack` of each lane, the top first.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stack([Entry; DEPTH]);

impl Entry {
    /// `other` in the lanes of `mask`.
    fn blend(self, other: Self, mask: u32) -> Self {
        Self {
            flags: blend(self.flags, other.flags, mask),
            use_flags: blend(self.use_flags, other.use_flags, mask),
            valid: blend(self.valid, other.valid, mask),
        }
    }
}

impl Stack {
    fn push(&mut self, entry: Entry, mask: u32) {
        for i in (1..DEPTH).rev() {
            self.0[i] = self.0[i].blend(self.0[i - 1], mask);
        }
        self.0[0] = self.0[0].blend(Entry { valid: u32::MAX, ..entry }, mask);
    }

    fn pop(&mut self, mask: u32) {
        for i in 0..DEPTH {
            let below = self.0.get(i + 1).copied().unwrap_or_default();
            self.0[i] = self.0[i].blend(below, mask);
        }
    }
}

/// Operation `mode` (1 to 12) of `SFPPUSHC` and `SFPPOPC`.
fn boolean(mode: u32, a: u32, b: u32) -> u32 {
    match mode {
        1 => b,
        2 => !b,
        3 => a & b,
        4 => a | b,
        5 => a & !b,
        6 => a | !b,
        7 => !a & b,
        8 => !a | b,
        9 => !a & !b,
        10 => !a | !b,
        11 => a ^ b,
        _ => !(a ^ b),
    }
}

/// A sign-magnitude number as the two's complement number that has its place in the order; so are
/// FP32 numbers in the total order.
#[inline]
fn order(x: u32) -> i32 {
    (x ^ (x.cast_signed() >> 30).cast_unsigned() >> 1).cast_signed()
}

/// `SignMagIsSmaller`.
#[inline]
pub(super) fn is_smaller(a: u32, b: u32) -> bool {
    order(a) < order(b)
}

impl Vector {
    pub(super) fn set_flags(&mut self, insn: Sfpsetcc, r: Regs, lanes: Lanes) {
        let (mode, c) = (insn.mod1(), &self.lregs[r.c]);
        let flags = if mode & CLEAR != 0 {
            0
        } else if mode & IMMEDIATE != 0 {
            0u32.wrapping_sub(insn.imm1())
        } else {
            match mode {
                0 => lanes_where(|lane| c[lane] & SIGN != 0),
                2 => lanes_where(|lane| c[lane] != 0),
                4 => lanes_where(|lane| c[lane] & SIGN == 0),
                _ => lanes_where(|lane| c[lane] == 0),
            }
        };
        // Without predication a lane's flag becomes false.
        self.put_flags(flags & self.use_flags, lanes.enabled);
    }

    pub(super) fn enable_flags(&mut self, insn: Sfpencc, lanes: Lanes) {
        let (imm, mode) = (insn.imm2(), insn.mod1());
        let use_flags = match mode & 3 {
            2 | 3 => 0u32.wrapping_sub(imm & 1),
            1 => !self.use_flags,
            _ => self.use_flags,
        };
        self.use_flags = blend(self.use_flags, use_flags, lanes.all);
        let flags = if mode & 8 != 0 { 0u32.wrapping_sub(imm >> 1) } else { u32::MAX };
        self.put_flags(flags, lanes.all);
    }

    pub(super) fn complement_flags(&mut self, lanes: Lanes) {
        let top = self.stack.0[0];
        let (top_flags, top_use) = (top.flags | !top.valid, top.use_flags | !top.valid);
        self.put_flags(top_use & self.use_flags & top_flags & !self.flags, lanes.all);
    }

    pub(super) fn push_flags(&mut self, insn: Sfppushc, lanes: Lanes) -> Result<(), Refusal> {
        let (mode, top) = (insn.mod1(), self.stack.0[0]);
        let now = Entry { flags: self.flags, use_flags: self.use_flags, valid: u32::MAX };
        if mode == 0 {
            if self.stack.0[DEPTH - 1].valid & lanes.all != 0 {
                return undefined("SFPPUSHC when the stack of flags is full");
            }
            self.stack.push(now, lanes.all);
            return Ok(());
        }
        if !top.valid & lanes.all != 0 {
            return undefined("SFPPUSHC that changes the top of an empty stack of flags");
        }
        let new = match mode {
            1..=12 => Entry { flags: boolean(mode, top.flags, self.flags), ..now },
            13 => {
                self.put_flags(!self.flags, lanes.all);
                Entry { flags: self.flags, ..now }
            }
            14 => Entry { flags: u32::MAX, use_flags: u32::MAX, ..now },
            _ => Entry { flags: 0, use_flags: u32::MAX, ..now },
        };
        self.stack.0[0] = top.blend(new, lanes.all);
        Ok(())
    }

    pub(super) fn pop_flags(&mut self, insn: Sfppopc, lanes: Lanes) -> Result<(), Refusal> {
        let (mode, top) = (insn.mod1(), self.stack.0[0]);
        // The top of an empty stack is false.
        let (top_flags, top_use) = (top.flags & top.valid, top.use_flags & top.valid);
        let (flags, use_flags) = match mode {
            0 => {
                if !top.valid & lanes.all != 0 {
                    return undefined("SFPPOPC when the stack of flags is empty");
                }
                self.stack.pop(lanes.all);
                (top_flags, top_use)
            }
            1..=12 => (boolean(mode, self.flags, top_flags), top_use),
            13 => (!self.flags, self.use_flags),
            14 => (u32::MAX, u32::MAX),
            _ => (0, u32::MAX),
        };
        self.use_flags = blend(self.use_flags, use_flags, lanes.all);
        self.put_flags(flags, lanes.all);
        Ok(())
    }

    /// `SFPGT` (`VD > VC`) or, not `greater`, `SFPLE` (`VD <= VC`).
    pub(super) fn compare(&mut self, r: Regs, mode: u32, lanes: Lanes, greater: bool) {
        let (b, c) = (&self.lregs[r.b], &self.lregs[r.c]);
        let holds = lanes_where(|lane| is_smaller(c[lane], b[lane]) == greater);
        if mode & SET_VD != 0 {
            let values = std::array::from_fn::<u32, LANES, _>(|lane| 0u32.wrapping_sub(holds >> lane & 1));
            self.write(r.d, &values, lanes.enabled);
        }
        if mode & SET_FLAGS != 0 {
            self.put_flags(holds, lanes.enabled);
        }
        if mode & CHANGE_STACK != 0 {
            let top = &mut self.stack.0[0];
            let flags = if mode & OR != 0 { top.flags | holds } else { top.flags & holds };
            // An empty stack stays as it is.
            top.flags = blend(top.flags, flags, lanes.all & top.valid);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Bench, lane_values};
    use super::*;
    use tilework_abi::tensix::insn::{Sfpcompc, Sfpgt, Sfple, Sfploadi};

    /// Predication on, all flags set.
    fn on() -> u32 {
        Sfpencc::build().imm2(3).mod1(10).word()
    }
    fn push(mode: u32) -> u32 {
        Sfppushc::build().mod1(mode).word()
    }
    fn pop(mode: u32) -> u32 {
        Sfppopc::build().mod1(mode).word()
    }
    fn set(mode: u32) -> u32 {
        Sfpsetcc::build().mod1(mode).word()
    }

    #[test]
    fn flags_from_signs_and_zeros() {
        for (mode, expected) in [(0, 0b0110), (2, 0b1110), (4, 0b1001), (6, 0b0001), (8, 0), (1, 0)] {
            let mut b = Bench::default();
            b.set(0, lane_values(&[0, SIGN, u32::MAX, 5]));
            b.run(&[on(), set(mode)]);
            assert_eq!(b.flags() & 0xF, expected, "{mode}");
        }
        let mut b = Bench::default();
        b.run(&[Sfpsetcc::build().imm1(1).mod1(1).word()]);
        assert_eq!(b.flags(), 0, "no predication");
        b.run(&[on(), Sfpsetcc::build().imm1(1).mod1(1).word()]);
        assert_eq!(b.flags(), u32::MAX);
    }

    #[test]
    fn if_else_on_the_stack() {
        let mut b = Bench::default();
        b.set(0, lane_values(&[0, 1]));
        let imm = |value: u32| Sfploadi::build().vd(1).mod0(2).imm16(value).word();
        // if l0 == 0 { 10 } else { 20 }, inside a block that leaves lane 2 out.
        b.set(2, lane_values(&[0, 0, SIGN]));
        let outer = Sfpsetcc::build().vc(2).mod1(4).word();
        b.run(&[on(), imm(7), outer, push(0), set(6), imm(10), Sfpcompc::build().word(), imm(20), pop(0)]);
        assert_eq!(b.lreg(1)[..4], [10, 20, 7, 10]);
        assert_eq!(b.flags(), !0b100, "as before the block");
        // Outside any block the complement is that of the flags.
        b.run(&[set(6), Sfpcompc::build().word()]);
        assert_eq!(b.flags() & 0b11, 0b10);
    }

    #[test]
    fn the_stack_has_eight_entries() {
        let mut b = Bench::default();
        b.run(&[on()]);
        for _ in 0..8 {
            b.run(&[push(0)]);
        }
        assert!(b.try_run(push(0)).is_err());
        for _ in 0..8 {
            b.run(&[pop(0)]);
        }
        assert!(b.try_run(pop(0)).is_err());
        assert!(b.try_run(push(1)).is_err(), "no top to change");
        b.run(&[pop(1)]);
        assert_eq!((b.flags(), b.use_flags()), (0, 0), "the top of an empty stack");
    }

    #[test]
    fn every_boolean_operation_of_push_and_pop() {
        // Lanes 0 to 3: (top, now) = 00, 01, 10, 11.
        let truth = [0b1010, 0b0101, 0b1000, 0b1110, 0b0100, 0b1101, 0b0010, 0b1011, 0b0001, 0b0111, 0b0110, 0b1001];
        for (mode, expected) in (1..).zip(truth) {
            let prepared = || {
                let mut b = Bench::default();
                b.set(0, lane_values(&[1, 1, 0, 0]));
                b.set(1, lane_values(&[1, 0, 1, 0]));
                let later = Sfpsetcc::build().vc(1).mod1(6).word();
                b.run(&[on(), set(6), push(0), on(), later]);
                assert_eq!(b.flags() & 0xF, 0b1010);
                b
            };
            // What the push leaves on the stack is a(top, now).
            let mut b = prepared();
            b.run(&[push(mode), pop(0)]);
            assert_eq!(b.flags() & 0xF, expected, "push {mode}");
            // A pop swaps the operands, and leaves the stack.
            let mut b = prepared();
            b.run(&[pop(mode)]);
            let swapped = expected & 0b1001 | (expected & 0b0010) << 1 | (expected & 0b0100) >> 1;
            assert_eq!(b.flags() & 0xF, swapped, "pop {mode}");
            b.run(&[pop(0)]);
            assert_eq!(b.flags() & 0xF, 0b1100);
        }
        for (mode, flags) in [(13, 0b0101), (14, 0b1111), (15, 0)] {
            let mut b = Bench::default();
            b.set(1, lane_values(&[1, 0, 1, 0]));
            let prepare = [on(), push(0), Sfpsetcc::build().vc(1).mod1(6).word()];
            b.run(&prepare);
            b.run(&[push(mode), pop(0)]);
            assert_eq!((b.flags() & 0xF, b.use_flags()), (flags, u32::MAX), "push {mode}");
            let mut b = Bench::default();
            b.set(1, lane_values(&[1, 0, 1, 0]));
            b.run(&prepare);
            b.run(&[pop(mode)]);
            assert_eq!((b.flags() & 0xF, b.use_flags()), (flags, u32::MAX), "pop {mode}");
        }
    }

    #[test]
    fn comparisons_follow_the_total_order() {
        // -NaN < -Inf < -1 < -0 < +0 < 1 < +Inf < +NaN.
        let ordered = [0xFFC0_0000, 0xFF80_0000, 0xBF80_0000, SIGN, 0, 0x3F80_0000, 0x7F80_0000, 0x7FC0_0000];
        for (i, &x) in ordered.iter().enumerate() {
            for (j, &y) in ordered.iter().enumerate() {
                assert_eq!(is_smaller(x, y), i < j, "{x:#x} {y:#x}");
            }
        }
    }

    #[test]
    fn comparisons_write_to_every_destination() {
        let compared = |word: u32| {
            let mut b = Bench::default();
            b.set(0, lane_values(&[1, 2, 3]));
            b.set(1, lane_values(&[2, 2, 2]));
            // The top of the stack: lanes 0 and 1.
            b.set(2, lane_values(&[0, 0, 1, 1]));
            b.run(&[on(), Sfpsetcc::build().vc(2).mod1(6).word(), push(0), on(), word]);
            let (flags, vd) = (b.flags() & 7, b.lreg(1)[..3].to_vec());
            b.run(&[pop(0)]);
            (flags, vd, b.flags() & 7)
        };
        let (gt, le) = (Sfpgt::build().vc(0).vd(1), Sfple::build().vc(0).vd(1));
        assert_eq!(compared(gt.mod1(1).word()), (0b001, vec![2, 2, 2], 0b011));
        assert_eq!(compared(gt.mod1(8).word()), (0b111, vec![u32::MAX, 0, 0], 0b011));
        assert_eq!(compared(gt.mod1(2).word()), (0b111, vec![2, 2, 2], 0b001));
        assert_eq!(compared(gt.mod1(6).word()), (0b111, vec![2, 2, 2], 0b011));
        assert_eq!(compared(le.mod1(1).word()), (0b110, vec![2, 2, 2], 0b011));
        assert_eq!(compared(le.mod1(15).word()), (0b110, vec![0, u32::MAX, u32::MAX], 0b111));
        // LReg 9 is zero: compared with zero, only flags are set.
        let zero = Sfpgt::build().vc(0).vd(9).mod1(1).word();
        let mut b = Bench::default();
        b.set(0, lane_values(&[5, SIGN | 5, 0, SIGN]));
        b.run(&[on(), zero]);
        assert_eq!(b.flags() & 0xF, 0b1010);
        b.run(&[on(), Sfple::build().vc(0).vd(9).mod1(9).word()]);
        assert_eq!((b.flags() & 0xF, b.lreg(9)), (0b0101, [0; LANES]));
    }
}
