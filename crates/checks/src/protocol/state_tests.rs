//! State that one program leaves and the next one uses, by events as a chip would make them.

use crate::shadow::observer::CheckObserver;
use crate::{Checks, Policy, Word};
use std::sync::{Arc, Mutex};
use tilework_abi::l1::WORKER;
use tilework_abi::msg::{RUN_DONE, RUN_GO};
use tilework_abi::noc::NocXy;
use tilework_abi::tensix::Processor;
use tilework_abi::tensix::insn::{Elwadd, Mova2d, Pacr, Setadcxx, Setrwc, Zeroacc};
use tilework_driver::{ArgumentsNote, CodeNote, FirmwareNote, LaunchNote, Note, RoleNote};
use tilework_sim::{Agent, Event, Observer, Spot, Unit, What};

const TILE: NocXy = NocXy::new(1, 2);
const TEXT: u32 = 0x9000;
const BASE: u32 = WORKER.kernel_config.get();
/// The thread of the matrix unit, and the packer's.
const MATH: u8 = 1;
const PACK: u8 = 2;

/// A tile on which one program after the other runs, with a kernel on each TRISC.
struct Bench {
    observer: CheckObserver,
    checks: Arc<Mutex<Checks>>,
    at: u64,
}

impl Bench {
    fn new() -> Self {
        let checks = Arc::new(Mutex::new(Checks::new(Policy::new(&[Word::Suspicious], Vec::new()).unwrap())));
        let mut bench = Self { observer: CheckObserver::new(Arc::clone(&checks)), checks, at: 0 };
        let images = Processor::ALL.map(|p| kernel(p, WORKER.firmware_text[p.index()].get())).to_vec();
        bench.note(Note::Firmware(Arc::new(FirmwareNote { tiles: vec![TILE], map: WORKER, images, own: true })));
        bench
    }

    fn note(&mut self, note: Note) {
        self.observer.note(self.at, &note);
    }

    fn event(&mut self, agent: Agent, pc: u32, what: What) {
        self.at += 1;
        self.observer.events(&[Event {
            at: self.at,
            spot: Spot::Tensix(TILE),
            agent,
            pc,
            known: false,
            early: false,
            what,
        }]);
    }

    /// A program with this number runs: what `does`; the words of what was found since.
    fn run(&mut self, number: u64, does: impl FnOnce(&mut Self)) -> Vec<String> {
        let before = self.checks.lock().unwrap().findings().len();
        let arguments = ArgumentsNote { unique: BASE, unique_words: vec![0], common: BASE, common_words: 0 };
        let kernels = Processor::ALL[2..].iter().map(|&p| kernel(p, text(p.index() as u8 - 2, number))).collect();
        self.note(Note::Launch(Arc::new(LaunchNote {
            number,
            queue: None,
            tag: None,
            program: "p".into(),
            host_assigned_id: 0,
            cores: vec![TILE],
            argument_words: Vec::new(),
            base: BASE,
            config: BASE..BASE + 0x40,
            arguments: [arguments.clone(), arguments.clone(), arguments],
            semaphores: BASE,
            semaphore_count: 0,
            cb_config: BASE,
            cbs: Vec::new(),
            roles: vec![RoleNote { name: "r".into(), cores: vec![TILE], kernels }],
        })));
        let (addr, firmware) = (WORKER.go.get(), WORKER.firmware_text[0].get());
        let brisc = Agent::Core(Processor::Brisc);
        let signal = |run: u8| u32::from(run) << 24;
        self.event(brisc, firmware, What::Load { addr, bytes: 4, value: signal(RUN_GO), cached: false });
        does(self);
        self.event(brisc, firmware, What::Store { addr, bytes: 4, value: signal(RUN_DONE) });
        let checks = self.checks.lock().unwrap();
        let left = |finding: &crate::Finding| {
            assert_eq!(finding.check.id, "tensix-state-left");
            finding.what.clone()
        };
        // Firmware reads go messages that nobody has written here.
        checks.findings()[before..].iter().filter(|f| f.check.id != "l1-unwritten-read").map(left).collect()
    }

