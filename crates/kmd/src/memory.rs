//! What can be mapped, pinned memory, DMA buffers, and the regions of the address translation that
//! give them NoC addresses (`memory.c`).

use crate::bus::Place;
use crate::driver::Driver;
use crate::file::{DmaBuffer, Pin};
use crate::layout::{self, AllocateDmaBufIn, AllocateDmaBufOut, DMA_BUF_LOG2, PinIn, PinOut, UnpinIn, offset};
use crate::{Card, Errno, FileId, PAGE, UserMemory, windows};
use tilework_abi::noc::PCIE_HOST_BIT;
use tilework_abi::pci::iatu;
use tilework_abi::tlb::{Bar, COUNT, WindowSize};

/// The highest NoC address of host memory, without the bits that mean it (`noc_dma_limit`).
const NOC_LIMIT: u64 = (1 << 58) - 1;
/// The most bytes of a region (`blackhole_configure_outbound_atu`).
const REGION_MOST: u64 = 1 << 40;

/// What a mapping shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Target {
    /// Bytes of a BAR from an offset on.
    Bar(Bar, u64),
    /// A window: its number, and where it lies.
    Window(u32, Bar, u64),
    /// A DMA buffer, by its address in the process.
    Memory(u64),
}

/// A mapping that may be made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mapping {
    /// What it shows.
    pub target: Target,
    /// Whether stores may be combined.
    pub combining: bool,
}

/// A region of the address translation in use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Region {
    pub base: u64,
    pub limit: u64,
}

/// The lowest (or highest) NoC address at which `size` bytes are free of `regions`.
fn gap(regions: &[Option<Region>], size: u64, top_down: bool) -> Option<u64> {
    let mut used: Vec<_> = regions.iter().flatten().map(|region| (region.base, region.limit)).collect();
    used.sort_unstable();
    let mut gaps = Vec::new();
    let mut from = 0;
    for (base, limit) in used {
        gaps.push((from, base));
        from = limit + 1;
    }
    gaps.push((from, NOC_LIMIT + 1));
    let fits = |&(from, to): &(u64, u64)| to - from >= size;
    if top_down {
        gaps.into_iter().rev().find(fits).map(|(_, to)| to - size)
    } else {
        gaps.into_iter().find(fits).map(|(from, _)| from)
    }
}

/// Programs region `number`.
fn program(card: &mut dyn Card, number: usize, base: u64, limit: u64, target: u64) {
    let low = |value: u64| u32::try_from(value & 0xFFFF_FFFF).unwrap_or_default();
    let high = |value: u64| low(value >> 32);
    let at = iatu::BASE + iatu::STRIDE * number as u64;
    let enable = if limit == 0 { 0 } else { iatu::REGION_ENABLE };
    // Off first: a region must not end before it begins while it is on.
    for (register, value) in [
        (iatu::CONTROL_2, 0),
        (iatu::BASE_LOW, low(base)),
        (iatu::BASE_HIGH, high(base)),
        (iatu::TARGET_LOW, low(target)),
        (iatu::TARGET_HIGH, high(target)),
        (iatu::LIMIT_LOW, low(limit)),
        (iatu::LIMIT_HIGH, high(limit)),
        (iatu::CONTROL_1, iatu::INCREASE_REGION_SIZE),
        (iatu::CONTROL_2, enable),
    ] {
        card.write32(Bar::Bar2, at + register, value);
    }
}

impl Driver {
    /// Gives `size` bytes at bus address `target` a NoC address, and says which region it took.
    fn set_up_noc(
        &mut self,
        card: &mut dyn Card,
        size: u64,
        target: u64,
        top_down: bool,
    ) -> Result<(usize, u64), Errno> {
        let base = gap(&self.regions, size, top_down).ok_or(Errno::NoMemory)?;
        let number = self.regions.iter().position(Option::is_none).ok_or(Errno::NoSpace)?;
        if size > REGION_MOST {
            return Err(Errno::Invalid);
        }
        let limit = base + size - 1;
        program(card, number, base, limit, target);
        self.regions[number] = Some(Region { base, limit });
        Ok((number, PCIE_HOST_BIT + base))
    }

    /// Gives a region back.
    pub(crate) fn tear_down_noc(&mut self, card: &mut dyn Card, region: Option<usize>) {
        if let Some(number) = region {
            program(card, number, 0, 0, 0);
            self.regions[number] = None;
        }
    }

    pub(crate) fn allocate_dma_buffer(
        &mut self,
        card: &mut dyn Card,
        memory: &mut dyn UserMemory,
        file: FileId,
        wanted: &AllocateDmaBufIn,
    ) -> Result<AllocateDmaBufOut, Errno> {
        let size = u64::from(wanted.requested_size);
        if !size.is_multiple_of(PAGE) || size == 0 || size > 1 << DMA_BUF_LOG2 {
            return Err(Errno::Invalid);
        }
        if self.file(file)?.buffers.contains_key(&wanted.buf_index) {
            return Err(Errno::Invalid);
        }
        let address = memory.allocate(size)?;
        let undo = |memory: &mut dyn UserMemory, errno| {
            memory.free(address, size);
            errno
        };
        let Some(bus) = self.bus.add(Place { address, size, read_only: false }) else {
            return Err(undo(memory, Errno::NoMemory));
        };
        let (mut region, mut noc_address) = (None, 0);
        if wanted.flags & layout::DMA_BUF_NOC != 0 {
            match self.set_up_noc(card, size, bus, true) {
                Ok((number, address)) => (region, noc_address) = (Some(number), address),
                Err(errno) => {
                    self.bus.remove(bus);
                    return Err(undo(memory, errno));
                }
            }
        }
        let buffer = DmaBuffer { address, size, bus, region };
        self.file_mut(file)?.buffers.insert(wanted.buf_index, buffer);
        Ok(AllocateDmaBufOut {
            physical_address: bus,
            mapping_offset: offset::DMA_BUF + u64::from(wanted.buf_index) * offset::DMA_BUF_STEP,
            size: wanted.requested_size,
            noc_address,
            ..AllocateDmaBufOut::default()
        })
    }

