//! Registers as rows of tables.
//!
//! A register is one row: its public name, its offset, what software may do with it, which bits a
//! write keeps and which it must not change, its value after reset, and the page that describes it.
//! The rows stand beside the constants of their block ([`crate::noc`], [`crate::stream`],
//! [`crate::tensix`], [`crate::tlb`], [`crate::pci`], [`crate::arc`]), which the macro `registers!`
//! makes of them. The simulator decodes and checks accesses by these rows, its faults and the
//! deadlock report take the names from them, and so does `docs/registers.md`.
//!
//! A row says what the simulator does. A register of the public documents that it does not have
//! has a row, too, [`Access::NotBuilt`], so that a fault can name it.

use crate::convert::{u8_of, u32_of};
use core::fmt;

/// What software may do with a register.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Access {
    /// Read and write. Some are kept as written, others are hardware's and a write has an effect.
    Rw,
    /// Read only: a write is a fault.
    Ro,
    /// Read only: a write is ignored.
    RoIgnore,
    /// Write only: a read gives zero.
    Wo,
    /// Write only: a read is a fault.
    WoFault,
    /// A write clears what its ones stand for; a read gives zero.
    W1c,
    /// Not built: every access is a fault.
    NotBuilt,
}

impl Access {
    /// The abbreviation that tables use.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rw => "rw",
            Self::Ro => "ro",
            Self::RoIgnore => "ro, i",
            Self::Wo => "wo",
            Self::WoFault => "wo, f",
            Self::W1c => "w1c",
            Self::NotBuilt => "-",
        }
    }

    /// What is wrong with a read or write that is a fault, for its text.
    pub const fn refusal(self) -> &'static str {
        match self {
            Self::Ro | Self::RoIgnore => "read only",
            Self::Wo | Self::WoFault | Self::W1c => "write only",
            Self::Rw | Self::NotBuilt => "not built",
        }
    }
}

/// A register, or several of one kind at equal distances.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reg {
    /// Its name in the public headers, or in the ISA documentation where these have none.
    pub name: &'static str,
    /// Bytes from the block's start.
    pub offset: u32,
    /// How many there are of this row.
    pub count: u32,
    /// Bytes between two of them.
    pub stride: u32,
    /// What software may do with it.
    pub access: Access,
    /// The bits that a write changes. It drops all others.
    pub mask: u32,
    /// The bits that a write must not change: it is a fault, because the simulator does not have
    /// what they stand for.
    pub fixed: u32,
    /// Its value after reset, where that is the same in every tile.
    pub reset: u32,
    /// The copies of the block that have it, one bit each.
    pub copies: u64,
    /// What a refused write would have done, for the fault; empty when there is nothing to add.
    pub refused: &'static str,
    /// What it is.
    pub what: &'static str,
    /// The page that describes it.
    pub page: &'static str,
}

impl Reg {
    /// A row with the defaults: one register of 32 bits that is zero after reset.
    pub(crate) const fn new(
        name: &'static str,
        offset: u32,
        access: Access,
        page: &'static str,
        what: &'static str,
    ) -> Self {
        let mask = match access {
            Access::Rw | Access::Wo | Access::WoFault | Access::W1c => u32::MAX,
            Access::Ro | Access::RoIgnore | Access::NotBuilt => 0,
        };
        let (count, stride, fixed, reset, copies, refused) = (1, 4, 0, 0, u64::MAX, "");
        Self { name, offset, count, stride, access, mask, fixed, reset, copies, refused, what, page }
    }

    /// There are `count` of it, `stride` bytes from one to the next.
    pub(crate) const fn repeated(self, count: u32, stride: u32) -> Self {
        Self { count, stride, ..self }
    }
    /// A write changes only these bits.
    pub(crate) const fn mask(self, mask: u32) -> Self {
        Self { mask, ..self }
    }
    /// A write must not change these bits.
    pub(crate) const fn fixed(self, fixed: u32) -> Self {
        Self { mask: self.mask & !fixed, fixed, ..self }
    }
    /// Its value after reset.
    pub(crate) const fn reset(self, reset: u32) -> Self {
        Self { reset, ..self }
    }
    /// Only these copies of the block have it.
    pub(crate) const fn only(self, copies: u64) -> Self {
        Self { copies, ..self }
    }
    /// What a refused write would have done.
    pub(crate) const fn refused(self, refused: &'static str) -> Self {
        Self { refused, ..self }
    }
    /// Another page than the block's.
    pub(crate) const fn page(self, page: &'static str) -> Self {
        Self { page, ..self }
    }

