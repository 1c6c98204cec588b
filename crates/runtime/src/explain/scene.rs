//! The stopped device, and the reports about it.

use super::report::{
    BudgetReport, BusyCore, ChainLink, DeadlockReport, FaultPlace, Mailboxes, QueueView, StoppedState, Waiter, Word,
};
use super::words::{Actor, Meaning};
use crate::device::{Running, queue_kernels_at};
use crate::elf::{FirmwareImage, SourceLocation};
use crate::memory::Allocator;
use crate::prebuilt::CqKernels;
use crate::queue::{CommandQueue, Sent};
use std::collections::BTreeMap;
use std::rc::Rc;
use tilework_abi::addr::L1Addr;
use tilework_abi::board::Board;
use tilework_abi::convert::{low32, usize_of};
use tilework_abi::cq::dispatch::WaitFlags;
use tilework_abi::cq::layout::{QueueId, dispatch_core};
use tilework_abi::cq::status::{Kernel, word};
use tilework_abi::cq::tiles::{GoSender, Part, QueueTiles, Queues};
use tilework_abi::l1::{MemoryMap, sync};
use tilework_abi::msg::{RUN_DONE, RUN_GO};
use tilework_abi::noc::NocXy;
use tilework_abi::tensix::{self, Processor};
use tilework_cq::DispatchCommand;
use tilework_driver::{Inspect, RunningCore, WaitingCore, WaitingThread};

/// Commands before and after the current one that a report shows.
const AROUND: u64 = 6;

/// What a tile is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum TileKind {
    /// A prefetch core: what it runs.
    Prefetch(Part),
    /// A dispatch core, or that of the subordinate: what it runs.
    Dispatch(Part),
    /// Any other.
    Worker,
}

impl TileKind {
    /// A number for each kind, for grouping.
    const fn number(self) -> u8 {
        match self {
            Self::Prefetch(part) | Self::Dispatch(part) => 1 + part as u8,
            Self::Worker => 0,
        }
    }
}

/// A queue and the programs in it.
#[derive(Clone, Copy)]
pub(crate) struct Lane<'a> {
    pub queue: &'a CommandQueue,
    /// Its commands that are not known to be completed, oldest first.
    pub sent: &'a [Sent],
    /// The number in the queue of the first of the programs.
    pub first: usize,
    /// The programs that were being run.
    pub batch: &'a [Running],
}

/// Words of L1, by tile and address.
pub(crate) type Looked = BTreeMap<(NocXy, L1Addr), u32>;

/// Everything that a report needs. Of two queues it speaks of one ([`Scene::about`]).
#[derive(Clone)]
pub(crate) struct Scene<'a> {
    pub board: Board,
    pub queues: Queues,
    /// The queue that it speaks of.
    pub at: QueueId,
    pub map: &'a MemoryMap,
    /// The chip's inner state, when the link can show it.
    pub chip: Option<&'a dyn Inspect>,
    /// What was read of L1 through windows otherwise.
    pub looked: &'a Looked,
    pub l1: &'a Allocator<L1Addr>,
    pub firmware: &'a [FirmwareImage; 5],
    pub cq_kernels: &'a CqKernels,
    /// The command queue, under fast dispatch.
    pub queue: Option<&'a CommandQueue>,
    /// Its commands that are not known to be completed, oldest first.
    pub sent: &'a [Sent],
    /// The number in the queue of the first of the programs.
    pub first: usize,
    /// The programs that were being run.
    pub batch: &'a [Running],
    /// The device's other queue.
    pub other: Option<Lane<'a>>,
    /// The waiting cores; empty unless a deadlock is explained.
    pub waiting: Rc<[WaitingCore]>,
}

