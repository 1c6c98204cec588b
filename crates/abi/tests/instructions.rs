//! The Tensix instruction table against the public list, and its codec and disassembler.

use tilework_abi::tensix::insn::*;

/// The public list: mnemonic, opcode, and the lowest bit of each operand as the macros `TT_OP_*` of
/// `tt_llk_blackhole/common/inc/ckernel_ops.h` place it. A minus stands before operands that the
/// instruction's page does not have.
const PUBLIC: &str = "\
    MOP 01 23 16 0, NOP 02, MOP_CFG 03 0, REPLAY 04 14 4 1 0, RESOURCEDECL 05 13 4 0, MOVD2A 08 23 17 14 -12 0, \
    MOVDBGA2D 09 23 17 14 -12 0, MOVD2B 0A 23 17 14 -12 0, MOVB2A 0B 17 14 -12 0, MOVDBGB2D 0C 23 17 14 11 0, \
    ZEROACC 10 19 18 17 14 0, ZEROSRC 11 4 3 2 0, MOVA2D 12 23 17 14 -12 0, MOVB2D 13 23 17 14 11 0, \
    TRNSPSRCA 14, RAREB 15, TRNSPSRCB 16, SHIFTXA 17 2 0, SHIFTXB 18 14 10 0, SETASHRMH0 1A 1 0, \
    SETASHRMH1 1B 1 0, SETASHRMV 1C 0, SETPKEDGOF 1D 12 8 4 0, SETASHRMH 1E 1 0, CLREXPHIST 21, \
    CONV3S1 22 22 17 14 0, CONV3S2 23 22 17 14 0, MPOOL3S1 24 22 15 14 0, APOOL3S1 25 22 15 14 0, \
    MVMUL 26 22 19 14 0, ELWMUL 27 22 21 19 14 0, ELWADD 28 22 21 19 14 0, DOTPV 29 22 21 19 14 0, \
    ELWSUB 30 22 21 19 14 0, MPOOL3S2 31 22 15 14 0, APOOL3S2 32 22 15 14 0, GMPOOL 33 22 19 15 14 0, \
    GAPOOL 34 22 19 15 14 0, GATESRCRST 35 1 0, CLEARDVALID 36 22 0, SETRWC 37 22 18 14 10 6 0, \
    INCRWC 38 18 14 10 6, SETIBRWC 39 18 6 0, MFCONV3S1 3A 22 17 14 0, XMOV 40 23 0, \
    PACR 41 21 18 17 15 13 12 8 7 4 2 1 0, UNPACR 42 23 15 13 10 8 7 6 5 4 3 2 1 0, \
    UNPACR_NOP 43 23 16 12 8 6 5 4 2 0, RSTDMA 44, SETDMAREG 45 22 8 7 0, FLUSHDMA 46 0, \
    REG2FLOP 48 22 20 18 16 6 0, LOADIND 49 22 14 12 6 0, PACR_SETREG 4A 23 22 12 10 8 2 1 0, TBUFCMD 4B, \
    SETADC 50 21 20 18 0, SETADCXY 51 21 15 12 9 6 0, INCADCXY 52 21 15 12 9 6, ADDRCRXY 53 21 15 12 9 6 0, \
    SETADCZW 54 21 15 12 9 6 0, INCADCZW 55 21 15 12 9 6, ADDRCRZW 56 21 15 12 9 6 0, SETDVALID 57 0, \
    ADDDMAREG 58 23 12 6 0, SUBDMAREG 59 23 12 6 0, MULDMAREG 5A 23 12 6 0, BITWOPDMAREG 5B 23 18 12 6 0, \
    SHIFTDMAREG 5C 23 18 12 6 0, CMPDMAREG 5D 23 18 12 6 0, SETADCXX 5E 21 10 0, DMANOP 60, \
    ATINCGET 61 -23 14 12 6 0, ATINCGETPTR 62 -23 22 18 14 12 6 0, ATSWAP 63 -23 14 6 0, \
    ATCAS 64 -23 18 14 12 -6 0, STOREIND 66 23 22 21 14 12 6 0, STOREREG 67 18 0, LOADREG 68 18 0, \
    SFPLOAD 70 20 16 13 0, SFPLOADI 71 20 16 0, SFPSTORE 72 20 16 13 0, SFPLUT 73 20 16 -0, SFPMULI 74 8 4 0, \
    SFPADDI 75 8 4 0, SFPDIVP2 76 12 8 4 0, SFPEXEXP 77 -12 8 4 0, SFPEXMAN 78 -12 8 4 0, SFPIADD 79 12 8 4 0, \
    SFPSHFT 7A 12 8 4 0, SFPSETCC 7B 12 8 4 0, SFPMOV 7C -12 8 4 0, SFPABS 7D -12 8 4 0, SFPAND 7E 12 8 4 0, \
    SFPOR 7F 12 8 4 0, SFPNOT 80 -12 8 4 -0, SFPLZ 81 -12 8 4 0, SFPSETEXP 82 12 8 4 0, SFPSETMAN 83 12 8 4 0, \
    SFPMAD 84 16 12 8 4 0, SFPADD 85 16 12 8 4 0, SFPMUL 86 16 12 8 4 0, SFPPUSHC 87 -12 -8 4 0, \
    SFPPOPC 88 -12 -8 4 0, SFPSETSGN 89 12 8 4 0, SFPENCC 8A 12 -8 4 0, SFPCOMPC 8B -12 -8 4 -0, \
    SFPTRANSP 8C -12 -8 4 -0, SFPXOR 8D -12 8 4 -0, SFP_STOCH_RND 8E 21 16 12 8 4 0, SFPNOP 8F, SFPCAST 90 8 4 0, \
    SFPCONFIG 91 8 4 0, SFPSWAP 92 -12 8 4 0, SFPLOADMACRO 93 20 16 13 0, SFPSHFT2 94 12 8 4 0, \
    SFPLUTFP32 95 4 0, SFPLE 96 -12 8 4 0, SFPGT 97 -12 8 4 0, SFPMUL24 98 16 12 8 4 0, SFPARECIP 99 12 8 4 0, \
    ATGETM A0 0, ATRELM A1 0, STALLWAIT A2 15 0, SEMINIT A3 20 16 2, SEMPOST A4 2, SEMGET A5 2, \
    SEMWAIT A6 15 2 0, STREAMWAIT A7 15 4 3 0, WRCFG B0 16 15 0, RDCFG B1 16 0, SETC16 B2 16 0, \
    RMWCIB0 B3 16 8 0, RMWCIB1 B4 16 8 0, RMWCIB2 B5 16 8 0, RMWCIB3 B6 16 8 0, STREAMWRCFG B7 21 11 0, \
    CFGSHIFTMASK B8 23 20 15 10 8 0";

