//! The examples against NumPy: shapes and seeds of `pto-isa`'s tests of TPUSH and TPOP
//! (`tests/npu`), inputs drawn by NumPy's generator, expected sums from `examples_numpy/values.py`.

use tilework_pto::examples::{DequantMatmul, Form, MatmulBias, Matrix, Ran, RoundTrip, Setting};
use tilework_pto::{Arch, Config, DType, Direction, Split};

/// MT19937 as `numpy.random.RandomState(seed)` seeds and draws it (Matsumoto and Nishimura 1998;
/// NumPy, "Random Generator: legacy").
struct RandomState {
    state: [u32; 624],
    next: usize,
}

impl RandomState {
    fn new(seed: u32) -> Self {
        let mut state = [seed; 624];
        for i in 1..624 {
            let before = state[i - 1];
            state[i] = 1_812_433_253_u32.wrapping_mul(before ^ (before >> 30)).wrapping_add(i as u32);
        }
        Self { state, next: 624 }
    }

    fn word(&mut self) -> u32 {
        if self.next == 624 {
            for i in 0..624 {
                let y = (self.state[i] & 0x8000_0000) | (self.state[(i + 1) % 624] & 0x7fff_ffff);
                let twist = if y & 1 == 1 { 0x9908_b0df } else { 0 };
                self.state[i] = self.state[(i + 397) % 624] ^ (y >> 1) ^ twist;
            }
            self.next = 0;
        }
        let mut y = self.state[self.next];
        self.next += 1;
        y ^= y >> 11;
        y ^= (y << 7) & 0x9d2c_5680;
        y ^= (y << 15) & 0xefc6_0000;
        y ^ (y >> 18)
    }

    /// `randint(low, high)`: words masked, those past the range drawn again.
    fn randint(&mut self, low: i32, high: i32) -> i32 {
        let most = (high - 1 - low) as u32;
        let mask = u32::MAX >> most.leading_zeros();
        loop {
            let value = self.word() & mask;
            if value <= most {
                return low + value as i32;
            }
        }
    }

    /// `uniform(low, high)`: 53 bits of two words.
    fn uniform(&mut self, low: f64, high: f64) -> f64 {
        let (a, b) = (self.word() >> 5, self.word() >> 6);
        low + (high - low) * ((f64::from(a) * 67_108_864.0 + f64::from(b)) / 9_007_199_254_740_992.0)
    }

    fn whole(&mut self, rows: usize, cols: usize, low: i32, high: i32) -> Matrix {
        Matrix::from_fn(rows, cols, |_, _| self.randint(low, high) as f32)
    }

    fn real(&mut self, rows: usize, cols: usize, low: f64, high: f64) -> Matrix {
        Matrix::from_fn(rows, cols, |_, _| self.uniform(low, high) as f32)
    }
}

#[test]
fn the_draws_are_those_of_numpy() {
    let mut r = RandomState::new(19);
    assert_eq!([(); 8].map(|()| r.randint(-5, 5)), [0, -3, 3, -2, -1, -3, 3, 1]);
    let mut r = RandomState::new(42);
    assert_eq!([(); 2].map(|()| r.uniform(0.0, 1.0)), [0.3745401188473625, 0.9507143064099162]);
}

/// The sum of all elements, and the sum of all times their numbers from 1 on.
fn digest(matrix: &Matrix) -> [f64; 2] {
    let values = matrix.values().iter().zip(1_u32..).map(|(&v, i)| (f64::from(v), f64::from(v) * f64::from(i)));
    values.fold([0.0, 0.0], |[a, b], (x, y)| [a + x, b + y])
}

/// Single precision against double: each element is within `error` of its own.
fn close(matrix: &Matrix, expected: [f64; 2], error: f64, what: &str) {
    let found = digest(matrix);
    let count = matrix.values().len() as f64;
    let bounds = [error * count, error * count * (count + 1.0) / 2.0];
    for ((found, expected), bound) in found.iter().zip(expected).zip(bounds) {
        assert!((found - expected).abs() <= bound, "{what}: {found} instead of {expected}, more than {bound} apart");
    }
}

fn settings(slots: u32) -> [Setting; 2] {
    Arch::ALL.map(|arch| Setting { slots, ..Setting::new(Config::new(arch, 7)) })
}

fn result(ran: Ran, what: &str) -> Matrix {
    ran.outcome.unwrap_or_else(|fault| panic!("{what}: {fault}")).result
}

/// Seed, [m, k, n], digest.
type BiasRow = (u32, [usize; 3], [f64; 2]);

fn bias((seed, [m, k, n], _): BiasRow, tile_rows: usize, split: Split) -> MatmulBias {
    let mut r = RandomState::new(seed);
    let (a, b, bias) = (r.whole(m, k, -5, 5), r.whole(k, n, -5, 5), r.whole(1, n, -5, 5));
    MatmulBias { a, b, bias, tile_rows, split, direction: Direction::C2V, form: Form::Tiles }
}

