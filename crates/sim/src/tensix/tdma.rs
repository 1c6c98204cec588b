//! TDMA-RISC registers: the mover's command queue, the packers' and unpackers' register writes, and
//! what packers report.
//!
//! The registers are rows of [`map::TDMA`]; what they do is in WormholeB0/TensixTile/TDMA-RISC.md
//! (Blackhole has no page of its own in the public tree). The scalers are storage: only Wormhole's
//! `PACR_SETREG` uses them. Sizes of what the packer has packed are the packer's ([`size_of`]);
//! metadata that only a packer can produce is refused.

use super::mover::Mover;
use crate::FaultClass;
use tilework_abi::reg::Access;
use tilework_abi::tensix::tdma as map;

/// All four metadata FIFOs are empty.
const FIFOS_EMPTY: u32 = 0x55;
/// The bits that one of the scalers has.
const SCALER: u32 = 0x1FF;

/// Bytes of registers for each of the packers that Wormhole has.
const PACKER_SPAN: u32 = 0x100;
/// The store resets the sums of packer 0.
const RESETS_PACKER: u32 = 1 << 16;
/// `ScalarsAndStatus`: the packer is busy for thread 2.
pub(super) const PACKER_IS_BUSY: u32 = 1 << 27;

/// Why an access is refused.
pub(super) type Refusal = (FaultClass, String);

/// The registers of a tile.
#[derive(Clone, Debug, Default)]
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

/// Bytes of registers for each thread among them.
const THREAD_SPAN: u32 = 0x40;

/// Which size of the one packer that Blackhole has a register reports, of which thread: of the last
/// tile (0), or of all (1).
pub(super) fn size_of(reg: u32) -> Option<(usize, usize)> {
    let which = [map::PACKED_SIZE, map::ACC_PACKED_SIZE].iter().position(|offset| *offset == reg & 0x3C)?;
    (reg < PACKER_SPAN).then_some(((reg / THREAD_SPAN) as usize, which))
}

/// What a store of `value` makes `l1_dest_addr_offset` of the packer (`ResetPackerAccTileSize`).
pub(super) fn offset_of(reg: u32, value: u32) -> Option<u32> {
    (reg & 0x3C == map::ACC_PACKED_SIZE && value & RESETS_PACKER != 0).then_some(value & 0xFFFF)
}

/// An access that no register takes.
fn refused(access: &str, reg: u32) -> Refusal {
    let what = match map::TDMA.at(reg) {
        Some(slot) => format!("{access} {slot}, which is {}", slot.reg.access.refusal()),
        None => format!("{access} TDMA register {reg:#x}, which is not built"),
    };
    (FaultClass::UnimplementedFunctionality, what)
}

impl Tdma {
    /// The parameters of the next command are lost.
    pub(super) fn clear_params(&mut self) {
        self.params = [0; 4];
    }

    /// `PackRegAddrRaw`, the addresses of `PACR_SETREG`.
    pub(super) fn pack_reg_addr(&self) -> u32 {
        self.pack_reg_addr
    }

    /// Loads the register at byte offset `reg` on behalf of core `core` (B, T0, T1, T2).
    pub(super) fn load(&self, core: usize, reg: u32, mover: &Mover) -> Result<u32, Refusal> {
        let Some(row) = map::TDMA.at(reg).map(|slot| slot.reg) else { return Err(refused("a load of", reg)) };
        match row.offset {
            map::STATUS => Ok(mover.status()),
            map::CLK_GATE_EN => Ok(self.clk_gate_en),
            map::CLK_GATE_HYST => Ok(self.clk_gate_hyst),
            map::XMOV_L1_BASE_ADDR => Ok(self.l1_base[core]),
            map::FIFO_PACKED_TILE_STATUS => Ok(self.pack_reg_addr << 8 | FIFOS_EMPTY),
            // Either unpacker's count of register writes would be in bit 31, either packer's
            // activity below it.
            map::SCALERS => Ok((0..3).fold(0, |all, i| all | self.scalers[i] << (9 * i))),
            // Write only, or a packer's count, which is zero as long as none has run.
            _ if matches!(row.access, Access::Wo | Access::RoIgnore) => Ok(0),
            _ => Err(refused("a load of", reg)),
        }
    }

