//! Queues shared by several threads: waits for entries and space, and deadlock detection.
//!
//! Push thread, run thread and pop thread (tt-budabackend, `docs/public/overview.md`, concurrent
//! mode) are roles that take part in a [`Shared`]. A role that cannot continue registers what it
//! waits for. If all participating roles wait or are done, and nothing has changed since each of
//! them last checked, they are deadlocked, which is known without a time-out: all of them get
//! the error, with the reasons of all. With the run thread alone (sequential mode) the first
//! wait is a deadlock.

use super::monitor::Monitor;
use super::store::{Entry, Queues};
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;
use tilework_netlist::types::QueueId;

/// The role of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Pushes inputs.
    Push,
    /// Runs programs.
    Run,
    /// Pops outputs.
    Pop,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Role::Push => "push thread",
            Role::Run => "run thread",
            Role::Pop => "pop thread",
        })
    }
}

/// What is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitKind {
    /// The entry at a pointer.
    Entry {
        /// The pointer, over 0..2N-1.
        pointer: u32,
    },
    /// Space for one more entry.
    Space,
    /// The write pointer, which a new read pointer has passed.
    Written {
        /// The new read pointer.
        pointer: u32,
    },
}

/// A wait; its `Display` form is a message for users.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wait {
    /// The waiting role.
    pub role: Role,
    /// The queue.
    pub queue: QueueId,
    /// Its name.
    pub name: String,
    /// What it waits for.
    pub kind: WaitKind,
    /// Entries of the queue.
    pub entries: u32,
    /// Its read pointer.
    pub rd: u32,
    /// Its write pointer.
    pub wr: u32,
    /// Epoch, operation and input, for the run thread.
    pub on_behalf: Option<String>,
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { role, name, entries, rd, wr, .. } = self;
        write!(f, "{role}")?;
        if let Some(on_behalf) = &self.on_behalf {
            write!(f, ", {on_behalf},")?;
        }
        match self.kind {
            WaitKind::Entry { pointer } => write!(f, " waits for entry {pointer} of queue {name}")?,
            WaitKind::Space => write!(f, " waits for space in queue {name}")?,
            WaitKind::Written { pointer } => {
                write!(f, " waits until queue {name} is written up to its new read pointer {pointer}")?;
            }
        }
        write!(f, " (rd {rd}, wr {wr}, {entries} entries)")
    }
}

/// A deadlock among roles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stuck {
    /// All waits, by role.
    pub waits: Vec<Wait>,
    /// Roles that have nothing left to do.
    pub done: Vec<Role>,
}

impl fmt::Display for Stuck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, wait) in self.waits.iter().enumerate() {
            write!(f, "{}{wait}", if i == 0 { "" } else { "; " })?;
        }
        for role in &self.done {
            write!(f, "; the {role} has nothing left to do")?;
        }
        Ok(())
    }
}

/// How a wait ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WaitOutcome<R> {
    /// The result of the wait.
    Done(R),
    /// A deadlock.
    Stuck(Stuck),
    /// The time-out has passed.
    TimedOut(Wait),
    /// Another thread has failed and called [`Shared::give_up`].
    GivenUp,
}

/// The state that the monitor guards.
#[derive(Debug)]
pub struct Guarded<E> {
    queues: Queues<E>,
    roles: BTreeMap<Role, Status>,
    stuck: Option<Stuck>,
    given_up: bool,
}

#[derive(Debug)]
enum Status {
    /// Running, or something has changed since it last checked.
    Going,
    /// It has checked and cannot continue.
    Waiting(Wait),
    /// Has left.
    Done,
}

/// Queues that threads share.
#[derive(Debug)]
pub struct Shared<E, M> {
    monitor: M,
    entry: PhantomData<fn() -> E>,
}

