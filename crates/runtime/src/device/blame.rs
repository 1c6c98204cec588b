//! Turns what stopped the device into the error that a user reads.

use super::{Device, Running};
use crate::RuntimeError;
use crate::explain::Scene;
use crate::queue::{CommandQueue, Waited};
use tilework_driver::{DriverError, HostLink, Inspect, LinkError};

impl<C: HostLink> Device<C> {
    /// Explains what stopped a call, and remembers that the device is lost if it is.
    pub(super) fn explain(&mut self, stopped: Waited, batch: &[Running]) -> RuntimeError {
        self.explain_from(stopped, 0, batch)
    }

    /// As [`Device::explain`], when the first program of `batch` has number `first` in the queue.
    pub(super) fn explain_from(&mut self, stopped: Waited, first: usize, batch: &[Running]) -> RuntimeError {
        let error = match stopped {
            Waited::Other(error) => error,
            Waited::Interrupted { cycles } => {
                RuntimeError::Interrupted(Box::new(self.scene(first, batch).budget(cycles, true)))
            }
            Waited::Link(error) => self.explain_link(error, first, batch),
        };
        self.note(error)
    }

    fn explain_link(&self, error: LinkError, first: usize, batch: &[Running]) -> RuntimeError {
        let mut scene = self.scene(first, batch);
        match error {
            LinkError::Fault(fault) => {
                let place = fault.tile.zip(fault.core).zip(fault.pc);
                let place = place.map(|((tile, core), pc)| scene.fault_place(tile, core, pc));
                RuntimeError::Fault { fault, place }
            }
            LinkError::Deadlock { cycle } => {
                scene.waiting = scene.chip.map(Inspect::waiting).unwrap_or_default();
                RuntimeError::Deadlock(Box::new(scene.deadlock(cycle)))
            }
            LinkError::Budget { cycles } => RuntimeError::Budget(Box::new(scene.budget(cycles, false))),
            other => RuntimeError::Driver(DriverError::Link(other)),
        }
    }

    /// Everything that a report needs.
    fn scene<'a>(&'a self, first: usize, batch: &'a [Running]) -> Scene<'a> {
        Scene {
            board: self.config.board,
            layout: self.config.layout,
            map: &self.map,
            chip: self.card.link().inspect(),
            l1: self.memory.l1(),
            firmware: &self.firmware,
            cq_kernels: &self.cq_kernels,
            queue: self.queue.as_ref(),
            sent: self.queue.as_ref().map(CommandQueue::sent).unwrap_or_default(),
            first,
            batch,
            waiting: Vec::new(),
        }
    }
}
