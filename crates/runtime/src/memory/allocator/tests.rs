//! The allocator against a naive model: a map of every byte of every bank.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeSet;

#[test]
fn an_overflow_names_owners_sizes_and_the_largest_block() {
    let mut l1 = Allocator::new("L1", L1Addr::new(0x1000)..L1Addr::new(0x1400), 16);
    assert_eq!(l1.high("weights", 0x100), Ok(L1Addr::new(0x1300)));
    assert_eq!(l1.low("cb 0", 0x80), Ok(L1Addr::new(0x1000)));
    let message = l1.low("cb 1", 0x300).unwrap_err().to_string();
    let expected = "L1 overflow: cb 1 needs 768 bytes, the largest free block is 640 bytes (0x1080..0x1300) of 640 free\n  \
                    0x1000..0x1080 cb 0 (128 bytes)\n  0x1300..0x1400 weights (256 bytes)";
    assert_eq!(message, expected);
    assert_eq!(l1.owner_of(L1Addr::new(0x107f)).map(|o| o.owner.as_str()), Some("cb 0"));
    assert_eq!(l1.owner_of(L1Addr::new(0x1080)), None);
}

fn allocate(memory: &mut Allocator<u64>, owner: &str, bytes: u64, fit: Fit) -> (AllocationId, u64) {
    memory.allocate(owner, bytes, &Banks::All, fit).unwrap()
}

#[test]
fn freed_neighbours_are_one_range_again() {
    let mut memory = Allocator::new("m", 0u64..0x100, 64);
    let (a, _) = allocate(&mut memory, "a", 64, Fit::BestLow);
    let (b, at) = allocate(&mut memory, "b", 64, Fit::BestLow);
    let (c, _) = allocate(&mut memory, "c", 64, Fit::BestLow);
    assert_eq!(at, 64);
    assert!(memory.free_id(a) && memory.free_id(c));
    assert_eq!(memory.free(), [0..64, 128..256]);
    assert!(!memory.free_id(a), "freed before");
    assert!(memory.free_id(b));
    assert_eq!(memory.free(), [0..256]);
    assert_eq!(allocate(&mut memory, "d", 256, Fit::BestHigh).1, 0);
}

#[test]
fn the_smallest_hole_that_fits_is_taken() {
    let mut memory = Allocator::new("m", 0u64..0x1000, 16);
    let mut at = |start, bytes| memory.allocate_at("x", bytes, &Banks::All, start).unwrap();
    // Holes of 0x100, 0x40, 0x80 and 0x40 bytes.
    at(0x100, 0x100);
    at(0x240, 0x100);
    at(0x3C0, 0x100);
    at(0x500, 0xB00);
    assert_eq!(memory.free(), [0..0x100, 0x200..0x240, 0x340..0x3C0, 0x4C0..0x500]);
    let place = |bytes, fit| memory.clone().allocate("y", bytes, &Banks::All, fit).unwrap().1;
    assert_eq!((place(0x30, Fit::BestLow), place(0x30, Fit::BestHigh)), (0x200, 0x4D0));
    assert_eq!((place(0x50, Fit::BestLow), place(0x50, Fit::BestHigh)), (0x340, 0x370));
    assert_eq!((place(0x30, Fit::Lowest), place(0x30, Fit::Highest)), (0, 0x4D0));
}

#[test]
fn an_explicit_address_is_refused_with_who_has_it() {
    let mut memory = Allocator::new("DRAM", 0x40u64..0x1000, 64);
    memory.allocate_at("weights", 0x100, &Banks::All, 0x200).unwrap();
    let mut error = |bytes, at| memory.allocate_at("x", bytes, &Banks::All, at).unwrap_err().to_string();
    assert_eq!(error(0x80, 0x1C0), "buffer x: 0x1c0..0x240 of DRAM is taken by 0x200..0x300 weights (256 bytes)");
    let wrong = |at: u64, bytes| {
        format!("buffer x: address {at:#x} for {bytes} bytes of DRAM, expected a multiple of 64 in 0x40..0x1000")
    };
    for (bytes, at) in [(64, 0x44), (64, 0), (0x1000, 0x40), (u64::MAX, 0x40)] {
        assert_eq!(error(bytes, at), wrong(at, bytes));
    }
    memory.allocate_at("y", 0x1C0, &Banks::All, 0x40).unwrap();
}

