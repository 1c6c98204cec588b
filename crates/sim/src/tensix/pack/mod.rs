//! The packer: moves rows of Dst to L1.
//!
//! Follows BlackholeA0/TensixTile/TensixCoprocessor/PACR.md and, for the stages that are as
//! Wormhole's, WormholeB0/TensixTile/TensixCoprocessor/Packers/*.md. Blackhole's one packer has the
//! configuration of Wormhole's packer 0. A `PACR` takes effect at once: it reads Dst and writes all
//! whole units of 16 bytes to L1 in the cycle in which it passes the wait gate; how long it takes
//! is in [`cycles`].

mod convert;
#[cfg(test)]
mod convert_tests;
mod output;
mod plan;
#[cfg(test)]
mod tests;

use super::border::Outside;
use super::config::{Config, Refusal};
use super::counters::{Adcs, PackerCounters};
use super::dst::{COLUMNS, Dst, each};
use super::number::bf16_of_dst;
use crate::FaultClass::{UndefinedBehavior, UnimplementedFunctionality};
use crate::{Cycle, timing};
use convert::{Kind, Row};
use output::{Staged, Stream};
use plan::{Layout, Plan, Relu};
use tilework_abi::tensix::cfg;
use tilework_abi::tensix::insn::{Pacr, settings};

/// Read interfaces of Dst.
const INTERFACES: usize = 4;
/// From a row to the one that the next interface reads in the strided mode.
const STRIDE: usize = 16;

/// The packer's state.
#[derive(Debug, Default)]
pub(super) struct Packer {
    data: Stream,
    exponents: Stream,
    /// The tile position: row, and plane.
    y: u8,
    z: u32,
    /// The exponents that passed, by their low five bits (ExponentHistogram.md).
    histogram: [u8; 32],
    largest: u8,
    /// What TDMA-RISC adds to addresses.
    pub(super) l1_dest_addr_offset: u32,
    /// It has ended a tile.
    has_packed: bool,
    /// What the configuration says, of which generation, to which thread.
    plan: Option<(u64, usize, Plan)>,
}

/// What a `PACR` works on.
pub(super) struct Work<'a> {
    pub(super) config: &'a Config,
    pub(super) thread: usize,
    pub(super) adcs: &'a mut Adcs,
    pub(super) dst: &'a Dst,
    pub(super) now: Cycle,
}

/// Why a `PACR` did not take effect.
pub(super) enum Stop {
    /// Cores sleep on what it would write.
    Wake,
    /// What it reads of Dst can be read from this cycle on.
    NotBefore(Cycle),
    Refused(Refusal),
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// What a `PACR` reads.
struct Input {
    /// Rows of Dst, by read interface; `None`: zeros.
    rows: [Option<usize>; INTERFACES],
    /// How many of these.
    count: usize,
    /// The first column, and how many.
    column: usize,
    width: usize,
}

/// What the configuration adds to the mode of a `PACR`.
pub(super) fn settings(config: &Config, thread: usize) -> u32 {
    let from = config.read(thread, cfg::THCON_SEC_REG1_IN_DATA_FORMAT);
    let to = config.read(thread, cfg::THCON_SEC_REG1_OUT_DATA_FORMAT);
    settings::OUT_FORMAT.put(settings::IN_FORMAT.put(0, from), to)
}

impl Packer {
    /// Executes a `PACR`; returns for how many cycles the packer takes no other one.
    pub(super) fn pack(&mut self, on: &mut Work<'_>, insn: Pacr, outside: &mut impl Outside) -> Result<Cycle, Stop> {
        built(insn)?;
        let plan = self.plan(on.config, on.thread)?;
        let counters = on.adcs.packer(on.thread);
        let input = input(&plan, insn, counters)?;
        let rows = input.rows.iter().flatten();
        if let Some(ready) = rows.map(|row| on.dst.readable(*row)).max().filter(|ready| *ready > on.now) {
            return Err(Stop::NotBefore(ready));
        }
        let close = insn.last() || insn.flush();
        let packed = packed(&plan, &input)?;
        let [exponents_at, data_at] = self.addresses(&plan, counters);
        let data = self.data.plan(data_at, input.count * packed * plan.layout.bits() as usize / 8, close)?;
        let rows = if plan.layout.is_block() { input.count } else { 0 };
        let exponents = self.exponents.plan(exponents_at, rows, close)?;
        if [data, exponents].iter().any(|write| write.len != 0 && outside.must_wake(write.addr, write.len)) {
            return Err(Stop::Wake);
        }
        let (mut staged, mut staged_exponents) = (self.data.stage(), self.exponents.stage());
        self.rows(&plan, &input, on.dst, packed, [&mut staged, &mut staged_exponents]);
        if data.len != 0 {
            let units = staged.units(data.len);
            if let Some(how) = plan.accumulate {
                output::accumulate(units, &outside.l1()[data.addr as usize..], how);
            }
            outside.write_l1(data.addr, units);
        }
        if exponents.len != 0 {
            outside.write_l1(exponents.addr, staged_exponents.units(exponents.len));
        }
        self.data.advance(data, &staged, close);
        if plan.exponent_section.is_some() || close {
            self.exponents.advance(exponents, &staged_exponents, close);
        }
        self.has_packed |= insn.last();
        self.advance_position(&plan, input.count);
        let word = u32::from(cfg::ADDR_MOD_PACK_SEC_YSRCINCR.word) + insn.addr_mod();
        on.adcs.advance_packer(on.thread, on.config.thread_word(on.thread, word));
        Ok(cycles(&plan, packed))
    }

