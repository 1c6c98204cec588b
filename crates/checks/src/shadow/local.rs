//! Local RAM of the cores: what nobody has written, and how far the stack reaches.

use super::observer::CheckObserver;
use super::report::Actor;
use super::tile::{CoreState, Tile};
use super::written::Shadow;
use crate::catalogue::memory as rows;
use crate::finding::{Space, Target};
use tilework_abi::tensix::Processor;
use tilework_riscv::Insn;

/// The stack pointer's register.
const SP: u8 = 2;

impl CheckObserver {
    /// A core accesses its local RAM.
    #[inline]
    pub(super) fn local(
        &mut self,
        tile: &mut Tile,
        (core, actor): (Processor, Actor),
        addr: u32,
        bytes: u8,
        write: bool,
    ) {
        let offset = CoreState::local_offset(addr);
        let state = &mut tile.cores[core.index()];
        let target = || {
            let (addr, bytes) = (addr.into(), bytes.into());
            Some(Target { space: Space::Local(core), tile: actor.tile, addr, bytes })
        };
        let insn = actor.code.and_then(|code| state.instruction(code.pc));
        if write {
            state.local.mark(offset, bytes.into(), true);
        } else if insn.is_some_and(|insn| insn.rs1 != SP) && !state.local.any(offset, bytes.into()) {
            // Compilers save and copy values on the stack that are never used.
            self.reports.report(&rows::LOCAL_UNWRITTEN_READ, actor, target(), || {
                (format!("loads {bytes} bytes at {addr:#x} that nobody has written"), None)
            });
        }
        self.may_know_local(tile, core, offset, actor.at);
        let Some(insn) = insn else { return };
        self.stack(tile, (core, actor), &insn, addr, target());
    }

    /// Where the stack pointer is follows from an access through it.
    fn stack(
        &mut self,
        tile: &Tile,
        (core, actor): (Processor, Actor),
        insn: &Insn,
        addr: u32,
        target: Option<Target>,
    ) {
        let Some(firmware) = self.firmware.as_ref().filter(|_| insn.rs1 == SP) else { return };
        let sp = addr.wrapping_sub_signed(insn.imm);
        let limit = tile.stack_limit(core, firmware);
        if sp < limit {
            self.reports.report(&rows::STACK_OVERFLOW, actor, target, || {
                let below = limit.saturating_sub(sp);
                (format!("the stack reaches down to {sp:#x}, {below} bytes into data that end at {limit:#x}"), None)
            });
        }
    }
}
