//! Programs that this one starts: told if the card's library cannot be loaded into one.
//!
//! The dynamic linker loads the library into children, because the variable `LD_PRELOAD` is theirs,
//! too. It does not into statically linked programs, programs of 32 bits, programs that get other
//! rights from their file, and those that are started without that variable. They run as always,
//! without a card; this is said once for each.
//!
//! All of it may run between `fork` or `vfork` and `execve`: no memory is allocated, no lock taken.

use crate::real::{next, raw};
use crate::{clock, paths, process};
use std::arch::naked_asm;
use std::ffi::{CStr, c_char, c_void};
use std::mem::transmute;
use std::os::unix::ffi::OsStrExt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};
use tilework_kmd::program::{Head, head};

type Text = *const c_char;
type List = *const Text;

/// Bytes of a path, its zero included.
const LONGEST: usize = 4096;
/// Interpreters of scripts that are scripts, at most, as the kernel has it.
const SCRIPTS: usize = 5;
/// A buffer for a path.
type Place = [u8; LONGEST];

/// Says so if the program at `path` will not find the card.
pub(crate) unsafe fn announce(path: Text, environment: List) {
    // SAFETY: the caller's promise: null or a C string, and null or a list.
    unsafe { announce_at(libc::AT_FDCWD, path, environment, 0) }
}

/// The same for `execveat`, whose path may be empty.
pub(crate) unsafe fn announce_at(folder: i32, path: Text, environment: List, flags: i32) {
    if path.is_null() || !process::is_active() || clock::is_inside() {
        return;
    }
    // SAFETY: the caller's promise: a C string.
    let (name, loads) = unsafe { (CStr::from_ptr(path).to_bytes(), loads(environment)) };
    let mut place = [0; LONGEST];
    let mut len = 0;
    let mut interpreter = None;
    if name.is_empty() && flags & libc::AT_EMPTY_PATH != 0 {
        // SAFETY: the caller's descriptor.
        interpreter = unsafe { judge(folder, b"a program that was started by its descriptor", loads) };
    } else {
        len = fill(&mut place, &[name]).map_or(0, <[u8]>::len);
    }
    let mut folder = folder;
    for _ in 0..SCRIPTS {
        if let Some(script) = interpreter.take() {
            len = fill(&mut place, &[script.bytes()]).map_or(0, <[u8]>::len);
            folder = libc::AT_FDCWD;
        }
        let Some(name) = place[..len].strip_suffix(b"\0") else { return };
        let at = place.as_ptr().expose_provenance();
        let arguments = [folder as usize, at, (libc::O_RDONLY | libc::O_CLOEXEC) as usize, 0, 0, 0];
        // SAFETY: a C string of this function's; the descriptor is closed.
        unsafe {
            let fd = raw(libc::SYS_openat, arguments);
            if fd < 0 {
                return;
            }
            interpreter = judge(fd as i32, name, loads);
            raw(libc::SYS_close, [fd as usize, 0, 0, 0, 0, 0]);
        }
        if interpreter.is_none() {
            return;
        }
    }
}

const NOT_LOADED: &str = "is started without the card's library in the variable LD_PRELOAD";

/// The file of this library.
static LIBRARY: OnceLock<Vec<u8>> = OnceLock::new();

/// Whether the dynamic linker finds in an environment that this library is to be loaded.
unsafe fn loads(environment: List) -> bool {
    let Some(library) = LIBRARY.get().filter(|library| !library.is_empty()) else { return true };
    let mut next = environment;
    // SAFETY: the caller's promise: null, or a list of C strings that ends with null.
    unsafe {
        while !next.is_null() && !(*next).is_null() {
            if let Some(files) = CStr::from_ptr(*next).to_bytes().strip_prefix(b"LD_PRELOAD=") {
                return files.split(|byte| b": ".contains(byte)).any(|file| file == library);
            }
            next = next.add(1);
        }
    }
    false
}

/// The process's own environment.
fn own_environment() -> List {
    unsafe extern "C" {
        static environ: AtomicPtr<Text>;
    }
    // SAFETY: the C library's variable, which has the layout of a pointer.
    unsafe { environ.load(Ordering::Relaxed) }
}

/// Joins parts of a path, with a zero behind them.
fn fill<'a>(place: &'a mut Place, parts: &[&[u8]]) -> Option<&'a [u8]> {
    let mut len = 0;
    for part in parts.iter().chain([&b"\0".as_slice()]) {
        place.get_mut(len..len + part.len())?.copy_from_slice(part);
        len += part.len();
    }
    Some(&place[..len])
}

