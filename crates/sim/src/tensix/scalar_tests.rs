//! The scalar unit, the mover and TDMA-RISC against the pages' functional models.

use super::bench::Bench;
use super::thread_tests::{NOP, setdmareg};
use super::*;
use crate::{FaultClass, NEVER};
use Processor::{Brisc, Trisc0, Trisc1};
use tilework_abi::tensix as map;
use tilework_abi::tensix::insn::{self, Insn};
use tilework_riscv::Refuse;

/// `ADDDMAREG`.
fn add(right_is_imm: bool, result: u32, right: u32, left: u32) -> u32 {
    let add = insn::Adddmareg::build().right_is_imm(right_is_imm).result_reg(result);
    add.right_reg(right).left_reg(left).word()
}
fn loadind(size: u32, half: u32, increment: u32, result: u32, addr: u32) -> u32 {
    let load = insn::Loadind::build().size(size).offset_half_reg(half).offset_increment(increment);
    load.result_reg(result).addr_reg(addr).word()
}
fn storeind(to_l1: bool, half: u32, increment: u32, data: u32, addr: u32) -> insn::Build<insn::Storeind> {
    let store = insn::Storeind::build().to_l1(to_l1).to_mmio(!to_l1);
    store.offset_half_reg(half).offset_increment(increment).data_reg(data).addr_reg(addr)
}
const STALL_C0: u32 = insn::Stallwait::build().block_mask(insn::BLOCK_ALL as u32).condition_mask(1).word();

#[test]
fn arithmetic_computes_what_the_pages_say() {
    let (left, right) = (0x8001_FFFEu32, 37u32);
    macro_rules! word {
        ($insn:ident $(.$mode:ident($value:literal))?) => {
            |imm: bool, result: u32, right: u32| {
                let word = insn::$insn::build()$(.$mode($value))?.right_is_imm(imm).result_reg(result);
                word.right_reg(right).left_reg(1).word()
            }
        };
    }
    type Word = fn(bool, u32, u32) -> u32;
    let cases: [(Word, u32, u32); 11] = [
        (word!(Adddmareg), left + right, left + 37),
        (word!(Subdmareg), left - right, left - 37),
        (word!(Muldmareg), 0xFFFE * 37, 0xFFFE * 37),
        (word!(Bitwopdmareg.mode(0)), left & right, left & 37),
        (word!(Bitwopdmareg.mode(1)), left | right, left | 37),
        (word!(Bitwopdmareg.mode(2)), left ^ right, left ^ 37),
        (word!(Shiftdmareg.mode(0)), left << 5, left << 5),
        (word!(Shiftdmareg.mode(1)), left >> 5, left >> 5),
        (word!(Cmpdmareg.mode(0)), 1, 1),
        (word!(Cmpdmareg.mode(1)), 0, 0),
        (word!(Cmpdmareg.mode(2)), 0, 0),
    ];
    for (word, want, with_imm) in cases {
        let mut b = Bench::new();
        b.set_gpr(2, 1, left);
        b.set_gpr(2, 2, right);
        b.execute(2, &[word(false, 63, 2), word(true, 62, 37)]);
        assert_eq!((b.gpr(2, 63), b.gpr(2, 62)), (want, with_imm), "{}", Insn::decode(word(false, 63, 2)));
    }
    let mut b = Bench::new();
    b.push(0, 0, &[insn::Cmpdmareg::build().mode(3).word()]);
    assert_eq!(b.run(100).unwrap_err().class, FaultClass::UndefinedBehavior);
}

#[test]
fn one_instruction_at_a_time_and_its_thread_starts_nothing_else() {
    let mut b = Bench::new();
    // Operands of one group of four: three cycles; of two groups: four.
    b.push(0, 0, &[add(false, 1, 2, 3), NOP, add(false, 1, 2, 4), NOP]);
    assert_eq!(b.run(100).unwrap(), [3, 6, 7, 11]);
    // Two threads want the unit; the other one's NOP does not.
    b.push(0, 100, &[add(true, 1, 2, 3)]);
    b.push(1, 100, &[setdmareg(0, 1)]);
    b.push(2, 100, &[NOP]);
    assert_eq!(b.run(200).unwrap(), [103, 103, 106]);
}

