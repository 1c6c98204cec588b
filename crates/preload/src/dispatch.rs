//! System calls that a program makes by an instruction `syscall` of its own.
//!
//! The kernel can hand system calls to a handler of the process instead of carrying them out
//! (Documentation/admin-guide/syscall-user-dispatch.rst): all that do not come from one range of
//! addresses. The range holds the C library, this library and the dynamic linker ([`find`]); so
//! their calls cost nothing but the comparison, and all others arrive in [`on_sys`]. What has to do
//! with the card is served there as calls by the function `syscall` are. Any other is made again,
//! with the program's registers, from a slot of this library (`slots`), which lies in the range.
//!
//! It is a matter of each thread, and neither children nor threads nor other programs inherit it:
//! [`enable`] is called where the C library makes threads (`threads`) and forks. A thread that the
//! program makes without the C library may have another thread pointer than the C library's, on
//! which nothing of this library works; it is told.

use crate::process::Code;
use crate::real::raw;
use crate::slots::{self, Kind};
use crate::{client, clock, maps, process, signals, state, syscalls, tell, trap};
use std::cell::Cell;
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// `prctl` (linux/prctl.h): the calls of this thread from outside of a range are dispatched.
const PR_SET_SYSCALL_USER_DISPATCH: usize = 59;
const PR_SYS_DISPATCH_OFF: usize = 0;
const PR_SYS_DISPATCH_ON: usize = 1;
/// Why the kernel sends `SIGSYS` then (asm-generic/siginfo.h).
const SYS_USER_DISPATCH: i32 = 2;
/// `arch_prctl` (asm/prctl.h): another thread pointer.
const ARCH_SET_FS: usize = 0x1002;
/// Objects whose calls pass, besides this library, by how the names of their files begin.
const PASSING: [&[u8]; 6] = [b"libc.so", b"libc-", b"libpthread", b"librt", b"libdl", b"ld-linux"];

/// The range: first address and bytes; zero bytes before it is known.
static RANGE: (AtomicUsize, AtomicUsize) = (AtomicUsize::new(0), AtomicUsize::new(0));

/// Finds the range, and has calls of this thread from elsewhere dispatched. The program is not told
/// when the kernel (before 5.11) cannot do so: it may make no such call.
pub(crate) fn find() {
    let (mut start, mut end) = (usize::MAX, 0);
    process::each_code(&mut |name: &[u8], code: Code| {
        let file = name.rsplit(|&byte| byte == b'/').next().unwrap_or(name);
        if code.is_own || PASSING.iter().any(|passing| file.starts_with(passing)) {
            (start, end) = (start.min(code.start), end.max(code.start + code.len));
        }
    });
    if start >= end {
        return;
    }
    // What the program maps later is not to lie within.
    maps::fill_holes(start, end);
    RANGE.0.store(start, Ordering::Relaxed);
    RANGE.1.store(end - start, Ordering::Relaxed);
    signals::install_for_calls();
    enable();
}

/// Has this thread's calls from outside of the range dispatched.
pub(crate) extern "C" fn enable() {
    let (start, len) = (RANGE.0.load(Ordering::Relaxed), RANGE.1.load(Ordering::Relaxed));
    if len != 0 {
        // SAFETY: the handler is there, and the range holds what it calls.
        unsafe { raw(libc::SYS_prctl, [PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_ON, start, len, 0, 0]) };
    }
}

/// The program's calls are the kernel's again, in all threads that are made from now on.
fn disable() {
    RANGE.1.store(0, Ordering::Relaxed);
    // SAFETY: no preconditions.
    unsafe { raw(libc::SYS_prctl, [PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_OFF, 0, 0, 0, 0]) };
}

