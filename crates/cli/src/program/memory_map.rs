//! `tilework show PROGRAM --memory`: L1 and DRAM from their first byte to their last, with who has
//! what and what is free.

use super::overview::{ProgramOverview, RangeView};
use crate::board::worker_map;
use crate::board_option::BoardLayout;
use serde::Serialize;
use std::io::{Result, Write};
use std::ops::Range;
use tilework_abi::l1::WORKER;
use tilework_runtime::MemorySpace;
use tilework_runtime::memory::AllocatorConfig;

/// The memory of a program on a board. The fields are those of the JSON form, in their order.
#[derive(Serialize)]
pub struct MemoryOverview {
    file: String,
    program: String,
    board: &'static str,
    memory: Vec<MemoryView>,
}

/// A kind of memory. All banks look alike.
#[derive(Serialize)]
struct MemoryView {
    /// `l1` or `dram`.
    name: &'static str,
    /// Workers, or logical DRAM banks.
    banks: usize,
    /// The space that buffers and circular buffers can have.
    start: u64,
    /// One past its last byte.
    end: u64,
    /// Bytes of it that are free.
    free: u64,
    largest_free_block: u64,
    /// The part of the free bytes that is not in the largest free block.
    fragmentation: f64,
    /// The whole bank, by address. Kernels of different roles may have the same places, each on its
    /// cores.
    ranges: Vec<MapRange>,
}

/// A range of a bank.
#[derive(Serialize)]
struct MapRange {
    start: u64,
    /// One past the last byte.
    end: u64,
    bytes: u64,
    /// What has it; nothing if it is free.
    owner: Option<String>,
}

impl MapRange {
    fn new(range: Range<u64>, owner: Option<String>) -> Self {
        Self { start: range.start, end: range.end, bytes: range.end - range.start, owner }
    }
}

impl MemoryOverview {
    /// The memory of a program that was found to fit `board`.
    pub fn new(of: ProgramOverview, at: BoardLayout) -> Self {
        let board = at.board;
        let space = MemorySpace::with(&AllocatorConfig::of_workers(board, &WORKER, at.workers()));
        let data = space.l1().range();
        let data = data.start.get().into()..data.end.get().into();
        let config = u64::from(WORKER.kernel_config.get());
        let config = config..config + u64::from(WORKER.kernel_config_size);
        // What is in these two spaces is the program's; the rest is the firmware's.
        let own = |range: &Range<u64>| range.start != config.start && range.start != data.start;
        let firmware = worker_map().into_iter().map(|(start, end, what)| (u64::from(start)..u64::from(end), what));
        let firmware = firmware.filter(|(range, _)| own(range)).collect();
        let l1 =
            MemoryView::new("l1", space.l1_banks().len(), data.clone(), std::slice::from_ref(&config), firmware, of.l1);
        let dram = space.dram().range();
        let dram = dram.start.get()..dram.end.get();
        let flags = vec![(0..dram.start, "flags of a host's barrier".to_owned())];
        let dram = MemoryView::new("dram", board.dram().banks().len(), dram, &[], flags, of.dram);
        let ProgramOverview { file, program, board, .. } = of;
        Self { file, program, board, memory: vec![l1, dram] }
    }

    /// The maps for people.
    pub fn text(&self, out: &mut dyn Write) -> Result<()> {
        writeln!(out, "{} on a {}", self.program, self.board)?;
        self.memory.iter().try_for_each(|memory| memory.text(out))
    }
}

impl MemoryView {
    /// A memory whose `space` buffers can have: what is `reserved`, what the program has, and what
    /// is free in `space` and in the `other` spaces of programs.
    fn new(
        name: &'static str,
        banks: usize,
        space: Range<u64>,
        other: &[Range<u64>],
        reserved: Vec<(Range<u64>, String)>,
        program: Vec<RangeView>,
    ) -> Self {
        let free = free(&space, &program);
        let lengths = || free.iter().map(|hole| hole.end - hole.start);
        let (sum, largest) = (lengths().sum(), lengths().max().unwrap_or(0));
        let holes = other.iter().flat_map(|space| self::free(space, &program)).chain(free.iter().cloned());
        let mut ranges: Vec<MapRange> = holes.map(|hole| MapRange::new(hole, None)).collect();
        ranges.extend(reserved.into_iter().map(|(range, what)| MapRange::new(range, Some(what))));
        ranges.extend(program.into_iter().map(|row| MapRange::new(row.start..row.end, Some(row.what))));
        ranges.sort_by_key(|range| range.start);
        Self {
            name,
            banks,
            start: space.start,
            end: space.end,
            free: sum,
            largest_free_block: largest,
            fragmentation: if sum == 0 { 0.0 } else { 1.0 - largest as f64 / sum as f64 },
            ranges,
        }
    }

    fn text(&self, out: &mut dyn Write) -> Result<()> {
        let Self { banks, start, end, free, largest_free_block, .. } = self;
        let of = match self.name {
            "l1" => format!("L1 of each of {banks} workers"),
            _ => format!("DRAM, each of {banks} banks"),
        };
        let size = end - start;
        writeln!(
            out,
            "\n{of}: {size} bytes for buffers, {free} free, {largest_free_block} of them in one piece\n        \
             from          to       bytes"
        )?;
        for MapRange { start, end, bytes, owner } in &self.ranges {
            let owner = owner.as_deref().unwrap_or("free");
            writeln!(out, "  {start:#010x}  {end:#010x}  {bytes:>10}  {owner}")?;
        }
        Ok(())
    }
}

/// What of `space` none of `rows` has; these are ordered by start.
fn free(space: &Range<u64>, rows: &[RangeView]) -> Vec<Range<u64>> {
    let (mut at, mut holes) = (space.start, Vec::new());
    let inside = rows.iter().filter(|row| row.start < space.end && space.start < row.end);
    for (start, end) in inside.map(|row| (row.start, row.end)).chain([(space.end, space.end)]) {
        if at < start {
            holes.push(at..start);
        }
        at = at.max(end);
    }
    holes
}