/// The rows of all units.
fn rows() -> impl Iterator<Item = &'static Row> {
    Unit::ALL.into_iter().flat_map(|unit| unit.rows())
}

/// Words with every opcode and many different operands: one bit each, all, and a sequence without
/// pattern.
fn words() -> impl Iterator<Item = u32> {
    let mut state = 0x9E37_79B9u32;
    let patterns: Vec<u32> = (0..24)
        .map(|bit| 1 << bit)
        .chain([0, 0xFF_FFFF])
        .chain((0..200).map(|_| {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            state & 0xFF_FFFF
        }))
        .collect();
    (0..=0xFF).flat_map(move |opcode: u32| patterns.clone().into_iter().map(move |rest| opcode << 24 | rest))
}

fn text(word: u32) -> String {
    Insn::decode(word).to_string()
}

#[test]
fn every_opcode_of_the_public_list_has_its_row_and_its_operands() {
    let mut count = 0;
    for entry in PUBLIC.split(", ") {
        let mut parts = entry.split_whitespace();
        let (name, opcode) = (parts.next().unwrap(), u8::from_str_radix(parts.next().unwrap(), 16).unwrap());
        let row = rows().find(|row| row.mnemonic == name).unwrap_or_else(|| panic!("{name} has no row"));
        assert_eq!(row.opcode, opcode, "{name}");
        for start in parts {
            let known = |lo: u32| row.fields.iter().any(|field| field.lo == lo);
            match start.strip_prefix('-') {
                Some(absent) => assert!(!known(absent.parse().unwrap()), "{name}, bit {absent}"),
                None => assert!(known(start.parse().unwrap()), "{name}, bit {start}"),
            }
        }
        count += 1;
    }
    assert_eq!(rows().count(), count, "the table has no opcode that the list does not have");
}

