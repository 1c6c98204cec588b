//! State of the coprocessor that lasts from one kernel to the next: whether a kernel uses what a
//! kernel of an earlier program has set.
//!
//! By instruction, with what the instruction table says of its operands: general-purpose
//! registers, semaphores, the templates of `MOP`, recorded instructions of `REPLAY`, address
//! modifiers and the formats of unpackers, matrix unit and packer (pages of the instructions under
//! WormholeB0/TensixTile/TensixCoprocessor), and the counters by which instructions address
//! ([`super::counters`]). What firmware sets belongs to nobody, and what nobody has set has its
//! value after reset: neither is told.
//!
//! Of Dst blocks of eight rows: what a unit writes, and what the packer reads or the matrix unit
//! adds to. `ZEROACC` may clear any of it, so that nothing is said of what lies there then. What
//! the vector unit loads is not followed: no event has its rows.

use super::counters::{self, Adc, Rwc};
use crate::catalogue::protocol;
use crate::shadow::observer::CheckObserver;
use crate::shadow::report::Actor;
use crate::shadow::tile::Tile;
use std::collections::BTreeMap;
use std::fmt;
use tilework_abi::tensix::insn::{self, Insn, Kind, Row, SyncOp, Unit, WaitOp};
use tilework_abi::tensix::{CFG_BASE, GPR_BASE, MOP_CFG_BASE, PC_BUF_BASE, Processor, cfg, pc_buf};
use tilework_sim::Unit as SimUnit;

/// General-purpose registers of a thread (WormholeB0 ScalarUnit.md).
const GPRS: u32 = 64;
/// Registers that the widest instructions of the scalar and configuration unit take at once.
const WIDE: u32 = 4;
/// Words of a bank of `Config` (public `cfg_defines.h`: `CFG_STATE_SIZE` is 56, of four words).
const BANK: u32 = 56 * 4;
/// Instructions that a thread can record (WormholeB0 REPLAY.md).
const SLOTS: u32 = 32;
/// Semaphores of a tile (SyncUnit.md).
const SEMAPHORES: u32 = 8;
/// The words of the formats of SrcA, SrcB and Dst.
const FORMATS: [u32; 2] = [cfg::ALU_FORMAT_SPEC_REG_SRCA_VAL.word as u32, cfg::ALU_FORMAT_SPEC_REG0_SRCA.word as u32];

/// Rows of a block of Dst.
const ROWS: u32 = 8;

/// A part of the state.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Part {
    /// A general-purpose register of a thread.
    Gpr(u8, u32),
    /// A word of a thread's configuration.
    Thread(u8, u32),
    /// A word of the configuration that all threads share, in either bank.
    Config(u32),
    /// A semaphore.
    Semaphore(u32),
    /// The templates of a thread's `MOP`.
    Mop(u8),
    /// A recorded instruction of a thread.
    Slot(u8, u32),
    /// A counter of a thread by which the matrix and the vector unit address.
    Rwc(u8, Rwc),
    /// A counter of a thread by which an unpacker or the packer addresses.
    Adc(u8, Adc),
    /// Rows of Dst.
    Dst(u32),
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let field = |f: &mut fmt::Formatter<'_>, space, word| match cfg::fields_of(space, word).next() {
            Some((field, 0)) => write!(f, "{}", field.name),
            Some((field, copy)) => write!(f, "{} of copy {copy}", field.name),
            None => write!(f, "word {word} of the configuration"),
        };
        match *self {
            Self::Gpr(thread, number) => write!(f, "GPR {number} of thread {thread}"),
            Self::Thread(thread, word) => {
                field(f, cfg::Space::Thread, word)?;
                write!(f, " of thread {thread}")
            }
            Self::Config(word) => field(f, cfg::Space::Bank, word),
            Self::Semaphore(number) => write!(f, "semaphore {number} of the coprocessor"),
            Self::Mop(thread) => write!(f, "the MOP template of thread {thread}"),
            Self::Slot(thread, slot) => write!(f, "recorded instruction {slot} of thread {thread}"),
            Self::Rwc(thread, counter) => write!(f, "{counter} of thread {thread}"),
            Self::Adc(thread, counter) => write!(f, "{counter} of thread {thread}"),
            Self::Dst(block) => write!(f, "rows {} to {} of Dst", ROWS * block, ROWS * block + ROWS - 1),
        }
    }
}

/// What is done to a part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Access {
    Sets,
    Uses,
}

