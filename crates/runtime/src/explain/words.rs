//! The meaning of a word of L1 or of a register, and who could write it.

use super::report::tiles;
use super::scene::{Scene, TileKind};
use tilework_abi::addr::L1Addr;
use tilework_abi::address_map::Region;
use tilework_abi::convert::u32_of;
use tilework_abi::cq::layout::{
    DONE_STREAM, SEMAPHORE_OFFSET, SemaphoreId, WORKER_SEMS, dispatch_core, prefetch_core, prefetch_d_core,
};
use tilework_abi::cq::status::{self, decode_error};
use tilework_abi::cq::tiles::Part;
use tilework_abi::l1;
use tilework_abi::msg::{LAUNCH_MSG_BYTES, RUN_DONE, RUN_GO};
use tilework_abi::noc::NocXy;
use tilework_abi::reg::TileRegister;
use tilework_abi::tensix::Processor;
use tilework_abi::{L1_ALIGN, cb, stream};

/// A node of the graph of who waits for whom.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) enum Actor {
    /// The host.
    Host,
    /// A core.
    Core(NocXy, Processor),
}

/// Who could write a word that belongs to nobody in particular.
const ANYBODY: &str = "nobody that is known: any core of the tile, any other over the NoC, or the host could";

/// A word with its meaning.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Meaning {
    /// What it is.
    pub what: String,
    /// Who could write it, in words.
    pub writers: String,
    /// Who could write it, where that is known exactly.
    pub actors: Vec<Actor>,
    /// Firmware that waits for work.
    pub idle: bool,
}

impl Meaning {
    fn of(what: impl Into<String>) -> Self {
        Self { what: what.into(), writers: ANYBODY.into(), ..Self::default() }
    }
    fn by(mut self, writers: impl Into<String>, actors: impl IntoIterator<Item = Actor>) -> Self {
        self.writers = writers.into();
        self.actors = actors.into_iter().collect();
        self
    }
    fn idle(mut self, idle: bool) -> Self {
        self.idle = idle;
        self
    }
}

