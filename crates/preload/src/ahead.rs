//! Runs of the program's instructions that begin at a look at the clock.
//!
//! A trap costs some microseconds, nearly all of them the kernel's. Drivers measure each of their
//! accesses and call this library for the time right before it; so the instructions from there on
//! can be interpreted without a trap, where `cpu::leads` says that they lead to an access.
//!
//! The run has what a function gives back to its caller: the registers that it has to keep, the
//! stack, and its result. All others, those of vectors among them, the caller cannot use before it
//! sets them; and an instruction that is about vectors ends the run, as does one that goes to
//! another stack. The program then goes on with the registers as they are, from a frame on its own
//! stack, 128 bytes below what it uses (the red zone): all that it needs is at or above its stack
//! pointer at any time, where the handlers of signals leave it alone.

use crate::cpu::{self, Context, leads};
use crate::state::{self, Blocked};
use crate::{client, clock, tell, trap};
use std::arch::naked_asm;
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Bytes below the stack pointer that a function may use (System V ABI, 3.2.2).
const RED_ZONE: u64 = 128;
/// Words of a frame: the mask of signals, the registers but the stack pointer, the flags, and where
/// the program goes on.
const FRAME: usize = 18;

/// What the caller of a function has kept: what [`steady_now`] has put on the stack, and the
/// address behind the call.
#[repr(C)]
pub(crate) struct Kept {
    _unused: u64,
    pub r15: u64,
    pub r14: u64,
    pub r13: u64,
    pub r12: u64,
    pub rbx: u64,
    pub rbp: u64,
    pub back: u64,
}

/// `std::chrono::steady_clock::now()` of the GNU C++ library, with which drivers measure each of
/// their accesses: nanoseconds of the monotonic clock.
#[unsafe(naked)]
#[unsafe(export_name = "_ZNSt6chrono3_V212steady_clock3nowEv")]
pub(crate) unsafe extern "C" fn steady_now() -> i64 {
    naked_asm!(
        "push rbp", "push rbx", "push r12", "push r13", "push r14", "push r15",
        "sub rsp, 8",
        "mov rdi, rsp",
        "call {looked}",
        "add rsp, 56",
        "ret",
        looked = sym looked,
    )
}

/// The program looks at the clock.
unsafe extern "C" fn looked(kept: *const Kept) -> i64 {
    if clock::is_inside() || !state::exists() {
        return clock::steady();
    }
    // SAFETY: `steady_now` has made it, on its stack.
    let back = unsafe { (*kept).back };
    if leads().begins(back) {
        // SAFETY: as above; `errno` is this thread's.
        let mut work = Work { kept, errno: unsafe { *libc::__errno_location() }, blocked: Some(Blocked::all()) };
        let inside = clock::Inside::enter();
        // SAFETY: this thread is not inside of the library, so that nobody uses the stack.
        unsafe { trap::on_stack((&raw mut work).cast(), self::work, trap::free_stack_end()) };
        drop(inside);
    }
    clock::looked_at(back);
    clock::steady()
}

/// What is handed to the other stack.
struct Work {
    kept: *const Kept,
    errno: i32,
    blocked: Option<Blocked>,
}

/// Comes back if nothing was done.
extern "C" fn work(argument: *mut c_void) {
    // SAFETY: `looked` hands over its own value, and waits.
    let work = unsafe { &mut *argument.cast::<Work>() };
    let (errno, kept) = (work.errno, work.kept);
    let done = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: it stays until the program goes on.
        let mut context = Context::behind_call(unsafe { &*kept });
        let mut state = state::lock(false)?;
        let done = clock::hide_from(|time| cpu::run_ahead(&mut state, &mut context, time as u64));
        done.then_some(context)
    }));
    let done = done.unwrap_or_else(|_| {
        tell::say("the card's library failed: this is a defect of it");
        tell::end()
    });
    let Some(context) = done else { return };
    let mask = work.blocked.take().map_or(0, Blocked::into_mask);
    let mut frame = [mask; FRAME];
    frame[1..].copy_from_slice(&context.frame());
    let at = (context.stack_pointer() - RED_ZONE) as usize - size_of_val(&frame);
    let mut bytes = [0; 8 * FRAME];
    for (to, word) in bytes.chunks_exact_mut(8).zip(frame) {
        to.copy_from_slice(&word.to_le_bytes());
    }
    if !client::store(at, &bytes) {
        tell::say("the program's stack is not there");
        tell::end()
    }
    // SAFETY: nothing is held any more; the frames that are left behind have nothing to drop.
    unsafe {
        *libc::__errno_location() = errno;
        go_on(at)
    }
}

/// Leaves the library, and lets signals come again.
unsafe extern "C" fn leave(mask: *const u64) {
    clock::Inside::leave();
    // SAFETY: the caller's: a mask of the kernel's.
    unsafe { Blocked::restore(mask) };
}

/// The program goes on from the frame at `frame` (`Context::frame`).
#[unsafe(naked)]
unsafe extern "C" fn go_on(frame: usize) -> ! {
    naked_asm!(
        "mov rsp, rdi",
        "mov rbx, rdi",
        "and rsp, -16",
        "call {leave}",
        "lea rsp, [rbx + 8]",
        "pop rax", "pop rcx", "pop rdx", "pop rbx", "pop rbp", "pop rsi", "pop rdi",
        "pop r8", "pop r9", "pop r10", "pop r11", "pop r12", "pop r13", "pop r14", "pop r15",
        "popfq",
        "ret 128",
        leave = sym leave,
    )
}
