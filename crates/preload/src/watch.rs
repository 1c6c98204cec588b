//! Pinned memory that the program may poll: its pages have no access rights, so that reads of it
//! trap and the chip's time moves with them.
//!
//! A page is [`FRESH`] when it is pinned: its first use traps. What is used as data (a store, or an
//! access of more than eight bytes) is then [`OPEN`], together with fresh pages behind it. A page
//! in which the program has polled a word, or into which the device has written few bytes, is a
//! [`MAILBOX`]: it stays without rights. While the card is locked, pages are lent to whoever needs
//! them ([`lend`]), and taken back when the lock is given up ([`restore`]).
//!
//! All functions but [`covers`] and [`in_child`] are called under the card's lock.

use crate::real::real;
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

const PAGE: usize = 4096;
/// Any access is the processor's.
const OPEN: u8 = 0;
/// Nobody has used the page since it was pinned or armed.
const FRESH: u8 = 1;
/// A word of the page is polled, or the device tells something there.
const MAILBOX: u8 = 2;

/// Pins that can be watched at the same time. Others are not: polls of them are not noticed.
const MOST: usize = 256;
/// Pages that are lent at the same time; more are taken back at once.
const LENT: usize = 64;
/// The most pages that are opened for one access: 1 MiB.
const AHEAD: usize = 256;
/// The most bytes of a write by which the device tells something.
const TOLD: usize = 64;
/// Narrow reads of a fresh page that are no polls, after which it is data.
const READS: u8 = 64;

/// Pinned memory.
struct Region {
    start: AtomicUsize,
    /// Zero if the place is free.
    len: AtomicUsize,
    /// The state of each page.
    states: AtomicPtr<AtomicU8>,
}

static REGIONS: [Region; MOST] = [const {
    Region { start: AtomicUsize::new(0), len: AtomicUsize::new(0), states: AtomicPtr::new(std::ptr::null_mut()) }
}; MOST];
/// Places of the table that were ever used.
static USED: AtomicUsize = AtomicUsize::new(0);
/// Whether pages were opened since all were armed.
static OPENED: AtomicBool = AtomicBool::new(false);

/// What is lent, and the last page that was opened.
struct Loans {
    pages: [usize; LENT],
    count: usize,
    /// Where the last opened range ended, and its pages.
    last: (usize, usize),
    /// Narrow reads of the fresh page that was read last.
    reads: (usize, u8),
}

static LOANS: Mutex<Loans> = Mutex::new(Loans { pages: [0; LENT], count: 0, last: (0, 0), reads: (0, 0) });

fn loans() -> MutexGuard<'static, Loans> {
    LOANS.lock().unwrap_or_else(PoisonError::into_inner)
}

type Protect = unsafe extern "C" fn(*mut c_void, usize, i32) -> i32;

/// Finds the C library's function, before a handler needs it.
pub(crate) fn prepare() {
    let _ = real!(mprotect as Protect);
}

fn protect(at: usize, len: usize, protection: i32) {
    // SAFETY: the pages are the program's, which has pinned them; who accesses them meanwhile traps
    // and waits for the card's lock.
    unsafe { real!(mprotect as Protect)(std::ptr::with_exposed_provenance_mut(at), len, protection) };
}

fn close(at: usize, len: usize) {
    protect(at, len, libc::PROT_NONE);
}

fn open_up(at: usize, len: usize) {
    protect(at, len, libc::PROT_READ | libc::PROT_WRITE);
}

fn regions() -> impl Iterator<Item = &'static Region> {
    REGIONS[..USED.load(Ordering::Acquire).min(MOST)].iter().filter(|region| region.len.load(Ordering::Acquire) != 0)
}

/// The watched region that holds address `at`.
fn region_of(at: usize) -> Option<&'static Region> {
    regions().find(|region| {
        let start = region.start.load(Ordering::Relaxed);
        at >= start && at - start < region.len.load(Ordering::Relaxed)
    })
}

