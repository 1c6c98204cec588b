//! Traps: a load or store of the program at a BAR.
//!
//! The kernel calls [`on_segv`] on the program's stack, below what the program uses. The program's
//! instructions that are carried out here may use more of it; so the work is done on a stack of
//! this library's, one for each thread, on a copy of what the kernel has saved, and the program
//! goes on from that copy: what the kernel has put on its stack is not looked at again.

use crate::cpu::{self, Context};
use crate::maps::{real_mmap, real_munmap};
use crate::state::{self, Seat, State};
use crate::{client, clock, dispatch, maps, signals, tell, watch};
use std::arch::naked_asm;
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, Ordering};
use tilework_kmd::Card;

/// Bytes of the stacks of a thread: a call that is served (`dispatch`) may trap.
const STACK: usize = CALLS + (16 << 20);
/// Of them those for calls, which lie below those for traps.
const CALLS: usize = 8 << 20;
/// Bytes of what the kernel has saved, at the end of a stack.
const SAVED: usize = 32 << 10;
/// Bytes of the kernel's `struct ucontext`, whose set of signals is shorter than the C library's.
const CONTEXT: usize = 304;
const VECTOR_ALIGN: usize = 64;

/// The key under which a thread has its stack.
static KEY: AtomicU32 = AtomicU32::new(0);

/// A thread ends.
unsafe extern "C" fn free_stack(stack: *mut c_void) {
    real_munmap(stack.expose_provenance() - STACK, STACK);
}

/// The end of this thread's stack.
fn stack() -> usize {
    let key = KEY.load(Ordering::Relaxed);
    // SAFETY: `prepare_stacks` has made the key. One of the first does not allocate.
    let known = unsafe { libc::pthread_getspecific(key) };
    if !known.is_null() {
        return known.expose_provenance();
    }
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_STACK;
    let Some(start) = real_mmap(0, STACK, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) else {
        tell::say("the system gives no memory for a stack");
        tell::end()
    };
    // SAFETY: as above.
    unsafe { libc::pthread_setspecific(key, std::ptr::with_exposed_provenance(start + STACK)) };
    start + STACK
}

/// The end of the stack on which traps of this thread are carried out, while none is.
pub(crate) fn free_stack_end() -> usize {
    stack() - SAVED
}

/// Makes what the handlers need to find a stack.
pub(crate) fn prepare_stacks() {
    let mut key = 0;
    // SAFETY: the place is valid, and the destructor gets what `stack` has made.
    if unsafe { libc::pthread_key_create(&mut key, Some(free_stack)) } != 0 {
        tell::say("the C library gives no key of threads");
        tell::end()
    }
    KEY.store(key, Ordering::Relaxed);
}

/// Makes what the handler needs: it is not to look up functions, and not to allocate.
pub(crate) fn prepare() {
    watch::prepare();
    clock::prepare();
}

/// Calls `function(argument)` on the stack that ends at `stack`.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn on_stack(argument: *mut c_void, function: extern "C" fn(*mut c_void), stack: usize) {
    naked_asm!("push rbp", "mov rbp, rsp", "mov rsp, rdx", "call rsi", "mov rsp, rbp", "pop rbp", "ret")
}

/// The end of a handler, for the context at `context` (`rt_sigreturn`).
#[unsafe(naked)]
unsafe extern "C" fn go_on(context: usize) -> ! {
    naked_asm!("mov rsp, rdi", "mov eax, 15", "syscall", "ud2")
}

/// What is handed to the other stack.
#[derive(Clone, Copy)]
struct Work {
    /// The address that trapped.
    at: usize,
    context: *const u8,
    /// The program's `errno`.
    errno: i32,
    stack: usize,
}

/// Copies what the kernel has saved to the end of the stack.
///
/// # Safety
/// The context is the kernel's, and nobody uses the stack.
unsafe fn copy(work: Work) -> *mut libc::ucontext_t {
    let context = std::ptr::with_exposed_provenance_mut::<u8>(work.stack - SAVED);
    let area = work.stack - SAVED + CONTEXT.next_multiple_of(VECTOR_ALIGN);
    // SAFETY: the caller's promise; both fit.
    unsafe {
        context.copy_from_nonoverlapping(work.context, CONTEXT);
        let context = context.cast::<libc::ucontext_t>();
        let vector = &raw mut (*context).uc_mcontext.fpregs;
        let from = vector.read().cast::<u8>();
        if !from.is_null() {
            let len = cpu::saved_bytes(from);
            if area + len > work.stack {
                tell::say("the processor has more registers than this library can keep");
                tell::end()
            }
            let to = std::ptr::with_exposed_provenance_mut::<u8>(area);
            to.copy_from_nonoverlapping(from, len);
            vector.write(to.cast());
        }
        context
    }
}

