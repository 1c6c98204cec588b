//! Prints of kernels: where a core leaves its records, and what a record is.
//!
//! Each core of a worker has a ring of words in L1 ([`MemoryMap::prints`]). A kernel appends
//! records and advances two counts; it never looks at what a host has read and never waits. Old
//! records are overwritten, and the counts tell a reader how many it has missed.
//!
//! A record has its head behind its values, so that a reader walks back from the newest:
//!
//! | word | content |
//! |---|---|
//! | 0 | the kernel's number, which the loader stored in its image ([`Binding`]) |
//! | 1, 2 | the wall clock of the tile when the print began, low half first |
//! | 3.. | the values |
//! | last but one | types of the values, 4 bits each, the first lowest ([`Type`]) |
//! | last | the head ([`Head`]) |
//!
//! Texts are not in the chip: they are in section [`SECTION`] of the kernel's ELF file, which is
//! not loaded. The address of a text there is its number, as defmt has it (public `defmt` book,
//! "Interned strings").

use crate::addr::L1Addr;
use crate::l1::MemoryMap;
use crate::tensix::Processor;

/// Words of a core's ring; a power of two.
pub const RING_WORDS: u32 = 256;
/// Bytes in front of the ring's words: the two counts, and two words that are not used.
pub const HEADER_BYTES: u32 = 16;
/// Bytes from one core's ring to the next one's.
pub const STRIDE: u32 = HEADER_BYTES + 4 * RING_WORDS;
/// Bytes of the rings of all cores of a tile.
pub const BYTES: u32 = 5 * STRIDE;
/// Offset of the number of words ever written (u32, wraps). Stored last: with it a record is there.
pub const WRITTEN: u32 = 0;
/// Offset of the number of records ever written (u32, wraps).
pub const RECORDS: u32 = 4;

/// Words of a record beside its values.
pub const FIXED_WORDS: u32 = 5;
/// Words of a record in front of its values.
pub const FRONT_WORDS: u32 = 3;
/// Most values of a print.
pub const MAX_VALUES: usize = 8;
/// Most elements of a tile or an array in a record.
pub const MAX_ELEMENTS: u32 = 32;
/// Words in front of the elements of a tile or an array: its address, its element type
/// ([`Element::code`]), and what was asked for ([`Slice`], or the number of elements).
pub const ELEMENT_FRONT_WORDS: u32 = 3;

/// Section of the texts in a kernel's ELF file.
pub const SECTION: &str = ".tw_print";
/// Bytes that this section may have: a text's number has 16 bits.
pub const SECTION_BYTES: u32 = 1 << 16;
/// A text is so many fields, each ended by a zero byte: what it is ([`KINDS`]), the number of
/// values, source file, line, text, and the condition of an assertion.
pub const FIELDS: usize = 6;
/// The first field of a text: a print, an assertion, a tile, an array.
pub const KINDS: [&str; 4] = ["print", "assert", "tile", "array"];

/// Name of the symbol in a kernel that prints.
pub const BINDING_SYMBOL: &str = "__tilework_prints";
/// Words of a [`Binding`].
pub const BINDING_WORDS: usize = 2;

/// The words that a loader stores at [`BINDING_SYMBOL`] in the image of a kernel that prints.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct Binding {
    /// Address of the core's ring.
    pub ring: u32,
    /// The kernel's number, by which a reader finds its texts.
    pub kernel: u32,
}

const _: () = assert!(core::mem::size_of::<Binding>() == 4 * BINDING_WORDS);

/// The ring of `core` under firmware with this map; `None` when the map has no room for rings.
pub const fn ring(map: &MemoryMap, core: Processor) -> Option<L1Addr> {
    match map.prints_size {
        0 => None,
        _ => Some(map.prints.offset(STRIDE * crate::convert::u32_of(core.index()))),
    }
}

/// The last word of a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Head {
    /// Number of the text.
    pub text: u16,
    /// Words of the values.
    pub values: u8,
}

impl Head {
    /// The upper byte of every head, so that what is none is noticed.
    pub const MARK: u32 = 0xB5;

