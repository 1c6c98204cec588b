//! The queues of a device: which of them a call is about.
//!
//! A device speaks to one queue at a time. Its calls are about the first, those of [`OnQueue`]
//! about the queue that it was asked for. What belongs to a queue, the queue itself and what is
//! under way in it, is exchanged with the other queue's for the time of a call
//! ([`Device::select`]); so a call is written once and works on both. Whoever waits notices the
//! completions of both queues ([`Patience::beside`](crate::queue::Patience::beside)).

use super::in_flight::InFlight;
use super::{Device, RunReport, Running};
use crate::RuntimeError;
use crate::cache::Prepared;
use crate::event::{Blocking, BufferRead, Event};
use crate::memory::Buffer;
use crate::program::Program;
use crate::queue::CommandQueue;
use crate::trace::{CallSite, Trace, TraceCapture};
use tilework_abi::cq::layout::QueueId;
use tilework_cq::DispatchCommand;
use tilework_driver::HostLink;

/// A queue and what is under way in it.
#[derive(Debug, Default)]
pub(super) struct Lane {
    pub queue: Option<CommandQueue>,
    /// Programs in the queue.
    pub in_flight: InFlight,
    /// Bytes of the transfers in the queue.
    pub transfer_bytes: usize,
}

impl<C: HostLink> Device<C> {
    /// The device as a host of queue `queue` sees it: its calls are those of the device itself, for
    /// this queue. Under slow dispatch each call is done when it returns, on either queue.
    ///
    /// # Errors
    /// A queue that the device does not have
    /// ([`DeviceConfig::queues`](super::DeviceConfig::queues)).
    pub fn on_queue(&mut self, queue: QueueId) -> Result<OnQueue<'_, C>, RuntimeError> {
        if queue.number() >= self.config.queues {
            return Err(RuntimeError::NoSuchQueue { asked: queue, queues: self.config.queues });
        }
        Ok(OnQueue { device: self, queue })
    }

    /// Makes the calls that follow about `queue`; returns the queue that they were about before.
    pub(super) fn select(&mut self, queue: QueueId) -> QueueId {
        let before = self.at;
        if queue != before {
            std::mem::swap(&mut self.queue, &mut self.parked.queue);
            std::mem::swap(&mut self.in_flight, &mut self.parked.in_flight);
            std::mem::swap(&mut self.transfer_bytes, &mut self.parked.transfer_bytes);
            self.at = queue;
        }
        before
    }

    /// Does `f` while the calls are about `queue`.
    pub(super) fn on<T>(&mut self, queue: QueueId, f: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.select(queue);
        let result = f(self);
        self.select(before);
        result
    }

    /// The queues of the device, as far as they have been started, the first one first; none under
    /// slow dispatch.
    pub fn queues(&self) -> impl Iterator<Item = &CommandQueue> {
        QueueId::ALL.into_iter().filter_map(|id| self.queue_of(id))
    }

    /// Queue `id`, if it is started.
    pub(super) fn queue_of(&self, id: QueueId) -> Option<&CommandQueue> {
        if id == self.at { self.queue.as_ref() } else { self.parked.queue.as_ref() }
    }

    /// Runs what `lay_out` gives on the present queue, beside whatever is under way in the other,
    /// for the call `call`.
    fn run_beside(
        &mut self,
        (call, at): (&'static str, CallSite),
        lay_out: impl FnOnce(&mut Self) -> Result<Vec<Running>, RuntimeError>,
    ) -> Result<RunReport, RuntimeError> {
        self.outside_capture(call, at)?;
        self.alive()?;
        self.with_all_sub_devices(Self::finish_queue)?;
        let before = self.statistics();
        let running = lay_out(self)?;
        for running in &running {
            self.meet(&running.program.name, &running.layout.cores)?;
        }
        self.run_all(running, &before)
    }

    /// The place of queue `id`.
    pub(super) fn place_of(&mut self, id: QueueId) -> &mut Option<CommandQueue> {
        if id == self.at { &mut self.queue } else { &mut self.parked.queue }
    }
}

/// A call to the device about the queue of `$on`. Not a closure, which would hide from where the
/// call comes: errors of traces say it.
macro_rules! on {
    ($on:ident, $call:ident($($argument:expr),*)) => {{
        let before = $on.device.select($on.queue);
        let result = $on.device.$call($($argument),*);
        $on.device.select(before);
        result
    }};
}

/// The calls of a device to one of its queues. Dropping it changes nothing.
pub struct OnQueue<'a, C> {
    device: &'a mut Device<C>,
    queue: QueueId,
}

impl<C> std::fmt::Debug for OnQueue<'_, C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OnQueue").field("device", &self.device).field("queue", &self.queue).finish()
    }
}

