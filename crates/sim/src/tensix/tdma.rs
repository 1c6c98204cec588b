//! TDMA-RISC registers: the mover's command queue, the packers' and unpackers' register writes, and what packers report.
//!
//! Follows WormholeB0/TensixTile/TDMA-RISC.md (Blackhole has no page of its own in the public tree). Packers and unpackers are not built: their
//! configuration here is storage, and what they report is what units report that have never run. Metadata that only a packer can produce is
//! refused.

use super::config::Refusal;
use super::mover::Mover;
use crate::FaultClass;

const XMOV_SRC_ADDR: u32 = 0x00;
const XMOV_DIRECTION: u32 = 0x0C;
/// A store queues a command.
pub(super) const COMMAND_ADDR: u32 = 0x10;
const STATUS: u32 = 0x14;
const CLK_GATE_EN: u32 = 0x24;
const CLK_GATE_HYST: u32 = 0x28;
const XMOV_L1_BASE_ADDR: u32 = 0x2C;
const FIFO_PACKED_TILE_STATUS: u32 = 0x38;
const SCALERS: u32 = 0x3C;
/// Bits that `CLK_GATE_EN` keeps.
const CLK_GATE_EN_MASK: u32 = 0xFFFF_FF7F;
/// Bits that `CLK_GATE_HYST` keeps.
const CLK_GATE_HYST_MASK: u32 = 0x01FF_007F;
/// All four metadata FIFOs are empty.
const FIFOS_EMPTY: u32 = 0x55;
/// Registers of one packer.
const PACKER: u32 = 0x100;

/// The registers of a tile.
#[derive(Debug, Default)]
pub(super) struct Tdma {
    clk_gate_en: u32,
    clk_gate_hyst: u32,
    params: [u32; 4],
    /// By core: B, T0, T1, T2.
    l1_base: [u32; 4],
    /// `PackRegAddrRaw`.
    pack_reg_addr: u32,
    /// `Packers.SetRegHiScaler`, nine bits each.
    scalers: [u32; 4],
}

/// A register that a packer fills: sizes and flags of its last tiles, which are zero as long as none has run.
fn is_packer_count(reg: u32) -> bool {
    let (packer, at) = (reg / PACKER, reg % PACKER);
    packer < 4 && matches!(at, 0x18 | 0x1C | 0x20 | 0x58 | 0x5C | 0x98 | 0x9C)
}

impl Tdma {
    /// The parameters of the next command are lost.
    pub(super) fn clear_params(&mut self) {
        self.params = [0; 4];
    }

    /// Loads the register at byte offset `reg` on behalf of core `core` (B, T0, T1, T2).
    pub(super) fn load(&self, core: usize, reg: u32, mover: &Mover) -> Result<u32, Refusal> {
        match reg {
            XMOV_SRC_ADDR..=COMMAND_ADDR => Ok(0),
            STATUS => Ok(mover.status()),
            CLK_GATE_EN => Ok(self.clk_gate_en),
            CLK_GATE_HYST => Ok(self.clk_gate_hyst),
            XMOV_L1_BASE_ADDR => Ok(self.l1_base[core]),
            FIFO_PACKED_TILE_STATUS => Ok(self.pack_reg_addr << 8 | FIFOS_EMPTY),
            // Either unpacker's count of register writes would be in bit 31, either packer's activity below it.
            SCALERS | 0x13C => Ok((0..3).fold(0, |all, i| all | self.scalers[i] << (9 * i))),
            _ if is_packer_count(reg) => Ok(0),
            _ => Err((FaultClass::UnimplementedFunctionality, "a load of a TDMA register that is not built")),
        }
    }

    /// Stores to the register at byte offset `reg`. `Ok(false)`: the command queue is full.
    pub(super) fn store(&mut self, core: usize, reg: u32, value: u32, mover: &mut Mover) -> Result<bool, Refusal> {
        match reg {
            XMOV_SRC_ADDR..=XMOV_DIRECTION => self.params[(reg / 4) as usize] = value,
            COMMAND_ADDR => return mover.enqueue(value, self.params, self.l1_base[core]),
            STATUS => {}
            CLK_GATE_EN => self.clk_gate_en = value & CLK_GATE_EN_MASK,
            CLK_GATE_HYST => {
                self.clk_gate_hyst = value & CLK_GATE_HYST_MASK;
                self.scalers[3] = value >> 16 & 0x1FF;
            }
            XMOV_L1_BASE_ADDR => self.l1_base[core] = value,
            FIFO_PACKED_TILE_STATUS => self.pack_reg_addr = value,
            SCALERS | 0x13C => (0..3).for_each(|i| self.scalers[i] = value >> (9 * i) & 0x1FF),
            // Sizes and flags cannot be written; resetting the sums of packers that have not run changes nothing that is built.
            _ if is_packer_count(reg) => {}
            _ => return Err((FaultClass::UnimplementedFunctionality, "a store to a TDMA register that is not built")),
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn start_up_finds_an_idle_mover() {
        let (mut t, mut m) = (Tdma::default(), Mover::default());
        t.store(0, CLK_GATE_EN, 0xFF, &mut m).unwrap();
        assert_eq!(t.load(1, CLK_GATE_EN, &m), Ok(0x7F));
        t.store(2, XMOV_L1_BASE_ADDR, 9, &mut m).unwrap();
        assert_eq!((t.load(2, XMOV_L1_BASE_ADDR, &m), t.load(0, XMOV_L1_BASE_ADDR, &m)), (Ok(9), Ok(0)));
        assert_eq!(t.load(0, STATUS, &m), Ok(0x428));
        assert_eq!(t.load(0, 0x30, &m).unwrap_err().0, FaultClass::UnimplementedFunctionality);
        assert_eq!((t.load(0, 0x118, &m), t.load(0, 0x39C, &m)), (Ok(0), Ok(0)));
    }

    #[test]
    fn the_queue_holds_four_commands_and_two_sets_of_parameters() {
        let (mut t, mut m) = (Tdma::default(), Mover::default());
        assert_eq!([0, 1].map(|_| t.store(0, COMMAND_ADDR, 0x40, &mut m)), [Ok(true); 2]);
        assert_eq!(t.load(0, STATUS, &m), Ok(0x210), "two places left, no parameters left");
        assert_eq!(t.store(0, COMMAND_ADDR, 0x40, &mut m).unwrap_err().0, FaultClass::UndefinedBehavior);
        assert_eq!([0, 1, 2].map(|_| t.store(0, COMMAND_ADDR, 0x8000_0089, &mut m)), [Ok(true), Ok(true), Ok(false)]);
        assert_eq!(t.load(0, STATUS, &m), Ok(0x014));
    }

    #[test]
    fn scalers_are_nine_bits_each() {
        let (mut t, mut m) = (Tdma::default(), Mover::default());
        t.store(0, SCALERS, u32::MAX, &mut m).unwrap();
        assert_eq!(t.load(0, 0x13C, &m), Ok((1 << 27) - 1));
        t.store(0, FIFO_PACKED_TILE_STATUS, 0x12, &mut m).unwrap();
        assert_eq!(t.load(0, FIFO_PACKED_TILE_STATUS, &m), Ok(0x1255));
    }
}
