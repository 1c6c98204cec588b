//! The semaphores against seed 002 ("Mode2 Semantics", "4-bit Semaphore Range") and `pto-isa`'s
//! `ffts_cross_core_sync`.

use tilework_pto::core_id::Lanes;
use tilework_pto::ffts::{Counter, Mode, Overflow, Semaphores, message, parse_message};
use tilework_pto::{Arch, Cluster, Config, CoreId, Fault, Lane, Pipe};

#[test]
fn messages_as_worked() {
    let worked = [(0, 0x021), (1, 0x121), (3, 0x321), (12, 0xc21)];
    for (id, expected) in worked {
        assert_eq!(message(Mode::CubeVector, id), Some(expected));
    }
    assert_eq!(message(Mode::CubeVector, 16), None);
    for mode in [Mode::AllCores, Mode::Subblocks, Mode::CubeVector] {
        for id in 0..16 {
            assert_eq!(parse_message(message(mode, id).unwrap()), Some((mode, id)));
        }
    }
    for bad in [0x020, 0x022, 0x031, 0x1021, 0xffff] {
        assert_eq!(parse_message(bad), None, "{bad:#x}");
    }
}

/// Values of one id after sets by Cube, Vector 0 and Vector 1: at Vector 0, at Vector 1, at the
/// Cube from each.
fn values(semaphores: &Semaphores) -> [u8; 4] {
    let value = |lane, at_vector| semaphores.value(Counter { id: 5, lane, at_vector });
    [value(Lane::L0, true), value(Lane::L1, true), value(Lane::L0, false), value(Lane::L1, false)]
}

#[test]
fn a_set_of_the_cube_is_for_both_vectors_and_each_waits_for_itself() {
    let mut semaphores = Semaphores::default();
    semaphores.set(CoreId::Cube, 5, Lanes::BOTH).unwrap();
    assert_eq!(values(&semaphores), [1, 1, 0, 0]);
    assert!(semaphores.take(CoreId::Vector0, 5, Lanes::BOTH));
    assert_eq!(values(&semaphores), [0, 1, 0, 0]);
    assert!(!semaphores.take(CoreId::Vector0, 5, Lanes::BOTH), "at zero it blocks");
    assert!(semaphores.take(CoreId::Vector1, 5, Lanes::BOTH));
    assert_eq!(values(&semaphores), [0, 0, 0, 0]);
}

#[test]
fn the_cube_waits_for_both_vectors() {
    // Sets by Vector 0 and Vector 1, and how many waits of the Cube pass.
    for (first, second, passes) in [(0, 0, 0), (1, 0, 0), (0, 1, 0), (3, 0, 0), (1, 1, 1), (2, 1, 1), (2, 3, 2)] {
        let mut semaphores = Semaphores::default();
        for (core, sets) in [(CoreId::Vector0, first), (CoreId::Vector1, second)] {
            for _ in 0..sets {
                semaphores.set(core, 5, Lanes::BOTH).unwrap();
            }
        }
        let before = values(&semaphores);
        assert_eq!(before, [0, 0, first, second], "own contributions");
        let mut passed = 0;
        while semaphores.take(CoreId::Cube, 5, Lanes::BOTH) {
            passed += 1;
        }
        assert_eq!(passed, passes);
        assert_eq!(values(&semaphores), [0, 0, first - passes, second - passes], "a wait that blocks takes nothing");
    }
}

#[test]
fn the_sixteenth_set_overflows_and_changes_nothing() {
    for core in CoreId::ALL {
        for id in 0..16 {
            let mut semaphores = Semaphores::default();
            for _ in 0..15 {
                semaphores.set(core, id, Lanes::BOTH).unwrap();
            }
            let before = semaphores.clone();
            let Overflow(counter) = semaphores.set(core, id, Lanes::BOTH).unwrap_err();
            assert_eq!((counter.id, counter.setter()), (id, core));
            assert_eq!(semaphores, before);
        }
    }
}

#[test]
fn a_core_that_sets_sixteen_times_faults_with_core_id_and_pipe() {
    for core in CoreId::ALL {
        let mut cluster = Cluster::new(Config::new(Arch::A2A3, 1));
        cluster.spawn(core, async move |core| {
            for _ in 0..16 {
                core.set_cross_core(Pipe::Mte3, 7).await?;
            }
            Ok(())
        });
        let fault = cluster.run().unwrap_err();
        assert!(matches!(fault, Fault::Overflow { core: by, pipe: Pipe::Mte3, id: 7, .. } if by == core), "{fault}");
    }
}