    /// The word.
    pub const fn word(self) -> u32 {
        Self::MARK << 24 | (self.values as u32) << 16 | self.text as u32
    }
    /// The head that a word is, if it is one.
    pub const fn of(word: u32) -> Option<Self> {
        let [low, high, values, mark] = word.to_le_bytes();
        if mark as u32 == Self::MARK { Some(Self { text: u16::from_le_bytes([low, high]), values }) } else { None }
    }
    /// Words of the whole record.
    pub const fn words(self) -> u32 {
        self.values as u32 + FIXED_WORDS
    }
}

macro_rules! types {
    ($($(#[doc = $what:literal])+ $name:ident = $code:literal;)*) => {
        /// The type of a value in a record.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(u8)]
        pub enum Type {
            $($(#[doc = $what])+ $name = $code,)*
        }

        impl Type {
            /// The type with a code.
            pub const fn of(code: u32) -> Option<Self> {
                match code {
                    $($code => Some(Self::$name),)*
                    _ => None,
                }
            }
            /// Its code, 1 to 15; 0 means no value.
            pub const fn code(self) -> u32 {
                self as u32
            }
            /// Words that a value takes.
            pub const fn words(self) -> usize {
                match self {
                    Self::U64 | Self::I64 => 2,
                    _ => 1,
                }
            }
        }
    };
}

types! {
    /// Unsigned, 8 bits.
    U8 = 1;
    /// Unsigned, 16 bits.
    U16 = 2;
    /// Unsigned, 32 bits.
    U32 = 3;
    /// Unsigned, 64 bits, low half first.
    U64 = 4;
    /// Signed, 8 bits.
    I8 = 5;
    /// Signed, 16 bits.
    I16 = 6;
    /// Signed, 32 bits.
    I32 = 7;
    /// Signed, 64 bits, low half first.
    I64 = 8;
    /// A truth value, 0 or 1.
    Bool = 9;
    /// A character of Unicode.
    Char = 10;
    /// The bits of a binary32.
    F32 = 11;
    /// The bits of a bfloat16.
    Bf16 = 12;
}

macro_rules! elements {
    ($($(#[doc = $what:literal])+ $name:ident = $code:literal $bits:literal $block:literal;)*) => {
        /// The type of the elements of a tile or an array.
        ///
        /// Codes are those of data formats in tile headers and descriptors (`DataFormat` of the
        /// public `tensix_types.h`).
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(u8)]
        pub enum Element {
            $($(#[doc = $what])+ $name = $code,)*
        }

        impl Element {
            /// Every type.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// The type with a code.
            pub const fn of(code: u32) -> Option<Self> {
                match code {
                    $($code => Some(Self::$name),)*
                    _ => None,
                }
            }
            /// Its name.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($name),)*
                }
            }
            /// Bits of an element, without a shared exponent.
            pub const fn bits(self) -> u32 {
                match self {
                    $(Self::$name => $bits,)*
                }
            }
            /// Whether elements share exponents: such a type exists in tiles only. The word of such
            /// an element in a record has the exponent in bits 15..8.
            pub const fn is_block(self) -> bool {
                match self {
                    $(Self::$name => $block,)*
                }
            }
            /// Its code.
            pub const fn code(self) -> u32 {
                self as u32
            }
        }
    };
}

elements! {
    /// binary32.
    F32 = 0 32 false;
    /// binary16.
    F16 = 1 16 false;
    /// Shared exponent of 5 bits, sign and 7 bits each.
    Bfp8 = 2 8 true;
    /// Shared exponent of 5 bits, sign and 3 bits each.
    Bfp4 = 3 4 true;
    /// bfloat16.
    Bf16 = 5 16 false;
    /// Shared exponent of 8 bits, sign and 7 bits each.
    Bfp8B = 6 8 true;
    /// Shared exponent of 8 bits, sign and 3 bits each.
    Bfp4B = 7 4 true;
    /// Signed, 32 bits: sign and magnitude in a tile, two's complement in an array.
    I32 = 8 32 false;
    /// Unsigned, 16 bits.
    U16 = 9 16 false;
    /// Shared exponent of 5 bits, sign and 1 bit each.
    Bfp2 = 11 2 true;
    /// Signed, 8 bits: sign and magnitude in a tile, two's complement in an array.
    I8 = 14 8 false;
    /// Shared exponent of 8 bits, sign and 1 bit each.
    Bfp2B = 15 2 true;
    /// Unsigned, 32 bits.
    U32 = 24 32 false;
    /// Unsigned, 8 bits.
    U8 = 30 8 false;
}

/// Rows and columns of a tile of 32 by 32.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Slice {
    /// First row.
    pub row: u8,
    /// Number of rows.
    pub rows: u8,
    /// First column.
    pub column: u8,
    /// Number of columns.
    pub columns: u8,
}

/// Rows and columns of a tile.
pub const TILE_DIM: u32 = 32;
/// Rows and columns of a face.
const FACE_DIM: u32 = 16;
/// Elements of a face.
const FACE: u32 = FACE_DIM * FACE_DIM;
/// Exponents of a tile of a block type, in front of its elements.
pub const EXPONENTS: u32 = TILE_DIM * TILE_DIM / FACE_DIM;

impl Slice {
    /// The word of a record.
    pub const fn word(self) -> u32 {
        u32::from_le_bytes([self.row, self.rows, self.column, self.columns])
    }
    /// The slice that a word is.
    pub const fn of(word: u32) -> Self {
        let [row, rows, column, columns] = word.to_le_bytes();
        Self { row, rows, column, columns }
    }
    /// Number of elements.
    pub const fn elements(self) -> u32 {
        self.rows as u32 * self.columns as u32
    }
    /// Whether it lies in a tile.
    pub const fn is_in_a_tile(self) -> bool {
        self.row as u32 + self.rows as u32 <= TILE_DIM && self.column as u32 + self.columns as u32 <= TILE_DIM
    }
}

/// Position of an element within the elements of a tile of four faces
/// (BlackholeA0/TensixTile/TensixCoprocessor, tile layout of unpackers and packers).
pub const fn position(row: u32, column: u32) -> u32 {
    face(row, column) * FACE + row % FACE_DIM * FACE_DIM + column % FACE_DIM
}

/// Position of its exponent within the exponents of a tile of a block type.
pub const fn exponent_position(row: u32, column: u32) -> u32 {
    face(row, column) * FACE_DIM + row % FACE_DIM
}

const fn face(row: u32, column: u32) -> u32 {
    row / FACE_DIM * 2 + column / FACE_DIM
}

const _: () = {
    assert!(RING_WORDS.is_power_of_two());
    assert!(2 * (FIXED_WORDS + ELEMENT_FRONT_WORDS + MAX_ELEMENTS) < RING_WORDS);
    assert!(BYTES.is_multiple_of(crate::L1_ALIGN));
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_and_slices_are_words_and_back() {
        for head in [Head { text: 0, values: 0 }, Head { text: 0xFFFF, values: 255 }, Head { text: 0x1234, values: 7 }]
        {
            assert_eq!(Head::of(head.word()), Some(head));
            assert_eq!(head.words(), u32::from(head.values) + 5);
        }
        assert_eq!(Head::of(0), None);
        assert_eq!(Head::of(0x1234_0007), None);
        let slice = Slice { row: 3, rows: 1, column: 16, columns: 16 };
        assert_eq!((Slice::of(slice.word()), slice.elements(), slice.is_in_a_tile()), (slice, 16, true));
        assert!(!Slice { columns: 17, ..slice }.is_in_a_tile());
    }

    #[test]
    fn every_element_of_a_tile_has_a_place_of_its_own() {
        let mut seen = [false; 1024];
        for row in 0..TILE_DIM {
            for column in 0..TILE_DIM {
                let at = position(row, column) as usize;
                assert!(!core::mem::replace(&mut seen[at], true));
                assert_eq!(exponent_position(row, column), position(row, column) / 16);
            }
        }
        assert_eq!([position(0, 16), position(16, 0), position(17, 17)], [256, 512, 768 + 17]);
        assert!(seen.iter().all(|&seen| seen));
    }

    #[test]
    fn codes_name_their_types() {
        for code in 0..16 {
            assert_eq!(Type::of(code).map_or(code, Type::code), code);
        }
        for &element in Element::ALL {
            assert_eq!(Element::of(element.code()), Some(element));
        }
    }
}
