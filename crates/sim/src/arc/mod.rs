//! The ARC tile, as far as a driver looks at start-up: boot status, telemetry, coordinate translation.
//!
//! The ARC's firmware is not simulated; what it leaves behind for a driver is. Scratch RAM word 13 points to the telemetry table in the
//! ARC's shared memory (layout and tags: [`tilework_abi::telemetry`]). Other scratch words are storage. Everything else that the address space
//! holds (PLLs, I2C, eFuses, message queue) is a fault, with the address.

#[cfg(test)]
mod tests;

use crate::agenda::Agenda;
use crate::noc::{self, Dest, Outbox, Packet};
use crate::{Cycle, Fault, FaultClass, Memory, Node, timing};
use tilework_abi::board::{AICLK_MHZ, Board, DRAM_BANKS, PCIE_PHYSICAL};
use tilework_abi::noc::{MAX_PACKET_BYTES, NIU_CFG_0_TRANSLATE};
use tilework_abi::telemetry::{self as abi, tag};

const READ: &str = "WormholeB0/ARCTile/README.md";
/// Words of scratch RAM (estimate: drivers use 0..13; the reset unit's window has room for 64).
const SCRATCH_WORDS: u64 = 64;
/// First scratch register of the reset unit, where the ARC leaves its post code, and how many there are (WormholeB0/ARCTile/ResetUnit.md;
/// tt-umd reads the first while it waits for the firmware).
const RESET_SCRATCH: u64 = abi::APB_BASE + 0x3_0060;
const RESET_SCRATCH_WORDS: u64 = 6;
/// Where the table lies in the shared memory; drivers only require that it lies there.
const TABLE: u64 = abi::CSM_BASE + 0x1000;
/// Version of the table's layout: major in bits 23..16, which tt-kmd (`telemetry_probe`) wants to be at most 1.
const TABLE_VERSION: u32 = 0x0001_0000;

/// The ARC tile.
#[derive(Debug)]
pub struct ArcTile {
    registers: Registers,
    arrivals: Agenda<Packet>,
}

/// What packets see.
#[derive(Debug)]
struct Registers {
    scratch: [u32; SCRATCH_WORDS as usize],
    reset_scratch: [u32; RESET_SCRATCH_WORDS as usize],
    table: Vec<u32>,
}

/// The telemetry of a board: tags and values.
///
/// Ethernet and L2CPU tiles are not simulated and therefore not enabled.
fn telemetry(board: Board) -> Vec<(u16, u32)> {
    let product = match board {
        Board::P100 => abi::PRODUCT_P100A,
        Board::P150 => abi::PRODUCT_P150B,
    };
    let columns = (0..).zip(abi::TENSIX_COLUMN_ORDER).filter(|(_, x)| board.worker_columns().contains(x));
    let columns = columns.fold(0, |mask, (bit, _)| mask | 1 << bit);
    let banks = (0..DRAM_BANKS as u32).filter(|&b| board.harvested_dram().map(u32::from) != Some(b));
    let (gddr, trained) = banks.fold((0, 0), |(mask, status), b| (mask | 1 << b, status | 1 << (2 * b)));
    // Two bits per PCIe tile; the first sits in physical column 2, the second in column 11 (tt-umd `PCIE_CORES_NOC0`).
    let pcie = if PCIE_PHYSICAL.x == 2 { 1 } else { 1 << 2 };
    vec![
        // The product number starts at bit 36 of the board id.
        (tag::BOARD_ID_HIGH, product << 4),
        (tag::BOARD_ID_LOW, 1),
        (tag::AICLK, AICLK_MHZ),
        // AXI and ARC clocks, GDDR speed and flash version (estimates, round; nothing here depends on them).
        (tag::AXICLK, 960),
        (tag::ARCCLK, 800),
        (tag::GDDR_STATUS, trained),
        (tag::GDDR_SPEED, 16_000),
        (tag::FLASH_BUNDLE_VERSION, 18 << 24 | 10 << 16),
        (tag::ENABLED_TENSIX_COL, columns),
        (tag::ENABLED_ETH, 0),
        (tag::ENABLED_GDDR, gddr),
        (tag::ENABLED_L2CPU, 0),
        (tag::PCIE_USAGE, pcie),
        (tag::NOC_TRANSLATION, 1),
    ]
}

