//! The program's own handlers of `SIGSEGV`: kept here, and called for what is not the card's.

use crate::real::real;
use crate::{process, trap};
use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::sync::Mutex;
use std::sync::PoisonError;

type Sigaction = unsafe extern "C" fn(i32, *const libc::sigaction, *mut libc::sigaction) -> i32;
type Sigmask = unsafe extern "C" fn(i32, *const libc::sigset_t, *mut libc::sigset_t) -> i32;
type Handler = unsafe extern "C" fn(i32, *mut libc::siginfo_t, *mut c_void);

/// What the program wants for `SIGSEGV`; `None` for the default.
static WANTED: Mutex<Option<Action>> = Mutex::new(None);

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

/// Installs this library's handler.
pub(crate) fn install() {
    let mut action = empty();
    action.sa_sigaction = trap::on_segv as *const () as usize;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_NODEFER;
    // SAFETY: the set is a valid place.
    unsafe {
        libc::sigfillset(&mut action.sa_mask);
        for signal in [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGTRAP] {
            libc::sigdelset(&mut action.sa_mask, signal);
        }
    }
    let mut before = empty();
    real_sigaction(libc::SIGSEGV, &action, &mut before);
    if before.sa_sigaction != libc::SIG_DFL {
        *WANTED.lock().unwrap_or_else(PoisonError::into_inner) = Some(Action(before));
    }
}

/// A trap that is not the card's: the program's handler, or the default.
pub(crate) fn forward(signal: i32, info: *mut libc::siginfo_t, context: *mut c_void) {
    let wanted = *WANTED.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(Action(action)) = wanted.filter(|action| action.0.sa_sigaction != libc::SIG_DFL) else {
        // The instruction traps again, and ends the process as it would have without us.
        real_sigaction(signal, &empty(), std::ptr::null_mut());
        return;
    };
    if action.sa_sigaction == libc::SIG_IGN {
        real_sigaction(signal, &empty(), std::ptr::null_mut());
        return;
    }
    if action.sa_flags & libc::SA_RESETHAND != 0 {
        *WANTED.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
    // The signals that the program wants blocked, and no others; they come back with the context.
    // SAFETY: the context is the kernel's; the handler is the program's, of the kind its flags say.
    unsafe {
        let before = (*context.cast::<libc::ucontext_t>()).uc_sigmask;
        let mut mask = before;
        for number in 1..65 {
            if libc::sigismember(&action.sa_mask, number) == 1 {
                libc::sigaddset(&mut mask, number);
            }
        }
        if action.sa_flags & libc::SA_NODEFER == 0 {
            libc::sigaddset(&mut mask, signal);
        }
        real!(pthread_sigmask as Sigmask)(libc::SIG_SETMASK, &mask, std::ptr::null_mut());
        std::mem::transmute::<usize, Handler>(action.sa_sigaction)(signal, info, context);
    }
}

fn is_ours(signal: i32) -> bool {
    signal == libc::SIGSEGV && process::is_active()
}

unsafe fn set(signal: i32, new: *const libc::sigaction, old: *mut libc::sigaction) -> i32 {
    if !is_ours(signal) {
        return real_sigaction(signal, new, old);
    }
    let mut wanted = WANTED.lock().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: the caller's promise: each is null or valid.
    unsafe {
        if let Some(old) = old.as_mut() {
            *old = wanted.map_or_else(empty, |action| action.0);
        }
        if let Some(&new) = new.as_ref() {
            *wanted = Some(Action(new));
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

/// `SIGSEGV` cannot be blocked: a trap while it is would end the process.
unsafe fn mask(real: Sigmask, how: i32, new: *const libc::sigset_t, old: *mut libc::sigset_t) -> i32 {
    // SAFETY: the caller's promise: null or valid.
    unsafe {
        match new.as_ref() {
            Some(&new) if how != libc::SIG_UNBLOCK && process::is_active() => {
                let mut new = new;
                libc::sigdelset(&mut new, libc::SIGSEGV);
                real(how, &new, old)
            }
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
