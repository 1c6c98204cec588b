//! What a tile records for observers.

use super::Tile;
use crate::NEVER;
use crate::probe::{Agent, Boundaries, Known, Recorder, Spot, Unjudged, Wants, What};
use std::ops::Range;
use tilework_abi::tensix::Processor;
use tilework_riscv::{Core, Cycle};

impl Tile {
    /// Records from now on, where the clock is at `now`, what `wants` includes, and stores to these
    /// lines of L1; of what is known only what `others` want. `once`: of counters of NIUs only
    /// their first loads.
    pub(crate) fn observe(&mut self, (wants, others): (Wants, Wants), once: bool, lines: &[Range<u32>], now: Cycle) {
        if let Some(recorder) = &mut self.shared.fabric.recorder
            && recorder.has_wants(wants, others)
        {
            // What is known stays so, but where stores are to be seen.
            recorder.watch(self.slots.iter().map(|slot| slot.core.now).fold(now, Cycle::max), lines);
            return lines.iter().for_each(|line| self.shared.fabric.observe(line.clone()));
        }
        let recorder =
            self.shared.fabric.recorder.get_or_insert_with(|| Box::new(Recorder::new(Spot::Tensix(self.xy))));
        recorder.set_wants(wants, others);
        recorder.see_counters_once(once);
        (0..self.slots.len()).for_each(|core| self.withdraw_row(core));
        if wants.has(Wants::TENSIX) {
            self.shared.tensix.tell_expanders();
        }
        lines.iter().for_each(|line| self.shared.fabric.observe(line.clone()));
        // A core that speculates would record what may not happen.
        self.confirm();
        self.speculation.enabled = false;
        self.forget_known(now);
    }

    /// All accesses are recorded until an observer knows something again.
    pub(crate) fn forget_known(&mut self, now: Cycle) {
        let now = self.slots.iter().map(|slot| slot.core.now).fold(now, Cycle::max);
        if let Some(recorder) = &mut self.shared.fabric.recorder {
            recorder.forget_known(now);
            for (core, port) in Processor::ALL.into_iter().zip(&self.ports) {
                recorder.filter.set_cache(core, port.l0.tags());
            }
        }
    }

    /// From now on these are the boundaries of what is known.
    pub(crate) fn set_boundaries(&mut self, boundaries: Boundaries) {
        if let Some(recorder) = &mut self.shared.fabric.recorder {
            recorder.filter.set_boundaries(boundaries, self.slots[Processor::Brisc.index()].core.now);
        }
    }

    /// From now on this need not be seen.
    pub(crate) fn set_unjudged(&mut self, unjudged: &Unjudged) {
        if let Some(recorder) = &mut self.shared.fabric.recorder {
            recorder.set_unjudged(unjudged);
        }
    }

    /// A program is about to be launched: what need not be seen of it.
    pub(crate) fn launches(&mut self, unjudged: &Unjudged) {
        self.set_unjudged(unjudged);
        if let Some(recorder) = &mut self.shared.fabric.recorder {
            recorder.filter.launches();
        }
    }

    /// Leaves out from now on what an observer knows.
    pub(crate) fn know(&mut self, known: &Known) {
        let fabric = &mut self.shared.fabric;
        if let Some(mut recorder) = fabric.recorder.take() {
            recorder.filter.know(known, |addr| fabric.is_observed(addr));
            fabric.recorder = Some(recorder);
        }
    }

    /// Records from now on the loads from these bytes of L1.
    pub(crate) fn observe_loads(&mut self, loads: Vec<Range<u32>>) {
        if let Some(recorder) = &mut self.shared.fabric.recorder {
            recorder.set_loads(loads);
        }
    }

    /// Records what `what` says of core `i`, at its cycle.
    pub(super) fn record_core(&mut self, i: usize, what: impl FnOnce(&Core) -> What) {
        self.record_core_at(i, self.slots[i].core.now, what);
    }

    pub(super) fn record_core_at(&mut self, i: usize, at: Cycle, what: impl FnOnce(&Core) -> What) {
        let Some(recorder) = &mut self.shared.fabric.recorder else { return };
        let (core, processor) = (&self.slots[i].core, Processor::ALL[i]);
        recorder.pause(processor, at);
        if recorder.wants(Wants::CORES) {
            recorder.record(at, Agent::Core(processor), core.pc, what(core));
        }
    }

    /// Hands over what the cores have executed, as of cycle `at`.
    pub(crate) fn settle_counts(&mut self, at: Cycle, events: &mut Vec<crate::Event>) {
        if let Some(recorder) = &mut self.shared.fabric.recorder {
            Processor::ALL.into_iter().for_each(|core| recorder.record_counts(core, at));
            recorder.hand_over(events);
        }
    }

    /// Lines of accesses that are known are told as such from now on, or not.
    pub(crate) fn gather_lines(&mut self, gather: bool) {
        if let Some(recorder) = &mut self.shared.fabric.recorder {
            recorder.gather_lines(gather);
        }
    }

    /// Hands over the lines that cores are going through.
    pub(crate) fn settle_lines(&mut self, events: &mut Vec<crate::Event>) {
        if let Some(recorder) = &mut self.shared.fabric.recorder {
            recorder.close_lines();
            recorder.hand_over(events);
        }
    }

    /// Hands over the lines that cores go through since before a cycle. Gives the first cycle of
    /// those that they are still going through.
    pub(crate) fn settle_lines_before(&mut self, at: Cycle, events: &mut Vec<crate::Event>) -> Cycle {
        let Some(recorder) = &mut self.shared.fabric.recorder else { return NEVER };
        let first = recorder.close_lines_before(at);
        recorder.hand_over(events);
        first
    }
}
