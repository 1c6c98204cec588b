//! Steps of the vector unit: each function of a program is a call of the library.

use super::{Iteration, Slots};
use crate::thread::Thread;
use crate::{
    Compute, Cumulative, Fold, Format, Integer, IntegerBinary, IntegerUnary, SfpuBinary, Ternary, Test, Unary, sfpu,
};
use tilework_abi::eltwise::{Function, Kind, Word, fold, image, integer};
use tilework_rt::reg::stop;

/// Columns and rows of a tile.
const SIDE: u32 = 32;
/// From the seed of one sequence of random numbers to that of the next: half of 2^31 over the
/// golden ratio, so that seeds that are small themselves do not meet.
const NEXT_SEED: u32 = 0x4F1B_BCDD;

const UNARY: u32 = Kind::Unary as u32;
const INTEGER_UNARY: u32 = Kind::IntegerUnary as u32;
const BINARY: u32 = Kind::Binary as u32;
const INTEGER_BINARY: u32 = Kind::IntegerBinary as u32;
const TERNARY: u32 = Kind::Ternary as u32;
const TILE: u32 = Kind::Tile as u32;
const FOLD: u32 = Kind::Fold as u32;
const PLACE: u32 = Kind::Place as u32;

/// What the vector unit is prepared for: the function and its numbers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum For {
    /// Calls that need no registers.
    Plain,
    /// Calls of integers.
    Integers,
    /// This function of one tile.
    Unary(Unary),
    /// This function of three tiles.
    Ternary(Ternary),
    /// Running sums.
    Cumulative,
}

/// What the vector unit is prepared for, if anything, and the seed of the next random numbers.
#[derive(Clone, Copy)]
pub(super) struct Prepared {
    now: Option<For>,
    seed: u32,
}

impl Prepared {
    pub(super) fn new(seed: u32) -> Self {
        Self { now: None, seed }
    }
    /// The vector unit has been prepared for something else.
    pub(super) fn forget(&mut self) {
        self.now = None;
    }

    /// Computes a step with the functions of `IMAGE`.
    #[inline(always)]
    pub(super) fn step<T: Thread, const IMAGE: u32>(
        &mut self,
        k: &mut Compute<T>,
        word: Word,
        numbers: [u32; 2],
        at: Iteration,
        slots: Slots,
    ) {
        let [a, b, c, out] = [word.a(), word.b(), word.c(), word.out()].map(|slot| slots.tile(slot));
        match word.kind() {
            UNARY if IMAGE == image::INTEGERS => self.few(k, word, numbers[0], [a, out]),
            UNARY => {
                let special = if IMAGE == image::SPECIAL { special(word, numbers) } else { None };
                let function = special.unwrap_or_else(|| unary::<IMAGE>(word, numbers));
                self.prepare_unary::<T, IMAGE>(k, function);
                k.math.on_tiles(|wide| {
                    if IMAGE == image::SPECIAL && special.is_some() {
                        function.special_tile(wide, [a, out]);
                    } else if IMAGE == image::FUNCTIONS {
                        function.tile_of_most(wide, [a, out]);
                    } else {
                        function.common_tile(wide, [a, out]);
                    }
                });
            }
            BINARY => {
                self.prepare(k, For::Plain);
                if IMAGE == image::SPECIAL
                    && let Some(op) = special_binary(word)
                {
                    return k.math.on_tiles(|wide| sfpu::special_tiles(op, wide, [a, b, out]));
                }
                let op = of_two(word);
                k.math.on_tiles(|wide| sfpu::tiles_of_most(op, wide, [a, b, out]));
            }
            TERNARY if word.is(Function::Where) => {
                self.prepare(k, For::Plain);
                k.where_tiles(a, [b, c], out);
            }
            TERNARY if IMAGE == image::SPECIAL => {
                let function = ternary(word, numbers[0]);
                self.prepare(k, For::Ternary(function));
                k.ternary_tiles(function, [a, b, c], out);
            }
            INTEGER_UNARY if IMAGE == image::INTEGERS => {
                self.prepare(k, For::Integers);
                let (op, integer) = (integer_unary(word, numbers[0]), integers(word));
                k.math.on_tiles(|wide| sfpu::integer_tile(op, integer, wide, [a, out]));
            }
            INTEGER_BINARY if IMAGE == image::INTEGERS => {
                self.prepare(k, For::Integers);
                k.integer_tiles(integer_binary(word), integers(word), a, b, out);
            }
            FOLD if IMAGE != image::SPECIAL => self.fold(k, word, numbers, a),
            PLACE if IMAGE == image::INTEGERS && word.is(Function::Cumulative) => {
                self.prepare(k, For::Cumulative);
                let op = if numbers[0] == 0 { Cumulative::Sum } else { Cumulative::Product };
                k.cumulative_tile(op, a, at.number == 0);
            }
            PLACE if IMAGE == image::INTEGERS => self.place(k, word, numbers, at, [a, b, c]),
            TILE => self.tile(k, word, numbers, [a, out]),
            _ => stop(),
        }
    }

