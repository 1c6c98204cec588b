//! Why a core waits, by the words that it looks at.

use std::borrow::Cow;
use std::ops::Range;

use tilework_abi::address_map::Region;
use tilework_abi::cq::layout::{DONE_STREAM, SEMAPHORE_OFFSET, SemaphoreId, WORKER_SEMS, dispatch_core, prefetch_core};
use tilework_abi::l1::{GO_ENTRIES, MemoryMap};
use tilework_abi::reg::TileRegister;
use tilework_abi::tensix::Processor;
use tilework_abi::{L1_ALIGN, cb, stream};
use tilework_driver::LaunchNote;

/// A reason to wait.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Why {
    /// The kind, one word, by which waiting is added up.
    pub kind: &'static str,
    /// What for, in words.
    pub what: Cow<'static, str>,
}

impl Why {
    /// Firmware that waits for work.
    pub const IDLE: &'static str = "idle";

    fn new(kind: &'static str, what: impl Into<Cow<'static, str>>) -> Self {
        Self { kind, what: what.into() }
    }
}

/// Where a core waits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scene<'a> {
    pub map: &'a MemoryMap,
    /// The program of the tile.
    pub launch: Option<&'a LaunchNote>,
    /// Whether the tile runs parts of a command queue.
    pub queue: bool,
    pub core: Processor,
}

impl Scene<'_> {
    /// The reason of a core that looks at these addresses: the first one that says something.
    pub(crate) fn parked(&self, addrs: &[u32]) -> Why {
        let mut reasons = addrs.iter().map(|&addr| self.of(addr));
        let Some(first) = reasons.next() else { return Why::new("loop", "nothing: an endless loop") };
        std::iter::once(first.clone())
            .chain(reasons)
            .find(|why| !matches!(why.kind, "memory" | "register"))
            .unwrap_or(first)
    }

    /// The reason of a core whose access to an address is held.
    pub(crate) fn blocked(&self, addr: u32) -> Why {
        match Region::decode(addr) {
            Region::InstructionBuffer { .. } => Why::new("coprocessor", "room for instructions of the coprocessor"),
            Region::PcBuf { .. } => Why::new("coprocessor", "the coprocessor to be done"),
            _ => self.of(addr),
        }
    }

    fn of(&self, addr: u32) -> Why {
        match Region::decode(addr) {
            Region::L1 { .. } => self.of_l1(addr),
            Region::Niu { noc, .. } => noc_register(noc, addr),
            Region::Stream { .. } => self.of_stream(addr),
            Region::Mailbox { peer, .. } => Why::new("mailbox", format!("the mailbox from {peer}")),
            Region::PcBuf { .. } | Region::InstructionBuffer { .. } => {
                Why::new("coprocessor", "a semaphore or thread of the coprocessor")
            }
            Region::Local { .. } => Why::new("memory", "its own local RAM"),
            _ => Why::new("register", register_name(addr)),
        }
    }

    fn of_l1(&self, addr: u32) -> Why {
        let map = self.map;
        let within = |start: u32, bytes: u32| (start..start.saturating_add(bytes)).contains(&addr);
        let is_sync = within(map.subordinate_sync().get(), 4);
        if is_sync && self.core == Processor::Brisc {
            return Why::new("kernels", "the kernels of the other cores to end");
        }
        if is_sync || within(map.go.get(), 4 * GO_ENTRIES) || addr == map.go_index.get() {
            return Why::new(Why::IDLE, "a program");
        }
        if self.queue {
            return queue_word(map, addr);
        }
        let semaphores = self.launch.map_or(0..0, |launch| {
            launch.semaphores..launch.semaphores.saturating_add(launch.semaphore_count * L1_ALIGN)
        });
        match (number_within(&semaphores, addr), self.launch) {
            (Some(number), _) => Why::new("semaphore", format!("semaphore {number}")),
            (None, Some(launch)) => {
                let holds = |cb: &&tilework_driver::CbNote| within(cb.address, cb.page_size.saturating_mul(cb.pages));
                match launch.cbs.iter().find(holds) {
                    Some(cb) => Why::new("memory", format!("a word in circular buffer {}", cb.name)),
                    None => Why::new("memory", format!("the word at {addr:#x} of L1")),
                }
            }
            (None, None) => Why::new("memory", format!("the word at {addr:#x} of L1")),
        }
    }

    fn of_stream(&self, addr: u32) -> Why {
        let index = (addr - stream::BASE) / stream::STRIDE;
        if self.queue && (DONE_STREAM..DONE_STREAM + WORKER_SEMS).contains(&index) {
            return Why::new("workers", "workers to be done");
        }
        match counter(self.map, addr) {
            Some((buffer, counts_received)) => {
                let named = self.launch.and_then(|launch| launch.cbs.iter().find(|cb| cb.index == buffer));
                let name = named.map_or_else(|| buffer.to_string(), |cb| cb.name.clone());
                match counts_received {
                    true => Why::new("cb_pages", format!("pages of circular buffer {name}")),
                    false => Why::new("cb_space", format!("space in circular buffer {name}")),
                }
            }
            None => Why::new("register", register_name(addr)),
        }
    }
}

