//! Threads that the program makes by the C library: their system calls are dispatched like those of
//! the first (`dispatch`).

use crate::dispatch;
use crate::real::real;
use std::arch::naked_asm;
use std::ffi::c_void;

/// What a thread begins with.
type Begin = unsafe extern "C" fn(*mut c_void) -> *mut c_void;

/// What the program wants run.
struct Start {
    function: *const c_void,
    argument: *mut c_void,
}

/// What is found in the registers `rax` and `rdx`.
#[repr(C)]
struct Found {
    function: *const c_void,
    argument: *mut c_void,
}

unsafe extern "C" fn begun(start: *mut Start) -> Found {
    dispatch::enable();
    // SAFETY: `boxed` has made it, for this thread alone.
    let start = unsafe { Box::from_raw(start) };
    Found { function: start.function, argument: start.argument }
}

/// The first function of a thread. No frame of this library's stays: the program may end its thread
/// by unwinding.
#[unsafe(naked)]
unsafe extern "C" fn begin(start: *mut c_void) -> *mut c_void {
    naked_asm!("push rdi", "call {begun}", "pop rdi", "mov rdi, rdx", "jmp rax", begun = sym begun)
}

fn boxed(function: *const c_void, argument: *mut c_void) -> *mut Start {
    Box::into_raw(Box::new(Start { function, argument }))
}

macro_rules! creates {
    ($($name:ident($($arg:ident: $type:ty),*);)*) => { $(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(
            thread: *mut c_void, $($arg: $type,)* function: *const c_void, argument: *mut c_void
        ) -> i32 {
            type Create = unsafe extern "C" fn(*mut c_void, $($type,)* Begin, *mut c_void) -> i32;
            let start = boxed(function, argument);
            // SAFETY: the caller's promise; the new thread gets what it is to begin with.
            unsafe {
                let result = real!($name as Create)(thread, $($arg,)* begin, start.cast());
                if result != 0 {
                    drop(Box::from_raw(start));
                }
                result
            }
        }
    )* };
}
creates! {
    pthread_create(attributes: *const c_void);
    thrd_create();
}
