//! Kinds of fields of a table, and how each is read.

use super::reader::{FlatReader, Table};
use crate::bytes::Bytes;
use crate::error::{ReadError, Reason, Result, Step};
use crate::operand::{Direction, Role, Visitor};

/// A value that is stored in a table or vector itself: scalar, enumeration, struct.
pub(crate) trait Inline: Copy {
    /// Its name in messages.
    const NAME: &'static str;
    /// Bytes.
    const SIZE: usize;
    /// Its offset in the file is a multiple of this.
    const ALIGN: usize;
    /// The value of an absent field, for those types that have one.
    const ABSENT: Option<Self>;
    /// The value of `SIZE` bytes, or the position in them and the reason of an error.
    fn parse(bytes: &[u8]) -> Result<Self, (usize, Reason)>;
}

/// What a field, or an element of a vector, can hold.
pub(crate) trait Element: Sized {
    /// Entries of a vtable that it takes.
    const SLOTS: u16 = 1;
    /// The field's value, `None` if it is absent.
    fn present(reader: &mut FlatReader, table: &Table, slot: u16) -> Result<Option<Self>>;
    /// The field as a vector of such values, `None` if it is absent.
    fn vector(reader: &mut FlatReader, table: &Table, slot: u16) -> Result<Option<Vec<Self>>>;
    /// The value that an absent field has, for those types that have one.
    fn absent() -> Option<Self>;
    /// Visits the tensor references within.
    fn visit<'a>(&'a self, _role: &Role<'_>, _direction: Direction, _visitor: &mut Visitor<'_, 'a>) {}
}

/// A field of a declared table.
pub(crate) trait Field: Sized {
    /// Entries of a vtable that it takes.
    const SLOTS: u16;
    /// Reads it; `default` is the schema's, if it states one.
    fn read(reader: &mut FlatReader, table: &Table, slot: u16, default: Option<Self>) -> Result<Self>;
    /// Visits the tensor references within.
    fn visit<'a>(&'a self, role: &Role<'_>, direction: Direction, visitor: &mut Visitor<'_, 'a>);
}

impl<T: Element> Field for T {
    const SLOTS: u16 = T::SLOTS;

    fn read(reader: &mut FlatReader, table: &Table, slot: u16, default: Option<Self>) -> Result<Self> {
        let present = T::present(reader, table, slot)?;
        present.or(default).or_else(T::absent).ok_or_else(|| reader.missing(table))
    }

    fn visit<'a>(&'a self, role: &Role<'_>, direction: Direction, visitor: &mut Visitor<'_, 'a>) {
        T::visit(self, role, direction, visitor);
    }
}

impl<T: Element> Field for Option<T> {
    const SLOTS: u16 = T::SLOTS;

    fn read(reader: &mut FlatReader, table: &Table, slot: u16, _: Option<Self>) -> Result<Self> {
        T::present(reader, table, slot)
    }

    fn visit<'a>(&'a self, role: &Role<'_>, direction: Direction, visitor: &mut Visitor<'_, 'a>) {
        if let Some(value) = self {
            value.visit(role, direction, visitor);
        }
    }
}

/// An absent vector is an empty one, as the runtime treats it.
impl<T: Element> Field for Vec<T> {
    const SLOTS: u16 = T::SLOTS;

    fn read(reader: &mut FlatReader, table: &Table, slot: u16, _: Option<Self>) -> Result<Self> {
        Ok(T::vector(reader, table, slot)?.unwrap_or_default())
    }

    fn visit<'a>(&'a self, role: &Role<'_>, direction: Direction, visitor: &mut Visitor<'_, 'a>) {
        for (index, value) in self.iter().enumerate() {
            value.visit(&role.element(index), direction, visitor);
        }
    }
}

impl FlatReader<'_> {
    #[cold]
    fn missing(&self, table: &Table) -> ReadError {
        ReadError::format(table.position(), "a value in this table", "none: the field is absent")
    }

    /// Follows the offset in a field, if there is one.
    pub(crate) fn reference(&self, table: &Table, slot: u16) -> Result<Option<usize>> {
        self.field(table, slot)?.map(|at| self.follow(at)).transpose()
    }
}

