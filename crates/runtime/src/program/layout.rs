//! Where everything of a program lies on its cores.
//!
//! The kernel configuration space, from its base (seed's system, `pack_rta` and `build_payload`):
//! unique arguments of BRISC, NCRISC and the TRISCs; semaphores (16 bytes each, from a multiple of
//! 16); circular-buffer configurations up to the highest index; common arguments; kernel text by
//! processor, and an instruction that returns for TRISCs without a kernel beside others with one.
//! Up to the semaphores the bytes may differ from core to core; from the configurations on they are
//! the same for all cores of a role.
//!
//! Two differences from the original. It packs argument lists of different length one after the
//! other, while its launch message has the offsets of the longest; here every list is padded to the
//! longest. And it has no common arguments.

use super::check::{self, ProgramErrorKind};
use super::{ArgSet, Program, ProgramError, UniqueArgs};
use crate::memory::Allocator;
use std::ops::Range;
use tilework_abi::addr::{L1Addr, PageCount};
use tilework_abi::cb::{CONFIG_BYTES, CbConfig};
use tilework_abi::convert::{addr32_of, u32_of};
use tilework_abi::l1::MemoryMap;
use tilework_abi::noc::NocXy;
use tilework_abi::tensix::Processor;
use tilework_abi::{L1_ALIGN, cb};
use tilework_riscv::{Insn, Op, encode};
use zerocopy::IntoBytes;

/// Where the arguments of one set lie, from the kernel configuration base.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ArgSpan {
    /// Unique arguments.
    pub unique: u32,
    /// Their bytes (the longest list).
    pub unique_bytes: u32,
    /// Common arguments.
    pub common: u32,
}

/// A circular buffer with its address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CbLayout {
    /// Its index.
    pub index: u32,
    /// First byte in L1.
    pub address: L1Addr,
    /// Bytes of a page.
    pub page_size: u32,
    /// Pages.
    pub pages: PageCount,
}

impl CbLayout {
    /// Bytes.
    pub fn size(&self) -> u32 {
        // The buffer lies in L1.
        addr32_of(self.pages.bytes(self.page_size))
    }
}

/// One role with its cores and kernel places.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RoleLayout {
    /// The cores, in the program's order.
    pub cores: Vec<NocXy>,
    /// Offset of each processor's text from the kernel configuration base; 0 where there is none.
    pub text: [u32; 5],
    /// Bytes of each processor's image.
    pub text_bytes: [u32; 5],
    /// Bit i: processor i runs a kernel.
    pub enables: u32,
    /// Offset of an instruction that returns, where some of the TRISCs have a kernel and others
    /// none.
    pub returns: Option<u32>,
    /// Where the role's bytes end.
    pub end: u32,
}

impl RoleLayout {
    /// What the launch message says of enabled processors and their text. The TRISCs run the parts
    /// of one compute kernel, and firmware may start all three when the first is enabled (that of
    /// blackhole-py does): those without a kernel return at once.
    pub(crate) fn launch(&self) -> (u32, [u32; 5]) {
        let Some(returns) = self.returns else { return (self.enables, self.text) };
        let text = |p: Processor| if self.enables >> p.index() & 1 != 0 { self.text[p.index()] } else { returns };
        let mut all = self.text;
        for p in TRISCS {
            all[p.index()] = text(p);
        }
        (self.enables | TRISC_BITS, all)
    }
}

const TRISCS: [Processor; 3] = [Processor::Trisc0, Processor::Trisc1, Processor::Trisc2];
const TRISC_BITS: u32 = 0b11100;
/// The instruction `ret`, that is `jalr x0, 0(ra)`.
const RETURN: u32 = match encode(Insn { op: Op::Jalr, rd: 0, rs1: 1, rs2: 0, imm: 0 }) {
    Some(word) => word,
    None => unreachable!(),
};

