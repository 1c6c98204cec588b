//! How the Vectors share a slot: byte offsets against plain indexing, in memory and through the
//! rings (`TileSplitAxis` of `pto-isa`), and which tiles are refused.

#[path = "common/tiles.rs"]
mod tiles;

use tilework_pto::memory::Space;
use tilework_pto::{
    Arch, Cluster, Config, CoreId, DType, Direction, Fault, Lane, RingError, RingSpec, Shape, Split, Tile,
};

const VECTORS: [CoreId; 2] = [CoreId::Vector0, CoreId::Vector1];

/// What a Vector has of a whole tile, by plain indexing.
fn share(tile: &Tile, split: Split, core: CoreId) -> Tile {
    let (rows, cols) = (tile.shape().rows, tile.shape().cols);
    let second = core == CoreId::Vector1;
    let part = |length: usize| {
        let middle = length.div_ceil(2);
        if second { (middle, length) } else { (0, middle) }
    };
    match split {
        Split::None if second => Tile::zeros(tile.shape()),
        Split::None => tile.clone(),
        Split::UpDown | Split::UpDownOdd => tiles::cut(tile, part(rows), (0, cols)),
        Split::LeftRight | Split::LeftRightOdd => tiles::cut(tile, (0, rows), part(cols)),
    }
}

fn sizes(split: Split) -> (usize, usize) {
    match split {
        Split::UpDownOdd => (5, 128),
        Split::LeftRightOdd => (5, 127),
        _ => (6, 64),
    }
}

/// The Cube pushes, the Vectors compare their shares. Returns what is in the first slot.
fn to_vectors(arch: Arch, direction: Direction, split: Split, dtype: DType) -> Result<Vec<u8>, Fault> {
    let (rows, cols) = sizes(split);
    let shape = Shape::new(rows, cols, dtype);
    let mut cluster = Cluster::new(Config::new(arch, 11));
    let ring = cluster.ring(RingSpec::new("c2v", direction, shape).slots(3).split(split))?;
    for id in CoreId::ALL {
        if arch == Arch::A5 && split == Split::None && id == CoreId::Vector1 {
            continue;
        }
        let ring = ring.clone();
        cluster.spawn(id, async move |core| {
            let mut end = core.open(&ring).await?;
            for number in 0..7 {
                let tile = tiles::whole(shape, number);
                if id == CoreId::Cube {
                    end.push(&tile).await?;
                } else {
                    assert_eq!(
                        end.pop_tile().await?,
                        share(&tile, split, id),
                        "{arch} {split:?} {dtype:?} {id} {number}"
                    );
                    end.free().await?;
                }
            }
            end.close().await
        });
    }
    cluster.run()?;
    let space = if arch == Arch::A5 && direction == Direction::C2V { Space::Ub(Lane::L1) } else { Space::Gm };
    cluster.read(space, 0, shape.bytes())
}

/// The Vectors push their shares, the Cube compares the whole. Returns what is in the first slot.
fn to_cube(arch: Arch, direction: Direction, split: Split, dtype: DType) -> Result<Vec<u8>, Fault> {
    let (rows, cols) = sizes(split);
    let shape = Shape::new(rows, cols, dtype);
    let mut cluster = Cluster::new(Config::new(arch, 11));
    let ring = cluster.ring(RingSpec::new("v2c", direction, shape).slots(3).split(split))?;
    for id in CoreId::ALL {
        if arch == Arch::A5 && split == Split::None && id == CoreId::Vector1 {
            continue;
        }
        let ring = ring.clone();
        cluster.spawn(id, async move |core| {
            let mut end = core.open(&ring).await?;
            for number in 0..7 {
                let tile = tiles::whole(shape, number);
                if id.is_vector() {
                    end.push(&share(&tile, split, id)).await?;
                } else {
                    assert_eq!(end.pop_tile().await?, tile, "{arch} {split:?} {dtype:?} {number}");
                    end.free().await?;
                }
            }
            end.close().await
        });
    }
    cluster.run()?;
    let space = if arch == Arch::A5 && direction == Direction::V2C { Space::L1 } else { Space::Gm };
    cluster.read(space, 0, shape.bytes())
}

