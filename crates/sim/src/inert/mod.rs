//! Tiles whose cores do not run: Ethernet, L2CPU, the security tile, the idle PCIe tile, empty
//! tiles and everything that is fused off.
//!
//! They are part of the torus: packets pass their routers, and their NIUs answer, so that a
//! driver finds what it expects at every position of the grid. Behind the NIUs, Ethernet tiles
//! have their L1 and L2CPU tiles their registers, both as plain storage; releasing an Ethernet
//! core is a fault, because nothing would run. One node serves all these tiles: they do nothing
//! by themselves.
//!
//! Follows BlackholeA0/NoC/MemoryMap.md (where NIUs are visible), BlackholeA0/EthernetTile and
//! BlackholeA0/L2CPUTile.

mod content;
#[cfg(test)]
mod tests;

use crate::endpoint::Endpoint;
use crate::event_queue::EventQueue;
use crate::noc::{Body, Dest, Grid, HostRequest, Niu, NodeId, Outbox, Packet, Place, serve_or_refuse};
use crate::{Cycle, Fault, FaultClass, Memory, timing};
use content::Content;
use std::collections::BTreeMap;
use std::sync::Arc;
use tilework_abi::grid::Site;
use tilework_abi::noc::{MAX_PACKET_BYTES, NIU_ALIAS, NIU_SPAN, NIU0_BASE, NIU1_BASE};

const READ: &str = "BlackholeA0/NoC/MemoryMap.md";

/// All inert tiles of a chip.
#[derive(Clone, Debug)]
pub(crate) struct InertTiles {
    tiles: BTreeMap<(u8, u8), Tile>,
    arrivals: EventQueue<Box<Packet>>,
}

#[derive(Clone, Debug)]
struct Tile {
    site: Site,
    nius: [Niu; 2],
    content: Content,
}

impl InertTiles {
    /// The tiles that `grid` assigns to `node`.
    pub(crate) fn new(node: NodeId, grid: &Arc<Grid>) -> Self {
        let tile = |place: Place| {
            let site = Site::at(place.x, place.y)?;
            let niu = |noc| {
                let endpoint = grid.endpoint_id(noc, place);
                Niu::new(noc, place, grid.logical(noc, place), endpoint, grid.clone())
            };
            let content = Content::of(site, grid.works(place));
            Some(((place.x, place.y), Tile { site, nius: [niu(0), niu(1)], content }))
        };
        Self { tiles: grid.places_of(node).filter_map(tile).collect(), arrivals: EventQueue::new() }
    }

    fn serve(&mut self, at: Cycle, packet: &Packet, out: &mut Outbox) -> Result<(), Fault> {
        let Dest::Unicast(here) = packet.to else {
            let what = "a multicast reached a tile that is not Tensix; only Tensix tiles receive them";
            return Err(Fault::new(FaultClass::UnsupportedFunctionality, what, READ));
        };
        match self.tiles.get_mut(&(here.x, here.y)) {
            Some(tile) => tile.serve(at, packet, out),
            None => Err(Fault::new(FaultClass::UndefinedBehavior, "a packet for a place without a tile", READ)),
        }
    }
}

/// Which NIU `addr` belongs to when it is accessed over NoC `noc`, and the offset of the register
/// (NoC/MemoryMap.md, table of `NIU_BASE`).
pub(crate) fn niu_register(site: Site, noc: u8, addr: u64) -> Option<(u8, u32)> {
    const HIGH: u64 = 0xFFFF_FFFF_0000_0000;
    let low = addr as u32;
    let off = |base: u32| low.checked_sub(base).filter(|off| *off < NIU_SPAN);
    let both = || off(NIU0_BASE).map(|off| (0, off)).or_else(|| off(NIU1_BASE).map(|off| (1, off)));
    let own = || off(NIU_ALIAS).or_else(|| both().map(|(_, off)| off)).map(|off| (noc, off));
    match site {
        Site::Tensix | Site::Ethernet { .. } if addr == u64::from(low) => both(),
        Site::Tensix | Site::Ethernet { .. } => None,
        Site::Dram { .. } => both(),
        Site::Empty if addr == u64::from(low) => own(),
        Site::Empty => None,
        _ if addr & HIGH == HIGH => own(),
        _ => None,
    }
}

