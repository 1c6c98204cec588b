//! Late packets: the reordering that the documents allow and that the routers' times do not show.
//!
//! The network carries packets in the order of departure, so that two packets between the same NIUs
//! never overtake each other. Hardware promises less (WormholeB0/NoC/Ordering.md, "Ordering
//! properties of two packets"): answers may overtake each other, and of two requests on one virtual
//! channel only these keep their order:
//!
//! - a write before a read,
//! - an atomic before an atomic,
//! - accesses of MMIO addresses: a write before a write, a read before or behind any read.
//!
//! With this switched on, each packet is delayed by a number of cycles of a seeded stream, and kept
//! behind those that it must not overtake. Requests of the host keep their order, whatever they are
//! (strict ordering of its windows, same page), and so do requests to the PCIe tile, whose
//! transactions on one virtual channel are in order. Programs that need more order than that fail
//! here for some seed, and on the chip some day.

use super::packet::NodeId;
use super::{Body, Packet, Place};
use crate::Cycle;
use std::collections::BTreeMap;
use tilework_abi::tensix::LOCAL_BASE;
use tilework_rng::SplitMix64;

/// First address of a tile's registers. What lies from there on keeps its order.
const MMIO: u64 = LOCAL_BASE as u64;

/// How late packets are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LatePackets {
    /// Seed of the delays.
    pub seed: u64,
    /// The longest delay in cycles.
    pub most: Cycle,
}

/// The latest arrivals from one NIU at another, by what must not overtake them.
#[derive(Clone, Copy, Debug, Default)]
struct Floors {
    writes: Cycle,
    reads: Cycle,
    atomics: Cycle,
    mmio_writes: Cycle,
    mmio_reads: Cycle,
}

/// The delays of a run.
#[derive(Clone, Debug)]
pub(super) struct Late {
    most: Cycle,
    host: NodeId,
    delays: SplitMix64,
    floors: BTreeMap<(u8, Place, Place), Floors>,
}

impl Late {
    /// The delays of `config`; `host` is the node of the PCIe tile.
    pub(super) fn new(config: LatePackets, host: NodeId) -> Self {
        Self { most: config.most, host, delays: SplitMix64::new(config.seed), floors: BTreeMap::new() }
    }

    /// When a packet to `to` arrives that could be there at `at`: never sooner.
    pub(super) fn arrival(&mut self, at: Cycle, packet: &Packet, to: Place) -> Cycle {
        let delay = self.delays.bits() % (self.most + 1);
        let (addr, length) = match &packet.body {
            Body::ReadRequest { addr, len, .. } => (*addr, u64::from(*len)),
            Body::WriteRequest { addr, data, .. } => (*addr, data.len() as u64),
            Body::AtomicRequest { addr, .. } => (*addr, 4),
            Body::ReadResponse { .. } | Body::WriteAck { .. } | Body::AtomicResponse { .. } => {
                // What the host reads comes to it in order.
                return if to.node == self.host { at } else { at + delay };
            }
            Body::Refused { .. } => return at,
        };
        let floors = self.floors.entry((packet.noc, packet.from, to)).or_default();
        if packet.from.node == self.host || to.node == self.host {
            let delay = if to.node == self.host { delay } else { 0 };
            floors.writes = floors.writes.max(at + delay);
            return floors.writes;
        }
        let mmio = addr.saturating_add(length) > MMIO;
        match (&packet.body, mmio) {
            (Body::WriteRequest { .. }, false) => {
                floors.writes = floors.writes.max(at + delay);
                at + delay
            }
            (Body::WriteRequest { .. }, true) => {
                floors.mmio_writes = floors.mmio_writes.max(at + delay);
                floors.writes = floors.writes.max(floors.mmio_writes);
                floors.mmio_writes
            }
            (Body::ReadRequest { .. }, false) => {
                let at = (at + delay).max(floors.writes).max(floors.mmio_reads);
                floors.reads = floors.reads.max(at);
                at
            }
            (Body::ReadRequest { .. }, true) => {
                let at = (at + delay).max(floors.writes).max(floors.reads);
                (floors.reads, floors.mmio_reads) = (at, at);
                at
            }
            _ => {
                floors.atomics = floors.atomics.max(at + delay);
                floors.atomics
            }
        }
    }
}
