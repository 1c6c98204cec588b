//! What the configuration says about instructions, kept until it may have changed.

use super::Operands;
use super::format::{Acc, Style};
use crate::FaultClass;
use crate::tensix::config::Refusal;
use crate::tensix::dst::RowMap;
use crate::tensix::src::A;
use tilework_abi::tensix::cfg;

/// What the configuration says to a thread's instructions.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Setup {
    /// Of the configuration, and the thread.
    of: Option<(u64, usize)>,
    /// What rows of Dst, as instructions name them, are counted from.
    pub(super) dst_base: u32,
    /// What fidelity phases are counted from.
    pub(super) phase_base: u32,
    /// The banks that instructions do not give back, a bit each.
    pub(super) kept: u32,
    one_bank: bool,
    /// What of SrcA `modes` depend on, with these.
    modes: Option<(Implied, Modes)>,
}

/// What a bank implies: its format, if the matrix unit may read it.
type Implied = Option<u32>;

/// How arithmetic instructions work.
#[derive(Clone, Copy, Debug)]
pub(super) struct Modes {
    pub(super) style: Style,
    pub(super) acc: Acc,
    pub(super) map: RowMap,
    /// A datum of SrcB without an exponent is zero.
    pub(super) flushes: bool,
    /// Sums are rounded by chance.
    pub(super) by_chance: bool,
}

impl Setup {
    /// Takes over what has changed.
    #[inline]
    pub(super) fn refresh(&mut self, on: &Operands<'_>) {
        if self.of != Some((on.config.generation(), on.thread)) {
            *self = Self::new(on);
        }
    }

    #[cold]
    fn new(on: &Operands<'_>) -> Self {
        let one_bank = on.config.global(cfg::SRC_ACCESS_CFG_MATH_VIEW_SRCA_AS_ONE_BANK) != 0
            || on.config.global(cfg::SRC_ACCESS_CFG_MATH_VIEW_SRCB_AS_ONE_BANK) != 0;
        Self {
            of: Some((on.config.generation(), on.thread)),
            dst_base: on.read(cfg::DEST_TARGET_REG_CFG_MATH_OFFSET) + on.read(cfg::DEST_REGW_BASE_BASE),
            phase_base: on.read(cfg::FIDELITY_BASE_PHASE),
            kept: on.read(cfg::CLR_DVALID_SRCA_DISABLE) | on.read(cfg::CLR_DVALID_SRCB_DISABLE) << 1,
            one_bank,
            modes: None,
        }
    }

    /// Refuses what is not built.
    #[inline]
    pub(super) fn check(&self) -> Result<(), Refusal> {
        if self.one_bank {
            return Err((FaultClass::UnimplementedFunctionality, "SrcA or SrcB viewed as one bank"));
        }
        Ok(())
    }

    /// How arithmetic instructions work; after [`Self::refresh`].
    #[inline]
    pub(super) fn modes(&mut self, on: &Operands<'_>) -> Result<Modes, Refusal> {
        let src = &on.src.0[A];
        let implied = src.matrix_may_read().then(|| src.implied_format());
        if let Some((of, modes)) = self.modes
            && of == implied
        {
            return Ok(modes);
        }
        let (style, acc) = on.arithmetic()?;
        let (map, flushes, by_chance) = (RowMap::of(on.config), on.flushes(), on.rounds_by_chance(acc));
        let modes = Modes { style, acc, map, flushes, by_chance };
        self.modes = Some((implied, modes));
        Ok(modes)
    }
}
