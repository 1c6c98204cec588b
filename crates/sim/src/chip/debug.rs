//! The chip in the hands of a debugger: the host's calls in pieces, the chip in short windows, and
//! the state of its cores between them.
//!
//! A debugger stops the whole chip, time included, while the host waits in a call. So each call of
//! the host that takes time is divided here into its beginning, windows that the debugger runs one
//! by one with [`Chip::advance`], and its end; [`Chip::bar_read`] and the others are made of the
//! same pieces. Where windows end changes neither results nor cycles, and nothing runs
//! speculatively: after a window all that precedes the chip's clock has happened, and no more, but
//! for what a core does alone in its registers.

use super::node::AnyNode;
use super::{Chip, ChipError};
use crate::pcie::{Bar, ReadTicket as Ticket};
use crate::sched::{Step, Until};
use crate::tile::{Activity, Tile};
use crate::{Cycle, Fault, Node, timing};
use tilework_abi::noc::NocXy;
use tilework_abi::tensix::Processor;

pub use crate::pcie::ReadTicket;

/// A core of the chip: five times the number of its tile, and its index in the tile.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Thread(usize);

impl Thread {
    /// Thread number `number`, which may not exist.
    pub const fn new(number: usize) -> Self {
        Self(number)
    }
    /// The number.
    pub const fn number(self) -> usize {
        self.0
    }
    /// The number of the tile, in the order of [`Chip::tiles`].
    pub const fn tile(self) -> usize {
        self.0 / Processor::ALL.len()
    }
    /// The core.
    pub const fn core(self) -> Processor {
        Processor::ALL[self.0 % Processor::ALL.len()]
    }
}

/// A core as it stands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CoreView {
    /// The tile.
    pub tile: NocXy,
    /// The core.
    pub core: Processor,
    /// What it is doing.
    pub activity: Activity,
    /// The next instruction.
    pub pc: u32,
    /// x0 to x31.
    pub registers: [u32; 32],
    /// Instructions since power-on. Those of a parked core follow when it wakes.
    pub instructions: u64,
}

/// What a window of [`Chip::advance`] did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Advanced {
    /// Something may have happened.
    Ran,
    /// The clock stands at the given stop, and nothing happens before it.
    Reached,
    /// Nothing will ever happen by itself.
    Quiet,
}

impl Chip {
    /// The time to which the chip has come; the host may be ahead of it.
    pub fn clock_now(&self) -> Cycle {
        self.scheduler.now
    }

    /// When the last thing happened: a core may have come further, alone, than the chip.
    pub fn last_event(&self) -> Cycle {
        self.nodes.iter().map(Node::rested).fold(self.scheduler.now, Cycle::max)
    }

    /// The first cycle at which something happens by itself, from now on; the largest number if
    /// nothing does.
    pub fn next_event(&mut self) -> Cycle {
        self.scheduler.next_event().max(self.scheduler.now)
    }

    /// Hands to the observers all that has happened before [`Chip::clock_now`], in its order. The
    /// host may be ahead of that.
    pub fn show_past(&mut self) {
        let now = if self.fault.is_some() { Cycle::MAX } else { self.scheduler.now };
        self.hand_over(now, now);
    }

    /// Runs one window, and not up to `stop`. Everything before `stop` has happened when it says
    /// [`Advanced::Reached`].
    ///
    /// # Errors
    /// A fault; that an observer has ended the run in an earlier window.
    pub fn advance(&mut self, stop: Cycle) -> Result<Advanced, ChipError> {
        self.alive()?;
        match self.step(Until { stop, ahead: 0, notice: 0 }) {
            Ok(Step::Ran) => Ok(Advanced::Ran),
            Ok(Step::Reached) => Ok(Advanced::Reached),
            Ok(Step::Quiet) => Ok(Advanced::Quiet),
            Err(fault) => Err(self.failed(fault)),
        }
    }

    /// The first part of [`Chip::bar_write`]; then the host waits until [`Chip::has_room`].
    ///
    /// # Errors
    /// As [`Chip::bar_write`].
    pub fn begin_write(&mut self, bar: Bar, offset: u64, data: &[u8]) -> Result<(), ChipError> {
        self.alive()?;
        let at = self.now();
        let result = self.pcie_mut().host_write(at, bar, offset, data);
        self.pcie_touched();
        self.host = at + timing::HOST_WRITE;
        result.map_err(ChipError::Fault)
    }

    /// Whether there is room for another posted write; the host has then waited for it.
    pub fn has_room(&mut self) -> bool {
        let room = self.pcie().room();
        if let Some(room) = room {
            self.host = self.host.max(room);
        }
        room.is_some()
    }

    /// The first part of [`Chip::bar_read`]; then the host waits for [`Chip::end_read`].
    ///
    /// # Errors
    /// As [`Chip::bar_read`].
    pub fn begin_read(&mut self, bar: Bar, offset: u64, len: usize) -> Result<Ticket, ChipError> {
        self.alive()?;
        let at = self.now();
        let ticket = self.pcie_mut().host_read(at, bar, offset, len).map_err(ChipError::Fault)?;
        self.pcie_touched();
        Ok(ticket)
    }

    /// Takes the data of a read; false while they have not arrived.
    ///
    /// # Errors
    /// As [`Chip::bar_read`].
    pub fn end_read(&mut self, ticket: Ticket, out: &mut [u8]) -> Result<bool, ChipError> {
        let Some((when, data)) = self.pcie_mut().take_read(ticket) else { return Ok(false) };
        self.host = when.max(self.scheduler.now);
        out.copy_from_slice(&data.map_err(ChipError::Fault)?);
        Ok(true)
    }

