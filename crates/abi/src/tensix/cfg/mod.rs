//! Backend configuration: one row for each field that units of the coprocessor read.
//!
//! Names, words and bits are those of the public `cfg_defines.h` for Blackhole
//! (`tt_metal/hw/inc/internal/tt-1xx/blackhole` of `tenstorrent/tt-metal`); a constant is the name
//! in capitals. Fields that repeat with the number in `SECn` are one row: [`Field::copy`] gives the
//! others. What the fields do is in the pages of the instructions that read them.

mod data;
mod global;
mod thcon;
mod thread;

pub use data::*;
pub use global::*;
pub use thcon::*;
pub use thread::*;

/// Where a field lives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Space {
    /// `ThreadConfig`: 16-bit words, one copy for each thread.
    Thread,
    /// `Config`: 32-bit words in two banks, of which a thread chooses one.
    Bank,
}

/// A field of the configuration.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Field {
    /// The name in `cfg_defines.h`; `_SEC_` stands for the numbered sections of the first to the
    /// last copy.
    pub name: &'static str,
    /// Where it lives.
    pub space: Space,
    /// Index of its word.
    pub word: u16,
    /// Lowest bit.
    pub lo: u8,
    /// Bits.
    pub width: u8,
    /// How many copies of it there are.
    pub copies: u8,
    /// Words from one copy to the next.
    pub stride: u8,
}

impl Field {
    /// The `n`-th copy.
    ///
    /// # Panics
    /// In debug builds, if there is no such copy.
    #[inline]
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "no field has more copies than fit a byte")]
    pub const fn copy(self, n: usize) -> Self {
        debug_assert!(n < self.copies as usize);
        let words = n as u16 * self.stride as u16;
        Self { word: self.word + words, ..self }
    }

    /// The field's bits, not shifted.
    #[inline]
    pub const fn mask(self) -> u32 {
        u32::MAX >> (32 - self.width) << self.lo
    }

    /// The field's value in `word`.
    #[inline]
    pub const fn of(self, word: u32) -> u32 {
        (word & self.mask()) >> self.lo
    }

    /// `word` with the field set to `value`.
    #[inline]
    #[must_use]
    pub const fn put(self, word: u32, value: u32) -> u32 {
        word & !self.mask() | value << self.lo & self.mask()
    }
}

/// The fields of a word, with the number of the copy that lies there.
pub fn fields_of(space: Space, word: u32) -> impl Iterator<Item = (&'static Field, u32)> {
    let tables = match space {
        Space::Thread => [THREAD, &[], &[]],
        Space::Bank => [DATA, THCON, GLOBAL],
    };
    tables.into_iter().flatten().filter_map(move |field| {
        let (first, stride) = (u32::from(field.word), u32::from(field.stride));
        let copy = (0..u32::from(field.copies)).find(|copy| first + copy * stride == word)?;
        Some((field, copy))
    })
}

/// A table of fields: constant, name, word, bits, and how often and how far apart it repeats.
macro_rules! fields {
    ($(#[$doc:meta])* $table:ident of $space:ident {
        $($field:ident $name:literal $word:literal [$hi:literal:$lo:literal] $(x $copies:literal by $stride:literal)?),*
        $(,)?
    }) => {
        $(
            #[doc = concat!("`", $name, "`.")]
            pub const $field: Field = Field {
                name: $name,
                space: Space::$space,
                word: $word,
                lo: $lo,
                width: $hi - $lo + 1,
                copies: fields!(@or 1 $($copies)?),
                stride: fields!(@or 0 $($stride)?),
            };
        )*
        $(#[$doc])*
        pub const $table: &[Field] = &[$($field),*];
    };
    (@or $default:literal) => { $default };
    (@or $default:literal $given:literal) => { $given };
}
use fields;
