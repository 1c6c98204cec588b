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

use super::{Device, Running, SubDeviceId};
use crate::RuntimeError;
use crate::cache::{Encoded, Launch, Prepared, STORE_BYTES};
use crate::event::{Blocking, BufferRead, Event, Put};
use crate::lower::{self, Go};
use crate::memory::{Buffer, MemoryError};
use crate::program::Program;
use crate::queue::{CommandQueue, Patience, Waited};
use crate::trace::CallSite;
use std::cell::RefCell;
use std::ops::ControlFlow;
use std::rc::Rc;
use std::sync::Arc;
use tilework_abi::addr::Cycle;
use tilework_abi::convert::usize_of;
use tilework_abi::cq::layout::QueueId;
use tilework_abi::msg::MODE_DEV;
use tilework_abi::noc::NocXy;
use tilework_cq::{DispatchCommand, Record};
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
    #[track_caller]
    pub fn enqueue_write_buffer(
        &mut self,
        buffer: &Buffer,
        data: &[u8],
        blocking: Blocking,
    ) -> Result<(), RuntimeError> {
        self.outside_capture("enqueue_write_buffer", CallSite::here())?;
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
        if blocking == Blocking::Yes { self.finish_queue() } else { Ok(()) }
    }

    /// Reads an array from its buffer, behind everything that was enqueued before. The handle has
    /// the data once the host has noticed its last page: at once if the call is blocking, else
    /// after [`Device::wait_for_read`] or any other call that comes late enough.
    ///
    /// # Errors
    /// No memory for the array; a device that stopped.
    #[track_caller]
    pub fn enqueue_read_buffer(&mut self, buffer: &Buffer, blocking: Blocking) -> Result<BufferRead, RuntimeError> {
        self.outside_capture("enqueue_read_buffer", CallSite::here())?;
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
        if let Some(order) = &mut self.order {
            order.record(self.at, &read.event);
        }
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
    #[track_caller]
    pub fn wait_for_read(&mut self, read: BufferRead) -> Result<Vec<u8>, RuntimeError> {
        self.event_synchronize(read.event())?;
        read.into_data().unwrap_or(Err(RuntimeError::Closed))
    }

    /// Runs a program behind everything that was enqueued before.
    ///
    /// # Errors
    /// A program that cannot run; a device that stopped. Under slow dispatch, and when the call is
    /// blocking, also what [`Device::run`] says.
    #[track_caller]
    pub fn enqueue_program(&mut self, program: &Program, blocking: Blocking) -> Result<(), RuntimeError> {
        if self.is_capturing() {
            return self.capture_program(program, blocking, CallSite::here());
        }
        self.begin()?;
        self.check_kernels(program)?;
        if self.queue.is_none() {
            return self.run(std::slice::from_ref(program)).map(|_| ());
        }
        match &mut self.launcher {
            Some(launcher) => {
                let prepared = launcher.prepare(program, self.memory.l1())?;
                self.enqueue_launch(&prepared, None)?;
            }
            None => self.enqueue_plain(program)?,
        }
        if blocking == Blocking::Yes { self.finish_queue() } else { Ok(()) }
    }

    /// As [`Device::enqueue_program`] with a program that was prepared before, and the arguments
    /// that it has now: nothing of it is lowered or looked up. Its circular buffers get their
    /// addresses anew.
    ///
    /// # Errors
    /// As [`Device::enqueue_program`].
    #[track_caller]
    pub fn enqueue_prepared(&mut self, prepared: &mut Prepared, blocking: Blocking) -> Result<(), RuntimeError> {
        if self.is_capturing() {
            return self.capture_prepared(prepared, blocking, CallSite::here());
        }
        self.begin()?;
        let launcher = self.launcher.as_ref().ok_or(RuntimeError::NoCache)?;
        launcher.place_cbs(prepared, self.memory.l1())?;
        self.enqueue_launch(prepared, None)?;
        if blocking == Blocking::Yes { self.finish_queue() } else { Ok(()) }
    }

    /// Puts a launch into the queue. Its end is waited for by the next launch, or by
    /// [`Device::settle`], which must come before anything else is put into the queue. The
    /// dispatcher writes its clock to the slots `stamps` before and after it.
    pub(super) fn enqueue_launch(
        &mut self,
        prepared: &Prepared,
        stamps: Option<(u32, u32)>,
    ) -> Result<(), RuntimeError> {
        let sub = self.meet(prepared.name(), &prepared.plain_layout().cores)?;
        self.turn_launcher(self.at, sub)?;
        let Some(launcher) = &mut self.launcher else { return Err(RuntimeError::NoCache) };
        let Some(queue) = &mut self.queue else { return Err(RuntimeError::NoQueue) };
        let tag = queue.begin_program();
        let launch = Launch { tag: Some(usize_of(tag)), stamps, ..Launch::default() };
        let launched = launcher.launch(prepared, &launch)?;
        self.tell_prepared((self.at, tag), prepared, &launched.layout);
        let running = Running::new(prepared.program(), launched.layout);
        if let Some(order) = &mut self.order {
            order.launch(self.at, sub, Arc::clone(&running.program), &running.layout.cores);
        }
        self.remember(&running);
        self.in_flight.push(running.into());
        let records = self.with_queue(|queue, card, patience| push_all(queue, card, launched.records, patience))?;
        if let Some(launcher) = &mut self.launcher {
            records.into_iter().for_each(|record| launcher.reuse(record));
        }
        self.check_queue()
    }

    /// Makes the launches to come those of `queue` on `sub`, with a region of DRAM for kernel text
    /// if they need one and there is room.
    pub(super) fn turn_launcher(&mut self, queue: QueueId, sub: SubDeviceId) -> Result<(), RuntimeError> {
        let Some(launcher) = &mut self.launcher else { return Ok(()) };
        launcher.select(queue, sub)?;
        if launcher.lacks_text_store()
            && let Some(base) = self.memory.alloc_text(STORE_BYTES)
        {
            launcher.keep_text(base, self.dram_map.banks().len());
        }
        Ok(())
    }

    /// Puts a program whole into the queue, and the wait for its end.
    fn enqueue_plain(&mut self, program: &Program) -> Result<(), RuntimeError> {
        let layout = self.layout(program)?;
        let sub = self.meet(&program.name, &layout.cores)?;
        let running = Running::new(Arc::new(program.clone()), Arc::new(layout));
        let go = Go::at(self.config.layout.queue(self.at), self.config.board);
        let steps = self.steps(&running, MODE_DEV).map_err(|e| self.explain(e, &[]))?;
        let commands = lower::addressed(&steps, &go);
        let Some(queue) = &mut self.queue else { return Err(RuntimeError::NoQueue) };
        let tag = queue.begin_program();
        self.tell_launch(Some((self.at, tag)), &running);
        if let Some(order) = &mut self.order {
            // Its commands wait for its end.
            order.launch(self.at, sub, Arc::clone(&running.program), &running.layout.cores);
            order.settle(self.at, [sub].into_iter());
        }
        self.remember(&running);
        self.in_flight.push(running.into());
        self.with_queue(|queue, card, patience| {
            let program = Some(usize_of(tag));
            commands.into_iter().try_for_each(|command| queue.push(card, program, command, patience))
        })?;
        self.check_queue()
    }

    /// Gives the queue an event of its own when too much behind the last one is in flight.
    pub(super) fn check_queue(&mut self) -> Result<(), RuntimeError> {
        if self.queue.as_ref().is_none_or(|queue| queue.unchecked_commands() < UNCHECKED_COMMANDS) {
            return Ok(());
        }
        self.settle()?;
        self.put_event(Event::pending(self.number))
    }

    /// Puts an event into the queue, behind what was settled.
    fn put_event(&mut self, event: Event) -> Result<(), RuntimeError> {
        let recorded = event.clone();
        self.with_queue(|queue, card, patience| queue.record(card, recorded, patience))?;
        if let Some(order) = &mut self.order {
            order.record(self.at, &event);
        }
        Ok(())
    }

    /// The sub-device of a program on `cores`, if it may be launched on the present queue now.
    pub(super) fn meet(&mut self, program: &str, cores: &[NocXy]) -> Result<SubDeviceId, RuntimeError> {
        let sub = self.sub_devices.holding(program, cores)?;
        match &mut self.order {
            Some(order) => order.check(self.at, program, cores).map(|()| sub),
            None => Ok(sub),
        }
    }

    /// Has the queue wait for the programs in flight on the sub-devices of the stall group, so that
    /// what is put into it next comes behind their ends.
    fn settle(&mut self) -> Result<(), RuntimeError> {
        let stall = self.sub_devices.stall().to_vec();
        if let Some(order) = &mut self.order {
            order.settle(self.at, stall.iter().copied());
        }
        for sub in stall {
            let Some(launcher) = &mut self.launcher else { return Ok(()) };
            launcher.select(self.at, sub)?;
            let records = launcher.settle()?;
            if !records.is_empty() {
                self.with_queue(|queue, card, patience| push_all(queue, card, records, patience))?;
            }
        }
        Ok(())
    }

    /// Puts the caller's own dispatch commands into the queue, behind everything that was enqueued
    /// before. For measurements, with [`lower::timestamp`]: nothing checks what the commands do,
    /// and the device knows nothing of it.
    ///
    /// # Errors
    /// Slow dispatch has no queue; a command that cannot be written; a device that stopped.
    #[track_caller]
    pub fn enqueue_commands(&mut self, commands: &[DispatchCommand]) -> Result<(), RuntimeError> {
        self.outside_capture("enqueue_commands", CallSite::here())?;
        self.begin()?;
        self.settle()?;
        self.with_queue(|queue, card, patience| {
            commands.iter().try_for_each(|command| queue.push(card, None, command.clone(), patience))
        })
    }

    /// Puts an event into the queue: it is reached when everything before it is done.
    ///
    /// # Errors
    /// A device that stopped.
    #[track_caller]
    pub fn record_event(&mut self) -> Result<Event, RuntimeError> {
        self.outside_capture("record_event", CallSite::here())?;
        self.begin()?;
        let event = Event::pending(self.number);
        if self.queue.is_none() {
            event.end(Ok(self.card.link().cycles()));
            return Ok(event);
        }
        self.settle()?;
        self.put_event(event.clone())?;
        Ok(event)
    }

    /// Lets the queue wait for an event before it goes on; the host goes on at once. For an event
    /// of the same queue there is nothing to do, because a queue executes in order. For one of the
    /// other queue the dispatcher waits until its number has come; the end of a read has none, so
    /// that an event is recorded behind it.
    ///
    /// # Errors
    /// An event of another device; a device that stopped.
    #[track_caller]
    pub fn wait_for_event(&mut self, event: &Event) -> Result<(), RuntimeError> {
        self.outside_capture("wait_for_event", CallSite::here())?;
        self.own(event)?;
        self.begin()?;
        let other = event.queue();
        if other == self.at || event.is_done() || self.queue.is_none() {
            return Ok(());
        }
        let put = match event.place() {
            put @ Put { number: Some(_), .. } => put,
            _ => self.on(other, Self::record_event)?.place(),
        };
        let Some(number) = put.number else { return Ok(()) };
        // What is launched next is not to start before the event, nor what is in flight to be
        // waited for behind it.
        self.settle()?;
        self.with_queue(|queue, card, patience| queue.wait_for_other(card, other, number, patience))?;
        if let Some(order) = &mut self.order {
            order.wait(put);
        }
        Ok(())
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
    #[track_caller]
    pub fn event_synchronize(&mut self, event: &Event) -> Result<Cycle, RuntimeError> {
        self.outside_capture("event_synchronize", CallSite::here())?;
        self.own(event)?;
        if !event.is_done() {
            self.stopped()?;
            self.synchronize(event)?;
        }
        event.poll().unwrap_or(Err(RuntimeError::Closed))
    }

    /// Waits until everything that was enqueued is done, on all queues
    /// ([`OnQueue::finish`](super::OnQueue::finish) waits for one of them); of programs, those on
    /// the sub-devices of the stall group.
    ///
    /// # Errors
    /// What stopped the device, now or in an earlier call.
    #[track_caller]
    pub fn finish(&mut self) -> Result<(), RuntimeError> {
        self.outside_capture("finish", CallSite::here())?;
        self.stopped()?;
        let queues: Vec<QueueId> = self.queues().map(CommandQueue::id).collect();
        queues.into_iter().try_for_each(|id| self.on(id, Self::finish_queue))
    }

    /// As [`Device::finish`], for all sub-devices whatever the stall group is.
    pub(super) fn finish_everything(&mut self) -> Result<(), RuntimeError> {
        self.with_all_sub_devices(Self::finish)
    }

    /// Waits by `finish` for all sub-devices, whatever the stall group is.
    pub(super) fn with_all_sub_devices(
        &mut self,
        finish: impl FnOnce(&mut Self) -> Result<(), RuntimeError>,
    ) -> Result<(), RuntimeError> {
        let stall = self.sub_devices.stall().to_vec();
        self.reset_sub_device_stall_group();
        let result = finish(self);
        if result.is_ok() {
            self.set_sub_device_stall_group(&stall)?;
        }
        result
    }

    /// As [`Device::finish`], for the present queue.
    pub(super) fn finish_queue(&mut self) -> Result<(), RuntimeError> {
        self.stopped()?;
        if self.queue.as_ref().is_none_or(CommandQueue::is_idle) && !self.is_launched() {
            return Ok(());
        }
        self.settle()?;
        self.with_queue(|queue, card, patience| queue.finish(card, patience))?;
        if let Some(order) = &mut self.order {
            order.finish(self.at);
        }
        self.collect_prints();
        Ok(())
    }

    /// Whether the present queue has launched programs of the stall group that it has not waited
    /// for: all that was put into it may be done, and they not.
    fn is_launched(&self) -> bool {
        self.launcher.as_ref().is_some_and(|launcher| launcher.has_launched(self.at, self.sub_devices.stall()))
    }

    fn synchronize(&mut self, event: &Event) -> Result<(), RuntimeError> {
        self.on(event.queue(), |device| {
            device.with_queue(|queue, card, patience| queue.wait_for(card, event, patience))
        })
    }

    /// What every call that enqueues does first: the device works, the host's cost is paid, and
    /// what has been completed is noticed.
    pub(super) fn begin(&mut self) -> Result<(), RuntimeError> {
        self.alive()?;
        let cost = self.config.host_cost.cycles();
        if cost == 0 { self.notice() } else { self.pass(cost) }
    }

    /// Lets time pass; completions are noticed as they come.
    pub(super) fn pass(&mut self, cycles: Cycle) -> Result<(), RuntimeError> {
        if self.queues().any(|queue| !queue.is_idle()) {
            return self.with_queue(|queue, card, patience| queue.idle(card, cycles, patience));
        }
        let result = self.card.link_mut().idle(cycles);
        result.map_err(|e| self.explain(Waited::Link(e), &[]))
    }

    fn notice(&mut self) -> Result<(), RuntimeError> {
        if self.queues().all(CommandQueue::is_idle) {
            return Ok(());
        }
        self.with_queue(|queue, card, patience| {
            queue.notice(card)?;
            patience.notice_beside(card).map(|_| ())
        })
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
        self.tell_memory();
        // What the queue waits for may be under way in the other.
        let programs = self.in_flight.count() + self.parked.in_flight.count();
        let programs_cycles = self.in_flight.cycles().saturating_add(self.parked.in_flight.cycles());
        let bytes = self.transfer_bytes + self.parked.transfer_bytes;
        let usual = programs_cycles.max(super::LEAST_CYCLES).saturating_add(CYCLES_PER_BYTE * bytes as Cycle);
        let budget = self.config.max_cycles.unwrap_or(usual);
        let until = self.card.link().cycles().saturating_add(budget);
        let Some(queue) = &mut self.queue else { return Err(RuntimeError::NoQueue) };
        let mut tell = |cycles| match &mut self.progress {
            Some(f) => f(super::Progress { cycles, until, done: 0, programs }),
            None => ControlFlow::Continue(()),
        };
        let beside = self.parked.queue.as_mut();
        let room = self.prints.room();
        let result = f(queue, &mut self.card, &mut Patience { until, budget, progress: &mut tell, beside, room });
        self.note_all_completed();
        let result = result.and_then(|value| self.check_invariants().map(|()| value));
        result.map_err(|e| {
            let (first, batch) = (self.in_flight.first(), self.in_flight.programs());
            self.explain_from(e, first, &batch)
        })
    }
}

impl<C: HostLink> Device<C> {
    /// Forgets what the queues have completed.
    pub(super) fn note_all_completed(&mut self) {
        self.note_completed();
        if self.parked.queue.is_some() {
            let at = self.at;
            QueueId::ALL.into_iter().filter(|&id| id != at).for_each(|id| self.on(id, Self::note_completed));
        }
    }

    /// Forgets what the present queue has completed.
    fn note_completed(&mut self) {
        let Some(queue) = &self.queue else { return };
        if queue.is_idle() {
            self.transfer_bytes = 0;
        }
        self.programs += self.in_flight.end(queue.completed_programs());
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
