//! What the workers' L1 holds, and what may be overwritten: the host's account.
//!
//! The kernel configuration space is divided into [`SLOTS`] slots, so that the arguments,
//! semaphores and circular-buffer configurations of the next program go out while the one before it
//! still reads its own. Kernel text lies in the text cache of the memory map, a ring of blocks of
//! which the oldest make room. Launch messages are the firmware's ring of eight. Of all three the
//! account knows what lies where and which program may still use it; a launch that would overwrite
//! such a place is told to wait first ([`Place::wait`]).
//!
//! Only one program can be in use while the next is written: the go signal of a program is sent
//! when the one before it is done, and the dispatcher works in order. Programs of another queue or
//! of another sub-device may run at the same time, but not on the same workers (`device/order`,
//! `device/sub_device`), so what they use in their workers' L1 is no concern of this one. What is
//! in flight is therefore kept for each pair of queue and sub-device, all else for all of them.

mod trace;

use super::cores::CoreSet;
use super::key;
use super::sequence::Compiled;
use crate::device::SubDeviceId;
use crate::elf::KernelImage;
use std::ops::Range;
use std::sync::Arc;
use tilework_abi::L1_ALIGN;
use tilework_abi::addr::L1Addr;
use tilework_abi::convert::u32_of;
use tilework_abi::cq::layout::{QueueId, WORKER_SEMS};
use tilework_abi::l1::{LAUNCH_ENTRIES, MemoryMap};

/// Slots of the kernel configuration space.
pub(super) const SLOTS: usize = 4;
/// All slots, as a mask.
const ALL: u8 = (1 << SLOTS) - 1;

/// Bytes of a slot. The last [`L1_ALIGN`] of them are not for programs: a write of the launch
/// messages' index begins there (`Launcher`).
pub(super) fn slot_bytes(map: &MemoryMap) -> u32 {
    map.kernel_config_size / u32_of(SLOTS) / L1_ALIGN * L1_ALIGN
}

/// The bytes that all cores of a program share, as a slot holds them.
#[derive(Clone, Debug, Default)]
struct Content {
    /// Where they begin, from the slot's base.
    offset: u32,
    bytes: Vec<u8>,
    holders: CoreSet,
}

/// A launch message as the workers have it: of which compiled program, for which slot, with the
/// text where; and who has it.
#[derive(Clone, Copy, Debug, Default)]
struct Message {
    of: Option<(u64, usize, u32)>,
    holders: CoreSet,
}

/// Text of the kernels of a program, by role.
#[derive(Clone, Debug)]
struct Block {
    id: u64,
    range: Range<u32>,
    /// Kernels of a role, and the cores that hold them.
    roles: Vec<([Option<Arc<KernelImage>>; 5], CoreSet)>,
}

impl Block {
    /// Whether some of it lies in `range`.
    fn meets(&self, range: &Range<u32>) -> bool {
        self.range.start < range.end && range.start < self.range.end
    }

    /// Notes that the text of a program was sent there, to all cores that lacked it.
    fn note(&mut self, compiled: &Compiled) {
        if self.roles.is_empty() {
            let kernels = compiled.program.roles.iter().map(|role| role.kernels.clone());
            self.roles = kernels.map(|kernels| (kernels, CoreSet::default())).collect();
        }
        for (have, role) in self.roles.iter_mut().zip(&compiled.roles) {
            have.1 = have.1.with(&role.set);
        }
    }

    /// Whether it holds the text of a program, on some cores at least.
    fn is_of(&self, compiled: &Compiled) -> bool {
        self.roles.len() == compiled.roles.len()
            && self.roles.iter().zip(&compiled.program.roles).zip(&compiled.roles).all(|((have, role), placed)| {
                have.0.iter().zip(&role.kernels).all(|(a, b)| key::is(a, b))
                    && (self.roles.len() == 1 || have.1 == placed.set)
            })
    }
}

/// The program whose go signal was sent last, until its end is waited for.
#[derive(Clone, Debug)]
pub(super) struct InFlight {
    /// Its position in the run, for reports.
    pub tag: Option<usize>,
    /// Its cores, all of which report their end.
    pub cores: u32,
    /// The timestamp slot of its end.
    pub stamp: Option<u32>,
    slots: u8,
    /// The addresses of its text. Its block may be gone from the account: one for other workers
    /// may have taken its place.
    text: Range<u32>,
}