    /// What a write of `value` over `old` leaves; `None` when it changes a bit that it must not.
    #[inline]
    pub const fn written(&self, old: u32, value: u32) -> Option<u32> {
        if (old ^ value) & self.fixed != 0 {
            return None;
        }
        Some(value & self.mask | old & self.fixed)
    }

    /// Whether copy `copy` of the block has it.
    #[inline]
    pub const fn is_in(&self, copy: u32) -> bool {
        copy < u64::BITS && self.copies >> copy & 1 != 0
    }
}

/// One register of a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Slot {
    /// The row.
    pub reg: &'static Reg,
    /// Which of the row's registers.
    pub index: u32,
}

/// The name, with the index of one of several.
impl fmt::Display for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.reg.name)?;
        if self.reg.count > 1 { write!(f, "({})", self.index) } else { Ok(()) }
    }
}

/// The registers of a unit.
#[derive(Debug)]
pub struct Block {
    /// What it is called.
    pub name: &'static str,
    /// What it is, and how words without a row behave.
    pub about: &'static str,
    /// Its first address, for whom its description says.
    pub base: u64,
    /// Bytes of one copy.
    pub span: u32,
    /// How many copies there are.
    pub copies: u32,
    /// Bytes from one copy to the next.
    pub stride: u32,
    /// Its rows.
    pub regs: &'static [Reg],
    /// By word: 0 without a row, otherwise one more than its position.
    pub(crate) rows: &'static [u8],
}

impl Block {
    /// The register at byte offset `offset` of a copy; `None` when no row has it or `offset` is not
    /// a multiple of four.
    #[inline]
    pub fn at(&self, offset: u32) -> Option<Slot> {
        if !offset.is_multiple_of(4) {
            return None;
        }
        let row = *self.rows.get(offset as usize / 4)?;
        let reg = self.regs.get(usize::from(row.checked_sub(1)?))?;
        // Most rows are one register, which needs no division.
        let index = if reg.count == 1 { 0 } else { (offset - reg.offset) / reg.stride };
        Some(Slot { reg, index })
    }
}

/// The rows by word: a lookup is one load.
pub(crate) const fn index<const WORDS: usize>(regs: &[Reg]) -> [u8; WORDS] {
    assert!(regs.len() < 0xFF, "a row's number must fit a byte");
    let mut rows = [0; WORDS];
    let mut row = 0;
    while row < regs.len() {
        let reg = &regs[row];
        assert!(reg.offset.is_multiple_of(4) && reg.stride.is_multiple_of(4), "registers are words");
        assert!(reg.mask & reg.fixed == 0, "a bit is kept or fixed");
        let mut i = 0;
        while i < reg.count {
            let word = ((reg.offset + i * reg.stride) / 4) as usize;
            assert!(word < WORDS, "a register outside its block");
            assert!(rows[word] == 0, "two registers at one offset");
            rows[word] = u8_of(u32_of(row)) + 1;
            i += 1;
        }
        row += 1;
    }
    rows
}

