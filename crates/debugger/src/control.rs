//! The debugger as the owner of a run sees it.

use crate::code::Code;
use crate::history::History;
use crate::link::DebugLink;
use crate::machine::{Machine, State};
use crate::server::Server;
use crate::witness::Witness;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tilework_driver::LinkError;
use tilework_sim::Chip;

/// What a link needs, and leaves behind when it goes.
pub(crate) struct Session {
    pub(crate) server: Server,
    /// Nobody is attached any more.
    pub(crate) is_over: bool,
    /// The run is to be repeated.
    pub(crate) goes_back: bool,
    /// gdb has ended the run.
    pub(crate) killed: bool,
    /// What is known of the program after its first run.
    pub(crate) state: Option<State>,
    /// The machine of the run that has ended.
    pub(crate) last: Option<Machine>,
}

/// A debugger that waits for gdb, and then serves it while a program runs, perhaps several times.
#[derive(Clone)]
pub struct Debugger {
    session: Arc<Mutex<Session>>,
    armed: Arc<AtomicBool>,
}

impl Debugger {
    /// A debugger for a port of the loopback address, or for any free one with 0. `on_ready` is
    /// called with the port when the chip has come to the program and gdb may connect. Whoever
    /// waits for gdb stops waiting when `interrupted` is set.
    ///
    /// # Errors
    /// The port cannot be had.
    pub fn new(port: u16, on_ready: Box<dyn Fn(u16) + Send>, interrupted: Arc<AtomicBool>) -> io::Result<Self> {
        let server = Server::new(port, on_ready, interrupted)?;
        let session = Session { server, is_over: false, goes_back: false, killed: false, state: None, last: None };
        Ok(Self { session: Arc::new(Mutex::new(session)), armed: Arc::default() })
    }

    /// The session, for a moment.
    pub(crate) fn session(&self) -> MutexGuard<'_, Session> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A link to a chip just powered on, on which the program is run from its beginning. `code` is
    /// all code that may run; `witness` looks at all of the run.
    pub fn link(&self, chip: Chip, code: Code, witness: Option<Box<dyn Witness>>) -> DebugLink {
        let kept = {
            let mut session = self.session();
            session.goes_back = false;
            session.last = None;
            session.state.take()
        };
        let state = kept.unwrap_or_else(|| State::new(code, Arc::clone(&self.armed)));
        DebugLink::new(Machine::new(chip, state, witness), self.clone())
    }

    /// A link to a chip whose host cannot be run again, as a program that only calls it: gdb cannot
    /// go back. gdb is waited for at once, before the chip's first cycle.
    ///
    /// # Errors
    /// The port cannot be had any more.
    pub fn attach(&self, chip: Chip) -> Result<DebugLink, LinkError> {
        let mut state = State::new(Code::unknown(), Arc::clone(&self.armed));
        state.history = History::none();
        self.begin();
        let mut link = DebugLink::new(Machine::new(chip, state, None), self.clone());
        link.attach()?;
        Ok(link)
    }

    /// A link to a chip just powered on, whose host can be run again, and of whose code nothing is
    /// known. gdb is waited for before the chip's first cycle.
    ///
    /// # Errors
    /// The port cannot be had any more.
    pub fn replay(&self, chip: Chip) -> Result<DebugLink, LinkError> {
        let first = self.session().state.is_none();
        self.begin();
        let mut link = self.link(chip, Code::unknown(), None);
        if first {
            link.attach()?;
        }
        Ok(link)
    }

    /// The program is about to be started: the chip stops at its first kernel.
    pub fn begin(&self) {
        self.armed.store(true, Ordering::Relaxed);
    }

    /// Whether the run was given up to go back in time, and has to be repeated with another link.
    pub fn goes_back(&self) -> bool {
        self.session().goes_back
    }

    /// Whether gdb has ended the run.
    pub fn killed(&self) -> bool {
        self.session().killed
    }

    /// Tells gdb the exit code of the command.
    pub fn end(&self, code: u8) {
        let mut session = self.session();
        if let Some(mut machine) = session.last.take() {
            session.server.end(&mut machine, code);
        }
    }
}
