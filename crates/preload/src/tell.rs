//! What the library says on standard error, and how it ends the process.

use std::io::Write;
use std::sync::atomic::{AtomicU32, Ordering};

/// Exit code of a program that a fault of the chip, or a finding, has ended.
pub(crate) const ENDED: i32 = 101;
/// Exit code of a program that a deadlock of the chip has ended.
pub(crate) const DEADLOCKED: i32 = 102;
/// Messages of one process; a program that does the same wrong thing for hours is not to fill a
/// disk.
const MOST: u32 = 200;

static SAID: AtomicU32 = AtomicU32::new(0);

/// Says something.
pub(crate) fn say(what: &str) {
    match SAID.fetch_add(1, Ordering::Relaxed) {
        number if number < MOST => {
            let _ = writeln!(std::io::stderr(), "tilework: {what}");
        }
        MOST => {
            let _ = writeln!(std::io::stderr(), "tilework: further messages are left out");
        }
        _ => {}
    }
}

/// Says what is said once, however much was said before.
pub(crate) fn say_last(what: &str) {
    let _ = writeln!(std::io::stderr(), "tilework: {what}");
}

/// Ends the process at once: nobody's handlers run, which may want the card.
pub(crate) fn end() -> ! {
    end_with(ENDED)
}

/// As [`end`], with an exit code.
pub(crate) fn end_with(code: i32) -> ! {
    let _ = std::io::stdout().flush();
    // SAFETY: `_exit` has no preconditions.
    unsafe { libc::_exit(code) }
}
