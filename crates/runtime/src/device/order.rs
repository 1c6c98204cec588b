//! Which launches come behind which: the rule by which two queues share the workers.
//!
//! Launches of one queue on one worker come one behind the other, because a queue waits for the end
//! of a program before it sends the go signal of the next on the same sub-device. Launches of two
//! queues are in no order unless something says so: the later queue waits for an event behind the
//! earlier launch ([`Device::wait_for_event`](super::Device::wait_for_event)), or the host has
//! noticed such an event, or has finished the earlier queue. Two launches that may meet on a worker
//! would share its launch messages and its memory, so the second one is refused, and the error
//! names both. (tt-metal refuses it by sub-device, `CQOwnerState`; here it is by worker.)
//!
//! The account is kept for devices with two queues. Times are counts of launches, for each
//! queue by sub-device: a launch is ended for a queue when what that queue executes next comes
//! behind its end.

use super::sub_device::SubDeviceId;
use crate::RuntimeError;
use crate::event::{Event, Launches, Put};
use crate::program::Program;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use tilework_abi::cq::layout::QueueId;
use tilework_abi::noc::NocXy;

/// What is known of the launches of one queue.
#[derive(Debug, Default)]
struct Times {
    /// Launches so far.
    launched: Launches,
    /// Those whose end the queue has waited for: what it executes next comes behind them.
    settled: Launches,
    /// Those that what the other queue executes next comes behind.
    ended: Launches,
    /// Events that the host has not been seen to notice, oldest first.
    events: VecDeque<Event>,
}

impl Times {
    /// The other queue comes behind these launches.
    fn end(&mut self, behind: &Launches) {
        for (ended, &behind) in self.ended.iter_mut().zip(behind) {
            *ended = (*ended).max(behind);
        }
    }

    /// Takes in what the host has noticed.
    fn notice(&mut self) {
        while let Some(Some(outcome)) = self.events.front().map(Event::poll) {
            if let Some(event) = self.events.pop_front().filter(|_| outcome.is_ok()) {
                self.end(&event.place().behind);
            }
        }
    }
}

/// A launch.
#[derive(Debug)]
struct Launched {
    queue: QueueId,
    sub: SubDeviceId,
    /// Its number among those of its queue and sub-device, from 1 on.
    number: u64,
    program: Arc<Program>,
}

/// Tiles of a row of [`Order::last`]: at least the columns of the grid.
const ROW: usize = 32;

/// The account of a device with two queues.
#[derive(Debug, Default)]
pub(super) struct Order {
    /// The last launch on each worker, by [`place`].
    last: Vec<Option<Rc<Launched>>>,
    times: [Times; QueueId::ALL.len()],
}

/// Where a worker stands in [`Order::last`].
fn place(core: NocXy) -> usize {
    usize::from(core.y) * ROW + usize::from(core.x)
}

impl Order {
    /// Whether `queue` may launch `program` on `cores` now.
    ///
    /// # Errors
    /// A worker on which a program of the other queue may still run.
    pub(super) fn check(&mut self, queue: QueueId, program: &str, cores: &[NocXy]) -> Result<(), RuntimeError> {
        self.times.iter_mut().for_each(Times::notice);
        for &core in cores {
            let Some(Some(last)) = self.last.get(place(core)) else { continue };
            if last.queue != queue && last.number > self.times[last.queue.index()].ended[last.sub.index()] {
                return Err(RuntimeError::Unordered {
                    first: last.program.name.clone(),
                    first_queue: last.queue,
                    second: program.to_owned(),
                    second_queue: queue,
                    core,
                });
            }
        }
        Ok(())
    }

    /// `queue` launches `program` on `cores` of a sub-device.
    pub(super) fn launch(&mut self, queue: QueueId, sub: SubDeviceId, program: Arc<Program>, cores: &[NocXy]) {
        let launched = &mut self.times[queue.index()].launched[sub.index()];
        *launched += 1;
        let launched = Rc::new(Launched { queue, sub, number: *launched, program });
        for &core in cores {
            let at = place(core);
            if self.last.len() <= at {
                self.last.resize(at + 1, None);
            }
            self.last[at] = Some(Rc::clone(&launched));
        }
    }

