//! TDMA-RISC registers that start-up code touches.
//!
//! Follows WormholeB0/TensixTile/TDMA-RISC.md (Blackhole has no page of its own in the public tree). The mover and the packers' metadata
//! are not built: enqueueing a command and reading metadata are refused.

use super::config::Refusal;
use crate::FaultClass;

const XMOV_SRC_ADDR: u32 = 0x00;
const XMOV_DIRECTION: u32 = 0x0C;
const COMMAND_ADDR: u32 = 0x10;
const STATUS: u32 = 0x14;
const CLK_GATE_EN: u32 = 0x24;
const CLK_GATE_HYST: u32 = 0x28;
const XMOV_L1_BASE_ADDR: u32 = 0x2C;
/// Bits that `CLK_GATE_EN` keeps.
const CLK_GATE_EN_MASK: u32 = 0xFFFF_FF7F;
/// Bits that `CLK_GATE_HYST` keeps.
const CLK_GATE_HYST_MASK: u32 = 0x01FF_007F;
/// Nothing moves: command queue empty (bit 3) with its four places free (bits 8..), parameter queue empty (bit 5).
const IDLE: u32 = 1 << 3 | 1 << 5 | 4 << 8;

/// The registers of a tile.
#[derive(Debug, Default)]
pub(super) struct Tdma {
    clk_gate_en: u32,
    clk_gate_hyst: u32,
    params: [u32; 4],
    /// By core: B, T0, T1, T2.
    l1_base: [u32; 4],
}

impl Tdma {
    /// Loads the register at byte offset `reg` on behalf of core `core` (B, T0, T1, T2).
    pub(super) fn load(&self, core: usize, reg: u32) -> Result<u32, Refusal> {
        match reg {
            XMOV_SRC_ADDR..=COMMAND_ADDR => Ok(0),
            STATUS => Ok(IDLE),
            CLK_GATE_EN => Ok(self.clk_gate_en),
            CLK_GATE_HYST => Ok(self.clk_gate_hyst),
            XMOV_L1_BASE_ADDR => Ok(self.l1_base[core]),
            _ => Err((FaultClass::UnimplementedFunctionality, "a load of a TDMA register that is not built")),
        }
    }

    /// Stores to the register at byte offset `reg`.
    pub(super) fn store(&mut self, core: usize, reg: u32, value: u32) -> Result<(), Refusal> {
        match reg {
            XMOV_SRC_ADDR..=XMOV_DIRECTION => self.params[(reg / 4) as usize] = value,
            STATUS => {}
            CLK_GATE_EN => self.clk_gate_en = value & CLK_GATE_EN_MASK,
            CLK_GATE_HYST => self.clk_gate_hyst = value & CLK_GATE_HYST_MASK,
            XMOV_L1_BASE_ADDR => self.l1_base[core] = value,
            COMMAND_ADDR => {
                return Err((FaultClass::UnimplementedFunctionality, "a mover command; the mover is not built"));
            }
            _ => return Err((FaultClass::UnimplementedFunctionality, "a store to a TDMA register that is not built")),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn start_up_finds_an_idle_mover() {
        let mut t = Tdma::default();
        t.store(0, CLK_GATE_EN, 0xFF).unwrap();
        assert_eq!(t.load(1, CLK_GATE_EN), Ok(0x7F));
        t.store(2, XMOV_L1_BASE_ADDR, 9).unwrap();
        assert_eq!((t.load(2, XMOV_L1_BASE_ADDR), t.load(0, XMOV_L1_BASE_ADDR)), (Ok(9), Ok(0)));
        assert_eq!(t.load(0, STATUS), Ok(0x428));
        assert_eq!(t.store(0, COMMAND_ADDR, 1).unwrap_err().0, FaultClass::UnimplementedFunctionality);
        assert_eq!(t.load(0, 0x118).unwrap_err().0, FaultClass::UnimplementedFunctionality);
    }
}