/// What is in flight of one queue on one sub-device, and what is known of its stream.
#[derive(Clone, Debug, Default)]
struct Flight {
    stream: bool,
    in_flight: Option<InFlight>,
}

/// Of each queue the sub-devices, by number.
type Flights = [[Flight; WORKER_SEMS as usize]; QueueId::ALL.len()];

/// Where the parts of a launch go, and what of them must be sent.
#[derive(Clone, Debug)]
pub(super) struct Place {
    /// Whether the program in flight must have ended first: something of it would be overwritten.
    pub wait: bool,
    /// The slot, or the first of several.
    pub slot: usize,
    slots: u8,
    /// Address of the program's text.
    pub text: u32,
    block: u64,
    /// For each role the cores that lack its text.
    pub missing: Vec<CoreSet>,
    /// Whether the shared bytes must be sent.
    pub shared: bool,
    /// Launch message that all cores read next; the index must be written when `index` says so.
    pub message: u32,
    /// Whether that message must be sent.
    pub launch: bool,
    /// The cores' indices disagree: it must be set to `message`.
    pub index: bool,
    /// The go message index is not known to be 0 on all cores.
    pub go_index: bool,
    /// Whether the times of some cores are taken, though this program does not ask for it.
    pub disarm: bool,
}

/// The account of one device.
#[derive(Clone, Debug)]
pub(super) struct Account {
    slot_bytes: u32,
    config: L1Addr,
    contents: [Content; SLOTS],
    cache: Range<u32>,
    next: u32,
    blocks: Vec<Block>,
    /// Whether text had to make room for other text.
    pub evicted: bool,
    ids: u64,
    /// The launch message that each worker reads next; [`UNKNOWN`] when that is not known.
    messages: Vec<u32>,
    /// The messages themselves, where the firmware keeps them.
    held: [Message; LAUNCH_ENTRIES as usize],
    keeps: bool,
    go_index: CoreSet,
    /// Workers that are known to take no times.
    disarmed: CoreSet,
    /// The queue and the sub-device that the account speaks of. The next three are theirs; those of
    /// the others are parked.
    at: (QueueId, SubDeviceId),
    /// Whether the stream of finished workers is known to be zero when nothing is in flight.
    pub stream: bool,
    /// In the account of a trace the workers that were started since its beginning: its launches
    /// wait for their number, and nothing clears the stream before its end.
    pub counted: Option<u32>,
    /// What the dispatcher's table of go targets holds.
    pub targets: Vec<u32>,
    /// The program in flight.
    pub in_flight: Option<InFlight>,
    parked: Box<Flights>,
    parked_targets: [Vec<u32>; QueueId::ALL.len()],
}

const UNKNOWN: u32 = u32::MAX;

impl Account {
    /// Nothing is known of `workers` workers.
    pub(super) fn new(map: &MemoryMap, workers: usize) -> Self {
        let cache = map.text_cache.get()..map.text_cache.get() + map.text_cache_size;
        Self {
            slot_bytes: slot_bytes(map),
            config: map.kernel_config,
            contents: Default::default(),
            next: cache.start,
            cache,
            blocks: Vec::new(),
            evicted: false,
            ids: 0,
            messages: vec![UNKNOWN; workers],
            held: Default::default(),
            keeps: map.keeps_launch,
            go_index: CoreSet::default(),
            disarmed: CoreSet::default(),
            at: Default::default(),
            stream: false,
            counted: None,
            targets: Vec::new(),
            in_flight: None,
            parked: Box::default(),
            parked_targets: Default::default(),
        }
    }

    /// Speaks of another queue or sub-device.
    pub(super) fn select(&mut self, queue: QueueId, sub: SubDeviceId) {
        for (queue, sub) in [self.at, (queue, sub)] {
            let parked = &mut self.parked[queue.index()][sub.index()];
            std::mem::swap(&mut self.stream, &mut parked.stream);
            std::mem::swap(&mut self.in_flight, &mut parked.in_flight);
            std::mem::swap(&mut self.targets, &mut self.parked_targets[queue.index()]);
        }
        self.at = (queue, sub);
    }

