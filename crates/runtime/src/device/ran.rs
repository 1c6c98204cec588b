//! The programs that a device has run, for questions about places in their code that come after
//! the programs have ended.

use super::{Device, Running, queue_kernels_at};
use crate::elf::SourceLocation;
use crate::program::{Layout, Program};
use std::collections::BTreeSet;
use std::sync::Arc;
use tilework_abi::l1::MemoryMap;
use tilework_abi::noc::NocXy;
use tilework_abi::tensix::Processor;
use tilework_driver::HostLink;

/// Programs that are remembered at most, the latest ones: far more than one run of a program file
/// has, and few enough to be looked through for each finding.
const KEPT: usize = 1024;

/// A program as it was launched: itself, and where its parts lay.
type Ran = (Arc<Program>, Arc<Layout>);

/// The programs that were launched, each once, oldest first.
#[derive(Default)]
pub(super) struct Launched(Vec<Ran>);

/// What an instruction belongs to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CodePlace {
    /// What runs there, in words: the firmware, a kernel of the command queue, or a program's
    /// kernel. Several kernels, when they lay in the same place one after the other.
    pub runs: String,
    /// The name of the one kernel; none for firmware.
    pub kernel: Option<String>,
    /// Its function and line.
    pub location: Option<SourceLocation>,
}

impl CodePlace {
    fn firmware(runs: String, location: SourceLocation) -> Self {
        Self { runs, kernel: None, location: Some(location) }
    }
}

impl Launched {
    fn add(&mut self, running: &Running) {
        let known = |ran: &Ran| {
            Arc::ptr_eq(&ran.0, &running.program) && (*ran.1 == *running.layout || Arc::ptr_eq(&ran.1, &running.layout))
        };
        if self.0.iter().rev().any(known) {
            return;
        }
        if self.0.len() == KEPT {
            self.0.remove(0);
        }
        self.0.push((running.program.clone(), running.layout.clone()));
    }

    /// What the kernels are that had `pc` in their text on a core: with one answer its line.
    fn locate(&self, tile: NocXy, core: Processor, pc: u32) -> Option<CodePlace> {
        let mut found: Vec<CodePlace> = Vec::new();
        let mut looked_at = BTreeSet::new();
        for (program, layout) in self.0.iter().rev() {
            let role = layout.roles.iter().position(|role| role.cores.contains(&tile));
            let Some(number) = role else { continue };
            let Some(kernel) = program.roles.get(number).and_then(|role| role.kernels[core.index()].as_ref()) else {
                continue;
            };
            let at = layout.base.offset(layout.roles[number].text[core.index()]);
            let runs = format!("kernel {} of program {}", kernel.name(), program.name);
            // Launches of one program mostly differ in their arguments only.
            if !looked_at.insert((runs.clone(), at)) {
                continue;
            }
            let Some(location) = kernel.locate(pc, at) else { continue };
            let place = CodePlace { runs, kernel: Some(kernel.name().to_owned()), location: Some(location) };
            if !found.contains(&place) {
                found.push(place);
            }
        }
        let runs = found.iter().map(|place| place.runs.as_str()).collect::<Vec<_>>().join(" or ");
        match found.len() {
            0 | 1 => found.pop(),
            _ => Some(CodePlace { runs, kernel: None, location: None }),
        }
    }
}

impl<C: HostLink> Device<C> {
    /// Remembers a program that was launched, if the configuration asks for it.
    pub(super) fn remember(&mut self, running: &Running) {
        if let Some(launched) = &mut self.launched {
            launched.add(running);
        }
    }

    /// What the instruction at `pc` of a core is part of. Kernels are those of the programs that
    /// the device has launched since it was opened, if
    /// [`DeviceConfig::remember_programs`](crate::DeviceConfig::remember_programs) asked for them.
    pub fn code_at(&self, tile: NocXy, core: Processor, pc: u32) -> CodePlace {
        let firmware = &self.firmware[core.index()];
        if let Some(location) = firmware.locate(pc) {
            return CodePlace::firmware(format!("firmware {}", firmware.name()), location);
        }
        if let Some(place) = self.code_of_queue(tile, pc, &self.map) {
            return place;
        }
        let of_program = self.launched.as_ref().and_then(|launched| launched.locate(tile, core, pc));
        of_program.unwrap_or_else(|| CodePlace { runs: "unknown code".to_owned(), kernel: None, location: None })
    }

    /// The same on a tile of the command queue.
    fn code_of_queue(&self, tile: NocXy, pc: u32, map: &MemoryMap) -> Option<CodePlace> {
        self.queue.as_ref()?;
        let parts = self.config.queue_tiles();
        let kernels = queue_kernels_at(parts.parts_at(self.config.board, tile), &self.cq_kernels);
        kernels.into_iter().find_map(|(offset, _, kernel)| {
            let location = kernel.locate(pc, map.kernel_config.offset(offset))?;
            Some(CodePlace::firmware(format!("kernel {}", kernel.name()), location))
        })
    }
}
