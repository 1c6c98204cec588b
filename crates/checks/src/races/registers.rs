//! Registers that several agents use: the coprocessor's configuration, rows of Dst, and fields of
//! requests of an NIU.
//!
//! Of the configuration two things are looked for: agents that set the same bits to different
//! values without order, and changes of what a unit works with (`WORKS_WITH`) while it may still do
//! so. A TRISC and its own thread are one agent here: hardware holds back what would overtake
//! (BackendConfiguration.md, "RISCV writes to `Config`"). Matrix and vector unit are one agent for
//! Dst, because hardware orders them.

use super::clock::Stamp;
use super::report::Where;
use super::shadow::{Access, Conflict};
use super::units::Unit;
use crate::Space;
use std::collections::BTreeMap;
use tilework_abi::noc::{CMD_BUF_STRIDE, CMD_BUFS, NIU0_BASE, NIU1_BASE, NocXy, init};
use tilework_abi::tensix::cfg::{self, Field};
use tilework_abi::tensix::{CFG_BASE, DST_BASE};

/// Blocks of Dst: eight rows each.
const BLOCKS: usize = 128;
/// Bytes of a block: eight rows of 16 data of 16 bits.
pub(super) const BLOCK_BYTES: u64 = 256;
/// Words of a bank of the configuration (`CFG_STATE_SIZE` is 56).
const BANK: u16 = 56 * 4;

/// Fields of a request: words up to the one that starts it.
const FIELDS: u32 = init::CMD_CTRL / 4 + 1;
/// From here on a word exists once, not in each bank (`GLOBAL_CFGREG_BASE_ADDR32`).
const GLOBAL: u16 = 180;

/// Who works with a field of the configuration.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Rows {
    Packer,
    Matrix,
}

/// Fields that public kernels change only behind a wait for the unit.
const WORKS_WITH: [(Rows, Field); 4] = [
    (Rows::Packer, cfg::THCON_SEC_REG1_OUT_DATA_FORMAT),
    (Rows::Packer, cfg::STACC_RELU_APPLYRELU),
    (Rows::Packer, cfg::DEST_TARGET_REG_CFG_PACK_SEC_OFFSET),
    (Rows::Matrix, cfg::ALU_ACC_CTRL_INT8_MATH_ENABLED),
];

/// A change of bits of a word.
#[derive(Clone, Copy, Debug)]
pub(super) struct Change {
    pub access: Access,
    /// The thread with its core, or another core.
    pub owner: u8,
    pub mask: u32,
    /// The whole word.
    pub value: u32,
}

/// The registers of a tile.
#[derive(Clone, Debug, Default)]
pub(super) struct Registers {
    config: BTreeMap<u16, Vec<Change>>,
    /// The last use of each of [`Rows`].
    used: [Access; 2],
    pub dst: Dst,
    /// By NoC, initiator and field of a request: who set it last, and to what.
    requests: Vec<(Access, u32)>,
}

impl Rows {
    fn index(self) -> usize {
        match self {
            Self::Packer => 0,
            Self::Matrix => 1,
        }
    }
}

impl Registers {
    /// A unit works with its configuration.
    pub(super) fn uses(&mut self, rows: Rows, access: Access) {
        self.used[rows.index()] = access;
    }

    /// A word of the configuration changes. Gives an earlier change or use that is not known.
    pub(super) fn change(&mut self, word: u16, change: Change, knows: &impl Fn(Stamp) -> bool) -> Option<Conflict> {
        let word = normal(word);
        let changes = self.config.entry(word).or_default();
        let addr = config_addr(word).into();
        let conflict = |earlier: Access, earlier_writes| Conflict { earlier, earlier_writes, later_writes: true, addr };
        let differs = |old: &Change| old.mask & change.mask & (old.value ^ change.value);
        let races = |old: &&Change| differs(old) != 0 && old.owner != change.owner && !knows(old.access.stamp);
        let first = changes.iter().find(races).map(|old| conflict(old.access, true));
        // Bits that stay as they are do not matter to whoever works with them.
        let known = changes.iter().fold(0, |all, old| all | old.mask);
        let changed = changes.iter().fold(0, |all, old| all | differs(old)) | change.mask & !known;
        changes.iter_mut().for_each(|old| old.mask &= !change.mask);
        changes.retain(|old| old.mask != 0);
        changes.push(change);
        let works = WORKS_WITH.iter().filter(|(_, field)| field.word == word % BANK && field.mask() & changed != 0);
        let busy = works.map(|(rows, _)| self.used[rows.index()]).find(|used| used.exists() && !knows(used.stamp));
        first.or(busy.map(|used| conflict(used, false)))
    }

