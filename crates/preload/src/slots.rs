//! Places from which a system call of the program's is made with all its registers.
//!
//! The instruction `syscall` overwrites rcx and r11 only, and the first is then to hold where the
//! program goes on. So each place in the program that makes system calls has a slot of its own
//! here: the call, and a jump to where the program goes on, which stands in a table. Two other
//! kinds are for calls that make a process: its child traps before it goes on
//! ([`back_of_child`]).

use std::arch::global_asm;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Slots of each kind. A program has one for each of its instructions that makes system calls.
const COUNT: usize = 2048;
/// Bytes of a slot, and of one whose child traps.
const PLAIN: usize = 16;
const FORK: usize = 32;
/// Bytes from a slot's start to the instruction at which a child traps.
const TRAP: usize = 16;

/// Where the program goes on, by slot; zero for a free one.
static BACK: [AtomicUsize; COUNT] = [const { AtomicUsize::new(0) }; COUNT];

// The flags stay as they are: a move and `jrcxz` leave them alone. A child's load from address zero
// is what traps.
global_asm!(
    ".pushsection .text.tilework_slots,\"ax\",@progbits",
    ".p2align 5",
    ".globl tilework_slots",
    ".hidden tilework_slots",
    ".globl tilework_fork_slots",
    ".hidden tilework_fork_slots",
    ".globl tilework_vfork_slots",
    ".hidden tilework_vfork_slots",
    "tilework_slots:",
    ".set tilework_slot, 0",
    ".rept {count}",
    "syscall",
    "movq {back}+tilework_slot(%rip), %rcx",
    "jmp *%rcx",
    ".p2align 4",
    ".set tilework_slot, tilework_slot + 8",
    ".endr",
    ".macro tilework_trapping_slots",
    ".set tilework_slot, 0",
    ".rept {count}",
    "syscall",
    "movq %rax, %rcx",
    "jrcxz 0f",
    "jmp 1f",
    ".p2align 4",
    "0: movq (%rcx), %rcx",
    "1: movq {back}+tilework_slot(%rip), %rcx",
    "jmp *%rcx",
    ".p2align 5",
    ".set tilework_slot, tilework_slot + 8",
    ".endr",
    ".endm",
    ".p2align 5",
    "tilework_fork_slots:",
    "tilework_trapping_slots",
    "tilework_vfork_slots:",
    "tilework_trapping_slots",
    ".popsection",
    count = const COUNT,
    back = sym BACK,
    options(att_syntax)
);

unsafe extern "C" {
    static tilework_slots: u8;
    static tilework_fork_slots: u8;
    static tilework_vfork_slots: u8;
}

/// Which kind of slot a call needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// Who comes back goes on.
    Plain,
    /// It makes a process of its own.
    Fork,
    /// It makes a process that has the memory of this one, which waits for it.
    Vfork,
}

/// Where the slots of a kind begin.
fn start(kind: Kind) -> usize {
    match kind {
        Kind::Plain => (&raw const tilework_slots).addr(),
        Kind::Fork => (&raw const tilework_fork_slots).addr(),
        Kind::Vfork => (&raw const tilework_vfork_slots).addr(),
    }
}

/// The slot for a call after which the program goes on at `back`. `None` if all are taken.
pub(crate) fn slot(back: usize, kind: Kind) -> Option<usize> {
    let first = back.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
    let at = (0..COUNT).map(|step| (first + step) % COUNT).find(|&at| {
        let found = BACK[at].compare_exchange(0, back, Ordering::AcqRel, Ordering::Acquire);
        found.is_ok() || found == Err(back)
    })?;
    Some(start(kind) + at * if kind == Kind::Plain { PLAIN } else { FORK })
}

/// Where a child goes on that has trapped at `rip` in a slot, and the kind of that.
pub(crate) fn back_of_child(rip: usize) -> Option<(usize, Kind)> {
    [Kind::Fork, Kind::Vfork].into_iter().find_map(|kind| {
        let within = rip.wrapping_sub(start(kind));
        let is_trap = within < COUNT * FORK && within % FORK == TRAP;
        is_trap.then(|| (BACK[within / FORK].load(Ordering::Acquire), kind))
    })
}
