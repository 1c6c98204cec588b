//! The schema, declared: each macro turns a list of names and types into types and code that reads
//! and checks them.
//!
//! - `enums!` declares enumerations: `DataType: u16 { Float32, Float16 }`, ordinals as in Rust.
//! - `structs!` declares structs, which are stored inline in tables: `Dim2d { y: i32, x: i32 }`.
//! - `tables!` declares tables: the order of the fields is that of the schema and decides their
//!   places in the vtable. A field is `name: Type`; the type determines what absence means:
//!   `Option<T>` is `None`; scalars are 0 or the default that `= value` states; strings and vectors
//!   are empty; tables, structs and unions must be there. `input("in")` gives a field another name
//!   than the schema's, where that is a keyword of Rust. `as out` and `as inout` mark tensors that
//!   an operation makes or changes. `[if feature]` marks fields that only files of some schemas
//!   have: those of editions for which [`Edition::feature`](crate::schema::Edition) is true.
//! - `unions!` declares unions by their members, the first of which has ordinal 1.
//!
//! Each type can be written as data (serde): [`crate::data`].

/// An enumeration without code that reads it, for those whose ordinals depend on the edition.
macro_rules! named {
    ($(#[$meta:meta])* $name:ident: $repr:ident { $($variant:ident $(= $value:literal)?),* $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[allow(missing_docs, non_camel_case_types, reason = "the variants' names are the schema's")]
        #[repr($repr)]
        pub enum $name { $($variant $(= $value)?),* }

        impl $name {
            /// The value of that ordinal.
            pub const fn from_ordinal(ordinal: $repr) -> Option<Self> {
                $(if ordinal == Self::$variant as $repr {
                    return Some(Self::$variant);
                })*
                None
            }

            /// Its name in the schema.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => stringify!($variant)),*
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&crate::data::name(self.name()))
            }
        }
    };
}