impl<C: HostLink> OnQueue<'_, C> {
    /// The number of the queue.
    pub fn id(&self) -> QueueId {
        self.queue
    }

    /// The queue itself, under fast dispatch.
    pub fn queue(&self) -> Option<&CommandQueue> {
        self.device.queue_of(self.queue)
    }

    /// All records of the queue so far, if the configuration asks for them.
    pub fn captured(&self) -> Option<&[u8]> {
        self.queue()?.captured()
    }

    /// Does `f` with the device while its calls are about this queue.
    pub fn with<T>(&mut self, f: impl FnOnce(&mut Device<C>) -> T) -> T {
        self.device.on(self.queue, f)
    }

    /// [`Device::enqueue_write_buffer`] on this queue.
    ///
    /// # Errors
    /// As there.
    #[track_caller]
    pub fn enqueue_write_buffer(
        &mut self,
        buffer: &Buffer,
        data: &[u8],
        blocking: Blocking,
    ) -> Result<(), RuntimeError> {
        on!(self, enqueue_write_buffer(buffer, data, blocking))
    }

    /// [`Device::enqueue_read_buffer`] on this queue.
    ///
    /// # Errors
    /// As there.
    #[track_caller]
    pub fn enqueue_read_buffer(&mut self, buffer: &Buffer, blocking: Blocking) -> Result<BufferRead, RuntimeError> {
        on!(self, enqueue_read_buffer(buffer, blocking))
    }

    /// [`Device::enqueue_program`] on this queue.
    ///
    /// # Errors
    /// As there.
    #[track_caller]
    pub fn enqueue_program(&mut self, program: &Program, blocking: Blocking) -> Result<(), RuntimeError> {
        on!(self, enqueue_program(program, blocking))
    }

    /// [`Device::enqueue_prepared`] on this queue.
    ///
    /// # Errors
    /// As there.
    #[track_caller]
    pub fn enqueue_prepared(&mut self, prepared: &mut Prepared, blocking: Blocking) -> Result<(), RuntimeError> {
        on!(self, enqueue_prepared(prepared, blocking))
    }

    /// [`Device::record_event`] on this queue.
    ///
    /// # Errors
    /// As there.
    #[track_caller]
    pub fn record_event(&mut self) -> Result<Event, RuntimeError> {
        on!(self, record_event())
    }

    /// [`Device::wait_for_event`] on this queue.
    ///
    /// # Errors
    /// As there.
    #[track_caller]
    pub fn wait_for_event(&mut self, event: &Event) -> Result<(), RuntimeError> {
        on!(self, wait_for_event(event))
    }

    /// [`Device::run`] on this queue: it waits for what is under way in this queue alone, and the
    /// programs run beside what is under way in the other.
    ///
    /// # Errors
    /// As there; a program that would meet one of the other queue.
    #[track_caller]
    pub fn run(&mut self, programs: &[Program]) -> Result<RunReport, RuntimeError> {
        let at = CallSite::here();
        self.with(|device| device.run_beside(("run", at), |device| device.lay_out(programs)))
    }

    /// [`Device::run_prepared`] on this queue, which waits as [`OnQueue::run`] does.
    ///
    /// # Errors
    /// As there; a program that would meet one of the other queue.
    #[track_caller]
    pub fn run_prepared(&mut self, programs: &[&Prepared]) -> Result<RunReport, RuntimeError> {
        let at = CallSite::here();
        self.with(|device| device.run_beside(("run_prepared", at), |device| device.lay_out_prepared(programs)))
    }

    /// [`Device::enqueue_commands`] on this queue.
    ///
    /// # Errors
    /// As there.
    #[track_caller]
    pub fn enqueue_commands(&mut self, commands: &[DispatchCommand]) -> Result<(), RuntimeError> {
        on!(self, enqueue_commands(commands))
    }

    /// [`Device::begin_trace_capture`] on this queue: programs that are enqueued here are recorded.
    ///
    /// # Errors
    /// As there.
    #[track_caller]
    pub fn begin_trace_capture(&mut self) -> Result<TraceCapture, RuntimeError> {
        on!(self, begin_trace_capture())
    }

    /// [`Device::replay_trace`] of a trace of this queue.
    ///
    /// # Errors
    /// As there.
    #[track_caller]
    pub fn replay_trace(&mut self, trace: &Trace, blocking: Blocking) -> Result<(), RuntimeError> {
        on!(self, replay_trace(trace, blocking))
    }

    /// Waits until everything that was enqueued on this queue is done.
    ///
    /// # Errors
    /// As [`Device::finish`].
    #[track_caller]
    pub fn finish(&mut self) -> Result<(), RuntimeError> {
        self.device.outside_capture("finish", CallSite::here())?;
        self.with(Device::finish_queue)
    }
}
