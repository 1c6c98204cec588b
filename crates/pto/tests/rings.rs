//! Rings in use: invariants and wrap-around, the mistakes of the documents' own simulator as
//! regressions (sections 4.6 and 7), and what a run reports.

#[path = "common/stream.rs"]
mod stream;
#[path = "common/tiles.rs"]
mod tiles;

use std::cell::RefCell;
use std::rc::Rc;
use stream::stream;
use tilework_pto::deadlock::WaitFor;
use tilework_pto::{
    Arch, Cluster, ClusterReport, Config, CoreId, DType, Direction, EventKind, Fault, Profile, Ring, RingSpec, Shape,
    Split, Tile,
};

const SHAPE: Shape = Shape { rows: 4, cols: 64, dtype: DType::F32 };
const VECTORS: [CoreId; 2] = [CoreId::Vector0, CoreId::Vector1];
const DENSE: [Profile; 2] = [Profile::Counting, Profile::PerTagFlags];

fn cluster(arch: Arch, seed: u64, spec: RingSpec) -> (Cluster, Ring) {
    let mut cluster = Cluster::new(Config::new(arch, seed));
    let ring = cluster.ring(spec).unwrap();
    (cluster, ring)
}

fn mine(tile: Tile, id: CoreId) -> Tile {
    if id.is_vector() { tiles::half(&tile, id) } else { tile }
}

/// All cores push `outstanding` tiles, then pop as many and compare, `rounds` times.
fn both_ways(
    arch: Arch,
    direction: Direction,
    profile: Profile,
    slots: u32,
    outstanding: usize,
) -> Result<ClusterReport, Fault> {
    let spec = RingSpec::new("ring", direction, SHAPE).slots(slots).profile(profile).local_slots(slots);
    let (mut cluster, ring) = cluster(arch, 5, spec);
    for id in CoreId::ALL {
        let ring = ring.clone();
        cluster.spawn(id, async move |core| {
            let mut end = core.open(&ring).await?;
            // What the Cube sends is numbered from 0, what the Vectors send from 500.
            let (sends, gets) = if id == CoreId::Cube { (0, 500) } else { (500, 0) };
            for round in 0..3 {
                for number in 0..outstanding {
                    end.push(&mine(tiles::whole(SHAPE, sends + round * outstanding + number), id)).await?;
                }
                for number in 0..outstanding {
                    let tile = end.pop_tile().await?;
                    assert_eq!(tile, mine(tiles::whole(SHAPE, gets + round * outstanding + number), id));
                    end.free().await?;
                }
            }
            end.close().await
        });
    }
    cluster.run()
}

fn both_directions(arch: Arch) -> Vec<Direction> {
    [Direction::Both, Direction::BothGm].into_iter().filter(|direction| direction.exists_on(arch)).collect()
}

#[test]
fn push_push_pop_pop_passes_at_as_many_tiles_as_slots() {
    for arch in Arch::ALL {
        for direction in both_directions(arch) {
            for (profile, most) in [(Profile::Counting, 15), (Profile::PerTagFlags, 4)] {
                for slots in 1..=most {
                    let report = both_ways(arch, direction, profile, slots, slots as usize).unwrap();
                    assert_eq!(report.leftovers, []);
                }
            }
        }
    }
}

#[test]
fn push_push_pop_pop_deadlocks_at_one_tile_more_and_names_its_cycle() {
    for arch in Arch::ALL {
        for (profile, most) in [(Profile::Counting, 15), (Profile::PerTagFlags, 4)] {
            for slots in 1..=most {
                let fault = both_ways(arch, Direction::Both, profile, slots, slots as usize + 1).unwrap_err();
                let Fault::Deadlock(deadlock) = &fault else { panic!("{fault}") };
                assert_eq!(deadlock.circle.len(), 2, "the Cube and a Vector: {fault}");
                let chain = deadlock.chain();
                assert_eq!(chain[0].core, CoreId::Cube);
                for (wait, ring) in chain.iter().zip(["ring C2V", "ring V2C"]) {
                    assert_eq!((&wait.what, wait.tile.as_ref()), (&WaitFor::Free, Some(&(ring.to_owned(), slots))));
                }
                let text = fault.to_string();
                assert!(text.contains(&format!("Cube waits for a free slot of `ring C2V` for tile {slots}")), "{text}");
            }
        }
    }
}