#[test]
fn the_operands_of_a_form_lie_beside_each_other() {
    for row in rows() {
        for (i, field) in row.fields.iter().enumerate() {
            assert!(field.lo <= field.hi && field.hi < 24, "{} {}", row.mnemonic, field.name);
            assert!(field.kind != Kind::Flag || field.hi == field.lo, "{} {}", row.mnemonic, field.name);
            assert!(row.fields[..i].iter().all(|other| other.name != field.name), "{} {}", row.mnemonic, field.name);
        }
    }
    for word in words() {
        let Some(row) = row(word) else { continue };
        let bits: u32 = row.operands(word).map(|field| field.mask().count_ones()).sum();
        assert_eq!(bits + 8, row.defined_bits(word).count_ones(), "{} {word:#010x}: operands overlap", row.mnemonic);
    }
}

#[test]
fn decoding_keeps_the_word_and_operands_give_it_back() {
    for word in words() {
        let insn = Insn::decode(word);
        assert_eq!(insn.word(), word);
        let Some(row) = insn.row() else {
            assert!(insn == Insn::Undefined(word) && insn.unit().is_none());
            continue;
        };
        assert_eq!(insn.unit(), Some(row.unit));
        assert_eq!(matches!(insn, Insn::NotBuilt(_)), !row.is_built(), "{}", row.mnemonic);
        let opcode = u32::from(row.opcode) << 24;
        let assembled = row.operands(word).fold(opcode, |built, field| field.put(built, field.get(word)));
        assert_eq!(assembled, word & row.defined_bits(word), "{insn}");
    }
}

/// Reads an operand back as the disassembler writes it.
fn value(field: &Field, text: &str) -> u32 {
    let number = |text: &str| text.parse::<u32>().expect("a number");
    match field.kind {
        Kind::Flag => 1,
        Kind::Uint => number(text),
        Kind::Signed => text.parse::<i32>().expect("a number").cast_unsigned(),
        Kind::Hex => u32::from_str_radix(text.strip_prefix("0x").expect("a hexadecimal number"), 16).unwrap(),
        Kind::Gpr | Kind::LReg => number(&text[1..]),
        Kind::Format => unreachable!("no operand is a format"),
        Kind::GprHalf => {
            let (gpr, half) = text[1..].split_once('.').expect("a half");
            number(gpr) << 1 | u32::from(half == "hi")
        }
    }
}

#[test]
fn the_text_says_everything_that_the_word_says() {
    for word in words() {
        let Some(row) = row(word) else {
            assert_eq!(text(word), format!("{word:#010x}"));
            continue;
        };
        let text = text(word);
        let (text, rest) = match text.split_once(" (other bits 0x") {
            Some((text, rest)) => (text, u32::from_str_radix(rest.trim_end_matches(')'), 16).unwrap()),
            None => (text.as_str(), 0),
        };
        let (name, operands) = text.split_once(' ').unwrap_or((text, ""));
        assert_eq!(name, row.mnemonic);
        let mut read = u32::from(row.opcode) << 24;
        for operand in operands.split(", ").filter(|operand| !operand.is_empty()) {
            let (name, value_text) = operand.split_once('=').unwrap_or((operand, ""));
            let field = row.fields.iter().find(|field| field.name == name).expect("an operand of the row");
            read = field.put(read, value(field, value_text));
        }
        assert_eq!(read | rest, word, "{text}");
    }
}

