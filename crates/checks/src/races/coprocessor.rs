//! What the coprocessor does: accesses of its units to L1 and Dst, instructions that order them,
//! and the registers by which cores and threads tell each other something.

use super::clock::{Moment, Stamp};
use super::registers::{self, Change, Rows};
use super::report::Where;
use super::shadow::{Access, Conflict};
use super::units::{PC_BUFFER, THREADS, Unit};
use super::{RaceObserver, Register, Tile, words};
use crate::Space;
use tilework_abi::address_map::Region;
use tilework_abi::tensix::insn::{self, Insn, MatrixOp, MiscOp, ScalarOp, UnpackerOp};
use tilework_abi::tensix::{L1_SIZE, Processor, pc_buf};
use tilework_sim::{Event, Unit as ProbedUnit, What};

/// Base of the registers that `LOADREG` reaches (LOADREG.md): those from local RAM on.
const MMIO: u32 = tilework_abi::tensix::LOCAL_BASE;
/// Words of the register file of a thread (ScalarUnit.md).
const GPRS: u32 = 64;

/// Whose doings are kept until their instruction is known to have passed.
const PACKER: usize = 0;
const SCALAR: usize = 1;
const GATE: usize = 2;

/// What a unit has done in this cycle, before its instruction is known to have passed.
#[derive(Clone, Copy, Debug)]
pub(super) enum Done {
    Reads {
        addr: u32,
        len: u32,
    },
    Writes {
        addr: u32,
        len: u32,
    },
    /// Stores to a register.
    Stores {
        addr: u32,
    },
    Configures {
        word: u16,
        mask: u32,
        value: u32,
    },
}

/// An instruction of the coprocessor, for an access of it.
#[derive(Clone, Copy)]
struct By {
    thread: usize,
    core: Option<Processor>,
    pc: u32,
    at: u64,
}

impl By {
    fn access(self, stamp: Stamp) -> Access {
        Access {
            stamp,
            pc: self.pc,
            by: self.core.map_or(Access::HOST, |core| core.index() as u8),
            started: u32::MAX,
            at: self.at,
            ..Access::default()
        }
    }
}

impl RaceObserver {
    /// An event of the coprocessor.
    pub(super) fn coprocessor(&mut self, tile: usize, agent: ProbedUnit, event: &Event) {
        let Self { tiles, parts, .. } = self;
        let xy = tiles[tile].xy;
        tiles[tile].units.prepare(xy, parts);
        let of = |by: Option<Processor>, thread: u8| By {
            thread: usize::from(thread).min(THREADS - 1),
            core: by,
            pc: event.pc,
            at: event.at,
        };
        match event.what {
            What::Passes { thread, by, pushed, insn } => {
                let pushed = event.at - u64::from((event.at as u32).wrapping_sub(pushed));
                self.passes(tile, of(by, thread), pushed, Insn::decode(insn));
            }
            What::UnitRead { addr, len, by } => self.unit_does(tile, agent, of(by, 0), Done::Reads { addr, len }),
            What::UnitReads { spans, by } => match agent {
                ProbedUnit::Unpacker(number) => self.unpacks(tile, number, of(by, 0), spans.iter()),
                _ => {
                    for (addr, len) in spans.iter() {
                        self.unit_does(tile, agent, of(by, 0), Done::Reads { addr, len });
                    }
                }
            },
            What::UnitWrite { addr, len, by } => self.unit_does(tile, agent, of(by, 0), Done::Writes { addr, len }),
            What::UnitStore { addr, by, .. } => self.unit_does(tile, agent, of(by, 0), Done::Stores { addr }),
            What::Configures { thread, word, mask, value } => {
                self.unit_does(tile, agent, of(None, thread), Done::Configures { word, mask, value });
            }
            What::Starts { thread, passed } => {
                self.tiles[tile].starting = Some((thread, passed));
            }
            What::Ends { passed, gives } => {
                if let ProbedUnit::Unpacker(number) = agent {
                    self.tiles[tile].units.ends(number, passed, gives);
                }
            }
            What::Dst { thread, unit, blocks, writes } => self.uses_dst(tile, of(None, thread), unit, blocks, writes),
            _ => {}
        }
    }

