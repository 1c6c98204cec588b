//! Programs and stretches of the queue whose times the dispatcher writes down, without waiting for
//! each: what [`Device::run`] reports, for calls that only enqueue.

use super::{BATCH_PROGRAMS, Device};
use crate::RuntimeError;
use crate::lower;
use crate::program::Program;
use crate::trace::CallSite;
use tilework_abi::addr::Cycle;
use tilework_abi::convert::u32_of;
use tilework_abi::cq::layout::host;
use tilework_driver::HostLink;

/// Where the times of something that was enqueued will be: a pair of the host region's slots.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct TimeSlot(u32);

impl TimeSlot {
    /// How many there are.
    pub const COUNT: usize = BATCH_PROGRAMS;

    /// Number `index` of them; none beyond the last.
    pub fn new(index: usize) -> Option<Self> {
        (index < Self::COUNT).then(|| Self(u32_of(index)))
    }

    pub(super) fn stamps(self) -> (u32, u32) {
        (2 * self.0, 2 * self.0 + 1)
    }
}

impl<C: HostLink> Device<C> {
    /// As [`Device::enqueue_program`] without waiting; the dispatcher writes its clock before the
    /// program and after its end to `slot`, as for a program of [`Device::run`], which uses the
    /// slots, too. Without a program cache (slow dispatch, plain lowering), without timestamps and
    /// in a capture nothing is written. Returns the number of its cores, and whether the times
    /// will be there.
    ///
    /// # Errors
    /// As [`Device::enqueue_program`].
    #[track_caller]
    pub fn enqueue_program_timed(&mut self, program: &Program, slot: TimeSlot) -> Result<(usize, bool), RuntimeError> {
        if self.is_capturing() || self.launcher.is_none() || !self.config.timestamps {
            let cores = self.layout(program)?.cores.len();
            self.enqueue_program(program, crate::Blocking::No)?;
            return Ok((cores, false));
        }
        self.begin()?;
        self.check_kernels(program)?;
        let Some(launcher) = &mut self.launcher else { return Err(RuntimeError::NoCache) };
        let prepared = launcher.prepare(program, self.memory.l1())?;
        self.enqueue_launch(&prepared, Some(slot.stamps()))?;
        Ok((prepared.plain_layout().cores.len(), true))
    }

    /// Has the dispatcher write its clock to `slot` before what `enqueue` puts into the queue and
    /// after it. Without a queue or timestamps nothing is written.
    ///
    /// # Errors
    /// Those of `enqueue`; a device that stopped.
    #[track_caller]
    pub fn enqueue_timed<T>(
        &mut self,
        slot: TimeSlot,
        enqueue: impl FnOnce(&mut Self) -> Result<T, RuntimeError>,
    ) -> Result<(T, bool), RuntimeError> {
        self.outside_capture("enqueue_timed", CallSite::here())?;
        if self.queue.is_none() || !self.config.timestamps {
            return Ok((enqueue(self)?, false));
        }
        let (start, end) = slot.stamps();
        self.enqueue_commands(&[lower::timestamp(self.bases[self.at.index()], start)])?;
        let value = enqueue(self)?;
        self.enqueue_commands(&[lower::timestamp(self.bases[self.at.index()], end)])?;
        Ok((value, true))
    }

    /// What the dispatcher wrote to `slot`: the clock before and after. Everything in the queue
    /// must have ended ([`Device::finish`]).
    ///
    /// # Errors
    /// Slow dispatch; a device that stopped.
    pub fn times(&mut self, slot: TimeSlot) -> Result<[Cycle; 2], RuntimeError> {
        self.alive()?;
        let Some(queue) = &self.queue else { return Err(RuntimeError::NoQueue) };
        let (link, region) = (self.card.link_mut(), queue.region());
        let mut word = |slot: u32| {
            let mut bytes = [0; 8];
            region.read(link, (host::TIMESTAMPS.offset() + slot * host::SLOT_SIZE).into(), &mut bytes)?;
            Ok::<_, tilework_driver::DriverError>(u64::from_le_bytes(bytes))
        };
        let (start, end) = slot.stamps();
        let times = word(start).and_then(|start| Ok([start, word(end)?]));
        times.map_err(|error| self.explain(error.into(), &[]))
    }
}
