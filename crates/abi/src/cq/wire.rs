//! The macros behind the command tables: wire structs, selector bytes and command ids.

use core::fmt::{Display, Formatter};
use core::ops::RangeInclusive;

/// What a field may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// A number from `min` to `max`.
    Range {
        /// The smallest value.
        min: u64,
        /// The largest value.
        max: u64,
    },
    /// Any of these bits.
    Bits(u64),
}

impl Limit {
    /// Whether `found` is allowed.
    pub const fn allows(self, found: u64) -> bool {
        match self {
            Self::Range { min, max } => min <= found && found <= max,
            Self::Bits(mask) => found & !mask == 0,
        }
    }
}

/// What was expected, for error messages: "1 to 118", "at least 1", "bits 0, 1 and 4 to 7 only".
impl Display for Limit {
    fn fmt(&self, f: &mut Formatter<'_>) -> core::fmt::Result {
        match *self {
            Self::Range { min, max } if min == max => write!(f, "{min}"),
            Self::Range { min, max: u64::MAX } => write!(f, "at least {min}"),
            Self::Range { min, max } => write!(f, "{min} to {max}"),
            Self::Bits(mask) => show_bits(mask, f),
        }
    }
}

fn show_bits(mask: u64, f: &mut Formatter<'_>) -> core::fmt::Result {
    f.write_str(if mask.count_ones() == 1 { "bit " } else { "bits " })?;
    let mut left = mask;
    while left != 0 {
        let first = left.trailing_zeros();
        // Runs of three and more are shown by their ends.
        let run = (left >> first).trailing_ones();
        let shown = if run > 2 { run } else { 1 };
        let last = first + shown - 1;
        let rest = if last == 63 { 0 } else { left >> (last + 1) << (last + 1) };
        match (left == mask, rest) {
            (true, _) => {}
            (false, 0) => f.write_str(" and ")?,
            (false, _) => f.write_str(", ")?,
        }
        if shown > 1 {
            write!(f, "{first} to {last}")?
        } else {
            write!(f, "{first}")?
        }
        left = rest;
    }
    f.write_str(" only")
}

/// A field of a wire struct whose values are limited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name.
    pub name: &'static str,
    /// Bytes from the start of the struct.
    pub offset: usize,
    /// What it may hold.
    pub limit: Limit,
}

impl Field {
    /// A field that holds a number in `range`.
    pub const fn range(name: &'static str, offset: usize, range: RangeInclusive<u64>) -> Self {
        Self { name, offset, limit: Limit::Range { min: *range.start(), max: *range.end() } }
    }

    /// A field that holds any of the bits of `mask`.
    pub const fn bits(name: &'static str, offset: usize, mask: u64) -> Self {
        Self { name, offset, limit: Limit::Bits(mask) }
    }

    /// Checks the value `found`.
    ///
    /// # Errors
    /// When the field must not hold it.
    pub const fn check(self, found: u64) -> Result<(), Violation> {
        if self.limit.allows(found) { Ok(()) } else { Err(Violation { field: self, found }) }
    }
}

/// A field that holds a value outside its limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The field.
    pub field: Field,
    /// Its value.
    pub found: u64,
}

/// A wire struct: packed, little-endian, alignment 1, and any bytes are a value of it.
pub trait Wire: zerocopy::FromBytes + zerocopy::IntoBytes + zerocopy::Immutable + zerocopy::Unaligned + Copy {
    /// Checks all limited fields, in the order in which they lie.
    ///
    /// # Errors
    /// The first field outside its limits.
    fn check(&self) -> Result<(), Violation>;
}

