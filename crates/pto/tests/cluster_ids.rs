//! Cluster ids against worked tables (docs/pto.md) and the constants of seed 002.

use tilework_pto::Arch;
use tilework_pto::ids::{
    CommBuffer, CoreKind, IdError, PhysicalCube, PhysicalVector, cluster_of_block, formula, slot_buffer, table,
};

#[test]
fn constants_are_the_seeds() {
    let of = |arch: Arch| {
        (arch.clusters_per_die(), arch.vectors_per_cube(), arch.cores_per_die(), arch.clusters(), arch.comm_bytes())
    };
    assert_eq!(of(Arch::A5), (18, 2, 54, 36, 0));
    assert_eq!(of(Arch::A2A3), (25, 2, 75, 25, 12_800));
    assert_eq!((Arch::A5.comm_reserved(), Arch::A2A3.comm_reserved()), (0, 16 * 1024));
    assert_eq!(Arch::A5.header_max_cores(), 25, "the header of A5, unlike the seed's 36");
}

#[test]
fn cubes_of_a5_as_worked() {
    for (core_id, cluster) in [(0, 0), (1, 1), (17, 17), (54, 18), (55, 19), (71, 35)] {
        assert_eq!(PhysicalCube::new(Arch::A5, core_id).unwrap().cluster(), cluster);
        assert_eq!(formula::a5_cube(core_id), cluster);
    }
}

#[test]
fn vectors_of_a5_as_worked() {
    let worked = [
        (18, 0, 0),
        (19, 1, 0),
        (20, 0, 1),
        (21, 1, 1),
        (52, 0, 17),
        (53, 1, 17),
        (72, 0, 18),
        (73, 1, 18),
        (106, 0, 35),
        (107, 1, 35),
    ];
    for (core_id, subblock, cluster) in worked {
        assert_eq!(PhysicalVector::new(Arch::A5, core_id, subblock).unwrap().cluster(), Ok(cluster));
        assert_eq!(formula::a5_vector(core_id, subblock), i64::from(cluster));
    }
}

#[test]
fn all_72_vectors_of_a5_agree_with_their_cube() {
    for die in 0..2_u32 {
        for pair in 0..18_u32 {
            let cube = die * 54 + pair;
            let cluster = PhysicalCube::new(Arch::A5, cube).unwrap().cluster();
            assert_eq!(cluster, die * 18 + pair);
            for subblock in 0..2 {
                let vector = die * 54 + 18 + 2 * pair + subblock;
                assert_eq!(PhysicalVector::new(Arch::A5, vector, subblock).unwrap().cluster(), Ok(cluster));
            }
        }
    }
    let entries = table(Arch::A5);
    assert_eq!(entries.len(), 108);
    for cluster in 0..36 {
        let kinds: Vec<_> = entries.iter().filter(|entry| entry.cluster == cluster).map(|entry| entry.kind).collect();
        assert_eq!(kinds, [CoreKind::Cube, CoreKind::Vector { subblock: 0 }, CoreKind::Vector { subblock: 1 }]);
    }
}

#[test]
fn swapped_subblock_ids_are_refused_where_the_formula_gives_a_number() {
    for (core_id, given, formula) in [(18, 1, 0), (19, 0, 0), (20, 1, 0), (21, 0, 1), (52, 1, 16)] {
        assert_eq!(formula::a5_vector(core_id, given), formula, "the formula's wrong value");
        let error = PhysicalVector::new(Arch::A5, core_id, given).unwrap_err();
        let text = error.to_string();
        assert!(
            text.contains(&format!("core {core_id} ")) && text.contains(&format!("not subblock {given}")),
            "{text}"
        );
        assert!(matches!(error, IdError::OtherSubblock { formula: named, .. } if named == formula), "{error}");
    }
}

#[test]
fn the_cubes_formula_on_a_vector_is_refused() {
    for (core_id, formula) in [(18, 18), (72, 36)] {
        assert_eq!(formula::a5_cube(core_id), formula);
        let error = PhysicalCube::new(Arch::A5, core_id).unwrap_err();
        assert!(matches!(error, IdError::NotACube { core_id: named, .. } if named == core_id));
        assert!(error.to_string().contains(&format!("cluster {formula}")), "{error}");
    }
    assert_eq!(
        PhysicalVector::new(Arch::A5, 17, 0),
        Err(IdError::NotAVector { arch: Arch::A5, core_id: 17 }),
        "nor the Vector's on a Cube"
    );
}

#[test]
fn ids_past_the_last_are_refused() {
    for (arch, last) in [(Arch::A5, 107), (Arch::A2A3, 74)] {
        assert!(CoreKind::of(arch, last).is_ok());
        for core_id in [last + 1, u32::MAX] {
            assert_eq!(CoreKind::of(arch, core_id), Err(IdError::PastLast { arch, core_id, last }));
            assert!(PhysicalCube::new(arch, core_id).is_err() && PhysicalVector::new(arch, core_id, 0).is_err());
        }
    }
}

#[test]
fn cubes_of_a2a3_as_worked() {
    let worked = [(0, 0), (7, 7), (24, 24), (25, 0), (26, 1), (49, 24), (50, 0), (127, 2), (128, 0), (153, 0)];
    for (core_id, cluster) in worked {
        assert_eq!(formula::a2a3_cube(core_id), cluster);
        let cube = PhysicalCube::new(Arch::A2A3, core_id).map(PhysicalCube::cluster);
        // From 25 on the formula folds ids onto clusters that other Cubes have.
        assert_eq!(cube.ok(), (core_id < 25).then_some(cluster));
    }
    let vector = PhysicalVector::new(Arch::A2A3, 25, 0).unwrap();
    assert_eq!(vector.cluster(), Err(IdError::NoFormula { core_id: 25 }), "a Vector of A2A3 must be told");
}

#[test]
fn the_26th_block_is_past_the_reservation() {
    let buffer = CommBuffer::reserved(0x1000);
    assert_eq!(buffer.bytes(), 12_800);
    for block in 0..25 {
        assert_eq!(buffer.slot(block), Ok(0x1000 + block as usize * 512));
    }
    let error = buffer.slot(25).unwrap_err();
    assert_eq!(error, IdError::PastReservation { block_idx: 25, reserved: 12_800 });
    assert!(error.to_string().contains("block 25") && error.to_string().contains("12800"), "{error}");
    assert!(buffer.slot(u32::MAX).is_err());
    let larger = CommBuffer::for_blocks(0, 40);
    assert_eq!(larger.slot(39), Ok(39 * 512));
    assert!(larger.slot(40).is_err());
}

#[test]
fn a_block_is_its_cluster_while_there_are_enough_clusters() {
    for arch in Arch::ALL {
        let clusters = arch.clusters();
        for block in 0..clusters {
            assert_eq!(cluster_of_block(arch, block, clusters), Ok(block));
        }
        let block_dim = clusters + 1;
        let error = cluster_of_block(arch, 0, block_dim).unwrap_err();
        assert_eq!(error, IdError::OverSubscribed { arch, block_dim, clusters });
        assert!(cluster_of_block(arch, 4, 4).is_err());
    }
    assert_eq!(slot_buffer(0x4000, 3, 0x800), Some(0x5800));
    assert_eq!(slot_buffer(usize::MAX, 1, 1), None);
}
