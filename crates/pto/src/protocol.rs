//! The ring protocols: the waits and signals of each operation, defined once for simulation and
//! exploration.
//!
//! There are three protocols: the per-tag flags of the design document ("HL"), the four counting
//! semaphores of seed 002, and the sparse credits of the headers of `pto-isa` (commit 3186c381),
//! with their defects. A ring in both directions is two [`Way`]s. An operation is a list of
//! [`Step`]s; a step is atomic, and other cores may run between two steps.

use crate::arch::Arch;
use crate::core_id::{CoreId, Lanes, Pipe};
use crate::ring::{Direction, RingSpec};

/// Which protocol a ring follows.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Profile {
    /// HL: two flags per slot, "ready" and "free". At most 8 slots; 4 in each direction of a
    /// bidirectional ring.
    PerTagFlags,
    /// Seed 002: counting semaphores 0..3. The consumer grants all slots at the start; each tile
    /// costs one credit.
    #[default]
    Counting,
    /// The headers, including their defects: two counters, and one credit per period of tiles.
    SparseCredits,
}

/// Direction of the tiles.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Flow {
    /// From the Cube to the Vectors.
    C2V,
    /// From the Vectors to the Cube.
    V2C,
}

/// Where the slots of a way are.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Medium {
    /// `GM_SLOT_BUFFER` in global memory: a pop copies into the consumer's own slots.
    Gm,
    /// Each Vector's unified buffer: a pop binds the address.
    Ub,
    /// The Cube's L1: a pop binds the address.
    L1,
    /// Control words that the Vector's scalar unit writes.
    Control,
}

impl Medium {
    /// Whether a pop binds the slot itself, without a copy.
    pub fn zero_copy(self) -> bool {
        self != Self::Gm
    }
}

/// The action of a step.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Act {
    /// The consumer grants a credit before the first tile.
    Grant,
    /// The producer acquires the slot of a tile.
    Acquire,
    /// The producer starts to write.
    BeginWrite,
    /// The tile is in its slot.
    EndWrite,
    /// The producer publishes the tile as ready.
    Publish,
    /// The consumer has seen that the tile is ready.
    Take,
    /// The consumer starts to read.
    BeginRead,
    /// The consumer has finished reading.
    EndRead,
    /// The consumer releases the slot.
    Release,
    /// A "free" signal without a slot to free: TFREE on A5 after a pop that has freed already.
    Notify,
    /// At the end, the producer takes back a remaining credit.
    Drain,
}

/// A set or a wait of a step (which of the two follows from the [`Act`]).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Signal {
    /// The semaphore id.
    pub id: u8,
    /// The pipe that sends it or waits.
    pub pipe: Pipe,
}

/// One atomic step of a core on a way.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Step {
    /// Index of the way in the cluster's list.
    pub way: usize,
    /// The tile, counted from 0 on this way.
    pub tile: u32,
    /// The lanes.
    pub lanes: Lanes,
    /// The action.
    pub act: Act,
    /// The semaphore that it waits for or sets.
    pub signal: Option<Signal>,
}

impl Step {
    /// Whether the step's signal is a wait.
    pub fn waits(&self) -> bool {
        matches!(self.act, Act::Acquire | Act::Take | Act::Drain)
    }
}

/// A core's position in a way: the number of tiles acquired, published, popped and freed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Cursor {
    /// Tiles for which a slot was acquired.
    pub acquired: u32,
    /// Tiles published.
    pub published: u32,
    /// Tiles popped.
    pub popped: u32,
    /// Tiles freed.
    pub freed: u32,
}

/// A way: one direction of a ring, with its slots and semaphore ids.
#[derive(Clone, Debug)]
pub struct Way {
    /// Index in the cluster's list.
    pub index: usize,
    /// The ring's name and the direction.
    pub name: String,
    /// The architecture.
    pub arch: Arch,
    /// The direction.
    pub flow: Flow,
    /// Where the slots are.
    pub medium: Medium,
    /// Index of the slots in the cluster's list of buffers: both ways of a ring share one where the
    /// headers do so.
    pub buffer: usize,
    /// Slots.
    pub slots: u32,
    /// The protocol.
    pub profile: Profile,
    /// The id of "ready" (of tag 0, in the per-tag profile).
    pub ready: u8,
    /// The id on which the consumer waits for "ready": `ready`, except for one defect of
    /// the headers.
    pub ready_waited: u8,
    /// The id of "free" (of tag 0, in the per-tag profile).
    pub free: u8,
    /// Lanes that signal.
    pub lanes: Lanes,
    /// Lanes that carry data.
    pub data: Lanes,
}

