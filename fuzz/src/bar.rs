//! Random reads and writes of the BARs: valid and invalid windows, registers, whole ranges, any
//! length and alignment.

use tilework_abi::noc::NocXy;
use tilework_abi::tlb::{self, Bar, Ordering, Window, WindowSize};

use crate::Input;
use crate::rig::Rig;

/// The most host calls of an input.
const CALLS: usize = 64;
/// The longest access; longer ones are slower and reach nothing else.
const LONGEST: u16 = 3000;

/// Runs `input`; panics if an invariant is violated.
pub fn run(input: &[u8]) {
    let mut input = Input::new(input);
    let mut rig = Rig::new(true);
    for _ in 0..CALLS {
        if input.is_empty() {
            break;
        }
        step(&mut rig, &mut input);
        if let Some(failure) = rig.failed() {
            assert!(!failure.starts_with("deadlock"), "no core runs, yet: {failure}");
        }
    }
}

fn step(rig: &mut Rig, input: &mut Input) {
    let choice = input.byte();
    match choice % 8 {
        0 => rig.run(u64::from(input.half() % 4096)),
        1 | 2 => set_window(rig, input),
        _ => {
            let (bar, offset) = place(input);
            let len = usize::from(input.half() % LONGEST);
            if choice & 8 == 0 {
                rig.read(bar, offset, &mut vec![0; len]);
            } else {
                let mut data = input.bytes(len.min(64)).to_vec();
                data.resize(len, choice);
                rig.write(bar, offset, &data);
            }
        }
    }
}

/// An address in a BAR or past its end.
fn place(input: &mut Input) -> (Bar, u64) {
    let offset = u64::from(input.word());
    match input.byte() % 8 {
        // The window registers and what follows them.
        0 => (Bar::Bar0, tlb::REGS + offset % 0x1000),
        1 => (Bar::Bar0, tlb::NIU + offset % 0x2_0000),
        2 => (Bar::Bar0, tlb::ARC_APB + offset % tlb::ARC_APB_BYTES),
        3 => (Bar::Bar2, offset % 0x10_0000),
        4 => (Bar::Bar4, u64::from(input.byte() % 9) << 32 | offset),
        5 => (Bar::Bar0, offset),
        // The first windows, which `set_window` sets.
        6 => (Bar::Bar4, u64::from(input.byte() % 4) << 32 | offset),
        _ => (Bar::Bar0, u64::from(input.byte() % 4) * tlb::SIZE_2M + offset % tlb::SIZE_2M),
    }
}

/// Sets one of the first four windows of either size, to a valid target or to nonsense.
fn set_window(rig: &mut Rig, input: &mut Input) {
    let index = u32::from(input.byte() % 4) + if input.byte().is_multiple_of(4) { tlb::COUNT_2M } else { 0 };
    let words = if input.byte().is_multiple_of(8) {
        [input.word(), input.word(), input.word()]
    } else {
        let xy = |input: &mut Input| match input.byte() % 4 {
            0 => NocXy::new(input.byte() % 64, input.byte() % 64),
            1 => NocXy::new(17 + input.byte() % 2, 12 + input.byte() % 12),
            _ => NocXy::new(1 + input.byte() % 7, 2 + input.byte() % 10),
        };
        let target = xy(input);
        let address = match input.byte() % 4 {
            0 => input.double(),
            1 => 0xFFA0_0000 + u64::from(input.byte() % 3) * tlb::SIZE_2M,
            _ => u64::from(input.word()),
        };
        let window = Window {
            start: xy(input),
            noc: input.byte() % 4,
            multicast: input.byte().is_multiple_of(4),
            ordering: Ordering::from_bits(u32::from(input.byte() % 4)),
            linked: input.byte().is_multiple_of(32),
            ..Window::unicast(target, address)
        };
        window.encode(WindowSize::of_window(index))
    };
    for (word, at) in words.into_iter().zip((0..).step_by(4)) {
        rig.write(Bar::Bar0, tlb::REGS + tlb::REG_BYTES * u64::from(index) + at, &word.to_le_bytes());
    }
}
