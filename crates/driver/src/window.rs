//! TLB windows: who has which, and where each points.
//!
//! A window remembers what its registers hold and writes them only when that changes, because three
//! register writes cost as much as three accesses. Registers and data travel in order, so a window
//! may be turned right after a write.

use crate::{DriverError, HostLink};
use tilework_abi::convert::usize_of;
use tilework_abi::noc::{NocRect, NocXy};
use tilework_abi::tlb::{self, Ordering, WindowSize};

/// One tile, or a rectangle of Tensix tiles.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Tiles {
    /// One tile, in translated coordinates.
    One(NocXy),
    /// All Tensix tiles of a rectangle, in translated coordinates; for writes.
    Rect(NocRect),
}

/// Where accesses go.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Target {
    /// The tiles.
    pub tiles: Tiles,
    /// 0 or 1.
    pub noc: u8,
    /// Which orders the card keeps.
    pub ordering: Ordering,
}

impl Target {
    /// One tile, through NoC 0, strictly ordered.
    pub const fn tile(xy: NocXy) -> Self {
        Self { tiles: Tiles::One(xy), noc: 0, ordering: Ordering::Strict }
    }
    /// A rectangle of Tensix tiles, through NoC 0, strictly ordered.
    pub const fn rect(rect: NocRect) -> Self {
        Self { tiles: Tiles::Rect(rect), noc: 0, ordering: Ordering::Strict }
    }
    /// The same tiles with another order.
    #[must_use]
    pub const fn ordered(self, ordering: Ordering) -> Self {
        Self { ordering, ..self }
    }
    /// The tile, or the rectangle's start.
    pub const fn first(self) -> NocXy {
        match self.tiles {
            Tiles::One(xy) => xy,
            Tiles::Rect(rect) => rect.start,
        }
    }
    /// What a window that shows `address` of this target holds. On NoC 1 the rectangle's corners
    /// change places.
    const fn window(self, address: u64) -> tlb::Window {
        let mut window = match self.tiles {
            Tiles::One(xy) => tlb::Window::unicast(xy, address),
            Tiles::Rect(rect) => {
                let (start, end) = if self.noc == 0 { (rect.start, rect.end) } else { (rect.end, rect.start) };
                let mut window = tlb::Window::unicast(end, address);
                window.start = start;
                window.multicast = true;
                window
            }
        };
        window.noc = self.noc;
        window.ordering = Some(self.ordering);
        window
    }
}

/// A TLB window that belongs to its holder.
#[derive(Debug)]
pub struct Window {
    index: u32,
    size: WindowSize,
    /// What the registers hold.
    shows: Option<tlb::Window>,
}

impl Window {
    /// Number of the window.
    pub fn index(&self) -> u32 {
        self.index
    }
    /// Its size.
    pub fn size(&self) -> WindowSize {
        self.size
    }

    /// Turns the window to the part of `target` that holds `address`; returns the offset in the BAR
    /// of that byte, and the bytes up to the window's end.
    fn turn(&mut self, link: &mut impl HostLink, target: &Target, address: u64) -> Result<(u64, u64), DriverError> {
        let bytes = self.size.bytes();
        let base = address & !(bytes - 1);
        let shows = target.window(base);
        if self.shows != Some(shows) {
            // Unknown until all three words are written.
            self.shows = None;
            let mut regs = [0; usize_of(tlb::REG_BYTES)];
            for (bytes, word) in regs.chunks_exact_mut(4).zip(shows.encode(self.size)) {
                bytes.copy_from_slice(&word.to_le_bytes());
            }
            let offset = tlb::REGS + u64::from(self.index) * tlb::REG_BYTES;
            link.bar_write(tlb::Bar::Bar0, offset, &regs)?;
            self.shows = Some(shows);
        }
        let at = address - base;
        Ok((tlb::window_offset(self.index) + at, bytes - at))
    }