    /// Whether a program is in flight on a sub-device of `queue`.
    pub(super) fn has_launched(&self, queue: QueueId, sub: SubDeviceId) -> bool {
        let in_flight = match self.at == (queue, sub) {
            true => &self.in_flight,
            false => &self.parked[queue.index()][sub.index()].in_flight,
        };
        in_flight.is_some()
    }

    /// Forgets what the device holds: others have written there. What is in flight stays so.
    pub(super) fn forget(&mut self) {
        self.blocks.clear();
        self.next = self.cache.start;
        self.forget_mailboxes();
    }

    /// Forgets everything but kernel text.
    fn forget_mailboxes(&mut self) {
        self.contents = Default::default();
        self.messages.fill(UNKNOWN);
        self.held = Default::default();
        self.go_index = CoreSet::default();
        self.disarmed = CoreSet::default();
        self.stream = false;
        self.targets.clear();
        self.parked.iter_mut().flatten().for_each(|flight| flight.stream = false);
        self.parked_targets.iter_mut().for_each(Vec::clear);
    }

    /// Base of slot `slot`.
    pub(super) fn base(&self, slot: usize) -> L1Addr {
        self.config.offset(u32_of(slot) * self.slot_bytes)
    }

    /// Decides where a launch goes. `shared` are its shared bytes; `timed` says that the launch
    /// itself makes its cores take times; `home` is the address for which its text lies in DRAM.
    pub(super) fn place(&mut self, compiled: &Compiled, shared: &[u8], timed: bool, home: Option<u32>) -> Place {
        let busy = self.in_flight.as_ref().map_or(0, |f| f.slots);
        let first = compiled.set.iter().next().and_then(|i| self.messages.get(i)).copied().unwrap_or(UNKNOWN);
        let index = first == UNKNOWN || compiled.set.iter().any(|i| self.messages.get(i) != Some(&first));
        let message = if index { 0 } else { first };
        let (block, found) = self.find_text(compiled);
        let has = |slot| found.is_some_and(|text| self.has_message(message, compiled, slot, text));
        let (slot, slots) = self.choose(compiled, shared, busy, has);
        let launch = !has(slot);
        let mut wait = slots & busy != 0;
        let (block, text) = match found {
            Some(text) => (block, text),
            None => self.allocate(compiled.text_bytes, home, &mut wait),
        };
        let missing = self.missing(block, compiled);
        let disarm = !timed && !compiled.set.without(&self.disarmed).is_empty();
        let go_index = !compiled.set.without(&self.go_index).is_empty();
        // These words are read by whoever still runs.
        wait |= self.in_flight.is_some() && (index || timed || disarm || go_index);
        let shared = !self.holds(slot, compiled, shared);
        Place { wait, slot, slots, text, block, missing, shared, message, launch, index, go_index, disarm }
    }

    /// Whether all cores of a program have its launch message, for `slot` and `text`, as number
    /// `message`.
    fn has_message(&self, message: u32, compiled: &Compiled, slot: usize, text: u32) -> bool {
        let held = &self.held[message as usize];
        self.keeps && held.of == Some((compiled.id, slot, text)) && compiled.set.without(&held.holders).is_empty()
    }

    /// A slot that is not busy, best one for which nothing has to be sent (`launched` says it of
    /// the launch message); all slots for a configuration that is longer than one.
    fn choose(&self, compiled: &Compiled, shared: &[u8], busy: u8, launched: impl Fn(usize) -> bool) -> (usize, u8) {
        if compiled.config_bytes + L1_ALIGN > self.slot_bytes {
            return (0, ALL);
        }
        let free = |slot: &usize| busy >> slot & 1 == 0;
        let to_send = |&slot: &usize| (!self.holds(slot, compiled, shared), !launched(slot));
        // All are busy behind a program that took them all; then the launch waits.
        let slot = (0..SLOTS).filter(free).min_by_key(to_send).unwrap_or(0);
        (slot, 1 << slot)
    }

    /// Whether all cores of a program have its shared bytes in `slot`.
    fn holds(&self, slot: usize, compiled: &Compiled, shared: &[u8]) -> bool {
        let content = &self.contents[slot];
        shared.is_empty()
            || content.offset == compiled.layout.cb_offset
                && content.bytes == shared
                && compiled.set.without(&content.holders).is_empty()
    }

