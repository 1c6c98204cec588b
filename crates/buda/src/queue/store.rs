//! The contents of a netlist's queues (tt-budabackend, `docs/public/netlist.md`, sections Queues
//! and Queue Settings).
//!
//! A slot keeps its entry after a pop, as device memory does; only pointers say what may be
//! read. Rams have pointers as well, but nothing ever waits for them. An alias shows the memory
//! of another ram: entry k of the view is `base.entries / view.entries` entries of the base,
//! stacked along t.

use super::error::{QueueError, QueueProblem};
use super::life::Life;
use super::pointers::{Fullness, Pointers};
use std::collections::BTreeMap;
use std::sync::Arc;
use tilework_netlist::types::{Netlist, Producer, QueueId, QueueKind};

/// An entry of a queue: a tensor, or a simpler value in tests.
pub trait Entry: Clone + Send + Sync + 'static {
    /// Stacks entries along t; `None` if they do not fit together.
    fn stack(parts: &[Self]) -> Option<Self>;
    /// Splits along t into equal parts; `None` if t is not a multiple.
    fn split(&self, parts: usize) -> Option<Vec<Self>>;
    /// Bytes of memory.
    fn bytes(&self) -> u64;
}

/// All queues of a netlist.
#[derive(Debug)]
pub struct Queues<E> {
    netlist: Arc<Netlist>,
    fullness: Fullness,
    states: Vec<State<E>>,
    life: Life,
    bytes: u64,
    most_bytes: u64,
}

#[derive(Debug)]
struct State<E> {
    pointers: Pointers,
    /// By slot; not an array, since a netlist may declare any number of entries.
    slots: BTreeMap<u32, E>,
}

impl<E: Entry> Queues<E> {
    /// Empty queues; those that a program allocates are not alive yet. All entries together may
    /// take `most_bytes`.
    pub fn new(netlist: Arc<Netlist>, fullness: Fullness, most_bytes: u64) -> Self {
        let states = netlist.queues.iter().map(|queue| State::new(queue.entries)).collect();
        let life = Life::new(&netlist);
        Self { netlist, fullness, states, life, bytes: 0, most_bytes }
    }

    /// The netlist.
    pub fn netlist(&self) -> &Arc<Netlist> {
        &self.netlist
    }

    /// Pointers of a queue.
    pub fn pointers(&self, queue: QueueId) -> Pointers {
        self.states[queue.0].pointers
    }

    /// Whether an entry can be written.
    pub fn has_space(&self, queue: QueueId) -> bool {
        !self.pointers(queue).is_full(self.fullness)
    }

    /// Writes the next entry of a queue.
    pub fn push(&mut self, queue: QueueId, entry: E) -> Result<(), QueueError> {
        self.expect(queue, QueueKind::Queue)?;
        let pointers = self.pointers(queue);
        if pointers.is_full(self.fullness) {
            let (entries, rd, wr) = (pointers.entries(), pointers.rd(), pointers.wr());
            return Err(QueueProblem::Full { entries, rd, wr }.of(&self.netlist, queue));
        }
        let slot = pointers.slot(pointers.wr()) as u32;
        self.put(queue, queue, slot, entry)?;
        self.states[queue.0].pointers.push();
        Ok(())
    }

    /// Stores an entry of `queue` in a slot of `base`, which owns the memory.
    fn put(&mut self, queue: QueueId, base: QueueId, slot: u32, entry: E) -> Result<(), QueueError> {
        let slots = &mut self.states[base.0].slots;
        let bytes = self.bytes - slots.get(&slot).map_or(0, E::bytes) + entry.bytes();
        if bytes > self.most_bytes {
            return Err(QueueProblem::Memory { most: self.most_bytes }.of(&self.netlist, queue));
        }
        self.bytes = bytes;
        slots.insert(slot, entry);
        Ok(())
    }

    /// The entry at a pointer of a queue; `None` if it is not written yet or was popped.
    pub fn peek(&self, queue: QueueId, pointer: u32) -> Result<Option<E>, QueueError> {
        self.expect(queue, QueueKind::Queue)?;
        let state = &self.states[queue.0];
        let there = match self.fullness {
            Fullness::Strict => state.pointers.holds(pointer),
            // Reads of silently overwritten entries are silent as well.
            Fullness::GoldenCompat => state.pointers.holds(pointer) || self.overrun(queue),
        };
        Ok(if there { state.slots.get(&(state.pointers.slot(pointer) as u32)).cloned() } else { None })
    }

    /// Whether a queue holds more entries than it has slots, which only
    /// [`Fullness::GoldenCompat`] allows.
    fn overrun(&self, queue: QueueId) -> bool {
        let pointers = self.pointers(queue);
        pointers.occupancy() > pointers.entries()
    }

    /// Pops entries of a queue.
    pub fn pop(&mut self, queue: QueueId, count: u32) -> Result<(), QueueError> {
        if self.netlist.queue(queue).kind == QueueKind::Ram {
            return Err(QueueProblem::RamPop.of(&self.netlist, queue));
        }
        self.expect(queue, QueueKind::Queue)?;
        let left = self.pointers(queue).occupancy();
        if left < count {
            return Err(QueueProblem::PopTooMany { left, count }.of(&self.netlist, queue));
        }
        self.states[queue.0].pointers.pop(count);
        Ok(())
    }

