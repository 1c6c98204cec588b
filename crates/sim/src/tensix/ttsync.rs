//! Auto TTSync: accesses of a T core to GPRs, configuration and TDMA registers keep their order
//! with the instructions that it pushes.
//!
//! Follows the page BlackholeA0/TensixTile/BabyRISCV/AutoTTSync.md (named, but not carried, by the
//! public tree; a copy is in the fork `jasondavies/tt-isa-documentation`). A core's access happens
//! in program order here, so of the four scenarios only those in which the push comes first need a
//! wait. The six parts of the configuration are one resource here, which can only wait for more
//! than hardware does. Each instruction's class is in its row of the instruction table.

use super::config::Config;
use super::frontend::FrontEnd;
use tilework_abi::tensix::cfg;
use tilework_abi::tensix::insn::{self, Class, Insn};

/// What an instruction may use: bit 0 reads configuration, 1 writes it, bits 2 to 4 say which part,
/// 5 reads GPRs, 6 writes them, 7 reads TDMA state, 8 writes it (`assembly.yaml`, RESOURCEDECL).
type Resources = u16;

const CONFIG_READ: Resources = 1;
const CONFIG_WRITE: Resources = 1 << 1;
const GPR_READ: Resources = 1 << 5;
const GPR_WRITE: Resources = 1 << 6;
const TDMA_READ: Resources = 1 << 7;
const TDMA_WRITE: Resources = 1 << 8;

/// By class (AutoTTSync.md, "Tensix instruction to resource mapping").
const DEFAULTS: [Resources; Class::COUNT] = {
    let gpr = GPR_READ | GPR_WRITE;
    let config = CONFIG_READ | CONFIG_WRITE;
    let tdma = TDMA_READ | TDMA_WRITE;
    [
        gpr,
        gpr,
        gpr | tdma,
        gpr,
        config,
        GPR_READ,
        GPR_WRITE,
        TDMA_WRITE,
        GPR_READ | CONFIG_WRITE,
        CONFIG_READ | GPR_WRITE,
        gpr | config,
        tdma | CONFIG_READ,
        tdma | CONFIG_READ,
        gpr | tdma | config,
        gpr | tdma | config,
        CONFIG_READ,
    ]
};

/// What a core accesses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Resource {
    Gpr,
    Config,
    Tdma,
}

/// One thread's resource definitions.
#[derive(Clone, Debug)]
pub(super) struct Tracking {
    classes: [Resources; Class::COUNT],
    /// The thread's core waits for instructions to pass the wait gate.
    waiting: bool,
}

impl Default for Tracking {
    fn default() -> Self {
        Self { classes: DEFAULTS, waiting: false }
    }
}

impl Tracking {
    /// Takes `RESOURCEDECL`. `false`: it is another instruction.
    pub(super) fn declare(&mut self, insn: Insn) -> bool {
        let Insn::FrontEnd(insn::FrontEndOp::Resourcedecl(declared)) = insn else { return false };
        self.classes[declared.op_class() as usize] = declared.resources() as Resources;
        true
    }

    /// True, once, when the core waits.
    pub(super) fn take_waiting(&mut self) -> bool {
        std::mem::take(&mut self.waiting)
    }

    /// Whether an access of the thread's core must wait for instructions that it pushed before.
    pub(super) fn must_wait(
        &mut self,
        front: &FrontEnd,
        config: &Config,
        thread: usize,
        resource: Resource,
        store: bool,
    ) -> bool {
        let (tracks, read, write) = match resource {
            Resource::Config => (cfg::TENSIX_TRISC_SYNC_TRACKGLOBALCFG, CONFIG_READ, CONFIG_WRITE),
            Resource::Gpr => (cfg::TENSIX_TRISC_SYNC_TRACKGPR, GPR_READ, GPR_WRITE),
            Resource::Tdma => (cfg::TENSIX_TRISC_SYNC_TRACKTDMAREGS, TDMA_READ, TDMA_WRITE),
        };
        let enables = [cfg::TENSIX_TRISC_SYNC_TRACKTENSIXINSTRUCTIONS, tracks];
        if !enables.into_iter().all(|enable| config.is_set(thread, enable)) {
            return false;
        }
        let conflict = if store { read | write } else { write };
        let (pushed, expanding) = front.pending();
        let uses = |class: Class| class.index().map_or(0, |class| self.classes[class]);
        let mut used = if expanding { uses(Class::Mop) | uses(Class::Replay) } else { 0 };
        for insn in pushed {
            used |= uses(insn.row().map_or(Class::Other, |row| row.class));
        }
        self.waiting |= used & conflict != 0;
        used & conflict != 0
    }
}

#[cfg(test)]
mod tests {
    use super::super::origin::Issuer;
    use super::*;
    use insn::{Flushdma, Loadreg, Mop, Nop, Rdcfg, Resourcedecl, Sempost, Setdmareg, Storereg, Wrcfg};
    use tilework_abi::tensix::Processor;

    /// Whether loads and stores of (GPRs, configuration, TDMA) wait while `word` is pending.
    fn waits(word: u32, enable: u16) -> [[bool; 2]; 3] {
        let (mut front, mut config, mut tracking) = (FrontEnd::default(), Config::default(), Tracking::default());
        config.set_thread(0, 56, enable).unwrap();
        front.push(word, Issuer { core: Processor::Trisc0, pc: 0 }, 0);
        [Resource::Gpr, Resource::Config, Resource::Tdma]
            .map(|r| [false, true].map(|store| tracking.must_wait(&front, &config, 0, r, store)))
    }

    #[test]
    fn the_default_mapping_is_the_page_s_table() {
        let all = 0b11101;
        let (no, st, both) = ([false, false], [false, true], [true, true]);
        assert_eq!(waits(Nop::build().word(), all), [no, no, no], "NOP");
        assert_eq!(waits(Setdmareg::build().word(), all), [both, no, no], "SETDMAREG");
        assert_eq!(waits(Storereg::build().word(), all), [st, no, no], "STOREREG reads GPRs");
        assert_eq!(waits(Loadreg::build().word(), all), [both, no, no], "LOADREG writes GPRs");
        assert_eq!(waits(Wrcfg::build().word(), all), [st, both, no], "WRCFG");
        assert_eq!(waits(Rdcfg::build().word(), all), [both, st, no], "RDCFG");
        assert_eq!(waits(Flushdma::build().word(), all), [no, no, both], "FLUSHDMA");
        assert_eq!(waits(Mop::build().word(), all), [both, both, both], "MOP");
        assert_eq!(waits(Sempost::build().word(), all), [no, st, no], "SEMPOST reads configuration");
    }

    #[test]
    fn nothing_waits_unless_instructions_and_the_resource_are_tracked() {
        let no = [false, false];
        assert_eq!(waits(Mop::build().word(), 0b01101), [no, no, no]);
        assert_eq!(waits(Mop::build().word(), 0b10100), [[true, true], no, no]);
    }

    #[test]
    fn a_declaration_changes_a_class() {
        let mut t = Tracking::default();
        assert!(t.declare(Insn::decode(Resourcedecl::build().op_class(13).word())));
        assert!(!t.declare(Insn::decode(Nop::build().word())));
        assert_eq!((t.classes[13], t.classes[14]), (0, DEFAULTS[14]));
    }
}
