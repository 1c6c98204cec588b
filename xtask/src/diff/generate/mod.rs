//! Generators: turn a seed into a case, and a case into a script.
//!
//! A case consists of parts that can be left out one by one, so that a failing case can be
//! shrunk. Every case is independent of time: one library counts instructions, another cycles, so
//! a script waits for words of memory, never for clocks, and gives posted writes far more time
//! than they need.

mod atomics;
mod host;
mod niu;
mod noc;
mod program;
mod tensix;

use clap::ValueEnum;
use tilework_abi::tensix::{self as map, Processor};

use super::rng::Rng;
use super::script::{Op, Place};

/// Kinds of cases.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, ValueEnum)]
pub enum Kind {
    /// Configuration space and registers that keep what is written.
    Registers,
    /// Host windows onto L1 and DRAM: sizes, alignments, both window sizes, multicast.
    Memory,
    /// NoC requests of a core: reads, writes, multicasts, inline writes, atomics, with
    /// all counters.
    Noc,
    /// Random RV32IM, Zba, Zbb, Zbkb and Zaamo programs.
    Programs,
    /// Atomics of several tiles and cores on the same words.
    Atomics,
    /// The matrix unit of the coprocessor.
    Matrix,
    /// The vector unit.
    Vector,
    /// The unpackers.
    Unpack,
    /// The packer.
    Pack,
    /// Scalar unit and configuration unit.
    Scalar,
    /// All three threads of the coprocessor.
    Threads,
}

impl Kind {
    /// All kinds, in the order of the table.
    pub const ALL: [Self; 11] = [
        Self::Registers,
        Self::Memory,
        Self::Noc,
        Self::Programs,
        Self::Atomics,
        Self::Matrix,
        Self::Vector,
        Self::Unpack,
        Self::Pack,
        Self::Scalar,
        Self::Threads,
    ];

    /// The name in commands and tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Registers => "registers",
            Self::Memory => "memory",
            Self::Noc => "noc",
            Self::Programs => "programs",
            Self::Atomics => "atomics",
            Self::Matrix => "matrix",
            Self::Vector => "vector",
            Self::Unpack => "unpack",
            Self::Pack => "pack",
            Self::Scalar => "scalar",
            Self::Threads => "threads",
        }
    }
}

/// A generated case.
pub(crate) enum Case {
    /// Host operations only; each part is a few that belong together.
    Host(host::Case),
    /// One core runs NoC requests.
    Noc(noc::Case),
    /// One core runs a random program.
    Program(program::Case),
    /// Several cores run atomics.
    Atomics(atomics::Case),
    /// A core drives the coprocessor.
    Tensix(tensix::Case),
}

impl Case {
    /// The case of `seed`; the same on every machine.
    pub(crate) fn new(kind: Kind, seed: u64) -> Self {
        let mut rng = Rng::new(seed ^ (kind as u64) << 56);
        match kind {
            Kind::Registers => Self::Host(host::Case::registers(&mut rng)),
            Kind::Memory => Self::Host(host::Case::memory(&mut rng)),
            Kind::Noc => Self::Noc(noc::Case::new(&mut rng)),
            Kind::Programs => Self::Program(program::Case::new(&mut rng)),
            Kind::Atomics => Self::Atomics(atomics::Case::new(&mut rng)),
            Kind::Matrix | Kind::Vector | Kind::Unpack | Kind::Pack | Kind::Scalar | Kind::Threads => {
                Self::Tensix(tensix::Case::new(&mut rng, kind))
            }
        }
    }

    /// How many parts it has.
    pub(crate) fn parts(&self) -> usize {
        match self {
            Self::Host(case) => case.parts(),
            Self::Noc(case) => case.parts(),
            Self::Program(case) => case.parts(),
            Self::Atomics(case) => case.parts(),
            Self::Tensix(case) => case.parts(),
        }
    }

    /// The script of the parts selected by `keep`.
    pub(crate) fn script(&self, keep: &[bool]) -> Vec<Op> {
        match self {
            Self::Host(case) => case.script(keep),
            Self::Noc(case) => case.script(keep),
            Self::Program(case) => case.script(keep),
            Self::Atomics(case) => case.script(keep),
            Self::Tensix(case) => case.script(keep),
        }
    }

    /// A listing of what the cores do in the kept parts; empty if the script shows everything.
    pub(crate) fn listing(&self, keep: &[bool]) -> Vec<String> {
        match self {
            Self::Host(_) => Vec::new(),
            Self::Noc(case) => case.listing(keep),
            Self::Program(case) => case.listing(keep),
            Self::Atomics(case) => case.listing(keep),
            Self::Tensix(case) => case.listing(keep),
        }
    }
}

