//! Programs of element-wise steps (`tilework_abi::eltwise`), run tile by tile.
//!
//! A kernel has the words of its program among its run-time arguments. The three threads read them
//! in step: unpack loads operands, math computes, pack stores. What prepares the units is done when
//! it differs from what the step before needed.

use crate::program::vector::Prepared;
pub use crate::program::vector::of_two;
use crate::thread::Thread;
use crate::{Binary, Broadcast, Cb, Compute, Fidelity, Format};
use tilework_abi::eltwise::{Function, NUMBERS, OPERANDS, RESULTS, When, Word, arg, image, spread};
use tilework_rt::reg::stop;

mod vector;

/// An operand: its circular buffer, and for how many iterations a page stays.
struct Operand<T> {
    cb: Cb<T>,
    stays: u32,
    left: u32,
    here: bool,
}

impl<T: Thread> Operand<T> {
    /// The operand whose arguments begin with number `first`.
    #[inline(always)]
    fn new(k: &Compute<T>, first: u32) -> Self {
        let cb = k.cb(k.arg(first), Format::of(k.arg(first + 1)));
        Self { cb, stays: k.arg(first + 2), left: k.arg(first + 3), here: false }
    }
    /// Waits for the page.
    #[inline(never)]
    fn wait(&mut self) {
        if !self.here {
            self.cb.wait_front(1);
            self.here = true;
        }
    }
    /// Ends an iteration: the page is given back if it was its last one.
    #[inline(always)]
    fn end(&mut self) {
        self.left -= 1;
        if self.left == 0 {
            self.wait();
            self.cb.pop_front(1);
            (self.left, self.here) = (self.stays, false);
        }
    }
}

/// An iteration of a run: its number, of how many, and how many a row of them has.
#[derive(Clone, Copy)]
pub struct Iteration {
    /// Its number.
    pub number: u32,
    /// Iterations of the run.
    pub of: u32,
    /// Iterations of a row.
    pub columns: u32,
    /// Its place in its row.
    pub column: u32,
}

impl Iteration {
    /// The first one.
    #[inline(always)]
    pub fn first(of: u32, columns: u32) -> Self {
        Self { number: 0, of, columns, column: 0 }
    }
    /// The next one.
    #[inline(always)]
    #[must_use]
    pub fn next(self) -> Self {
        let column = if self.column + 1 == self.columns { 0 } else { self.column + 1 };
        Self { number: self.number + 1, column, ..self }
    }
    /// Whether a step is done in it.
    #[inline(always)]
    fn is_of(self, word: Word) -> bool {
        const FIRST: u32 = When::First as u32;
        const NOT_FIRST: u32 = When::NotFirst as u32;
        const LAST: u32 = When::Last as u32;
        const LAST_COLUMN: u32 = When::LastColumn as u32;
        const LAST_ROW: u32 = When::LastRow as u32;
        match word.when() {
            FIRST => self.number == 0,
            NOT_FIRST => self.number != 0,
            LAST => self.number + 1 == self.of,
            LAST_COLUMN => self.column + 1 == self.columns,
            LAST_ROW => self.number + self.columns >= self.of,
            _ => true,
        }
    }
}

/// Where the slots of a program are: slot 0 is tile `first` of Dst, the others are the tiles from
/// `others` on.
#[derive(Clone, Copy)]
pub struct Slots {
    /// Tile of slot 0.
    pub first: u32,
    /// Tile of slot 1.
    pub others: u32,
}

impl Slots {
    /// Slots from the first tile of Dst on.
    pub const ALL: Self = Self { first: 0, others: 1 };

    #[inline(always)]
    fn tile(self, slot: u32) -> u32 {
        if slot == 0 { self.first } else { self.others + slot - 1 }
    }
}

/// What unpackers and matrix unit are prepared for: the function's number, the formats, and how the
/// second operand is spread.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Loads {
    function: u32,
    formats: [Format; 2],
    spread: u32,
}