#[test]
fn a_fault_cannot_be_passed_over() {
    let mut cluster = Cluster::new(Config::new(Arch::A2A3, 1));
    cluster.spawn(CoreId::Cube, async |core| {
        let _ = core.set_cross_core(Pipe::Fix, 16).await;
        Ok(())
    });
    assert!(matches!(cluster.run().unwrap_err(), Fault::NoSemaphore { id: 16, .. }));
}

#[test]
fn the_cube_blocks_while_only_one_vector_has_set() {
    let mut cluster = Cluster::new(Config::new(Arch::A2A3, 1));
    cluster.spawn(CoreId::Cube, async |core| core.wait_flag_dev(4).await);
    cluster.spawn(CoreId::Vector0, async |core| core.set_cross_core(Pipe::V, 4).await);
    let Fault::Deadlock(deadlock) = cluster.run().unwrap_err() else { panic!() };
    assert_eq!(deadlock.waits[0].from, [CoreId::Vector1]);
    assert!(deadlock.circle.is_empty() && deadlock.ended == [CoreId::Vector0, CoreId::Vector1]);
    let text = deadlock.to_string();
    assert!(text.contains("semaphore 4") && text.contains("Vector 1"), "{text}");
}

/// On A5 the Cube addresses Vector 1 by flag + 16; a Vector's own flags are 0 to 15.
#[test]
fn flags_of_a5_address_each_vector() {
    let mut cluster = Cluster::new(Config::new(Arch::A5, 1));
    cluster.spawn(CoreId::Cube, async |core| {
        core.set_intra_block(Pipe::Fix, 3 + 16).await?;
        core.wait_intra_block(Pipe::Mte1, 9).await?;
        core.wait_intra_block(Pipe::Mte1, 9 + 16).await
    });
    cluster.spawn(CoreId::Vector0, async |core| core.set_intra_block(Pipe::Mte3, 9).await);
    cluster.spawn(CoreId::Vector1, async |core| {
        core.wait_intra_block(Pipe::V, 3).await?;
        core.set_intra_block(Pipe::Mte3, 9).await
    });
    assert_eq!(cluster.run().unwrap().leftovers, []);

    let mut cluster = Cluster::new(Config::new(Arch::A5, 1));
    cluster.spawn(CoreId::Cube, async |core| core.set_intra_block(Pipe::Fix, 3).await);
    let left = cluster.run().unwrap().leftovers;
    assert_eq!(left, [(Counter { id: 3, lane: Lane::L0, at_vector: true }, 1)], "only Vector 0's copy");
}

#[test]
fn flags_and_ids_that_a_core_does_not_have_are_refused() {
    for (arch, core, flag) in
        [(Arch::A5, CoreId::Vector1, 16), (Arch::A5, CoreId::Cube, 32), (Arch::A2A3, CoreId::Cube, 0)]
    {
        let mut cluster = Cluster::new(Config::new(arch, 1));
        cluster.spawn(core, async move |core| core.set_intra_block(Pipe::V, flag).await);
        assert!(matches!(cluster.run().unwrap_err(), Fault::NoSemaphore { id, .. } if id == flag));
    }
    let mut cluster = Cluster::new(Config::new(Arch::A5, 1));
    cluster.spawn(CoreId::Cube, async |core| core.wait_flag_dev(1).await);
    assert!(matches!(cluster.run().unwrap_err(), Fault::NoSemaphore { .. }), "A5 has no FFTS waits");
}

#[test]
fn a_deadlock_of_plain_semaphores_names_its_cycle() {
    let mut cluster = Cluster::new(Config::new(Arch::A2A3, 9));
    cluster.spawn(CoreId::Cube, async |core| core.wait_flag_dev(1).await);
    for vector in [CoreId::Vector0, CoreId::Vector1] {
        cluster.spawn(vector, async |core| core.wait_flag_dev(2).await);
    }
    let Fault::Deadlock(deadlock) = cluster.run().unwrap_err() else { panic!() };
    assert_eq!(deadlock.circle, [CoreId::Cube, CoreId::Vector0]);
    assert_eq!(deadlock.waits.len(), 3);
}
