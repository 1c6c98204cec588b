//! The C library's `syscall`: a program that makes system calls by their numbers is served as one
//! that calls the C library's functions for them.
//!
//! Calls that have to do with the card's files, descriptors, mappings and time go to this library's
//! functions, and all others to the kernel. So do those of an instruction `syscall` of the
//! program's own (`dispatch`).

use crate::real::{raw, set_errno};
use crate::{client, clock, descriptors, exec, paths, process, signals};
use std::ffi::{c_char, c_long, c_void};
use std::mem::MaybeUninit;

/// The fields of the kernel's `struct open_how` (openat2(2)).
#[repr(C)]
struct OpenHow {
    flags: u64,
    mode: u64,
    resolve: u64,
}

/// The kernel's `struct sigaction`, whose order is another than the C library's.
#[derive(Clone, Copy)]
#[repr(C)]
struct Action {
    handler: usize,
    flags: u64,
    restorer: usize,
    mask: u64,
}

#[unsafe(no_mangle)]
unsafe extern "C" fn syscall(number: c_long, a: usize, b: usize, c: usize, d: usize, e: usize, f: usize) -> c_long {
    let arguments = [a, b, c, d, e, f];
    // SAFETY: the caller's promise.
    unsafe {
        if process::is_active()
            && !clock::is_inside()
            && let Some(result) = served(number, arguments)
        {
            return result;
        }
        done(raw(number, arguments))
    }
}

/// A result of the kernel's as the C library gives it.
fn done(result: isize) -> c_long {
    if (-4095..0).contains(&result) {
        set_errno(-(result as i32));
        return -1;
    }
    result as c_long
}

fn text(at: usize) -> *const c_char {
    std::ptr::with_exposed_provenance(at)
}
fn place<T>(at: usize) -> *mut T {
    std::ptr::with_exposed_provenance_mut(at)
}

/// Which argument of a call is a path that may be the card's.
pub(crate) fn path_of(number: c_long) -> Option<usize> {
    match number {
        libc::SYS_open
        | libc::SYS_access
        | libc::SYS_stat
        | libc::SYS_lstat
        | libc::SYS_readlink
        | libc::SYS_execve => Some(0),
        libc::SYS_getxattr | libc::SYS_lgetxattr | libc::SYS_listxattr | libc::SYS_llistxattr => Some(0),
        libc::SYS_openat | libc::SYS_openat2 | libc::SYS_faccessat | libc::SYS_faccessat2 => Some(1),
        libc::SYS_newfstatat | libc::SYS_statx | libc::SYS_readlinkat | libc::SYS_execveat => Some(1),
        _ => None,
    }
}

/// A call that this library's functions serve.
pub(crate) unsafe fn served(number: c_long, arguments: [usize; 6]) -> Option<c_long> {
    let [a, b, c, d, e, f] = arguments;
    let is_card = |fd: usize| descriptors::is_card_file(fd as i32);
    // SAFETY: the caller's promise, as of the functions.
    let result = unsafe {
        match number {
            libc::SYS_open => libc::open(text(a), b as i32, c as u32),
            libc::SYS_openat => libc::openat(a as i32, text(b), c as i32, d as u32),
            libc::SYS_openat2 if paths::is_led(text(b)) && c != 0 && d >= size_of::<OpenHow>() => {
                let how = place::<OpenHow>(c).read_unaligned();
                libc::openat(a as i32, text(b), how.flags as i32, how.mode as u32)
            }
            libc::SYS_access => libc::access(text(a), b as i32),
            libc::SYS_faccessat => libc::faccessat(a as i32, text(b), c as i32, 0),
            libc::SYS_faccessat2 => libc::faccessat(a as i32, text(b), c as i32, d as i32),
            libc::SYS_stat => libc::stat(text(a), place(b)),
            libc::SYS_lstat => libc::lstat(text(a), place(b)),
            libc::SYS_fstat => libc::fstat(a as i32, place(b)),
            libc::SYS_newfstatat => libc::fstatat(a as i32, text(b), place(c), d as i32),
            libc::SYS_statx => libc::statx(a as i32, text(b), c as i32, d as u32, place(e)),
            libc::SYS_close if is_card(a) => libc::close(a as i32),
            libc::SYS_close_range => libc::close_range(a as u32, b as u32, c as i32),
            libc::SYS_dup if is_card(a) => libc::dup(a as i32),
            libc::SYS_dup2 if is_card(a) || is_card(b) => libc::dup2(a as i32, b as i32),
            libc::SYS_dup3 if is_card(a) || is_card(b) => libc::dup3(a as i32, b as i32, c as i32),
            libc::SYS_fcntl if is_card(a) => libc::fcntl(a as i32, b as i32, c),
            libc::SYS_ioctl if is_card(a) => libc::ioctl(a as i32, b as u64, c),
            libc::SYS_munmap => libc::munmap(place(a), b),
            libc::SYS_mprotect => libc::mprotect(place(a), b, c as i32),
            libc::SYS_sched_yield => libc::sched_yield(),
            libc::SYS_nanosleep => libc::nanosleep(place(a), place(b)),
            libc::SYS_clock_gettime => libc::clock_gettime(a as i32, place(b)),
            libc::SYS_rt_sigaction if signals::is_ours(a as i32) => action(a as i32, (b, c)),
            _ => return served_otherwise(number, arguments),
        }
    };
    let _ = f;
    Some(result.into())
}

