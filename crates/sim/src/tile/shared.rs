//! What the five cores and the NoC share in a tile: L1, decoded code, registers, and who sleeps on what.

use super::ahead::StoreLog;
use super::code::{CodeBook, TileCode};
use super::coprocessor::{INSTRN_BUF_STATUS, Lent, own_debug_registers};
use super::debug::{self, DebugRegs};
use super::port::Port;
use super::streams::Streams;
use crate::noc::{Niu, Start};
use crate::tensix::Tensix;
use crate::{Fault, FaultClass, timing};
use std::sync::Arc;
use tilework_abi::noc as noc_regs;
use tilework_abi::stream;
use tilework_abi::tensix::{self as map, Processor};
use tilework_riscv::{Access, CODE_PAGE_BYTES, CodePage, Cycle, Load, Refuse, Width};

/// Bytes of L1 per flag.
const LINE: u32 = 64;
/// The line holds code that some core has decoded.
const CODE: u8 = 1;
/// A parked core sleeps on a word of the line.
const WATCHED: u8 = 2;

/// Kinds of registers, as a set: what a parked core sleeps on besides L1, and what a write touches.
pub(super) mod class {
    /// A set of classes.
    pub type Set = u16;
    /// Overlay streams.
    pub const STREAM: Set = 1;
    /// NIU 0 and, one bit up, NIU 1, apart from [`NIU_SERVED`].
    pub const NIU: Set = 2;
    /// Mailboxes, PC buffers, semaphores and whatever else belongs to the coprocessor.
    pub const TENSIX: Set = 8;
    /// Tile control and debug.
    pub const DEBUG: Set = 16;
    /// Local RAMs, seen from outside.
    pub const LOCAL: Set = 32;
    /// Tensix semaphores, which change more often than the coprocessor's other registers.
    pub const SEMAPHORE: Set = 64;
    /// Both.
    pub const ANY_NIU: Set = NIU | NIU << 1;
    /// The counters of NIU 0 and, one bit up, NIU 1 that requests of others move: a core that waits for an answer sleeps through them.
    pub const NIU_SERVED: Set = 128;
}

/// First address of the local RAMs' slow views.
const LOCAL_SLOW_FIRST: u32 = map::LOCAL_SLOW[0];

const PAGE: &str = "BlackholeA0/TensixTile/BabyRISCV/README.md, memory map";

/// A bit set of cores, by [`Processor::index`], and the coprocessor.
pub(super) type CoreSet = u8;
/// The coprocessor among the sleepers.
pub(super) const COPROCESSOR: usize = 5;
/// Everyone who can sleep.
const SLEEPERS: usize = 6;

/// The set without this member.
pub(super) fn mask_out(set: CoreSet, member: usize) -> CoreSet {
    set & !(1 << member)
}

/// The shared part of a tile.
pub(super) struct Shared {
    pub(super) l1: Box<[u8; map::L1_SIZE as usize]>,
    /// [`CODE`] and [`WATCHED`] per 64 bytes of L1.
    flags: Box<[u8; (map::L1_SIZE / LINE) as usize]>,
    code: TileCode,
    /// Counts changes of decoded code.
    pub(super) code_generation: u64,
    /// Taken out while the core runs.
    pub(super) ports: [Option<Box<Port>>; 5],
    pub(super) streams: Streams,
    /// Taken out while the NIU handles a packet.
    pub(super) nius: [Option<Box<Niu>>; 2],
    /// Taken out while it takes a step.
    pub(super) tensix: Lent,
    /// The PC buffers' override, written by the coprocessor itself.
    pub(super) pc_buf_override: Option<u32>,
    pub(super) debug: DebugRegs,
    /// L1 lines (by number) that each sleeper sleeps on.
    watched_lines: [Vec<u32>; SLEEPERS],
    /// Register classes that each sleeper sleeps on.
    watched_classes: [class::Set; SLEEPERS],
    /// Union of the classes.
    any_class: class::Set,
    /// Who sleeps on anything.
    sleepers: CoreSet,
    /// Cores that must wake before the access that was just refused.
    pub(super) wake: CoreSet,
    /// NIU requests started since the tile last looked.
    pub(super) started: Vec<(u8, Start)>,
    /// When the soft reset register was written.
    pub(super) reset_changed: Option<Cycle>,
    /// What is needed to take stores back.
    pub(super) log: StoreLog,
}