/// The layout of a program: its cores, and where everything lies on them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Layout {
    /// The program's cores.
    pub cores: Vec<NocXy>,
    /// The kernel configuration base.
    pub base: L1Addr,
    /// Arguments, in the order of [`ArgSet::ALL`].
    pub args: [ArgSpan; 3],
    /// Semaphore 0, from the base.
    pub sem_offset: u32,
    /// Number of semaphores.
    pub semaphores: u32,
    /// Circular-buffer configurations, from the base.
    pub cb_offset: u32,
    /// Bytes of the configurations.
    pub cb_bytes: u32,
    /// Circular buffers.
    pub cbs: Vec<CbLayout>,
    /// Where the kernel text begins, from the base: the end of the configuration.
    pub text_offset: u32,
    /// Roles.
    pub roles: Vec<RoleLayout>,
}

impl Layout {
    /// Bytes of unique arguments and semaphores, which may differ from core to core.
    pub(crate) fn private_bytes(&self) -> u32 {
        match self.semaphores {
            0 => self.args.iter().map(|a| a.unique + a.unique_bytes).max().unwrap_or(0),
            n => self.sem_offset + n * L1_ALIGN,
        }
    }

    /// The bytes of its circular buffers in each core's L1.
    pub(crate) fn cb_ranges(&self) -> Vec<Range<u64>> {
        let range = |cb: &CbLayout| u64::from(cb.address.get())..u64::from(cb.address.get()) + u64::from(cb.size());
        self.cbs.iter().map(range).collect()
    }

    /// Kernels of all cores together.
    pub fn kernels(&self) -> usize {
        self.roles.iter().map(|role| role.cores.len() * role.enables.count_ones() as usize).sum()
    }
}

/// Takes consecutive ranges of the configuration space, noting what is in it.
struct Cursor<'a> {
    map: &'a MemoryMap,
    at: u32,
    contents: Vec<String>,
}

impl Cursor<'_> {
    /// The next `bytes` bytes for `part`.
    fn take(&mut self, part: impl FnOnce() -> String, bytes: u64) -> Result<u32, ProgramErrorKind> {
        let start = self.at;
        let end = u64::from(start) + bytes;
        let size = self.map.kernel_config_size;
        if bytes > 0 {
            self.contents.push(format!("{} ({bytes} bytes)", part()));
        }
        if end > u64::from(size) {
            let part = self.contents.last().cloned().unwrap_or_default();
            let contents = self.contents.join(", ");
            return Err(ProgramErrorKind::ConfigSpace { part, end, size, contents });
        }
        self.at = addr32_of(end);
        Ok(start)
    }
    fn align(&mut self) {
        self.at = self.at.next_multiple_of(L1_ALIGN);
    }
}

fn words(n: usize) -> u64 {
    4 * n as u64
}

impl Program {
    /// Checks the program and decides where everything lies. `workers` are the cores that programs
    /// may use, `map` their memory map, `l1` the allocator of the data space; circular buffers go
    /// to its free low end, in their order.
    ///
    /// # Errors
    /// Whatever is wrong with the program.
    pub fn layout(&self, workers: &[NocXy], map: &MemoryMap, l1: &Allocator<L1Addr>) -> Result<Layout, ProgramError> {
        let cores = self.cores.resolve(workers).map_err(|e| e.kind.of(&self.name))?;
        self.place(cores, map, l1).map_err(|kind| kind.of(&self.name))
    }

