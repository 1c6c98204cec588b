//! The card of this process: the chip, the driver and what is mapped, under one lock.

use crate::combine::Combined;
use crate::maps::Maps;
use crate::own::OwnCard;
use crate::polls::Polls;
use crate::real::raw;
use crate::record::Record;
use crate::standstill::Word;
use crate::{client, clock, maps, signals, tell, watch};
use std::collections::HashMap;
use std::mem::MaybeUninit;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tilework_abi::board::Board;
use tilework_abi::simlib::board_of;
use tilework_kmd::{BETWEEN_BOARDS, BusMap, Driver, Errno, FileId, MOST_CARDS, UserMemory};

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
    /// Notes that nothing happens by itself until somebody has the lock again.
    pub(crate) fn stays_quiet(&self) {
        QUIET.store(true, Ordering::Relaxed);
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
/// Whether nothing happens on any chip by itself, and nobody has had the lock since that was found.
static QUIET: AtomicBool = AtomicBool::new(false);
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
            for signal in signals::OWN_FAULT {
                libc::sigdelset(&mut all, signal);
            }
            let (all, out) = ((&raw const all).expose_provenance(), before.as_mut_ptr().expose_provenance());
            raw(libc::SYS_rt_sigprocmask, [libc::SIG_BLOCK as usize, all, out, 8, 0, 0]);
            Self(before.assume_init())
        }
    }
}

impl Blocked {
    /// The mask from before, for [`Blocked::restore`]: the signals stay blocked.
    pub(crate) fn into_mask(self) -> u64 {
        // SAFETY: the kernel's set is the first word of the C library's.
        let mask = unsafe { (&raw const self.0).cast::<u64>().read() };
        std::mem::forget(self);
        mask
    }
    /// Blocks the signals of a mask and no others.
    ///
    /// # Safety
    /// The place has a mask.
    pub(crate) unsafe fn restore(mask: *const u64) {
        // SAFETY: the caller's promise.
        unsafe { raw(libc::SYS_rt_sigprocmask, [libc::SIG_SETMASK as usize, mask.expose_provenance(), 0, 8, 0, 0]) };
    }
}

impl Drop for Blocked {
    fn drop(&mut self) {
        // SAFETY: the set was filled by the kernel.
        unsafe { Self::restore((&raw const self.0).cast()) };
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

/// Whether letting time pass would change nothing: false is always possible.
#[inline]
pub(crate) fn is_known_quiet() -> bool {
    QUIET.load(Ordering::Relaxed)
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
    QUIET.store(false, Ordering::Relaxed);
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
    QUIET.store(false, Ordering::Relaxed);
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
        let record = Record::wanted(number).map(Arc::new);
        let mut card = OwnCard::new(number, board, bus.clone(), record);
        let driver = Driver::of_card(number, board, &mut card, bus);
        locked.cards[number] = Some(Seat { card, driver });
    }
    locked
}

fn make() {
    crate::process::tell_others();
    maps::without_large_pages();
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
