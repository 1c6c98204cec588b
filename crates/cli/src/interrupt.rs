//! The user's interrupt (SIGINT, Ctrl-C): a run that looks for it ends with a report of where it
//! is.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Once, OnceLock};

/// What a shell adds to the number of a signal for the exit code of a process that it has ended.
const KILLED: i32 = 128;

/// What the interrupt sets from the first call of this function on. A second interrupt ends the
/// process at once.
pub fn flag() -> Arc<AtomicBool> {
    static FLAG: OnceLock<Arc<AtomicBool>> = OnceLock::new();
    let new = || {
        let flag = Arc::new(AtomicBool::new(false));
        set_by(signal_hook::consts::SIGINT, &flag);
        flag
    };
    Arc::clone(FLAG.get_or_init(new))
}

/// From now on SIGTERM and the end of the terminal (SIGHUP) end a run as an interrupt does: what it
/// holds outside of this process must be left in order.
pub fn also_by_termination() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        for signal in [signal_hook::consts::SIGTERM, signal_hook::consts::SIGHUP] {
            set_by(signal, &flag());
        }
    });
}

fn set_by(signal: i32, flag: &Arc<AtomicBool>) {
    // The order matters: the first interrupt finds the flag unset, and sets it. Without a
    // handler an interrupt ends the process, as always.
    let _ = signal_hook::flag::register_conditional_shutdown(signal, KILLED + signal, Arc::clone(flag))
        .and_then(|_| signal_hook::flag::register(signal, Arc::clone(flag)));
}