    fn check(target: &Target, address: u64, len: usize) -> Result<(), DriverError> {
        if address.checked_add(len as u64).is_some() {
            return Ok(());
        }
        Err(DriverError::Address { tile: target.first(), address, len })
    }

    /// Writes `data` at `address` of `target`, turning the window as often as needed.
    ///
    /// # Errors
    /// The access leaves the address space, or the link failed.
    pub fn write(
        &mut self,
        link: &mut impl HostLink,
        target: &Target,
        address: u64,
        data: &[u8],
    ) -> Result<(), DriverError> {
        Self::check(target, address, data.len())?;
        let (mut address, mut rest) = (address, data);
        while !rest.is_empty() {
            let (offset, room) = self.turn(link, target, address)?;
            let (now, later) = rest.split_at(rest.len().min(usize::try_from(room).unwrap_or(usize::MAX)));
            link.bar_write(self.size.bar(), offset, now)?;
            address = address.wrapping_add(now.len() as u64);
            rest = later;
        }
        Ok(())
    }

    /// Reads `out.len()` bytes at `address` of `target`.
    ///
    /// # Errors
    /// As [`Window::write`]; also a target of several tiles.
    pub fn read(
        &mut self,
        link: &mut impl HostLink,
        target: &Target,
        address: u64,
        out: &mut [u8],
    ) -> Result<(), DriverError> {
        if matches!(target.tiles, Tiles::Rect(_)) {
            return Err(DriverError::MulticastRead { tile: target.first() });
        }
        Self::check(target, address, out.len())?;
        let (mut address, mut rest) = (address, out);
        while !rest.is_empty() {
            let (offset, room) = self.turn(link, target, address)?;
            let n = rest.len().min(usize::try_from(room).unwrap_or(usize::MAX));
            let (now, later) = rest.split_at_mut(n);
            link.bar_read(self.size.bar(), offset, now)?;
            address = address.wrapping_add(n as u64);
            rest = later;
        }
        Ok(())
    }

    /// Writes the little-endian word at `address` of `target`.
    ///
    /// # Errors
    /// As [`Window::write`].
    pub fn write32(
        &mut self,
        link: &mut impl HostLink,
        target: &Target,
        address: u64,
        value: u32,
    ) -> Result<(), DriverError> {
        self.write(link, target, address, &value.to_le_bytes())
    }

    /// Reads the little-endian word at `address` of `target`.
    ///
    /// # Errors
    /// As [`Window::read`].
    pub fn read32(&mut self, link: &mut impl HostLink, target: &Target, address: u64) -> Result<u32, DriverError> {
        let mut word = [0; 4];
        self.read(link, target, address, &mut word)?;
        Ok(u32::from_le_bytes(word))
    }
}

/// The windows of a card. The last small one is the kernel driver's and is never given out.
#[derive(Debug)]
pub struct WindowPool {
    taken: Vec<bool>,
}

impl Default for WindowPool {
    fn default() -> Self {
        let mut taken = vec![false; tlb::COUNT as usize];
        taken[tlb::KERNEL_WINDOW as usize] = true;
        Self { taken }
    }
}

impl WindowPool {
    /// All windows free.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes a free window.
    ///
    /// # Errors
    /// All windows of that size are taken.
    pub fn take(&mut self, size: WindowSize) -> Result<Window, DriverError> {
        let (first, count) = match size {
            WindowSize::Small => (0, tlb::COUNT_2M),
            WindowSize::Large => (tlb::COUNT_2M, tlb::COUNT_4G),
        };
        let free = (first..first + count).find(|&i| !self.taken[i as usize]);
        let index = free.ok_or(DriverError::NoWindow { bytes: size.bytes(), count })?;
        self.taken[index as usize] = true;
        Ok(Window { index, size, shows: None })
    }

    /// Gives a window back.
    pub fn give_back(&mut self, window: Window) {
        self.taken[window.index as usize] = false;
    }
}
