//! Dst as the TRISCs load and store it.
//!
//! Follows BlackholeA0/TensixTile/TensixCoprocessor/Dst.md, "RISCV access to `Dst`": the window is
//! an array whose elements `RISC_DEST_ACCESS_CTRL` of the core's thread chooses. T0 and T1 access
//! one element at a time; T2 may access several, as many as its access is wide.

use super::super::dst::{COLUMNS, RowMap};
use super::super::number::{bf16_of_dst, dst_of_bf16, dst_of_fp16, dst_of_fp32, fp16_of_dst, fp32_of_dst};
use super::target::Client;
use super::{Tensix, fault};
use crate::{Bug, Fault, FaultClass, timing};
use tilework_abi::tensix::cfg::{self, Field};
use tilework_abi::tensix::{self as map, Processor};
use tilework_riscv::{Access, Load, Refuse, Width};

const PAGE: &str = "BlackholeA0/TensixTile/TensixCoprocessor/Dst.md";
/// Elements of the view that has the most.
const ELEMENTS: u32 = 1024 * COLUMNS as u32;
/// What the vector unit and unpackers have as exponent of an eight-bit integer other than zero.
const INT8_EXPONENT: u16 = 16;

/// By thread: `no_swizzle`, `unsigned_int`, `fmt`.
const CONTROL: [[Field; 3]; 3] = [
    [
        cfg::RISC_DEST_ACCESS_CTRL_SEC0_NO_SWIZZLE,
        cfg::RISC_DEST_ACCESS_CTRL_SEC0_UNSIGNED_INT,
        cfg::RISC_DEST_ACCESS_CTRL_SEC0_FMT,
    ],
    [
        cfg::RISC_DEST_ACCESS_CTRL_SEC1_NO_SWIZZLE,
        cfg::RISC_DEST_ACCESS_CTRL_SEC1_UNSIGNED_INT,
        cfg::RISC_DEST_ACCESS_CTRL_SEC1_FMT,
    ],
    [
        cfg::RISC_DEST_ACCESS_CTRL_SEC2_NO_SWIZZLE,
        cfg::RISC_DEST_ACCESS_CTRL_SEC2_UNSIGNED_INT,
        cfg::RISC_DEST_ACCESS_CTRL_SEC2_FMT,
    ],
];

/// What an element of the window is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Format {
    Fp32,
    Int32,
    Fp16,
    Bf16,
    Int16,
    Int8,
}

/// How a thread sees Dst.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct View {
    format: Format,
    no_swizzle: bool,
    unsigned: bool,
    /// [`Bug::DstWindowInt8`].
    is_wrong: bool,
}

impl View {
    const fn bytes(self) -> u32 {
        match self.format {
            Format::Fp32 | Format::Int32 => 4,
            Format::Fp16 | Format::Bf16 | Format::Int16 => 2,
            Format::Int8 => 1,
        }
    }

    /// Whether integers are as they lie, in sign and magnitude.
    const fn is_plain(self) -> bool {
        self.no_swizzle || self.unsigned
    }

    /// `Load32`.
    fn load_32(self, x: u32) -> u32 {
        let x = if self.no_swizzle { x } else { fp32_of_dst(x) };
        match self.format {
            Format::Int32 if !self.no_swizzle && x >> 31 != 0 => (x & 0x7FFF_FFFF).wrapping_neg(),
            _ => x,
        }
    }

    /// `Store32`.
    fn store_32(self, x: u32) -> u32 {
        let x = match self.format {
            Format::Int32 if !self.no_swizzle && x >> 31 != 0 => 1 << 31 | (x + u32::from(x == 1 << 31)).wrapping_neg(),
            _ => x,
        };
        if self.no_swizzle { x } else { dst_of_fp32(x) }
    }

    /// `Load16` and `Load8`.
    fn load_16(self, x: u16) -> u16 {
        match self.format {
            Format::Fp16 if !self.no_swizzle => fp16_of_dst(x),
            Format::Bf16 if !self.no_swizzle => bf16_of_dst(x),
            Format::Int16 if !self.is_plain() && x >> 15 != 0 => (x & 0x7FFF).wrapping_neg(),
            Format::Int8 if self.is_plain() => x >> 5 & 0xFF,
            Format::Int8 => {
                let magnitude = x >> 5 & 0x7F;
                (if x >> 15 != 0 { magnitude.wrapping_neg() } else { magnitude }) & 0xFF
            }
            _ => x,
        }
    }