    /// Stores to the register at byte offset `reg`. `Ok(false)`: the command queue is full.
    pub(super) fn store(&mut self, core: usize, reg: u32, value: u32, mover: &mut Mover) -> Result<bool, Refusal> {
        let Some(row) = map::TDMA.at(reg).map(|slot| slot.reg) else { return Err(refused("a store to", reg)) };
        let kept = value & row.mask;
        match row.offset {
            map::XMOV_SRC_ADDR..=map::XMOV_DIRECTION => self.params[(reg / 4) as usize] = value,
            map::COMMAND_ADDR => {
                let queued = mover.enqueue(value, self.params, self.l1_base[core]);
                return queued.map_err(|(class, what)| (class, what.into()));
            }
            map::CLK_GATE_EN => self.clk_gate_en = kept,
            map::CLK_GATE_HYST => {
                self.clk_gate_hyst = kept;
                self.scalers[3] = value >> 16 & SCALER;
            }
            map::XMOV_L1_BASE_ADDR => self.l1_base[core] = value,
            map::FIFO_PACKED_TILE_STATUS => self.pack_reg_addr = value,
            map::SCALERS => (0..3).for_each(|i| self.scalers[i] = kept >> (9 * i) & SCALER),
            // Sizes and flags cannot be written; resetting the sums of packers that have not run
            // changes nothing that is built.
            _ if row.access == Access::RoIgnore => {}
            _ => return Err(refused("a store to", reg)),
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
        t.store(0, map::CLK_GATE_EN, 0xFF, &mut m).unwrap();
        assert_eq!(t.load(1, map::CLK_GATE_EN, &m), Ok(0x7F));
        t.store(2, map::XMOV_L1_BASE_ADDR, 9, &mut m).unwrap();
        assert_eq!((t.load(2, map::XMOV_L1_BASE_ADDR, &m), t.load(0, map::XMOV_L1_BASE_ADDR, &m)), (Ok(9), Ok(0)));
        assert_eq!(t.load(0, map::STATUS, &m), Ok(0x428));
        assert_eq!(t.load(0, 0x30, &m).unwrap_err().0, FaultClass::UnimplementedFunctionality);
        assert_eq!((t.load(0, 0x118, &m), t.load(0, 0x39C, &m)), (Ok(0), Ok(0)));
    }

    #[test]
    fn the_queue_holds_four_commands_and_two_sets_of_parameters() {
        let (mut t, mut m) = (Tdma::default(), Mover::default());
        assert_eq!([0, 1].map(|_| t.store(0, map::COMMAND_ADDR, 0x40, &mut m)), [Ok(true), Ok(true)]);
        assert_eq!(t.load(0, map::STATUS, &m), Ok(0x210), "two places left, no parameters left");
        assert_eq!(t.store(0, map::COMMAND_ADDR, 0x40, &mut m).unwrap_err().0, FaultClass::UndefinedBehavior);
        m.set_bugs(crate::Bugs::AS_CHIP.without(crate::Bug::TdmaParameters));
        assert_eq!(t.store(0, map::COMMAND_ADDR, 0x40, &mut m), Ok(false), "without the bug it waits");
        assert_eq!(
            [0, 1, 2].map(|_| t.store(0, map::COMMAND_ADDR, 0x8000_0089, &mut m)),
            [Ok(true), Ok(true), Ok(false)]
        );
        assert_eq!(t.load(0, map::STATUS, &m), Ok(0x014));
    }

    #[test]
    fn registers_take_the_accesses_of_their_rows() {
        for reg in map::TDMA.regs {
            let (mut t, mut m) = (Tdma::default(), Mover::default());
            let (loaded, stored) = (t.load(0, reg.offset, &m), t.store(0, reg.offset, 0x40, &mut m));
            match reg.access {
                Access::NotBuilt => {
                    let named = |refusal: Refusal| refusal.1.contains(reg.name);
                    assert!(loaded.is_err_and(named) && stored.is_err_and(named), "{}", reg.name);
                }
                _ => assert_eq!((loaded, stored), (Ok(reg.reset), Ok(true)), "{}", reg.name),
            }
            if matches!(reg.access, Access::Wo) {
                assert_eq!(t.load(0, reg.offset, &m), Ok(0), "{}", reg.name);
            }
        }
        assert!(Tdma::default().load(0, 0x40, &Mover::default()).unwrap_err().1.contains("0x40"));
    }

    #[test]
    fn scalers_are_nine_bits_each() {
        let (mut t, mut m) = (Tdma::default(), Mover::default());
        t.store(0, map::SCALERS, u32::MAX, &mut m).unwrap();
        assert_eq!(t.load(0, 0x13C, &m), Ok((1 << 27) - 1));
        t.store(0, map::FIFO_PACKED_TILE_STATUS, 0x12, &mut m).unwrap();
        assert_eq!(t.load(0, map::FIFO_PACKED_TILE_STATUS, &m), Ok(0x1255));
    }
}
