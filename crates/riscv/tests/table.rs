//! The instruction table, its decoder, encoder and disassembler.

use std::process::Command;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use tilework_riscv::{CodePage, Format, Insn, Op, TABLE, disassemble, encode};

/// Any instruction of the table, or `.ttinsn`, with any operands of its format.
fn any_insn() -> impl Strategy<Value = Insn> {
    let fields = (0..=TABLE.len(), 0..32u8, 0..32u8, 0..32u8, any::<i32>());
    fields.prop_map(|(row, rd, rs1, rs2, imm)| {
        let op = TABLE.get(row).map_or(Op::Ttinsn, |row| row.op);
        fit(Insn { op, rd, rs1, rs2, imm })
    })
}

/// Reduces operands to what the format holds.
fn fit(mut insn: Insn) -> Insn {
    let imm = insn.imm;
    let (rd, rs1, rs2, imm) = match insn.op.format() {
        Format::R => (true, true, true, 0),
        Format::Unary => (true, true, false, 0),
        Format::I | Format::Load | Format::Jalr => (true, true, false, imm << 20 >> 20),
        Format::Shift => (true, true, false, imm & 31),
        Format::Store => (false, true, true, imm << 20 >> 20),
        Format::Branch => (false, true, true, imm << 19 >> 19 & !1),
        Format::U => (true, false, false, imm & !0xfff),
        Format::Jal => (true, false, false, imm << 11 >> 11 & !1),
        Format::Csr => (true, true, false, imm & 0xfff),
        Format::CsrImm => (true, false, false, imm & 0x1_ffff),
        Format::Amo => (true, true, true, imm & 3),
        Format::Fence => (false, false, false, imm & 0xfff),
        Format::Fixed => (false, false, false, 0),
        Format::Ttinsn => (false, false, false, imm & 0x3fff_ffff),
        Format::Illegal => (false, false, false, imm),
    };
    insn.imm = imm;
    for (used, register) in [(rd, &mut insn.rd), (rs1, &mut insn.rs1), (rs2, &mut insn.rs2)] {
        *register *= u8::from(used);
    }
    insn
}

#[test]
fn no_word_matches_two_rows() {
    for (index, a) in TABLE.iter().enumerate() {
        assert_eq!(a.op as usize, index, "{} is at its place", a.name);
        assert_eq!(a.matches & !a.mask, 0, "{}: match lies within the mask", a.name);
        assert_eq!(a.matches & a.mask & 3, 3, "{}: not a .ttinsn", a.name);
        for b in &TABLE[..index] {
            let common = a.mask & b.mask;
            assert_ne!(a.matches & common, b.matches & common, "{} and {}", a.name, b.name);
        }
    }
}

#[test]
fn what_is_not_in_the_table_is_illegal() {
    // flw, fsw, fadd.s, fmadd.s, vle32.v, vadd.vv, lr.w, sc.w, ld, addiw, mret, wfi, a slli with
    // shamt 32, bclr, zext.h of RV64, rev8 of RV64, packh, zip, all ones.
    let words = [
        0x0000_2007,
        0x0000_2027,
        0x0000_0053,
        0x0000_0043,
        0x0205_6007,
        0x0220_8057,
        0x1000_202f,
        0x1800_202f,
        0x0000_3003,
        0x0000_001b,
        0x3020_0073,
        0x1050_0073,
        0x0200_1013,
        0x4800_1033,
        0x0800_403b,
        0x6b80_5013,
        0x0800_7033,
        0x08f0_1013,
        0xffff_ffff,
    ];
    for word in words {
        let insn = Insn::decode(word);
        assert_eq!(insn.op, Op::Illegal, "{word:#010x} decodes as {insn}");
        assert_eq!(insn.imm.cast_unsigned(), word);
    }
}

#[test]
fn known_words() {
    let known = [
        (0x0010_0093, "addi ra, zero, 1"),
        (0xfe20_8ee3, "beq ra, sp, 0xffc"),
        (0x8000_006f, "jal zero, 0xfff01000"),
        (0x0000_0513, "addi a0, zero, 0"),
        (0xffff_f537, "lui a0, 0xfffff"),
        (0xfef4_2623, "sw a5, -20(s0)"),
        (0x7c02_e073, "csrrsi zero, 0x7c0, 5"),
        (0x08f6_c633, "pack a2, a3, a5"),
        (0x0806_c633, "zext.h a2, a3"),
        (0x6876_d613, "brev8 a2, a3"),
        (0x0ff0_000f, "fence iorw, iorw"),
        (0x8330_000f, "fence.tso"),
        (0x0e62_a3af, "amoswap.w.aqrl t2, t1, (t0)"),
        (0x0800_0000, ".ttinsn 0x02000000 # NOP"),
        (0x9000_0012, ".ttinsn 0xa4000004 # SEMPOST semaphore_mask=0x1"),
        (0x0000_0001, ".ttinsn 0x40000000 # XMOV"),
        (0xfffc_0000, ".ttinsn 0x3fff0000 # 0x3fff0000"),
        (0x0000_0007, "illegal 0x00000007"),
    ];
    for (word, text) in known {
        assert_eq!(disassemble(word, 0x1000), text, "{word:#010x}");
    }
}

