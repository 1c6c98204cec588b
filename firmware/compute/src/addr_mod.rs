//! Address modifiers: what an instruction does to the counters after it has used them
//! (WormholeB0/TensixTile/TensixCoprocessor/RWCs.md).

use crate::push::Word;
use tilework_abi::tensix::cfg;

/// What happens to one counter.
#[derive(Clone, Copy, Default)]
pub struct Step {
    /// Is added.
    pub by: u32,
    /// Both counter and copy become zero.
    pub clear: bool,
    /// The copy is stepped, and the counter follows it.
    pub copy: bool,
}

impl Step {
    /// Adds `by`.
    pub const fn by(by: u32) -> Self {
        Self { by, clear: false, copy: false }
    }
    /// Clears.
    pub const fn clear() -> Self {
        Self { by: 0, clear: true, copy: false }
    }
    /// Adds `by` to the copy.
    pub const fn copy(by: u32) -> Self {
        Self { by, clear: false, copy: true }
    }
}

/// What happens to the counters of the matrix unit and the vector unit.
#[derive(Clone, Copy, Default)]
pub struct AddrMod {
    /// SrcA's.
    pub a: Step,
    /// SrcB's.
    pub b: Step,
    /// Dst's.
    pub dst: Step,
    /// The counter of Dst goes to its copy after it was stepped.
    pub dst_to_copy: bool,
    /// The fidelity phase.
    pub fidelity: Step,
}

impl AddrMod {
    /// Makes it the thread's address modifier `n`, 0 to 7.
    #[inline(always)]
    pub fn set(self, n: usize) {
        let Self { a, b, dst, dst_to_copy, fidelity } = self;
        Word::of(cfg::ADDR_MOD_AB_SEC_SRCAINCR.copy(n), a.by)
            .with(cfg::ADDR_MOD_AB_SEC_SRCACR.copy(n), a.copy.into())
            .with(cfg::ADDR_MOD_AB_SEC_SRCACLEAR.copy(n), a.clear.into())
            .with(cfg::ADDR_MOD_AB_SEC_SRCBINCR.copy(n), b.by)
            .with(cfg::ADDR_MOD_AB_SEC_SRCBCR.copy(n), b.copy.into())
            .with(cfg::ADDR_MOD_AB_SEC_SRCBCLEAR.copy(n), b.clear.into())
            .write();
        Word::of(cfg::ADDR_MOD_DST_SEC_DESTINCR.copy(n), dst.by)
            .with(cfg::ADDR_MOD_DST_SEC_DESTCR.copy(n), dst.copy.into())
            .with(cfg::ADDR_MOD_DST_SEC_DESTCLEAR.copy(n), dst.clear.into())
            .with(cfg::ADDR_MOD_DST_SEC_DESTCTOCR.copy(n), dst_to_copy.into())
            .with(cfg::ADDR_MOD_DST_SEC_FIDELITYINCR.copy(n), fidelity.by)
            .with(cfg::ADDR_MOD_DST_SEC_FIDELITYCLEAR.copy(n), fidelity.clear.into())
            .write();
        Word::of(cfg::ADDR_MOD_BIAS_SEC_BIASINCR.copy(n), 0).write();
    }
}

/// What happens to the counters of the packer: rows and faces, of Dst and of the output.
#[derive(Clone, Copy, Default)]
pub struct PackMod {
    /// The row of Dst.
    pub src_y: Step,
    /// The row of the output.
    pub dst_y: Step,
    /// The face of Dst; steps by one at most.
    pub src_z: Step,
}

impl PackMod {
    /// Makes it the thread's address modifier `n` of the packer, 0 to 3.
    #[inline(always)]
    pub fn set(self, n: usize) {
        let Self { src_y, dst_y, src_z } = self;
        Word::of(cfg::ADDR_MOD_PACK_SEC_YSRCINCR.copy(n), src_y.by)
            .with(cfg::ADDR_MOD_PACK_SEC_YSRCCLEAR.copy(n), src_y.clear.into())
            .with(cfg::ADDR_MOD_PACK_SEC_YDSTINCR.copy(n), dst_y.by)
            .with(cfg::ADDR_MOD_PACK_SEC_YDSTCLEAR.copy(n), dst_y.clear.into())
            .with(cfg::ADDR_MOD_PACK_SEC_ZSRCINCR.copy(n), src_z.by)
            .with(cfg::ADDR_MOD_PACK_SEC_ZSRCCLEAR.copy(n), src_z.clear.into())
            .write();
    }
}
