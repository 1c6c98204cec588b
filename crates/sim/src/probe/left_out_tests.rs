//! What a recorder leaves out for an observer that needs to see little ([`Unjudged`]).

use super::recorder::{Loaded, Recorder, Stored};
use super::{Agent, Boundaries, Known, KnownOf, Spot, Unjudged, Wants, What};
use tilework_abi::noc::NocXy;
use tilework_abi::stream;
use tilework_abi::tensix::{INSTRN_BUF_BASE, LOCAL_BASE, PC_BUF_BASE, Processor};

const TILE: NocXy = NocXy::new(1, 2);
const BRISC: Processor = Processor::Brisc;
const NCRISC: Processor = Processor::Ncrisc;
/// A boundary that BRISC polls, another one, and a word beside them.
const GO: u32 = 0x100;
const LAUNCH: u32 = 0x140;
const WORD: u32 = 0x180;
/// Code that is not judged, and code that is.
const FIRMWARE: u32 = 0x1000;
const KERNEL: u32 = 0x8000;
/// From where on BRISC's accesses to its local RAM are right.
const STACK: u32 = LOCAL_BASE + 0x800;

struct Rig(Recorder);

fn boundaries(ranges: &[std::ops::Range<u32>]) -> Boundaries {
    ranges.into()
}

impl Rig {
    fn new() -> Self {
        Self::with(Wants::NOTHING)
    }

    /// While others want this.
    fn with(others: Wants) -> Self {
        let mut recorder = Recorder::new(Spot::Tensix(TILE));
        recorder.set_wants(Wants::ACCESSES | Wants::LOCAL | Wants::REGISTERS, others);
        recorder.filter.set_boundaries(boundaries(&[GO..GO + 16, LAUNCH..LAUNCH + 4]), 0);
        let mut stacks = [u32::MAX; 5];
        stacks[BRISC as usize] = STACK;
        recorder.set_unjudged(&Unjudged {
            code: FIRMWARE..FIRMWARE + 0x100,
            stacks,
            polled: GO..GO + 16,
            registers: INSTRN_BUF_BASE..PC_BUF_BASE,
            tiles: Vec::new(),
            fences: true,
            spans: false,
        });
        for addr in [GO, LAUNCH, WORD] {
            let (page, granules) = (addr / 256, 1 << (addr / 4 % 64));
            let known = Known { tile: TILE, core: BRISC, since: 1, of: KnownOf::Words, page, granules };
            recorder.filter.know(&known, |_| false);
        }
        Self(recorder)
    }

    /// What is told when a core loads a word.
    fn load(&mut self, core: Processor, pc: u32, addr: u32, value: u32, cached: bool) -> Vec<What> {
        if !self.0.skips_load(core, pc, addr, cached) {
            self.0.load(core, 2, pc, Loaded { addr, bytes: 4, value, cached });
        }
        self.told()
    }

    /// What is told when a core stores so many bytes.
    fn store(&mut self, core: Processor, pc: u32, addr: u32, bytes: u8) -> Vec<What> {
        if !self.0.skips_store(core, addr) {
            self.0.store(core, 2, pc, Stored { addr, bytes, value: 0 });
        }
        self.told()
    }

    fn fence(&mut self, core: Processor) -> Vec<What> {
        self.0.fence(core, 2, KERNEL);
        self.told()
    }

    fn told(&mut self) -> Vec<What> {
        self.0.events.drain(..).map(|event| event.what).collect()
    }
}

fn load(addr: u32, value: u32, cached: bool) -> What {
    What::Load { addr, bytes: 4, value, cached }
}

fn store(addr: u32, bytes: u8) -> What {
    What::Store { addr, bytes, value: 0 }
}