impl Scene<'_> {
    /// The meaning of the word at `address` in the address space of `core` of `tile`, which sees
    /// `value` there.
    pub(super) fn meaning(&self, tile: NocXy, core: Processor, address: u32, value: u32) -> Meaning {
        match Region::decode(address) {
            Region::L1 { .. } => self.l1_word(tile, core, L1Addr::new(address), value),
            Region::Local { offset } if offset < core.local_size() => {
                Meaning::of("its own local RAM").by("nobody but the core itself", [])
            }
            Region::Stream { .. } => self.stream_word(tile, core, address, value),
            Region::Mailbox { peer, .. } => {
                Meaning::of(format!("the mailbox from {peer}")).by(format!("{peer} of the same tile"), [])
            }
            _ => register_word(address),
        }
    }

    fn l1_word(&self, tile: NocXy, core: Processor, address: L1Addr, value: u32) -> Meaning {
        if let Some(meaning) = self.mailbox_word(tile, core, address, value) {
            return meaning;
        }
        match self.kind(tile) {
            TileKind::Prefetch(part) => self.about(tile).prefetch_word(part, address, value),
            TileKind::Dispatch(part) => self.about(tile).dispatch_word(part, address, value),
            TileKind::Worker => self.program_word(tile, core, address),
        }
    }

    /// The words by which host, dispatcher and the cores of a tile start kernels.
    pub(super) fn mailbox_word(&self, tile: NocXy, core: Processor, address: L1Addr, value: u32) -> Option<Meaning> {
        let map = self.map;
        let sync = map.subordinate_sync();
        // Firmware that looks for work may look at these as well.
        let launches = map.launch..map.launch.offset(l1::LAUNCH_ENTRIES * u32_of(LAUNCH_MSG_BYTES));
        let polled = match address {
            a if a == map.go_index => Some("go message index"),
            a if a == map.launch_rd_ptr() => Some("index of the next launch message"),
            a if launches.contains(&a) => Some("a launch message"),
            _ => None,
        };
        if let Some(what) = polled {
            return Some(Meaning::of(what).idle(true));
        }
        if (map.go..map.go.offset(4 * l1::GO_ENTRIES)).contains(&address) {
            let signal = value.to_le_bytes()[3];
            let what = format!("go message (signal {signal:#04x}, GO is {RUN_GO:#04x})");
            let starter = match self.about(tile).go_sender() {
                (name, Some(sender)) if self.kind(tile) == TileKind::Worker => (name, sender),
                _ => ("the host", Actor::Host),
            };
            return Some(Meaning::of(what).by(starter.0, [starter.1]).idle(true));
        }
        if !(sync..sync.offset(4)).contains(&address) {
            return None;
        }
        if core == Processor::Brisc {
            // All four bytes at once: which are not done?
            let busy: Vec<Processor> = Processor::ALL[1..]
                .iter()
                .zip(value.to_le_bytes())
                .filter_map(|(&p, state)| (state != l1::sync::DONE).then_some(p))
                .collect();
            let names: Vec<&str> = busy.iter().map(|p| p.name()).collect();
            let what = format!("the kernels of {} to end", names.join(", "));
            return Some(
                Meaning::of(what)
                    .by(format!("{} of the same tile", names.join(", ")), busy.iter().map(|&p| Actor::Core(tile, p))),
            );
        }
        let what = "BRISC to start a kernel";
        Some(Meaning::of(what).by("BRISC of the same tile", [Actor::Core(tile, Processor::Brisc)]).idle(true))
    }

    fn prefetch_word(&self, part: Part, address: L1Addr, value: u32) -> Meaning {
        use prefetch_core::{
            PREFETCH_Q, PREFETCH_Q_ENTRY_SIZE, SEM_DISPATCH_PAGES, SEM_DISPATCH_S_PAGES, SEM_EXEC_BUF, SEM_SYNC,
        };
        use prefetch_d_core::{SEM_RECORD_PAGES, SEM_RECORD_PAGES_FREE};
        if let Some(offset) = PREFETCH_Q.offset_of(address) {
            let slot = offset / PREFETCH_Q_ENTRY_SIZE;
            return Meaning::of(format!("prefetch queue entry {slot} (the next record)")).by("the host", [Actor::Host]);
        }
        let ring = dispatch_core::DISPATCH_CB;
        match self.queue_semaphore(address) {
            Some(id) if part == Part::PrefetchH && id == SEM_RECORD_PAGES_FREE => {
                Meaning::of(format!("record ring credits (semaphore 0): {value} granted since the start"))
                    .by("the device side of the prefetcher", self.prefetcher())
            }
            Some(id) if part == Part::PrefetchD && id == SEM_RECORD_PAGES => {
                Meaning::of(format!("record ring pages (semaphore 3): {value} received since the start"))
                    .by("the host side of the prefetcher", self.reader())
            }
            Some(id) if id == SEM_EXEC_BUF => {
                Meaning::of(format!("ends of exec buffers (semaphore 3): {value} notifications"))
                    .by("the dispatcher, at an EXEC_BUF_END", self.completer())
            }
            Some(id) if id == SEM_DISPATCH_PAGES => {
                let what = format!(
                    "dispatch CB credits (semaphore 0): {value} granted since the start, counted from {}",
                    ring.pages()
                );
                Meaning::of(what).by("the dispatcher, when it releases a block of pages", self.dispatcher())
            }
            Some(id) if id == SEM_DISPATCH_S_PAGES => {
                Meaning::of(format!("dispatch subordinate CB credits (semaphore 1): {value} granted"))
                    .by("the dispatch subordinate", self.subordinate())
            }
            Some(id) if id == SEM_SYNC => {
                Meaning::of(format!("the dispatcher's sync (semaphore 2): {value} notifications"))
                    .by("the dispatcher, at a WAIT with NOTIFY_PREFETCH", self.dispatcher())
            }
            Some(SemaphoreId(id)) => Meaning::of(format!("semaphore {id} of the prefetch core")),
            None => status_word(address, value).unwrap_or_else(|| Meaning::of("L1 of the prefetch core")),
        }
    }

    fn dispatch_word(&self, part: Part, address: L1Addr, value: u32) -> Meaning {
        use dispatch_core::{COMPLETION_Q_RD_PTR, SEM_CB_PAGES, SEM_H_PAGES, SEM_S_CB_PAGES, SYNC_SEMS, last_event};
        if address.get() == COMPLETION_Q_RD_PTR {
            return Meaning::of("the completion FIFO's read pointer").by("the host", [Actor::Host]);
        }
        if let Some(other) = self.other.filter(|other| address.get() == last_event(other.queue.id())) {
            let wanted = self.wanted_count().map_or_else(String::new, |n| format!(", {n} is wanted"));
            let id = other.queue.id();
            return Meaning::of(format!("the last event of queue {id} ({value}{wanted})"))
                .by(format!("the dispatcher of queue {id}"), self.turned().dispatcher());
        }
        if let Some(offset) = SYNC_SEMS.offset_of(address) {
            let index = offset / L1_ALIGN;
            return Meaning::of(format!("sync semaphore {index} from the dispatcher"))
                .by("the dispatcher", self.dispatcher());
        }
        match self.queue_semaphore(address) {
            Some(id) if id == SEM_CB_PAGES => {
                let what = format!("dispatch CB pages (semaphore 0): {value} received since the start");
                match part {
                    Part::DispatchH => Meaning::of(what).by("the device side of the dispatcher", self.dispatcher()),
                    _ => Meaning::of(what).by("the prefetcher, when it relays a command", self.prefetcher()),
                }
            }
            Some(id) if part == Part::DispatchD && id == SEM_H_PAGES => {
                Meaning::of(format!("credits of the host side's dispatch CB (semaphore 2): {value} granted"))
                    .by("the host side of the dispatcher", self.completer())
            }
            Some(id) if id == SEM_S_CB_PAGES => {
                let what = format!("dispatch subordinate CB pages (semaphore 1): {value} received");
                Meaning::of(what).by("the prefetcher", self.prefetcher()).idle(value == 0)
            }
            Some(SemaphoreId(id)) => Meaning::of(format!("semaphore {id} of the dispatch core")),
            None => status_word(address, value).unwrap_or_else(|| Meaning::of("L1 of the dispatch core")),
        }
    }

    /// The semaphore of one of the queue's cores at `address`.
    fn queue_semaphore(&self, address: L1Addr) -> Option<SemaphoreId> {
        let offset = address.offset_from(self.map.kernel_config.offset(SEMAPHORE_OFFSET))?;
        let id = SemaphoreId(offset / L1_ALIGN);
        (id.0 < SemaphoreId::COUNT && id.addr(0) == offset).then_some(id)
    }

    /// A word in what a program or an allocation owns.
    fn program_word(&self, tile: NocXy, core: Processor, address: L1Addr) -> Meaning {
        if let Some(running) = self.program_of(tile) {
            let (layout, program) = (&running.layout, &running.program);
            let at = address.get().wrapping_sub(layout.base.get());
            let sems = layout.sem_offset..layout.sem_offset + layout.semaphores * L1_ALIGN;
            if sems.contains(&at) {
                let id = (at - layout.sem_offset) / L1_ALIGN;
                let who = match self.others_left(tile, core) {
                    0 => format!("nobody: no other kernel of program {} runs any more", program.name),
                    n => format!("one of the {n} other kernels of program {} that still run, if by any", program.name),
                };
                return Meaning::of(format!("semaphore {}", program.names.semaphore(id))).by(who, []);
            }
            if at < layout.sem_offset {
                return Meaning::of("run-time arguments").by("nobody while the program runs", []);
            }
            if let Some(b) = layout.cbs.iter().find(|b| (b.address..b.address.offset(b.size())).contains(&address)) {
                return Meaning::of(format!("a word in circular buffer {}", program.names.circular_buffer(b.index)));
            }
        }
        match self.l1.owner_of(address) {
            Some(owned) => Meaning::of(format!("a word in L1 buffer {}", owned.owner)),
            None => Meaning::of("a word of L1 that nothing owns").by("nobody that is known", []),
        }
    }

    fn stream_word(&self, tile: NocXy, core: Processor, address: u32, value: u32) -> Meaning {
        let index = (address - stream::BASE) / stream::STRIDE;
        let workers = DONE_STREAM..DONE_STREAM + WORKER_SEMS;
        if workers.contains(&index) && matches!(self.kind(tile), TileKind::Dispatch(_)) {
            return self.about(tile).done_stream(index, value & stream::COUNTER_MASK);
        }
        let first = self.map.cb_stream;
        let Some(buffer) = index.checked_sub(first).filter(|&buffer| buffer < cb::COUNT) else {
            return register_word(address);
        };
        let (what, partner) = if address == cb::received_addr(first, buffer) {
            ("pages received", cb::acked_addr(first, buffer))
        } else if address == cb::acked_addr(first, buffer) {
            ("pages acknowledged", cb::received_addr(first, buffer))
        } else {
            return register_word(address);
        };
        let role = if what == "pages received" { "producer" } else { "consumer" };
        let name = match self.program_of(tile) {
            Some(running) => running.program.names.circular_buffer(buffer),
            None => buffer.to_string(),
        };
        let count = value & cb::COUNTER_MASK;
        let mut what = format!("CB {name} {what} ({count})");
        // The counters are cleared when a program starts.
        if count == 0 {
            what += "; nobody has written it so far";
        }
        let other = partner;
        let (mut who, partner) = self.partner(tile, core, role, other);
        let pages = self
            .program_of(tile)
            .and_then(|running| running.layout.cbs.iter().find(|cb| cb.index == buffer).map(|cb| cb.pages.get()));
        let seen = partner.and_then(|partner| self.seen(tile, partner, other));
        if let (Some(pages), Some(seen)) = (pages, seen) {
            let (received, acked) = if role == "producer" { (count, seen) } else { (seen, count) };
            who += &both_wait(received.wrapping_sub(acked) & cb::COUNTER_MASK, pages);
        }
        Meaning::of(what).by(who, partner.map(|p| Actor::Core(tile, p)))
    }

    /// Who moves a counter of a circular buffer that `core` waits for, in words and as a core where
    /// that is known: the core of the tile that waits for the other counter, `partner`. Which
    /// kernel uses which buffer is decided while it runs, so of others it is only known whether
    /// they have ended.
    fn partner(&self, tile: NocXy, core: Processor, role: &str, partner: u32) -> (String, Option<Processor>) {
        let others: Vec<Processor> = self.kernels_of(tile).into_iter().filter(|&p| p != core).collect();
        if let Some(&p) = others.iter().find(|&&p| self.watches(tile, p, partner)) {
            return (format!("its {role}, {p} of the same tile, which waits for the other counter of it"), Some(p));
        }
        let names = |list: &[Processor]| list.iter().map(|p| p.name()).collect::<Vec<_>>().join(", ");
        let left: Vec<Processor> = others.iter().copied().filter(|&p| !self.has_returned(tile, p)).collect();
        let who = match (others.as_slice(), left.as_slice()) {
            ([], _) => "nobody: no kernel of this program writes it".to_owned(),
            (ended, []) => format!(
                "nobody: no kernel of this program writes it any more; on the same tile {} ended",
                match ended {
                    [one] => format!("that of {one} has"),
                    several => format!("those of {} have", names(several)),
                }
            ),
            (_, [one]) => format!("{one} of the same tile, if by any: no other kernel still runs there"),
            (_, several) => format!("one of {} of the same tile, if by any: these still run", names(several)),
        };
        (who, left.first().copied().filter(|_| left.len() == 1))
    }

    /// The dispatcher's count of workers that are done.
    fn done_stream(&self, index: u32, value: u32) -> Meaning {
        let cores = self.launched();
        let not_done: Vec<NocXy> = cores.iter().copied().filter(|&c| self.go_signal(c) != Some(RUN_DONE)).collect();
        let wanted = self.wanted_count();
        let of = wanted.map_or_else(String::new, |n| format!(" of {n}"));
        let what = format!("stream {index}: {value}{of} workers done");
        let who = match (not_done.as_slice(), wanted) {
            ([], Some(n)) if n as usize > cores.len() => {
                format!("nobody: {} workers were started and all are done, {n} are expected", cores.len())
            }
            ([], _) => format!("nobody: all {} workers that were started say DONE", cores.len()),
            (list, _) => format!("the workers that are not done: {}", tiles(list)),
        };
        Meaning::of(what).by(who, not_done.into_iter().map(|c| Actor::Core(c, Processor::Brisc)))
    }
}

