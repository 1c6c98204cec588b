//! Rows against data, and what only goes datum by datum: compressed, upsampled, shifted and
//! wrapping input, worked out from UNPACR_Regular.md and Packers/Compression.md.

use super::super::config::Config;
use super::super::counters::Adcs;
use super::super::dst::{Dst, RowMap};
use super::super::src::{A, B, Row, Sources};
use super::format::Format;
use super::plan::{At, Context, Plan, Setups};
use super::{Registers, cfg, moves, rows};
use crate::tensix::config::Refusal;
use crate::tensix::coverage::Executed;
use proptest::prelude::*;
use tilework_abi::tensix::cfg::Field;
use tilework_abi::tensix::insn::{Insn, MiscOp, Setadc, Setadcxx, Setadczw, Unpacr};

const BF16: u32 = 5;
const L1: usize = 0x1_0000;

/// An unpacker's surroundings on thread 0. The input begins at 0x1000, the output at row 0.
struct Rig {
    config: Config,
    adcs: Adcs,
    l1: Vec<u8>,
    src: Sources,
    dst: Dst,
    src_row: u32,
    unit: usize,
    /// Kept from instruction to instruction, whatever is set in between.
    setups: Setups,
    /// For `cargo xtask coverage`.
    executed: Executed,
}

impl Rig {
    fn new(unit: usize, from: u32, to: u32) -> Self {
        let mut rig = Self {
            config: Config::default(),
            adcs: Adcs::default(),
            l1: vec![0; L1],
            src: Sources::default(),
            dst: Dst::default(),
            src_row: 0,
            unit,
            setups: Setups::default(),
            executed: Executed::default(),
        };
        rig.describe(from, true, [256, 1, 4]);
        rig.set(cfg::THCON_SEC_REG2_OUT_DATA_FORMAT, to);
        rig.set(cfg::THCON_SEC_REG3_BASE_ADDRESS, 0xFF);
        // The four rows before SrcA and Dst.
        let datum = 1 << Format::of(to).expect("a format").address_shift();
        rig.set_word(cfg::UNP0_ADDR_BASE_REG_1_BASE, 4 * 16 * datum);
        rig.whole_bank(true);
        rig.x(0, 255);
        rig
    }

    fn describe(&mut self, from: u32, uncompressed: bool, [x, y, z]: [u32; 3]) {
        let first = u32::from(cfg::THCON_SEC_REG0_TILEDESCRIPTOR.copy(self.unit).word);
        self.config.set(0, first, x << 16 | u32::from(uncompressed) << 4 | from).unwrap();
        self.config.set(0, first + 1, z << 16 | y).unwrap();
    }
    /// Sets a field of the unpacker.
    fn set(&mut self, field: Field, value: u32) {
        self.set_word(field.copy(self.unit), value);
    }
    fn set_word(&mut self, field: Field, value: u32) {
        let old = self.config.get(0, field.word.into()).unwrap();
        self.config.set(0, field.word.into(), field.put(old, value)).unwrap();
    }
    fn whole_bank(&mut self, on: bool) {
        self.config.set_thread(0, cfg::SRCA_SET_BASE.word.into(), u16::from(on) << 2).unwrap();
    }
    fn x(&mut self, start: u32, end: u32) {
        let word = Setadcxx::build().cnt_set_mask(1 << self.unit).x0_val(start).x1_val(end).word();
        self.adcs.execute(0, MiscOp::decode(word).unwrap());
    }
    fn yzw(&mut self, y: u32, z: u32, w: u32) {
        let xy = Setadc::build().cnt_set_mask(1 << self.unit).xyzw(1).new_value(y).word();
        let zw = Setadczw::build().cnt_set_mask(1 << self.unit).bit_mask(3).ch0_z(z).ch0_w(w).word();
        [xy, zw].into_iter().for_each(|word| assert!(self.adcs.execute(0, MiscOp::decode(word).unwrap())));
    }
    fn halves(&mut self, at: usize, data: &[u16]) {
        for (i, datum) in data.iter().enumerate() {
            self.l1[at + 2 * i..][..2].copy_from_slice(&datum.to_le_bytes());
        }
    }

