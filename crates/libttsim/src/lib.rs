//! The simulated card as a shared library with the ten entry points of libttsim 1.10, which tt-umd,
//! tt-metal, ttnn and tt-exalens load.
//!
//! Follows the public interface description `docs/libttsim_api.md` of `tenstorrent/ttsim`. A
//! process has one card; calls of several threads wait for each other, and one from a call-back is
//! refused. Where that interface ends the process, this library does not: what the host asks
//! wrongly, and what a program on the chip does wrongly, is told on standard error and answered
//! with ones, as a PCI bus answers for a device that is gone ([`tilework_pci_device`]). Only a host
//! that polls a stopped chip on and on is ended. The environment variables that count:
//!
//! - `TILEWORK_ON_FAULT=abort` ends the process at the first fault or wrong access, `ones` never;
//! - `TILEWORK_BOARD=p100|p150|p300` chooses the card, instead of the one that the file was made
//!   for ([`board`]);
//! - `TILEWORK_WITHOUT_BUGS=NAME,...` leaves out documented bugs of the chip;
//! - `TILEWORK_THREADS=N` limits the threads that run the tiles when many are busy;
//! - `TILEWORK_COVERAGE=FILE` writes which Tensix instructions were executed, in which modes, when
//!   the card is powered off: text, or JSON if FILE ends in .json;
//! - `TILEWORK_CHECKS=WORDS`, `TILEWORK_ALLOW`, `TILEWORK_FINDINGS=FILE` look for wrong accesses
//!   and races, `TILEWORK_TRACE=FILE`, `TILEWORK_TRACE_CYCLES`, `TILEWORK_TRACE_TILES` write a
//!   timeline, `TILEWORK_HTML=FILE` a page of pictures (docs/card.md).
//!
//! Nothing else of the process is touched: no other files but, for the source lines of findings,
//! ELF files in the folder `TT_METAL_CACHE`, which are read; no signals, no threads but these,
//! which work during a call only. The chip's memories are taken up as they are used, in large pages
//! where the system has them. A process that forks between calls has two independent cards.

#![warn(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)]

mod board;

use std::cell::Cell;
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};
use tilework_pci_device::{Card, Kind, say};
use tilework_sim::HostBus;

/// Reads host memory for the device: bus address, destination, bytes.
pub type DmaRead = unsafe extern "C" fn(u64, *mut c_void, u32);
/// Writes host memory for the device: bus address, source, bytes.
pub type DmaWrite = unsafe extern "C" fn(u64, *const c_void, u32);

/// Not the caller's allocator: it asks the system for large pages. The state of 140 tiles takes
/// more small ones than the host's TLB holds (docs/benchmarks.md). Miri cannot call it.
#[cfg(not(miri))]
#[global_allocator]
static MEMORY: mimalloc::MiMalloc = mimalloc::MiMalloc;

struct Library {
    card: Option<Card>,
    dma: Option<(DmaRead, DmaWrite)>,
    /// A call has failed inside the simulator: the card is in no state that anybody knows.
    broken: bool,
    /// What [`QUIET`] was at the end of the last call.
    granted: u64,
}

/// One call at a time: others wait.
static LIBRARY: Mutex<Library> = Mutex::new(Library { card: None, dma: None, broken: false, granted: 0 });

/// How many cycles can pass without the card, because nothing happens in them; none during a call.
/// Drivers let one cycle pass at a time, and mostly that is all there is to do.
static QUIET: AtomicU64 = AtomicU64::new(0);

/// Lets cycles pass if nothing happens in them.
#[inline]
fn passes_quietly(cycles: u64) -> bool {
    let left = |quiet: u64| if cycles == 0 { None } else { quiet.checked_sub(cycles) };
    QUIET.fetch_update(Ordering::Relaxed, Ordering::Relaxed, left).is_ok()
}

