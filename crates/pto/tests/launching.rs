//! Launch and handshake (seed 002, "Cluster Binding Flow"), the exchange of cluster ids (appendix
//! A), and blocks that follow one another on a cluster (seed 002, appendix B).

#[path = "common/tiles.rs"]
mod tiles;

use tilework_pto::ids::{CommBuffer, CoreKind, IdError};
use tilework_pto::launch::{Mapping, Stage};
use tilework_pto::memory::{MemoryError, Space};
use tilework_pto::{
    Arch, Base, Binding, Cluster, Config, CoreId, DType, Direction, Fault, Handshake, LaunchError, Pipe, RingSpec,
    Scheduler, Shape,
};

fn mapped(arch: Arch, blocks: u32) -> (Handshake, Vec<Mapping>) {
    let mut handshake = Handshake::new(Scheduler::new(arch, blocks));
    handshake.request(blocks).unwrap();
    let mapping = handshake.mapping().unwrap();
    (handshake, mapping)
}

#[test]
fn ffts_gives_a_cube_and_two_vectors_the_same_block() {
    for arch in Arch::ALL {
        let mut scheduler = Scheduler::new(arch, arch.clusters());
        let bindings: Vec<Binding> = std::iter::from_fn(|| scheduler.start_block()).collect();
        assert_eq!(bindings.len(), arch.clusters() as usize);
        let mut cores: Vec<_> = bindings.iter().flat_map(|b| CoreId::ALL.map(|core| b.core_id(core))).collect();
        for (block, binding) in (0..).zip(&bindings) {
            assert_eq!((binding.block_idx(), binding.cluster()), (block, block));
            assert!(binding.ffts_ready());
            assert_eq!(CoreKind::of(arch, binding.core_id(CoreId::Cube)), Ok(CoreKind::Cube));
            for (subblock, core) in [(0, CoreId::Vector0), (1, CoreId::Vector1)] {
                assert_eq!(CoreKind::of(arch, binding.core_id(core)), Ok(CoreKind::Vector { subblock }));
            }
        }
        cores.sort_unstable();
        assert!(cores.into_iter().eq(0..arch.clusters() * 3), "every core once");
    }
}

#[test]
fn the_handshake_in_its_order() {
    for arch in Arch::ALL {
        let (mut handshake, mapping) = mapped(arch, 2);
        assert_eq!(mapping.len(), 6);
        let blocks: Vec<_> = mapping.iter().map(|row| (row.block_idx, row.kind.subblock())).collect();
        assert_eq!(blocks, [(0, None), (0, Some(0)), (0, Some(1)), (1, None), (1, Some(0)), (1, Some(1))]);
        for block in 0..2 {
            handshake.init_ffts_addr(block).unwrap();
        }
        assert_eq!(handshake.launch(1).unwrap().block_idx(), 1);
        assert_eq!(handshake.launch(1), Err(LaunchError::AlreadyRunning { block_idx: 1 }));
        assert_eq!(handshake.stage(), Stage::Mapped);
        let stated = [mapping[0], mapping[1], mapping[2]];
        assert!(handshake.launch_with(&stated).unwrap().ffts_ready());
        assert_eq!(handshake.stage(), Stage::Launched);
    }
}

#[test]
fn the_handshake_out_of_order_is_refused() {
    let mut handshake = Handshake::new(Scheduler::new(Arch::A2A3, 3));
    let order =
        |result: Result<(), LaunchError>| assert!(matches!(result, Err(LaunchError::Order { .. })), "{result:?}");
    order(handshake.mapping().map(drop));
    order(handshake.init_ffts_addr(0));
    order(handshake.launch(0).map(drop));
    handshake.request(1).unwrap();
    order(handshake.request(1));
    order(handshake.init_ffts_addr(0));
    order(handshake.launch(0).map(drop));
    handshake.mapping().unwrap();
    order(handshake.mapping().map(drop));
    assert_eq!(handshake.launch(0), Err(LaunchError::NotInitialised { block_idx: 0 }));
    assert_eq!(handshake.launch(1), Err(LaunchError::NotMapped { block_idx: 1 }));
    handshake.init_ffts_addr(0).unwrap();
    handshake.launch(0).unwrap();
    order(handshake.init_ffts_addr(0));
    order(handshake.launch(0).map(drop));
    assert!(matches!(Handshake::new(Scheduler::new(Arch::A2A3, 30)).request(26), Err(LaunchError::NoCluster { .. })));
    assert!(matches!(Handshake::new(Scheduler::new(Arch::A2A3, 30)).request(0), Err(LaunchError::NoCluster { .. })));
}