    fn plan(&mut self, insn: u32) -> Result<Plan, Refusal> {
        let insn = Unpacr::decode(insn | (self.unit as u32) << 23).unwrap();
        let Self { config, adcs, l1, src_row, unit, setups, .. } = self;
        let at = At { config, adcs, l1, thread: 0, counter: 0, src_row: *src_row };
        let context = Context::of(insn, &at)?;
        Plan::new(insn, context, setups.get(config, (0, *unit), context)?, &at)
    }

    fn run(&mut self, insn: u32) -> Result<(), Refusal> {
        let plan = self.plan(insn)?;
        self.executed.settings = Some(plan.settings());
        self.executed.count(Insn::decode(insn | (self.unit as u32) << 23));
        moves::execute(&plan, &self.l1, &mut Registers { src: &mut self.src, dst: &mut self.dst, last: 0 })
    }

    /// BF16 of the first data of SrcA's row `row`.
    fn row(&mut self, row: usize) -> [u32; 16] {
        self.src.0[self.unit].unpacked_mut()[row].map(|datum| super::super::number::tf32_of_src(datum) >> 3)
    }
}

fn plain() -> u32 {
    Unpacr::build().word()
}

#[test]
fn counters_choose_the_input() {
    let mut rig = Rig::new(A, BF16, BF16);
    rig.describe(BF16, true, [32, 4, 3]);
    let all: Vec<u16> = (0..2048).collect();
    rig.halves(0x1000, &all);
    rig.yzw(2, 1, 3);
    rig.x(5, 20);
    rig.run(plain()).unwrap();
    // ((W * 3 + Z) * 4 + Y) * 32 + X.
    let first = ((3 * 3 + 1) * 4 + 2) * 32 + 5;
    assert_eq!(rig.row(0), std::array::from_fn(|i| first + i as u32));
    assert_eq!(rig.row(1), [0; 16], "X ends at 20");
    // Rows are searched: X from 0 to the end, which is not counted.
    rig.run(Unpacr::build().row_search(true).word()).unwrap();
    assert_eq!(rig.row(0)[..2], [first - 5, first - 4]);
    assert_eq!(rig.row(1)[..5], [first + 11, first + 12, first + 13, first + 14, 0]);
    rig.x(20, 5);
    assert!(rig.run(plain()).unwrap_err().1.contains("X counters"));
}

#[test]
fn rows_and_columns_before_the_first_are_dropped() {
    let mut rig = Rig::new(A, BF16, BF16);
    rig.halves(0x1000, &(1..=256).collect::<Vec<_>>());
    rig.set_word(cfg::UNP0_ADDR_BASE_REG_1_BASE, 2 * 3 * 16);
    rig.run(plain()).unwrap();
    assert_eq!((rig.row(0)[0], rig.row(14)[15], rig.row(15)[0]), (17, 256, 0), "one row is lost");
    let mut rig = Rig::new(A, BF16, BF16);
    rig.halves(0x1000, &(1..=256).collect::<Vec<_>>());
    rig.set(cfg::THCON_SEC_REG2_SHIFT_AMOUNT_CNTX0, 3);
    rig.run(plain()).unwrap();
    assert_eq!(rig.row(1), std::array::from_fn(|i| if i < 13 { 16 + 4 + i as u32 } else { 0 }));
}

#[test]
fn rows_of_src_are_relative_and_wrap() {
    let mut rig = Rig::new(A, BF16, BF16);
    rig.l1[0x1000..0x1200].fill(1);
    rig.whole_bank(false);
    rig.src_row = 32;
    rig.run(plain()).unwrap();
    assert_eq!((rig.row(31)[0], rig.row(32)[0], rig.row(47)[0]), (0, 0x0101, 0x0101));
    rig.x(0, 271);
    assert!(rig.run(plain()).unwrap_err().1.contains("first 16"));
    rig.whole_bank(true);
    rig.src_row = 56;
    rig.x(0, 255);
    rig.run(plain()).unwrap();
    assert_eq!((rig.row(0)[0], rig.row(7)[0], rig.row(8)[0]), (0x0101, 0x0101, 0), "the second burst wraps");
    rig.set_word(cfg::UNP0_ADDR_BASE_REG_1_BASE, 2 * 6 * 16);
    assert!(rig.run(plain()).unwrap_err().1.contains("burst"));
    let mut rig = Rig::new(B, BF16, BF16);
    rig.l1[0x1000..0x1200].fill(1);
    rig.src_row = 60;
    rig.run(plain()).unwrap();
    assert_eq!((rig.row(60)[0], rig.row(11)[0], rig.row(12)[0]), (0x0101, 0x0101, 0), "no rows before SrcB");
}

