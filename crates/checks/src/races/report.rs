//! Findings made of two accesses without order.

use super::niu::Does;
use super::shadow::{Access, Conflict};
use crate::catalogue::{Row, races as rows};
use crate::{Agent, Checks, Code, Finding, Place, Space, Target};
use std::collections::{BTreeMap, BTreeSet};
use tilework_abi::noc::NocXy;
use tilework_abi::tensix::Processor;

/// Whose part it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Owner {
    /// What a core does in order.
    Core(u8),
    /// Stores of a core to L1.
    Stores(u8),
    /// What an NIU does.
    Niu(u8, Does),
    /// The host.
    Host,
}

/// A part of an agent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct PartOf {
    pub tile: NocXy,
    pub owner: Owner,
}

/// The memory of a conflict.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Where {
    pub space: Space,
    pub tile: NocXy,
    pub bytes: u64,
}

/// One side of a race.
#[derive(Clone, Copy, Debug)]
struct Side {
    of: PartOf,
    access: Access,
    writes: bool,
}

/// Two pieces of code that race: of equal pairs only the first is reported.
type Pair = (&'static str, NocXy, u32, u32, u8, u8);

/// Findings until the end of the run, when it is known which words are polled.
#[derive(Debug, Default)]
pub(super) struct Reports {
    pairs: BTreeMap<Pair, (Finding, Option<Code>)>,
    /// Loads that were seen to poll.
    polls: BTreeSet<Code>,
}

impl Reports {
    /// An instruction polls: what it sees too early is no race, it loads again.
    pub(super) fn polls(&mut self, code: Code) {
        self.polls.insert(code);
    }

    /// Takes a race. `started`: the later side knows that the earlier one was begun; `flag`: the
    /// load of a word that may be a flag.
    pub(super) fn race(
        &mut self,
        parts: &[PartOf],
        conflict: &Conflict,
        later: Access,
        place: Where,
        started: bool,
        flag: Option<Code>,
    ) {
        let of = |access: &Access| parts.get(access.stamp.part as usize).copied();
        let (Some(first), Some(second)) = (of(&conflict.earlier), of(&later)) else { return };
        let first = Side { of: first, access: conflict.earlier, writes: conflict.earlier_writes };
        let second = Side { of: second, access: later, writes: conflict.later_writes };
        let row = row(&first, &second, started);
        let pair = (row.id, second.of.tile, second.access.pc, first.access.pc, later.by, first.access.by);
        if let Some((finding, _)) = self.pairs.get_mut(&pair) {
            finding.count += 1;
            return;
        }
        let target = |bytes| Target { space: place.space, tile: place.tile, addr: conflict.addr, bytes };
        let bytes = u32::try_from(place.bytes).unwrap_or(u32::MAX);
        let what = format!("{} and {} without order at {}", verb(&first), verb(&second), target(bytes));
        let finding = Finding::new(row, second.place(target(bytes)), what)
            .against(first.place(target(bytes)))
            .missing(missing(row, &first, &second));
        self.pairs.insert(pair, (finding, flag));
    }

    /// Hands over what is a race.
    pub(super) fn hand_over(&mut self, checks: &mut Checks) {
        let mut findings: Vec<Finding> = std::mem::take(&mut self.pairs)
            .into_values()
            .filter(|(_, flag)| flag.is_none_or(|code| !self.polls.contains(&code)))
            .map(|(finding, _)| finding)
            .collect();
        findings.sort_by_key(|finding| finding.place.cycle);
        findings.into_iter().for_each(|finding| checks.report(finding));
    }
}

impl Side {
    fn agent(&self) -> Agent {
        match self.of.owner {
            Owner::Core(core) | Owner::Stores(core) => {
                Processor::ALL.get(usize::from(core)).map_or(Agent::Host, |&core| Agent::Core(core))
            }
            Owner::Niu(noc, Does::Reads) => Agent::NocRead(noc),
            Owner::Niu(noc, _) => Agent::NocWrite(noc),
            Owner::Host => Agent::Host,
        }
    }

    fn place(&self, target: Target) -> Place {
        let core = Processor::ALL.get(usize::from(self.access.by)).copied();
        let code = core.map(|core| Code { core, pc: self.access.pc });
        Place { tile: self.of.tile, agent: self.agent(), code, cycle: self.access.at, target: Some(target) }
    }

    fn does(&self, does: Does) -> bool {
        matches!(self.of.owner, Owner::Niu(_, its) if its == does)
    }

    fn is_store(&self) -> bool {
        matches!(self.of.owner, Owner::Stores(_))
    }
}

/// Which finding it is. `started`: the later side knows that the earlier one was begun.
fn row(first: &Side, second: &Side, started: bool) -> &'static Row {
    let either = |f: &dyn Fn(&Side) -> bool| f(first) || f(second);
    if either(&|side| side.of.owner == Owner::Host) {
        return &rows::RACE_HOST;
    }
    let same_tile = first.of.tile == second.of.tile;
    if first.is_store() && started {
        return &rows::RACE_STORE;
    }
    if same_tile && either(&|side| side.does(Does::Reads)) {
        return &rows::RACE_NOC_READ;
    }
    if same_tile && either(&|side| side.does(Does::Sources)) {
        return &rows::RACE_NOC_SOURCE;
    }
    if first.does(Does::Writes) && (started || same_tile) {
        return &rows::RACE_NOC_WRITE;
    }
    if same_tile { &rows::RACE_CORES } else { &rows::RACE_TILES }
}

/// What a side does, for a sentence.
fn verb(side: &Side) -> String {
    match side.of.owner {
        Owner::Niu(noc, Does::Reads) if side.writes => format!("the data of a read of NoC {noc}"),
        Owner::Niu(noc, Does::Reads) => format!("a read of NoC {noc}"),
        Owner::Niu(noc, Does::Sources) => format!("the source of a write of NoC {noc}"),
        Owner::Niu(noc, Does::Writes) => format!("a write of NoC {noc}"),
        Owner::Host if side.writes => "a write of the host".to_owned(),
        Owner::Host => "a read of the host".to_owned(),
        _ if side.writes => "a store".to_owned(),
        _ => "a load".to_owned(),
    }
}

/// What would have ordered the two.
fn missing(row: &'static Row, first: &Side, second: &Side) -> String {
    let (earlier, later) = (verb(first), verb(second));
    let what = match row.id {
        id if id == rows::RACE_NOC_READ.id => "noc.read_barrier(), or wait_tag of its id",
        id if id == rows::RACE_NOC_SOURCE.id && second.does(Does::Sources) => "a wait for the store",
        id if id == rows::RACE_NOC_SOURCE.id => "noc.writes_flushed()",
        id if id == rows::RACE_NOC_WRITE.id => "noc.write_barrier()",
        id if id == rows::RACE_STORE.id => "a load of the last word that was stored (reg::publish)",
        id if id == rows::RACE_CORES.id => "a page of a circular buffer or a semaphore",
        id if id == rows::RACE_HOST.id => "the completion of the program",
        _ => "a semaphore",
    };
    format!("{earlier} may not be over: {what} between it and {later}")
}
