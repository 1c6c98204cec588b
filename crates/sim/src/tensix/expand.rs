//! The MOP expander: one instruction becomes a sequence from one of two templates.
//!
//! Follows WormholeB0/TensixTile/TensixCoprocessor/MOPExpander.md (BlackholeA0 refers to it as
//! similar). What Blackhole adds is in its public instruction description (`assembly.yaml`, MOP):
//! counts have ten bits, and a template 1 instruction may carry counts that replace the configured
//! ones. `MopCfg` is sampled when an expansion starts; software waits for its end before it writes
//! the next one.

use crate::{Bug, Bugs};
use tilework_abi::tensix::insn::{Mop, Nop};

/// Words of one thread's MOP configuration.
pub(super) const WORDS: usize = 9;
/// One thread's MOP configuration.
pub(super) type MopCfg = [u32; WORDS];

/// Bits of a loop count.
const COUNT: u32 = 0x3FF;

/// An expansion in flight.
#[derive(Clone, Debug)]
pub(super) enum Expansion {
    Masked(Masked),
    Loops(Loops),
}

/// Template 0: a loop whose iterations are chosen by a mask.
#[derive(Clone, Debug)]
pub(super) struct Masked {
    cfg: MopCfg,
    mask: u32,
    /// Iterations left, this one included.
    left: u32,
    /// Position within the iteration.
    part: u8,
}

/// Template 1: two nested loops.
#[derive(Clone, Debug)]
pub(super) struct Loops {
    cfg: MopCfg,
    outer: u32,
    inner: u32,
    /// Outer iterations done.
    j: u32,
    /// Inner iterations done.
    i: u32,
    phase: LoopPhase,
    /// The next inner instruction alternates between two.
    alternate: bool,
}

#[derive(Clone, Copy, Debug)]
enum LoopPhase {
    Start,
    Inner,
    End0,
    End1,
}

impl Expansion {
    /// Starts to expand `mop`; `mask_hi` is what `MOP_CFG` set.
    pub(super) fn start(mop: Mop, mask_hi: u32, cfg: &MopCfg, bugs: Bugs) -> Self {
        if mop.template() == 0 {
            let mask = mask_hi << 16 | mop.mask_lo();
            return Self::Masked(Masked { cfg: *cfg, mask, left: mop.count1() + 1, part: 0 });
        }
        let given = |own: u32, configured: u32| if own == 0 { configured & COUNT } else { own };
        let mut outer = given(mop.outer_count_hi() << 6 | mop.outer_count_lo(), cfg[0]);
        let mut inner = given(mop.inner_count(), cfg[1]);
        if !Nop::is(cfg[6]) {
            inner *= 2;
        }
        let is_empty = outer == 1 && Nop::is(cfg[2]) && inner == 0 && !Nop::is(cfg[3]);
        if is_empty && bugs.has(Bug::MopCount) {
            outer += 128;
        }
        Self::Loops(Loops { cfg: *cfg, outer, inner, j: 0, i: 0, phase: LoopPhase::Start, alternate: false })
    }
}

impl Iterator for Expansion {
    type Item = u32;
    fn next(&mut self) -> Option<u32> {
        match self {
            Self::Masked(masked) => masked.next(),
            Self::Loops(loops) => loops.next(),
        }
    }
}

impl Masked {
    fn next(&mut self) -> Option<u32> {
        if self.left == 0 {
            return None;
        }
        let [_, flags, b, a0, a1, a2, a3, skip_a0, skip_b] = self.cfg;
        let (has_b, has_a123) = (flags & 1 != 0, flags & 2 != 0);
        let part = self.part;
        let skips = self.mask & 1 != 0;
        let word = match part {
            0 if skips => skip_a0,
            0 => a0,
            1 => a1,
            2 => a2,
            3 => a3,
            _ if skips => skip_b,
            _ => b,
        };
        self.part = match part {
            0 if has_a123 && !skips => 1,
            1 | 2 => part + 1,
            0 | 3 if has_b => 4,
            _ => {
                self.left -= 1;
                self.mask >>= 1;
                0
            }
        };
        Some(word)
    }
}