    /// `Store16` and `Store8`.
    fn store_16(self, x: u16) -> u16 {
        match self.format {
            Format::Fp16 if !self.no_swizzle => dst_of_fp16(x),
            Format::Bf16 if !self.no_swizzle => dst_of_bf16(x),
            Format::Int16 if !self.is_plain() && x >> 15 != 0 => 1 << 15 | (x + u16::from(x == 1 << 15)).wrapping_neg(),
            Format::Int8 if self.is_plain() || x < 0x80 => x << 5 | if x == 0 { 0 } else { INT8_EXPONENT },
            Format::Int8 => {
                // The page: meant to be sign and magnitude, but is not.
                let zero = if self.is_wrong { 0x180 } else { 0x100 };
                let magnitude = (zero - x - u16::from(x == 0x80)) & 0xFF;
                1 << 15 | magnitude << 5 | INT8_EXPONENT
            }
            _ => x,
        }
    }
}

impl Tensix {
    /// `core` loads from the window onto Dst.
    ///
    /// # Errors
    /// A fault when the core has no window, or for an access that the view does not allow.
    pub(crate) fn load_dst(&self, core: Processor, addr: u32, width: Width) -> Result<Load, Refuse<Fault>> {
        let (view, first) = self.view(core, addr, width)?;
        let dst = &self.coprocessor.dst;
        let rows = RowMap::of(&self.coprocessor.config);
        let value = (0..width.bytes() / view.bytes()).fold(0, |value, i| {
            let (row, column) = place(first + i);
            let element = match view.bytes() {
                4 => view.load_32(dst.read32(rows, row)[column]),
                _ => view.load_16(dst.read16(rows, row)[column]).into(),
            };
            value | element << (8 * view.bytes() * i)
        });
        Ok(Load { value, latency: timing::LOAD_DST, access: Access::Volatile })
    }

    /// `core` stores to the window onto Dst.
    ///
    /// # Errors
    /// As for a load.
    pub(crate) fn store_dst(
        &mut self,
        core: Processor,
        addr: u32,
        width: Width,
        value: u32,
    ) -> Result<(), Refuse<Fault>> {
        let (view, first) = self.view(core, addr, width)?;
        let dst = &mut self.coprocessor.dst;
        let rows = RowMap::of(&self.coprocessor.config);
        for i in 0..width.bytes() / view.bytes() {
            let (row, column) = place(first + i);
            let element = value >> (8 * view.bytes() * i);
            if view.bytes() == 4 {
                let mut data = dst.read32(rows, row);
                data[column] = view.store_32(element);
                dst.write32(rows, row, data);
            } else {
                let mask = if view.bytes() == 2 { 0xFFFF } else { 0xFF };
                let mut data = dst.read16(rows, row);
                data[column] = view.store_16((element & mask) as u16);
                dst.write16(rows, row, data);
            }
        }
        Ok(())
    }

    /// How `core` sees Dst, and the number of the first element that it accesses.
    fn view(&self, core: Processor, addr: u32, width: Width) -> Result<(View, u32), Refuse<Fault>> {
        let refused = |what: &'static str| fault(FaultClass::UndefinedBehavior, what, PAGE, core, addr);
        let Some(Client::T(thread)) = Client::of(core) else { return Err(refused("Dst is for the TRISCs")) };
        let [no_swizzle, unsigned, format] = CONTROL[thread].map(|field| self.coprocessor.config.read(thread, field));
        let format = match format {
            0 => Format::Fp32,
            1 => Format::Int32,
            2 => Format::Fp16,
            3 => Format::Bf16,
            4 => Format::Int16,
            5 => Format::Int8,
            _ => return Err(refused("RISC_DEST_ACCESS_CTRL names no format")),
        };
        let is_wrong = self.coprocessor.bugs.has(Bug::DstWindowInt8);
        let view = View { format, no_swizzle: no_swizzle != 0, unsigned: unsigned != 0, is_wrong };
        let several = thread == 2 && width.bytes() > view.bytes();
        if width.bytes() != view.bytes() && !several {
            return Err(refused("an access to Dst that is not as wide as the elements of the view"));
        }
        let first = (addr - map::DST_BASE) / view.bytes();
        if first >= ELEMENTS {
            return Err(refused("an access behind the last element of Dst"));
        }
        Ok((view, first))
    }
}

