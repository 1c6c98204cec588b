//! Bytes of a file, used in place without a copy.
//!
//! A model's constants can be most of its file. [`Bytes`] is a range of the file together with
//! shared ownership of it: cloning one copies no data, and operation types need no lifetime
//! parameter. The file is read into memory once and is not mapped: a mapped file can be truncated
//! by another process while a reference into it exists, which no check can prevent.

use std::fmt;
use std::ops::{Deref, Range};
use std::sync::Arc;

use serde::ser::{Serialize, SerializeStruct, Serializer};

/// A range of a file's bytes that keeps the file in memory.
#[derive(Clone, Default)]
pub struct Bytes {
    file: Arc<Vec<u8>>,
    range: Range<usize>,
}

impl Bytes {
    /// A range of the file, which must lie within it.
    pub(crate) fn new(file: &Arc<Vec<u8>>, range: Range<usize>) -> Self {
        debug_assert!(range.start <= range.end && range.end <= file.len());
        Self { file: Arc::clone(file), range }
    }

    /// Offset of the first byte from the start of the file.
    pub fn offset(&self) -> usize {
        self.range.start
    }
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.file.get(self.range.clone()).unwrap_or_default()
    }
}

impl PartialEq for Bytes {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Bytes {}

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Bytes({} at {:#x})", self.len(), self.offset())
    }
}

/// Serialised as a range of the file, not as its content.
impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut place = serializer.serialize_struct("Bytes", 2)?;
        place.serialize_field("offset", &self.offset())?;
        place.serialize_field("size", &self.len())?;
        place.end()
    }
}