impl Way {
    /// The ways of a ring: one, or two if it is bidirectional. `index` is the first one's index in
    /// the cluster's list of ways, `buffer` that of its slots.
    pub(crate) fn of(spec: &RingSpec, arch: Arch, index: usize, buffer: usize) -> Vec<Self> {
        let both = spec.direction.is_both();
        let way = |(at, &flow): (usize, &Flow)| {
            let second = flow == Flow::V2C && both;
            let (ready, free) = match spec.profile {
                Profile::PerTagFlags if second => (spec.flag + 4, spec.flag + 4),
                Profile::PerTagFlags => (spec.flag, spec.flag),
                _ if second => (spec.flag + 2, spec.flag + 3),
                _ => (spec.flag, spec.flag + 1),
            };
            let headers_both_gm =
                arch == Arch::A5 && spec.profile == Profile::SparseCredits && spec.direction == Direction::BothGm;
            let medium = spec.direction.medium(arch, flow);
            Self {
                index: index + at,
                name: if both { format!("{} {flow:?}", spec.name) } else { spec.name.clone() },
                arch,
                flow,
                medium,
                // The headers' BOTH_GM on A5 has no base of its own for V2C
                // (docs/pto.md, defect 3).
                buffer: if headers_both_gm { buffer } else { buffer + at },
                slots: spec.slots,
                profile: spec.profile,
                ready,
                // Defect 3 again: the Cube records on FlagID, the Vector waits on FlagID + 1.
                ready_waited: if headers_both_gm && flow == Flow::C2V { ready + 1 } else { ready },
                free,
                lanes: spec.split.signal_lanes(arch),
                data: spec.split.data_lanes(),
            }
        };
        spec.flows().iter().enumerate().map(way).collect()
    }

    /// Whether this core produces the way's tiles.
    pub fn produces(&self, core: CoreId) -> bool {
        core.is_vector() == (self.flow == Flow::V2C) && self.takes_part(core)
    }

    /// Whether this core consumes the way's tiles.
    pub fn consumes(&self, core: CoreId) -> bool {
        core.is_vector() == (self.flow == Flow::C2V) && self.takes_part(core)
    }

    /// Whether this core takes part in the way. On A5 without a split, Vector 1 does not.
    pub fn takes_part(&self, core: CoreId) -> bool {
        core.lane().is_none_or(|lane| self.lanes.has(lane))
    }

    /// The slot of a tile.
    pub fn slot(&self, tile: u32) -> u32 {
        tile % self.slots
    }

    /// The period of the headers' credits (`SyncPeriod`).
    pub fn period(&self) -> u32 {
        if self.slots <= 2 { self.slots } else { self.slots / 2 }
    }

    /// Whether a pop releases its slot at once, as the headers' tile form does for slots in
    /// global memory.
    pub fn pop_frees(&self) -> bool {
        self.profile == Profile::SparseCredits && self.medium == Medium::Gm
    }

    /// Whether the profile guarantees one credit per slot at any time.
    pub fn conserves_credits(&self) -> bool {
        self.profile != Profile::SparseCredits
    }

    /// Number of ids of "ready" and of "free": one per slot in the per-tag profile, else one.
    pub fn tags(&self) -> u8 {
        if self.profile == Profile::PerTagFlags { u8::try_from(self.slots).unwrap_or(u8::MAX) } else { 1 }
    }

