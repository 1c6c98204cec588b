//! The kernel driver of the crate `kmd` on a simulated chip, as the system of a client.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use tilework_abi::board::Board;
use tilework_abi::kmd::{DriverInfo, NocCleanup, Request};
use tilework_abi::tlb::Bar;
use tilework_kmd::{Card, Driver, Errno, FileId, OpenFlags, Refusal, Target, UserMemory};
use tilework_sim::{Chip, ChipConfig};
use tilework_tt_kmd_client::{Kernel, Mapped, Pages};
use zerocopy::{FromBytes, IntoBytes};

pub(crate) struct SimCard {
    pub(crate) chip: Chip,
    pub(crate) resets: u32,
    /// Reads return ones, as those of a card that is gone.
    pub(crate) gone: bool,
    /// Writes do not come to the soft reset registers.
    pub(crate) stuck: bool,
}

impl Card for SimCard {
    fn read(&mut self, bar: Bar, offset: u64, out: &mut [u8]) {
        if self.gone {
            return out.fill(0xFF);
        }
        self.chip.bar_read(bar, offset, out).unwrap();
    }
    fn write(&mut self, bar: Bar, offset: u64, data: &[u8]) {
        self.chip.bar_write(bar, offset, data).unwrap();
    }
    fn reset(&mut self) {
        self.resets += 1;
        self.stuck = false;
        self.chip = Chip::new(ChipConfig::new(self.chip.board())).unwrap();
    }
}

/// Where the argument of a request lies for the driver; memory of the process is behind it.
const ARGUMENT: u64 = 0x1000;
const MEMORY: u64 = 0x7000_0000;

/// The memory of the process.
struct Process<'a> {
    argument: &'a mut [u8],
    memory: &'a mut Vec<u8>,
}

impl Process<'_> {
    fn bytes(&mut self, address: u64, len: usize) -> Result<&mut [u8], Errno> {
        let (bytes, base) =
            if address >= MEMORY { (&mut self.memory[..], MEMORY) } else { (&mut *self.argument, ARGUMENT) };
        let start = usize::try_from(address.checked_sub(base).ok_or(Errno::Fault)?).map_err(|_| Errno::Fault)?;
        bytes.get_mut(start..start + len).ok_or(Errno::Fault)
    }
}

impl UserMemory for Process<'_> {
    fn read(&mut self, address: u64, out: &mut [u8]) -> Result<(), Errno> {
        out.copy_from_slice(self.bytes(address, out.len())?);
        Ok(())
    }
    fn write(&mut self, address: u64, data: &[u8]) -> Result<(), Errno> {
        self.bytes(address, data.len())?.copy_from_slice(data);
        Ok(())
    }
    fn can_be_pinned(&mut self, address: u64, size: u64, _read_only: bool) -> bool {
        self.bytes(address, usize::try_from(size).unwrap()).is_ok()
    }
    fn allocate(&mut self, _size: u64) -> Result<u64, Errno> {
        Err(Errno::NoMemory)
    }
    fn free(&mut self, _address: u64, _size: u64) {}
}

/// The machine.
pub(crate) struct Machine {
    pub(crate) card: SimCard,
    pub(crate) driver: Driver,
    memory: Vec<u8>,
    /// What the driver says of itself, if not the truth.
    pub(crate) version: Option<[u8; 3]>,
    /// Mappings that are there.
    pub(crate) maps: usize,
    /// What is to be written when the file is closed.
    pub(crate) cleanup: Option<NocCleanup>,
    /// Whether only huge pages lie side by side.
    pub(crate) no_iommu: bool,
}

/// The machine, shared by those who look at it.
#[derive(Clone)]
pub(crate) struct Shared(pub(crate) Rc<RefCell<Machine>>);

impl Shared {
    pub(crate) fn new(board: Board) -> Self {
        let chip = Chip::new(ChipConfig::new(board)).unwrap();
        let mut card = SimCard { chip, resets: 0, gone: false, stuck: false };
        let driver = Driver::new(board, &mut card);
        let memory = Vec::new();
        let machine = Machine { card, driver, memory, version: None, maps: 0, cleanup: None, no_iommu: false };
        Self(Rc::new(RefCell::new(machine)))
    }
    /// Opens the device file.
    pub(crate) fn open(&self) -> File {
        let mut machine = self.0.borrow_mut();
        let Machine { card, driver, .. } = &mut *machine;
        let flags = OpenFlags { knows_power: true, ..OpenFlags::default() };
        File { machine: self.clone(), id: driver.open(card, flags).unwrap() }
    }
}

/// An open device file.
pub(crate) struct File {
    machine: Shared,
    id: FileId,
}