    fn place(&self, cores: Vec<NocXy>, map: &MemoryMap, l1: &Allocator<L1Addr>) -> Result<Layout, ProgramErrorKind> {
        let role_of = check::roles(self, &cores)?;
        check::parts(self, cores.len())?;
        check::over(self, &cores)?;
        let mut cursor = Cursor { map, at: 0, contents: Vec::new() };
        let mut args = [ArgSpan::default(); 3];
        for (set, span) in ArgSet::ALL.into_iter().zip(&mut args) {
            let bytes = words(self.longest(set));
            span.unique = cursor.take(|| format!("{} arguments", set.name()), bytes)?;
            span.unique_bytes = addr32_of(bytes);
        }
        cursor.align();
        let sem_bytes = u64::from(L1_ALIGN) * self.semaphores.len() as u64;
        let sem_offset = cursor.take(|| format!("{} semaphores", self.semaphores.len()), sem_bytes)?;
        let cb_end = self.cbs.iter().map(|b| b.index + 1).max().unwrap_or(0);
        let cb_bytes = cb_end * u32_of(CONFIG_BYTES);
        let cb_offset = cursor.take(|| "circular-buffer configurations".into(), u64::from(cb_bytes))?;
        for (set, span) in ArgSet::ALL.into_iter().zip(&mut args) {
            let bytes = words(self.common_args[set.index()].len());
            span.common = cursor.take(|| format!("common {} arguments", set.name()), bytes)?;
        }
        cursor.align();

        let text_offset = cursor.at;
        let fixed = cursor.contents.len();
        let mut roles = Vec::new();
        for (number, role) in self.roles.iter().enumerate() {
            cursor.at = text_offset;
            cursor.contents.truncate(fixed);
            let of_role = |(&core, &r): (&NocXy, &usize)| (r == number).then_some(core);
            let cores = cores.iter().zip(&role_of).filter_map(of_role).collect();
            let mut placed = RoleLayout { cores, text: [0; 5], text_bytes: [0; 5], enables: 0, returns: None, end: 0 };
            for (i, kernel) in role.kernels.iter().enumerate() {
                let Some(kernel) = kernel else { continue };
                let role = || self.role_name(number);
                let what = || format!("{} kernel {} of role {}", Processor::ALL[i], kernel.name(), role());
                placed.text[i] = cursor.take(what, u64::from(kernel.size()))?;
                placed.text_bytes[i] = kernel.size();
                placed.enables |= 1 << i;
                cursor.align();
            }
            if placed.enables & TRISC_BITS != 0 && placed.enables & TRISC_BITS != TRISC_BITS {
                placed.returns = Some(cursor.take(|| "a return for the other TRISCs".into(), words(1))?);
                cursor.align();
            }
            placed.end = cursor.at;
            roles.push(placed);
        }
        let semaphores = u32_of(self.semaphores.len());
        let cbs = self.place_cbs(l1)?;
        let base = map.kernel_config;
        Ok(Layout { cores, base, args, sem_offset, semaphores, cb_offset, cb_bytes, cbs, text_offset, roles })
    }

    /// Checks what the layout of a program with the same shape and `cores` does not say: for how
    /// many cores there are argument lists, and what circular buffers lie over.
    pub(crate) fn check_values(&self, cores: &[NocXy]) -> Result<(), ProgramError> {
        let checked = check::lists(self, cores.len()).and_then(|()| check::over(self, cores));
        checked.map_err(|kind| kind.of(&self.name))
    }

    /// Words of the longest unique argument list of `set`.
    pub(crate) fn longest(&self, set: ArgSet) -> usize {
        match &self.args[set.index()] {
            UniqueArgs::Uniform(list) => list.len(),
            UniqueArgs::PerCore(lists) => lists.iter().map(Vec::len).max().unwrap_or(0),
        }
    }

    /// Gives the circular buffers their addresses. The second of 16 and 24 gets the first one's
    /// (the original's `device.py`), whose space must hold both.
    pub(crate) fn place_cbs(&self, l1: &Allocator<L1Addr>) -> Result<Vec<CbLayout>, ProgramErrorKind> {
        let mut l1 = l1.clone();
        let partner = |index: u32| match index {
            i if i == cb::SHARED.0 => Some(cb::SHARED.1),
            i if i == cb::SHARED.1 => Some(cb::SHARED.0),
            _ => None,
        };
        let bytes = |b: &super::CircularBuffer| b.pages.bytes(b.page_size);
        let mut placed: Vec<CbLayout> = Vec::new();
        for b in &self.cbs {
            // One that lies over a buffer shares nothing.
            let partner = partner(b.index).filter(|p| !self.cbs_over.contains_key(p));
            let other = partner.and_then(|p| self.cbs.iter().find(|o| o.index == p));
            let shared = partner.and_then(|p| placed.iter().find(|o| o.index == p)).map(|o| o.address);
            let over = self.cbs_over.get(&b.index);
            if let Some(over) = over
                && bytes(b) > over.bytes.into()
            {
                let (bytes, buffer, room) = (bytes(b), over.name.clone(), over.bytes);
                return Err(ProgramErrorKind::CbOverSize { index: b.index, bytes, buffer, room });
            }
            let address = match over.map(|over| over.address).or(shared) {
                Some(address) => address,
                None => {
                    let room = other.map_or(0, bytes).max(bytes(b));
                    let owner = format!("circular buffer {} of {}", self.names.circular_buffer(b.index), self.name);
                    let failed = |error| ProgramErrorKind::CircularBuffer { index: b.index, error: Box::new(error) };
                    l1.low(&owner, room).map_err(failed)?
                }
            };
            let &super::CircularBuffer { index, page_size, pages } = b;
            placed.push(CbLayout { index, address, page_size, pages });
        }
        Ok(placed)
    }

