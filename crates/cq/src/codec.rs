//! Commands to bytes and back, for both command sets.
//!
//! A command is an id and what it carries. The tables of [`tilework_abi::cq`] have one row for each
//! command; `command_set!` makes the enum and both directions from them. What a command carries
//! implements [`Payload`] once: header and data, in both directions, and how it is shown. A payload
//! that is only fields of the header is one `header_payload!`.
//!
//! Limits of single fields are stated with the wire structs and checked here, in both directions.

use crate::error::{DecodeError, DecodeErrorKind, FieldError};
use std::fmt::Formatter;
use tilework_abi::convert::u32_of;
use tilework_abi::cq::dispatch::{WaitFlags, WritePackedFlags, WritePackedLargeFlags};
use tilework_abi::cq::layout::prefetch_core::MAX_RECORD_BYTES;
use tilework_abi::cq::prefetch::RingbufferFlags;
use tilework_abi::cq::wire::{Field, Limit, Wire};
use tilework_abi::cq::{CMD_SIZE, PREFETCH_BARE_STRIDE};
use zerocopy::little_endian::{U16, U32, U64};

pub(crate) type ParseResult<T> = Result<T, DecodeError>;

/// How the commands of a set follow each other.
#[derive(Clone, Copy)]
pub(crate) struct Framing {
    /// What an error calls a command before its id is known.
    pub(crate) what: &'static str,
    /// Every command fills a multiple of this.
    unit: usize,
    /// The longest command.
    max: u64,
}

impl Framing {
    /// Dispatch commands end anywhere; the next one begins on the next page of the dispatch ring.
    pub(crate) const DISPATCH: Self = Self { what: "dispatch command", unit: 1, max: u32::MAX as u64 };
    /// Prefetch commands are aligned for PCIe and lie in one record.
    pub(crate) const PREFETCH: Self =
        Self { what: "prefetch command", unit: PREFETCH_BARE_STRIDE, max: MAX_RECORD_BYTES as u64 };

    /// Checks a stride of a command of which `read` bytes have been read or written.
    fn check_stride(self, stride: u64, read: usize) -> Result<(), FieldError> {
        FieldError::check("stride", stride, read as u64, self.max)?;
        if !stride.is_multiple_of(self.unit as u64) {
            return Err(FieldError::new("stride", stride, format!("a multiple of {}", self.unit)));
        }
        Ok(())
    }
}