impl Library {
    /// The card comes to the cycles that have passed without it.
    fn catch_up(&mut self) {
        let passed = std::mem::take(&mut self.granted) - QUIET.swap(0, Ordering::Relaxed);
        if let Some(card) = &mut self.card {
            card.pass_quietly(passed);
        }
    }

    /// Lets the cycles in which nothing happens pass without the card, until the next call.
    fn grant(&mut self) {
        self.granted = self.card.as_ref().map_or(0, Card::quiet_cycles);
        QUIET.store(self.granted, Ordering::Relaxed);
    }
}

thread_local! {
    /// Whether this thread is inside of a call, or of a call-back that a call makes on it.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Marks this thread as being inside of a call, for as long as it lives.
struct Inside;

impl Inside {
    /// `None` if it is already.
    fn enter() -> Option<Self> {
        (!INSIDE.replace(true)).then(|| Self)
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        INSIDE.set(false);
    }
}

/// The host's memory behind the call-backs of [`libttsim_set_pci_dma_mem_callbacks`].
struct CallBacks(DmaRead, DmaWrite);

impl HostBus for CallBacks {
    fn read(&self, addr: u64, out: &mut [u8]) {
        // The chip's own threads call back, too, while the caller's waits for them.
        let _inside = Inside::enter();
        // A packet of the NoC carries 16 KiB at most.
        let size = u32::try_from(out.len()).unwrap_or(u32::MAX);
        // SAFETY: the host gave the function for this purpose; `out` has `size` writable bytes or
        // more, which are the simulator's own.
        unsafe { self.0(addr, out.as_mut_ptr().cast(), size) }
    }
    fn write(&self, addr: u64, data: &[u8]) {
        let _inside = Inside::enter();
        let size = u32::try_from(data.len()).unwrap_or(u32::MAX);
        // SAFETY: the host gave the function for this purpose; `data` has `size` readable bytes or
        // more, which are the simulator's own.
        unsafe { self.1(addr, data.as_ptr().cast(), size) }
    }
}

/// The library for one call; waits while another thread has it. `None` in a call-back, which would
/// wait for itself.
fn locked(name: &str) -> Option<(Inside, MutexGuard<'static, Library>)> {
    let Some(inside) = Inside::enter() else {
        say(Kind::Nested, &format!("{name} was called from a call-back of another call; nothing was done"));
        return None;
    };
    // No panic leaves a call with the lock held; a poisoned lock would tell nothing but that.
    let mut library = LIBRARY.lock().unwrap_or_else(PoisonError::into_inner);
    library.catch_up();
    Some((inside, library))
}

/// Runs `what` on the library.
fn with<R>(name: &str, otherwise: R, what: impl FnOnce(&mut Library) -> R) -> R {
    let Some((_inside, mut library)) = locked(name) else { return otherwise };
    if library.broken {
        let what = "after a failure inside the simulator; nothing was done. libttsim_init starts anew";
        say(Kind::Defect, &format!("{name} was called {what}"));
        return otherwise;
    }
    // A panic is a defect of the simulator. It must not unwind into the caller, which is not Rust.
    if let Ok(result) = catch_unwind(AssertUnwindSafe(|| what(&mut library))) {
        return result;
    }
    library.broken = true;
    let what = "this is a defect of it. Every later call answers with ones, until libttsim_init";
    say(Kind::Defect, &format!("{name} failed inside the simulator; {what}"));
    otherwise
}

/// Runs `what` on the card, if there is one.
fn on_card<R: Copy>(name: &str, otherwise: R, what: impl FnOnce(&mut Card) -> R) -> R {
    with(name, otherwise, |library| match &mut library.card {
        Some(card) => {
            let result = what(card);
            library.grant();
            result
        }
        None => {
            let what = "before libttsim_init or after libttsim_exit; nothing was done";
            say(Kind::Power, &format!("{name} was called {what}"));
            otherwise
        }
    })
}

/// Gives up a card that failed, so that there can be a new one.
fn recover() {
    let Some((_inside, mut library)) = locked("libttsim_init") else { return };
    if std::mem::take(&mut library.broken) {
        let card = library.card.take();
        // What is left of it may fail once more.
        let _ = catch_unwind(AssertUnwindSafe(|| drop(card)));
    }
}

unsafe extern "C" {
    /// C's: what is called when the process ends or the library is unloaded.
    fn atexit(call: extern "C" fn()) -> i32;
}

/// Tells what was found on a card that nobody has powered off.
extern "C" fn at_end() {
    let Some((_inside, mut library)) = locked("the end of the process") else { return };
    let broken = library.broken;
    if let Some(card) = library.card.as_mut().filter(|_| !broken) {
        // A panic must not unwind into the caller; there is nobody left to be told.
        let _ = catch_unwind(AssertUnwindSafe(|| card.end()));
    }
}

/// Powers the card on.
#[unsafe(no_mangle)]
pub extern "C" fn libttsim_init() {
    recover();
    with("libttsim_init", (), |library| {
        if library.card.is_some() {
            say(Kind::Power, "libttsim_init was called twice without libttsim_exit; the card that runs stays");
            return;
        }
        let bus = library.dma.map(|(read, write)| -> Box<dyn HostBus> { Box::new(CallBacks(read, write)) });
        match Card::new(board::chosen(), bus) {
            Ok(card) => {
                static AT_END: Once = Once::new();
                if card.is_looked_at() {
                    // SAFETY: the function is called once and touches nothing of the caller's. It
                    // stays valid: C calls it before the library is unloaded.
                    AT_END.call_once(|| _ = unsafe { atexit(at_end) });
                }
                library.card = Some(card);
            }
            Err(error) => say(Kind::Power, &error),
        }
    });
}

/// Powers the card off. After it, [`libttsim_init`] gives a new one.
#[unsafe(no_mangle)]
pub extern "C" fn libttsim_exit() {
    on_card("libttsim_exit", (), |_| ());
    with("libttsim_exit", (), |library| {
        if let Some(card) = library.card.take() {
            card.exit();
        }
    });
}

/// Tells how the device reaches host memory. Counts from the next [`libttsim_init`] on.
#[unsafe(no_mangle)]
pub extern "C" fn libttsim_set_pci_dma_mem_callbacks(read: Option<DmaRead>, write: Option<DmaWrite>) {
    with("libttsim_set_pci_dma_mem_callbacks", (), |library| {
        if library.card.is_some() {
            let what = "was called after libttsim_init; it counts from the next one on";
            say(Kind::Power, &format!("libttsim_set_pci_dma_mem_callbacks {what}"));
        }
        library.dma = read.zip(write);
    });
}

/// Reads a word of PCI configuration space.
#[unsafe(no_mangle)]
pub extern "C" fn libttsim_pci_config_rd32(bus_device_function: u32, offset: u32) -> u32 {
    on_card("libttsim_pci_config_rd32", u32::MAX, |card| card.config_read(bus_device_function, offset))
}

/// Writes a word of PCI configuration space.
#[unsafe(no_mangle)]
pub extern "C" fn libttsim_pci_config_wr32(bus_device_function: u32, offset: u32, data: u32) {
    on_card("libttsim_pci_config_wr32", (), |card| card.config_write(bus_device_function, offset, data));
}

/// Reads the card's memory at bus address `paddr`. Call-backs may write `dst` meanwhile.
///
/// # Safety
/// `dst` must have room for `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn libttsim_pci_mem_rd_bytes(paddr: u64, dst: *mut c_void, size: u32) {
    // SAFETY: the caller's promise.
    unsafe { fill_with_ones(dst, size) };
    if dst.is_null() || size == 0 {
        return;
    }
    on_card("libttsim_pci_mem_rd_bytes", (), |card| {
        if let Some(data) = card.read(paddr, size as usize) {
            // SAFETY: the caller's promise; not null. `data` has `size` bytes of the library's own.
            unsafe { std::ptr::copy_nonoverlapping(data.as_ptr(), dst.cast::<u8>(), data.len()) };
        }
    });
}

