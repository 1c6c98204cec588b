//! The user's interrupt (SIGINT, Ctrl-C): a run that looks for it ends with a report of where it
//! is.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

/// The exit code of a process that SIGINT has ended, as shells have it.
const KILLED: i32 = 130;

/// What the interrupt sets from the first call of this function on. A second interrupt ends the
/// process at once.
pub fn flag() -> Arc<AtomicBool> {
    static FLAG: OnceLock<Arc<AtomicBool>> = OnceLock::new();
    let new = || {
        let flag = Arc::new(AtomicBool::new(false));
        let (signal, set) = (signal_hook::consts::SIGINT, Arc::clone(&flag));
        // The order matters: the first interrupt finds the flag unset, and sets it. Without a
        // handler an interrupt ends the process, as always.
        let _ = signal_hook::flag::register_conditional_shutdown(signal, KILLED, Arc::clone(&flag))
            .and_then(|_| signal_hook::flag::register(signal, set));
        flag
    };
    Arc::clone(FLAG.get_or_init(new))
}