#[test]
fn addresses_behind_the_limit_go_back() {
    let mut rig = Rig::new(A, BF16, BF16);
    rig.halves(0xF00, &(0..256).collect::<Vec<_>>());
    // From 0x1000, rows of 0x20 bytes; behind 0x1030 they go back by 0x100.
    rig.set(cfg::THCON_SEC_REG2_UNPACK_LIMIT_ADDRESS, 0x103);
    rig.set(cfg::THCON_SEC_REG2_UNPACK_FIFO_SIZE, 0x10);
    rig.run(plain()).unwrap();
    assert_eq!([0, 1, 2, 3].map(|i| rig.row(i)[0]), [128, 144, 32, 48]);
    rig.set(cfg::THCON_SEC_REG2_UNPACK_FIFO_SIZE, 0x1FFF);
    assert!(rig.run(plain()).unwrap_err().1.contains("L1"), "before L1");
}

#[test]
fn upsampling_leaves_or_clears_what_is_between() {
    for (rate, skip, expected) in [
        (1, false, [1, 0, 2, 0, 3, 0, 4, 0]),
        (1, true, [1, 9, 2, 9, 3, 9, 4, 9]),
        (2, false, [1, 0, 0, 0, 2, 0, 0, 0]),
        (3, true, [1, 9, 9, 9, 9, 9, 9, 9]),
    ] {
        let mut rig = Rig::new(A, BF16, BF16);
        rig.src.0[A].all_mut().fill([super::super::number::src_of_bf16(9); 16]);
        rig.halves(0x1000, &(1..=64).collect::<Vec<_>>());
        rig.x(0, 31);
        rig.set(cfg::THCON_SEC_REG2_UPSAMPLE_RATE, rate);
        rig.set(cfg::THCON_SEC_REG2_UPSAMPLE_AND_INTERLEAVE, skip.into());
        rig.run(plain()).unwrap();
        assert_eq!(rig.row(0)[..8], expected, "{rate} {skip}");
        assert_eq!(rig.row(2 << rate)[0], 9, "behind the last");
    }
}

#[test]
fn fetching_takes_as_long_as_its_bytes_and_its_mode() {
    let wants = |change: &dyn Fn(&mut Rig), from: u32| {
        let mut rig = Rig::new(A, from, from);
        rig.set(cfg::THCON_SEC_REG2_THROTTLE_MODE, 2);
        rig.set(cfg::THCON_SEC_REG3_BASE_ADDRESS, 0xFF);
        change(&mut rig);
        let plan = rig.plan(plain()).unwrap();
        (plan.wants, plan.duration(plan.wants))
    };
    assert_eq!(wants(&|_| (), BF16), (4, 4));
    assert_eq!(wants(&|rig| rig.set(cfg::THCON_SEC_REG2_THROTTLE_MODE, 1), BF16), (2, 8));
    assert_eq!(wants(&|rig| rig.x(0, 15), BF16), (4, 1));
    assert_eq!(wants(&|_| (), 15), (1, 2), "BFP2 is slow");
    assert_eq!(wants(&|_| (), 7), (4, 1));
    assert_eq!(wants(&|rig| rig.set(cfg::THCON_SEC_REG2_UPSAMPLE_RATE, 1), BF16), (2, 8));
    assert_eq!(wants(&|rig| rig.set(cfg::THCON_SEC_REG2_UPSAMPLE_RATE, 2), BF16), (1, 16));
    // Strided: two words for each of eight half rows of 64 bytes, one for each of sixteen rows of
    // 16 bytes, four a cycle whatever the throttle.
    let strided = |rig: &mut Rig| {
        rig.set(cfg::THCON_SEC_REG2_TILEIZE_MODE, 1);
        rig.set(cfg::THCON_SEC_REG2_SHIFT_AMOUNT_CNTX1, 1);
        rig.set(cfg::THCON_SEC_REG2_THROTTLE_MODE, 0);
    };
    assert_eq!((wants(&strided, BF16), wants(&strided, 14)), ((4, 4), (4, 4)));
}

