//! Traps: a load or store of the program at a BAR.
//!
//! The kernel calls [`on_segv`] on the program's stack, which may be small; the work is done on a
//! stack of this library's, of which one is enough, because it is used under the card's lock.

use crate::cpu::{self, Context};
use crate::maps::real_mmap;
use crate::state::{self, Seat, State};
use crate::{client, clock, maps, signals, tell, watch};
use std::arch::naked_asm;
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;
use tilework_kmd::Card;

/// Bytes of the stack that the chip is run on.
const STACK: usize = 16 << 20;

fn stack() -> usize {
    static END: OnceLock<usize> = OnceLock::new();
    *END.get_or_init(|| {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_STACK;
        match real_mmap(0, STACK, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) {
            Some(start) => start + STACK,
            None => tell::end(),
        }
    })
}

/// Makes what the handler needs: it is not to look up functions, and not to allocate.
pub(crate) fn prepare() {
    stack();
    watch::prepare();
    clock::prepare();
}

/// Calls `function(argument)` on the stack that ends at `stack`.
#[unsafe(naked)]
unsafe extern "C" fn on_stack(argument: *mut c_void, function: extern "C" fn(*mut c_void), stack: usize) {
    naked_asm!("push rbp", "mov rbp, rsp", "mov rsp, rdx", "call rsi", "mov rsp, rbp", "pop rbp", "ret")
}

/// What is handed to the other stack.
struct Work<'a> {
    state: &'a mut State,
    context: Context,
    /// The address that trapped.
    at: usize,
    /// Whether the program goes on behind the instruction that trapped.
    done: bool,
}

extern "C" fn work(argument: *mut c_void) {
    // SAFETY: `on_segv` hands over its own value, and waits.
    let work = unsafe { &mut *argument.cast::<Work>() };
    let done = catch_unwind(AssertUnwindSafe(|| clock::hide(|| cpu::run(work.state, &mut work.context, work.at))));
    work.done = done.unwrap_or_else(|_| {
        tell::say("the card's library failed: this is a defect of it");
        tell::end()
    });
}

/// The handler of `SIGSEGV`.
pub(crate) extern "C" fn on_segv(signal: i32, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: both are the kernel's.
    let (code, at, rip) = unsafe {
        let context = &mut *context.cast::<libc::ucontext_t>();
        let rip = &mut context.uc_mcontext.gregs[libc::REG_RIP as usize];
        if let Some(recovery) = client::recovery(*rip as usize) {
            *rip = recovery as i64;
            return;
        }
        ((*info).si_code, (*info).si_addr().addr(), *rip as usize)
    };
    // SAFETY: the kernel's.
    let errno = unsafe { *libc::__errno_location() };
    // A negative code: somebody has sent the signal. The chip is not to be entered twice.
    let near = cpu::is_scratch(rip) || maps::is_card(at, 1) || watch::covers(at);
    let ours = code > 0 && !clock::is_inside() && near;
    if !ours || !serve(at, rip, context) {
        if code > 0 && state::is_orphan() && maps::is_card(at, 1) {
            tell::say("a forked process has touched its parent's card, which it does not have");
        }
        signals::forward(signal, info, context);
    }
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
}

/// Carries the access out. False if it is not the card's.
fn serve(at: usize, rip: usize, context: *mut c_void) -> bool {
    let Some(mut state) = state::lock(false) else { return false };
    if !cpu::is_scratch(rip) && state.maps.find(at).is_none() {
        if !watch::covers(at) {
            return false;
        }
        // Another thread's trap may have opened the page meanwhile: the instruction is done anew.
        if !watch::is_watched(at, 1) {
            return true;
        }
    }
    // SAFETY: the context is the kernel's, and is this handler's alone.
    let context = unsafe { Context::new(context.cast()) };
    let mut work = Work { state: &mut state, context, at, done: false };
    // SAFETY: the stack is used under the card's lock, which is held; `work` outlives the call.
    unsafe { on_stack((&raw mut work).cast(), self::work, stack()) };
    work.done
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
        let Some(map) = state.maps.find(at + done).copied() else { return false };
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
        let Some(map) = state.maps.find(at + done).copied() else { return false };
        let (bar, offset, room) = map.place(at + done);
        let len = room.min(data.len() - done);
        if let Some(Seat { card, .. }) = state.seat(map.file) {
            card.write(bar, offset, &data[done..done + len]);
        }
        done += len;
    }
    true
}