    /// A unit does something: unpackers and mover by themselves, others for the instruction that
    /// passes next.
    fn unit_does(&mut self, tile: usize, unit: ProbedUnit, by: By, done: Done) {
        match unit {
            ProbedUnit::Unpacker(number) => {
                if let Done::Reads { addr, len } = done {
                    self.unpacks(tile, number, by, std::iter::once((addr, len)));
                }
            }
            ProbedUnit::Mover => self.moves(tile, by, done),
            ProbedUnit::Packer => self.tiles[tile].doing[PACKER].push(done),
            ProbedUnit::Scalar => self.tiles[tile].doing[SCALAR].push(done),
            _ => self.tiles[tile].doing[GATE].push(done),
        }
    }

    fn unpacks(&mut self, tile: usize, number: u8, by: By, reads: impl Iterator<Item = (u32, u32)>) {
        let t = &mut self.tiles[tile];
        let Some((thread, passed)) = t.starting else { return };
        let bank = t.units.bank().clone();
        let Some(job) = t.units.job(number, passed) else { return };
        let (stamp, moment) = (job.stamp, job.moment.clone());
        let knows = |other: Stamp| other.part == stamp.part || moment.knows(other) || bank.knows(other);
        for (addr, len) in reads {
            self.l1(tile, (addr, len, false), By { thread: thread.into(), ..by }.access(stamp), &knows);
        }
    }

    fn moves(&mut self, tile: usize, by: By, done: Done) {
        let units = &mut self.tiles[tile].units;
        let (stamp, clock) = (units.moves(), units.mover.clone());
        let knows = |other: Stamp| other.part == stamp.part || clock.knows(other);
        match done {
            Done::Reads { addr, len } => self.l1(tile, (addr, len, false), by.access(stamp), &knows),
            Done::Writes { addr, len } => self.l1(tile, (addr, len, true), by.access(stamp), &knows),
            Done::Stores { .. } | Done::Configures { .. } => {}
        }
    }

    /// An access to L1.
    fn l1(
        &mut self,
        tile: usize,
        (addr, len, writes): (u32, u32, bool),
        access: Access,
        knows: &impl Fn(Stamp) -> bool,
    ) {
        let Tile { xy, l1, words, .. } = &mut self.tiles[tile];
        let end = addr.saturating_add(len).min(L1_SIZE);
        let mut found = None;
        let mut span = |from: u32, to: u32| {
            let (at, len) = (u64::from(from), u64::from(to - from));
            let conflict = if writes { l1.write(at, len, access, knows) } else { l1.read(at, len, access, knows) };
            found = found.take().or(conflict);
        };
        if words.any(&(addr..end)) {
            for word in (addr & !3..end).step_by(4).filter(|word| !words.has(*word)) {
                span(word.max(addr), (word + 4).min(end));
            }
        } else if addr < end {
            span(addr, end);
        }
        let place = Where { space: Space::L1, tile: *xy, bytes: len.into() };
        self.unit_race(found, access, place);
    }

    fn unit_race(&mut self, found: Option<Conflict>, access: Access, place: Where) {
        if let Some(conflict) = found {
            self.reports.race(&self.parts, &conflict, access, place, false, None);
        }
    }

