//! Watched memory: every access of a core, an NIU or a unit of the coprocessor, with who made it.
//!
//! An NIU accesses memory when a packet arrives, for a core that started the request long before,
//! perhaps on another tile. So requests are remembered by their number until there are too many.

use gdbstub::target::ext::breakpoints::WatchKind;
use std::collections::{BTreeMap, VecDeque};
use tilework_abi::addr::Cycle;
use tilework_abi::noc::NocXy;
use tilework_abi::tensix::{LOCAL_BASE, LOCAL_SIZE_DM, Processor};
use tilework_sim::{
    Agent, Chip, Event, Observer, PacketEvent, PacketKind, RequestId, RequestKind, Spot, Thread, Unit, Wants, What,
};

/// Requests that are remembered.
const REMEMBERED: usize = 1 << 16;

/// Watched memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Watch {
    /// The tile or bank.
    pub(crate) spot: Spot,
    /// The core, of memory that only one can access.
    pub(crate) core: Option<Processor>,
    /// The first byte.
    pub(crate) address: u64,
    /// Bytes.
    pub(crate) len: u64,
    /// Which accesses.
    pub(crate) kind: WatchKind,
    /// gdb's kind and address, of a watchpoint of gdb's.
    pub(crate) gdb: Option<(WatchKind, u32)>,
    /// The thread as which gdb sees the memory.
    pub(crate) thread: Option<Thread>,
}

impl Watch {
    /// A watchpoint of gdb's on the memory of a thread, if there is such a thread.
    pub(crate) fn of_gdb(chip: &Chip, thread: Thread, address: u32, len: u32, kind: WatchKind) -> Option<Self> {
        let core = chip.core(thread)?;
        let is_local = (LOCAL_BASE..LOCAL_BASE + LOCAL_SIZE_DM).contains(&address);
        Some(Self {
            spot: Spot::Tensix(core.tile),
            core: is_local.then_some(core.core),
            address: address.into(),
            len: len.into(),
            kind,
            gdb: Some((kind, address)),
            thread: Some(thread),
        })
    }

    fn meets(&self, spot: Spot, access: &Access) -> bool {
        let wanted = match self.kind {
            WatchKind::Write => access.writes,
            WatchKind::Read => access.reads,
            WatchKind::ReadWrite => true,
        };
        let overlaps = access.address < self.address + self.len && self.address < access.address + access.len;
        wanted && overlaps && self.spot == spot && self.core.is_none_or(|own| access.core == Some(own))
    }
}

/// An access to the memory of a tile or bank.
struct Access {
    address: u64,
    len: u64,
    reads: bool,
    writes: bool,
    /// The core of the same tile that makes it.
    core: Option<Processor>,
}

/// An access to watched memory.
#[derive(Clone)]
pub(crate) struct Hit {
    pub(crate) watch: Watch,
    /// Its cycle: before it, memory was as it had been.
    pub(crate) at: Cycle,
    /// The core that accessed the memory, or had it accessed.
    pub(crate) core: Option<(NocXy, Processor)>,
    /// All of it in words.
    pub(crate) what: String,
}

/// Sees the accesses of a chip.
#[derive(Clone, Default)]
pub(crate) struct Watcher {
    pub(crate) watches: Vec<Watch>,
    pub(crate) hits: Vec<Hit>,
    requests: BTreeMap<RequestId, (NocXy, Processor, u32)>,
    order: VecDeque<RequestId>,
}

impl Observer for Watcher {
    fn wants(&self) -> Wants {
        Wants::ACCESSES | Wants::LOCAL | Wants::FIELDS | Wants::NOC | Wants::REGISTERS
    }

    fn events(&mut self, events: &[Event]) {
        events.iter().for_each(|event| self.event(event));
    }
}

