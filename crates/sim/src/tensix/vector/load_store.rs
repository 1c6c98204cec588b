//! Moves between Dst and the registers.
//!
//! Follows BlackholeA0/TensixTile/TensixCoprocessor/{SFPLOAD,SFPSTORE}.md. A row of Dst that
//! `ZEROACC` has cleared loads as zeros, and once a part of it is stored to, the rest holds what it
//! held before: so found on another simulator, not documented. A load that comes too soon after the
//! matrix unit has written its rows is a fault: hardware does not wait, and what it would find is
//! not documented.

use super::columns::{ROWS, each, gather, gather_bf16, gather_fp32, scatter, scatter_wide};
use super::{COLUMNS, LANES, LReg, Lanes, Operands, SIGN, Vector, WRITABLE, undefined};
use crate::tensix::config::{Config, Refusal};
use crate::tensix::dst::{Row16, RowMap, Writer};
use crate::tensix::number::{dst_of_bf16, dst_of_fp16, dst_of_fp32};
use tilework_abi::tensix::cfg;
use tilework_abi::tensix::insn::{Sfpload, Sfploadmacro, Sfpstore};

/// How a datum is converted: `MOD0_FMT_...`, with `MOD0_FMT_SRCB` resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Fp16,
    Bf16,
    Fp32,
    /// `INT32` and `INT32_SM`.
    Int32,
    /// `INT32_ALL`.
    Stack,
    Int8,
    Int8Comp,
    Int16,
    /// `UINT16` and, of a load, `LO16`.
    Uint16,
    Lo16,
    Hi16,
    Lo16Only,
    Hi16Only,
    Zero,
}

/// Formats of SrcB for which `MOD0_FMT_SRCB` is BF16, a bit each: FP32, TF32, BF16, BFP8, BFP4,
/// INT32, INT16, BFP2 (the numbers of `DataFormat` in the public tt-llk).
const BF16_FORMATS: u32 = 1 << 0 | 1 << 4 | 1 << 5 | 1 << 6 | 1 << 7 | 1 << 8 | 1 << 9 | 1 << 15;
/// Addresses of Dst have ten bits.
const ADDR: u32 = 0x3FF;
/// The bit of an address that chooses the odd columns.
const ODD: u32 = 2;

impl Format {
    /// The format that `mod0` names for an instruction of `thread`.
    pub(super) fn of(mod0: u32, config: &Config, thread: usize) -> Self {
        match mod0 {
            0 => Self::of_src_b(config, thread),
            1 => Self::Fp16,
            2 => Self::Bf16,
            3 => Self::Fp32,
            4 | 12 => Self::Int32,
            5 => Self::Int8,
            6 => Self::Uint16,
            7 => Self::Hi16,
            8 => Self::Int16,
            9 => Self::Lo16,
            10 => Self::Stack,
            11 => Self::Zero,
            13 => Self::Int8Comp,
            14 => Self::Lo16Only,
            _ => Self::Hi16Only,
        }
    }

    /// `MOD0_FMT_SRCB`.
    fn of_src_b(config: &Config, thread: usize) -> Self {
        let read = |field| config.read(thread, field);
        if config.is_set(thread, cfg::ALU_ACC_CTRL_SFPU_FP32_ENABLED) {
            return Self::Fp32;
        }
        let format = if config.is_set(thread, cfg::SFPU_DEST_FMT_ENABLE) {
            read(cfg::SFPU_DEST_FMT_BASE)
        } else if config.is_set(thread, cfg::ALU_FORMAT_SPEC_REG_SRCB_OVERRIDE) {
            read(cfg::ALU_FORMAT_SPEC_REG_SRCB_VAL)
        } else {
            read(cfg::ALU_FORMAT_SPEC_REG1_SRCB)
        };
        if BF16_FORMATS >> format & 1 != 0 { Self::Bf16 } else { Self::Fp16 }
    }
}

/// The operands of a load.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    pub(super) vd: usize,
    pub(super) mod0: u32,
    addr_mod: u32,
    imm10: u32,
}

impl Load {
    pub(super) fn of(insn: Sfpload) -> Self {
        Self { vd: insn.vd() as usize, mod0: insn.mod0(), addr_mod: insn.addr_mod(), imm10: insn.imm10() }
    }

    pub(super) fn of_macro(insn: Sfploadmacro) -> Self {
        let vd = (insn.vd_hi() << 2 | insn.vd_lo()) as usize;
        let imm10 = insn.imm9() << 1 | insn.vd_hi();
        Self { vd, mod0: insn.mod0(), addr_mod: insn.addr_mod(), imm10 }
    }
}