/// Words that public kernels and start-up code contain (`tt_llk_blackhole`, and the census of stock
/// kernels), with the text that a reader expects.
#[test]
fn the_disassembler_writes_operands_by_name() {
    for (word, expected) in [
        (0x0200_0000, "NOP"),
        (0x0200_0001, "NOP (other bits 0x1)"),
        (0xA400_0004, "SEMPOST semaphore_mask=0x1"),
        (0xA341_0008, "SEMINIT new_max=4, new_value=1, semaphore_mask=0x2"),
        (0xA240_0003, "STALLWAIT block_mask=0x80, condition_mask=0x3"),
        (0x0180_0000, "MOP template=1, outer_count_hi=0, outer_count_lo=0, inner_count=0"),
        (0x0102_00FF, "MOP template=0, count1=2, mask_lo=0xff"),
        (0x0404_0021, "REPLAY index=16, count=2, load"),
        (0x4512_3405, "SETDMAREG new_value=0x1234, result_half_reg=r2.hi"),
        (
            0x4580_5089,
            "SETDMAREG result_size=2, which_packers=0x0, input_source=10, input_half_reg=0, set_signals_mode, \
             result_half_reg=r4.hi",
        ),
        (0x6604_0081, "STOREIND offset_half_reg=r8.lo, offset_increment=0, data_reg=r2, addr_reg=r1"),
        (0x58C0_1142, "ADDDMAREG right_is_imm, result_reg=r1, right_imm6=5, left_reg=r2 (other bits 0x400000)"),
        (0x1018_0000, "ZEROACC mode=3, addr_mod=0, imm10=0"),
        (0x2612_3456, "MVMUL clear_dvalid=0x0, addr_mod=0, dst_row=86 (other bits 0x123400)"),
        (0x79FF_F016, "SFPIADD imm12=-1, vc=l0, vd=l1, mod1=0x6"),
        (0x9410_0026, "SFPSHFT2 imm12=256, vc=l0, vd=l2, mod1=0x6"),
        (0x9400_3025, "SFPSHFT2 vb=l3, vc=l0, vd=l2, mod1=0x5"),
        (0xC000_0000, "0xc0000000"),
    ] {
        assert_eq!(text(word), expected, "{word:#010x}");
    }
}