    fn executes(&mut self, number: u64, thread: u8, word: u32) {
        let core = Processor::ALL[2 + usize::from(thread)];
        // Each instruction at its own place: findings of one place are one.
        let pc = text(thread, number) + 4 * (self.at % 32) as u32;
        self.event(Agent::Core(core), pc, What::Tensix { thread, word });
    }

    fn uses_dst(&mut self, number: u64, thread: u8, unit: Unit, blocks: u64, writes: bool) {
        let pc = text(thread, number) + 4 * (self.at % 32) as u32;
        let what = What::Dst { thread, unit, blocks: [blocks, 0], writes };
        self.event(Agent::Coprocessor(Unit::Gate), pc, what);
    }
}

/// Where a thread's kernel of a program is.
fn text(thread: u8, number: u64) -> u32 {
    TEXT + 0x1000 * number as u32 + 0x100 * u32::from(thread)
}

fn kernel(processor: Processor, text: u32) -> CodeNote {
    CodeNote { name: "k".into(), processor, text: text..text + 0x100, local: 0..0, code: Arc::default() }
}

#[test]
fn counters_that_another_program_has_set() {
    let mut bench = Bench::new();
    let set_dst = Setrwc::build().dst(true).word();
    let adds = Mova2d::build().word();
    assert_eq!(bench.run(0, |b| b.executes(0, MATH, set_dst)), [""; 0]);
    let found = bench.run(1, |b| b.executes(1, MATH, adds));
    assert_eq!(found, ["MOVA2D uses the Dst counter (RWC) of thread 1, which a kernel of an earlier launch has set"]);
    // What it has stepped is its own, and the next program's problem: of both counters.
    let found = bench.run(2, |b| {
        b.executes(2, MATH, set_dst);
        b.executes(2, MATH, adds);
    });
    assert!(found.len() == 1 && found[0].contains("the SrcA counter"), "{found:?}");
    let set_x = Setadcxx::build().cnt_set_mask(0b100).word();
    assert_eq!(bench.run(3, |b| b.executes(3, PACK, set_x)), [""; 0]);
    let found = bench.run(4, |b| b.executes(4, PACK, Pacr::build().word()));
    assert!(found.len() == 1 && found[0].contains("counter X of channel 0 of the packer (ADC)"), "{found:?}");
}

#[test]
fn rows_of_dst_that_another_program_has_written() {
    let mut bench = Bench::new();
    let packs = |b: &mut Bench, number| b.uses_dst(number, PACK, Unit::Packer, 0b110, false);
    assert_eq!(bench.run(0, |b| b.uses_dst(0, MATH, Unit::Matrix, 0b100, true)), [""; 0]);
    assert_eq!(
        bench.run(1, |b| packs(b, 1)),
        ["the packer uses rows 16 to 23 of Dst, which a kernel of an earlier launch has set"]
    );
    let own = bench.run(2, |b| {
        b.uses_dst(2, MATH, Unit::Vector, 0b110, true);
        packs(b, 2);
    });
    assert_eq!(own, [""; 0]);
    // An instruction that adds uses what is there, and one that does not adds nothing.
    let add = |to_dst| Elwadd::build().add_dst(to_dst).word();
    let found = bench.run(3, |b| {
        b.executes(3, MATH, add(false));
        b.uses_dst(3, MATH, Unit::Matrix, 0b10, true);
        b.executes(3, MATH, add(true));
        b.uses_dst(3, MATH, Unit::Matrix, 0b110, true);
    });
    assert_eq!(found, ["the matrix unit uses rows 16 to 23 of Dst, which a kernel of an earlier launch has set"]);
    // What was cleared is nobody's.
    let found = bench.run(4, |b| {
        b.executes(4, MATH, Zeroacc::build().mode(3).word());
        packs(b, 4);
    });
    assert_eq!(found, [""; 0]);
}