    /// Prepares the vector unit unless it is.
    fn prepare<T: Thread>(&mut self, k: &mut Compute<T>, wanted: For) {
        if self.now == Some(wanted) {
            return;
        }
        match wanted {
            For::Plain | For::Unary(_) => k.sfpu_binary_init(),
            For::Integers => k.integer_init(),
            For::Ternary(function) => k.ternary_init(function),
            For::Cumulative => k.cumulative_tile_init(),
        }
        self.now = Some(wanted);
    }

    /// Prepares the vector unit for calls that need no registers.
    pub(super) fn plain<T: Thread>(&mut self, k: &mut Compute<T>) {
        self.prepare(k, For::Plain);
    }

    /// The same for a function of one tile.
    fn prepare_unary<T: Thread, const IMAGE: u32>(&mut self, k: &mut Compute<T>, function: Unary) {
        let wanted = For::Unary(function);
        if self.now != Some(wanted) {
            k.unary_init(function);
            if IMAGE == image::FUNCTIONS && matches!(function, Unary::Uniform(..) | Unary::Dropout(..)) {
                k.rand_tile_init(self.seed);
                self.seed = self.seed.wrapping_add(NEXT_SEED);
            }
            self.now = Some(wanted);
        }
    }

    /// Functions of one tile of the image `integers`.
    #[inline(always)]
    fn few<T: Thread>(&mut self, k: &mut Compute<T>, word: Word, x: u32, tiles: [u32; 2]) {
        macro_rules! each {
            ($($name:ident => $function:expr;)*) => {
                $(
                    if word.is(Function::$name) {
                        self.now = None;
                        k.unary_init($function);
                        return k.math.on_tiles(|wide| $function.plain_tile(wide, tiles));
                    }
                )*
            };
        }
        each! {
            Relu => Unary::Relu;
            Scale => Unary::Scale(x);
            Shift => Unary::Shift(x);
            Abs => Unary::Abs;
            Negative => Unary::Negative;
            IsZero => Unary::Test(Test::Zero);
            IsNotZero => Unary::Test(Test::NotZero);
            IsNegative => Unary::Test(Test::Negative);
            Fill => Unary::Fill(x);
        }
        stop();
    }

    /// Steps of whole tiles of all images.
    #[inline(always)]
    fn tile<T: Thread>(&mut self, k: &mut Compute<T>, word: Word, [x, y]: [u32; 2], [a, out]: [u32; 2]) {
        self.prepare(k, For::Plain);
        match word.function() {
            Some(Function::Typecast) => k.typecast_tile(Format::of(x), Format::of(y), a),
            Some(Function::Copy) => k.copy_dest_values(a, out),
            Some(Function::BroadcastRow) => k.math.on_tiles(|wide| sfpu::broadcast_row(wide, a)),
            Some(Function::BroadcastColumn) => k.math.on_tiles(|wide| sfpu::broadcast_column(wide, a)),
            Some(Function::BroadcastScalar) => k.math.on_tiles(|wide| sfpu::broadcast_scalar(wide, a)),
            _ => stop(),
        }
    }

    /// Folds and masks.
    #[inline(always)]
    fn fold<T: Thread>(&mut self, k: &mut Compute<T>, word: Word, [x, y]: [u32; 2], a: u32) {
        let rows = word.is(Function::FoldRows) || word.is(Function::MaskRows);
        if word.is(Function::MaskRows) || word.is(Function::MaskColumns) {
            self.prepare(k, For::Plain);
            return k.math.on_tiles(|wide| sfpu::mask(rows, wide, a, [x, y]));
        }
        self.prepare(k, For::Integers);
        let of = (word.integer() != integer::NUMBERS).then(|| integers(word));
        k.math.on_tiles(|wide| sfpu::fold(rows, folded(x), of, wide, a));
    }