/// The circular buffers of a program: its operands on unpack, its results on pack.
pub struct Buffers<T> {
    operands: [Option<Operand<T>>; OPERANDS as usize],
    results: [Option<Cb<T>>; RESULTS as usize],
}

impl<T> Buffers<T> {
    /// None yet.
    #[inline(always)]
    pub const fn new() -> Self {
        Self { operands: [const { None }; OPERANDS as usize], results: [const { None }; RESULTS as usize] }
    }
}

impl<T> Default for Buffers<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// A program, its operands and results. `IMAGE`: which functions there are
/// (`tilework_abi::eltwise::image`).
pub struct Program<'a, T, const IMAGE: u32> {
    /// Arguments: the first operand, the first result, the first step, the end.
    operands_at: u32,
    results_at: u32,
    first: u32,
    end: u32,
    /// Those of unpack, and of pack.
    operands: &'a mut [Option<Operand<T>>],
    results: &'a mut [Option<Cb<T>>],
    loads: Option<Loads>,
    prepared: Prepared,
    out: Format,
}

impl<'a, T: Thread, const IMAGE: u32> Program<'a, T, IMAGE> {
    /// The program whose operands' arguments begin with number `first`: so many operands, results
    /// and words. `seed` starts random numbers.
    #[inline(always)]
    pub fn new(
        k: &Compute<T>,
        [operands, results, words]: [u32; 3],
        first: u32,
        seed: u32,
        buffers: &'a mut Buffers<T>,
    ) -> Self {
        let results_at = first + operands * arg::EACH_OPERAND;
        let steps = results_at + results * arg::EACH_RESULT;
        if T::UNPACK {
            for (i, operand) in (0..operands).zip(&mut buffers.operands) {
                *operand = Some(Operand::new(k, first + i * arg::EACH_OPERAND));
            }
        }
        if T::PACK {
            for (i, result) in (0..results).zip(&mut buffers.results) {
                let at = results_at + i * arg::EACH_RESULT;
                *result = Some(k.cb(k.arg(at), Format::of(k.arg(at + 1))));
            }
        }
        Self {
            operands_at: first,
            results_at,
            first: steps,
            end: steps + words,
            operands: if T::UNPACK { &mut buffers.operands } else { &mut [] },
            results: if T::PACK { &mut buffers.results } else { &mut [] },
            loads: None,
            prepared: Prepared::new(seed),
            out: Format::Bf16,
        }
    }

    #[inline(always)]
    fn format_of_operand(&self, k: &Compute<T>, i: u32) -> Format {
        Format::of(k.arg(self.operands_at + i * arg::EACH_OPERAND + 1))
    }

    /// Configures the units; `wide`: Dst has elements of 32 bits. A kernel's first call, unless it
    /// configures them itself.
    #[inline(always)]
    pub fn configure(&mut self, k: &mut Compute<T>, wide: bool) {
        let has_operand = self.operands_at != self.results_at;
        let input = if has_operand { self.format_of_operand(k, 0) } else { Format::Bf16 };
        self.out = Format::of(k.arg(self.results_at + 1));
        k.hw_configure(input, input, self.out, wide);
    }

    /// The units have been prepared for something else, and the packer for format `out`.
    #[inline(always)]
    pub fn forget(&mut self, out: Format) {
        self.loads = None;
        self.prepared.forget();
        self.out = out;
    }

    /// Loads and computes: the part of unpack and math.
    #[inline(always)]
    pub fn compute(&mut self, k: &mut Compute<T>, at: Iteration, slots: Slots) {
        if T::PACK {
            return;
        }
        let mut next = self.first;
        while next < self.end {
            let (word, numbers) = step_at(k, &mut next);
            if !at.is_of(word) || word.is(Function::Store) {
                continue;
            }
            let loads = [Function::Load, Function::AddTiles, Function::SubtractTiles, Function::MultiplyTiles];
            if loads.into_iter().any(|function| word.is(function)) {
                self.load(k, word, numbers[0], slots);
            } else if IMAGE == image::FUNCTIONS && word.is(Function::Transpose) {
                if T::MATH {
                    self.prepared.plain(k);
                }
                k.transpose_dest(slots.tile(word.a()));
            } else if T::MATH {
                self.prepared.step::<T, IMAGE>(k, word, numbers, at, slots);
            }
        }
        if T::UNPACK {
            self.operands.iter_mut().flatten().for_each(Operand::end);
        }
    }

