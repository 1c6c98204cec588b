//! What debug registers show and do: configuration, and instructions that a debugger pushes.
//!
//! Follows BlackholeA0/TensixTile/TensixCoprocessor/BackendConfiguration.md and
//! BlackholeA0/TensixTile/BabyRISCV/PushTensixInstruction.md ("Debug registers" of both).

use super::origin::Origin;
use super::{Tensix, config};
use crate::{Cycle, Fault, FaultClass};
use tilework_abi::tensix::insn;
use tilework_riscv::Refuse;

impl Tensix {
    /// The word of configuration that the debug registers show: the low eleven bits of `index`
    /// count words from `TENSIX_CFG_BASE`, and the write-only view answers as the first bank
    /// (BackendConfiguration.md).
    pub(crate) fn config_word(&self, index: u32) -> u32 {
        let config = &self.coprocessor.config;
        let index = index & 0x7FF;
        config.load(index).or_else(|_| config.load(index.wrapping_sub(config::DUAL))).unwrap_or(0)
    }

    /// The debug bus pushes an instruction behind the MOP expander of a thread. When there is no
    /// room it is lost.
    ///
    /// # Errors
    /// A word that is no instruction.
    pub(crate) fn push_by_debug_bus(&mut self, thread: usize, word: u32, at: Cycle) -> Result<(), Refuse<Fault>> {
        if insn::row(word).is_none() {
            let what = format!("{word:#010x} pushed to Tensix thread T{thread} over the debug bus is no instruction");
            let read = "BlackholeA0/TensixTile/BabyRISCV/PushTensixInstruction.md, Debug registers";
            return Err(Refuse::Fault(Fault::new(FaultClass::UndefinedBehavior, what, read).at_cycle(at)));
        }
        if self.coprocessor.threads[thread].front.push_behind_mop(word, Origin::DEBUG_BUS, at) {
            self.coprocessor.schedule(thread, at + 1);
        }
        Ok(())
    }

    /// `RISCV_DEBUG_REG_INSTRN_BUF_STATUS`: bits 0 to 2 say that the FIFO before a replay expander
    /// has room, 4 to 6 that it is empty.
    pub(crate) fn replay_fifo_status(&self) -> u32 {
        let fronts = self.coprocessor.threads.iter().enumerate().map(|(i, t)| (i, &t.front));
        fronts.fold(0, |all, (i, f)| {
            all | u32::from(f.has_room_behind_mop()) << i | u32::from(f.is_empty_behind_mop()) << (4 + i)
        })
    }
}
