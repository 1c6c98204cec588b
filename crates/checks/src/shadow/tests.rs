//! The observer by itself: notes and events as a chip would make them.

use super::cbs::Counter;
use super::observer::CheckObserver;
use crate::{Checks, Finding, Policy, Word};
use std::sync::{Arc, Mutex};
use tilework_abi::cb::{acked_addr, received_addr};
use tilework_abi::l1::WORKER;
use tilework_abi::msg::RUN_GO;
use tilework_abi::noc::counter::MST_NONPOSTED_WR_REQ_SENT;
use tilework_abi::noc::{COUNTERS, NIU0_BASE, NocXy};
use tilework_abi::tensix::{LOCAL_BASE, Processor};
use tilework_driver::{
    ArgumentsNote, BankNote, BufferNote, CbNote, CodeNote, FirmwareNote, LaunchNote, MemoryKind, Note, RoleNote,
    RunNote,
};
use tilework_riscv::{Insn, Op, encode};
use tilework_sim::{
    Agent, Event, Known, KnownOf, Observer, PacketEvent, PacketKind, Request, RequestId, RequestKind, Spot, Unit, What,
};

const TILE: NocXy = NocXy::new(1, 2);
const OTHER: NocXy = NocXy::new(2, 2);
const TEXT: u32 = 0x9000;
const BASE: u32 = WORKER.kernel_config.get();
const CB: u32 = WORKER.data.get();
const BUFFER: u32 = 0x10_0000;
const SMALL: u32 = 0x11_0010;

fn code(processor: Processor, text: u32, words: &[Insn]) -> CodeNote {
    let code: Vec<u8> = words.iter().flat_map(|&insn| encode(insn).unwrap().to_le_bytes()).collect();
    let local = LOCAL_BASE + 0x1700..LOCAL_BASE + 0x1800;
    CodeNote { name: "k".into(), processor, text: text..text + 0x100, local, code: code.into() }
}

/// Instructions: `lw x5, 8(x10)`, `sw x5, 12(sp)` and `lw x5, 12(sp)`.
const LOAD: Insn = Insn { op: Op::Lw, rd: 5, rs1: 10, rs2: 0, imm: 8 };
const SPILL: Insn = Insn { op: Op::Sw, rd: 0, rs1: 2, rs2: 5, imm: 12 };

const RELOAD: Insn = Insn { op: Op::Lw, rd: 5, rs1: 2, rs2: 0, imm: 12 };

struct Bench {
    observer: CheckObserver,
    checks: Arc<Mutex<Checks>>,
    at: u64,
}