/// The builder against the sums of the public macros, written out by hand.
#[test]
fn built_words_are_those_of_the_public_macros() {
    let op = |opcode: u32, operands: u32| opcode << 24 | operands;
    for (built, public) in [
        (Nop::build().word(), op(0x02, 0)),
        (
            Stallwait::build().block_mask(0x1FF).condition_mask(0x10).word(), //
            op(0xA2, 0x1FF << 15 | 0x10),
        ),
        (Semwait::build().block_mask(2).semaphore_mask(8).condition_mask(1).word(), op(0xA6, 2 << 15 | 8 << 2 | 1)),
        (Setc16::build().cfg_index(12).new_value(0x8003).word(), op(0xB2, 12 << 16 | 0x8003)),
        (Wrcfg::build().input_reg(9).is_128bit(true).cfg_index(70).word(), op(0xB0, 9 << 16 | 1 << 15 | 70)),
        (Rmwcib2::build().mask(0xF0).new_value(0xA5).index4(3).word(), op(0xB5, 0xF0 << 16 | 0xA5 << 8 | 3)),
        (
            Setadc::build().cnt_set_mask(5).channel(1).xyzw(1).thread_override(3).new_value(0x1234).word(),
            op(0x50, 5 << 21 | 1 << 20 | 1 << 18 | 3 << 16 | 0x1234),
        ),
        (
            Storeind::build().to_l1(true).size(2).offset_half_reg(5).data_reg(9).addr_reg(1).word(),
            op(0x66, 1 << 23 | 2 << 21 | 5 << 14 | 9 << 6 | 1),
        ),
        (
            Mova2d::build().src_row(8).addr_mod(2).move_8_rows(true).dst_row(16).word(),
            op(0x12, 8 << 17 | 2 << 14 | 2 << 12 | 16),
        ),
        (Elwadd::build().clear_dvalid(3).add_dst(true).addr_mod(7).word(), op(0x28, 3 << 22 | 1 << 21 | 7 << 14)),
        (Gapool::build().addr_mod(1).dst_row(4).word(), op(0x34, 1 << 15 | 4)),
        (
            Pacr::build().row_pad_zero(1).addr_mod(1).read_intf_sel(0xF).last(true).word(),
            op(0x41, 1 << 18 | 1 << 15 | 0xF << 8 | 1),
        ),
        (
            Unpacr::build().which_unpacker(1).ch1_y_inc(1).multi_context_mode(true).flip_src(true).word(),
            op(0x42, 1 << 23 | 1 << 21 | 1 << 7 | 1 << 6),
        ),
        (Sfpload::build().vd(1).mod0(3).addr_mod(7).imm10(64).word(), op(0x70, 1 << 20 | 3 << 16 | 7 << 13 | 64)),
        (Sfpmad::build().va(1).vb(2).vc(9).vd(3).word(), op(0x84, 1 << 16 | 2 << 12 | 9 << 8 | 3 << 4)),
        (Sfpiadd::build().imm12(-2).vc(1).vd(2).mod1(1).word(), op(0x79, 0xFFE << 12 | 1 << 8 | 2 << 4 | 1)),
    ] {
        assert_eq!(built, public, "{} and {}", text(built), text(public));
    }
}

#[test]
fn typed_instructions_read_their_operands() {
    assert!(size_of::<Insn>() <= 12, "FIFOs and replay buffers hold them");
    let word = Sfpiadd::build().imm12(-2).vc(1).vd(2).mod1(5).word();
    let insn = Sfpiadd::decode(word).expect("it is one");
    assert_eq!((insn.imm12(), insn.vc(), insn.vd(), insn.mod1()), (-2, 1, 2, 5));
    assert!(Sfpmad::decode(word).is_none() && MatrixOp::decode(word).is_none());
    let word = Semwait::build().block_mask(0x140).semaphore_mask(0x81).condition_mask(2).word();
    let Insn::Wait(WaitOp::Semwait(insn)) = Insn::decode(word) else { panic!("{}", text(word)) };
    assert_eq!((insn.block_mask(), insn.semaphore_mask(), insn.condition_mask()), (0x140, 0x81, 2));
}

/// STALLWAIT.md, "Block mask": which bits block what, one pair for each instruction of the page.
const BLOCKED_BY: &str = "\
    ADDDMAREG 05 ADDRCRXY 0 ADDRCRZW 0 APOOL3S1 6 APOOL3S2 6 ATCAS 05 ATGETM 1 ATINCGET 05 ATINCGETPTR 05 \
    ATRELM 1 ATSWAP 05 BITWOPDMAREG 05 CFGSHIFTMASK 7 CLEARDVALID 6 CLREXPHIST 6 CMPDMAREG 05 CONV3S1 6 \
    CONV3S2 6 DMANOP 05 DOTPV 6 ELWADD 6 ELWMUL 6 ELWSUB 6 FLUSHDMA 05 GAPOOL 6 GATESRCRST 6 GMPOOL 6 \
    INCADCXY 0 INCADCZW 0 INCRWC 6 LOADIND 05 LOADREG 05 MFCONV3S1 6 MOVA2D 6 MOVB2A 6 MOVB2D 6 MOVD2A 6 \
    MOVD2B 6 MOVDBGA2D 6 MPOOL3S1 6 MPOOL3S2 6 MULDMAREG 05 MVMUL 6 PACR 02 PACR_SETREG 02 RDCFG 7 \
    REG2FLOP 05 RMWCIB0 7 RMWCIB3 7 RSTDMA 0 SEMGET 1 SEMINIT 1 SEMPOST 1 SEMWAIT 012345678 SETADC 0 \
    SETADCXX 0 SETADCXY 0 SETADCZW 0 SETC16 7 SETDMAREG 05 SETDVALID 0 SETRWC 6 SFPABS 8 SFPADD 8 \
    SFPARECIP 8 SFPCAST 8 SFPCONFIG 8 SFPENCC 8 SFPGT 8 SFPLE 8 SFPLOADI 8 SFPLOADMACRO 8 SFPNOP 8 SFPXOR 8 \
    SHIFTDMAREG 05 SHIFTXA 6 SHIFTXB 6 STALLWAIT 012345678 STOREIND 05 STOREREG 05 STREAMWAIT 012345678 \
    STREAMWRCFG 7 SUBDMAREG 05 TRNSPSRCB 6 UNPACR 03 UNPACR_NOP 03 WRCFG 7 XMOV 04 ZEROACC 6 ZEROSRC 6";

