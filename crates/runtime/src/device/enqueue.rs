//! The asynchronous calls: what goes into the command queue, and who waits for it. The names are
//! tt-metal's.
//!
//! **Time has a rule.** The chip's time moves in the host's accesses and waits, and by what a call
//! that enqueues costs the host ([`HostCost`](crate::HostCost)). The host notices completions at
//! the beginning of each of these calls and while one of them waits; that is the cycle that an
//! event reports and at which its calls are made. So the same program has the same times.
//!
//! Under slow dispatch there is no queue: each call is done when it returns, and so are its events
//! and reads.

use super::{Device, Running};
use crate::RuntimeError;
use crate::cache::{Encoded, Launch, Prepared};
use crate::event::{Blocking, BufferRead, Event};
use crate::lower::{self, Go};
use crate::memory::{Buffer, MemoryError};
use crate::program::Program;
use crate::queue::{CommandQueue, Patience, Waited};
use std::cell::RefCell;
use std::ops::ControlFlow;
use std::rc::Rc;
use std::sync::Arc;
use tilework_abi::addr::Cycle;
use tilework_abi::convert::usize_of;
use tilework_abi::msg::MODE_DEV;
use tilework_cq::Record;
use tilework_driver::{Card, HostLink};

/// Cycles that a wait for transfers may take for each byte that is under way: some twenty times
/// what the smallest pages need.
const CYCLES_PER_BYTE: Cycle = 64;
/// Commands after which the queue gets an event of its own, so that the account of what is in
/// flight stays short when nobody waits.
const UNCHECKED_COMMANDS: usize = 4096;

impl<C: HostLink> Device<C> {
    /// Writes an array to its buffer, behind everything that was enqueued before. The data is
    /// copied: `data` may change when the call returns. A blocking call returns when all of it has
    /// landed, another when it is in the queue, for which it may have to wait for room.
    ///
    /// # Errors
    /// Data of another size than the buffer's; a device that stopped.
    pub fn enqueue_write_buffer(
        &mut self,
        buffer: &Buffer,
        data: &[u8],
        blocking: Blocking,
    ) -> Result<(), RuntimeError> {
        if data.len() != buffer.bytes() {
            let (found, expected) = (data.len(), buffer.bytes());
            return Err(MemoryError::DataSize { name: buffer.name.clone(), found, expected }.into());
        }
        self.begin()?;
        if !self.transfers_queue(buffer) {
            self.finish()?;
            let result = self.write_by_windows(buffer, data);
            return result.map_err(|e| self.explain(e, &[]));
        }
        let (name, runs) = (buffer.name.as_str().into(), crate::queue::runs(buffer, &self.dram_map));
        self.settle()?;
        self.transfer_bytes += data.len();
        self.with_queue(|queue, card, patience| queue.write_runs(card, &name, &runs, data, patience))?;
        if blocking == Blocking::Yes { self.finish() } else { Ok(()) }
    }

    /// Reads an array from its buffer, behind everything that was enqueued before. The handle has
    /// the data once the host has noticed its last page: at once if the call is blocking, else
    /// after [`Device::wait_for_read`] or any other call that comes late enough.
    ///
    /// # Errors
    /// No memory for the array; a device that stopped.
    pub fn enqueue_read_buffer(&mut self, buffer: &Buffer, blocking: Blocking) -> Result<BufferRead, RuntimeError> {
        self.begin()?;
        if !self.transfers_queue(buffer) {
            self.finish()?;
            let data = self.read_by_windows(buffer).map_err(|e| self.explain(e, &[]))?;
            return Ok(self.read_done(data));
        }
        let data = super::transfer::host_memory(buffer, buffer.bytes())?;
        let runs = crate::queue::runs(buffer, &self.dram_map);
        if runs.is_empty() {
            return Ok(self.read_done(data));
        }
        let read = BufferRead { event: Event::pending(self.number), data: Rc::new(RefCell::new(data)) };
        let name = buffer.name.as_str().into();
        self.settle()?;
        self.transfer_bytes += buffer.bytes();
        self.with_queue(|queue, card, patience| queue.read_runs(card, &name, &runs, &read, patience))?;
        if blocking == Blocking::Yes {
            self.synchronize(&read.event)?;
        }
        Ok(read)
    }

    /// A read that is done.
    fn read_done(&self, data: Vec<u8>) -> BufferRead {
        let event = Event::pending(self.number);
        event.end(Ok(self.card.link().cycles()));
        BufferRead { event, data: Rc::new(RefCell::new(data)) }
    }

    /// Waits for the data of a read.
    ///
    /// # Errors
    /// What stopped the device; a read of another device.
    pub fn wait_for_read(&mut self, read: BufferRead) -> Result<Vec<u8>, RuntimeError> {
        self.event_synchronize(read.event())?;
        read.into_data().unwrap_or(Err(RuntimeError::Closed))
    }

