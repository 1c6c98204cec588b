//! The kinds of memory together: who may be where, and what is refused.

use super::super::{CoreRange, CoreRangeSet, ShardSpec, ShardSpecBuffer, TensorMemoryLayout};
use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;
use tilework_abi::l1::WORKER;

fn space() -> MemorySpace {
    MemorySpace::with(&AllocatorConfig {
        l1_small_size: 0x4000,
        trace_region_size: 0x10_0000,
        ..AllocatorConfig::new(Board::P100, &WORKER)
    })
}

fn interleaved(kind: BufferType, pages: u64, page_size: u32) -> BufferConfig {
    BufferConfig::interleaved("x", kind, pages * u64::from(page_size), page_size)
}

/// One shard of `bytes` on each core of a column of the grid.
fn column(x: u32, bytes: u32) -> BufferConfig {
    let range = CoreRange::new(CoreCoord::new(x, 2), CoreCoord::new(x, 9));
    let spec =
        ShardSpec { grid: CoreRangeSet::new([range]).unwrap(), shape: [1, 1], orientation: ShardOrientation::RowMajor };
    let shard = ShardSpecBuffer { tensor_shard_spec: spec, page_shape: [1, 1], tensor2d_shape_in_pages: [8, 1] };
    BufferConfig::sharded("x", BufferType::L1, TensorMemoryLayout::HeightSharded, bytes, shard)
}

#[test]
fn each_kind_has_its_own_space() {
    let mut space = space();
    let mut address = |kind| space.alloc(&interleaved(kind, 1, 64)).unwrap().address.get();
    assert_eq!(address(BufferType::Dram), 0x40);
    assert_eq!(address(BufferType::Trace), (1 << 32) - 0x10_0000);
    assert_eq!(address(BufferType::L1), 0x17_C000 - 64);
    assert_eq!(address(BufferType::L1Small), 0x18_0000 - 64);
    let host = address(BufferType::SystemMemory);
    assert!((0x4600_0000..0x4800_0000).contains(&host), "{host:#x}");
    for kind in BufferType::ALL {
        let statistics = space.statistics(kind);
        assert_eq!((statistics.allocated(), statistics.owners.len()), (64, 1), "{kind}");
        assert_eq!(statistics.largest_free_block, statistics.total - 64);
    }
}

#[test]
fn memory_that_a_device_does_not_have_is_named_with_its_remedy() {
    let config = AllocatorConfig { system_memory: false, ..AllocatorConfig::new(Board::P100, &WORKER) };
    let mut space = MemorySpace::with(&config);
    let mut error = |kind| space.alloc(&interleaved(kind, 1, 64)).unwrap_err().to_string();
    assert_eq!(error(BufferType::L1Small), "buffer x: this device has no L1-small; open it with a size of L1-small");
    assert_eq!(
        error(BufferType::Trace),
        "buffer x: this device has no trace region; open it with a size of the trace region"
    );
    assert_eq!(
        error(BufferType::SystemMemory),
        "buffer x: this device has no system memory; open it with fast dispatch, which pins memory of the host"
    );
    // A semaphore is in L1 only.
    let mut semaphore = GlobalSemaphoreConfig::new("s", CoreCoord::new(0, 0).into(), 0);
    semaphore.buffer_type = BufferType::L1Small;
    assert!(space.alloc_global_semaphore(&semaphore).unwrap_err().to_string().contains("no L1-small"));
    // An L1-small larger than the data space leaves nothing else, and nothing below it.
    let all = MemorySpace::with(&AllocatorConfig { l1_small_size: u32::MAX - 63, ..config });
    assert_eq!(all.statistics(BufferType::L1Small).total, 0x18_0000 - 0x37000);
    assert_eq!(all.statistics(BufferType::L1).total, 0);
}

#[test]
fn an_overflow_says_how_much_would_fit() {
    let mut space = MemorySpace::new(Board::P100, &WORKER);
    let named = |name: &str, pages, page_size: u32| {
        BufferConfig::interleaved(name, BufferType::L1, pages * u64::from(page_size), page_size)
    };
    space.alloc(&named("weights", 118, 0x14_7000)).unwrap();
    let message = space.alloc(&named("more", 300, 4096)).unwrap_err().to_string();
    let page = include_str!("../../../../../docs/memory.md");
    let shown: String =
        page.lines().filter_map(|line| line.strip_prefix("    ")).map(|line| format!("{line}\n")).collect();
    assert!(shown.contains(&message), "docs/memory.md does not have\n{message}");
    // A sharded buffer is all or nothing.
    let message = space.alloc(&column(0, 0x4000)).unwrap_err().to_string();
    assert!(!message.contains("would fit") && message.contains("\n  0x39000..0x180000 weights"), "{message}");
}

