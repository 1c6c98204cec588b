//! `memcpy` and its kin: one call of the chip for a copy to or from a BAR, and the C library's
//! function for all others.

use crate::real::next;
use crate::state::State;
use crate::{client, maps, state, trap, watch};
use std::arch::asm;
use std::ffi::c_void;
use std::sync::atomic::{AtomicPtr, Ordering};

type Copy = unsafe extern "C" fn(*mut c_void, *const c_void, usize) -> *mut c_void;
type Fill = unsafe extern "C" fn(*mut c_void, i32, usize) -> *mut c_void;

/// Set by [`find`]: they are called before anything else is.
static MEMCPY: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
static MEMMOVE: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
static MEMSET: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());

/// Bytes that one call of the chip moves. Between two of them others get the card.
const PIECE: usize = 64 << 10;

/// Finds the C library's functions.
pub(crate) fn find() {
    MEMCPY.store(next(c"memcpy"), Ordering::Relaxed);
    MEMMOVE.store(next(c"memmove"), Ordering::Relaxed);
    MEMSET.store(next(c"memset"), Ordering::Relaxed);
}

/// Copies or fills by an instruction, where the C library's function is not known yet.
#[inline(always)]
unsafe fn forward(to: *mut c_void, from: *const c_void, len: usize) {
    // SAFETY: the caller's promise.
    unsafe { asm!("rep movsb", inout("rcx") len => _, inout("rdi") to => _, inout("rsi") from => _, options(nostack)) }
}

#[inline(always)]
unsafe fn backward(to: *mut c_void, from: *const c_void, len: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        asm!("std", "rep movsb", "cld", inout("rcx") len => _,
             inout("rdi") to.wrapping_byte_add(len).wrapping_byte_sub(1) => _,
             inout("rsi") from.wrapping_byte_add(len).wrapping_byte_sub(1) => _, options(nostack))
    }
}

/// Copies where one side is a BAR. False if neither is after all.
#[cold]
fn copy_card(to: usize, from: usize, len: usize) -> bool {
    let Some(mut state) = state::lock(true) else { return false };
    let (to_card, from_card) = (state.maps.overlaps(to, len), state.maps.overlaps(from, len));
    if !to_card && !from_card {
        return false;
    }
    let mut buffer = vec![0; len.min(PIECE)];
    // Overlapping ranges of the same memory go backward, as memmove does.
    let back = from < to && to < from.saturating_add(len);
    for index in 0..len.div_ceil(PIECE) {
        let piece = if back { len.div_ceil(PIECE) - 1 - index } else { index };
        let at = piece * PIECE;
        let bytes = &mut buffer[..PIECE.min(len - at)];
        if !read(&mut state, from + at, bytes) || !write(&mut state, to + at, bytes) {
            drop(state);
            // Not the card's: the program's own memory is wrong, and is to trap.
            return false;
        }
        if state::is_awaited() {
            drop(state);
            let Some(again) = state::lock(true) else { return false };
            state = again;
        }
    }
    true
}

/// Reads the program's memory or the card. False where there is neither.
fn read(state: &mut State, at: usize, out: &mut [u8]) -> bool {
    if state.maps.overlaps(at, out.len()) {
        return trap::card_read(state, at, out);
    }
    watch::lend(at, out.len());
    client::load(at, out)
}

fn write(state: &mut State, at: usize, data: &[u8]) -> bool {
    if state.maps.overlaps(at, data.len()) {
        state.polls.forget();
        return trap::card_write(state, at, data);
    }
    watch::lend(at, data.len());
    client::store(at, data)
}

#[cold]
fn fill_card(to: usize, byte: u8, len: usize) -> bool {
    let Some(mut state) = state::lock(true) else { return false };
    if !state.maps.overlaps(to, len) {
        return false;
    }
    let bytes = vec![byte; len.min(PIECE)];
    (0..len).step_by(PIECE).all(|at| write(&mut state, to + at, &bytes[..PIECE.min(len - at)]))
}

#[inline(always)]
unsafe fn copy(to: *mut c_void, from: *const c_void, len: usize, real: &AtomicPtr<c_void>) -> *mut c_void {
    let (a, b) = (to.addr(), from.addr());
    if (maps::is_card(a, len) || maps::is_card(b, len)) && len > 0 && copy_card(a, b, len) {
        return to;
    }
    let real = real.load(Ordering::Relaxed);
    // SAFETY: the caller's promise; the pointer is the C library's function of that type.
    unsafe {
        if !real.is_null() {
            return std::mem::transmute::<*mut c_void, Copy>(real)(to, from, len);
        }
        if a.wrapping_sub(b) < len { backward(to, from, len) } else { forward(to, from, len) }
    }
    to
}

#[unsafe(no_mangle)]
unsafe extern "C" fn memcpy(to: *mut c_void, from: *const c_void, len: usize) -> *mut c_void {
    // SAFETY: the caller's promise.
    unsafe { copy(to, from, len, &MEMCPY) }
}
#[unsafe(no_mangle)]
unsafe extern "C" fn memmove(to: *mut c_void, from: *const c_void, len: usize) -> *mut c_void {
    // SAFETY: the caller's promise.
    unsafe { copy(to, from, len, &MEMMOVE) }
}
#[unsafe(no_mangle)]
unsafe extern "C" fn mempcpy(to: *mut c_void, from: *const c_void, len: usize) -> *mut c_void {
    // SAFETY: the caller's promise.
    unsafe { copy(to, from, len, &MEMCPY).wrapping_byte_add(len) }
}
#[unsafe(no_mangle)]
unsafe extern "C" fn __memcpy_chk(to: *mut c_void, from: *const c_void, len: usize, room: usize) -> *mut c_void {
    check(len, room);
    // SAFETY: the caller's promise.
    unsafe { copy(to, from, len, &MEMCPY) }
}
#[unsafe(no_mangle)]
unsafe extern "C" fn __memmove_chk(to: *mut c_void, from: *const c_void, len: usize, room: usize) -> *mut c_void {
    check(len, room);
    // SAFETY: the caller's promise.
    unsafe { copy(to, from, len, &MEMMOVE) }
}

/// What the C library checks: the compiler knew how much room there is.
fn check(len: usize, room: usize) {
    if len > room {
        std::process::abort();
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn memset(to: *mut c_void, byte: i32, len: usize) -> *mut c_void {
    if maps::is_card(to.addr(), len) && len > 0 && fill_card(to.addr(), byte as u8, len) {
        return to;
    }
    let real = MEMSET.load(Ordering::Relaxed);
    // SAFETY: the caller's promise; the pointer is the C library's function of that type.
    unsafe {
        if !real.is_null() {
            return std::mem::transmute::<*mut c_void, Fill>(real)(to, byte, len);
        }
        asm!("rep stosb", inout("rcx") len => _, inout("rdi") to => _, in("al") byte as u8, options(nostack));
    }
    to
}
#[unsafe(no_mangle)]
unsafe extern "C" fn __memset_chk(to: *mut c_void, byte: i32, len: usize, room: usize) -> *mut c_void {
    check(len, room);
    // SAFETY: the caller's promise.
    unsafe { memset(to, byte, len) }
}
