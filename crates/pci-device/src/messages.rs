//! What the library says on standard error: of each kind so many messages that a host which does
//! the same wrong thing for hours does not fill a disk.

use std::io::Write;
use std::sync::atomic::{AtomicU32, Ordering};

/// What a message is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A variable of the environment.
    Environment,
    /// The power of the card: a call before `libttsim_init`, a second one, a card that
    /// is not built.
    Power,
    /// A call from a call-back.
    Nested,
    /// A defect of the simulator.
    Defect,
    /// A wrong access to configuration space.
    Configuration,
    /// A wrong access to the card's memory.
    Memory,
    /// A call that this chip does not have.
    Tile,
    /// A fault of a program, and that the chip is stopped: once for each card.
    Fault,
}

impl Kind {
    const COUNT: usize = 8;

    /// Messages of this kind that are printed in the life of a process.
    const fn most(self) -> u32 {
        match self {
            // Each of them costs the building of a chip.
            Self::Fault => 1000,
            _ => 100,
        }
    }
}

static SAID: [AtomicU32; Kind::COUNT] = [const { AtomicU32::new(0) }; Kind::COUNT];

/// Says something, unless that was done too often.
pub fn say(kind: Kind, what: &str) {
    let said = &SAID[kind as usize];
    // Saturating, as a host may go on for ever.
    let before = said.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |said| said.checked_add(1));
    match before.unwrap_or(u32::MAX).saturating_add(1) {
        number if number < kind.most() => print(what),
        number if number == kind.most() => print(&format!("{what} (further messages of this kind are left out)")),
        _ => {}
    }
}

/// Says why the process ends, whatever was said before.
pub(crate) fn say_last(what: &str) {
    print(what);
}

/// Says several lines, however much was said before.
pub(crate) fn say_lines(what: &str) {
    what.lines().for_each(print);
}

/// Standard error may be closed.
fn print(what: &str) {
    let _ = writeln!(std::io::stderr(), "tilework: {what}");
}
