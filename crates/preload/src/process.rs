//! The process: what happens when the library is loaded, at a fork, and at the end.

use crate::{copies, counts, exec, own, paths, signals, state, tell};
use std::ffi::c_void;
use std::fs::OpenOptions;
use std::io::Write;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Whether the command has started this process, or a parent of it.
static ACTIVE: AtomicBool = AtomicBool::new(false);

/// Whether there is a card to serve.
#[inline]
pub(crate) fn is_active() -> bool {
    ACTIVE.load(Ordering::Relaxed)
}

/// Where this library's instructions lie: first address and bytes.
static OWN: (AtomicUsize, AtomicUsize) = (AtomicUsize::new(0), AtomicUsize::new(0));

/// Whether an instruction is this library's.
#[inline]
pub(crate) fn is_own(rip: usize) -> bool {
    rip.wrapping_sub(OWN.0.load(Ordering::Relaxed)) < OWN.1.load(Ordering::Relaxed)
}

/// Notes where this library's instructions lie, at the object that has them.
unsafe extern "C" fn find_own(info: *mut libc::dl_phdr_info, _size: usize, _data: *mut c_void) -> i32 {
    // SAFETY: the dynamic linker's description of an object, and its program headers.
    let (base, headers) = unsafe {
        let info = &*info;
        (info.dlpi_addr as usize, std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()))
    };
    let here = loaded as *const () as usize;
    let code = headers.iter().filter(|header| header.p_type == libc::PT_LOAD && header.p_flags & libc::PF_X != 0);
    for header in code {
        let (start, len) = (base.wrapping_add(header.p_vaddr as usize), header.p_memsz as usize);
        if here.wrapping_sub(start) < len {
            OWN.0.store(start, Ordering::Relaxed);
            OWN.1.store(len, Ordering::Relaxed);
            return 1;
        }
    }
    0
}

/// Called by the dynamic linker.
extern "C" fn loaded() {
    copies::find();
    // SAFETY: the function has the type that is wanted, and needs no data.
    unsafe { libc::dl_iterate_phdr(Some(find_own), std::ptr::null_mut()) };
    if !paths::find_tree() {
        return;
    }
    signals::install();
    exec::prepare();
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
        state.finish();
    }
}

/// Writes the file of `--counts`, if it is wanted.
pub(crate) fn write_counts(cards: &mut [&mut own::OwnCard]) {
    if let Some(path) = std::env::var_os("TILEWORK_CARD_COUNTS") {
        counts::write(cards, path);
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