impl Watcher {
    fn event(&mut self, event: &Event) {
        self.remember(event);
        if self.watches.is_empty() {
            return;
        }
        let Some(access) = access(event) else { return };
        for watch in &self.watches {
            if watch.meets(event.spot, &access) {
                let (core, who) = self.agent(event);
                let done = match (access.reads, access.writes) {
                    (true, true) => "changed",
                    (_, true) => "written",
                    _ => "read",
                };
                let (address, len, at) = (access.address, access.len, event.at);
                let what = format!("cycle {at}, {}: {len} bytes at {address:#x} {done} by {who}", event.spot);
                self.hits.push(Hit { watch: watch.clone(), at, core, what });
            }
        }
    }

    /// Remembers who started a request.
    fn remember(&mut self, event: &Event) {
        let (What::Request(request), Agent::Core(core), Spot::Tensix(xy)) = (&event.what, event.agent, event.spot)
        else {
            return;
        };
        self.requests.insert(request.id, (xy, core, event.pc));
        self.order.push_back(request.id);
        if self.order.len() > REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.requests.remove(&oldest);
        }
    }

    /// Who is behind an event, as a core and in words.
    fn agent(&self, event: &Event) -> (Option<(NocXy, Processor)>, String) {
        let core = |xy: NocXy, core: Processor, pc: u32| format!("tile {}-{} {} at {pc:#x}", xy.x, xy.y, core.name());
        match (event.agent, event.spot) {
            (Agent::Core(processor), Spot::Tensix(xy)) => (Some((xy, processor)), core(xy, processor, event.pc)),
            (Agent::Coprocessor(unit), _) => {
                (None, format!("{} for the instruction pushed at {:#x}", unit_name(unit), event.pc))
            }
            _ => self.behind_packet(event, core),
        }
    }

    fn behind_packet(
        &self,
        event: &Event,
        name: impl Fn(NocXy, Processor, u32) -> String,
    ) -> (Option<(NocXy, Processor)>, String) {
        let (Agent::Niu(noc), What::Arrives(packet)) = (event.agent, &event.what) else {
            return (None, "an unknown agent".into());
        };
        match self.requests.get(&packet.id) {
            Some(&(xy, core, pc)) => {
                let who = format!("NIU {noc} for {}", name(xy, core, pc));
                (Some((xy, core)), who)
            }
            None if packet.peer == Spot::Pcie => (None, format!("the host over NIU {noc}")),
            None => (None, format!("NIU {noc} for {}", packet.peer)),
        }
    }
}

fn unit_name(unit: Unit) -> String {
    match unit {
        Unit::Unpacker(i) => format!("unpacker {i}"),
        Unit::Packer => "the packer".into(),
        Unit::Matrix => "the matrix unit".into(),
        Unit::Vector => "the vector unit".into(),
        Unit::Mover => "the mover".into(),
        Unit::Scalar => "the scalar unit".into(),
        Unit::Gate => "the wait gates".into(),
    }
}