#[test]
fn setdmareg_writes_halves_and_reads_zero_where_there_is_nothing() {
    let mut b = Bench::new();
    b.execute(1, &[setdmareg(127, 0x1234), setdmareg(126, 0x5678)]);
    assert_eq!(b.gpr(1, 63), 0x1234_5678);
    (4..8).for_each(|i| b.set_gpr(1, i, u32::MAX));
    // InputSource 10 is none: four zeros.
    let special = insn::Setdmareg::build().set_signals_mode(true);
    b.execute(1, &[special.result_size(2).input_source(10).result_half_reg(9).word()]);
    assert_eq!([4, 5, 6, 7].map(|i| b.gpr(1, i)), [0; 4]);
    b.push(1, 9_999_999, &[special.input_source(1).word()]);
    assert_eq!(b.run(NEVER).unwrap_err().class, FaultClass::UnimplementedFunctionality, "packers' zero flags");
}

#[test]
fn indirect_accesses_of_all_sizes_move_their_offset_on() {
    let mut b = Bench::new();
    b.set_gpr(0, 1, 0x100);
    b.set_gpr(0, 2, 0x0014 << 16);
    (8..12).for_each(|i| b.set_gpr(0, i, 0xA0A0_A000 + i));
    // Half register 5 is the high half of GPR 2. 16 bytes at 0x1014, aligned down; then 4, 2 and 1
    // bytes.
    let store = |size: u32, increment| storeind(true, 5, increment, 9, 1).size(size).word();
    b.execute(0, &[store(0, 3), store(1, 2), store(2, 1), store(3, 0)]);
    assert_eq!([0x1010, 0x1014, 0x1018, 0x101C].map(|a| b.word(a)), [8, 9, 10, 11].map(|i| 0xA0A0_A000 + i));
    assert_eq!((b.word(0x1024), b.word(0x1028)), (0xA0A0_A009, 0x0009_A009));
    assert_eq!(b.gpr(0, 2) >> 16, 0x14 + 16 + 4 + 2);
    // And back.
    b.set_gpr(0, 2, 0x0014 << 16);
    (20..29).for_each(|i| b.set_gpr(0, i, 0x7777_7777));
    let load = |size: u32, increment, target| loadind(size, 5, increment, target, 1);
    b.execute(0, &[load(0, 3, 21), load(1, 2, 24), load(2, 1, 25), load(3, 0, 26), STALL_C0]);
    assert_eq!([20, 21, 22, 23].map(|i| b.gpr(0, i)), [8, 9, 10, 11].map(|i| 0xA0A0_A000 + i));
    assert_eq!([24, 25, 26].map(|i| b.gpr(0, i)), [0xA0A0_A009, 0x7777_A009, 0x7777_7709]);
}

#[test]
fn addresses_outside_l1_are_undefined_behaviour() {
    for word in [
        loadind(0, 0, 0, 0, 1),
        storeind(true, 0, 0, 0, 1).word(),
        insn::Atincget::build().addr_reg(1).word(),
        insn::Atincgetptr::build().addr_reg(1).word(),
        insn::Atswap::build().addr_reg(1).word(),
        insn::Atcas::build().addr_reg(1).word(),
    ] {
        let mut b = Bench::new();
        b.set_gpr(0, 1, map::L1_SIZE / 16);
        b.push(0, 0, &[word]);
        let fault = b.run(100).unwrap_err();
        assert_eq!(fault.class, FaultClass::UndefinedBehavior, "{word:#x}");
        assert!(fault.what.contains("outside L1"), "{}", fault.what);
    }
}

