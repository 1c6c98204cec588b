//! Turns what stopped the device into the error that a user reads.

use super::{Device, Running};
use crate::RuntimeError;
use crate::explain::{Lane, Looked, Scene, StoppedState};
use crate::queue::{CommandQueue, Sent, Waited};
use std::rc::Rc;
use tilework_abi::cq::status::{Kernel, word};
use tilework_driver::{DriverError, HostLink, Inspect, LinkError, Target};

impl<C: HostLink> Device<C> {
    /// Explains what stopped a call, and remembers that the device is lost if it is.
    pub(super) fn explain(&mut self, stopped: Waited, batch: &[Running]) -> RuntimeError {
        self.explain_from(stopped, 0, batch)
    }

    /// As [`Device::explain`], when the first program of `batch` has number `first` in the queue.
    pub(super) fn explain_from(&mut self, stopped: Waited, first: usize, batch: &[Running]) -> RuntimeError {
        let assertion = self.last_prints();
        let looked = self.look_at_mailboxes(&stopped, batch);
        let parked = self.parked.in_flight.programs();
        let sent = |queue: &Option<CommandQueue>| queue.as_ref().map(CommandQueue::sent).unwrap_or_default();
        let (own_sent, parked_sent) = (sent(&self.queue), sent(&self.parked.queue));
        let scene = self.scene(&looked, (first, batch, &own_sent), (&parked, &parked_sent));
        let state = if self.config.remember_programs { scene.state() } else { None };
        let error = match stopped {
            Waited::Other(error) => error,
            Waited::Interrupted { cycles } => RuntimeError::Interrupted(Box::new(scene.budget(cycles, true))),
            Waited::Link(error) => Self::explain_link(error, scene),
        };
        self.state = state;
        self.note(match assertion {
            Some(line) if error.is_fatal() => {
                RuntimeError::Assertion { line: Box::new(line), stopped: Box::new(error) }
            }
            _ => error,
        })
    }

    /// Reads what mailboxes and queues say of a run that does not end, where the chip cannot be
    /// looked into otherwise. A tile that does not answer is left out.
    fn look_at_mailboxes(&mut self, stopped: &Waited, batch: &[Running]) -> Looked {
        let hangs = matches!(stopped, Waited::Interrupted { .. } | Waited::Link(LinkError::Budget { .. }));
        if !hangs || self.card.link().inspect().is_some() {
            return Looked::new();
        }
        let (board, queues) = (self.config.board, self.config.queue_tiles());
        let counts = Kernel::Dispatch.status().offset(word::COMMANDS);
        let dispatchers = queues.ids().map(|id| (queues.layout().queue(id).dispatch_tile(board), counts));
        let parked = self.parked.in_flight.programs();
        let cores = batch.iter().chain(&parked).flat_map(|running| &running.layout.cores);
        let mailboxes = cores.flat_map(|&tile| [(tile, self.map.go), (tile, self.map.subordinate_sync())]);
        let mut looked: Looked = dispatchers.chain(mailboxes).map(|place| (place, 0)).collect();
        looked.retain(|&(tile, address), value| match self.card.read32(&Target::tile(tile), address) {
            Ok(found) => {
                *value = found;
                true
            }
            Err(_) => false,
        });
        looked
    }

    /// What the cores did when a call was stopped last. Of a chip that can be looked into, if
    /// [`DeviceConfig::remember_programs`](crate::DeviceConfig::remember_programs) asked for it.
    pub fn state(&self) -> Option<&StoppedState> {
        self.state.as_ref()
    }

    fn explain_link(error: LinkError, mut scene: Scene) -> RuntimeError {
        match error {
            LinkError::Fault(fault) => {
                let place = fault.tile.zip(fault.core).zip(fault.pc);
                let place = place.map(|((tile, core), pc)| scene.fault_place(tile, core, pc));
                RuntimeError::Fault { fault, place }
            }
            LinkError::Deadlock { cycle } => {
                scene.waiting = scene.chip.map(Inspect::waiting).unwrap_or_default().into();
                RuntimeError::Deadlock(Box::new(scene.deadlock(cycle)))
            }
            LinkError::Budget { cycles } => RuntimeError::Budget(Box::new(scene.budget(cycles, false))),
            LinkError::Ended { cycle } => RuntimeError::Interrupted(Box::new(scene.budget(cycle, true))),
            other => RuntimeError::Driver(DriverError::Link(other)),
        }
    }

    /// Everything that a report needs.
    fn scene<'a>(
        &'a self,
        looked: &'a Looked,
        (first, batch, sent): (usize, &'a [Running], &'a [Sent]),
        (parked, parked_sent): (&'a [Running], &'a [Sent]),
    ) -> Scene<'a> {
        let first_parked = self.parked.in_flight.first();
        let parked = |queue| Lane { queue, sent: parked_sent, first: first_parked, batch: parked };
        Scene {
            board: self.config.board,
            queues: self.config.queue_tiles(),
            at: self.at,
            map: &self.map,
            chip: self.card.link().inspect(),
            looked,
            l1: self.memory.l1(),
            firmware: &self.firmware,
            cq_kernels: &self.cq_kernels,
            queue: self.queue.as_ref(),
            sent,
            first,
            batch,
            other: self.parked.queue.as_ref().map(parked),
            waiting: Rc::default(),
        }
    }
}
