//! Every interleaving of small programs: the default profile has none that fails, the headers'
//! profile has those listed in docs/pto.md.

use tilework_pto::deadlock::WaitFor;
use tilework_pto::explore::{Finding, Found, Op};
use tilework_pto::{
    Arch, CoreId, DType, Direction, Explored, Fault, Profile, RingSpec, Scenario, Shape, Split, explore,
};

const BOUND: usize = 5_000_000;
const DENSE: [Profile; 2] = [Profile::Counting, Profile::PerTagFlags];

fn spec(direction: Direction, slots: u32, profile: Profile) -> RingSpec {
    RingSpec::new("ring", direction, Shape::new(2, 8, DType::F32)).slots(slots).profile(profile)
}

fn run(scenario: &Scenario) -> Explored {
    explore(scenario, BOUND).unwrap()
}

fn one_way(arch: Arch, direction: Direction, slots: u32, profile: Profile, tiles: usize) -> Explored {
    run(&Scenario::one_way(arch, spec(direction, slots, profile), tiles))
}

fn race(found: &Option<Found>) -> &tilework_pto::Race {
    match &found.as_ref().expect("a race").first {
        Finding::Race(race) => race,
        other => panic!("{other}"),
    }
}

fn directions(arch: Arch) -> Vec<Direction> {
    let all = [Direction::C2V, Direction::V2C, Direction::C2vGm, Direction::V2cGm];
    all.into_iter().filter(|direction| direction.exists_on(arch)).collect()
}

#[test]
fn two_slots_and_six_tiles_in_every_order() {
    for arch in Arch::ALL {
        for direction in directions(arch) {
            for profile in DENSE {
                let explored = one_way(arch, direction, 2, profile, 6);
                println!(
                    "{arch} {direction:?} {profile:?}: {} states, {} steps",
                    explored.states, explored.transitions
                );
                assert!(explored.is_clean(), "{arch} {direction:?} {profile:?}: {:?}", explored.found().next());
                assert_eq!(explored.ends, 1, "all orders end in the same state");
            }
        }
    }
}

#[test]
fn one_way_is_clean_for_up_to_four_slots_around_each_wrap() {
    for arch in Arch::ALL {
        for direction in directions(arch) {
            for profile in DENSE {
                for slots in 1..=4 {
                    for tiles in [slots, 2 * slots + 1, 3 * slots] {
                        let explored = one_way(arch, direction, slots, profile, tiles as usize);
                        let case = format!("{arch} {direction:?} {profile:?} {slots} slots {tiles} tiles");
                        assert!(explored.is_clean(), "{case}: {:?}", explored.found().next());
                    }
                }
            }
        }
    }
}

/// The seed's eight slots, over two wraps.
#[test]
fn eight_slots_are_clean() {
    for arch in Arch::ALL {
        for direction in [Direction::C2V, Direction::V2C] {
            let explored = one_way(arch, direction, 8, Profile::Counting, 17);
            println!("{arch} {direction:?}, 8 slots, 17 tiles: {} states", explored.states);
            assert!(explored.is_clean(), "{arch} {direction:?}: {:?}", explored.found().next());
        }
    }
}

#[test]
fn rings_without_split_and_control_rings_are_clean() {
    for arch in Arch::ALL {
        for profile in DENSE {
            for direction in [Direction::C2V, Direction::V2C] {
                let ring = spec(direction, 3, profile).split(Split::None);
                let explored = run(&Scenario::one_way(arch, ring, 7));
                assert!(explored.is_clean(), "{arch} {direction:?} {profile:?}: {:?}", explored.found().next());
            }
            let control = RingSpec::new("control", Direction::V2cCtrl, Shape::new(1, 1, DType::I32)).slots(2);
            let explored = run(&Scenario::one_way(arch, control.profile(profile), 6));
            assert!(explored.is_clean(), "{arch} control {profile:?}: {:?}", explored.found().next());
        }
    }
}

#[test]
fn push_push_pop_pop_passes_with_as_many_tiles_outstanding_as_slots() {
    for arch in Arch::ALL {
        for profile in DENSE {
            for slots in 1..=4_u32 {
                let ring = spec(Direction::Both, slots, profile);
                let explored = run(&Scenario::push_push_pop_pop(arch, ring, slots as usize, 2));
                println!("{arch} {profile:?} {slots} slots, both: {} states", explored.states);
                assert!(explored.is_clean(), "{arch} {profile:?} {slots}: {:?}", explored.found().next());
            }
        }
    }
}

