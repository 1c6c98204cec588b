//! Auto-incremented counters: ADCs, which packers and unpackers address by, and RWCs, which the matrix and the vector unit address by.
//!
//! Follows WormholeB0/TensixTile/TensixCoprocessor/{ADCs,RWCs,SETADC,SETADCXX,SETADCXY,SETADCZW,INCADCXY,INCADCZW,ADDRCRXY,ADDRCRZW,SETRWC,INCRWC,
//! REG2FLOP_ADC}.md. An `AddrMod` has three bits on Blackhole and names one of eight sets of increments by itself (`assembly.yaml`; the
//! configuration has no `ADDR_MOD_SET` there).

use super::config::{ADDR_MOD_AB, ADDR_MOD_BIAS, ADDR_MOD_DST, Config};

/// Widths of X, Y, Z, W.
const WIDTHS: [u32; 4] = [18, 13, 8, 8];
const X: usize = 0;

/// A counter and its "CR" copy.
type Pair = [u32; 2];

/// The counters of one channel: X, Y, Z, W.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Channel([Pair; 4]);

impl Channel {
    fn set(&mut self, dim: usize, value: u32) {
        let value = value & mask(dim);
        self.0[dim] = [value, value];
    }
    fn increment(&mut self, dim: usize, by: u32) {
        let pair = &mut self.0[dim];
        pair[0] = pair[0].wrapping_add(by) & mask(dim);
    }
    fn increment_cr(&mut self, dim: usize, by: u32) {
        let value = self.0[dim][1].wrapping_add(by);
        self.set(dim, value);
    }
}

fn mask(dim: usize) -> u32 {
    (1 << WIDTHS[dim]) - 1
}

/// One thread's ADCs: unpacker 0, unpacker 1, packers; two channels each.
type ThreadAdcs = [[Channel; 2]; 3];

/// The ADCs of a tile.
#[derive(Debug, Default)]
pub(super) struct Adcs([ThreadAdcs; 3]);

impl Adcs {
    /// Executes one of the miscellaneous unit's ADC instructions for `thread`. `false`: it is none of them.
    pub(super) fn execute(&mut self, thread: usize, word: u32) -> bool {
        let opcode = word >> 24;
        let over = match opcode {
            0x50 => word >> 16 & 3,
            0x5E => 0,
            _ => word >> 18 & 3,
        };
        let Some(adcs) = self.0.get_mut(if over == 0 { thread } else { over as usize - 1 }) else { return true };
        // Bits 21..23 choose the counters' owners.
        let chosen = adcs.iter_mut().enumerate().filter(|(i, _)| word >> (21 + i) & 1 != 0).map(|(_, c)| c);
        // XY and ZW instructions: four three-bit operands, channel 0 before 1, the lower dimension first.
        let first = if matches!(opcode, 0x54..=0x56) { 2 } else { X };
        let operand = |i: u32| word >> (6 + 3 * i) & 7;
        let parts = |i: u32| ((i >> 1) as usize, first + (i & 1) as usize);
        for channels in chosen {
            match opcode {
                0x50 => channels[(word >> 20 & 1) as usize].set((word >> 18 & 3) as usize, word & 0x3_FFFF),
                0x5E => {
                    channels[0].set(X, word & 0x3FF);
                    channels[1].set(X, word >> 10 & 0x3FF);
                }
                0x51..=0x56 => {
                    for i in 0..4 {
                        let (channel, dim) = parts(i);
                        let channel = &mut channels[channel];
                        match (opcode, word >> i & 1) {
                            (0x52 | 0x55, _) => channel.increment(dim, operand(i)),
                            (0x51 | 0x54, 1) => channel.set(dim, operand(i)),
                            (0x53 | 0x56, 1) => channel.increment_cr(dim, operand(i)),
                            _ => {}
                        }
                    }
                }
                _ => return false,
            }
        }
        matches!(opcode, 0x50..=0x56 | 0x5E)
    }

    /// `REG2FLOP` with an ADC as its target; `value` is the GPR.
    pub(super) fn move_from_gpr(&mut self, thread: usize, word: u32, value: u32) {
        let shift8 = word >> 18 & 3;
        let value = match (word >> 22 & 3, shift8) {
            (1, 0) => value,
            (2, 0) => value & 0xFFFF,
            (2, 2) => value >> 16,
            (3, _) => value >> (8 * shift8) & 0xFF,
            _ => 0,
        };
        let thread = if word >> 20 & 1 != 0 { (word >> 16 & 3) as usize } else { thread };
        let Some(owner) = self.0.get_mut(thread).and_then(|t| t.get_mut((word >> 9 & 3) as usize)) else { return };
        let dim = (word >> 6 & 3) as usize;
        owner[(word >> 11 & 1) as usize].0[dim][(word >> 8 & 1) as usize] = value & mask(dim);
    }
}