/// Says so if the open program will not find the card; the interpreter of a script.
unsafe fn judge(fd: i32, name: &[u8], loads: bool) -> Option<tilework_kmd::program::Path> {
    let read = |at: u64, out: &mut [u8]| {
        let arguments = [fd as usize, out.as_mut_ptr().expose_provenance(), out.len(), at as usize, 0, 0];
        // SAFETY: a place of the caller's.
        usize::try_from(unsafe { raw(libc::SYS_pread64, arguments) }).unwrap_or(0)
    };
    let found = head(read);
    let Head::Script(interpreter) = found else {
        if let Some(why) = found.refusal().or_else(|| other_rights(fd)).or((!loads).then_some(NOT_LOADED)) {
            say(fd, name, why);
        }
        return None;
    };
    Some(interpreter)
}

/// Whether a program gets other rights from its file than this process has: the dynamic linker then
/// ignores `LD_PRELOAD`.
fn other_rights(fd: i32) -> Option<&'static str> {
    // SAFETY: a status that is all zero is valid; it is a place of this function's.
    let (status, user, group) = unsafe {
        let mut status: libc::stat = std::mem::zeroed();
        if raw(libc::SYS_fstat, [fd as usize, (&raw mut status).expose_provenance(), 0, 0, 0, 0]) != 0 {
            return None;
        }
        (status, libc::getuid(), libc::getgid())
    };
    let user = status.st_mode & libc::S_ISUID != 0 && status.st_uid != user;
    let group = status.st_mode & libc::S_ISGID != 0 && status.st_gid != group;
    (user || group).then_some("gets other rights from its file, and the card's library is not loaded into it")
}

/// Says why a program finds no card, once for each while the command runs.
fn say(fd: i32, name: &[u8], why: &str) {
    // SAFETY: a status that is all zero is valid; it is a place of this function's.
    let status = unsafe {
        let mut status: libc::stat = std::mem::zeroed();
        raw(libc::SYS_fstat, [fd as usize, (&raw mut status).expose_provenance(), 0, 0, 0, 0]);
        status
    };
    let Some(root) = paths::root() else { return };
    let mut number = [0; 32];
    for (at, digit) in number.iter_mut().enumerate() {
        let value = if at < 16 { status.st_dev } else { status.st_ino };
        *digit = b"0123456789abcdef"[(value >> (4 * (at % 16)) & 15) as usize];
    }
    let mut place = [0; LONGEST];
    let Some(mark) = fill(&mut place, &[root.as_os_str().as_bytes(), b"/told-", &number]) else { return };
    let flags = (libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL | libc::O_CLOEXEC) as usize;
    let arguments = [libc::AT_FDCWD as usize, mark.as_ptr().expose_provenance(), flags, 0o600, 0, 0];
    // SAFETY: a C string and pieces of this function's.
    unsafe {
        let made = raw(libc::SYS_openat, arguments);
        if made == -(libc::EEXIST as isize) {
            return;
        }
        if made >= 0 {
            raw(libc::SYS_close, [made as usize, 0, 0, 0, 0, 0]);
        }
        let pieces = [b"tilework: ".as_slice(), name, b" ", why.as_bytes(), b": it finds no card\n"];
        let pieces = pieces.map(|piece| libc::iovec { iov_base: piece.as_ptr() as *mut c_void, iov_len: piece.len() });
        raw(libc::SYS_writev, [2, pieces.as_ptr().expose_provenance(), pieces.len(), 0, 0, 0]);
    }
}

/// The same for a program that is searched for in the folders of `PATH`.
unsafe fn announce_found(file: Text, environment: List) {
    if file.is_null() || !process::is_active() {
        return;
    }
    // SAFETY: the caller's promise: a C string; the environment's strings are.
    unsafe {
        let name = CStr::from_ptr(file).to_bytes();
        if name.contains(&b'/') {
            return announce(file, environment);
        }
        let folders = libc::getenv(c"PATH".as_ptr());
        if folders.is_null() {
            return;
        }
        for folder in CStr::from_ptr(folders).to_bytes().split(|&byte| byte == b':') {
            let mut place = [0; LONGEST];
            let parts: [&[u8]; 3] = [folder, if folder.is_empty() { b"" } else { b"/" }, name];
            let Some(path) = fill(&mut place, &parts) else { continue };
            let at = path.as_ptr();
            let arguments = [libc::AT_FDCWD as usize, at.expose_provenance(), libc::X_OK as usize, 0, 0, 0];
            if raw(libc::SYS_faccessat, arguments) == 0 {
                return announce(at.cast(), environment);
            }
        }
    }
}

/// The C library's functions, by their names.
#[derive(Clone, Copy)]
#[allow(non_camel_case_types, reason = "the C library's names")]
enum Real {
    execve,
    execv,
    execvp,
    execvpe,
    fexecve,
    posix_spawn,
    posix_spawnp,
}