/// What follows when both sides of a circular buffer wait for the other, of whose pages so many are
/// full: they count in different portions.
fn both_wait(full: u32, pages: u32) -> String {
    match full {
        0 => format!("; it is empty: room is asked for that its {pages} pages do not have"),
        full if full == pages => format!("; it is full: more pages are waited for than the {pages} that it has"),
        full if full > pages => {
            "; its counts are wrong: more pages were popped than pushed, or pushed than it has".into()
        }
        full => format!(
            "; {full} of {pages} pages are full: the consumer waits for more of them, the producer for more room"
        ),
    }
}

/// The error word of a command-queue kernel that has stopped.
fn status_word(address: L1Addr, value: u32) -> Option<Meaning> {
    status::STATUS.contains(address).then_some(())?;
    let (kernel, fault) = decode_error(value)?;
    let what = format!("someone to look at it: {} stopped, {}", kernel.name(), fault.message());
    Some(Meaning::of(what).by("a debugger", []))
}

/// A register, by its name and what its row says of it.
fn register_word(address: u32) -> Meaning {
    let Some(register) = TileRegister::at(address) else {
        return Meaning::of(Region::decode(address).to_string());
    };
    let meaning = Meaning::of(format!("{register} ({})", clause(register.slot().reg.what)));
    match register {
        TileRegister::Niu { .. } => meaning.by("the NoC, when an answer comes", []),
        TileRegister::Stream { .. } | TileRegister::Tile(_) | TileRegister::PcBuf { .. } => meaning,
    }
}

