//! What is known of a Tensix tile: which program runs there, its kernels, and what of its memory
//! was written.

use super::caches::Caches;
use super::cbs::Cb;
use super::known::{Loaders, Told, ToldPages, ToldWords};
use super::observer::Span;
use super::report::Actor;
use super::written::{Shadow, Written};
use crate::finding::Place;
use crate::protocol::{Ids, Issued, State};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use tilework_abi::noc::NocXy;
use tilework_abi::tensix::{L1_SIZE, LOCAL_BASE, Processor};
use tilework_driver::{CodeNote, FirmwareNote, LaunchNote};
use tilework_riscv::Insn;

/// Decoded instructions that are kept for a core.
const DECODED: usize = 64;

/// A core of a tile. What most events look at comes first, in one line of the host's caches: tiles
/// are many.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub(crate) struct CoreState {
    /// The text of the kernel that it runs now; empty for none.
    text: Range<u32>,
    /// The last range of L1 that an access of the kernel was found to be right in.
    pub owned: Range<u32>,
    pub local: Written,
    /// Instructions of kernels by address, as far as they have been decoded, with the program.
    decoded: Box<[(u32, u64, Option<Insn>); DECODED]>,
    /// The number of the program among those of the core.
    program: u64,
    /// The kernel that it runs now, if any.
    pub kernel: Option<CodeNote>,
    /// What was last told to be known of L1, and of local RAM.
    pub told: [Told; 2],
    /// Of a core of the command queue, where its stores are known.
    pub told_stores: ToldPages,
    /// What is known of single instructions.
    pub loaders: Loaders,
    /// The last request to each NoC of which no counter was looked at since.
    pub unwaited: [Option<Arc<Issued>>; 2],
    /// The same, whether it is answered or not.
    pub unseen: [Option<Arc<Issued>>; 2],
    /// Initiators whose last request has left a link open, by NoC and number.
    pub linked: [[Option<Arc<Issued>>; 4]; 2],
}

impl CoreState {
    fn new() -> Self {
        Self {
            text: 0..0,
            local: Written::default(),
            kernel: None,
            owned: 0..0,
            told: Default::default(),
            told_stores: ToldPages::default(),
            loaders: Loaders::default(),
            unwaited: [None, None],
            unseen: [None, None],
            decoded: Box::new([(0, 0, None); DECODED]),
            program: 1,
            linked: Default::default(),
        }
    }

    /// Whether `pc` is in the kernel that the core runs.
    #[inline]
    pub(crate) fn in_kernel(&self, pc: u32) -> bool {
        self.text.contains(&pc)
    }

    /// Whether a span lies where the last access of the kernel was found to be right.
    #[inline]
    pub(crate) fn owns(&self, span: Span) -> bool {
        span.addr >= self.owned.start && span.addr.saturating_add(span.len) <= self.owned.end
    }

    /// The instruction at `pc` of the kernel.
    #[inline]
    pub(crate) fn instruction(&mut self, pc: u32) -> Option<Insn> {
        if !self.in_kernel(pc) {
            return None;
        }
        let slot = (pc / 4) as usize % DECODED;
        if (self.decoded[slot].0, self.decoded[slot].1) != (pc, self.program) {
            self.decoded[slot] = (pc, self.program, self.decode(pc));
        }
        self.decoded[slot].2
    }

    fn decode(&self, pc: u32) -> Option<Insn> {
        let kernel = self.kernel.as_ref()?;
        let at = pc.checked_sub(kernel.text.start)? as usize;
        let word = kernel.code.get(at..)?.first_chunk()?;
        Some(Insn::decode(u32::from_le_bytes(*word)))
    }

    /// Another program begins.
    fn switch(&mut self, kernel: Option<CodeNote>) {
        self.text = kernel.as_ref().map_or(0..0, |kernel| kernel.text.clone());
        self.kernel = kernel;
        self.owned = 0..0;
        self.unseen = [None, None];
        self.told.iter_mut().for_each(Told::forget);
        self.loaders.forget();
        self.program += 1;
    }

