//! A card: a link, windows onto it, and what a host does to start tiles.
//!
//! Addresses are those of the target's own space on the NoC: an
//! [`L1Addr`](tilework_abi::addr::L1Addr) in a Tensix tile, a
//! [`DramAddr`](tilework_abi::addr::DramAddr) at a bank's port, or the plain word of a
//! register's row.

use crate::{DriverError, HostLink, Pinned, Target, Telemetry, Tiles, Window, WindowPool, cover};
use tilework_abi::addr::PcieAddr;
use tilework_abi::noc::NocXy;
use tilework_abi::tensix::{self, Processor};
use tilework_abi::tlb::WindowSize;

/// A card with the windows that most accesses need.
#[derive(Debug)]
pub struct Card<L> {
    link: L,
    pool: WindowPool,
    /// Single tiles.
    tile: Window,
    /// Rectangles; apart from `tile`, so that neither turns the other.
    rect: Window,
    /// Transfers that cross a small window's end, to DRAM for instance.
    bulk: Window,
}

impl<L: HostLink> Card<L> {
    /// Opens the card behind `link`, all of whose windows are free.
    ///
    /// # Errors
    /// None today; a real card may be in use.
    pub fn open(link: L) -> Result<Self, DriverError> {
        let mut pool = WindowPool::new();
        let tile = pool.take(WindowSize::Small)?;
        let rect = pool.take(WindowSize::Small)?;
        let bulk = pool.take(WindowSize::Large)?;
        Ok(Self { link, pool, tile, rect, bulk })
    }
    /// The link.
    pub fn link(&self) -> &L {
        &self.link
    }
    /// The link, to do something to it.
    pub fn link_mut(&mut self) -> &mut L {
        &mut self.link
    }
    /// The link, when the card is not needed any more.
    pub fn into_link(self) -> L {
        self.link
    }
    /// The windows that are still free.
    pub fn pool(&mut self) -> &mut WindowPool {
        &mut self.pool
    }

    /// The window for an access, and the link.
    fn window(&mut self, target: &Target, address: u64, len: usize) -> (&mut Window, &mut L) {
        let small = WindowSize::Small.bytes();
        let crosses = address % small + len as u64 > small;
        let window = match target.tiles {
            Tiles::Rect(_) => &mut self.rect,
            Tiles::One(_) if crosses => &mut self.bulk,
            Tiles::One(_) => &mut self.tile,
        };
        (window, &mut self.link)
    }

    /// Writes `data` at `address` of `target`.
    ///
    /// # Errors
    /// The access leaves the address space, or the link failed.
    pub fn write(&mut self, target: &Target, address: impl Into<u64>, data: &[u8]) -> Result<(), DriverError> {
        let address = address.into();
        let (window, link) = self.window(target, address, data.len());
        window.write(link, target, address, data)
    }
    /// Reads `out.len()` bytes at `address` of `target`.
    ///
    /// # Errors
    /// As [`Card::write`]; also a target of several tiles.
    pub fn read(&mut self, target: &Target, address: impl Into<u64>, out: &mut [u8]) -> Result<(), DriverError> {
        let address = address.into();
        let (window, link) = self.window(target, address, out.len());
        window.read(link, target, address, out)
    }
    /// Writes the little-endian word at `address` of `target`.
    ///
    /// # Errors
    /// As [`Card::write`].
    pub fn write32(&mut self, target: &Target, address: impl Into<u64>, value: u32) -> Result<(), DriverError> {
        self.write(target, address, &value.to_le_bytes())
    }
    /// Reads the little-endian word at `address` of `target`.
    ///
    /// # Errors
    /// As [`Card::read`].
    pub fn read32(&mut self, target: &Target, address: impl Into<u64>) -> Result<u32, DriverError> {
        let mut word = [0; 4];
        self.read(target, address, &mut word)?;
        Ok(u32::from_le_bytes(word))
    }

    /// Pins `len` bytes of host memory, if the link can choose at `wish`.
    ///
    /// # Errors
    /// The link failed, or the memory cannot be had.
    pub fn pin(&mut self, len: usize, wish: PcieAddr) -> Result<Pinned, DriverError> {
        Ok(Pinned::new(self.link.pin(len, wish)?, len))
    }
    /// Reads the ARC's telemetry.
    ///
    /// # Errors
    /// The link failed, or what is there is no telemetry.
    pub fn telemetry(&mut self) -> Result<Telemetry, DriverError> {
        Telemetry::read(&mut self.link, &mut self.tile)
    }

    /// Writes `data` at `address` of all `tiles`, by multicast over the rectangles of [`cover`].
    ///
    /// # Errors
    /// As [`Card::write`].
    pub fn write_all(&mut self, tiles: &[NocXy], address: impl Into<u64>, data: &[u8]) -> Result<(), DriverError> {
        let address = address.into();
        for rect in cover(tiles) {
            self.write(&Target::rect(rect), address, data)?;
        }
        Ok(())
    }

    /// Holds all five cores of `tiles` in soft reset.
    ///
    /// # Errors
    /// As [`Card::write`].
    pub fn hold(&mut self, tiles: &[NocXy]) -> Result<(), DriverError> {
        self.soft_reset(tiles, tensix::SOFT_RESET_ALL_CORES)
    }
    /// Lets BRISC of `tiles` run and holds the other cores, which BRISC's firmware releases itself.
    ///
    /// # Errors
    /// As [`Card::write`].
    pub fn release_brisc(&mut self, tiles: &[NocXy]) -> Result<(), DriverError> {
        self.soft_reset(tiles, tensix::SOFT_RESET_BRISC_RUNS)
    }
    /// Writes the soft reset register of `tiles`.
    ///
    /// # Errors
    /// As [`Card::write`].
    pub fn soft_reset(&mut self, tiles: &[NocXy], value: u32) -> Result<(), DriverError> {
        self.write_all(tiles, tensix::SOFT_RESET_0, &value.to_le_bytes())
    }

    /// Sets where cores of `tiles` start when they leave reset, and makes these registers count:
    /// the TRISCs that are not named start at their defaults again if any TRISC is. BRISC always
    /// starts at 0 and is left out.
    ///
    /// # Errors
    /// As [`Card::write`].
    pub fn reset_pcs(&mut self, tiles: &[NocXy], pcs: &[(Processor, u32)]) -> Result<(), DriverError> {
        let (mut triscs, mut ncrisc) = (0u32, 0u32);
        for &(core, pc) in pcs {
            let register = match core {
                Processor::Brisc => continue,
                Processor::Ncrisc => tensix::NCRISC_RESET_PC,
                Processor::Trisc0 => tensix::TRISC0_RESET_PC,
                Processor::Trisc1 => tensix::TRISC1_RESET_PC,
                Processor::Trisc2 => tensix::TRISC2_RESET_PC,
            };
            match core {
                Processor::Ncrisc => ncrisc = 1,
                _ => triscs |= 1 << (core.index() - Processor::Trisc0.index()),
            }
            self.write_all(tiles, register, &pc.to_le_bytes())?;
        }
        for (register, bits) in [(tensix::TRISC_RESET_PC_OVERRIDE, triscs), (tensix::NCRISC_RESET_PC_OVERRIDE, ncrisc)]
        {
            if bits != 0 {
                self.write_all(tiles, register, &bits.to_le_bytes())?;
            }
        }
        Ok(())
    }
}