/// One thread's RWCs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Rwc {
    dst: Pair,
    src_a: Pair,
    src_b: Pair,
    fidelity: u32,
    extra_addr_mod: bool,
}

const DST: u32 = 0x3FF;
const SRC: u32 = 0x3F;

fn step(pair: &mut Pair, by: u32, from_cr: bool, mask: u32) {
    if from_cr {
        let value = pair[1].wrapping_add(by) & mask;
        *pair = [value, value];
    } else {
        pair[0] = pair[0].wrapping_add(by) & mask;
    }
}

impl Rwc {
    /// The Dst counter.
    pub(super) fn dst(&self) -> u32 {
        self.dst[0]
    }

    /// `SETRWC`, without what it does to SrcA and SrcB.
    pub(super) fn set(&mut self, word: u32) {
        let bit = |i: u32| word >> i & 1 != 0;
        let value = |shift: u32| word >> shift & 0xF;
        if bit(0) {
            let base = if bit(18) { self.src_a[1] } else { 0 };
            self.src_a = [(base + value(6)) & SRC; 2];
        }
        if bit(1) {
            let base = if bit(19) { self.src_b[1] } else { 0 };
            self.src_b = [(base + value(10)) & SRC; 2];
        }
        if bit(2) || bit(21) {
            let base = match (bit(21), bit(20)) {
                (true, _) => self.dst[0],
                (false, true) => self.dst[1],
                (false, false) => 0,
            };
            self.dst = [(base + value(14)) & DST; 2];
        }
        if bit(3) {
            self.fidelity = 0;
        }
    }

    /// `INCRWC`.
    pub(super) fn increment(&mut self, word: u32) {
        step(&mut self.src_a, word >> 6 & 0xF, word >> 18 & 1 != 0, SRC);
        step(&mut self.src_b, word >> 10 & 0xF, word >> 19 & 1 != 0, SRC);
        step(&mut self.dst, word >> 14 & 0xF, word >> 20 & 1 != 0, DST);
    }

