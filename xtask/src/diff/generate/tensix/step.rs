//! What a TRISC does for the coprocessor, as a table that a small loop works off: it pushes
//! instructions, writes configuration, copies words and waits for the coprocessor.

use tilework_abi::tensix::insn::Insn;
use tilework_abi::tensix::{CFG_BASE, INSTRN_BUF_BASE, PC_BUF_BASE};
use tilework_riscv::Op as Rv;

use super::super::{DONE_VALUE, Processor, done};
use super::{SCRATCH, TABLE};
use crate::asm::{Asm, Reg};

/// A write followed by a read waits for the coprocessor (BlackholeA0/TensixTile/BabyRISCV/
/// ManualTTSync.md, `CoprocessorDoneCheck`).
const COPROCESSOR_DONE: u32 = PC_BUF_BASE + 4;

/// A step of a TRISC.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Step {
    /// Pushes a Tensix instruction to the core's own thread.
    Push(u32),
    /// Writes a word.
    Write(u32, u32),
    /// Copies a word from the first address to the second.
    Copy(u32, u32),
    /// Waits until the coprocessor has done all that was pushed.
    Sync,
    /// Waits until configuration that was written is in place.
    Settle,
}

impl Step {
    /// The entry of the table: an address, the word that is stored there, the address of a word
    /// that is loaded then, and the address where that word is stored.
    const fn entry(self) -> [u32; 4] {
        match self {
            Self::Push(word) => [INSTRN_BUF_BASE, word, TABLE, SCRATCH],
            Self::Write(addr, value) => [addr, value, TABLE, SCRATCH],
            Self::Copy(from, to) => [SCRATCH, 0, from, to],
            Self::Sync => [COPROCESSOR_DONE, 0, COPROCESSOR_DONE, SCRATCH],
            Self::Settle => [SCRATCH, 0, CFG_BASE, SCRATCH],
        }
    }

    /// The instruction, if it pushes one.
    pub(super) const fn pushed(self) -> Option<u32> {
        match self {
            Self::Push(word) => Some(word),
            _ => None,
        }
    }

    /// The line of a listing.
    pub(super) fn text(self) -> String {
        match self {
            Self::Push(word) => format!("{word:#010x} {}", Insn::decode(word)),
            Self::Write(addr, value) => format!("[{addr:#x}] = {value:#010x}"),
            Self::Copy(from, to) => format!("[{to:#x}] = [{from:#x}]"),
            Self::Sync => "wait for the coprocessor".to_owned(),
            Self::Settle => "wait for the configuration".to_owned(),
        }
    }
}

/// The table of `steps`.
pub(super) fn table(steps: impl Iterator<Item = Step>) -> Vec<u8> {
    steps.flat_map(Step::entry).chain([0]).flat_map(u32::to_le_bytes).collect()
}

/// The program that works off the table at `table`; an address of zero ends it.
pub(super) fn program(core: Processor, table: u32) -> Asm {
    const AT: Reg = 5;
    const ADDR: Reg = 6;
    const VALUE: Reg = 7;
    const FROM: Reg = 8;
    const TO: Reg = 9;
    let mut asm = Asm::default();
    asm.li(AT, table);
    asm.lw(ADDR, AT, 0);
    let again = asm.here();
    asm.lw(VALUE, AT, 4);
    asm.lw(FROM, AT, 8);
    asm.lw(TO, AT, 12);
    asm.addi(AT, AT, 16);
    asm.sw(VALUE, ADDR, 0);
    asm.lw(VALUE, FROM, 0);
    asm.sw(VALUE, TO, 0);
    asm.lw(ADDR, AT, 0);
    asm.branch(Rv::Bne, ADDR, 0, again);
    asm.fence();
    asm.li(ADDR, done(core));
    asm.li(VALUE, DONE_VALUE);
    asm.sw(VALUE, ADDR, 0);
    asm.stop();
    asm
}