/// A compressed tile of `rows` rows in BF16: row starts, then groups of 32 data with counters.
fn compress(rows: &[Vec<(u16, u8)>]) -> Vec<u8> {
    let starts = rows.iter().scan(0u16, |sum, row| {
        *sum += row.len() as u16;
        Some(*sum)
    });
    let mut out: Vec<u8> = [0].into_iter().chain(starts).flat_map(u16::to_le_bytes).collect();
    out.resize(out.len().next_multiple_of(16), 0);
    let data: Vec<_> = rows.concat();
    for group in data.chunks(32) {
        let mut group = group.to_vec();
        group.resize(32, (0, 0));
        out.extend(group.iter().flat_map(|(datum, _)| datum.to_le_bytes()));
        out.extend(group.chunks(2).map(|two| two[0].1 | two[1].1 << 4));
    }
    out
}

#[test]
fn compressed_rows_are_found_and_filled_up_with_zeros() {
    // Row y of 16: y + 1, then y + 1 zeros, then the rest; 40 rows of 15 to 2 data.
    let rows: Vec<Vec<(u16, u8)>> = (0..12u8)
        .map(|y| {
            let mut row = vec![(u16::from(y) + 1, y + 1)];
            row.extend((0..14 - y).map(|i| (100 + u16::from(i), 0)));
            row
        })
        .collect();
    let bytes = compress(&rows);
    let mut rig = Rig::new(A, BF16, BF16);
    rig.describe(BF16, false, [16, 12, 1]);
    rig.l1[0x1000..0x1000 + bytes.len()].copy_from_slice(&bytes);
    let expected = |y: usize| -> [u32; 16] {
        std::array::from_fn(|i| match i {
            0 => y as u32 + 1,
            i if i <= y + 1 => 0,
            i => 100 + (i - y - 2) as u32,
        })
    };
    rig.x(0, 15);
    for y in [0, 3, 7, 11] {
        rig.yzw(y as u32, 0, 0);
        rig.run(plain()).unwrap();
        assert_eq!(rig.row(0), expected(y), "row {y}");
    }
    // Part of a row: what comes before is dropped, and the data go on as far as is asked for.
    rig.yzw(3, 0, 0);
    rig.x(2, 9);
    rig.run(plain()).unwrap();
    assert_eq!(rig.row(0)[..8], expected(3)[2..10]);
    let plan = rig.plan(plain()).unwrap();
    assert_eq!(plan.duration(1), 1, "ten data of 20 bits at most are 25 bytes");
    rig.x(2, 15);
    assert_eq!(rig.plan(plain()).unwrap().duration(1), 2, "sixteen of them are 40");
    // Several rows by their numbers.
    rig.yzw(1, 0, 0);
    rig.x(4, 0);
    rig.run(Unpacr::build().row_search(true).word()).unwrap();
    assert_eq!([0, 1, 2, 3].map(|y| rig.row(y)), [1, 2, 3, 4].map(expected));
    rig.set(cfg::THCON_SEC_REG3_BASE_ADDRESS, L1 as u32 / 16);
    assert!(rig.run(plain()).unwrap_err().1.contains("L1"));
}

#[test]
fn blobs_choose_columns() {
    let mut rig = Rig::new(A, BF16, BF16);
    rig.halves(0x1000, &(0..512).collect::<Vec<_>>());
    let first = u32::from(cfg::THCON_SEC_REG0_TILEDESCRIPTOR.word);
    // Three blobs in 96 columns, which begin at 0, 32 and 48.
    rig.config.set(0, first, 96 << 16 | 3 << 8 | 1 << 4 | BF16).unwrap();
    rig.config.set(0, first + 2, 0x320 << 16).unwrap();
    let search = Unpacr::build().row_search(true).word();
    for (blob, begin, end) in [(0, 0, 32), (1, 32, 48), (2, 48, 96)] {
        rig.src.0[A].all_mut().fill([0; 16]);
        rig.yzw(blob, 0, 0);
        rig.x(blob, 0);
        rig.run(search).unwrap();
        let rows = (end - begin) / 16;
        assert_eq!((rig.row(0)[1], rig.row(rows - 1)[15]), (begin as u32 + 1, end as u32 - 1), "blob {blob}");
        assert_eq!(rig.row(rows), [0; 16]);
    }
}

/// Formats of input and output that go together, and those of them that go to Dst.
const PAIRS: [(u32, u32); 18] = [
    (0, 0),
    (0, 4),
    (0, 5),
    (0, 1),
    (1, 1),
    (2, 2),
    (3, 3),
    (4, 4),
    (5, 5),
    (6, 6),
    (7, 7),
    (8, 8),
    (9, 9),
    (10, 10),
    (11, 11),
    (14, 14),
    (15, 15),
    (5, 5),
];