    /// An instruction passes a wait gate.
    fn passes(&mut self, tile: usize, by: By, pushed: u64, insn: Insn) {
        let t = &mut self.tiles[tile];
        if let Some(core) = by.core {
            t.units.learn_push(by.thread, core.index(), pushed);
        }
        if t.units.behind_wait(by.thread, insn) {
            t.words.streams(t.units.threads[by.thread].clock());
        }
        match insn {
            Insn::Wait(wait) => t.units.wait(by.thread, wait),
            Insn::Sync(insn) => t.units.synchronize(by.thread, insn),
            Insn::Scalar(insn) => self.scalar(tile, by, insn),
            Insn::Config(insn) => {
                t.units.starts(by.thread, Unit::Config);
                if let insn::ConfigOp::Streamwrcfg(_) = insn {
                    t.words.streams(t.units.threads[by.thread].clock());
                }
                self.configures(tile, by);
            }
            Insn::Packer(_) => {
                let stamp = t.units.starts(by.thread, Unit::Packer);
                t.registers.uses(Rows::Packer, by.access(stamp));
                self.effects(tile, by, stamp, PACKER);
            }
            Insn::Unpacker(insn) => {
                let number = match insn {
                    UnpackerOp::Unpacr(insn) => insn.which_unpacker(),
                    UnpackerOp::UnpacrNop(insn) => insn.which_unpacker(),
                };
                t.units.enqueue(by.thread, (number & 1) as u8, by.at);
            }
            Insn::Mover(_) => {
                t.units.threads[by.thread].moment().tell(&mut t.units.mover);
                t.units.starts(by.thread, Unit::Mover);
            }
            Insn::Matrix(MatrixOp::Zeroacc(insn)) => {
                if let (Some(blocks), false) = (cleared(insn), insn.revert()) {
                    self.uses_dst(tile, by, ProbedUnit::Matrix, blocks, true);
                }
            }
            Insn::Matrix(_) => t.units.frees(by.thread),
            Insn::Misc(MiscOp::Setdvalid(_)) => t.units.gives(by.thread),
            _ => {}
        }
    }

    /// What an instruction of the packer or of the scalar unit has done.
    fn effects(&mut self, tile: usize, by: By, stamp: Stamp, whose: usize) {
        let t = &mut self.tiles[tile];
        let doing = std::mem::take(&mut t.doing[whose]);
        let reader = tile * 8 + 5 + by.thread;
        for &done in &doing {
            let Tile { units, words, .. } = &mut self.tiles[tile];
            let thread = &mut units.threads[by.thread];
            match done {
                Done::Stores { addr } if Register::of(addr) == Register::Stream => {
                    words.tell(words::stands_for(addr), &thread.release());
                }
                Done::Reads { addr, .. } if words.has(addr & !3) => words.learn(addr & !3, reader, thread.clock()),
                Done::Writes { addr, .. } if words.has(addr & !3) => words.tell(addr & !3, &thread.release()),
                _ => {}
            }
            let moment = units.threads[by.thread].moment();
            let knows = |other: Stamp| other.part == stamp.part || moment.knows(other);
            match done {
                Done::Reads { addr, len } => self.l1(tile, (addr, len, false), by.access(stamp), &knows),
                Done::Writes { addr, len } => self.l1(tile, (addr, len, true), by.access(stamp), &knows),
                Done::Stores { .. } | Done::Configures { .. } => {}
            }
        }
    }

    fn configures(&mut self, tile: usize, by: By) {
        for done in std::mem::take(&mut self.tiles[tile].doing[GATE]) {
            if let Done::Configures { word, mask, value } = done {
                let Tile { xy, units, registers, .. } = &mut self.tiles[tile];
                let thread = &units.threads[by.thread];
                let change = Change { access: by.access(thread.access()), owner: by.thread as u8, mask, value };
                let found = registers.change(word, change, &|stamp| thread.knows(stamp));
                let place = registers::place(*xy);
                self.unit_race(found, change.access, place);
            }
        }
    }

    // ---- the scalar unit ----

