//! Placement against worked examples, and against a naive model for any shape.

use super::super::{
    BufferConfig, CoreCoord, CoreGrid, CoreRange, CoreRangeSet, MemorySpace, ShardOrientation, ShardSpec,
};
use super::*;
use ShardOrientation::{ColMajor, RowMajor};
use TensorMemoryLayout::{BlockSharded, HeightSharded, WidthSharded};
use proptest::prelude::*;
use std::collections::BTreeMap;
use tilework_abi::board::Board;
use tilework_abi::l1::WORKER;

fn memory() -> MemorySpace {
    MemorySpace::new(Board::P100, &WORKER)
}

fn grid(x0: u32, y0: u32, x1: u32, y1: u32) -> CoreRangeSet {
    CoreRangeSet::new([CoreRange::new(CoreCoord::new(x0, y0), CoreCoord::new(x1, y1))]).unwrap()
}

/// Tiles of 2 KiB in shards of `shard` tiles.
fn tiles(
    layout: TensorMemoryLayout,
    tensor: [u32; 2],
    shard: [u32; 2],
    grid: CoreRangeSet,
    orientation: ShardOrientation,
) -> BufferConfig {
    let spec = ShardSpec { grid, shape: shard.map(|n| 32 * n), orientation };
    let shard = ShardSpecBuffer { tensor_shard_spec: spec, page_shape: [32, 32], tensor2d_shape_in_pages: tensor };
    BufferConfig::sharded("x", BufferType::L1, layout, 2048, shard)
}

/// What each core holds, by the offset in pages.
fn held(buffer: &Buffer) -> BTreeMap<(u32, u32), Vec<(u64, u32)>> {
    let grid = CoreGrid::new(Board::P100);
    let mut cores: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for page in 0..buffer.pages().get() {
        let Place { bank, address } = buffer.place(page);
        let core = match bank {
            Bank::Core(tile) => grid.core(tile).map(|core| (core.x, core.y)).unwrap(),
            Bank::Dram(bank) => (bank, 0),
            Bank::Host => panic!("host"),
        };
        let offset = address.get() - buffer.address.get();
        assert!(offset.is_multiple_of(buffer.aligned_page_size().into()));
        cores.entry(core).or_default().push((offset / u64::from(buffer.aligned_page_size()), page));
    }
    cores.values_mut().for_each(|pages| pages.sort_unstable());
    cores
}

/// The pages of a core that holds them one behind the other.
fn packed(held: &BTreeMap<(u32, u32), Vec<(u64, u32)>>, core: (u32, u32)) -> Vec<u32> {
    let pages = &held[&core];
    assert!(pages.iter().enumerate().all(|(i, &(offset, _))| i as u64 == offset));
    pages.iter().map(|&(_, page)| page).collect()
}

#[test]
fn pages_go_round_the_banks() {
    let mut memory = memory();
    let b = memory.alloc_dram("x", &[3, 100], DType::U32, 64).unwrap();
    assert_eq!((b.bytes(), b.pages(), b.bytes_per_bank()), (1200, PageCount::new(19), 3 * 64));
    let at = |page| {
        let Place { bank, address } = b.place(page);
        (bank, address.get())
    };
    assert_eq!(at(0), (Bank::Dram(0), 0x40));
    assert_eq!(at(6), (Bank::Dram(6), 0x40));
    assert_eq!(at(7), (Bank::Dram(0), 0x80));
    assert_eq!(at(18), (Bank::Dram(4), 0xC0));
    assert_eq!((b.page_bytes(18), b.page_bytes(19)), (1152..1200, 1200..1200));
}

#[test]
fn l1_interleaved_pages_go_round_the_workers_only() {
    let mut memory = memory();
    let b = memory.alloc(&BufferConfig::interleaved("x", BufferType::L1, 300 * 100, 100)).unwrap();
    // Pages lie at multiples of 16.
    assert_eq!((b.aligned_page_size(), b.bytes_per_bank()), (112, 3 * 112));
    let (board, mut seen) = (Board::P100, BTreeMap::new());
    for page in 0..300 {
        let Place { bank, address } = b.place(page);
        let Bank::Core(tile) = bank else { panic!("{bank}") };
        assert!(tile != board.prefetch_core() && tile != board.dispatch_core());
        assert_eq!(*seen.entry(page % 118).or_insert(tile), tile);
        assert_eq!(address, b.address.offset(u64::from(page / 118) * 112));
    }
    assert_eq!(seen.len(), 118);
    assert_eq!(b.place(11).bank, Bank::Core(NocXy::new(1, 3)));
}

