//! What the `EXEC_BUF` commands of a capture execute: records in DRAM that an earlier `WRITE_PAGED`
//! of the same capture brought there, as the commands of a trace are.
//!
//! A buffer is known by its address and page size. Bytes that went to DRAM otherwise, by windows or
//! by writes with other pages, are not in the capture in this form and are said to be missing.

use std::collections::{BTreeMap, BTreeSet};
use tilework_cq::decode::InnerCommand;
use tilework_cq::prefetch::ExecBuf;
use tilework_cq::{DecodedRecord, DispatchCommand, PrefetchCommand, decode_stream};

/// Address in each bank and bytes of a page.
type Place = (u32, u32);

fn place(buffer: &ExecBuf) -> Option<Place> {
    Some((buffer.base_addr, 1u32.checked_shl(buffer.log_page_size)?))
}

/// The places of the exec buffers of a capture: only what is written there is kept.
#[derive(Clone, Default)]
pub struct Places(BTreeSet<Place>);

impl Places {
    /// Takes a record in.
    pub fn add(&mut self, record: &DecodedRecord) {
        if let PrefetchCommand::ExecBuf(buffer) = &record.command {
            self.0.extend(place(buffer));
        }
    }
}

/// What a record executes.
#[derive(Debug, PartialEq, Eq)]
pub enum Executes {
    /// It is no `EXEC_BUF`.
    Nothing,
    /// The bytes are not in the capture.
    Unknown,
    /// The same as the `EXEC_BUF` before it with this address.
    Same,
    /// These records, as `cq decode` prints them; offsets count from the start of the buffer. The
    /// last text says so when the bytes are no records.
    Records(Vec<String>),
}

/// The exec buffers of a capture while its records are read in their order.
pub struct ExecBuffers {
    places: Places,
    pages: BTreeMap<Place, BTreeMap<u32, Vec<u8>>>,
    shown: BTreeSet<Place>,
}

impl ExecBuffers {
    /// Nothing is written yet.
    pub fn new(places: &Places) -> Self {
        Self { places: places.clone(), pages: BTreeMap::new(), shown: BTreeSet::new() }
    }

    /// What the next record executes.
    pub fn next(&mut self, record: &DecodedRecord) -> Executes {
        record.inner.iter().for_each(|inner| self.write(&inner.command));
        let PrefetchCommand::ExecBuf(buffer) = &record.command else { return Executes::Nothing };
        let Some(place) = place(buffer) else { return Executes::Unknown };
        let Some(bytes) = self.bytes(place, buffer.pages) else { return Executes::Unknown };
        match self.shown.insert(place) {
            true => Executes::Records(records(&bytes)),
            false => Executes::Same,
        }
    }

    /// Keeps the pages of a write to an exec buffer.
    fn write(&mut self, command: &InnerCommand) {
        let InnerCommand::Whole(DispatchCommand::WritePaged(write)) = command else { return };
        let place = (write.base_addr, write.page_size);
        if !write.is_dram || !self.places.0.contains(&place) {
            return;
        }
        self.shown.remove(&place);
        let pages = self.pages.entry(place).or_default();
        for (page, bytes) in (u32::from(write.start_page)..).zip(write.data.chunks(write.page_size as usize)) {
            pages.insert(page, bytes.to_vec());
        }
    }

    /// The bytes of a buffer's pages, if all of them are known.
    fn bytes(&self, place: Place, pages: u32) -> Option<Vec<u8>> {
        let known = self.pages.get(&place)?;
        let found: Option<Vec<&[u8]>> = (0..pages).map(|page| known.get(&page).map(Vec::as_slice)).collect();
        Some(found?.concat())
    }
}

/// The records up to the end of the buffer's execution.
fn records(bytes: &[u8]) -> Vec<String> {
    let mut texts = Vec::new();
    for record in decode_stream(bytes) {
        match record {
            Ok(record) => {
                texts.push(record.to_string());
                if matches!(record.command, PrefetchCommand::ExecBufEnd(_)) {
                    return texts;
                }
            }
            Err(error) => {
                texts.push(format!("no further record: {error}"));
                return texts;
            }
        }
    }
    texts.push("no EXEC_BUF_END".to_owned());
    texts
}
