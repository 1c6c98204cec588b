//! The process: what happens when the library is loaded, at a fork, and at the end.

use crate::{copies, counts, dispatch, exec, own, paths, signals, state, tell, trap};
use std::ffi::{CStr, c_void};
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

/// Instructions of an object that is loaded.
#[derive(Clone, Copy)]
pub(crate) struct Code {
    pub start: usize,
    pub len: usize,
    /// Whether they are this library's.
    pub is_own: bool,
}

/// What is done with the instructions of an object, and the name of its file.
type Look<'a> = &'a mut dyn FnMut(&[u8], Code);

/// Looks at the instructions of all objects.
pub(crate) fn each_code(mut look: Look) {
    unsafe extern "C" fn one(info: *mut libc::dl_phdr_info, _size: usize, look: *mut c_void) -> i32 {
        // SAFETY: the dynamic linker's description of an object, its name and its program headers;
        // the data is the caller's.
        let (base, name, headers, look) = unsafe {
            let info = &*info;
            let name = if info.dlpi_name.is_null() { c"" } else { CStr::from_ptr(info.dlpi_name) };
            let headers = std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into());
            (info.dlpi_addr as usize, name.to_bytes(), headers, &mut *look.cast::<Look>())
        };
        let here = loaded as *const () as usize;
        let code = headers.iter().filter(|header| header.p_type == libc::PT_LOAD && header.p_flags & libc::PF_X != 0);
        for header in code {
            let (start, len) = (base.wrapping_add(header.p_vaddr as usize), header.p_memsz as usize);
            look(name, Code { start, len, is_own: here.wrapping_sub(start) < len });
        }
        0
    }
    // SAFETY: the function has the type that is wanted, and gets its data.
    unsafe { libc::dl_iterate_phdr(Some(one), (&raw mut look).cast()) };
}

/// Called by the dynamic linker.
extern "C" fn loaded() {
    copies::find();
    each_code(&mut |_: &[u8], code: Code| {
        if code.is_own {
            OWN.0.store(code.start, Ordering::Relaxed);
            OWN.1.store(code.len, Ordering::Relaxed);
        }
    });
    if !paths::find_tree() {
        return;
    }
    trap::prepare_stacks();
    signals::install();
    exec::prepare();
    // SAFETY: the function touches memory of this library's only.
    unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    ACTIVE.store(true, Ordering::Relaxed);
    dispatch::find();
}

/// The program cannot be served any more.
pub(crate) fn give_up() {
    ACTIVE.store(false, Ordering::Relaxed);
}

#[used]
#[unsafe(link_section = ".init_array")]
static LOADED: extern "C" fn() = loaded;

/// A child has no card; its parent's mappings trap for good.
extern "C" fn in_child() {
    state::forget();
    dispatch::enable();
}

/// Has what was found on the chip told when the process ends.
pub(crate) fn at_end() {
    static ONCE: Once = Once::new();
    // SAFETY: the function is called once, before the library is unloaded, which it never is.
    ONCE.call_once(|| _ = unsafe { libc::atexit(at_exit) });
}

extern "C" fn at_exit() {
    finish();
}

/// The process ends.
pub(crate) fn finish() {
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
