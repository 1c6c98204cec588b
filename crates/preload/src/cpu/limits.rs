//! How far the program is interpreted beyond an access to the card.
//!
//! An instruction that is interpreted costs more than the processor's, and a trap as much as some
//! hundred of them. So it depends on how many instructions lie between the accesses that follow a
//! trap whether to go on is worth it. For each place of traps, some runs go far and count that; the
//! others end after the number of instructions that would have cost least. All of it is counts of
//! instructions, so that it is the same in every run of the program.

/// Instructions without an access to the card after which a run can end.
const LIMITS: [u32; 7] = [16, 32, 64, 128, 256, 512, 1024];
const STEPS: usize = LIMITS.len();
/// The limit of the first run from a place.
const FIRST: u32 = 64;
/// Instructions that take as long as a trap.
const TRAP: u64 = 400;
/// The first so many runs from a place explore; after them one of so many, and of more where no
/// limit is worth it.
const EARLY: u32 = 4;
const EXPLORE: u32 = 64;
const EXPLORE_FRUITLESS: u32 = 1024;
/// Gaps and ends after which older ones count less.
const KEPT: u64 = 1 << 14;
/// Places of traps that are remembered.
const TRAPS: usize = 256;

/// Gaps of similar lengths: how many, and their instructions.
#[derive(Clone, Copy, Default)]
struct Gaps {
    count: u64,
    instructions: u64,
}

impl Gaps {
    fn add(&mut self, instructions: u32) {
        self.count += 1;
        self.instructions += u64::from(instructions);
    }
    fn halve(&mut self) {
        (self.count, self.instructions) = (self.count / 2, self.instructions / 2);
    }
}

/// A place where the program has trapped.
#[derive(Clone, Copy, Default)]
struct Trap {
    rip: u64,
    /// Runs from there.
    runs: u32,
    limit: u32,
    /// Between two accesses, by the smallest limit that does not end a run there.
    gaps: [Gaps; STEPS],
    /// Behind the last access of a run; the last are those that no limit has passed.
    ends: [Gaps; STEPS + 1],
}

impl Trap {
    fn explores(&self) -> bool {
        let interval = if self.limit == 0 { EXPLORE_FRUITLESS } else { EXPLORE };
        self.runs <= EARLY || self.runs.is_multiple_of(interval)
    }

    /// The limit that would have cost least: zero carries out nothing but the instruction that
    /// traps.
    fn best(&self) -> u32 {
        let traps = |gaps: &[Gaps]| gaps.iter().map(|gaps| gaps.count).sum::<u64>();
        let mut best = (traps(&self.gaps) * TRAP, 0);
        let mut within = 0;
        for (step, limit) in LIMITS.into_iter().enumerate() {
            let limit_u64 = u64::from(limit);
            within += self.gaps[step].instructions + self.ends[step].instructions;
            let missed = traps(&self.gaps[step + 1..]);
            let ended = traps(&self.ends[step + 1..]);
            let cost = within + missed * (limit_u64 + TRAP) + ended * limit_u64;
            if cost < best.0 {
                best = (cost, limit);
            }
        }
        best.1
    }
}

/// The step of a gap of so many instructions; [`STEPS`] if no limit passes it.
fn step(instructions: u32) -> usize {
    LIMITS.into_iter().position(|limit| instructions < limit).unwrap_or(STEPS)
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

    /// A run begins with a trap at `rip`: gives the number of instructions without an access after
    /// which it ends.
    pub(super) fn begin(&mut self, rip: u64) -> u32 {
        self.explored = 0;
        let trap = self.trap(rip);
        if trap.rip != rip {
            *trap = Trap { rip, limit: FIRST, ..Trap::default() };
            return FIRST;
        }
        trap.runs = trap.runs.wrapping_add(1);
        if trap.explores() {
            self.explored = rip;
            return LIMITS[STEPS - 1];
        }
        trap.limit
    }

    /// The run has found an access after so many instructions without one.
    #[inline]
    pub(super) fn accessed(&mut self, instructions: u32) {
        if self.explored != 0 {
            self.explored_gap(instructions);
        }
    }

    fn explored_gap(&mut self, instructions: u32) {
        let trap = self.trap(self.explored);
        if let Some(gaps) = trap.gaps.get_mut(step(instructions)) {
            gaps.add(instructions);
        }
    }

    /// The run ends after so many instructions without an access.
    pub(super) fn end(&mut self, instructions: u32) {
        if self.explored == 0 {
            return;
        }
        let trap = self.trap(self.explored);
        trap.ends[step(instructions)].add(instructions);
        trap.limit = trap.best();
        let count = trap.gaps.iter().chain(&trap.ends).map(|gaps| gaps.count).sum::<u64>();
        if count > KEPT {
            trap.gaps.iter_mut().chain(&mut trap.ends).for_each(Gaps::halve);
        }
    }
}
