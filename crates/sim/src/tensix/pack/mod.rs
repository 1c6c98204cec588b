//! The packer: moves rows of Dst to L1.
//!
//! Follows BlackholeA0/TensixTile/TensixCoprocessor/PACR.md and, for the stages that are as
//! Wormhole's, WormholeB0/TensixTile/TensixCoprocessor/Packers/*.md. Blackhole's one packer has the
//! configuration of Wormhole's packer 0. A `PACR` takes effect at once: it reads Dst and writes all
//! whole units of 16 bytes to L1 in the cycle in which it passes the wait gate; how long it takes
//! is in [`cycles`]. What `RowPadZero`, `OvrdThreadId` and `CtxtCtrl` do is in the public list
//! (`assembly.yaml` of tt-llk, PACR).

mod compress;
mod convert;
#[cfg(test)]
mod convert_tests;
mod input;
#[cfg(test)]
mod mode_tests;
mod output;
mod plan;
mod random;
mod register;
mod rows;
#[cfg(test)]
mod tests;
mod whole;

use super::border::Outside;
use super::config::{Config, Refusal};
use super::counters::{Adcs, PackerCounters};
use super::decoded::Kept;
use super::dst::{COLUMNS, Dst};
use super::random::Generators;
use crate::FaultClass::UnimplementedFunctionality;
use crate::{Cycle, timing};
use compress::{Compressor, Streams};
use input::{INTERFACES, Input};
use output::{EXPONENTS, Staged, Stream, Write};
use plan::Plan;
use tilework_abi::tensix::cfg;
use tilework_abi::tensix::insn::{Pacr, settings};

/// `CtxtCtrl`: resets the tracked context, which is always the first one here, and does nothing
/// else.
const RESETS_CONTEXT: u32 = 2;

/// Bytes that its counters can move its output. The public kernel library found more bits not to
/// reach the address (`llk_pack_fast_untilize.h` of tt-llk, for Blackhole).
const OUTPUT_WINDOW: u32 = 1 << 18;

/// The packer's state.
#[derive(Clone, Debug, Default)]
pub(super) struct Packer {
    data: Stream,
    exponents: Stream,
    /// Where rows of compressed output start, and what is not written of them.
    row_starts: Stream,
    compressor: Compressor,
    /// Data of the open streams, without whole blocks of 16.
    within_block: usize,
    generators: Generators,
    register: register::Register,
    sizes: Sizes,
    position: Position,
    /// The exponents that passed, by their low five bits (ExponentHistogram.md).
    histogram: [u8; 32],
    largest: u8,
    /// What TDMA-RISC adds to addresses.
    pub(super) l1_dest_addr_offset: u32,
    /// It has ended a tile.
    has_packed: bool,
    /// Blocks of Dst that the last `PACR` has read, for those who observe.
    read: u128,
}

/// What the configuration says, kept until it changes.
#[derive(Clone, Debug, Default)]
pub(super) struct Plans(Kept<Plan>);

/// How much it has packed, in units of 16 bytes (WormholeB0/TensixTile/TDMA-RISC.md). That a size
/// counts whatever the tile's streams write is not documented.
#[derive(Clone, Debug, Default)]
struct Sizes {
    /// Of the tile that has not ended.
    open: u16,
    /// Of the last one, and its thread.
    last: u16,
    thread: usize,
    /// Of all tiles of each thread.
    accumulated: [u16; 3],
}

impl Sizes {
    fn add(&mut self, write: Write) {
        self.open = self.open.wrapping_add((write.len / output::UNIT as u32) as u16);
    }

    fn end_tile(&mut self, thread: usize, header: bool) {
        (self.last, self.thread, self.open) = (self.open, thread, 0);
        let all = &mut self.accumulated[thread];
        *all = all.wrapping_add(self.last).wrapping_add(header.into());
    }
}

/// What a `PACR` works on.
pub(super) struct Work<'a> {
    pub(super) config: &'a Config,
    pub(super) thread: usize,
    pub(super) plans: &'a mut Plans,
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

/// The tile position generator (EdgeMasking.md): where in a tile the next row is, whatever its place
/// in Dst. The page counts data, sixteen to a row; what it does with rows that are narrower than
/// that is not known: here each is one read, as the counter's name has it.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
struct Position {
    y: u8,
    z: u32,
}

impl Position {
    /// The position so many rows further, in planes of `limit` rows. A row beyond the limit, which
    /// may have changed, does not end the plane.
    fn behind(mut self, rows: usize, limit: u32) -> Self {
        for _ in 0..rows {
            self.y = self.y.wrapping_add(1);
            if u32::from(self.y) == limit {
                self.y = 0;
                self.z = self.z.wrapping_add(1);
            }
        }
        self
    }
}

/// What a `PACR` writes, and where.
struct Output<'a> {
    plan: &'a Plan,
    input: &'a Input,
    dst: &'a Dst,
    /// Data of each row, and how many are written: zeros follow.
    packed: usize,
    stored: usize,
    /// Zeros behind all of them.
    behind: usize,
    /// Where exponents, data and starts of rows go if their streams need an address, in units of 16
    /// bytes.
    at: Addresses,
    /// The row of compressed output goes on with the next instruction.
    concat: bool,
    /// The streams are closed.
    close: bool,
}