/// Makes a block of rows, and a constant of each row.
///
/// `const TYPE = |at| VALUE` says what the constants are, given the number in the row; `unit` is
/// how many bytes that number stands for. Behind a row's access come [`Reg`]'s methods that change
/// a default.
macro_rules! registers {
    (
        $(#[doc = $about:literal])+
        pub static $block:ident = {
            name: $title:literal, base: $base:expr, span: $span:expr,
            copies: $copies:expr, stride: $stride:expr,
            unit: $unit:expr, page: $page:expr,
            const $type:ty = |$at:ident| $value:expr,
        };
        $(
            $(#[doc = $what:literal])+
            $row:ident $name:literal $([$count:literal; $step:expr])? = $number:literal,
                $access:ident $(, $key:ident $arg:expr)*;
        )*
    ) => {
        $(
            $(#[doc = $what])+
            pub const $row: $type = {
                let $at = $number;
                $value
            };
        )*

        $(#[doc = $about])+
        pub static $block: $crate::reg::Block = {
            use $crate::reg::{Access, Block, Reg, index};
            const TABLE: &[Reg] = &[
                $(
                    Reg::new($name, $number * $unit, Access::$access, $page, concat!($($what),+))
                        $(.repeated($count, $step))?
                        $(.$key($arg))*
                ),*
            ];
            const ROW_OF_WORD: [u8; ($span / 4) as usize] = index(TABLE);
            Block {
                name: $title,
                about: concat!($($about),+),
                base: $base as u64,
                span: $span,
                copies: $copies,
                stride: $stride,
                regs: TABLE,
                rows: &ROW_OF_WORD,
            }
        };
    };
}
pub(crate) use registers;

/// Every block, in the order of the documentation.
pub static BLOCKS: [&Block; 13] = [
    &crate::noc::init::INITIATOR,
    &crate::noc::NIU,
    &crate::noc::counter::COUNTERS_BLOCK,
    &crate::stream::reg::STREAM,
    &crate::tensix::DEBUG,
    &crate::tensix::PIC,
    &crate::tensix::tdma::TDMA,
    &crate::tensix::pc_buf::PC_BUF,
    &crate::tlb::WINDOW,
    &crate::tlb::STRIDED,
    &crate::pci::iatu::OUTBOUND,
    &crate::arc::RESET_UNIT,
    &crate::arc::MSI_CATCHER,
];

/// A register of a Tensix tile, by its address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TileRegister {
    /// Of one of the NIUs.
    Niu {
        /// 0 or 1.
        noc: u32,
        /// The request initiator, for registers that each of them has.
        initiator: Option<u32>,
        /// The register.
        slot: Slot,
    },
    /// Of an overlay stream.
    Stream {
        /// Its number.
        stream: u32,
        /// The register.
        slot: Slot,
    },
    /// Tile control, debug and status, the interrupt controller, TDMA.
    Tile(Slot),
    /// Of a PC buffer.
    PcBuf {
        /// Whose, 0 to 2, counted from the accessing core's first.
        buffer: u32,
        /// The register.
        slot: Slot,
    },
}

impl TileRegister {
    /// The register at `address`, as the cores of a tile and the NoC see it; `None` when no row has
    /// it.
    pub fn at(address: u32) -> Option<Self> {
        use crate::address_map::Region;
        use crate::{noc, stream, tensix};
        match Region::decode(address) {
            Region::Niu { noc, offset } => {
                let (initiator, slot) = noc::register(offset)?;
                Some(Self::Niu { noc: u32_of(noc), initiator, slot })
            }
            Region::Stream { offset } => {
                let slot = stream::reg::STREAM.at(offset % stream::STRIDE)?;
                Some(Self::Stream { stream: offset / stream::STRIDE, slot })
            }
            Region::PcBuf { index, offset } => {
                let slot = tensix::pc_buf::PC_BUF.at(offset)?;
                Some(Self::PcBuf { buffer: u32_of(index), slot })
            }
            Region::Tdma { offset } => tensix::tdma::TDMA.at(offset).map(Self::Tile),
            Region::Debug { .. } => [&tensix::DEBUG, &tensix::PIC].into_iter().find_map(|block| {
                let offset = u64::from(address).checked_sub(block.base)?;
                block.at(u32::try_from(offset).ok()?).map(Self::Tile)
            }),
            _ => None,
        }
    }

    /// The register's row and which of its registers it is.
    pub const fn slot(&self) -> Slot {
        match *self {
            Self::Niu { slot, .. } | Self::Stream { slot, .. } | Self::Tile(slot) | Self::PcBuf { slot, .. } => slot,
        }
    }
}

/// The name and whose it is: "NOC_CMD_CTRL of initiator 2 of NIU 1".
impl fmt::Display for TileRegister {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Niu { noc, initiator: Some(i), slot } => write!(f, "{slot} of initiator {i} of NIU {noc}"),
            Self::Niu { noc, initiator: None, slot } => write!(f, "{slot} of NIU {noc}"),
            Self::Stream { stream, slot } => write!(f, "{slot} of stream {stream}"),
            Self::Tile(slot) => write!(f, "{slot}"),
            Self::PcBuf { buffer: 0, slot } => write!(f, "{slot}"),
            Self::PcBuf { buffer, slot } => write!(f, "{slot} of PC buffer {buffer}"),
        }
    }
}
