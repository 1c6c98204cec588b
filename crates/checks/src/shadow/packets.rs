//! Requests of cores, and packets where they arrive.

use super::observer::{CheckObserver, PADDING, Span, in_l1};
use super::report::Actor;
use super::tile::Tile;
use crate::finding::Agent as Who;
use crate::protocol::{self, By, Issued};
use std::sync::Arc;
use tilework_abi::tensix::{L1_SIZE, Processor};
use tilework_sim::{Agent, Cycle, Event, PacketEvent, PacketKind, Request, RequestKind, Spot, What};

impl CheckObserver {
    /// A request of a core.
    pub(super) fn requested(&mut self, tile: &mut Tile, core: Processor, actor: Actor, request: &Request) {
        let known = tile.launch.clone();
        let known = known.filter(|_| tile.cores[core.index()].in_kernel(actor.code.map_or(0, |code| code.pc)));
        let Some(launch) = known.or_else(|| self.stranger.clone()) else { return };
        let issued = Arc::new(Issued { actor, launch, request: request.clone() });
        self.in_flight.issue(&mut self.reports, &issued);
        protocol::started(tile, core, &issued, &self.in_flight);
        let agent = actor.by(issued.agent());
        let len = u32::try_from(request.len).unwrap_or(u32::MAX);
        if let Ok(addr) = u32::try_from(request.local_addr) {
            let span = Span { addr, len };
            match request.kind {
                RequestKind::Read if addr < L1_SIZE => {
                    self.write_l1(tile, Some(core), agent, span);
                    self.may_know_arriving(tile, Some(core), span, agent.at);
                }
                RequestKind::Write if addr < L1_SIZE => {
                    self.read_l1(tile, core, agent, span);
                    if self.stranger.is_some() {
                        self.reads_null(agent, in_l1(tile.xy, span));
                    }
                    self.check_written(tile, agent, span, PADDING.min(len));
                }
                _ => {}
            }
        }
        self.remote(tile, &issued, agent, len);
    }

    /// The other end of a request.
    fn remote(&mut self, tile: &mut Tile, issued: &Issued, agent: Actor, len: u32) {
        let request = &issued.request;
        match request.remote {
            Spot::Dram(_) if self.stranger.is_some() => {}
            Spot::Dram(bank) => self.reach_dram(issued, agent, bank),
            Spot::Tensix(xy) => {
                let Ok(addr) = u32::try_from(request.remote_addr) else { return };
                if addr >= L1_SIZE || request.kind == RequestKind::Read {
                    return;
                }
                let span = Span { addr, len };
                if xy == tile.xy {
                    self.write_l1_of(tile, None, agent, span, &issued.launch);
                } else {
                    let mut other = self.tiles.take(xy);
                    self.write_l1_of(&mut other, None, agent, span, &issued.launch);
                    self.tiles.put(other);
                }
            }
            Spot::Pcie | Spot::Arc | Spot::Inert => {}
        }
    }

    /// A packet at a Tensix tile.
    pub(super) fn on_packet(&mut self, tile: &mut Tile, event: &Event) {
        let What::Arrives(packet) = event.what else {
            if let (What::Wrapped { .. }, Agent::Niu(noc)) = (&event.what, event.agent) {
                let host = Actor { tile: tile.xy, agent: Who::Host, code: None, at: event.at };
                self.rare(tile, By::Niu(noc), host, &event.what);
            }
            return;
        };
        if let (Ok(addr), true) = (u32::try_from(packet.addr), packet.len > 0)
            && addr < L1_SIZE
        {
            let span = Span { addr, len: packet.len.min(L1_SIZE - addr) };
            let host = Actor { tile: tile.xy, agent: Who::Host, code: None, at: event.at };
            let issued = self.in_flight.of(packet.id).cloned();
            let actor = issued.as_ref().map_or(host, |issued| issued.actor.by(issued.agent()));
            match packet.kind {
                PacketKind::WriteRequest | PacketKind::AtomicRequest => {
                    if let Some(issued) = issued.as_ref().filter(|issued| issued.actor.tile != tile.xy) {
                        tile.was_told = true;
                        self.write_cb(tile, None, actor, span, Some(&issued.launch));
                    }
                    self.wrote(tile, None, actor, span);
                    self.may_know_arrived(tile, span, event.at);
                }
                PacketKind::ReadResponse | PacketKind::AtomicResponse => {
                    self.wrote(tile, None, actor, span);
                    self.may_know_arriving(tile, None, span, event.at);
                }
                PacketKind::ReadRequest if issued.is_some() => {
                    self.check_written(tile, actor, span, PADDING.min(span.len))
                }
                _ => {}
            }
        }
        self.in_flight.arrived(&packet);
    }

    /// A packet at a DRAM bank.
    pub(super) fn on_dram(&mut self, bank: u8, packet: &PacketEvent, at: Cycle) {
        let issued = self.in_flight.of(packet.id).cloned();
        match packet.kind {
            PacketKind::WriteRequest | PacketKind::AtomicRequest => {
                self.wrote_dram(bank, packet, issued.as_deref(), at)
            }
            PacketKind::ReadRequest => {
                if let Some(issued) = &issued {
                    self.read_dram(bank, packet, issued, at);
                }
            }
            _ => {}
        }
        self.in_flight.arrived(packet);
    }
}
