//! How far the program is interpreted beyond an access to the card.
//!
//! An instruction that is interpreted costs more than the processor's, and a trap as much as some
//! hundred of them. So it depends on how much lies between the accesses that follow a trap whether
//! to go on is worth it. For each place of traps, some runs go far and find that out; the others
//! end where it would have cost least.
//!
//! Costs are counted in instructions that the run has carried out before: of others, the bytes are
//! compared first, and neither they nor what is known of them are in the processor's caches. They
//! are counts, so that they are the same in every run of the program.

/// What an instruction costs that the run has not carried out before, beyond one.
pub(super) const NEW: u32 = 7;
/// Costs without an access to the card after which a run can end.
const LIMITS: [u32; 8] = [16, 32, 64, 128, 256, 512, 1024, 2048];
const STEPS: usize = LIMITS.len();
/// The limit of the first run from a place.
const FIRST: u32 = 256;
/// What a trap costs.
const TRAP: u64 = 400;
/// The first so many runs from a place explore, and one of so many after them, fewer and fewer
/// while nothing new is found.
const EARLY: u32 = 4;
const EXPLORE: u32 = 32;
const EXPLORE_LEAST: u32 = 1024;
/// Gaps and ends after which older ones count less.
const KEPT: u64 = 1 << 14;
/// Places of traps that are remembered.
const TRAPS: usize = 256;

/// Gaps of similar costs: how many, and what they cost together.
#[derive(Clone, Copy, Default)]
struct Gaps {
    count: u64,
    cost: u64,
}

impl Gaps {
    fn add(&mut self, cost: u32) {
        self.count += 1;
        self.cost += u64::from(cost);
    }
    fn halve(&mut self) {
        (self.count, self.cost) = (self.count / 2, self.cost / 2);
    }
}

/// A place where the program has trapped.
#[derive(Clone, Copy, Default)]
struct Trap {
    rip: u64,
    /// Runs from there.
    runs: u32,
    limit: u32,
    /// Runs between two that explore.
    interval: u32,
    /// Between two accesses, by the smallest limit that does not end a run there.
    gaps: [Gaps; STEPS],
    /// Behind the last access of a run; the last are those that no limit has passed.
    ends: [Gaps; STEPS + 1],
}

impl Trap {
    fn explores(&self) -> bool {
        self.runs <= EARLY || self.runs.is_multiple_of(self.interval)
    }

    /// The limit that would have cost least: zero carries out nothing but the instruction that
    /// traps.
    fn best(&self) -> u32 {
        let traps = |gaps: &[Gaps]| gaps.iter().map(|gaps| gaps.count).sum::<u64>();
        let mut best = (traps(&self.gaps) * TRAP, 0);
        let mut within = 0;
        for (step, limit) in LIMITS.into_iter().enumerate() {
            within += self.gaps[step].cost + self.ends[step].cost;
            let missed = traps(&self.gaps[step + 1..]);
            let ended = traps(&self.ends[step + 1..]);
            let cost = within + missed * (u64::from(limit) + TRAP) + ended * u64::from(limit);
            if cost < best.0 {
                best = (cost, limit);
            }
        }
        best.1
    }
}

/// The step of a gap of such a cost; [`STEPS`] if no limit passes it.
fn step(cost: u32) -> usize {
    LIMITS.into_iter().position(|limit| cost < limit).unwrap_or(STEPS)
}

/// What is known of the places of traps.
pub(super) struct Limits {
    traps: [Trap; TRAPS],
    /// The place from which the run explores; zero if it does not.
    explored: u64,
}

impl Limits {
    pub(super) fn new() -> Self {
        Self { traps: [Trap::default(); TRAPS], explored: 0 }
    }

    fn trap(&mut self, rip: u64) -> &mut Trap {
        &mut self.traps[(rip ^ rip >> 8) as usize % TRAPS]
    }

    /// A run begins with a trap at `rip`: gives what it may cost without an access until it ends.
    pub(super) fn begin(&mut self, rip: u64) -> u32 {
        self.explored = 0;
        let trap = self.trap(rip);
        if trap.rip != rip {
            *trap = Trap { rip, limit: FIRST, interval: EXPLORE, ..Trap::default() };
            return FIRST;
        }
        trap.runs = trap.runs.wrapping_add(1);
        if trap.explores() {
            self.explored = rip;
            return LIMITS[STEPS - 1];
        }
        trap.limit
    }

    /// The run has found an access behind a gap of such a cost.
    #[inline]
    pub(super) fn accessed(&mut self, cost: u32) {
        if self.explored != 0 {
            self.explored_gap(cost);
        }
    }

    fn explored_gap(&mut self, cost: u32) {
        let trap = self.trap(self.explored);
        if let Some(gaps) = trap.gaps.get_mut(step(cost)) {
            gaps.add(cost);
        }
    }