/// Which kernel has set each part of a tile's coprocessor: the number of the launch, and where.
#[derive(Clone, Debug, Default)]
pub(crate) struct State {
    parts: BTreeMap<Part, (u64, Actor)>,
    /// By thread: its last instruction of the matrix unit adds to what is in Dst.
    adds: [bool; 3],
}

/// What an event says of Dst.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Used {
    pub(crate) thread: u8,
    pub(crate) unit: SimUnit,
    pub(crate) blocks: [u64; 2],
    pub(crate) writes: bool,
}

impl CheckObserver {
    /// The coprocessor executes an instruction, which `core` has pushed.
    #[cold]
    pub(crate) fn executed(&mut self, tile: &mut Tile, core: Processor, actor: Actor, (thread, word): (u8, u32)) {
        let insn = Insn::decode(word);
        if let (Insn::Matrix(insn), Some(adds)) = (insn, tile.state.adds.get_mut(usize::from(thread))) {
            *adds = counters::adds_to_dst(insn);
            if matches!(insn, insn::MatrixOp::Zeroacc(zero) if !zero.revert()) {
                tile.state.parts.retain(|part, _| !matches!(part, Part::Dst(_)));
            }
        }
        let mut parts = Vec::new();
        of_instruction(thread, word, &mut |part, access| parts.push((part, access)));
        counters::of_instruction(thread, insn, &mut |part, access| parts.push((part, access)));
        let name = insn.row().map_or("an instruction", |row| row.mnemonic);
        // What an instruction sets it has used before.
        parts.sort_by_key(|(_, access)| *access == Access::Sets);
        for (part, access) in parts {
            self.touch(tile, core, actor, (part, access), name);
        }
    }

    /// A unit uses blocks of Dst for a thread.
    pub(crate) fn used_dst(&mut self, tile: &mut Tile, core: Processor, actor: Actor, used: Used) {
        let Used { thread, unit, blocks, writes } = used;
        let adds = unit == SimUnit::Matrix && tile.state.adds.get(usize::from(thread)) == Some(&true);
        let name = match unit {
            SimUnit::Matrix => "the matrix unit",
            SimUnit::Packer => "the packer",
            _ => "a unit",
        };
        for block in (0..2 * u64::BITS).filter(|block| blocks[(block / 64) as usize] >> (block % 64) & 1 != 0) {
            let accesses = [(!writes || adds, Access::Uses), (writes, Access::Sets)];
            for (_, access) in accesses.into_iter().filter(|(does, _)| *does) {
                self.touch(tile, core, actor, (Part::Dst(block), access), name);
            }
        }
    }

    /// A core stores to a register of the coprocessor.
    #[inline]
    pub(crate) fn set_by_store(&mut self, tile: &mut Tile, core: Processor, actor: Actor, addr: u32) {
        if addr >= MOP_CFG_BASE
            && self.follows_state
            && let Some((part, access)) = of_store(core, addr)
        {
            self.touch(tile, core, actor, (part, access), "a store");
        }
    }

    fn touch(
        &mut self,
        tile: &mut Tile,
        core: Processor,
        actor: Actor,
        (part, access): (Part, Access),
        name: &'static str,
    ) {
        let launch = tile.launch.as_ref().filter(|_| tile.in_kernel(core, actor)).map(|launch| launch.number);
        match (access, launch) {
            (Access::Sets, Some(launch)) => drop(tile.state.parts.insert(part, (launch, actor))),
            (Access::Sets, None) => drop(tile.state.parts.remove(&part)),
            (Access::Uses, Some(launch)) => {
                let Some(&(_, setter)) = tile.state.parts.get(&part).filter(|(by, _)| *by != launch) else { return };
                self.reports.report(&protocol::TENSIX_STATE_LEFT, actor, None, || {
                    let what = format!("{name} uses {part}, which a kernel of an earlier launch has set");
                    (what, Some(setter.place(None)))
                });
            }
            (Access::Uses, None) => {}
        }
    }
}