impl Bench {
    /// A program of two tiles runs: BRISC and NCRISC have a kernel, two arguments each, a circular
    /// buffer of two pages of 64 bytes; a buffer of three pages of 64 bytes is in DRAM bank 1, one
    /// of 128 bytes and one of 16 in L1.
    fn new() -> Self {
        let checks = Arc::new(Mutex::new(Checks::new(Policy::new(&[Word::Suspicious], Vec::new()).unwrap())));
        let mut bench = Self { observer: CheckObserver::new(Arc::clone(&checks)), checks, at: 0 };
        let images = Processor::ALL.map(|p| code(p, WORKER.firmware_text[p.index()].get(), &[])).to_vec();
        bench.note(Note::Firmware(Arc::new(FirmwareNote { tiles: vec![TILE, OTHER], map: WORKER, images, own: true })));
        for (id, kind, bank, range) in [
            (1, MemoryKind::Dram, BankNote::Dram(1), 0x1000..0x10C0),
            (2, MemoryKind::L1, BankNote::Core(TILE), u64::from(BUFFER)..u64::from(BUFFER) + 128),
            (3, MemoryKind::L1, BankNote::Core(TILE), u64::from(SMALL)..u64::from(SMALL) + 16),
        ] {
            let run = RunNote { bank, range: range.clone(), first_page: 0, stride: 1 };
            let page_size = (range.end - range.start).min(64) as u32;
            let pages = (range.end - range.start) as u32 / page_size;
            let (name, banks, runs) = (format!("b{id}"), vec![bank], vec![run]);
            let distance = page_size;
            let note = BufferNote { id, name, kind, page_size, distance, pages, taken: range, banks, runs };
            bench.note(Note::Allocated(Arc::new(note)));
        }
        let kernels =
            vec![code(Processor::Brisc, TEXT, &[LOAD, SPILL, RELOAD]), code(Processor::Ncrisc, TEXT + 0x100, &[LOAD])];
        let cores = vec![TILE, OTHER];
        let arguments = ArgumentsNote { unique: BASE, unique_words: vec![2], common: BASE, common_words: 0 };
        let cb = CbNote { index: 0, name: "0".into(), address: CB, page_size: 64, pages: 2, over: false };
        bench.note(Note::Launch(Arc::new(LaunchNote {
            number: 0,
            queue: None,
            tag: None,
            program: "p".into(),
            host_assigned_id: 0,
            cores: cores.clone(),
            argument_words: Vec::new(),
            base: BASE,
            config: BASE..BASE + 0x40,
            arguments: [arguments.clone(), arguments.clone(), arguments],
            semaphores: BASE + 0x10,
            semaphore_count: 0,
            cb_config: BASE + 0x10,
            cbs: vec![cb],
            roles: vec![RoleNote { name: "r".into(), cores, kernels }],
        })));
        let all = PacketEvent {
            id: RequestId(0),
            kind: PacketKind::WriteRequest,
            peer: Spot::Pcie,
            addr: 0,
            len: CB,
            flits: 0,
            way: None,
        };
        for tile in [TILE, OTHER] {
            bench.event(tile, Agent::Niu(0), 0, What::Arrives(all));
            let (addr, value) = (WORKER.go.get(), u32::from(RUN_GO) << 24);
            let go = What::Load { addr, bytes: 4, value, cached: false };
            bench.event(tile, Agent::Core(Processor::Brisc), WORKER.firmware_text[0].get(), go);
        }
        assert_eq!(bench.found(), [] as [&str; 0]);
        bench
    }
    fn note(&mut self, note: Note) {
        self.observer.note(self.at, &note);
    }
    fn event(&mut self, tile: NocXy, agent: Agent, pc: u32, what: What) {
        self.at += 1;
        self.observer.events(&[Event {
            at: self.at,
            spot: Spot::Tensix(tile),
            agent,
            pc,
            known: false,
            early: false,
            what,
        }]);
    }
    fn brisc(&mut self, pc: u32, what: What) {
        self.event(TILE, Agent::Core(Processor::Brisc), TEXT + pc, what);
    }
    fn ncrisc(&mut self, what: What) {
        self.event(TILE, Agent::Core(Processor::Ncrisc), TEXT + 0x100, what);
    }
    fn findings(&self) -> Vec<Finding> {
        self.checks.lock().unwrap().findings().to_vec()
    }
    /// The ids of what was found.
    fn found(&self) -> Vec<&'static str> {
        self.findings().iter().map(|finding| finding.check.id).collect()
    }
    fn request(&mut self, kind: RequestKind, remote: Spot, (remote_addr, local_addr, len): (u64, u64, u64)) {
        let id = RequestId(self.at + 1);
        let (noc, initiator, trid, receivers) = (0, 0, 0, 1);
        let (answered, linked) = (true, false);
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
        self.brisc(0x20, What::Request(Box::new(request)));
    }
    fn done(&mut self) {
        let addr = WORKER.go.get() + 3;
        let pc = WORKER.firmware_text[0].get();
        self.event(TILE, Agent::Core(Processor::Brisc), pc, What::Store { addr, bytes: 1, value: 0 });
    }
}

const fn load(addr: u32) -> What {
    What::Load { addr, bytes: 4, value: 0, cached: false }
}
const fn store(addr: u32, value: u32) -> What {
    What::Store { addr, bytes: 4, value }
}

#[test]
fn an_argument_that_was_not_given() {
    let mut bench = Bench::new();
    bench.brisc(0x30, load(BASE));
    bench.brisc(0x30, load(BASE + 4));
    assert_eq!(bench.found(), [] as [&str; 0]);
    // The third one, from the address of the first.
    bench.brisc(0, load(BASE + 8));
    assert_eq!(bench.found(), ["args-past-end"]);
    assert!(bench.findings()[0].what.contains("argument 2 of BRISC; the program gives 2"), "{:?}", bench.findings());
}