#[test]
fn ranges_in_other_banks_may_have_the_same_addresses() {
    let mut memory = Allocator::new("L1", 0u64..0x100, 16);
    let (left, right) = (Banks::of([0, 1]), Banks::of([5]));
    let (a, at) = memory.allocate("left", 0xC0, &left, Fit::BestHigh).unwrap();
    assert_eq!(memory.allocate("right", 0xC0, &right, Fit::BestHigh).unwrap().1, at);
    // What all banks have lies beside both, what a third bank has does not.
    assert_eq!(memory.free(), [0..0x40]);
    assert_eq!(memory.free_in(&Banks::of([2])), [0..0x100]);
    let message = memory.allocate("all", 0x80, &Banks::All, Fit::BestHigh).unwrap_err().to_string();
    assert!(
        message.ends_with("\n  0x40..0x100 left (192 bytes in 2 banks)\n  0x40..0x100 right (192 bytes in 1 bank)")
    );
    let message = memory.allocate("more", 0x80, &right, Fit::BestHigh).unwrap_err().to_string();
    assert!(!message.contains("left"), "{message}");
    assert!(memory.free_id(a));
    assert_eq!(memory.free_in(&left), [0..0x100]);
}

#[test]
fn statistics_say_how_much_is_in_one_piece() {
    let mut memory = Allocator::new("m", 0u64..0x1000, 16);
    let empty = memory.statistics(BufferType::Dram);
    assert_eq!((empty.total, empty.free, empty.allocated(), empty.fragmentation()), (0x1000, 0x1000, 0, 0.0));
    memory.allocate_at("a", 0x400, &Banks::All, 0x400).unwrap();
    let one = memory.statistics(BufferType::Dram);
    assert_eq!((one.free, one.largest_free_block, one.allocated()), (0xC00, 0x800, 0x400));
    assert!((one.fragmentation() - 1.0 / 3.0).abs() < 1e-12);
    assert_eq!(
        one.to_string(),
        "DRAM: 4096 bytes in each bank, 1024 allocated, 3072 free, largest free block 2048, fragmentation 0.33"
    );
    memory.allocate_at("b", 0x400, &Banks::All, 0).unwrap();
    memory.allocate_at("c", 0x800, &Banks::All, 0x800).unwrap();
    let full = memory.statistics(BufferType::Dram);
    assert_eq!((full.free, full.fragmentation()), (0, 0.0));
    assert_eq!(full.owners.iter().map(|o| o.owner.as_str()).collect::<Vec<_>>(), ["b", "a", "c"]);
}

/// Bytes of the model's memory, its first one, and the alignment.
const BYTES: u64 = 1024;
const START: u64 = 24;
const ALIGN: u64 = 16;
const BANKS: u32 = 4;

/// Who has each byte of each bank.
#[derive(Default)]
struct Model {
    bytes: BTreeMap<(u32, u64), AllocationId>,
}

impl Model {
    fn numbers(banks: &Banks) -> Vec<u32> {
        match banks {
            Banks::All => (0..BANKS).collect(),
            Banks::Some(some) => some.to_vec(),
        }
    }
    fn is_free(&self, banks: &Banks, at: u64) -> bool {
        Self::numbers(banks).into_iter().all(|bank| !self.bytes.contains_key(&(bank, at)))
    }
    /// The free ranges from aligned addresses on, byte by byte.
    fn holes(&self, banks: &Banks) -> Vec<Range<u64>> {
        let (mut holes, mut at) = (Vec::new(), START);
        while at < BYTES {
            if !at.is_multiple_of(ALIGN) || !self.is_free(banks, at) {
                at += 1;
                continue;
            }
            let end = (at..BYTES).find(|&byte| !self.is_free(banks, byte)).unwrap_or(BYTES);
            holes.push(at..end);
            at = end;
        }
        holes
    }
    /// Where a range must go.
    fn choose(&self, banks: &Banks, bytes: u64, fit: Fit) -> Option<u64> {
        let high = |hole: &Range<u64>| {
            (hole.start..=hole.end).rev().find(|at| at.is_multiple_of(ALIGN) && at + bytes <= hole.end)
        };
        let mut found: Vec<(u64, u64)> = Vec::new();
        for hole in self.holes(banks) {
            let start = match fit {
                Fit::BestLow | Fit::Lowest => (hole.start + bytes <= hole.end).then_some(hole.start),
                Fit::BestHigh | Fit::Highest => high(&hole),
            };
            found.extend(start.map(|start| (hole.end - hole.start, start)));
        }
        let shortest = found.iter().map(|&(length, _)| length).min()?;
        let best = found.iter().filter(|&&(length, _)| length == shortest).map(|&(_, start)| start);
        match fit {
            Fit::BestLow => best.min(),
            Fit::BestHigh => best.max(),
            Fit::Lowest => found.first().map(|&(_, start)| start),
            Fit::Highest => found.last().map(|&(_, start)| start),
        }
    }
}