    /// Resets what counts exponents: `CLREXPHIST`.
    pub(super) fn clear_histogram(&mut self) {
        self.histogram = [0; 32];
        self.largest = 0;
    }

    /// Half `half` of the histogram.
    pub(super) fn histogram(&self, half: usize) -> [u32; 4] {
        let bytes = &self.histogram[16 * half..];
        std::array::from_fn(|i| {
            u32::from_le_bytes([bytes[4 * i], bytes[4 * i + 1], bytes[4 * i + 2], bytes[4 * i + 3]])
        })
    }

    /// The largest exponent.
    pub(super) fn largest_exponent(&self) -> u32 {
        self.largest.into()
    }

    /// Whether it has ended a tile.
    pub(super) fn has_packed(&self) -> bool {
        self.has_packed
    }

    /// Drops what has not been written (BlackholeA0/TensixTile/SoftReset.md, "Packer soft reset").
    pub(super) fn abort(&mut self) {
        (self.data, self.exponents) = Default::default();
        self.has_packed = false;
    }

    fn plan(&mut self, config: &Config, thread: usize) -> Result<Plan, Refusal> {
        match self.plan {
            Some((generation, of, plan)) if generation == config.generation() && of == thread => Ok(plan),
            _ => {
                let plan = Plan::of(config, thread)?;
                self.plan = Some((config.generation(), thread, plan));
                Ok(plan)
            }
        }
    }

    /// Where exponents and data go if their streams need an address, in units of 16 bytes.
    fn addresses(&self, plan: &Plan, counters: PackerCounters) -> [u32; 2] {
        let mut addr = plan.l1_dest.wrapping_add(plan.dst.address(counters.dst) & !0xF);
        if plan.adds_offset {
            addr = addr.wrapping_add(self.l1_dest_addr_offset);
        }
        if addr > plan.limit {
            addr = addr.wrapping_sub(plan.fifo);
        }
        [addr, addr.wrapping_add(plan.exponent_section.unwrap_or(0))]
    }

    /// Packs all rows into `[data, exponents]`.
    fn rows(&mut self, plan: &Plan, input: &Input, dst: &Dst, packed: usize, staged: [&mut Staged; 2]) {
        let [data, exponents] = staged;
        for (k, row) in input.rows[..input.count].iter().enumerate() {
            if plan.is_plain_bf16
                && input.width == COLUMNS
                && let Some(row) = *row
            {
                self.plain_bf16(plan, dst, row, data);
                continue;
            }
            let mut values = [0; COLUMNS];
            if let Some(row) = *row {
                values = self.fetch(plan, input, dst, row, k);
            }
            let (exponent, values) = finish(plan, &values, packed);
            if plan.layout.is_block() {
                exponents.room()[0] = exponent;
                exponents.add(1);
            }
            let bytes = convert::store(&values, packed, plan.layout.bits(), data.room());
            data.add(bytes);
        }
    }

