//! Waiting: how long the host waits for the device, and why a wait ends without success.

use super::CommandQueue;
use super::timing::LOOK_AGAIN;
use crate::RuntimeError;
use std::ops::ControlFlow;
use tilework_abi::addr::L1Addr;
use tilework_abi::noc::NocXy;
use tilework_driver::{Card, DriverError, HostLink, LinkError, Target};

/// Words that cores wait for from a host that reads what they say: tile, address, value.
pub type MakeRoom = Box<dyn FnMut() -> Vec<(NocXy, L1Addr, u32)>>;

/// How long the host may wait: the cycles of a run, and the callback for its progress.
pub struct Patience<'a> {
    /// The device's time at which the host gives up.
    pub until: u64,
    /// Cycles that were allowed, for the message.
    pub budget: u64,
    /// Called at intervals with the device's time; says whether to go on.
    pub progress: &'a mut dyn FnMut(u64) -> ControlFlow<()>,
    /// The device's other queue, whose completions are noticed meanwhile: it may have no room to go
    /// on, and the queue that the host waits for may wait for it.
    pub beside: Option<&'a mut CommandQueue>,
    /// Asked when the chip is quiescent: cores may wait for room for what they say.
    pub room: Option<MakeRoom>,
}

impl Patience<'_> {
    /// Takes what the other queue has completed; says whether there was anything.
    ///
    /// # Errors
    /// As [`CommandQueue::notice`].
    pub fn notice_beside<C: HostLink>(&mut self, card: &mut Card<C>) -> Result<bool, Waited> {
        self.beside.as_mut().map_or(Ok(false), |queue| queue.notice(card))
    }

    /// Stores the words that cores of a quiescent chip wait for, if they wait for the host; says
    /// whether there were any.
    pub fn relieve<C: HostLink>(&mut self, card: &mut Card<C>) -> Result<bool, Waited> {
        let Some(room) = &mut self.room else { return Ok(false) };
        card.link_mut().settle();
        let words = room();
        for &(tile, address, value) in &words {
            card.write32(&Target::tile(tile), address, value)?;
        }
        Ok(!words.is_empty())
    }

    /// The error for a run whose cycles are used up.
    pub(super) fn spent(&self) -> Waited {
        Waited::Link(LinkError::Budget { cycles: self.budget })
    }

    /// Lets some cycles pass on a device whose word has not changed yet. `quiet` says that the
    /// chip was quiescent before the host looked.
    pub fn look_again<C: HostLink>(&mut self, card: &mut Card<C>, quiet: bool) -> Result<(), Waited> {
        let now = card.link().cycles();
        if quiet && !self.relieve(card)? {
            return Err(Waited::Link(LinkError::Deadlock { cycle: now }));
        }
        if now >= self.until {
            return Err(self.spent());
        }
        self.tell(now)?;
        Ok(card.link_mut().idle(LOOK_AGAIN)?)
    }

    /// Reports progress; an error when the host does not want to go on.
    pub(super) fn tell(&mut self, now: u64) -> Result<(), Waited> {
        match (self.progress)(now) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => {
                Err(Waited::Interrupted { cycles: self.budget.saturating_sub(self.until.saturating_sub(now)) })
            }
        }
    }
}

/// Whether the chip is known to be quiescent: no core can run and nothing is in flight.
pub(crate) fn is_quiet<C: HostLink>(card: &Card<C>) -> bool {
    card.link().inspect().is_some_and(tilework_driver::Inspect::is_quiet)
}

/// Why a wait failed; the device turns this into a [`RuntimeError`] with names.
#[derive(Debug)]
pub enum Waited {
    /// The chip stopped, or the link to it failed.
    Link(LinkError),
    /// The caller ended the run, after so many cycles of it.
    Interrupted {
        /// Cycles since the start of the run.
        cycles: u64,
    },
    /// Anything else.
    Other(RuntimeError),
}

impl From<LinkError> for Waited {
    fn from(error: LinkError) -> Self {
        Self::Link(error)
    }
}

impl From<DriverError> for Waited {
    fn from(error: DriverError) -> Self {
        match error {
            DriverError::Link(error) => error.into(),
            other => Self::Other(RuntimeError::Driver(other)),
        }
    }
}

/// The error for a device that broke the queue's protocol.
pub(super) fn protocol(error: impl ToString) -> Waited {
    Waited::Other(RuntimeError::Protocol(error.to_string()))
}
