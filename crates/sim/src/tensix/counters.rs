//! Auto-incremented counters: ADCs, which packers and unpackers address by, and RWCs, which the
//! matrix and the vector unit address by.
//!
//! Follows WormholeB0/TensixTile/TensixCoprocessor/{ADCs,RWCs,REG2FLOP_ADC}.md and the pages of the
//! instructions that change them. An `AddrMod` has three bits on Blackhole and names one of eight
//! sets of increments by itself (`assembly.yaml`; the configuration has no `ADDR_MOD_SET` there).

use super::config::Config;
use tilework_abi::tensix::cfg::{self, Field};
use tilework_abi::tensix::insn::{Incrwc, MiscOp, Reg2flop, Setadc, Setadcxx, Setrwc};

/// Widths of X, Y, Z, W.
const WIDTHS: [u32; 4] = [18, 13, 8, 8];
/// The dimensions of `SETADCXY` and its like start here.
const X: usize = 0;
const Y: usize = 1;
/// The dimensions of `SETADCZW` and its like start here.
const Z: usize = 2;
/// The packers' place among the owners of ADCs.
const PACKERS: usize = 2;
/// All of an instruction's operands.
const ALL: u32 = 0xF;

/// A counter and its "CR" copy.
type Pair = [u32; 2];

/// The counters of one channel: X, Y, Z, W.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Channel([Pair; 4]);

impl Channel {
    /// Sets a counter and its copy.
    fn set(&mut self, dim: usize, value: u32) {
        let value = value & mask(dim);
        self.0[dim] = [value, value];
    }
    /// Increments a counter.
    fn increment(&mut self, dim: usize, by: u32) {
        let pair = &mut self.0[dim];
        pair[0] = pair[0].wrapping_add(by) & mask(dim);
    }
    /// Increments the copy, and the counter follows it.
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
#[derive(Clone, Debug, Default)]
pub(super) struct Adcs([ThreadAdcs; 3]);

/// Whose counters an instruction changes.
#[derive(Clone, Copy)]
struct Owners {
    /// The instruction's thread.
    thread: usize,
    /// Zero: the instruction's thread; otherwise one more than the thread.
    thread_override: u32,
    /// Bits for unpacker 0, unpacker 1 and the packers.
    mask: u32,
}

/// The values of one channel's counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Xyzw {
    pub(super) x: u32,
    pub(super) y: u32,
    pub(super) z: u32,
    pub(super) w: u32,
}

/// What an instruction does to a counter.
type Change = fn(&mut Channel, dim: usize, operand: u32);

impl Adcs {
    /// The counters of `thread` for `owner` (unpacker 0, unpacker 1, packers).
    #[inline]
    pub(super) fn get(&self, thread: usize, owner: usize, channel: usize) -> Xyzw {
        let [x, y, z, w] = self.0[thread][owner][channel].0.map(|pair| pair[0]);
        Xyzw { x, y, z, w }
    }

    /// Increments counters Y and Z, as instructions of packers and unpackers do.
    #[inline]
    pub(super) fn increment_yz(&mut self, thread: usize, owner: usize, channel: usize, [y, z]: [u32; 2]) {
        let counters = &mut self.0[thread][owner][channel];
        counters.increment(X + 1, y);
        counters.increment(Z, z);
    }

    /// The counters of `owners`.
    fn of(&mut self, owners: Owners) -> impl Iterator<Item = &mut [Channel; 2]> {
        let thread = match owners.thread_override {
            0 => owners.thread,
            other => other as usize - 1,
        };
        let adcs = self.0.get_mut(thread).into_iter().flatten().enumerate();
        adcs.filter(move |(i, _)| owners.mask >> i & 1 != 0).map(|(_, channels)| channels)
    }