/// tt-metal's tech report on tensor layouts, figure 5: 16 pages, shards of 2 x 2, cores 2 x 2.
#[test]
fn block_sharding_is_that_of_the_layout_report() {
    let config = tiles(BlockSharded, [4, 4], [2, 2], grid(0, 0, 1, 1), RowMajor);
    let cores = held(&memory().alloc(&config).unwrap());
    assert_eq!(packed(&cores, (0, 0)), [0, 1, 4, 5]);
    assert_eq!(packed(&cores, (1, 0)), [2, 3, 6, 7]);
    assert_eq!(packed(&cores, (0, 1)), [8, 9, 12, 13]);
    assert_eq!(packed(&cores, (1, 1)), [10, 11, 14, 15]);
    // In column order the blocks are transposed.
    let cores = held(&memory().alloc(&tiles(BlockSharded, [4, 4], [2, 2], grid(0, 0, 1, 1), ColMajor)).unwrap());
    assert_eq!(packed(&cores, (0, 1)), [2, 3, 6, 7]);
    assert_eq!(packed(&cores, (1, 0)), [8, 9, 12, 13]);
}

/// tt-metal's tech report on tensor sharding: 2 x 128 x 256 on a grid of 2 x 4 has 32 rows on each
/// core; 64 x 512 on 1 x 4 has 128 columns; 128 x 512 on 4 x 2 has 64 columns; 192 x 192 in blocks
/// of 64 x 64 on 4 x 4 uses 3 x 3 of the cores.
#[test]
fn sharding_is_that_of_the_sharding_report() {
    let height = held(&memory().alloc(&tiles(HeightSharded, [8, 8], [1, 8], grid(0, 0, 1, 3), RowMajor)).unwrap());
    assert_eq!(height.len(), 8);
    assert_eq!(packed(&height, (1, 0)), (8..16).collect::<Vec<_>>());
    assert_eq!(packed(&height, (0, 1)), (16..24).collect::<Vec<_>>());
    let columns = held(&memory().alloc(&tiles(HeightSharded, [8, 8], [1, 8], grid(0, 0, 1, 3), ColMajor)).unwrap());
    assert_eq!(packed(&columns, (0, 1)), (8..16).collect::<Vec<_>>());

    let width = held(&memory().alloc(&tiles(WidthSharded, [2, 16], [2, 4], grid(0, 0, 0, 3), RowMajor)).unwrap());
    assert_eq!(packed(&width, (0, 2)), [8, 9, 10, 11, 24, 25, 26, 27]);
    let width = held(&memory().alloc(&tiles(WidthSharded, [4, 16], [4, 2], grid(0, 0, 3, 1), RowMajor)).unwrap());
    assert_eq!(packed(&width, (1, 1)), [10, 11, 26, 27, 42, 43, 58, 59]);

    let block = held(&memory().alloc(&tiles(BlockSharded, [6, 6], [2, 2], grid(0, 0, 3, 3), RowMajor)).unwrap());
    assert_eq!(block.len(), 9);
    assert_eq!(packed(&block, (0, 1)), [12, 13, 18, 19]);
    assert_eq!(packed(&block, (2, 2)), [28, 29, 34, 35]);
}

/// tt-metal's `core_to_host_pages` for edges: the last shard by height has fewer pages, an edge
/// shard by width or block keeps the places of those it lacks.
#[test]
fn edge_shards_keep_their_rows_apart() {
    let height = memory().alloc(&tiles(HeightSharded, [5, 2], [2, 2], grid(0, 0, 3, 0), RowMajor)).unwrap();
    let cores = held(&height);
    assert_eq!((cores.len(), packed(&cores, (2, 0))), (3, vec![8, 9]));
    assert_eq!(height.bytes_per_bank(), 4 * 2048);
    let block = memory().alloc(&tiles(BlockSharded, [3, 5], [2, 3], grid(2, 1, 3, 2), RowMajor)).unwrap();
    let cores = held(&block);
    assert_eq!(packed(&cores, (2, 1)), [0, 1, 2, 5, 6, 7]);
    assert_eq!(cores[&(3, 1)], [(0, 3), (1, 4), (3, 8), (4, 9)]);
    assert_eq!(packed(&cores, (2, 2)), [10, 11, 12]);
    assert_eq!(cores[&(3, 2)], [(0, 13), (1, 14)]);
}

