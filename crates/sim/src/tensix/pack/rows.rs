//! What happens to the rows of a `PACR` between Dst and the packer's streams.

use super::convert::{self, Kind, Row};
use super::input::Input;
use super::output::{EXPONENTS, Staged};
use super::plan::{Layout, Plan, Relu};
use super::{Output, Packer};
use crate::tensix::dst::{COLUMNS, Dst, each};

impl Packer {
    /// Packs all rows.
    pub(super) fn rows(&mut self, output: &Output<'_>, data: &mut Staged, exponents: &mut Staged<EXPONENTS>) {
        let &Output { plan, input, dst, packed, stored, .. } = output;
        if let Some(whole) = plan.whole
            && input.width == COLUMNS
            && stored == COLUMNS
            && data.is_aligned()
            && let Some((largest, bytes)) = whole.pack(dst, plan.map, input, data.room())
        {
            self.largest = self.largest.max(largest);
            data.add(bytes);
            return;
        }
        for k in 0..input.count {
            let values = self.row(output, k);
            let (exponent, values) = self.finish(plan, &values, packed);
            if plan.layout.is_block() {
                exponents.room()[0] = exponent;
                exponents.add(1);
            }
            data.store(&values, stored, plan.layout.bits());
        }
    }

    /// The columns of row `k` as they are before the late conversion; zeros behind them.
    pub(super) fn row(&mut self, output: &Output<'_>, k: usize) -> Row {
        match output.input.rows[k] {
            Some(row) => self.fetch(output.plan, output.input, output.dst, row, k),
            None => [0; COLUMNS],
        }
    }

    /// The late conversion: the row's exponent, if it has one, and its data.
    fn finish(&mut self, plan: &Plan, row: &Row, packed: usize) -> (u8, Row) {
        let mut row = plan.late.convert(*row);
        match plan.layout {
            Layout::Plain { .. } => (0, row),
            Layout::Block { bits, small } => {
                row[packed..].fill(0);
                match plan.late_by_chance {
                    true => convert::block_by_chance(row, small, bits, &self.generators.draw()),
                    false => convert::block(row, small, bits),
                }
            }
        }
    }

    /// The columns of a row as they are after everything up to the exponent threshold; zeros behind
    /// them.
    fn fetch(&mut self, plan: &Plan, input: &Input, dst: &Dst, row: usize, k: usize) -> Row {
        let mut row = match plan.early_by_chance {
            true => plan.early.read_by_chance(dst, plan.map, row, &self.generators.draw()),
            false => plan.early.read(dst, plan.map, row),
        };
        if let Some(edge) = &plan.edge {
            let at = self.position.behind(k, plan.reads_per_plane);
            let mask = edge.mask(at.y.into(), at.z);
            for (_, x) in row.iter_mut().enumerate().filter(|(i, _)| mask >> i & 1 == 0) {
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
