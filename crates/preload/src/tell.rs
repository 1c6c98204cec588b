//! What the library says on standard error, and how it ends the process.

use std::io::Write;
use std::sync::atomic::{AtomicU32, Ordering};

/// Exit code of a program that a fault of the chip, or a finding, has ended.
pub(crate) const ENDED: i32 = 101;
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

/// Ends the process at once: nobody's handlers run, which may want the card.
pub(crate) fn end() -> ! {
    let _ = std::io::stdout().flush();
    // SAFETY: `_exit` has no preconditions.
    unsafe { libc::_exit(ENDED) }
}