/// Section 8: TPOP without TFREE as often as there are slots, and the producer blocks.
#[test]
fn without_tfree_the_producer_blocks_after_all_slots() {
    for arch in Arch::ALL {
        for profile in DENSE {
            let (mut cluster, ring) =
                cluster(arch, 3, RingSpec::new("r", Direction::V2C, SHAPE).slots(4).profile(profile).local_slots(4));
            for id in CoreId::ALL {
                let ring = ring.clone();
                cluster.spawn(id, async move |core| {
                    let mut end = core.open(&ring).await?;
                    for number in 0..5 {
                        if id.is_vector() {
                            end.push(&tiles::half(&tiles::whole(SHAPE, number), id)).await?;
                        } else if number < 4 {
                            end.pop().await?;
                            assert_eq!(end.held() as usize, number + 1);
                        }
                    }
                    Ok(())
                });
            }
            let Fault::Deadlock(deadlock) = cluster.run().unwrap_err() else { panic!() };
            assert_eq!((deadlock.circle.len(), deadlock.ended.as_slice()), (0, &[CoreId::Cube][..]));
            assert_eq!(deadlock.waits.len(), 2);
            assert!(deadlock.waits.iter().all(|wait| wait.tile == Some(("r".to_owned(), 4))), "{deadlock}");
            assert!(deadlock.to_string().contains("Cube will not set anything any more"), "{deadlock}");
        }
    }
}

#[test]
fn freeing_twice_is_a_fault() {
    for arch in Arch::ALL {
        for profile in DENSE {
            let (mut cluster, ring) = cluster(arch, 3, RingSpec::new("r", Direction::C2V, SHAPE).profile(profile));
            let to = ring.clone();
            cluster.spawn(CoreId::Cube, async move |core| core.open(&to).await?.push(&tiles::whole(SHAPE, 1)).await);
            for id in VECTORS {
                let ring = ring.clone();
                cluster.spawn(id, async move |core| {
                    let mut end = core.open(&ring).await?;
                    end.pop().await?;
                    end.free().await?;
                    end.free().await
                });
            }
            let fault = cluster.run().unwrap_err();
            assert!(matches!(fault, Fault::NothingToFree { popped: 1, .. }), "{fault}");
        }
    }
}

/// A set of "free" by hand, past the ring's own operations, is a credit too many.
#[test]
fn a_credit_from_nowhere_is_a_fault() {
    let (mut cluster, ring) = cluster(Arch::A2A3, 3, RingSpec::new("r", Direction::C2V, SHAPE).slots(2));
    for id in CoreId::ALL {
        let ring = ring.clone();
        cluster.spawn(id, async move |core| {
            let mut end = core.open(&ring).await?;
            for number in 0..4 {
                if id == CoreId::Cube {
                    end.push(&tiles::whole(SHAPE, number)).await?;
                } else {
                    end.pop_tile().await?;
                    end.free().await?;
                    core.set_cross_core(tilework_pto::Pipe::V, 1).await?;
                }
            }
            end.close().await
        });
    }
    let fault = cluster.run().unwrap_err();
    let Fault::Credits { ready, free, held, in_flight, granted, .. } = fault else { panic!("{fault}") };
    assert_eq!(ready + free + held + in_flight, granted + 1);
}

#[test]
fn rings_wrap_at_once_twice_and_one_more() {
    for arch in Arch::ALL {
        for direction in [Direction::C2V, Direction::V2C] {
            for slots in [1, 2, 3, 8, 15] {
                for tiles in [slots, 2 * slots, 2 * slots + 1] {
                    for pause in [0, 2000] {
                        let spec = RingSpec::new("r", direction, SHAPE).slots(slots);
                        stream(Config::new(arch, 1), spec, tiles as usize, pause).unwrap();
                    }
                }
            }
        }
    }
}