    /// `queue` waits for the programs of these sub-devices before it goes on.
    pub(super) fn settle(&mut self, queue: QueueId, subs: impl Iterator<Item = SubDeviceId>) {
        let times = &mut self.times[queue.index()];
        for sub in subs {
            times.settled[sub.index()] = times.launched[sub.index()];
        }
    }

    /// `event` is put into `queue`.
    pub(super) fn record(&mut self, queue: QueueId, event: &Event) {
        let times = &mut self.times[queue.index()];
        event.comes_behind(times.settled);
        times.events.push_back(event.clone());
        times.notice();
    }

    /// The other queue goes on behind an event.
    pub(super) fn wait(&mut self, event: Put) {
        self.times[event.queue.index()].end(&event.behind);
    }

    /// The host has waited for everything that `queue` has settled.
    pub(super) fn finish(&mut self, queue: QueueId) {
        let times = &mut self.times[queue.index()];
        let settled = times.settled;
        times.end(&settled);
        times.events.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::Cores;

    const A: QueueId = QueueId::FIRST;
    const B: QueueId = QueueId::SECOND;
    const SUB: SubDeviceId = SubDeviceId::WHOLE;

    fn cores(range: std::ops::Range<u8>) -> Vec<NocXy> {
        range.map(|x| NocXy::new(x, 2)).collect()
    }

    fn launch(order: &mut Order, queue: QueueId, name: &str, on: &[NocXy]) -> Result<(), String> {
        order.check(queue, name, on).map_err(|e| e.to_string())?;
        order.launch(queue, SUB, Arc::new(Program::new(name, Cores::All)), on);
        Ok(())
    }

    #[test]
    fn launches_of_two_queues_meet_only_in_order() {
        let mut order = Order::default();
        launch(&mut order, A, "one", &cores(1..5)).unwrap();
        launch(&mut order, B, "beside", &cores(5..9)).unwrap();
        // On its own cores and those of nobody.
        launch(&mut order, A, "two", &cores(1..3)).unwrap();
        let refused = launch(&mut order, B, "three", &cores(2..4)).unwrap_err();
        assert!(refused.contains("\"three\" on queue 1") && refused.contains("\"two\" on queue 0"), "{refused}");
        assert!(refused.contains("(2,2)"), "{refused}");
        // An event that is recorded before the program's end is waited for is not behind it.
        let early = Event::pending(0);
        early.put(A, Some(1));
        order.record(A, &early);
        order.wait(early.place());
        assert!(launch(&mut order, B, "three", &cores(2..4)).is_err());
        order.settle(A, [SUB].into_iter());
        let event = Event::pending(0);
        event.put(A, Some(2));
        order.record(A, &event);
        assert!(launch(&mut order, B, "three", &cores(2..4)).is_err());
        order.wait(event.place());
        launch(&mut order, B, "three", &cores(2..4)).unwrap();
        // And back: by what the host notices.
        assert!(launch(&mut order, A, "four", &cores(3..4)).is_err());
        order.settle(B, [SUB].into_iter());
        let back = Event::pending(0);
        back.put(B, Some(1));
        order.record(B, &back);
        assert!(launch(&mut order, A, "four", &cores(3..4)).is_err());
        back.end(Ok(1));
        launch(&mut order, A, "four", &cores(3..4)).unwrap();
        // By a finish.
        order.settle(A, [SUB].into_iter());
        order.finish(A);
        launch(&mut order, B, "five", &cores(1..9)).unwrap();
        assert!(order.times.iter().all(|times| times.events.is_empty()));
    }

    #[test]
    fn an_event_that_ended_in_an_error_orders_nothing() {
        let mut order = Order::default();
        launch(&mut order, A, "one", &cores(1..2)).unwrap();
        order.settle(A, [SUB].into_iter());
        let event = Event::pending(0);
        order.record(A, &event);
        event.end(Err(RuntimeError::Closed));
        assert!(launch(&mut order, B, "two", &cores(1..2)).is_err());
    }
}