    /// Stores: the part of pack. `at`: only what this iteration stores.
    #[inline(always)]
    pub fn store(&mut self, k: &mut Compute<T>, at: Option<Iteration>, slots: Slots) {
        if !T::PACK {
            return;
        }
        let mut next = self.first;
        while next < self.end {
            let (word, _) = step_at(k, &mut next);
            if word.is(Function::Store) && at.is_none_or(|at| at.is_of(word)) {
                self.pack(k, word, slots);
            }
        }
    }

    #[inline(always)]
    fn load(&mut self, k: &mut Compute<T>, word: Word, spread: u32, slots: Slots) {
        let two = !word.is(Function::Load);
        let (first, second) = (word.a(), if two { word.b() } else { word.a() });
        let formats = [first, second].map(|i| self.format_of_operand(k, i));
        let loads = Loads { function: word.0 & 0xFF, formats, spread };
        if self.loads != Some(loads) {
            let before = self.loads.replace(loads);
            prepare(k, word, loads, before.is_none_or(|before| before.formats != loads.formats));
        }
        let tile = slots.tile(word.out());
        if T::UNPACK {
            let mut page = |i: u32| {
                let Some(Some(operand)) = self.operands.get_mut(i as usize) else { stop() };
                operand.wait();
                operand.cb.page(0)
            };
            let (a, b) = (page(first), page(second));
            if two { k.unpacker.run(a, b) } else { k.unpacker.copy(a, tile) }
        }
        if T::MATH {
            if two { k.math.binary(tile) } else { k.math.copy(tile) }
        }
    }

    #[inline(always)]
    fn pack(&mut self, k: &mut Compute<T>, word: Word, slots: Slots) {
        let Some(Some(out)) = self.results.get_mut(word.out() as usize) else { stop() };
        if self.out != out.format() {
            k.pack_reconfig_data_format(out.format());
            self.out = out.format();
        }
        out.reserve_back(1);
        k.pack_tile(slots.tile(word.a()), out, 0);
        out.push_back(1);
    }
}

/// The step whose word is argument `at`, and its numbers; `at` becomes that of the next one.
#[inline(always)]
fn step_at<T: Thread>(k: &Compute<T>, at: &mut u32) -> (Word, [u32; NUMBERS as usize]) {
    let word = Word(k.arg(*at));
    let count = word.numbers();
    let numbers = [1, 2].map(|i| if i <= count { k.arg(*at + i) } else { 0 });
    *at += 1 + count;
    (word, numbers)
}

/// Prepares unpackers and matrix unit; `formats`: for other formats.
#[inline(always)]
fn prepare<T: Thread>(k: &mut Compute<T>, word: Word, loads: Loads, formats: bool) {
    let [a, b] = loads.formats;
    if formats {
        k.reconfig_data_format(a, b);
    }
    if word.is(Function::Load) {
        return k.copy_tile_init(a);
    }
    let op = if word.is(Function::AddTiles) {
        Binary::Add
    } else if word.is(Function::SubtractTiles) {
        Binary::Subtract
    } else {
        Binary::Multiply
    };
    let broadcast = match loads.spread {
        spread::COLUMN => Broadcast::Column,
        spread::ROW => Broadcast::Row,
        spread::SCALAR => Broadcast::Scalar,
        _ => Broadcast::None,
    };
    k.binary_init(op, broadcast, Fidelity::HiFi4);
}
