//! The debug interface, driven as the public debugger drives it (tt-exalens, `baby_risc_debug.py`):
//! data, command with trigger, trigger off.

use super::tests::{
    FLAG, RESULT, answer, insn, li, load_program, poller, read_word, release, run, tile, word, write_word,
};
use super::*;
use tilework_riscv::Op;

const CNTL_0: u32 = 0xFFB1_2080;
const CNTL_1: u32 = 0xFFB1_2084;
const STATUS_0: u32 = 0xFFB1_2088;
const STATUS_1: u32 = 0xFFB1_208C;
const DEBUG_MODE: u32 = 1 << 31;

/// A tile and the clock of its debugger.
struct Session {
    tile: Tile,
    now: Cycle,
    core: u32,
}

impl Session {
    fn new(parking: bool, core: u32, program: &[u32]) -> Self {
        let mut tile = tile(parking);
        let (processor, at) = [(Processor::Brisc, 0), (Processor::Trisc0, 0x6000)][core as usize];
        load_program(&mut tile, at, program);
        release(&mut tile, &[processor], 5);
        run(&mut tile, 1000);
        Self { tile, now: 1000, core }
    }
    fn send(&mut self, packet: Packet) -> Result<Outbox, Fault> {
        self.now += 33;
        self.tile.deliver(self.now, packet);
        let mut out = Outbox::default();
        self.tile.run(self.now + 1, &mut out)?;
        Ok(out)
    }
    fn write(&mut self, addr: u32, value: u32) -> Result<(), Fault> {
        self.send(write_word(addr, value)).map(|_| ())
    }
    fn read(&mut self, addr: u32) -> u32 {
        answer(self.send(read_word(addr, 0x3000)).expect("a read"))
    }
    fn set(&mut self, register: u32, value: u32) -> Result<(), Fault> {
        self.write(CNTL_1, value)?;
        self.write(CNTL_0, 1 << 31 | 1 << 16 | self.core << 17 | register)?;
        assert_eq!(self.read(STATUS_0), 1 << 31 | 1 << (13 + self.core) | register, "the echo of a write");
        self.write(CNTL_0, 0)
    }
    fn get(&mut self, register: u32) -> u32 {
        self.write(CNTL_0, 1 << 31 | self.core << 17 | register).expect("a read");
        self.write(CNTL_0, 0).expect("a register");
        assert_eq!(self.read(STATUS_0), 1 << 30, "the value is valid");
        self.read(STATUS_1)
    }
    fn command(&mut self, command: u32) {
        self.set(1, DEBUG_MODE | command).expect("a command");
    }
    fn gpr(&mut self, index: u32) -> u32 {
        self.set(2, index).expect("an argument");
        self.command(1 << 3);
        self.get(4)
    }
}

#[test]
fn a_paused_core_shows_its_registers_and_goes_on_where_it_was() {
    let outcome = |parking| {
        let mut session = Session::new(parking, 0, &poller(true));
        assert_eq!(session.get(0), 0, "it runs");
        session.command(1);
        assert_eq!(session.get(0), 1, "paused, by no breakpoint");
        assert_eq!(session.tile.activity(Processor::Brisc), Activity::Paused);
        // x10 and x11 of `poller`, and its loop.
        assert_eq!((session.gpr(10), session.gpr(11)), (FLAG as u32, RESULT as u32));
        let pc = session.gpr(32);
        assert!((24..36).contains(&pc), "{pc:#x}");
        assert_eq!(session.read(map::PC_SNAPSHOT), pc);
        // The flag is set while it is paused: it sees that afterwards.
        session.write(FLAG as u32, 1).expect("L1");
        assert_eq!(session.read(map::PC_SNAPSHOT), pc, "time passes without it");
        assert_eq!(word(&session.tile, RESULT), 0);
        session.command(1 << 2);
        assert_eq!(session.get(0), 0);
        (pc, word(&session.tile, RESULT))
    };
    let (pc, seen) = outcome(true);
    assert_ne!(seen, 0);
    assert_eq!((pc, seen), outcome(false), "parked or not");
}

