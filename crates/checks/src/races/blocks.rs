//! The last accesses to a large memory that the NoC moves data to and from in pages: DRAM, and the
//! host's.
//!
//! Most requests go over blocks of 512 bytes as a whole, so that a block has one cell for all its
//! words until something accesses a part of it. Then it has lines, as a [`Shadow`](super::Shadow)
//! has, until it is written as a whole again. What is found is the same.

use super::clock::Stamp;
use super::shadow::{ALL, Access, Cell, Conflict, LINE, Line};
use crate::numbers::ByNumber;

/// Bytes of a block, of a page.
const BLOCK: u64 = 512;
const PAGE: u64 = 4096;
/// Lines of a block, blocks of a page.
const LINES: usize = (BLOCK / LINE) as usize;
const BLOCKS: usize = (PAGE / BLOCK) as usize;

#[derive(Clone, Debug, Default)]
struct Block {
    /// What all words have, unless it is divided.
    even: Cell,
    is_divided: bool,
    /// They stay when they do not count any more.
    lines: Option<Box<[Line; LINES]>>,
}

impl Block {
    /// Its lines by themselves.
    fn divide(&mut self) -> &mut [Line; LINES] {
        let Self { even, is_divided, lines } = self;
        let lines = lines.get_or_insert_with(Box::default);
        if !std::mem::replace(is_divided, true) {
            lines.iter_mut().for_each(|line| line.set_whole(even));
        }
        lines
    }

    /// An access to bytes `from..to`: the first conflict, and the byte where it is or where the
    /// access enters its line.
    fn access(
        &mut self,
        (from, to): (u64, u64),
        access: Access,
        writes: bool,
        ordered: &impl Fn(Stamp) -> bool,
    ) -> Option<(u64, (Access, bool))> {
        let is_whole = to - from == BLOCK;
        if is_whole && !self.is_divided {
            let access = Access { mask: ALL, ..access };
            let found = if writes { self.even.write(access, ordered) } else { self.even.read(access, ordered) };
            return found.map(|found| (from, found));
        }
        let mut first = None;
        for (start, line) in (0..BLOCK).step_by(LINE as usize).zip(self.divide()) {
            let (begin, end) = (from.max(start), to.min(start + LINE));
            if begin < end {
                let part = (begin - start, end - start);
                let found = if writes { line.write(part, access, ordered) } else { line.read(part, access, ordered) };
                first = first.or(found.map(|found| (begin, found)));
            }
        }
        if is_whole && writes {
            // The lines have conflicted with all that was.
            self.even.write(Access { mask: ALL, ..access }, &|_| true);
            self.is_divided = false;
        }
        first
    }
}

/// What was last done to each word of a large memory.
#[derive(Clone, Debug, Default)]
pub(super) struct Blocks {
    pages: ByNumber<u64, Box<[Block; BLOCKS]>>,
}

impl Blocks {
    /// Records a write of `len` bytes at `addr`. Gives the first earlier access that `ordered` does
    /// not say comes before.
    pub(super) fn write(
        &mut self,
        addr: u64,
        len: u64,
        access: Access,
        ordered: &impl Fn(Stamp) -> bool,
    ) -> Option<Conflict> {
        self.access(addr, len, access, true, ordered)
    }

    /// Records a read, likewise.
    pub(super) fn read(
        &mut self,
        addr: u64,
        len: u64,
        access: Access,
        ordered: &impl Fn(Stamp) -> bool,
    ) -> Option<Conflict> {
        self.access(addr, len, access, false, ordered)
    }

    fn access(
        &mut self,
        addr: u64,
        len: u64,
        access: Access,
        writes: bool,
        ordered: &impl Fn(Stamp) -> bool,
    ) -> Option<Conflict> {
        let (mut at, end) = (addr, addr.saturating_add(len));
        let mut first = None;
        while at < end {
            let page = self.pages.entry(at / PAGE).or_default();
            let page_end = end.min((at / PAGE + 1) * PAGE);
            while at < page_end {
                let base = at / BLOCK * BLOCK;
                let to = page_end.min(base + BLOCK);
                let found = page[(at % PAGE / BLOCK) as usize].access((at - base, to - base), access, writes, ordered);
                first = first.or(found.map(|(place, (earlier, earlier_writes))| Conflict {
                    earlier,
                    earlier_writes,
                    later_writes: writes,
                    addr: base + place,
                }));
                at = to;
            }
        }
        first
    }
}

#[cfg(test)]
mod tests {
    use super::super::shadow::Shadow;
    use super::*;
    use tilework_rng::SplitMix64;

    #[test]
    fn blocks_find_what_lines_find() {
        let mut random = SplitMix64::new(11);
        let mut below = |end: u64| random.bits() % end;
        let mut conflicts = 0;
        for round in 0..200 {
            let (mut blocks, mut lines) = (Blocks::default(), Shadow::default());
            // Some programs go over whole blocks only, some over lines, some over anything.
            let grain = [512, 64, 4, 1][round % 4];
            for count in 1..150 {
                let addr = 0x8_0000 + below(8192 / grain) * grain;
                let len = match below(4) {
                    0 => 512,
                    1 => grain * (1 + below(3)),
                    2 => 512 * (1 + below(12)),
                    _ => 64 * (1 + below(10)),
                };
                let part = below(4) as u32 + 1;
                let access = Access { stamp: Stamp { part, count }, mask: ALL, at: count.into(), ..Access::default() };
                let known = below(count.into()) as u32;
                let ordered = |stamp: Stamp| stamp.part == part || stamp.count <= known;
                let found = match below(2) {
                    0 => (blocks.write(addr, len, access, &ordered), lines.write(addr, len, access, &ordered)),
                    _ => (blocks.read(addr, len, access, &ordered), lines.read(addr, len, access, &ordered)),
                };
                assert_eq!(found.0, found.1, "round {round}, access {count}: {len} bytes at {addr:#x}");
                conflicts += usize::from(found.0.is_some());
            }
        }
        assert!(conflicts > 5000, "{conflicts}");
    }
}
