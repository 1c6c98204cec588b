//! Host accesses: configuration space, registers that keep what is written, and memory through
//! the windows.

use tilework_abi::noc::{self, init};
use tilework_abi::{stream, tensix, tlb};

use super::super::rng::Rng;
use super::super::script::{Op, Place};
use super::{dram, kept, look, tile, tiles, write_word};

/// Host operations in parts.
pub(crate) struct Case {
    parts: Vec<Vec<Op>>,
    /// Always at the end: reads the memory.
    tail: Vec<Op>,
}

/// Clocks for writes in flight to arrive, before their data are read by another path.
const SETTLE: u32 = 5000;

/// Configuration words that say what the card is (PCI Local Bus Specification 3.0, figure 6-1):
/// vendor and device. The host chooses the addresses of the BARs.
const CONFIG: u32 = 0;

/// Registers of a Tensix tile, with the bits that keep written values (SoftReset.md).
const KEEPING: [(u32, u32); 4] = [
    (tensix::TRISC0_RESET_PC, u32::MAX),
    (tensix::TRISC1_RESET_PC, u32::MAX),
    (tensix::TRISC2_RESET_PC, u32::MAX),
    (tensix::TRISC_RESET_PC_OVERRIDE, 7),
];

/// Registers that software seldom reads back and ttsim does not implement.
const SELDOM_READ: [(u32, u32); 6] = [
    (tensix::NCRISC_RESET_PC, u32::MAX),
    (tensix::NCRISC_RESET_PC_OVERRIDE, 1),
    (tensix::DISABLE_RESET, 0x3FF),
    // The coprocessor's bits; the cores stay in reset.
    (tensix::SOFT_RESET_0, 0x7F_87FF),
    (NIU + init::BRCST_EXCLUDE, 0x3F_FFFF),
    (NIU + ROUTER_CFG_4, u32::MAX),
];

/// Registers of a request initiator that keep written values, with the implemented bits
/// (NoC/MemoryMap.md).
const INITIATOR: [(u32, u32); 10] = [
    (init::TARG_ADDR_LO, u32::MAX),
    (init::TARG_ADDR_MID, u32::MAX),
    (init::TARG_ADDR_HI, 0xFF_FFFF),
    (init::RET_ADDR_LO, u32::MAX),
    (init::RET_ADDR_MID, u32::MAX),
    (init::RET_ADDR_HI, 0xFF_FFFF),
    (init::PACKET_TAG, 0xF << noc::TAG_TRID_SHIFT),
    (init::CTRL, 0x7803_E3FF),
    (init::AT_LEN_BE, u32::MAX),
    (init::AT_DATA, u32::MAX),
];

/// Identification registers of a NIU, the same at every power-on (NoC/MemoryMap.md).
const IDENTITY: [u32; 3] = [noc::NODE_ID, noc::ID_LOGICAL, noc::NIU_CFG_0];

/// NIU configuration of which all bits are "available for general use by software"
/// (NoC/MemoryMap.md).
const ROUTER_CFG_2: u32 = 0x10C;
const ROUTER_CFG_4: u32 = 0x114;
const NIU: u32 = noc::NIU0_BASE;

impl Case {
    /// Random registers, each written and read back, a few at a time.
    pub(crate) fn registers(rng: &mut Rng) -> Self {
        let at = tile(rng);
        let parts = (0..rng.within(1..7)).map(|_| Self::register(rng, at)).collect();
        Self { parts, tail: Vec::new() }
    }

    fn register(rng: &mut Rng, at: (u8, u8)) -> Vec<Op> {
        let niu = noc::niu_base(rng.within(0..2));
        let keep = |addr, value: u32| vec![write_word(at, addr, value), look(at, addr, 4)];
        // What not every library has is rare, so that most cases run to their end.
        if rng.one_in(16) {
            return match rng.within(0..4) {
                0 => vec![look(at, niu + noc::ENDPOINT_ID, 4)],
                1 => Self::window_registers(rng),
                _ => {
                    let (addr, mask) = rng.pick(&SELDOM_READ);
                    let held = if addr == tensix::SOFT_RESET_0 { tensix::SOFT_RESET_ALL_CORES } else { 0 };
                    keep(addr, rng.edge() & mask | held)
                }
            };
        }
        match rng.within(0..8) {
            0 => vec![Op::Config(CONFIG)],
            1 => vec![look(at, niu + rng.pick(&IDENTITY), 4)],
            2 => keep(niu + ROUTER_CFG_2, rng.edge()),
            3 => {
                let addr = stream::reg_addr(rng.within(0..32), stream::REMOTE_DEST_BUF_SIZE);
                keep(addr, rng.word() & 0xFFFF)
            }
            4 | 5 => {
                let (addr, mask) = rng.pick(&KEEPING);
                keep(addr, rng.edge() & mask)
            }
            _ => {
                let (field, mask) = rng.pick(&INITIATOR);
                keep(niu + rng.within(0..noc::CMD_BUFS) * noc::CMD_BUF_STRIDE + field, rng.edge() & mask)
            }
        }
    }

