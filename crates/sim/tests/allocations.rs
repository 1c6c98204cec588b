//! Computing and sleeping cores cost no allocation: what a chip needs for them it has
//! after a while.

use std::alloc::{GlobalAlloc, Layout, System};
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU64, Ordering};
use tilework_abi::board::Board;
use tilework_abi::noc::NocXy;
use tilework_abi::tensix as map;
use tilework_abi::tlb::{self, Bar, Window, WindowSize};
use tilework_riscv::{Insn, Op, encode};
use tilework_sim::{Chip, ChipConfig};

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

/// The system's allocator, counted.
struct Counting;

// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller keeps to the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: `ptr` comes from `alloc` above with this layout.
        unsafe { System.dealloc(ptr, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

fn write(chip: &mut Chip, xy: NocXy, addr: u32, data: &[u8]) {
    let base = u64::from(addr) & !(tlb::SIZE_2M - 1);
    for (i, word) in Window::unicast(xy, base).encode(WindowSize::Small).into_iter().enumerate() {
        chip.bar_write(Bar::Bar0, tlb::REGS + 4 * i as u64, &word.to_le_bytes()).expect("a register of window 0");
    }
    chip.bar_write(Bar::Bar0, u64::from(addr) - base, data).expect("window 0 shows the tile");
}

/// Starts `program` on BRISC of the first `count` workers.
fn started(program: &[(Op, u8, u8, u8, i32)], count: usize) -> Chip {
    // With several threads, how many packets one of them has at once depends on the machine, and so
    // when its memory has grown.
    let config = ChipConfig { threads: NonZeroUsize::new(1), ..ChipConfig::new(Board::P100) };
    let mut chip = Chip::new(config).expect("the board tables fit");
    let words = program.iter().map(|&(op, rd, rs1, rs2, imm)| encode(Insn { op, rd, rs1, rs2, imm }));
    let code: Vec<u8> = words.flat_map(|word| word.expect("operands fit").to_le_bytes()).collect();
    for xy in Board::P100.workers().take(count) {
        write(&mut chip, xy, 0, &code);
        write(&mut chip, xy, map::SOFT_RESET_0, &map::SOFT_RESET_BRISC_RUNS.to_le_bytes());
    }
    chip.run(100_000).expect("no fault");
    chip
}

#[test]
fn a_chip_that_computes_or_sleeps_does_not_allocate() {
    let computing = [
        (Op::Addi, 7, 7, 0, 1),
        (Op::Mul, 8, 7, 7, 0),
        (Op::Sw, 0, 0, 8, 0x400),
        (Op::Lw, 9, 0, 0, 0x404),
        (Op::Jal, 0, 0, 0, -16),
    ];
    let polling = [(Op::Fence, 0, 0, 0, 0xff), (Op::Lw, 5, 0, 0, 0x400), (Op::Beq, 0, 5, 0, -8)];
    for (name, program) in [("computing", &computing[..]), ("polling", &polling[..])] {
        for tiles in [1, 8] {
            let mut chip = started(program, tiles);
            let instructions = chip.stats().instructions;
            let before = ALLOCATIONS.load(Ordering::Relaxed);
            chip.run(100_000).expect("no fault");
            (0..1000).for_each(|_| chip.run(1).expect("no fault"));
            let allocations = ALLOCATIONS.load(Ordering::Relaxed) - before;
            assert_eq!(allocations, 0, "{name} on {tiles} tiles");
            let executed = chip.stats().instructions - instructions;
            assert_eq!(executed > 0, name == "computing", "{name}: {executed} instructions");
        }
    }
}