/// What a plan leaves behind.
fn result(plan: &Plan, l1: &[u8], by_rows: bool) -> Result<(Vec<Row>, Vec<[u16; 16]>), Refusal> {
    let (mut src, mut dst) = (Sources::default(), Dst::default());
    src.0.iter_mut().for_each(|src| src.all_mut().fill([0x5_5555; 16]));
    let mut to = Registers { src: &mut src, dst: &mut dst, last: 0 };
    let done = if by_rows { rows::execute(plan, l1, &mut to) } else { moves::one_by_one(plan, l1, &mut to) };
    done?;
    let banks = src.0.iter_mut().flat_map(|src| src.all_mut().to_vec()).collect();
    Ok((banks, (0..1024).map(|at| dst.read_at(at)).collect()))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    /// Rows give what the page's loop over data gives.
    #[test]
    fn rows_do_what_single_data_do(
        pair in prop::sample::select(PAIRS.to_vec()),
        unit in 0usize..2,
        to_dst: bool,
        flags in 0u32..256,
        [x, count, row, stride, seed] in prop::array::uniform5(any::<u32>()),
        dst_cfg in 0u32..4,
    ) {
        let flag = |i: u32| flags >> i & 1;
        let mut rig = Rig::new(unit, pair.0, pair.1);
        let exponents = if Format::of(pair.0).unwrap().bits() == 32 || flag(7) != 0 { 0xFF } else { 0x0F };
        let mut state = seed | 1;
        for (i, byte) in rig.l1.iter_mut().enumerate() {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            // Exponents of blocks of five bits are small.
            *byte = (state >> 8) as u8 & if i < 0x1040 { exponents } else { 0xFF } | if i < 0x1040 { 16 } else { 0 };
        }
        let to_dst = to_dst && unit == 0;
        rig.set(cfg::THCON_SEC_REG2_UNPACK_IF_SEL, to_dst.into());
        rig.whole_bank(!to_dst);
        rig.set(cfg::THCON_SEC_REG2_HALOIZE_MODE, flag(0) & u32::from(!to_dst));
        rig.set(cfg::THCON_SEC_REG2_TILEIZE_MODE, flag(1));
        if flag(1) != 0 {
            rig.set(cfg::THCON_SEC_REG2_SHIFT_AMOUNT_CNTX0, stride % 16);
            rig.set(cfg::THCON_SEC_REG2_SHIFT_AMOUNT_CNTX1, stride / 16 % 4);
        }
        rig.set(cfg::THCON_SEC_REG2_FORCE_SHARED_EXP, flag(2));
        let forced = [cfg::UNP0_FORCED_SHARED_EXP_SHARED_EXP, cfg::UNP1_FORCED_SHARED_EXP_SHARED_EXP][unit];
        rig.set_word(forced, seed % 24 + 7);
        if flag(3) != 0 {
            rig.set(cfg::THCON_SEC_REG2_UNPACK_LIMIT_ADDRESS, 0x110);
            rig.set(cfg::THCON_SEC_REG2_UNPACK_FIFO_SIZE, 0x20);
        } else {
            rig.set(cfg::THCON_SEC_REG2_UNPACK_LIMIT_ADDRESS, 0x1_FFFF);
        }
        rig.set(cfg::THCON_SEC_REG1_UNP_LF8_4B_EXP, flag(4));
        rig.set_word(cfg::ALU_FORMAT_SPEC_REG0_SRCAUNSIGNED, flag(5));
        rig.set_word(cfg::DEST_ACCESS_CFG_REMAP_ADDRS, dst_cfg & 1);
        rig.set_word(cfg::DEST_ACCESS_CFG_SWIZZLE_32B, dst_cfg >> 1);
        let datum = 1 << Format::of(pair.1).unwrap().address_shift();
        let base = [cfg::UNP0_ADDR_BASE_REG_1_BASE, cfg::UNP1_ADDR_BASE_REG_1_BASE][unit];
        rig.set_word(base, row % 20 * 8 * 16 * datum);
        let start = x % 8 * 16;
        rig.x(start, start + (count % 40 + 1) * 16 - 1);
        let zero = flag(6) != 0 && seed % 5 == 0;
        let plan = rig.plan(Unpacr::build().all_datums_are_zero(zero).word());
        prop_assume!(plan.is_ok());
        let plan = plan.unwrap();
        prop_assert!(rows::can_move(&plan));
        let slow = result(&plan, &rig.l1, false);
        let fast = result(&plan, &rig.l1, true);
        // A row may have two faults; either names one.
        prop_assert_eq!(fast.ok(), slow.ok());
    }
}

