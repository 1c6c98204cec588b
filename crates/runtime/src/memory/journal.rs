//! What is allocated and freed, for those who observe the chip.

use super::{AllocationId, Bank, Buffer, BufferType, MemorySpace};
use std::cell::RefCell;
use std::ops::Range;
use std::sync::Arc;
use tilework_abi::convert::u32_of;
use tilework_abi::noc::NocXy;
use tilework_driver::{BankNote, BufferNote, MemoryKind, Note, RunNote};

/// Notes that nobody has taken yet; none are made until somebody asks for them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Journal(RefCell<Option<Vec<Note>>>);

impl Journal {
    fn add(&self, note: impl FnOnce() -> Note) {
        if let Some(notes) = &mut *self.0.borrow_mut() {
            notes.push(note());
        }
    }
}

/// A number that differs between the allocations of all kinds.
fn number(kind: BufferType, id: AllocationId) -> u64 {
    let kinds = BufferType::ALL;
    let kind = kinds.iter().position(|&other| other == kind).unwrap_or_default();
    id.number() * kinds.len() as u64 + kind as u64
}

fn memory_kind(kind: BufferType) -> MemoryKind {
    match kind {
        BufferType::Dram | BufferType::Trace => MemoryKind::Dram,
        BufferType::L1 | BufferType::L1Small => MemoryKind::L1,
        BufferType::SystemMemory => MemoryKind::Host,
    }
}

impl MemorySpace {
    /// Keeps notes from now on.
    pub(crate) fn keep_notes(&mut self) {
        self.journal.0.borrow_mut().get_or_insert_default();
    }
    /// The notes since the last call.
    pub(crate) fn take_notes(&self) -> Vec<Note> {
        self.journal.0.borrow_mut().as_mut().map(std::mem::take).unwrap_or_default()
    }

    fn bank_note(&self, bank: Bank) -> BankNote {
        match bank {
            Bank::Dram(bank) => BankNote::Dram(self.physical.get(bank as usize).copied().unwrap_or(u8::MAX)),
            Bank::Core(tile) => BankNote::Core(tile),
            Bank::Host => BankNote::Host,
        }
    }

    fn buffer_note(&self, id: u64, buffer: &Buffer) -> BufferNote {
        let distance = buffer.aligned_page_size();
        let run = |run: super::Run| {
            let start = run.place.address.get();
            let range = start..start.saturating_add(u64::from(run.pages) * u64::from(distance));
            RunNote { bank: self.bank_note(run.place.bank), range, first_page: run.first_page, stride: run.stride }
        };
        let start = buffer.address.get();
        BufferNote {
            id,
            name: buffer.name.clone(),
            kind: memory_kind(buffer.buffer_type),
            page_size: buffer.page_size,
            distance,
            pages: buffer.pages().get(),
            taken: start..start.saturating_add(buffer.bytes_per_bank()),
            banks: buffer.banks().iter().map(|&bank| self.bank_note(bank)).collect(),
            runs: buffer.runs().map(run).collect(),
        }
    }

    /// Notes a buffer that has its address.
    pub(super) fn note_buffer(&self, id: AllocationId, buffer: &Buffer) {
        let id = number(buffer.buffer_type, id);
        self.journal.add(|| Note::Allocated(Arc::new(self.buffer_note(id, buffer))));
    }
    /// Notes a region of `parent` with another layout.
    pub(super) fn note_within(&self, parent: &Buffer, buffer: &Buffer) {
        let id = parent.allocation.map_or(u64::MAX, |id| number(parent.buffer_type, id));
        self.journal.add(|| Note::Within(Arc::new(self.buffer_note(id, buffer))));
    }
    /// Notes the same bytes of L1 on several cores: one page on each.
    pub(super) fn note_l1(
        &self,
        (kind, id): (BufferType, AllocationId),
        name: &str,
        range: Range<u64>,
        cores: &[NocXy],
    ) {
        self.journal.add(|| {
            let bytes = u32::try_from(range.end - range.start).unwrap_or(u32::MAX);
            let banks: Vec<BankNote> = cores.iter().copied().map(BankNote::Core).collect();
            let run =
                |(first_page, &bank): (u32, &BankNote)| RunNote { bank, range: range.clone(), first_page, stride: 1 };
            Note::Allocated(Arc::new(BufferNote {
                id: number(kind, id),
                name: name.to_owned(),
                kind: MemoryKind::L1,
                page_size: bytes,
                distance: bytes,
                pages: u32_of(banks.len()),
                taken: range.clone(),
                runs: (0..).zip(&banks).map(run).collect(),
                banks,
            }))
        });
    }
    /// Notes that an allocation is free again.
    pub(super) fn note_freed(&self, kind: BufferType, id: AllocationId) {
        self.journal.add(|| Note::Freed(number(kind, id)));
    }
}