    /// Places.
    #[inline(always)]
    fn place<T: Thread>(
        &mut self,
        k: &mut Compute<T>,
        word: Word,
        [x, _]: [u32; 2],
        at: Iteration,
        [a, b, c]: [u32; 3],
    ) {
        let Some(function) = word.function() else { stop() };
        self.prepare(k, For::Plain);
        match function {
            Function::ColumnNumbers | Function::RowNumbers => {
                k.math.on_tiles(|_| sfpu::numbers(function == Function::RowNumbers, a, x));
            }
            Function::ArgLargest | Function::ArgSmallest => {
                let how = (function == Function::ArgLargest, x != 0);
                k.math.on_tiles(|wide| sfpu::update(how, wide, [a, b, c], at.number * SIDE));
            }
            _ => stop(),
        }
    }
}

fn integers(word: Word) -> Integer {
    match word.integer() {
        integer::UINT32 => Integer::UInt32,
        integer::UINT16 => Integer::UInt16,
        _ => Integer::Int32,
    }
}

fn folded(number: u32) -> Fold {
    match number {
        fold::MAX => Fold::Max,
        fold::MIN => Fold::Min,
        fold::PRODUCT => Fold::Product,
        _ => Fold::Sum,
    }
}

/// A function of one tile that is not special.
#[inline(always)]
fn unary<const IMAGE: u32>(word: Word, [x, y]: [u32; 2]) -> Unary {
    let Some(function) = word.function() else { stop() };
    match function {
        Function::Exp => Unary::Exp,
        Function::Exp2 if IMAGE == image::FUNCTIONS => Unary::Exp2,
        Function::Sigmoid => Unary::Sigmoid,
        Function::Silu if IMAGE == image::FUNCTIONS => Unary::Silu,
        Function::Gelu if IMAGE == image::FUNCTIONS => Unary::Gelu,
        Function::Tanh if IMAGE == image::FUNCTIONS => Unary::Tanh,
        Function::Reciprocal => Unary::Reciprocal,
        Function::Rsqrt if IMAGE == image::FUNCTIONS => Unary::Rsqrt(x),
        Function::Sqrt => Unary::Sqrt,
        Function::Log => Unary::Log,
        Function::Square => Unary::Square,
        Function::Relu => Unary::Relu,
        Function::LeakyRelu => Unary::LeakyRelu(x),
        Function::Clamp => Unary::Clamp(x, y),
        Function::Scale => Unary::Scale(x),
        Function::Shift => Unary::Shift(x),
        Function::Abs => Unary::Abs,
        Function::Negative => Unary::Negative,
        Function::Sign => Unary::Sign,
        Function::Round if IMAGE == image::FUNCTIONS => Unary::Round,
        Function::Floor if IMAGE == image::FUNCTIONS => Unary::Floor,
        Function::Ceil if IMAGE == image::FUNCTIONS => Unary::Ceil,
        Function::Trunc if IMAGE == image::FUNCTIONS => Unary::Trunc,
        Function::IsZero => Unary::Test(Test::Zero),
        Function::IsNotZero => Unary::Test(Test::NotZero),
        Function::IsNegative => Unary::Test(Test::Negative),
        Function::IsPositive => Unary::Test(Test::Positive),
        Function::IsNotPositive => Unary::Test(Test::NotPositive),
        Function::IsNotNegative => Unary::Test(Test::NotNegative),
        Function::IsNan => Unary::Test(Test::Nan),
        Function::IsInfinite => Unary::Test(Test::Infinite),
        Function::IsFinite => Unary::Test(Test::Finite),
        Function::Fill => Unary::Fill(x),
        Function::Uniform if IMAGE == image::FUNCTIONS => Unary::Uniform(x, y),
        Function::Dropout if IMAGE == image::FUNCTIONS => Unary::Dropout(x, y),
        Function::GeluTanh if IMAGE == image::FUNCTIONS => Unary::GeluTanh,
        Function::HardSigmoid if IMAGE == image::FUNCTIONS => Unary::HardSigmoid,
        Function::HardSwish if IMAGE == image::FUNCTIONS => Unary::HardSwish,
        _ => stop(),
    }
}