#[test]
fn cores_of_several_ranges_are_counted_range_by_range() {
    let grid = CoreRangeSet::new([
        CoreRange::new(CoreCoord::new(4, 2), CoreCoord::new(5, 3)),
        CoreRange::one(CoreCoord::new(0, 0)),
    ]);
    let config = tiles(HeightSharded, [5, 1], [1, 1], grid.unwrap(), ColMajor);
    let cores = held(&memory().alloc(&config).unwrap());
    let order = [(4, 2), (4, 3), (5, 2), (5, 3), (0, 0)];
    for (page, core) in (0..).zip(order) {
        assert_eq!(packed(&cores, core), [page]);
    }
}

/// tt-metal shards over DRAM banks as over cores in one row.
#[test]
fn dram_is_sharded_over_its_banks() {
    let config = BufferConfig {
        buffer_type: BufferType::Dram,
        ..tiles(WidthSharded, [2, 7], [2, 1], grid(0, 0, 6, 0), RowMajor)
    };
    let buffer = memory().alloc(&config).unwrap();
    let cores = held(&buffer);
    assert_eq!(packed(&cores, (6, 0)), [6, 13]);
    // One column of pages follows one another in memory.
    let runs: Vec<Run> = buffer.runs().collect();
    assert_eq!((runs.len(), runs[6].first_page, runs[6].pages, runs[6].stride), (7, 6, 2, 7));
    let wide = BufferConfig {
        buffer_type: BufferType::Dram,
        ..tiles(WidthSharded, [2, 7], [2, 1], grid(1, 0, 7, 0), RowMajor)
    };
    let error = memory().alloc(&wide).unwrap_err().to_string();
    assert_eq!(error, "buffer x: core (7,0) is no DRAM bank, expected (0,0) to (6,0)");
}

#[test]
fn host_memory_is_behind_the_queues() {
    use tilework_abi::cq::layout::{HOST_REGION_NOC_BASE, host};
    let b = memory().alloc(&BufferConfig::interleaved("x", BufferType::SystemMemory, 5000, 1000)).unwrap();
    assert_eq!(b.address.get(), u64::from(HOST_REGION_NOC_BASE + host::SYSTEM.offset()).next_multiple_of(64));
    let Place { bank, address } = b.place(3);
    assert_eq!((bank, address.get() - b.address.get()), (Bank::Host, 3 * 1024));
}

#[test]
fn what_cannot_be_sharded_is_refused_by_name() {
    let error = |config: &BufferConfig| memory().alloc(config).unwrap_err().to_string();
    let good = tiles(BlockSharded, [4, 4], [2, 2], grid(0, 0, 1, 1), RowMajor);
    let with = |change: &dyn Fn(&mut BufferConfig)| {
        let mut config = good.clone();
        change(&mut config);
        error(&config)
    };
    let spec =
        |config: &mut BufferConfig, change: &dyn Fn(&mut ShardSpecBuffer)| change(config.shard.as_mut().unwrap());
    assert_eq!(with(&|c| c.shard = None), "buffer x: its layout is sharded, but it has no shard specification");
    assert_eq!(
        with(&|c| c.memory_layout = TensorMemoryLayout::Interleaved),
        "buffer x: its layout is interleaved, but it has a shard specification"
    );
    assert_eq!(
        with(&|c| c.memory_layout = HeightSharded),
        "buffer x: shards of 2 pages in width, expected all 4: it is sharded in the other"
    );
    assert_eq!(
        with(&|c| c.memory_layout = WidthSharded),
        "buffer x: shards of 2 pages in height, expected all 4: it is sharded in the other"
    );
    assert_eq!(with(&|c| c.size += 2048), "buffer x: 34816 bytes, expected 32768: [4, 4] pages");
    assert_eq!(with(&|c| c.buffer_type = BufferType::SystemMemory), "buffer x: system memory cannot be sharded");
    assert_eq!(
        with(&|c| spec(c, &|s| s.tensor_shard_spec.shape = [64, 40])),
        "buffer x: a shard of [64, 40] elements, expected whole pages of [32, 32]"
    );
    assert_eq!(
        with(&|c| spec(c, &|s| (s.tensor_shard_spec.shape, s.page_shape) = ([u32::MAX; 2], [1, 1]))),
        "buffer x: a shard of [4294967295, 4294967295] pages, expected fewer than 4294967296"
    );
    let on = |set: CoreRangeSet| with(&|c| spec(c, &|s| s.tensor_shard_spec.grid = set.clone()));
    assert_eq!(on(CoreRangeSet::default()), "buffer x: the set of cores is empty");
    assert_eq!(on(grid(0, 0, 0, 3)), "buffer x: [2, 2] shards (rows, columns), but the cores take [4, 1]");
    // The dispatch cores are no workers.
    assert_eq!(on(grid(10, 0, 11, 1)), "buffer x: core (11,0) is no worker of this device");
    assert_eq!(on(grid(20, 0, 21, 1)), "buffer x: core (20,0) is no worker of this device");
    let two = CoreRangeSet::new([
        CoreRange::one(CoreCoord::new(0, 0)),
        CoreRange::new(CoreCoord::new(1, 0), CoreCoord::new(3, 0)),
    ]);
    assert_eq!(on(two.unwrap()), "buffer x: block sharding needs one rectangle of cores, found 2 ranges");
    assert_eq!(
        error(&tiles(HeightSharded, [8, 1], [1, 1], grid(0, 0, 6, 0), RowMajor)),
        "buffer x: 8 shards, but 7 cores: each core holds one shard"
    );
}