    /// A core sets a field of a request, by the NoC and its offset. Equal values do not matter, but
    /// for starting a request.
    pub(super) fn set_request(
        &mut self,
        (noc, offset): (usize, u32),
        value: u32,
        access: Access,
        knows: &impl Fn(Stamp) -> bool,
    ) -> Option<Conflict> {
        let (initiator, field) = (offset / CMD_BUF_STRIDE, offset % CMD_BUF_STRIDE);
        if initiator >= CMD_BUFS || field > init::CMD_CTRL {
            return None;
        }
        self.requests.resize(2 * (CMD_BUFS * FIELDS) as usize, Default::default());
        let at = (noc & 1) * (CMD_BUFS * FIELDS) as usize + (initiator * FIELDS + field / 4) as usize;
        let (last, old) = std::mem::replace(self.requests.get_mut(at)?, (access, value));
        let matters = old != value || field == init::CMD_CTRL;
        let races = last.exists() && last.by != access.by && matters && !knows(last.stamp);
        let addr = u64::from(NIU0_BASE + (noc as u32 & 1) * (NIU1_BASE - NIU0_BASE) + offset);
        races.then_some(Conflict { earlier: last, earlier_writes: true, later_writes: true, addr })
    }
}

/// The last uses of a block of Dst.
#[derive(Clone, Copy, Debug, Default)]
struct Block {
    /// Matrix and vector unit write.
    math: [Access; 2],
    /// The packer reads.
    pack: Access,
    /// An unpacker writes.
    unpack: Access,
}

/// Rows of Dst.
#[derive(Clone, Debug, Default)]
pub(super) struct Dst(Vec<Block>);

impl Dst {
    /// A unit uses blocks. Gives an earlier use by another unit that is not known.
    pub(super) fn uses(
        &mut self,
        unit: Unit,
        blocks: [u64; 2],
        writes: bool,
        access: Access,
        knows: &impl Fn(Stamp) -> bool,
    ) -> Option<Conflict> {
        self.0.resize(BLOCKS, Block::default());
        let mut first = None;
        let has = |block: usize| blocks[block / 64] >> (block % 64) & 1 != 0;
        for (number, block) in self.0.iter_mut().enumerate().filter(|(number, _)| has(*number)) {
            let Block { math, pack, unpack } = block;
            let others: &[(Access, bool)] = match unit {
                Unit::Packer => &[(math[0], true), (math[1], true), (*unpack, true)],
                Unit::Unpacker(_) => &[(math[0], true), (math[1], true), (*pack, false)],
                _ => &[(*pack, false), (*unpack, true)],
            };
            let races = |(other, _): &&(Access, bool)| other.exists() && !knows(other.stamp);
            if let (None, Some(&(earlier, earlier_writes))) = (&first, others.iter().find(races)) {
                let addr = u64::from(DST_BASE) + number as u64 * BLOCK_BYTES;
                first = Some(Conflict { earlier, earlier_writes, later_writes: writes, addr });
            }
            match unit {
                Unit::Packer => *pack = access,
                Unit::Unpacker(_) => *unpack = access,
                Unit::Vector => math[1] = access,
                _ => math[0] = access,
            }
        }
        first
    }
}

/// The address of a word of the configuration.
pub(super) fn config_addr(word: u16) -> u32 {
    CFG_BASE + 4 * u32::from(word)
}