impl<E: Entry, M: Monitor<Guarded<E>>> Shared<E, M> {
    /// Shares queues; the run thread takes part from the start.
    pub fn new(queues: Queues<E>) -> Self {
        let roles = BTreeMap::from([(Role::Run, Status::Going)]);
        let guarded = Guarded { queues, roles, stuck: None, given_up: false };
        Self { monitor: M::new(guarded), entry: PhantomData }
    }

    /// Calls `act` with the queues, without waiting for a condition.
    pub fn with<R>(&self, act: impl FnOnce(&mut Queues<E>) -> R) -> R {
        self.monitor.enter(|guarded| {
            let result = act(&mut guarded.queues);
            guarded.changed();
            result
        })
    }

    /// Registers roles, before their threads start, and clears earlier failures.
    pub fn begin(&self, roles: &[Role]) {
        self.monitor.enter(|guarded| {
            guarded.roles = roles.iter().map(|role| (*role, Status::Going)).collect();
            (guarded.stuck, guarded.given_up) = (None, false);
        });
    }

    /// Marks a role as done.
    pub fn leave(&self, role: Role) {
        self.monitor.enter(|guarded| {
            guarded.roles.insert(role, Status::Done);
            guarded.look_for_stuck();
        });
    }

    /// Ends the waits of all other roles after a failure of this thread, which reports it itself.
    pub fn give_up(&self) {
        self.monitor.enter(|guarded| guarded.given_up = true);
    }

    /// Calls `try_act` until it returns a value; otherwise it returns what it waits for.
    pub fn wait<R>(
        &self,
        role: Role,
        timeout: Option<Duration>,
        mut try_act: impl FnMut(&mut Queues<E>) -> Result<R, Wait>,
    ) -> WaitOutcome<R> {
        let mut last = None;
        let outcome = self.monitor.wait(timeout, |guarded| {
            if guarded.given_up {
                return Some(WaitOutcome::GivenUp);
            }
            match try_act(&mut guarded.queues) {
                Ok(result) => {
                    if let Some(status) = guarded.roles.get_mut(&role) {
                        *status = Status::Going;
                    }
                    guarded.changed();
                    return Some(WaitOutcome::Done(result));
                }
                Err(wait) => {
                    last = Some(wait.clone());
                    // A thread without a role waits by the clock only.
                    if let Some(status) = guarded.roles.get_mut(&role) {
                        *status = Status::Waiting(wait);
                        guarded.look_for_stuck();
                    }
                }
            }
            let stuck = guarded.stuck.clone().filter(|_| guarded.roles.contains_key(&role))?;
            // This thread is no longer waiting: it returns the error.
            guarded.roles.insert(role, Status::Going);
            Some(WaitOutcome::Stuck(stuck))
        });
        outcome.unwrap_or_else(|| {
            self.monitor.enter(|guarded| {
                if let Some(status) = guarded.roles.get_mut(&role) {
                    *status = Status::Going;
                }
            });
            WaitOutcome::TimedOut(last.expect("a wait that timed out has looked at least once"))
        })
    }
}

impl<E> Guarded<E> {
    /// Marks waiting roles as running, so that they check again before a deadlock is declared.
    fn changed(&mut self) {
        for status in self.roles.values_mut() {
            if matches!(status, Status::Waiting(_)) {
                *status = Status::Going;
            }
        }
        self.stuck = None;
    }

    fn look_for_stuck(&mut self) {
        let going = self.roles.values().any(|status| matches!(status, Status::Going));
        let mut stuck = Stuck { waits: Vec::new(), done: Vec::new() };
        for (role, status) in &self.roles {
            match status {
                Status::Waiting(wait) => stuck.waits.push(wait.clone()),
                Status::Done => stuck.done.push(*role),
                Status::Going => {}
            }
        }
        // The first role to get the deadlock may leave at once; the others still get the
        // complete one.
        if !going && !stuck.waits.is_empty() && self.stuck.is_none() {
            self.stuck = Some(stuck);
        }
    }
}
