//! Refused programs and their messages; no part of a program overlaps another.

use super::*;
use crate::elf::tests::kernel_of;
use crate::memory::Allocator;
use proptest::prelude::*;
use std::collections::BTreeMap;
use tilework_abi::addr::{L1Addr, PageCount};
use tilework_abi::board::Board;
use tilework_abi::l1::WORKER;

fn workers() -> Vec<NocXy> {
    Board::P100.workers().collect()
}
fn l1() -> Allocator<L1Addr> {
    Allocator::new("L1", L1Addr::new(0x37000)..L1Addr::new(0x18_0000), 64)
}
fn kernel(words: usize) -> Arc<KernelImage> {
    kernel_of(&vec![0x13; words], Processor::Brisc)
}
fn role() -> Role {
    Role::all().kernel(Processor::Brisc, kernel(1))
}
fn program(cores: Cores) -> Program {
    Program::new("p", cores).role(role())
}
fn error(program: &Program) -> String {
    program.layout(&workers(), &WORKER, &l1()).unwrap_err().to_string()
}
fn cb(index: u32, page_size: u32, pages: u32) -> CircularBuffer {
    CircularBuffer { index, page_size, pages: PageCount::new(pages) }
}

#[test]
fn cores_that_cannot_be_are_refused() {
    let at = |x, y| NocXy::new(x, y);
    assert_eq!(error(&program(Cores::Count(0))), "program p: found 0 cores, expected at least 1");
    assert_eq!(
        error(&program(Cores::Count(119))),
        "program p: found 119 cores, expected at most 118: the workers of this board"
    );
    assert_eq!(
        error(&program(Cores::List(vec![at(1, 2), at(8, 2)]))),
        "program p: core (8,2) is not a worker of this board; workers are in columns 1,2,3,4,5,6,7,10,11,12,13,14 and rows 2 to 11, dispatch cores excepted"
    );
    assert!(error(&program(Cores::List(vec![at(14, 3)]))).contains("core (14,3) is not a worker"));
    let twice = program(Cores::List(vec![at(1, 2), at(1, 3), at(1, 2)]));
    assert_eq!(error(&twice), "program p: core (1,2) is named twice in the program's cores");
}

#[test]
fn roles_must_cover_each_core_once_and_have_a_kernel() {
    let at = |x, y| NocXy::new(x, y);
    let on = |cores: Vec<NocXy>| Role { cores: Some(cores), ..role() };
    let none = Program::new("p", Cores::Count(2));
    assert_eq!(error(&none), "program p: found 0 roles, expected 1 to 4");
    let five = (0..5).fold(none.clone(), |p, _| p.role(role()));
    assert_eq!(error(&five), "program p: found 5 roles, expected 1 to 4");
    let idle = none.clone().role(Role::all());
    assert_eq!(error(&idle), "program p: role 0: no kernel, expected one for at least one processor");
    let part = none.clone().role(on(vec![at(1, 3)]));
    assert_eq!(error(&part), "program p: core (1,2) has no role");
    let foreign = none.clone().role(on(vec![at(1, 9)]));
    assert_eq!(error(&foreign), "program p: role 0: core (1,9) is not among the program's cores");
    let both = none.role(role()).role(on(vec![at(1, 3)]));
    assert_eq!(error(&both), "program p: core (1,3) is named twice in roles 0 and 1");
}

#[test]
fn circular_buffers_that_cannot_be_are_refused() {
    let p = || program(Cores::Count(1));
    let many = (0..33).fold(p(), |p, i| p.circular_buffer(cb(i, 64, 1)));
    assert_eq!(error(&many), "program p: found 33 circular buffers, expected at most 32");
    assert_eq!(error(&p().circular_buffer(cb(32, 64, 1))), "program p: circular buffer index 32, expected 0 to 31");
    let twice = p().circular_buffer(cb(3, 64, 1)).circular_buffer(cb(3, 64, 1));
    assert_eq!(error(&twice), "program p: circular buffer 3 is defined twice");
    assert_eq!(
        error(&p().circular_buffer(cb(3, 40, 2))),
        "program p: circular buffer 3: found 2 pages of 40 bytes, expected at least 1 page of a multiple of 16 bytes"
    );
}

#[test]
fn an_l1_overflow_says_who_has_what() {
    let mut l1 = l1();
    l1.high("weights", 0x10_0000).unwrap();
    let p = program(Cores::Count(1)).circular_buffer(cb(0, 2048, 4)).circular_buffer(cb(1, 4096, 100));
    let error = p.layout(&workers(), &WORKER, &l1).unwrap_err().to_string();
    assert_eq!(
        error,
        "program p: L1 overflow: circular buffer 1 of p needs 409600 bytes, the largest free block is 290816 bytes (0x39000..0x80000) of 290816 free\n  \
         0x37000..0x39000 circular buffer 0 of p (8192 bytes)\n  0x80000..0x180000 weights (1048576 bytes)"
    );
}