/// Every 8-bit and 16-bit datum with every exponent, in rows and one by one.
#[test]
fn every_short_datum_is_converted_alike() {
    let mut rig = Rig::new(A, BF16, BF16);
    for format in [1, 2, 3, 5, 6, 7, 9, 10, 11, 14, 15] {
        let bits = Format::of(format).unwrap().bits();
        for exponent in if Format::of(format).unwrap().is_block() { 0..=255 } else { 0..=0 } {
            rig.describe(format, true, [256, 1, 4]);
            rig.set(cfg::THCON_SEC_REG2_OUT_DATA_FORMAT, format);
            rig.set(cfg::THCON_SEC_REG2_FORCE_SHARED_EXP, u32::from(bits < 16));
            rig.set_word(cfg::UNP0_FORCED_SHARED_EXP_SHARED_EXP, exponent);
            let datum = 1 << Format::of(format).unwrap().address_shift();
            rig.set_word(cfg::UNP0_ADDR_BASE_REG_1_BASE, 4 * 16 * datum);
            for block in 0..if bits == 16 { 256u16 } else { 1 } {
                if bits == 16 {
                    let data: Vec<u16> = (0..256).map(|i| block << 8 | i).collect();
                    rig.halves(0x1000, &data);
                } else {
                    (0..256).for_each(|i| rig.l1[0x1000 + i] = i as u8);
                }
                let plan = rig.plan(plain()).unwrap();
                assert_eq!(result(&plan, &rig.l1, true), result(&plan, &rig.l1, false), "{format} {exponent}");
            }
        }
    }
}

#[test]
fn the_map_of_dst_is_that_of_the_configuration() {
    let mut rig = Rig::new(A, 0, 0);
    rig.whole_bank(false);
    rig.set(cfg::THCON_SEC_REG2_UNPACK_IF_SEL, 1);
    rig.set_word(cfg::DEST_ACCESS_CFG_REMAP_ADDRS, 1);
    rig.l1[0x1000..0x1400].fill(0x11);
    rig.run(plain()).unwrap();
    let map = RowMap::of(&rig.config);
    assert_eq!(rig.dst.read32(map, 15), [super::super::number::dst_of_fp32(0x1111_1111); 16]);
    assert_eq!(rig.dst.read32(map, 16), [0; 16]);
}

#[test]
fn a_row_is_broadcast_to_eight_rows_of_src_b() {
    let mut rig = Rig::new(B, BF16, BF16);
    let all: Vec<u16> = (1..257).collect();
    rig.halves(0x1000, &all);
    rig.src_row = 8;
    rig.x(32, 47);
    let broadcast = Unpacr::build().srcb_bcast(true).word();
    rig.run(broadcast).unwrap();
    for row in 0..64 {
        let expected = if (8..16).contains(&row) { std::array::from_fn(|i| 33 + i as u32) } else { [0; 16] };
        assert_eq!(rig.row(row), expected, "row {row}");
    }
    // Part of a row.
    rig.x(0, 4);
    rig.run(broadcast).unwrap();
    assert_eq!([8, 15].map(|row| rig.row(row)[..6].to_vec()), [vec![1, 2, 3, 4, 5, 38], vec![1, 2, 3, 4, 5, 38]]);
    rig.x(0, 16);
    assert!(rig.run(broadcast).is_err(), "two rows");
    rig.x(0, 15);
    rig.src_row = 12;
    assert!(rig.run(broadcast).is_err(), "rows that are no block of eight");
}

