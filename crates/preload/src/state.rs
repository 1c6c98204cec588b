//! The card of this process: the chip, the driver and what is mapped, under one lock.

use crate::combine::Combined;
use crate::counts::Accesses;
use crate::maps::Maps;
use crate::polls::Polls;
use crate::real::raw;
use crate::standstill::{Standstill, Word};
use crate::{client, clock, maps, tell, watch};
use std::collections::HashMap;
use std::mem::MaybeUninit;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tilework::card::Card;
use tilework_abi::board::Board;
use tilework_abi::grid::Site;
use tilework_abi::simlib::board_of;
use tilework_abi::tensix::L1_SIZE;
use tilework_abi::tlb::{Bar, COUNT_2M, REG_BYTES, REGS, REGS_END, SIZE_2M, Window, WindowSize};
use tilework_kmd::{BETWEEN_BOARDS, BusMap, Driver, Errno, FileId, MOST_CARDS, UserMemory};
use tilework_sim::{ChipStats, HostBus};

/// The words that a wrong access is told with.
const ACCESS: &str = "an access of the program to a BAR";

/// The cards that were opened, by their number, and what they share.
pub(crate) struct State {
    pub cards: [Option<Seat>; MOST_CARDS],
    pub maps: Maps,
    /// Descriptors that stand for each open file.
    pub descriptors: HashMap<u32, u32>,
    pub user: Process,
    pub polls: Polls,
    pub combined: Combined,
}

/// A card and its driver.
pub(crate) struct Seat {
    pub card: OwnCard,
    pub driver: Driver,
}

/// An open file of a card.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct OpenFile {
    pub card: usize,
    pub file: FileId,
}

impl OpenFile {
    /// Numbers that stand for files of one card.
    const EACH: u32 = u32::MAX / MOST_CARDS as u32 - 1;

    /// A number that stands for it.
    pub(crate) fn number(self) -> u32 {
        self.card as u32 * Self::EACH + self.file.number() % Self::EACH
    }
    pub(crate) fn of(number: u32) -> Self {
        Self { card: (number / Self::EACH) as usize, file: FileId::of(number % Self::EACH) }
    }
}

impl State {
    fn seats(&mut self) -> impl Iterator<Item = &mut Seat> {
        self.cards.iter_mut().flatten()
    }
    /// The card whose file it is, if the file still shows it.
    pub(crate) fn seat(&mut self, file: OpenFile) -> Option<&mut Seat> {
        self.cards[file.card].as_mut().filter(|seat| seat.driver.shows(file.file))
    }
    /// Whether any card is open.
    pub(crate) fn is_open(&mut self) -> bool {
        self.seats().any(|seat| seat.driver.is_open())
    }
    /// Whether nothing happens on any chip by itself.
    pub(crate) fn is_quiet(&mut self) -> bool {
        self.seats().all(|seat| seat.card.is_quiet())
    }
    /// Lets time pass on all chips.
    pub(crate) fn clock(&mut self, cycles: u32) {
        self.seats().for_each(|seat| seat.card.clock(cycles));
    }
    /// Writes of the devices to the program's memory so far.
    pub(crate) fn device_writes(&mut self) -> u64 {
        self.seats().map(|seat| seat.card.device_writes()).sum()
    }
    /// How often the program has touched the cards.
    pub(crate) fn touched(&mut self) -> u64 {
        self.seats().map(|seat| seat.card.touched()).sum()
    }
    /// The program has read its memory at `at` and found `value`. Any of the cards may write there.
    pub(crate) fn looked_at_memory(&mut self, at: usize, value: u64) {
        let quiet = self.is_quiet();
        if self.seats().any(|seat| seat.card.looked(Word::Memory(at), value, quiet)) {
            self.end_standing_still();
        }
    }
    /// The process ends: what was found on the chips is told, and files are written.
    pub(crate) fn finish(&mut self) {
        let mut cards: Vec<_> = self.seats().map(|seat| &mut seat.card).collect();
        cards.iter_mut().for_each(|card| card.finish());
        crate::process::write_counts(&mut cards);
    }
    /// Ends the process at a deadlock.
    pub(crate) fn end_standing_still(&mut self) -> ! {
        self.finish();
        tell::end_with(tell::DEADLOCKED)
    }
    /// Ends the process if one of the cards stands still.
    pub(crate) fn end_if_standing_still(&mut self) {
        if self.seats().any(|seat| seat.card.stands_still) {
            self.end_standing_still();
        }
    }
}

