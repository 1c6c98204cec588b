//! The protocols in the simulation: the default one sends every tile right for all slot counts; the
//! headers' one shows the defects listed in docs/pto.md.

#[path = "common/stream.rs"]
mod stream;
#[path = "common/tiles.rs"]
mod tiles;

use stream::stream;
use tilework_pto::ffts::{Counter, Semaphores};
use tilework_pto::machine::Wiring;
use tilework_pto::protocol::{Act, Cursor};
use tilework_pto::{
    Arch, Cluster, Config, CoreId, DType, Direction, Fault, Profile, RacePolicy, RingError, RingSpec, Shape,
};

fn spec(direction: Direction, slots: u32, profile: Profile) -> RingSpec {
    RingSpec::new("ring", direction, Shape::new(4, 8, DType::F32)).slots(slots).profile(profile)
}

#[test]
fn the_default_profile_carries_1_to_64_tiles_over_1_to_15_slots() {
    for arch in Arch::ALL {
        for direction in [Direction::C2V, Direction::V2C] {
            for slots in 1..=15 {
                for tiles in 1..=64 {
                    let seed = u64::from(slots) * 64 + tiles as u64;
                    let report = stream(Config::new(arch, seed), spec(direction, slots, Profile::Counting), tiles, 50);
                    let report = report.unwrap_or_else(|fault| panic!("{arch} {direction:?} {slots} {tiles}: {fault}"));
                    assert!(report.leftovers.is_empty() && report.races.is_empty());
                }
            }
        }
    }
}

#[test]
fn the_per_tag_profile_carries_tiles_over_1_to_8_slots() {
    for arch in Arch::ALL {
        for direction in [Direction::C2V, Direction::V2C] {
            for slots in 1..=8 {
                for tiles in [1, 7, 8, 9, 17, 64] {
                    let spec = spec(direction, slots, Profile::PerTagFlags);
                    let report = stream(Config::new(arch, tiles as u64), spec, tiles, 300).unwrap();
                    assert!(report.leftovers.is_empty() && report.races.is_empty());
                }
            }
        }
    }
}

#[test]
fn more_slots_than_a_profile_has_counts_or_flags_for_are_refused() {
    for (profile, most) in [(Profile::Counting, 15), (Profile::PerTagFlags, 8)] {
        for arch in Arch::ALL {
            assert_eq!(spec(Direction::C2V, most, profile).check(arch), Ok(()));
            let error = spec(Direction::C2V, most + 1, profile).check(arch).unwrap_err();
            assert!(matches!(error, RingError::Slots { slots, .. } if slots == most + 1), "{error}");
        }
    }
    assert!(
        spec(Direction::Both, 5, Profile::PerTagFlags).check(Arch::A5).is_err(),
        "HL has 4 in each of two directions"
    );
}

/// Tiles for which the producer gets slots before the consumer has popped any: the consumer has
/// only opened.
fn lead(arch: Arch, slots: u32) -> u32 {
    let mut wiring = Wiring::new(arch);
    let way = wiring.add(&spec(Direction::C2V, slots, Profile::SparseCredits)).unwrap().remove(0);
    let mut semaphores = Semaphores::default();
    for vector in [CoreId::Vector0, CoreId::Vector1] {
        for step in way.open(vector) {
            assert_eq!(step.act, Act::Grant);
            semaphores.set(vector, step.signal.unwrap().id, step.lanes).unwrap();
        }
    }
    let mut cursor = Cursor::default();
    loop {
        let steps = way.acquire(CoreId::Cube, &mut cursor);
        let taken = |semaphores: &mut Semaphores| {
            steps.iter().all(|s| s.signal.is_none_or(|signal| semaphores.take(CoreId::Cube, signal.id, s.lanes)))
        };
        if !taken(&mut semaphores) {
            return cursor.acquired - 1;
        }
    }
}

/// docs/pto.md, defects 1 and 2: the largest lead of the producer.
#[test]
fn the_headers_leads_are_those_of_the_documented_defects() {
    let a2a3: Vec<_> = [5, 7, 9, 15].into_iter().map(|slots| lead(Arch::A2A3, slots)).collect();
    assert_eq!(a2a3, [6, 9, 12, 21]);
    for slots in [1, 2, 3, 4, 6, 8, 10, 12, 14] {
        assert_eq!(lead(Arch::A2A3, slots), slots, "safe");
    }
    let a5: Vec<_> = [1, 2, 4, 6, 8].into_iter().map(|slots| lead(Arch::A5, slots)).collect();
    assert_eq!(a5, [2, 6, 8, 15, 24]);
}