impl<T: Inline> Element for T {
    fn present(reader: &mut FlatReader, table: &Table, slot: u16) -> Result<Option<Self>> {
        reader.field(table, slot)?.map(|at| reader.inline(at)).transpose()
    }

    fn vector(reader: &mut FlatReader, table: &Table, slot: u16) -> Result<Option<Vec<Self>>> {
        let Some(at) = reader.reference(table, slot)? else { return Ok(None) };
        // The builder does not align the elements of an empty vector, and the C++ verifier does not
        // require alignment of others either.
        reader.elements(at, T::SIZE, |reader, at| reader.unaligned(at)).map(Some)
    }

    fn absent() -> Option<Self> {
        T::ABSENT
    }
}

macro_rules! scalars {
    ($($type:ty),*) => {$(
        impl Inline for $type {
            const NAME: &'static str = stringify!($type);
            const SIZE: usize = size_of::<$type>();
            const ALIGN: usize = size_of::<$type>();
            const ABSENT: Option<Self> = Some(0 as $type);

            fn parse(bytes: &[u8]) -> Result<Self, (usize, Reason)> {
                let mut raw = [0; size_of::<$type>()];
                raw.copy_from_slice(bytes);
                Ok(<$type>::from_le_bytes(raw))
            }
        }
    )*};
}

scalars!(u8, u16, u32, u64, i8, i16, i32, i64, f32, f64);

impl Inline for bool {
    const NAME: &'static str = "bool";
    const SIZE: usize = 1;
    const ALIGN: usize = 1;
    const ABSENT: Option<Self> = Some(false);

    fn parse(bytes: &[u8]) -> Result<Self, (usize, Reason)> {
        // As in the C++ accessors, any value but 0 is true.
        Ok(bytes != [0])
    }
}

/// A flag behind a field of which only the place is known: no file was seen that has it, and one
/// that has is refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[serde(transparent)]
pub struct BehindUnknown(pub bool);

impl Field for BehindUnknown {
    const SLOTS: u16 = 2;

    fn read(reader: &mut FlatReader, table: &Table, slot: u16, _: Option<Self>) -> Result<Self> {
        if let Some(at) = reader.field(table, slot)? {
            return Err(ReadError::format(
                at,
                "no value for a field of unknown meaning",
                format!("one in field {slot}"),
            ));
        }
        Ok(Self(bool::present(reader, table, slot + 1)?.unwrap_or(false)))
    }

    fn visit<'a>(&'a self, _: &Role<'_>, _: Direction, _: &mut Visitor<'_, 'a>) {}
}

/// An absent string is an empty one, unless the field is declared as optional.
impl Element for String {
    fn present(reader: &mut FlatReader, table: &Table, slot: u16) -> Result<Option<Self>> {
        reader.reference(table, slot)?.map(|at| reader.string(at)).transpose()
    }

    fn vector(reader: &mut FlatReader, table: &Table, slot: u16) -> Result<Option<Vec<Self>>> {
        let Some(at) = reader.reference(table, slot)? else { return Ok(None) };
        reader.elements(at, 4, |reader, at| reader.follow(at).and_then(|at| reader.string(at))).map(Some)
    }

    fn absent() -> Option<Self> {
        Some(String::new())
    }
}

/// Bytes are used in place. A vector of them does not occur.
impl Field for Bytes {
    const SLOTS: u16 = 1;

    fn read(reader: &mut FlatReader, table: &Table, slot: u16, _: Option<Self>) -> Result<Self> {
        let Some(at) = reader.reference(table, slot)? else { return Ok(Self::default()) };
        let (first, count) = reader.vector(at, 1)?;
        Ok(reader.share(first..first + count))
    }

    fn visit<'a>(&'a self, _: &Role<'_>, _: Direction, _: &mut Visitor<'_, 'a>) {}
}

/// A table with a type of its own.
pub(crate) trait Tabular: Sized {
    /// Reads the table's fields.
    fn read(reader: &mut FlatReader, table: &Table) -> Result<Self>;
    /// Visits the tensor references within.
    fn visit_fields<'a>(&'a self, role: Option<&Role<'_>>, direction: Direction, visitor: &mut Visitor<'_, 'a>);
}

