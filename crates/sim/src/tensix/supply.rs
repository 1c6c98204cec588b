//! What a core pushes next that waits for room.
//!
//! Kernels push rows of instructions faster than their thread takes them. The core of such a row
//! gets room for one, pushes it and waits again, so that core and coprocessor would take turns for
//! every instruction. Instead the coprocessor takes the words of the row itself, each in the cycle
//! in which the core would push it, and the core is told afterwards.

use super::border::{Outside, push_to_fifo};
use super::coprocessor::Coprocessor;
use super::origin::Issuer;
use crate::Cycle;
use std::sync::Arc;
use tilework_riscv::{CODE_PAGE_BYTES, CodePage, Insn, Op};

/// The pushes before which a core waits for room.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    /// The core, and the address of the first push that has not been made.
    by: Issuer,
    /// The page of code around that.
    page: Arc<CodePage>,
    /// The core comes to it then.
    at: Cycle,
    /// Counts the changes of code in L1: after another one the core looks at it again.
    code: u64,
    /// How many have been made of which the core has not been told.
    made: usize,
}

impl Row {
    /// The row of a core that has come at cycle `at` to an instruction of `page`, as the code is
    /// after `code` changes; `None` if there is no more than one push.
    pub(crate) fn of(by: Issuer, at: Cycle, page: &Arc<CodePage>, code: u64) -> Option<Self> {
        push_in_row(page, by.pc)?;
        Some(Self { by, page: page.clone(), at, code, made: 0 })
    }
}

/// The word that the instruction at `pc` pushes, if another push follows on its page. Behind the
/// last one of a row the core goes on.
#[inline]
fn push_in_row(page: &CodePage, pc: u32) -> Option<u32> {
    let index = (pc % CODE_PAGE_BYTES / 4) as usize;
    let is_push = |insn: &&Insn| insn.op == Op::Ttinsn;
    page.insns.get(index + 1).filter(is_push)?;
    page.insns.get(index).filter(is_push).map(|push| push.imm.cast_unsigned())
}

impl Coprocessor {
    /// Makes the pushes of the row of thread `thread` for which there is room after the step of
    /// cycle `now`, if the core comes to the next one before the steps end.
    pub(super) fn make_pushes(&mut self, thread: usize, now: Cycle, outside: &impl Outside) {
        let thread = &mut self.threads[thread];
        let Some(row) = &mut thread.row else { return };
        while thread.front.has_room()
            && let Some(word) = push_in_row(&row.page, row.by.pc)
        {
            let at = row.at.max(now + 1);
            let is_due = at + 1 < self.end && row.code == outside.code_changes();
            if !is_due || push_to_fifo(&mut thread.front, row.by, word, at).is_err() {
                return;
            }
            row.by.pc = row.by.pc.wrapping_add(4);
            (row.at, row.made) = (at + 1, row.made + 1);
            self.has_pushed = true;
        }
    }

    /// The pushes of the row of thread `thread` that have been made since this was last asked, and
    /// when the core comes to the next one.
    pub(super) fn take_made(&mut self, thread: usize) -> Option<(usize, Cycle)> {
        let row = self.threads[thread].row.as_mut().filter(|row| row.made > 0)?;
        Some((std::mem::take(&mut row.made), row.at))
    }
}