/// FP32 from FP16 as it lies in Dst. Denormals become other denormals.
#[inline]
fn fp32_of_fp16(x: u16, infinity: bool) -> u32 {
    let x = u32::from(x);
    let (sign, mantissa, exponent) = (x >> 15 << 31, x >> 5 & 0x3FF, x & 0x1F);
    if infinity && x & 0x7FFF == 0x7FFF {
        return sign | 0x7F80_0000;
    }
    let exponent = if exponent == 0 { 0 } else { exponent + 112 };
    sign | exponent << 23 | mantissa << 13
}

/// A sign-magnitude integer from an integer "8" of Dst, of which the bits of `mask` count.
#[inline]
fn int_of_int8(x: u16, mask: u32) -> u32 {
    let x = u32::from(x);
    x >> 15 << 31 | x >> 5 & mask
}

/// FP16 from FP32: cut off, huge values as the greatest one, small ones as zero.
#[inline]
pub(super) fn fp16_of_fp32(x: u32) -> u16 {
    let exponent = (x >> 23 & 0xFF).cast_signed() - 112;
    let magnitude = match exponent {
        ..=0 => 0,
        1..=31 => exponent.cast_unsigned() << 10 | x >> 13 & 0x3FF,
        _ => 0x7FFF,
    };
    (x >> 16 & 0x8000 | magnitude) as u16
}

/// What a store in a format of 16 bits writes.
#[inline]
fn stored_narrow(x: u32, format: Format) -> u16 {
    match format {
        Format::Fp16 => dst_of_fp16(fp16_of_fp32(x)),
        Format::Bf16 => dst_of_bf16((flushed(x) >> 16) as u16),
        // Integer "8" is FP16 with a fixed exponent.
        Format::Int8 | Format::Int8Comp => dst_of_fp16((x >> 16 & 0x8000 | 16 << 10 | x & 0x3FF) as u16),
        Format::Int16 => (x >> 16 & 0x8000 | x & 0x7FFF) as u16,
        Format::Hi16Only => (x >> 16) as u16,
        Format::Zero => 0,
        _ => x as u16,
    }
}

/// FP32 without denormals.
#[inline]
fn flushed(x: u32) -> u32 {
    if x & 0x7F80_0000 == 0 { x & SIGN } else { x }
}

impl Vector {
    /// The address in Dst.
    fn address(&self, on: &Operands<'_>, imm10: u32, format: Format) -> u32 {
        let read = |field| on.config.read(on.thread, field);
        let dst = on.rwc.dst() + read(cfg::DEST_REGW_BASE_BASE);
        let sp = self.sp[on.thread] + read(cfg::DEST_SP_BASE_BASE);
        let offset = if format == Format::Stack { sp + (dst & 3) } else { dst + (sp & 3) };
        (imm10 + read(cfg::DEST_TARGET_REG_CFG_MATH_OFFSET) + offset) & ADDR
    }

    /// `SFPLOAD`, and what `SFPLOADMACRO` does first; returns the address.
    pub(super) fn load(&mut self, on: &mut Operands<'_>, load: Load, lanes: Lanes) -> Result<u32, Refusal> {
        let Load { vd, mod0, addr_mod, imm10 } = load;
        let format = Format::of(mod0, on.config, on.thread);
        let sp = self.sp[on.thread];
        if format == Format::Stack && sp != 0 {
            self.sp[on.thread] = sp.wrapping_sub(on.config.read(on.thread, cfg::SFPU_STACK_INCR)) & ADDR;
        }
        let addr = self.address(on, imm10, format);
        if vd < WRITABLE {
            let enabled = if format == Format::Stack { lanes.all } else { lanes.enabled };
            let mask = enabled & !self.modes.block_load;
            if mask != 0 && format != Format::Zero && on.dst.loadable(addr as usize) > on.now {
                return undefined(
                    "it reads rows of Dst that the matrix unit has begun to write in one of the three cycles \
                     before (SFPLOAD.md): software must leave a gap",
                );
            }
            let values = self.loaded(on, vd, addr, format);
            self.write(vd, &values, mask);
            let capture = mask & self.modes.capture_index;
            if vd < 4 && capture != 0 {
                let odd = self.odd_columns(addr, self.modes.load_odd);
                let indices = std::array::from_fn(|lane| {
                    let column = lane % COLUMNS * 2 + (odd >> lane & 1) as usize;
                    (((addr & !3) as usize + lane / COLUMNS) << 4 | column) as u32
                });
                self.write(vd + 4, &indices, capture);
            }
        }
        on.rwc.apply_partial(on.config, on.thread, addr_mod);
        Ok(addr)
    }

    /// The lanes that access odd columns.
    fn odd_columns(&self, addr: u32, exchanged: u32) -> u32 {
        if addr & ODD != 0 { u32::MAX } else { exchanged }
    }