/// Writes the card's memory at bus address `paddr`.
///
/// # Safety
/// `src` must have `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn libttsim_pci_mem_wr_bytes(paddr: u64, src: *const c_void, size: u32) {
    const CALL: &str = "libttsim_pci_mem_wr_bytes";
    if src.is_null() || size == 0 {
        return;
    }
    let len = size as usize;
    on_card(CALL, (), |card| {
        let (mut word, mut long) = ([0; WORD], Vec::new());
        let copy = if len <= WORD {
            &mut word[..len]
        } else if long.try_reserve_exact(len).is_ok() {
            long.resize(len, 0);
            &mut long[..]
        } else {
            return say(Kind::Memory, &format!("{CALL}: not enough memory for {len} bytes"));
        };
        // A copy, because call-backs may write the caller's bytes meanwhile.
        // SAFETY: the caller's promise; not null. `copy` has `len` bytes of the library's own.
        unsafe { std::ptr::copy_nonoverlapping(src.cast::<u8>(), copy.as_mut_ptr(), len) };
        card.write(paddr, copy);
    });
}

/// Bytes of a write that needs no memory for its copy: most write a word.
const WORD: usize = 64;

/// Lets `n_clocks` cycles of the AI clock pass.
#[unsafe(no_mangle)]
pub extern "C" fn libttsim_clock(n_clocks: u32) {
    if !passes_quietly(n_clocks.into()) {
        on_card("libttsim_clock", (), |card| card.clock(n_clocks));
    }
}