impl ArcTile {
    /// The ARC of a board whose firmware has started.
    pub fn new(board: Board) -> Self {
        let entries = telemetry(board);
        let mut table = vec![TABLE_VERSION, entries.len() as u32];
        table.extend(entries.iter().zip(0u32..).map(|(&(tag, _), index)| u32::from(tag) | index << 16));
        table.extend(entries.iter().map(|&(_, value)| value));
        let data = TABLE + abi::FIRST_ENTRY + 4 * entries.len() as u64;
        let mut scratch = [0; SCRATCH_WORDS as usize];
        for (addr, value) in [
            (abi::BOOT_STATUS, abi::BOOT_STATUS_READY),
            (abi::DATA_POINTER, data as u32),
            (abi::TABLE_POINTER, TABLE as u32),
        ] {
            scratch[((addr - abi::scratch_ram(0)) / 4) as usize] = value;
        }
        Self {
            registers: Registers { scratch, reset_scratch: [0; RESET_SCRATCH_WORDS as usize], table },
            arrivals: Agenda::new(),
        }
    }

    fn serve(&mut self, at: Cycle, packet: &Packet, out: &mut Outbox) -> Result<(), Fault> {
        let Dest::Unicast(here) = packet.to else {
            let what = "a multicast reached the ARC tile; only Tensix tiles receive them";
            return Err(Fault::new(FaultClass::UnsupportedFunctionality, what, READ));
        };
        if let &crate::noc::Body::ReadRequest { addr, len, .. } = &packet.body
            && len > MAX_PACKET_BYTES
        {
            return Err(unknown(addr));
        }
        if let Some(answer) = noc::serve(at, here, packet, &mut self.registers)? {
            out.push(at + timing::ARC_ACCESS, answer);
        }
        Ok(())
    }
}

fn unknown(addr: u64) -> Fault {
    Fault::new(FaultClass::UnimplementedFunctionality, "an address of the ARC tile that is not built", READ)
        .at_addr(addr)
}

impl Registers {
    /// The word at `addr`, a multiple of four.
    fn word(&self, addr: u64) -> Result<u32, Fault> {
        let index = |base: u64| addr.checked_sub(base).map(|at| usize::try_from(at / 4).unwrap_or(usize::MAX));
        if abi::NIU_CFG.contains(&addr) {
            return Ok(NIU_CFG_0_TRANSLATE);
        }
        if let Some(&word) = index(abi::scratch_ram(0)).and_then(|i| self.scratch.get(i)) {
            return Ok(word);
        }
        if let Some(&word) = index(RESET_SCRATCH).and_then(|i| self.reset_scratch.get(i)) {
            return Ok(word);
        }
        if (abi::CSM_BASE..abi::CSM_BASE + abi::CSM_BYTES).contains(&addr) {
            return Ok(index(TABLE).and_then(|i| self.table.get(i)).copied().unwrap_or(0));
        }
        Err(unknown(addr))
    }
}

impl Memory for Registers {
    fn read(&mut self, _at: Cycle, addr: u64, out: &mut [u8]) -> Result<(), Fault> {
        for (byte, at) in out.iter_mut().zip(0u64..) {
            let addr = addr.checked_add(at).ok_or_else(|| unknown(addr))?;
            *byte = self.word(addr & !3)?.to_le_bytes()[(addr % 4) as usize];
        }
        Ok(())
    }
    fn write(&mut self, _at: Cycle, addr: u64, data: &[u8]) -> Result<(), Fault> {
        let slot = |base: u64| addr.checked_sub(base).filter(|at| at % 4 == 0).map(|at| (at / 4) as usize);
        let word = slot(abi::scratch_ram(0)).and_then(|i| self.scratch.get_mut(i));
        let word = match word {
            None => slot(RESET_SCRATCH).and_then(|i| self.reset_scratch.get_mut(i)),
            word => word,
        };
        match (word, data.try_into()) {
            (Some(word), Ok(bytes)) => {
                *word = u32::from_le_bytes(bytes);
                Ok(())
            }
            _ => Err(unknown(addr)),
        }
    }
    fn is_l1(&self, _addr: u64) -> bool {
        false
    }
}

impl Node for ArcTile {
    fn next(&self) -> Cycle {
        self.arrivals.next()
    }
    fn deliver(&mut self, at: Cycle, packet: Packet) {
        self.arrivals.arrive(at, packet);
    }
    fn run(&mut self, until: Cycle, out: &mut Outbox) -> Result<(), Fault> {
        while let Some((at, packet)) = self.arrivals.pop_before(out.horizon(until)) {
            self.serve(at, &packet, out).map_err(|fault| fault.at_cycle(at).sent_by(packet.from))?;
        }
        Ok(())
    }
}