    /// The first of the pinned words that is no longer what was seen of it, by its position, and
    /// its value; the host has then noticed it. `version` is the caller's: empty at first.
    ///
    /// # Errors
    /// Addresses that are not pinned.
    pub fn changed(
        &mut self,
        words: &[(u64, u32)],
        version: &mut Option<u64>,
    ) -> Result<Option<(usize, u32)>, ChipError> {
        let current = self.pcie().device_writes();
        if *version == Some(current) {
            return Ok(None);
        }
        *version = Some(current);
        for (i, &(noc, seen)) in words.iter().enumerate() {
            let mut word = [0; 4];
            self.pinned_read(noc, &mut word)?;
            let value = u32::from_le_bytes(word);
            if value != seen {
                let pcie = self.pcie();
                let written = pcie.last_write_to(noc, 4).unwrap_or(pcie.last_device_write());
                let noticed = written + timing::HOST_NOTICE;
                self.host = self.now().max(noticed);
                return Ok(Some((i, value)));
            }
        }
        Ok(None)
    }

    /// The host has waited until cycle `at`.
    pub fn host_at(&mut self, at: Cycle) {
        self.host = self.host.max(at);
    }

    /// All cores.
    pub fn threads(&self) -> impl Iterator<Item = Thread> {
        (0..self.tensix_tiles().count() * Processor::ALL.len()).map(Thread)
    }

    /// A core as it stands, if there is such a core.
    pub fn core(&self, thread: Thread) -> Option<CoreView> {
        self.tile_of(thread).map(|tile| tile.view(thread.core()))
    }

    /// Calls `each` for every core that executes, with its next instruction and its count of
    /// instructions.
    #[inline]
    pub fn executing(&self, mut each: impl FnMut(Thread, u32, u64)) {
        for (number, node) in self.nodes.iter().enumerate() {
            let AnyNode::Tensix(tile) = node else { break };
            tile.executing(|core, pc, instructions| {
                each(Thread(number * Processor::ALL.len() + core), pc, instructions);
            });
        }
    }

    /// Reads what `thread` would load at `address`, without any side effect; the bytes that were
    /// read. Bytes that cannot be read in this way end it.
    pub fn peek(&mut self, thread: Thread, address: u32, out: &mut [u8]) -> usize {
        let now = self.scheduler.now;
        self.tile_mut(thread).map_or(0, |tile| tile.peek_bytes(thread.core(), now, address, out))
    }

    /// Stores `data` at `address`, as `thread` would, at once.
    ///
    /// # Errors
    /// As a store of the core.
    pub fn poke(&mut self, thread: Thread, address: u32, data: &[u8]) -> Result<(), Fault> {
        let now = self.scheduler.now;
        let result = self.tile_mut(thread).map_or(Ok(()), |tile| tile.poke_bytes(thread.core(), now, address, data));
        self.tile_touched(thread);
        result
    }

    /// Sets register `index` (0 to 31), or 32 for the program counter, of a core.
    pub fn set_register(&mut self, thread: Thread, index: usize, value: u32) {
        self.unpark(thread);
        if let Some(tile) = self.tile_mut(thread) {
            tile.set_register(thread.core(), index, value);
        }
        self.tile_touched(thread);
    }

    /// Bytes of a DRAM bank's memory, by its physical number. False outside the memory.
    pub fn peek_dram(&self, bank: usize, address: u64, out: &mut [u8]) -> bool {
        let mut banks = self.nodes.iter().filter_map(|node| match node {
            AnyNode::Dram(bank) => Some(bank),
            _ => None,
        });
        banks.nth(bank).is_some_and(|bank| bank.peek(address, out))
    }

    /// The state of the coprocessor of a thread's tile, in lines of text; `None` for a part that it
    /// does not have. [`Chip::COPROCESSOR_PARTS`] lists the parts.
    pub fn coprocessor(&self, thread: Thread, part: &str, from: usize, count: usize) -> Option<String> {
        self.tile_of(thread)?.coprocessor(part, from, count)
    }

    /// What [`Chip::coprocessor`] shows, each with what its numbers count.
    pub const COPROCESSOR_PARTS: [(&str, &str); 8] = crate::tensix::PARTS;

    /// Wakes a parked core: it executes every instruction of its loop until it is parked again.
    pub fn unpark(&mut self, thread: Thread) {
        let now = self.scheduler.now;
        if let Some(tile) = self.tile_mut(thread) {
            tile.unpark(thread.core(), now);
        }
        self.tile_touched(thread);
    }

    /// Does not park a core before it has gone once around its loop from here.
    pub fn keep_awake(&mut self, thread: Thread) {
        self.unpark(thread);
        if let Some(tile) = self.tile_mut(thread) {
            tile.keep_awake(thread.core());
        }
    }

    /// Whether a core may be parked; all may at first.
    pub fn set_thread_parking(&mut self, thread: Thread, on: bool) {
        self.unpark(thread);
        if let Some(tile) = self.tile_mut(thread) {
            tile.set_core_parking(thread.core(), on);
        }
    }

    fn tile_of(&self, thread: Thread) -> Option<&Tile> {
        match self.nodes.get(thread.tile())? {
            AnyNode::Tensix(tile) => Some(tile),
            _ => None,
        }
    }

    fn tile_mut(&mut self, thread: Thread) -> Option<&mut Tile> {
        match self.nodes.get_mut(thread.tile())? {
            AnyNode::Tensix(tile) => Some(tile),
            _ => None,
        }
    }

    fn tile_touched(&mut self, thread: Thread) {
        if let Some(node @ AnyNode::Tensix(_)) = self.nodes.get(thread.tile()) {
            self.scheduler.touched(thread.tile(), node);
        }
    }
}
