//! The fabric of a tile: L1 with the code decoded from it, streams, debug registers, and the
//! sleepers with what they watch (`watches.rs`).
//!
//! The fabric starts nothing by itself. Side effects of a register access that concern the rest of
//! the tile are kept here until [`super::Tile`] handles them, at the end of the turn or event.

use super::code::{CodeBook, TileCode};
use super::debug::DebugRegs;
use super::speculation::StoreLog;
use super::stale_code::StaleCode;
use super::streams::{self, Streams};
use super::watches::{CoreSet, Watches};
use crate::noc::{Outgoing, Start};
use crate::probe::{Agent, Recorder, Unit, Wants, What};
use crate::tensix::Origin;
use crate::{Fault, FaultClass};
use std::ops::Range;
use std::sync::Arc;
use tilework_abi::tensix as map;
use tilework_riscv::{CODE_PAGE_BYTES, CodePage, Cycle, Width};

/// Bytes of L1 per flag.
const LINE: u32 = 64;
/// The line holds code that some core has decoded.
const CODE: u8 = 1;
/// A parked core sleeps on a word of the line.
const WATCHED: u8 = 2;
/// An observer of the chip wants to see the stores of cores to the line.
const OBSERVED: u8 = 4;
/// The source of a write that may still leave is in the line.
const SOURCE: u8 = 8;

const PAGE: &str = "BlackholeA0/TensixTile/BabyRISCV/README.md, memory map";

/// The memory, registers and side effects that all agents of a tile share.
#[repr(C)]
pub(super) struct Fabric {
    /// Cores that must wake before the access that was just refused.
    pub(super) wake: CoreSet,
    /// Cores are late: they run through the same interpreter whether anybody observes or not.
    pub(super) is_late: bool,
    /// What observers of the chip will be told.
    pub(super) recorder: Option<Box<Recorder>>,
    /// NIU requests started since the tile last looked.
    pub(super) started: Vec<(u8, Start)>,
    /// When the soft reset register was written.
    pub(super) reset_changed: Option<Cycle>,
    /// The override of the PC buffers, which the coprocessor has written itself: it takes effect
    /// after the coprocessor's step.
    pub(super) pc_buf_override: Option<u32>,
    pub(super) l1: Box<[u8; map::L1_SIZE as usize]>,
    /// [`CODE`], [`WATCHED`], [`OBSERVED`] and [`SOURCE`] per 64 bytes of L1.
    flags: Box<[u8; (map::L1_SIZE / LINE) as usize]>,
    /// Counts changes of decoded code.
    pub(super) code_generation: u64,
    /// The cycle of the coprocessor's step.
    pub(super) step: Cycle,
    /// The stores of speculative execution.
    pub(super) log: StoreLog,
    pub(super) watches: Watches,
    code: TileCode,
    /// By NoC: a write whose source is being read.
    outgoing: [Option<Outgoing>; 2],
    /// The unit of the coprocessor that acts, since when and for whom, if somebody observes.
    pub(super) acting: Option<(Cycle, Unit, Origin)>,
    pub(super) streams: Streams,
    pub(super) debug: DebugRegs,
    /// Code that was written after cores had fetched it, and whose instruction caches may have it
    /// as it was; kept while somebody observes accesses.
    pub(super) stale_code: StaleCode,
}

impl Clone for Fabric {
    /// L1 is large, and mostly never written.
    fn clone(&self) -> Self {
        let l1 = crate::sparse::copy_of(&self.l1[..]).into_boxed_slice().try_into();
        Self {
            l1: l1.unwrap_or_else(|_| unreachable!("a copy is as long as L1")),
            flags: self.flags.clone(),
            code: self.code.clone(),
            code_generation: self.code_generation,
            streams: self.streams.clone(),
            debug: self.debug.clone(),
            watches: self.watches.clone(),
            wake: self.wake,
            started: self.started.clone(),
            reset_changed: self.reset_changed,
            pc_buf_override: self.pc_buf_override,
            log: self.log.clone(),
            recorder: self.recorder.clone(),
            is_late: self.is_late,
            stale_code: self.stale_code.clone(),
            outgoing: self.outgoing.clone(),
            step: self.step,
            acting: self.acting,
        }
    }
}

