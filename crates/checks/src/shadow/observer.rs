//! The observer: hands events to the analysers of memory and protocol.

use super::buffers::Buffers;
use super::cbs::Counter;
use super::dram::Dram;
use super::known::LARGEST_OFFSET;
use super::report::{Actor, Reports};
use super::tile::{Tile, Tiles};
use crate::Checks;
use crate::catalogue::protocol as rows;
use crate::finding::{Agent as Who, Space, Target};
use crate::protocol::{self, By, InFlight, Issued, Used};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex};
use tilework_abi::cb::COUNTER_MASK;
use tilework_abi::l1::{GO_ENTRIES, LAUNCH_ENTRIES};
use tilework_abi::msg::{LAUNCH_MSG_BYTES, RUN_DONE, RUN_GO};
use tilework_abi::noc::NocXy;
use tilework_abi::tensix::{INSTRN_BUF_BASE, L1_SIZE, LOCAL_BASE, MOP_CFG_BASE, PC_BUF_BASE, Processor};
use tilework_driver::{FirmwareNote, LaunchNote, Note};
use tilework_sim::{Agent, Cycle, Event, Known, Observer, Request, RequestKind, Spot, Unit, Unjudged, Wants, What};

/// Looks for wrong accesses and broken rules of protocol. Attach it to a chip before the device is
/// opened: what was written and allocated before is not known to it.
#[derive(Clone, Debug)]
pub struct CheckObserver {
    pub(crate) reports: Reports,
    pub(super) tiles: Tiles,
    pub(super) dram: BTreeMap<u8, Dram>,
    pub(super) buffers: Buffers,
    pub(super) firmware: Option<Arc<FirmwareNote>>,
    pub(crate) in_flight: InFlight,
    /// Whether state that kernels leave in the coprocessor is of interest.
    pub(crate) follows_state: bool,
    /// Stands for every program of a host that tells nothing; none for one that does.
    pub(super) stranger: Option<Arc<LaunchNote>>,
    /// The number of the next launch.
    launches: u64,
    /// The highest end of the data of any kernel so far, in the local RAM of each core.
    local_ends: [u32; 5],
    /// Memory whose accesses need not be seen any more, for the chip.
    pub(super) known: Vec<Known>,
    /// The chip asks for it.
    pub(super) is_asked: bool,
}

/// Somebody's access to a span of L1.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub addr: u32,
    pub len: u32,
}

impl CheckObserver {
    /// An observer that reports into `checks`.
    pub fn new(checks: Arc<Mutex<Checks>>) -> Self {
        let reports = Reports::new(checks);
        Self {
            follows_state: reports.wants(&rows::TENSIX_STATE_LEFT),
            reports,
            tiles: Tiles::default(),
            dram: BTreeMap::new(),
            buffers: Buffers::default(),
            firmware: None,
            in_flight: InFlight::default(),
            stranger: None,
            launches: 0,
            local_ends: [0; 5],
            known: Vec::new(),
            is_asked: false,
        }
    }

    /// An observer of a chip whose host says nothing about buffers, programs and kernels: all code
    /// is looked at alike, and only what is certain without knowing owners is reported.
    pub fn of_stranger(checks: Arc<Mutex<Checks>>) -> Self {
        Self { stranger: Some(Arc::new(LaunchNote::default())), ..Self::new(checks) }
    }

    /// Knows what another observer of the same program knew, and reports where it did before.
    pub fn put_back(&mut self, kept: &Self) {
        let checks = self.reports.checks();
        *self = kept.clone();
        self.reports.set_checks(checks);
    }

