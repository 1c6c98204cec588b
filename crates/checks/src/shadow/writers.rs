//! Who has last written each unit of DRAM.
//!
//! Most writes fill whole pages: the writer is kept once for all units that it has written, and
//! each unit has its number.

use crate::finding::Place;
use crate::numbers::ByNumber;

/// Bytes for which one writer is kept: the alignment of what is written to DRAM.
const UNIT: u64 = tilework_abi::DRAM_ALIGN as u64;
/// Units of a page.
const UNITS: usize = 64;

/// A write of which some units are left.
#[derive(Clone, Copy, Debug)]
struct Writer {
    launch: u64,
    place: Place,
    /// So many; none: its number may be given again.
    units: u32,
}

/// The last writers of the units of a bank.
#[derive(Clone, Debug, Default)]
pub(super) struct Writers {
    /// Of each unit the number of its writer, plus one. Asked by number, never walked.
    pages: ByNumber<u64, Box<[u32; UNITS]>>,
    writers: Vec<Writer>,
    free: Vec<u32>,
}

impl Writers {
    /// A launch writes `len` bytes at `addr`. Gives the writer of the first unit that all belongs
    /// to this write and was last written by another tile of the same launch.
    pub(super) fn write(&mut self, addr: u64, len: u64, launch: u64, place: Place) -> Option<Place> {
        let (mut unit, end) = (addr / UNIT, addr.saturating_add(len));
        let whole = addr.div_ceil(UNIT)..end / UNIT;
        let last = end.div_ceil(UNIT);
        if unit == last {
            return None;
        }
        // The length of a packet has 32 bits.
        let units = u32::try_from(last - unit).unwrap_or(u32::MAX);
        let number = self.add(Writer { launch, place, units });
        let mut other = None;
        while unit < last {
            let page = self.pages.entry(unit / UNITS as u64).or_insert_with(|| Box::new([0; UNITS]));
            let stop = last.min((unit / UNITS as u64 + 1) * UNITS as u64);
            let first = (unit % UNITS as u64) as usize;
            for (unit, slot) in (unit..stop).zip(&mut page[first..]) {
                let before = std::mem::replace(slot, number + 1);
                let Some(before) = before.checked_sub(1) else { continue };
                let writer = &mut self.writers[before as usize];
                let is_other = writer.launch == launch && writer.place.tile != place.tile;
                if is_other && whole.contains(&unit) {
                    other = other.or(Some(writer.place));
                }
                writer.units -= 1;
                if writer.units == 0 {
                    self.free.push(before);
                }
            }
            unit = stop;
        }
        other
    }

    fn add(&mut self, writer: Writer) -> u32 {
        if let Some(free) = self.free.pop() {
            self.writers[free as usize] = writer;
            return free;
        }
        self.writers.push(writer);
        // Each has a unit, of which there are fewer than 2^32.
        (self.writers.len() - 1) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Agent;
    use std::collections::BTreeMap;
    use tilework_abi::noc::NocXy;
    use tilework_rng::SplitMix64;

    fn place(tile: u8, cycle: u64) -> Place {
        Place { tile: NocXy::new(tile, 2), agent: Agent::NocWrite(0), code: None, cycle, target: None }
    }

    #[test]
    fn writers_are_those_of_a_table_by_unit() {
        let mut random = SplitMix64::new(7);
        let mut below = |end: u64| random.bits() % end;
        let (mut writers, mut table) = (Writers::default(), BTreeMap::new());
        let mut found = 0;
        for cycle in 0..5000 {
            let (addr, len) = (below(64) * UNIT + below(3) * 16, below(5) * UNIT + below(2) * 32);
            let (launch, by) = (cycle / 100, place(below(3) as u8, cycle));
            let mut other = None;
            for unit in addr / UNIT..(addr + len).div_ceil(UNIT) {
                let before: Option<(u64, Place)> = table.insert(unit, (launch, by));
                let whole = addr <= unit * UNIT && (unit + 1) * UNIT <= addr + len;
                let before = before.filter(|(of, place)| *of == launch && place.tile != by.tile && whole);
                other = other.or(before.map(|(_, place)| place));
            }
            assert_eq!(writers.write(addr, len, launch, by), other, "cycle {cycle}");
            found += usize::from(other.is_some());
        }
        assert!(found > 500, "{found}");
        assert!(writers.writers.len() <= 70, "numbers are given again: {}", writers.writers.len());
    }
}
