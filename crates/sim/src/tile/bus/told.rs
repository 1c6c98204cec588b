//! What a core's accesses tell the observers of the chip.

use super::TileBus;
use crate::probe::{Agent, Loaded, Recorder, Stored, Wants, What};
use crate::timing;
use tilework_abi::tensix as map;
use tilework_riscv::{Cycle, Load, Width};

impl<const PROBED: bool, const COUNTED: bool> TileBus<'_, PROBED, COUNTED> {
    /// Records a load, if loads from there are recorded.
    #[inline(always)]
    pub(super) fn loaded(&mut self, at: Cycle, pc: u32, addr: u32, width: Width, load: Load) {
        if !PROBED {
            return;
        }
        let core = self.core;
        if let Some(recorder) = self.shared.fabric.recorder.as_deref_mut() {
            let cached = addr < map::L1_SIZE && load.latency == timing::LOAD_LOCAL;
            if !recorder.skips_load(core, pc, addr, cached) {
                let loaded = Loaded { addr, bytes: width.bytes() as u8, value: load.value, cached };
                recorder.load(core, at, pc, loaded);
            }
        }
    }

    /// Records a store, if all stores are recorded.
    #[inline(always)]
    pub(super) fn stored(&mut self, at: Cycle, pc: u32, addr: u32, width: Width, value: u32) {
        let core = self.core;
        if !PROBED {
            return;
        }
        if let Some(recorder) = self.shared.fabric.recorder.as_deref_mut()
            && !recorder.skips_store(core, addr)
        {
            let stored = Stored { addr, bytes: width.bytes() as u8, value: value & width.mask() };
            recorder.store(core, at, pc, stored);
        }
    }

    /// Records a push of an instruction that the code contains.
    #[inline(always)]
    pub(super) fn pushed(&mut self, at: Cycle, pc: u32) {
        let core = self.core;
        if PROBED && let Some(recorder) = self.shared.fabric.recorder.as_deref_mut().filter(|it| it.watches()) {
            recorder.record(at, Agent::Core(core), pc, What::Pushes);
        }
    }

    /// Who records all accesses.
    #[inline(always)]
    pub(super) fn records(&mut self) -> Option<&mut Recorder> {
        if !PROBED {
            return None;
        }
        self.shared.fabric.recorder.as_deref_mut().filter(|recorder| recorder.wants(Wants::ACCESSES))
    }

    /// Records a store that is recorded even when most are not.
    #[cold]
    pub(super) fn observe_store(&mut self, at: Cycle, pc: u32, addr: u32, width: Width, value: u32) {
        let is_observed = addr < map::L1_SIZE && self.shared.fabric.is_observed(addr);
        let Some(recorder) = &mut self.shared.fabric.recorder else { return };
        if is_observed {
            recorder.record_counts(self.core, at);
        }
        let (bytes, value) = (width.bytes() as u8, value & width.mask());
        if recorder.wants(Wants::ACCESSES) {
            recorder.store(self.core, at, pc, Stored { addr, bytes, value });
        } else if is_observed || addr >= map::L1_SIZE && recorder.wants(Wants::REGISTERS) {
            recorder.record(at, Agent::Core(self.core), pc, What::Store { addr, bytes, value });
        }
    }
}