#[test]
fn a_common_argument_that_was_not_given() {
    let mut bench = Bench::new();
    let mut tile = bench.observer.tiles.take(TILE);
    let mut launch = (**tile.launch.as_ref().unwrap()).clone();
    (launch.arguments[0].common, launch.arguments[0].common_words) = (BASE + 0x20, 2);
    launch.config.end = BASE + 0x80;
    tile.launch = Some(Arc::new(launch));
    bench.observer.tiles.put(tile);
    // The configuration of the circular buffer ends there.
    bench.brisc(0x30, load(BASE + 0x24));
    assert_eq!(bench.found(), [] as [&str; 0]);
    bench.brisc(0x30, load(BASE + 0x28));
    assert_eq!(bench.found(), ["args-past-end"]);
    let words = "common argument 2 of BRISC; the program gives 2";
    assert!(bench.findings()[0].what.contains(words), "{:?}", bench.findings());
}

#[test]
fn an_argument_that_would_lie_in_the_next_configuration() {
    let mut bench = Bench::new();
    bench.brisc(0x30, load(BASE + 0x10));
    assert_eq!(bench.found(), [] as [&str; 0], "the configuration of the circular buffer");
    let far = Insn { imm: 0x10, ..LOAD };
    let kernel = code(Processor::Brisc, TEXT, &[far]);
    let mut tile = bench.observer.tiles.take(TILE);
    tile.cores[0].kernel = Some(kernel);
    bench.observer.tiles.put(tile);
    bench.brisc(0, load(BASE + 0x10));
    assert_eq!(bench.found(), ["args-past-end"], "reached from the first argument");
}

#[test]
fn a_page_is_popped_while_it_is_sent() {
    let counter = COUNTERS + 4 * MST_NONPOSTED_WR_REQ_SENT as u32;
    // Whether the core looks at a counter before it pops the page, and which page it has sent.
    for (looks, sent, told) in [(false, 0, true), (true, 0, false), (false, 1, false)] {
        let mut bench = Bench::new();
        bench.ncrisc(load(acked_addr(WORKER.cb_stream, 0)));
        bench.ncrisc(store(received_addr(WORKER.cb_stream, 0), 2));
        bench.brisc(0x30, load(received_addr(WORKER.cb_stream, 0)));
        let mut tile = bench.observer.tiles.take(TILE);
        tile.cbs[0].saw(Counter::Received(0), Processor::Brisc, 2);
        bench.observer.tiles.put(tile);
        bench.request(RequestKind::Write, Spot::Dram(1), (0x1000, u64::from(CB) + 64 * sent, 64));
        if looks {
            bench.brisc(0x30, load(NIU0_BASE + counter));
        }
        bench.brisc(0x24, store(acked_addr(WORKER.cb_stream, 0), 1));
        let found = bench.found();
        assert_eq!(found.contains(&"cb-popped-in-flight"), told, "{looks} {sent}: {:?}", bench.findings());
        if told {
            let finding = bench.findings().into_iter().find(|it| it.check.id == "cb-popped-in-flight").unwrap();
            assert!(finding.what.contains("a write of NoC 0, of 64 bytes"), "{finding:?}");
            assert_eq!(finding.other.unwrap().code.unwrap().pc, TEXT + 0x20);
        }
    }
}

#[test]
fn a_stack_that_reaches_into_data() {
    let mut bench = Bench::new();
    let limit = LOCAL_BASE + 0x1800;
    bench.brisc(4, store(limit + 12, 1));
    assert_eq!(bench.found(), [] as [&str; 0], "the pointer is at the limit");
    bench.brisc(4, store(limit - 4, 1));
    assert_eq!(bench.found(), ["stack-overflow"]);
    assert!(bench.findings()[0].what.contains("16 bytes into data"), "{:?}", bench.findings());
}

#[test]
fn memory_that_nobody_has_written() {
    let mut bench = Bench::new();
    bench.brisc(0x30, load(BUFFER + 8));
    bench.brisc(0, load(LOCAL_BASE + 0x1A00));
    bench.brisc(8, load(LOCAL_BASE + 0x1B00));
    assert_eq!(bench.found(), ["l1-unwritten-read", "local-unwritten-read"]);
    bench.brisc(0x40, store(BUFFER + 16, 5));
    bench.brisc(0x44, load(BUFFER + 16));
    assert_eq!(bench.found().len(), 2);
    let by = Some(Processor::Brisc);
    bench.event(TILE, Agent::Coprocessor(Unit::Unpacker(0)), TEXT, What::UnitRead { by, addr: BUFFER, len: 128 });
    assert_eq!(bench.found()[2..], ["l1-unwritten-read"], "108 bytes behind");
}