/// What a store of a core sets or uses.
fn of_store(core: Processor, addr: u32) -> Option<(Part, Access)> {
    let thread = core.index().checked_sub(Processor::Trisc0.index()).map(|thread| thread as u8);
    let word = |base: u32| addr.wrapping_sub(base) / 4;
    let own = PC_BUF_BASE + pc_buf::SEMAPHORE..PC_BUF_BASE + pc_buf::SEMAPHORE + 4 * SEMAPHORES;
    match (addr, thread) {
        (CFG_BASE.., _) if word(CFG_BASE) < 3 * BANK => Some((Part::Config(word(CFG_BASE) % BANK), Access::Sets)),
        (CFG_BASE.., _) => None,
        (at, Some(_)) if own.contains(&at) => Some((Part::Semaphore((at - own.start) / 4), Access::Uses)),
        (GPR_BASE.., Some(thread)) if word(GPR_BASE) < GPRS => Some((Part::Gpr(thread, word(GPR_BASE)), Access::Sets)),
        (GPR_BASE.., None) if word(GPR_BASE) < 3 * GPRS => {
            let (thread, number) = (word(GPR_BASE) / GPRS, word(GPR_BASE) % GPRS);
            Some((Part::Gpr(thread as u8, number), Access::Sets))
        }
        (GPR_BASE.., _) => None,
        (_, Some(thread)) if word(MOP_CFG_BASE) < 16 => Some((Part::Mop(thread), Access::Sets)),
        _ => None,
    }
}

/// What an instruction of a thread sets and uses.
fn of_instruction(thread: u8, word: u32, touch: &mut impl FnMut(Part, Access)) {
    let insn = Insn::decode(word);
    let Some(row) = insn.row() else { return };
    registers(thread, word, row, touch);
    match insn {
        Insn::Sync(SyncOp::Seminit(insn)) => semaphores(insn.semaphore_mask(), Access::Sets, touch),
        Insn::Sync(SyncOp::Sempost(insn)) => semaphores(insn.semaphore_mask(), Access::Uses, touch),
        Insn::Sync(SyncOp::Semget(insn)) => semaphores(insn.semaphore_mask(), Access::Uses, touch),
        Insn::Wait(WaitOp::Semwait(insn)) => semaphores(insn.semaphore_mask(), Access::Uses, touch),
        Insn::Config(insn) => configures(thread, insn, touch),
        Insn::FrontEnd(insn::FrontEndOp::Mop(_)) => touch(Part::Mop(thread), Access::Uses),
        Insn::FrontEnd(insn::FrontEndOp::Replay(insn)) => {
            let count = if insn.count() == 0 { SLOTS } else { insn.count() };
            let access = if insn.load() { Access::Sets } else { Access::Uses };
            (0..count).for_each(|i| touch(Part::Slot(thread, (insn.index() + i) % SLOTS), access));
        }
        Insn::Unpacker(insn::UnpackerOp::Unpacr(insn)) => {
            let tile = cfg::THCON_SEC_REG0_TILEDESCRIPTOR.copy(insn.which_unpacker() as usize & 1);
            touch(Part::Config(tile.word.into()), Access::Uses);
        }
        Insn::Packer(insn::PackerOp::Pacr(_)) => {
            touch(Part::Config(cfg::THCON_SEC_REG1_OUT_DATA_FORMAT.word.into()), Access::Uses);
        }
        _ => {}
    }
    let zeroes = matches!(insn, Insn::Matrix(insn::MatrixOp::Zeroacc(_)));
    // What clears Dst only steps counters.
    if let Some(field) = row.operands(word).find(|field| field.name == "addr_mod" && !zeroes) {
        modifiers(thread, row.unit, field.get(word), touch);
    }
}

/// The general-purpose registers among the operands.
fn registers(thread: u8, word: u32, row: &Row, touch: &mut impl FnMut(Part, Access)) {
    for field in row.operands(word) {
        let number = match field.kind {
            Kind::Gpr => field.get(word),
            Kind::GprHalf => field.get(word) / 2,
            _ => continue,
        };
        match field.name {
            // How many are set depends on other operands: whatever may be counts as set.
            "result_reg" | "result_half_reg" | "in_out_reg" => {
                (number..GPRS.min(number + WIDE)).for_each(|number| touch(Part::Gpr(thread, number), Access::Sets));
            }
            _ => touch(Part::Gpr(thread, number), Access::Uses),
        }
    }
}

fn semaphores(mask: u32, access: Access, touch: &mut impl FnMut(Part, Access)) {
    (0..SEMAPHORES).filter(|i| mask >> i & 1 != 0).for_each(|i| touch(Part::Semaphore(i), access));
}