#[test]
fn what_firmware_stores_in_local_ram_is_told_before_its_next_event() {
    let mut rig = Rig::new();
    let prepared = |page, words| What::Prepared { core: NCRISC, page, words };
    for offset in [4, 0, 256, 4] {
        assert_eq!(rig.store(NCRISC, FIRMWARE, LOCAL_BASE + offset, 4), [], "at {offset}");
    }
    assert_eq!(rig.store(NCRISC, FIRMWARE, LOCAL_BASE + 1, 1), [], "a byte of a word that is stored");
    assert_eq!(rig.load(NCRISC, FIRMWARE, LOCAL_BASE + 8, 0, false), [], "firmware is not judged");
    let seen = load(LOCAL_BASE + 8, 0, false);
    assert_eq!(rig.load(BRISC, KERNEL, LOCAL_BASE + 8, 0, false), vec![seen.clone()], "another core's");
    assert_eq!(rig.load(NCRISC, KERNEL, LOCAL_BASE + 8, 0, false), [prepared(0, 0b11), prepared(1, 1), seen.clone()]);
    assert_eq!(rig.store(NCRISC, FIRMWARE, LOCAL_BASE, 4), [], "what was told before");
    assert_eq!(rig.load(NCRISC, KERNEL, LOCAL_BASE + 8, 0, false), [seen], "nothing new");
    // Of less than a word bits do not tell all.
    assert_eq!(rig.store(NCRISC, FIRMWARE, LOCAL_BASE + 16, 4), []);
    let part = store(LOCAL_BASE + 12, 2);
    assert_eq!(rig.store(NCRISC, FIRMWARE, LOCAL_BASE + 12, 2), [prepared(0, 1 << 4), part]);
    // When nothing is known any more, nothing may be missing.
    assert_eq!(rig.store(NCRISC, FIRMWARE, LOCAL_BASE + 20, 4), []);
    rig.0.forget_known(3);
    assert_eq!(rig.told(), [prepared(0, 1 << 5)]);
    assert_eq!(rig.store(NCRISC, FIRMWARE, LOCAL_BASE, 4), []);
    let seen = store(LOCAL_BASE, 4);
    assert_eq!(rig.store(NCRISC, KERNEL, LOCAL_BASE, 4), [prepared(0, 1), seen], "told once more");
}

#[test]
fn above_all_stack_pointers_only_loads_of_what_was_not_stored_are_told() {
    let mut rig = Rig::new();
    assert_eq!(rig.store(BRISC, KERNEL, STACK - 4, 4), [store(STACK - 4, 4)], "below");
    assert_eq!(rig.store(BRISC, KERNEL, STACK + 4, 4), []);
    assert_eq!(rig.load(BRISC, KERNEL, STACK + 4, 0, false), []);
    assert!(rig.0.skips_load(BRISC, KERNEL, STACK + 4, false), "without asking again");
    let words = 1 << ((STACK + 4 - LOCAL_BASE) / 4 % 64);
    let prepared = What::Prepared { core: BRISC, page: ((STACK - LOCAL_BASE) / 256) as u8, words };
    assert_eq!(rig.load(BRISC, KERNEL, STACK + 8, 0, false), [prepared, load(STACK + 8, 0, false)], "never stored");
    assert_eq!(rig.store(BRISC, KERNEL, STACK + 12, 1), [store(STACK + 12, 1)], "not all of the word");
    assert_eq!(rig.load(BRISC, KERNEL, STACK + 12, 0, false), [load(STACK + 12, 0, false)]);
    assert_eq!(rig.store(NCRISC, KERNEL, STACK + 4, 4), [store(STACK + 4, 4)], "others have others");
    // A program ends: what was stored stays so.
    assert_eq!(rig.load(BRISC, FIRMWARE, LAUNCH, 1, false), [load(LAUNCH, 1, false)]);
    assert!(!rig.0.skips_load(BRISC, KERNEL, STACK + 4, false));
    assert_eq!(rig.load(BRISC, KERNEL, STACK + 4, 0, false), []);
}

#[test]
fn polls_that_find_the_same_are_left_out() {
    let mut rig = Rig::new();
    let seen = |value| [load(GO, value, false)];
    assert_eq!(rig.load(BRISC, FIRMWARE, GO, 7, false), seen(7), "the first");
    assert_eq!(rig.load(BRISC, FIRMWARE, GO, 7, false), []);
    assert_eq!(rig.load(BRISC, FIRMWARE, GO, 7, true), []);
    assert_eq!(rig.load(BRISC, FIRMWARE, GO, 8, false), seen(8), "a program may begin");
    assert_eq!(rig.load(BRISC, FIRMWARE, GO, 8, false), []);
    // Another boundary in between: the go message may be for another program now.
    assert_eq!(rig.load(BRISC, FIRMWARE, LAUNCH, 1, false), [load(LAUNCH, 1, false)]);
    assert_eq!(rig.load(BRISC, FIRMWARE, LAUNCH, 1, false), [load(LAUNCH, 1, false)], "that is not polled");
    assert_eq!(rig.load(BRISC, FIRMWARE, GO, 8, false), seen(8));
    assert_eq!(rig.store(BRISC, FIRMWARE, GO, 4), [store(GO, 4)]);
    assert_eq!(rig.load(BRISC, FIRMWARE, GO, 8, false), seen(8), "behind a store");
    rig.0.filter.launches();
    assert_eq!(rig.load(BRISC, FIRMWARE, GO, 8, false), seen(8), "a launch begins with the same value");
    // Words beside boundaries, and boundaries for other cores, are right whatever is found.
    assert_eq!(rig.load(BRISC, FIRMWARE, WORD, 1, false), []);
    assert_eq!(rig.load(BRISC, FIRMWARE, WORD, 2, false), []);
    assert_eq!(rig.load(NCRISC, FIRMWARE, GO, 9, false), []);
    assert_eq!(rig.load(BRISC, FIRMWARE, WORD + 4, 2, false), [load(WORD + 4, 2, false)], "not known");
    // All others' boundaries may have changed.
    rig.0.filter.set_boundaries(boundaries(std::slice::from_ref(&(GO..GO + 16))), 2);
    assert_eq!(rig.load(BRISC, FIRMWARE, WORD, 2, false), [load(WORD, 2, false)]);
}