#[derive(Clone, Debug)]
enum Step {
    Allocate { bytes: u64, banks: Banks, fit: usize },
    At { bytes: u64, banks: Banks, address: u64 },
    Free(prop::sample::Index),
}

fn any_step() -> impl Strategy<Value = Step> {
    let banks = || prop_oneof![Just(Banks::All), prop::collection::vec(0..BANKS, 1..3).prop_map(Banks::of),];
    prop_oneof![
        4 => (0u64..300, banks(), 0usize..4).prop_map(|(bytes, banks, fit)| Step::Allocate { bytes, banks, fit }),
        1 => (0u64..100, banks(), 0u64..1100).prop_map(|(bytes, banks, address)| Step::At { bytes, banks, address }),
        3 => any::<prop::sample::Index>().prop_map(Step::Free),
    ]
}

proptest! {
    /// No overlap in any bank, aligned, inside, best fit, and free ranges without seams: all are
    /// those of the model after every step. The same steps give the same addresses.
    #[test]
    fn the_allocator_is_the_model(steps in prop::collection::vec(any_step(), 1..60)) {
        let mut memory = Allocator::new("m", START..BYTES, ALIGN);
        let mut twin = memory.clone();
        let (mut model, mut live) = (Model::default(), Vec::new());
        for step in steps {
            let (banks, taken) = match step {
                Step::Allocate { bytes, banks, fit } => {
                    let fit = [Fit::BestLow, Fit::BestHigh, Fit::Lowest, Fit::Highest][fit];
                    let found = memory.allocate("x", bytes, &banks, fit);
                    prop_assert_eq!(&found, &twin.allocate("x", bytes, &banks, fit));
                    let found = found.ok();
                    prop_assert_eq!(found.map(|(_, at)| at), model.choose(&banks, bytes, fit));
                    (banks, found.map(|(id, at)| (id, at..at + bytes)))
                }
                Step::At { bytes, banks, address } => {
                    let found = memory.allocate_at("x", bytes, &banks, address);
                    prop_assert_eq!(&found, &twin.allocate_at("x", bytes, &banks, address));
                    let inside = address >= START && address + bytes <= BYTES && address % ALIGN == 0;
                    let free = inside && (address..address + bytes).all(|at| model.is_free(&banks, at));
                    prop_assert_eq!(found.is_ok(), free);
                    (banks, found.ok().map(|id| (id, address..address + bytes)))
                }
                Step::Free(_) if live.is_empty() => continue,
                Step::Free(which) => {
                    let id: AllocationId = live.swap_remove(which.index(live.len()));
                    prop_assert!(memory.free_id(id) && twin.free_id(id));
                    prop_assert!(!memory.free_id(id));
                    model.bytes.retain(|_, owner| *owner != id);
                    (Banks::All, None)
                }
            };
            if let Some((id, range)) = taken {
                live.push(id);
                for bank in Model::numbers(&banks) {
                    for at in range.clone() {
                        prop_assert_eq!(model.bytes.insert((bank, at), id), None);
                    }
                }
            }
            prop_assert_eq!(memory.free(), model.holes(&Banks::All));
            prop_assert_eq!(memory.free_in(&banks), model.holes(&banks));
            let owned: BTreeSet<AllocationId> = model.bytes.values().copied().collect();
            prop_assert_eq!(memory.owners().count(), owned.len());
        }
        live.into_iter().for_each(|id| assert!(memory.free_id(id)));
        prop_assert_eq!(memory.free(), Model::default().holes(&Banks::All));
    }
}