    /// `ApplyAddrMod`: the increments that the instruction of `thread` names.
    pub(super) fn apply(&mut self, config: &Config, thread: usize, addr_mod: u32) {
        let index = if self.extra_addr_mod { addr_mod | 4 } else { addr_mod };
        let set = |base: u32| config.field(thread, (base + index, 0, 16));
        let (ab, dst, bias) = (set(ADDR_MOD_AB), set(ADDR_MOD_DST), set(ADDR_MOD_BIAS));
        for (pair, half) in [(&mut self.src_a, ab), (&mut self.src_b, ab >> 8)] {
            if half & 0x80 != 0 {
                *pair = [0; 2];
            } else {
                step(pair, half & 0x3F, half & 0x40 != 0, SRC);
            }
        }
        let by = dst & 0x3FF;
        if dst & 0x800 != 0 {
            self.dst = [0; 2];
        } else if dst & 0x1000 != 0 {
            self.dst = [(self.dst[0] + by) & DST; 2];
        } else {
            step(&mut self.dst, by, dst & 0x400 != 0, DST);
        }
        self.fidelity = if dst & 0x8000 != 0 { 0 } else { (self.fidelity + (dst >> 13 & 3)) & 3 };
        if bias & 0x10 != 0 {
            self.extra_addr_mod = false;
        } else if bias & 3 != 0 {
            self.extra_addr_mod ^= true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const U0: u32 = 1 << 21;
    const PK: u32 = 1 << 23;

    fn pair(adcs: &Adcs, thread: usize, owner: usize, channel: usize, dim: usize) -> Pair {
        adcs.0[thread][owner][channel].0[dim]
    }

    #[test]
    fn setadc_sets_one_counter_and_can_name_another_thread() {
        let mut a = Adcs::default();
        // Thread override 3 (thread 2), Y of channel 1, unpacker 0 and packers.
        assert!(a.execute(0, 0x5000_0000 | U0 | PK | 1 << 20 | 1 << 18 | 3 << 16 | 0x1234));
        // The value's two top bits are the override, and Y has 13 bits.
        assert_eq!(pair(&a, 2, 0, 1, 1), [0x1234; 2]);
        assert_eq!((pair(&a, 2, 2, 1, 1), pair(&a, 2, 1, 1, 1), pair(&a, 0, 0, 1, 1)), ([0x1234; 2], [0; 2], [0; 2]));
    }

    #[test]
    fn xy_and_zw_instructions_touch_what_their_masks_name() {
        let mut a = Adcs::default();
        let values = 1 << 6 | 2 << 9 | 3 << 12 | 4 << 15;
        assert!(a.execute(1, 0x5100_0000 | U0 | values | 0b1011));
        assert!(a.execute(1, 0x5400_0000 | U0 | values | 0b1111));
        let all = |a: &Adcs| [(0, 0), (0, 1), (1, 0), (1, 1)].map(|(c, d)| pair(a, 1, 0, c, d)[0]);
        assert_eq!(all(&a), [1, 2, 0, 4]);
        assert_eq!([(0, 2), (0, 3), (1, 2), (1, 3)].map(|(c, d)| pair(&a, 1, 0, c, d)[0]), [1, 2, 3, 4]);
        assert!(a.execute(1, 0x5200_0000 | U0 | values));
        assert_eq!(all(&a), [2, 4, 3, 8]);
        assert_eq!(pair(&a, 1, 0, 0, 1), [4, 2], "an increment leaves the CR copy");
        assert!(a.execute(1, 0x5300_0000 | U0 | values | 0b0010));
        assert_eq!(pair(&a, 1, 0, 0, 1), [4, 4], "2 + 2 in the copy, then copied");
        assert!(a.execute(1, 0x5E00_0000 | U0 | 0x155 << 10 | 0x2AA));
        assert_eq!((pair(&a, 1, 0, 0, 0), pair(&a, 1, 0, 1, 0)), ([0x2AA; 2], [0x155; 2]));
        assert!(!a.execute(0, 0x5700_0001 | U0));
    }

    #[test]
    fn reg2flop_cuts_the_gpr_and_writes_one_of_the_pair() {
        let mut a = Adcs::default();
        // 16 bits, shift 2, unpacker 1, channel 0, the CR copy of Z (8 bits).
        a.move_from_gpr(0, 2 << 22 | 1 << 21 | 2 << 18 | 1 << 9 | 1 << 8 | 2 << 6, 0x0177_FFFF);
        assert_eq!(pair(&a, 0, 1, 0, 2), [0, 0x77]);
        a.move_from_gpr(0, 1 << 22 | 1 << 21 | 1 << 20 | 3 << 16, 5);
        assert_eq!(pair(&a, 0, 0, 0, 0), [0; 2], "there is no thread 3");
    }

    #[test]
    fn setrwc_and_incrwc_follow_the_page() {
        let mut r = Rwc::default();
        r.set(0x3700_0000 | 0xF | 5 << 6 | 6 << 10 | 7 << 14);
        assert_eq!((r.src_a, r.src_b, r.dst), ([5; 2], [6; 2], [7; 2]));
        r.increment(0x3800_0000 | 1 << 20 | 1 << 6 | 2 << 10 | 3 << 14);
        assert_eq!((r.src_a, r.src_b, r.dst), ([6, 5], [8, 6], [10; 2]));
        r.set(1 << 18 | 1 | 2 << 6 | 1 << 21 | 1 << 14);
        assert_eq!((r.src_a, r.dst), ([7; 2], [11; 2]), "relative to the copy, and Dst to the counter");
    }

    #[test]
    fn addr_mods_come_from_the_thread_s_configuration() {
        let mut c = Config::default();
        // Set 5: SrcA += 3, SrcB clear, Dst += 9 by way of CR, fidelity += 1.
        c.set_thread(2, ADDR_MOD_AB + 5, 0x8003).unwrap();
        c.set_thread(2, ADDR_MOD_DST + 5, 0x2409).unwrap();
        let mut r = Rwc { src_b: [4; 2], dst: [1, 2], fidelity: 3, ..Rwc::default() };
        r.apply(&c, 2, 5);
        assert_eq!(r, Rwc { src_a: [3, 0], src_b: [0; 2], dst: [11; 2], fidelity: 0, extra_addr_mod: false });
    }
}
