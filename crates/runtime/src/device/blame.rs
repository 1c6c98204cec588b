//! From what stopped the device to the error that a person reads.

use super::{Device, Running};
use crate::RuntimeError;
use crate::explain::Scene;
use crate::queue::Waited;
use tilework_sim::ChipError;

impl Device {
    /// Explains what stopped a call, and remembers that the device is lost if it is.
    pub(super) fn explain(&mut self, stopped: Waited, batch: &[Running]) -> RuntimeError {
        let error = match stopped {
            Waited::Other(error) => error,
            Waited::Chip(error) => self.explain_chip(*error, batch),
        };
        self.note(error)
    }

    fn explain_chip(&self, error: ChipError, batch: &[Running]) -> RuntimeError {
        let mut scene = Scene {
            board: self.config.board,
            map: &self.map,
            chip: self.card.link(),
            l1: &self.l1,
            firmware: &self.firmware,
            cq_kernels: &self.cq_kernels,
            queue: self.queue.as_ref(),
            batch,
            waiting: Vec::new(),
        };
        match error {
            ChipError::Fault(fault) => {
                let site = &fault.site;
                let place = site.tile.zip(site.core).zip(site.pc);
                let place = place.map(|((tile, core), pc)| scene.fault_place(tile, core, pc));
                RuntimeError::Fault { fault: Box::new(fault), place }
            }
            ChipError::Deadlock { cycle, waiting } => {
                scene.waiting = waiting;
                RuntimeError::Deadlock(Box::new(scene.deadlock(cycle)))
            }
            ChipError::Budget { cycles, busy } => RuntimeError::Budget(Box::new(scene.budget(cycles, &busy))),
        }
    }
}
