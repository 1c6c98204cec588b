//! The PCIe tile: host access to the chip, and device access to host memory.
//!
//! It handles three kinds of traffic. **Host accesses** to a BAR (`host.rs`) become NoC packets
//! through the TLB ([`windows`]). **Device accesses** to NoC addresses of the host (`outbound.rs`)
//! reach [`HostMemory`], those with bit 60 set through the address translation (`iatu.rs`).
//! **Answers** to host reads return to the host. Blackhole has no page for this tile;
//! WormholeB0/PCIExpressTile applies except for sizes and addresses (see [`tilework_abi::tlb`]).
//!
//! TLB registers take effect in the order of the host's accesses: a register changes at the call,
//! and an access is resolved at its call. Only the departure of its packet is left for later.
//! Ordering follows TLBs.md: a read, or a write in strict mode, waits for the acknowledgements of
//! all earlier writes that request one, and packets leave in the host's order.

mod host;
mod iatu;
mod memory;
mod outbound;
#[cfg(test)]
mod tests;
pub(crate) mod windows;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

pub use memory::HostBus;
pub(crate) use memory::HostMemory;
pub(crate) use tilework_abi::tlb::Bar;

use crate::event_queue::EventQueue;
use crate::inert::niu_register;
use crate::noc::{self, Body, Data, Grid, HostRequest, Outbox, Packet, Place, Reply, serve_or_refuse};
use crate::node::Outlook;
use crate::pipe::Pipe;
use crate::probe::RequestId;
use crate::{Cycle, Fault, FaultClass, NEVER, Node, timing};
use iatu::Iatu;
use outbound::{Outbound, outbound};
use tilework_abi::grid::Site;
use tilework_abi::tlb;
use windows::{READ, Windows};

/// Number of device writes kept for [`Pcie::last_write_to`], and of refused writes.
const REMEMBERED: usize = 64;

/// A read that the host has started.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ReadTicket(u64);

/// Departures to remember: the last [`timing::PCIE_POSTED`], and the one before them, which gave
/// the host room.
const LEFT: usize = timing::PCIE_POSTED + 1;

/// A packet is not answered sooner than this.
const ANSWER: Cycle = {
    let times = [timing::ARC_ACCESS, timing::PCIE_WRITE_ACK, timing::PCIE_MEMORY_ONE_WAY];
    assert!(times[0] <= times[1] && times[0] <= times[2], "the first is the shortest");
    times[0]
};

/// The PCIe tile with the host's memory behind it.
#[derive(Clone, Debug)]
pub(crate) struct Pcie {
    place: Place,
    grid: Arc<Grid>,
    windows: Windows,
    iatu: Iatu,
    memory: HostMemory,
    events: EventQueue<Event>,
    /// Host accesses whose packets have not left yet, in the host's order.
    orders: VecDeque<Order>,
    /// Acknowledgements of host writes still outstanding.
    unacked: u64,
    /// When the last of them arrived.
    acked_at: Cycle,
    /// When the last order left; a later one that waited behind it cannot leave sooner.
    left_at: Cycle,
    /// How many orders have left.
    left: usize,
    /// When each of the latest left, by order number modulo the length.
    left_at_last: [Cycle; LEFT],
    /// Parts of host reads in flight: where their data goes.
    parts: BTreeMap<u64, ReadPiece>,
    next_part: u64,
    reads: BTreeMap<ReadTicket, PendingRead>,
    next_ticket: u64,
    /// Host stores.
    stores: Pipe,
    /// The link, by direction.
    to_device: Pipe,
    to_host: Pipe,
    /// Packets that the host's accesses have become.
    requests: u64,
    device_writes: u64,
    /// Whether wrong accesses of the host are answered, instead of being faults that stop the chip.
    answers_errors: bool,
    /// What was wrong with posted writes of the host that were refused, the first [`REMEMBERED`].
    refused: VecDeque<Fault>,
    /// The last device writes: cycle, address, length.
    log: VecDeque<(Cycle, u64, usize)>,
    bytes_to_device: u64,
    bytes_to_host: u64,
}

#[derive(Clone, Debug)]
enum Event {
    /// A packet arrived from the NoC.
    Arrive(Box<Packet>),
    /// A device read reaches host memory.
    Sample(Sample),
    /// A device write reaches host memory.
    Visible { addr: u64, data: Data, mask: Option<u64> },
}

/// A device read on its way to host memory.
#[derive(Clone, Debug)]
struct Sample {
    noc: u8,
    id: RequestId,
    addr: u64,
    len: u32,
    reply: Reply,
}