    fn scalar(&mut self, tile: usize, by: By, insn: ScalarOp) {
        let Tile { units, words, doing, .. } = &mut self.tiles[tile];
        let reader = tile * 8 + 5 + by.thread;
        let stamp = units.starts(by.thread, Unit::Scalar);
        match insn {
            ScalarOp::Flushdma(insn) => units.flushed(by.thread, insn.condition_mask()),
            ScalarOp::Loadreg(insn) => {
                let addr = MMIO + (insn.addr_lo() << 2);
                if Register::of(addr) == Register::Stream {
                    words.learn(words::stands_for(addr), reader, units.threads[by.thread].clock());
                }
            }
            ScalarOp::Atincget(_) | ScalarOp::Atincgetptr(_) | ScalarOp::Atcas(_) | ScalarOp::Atswap(_) => {
                for &done in &doing[SCALAR] {
                    let Done::Writes { addr, len } = done else { continue };
                    for word in (addr & !3..addr + len).step_by(4) {
                        words.add(word);
                        words.learn(word, reader, units.threads[by.thread].clock());
                    }
                }
            }
            _ => {}
        }
        self.effects(tile, by, stamp, SCALAR);
        self.configures(tile, by);
    }

    // ---- Dst ----

    fn uses_dst(&mut self, tile: usize, by: By, unit: ProbedUnit, blocks: [u64; 2], writes: bool) {
        let Tile { xy, units, registers, starting, .. } = &mut self.tiles[tile];
        let thread = by.thread;
        let (unit, row) = match unit {
            ProbedUnit::Packer => (Unit::Packer, None),
            ProbedUnit::Unpacker(number) => (Unit::Unpacker(number), None),
            ProbedUnit::Vector => (Unit::Vector, None),
            _ => (Unit::Matrix, Some(Rows::Matrix)),
        };
        let (stamp, moment) = match (unit, *starting) {
            (Unit::Unpacker(number), Some((_, passed))) => match units.job(number, passed) {
                Some(job) => (job.stamp, job.moment.clone()),
                None => return,
            },
            // Its instruction has passed in this cycle.
            (Unit::Packer, _) => (units.latest(unit), units.threads[thread].moment()),
            _ => (units.starts(thread, unit), units.threads[thread].moment()),
        };
        let access = by.access(stamp);
        if let Some(row) = row {
            registers.uses(row, access);
        }
        let found = registers.dst.uses(unit, blocks, writes, access, &|stamp| moment.knows(stamp));
        let place = Where { space: Space::Registers, tile: *xy, bytes: registers::BLOCK_BYTES };
        self.unit_race(found, access, place);
    }

    // ---- cores ----

    /// A core loads a register of the coprocessor, or of a queue between cores.
    pub(super) fn load_coprocessor(&mut self, tile: usize, c: usize, addr: u32) {
        let Self { tiles, parts, .. } = self;
        let Tile { xy, cores, units, .. } = &mut tiles[tile];
        units.prepare(*xy, parts);
        let own = c.checked_sub(2);
        match (Region::decode(addr), own) {
            (Region::PcBuf { index, .. }, None) => {
                // It waits until the thread's core waits, too, and nothing of the thread is left.
                let other = cores[2 + index].moment(cores[2 + index].arrived);
                cores[2 + index].release();
                other.tell(&mut cores[c].clock);
                units.drained(index, &mut cores[c].clock);
            }
            (Region::PcBuf { offset, .. }, Some(thread)) => match offset & !3 {
                pc_buf::QUEUE => units.take(PC_BUFFER, thread, &mut cores[c].clock),
                pc_buf::TENSIX_SYNC => units.drained(thread, &mut cores[c].clock),
                offset if offset >= pc_buf::SEMAPHORE => {
                    units.semaphore_seen(((offset - pc_buf::SEMAPHORE) / 4) as usize, c, &mut cores[c].clock);
                }
                _ => {}
            },
            (Region::Mailbox { peer, query: false }, _) => units.take(peer.index(), c, &mut cores[c].clock),
            (Region::Gpr { word }, _) => {
                let thread = own.unwrap_or((word / GPRS) as usize).min(THREADS - 1);
                units.threads[thread].release().tell(&mut cores[c].clock);
                [Unit::Scalar, Unit::Config].into_iter().for_each(|unit| units.over(unit, &mut cores[c].clock));
            }
            // Who has set it is not looked for.
            (Region::Config { .. }, _) => {
                for thread in &mut units.threads {
                    thread.release().tell(&mut cores[c].clock);
                }
            }
            (Region::Tdma { .. }, _) => {
                [Unit::Mover, Unit::Packer].into_iter().for_each(|unit| units.over(unit, &mut cores[c].clock));
            }
            _ => {}
        }
    }

