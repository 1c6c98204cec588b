//! The completion side of the queue: events are recorded, pages taken, and calls made.
//!
//! The host looks at the completion FIFO whenever it comes by ([`CommandQueue::notice`]): at the
//! beginning of each call and in every wait, for room in the queue as well. So a device that cannot
//! go on because the FIFO is full never waits for a host that waits for the device.

use super::pending::{Expected, Incoming, Pending};
use super::timing::PROGRESS;
use super::wait::protocol;
use super::{CommandQueue, Patience, Sent, Waited};
use crate::RuntimeError;
use crate::event::Event;
use crate::log::QUEUE;
use tilework_abi::addr::{Cycle, PageCount};
use tilework_abi::convert::{u32_of, usize_of};
use tilework_abi::cq::CMD_SIZE;
use tilework_abi::cq::dispatch::{WaitFlags, WritePackedType};
use tilework_abi::cq::layout::{PAGE_SIZE, QueueId, dispatch_core, host};
use tilework_cq::dispatch::{PackedTargets, PackedWrite, Packets, Wait};
use tilework_cq::{DispatchCommand, EncodeError, PrefetchCommand, Record, completion};
use tilework_driver::{Card, HostLink, LinkError, Target};
use tracing::debug;

impl CommandQueue {
    /// Puts an event into the queue, behind everything before it.
    ///
    /// # Errors
    /// A device that stopped.
    pub fn record<C: HostLink>(
        &mut self,
        card: &mut Card<C>,
        event: Event,
        patience: &mut Patience,
    ) -> Result<(), Waited> {
        let number = self.event.wrapping_add(1);
        if self.listeners.is_empty() {
            self.push(card, None, DispatchCommand::host_event(number), patience)?;
        } else {
            self.push_all(card, self.shown_event(number), patience)?;
        }
        self.event = number;
        self.expect(Expected::Event(number), Some(event));
        Ok(())
    }

    /// The commands of an event that other queues can wait for: when all data is where it belongs,
    /// its number goes to every dispatcher, as in tt-metal. The barrier also keeps the numbers of
    /// two events in order: nothing else orders two writes of one tile to another.
    fn shown_event(&self, number: u32) -> [DispatchCommand; 3] {
        let settled = Wait { flags: WaitFlags::BARRIER, stream: 0, addr: 0, count: 0 };
        let shown = PackedWrite {
            kind: WritePackedType::Event,
            write_offset_index: 0,
            addr: dispatch_core::last_event(self.id()),
            targets: PackedTargets::Unicast(self.listeners.clone()),
            packets: Packets::Shared(number.to_le_bytes().to_vec()),
        };
        [DispatchCommand::Wait(settled), DispatchCommand::WritePacked(shown), DispatchCommand::host_event(number)]
    }

    /// Has this queue wait for event `number` of `other`, on the device.
    ///
    /// # Errors
    /// A device that stopped.
    pub(crate) fn wait_for_other<C: HostLink>(
        &mut self,
        card: &mut Card<C>,
        other: QueueId,
        number: u32,
        patience: &mut Patience,
    ) -> Result<(), Waited> {
        let (flags, addr) = (WaitFlags::WAIT_MEMORY, dispatch_core::last_event(other));
        self.push_all(card, [DispatchCommand::Wait(Wait { flags, stream: 0, addr, count: number })], patience)
    }

    /// Puts commands of the queue itself into it, as one record.
    fn push_all<C: HostLink, const N: usize>(
        &mut self,
        card: &mut Card<C>,
        commands: [DispatchCommand; N],
        patience: &mut Patience,
    ) -> Result<(), Waited> {
        let encode = |error: EncodeError| Waited::Other(error.into());
        let relay = |command: &DispatchCommand| Ok(PrefetchCommand::relay_inline(command.to_bytes()?));
        let relays = commands.iter().map(relay).collect::<Result<Vec<_>, EncodeError>>().map_err(encode)?;
        let record = Record::sequence(&relays).map_err(encode)?;
        self.push_record(card, &record, commands.map(|command| Sent::command(None, command)), patience)
    }

