//! Stores in a row are as stores one by one: the same registers, memory, cycles and counts,
//! wherever a run ends.

mod common;

use common::{LOCAL_BASE, Toy, li, word};
use proptest::collection::vec;
use proptest::prelude::*;
use tilework_riscv::{Core, Cycle, Exit, HartKind, Op};

/// The cycle at which each simulation ends.
const END: Cycle = 2000;

/// An instruction of the program. x18 and x19 hold addresses in local RAM, x20 one in L1.
#[derive(Clone, Copy, Debug)]
enum Piece {
    Store { base: u8, data: u8, at: u8 },
    Load { to: u8, at: u8 },
    Constant { to: u8, from: u8, value: i8 },
    Upper { to: u8, value: u8 },
    Multiply { to: u8, a: u8, b: u8 },
}

impl Piece {
    fn word(self) -> u32 {
        match self {
            Self::Store { base, data, at } => word(Op::Sw, 0, base, data, 4 * i32::from(at)),
            Self::Load { to, at } => word(Op::Lw, to, 18, 0, 4 * i32::from(at)),
            Self::Constant { to, from, value } => word(Op::Addi, to, from, 0, value.into()),
            Self::Upper { to, value } => word(Op::Lui, to, 0, 0, i32::from(value) << 12),
            Self::Multiply { to, a, b } => word(Op::Mul, to, a, b, 0),
        }
    }
}

fn piece() -> impl Strategy<Value = Piece> {
    prop_oneof![
        6 => (18..21u8, 0..12u8, 0..16u8).prop_map(|(base, data, at)| Piece::Store { base, data, at }),
        1 => (0..12u8, 0..16u8).prop_map(|(to, at)| Piece::Load { to, at }),
        2 => (0..12u8, 0..12u8, any::<i8>()).prop_map(|(to, from, value)| Piece::Constant { to, from, value }),
        1 => (0..12u8, any::<u8>()).prop_map(|(to, value)| Piece::Upper { to, value }),
        1 => (0..12u8, 0..12u8, 0..12u8).prop_map(|(to, a, b)| Piece::Multiply { to, a, b }),
    ]
}

/// Runs the program again and again, in runs of `slice` cycles.
fn simulate(pieces: &[Piece], slice: Cycle, rows: bool) -> (Core, Toy) {
    let mut code: Vec<u32> = [(18, LOCAL_BASE), (19, LOCAL_BASE + 32), (20, 0x9000)]
        .into_iter()
        .flat_map(|(reg, value)| li(reg, value))
        .collect();
    let start = code.len();
    code.extend(pieces.iter().map(|piece| piece.word()));
    code.push(word(Op::Jal, 0, 0, 0, 4 * (start as i32 - code.len() as i32)));
    let mut bus = Toy::with_code(0, &code);
    bus.rows = rows;
    let mut core = Core::new(HartKind::B);
    core.set_parking(false);
    while core.now < END {
        let limit = END.min(core.now + slice);
        assert_eq!(core.run(&mut bus, limit), Exit::Limit);
    }
    (core, bus)
}

proptest! {
    #[test]
    fn stores_in_a_row_are_as_stores_one_by_one(pieces in vec(piece(), 1..90), slice in 1..60u64) {
        let (core, bus) = simulate(&pieces, END, false);
        let (same, same_bus) = simulate(&pieces, slice, true);
        prop_assert_eq!((same.now, same.pc, same.regs, same.retired), (core.now, core.pc, core.regs, core.retired));
        prop_assert_eq!(same_bus.local(), bus.local());
        prop_assert_eq!(same_bus.l1, bus.l1);
    }
}