#[test]
fn a_launch_with_other_ids_than_mapped_is_refused() {
    let (mut handshake, mapping) = mapped(Arch::A5, 2);
    let right = [mapping[0], mapping[1], mapping[2]];
    let swapped = [
        right[0],
        Mapping { kind: CoreKind::Vector { subblock: 1 }, ..right[1] },
        Mapping { kind: CoreKind::Vector { subblock: 0 }, ..right[2] },
    ];
    let foreign = [right[0], right[1], mapping[5]];
    let renamed = right.map(|row| Mapping { block_idx: 1, ..row });
    for wrong in [swapped, foreign, renamed] {
        let error = handshake.launch_with(&wrong).unwrap_err();
        assert!(matches!(error, LaunchError::NotAsMapped { .. }), "{error}");
    }
    handshake.launch_with(&right).unwrap();
}

#[test]
fn without_ffts_addr_the_first_semaphore_faults_on_a2a3_only() {
    for (arch, faults) in [(Arch::A2A3, true), (Arch::A5, false)] {
        let (mut handshake, _) = mapped(arch, 1);
        let binding = handshake.launch_as_is(0).unwrap();
        let mut cluster = Cluster::bound(Config::new(arch, 4), &binding);
        let ring = cluster.ring(RingSpec::new("r", Direction::V2C, Shape::new(2, 8, DType::F32))).unwrap();
        cluster.spawn(CoreId::Cube, async move |core| core.open(&ring).await.map(drop));
        let result = cluster.run();
        if faults {
            let fault = result.unwrap_err();
            assert!(matches!(fault, Fault::NoFftsAddress { core: CoreId::Cube, id: 3, .. }), "{fault}");
        } else {
            result.unwrap();
        }
    }
    let mut cluster = Cluster::bound(Config::new(Arch::A2A3, 4), &mapped(Arch::A2A3, 1).0.launch_as_is(0).unwrap());
    cluster.spawn(CoreId::Vector1, async |core| core.wait_flag_dev(3).await);
    assert!(matches!(cluster.run().unwrap_err(), Fault::NoFftsAddress { core: CoreId::Vector1, id: 3, .. }));
}

/// Runs `TSYNC_CVID` on all three cores of a binding.
fn exchange(arch: Arch, seed: u64, binding: &Binding, buffer: CommBuffer) -> Result<[Option<u32>; 3], Fault> {
    let mut cluster = Cluster::bound(Config::new(arch, seed), binding);
    let ids = CoreId::ALL.map(|id| cluster.spawn(id, async move |core| core.sync_cluster_id(&buffer).await));
    let report = cluster.run()?;
    assert_eq!(report.leftovers, []);
    Ok(ids.map(|id| id.take()))
}

#[test]
fn all_cores_of_every_cluster_learn_the_same_id() {
    for arch in Arch::ALL {
        let mut scheduler = Scheduler::new(arch, arch.clusters());
        let buffer = CommBuffer::reserved(4096);
        while let Some(binding) = scheduler.start_block() {
            for seed in 0..5 {
                let id = Some(binding.cluster());
                assert_eq!(exchange(arch, seed, &binding, buffer).unwrap(), [id; 3]);
            }
        }
    }
}

#[test]
fn the_word_of_the_exchange_is_in_the_blocks_slot() {
    let mut scheduler = Scheduler::new(Arch::A2A3, 5);
    let binding = std::iter::from_fn(|| scheduler.start_block()).last().unwrap();
    let mut cluster = Cluster::bound(Config::new(Arch::A2A3, 4), &binding);
    let buffer = CommBuffer::reserved(0);
    cluster.reserve("cv_comm_buf", Space::Gm, buffer.bytes() as usize, Base::At(0)).unwrap();
    for id in CoreId::ALL {
        cluster.spawn(id, async move |core| core.sync_cluster_id(&buffer).await);
    }
    cluster.run().unwrap();
    assert_eq!(cluster.read(Space::Gm, 4 * 512, 4).unwrap(), [4, 0, 0, 0]);
}