#[derive(Clone, Debug)]
struct Order {
    ready: Cycle,
    packet: Packet,
    /// Acknowledgements to expect.
    acks: u64,
    /// It leaves only when no acknowledgement is outstanding.
    waits: bool,
}

#[derive(Clone, Debug)]
struct ReadPiece {
    ticket: ReadTicket,
    at: usize,
    len: usize,
}

#[derive(Clone, Debug)]
struct PendingRead {
    data: Vec<u8>,
    parts: usize,
    /// Set when all parts are there: the cycle at which the host has them.
    done: Option<Cycle>,
    /// What was wrong with a part that was refused.
    fault: Option<Fault>,
}

impl Pcie {
    /// Whether the host's memory is that of another program.
    pub(crate) fn has_foreign_memory(&self) -> bool {
        self.memory.has_bus()
    }

    /// The tile at `place` of a chip whose coordinates are those of `grid`.
    pub(crate) fn new(place: Place, grid: Arc<Grid>) -> Self {
        Self {
            place,
            grid,
            windows: Windows::default(),
            iatu: Iatu::default(),
            memory: HostMemory::default(),
            events: EventQueue::new(),
            orders: VecDeque::new(),
            unacked: 0,
            acked_at: 0,
            left_at: 0,
            left: 0,
            left_at_last: [0; LEFT],
            parts: BTreeMap::new(),
            next_part: 0,
            reads: BTreeMap::new(),
            next_ticket: 0,
            stores: Pipe::new(timing::PCIE_STORE),
            to_device: Pipe::new(timing::PCIE_LINK),
            to_host: Pipe::new(timing::PCIE_LINK),
            requests: 0,
            device_writes: 0,
            answers_errors: false,
            refused: VecDeque::new(),
            log: VecDeque::new(),
            bytes_to_device: 0,
            bytes_to_host: 0,
        }
    }

    /// Answers wrong accesses of the host from now on: a read by ones and [`PendingRead::fault`], a
    /// write by [`Pcie::take_refused`].
    pub(crate) fn answer_errors(&mut self) {
        self.answers_errors = true;
    }
    /// What was wrong with the first refused write that was not asked for yet.
    pub(crate) fn take_refused(&mut self) -> Option<Fault> {
        self.refused.pop_front()
    }

    /// Makes `len` bytes of host memory, all zero, visible at NoC address `base` (without bit 60).
    ///
    /// # Errors
    /// An empty region, one that reaches bit 58, or one that overlaps another.
    pub(crate) fn pin(&mut self, base: u64, len: usize) -> Result<(), Fault> {
        self.memory.pin(base, len)
    }
    /// The host's memory.
    pub(crate) fn host_memory(&self) -> &HostMemory {
        &self.memory
    }
    /// The host's memory, for the host to write.
    pub(crate) fn host_memory_mut(&mut self) -> &mut HostMemory {
        &mut self.memory
    }
    /// Number of device writes to host memory so far; while it is unchanged, the device has not
    /// changed host memory.
    pub(crate) fn device_writes(&self) -> u64 {
        self.device_writes
    }
    /// The cycle of the last of them; 0 before the first.
    pub(crate) fn last_device_write(&self) -> Cycle {
        self.log.back().map_or(0, |&(at, ..)| at)
    }
    /// The cycle of the last device write that touched one of `len` bytes at `addr`, among the last
    /// 64 writes.
    pub(crate) fn last_write_to(&self, addr: u64, len: usize) -> Option<Cycle> {
        let end = addr.saturating_add(len as u64);
        let touches = |&&(_, a, n): &&(Cycle, u64, usize)| a < end && addr < a + n as u64;
        self.log.iter().rev().find(touches).map(|&(at, ..)| at)
    }
    /// Bytes that went from host to device, stores and answers to device reads.
    pub(crate) fn bytes_to_device(&self) -> u64 {
        self.bytes_to_device
    }
    /// Bytes that went from device to host, device writes and answers to host loads.
    pub(crate) fn bytes_to_host(&self) -> u64 {
        self.bytes_to_host
    }

    /// An identification or configuration register of one of the tile's NIUs.
    fn niu(&self, noc: u8, reg: u32) -> Result<u32, Fault> {
        self.grid.niu_register(noc, self.place, reg).ok_or_else(|| {
            let register = match tilework_abi::noc::register(reg) {
                Some((_, slot)) => format!("{slot} (register {reg:#x})"),
                None => format!("register {reg:#x}"),
            };
            let what = format!("{register} of the PCIe tile's NIU {noc}");
            Fault::new(FaultClass::UnimplementedFunctionality, what, "BlackholeA0/NoC/MemoryMap.md")
                .at_addr(tlb::NIU + u64::from(noc) * tlb::NIU_STRIDE + u64::from(reg))
        })
    }