impl Tile {
    fn serve(&mut self, at: Cycle, packet: &Packet, out: &mut Outbox) -> Result<(), Fault> {
        let noc = packet.noc & 1;
        let (addr, len) = match &packet.body {
            Body::ReadRequest { addr, len, .. } => (*addr, *len as usize),
            Body::WriteRequest { addr, data, .. } => (*addr, data.len()),
            _ => (0, 0),
        };
        if len > MAX_PACKET_BYTES as usize {
            let what = format!("a request of {len} bytes; a packet holds {MAX_PACKET_BYTES}");
            return Err(Fault::new(FaultClass::UndefinedBehavior, what, READ).at_addr(addr));
        }
        match niu_register(self.site, noc, addr) {
            None => self.nius[usize::from(noc)].receive(at, packet, &mut self.content, out),
            Some(register) => {
                serve_register(&mut self.nius, register, at, packet, out).map_err(|fault| fault.at_addr(addr))
            }
        }
    }
}

/// Serves a packet that arrives over NoC `packet.noc` for the register at `off` of NIU `which` of a
/// tile.
///
/// # Errors
/// An access that the NIU refuses, or one that would make it send a request: no core of
/// the tile runs.
pub(crate) fn serve_register(
    nius: &mut [Niu; 2],
    (which, off): (u8, u32),
    at: Cycle,
    packet: &Packet,
    out: &mut Outbox,
) -> Result<(), Fault> {
    let (which, noc) = (usize::from(which & 1), usize::from(packet.noc & 1));
    let is_write = matches!(packet.body, Body::WriteRequest { .. });
    let value = if is_write { 0 } else { nius[which].read(off & !3, at)?.0 };
    let mut word = Word { value, off };
    nius[noc].receive(at, packet, &mut word, out)?;
    if is_write && nius[which].write(off, word.value, at)?.is_some() {
        let what = "an NIU of a tile whose cores do not run is told to send a request";
        return Err(Fault::new(FaultClass::UnimplementedFunctionality, what, READ));
    }
    Ok(())
}

/// One register of an NIU, as a packet sees it.
struct Word {
    value: u32,
    off: u32,
}

impl Memory for Word {
    fn read(&mut self, _at: Cycle, addr: u64, out: &mut [u8]) -> Result<(), Fault> {
        let bytes = self.value.to_le_bytes();
        match bytes.get((self.off % 4) as usize..).and_then(|rest| rest.get(..out.len())) {
            Some(part) => out.copy_from_slice(part),
            None => return Err(whole_word(addr)),
        }
        Ok(())
    }
    fn write(&mut self, _at: Cycle, addr: u64, data: &[u8]) -> Result<(), Fault> {
        self.value = u32::from_le_bytes(data.try_into().map_err(|_| whole_word(addr))?);
        Ok(())
    }
    fn is_l1(&self, _addr: u64) -> bool {
        false
    }
}

fn whole_word(addr: u64) -> Fault {
    let what = "registers take 4 bytes at a time";
    Fault::new(FaultClass::UndefinedBehavior, what, READ).at_addr(addr)
}

impl Endpoint for InertTiles {
    type Event = Box<Packet>;

    fn events(&self) -> &EventQueue<Box<Packet>> {
        &self.arrivals
    }
    fn events_mut(&mut self) -> &mut EventQueue<Box<Packet>> {
        &mut self.arrivals
    }
    fn handle(&mut self, at: Cycle, packet: Box<Packet>, out: &mut Outbox) -> Result<(), Fault> {
        let (from, host) = (packet.from, HostRequest::of(&packet));
        serve_or_refuse(host, at + timing::SERVE_FIRST, out, |out| {
            self.serve(at, &packet, out).map_err(|fault| fault.sent_by(from))
        })
    }
}
