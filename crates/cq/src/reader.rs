//! A cursor over bytes that nobody has vouched for: every read is bounds-checked and knows its offset.

use crate::error::{DecodeError, DecodeErrorKind, FieldError, in_range};
use zerocopy::{FromBytes, Unaligned};

pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    pos: usize,
    context: &'static str,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8], context: &'static str) -> Self {
        Self { bytes, pos: 0, context }
    }

    /// Names the command that errors are reported in.
    pub(crate) fn set_context(&mut self, context: &'static str) {
        self.context = context;
    }

    pub(crate) fn pos(&self) -> usize {
        self.pos
    }

    /// The next byte without taking it.
    pub(crate) fn peek(&self) -> Result<u8, DecodeError> {
        self.bytes.get(self.pos).copied().ok_or_else(|| self.truncated("command id", 1))
    }

    /// Takes `len` bytes.
    pub(crate) fn take(&mut self, len: u64, field: &'static str) -> Result<&'a [u8], DecodeError> {
        let end = usize::try_from(len).ok().and_then(|len| self.pos.checked_add(len));
        match end.and_then(|end| self.bytes.get(self.pos..end).map(|found| (end, found))) {
            Some((end, found)) => {
                self.pos = end;
                Ok(found)
            }
            None => Err(self.truncated(field, len)),
        }
    }

    /// Takes a wire struct.
    pub(crate) fn read<T: FromBytes + Unaligned>(&mut self, field: &'static str) -> Result<T, DecodeError> {
        let bytes = self.take(size_of::<T>() as u64, field)?;
        T::read_from_bytes(bytes).map_err(|_| self.truncated(field, size_of::<T>() as u64))
    }

    /// Skips to a multiple of `align`, or to the end when that comes first: the firmware never looks at
    /// padding, so padding that is cut off or not zero is not an error.
    pub(crate) fn pad(&mut self, align: usize) {
        self.pad_from(0, align);
    }

    /// As [`Reader::pad`], counted from `base`, which has been read already.
    pub(crate) fn pad_from(&mut self, base: usize, align: usize) {
        let len = (self.pos - base).next_multiple_of(align.max(1));
        self.pos = (base + len).min(self.bytes.len());
    }

    pub(crate) fn range(
        &self,
        at: usize,
        field: &'static str,
        found: impl TryInto<u64>,
        min: u64,
        max: u64,
    ) -> Result<(), DecodeError> {
        in_range(field, found, min, max).map_err(|error| self.bad(at, error))
    }

    /// A flag byte that must be 0 or 1.
    pub(crate) fn flag(&self, at: usize, field: &'static str, found: u8) -> Result<bool, DecodeError> {
        self.range(at, field, found, 0, 1)?;
        Ok(found != 0)
    }

    /// An error about the field at offset `at` of the command.
    pub(crate) fn bad(&self, at: usize, error: FieldError) -> DecodeError {
        self.error(at, DecodeErrorKind::Field(error))
    }

    pub(crate) fn error(&self, at: usize, kind: DecodeErrorKind) -> DecodeError {
        DecodeError { offset: at, context: self.context, kind }
    }

    fn truncated(&self, field: &'static str, needed: u64) -> DecodeError {
        let found = (self.bytes.len() - self.pos) as u64;
        self.error(self.pos, DecodeErrorKind::Truncated { field, needed, found })
    }
}

/// Appends zeros up to a multiple of `align` bytes counted from `start`.
pub(crate) fn pad_to(out: &mut Vec<u8>, start: usize, align: usize) {
    let len = out.len() - start;
    out.resize(start + len.next_multiple_of(align.max(1)), 0);
}