#[test]
fn a_seed_shows_the_overwritten_slot_of_an_odd_ring_on_a2a3() {
    for slots in [5, 7, 9, 11, 13, 15] {
        let config = Config::new(Arch::A2A3, 1);
        let fault = stream(config, spec(Direction::C2V, slots, Profile::SparseCredits), 64, 5000).unwrap_err();
        let Fault::Race(race) = &fault else { panic!("{slots} slots: {fault}") };
        assert_eq!(
            (race.slot, race.first.tile + slots, race.slots),
            (race.second.tile % slots, race.second.tile, slots)
        );
        assert_eq!(race.second.core, CoreId::Cube);
        assert!(race.second.from >= race.first.from && race.acquired - race.freed > slots, "{race}");
        stream(config, spec(Direction::C2V, slots, Profile::Counting), 64, 5000).unwrap();
    }
}

#[test]
fn even_rings_of_the_headers_are_safe_on_a2a3_and_leave_nothing() {
    for slots in [1, 2, 3, 4, 6, 8, 10, 12, 14] {
        for tiles in 1..=64 {
            let config = Config::new(Arch::A2A3, tiles as u64);
            let report = stream(config, spec(Direction::C2V, slots, Profile::SparseCredits), tiles, 200).unwrap();
            assert!(report.leftovers.is_empty(), "{slots} slots, {tiles} tiles: {:?}", report.leftovers);
        }
    }
}

#[test]
fn a_seed_shows_the_unread_tile_that_is_overwritten_on_a5() {
    for slots in 1..=8 {
        let config = Config::new(Arch::A5, 3);
        let fault = stream(config, spec(Direction::C2V, slots, Profile::SparseCredits), 32, 5000).unwrap_err();
        assert!(matches!(&fault, Fault::Race(race) if race.second.tile == race.first.tile + slots), "{fault}");
        stream(config, spec(Direction::C2V, slots, Profile::Counting), 32, 5000).unwrap();
    }
}

#[test]
fn recorded_races_corrupt_data_as_on_the_machine() {
    let config = Config { races: RacePolicy::Record, ..Config::new(Arch::A5, 3) };
    let fault = stream(config, spec(Direction::C2V, 2, Profile::SparseCredits), 8, 5000).unwrap_err();
    assert!(matches!(&fault, Fault::Kernel(text) if text.contains("not what was sent")), "{fault}");
}

/// docs/pto.md, defect 2: what stays in "free" after the destructors, with a producer slow enough
/// not to overwrite.
#[test]
fn headers_on_a5_leave_up_to_three_credits() {
    let mut most = 0;
    for slots in 1..=8 {
        for tiles in 1..=64 {
            let config = Config { races: RacePolicy::Record, ..Config::new(Arch::A5, 0) };
            let mut cluster = Cluster::new(config);
            let ring = cluster.ring(spec(Direction::C2V, slots, Profile::SparseCredits)).unwrap();
            for id in CoreId::ALL {
                let ring = ring.clone();
                cluster.spawn(id, async move |core| {
                    let mut end = core.open(&ring).await?;
                    for number in 0..tiles {
                        if id == CoreId::Cube {
                            core.work(tilework_pto::Pipe::M, 5000, "slow").await;
                            end.push(&tiles::whole(ring.spec().tile, number)).await?;
                        } else {
                            end.pop_tile().await?;
                            end.free().await?;
                        }
                    }
                    end.close().await
                });
            }
            let report = cluster.run().unwrap();
            assert_eq!(report.races, []);
            let free = |&(counter, _): &(Counter, u8)| (counter.id, counter.at_vector) == (1, false);
            assert!(report.leftovers.iter().all(free), "{:?}", report.leftovers);
            most = most.max(report.leftovers.iter().map(|left| left.1).max().unwrap_or(0));
        }
    }
    assert_eq!(most, 3);
}

/// docs/pto.md, defect 4: the sixteenth set without a wait.
#[test]
fn the_sixteenth_tile_that_is_not_popped_overflows() {
    for arch in Arch::ALL {
        let mut cluster = Cluster::new(Config::new(arch, 5));
        let ring = cluster.ring(spec(Direction::C2V, 16, Profile::SparseCredits)).unwrap();
        cluster.spawn(CoreId::Cube, async move |core| {
            let mut end = core.open(&ring).await?;
            for number in 0..16 {
                end.push(&tiles::whole(ring.spec().tile, number)).await?;
            }
            Ok(())
        });
        let fault = cluster.run().unwrap_err();
        let Fault::Overflow { core, id, pipe, .. } = fault else { panic!("{fault}") };
        assert_eq!((core, id, pipe), (CoreId::Cube, 0, tilework_pto::Pipe::Fix));
        let text = fault.to_string();
        assert!(text.contains("Cube") && text.contains("semaphore 0") && text.contains("FIX"), "{text}");
    }
}

