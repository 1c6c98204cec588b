//! How a host reaches the chip's NoC: BARs, TLB windows and their registers.
//!
//! Follows WormholeB0/PCIExpressTile/TLBs.md for the meaning of the fields; sizes, counts and bit
//! positions are those of the public Blackhole drivers (tt-kmd `blackhole.c`, tt-umd
//! `blackhole_implementation.hpp`), because the Blackhole folder of the ISA documentation has no
//! page of its own.

use crate::convert::{low32_of_128, u8_of};
use crate::noc::NocXy;
use crate::reg::registers;

/// Which of the card's memory windows an access goes through.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Bar {
    /// 512 MiB: the 2 MiB windows, the TLB registers, the ARC.
    Bar0,
    /// 1 MiB: the PCIe controller, of which drivers use the address translation (see
    /// [`crate::pci::iatu`]).
    Bar2,
    /// 32 GiB: the 4 GiB windows.
    Bar4,
}

impl Bar {
    /// Bytes of the BAR.
    pub const fn size(self) -> u64 {
        match self {
            Self::Bar0 => 512 << 20,
            Self::Bar2 => 1 << 20,
            Self::Bar4 => COUNT_4G as u64 * SIZE_4G,
        }
    }
}

impl core::fmt::Display for Bar {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Bar0 => "BAR0",
            Self::Bar2 => "BAR2",
            Self::Bar4 => "BAR4",
        })
    }
}

/// Windows of 2 MiB, at the start of BAR0 (tt-kmd `TLB_2M_WINDOW_COUNT`).
pub const COUNT_2M: u32 = 202;
/// Windows of 4 GiB, at the start of BAR4 (tt-kmd `TLB_4G_WINDOW_COUNT`).
pub const COUNT_4G: u32 = 8;
/// All windows; the 2 MiB windows come first.
pub const COUNT: u32 = COUNT_2M + COUNT_4G;
/// Bytes of a small window.
pub const SIZE_2M: u64 = 2 << 20;
/// Bytes of a large window.
pub const SIZE_4G: u64 = 4 << 30;
/// The window that the kernel driver keeps for itself: the last small one (tt-kmd
/// `KERNEL_TLB_INDEX`).
pub const KERNEL_WINDOW: u32 = COUNT_2M - 1;
/// Offset of the window registers in BAR0 (tt-kmd `TLB_REGS_START`).
pub const REGS: u64 = 0x1FC0_0000;
/// Bytes of one window's registers (tt-kmd `TLB_REG_SIZE`).
pub const REG_BYTES: u64 = 12;
/// First register behind the windows' own: one word for each of the first windows that chooses a
/// strided multicast (tt-kmd `TLB_STRIDED_REGS_OFFSET`).
pub const STRIDED_REGS: u64 = REGS + COUNT as u64 * REG_BYTES;
/// Number of strided-multicast words (tt-kmd `TLB_STRIDED_COUNT`).
const STRIDED_COUNT: u32 = 32;
/// End of the TLB registers.
pub const REGS_END: u64 = STRIDED_REGS + STRIDED_COUNT as u64 * 4;
const PAGE: &str = "WormholeB0/PCIExpressTile/TLBs.md";
const WORD: u32 = 4;

registers! {
    /// A TLB window's registers in BAR0; `Window` has the fields. Of those of an unconfigured
    /// window nothing is known, and an access through it is a fault.
    pub static WINDOW = {
        name: "TLB window", base: REGS, span: 12, copies: COUNT, stride: 12,
        unit: 1, page: PAGE,
        const u32 = |at| at,
    };
    /// The low, middle and high word of a window.
    CONFIG "TLB_CONFIG"[3; WORD] = 0, Rw;
}

registers! {
    /// Strided multicast of the first windows, in BAR0.
    pub static STRIDED = {
        name: "TLB strided multicast", base: STRIDED_REGS, span: STRIDED_COUNT * WORD, copies: 1, stride: 0,
        unit: 1, page: PAGE,
        const u32 = |at| at,
    };
    /// Which tiles of the rectangle a window reaches.
    STRIDED_CONFIG "TLB_STRIDED"[32; WORD] = 0, Rw, fixed u32::MAX, refused "strided multicast is not built";
}

/// Offset in BAR0 of the PCIe tile's own NIU registers; NIU 1 is [`NIU_STRIDE`] further (tt-kmd
/// `NOC2AXI_CFG_START`).
pub const NIU: u64 = 0x1FD0_4000;
/// Distance between the PCIe tile's two NIUs in BAR0 (tt-kmd `NOC1_NOC2AXI_OFFSET`).
pub const NIU_STRIDE: u64 = 0x1_0000;
/// Offset in BAR0 of the ARC's peripherals (tt-umd `ARC_APB_BAR0_XBAR_OFFSET_START`).
pub const ARC_APB: u64 = 0x1FF0_0000;
/// Bytes of the ARC's peripherals.
pub const ARC_APB_BYTES: u64 = 0x10_0000;

/// Which orders the PCIe tile keeps between accesses of a window (PCIExpressTile/TLBs.md, "Ordering
/// modes").
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Ordering {
    /// Writes want an acknowledgement; a read waits for the writes before it.
    #[default]
    Relaxed,
    /// As above, and a write waits for the writes before it.
    Strict,
    /// Writes are posted, and a read may overtake them.
    Posted,
}

impl Ordering {
    /// The field's value.
    pub const fn bits(self) -> u32 {
        match self {
            Self::Relaxed => 0,
            Self::Strict => 1,
            Self::Posted => 2,
        }
    }
    /// The mode of a field's value; 3 has no meaning.
    pub const fn from_bits(bits: u32) -> Option<Self> {
        match bits {
            0 => Some(Self::Relaxed),
            1 => Some(Self::Strict),
            2 => Some(Self::Posted),
            _ => None,
        }
    }
}