impl Region {
    /// The states of the pages that `len` bytes at `at` touch, and where the first of them begins.
    fn states(&self, at: usize, len: usize) -> (usize, &'static [AtomicU8]) {
        let (start, size) = (self.start.load(Ordering::Relaxed), self.len.load(Ordering::Relaxed));
        let first = at.max(start) - start;
        let end = at.saturating_add(len).min(start + size).saturating_sub(start);
        if first >= end {
            return (at, &[]);
        }
        let (first, end) = (first / PAGE, end.div_ceil(PAGE));
        let states = self.states.load(Ordering::Relaxed);
        // SAFETY: there is a state for each page of the region, and they are freed under the card's
        // lock only.
        (start + first * PAGE, unsafe { std::slice::from_raw_parts(states.add(first), end - first) })
    }
}

/// Whether the page of `at` is pinned, and watched or not: such a trap is the card's.
#[inline]
pub(crate) fn covers(at: usize) -> bool {
    USED.load(Ordering::Relaxed) != 0 && region_of(at).is_some()
}

/// Whether a page of a range is pinned.
pub(crate) fn covers_any(at: usize, len: usize) -> bool {
    USED.load(Ordering::Relaxed) != 0 && is_known(at, len)
}

/// Whether an access to `len` bytes at `at` would trap.
#[inline]
pub(crate) fn is_watched(at: usize, len: usize) -> bool {
    if USED.load(Ordering::Relaxed) == 0 {
        return false;
    }
    regions().any(|region| region.states(at, len).1.iter().any(|state| state.load(Ordering::Relaxed) != OPEN))
}

/// Watches memory that was pinned.
pub(crate) fn add(at: usize, len: usize) {
    let used = USED.load(Ordering::Relaxed).min(MOST);
    let free = REGIONS[..used].iter().position(|region| region.len.load(Ordering::Relaxed) == 0);
    let Some(place) = REGIONS.get(free.unwrap_or(used)) else { return };
    if is_known(at, len) {
        return;
    }
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    let pages = (len / PAGE).next_multiple_of(PAGE);
    let Some(states) = crate::maps::real_mmap(0, pages, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) else {
        return;
    };
    place.start.store(at, Ordering::Relaxed);
    place.states.store(std::ptr::with_exposed_provenance_mut(states), Ordering::Relaxed);
    place.len.store(len, Ordering::Release);
    USED.fetch_max(free.unwrap_or(used) + 1, Ordering::Release);
    place.states(at, len).1.iter().for_each(|state| state.store(FRESH, Ordering::Relaxed));
    close(at, len);
}

/// Whether a page of a range is watched already.
fn is_known(at: usize, len: usize) -> bool {
    regions().any(|region| !region.states(at, len).1.is_empty())
}

/// Memory is unpinned.
pub(crate) fn remove(at: usize, len: usize) {
    let wanted = |r: &&Region| r.start.load(Ordering::Relaxed) == at && r.len.load(Ordering::Relaxed) == len;
    if let Some(region) = regions().find(wanted) {
        open(at, len);
        region.len.store(0, Ordering::Release);
        let states = region.states.load(Ordering::Relaxed);
        crate::maps::real_munmap(states.expose_provenance(), (len / PAGE).next_multiple_of(PAGE));
    }
}

/// The program maps, unmaps or protects a range: its pages are as it wants them from now on.
pub(crate) fn give_up(at: usize, len: usize) {
    set(at, len, OPEN);
}

/// Sets the states of a range, and leaves its rights.
fn set(at: usize, len: usize, state: u8) {
    for region in regions() {
        region.states(at, len).1.iter().for_each(|page| page.store(state, Ordering::Relaxed));
    }
}

/// Gives a range back to the program, until the device tells something there.
pub(crate) fn open(at: usize, len: usize) {
    for region in regions() {
        let (start, states) = region.states(at, len);
        if states.iter().any(|state| state.load(Ordering::Relaxed) != OPEN) {
            states.iter().for_each(|state| state.store(OPEN, Ordering::Relaxed));
            open_up(start, states.len() * PAGE);
        }
    }
    OPENED.store(true, Ordering::Relaxed);
}

/// The program uses `len` bytes at `at` as data: the fresh pages are opened; where it goes through
/// them one after the other, more and more at a time.
pub(crate) fn used_as_data(at: usize, len: usize) {
    let Some(region) = region_of(at) else { return };
    let mut loans = loans();
    let (start, _) = region.states(at, len.max(1));
    let wanted = (at + len.max(1) - start).div_ceil(PAGE);
    let pages = if loans.last.0 == start { (2 * loans.last.1).min(AHEAD) } else { 1 }.max(wanted);
    let (_, states) = region.states(start, pages * PAGE);
    let fresh = states.iter().take_while(|state| state.load(Ordering::Relaxed) == FRESH);
    let count = fresh.map(|state| state.store(OPEN, Ordering::Relaxed)).count();
    if count > 0 {
        open_up(start, count * PAGE);
        loans.last = (start + count * PAGE, count);
        OPENED.store(true, Ordering::Relaxed);
    }
}