    /// A whole row of BF16 that becomes BF16, with nothing in between: the same as the stages do.
    #[inline]
    fn plain_bf16(&mut self, plan: &Plan, dst: &Dst, row: usize, data: &mut Staged) {
        let row = each(dst.read16(plan.map, row), |x| {
            let x = bf16_of_dst(x);
            let magnitude = (x & 0x7FFF).min(0x7F80);
            if magnitude < 0x80 { 0 } else { x & 0x8000 | magnitude }
        });
        let largest = row.iter().fold(0, |all, x| (x & 0x7F80).max(all)) >> 7;
        self.largest = self.largest.max(largest as u8);
        for (out, x) in data.room().chunks_exact_mut(2).zip(row) {
            out.copy_from_slice(&x.to_le_bytes());
        }
        data.add(2 * COLUMNS);
    }

    /// The columns of a row as they are after everything up to the exponent threshold; zeros behind
    /// them.
    fn fetch(&mut self, plan: &Plan, input: &Input, dst: &Dst, row: usize, k: usize) -> Row {
        let mut row = plan.early.read(dst, plan.map, row);
        if let Some(edge) = &plan.edge {
            let mask = edge.mask(u32::from(self.y.wrapping_add(k as u8)), self.z);
            for (i, x) in row.iter_mut().enumerate().filter(|(i, _)| mask >> i & 1 == 0) {
                debug_assert!(i < COLUMNS);
                *x = edge.value;
            }
        }
        if input.width < COLUMNS {
            row.copy_within(input.column..input.column + input.width, 0);
            row[input.width..].fill(0);
        }
        relu(&mut row, plan.kind, plan.relu);
        self.count_exponents(plan, &row[..input.width]);
        if plan.threshold != 0 {
            row = each(row, |x| if plan.kind.exponent(x) < plan.threshold { 0 } else { x });
        }
        if plan.downsample != 0xFFFF {
            downsample(&mut row, input.width, plan.downsample);
        }
        row
    }

    fn count_exponents(&mut self, plan: &Plan, row: &[u32]) {
        let largest = row.iter().fold(0, |all, &x| plan.kind.exponent(x).max(all));
        self.largest = self.largest.max(largest as u8);
        if plan.counts {
            for &x in row {
                let bin = &mut self.histogram[(plan.kind.exponent(x) & 0x1F) as usize];
                *bin = bin.saturating_add(1);
            }
        }
    }