/// Row and column of an element.
fn place(element: u32) -> (usize, usize) {
    (element as usize / COLUMNS, element as usize % COLUMNS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use Processor::{Brisc, Trisc0, Trisc2};

    fn tensix(thread: usize, format: u32, no_swizzle: bool, unsigned: bool) -> Tensix {
        let mut t = Tensix::default();
        let [swizzle, sign, fmt] = CONTROL[thread];
        let word = fmt.put(sign.put(swizzle.put(0, no_swizzle.into()), unsigned.into()), format);
        t.coprocessor.config.set(thread, fmt.word.into(), word).unwrap();
        t
    }

    fn load(t: &Tensix, core: Processor, offset: u32, width: Width) -> u32 {
        t.load_dst(core, map::DST_BASE + offset, width).unwrap().value
    }

    fn store(t: &mut Tensix, core: Processor, offset: u32, width: Width, value: u32) {
        t.store_dst(core, map::DST_BASE + offset, width, value).unwrap();
    }

    #[test]
    fn elements_go_through_unchanged_where_nothing_is_lost() {
        let wide = [0, 1, 0x3F80_0000, 0xBF80_1234, 0x7FFF_FFFF, 0xFFFF_FFFF, 0x8000_0001];
        for (format, no_swizzle) in [(0, false), (0, true), (1, false), (1, true)] {
            let mut t = tensix(0, format, no_swizzle, false);
            for x in wide {
                store(&mut t, Trisc0, 4 * 500, Width::Word, x);
                assert_eq!(load(&t, Trisc0, 4 * 500, Width::Word), x, "format {format}: {x:#x}");
            }
        }
        for (format, no_swizzle, unsigned) in
            [(2, false, false), (3, false, false), (3, true, false), (4, false, false), (4, false, true)]
        {
            let mut t = tensix(1, format, no_swizzle, unsigned);
            for x in (0..=0xFFFF).filter(|x| format != 4 || *x != 0x8000) {
                store(&mut t, Processor::Trisc1, 2 * 16_383, Width::Half, x);
                assert_eq!(load(&t, Processor::Trisc1, 2 * 16_383, Width::Half), x, "format {format}: {x:#x}");
            }
        }
        for x in 0..=0xFF {
            let mut t = tensix(0, 5, false, true);
            store(&mut t, Trisc0, 16_383, Width::Byte, x);
            assert_eq!(load(&t, Trisc0, 16_383, Width::Byte), x);
        }
    }

    #[test]
    fn elements_lie_in_dst_as_its_units_have_them() {
        let rows = RowMap::of(&super::super::super::config::Config::default());
        let mut t = tensix(0, 0, false, false);
        store(&mut t, Trisc0, 4 * (16 * 9 + 3), Width::Word, 1.0f32.to_bits());
        assert_eq!(t.coprocessor.dst.read32(rows, 9)[3], 0x007F_0000);
        let mut t = tensix(0, 3, false, false);
        store(&mut t, Trisc0, 2 * (16 * 9 + 3), Width::Half, 0x3F80);
        assert_eq!(t.coprocessor.dst.read16(rows, 9)[2..5], [0, 0x007F, 0]);
        let mut t = tensix(0, 1, false, false);
        store(&mut t, Trisc0, 0, Width::Word, 1 << 31);
        assert_eq!(load(&t, Trisc0, 0, Width::Word), 0x8000_0001, "clamped");
        let mut t = tensix(0, 5, false, false);
        for (x, lies) in [(0, 0), (5, 5 << 5 | 16), (0x80, 0x8000 | 0xFF << 5 | 16), (0xFF, 0x8000 | 0x81 << 5 | 16)] {
            store(&mut t, Trisc0, 1, Width::Byte, x);
            assert_eq!(t.coprocessor.dst.read16(rows, 0)[1], lies, "{x:#x}");
        }
        assert_eq!(load(&t, Trisc0, 1, Width::Byte), 0xFF, "seven bits of the magnitude 0x81 count");
        t.set_bugs(crate::Bugs::AS_CHIP.without(Bug::DstWindowInt8));
        for (x, magnitude) in [(0x80, 0x7F), (0x81, 0x7F), (0xFE, 2), (0xFF, 1)] {
            store(&mut t, Trisc0, 1, Width::Byte, x);
            let lies = 0x8000 | magnitude << 5 | 16;
            assert_eq!(t.coprocessor.dst.read16(rows, 0)[1], lies, "{x:#x} without the bug");
        }
    }

    #[test]
    fn only_t2_accesses_several_elements() {
        let mut t = tensix(2, 3, false, false);
        store(&mut t, Trisc2, 4, Width::Word, 0x4000_3F80);
        assert_eq!(load(&t, Trisc2, 4, Width::Half), 0x3F80);
        assert_eq!(load(&t, Trisc2, 4, Width::Word), 0x4000_3F80);
        assert_eq!(load(&tensix(2, 5, false, true), Trisc2, 0, Width::Word), 0);
        let t = tensix(0, 3, false, false);
        for (core, offset, width) in [(Trisc0, 0, Width::Word), (Trisc0, 0, Width::Byte), (Brisc, 0, Width::Half)] {
            assert!(t.load_dst(core, map::DST_BASE + offset, width).is_err());
        }
        assert!(tensix(0, 5, false, false).load_dst(Trisc0, map::DST_BASE + 0x4000, Width::Byte).is_err());
        assert!(tensix(0, 6, false, false).load_dst(Trisc0, map::DST_BASE, Width::Word).is_err());
    }
}