fn configures(thread: u8, insn: insn::ConfigOp, touch: &mut impl FnMut(Part, Access)) {
    use insn::ConfigOp;
    let mut sets = |first: u32, words: u32| {
        (first..first + words).for_each(|word| touch(Part::Config(word), Access::Sets));
    };
    match insn {
        ConfigOp::Wrcfg(insn) => sets(insn.cfg_index(), if insn.is_128bit() { WIDE } else { 1 }),
        ConfigOp::Rmwcib0(insn) => sets(insn.index4(), 1),
        ConfigOp::Rmwcib1(insn) => sets(insn.index4(), 1),
        ConfigOp::Rmwcib2(insn) => sets(insn.index4(), 1),
        ConfigOp::Rmwcib3(insn) => sets(insn.index4(), 1),
        ConfigOp::Streamwrcfg(insn) => sets(insn.cfg_index(), 1),
        ConfigOp::Cfgshiftmask(insn) => sets(insn.cfg_index(), 1),
        ConfigOp::Setc16(insn) => touch(Part::Thread(thread, insn.cfg_index()), Access::Sets),
        ConfigOp::Rdcfg(insn) => touch(Part::Config(insn.cfg_index()), Access::Uses),
    }
}

/// The address modifiers and formats that an instruction of the matrix unit, vector unit or packer
/// uses.
fn modifiers(thread: u8, unit: Unit, section: u32, touch: &mut impl FnMut(Part, Access)) {
    let (first, more): (&[cfg::Field], &[u32]) = match unit {
        Unit::Matrix => (&[cfg::ADDR_MOD_AB_SEC_SRCAINCR, cfg::ADDR_MOD_DST_SEC_DESTINCR], &FORMATS),
        Unit::Vector => (&[cfg::ADDR_MOD_DST_SEC_DESTINCR], &[]),
        Unit::Packer => (&[cfg::ADDR_MOD_PACK_SEC_YSRCINCR], &[]),
        _ => return,
    };
    for field in first {
        if section < u32::from(field.copies) {
            touch(Part::Thread(thread, u32::from(field.word) + section * u32::from(field.stride)), Access::Uses);
        }
    }
    more.iter().for_each(|&word| touch(Part::Config(word), Access::Uses));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(word: u32) -> Vec<(Part, Access)> {
        let mut parts = Vec::new();
        of_instruction(1, word, &mut |part, access| parts.push((part, access)));
        parts
    }

    #[test]
    fn operands_say_what_is_set_and_used() {
        let word = insn::Sempost::build().semaphore_mask(0b101).word();
        assert_eq!(of(word), [(Part::Semaphore(0), Access::Uses), (Part::Semaphore(2), Access::Uses)]);
        let word = insn::Setc16::build().cfg_index(13).word();
        assert_eq!(of(word), [(Part::Thread(1, 13), Access::Sets)]);
        let word = insn::Wrcfg::build().input_reg(5).cfg_index(70).word();
        assert_eq!(of(word), [(Part::Gpr(1, 5), Access::Uses), (Part::Config(70), Access::Sets)]);
        let word = insn::Replay::build().index(30).count(3).word();
        let slots = [30, 31, 0].map(|slot| (Part::Slot(1, slot), Access::Uses));
        assert_eq!(of(word), slots);
        let uses = of(insn::Elwadd::build().addr_mod(2).word());
        assert!(uses.contains(&(Part::Thread(1, 14), Access::Uses)), "{uses:?}");
        assert!(uses.contains(&(Part::Config(1), Access::Uses)), "{uses:?}");
    }

    #[test]
    fn stores_are_those_of_the_cores_own_thread() {
        let of = |core, addr| of_store(core, addr);
        assert_eq!(of(Processor::Trisc1, GPR_BASE + 8), Some((Part::Gpr(1, 2), Access::Sets)));
        assert_eq!(of(Processor::Brisc, GPR_BASE + 4 * 66), Some((Part::Gpr(1, 2), Access::Sets)));
        assert_eq!(of(Processor::Trisc2, MOP_CFG_BASE + 4), Some((Part::Mop(2), Access::Sets)));
        let semaphore = PC_BUF_BASE + pc_buf::SEMAPHORE + 12;
        assert_eq!(of(Processor::Trisc0, semaphore), Some((Part::Semaphore(3), Access::Uses)));
        assert_eq!(of(Processor::Brisc, CFG_BASE + 4 * (BANK + 7)), Some((Part::Config(7), Access::Sets)));
        assert_eq!(Part::Thread(1, 13).to_string(), "ADDR_MOD_AB_SEC_SrcAIncr of copy 1 of thread 1");
    }
}