/// Section 7 (a): pop, pop, free, free; two tiles out, none afterwards. Frees go in ring order.
#[test]
fn delayed_frees_give_back_what_was_popped() {
    for arch in Arch::ALL {
        for direction in [Direction::C2V, Direction::V2C] {
            let (mut cluster, ring) = cluster(arch, 3, RingSpec::new("r", direction, SHAPE).slots(2));
            let consumer = |id: CoreId| id.is_vector() == (direction == Direction::C2V);
            for id in CoreId::ALL {
                let ring = ring.clone();
                let consumer = consumer(id);
                cluster.spawn(id, async move |core| {
                    let mut end = core.open(&ring).await?;
                    for pair in 0..5 {
                        let wholes = [2 * pair, 2 * pair + 1].map(|number| mine(tiles::whole(SHAPE, number), id));
                        if !consumer {
                            end.push(&wholes[0]).await?;
                            end.push(&wholes[1]).await?;
                            continue;
                        }
                        let (first, second) = (end.pop().await?, end.pop().await?);
                        assert_eq!(end.held(), 2);
                        end.free().await?;
                        assert_eq!((end.held(), end.read(&second).await?), (1, wholes[1].clone()));
                        end.free().await?;
                        assert_eq!((end.held(), first.number()), (0, 2 * pair as u32));
                    }
                    end.close().await
                });
            }
            assert_eq!(cluster.run().unwrap().leftovers, []);
        }
    }
}

/// Section 4.6, out-of-order frees: while the older tile is held, its slot is not given away.
#[test]
fn a_held_slot_is_not_reused() {
    for arch in Arch::ALL {
        let (mut cluster, ring) = cluster(arch, 3, RingSpec::new("r", Direction::C2V, SHAPE).slots(2).local_slots(3));
        for id in CoreId::ALL {
            let ring = ring.clone();
            cluster.spawn(id, async move |core| {
                let mut end = core.open(&ring).await?;
                if id == CoreId::Cube {
                    for number in 0..3 {
                        end.push(&tiles::whole(SHAPE, number)).await?;
                    }
                    return Ok(());
                }
                let first = end.pop().await?;
                end.pop().await?;
                core.work(tilework_pto::Pipe::V, 50_000, "hold").await;
                assert_eq!(end.read(&first).await?, tiles::half(&tiles::whole(SHAPE, 0), id), "slot 0 is still tile 0");
                end.free().await?;
                end.pop().await?;
                end.free().await?;
                end.free().await
            });
        }
        cluster.run().unwrap();
    }
}

/// Section 7 (b): a ring works the same after another program has used the cluster.
#[test]
fn a_second_program_finds_a_clean_ring() {
    for arch in Arch::ALL {
        let mut cluster = Cluster::new(Config::new(arch, 3));
        for split in [Split::UpDown, Split::LeftRight, Split::UpDown] {
            let ring = cluster.ring(RingSpec::new("r", Direction::V2C, SHAPE).slots(2).split(split)).unwrap();
            for id in CoreId::ALL {
                let ring = ring.clone();
                cluster.spawn(id, async move |core| {
                    let mut end = core.open(&ring).await?;
                    for number in 0..5 {
                        let tile = tiles::whole(SHAPE, number);
                        let (rows, cols) = if split == Split::UpDown { (2, 64) } else { (4, 32) };
                        let (r, c) = if id == CoreId::Vector0 { (0, 0) } else { (4 - rows, 64 - cols) };
                        if id.is_vector() {
                            end.push(&tiles::cut(&tile, (r, r + rows), (c, c + cols))).await?;
                        } else {
                            assert_eq!(end.pop_tile().await?, tile);
                            end.free().await?;
                        }
                    }
                    end.close().await
                });
            }
            assert_eq!(cluster.run().unwrap().leftovers, []);
            cluster.next_block(&tilework_pto::Binding::direct(arch));
        }
    }
}