impl Shared {
    pub(super) fn new(nius: [Niu; 2], book: Arc<CodeBook>) -> Self {
        Self {
            l1: zeros(),
            flags: zeros(),
            code: TileCode::new(book),
            code_generation: 0,
            ports: Processor::ALL.map(|p| Some(Box::new(Port::new(p.local_size())))),
            streams: Streams::new(),
            nius: nius.map(|niu| Some(Box::new(niu))),
            tensix: Lent::new(Tensix::new()),
            pc_buf_override: None,
            debug: DebugRegs::new(),
            watched_lines: Default::default(),
            watched_classes: [0; SLEEPERS],
            any_class: 0,
            sleepers: 0,
            wake: 0,
            started: Vec::new(),
            reset_changed: None,
            log: StoreLog::default(),
        }
    }

    // L1

    /// The bytes at `addr`, which the caller has checked to be in L1.
    #[inline(always)]
    pub(super) fn l1_load(&self, addr: u32, width: Width) -> u32 {
        get(&self.l1[..], addr as usize, width)
    }

    /// What hangs on the line around `addr`.
    #[inline]
    pub(super) fn line_flags(&self, addr: u32) -> u8 {
        self.flags[(addr / LINE) as usize]
    }

    /// What hangs on any line of a span.
    #[inline]
    fn flags_of(&self, addr: u32, len: u32) -> u8 {
        let lines = (addr / LINE) as usize..(addr + len).div_ceil(LINE) as usize;
        self.flags[lines].iter().fold(0, |all, flags| all | flags)
    }

    /// Writes L1 without asking who sleeps on it.
    #[inline(always)]
    pub(super) fn l1_store(&mut self, addr: u32, width: Width, value: u32) {
        put(&mut self.l1[..], addr as usize, width, value);
        if self.line_flags(addr) & CODE != 0 {
            self.drop_code(addr, width.bytes());
        }
    }

    /// Writes a span of L1, which the caller has checked, without asking who sleeps on it.
    pub(super) fn l1_write(&mut self, addr: u32, data: &[u8]) {
        self.l1[addr as usize..addr as usize + data.len()].copy_from_slice(data);
        if self.flags_of(addr, data.len() as u32) & CODE != 0 {
            self.drop_code(addr, data.len() as u32);
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
    }

    /// The decoded page at `pc` (aligned to a page).
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
        for line in pc / LINE..(pc + CODE_PAGE_BYTES) / LINE {
            self.flags[line as usize] |= CODE;
        }
        Ok(page)
    }

    // Sleepers

    /// `core` goes to sleep on these addresses.
    pub(super) fn watch(&mut self, core: Processor, addrs: impl Iterator<Item = u32>) {
        let i = core.index();
        for addr in addrs {
            if addr < map::L1_SIZE {
                self.flags[(addr / LINE) as usize] |= WATCHED;
                self.watched_lines[i].push(addr / LINE);
            } else {
                self.watched_classes[i] |= class_of(addr);
            }
        }
        self.any_class |= self.watched_classes[i];
        self.sleepers |= 1 << i;
    }

    /// True when `core` sleeps on L1 around `addr`.
    pub(super) fn watches(&self, core: Processor, addr: u32) -> bool {
        self.watched_lines[core.index()].contains(&(addr / LINE))
    }

    /// The coprocessor sleeps on a word, too.
    pub(super) fn watch_for_coprocessor(&mut self, addr: u32) {
        self.sleepers |= 1 << COPROCESSOR;
        if addr < map::L1_SIZE {
            let lines = &mut self.watched_lines[COPROCESSOR];
            if !lines.contains(&(addr / LINE)) {
                lines.push(addr / LINE);
            }
            self.flags[(addr / LINE) as usize] |= WATCHED;
        } else {
            self.watched_classes[COPROCESSOR] |= class_of(addr);
            self.any_class |= class_of(addr);
        }
    }

