//! Random programs for the coprocessor: a TRISC pushes instructions and writes configuration; L1,
//! Dst, the registers of the vector unit and the general-purpose registers are compared.
//!
//! A case belongs to one unit (`matrix.rs`, `vector.rs`, `unpack.rs`, `pack.rs`, `scalar.rs`),
//! which makes its groups of steps. Each group sets up what it needs and leaves nothing behind that
//! another group relies on, so that any group can be left out. One thread does everything, and
//! waits for the coprocessor before it changes configuration: streams of several threads would
//! depend on time, unless semaphores order them (`threads.rs`).
//!
//! Nothing is generated that the documents call undefined. What they define but ttsim refuses would
//! end the comparison, so only a few cases, the broad ones, have it: they show that ours does not
//! refuse it.

mod dump;
mod expand;
mod matrix;
mod operands;
mod pack;
mod scalar;
mod setup;
mod step;
mod threads;
mod unpack;
mod vector;

use tilework_abi::tensix::Processor;

use super::super::rng::Rng;
use super::super::script::Op;
use super::{Kind, code, fill, hold, kept, look, release, tile, wait};
use step::Step;

/// Where nobody looks.
const SCRATCH: u32 = 0x1_E000;
/// The tables of steps: a part for each thread, of which the first does the most.
const TABLE: u32 = 0x2_0000;
const TABLES: [u32; 3] = [TABLE, 0x6_0000, 0x7_0000];
/// Input of the unpackers: a part for each group.
const INPUT: u32 = 0x8_0000;
const INPUT_BYTES: u32 = 0x4000;
/// Output of the packers: a part for each group.
const OUTPUT: u32 = 0x10_0000;
const OUTPUT_BYTES: u32 = 0x2000;
/// The most groups of a case: the inputs end where the outputs start.
const GROUPS: u32 = (OUTPUT - INPUT) / INPUT_BYTES;

/// A few steps that belong together.
#[derive(Default)]
struct Group {
    /// What the rest needs.
    steps: Vec<Step>,
    /// Steps each of which can be left out.
    each: Vec<Vec<Step>>,
    /// What ends the group.
    end: Vec<Step>,
    /// L1 before the start.
    data: Vec<(u32, Vec<u8>)>,
    /// L1 to compare.
    outputs: Vec<(u32, u32)>,
}

/// A random case.
pub(crate) struct Case {
    tile: (u8, u8),
    core: Processor,
    /// What other TRISCs do meanwhile, and whether a step can be left out.
    others: Vec<(Processor, Vec<(Step, bool)>)>,
    /// What comes before all groups.
    start: Group,
    groups: Vec<Group>,
    /// Registers that are compared as well as Dst.
    dumps: dump::Dumps,
}

impl Case {
    /// A case of a unit.
    pub(crate) fn new(rng: &mut Rng, kind: Kind) -> Self {
        // Unpackers take their counters of x and y from thread 0 (`AddrCntContextId` of UNPACR).
        let cores = [Processor::Trisc0, Processor::Trisc1, Processor::Trisc2];
        let (tile, core) = (tile(rng), if kind == Kind::Scalar { rng.pick(&cores) } else { Processor::Trisc0 });
        let mut others = Vec::new();
        let (start, groups, dumps) = match kind {
            Kind::Threads => {
                let (start, steps) = threads::group(rng);
                others.extend(cores[1..].iter().copied().zip(steps));
                (start, Vec::new(), dump::Dumps::default())
            }
            Kind::Matrix => matrix::groups(rng),
            Kind::Unpack => unpack::groups(rng),
            Kind::Pack => pack::groups(rng),
            Kind::Vector => vector::groups(rng),
            _ => scalar::groups(rng),
        };
        Self { tile, core, others, start, groups, dumps }
    }

    /// How many parts: the groups, in each what can be left out, and steps of other TRISCs.
    pub(crate) fn parts(&self) -> usize {
        let others = self.others.iter().flat_map(|(_, steps)| steps);
        self.parts_of_groups() + others.filter(|(_, can_go)| *can_go).count()
    }

