//! Cache of decoded code pages.
//!
//! A direct-mapped cache in front of [`Bus::code`], so that a call into another page and back costs
//! an index computation instead of two reference counts. It has no timing: the chip's instruction
//! cache is not modelled.

use std::sync::Arc;

use crate::{Bus, CODE_PAGE_BYTES, CodePage, Cycle};

const SLOTS: usize = 32;

/// Where the page of no instruction is.
const NOWHERE: u32 = 1;

/// Decoded pages by address.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pages {
    /// The page of the last instruction. It is kept beside the core's other state, so that a turn
    /// of a few instructions does not wait for a table to come from memory. A run takes it away
    /// ([`Pages::take_current`]).
    current: Current,
    /// The other pages, of this and of earlier generations.
    others: Option<Box<[Option<Entry>; SLOTS]>>,
    /// Counts how often all pages were forgotten.
    generation: u32,
}

/// The page of an instruction, which is not forgotten, or none.
#[derive(Clone, Debug)]
pub(crate) struct Current {
    /// Its address, or [`NOWHERE`].
    base: u32,
    page: Option<Arc<CodePage>>,
}

impl Default for Current {
    fn default() -> Self {
        Self { base: NOWHERE, page: None }
    }
}

/// One of the other pages.
#[derive(Clone, Debug)]
struct Entry {
    /// Its address.
    base: u32,
    /// When it was decoded; it is forgotten if that is not the present generation.
    generation: u32,
    page: Arc<CodePage>,
}

impl Pages {
    /// The page at `base`, which has the instruction at `pc`, from the cache or the bus. It is
    /// `current`, or becomes so.
    #[inline(always)]
    pub(crate) fn get<'a, B: Bus>(
        &mut self,
        current: &'a mut Current,
        bus: &mut B,
        at: Cycle,
        (base, pc): (u32, u32),
    ) -> Result<&'a CodePage, B::Fault> {
        if current.base != base {
            self.turn_to(current, bus, at, (base, pc))?;
        }
        Ok(current.page.as_ref().expect("it was turned to above"))
    }

    /// The page at `base`, if it is the current one.
    pub(crate) fn current(&self, base: u32) -> Option<&Arc<CodePage>> {
        self.current.page.as_ref().filter(|_| self.current.base == base)
    }

    /// The current page, which is given back with [`Pages::give_back`].
    #[inline(always)]
    pub(crate) fn take_current(&mut self) -> Current {
        std::mem::take(&mut self.current)
    }

    /// What [`Pages::take_current`] took is the current page, or what has become of it.
    #[inline(always)]
    pub(crate) fn give_back(&mut self, current: Current) {
        // There is none that would have to be dropped.
        std::mem::forget(std::mem::replace(&mut self.current, current));
    }

    /// Makes the page at `base` the current one. Pages change places, so that nothing is counted.
    fn turn_to<B: Bus>(
        &mut self,
        current: &mut Current,
        bus: &mut B,
        at: Cycle,
        (base, pc): (u32, u32),
    ) -> Result<(), B::Fault> {
        let others = self.others.get_or_insert_default();
        let slot = |base: u32| (base / CODE_PAGE_BYTES) as usize % SLOTS;
        let generation = self.generation;
        let held = others[slot(base)].take_if(|entry| (entry.base, entry.generation) == (base, generation));
        let page = match held {
            Some(entry) => entry.page,
            None => bus.code(at, pc)?,
        };
        let last = std::mem::replace(current, Current { base, page: Some(page) });
        if let Current { base, page: Some(page) } = last {
            others[slot(base)] = Some(Entry { base, generation, page });
        }
        Ok(())
    }

    /// Forgets all pages. Most of the others are left where they are until their places are needed:
    /// they and their counts are in many lines of memory.
    #[cold]
    pub(crate) fn clear(&mut self) {
        self.current = Current::default();
        self.generation = self.generation.wrapping_add(1);
        if let (0, Some(others)) = (self.generation, &mut self.others) {
            others.fill(None);
        }
    }

    /// Forgets all pages; what is there instead of one that has been taken.
    #[cold]
    pub(crate) fn cleared(&mut self) -> Current {
        self.clear();
        Current::default()
    }
}
