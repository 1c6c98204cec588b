//! A minimal tile for tests and the speed example: L1, local RAM and an L0 cache of four lines.
//!
//! Latencies as in `BabyRISCV/README.md`. The L0 keeps data, not only tags, so that a load can be
//! stale as on the chip.

#![allow(dead_code)] // each test uses its part

use std::sync::Arc;

use tilework_riscv::{
    Access, Amo, Bus, CODE_PAGE_BYTES, CodePage, Core, Cycle, Effect, Exit, Insn, Load, NotQuick, Op, Refuse, Store,
    Width, encode,
};

pub(crate) const L1_BYTES: u32 = 0x18_0000;
pub(crate) const LOCAL_BASE: u32 = 0xffb0_0000;
pub(crate) const LOCAL_BYTES: u32 = 0x2000;
/// Reads as the cycle.
pub(crate) const CLOCK: u32 = 0xffb1_21f0;
/// Reads as 3, with a latency of 90 cycles.
pub(crate) const SLOW: u32 = CLOCK + 4;
/// Reads as [`Toy::register`], with a latency of 7 cycles and not through the L0.
pub(crate) const REGISTER: u32 = CLOCK + 12;
/// Blocks until there is [`Toy::mail`], and takes it.
pub(crate) const MAILBOX: u32 = CLOCK + 8;
const NO_LINE: u32 = u32::MAX;

/// An access to nothing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Unmapped(pub u32);

pub(crate) struct Toy {
    pub l1: Vec<u8>,
    local: Vec<u8>,
    lines: [u32; 4],
    line_data: [[u8; 16]; 4],
    next_line: usize,
    pages: Vec<Option<Arc<CodePage>>>,
    code_changed: bool,
    drained_at: Cycle,
    /// Tensix words pushed.
    pub pushed: Vec<u32>,
    /// What [`MAILBOX`] holds.
    pub mail: Option<u32>,
    /// What [`REGISTER`] reads as.
    pub register: u32,
    /// That is known without a load.
    pub steady: bool,
    /// Every L1 load that misses the L0 first asks for a sync.
    pub sync_loads: bool,
    synced: bool,
    /// Loads that were performed or refused.
    pub loads: u64,
}

impl Toy {
    pub(crate) fn new() -> Toy {
        Toy {
            l1: vec![0; L1_BYTES as usize],
            local: vec![0; LOCAL_BYTES as usize],
            lines: [NO_LINE; 4],
            line_data: [[0; 16]; 4],
            next_line: 0,
            pages: vec![None; (L1_BYTES / CODE_PAGE_BYTES) as usize],
            code_changed: false,
            drained_at: 0,
            pushed: Vec::new(),
            mail: None,
            register: 0,
            steady: true,
            sync_loads: false,
            synced: false,
            loads: 0,
        }
    }

    pub(crate) fn with_code(at: u32, words: &[u32]) -> Toy {
        let mut toy = Toy::new();
        for (addr, word) in (at..).step_by(4).zip(words) {
            toy.poke(addr, *word);
        }
        toy
    }

    pub(crate) fn local(&self) -> &[u8] {
        &self.local
    }

    pub(crate) fn peek(&self, addr: u32) -> u32 {
        read(&self.l1, addr, Width::Word)
    }

    /// Reads L1, bypassing the L0.
    pub(crate) fn peek_at(&self, addr: u32, width: Width) -> u32 {
        read(&self.l1, addr, width)
    }

    /// A write by another agent, which the L0 does not see.
    pub(crate) fn poke(&mut self, addr: u32, value: u32) {
        write(&mut self.l1, addr, Width::Word, value);
        self.touch_code(addr);
    }

    #[inline(always)]
    fn touch_code(&mut self, addr: u32) {
        let page = &mut self.pages[(addr / CODE_PAGE_BYTES) as usize];
        if page.is_some() {
            *page = None;
            self.code_changed = true;
        }
    }

    /// Delays stores in flight at cycle `at` by `skipped` cycles.
    #[allow(dead_code, reason = "not every test puts cores to sleep")]
    pub(crate) fn skip(&mut self, at: Cycle, skipped: Cycle) {
        if self.drained_at > at {
            self.drained_at += skipped;
        }
    }

