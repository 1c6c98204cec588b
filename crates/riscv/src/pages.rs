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
    /// The page of the last instruction. It is kept beside the core's other state, so that a turn
    /// of a few instructions does not wait for a table to come from memory.
    current: Option<Entry>,
    /// The other pages.
    others: Option<Box<[Option<Entry>; SLOTS]>>,
}

/// A page and its address.
type Entry = (u32, Arc<CodePage>);

impl Pages {
    /// The page at `base`, which has the instruction at `pc`, from the cache or the bus.
    #[inline(always)]
    pub(crate) fn get<B: Bus>(&mut self, bus: &mut B, at: Cycle, base: u32, pc: u32) -> Result<&CodePage, B::Fault> {
        if self.current.as_ref().is_none_or(|(held, _)| *held != base) {
            self.turn_to(bus, at, base, pc)?;
        }
        let (_, page) = self.current.as_ref().expect("it was turned to above");
        Ok(page)
    }

    /// Makes the page at `base` the current one. Pages change places, so that nothing is counted.
    fn turn_to<B: Bus>(&mut self, bus: &mut B, at: Cycle, base: u32, pc: u32) -> Result<(), B::Fault> {
        let others = self.others.get_or_insert_default();
        let slot = |base: u32| (base / CODE_PAGE_BYTES) as usize % SLOTS;
        let held = others[slot(base)].take_if(|(held, _)| *held == base);
        let page = match held {
            Some(page) => page,
            None => (base, bus.code(at, pc)?),
        };
        if let Some((last, page)) = self.current.replace(page) {
            others[slot(last)] = Some((last, page));
        }
        Ok(())
    }

    /// Forgets all pages.
    #[cold]
    pub(crate) fn clear(&mut self) {
        self.current = None;
        if let Some(others) = &mut self.others {
            others.fill(None);
        }
    }
}
