//! From what an analyser has seen to a finding: who did it, and for which kernel.

use crate::catalogue::Row;
use crate::finding::{Agent, Code, Finding, Place, Target};
use crate::{Checks, Policy};
use std::collections::HashSet;
use std::sync::Arc;
use tilework_abi::noc::NocXy;
use tilework_abi::tensix::Processor;
use tilework_driver::{CodeNote, LaunchNote};

/// Who accesses memory, where and when.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Actor {
    pub tile: NocXy,
    pub agent: Agent,
    pub code: Option<Code>,
    pub at: u64,
}

impl Actor {
    /// A core itself.
    pub(crate) fn core(tile: NocXy, core: Processor, pc: u32, at: u64) -> Self {
        Self { tile, agent: Agent::Core(core), code: Some(Code { core, pc }), at }
    }
    /// The same instruction, done by something that the core has set off.
    pub(crate) fn by(self, agent: Agent) -> Self {
        Self { agent, ..self }
    }
    /// As a side of a finding.
    pub(crate) fn place(self, target: Option<Target>) -> Place {
        let Self { tile, agent, code, at } = self;
        Place { tile, agent, code, cycle: at, target }
    }
}

/// The kernel that an instruction of a finding belongs to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InKernel {
    /// The launch.
    pub launch: Arc<LaunchNote>,
    /// The kernel, and where it lay.
    pub kernel: CodeNote,
}

/// Findings as they are made.
#[derive(Debug)]
pub(crate) struct Reports {
    checks: Checks,
    /// The kernels of the findings, in their order.
    kernels: Vec<Option<InKernel>>,
    /// What was reported: only asked whether it contains something, never walked.
    known: HashSet<(&'static str, NocXy, Agent, Option<Code>)>,
}

impl Reports {
    pub(crate) fn new(policy: Policy) -> Self {
        Self { checks: Checks::new(policy), kernels: Vec::new(), known: HashSet::new() }
    }
    pub(crate) fn checks(&self) -> &Checks {
        &self.checks
    }
    /// The kernel of finding number `number`.
    pub(crate) fn kernel(&self, number: usize) -> Option<&InKernel> {
        self.kernels.get(number)?.as_ref()
    }

    /// Reports something that `actor` did to `target`. The words are only made for the first of
    /// equal findings.
    pub(crate) fn report(
        &mut self,
        check: &'static Row,
        actor: Actor,
        target: Option<Target>,
        launch: Option<&Arc<LaunchNote>>,
        words: impl FnOnce() -> (String, Option<Place>),
    ) {
        if !self.checks.wants(check) {
            return;
        }
        let new = self.known.insert((check.id, actor.tile, actor.agent, actor.code));
        let (what, other) = words_of(new, words);
        let mut finding = Finding::new(check, actor.place(target), what);
        // The other side of a repeated finding is that of the first one.
        finding.other = match new {
            true => other,
            false => self.other_of(check, actor),
        };
        let before = self.checks.findings().len();
        self.checks.report(finding);
        if self.checks.findings().len() > before {
            self.kernels.push(launch.and_then(|launch| in_kernel(launch, actor)));
        }
    }

    fn other_of(&self, check: &'static Row, actor: Actor) -> Option<Place> {
        let same = |f: &&Finding| {
            f.check == check && (f.place.tile, f.place.agent, f.place.code) == (actor.tile, actor.agent, actor.code)
        };
        self.checks.findings().iter().find(same)?.other
    }
}

fn words_of(new: bool, words: impl FnOnce() -> (String, Option<Place>)) -> (String, Option<Place>) {
    if new { words() } else { (String::new(), None) }
}

/// The kernel of a launch that an instruction belongs to.
fn in_kernel(launch: &Arc<LaunchNote>, actor: Actor) -> Option<InKernel> {
    let code = actor.code?;
    let role = launch.roles.iter().find(|role| role.cores.contains(&actor.tile))?;
    let kernel = role.kernels.iter().find(|k| k.processor == code.core && k.text.contains(&code.pc))?;
    Some(InKernel { launch: Arc::clone(launch), kernel: kernel.clone() })
}
