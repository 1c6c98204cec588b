//! Kernel text in DRAM, for programs whose text does not fit into the workers' L1 together.
//!
//! Text goes out inline at first, and most of it never again: it stays in the text cache. Text that
//! made room for other text and comes back is stored in a region of DRAM, once, and relayed from
//! there whenever it comes back again: `PAGED_TO_RINGBUFFER` reads it once, `RELAY_RINGBUFFER`
//! writes it to each rectangle of cores. So the host sends no text that it has sent twice.
//!
//! Text is relocated for its address, so a copy serves that address only; the account puts the text
//! back there ([`TextStore::home`]).

use super::account::Place;
use super::cores::multicast;
use super::sequence::{Compiled, large, relay, sub};
use crate::program::ProgramError;
use tilework_abi::addr::{DramAddr, L1Addr};
use tilework_abi::convert::{addr32_of, u8_of, u16_of, u32_of};
use tilework_abi::cq::CMD_SIZE;
use tilework_abi::cq::dispatch::{WRITE_PACKED_LARGE_MAX_SUBS, WaitFlags, WritePackedLargeSub, WritePackedLargeType};
use tilework_abi::cq::prefetch::{DispatcherSelect, RingbufferFlags};
use tilework_abi::l1::MemoryMap;
use tilework_abi::noc::NocXy;
use tilework_abi::{DRAM_ALIGN, L1_ALIGN};
use tilework_cq::dispatch::{PagedWrite, Wait};
use tilework_cq::prefetch::{Inline, PagedToRing, RingPiece};
use tilework_cq::{DispatchCommand, EncodeError, PrefetchCommand};

/// Bytes of the region in each DRAM bank: room for some fifty programs of the greatest size.
pub(crate) const STORE_BYTES: u32 = 1 << 20;
/// Binary logarithm of its pages.
const LOG_PAGE: u32 = 10;
const PAGE: u32 = 1 << LOG_PAGE;
/// Bytes of text that are stored, read and written together: the longest packet of a
/// `WRITE_PACKED_LARGE`.
pub(super) const PART: usize = 1 << 16;

/// A part of a role's text.
#[derive(Clone, Copy, Debug)]
struct Part {
    role: usize,
    /// Its first page in the store.
    page: u32,
    /// Where it begins in the role's text, and its bytes.
    at: u32,
    bytes: u32,
}

/// The text of a compiled program for one address.
#[derive(Clone, Debug)]
struct Kept {
    id: u64,
    text: u32,
    parts: Vec<Part>,
}

/// What lies in the region.
#[derive(Clone, Debug)]
pub(super) struct TextStore {
    base: u32,
    banks: u32,
    next: u32,
    kept: Vec<Kept>,
}

/// A command and the prefetch commands that carry it.
pub(super) struct Relayed {
    /// Prefetch commands, encoded one behind the other.
    pub bytes: Vec<u8>,
    /// Whether they complete a command of the dispatcher, and to how many cores it writes.
    pub writes: Option<u32>,
}

impl TextStore {
    /// An empty store at `base` of each of `banks` banks, [`STORE_BYTES`] long.
    pub(super) fn new(base: DramAddr, banks: usize) -> Self {
        Self { base: addr32_of(base.get()), banks: u32_of(banks), next: 0, kept: Vec::new() }
    }

    /// The address that there is text of this compiled program for.
    pub(super) fn home(&self, id: u64) -> Option<u32> {
        self.kept.iter().find(|kept| kept.id == id).map(|kept| kept.text)
    }

    /// Where page `page` lies: the bank, and the address there.
    const fn place(&self, page: u32) -> (u32, u32) {
        (page % self.banks, self.base + page / self.banks * PAGE)
    }

