//! The simulated card as a shared library with the ten entry points of libttsim 1.10, which tt-umd,
//! tt-metal, ttnn and tt-exalens load.
//!
//! Follows the public interface description `docs/libttsim_api.md` of `tenstorrent/ttsim`. A
//! process has one card; calls come one at a time. Where that interface ends the process, this
//! library does not: what the host asks wrongly, and what a program on the chip does wrongly, is
//! told on standard error and answered with ones, as a PCI bus answers for a device that is gone
//! (see [`card`]). The environment variables that count:
//!
//! - `TILEWORK_ON_FAULT=abort` ends the process at the first fault;
//! - `TILEWORK_BOARD=p100|p150|p300` chooses the card, instead of the one that the file was made
//!   for ([`board`]);
//! - `TILEWORK_WITHOUT_BUGS=NAME,...` leaves out documented bugs of the chip;
//! - `TILEWORK_THREADS=N` limits the threads that run the tiles when many are busy;
//! - `TILEWORK_COVERAGE=FILE` writes which Tensix instructions were executed, in which modes, when
//!   the card is powered off: text, or JSON if FILE ends in .json.
//!
//! Nothing else of the process is touched: no other files, no signals, no threads but these, which
//! work during a call only. The chip's memories are taken up as they are used. A process that forks
//! between calls has two independent cards.

#![warn(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)]

mod board;
mod card;
mod config;

use card::Card;
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use tilework_sim::HostBus;

/// Reads host memory for the device: bus address, destination, bytes.
pub type DmaRead = unsafe extern "C" fn(u64, *mut c_void, u32);
/// Writes host memory for the device: bus address, source, bytes.
pub type DmaWrite = unsafe extern "C" fn(u64, *const c_void, u32);

struct Library {
    card: Option<Card>,
    dma: Option<(DmaRead, DmaWrite)>,
}

static LIBRARY: Mutex<Library> = Mutex::new(Library { card: None, dma: None });

/// The host's memory behind the call-backs of [`libttsim_set_pci_dma_mem_callbacks`].
struct CallBacks(DmaRead, DmaWrite);

impl HostBus for CallBacks {
    fn read(&self, addr: u64, out: &mut [u8]) {
        // A packet of the NoC carries 16 KiB at most.
        let size = u32::try_from(out.len()).unwrap_or(u32::MAX);
        // SAFETY: the host gave the function for this purpose; `out` has `size` writable bytes or
        // more.
        unsafe { self.0(addr, out.as_mut_ptr().cast(), size) }
    }
    fn write(&self, addr: u64, data: &[u8]) {
        let size = u32::try_from(data.len()).unwrap_or(u32::MAX);
        // SAFETY: the host gave the function for this purpose; `data` has `size` readable bytes or
        // more.
        unsafe { self.1(addr, data.as_ptr().cast(), size) }
    }
}

fn say(what: &str) {
    card::say(what);
}

/// Runs `what` on the library, unless a call is under way already.
fn with<R>(name: &str, otherwise: R, what: impl FnOnce(&mut Library) -> R) -> R {
    // A panic is a defect of the simulator. It must not unwind into the caller, which is not Rust.
    let run = AssertUnwindSafe(|| match LIBRARY.try_lock() {
        Ok(mut library) => Some(what(&mut library)),
        Err(_) => None,
    });
    match catch_unwind(run) {
        Ok(Some(result)) => result,
        Ok(None) => {
            say(&format!(
                "{name} was called while another call was under way, or after a failure inside one; nothing was done"
            ));
            otherwise
        }
        Err(_) => {
            say(&format!(
                "{name} failed inside the simulator; this is a defect of it. Every later call answers with ones"
            ));
            otherwise
        }
    }
}

/// Runs `what` on the card, if there is one.
fn on_card<R>(name: &str, otherwise: R, what: impl FnOnce(&mut Card) -> R) -> R
where
    R: Copy,
{
    with(name, otherwise, |library| match &mut library.card {
        Some(card) => what(card),
        None => {
            say(&format!("{name} was called before libttsim_init or after libttsim_exit; nothing was done"));
            otherwise
        }
    })
}

/// Powers the card on.
#[unsafe(no_mangle)]
pub extern "C" fn libttsim_init() {
    with("libttsim_init", (), |library| {
        if library.card.is_some() {
            say("libttsim_init was called twice without libttsim_exit; the card that runs stays");
            return;
        }
        let bus = library.dma.map(|(read, write)| -> Box<dyn HostBus> { Box::new(CallBacks(read, write)) });
        match Card::new(board::chosen(), bus) {
            Ok(card) => library.card = Some(card),
            Err(error) => say(&error),
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
            say("libttsim_set_pci_dma_mem_callbacks was called after libttsim_init; it counts from the next one on");
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

/// Reads the card's memory at bus address `paddr`.
///
/// # Safety
/// `dst` must have room for `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn libttsim_pci_mem_rd_bytes(paddr: u64, dst: *mut c_void, size: u32) {
    // SAFETY: the caller's promise.
    let Some(out) = (unsafe { bytes_mut(dst, size) }) else { return };
    out.fill(0xFF);
    on_card("libttsim_pci_mem_rd_bytes", (), |card| card.read(paddr, out));
}

/// Writes the card's memory at bus address `paddr`.
///
/// # Safety
/// `src` must have `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn libttsim_pci_mem_wr_bytes(paddr: u64, src: *const c_void, size: u32) {
    if src.is_null() || size == 0 {
        return;
    }
    // SAFETY: the caller's promise; not null.
    let data = unsafe { std::slice::from_raw_parts(src.cast::<u8>(), size as usize) };
    on_card("libttsim_pci_mem_wr_bytes", (), |card| card.write(paddr, data));
}

/// Lets `n_clocks` cycles of the AI clock pass.
#[unsafe(no_mangle)]
pub extern "C" fn libttsim_clock(n_clocks: u32) {
    on_card("libttsim_clock", (), |card| card.clock(n_clocks));
}

/// Not for this chip: there the host reaches tiles through the BARs.
///
/// # Safety
/// `dst` must have room for `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn libttsim_tile_rd_bytes(x: u32, y: u32, addr: u64, dst: *mut c_void, size: u32) {
    // SAFETY: the caller's promise.
    if let Some(out) = unsafe { bytes_mut(dst, size) } {
        out.fill(0xFF);
    }
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

/// The caller's buffer; `None` for nothing.
///
/// # Safety
/// `dst` must have room for `size` bytes, or be null.
unsafe fn bytes_mut<'a>(dst: *mut c_void, size: u32) -> Option<&'a mut [u8]> {
    if dst.is_null() || size == 0 {
        return None;
    }
    // SAFETY: the caller's promise; not null. The bytes may be uninitialised, and are only written.
    Some(unsafe { std::slice::from_raw_parts_mut(dst.cast::<u8>(), size as usize) })
}