/// A row of sixteen `1.5` in L1, and the bytes of its exponent, if it has one.
fn ones_and_a_half(format: u32) -> (Vec<u8>, Option<u8>) {
    let exponent = match format {
        2 | 3 | 11 => Some(15),
        6 | 7 | 15 => Some(127),
        _ => None,
    };
    let datum: &[u8] = match format {
        0 | 4 => &[0, 0, 0xC0, 0x3F],
        1 => &[0x00, 0x3E],
        5 => &[0xC0, 0x3F],
        10 => &[0x3E],
        2 | 6 => &[0x60],
        // Two of four bits; four of two bits are ones: a half does not fit.
        3 | 7 => &[0x66],
        _ => &[0x55],
    };
    let bytes = match format {
        3 | 7 => 8,
        11 | 15 => 4,
        _ => 16 * datum.len(),
    };
    (datum.iter().copied().cycle().take(bytes).collect(), exponent)
}

#[test]
fn every_format_arrives_as_its_number() {
    use crate::tensix::number::{bf16_of_dst, fp16_of_dst, fp32_of_dst};
    // From, to; FormatConversion of the page. With sixteen bits of Dst, FP32 becomes BF16 or FP16.
    let pairs =
        [(0, 4), (0, 5), (0, 1), (0, 0), (1, 1), (5, 5), (10, 10), (6, 6), (7, 7), (15, 15), (2, 2), (3, 3), (11, 11)];
    for (from, to) in pairs {
        for to_dst in [false, true] {
            if (to, to_dst) == (0, false) {
                continue; // FP32 does not fit SrcA.
            }
            let mut rig = Rig::new(A, from, to);
            rig.describe(from, true, [16, 1, 1]);
            rig.x(0, 15);
            rig.whole_bank(!to_dst);
            rig.set(cfg::THCON_SEC_REG2_UNPACK_IF_SEL, to_dst.into());
            let (row, exponent) = ones_and_a_half(from);
            let at = if exponent.is_some() { 0x1010 } else { 0x1000 };
            rig.l1[at..at + row.len()].copy_from_slice(&row);
            rig.l1[0x1000] = exponent.unwrap_or(rig.l1[0x1000]);
            rig.run(plain()).unwrap();
            let five_bits = [1, 2, 3, 10, 11].contains(&to);
            let number = if [11, 15].contains(&from) { 1.0 } else { 1.5f32 };
            let map = RowMap::of(&rig.config);
            let fp16 = |x: u16| f32::from_bits(((u32::from(x) & 0x7FFF) << 13) + (112 << 23));
            let found = match (to_dst, to, five_bits) {
                (true, 0 | 4, _) => f32::from_bits(fp32_of_dst(rig.dst.read32(map, 0)[9])),
                (true, _, true) => fp16(fp16_of_dst(rig.dst.read16(map, 0)[9])),
                (true, _, false) => f32::from_bits(u32::from(bf16_of_dst(rig.dst.read16(map, 0)[9])) << 16),
                (false, ..) => {
                    let tf32 = super::super::number::tf32_of_src(rig.src.0[A].unpacked_mut()[0][9]);
                    let bias = if five_bits { 112 << 23 } else { 0 };
                    f32::from_bits((tf32 << 13) + bias)
                }
            };
            assert_eq!(found, number, "{from} to {to}, Dst {to_dst}");
        }
    }
}

#[test]
fn integers_arrive_in_each_width() {
    let bytes = [0x83, 0x7F, 0x00, 0x01];
    let unpacked = |format: u32, to_dst: bool| {
        let mut rig = Rig::new(A, format, format);
        rig.describe(format, true, [16, 1, 1]);
        rig.x(0, 15);
        rig.whole_bank(!to_dst);
        rig.set(cfg::THCON_SEC_REG2_UNPACK_IF_SEL, to_dst.into());
        rig.l1[0x1000..0x1004].copy_from_slice(&bytes);
        rig.run(plain()).unwrap();
        rig
    };
    // Eight bits: -3, 127, 0 and 1 in the mantissa, with an exponent of 16 if not zero.
    let mut rig = unpacked(14, false);
    assert_eq!(rig.src.0[A].unpacked_mut()[0][..4], [1 << 18 | 3 << 8 | 16, 127 << 8 | 16, 0, 1 << 8 | 16]);
    // Sixteen bits as they are, and 32 bits, whose high half Dst has in its own layout.
    let rig = unpacked(9, true);
    let map = RowMap::of(&rig.config);
    assert_eq!(rig.dst.read16(map, 0)[..2], [0x7F83, 0x0100]);
    let rig = unpacked(8, true);
    assert_eq!(super::super::number::fp32_of_dst(rig.dst.read32(map, 0)[0]), 0x0100_7F83);
}