#[test]
fn registers_are_reached_by_three_instructions() {
    let mut b = Bench::new();
    b.set_gpr(0, 1, 0x1_2345);
    b.set_gpr(0, 2, 0x40);
    b.set_gpr(0, 3, 0xCAFE);
    // GPR 1 plus a sixteenth of the offset, to a word.
    let storereg = insn::Storereg::build().data_reg(3).addr_lo(0x4800).word();
    let loadreg = insn::Loadreg::build().result_reg(4).addr_lo(0x4800).word();
    b.execute(0, &[storeind(false, 4, 1, 3, 1).word(), storereg, loadreg, STALL_C0]);
    assert_eq!(b.out.registers.iter().collect::<Vec<_>>(), [(&0xFFB1_2000, &0xCAFE), (&0xFFB1_2348, &0xCAFE)]);
    assert_eq!((b.gpr(0, 4), b.gpr(0, 2)), (0xCAFE, 0x42));
    b.push(0, 9_999_999, &[insn::Loadreg::build().word()]);
    assert_eq!(b.run(NEVER).unwrap_err().class, FaultClass::UndefinedBehavior, "a core's local RAM");
}

#[test]
fn atincget_adds_within_a_width_and_gives_the_old_value() {
    let mut b = Bench::new();
    b.out.l1[0x208..0x20C].copy_from_slice(&0xABCD_00FEu32.to_le_bytes());
    b.set_gpr(0, 1, 0x20);
    b.set_gpr(0, 2, 3);
    let get = insn::Atincget::build().in_out_reg(2).addr_reg(1);
    b.push(0, 0, &[get.int_width(7).ofs(2).word(), STALL_C0, NOP]);
    assert_eq!(b.run(1000).unwrap(), [3, 6, 31], "27 cycles to the result, one for the block");
    assert_eq!((b.word(0x208), b.gpr(0, 2)), (0xABCD_0001, 0xABCD_00FE));
    // At best one in twelve cycles.
    b.push(0, 1000, &[get.word(), get.word()]);
    assert_eq!(b.run(2000).unwrap(), [1003, 1015]);
}

#[test]
fn atswap_writes_the_halves_of_its_mask() {
    let mut b = Bench::new();
    b.out.l1[0x300..0x310].fill(0xEE);
    b.set_gpr(0, 1, 0x30);
    (4..8).for_each(|i| b.set_gpr(0, i, 0x1111_0000 * i + i));
    b.execute(0, &[insn::Atswap::build().mask(0b1001_0010).data_reg(5).addr_reg(1).word()]);
    let words = [0x300, 0x304, 0x308, 0x30C].map(|a| b.word(a));
    assert_eq!(words, [0x4444_EEEE, 0xEEEE_EEEE, 0xEEEE_0006, 0x7777_EEEE]);
    // SingleDataReg: zeros around it.
    let single = insn::Atswap::build().single_data_reg(true);
    b.execute(0, &[single.mask(0xFF).data_reg(6).addr_reg(1).word()]);
    assert_eq!([0x300, 0x304, 0x308, 0x30C].map(|a| b.word(a)), [0, 0, 0x6666_0006, 0]);
}

#[test]
fn atcas_tries_every_fifteen_cycles_until_the_word_is_right() {
    let mut b = Bench::new();
    b.out.l1[0x104] = 4;
    b.set_gpr(0, 1, 0x10);
    b.push(0, 100, &[insn::Atcas::build().set_val(9).cmp_val(5).ofs(1).addr_reg(1).word(), NOP]);
    b.push(1, 100, &[insn::Dmanop::build().word()]);
    assert_eq!(b.run(1000).unwrap(), [0; 0], "the unit is held, for the other thread too");
    assert_eq!((b.t.next(), b.out.asleep_on.as_slice()), (NEVER, &[0x104][..]));
    assert!(b.t.explain(Trisc0)[0].0.contains("atomic on L1"));
    // First tried at 103; somebody writes at cycle 1000, seen by the attempt at 1003.
    b.t.wake(1000);
    b.out.l1[0x104] = 5;
    assert_eq!(b.run(2000).unwrap(), [1003, 1018, 1018]);
    assert_eq!(b.word(0x104), 9);
}