    /// All ids that the way uses for "ready" and for "free".
    pub fn ids(&self) -> impl Iterator<Item = u8> + '_ {
        (0..self.tags()).flat_map(move |tag| [self.ready.saturating_add(tag), self.free.saturating_add(tag)])
    }

    fn by_tag(&self, base: u8, tile: u32) -> u8 {
        match self.profile {
            Profile::PerTagFlags => base.saturating_add(u8::try_from(self.slot(tile)).unwrap_or(u8::MAX)),
            _ => base,
        }
    }

    /// The pipe that writes and signals "ready": FIX of a Cube, MTE3 of a Vector, S for control
    /// words (`pto-isa`, `include/pto/npu/*/TPush.hpp`).
    pub fn write_pipe(&self) -> Pipe {
        match (self.flow, self.medium) {
            (_, Medium::Control) => Pipe::S,
            (Flow::C2V, _) => Pipe::Fix,
            (Flow::V2C, _) => Pipe::Mte3,
        }
    }

    /// The pipe that reads, waits for "ready" and signals "free": MTE2 from global memory, V from
    /// UB, MTE1 from L1.
    pub fn read_pipe(&self) -> Pipe {
        match self.medium {
            Medium::Gm => Pipe::Mte2,
            Medium::Ub => Pipe::V,
            Medium::L1 => Pipe::Mte1,
            Medium::Control => Pipe::S,
        }
    }

    /// A step on all lanes of this core. On A5 the Cube signals the Vectors one after the other,
    /// each by its own flag; on A2A3 one message reaches both.
    fn signalled(&self, core: CoreId, act: Act, tile: u32, signal: Option<Signal>) -> Vec<Step> {
        let lanes = core.lane().map_or(self.lanes, Lanes::one);
        let step = |lanes| Step { way: self.index, tile, lanes, act, signal };
        match (self.arch, core) {
            (Arch::A5, CoreId::Cube) => lanes.iter().map(|lane| step(Lanes::one(lane))).collect(),
            _ => vec![step(lanes)],
        }
    }

    fn accesses(&self, core: CoreId, tile: u32, begin: Act, end: Act) -> Vec<Step> {
        let lanes = core.lane().map_or(self.data, |lane| self.data.and(Lanes::one(lane)));
        let step = |act| Step { way: self.index, tile, lanes, act, signal: None };
        if lanes.is_empty() { Vec::new() } else { vec![step(begin), step(end)] }
    }

    /// `aic_initialize_pipe`, `aiv_initialize_pipe`: the consumer's credits.
    pub fn open(&self, core: CoreId) -> Vec<Step> {
        if !self.consumes(core) {
            return Vec::new();
        }
        let credits = match (self.profile, self.arch) {
            (Profile::PerTagFlags | Profile::Counting, _) => self.slots,
            (Profile::SparseCredits, Arch::A5) => self.period(),
            (Profile::SparseCredits, Arch::A2A3) => 0,
        };
        let grant = |tag| {
            let signal = Signal { id: self.by_tag(self.free, tag), pipe: self.read_pipe() };
            self.signalled(core, Act::Grant, tag, Some(signal))
        };
        (0..credits).flat_map(grant).collect()
    }

    /// TALLOC, the first part of TPUSH: wait for a slot.
    pub fn acquire(&self, core: CoreId, cursor: &mut Cursor) -> Vec<Step> {
        let tile = cursor.acquired;
        cursor.acquired += 1;
        let waits = match self.profile {
            Profile::PerTagFlags | Profile::Counting => true,
            Profile::SparseCredits => tile >= self.slots && tile.is_multiple_of(self.period()),
        };
        let signal = Signal { id: self.by_tag(self.free, tile), pipe: self.write_pipe() };
        self.signalled(core, Act::Acquire, tile, waits.then_some(signal))
    }

    /// TSTORE into a slot that was acquired.
    pub fn store(&self, core: CoreId, tile: u32) -> Vec<Step> {
        self.accesses(core, tile, Act::BeginWrite, Act::EndWrite)
    }

    /// TPUSH of a slot: publish the oldest unpublished tile.
    pub fn publish(&self, core: CoreId, cursor: &mut Cursor) -> Vec<Step> {
        let tile = cursor.published;
        cursor.published += 1;
        let signal = Signal { id: self.by_tag(self.ready, tile), pipe: self.write_pipe() };
        self.signalled(core, Act::Publish, tile, Some(signal))
    }

    /// TPUSH of a tile.
    pub fn push(&self, core: CoreId, cursor: &mut Cursor) -> Vec<Step> {
        let tile = cursor.acquired;
        let mut steps = self.acquire(core, cursor);
        steps.extend(self.store(core, tile));
        steps.extend(self.publish(core, cursor));
        steps
    }

    /// TPOP of a slot: wait until the tile is ready.
    pub fn take(&self, core: CoreId, cursor: &mut Cursor) -> Vec<Step> {
        let tile = cursor.popped;
        cursor.popped += 1;
        let signal = Signal { id: self.by_tag(self.ready_waited, tile), pipe: self.read_pipe() };
        self.signalled(core, Act::Take, tile, Some(signal))
    }

    /// TLOAD, or the use of a bound slot.
    pub fn load(&self, core: CoreId, tile: u32) -> Vec<Step> {
        self.accesses(core, tile, Act::BeginRead, Act::EndRead)
    }

    /// TPOP of a tile: from global memory including the copy, and under the headers' profile
    /// including the release of the slot.
    pub fn pop(&self, core: CoreId, cursor: &mut Cursor) -> Vec<Step> {
        let tile = cursor.popped;
        let mut steps = self.take(core, cursor);
        if !self.medium.zero_copy() {
            steps.extend(self.load(core, tile));
        }
        if self.pop_frees() {
            steps.extend(self.release(core, cursor));
        }
        steps
    }

    /// TFREE: release the oldest held slot; `None` if there is none. After a pop that has freed
    /// already, it is a no-op on A2A3 and a second signal on A5 (`pto-isa`,
    /// `include/pto/npu/*/TFree.hpp`).
    pub fn free(&self, core: CoreId, cursor: &mut Cursor) -> Option<Vec<Step>> {
        if cursor.freed < cursor.popped {
            return Some(self.release(core, cursor));
        }
        if !self.pop_frees() || cursor.popped == 0 {
            return None;
        }
        let tile = cursor.popped - 1;
        match (self.arch, self.free_signal(tile)) {
            (Arch::A5, Some(signal)) => Some(self.signalled(core, Act::Notify, tile, Some(signal))),
            _ => Some(Vec::new()),
        }
    }

    fn release(&self, core: CoreId, cursor: &mut Cursor) -> Vec<Step> {
        let tile = cursor.freed;
        cursor.freed += 1;
        self.signalled(core, Act::Release, tile, self.free_signal(tile))
    }

    fn free_signal(&self, tile: u32) -> Option<Signal> {
        let signals = match self.profile {
            Profile::PerTagFlags | Profile::Counting => true,
            Profile::SparseCredits => (tile + 1).is_multiple_of(self.period()),
        };
        signals.then(|| Signal { id: self.by_tag(self.free, tile), pipe: self.read_pipe() })
    }

    /// Closing a ring: the producer takes back all credits, so that the next block finds zeros. HL
    /// and the seed do not mention it; without it the pre-signalled credits would stay. The headers
    /// do it in the destructor of `TPipe`.
    pub fn close(&self, core: CoreId, cursor: &Cursor) -> Vec<Step> {
        if !self.produces(core) {
            return Vec::new();
        }
        let sent = cursor.acquired;
        let credits = match (self.profile, self.arch) {
            (Profile::PerTagFlags | Profile::Counting, _) => self.slots,
            (Profile::SparseCredits, Arch::A5) => self.period(),
            (Profile::SparseCredits, Arch::A2A3) => {
                let period = self.period();
                let waited = (self.slots..sent).filter(|tile| tile.is_multiple_of(period)).count();
                (sent / period).saturating_sub(u32::try_from(waited).unwrap_or(u32::MAX))
            }
        };
        let drain = |tag: u32| {
            // Slots are released in ring order, from the one after the last tile.
            let tile = sent + tag;
            let signal = Signal { id: self.by_tag(self.free, tile), pipe: self.write_pipe() };
            self.signalled(core, Act::Drain, tile, Some(signal))
        };
        (0..credits).flat_map(drain).collect()
    }
}