impl Fabric {
    pub(super) fn new(book: Arc<CodeBook>) -> Self {
        Self {
            l1: zeros(),
            flags: zeros(),
            code: TileCode::new(book),
            code_generation: 0,
            streams: Streams::new(),
            debug: DebugRegs::new(),
            watches: Watches::default(),
            wake: 0,
            started: Vec::new(),
            reset_changed: None,
            pc_buf_override: None,
            log: StoreLog::default(),
            recorder: None,
            is_late: false,
            outgoing: [None, None],
            step: 0,
            stale_code: StaleCode::default(),
            acting: None,
        }
    }

    /// Whether an access had a side effect that the tile has to handle.
    #[inline]
    pub(super) fn has_side_effects(&self) -> bool {
        !self.started.is_empty() || self.reset_changed.is_some() || self.pc_buf_override.is_some()
    }

    // L1

    /// The bytes at `addr`, which the caller has checked to be in L1.
    #[inline(always)]
    pub(super) fn l1_load(&self, addr: u32, width: Width) -> u32 {
        get(&self.l1[..], addr as usize, width)
    }

    /// The flags of the line around `addr`.
    #[inline]
    pub(super) fn line_flags(&self, addr: u32) -> u8 {
        self.flags[(addr / LINE) as usize]
    }

    /// The flags of all lines of a span.
    #[inline]
    fn flags_of(&self, addr: u32, len: u32) -> u8 {
        self.flags[lines(&(addr..addr + len))].iter().fold(0, |all, flags| all | flags)
    }

    /// A span of `len` bytes at `addr` of the tile, if it lies in L1, in lines that hold no code,
    /// that nobody watches, and of which nothing leaves.
    #[inline]
    pub(super) fn unmarked(&self, addr: u64, len: usize) -> Option<u32> {
        let (addr, len) = (u32::try_from(addr).ok()?, u32::try_from(len).ok()?);
        let fits = addr.checked_add(len)? <= map::L1_SIZE;
        (fits && self.flags_of(addr, len) & (CODE | WATCHED | SOURCE) == 0).then_some(addr)
    }

    /// Writes L1 without checking for sleepers.
    #[inline(always)]
    pub(super) fn l1_store(&mut self, addr: u32, width: Width, value: u32) {
        put(&mut self.l1[..], addr as usize, width, value);
        if self.line_flags(addr) & CODE != 0 {
            self.drop_code(addr, width.bytes());
        }
    }

    /// Writes a span of L1, which the caller has checked, without checking for sleepers.
    pub(super) fn l1_write(&mut self, addr: u32, data: &[u8]) {
        self.l1[addr as usize..addr as usize + data.len()].copy_from_slice(data);
        if self.flags_of(addr, data.len() as u32) & CODE != 0 {
            self.drop_code(addr, data.len() as u32);
        }
    }

    /// As [`Fabric::l1_write`], at cycle `at`, by the NIU of NoC `noc`, which may change the source
    /// of a write that leaves.
    pub(super) fn l1_write_by_niu(&mut self, at: Cycle, noc: u8, addr: u32, data: &[u8]) {
        if let Some(recorder) = &mut self.recorder {
            recorder.written(at, Agent::Niu(noc), addr..addr + data.len() as u32);
        }
        let span = addr as usize..addr as usize + data.len();
        let flags = self.flags_of(addr, data.len() as u32);
        // A program that runs again mostly sends the code that is there.
        if flags & CODE != 0 && !self.records_accesses() && self.l1[span.clone()] == *data {
            return;
        }
        self.l1[span].copy_from_slice(data);
        if flags & (CODE | SOURCE) != 0 {
            self.drop_code(addr, data.len() as u32);
            self.changed(at, addr, data.len() as u32);
        }
    }

    #[cold]
    #[inline(never)]
    pub(super) fn drop_code(&mut self, addr: u32, len: u32) {
        let mut changed = false;
        for line in addr / LINE..(addr + len).div_ceil(LINE) {
            if self.flags[line as usize] & CODE != 0 {
                let page = line * LINE / CODE_PAGE_BYTES;
                self.code.drop_page(page as usize);
                let first = page * (CODE_PAGE_BYTES / LINE);
                for line in first..first + CODE_PAGE_BYTES / LINE {
                    self.flags[line as usize] &= !CODE;
                }
                changed = true;
            }
        }
        self.code_generation += u64::from(changed);
        if changed && self.records_accesses() {
            self.stale_code.changed(addr, len);
        }
    }