impl Drop for File {
    fn drop(&mut self) {
        let mut machine = self.machine.0.borrow_mut();
        let Machine { card, driver, memory, .. } = &mut *machine;
        driver.close(card, &mut Process { argument: &mut [], memory }, self.id);
    }
}

fn error(refusal: Refusal) -> io::Error {
    match refusal {
        Refusal::Error(errno) => io::Error::from_raw_os_error(errno.number()),
        Refusal::Wait => io::Error::other("it would wait"),
    }
}

impl Kernel for File {
    type Mapping = Map;

    fn request(&mut self, request: Request, argument: &mut [u8]) -> io::Result<()> {
        let mut machine = self.machine.0.borrow_mut();
        let Machine { card, driver, memory, version, cleanup, no_iommu, .. } = &mut *machine;
        if request == Request::SetNocCleanup {
            *cleanup = NocCleanup::read_from_bytes(argument).ok();
        }
        // Flags are the second word.
        let contiguous = argument.get(4).is_some_and(|flags| flags & 1 != 0);
        if *no_iommu && request == Request::PinPages && !contiguous {
            return Err(error(Errno::Invalid.into()));
        }
        let mut process = Process { argument, memory };
        driver.request(card, &mut process, self.id, request.command(), ARGUMENT).map_err(error)?;
        if let (Request::GetDriverInfo, Some([major, minor, patch])) = (request, *version) {
            let told = DriverInfo {
                output_size_bytes: 12,
                driver_version: 2,
                driver_version_major: major,
                driver_version_minor: minor,
                driver_version_patch: patch,
                reserved0: 0,
            };
            argument[4..].copy_from_slice(told.as_bytes());
        }
        Ok(())
    }

    fn map(&mut self, offset: u64, len: usize) -> io::Result<Map> {
        let mut machine = self.machine.0.borrow_mut();
        let Machine { driver, maps, .. } = &mut *machine;
        let mapping = driver.mapping(self.id, offset, len as u64).map_err(|errno| error(errno.into()))?;
        driver.mapped(self.id, mapping.target);
        *maps += 1;
        Ok(Map { machine: self.machine.clone(), file: self.id, target: mapping.target, len })
    }

    fn memory(&mut self, len: usize, pages: Pages) -> io::Result<Map> {
        let mut machine = self.machine.0.borrow_mut();
        // A huge page is too large for a test: a part of one is as good.
        let len = if pages == Pages::Huge { 1 << 20 } else { len };
        let at = machine.memory.len().next_multiple_of(4096);
        machine.memory.resize(at + len, 0);
        machine.maps += 1;
        Ok(Map { machine: self.machine.clone(), file: self.id, target: Target::Memory(MEMORY + at as u64), len })
    }
}

/// A mapping.
pub(crate) struct Map {
    machine: Shared,
    file: FileId,
    target: Target,
    len: usize,
}

/// Where the soft reset register is in its window.
const SOFT_RESET: u64 = tilework_abi::tensix::SOFT_RESET_0 as u64 % tilework_abi::tlb::SIZE_2M;

impl Mapped for Map {
    fn address(&self) -> u64 {
        match self.target {
            Target::Memory(address) => address,
            _ => 0,
        }
    }
    fn read(&self, at: usize, out: &mut [u8]) {
        assert!(at + out.len() <= self.len);
        let mut machine = self.machine.0.borrow_mut();
        match self.target {
            Target::Memory(base) => {
                let start = usize::try_from(base - MEMORY).unwrap() + at;
                out.copy_from_slice(&machine.memory[start..start + out.len()]);
            }
            Target::Bar(bar, offset) | Target::Window(_, bar, offset) => {
                machine.card.read(bar, offset + at as u64, out);
            }
        }
    }
    fn write(&self, at: usize, data: &[u8]) {
        assert!(at + data.len() <= self.len);
        let mut machine = self.machine.0.borrow_mut();
        match self.target {
            Target::Memory(base) => {
                let start = usize::try_from(base - MEMORY).unwrap() + at;
                machine.memory[start..start + data.len()].copy_from_slice(data);
            }
            Target::Window(..) if machine.card.stuck && at as u64 == SOFT_RESET => {}
            Target::Bar(bar, offset) | Target::Window(_, bar, offset) => {
                machine.card.write(bar, offset + at as u64, data);
            }
        }
    }
    fn flush(&self) {}
}

impl Drop for Map {
    fn drop(&mut self) {
        let mut machine = self.machine.0.borrow_mut();
        let Machine { card, driver, memory, maps, .. } = &mut *machine;
        *maps -= 1;
        if !matches!(self.target, Target::Memory(_)) {
            driver.unmapped(card, &mut Process { argument: &mut [], memory }, self.file, self.target);
        }
    }
}
