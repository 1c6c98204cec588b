//! Loads and stores of the program's memory that fail instead of ending the process.
//!
//! A load or store of these functions that traps is left by the handler of `trap` for the end of
//! the function, which then says that it failed. Words are accessed whole, as the program's own
//! instructions would.

use std::arch::global_asm;

global_asm!(
    ".pushsection .text.tilework_guarded,\"ax\",@progbits",
    ".p2align 4",
    // Other units of this crate name them.
    ".globl tilework_guarded_start",
    ".hidden tilework_guarded_start",
    ".globl tilework_guarded_end",
    ".hidden tilework_guarded_end",
    ".globl tilework_guarded_failed",
    ".hidden tilework_guarded_failed",
    ".globl tilework_guarded_1",
    ".hidden tilework_guarded_1",
    ".globl tilework_guarded_2",
    ".hidden tilework_guarded_2",
    ".globl tilework_guarded_4",
    ".hidden tilework_guarded_4",
    ".globl tilework_guarded_8",
    ".hidden tilework_guarded_8",
    ".globl tilework_guarded_16",
    ".hidden tilework_guarded_16",
    ".globl tilework_guarded_32",
    ".hidden tilework_guarded_32",
    ".globl tilework_guarded_same_16",
    ".hidden tilework_guarded_same_16",
    ".globl tilework_guarded_any",
    ".hidden tilework_guarded_any",
    ".globl tilework_guarded_spread_32",
    ".hidden tilework_guarded_spread_32",
    ".globl tilework_guarded_gather_32",
    ".hidden tilework_guarded_gather_32",
    ".globl tilework_guarded_load_1",
    ".hidden tilework_guarded_load_1",
    ".globl tilework_guarded_load_2",
    ".hidden tilework_guarded_load_2",
    ".globl tilework_guarded_load_4",
    ".hidden tilework_guarded_load_4",
    ".globl tilework_guarded_load_8",
    ".hidden tilework_guarded_load_8",
    "tilework_guarded_start:",
    "tilework_guarded_1:",
    "mov al, [rsi]",
    "mov [rdi], al",
    "xor eax, eax",
    "ret",
    "tilework_guarded_2:",
    "mov ax, [rsi]",
    "mov [rdi], ax",
    "xor eax, eax",
    "ret",
    "tilework_guarded_4:",
    "mov eax, [rsi]",
    "mov [rdi], eax",
    "xor eax, eax",
    "ret",
    "tilework_guarded_8:",
    "mov rax, [rsi]",
    "mov [rdi], rax",
    "xor eax, eax",
    "ret",
    "tilework_guarded_16:",
    "movdqu xmm0, [rsi]",
    "movdqu [rdi], xmm0",
    "xor eax, eax",
    "ret",
    "tilework_guarded_32:",
    "movdqu xmm0, [rsi]",
    "movdqu xmm1, [rsi + 16]",
    "movdqu [rdi], xmm0",
    "movdqu [rdi + 16], xmm1",
    "xor eax, eax",
    "ret",
    // Two halves, which are not together on this library's side: rdi and rsi are theirs.
    "tilework_guarded_spread_32:",
    "movdqu xmm0, [rdx]",
    "movdqu xmm1, [rdx + 16]",
    "movdqu [rdi], xmm0",
    "movdqu [rsi], xmm1",
    "xor eax, eax",
    "ret",
    "tilework_guarded_gather_32:",
    "movdqu xmm0, [rdi]",
    "movdqu xmm1, [rsi]",
    "movdqu [rdx], xmm0",
    "movdqu [rdx + 16], xmm1",
    "xor eax, eax",
    "ret",
    // The word comes in rax; rdx is zero if it is there.
    "tilework_guarded_load_1:",
    "movzx eax, byte ptr [rdi]",
    "xor edx, edx",
    "ret",
    "tilework_guarded_load_2:",
    "movzx eax, word ptr [rdi]",
    "xor edx, edx",
    "ret",
    "tilework_guarded_load_4:",
    "mov eax, [rdi]",
    "xor edx, edx",
    "ret",
    "tilework_guarded_load_8:",
    "mov rax, [rdi]",
    "xor edx, edx",
    "ret",
    "tilework_guarded_same_16:",
    "movdqu xmm0, [rdi]",
    "movdqu xmm1, [rsi]",
    "pcmpeqb xmm0, xmm1",
    "pmovmskb eax, xmm0",
    "xor eax, 0xffff",
    "ret",
    "tilework_guarded_any:",
    "mov rcx, rdx",
    "rep movsb",
    "xor eax, eax",
    "ret",
    "tilework_guarded_end:",
    "tilework_guarded_failed:",
    "mov eax, 1",
    "mov edx, eax",
    "ret",
    ".popsection",
);

/// What a load of a word gives.
#[repr(C)]
struct Word {
    value: u64,
    failed: u64,
}

type Copy = unsafe extern "C" fn(*mut u8, *const u8, usize) -> u32;

