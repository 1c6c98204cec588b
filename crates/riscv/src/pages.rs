//! Cache of decoded code pages.
//!
//! A direct-mapped cache in front of [`Bus::code`], so that a call into another page and back costs
//! an index computation instead of two reference counts. It has no timing: the chip's instruction
//! cache is not modelled.

use std::sync::Arc;

use crate::{Bus, CODE_PAGE_BYTES, CodePage, Cycle};

const SLOTS: usize = 32;

/// Decoded pages by address.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pages {
    slots: [Option<(u32, Arc<CodePage>)>; SLOTS],
}

impl Pages {
    /// The page at `base`, which has the instruction at `pc`, from the cache or the bus.
    #[inline]
    pub(crate) fn get<B: Bus>(&mut self, bus: &mut B, at: Cycle, base: u32, pc: u32) -> Result<&CodePage, B::Fault> {
        let slot = &mut self.slots[(base / CODE_PAGE_BYTES) as usize % SLOTS];
        if slot.as_ref().is_none_or(|(held, _)| *held != base) {
            *slot = Some((base, bus.code(at, pc)?));
        }
        let (_, page) = slot.as_ref().expect("the slot was filled above");
        Ok(page)
    }

    /// Forgets all pages.
    #[cold]
    pub(crate) fn clear(&mut self) {
        self.slots = Default::default();
    }
}
