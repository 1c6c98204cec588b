//! Random schedules and random programs: the default profiles never fail, and the simulation never
//! does what the exploration says cannot happen.

#[path = "common/tiles.rs"]
mod tiles;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use tilework_pto::explore::Op;
use tilework_pto::{
    Arch, Cluster, Config, CoreId, DType, Direction, Fault, Pipe, Profile, RacePolicy, RingSpec, Scenario, Shape,
    explore,
};

const SHAPE: Shape = Shape { rows: 2, cols: 8, dtype: DType::F32 };

fn mine(number: usize, id: CoreId) -> tilework_pto::Tile {
    let tile = tiles::whole(SHAPE, number);
    if id.is_vector() { tiles::half(&tile, id) } else { tile }
}

/// What a program does to its rings, in the simulation. `pauses` are cycles before each
/// operation, cyclically.
fn simulate(arch: Arch, seed: u64, spec: &RingSpec, programs: &[Vec<Op>; 3], pauses: &[u64]) -> Result<bool, Fault> {
    let config = Config { jitter_percent: 100, ..Config::new(arch, seed) };
    let mut cluster = Cluster::new(Config { races: RacePolicy::Stop, ..config });
    let ring = cluster.ring(spec.clone())?;
    for id in CoreId::ALL {
        let (ring, program, pauses) = (ring.clone(), programs[id.index()].clone(), pauses.to_vec());
        cluster.spawn(id, async move |core| {
            let mut end = core.open(&ring).await?;
            let (mut sent, mut got) = (0, 0);
            for (op, pause) in program.into_iter().zip(pauses.iter().skip(id.index()).cycle()) {
                core.work(Pipe::S, *pause, "pause").await;
                match op {
                    Op::Open => {}
                    Op::Push(_) => {
                        end.push(&mine(sent, id)).await?;
                        sent += 1;
                    }
                    Op::Pop(_) => {
                        assert_eq!(end.pop_tile().await?, mine(got, id));
                        got += 1;
                    }
                    Op::Free(_) => end.free().await?,
                    Op::Close => return end.close().await,
                }
            }
            Ok(())
        });
    }
    Ok(cluster.run()?.leftovers.is_empty())
}

fn held(program: &mut Vec<Op>, choices: &[bool], tiles: usize, most_held: usize) {
    // Pops and frees in an order that the choices make, with no more held than allowed.
    let (mut popped, mut freed, mut choice) = (0, 0, choices.iter().cycle());
    while freed < tiles {
        let pop = popped < tiles && (popped == freed || (popped - freed < most_held && *choice.next().unwrap()));
        program.push(if pop { Op::Pop(0) } else { Op::Free(0) });
        if pop { popped += 1 } else { freed += 1 }
    }
}

fn archs() -> impl Strategy<Value = Arch> {
    select(Arch::ALL.to_vec())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_schedule_of_the_default_profiles_is_right(
        arch in archs(), c2v: bool, counting: bool, slots in 1..=15_u32, tiles in 1..80_usize, seed: u64,
        choices in vec(any::<bool>(), 1..20), pauses in vec(0..3000_u64, 3..10),
    ) {
        let profile = if counting { Profile::Counting } else { Profile::PerTagFlags };
        let slots = if counting { slots } else { slots % 8 + 1 };
        let direction = if c2v { Direction::C2V } else { Direction::V2C };
        let spec = RingSpec::new("r", direction, SHAPE).slots(slots).profile(profile).local_slots(slots);
        let (mut send, mut receive) = (vec![Op::Push(0); tiles], Vec::new());
        held(&mut receive, &choices, tiles, slots as usize);
        send.push(Op::Close);
        receive.push(Op::Close);
        let programs = CoreId::ALL.map(|id| if id.is_vector() == c2v { receive.clone() } else { send.clone() });
        prop_assert!(simulate(arch, seed, &spec, &programs, &pauses).unwrap(), "nothing is left");
    }

    /// Programs of pushes, pops and frees on a ring in both directions, most of which
    /// deadlock somewhere.
    #[test]
    fn the_simulation_does_only_what_the_exploration_has_seen(
        arch in archs(), profile in select(vec![Profile::Counting, Profile::PerTagFlags, Profile::SparseCredits]),
        slots in 1..=2_u32, seeds in vec(any::<u64>(), 5),
        cube in vec(0..3_u8, 1..7), vector in vec(0..3_u8, 1..7), pauses in vec(0..2000_u64, 3..6),
    ) {
        let spec = RingSpec::new("r", Direction::Both, SHAPE).slots(slots).profile(profile).local_slots(7);
        let program = |codes: &[u8]| {
            let mut held = 0;
            let mut ops = vec![Op::Open];
            for code in codes {
                match code {
                    0 => ops.push(Op::Push(0)),
                    1 => { held += 1; ops.push(Op::Pop(0)) }
                    _ if held > 0 => { held -= 1; ops.push(Op::Free(0)) }
                    _ => {}
                }
                // Where a pop frees, a free would be a second one.
                if spec.pop_frees(arch) { held = 0 }
            }
            ops.push(Op::Close);
            ops
        };
        let programs = [program(&cube), program(&vector), program(&vector)];
        let scenario = Scenario { arch, rings: vec![spec.clone()], programs: programs.clone() };
        let explored = explore(&scenario, 2_000_000).unwrap();
        prop_assert!(explored.complete);
        for seed in seeds {
            match simulate(arch, seed, &spec, &programs, &pauses) {
                Ok(clean) => {
                    prop_assert!(explored.ends > 0);
                    prop_assert!(clean || explored.leftover.is_some());
                }
                Err(Fault::Deadlock(_)) => prop_assert!(explored.deadlock.is_some()),
                Err(Fault::Race(_)) => prop_assert!(explored.race.is_some()),
                Err(fault) => prop_assert!(explored.fault.is_some(), "{fault}"),
            }
        }
    }
}