const CV: [BiasRow; 3] = [
    (19, [16, 32, 32], [6250.0, 1987447.0]),
    (19, [32, 32, 32], [6329.0, 3043569.0]),
    (19, [64, 32, 32], [16297.0, 13082434.0]),
];
const CV_ODD: [(BiasRow, Split); 2] = [
    ((19, [5, 32, 128], [1710.0, 223157.0]), Split::UpDownOdd),
    ((19, [5, 32, 127], [2166.0, 248986.0]), Split::LeftRightOdd),
];
const CV_NO_SPLIT: [(BiasRow, usize, u32); 3] = [
    ((42, [16, 32, 32], [5817.0, 1695203.0]), 16, 1),
    ((42, [32, 32, 64], [14885.0, 15112245.0]), 32, 1),
    ((42, [640, 32, 32], [164177.0, 1713017585.0]), 16, 8),
];
const SUBTILES: BiasRow = (19, [128, 128, 128], [542013.0, 4343601315.0]);

#[test]
fn products_with_bias_are_those_of_numpy() {
    for row in CV {
        for split in [Split::UpDown, Split::LeftRight] {
            for setting in settings(1) {
                let what = format!("{row:?} {split:?} {}", setting.config.arch);
                assert_eq!(digest(&result(bias(row, row.1[0], split).run(&setting), &what)), row.2, "{what}");
            }
        }
    }
}

#[test]
fn odd_splits_are_those_of_numpy() {
    for (row, split) in CV_ODD {
        for setting in settings(1) {
            // Odd splits exist only where a Vector pops from global memory.
            let direction = if setting.config.arch == Arch::A5 { Direction::C2vGm } else { Direction::C2V };
            let example = MatmulBias { direction, ..bias(row, 5, split) };
            let what = format!("{row:?} {split:?} {}", setting.config.arch);
            assert_eq!(digest(&result(example.run(&setting), &what)), row.2, "{what}");
        }
    }
}

#[test]
fn products_without_split_are_those_of_numpy() {
    for (row, tile_rows, slots) in CV_NO_SPLIT {
        for setting in settings(slots) {
            let what = format!("{row:?} {}", setting.config.arch);
            assert_eq!(digest(&result(bias(row, tile_rows, Split::None).run(&setting), &what)), row.2, "{what}");
        }
    }
}

#[test]
fn tiles_stored_in_parts_are_those_of_numpy() {
    for setting in settings(2) {
        let direction = if setting.config.arch == Arch::A5 { Direction::C2vGm } else { Direction::C2V };
        for parts in [1, 2, 4] {
            let example = MatmulBias { direction, form: Form::Parts(parts), ..bias(SUBTILES, 32, Split::UpDown) };
            assert_eq!(digest(&result(example.run(&setting), "parts")), SUBTILES.2, "{parts} {}", setting.config.arch);
        }
    }
}

/// [m, k, n], bits, digest; seed 19.
const DEQUANT: [([usize; 3], u32, [f64; 2]); 6] = [
    ([16, 64, 32], 8, [-124.01766080490779, -57418.62525342591]),
    ([16, 128, 32], 8, [-11.933151872828603, -43579.19016518665]),
    ([16, 256, 32], 8, [-252.4904516651295, -154257.49313398788]),
    ([16, 64, 64], 16, [104664.67685800791, 16112817.03911522]),
    ([16, 256, 64], 16, [-38031.68731306959, -39211131.72059268]),
    ([64, 64, 64], 8, [-1223.1959839141928, -3753948.9048365736]),
];

#[test]
fn dequantised_products_are_those_of_numpy() {
    for ([m, k, n], bits, expected) in DEQUANT {
        let mut r = RandomState::new(19);
        let half = 1 << (bits - 1);
        let (a, q) = (r.whole(m, k, -5, 5), r.whole(k, n, -half, half));
        let (scale, stored) = (r.real(1, n, 0.001, 0.01), if bits == 8 { DType::I8 } else { DType::I16 });
        for split in [Split::None, Split::UpDown, Split::LeftRight] {
            let (a, q, scale) = (a.clone(), q.clone(), scale.clone());
            let example = DequantMatmul { a, q, scale, stored, tile_rows: 64, split };
            for setting in settings(2) {
                let what = format!("{m} x {k} x {n}, {bits} bits, {split:?}, {}", setting.config.arch);
                let found = result(example.run(&setting), &what);
                let largest = found.values().iter().fold(0.0_f32, |most, v| most.max(v.abs()));
                close(&found, expected, f64::from(largest) * 1e-6, &what);
            }
        }
    }
}

#[test]
fn round_trips_are_those_of_numpy() {
    let mut r = RandomState::new(19);
    let mut draw = |rows, cols| r.real(rows, cols, -1.0, 1.0);
    let (a, b, d, f) = (draw(128, 64), draw(128, 64), draw(64, 128), draw(128, 128));
    for ahead in [0, 1, 3] {
        let (a, b, d, f) = (a.clone(), b.clone(), d.clone(), f.clone());
        let example = RoundTrip { a, b, d, f, tile_rows: 16, ahead };
        for slots in [1, 2, 4] {
            for setting in settings(slots) {
                let what = format!("{ahead} ahead, {slots} slots, {}", setting.config.arch);
                if ahead > 2 * slots as usize {
                    let fault = example.run(&setting).outcome.unwrap_err().to_string();
                    assert!(fault.contains("deadlock"), "{what}: {fault}");
                    continue;
                }
                close(&result(example.run(&setting), &what), [-198.77734365572078, -3462649.2736000353], 2e-6, &what);
            }
        }
    }
}
