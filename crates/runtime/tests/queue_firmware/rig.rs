//! A chip whose dispatch cores run our firmware, and a host that sends any record it likes.
//!
//! [`Device`](tilework_runtime::Device) sends what programs need. This host also sends split
//! relays, commands of other variants, bytes that are no command and entries that name no record,
//! so it owns the card itself. Start-up is the device's, step by step (the original's `device.py`),
//! with the same firmware and kernels.

#[path = "rig/buffers.rs"]
mod buffers;
#[path = "rig/checks.rs"]
mod checks;
#[path = "rig/rings.rs"]
mod rings;
#[path = "rig/start.rs"]
mod start;

use crate::shadow::Shadow;
use crate::sources::Sourced;
use std::collections::VecDeque;
use tilework_abi::addr::{PageCount, PcieAddr};
use tilework_abi::board::Board;
use tilework_abi::cq::completion::CompletionRange;
use tilework_abi::cq::dispatch::WaitFlags;
use tilework_abi::cq::layout::prefetch_core::{CMDDAT_Q, PREFETCH_Q, PREFETCH_Q_ENTRY_SIZE, SEM_DISPATCH_PAGES};
use tilework_abi::cq::layout::{
    PAGE_SIZE, PageRing, QueueId, SEMAPHORE_OFFSET, SemaphoreId, WORKER_SEMS, dispatch_core, host,
};
use tilework_abi::cq::prefetch::DispatcherSelect;
use tilework_abi::cq::status::Kernel;
use tilework_abi::cq::tiles::{DispatchLayout, QueueTiles, Queues};
use tilework_abi::l1::{GO_ENTRIES, WORKER};
use tilework_abi::noc::NocXy;
use tilework_cq::dispatch::{GoSignal, Wait};
use tilework_cq::issue::QueueError;
use tilework_cq::prefetch::Inline;
use tilework_cq::{CompletionFifo, DispatchCommand, IssueQueue, PrefetchCommand, PrefetchPort, Record, relay_inline};
use tilework_driver::{Card, DriverError, Pinned, Target};
use tilework_runtime::device::start_queue_kernels;
use tilework_runtime::prebuilt::{self, CqKernels};
use tilework_runtime::queue::CommandQueue;
use tilework_sim::{Chip, ChipConfig};

/// Cycles between two looks at a word of the device.
const LOOK_AGAIN: u64 = 2_000;
/// Cycles in which everything that was sent is done, if nothing is wrong.
const PATIENCE: u64 = 200_000_000;
/// Cycles between two looks at whether anything still moves.
const SETTLE: u64 = 20_000;
/// Looks after which something moves for ever.
const SETTLE_LOOKS: u32 = 10_000;

/// The prefetch queue's entries, with a way to write another entry than the record's.
struct Entries<'a> {
    card: &'a mut Card<Chip>,
    core: NocXy,
    instead: Option<u16>,
}

impl PrefetchPort for Entries<'_> {
    type Error = DriverError;

    fn read_slot(&mut self, index: u32) -> Result<u16, DriverError> {
        let mut entry = [0; 2];
        self.card.read(&Target::tile(self.core), entry_address(index), &mut entry)?;
        Ok(u16::from_le_bytes(entry))
    }
    fn write_slot(&mut self, index: u32, entry: u16) -> Result<(), DriverError> {
        let entry = self.instead.unwrap_or(entry);
        self.card.write(&Target::tile(self.core), entry_address(index), &entry.to_le_bytes())
    }
}

/// Address of entry `index` of the prefetch queue.
fn entry_address(index: u32) -> u32 {
    PREFETCH_Q.base().get() + index * PREFETCH_Q_ENTRY_SIZE
}

/// What one ring of the dispatch core has been sent.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sent {
    /// Pages that were flushed.
    pub pages: u32,
    /// Bytes behind the last flush.
    open: u32,
    /// Commands.
    pub commands: u32,
}

impl Sent {
    fn append(&mut self, ring: PageRing, bytes: u32, flush: bool) {
        self.open += bytes;
        if flush {
            self.pages += ring.pages_for(self.open).get();
            self.open = 0;
            self.commands += 1;
        }
    }
}