#[test]
fn what_does_not_fit_the_configuration_space_is_named_with_its_neighbours() {
    let args = program(Cores::Count(1)).unique_args(ArgSet::Brisc, UniqueArgs::Uniform(vec![0; 10_000]));
    assert_eq!(
        error(&args),
        "program p: no room in the kernel configuration space for BRISC arguments (40000 bytes): found an end at byte 40000, expected at most 36864; the program puts there: BRISC arguments (40000 bytes)"
    );
    let text = Program::new("p", Cores::Count(1))
        .role(Role::all().kernel(Processor::Brisc, kernel(5000)).kernel(Processor::Ncrisc, kernel(5000)))
        .semaphore(1);
    assert_eq!(
        error(&text),
        "program p: no room in the kernel configuration space for NCRISC kernel k.elf of role 0 (20000 bytes): found an end at byte 40016, expected at most 36864; the program puts there: 1 semaphores (16 bytes), BRISC kernel k.elf of role 0 (20000 bytes), NCRISC kernel k.elf of role 0 (20000 bytes)"
    );
}

#[test]
fn argument_lists_are_one_per_core() {
    let p = program(Cores::Count(3)).unique_args(ArgSet::Ncrisc, UniqueArgs::PerCore(vec![vec![1]; 2]));
    assert_eq!(error(&p), "program p: NCRISC arguments: found lists for 2 cores, expected 3");
}

#[test]
fn a_circular_buffer_over_a_buffer_has_its_address_on_its_cores() {
    use crate::memory::{Bank, L1Range};
    let workers: Vec<NocXy> = Board::P100.workers().collect();
    let on = |count: usize| {
        let cores = workers[..count].iter().copied().map(Bank::Core).collect();
        L1Range { name: "shards".into(), address: L1Addr::new(0x17_0000), bytes: 4096, cores: Some(cores) }
    };
    let program = |cb, over| {
        let program = Program::new("p", Cores::Count(4)).role(Role::all().kernel(Processor::Brisc, kernel(4)));
        program.circular_buffer(self::cb(24, 64, 2)).circular_buffer_over(cb, over)
    };
    let layout = |program: Program| program.layout(&workers, &WORKER, &l1()).map_err(|e| e.to_string());
    // 16 and 24 share no storage if one of them lies over a buffer.
    let addresses: Vec<u32> =
        layout(program(cb(16, 2048, 2), on(4))).unwrap().cbs.iter().map(|b| b.address.get()).collect();
    assert_eq!(addresses, [0x37000, 0x17_0000]);
    assert_eq!(
        layout(program(cb(16, 2048, 3), on(4))).unwrap_err(),
        "program p: circular buffer 16: 6144 bytes over buffer shards, which has 4096 on each core"
    );
    assert_eq!(
        layout(program(cb(16, 2048, 2), on(3))).unwrap_err(),
        format!("program p: circular buffer 16: core {} has nothing of buffer shards, over which it lies", workers[3])
    );
}

#[test]
fn buffers_16_and_24_share_storage_that_holds_the_larger() {
    let p = program(Cores::Count(1))
        .circular_buffer(cb(16, 64, 1))
        .circular_buffer(cb(24, 64, 4))
        .circular_buffer(cb(0, 64, 1));
    let layout = p.layout(&workers(), &WORKER, &l1()).unwrap();
    let addresses: Vec<u32> = layout.cbs.iter().map(|b| b.address.get()).collect();
    assert_eq!(addresses, [0x37000, 0x37000, 0x37100]);
}

/// Numbers of words and bytes of a program's parts, as drawn.
struct Drawn {
    /// Words of the unique arguments, by set and core.
    unique: [Vec<usize>; 3],
    /// Words of the common arguments, by set.
    common: [usize; 3],
    semaphores: usize,
    /// Units of 16 bytes and pages of the circular buffers, by index.
    cbs: BTreeMap<u32, (u32, u32)>,
    /// Words of the kernels.
    text: [Option<usize>; 5],
}

impl Drawn {
    fn program(&self) -> Program {
        let mut role = Role::all();
        for (processor, words) in Processor::ALL.into_iter().zip(self.text) {
            if let Some(words) = words {
                role = role.kernel(processor, kernel(words));
            }
        }
        if role.kernels.iter().all(Option::is_none) {
            role = role.kernel(Processor::Brisc, kernel(1));
        }
        let mut p = Program::new("p", Cores::Count(3)).role(role);
        for (i, set) in ArgSet::ALL.into_iter().enumerate() {
            let lists = self.unique[i].iter().map(|&n| vec![0xA0 + i as u32; n]).collect();
            let common = vec![0xC0 + i as u32; self.common[i]];
            p = p.unique_args(set, UniqueArgs::PerCore(lists)).common_args(set, common);
        }
        p.semaphores = (0..self.semaphores as u32).map(|i| 0x5E00 + i).collect();
        p.cbs = self.cbs.iter().map(|(&i, &(size, pages))| cb(i, size * 16, pages)).collect();
        p
    }

