//! Programs of the MOP expander, template 1: two nested loops
//! (WormholeB0/TensixTile/TensixCoprocessor/MOPExpander.md).

use crate::push::NOP;
use crate::ttinsn;
use tilework_abi::tensix::insn::Mop as MopInsn;
use tilework_abi::tensix::pc_buf::MOP_SYNC;
use tilework_abi::tensix::{MOP_CFG_BASE, PC_BUF_BASE};
use tilework_rt::reg::{publish, write};

/// Two nested loops of instructions. With two inner instructions the last iteration replaces the
/// second.
#[derive(Clone, Copy)]
pub struct Mop {
    outer: u32,
    inner: u32,
    start: u32,
    body: [u32; 2],
    ends: [u32; 2],
    last_inner: u32,
    last_outer: u32,
}

impl Mop {
    /// `outer` times `inner` times one instruction.
    pub const fn new(outer: u32, inner: u32, insn: u32) -> Self {
        Self { outer, inner, start: NOP, body: [insn, NOP], ends: [NOP; 2], last_inner: insn, last_outer: insn }
    }
    /// `outer` times `inner` times two instructions.
    pub const fn of_two(outer: u32, inner: u32, first: u32, second: u32) -> Self {
        Self { body: [first, second], last_inner: second, last_outer: second, ..Self::new(outer, inner, first) }
    }
    /// What every outer iteration begins with.
    pub const fn start(self, insn: u32) -> Self {
        Self { start: insn, ..self }
    }
    /// What every outer iteration ends with.
    pub const fn end(self, insn: u32) -> Self {
        Self { ends: [insn, NOP], ..self }
    }
    /// What replaces the instruction of the last inner iteration.
    pub const fn last_inner(self, insn: u32) -> Self {
        Self { last_inner: insn, ..self }
    }
    /// What replaces it in the last outer iteration.
    pub const fn last_outer(self, insn: u32) -> Self {
        Self { last_outer: insn, ..self }
    }
    /// Makes it the thread's program, once the last one has been expanded.
    #[inline(always)]
    pub fn program(self) {
        publish(PC_BUF_BASE + MOP_SYNC);
        let Self { outer, inner, start, body, ends, last_inner, last_outer } = self;
        let words = [outer, inner, start, ends[0], ends[1], body[0], body[1], last_outer, last_inner];
        for (i, word) in words.into_iter().enumerate() {
            write(MOP_CFG_BASE + 4 * i as u32, word);
        }
    }
}

/// Runs the thread's program.
#[inline(always)]
pub fn run() {
    ttinsn!(MopInsn::build().template(1).word());
}