#[test]
fn shares_of_vectors_are_where_plain_indexing_has_them() {
    for dtype in [DType::F32, DType::I32] {
        for split in Split::ALL {
            let (rows, cols) = sizes(split);
            // Slot 0 holds tile 6 at last; in memory it is the whole tile, row by row.
            let last = tiles::whole(Shape::new(rows, cols, dtype), 6);
            assert_eq!(to_vectors(Arch::A2A3, Direction::C2V, split, dtype).unwrap(), last.bytes());
            assert_eq!(to_vectors(Arch::A5, Direction::C2vGm, split, dtype).unwrap(), last.bytes());
            if split.is_odd() {
                continue;
            }
            let ub = to_vectors(Arch::A5, Direction::C2V, split, dtype).unwrap();
            let own = share(&last, split, CoreId::Vector1);
            assert_eq!(ub[..own.bytes().len()], *own.bytes(), "each UB has its own share from the slot's start");
            assert_eq!(to_cube(Arch::A2A3, Direction::V2C, split, dtype).unwrap(), last.bytes());
            assert_eq!(to_cube(Arch::A5, Direction::V2cGm, split, dtype).unwrap(), last.bytes());
            assert_eq!(to_cube(Arch::A5, Direction::V2C, split, dtype).unwrap(), last.bytes());
        }
    }
}

#[test]
fn small_elements_go_to_the_cube_and_over_memory() {
    for dtype in [DType::F16, DType::I16, DType::I8] {
        for split in [Split::None, Split::UpDown, Split::LeftRight] {
            to_vectors(Arch::A2A3, Direction::C2V, split, dtype).unwrap();
            to_cube(Arch::A2A3, Direction::V2C, split, dtype).unwrap();
            to_cube(Arch::A5, Direction::V2C, split, dtype).unwrap();
        }
    }
}

/// The formulas of `pto-isa`, with numbers.
#[test]
fn offsets_and_strides_in_bytes() {
    let place = |split: Split, rows, cols, lane| {
        let place = split.place(Shape::new(rows, cols, DType::F16), lane);
        (place.offset, place.stride)
    };
    let (first, second) = (Lane::L0, Lane::L1);
    assert_eq!(place(Split::None, 4, 8, second), (0, 16));
    assert_eq!((place(Split::UpDown, 4, 8, first), place(Split::UpDown, 4, 8, second)), ((0, 16), (64, 16)));
    assert_eq!((place(Split::LeftRight, 4, 8, first), place(Split::LeftRight, 4, 8, second)), ((0, 32), (16, 32)));
    // Odd: 5 rows are 3 and 2, 7 columns are 4 and 3.
    assert_eq!((place(Split::UpDownOdd, 3, 8, first), place(Split::UpDownOdd, 2, 8, second)), ((0, 16), (48, 16)));
    assert_eq!((place(Split::LeftRightOdd, 4, 4, first), place(Split::LeftRightOdd, 4, 3, second)), ((0, 14), (8, 14)));
}

#[test]
fn tiles_that_the_documents_do_not_allow_are_refused() {
    let refused = |arch, direction, split, rows, cols, dtype| {
        let spec = RingSpec::new("r", direction, Shape::new(rows, cols, dtype)).split(split);
        matches!(spec.check(arch), Err(RingError::Tile { .. }))
    };
    use Direction::{C2V, C2vGm, V2C, V2cGm};
    // A5, L0C to UB: 32 bits only, even rows, columns a multiple of 32.
    assert!(refused(Arch::A5, C2V, Split::UpDown, 16, 32, DType::F16));
    assert!(!refused(Arch::A5, C2V, Split::None, 16, 32, DType::F16));
    assert!(refused(Arch::A5, C2V, Split::UpDown, 15, 32, DType::F32));
    assert!(refused(Arch::A5, C2V, Split::LeftRight, 16, 48, DType::F32));
    assert!(!refused(Arch::A5, C2V, Split::LeftRight, 16, 64, DType::F32));
    // A5, UB to L1: a row of a share is a multiple of 32 bytes.
    assert!(refused(Arch::A5, V2C, Split::LeftRight, 16, 24, DType::F16));
    assert!(!refused(Arch::A5, V2C, Split::LeftRight, 16, 32, DType::F16));
    // Odd splits only where Vectors pop from memory.
    for (arch, direction, refuse) in [
        (Arch::A2A3, C2V, false),
        (Arch::A5, C2vGm, false),
        (Arch::A5, C2V, true),
        (Arch::A2A3, V2C, true),
        (Arch::A5, V2cGm, true),
    ] {
        assert_eq!(refused(arch, direction, Split::UpDownOdd, 5, 128, DType::F32), refuse, "{arch} {direction:?}");
        assert_eq!(refused(arch, direction, Split::LeftRightOdd, 5, 127, DType::F32), refuse);
    }
    assert!(refused(Arch::A2A3, C2V, Split::UpDownOdd, 6, 128, DType::F32), "odd needs an odd number");
    assert!(refused(Arch::A2A3, C2V, Split::UpDown, 5, 128, DType::F32), "and even an even one");
    assert!(refused(Arch::A2A3, C2V, Split::None, 0, 8, DType::F32));
    let small = RingSpec::new("r", C2V, Shape::new(4, 8, DType::F32)).slot_bytes(100);
    assert!(matches!(small.check(Arch::A2A3), Err(RingError::Tile { .. })));
    // Directions through memory by name are A5's.
    for direction in [C2vGm, V2cGm, Direction::BothGm] {
        let spec = RingSpec::new("r", direction, Shape::new(4, 8, DType::F32));
        assert!(matches!(spec.check(Arch::A2A3), Err(RingError::NoDirection { .. })));
    }
}