/// The calls whose results are no numbers of 32 bits, or whose errors are told in another way.
unsafe fn served_otherwise(number: c_long, [a, b, c, d, e, f]: [usize; 6]) -> Option<c_long> {
    // SAFETY: the caller's promise, as of the functions.
    unsafe {
        match number {
            libc::SYS_readlink => Some(libc::readlink(text(a), place(b), c) as c_long),
            libc::SYS_getxattr if paths::is_led(text(a)) => {
                Some(libc::getxattr(text(a), text(b), place(c), d) as c_long)
            }
            libc::SYS_lgetxattr if paths::is_led(text(a)) => {
                Some(libc::lgetxattr(text(a), text(b), place(c), d) as c_long)
            }
            libc::SYS_listxattr if paths::is_led(text(a)) => Some(libc::listxattr(text(a), place(b), c) as c_long),
            libc::SYS_llistxattr if paths::is_led(text(a)) => Some(libc::llistxattr(text(a), place(b), c) as c_long),
            libc::SYS_readlinkat => Some(libc::readlinkat(a as i32, text(b), place(c), d) as c_long),
            libc::SYS_mmap => {
                let at = libc::mmap(place(a), b, c as i32, d as i32, e as i32, f as i64);
                Some(at.expose_provenance() as c_long)
            }
            libc::SYS_clock_nanosleep => Some(told(libc::clock_nanosleep(a as i32, b as i32, place(c), place(d)))),
            libc::SYS_rt_sigprocmask if b != 0 && d == size_of::<u64>() => Some(told(mask(a as i32, b, c))),
            libc::SYS_getdents64 => {
                let result = raw(number, [a, b, c, 0, 0, 0]);
                if let Ok(len) = usize::try_from(result) {
                    paths::patch_entries(a as i32, std::slice::from_raw_parts_mut(place(b), len));
                }
                Some(done(result))
            }
            libc::SYS_execve => {
                exec::announce(text(a), place(c));
                None
            }
            libc::SYS_execveat => {
                exec::announce_at(a as i32, text(b), place(d), e as i32);
                None
            }
            _ => None,
        }
    }
}

/// An error that a function returns.
fn told(error: i32) -> c_long {
    if error == 0 {
        return 0;
    }
    set_errno(error);
    -1
}

/// Sets or gives the program's handler of a signal that this library handles.
unsafe fn action(signal: i32, (new, old): (usize, usize)) -> i32 {
    // SAFETY: the caller's promise: each is zero or the kernel's structure; an action that is all
    // zero is valid.
    unsafe {
        let (mut wanted, mut before): (libc::sigaction, libc::sigaction) = (std::mem::zeroed(), std::mem::zeroed());
        let new = place::<Action>(new);
        if let Some(new) = new.as_ref() {
            wanted.sa_sigaction = new.handler;
            wanted.sa_flags = new.flags as i32;
            (&raw mut wanted.sa_mask).cast::<u64>().write_unaligned(new.mask);
        }
        let result = libc::sigaction(signal, if new.is_null() { std::ptr::null() } else { &wanted }, &mut before);
        if let Some(old) = place::<Action>(old).as_mut().filter(|_| result == 0) {
            let mask = (&raw const before.sa_mask).cast::<u64>().read_unaligned();
            *old = Action { handler: before.sa_sigaction, flags: before.sa_flags as u32 as u64, restorer: 0, mask };
        }
        result
    }
}

/// The kernel's `rt_sigaction` for any signal: a handler of the program's is not to block those by
/// which it is served. `None` if it does not, and for what the kernel refuses.
pub(crate) unsafe fn action_of_any(signal: i32, new: usize, old: usize, bytes: usize) -> Option<isize> {
    let readable = |at: usize| at == 0 || client::load(at, &mut [0; size_of::<Action>()]);
    if bytes != size_of::<u64>() || !readable(new) || !readable(old) {
        return None;
    }
    // SAFETY: the caller's promise; what is read is there.
    unsafe {
        if signals::is_ours(signal) {
            let result = action(signal, (new, old));
            return Some(if result == 0 { 0 } else { -(*libc::__errno_location() as isize) });
        }
        let mut wanted = place::<Action>(new).as_ref().copied()?;
        if wanted.mask & signals::NEVER_BLOCKED == 0 {
            return None;
        }
        wanted.mask &= !signals::NEVER_BLOCKED;
        Some(raw(libc::SYS_rt_sigaction, [signal as usize, (&raw const wanted).expose_provenance(), old, bytes, 0, 0]))
    }
}

/// Changes the signals that the thread has blocked; an error's number.
unsafe fn mask(how: i32, new: usize, old: usize) -> i32 {
    let (mut wanted, mut before) = (MaybeUninit::<libc::sigset_t>::zeroed(), MaybeUninit::<libc::sigset_t>::zeroed());
    // SAFETY: the caller's promise: the kernel's sets, of eight bytes; sets that are all zero are
    // valid.
    unsafe {
        wanted.as_mut_ptr().cast::<u64>().write_unaligned(place::<u64>(new).read_unaligned());
        let error = libc::pthread_sigmask(how, wanted.as_ptr(), before.as_mut_ptr());
        if error == 0 && old != 0 {
            place::<u64>(old).write_unaligned(before.as_ptr().cast::<u64>().read_unaligned());
        }
        error
    }
}

const _: () = assert!(size_of::<*mut c_void>() == size_of::<c_long>());