    /// Stores the text of `compiled` for the address of `place`; what must be sent for that.
    /// Nothing if the region is too small for it.
    pub(super) fn keep(
        &mut self,
        compiled: &Compiled,
        place: &Place,
        map: &MemoryMap,
    ) -> Result<Option<Vec<Relayed>>, ProgramError> {
        let texts: Vec<Vec<u8>> = (0..compiled.roles.len())
            .map(|role| compiled.program.text_bytes(&compiled.layout, role, map, L1Addr::new(place.text)))
            .collect::<Result<_, _>>()?;
        let pages = |bytes: usize| u32_of(bytes).div_ceil(PAGE);
        let all: u32 = texts.iter().flat_map(|text| text.chunks(PART)).map(|part| pages(part.len())).sum();
        let room = STORE_BYTES / PAGE * self.banks;
        self.kept.retain(|kept| kept.id != compiled.id);
        if all > room {
            return Ok(None);
        }
        if all > room - self.next {
            // The oldest lie at the start; all of them may be stored again.
            self.kept.clear();
            self.next = 0;
        }
        let (mut out, mut parts) = (Vec::new(), Vec::new());
        for (role, text) in texts.iter().enumerate() {
            for (number, part) in text.chunks(PART).enumerate() {
                let (bank, base_addr) = self.place(self.next);
                let mut data = part.to_vec();
                data.resize(data.len().next_multiple_of(PAGE as usize), 0);
                let start_page = u16_of(bank);
                let write = PagedWrite { is_dram: true, start_page, base_addr, page_size: PAGE, data };
                out.push(DispatchCommand::WritePaged(write));
                let (at, bytes) = (u32_of(number * PART), u32_of(part.len()));
                parts.push(Part { role, page: self.next, at, bytes });
                self.next += pages(part.len());
            }
        }
        // The prefetcher must not read before it has arrived.
        let flags = WaitFlags::BARRIER | WaitFlags::NOTIFY_PREFETCH;
        out.push(DispatchCommand::Wait(Wait { flags, stream: 0, addr: 0, count: 0 }));
        self.kept.push(Kept { id: compiled.id, text: place.text, parts });
        let encoded = |command| Ok(Relayed { bytes: relay(&command)?, writes: Some(0) });
        let out: Result<Vec<_>, EncodeError> = out.into_iter().map(encoded).collect();
        let stall = PrefetchCommand::Stall.to_bytes();
        let fail =
            |error: EncodeError| crate::program::ProgramErrorKind::Kernel(error.to_string()).of(&compiled.program.name);
        let mut out = out.map_err(fail)?;
        out.push(Relayed { bytes: stall.map_err(fail)?, writes: None });
        Ok(Some(out))
    }

    /// What relays the text of `compiled` from here to the cores that lack it; nothing if it is not
    /// here for that address.
    pub(super) fn relay(
        &self,
        compiled: &Compiled,
        place: &Place,
        workers: &[NocXy],
        columns: &[u8],
    ) -> Result<Option<Vec<Relayed>>, EncodeError> {
        let same = |kept: &&Kept| kept.id == compiled.id && kept.text == place.text;
        let Some(kept) = self.kept.iter().find(same) else { return Ok(None) };
        let mut out = Vec::new();
        for part in &kept.parts {
            let missing = place.missing.get(part.role).copied().unwrap_or_default();
            if missing.is_empty() {
                continue;
            }
            let (bank, base_addr) = self.place(part.page);
            let length = part.bytes.next_multiple_of(DRAM_ALIGN);
            let fill = PrefetchCommand::PagedToRingbuffer(PagedToRing {
                flags: RingbufferFlags::RESET_TO_START,
                log2_page_size: u8_of(LOG_PAGE),
                start_page: u8_of(bank),
                wp_offset_update: length,
                base_addr,
                length,
            });
            out.push(Relayed { bytes: fill.to_bytes()?, writes: None });
            let rects = multicast(missing.iter().filter_map(|i| workers.get(i).copied()), columns);
            for rects in rects.chunks(WRITE_PACKED_LARGE_MAX_SUBS) {
                let data = || vec![0; part.bytes as usize];
                let subs: Vec<_> = rects.iter().map(|&rect| sub(rect, place.text + part.at, data(), true)).collect();
                let header =
                    CMD_SIZE + (rects.len() * size_of::<WritePackedLargeSub>()).next_multiple_of(L1_ALIGN as usize);
                let mut payload = large(WritePackedLargeType::ProgramBinaries, L1_ALIGN, subs).to_bytes()?;
                payload.truncate(header);
                let head =
                    PrefetchCommand::RelayInlineNoflush(Inline { dispatcher: DispatcherSelect::Master, payload });
                let pieces = vec![RingPiece { start: 0, length: part.bytes }; rects.len()];
                let mut bytes = head.to_bytes()?;
                bytes.extend(PrefetchCommand::RelayRingbuffer(pieces).to_bytes()?);
                let cores = rects.iter().map(|rect| u32::from(rect.tiles)).sum();
                out.push(Relayed { bytes, writes: Some(cores) });
            }
        }
        Ok(Some(out))
    }
}

const _: () = assert!(PART.is_multiple_of(PAGE as usize) && PAGE.is_multiple_of(DRAM_ALIGN));