    /// Runs a program behind everything that was enqueued before.
    ///
    /// # Errors
    /// A program that cannot run; a device that stopped. Under slow dispatch, and when the call is
    /// blocking, also what [`Device::run`] says.
    pub fn enqueue_program(&mut self, program: &Program, blocking: Blocking) -> Result<(), RuntimeError> {
        self.begin()?;
        if self.queue.is_none() {
            return self.run(std::slice::from_ref(program)).map(|_| ());
        }
        match &mut self.launcher {
            Some(launcher) => {
                let prepared = launcher.prepare(program, self.memory.l1())?;
                self.enqueue_launch(&prepared)?;
            }
            None => self.enqueue_plain(program)?,
        }
        if blocking == Blocking::Yes { self.finish() } else { Ok(()) }
    }

    /// As [`Device::enqueue_program`] with a program that was prepared before, and the arguments
    /// that it has now: nothing of it is lowered or looked up. Its circular buffers get their
    /// addresses anew.
    ///
    /// # Errors
    /// As [`Device::enqueue_program`].
    pub fn enqueue_prepared(&mut self, prepared: &mut Prepared, blocking: Blocking) -> Result<(), RuntimeError> {
        self.begin()?;
        let launcher = self.launcher.as_ref().ok_or(RuntimeError::NoCache)?;
        launcher.place_cbs(prepared, self.memory.l1())?;
        self.enqueue_launch(prepared)?;
        if blocking == Blocking::Yes { self.finish() } else { Ok(()) }
    }

    /// Puts a launch into the queue. Its end is waited for by the next launch, or by
    /// [`Device::settle`], which must come before anything else is put into the queue.
    fn enqueue_launch(&mut self, prepared: &Prepared) -> Result<(), RuntimeError> {
        let Some(launcher) = &mut self.launcher else { return Err(RuntimeError::NoCache) };
        let Some(queue) = &mut self.queue else { return Err(RuntimeError::NoQueue) };
        let launch = Launch { tag: Some(usize_of(queue.begin_program())), ..Launch::default() };
        let launched = launcher.launch(prepared, &launch)?;
        self.in_flight.push_back(Running::new(prepared.program(), launched.layout));
        let records = self.with_queue(|queue, card, patience| push_all(queue, card, launched.records, patience))?;
        if let Some(launcher) = &mut self.launcher {
            records.into_iter().for_each(|record| launcher.reuse(record));
        }
        self.check_queue()
    }

    /// Puts a program whole into the queue, and the wait for its end.
    fn enqueue_plain(&mut self, program: &Program) -> Result<(), RuntimeError> {
        let layout = self.layout(program)?;
        let running = Running::new(Arc::new(program.clone()), Arc::new(layout));
        let go = Go::of(self.config.layout, self.config.board);
        let steps = self.steps(&running, MODE_DEV).map_err(|e| self.explain(e, &[]))?;
        let commands = lower::addressed(&steps, &go);
        self.in_flight.push_back(running);
        self.with_queue(|queue, card, patience| {
            let program = usize_of(queue.begin_program());
            commands.into_iter().try_for_each(|command| queue.push(card, Some(program), command, patience))
        })?;
        self.check_queue()
    }

    /// Gives the queue an event of its own when too much behind the last one is in flight.
    fn check_queue(&mut self) -> Result<(), RuntimeError> {
        if self.queue.as_ref().is_none_or(|queue| queue.unchecked_commands() < UNCHECKED_COMMANDS) {
            return Ok(());
        }
        self.settle()?;
        let number = self.number;
        self.with_queue(|queue, card, patience| queue.record(card, Event::pending(number), patience))
    }

    /// Has the queue wait for the program in flight, so that what is put into it next comes behind
    /// its end.
    fn settle(&mut self) -> Result<(), RuntimeError> {
        let Some(launcher) = &mut self.launcher else { return Ok(()) };
        let records = launcher.settle()?;
        if records.is_empty() {
            return Ok(());
        }
        self.with_queue(|queue, card, patience| push_all(queue, card, records, patience)).map(|_| ())
    }

    /// Puts an event into the queue: it is reached when everything before it is done.
    ///
    /// # Errors
    /// A device that stopped.
    pub fn record_event(&mut self) -> Result<Event, RuntimeError> {
        self.begin()?;
        let event = Event::pending(self.number);
        if self.queue.is_none() {
            event.end(Ok(self.card.link().cycles()));
            return Ok(event);
        }
        self.settle()?;
        let recorded = event.clone();
        self.with_queue(|queue, card, patience| queue.record(card, recorded, patience))?;
        Ok(event)
    }

    /// Lets the queue wait for an event before it goes on; the host goes on at once. A device has
    /// one queue, which executes in order, so that an event of its own is always behind it.
    ///
    /// # Errors
    /// An event of another device; a device that stopped.
    pub fn wait_for_event(&mut self, event: &Event) -> Result<(), RuntimeError> {
        self.own(event)?;
        self.begin()
    }

