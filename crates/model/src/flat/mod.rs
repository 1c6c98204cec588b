//! A checked reader of size-prefixed flatbuffers.
//!
//! The format, in short (source: the public FlatBuffers internals
//! page, <https://flatbuffers.dev/internals/>). All numbers are little-endian. The file starts with
//! a u32 that counts the bytes after it; then come the u32 offset of the root table, relative to
//! its own place, and a four-character identifier. An offset is always a u32 relative to its own
//! position and points forward. A *table* starts with an i32: its own position minus that number is
//! the position of its *vtable*, a list of u16: the vtable's size in bytes, the table's size, and
//! for each field, in the order of the schema, the offset of its value from the table's start, 0
//! for a field that is absent. Scalars and structs are stored in the table; strings, vectors and
//! other tables are reached by an offset that is stored there. A *vector* is a u32 count and its
//! elements, a *string* a vector of bytes with a zero after it. A *union* takes two fields: a u8
//! that says which member it is, 0 for none, and the offset of that member's table. A vector of
//! unions likewise is two vectors. An absent scalar has the default that the schema states.
//!
//! What is checked: everything that the C++ verifier checks (bounds, alignment of scalars, offsets
//! and vtables, terminated strings, nesting), and beyond it that strings are UTF-8, that
//! enumerations and unions hold a known ordinal, that a union has its value, and that a table has
//! no field that the schema does not know. Like the C++ verifier, and unlike those of other
//! languages, it does not require that the elements of a vector are aligned: the C++ builder does
//! not align an empty vector, so genuine files have empty `[int64]` on odd words.
//!
//! As offsets point forward, nothing can contain itself; but a table may be referred to many times,
//! from tables that are referred to many times. Three budgets bound the cost of a small file:
//! nesting depth, number of tables read, and bytes of decoded values; the latter two are
//! proportional to the file ([`reader::Budget`]).

pub(crate) mod declare;
pub(crate) mod field;
pub(crate) mod reader;

#[cfg(test)]
#[path = "../../tests/common/builder.rs"]
#[allow(dead_code, unreachable_pub, reason = "shared with the tests of whole files")]
mod builder;
#[cfg(test)]
#[expect(unreachable_pub, reason = "the macros of the schema declare public types")]
mod tests;

pub(crate) use field::{BehindUnknown, Element, Field};
pub(crate) use reader::{FlatReader, Table};