    #[inline(never)]
    fn miss(&mut self, at: Cycle, addr: u32, width: Width) -> Result<Load, Refuse<Unmapped>> {
        if addr == CLOCK && width == Width::Word {
            return Ok(Load { value: at as u32, latency: 7, access: Access::Volatile });
        }
        if addr == MAILBOX && width == Width::Word {
            let value = self.mail.take().ok_or(Refuse::Block)?;
            return Ok(Load { value, latency: 3, access: Access::Volatile });
        }
        if addr == REGISTER && width == Width::Word {
            return Ok(Load { value: self.register, latency: 7, access: Access::Watched });
        }
        if addr == SLOW && width == Width::Word {
            return Ok(Load { value: 3, latency: 90, access: Access::Private });
        }
        if addr >= L1_BYTES {
            return Err(Refuse::Fault(Unmapped(addr)));
        }
        if self.sync_loads && !self.synced {
            self.synced = true;
            return Err(Refuse::Sync);
        }
        self.synced = false;
        let line = addr & !15;
        self.lines[self.next_line] = line;
        let bytes = &self.l1[line as usize..line as usize + 16];
        self.line_data[self.next_line].copy_from_slice(bytes);
        self.next_line = (self.next_line + 1) % 4;
        let value = read(&self.l1, addr, width);
        Ok(Load { value, latency: 8, access: Access::Watched })
    }
}

#[inline(always)]
fn read(bytes: &[u8], addr: u32, width: Width) -> u32 {
    let at = addr as usize;
    match width {
        Width::Byte => u32::from(bytes[at]),
        Width::Half => u32::from(u16::from_le_bytes([bytes[at], bytes[at + 1]])),
        Width::Word => bytes[at..].first_chunk().map_or(0, |word| u32::from_le_bytes(*word)),
    }
}

#[inline(always)]
fn write(bytes: &mut [u8], addr: u32, width: Width, value: u32) {
    let [at, size] = [addr as usize, width.bytes() as usize];
    match width {
        Width::Byte => bytes[at] = value as u8,
        Width::Half => bytes[at..at + size].copy_from_slice(&(value as u16).to_le_bytes()),
        Width::Word => bytes[at..at + size].copy_from_slice(&value.to_le_bytes()),
    }
}

impl Bus for Toy {
    type Fault = Unmapped;

    fn code(&mut self, _at: Cycle, pc: u32) -> Result<Arc<CodePage>, Unmapped> {
        let page = self.pages.get_mut((pc / CODE_PAGE_BYTES) as usize).ok_or(Unmapped(pc))?;
        if page.is_none() {
            let bytes = self.l1[(pc & !(CODE_PAGE_BYTES - 1)) as usize..].first_chunk().ok_or(Unmapped(pc))?;
            *page = Some(Arc::new(CodePage::decode(bytes)));
        }
        page.clone().ok_or(Unmapped(pc))
    }

    #[inline(always)]
    fn load(&mut self, at: Cycle, _pc: u32, addr: u32, width: Width) -> Result<Load, Refuse<Unmapped>> {
        self.loads += 1;
        let local = addr.wrapping_sub(LOCAL_BASE);
        if local < LOCAL_BYTES {
            let value = read(&self.local, local, width);
            return Ok(Load { value, latency: 2, access: Access::Private });
        }
        for (line, data) in self.lines.iter().zip(&self.line_data) {
            if *line == addr & !15 {
                let value = read(data, addr & 15, width);
                return Ok(Load { value, latency: 2, access: Access::Watched });
            }
        }
        self.miss(at, addr, width)
    }

    #[inline(always)]
    fn store(&mut self, at: Cycle, _pc: u32, addr: u32, width: Width, value: u32) -> Result<Store, Refuse<Unmapped>> {
        let local = addr.wrapping_sub(LOCAL_BASE);
        if local < LOCAL_BYTES {
            let old = read(&self.local, local, width);
            write(&mut self.local, local, width, value);
            let silent = old == read(&self.local, local, width);
            return Ok(Store { hold: 0, effect: if silent { Effect::Silent } else { Effect::Visible } });
        }
        if addr >= L1_BYTES {
            return Err(Refuse::Fault(Unmapped(addr)));
        }
        let same = read(&self.l1, addr, width) == value & width.mask();
        write(&mut self.l1, addr, width, value);
        for line in &mut self.lines {
            if *line == addr & !15 {
                *line = NO_LINE;
            }
        }
        self.drained_at = at + 5;
        if same {
            return Ok(Store { hold: 0, effect: Effect::Same });
        }
        self.touch_code(addr);
        let code = std::mem::take(&mut self.code_changed);
        Ok(Store { hold: 0, effect: if code { Effect::Code } else { Effect::Visible } })
    }