#[test]
fn atincgetptr_pushes_and_pops_while_there_is_room_and_data() {
    let mut b = Bench::new();
    b.set_gpr(0, 1, 0x10);
    // Capacity 2 (width 2), steps of one: rd at 0x100, wr at 0x104.
    let at = |ofs| insn::Atincgetptr::build().int_width(2).ofs(ofs).result_reg(7).addr_reg(1).word();
    b.execute(0, &[at(1)]);
    b.execute(0, &[at(1)]);
    assert_eq!((b.word(0x104), b.gpr(0, 7)), (2, 1), "the old value");
    assert!(b.execute(0, &[at(1)]).is_empty(), "full");
    // Another thread cannot help, for the unit is held; a core pops.
    b.out.l1[0x100] = 1;
    b.t.wake(b.t.last_step());
    b.run(NEVER).unwrap();
    assert_eq!(b.word(0x104), 3);
    b.execute(0, &[at(0)]);
    b.execute(0, &[at(0)]);
    assert_eq!(b.word(0x100), 3);
    b.execute(0, &[at(1)]);
    assert_eq!(b.word(0x104), 0, "two bits wide");
}

#[test]
fn reg2flop_writes_thcon_configuration() {
    let mut b = Bench::new();
    (4..8).for_each(|i| b.set_gpr(0, i, i));
    // 32 bits to THCON index 5, 128 bits around index 9.
    let one = insn::Reg2flop::build().size_sel(1).thcon_cfg_index(5).input_reg(7);
    let four = insn::Reg2flop::build().thcon_cfg_index(9).input_reg(6);
    b.execute(0, &[one.word(), four.word()]);
    let cfg = |index: u32| b.t.peek(Brisc, map::CFG_BASE + 4 * index).unwrap();
    assert_eq!([69, 72, 73, 74, 75].map(cfg), [7, 4, 5, 6, 7]);
}

#[test]
fn flushdma_occupies_the_unit_until_its_conditions_hold() {
    let mut b = Bench::new();
    b.push(0, 0, &[loadind(1, 0, 0, 2, 1), insn::Flushdma::build().condition_mask(1).word(), NOP]);
    assert_eq!(b.run(100).unwrap(), [3, 13, 15]);
}

fn move_by_tdma(b: &mut Bench, at: Cycle, src: u32, dst: u32, size: u32, mode: u32) {
    for (reg, value) in [(0, src >> 4), (4, dst >> 4), (8, size >> 4), (12, mode), (16, 0x40)] {
        b.t.store(Brisc, map::TDMA_BASE + reg, value, at).unwrap();
    }
}

fn status(b: &Bench) -> u32 {
    b.t.peek(Brisc, map::TDMA_BASE + 0x14).unwrap()
}

#[test]
fn the_mover_copies_and_clears_l1() {
    let mut b = Bench::new();
    let data: Vec<u8> = (0..=255).collect();
    b.out.l1[0x1000..0x1100].copy_from_slice(&data);
    move_by_tdma(&mut b, 100, 0x1000, 0x8000, 0x100, 3);
    b.run(110).unwrap();
    assert_eq!(status(&b), 0x429, "busy, queue empty");
    assert_eq!(b.word(0x8004), 0);
    // 16 blocks at eight in eleven cycles, and the start.
    b.run(130).unwrap();
    assert_eq!(status(&b) & 1, 1);
    b.run(131).unwrap();
    assert_eq!((status(&b), &b.out.l1[0x8000..0x8100]), (0x428, &data[..]));
    move_by_tdma(&mut b, 200, 0, 0x8010, 0x20, 0);
    b.run(300).unwrap();
    assert_eq!(&b.out.l1[0x8000..0x8034], &[&data[..16], &[0; 32], &data[48..52]].concat()[..]);
}