    /// A core stores to one, or pushes.
    pub(super) fn store_coprocessor(&mut self, tile: usize, c: usize, (at, pc): (u64, u32), (addr, value): (u32, u32)) {
        let Self { tiles, parts, .. } = self;
        let Tile { xy, cores, units, registers, .. } = &mut tiles[tile];
        units.prepare(*xy, parts);
        let core = &mut cores[c];
        core.release();
        match Region::decode(addr) {
            Region::InstructionBuffer { .. } => self.pushes(tile, c, at),
            Region::PcBuf { index, .. } if c < 2 => units.send(PC_BUFFER, index, core.moment(core.arrived)),
            Region::PcBuf { offset, .. } if offset >= pc_buf::SEMAPHORE => {
                let moment = core.moment(core.arrived);
                units.semaphore_stored(((offset - pc_buf::SEMAPHORE) / 4) as usize, value, &moment);
            }
            Region::Mailbox { peer, .. } => units.send(c, peer.index(), core.moment(core.arrived)),
            Region::Tdma { .. } => {
                core.moment(core.stores.count).tell(&mut units.mover);
            }
            Region::Config { word } => {
                let access = Access {
                    stamp: core.access(),
                    pc,
                    by: c as u8,
                    started: core.own.count + 1,
                    at,
                    ..Access::default()
                };
                let owner = c.checked_sub(2).unwrap_or(THREADS) as u8;
                let change = Change { access, owner, mask: u32::MAX, value };
                let word = u16::try_from(word).unwrap_or(u16::MAX);
                let found = registers.change(word, change, &|stamp| core.knows(stamp));
                let place = registers::place(*xy);
                self.unit_race(found, access, place);
            }
            _ => {}
        }
    }

    /// A core pushes an instruction.
    pub(super) fn pushes(&mut self, tile: usize, c: usize, at: u64) {
        let Tile { cores, units, .. } = &mut self.tiles[tile];
        let core = &mut cores[c];
        core.release();
        // Its stores to L1 are taken to come before.
        let moment: Moment = core.moment(core.stores.count);
        units.pushed(c, at, moment);
    }

    /// A core stores to a register of an NIU.
    pub(super) fn sets_request(
        &mut self,
        tile: usize,
        c: usize,
        (at, pc): (u64, u32),
        register: (usize, u32),
        value: u32,
    ) {
        let Tile { xy, cores, registers, .. } = &mut self.tiles[tile];
        let core = &cores[c];
        let access =
            Access { stamp: core.access(), pc, by: c as u8, started: core.own.count + 1, at, ..Access::default() };
        let found = registers.set_request(register, value, access, &|stamp| core.knows(stamp));
        let place = registers::place(*xy);
        self.unit_race(found, access, place);
    }
}

/// The blocks of Dst that `ZEROACC` clears, if it clears a half or all (ZEROACC.md).
fn cleared(insn: insn::Zeroacc) -> Option<[u64; 2]> {
    match (insn.mode(), insn.imm10() & 1) {
        (2, 0) => Some([u64::MAX, 0]),
        (2, _) => Some([0, u64::MAX]),
        (3, _) => Some([u64::MAX; 2]),
        _ => None,
    }
}
