//! The client's side of the libttsim interface: loads a shared object and drives the chip behind
//! it.
//!
//! Follows `docs/libttsim_api.md` of the public repository `tenstorrent/ttsim` (the ten entry
//! points) and, for the windows, [`tilework_abi::tlb`]. Nothing here knows which library answers,
//! so the differential rig and the benchmarks ask both sides in the same words, and [`LibraryChip`]
//! lets the runtime run programs on any of them. The interface is a process-wide singleton: one
//! [`Client`] to a process at a time.

#![warn(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)]

mod link;

pub use link::LibraryChip;

use std::collections::HashMap;
use std::ffi::{OsStr, c_void};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use libloading::Library;
use tilework_abi::convert::{u32_of, usize_of};
use tilework_abi::noc::NocXy;
use tilework_abi::pci;
use tilework_abi::tlb::{self, Bar, Window, WindowSize};

/// Why a library cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// It cannot be loaded.
    #[error("{0} cannot be loaded")]
    Load(String, #[source] libloading::Error),
    /// It lacks an entry point.
    #[error("{0} has no {1}")]
    Missing(String, &'static str, #[source] libloading::Error),
    /// The interface knows one card for a process.
    #[error("{0} cannot be opened: this process has a library with this interface open")]
    InUse(String),
    /// The card behind it is another.
    #[error("{0} is no Blackhole: config word 0 is {1:#010x}")]
    NotBlackhole(String, u32),
}

/// Config word 0 of a Blackhole.
pub const PCI_ID: u32 = (pci::DEVICE as u32) << 16 | pci::VENDOR as u32;

type ReadCallback = extern "C" fn(u64, *mut c_void, u32);
type WriteCallback = extern "C" fn(u64, *const c_void, u32);

/// Host memory that the device reaches by DMA, from address zero.
static HOST: Mutex<Vec<u8>> = Mutex::new(Vec::new());

/// The host memory; a poisoned lock is no reason to lose it.
fn host() -> MutexGuard<'static, Vec<u8>> {
    HOST.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The part of host memory that a DMA transfer means, if all of it is there.
fn host_range(at: u64, len: u32, size: usize) -> Option<std::ops::Range<usize>> {
    let start = usize::try_from(at).ok()?;
    let end = start.checked_add(usize::try_from(len).ok()?)?;
    (end <= size).then_some(start..end)
}

extern "C" fn dma_read(at: u64, out: *mut c_void, len: u32) {
    let host = host();
    let out = out.cast::<u8>();
    match host_range(at, len, host.len()) {
        // SAFETY: the library passes a buffer of `len` bytes, as its interface says, perhaps an
        // uninitialised one; the range has as many, which are this process's own.
        Some(range) => unsafe { out.copy_from_nonoverlapping(host[range].as_ptr(), len as usize) },
        // What a root complex answers for an address that nobody has.
        // SAFETY: as above.
        None => unsafe { out.write_bytes(0xFF, len as usize) },
    }
}

extern "C" fn dma_write(at: u64, data: *const c_void, len: u32) {
    let mut host = host();
    if let Some(range) = host_range(at, len, host.len()) {
        // SAFETY: the library passes `len` bytes, as its interface says; the range has as many.
        unsafe { host[range].as_mut_ptr().copy_from_nonoverlapping(data.cast::<u8>(), len as usize) };
    }
}

/// Whether a [`Client`] exists.
static IN_USE: AtomicBool = AtomicBool::new(false);

/// The right to be the only [`Client`]; given back when it is dropped.
struct Lease;

impl Lease {
    fn take() -> Option<Self> {
        (!IN_USE.swap(true, Ordering::AcqRel)).then(|| Self)
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        IN_USE.store(false, Ordering::Release);
    }
}

/// A loaded library with the chip initialised.
pub struct Client {
    init: extern "C" fn(),
    exit: extern "C" fn(),
    config_rd32: extern "C" fn(u32, u32) -> u32,
    mem_rd: extern "C" fn(u64, *mut c_void, u32),
    mem_wr: extern "C" fn(u64, *const c_void, u32),
    clock: extern "C" fn(u32),
    /// Bus addresses of BAR0, BAR2 and BAR4.
    bars: [u64; 3],
    /// What each window shows now, as its register words.
    windows: HashMap<u32, [u32; 3]>,
    /// Keeps the code loaded.
    _library: Library,
    /// Dropped last.
    _lease: Lease,
}

impl Client {
    /// Loads `library`, gives it `host_bytes` of host memory and starts the chip.
    ///
    /// # Errors
    /// A file that is not such a library, a chip that is not a Blackhole, or another client.
    pub fn open(library: &OsStr, host_bytes: usize) -> Result<Self, OpenError> {
        let name = library.display().to_string();
        let lease = Lease::take().ok_or_else(|| OpenError::InUse(name.clone()))?;
        *host() = vec![0; host_bytes];
        // SAFETY: loading runs the library's initialisers; the caller chose it to be run.
        let loaded = unsafe { Library::new(library) }.map_err(|error| OpenError::Load(name.clone(), error))?;
        macro_rules! entry {
            ($name:literal as $kind:ty) => {{
                // SAFETY: the symbol has this signature by the interface's document.
                let symbol = unsafe { loaded.get::<$kind>($name.as_bytes()) };
                *symbol.map_err(|error| OpenError::Missing(name.clone(), $name, error))?
            }};
        }
        let init = entry!("libttsim_init" as extern "C" fn());
        let set_callbacks = entry!("libttsim_set_pci_dma_mem_callbacks" as extern "C" fn(ReadCallback, WriteCallback));
        let mut client = Self {
            init,
            exit: entry!("libttsim_exit" as extern "C" fn()),
            config_rd32: entry!("libttsim_pci_config_rd32" as extern "C" fn(u32, u32) -> u32),
            mem_rd: entry!("libttsim_pci_mem_rd_bytes" as extern "C" fn(u64, *mut c_void, u32)),
            mem_wr: entry!("libttsim_pci_mem_wr_bytes" as extern "C" fn(u64, *const c_void, u32)),
            clock: entry!("libttsim_clock" as extern "C" fn(u32)),
            bars: [0; 3],
            windows: HashMap::new(),
            _library: loaded,
            _lease: lease,
        };
        set_callbacks(dma_read, dma_write);
        init();
        let id = client.config(0);
        if id != PCI_ID {
            return Err(OpenError::NotBlackhole(name, id));
        }
        client.bars = Bar::ALL.map(|bar| {
            let [low, high] = [0, 4].map(|at| u64::from(client.config(bar.config_offset() + at)));
            // The low four bits say what kind of BAR it is.
            (high << 32 | low) & !0xF
        });
        Ok(client)
    }

    /// Powers the card off and on again.
    pub fn restart(&mut self) {
        (self.exit)();
        (self.init)();
        self.windows.clear();
    }

    /// Bus address of a BAR.
    pub const fn bar(&self, bar: Bar) -> u64 {
        match bar {
            Bar::Bar0 => self.bars[0],
            Bar::Bar2 => self.bars[1],
            Bar::Bar4 => self.bars[2],
        }
    }

    /// Reads a word of configuration space of any bus, device and function.
    pub fn config_of(&self, bus_device_function: u32, offset: u32) -> u32 {
        (self.config_rd32)(bus_device_function, offset)
    }

    /// Reads a word of configuration space of device 0.
    pub fn config(&self, offset: u32) -> u32 {
        self.config_of(0, offset)
    }

    /// Lets the chip run `n` clocks.
    pub fn clock(&self, n: u32) {
        (self.clock)(n);
    }

    /// Reads from a BAR.
    pub fn bar_read(&self, bar: Bar, offset: u64, out: &mut [u8]) {
        self.bus_read(self.bar(bar) + offset, out);
    }

    /// Writes to a BAR.
    pub fn bar_write(&self, bar: Bar, offset: u64, data: &[u8]) {
        (self.mem_wr)(self.bar(bar) + offset, data.as_ptr().cast(), u32_of(data.len()));
    }

    /// Reads from a bus address.
    pub fn bus_read(&self, address: u64, out: &mut [u8]) {
        (self.mem_rd)(address, out.as_mut_ptr().cast(), u32_of(out.len()));
    }

    /// Makes window `index` show `window`, unless it does; returns the BAR and the offset of its
    /// first byte.
    pub fn map(&mut self, index: u32, window: Window) -> (Bar, u64) {
        let size = WindowSize::of_window(index);
        let words = window.encode(size);
        if self.windows.insert(index, words) != Some(words) {
            for (word, at) in words.into_iter().zip((0..).step_by(4)) {
                let offset = tlb::REGS + tlb::REG_BYTES * u64::from(index) + at;
                self.bar_write(Bar::Bar0, offset, &word.to_le_bytes());
            }
        }
        (size.bar(), tlb::window_offset(index))
    }

    /// Writes to a tile, or to a rectangle of tiles, through window `index`, as many times over as
    /// the window is too small.
    pub fn write(&mut self, index: u32, to: Window, addr: u64, data: &[u8]) {
        let size = WindowSize::of_window(index).bytes();
        let (mut addr, mut rest) = (addr, data);
        while !rest.is_empty() {
            let offset = addr % size;
            let (now, later) = rest.split_at(rest.len().min(usize_of(size - offset)));
            let (bar, base) = self.map(index, Window { address: addr - offset, ..to });
            self.bar_write(bar, base + offset, now);
            (addr, rest) = (addr + now.len() as u64, later);
        }
    }

    /// Reads from a tile through window `index`, as many times over as the window is too small.
    pub fn read(&mut self, index: u32, from: Window, addr: u64, out: &mut [u8]) {
        let size = WindowSize::of_window(index).bytes();
        let (mut addr, mut rest) = (addr, out);
        while !rest.is_empty() {
            let offset = addr % size;
            let (now, later) = rest.split_at_mut(rest.len().min(usize_of(size - offset)));
            let (bar, base) = self.map(index, Window { address: addr - offset, ..from });
            self.bar_read(bar, base + offset, now);
            (addr, rest) = (addr + now.len() as u64, later);
        }
    }

    /// Writes a word of a tile, in strict order, through window [`WINDOW`].
    pub fn write_word(&mut self, tile: NocXy, addr: u32, value: u32) {
        self.write(WINDOW, strict(tile), u64::from(addr), &value.to_le_bytes());
    }

    /// Reads a word of a tile, in strict order, through window [`WINDOW`].
    pub fn read_word(&mut self, tile: NocXy, addr: u32) -> u32 {
        let mut word = [0; 4];
        self.read(WINDOW, strict(tile), u64::from(addr), &mut word);
        u32::from_le_bytes(word)
    }

    /// Adds `len` bytes to the host memory, all zero; returns the bus address of the first.
    pub fn host_grow(len: usize) -> usize {
        let mut host = host();
        let at = host.len();
        match at {
            // Zero pages of the system, which cost nothing until they are touched.
            0 => *host = vec![0; len],
            _ => host.resize(at + len, 0),
        }
        at
    }

    /// Reads host memory.
    pub fn host_read(at: usize, out: &mut [u8]) {
        out.copy_from_slice(&host()[at..at + out.len()]);
    }

    /// Writes host memory.
    pub fn host_write(at: usize, data: &[u8]) {
        host()[at..at + data.len()].copy_from_slice(data);
    }

    /// Sets `len` bytes of host memory to zero.
    pub fn host_clear(at: usize, len: usize) {
        host()[at..at + len].fill(0);
    }
}

/// The window of the plain accessors: any but the kernel driver's own.
pub const WINDOW: u32 = 180;

/// A window onto `tile` in strict order.
pub const fn strict(tile: NocXy) -> Window {
    Window { ordering: Some(tlb::Ordering::Strict), ..Window::unicast(tile, 0) }
}

impl Drop for Client {
    fn drop(&mut self) {
        (self.exit)();
    }
}