#[test]
fn page_sizes_and_shapes_are_checked() {
    let mut memory = memory();
    for wrong in [0, 63, 100] {
        let error = memory.alloc_dram("x", &[4], DType::U8, wrong).unwrap_err().to_string();
        assert_eq!(error, format!("buffer x: page size {wrong}, expected a multiple of 64 from 64 to 4294967232"));
    }
    let shape = memory.alloc_dram("x", &[usize::MAX, 2], DType::U8, 64).unwrap_err().to_string();
    assert!(shape.starts_with("buffer x: shape [18446744073709551615, 2] has too many elements"));
    let alloc = |memory: &mut MemorySpace, size, page| {
        memory.alloc(&BufferConfig::interleaved("x", BufferType::Dram, size, page)).unwrap_err().to_string()
    };
    assert!(alloc(&mut memory, 1, 0).starts_with("buffer x: page size 0, expected a multiple of 1"));
    assert_eq!(
        alloc(&mut memory, 1 << 40, 16),
        "buffer x: 1099511627776 bytes in pages of 16 are more than 4294967295 pages"
    );
    assert!(alloc(&mut memory, 1, u32::MAX).starts_with("buffer x: page size 4294967295"));
}

#[test]
fn block_formats_are_refused() {
    for dtype in DType::ALL.iter().copied().filter(|dtype| dtype.is_block()) {
        let refused = memory().alloc_dram("x", &[32, 32], dtype, 64).unwrap_err().to_string();
        let name = dtype.name();
        assert_eq!(refused, format!("buffer x: elements of type {name} share exponents and have no bytes alone"));
    }
}

#[test]
fn views_are_whole_pages_of_their_buffer() {
    let x = memory().alloc(&BufferConfig::interleaved("x", BufferType::Dram, 1000, 64)).unwrap();
    let view = |offset, size| x.view(BufferRegion { offset, size });
    assert_eq!(view(64, 936).unwrap().pages().get(), 15);
    assert_eq!(view(0, 1000).unwrap().bytes(), 1000);
    for (offset, size) in [(32, 64), (0, 100), (0, 1001), (1024, 0), (u64::MAX, 2)] {
        let error = view(offset, size).unwrap_err().to_string();
        assert_eq!(
            error,
            format!("buffer x: region of {size} bytes at {offset}, expected whole pages of 64 bytes within 1000")
        );
    }
    // A view of a view, and its bytes.
    let inner = view(128, 640).unwrap().view(BufferRegion { offset: 64, size: 128 }).unwrap();
    assert_eq!((inner.place(0), inner.place(1)), (x.place(3), x.place(4)));
    assert_eq!(inner.first_page(), 3);
}

