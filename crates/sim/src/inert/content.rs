//! What lies behind the NIUs of an inert tile.

use crate::dram::SparseMemory;
use crate::{Cycle, Fault, FaultClass, Memory};
use std::collections::BTreeMap;
use tilework_abi::grid::{
    ETHERNET_FIRMWARE_VERSION, ETHERNET_L1_BYTES, ETHERNET_REGISTERS, ETHERNET_STATUS, L2CPU_REGISTERS,
    L2CPU_TILE_REGISTERS, Site,
};
use tilework_abi::tensix::SOFT_RESET_0;

const ETHERNET_PAGE: &str = "BlackholeA0/EthernetTile/BabyRISCV/README.md, Memory map";
const L2CPU_PAGE: &str = "BlackholeA0/L2CPUTile/TLBWindows.md";
const FUSED_PAGE: &str = "BlackholeA0/NoC/MemoryMap.md, NIU_CFG_0";
/// Reset bits of the two cores of an Ethernet tile (tt-umd: ERISC0 is BRISC's bit 11, ERISC1 is
/// TRISC0's bit 12).
const ETHERNET_CORES: u32 = 1 << 11 | 1 << 12;
/// What the base firmware of an Ethernet tile leaves in L1 when no cable is connected:
/// that initialisation is done and the port is unused (tt-umd `blackhole_eth.hpp`:
/// `POSTCODE_ETH_INIT_SKIP`, `PORT_UNUSED`, `LINK_TRAIN_SKIP`), and its version, as in
/// the telemetry.
const ETHERNET_STATE: [(u64, u32); 4] = [
    (ETHERNET_STATUS, 0xC0DE_0000),
    (ETHERNET_STATUS + 4, 3),
    (ETHERNET_STATUS + 8, 1),
    (ETHERNET_FIRMWARE_VERSION, crate::arc::ETHERNET_FIRMWARE),
];

/// Storage behind a pair of NIUs.
#[derive(Clone, Debug)]
pub(super) enum Content {
    /// Nothing: an access is a fault.
    Nothing { why: &'static str, page: &'static str },
    /// L1 and registers of an Ethernet tile.
    Ethernet { l1: SparseMemory, registers: BTreeMap<u64, u32> },
    /// Registers of an L2CPU tile.
    L2Cpu { registers: BTreeMap<u64, u32> },
}

impl Content {
    pub(super) fn of(site: Site, works: bool) -> Self {
        match site {
            _ if !works => Self::Nothing { why: "the tile is fused off", page: FUSED_PAGE },
            Site::Ethernet { .. } => {
                let mut l1 = SparseMemory::new(ETHERNET_L1_BYTES.into());
                for (addr, value) in ETHERNET_STATE {
                    // The table lies in L1.
                    let _ = l1.write(addr, &value.to_le_bytes());
                }
                Self::Ethernet { l1, registers: BTreeMap::from([(SOFT_RESET_0.into(), ETHERNET_CORES)]) }
            }
            Site::L2Cpu { .. } => Self::L2Cpu { registers: BTreeMap::new() },
            _ => Self::Nothing { why: "the tile has nothing but its NIUs", page: "BlackholeA0/NoC/README.md" },
        }
    }

    /// The registers that `addr` belongs to, or a fault that says why there is none.
    fn registers(&mut self, addr: u64) -> Result<&mut BTreeMap<u64, u32>, Fault> {
        let unknown = |what: &str, page| Fault::new(FaultClass::UnimplementedFunctionality, what, page).at_addr(addr);
        match self {
            Self::Nothing { why, page } => Err(Fault::new(FaultClass::UndefinedBehavior, *why, page).at_addr(addr)),
            Self::Ethernet { registers, .. } if ETHERNET_REGISTERS.contains(&addr) => Ok(registers),
            Self::Ethernet { .. } => Err(unknown("an address of an Ethernet tile that is not built", ETHERNET_PAGE)),
            Self::L2Cpu { registers } if L2CPU_REGISTERS.contains(&addr) || L2CPU_TILE_REGISTERS.contains(&addr) => {
                Ok(registers)
            }
            Self::L2Cpu { .. } => Err(unknown("an address of an L2CPU tile that is not built", L2CPU_PAGE)),
        }
    }

    fn l1(&mut self, addr: u64) -> Option<&mut SparseMemory> {
        match self {
            Self::Ethernet { l1, .. } if addr < l1.size() => Some(l1),
            _ => None,
        }
    }
}

impl Memory for Content {
    fn read(&mut self, _at: Cycle, addr: u64, out: &mut [u8]) -> Result<(), Fault> {
        if let Some(l1) = self.l1(addr) {
            return l1
                .read(addr, out)
                .map_err(|e| Fault::new(FaultClass::UndefinedBehavior, e.to_string(), ETHERNET_PAGE).at_addr(addr));
        }
        for (byte, at) in out.iter_mut().zip(0u64..) {
            let addr = addr.wrapping_add(at);
            let word = self.registers(addr)?.get(&(addr & !3)).copied().unwrap_or(0);
            *byte = word.to_le_bytes()[(addr % 4) as usize];
        }
        Ok(())
    }
    fn write(&mut self, _at: Cycle, addr: u64, data: &[u8]) -> Result<(), Fault> {
        if let Some(l1) = self.l1(addr) {
            return l1
                .write(addr, data)
                .map_err(|e| Fault::new(FaultClass::UndefinedBehavior, e.to_string(), ETHERNET_PAGE).at_addr(addr));
        }
        let releases = |value: u32| value & ETHERNET_CORES != ETHERNET_CORES;
        let ethernet = matches!(self, Self::Ethernet { .. });
        for (part, at) in data.chunks(4).zip((0u64..).step_by(4)) {
            let addr = addr.wrapping_add(at);
            let (registers, bytes) = (self.registers(addr)?, part.try_into());
            let (true, Ok(bytes)) = (addr.is_multiple_of(4), bytes) else { return Err(super::whole_word(addr)) };
            let value = u32::from_le_bytes(bytes);
            if ethernet && addr == u64::from(SOFT_RESET_0) && releases(value) {
                let what = "a core of an Ethernet tile is released; these cores are not simulated";
                return Err(Fault::new(FaultClass::UnimplementedFunctionality, what, ETHERNET_PAGE).at_addr(addr));
            }
            registers.insert(addr, value);
        }
        Ok(())
    }
    fn is_l1(&self, addr: u64) -> bool {
        matches!(self, Self::Ethernet { l1, .. } if addr < l1.size())
    }
}