impl<'a> Scene<'a> {
    /// The same scene, as one about the other queue; this one, if there is no other.
    pub(super) fn turned(&self) -> Self {
        let Some((other, queue)) = self.other.zip(self.queue) else { return self.clone() };
        Self {
            at: other.queue.id(),
            queue: Some(other.queue),
            sent: other.sent,
            first: other.first,
            batch: other.batch,
            other: Some(Lane { queue, sent: self.sent, first: self.first, batch: self.batch }),
            ..self.clone()
        }
    }
    /// The same scene, as one about the queue whose tile this is, or which has started the program
    /// of the worker.
    pub(super) fn about(&self, tile: NocXy) -> Self {
        let of_other = match self.queues.at(self.board, tile) {
            Some((queue, _)) => queue != self.at,
            None => !self.has_started(tile) && self.turned().has_started(tile),
        };
        if of_other { self.turned() } else { self.clone() }
    }
    /// Whether the program that the queue has started last, and not waited for, has a tile.
    fn has_started(&self, tile: NocXy) -> bool {
        let started = self.started().and_then(|i| self.batch.get(i));
        started.is_some_and(|running| running.layout.cores.contains(&tile))
    }
    /// The scene about the queue that is to blame: the other one, if this has nothing to do or
    /// waits for it.
    fn blamed(&self) -> Self {
        let waits = |command: &DispatchCommand| match command {
            DispatchCommand::Wait(wait) => {
                let event = self.other.map(|other| dispatch_core::last_event(other.queue.id()));
                wait.flags.contains(WaitFlags::WAIT_MEMORY) && Some(wait.addr) == event
            }
            _ => false,
        };
        let blameless = self.queue.is_some_and(CommandQueue::is_idle) || self.current_command().is_some_and(waits);
        if blameless && self.other.is_some_and(|other| !other.queue.is_idle()) { self.turned() } else { self.clone() }
    }
    /// The command that the dispatcher is at.
    fn current_command(&self) -> Option<&DispatchCommand> {
        self.sent.get(usize_of(self.executed()?))?.what.command()
    }
    /// The queue's tiles.
    fn tiles(&self) -> QueueTiles {
        self.queues.layout().queue(self.at)
    }
    /// `name` of the queue; with its number, where there are two.
    pub(super) fn named(&self, name: &str) -> String {
        if self.other.is_some() { format!("{name} of queue {}", self.at) } else { name.to_owned() }
    }