    /// The run has ended, and has cost so much since its last access.
    pub(super) fn end(&mut self, cost: u32) {
        if self.explored == 0 {
            return;
        }
        let trap = self.trap(self.explored);
        trap.ends[step(cost)].add(cost);
        let best = trap.best();
        if trap.runs > EARLY {
            trap.interval = if best == trap.limit { (2 * trap.interval).min(EXPLORE_LEAST) } else { EXPLORE };
        }
        trap.limit = best;
        let count = trap.gaps.iter().chain(&trap.ends).map(|gaps| gaps.count).sum::<u64>();
        if count > KEPT {
            trap.gaps.iter_mut().chain(&mut trap.ends).for_each(Gaps::halve);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: u64 = 0x40_1000;

    /// A run from `HERE`: accesses behind gaps of these costs as far as the limit goes, and then
    /// none. Gives the limit.
    fn run(limits: &mut Limits, gaps: &[u32]) -> u32 {
        let limit = limits.begin(HERE);
        for &gap in gaps {
            if gap >= limit {
                break;
            }
            limits.accessed(gap);
        }
        limits.end(limit);
        limit
    }

    /// The limit of the runs that do not explore, after `count` runs.
    fn settled(limits: &mut Limits, gaps: &[u32], count: usize) -> u32 {
        (0..count).map(|_| run(limits, gaps)).filter(|&limit| limit != LIMITS[STEPS - 1]).last().unwrap()
    }

    #[test]
    fn the_first_runs_from_a_place_go_far() {
        let mut limits = Limits::new();
        let farthest = LIMITS[STEPS - 1];
        let found: Vec<_> = (0..6).map(|_| run(&mut limits, &[])).collect();
        assert_eq!(found, [FIRST, farthest, farthest, farthest, farthest, 0]);
    }

    #[test]
    fn a_run_ends_where_it_would_have_cost_least() {
        let one = |gaps: &[u32]| settled(&mut Limits::new(), gaps, 20);
        // Nothing follows: only the instruction that traps is carried out.
        assert_eq!(one(&[]), 0);
        // What is near is passed, with the smallest limit that does so.
        assert_eq!(one(&[10; 50]), 16);
        assert_eq!(one(&[16; 50]), 32);
        assert_eq!(one(&[100; 50]), 128);
        assert_eq!(one(&[100, 10, 100, 10, 100, 10, 100, 10]), 128);
        // A trap costs less than one gap of this kind, and more than one of that.
        assert_eq!(one(&[450; 50]), 0);
        assert_eq!(one(&[350; 50]), 512);
        // One far access behind many near ones is not worth going on after each run.
        assert_eq!(one(&[10, 10, 10, 10, 1500]), 16);
    }

    #[test]
    fn a_place_that_explores_in_vain_does_so_less_often() {
        let mut limits = Limits::new();
        let far =
            |limits: &mut Limits, runs: usize| (0..runs).filter(|_| run(limits, &[]) == LIMITS[STEPS - 1]).count();
        far(&mut limits, 5);
        let (first, later) = (far(&mut limits, 1 << 12), far(&mut limits, 1 << 12));
        assert!(first > later && later == (1 << 12) / EXPLORE_LEAST as usize, "{first} {later}");
        // What is new is looked at more often again.
        let changed =
            |limits: &mut Limits| (0..1 << 12).filter(|_| run(limits, &[10; 50]) == LIMITS[STEPS - 1]).count();
        assert!(changed(&mut limits) > later);
        assert_eq!(settled(&mut limits, &[10; 50], 4), 16);
    }

    #[test]
    fn what_was_long_ago_counts_less() {
        let mut limits = Limits::new();
        // More gaps than are kept; then the program does something else from there.
        let gaps = [10; 10_000];
        assert_eq!(settled(&mut limits, &gaps, 20), 16);
        let total = |limits: &mut Limits| {
            let trap = limits.trap(HERE);
            trap.gaps.iter().chain(&trap.ends).map(|gaps| gaps.count).sum::<u64>()
        };
        assert!(total(&mut limits) <= KEPT);
        let explored = |limits: &mut Limits| {
            limits.trap(HERE).runs = 0;
            run(limits, &[]);
        };
        // An end costs 16 where each gap has saved 390: without that, half a million of them would
        // be needed.
        (0..100_000).for_each(|_| explored(&mut limits));
        assert_eq!(settled(&mut limits, &[], 50), 0);
    }

    #[test]
    fn places_do_not_learn_from_each_other() {
        let mut limits = Limits::new();
        assert_eq!(settled(&mut limits, &[10; 50], 20), 16);
        let other = HERE + 4;
        assert_eq!(limits.begin(other), FIRST);
        limits.end(FIRST);
        assert_eq!(limits.begin(HERE), 16);
        limits.end(16);
        // One that takes its place in the table begins anew, and so does the first then.
        let same = HERE ^ 0x101_0000;
        assert!(std::ptr::eq(limits.trap(HERE), limits.trap(same)));
        assert_eq!(limits.begin(same), FIRST);
        limits.end(FIRST);
        assert_eq!(limits.begin(HERE), FIRST);
    }
}
