//! Open files and their requests (`chardev.c`).

use crate::file::File;
use crate::layout::{self, lock, offset, power_validity, reset, *};
use crate::memory::{Region, window_offset};
use crate::windows::{self, Windows};
use crate::{BusMap, Card, Errno, FileId, Refusal, Target, UserMemory, arc, tree};
use std::collections::BTreeMap;
use tilework_abi::board::Board;
use tilework_abi::pci::{DEVICE, VENDOR, iatu};
use tilework_abi::tlb::Bar;
use zerocopy::{FromBytes, IntoBytes};

/// How a file is opened: the flags of `open` that count.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct OpenFlags {
    /// `O_EXCL`: nobody else has it open.
    pub exclusive: bool,
    /// `O_NONBLOCK`: refused instead of waiting for others.
    pub nonblocking: bool,
    /// `O_APPEND`: the caller asks for power by itself.
    pub knows_power: bool,
}

/// The driver of one card.
#[derive(Debug)]
pub struct Driver {
    board: Board,
    /// Which of the machine's cards it is.
    number: usize,
    pub(crate) bus: BusMap,
    files: BTreeMap<FileId, File>,
    next: u32,
    windows: Windows,
    pub(crate) regions: [Option<Region>; iatu::REGIONS],
    /// Who holds which lock.
    locks: BTreeMap<u8, FileId>,
    /// Resets that have been.
    generation: u64,
    /// The chip was reset and is not set up again.
    down: bool,
    /// Set before a reset, and cleared by it (`set_reset_marker`).
    marked: bool,
}

fn get<T: FromBytes + IntoBytes + Default>(memory: &mut dyn UserMemory, at: u64) -> Result<T, Errno> {
    let mut value = T::default();
    memory.read(at, value.as_mut_bytes())?;
    Ok(value)
}

/// Clears `wanted` bytes of the output and writes as much of `value` as is wanted.
fn put_sized<T: IntoBytes + zerocopy::Immutable>(
    memory: &mut dyn UserMemory,
    at: u64,
    wanted: u32,
    value: &T,
) -> Result<(), Errno> {
    let bytes = value.as_bytes();
    let wanted = wanted as usize;
    // In pieces: how much is wanted is the caller's word.
    let zeros = [0; 256];
    for from in (0..wanted).step_by(zeros.len()) {
        memory.write(at.wrapping_add(from as u64), &zeros[..zeros.len().min(wanted - from)])?;
    }
    memory.write(at, &bytes[..bytes.len().min(wanted)])
}

impl Driver {
    /// The driver of a card of kind `board`, which it has just taken: it tells the chip's firmware.
    pub fn new(board: Board, card: &mut dyn Card) -> Self {
        Self::with_bus(board, card, BusMap::default())
    }

    /// As [`Driver::new`], with bus addresses in `bus`, which the card has already.
    pub fn with_bus(board: Board, card: &mut dyn Card, bus: BusMap) -> Self {
        Self::of_card(0, board, card, bus)
    }

    /// As [`Driver::with_bus`], of card `number` of the machine.
    pub fn of_card(number: usize, board: Board, card: &mut dyn Card, bus: BusMap) -> Self {
        let driver = Self {
            board,
            number,
            bus,
            files: BTreeMap::new(),
            next: 0,
            windows: Windows::default(),
            regions: [None; iatu::REGIONS],
            locks: BTreeMap::new(),
            generation: 0,
            down: false,
            marked: false,
        };
        arc::message(card, [arc::ASIC_STATE_0, 0, 0, 0, 0, 0, 0, 0]);
        driver
    }

    /// What lies at which bus address, for the chip.
    pub fn bus(&self) -> BusMap {
        self.bus.clone()
    }

    /// Whether files are open.
    pub fn is_open(&self) -> bool {
        !self.files.is_empty()
    }

