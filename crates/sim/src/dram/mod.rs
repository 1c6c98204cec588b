//! A GDDR6 bank behind its NoC ports.
//!
//! A bank holds 4 GiB and is reached through three ports on each NoC, so several [`Place`]s share
//! one [`DramBank`]. The chip promises little about order between ports
//! (WormholeB0/DRAMTile/README.md, "Ordering"); here each request takes effect in the cycle in
//! which it arrives, whatever its port, which is one of the permitted orders. Timing has three
//! parts, given in [`crate::timing`]: a port takes one read per 16.4 cycles, the bank moves 47.4
//! bytes a cycle for all ports together, and the access itself takes [`timing::DRAM_ACCESS`].
//! Atomics do not exist here (WormholeB0/NoC/Atomics.md: L1 only).
//!
//! Reads change nothing that others see before their answers leave, which is no sooner than the
//! bank is free and has accessed its memory. So while nothing but reads waits, the bank puts them
//! off until then, and serves those that have queued up in one go, each as of its own cycle.

mod store;
#[cfg(test)]
mod tests;

use std::sync::Arc;

pub(crate) use store::{OutOfRange, SparseMemory};

use crate::endpoint::Endpoint;
use crate::event_queue::EventQueue;
use crate::inert::{niu_register, serve_register};
use crate::noc::{self, Body, Data, Dest, Grid, HostRequest, Niu, Outbox, Packet, Place, serve_or_refuse};
use crate::node::Outlook;
use crate::pipe::Pipe;
use crate::{Cycle, Fault, FaultClass, Memory, timing};
use tilework_abi::board::DRAM_BANK_BYTES;
use tilework_abi::grid::Site;
use tilework_abi::noc::MAX_PACKET_BYTES;

/// The page that describes DRAM tiles.
const READ: &str = "WormholeB0/DRAMTile/README.md";

/// One DRAM bank.
#[derive(Clone, Debug)]
pub(crate) struct DramBank {
    content: Content,
    events: EventQueue<Event>,
    /// The bandwidth of the memory itself.
    channel: Pipe,
    /// The ports that have been used.
    ports: Vec<Port>,
    /// Waiting requests for registers of the NIUs, which are answered sooner than memory.
    register_requests: usize,
    /// Waiting packets that are not [`Event::Read`], those for registers included.
    others: usize,
    /// The source of the ports' NIU registers; without it, their addresses are memory
    /// like the rest.
    grid: Option<Arc<Grid>>,
}

/// A port, on both NoCs.
#[derive(Clone, Debug)]
struct Port {
    place: Place,
    /// What it accepts over each NoC.
    pipes: [Pipe; 2],
    nius: Option<Box<[Niu; 2]>>,
}

/// What can happen in a bank.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    /// A read of the memory arrived, which nothing can be wrong with.
    Read(Box<Packet>),
    /// Another packet arrived from the NoC.
    Arrive(Box<Packet>),
    /// A port has accepted a read; this is its answer.
    Fetch(Box<Packet>),
}

/// The bank's memory as packets see it.
#[derive(Clone, Debug)]
struct Content {
    bank: u8,
    memory: SparseMemory,
}

impl Content {
    #[cold]
    #[inline(never)]
    fn fault(&self, class: FaultClass, what: &str, addr: u64) -> Fault {
        Fault::new(class, format!("DRAM bank {}: {what}", self.bank), READ).at_addr(addr)
    }
    #[cold]
    fn outside(&self, e: OutOfRange) -> Fault {
        self.fault(FaultClass::UndefinedBehavior, &e.to_string(), e.addr)
    }
}

impl Memory for Content {
    fn read(&mut self, _at: Cycle, addr: u64, out: &mut [u8]) -> Result<(), Fault> {
        self.memory.read(addr, out).map_err(|e| self.outside(e))
    }
    fn write(&mut self, _at: Cycle, addr: u64, data: &[u8]) -> Result<(), Fault> {
        self.memory.write(addr, data).map_err(|e| self.outside(e))
    }
    fn span(&self, addr: u64, len: usize) -> Option<&[u8]> {
        self.memory.span(addr, len)
    }
    #[inline]
    fn share(&mut self, addr: u64, len: usize) -> Option<Data> {
        self.memory.share(addr, len)
    }
    fn is_l1(&self, _addr: u64) -> bool {
        false
    }
}

/// How long a bank takes at least to answer a packet.
pub(crate) fn answers_after(packet: &Packet) -> Cycle {
    match packet.body {
        Body::ReadRequest { addr, .. } if register_of(packet.noc, addr).is_none() => timing::DRAM_ACCESS,
        _ => 0,
    }
}

