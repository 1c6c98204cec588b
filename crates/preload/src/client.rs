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
    ".globl tilework_guarded_any",
    ".hidden tilework_guarded_any",
    ".globl tilework_guarded_swap_4",
    ".hidden tilework_guarded_swap_4",
    ".globl tilework_guarded_swap_8",
    ".hidden tilework_guarded_swap_8",
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
    // rdi: the word, rsi: what is expected, rdx: what is to be there. 2: it was something else.
    "tilework_guarded_swap_4:",
    "mov eax, esi",
    "lock cmpxchg dword ptr [rdi], edx",
    "jmp 2f",
    "tilework_guarded_swap_8:",
    "mov rax, rsi",
    "lock cmpxchg qword ptr [rdi], rdx",
    "2:",
    "mov eax, 0",
    "mov ecx, 2",
    "cmovne eax, ecx",
    "ret",
    "tilework_guarded_any:",
    "mov rcx, rdx",
    "rep movsb",
    "xor eax, eax",
    "ret",
    "tilework_guarded_end:",
    "tilework_guarded_failed:",
    "mov eax, 1",
    "ret",
    ".popsection",
);

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
    fn tilework_guarded_swap_4(at: *mut u8, expected: u64, new: u64) -> u32;
    fn tilework_guarded_swap_8(at: *mut u8, expected: u64, new: u64) -> u32;
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

/// Puts `new` into the program's word of `bytes` (4 or 8) at `at` if `expected` is there, at once
/// for all threads. Whether it was; `None` if the word cannot be written.
#[must_use]
pub(crate) fn swap(at: usize, bytes: usize, expected: u64, new: u64) -> Option<bool> {
    let function = if bytes == 4 { tilework_guarded_swap_4 } else { tilework_guarded_swap_8 };
    // SAFETY: an access that is not possible ends the function.
    match unsafe { function(std::ptr::with_exposed_provenance_mut(at), expected, new) } {
        0 => Some(true),
        2 => Some(false),
        _ => None,
    }
}