    /// The bytes at the kernel configuration base of core number `core`: unique arguments and
    /// semaphores.
    pub(crate) fn private_bytes(&self, layout: &Layout, core: usize) -> Vec<u8> {
        let mut out = vec![0; layout.private_bytes() as usize];
        self.private_words(layout, core, |at, words| put_words(&mut out, at, words));
        out
    }

    /// Calls `put` with every list of words of core number `core` and its offset from the base:
    /// unique arguments and semaphores.
    pub(crate) fn private_words(&self, layout: &Layout, core: usize, mut put: impl FnMut(u32, &[u32])) {
        for (span, args) in layout.args.iter().zip(&self.args) {
            let list = match args {
                UniqueArgs::Uniform(list) => list,
                UniqueArgs::PerCore(lists) => &lists[core],
            };
            put(span.unique, list);
        }
        for (i, &value) in self.semaphores.iter().enumerate() {
            put(layout.sem_offset + u32_of(i) * L1_ALIGN, &[value]);
        }
    }

    /// The bytes from the circular-buffer configurations to the end of role number `role`.
    pub(crate) fn shared_bytes(&self, layout: &Layout, role: usize, map: &MemoryMap) -> Result<Vec<u8>, ProgramError> {
        let mut out = self.config_bytes(layout, &layout.cbs);
        out.extend(self.text_bytes(layout, role, map, layout.base.offset(layout.text_offset))?);
        Ok(out)
    }

    /// The bytes from the circular-buffer configurations to the text: the configurations of `cbs`
    /// and common arguments, the same for all cores.
    pub(crate) fn config_bytes(&self, layout: &Layout, cbs: &[CbLayout]) -> Vec<u8> {
        let mut out = vec![0; (layout.text_offset - layout.cb_offset) as usize];
        for b in cbs {
            let config = CbConfig {
                address: b.address.get().into(),
                size: b.size().into(),
                pages: b.pages.get().into(),
                page_size: b.page_size.into(),
            };
            let at = b.index as usize * CONFIG_BYTES;
            out[at..at + CONFIG_BYTES].copy_from_slice(config.as_bytes());
        }
        for (span, args) in layout.args.iter().zip(&self.common_args) {
            put_words(&mut out, span.common - layout.cb_offset, args);
        }
        out
    }

    /// The kernel text of role number `role`, for a place at `at`.
    pub(crate) fn text_bytes(
        &self,
        layout: &Layout,
        role: usize,
        map: &MemoryMap,
        at: L1Addr,
    ) -> Result<Vec<u8>, ProgramError> {
        let placed = &layout.roles[role];
        let mut out = vec![0; (placed.end - layout.text_offset) as usize];
        for (i, kernel) in self.roles[role].kernels.iter().enumerate() {
            let Some(kernel) = kernel else { continue };
            let offset = placed.text[i] - layout.text_offset;
            let text = kernel
                .relocate(at.offset(offset), map)
                .map_err(|e| ProgramErrorKind::Kernel(e.to_string()).of(&self.name))?;
            out[offset as usize..offset as usize + text.len()].copy_from_slice(&text);
        }
        if let Some(returns) = placed.returns {
            put_words(&mut out, returns - layout.text_offset, &[RETURN]);
        }
        Ok(out)
    }
}

fn put_words(out: &mut [u8], at: u32, words: &[u32]) {
    for (chunk, word) in out[at as usize..].chunks_exact_mut(4).zip(words) {
        chunk.copy_from_slice(&word.to_le_bytes());
    }
}