#[test]
fn the_mover_is_slower_beside_the_packer() {
    // Four blocks copied, cleared in L1, and written outside L1: with the ports to itself, and not.
    for (mode, alone, contended) in [(3, 6, 16), (0, 4, 12), (2, 4, 4)] {
        for (packs, cycles) in [(0, alone), (1000, contended)] {
            let mut b = Bench::new();
            b.t.coprocessor.units.packer = packs;
            move_by_tdma(&mut b, 100, 0x1000, 0x2_0000, 0x40, mode);
            b.run(108 + cycles).unwrap();
            assert_eq!(status(&b) & 1, 1, "mode {mode}");
            b.run(109 + cycles).unwrap();
            assert_eq!(status(&b) & 1, 0, "mode {mode}");
        }
    }
}

#[test]
fn the_mover_writes_configuration_and_nowhere() {
    let mut b = Bench::new();
    b.out.l1[0x1000..0x1010].copy_from_slice(&[1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0]);
    move_by_tdma(&mut b, 0, 0x1000, 4 * 88, 0x10, 1);
    b.run(100).unwrap();
    let cfg = |b: &Bench| [88, 89, 90, 91].map(|i| b.t.peek(Brisc, map::CFG_BASE + 4 * i).unwrap());
    assert_eq!(cfg(&b), [1, 2, 3, 4]);
    move_by_tdma(&mut b, 200, 0, 4 * 88, 0x10, 2);
    move_by_tdma(&mut b, 200, 0x1000, 0x2_0000, 0x10, 1);
    b.run(400).unwrap();
    assert_eq!(cfg(&b), [0; 4]);
    move_by_tdma(&mut b, 500, 0, 0x4_0000, 0x10, 2);
    assert_eq!(b.run(700).unwrap_err().class, FaultClass::MissingSpecification, "instruction RAM");
    let mut b = Bench::new();
    move_by_tdma(&mut b, 0, map::L1_SIZE - 16, 0, 0x20, 3);
    let fault = b.run(100).unwrap_err();
    let queued = (Some(Brisc), Some(Brisc.default_reset_pc()));
    assert_eq!((fault.class, (fault.site.core, fault.site.pc)), (FaultClass::UndefinedBehavior, queued));
}

/// What the mover does is found out later; the core's instruction that queued the command is named.
#[test]
fn a_wrong_command_names_the_instruction_that_queued_it() {
    for word in [0x33, 0x8000_0066] {
        let mut b = Bench::new();
        b.t.store(Issuer { core: Trisc1, pc: 0x6010 }, map::TDMA_BASE + 16, 0x8000_0089, 0).unwrap();
        b.t.store(Issuer { core: Trisc1, pc: 0x6014 }, map::TDMA_BASE + 16, word, 0).unwrap();
        let fault = b.run(100).unwrap_err();
        assert_eq!((fault.site.core, fault.site.pc), (Some(Trisc1), Some(0x6014)), "{fault}");
        assert!(
            fault.what.contains("the TDMA command") && fault.to_string().contains(", TRISC1, pc 0x6014"),
            "{fault}"
        );
    }
}

#[test]
fn commands_wait_for_the_mover_and_for_room() {
    let mut b = Bench::new();
    b.out.l1[0x1000] = 7;
    move_by_tdma(&mut b, 0, 0x1000, 0x2000, 0x10, 3);
    move_by_tdma(&mut b, 0, 0x2000, 0x3000, 0x10, 3);
    // A mover wait, then a write of 64 bits to L1.
    b.t.store(Brisc, map::TDMA_BASE + 16, 0x8000_0046, 0).unwrap();
    b.run(2).unwrap();
    for (reg, value) in [(0, 0x4000), (8, 0x55), (12, 0x66), (16, 0x766)] {
        b.t.store(Brisc, map::TDMA_BASE + reg, value, 2).unwrap();
    }
    assert_eq!(status(&b), 0x111, "one place left, both for parameters are taken");
    b.t.store(Brisc, map::TDMA_BASE + 16, 0x8000_0089, 2).unwrap();
    assert_eq!(b.t.store(Brisc, map::TDMA_BASE + 16, 0x8000_0089, 2), Err(Refuse::Block));
    b.t.core_blocks(Awaits::ANYTHING);
    b.run(100).unwrap();
    assert!(b.t.has_changed(), "who waits for room looks again");
    assert_eq!([0x2000, 0x3000, 0x4000, 0x4004].map(|a| b.word(a)), [7, 7, 0x55, 0x66]);
    assert_eq!(status(&b), 0x428);
}