    /// Reads an entry of a ram; `None` if it was never written.
    pub fn ram_read(&self, queue: QueueId, at: u32) -> Result<Option<E>, QueueError> {
        self.expect(queue, QueueKind::Ram)?;
        let view = self.view(queue, at)?;
        let slots = &self.states[view.base.0].slots;
        let parts: Option<Vec<E>> = view.slots.clone().map(|slot| slots.get(&slot).cloned()).collect();
        match parts {
            None => Ok(None),
            Some(parts) if parts.len() == 1 => Ok(parts.into_iter().next()),
            Some(parts) => match E::stack(&parts) {
                Some(entry) => Ok(Some(entry)),
                None => Err(self.bad_view(queue, view.base, "their shapes differ")),
            },
        }
    }

    /// Writes an entry of a ram. Moves no pointer.
    pub fn ram_write(&mut self, queue: QueueId, at: u32, entry: E) -> Result<(), QueueError> {
        self.expect(queue, QueueKind::Ram)?;
        let view = self.view(queue, at)?;
        let parts = match view.slots.len() {
            1 => vec![entry],
            count => match entry.split(count) {
                Some(parts) => parts,
                None => return Err(self.bad_view(queue, view.base, "t is no multiple of their number")),
            },
        };
        view.slots.zip(parts).try_for_each(|(slot, part)| self.put(queue, view.base, slot, part))
    }

    /// Sets the global read pointer.
    pub fn set_rd(&mut self, queue: QueueId, pointer: u32) {
        self.states[queue.0].pointers.set_rd(pointer);
    }

    /// Sets the global write pointer.
    pub fn set_wr(&mut self, queue: QueueId, pointer: u32) {
        self.states[queue.0].pointers.set_wr(pointer);
    }

    /// The ram whose memory a queue uses: itself unless it is an alias.
    pub fn memory_of(&self, queue: QueueId) -> QueueId {
        self.netlist.queue(queue).alias.unwrap_or(queue)
    }

    /// The entry in a slot regardless of the pointers, for outputs at the end of a run.
    pub fn slot(&self, queue: QueueId, slot: u32) -> Result<Option<E>, QueueError> {
        match self.netlist.queue(queue).kind {
            QueueKind::Ram => self.ram_read(queue, slot),
            QueueKind::Queue => Ok(self.states[queue.0].slots.get(&slot).cloned()),
        }
    }

    /// One more than the last slot that was ever written.
    pub fn written(&self, queue: QueueId) -> u32 {
        let base = self.memory_of(queue);
        let end = self.states[base.0].slots.last_key_value().map_or(0, |(slot, _)| slot + 1);
        let (of, by) = (self.netlist.queue(base).entries.max(1), self.netlist.queue(queue).entries.max(1));
        end.div_ceil((of / by).max(1))
    }

    /// `allocate_queue`: allocates a dynamic queue, empty.
    pub fn allocate(&mut self, queue: QueueId) -> Result<(), QueueError> {
        self.life.begin(&self.netlist, queue)?;
        self.states[queue.0].pointers.clear();
        Ok(())
    }

    /// `deallocate_queue`: deallocates it. The contents of its memory stay.
    pub fn deallocate(&mut self, queue: QueueId) -> Result<(), QueueError> {
        self.life.end(&self.netlist, queue)
    }

    /// Refuses queues that the host must not fill.
    pub fn expect_host(&self, queue: QueueId) -> Result<(), QueueError> {
        match self.netlist.queue(queue).producer {
            Producer::Host => Ok(()),
            Producer::Op(op) => {
                let producer = self.netlist.op(op).name.clone();
                Err(QueueProblem::NotForHost { producer }.of(&self.netlist, queue))
            }
        }
    }

    fn expect(&self, queue: QueueId, kind: QueueKind) -> Result<(), QueueError> {
        let is = self.netlist.queue(queue);
        let problem = match (is.kind, kind) {
            (QueueKind::Ram, QueueKind::Queue) => QueueProblem::RamNeedsPointer { entries: is.entries },
            (QueueKind::Queue, QueueKind::Ram) => QueueProblem::NotARam,
            _ if !self.life.is_alive(queue) => QueueProblem::NotAllocated,
            _ => return Ok(()),
        };
        Err(problem.of(&self.netlist, queue))
    }

    /// The slots, and the ram that owns them, of an entry.
    fn view(&self, queue: QueueId, at: u32) -> Result<View, QueueError> {
        let entries = self.netlist.queue(queue).entries;
        if at >= entries {
            return Err(QueueProblem::OutOfRange { entries, at: at.into() }.of(&self.netlist, queue));
        }
        let base = self.memory_of(queue);
        let of = self.netlist.queue(base).entries;
        if self.netlist.queue(base).alias.is_some() {
            return Err(self.bad_view(queue, base, "it is a view itself"));
        }
        if !of.is_multiple_of(entries) {
            return Err(self.bad_view(queue, base, "their number is no multiple of the view's"));
        }
        let each = of / entries;
        Ok(View { base, slots: at * each..(at + 1) * each })
    }

    fn bad_view(&self, queue: QueueId, base: QueueId, why: &'static str) -> QueueError {
        let is = self.netlist.queue(base);
        QueueProblem::BadView { base: is.name.clone(), base_entries: is.entries, why }.of(&self.netlist, queue)
    }
}

impl<E> State<E> {
    fn new(entries: u32) -> Self {
        Self { pointers: Pointers::new(entries), slots: BTreeMap::new() }
    }
}

struct View {
    base: QueueId,
    slots: std::ops::Range<u32>,
}