/// Section 7 (c) and 4.6: with both directions in flight each keeps its own slots, cursors and
/// order, also when the Cube pops ahead.
#[test]
fn each_direction_keeps_its_order_when_the_other_is_popped_ahead() {
    for arch in Arch::ALL {
        for direction in both_directions(arch) {
            let (mut cluster, ring) = cluster(arch, 3, RingSpec::new("r", direction, SHAPE).slots(4).local_slots(4));
            for id in CoreId::ALL {
                let ring = ring.clone();
                cluster.spawn(id, async move |core| {
                    let mut end = core.open(&ring).await?;
                    let tile = |number| mine(tiles::whole(SHAPE, number), id);
                    if id == CoreId::Cube {
                        end.push(&tile(1)).await?;
                        let ahead = [end.pop().await?, end.pop().await?, end.pop().await?];
                        end.push(&tile(2)).await?;
                        end.push(&tile(3)).await?;
                        for (number, popped) in ahead.iter().enumerate() {
                            assert_eq!(end.read(popped).await?, tile(500 + number));
                            end.free().await?;
                        }
                    } else {
                        for number in 500..503 {
                            end.push(&tile(number)).await?;
                        }
                        for number in 1..4 {
                            assert_eq!(end.pop_tile().await?, tile(number));
                            end.free().await?;
                        }
                    }
                    end.close().await
                });
            }
            cluster.run().unwrap();
        }
    }
}

/// Section 4.6: a tile of which one Vector has pushed its half is not there yet.
#[test]
fn a_half_pushed_tile_is_not_seen() {
    for arch in Arch::ALL {
        let (mut cluster, ring) = cluster(arch, 3, RingSpec::new("r", Direction::V2C, SHAPE).slots(2));
        let pushed = Rc::new(RefCell::new(0));
        for id in CoreId::ALL {
            let (ring, pushed) = (ring.clone(), Rc::clone(&pushed));
            cluster.spawn(id, async move |core| {
                let mut end = core.open(&ring).await?;
                let tile = tiles::whole(SHAPE, 7);
                match id {
                    CoreId::Cube => {
                        assert_eq!(end.pop_tile().await?, tile);
                        assert!(core.now() > 20_000 && *pushed.borrow() == 2, "popped after the second half");
                        end.free().await?;
                    }
                    CoreId::Vector0 | CoreId::Vector1 => {
                        let late = if id == CoreId::Vector1 { 20_000 } else { 0 };
                        core.work(tilework_pto::Pipe::V, late, "late").await;
                        *pushed.borrow_mut() += 1;
                        end.push(&tiles::half(&tile, id)).await?;
                    }
                }
                end.close().await
            });
        }
        cluster.run().unwrap();
    }
}

/// On A2A3 Vector 1 of a ring without split signals, or the Cube waits for ever; on A5 it
/// must keep out.
#[test]
fn without_split_vector_1_signals_on_a2a3_and_keeps_out_on_a5() {
    for arch in Arch::ALL {
        let (mut cluster, ring) = cluster(arch, 3, RingSpec::new("r", Direction::V2C, SHAPE).split(Split::None));
        let from = ring.clone();
        cluster.spawn(CoreId::Vector0, async move |core| core.open(&from).await?.push(&tiles::whole(SHAPE, 1)).await);
        let to = ring.clone();
        cluster.spawn(CoreId::Cube, async move |core| core.open(&to).await?.pop_tile().await);
        match cluster.run() {
            Ok(_) => assert_eq!(arch, Arch::A5),
            Err(Fault::Deadlock(deadlock)) => {
                assert_eq!((arch, deadlock.waits[0].from.as_slice()), (Arch::A2A3, &[CoreId::Vector1][..]));
            }
            Err(fault) => panic!("{fault}"),
        }
    }
    let (mut cluster, ring) = cluster(Arch::A5, 3, RingSpec::new("r", Direction::V2C, SHAPE).split(Split::None));
    cluster.spawn(CoreId::Vector1, async move |core| core.open(&ring).await?.push(&tiles::whole(SHAPE, 1)).await);
    assert!(matches!(cluster.run().unwrap_err(), Fault::WrongCore { core: CoreId::Vector1, .. }));
}