    /// Offset of an address in local RAM.
    #[inline]
    pub(crate) fn local_offset(addr: u32) -> u64 {
        u64::from(addr.wrapping_sub(LOCAL_BASE))
    }
}

/// A tile. What most events look at comes first, as in [`CoreState`].
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub(crate) struct Tile {
    pub xy: NocXy,
    /// Whether a part of a command queue runs here.
    pub is_queue: bool,
    /// Whether a kernel of another tile has written here since the program began.
    pub was_told: bool,
    /// The cores that have a kernel, or of which something was seen since the program began, and
    /// those whose requests may not have been waited for, a bit each.
    used: u8,
    pub asked: u8,
    pub l1: Written,
    /// The program that runs now.
    pub launch: Option<Arc<LaunchNote>>,
    /// The circular buffers of the launch.
    pub cbs: Vec<Cb>,
    /// The data caches of the cores.
    pub caches: Caches,
    pub cores: [CoreState; 5],
    /// Launches that have not begun here, oldest first.
    pub pending: VecDeque<Arc<LaunchNote>>,
    /// The words that firmware polls of which was told that loads find nothing wrong.
    pub told_words: ToldWords,
    /// Where all cores' loads are known.
    pub told_loads: ToldPages,
    /// Its position among the cores of the launch of the program that runs.
    pub number: usize,
    /// Its role there.
    role: Option<usize>,
    /// The transaction ids that the program uses.
    pub ids: Ids,
    /// What kernels have set in the coprocessor.
    pub state: State,
}

impl Tile {
    pub(crate) fn new(xy: NocXy, below_buffers: u32) -> Self {
        Self {
            xy,
            // All of its table, and pages for what launches write: tiles are made when the chip
            // boots.
            l1: Written::of_bytes(L1_SIZE, below_buffers),
            cores: std::array::from_fn(|_| CoreState::new()),
            used: 0,
            asked: 0,
            caches: Caches::default(),
            pending: VecDeque::with_capacity(1),
            told_words: ToldWords::of_bytes(below_buffers),
            told_loads: ToldPages::default(),
            launch: None,
            number: 0,
            role: None,
            cbs: Vec::new(),
            is_queue: false,
            was_told: false,
            ids: Ids::default(),
            state: State::default(),
        }
    }

    /// Bytes of L1 were written, by one of the cores or by something else.
    #[inline]
    pub(crate) fn wrote(&mut self, addr: u32, len: u32, core: Option<Processor>, by: impl Fn() -> Place) {
        self.l1.mark(addr.into(), len.into(), true);
        self.caches.written(addr, len, core, by);
    }

    /// Code of a core that is not judged has stored words of its local RAM.
    pub(crate) fn prepared(&mut self, core: Processor, page: u8, words: u64) {
        self.cores[core.index()].local.mark_words(page.into(), words);
    }

    /// Something is seen of a core.
    #[inline]
    pub(super) fn sees(&mut self, core: Processor) {
        self.used |= 1 << core.index();
    }

    /// Whether it is the kernel of this core that does something.
    pub(crate) fn in_kernel(&self, core: Processor, actor: Actor) -> bool {
        actor.code.is_some_and(|code| self.cores[core.index()].in_kernel(code.pc))
    }

    /// Whether no other tile of the program can have told this one anything.
    pub(crate) fn is_alone(&self) -> bool {
        !self.was_told
    }

    /// Whether it is this launch that runs here.
    pub(crate) fn runs(&self, launch: &Arc<LaunchNote>) -> bool {
        self.launch.as_ref().is_some_and(|own| Arc::ptr_eq(own, launch))
    }