/// Defines a wire struct: packed, alignment 1, its size in brackets and each field's offset behind
/// `=>`, both asserted at compile time. Behind the offset may stand what the field may hold: `in`
/// and a range, or `bits` and a type of flags. The limits are constants with the fields' names.
macro_rules! wire {
    (
        $(#[$doc:meta])*
        pub struct $name:ident[$size:expr] {$(
            $(#[$field_doc:meta])*
            pub $field:ident: $ty:ty => $offset:literal $(in $range:expr)? $(; bits $flags:ident)?,
        )*}
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[derive(
            zerocopy::FromBytes,
            zerocopy::IntoBytes,
            zerocopy::KnownLayout,
            zerocopy::Immutable,
            zerocopy::Unaligned,
        )]
        #[repr(C)]
        pub struct $name {
            $($(#[$field_doc])* pub $field: $ty,)*
        }

        #[allow(non_upper_case_globals)]
        impl $name {
            $($(
                #[doc = concat!("Limits of the field `", stringify!($field), "`.")]
                pub const $field: $crate::cq::wire::Field =
                    $crate::cq::wire::Field::range(stringify!($field), $offset, $range);
            )?
            $(
                #[doc = concat!("Limits of the field `", stringify!($field), "`.")]
                pub const $field: $crate::cq::wire::Field = $crate::cq::wire::Field::bits(
                    stringify!($field), $offset, $flags::all().bits() as u64
                );
            )?)*
        }

        impl $crate::cq::wire::Wire for $name {
            fn check(&self) -> Result<(), $crate::cq::wire::Violation> {
                $(
                    wire!(@check self $field $(in $range)? $(bits $flags)?);
                )*
                Ok(())
            }
        }

        const _: () = {
            assert!(size_of::<$name>() == $size && align_of::<$name>() == 1);
            $(assert!(core::mem::offset_of!($name, $field) == $offset);)*
        };
    };
    (@check $self:ident $field:ident) => {};
    (@check $self:ident $field:ident $($limit:tt)+) => {
        Self::$field.check(u64::from($self.$field))?
    };
}

/// Defines an enum that travels as one byte.
macro_rules! selector {
    (
        $(#[$doc:meta])*
        pub enum $name:ident {
            $($(#[$variant_doc:meta])* $variant:ident = $value:literal,)*
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum $name {
            $($(#[$variant_doc])* $variant = $value,)*
        }

        impl TryFrom<u8> for $name {
            type Error = $crate::cq::UnknownId;

            fn try_from(found: u8) -> Result<Self, $crate::cq::UnknownId> {
                Ok(match found {
                    $($value => Self::$variant,)*
                    _ => return Err($crate::cq::UnknownId { found }),
                })
            }
        }
    };
}

/// Defines the ids of a command set from the rows of its table.
macro_rules! command_ids {
    (
        $(#[$doc:meta])*
        pub enum $ids:ident;
        $(
            $(#[$row_doc:meta])*
            $variant:ident = $id:literal, $name:literal, $header:ident $(($carries:ty))?,
            by [$($kernel:ident),*];
        )*
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum $ids {
            /// Never sent; what zeroed memory reads as.
            Illegal = 0,
            $($(#[$row_doc])* $variant = $id,)*
        }

        impl $ids {
            /// Every id that may be sent, in numeric order.
            pub const ALL: [Self; [$($id),*].len()] = [$(Self::$variant,)*];

            /// The highest id.
            pub const LAST_ID: u8 = $crate::convert::u8_of($crate::convert::u32_of(Self::ALL.len()));

            /// The name that the documents use.
            pub const fn name(self) -> &'static str {
                match self {
                    Self::Illegal => "ILLEGAL",
                    $(Self::$variant => $name,)*
                }
            }

            /// Bytes of this command's header.
            pub const fn header_size(self) -> usize {
                match self {
                    Self::Illegal => size_of::<BareCmd>(),
                    $(Self::$variant => size_of::<$header>(),)*
                }
            }

            /// The kernels of our firmware that execute this command; none when it is not built. A
            /// kernel stops at any other command.
            pub const fn executed_by(self) -> &'static [Kernel] {
                match self {
                    Self::Illegal => &[],
                    $(Self::$variant => &[$(Kernel::$kernel),*],)*
                }
            }
        }

        impl TryFrom<u8> for $ids {
            type Error = $crate::cq::UnknownId;

            /// Accepts the ids that may be sent; `Illegal` is not one of them.
            fn try_from(found: u8) -> Result<Self, $crate::cq::UnknownId> {
                match found.checked_sub(1).and_then(|i| Self::ALL.get(usize::from(i))) {
                    Some(&id) => Ok(id),
                    None => Err($crate::cq::UnknownId { found }),
                }
            }
        }

        // `try_from` finds an id by its position.
        const _: () = {
            let mut i = 0;
            while i < $ids::ALL.len() {
                assert!($ids::ALL[i] as usize == i + 1);
                i += 1;
            }
        };
    };
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    #[test]
    fn limits_say_what_they_expect() {
        let range = |min, max| Limit::Range { min, max }.to_string();
        assert_eq!(range(1, 118), "1 to 118");
        assert_eq!(range(2, 2), "2");
        assert_eq!(range(1, u64::MAX), "at least 1");
        let bits = |mask| Limit::Bits(mask).to_string();
        assert_eq!(bits(0x1), "bit 0 only");
        assert_eq!(bits(0x1f), "bits 0 to 4 only");
        assert_eq!(bits(0xf3), "bits 0, 1 and 4 to 7 only");
        assert_eq!(bits(0x21), "bits 0 and 5 only");
        assert_eq!(bits(1 << 63), "bit 63 only");
    }
}