/// The access that an event is, if it is one.
fn access(event: &Event) -> Option<Access> {
    let core = match event.agent {
        Agent::Core(core) => Some(core),
        Agent::Niu(_) | Agent::Coprocessor(_) => None,
    };
    let of = |address: u64, len: u64, reads, writes| Some(Access { address, len, reads, writes, core });
    match &event.what {
        What::Load { addr, bytes, .. } => of((*addr).into(), (*bytes).into(), true, false),
        What::Store { addr, bytes, .. } => of((*addr).into(), (*bytes).into(), false, true),
        What::Atomic { addr, .. } => of((*addr).into(), 4, true, true),
        What::UnitRead { addr, len, .. } => of((*addr).into(), (*len).into(), true, false),
        What::UnitWrite { addr, len, .. } => of((*addr).into(), (*len).into(), false, true),
        What::UnitStore { addr, .. } => of((*addr).into(), 4, false, true),
        // The bytes are read while the flits leave, from now on.
        What::Request(request) if request.kind == RequestKind::Write => {
            of(request.local_addr, request.len, true, false)
        }
        What::Arrives(PacketEvent { kind, addr, len, .. }) => {
            let (reads, writes) = match kind {
                PacketKind::ReadRequest => (true, false),
                PacketKind::WriteRequest | PacketKind::ReadResponse | PacketKind::AtomicResponse => (false, true),
                PacketKind::AtomicRequest => (true, true),
                PacketKind::WriteAck | PacketKind::Refusal => return None,
            };
            of(*addr, (*len).into(), reads, writes)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watch(kind: WatchKind, core: Option<Processor>) -> Watch {
        let spot = Spot::Tensix(NocXy::new(1, 2));
        Watch { spot, core, address: 0x100, len: 8, kind, gdb: None, thread: None }
    }

    fn event(spot: Spot, agent: Agent, pc: u32, what: What) -> Event {
        Event { at: 7, spot, agent, pc, known: false, early: false, what }
    }

    fn hits(watch: Watch, events: &[Event]) -> Vec<(Option<(NocXy, Processor)>, String)> {
        let mut watcher = Watcher { watches: vec![watch], ..Watcher::default() };
        watcher.events(events);
        watcher.hits.into_iter().map(|hit| (hit.core, hit.what)).collect()
    }

    #[test]
    fn accesses_count_by_kind_place_and_core() {
        let here = Spot::Tensix(NocXy::new(1, 2));
        let core = Agent::Core(Processor::Trisc1);
        let store = |addr, bytes| event(here, core, 0x40, What::Store { addr, bytes, value: 1 });
        let load = event(here, core, 0x44, What::Load { addr: 0x104, bytes: 4, value: 0, cached: false });
        let elsewhere = event(Spot::Dram(0), core, 0x40, What::Store { addr: 0x100, bytes: 4, value: 1 });
        let all = [store(0xFC, 4), store(0xFE, 4), store(0x107, 1), store(0x108, 4), load, elsewhere];
        assert_eq!(hits(watch(WatchKind::Write, None), &all).len(), 2, "those that overlap");
        assert_eq!(hits(watch(WatchKind::Read, None), &all).len(), 1);
        assert_eq!(hits(watch(WatchKind::ReadWrite, Some(Processor::Trisc1)), &all).len(), 3);
        assert_eq!(hits(watch(WatchKind::ReadWrite, Some(Processor::Brisc)), &all).len(), 0);
        let (who, what) = hits(watch(WatchKind::Read, None), &all).remove(0);
        assert_eq!(who, Some((NocXy::new(1, 2), Processor::Trisc1)));
        assert!(what.contains("4 bytes at 0x104 read by tile 1-2 TRISC1 at 0x44"), "{what}");
    }

    #[test]
    fn a_packet_is_the_access_of_the_core_that_asked_or_of_the_host() {
        let (here, there) = (Spot::Tensix(NocXy::new(1, 2)), Spot::Tensix(NocXy::new(3, 4)));
        let kind = PacketKind::WriteRequest;
        let packet = |id, peer| PacketEvent { id, kind, peer, addr: 0x80, len: 512, flits: 9, way: None };
        let request = tilework_sim::Request {
            id: RequestId(5),
            kind: RequestKind::Write,
            noc: 1,
            initiator: 0,
            trid: 0,
            remote: here,
            receivers: 1,
            remote_addr: 0x80,
            local_addr: 0,
            len: 512,
            answered: true,
            linked: false,
        };
        let events = [
            event(there, Agent::Core(Processor::Ncrisc), 0x99, What::Request(Box::new(request))),
            event(here, Agent::Niu(1), 0, What::Arrives(packet(RequestId(5), there))),
            event(here, Agent::Niu(0), 0, What::Arrives(packet(RequestId(6), Spot::Pcie))),
        ];
        let found = hits(watch(WatchKind::Write, None), &events);
        assert_eq!(found[0].0, Some((NocXy::new(3, 4), Processor::Ncrisc)));
        assert!(found[0].1.contains("written by NIU 1 for tile 3-4 NCRISC at 0x99"), "{}", found[0].1);
        assert!(found[1].1.contains("by the host over NIU 0") && found[1].0.is_none(), "{}", found[1].1);
    }
}
