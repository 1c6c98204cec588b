//! Prints the speed of one busy core in simulated MIPS:
//! `cargo run --release -p tilework-riscv --example mips`.
//!
//! Three loops over a toy tile (1536 KiB L1, local RAM, L0 cache): arithmetic only; a mix of
//! xorshift, loads, stores, multiply and branches; the same mix with a call into another code page.

#[path = "../tests/common/mod.rs"]
mod common;

use std::time::Instant;

use common::{LOCAL_BASE, Toy, li, word};
use tilework_riscv::{Core, Cycle, Exit, HartKind, Op};

const CYCLES: Cycle = 300_000_000;
/// Where the called function lies.
const FUNCTION: u32 = 0x1000;

fn xorshift() -> Vec<u32> {
    vec![
        word(Op::Slli, 6, 5, 0, 13),
        word(Op::Xor, 5, 5, 6, 0),
        word(Op::Srli, 6, 5, 0, 17),
        word(Op::Xor, 5, 5, 6, 0),
        word(Op::Slli, 6, 5, 0, 5),
        word(Op::Xor, 5, 5, 6, 0),
    ]
}

fn memory_mix() -> Vec<u32> {
    vec![
        word(Op::Andi, 7, 5, 0, 0x7c),
        word(Op::Add, 7, 7, 10, 0),
        word(Op::Lw, 8, 7, 0, 0),
        word(Op::Addi, 12, 12, 0, 1),
        word(Op::Add, 8, 8, 5, 0),
        word(Op::Sw, 0, 7, 8, 0),
        word(Op::Lw, 9, 11, 0, 0),
        word(Op::Mul, 13, 8, 5, 0),
        word(Op::Andi, 14, 5, 0, 1),
        word(Op::Beq, 0, 14, 0, 8),
        word(Op::Sub, 12, 12, 9, 0),
        word(Op::Sw, 0, 11, 13, 4),
    ]
}

fn program(body: &[u32]) -> Vec<u32> {
    let mut code = Vec::new();
    code.extend(li(5, 0x1234_5678));
    code.extend(li(10, 0x4_0000));
    code.extend(li(11, LOCAL_BASE + 16));
    let head = code.len();
    code.extend(body);
    let back = (head as i32 - code.len() as i32) * 4;
    code.push(word(Op::Bne, 0, 5, 0, back));
    code
}

fn measure(name: &str, code: &[u32]) {
    let mut bus = Toy::with_code(0, code);
    for (addr, word) in (FUNCTION..).step_by(4).zip([memory_mix(), vec![word(Op::Jalr, 0, 1, 0, 0)]].concat()) {
        bus.poke(addr, word);
    }
    let mut core = Core::new(HartKind::B);
    core.reset(0, 0);
    let start = Instant::now();
    let exit = core.run(&mut bus, CYCLES);
    let seconds = start.elapsed().as_secs_f64();
    assert_eq!(exit, Exit::Limit, "the loop never ends");
    let mips = core.retired as f64 / seconds / 1e6;
    let cpi = core.now as f64 / core.retired as f64;
    println!("{name:28} {mips:8.1} MIPS   {cpi:.2} cycles per instruction");
}

fn main() {
    measure("arithmetic", &program(&xorshift().repeat(4)));
    let independent: Vec<u32> =
        std::iter::once(word(Op::Addi, 31, 31, 0, 1)).chain((6..30).map(|rd| word(Op::Add, rd, 1, 2, 0))).collect();
    measure("independent", &program(&independent));
    measure("loads, stores, mul, branches", &program(&[xorshift(), memory_mix()].concat()));
    let mut call = xorshift();
    let at = (6 + call.len()) as i32 * 4;
    call.push(word(Op::Jal, 1, 0, 0, FUNCTION as i32 - at));
    measure("the same with a far call", &program(&call));
}