#[test]
fn the_headers_cannot_pop_a_tile_through_memory_in_both_directions_on_a5() {
    let mut cluster = Cluster::new(Config::new(Arch::A5, 5));
    let ring = cluster.ring(spec(Direction::BothGm, 2, Profile::SparseCredits)).unwrap();
    cluster.spawn(CoreId::Vector0, async move |core| core.open(&ring).await?.pop().await);
    assert!(matches!(cluster.run().unwrap_err(), Fault::HeaderGap { .. }));
}

/// docs/pto.md, defect 3, with slots as the headers' users have them.
#[test]
fn the_headers_wait_on_the_wrong_flag_through_memory_in_both_directions_on_a5() {
    for (profile, works) in [(Profile::SparseCredits, false), (Profile::Counting, true)] {
        let mut cluster = Cluster::new(Config::new(Arch::A5, 5));
        let ring = cluster.ring(spec(Direction::BothGm, 2, profile)).unwrap();
        let shape = ring.spec().tile;
        let to = ring.clone();
        cluster.spawn(CoreId::Cube, async move |core| {
            let mut end = core.open(&to).await?;
            let slot = end.alloc().await?;
            end.store(&slot, 0, 0, &tiles::whole(shape, 3)).await?;
            end.push_slot(slot).await
        });
        let got = [CoreId::Vector0, CoreId::Vector1].map(|id| {
            let from = ring.clone();
            cluster.spawn(id, async move |core| {
                let mut end = core.open(&from).await?;
                let slot = end.pop_slot().await?;
                end.load(&slot, 0, 0, Shape::new(2, 8, DType::F32)).await
            })
        });
        let result = cluster.run();
        if works {
            result.unwrap();
            assert_eq!(got[1].take(), Some(tiles::half(&tiles::whole(shape, 3), CoreId::Vector1)));
            continue;
        }
        let Fault::Deadlock(deadlock) = result.unwrap_err() else { panic!() };
        assert!(deadlock.waits.iter().all(|wait| wait.id == 1 && wait.from == [CoreId::Cube]), "{deadlock}");
    }
}

/// docs/pto.md, defect 6: on A5 a pop from memory frees by itself, and TFREE after it
/// signals once more.
#[test]
fn tfree_after_a_pop_from_memory_gives_a_second_credit_on_a5() {
    let credits = |arch, direction, frees: bool| {
        let mut cluster = Cluster::new(Config::new(arch, 5));
        let ring = cluster.ring(spec(direction, 2, Profile::SparseCredits)).unwrap();
        for id in CoreId::ALL {
            let ring = ring.clone();
            cluster.spawn(id, async move |core| {
                let mut end = core.open(&ring).await?;
                for number in 0..2 {
                    if id == CoreId::Cube {
                        end.push(&tiles::whole(ring.spec().tile, number)).await?;
                        continue;
                    }
                    end.pop_tile().await?;
                    if frees {
                        end.free().await?;
                    }
                }
                Ok(())
            });
        }
        let left = cluster.run().unwrap().leftovers;
        left.iter().map(|(_, value)| *value).collect::<Vec<_>>()
    };
    // Two given in advance (A5), one for the period of two tiles, one more by the second TFREE;
    // from each Vector.
    assert_eq!(credits(Arch::A5, Direction::C2vGm, false), [3, 3]);
    assert_eq!(credits(Arch::A5, Direction::C2vGm, true), [4, 4]);
    assert_eq!(credits(Arch::A2A3, Direction::C2V, false), [1, 1]);
    assert_eq!(credits(Arch::A2A3, Direction::C2V, true), [1, 1], "a no-op");
}

/// docs/pto.md, defect 6: on A5 the consumer's copies are still a tile's size apart, so tiles of
/// unequal size overlap.
#[test]
fn copies_of_unequal_tiles_overlap_under_the_headers_on_a5() {
    let (small, large) = (Shape::new(2, 8, DType::F32), Shape::new(8, 8, DType::F32));
    for profile in [Profile::SparseCredits, Profile::Counting] {
        let mut cluster = Cluster::new(Config::new(Arch::A5, 5));
        let ring = cluster.ring(RingSpec::new("r", Direction::C2vGm, large).profile(profile).slots(4)).unwrap();
        for id in CoreId::ALL {
            let ring = ring.clone();
            cluster.spawn(id, async move |core| {
                let mut end = core.open(&ring).await?;
                if id == CoreId::Cube {
                    end.push_shaped(&tiles::whole(large, 0), large).await?;
                    return end.push_shaped(&tiles::whole(small, 1), small).await;
                }
                let first = end.pop_shaped(large).await?;
                end.pop_shaped(small).await?;
                assert_eq!(end.read(&first).await?, tiles::half(&tiles::whole(large, 0), id));
                Ok(())
            });
        }
        match cluster.run() {
            Ok(_) => assert_eq!(profile, Profile::Counting),
            Err(fault) => {
                assert_eq!(profile, Profile::SparseCredits);
                assert!(matches!(fault, Fault::Stale { tile: 0, .. }), "{fault}");
            }
        }
    }
}

