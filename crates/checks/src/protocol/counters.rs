//! The counters by which instructions of the coprocessor address: which of them an instruction
//! sets, and which it uses.
//!
//! Follows WormholeB0/TensixTile/TensixCoprocessor/{RWCs,ADCs}.md and the pages of the
//! instructions. An instruction that addresses by a counter uses it and mostly steps it: what it
//! leaves is that of its kernel.

use super::state::{Access, Part};
use std::fmt;
use tilework_abi::tensix::insn::{Insn, MatrixOp, MiscOp, PackerOp, UnpackerOp};

/// A counter of the matrix and the vector unit.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Rwc {
    SrcA,
    SrcB,
    Dst,
    Fidelity,
}

impl fmt::Display for Rwc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::SrcA => "the SrcA counter (RWC)",
            Self::SrcB => "the SrcB counter (RWC)",
            Self::Dst => "the Dst counter (RWC)",
            Self::Fidelity => "the fidelity phase (RWC)",
        })
    }
}

/// A counter of an unpacker (0, 1) or of the packer (2): channel, and which of X, Y, Z, W.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Adc {
    owner: u8,
    channel: u8,
    dimension: u8,
}

impl fmt::Display for Adc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { owner, channel, dimension } = *self;
        let name = ['X', 'Y', 'Z', 'W'][usize::from(dimension % 4)];
        match owner {
            PACKER => write!(f, "counter {name} of channel {channel} of the packer (ADC)"),
            _ => write!(f, "counter {name} of channel {channel} of unpacker {owner} (ADC)"),
        }
    }
}

/// The packer among the owners of ADCs.
const PACKER: u8 = 2;
const X: u8 = 0;
const Y: u8 = 1;
const Z: u8 = 2;
/// All four of the bits that choose counters.
const ALL: u32 = 0xF;

/// Whether an instruction adds to what is in Dst, or compares with it.
pub(super) fn adds_to_dst(insn: MatrixOp) -> bool {
    match insn {
        MatrixOp::Mvmul(_) | MatrixOp::Elwmul(_) | MatrixOp::Gmpool(_) | MatrixOp::Gapool(_) | MatrixOp::Dotpv(_) => {
            true
        }
        MatrixOp::Elwadd(insn) => insn.add_dst(),
        MatrixOp::Elwsub(insn) => insn.add_dst(),
        _ => false,
    }
}

/// The counters that an instruction of a thread sets and uses.
pub(super) fn of_instruction(thread: u8, insn: Insn, touch: &mut impl FnMut(Part, Access)) {
    match insn {
        Insn::Matrix(insn) => of_matrix(thread, insn, touch),
        Insn::Vector(_) => {
            let addresses = insn.row().is_some_and(|row| row.operands(insn.word()).any(|f| f.name == "addr_mod"));
            if addresses {
                steps(Part::Rwc(thread, Rwc::Dst), touch);
            }
        }
        Insn::Misc(insn) => of_misc(thread, insn, touch),
        Insn::Unpacker(UnpackerOp::Unpacr(insn)) => of_adcs(thread, insn.which_unpacker() as u8 & 1, touch),
        Insn::Packer(PackerOp::Pacr(_)) => of_adcs(thread, PACKER, touch),
        _ => {}
    }
}

/// An instruction uses a counter, and leaves it as its own.
fn steps(part: Part, touch: &mut impl FnMut(Part, Access)) {
    touch(part, Access::Uses);
    touch(part, Access::Sets);
}

fn of_matrix(thread: u8, insn: MatrixOp, touch: &mut impl FnMut(Part, Access)) {
    let used: &[Rwc] = match insn {
        MatrixOp::Setrwc(insn) => {
            // From a copy of the counter it only goes on.
            let copied = |copied: bool| if copied { Access::Uses } else { Access::Sets };
            let set = [
                (insn.src_a(), Rwc::SrcA, copied(insn.src_a_cr())),
                (insn.src_b(), Rwc::SrcB, copied(insn.src_b_cr())),
                (insn.dst() || insn.dst_c_to_cr(), Rwc::Dst, copied(insn.dst_cr() || insn.dst_c_to_cr())),
                (insn.fidelity(), Rwc::Fidelity, Access::Sets),
            ];
            return set.into_iter().filter(|(is_set, ..)| *is_set).for_each(|(_, counter, access)| {
                touch(Part::Rwc(thread, counter), access);
            });
        }
        MatrixOp::Mvmul(_) | MatrixOp::Elwmul(_) | MatrixOp::Dotpv(_) | MatrixOp::Gapool(_) => {
            &[Rwc::SrcA, Rwc::SrcB, Rwc::Dst, Rwc::Fidelity]
        }
        MatrixOp::Elwadd(_) | MatrixOp::Elwsub(_) | MatrixOp::Gmpool(_) => &[Rwc::SrcA, Rwc::SrcB, Rwc::Dst],
        MatrixOp::Mova2d(_) | MatrixOp::Movd2a(_) | MatrixOp::Movdbga2d(_) => &[Rwc::SrcA, Rwc::Dst],
        MatrixOp::Movb2d(_) | MatrixOp::Movd2b(_) | MatrixOp::Movdbgb2d(_) => &[Rwc::SrcB, Rwc::Dst],
        MatrixOp::Movb2a(_) => &[Rwc::SrcA, Rwc::SrcB],
        MatrixOp::Shiftxb(_) => &[Rwc::SrcB],
        _ => &[],
    };
    used.iter().for_each(|&counter| steps(Part::Rwc(thread, counter), touch));
}