    /// What a tile of a command queue runs; nothing on other tiles and without a queue.
    fn parts(&self, tile: NocXy) -> &'static [Part] {
        if self.queue.is_some() { self.queues.parts_at(self.board, tile) } else { &[] }
    }
    pub(super) fn kind(&self, tile: NocXy) -> TileKind {
        match self.parts(tile).first() {
            Some(&part @ (Part::Prefetch | Part::PrefetchH | Part::PrefetchD)) => TileKind::Prefetch(part),
            Some(&part) => TileKind::Dispatch(part),
            None => TileKind::Worker,
        }
    }
    /// The core that runs a part on `tile`.
    fn core_of(&self, tile: NocXy, processor: Processor) -> Option<Actor> {
        self.queue.map(|_| Actor::Core(tile, processor))
    }
    /// The core that executes the prefetcher's commands.
    pub(super) fn prefetcher(&self) -> Option<Actor> {
        self.core_of(self.tiles().prefetch_tile(self.board), Processor::Brisc)
    }
    /// The core that reads records.
    pub(super) fn reader(&self) -> Option<Actor> {
        self.core_of(self.tiles().issue_tile(self.board), Processor::Brisc)
    }
    /// The core that executes the dispatcher's commands.
    pub(super) fn dispatcher(&self) -> Option<Actor> {
        self.core_of(self.tiles().dispatch_tile(self.board), Processor::Brisc)
    }
    /// The core that writes the completion FIFO.
    pub(super) fn completer(&self) -> Option<Actor> {
        self.core_of(self.tiles().completion_tile(self.board), Processor::Brisc)
    }
    pub(super) fn subordinate(&self) -> Option<Actor> {
        self.core_of(self.tiles().subordinate_tile(self.board), Processor::Ncrisc)
    }
    /// Who sends go signals, by name and as a core.
    pub(super) fn go_sender(&self) -> (&'static str, Option<Actor>) {
        match self.queues.layout().go() {
            GoSender::Dispatcher => ("the dispatcher", self.dispatcher()),
            GoSender::Subordinate => ("the dispatch subordinate", self.subordinate()),
        }
    }

    /// A word of a tile's L1 as it is now.
    fn peek(&self, tile: NocXy, address: L1Addr) -> Option<u32> {
        let Some(chip) = self.chip else { return self.looked.get(&(tile, address)).copied() };
        let l1 = chip.l1(tile)?;
        let bytes = l1.get(address.get() as usize..)?.first_chunk()?;
        Some(u32::from_le_bytes(*bytes))
    }
    /// The signal of a tile's go message.
    pub(super) fn go_signal(&self, tile: NocXy) -> Option<u8> {
        Some(self.peek(tile, self.map.go)?.to_le_bytes()[3])
    }
    /// Whether a core sleeps on `address`.
    pub(super) fn watches(&self, tile: NocXy, core: Processor, address: u32) -> bool {
        let of_core = |w: &&WaitingCore| (w.tile, w.core) == (tile, core);
        self.waiting.iter().filter(of_core).any(|w| w.watched.iter().any(|w| w.address == address))
    }

    /// The count that a core sleeps on at `address`, a circular buffer's.
    pub(super) fn seen(&self, tile: NocXy, core: Processor, address: u32) -> Option<u32> {
        let of_core = |w: &&WaitingCore| (w.tile, w.core) == (tile, core);
        let watched = self.waiting.iter().filter(of_core).flat_map(|w| &w.watched).find(|w| w.address == address)?;
        Some(watched.value & tilework_abi::cb::COUNTER_MASK)
    }

    /// How many commands the dispatcher has executed since the last event; `None` for a dispatcher
    /// that does not count.
    fn executed(&self) -> Option<u64> {
        let queue = self.queue?;
        let count =
            self.peek(self.tiles().dispatch_tile(self.board), Kernel::Dispatch.status().offset(word::COMMANDS))?;
        // The device counts modulo 2^32.
        let executed = u64::from(count.wrapping_sub(low32(queue.completed())));
        (executed <= self.sent.len() as u64).then_some(executed)
    }
    /// The position of the program that the dispatcher is at.
    fn current_program(&self) -> Option<usize> {
        self.sent.get(usize_of(self.executed()?))?.program?.checked_sub(self.first)
    }
    /// The count that the dispatcher waits for.
    pub(super) fn wanted_count(&self) -> Option<u32> {
        match self.current_command()? {
            DispatchCommand::Wait(wait) => Some(wait.count),
            // In a trace the go signal waits for the programs before it.
            DispatchCommand::SendGoSignal(go) => Some(go.wait_count),
            _ => None,
        }
    }
    /// The cores that the last go signals went to.
    pub(super) fn launched(&self) -> Vec<NocXy> {
        let before = usize_of(self.executed().unwrap_or(0));
        let words = self.sent.iter().take(before).rev().find_map(|s| match s.what.command() {
            Some(DispatchCommand::SetGoSignalNocData(words)) => Some(words),
            _ => None,
        });
        match (self.running(), words) {
            (Some(running), _) => running.layout.cores.clone(),
            (None, Some(words)) => words.iter().map(|&w| NocXy::decode(w)).collect(),
            (None, None) => Vec::new(),
        }
    }

    /// The program that is being run: the one that was started last, unless its end has been waited
    /// for; then the one whose commands are being executed.
    fn running(&self) -> Option<&'a Running> {
        match self.started().or_else(|| self.current_program()) {
            Some(i) => self.batch.get(i),
            None => self.batch.first(),
        }
    }
    /// The position of the program whose go signal was the last, unless a wait came behind it.
    fn started(&self) -> Option<usize> {
        let executed = usize_of(self.executed()?);
        let mut last = self.sent.iter().take(executed).rev().filter_map(|s| match s.what.command()? {
            DispatchCommand::SendGoSignal(_) => Some(s.program.and_then(|program| program.checked_sub(self.first))),
            DispatchCommand::Wait(wait) if wait.flags.contains(WaitFlags::WAIT_STREAM) => Some(None),
            _ => None,
        });
        last.next().flatten()
    }
    /// The program that a tile is running.
    pub(super) fn program_of(&self, tile: NocXy) -> Option<&'a Running> {
        let on_tile = |r: &&Running| r.layout.cores.contains(&tile);
        let others = self.other.map_or(&[][..], |other| other.batch);
        let runs = self.about(tile).running().filter(on_tile);
        runs.or_else(|| self.batch.iter().chain(others).find(on_tile))
    }
    /// The processors of a tile that run kernels.
    pub(super) fn kernels_of(&self, tile: NocXy) -> Vec<Processor> {
        let role = self.program_of(tile).and_then(|r| Some(&r.layout.roles[r.role_of(tile)?]));
        let enables = role.map_or(0, |role| role.enables);
        Processor::ALL.into_iter().filter(|p| enables >> p.index() & 1 != 0).collect()
    }

    /// Whether the kernel of a waiting core has returned: the state of a subordinate says so, and
    /// BRISC waits in its firmware, for words by which kernels are started and end.
    pub(super) fn has_returned(&self, tile: NocXy, core: Processor) -> bool {
        match core.index().checked_sub(1) {
            Some(subordinate) => {
                let states = self.peek(tile, self.map.subordinate_sync()).map(u32::to_le_bytes);
                states.is_some_and(|states| states[subordinate] == sync::DONE)
            }
            None => {
                let of_core = |w: &&WaitingCore| (w.tile, w.core) == (tile, core);
                let watched = self.waiting.iter().filter(of_core).flat_map(|w| &w.watched);
                let mut started_by =
                    watched.map(|word| self.mailbox_word(tile, core, L1Addr::new(word.address), word.value).is_some());
                started_by.next().is_some_and(|first| first && started_by.all(|is| is))
            }
        }
    }
    /// Kernels of the program of `tile` that have not returned, that of `core` of `tile` left out.
    pub(super) fn others_left(&self, tile: NocXy, core: Processor) -> usize {
        let Some(running) = self.program_of(tile) else { return 0 };
        let all =
            running.layout.cores.iter().flat_map(|&tile| self.kernels_of(tile).into_iter().map(move |p| (tile, p)));
        all.filter(|&(t, p)| (t, p) != (tile, core) && !self.has_returned(t, p)).count()
    }

    /// What a core runs at `pc`, and the source of it.
    pub(crate) fn locate(&self, tile: NocXy, core: Processor, pc: u32) -> (String, Option<SourceLocation>) {
        if let Some(location) = self.firmware[core.index()].locate(pc) {
            return (format!("firmware {}", self.firmware[core.index()].name()), Some(location));
        }
        let base = self.map.kernel_config;
        for (offset, _, kernel) in queue_kernels_at(self.parts(tile), self.cq_kernels) {
            if let Some(location) = kernel.locate(pc, base.offset(offset)) {
                return (format!("kernel {}", kernel.name()), Some(location));
            }
        }
        if let Some(found) = self.locate_in_program(tile, core, pc) {
            return found;
        }
        ("unknown code".into(), None)
    }

    fn locate_in_program(&self, tile: NocXy, core: Processor, pc: u32) -> Option<(String, Option<SourceLocation>)> {
        let running = self.program_of(tile)?;
        let number = running.role_of(tile)?;
        let kernel = running.program.roles.get(number)?.kernels[core.index()].as_ref()?;
        let at = running.layout.base.offset(running.layout.roles[number].text[core.index()]);
        let location = kernel.locate(pc, at)?;
        let mut runs = format!("kernel {} of program {}", kernel.name(), running.program.name);
        if let Some(role) = &running.program.roles[number].name {
            runs += &format!(", role {role}");
        }
        Some((runs, Some(location)))
    }

    /// What a core that faulted at `pc` was running.
    pub(crate) fn fault_place(&self, tile: NocXy, processor: Processor, pc: u32) -> FaultPlace {
        let (runs, location) = self.locate(tile, processor, pc);
        FaultPlace { tile, processor, runs, pc, location }
    }

    /// The queue as the report shows it.
    fn queue_view(&self) -> Option<QueueView> {
        let queue = self.queue?;
        let sent = self.sent;
        let executed = self.executed();
        let at = executed.unwrap_or(sent.len() as u64);
        let line = |i: u64| {
            let s = sent.get(usize_of(i))?;
            Some((i, s.what.to_string(), Some(i) == executed))
        };
        let program = self.current_program().and_then(|i| self.batch.get(i)).map(|r| r.program.name.clone());
        let trace = executed.and_then(|i| sent.get(usize_of(i))).and_then(|sent| sent.trace);
        Some(QueueView {
            queue: self.other.map(|_| self.at),
            event: queue.event(),
            executed,
            sent: sent.len() as u64,
            around: (at.saturating_sub(AROUND)..at + AROUND).filter_map(line).collect(),
            program,
            trace,
        })
    }

    /// The report about a deadlock.
    pub(crate) fn deadlock(&self, cycle: u64) -> DeadlockReport {
        let mut idle = 0;
        let mut groups: BTreeMap<_, Waiter> = BTreeMap::new();
        let mut edges: BTreeMap<Actor, (String, Vec<Actor>)> = BTreeMap::new();
        let mut sources = BTreeMap::new();
        for w in self.waiting.iter() {
            let words = self.words(w);
            if !words.is_empty() && words.iter().all(|(_, m)| m.idle) {
                idle += 1;
                continue;
            }
            let what = words.iter().filter(|(_, m)| !m.idle).map(|(word, _)| word.what.clone()).collect::<Vec<_>>();
            let what = if what.is_empty() { "nothing: an endless loop".to_owned() } else { what.join(" or ") };
            let actors = words.iter().flat_map(|(_, m)| m.actors.iter().copied()).collect();
            edges.insert(Actor::Core(w.tile, w.core), (what, actors));
            let words: Vec<Word> = words.into_iter().map(|(word, _)| word).collect();
            // Tiles in the same place that wait for the same words are one entry.
            let seen: Vec<(u32, u32, String)> = words.iter().map(|w| (w.address, w.value, w.writers.clone())).collect();
            let program = self.program_of(w.tile).map(|r| r.program.name.clone());
            let kind = self.kind(w.tile).number();
            let (runs, location) = sources
                .entry((kind, w.core, w.pc, program.clone()))
                .or_insert_with(|| self.locate(w.tile, w.core, w.pc));
            groups
                .entry((kind, w.core, w.pc, program, seen))
                .or_insert_with(|| Waiter {
                    tiles: Vec::new(),
                    processor: w.core,
                    runs: runs.clone(),
                    pc: w.pc,
                    location: location.clone(),
                    words,
                })
                .tiles
                .push(w.tile);
        }
        let (chain, circle) = self.chain(&edges);
        let program = |r: &Running| r.program.name.clone();
        let blamed = self.blamed();
        let programs = match blamed.current_program().and_then(|i| blamed.batch.get(i)) {
            Some(running) => vec![program(running)],
            None => blamed.batch.iter().take(8).map(program).collect(),
        };
        let waiters = groups.into_values().collect();
        DeadlockReport { cycle, programs, chain, circle, waiters, idle, queue: blamed.queue_view() }
    }

    /// The words that a core waits for, with their meanings. A blocked access counts as a
    /// word of value 0.
    fn words(&self, w: &WaitingCore) -> Vec<(Word, Meaning)> {
        let watched = w.watched.iter().map(|word| (word.address, word.value, word.stale));
        let blocked = w.blocked_on.map(|addr| (addr, 0, false));
        let name = |(address, value, stale)| {
            let meaning = self.meaning(w.tile, w.core, address, self.whole_word(w.tile, address, value));
            let (mut what, writers) = (meaning.what.clone(), meaning.writers.clone());
            // Pushes, Manual TTSync, PC buffers and semaphores end with what a Tensix thread does.
            if (tensix::INSTRN_BUF_BASE..tensix::MAILBOX_BASE).contains(&address) {
                w.coprocessor.iter().for_each(|t| what = format!("{what}; {}", self.thread(w.tile, t)));
            }
            (Word { address, value, what, writers, stale }, meaning)
        };
        watched.chain(blocked).map(name).collect()
    }

    /// What a Tensix thread waits for, and the line that pushed what stands at its wait gate.
    fn thread(&self, tile: NocXy, thread: &WaitingThread) -> String {
        let WaitingThread { what, pushed, .. } = thread;
        let location = thread.core.zip(thread.pc).and_then(|(core, pc)| self.locate(tile, core, pc).1);
        match location {
            Some(location) => format!("{what}; {pushed}, {location}"),
            None => format!("{what}; {pushed}"),
        }
    }

    /// The whole word when a core looks at a byte of its go message or of the subordinates' states.
    fn whole_word(&self, tile: NocXy, address: u32, value: u32) -> u32 {
        let mut words = [self.map.go, self.map.subordinate_sync()].into_iter();
        let whole = words.find(|word| L1Addr::new(address).offset_from(*word).is_some_and(|byte| byte < 4));
        whole.and_then(|word| self.peek(tile, word)).unwrap_or(value)
    }

    /// Follows who waits for whom from the host on.
    fn chain(&self, edges: &BTreeMap<Actor, (String, Vec<Actor>)>) -> (Vec<ChainLink>, Option<usize>) {
        let name = |actor: Actor| match actor {
            Actor::Host => "the host".to_owned(),
            Actor::Core(tile, core) => {
                let scene = self.about(tile);
                match Some(actor) {
                    it if it == scene.prefetcher() => scene.named("the prefetcher"),
                    it if it == scene.dispatcher() => scene.named("the dispatcher"),
                    _ => format!("{core} of {tile}"),
                }
            }
        };
        let (what, first) = match self.queue {
            Some(queue) => {
                let what = self.named(&format!("completion event {}", queue.event()));
                (what, self.dispatcher().into_iter().collect())
            }
            None => {
                let cores = self.running().map(|r| r.layout.cores.clone()).unwrap_or_default();
                let busy = |c: &NocXy| self.go_signal(*c) != Some(RUN_DONE);
                let actors: Vec<Actor> =
                    cores.into_iter().filter(busy).map(|c| Actor::Core(c, Processor::Brisc)).collect();
                ("the go messages to say DONE".to_owned(), actors)
            }
        };
        let mut chain = vec![ChainLink { who: name(Actor::Host), what }];
        let mut path = vec![Actor::Host];
        let mut next: Vec<Actor> = first;
        loop {
            if let Some(at) = path.iter().position(|a| next.contains(a)) {
                return (chain, Some(at));
            }
            let Some(&actor) = next.iter().find(|a| edges.contains_key(a)) else { return (chain, None) };
            let (what, actors) = &edges[&actor];
            chain.push(ChainLink { who: name(actor), what: what.clone() });
            path.push(actor);
            next = actors.clone();
        }
    }

    /// The report about a run that was ended while it went on.
    pub(crate) fn budget(&self, cycles: u64, interrupted: bool) -> BudgetReport {
        let busy = self.chip.map(|chip| self.busy(&chip.busy()));
        let mailboxes = if self.chip.is_none() { self.mailboxes() } else { Vec::new() };
        BudgetReport { cycles, interrupted, busy, mailboxes, queue: self.blamed().queue_view() }
    }

    /// What the tiles of the program that is being run say, those that say the same together.
    fn mailboxes(&self) -> Vec<Mailboxes> {
        let mut groups: BTreeMap<(bool, u8, Vec<Processor>), Vec<NocXy>> = BTreeMap::new();
        for &tile in self.running().into_iter().flat_map(|running| &running.layout.cores) {
            let Some(signal) = self.go_signal(tile) else { continue };
            let mut cores: Vec<Processor> = match signal {
                RUN_GO => self.kernels_of(tile).into_iter().filter(|&core| !self.has_returned(tile, core)).collect(),
                _ => Vec::new(),
            };
            cores.sort_by_key(|&core| (core == Processor::Brisc, core));
            groups.entry((signal == RUN_DONE, signal, cores)).or_default().push(tile);
        }
        groups.into_iter().map(|((_, signal, running), tiles)| Mailboxes { tiles, signal, running }).collect()
    }

    /// What all cores do, of a chip that can be looked into.
    pub(crate) fn state(&self) -> Option<StoppedState> {
        let chip = self.chip?;
        let scene = Self { waiting: chip.waiting().into(), ..self.clone() };
        let DeadlockReport { waiters, idle, queue, .. } = scene.deadlock(0);
        Some(StoppedState { busy: self.busy(&chip.busy()), waiters, idle, queue })
    }

    /// The cores that execute, those with the same instruction of the same kernel together.
    fn busy(&self, running: &[RunningCore]) -> Vec<BusyCore> {
        let mut cores: BTreeMap<(Processor, u32, u8, Option<usize>), Vec<NocXy>> = BTreeMap::new();
        for &RunningCore { tile, core, pc } in running {
            let role = self.program_of(tile).and_then(|running| running.role_of(tile));
            cores.entry((core, pc, self.kind(tile).number(), role)).or_default().push(tile);
        }
        let core = |((processor, pc, ..), tiles): ((Processor, u32, u8, Option<usize>), Vec<NocXy>)| {
            let (runs, location) = self.locate(tiles[0], processor, pc);
            BusyCore { tiles, processor, runs, pc, location }
        };
        cores.into_iter().map(core).collect()
    }
}