/// The register of a port's NIUs at `addr`, for packets of NoC `noc`.
fn register_of(noc: u8, addr: u64) -> Option<(u8, u32)> {
    niu_register(Site::Dram { bank: 0, port: 0 }, noc, addr)
}

impl DramBank {
    /// Physical bank `bank` of the chip.
    pub(crate) fn new(bank: u8) -> Self {
        Self {
            content: Content { bank, memory: SparseMemory::new(DRAM_BANK_BYTES) },
            events: EventQueue::new(),
            channel: Pipe::new(timing::DRAM_BANK),
            ports: Vec::new(),
            register_requests: 0,
            others: 0,
            grid: None,
        }
    }

    /// The bank with the identification and configuration of its ports' NIUs in the address space
    /// (NoC/MemoryMap.md, `NIU_BASE` of DRAM tiles: the high half of the address does not matter).
    /// They take the place of memory, near the end of the bank.
    #[must_use]
    pub(crate) fn with_nius(mut self, grid: Arc<Grid>) -> Self {
        self.grid = Some(grid);
        self
    }

    /// Copies bytes of the memory; false outside it.
    pub(crate) fn peek(&self, addr: u64, out: &mut [u8]) -> bool {
        self.content.memory.read(addr, out).is_ok()
    }

    /// Serves a packet that arrives at `at`, or refuses it if the host has sent it.
    #[inline(never)]
    fn serve_other(&mut self, at: Cycle, packet: &Packet, out: &mut Outbox) -> Result<(), Fault> {
        serve_or_refuse(HostRequest::of(packet), at + timing::DRAM_ACCESS, out, |out| {
            self.serve(at, packet, out).map_err(|fault| fault.sent_by(packet.from))
        })
    }

    /// Serves a request that arrives at `at`; its answer leaves later.
    fn serve(&mut self, at: Cycle, packet: &Packet, out: &mut Outbox) -> Result<(), Fault> {
        let register = self.niu_register(packet);
        self.register_requests -= usize::from(register.is_some());
        let Dest::Unicast(here) = packet.to else {
            let what = "a multicast; only Tensix tiles receive them";
            return Err(self.content.fault(FaultClass::UnsupportedFunctionality, what, 0));
        };
        let (port, noc) = (self.port_at(here), usize::from(packet.noc & 1));
        if let Some(nius) = &mut self.ports[port].nius {
            match register {
                Some(register) => return serve_register(nius, register, at, packet, out),
                None => nius[noc].count_served(&packet.body),
            }
        }
        match &packet.body {
            &Body::ReadRequest { addr, len, .. } => {
                if len > MAX_PACKET_BYTES {
                    let what = format!("a read of {len} bytes; a packet holds {MAX_PACKET_BYTES}");
                    return Err(self.content.fault(FaultClass::UndefinedBehavior, &what, addr));
                }
                if let Some(answer) = noc::serve(at, here, packet, &mut self.content)? {
                    self.take_read(at, (port, noc), answer.into(), out);
                }
            }
            Body::AtomicRequest { addr, .. } => {
                let what = "an atomic; atomics work on L1 only";
                return Err(self.content.fault(FaultClass::UnsupportedFunctionality, what, *addr));
            }
            body => {
                let answer = noc::serve(at, here, packet, &mut self.content)?;
                let bytes = if let Body::WriteRequest { data, .. } = body { data.len() as u64 } else { 0 };
                let done = self.channel.serve(at, bytes) + timing::DRAM_ACCESS;
                if let Some(answer) = answer {
                    out.push(done, answer);
                }
            }
        }
        Ok(())
    }

    /// Serves a read that arrives at `at`, as [`DramBank::serve`] would.
    fn serve_read(&mut self, at: Cycle, mut packet: Box<Packet>, out: &mut Outbox) -> Result<(), Fault> {
        let (&Dest::Unicast(here), &Body::ReadRequest { addr, len, reply }) = (&packet.to, &packet.body) else {
            return self.serve(at, &packet, out);
        };
        let (port, noc) = (self.port_at(here), usize::from(packet.noc & 1));
        if let Some(nius) = &mut self.ports[port].nius {
            nius[noc].count_served(&packet.body);
        }
        let data = noc::read_data(at, addr, len, &mut self.content).map_err(|fault| fault.sent_by(packet.from))?;
        *packet = noc::read_response(packet.noc, packet.id, here, reply, data);
        self.take_read(at, (port, noc), packet, out);
        Ok(())
    }