    fn parts_of_groups(&self) -> usize {
        self.groups.iter().map(Group::parts).sum()
    }

    /// The kept steps of other TRISCs.
    fn kept_of_others(&self, keep: &[bool]) -> Vec<(Processor, Vec<Step>)> {
        let mut keep = keep.iter().skip(self.parts_of_groups());
        let mut stays = |can_go: bool| !can_go || keep.next().is_some_and(|keep| *keep);
        let steps = |steps: &[(Step, bool)], stays: &mut dyn FnMut(bool) -> bool| {
            steps.iter().filter(|(_, can_go)| stays(*can_go)).map(|(step, _)| *step).collect()
        };
        self.others.iter().map(|(core, all)| (*core, steps(all, &mut stays))).collect()
    }

    /// The steps of the kept parts, by group.
    fn kept<'a>(&'a self, mut keep: &'a [bool]) -> impl Iterator<Item = (&'a Group, Vec<Step>)> {
        std::iter::once(&self.start).map(|start| (start, start.steps.clone())).chain(self.groups.iter().filter_map(
            move |group| {
                let (own, rest) = keep.split_at(group.parts().min(keep.len()));
                keep = rest;
                let (whole, each) = own.split_first()?;
                whole.then(|| (group, group.kept(each)))
            },
        ))
    }

    /// Loads table and data, runs it, and reads what is to be compared.
    pub(crate) fn script(&self, keep: &[bool]) -> Vec<Op> {
        let groups = || self.kept(keep).map(|(group, _)| group);
        let steps = self.kept(keep).flat_map(|(_, steps)| steps).chain(self.dumps.steps());
        let mut ops = hold(self.tile);
        let mut table = |core, at, steps: &mut dyn Iterator<Item = Step>| {
            ops.push(fill(self.tile, code(core), step::program(core, at).bytes()));
            ops.push(fill(self.tile, at, step::table(steps)));
        };
        table(self.core, TABLE, &mut { steps });
        for ((core, steps), at) in self.kept_of_others(keep).into_iter().zip(&TABLES[1..]) {
            table(core, *at, &mut steps.into_iter());
        }
        ops.extend(groups().flat_map(|group| &group.data).map(|(at, data)| fill(self.tile, *at, data.clone())));
        let cores: Vec<Processor> = std::iter::once(self.core).chain(self.others.iter().map(|other| other.0)).collect();
        ops.push(release(self.tile, &cores));
        ops.extend(cores.iter().map(|core| wait(self.tile, *core)));
        ops.extend(groups().flat_map(|group| &group.outputs).map(|&(at, len)| look(self.tile, at, len)));
        ops.extend(self.dumps.looks().map(|(at, len)| look(self.tile, at, len)));
        ops
    }

    /// The kept steps.
    pub(crate) fn listing(&self, keep: &[bool]) -> Vec<String> {
        let mut out = vec![format!("{} of tile {:?}", self.core, self.tile)];
        for (_, steps) in self.kept(keep) {
            out.push("group:".to_owned());
            out.extend(steps.into_iter().map(Step::text));
        }
        for (core, steps) in self.kept_of_others(keep) {
            out.push(format!("{core}:"));
            out.extend(steps.into_iter().map(Step::text));
        }
        out
    }
}

impl Group {
    fn parts(&self) -> usize {
        1 + self.each.len()
    }

    /// All steps, of which some are left out.
    fn kept(&self, each: &[bool]) -> Vec<Step> {
        let each = kept(&self.each, each).flatten();
        self.steps.iter().chain(each).chain(&self.end).copied().collect()
    }
}

/// Whether a case is broad: it has what the documents define but the other library has not built.
fn is_broad(rng: &mut Rng) -> bool {
    rng.one_in(12)
}

/// The input of group `index`.
const fn input(index: u32) -> u32 {
    INPUT + index * INPUT_BYTES
}

/// The output of group `index`.
const fn output(index: u32) -> u32 {
    OUTPUT + index * OUTPUT_BYTES
}