    pub(crate) fn pin(
        &mut self,
        card: &mut dyn Card,
        memory: &mut dyn UserMemory,
        file: FileId,
        wanted: &PinIn,
    ) -> Result<PinOut, Errno> {
        const VALID: u32 = layout::PIN_CONTIGUOUS | layout::PIN_NOC | layout::PIN_NOC_TOP_DOWN | layout::PIN_READ_ONLY;
        let (address, size) = (wanted.virtual_address, wanted.size);
        if wanted.flags & !VALID != 0 || !address.is_multiple_of(PAGE) || !size.is_multiple_of(PAGE) || size == 0 {
            return Err(Errno::Invalid);
        }
        if self.file(file)?.pins.iter().any(|pin| (pin.address, pin.size) == (address, size)) {
            return Err(Errno::Exists);
        }
        let read_only = wanted.flags & layout::PIN_READ_ONLY != 0;
        if address.checked_add(size).is_none() || !memory.can_be_pinned(address, size, read_only) {
            return Err(Errno::Fault);
        }
        let bus = self.bus.add(Place { address, size, read_only }).ok_or(Errno::NoMemory)?;
        let (mut region, mut noc_address) = (None, 0);
        if wanted.flags & (layout::PIN_NOC | layout::PIN_NOC_TOP_DOWN) != 0 {
            let top_down = wanted.flags & layout::PIN_NOC_TOP_DOWN != 0;
            match self.set_up_noc(card, size, bus, top_down) {
                Ok((number, address)) => (region, noc_address) = (Some(number), address),
                Err(errno) => {
                    self.bus.remove(bus);
                    return Err(errno);
                }
            }
        }
        self.file_mut(file)?.pins.push(Pin { address, size, bus, region });
        memory.pinned(address, size, read_only);
        Ok(PinOut { physical_address: bus, noc_address })
    }

    pub(crate) fn unpin(
        &mut self,
        card: &mut dyn Card,
        memory: &mut dyn UserMemory,
        file: FileId,
        wanted: &UnpinIn,
    ) -> Result<(), Errno> {
        let pages = wanted.size / PAGE;
        if wanted.reserved != 0 || pages == 0 {
            return Err(Errno::Invalid);
        }
        let pins = &mut self.file_mut(file)?.pins;
        // The newest first, as the driver's list has them; only the first of that address counts.
        let found = pins.iter().rposition(|pin| pin.address == wanted.virtual_address).ok_or(Errno::Invalid)?;
        if pins[found].size / PAGE != pages {
            return Err(Errno::Invalid);
        }
        let pin = pins.remove(found);
        self.tear_down_noc(card, pin.region);
        self.bus.remove(pin.bus);
        memory.unpinned(pin.address, pin.size);
        Ok(())
    }

    /// What `mmap` of `file` at `offset` with `len` bytes shows. The caller tells by
    /// [`Driver::mapped`] that it has made the mapping.
    ///
    /// # Errors
    /// Nothing is there, or it is not the file's.
    pub fn mapping(&self, file: FileId, at: u64, len: u64) -> Result<Mapping, Errno> {
        let open = self.valid(file)?;
        let end = at.checked_add(len).ok_or(Errno::Invalid)?;
        let within = |start: u64, size: u64| (at >= start && end <= start + size).then(|| at - start);
        for (index, bar) in (0u64..).zip(Bar::ALL) {
            for combining in [false, true] {
                let start = (2 * index + u64::from(combining)) * offset::RESOURCE;
                if let Some(at) = within(start, bar.size()) {
                    return Ok(Mapping { target: Target::Bar(bar, at), combining });
                }
            }
        }
        for (start, combining) in [(offset::WINDOW_UC, false), (offset::WINDOW_WC, true)] {
            if let Some(at) = within(start, offset::RESOURCE) {
                let id = (0..COUNT).find(|&id| window_offset(id) == at).ok_or(Errno::Invalid)?;
                if len > WindowSize::of_window(id).bytes() {
                    return Err(Errno::Invalid);
                }
                if !open.windows.contains_key(&id) {
                    return Err(Errno::NotOwned);
                }
                let (bar, at) = windows::place(id);
                return Ok(Mapping { target: Target::Window(id, bar, at), combining });
            }
        }
        for (&index, buffer) in &open.buffers {
            if let Some(at) = within(offset::DMA_BUF + u64::from(index) * offset::DMA_BUF_STEP, buffer.size) {
                return Ok(Mapping { target: Target::Memory(buffer.address + at), combining: false });
            }
        }
        Err(Errno::Invalid)
    }
}

/// Where window `id` lies behind the offset of windows.
pub(crate) fn window_offset(id: u32) -> u64 {
    match windows::place(id) {
        (Bar::Bar4, at) => offset::BAR0_SIZE + at,
        (_, at) => at,
    }
}