    /// What a load finds at `addr`.
    fn loaded(&self, on: &Operands<'_>, vd: usize, addr: u32, format: Format) -> LReg {
        let map = RowMap::of(on.config);
        let odd = self.odd_columns(addr, self.modes.load_odd);
        let row = (addr & !3) as usize;
        let mut to = [0; LANES];
        if let Format::Fp32 | Format::Int32 | Format::Stack = format {
            match on.dst.wide_quad(map, row) {
                Some([high, low]) => gather_fp32(high, low, odd, &mut to),
                None => {
                    let rows: [[Row16; 2]; ROWS] = std::array::from_fn(|i| on.dst.read_halves(map, row + i));
                    gather_fp32(&rows.map(|row| row[0]), &rows.map(|row| row[1]), odd, &mut to);
                }
            }
            return to;
        }
        let copies: [Row16; ROWS];
        let rows = match on.dst.narrow_quad(map, row) {
            Some(rows) => rows,
            None => {
                copies = std::array::from_fn(|i| on.dst.read16(map, row + i));
                &copies
            }
        };
        if format == Format::Bf16 {
            gather_bf16(rows, odd, &mut to);
            return to;
        }
        gather(rows, odd, &mut to);
        let old = &self.lregs[vd];
        match format {
            Format::Fp16 => {
                let infinity = self.modes.fp16_infinity;
                std::array::from_fn(|lane| fp32_of_fp16(to[lane] as u16, infinity >> lane & 1 != 0))
            }
            Format::Int8 => each(&to, |x| int_of_int8(x as u16, 0xFF)),
            Format::Int8Comp => each(&to, |x| int_of_int8(x as u16, 0x3FF)),
            Format::Int16 => each(&to, |x| (x & 0x8000) << 16 | x & 0x7FFF),
            Format::Hi16 => each(&to, |x| x << 16),
            Format::Lo16Only => std::array::from_fn(|lane| old[lane] & 0xFFFF_0000 | to[lane]),
            Format::Hi16Only => std::array::from_fn(|lane| to[lane] << 16 | old[lane] & 0xFFFF),
            Format::Zero => [0; LANES],
            Format::Uint16 | Format::Lo16 | Format::Bf16 | Format::Fp32 | Format::Int32 | Format::Stack => to,
        }
    }

    /// `SFPSTORE`.
    pub(super) fn store_from(&mut self, on: &mut Operands<'_>, insn: Sfpstore, lanes: Lanes) {
        let format = Format::of(insn.mod0(), on.config, on.thread);
        let addr = self.address(on, insn.imm10(), format);
        self.store(on, insn.vd() as usize, addr, format, lanes);
        if format == Format::Stack {
            let sp = self.sp[on.thread] + on.config.read(on.thread, cfg::SFPU_STACK_INCR);
            self.sp[on.thread] = sp & ADDR;
        }
        on.rwc.apply_partial(on.config, on.thread, insn.addr_mod());
    }

    /// Stores register `vd` at `addr`.
    pub(super) fn store(&self, on: &mut Operands<'_>, vd: usize, addr: u32, format: Format, lanes: Lanes) {
        let map = RowMap::of(on.config);
        let enabled = if format == Format::Stack { lanes.all } else { lanes.enabled };
        let (row, odd) = ((addr & !3) as usize, self.odd_columns(addr, self.modes.store_odd));
        let mask = enabled & !self.modes.block_store;
        if mask == 0 {
            return;
        }
        on.dst.note_write(row, Writer::Vector, on.now);
        // The rows in which any lane stores.
        let rows = (0..ROWS).filter(|i| mask >> (COLUMNS * i) & 0xFF != 0).fold(0, |rows, i| rows | 1 << i);
        let from = &self.lregs[vd];
        let wide = match format {
            Format::Fp32 => Some(each(from, |x| dst_of_fp32(flushed(x)))),
            Format::Int32 | Format::Stack => Some(each(from, dst_of_fp32)),
            Format::Lo16 => Some(each(from, |x| x.rotate_left(16))),
            Format::Hi16 => Some(*from),
            _ => None,
        };
        if let Some(data) = wide {
            if let Some([high, low]) = on.dst.wide_quad_mut(map, row, rows) {
                scatter_wide(&data, odd, mask, high, low);
            }
            return;
        }
        let data = each(from, |x| stored_narrow(x, format).into());
        if let Some(to) = on.dst.narrow_quad_mut(map, row, rows) {
            scatter(&data, odd, mask, to);
        }
    }
}

#[cfg(test)]
#[path = "load_store_tests.rs"]
mod tests;