    fn check_ranges(&self, layout: &Layout) -> Result<(), TestCaseError> {
        let mut ranges = Vec::new();
        for (i, span) in layout.args.iter().enumerate() {
            ranges.push((span.unique, span.unique_bytes));
            ranges.push((span.common, 4 * self.common[i] as u32));
        }
        ranges.push((layout.sem_offset, 16 * layout.semaphores));
        ranges.push((layout.cb_offset, layout.cb_bytes));
        let role = &layout.roles[0];
        ranges.extend(role.text.iter().zip(&role.text_bytes).map(|(&at, &n)| (at, n)));
        ranges.retain(|r| r.1 > 0);
        ranges.sort_unstable();
        prop_assert!(ranges.windows(2).all(|w| w[0].0 + w[0].1 <= w[1].0), "{:?}", ranges);
        prop_assert!(ranges.last().is_none_or(|r| r.0 + r.1 <= WORKER.kernel_config_size));
        let buffers = layout.cbs.iter().filter(|b| b.index != 24);
        let mut memory: Vec<_> = buffers.map(|b| (b.address, b.size())).collect();
        memory.sort_unstable();
        prop_assert!(memory.windows(2).all(|w| w[0].0.offset(w[0].1) <= w[1].0));
        Ok(())
    }

    /// The bytes put everything where the layout says, for every core.
    fn check_bytes(&self, p: &Program, layout: &Layout) -> Result<(), TestCaseError> {
        let word = |bytes: &[u8], at: u32| u32::from_le_bytes(bytes[at as usize..][..4].try_into().unwrap());
        for core in 0..3 {
            let private = p.private_bytes(layout, core);
            prop_assert!(private.len() as u32 <= layout.cb_offset);
            for (i, span) in layout.args.iter().enumerate() {
                for n in 0..self.unique[i][core] as u32 {
                    prop_assert_eq!(word(&private, span.unique + 4 * n), 0xA0 + i as u32);
                }
            }
            for i in 0..layout.semaphores {
                prop_assert_eq!(word(&private, layout.sem_offset + 16 * i), 0x5E00 + i);
            }
        }
        let shared = p.shared_bytes(layout, 0, &WORKER).unwrap();
        for (i, span) in layout.args.iter().enumerate() {
            for n in 0..self.common[i] as u32 {
                prop_assert_eq!(word(&shared, span.common - layout.cb_offset + 4 * n), 0xC0 + i as u32);
            }
        }
        Ok(())
    }
}

proptest! {
    #[test]
    fn nothing_of_a_program_lies_on_anything_else(
        unique in prop::array::uniform3(prop::collection::vec(0usize..60, 3)),
        common in prop::array::uniform3(0usize..40),
        semaphores in 0usize..20,
        cbs in prop::collection::btree_map(0u32..32, (1u32..40, 1u32..9), 0..12),
        text in prop::array::uniform5(prop::option::of(1usize..900)),
    ) {
        let drawn = Drawn { unique, common, semaphores, cbs, text };
        let program = drawn.program();
        let layout = program.layout(&workers(), &WORKER, &l1()).unwrap();
        drawn.check_ranges(&layout)?;
        drawn.check_bytes(&program, &layout)?;
    }
}

#[test]
fn a_set_of_core_ranges_is_a_list_of_cores() {
    use crate::memory::{CoreCoord, CoreGrid, CoreRange, CoreRangeSet, ShardOrientation};
    let grid = CoreGrid::new(Board::P100);
    let at = CoreCoord::new;
    let set = CoreRangeSet::new([CoreRange::new(at(6, 0), at(7, 1)), CoreRange::one(at(0, 9))]).unwrap();
    let cores = Cores::ranges(&set, &grid, ShardOrientation::RowMajor).unwrap();
    // Columns 8 and 9 have no Tensix tiles.
    let expected = [(7, 2), (10, 2), (7, 3), (10, 3), (1, 11)].map(|(x, y)| NocXy::new(x, y));
    assert_eq!(cores.resolve(&workers()).unwrap(), expected);
    let outside = CoreRangeSet::new([CoreRange::one(at(12, 0))]).unwrap();
    let error = Cores::ranges(&outside, &grid, ShardOrientation::RowMajor).unwrap_err().to_string();
    assert_eq!(error, "program (unnamed): core (12,0): expected one of 12 columns and 10 rows");
}