    /// The cycle at which the first order can leave, or [`NEVER`].
    fn next_order(&self) -> Cycle {
        match self.orders.front() {
            Some(order) if order.waits && self.unacked > 0 => NEVER,
            Some(order) if order.waits => order.ready.max(self.acked_at).max(self.left_at),
            Some(order) => order.ready.max(self.left_at),
            None => NEVER,
        }
    }

    /// Handles a packet that arrives from the NoC.
    fn arrive(&mut self, at: Cycle, packet: Packet, out: &mut Outbox) -> Result<(), Fault> {
        match packet.body {
            Body::ReadRequest { addr, len, reply } => {
                if let Some((noc, reg)) = niu_register(Site::Pcie { index: 0 }, packet.noc, addr) {
                    let data = self.niu(noc, reg)?.to_le_bytes();
                    let data = data.into_iter().cycle().take(len.min(4) as usize).collect();
                    out.push(
                        at + timing::ARC_ACCESS,
                        noc::read_response(packet.noc, packet.id, self.place, reply, data),
                    );
                    return Ok(());
                }
                let addr = self.host_address(addr, len as usize)?;
                self.memory.check(addr, len as usize)?;
                let event = Event::Sample(Sample { noc: packet.noc, id: packet.id, addr, len, reply });
                self.events.push(at + timing::PCIE_MEMORY_ONE_WAY, event);
            }
            Body::WriteRequest { addr, data, mask, reply } => {
                let addr = self.host_address(addr, data.len())?;
                self.memory.check(addr, data.len())?;
                let passed = self.to_host.serve(at, wire_bytes(data.len()));
                self.bytes_to_host += data.len() as u64;
                if let Some(reply) = reply {
                    out.push(passed + timing::PCIE_WRITE_ACK, noc::write_ack(packet.noc, packet.id, self.place, reply));
                }
                self.events
                    .push(passed + timing::PCIE_MEMORY_ONE_WAY, Event::Visible { addr, data: data.settled(), mask });
            }
            Body::AtomicRequest { addr, .. } => {
                let what = "an atomic on the PCIe tile; atomics work on L1 only";
                return Err(
                    Fault::new(FaultClass::UnsupportedFunctionality, what, "WormholeB0/NoC/Atomics.md").at_addr(addr)
                );
            }
            Body::WriteAck { .. } => {
                let Some(left) = self.unacked.checked_sub(1) else { return Err(unasked()) };
                self.unacked = left;
                self.acked_at = at;
            }
            Body::ReadResponse { reply, data } => {
                self.answer(at, reply.addr, &data)?;
                out.notice(at);
            }
            Body::AtomicResponse { .. } => return Err(unasked()),
            Body::Refused { fault, .. } if !self.answers_errors => return Err(fault),
            Body::Refused { read, reply, fault } => {
                self.refused(at, read, reply, fault)?;
                out.notice(at);
            }
        }
        Ok(())
    }

    /// Takes a refusal in the place of an answer.
    fn refused(&mut self, at: Cycle, read: bool, reply: Option<Reply>, fault: Fault) -> Result<(), Fault> {
        let fault = fault.at_cycle(at);
        match reply {
            Some(Reply { addr: part, .. }) if read => {
                let Some(piece) = self.parts.get(&part) else { return Err(unasked()) };
                let (len, ticket) = (piece.len, piece.ticket);
                if let Some(read) = self.reads.get_mut(&ticket) {
                    read.fault.get_or_insert(fault);
                }
                return self.answer(at, part, &vec![u8::MAX; len]);
            }
            Some(_) => {
                let Some(left) = self.unacked.checked_sub(1) else { return Err(unasked()) };
                self.unacked = left;
                self.acked_at = at;
            }
            None => {}
        }
        if self.refused.len() < REMEMBERED {
            self.refused.push_back(fault);
        }
        Ok(())
    }

    /// Takes the data of one part of a host read.
    fn answer(&mut self, at: Cycle, part: u64, data: &[u8]) -> Result<(), Fault> {
        let Some(part) = self.parts.remove(&part) else { return Err(unasked()) };
        let Some(read) = self.reads.get_mut(&part.ticket) else { return Err(unasked()) };
        if data.len() != part.len {
            return Err(unasked());
        }
        read.data[part.at..part.at + part.len].copy_from_slice(data);
        read.parts -= 1;
        if read.parts == 0 {
            let chunks = (read.data.len() as u64).div_ceil(timing::PCIE_LOAD_CHUNK);
            let done = at + timing::PCIE_HOST_ONE_WAY + chunks.saturating_sub(1) * timing::PCIE_LOAD_NEXT;
            read.done = Some(done);
        }
        self.bytes_to_host += data.len() as u64;
        Ok(())
    }