/// The order write, flush, set is what makes the word visible: without the flush a Vector reads
/// what was there before.
#[test]
fn a_word_that_is_not_flushed_is_not_seen() {
    for flush in [true, false] {
        let mut cluster = Cluster::new(Config::new(Arch::A2A3, 4));
        cluster.spawn(CoreId::Cube, async move |core| {
            core.store_word(0, 17).await?;
            if flush {
                core.flush(0).await?;
            }
            core.set_cross_core(Pipe::Mte2, 12).await
        });
        let read = cluster.spawn(CoreId::Vector0, async |core| {
            core.flush(0).await?;
            core.wait_flag_dev(12).await?;
            core.load_word(0).await
        });
        cluster.run().unwrap();
        assert_eq!(read.take(), Some(if flush { 17 } else { 0 }));
    }
}

/// Blocks that follow one another use the same lines: a Vector that has read one must drop it, and
/// not write it back.
#[test]
fn the_next_block_reads_its_own_word() {
    let mut cluster = Cluster::new(Config::new(Arch::A2A3, 4));
    for word in [17, 18, 19] {
        cluster.spawn(CoreId::Cube, async move |core| {
            core.store_word(512, word).await?;
            core.flush(512).await?;
            core.set_cross_core(Pipe::Mte2, 12).await
        });
        let read = [CoreId::Vector0, CoreId::Vector1].map(|id| {
            cluster.spawn(id, async |core| {
                core.work(Pipe::S, 5000, "late").await;
                core.flush(512).await?;
                core.wait_flag_dev(12).await?;
                core.load_word(512).await
            })
        });
        cluster.run().unwrap();
        assert_eq!(read.map(|read| read.take()), [Some(word); 2]);
        cluster.next_block(&Binding::direct(Arch::A2A3));
    }
}

#[test]
fn a_ring_of_another_cluster_or_block_is_refused() {
    let spec = RingSpec::new("old", Direction::C2V, Shape::new(2, 8, DType::F32));
    let mut cluster = Cluster::new(Config::new(Arch::A5, 4));
    let ring = cluster.ring(spec.clone()).unwrap();
    let opened = ring.clone();
    let end = cluster.spawn(CoreId::Vector0, async move |core| core.open(&opened).await);
    cluster.run().unwrap();
    cluster.next_block(&Binding::direct(Arch::A5));
    let mut end = end.take().unwrap();
    cluster.spawn(CoreId::Vector0, async move |_| end.pop().await);
    let fault = cluster.run().unwrap_err();
    assert!(matches!(&fault, Fault::Usage(text) if text.contains("`old`")), "{fault}");

    let mut other = Cluster::new(Config::new(Arch::A5, 4));
    other.spawn(CoreId::Cube, async move |core| core.open(&ring).await.map(drop));
    assert!(matches!(other.run().unwrap_err(), Fault::Usage(_)));
}

#[test]
fn a_kernel_that_awaits_something_foreign_is_refused() {
    let mut cluster = Cluster::new(Config::new(Arch::A5, 4));
    cluster.spawn(CoreId::Vector1, async |_| std::future::pending::<Result<(), Fault>>().await);
    let fault = cluster.run().unwrap_err();
    assert!(matches!(&fault, Fault::Usage(text) if text.contains("Vector 1")), "{fault}");
}

#[test]
fn more_blocks_than_clusters_follow_one_another_with_a_larger_buffer() {
    let (arch, block_dim) = (Arch::A2A3, 30);
    let mut scheduler = Scheduler::new(arch, block_dim);
    let first: Vec<_> = std::iter::from_fn(|| scheduler.start_block()).collect();
    assert_eq!(first.len(), 25, "no cluster is left");
    let busy = scheduler.start_block_on(3).unwrap_err();
    assert_eq!(busy, LaunchError::Busy { cluster: 3, running: 3, block: 25 });
    scheduler.end_block(&first[3]);
    let second = scheduler.start_block().unwrap();
    assert_eq!((second.block_idx(), second.cluster()), (25, 3), "the same cluster id as block 3");

    let fault = exchange(arch, 1, &second, CommBuffer::reserved(0)).unwrap_err();
    assert_eq!(fault, Fault::Id(IdError::PastReservation { block_idx: 25, reserved: 12_800 }));
    let ids = exchange(arch, 1, &second, CommBuffer::for_blocks(0, block_dim)).unwrap();
    assert_eq!(ids, [Some(3); 3]);
}