/// The chip, the host's side of its command queue, and what must come of everything that was sent.
pub(crate) struct Rig {
    pub board: Board,
    /// The queue that is meant, and all of the device.
    tiles: QueueTiles,
    pub queues: Queues,
    pub card: Card<Chip>,
    pub region: Pinned,
    pub shadow: Shadow,
    issue: IssueQueue,
    fifo: CompletionFifo,
    /// Pages that the completion FIFO will show, oldest first, each with its used bytes.
    expected: VecDeque<Vec<u8>>,
    events: u32,
    /// What the dispatcher was sent.
    pub dispatch: Sent,
    /// What the subordinate was sent.
    pub subordinate: Sent,
    prefetch_commands: u32,
    /// `NOTIFY_PREFETCH`s.
    notices: u32,
    /// `EXEC_BUF_END`s that were sent.
    exec_buf_ends: u32,
    /// How often each sync semaphore was named.
    notified: [u32; WORKER_SEMS as usize],
    /// What was sent last to each go message of all workers.
    pub go_words: [u32; GO_ENTRIES as usize],
    /// Offset in the command data queue behind the newest record.
    cmddat: u32,
    /// Address of the newest record's entry, and of the end of its bytes in host memory.
    last: (u32, u32),
    /// How often the issue region was started again.
    issue_wraps: u32,
    /// Whether anything went through the scratch buffer.
    scratch_used: bool,
    /// Records that go into a command buffer instead of the queue.
    buffer: Option<Vec<u8>>,
    /// Where the next command buffer lies in each bank.
    next_buffer: u32,
    /// Where all counts began.
    start: u32,
}

impl Rig {
    /// Boots `board` and starts the command queue.
    pub(crate) fn boot(board: Board) -> Self {
        Self::boot_with(board, DispatchLayout::Dispatcher)
    }
    /// Boots `board` and starts the command queue on the tiles of `layout`.
    pub(crate) fn boot_with(board: Board, layout: DispatchLayout) -> Self {
        Self::boot_on(board, layout, QueueId::FIRST)
    }
    /// The same for queue `queue`, with those before it beside it.
    pub(crate) fn boot_on(board: Board, layout: DispatchLayout, queue: QueueId) -> Self {
        Self::start(ChipConfig::new(board), layout.queue(queue), 0, &prebuilt::cq_kernels().unwrap())
    }
    /// Boots a P100 and starts the command queue with kernels of choice.
    pub(crate) fn boot_kernels(kernels: &CqKernels) -> Self {
        let tiles = DispatchLayout::Dispatcher.queue(QueueId::FIRST);
        Self::start(ChipConfig::new(Board::P100), tiles, 0, kernels)
    }
    /// Boots a chip of this configuration and starts queue `queue`, with those before it beside it.
    pub(crate) fn boot_chip(config: ChipConfig, queue: QueueId) -> Self {
        Self::start(config, DispatchLayout::Dispatcher.queue(queue), 0, &prebuilt::cq_kernels().unwrap())
    }
    /// Boots `board` and starts the command queue on the tiles of `layout`, with all counts
    /// beginning at `start`.
    pub(crate) fn boot_counted(board: Board, layout: DispatchLayout, start: i16) -> Self {
        let tiles = layout.queue(QueueId::FIRST);
        Self::start(ChipConfig::new(board), tiles, start, &prebuilt::cq_kernels().unwrap())
    }