    pub(crate) fn file(&self, file: FileId) -> Result<&File, Errno> {
        self.files.get(&file).ok_or(Errno::BadFile)
    }
    pub(crate) fn file_mut(&mut self, file: FileId) -> Result<&mut File, Errno> {
        self.files.get_mut(&file).ok_or(Errno::BadFile)
    }
    /// The file, if no reset has made it invalid.
    pub(crate) fn valid(&self, file: FileId) -> Result<&File, Errno> {
        let open = self.file(file)?;
        if open.generation == self.generation { Ok(open) } else { Err(Errno::Gone) }
    }

    /// Opens the device.
    ///
    /// # Errors
    /// Others have it open and either side wants it alone.
    pub fn open(&mut self, card: &mut dyn Card, flags: OpenFlags) -> Result<FileId, Refusal> {
        let taken = if flags.exclusive { self.is_open() } else { self.files.values().any(|file| file.exclusive) };
        if taken {
            return Err(if flags.nonblocking { Errno::Again.into() } else { Refusal::Wait });
        }
        let id = FileId(self.next);
        self.next += 1;
        self.files.insert(id, File::new(self.generation, flags.exclusive, flags.knows_power));
        if !flags.knows_power && !self.down {
            // As the driver: a failure is no reason to refuse.
            let _ = self.set_power(card);
        }
        Ok(id)
    }

    /// The last descriptor of `file` is closed. The file lives on while mappings are left.
    pub fn close(&mut self, card: &mut dyn Card, memory: &mut dyn UserMemory, file: FileId) {
        if let Some(open) = self.files.get_mut(&file) {
            open.closed = true;
        }
        self.release_if_unused(card, memory, file);
    }

    /// A mapping of `target` was made.
    pub fn mapped(&mut self, file: FileId, target: Target) {
        if let Some(open) = self.files.get_mut(&file) {
            open.maps += 1;
            if let Target::Window(id, ..) = target
                && let Some(maps) = open.windows.get_mut(&id)
            {
                *maps += 1;
            }
        }
    }

    /// A mapping of `target` is gone.
    pub fn unmapped(&mut self, card: &mut dyn Card, memory: &mut dyn UserMemory, file: FileId, target: Target) {
        if let Some(open) = self.files.get_mut(&file) {
            open.maps = open.maps.saturating_sub(1);
            if let Target::Window(id, ..) = target
                && let Some(maps) = open.windows.get_mut(&id)
            {
                *maps = maps.saturating_sub(1);
            }
        }
        self.release_if_unused(card, memory, file);
    }

    fn release_if_unused(&mut self, card: &mut dyn Card, memory: &mut dyn UserMemory, file: FileId) {
        if !self.files.get(&file).is_some_and(|open| open.closed && open.maps == 0) {
            return;
        }
        let Some(open) = self.files.remove(&file) else { return };
        if let Some(wish) = open.cleanup.filter(|wish| wish.enabled != 0) {
            let value = u32::try_from(wish.data & 0xFFFF_FFFF).unwrap_or_default();
            arc::noc_write(card, (wish.x.into(), wish.y.into()), wish.addr, wish.noc, value);
        }
        for buffer in open.buffers.values() {
            self.tear_down_noc(card, buffer.region);
            self.bus.remove(buffer.bus);
            memory.free(buffer.address, buffer.size);
        }
        for pin in &open.pins {
            self.tear_down_noc(card, pin.region);
            self.bus.remove(pin.bus);
            memory.unpinned(pin.address, pin.size);
        }
        for lock in &open.locks {
            self.locks.remove(lock);
        }
        for &window in open.windows.keys() {
            self.windows.free(window);
        }
        let asked_for_nothing = open.power.validity == power_validity(15, 0) && open.power.power_flags == 0;
        if !self.down && !asked_for_nothing {
            let _ = self.set_power(card);
        }
    }

