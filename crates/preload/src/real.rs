//! The functions that this library's stand in front of.

use std::ffi::{CStr, c_void};

/// The next definition of `name` after this library's.
pub(crate) fn next(name: &CStr) -> *mut c_void {
    // SAFETY: the name is a C string.
    let found = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
    assert!(!found.is_null(), "the C library has no {}", name.to_string_lossy());
    found
}

/// The C library's function `$name` as a value of the function type `$type`.
macro_rules! real {
    ($name:ident as $type:ty) => {{
        static FOUND: std::sync::atomic::AtomicPtr<std::ffi::c_void> =
            std::sync::atomic::AtomicPtr::new(std::ptr::null_mut());
        let mut found = FOUND.load(std::sync::atomic::Ordering::Relaxed);
        if found.is_null() {
            const NAME: &std::ffi::CStr =
                match std::ffi::CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                    Ok(name) => name,
                    Err(_) => panic!("a name with a zero"),
                };
            found = $crate::real::next(NAME);
            FOUND.store(found, std::sync::atomic::Ordering::Relaxed);
        }
        // SAFETY: the C library's function of that name has that type.
        #[allow(unused_unsafe, reason = "most callers are in such a block already")]
        unsafe {
            std::mem::transmute::<*mut std::ffi::c_void, $type>(found)
        }
    }};
}
pub(crate) use real;

/// Sets `errno`.
pub(crate) fn set_errno(number: i32) {
    // SAFETY: the C library gives a valid place.
    unsafe { *libc::__errno_location() = number }
}

/// A system call, whoever stands in front of the C library's `syscall`: its result, or an error's
/// number below zero.
///
/// # Safety
/// That of the call.
#[inline]
pub(crate) unsafe fn raw(number: i64, a: [usize; 6]) -> isize {
    let result: isize;
    // SAFETY: the caller's promise; the kernel keeps all registers but these.
    unsafe {
        std::arch::asm!("syscall", inlateout("rax") number as isize => result,
            in("rdi") a[0], in("rsi") a[1], in("rdx") a[2], in("r10") a[3], in("r8") a[4], in("r9") a[5],
            lateout("rcx") _, lateout("r11") _, options(nostack));
    }
    result
}
