//! Draws an element of a line at random, with the steps and roundings of host arithmetic
//! (`tilework_ops::sampling`): the same numbers give the same choice.

use tilework_abi::lines::{drawn, element};
use tilework_rt::reg::{read, stop, write};

use crate::{Work, is_nan, load};

/// Lanes in which host arithmetic adds up.
const LANES: usize = 16;

impl Work {
    /// Gives the number that the element had in its line.
    pub(crate) fn draw(&mut self, line: u32) {
        for pages in [self.lines, self.places, self.updates] {
            pages.read(&mut self.noc, line);
        }
        self.noc.read_barrier();
        let [order, parts] = self.ordered();
        let wanted = load(self.places.at, self.index, 0);
        let is_negative = self.index == element::I32 && wanted >> 31 == 1;
        if wanted == 0 || is_negative {
            stop();
        }
        let kept = wanted.min(self.length);
        let update = |i| f32::from_bits(load(self.updates.at, element::F32, i));
        let (bound, temperature) = (update(drawn::BOUND), update(drawn::TEMPERATURE));
        for i in 0..kept {
            let word = load(self.lines.at, self.element, read(order + i * 4));
            put(parts, i, f32::from_bits(word) * temperature);
        }
        softmax(parts, kept);
        let at = chosen(parts, kept, bound, update(drawn::NUMBER));
        let number = read(order + at * 4);
        self.give_number(number, line);
    }
}

fn get(table: u32, i: u32) -> f32 {
    f32::from_bits(read(table + i * 4))
}

fn put(table: u32, i: u32, value: f32) {
    write(table + i * 4, value.to_bits());
}

/// Makes parts of one of a table of numbers.
fn softmax(table: u32, count: u32) {
    let mut largest = get(table, 0);
    for i in 1..count {
        let value = get(table, i);
        if value > largest || is_nan(value.to_bits()) {
            largest = value;
        }
    }
    let mut lanes = [0f32; LANES];
    for i in 0..count {
        let value = exp(get(table, i) - largest);
        put(table, i, value);
        lanes[i as usize % LANES] += value;
    }
    let mut width = LANES / 2;
    while width > 0 {
        for i in 0..width {
            lanes[i] += lanes[i + width];
        }
        width /= 2;
    }
    for i in 0..count {
        put(table, i, get(table, i) / lanes[0]);
    }
}

/// The place that a number from 0 to below 1 chooses of parts, the largest first.
fn chosen(parts: u32, count: u32, bound: f32, number: f32) -> u32 {
    let (mut total, mut kept) = (0.0, 0);
    while kept < count {
        total += get(parts, kept);
        kept += 1;
        if total > bound {
            break;
        }
    }
    let mut sum = 0.0;
    for i in 0..kept {
        sum += get(parts, i) / total;
        if sum > number {
            return i;
        }
    }
    // The parts may add up to a little less than 1.
    kept - 1
}

/// 2^k for k in -126..=127.
fn power_of_two(k: i32) -> f32 {
    f32::from_bits(((k + 127) as u32) << 23)
}

/// e^x: the polynomial of host arithmetic (`tilework_ops::math`, after Cephes), step by step.
#[inline(never)]
fn exp(x: f32) -> f32 {
    let x = if x > 89.0 { 89.0 } else { x };
    let x = if x < -104.0 { -104.0 } else { x };
    const ROUND: f32 = 12_582_912.0;
    let shifted = x * core::f32::consts::LOG2_E + ROUND;
    let n = shifted - ROUND;
    let k = shifted.to_bits().wrapping_sub(ROUND.to_bits()) as i32;
    let r = x - n * 0.693_359_4 - n * -2.121_944_4e-4;
    let mut p = 1.987_569_1e-4;
    for coefficient in [1.398_199_9e-3, 8.333_452e-3, 4.166_579_6e-2, 1.666_666_5e-1, 5e-1] {
        p = p * r + coefficient;
    }
    let y = p * r * r + r + 1.0;
    let k = k.clamp(-160, 140);
    let half = k >> 1;
    y * power_of_two(half) * power_of_two(k - half)
}