#[test]
fn control_words_arrive_in_order() {
    for arch in Arch::ALL {
        let word = Shape::new(1, 1, DType::I32);
        let (mut cluster, ring) = cluster(arch, 3, RingSpec::new("c", Direction::V2cCtrl, word).slots(3));
        let words = cluster.spawn(CoreId::Cube, {
            let ring = ring.clone();
            async move |core| {
                let mut end = core.open(&ring).await?;
                let mut words = Vec::new();
                for _ in 0..10 {
                    words.extend(end.pop_tile().await?.to_f32());
                    end.free().await?;
                }
                Ok(words)
            }
        });
        for id in VECTORS {
            if arch == Arch::A5 && id == CoreId::Vector1 {
                continue;
            }
            let ring = ring.clone();
            cluster.spawn(id, async move |core| {
                let mut end = core.open(&ring).await?;
                for number in 0..10 {
                    end.push(&Tile::from_fn(word, |_, _| number as f32 - 3.0)).await?;
                }
                end.close().await
            });
        }
        cluster.run().unwrap();
        assert_eq!(words.take().unwrap(), (0..10).map(|number| number as f32 - 3.0).collect::<Vec<_>>());
    }
}

/// The global-data form: one TALLOC, a TSTORE for each part, TPUSH; TPOP, a TLOAD for each
/// part, TFREE.
#[test]
fn slots_in_memory_are_filled_and_emptied_in_parts() {
    for (arch, direction) in [(Arch::A2A3, Direction::C2V), (Arch::A5, Direction::C2vGm)] {
        for profile in [Profile::Counting, Profile::PerTagFlags, Profile::SparseCredits] {
            // As many tiles as slots, so that the headers' protocol on A5 has nothing to overwrite.
            let (mut cluster, ring) = cluster(arch, 3, RingSpec::new("r", direction, SHAPE).slots(4).profile(profile));
            for id in CoreId::ALL {
                let ring = ring.clone();
                cluster.spawn(id, async move |core| {
                    let mut end = core.open(&ring).await?;
                    for number in 0..4 {
                        let tile = tiles::whole(SHAPE, number);
                        if id == CoreId::Cube {
                            let slot = end.alloc().await?;
                            for part in 0..4 {
                                let cols = (part * 16, part * 16 + 16);
                                end.store(&slot, 0, cols.0, &tiles::cut(&tile, (0, 4), cols)).await?;
                            }
                            end.push_slot(slot).await?;
                            continue;
                        }
                        let slot = end.pop_slot().await?;
                        let half = tiles::half(&tile, id);
                        for (row, col) in [(0, 0), (1, 32)] {
                            let part = end.load(&slot, row, col, Shape::new(1, 32, DType::F32)).await?;
                            assert_eq!(part, tiles::cut(&half, (row, row + 1), (col, col + 32)));
                        }
                        end.free().await?;
                    }
                    end.close().await
                });
            }
            cluster.run().unwrap_or_else(|fault| panic!("{arch} {profile:?}: {fault}"));
        }
    }
}

#[test]
fn mistakes_with_slots_are_faults() {
    let attempt = |arch, direction, id, kernel: fn(tilework_pto::Core, Ring) -> Attempt| {
        let (mut cluster, ring) = cluster(arch, 3, RingSpec::new("r", direction, SHAPE));
        cluster.spawn(id, move |core| kernel(core, ring));
        cluster.run().unwrap_err()
    };
    type Attempt = std::pin::Pin<Box<dyn Future<Output = Result<(), Fault>>>>;
    let twice = attempt(Arch::A2A3, Direction::C2V, CoreId::Vector0, |core, ring| {
        Box::pin(async move { core.open(&ring).await?.free().await })
    });
    assert!(matches!(twice, Fault::NothingToFree { popped: 0, .. }));
    let wrong_end = attempt(Arch::A2A3, Direction::C2V, CoreId::Cube, |core, ring| {
        Box::pin(async move { core.open(&ring).await?.pop().await.map(drop) })
    });
    assert!(matches!(wrong_end, Fault::WrongCore { core: CoreId::Cube, .. }), "{wrong_end}");
    let not_global = attempt(Arch::A5, Direction::C2V, CoreId::Cube, |core, ring| {
        Box::pin(async move { core.open(&ring).await?.alloc().await.map(drop) })
    });
    assert!(matches!(not_global, Fault::Usage(_)), "{not_global}");
    // The headers' profile gives the first slots without a wait, so no consumer is needed.
    let spec = RingSpec::new("r", Direction::C2V, SHAPE).profile(Profile::SparseCredits);
    let (mut cluster, ring) = cluster(Arch::A2A3, 3, spec);
    cluster.spawn(CoreId::Cube, async move |core| {
        let mut end = core.open(&ring).await?;
        let _first = end.alloc().await?;
        let second = end.alloc().await?;
        end.push_slot(second).await
    });
    let order = cluster.run().unwrap_err();
    assert!(matches!(order, Fault::NothingToPublish { .. }), "{order}");
}