/// docs/pto.md, defect 5: a bidirectional ring from id 9 uses id 12, by which the Cube tells its
/// cluster id. A credit of the ring then passes for the Cube's word, which is not yet written.
#[test]
fn a_ring_of_the_headers_may_take_the_id_of_the_cluster_exchange() {
    let mut scheduler = tilework_pto::Scheduler::new(Arch::A2A3, 4);
    let binding = std::iter::from_fn(|| scheduler.start_block()).last().unwrap();
    let learned = |flag| {
        let mut cluster = Cluster::bound(Config::new(Arch::A2A3, 5), &binding);
        let buffer = tilework_pto::ids::CommBuffer::reserved(1 << 20);
        let ring = cluster.ring(spec(Direction::Both, 1, Profile::SparseCredits).flag(flag)).unwrap();
        let ids = CoreId::ALL.map(|id| {
            let ring = ring.clone();
            cluster.spawn(id, async move |core| {
                let mut end = core.open(&ring).await?;
                let whole = tiles::whole(ring.spec().tile, 1);
                if id == CoreId::Cube {
                    end.pop_tile().await?;
                    core.work(tilework_pto::Pipe::M, 50_000, "late").await;
                } else {
                    end.push(&tiles::half(&whole, id)).await?;
                }
                core.sync_cluster_id(&buffer).await
            })
        });
        cluster.run().unwrap();
        ids.map(|id| id.take().unwrap())
    };
    assert_eq!(learned(8), [3, 3, 3]);
    assert_eq!(learned(9), [3, 0, 0], "the Vectors read before the Cube has written");
    let refused = spec(Direction::Both, 1, Profile::Counting).flag(9).check(Arch::A2A3).unwrap_err();
    assert!(matches!(refused, RingError::Ids { first: 9, .. }), "{refused}");
}

/// A "ready" from nowhere: the consumer finds no tile.
#[test]
fn a_pop_before_the_push_is_a_fault() {
    let mut cluster = Cluster::new(Config::new(Arch::A2A3, 5));
    let ring = cluster.ring(spec(Direction::C2V, 2, Profile::SparseCredits)).unwrap();
    cluster.spawn(CoreId::Cube, async |core| core.set_cross_core(tilework_pto::Pipe::Fix, 0).await);
    cluster.spawn(CoreId::Vector0, async move |core| core.open(&ring).await?.pop().await);
    let fault = cluster.run().unwrap_err();
    assert!(matches!(&fault, Fault::WrongTile { tile: 0, slot: 0, found, .. } if found == "no tile"), "{fault}");
}

/// `pto-isa`, `include/pto/npu/*/T{Push,Pop}.hpp`: the pipes of signals. They state S for control
/// words of A5; A2A3's are taken to be the same.
#[test]
fn each_signal_is_sent_by_the_pipe_of_the_headers() {
    use tilework_pto::Pipe::{Fix, Mte1, Mte2, Mte3, S, V};
    let table = [
        (Arch::A2A3, Direction::C2V, Fix, Mte2),
        (Arch::A2A3, Direction::V2C, Mte3, Mte2),
        (Arch::A5, Direction::C2V, Fix, V),
        (Arch::A5, Direction::V2C, Mte3, Mte1),
        (Arch::A5, Direction::C2vGm, Fix, Mte2),
        (Arch::A5, Direction::V2cGm, Mte3, Mte2),
        (Arch::A5, Direction::V2cCtrl, S, S),
    ];
    for (arch, direction, ready, free) in table {
        let word = Shape::new(1, 1, DType::I32);
        let spec = if direction == Direction::V2cCtrl {
            RingSpec::new("r", direction, word)
        } else {
            spec(direction, 2, Profile::Counting)
        };
        let way = Wiring::new(arch).add(&spec).unwrap().remove(0);
        let (from, to) = match way.flow {
            tilework_pto::protocol::Flow::C2V => (CoreId::Cube, CoreId::Vector0),
            tilework_pto::protocol::Flow::V2C => (CoreId::Vector0, CoreId::Cube),
        };
        let mut cursor = Cursor::default();
        let mut steps = way.open(to);
        steps.extend(way.push(from, &mut cursor));
        steps.extend(way.pop(to, &mut cursor));
        steps.extend(way.free(to, &mut cursor).unwrap());
        for step in steps {
            let pipe = match step.act {
                Act::Acquire | Act::Publish => Some(ready),
                Act::Grant | Act::Take | Act::Release => Some(free),
                _ => None,
            };
            assert_eq!(step.signal.map(|signal| signal.pipe), pipe, "{arch} {direction:?} {step:?}");
        }
    }
}