#[test]
fn copies_of_polled_words_are_told_before_somebody_writes_there() {
    let mut rig = Rig::new();
    let holds = |core: Processor, addr| What::Holds { cores: 1 << core.index(), addr };
    assert_eq!(rig.load(NCRISC, FIRMWARE, WORD, 1, false), []);
    assert_eq!(rig.load(BRISC, FIRMWARE, WORD, 1, false), []);
    rig.0.written(3, Agent::Niu(0), WORD + 16..WORD + 32);
    assert_eq!(rig.told(), [], "another line");
    rig.0.written(3, Agent::Niu(0), WORD + 8..WORD + 12);
    let both = 1 << BRISC.index() | 1 << NCRISC.index();
    assert_eq!(rig.told(), [What::Holds { cores: both, addr: WORD }]);
    rig.0.written(3, Agent::Niu(0), WORD..WORD + 4);
    assert_eq!(rig.told(), [], "once");
    assert_eq!(rig.load(BRISC, FIRMWARE, WORD, 1, true), [load(WORD, 1, true)], "a copy that may be stale");
    assert_eq!(rig.load(BRISC, FIRMWARE, WORD, 1, false), []);
    assert_eq!(rig.store(NCRISC, FIRMWARE, WORD, 4), [holds(BRISC, WORD), store(WORD, 4)]);
    assert_eq!(rig.load(BRISC, FIRMWARE, WORD, 1, false), []);
    let other = load(WORD + 4, 1, true);
    assert_eq!(rig.load(BRISC, FIRMWARE, WORD + 4, 1, true), [holds(BRISC, WORD), other], "by another of its words");
}

#[test]
fn fences_are_told_to_those_who_see_everything() {
    let mut rig = Rig::new();
    assert_eq!(rig.fence(BRISC), []);
    let seen = |cached| [load(0x4000, 1, cached)];
    assert_eq!(rig.load(NCRISC, KERNEL, 0x4000, 1, false), seen(false));
    rig.0.written(3, Agent::Niu(0), 0x4000..0x4004);
    assert_eq!(rig.fence(NCRISC), [], "what is loaded behind it is told again");
    assert_eq!(rig.load(NCRISC, KERNEL, 0x4000, 1, false), seen(false));
    assert_eq!(rig.load(NCRISC, KERNEL, 0x4000, 1, true), seen(true));
    // A copy that was left out is another one behind a fence.
    assert_eq!(rig.load(BRISC, FIRMWARE, WORD, 1, false), []);
    assert_eq!(rig.fence(BRISC), []);
    rig.0.written(3, Agent::Niu(0), WORD..WORD + 4);
    assert_eq!(rig.told(), []);
    let mut shared = Rig::with(Wants::ACCESSES);
    assert_eq!((shared.fence(BRISC), shared.fence(BRISC)), (vec![What::Fence], vec![What::Fence]));
    rig.0.set_unjudged(&Unjudged::default());
    assert_eq!(rig.fence(BRISC), [What::Fence], "for one who looks at them");
}

#[test]
fn registers_that_nobody_looks_at_are_no_events() {
    let (mut rig, push, register) = (Rig::new(), INSTRN_BUF_BASE, stream::BASE);
    assert_eq!(rig.store(NCRISC, KERNEL, push, 4), []);
    assert_eq!(rig.load(NCRISC, KERNEL, push, 0, false), []);
    assert_eq!(rig.store(NCRISC, KERNEL, PC_BUF_BASE, 4), [store(PC_BUF_BASE, 4)], "behind them");
    assert_eq!(rig.store(NCRISC, KERNEL, register, 4), [store(register, 4)]);
    for others in [Wants::REGISTERS, Wants::ACCESSES] {
        assert_eq!(Rig::with(others).store(NCRISC, KERNEL, push, 4), [store(push, 4)], "for others");
    }
}