#[test]
fn block_bits_are_those_of_the_page_s_table() {
    let names: Vec<&str> = BLOCKED_BY.split_whitespace().collect();
    for pair in names.chunks(2) {
        let row = rows().find(|row| row.mnemonic == pair[0]).unwrap_or_else(|| panic!("{}", pair[0]));
        let word = u32::from(row.opcode) << 24;
        for bit in 0..9u32 {
            let blocked = pair[1].contains(char::from_digit(bit, 10).expect("a digit"));
            assert_eq!(is_blocked_by(word, 1 << bit), blocked, "{} and B{bit}", pair[0]);
        }
    }
    let blocks = |mask| is_blocked_by(Nop::build().word(), mask);
    assert!(blocks(BLOCK_ALL) && (0..9).all(|bit| !blocks(BLOCK_ALL & !(1 << bit))));
}

#[test]
fn a_mode_is_what_the_marked_operands_and_the_unit_s_settings_say() {
    use tilework_abi::tensix::insn::{Mode, Unpacr, settings};
    let mvmul = |word| Mode::of(Insn::decode(word), Some(settings::SRC_FORMAT.put(settings::FIDELITY.put(0, 2), 5)));
    let word = Mvmul::build().clear_dvalid(3).addr_mod(5).dst_row(64).word();
    let mode = mvmul(word).unwrap();
    assert_eq!(mode.to_string(), "MVMUL clear_dvalid=0x3, src_format=bf16, fidelity=2");
    assert_eq!(mvmul(Mvmul::build().clear_dvalid(3).word()), Some(mode), "places are no part of it");
    assert_ne!(mvmul(Mvmul::build().word()), Some(mode));
    assert_eq!(Mode::from_numbers(mode.numbers()), Some(mode));
    assert_eq!(Mode::from_numbers([word, 0]), None, "an operand that is no part of a mode");
    // Settings are of those instructions that the unit says them for.
    let nop = Insn::decode(Nop::build().word());
    assert_eq!(Mode::of(nop, Some(5)), Mode::of(nop, None));
    let unpacr = Insn::decode(Unpacr::build().which_unpacker(1).ch0_y_inc(2).word());
    assert_eq!(Mode::of(unpacr, None).unwrap().to_string(), "UNPACR which_unpacker=1, cfg_context_cnt_inc=0");
    assert_eq!(Mode::of(Insn::decode(0xFF00_0000), None), None);
}

#[test]
fn documented_values_fit_their_operands() {
    for row in Unit::ALL.iter().flat_map(|unit| unit.rows()) {
        for field in row.fields.iter().chain(row.settings()).filter(|field| field.modes != 0) {
            let bits = field.hi - field.lo + 1;
            assert!(bits <= 4 && u32::from(field.modes) >> (1u32 << bits) == 0, "{} {}", row.mnemonic, field.name);
            assert!(field.modes.count_ones() > 1 || field.modes == 1, "{} {}", row.mnemonic, field.name);
        }
    }
}