    /// Serves a device read that reaches host memory at `at`.
    fn sample(&mut self, at: Cycle, sample: Sample, out: &mut Outbox) -> Result<(), Fault> {
        let Sample { noc, id, addr, len, reply } = sample;
        let mut data = vec![0; len as usize];
        self.memory.read(addr, &mut data)?;
        let passed = self.to_device.serve(at, wire_bytes(data.len()));
        self.bytes_to_device += u64::from(len);
        let answer = noc::read_response(noc, id, self.place, reply, data.into());
        // The packet leaves flit by flit; its last flit must not overtake the link.
        let first = passed.saturating_sub(answer.body.data_flits()).max(at);
        out.push(first + timing::PCIE_MEMORY_ONE_WAY, answer);
        Ok(())
    }

    /// The bus address of `len` bytes that a packet accesses at the NoC address `addr`.
    fn host_address(&self, addr: u64, len: usize) -> Result<u64, Fault> {
        let Outbound { addr: low, translated } = outbound(addr)?;
        if translated {
            return self.iatu.translate(low, len);
        }
        if self.memory.has_bus() {
            return Ok(low);
        }
        // Such a host knows its memory by NoC addresses only; on a card, this address is another's.
        let what = "a bus address of the host (bits 63..60 of the NoC address are 0), where only NoC addresses (bits \
                    63..60 are 1) are pinned";
        Err(Fault::new(FaultClass::MissingSpecification, what, READ).at_addr(addr))
    }

    fn handle(&mut self, at: Cycle, event: Event, out: &mut Outbox) -> Result<(), Fault> {
        match event {
            Event::Arrive(packet) => {
                let (from, host) = (packet.from, HostRequest::of(&packet));
                let refusal = matches!(packet.body, Body::Refused { .. });
                serve_or_refuse(host, at + ANSWER, out, |out| {
                    let arrived = self.arrive(at, *packet, out);
                    arrived.map_err(|fault| if refusal { fault } else { fault.sent_by(from) })
                })
            }
            Event::Sample(sample) => {
                let to = sample.reply.to;
                self.sample(at, sample, out).map_err(|fault| fault.sent_by(to))
            }
            Event::Visible { addr, data, mask } => {
                self.memory.write_masked(addr, &data, mask)?;
                self.device_writes += 1;
                if self.log.len() == REMEMBERED {
                    self.log.pop_front();
                }
                self.log.push_back((at, addr, data.len()));
                out.notice(at);
                Ok(())
            }
        }
    }
}

/// Bytes that a transfer of `len` bytes takes on the link.
fn wire_bytes(len: usize) -> u64 {
    let len = len as u64;
    len + len.div_ceil(timing::PCIE_PAYLOAD) * timing::PCIE_OVERHEAD
}

fn unasked() -> Fault {
    Fault::new(FaultClass::UndefinedBehavior, "the PCIe tile received an answer without a request", READ)
}

impl Node for Pcie {
    fn next(&self) -> Cycle {
        self.events.next().min(self.next_order())
    }
    fn outlook(&self) -> Outlook {
        // An acknowledgement may let an order leave at once. Everything else takes its time.
        let (events, order) = (self.events.next(), self.next_order());
        let answer = if self.orders.is_empty() { ANSWER } else { 0 };
        Outlook { next: events.min(order), sends: order.min(events.saturating_add(answer)) }
    }
    fn faces_host(&self) -> bool {
        true
    }
    fn deliver(&mut self, at: Cycle, packet: impl Into<Box<Packet>>) {
        self.events.arrive(at, Event::Arrive(packet.into()));
    }
    fn run(&mut self, until: Cycle, out: &mut Outbox) -> Result<(), Fault> {
        loop {
            let end = out.horizon(until);
            let order = self.next_order();
            if self.events.next() <= order {
                let Some((at, event)) = self.events.pop_before(end) else { return Ok(()) };
                self.handle(at, event, out).map_err(|fault| fault.at_cycle(at))?;
            } else if order < end {
                if let Some(o) = self.orders.pop_front() {
                    self.unacked += o.acks;
                    self.left_at = order;
                    self.left_at_last[self.left % LEFT] = order;
                    self.left += 1;
                    out.push(order, o.packet);
                }
            } else {
                return Ok(());
            }
        }
    }
}