    /// Notes what the newest command brings to the completion FIFO.
    pub(super) fn expect(&mut self, expected: Expected, event: Option<Event>) {
        if let Some(event) = &event {
            let number = if let Expected::Event(number) = expected { Some(number) } else { None };
            event.put(self.id(), number);
        }
        self.pending.push(Pending { expected, event, position: self.position });
    }

    /// Waits until everything in the queue is completed: for an event behind it, or for what ends
    /// the queue already.
    ///
    /// # Errors
    /// A device that stopped, or that answered with another event.
    pub fn finish<C: HostLink>(&mut self, card: &mut Card<C>, patience: &mut Patience) -> Result<(), Waited> {
        let ends = self.pending.last().filter(|last| last.position == self.position);
        let event = match ends.and_then(|last| last.event.clone()) {
            Some(event) => event,
            None => {
                let event = Event::pending(self.device);
                self.record(card, event.clone(), patience)?;
                event
            }
        };
        self.wait_for(card, &event, patience)
    }

    /// Waits until `event`, which is in this queue, has ended.
    ///
    /// # Errors
    /// A device that stopped, or that answered with another event.
    pub fn wait_for<C: HostLink>(
        &mut self,
        card: &mut Card<C>,
        event: &Event,
        patience: &mut Patience,
    ) -> Result<(), Waited> {
        loop {
            self.notice(card)?;
            patience.notice_beside(card)?;
            if event.is_done() {
                return Ok(());
            }
            let left = patience.until.saturating_sub(card.link().cycles());
            if left == 0 {
                return Err(patience.spent());
            }
            match self.wait_change(card, patience.beside.as_deref(), left.min(PROGRESS)) {
                Ok(true) => {}
                Ok(false) => patience.tell(card.link().cycles())?,
                Err(error @ Waited::Link(LinkError::Deadlock { .. })) => match patience.relieve(card)? {
                    true => {}
                    false => return Err(error),
                },
                Err(error) => return Err(error),
            }
        }
    }