/// The program reads a word, and does not poll it: a fresh page is data when it does so often.
pub(crate) fn read_once(at: usize, len: usize) {
    let page = at & !(PAGE - 1);
    let often = {
        let mut loans = loans();
        let count = if loans.reads.0 == page { loans.reads.1 + 1 } else { 1 };
        loans.reads = (page, count % READS);
        count == READS
    };
    if often {
        used_as_data(at, len);
    }
}

/// A word is polled, or the device has told something: the pages trap from now on.
pub(crate) fn is_mailbox(at: usize, len: usize) {
    for region in regions() {
        let (start, states) = region.states(at, len);
        for (index, state) in states.iter().enumerate() {
            let before = state.swap(MAILBOX, Ordering::Relaxed);
            if before == OPEN {
                lent(start + index * PAGE);
            }
        }
    }
}

/// The device is about to write `len` bytes at `at`: what is no message is data.
pub(crate) fn device_writes(at: usize, len: usize) {
    if USED.load(Ordering::Relaxed) != 0 {
        if len > TOLD {
            used_as_data(at, len);
        }
        lend(at, len);
    }
}

/// The device has written `len` bytes at `at`.
pub(crate) fn device_wrote(at: usize, len: usize) {
    if len <= TOLD && USED.load(Ordering::Relaxed) != 0 {
        is_mailbox(at, len);
    }
}

/// Notes that a page has rights for now.
fn lent(page: usize) {
    let mut loans = loans();
    let count = loans.count;
    if loans.pages[..count].contains(&page) {
        return;
    }
    if count == LENT {
        take_back(&mut loans);
    }
    let count = loans.count;
    loans.pages[count] = page;
    loans.count = count + 1;
}

/// Gives rights to the pages of a range until [`restore`].
pub(crate) fn lend(at: usize, len: usize) {
    if USED.load(Ordering::Relaxed) == 0 {
        return;
    }
    for region in regions() {
        let (start, states) = region.states(at, len);
        if states.is_empty() {
            continue;
        }
        {
            let mut loans = loans();
            if loans.count + states.len() > LENT {
                take_back(&mut loans);
            }
        }
        for (index, state) in states.iter().enumerate() {
            let page = start + index * PAGE;
            if state.load(Ordering::Relaxed) == OPEN || is_lent(page) {
                continue;
            }
            open_up(page, PAGE);
            lent(page);
        }
    }
}

fn is_lent(page: usize) -> bool {
    let loans = loans();
    loans.pages[..loans.count].contains(&page)
}

fn take_back(loans: &mut Loans) {
    for &page in &loans.pages[..std::mem::take(&mut loans.count)] {
        let state = region_of(page).and_then(|region| region.states(page, 1).1.first());
        if state.is_some_and(|state| state.load(Ordering::Relaxed) != OPEN) {
            close(page, PAGE);
        }
    }
}

/// Takes all loans back.
#[inline]
pub(crate) fn restore() {
    if USED.load(Ordering::Relaxed) != 0 {
        take_back(&mut loans());
    }
}

/// Watches all pages anew: the program may poll one that it has used as data.
pub(crate) fn arm() {
    if !OPENED.swap(false, Ordering::Relaxed) {
        return;
    }
    for region in regions() {
        let (start, len) = (region.start.load(Ordering::Relaxed), region.len.load(Ordering::Relaxed));
        let (_, states) = region.states(start, len);
        if states.iter().any(|state| state.load(Ordering::Relaxed) == OPEN) {
            for state in states {
                let _ = state.compare_exchange(OPEN, FRESH, Ordering::Relaxed, Ordering::Relaxed);
            }
            close(start, len);
        }
    }
}

/// A child has no card: the memory is its own.
pub(crate) fn in_child() {
    for region in regions() {
        open_up(region.start.load(Ordering::Relaxed), region.len.load(Ordering::Relaxed));
        region.len.store(0, Ordering::Relaxed);
    }
}