/// The items whose part is kept.
fn kept<'a, T>(items: &'a [T], keep: &'a [bool]) -> impl Iterator<Item = &'a T> {
    items.iter().zip(keep).filter_map(|(item, &keep)| keep.then_some(item))
}

/// Columns of Tensix tiles that every board has (BlackholeA0/README.md: a P100 lacks two; with
/// translation, columns 15 and 16).
const COLUMNS: [u8; 12] = [1, 2, 3, 4, 5, 6, 7, 10, 11, 12, 13, 14];

/// A random Tensix tile.
fn tile(rng: &mut Rng) -> (u8, u8) {
    (rng.pick(&COLUMNS), rng.within(2..12) as u8)
}

/// `n` different random Tensix tiles.
fn tiles(rng: &mut Rng, n: usize) -> Vec<(u8, u8)> {
    let mut out: Vec<(u8, u8)> = Vec::new();
    while out.len() < n {
        let one = tile(rng);
        if !out.contains(&one) {
            out.push(one);
        }
    }
    out
}

/// A random port of a random DRAM bank that every board has (translated coordinates; a P100 has
/// seven banks).
fn dram(rng: &mut Rng) -> (u8, u8) {
    let bank = rng.within(0..7) as u8;
    (17 + bank / 4, 12 + 3 * (bank % 4) + rng.within(0..3) as u8)
}

/// Start address of a core's code. BRISC always starts at zero; the distance fits the
/// longest program.
const fn code(core: Processor) -> u32 {
    core as u32 * 0x6000
}
/// Where atomics on the sender's own word return old values: non-posted ones, 16 bytes for
/// each request.
const RETURNS: u32 = 0x3_3000;
/// The same for posted ones, which return nothing.
pub(super) const POSTED_RETURNS: u32 = 0x3_3400;
/// Bytes of each zone.
const RETURN_BYTES: u32 = 0x200;
/// Word `i` says that core `i` is done.
const DONE: u32 = 0x1_F000;
/// The value of a done word; the program writes it last.
const DONE_VALUE: u32 = 0x600D_F00D;

/// The done word of a core.
const fn done(core: Processor) -> u32 {
    DONE + 4 * core as u32
}

/// A write of one word.
fn write_word(tile: (u8, u8), addr: u32, value: u32) -> Op {
    Op::Write(Place::new(tile, u64::from(addr)), value.to_le_bytes().to_vec())
}

/// Puts all cores of `tile` into reset, clears the done words and sets every core's start address.
fn hold(tile: (u8, u8)) -> Vec<Op> {
    use Processor::{Ncrisc, Trisc0, Trisc1, Trisc2};
    vec![
        write_word(tile, map::SOFT_RESET_0, map::SOFT_RESET_ALL_CORES),
        Op::Write(Place::new(tile, u64::from(DONE)), vec![0; 4 * Processor::ALL.len()]),
        write_word(tile, map::TRISC0_RESET_PC, code(Trisc0)),
        write_word(tile, map::TRISC1_RESET_PC, code(Trisc1)),
        write_word(tile, map::TRISC2_RESET_PC, code(Trisc2)),
        write_word(tile, map::NCRISC_RESET_PC, code(Ncrisc)),
        write_word(tile, map::TRISC_RESET_PC_OVERRIDE, 7),
        write_word(tile, map::NCRISC_RESET_PC_OVERRIDE, 1),
    ]
}

/// Releases `cores` of `tile` from reset.
fn release(tile: (u8, u8), cores: &[Processor]) -> Op {
    let running = cores.iter().fold(0, |bits, core| bits | core.soft_reset_bit());
    write_word(tile, map::SOFT_RESET_0, map::SOFT_RESET_ALL_CORES & !running)
}

/// Waits for the done word of a core.
fn wait(tile: (u8, u8), core: Processor) -> Op {
    Op::Wait { at: Place::new(tile, u64::from(done(core))), value: DONE_VALUE, step: 1000, turns: 2000 }
}

/// Writes bytes to L1 or DRAM.
fn fill(tile: (u8, u8), addr: u32, data: Vec<u8>) -> Op {
    Op::Write(Place::new(tile, u64::from(addr)), data)
}

/// Reads bytes of L1 or DRAM.
fn look(tile: (u8, u8), addr: u32, len: u32) -> Op {
    Op::Read(Place::new(tile, u64::from(addr)), len)
}