    /// The block with the text of the program's kernels; the id is where it was last time.
    fn find_text(&self, compiled: &Compiled) -> (u64, Option<u32>) {
        match self.blocks.iter().rev().find(|block| block.is_of(compiled)) {
            Some(block) => (block.id, Some(block.range.start)),
            None => (0, None),
        }
    }

    /// Room for a block of `bytes`; the blocks that lie there are gone. It goes behind the newest
    /// block, or to its home if it would make others go from either place.
    fn allocate(&mut self, bytes: u32, home: Option<u32>, wait: &mut bool) -> (u64, u32) {
        let behind = if self.next + bytes > self.cache.end { self.cache.start } else { self.next };
        let is_free = |start: u32| !self.blocks.iter().any(|block| block.meets(&(start..start + bytes)));
        let start = home.filter(|&home| is_free(home) || !is_free(behind)).unwrap_or(behind);
        let range = start..start + bytes;
        let before = self.blocks.len();
        self.blocks.retain(|block| !block.meets(&range));
        self.evicted |= self.blocks.len() < before;
        let used = |f: &InFlight| f.text.start < range.end && range.start < f.text.end;
        *wait |= self.in_flight.as_ref().is_some_and(used);
        self.next = range.end;
        self.ids += 1;
        self.blocks.push(Block { id: self.ids, range: start..self.next, roles: Vec::new() });
        (self.ids, start)
    }

    /// For each role the cores that lack its text in block `id`.
    fn missing(&self, id: u64, compiled: &Compiled) -> Vec<CoreSet> {
        let block = self.blocks.iter().find(|block| block.id == id);
        let holders = |number: usize| block.and_then(|block| block.roles.get(number)).map(|role| role.1);
        let missing = |(number, role): (usize, &super::sequence::RolePlan)| {
            role.set.without(&holders(number).unwrap_or_default())
        };
        compiled.roles.iter().enumerate().map(missing).collect()
    }

    /// Notes that the launch was sent: what it wrote is there, and it is in flight.
    pub(super) fn launched(&mut self, compiled: &Compiled, place: &Place, sent: Sent) {
        self.note_slot(compiled, place, &sent);
        if let Some(block) = self.blocks.iter_mut().find(|block| block.id == place.block) {
            block.note(compiled);
        }
        if let Some(count) = &mut self.counted {
            *count = count.wrapping_add(compiled.workers);
        }
        if place.launch {
            let of = Some((compiled.id, place.slot, place.text));
            self.held[place.message as usize] = Message { of, holders: compiled.set };
        }
        let next = (place.message + 1) % LAUNCH_ENTRIES;
        for i in compiled.set.iter() {
            if let Some(message) = self.messages.get_mut(i) {
                *message = next;
            }
        }
        self.go_index = self.go_index.with(&compiled.set);
        if sent.timed {
            self.disarmed = self.disarmed.without(&compiled.set);
        } else {
            self.disarmed = self.disarmed.with(&compiled.set);
        }
        self.in_flight = Some(InFlight {
            tag: sent.tag,
            cores: compiled.workers,
            stamp: sent.stamp,
            slots: place.slots,
            text: place.text..place.text + compiled.text_bytes,
        });
    }

    fn note_slot(&mut self, compiled: &Compiled, place: &Place, sent: &Sent) {
        for (slot, content) in self.contents.iter_mut().enumerate() {
            let other = slot != place.slot && place.slots >> slot & 1 != 0;
            if other || slot == place.slot && (place.shared || sent.private_bytes > content.offset) {
                *content = Content::default();
            }
        }
        // What reaches into other slots is not remembered: those are written one by one.
        if place.shared && place.slots != ALL {
            let content =
                Content { offset: compiled.layout.cb_offset, bytes: sent.shared.to_vec(), holders: compiled.set };
            self.contents[place.slot] = content;
        }
    }
}

/// What a launch has sent.
pub(super) struct Sent<'a> {
    pub tag: Option<usize>,
    pub stamp: Option<u32>,
    pub timed: bool,
    /// Bytes at the slot's base that are the program's own.
    pub private_bytes: u32,
    /// The shared bytes.
    pub shared: &'a [u8],
}