/// The chip as the driver sees it.
pub(crate) struct OwnCard {
    card: Card,
    number: usize,
    board: Board,
    bus: BusMap,
    accesses: Accesses,
    moved: Arc<Moved>,
    standstill: Standstill,
    /// It does, and the process is to end.
    stands_still: bool,
    /// What the program has written into the registers of windows of 2 MiB.
    aims: [u8; AIMS],
}

/// Bytes of those registers.
const AIMS: usize = COUNT_2M as usize * REG_BYTES as usize;

/// Bytes of host memory that the device has read and written.
#[derive(Default)]
struct Moved {
    read: AtomicU64,
    written: AtomicU64,
}

impl OwnCard {
    fn new(number: usize, board: Board, bus: BusMap) -> Self {
        let moved = Arc::<Moved>::default();
        let host = Box::new(HostMemory(bus.clone(), Arc::clone(&moved)));
        let mut card = Card::numbered(board, Some(host), number).unwrap_or_else(|error| {
            tell::say(&error);
            tell::end()
        });
        card.end_by(tell::end);
        Self {
            card,
            number,
            board,
            bus,
            accesses: Accesses::default(),
            moved,
            standstill: Standstill::new(),
            stands_still: false,
            aims: [0; AIMS],
        }
    }
    /// The program has read a word and found `value`. True if the process is to end.
    pub(crate) fn looked(&mut self, word: Word, value: u64, quiet: bool) -> bool {
        let quiet = quiet && self.card.chip().fault().is_none();
        self.standstill.looked(word, value, quiet) && self.standstill.tell(self.number, self.card.chip())
    }
    /// Accesses of the program so far.
    pub(crate) fn accesses(&self) -> Accesses {
        self.accesses
    }
    /// How often the program has touched the card.
    pub(crate) fn touched(&self) -> u64 {
        self.accesses.reads + self.accesses.writes
    }
    /// The chip's own counts.
    pub(crate) fn stats(&mut self) -> ChipStats {
        self.card.chip().stats()
    }
    /// Bytes of host memory that the device has read.
    pub(crate) fn bytes_from_host(&self) -> u64 {
        self.moved.read.load(Ordering::Relaxed)
    }
    /// Bytes of host memory that the device has written.
    pub(crate) fn bytes_to_host(&self) -> u64 {
        self.moved.written.load(Ordering::Relaxed)
    }
    /// Whether `len` bytes at an offset of a BAR are L1 of a Tensix tile.
    pub(crate) fn is_l1(&self, bar: Bar, offset: u64, len: usize) -> bool {
        let id = offset / SIZE_2M;
        if bar != Bar::Bar0 || id >= u64::from(COUNT_2M) {
            return false;
        }
        let at = id as usize * REG_BYTES as usize;
        let word = |i: usize| {
            let bytes = &self.aims[at + 4 * i..][..4];
            u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
        };
        let window = Window::decode([word(0), word(1), word(2)], WindowSize::Small);
        let address = window.address.saturating_add(offset % SIZE_2M);
        let tensix = matches!(Site::at(window.end.x, window.end.y), Some(Site::Tensix));
        tensix && window.noc == 0 && !window.multicast && address.saturating_add(len as u64) <= u64::from(L1_SIZE)
    }
    /// Lets time pass.
    pub(crate) fn clock(&mut self, cycles: u32) {
        self.card.clock(cycles);
    }
    /// Whether nothing happens on the chip by itself.
    pub(crate) fn is_quiet(&mut self) -> bool {
        self.card.chip().is_quiet()
    }
    /// Writes of the device to the program's memory so far.
    pub(crate) fn device_writes(&mut self) -> u64 {
        self.card.chip().device_writes()
    }
    /// The process ends: what was found on the chip is told, and files are written.
    pub(crate) fn finish(&mut self) {
        self.card.end();
    }
}

