//! Bounds, vtables and budgets.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use super::field::Inline;
use crate::bytes::Bytes;
use crate::error::{ReadError, Reason, Result, Step};
use crate::schema::Schema;
use crate::ttnn::TensorDesc;

/// Bytes before the root table's offset counts: the size prefix.
const PREFIX: usize = 4;
/// An offset is an i32 for the C++ library, so that no genuine file is larger.
pub(crate) const MAX_FILE: usize = i32::MAX as usize;
/// Nesting depth of tables; the C++ verifier's default. No table of the schema contains tables of
/// its own type, and they nest 11 deep.
const MAX_DEPTH: u32 = 64;
/// Bytes of the file for each table that is read. A table that is not shared takes at least 4; the
/// compiler shares only tensor references and what is below them. Genuine files have one table read
/// for each 100 bytes, and would have one for each 7 without the operations' texts.
const BYTES_PER_TABLE: u64 = 4;
/// Decoded bytes on the heap (elements, strings) for each byte of the file. Genuine files have up
/// to 3, and would have up to 20 without the operations' texts.
const DECODED_PER_BYTE: u64 = 32;
/// The minimum of either budget, so that small files need no exceptions.
const SMALL_FILE: u64 = 4096;

/// The remaining budgets of a file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    tables: u64,
    decoded: u64,
    depth: u32,
}

impl Budget {
    fn of(size: usize) -> Self {
        let size = size as u64;
        Self { tables: Self::tables(size), decoded: Self::decoded(size), depth: 0 }
    }

    fn tables(size: u64) -> u64 {
        size / BYTES_PER_TABLE + SMALL_FILE
    }

    fn decoded(size: u64) -> u64 {
        size * DECODED_PER_BYTE + SMALL_FILE
    }
}

/// Reads one file.
pub(crate) struct FlatReader<'a> {
    data: &'a [u8],
    file: &'a Arc<Vec<u8>>,
    budget: Budget,
    /// The schema that the file follows.
    pub(crate) schema: Schema,
    /// Tensor descriptions by position: all references to a tensor share one.
    pub(crate) descriptions: HashMap<usize, Arc<TensorDesc>>,
}

/// A table whose vtable is known to lie in the file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Table {
    position: usize,
    vtable: usize,
    /// Fields that the vtable has entries for.
    fields: u16,
}

impl Table {
    /// Offset of the table from the start of the file.
    pub(crate) fn position(&self) -> usize {
        self.position
    }
}

