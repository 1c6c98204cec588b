//! The findings of a run as they are made: equal ones once, and not more than a bounded number.

use crate::catalogue::Row;
use crate::finding::{Agent, Code, Finding, Place};
use crate::policy::Policy;
use std::collections::BTreeMap;
use tilework_abi::noc::NocXy;

/// Different findings that are kept at most. One wrong line makes one for each tile that executes
/// it; more than this is no longer read by anybody, and is counted.
pub const MOST: usize = 4096;

/// What makes two findings equal: the same kind, at the same instruction of the same tile, against
/// the same instruction. Cycles, addresses and words differ from one iteration of a loop to the
/// next.
type Key = (&'static str, NocXy, Agent, Option<Code>, Option<(Agent, Option<Code>)>);

/// Collects findings under a policy.
#[derive(Clone, Debug)]
pub struct Checks {
    policy: Policy,
    found: Vec<Finding>,
    known: BTreeMap<Key, usize>,
    left_out: u64,
    ends: bool,
}

impl Checks {
    /// No findings yet.
    pub fn new(policy: Policy) -> Self {
        Self { policy, found: Vec::new(), known: BTreeMap::new(), left_out: 0, ends: false }
    }

    /// What is wanted.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Whether findings of this kind are wanted; one that is not need not be made.
    pub fn wants(&self, check: &'static Row) -> bool {
        self.policy.wants(check)
    }

    /// Takes a finding that [`Checks::wants`]; others are dropped. The first of equal ones is kept
    /// with its cycle and words, the others are counted.
    pub fn report(&mut self, finding: Finding) {
        if !self.wants(finding.check) {
            return;
        }
        self.ends |= self.policy.ends_at_once(finding.check);
        let who = |place: &Place| (place.agent, place.code);
        let (agent, code) = who(&finding.place);
        let key = (finding.check.id, finding.place.tile, agent, code, finding.other.as_ref().map(who));
        match self.known.get(&key) {
            Some(&at) => self.found[at].count += finding.count,
            None if self.found.len() == MOST => self.left_out += finding.count,
            None => {
                self.known.insert(key, self.found.len());
                self.found.push(finding);
            }
        }
    }

    /// The findings in the order in which each was first seen. A finding keeps its position; only
    /// its count changes.
    pub fn findings(&self) -> &[Finding] {
        &self.found
    }

    /// Whether the run is to be ended: something was found that is an error wherever it is.
    pub fn ends(&self) -> bool {
        self.ends
    }

    /// How often something was found when there were [`MOST`] others.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::{memory, races};
    use crate::policy::Word;
    use tilework_abi::tensix::Processor;

    fn at(x: u8, pc: u32, cycle: u64) -> Place {
        let core = Processor::Brisc;
        let code = Some(Code { core, pc });
        Place { tile: NocXy::new(x, 2), agent: Agent::Core(core), code, cycle, target: None }
    }

    #[test]
    fn equal_findings_are_one_with_a_count_and_the_first_cycle() {
        let mut checks = Checks::new(Policy::default());
        for (x, pc, cycle) in [(1, 4, 10), (1, 4, 20), (2, 4, 30), (1, 8, 40), (1, 4, 50)] {
            checks.report(Finding::new(&memory::L1_NULL, at(x, pc, cycle), format!("at {cycle}")));
        }
        let seen: Vec<_> = checks.findings().iter().map(|f| (f.place.cycle, f.count, f.what.as_str())).collect();
        assert_eq!(seen, [(10, 3, "at 10"), (30, 1, "at 30"), (40, 1, "at 40")]);
        checks.report(Finding::new(&memory::L1_NULL, at(1, 4, 60), "").against(at(1, 12, 0)));
        assert_eq!(checks.findings().len(), 4, "another side is another finding");
    }

    #[test]
    fn findings_are_bounded_and_the_rest_is_counted() {
        let mut checks = Checks::new(Policy::default());
        for pc in 0..5000 {
            checks.report(Finding::new(&memory::L1_NULL, at(1, pc, 0), ""));
        }
        checks.report(Finding::new(&memory::L1_NULL, at(1, 0, 0), ""));
        assert_eq!((checks.findings().len(), checks.left_out()), (MOST, 5000 - MOST as u64));
        assert_eq!(checks.findings()[0].count, 2, "known ones are still counted");
    }

    #[test]
    fn the_first_error_ends_the_run_unless_it_may_be_allowed_where_it_is() {
        let ends = |allow: &[&str], check| {
            let allow = allow.iter().map(|text| crate::policy::Allow::parse(text).unwrap());
            let words = [Word::Level(crate::policy::Level::Error), Word::Suspicious];
            let mut checks = Checks::new(Policy::new(&words, allow.collect()).unwrap());
            checks.report(Finding::new(check, at(1, 0, 0), ""));
            checks.ends()
        };
        assert!(ends(&[], &memory::L1_NULL) && ends(&["l1-text@a.rs"], &memory::L1_NULL));
        assert!(!ends(&["l1-null"], &memory::L1_NULL) && !ends(&["l1-null@a.rs"], &memory::L1_NULL));
        assert!(!ends(&[], &memory::LOCAL_UNWRITTEN_READ), "it may be right");
        let mut checks = Checks::new(Policy::default());
        checks.report(Finding::new(&memory::L1_NULL, at(1, 0, 0), ""));
        assert!(!checks.ends());
    }

    #[test]
    fn what_is_not_wanted_is_not_kept() {
        let mut checks = Checks::new(Policy::default());
        let race = || Finding::new(&races::RACE_CORES, at(1, 0, 0), "");
        assert!(!checks.wants(&races::RACE_CORES));
        checks.report(race());
        assert!(checks.findings().is_empty());
        let mut checks = Checks::new(Policy::new(&[Word::Races], Vec::new()).unwrap());
        checks.report(race());
        assert_eq!(checks.findings().len(), 1);
    }
}
