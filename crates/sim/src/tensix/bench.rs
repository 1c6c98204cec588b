//! A coprocessor with nothing but L1 around it, for tests.

use super::*;
use crate::Fault;
use std::collections::BTreeMap;
use tilework_abi::tensix as map;

/// What surrounds the coprocessor: L1, registers that hold what was written, and nobody who sleeps.
pub(super) struct Surroundings {
    pub(super) l1: Vec<u8>,
    pub(super) registers: BTreeMap<u32, u32>,
    /// Words that the coprocessor sleeps on.
    pub(super) asleep_on: Vec<u32>,
}

impl Outside for Surroundings {
    fn must_wake(&mut self, _addr: u32, _len: u32) -> bool {
        false
    }
    fn sleep_on(&mut self, addr: u32) {
        self.asleep_on.push(addr);
    }
    fn l1(&self) -> &[u8] {
        &self.l1
    }
    fn write_l1(&mut self, addr: u32, data: &[u8]) {
        self.l1[addr as usize..addr as usize + data.len()].copy_from_slice(data);
    }
    fn copy_l1(&mut self, dst: u32, src: u32, len: u32) {
        self.l1.copy_within(src as usize..(src + len) as usize, dst as usize);
    }
    fn zero_l1(&mut self, addr: u32, len: u32) {
        self.l1[addr as usize..(addr + len) as usize].fill(0);
    }
    fn load(&mut self, _at: Cycle, addr: u32) -> Result<u32, Fault> {
        Ok(self.registers.get(&addr).copied().unwrap_or(0))
    }
    fn store(&mut self, _at: Cycle, addr: u32, value: u32) -> Result<(), Fault> {
        self.registers.insert(addr, value);
        Ok(())
    }
}

/// The coprocessor and its surroundings.
pub(super) struct Bench {
    pub(super) t: Tensix,
    pub(super) out: Surroundings,
}

/// For tests that do not look at who pushed.
impl From<Processor> for Issuer {
    fn from(core: Processor) -> Self {
        Self { core, pc: core.default_reset_pc() }
    }
}

pub(super) const CORES: [Processor; 3] = [Processor::Trisc0, Processor::Trisc1, Processor::Trisc2];

impl Bench {
    pub(super) fn new() -> Self {
        let out =
            Surroundings { l1: vec![0; map::L1_SIZE as usize], registers: BTreeMap::new(), asleep_on: Vec::new() };
        Self { t: Tensix::default(), out }
    }

    /// Core `thread` pushes at cycle `at`; there is room.
    pub(super) fn push(&mut self, thread: usize, at: Cycle, words: &[u32]) {
        for &word in words {
            assert_eq!(self.t.push(CORES[thread], thread, word, at), Ok(true), "{word:#x}");
        }
    }

    /// Steps everything before cycle `until`. Returns when each instruction passed: cycles, in
    /// order.
    pub(super) fn run(&mut self, until: Cycle) -> Result<Vec<Cycle>, Fault> {
        let mut passed = Vec::new();
        while self.t.next() < until {
            let (at, before) = (self.t.next(), self.t.instructions());
            match self.t.run(at + 1, &mut self.out) {
                Ok(()) => {}
                Err(Hold::Wake) => panic!("nobody sleeps"),
                Err(Hold::Fault(fault)) => return Err(fault),
            }
            assert!(self.t.next() >= at, "time goes forward");
            passed.extend((before..self.t.instructions()).map(|_| at));
        }
        Ok(passed)
    }

    /// Runs `words` on a thread until nothing happens any more.
    pub(super) fn execute(&mut self, thread: usize, words: &[u32]) -> Vec<Cycle> {
        let at = self.t.last_step() + 1;
        let mut all = Vec::new();
        for chunk in words.chunks(24) {
            self.push(thread, at.max(self.t.last_step() + 1), chunk);
            all.extend(self.run(at + 100_000).expect("no fault"));
        }
        all
    }

    pub(super) fn gpr(&mut self, thread: usize, index: u32) -> u32 {
        self.t.load(CORES[thread], map::GPR_BASE + 4 * index, 0).expect("a GPR").value
    }
    pub(super) fn set_gpr(&mut self, thread: usize, index: u32, value: u32) {
        self.t.store(CORES[thread], map::GPR_BASE + 4 * index, value, 0).expect("a GPR");
    }
    pub(super) fn word(&self, addr: usize) -> u32 {
        u32::from_le_bytes(self.out.l1[addr..addr + 4].try_into().expect("4 bytes"))
    }
    pub(super) fn semaphore(&self, index: u32) -> u32 {
        self.t.peek(Processor::Trisc0, map::PC_BUF_BASE + 0x20 + 4 * index).expect("a semaphore")
    }
}