    /// `core` no longer sleeps.
    pub(super) fn unwatch(&mut self, core: Processor) {
        self.forget_sleeper(core.index());
    }

    /// The coprocessor sleeps on nothing any more.
    pub(super) fn unwatch_coprocessor(&mut self) {
        self.forget_sleeper(COPROCESSOR);
    }

    fn forget_sleeper(&mut self, sleeper: usize) {
        self.sleepers = mask_out(self.sleepers, sleeper);
        let lines = std::mem::take(&mut self.watched_lines[sleeper]);
        for &line in &lines {
            let others = self.watched_lines.iter().any(|w| w.contains(&line));
            if !others {
                self.flags[line as usize] &= !WATCHED;
            }
        }
        let mut lines = lines;
        lines.clear();
        self.watched_lines[sleeper] = lines;
        self.watched_classes[sleeper] = 0;
        self.any_class = self.watched_classes.iter().fold(0, |all, c| all | c);
    }

    /// The cores that sleep on a span of L1.
    pub(super) fn sleepers_on_l1(&self, addr: u32, len: u32) -> CoreSet {
        if self.flags_of(addr, len) & WATCHED == 0 {
            return 0;
        }
        let lines = addr / LINE..(addr + len).div_ceil(LINE);
        let mut set = 0;
        for (i, watched) in self.watched_lines.iter().enumerate() {
            if watched.iter().any(|line| lines.contains(line)) {
                set |= 1 << i;
            }
        }
        set
    }

    /// True when somebody sleeps on something.
    #[inline]
    pub(super) fn has_sleepers(&self) -> bool {
        self.sleepers != 0
    }

    /// True when somebody sleeps on registers of these classes.
    #[inline]
    pub(super) fn is_watched(&self, classes: class::Set) -> bool {
        self.any_class & classes != 0
    }

    /// The cores that sleep on registers of these classes.
    pub(super) fn sleepers_on_class(&self, classes: class::Set) -> CoreSet {
        if self.any_class & classes == 0 {
            return 0;
        }
        let mut set = 0;
        for (i, watched) in self.watched_classes.iter().enumerate() {
            if watched & classes != 0 {
                set |= 1 << i;
            }
        }
        set
    }

    /// The cores that sleep on anything that a write of `len` bytes at `addr` changes.
    #[inline]
    pub(super) fn sleepers_on(&self, addr: u64, len: u32) -> CoreSet {
        if self.has_sleepers() { self.sleepers_on_known(addr, len) } else { 0 }
    }

    fn sleepers_on_known(&self, addr: u64, len: u32) -> CoreSet {
        match u32::try_from(addr) {
            Ok(addr) if u64::from(addr) + u64::from(len) <= u64::from(map::L1_SIZE) => self.sleepers_on_l1(addr, len),
            Ok(addr) => self.sleepers_on_class(class_of(addr)),
            Err(_) => 0,
        }
    }

    // Registers