/// Not for this chip: there the host reaches tiles through the BARs.
///
/// # Safety
/// `dst` must have room for `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn libttsim_tile_rd_bytes(x: u32, y: u32, addr: u64, dst: *mut c_void, size: u32) {
    // SAFETY: the caller's promise.
    unsafe { fill_with_ones(dst, size) };
    on_card("libttsim_tile_rd_bytes", (), |card| card.no_tile_access("libttsim_tile_rd_bytes", x, y, addr));
}

/// Not for this chip: there the host reaches tiles through the BARs.
///
/// # Safety
/// `src` must have `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn libttsim_tile_wr_bytes(x: u32, y: u32, addr: u64, _src: *const c_void, _size: u32) {
    on_card("libttsim_tile_wr_bytes", (), |card| card.no_tile_access("libttsim_tile_wr_bytes", x, y, addr));
}

/// What the caller has when a read does nothing.
///
/// # Safety
/// `dst` must have room for `size` bytes, or be null.
unsafe fn fill_with_ones(dst: *mut c_void, size: u32) {
    if !dst.is_null() {
        // SAFETY: the caller's promise; not null. The bytes may be uninitialised: they are written
        // only.
        unsafe { dst.cast::<u8>().write_bytes(0xFF, size as usize) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One test, because a process has one library.
    #[test]
    fn a_defect_is_told_answered_with_ones_and_gone_after_init() {
        let read = || libttsim_pci_config_rd32(0, 0);
        libttsim_init();
        assert_eq!(read(), 0xB140_1E52);
        with("test", (), |_| panic!("a defect"));
        assert_eq!(read(), u32::MAX);
        libttsim_init();
        assert_eq!(read(), 0xB140_1E52);
        // Also when the lock itself was poisoned.
        let holder = std::thread::spawn(|| {
            let _held = LIBRARY.lock();
            panic!("while the lock is held");
        });
        assert!(holder.join().is_err() && LIBRARY.is_poisoned());
        libttsim_exit();
        libttsim_init();
        assert_eq!(read(), 0xB140_1E52);
        libttsim_exit();
        assert_eq!(read(), u32::MAX);
    }
}