    /// Looks whether the device has reached an event. It takes no time unless there is something to
    /// notice.
    ///
    /// # Errors
    /// What stopped the device before the event; an event of another device.
    pub fn event_query(&mut self, event: &Event) -> Result<bool, RuntimeError> {
        self.own(event)?;
        if !event.is_done() {
            self.stopped()?;
            self.notice()?;
        }
        event.poll().transpose().map(|reached| reached.is_some())
    }

    /// Waits until the device has reached an event; returns the cycle at which the host noticed it.
    ///
    /// # Errors
    /// What stopped the device before the event; an event of another device.
    pub fn event_synchronize(&mut self, event: &Event) -> Result<Cycle, RuntimeError> {
        self.own(event)?;
        if !event.is_done() {
            self.stopped()?;
            self.synchronize(event)?;
        }
        event.poll().unwrap_or(Err(RuntimeError::Closed))
    }

    /// Waits until everything that was enqueued is done.
    ///
    /// # Errors
    /// What stopped the device, now or in an earlier call.
    pub fn finish(&mut self) -> Result<(), RuntimeError> {
        self.stopped()?;
        if self.queue.as_ref().is_none_or(CommandQueue::is_idle) {
            return Ok(());
        }
        self.settle()?;
        self.with_queue(|queue, card, patience| queue.finish(card, patience))
    }

    fn synchronize(&mut self, event: &Event) -> Result<(), RuntimeError> {
        self.with_queue(|queue, card, patience| queue.wait_for(card, event, patience))
    }

    /// What every call that enqueues does first: the device works, the host's cost is paid, and
    /// what has been completed is noticed.
    fn begin(&mut self) -> Result<(), RuntimeError> {
        self.alive()?;
        let cost = self.config.host_cost.cycles();
        if cost == 0 { self.notice() } else { self.pass(cost) }
    }

    /// Lets time pass; completions are noticed as they come.
    pub(super) fn pass(&mut self, cycles: Cycle) -> Result<(), RuntimeError> {
        if self.queue.as_ref().is_some_and(|queue| !queue.is_idle()) {
            return self.with_queue(|queue, card, _| queue.idle(card, cycles));
        }
        let result = self.card.link_mut().idle(cycles);
        result.map_err(|e| self.explain(Waited::Link(e), &[]))
    }

    fn notice(&mut self) -> Result<(), RuntimeError> {
        if self.queue.as_ref().is_none_or(CommandQueue::is_idle) {
            return Ok(());
        }
        self.with_queue(|queue, card, _| queue.notice(card).map(|_| ()))
    }

    fn own(&self, event: &Event) -> Result<(), RuntimeError> {
        if event.device() == self.number { Ok(()) } else { Err(RuntimeError::ForeignEvent) }
    }

    /// Does something to the queue, with the usual budget of what is in flight, and explains what
    /// stopped it.
    pub(super) fn with_queue<T>(
        &mut self,
        f: impl FnOnce(&mut CommandQueue, &mut Card<C>, &mut Patience) -> Result<T, Waited>,
    ) -> Result<T, RuntimeError> {
        let kernels = self.in_flight.iter().map(|running| running.layout.kernels());
        let usual = super::default_cycles(kernels).saturating_add(CYCLES_PER_BYTE * self.transfer_bytes as Cycle);
        let budget = self.config.max_cycles.unwrap_or(usual);
        let until = self.card.link().cycles().saturating_add(budget);
        let programs = self.in_flight.len();
        let Some(queue) = &mut self.queue else { return Err(RuntimeError::NoQueue) };
        let mut tell = |cycles| match &mut self.progress {
            Some(f) => f(super::Progress { cycles, until, done: 0, programs }),
            None => ControlFlow::Continue(()),
        };
        let result = f(queue, &mut self.card, &mut Patience { until, budget, progress: &mut tell });
        if queue.is_idle() {
            self.transfer_bytes = 0;
        }
        let done = usize_of(queue.completed_programs() - self.first_in_flight).min(self.in_flight.len());
        self.in_flight.drain(..done);
        self.first_in_flight += done as u64;
        self.programs += done as u64;
        let result = result.and_then(|value| self.check_invariants().map(|()| value));
        result.map_err(|e| {
            let running = std::mem::take(&mut self.in_flight);
            let batch: Vec<_> = running.into();
            let first = usize_of(self.first_in_flight);
            let error = self.explain_from(e, first, &batch);
            self.in_flight = batch.into();
            error
        })
    }
}

/// Puts records into the queue; returns them, so that their memory can be used again.
pub(super) fn push_all<C: HostLink>(
    queue: &mut CommandQueue,
    card: &mut Card<C>,
    records: Vec<Encoded>,
    patience: &mut Patience,
) -> Result<Vec<Record>, Waited> {
    let mut pushed = Vec::with_capacity(records.len());
    for (record, sent) in records {
        queue.push_record(card, &record, sent, patience)?;
        pushed.push(record);
    }
    Ok(pushed)
}