    /// Serves a request of `file` whose argument lies at `at`.
    ///
    /// # Errors
    /// As the driver's; [`Refusal::Wait`] for a lock that another holds.
    pub fn request(
        &mut self,
        card: &mut dyn Card,
        memory: &mut dyn UserMemory,
        file: FileId,
        command: u32,
        at: u64,
    ) -> Result<(), Refusal> {
        self.valid(file)?;
        let request = Request::of_command(command);
        let always = [Request::GetDeviceInfo, Request::GetDriverInfo, Request::ResetDevice];
        if self.down && !request.is_some_and(|request| always.contains(&request)) {
            return Err(Errno::Gone.into());
        }
        match request.ok_or(Errno::Invalid)? {
            Request::GetDeviceInfo => self.device_info(memory, at)?,
            Request::GetDriverInfo => driver_info(memory, at)?,
            Request::QueryMappings => query_mappings(memory, at)?,
            Request::GetHarvesting | Request::FreeDmaBuf => return Err(Errno::Invalid.into()),
            Request::AllocateDmaBuf => {
                let wanted = get(memory, at)?;
                let out = self.allocate_dma_buffer(card, memory, file, &wanted)?;
                memory.write(at + size_of::<AllocateDmaBufIn>() as u64, out.as_bytes())?;
            }
            Request::ResetDevice => self.reset(card, memory, file, at)?,
            Request::PinPages => {
                let wanted: PinIn = get(memory, at)?;
                let out_at = at + size_of::<PinIn>() as u64;
                put_sized(memory, out_at, wanted.output_size_bytes, &PinOut::default())?;
                let out = self.pin(card, memory, file, &wanted)?;
                put_sized(memory, out_at, wanted.output_size_bytes, &out)?;
            }
            Request::UnpinPages => {
                let wanted = get(memory, at)?;
                self.unpin(card, memory, file, &wanted)?;
            }
            Request::LockCtl => self.lock(memory, file, at)?,
            Request::MapPeerBar => {
                // There is one card: whatever file is named, it is no other card's.
                get::<PeerBarIn>(memory, at)?;
                return Err(Errno::Invalid.into());
            }
            Request::AllocateTlb => self.allocate_window(memory, file, at)?,
            Request::FreeTlb => self.free_window(file, get::<FreeTlbIn>(memory, at)?.id)?,
            Request::ConfigureTlb => {
                let config: ConfigureTlbIn = get(memory, at)?;
                self.owned(file, config.id)?;
                windows::configure(card, config.id, &config)?;
            }
            Request::SetNocCleanup => self.file_mut(file)?.cleanup = Some(checked_cleanup(get(memory, at)?)?),
            Request::SetPowerState => {
                self.file_mut(file)?.power = checked_power(get(memory, at)?)?;
                self.set_power(card)?;
            }
            Request::ExportTlbDmabuf => self.export(file, &get(memory, at)?)?,
        }
        Ok(())
    }

    fn device_info(&self, memory: &mut dyn UserMemory, at: u64) -> Result<(), Errno> {
        let wanted: SizeIn = get(memory, at)?;
        let out = DeviceInfo {
            output_size_bytes: size(size_of::<DeviceInfo>()),
            vendor_id: VENDOR,
            device_id: DEVICE,
            subsystem_vendor_id: VENDOR,
            subsystem_id: u16::try_from(self.board.product()).unwrap_or_default(),
            bus_dev_fn: tree::bus_device_function(self.number),
            max_dma_buf_size_log2: layout::DMA_BUF_LOG2,
            ..DeviceInfo::default()
        };
        put_sized(memory, at + 4, wanted.output_size_bytes, &out)
    }

    fn allocate_window(&mut self, memory: &mut dyn UserMemory, file: FileId, at: u64) -> Result<(), Errno> {
        let wanted: AllocateTlbIn = get(memory, at)?;
        let id = self.windows.allocate(file, wanted.size)?;
        let place = window_offset(id);
        let out = AllocateTlbOut {
            id,
            mmap_offset_uc: offset::WINDOW_UC + place,
            mmap_offset_wc: offset::WINDOW_WC + place,
            ..AllocateTlbOut::default()
        };
        if let Err(errno) = memory.write(at + size_of::<AllocateTlbIn>() as u64, out.as_bytes()) {
            self.windows.free(id);
            return Err(errno);
        }
        self.file_mut(file)?.windows.insert(id, 0);
        Ok(())
    }

