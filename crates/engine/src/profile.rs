//! Profile of a run by operation. This is the only place of the crate that reads a clock; no result
//! depends on it.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use tilework_model::ttnn::OpKind;

use crate::error::OperationPlace;
use crate::observe::{Event, Flow, Observer, Output};

/// An operation that ran.
#[derive(Clone, Debug)]
pub struct Timing {
    /// Where it is.
    pub place: OperationPlace,
    /// Its call depth.
    pub depth: usize,
    /// Self time: without the operations of programs that it called.
    pub own: Duration,
}

/// Measures each operation, and passes everything on to another observer, whose time
/// does not count.
pub struct Profile<O> {
    /// The other observer.
    pub inner: O,
    /// All operations in the order in which they ended.
    pub timings: Vec<Timing>,
    /// Operations that began and did not end: their time so far.
    open: Vec<Duration>,
    since: Instant,
}

impl<O: Observer> Profile<O> {
    /// Measures and passes on to `inner`.
    pub fn new(inner: O) -> Self {
        Self { inner, timings: Vec::new(), open: Vec::new(), since: Instant::now() }
    }

    /// Number and time of the operations of each kind, the longest time first.
    pub fn by_kind(&self) -> Vec<(OpKind, usize, Duration)> {
        let mut kinds: BTreeMap<OpKind, (usize, Duration)> = BTreeMap::new();
        for timing in &self.timings {
            let (count, time) = kinds.entry(timing.place.kind).or_default();
            *count += 1;
            *time += timing.own;
        }
        let mut kinds: Vec<_> = kinds.into_iter().map(|(kind, (count, time))| (kind, count, time)).collect();
        kinds.sort_by(|(_, _, a), (_, _, b)| b.cmp(a));
        kinds
    }

    /// Charges the time that has passed to the innermost operation.
    fn settle(&mut self) {
        let passed = self.since.elapsed();
        if let Some(time) = self.open.last_mut() {
            *time += passed;
        }
    }
}

impl<O: Observer> Observer for Profile<O> {
    fn before(&mut self, event: &Event<'_>) {
        self.settle();
        self.open.push(Duration::ZERO);
        self.inner.before(event);
        self.since = Instant::now();
    }

    fn wants_results(&self, event: &Event<'_>) -> bool {
        self.inner.wants_results(event)
    }

    fn after(&mut self, event: &Event<'_>, outputs: &[Output<'_>]) -> Flow {
        self.settle();
        let own = self.open.pop().unwrap_or_default();
        self.timings.push(Timing { place: event.place(), depth: event.depth, own });
        let flow = self.inner.after(event, outputs);
        self.since = Instant::now();
        flow
    }

    fn message(&mut self, event: &Event<'_>, text: &str, about: Option<&crate::Value>) {
        self.inner.message(event, text, about);
    }
}