#[test]
fn buffers_end_where_their_last_page_does() {
    let mut bench = Bench::new();
    bench.brisc(0x30, store(BUFFER + 124, 1));
    assert_eq!(bench.found(), [] as [&str; 0]);
    bench.brisc(0x34, store(BUFFER + 128, 1));
    bench.brisc(0x38, store(BUFFER + 0x1000, 1));
    assert_eq!(bench.found(), ["l1-past-buffer", "l1-unowned"]);
    let buffer = u64::from(BUFFER);
    bench.request(RequestKind::Read, Spot::Dram(1), (0x1080, buffer, 64));
    bench.request(RequestKind::Read, Spot::Dram(1), (0x10C0, buffer, 64));
    assert_eq!(bench.found()[2..], ["dram-past-buffer"]);
    let what = &bench.findings()[2].what;
    assert!(what.contains("64 bytes past the last page that buffer \"b1\" (3 pages of 64 bytes)"), "{what}");
    bench.request(RequestKind::Write, Spot::Dram(2), (0x1000, buffer + 124, 4));
    assert_eq!(bench.found()[3..], ["dram-unowned"]);
}

#[test]
fn code_null_and_firmware_are_not_written() {
    let mut bench = Bench::new();
    bench.brisc(0x30, store(TEXT + 0x40, 1));
    bench.brisc(0x34, store(0, 1));
    bench.brisc(0x38, store(WORKER.launch.get() + 8, 1));
    assert_eq!(bench.found(), ["l1-text", "l1-null", "l1-firmware"]);
    bench.brisc(0x3C, store(BASE + 4, 1));
    bench.event(TILE, Agent::Core(Processor::Brisc), WORKER.firmware_text[0].get(), store(WORKER.launch.get(), 1));
    assert_eq!(bench.found().len(), 3, "the firmware may");
}

#[test]
fn a_circular_buffer_overrun() {
    let mut bench = Bench::new();
    let (received, acked) = (received_addr(WORKER.cb_stream, 0), acked_addr(WORKER.cb_stream, 0));
    bench.ncrisc(What::Load { addr: acked, bytes: 4, value: 0, cached: false });
    for count in 1..=2 {
        bench.ncrisc(store(CB + 64 * (count - 1), 7));
        bench.ncrisc(store(received, count));
    }
    bench.brisc(0x30, What::Load { addr: received, bytes: 4, value: 2, cached: false });
    bench.brisc(0x34, load(CB));
    bench.brisc(0x38, store(acked, 1));
    assert_eq!(bench.found(), [] as [&str; 0]);
    bench.ncrisc(store(CB, 8));
    assert_eq!(bench.found(), ["cb-page-not-reserved"], "nobody has looked whether it is free");
    bench.ncrisc(What::Load { addr: acked, bytes: 4, value: 1, cached: false });
    bench.ncrisc(store(CB + 4, 8));
    assert_eq!(bench.findings()[0].count, 1);
    bench.brisc(0x3C, load(CB));
    assert_eq!(bench.found()[1..], ["cb-page-not-received"]);
    bench.brisc(0x40, store(acked, 3));
    assert_eq!(bench.found()[2..], ["cb-popped-too-many"]);
}

#[test]
fn requests_are_waited_for() {
    let mut bench = Bench::new();
    bench.request(RequestKind::Read, Spot::Dram(1), (0x1000, u64::from(BUFFER), 64));
    let counters = tilework_abi::noc::niu_base(0) + tilework_abi::noc::COUNTERS;
    bench.brisc(0x30, load(counters));
    bench.done();
    assert_eq!(bench.found(), [] as [&str; 0]);
    let mut bench = Bench::new();
    bench.request(RequestKind::Read, Spot::Dram(1), (0x1000, u64::from(BUFFER), 64));
    bench.done();
    assert_eq!(bench.found(), ["noc-not-waited"]);
}