impl<'a> FlatReader<'a> {
    /// Checks size and identifier, and returns the root table.
    pub(crate) fn open(file: &'a Arc<Vec<u8>>, identifiers: &[&'static str]) -> Result<(Self, Table, &'static str)> {
        let size = file.len();
        let budget = Budget::of(size);
        let reader = Self { data: file, file, budget, schema: Schema::default(), descriptions: HashMap::new() };
        if size > MAX_FILE {
            return Err(ReadError::format(0, format!("a file of at most {MAX_FILE} bytes"), format!("{size} bytes")));
        }
        let stated = reader.scalar::<u32>(0)? as usize;
        if stated != size - PREFIX {
            let expected = format!("a size prefix of {}, the number of bytes that follow it", size - PREFIX);
            return Err(ReadError::format(0, expected, format!("{stated}")));
        }
        let found = reader.bytes(PREFIX + 4, 4, "an identifier")?;
        let Some(identifier) = identifiers.iter().find(|known| known.as_bytes() == found) else {
            let expected = format!("one of the identifiers {}", identifiers.join(", "));
            return Err(ReadError::format(PREFIX + 4, expected, format!("{:?}", String::from_utf8_lossy(found))));
        };
        let mut reader = reader;
        let root = reader.follow(PREFIX)?;
        let table = reader.table(root)?;
        Ok((reader, table, identifier))
    }

    /// `size` bytes at `at`.
    pub(crate) fn bytes(&self, at: usize, size: usize, what: &'static str) -> Result<&'a [u8]> {
        at.checked_add(size).and_then(|end| self.data.get(at..end)).ok_or_else(|| self.beyond(at, size, what))
    }

    #[cold]
    fn beyond(&self, at: usize, size: usize, what: &'static str) -> ReadError {
        ReadError::format(at, format!("{what} of {size} bytes"), format!("the file's end at {:#x}", self.data.len()))
    }

    /// The value at `at`, which must have its type's alignment.
    pub(crate) fn inline<T: Inline>(&self, at: usize) -> Result<T> {
        if !at.is_multiple_of(T::ALIGN) {
            let expected = format!("{} at a multiple of {} bytes", T::NAME, T::ALIGN);
            return Err(ReadError::format(at, expected, format!("offset {at:#x}")));
        }
        self.unaligned(at)
    }

    /// The value at `at`, whatever its alignment.
    pub(crate) fn unaligned<T: Inline>(&self, at: usize) -> Result<T> {
        T::parse(self.bytes(at, T::SIZE, T::NAME)?).map_err(|(inside, reason)| ReadError::at(at + inside, reason))
    }

    fn scalar<T: Inline>(&self, at: usize) -> Result<T> {
        self.inline(at)
    }

    /// Where the offset at `at` points.
    pub(crate) fn follow(&self, at: usize) -> Result<usize> {
        let offset = self.scalar::<u32>(at)? as usize;
        if offset == 0 || offset > MAX_FILE {
            return Err(ReadError::format(at, "an offset that points forward", format!("{offset:#x}")));
        }
        let target = at + offset;
        if target >= self.data.len() {
            let expected = format!("an offset into the file of {:#x} bytes", self.data.len());
            return Err(ReadError::format(at, expected, format!("{target:#x}")));
        }
        Ok(target)
    }

    /// The table at `position`, charged to the budget.
    pub(crate) fn table(&mut self, position: usize) -> Result<Table> {
        let size = self.data.len();
        self.budget.tables = self.budget.tables.checked_sub(1).ok_or_else(|| {
            let limit = Budget::tables(size as u64);
            ReadError::at(position, Reason::Budget { what: "tables", limit, size })
        })?;
        let back = i64::from(self.scalar::<i32>(position)?);
        // A file has at most `MAX_FILE` bytes, so that neither step saturates.
        let place = i64::try_from(position).unwrap_or(i64::MAX).saturating_sub(back);
        let vtable = usize::try_from(place)
            .map_err(|_| ReadError::format(position, "a vtable in the file", format!("one at {place}")))?;
        let bytes = self.scalar::<u16>(vtable)?;
        if bytes < 4 || !bytes.is_multiple_of(2) {
            return Err(ReadError::format(
                vtable,
                "a vtable of an even number of bytes, at least 4",
                format!("{bytes}"),
            ));
        }
        self.bytes(vtable, usize::from(bytes), "a vtable")?;
        Ok(Table { position, vtable, fields: bytes / 2 - 2 })
    }

    /// The position of the field, or `None` if it is absent.
    pub(crate) fn field(&self, table: &Table, slot: u16) -> Result<Option<usize>> {
        if slot >= table.fields {
            return Ok(None);
        }
        let offset = self.scalar::<u16>(table.vtable + 4 + 2 * usize::from(slot))?;
        Ok((offset != 0).then(|| table.position + usize::from(offset)))
    }

    /// Checks that the table has nothing beyond the fields of its schema.
    pub(crate) fn no_more_fields(&self, table: &Table, known: u16) -> Result<()> {
        for slot in known..table.fields {
            if self.field(table, slot)?.is_some() {
                let expected = format!("a table with the {known} fields of the schema");
                let entry = table.vtable + 4 + 2 * usize::from(slot);
                return Err(ReadError::format(entry, expected, format!("a value for field {slot}")));
            }
        }
        Ok(())
    }

    /// Runs `read` one nesting level deeper.
    pub(crate) fn deeper<T>(&mut self, at: usize, read: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.budget.depth == MAX_DEPTH {
            let (limit, size) = (u64::from(MAX_DEPTH), self.data.len());
            return Err(ReadError::at(at, Reason::Budget { what: "nested tables", limit, size }));
        }
        self.budget.depth += 1;
        let result = read(self);
        self.budget.depth -= 1;
        result
    }

    /// Charges values that are about to be decoded.
    pub(crate) fn charge(&mut self, at: usize, count: usize, size_of_one: usize) -> Result<()> {
        let size = self.data.len();
        let cost = (count as u64).saturating_mul(size_of_one as u64);
        self.budget.decoded = self.budget.decoded.checked_sub(cost).ok_or_else(|| {
            let limit = Budget::decoded(size as u64);
            ReadError::at(at, Reason::Budget { what: "bytes of decoded values", limit, size })
        })?;
        Ok(())
    }

    /// Position of the first element and number of elements of the vector at `at`, all of which lie
    /// in the file.
    pub(crate) fn vector(&self, at: usize, element: usize) -> Result<(usize, usize)> {
        let count = self.scalar::<u32>(at)? as usize;
        let first = at + 4;
        match count.checked_mul(element) {
            Some(bytes) => self.bytes(first, bytes, "a vector")?,
            None => return Err(self.beyond(first, usize::MAX, "a vector")),
        };
        Ok((first, count))
    }

    /// The string at `at`.
    pub(crate) fn string(&mut self, at: usize) -> Result<String> {
        let (first, count) = self.vector(at, 1)?;
        let end = self.bytes(first + count, 1, "a string's terminating zero")?;
        if end != [0] {
            return Err(ReadError::format(first + count, "a zero after the string", format!("{:#04x}", end[0])));
        }
        self.charge(at, count, 1)?;
        let bytes = self.bytes(first, count, "a string")?;
        std::str::from_utf8(bytes).map(str::to_owned).map_err(|error| {
            let wrong = first + error.valid_up_to();
            ReadError::format(wrong, "UTF-8", format!("{:#04x}", self.data.get(wrong).copied().unwrap_or_default()))
        })
    }

    /// A range of the file that is known to lie in it.
    pub(crate) fn share(&self, range: Range<usize>) -> Bytes {
        Bytes::new(self.file, range)
    }

    /// Elements of the vector at `at`, each of `SIZE` bytes, read by their position.
    pub(crate) fn elements<T>(
        &mut self,
        at: usize,
        size: usize,
        mut read: impl FnMut(&mut Self, usize) -> Result<T>,
    ) -> Result<Vec<T>> {
        let (first, count) = self.vector(at, size)?;
        self.charge(at, count, size_of::<T>())?;
        let mut elements = Vec::with_capacity(count);
        for index in 0..count {
            elements.push(read(self, first + index * size).map_err(|error| error.within(Step::Index(index)))?);
        }
        Ok(elements)
    }
}

#[cfg(test)]
impl FlatReader<'_> {
    /// Tables read and bytes decoded so far.
    pub(crate) fn spent(&self) -> (u64, u64) {
        let size = self.data.len() as u64;
        (Budget::tables(size) - self.budget.tables, Budget::decoded(size) - self.budget.decoded)
    }
}
