//! A buffer of tt-metal's device prints as a reader sees it: words in front, of which the first
//! tells where the records end, and the bytes of the records.

use crate::metal::WPOS;

/// What has been seen of the buffer.
#[derive(Clone, Debug)]
pub(crate) struct Copy {
    header: u32,
    records: Vec<u8>,
}

impl Copy {
    /// A buffer of so many bytes, of which `header` are in front of the records.
    pub(crate) fn new(bytes: u32, header: u32) -> Self {
        Self { header, records: vec![0; bytes.saturating_sub(header) as usize] }
    }

    /// The records.
    pub(crate) fn records(&self) -> &[u8] {
        &self.records
    }

    /// Takes a store of some bytes, `offset` from the buffer's start; returns the new end, if it is
    /// that.
    pub(crate) fn store(&mut self, offset: u32, bytes: &[u8]) -> Option<u32> {
        let Some(at) = offset.checked_sub(self.header) else {
            return bytes.try_into().ok().filter(|_| offset == WPOS).map(u32::from_le_bytes);
        };
        if let Some(place) = self.records.get_mut(at as usize..at as usize + bytes.len()) {
            place.copy_from_slice(bytes);
        }
        None
    }

    /// Takes the buffer as it is in L1 now; returns the end.
    pub(crate) fn load(&mut self, bytes: &[u8]) -> Option<u32> {
        let (header, records) = bytes.split_at_checked(self.header as usize)?;
        let count = records.len().min(self.records.len());
        self.records[..count].copy_from_slice(&records[..count]);
        self.store(WPOS, &header[..4])
    }
}
