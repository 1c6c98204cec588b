//! The time limit of a run.

use super::error::EpochError;
use std::time::{Duration, Instant};

/// When a run ends, whatever it does. It is checked between instructions and between operations,
/// and bounds every wait of the run thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deadline {
    limit: Duration,
    end: Instant,
}

impl Deadline {
    /// From now on.
    pub fn after(limit: Duration) -> Option<Self> {
        Some(Self { limit, end: Instant::now().checked_add(limit)? })
    }

    /// An error once the time is over.
    pub(crate) fn check(self) -> Result<(), EpochError> {
        match self.left().is_zero() {
            true => Err(EpochError::OutOfTime(self.limit)),
            false => Ok(()),
        }
    }

    /// What is left of the time.
    pub(crate) fn left(self) -> Duration {
        self.end.saturating_duration_since(Instant::now())
    }
}
