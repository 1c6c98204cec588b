//! Decoding of a raw issue region or capture, command by command.
//!
//! Input is nothing but records back to back, as the prefetcher would read them: the bytes of an
//! issue region from its start, or a capture, which is every record in the order it was issued.
//! There is no file header; both are the same format, and zeros to the end of the input end it. (An
//! issue region that has wrapped holds newer records first and then the rest of older ones;
//! decoding stops where they meet.)
//!
//! The bytes are untrusted (tt-metal#16167: a dump of a corrupted queue looped for ever and wrote
//! 69 GB). Every step consumes at least 64 bytes, nothing is allocated beyond the size of the
//! input, and the first bad byte ends the iteration with its offset and what was expected there.

use crate::dispatch::DispatchCommand;
use crate::error::{DecodeError, DecodeErrorKind};
use crate::prefetch::{Inline, PrefetchCommand};
use tilework_abi::cq::CMD_SIZE;
use tilework_abi::cq::dispatch::DispatchCmdId;
use tilework_abi::cq::layout::dispatch_core::{DISPATCH_CB, DISPATCH_S_CB};
use tilework_abi::cq::prefetch::DispatcherSelect;

/// One prefetch command and what it relays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodedRecord {
    /// Offset of the prefetch command in the input.
    pub offset: usize,
    /// Bytes it fills, padding included.
    pub size: usize,
    /// The prefetch command.
    pub command: PrefetchCommand,
    /// The dispatch commands in its payload.
    pub inner: Vec<DecodedInner>,
}

/// A dispatch command in the payload of a relay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodedInner {
    /// Offset of the command in the input.
    pub offset: usize,
    /// Bytes of it that the payload holds.
    pub size: usize,
    /// The command.
    pub command: InnerCommand,
}

/// A dispatch command that is complete, or whose data another relay supplies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InnerCommand {
    /// The whole command.
    Whole(DispatchCommand),
    /// The start of a command in a `RELAY_INLINE_NOFLUSH`; the relay that follows brings the rest.
    Head {
        /// Which command.
        id: DispatchCmdId,
        /// Bytes of the part that is cut off.
        missing: u64,
    },
}

/// Iterates over the records of `bytes`. After an error, or at the end, it yields nothing more.
pub fn decode_stream(bytes: &[u8]) -> Decoder<'_> {
    Decoder { bytes, offset: 0, done: false }
}

/// See [`decode_stream`].
#[derive(Clone, Debug)]
pub struct Decoder<'a> {
    bytes: &'a [u8],
    offset: usize,
    done: bool,
}

impl Decoder<'_> {
    /// How far the input has been read: after the last item, the end of the last good record.
    pub fn offset(&self) -> usize {
        self.offset
    }
}

impl Iterator for Decoder<'_> {
    type Item = Result<DecodedRecord, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.bytes.get(self.offset..).filter(|rest| !self.done && !rest.is_empty())?;
        // Only a zero here can be the end, so that the scan for it is not repeated for each record.
        if rest[0] == 0 && rest.iter().all(|&byte| byte == 0) {
            self.done = true;
            return None;
        }
        let record = decode_record(rest, self.offset);
        match &record {
            Ok(record) => self.offset += record.size,
            Err(_) => self.done = true,
        }
        Some(record)
    }
}

fn decode_record(bytes: &[u8], base: usize) -> Result<DecodedRecord, DecodeError> {
    let (command, size) = PrefetchCommand::parse(bytes).map_err(|error| error.shifted(base))?;
    let payload_at = base + CMD_SIZE;
    let inner = match &command {
        PrefetchCommand::RelayInline(inline) | PrefetchCommand::ExecBufEnd(inline) => decode_payload(inline, false),
        PrefetchCommand::RelayInlineNoflush(inline) => decode_payload(inline, true),
        _ => Ok(Vec::new()),
    };
    let mut inner = inner.map_err(|error| error.shifted(payload_at))?;
    for command in &mut inner {
        command.offset += payload_at;
    }
    Ok(DecodedRecord { offset: base, size, command, inner })
}

/// Reads a payload as the dispatcher does: a command at the start of each page, the rest of the
/// page ignored. `open` payloads may end inside a command.
fn decode_payload(inline: &Inline, open: bool) -> Result<Vec<DecodedInner>, DecodeError> {
    let page = match inline.dispatcher {
        DispatcherSelect::Master => DISPATCH_CB.page_size(),
        DispatcherSelect::Subordinate => DISPATCH_S_CB.page_size(),
    } as usize;
    let payload = inline.payload.as_slice();
    let mut inner = Vec::new();
    let mut at = 0;
    while let Some(rest) = payload.get(at..).filter(|rest| !rest.is_empty()) {
        let (command, size) = match DispatchCommand::parse(rest) {
            Ok((command, size)) => (InnerCommand::Whole(command), size),
            Err(error) => match (open, head(rest, &error)) {
                (true, Some(head)) => (head, rest.len()),
                _ => return Err(error.shifted(at)),
            },
        };
        let next = (at + size).next_multiple_of(page).min(payload.len());
        // The dispatcher skips what is left of the page; a correct host leaves only zeros there,
        // and anything else is the surest sign of a wrong count or length.
        let padding = payload.get(at + size..next).unwrap_or_default();
        if let Some(i) = padding.iter().position(|&byte| byte != 0) {
            return Err(DecodeError {
                offset: at + size + i,
                context: command.name(),
                kind: DecodeErrorKind::Trailing { found: padding[i] },
            });
        }
        inner.push(DecodedInner { offset: at, size, command });
        at = next;
    }
    Ok(inner)
}

/// A command whose header is complete and whose data is not.
fn head(bytes: &[u8], error: &DecodeError) -> Option<InnerCommand> {
    let id = DispatchCmdId::try_from(*bytes.first()?).ok()?;
    match error.kind {
        DecodeErrorKind::Truncated { needed, found, .. } if error.offset >= id.header_size() => {
            Some(InnerCommand::Head { id, missing: needed.saturating_sub(found) })
        }
        _ => None,
    }
}

impl InnerCommand {
    /// The command's name.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Whole(command) => command.id().name(),
            Self::Head { id, .. } => id.name(),
        }
    }
}