    /// Reads a register on behalf of `core` (or of the NoC).
    pub(super) fn reg_load(
        &mut self,
        core: Option<Processor>,
        at: Cycle,
        addr: u32,
        width: Width,
    ) -> Result<Load, Refuse<Fault>> {
        let shift = 8 * (addr & 3);
        let word =
            |(value, access): (u32, Access), latency| Load { value: (value >> shift) & width.mask(), latency, access };
        match addr {
            INSTRN_BUF_STATUS => {
                let tensix = self.tensix.get_mut().ok_or_else(own_debug_registers)?;
                Ok(word((tensix.replay_fifo_status(), Access::Volatile), timing::LOAD_TILE_REG))
            }
            map::DEBUG_BASE..debug::END => {
                let read = self.debug.read(addr, at).map_err(|fault| Refuse::Fault(fault.at_addr(addr.into())))?;
                Ok(word(read, timing::LOAD_TILE_REG))
            }
            noc_regs::NIU0_BASE..stream::BASE => {
                let i = ((addr - noc_regs::NIU0_BASE) / noc_regs::NIU_SPAN) as usize;
                let niu = self.nius[i].as_mut().ok_or_else(|| Refuse::Fault(busy_niu(addr)))?;
                let read = niu.read((addr % noc_regs::NIU_SPAN) & !3, at).map_err(Refuse::Fault)?;
                Ok(word(read, timing::LOAD_TILE_REG))
            }
            stream::BASE..map::MOP_CFG_BASE => {
                let value = self.streams.read((addr & !3) - stream::BASE).map_err(Refuse::Fault)?;
                Ok(word((value, Access::Watched), timing::LOAD_TILE_REG))
            }
            _ => {
                if let Some((owner, offset)) = slow_local(addr)
                    && let Some(port) = &self.ports[owner.index()]
                    && let Some(value) = port.peek(offset, width)
                {
                    return Ok(Load { value, latency: timing::LOAD_L1, access: Access::Watched });
                }
                let core = core.ok_or_else(|| Refuse::Fault(unmapped(addr)))?;
                let load = self.tensix.load(core, addr, at)?;
                Ok(Load { value: load.value & width.mask(), ..load })
            }
        }
    }

    /// A word of an NIU that reading does not change; `None` for everything else.
    #[inline(always)]
    pub(super) fn niu_word(&self, addr: u32) -> Option<u32> {
        if !(noc_regs::NIU0_BASE..stream::BASE).contains(&addr) {
            return None;
        }
        let niu = &self.nius[((addr - noc_regs::NIU0_BASE) / noc_regs::NIU_SPAN) as usize];
        niu.as_ref()?.read_word(addr % noc_regs::NIU_SPAN)
    }

    /// Writes a field of an NIU's initiator if it is one that nobody sleeps on and that sets nothing off; false when it is anything else.
    #[inline(always)]
    pub(super) fn niu_field(&mut self, addr: u32, value: u32) -> bool {
        if !(noc_regs::NIU0_BASE..stream::BASE).contains(&addr) || self.any_class & class::ANY_NIU != 0 {
            return false;
        }
        let niu = &mut self.nius[((addr - noc_regs::NIU0_BASE) / noc_regs::NIU_SPAN) as usize];
        niu.as_mut().is_some_and(|niu| niu.write_field(addr % noc_regs::NIU_SPAN, value))
    }

    /// Writes a register on behalf of `core` (or of the NoC). Sleepers have been woken.
    pub(super) fn reg_store(
        &mut self,
        core: Option<Processor>,
        at: Cycle,
        addr: u32,
        width: Width,
        value: u32,
    ) -> Result<(), Refuse<Fault>> {
        if let Some((owner, offset)) = slow_local(addr)
            && let Some(port) = &mut self.ports[owner.index()]
            && port.poke(offset, width, value)
        {
            return Ok(());
        }
        if width != Width::Word {
            return Err(Refuse::Fault(
                Fault::new(
                    FaultClass::UnsupportedFunctionality,
                    format!("a {}-byte store to a register", width.bytes()),
                    PAGE,
                )
                .at_addr(u64::from(addr)),
            ));
        }
        match addr {
            map::DEBUG_BASE..debug::END => {
                let before = self.debug.word(addr);
                self.debug.write(addr, value, core.is_some()).map_err(Refuse::Fault)?;
                match addr {
                    map::SOFT_RESET_0 => self.reset_changed = Some(at),
                    debug::TRISC_PC_BUF_OVERRIDE => match self.tensix.get_mut() {
                        Some(tensix) => tensix.set_pc_buf_override(value, at),
                        None => self.pc_buf_override = Some(value),
                    },
                    _ => self.debug_coprocessor(addr, before, value, at)?,
                }
                Ok(())
            }
            noc_regs::NIU0_BASE..stream::BASE => {
                let i = ((addr - noc_regs::NIU0_BASE) / noc_regs::NIU_SPAN) as usize;
                let niu = self.nius[i].as_mut().ok_or_else(|| Refuse::Fault(busy_niu(addr)))?;
                let start = niu.write(addr % noc_regs::NIU_SPAN, value, at).map_err(Refuse::Fault)?;
                if let Some(start) = start {
                    self.started.push((i as u8, start));
                }
                Ok(())
            }
            stream::BASE..map::MOP_CFG_BASE => self.streams.write(addr - stream::BASE, value).map_err(Refuse::Fault),
            _ => match core {
                Some(core) => self.tensix.store(core, addr, value, at),
                None => Err(Refuse::Fault(unmapped(addr))),
            },
        }
    }

