//! The program's own handlers of `SIGSEGV` and `SIGSYS`: kept here, and called for what is not the
//! card's.
//!
//! Neither signal may be blocked: a trap or a call that is dispatched while it is would end the
//! process. The handlers run on the program's signal stack, if it has one: a stack of Go's is
//! small.

use crate::real::{raw, real};
use crate::{dispatch, process, trap};
use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::sync::Mutex;
use std::sync::PoisonError;

type Sigaction = unsafe extern "C" fn(i32, *const libc::sigaction, *mut libc::sigaction) -> i32;
type Sigmask = unsafe extern "C" fn(i32, *const libc::sigset_t, *mut libc::sigset_t) -> i32;
type Handler = unsafe extern "C" fn(i32, *mut libc::siginfo_t, *mut c_void);

/// The signals by which the program is served.
const OURS: [i32; 2] = [libc::SIGSEGV, libc::SIGSYS];
/// The same as the kernel's set.
pub(crate) const NEVER_BLOCKED: u64 = 1 << (libc::SIGSEGV - 1) | 1 << (libc::SIGSYS - 1);
/// The signals that come from a thread's own instructions.
pub(crate) const OWN_FAULT: [i32; 6] =
    [libc::SIGSEGV, libc::SIGSYS, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGTRAP];

/// What the program wants for each of [`OURS`]; `None` for the default.
static WANTED: Mutex<[Option<Action>; OURS.len()]> = Mutex::new([None; OURS.len()]);

#[derive(Clone, Copy)]
struct Action(libc::sigaction);
// SAFETY: a handler's address, flags and a set: no thread owns them.
unsafe impl Send for Action {}

fn real_sigaction(signal: i32, new: *const libc::sigaction, old: *mut libc::sigaction) -> i32 {
    // SAFETY: the caller's promise.
    unsafe { real!(sigaction as Sigaction)(signal, new, old) }
}

fn empty() -> libc::sigaction {
    // SAFETY: all zero is a valid action: the default.
    unsafe { MaybeUninit::zeroed().assume_init() }
}

/// The place of a signal among [`OURS`].
fn place(signal: i32) -> Option<usize> {
    OURS.iter().position(|&ours| ours == signal)
}

/// What the program wants for a signal.
fn wanted(place: usize) -> Option<Action> {
    WANTED.lock().unwrap_or_else(PoisonError::into_inner)[place]
}

fn want(place: usize, action: Option<Action>) {
    WANTED.lock().unwrap_or_else(PoisonError::into_inner)[place] = action;
}

/// Installs this library's handler of traps.
pub(crate) fn install() {
    install_one(0, trap::on_segv, libc::SA_NODEFER);
}

/// Installs this library's handler of system calls, which it makes itself none of while it serves
/// one.
pub(crate) fn install_for_calls() {
    install_one(1, dispatch::on_sys, libc::SA_NODEFER);
    // A parent may have blocked them.
    let set = NEVER_BLOCKED;
    // SAFETY: a set of eight bytes of this function's.
    unsafe {
        raw(libc::SYS_rt_sigprocmask, [libc::SIG_UNBLOCK as usize, (&raw const set).expose_provenance(), 0, 8, 0, 0])
    };
}

fn install_one(place: usize, handler: extern "C" fn(i32, *mut libc::siginfo_t, *mut c_void), flags: i32) {
    let mut action = empty();
    action.sa_sigaction = handler as *const () as usize;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | flags;
    // SAFETY: the set is a valid place.
    unsafe {
        libc::sigfillset(&mut action.sa_mask);
        for signal in OWN_FAULT {
            libc::sigdelset(&mut action.sa_mask, signal);
        }
    }
    let mut before = empty();
    real_sigaction(OURS[place], &action, &mut before);
    if before.sa_sigaction != libc::SIG_DFL {
        want(place, Some(Action(before)));
    }
}

/// The program's handlers are the kernel's again.
pub(crate) fn uninstall() {
    for (place, &signal) in OURS.iter().enumerate() {
        let action = wanted(place).map_or_else(empty, |action| action.0);
        real_sigaction(signal, &action, std::ptr::null_mut());
    }
}

/// Ends the process as the signal does.
fn default(signal: i32) {
    real_sigaction(signal, &empty(), std::ptr::null_mut());
    if signal == libc::SIGSYS {
        // What traps does so again; a call that a filter has refused does not.
        // SAFETY: no preconditions.
        unsafe { libc::raise(signal) };
    }
}