unsafe extern "C" {
    static tilework_guarded_start: u8;
    static tilework_guarded_end: u8;
    static tilework_guarded_failed: u8;
    fn tilework_guarded_1(to: *mut u8, from: *const u8, len: usize) -> u32;
    fn tilework_guarded_2(to: *mut u8, from: *const u8, len: usize) -> u32;
    fn tilework_guarded_4(to: *mut u8, from: *const u8, len: usize) -> u32;
    fn tilework_guarded_8(to: *mut u8, from: *const u8, len: usize) -> u32;
    fn tilework_guarded_16(to: *mut u8, from: *const u8, len: usize) -> u32;
    fn tilework_guarded_32(to: *mut u8, from: *const u8, len: usize) -> u32;
    fn tilework_guarded_spread_32(low: *mut u8, high: *mut u8, at: *const u8) -> u32;
    fn tilework_guarded_gather_32(low: *const u8, high: *const u8, at: *mut u8) -> u32;
    fn tilework_guarded_load_1(at: *const u8) -> Word;
    fn tilework_guarded_load_2(at: *const u8) -> Word;
    fn tilework_guarded_load_4(at: *const u8) -> Word;
    fn tilework_guarded_load_8(at: *const u8) -> Word;
    fn tilework_guarded_same_16(at: *const u8, other: *const u8) -> u32;
    fn tilework_guarded_any(to: *mut u8, from: *const u8, len: usize) -> u32;
}

/// Where to go on when the instruction at `rip` trapped, if it is one of these functions'.
pub(crate) fn recovery(rip: usize) -> Option<usize> {
    let (start, end) = (&raw const tilework_guarded_start, &raw const tilework_guarded_end);
    (start.addr()..end.addr()).contains(&rip).then(|| (&raw const tilework_guarded_failed).addr())
}

fn copy(to: *mut u8, from: *const u8, len: usize) -> bool {
    let function: Copy = match len {
        1 => tilework_guarded_1,
        2 => tilework_guarded_2,
        4 => tilework_guarded_4,
        8 => tilework_guarded_8,
        16 => tilework_guarded_16,
        32 => tilework_guarded_32,
        _ => tilework_guarded_any,
    };
    // SAFETY: one side is memory of this library's with `len` bytes; an access to the other, which
    // is the program's, that is not possible ends the function.
    unsafe { function(to, from, len) == 0 }
}

/// Reads the program's memory at `at`. False if not all of it is there.
#[must_use]
pub(crate) fn load(at: usize, out: &mut [u8]) -> bool {
    copy(out.as_mut_ptr(), std::ptr::with_exposed_provenance(at), out.len())
}

/// Writes the program's memory at `at`. False if not all of it can be written.
#[must_use]
pub(crate) fn store(at: usize, data: &[u8]) -> bool {
    copy(std::ptr::with_exposed_provenance_mut(at), data.as_ptr(), data.len())
}

/// Copies 16 or, with both places, 32 bytes of the program's memory at `at`. False if not all of
/// it is there.
///
/// # Safety
/// There is room at the places.
#[inline]
#[must_use]
pub(crate) unsafe fn load_halves(at: usize, [low, high]: [*mut u8; 2], both: bool) -> bool {
    let at = std::ptr::with_exposed_provenance(at);
    // SAFETY: the caller's promise; an access to the program's memory that is not possible ends the
    // function.
    let failed =
        unsafe { if both { tilework_guarded_spread_32(low, high, at) } else { tilework_guarded_16(low, at, 16) } };
    failed == 0
}

/// Copies 16 or, with both places, 32 bytes to the program's memory at `at`. False if not all of it
/// can be written.
///
/// # Safety
/// There are bytes at the places.
#[inline]
#[must_use]
pub(crate) unsafe fn store_halves(at: usize, [low, high]: [*mut u8; 2], both: bool) -> bool {
    let at = std::ptr::with_exposed_provenance_mut(at);
    // SAFETY: as in `load_halves`.
    let failed =
        unsafe { if both { tilework_guarded_gather_32(low, high, at) } else { tilework_guarded_16(at, low, 16) } };
    failed == 0
}

/// Whether the program's memory at `at` is there and has these bytes.
#[inline]
#[must_use]
pub(crate) fn is_same(at: usize, bytes: &[u8; 16]) -> bool {
    // SAFETY: an access to the program's memory that is not possible ends the function.
    unsafe { tilework_guarded_same_16(std::ptr::with_exposed_provenance(at), bytes.as_ptr()) == 0 }
}

/// Reads a word of 1, 2, 4 or 8 bytes of the program's memory, zero-extended; `None` if it is not
/// there.
#[inline]
#[must_use]
pub(crate) fn load_word(at: usize, bytes: u8) -> Option<u64> {
    let at = std::ptr::with_exposed_provenance(at);
    // SAFETY: an access that is not possible ends the function.
    let word = unsafe {
        match bytes {
            1 => tilework_guarded_load_1(at),
            2 => tilework_guarded_load_2(at),
            4 => tilework_guarded_load_4(at),
            _ => tilework_guarded_load_8(at),
        }
    };
    (word.failed == 0).then_some(word.value)
}

/// Writes the low 1, 2, 4 or 8 bytes of a value to the program's memory. `None` if it cannot be.
#[inline]
#[must_use]
pub(crate) fn store_word(at: usize, bytes: u8, value: u64) -> Option<()> {
    let (at, from) = (std::ptr::with_exposed_provenance_mut(at), (&raw const value).cast());
    // SAFETY: as in `copy`.
    let failed = unsafe {
        match bytes {
            1 => tilework_guarded_1(at, from, 1),
            2 => tilework_guarded_2(at, from, 2),
            4 => tilework_guarded_4(at, from, 4),
            _ => tilework_guarded_8(at, from, 8),
        }
    };
    (failed == 0).then_some(())
}