/// A popped tile whose copy or slot is gone cannot be read.
#[test]
fn a_tile_is_not_read_after_its_copy_was_overwritten_or_its_slot_freed() {
    for arch in Arch::ALL {
        let (mut cluster, ring) = cluster(arch, 3, RingSpec::new("r", Direction::C2V, SHAPE).local_slots(2));
        for id in CoreId::ALL {
            let ring = ring.clone();
            cluster.spawn(id, async move |core| {
                let mut end = core.open(&ring).await?;
                if id == CoreId::Cube {
                    for number in 0..3 {
                        end.push(&tiles::whole(SHAPE, number)).await?;
                    }
                    return Ok(());
                }
                let first = end.pop().await?;
                end.pop().await?;
                end.pop().await?;
                if arch == Arch::A5 {
                    assert_eq!(end.read(&first).await?, tiles::half(&tiles::whole(SHAPE, 0), id));
                    end.free().await?;
                }
                end.read(&first).await.map(drop)
            });
        }
        let fault = cluster.run().unwrap_err();
        assert!(matches!(fault, Fault::Stale { tile: 0, .. }), "{fault}");
    }
}

#[test]
fn a_run_depends_on_its_seed_and_on_nothing_else() {
    let run = |arch, seed| {
        let (mut cluster, ring) = cluster(arch, seed, RingSpec::new("r", Direction::C2V, SHAPE).slots(3));
        for id in CoreId::ALL {
            let ring = ring.clone();
            cluster.spawn(id, async move |core| {
                let mut end = core.open(&ring).await?;
                for number in 0..9 {
                    if id == CoreId::Cube {
                        end.push(&tiles::whole(SHAPE, number)).await?;
                    } else {
                        end.pop_tile().await?;
                        end.free().await?;
                    }
                }
                end.close().await
            });
        }
        (cluster.run().unwrap(), cluster.take_events())
    };
    for arch in Arch::ALL {
        assert_eq!(run(arch, 1), run(arch, 1));
        assert_ne!(run(arch, 1).0.cycles, run(arch, 2).0.cycles);
    }
}

#[test]
fn events_tell_every_operation_with_its_tile_and_slot() {
    let (mut cluster, ring) = cluster(Arch::A2A3, 3, RingSpec::new("r", Direction::C2V, SHAPE).slots(2));
    for id in CoreId::ALL {
        let ring = ring.clone();
        cluster.spawn(id, async move |core| {
            let mut end = core.open(&ring).await?;
            for number in 0..5 {
                if id == CoreId::Cube {
                    end.push(&tiles::whole(SHAPE, number)).await?;
                } else {
                    end.pop_tile().await?;
                    core.work(tilework_pto::Pipe::V, 100, "add").await;
                    end.free().await?;
                }
            }
            end.close().await
        });
    }
    cluster.run().unwrap();
    let events = cluster.take_events();
    assert!(events.iter().all(|event| event.start <= event.end));
    assert!(events.windows(2).all(|pair| pair[0].end <= pair[1].end), "in the order of their ends");
    for (kind, core) in
        [(EventKind::Push, CoreId::Cube), (EventKind::Pop, CoreId::Vector0), (EventKind::Free, CoreId::Vector1)]
    {
        let of: Vec<_> = events.iter().filter(|event| event.kind == kind && event.core == core).collect();
        let expected: Vec<_> = (0..5).map(|tile| (Some(tile), Some(tile % 2))).collect();
        assert_eq!(of.iter().map(|event| (event.tile, event.slot)).collect::<Vec<_>>(), expected);
    }
    let waits = events.iter().filter(|event| event.kind == EventKind::Wait && event.core == CoreId::Cube).count();
    assert!(waits > 0, "two slots make the Cube wait");
    assert_eq!(events.iter().filter(|event| &*event.name == "add").count(), 10);
}