macro_rules! enums {
    ($($(#[$meta:meta])* $name:ident: $repr:ident { $($variant:ident $(= $value:literal)?),* $(,)? })*) => {$(
        crate::flat::declare::named! { $(#[$meta])* $name: $repr { $($variant $(= $value)?),* } }

        impl crate::flat::field::Inline for $name {
            const NAME: &'static str = stringify!($name);
            const SIZE: usize = size_of::<$repr>();
            const ALIGN: usize = size_of::<$repr>();
            const ABSENT: Option<Self> = Self::from_ordinal(0);

            fn parse(bytes: &[u8]) -> Result<Self, (usize, crate::error::Reason)> {
                let ordinal = <$repr as crate::flat::field::Inline>::parse(bytes)?;
                Self::from_ordinal(ordinal).ok_or_else(|| {
                    let expected = concat!("a ", stringify!($name)).into();
                    (0, crate::error::Reason::Format { expected, found: format!("ordinal {ordinal}") })
                })
            }
        }
    )*};
}

macro_rules! structs {
    ($($(#[$meta:meta])* $name:ident { $($field:ident $(($wire:literal))?: $type:ty),* $(,)? })*) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
        #[allow(missing_docs, reason = "the fields' names are the schema's")]
        pub struct $name { $($(#[serde(rename = $wire)])? pub $field: $type),* }

        impl crate::flat::field::Inline for $name {
            const NAME: &'static str = stringify!($name);
            const SIZE: usize = {
                let mut end = 0_usize;
                $(end = end.next_multiple_of(<$type as crate::flat::field::Inline>::ALIGN)
                    + <$type as crate::flat::field::Inline>::SIZE;)*
                end.next_multiple_of(Self::ALIGN)
            };
            const ALIGN: usize = {
                let mut align = 1;
                $(if <$type as crate::flat::field::Inline>::ALIGN > align {
                    align = <$type as crate::flat::field::Inline>::ALIGN;
                })*
                align
            };
            const ABSENT: Option<Self> = None;

            fn parse(bytes: &[u8]) -> Result<Self, (usize, crate::error::Reason)> {
                use crate::flat::field::Inline;
                let mut end = 0_usize;
                $(
                    let start = end.next_multiple_of(<$type as Inline>::ALIGN);
                    end = start + <$type as Inline>::SIZE;
                    let $field = <$type as Inline>::parse(&bytes[start..end]).map_err(|(at, why)| (start + at, why))?;
                )*
                debug_assert!(end <= Self::SIZE);
                Ok(Self { $($field),* })
            }
        }
    )*};
}

/// The name that the schema gives a field.
macro_rules! wire_name {
    ($field:ident $wire:literal) => {
        $wire
    };
    ($field:ident) => {
        stringify!($field)
    };
}

/// The direction of a field's tensors, by the mark after its type.
macro_rules! direction {
    () => {
        crate::operand::Direction::In
    };
    (out) => {
        crate::operand::Direction::Out
    };
    (inout) => {
        crate::operand::Direction::InOut
    };
}

/// Implements fields and elements for a type of tables or unions: the number of slots that it takes
/// in a table, the functions of [`crate::flat::field`] that read one value and a vector of them,
/// and how it is visited.
macro_rules! element {
    ($name:ident, $slots:literal, $one:ident, $many:ident, |$this:ident, $role:ident, $direction:ident, $visitor:ident| $visit:block) => {
        impl crate::flat::Element for $name {
            const SLOTS: u16 = $slots;

            fn present(
                reader: &mut crate::flat::FlatReader,
                table: &crate::flat::Table,
                slot: u16,
            ) -> crate::error::Result<Option<Self>> {
                crate::flat::field::$one(reader, table, slot)
            }

            fn vector(
                reader: &mut crate::flat::FlatReader,
                table: &crate::flat::Table,
                slot: u16,
            ) -> crate::error::Result<Option<Vec<Self>>> {
                crate::flat::field::$many(reader, table, slot)
            }

            fn absent() -> Option<Self> {
                None
            }

            fn visit<'a>(
                &'a self,
                $role: &crate::operand::Role<'_>,
                $direction: crate::operand::Direction,
                $visitor: &mut crate::operand::Visitor<'_, 'a>,
            ) {
                let $this = self;
                $visit
            }
        }
    };
}

/// Implements fields and elements for the type of a table.
macro_rules! table_element {
    ($name:ident) => {
        crate::flat::declare::element!($name, 1, table_in, tables_in, |table, role, direction, visitor| {
            crate::flat::field::Tabular::visit_fields(table, Some(role), direction, visitor);
        });
    };
}

macro_rules! tables {
    ($($(#[$meta:meta])* $name:ident {
        $($field:ident $(($wire:literal))?: $type:ty $(as $direction:ident)? $([if $feature:ident])? $(= $default:expr)?),* $(,)?
    })*) => {$(
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, serde::Serialize)]
        #[allow(missing_docs, reason = "the fields' names are the schema's, their meaning that of the operation's arguments")]
        pub struct $name { $($(#[serde(rename = $wire)])? pub $field: $type),* }

        #[allow(unused_variables, unused_mut, unused_assignments, reason = "a table may have no fields, or no tensors")]
        impl crate::flat::field::Tabular for $name {
            fn read(reader: &mut crate::flat::FlatReader, table: &crate::flat::Table) -> crate::error::Result<Self> {
                let mut slot = 0;
                $(let $field = {
                    #[allow(unused_mut)]
                    let mut default: Option<$type> = None;
                    $(default = Some($default);)?
                    let name = crate::flat::declare::wire_name!($field $($wire)?);
                    let (value, next) = crate::flat::declare::tables!(@read $type, reader, table, slot, name, default $(, $feature)?);
                    slot = next;
                    value
                };)*
                reader.no_more_fields(table, slot)?;
                Ok(Self { $($field),* })
            }

            fn visit_fields<'a>(
                &'a self,
                role: Option<&crate::operand::Role<'_>>,
                direction: crate::operand::Direction,
                visitor: &mut crate::operand::Visitor<'_, 'a>,
            ) {
                $(
                    let role_of_field = crate::operand::Role::of(role, crate::flat::declare::wire_name!($field $($wire)?));
                    crate::flat::Field::visit(&self.$field, &role_of_field, crate::flat::declare::direction!($($direction)?), visitor);
                )*
            }
        }

        crate::flat::declare::table_element!($name);
    )*};
    (@read $type:ty, $reader:ident, $table:ident, $slot:ident, $name:ident, $default:ident) => {
        (
            crate::flat::field::read_field::<$type>($reader, $table, $slot, $name, $default)?,
            $slot + <$type as crate::flat::Field>::SLOTS,
        )
    };
    (@read $type:ty, $reader:ident, $table:ident, $slot:ident, $name:ident, $default:ident, $feature:ident) => {
        if $reader.schema.edition.$feature() {
            crate::flat::declare::tables!(@read $type, $reader, $table, $slot, $name, $default)
        } else {
            (Default::default(), $slot)
        }
    };
}

macro_rules! unions {
    ($($(#[$meta:meta])* $name:ident { $($member:ident($table:ident)),* $(,)? })*) => {$(
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq)]
        #[allow(missing_docs, reason = "the members' names are the schema's")]
        #[allow(clippy::large_enum_variant, reason = "unions are few; a box would be on every path to them")]
        pub enum $name { $($member($table)),* }

        impl $name {
            /// The member's name in the schema.
            pub const fn name(&self) -> &'static str {
                match self {
                    $(Self::$member(_) => stringify!($member)),*
                }
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                match self {
                    $(Self::$member(table) => crate::data::member(self.name(), table, serializer)),*
                }
            }
        }

        impl crate::flat::field::Union for $name {
            const NAME: &'static str = stringify!($name);

            #[allow(unused_assignments, reason = "the last member's ordinal is not counted on")]
            fn member(reader: &mut crate::flat::FlatReader, ordinal: u8, at: usize) -> crate::error::Result<Option<Self>> {
                let mut next = 1;
                $(
                    if ordinal == next {
                        return match crate::flat::field::table_at(reader, at) {
                            Ok(table) => Ok(Some(Self::$member(table))),
                            Err(error) => Err(error.in_field(stringify!($member))),
                        };
                    }
                    next += 1;
                )*
                Ok(None)
            }

            fn visit_member<'a>(
                &'a self,
                role: &crate::operand::Role<'_>,
                direction: crate::operand::Direction,
                visitor: &mut crate::operand::Visitor<'_, 'a>,
            ) {
                match self {
                    $(Self::$member(table) => crate::flat::Element::visit(table, role, direction, visitor)),*
                }
            }
        }

        crate::flat::declare::element!($name, 2, union_in, unions_in, |member, role, direction, visitor| {
            crate::flat::field::Union::visit_member(member, role, direction, visitor);
        });
    )*};
}

pub(crate) use {direction, element, enums, named, structs, table_element, tables, unions, wire_name};