impl tilework_kmd::Card for OwnCard {
    fn read(&mut self, bar: Bar, offset: u64, out: &mut [u8]) {
        self.accesses.reads += 1;
        self.accesses.bytes_read += out.len() as u64;
        self.card.bar_read(ACCESS, bar, offset, out);
        let mut word = [0; 8];
        match word.get_mut(..out.len()) {
            Some(part) => {
                part.copy_from_slice(out);
                let quiet = self.is_quiet();
                self.stands_still |= self.looked(Word::Bar(bar, offset), u64::from_le_bytes(word), quiet);
            }
            None => self.standstill.forget(),
        }
    }
    fn write(&mut self, bar: Bar, offset: u64, data: &[u8]) {
        self.accesses.writes += 1;
        self.accesses.bytes_written += data.len() as u64;
        // A program may aim a window before each look.
        match offset.checked_sub(REGS).filter(|_| bar == Bar::Bar0 && offset < REGS_END) {
            Some(at) => {
                let at = (at as usize).min(AIMS);
                let part = data.len().min(AIMS - at);
                self.aims[at..at + part].copy_from_slice(&data[..part]);
            }
            None => self.standstill.forget(),
        }
        self.card.bar_write(ACCESS, bar, offset, data);
    }
    fn reset(&mut self) {
        self.card.end();
        let (accesses, moved) = (self.accesses, Arc::clone(&self.moved));
        *self = Self::new(self.number, self.board, self.bus.clone());
        // What the program has done goes on, on the same chip after its reset.
        self.accesses = accesses;
        for (now, before) in [(&self.moved.read, &moved.read), (&self.moved.written, &moved.written)] {
            now.store(before.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }
}

/// The program's memory as the device reaches it.
struct HostMemory(BusMap, Arc<Moved>);

impl HostBus for HostMemory {
    fn read(&self, addr: u64, out: &mut [u8]) {
        self.1.read.fetch_add(out.len() as u64, Ordering::Relaxed);
        let found = self.0.find(addr, out.len(), false);
        if let Some(at) = found {
            watch::lend(at as usize, out.len());
        }
        if !found.is_some_and(|at| client::load(at as usize, out)) {
            out.fill(0xFF);
            tell::say(&format!(
                "the device reads {} bytes at bus address {addr:#x}, where nothing is pinned",
                out.len()
            ));
        }
    }
    fn write(&self, addr: u64, data: &[u8]) {
        self.1.written.fetch_add(data.len() as u64, Ordering::Relaxed);
        let found = self.0.find(addr, data.len(), true).map(|at| at as usize);
        if let Some(at) = found {
            watch::device_writes(at, data.len());
        }
        if !found.is_some_and(|at| client::store(at, data)) {
            let what = "where nothing that it may write is pinned";
            tell::say(&format!("the device writes {} bytes at bus address {addr:#x}, {what}", data.len()));
        }
        if let Some(at) = found {
            watch::device_wrote(at, data.len());
        }
    }
}

/// The memory of this process, for the driver.
pub(crate) struct Process;

impl UserMemory for Process {
    fn read(&mut self, address: u64, out: &mut [u8]) -> Result<(), Errno> {
        watch::lend(address as usize, out.len());
        if client::load(address as usize, out) { Ok(()) } else { Err(Errno::Fault) }
    }
    fn write(&mut self, address: u64, data: &[u8]) -> Result<(), Errno> {
        watch::lend(address as usize, data.len());
        if client::store(address as usize, data) { Ok(()) } else { Err(Errno::Fault) }
    }
    fn pinned(&mut self, address: u64, size: u64, read_only: bool) {
        if !read_only && clock::is_lazy() {
            watch::add(address as usize, size as usize);
        }
    }
    fn unpinned(&mut self, address: u64, size: u64) {
        watch::remove(address as usize, size as usize);
    }
    fn can_be_pinned(&mut self, address: u64, size: u64, read_only: bool) -> bool {
        maps::is_memory(address as usize, size as usize, !read_only)
    }
    fn allocate(&mut self, size: u64) -> Result<u64, Errno> {
        maps::shared_memory(size as usize).map(|at| at as u64).ok_or(Errno::NoMemory)
    }
    fn free(&mut self, address: u64, size: u64) {
        maps::free_shared_memory(address as usize, size as usize);
    }
}

/// The card of this process, once it was opened. A forked child has none.
static STATE: AtomicPtr<Mutex<State>> = AtomicPtr::new(std::ptr::null_mut());
/// Threads that wait for the lock.
static WAITING: AtomicU32 = AtomicU32::new(0);
/// Whether this process is a child whose parent had a card.
static ORPHAN: AtomicBool = AtomicBool::new(false);

/// The signals that were blocked before.
pub(crate) struct Blocked(libc::sigset_t);

impl Blocked {
    /// Blocks all signals that do not come from the thread's own instructions.
    pub(crate) fn all() -> Self {
        let mut before = MaybeUninit::<libc::sigset_t>::uninit();
        // SAFETY: both sets are valid places; the first is filled before it is used.
        unsafe {
            let mut all = MaybeUninit::uninit();
            libc::sigfillset(all.as_mut_ptr());
            let mut all = all.assume_init();
            for signal in [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGTRAP] {
                libc::sigdelset(&mut all, signal);
            }
            let (all, out) = ((&raw const all).expose_provenance(), before.as_mut_ptr().expose_provenance());
            raw(libc::SYS_rt_sigprocmask, [libc::SIG_BLOCK as usize, all, out, 8, 0, 0]);
            Self(before.assume_init())
        }
    }
}

impl Drop for Blocked {
    fn drop(&mut self) {
        // SAFETY: the set was filled by the kernel.
        unsafe {
            let before = (&raw const self.0).expose_provenance();
            raw(libc::SYS_rt_sigprocmask, [libc::SIG_SETMASK as usize, before, 0, 8, 0, 0]);
        }
    }
}

/// The card, locked.
pub(crate) struct Locked {
    guard: MutexGuard<'static, State>,
    _inside: clock::Inside,
    _blocked: Option<Blocked>,
}

impl Deref for Locked {
    type Target = State;
    fn deref(&self) -> &State {
        &self.guard
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        // Before the lock is given up: the fields are dropped after this.
        watch::restore();
    }
}

impl DerefMut for Locked {
    fn deref_mut(&mut self) -> &mut State {
        &mut self.guard
    }
}

fn mutex() -> Option<&'static Mutex<State>> {
    // SAFETY: the pointer is null or comes from `Box::leak`.
    unsafe { STATE.load(Ordering::Acquire).as_ref() }
}

/// Whether this process has a card.
pub(crate) fn exists() -> bool {
    mutex().is_some()
}

/// Whether somebody waits for the card.
pub(crate) fn is_awaited() -> bool {
    WAITING.load(Ordering::Relaxed) > 0
}

/// The card, if this process has one. With `block`, other signals wait meanwhile.
pub(crate) fn lock(block: bool) -> Option<Locked> {
    let mutex = mutex()?;
    let blocked = block.then(Blocked::all);
    let inside = clock::Inside::enter();
    WAITING.fetch_add(1, Ordering::Relaxed);
    let guard = mutex.lock().unwrap_or_else(PoisonError::into_inner);
    WAITING.fetch_sub(1, Ordering::Relaxed);
    Some(Locked { guard, _inside: inside, _blocked: blocked })
}

/// The card, if nobody has it or waits for it.
pub(crate) fn try_lock() -> Option<Locked> {
    let mutex = mutex()?;
    if is_awaited() {
        return None;
    }
    let blocked = Blocked::all();
    let inside = clock::Inside::enter();
    let guard = mutex.try_lock().ok()?;
    Some(Locked { guard, _inside: inside, _blocked: Some(blocked) })
}

/// The board that the command has chosen for card `number`.
fn board(number: usize) -> Board {
    let text = std::env::var("TILEWORK_CARD_BOARD").unwrap_or_default();
    text.split(BETWEEN_BOARDS)
        .nth(number)
        .and_then(|text| board_of(text.as_bytes()))
        .unwrap_or(Board::P150.by_firmware())
}

/// The cards; made if this process has none yet, with card `number`.
pub(crate) fn lock_or_make(number: usize) -> Locked {
    if !exists() {
        let _blocked = Blocked::all();
        let _inside = clock::Inside::enter();
        static MAKING: Mutex<()> = Mutex::new(());
        let _one = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
        if !exists() {
            make();
        }
    }
    let Some(mut locked) = lock(true) else { tell::end() };
    if locked.cards[number].is_none() {
        let board = board(number);
        let bus = BusMap::default();
        let mut card = OwnCard::new(number, board, bus.clone());
        let driver = Driver::of_card(number, board, &mut card, bus);
        locked.cards[number] = Some(Seat { card, driver });
    }
    locked
}

fn make() {
    crate::process::tell_others();
    let state = State {
        cards: [const { None }; MOST_CARDS],
        maps: Maps::default(),
        descriptors: HashMap::new(),
        user: Process,
        polls: Polls::default(),
        combined: Combined::new(),
    };
    crate::cpu::prepare();
    crate::trap::prepare();
    STATE.store(Box::leak(Box::new(Mutex::new(state))), Ordering::Release);
    ORPHAN.store(false, Ordering::Relaxed);
    crate::process::at_end();
    clock::start();
}

/// This process is a child: the parent's card is not its.
pub(crate) fn forget() {
    if exists() {
        ORPHAN.store(true, Ordering::Relaxed);
        watch::in_child();
        STATE.store(std::ptr::null_mut(), Ordering::Release);
    }
}

/// Whether the card is the parent's.
pub(crate) fn is_orphan() -> bool {
    ORPHAN.load(Ordering::Relaxed)
}