/// The handler of `SIGSYS`.
pub(crate) extern "C" fn on_sys(signal: i32, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel's.
    if unsafe { (*info).si_code } != SYS_USER_DISPATCH {
        return signals::forward(signal, info, context);
    }
    if !clock::is_inside() && process::is_active() {
        // SAFETY: no call of this thread is being served: whoever serves one makes none that
        // arrives here.
        unsafe { trap::work_on_calls(context, serve) };
    }
    // SAFETY: the context is the kernel's.
    let registers = unsafe { &mut (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs };
    again(registers, Kind::Plain);
}

/// Has the processor make the call of `registers` from a slot.
fn again(registers: &mut [libc::greg_t; 23], kind: Kind) {
    let back = registers[libc::REG_RIP as usize] as usize;
    let Some(slot) = slots::slot(back, kind) else {
        tell::say("the program has more instructions for system calls than this library has room for");
        tell::end()
    };
    registers[libc::REG_RIP as usize] = slot as i64;
}

/// What is done with a call.
enum Done {
    /// It has this result.
    Result(isize),
    /// It is the kernel's.
    Again(Kind),
}

/// Serves the call at which the program stands, on a copy of what the kernel has saved.
fn serve(context: &mut libc::ucontext_t) {
    let registers = context.uc_mcontext.gregs;
    let number = registers[libc::REG_RAX as usize];
    let arguments = [libc::REG_RDI, libc::REG_RSI, libc::REG_RDX, libc::REG_R10, libc::REG_R8, libc::REG_R9]
        .map(|register| registers[register as usize] as usize);
    let mask = (&raw mut context.uc_sigmask).cast::<u64>();
    // SAFETY: the kernel's set has eight bytes; the rest is the program's promise.
    let done = unsafe {
        if is_borrowed() {
            of_a_borrower(number, arguments, &mut *mask)
        } else {
            of_the_thread(number, arguments, &mut *mask).unwrap_or_else(|| of_the_card(number, arguments))
        }
    };
    match done {
        Done::Result(result) => context.uc_mcontext.gregs[libc::REG_RAX as usize] = result as i64,
        Done::Again(kind) => again(&mut context.uc_mcontext.gregs, kind),
    }
}

/// Calls that are served as the C library's functions are.
unsafe fn of_the_card(number: i64, arguments: [usize; 6]) -> Done {
    // A path that is not there is the kernel's to refuse.
    let path = syscalls::path_of(number).map(|which| arguments[which]);
    if path.is_some_and(|path| client::load_word(path, 1).is_none()) {
        return Done::Again(Kind::Plain);
    }
    // SAFETY: the program's promise; the place of `errno` is the thread's.
    unsafe {
        match syscalls::served(number, arguments) {
            Some(-1) => Done::Result(-(*libc::__errno_location() as isize)),
            Some(result) => Done::Result(result as isize),
            None => Done::Again(Kind::Plain),
        }
    }
}

/// Calls that change what this library stands on, or end it; `None` for all others.
unsafe fn of_the_thread(number: i64, arguments: [usize; 6], mask: &mut u64) -> Option<Done> {
    let [a, b, c, d, ..] = arguments;
    let again = Some(Done::Again(Kind::Plain));
    match number {
        // It comes back when a signal wants it to.
        libc::SYS_nanosleep => {
            clock::sleeps(a);
            again
        }
        libc::SYS_clock_nanosleep => {
            clock::sleeps_until(a, b, c);
            again
        }
        libc::SYS_rt_sigprocmask => block(a as i32, b, c, d, mask).map(Done::Result).or(again),
        // SAFETY: the program's promise.
        libc::SYS_rt_sigaction => unsafe { syscalls::action_of_any(a as i32, b, c, d) }.map(Done::Result).or(again),
        libc::SYS_exit_group => {
            process::finish();
            again
        }
        libc::SYS_arch_prctl if a == ARCH_SET_FS => {
            no_thread_pointer();
            again
        }
        libc::SYS_fork => Some(Done::Again(Kind::Fork)),
        libc::SYS_vfork => Some(Done::Again(Kind::Vfork)),
        libc::SYS_clone => Some(Done::Again(forks(a as u64))),
        libc::SYS_clone3 => Some(Done::Again(client::load_word(a, 8).map_or(Kind::Plain, forks))),
        _ => None,
    }
}

thread_local! {
    /// The process that has borrowed this thread's memory, by its number (`vfork`).
    static BORROWER: Cell<isize> = const { Cell::new(0) };
}

fn process_id() -> isize {
    // SAFETY: no preconditions.
    unsafe { raw(libc::SYS_getpid, [0; 6]) }
}

/// Whether it is such a process that is here: its parent's thread waits until it is gone.
fn is_borrowed() -> bool {
    let borrower = BORROWER.get();
    if borrower != 0 && borrower != process_id() {
        BORROWER.set(0);
    }
    BORROWER.get() != 0
}

/// Calls of a process that has its parent's memory, until it executes a program: that is looked at,
/// and nothing is done that its parent would find.
unsafe fn of_a_borrower(number: i64, arguments: [usize; 6], mask: &mut u64) -> Done {
    let [a, b, c, d, ..] = arguments;
    let done = match number {
        libc::SYS_rt_sigprocmask => block(a as i32, b, c, d, mask),
        // Its own handlers have to stay for its calls; another program has none of them.
        libc::SYS_rt_sigaction if b != 0 && signals::is_ours(a as i32) => {
            // SAFETY: the program's promise.
            unsafe { syscalls::action_of_any(a as i32, 0, c, d) }
        }
        // SAFETY: as above.
        libc::SYS_execve | libc::SYS_execveat => return unsafe { of_the_card(number, arguments) },
        _ => None,
    };
    done.map_or(Done::Again(Kind::Plain), Done::Result)
}

/// Tells of a thread that the program makes by itself. Whether a process is made.
fn forks(flags: u64) -> Kind {
    static TOLD: AtomicBool = AtomicBool::new(false);
    let shares = flags & libc::CLONE_VM as u64 != 0;
    if shares && flags & libc::CLONE_VFORK as u64 == 0 && !TOLD.swap(true, Ordering::Relaxed) {
        tell::say(
            "the program makes a thread by a system call of its own: in such a thread the card cannot be used, and \
             an instruction syscall finds none",
        );
    }
    match (shares, flags & libc::CLONE_VFORK as u64 != 0) {
        (false, _) => Kind::Fork,
        (true, true) => Kind::Vfork,
        (true, false) => Kind::Plain,
    }
}

/// The C library's thread pointer goes, and nothing of this library works without it.
fn no_thread_pointer() {
    tell::say(
        "the program has its own thread pointer (arch_prctl), as programs without the C library have: it finds no \
         card",
    );
    process::give_up();
    disable();
    signals::uninstall();
}

/// Changes which signals the program blocks, other than those by which it is served. `None` if none
/// of these is among them.
fn block(how: i32, new: usize, old: usize, bytes: usize, mask: &mut u64) -> Option<isize> {
    if new == 0 || bytes != size_of::<u64>() || how == libc::SIG_UNBLOCK {
        return None;
    }
    let wanted = client::load_word(new, 8)?;
    if wanted & signals::NEVER_BLOCKED == 0 {
        return None;
    }
    let wanted = wanted & !signals::NEVER_BLOCKED;
    let after = match how {
        libc::SIG_BLOCK => *mask | wanted,
        libc::SIG_SETMASK => wanted,
        _ => return None,
    };
    if old != 0 {
        client::store_word(old, 8, *mask)?;
    }
    *mask = after;
    Some(0)
}

/// A process that the program has forked by itself goes on behind its call: its parent's card is
/// not its.
pub(crate) fn in_child(slot_end: usize) -> Option<usize> {
    let (back, kind) = slots::back_of_child(slot_end)?;
    if kind == Kind::Vfork {
        BORROWER.set(process_id());
    } else {
        state::forget();
    }
    enable();
    Some(back)
}