#[test]
fn a_range_on_some_cores_leaves_the_others_free() {
    let mut space = space();
    let (bytes, total) = (0x10_0000, space.statistics(BufferType::L1).total);
    let left = space.alloc(&column(0, bytes).on_its_cores()).unwrap();
    let right = space.alloc(&column(1, bytes).on_its_cores()).unwrap();
    assert_eq!(left.address, right.address);
    // In lock-step there is no room for a third.
    let message = space.alloc(&column(2, bytes)).unwrap_err().to_string();
    assert!(message.contains(" x (1048576 bytes in 8 banks)"), "{message}");
    assert_eq!(space.statistics(BufferType::L1).free, total - u64::from(bytes));
    // What one program needs on all cores keeps clear of both.
    let low = space.l1().clone().low("cb", 0x1000).unwrap();
    assert_eq!(low, WORKER.data);
    space.free(&left).unwrap();
    space.free(&right).unwrap();
    assert_eq!(space.statistics(BufferType::L1).free, total);
}

#[test]
fn a_sub_buffer_stays_in_its_parent() {
    let mut space = space();
    let pool = space.alloc(&interleaved(BufferType::Dram, 14, 4096)).unwrap();
    let part = BufferConfig { name: "part".into(), ..interleaved(BufferType::Dram, 7, 2048) };
    let sub = |offset, config: &BufferConfig| space.sub_buffer(&pool, offset, config).map_err(|e| e.to_string());
    assert_eq!(sub(6144, &part).unwrap().place(6).address, pool.address.offset(6144));
    let refused = |offset: u64, bytes: u64| {
        Err(format!(
            "buffer part: {bytes} bytes at {offset} in each bank, expected no more than the 8192 that x has, in the same banks"
        ))
    };
    for offset in [6208, 6145, u64::MAX] {
        assert_eq!(sub(offset, &part).map(drop), refused(offset, 2048));
    }
    let l1 = BufferConfig { buffer_type: BufferType::L1, ..part.clone() };
    assert_eq!(sub(0, &l1).map(drop), refused(0, 2048));
    let error = space.clone().free(&sub(0, &part).unwrap()).unwrap_err().to_string();
    assert_eq!(error, "part owns no memory of this device: it was freed before, or is a part of another buffer");
}

#[test]
fn leaks_are_named() {
    let mut space = space();
    let x = space.alloc_dram("x", &[100], DType::U8, 64).unwrap();
    space.alloc_l1("slots", 100).unwrap();
    space.alloc(&BufferConfig { name: "shards".into(), ..column(3, 64).on_its_cores() }).unwrap();
    assert_eq!(
        space.leaks().to_string(),
        "3 allocations were not freed\n  DRAM 0x40..0x80 x (64 bytes)\n  L1 0x17bf40..0x17bf80 shards (64 bytes in 8 banks)\n  \
         L1 0x17bf80..0x17bfe4 slots (100 bytes)"
    );
    space.free(&x).unwrap();
    assert_eq!(space.leaks().0.len(), 2);
    assert!(space.free(&x).is_err());
}

fn any_config() -> impl Strategy<Value = BufferConfig> {
    let kind = prop::sample::select(vec![BufferType::L1, BufferType::L1Small, BufferType::Dram]);
    prop_oneof![
        (kind, 1u64..400, 1u32..2000).prop_map(|(kind, pages, page)| interleaved(kind, pages, page)),
        (0u32..12, 1u32..0x2_0000).prop_map(|(x, bytes)| column(x, bytes)),
        (0u32..12, 1u32..0x8_0000).prop_map(|(x, bytes)| column(x, bytes).on_its_cores()),
    ]
}

proptest! {
    /// No page of a buffer lies on one of another, whatever their kinds and layouts, and all is
    /// free at the end.
    #[test]
    fn no_two_buffers_have_a_byte_in_common(
        steps in prop::collection::vec((any_config(), any::<prop::sample::Index>(), 0u8..3), 1..25)
    ) {
        let mut space = space();
        let (mut live, whole): (Vec<Buffer>, _) = (Vec::new(), space.clone());
        for (config, which, free) in steps {
            if free == 0 && !live.is_empty() {
                let buffer = live.swap_remove(which.index(live.len()));
                prop_assert!(space.free(&buffer).is_ok());
            } else if let Ok(buffer) = space.alloc(&config) {
                live.push(buffer);
            }
            let mut taken: BTreeMap<(Bank, u64), u64> = BTreeMap::new();
            for buffer in &live {
                for page in 0..buffer.pages().get() {
                    let place = buffer.place(page);
                    let start = place.address.get();
                    let end = start + u64::from(buffer.page_size);
                    prop_assert!(end <= 0x18_0000 || buffer.buffer_type.is_dram());
                    taken.insert((place.bank, start), end);
                }
            }
            let pages: u64 = live.iter().map(|buffer| u64::from(buffer.pages().get())).sum();
            prop_assert_eq!(taken.len() as u64, pages, "two pages at one address");
            // By bank and address: each ends before the next one begins.
            for ((&(bank, _), &end), (&(next, start), _)) in taken.iter().zip(taken.iter().skip(1)) {
                prop_assert!(bank != next || end <= start, "{} at {:#x}", bank, start);
            }
        }
        for buffer in &live {
            prop_assert!(space.free(buffer).is_ok());
        }
        for kind in BufferType::ALL {
            prop_assert_eq!(space.statistics(kind), whole.statistics(kind));
        }
    }
}