    fn start(config: ChipConfig, tiles: QueueTiles, start: i16, kernels: &CqKernels) -> Self {
        let (board, id) = (config.board, tiles.queue);
        let queues = tiles.layout.queues(id.number() + 1);
        let mut card = Card::open(Chip::new(config).unwrap()).unwrap();
        start::boot_tiles(&mut card, board, queues);
        let mut regions = Vec::new();
        for id in queues.ids() {
            let region = card.pin(host::REGION_SIZE as usize, PcieAddr::new(id.region_noc_base().into())).unwrap();
            CommandQueue::of(board, queues, id, 0, region, false).initialise(&mut card).unwrap();
            start_queue_kernels(&mut card, board, (queues, id), &WORKER, kernels, start).unwrap();
            regions.push(region);
        }
        card.link_mut().run(SETTLE).unwrap();
        Self {
            board,
            tiles,
            queues,
            card,
            region: regions[id.index()],
            shadow: Shadow::new(board, queues),
            issue: IssueQueue::default(),
            fifo: CompletionFifo::new(CompletionRange::new(id.region_noc_base(), host::COMPLETION)),
            expected: VecDeque::new(),
            events: 0,
            dispatch: Sent::default(),
            subordinate: Sent::default(),
            prefetch_commands: 0,
            notices: 0,
            exec_buf_ends: 0,
            notified: [0; WORKER_SEMS as usize],
            go_words: [0; GO_ENTRIES as usize],
            cmddat: 0,
            last: (PREFETCH_Q.end().get(), id.region_noc_base() + host::ISSUE.offset()),
            issue_wraps: 0,
            scratch_used: false,
            buffer: None,
            next_buffer: buffers::BUFFER_BASE,
            start: i32::from(start).cast_unsigned(),
        }
    }

    // ---- words ------------------------------------------------------------

    /// A word of a tile's L1, as it is now.
    pub(crate) fn l1(&self, tile: NocXy, address: u32) -> u32 {
        let at = address as usize;
        let l1 = self.card.link().l1(tile).unwrap();
        u32::from_le_bytes(l1[at..at + 4].try_into().unwrap())
    }
    /// Writes a word of a tile from outside.
    pub(crate) fn poke(&mut self, tile: NocXy, address: u32, value: u32) {
        self.card.write32(&Target::tile(tile), address, value).unwrap();
    }
    /// A word of the dispatch core that nothing uses.
    pub(crate) fn spare_word(&self) -> u32 {
        dispatch_core::DISPATCH_S_CB.end().get() + 0x40
    }
    /// Lets cycles pass until nothing moves any more.
    pub(crate) fn settle(&mut self) {
        for _ in 0..SETTLE_LOOKS {
            if let Err(error) = self.card.link_mut().run(SETTLE) {
                self.die(&error.to_string());
            }
            if self.card.link().is_quiet() {
                return;
            }
        }
        self.die("something moves for ever");
    }
    /// Semaphore `id` of `core`, counted from zero.
    pub(crate) fn semaphore(&self, core: NocXy, id: SemaphoreId) -> u32 {
        self.count(core, id.addr(WORKER.kernel_config.get() + SEMAPHORE_OFFSET))
    }
    /// The count at `address` of `core`, from zero.
    pub(crate) fn count(&self, core: NocXy, address: u32) -> u32 {
        self.l1(core, address).wrapping_sub(self.start)
    }
    /// Whether the prefetcher has two sides.
    pub(crate) fn is_split(&self) -> bool {
        self.prefetch_core() != self.core_of(Kernel::Prefetch)
    }
    /// The word `field` of a kernel's status block.
    pub(crate) fn status(&self, kernel: Kernel, field: u32) -> u32 {
        self.l1(self.core_of(kernel), kernel.status().get() + field)
    }
    /// The core that runs `kernel`.
    pub(crate) fn core_of(&self, kernel: Kernel) -> NocXy {
        self.core_in(self.tiles, kernel)
    }
    /// The core that runs `kernel` of a queue.
    fn core_in(&self, tiles: QueueTiles, kernel: Kernel) -> NocXy {
        match kernel {
            Kernel::Prefetch => tiles.prefetch_tile(self.board),
            Kernel::Dispatch => tiles.dispatch_tile(self.board),
            Kernel::DispatchS => tiles.subordinate_tile(self.board),
        }
    }
    /// The core that reads the host's records.
    pub(crate) fn prefetch_core(&self) -> NocXy {
        self.tiles.issue_tile(self.board)
    }
    /// The core that writes the completion FIFO.
    pub(crate) fn dispatch_core(&self) -> NocXy {
        self.tiles.completion_tile(self.board)
    }

    // ---- records ------------------------------------------------------------