#[test]
fn push_push_pop_pop_with_one_tile_more_is_a_deadlock_with_its_cycle() {
    for arch in Arch::ALL {
        for profile in DENSE {
            for slots in 1..=4_u32 {
                let ring = spec(Direction::Both, slots, profile);
                let explored = run(&Scenario::push_push_pop_pop(arch, ring, slots as usize + 1, 1));
                assert_eq!(
                    (explored.ends, explored.race, explored.fault),
                    (0, None, None),
                    "none ends, nothing else fails"
                );
                let Finding::Deadlock(deadlock) = explored.deadlock.unwrap().first else { panic!() };
                assert_eq!(deadlock.circle[0], CoreId::Cube);
                assert!(deadlock.circle.len() == 2, "{deadlock}");
                for wait in deadlock.chain() {
                    assert_eq!(wait.what, WaitFor::Free);
                    assert_eq!(wait.tile.as_ref().unwrap().1, slots, "the first tile past the slots: {deadlock}");
                }
            }
        }
    }
}

#[test]
fn without_tfree_the_producer_stops_after_as_many_tiles_as_slots() {
    for arch in Arch::ALL {
        for direction in [Direction::C2V, Direction::V2C] {
            for slots in 1..=4 {
                let ring = spec(direction, slots, Profile::Counting);
                let enough = run(&Scenario::never_freed(arch, ring.clone(), slots as usize));
                assert_eq!((enough.ends > 0, enough.deadlock), (true, None));
                let explored = run(&Scenario::never_freed(arch, ring, slots as usize + 1));
                assert_eq!((explored.ends, explored.race), (0, None));
                let Finding::Deadlock(deadlock) = explored.deadlock.unwrap().first else { panic!() };
                let producer = deadlock.waits.iter().find(|wait| wait.what == WaitFor::Free).unwrap();
                assert_eq!(producer.tile, Some(("ring".to_owned(), slots)), "{deadlock}");
            }
        }
    }
}

/// Defect 1: the first wait of an odd ring of five slots or more comes too late.
#[test]
fn headers_on_a2a3_overwrite_slot_0_with_an_odd_number_of_slots_from_five() {
    for direction in [Direction::C2V, Direction::V2C] {
        for slots in [5_u32, 7] {
            let explored = one_way(Arch::A2A3, direction, slots, Profile::SparseCredits, slots as usize + 2);
            let race = race(&explored.race);
            assert_eq!((race.slot, race.first.tile, race.second.tile), (0, 0, slots), "{race}");
            assert!(explored.race.as_ref().unwrap().trace.len() > slots as usize * 4);
        }
        for slots in [1_u32, 2, 3, 4, 6] {
            let tiles = slots as usize * 2 + 1;
            let explored = one_way(Arch::A2A3, direction, slots, Profile::SparseCredits, tiles);
            assert!(explored.is_clean(), "{direction:?} {slots} slots: {:?}", explored.found().next());
        }
    }
}

/// Defect 2: the start-up without waits and the credits given in advance add up.
#[test]
fn headers_on_a5_give_too_many_credits() {
    for direction in directions(Arch::A5) {
        for slots in 1..=8_u32 {
            let explored = one_way(Arch::A5, direction, slots, Profile::SparseCredits, slots as usize + 1);
            let race = race(&explored.race);
            assert_eq!((race.first.tile, race.second.tile), (0, slots), "{race}");
        }
    }
}

/// Defect 3: on A5 a ring in both directions through memory waits for another flag than it sets.
#[test]
fn headers_on_a5_wait_on_the_wrong_flag_through_memory_in_both_directions() {
    let ring = spec(Direction::BothGm, 2, Profile::SparseCredits);
    let explored = run(&Scenario::push_push_pop_pop(Arch::A5, ring.clone(), 1, 1));
    assert_eq!(explored.ends, 0, "no order ends well");
    // Without the tiles to the Cube, which overwrite those from it, the wrong flag is all there is.
    let (send, receive) = (vec![Op::Open, Op::Push(0)], vec![Op::Open, Op::Pop(0)]);
    let scenario = Scenario { arch: Arch::A5, rings: vec![ring], programs: [send, receive.clone(), receive] };
    let Finding::Deadlock(deadlock) = run(&scenario).deadlock.unwrap().first else { panic!() };
    assert_eq!(deadlock.ended, [CoreId::Cube]);
    for wait in &deadlock.waits {
        assert_eq!((wait.what.clone(), wait.id), (WaitFor::Ready, 1), "the Cube has set 0: {deadlock}");
    }
    let fixed = spec(Direction::BothGm, 2, Profile::Counting);
    let explored = run(&Scenario::push_push_pop_pop(Arch::A5, fixed, 2, 2));
    assert!(explored.is_clean(), "{:?}", explored.found().next());
}

