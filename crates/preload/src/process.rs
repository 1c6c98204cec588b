//! The process: what happens when the library is loaded, at a fork, and at the end.

use crate::{copies, paths, signals, state, tell};
use std::fs::OpenOptions;
use std::io::Write;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether the command has started this process, or a parent of it.
static ACTIVE: AtomicBool = AtomicBool::new(false);

/// Whether there is a card to serve.
#[inline]
pub(crate) fn is_active() -> bool {
    ACTIVE.load(Ordering::Relaxed)
}

/// Called by the dynamic linker.
extern "C" fn loaded() {
    copies::find();
    if !paths::find_tree() {
        return;
    }
    signals::install();
    // SAFETY: the function touches memory of this library's only.
    unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    ACTIVE.store(true, Ordering::Relaxed);
}

#[used]
#[unsafe(link_section = ".init_array")]
static LOADED: extern "C" fn() = loaded;

/// A child has no card; its parent's mappings trap for good.
extern "C" fn in_child() {
    state::forget();
}

/// Has what was found on the chip told when the process ends.
pub(crate) fn at_end() {
    static ONCE: Once = Once::new();
    // SAFETY: the function is called once, before the library is unloaded, which it never is.
    ONCE.call_once(|| _ = unsafe { libc::atexit(finish) });
}

extern "C" fn finish() {
    if let Some(mut state) = state::lock(true) {
        state.card.finish();
        let cycles = state.card.now();
        if std::env::var_os("TILEWORK_CARD_COUNTS").is_some() {
            let accesses = state.card.accesses();
            let writes = state.card.device_writes();
            tell::say(&format!("the card: {cycles} cycles, {accesses} accesses of the host, {writes} writes to it"));
        }
    }
}

/// Tells when another process has a card of this command's already: each has a chip of its own.
pub(crate) fn tell_others() {
    let Some(root) = paths::root() else { return };
    let file = root.join("owner");
    let id = std::process::id();
    match OpenOptions::new().write(true).create_new(true).open(&file) {
        Ok(mut file) => _ = write!(file, "{id}"),
        Err(_) => {
            let owner = std::fs::read_to_string(&file).unwrap_or_default();
            if owner != id.to_string() {
                tell::say(&format!(
                    "process {id} has opened the card after process {owner}: it has a chip of its own, which shares \
                     nothing with that one"
                ));
            }
        }
    }
}