/// The circular buffer of which a register is a counter, and whether it counts pages received.
pub(crate) fn counter(map: &MemoryMap, addr: u32) -> Option<(u32, bool)> {
    let index = addr.checked_sub(stream::BASE)? / stream::STRIDE;
    let buffer = index.checked_sub(map.cb_stream).filter(|&buffer| buffer < cb::COUNT)?;
    let received = addr == cb::received_addr(map.cb_stream, buffer);
    (received || addr == cb::acked_addr(map.cb_stream, buffer)).then_some((buffer, received))
}

fn number_within(semaphores: &Range<u32>, addr: u32) -> Option<u32> {
    semaphores.contains(&addr).then(|| (addr - semaphores.start) / L1_ALIGN)
}

/// A word of a command queue's core.
fn queue_word(map: &MemoryMap, addr: u32) -> Why {
    if prefetch_core::PREFETCH_Q.contains(tilework_abi::addr::L1Addr::new(addr)) {
        return Why::new("queue", "the next record of the host");
    }
    if addr == dispatch_core::COMPLETION_Q_RD_PTR {
        return Why::new("queue", "room in the completion queue");
    }
    let base = map.kernel_config.get().saturating_add(SEMAPHORE_OFFSET);
    match number_within(&(base..base + SemaphoreId::COUNT * L1_ALIGN), addr) {
        Some(number) => Why::new("queue", format!("pages or credits of a ring (semaphore {number})")),
        None => Why::new("queue", format!("the word at {addr:#x} of L1")),
    }
}

fn register_name(addr: u32) -> String {
    TileRegister::at(addr).map_or_else(|| format!("the register at {addr:#x}"), |register| register.to_string())
}

/// A register of an NIU: mostly a counter of answers.
fn noc_register(noc: usize, addr: u32) -> Why {
    let name = TileRegister::at(addr).map_or("", |register| register.slot().reg.name);
    let (kind, what) = match name {
        name if name.contains("RD_RESP") => ("noc_reads", "its reads"),
        name if name.contains("WR_ACK") => ("noc_writes", "its writes to be acknowledged"),
        name if name.contains("WR_REQ") || name.contains("WR_DATA") => ("noc_writes", "its writes to leave"),
        name if name.contains("ATOMIC") => ("noc_atomics", "its atomics"),
        name if name.contains("OUTSTANDING") => ("noc_transactions", "a transaction id's requests"),
        "NOC_CMD_CTRL" => ("noc_command", "the command buffer"),
        _ => ("noc", "a register of the NIU"),
    };
    Why::new(kind, format!("{what} on NoC {noc}"))
}
