//! Where a Tensix instruction comes from: who pushed it, from where, and what it was expanded from.
//!
//! Every place of a front end carries it along, so it is small: a fault or a wait that happens
//! thousands of cycles after the push can still name the core's instruction.

use crate::Cycle;
use std::fmt;
use tilework_abi::tensix::Processor;

/// The instruction of a core on whose behalf something happens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Issuer {
    pub(crate) core: Processor,
    /// Its address.
    pub(crate) pc: u32,
}

/// How an instruction came to the wait gate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Route {
    /// The thread's own core pushed it.
    Own,
    /// BRISC or the debug bus pushed it behind the MOP expander.
    BehindMop,
    /// A `MOP` was expanded to it.
    Mop,
    /// A `REPLAY` repeats it.
    Replay,
    /// A `REPLAY` repeats it to which a `MOP` was expanded.
    MopReplay,
}

/// Where a Tensix instruction was pushed, and what it was expanded from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Origin {
    /// Of the push: the address of the core's instruction.
    pc: u32,
    /// Of what a `REPLAY` repeats: where that was pushed when it was recorded.
    recorded_pc: u32,
    /// The low bits of the cycle of the push.
    pushed: u32,
    core: Option<Processor>,
    recorded_core: Option<Processor>,
    route: Route,
}

impl Origin {
    /// Pushed over the debug bus.
    pub(super) const DEBUG_BUS: Self =
        Self { pc: 0, recorded_pc: 0, pushed: 0, core: None, recorded_core: None, route: Route::BehindMop };

    /// Pushed by the thread's own core at cycle `at`.
    #[inline]
    pub(super) const fn own(by: Issuer, at: Cycle) -> Self {
        Self { pc: by.pc, pushed: at as u32, core: Some(by.core), route: Route::Own, ..Self::DEBUG_BUS }
    }

    /// Pushed by BRISC behind the MOP expander at cycle `at`.
    pub(super) const fn behind_mop(by: Issuer, at: Cycle) -> Self {
        Self { route: Route::BehindMop, ..Self::own(by, at) }
    }

    /// Of what a `MOP` of this origin is expanded to.
    #[inline]
    pub(super) const fn of_expanded(self) -> Self {
        Self { route: Route::Mop, ..self }
    }

    /// Of what a `REPLAY` of this origin repeats, which was recorded from a push of origin
    /// `recorded`.
    #[inline]
    pub(super) const fn of_replayed(self, recorded: Self) -> Self {
        let route = match self.route {
            Route::Mop | Route::MopReplay => Route::MopReplay,
            Route::Own | Route::BehindMop | Route::Replay => Route::Replay,
        };
        Self { recorded_pc: recorded.pc, recorded_core: recorded.core, route, ..self }
    }

    /// Whether the instruction occupies a place of the first FIFO until it passes the wait gate.
    #[inline]
    pub(super) const fn is_own(self) -> bool {
        matches!(self.route, Route::Own)
    }

    /// The core that pushed; `None`: the debug bus.
    pub const fn core(self) -> Option<Processor> {
        self.core
    }

    /// The low bits of the cycle of the push.
    pub(crate) const fn pushed(self) -> u32 {
        self.pushed
    }

    /// The address of the instruction with which the core pushed.
    pub const fn pc(self) -> Option<u32> {
        match self.core {
            Some(_) => Some(self.pc),
            None => None,
        }
    }
}

/// `pushed by TRISC1 at pc 0x6010`.
fn write_push(f: &mut fmt::Formatter<'_>, core: Option<Processor>, pc: u32) -> fmt::Result {
    match core {
        Some(core) => write!(f, "pushed by {core} at pc {pc:#x}"),
        None => f.write_str("pushed over the debug bus"),
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.route {
            Route::Own | Route::BehindMop => "",
            Route::Mop => "expanded from the MOP ",
            Route::Replay => "repeated by the REPLAY ",
            Route::MopReplay => "repeated by a REPLAY of the MOP ",
        })?;
        write_push(f, self.core, self.pc)?;
        match self.route {
            Route::Replay | Route::MopReplay => {
                f.write_str(" and recorded when ")?;
                write_push(f, self.recorded_core, self.recorded_pc)
            }
            Route::Own | Route::BehindMop | Route::Mop => Ok(()),
        }
    }
}
