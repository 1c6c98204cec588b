//! Atomics against the pseudo-code of WormholeB0/NoC/Atomics.md, worked by hand.

use super::Ram;
use crate::Memory;
use crate::noc::atomics::{perform, touched};
use proptest::prelude::*;

/// Sixteen bytes at 0x100 holding the words 0x11111111, 0x22222222, 0x33333333, 0x44444444.
fn ram() -> Ram {
    let mut ram = Ram::new();
    for i in 0..4 {
        ram.set_word(0x100 + 4 * i, 0x1111_1111 * (i as u32 + 1));
    }
    ram
}

fn words(ram: &Ram) -> [u32; 4] {
    [0, 1, 2, 3].map(|i| ram.word(0x100 + 4 * i))
}

#[test]
fn increment_returns_the_old_word_and_wraps_within_its_width() {
    let mut ram = ram();
    // Opcode 1, IntWidth 31, Ofs 1: a full increment of the word at 0x104.
    let full = 1 << 12 | 31 << 2 | 1;
    assert_eq!(perform(0, 0x104, full, 5, &mut ram).expect("an increment"), 0x2222_2222);
    assert_eq!(words(&ram), [0x1111_1111, 0x2222_2227, 0x3333_3333, 0x4444_4444]);
    assert_eq!(perform(0, 0x104, full, u32::MAX, &mut ram).expect("an increment"), 0x2222_2227);
    assert_eq!(ram.word(0x104), 0x2222_2226, "adding -1");
    // IntWidth 3: four bits. 0x11111111 + 0xF = 0x11111120; the low four bits are 0, the
    // others stay.
    let nibble = 1 << 12 | 3 << 2;
    assert_eq!(perform(0, 0x100, nibble, 0xF, &mut ram).expect("an increment"), 0x1111_1111);
    assert_eq!(ram.word(0x100), 0x1111_1110);
}

#[test]
fn increment_may_work_on_another_word_than_it_returns() {
    let mut ram = ram();
    let op = 1 << 12 | 31 << 2 | 3;
    assert_eq!(perform(0, 0x100, op, 1, &mut ram).expect("an increment"), 0x1111_1111);
    assert_eq!(words(&ram), [0x1111_1111, 0x2222_2222, 0x3333_3333, 0x4444_4445]);
}

#[test]
fn compare_and_swap_sets_only_on_equality() {
    let mut ram = ram();
    ram.set_word(0x108, 5);
    let cas = |compare: u32, set: u32| 4 << 12 | set << 6 | compare << 2 | 2;
    assert_eq!(perform(0, 0x108, cas(4, 9), 0, &mut ram).expect("a comparison"), 5);
    assert_eq!(ram.word(0x108), 5);
    assert_eq!(perform(0, 0x108, cas(5, 9), 0, &mut ram).expect("a comparison"), 5);
    assert_eq!(words(&ram), [0x1111_1111, 0x2222_2222, 9, 0x4444_4444]);
}

#[test]
fn swap_by_mask_writes_selected_lanes() {
    let mut ram = ram();
    // Mask 0b1001_0110: lanes 1, 2, 4 and 7; even lanes get the low half, odd ones the high half.
    let op = 3 << 12 | 0b1001_0110 << 2;
    assert_eq!(perform(0, 0x10C, op, 0xAAAA_BBBB, &mut ram).expect("a swap"), 0x4444_4444);
    assert_eq!(words(&ram), [0xAAAA_1111, 0x2222_BBBB, 0x3333_BBBB, 0xAAAA_4444]);
}

#[test]
fn swap_by_index_writes_one_word() {
    let mut ram = ram();
    // Variant 6: Ofs in bits 0..2 and bit 2 set. Variant 7: Ofs in bits 2..4.
    assert_eq!(perform(0, 0x104, 6 << 12 | 1 << 2 | 1, 7, &mut ram).expect("a swap"), 0x2222_2222);
    assert_eq!(perform(0, 0x108, 7 << 12 | 2 << 2, 8, &mut ram).expect("a swap"), 0x3333_3333);
    assert_eq!(words(&ram), [0x1111_1111, 7, 8, 0x4444_4444]);
}

#[test]
fn other_opcodes_and_addresses_are_faults() {
    let mut ram = ram();
    for op in [0, 2, 5, 8, 9, 15] {
        assert!(perform(0, 0x100, op << 12, 0, &mut ram).is_err(), "opcode {op}");
    }
    assert!(perform(0, 0x100, 6 << 12, 0, &mut ram).is_err(), "variant 6 without bit 2");
    assert!(perform(0, 0x102, 1 << 12, 0, &mut ram).is_err(), "between words");
    assert!(perform(0, 0xFFB4_0000, 1 << 12, 0, &mut ram).is_err(), "a register");
    assert_eq!(words(&ram), words(&self::ram()));
}

proptest! {
    /// All that an atomic changes lies in the range that it announces.
    #[test]
    fn an_atomic_changes_only_what_it_touches(word in 0..4u64, len_be: u32, data: u32) {
        let mut ram = ram();
        let before = ram.l1[0xF0..0x120].to_vec();
        let addr = 0x100 + 4 * word;
        let range = touched(addr, len_be);
        prop_assert!(ram.is_l1(range.addr));
        let _ = perform(0, addr, len_be, data, &mut ram);
        for (i, (old, new)) in before.iter().zip(&ram.l1[0xF0..0x120]).enumerate() {
            let at = 0xF0 + i as u64;
            prop_assert!(old == new || (range.addr..range.addr + range.len).contains(&at));
        }
    }
}