    /// Every second word of memory is quick, so that all tests take both paths.
    #[inline(always)]
    fn quick_load(&mut self, at: Cycle, _pc: u32, addr: u32, width: Width) -> Result<Load, NotQuick> {
        if addr & 4 == 0 || addr >= L1_BYTES && addr.wrapping_sub(LOCAL_BASE) >= LOCAL_BYTES {
            return Err(NotQuick::Ask);
        }
        self.load(at, 0, addr, width).map_err(|refuse| match refuse {
            Refuse::Sync => NotQuick::Sync,
            Refuse::Block | Refuse::Fault(_) => unreachable!("memory neither blocks nor faults"),
        })
    }

    #[inline(always)]
    fn quick_store(&mut self, at: Cycle, _pc: u32, addr: u32, width: Width, value: u32) -> Result<Store, NotQuick> {
        let in_l1 = addr < L1_BYTES;
        let code = in_l1 && self.pages[(addr / CODE_PAGE_BYTES) as usize].is_some();
        if addr & 4 == 0 || code || self.code_changed || !in_l1 && addr.wrapping_sub(LOCAL_BASE) >= LOCAL_BYTES {
            return Err(NotQuick::Ask);
        }
        self.store(at, 0, addr, width, value).map_err(|_| unreachable!("memory refuses no store"))
    }

    fn amo(&mut self, _at: Cycle, _pc: u32, op: Amo, addr: u32, value: u32) -> Result<Load, Refuse<Unmapped>> {
        if addr >= L1_BYTES {
            return Err(Refuse::Fault(Unmapped(addr)));
        }
        self.lines = [NO_LINE; 4];
        let old = self.peek(addr);
        self.poke(addr, op.apply(old, value));
        Ok(Load { value: old, latency: 12, access: Access::Volatile })
    }

    fn fence(&mut self, at: Cycle, _pc: u32, _code: bool) -> u32 {
        self.lines = [NO_LINE; 4];
        self.next_line = 0;
        self.drained_at.saturating_sub(at) as u32
    }

    fn ttinsn(&mut self, _at: Cycle, _pc: u32, word: u32) -> Result<u32, Refuse<Unmapped>> {
        self.pushed.push(word);
        Ok(0)
    }

    #[inline(always)]
    fn take_code_changed(&mut self) -> bool {
        std::mem::take(&mut self.code_changed)
    }

    fn steady_word(&mut self, _at: Cycle, addr: u32) -> Option<(u32, u32)> {
        (self.steady && addr == REGISTER).then_some((self.register, 7))
    }

    fn cache_token(&self) -> [u32; 4] {
        let mut token = self.lines;
        token.rotate_left(self.next_line);
        token
    }

    fn draining(&self, at: Cycle) -> Cycle {
        self.drained_at.saturating_sub(at)
    }
}

/// The word of an instruction with these operands; panics in the test when it has none.
pub(crate) fn word(op: Op, rd: u8, rs1: u8, rs2: u8, imm: i32) -> u32 {
    let insn = Insn { op, rd, rs1, rs2, imm };
    encode(insn).unwrap_or_else(|| panic!("{insn:?} has no encoding"))
}

/// `lui` and `addi` that load a constant.
pub(crate) fn li(rd: u8, value: u32) -> [u32; 2] {
    let low = value.cast_signed() << 20 >> 20;
    let high = value.wrapping_sub(low.cast_unsigned());
    [word(Op::Lui, rd, 0, 0, high.cast_signed()), word(Op::Addi, rd, rd, 0, low)]
}

/// Runs until something other than a sync or the limit happens, at most `limit` cycles.
pub(crate) fn run(core: &mut Core, bus: &mut Toy, limit: Cycle) -> Exit<Unmapped> {
    loop {
        match core.run(bus, limit) {
            Exit::Sync => {}
            exit => return exit,
        }
    }
}