/// Instructions that set ADCs. Those that only go on from what they find use it when something
/// addresses by it.
fn of_misc(thread: u8, insn: MiscOp, touch: &mut impl FnMut(Part, Access)) {
    let mut set = |owners: u32, thread_override: u32, first: u8, bits: u32| {
        let thread = if thread_override == 0 { thread } else { thread_override as u8 - 1 };
        for owner in (0..=PACKER).filter(|owner| owners >> owner & 1 != 0) {
            // Channel 0 before channel 1, the lower dimension first.
            for bit in (0..4).filter(|bit| bits >> bit & 1 != 0) {
                let adc = Adc { owner, channel: bit >> 1, dimension: first + (bit & 1) };
                touch(Part::Adc(thread, adc), Access::Sets);
            }
        }
    };
    match insn {
        MiscOp::Setadcxx(insn) => {
            // X of both channels.
            set(insn.cnt_set_mask(), 0, X, 0b0101);
        }
        MiscOp::Setadcxy(insn) => set(insn.cnt_set_mask(), insn.thread_override(), X, insn.bit_mask() & ALL),
        MiscOp::Setadczw(insn) => set(insn.cnt_set_mask(), insn.thread_override(), Z, insn.bit_mask() & ALL),
        MiscOp::Setadc(insn) => {
            let (channel, dimension) = (insn.channel(), insn.xyzw() as u8);
            // Its override is also the top of the value.
            set(insn.cnt_set_mask(), insn.thread_override(), dimension, 1 << (2 * channel));
        }
        _ => {}
    }
}

/// An instruction addresses by all counters of an owner, and may step Y and Z.
fn of_adcs(thread: u8, owner: u8, touch: &mut impl FnMut(Part, Access)) {
    for channel in 0..2 {
        for dimension in 0..4 {
            let part = Part::Adc(thread, Adc { owner, channel, dimension });
            match dimension {
                Y | Z => steps(part, touch),
                _ => touch(part, Access::Uses),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilework_abi::tensix::insn::{Mova2d, Pacr, Setadc, Setadcxx, Setadczw, Setrwc, Unpacr};

    fn of(word: u32) -> Vec<(String, Access)> {
        let mut found = Vec::new();
        of_instruction(1, Insn::decode(word), &mut |part, access| found.push((part.to_string(), access)));
        found
    }

    fn set(what: &[&str]) -> Vec<(String, Access)> {
        what.iter().map(|what| (format!("{what} of thread 1"), Access::Sets)).collect()
    }

    #[test]
    fn counters_are_set_as_masks_say() {
        let word = Setrwc::build().src_a(true).dst(true).fidelity(true).word();
        assert_eq!(of(word), set(&["the SrcA counter (RWC)", "the Dst counter (RWC)", "the fidelity phase (RWC)"]));
        let word = Setadczw::build().cnt_set_mask(0b10).bit_mask(0b0110).word();
        let expected = ["counter W of channel 0 of unpacker 1 (ADC)", "counter Z of channel 1 of unpacker 1 (ADC)"];
        assert_eq!(of(word), set(&expected));
        let word = Setadcxx::build().cnt_set_mask(0b100).word();
        let expected = ["counter X of channel 0 of the packer (ADC)", "counter X of channel 1 of the packer (ADC)"];
        assert_eq!(of(word), set(&expected));
        let word = Setadc::build().cnt_set_mask(1).channel(1).xyzw(3).word();
        assert_eq!(of(word), set(&["counter W of channel 1 of unpacker 0 (ADC)"]));
    }

    #[test]
    fn what_addresses_uses_counters_and_leaves_them_as_its_own() {
        let word = Mova2d::build().word();
        let names: Vec<_> = of(word).into_iter().map(|(name, access)| (name.contains("SrcA"), access)).collect();
        assert_eq!(names, [true, false].map(|a| [(a, Access::Uses), (a, Access::Sets)]).concat());
        for word in [Unpacr::build().which_unpacker(1).word(), Pacr::build().word()] {
            let uses = of(word).into_iter().filter(|(_, access)| *access == Access::Uses).count();
            assert_eq!((uses, of(word).len()), (8, 12), "all of both channels are used, Y and Z may be stepped");
        }
    }
}