/// The first sentence of a description, as part of another sentence.
fn clause(description: &str) -> String {
    let text = description.trim();
    let first = text.split_once(". ").map_or(text, |(first, _)| first);
    let first = first.trim_end_matches('.').replace('`', "");
    let mut letters = first.chars();
    match (letters.next(), letters.clone().next()) {
        (Some(a), Some(b)) if b.is_lowercase() || b == ' ' => a.to_lowercase().chain(letters).collect(),
        _ => first,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn watched_registers_are_called_by_their_names() {
        let what = |address| register_word(address).what;
        assert_eq!(what(0xFFB3_0208), "NIU_MST_RD_RESP_RECEIVED of NIU 1 (read responses received)");
        assert_eq!(
            what(0xFFB2_1040),
            "NOC_CMD_CTRL of initiator 2 of NIU 0 (writing 1 starts the request; reads 0 once it was accepted)"
        );
        assert_eq!(what(0xFFB4_5094), "STREAM_SCRATCH(1) of stream 5 (for general use)");
        assert_eq!(what(0xFFB1_21B0), "RISCV_DEBUG_REG_SOFT_RESET_0 (soft reset bits of the tile)");
        assert_eq!(what(0xFFE8_002C), "PC_BUF_SEMAPHORE(3) (a Tensix semaphore)");
        assert_eq!(what(0xFFB1_1014), "RISCV_TDMA_REG_STATUS (the mover and its queues)");
        assert_eq!(what(0xFFE0_0000), "Tensix general-purpose register 0", "no row");
    }

    #[test]
    fn two_sides_of_a_buffer_that_both_wait_are_told_why() {
        let told = |full| both_wait(full, 4);
        assert_eq!(told(0), "; it is empty: room is asked for that its 4 pages do not have");
        assert_eq!(told(4), "; it is full: more pages are waited for than the 4 that it has");
        assert!(told(3).starts_with("; 3 of 4 pages are full"), "{}", told(3));
        assert!(told(cb::COUNTER_MASK).contains("more pages were popped than pushed"));
    }

    #[test]
    fn who_moves_a_register_is_known_for_niu_alone() {
        assert_eq!(register_word(0xFFB2_0204).writers, "the NoC, when an answer comes");
        assert_eq!(register_word(0xFFB1_21B0).writers, ANYBODY);
    }
}
