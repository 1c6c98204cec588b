//! From what an analyser has seen to a finding: who did it, and for which kernel.

use crate::catalogue::Row;
use crate::finding::{Agent, Code, Finding, Place, Target};
use crate::{Checks, Level};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tilework_abi::noc::NocXy;
use tilework_abi::tensix::Processor;

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

/// What findings are made equal by: the kind and who did it.
type Key = (&'static str, NocXy, Agent, Option<Code>);

/// Findings as they are made.
#[derive(Clone, Debug)]
pub(crate) struct Reports {
    checks: Arc<Mutex<Checks>>,
    /// The other sides of what was reported. Asked by key, never walked.
    known: HashMap<Key, Option<Place>>,
}

impl Reports {
    pub(crate) fn new(checks: Arc<Mutex<Checks>>) -> Self {
        Self { checks, known: HashMap::new() }
    }

    /// Where findings go.
    pub(crate) fn checks(&self) -> Arc<Mutex<Checks>> {
        Arc::clone(&self.checks)
    }

    /// Findings go there from now on.
    pub(crate) fn set_checks(&mut self, checks: Arc<Mutex<Checks>>) {
        self.checks = checks;
    }

    /// Whether findings of this kind are wanted.
    pub(crate) fn wants(&self, check: &'static Row) -> bool {
        self.checks.lock().is_ok_and(|checks| checks.wants(check))
    }

    /// Whether a finding may end the run.
    pub(crate) fn judges(&self) -> bool {
        self.checks.lock().is_ok_and(|checks| checks.policy().level() == Level::Error)
    }

    /// Whether a finding ends the run.
    pub(crate) fn ends(&self) -> bool {
        self.checks.lock().is_ok_and(|checks| checks.ends())
    }

    /// Reports something that `actor` did to `target`. The words are only made for the first of
    /// equal findings; the others are counted.
    pub(crate) fn report(
        &mut self,
        check: &'static Row,
        actor: Actor,
        target: Option<Target>,
        words: impl FnOnce() -> (String, Option<Place>),
    ) {
        let mut checks = self.checks.lock().unwrap_or_else(PoisonError::into_inner);
        if !checks.wants(check) {
            return;
        }
        let mut what = String::new();
        let other = self.known.entry((check.id, actor.tile, actor.agent, actor.code)).or_insert_with(|| {
            let (words, other) = words();
            what = words;
            other
        });
        let mut finding = Finding::new(check, actor.place(target), what);
        // The other side of a repeated finding is that of the first one.
        finding.other = *other;
        checks.report(finding);
    }
}