    /// Offset in the command data queue at which a record of `bytes` will lie: behind the newest,
    /// or at the start.
    pub(crate) fn cmddat_place(&self, bytes: u32) -> u32 {
        if self.cmddat + bytes > CMDDAT_Q.region().size() { 0 } else { self.cmddat }
    }
    /// Offset in the command data queue behind the newest record.
    pub(crate) fn cmddat(&self) -> u32 {
        self.cmddat
    }
    /// How often the issue region was started again.
    pub(crate) fn issue_wraps(&self) -> u32 {
        self.issue_wraps
    }
    /// Pages of the dispatch ring that the prefetcher may still fill once everything sent was
    /// relayed.
    pub(crate) fn free_pages(&self) -> u32 {
        self.credits(SEM_DISPATCH_PAGES).wrapping_sub(self.dispatch.pages)
    }
    /// Semaphore `id` of the prefetch core, counted from zero.
    pub(crate) fn credits(&self, id: SemaphoreId) -> u32 {
        self.semaphore(self.core_of(Kernel::Prefetch), id)
    }
    /// L1 address of the dispatcher's next command.
    pub(crate) fn dispatch_address(&self) -> u32 {
        let ring = dispatch_core::DISPATCH_CB;
        ring.base().get() + self.dispatch.pages % ring.pages().get() * ring.page_size()
    }
    /// L1 address of the subordinate's next command.
    pub(crate) fn subordinate_address(&self) -> u32 {
        let ring = dispatch_core::DISPATCH_S_CB;
        ring.base().get() + self.subordinate.pages % ring.pages().get() * ring.page_size()
    }

    /// Puts a record of any bytes into the queue if there is room; `instead` replaces its entry.
    pub(crate) fn try_record(&mut self, bytes: &[u8], instead: Option<u16>) -> bool {
        // The queue's account wants a record; only its size matters, the bytes are ours.
        let record = relay_inline(&vec![0; bytes.len() - 16]).unwrap();
        assert_eq!(record.bytes().len(), bytes.len(), "a record is a multiple of 64 bytes");
        let core = self.prefetch_core();
        let mut entries = Entries { card: &mut self.card, core, instead };
        let prepared = match self.issue.prepare(&mut entries, &record) {
            Ok(prepared) => prepared,
            Err(QueueError::Blocked { .. }) => return false,
            Err(error) => panic!("{error}"),
        };
        let offset = prepared.placement.offset;
        self.issue_wraps += u32::from(prepared.placement.wrapped);
        self.region.write(entries.card.link_mut(), offset.in_host_region(), bytes).unwrap();
        let index = self.issue.publish(&mut entries, prepared).unwrap();
        self.cmddat = self.cmddat_place(record.size()) + record.size();
        let end = self.tiles.queue.region_noc_base() + host::ISSUE.offset() + offset.get() + record.size();
        self.last = (entry_address(index), end);
        true
    }

    /// Puts a record of any bytes into the queue; reads completion pages while there is no room.
    pub(crate) fn record(&mut self, bytes: &[u8], instead: Option<u16>) {
        if let Some(buffer) = &mut self.buffer {
            return buffer.extend_from_slice(bytes);
        }
        while !self.try_record(bytes, instead) {
            let quiet = self.card.link().is_quiet();
            let before = self.expected.len();
            self.collect();
            if quiet && before == self.expected.len() {
                self.die("the queue is full and nothing moves");
            }
            self.card.link_mut().run(LOOK_AGAIN).unwrap();
        }
    }

    fn relay(&mut self, dispatcher: DispatcherSelect, payload: &[u8], flush: bool) -> Vec<u8> {
        let bytes = payload.len() as u32;
        match dispatcher {
            DispatcherSelect::Master => self.dispatch.append(dispatch_core::DISPATCH_CB, bytes, flush),
            DispatcherSelect::Subordinate => self.subordinate.append(dispatch_core::DISPATCH_S_CB, bytes, flush),
        }
        self.prefetch_commands += 1;
        let inline = Inline { dispatcher, payload: payload.to_vec() };
        let command = match flush {
            true => PrefetchCommand::RelayInline(inline),
            false => PrefetchCommand::RelayInlineNoflush(inline),
        };
        Record::new(&command).unwrap().bytes().to_vec()
    }