    /// Looks at events. The tile of one is taken out meanwhile, and stays out for the next one if
    /// that is of the same: other tiles may be looked at.
    fn look<'a>(&mut self, events: impl Iterator<Item = &'a Event>) {
        let mut taken: Option<Box<Tile>> = None;
        for event in events {
            match (event.spot, &event.what) {
                _ if event.known => {}
                (_, What::Leaves(_)) => {}
                (Spot::Tensix(xy), _) => {
                    taken.take_if(|tile| tile.xy != xy).into_iter().for_each(|tile| self.tiles.put(tile));
                    let tile = taken.get_or_insert_with(|| self.tiles.take(xy));
                    self.on_tile(tile, event);
                }
                (Spot::Dram(bank), What::Arrives(packet)) => {
                    // Which may ask for any tile.
                    taken.take().into_iter().for_each(|tile| self.tiles.put(tile));
                    self.on_dram(bank, packet, event.at);
                }
                (_, What::Arrives(packet)) => self.in_flight.arrived(packet),
                _ => {}
            }
        }
        taken.into_iter().for_each(|tile| self.tiles.put(tile));
    }

    /// The event on a Tensix tile.
    #[inline]
    fn on_tile(&mut self, tile: &mut Tile, event: &Event) {
        match &event.agent {
            _ if let What::Holds { cores, addr } = event.what => tile.caches.fill_all(cores, addr),
            _ if let What::Prepared { core, page, words } = event.what => tile.prepared(core, page, words),
            Agent::Core(core) => self.on_core(tile, *core, event),
            Agent::Coprocessor(unit) => self.on_unit(tile, *unit, event),
            Agent::Niu(_) => self.on_packet(tile, event),
        }
    }

    #[inline]
    fn on_core(&mut self, tile: &mut Tile, core: Processor, event: &Event) {
        let actor = Actor::core(tile.xy, core, event.pc, event.at);
        tile.sees(core);
        match event.what {
            What::Load { addr, bytes, value, cached } if addr < L1_SIZE => {
                let span = Span { addr, len: bytes.into() };
                self.loaded(tile, (core, actor), span, (value, cached));
                self.may_know_l1(tile, core, span, Some(event.pc), event.at);
                self.may_know_loads(tile, core, addr, event.at);
            }
            What::Store { addr, bytes, value } if addr < L1_SIZE => {
                let span = Span { addr, len: bytes.into() };
                if tile.cores[core.index()].in_kernel(event.pc) {
                    self.write_l1(tile, Some(core), actor, span);
                }
                tile.caches.drop_line(core, addr);
                self.wrote(tile, Some(core), actor, span);
                self.may_know_l1(tile, core, span, None, event.at);
                self.may_know_stores(tile, core, addr, event.at);
                if core == Processor::Brisc {
                    self.watch_done(tile, addr, bytes, value);
                }
            }
            What::Load { addr, bytes, .. } if is_local(addr) => self.local(tile, (core, actor), addr, bytes, false),
            What::Store { addr, bytes, .. } if is_local(addr) => self.local(tile, (core, actor), addr, bytes, true),
            What::Load { addr, value, .. } => {
                protocol::looked(tile, core, addr, &mut self.reports);
                self.saw_counter(tile, core, addr, value);
            }
            What::Store { addr, value, .. } => {
                self.set_by_store(tile, core, actor, addr);
                self.stored_counter(tile, core, actor, addr, value);
            }
            What::Tensix { thread, word } if self.follows_state => self.executed(tile, core, actor, (thread, word)),
            What::Atomic { addr, .. } => {
                tile.caches.flush(core);
                let span = Span { addr, len: 4 };
                if tile.cores[core.index()].in_kernel(event.pc) {
                    self.write_l1(tile, Some(core), actor, span);
                }
                self.wrote(tile, Some(core), actor, span);
            }
            What::Fence => tile.caches.flush(core),
            What::Request(ref request) => self.requested(tile, core, actor, request),
            What::StaleCode | What::Wrapped { .. } | What::PostLost { .. } | What::Misaligned(_) => {
                self.rare(tile, By::Core(core), actor, &event.what);
            }
            _ => {}
        }
    }

    /// A load from L1.
    #[inline]
    fn loaded(&mut self, tile: &mut Tile, (core, actor): (Processor, Actor), span: Span, (value, cached): (u32, bool)) {
        let pc = actor.code.map_or(0, |code| code.pc);
        let in_kernel = tile.cores[core.index()].in_kernel(pc);
        if cached {
            if let Some(by) = tile.caches.stale(core, span.addr, span.len) {
                let target = Some(in_l1(tile.xy, span));
                self.reports.report(&rows::MISSING_FENCE, actor, target, || {
                    let what = format!("loads from its copy of {:#x}, which was written since", span.addr);
                    (what, Some(by))
                });
            }
        } else {
            tile.caches.fill(core, span.addr);
        }
        if in_kernel {
            self.read_l1(tile, core, actor, span);
        } else if self.stranger.is_some() {
            self.reads_null(actor, in_l1(tile.xy, span));
        } else if core == Processor::Brisc {
            self.watch_go(tile, span, value);
        }
        self.check_written(tile, actor, span, 1);
    }

    /// BRISC's firmware has loaded a word: that of a go message, or of a launch message.
    fn watch_go(&mut self, tile: &mut Tile, Span { addr, len: bytes }: Span, value: u32) {
        let Some(firmware) = &self.firmware else { return };
        let (go, launch) = (firmware.map.go.get(), firmware.map.launch.get());
        if let Some(offset) = addr.checked_sub(go).filter(|&offset| offset < 4 * GO_ENTRIES) {
            let signal = value >> (8 * (3 - offset % 4).min(3)) & 0xFF;
            let has_signal = offset % 4 + bytes == 4;
            if has_signal && signal == u32::from(RUN_GO) && tile.launch.is_none() {
                tile.begin();
            }
        } else if let Some(offset) = addr.checked_sub(launch)
            && offset < LAUNCH_ENTRIES * LAUNCH_MSG_BYTES as u32
            && offset % LAUNCH_MSG_BYTES as u32 == 0
            && bytes == 4
        {
            tile.check_base(value);
        }
    }

    /// BRISC's firmware has stored the signal of a go message: the program is done.
    fn watch_done(&mut self, tile: &mut Tile, addr: u32, bytes: u8, value: u32) {
        let Some(firmware) = &self.firmware else { return };
        let Some(offset) = addr.checked_sub(firmware.map.go.get()) else { return };
        let is_signal = offset < 4 * GO_ENTRIES && offset % 4 + u32::from(bytes) == 4;
        if is_signal && value >> (8 * (u32::from(bytes) - 1)) == u32::from(RUN_DONE) {
            protocol::ended(tile, &self.in_flight, &mut self.reports);
            tile.end();
        }
    }

    fn saw_counter(&mut self, tile: &mut Tile, core: Processor, addr: u32, value: u32) {
        if let Some((counter, number)) = self.counter(tile, addr) {
            tile.cbs[number].saw(counter, core, value & COUNTER_MASK);
        }
    }

    /// The counter at a register, and the position of its buffer among those of the program.
    #[inline]
    fn counter(&self, tile: &Tile, addr: u32) -> Option<(Counter, usize)> {
        let counter = Counter::at(addr, self.firmware.as_ref()?.map.cb_stream)?;
        Some((counter, tile.cbs.iter().position(|cb| cb.note.index == counter.index())?))
    }

    fn stored_counter(&mut self, tile: &mut Tile, core: Processor, actor: Actor, addr: u32, value: u32) {
        let Some((counter, number)) = self.counter(tile, addr) else { return };
        if !tile.cores[core.index()].in_kernel(actor.code.map_or(0, |code| code.pc)) {
            return;
        }
        let pops = matches!(counter, Counter::Acked(_)).then(|| tile.cbs[number].pops(value & COUNTER_MASK));
        let (wrong, early) = tile.cbs[number].counted(counter, core, value & COUNTER_MASK);
        if let Some(pages) = pops.filter(|_| wrong.is_none()) {
            self.popped(tile, (core, actor), number, pages);
        }
        if let Some(wrong) = wrong {
            self.report_cb(tile, number, actor, None, &wrong);
        }
        if let Some((actor, wrong)) = early {
            self.report_cb(tile, number, actor, None, &wrong);
        }
    }

    /// A core has popped pages: a write that it has started from one of them, and of which it has
    /// seen nothing since, may still read it.
    fn popped(&mut self, tile: &Tile, (core, actor): (Processor, Actor), number: usize, pages: u64) {
        let cb = &tile.cbs[number];
        let unseen = tile.cores[core.index()].unseen.iter().flatten();
        let from = |issued: &&Arc<Issued>| {
            let (addr, len) = (u32::try_from(issued.request.local_addr), u32::try_from(issued.request.len));
            addr.is_ok_and(|addr| cb.has_popped(pages, addr, len.unwrap_or(u32::MAX)))
        };
        let Some(write) = unseen.filter(|issued| issued.request.kind == RequestKind::Write).find(from) else { return };
        self.reports.report(&rows::CB_POPPED_IN_FLIGHT, actor, None, || {
            let Request { len, noc, .. } = write.request;
            let what = format!(
                "pops a page of circular buffer {} of which a write of NoC {noc}, of {len} bytes, may not have left",
                cb.note.name
            );
            (what, Some(write.actor.by(write.agent()).place(None)))
        });
    }

    /// What a unit of the coprocessor does.
    fn on_unit(&mut self, tile: &mut Tile, unit: Unit, event: &Event) {
        if let What::Dst { thread, unit, blocks, writes } = event.what {
            let pushed = Processor::ALL.get(Processor::Trisc0.index() + usize::from(thread)).copied();
            if let Some(core) = pushed.filter(|_| self.follows_state) {
                let actor = Actor::core(tile.xy, core, event.pc, event.at).by(Who::Thread(thread));
                self.used_dst(tile, core, actor, Used { thread, unit, blocks, writes });
            }
            return;
        }
        let (What::UnitRead { by, .. }
        | What::UnitReads { by, .. }
        | What::UnitWrite { by, .. }
        | What::UnitStore { by, .. }) = event.what
        else {
            return;
        };
        let core = by.unwrap_or(Processor::Brisc);
        tile.sees(core);
        let thread = core.index().saturating_sub(Processor::Trisc0.index()) as u8;
        let agent = match unit {
            Unit::Unpacker(number) => Who::Unpacker(number),
            Unit::Packer => Who::Packer(0),
            Unit::Mover | Unit::Scalar | Unit::Matrix | Unit::Vector | Unit::Gate => Who::Thread(thread),
        };
        let actor = Actor::core(tile.xy, core, event.pc, event.at).by(agent);
        let in_kernel = by.is_some_and(|core| tile.cores[core.index()].in_kernel(event.pc));
        match event.what {
            What::UnitRead { addr, len, .. } if len > 0 => {
                self.read_by_unit(tile, (in_kernel, core), actor, Span { addr, len });
            }
            What::UnitReads { spans, .. } if spans.len > 0 => {
                for (addr, len) in spans.iter() {
                    self.read_by_unit(tile, (in_kernel, core), actor, Span { addr, len });
                }
            }
            What::UnitWrite { addr, len, .. } if len > 0 => {
                let span = Span { addr, len };
                if in_kernel {
                    self.write_l1(tile, Some(core), actor, span);
                }
                self.wrote(tile, None, actor, span);
            }
            What::UnitStore { addr, value, .. } => self.stored_counter(tile, core, actor, addr, value),
            _ => {}
        }
    }

    #[inline]
    fn read_by_unit(&mut self, tile: &mut Tile, (in_kernel, core): (bool, Processor), actor: Actor, span: Span) {
        if in_kernel {
            self.read_l1(tile, core, actor, span);
        }
        self.check_written(tile, actor, span, PADDING.min(span.len));
    }

    /// Bytes of L1 have been written.
    #[inline]
    pub(super) fn wrote(&mut self, tile: &mut Tile, core: Option<Processor>, actor: Actor, span: Span) {
        tile.wrote(span.addr, span.len.min(L1_SIZE - span.addr), core, || actor.place(None));
    }

    fn launched(&mut self, launch: &Arc<LaunchNote>) {
        self.launches = launch.number + 1;
        for kernel in launch.roles.iter().flat_map(|role| &role.kernels) {
            let end = &mut self.local_ends[kernel.processor.index()];
            *end = kernel.local.end.max(*end);
        }
        for &xy in &launch.cores {
            self.tiles.get(xy).pending.push_back(Arc::clone(launch));
        }
    }

    /// The number of the oldest launch that is not over.
    pub(super) fn oldest(&self) -> u64 {
        let of = |tile: &Tile| tile.launch.iter().chain(&tile.pending).map(|launch| launch.number).min();
        self.tiles.iter().filter_map(of).min().unwrap_or(self.launches)
    }
    /// Whether no program runs or is to run.
    pub(super) fn is_idle(&self) -> bool {
        self.oldest() == self.launches
    }
}