/// The word that stands for another one: both views of a word that exists once, and of the view
/// that writes both banks the first bank.
fn normal(word: u16) -> u16 {
    let in_bank = word % BANK;
    if word / BANK > 1 || in_bank >= GLOBAL { in_bank } else { word }
}

/// The place of a register.
pub(super) fn place(tile: NocXy) -> Where {
    Where { space: Space::Registers, tile, bytes: 4 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(part: u32) -> Access {
        Access { stamp: Stamp { part, count: 1 }, by: part as u8, ..Access::default() }
    }

    fn change(owner: u8, mask: u32, value: u32) -> Change {
        Change { access: access(owner.into()), owner, mask, value }
    }

    fn never(_: Stamp) -> bool {
        false
    }

    #[test]
    fn bits_that_two_set_to_different_values_conflict() {
        let mut registers = Registers::default();
        assert_eq!(registers.change(9, change(1, 0xFF, 0x12), &never), None);
        assert_eq!(registers.change(9, change(2, 0xFF00, 0x3412), &never), None, "other bits");
        assert_eq!(registers.change(9, change(2, 0xFF, 0x3412), &never), None, "the same value");
        assert_eq!(registers.change(9, change(2, 0xFF, 0), &never), None, "the same agent");
        let conflict = registers.change(9, change(1, 0xF, 1), &never).map(|found| found.earlier.by);
        assert_eq!(conflict, Some(2));
        assert_eq!(registers.change(9, change(2, 0xF, 2), &|_| true), None);
        assert_eq!(normal(9 + BANK), 9 + BANK, "banks are apart");
        assert_eq!((normal(GLOBAL + BANK), normal(9 + 2 * BANK)), (GLOBAL, 9));
    }

    #[test]
    fn what_a_unit_works_with_changes_only_when_it_is_known_to_be_done() {
        let mut registers = Registers::default();
        let (rows, field) = WORKS_WITH[0];
        let set = |registers: &mut Registers, value, knows: fn(Stamp) -> bool| {
            registers.change(field.word, change(2, field.mask(), field.put(0, value)), &knows)
        };
        assert_eq!(set(&mut registers, 1, never), None, "not used yet");
        registers.uses(rows, access(9));
        assert_eq!(set(&mut registers, 1, never), None, "the same value");
        assert_eq!(set(&mut registers, 2, |_| true), None);
        assert_eq!(set(&mut registers, 3, never).map(|found| found.earlier.by), Some(9));
    }

    #[test]
    fn rows_of_dst_have_one_user_at_a_time() {
        let mut dst = Dst::default();
        assert_eq!(dst.uses(Unit::Matrix, [1, 0], true, access(1), &never), None);
        assert_eq!(dst.uses(Unit::Vector, [1, 0], true, access(2), &never), None, "hardware orders these");
        assert_eq!(dst.uses(Unit::Packer, [2, 0], false, access(3), &never), None, "other rows");
        let conflict = dst.uses(Unit::Packer, [3, 0], false, access(3), &never);
        assert_eq!(conflict.map(|found| (found.earlier.by, found.addr)), Some((1, u64::from(DST_BASE))));
        assert!(dst.uses(Unit::Matrix, [0, 1], true, access(1), &never).is_none());
        assert!(dst.uses(Unit::Unpacker(0), [0, 1], true, access(4), &never).is_some());
    }

    #[test]
    fn a_request_is_of_one_core() {
        let mut registers = Registers::default();
        let mut set = |by, field, value| registers.set_request((1, CMD_BUF_STRIDE + field), value, access(by), &never);
        assert_eq!(set(0, init::CTRL, 5), None);
        assert_eq!(set(1, init::CTRL, 5), None, "the same value");
        assert!(set(0, init::CTRL, 6).is_some());
        assert_eq!(set(0, init::CMD_CTRL, 1), None);
        assert!(set(1, init::CMD_CTRL, 1).is_some(), "starts what the other has set");
        assert_eq!(set(1, CMD_BUF_STRIDE - 4, 0), None, "no field");
    }
}