    /// Sends the bytes of one dispatch command, whatever they are.
    pub(crate) fn raw(&mut self, payload: &[u8]) {
        let record = self.relay(DispatcherSelect::Master, payload, true);
        self.record(&record, None);
    }
    /// Notes what a command must do and returns its bytes.
    fn note(&mut self, command: &DispatchCommand) -> Vec<u8> {
        let bytes = command.to_bytes().unwrap();
        let notifies = |wait: &Wait| wait.flags.contains(WaitFlags::NOTIFY_PREFETCH);
        self.notices += u32::from(matches!(command, DispatchCommand::Wait(wait) if notifies(wait)));
        if matches!(command, DispatchCommand::WriteLinearHHost(_)) {
            self.expected.extend(bytes.chunks(PAGE_SIZE as usize).map(<[u8]>::to_vec));
        }
        match command {
            DispatchCommand::ExecBufEnd => self.exec_buf_ends += 1,
            DispatchCommand::NotifySubordinateGoSignal(notify) => {
                let named = |i: usize| u32::from(notify.index_bitmask >> i & 1);
                self.notified.iter_mut().enumerate().for_each(|(i, count)| *count += named(i));
            }
            DispatchCommand::SendGoSignal(GoSignal { multicast_go_offset: Some(to), go_signal, .. }) => {
                self.go_words[usize::from(*to)] = *go_signal;
            }
            _ => {}
        }
        self.shadow.apply(command);
        bytes
    }
    /// Sends a command to the dispatcher.
    pub(crate) fn send(&mut self, command: &DispatchCommand) {
        let bytes = self.note(command);
        self.raw(&bytes);
    }
    /// Sends a command if there is room for its record.
    pub(crate) fn try_send(&mut self, command: &DispatchCommand) -> bool {
        let before = (self.dispatch, self.prefetch_commands);
        let payload = command.to_bytes().unwrap();
        let record = self.relay(DispatcherSelect::Master, &payload, true);
        let sent = self.try_record(&record, None);
        if sent {
            self.note(command);
        } else {
            (self.dispatch, self.prefetch_commands) = before;
        }
        sent
    }
    /// Sends a command to the dispatcher in several relays, all but the last without a flush, cut
    /// at `cuts`; in one record when `together`.
    pub(crate) fn send_cut(&mut self, command: &DispatchCommand, cuts: &[usize], together: bool) {
        let bytes = self.note(command);
        let mut records = Vec::new();
        let mut from = 0;
        for &to in cuts.iter().chain([&bytes.len()]) {
            records.push(self.relay(DispatcherSelect::Master, &bytes[from..to], to == bytes.len()));
            from = to;
        }
        if together {
            self.record(&records.concat(), None);
        } else {
            records.iter().for_each(|record| self.record(record, None));
        }
    }
    /// Sends a command whose data lies in memory; in one record when `together`. What was written
    /// there before has arrived, because the prefetcher reads ahead of the dispatcher.
    pub(crate) fn send_from(&mut self, sourced: &Sourced, together: bool) {
        self.stall();
        let bytes = self.note(&sourced.command);
        let header = self.relay(DispatcherSelect::Master, &bytes[..sourced.header], false);
        let source = Record::new(&sourced.source).unwrap();
        self.dispatch.append(dispatch_core::DISPATCH_CB, (bytes.len() - sourced.header) as u32, true);
        self.prefetch_commands += 1;
        self.scratch_used = true;
        if together {
            self.record(&[&header, source.bytes()].concat(), None);
        } else {
            self.record(&header, None);
            self.record(source.bytes(), None);
        }
    }
    /// Sends the first part of a command whose rest follows with [`Rig::raw`].
    pub(crate) fn raw_open(&mut self, payload: &[u8]) {
        let record = self.relay(DispatcherSelect::Master, payload, false);
        self.record(&record, None);
    }
    /// Sends the first part of a command of the subordinate.
    pub(crate) fn raw_subordinate_open(&mut self, payload: &[u8]) {
        let record = self.relay(DispatcherSelect::Subordinate, payload, false);
        self.record(&record, None);
    }
    /// Sends a command to the subordinate.
    pub(crate) fn send_subordinate(&mut self, command: &DispatchCommand) {
        self.raw_subordinate(&command.to_bytes().unwrap());
    }
    /// Sends the bytes of one command to the subordinate.
    pub(crate) fn raw_subordinate(&mut self, payload: &[u8]) {
        let record = self.relay(DispatcherSelect::Subordinate, payload, true);
        self.record(&record, None);
    }
    /// Sends a command of the prefetcher that relays nothing.
    pub(crate) fn prefetch(&mut self, command: &PrefetchCommand) {
        let record = Record::new(command).unwrap();
        self.raw_prefetch(record.bytes());
    }
    /// Sends a record that is one prefetch command which relays nothing.
    pub(crate) fn raw_prefetch(&mut self, bytes: &[u8]) {
        self.prefetch_commands += 1;
        self.record(bytes, None);
    }
    /// Sends a barrier that notifies the prefetcher, and the stall that waits for it.
    pub(crate) fn stall(&mut self) {
        self.send(&wait(WaitFlags::BARRIER | WaitFlags::NOTIFY_PREFETCH, 0, 0, 0));
        self.prefetch(&PrefetchCommand::Stall);
    }