    /// The decoded page with `pc`.
    pub(super) fn code(&mut self, pc: u32) -> Result<Arc<CodePage>, Fault> {
        let number = (pc / CODE_PAGE_BYTES) as usize;
        if let Some(page) = self.code.get(number) {
            return Ok(page.clone());
        }
        let Some(bytes) = self.l1.as_chunks().0.get(number) else {
            return Err(Fault::new(FaultClass::UndefinedBehavior, "instructions can only be fetched from L1", PAGE)
                .at_addr(u64::from(pc)));
        };
        let page = self.code.decode(number, bytes);
        let first = pc / CODE_PAGE_BYTES * (CODE_PAGE_BYTES / LINE);
        for line in first..first + CODE_PAGE_BYTES / LINE {
            self.flags[line as usize] |= CODE;
        }
        Ok(page)
    }

    // Sources of writes

    /// A write begins to leave by the NIU of NoC `noc`; the one before has left.
    pub(super) fn leaves(&mut self, noc: usize, outgoing: Outgoing) {
        self.has_left(noc);
        self.mark_source(outgoing.source());
        self.outgoing[noc] = Some(outgoing);
    }

    fn mark_source(&mut self, (addr, len): (u32, u32)) {
        let lines = (addr / LINE) as usize..(addr + len).div_ceil(LINE) as usize;
        self.flags[lines].iter_mut().for_each(|flags| *flags |= SOURCE);
    }

    /// The write that leaves by the NIU of NoC `noc` has left, or somebody has seen it counted.
    pub(super) fn has_left(&mut self, noc: usize) {
        let Some(outgoing) = self.outgoing[noc].take() else { return };
        let (addr, len) = outgoing.source();
        let lines = (addr / LINE) as usize..(addr + len).div_ceil(LINE) as usize;
        self.flags[lines].iter_mut().for_each(|flags| *flags &= !SOURCE);
        if let Some(other) = &self.outgoing[1 - noc] {
            self.mark_source(other.source());
        }
    }

    /// Whether a write that begins to leave by the NIU of NoC `noc` has not been seen counted.
    #[inline]
    pub(super) fn is_leaving(&self, noc: usize) -> bool {
        self.outgoing[noc].is_some()
    }

    /// Whether bytes of L1 may be the source of a write that leaves.
    #[inline]
    pub(super) fn is_source(&self, addr: u32, len: u32) -> bool {
        self.flags_of(addr, len) & SOURCE != 0
    }

    /// Bytes of L1 have changed at cycle `at`.
    #[inline]
    pub(super) fn changed(&mut self, at: Cycle, addr: u32, len: u32) {
        if self.is_source(addr, len) {
            self.source_changed(at, addr, len);
        }
    }

    #[cold]
    fn source_changed(&mut self, at: Cycle, addr: u32, len: u32) {
        for noc in 0..self.outgoing.len() {
            match &self.outgoing[noc] {
                Some(outgoing) if at < outgoing.end() => outgoing.change(at, addr, len, &self.l1[..]),
                _ => self.has_left(noc),
            }
        }
    }

    // Observers

    /// Records an atomic of NoC `noc` that counts past the width of its word.
    pub(super) fn observe_atomic(&mut self, at: Cycle, noc: u8, wrapped: Option<(u32, u32, u32)>) {
        if let (Some((addr, value, added)), Some(recorder)) = (wrapped, &mut self.recorder)
            && recorder.wants(Wants::ACCESSES)
        {
            recorder.record(at, Agent::Niu(noc), 0, What::Wrapped { addr, value, added });
        }
    }

    /// Observers want to see the stores of cores to these addresses of L1.
    pub(super) fn observe(&mut self, addrs: Range<u32>) {
        let lines = addrs.start / LINE..addrs.end.min(map::L1_SIZE).div_ceil(LINE);
        lines.for_each(|line| self.flags[line as usize] |= OBSERVED);
    }

    /// Whether they want to see stores to the line around `addr`.
    pub(super) fn is_observed(&self, addr: u32) -> bool {
        self.line_flags(addr) & OBSERVED != 0
    }

    /// Whether what orders the coprocessor's units is recorded.
    #[inline]
    pub(super) fn watches_coprocessor(&self) -> bool {
        self.recorder.as_ref().is_some_and(|recorder| recorder.watches())
    }

    /// Whether all accesses of cores are recorded.
    #[inline]
    pub(super) fn records_accesses(&self) -> bool {
        self.recorder.as_ref().is_some_and(|recorder| recorder.wants(Wants::ACCESSES))
    }

    /// Whether the cores run through the interpreter that sees accesses, and through the one that
    /// counts instructions.
    #[inline]
    pub(super) fn probes(&self) -> (bool, bool) {
        let Some(recorder) = &self.recorder else { return (self.is_late, false) };
        let records = recorder.wants(Wants::ACCESSES) || recorder.has_loads();
        (records || self.is_late, recorder.wants(Wants::COUNTS))
    }