#[test]
fn a_paused_core_reads_and_writes_registers_and_memory_for_the_debugger() {
    let mut session = Session::new(true, 1, &poller(true));
    session.command(1);
    session.set(3, 0xDEAD_BEEF).expect("data");
    session.set(2, 13).expect("an index");
    session.command(1 << 4);
    assert_eq!(session.gpr(13), 0xDEAD_BEEF);
    session.set(2, 0).expect("an index");
    session.command(1 << 4);
    assert_eq!(session.gpr(0), 0, "x0 is not writable");
    // L1, the core's own local RAM, a stream register.
    for addr in [0x4000, map::LOCAL_BASE + 0x40, 0xFFB4_0028] {
        session.set(3, 0x1_2345).expect("data");
        session.set(2, addr).expect("an address");
        session.command(1 << 6);
        session.set(3, 0).expect("data");
        session.command(1 << 5);
        assert_eq!(session.get(4), 0x1_2345, "address {addr:#x}");
    }
    assert_eq!(word(&session.tile, 0x4000), 0x1_2345);
    // TRISC0's RAM from outside, over the slow path.
    assert_eq!(session.read(map::LOCAL_SLOW[Processor::Trisc0.index()] + 0x40), 0x1_2345);
    session.command(1 << 7);
    assert_eq!((session.gpr(10), session.gpr(11), session.gpr(13)), (0, 0, 0));
}

#[test]
fn a_core_that_waits_in_an_access_pauses_when_it_need_not_wait_any_more() {
    // TRISC0 reads an empty PC buffer.
    let mut words = Vec::new();
    words.extend(li(10, map::PC_BUF_BASE.cast_signed()));
    words.extend(li(11, RESULT));
    words.push(insn(Op::Lw, 13, 10, 0, 0));
    words.push(insn(Op::Sw, 0, 11, 13, 0));
    words.push(insn(Op::Jal, 0, 0, 0, 0));
    let mut session = Session::new(true, 1, &words);
    session.command(1);
    assert_eq!(session.get(0), 0, "not yet");
    // The override answers for the empty buffer: OverrideEn, OverrideValue 7.
    session.write(0xFFB1_2090, 7 << 2 | 1).expect("a register");
    assert_eq!(session.get(0), 1);
    assert_eq!(session.gpr(32), 0x6010, "before the load");
    session.command(1 << 2);
    assert_eq!(session.get(0), 0);
    assert_eq!(word(&session.tile, RESULT), 7);
}

#[test]
fn resets_and_what_is_not_there() {
    let mut session = Session::new(true, 0, &poller(true));
    session.command(1);
    session.write(map::SOFT_RESET_0, map::SOFT_RESET_ALL_CORES).expect("a register");
    assert_eq!((session.get(0), session.get(1)), (0, 0), "held, debug registers zero");
    session.command(1);
    assert_eq!(session.get(1), 0, "writes are discarded while it is held");
    session.write(map::SOFT_RESET_0, map::SOFT_RESET_ALL_CORES & !(1 << 11)).expect("a register");
    assert_eq!(session.get(0), 0);

    let reading = Session::new(true, 0, &poller(true)).set(1, 1 << 3).expect_err("not paused");
    assert_eq!(reading.class, FaultClass::UndefinedBehavior);
    for (register, value) in [(1, 1 << 1), (1, 1 << 8 | 1 << 1), (5, 8 << 4)] {
        let fault = Session::new(true, 0, &poller(true)).set(register, value).expect_err("not there");
        assert_eq!(fault.class, FaultClass::UnimplementedFunctionality, "{fault}");
    }
    Session::new(true, 0, &poller(true)).set(5, 0x7777_7777).expect("all disabled");
}

#[test]
fn a_core_cannot_debug_its_tile() {
    let mut words = Vec::new();
    words.extend(li(10, CNTL_0.cast_signed()));
    words.extend(li(11, i32::MIN));
    words.push(insn(Op::Sw, 0, 10, 11, 0));
    let mut tile = tile(true);
    load_program(&mut tile, 0, &words);
    release(&mut tile, &[Processor::Brisc], 0);
    let fault = tile.run(1000, &mut Outbox::default()).expect_err("for packets only");
    assert_eq!(fault.class, FaultClass::UnimplementedFunctionality);
}
