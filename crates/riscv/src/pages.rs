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
    /// The other pages, of this and of earlier generations.
    others: Option<Box<[Option<Entry>; SLOTS]>>,
    /// Counts how often all pages were forgotten.
    generation: u32,
}

/// A page.
#[derive(Clone, Debug)]
struct Entry {
    /// Its address.
    base: u32,
    /// When it was decoded; it is forgotten if that is not the present generation.
    generation: u32,
    page: Arc<CodePage>,
}

impl Pages {
    /// The page at `base`, which has the instruction at `pc`, from the cache or the bus.
    #[inline(always)]
    pub(crate) fn get<B: Bus>(&mut self, bus: &mut B, at: Cycle, base: u32, pc: u32) -> Result<&CodePage, B::Fault> {
        if self.current.as_ref().is_none_or(|entry| entry.base != base) {
            self.turn_to(bus, at, base, pc)?;
        }
        Ok(&self.current.as_ref().expect("it was turned to above").page)
    }

    /// The page at `base`, if it is the current one.
    pub(crate) fn current(&self, base: u32) -> Option<&Arc<CodePage>> {
        self.current.as_ref().filter(|entry| entry.base == base).map(|entry| &entry.page)
    }

    /// Makes the page at `base` the current one. Pages change places, so that nothing is counted.
    fn turn_to<B: Bus>(&mut self, bus: &mut B, at: Cycle, base: u32, pc: u32) -> Result<(), B::Fault> {
        let others = self.others.get_or_insert_default();
        let slot = |base: u32| (base / CODE_PAGE_BYTES) as usize % SLOTS;
        let generation = self.generation;
        let held = others[slot(base)].take_if(|entry| (entry.base, entry.generation) == (base, generation));
        let entry = match held {
            Some(entry) => entry,
            None => Entry { base, generation, page: bus.code(at, pc)? },
        };
        if let Some(last) = self.current.replace(entry) {
            let slot = slot(last.base);
            others[slot] = Some(last);
        }
        Ok(())
    }

    /// Forgets all pages. Most of the others are left where they are until their places are needed:
    /// they and their counts are in many lines of memory.
    #[cold]
    pub(crate) fn clear(&mut self) {
        self.current = None;
        self.generation = self.generation.wrapping_add(1);
        if let (0, Some(others)) = (self.generation, &mut self.others) {
            others.fill(None);
        }
    }
}