/// Bytes that may stay unwritten in what is read at once: padding up to the alignment of DRAM.
pub(super) const PADDING: u32 = tilework_abi::DRAM_ALIGN;

#[inline]
fn is_local(addr: u32) -> bool {
    addr.wrapping_sub(LOCAL_BASE) < tilework_abi::tensix::LOCAL_SIZE_DM
}

/// A span of L1 as the target of a finding.
pub(super) fn in_l1(tile: NocXy, span: Span) -> Target {
    Target { space: Space::L1, tile, addr: span.addr.into(), bytes: span.len }
}

impl Observer for CheckObserver {
    fn wants(&self) -> Wants {
        let state = if self.follows_state { Wants::TENSIX } else { Wants::NOTHING };
        Wants::ACCESSES | Wants::LOCAL | Wants::ARRIVALS | Wants::REGISTERS | state
    }

    fn judges(&self) -> bool {
        self.reports.judges()
    }

    fn ends(&self) -> bool {
        self.reports.ends()
    }

    fn boundaries(&self) -> Vec<Range<u32>> {
        let Some(map) = self.firmware.as_ref().map(|firmware| firmware.map) else { return Vec::new() };
        let (go, launch) = (map.go.get(), map.launch.get());
        // Of a launch message the first word (`Self::watch_go`).
        let launches = (0..LAUNCH_ENTRIES).map(|entry| launch + entry * LAUNCH_MSG_BYTES as u32);
        std::iter::once(go..go + 4 * GO_ENTRIES).chain(launches.map(|at| at..at + 4)).collect()
    }

