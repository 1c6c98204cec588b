//! The baby RISC-V core of the Blackhole Tensix tile: one instruction table, and the decoder, the
//! disassembler and the predecoded interpreter that derive from it.
//!
//! The core does not know about tiles. Memory, devices and the Tensix instruction push are behind
//! [`Bus`], which the crate above implements. Instruction set: RV32IM, Zicsr, Zaamo, Zba, Zbb,
//! `pack` and `brev8` of Zbkb, `fence`, `fence.i` and `.ttinsn`. A word that is not in the table is
//! [`CoreFault::Illegal`], never a panic.
//!
//! Followed documents (`tenstorrent/tt-isa-documentation`, folder
//! `BlackholeA0/TensixTile/BabyRISCV`): `README.md` (pipeline and latencies, see [`timing`]),
//! `CSRs.md` (see [`CsrFile`]), `MemoryOrdering.md` (fences, the L0 cache),
//! `PushTensixInstruction.md` (`.ttinsn`).
//!
//! A polling core is parked ([`Exit::Parked`]) until a polled word changes; [`PollLoop`] has the
//! contract under which that is exact.
//!
//! Clippy's cast lints stay off here: instructions are defined on words that are truncated,
//! extended and read as signed or unsigned, so that `as` is the operation itself.

#![forbid(unsafe_code)]

mod alu;
mod bus;
mod core;
mod csr;
mod decode;
mod disasm;
mod exec;
mod loop_head;
mod pages;
mod poll;
mod rare;
mod short_poll;
mod table;
pub mod timing;

pub use crate::bus::{Access, Amo, Bus, Effect, Load, NotQuick, Refuse, Store, Width};
pub use crate::core::{Core, CoreFault, CoreState, Exit, HartKind};
pub use crate::csr::CsrFile;
pub use crate::decode::{CODE_PAGE_BYTES, CodePage, Insn, encode};
pub use crate::disasm::{disassemble, register_name};
pub use crate::poll::{PollLoop, Watch, WatchList};
pub use crate::rare::{INSTRN_BUF_BASE, Stop};
pub use crate::table::{Format, Op, OpInfo, TABLE};
pub use tilework_abi::addr::Cycle;