    /// Executes an instruction of thread `thread` that changes ADCs; false: it is none.
    pub(super) fn execute(&mut self, thread: usize, insn: MiscOp) -> bool {
        let owners = |mask, thread_override| Owners { thread, thread_override, mask };
        match insn {
            MiscOp::Nop(_) | MiscOp::Setdvalid(_) => return false,
            MiscOp::Setadc(insn) => self.set_one(thread, insn),
            MiscOp::Setadcxx(insn) => self.set_x(thread, insn),
            MiscOp::Setadcxy(i) => {
                let operands = [i.ch0_x(), i.ch0_y(), i.ch1_x(), i.ch1_y()];
                self.change(owners(i.cnt_set_mask(), i.thread_override()), X, i.bit_mask(), operands, Channel::set);
            }
            MiscOp::Incadcxy(i) => {
                let operands = [i.ch0_x(), i.ch0_y(), i.ch1_x(), i.ch1_y()];
                self.change(owners(i.cnt_set_mask(), i.thread_override()), X, ALL, operands, Channel::increment);
            }
            MiscOp::Addrcrxy(i) => {
                let operands = [i.ch0_x(), i.ch0_y(), i.ch1_x(), i.ch1_y()];
                let owners = owners(i.cnt_set_mask(), i.thread_override());
                self.change(owners, X, i.bit_mask(), operands, Channel::increment_cr);
            }
            MiscOp::Setadczw(i) => {
                let operands = [i.ch0_z(), i.ch0_w(), i.ch1_z(), i.ch1_w()];
                self.change(owners(i.cnt_set_mask(), i.thread_override()), Z, i.bit_mask(), operands, Channel::set);
            }
            MiscOp::Incadczw(i) => {
                let operands = [i.ch0_z(), i.ch0_w(), i.ch1_z(), i.ch1_w()];
                self.change(owners(i.cnt_set_mask(), i.thread_override()), Z, ALL, operands, Channel::increment);
            }
            MiscOp::Addrcrzw(i) => {
                let operands = [i.ch0_z(), i.ch0_w(), i.ch1_z(), i.ch1_w()];
                let owners = owners(i.cnt_set_mask(), i.thread_override());
                self.change(owners, Z, i.bit_mask(), operands, Channel::increment_cr);
            }
        }
        true
    }

    /// `SETADC`.
    fn set_one(&mut self, thread: usize, insn: Setadc) {
        let thread_override = insn.thread_override();
        // The two top bits of the value are the override.
        let value = thread_override << 16 | insn.new_value();
        for channels in self.of(Owners { thread, thread_override, mask: insn.cnt_set_mask() }) {
            channels[insn.channel() as usize].set(insn.xyzw() as usize, value);
        }
    }

    /// `SETADCXX`.
    fn set_x(&mut self, thread: usize, insn: Setadcxx) {
        for channels in self.of(Owners { thread, thread_override: 0, mask: insn.cnt_set_mask() }) {
            channels[0].set(X, insn.x0_val());
            channels[1].set(X, insn.x1_val());
        }
    }

    /// Instructions for two dimensions, `first` and the next, of both channels: `operands` and the
    /// bits of `chosen` are those of channel 0 before channel 1, the lower dimension first.
    fn change(&mut self, owners: Owners, first: usize, chosen: u32, operands: [u32; 4], change: Change) {
        for channels in self.of(owners) {
            for (i, operand) in operands.into_iter().enumerate().filter(|(i, _)| chosen >> i & 1 != 0) {
                change(&mut channels[i >> 1], first + (i & 1), operand);
            }
        }
    }

    /// `REG2FLOP` with an ADC as its target; `value` is the GPR.
    pub(super) fn move_from_gpr(&mut self, thread: usize, insn: Reg2flop, value: u32) {
        let shift8 = insn.shift8();
        let value = match (insn.size_sel(), shift8) {
            (1, 0) => value,
            (2, 0) => value & 0xFFFF,
            (2, 2) => value >> 16,
            (3, _) => value >> (8 * shift8) & 0xFF,
            _ => 0,
        };
        let thread = if insn.override_thread() { insn.thread_sel() as usize } else { thread };
        let Some(owner) = self.0.get_mut(thread).and_then(|t| t.get_mut(insn.adc_sel() as usize)) else { return };
        let dim = insn.xyzw() as usize;
        owner[insn.channel() as usize].0[dim][usize::from(insn.cr())] = value & mask(dim);
    }
}

