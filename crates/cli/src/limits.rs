//! Limits of the machine: what a command does when it gets less memory, fewer threads, a smaller
//! stack or shorter files than it needs. It ends with an error that says what was missing, never by
//! a signal.

use crate::failure::{Failure, Outcome};
use std::process::ExitCode;
use std::sync::OnceLock;

/// Stack of the threads that work, whatever the limits of the process and its environment say: what
/// a system usually gives to a main thread.
pub const STACK_BYTES: usize = 8 << 20;

/// Runs a whole command, on a stack of its own.
pub fn run_whole(command: fn() -> ExitCode) -> ExitCode {
    let ready = handle_signals().map_err(|e| format!("cannot handle signals: {e}"));
    let started = ready.and_then(|()| {
        let thread = std::thread::Builder::new().name("tilework".into()).stack_size(STACK_BYTES);
        thread.spawn(command).map_err(|e| format!("cannot start a thread with {STACK_BYTES} bytes of stack: {e}"))
    });
    match started {
        // A panic has told why; it is a defect. 101 is what the main thread's would give.
        Ok(thread) => thread.join().unwrap_or(ExitCode::from(101)),
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}

/// What ends a process by a signal ends it with exit code 1.
///
/// A write past the limit of a file's length (`RLIMIT_FSIZE`) fails like any other write, and is
/// reported so. Memory that was not asked for beforehand, or a stack that is used up, still ends
/// the process at once: the standard library says why and aborts.
#[cfg(unix)]
fn handle_signals() -> std::io::Result<()> {
    use signal_hook::flag;
    use std::sync::{Arc, atomic::AtomicBool};
    flag::register(libc::SIGXFSZ, Arc::new(AtomicBool::new(false)))?;
    flag::register_conditional_shutdown(libc::SIGABRT, 1, Arc::new(AtomicBool::new(true)))?;
    Ok(())
}

#[cfg(not(unix))]
fn handle_signals() -> std::io::Result<()> {
    Ok(())
}

/// Starts a thread and waits until it runs. One that does not find the memory for its start ends
/// the process; of many that start at once, the last ones would, where memory ends.
fn start_thread(thread: rayon::ThreadBuilder) -> std::io::Result<()> {
    let (runs, wait) = std::sync::mpsc::sync_channel(1);
    let builder = std::thread::Builder::new().stack_size(thread.stack_size().unwrap_or(STACK_BYTES));
    builder.spawn(move || {
        // Whoever waits is there.
        let _ = runs.send(());
        thread.run();
    })?;
    wait.recv().map_err(std::io::Error::other)
}

/// Starts the threads that the host's arithmetic uses; later calls do nothing.
///
/// # Errors
/// The machine does not give so many.
pub fn start_threads() -> Outcome<()> {
    static STARTED: OnceLock<Result<(), String>> = OnceLock::new();
    let start = || {
        let pool = rayon::ThreadPoolBuilder::new().stack_size(STACK_BYTES).spawn_handler(start_thread);
        pool.build_global().map_err(|error| error.to_string())
    };
    let started = STARTED.get_or_init(start).clone();
    started.map_err(|error| {
        let help = "RAYON_NUM_THREADS=N asks for fewer";
        Failure::failed("threads", format!("cannot start the threads of the arithmetic: {error}; {help}"))
    })
}