    /// A window is used, which sets its registers, and they are read back.
    fn window_registers(rng: &mut Rng) -> Vec<Op> {
        let at = place(rng, tile, 0x1000);
        let first = tlb::REGS + tlb::REG_BYTES * u64::from(at.window);
        let mut ops = vec![Op::Write(at, vec![0; 4])];
        ops.extend((0..3).map(|i| Op::BarWord(first + 4 * i)));
        ops
    }

    /// Random writes and reads of a few zones, that overlap each other, in L1 and in DRAM.
    pub(crate) fn memory(rng: &mut Rng) -> Self {
        let tiles = tiles(rng, 4);
        let bank = dram(rng);
        let zone = u64::from(rng.within(0..0x16_0000)) & !0x3F;
        let zones: Vec<((u8, u8), u64)> = vec![
            (tiles[0], zone),
            (tiles[1], zone),
            (bank, u64::from(rng.word()) & 0xFFFF_C000),
            // Across the edge between two small windows.
            (bank, (u64::from(rng.within(1..2000)) << 21) - 0x1000),
        ];
        let rect = rectangle(&tiles[2..]);
        let mut parts = Vec::new();
        for _ in 0..rng.within(4..24) {
            let (target, base) = rng.pick(&zones);
            let addr = base + u64::from(rng.within(0..0x1800));
            let len = length(rng);
            let mut at = place(rng, |_| target, addr);
            parts.push(match rng.within(0..8) {
                0 if target != bank => {
                    (at.tile, at.end) = (rect.0, Some(rect.1));
                    // Rarely through a large window: not every library has those.
                    at.window = if rng.one_in(8) { at.window } else { at.window % tlb::KERNEL_WINDOW };
                    vec![Op::Write(at, rng.bytes(len as usize)), Op::Clock(SETTLE)]
                }
                1..=4 => vec![Op::Write(at, rng.bytes(len as usize)), Op::Clock(SETTLE)],
                _ => vec![Op::Read(at, len)],
            });
        }
        let all = zones.iter().copied().chain(tiles[2..].iter().map(|&tile| (tile, zone)));
        let tail = all.map(|(tile, base)| Op::Read(Place::new(tile, base), 0x2400)).collect();
        Self { parts, tail }
    }

    /// How many parts.
    pub(crate) fn parts(&self) -> usize {
        self.parts.len()
    }

    /// The kept parts, one after the other.
    pub(crate) fn script(&self, keep: &[bool]) -> Vec<Op> {
        kept(&self.parts, keep).flatten().chain(&self.tail).cloned().collect()
    }
}

/// A length: small ones of every alignment, words, cache lines, pages.
fn length(rng: &mut Rng) -> u32 {
    match rng.within(0..4) {
        0 => rng.within(1..20),
        1 => rng.pick(&[1, 2, 4, 8, 16, 32, 64]),
        2 => 64 * rng.within(1..32),
        _ => rng.within(1..0xC00),
    }
}

/// An address through a random window in a random order.
fn place(rng: &mut Rng, target: impl Fn(&mut Rng) -> (u8, u8), addr: u64) -> Place {
    let window = if rng.one_in(4) { rng.within(tlb::COUNT_2M..tlb::COUNT) } else { rng.within(0..tlb::KERNEL_WINDOW) };
    Place { tile: target(rng), end: None, addr, window, ordering: rng.within(0..3) }
}

/// The smallest rectangle around two tiles.
fn rectangle(corners: &[(u8, u8)]) -> ((u8, u8), (u8, u8)) {
    let [a, b] = [corners[0], corners[1]];
    ((a.0.min(b.0), a.1.min(b.1)), (a.0.max(b.0), a.1.max(b.1)))
}
