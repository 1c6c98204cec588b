//! Findings made of two accesses without order.

use super::niu::Does;
use super::shadow::{Access, Conflict};
use super::units::Unit;
use crate::catalogue::{Row, races as rows};
use crate::{Agent, Checks, Code, Finding, Place, Space, Target};
use std::collections::{BTreeMap, BTreeSet};
use tilework_abi::address_map::Region;
use tilework_abi::noc::NocXy;
use tilework_abi::tensix::Processor;

/// Whose part it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Owner {
    /// What a core does in order.
    Core(u8),
    /// Stores of a core to L1.
    Stores(u8),
    /// What a thread of the coprocessor does itself.
    Thread(u8),
    /// What a unit of the coprocessor does.
    Unit(Unit),
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

/// Findings that are told as they are made, but for loads of what may be flags: of these the end of
/// the run knows whether they poll.
#[derive(Clone, Debug, Default)]
pub(super) struct Reports {
    pairs: BTreeMap<Pair, State>,
    /// What is to be told.
    ready: Vec<Finding>,
    /// Loads that were seen to poll.
    polls: BTreeSet<Code>,
}

/// What has become of a finding.
#[derive(Clone, Debug)]
enum State {
    /// It waits for the end of the run, because of this load.
    Waits(Box<Finding>, Code),
    /// It was told, and has been seen so often since.
    Told(Box<Finding>, u64),
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
        let bytes = u32::try_from(place.bytes).unwrap_or(u32::MAX);
        let target = Target { space: place.space, tile: place.tile, addr: conflict.addr, bytes };
        let row = row(&first, &second, started, target);
        let pair = (row.id, second.of.tile, second.access.pc, first.access.pc, later.by, first.access.by);
        match self.pairs.get_mut(&pair) {
            Some(State::Waits(finding, _)) => return finding.count += 1,
            Some(State::Told(_, more)) => return *more += 1,
            None => {}
        }
        let what = format!("{} and {} without order at {target}", verb(&first), verb(&second));
        let finding = Finding::new(row, second.place(target), what)
            .against(first.place(target))
            .missing(missing(row, &first, &second));
        let finding = Box::new(finding);
        let state = match flag {
            Some(code) => State::Waits(finding, code),
            None => {
                self.ready.push((*finding).clone());
                State::Told(finding, 0)
            }
        };
        self.pairs.insert(pair, state);
    }

    /// Hands over what has been found since the last call and is certain.
    pub(super) fn tell(&mut self, checks: &mut Checks) {
        self.ready.sort_by_key(|finding| finding.place.cycle);
        self.ready.drain(..).for_each(|finding| checks.report(finding));
    }

    /// Whether there is something to tell.
    pub(super) fn is_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Hands over the rest at the end of a run, and how often was found what has been told.
    pub(super) fn hand_over(&mut self, checks: &mut Checks) {
        self.tell(checks);
        let mut findings: Vec<Finding> = Vec::new();
        for state in std::mem::take(&mut self.pairs).into_values() {
            match state {
                State::Waits(_, code) if self.polls.contains(&code) => {}
                State::Waits(finding, _) => findings.push(*finding),
                State::Told(_, 0) => {}
                State::Told(finding, more) => checks.report(Finding { count: more, ..*finding }),
            }
        }
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
            Owner::Thread(thread) => Agent::Thread(thread),
            Owner::Unit(Unit::Unpacker(number)) => Agent::Unpacker(number),
            Owner::Unit(Unit::Packer) => Agent::Packer(0),
            // By the core that pushed it.
            Owner::Unit(_) => Agent::Thread(self.access.by.saturating_sub(2)),
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
fn row(first: &Side, second: &Side, started: bool, place: Target) -> &'static Row {
    let either = |f: &dyn Fn(&Side) -> bool| f(first) || f(second);
    if either(&|side| side.of.owner == Owner::Host) {
        return &rows::RACE_HOST;
    }
    if place.space == Space::Registers && !is_dst(place.addr) {
        return &rows::RACE_REGISTERS;
    }
    if either(&|side| matches!(side.of.owner, Owner::Unit(_) | Owner::Thread(_))) {
        return &rows::RACE_COPROCESSOR;
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
        Owner::Unit(unit) => {
            let does = if side.writes { "a write" } else { "a read" };
            match unit {
                Unit::Unpacker(number) => format!("{does} of unpacker {number}"),
                Unit::Packer => format!("{does} of the packer"),
                Unit::Scalar => format!("{does} of the scalar unit"),
                Unit::Matrix => format!("{does} of the matrix unit"),
                Unit::Vector => format!("{does} of the vector unit"),
                Unit::Config => format!("{does} of the configuration unit"),
                Unit::Mover => format!("{does} of the mover"),
            }
        }
        Owner::Thread(thread) => format!("a change by Tensix thread T{thread}"),
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
        // A core that still uses the bytes that the read is to fill.
        id if id == rows::RACE_NOC_READ.id && second.does(Does::Reads) && !is_of_niu(first) => {
            "a page of a circular buffer (reserve_back) or a semaphore"
        }
        id if id == rows::RACE_NOC_READ.id => "noc.read_barrier(), or wait_tag of its id",
        id if id == rows::RACE_NOC_SOURCE.id && second.does(Does::Sources) => "a wait for the store",
        id if id == rows::RACE_NOC_SOURCE.id => "noc.writes_flushed()",
        id if id == rows::RACE_NOC_WRITE.id => "noc.write_barrier()",
        id if id == rows::RACE_STORE.id => "a load of the last word that was stored (reg::publish)",
        id if id == rows::RACE_CORES.id => "a page of a circular buffer or a semaphore",
        id if id == rows::RACE_COPROCESSOR.id || id == rows::RACE_REGISTERS.id => match first.of.owner {
            Owner::Unit(Unit::Unpacker(_)) => "a STALLWAIT until the unpackers are done, and what tells of it",
            Owner::Unit(Unit::Packer) => "a STALLWAIT until the packer is done, and what tells of it",
            Owner::Unit(Unit::Matrix | Unit::Vector) => "a STALLWAIT until the unit is done, and a semaphore",
            Owner::Unit(_) => "a STALLWAIT until the unit is done, and what tells of it",
            _ => "a page of a circular buffer, a semaphore or a mailbox",
        },
        id if id == rows::RACE_HOST.id => "the completion of the program",
        _ => "a semaphore",
    };
    format!("{earlier} may not be over: {what} between it and {later}")
}

fn is_of_niu(side: &Side) -> bool {
    matches!(side.of.owner, Owner::Niu(..))
}

/// Whether a register is a part of Dst.
fn is_dst(addr: u64) -> bool {
    u32::try_from(addr).is_ok_and(|addr| matches!(Region::decode(addr), Region::Dst { .. }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn side(owner: Owner, writes: bool) -> Side {
        Side { of: PartOf { tile: NocXy::new(1, 2), owner }, access: Access::default(), writes }
    }

    #[test]
    fn what_would_have_ordered_a_read_with_what_uses_its_bytes() {
        let (load, data) = (side(Owner::Core(1), false), side(Owner::Niu(0, Does::Reads), true));
        let late = missing(&rows::RACE_NOC_READ, &data, &load);
        assert!(late.contains("noc.read_barrier(), or wait_tag of its id between it and a load"), "{late}");
        let early = missing(&rows::RACE_NOC_READ, &load, &data);
        assert!(early.starts_with("a load may not be over: a page of a circular buffer (reserve_back)"), "{early}");
    }
}
