//! Lifetimes of dynamic queues, which programs allocate and deallocate (tt-budabackend,
//! `docs/public/netlist.md`, `allocate_queue`).
//!
//! Their memory may overlap as long as their lifetimes do not.

use super::error::{QueueError, QueueProblem};
use tilework_netlist::size::buffer_bytes;
use tilework_netlist::types::{Arch, InstructionKind, Location, Netlist, Queue, QueueId};

/// Which queues are alive.
#[derive(Debug)]
pub struct Life {
    /// By queue; `None` for those that always live.
    alive: Vec<Option<bool>>,
}

impl Life {
    /// The queues that some program allocates are dynamic; none of them is alive yet.
    pub fn new(netlist: &Netlist) -> Self {
        let mut alive = vec![None; netlist.queues.len()];
        for instruction in netlist.programs.iter().flat_map(|program| &program.instructions) {
            if let InstructionKind::AllocateQueue(queues) = &instruction.kind {
                queues.iter().for_each(|queue| alive[queue.0] = Some(false));
            }
        }
        Self { alive }
    }

    /// Whether programs allocate a queue.
    pub fn is_dynamic(&self, queue: QueueId) -> bool {
        self.alive[queue.0].is_some()
    }

    /// Whether a queue can be used.
    pub fn is_alive(&self, queue: QueueId) -> bool {
        self.alive[queue.0] != Some(false)
    }

    /// Allocates a queue.
    pub fn begin(&mut self, netlist: &Netlist, queue: QueueId) -> Result<(), QueueError> {
        if self.alive[queue.0] == Some(true) {
            return Err(QueueProblem::AllocatedTwice.of(netlist, queue));
        }
        for (other, _) in self.alive.iter().enumerate().filter(|(_, alive)| **alive == Some(true)) {
            if let Some((channel, address)) = overlap(netlist, queue, QueueId(other)) {
                let other = netlist.queues[other].name.clone();
                return Err(QueueProblem::Overlap { other, channel, address }.of(netlist, queue));
            }
        }
        self.alive[queue.0] = Some(true);
        Ok(())
    }

    /// Deallocates a queue.
    pub fn end(&mut self, netlist: &Netlist, queue: QueueId) -> Result<(), QueueError> {
        if self.alive[queue.0] != Some(true) {
            return Err(QueueProblem::NotAllocated.of(netlist, queue));
        }
        self.alive[queue.0] = Some(false);
        Ok(())
    }
}

/// A buffer of `a` that overlaps one of `b`. Sizes are those of Blackhole, which has the largest
/// tiles, unless the netlist is not for it.
pub(crate) fn overlap(netlist: &Netlist, a: QueueId, b: QueueId) -> Option<(u32, u64)> {
    let (first, second) = (netlist.queue(a), netlist.queue(b));
    let same_memory = match first.location {
        Location::Host => second.location == Location::Host,
        Location::Dram => second.location == Location::Dram && first.target_device == second.target_device,
    };
    if !same_memory {
        return None;
    }
    let arch = if netlist.archs.contains(&Arch::Blackhole) { Arch::Blackhole } else { Arch::Grayskull };
    let bytes = |queue: &Queue| buffer_bytes(&queue.blocks, queue.format, queue.entries, arch).unwrap_or(u64::MAX);
    let (first_bytes, second_bytes) = (bytes(first), bytes(second));
    let ends = |address: u64, bytes: u64| address.saturating_add(bytes);
    let places = first.buffers.iter().flat_map(|x| second.buffers.iter().map(move |y| (x, y)));
    let mut shared = places.filter(|(x, y)| {
        x.channel == y.channel && x.address < ends(y.address, second_bytes) && y.address < ends(x.address, first_bytes)
    });
    shared.next().map(|(x, y)| (x.channel, x.address.max(y.address)))
}