#[test]
fn xmov_takes_its_operands_from_configuration_and_stallwait_waits_for_it() {
    let mut b = Bench::new();
    b.out.l1[0x1000] = 7;
    for (index, value) in [(88, 0x100), (89, 0x200), (90, 1 | 3 << 30)] {
        b.t.store(Brisc, map::CFG_BASE + 4 * index, value, 0).unwrap();
    }
    let xmov = insn::Xmov::build().word();
    let stall = insn::Stallwait::build().block_mask(insn::BLOCK_ALL.into());
    b.push(0, 0, &[xmov, xmov, stall.condition_mask(1 << 9).word(), NOP]);
    // Ten cycles a block of one; the second waits for the first.
    assert_eq!(b.run(100).unwrap(), [3, 13, 14, 24]);
    assert_eq!(b.word(0x2000), 7);
}

#[test]
fn storeind_writes_four_data_of_src_a_or_src_b() {
    use crate::tensix::number::src_of_bf16;
    let stored = |to_b: bool, addr: u32| {
        let mut b = Bench::new();
        // 1.0 and 2.0 with the mantissa first, -3.5 and 4.0 as BF16 is.
        for (gpr, value) in [(0, 0x4000_007F), (1, 0x4080_E080), (4, addr), (5, 0x20)] {
            b.set_gpr(0, gpr, value);
        }
        let word = insn::Storeind::build().to_src_b(to_b).addr_reg(4).offset_half_reg(10).offset_increment(2);
        let passed = b.execute(0, &[word.word(), NOP]);
        assert_eq!((b.gpr(0, 5), passed[1] - passed[0]), (0x24, 3));
        let rows = b.t.coprocessor.src.0[usize::from(to_b)].unpacked_mut();
        rows.iter().enumerate().find_map(|(i, row)| Some((i, row.iter().position(|&x| x != 0)?, *row)))
    };
    let data = [0x3F80, 0x4000, 0xC060, 0x4080].map(src_of_bf16);
    for (to_b, addr, place) in [(true, 0, (0, 8)), (true, 61, (15, 12)), (false, 21, (1, 12)), (false, 16, (0, 8))] {
        // The offset of 0x20 is two groups of four data.
        let (row, column, found) = stored(to_b, addr).expect("it stores");
        assert_eq!((row, column), place, "{addr}");
        assert_eq!(found[column..column + 4], data);
    }
    assert_eq!(stored(false, 13), None, "before SrcA");
}

#[test]
fn storeind_waits_for_a_bank_and_refuses_what_lies_behind_it() {
    let word = insn::Storeind::build().to_src_b(true).addr_reg(4).offset_half_reg(10).word();
    let mut b = Bench::new();
    b.execute(1, &[insn::Setdvalid::build().set_valid(2).word(); 2]);
    b.push(0, 1000, &[word, NOP]);
    assert_eq!(b.run(2000).unwrap(), [0; 0]);
    b.push(1, 2000, &[insn::Cleardvalid::build().clear_dvalid(2).word()]);
    assert_eq!(b.run(3000).unwrap(), [2003, 2004, 2007]);
    for addr in [64, 1 << 16] {
        b.set_gpr(0, 4, addr);
        b.push(0, 4000, &[word]);
        let fault = b.run(5000).unwrap_err();
        assert_eq!((fault.class, fault.site.core), (FaultClass::UndefinedBehavior, Some(Trisc0)));
        b = Bench::new();
    }
}
