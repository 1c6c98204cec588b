//! What follows from an instruction's word alone, kept for those that come again: of most kernels,
//! nearly all.

use super::hazard::Effects;
use super::regs::{Regs, latency};
use crate::Cycle;
use tilework_abi::tensix::insn::VectorOp;

/// How many are kept, a power of two: more than the words of the loops of a function.
const KEPT: usize = 256;

/// An instruction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    pub(super) insn: VectorOp,
    /// `VA` to `VD`: in bytes, because many are kept.
    regs: [u8; 4],
    pub(super) effects: Effects,
    latency: u8,
}

impl Known {
    fn of(insn: VectorOp) -> Self {
        let regs = Regs::of(insn);
        let bytes = [regs.a, regs.b, regs.c, regs.d].map(|reg| reg as u8);
        Self { insn, regs: bytes, effects: Effects::of(insn, regs), latency: latency(insn) as u8 }
    }

    /// The registers that it names.
    #[inline]
    pub(super) fn regs(&self) -> Regs {
        let [a, b, c, d] = self.regs.map(usize::from);
        Regs { a, b, c, d }
    }

    /// After how many cycles its result is there.
    #[inline]
    pub(super) fn latency(&self) -> Cycle {
        self.latency.into()
    }
}

/// Those that came last, each at a place that its word says.
#[derive(Clone, Debug)]
pub(super) struct Kept([Option<Known>; KEPT]);

impl Default for Kept {
    fn default() -> Self {
        Self([None; KEPT])
    }
}

impl Kept {
    /// What is known of `word`; `None`: it is none of the unit's instructions.
    #[inline]
    pub(super) fn get(&mut self, word: u32) -> Option<&Known> {
        // The highest bits of a product depend on all bits of the word.
        let slot = &mut self.0[(word.wrapping_mul(0x9E37_79B1) >> (u32::BITS - KEPT.ilog2())) as usize];
        if slot.is_none_or(|known| known.insn.word() != word) {
            *slot = Some(Known::of(VectorOp::decode(word)?));
        }
        slot.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_kept_is_what_would_be_decoded(words in prop::collection::vec(0u32..400, 1..300)) {
            let mut kept = Kept::default();
            for low in words {
                // Few words, of opcodes that exist and others, so that some meet at a place.
                let word = ((0x70 + low % 0x26) << 24) | (low * 0x0001_0421);
                let of = VectorOp::decode(word).map(|insn| format!("{:?}", Known::of(insn)));
                prop_assert_eq!(kept.get(word).map(|known| format!("{known:?}")), of);
            }
        }
    }
}