const NAMES: [&CStr; 7] = [c"execve", c"execv", c"execvp", c"execvpe", c"fexecve", c"posix_spawn", c"posix_spawnp"];
static FOUND: [AtomicPtr<c_void>; NAMES.len()] = [const { AtomicPtr::new(std::ptr::null_mut()) }; NAMES.len()];

/// Finds them: a forked child is not to look for them.
pub(crate) fn prepare() {
    for (place, name) in FOUND.iter().zip(NAMES) {
        place.store(next(name), Ordering::Relaxed);
    }
    process::each_code(&mut |name: &[u8], code: process::Code| {
        if code.is_own {
            LIBRARY.get_or_init(|| name.to_vec());
        }
    });
}

fn found(which: Real) -> *mut c_void {
    let found = FOUND[which as usize].load(Ordering::Relaxed);
    if found.is_null() { next(NAMES[which as usize]) } else { found }
}

macro_rules! execs {
    ($($name:ident($by:ident in $list:expr; $first:ident: $type:ty $(, $arg:ident: $other:ty)*);)*) => { $(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name($first: $type $(, $arg: $other)*) -> i32 {
            // SAFETY: the caller's promise.
            unsafe {
                $by($first, $list);
                let real = found(Real::$name);
                transmute::<*mut c_void, unsafe extern "C" fn($type $(, $other)*) -> i32>(real)($first $(, $arg)*)
            }
        }
    )* };
}
execs! {
    execve(announce in environment; path: Text, arguments: List, environment: List);
    execv(announce in own_environment(); path: Text, arguments: List);
    execvp(announce_found in own_environment(); file: Text, arguments: List);
    execvpe(announce_found in environment; file: Text, arguments: List, environment: List);
}

#[unsafe(no_mangle)]
unsafe extern "C" fn fexecve(fd: i32, arguments: List, environment: List) -> i32 {
    // SAFETY: the caller's promise.
    unsafe {
        announce_at(fd, c"".as_ptr(), environment, libc::AT_EMPTY_PATH);
        let real = found(Real::fexecve);
        transmute::<*mut c_void, unsafe extern "C" fn(i32, List, List) -> i32>(real)(fd, arguments, environment)
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn execveat(folder: i32, path: Text, arguments: List, environment: List, flags: i32) -> i32 {
    // SAFETY: the caller's promise. Not every C library has the function.
    unsafe { libc::syscall(libc::SYS_execveat, folder, path, arguments, environment, flags) as i32 }
}

macro_rules! spawns {
    ($($name:ident($by:ident);)*) => { $(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(
            id: *mut libc::pid_t,
            path: Text,
            actions: *const c_void,
            attributes: *const c_void,
            arguments: List,
            environment: List,
        ) -> i32 {
            type Spawn = unsafe extern "C" fn(*mut libc::pid_t, Text, *const c_void, *const c_void, List, List) -> i32;
            // SAFETY: the caller's promise.
            unsafe {
                $by(path, environment);
                let real = transmute::<*mut c_void, Spawn>(found(Real::$name));
                real(id, path, actions, attributes, arguments, environment)
            }
        }
    )* };
}
spawns! { posix_spawn(announce); posix_spawnp(announce_found); }

// The functions whose arguments are the program's: they lie one behind the other in registers and
// on the stack. The return address gives its place to the fifth of them, and comes back if the
// function does.
macro_rules! lists {
    ($($name:ident => $to:ident;)*) => { $(
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        unsafe extern "C" fn $name() {
            naked_asm!(
                "mov rax, [rsp]",
                "mov [rsp], r9",
                "push r8",
                "push rcx",
                "push rdx",
                "push rsi",
                "mov rsi, rsp",
                "push rax",
                "call {to}",
                "pop rcx",
                "add rsp, 32",
                "mov [rsp], rcx",
                "ret",
                to = sym $to,
            )
        }
    )* };
}
lists! { execl => execl_list; execlp => execlp_list; execle => execle_list; }

unsafe extern "C" fn execl_list(path: Text, arguments: List) -> i32 {
    // SAFETY: the caller's promise: a list that ends with null.
    unsafe { execv(path, arguments) }
}
unsafe extern "C" fn execlp_list(file: Text, arguments: List) -> i32 {
    // SAFETY: as above.
    unsafe { execvp(file, arguments) }
}
unsafe extern "C" fn execle_list(path: Text, arguments: List) -> i32 {
    // SAFETY: as above; the environment stands behind the null.
    unsafe {
        let mut end = arguments;
        while !(*end).is_null() {
            end = end.add(1);
        }
        execve(path, arguments, (*end.add(1)).cast())
    }
}