/// One block on a cluster: sends tiles, and closes its rings or not.
fn block(cluster: &mut Cluster, closes: bool) -> Result<(), Fault> {
    let ring = cluster.ring(RingSpec::new("r", Direction::C2V, Shape::new(2, 8, DType::F32)).slots(3))?;
    for id in CoreId::ALL {
        let ring = ring.clone();
        cluster.spawn(id, async move |core| {
            let mut end = core.open(&ring).await?;
            for number in 0..5 {
                if id == CoreId::Cube {
                    end.push(&tiles::whole(ring.spec().tile, number)).await?;
                } else {
                    let tile = end.pop_tile().await?;
                    assert_eq!(tile, tiles::half(&tiles::whole(ring.spec().tile, number), id));
                    end.free().await?;
                }
            }
            if closes { end.close().await } else { Ok(()) }
        });
    }
    cluster.run().map(drop)
}

#[test]
fn what_a_block_leaves_in_the_semaphores_breaks_the_next_block() {
    for arch in Arch::ALL {
        for closes in [true, false] {
            let mut scheduler = Scheduler::new(arch, 2);
            let first = scheduler.start_block_on(0).unwrap();
            let mut cluster = Cluster::bound(Config::new(arch, 8), &first);
            block(&mut cluster, closes).unwrap();
            scheduler.end_block(&first);
            let second = scheduler.start_block_on(0).unwrap();
            cluster.next_block(&second);
            let result = block(&mut cluster, closes);
            if closes {
                result.unwrap();
                continue;
            }
            let fault = result.unwrap_err();
            let Fault::Credits { ring, ready, free, held, in_flight, granted, .. } = &fault else { panic!("{fault}") };
            assert_eq!((ring.as_str(), ready + free + held + in_flight), ("r", granted + 3), "three slots were left");
            assert!(fault.to_string().contains("an earlier block left counts"), "{fault}");
        }
    }
}

#[test]
fn overlapping_buffers_and_imports_of_nothing_are_refused() {
    let shape = Shape::new(4, 8, DType::F32);
    let mut cluster = Cluster::new(Config::new(Arch::A5, 0));
    cluster.reserve("mine", Space::Ub(tilework_pto::Lane::L1), 64, Base::At(256)).unwrap();
    let spec = RingSpec::new("r", Direction::C2V, shape).slots(2);
    let error = cluster.ring(spec.clone().base(Base::At(32))).unwrap_err();
    assert!(error.to_string().contains("`mine`") && error.to_string().contains("UB of Vector 1"), "{error}");
    let beside = RingSpec::new("beside", Direction::C2V, shape).flag(8).slots(3);
    cluster.ring(beside).unwrap();
    let found = cluster.import("beside", Space::Ub(tilework_pto::Lane::L0)).unwrap();
    assert_eq!(found.base, 320, "AUTO is an address that is free in both UBs: 384 bytes do not fit below 256");
    let ring = cluster.ring(spec.clone().base(Base::At(1024))).unwrap();
    assert_eq!(ring.spec().name, "r");
    let imported = cluster.import("r", Space::Ub(tilework_pto::Lane::L0)).unwrap();
    assert_eq!((imported.base, imported.bytes), (1024, 256));
    assert!(matches!(cluster.import("r", Space::L1), Err(Fault::Memory(MemoryError::NotReserved { .. }))));
    // A ring that fails leaves nothing behind.
    let again = RingSpec::new("s", Direction::C2V, shape).flag(4).base(Base::At(1000));
    assert!(cluster.ring(again.clone()).is_err());
    cluster.ring(again.base(Base::Auto)).unwrap();
    let large = RingSpec::new("t", Direction::C2V, Shape::new(512, 512, DType::F32)).flag(6).slots(4);
    assert!(cluster.ring(large).unwrap_err().to_string().contains("does not fit"));
    assert!(cluster.reserve("x", Space::L1, usize::MAX, Base::At(8)).is_err());
}