    // Registers of overlay streams. Not inlined into the run loop of the cores, which would have
    // fewer registers for all other instructions.

    /// Stores a word to a register of an overlay stream if nobody sleeps on such registers and
    /// nobody records stores to registers. False for anything else, and for what is a fault.
    #[inline(never)]
    pub(super) fn quick_stream_store(&mut self, addr: u32, value: u32) -> bool {
        let Some(offset) = streams::offset_of(addr) else { return false };
        let quick = !self.watches.is_stream_watched(offset) && self.recorder.is_none();
        quick && self.streams.write(offset, value).is_ok()
    }

    /// The word in a register of an overlay stream; `None` for anything else, and for what is a
    /// fault.
    #[inline(never)]
    pub(super) fn quick_stream_load(&self, addr: u32) -> Option<u32> {
        self.streams.read(streams::offset_of(addr)?).ok()
    }

    // Sleepers

    /// Puts a core or the coprocessor to sleep, also, on these bytes.
    pub(super) fn watch(&mut self, sleeper: usize, span: Range<u32>) {
        if self.watches.add(sleeper, span.clone()) {
            self.flags[lines(&span)].iter_mut().for_each(|flags| *flags |= WATCHED);
        }
    }

    /// The whole line around `addr`, if that is in L1, or the word.
    pub(super) fn around(addr: u32) -> Range<u32> {
        let (size, first) = if addr < map::L1_SIZE { (LINE, addr & !(LINE - 1)) } else { (4, addr) };
        first..first + size
    }

    /// Ends the sleep of a core or the coprocessor.
    pub(super) fn unwatch(&mut self, sleeper: usize) {
        let flags = &mut self.flags;
        self.watches.remove(sleeper, |watches, span| {
            for line in lines(&span) {
                let first = line as u32 * LINE;
                if watches.on_l1(first..first + LINE) == 0 {
                    flags[line] &= !WATCHED;
                }
            }
        });
    }

    /// The sleepers on a span of L1.
    pub(super) fn sleepers_on_l1(&self, addr: u32, len: u32) -> CoreSet {
        if self.flags_of(addr, len) & WATCHED == 0 { 0 } else { self.watches.on_l1(addr..addr + len) }
    }

    /// The sleepers on anything that a write of `len` bytes at `addr` changes.
    #[inline]
    pub(super) fn sleepers_on(&self, addr: u64, len: u32) -> CoreSet {
        if self.watches.has_sleepers() { self.sleepers_on_known(addr, len) } else { 0 }
    }

    fn sleepers_on_known(&self, addr: u64, len: u32) -> CoreSet {
        match u32::try_from(addr) {
            Ok(addr) if u64::from(addr) + u64::from(len) <= u64::from(map::L1_SIZE) => self.sleepers_on_l1(addr, len),
            Ok(addr) => self.watches.on_registers(addr, len),
            Err(_) => 0,
        }
    }
}

/// The numbers of the lines of a span of L1.
fn lines(span: &Range<u32>) -> Range<usize> {
    (span.start / LINE) as usize..span.end.div_ceil(LINE) as usize
}

/// An array of zeros, allocated without passing through the stack. The compiler knows its length,
/// so that most accesses need no further bounds check.
fn zeros<const N: usize>() -> Box<[u8; N]> {
    vec![0; N].into_boxed_slice().try_into().unwrap_or_else(|_| unreachable!("the vector has N elements"))
}

/// The value at `at` of a memory. Inlined for each width: a store or load of known width is one
/// instruction.
#[inline(always)]
pub(super) fn get(memory: &[u8], at: usize, width: Width) -> u32 {
    match width {
        Width::Word => u32::from_le_bytes(memory[at..at + 4].try_into().expect("4 bytes")),
        Width::Half => u32::from(u16::from_le_bytes(memory[at..at + 2].try_into().expect("2 bytes"))),
        Width::Byte => u32::from(memory[at]),
    }
}

/// Writes the low part of `value` at `at` of a memory.
#[inline(always)]
pub(super) fn put(memory: &mut [u8], at: usize, width: Width, value: u32) {
    let bytes = value.to_le_bytes();
    match width {
        Width::Word => memory[at..at + 4].copy_from_slice(&bytes),
        Width::Half => memory[at..at + 2].copy_from_slice(&bytes[..2]),
        Width::Byte => memory[at] = bytes[0],
    }
}