/// Addresses in units of 16 bytes.
struct Addresses {
    row_starts: u32,
    exponents: u32,
    data: u32,
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
        if insn.ctxt_ctrl() == RESETS_CONTEXT {
            return Ok(timing::TENSIX_UNIT);
        }
        built(insn)?;
        let plan = on.plans.0.get(on.config, on.thread, Plan::of)?;
        let src_offset = on.config.read(on.thread, cfg::DEST_TARGET_REG_CFG_PACK_SEC_OFFSET) << 4;
        let l1_dest = on.config.read(on.thread, cfg::THCON_SEC_REG1_L1_DEST_ADDR).wrapping_add(plan.header);
        // A fourth one is the first one (InputAddressGenerator.md).
        let adc = if insn.ovrd_thread_id() { insn.addr_cnt_context() as usize % 3 } else { on.thread };
        let counters = on.adcs.packer(adc);
        let input = Input::of(plan, insn, counters, self.position.y, src_offset)?;
        let ready = input.readable(on.dst);
        if ready > on.now {
            return Err(Stop::NotBefore(ready));
        }
        if outside.is_watched() {
            self.read = input.rows.iter().flatten().fold(0, |all, &row| all | Dst::block_of(row));
        }
        let packed = input.packed(plan)?;
        let (stored, behind) = self.padding(insn, &input, packed);
        let close = insn.last() || insn.flush();
        let at = self.addresses(plan, l1_dest, counters);
        let (concat, dst, input) = (insn.concat(), on.dst, &input);
        let output = Output { plan, input, dst, packed, stored, behind, at, concat, close };
        if plan.row_starts.is_some() {
            self.write_compressed(&output, outside)?;
        } else {
            self.write(&output, outside)?;
        }
        self.within_block = if close { 0 } else { (self.within_block + input.count * stored + behind) % COLUMNS };
        if insn.last() {
            self.has_packed = true;
            self.sizes.end_tile(on.thread, plan.counts_header);
        }
        self.position = self.position.behind(input.count, plan.reads_per_plane);
        let word = u32::from(cfg::ADDR_MOD_PACK_SEC_YSRCINCR.word) + insn.addr_mod();
        on.adcs.advance_packer(adc, on.config.thread_word(on.thread, word));
        Ok(cycles(plan, stored))
    }

    /// How many data of each row are written with `RowPadZero`, and how many zeros follow all rows.
    fn padding(&self, insn: Pacr, input: &Input, packed: usize) -> (usize, usize) {
        let pads = match insn.row_pad_zero() & 3 {
            0 => false,
            1 => true,
            2 => !insn.concat(),
            _ => insn.last(),
        };
        if !pads || insn.flush() {
            return (packed, 0);
        }
        if insn.row_pad_zero() & 4 == 0 {
            return (COLUMNS, 0);
        }
        let total = self.within_block + input.count * packed;
        (packed, total.next_multiple_of(COLUMNS) - total)
    }

    /// Writes what is not compressed.
    fn write(&mut self, output: &Output<'_>, outside: &mut impl Outside) -> Result<(), Stop> {
        let &Output { plan, input, stored, behind, ref at, close, .. } = output;
        let bits = (input.count * stored + behind) * plan.layout.bits() as usize;
        let data = self.data.plan(at.data, bits, close)?;
        let rows = if plan.layout.is_block() { input.count } else { 0 };
        let exponents = self.exponents.plan(at.exponents, 8 * rows, close)?;
        if [data, exponents].iter().any(|write| write.len != 0 && outside.must_wake(write.addr, write.len)) {
            return Err(Stop::Wake);
        }
        let (mut staged, mut staged_exponents) = (Staged::default(), Staged::<EXPONENTS>::default());
        self.data.stage(&mut staged);
        self.exponents.stage(&mut staged_exponents);
        self.rows(output, &mut staged, &mut staged_exponents);
        if behind != 0 {
            staged.store(&[0; COLUMNS], behind, plan.layout.bits());
        }
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
        self.sizes.add(data);
        self.sizes.add(exponents);
        self.data.advance(data, &staged, close);
        if plan.exponent_section.is_some() || close {
            self.exponents.advance(exponents, &staged_exponents, close);
        }
        Ok(())
    }

    /// Writes compressed output.
    fn write_compressed(&mut self, output: &Output<'_>, outside: &mut impl Outside) -> Result<(), Stop> {
        let &Output { plan, input, ref at, close, .. } = output;
        // How much is written follows from the data: first the most of it.
        let most = |stream: &Stream, addr: u32, bytes: usize| stream.plan(addr, 8 * bytes, true);
        let longest = [
            most(&self.row_starts, at.row_starts, 2 * size_of::<u16>())?,
            most(&self.exponents, at.exponents, 2 * INTERFACES)?,
            most(&self.data, at.data, compress::STAGED - 16)?,
        ];
        if longest.iter().any(|write| outside.must_wake(write.addr, write.len)) {
            return Err(Stop::Wake);
        }
        let (mut row_starts, mut exponents, mut data) = (Staged::default(), Staged::default(), Staged::default());
        self.row_starts.stage(&mut row_starts);
        self.exponents.stage(&mut exponents);
        self.data.stage(&mut data);
        let mut to =
            Streams { row_starts: &mut row_starts, exponents: &mut exponents, data: &mut data, layout: plan.layout };
        let mut compressor = self.compressor;
        for k in 0..input.count {
            let row = plan.late.convert(self.row(output, k));
            row[..output.stored].iter().for_each(|&x| compressor.push(x, &mut to));
        }
        (0..output.behind).for_each(|_| compressor.push(0, &mut to));
        if close {
            compressor.end_tile(&mut to);
        } else if !output.concat {
            compressor.end_row(&mut to);
        }
        self.compressor = compressor;
        let written = |stream: &Stream, addr, added: usize| stream.plan(addr, added - stream.len(), close);
        let writes: [Write; 3] = [
            written(&self.row_starts, at.row_starts, row_starts.len())?,
            written(&self.exponents, at.exponents, exponents.len())?,
            written(&self.data, at.data, data.len())?,
        ];
        outside.write_l1(writes[0].addr, row_starts.units(writes[0].len));
        outside.write_l1(writes[1].addr, exponents.units(writes[1].len));
        outside.write_l1(writes[2].addr, data.units(writes[2].len));
        writes.into_iter().for_each(|write| self.sizes.add(write));
        self.row_starts.advance(writes[0], &row_starts, close);
        self.exponents.advance(writes[1], &exponents, close);
        self.data.advance(writes[2], &data, close);
        Ok(())
    }

    /// The blocks of Dst that the last `PACR` has read, once.
    pub(super) fn take_read(&mut self) -> u128 {
        std::mem::take(&mut self.read)
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

    /// The size of the last tile, if it was of `thread`, and of all tiles of the thread, in units
    /// of 16 bytes.
    pub(super) fn sizes(&self, thread: usize) -> [u32; 2] {
        let last = if self.sizes.thread == thread { self.sizes.last } else { 0 };
        [last.into(), self.sizes.accumulated.get(thread).copied().unwrap_or(0).into()]
    }

    /// Resets the sums of sizes.
    pub(super) fn reset_sizes(&mut self) {
        self.sizes.accumulated = [0; 3];
    }

    /// Whether it has ended a tile.
    pub(super) fn has_packed(&self) -> bool {
        self.has_packed
    }

    /// Drops what has not been written (BlackholeA0/TensixTile/SoftReset.md, "Packer soft reset").
    pub(super) fn abort(&mut self) {
        (self.data, self.exponents, self.row_starts) = Default::default();
        (self.compressor, self.within_block) = Default::default();
        (self.has_packed, self.sizes) = Default::default();
    }

    /// The connection to Dst has left reset (WormholeB0/TensixTile/SoftReset.md).
    pub(super) fn reset_generators(&mut self) {
        self.generators = Generators::default();
    }

    /// Seeds the generators of random numbers.
    pub(super) fn seed(&mut self, seed: u32) {
        self.generators.seed(seed);
    }

    /// Where a tile goes if its streams need addresses.
    fn addresses(&self, plan: &Plan, l1_dest: u32, counters: PackerCounters) -> Addresses {
        // Wormhole's page has units there, of which the last four bits are dropped: the kernel
        // library sets Blackhole's strides in bytes, as others.
        let within = plan.dst.address(counters.dst) % OUTPUT_WINDOW / output::UNIT as u32;
        let mut addr = l1_dest.wrapping_add(within);
        if plan.adds_offset {
            addr = addr.wrapping_add(self.l1_dest_addr_offset);
        }
        if addr > plan.limit {
            addr = addr.wrapping_sub(plan.fifo);
        }
        let exponents = addr.wrapping_add(plan.row_starts.unwrap_or(0));
        let data = exponents.wrapping_add(plan.exponent_section.unwrap_or(0));
        Addresses { row_starts: addr, exponents, data }
    }
}

/// Refuses what the page calls not yet documented, and of which the public list does not say which
/// configuration it chooses.
fn built(insn: Pacr) -> Result<(), Refusal> {
    let what = match () {
        () if insn.cfg_context() != 0 => "CfgContext, of which no document says what it chooses",
        () if insn.ctxt_ctrl() != 0 => "CtxtCtrl, of which no document says what its contexts choose",
        () if insn.row_pad_zero() == 4 => "a RowPadZero of 4, which is no value of the public list",
        () => return Ok(()),
    };
    Err((UnimplementedFunctionality, what))
}

/// For how long the packer is busy with an instruction's rows before it takes another one.
///
/// All read interfaces work at the same time, each on its row.
fn cycles(plan: &Plan, packed: usize) -> Cycle {
    let words = (packed as u64 * u64::from(plan.layout.bits())).div_ceil(8 * timing::L1_WORD).max(1);
    if plan.accumulate.is_some() { words * timing::PACK_ACCUMULATE } else { words }
}