#[test]
fn each_core_of_an_l1_buffer_has_a_range() {
    let mut memory = memory();
    let x = memory.alloc(&tiles(HeightSharded, [4, 1], [2, 1], grid(0, 0, 1, 0), RowMajor)).unwrap();
    let local = x.local().unwrap();
    assert_eq!((local.address.get(), local.bytes), (x.address.word(), 4096));
    assert!(local.is_on(NocXy::new(1, 2)) && !local.is_on(NocXy::new(3, 2)));
    let y = memory.alloc(&BufferConfig::interleaved("y", BufferType::L1, 4096, 64)).unwrap();
    assert!(y.local().unwrap().is_on(NocXy::new(3, 2)));
    assert_eq!(y.view(BufferRegion { offset: 0, size: 64 }).unwrap().local(), None);
    assert_eq!(memory.alloc_dram("z", &[64], DType::U8, 64).unwrap().local(), None);
}

fn any_buffer() -> impl Strategy<Value = BufferConfig> {
    let interleaved = (0u64..3000, 1u32..300, 0usize..3).prop_map(|(size, page, kind)| {
        let kind = [BufferType::Dram, BufferType::L1, BufferType::SystemMemory][kind];
        BufferConfig::interleaved("x", kind, size, page)
    });
    let sharded = (0u32..9, 0u32..9, 1u32..5, 1u32..5, 0usize..3, any::<bool>(), 1u32..80).prop_map(
        |(rows, columns, r, c, layout, row_major, page)| {
            let layout = [HeightSharded, WidthSharded, BlockSharded][layout];
            let shard = match layout {
                HeightSharded => [r, columns.max(1)],
                WidthSharded => [rows.max(1), c],
                _ => [r, c],
            };
            let spec = ShardSpec {
                grid: grid(0, 0, 9, 9),
                shape: shard,
                orientation: if row_major { RowMajor } else { ColMajor },
            };
            let shard = ShardSpecBuffer {
                tensor_shard_spec: spec,
                page_shape: [1, 1],
                tensor2d_shape_in_pages: [rows, columns],
            };
            BufferConfig::sharded("x", BufferType::L1, layout, page, shard)
        },
    );
    prop_oneof![interleaved, sharded]
}

proptest! {
    /// Every page has a place of its own within the buffer's range, and the runs hold each page
    /// once, at its place.
    #[test]
    fn places_and_runs_agree(config in any_buffer(), from in 0u64..20, length in 0u64..40) {
        let whole = memory().alloc(&config).unwrap();
        let pages = u64::from(whole.pages().get());
        let (from, to) = (from.min(pages), (from + length).min(pages));
        let at = |page: u64| (page * u64::from(config.page_size)).min(config.size);
        let part = whole.view(BufferRegion { offset: at(from), size: at(to) - at(from) });
        // A region that begins at a partly used last page's end has no offset of a page.
        for buffer in [Some(whole.clone()), part.ok()].into_iter().flatten() {
            let mut places = BTreeMap::new();
            for page in 0..buffer.pages().get() {
                let place = buffer.place(page);
                let offset = place.address.get() - buffer.address.get();
                prop_assert!(offset + u64::from(buffer.aligned_page_size()) <= buffer.bytes_per_bank());
                prop_assert_eq!(place, whole.place(page + buffer.first_page()));
                prop_assert_eq!(places.insert((place.bank, place.address), page), None);
            }
            for run in buffer.runs() {
                prop_assert!(run.pages > 0);
                for (i, page) in (0u64..).zip(run.page_numbers()) {
                    let address = run.place.address.offset(i * u64::from(buffer.aligned_page_size()));
                    prop_assert_eq!(places.remove(&(run.place.bank, address)), Some(page));
                }
            }
            prop_assert!(places.is_empty(), "in no run: {:?}", places);
        }
    }

    #[test]
    fn gather_and_scatter_are_inverse(config in any_buffer()) {
        let b = memory().alloc(&config).unwrap();
        let data: Vec<u8> = (0..b.bytes()).map(|i| (i * 7 + i / 251) as u8).collect();
        let mut back = vec![0; b.bytes()];
        for run in b.runs() {
            let part = b.gather(&run, &data);
            prop_assert_eq!(part.len(), run.pages as usize * b.aligned_page_size() as usize);
            b.scatter(&run, &part, &mut back);
        }
        prop_assert_eq!(back, data);
    }
}