/// Defect 3, second half: both directions use the same slots.
#[test]
fn headers_on_a5_put_both_directions_into_the_same_memory() {
    let ring = spec(Direction::BothGm, 2, Profile::SparseCredits);
    let programs = CoreId::ALL.map(|_| vec![Op::Open, Op::Push(0)]);
    let explored = run(&Scenario { arch: Arch::A5, rings: vec![ring], programs });
    let race = race(&explored.race);
    assert_ne!(race.first.ring, race.second.ring, "{race}");
}

/// Defect 4: sixteen slots or more overflow "ready".
#[test]
fn headers_overflow_a_semaphore_from_sixteen_slots() {
    for arch in Arch::ALL {
        let spec = spec(Direction::C2V, 16, Profile::SparseCredits);
        let programs = CoreId::ALL.map(|_| vec![Op::Open]);
        let mut scenario = Scenario { arch, rings: vec![spec], programs };
        scenario.programs[0].extend([Op::Push(0)].repeat(15));
        assert!(run(&scenario).fault.is_none(), "fifteen tiles fit");
        scenario.programs[0].push(Op::Push(0));
        let found = run(&scenario).fault.expect("an overflow");
        let Finding::Fault(fault) = found.first else { panic!() };
        let Fault::Overflow { core, id, .. } = *fault else { panic!("{fault}") };
        assert_eq!((core, id), (CoreId::Cube, 0));
        assert_eq!(found.trace.last().unwrap().step.tile, 15, "the sixteenth set");
    }
}

#[test]
fn a_bound_is_said_to_be_one() {
    let ring = spec(Direction::C2V, 2, Profile::Counting);
    let explored = explore(&Scenario::one_way(Arch::A5, ring, 6), 100).unwrap();
    assert!(!explored.complete && !explored.is_clean());
}

/// The three rings of flash attention (`pto-isa`, `kernels/manual/common/flash_atten`): scores to
/// the Vectors, weights back, products to the Vectors, with `ahead` tiles of scores sent before the
/// first product.
fn attention(arch: Arch, slots: u32, tiles: usize, ahead: usize) -> Scenario {
    let ring =
        |name, direction, flag| RingSpec::new(name, direction, Shape::new(2, 8, DType::F32)).slots(slots).flag(flag);
    let rings = vec![ring("QK", Direction::C2V, 0), ring("P", Direction::V2C, 2), ring("PV", Direction::C2V, 4)];
    let (mut cube, mut vector) = (vec![Op::Open], vec![Op::Open]);
    for tile in 0..tiles + ahead {
        if tile < tiles {
            cube.push(Op::Push(0));
            vector.extend([Op::Pop(0), Op::Push(1), Op::Free(0)]);
        }
        if tile >= ahead {
            cube.extend([Op::Pop(1), Op::Push(2), Op::Free(1)]);
            vector.extend([Op::Pop(2), Op::Free(2)]);
        }
    }
    for program in [&mut cube, &mut vector] {
        program.push(Op::Close);
    }
    Scenario { arch, rings, programs: [cube, vector.clone(), vector] }
}

#[test]
fn the_three_rings_of_flash_attention_in_every_order() {
    for arch in Arch::ALL {
        for (slots, ahead) in [(1, 1), (2, 1), (2, 2), (3, 2)] {
            let explored = run(&attention(arch, slots, 4, ahead));
            println!("{arch} {slots} slots, {ahead} ahead: {} states", explored.states);
            assert!(explored.is_clean(), "{arch} {slots} {ahead}: {:?}", explored.found().next().map(|f| &f.first));
        }
        // The Vectors' weights fill their ring before the Cube, which sends scores ahead,
        // pops the first.
        let explored = run(&attention(arch, 1, 4, 3));
        let Finding::Deadlock(deadlock) = explored.deadlock.expect("too far ahead for one slot").first else {
            panic!()
        };
        assert_eq!((explored.ends, deadlock.circle.len()), (0, 2), "{deadlock}");
    }
}