    // ---- completions ------------------------------------------------------------

    /// Pages of the completion FIFO that are ready.
    pub(crate) fn ready_pages(&mut self) -> u32 {
        let written = self.region.read32(self.card.link_mut(), host::CQ_WR.offset().into()).unwrap();
        self.fifo.observe(written).unwrap().get()
    }
    /// Pages that have yet to come.
    pub(crate) fn pages_expected(&self) -> usize {
        self.expected.len()
    }
    /// Reads and checks the completion pages that are ready.
    pub(crate) fn collect(&mut self) {
        self.check_rings();
        for (offset, page) in self.take_pages() {
            let expected = self.expected.pop_front().expect("a completion page that nobody asked for");
            let page = &page[..expected.len()];
            let difference = || first_difference(page, &expected);
            assert!(page == expected, "completion page at {offset:#x} differs: {:x?}", difference());
        }
    }
    /// Takes the completion pages that are ready, each with its offset in the host region.
    pub(crate) fn take_pages(&mut self) -> Vec<(u32, Vec<u8>)> {
        let ready = self.ready_pages();
        let mut pages = Vec::new();
        for offset in (0..ready).map(|n| self.fifo.host_offset(n).unwrap()) {
            let mut page = vec![0; PAGE_SIZE as usize];
            self.region.read(self.card.link_mut(), offset.into(), &mut page).unwrap();
            pages.push((offset, page));
        }
        if ready != 0 {
            let read = self.fifo.release(PageCount::new(ready)).unwrap();
            self.poke(self.dispatch_core(), dispatch_core::COMPLETION_Q_RD_PTR, read);
            self.region.write32(self.card.link_mut(), host::CQ_RD.offset().into(), read).unwrap();
        }
        pages
    }
    /// Sends an event and waits until it and everything before it has come.
    pub(crate) fn event(&mut self) {
        self.events += 1;
        self.send(&DispatchCommand::host_event(self.events));
        self.wait_all();
    }
    /// Waits until every completion page has come.
    pub(crate) fn wait_all(&mut self) {
        let at = u64::from(host::CQ_WR.offset());
        loop {
            let seen = self.region.read32(self.card.link_mut(), at).unwrap();
            self.collect();
            if self.expected.is_empty() {
                return;
            }
            if let Err(error) = self.region.wait_change(self.card.link_mut(), at, seen, PATIENCE) {
                self.die(&error.to_string());
            }
        }
    }
}

/// A `WAIT` with these fields.
pub(crate) fn wait(flags: WaitFlags, stream: u16, addr: u32, count: u32) -> DispatchCommand {
    DispatchCommand::Wait(Wait { flags, stream, addr, count })
}

/// Where two runs of bytes differ first, and how.
pub(crate) fn first_difference(found: &[u8], expected: &[u8]) -> Option<(usize, u8, u8)> {
    let at = found.iter().zip(expected).position(|(a, b)| a != b)?;
    Some((at, found[at], expected[at]))
}