/// What a command carries beside its id.
pub(crate) trait Payload: Sized {
    /// Appends header, sub-commands and data.
    fn emit(&self, out: &mut CommandWriter<'_>) -> Result<(), FieldError>;
    /// Reads what [`Payload::emit`] wrote.
    fn parse(r: &mut CommandReader<'_>) -> ParseResult<Self>;
    /// Shows it behind the command's name.
    fn show(&self, f: &mut Formatter<'_>) -> std::fmt::Result;
}

/// `value` as the type of header field `field`, when the field may hold it.
pub(crate) fn narrow<T: TryFrom<u64>>(field: Field, value: usize) -> Result<T, FieldError> {
    let value = value as u64;
    field.check(value)?;
    T::try_from(value).map_err(|_| FieldError::new(field.name, value, field.limit.to_string()))
}

/// Where a command is written to.
pub(crate) struct CommandWriter<'a> {
    out: &'a mut Vec<u8>,
    start: usize,
    framing: Framing,
    /// The command's id, for its header.
    pub(crate) id: u8,
}

impl<'a> CommandWriter<'a> {
    pub(crate) fn new(out: &'a mut Vec<u8>, framing: Framing, id: u8) -> Self {
        let start = out.len();
        Self { out, start, framing, id }
    }

    /// Bytes of the command so far.
    pub(crate) fn pos(&self) -> usize {
        self.out.len() - self.start
    }

    /// Appends a header or sub-command whose limited fields are in their limits.
    pub(crate) fn wire(&mut self, wire: &impl Wire) -> Result<(), FieldError> {
        wire.check()?;
        self.out.extend_from_slice(wire.as_bytes());
        Ok(())
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    pub(crate) fn words(&mut self, words: &[u32]) {
        for word in words {
            self.bytes(&word.to_le_bytes());
        }
    }

    /// Appends zeros up to a multiple of `align` bytes.
    pub(crate) fn pad(&mut self, align: usize) {
        self.pad_from(0, align);
    }

    /// As [`CommandWriter::pad`], counted from byte `base` of the command.
    pub(crate) fn pad_from(&mut self, base: usize, align: usize) {
        let len = (self.pos() - base).next_multiple_of(align.max(1));
        self.out.resize(self.start + base + len, 0);
    }

    /// The stride of a command of `size` bytes: rounded up to what the set demands.
    pub(crate) fn stride(&self, size: usize) -> Result<u32, FieldError> {
        let stride = size.next_multiple_of(self.framing.unit);
        FieldError::check("stride", stride, CMD_SIZE as u64, self.framing.max)?;
        Ok(u32_of(stride))
    }

    /// A stride that the caller gives, of at least `size` bytes.
    pub(crate) fn check_stride(&self, stride: usize) -> Result<u32, FieldError> {
        self.framing.check_stride(stride as u64, CMD_SIZE.max(self.framing.unit))?;
        Ok(u32_of(stride))
    }

    /// Ends the command.
    pub(crate) fn finish(&mut self) {
        self.pad(self.framing.unit);
    }
}

/// A cursor over the untrusted bytes of a command: every read is bounds-checked and knows its
/// offset.
pub(crate) struct CommandReader<'a> {
    bytes: &'a [u8],
    pos: usize,
    framing: Framing,
    context: &'static str,
}

impl<'a> CommandReader<'a> {
    pub(crate) fn new(bytes: &'a [u8], framing: Framing) -> Self {
        Self { bytes, pos: 0, framing, context: framing.what }
    }

    /// Names the command that errors are reported in.
    pub(crate) fn set_context(&mut self, context: &'static str) {
        self.context = context;
    }

    pub(crate) fn pos(&self) -> usize {
        self.pos
    }

    /// The next byte without taking it.
    pub(crate) fn peek(&self) -> ParseResult<u8> {
        self.bytes.get(self.pos).copied().ok_or_else(|| self.truncated("command id", 1))
    }

    /// Takes `len` bytes.
    pub(crate) fn take(&mut self, len: u64, field: &'static str) -> ParseResult<&'a [u8]> {
        let end = usize::try_from(len).ok().and_then(|len| self.pos.checked_add(len));
        match end.and_then(|end| self.bytes.get(self.pos..end).map(|found| (end, found))) {
            Some((end, found)) => {
                self.pos = end;
                Ok(found)
            }
            None => Err(self.truncated(field, len)),
        }
    }

    /// Takes the header and checks its limited fields.
    pub(crate) fn header<T: Wire>(&mut self) -> ParseResult<T> {
        self.wire("header")
    }

    /// Takes a sub-command and checks its limited fields.
    pub(crate) fn sub_command<T: Wire>(&mut self) -> ParseResult<T> {
        self.wire("sub-command")
    }

    fn wire<T: Wire>(&mut self, what: &'static str) -> ParseResult<T> {
        let (at, size) = (self.pos, size_of::<T>() as u64);
        let bytes = self.take(size, what)?;
        let wire = T::read_from_bytes(bytes).map_err(|_| self.truncated(what, size))?;
        wire.check().map_err(|found| self.bad(at + found.field.offset, found.into()))?;
        Ok(wire)
    }

    /// Takes `count` little-endian words.
    pub(crate) fn words(&mut self, count: u64, field: &'static str) -> ParseResult<Vec<u32>> {
        let (words, _) = self.take(count.saturating_mul(4), field)?.as_chunks();
        Ok(words.iter().map(|word| u32::from_le_bytes(*word)).collect())
    }

    /// Skips to a multiple of `align`, or to the end when that comes first: the firmware never
    /// looks at padding, so padding that is cut off or not zero is not an error.
    pub(crate) fn pad(&mut self, align: usize) {
        self.pad_from(0, align);
    }

    /// As [`CommandReader::pad`], counted from `base`, which has been read already.
    pub(crate) fn pad_from(&mut self, base: usize, align: usize) {
        let len = (self.pos - base).next_multiple_of(align.max(1));
        self.pos = (base + len).min(self.bytes.len());
    }

    /// Checks that the stride at offset `at` covers what was read and skips to its end.
    pub(crate) fn skip_stride(&mut self, at: usize, stride: u32) -> ParseResult<()> {
        self.framing.check_stride(stride.into(), self.pos).map_err(|error| self.bad(at, error))?;
        self.pad(stride as usize);
        Ok(())
    }

    /// Checks a stride at offset `at` whose bytes are still to be read, and returns it.
    pub(crate) fn check_stride(&self, at: usize, stride: u32) -> ParseResult<u64> {
        let least = CMD_SIZE.max(self.framing.unit);
        self.framing.check_stride(stride.into(), least).map_err(|error| self.bad(at, error))?;
        Ok(stride.into())
    }

    /// Skips the padding behind the command. A capture may end with the last command instead.
    pub(crate) fn finish(&mut self) {
        self.pad(self.framing.unit);
    }

    pub(crate) fn range(
        &self,
        at: usize,
        field: &'static str,
        found: impl TryInto<u64>,
        min: u64,
        max: u64,
    ) -> ParseResult<()> {
        FieldError::check(field, found, min, max).map_err(|error| self.bad(at, error))
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

impl FieldError {
    /// Checks that `min <= found <= max`.
    pub(crate) fn check(field: &'static str, found: impl TryInto<u64>, min: u64, max: u64) -> Result<(), FieldError> {
        let found = found.try_into().unwrap_or(u64::MAX);
        let limit = Limit::Range { min, max };
        if limit.allows(found) { Ok(()) } else { Err(Self::new(field, found, limit.to_string())) }
    }
}

/// A type that a header field holds.
pub(crate) trait FieldValue<W>: Copy {
    /// As the header holds it.
    fn store(self) -> W;
    /// From a header whose limits have been checked.
    fn load(wire: W) -> Self;
}

macro_rules! field_values {
    ($($ty:ty as $wire:ty: $value:ident => $store:expr, $stored:ident => $load:expr;)*) => {$(
        impl FieldValue<$wire> for $ty {
            fn store(self) -> $wire {
                let $value = self;
                $store
            }
            fn load($stored: $wire) -> Self {
                $load
            }
        }
    )*};
}

field_values! {
    u8 as u8: value => value, wire => wire;
    bool as u8: value => value.into(), wire => wire != 0;
    u16 as U16: value => value.into(), wire => wire.get();
    u32 as U32: value => value.into(), wire => wire.get();
    u64 as U64: value => value.into(), wire => wire.get();
    WaitFlags as u8: flags => flags.bits(), wire => Self::from_bits_retain(wire);
    WritePackedFlags as u8: flags => flags.bits(), wire => Self::from_bits_retain(wire);
    WritePackedLargeFlags as u8: flags => flags.bits(), wire => Self::from_bits_retain(wire);
    RingbufferFlags as u8: flags => flags.bits(), wire => Self::from_bits_retain(wire);
}

/// Defines a payload that is only fields of a header: for each its name, type, and field of the
/// wire struct; behind them how it is shown.
macro_rules! header_payload {
    (
        $(#[$doc:meta])*
        pub struct $name:ident: $header:ty {
            $($(#[$field_doc:meta])* pub $field:ident: $ty:ty = $wire:ident,)*
        }
        show($self:ident, $f:ident) $show:block
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name {
            $($(#[$field_doc])* pub $field: $ty,)*
        }

        impl $crate::codec::Payload for $name {
            #[allow(clippy::field_reassign_with_default)]
            fn emit(
                &self,
                out: &mut $crate::codec::CommandWriter<'_>,
            ) -> Result<(), $crate::error::FieldError> {
                let mut header = <$header>::default();
                header.cmd_id = out.id;
                $(header.$wire = $crate::codec::FieldValue::store(self.$field);)*
                out.wire(&header)
            }

            fn parse(
                r: &mut $crate::codec::CommandReader<'_>,
            ) -> $crate::codec::ParseResult<Self> {
                let header: $header = r.header()?;
                Ok(Self { $($field: $crate::codec::FieldValue::load(header.$wire),)* })
            }

            fn show(&$self, $f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result $show
        }
    };
}
pub(crate) use header_payload;

/// Defines a command set from the rows of its table: the enum, `id`, `emit`, `to_bytes`, `parse`
/// and `Display`.
macro_rules! command_set {
    (
        $(#[$doc:meta])*
        pub enum $set:ident: $ids:ident, framing $framing:expr;
        $(
            $(#[$row_doc:meta])*
            $variant:ident = $id:literal, $name:literal, $header:ident $(($carries:ty))?,
            by [$($kernel:ident),*];
        )*
    ) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum $set {
            $($(#[$row_doc])* $variant $(($carries))?,)*
        }

        impl $set {
            /// The command's id.
            pub fn id(&self) -> $ids {
                match self {
                    $(Self::$variant { .. } => $ids::$variant,)*
                }
            }

            /// Appends the command's bytes: header, sub-commands, data and padding. On an error
            /// `out` is as before.
            ///
            /// # Errors
            /// A field that the header cannot hold or the firmware could not execute.
            pub fn emit(&self, out: &mut Vec<u8>) -> Result<(), $crate::error::EncodeError> {
                let start = out.len();
                let mut writer = $crate::codec::CommandWriter::new(out, $framing, self.id() as u8);
                let written = match self {
                    $(Self::$variant $((command_set!(@bind payload $carries)))? => {
                        command_set!(@emit writer $(payload $carries)?)
                    })*
                };
                match written {
                    Ok(()) => {
                        writer.finish();
                        Ok(())
                    }
                    Err(error) => {
                        out.truncate(start);
                        Err(error.in_command(self.id().name()))
                    }
                }
            }

            /// The command's bytes.
            ///
            /// # Errors
            /// As `emit`.
            pub fn to_bytes(&self) -> Result<Vec<u8>, $crate::error::EncodeError> {
                let mut out = Vec::new();
                self.emit(&mut out)?;
                Ok(out)
            }

            /// Reads the command at the start of `bytes` and says how many bytes it fills, padding
            /// included. Nothing is read beyond `bytes`, and nothing is allocated beyond their
            /// number.
            ///
            /// # Errors
            /// What is wrong and where, from the start of `bytes`.
            pub fn parse(bytes: &[u8]) -> Result<(Self, usize), $crate::error::DecodeError> {
                let mut r = $crate::codec::CommandReader::new(bytes, $framing);
                let found = r.peek()?;
                let last = $ids::LAST_ID;
                let unknown = $crate::error::DecodeErrorKind::UnknownId { found, last };
                let Ok(id) = $ids::try_from(found) else {
                    return Err(r.error(0, unknown));
                };
                r.set_context(id.name());
                let command = match id {
                    // `try_from` does not give this id out.
                    $ids::Illegal => return Err(r.error(0, unknown)),
                    $($ids::$variant => command_set!(@parse r $variant $($carries)?),)*
                };
                r.finish();
                Ok((command, r.pos()))
            }
        }

        /// The name, then what the command carries.
        impl std::fmt::Display for $set {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.id().name())?;
                match self {
                    $(Self::$variant $((command_set!(@bind payload $carries)))? => {
                        command_set!(@show f $(payload $carries)?)
                    })*
                }
            }
        }
    };
    (@bind $payload:ident $carries:ty) => { $payload };
    (@emit $writer:ident) => {{
        let header = BareCmd { cmd_id: $writer.id, ..Default::default() };
        $writer.wire(&header)
    }};
    (@emit $writer:ident $payload:ident $carries:ty) => {
        $crate::codec::Payload::emit($payload, &mut $writer)
    };
    (@parse $r:ident $variant:ident) => {{
        $r.header::<BareCmd>()?;
        Self::$variant
    }};
    (@parse $r:ident $variant:ident $carries:ty) => {
        Self::$variant($crate::codec::Payload::parse(&mut $r)?)
    };
    (@show $f:ident) => { Ok(()) };
    (@show $f:ident $payload:ident $carries:ty) => {
        $crate::codec::Payload::show($payload, $f)
    };
}
pub(crate) use command_set;