impl Loops {
    fn next(&mut self) -> Option<u32> {
        let [_, _, start, end0, end1, op, op1, last_of_all, last] = self.cfg;
        while self.j < self.outer {
            match self.phase {
                LoopPhase::Start => {
                    (self.phase, self.i) = (LoopPhase::Inner, 0);
                    if !Nop::is(start) {
                        return Some(start);
                    }
                }
                LoopPhase::Inner if self.i == self.inner => self.phase = LoopPhase::End0,
                LoopPhase::Inner => {
                    self.i += 1;
                    let loop_op = if self.alternate { op1 } else { op };
                    self.alternate ^= !Nop::is(op1);
                    return Some(match (self.i == self.inner, self.j + 1 == self.outer) {
                        (false, _) => loop_op,
                        (true, false) => last,
                        (true, true) => last_of_all,
                    });
                }
                LoopPhase::End0 => {
                    self.phase = LoopPhase::End1;
                    if !Nop::is(end0) {
                        return Some(end0);
                    }
                }
                LoopPhase::End1 => {
                    (self.phase, self.j) = (LoopPhase::Start, self.j + 1);
                    if !Nop::is(end0) && !Nop::is(end1) {
                        return Some(end1);
                    }
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NOP: u32 = Nop::build().word();

    fn expanded(mop: u32, mask_hi: u32, cfg: &MopCfg) -> Vec<u32> {
        Expansion::start(Mop::decode(mop).expect("a MOP"), mask_hi, cfg, Bugs::AS_CHIP).collect()
    }

    fn mop1() -> u32 {
        Mop::build().template(1).word()
    }

    /// The page's generators, loop by loop.
    fn page(word: u32, mask_hi: u32, c: &MopCfg) -> Vec<u32> {
        let mut out = Vec::new();
        if word >> 23 & 1 == 0 {
            let mut mask = mask_hi << 16 | word & 0xFFFF;
            for _ in 0..=(word >> 16 & 0x7F) {
                if mask & 1 == 0 {
                    out.push(c[3]);
                    if c[1] & 2 != 0 {
                        out.extend(&c[4..7]);
                    }
                    out.extend((c[1] & 1 != 0).then_some(c[2]));
                } else {
                    out.push(c[7]);
                    out.extend((c[1] & 1 != 0).then_some(c[8]));
                }
                mask >>= 1;
            }
            return out;
        }
        let nop = |w: u32| w == NOP;
        let (mut outer, mut inner, mut op) = (c[0] & 0x3FF, c[1] & 0x3FF, c[5]);
        let flip = if nop(c[6]) { 0 } else { c[5] ^ c[6] };
        if !nop(c[6]) {
            inner *= 2;
        }
        if outer == 1 && nop(c[2]) && inner == 0 && !nop(c[3]) {
            outer += 128;
        }
        for j in 0..outer {
            out.extend((!nop(c[2])).then_some(c[2]));
            for i in 0..inner {
                out.push(if i + 1 != inner {
                    op
                } else if j + 1 != outer {
                    c[8]
                } else {
                    c[7]
                });
                op ^= flip;
            }
            if !nop(c[3]) {
                out.push(c[3]);
                out.extend((!nop(c[4])).then_some(c[4]));
            }
        }
        out
    }

    fn word_or_nop() -> impl Strategy<Value = u32> {
        prop_oneof![Just(NOP), 1u32..9]
    }

    proptest! {
        #[test]
        fn both_templates_give_the_page_s_sequences(
            counts in [0u32..6, 0u32..6], ops in prop::collection::vec(word_or_nop(), 7),
            mask in any::<u32>(), count1 in 0u32..0x80,
        ) {
            let cfg: MopCfg = [counts[0], counts[1], ops[0], ops[1], ops[2], ops[3], ops[4], ops[5], ops[6]];
            let hi = mask >> 16;
            for word in [Mop::build().count1(count1).mask_lo(mask & 0xFFFF).word(), mop1()] {
                prop_assert_eq!(expanded(word, hi, &cfg), page(word, hi, &cfg));
            }
        }
    }

    #[test]
    fn a_zero_inner_count_with_one_end_runs_129_times() {
        let cfg = [1, 0, NOP, 7, NOP, 5, NOP, 0, 0];
        assert_eq!(expanded(mop1(), 0, &cfg), vec![7; 129]);
        let mop = Mop::decode(mop1()).expect("a MOP");
        let meant = Expansion::start(mop, 0, &cfg, Bugs::AS_CHIP.without(Bug::MopCount));
        assert_eq!(meant.collect::<Vec<_>>(), [7], "without the bug");
    }

    #[test]
    fn counts_in_the_instruction_replace_the_configured_ones() {
        // Two outer iterations (bits 15..10) of three inner ones (bits 9..0).
        let cfg = [1, 1, NOP, NOP, NOP, 5, NOP, 7, 8];
        let mop = Mop::build().template(1).outer_count_lo(2).inner_count(3).word();
        assert_eq!(expanded(mop, 0, &cfg), [5, 5, 8, 5, 5, 7]);
    }
}