    /// Lets `cycles` pass, in which completions are noticed as they come.
    ///
    /// # Errors
    /// A device that stopped.
    pub fn idle<C: HostLink>(
        &mut self,
        card: &mut Card<C>,
        cycles: Cycle,
        patience: &mut Patience,
    ) -> Result<(), Waited> {
        let stop = card.link().cycles().saturating_add(cycles);
        loop {
            self.notice(card)?;
            patience.notice_beside(card)?;
            let left = stop.saturating_sub(card.link().cycles());
            if left == 0 {
                return Ok(());
            }
            let beside = patience.beside.as_deref();
            let nothing = self.pending.is_empty() && beside.is_none_or(|queue| queue.pending.is_empty());
            let changed = if nothing { Ok(false) } else { self.wait_change(card, beside, left) };
            match changed {
                Ok(true) => {}
                // A chip that is quiescent stays so; time passes all the same.
                Ok(false) | Err(Waited::Link(LinkError::Deadlock { .. })) => {
                    let left = stop.saturating_sub(card.link().cycles());
                    card.link_mut().idle(left)?;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Waits for the completion write pointer to change, or that of the queue `beside`, at most
    /// `cycles`; says whether one has.
    fn wait_change<C: HostLink>(
        &self,
        card: &mut Card<C>,
        beside: Option<&Self>,
        cycles: Cycle,
    ) -> Result<bool, Waited> {
        let offset = u64::from(host::CQ_WR.offset());
        let result = match beside {
            None => self.region.wait_change(card.link_mut(), offset, self.seen, cycles).map(|_| ()),
            Some(other) => {
                let words = [(self.region.word(offset)?, self.seen), (other.region.word(offset)?, other.seen)];
                card.link_mut().wait_words(&words, cycles).map_err(Into::into)
            }
        };
        match result.map_err(Waited::from) {
            Ok(()) => Ok(true),
            Err(Waited::Link(LinkError::Budget { .. })) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Takes all completion pages that are there, and makes the calls of the events that they end.
    /// Says whether there were any.
    ///
    /// # Errors
    /// A link that failed; pages that are not those that the queue's commands bring.
    pub fn notice<C: HostLink>(&mut self, card: &mut Card<C>) -> Result<bool, Waited> {
        let mut any = false;
        loop {
            let word = self.region.read32(card.link_mut(), host::CQ_WR.offset().into())?;
            // Every page up to the word that was seen last has been taken.
            if word == self.seen {
                return Ok(any);
            }
            self.completion.observe(word).map_err(protocol)?;
            let ended = self.take_pages(card)?;
            (self.seen, any) = (word, true);
            debug!(target: QUEUE, "cycle {}: {} events and reads end", card.link().cycles(), ended.len());
            self.settle(card, ended);
        }
    }

    /// Takes the pages that are ready and gives them back; returns the entries that they end.
    fn take_pages<C: HostLink>(&mut self, card: &mut Card<C>) -> Result<Vec<Pending>, Waited> {
        let mut ended = Vec::new();
        while let Some((offset, ready)) = self.completion.run() {
            let Some(pending) = self.pending.front_mut() else {
                return Err(protocol("a completion page that no command brings"));
            };
            let (pages, done) = match &mut pending.expected {
                Expected::Event(number) => {
                    let mut page = [0; CMD_SIZE + 4];
                    self.region.read(card.link_mut(), offset.into(), &mut page)?;
                    let found = completion::read_event(&page).map_err(protocol)?;
                    if found != *number {
                        return Err(protocol(format!("completion event {found}, expected {number}")));
                    }
                    (PageCount::new(1), true)
                }
                Expected::Data(incoming) => {
                    let pages = take_data(&self.region, card, incoming, offset, ready)?;
                    (pages, incoming.pages.is_done())
                }
            };
            self.completion.release(pages).map_err(protocol)?;
            if done {
                ended.extend(self.pending.pop());
            }
        }
        // One word for all of them: the dispatcher looks at it only when it has no room.
        let read = self.completion.read_word();
        let dispatch = Target::tile(self.tiles.completion_tile(self.board));
        card.write32(&dispatch, dispatch_core::COMPLETION_Q_RD_PTR, read)?;
        self.region.write32(card.link_mut(), host::CQ_RD.offset().into(), read)?;
        Ok(ended)
    }

    /// Everything up to the ends of these entries is completed.
    fn settle<C: HostLink>(&mut self, card: &Card<C>, ended: Vec<Pending>) {
        let now = card.link().cycles();
        for Pending { event, position, .. } in ended {
            // Records are 64 bytes at least: fewer than 2^32 of them are in the issue region.
            self.issue.settle(u32_of(usize_of(self.position.records - position.records)));
            // A page ends whole records, so that no trace is left in part.
            let mut commands = usize_of(position.commands - self.completed.commands);
            while commands > 0
                && let Some(batch) = self.sent.pop_front()
            {
                commands = commands.saturating_sub(batch.len());
            }
            self.completed = position;
            if let Some(event) = event {
                event.end(Ok(now));
            }
        }
    }

    /// The completion read pointer's word, as the device should see it.
    pub(crate) fn read_word(&self) -> u32 {
        self.completion.read_word()
    }

    /// Answers everybody who waits with `error`.
    pub(crate) fn fail(&mut self, error: &RuntimeError) {
        self.pending.fail(error);
    }
}

/// Copies what `ready` pages at `offset` of the host region hold of `incoming`; returns how many
/// pages that were.
fn take_data<C: HostLink>(
    region: &tilework_driver::Pinned,
    card: &mut Card<C>,
    incoming: &mut Incoming,
    offset: u32,
    ready: PageCount,
) -> Result<PageCount, Waited> {
    if incoming.pages.at_header() {
        let mut header = [0; CMD_SIZE];
        region.read(card.link_mut(), offset.into(), &mut header)?;
        incoming.pages.check(&header).map_err(protocol)?;
    }
    let run = incoming.pages.take(ready);
    debug_assert!(run.pages.get() * PAGE_SIZE >= run.bytes);
    let from = u64::from(offset) + u64::from(run.skip);
    let data = &mut incoming.data.borrow_mut()[..];
    incoming.stream.scatter(run.at, run.bytes.into(), data, |at, out| {
        Ok::<_, Waited>(region.read(card.link_mut(), from + at, out)?)
    })?;
    Ok(run.pages)
}