#[test]
fn reserved_and_shared_semaphore_ids_are_refused() {
    let shape = Shape::new(4, 8, DType::F32);
    let check =
        |direction, flag, profile| RingSpec::new("r", direction, shape).flag(flag).profile(profile).check(Arch::A5);
    use tilework_pto::Profile::{Counting, PerTagFlags, SparseCredits};
    assert!(check(Direction::C2V, 10, Counting).is_ok() && check(Direction::C2V, 11, Counting).is_err());
    assert!(check(Direction::Both, 8, Counting).is_ok() && check(Direction::Both, 9, Counting).is_err());
    // Defect 5: the headers check against 16 only.
    assert!(check(Direction::Both, 12, SparseCredits).is_ok() && check(Direction::Both, 13, SparseCredits).is_err());
    assert!(check(Direction::C2V, 4, PerTagFlags).is_ok() && check(Direction::C2V, 5, PerTagFlags).is_err());
    let mut cluster = Cluster::new(Config::new(Arch::A5, 0));
    cluster.ring(RingSpec::new("one", Direction::C2V, shape)).unwrap();
    let error = cluster.ring(RingSpec::new("two", Direction::V2C, shape).flag(1)).unwrap_err();
    assert!(matches!(&error, RingError::SharedId { ring, other, id: 1 } if ring == "two" && other == "one"), "{error}");
    cluster.ring(RingSpec::new("three", Direction::V2C, shape)).unwrap();
}

/// Tiles of unequal size in one ring (the documents' `tpushpop_mixed_tile_size`): slots and copies
/// keep their stride.
#[test]
fn tiles_of_unequal_size_share_a_ring() {
    let shapes = [(64, 64), (32, 16), (64, 32), (2, 8), (64, 64), (16, 64)].map(|(r, c)| Shape::new(r, c, DType::F32));
    for arch in Arch::ALL {
        let mut cluster = Cluster::new(Config::new(arch, 2));
        let ring = cluster.ring(RingSpec::new("mixed", Direction::C2V, shapes[0]).slots(2)).unwrap();
        let to = ring.clone();
        cluster.spawn(CoreId::Cube, async move |core| {
            let mut end = core.open(&to).await?;
            for (number, shape) in shapes.into_iter().enumerate() {
                end.push_shaped(&tiles::whole(shape, number), shape).await?;
            }
            end.close().await
        });
        for id in VECTORS {
            let from = ring.clone();
            cluster.spawn(id, async move |core| {
                let mut end = core.open(&from).await?;
                // Two tiles are held at a time.
                for pair in [0, 2, 4] {
                    let (first, second) =
                        (end.pop_shaped(shapes[pair]).await?, end.pop_shaped(shapes[pair + 1]).await?);
                    for (popped, number) in [(second, pair + 1), (first, pair)] {
                        assert_eq!(end.read(&popped).await?, tiles::half(&tiles::whole(shapes[number], number), id));
                    }
                    end.free().await?;
                    end.free().await?;
                }
                end.close().await
            });
        }
        cluster.run().unwrap();
    }
}

#[test]
fn a_tile_of_another_shape_is_refused() {
    for (shape, direction) in
        [(Shape::new(4, 4, DType::F32), Direction::C2V), (Shape::new(4, 8, DType::F32), Direction::V2C)]
    {
        let mut cluster = Cluster::new(Config::new(Arch::A5, 2));
        let ring =
            cluster.ring(RingSpec::new("r", direction, Shape::new(4, 8, DType::F32)).split(Split::UpDown)).unwrap();
        let id = if direction == Direction::C2V { CoreId::Cube } else { CoreId::Vector1 };
        cluster.spawn(id, async move |core| core.open(&ring).await?.push(&Tile::zeros(shape)).await);
        let fault = cluster.run().unwrap_err();
        assert!(matches!(&fault, Fault::WrongShape { got, .. } if *got == shape), "{fault}");
    }
}
