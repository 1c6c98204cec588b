//! What orders two accesses, by the events of a chip: whom it reaches, and what is told of what it
//! does not.

use tilework_abi::board::Board;
use tilework_abi::cb::received_addr;
use tilework_abi::noc::{COUNTERS, NIU0_BASE, NocXy, counter};
use tilework_abi::tensix::Processor;
use tilework_checks::{Agent as Who, Checks, Policy, RaceObserver, Word};
use tilework_sim::{
    Agent, Cycle, Event, Observer, PacketEvent, PacketKind, Request, RequestId, RequestKind, Spot, What,
};

const HERE: NocXy = NocXy::new(1, 2);
const SENDER: NocXy = NocXy::new(2, 2);
/// Data in L1, and a semaphore.
const DATA: u32 = 0x2_0000;
const SEMAPHORE: u32 = 0x3_0000;
/// Counters of circular buffers.
const ONE: u32 = received_addr(0, 0);
const OTHER: u32 = received_addr(0, 1);

const BRISC: Processor = Processor::Brisc;
const NCRISC: Processor = Processor::Ncrisc;
const TRISC0: Processor = Processor::Trisc0;

/// Events, a cycle each.
#[derive(Default)]
struct Run(Vec<Event>);

impl Run {
    fn now(&self) -> Cycle {
        100 + self.0.len() as Cycle
    }

    fn add(&mut self, tile: NocXy, agent: Agent, what: What) {
        let at = self.now();
        self.0.push(Event {
            at,
            spot: Spot::Tensix(tile),
            agent,
            pc: 0x4000 + 4 * at as u32,
            known: false,
            early: false,
            what,
        });
    }

    fn load(&mut self, tile: NocXy, core: Processor, addr: u32, value: u32) {
        self.add(tile, Agent::Core(core), What::Load { addr, bytes: 4, value, cached: false });
    }

    fn store(&mut self, tile: NocXy, core: Processor, addr: u32) {
        self.add(tile, Agent::Core(core), What::Store { addr, bytes: 4, value: 1 });
    }

    /// BRISC of the sender starts a request, which arrives here.
    fn send(&mut self, number: u64, kind: RequestKind, packet: PacketKind, addr: u32) {
        let (id, len, remote) = (RequestId(number), 64, Spot::Tensix(HERE));
        let (local_addr, remote_addr) = (DATA.into(), addr.into());
        let (noc, initiator, trid, receivers, answered, linked) = (0, 0, 0, 1, true, false);
        let request = Request {
            id,
            kind,
            noc,
            initiator,
            trid,
            remote,
            receivers,
            remote_addr,
            local_addr,
            len,
            answered,
            linked,
        };
        self.add(SENDER, Agent::Core(BRISC), What::Request(Box::new(request)));
        let (peer, flits, len) = (Spot::Tensix(SENDER), 2, if kind == RequestKind::Atomic { 4 } else { 64 });
        let packet = PacketEvent { id, kind: packet, peer, addr: addr.into(), len, flits, way: None };
        self.add(HERE, Agent::Niu(0), What::Arrives(packet));
    }

    /// BRISC of the sender sees that its first write is over.
    fn acknowledged(&mut self) {
        self.load(SENDER, BRISC, NIU0_BASE + COUNTERS + 4 * counter::MST_WR_ACK_RECEIVED as u32, 1);
    }

    /// Who is told to have raced with what, in the order of cycles.
    fn races(&self) -> Vec<(Who, &'static str)> {
        let mut observer = RaceObserver::new(Board::P100);
        observer.events(&self.0);
        observer.reached(self.now());
        let mut checks = Checks::new(Policy::new(&[Word::Races], Vec::new()).unwrap());
        observer.hand_over(&mut checks);
        checks.findings().iter().map(|finding| (finding.place.agent, finding.check.id)).collect()
    }
}

/// BRISC stores data and pushes a page, which NCRISC sees.
fn pushed() -> Run {
    let mut run = Run::default();
    run.store(HERE, BRISC, DATA);
    run.load(HERE, BRISC, DATA, 1);
    run.store(HERE, BRISC, ONE);
    run.load(HERE, NCRISC, ONE, 1);
    run
}

#[test]
fn a_page_that_one_core_has_waited_for_is_not_its_neighbours() {
    let mut run = pushed();
    run.load(HERE, NCRISC, DATA, 1);
    assert_eq!(run.races(), [], "NCRISC was told");
    run.load(HERE, TRISC0, DATA, 1);
    assert_eq!(run.races(), [(Who::Core(TRISC0), "race-cores")], "TRISC0 was not, though it comes later");
}

#[test]
fn a_core_that_was_told_may_tell_its_neighbour() {
    let mut run = pushed();
    run.store(HERE, NCRISC, OTHER);
    run.load(HERE, TRISC0, OTHER, 1);
    run.load(HERE, TRISC0, DATA, 1);
    assert_eq!(run.races(), []);
}

#[test]
fn a_semaphore_of_another_tile_tells_only_the_core_that_waits_for_it() {
    let mut run = Run::default();
    run.send(1, RequestKind::Write, PacketKind::WriteRequest, DATA);
    run.acknowledged();
    run.send(2, RequestKind::Atomic, PacketKind::AtomicRequest, SEMAPHORE);
    run.load(HERE, NCRISC, SEMAPHORE, 1);
    run.load(HERE, NCRISC, DATA, 1);
    assert_eq!(run.races(), [], "NCRISC was told");
    run.load(HERE, BRISC, DATA, 1);
    assert_eq!(run.races(), [(Who::Core(BRISC), "race-tiles")], "BRISC was not");
}

#[test]
fn stores_that_were_told_with_a_page_are_not_told_again() {
    let mut run = Run::default();
    run.store(SENDER, BRISC, DATA);
    run.store(SENDER, BRISC, DATA + 4);
    run.send(1, RequestKind::Write, PacketKind::WriteRequest, DATA);
    let told = [(Who::NocWrite(0), "race-store")];
    assert_eq!(run.races(), told, "the page is sent, and nobody has seen that the stores are in L1");
    run.acknowledged();
    run.send(2, RequestKind::Read, PacketKind::ReadRequest, DATA);
    assert_eq!(run.races(), told, "the second word was sent with the first one");
}
