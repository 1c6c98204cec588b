//! Records: one for each entry of the prefetch queue.
//!
//! A record is one prefetch command with its payload, or several that follow one another, each a
//! multiple of 64 bytes; its queue entry holds its size in units of 16 bytes (seed 001 section
//! 2.2).

use crate::dispatch::DispatchCommand;
use crate::error::{EncodeError, FieldError};
use crate::prefetch::PrefetchCommand;
use tilework_abi::PCIE_ALIGN;
use tilework_abi::convert::{u16_of, u32_of};
use tilework_abi::cq::layout::prefetch_core::{MAX_RECORD_BYTES, PREFETCH_Q_LOG_UNIT, PREFETCH_Q_STALL_BIT};

// Every record's size fits the fifteen size bits of an entry.
const _: () = assert!(MAX_RECORD_BYTES >> PREFETCH_Q_LOG_UNIT < 1 << 15);

/// The bytes of a record, at most 256 KiB.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    bytes: Vec<u8>,
    stalls: bool,
}

impl Record {
    /// The record of one prefetch command.
    ///
    /// # Errors
    /// A command that cannot be written, see [`PrefetchCommand::emit`].
    pub fn new(command: &PrefetchCommand) -> Result<Self, EncodeError> {
        Ok(Self { bytes: command.to_bytes()?, stalls: false })
    }

    /// The record of several prefetch commands, which the prefetcher executes one after the other.
    ///
    /// # Errors
    /// A command that cannot be written; more bytes than a record may have.
    pub fn sequence<'a>(commands: impl IntoIterator<Item = &'a PrefetchCommand>) -> Result<Self, EncodeError> {
        let mut bytes = Vec::new();
        for command in commands {
            bytes.extend(command.to_bytes()?);
        }
        FieldError::check("size", bytes.len(), u64::from(PCIE_ALIGN), u64::from(MAX_RECORD_BYTES))
            .map_err(|error| error.in_command("record"))?;
        Ok(Self { bytes, stalls: false })
    }

    /// The record of prefetch commands that are encoded already, one behind the other.
    ///
    /// # Errors
    /// A size that no record has.
    pub fn encoded(bytes: Vec<u8>) -> Result<Self, EncodeError> {
        let size = FieldError::check("size", bytes.len(), u64::from(PCIE_ALIGN), u64::from(MAX_RECORD_BYTES));
        size.map_err(|error| error.in_command("record"))?;
        if !bytes.len().is_multiple_of(PCIE_ALIGN as usize) {
            let error = FieldError::new("size", bytes.len(), format!("a multiple of {PCIE_ALIGN}"));
            return Err(error.in_command("record"));
        }
        Ok(Self { bytes, stalls: false })
    }

    /// The record that relays one dispatch command.
    ///
    /// # Errors
    /// A command that cannot be written, or one that is longer than a record.
    pub fn dispatch(command: &DispatchCommand) -> Result<Self, EncodeError> {
        relay_inline(&command.to_bytes()?)
    }

    /// The bytes to store in the issue region.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The bytes, to change some of them between two uses of the record: an argument of a cached
    /// program, for instance. Their number stays.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }

    /// The bytes, to use their memory for another record.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Their number, a multiple of 64.
    pub fn size(&self) -> u32 {
        u32_of(self.bytes.len())
    }

    /// The record with the stall flag in its entry: the prefetcher fetches nothing behind it until
    /// the exec buffer that its last command names has ended.
    #[must_use]
    pub fn stalling(self) -> Self {
        Self { stalls: true, ..self }
    }

    /// What to store in the prefetch queue; never zero.
    pub fn entry(&self) -> u16 {
        let stall = if self.stalls { PREFETCH_Q_STALL_BIT } else { 0 };
        // A record is shorter than 1 MiB.
        u16_of(self.size() >> PREFETCH_Q_LOG_UNIT) | stall
    }
}

/// Wraps `payload`, one dispatch command, into a `RELAY_INLINE` record: 16 bytes of header, the
/// payload, zeros up to a multiple of 64.
///
/// # Errors
/// An empty payload (a zero-length write on the device, tt-metal#37233), or one longer than a
/// record.
pub fn relay_inline(payload: &[u8]) -> Result<Record, EncodeError> {
    Record::new(&PrefetchCommand::relay_inline(payload.to_vec()))
}