/// What a `PACR` reads of the packers' counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PackerCounters {
    /// Channel 0, for Dst: X, Y, Z, W.
    pub(super) src: [u32; 4],
    /// Channel 1, for L1.
    pub(super) dst: [u32; 4],
}

impl Adcs {
    /// The packers' counters of `thread`.
    #[inline]
    pub(super) fn packer(&self, thread: usize) -> PackerCounters {
        let [src, dst] = self.0[thread][PACKERS].map(|channel| channel.0.map(|pair| pair[0]));
        PackerCounters { src, dst }
    }

    /// Changes the packers' counters of `thread` as a word of `ADDR_MOD_PACK` says
    /// (WormholeB0/.../Packers/{Input,Output}AddressGenerator.md).
    #[inline]
    pub(super) fn advance_packer(&mut self, thread: usize, word: u32) {
        // By channel: where the bits for Y and Z start.
        for (channel, (y, z)) in self.0[thread][PACKERS].iter_mut().zip([(0, 12), (6, 14)]) {
            let (by, cr, clear) = (word >> y & 0xF, word >> y & 0x10 != 0, word >> y & 0x20 != 0);
            match (clear, cr) {
                (true, _) => channel.set(Y, 0),
                (false, true) => channel.increment_cr(Y, by),
                (false, false) => channel.increment(Y, by),
            }
            match word >> z & 2 != 0 {
                true => channel.set(Z, 0),
                false => channel.increment(Z, word >> z & 1),
            }
        }
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

    /// The SrcA counter.
    pub(super) fn src_a(&self) -> u32 {
        self.src_a[0]
    }
    /// The SrcB counter.
    pub(super) fn src_b(&self) -> u32 {
        self.src_b[0]
    }
    /// The fidelity phase.
    pub(super) fn fidelity(&self) -> u32 {
        self.fidelity
    }

    /// `SETRWC`, without what it does to SrcA and SrcB.
    pub(super) fn set(&mut self, insn: Setrwc) {
        if insn.src_a() {
            let base = if insn.src_a_cr() { self.src_a[1] } else { 0 };
            self.src_a = [(base + insn.src_a_val()) & SRC; 2];
        }
        if insn.src_b() {
            let base = if insn.src_b_cr() { self.src_b[1] } else { 0 };
            self.src_b = [(base + insn.src_b_val()) & SRC; 2];
        }
        if insn.dst() || insn.dst_c_to_cr() {
            let base = match (insn.dst_c_to_cr(), insn.dst_cr()) {
                (true, _) => self.dst[0],
                (false, true) => self.dst[1],
                (false, false) => 0,
            };
            self.dst = [(base + insn.dst_val()) & DST; 2];
        }
        if insn.fidelity() {
            self.fidelity = 0;
        }
    }

    /// `INCRWC`.
    pub(super) fn increment(&mut self, insn: Incrwc) {
        step(&mut self.src_a, insn.src_a_inc(), insn.src_a_cr(), SRC);
        step(&mut self.src_b, insn.src_b_inc(), insn.src_b_cr(), SRC);
        step(&mut self.dst, insn.dst_inc(), insn.dst_cr(), DST);
    }

    /// `ApplyPartialAddrMod`: as [`Self::apply`], but the fidelity phase stays.
    pub(super) fn apply_partial(&mut self, config: &Config, thread: usize, addr_mod: u32) {
        let fidelity = self.fidelity;
        self.apply(config, thread, addr_mod);
        self.fidelity = fidelity;
    }

    /// `ApplyAddrMod`: the increments that the instruction of `thread` names.
    pub(super) fn apply(&mut self, config: &Config, thread: usize, addr_mod: u32) {
        let index = if self.extra_addr_mod { addr_mod | 4 } else { addr_mod };
        let set = |first: Field| config.thread_word(thread, u32::from(first.word) + index);
        let ab = set(cfg::ADDR_MOD_AB_SEC_SRCAINCR);
        let dst = set(cfg::ADDR_MOD_DST_SEC_DESTINCR);
        let bias = set(cfg::ADDR_MOD_BIAS_SEC_BIASINCR);
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
    use tilework_abi::tensix::insn::{Addrcrxy, Incadcxy, Setadcxy, Setadczw, Setdvalid};

    /// Bits of `cnt_set_mask`.
    const U0: u32 = 1;
    const PK: u32 = 4;

    fn pair(adcs: &Adcs, thread: usize, owner: usize, channel: usize, dim: usize) -> Pair {
        adcs.0[thread][owner][channel].0[dim]
    }

    fn execute(adcs: &mut Adcs, thread: usize, word: u32) -> bool {
        adcs.execute(thread, MiscOp::decode(word).expect("a built instruction"))
    }

    #[test]
    fn setadc_sets_one_counter_and_can_name_another_thread() {
        let mut a = Adcs::default();
        // Thread override 3 (thread 2), Y of channel 1, unpacker 0 and packers.
        let insn = Setadc::build().cnt_set_mask(U0 | PK).channel(1).xyzw(1).thread_override(3).new_value(0x1234);
        assert!(execute(&mut a, 0, insn.word()));
        // The value's two top bits are the override, and Y has 13 bits.
        assert_eq!(pair(&a, 2, 0, 1, 1), [0x1234; 2]);
        assert_eq!((pair(&a, 2, 2, 1, 1), pair(&a, 2, 1, 1, 1), pair(&a, 0, 0, 1, 1)), ([0x1234; 2], [0; 2], [0; 2]));
    }

    #[test]
    fn xy_and_zw_instructions_touch_what_their_masks_name() {
        let mut a = Adcs::default();
        let setadcxy = Setadcxy::build().cnt_set_mask(U0).ch0_x(1).ch0_y(2).ch1_x(3).ch1_y(4).bit_mask(0b1011);
        assert!(execute(&mut a, 1, setadcxy.word()));
        let setadczw = Setadczw::build().cnt_set_mask(U0).ch0_z(1).ch0_w(2).ch1_z(3).ch1_w(4).bit_mask(0b1111);
        assert!(execute(&mut a, 1, setadczw.word()));
        let all = |a: &Adcs| [(0, 0), (0, 1), (1, 0), (1, 1)].map(|(c, d)| pair(a, 1, 0, c, d)[0]);
        assert_eq!(all(&a), [1, 2, 0, 4]);
        assert_eq!([(0, 2), (0, 3), (1, 2), (1, 3)].map(|(c, d)| pair(&a, 1, 0, c, d)[0]), [1, 2, 3, 4]);
        let incadcxy = Incadcxy::build().cnt_set_mask(U0).ch0_x(1).ch0_y(2).ch1_x(3).ch1_y(4);
        assert!(execute(&mut a, 1, incadcxy.word()));
        assert_eq!(all(&a), [2, 4, 3, 8]);
        assert_eq!(pair(&a, 1, 0, 0, 1), [4, 2], "an increment leaves the CR copy");
        let addrcrxy = Addrcrxy::build().cnt_set_mask(U0).ch0_x(1).ch0_y(2).ch1_x(3).ch1_y(4).bit_mask(0b0010);
        assert!(execute(&mut a, 1, addrcrxy.word()));
        assert_eq!(pair(&a, 1, 0, 0, 1), [4, 4], "2 + 2 in the copy, then copied");
        let insn = Setadcxx::build().cnt_set_mask(U0).x1_val(0x155).x0_val(0x2AA);
        assert!(execute(&mut a, 1, insn.word()));
        assert_eq!((pair(&a, 1, 0, 0, 0), pair(&a, 1, 0, 1, 0)), ([0x2AA; 2], [0x155; 2]));
        assert!(!execute(&mut a, 0, Setdvalid::build().set_valid(1).word()));
    }

    #[test]
    fn a_pack_moves_y_and_z_of_both_channels() {
        let mut a = Adcs::default();
        // Y of Dst += 4 and its Z += 1; Y of L1 by way of CR += 3, its Z stays.
        for _ in 0..2 {
            a.advance_packer(1, 4 | 1 << 12 | 3 << 6 | 1 << 10);
        }
        assert_eq!(a.packer(1), PackerCounters { src: [0, 8, 2, 0], dst: [0, 6, 0, 0] });
        assert_eq!((pair(&a, 1, 2, 0, 1), pair(&a, 1, 2, 1, 1)), ([8, 0], [6, 6]));
        // Clearing comes first.
        a.advance_packer(1, 0xF | 0x20 | 3 << 12 | 0xF << 6 | 1 << 11 | 3 << 14);
        assert_eq!(a.packer(1), PackerCounters { src: [0; 4], dst: [0; 4] });
        assert_eq!(a.packer(0), a.packer(2));
    }

    #[test]
    fn reg2flop_cuts_the_gpr_and_writes_one_of_the_pair() {
        let mut a = Adcs::default();
        // 16 bits, shift 2, unpacker 1, channel 0, the CR copy of Z (8 bits).
        let insn = Reg2flop::build().size_sel(2).to_adc(true).shift8(2).adc_sel(1).cr(true).xyzw(2);
        a.move_from_gpr(0, Reg2flop::decode(insn.word()).unwrap(), 0x0177_FFFF);
        assert_eq!(pair(&a, 0, 1, 0, 2), [0, 0x77]);
        let insn = Reg2flop::build().size_sel(1).to_adc(true).override_thread(true).thread_sel(3);
        a.move_from_gpr(0, Reg2flop::decode(insn.word()).unwrap(), 5);
        assert_eq!(pair(&a, 0, 0, 0, 0), [0; 2], "there is no thread 3");
    }

    #[test]
    fn setrwc_and_incrwc_follow_the_page() {
        let mut r = Rwc::default();
        let all = Setrwc::build().src_a(true).src_b(true).dst(true).fidelity(true);
        r.set(Setrwc::decode(all.src_a_val(5).src_b_val(6).dst_val(7).word()).unwrap());
        assert_eq!((r.src_a, r.src_b, r.dst), ([5; 2], [6; 2], [7; 2]));
        let insn = Incrwc::build().dst_cr(true).src_a_inc(1).src_b_inc(2).dst_inc(3);
        r.increment(Incrwc::decode(insn.word()).unwrap());
        assert_eq!((r.src_a, r.src_b, r.dst), ([6, 5], [8, 6], [10; 2]));
        let insn = Setrwc::build().src_a(true).src_a_cr(true).src_a_val(2).dst_c_to_cr(true).dst_val(1);
        r.set(Setrwc::decode(insn.word()).unwrap());
        assert_eq!((r.src_a, r.dst), ([7; 2], [11; 2]), "relative to the copy, and Dst to the counter");
    }

    #[test]
    fn addr_mods_come_from_the_thread_s_configuration() {
        let mut c = Config::default();
        // Set 5: SrcA += 3, SrcB clear, Dst += 9 by way of CR, fidelity += 1.
        c.set_thread(2, u32::from(cfg::ADDR_MOD_AB_SEC_SRCAINCR.word) + 5, 0x8003).unwrap();
        c.set_thread(2, u32::from(cfg::ADDR_MOD_DST_SEC_DESTINCR.word) + 5, 0x2409).unwrap();
        let mut r = Rwc { src_b: [4; 2], dst: [1, 2], fidelity: 3, ..Rwc::default() };
        r.apply(&c, 2, 5);
        assert_eq!(r, Rwc { src_a: [3, 0], src_b: [0; 2], dst: [11; 2], fidelity: 0, extra_addr_mod: false });
        r.apply_partial(&c, 2, 5);
        assert_eq!((r.src_a, r.dst, r.fidelity), ([6, 0], [20; 2], 0), "the phase stays");
    }
}
