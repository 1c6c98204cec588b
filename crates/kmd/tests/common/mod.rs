//! A driver on a simulated chip, for a program whose memory is a vector.
#![allow(unreachable_pub, reason = "the test is what reaches it")]

use tilework_abi::board::Board;
use tilework_abi::tlb::Bar;
use tilework_kmd::layout::Request;
use tilework_kmd::{Card, Driver, Errno, FileId, OpenFlags, Refusal, UserMemory};
use tilework_sim::{Chip, ChipConfig};
use zerocopy::{FromBytes, Immutable, IntoBytes};

pub struct SimCard {
    pub chip: Chip,
    pub resets: u32,
}

impl Card for SimCard {
    fn read(&mut self, bar: Bar, offset: u64, out: &mut [u8]) {
        self.chip.bar_read(bar, offset, out).unwrap();
    }
    fn write(&mut self, bar: Bar, offset: u64, data: &[u8]) {
        self.chip.bar_write(bar, offset, data).unwrap();
    }
    fn reset(&mut self) {
        self.resets += 1;
        self.chip = Chip::new(ChipConfig::new(self.chip.board())).unwrap();
    }
}

/// Memory at addresses from [`Memory::BASE`] on. Buffers are behind it.
pub struct Memory {
    pub bytes: Vec<u8>,
    pub buffers: Vec<(u64, u64)>,
    pub read_only: bool,
}

impl Memory {
    pub const BASE: u64 = 0x7000_0000;
    pub const SIZE: u64 = 1 << 20;

    fn range(&self, address: u64, len: usize) -> Result<std::ops::Range<usize>, Errno> {
        let start = address.checked_sub(Self::BASE).ok_or(Errno::Fault)? as usize;
        if start + len > self.bytes.len() { Err(Errno::Fault) } else { Ok(start..start + len) }
    }
}

impl UserMemory for Memory {
    fn read(&mut self, address: u64, out: &mut [u8]) -> Result<(), Errno> {
        out.copy_from_slice(&self.bytes[self.range(address, out.len())?]);
        Ok(())
    }
    fn write(&mut self, address: u64, data: &[u8]) -> Result<(), Errno> {
        let range = self.range(address, data.len())?;
        self.bytes[range].copy_from_slice(data);
        Ok(())
    }
    fn can_be_pinned(&mut self, address: u64, size: u64, read_only: bool) -> bool {
        self.range(address, size as usize).is_ok() && (read_only || !self.read_only)
    }
    fn allocate(&mut self, size: u64) -> Result<u64, Errno> {
        let at = 0x9000_0000 + 0x2000_0000 * self.buffers.len() as u64;
        self.buffers.push((at, size));
        Ok(at)
    }
    fn free(&mut self, address: u64, size: u64) {
        self.buffers.retain(|&buffer| buffer != (address, size));
    }
}

/// A driver, its card and a program.
pub struct Rig {
    pub card: SimCard,
    pub driver: Driver,
    pub memory: Memory,
}

impl Rig {
    pub fn new() -> Self {
        let chip = Chip::new(ChipConfig::new(Board::P100)).unwrap();
        let mut card = SimCard { chip, resets: 0 };
        let driver = Driver::new(Board::P100, &mut card);
        let memory = Memory { bytes: vec![0xEE; Memory::SIZE as usize], buffers: Vec::new(), read_only: false };
        Self { card, driver, memory }
    }
    pub fn open(&mut self) -> FileId {
        self.open_with(OpenFlags::default()).unwrap()
    }
    pub fn open_with(&mut self, flags: OpenFlags) -> Result<FileId, Refusal> {
        self.driver.open(&mut self.card, flags)
    }
    pub fn close(&mut self, file: FileId) {
        self.driver.close(&mut self.card, &mut self.memory, file);
    }
    /// A request with its argument at the start of memory.
    pub fn ask<In: IntoBytes + Immutable>(
        &mut self,
        file: FileId,
        request: Request,
        wanted: In,
    ) -> Result<(), Refusal> {
        self.memory.write(Memory::BASE, wanted.as_bytes()).unwrap();
        self.driver.request(&mut self.card, &mut self.memory, file, request.command(), Memory::BASE)
    }
    /// What lies `at` bytes behind the argument.
    pub fn answer<Out: FromBytes>(&mut self, at: usize) -> Out {
        Out::read_from_prefix(&self.memory.bytes[at..]).unwrap().0
    }
}

/// A refusal with that error.
pub fn error(errno: Errno) -> Result<(), Refusal> {
    Err(Refusal::Error(errno))
}