    fn advance_position(&mut self, plan: &Plan, rows: usize) {
        self.y = self.y.wrapping_add(rows as u8);
        if rows != 0 && u32::from(self.y) == plan.reads_per_plane {
            self.y = 0;
            self.z = self.z.wrapping_add(1);
        }
    }
}

/// Refuses what the page calls not yet documented.
fn built(insn: Pacr) -> Result<(), Refusal> {
    let what = match () {
        () if insn.row_pad_zero() != 0 => "RowPadZero, which is not documented",
        () if insn.cfg_context() != 0 => "CfgContext, which is not documented",
        () if insn.ctxt_ctrl() != 0 => "CtxtCtrl, which is not documented",
        () if insn.addr_cnt_context() != 0 => "AddrCntContext, which is not documented",
        () if insn.ovrd_thread_id() => "OvrdThreadId, which is not documented for one packer",
        () => return Ok(()),
    };
    Err((UnimplementedFunctionality, what))
}

/// What the instruction reads (PACR.md, "Dst read interfaces", and InputAddressGenerator.md).
fn input(plan: &Plan, insn: Pacr, counters: PackerCounters) -> Result<Input, Refusal> {
    let mut input = Input { rows: [None; INTERFACES], count: 0, column: 0, width: 0 };
    if insn.flush() {
        return Ok(input);
    }
    let x = counters.src[0];
    let bytes = plan.src.address(counters.src).wrapping_add(x.wrapping_mul(plan.x_stride));
    let fine = [0xF, 0xF, 0x7, 0, 0x3][plan.datum_bytes as usize];
    let at = ((bytes / plan.datum_bytes) & !fine).wrapping_add(x & fine).wrapping_add(plan.src_offset);
    let (first, column) = (at as usize >> 4 & 0x3FF, at as usize & 0xF);
    let width = (counters.dst[0] + 1).checked_sub(x).filter(|&width| width != 0 && column + width as usize <= COLUMNS);
    let Some(width) = width else {
        return Err((UndefinedBehavior, "X counters that do not name columns of one row"));
    };
    (input.column, input.width) = (column, width as usize);
    let mask = if insn.read_intf_sel() == 0 { 0xF } else { insn.read_intf_sel() };
    let step = if insn.dst_access_mode() { STRIDE } else { 1 };
    if insn.dst_access_mode() && !plan.can_stride {
        return Err((UnimplementedFunctionality, "the strided mode without swizzle_32b, which is not documented"));
    }
    if !insn.dst_access_mode() && mask << (first & 3) > 0xF {
        return Err((UndefinedBehavior, "read interfaces outside a group of four rows of Dst"));
    }
    // The page writes rows of the group, and that the mask is relative to the first row; kernels
    // that pack one row after the other with one interface need the latter.
    for i in (0..INTERFACES).filter(|i| mask >> i & 1 != 0) {
        input.rows[input.count] = (!insn.zero_write()).then_some(first + i * step);
        input.count += 1;
    }
    Ok(input)
}

/// How many data of each row are packed.
fn packed(plan: &Plan, input: &Input) -> Result<usize, Refusal> {
    let mask = ((1u32 << input.width) - 1) & u32::from(plan.downsample);
    let packed = mask.count_ones() as usize;
    if plan.downsample != 0xFFFF && input.width != COLUMNS && input.count > 1 {
        return Err((UnimplementedFunctionality, "downsampling of parts of rows, which is not documented"));
    }
    if !(packed * plan.layout.bits() as usize).is_multiple_of(8) {
        return Err((UnimplementedFunctionality, "a row that ends within a byte is not built yet"));
    }
    Ok(packed)
}

/// Keeps the data that the mask names (Downsampling.md).
fn downsample(row: &mut Row, width: usize, mask: u16) {
    let mut count = 0;
    for i in (0..width).filter(|i| mask >> i & 1 != 0) {
        row[count] = row[i];
        count += 1;
    }
    row[count..].fill(0);
}

/// `ReLUStage`. Data compare by sign and magnitude, so that NaN is larger than infinity.
fn relu(row: &mut Row, kind: Kind, relu: Relu) {
    let sign = kind.sign();
    match relu {
        Relu::None => {}
        Relu::Zero => row.iter_mut().for_each(|x| *x = if *x & sign != 0 { 0 } else { *x }),
        Relu::Above(least) => row.iter_mut().for_each(|x| *x = if *x & sign != 0 || *x <= least { 0 } else { *x }),
        Relu::UpTo(most) => row.iter_mut().for_each(|x| *x = if *x & sign != 0 { 0 } else { (*x).min(most) }),
    }
}

/// The late conversion: the row's exponent, if it has one, and its data.
fn finish(plan: &Plan, row: &Row, packed: usize) -> (u8, Row) {
    let row = plan.late.convert(*row);
    match plan.layout {
        Layout::Plain { .. } => (0, row),
        Layout::Block { bits, small } => {
            let mut row = row;
            row[packed..].fill(0);
            convert::block(row, small, bits)
        }
    }
}

/// For how long the packer is busy with an instruction's rows before it takes another one.
///
/// All read interfaces work at the same time, each on its row.
fn cycles(plan: &Plan, packed: usize) -> Cycle {
    let words = (packed as u64 * u64::from(plan.layout.bits())).div_ceil(8 * timing::L1_WORD).max(1);
    if plan.accumulate.is_some() { words * timing::PACK_ACCUMULATE } else { words }
}