/// Carries an access out. Comes back if it is not the card's; nothing was done then.
extern "C" fn work(argument: *mut c_void) {
    // SAFETY: `on_segv` hands over its own value, and waits.
    let work = unsafe { *argument.cast::<Work>() };
    // SAFETY: the context is the kernel's; no trap of this thread is carried out.
    let copy = unsafe { copy(work) };
    let done = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: the copy is this function's.
        let mut context = unsafe { Context::new(copy) };
        let done = serve(work.at, &mut context);
        context.save();
        done
    }));
    let done = done.unwrap_or_else(|_| {
        tell::say("the card's library failed: this is a defect of it");
        tell::end()
    });
    if done {
        // SAFETY: nothing is held any more; the frames that are left behind have nothing to drop.
        unsafe {
            *libc::__errno_location() = work.errno;
            go_on(copy.expose_provenance())
        }
    }
}

/// The handler of `SIGSEGV`.
pub(crate) extern "C" fn on_segv(signal: i32, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: both are the kernel's.
    let (code, at) = unsafe {
        let context = &mut *context.cast::<libc::ucontext_t>();
        let rip = &mut context.uc_mcontext.gregs[libc::REG_RIP as usize];
        let here = *rip as usize;
        let recovery = client::recovery(here).or_else(|| cpu::recovery(here));
        if let Some(recovery) = recovery.or_else(|| dispatch::in_child(here)) {
            *rip = recovery as i64;
            return;
        }
        ((*info).si_code, (*info).si_addr().addr())
    };
    // SAFETY: the kernel's.
    let errno = unsafe { *libc::__errno_location() };
    // A negative code: somebody has sent the signal. The chip is not to be entered twice.
    if code > 0 && !clock::is_inside() && (maps::is_card(at, 1) || watch::covers(at)) && state::exists() {
        let mut work = Work { at, context: context.cast::<u8>(), errno, stack: stack() };
        // SAFETY: the stack is this thread's, and no trap of it is carried out.
        unsafe { on_stack((&raw mut work).cast(), self::work, work.stack - SAVED) };
    }
    if code > 0 && state::is_orphan() && maps::is_card(at, 1) {
        tell::say("a forked process has touched its parent's card, which it does not have");
    }
    signals::forward(signal, info, context);
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
}

/// A call that is to be served, and by what.
struct Call {
    context: *const u8,
    errno: i32,
    stack: usize,
    serve: fn(&mut libc::ucontext_t),
}

/// Serves a call.
extern "C" fn call(argument: *mut c_void) {
    // SAFETY: `work_on_calls` hands over its own value, and waits; the context is the kernel's.
    let (call, copy) = unsafe {
        let call = &*argument.cast::<Call>();
        (call, copy(Work { at: 0, context: call.context, errno: call.errno, stack: call.stack }))
    };
    // SAFETY: the copy is this function's; nothing is held any more when the program goes on.
    unsafe {
        if catch_unwind(AssertUnwindSafe(|| (call.serve)(&mut *copy))).is_err() {
            tell::say("the card's library failed: this is a defect of it");
            tell::end()
        }
        *libc::__errno_location() = call.errno;
        go_on(copy.expose_provenance())
    }
}

/// Has a system call of the program's served on the stack for calls, and the program go on from
/// what is then in the copy.
///
/// # Safety
/// The context is the kernel's, and nobody uses that stack of this thread.
pub(crate) unsafe fn work_on_calls(context: *mut c_void, serve: fn(&mut libc::ucontext_t)) {
    let stack = stack() - (STACK - CALLS);
    // SAFETY: `errno` is this thread's.
    let mut work = Call { context: context.cast(), errno: unsafe { *libc::__errno_location() }, stack, serve };
    // SAFETY: the caller's promise.
    unsafe { on_stack((&raw mut work).cast(), call, stack - SAVED) };
}

/// Carries the access out. False if it is not the card's.
fn serve(at: usize, context: &mut Context) -> bool {
    let behind = clock::last_look();
    let Some(mut state) = state::lock(false) else { return false };
    if state.maps.find(at).is_none() {
        if !watch::covers(at) {
            return false;
        }
        // Another thread's trap may have opened the page meanwhile: the instruction is done anew.
        if !watch::is_watched(at, 1) {
            return true;
        }
    }
    clock::hide(|| cpu::run(&mut state, context, at, behind))
}

/// Reads the card at addresses of the program. False if they are not all the card's.
pub(crate) fn card_read(state: &mut State, at: usize, out: &mut [u8]) -> bool {
    let done = read(state, at, out);
    state.end_if_standing_still();
    done
}

fn read(state: &mut State, at: usize, out: &mut [u8]) -> bool {
    let mut done = 0;
    while done < out.len() {
        let Some(map) = state.maps.find(at + done) else { return false };
        let (bar, offset, room) = map.place(at + done);
        let len = room.min(out.len() - done);
        match state.seat(map.file) {
            Some(Seat { card, .. }) => card.read(bar, offset, &mut out[done..done + len]),
            None => out[done..done + len].fill(0xFF),
        }
        done += len;
    }
    true
}

/// Writes the card at addresses of the program. False if they are not all the card's.
pub(crate) fn card_write(state: &mut State, at: usize, data: &[u8]) -> bool {
    let mut done = 0;
    while done < data.len() {
        let Some(map) = state.maps.find(at + done) else { return false };
        let (bar, offset, room) = map.place(at + done);
        let len = room.min(data.len() - done);
        if let Some(Seat { card, .. }) = state.seat(map.file) {
            card.write(bar, offset, &data[done..done + len]);
        }
        done += len;
    }
    true
}