#[test]
fn a_page_holds_64_words_in_order() {
    let mut bytes = [0; 256];
    for (index, chunk) in bytes.chunks_exact_mut(4).enumerate() {
        let word = 0x13 | (index as u32) << 20;
        chunk.copy_from_slice(&word.to_le_bytes());
    }
    let page = CodePage::decode(&bytes);
    for (index, insn) in page.insns.iter().enumerate() {
        assert_eq!((insn.op, insn.imm), (Op::Addi, index as i32));
    }
    assert!(size_of::<Insn>() <= 16);
}

#[test]
fn operands_that_do_not_fit_have_no_encoding() {
    let insn = |op, rd, rs1, rs2, imm| Insn { op, rd, rs1, rs2, imm };
    let unfit = [
        insn(Op::Addi, 1, 1, 0, 2048),
        insn(Op::Addi, 1, 1, 0, -2049),
        insn(Op::Addi, 32, 1, 0, 0),
        insn(Op::Addi, 1, 1, 1, 0),
        insn(Op::Slli, 1, 1, 0, 32),
        insn(Op::Beq, 0, 1, 1, 3),
        insn(Op::Beq, 0, 1, 1, 4096),
        insn(Op::Jal, 1, 0, 0, 1 << 20),
        insn(Op::Lui, 1, 0, 0, 1),
        insn(Op::Add, 1, 2, 3, 4),
        insn(Op::Csrrw, 1, 2, 0, 0x1000),
        insn(Op::Ttinsn, 0, 0, 0, -1),
    ];
    for insn in unfit {
        assert_eq!(encode(insn), None, "{insn:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn decoding_reverses_encoding(insn in any_insn()) {
        let word = encode(insn).expect("operands fit");
        prop_assert_eq!(Insn::decode(word), insn);
        let text = disassemble(word, 0x1000);
        let name = if insn.op == Op::Pack && insn.rs2 == 0 { "zext.h" } else { insn.op.name() };
        prop_assert!(text.starts_with(name), "{}", text);
    }

    #[test]
    fn encoding_reverses_decoding(word in any::<u32>()) {
        let insn = Insn::decode(word);
        // The only don't-care bits are those of fences, which the core ignores.
        if insn.op.format() != Format::Fence {
            prop_assert_eq!(encode(insn), Some(word), "{}", insn);
        }
    }
}

/// The GNU assembler reads our text and gives back our words: an opinion on both encodings and
/// syntax that is not ours.
#[test]
fn gnu_assembler_agrees() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut insns = Vec::new();
    while insns.len() < 4000 {
        let tree = any_insn().new_tree(&mut runner).expect("no rejections");
        let insn = tree.current();
        // The assembler knows no .ttinsn, no operands of fence.i, and takes other fm values only
        // as fence.tso.
        let skip = match insn.op {
            Op::Ttinsn | Op::FenceI => true,
            Op::Fence => insn.imm >> 8 != 0 || insn.imm & 15 == 0 || insn.imm >> 4 == 0,
            _ => false,
        };
        if !skip {
            insns.push(insn);
        }
    }
    let dir = tempfile::tempdir().expect("a temporary directory");
    let [source, object, binary] = ["t.s", "t.o", "t.bin"].map(|name| dir.path().join(name));
    let text: String = insns.iter().map(|insn| format!("{insn}\n")).collect();
    std::fs::write(&source, text).expect("writable");
    let assembler = Command::new("riscv64-unknown-elf-as")
        .args(["-march=rv32ima_zicsr_zifencei_zba_zbb_zbkb", "-mabi=ilp32", "-o"])
        .args([&object, &source])
        .output();
    let Ok(output) = assembler else {
        return println!("skipped: no riscv64-unknown-elf-as");
    };
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}", stderr.lines().take(20).collect::<Vec<_>>().join("\n"));
    let copied = Command::new("riscv64-unknown-elf-objcopy")
        .args(["-O", "binary", "-j", ".text"])
        .args([&object, &binary])
        .status()
        .expect("objcopy comes with the assembler");
    assert!(copied.success());
    let bytes = std::fs::read(&binary).expect("readable");
    let words: Vec<u32> = bytes.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)).collect();
    assert_eq!(words.len(), insns.len());
    for (insn, word) in insns.iter().zip(words) {
        assert_eq!(encode(*insn), Some(word), "{insn}");
    }
}