    fn unjudged(&self) -> Unjudged {
        let Some(map) = self.firmware.as_ref().map(|firmware| firmware.map) else { return Unjudged::default() };
        let start = map.firmware_text.iter().map(|start| start.get()).min().unwrap_or(0);
        let end = map.firmware_end.iter().map(|end| end.get()).max().unwrap_or(0);
        // Kernels lie behind it, whatever the map.
        let code = start..end.min(map.kernel_config.get()).min(map.text_cache.get()).min(map.data.get());
        let go = map.go.get();
        let highest = self.local_ends.iter().zip(map.kernel_local).map(|(kernels, firmware)| firmware.max(*kernels));
        let mut stacks = [u32::MAX; 5];
        for (stack, limit) in stacks.iter_mut().zip(highest) {
            *stack = limit.saturating_add(LARGEST_OFFSET + 1);
        }
        let tiles = self.tiles.iter().filter(|tile| tile.is_queue).map(|tile| tile.xy).collect();
        // Only what kernels leave in the coprocessor is set by registers behind those of streams
        // (`Self::set_by_store`), and not by those through which instructions are pushed.
        let registers = if self.follows_state { INSTRN_BUF_BASE..PC_BUF_BASE } else { MOP_CFG_BASE..u32::MAX };
        Unjudged { code, stacks, polled: go..go + 4 * GO_ENTRIES, registers, tiles, fences: true, spans: true }
    }

    fn sees_counters_once(&self) -> bool {
        true
    }

    fn known(&mut self) -> Vec<Known> {
        self.is_asked = true;
        std::mem::take(&mut self.known)
    }

    fn events(&mut self, events: &[Event]) {
        self.look(events.iter());
    }

    fn in_order(&mut self, events: &[Event], places: &[u32]) {
        self.look(places.iter().map(|&place| &events[place as usize]));
    }

    fn note(&mut self, _at: Cycle, note: &Note) {
        match note {
            Note::Firmware(firmware) => {
                self.tiles.set_below_buffers(firmware.map.data.get());
                self.firmware = Some(Arc::clone(firmware));
            }
            Note::Queue(queue) => {
                self.tiles.get(queue.tile).is_queue = true;
            }
            Note::Allocated(buffer) => {
                self.buffers.add(buffer, self.launches);
                self.forget_written(buffer);
            }
            Note::Commands(_) => {}
            Note::Within(buffer) => self.buffers.add(buffer, self.launches),
            Note::Freed(id) => {
                let oldest = self.oldest();
                self.buffers.free(*id, self.launches, oldest);
            }
            Note::Launch(launch) => self.launched(launch),
        }
    }
}