    /// The kernels of a launch here.
    pub(crate) fn kernels<'a>(&self, launch: &'a Arc<LaunchNote>) -> &'a [CodeNote] {
        let role = if self.runs(launch) { self.role } else { role_of(launch, self.xy) };
        role.and_then(|role| launch.roles.get(role)).map_or(&[], |role| &role.kernels)
    }

    /// The firmware begins the next program.
    pub(crate) fn begin(&mut self) {
        let launch = self.pending.pop_front();
        self.switch(launch);
    }

    /// The firmware has read the kernel configuration base of its launch message: if that of
    /// another launch that is to come, it runs that one.
    pub(crate) fn check_base(&mut self, base: u32) {
        if self.launch.as_ref().is_none_or(|launch| launch.base == base) {
            return;
        }
        let found = self.pending.iter().position(|launch| launch.base == base);
        let launch = found.and_then(|at| self.pending.remove(at));
        if let Some(current) = self.launch.take().filter(|_| launch.is_some()) {
            self.pending.push_front(current);
        }
        self.switch(launch);
    }

    fn switch(&mut self, launch: Option<Arc<LaunchNote>>) {
        let xy = self.xy;
        self.role = launch.as_ref().and_then(|launch| role_of(launch, xy));
        let role = self.role.zip(launch.as_ref()).and_then(|(role, launch)| launch.roles.get(role));
        for (core, state) in Processor::ALL.into_iter().zip(&mut self.cores) {
            let kernel = role.and_then(|role| role.kernels.iter().find(|k| k.processor == core).cloned());
            let (bit, has_kernel) = (1 << core.index(), kernel.is_some());
            if self.used & bit != 0 || has_kernel {
                state.switch(kernel);
            }
            self.used = self.used & !bit | u8::from(has_kernel) << core.index();
        }
        let launch_cbs = launch.iter().flat_map(|launch| &launch.cbs);
        self.cbs = launch_cbs.map(Cb::new).collect();
        let number = launch.as_ref().and_then(|launch| launch.cores.iter().position(|&core| core == xy));
        self.number = number.unwrap_or_default();
        self.launch = launch;
        self.was_told = false;
        self.ids.forget();
    }

    /// The program is done.
    pub(crate) fn end(&mut self) {
        self.switch(None);
    }

    /// The end of what a core's stack must not reach, in local RAM: the data of kernel
    /// and firmware.
    pub(crate) fn stack_limit(&self, core: Processor, firmware: &FirmwareNote) -> u32 {
        let kernel = self.cores[core.index()].kernel.as_ref().map_or(0, |kernel| kernel.local.end);
        kernel.max(firmware.map.kernel_local[core.index()])
    }
}

/// The role of a tile in a launch.
fn role_of(launch: &LaunchNote, xy: NocXy) -> Option<usize> {
    launch.roles.iter().position(|role| role.cores.contains(&xy))
}

/// All tiles, by their coordinates, which have six bits each.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tiles {
    all: Vec<Option<Box<Tile>>>,
    /// Where buffers begin in L1, as far as it is known.
    below_buffers: u32,
}

impl Tiles {
    /// From now on tiles are made for a map in which buffers lie behind these bytes of L1.
    pub(super) fn set_below_buffers(&mut self, bytes: u32) {
        self.below_buffers = bytes.min(L1_SIZE);
    }
    #[inline]
    fn slot(&mut self, xy: NocXy) -> &mut Option<Box<Tile>> {
        let at = usize::from(xy.y) << 6 | usize::from(xy.x);
        if at >= self.all.len() {
            self.all.resize_with(at + 1, || None);
        }
        &mut self.all[at]
    }
    /// Takes a tile out, so that others can be looked at meanwhile.
    #[inline]
    pub(crate) fn take(&mut self, xy: NocXy) -> Box<Tile> {
        let below_buffers = self.below_buffers;
        self.slot(xy).take().unwrap_or_else(|| Box::new(Tile::new(xy, below_buffers)))
    }
    /// Puts it back.
    #[inline]
    pub(crate) fn put(&mut self, tile: Box<Tile>) {
        let xy = tile.xy;
        *self.slot(xy) = Some(tile);
    }
    pub(crate) fn get(&mut self, xy: NocXy) -> &mut Tile {
        let below_buffers = self.below_buffers;
        self.slot(xy).get_or_insert_with(|| Box::new(Tile::new(xy, below_buffers)))
    }
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Tile> {
        self.all.iter().filter_map(|tile| tile.as_deref())
    }
}