/// A function of one tile that only `special` has.
#[inline(always)]
fn special(word: Word, [x, _]: [u32; 2]) -> Option<Unary> {
    Some(match word.function()? {
        Function::IntegerPower => Unary::Power(x),
        Function::Log1p => Unary::Log1p,
        Function::Log2 => Unary::Log2,
        Function::Log10 => Unary::Log10,
        Function::Softplus => Unary::Softplus,
        Function::Erf => Unary::Erf,
        Function::Erfc => Unary::Erfc,
        Function::Tan => Unary::Tan,
        Function::Atan => Unary::Atan,
        Function::Asin => Unary::Asin,
        Function::Acos => Unary::Acos,
        Function::Sinh => Unary::Sinh,
        Function::Cosh => Unary::Cosh,
        Function::Cbrt => Unary::Cbrt,
        Function::Sin => Unary::Sin,
        Function::Cos => Unary::Cos,
        Function::Elu => Unary::Elu(x),
        Function::Expm1 => Unary::Expm1,
        _ => return None,
    })
}

/// A function of a tile of integers.
#[inline(always)]
fn integer_unary(word: Word, x: u32) -> IntegerUnary {
    let Some(function) = word.function() else { stop() };
    match function {
        Function::IntegerNegative => IntegerUnary::Negative,
        Function::IntegerAbs => IntegerUnary::Abs,
        Function::Not => IntegerUnary::Not,
        Function::IntegerFill => IntegerUnary::Fill(x),
        _ => stop(),
    }
}

/// The function of two tiles of a step that has one of those in every image.
#[inline(always)]
pub fn of_two(word: Word) -> SfpuBinary {
    let Some(function) = word.function() else { stop() };
    match function {
        Function::Add => SfpuBinary::Add,
        Function::Subtract => SfpuBinary::Subtract,
        Function::Multiply => SfpuBinary::Multiply,
        Function::Divide => SfpuBinary::Divide,
        Function::Min => SfpuBinary::Min,
        Function::Max => SfpuBinary::Max,
        Function::Equal => SfpuBinary::Equal,
        Function::NotEqual => SfpuBinary::NotEqual,
        Function::Less => SfpuBinary::Less,
        Function::AtMost => SfpuBinary::AtMost,
        Function::Greater => SfpuBinary::Greater,
        Function::AtLeast => SfpuBinary::AtLeast,
        Function::LogicalAnd => SfpuBinary::And,
        Function::LogicalOr => SfpuBinary::Or,
        Function::LogicalXor => SfpuBinary::Xor,
        _ => stop(),
    }
}

/// A function of two tiles that only `special` has.
#[inline(always)]
fn special_binary(word: Word) -> Option<SfpuBinary> {
    Some(match word.function()? {
        Function::Power => SfpuBinary::Power,
        Function::Fmod => SfpuBinary::Fmod,
        Function::Remainder => SfpuBinary::Remainder,
        _ => return None,
    })
}

/// A function of two tiles of integers.
#[inline(always)]
fn integer_binary(word: Word) -> IntegerBinary {
    let Some(function) = word.function() else { stop() };
    match function {
        Function::IntegerAdd => IntegerBinary::Add,
        Function::IntegerSubtract => IntegerBinary::Subtract,
        Function::IntegerMultiply => IntegerBinary::Multiply,
        Function::IntegerMin => IntegerBinary::Min,
        Function::IntegerMax => IntegerBinary::Max,
        Function::IntegerEqual => IntegerBinary::Equal,
        Function::IntegerNotEqual => IntegerBinary::NotEqual,
        Function::IntegerLess => IntegerBinary::Less,
        Function::IntegerAtMost => IntegerBinary::AtMost,
        Function::IntegerGreater => IntegerBinary::Greater,
        Function::IntegerAtLeast => IntegerBinary::AtLeast,
        Function::And => IntegerBinary::And,
        Function::Or => IntegerBinary::Or,
        Function::Xor => IntegerBinary::Xor,
        Function::ShiftLeft => IntegerBinary::ShiftLeft,
        Function::ShiftRight => IntegerBinary::ShiftRight,
        Function::ShiftRightSigned => IntegerBinary::ShiftRightSigned,
        Function::IntegerDivide => IntegerBinary::Divide,
        Function::IntegerRemainder => IntegerBinary::Remainder,
        Function::IntegerModulus => IntegerBinary::Modulus,
        _ => stop(),
    }
}

/// A function of three tiles.
#[inline(always)]
fn ternary(word: Word, x: u32) -> Ternary {
    let Some(function) = word.function() else { stop() };
    match function {
        Function::MultiplyAdd => Ternary::MultiplyAdd,
        Function::AddProduct => Ternary::AddProduct(x),
        Function::AddQuotient => Ternary::AddQuotient(x),
        Function::Lerp => Ternary::Lerp,
        _ => stop(),
    }
}
