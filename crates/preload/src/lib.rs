//! `libtilework_card.so`: the simulated card inside a program that knows only silicon.
//!
//! `tilework card` has the dynamic linker load this library into a program before all others. It
//! then stands between the program and the C library: paths below `/dev/tenstorrent` and of the
//! card in `/sys` lead to a folder of the command's (`paths`), descriptors of the device are served
//! by the crate `kmd` (`state`), and mappings of BARs are pages without access rights. A load or
//! store there traps, is decoded and carried out on the chip, and so are the instructions behind it
//! to the end of their loop (`trap`, `cpu`). Accesses right behind a look at the clock (`ahead`)
//! and copies by `memcpy` and its kin (`copies`) need no trap.
//!
//! The chip is made when the device is first opened. A process that forks keeps it; its child has
//! none, until it opens the device anew. All calls of the card take one lock. Signals that arrive
//! meanwhile wait: a program's handler may access the card.
//!
//! System calls by number are served (`syscalls`), and so are those that the program makes by an
//! instruction of its own (`dispatch`).
//!
//! Not served: programs that are statically linked (their start is told, `exec`), threads that are
//! made without the C library, system calls that are given addresses of BARs (they end with
//! `EFAULT`), `mremap` of such mappings, gathers, scatters and masked vector accesses to a BAR.
//! What is met is told by name.
#![cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]
// The C library's types of structures and numbers; conversions between equal sizes abound.
#![allow(clippy::missing_safety_doc, reason = "the C library's functions, with the C library's contracts")]
#![allow(non_snake_case, reason = "the C library's names")]

mod ahead;
mod client;
mod clock;
mod combine;
mod copies;
mod counts;
mod cpu;
mod descriptors;
mod dispatch;
mod exec;
mod maps;
mod own;
mod paths;
mod polls;
mod process;
mod real;
mod record;
mod signals;
mod slots;
mod standstill;
mod state;
mod syscalls;
mod tell;
mod threads;
mod trap;
mod watch;

/// Not the program's allocator: the chip may need memory while the program is anywhere.
#[global_allocator]
static MEMORY: mimalloc::MiMalloc = mimalloc::MiMalloc;
