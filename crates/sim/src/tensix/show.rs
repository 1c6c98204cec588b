//! The coprocessor's state as lines of text, for a debugger. Looking changes nothing.

use super::coprocessor::{Coprocessor, THREADS};
use super::dst::RowMap;
use super::src::{self, Src};
use super::{Tensix, number};
use std::fmt::Write as _;

/// The parts that [`Tensix::show`] knows, and what the numbers behind them count.
pub(crate) const PARTS: [(&str, &str); 8] = [
    ("dst", "rows, as BF16 of Dst16b"),
    ("dst32", "rows, as FP32 of Dst32b"),
    ("srca", "rows of the matrix unit's bank, as TF32"),
    ("srcb", "rows of the matrix unit's bank, as TF32"),
    ("lregs", "vector registers, as FP32 by lane"),
    ("config", "words from TENSIX_CFG_BASE"),
    ("semaphores", "semaphores, and mutexes"),
    ("rwcs", "threads: counters, and the instruction at the wait gate"),
];

impl Tensix {
    /// `count` lines of a part from number `from` on; `None` if there is no such part.
    pub(crate) fn show(&self, part: &str, from: usize, count: usize) -> Option<String> {
        let cop = &self.coprocessor;
        let all = |end: usize| from.min(end)..from.saturating_add(count).min(end);
        let mut out = String::new();
        match part {
            "dst" => all(1024).for_each(|row| cop.show_dst16(row, &mut out)),
            "dst32" => all(512).for_each(|row| cop.show_dst32(row, &mut out)),
            "srca" => all(src::ROWS).for_each(|row| show_src(&cop.src.0[src::A], row, &mut out)),
            "srcb" => all(src::ROWS).for_each(|row| show_src(&cop.src.0[src::B], row, &mut out)),
            "lregs" => all(cop.vector.lregs().len()).for_each(|i| {
                let lanes = cop.vector.lregs()[i].map(f32::from_bits);
                line(&mut out, &format!("LReg[{i}]"), lanes.iter());
            }),
            "config" => {
                for index in all(0x800) {
                    let word = self.config_word(index as u32);
                    let _ = writeln!(out, "config[{index}] = {word:#010x}");
                }
            }
            "semaphores" => cop.show_sync(all(cop.semaphores.len()), &mut out),
            "rwcs" => all(THREADS).for_each(|thread| cop.show_thread(thread, &mut out)),
            _ => return None,
        }
        Some(out)
    }
}

/// A line of values.
fn line<T: std::fmt::Display>(out: &mut String, name: &str, values: impl Iterator<Item = T>) {
    let _ = write!(out, "{name} =");
    values.for_each(|value| {
        let _ = write!(out, " {value}");
    });
    out.push('\n');
}

fn show_src(src: &Src, row: usize, out: &mut String) {
    let turn = if src.matrix_may_read() { "" } else { " (the unpacker's turn)" };
    // TF32 has the sign and the exponent of FP32, and the first ten bits of its mantissa.
    let value = |&datum: &u32| f32::from_bits(number::tf32_of_src(datum) << 13);
    line(out, &format!("row {row}{turn}"), src.rows()[row].iter().map(value));
}

impl Coprocessor {
    /// The map of rows as it is configured now.
    fn row_map(&self) -> RowMap {
        RowMap::of(&self.config)
    }

    fn show_dst16(&self, row: usize, out: &mut String) {
        let value = |datum: u16| f32::from_bits(u32::from(number::bf16_of_dst(datum)) << 16);
        let row16 = self.dst.read16(self.row_map(), row);
        line(out, &format!("row {row}"), row16.into_iter().map(value));
    }

    fn show_dst32(&self, row: usize, out: &mut String) {
        let value = |datum: u32| f32::from_bits(number::fp32_of_dst(datum));
        let row32 = self.dst.read32(self.row_map(), row);
        line(out, &format!("row {row}"), row32.into_iter().map(value));
    }

    fn show_sync(&self, semaphores: std::ops::Range<usize>, out: &mut String) {
        for i in semaphores {
            let semaphore = self.semaphores[i];
            let full = if semaphore.is_full() { ", at or above its maximum" } else { "" };
            let _ = writeln!(out, "semaphore {i} = {}{full}", semaphore.value());
        }
        for i in [0, 2, 3, 4] {
            if let Some(thread) = self.mutexes.holder(i) {
                let _ = writeln!(out, "mutex {i} is held by T{thread}");
            }
        }
    }

    fn show_thread(&self, thread: usize, out: &mut String) {
        let rwc = &self.matrix.rwcs[thread];
        let (dst, a, b, phase) = (rwc.dst(), rwc.src_a(), rwc.src_b(), rwc.fidelity());
        let _ = writeln!(out, "T{thread}: RWCs Dst {dst}, SrcA {a}, SrcB {b}, fidelity phase {phase}");
        if let Some((what, origin)) = self.explain(thread) {
            let _ = writeln!(out, "{what}, {origin}");
        }
    }
}