    /// A port takes a read that arrives at `at` over NoC `noc` and has this answer.
    #[inline]
    fn take_read(&mut self, at: Cycle, (port, noc): (usize, usize), answer: Box<Packet>, out: &mut Outbox) {
        let pipe = &mut self.ports[port].pipes[noc];
        let taken = pipe.start(at);
        pipe.serve(at, 1);
        // Nothing else comes before it.
        if taken == at && self.events.next() > at {
            self.fetch(at, answer, out);
        } else {
            self.events.push(taken, Event::Fetch(answer));
        }
    }

    /// Whether a packet is a read that can only be answered with bytes of the memory.
    fn is_plain_read(&self, packet: &Packet) -> bool {
        let (Dest::Unicast(_), &Body::ReadRequest { addr, len, .. }) = (&packet.to, &packet.body) else { return false };
        let end = addr.checked_add(len.into());
        len <= MAX_PACKET_BYTES
            && end.is_some_and(|end| end <= self.content.memory.size())
            && self.niu_register(packet).is_none()
    }

    /// The number of the port at `here`.
    #[inline]
    fn port_at(&mut self, here: Place) -> usize {
        match self.ports.first() {
            Some(port) if port.place == here => 0,
            _ => self.other_port_at(here),
        }
    }

    #[inline(never)]
    fn other_port_at(&mut self, here: Place) -> usize {
        let known = self.ports.iter().position(|port| port.place == here);
        known.unwrap_or_else(|| {
            let niu = |grid: &Arc<Grid>, noc| {
                Niu::new(noc, here, grid.logical(noc, here), grid.endpoint_id(noc, here), grid.clone())
            };
            let nius = self.grid.as_ref().map(|grid| Box::new([niu(grid, 0), niu(grid, 1)]));
            let pipes = [const { Pipe::new(timing::DRAM_ENDPOINT) }; 2];
            self.ports.push(Port { place: here, pipes, nius });
            self.ports.len() - 1
        })
    }

    /// The register of the port's NIUs that a packet is for.
    fn niu_register(&self, packet: &Packet) -> Option<(u8, u32)> {
        match &packet.body {
            Body::ReadRequest { addr, .. } | Body::WriteRequest { addr, .. } if self.grid.is_some() => {
                register_of(packet.noc, *addr)
            }
            _ => None,
        }
    }

    /// Fetches the data of a read that a port accepted at `at`.
    #[inline]
    fn fetch(&mut self, at: Cycle, answer: Box<Packet>, out: &mut Outbox) {
        let bytes = if let Body::ReadResponse { data, .. } = &answer.body { data.len() as u64 } else { 0 };
        // The packet leaves flit by flit; its last flit must not overtake the memory.
        let first = self.channel.serve(at, bytes).saturating_sub(answer.body.data_flits()).max(at);
        out.push(first + timing::DRAM_ACCESS, answer);
    }
}

impl From<Box<Packet>> for Event {
    fn from(packet: Box<Packet>) -> Self {
        Self::Arrive(packet)
    }
}

impl Endpoint for DramBank {
    type Event = Event;

    fn events(&self) -> &EventQueue<Event> {
        &self.events
    }
    fn events_mut(&mut self) -> &mut EventQueue<Event> {
        &mut self.events
    }
    fn expects(&self) -> Outlook {
        let next = self.events.next();
        if self.others == 0 {
            // A read does not take fewer cycles than its answer has flits.
            let first = next.max(self.channel.busy_until()).saturating_add(timing::DRAM_ACCESS);
            return Outlook { next: first, sends: first };
        }
        let answers_after = if self.register_requests == 0 { timing::DRAM_ACCESS } else { 0 };
        Outlook { next, sends: next.saturating_add(answers_after) }
    }
    #[inline]
    fn accept(&mut self, at: Cycle, packet: Box<Packet>) {
        let event = if self.is_plain_read(&packet) {
            Event::Read(packet)
        } else {
            self.others += 1;
            self.register_requests += usize::from(self.niu_register(&packet).is_some());
            Event::Arrive(packet)
        };
        self.events.arrive(at, event);
    }
    fn handle(&mut self, at: Cycle, event: Event, out: &mut Outbox) -> Result<(), Fault> {
        match event {
            Event::Read(packet) => self.serve_read(at, packet, out),
            Event::Arrive(packet) => {
                self.others -= 1;
                self.serve_other(at, &packet, out)
            }
            Event::Fetch(answer) => {
                self.fetch(at, answer, out);
                Ok(())
            }
        }
    }
}