    /// What `core` would load now, without any effect; `None` when that cannot be said.
    pub(super) fn peek(&mut self, core: Processor, at: Cycle, addr: u32, width: Width) -> Option<u32> {
        if addr < map::L1_SIZE {
            return Some(self.l1_load(addr, width));
        }
        if width == Width::Word
            && let Some(value) = self.niu_word(addr)
        {
            return Some(value);
        }
        if class_of(addr) & (class::TENSIX | class::SEMAPHORE) != 0 {
            return self.tensix.peek(core, addr).map(|value| value & width.mask());
        }
        match self.reg_load(Some(core), at, addr, width) {
            Ok(load) if load.access == Access::Watched => Some(load.value),
            _ => None,
        }
    }
}

/// An array of zeros that was never on the stack. Its length is known to the compiler, and so most accesses need no other check.
fn zeros<const N: usize>() -> Box<[u8; N]> {
    vec![0; N].into_boxed_slice().try_into().unwrap_or_else(|_| unreachable!("the vector has N elements"))
}

/// The value at `at` of a memory. Inlined for each width: a store or load of known width is one instruction.
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

/// The first of the counters that requests of others move (Counters.md), from the NIU's base.
const SERVED: u32 = noc_regs::COUNTERS + 4 * noc_regs::counter::SLV_ATOMIC_RESP_SENT as u32;

/// The register class of an address outside L1.
fn class_of(addr: u32) -> class::Set {
    match addr {
        // A reset empties mailboxes and clears configuration.
        map::SOFT_RESET_0 => class::DEBUG | class::TENSIX,
        map::DEBUG_BASE..debug::END => class::DEBUG,
        LOCAL_SLOW_FIRST..noc_regs::NIU0_BASE => class::LOCAL,
        noc_regs::NIU0_BASE..stream::BASE => {
            let noc = (addr - noc_regs::NIU0_BASE) / noc_regs::NIU_SPAN;
            match addr % noc_regs::NIU_SPAN {
                SERVED..noc_regs::COUNTERS_END => class::NIU_SERVED << noc,
                _ => class::NIU << noc,
            }
        }
        stream::BASE..map::MOP_CFG_BASE => class::STREAM,
        // Nobody can sleep on what is write-only.
        map::INSTRN_BUF_BASE..map::PC_BUF_BASE => 0,
        map::PC_BUF_BASE..map::MAILBOX_BASE => class::SEMAPHORE,
        _ => class::TENSIX,
    }
}

/// The owner and offset of an address in the slow view of the local RAMs.
#[inline]
pub(super) fn slow_local(addr: u32) -> Option<(Processor, usize)> {
    // Most registers are not near it.
    if !(LOCAL_SLOW_FIRST..noc_regs::NIU0_BASE).contains(&addr) {
        return None;
    }
    Processor::ALL.into_iter().find_map(|p| {
        let base = map::LOCAL_SLOW[p.index()];
        (base..base + p.local_size()).contains(&addr).then(|| (p, (addr - base) as usize))
    })
}

/// A request that reaches, over an NIU, that NIU's own registers in a way the tile does not take apart.
fn busy_niu(addr: u32) -> Fault {
    Fault::new(
        FaultClass::UnimplementedFunctionality,
        "an access over an NIU to that NIU's own registers other than one word",
        "BlackholeA0/NoC/MemoryMap.md",
    )
    .at_addr(u64::from(addr))
}

fn unmapped(addr: u32) -> Fault {
    Fault::new(FaultClass::UndefinedBehavior, "no memory or register at this address", PAGE).at_addr(u64::from(addr))
}