#[test]
fn a_copy_that_is_stale() {
    let mut bench = Bench::new();
    let cached = What::Load { addr: BUFFER, bytes: 4, value: 0, cached: true };
    bench.ncrisc(store(BUFFER, 1));
    bench.brisc(0x30, load(BUFFER));
    bench.brisc(0x30, cached.clone());
    bench.ncrisc(store(BUFFER + 4, 1));
    bench.brisc(0x30, cached.clone());
    assert_eq!(bench.found(), [] as [&str; 0], "its own bytes are as they were");
    bench.ncrisc(store(BUFFER, 2));
    bench.brisc(0x30, cached.clone());
    assert_eq!(bench.found(), ["missing-fence"]);
    assert!(bench.findings()[0].other.is_some(), "who wrote");
    bench.brisc(0x34, What::Fence);
    bench.brisc(0x30, load(BUFFER));
    bench.brisc(0x30, cached);
    assert_eq!(bench.findings()[0].count, 1);
}

/// The words of L1 that are known to be loaded by single instructions.
fn loaders(known: &[Known]) -> Vec<(Processor, u32, u32)> {
    let word = |known: &Known| 256 * known.page + 4 * known.granules.trailing_zeros();
    let by = |known: &Known| match known.of {
        KnownOf::By(pc) => Some((known.core, pc, word(known))),
        _ => None,
    };
    known.iter().filter_map(by).collect()
}

#[test]
fn words_of_a_small_buffer_are_known_by_the_instructions_that_load_them() {
    let mut bench = Bench::new();
    assert_eq!(bench.observer.known(), [], "nothing is told before it is asked for");
    bench.brisc(0x30, store(SMALL + 4, 1));
    assert_eq!(loaders(&bench.observer.known()), [], "a store is always seen");
    bench.brisc(0x34, load(SMALL + 4));
    bench.ncrisc(load(SMALL + 4));
    let known = bench.observer.known();
    let wanted = [(Processor::Brisc, TEXT + 0x34, SMALL + 4), (Processor::Ncrisc, TEXT + 0x100, SMALL + 4)];
    assert_eq!(loaders(&known), wanted);
    assert!(known.iter().all(|known| known.tile == TILE && known.granules.count_ones() == 1), "{known:?}");
    // The same again, and what is in part not written.
    bench.brisc(0x34, load(SMALL + 4));
    bench.brisc(0x38, What::Store { addr: SMALL + 8, bytes: 1, value: 1 });
    bench.brisc(0x3C, What::Load { addr: SMALL + 8, bytes: 1, value: 1, cached: false });
    assert_eq!(loaders(&bench.observer.known()), []);
    assert_eq!(bench.found(), [] as [&str; 0]);
    // What is beside it, and what nobody has written.
    bench.brisc(0x40, load(SMALL + 16));
    bench.brisc(0x44, load(SMALL + 12));
    assert_eq!(loaders(&bench.observer.known()), []);
    assert_eq!(bench.found(), ["l1-past-buffer", "l1-unwritten-read", "l1-unwritten-read"]);
    // Of memory in granules that is told as such, and of circular buffers not at all.
    bench.brisc(0x48, store(BUFFER, 1));
    bench.brisc(0x4C, load(BUFFER));
    bench.ncrisc(store(CB, 7));
    bench.ncrisc(load(CB));
    assert_eq!(loaders(&bench.observer.known()), []);
}

#[test]
fn an_argument_is_known_when_the_same_instruction_loads_it_again() {
    let mut bench = Bench::new();
    assert_eq!(bench.observer.known(), []);
    bench.brisc(0x30, load(BASE));
    bench.brisc(0x34, load(BASE));
    bench.brisc(0x30, load(BASE + 4));
    assert_eq!(loaders(&bench.observer.known()), [], "each by another instruction, or another argument");
    bench.brisc(0x30, load(BASE + 4));
    bench.brisc(0x34, load(BASE));
    let wanted = [(Processor::Brisc, TEXT + 0x30, BASE + 4), (Processor::Brisc, TEXT + 0x34, BASE)];
    assert_eq!(loaders(&bench.observer.known()), wanted);
    bench.brisc(0x30, load(BASE + 4));
    assert_eq!(loaders(&bench.observer.known()), []);
    // What was told takes its time, and may not have come.
    (0..16).for_each(|_| bench.brisc(0x30, load(BASE + 4)));
    assert_eq!(loaders(&bench.observer.known()), [(Processor::Brisc, TEXT + 0x30, BASE + 4)]);
}
