//! Monitors: a value shared by several threads, and waits for it to change.
//!
//! All synchronisation primitives of the crate are behind [`Monitor`], so that tests can replace
//! them and explore thread schedules (they do, with shuttle).

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A lock and a condition.
pub trait Monitor<T>: Send + Sync {
    /// Guards a value.
    fn new(value: T) -> Self
    where
        Self: Sized;

    /// Calls `act` with exclusive access to the value, then wakes the threads that wait
    /// for a change.
    fn enter<R>(&self, act: impl FnOnce(&mut T) -> R) -> R;

    /// Calls `try_act` now and after every change until it returns a value. `None` after `timeout`;
    /// without one it waits indefinitely.
    fn wait<R>(&self, timeout: Option<Duration>, try_act: impl FnMut(&mut T) -> Option<R>) -> Option<R>;
}

/// A monitor made of the standard library's mutex and condition variable.
#[derive(Debug, Default)]
pub struct StdMonitor<T> {
    value: Mutex<T>,
    changed: Condvar,
}

impl<T> StdMonitor<T> {
    /// After a panic of another thread the value is consistent: each call of `enter` is one
    /// complete step.
    fn lock(&self) -> MutexGuard<'_, T> {
        self.value.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Send> Monitor<T> for StdMonitor<T> {
    fn new(value: T) -> Self {
        Self { value: Mutex::new(value), changed: Condvar::new() }
    }

    fn enter<R>(&self, act: impl FnOnce(&mut T) -> R) -> R {
        let result = act(&mut self.lock());
        self.changed.notify_all();
        result
    }

    fn wait<R>(&self, timeout: Option<Duration>, mut try_act: impl FnMut(&mut T) -> Option<R>) -> Option<R> {
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let mut value = self.lock();
        loop {
            if let Some(result) = try_act(&mut value) {
                drop(value);
                self.changed.notify_all();
                return Some(result);
            }
            value = match deadline {
                None => self.changed.wait(value).unwrap_or_else(PoisonError::into_inner),
                Some(deadline) => {
                    let left = deadline.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())?;
                    self.changed.wait_timeout(value, left).unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }
}