/// The table at `at`, one nesting level deeper.
pub(crate) fn table_at<T: Tabular>(reader: &mut FlatReader, at: usize) -> Result<T> {
    reader.deeper(at, |reader| {
        let table = reader.table(at)?;
        T::read(reader, &table)
    })
}

/// A union of tables.
pub(crate) trait Union: Sized {
    /// The member of that ordinal, which is not 0, from its table at `at`; `None` if there is no
    /// such member.
    fn member(reader: &mut FlatReader, ordinal: u8, at: usize) -> Result<Option<Self>>;
    /// Its name in messages.
    const NAME: &'static str;
    /// Visits the tensor references within.
    fn visit_member<'a>(&'a self, role: &Role<'_>, direction: Direction, visitor: &mut Visitor<'_, 'a>);
}

fn member<T: Union>(reader: &mut FlatReader, ordinal: u8, place: usize, at: usize) -> Result<T> {
    T::member(reader, ordinal, at)?
        .ok_or_else(|| ReadError::format(place, format!("a member of {}", T::NAME), format!("ordinal {ordinal}")))
}

/// A union in a table: `None` if it holds nothing.
pub(crate) fn union_in<T: Union>(reader: &mut FlatReader, table: &Table, slot: u16) -> Result<Option<T>> {
    let place = reader.field(table, slot)?;
    let ordinal = place.map_or(Ok(0), |place| reader.inline::<u8>(place))?;
    let (Some(place), 1..) = (place, ordinal) else {
        return match reader.field(table, slot + 1)? {
            None => Ok(None),
            Some(at) => Err(ReadError::format(at, "no value, as the union has no member", "one")),
        };
    };
    match reader.reference(table, slot + 1)? {
        Some(at) => member(reader, ordinal, place, at).map(Some),
        None => Err(ReadError::format(place, "the value of the union", format!("none, but the ordinal {ordinal}"))),
    }
}

/// A vector of unions in a table: a vector of ordinals and one of values.
pub(crate) fn unions_in<T: Union>(reader: &mut FlatReader, table: &Table, slot: u16) -> Result<Option<Vec<T>>> {
    let (ordinals, values) = match (reader.reference(table, slot)?, reader.reference(table, slot + 1)?) {
        (Some(ordinals), Some(values)) => (ordinals, values),
        (None, None) => return Ok(None),
        (Some(at), None) => return Err(ReadError::format(at, "values beside a vector of ordinals", "none")),
        (None, Some(at)) => return Err(ReadError::format(at, "ordinals beside a vector of values", "none")),
    };
    let (first, count) = reader.vector(ordinals, 1)?;
    let (_, found) = reader.vector(values, 4)?;
    if count != found {
        return Err(ReadError::format(values, format!("{count} values, one per ordinal"), format!("{found}")));
    }
    let mut place = first;
    let read = reader.elements(values, 4, |reader, at| {
        let ordinal = reader.inline::<u8>(place)?;
        place += 1;
        let at = reader.follow(at)?;
        member(reader, ordinal, place - 1, at)
    });
    read.map(Some)
}

/// A table that another refers to.
pub(crate) fn table_in<T: Tabular>(reader: &mut FlatReader, table: &Table, slot: u16) -> Result<Option<T>> {
    let at = reader.reference(table, slot)?;
    at.map(|at| table_at(reader, at)).transpose()
}

/// A vector of tables.
pub(crate) fn tables_in<T: Tabular>(reader: &mut FlatReader, table: &Table, slot: u16) -> Result<Option<Vec<T>>> {
    let Some(at) = reader.reference(table, slot)? else { return Ok(None) };
    reader
        .elements(at, 4, |reader, at| {
            let at = reader.follow(at)?;
            table_at(reader, at)
        })
        .map(Some)
}

/// Names the field in an error of reading it.
pub(crate) fn read_field<T: Field>(
    reader: &mut FlatReader,
    table: &Table,
    slot: u16,
    name: &'static str,
    default: Option<T>,
) -> Result<T> {
    T::read(reader, table, slot, default).map_err(|error| error.within(Step::Name(name)))
}
