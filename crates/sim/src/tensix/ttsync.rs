//! Auto TTSync: a T core's accesses to GPRs, configuration and TDMA registers keep their order with the instructions that it pushes.
//!
//! Follows the page BlackholeA0/TensixTile/BabyRISCV/AutoTTSync.md (named, but not carried, by the public tree; a copy is in the fork
//! `jasondavies/tt-isa-documentation`). A core's access happens in program order here, so that of the four scenarios only those in which the
//! push comes first need a wait. The six parts of the configuration are one resource here; that can only wait for more than hardware does.

use super::config::{Config, TRISC_SYNC};
use super::frontend::{FrontEnd, OP_RESOURCEDECL};

/// What an instruction may use: bit 0 reads configuration, 1 writes it, bits 2 to 4 say which part, 5 reads GPRs, 6 writes
/// them, 7 reads TDMA state, 8 writes it (`assembly.yaml`, RESOURCEDECL).
type Resources = u16;

const CONFIG_READ: Resources = 1;
const CONFIG_WRITE: Resources = 1 << 1;
const GPR_READ: Resources = 1 << 5;
const GPR_WRITE: Resources = 1 << 6;
const TDMA_READ: Resources = 1 << 7;
const TDMA_WRITE: Resources = 1 << 8;

const CLASSES: usize = 16;
const CLASS_MOP: usize = 13;
const CLASS_REPLAY: usize = 14;
const CLASS_OTHER: usize = 15;

/// By class (AutoTTSync.md, "Tensix instruction to resource mapping").
const DEFAULTS: [Resources; CLASSES] = {
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
#[derive(Debug)]
pub(super) struct Tracking {
    classes: [Resources; CLASSES],
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
    pub(super) fn declare(&mut self, word: u32) -> bool {
        let declares = word >> 24 == u32::from(OP_RESOURCEDECL);
        if declares {
            self.classes[(word & 0xF) as usize] = (word >> 4 & 0x1FF) as u16;
        }
        declares
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
        let enabled = config.field(thread, TRISC_SYNC);
        let (bit, read, write) = match resource {
            Resource::Config => (0, CONFIG_READ, CONFIG_WRITE),
            Resource::Gpr => (2, GPR_READ, GPR_WRITE),
            Resource::Tdma => (3, TDMA_READ, TDMA_WRITE),
        };
        if enabled >> 4 & 1 == 0 || enabled >> bit & 1 == 0 {
            return false;
        }
        let conflict = if store { read | write } else { write };
        let (words, expanding) = front.pending();
        let mut used = if expanding { self.classes[CLASS_MOP] | self.classes[CLASS_REPLAY] } else { 0 };
        for word in words {
            used |= class(word).map_or(0, |class| self.classes[class]);
        }
        self.waiting |= used & conflict != 0;
        used & conflict != 0
    }
}

/// The class of an instruction; `None`: it uses nothing.
fn class(word: u32) -> Option<usize> {
    Some(match word >> 24 {
        0x02 | 0x03 | 0x05 => return None,
        0x45 | 0x58..=0x5D => 0,
        0x61..=0x64 => 1,
        0x48 => 2,
        0x49 | 0x66 => 3,
        0xB7 | 0xB8 => 4,
        0x67 => 5,
        0x68 => 6,
        0x46 => 7,
        0xB0 => 8,
        0xB1 => 9,
        0x40 => 10,
        0x42 | 0x43 => 11,
        0x41 => 12,
        0x01 => CLASS_MOP,
        0x04 => CLASS_REPLAY,
        _ => CLASS_OTHER,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether loads and stores of (GPRs, configuration, TDMA) wait while `word` is pending.
    fn waits(word: u32, enable: u16) -> [[bool; 2]; 3] {
        let (mut front, mut config, mut tracking) = (FrontEnd::default(), Config::default(), Tracking::default());
        config.set_thread(0, 56, enable).unwrap();
        front.push(word, 0);
        [Resource::Gpr, Resource::Config, Resource::Tdma]
            .map(|r| [false, true].map(|store| tracking.must_wait(&front, &config, 0, r, store)))
    }

    #[test]
    fn the_default_mapping_is_the_page_s_table() {
        let all = 0b11101;
        let (no, st, both) = ([false, false], [false, true], [true, true]);
        assert_eq!(waits(0x0200_0000, all), [no, no, no], "NOP");
        assert_eq!(waits(0x4500_0000, all), [both, no, no], "SETDMAREG");
        assert_eq!(waits(0x6700_0000, all), [st, no, no], "STOREREG reads GPRs");
        assert_eq!(waits(0x6800_0000, all), [both, no, no], "LOADREG writes GPRs");
        assert_eq!(waits(0xB000_0000, all), [st, both, no], "WRCFG");
        assert_eq!(waits(0xB100_0000, all), [both, st, no], "RDCFG");
        assert_eq!(waits(0x4600_0000, all), [no, no, both], "FLUSHDMA");
        assert_eq!(waits(0x0100_0000, all), [both, both, both], "MOP");
        assert_eq!(waits(0xA400_0000, all), [no, st, no], "SEMPOST reads configuration");
    }

    #[test]
    fn nothing_waits_unless_instructions_and_the_resource_are_tracked() {
        let no = [false, false];
        assert_eq!(waits(0x0100_0000, 0b01101), [no, no, no]);
        assert_eq!(waits(0x0100_0000, 0b10100), [[true, true], no, no]);
    }

    #[test]
    fn a_declaration_changes_a_class() {
        let mut t = Tracking::default();
        assert!(t.declare(0x0500_0000 | 13));
        assert!(!t.declare(0x0200_0000));
        assert_eq!((t.classes[13], t.classes[14]), (0, DEFAULTS[14]));
    }
}