    /// Checks that window `id` is the file's.
    fn owned(&self, file: FileId, id: u32) -> Result<usize, Errno> {
        if id >= MAX_TLBS {
            return Err(Errno::Invalid);
        }
        self.file(file)?.windows.get(&id).copied().ok_or(Errno::NotOwned)
    }

    fn free_window(&mut self, file: FileId, id: u32) -> Result<(), Errno> {
        if self.owned(file, id)? > 0 {
            return Err(Errno::Busy);
        }
        self.file_mut(file)?.windows.remove(&id);
        self.windows.free(id);
        Ok(())
    }

    fn lock(&mut self, memory: &mut dyn UserMemory, file: FileId, at: u64) -> Result<(), Refusal> {
        let wanted: LockIn = get(memory, at)?;
        if wanted.index >= lock::COUNT {
            return Err(Errno::Invalid.into());
        }
        let holder = self.locks.get(&wanted.index).copied();
        let value = match wanted.flags {
            lock::ACQUIRE | lock::ACQUIRE_BLOCKING => {
                if holder.is_none() {
                    self.locks.insert(wanted.index, file);
                    self.file_mut(file)?.locks.insert(wanted.index);
                } else if wanted.flags == lock::ACQUIRE_BLOCKING {
                    return Err(Refusal::Wait);
                }
                u8::from(holder.is_none())
            }
            lock::RELEASE => {
                let held = self.file_mut(file)?.locks.remove(&wanted.index);
                if held {
                    self.locks.remove(&wanted.index);
                }
                u8::from(held)
            }
            lock::TEST => u8::from(holder.is_some()) << 1 | u8::from(holder == Some(file)),
            _ => return Err(Errno::Invalid.into()),
        };
        let out = LockOut { value, reserved: [0; 3] };
        Ok(put_sized(memory, at + size_of::<LockIn>() as u64, wanted.output_size_bytes, &out)?)
    }

    /// Tells the firmware what all open files together need of power.
    fn set_power(&mut self, card: &mut dyn Card) -> Result<(), Errno> {
        let mut flags = 0;
        let mut settings = [0; 14];
        let mut most = 0;
        for file in self.files.values().filter(|file| file.generation == self.generation) {
            let (known, set) = (file.power.validity & 0xF, usize::from(file.power.validity >> 4));
            // A flag that the caller does not know counts as on.
            let unknown = !((1u16 << known) - 1) & POWER_ALL;
            flags |= file.power.power_flags | unknown;
            most = most.max(set);
            for (sum, &value) in settings.iter_mut().zip(&file.power.power_settings).take(set) {
                *sum = value.max(*sum);
            }
        }
        let validity = power_validity(15, u8::try_from(most).unwrap_or_default());
        let mut words = [0; 8];
        words[0] = arc::POWER_SETTING | u32::from(validity) << 8 | u32::from(flags) << 16;
        for (word, pair) in words[1..].iter_mut().zip(settings.chunks_exact(2)) {
            *word = u32::from(pair[0]) | u32::from(pair[1]) << 16;
        }
        if arc::message(card, words) { Ok(()) } else { Err(Errno::Invalid) }
    }

    fn reset(&mut self, card: &mut dyn Card, memory: &mut dyn UserMemory, file: FileId, at: u64) -> Result<(), Errno> {
        let wanted: ResetIn = get(memory, at)?;
        let ok = match wanted.flags {
            // The link and the configuration space of this card are always up.
            reset::RESTORE_STATE | reset::PCIE_LINK => true,
            reset::CONFIG_WRITE => {
                self.invalidate_others(file);
                self.reset_chip(card);
                true
            }
            reset::USER => {
                self.invalidate_others(file);
                (self.marked, self.down) = (true, true);
                true
            }
            reset::ASIC | reset::ASIC_DMC => {
                self.invalidate_others(file);
                self.reset_chip(card);
                self.down = true;
                true
            }
            reset::POST => {
                let cleared = !self.marked;
                if std::mem::take(&mut self.down) && cleared {
                    arc::message(card, [arc::ASIC_STATE_0, 0, 0, 0, 0, 0, 0, 0]);
                }
                cleared
            }
            _ => return Err(Errno::Invalid),
        };
        let out = ResetOut { output_size_bytes: size(size_of::<ResetOut>()), result: u32::from(!ok) };
        put_sized(memory, at + size_of::<ResetIn>() as u64, wanted.output_size_bytes, &out)
    }