/// The size of a window, which decides the layout of its registers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum WindowSize {
    /// 2 MiB, in BAR0.
    Small,
    /// 4 GiB, in BAR4.
    Large,
}

impl WindowSize {
    /// Bytes.
    pub const fn bytes(self) -> u64 {
        match self {
            Self::Small => SIZE_2M,
            Self::Large => SIZE_4G,
        }
    }
    /// The BAR that holds the windows.
    pub const fn bar(self) -> Bar {
        match self {
            Self::Small => Bar::Bar0,
            Self::Large => Bar::Bar4,
        }
    }
    /// The size of window `index` of all [`COUNT`].
    pub const fn of_window(index: u32) -> Self {
        if index < COUNT_2M { Self::Small } else { Self::Large }
    }
    /// Bits of the address field: those above the window's own (tt-kmd `TLB_2M_REG`, `TLB_4G_REG`).
    const fn address_bits(self) -> u32 {
        match self {
            Self::Small => 43,
            Self::Large => 32,
        }
    }
}

/// Offset in its BAR of the first byte of window `index`.
pub const fn window_offset(index: u32) -> u64 {
    match WindowSize::of_window(index) {
        WindowSize::Small => index as u64 * SIZE_2M,
        WindowSize::Large => (index - COUNT_2M) as u64 * SIZE_4G,
    }
}

/// The bits of `word` from `at` on, under `mask`.
const fn field(word: u128, at: u32, mask: u32) -> u32 {
    low32_of_128(word >> at) & mask
}

/// What a window shows.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Window {
    /// Address in the target's space of the window's first byte; a multiple of the window's size.
    pub address: u64,
    /// The target, or the end corner of the multicast rectangle.
    pub end: NocXy,
    /// The start corner of the multicast rectangle; ignored otherwise.
    pub start: NocXy,
    /// 0 or 1.
    pub noc: u8,
    /// The target is a rectangle of Tensix tiles; writes only.
    pub multicast: bool,
    /// Order of accesses; `None` for the value without a meaning.
    pub ordering: Option<Ordering>,
    /// Keep the path for the next packet. Never safe: the kernel driver's window does not.
    pub linked: bool,
    /// Use the virtual channel of `static_vc`.
    pub use_static_vc: bool,
    /// Undocumented; drivers write zero.
    pub stream_header: bool,
    /// The static virtual channel, three bits.
    pub static_vc: u8,
}

impl Window {
    /// A window onto one tile, with relaxed order.
    pub const fn unicast(target: NocXy, address: u64) -> Self {
        Self {
            address,
            end: target,
            start: NocXy::new(0, 0),
            noc: 0,
            multicast: false,
            ordering: Some(Ordering::Relaxed),
            linked: false,
            use_static_vc: false,
            stream_header: false,
            static_vc: 0,
        }
    }

    /// The three register words, lowest address first. Address bits below the window's size are
    /// dropped.
    pub const fn encode(self, size: WindowSize) -> [u32; 3] {
        let n = size.address_bits();
        let shift = size.bytes().trailing_zeros();
        let ordering = match self.ordering {
            Some(o) => o.bits(),
            None => 3,
        };
        let bits = (self.address >> shift) as u128
            | (self.end.x as u128 & 0x3F) << n
            | (self.end.y as u128 & 0x3F) << (n + 6)
            | (self.start.x as u128 & 0x3F) << (n + 12)
            | (self.start.y as u128 & 0x3F) << (n + 18)
            | (self.noc as u128 & 3) << (n + 24)
            | (self.multicast as u128) << (n + 26)
            | (ordering as u128) << (n + 27)
            | (self.linked as u128) << (n + 29)
            | (self.use_static_vc as u128) << (n + 30)
            | (self.stream_header as u128) << (n + 31)
            | (self.static_vc as u128 & 7) << (n + 32);
        [low32_of_128(bits), low32_of_128(bits >> 32), low32_of_128(bits >> 64)]
    }

    /// The inverse of [`Window::encode`]; reserved bits are ignored.
    pub const fn decode(words: [u32; 3], size: WindowSize) -> Self {
        let n = size.address_bits();
        let shift = size.bytes().trailing_zeros();
        let bits = words[0] as u128 | (words[1] as u128) << 32 | (words[2] as u128) << 64;
        let address = bits & ((1 << n) - 1);
        let address = low32_of_128(address) as u64 | (low32_of_128(address >> 32) as u64) << 32;
        let rest = bits >> n;
        Self {
            address: address << shift,
            end: NocXy::new(u8_of(field(rest, 0, 0x3F)), u8_of(field(rest, 6, 0x3F))),
            start: NocXy::new(u8_of(field(rest, 12, 0x3F)), u8_of(field(rest, 18, 0x3F))),
            noc: u8_of(field(rest, 24, 3)),
            multicast: field(rest, 26, 1) != 0,
            ordering: Ordering::from_bits(field(rest, 27, 3)),
            linked: field(rest, 29, 1) != 0,
            use_static_vc: field(rest, 30, 1) != 0,
            stream_header: field(rest, 31, 1) != 0,
            static_vc: u8_of(field(rest, 32, 7)),
        }
    }
}

const _: () = {
    assert!(COUNT_2M as u64 * SIZE_2M <= REGS); // the windows end where other things begin
    assert!(REGS_END - REGS <= 0x1000); // tt-kmd `TLB_REGS_LEN`
    assert!(ARC_APB + ARC_APB_BYTES == Bar::Bar0.size());
};