/// A trap that is not the card's: the program's handler, or the default.
pub(crate) fn forward(signal: i32, info: *mut libc::siginfo_t, context: *mut c_void) {
    let Some(ours) = place(signal) else { return };
    let is_handler = |action: &Action| !matches!(action.0.sa_sigaction, libc::SIG_DFL | libc::SIG_IGN);
    // The kernel does not let these be ignored, either.
    let Some(Action(action)) = wanted(ours).filter(is_handler) else { return default(signal) };
    if action.sa_flags & libc::SA_RESETHAND != 0 {
        want(ours, None);
    }
    // The signals that the program wants blocked, and no others; they come back with the context.
    // SAFETY: the context is the kernel's; the handler is the program's, of the kind its flags say.
    unsafe {
        let before = (*context.cast::<libc::ucontext_t>()).uc_sigmask;
        let mut mask = before;
        for number in 1..65 {
            if libc::sigismember(&action.sa_mask, number) == 1 && place(number).is_none() {
                libc::sigaddset(&mut mask, number);
            }
        }
        real!(pthread_sigmask as Sigmask)(libc::SIG_SETMASK, &mask, std::ptr::null_mut());
        std::mem::transmute::<usize, Handler>(action.sa_sigaction)(signal, info, context);
    }
}

/// Whether this library handles a signal.
pub(crate) fn is_ours(signal: i32) -> bool {
    place(signal).is_some() && process::is_active()
}

/// A set without the signals by which the program is served.
fn without_ours(set: &libc::sigset_t) -> libc::sigset_t {
    let mut set = *set;
    for signal in OURS {
        // SAFETY: the set is a valid place.
        unsafe { libc::sigdelset(&mut set, signal) };
    }
    set
}

unsafe fn set(signal: i32, new: *const libc::sigaction, old: *mut libc::sigaction) -> i32 {
    // SAFETY: the caller's promise: each is null or valid.
    unsafe {
        let Some(place) = place(signal).filter(|_| process::is_active()) else {
            let changed = new.as_ref().filter(|_| process::is_active());
            let changed = changed.map(|new| libc::sigaction { sa_mask: without_ours(&new.sa_mask), ..*new });
            return real_sigaction(signal, changed.as_ref().map_or(new, |changed| changed), old);
        };
        let before = wanted(place);
        if let Some(&new) = new.as_ref() {
            want(place, Some(Action(new)));
        }
        if let Some(old) = old.as_mut() {
            *old = before.map_or_else(empty, |action| action.0);
        }
    }
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn sigaction(signal: i32, new: *const libc::sigaction, old: *mut libc::sigaction) -> i32 {
    // SAFETY: the caller's promise.
    unsafe { set(signal, new, old) }
}
#[unsafe(no_mangle)]
unsafe extern "C" fn __sigaction(signal: i32, new: *const libc::sigaction, old: *mut libc::sigaction) -> i32 {
    // SAFETY: the caller's promise.
    unsafe { set(signal, new, old) }
}

type Signal = unsafe extern "C" fn(i32, usize) -> usize;

#[unsafe(no_mangle)]
unsafe extern "C" fn signal(number: i32, handler: usize) -> usize {
    if !is_ours(number) {
        // SAFETY: the caller's promise.
        return unsafe { real!(signal as Signal)(number, handler) };
    }
    let (mut new, mut old) = (empty(), empty());
    new.sa_sigaction = handler;
    new.sa_flags = libc::SA_RESTART;
    // SAFETY: both are places of this function's.
    unsafe { set(number, &new, &mut old) };
    old.sa_sigaction
}

/// The signals by which the program is served cannot be blocked.
unsafe fn mask(real: Sigmask, how: i32, new: *const libc::sigset_t, old: *mut libc::sigset_t) -> i32 {
    // SAFETY: the caller's promise: null or valid.
    unsafe {
        match new.as_ref() {
            Some(new) if how != libc::SIG_UNBLOCK && process::is_active() => real(how, &without_ours(new), old),
            _ => real(how, new, old),
        }
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pthread_sigmask(how: i32, new: *const libc::sigset_t, old: *mut libc::sigset_t) -> i32 {
    // SAFETY: the caller's promise.
    unsafe { mask(real!(pthread_sigmask as Sigmask), how, new, old) }
}
#[unsafe(no_mangle)]
unsafe extern "C" fn sigprocmask(how: i32, new: *const libc::sigset_t, old: *mut libc::sigset_t) -> i32 {
    // SAFETY: the caller's promise.
    unsafe { mask(real!(sigprocmask as Sigmask), how, new, old) }
}