    /// Makes all other files invalid, and takes their windows and regions back.
    fn invalidate_others(&mut self, file: FileId) {
        self.generation += 1;
        let mut windows = Vec::new();
        let mut regions = Vec::new();
        for (&id, open) in &mut self.files {
            if id == file {
                open.generation = self.generation;
                continue;
            }
            windows.extend(std::mem::take(&mut open.windows).into_keys());
            regions.extend(open.buffers.values_mut().filter_map(|buffer| buffer.region.take()));
            regions.extend(open.pins.iter_mut().filter_map(|pin| pin.region.take()));
        }
        windows.into_iter().for_each(|id| self.windows.free(id));
        regions.into_iter().for_each(|number| self.regions[number] = None);
    }

    fn reset_chip(&mut self, card: &mut dyn Card) {
        card.reset();
        self.marked = false;
    }

    /// Whether mappings of `file` still show the card: a reset by another file takes them away.
    pub fn shows(&self, file: FileId) -> bool {
        self.valid(file).is_ok()
    }

    fn export(&self, file: FileId, wanted: &ExportTlb) -> Result<(), Errno> {
        let sizes = wanted.argsz as usize == size_of::<ExportTlb>() && wanted.flags == 0;
        let pages = wanted.offset.is_multiple_of(crate::PAGE) && wanted.size.is_multiple_of(crate::PAGE);
        if !sizes || !pages {
            return Err(Errno::Invalid);
        }
        self.owned(file, wanted.tlb_id)?;
        // There is no other device whose driver could take it.
        Err(Errno::Unsupported)
    }
}

fn size(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or_default()
}

fn driver_info(memory: &mut dyn UserMemory, at: u64) -> Result<(), Errno> {
    let wanted: SizeIn = get(memory, at)?;
    let [major, minor, patch] = MODULE_VERSION;
    let out = DriverInfo {
        output_size_bytes: size(size_of::<DriverInfo>()),
        driver_version: DRIVER_VERSION,
        driver_version_major: major,
        driver_version_minor: minor,
        driver_version_patch: patch,
        reserved0: 0,
    };
    put_sized(memory, at + 4, wanted.output_size_bytes, &out)
}

fn query_mappings(memory: &mut dyn UserMemory, at: u64) -> Result<(), Errno> {
    let wanted: QueryMappingsIn = get(memory, at)?;
    let mut out = at + size_of::<QueryMappingsIn>() as u64;
    let places = Bar::ALL.into_iter().flat_map(|bar| [bar; 2]);
    let mut rows = (0u32..).zip(places).map(|(index, bar)| MappingOut {
        mapping_id: index + 1,
        mapping_base: u64::from(index) * offset::RESOURCE,
        mapping_size: bar.size(),
        reserved: 0,
    });
    for _ in 0..wanted.output_mapping_count {
        memory.write(out, rows.next().unwrap_or_default().as_bytes())?;
        out += size_of::<MappingOut>() as u64;
    }
    Ok(())
}

fn checked_cleanup(wish: NocCleanup) -> Result<NocCleanup, Errno> {
    let fine = wish.argsz as usize == size_of::<NocCleanup>()
        && wish.flags == 0
        && wish.enabled <= 1
        && wish.addr.is_multiple_of(4)
        && wish.noc <= 1
        && wish.x <= 64
        && wish.y <= 64;
    if fine { Ok(wish) } else { Err(Errno::Invalid) }
}

fn checked_power(state: PowerState) -> Result<PowerState, Errno> {
    let fine = state.argsz as usize == size_of::<PowerState>()
        && state.flags == 0
        && state.reserved0 == 0
        && state.validity <= power_validity(15, 14);
    if fine { Ok(state) } else { Err(Errno::Invalid) }
}
