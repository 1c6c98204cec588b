//! Programs of element-wise steps: what a host encodes and compute kernels run tile by tile.
//!
//! A program is a list of words among a kernel's run-time arguments. Each step is a word
//! ([`Step`]) and as many numbers as the row of its function says. It loads a tile of an operand to
//! a slot of Dst, computes a function of slots, or stores a slot to a result. A fused chain of
//! operations runs so with one kernel, which is built once. `docs/kernels.md` describes the kernels
//! that take programs.

/// What a step does, as far as its encoding goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Kind {
    /// Operand `a` to slot `out`.
    Load = 0,
    /// The matrix unit's function of operands `a` and `b` to slot `out`; the number says how `b` is
    /// spread ([`spread`]).
    LoadTwo = 1,
    /// Slot `a` to result `out`.
    Store = 2,
    /// Slot `a` to slot `out`.
    Unary = 3,
    /// Integers of slot `a` to slot `out`.
    IntegerUnary = 4,
    /// Slots `a` and `b` to slot `out`.
    Binary = 5,
    /// Integers of slots `a` and `b` to slot `out`.
    IntegerBinary = 6,
    /// Slots `a`, `b` and `c` to slot `out`.
    Ternary = 7,
    /// Slot `a` in place.
    Tile = 8,
    /// Slot `a` in place: folds and masks.
    Fold = 9,
    /// Slot `a`, or `a`, `b` and `c`: places and running sums. Which of them change, the row says.
    Place = 10,
}

/// Images of the math thread, of which each has room for a part of the functions: a bit each.
pub mod image {
    /// `functions`: functions of numbers, folds, random numbers, transposes.
    pub const FUNCTIONS: u32 = 1 << 0;
    /// `special`: further functions of numbers.
    pub const SPECIAL: u32 = 1 << 1;
    /// `integers`: integers, places and folds.
    pub const INTEGERS: u32 = 1 << 2;
    /// Those with functions of numbers.
    pub const NUMBERS: u32 = FUNCTIONS | SPECIAL;
    /// Those with folds.
    pub const FOLDS: u32 = FUNCTIONS | INTEGERS;
    /// All of them.
    pub const ALL: u32 = NUMBERS | INTEGERS;
}

macro_rules! functions {
    ($($number:literal $name:ident $text:literal $kind:ident $numbers:literal $images:ident $doc:literal;)*) => {
        /// A function of a step. Numbers are the bits of an f32 unless the row says otherwise.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(u8)]
        pub enum Function {
            $(#[doc = $doc] $name = $number),*
        }

        impl Function {
            /// All functions, in the order of their numbers.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// The function with a number.
            #[inline(always)]
            pub const fn of(number: u32) -> Option<Self> {
                Some(match number {
                    $($number => Self::$name,)*
                    _ => return None,
                })
            }
            /// Its name in documents and messages.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$name => $text),*
                }
            }
            /// What it computes.
            pub const fn text(self) -> &'static str {
                match self {
                    $(Self::$name => $doc),*
                }
            }
            /// Its slots.
            #[inline(always)]
            pub const fn kind(self) -> Kind {
                match self {
                    $(Self::$name => Kind::$kind),*
                }
            }
            /// Bits of the images that have it ([`image`]).
            #[inline(always)]
            pub const fn images(self) -> u32 {
                match self {
                    $(Self::$name => image::$images),*
                }
            }
            /// How many numbers follow its step's word.
            #[inline(always)]
            pub const fn numbers(self) -> u32 {
                match self {
                    $(Self::$name => $numbers),*
                }
            }
        }
    };
}

functions! {
    0 Exp "exp" Unary 0 NUMBERS "e^x.";
    1 Exp2 "exp2" Unary 0 FUNCTIONS "2^x.";
    2 Expm1 "expm1" Unary 0 SPECIAL "e^x - 1.";
    3 Sigmoid "sigmoid" Unary 0 NUMBERS "1 / (1 + e^-x).";
    4 Silu "silu" Unary 0 FUNCTIONS "x / (1 + e^-x).";
    5 Gelu "gelu" Unary 0 FUNCTIONS "x times the normal distribution at x.";
    6 GeluTanh "gelu_tanh" Unary 0 FUNCTIONS "The same by a hyperbolic tangent.";
    7 Tanh "tanh" Unary 0 FUNCTIONS "The hyperbolic tangent.";
    8 Elu "elu" Unary 1 SPECIAL "x, or the number times e^x - 1 where x is negative.";
    9 Reciprocal "reciprocal" Unary 0 NUMBERS "1 / x.";
    10 Rsqrt "rsqrt" Unary 1 FUNCTIONS "1 / sqrt(x + the number).";
    11 Sqrt "sqrt" Unary 0 NUMBERS "sqrt(x).";
    12 Log "log" Unary 0 NUMBERS "The natural logarithm.";
    13 IntegerPower "integer_power" Unary 1 SPECIAL "x to the power of the number, an unsigned integer.";
    14 Sin "sin" Unary 0 SPECIAL "The sine.";
    15 Cos "cos" Unary 0 SPECIAL "The cosine.";
    16 Square "square" Unary 0 NUMBERS "x x.";
    17 Relu "relu" Unary 0 ALL "The larger of x and zero.";
    18 LeakyRelu "leaky_relu" Unary 1 NUMBERS "x, or the product with the number where x is negative.";
    19 Clamp "clamp" Unary 2 NUMBERS "x between the numbers.";
    20 Scale "scale" Unary 1 ALL "x times the number.";
    21 Shift "shift" Unary 1 ALL "x plus the number.";
    22 Abs "abs" Unary 0 ALL "The magnitude.";
    23 Negative "neg" Unary 0 ALL "-x.";
    24 Sign "sign" Unary 0 NUMBERS "1, -1, or 0 for zeros.";
    25 Round "round" Unary 0 FUNCTIONS "The nearest integer; the even one of two.";
    26 Floor "floor" Unary 0 FUNCTIONS "The next integer below.";
    27 Ceil "ceil" Unary 0 FUNCTIONS "The next integer above.";
    28 Trunc "trunc" Unary 0 FUNCTIONS "The next integer towards zero.";
    29 IsZero "eqz" Unary 0 ALL "1 where x = 0, else 0.";
    30 IsNotZero "nez" Unary 0 ALL "1 where x /= 0, else 0.";
    31 IsNegative "ltz" Unary 0 ALL "1 where x < 0, else 0.";
    32 IsPositive "gtz" Unary 0 NUMBERS "1 where x > 0, else 0.";
    33 IsNotPositive "lez" Unary 0 NUMBERS "1 where x <= 0, else 0.";
    34 IsNotNegative "gez" Unary 0 NUMBERS "1 where x >= 0, else 0.";
    35 Typecast "typecast" Tile 2 ALL "From one format to another; the numbers are theirs.";
    36 IsNan "isnan" Unary 0 NUMBERS "1 where x is no number, else 0.";
    37 IsInfinite "isinf" Unary 0 NUMBERS "1 where x is infinite, else 0.";
    38 IsFinite "isfinite" Unary 0 NUMBERS "1 where x is neither, else 0.";
    39 HardSigmoid "hardsigmoid" Unary 0 FUNCTIONS "x / 6 + 1/2, kept between 0 and 1.";
    40 HardSwish "hardswish" Unary 0 FUNCTIONS "x times that.";
    41 Fill "fill" Unary 1 ALL "The number.";
    42 Uniform "uniform" Unary 2 FUNCTIONS "A random number from the first number on, in a range as wide as the second.";
    43 Dropout "dropout" Unary 2 FUNCTIONS
        "0 with a probability in units of 2^-31 (the first number, an integer), else x times the second.";
    44 Log1p "log1p" Unary 0 SPECIAL "log(1 + x).";
    45 Log2 "log2" Unary 0 SPECIAL "The logarithm to base 2.";
    46 Log10 "log10" Unary 0 SPECIAL "The logarithm to base 10.";
    47 Softplus "softplus" Unary 0 SPECIAL "log(1 + e^x).";
    48 IntegerNegative "integer_neg" IntegerUnary 0 INTEGERS "-x.";
    49 IntegerAbs "integer_abs" IntegerUnary 0 INTEGERS "The magnitude.";
    50 Not "bitwise_not" IntegerUnary 0 INTEGERS "All bits inverted.";
    51 IntegerFill "integer_fill" IntegerUnary 1 INTEGERS "The number, an integer.";
    52 Erf "erf" Unary 0 SPECIAL "The error function.";
    53 Erfc "erfc" Unary 0 SPECIAL "One less the error function.";
    54 Tan "tan" Unary 0 SPECIAL "The tangent.";
    55 Atan "atan" Unary 0 SPECIAL "The arc tangent.";
    56 Asin "asin" Unary 0 SPECIAL "The arc sine.";
    57 Acos "acos" Unary 0 SPECIAL "The arc cosine.";
    58 Sinh "sinh" Unary 0 SPECIAL "The hyperbolic sine.";
    59 Cosh "cosh" Unary 0 SPECIAL "The hyperbolic cosine.";
    60 Cbrt "cbrt" Unary 0 SPECIAL "The cube root.";
    61 Copy "copy" Tile 0 ALL "Slot `a` to slot `out`, bit by bit.";
    62 BroadcastRow "broadcast_row" Tile 0 ALL "Row 0 for every row.";
    63 BroadcastColumn "broadcast_column" Tile 0 ALL "Column 0 for every column.";
    64 Add "add" Binary 0 ALL "a + b.";
    65 Subtract "sub" Binary 0 ALL "a - b.";
    66 Multiply "mul" Binary 0 ALL "a b.";
    67 Divide "div" Binary 0 NUMBERS "a / b.";
    68 Min "min" Binary 0 ALL "The smaller.";
    69 Max "max" Binary 0 ALL "The larger.";
    70 Equal "eq" Binary 0 ALL "1 where a = b, else 0; a NaN is equal to nothing.";
    71 NotEqual "ne" Binary 0 ALL "1 where a /= b, else 0.";
    72 Less "lt" Binary 0 ALL "1 where a < b, else 0; a NaN is neither more nor less.";
    73 AtMost "le" Binary 0 ALL "1 where a <= b, else 0.";
    74 Greater "gt" Binary 0 ALL "1 where a > b, else 0.";
    75 AtLeast "ge" Binary 0 ALL "1 where a >= b, else 0.";
    76 IntegerAdd "integer_add" IntegerBinary 0 INTEGERS "a + b.";
    77 IntegerSubtract "integer_sub" IntegerBinary 0 INTEGERS "a - b.";
    78 IntegerMultiply "integer_mul" IntegerBinary 0 INTEGERS "a b.";
    79 IntegerMin "integer_min" IntegerBinary 0 INTEGERS "The smaller.";
    80 IntegerMax "integer_max" IntegerBinary 0 INTEGERS "The larger.";
    81 IntegerEqual "integer_eq" IntegerBinary 0 INTEGERS "1 where a = b, else 0.";
    82 IntegerNotEqual "integer_ne" IntegerBinary 0 INTEGERS "1 where a /= b, else 0.";
    83 IntegerLess "integer_lt" IntegerBinary 0 INTEGERS "1 where a < b, else 0.";
    84 IntegerAtMost "integer_le" IntegerBinary 0 INTEGERS "1 where a <= b, else 0.";
    85 IntegerGreater "integer_gt" IntegerBinary 0 INTEGERS "1 where a > b, else 0.";
    86 IntegerAtLeast "integer_ge" IntegerBinary 0 INTEGERS "1 where a >= b, else 0.";
    87 And "bitwise_and" IntegerBinary 0 INTEGERS "Bits that both have.";
    88 Or "bitwise_or" IntegerBinary 0 INTEGERS "Bits that one or both have.";
    89 Xor "bitwise_xor" IntegerBinary 0 INTEGERS "Bits that one of both has.";
    90 ShiftLeft "shift_left" IntegerBinary 0 INTEGERS "a, shifted left by b; 0 where b is negative or more than 31.";
    91 ShiftRight "shift_right" IntegerBinary 0 INTEGERS "a, shifted right by b likewise; zeros come in.";
    92 ShiftRightSigned "shift_right_signed" IntegerBinary 0 INTEGERS "The same, and copies of the sign of an Int32 come in, for all bits where b is beyond.";
    93 IntegerDivide "integer_div" IntegerBinary 0 INTEGERS "a / b without its fraction; where b is zero all bits are ones.";
    94 IntegerRemainder "integer_fmod" IntegerBinary 0 INTEGERS "What a / b leaves, with the sign of a; a where b is zero.";
    95 IntegerModulus "integer_remainder" IntegerBinary 0 INTEGERS "The same with the sign of b.";
    96 Where "where" Ternary 0 ALL "b where a is not zero, elsewhere c; bit by bit.";
    97 MultiplyAdd "mad" Ternary 0 SPECIAL "a b + c.";
    98 AddProduct "addcmul" Ternary 1 SPECIAL "a + b c times the number.";
    99 AddQuotient "addcdiv" Ternary 1 SPECIAL "a + b / c times the number.";
    100 Lerp "lerp" Ternary 0 SPECIAL "a + c (b - a).";
    101 Power "pow" Binary 0 SPECIAL "a to the power of b.";
    102 Fmod "fmod" Binary 0 SPECIAL "What a / b leaves, with the sign of a.";
    103 Remainder "remainder" Binary 0 SPECIAL "The same with the sign of b.";
    104 LogicalAnd "logical_and" Binary 0 NUMBERS "1 where neither is zero, else 0.";
    105 LogicalOr "logical_or" Binary 0 NUMBERS "0 where both are zero, else 1.";
    106 LogicalXor "logical_xor" Binary 0 NUMBERS "1 where one of both is zero, else 0.";
    107 BroadcastScalar "broadcast_scalar" Tile 0 ALL "Element 0 for every element.";
    108 FoldRows "fold_rows" Fold 1 FOLDS "Each row's fold for all of the row; the number is a `Fold`.";
    109 FoldColumns "fold_columns" Fold 1 FOLDS "Each column's fold for all of the column; the number is a `Fold`.";
    110 MaskColumns "mask_columns" Fold 2 FOLDS "The second number, bit by bit, from column number `first number` on.";
    111 MaskRows "mask_rows" Fold 2 FOLDS "The second number, bit by bit, from row number `first number` on.";
    112 ColumnNumbers "column_numbers" Place 1 INTEGERS "The number, an integer, plus the number of the column, as Int32.";
    113 RowNumbers "row_numbers" Place 1 INTEGERS "The number, an integer, plus the number of the row, as Int32.";
    114 ArgLargest "arg_largest" Place 1 INTEGERS
        "Where `c` is larger than `a`, it becomes `a`, and `b` its place: 32 times the iteration plus the column, or \
         the row if the number is 1, as Int32.";
    115 ArgSmallest "arg_smallest" Place 1 INTEGERS "The same where `c` is smaller.";
    116 Cumulative "cumulative" Place 1 INTEGERS
        "Running sums (0) or products (1) down the columns, on from the iteration before in iterations of a run.";
    117 Load "load" Load 0 ALL "Operand `a`.";
    118 AddTiles "add_tiles" LoadTwo 1 ALL "Operand `a` plus operand `b`, with what SrcA and SrcB have.";
    119 SubtractTiles "sub_tiles" LoadTwo 1 ALL "Operand `a` minus operand `b`, likewise.";
    120 MultiplyTiles "mul_tiles" LoadTwo 1 ALL "Operand `a` times operand `b`, likewise; all bits of both.";
    121 Store "store" Store 0 ALL "Slot `a` to result `out`.";
    122 Transpose "transpose" Tile 0 FUNCTIONS "Rows become columns, with all bits of Dst.";
}

/// How the second operand of the matrix unit is spread over the tile of the first.
pub mod spread {
    /// Not at all.
    pub const NONE: u32 = 0;
    /// Column 0 for every column.
    pub const COLUMN: u32 = 1;
    /// Row 0 for every row.
    pub const ROW: u32 = 2;
    /// Element 0 for every element.
    pub const SCALAR: u32 = 3;
}

/// What elements are folded by: the number of [`Function::FoldRows`] and
/// [`Function::FoldColumns`].
pub mod fold {
    /// Their sum, in pairs: of numbers each rounded, of integers wrapping around.
    pub const SUM: u32 = 0;
    /// The largest; of numbers -0 is less than 0.
    pub const MAX: u32 = 1;
    /// The smallest.
    pub const MIN: u32 = 2;
    /// Their product, of numbers only.
    pub const PRODUCT: u32 = 3;
}

/// In which iterations of a run a step is done. A run is what goes into one result.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u8)]
pub enum When {
    /// In all.
    #[default]
    Always = 0,
    /// In the first.
    First = 1,
    /// In all but the first.
    NotFirst = 2,
    /// In the last.
    Last = 3,
    /// In the last of each row of iterations.
    LastColumn = 4,
    /// In all of the last row of iterations.
    LastRow = 5,
}

/// Integers that a step of integers calculates with.
pub mod integer {
    /// 32 bits in two's complement.
    pub const INT32: u32 = 0;
    /// 32 bits without sign.
    pub const UINT32: u32 = 1;
    /// 16 bits without sign.
    pub const UINT16: u32 = 2;
    /// None: the slots have numbers.
    pub const NUMBERS: u32 = 3;
}

/// Slots that a step may name: tiles of Dst, of which there are four with elements of 32 bits and
/// eight with elements of 16 bits.
pub const SLOTS: u32 = 8;
/// Operands and results that a kernel has at most.
pub const OPERANDS: u32 = 8;
/// See [`OPERANDS`].
pub const RESULTS: u32 = 4;
/// Numbers of a step at most.
pub const NUMBERS: u32 = 2;

/// The word of a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step {
    /// What it does.
    pub function: Function,
    /// First slot, or operand.
    pub a: u32,
    /// Second slot, or operand.
    pub b: u32,
    /// Third slot.
    pub c: u32,
    /// Slot or result that it makes.
    pub out: u32,
    /// When it is done.
    pub when: When,
    /// The integers of its slots, as in [`integer`].
    pub integer: u32,
}

impl Step {
    /// A step of every iteration with slots 0 and numbers.
    #[inline(always)]
    pub const fn new(function: Function) -> Self {
        Self { function, a: 0, b: 0, c: 0, out: 0, when: When::Always, integer: integer::NUMBERS }
    }
    /// With other operands or slots.
    #[must_use]
    pub const fn of(self, a: u32, b: u32, c: u32) -> Self {
        Self { a, b, c, ..self }
    }
    /// To another slot or result.
    #[must_use]
    pub const fn to(self, out: u32) -> Self {
        Self { out, ..self }
    }
    /// In other iterations.
    #[must_use]
    pub const fn when(self, when: When) -> Self {
        Self { when, ..self }
    }
    /// With other integers.
    #[must_use]
    pub const fn integers(self, integer: u32) -> Self {
        Self { integer, ..self }
    }
    /// The word: function 0 to 7, `a` 8 to 10, `b` 11 to 13, `c` 14 to 16, `out` 17 to 19, the
    /// function's kind 20 to 23, `when` 24 to 26, `integer` 27 to 28, how many numbers follow 29 to
    /// 30.
    pub const fn encode(self) -> u32 {
        self.function as u32
            | (self.a & 7) << 8
            | (self.b & 7) << 11
            | (self.c & 7) << 14
            | (self.out & 7) << 17
            | (self.function.kind() as u32) << 20
            | (self.when as u32) << 24
            | (self.integer & 3) << 27
            | self.function.numbers() << 29
    }
}

/// A step's word as a kernel reads it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Word(pub u32);

impl Word {
    /// Whether it is a step of this function.
    #[inline(always)]
    pub const fn is(self, function: Function) -> bool {
        self.0 & 0xFF == function as u32
    }
    /// Its function, if there is one with this number.
    #[inline(always)]
    pub const fn function(self) -> Option<Function> {
        Function::of(self.0 & 0xFF)
    }
    /// First slot, or operand.
    #[inline(always)]
    pub const fn a(self) -> u32 {
        self.0 >> 8 & 7
    }
    /// Second slot, or operand.
    #[inline(always)]
    pub const fn b(self) -> u32 {
        self.0 >> 11 & 7
    }
    /// Third slot.
    #[inline(always)]
    pub const fn c(self) -> u32 {
        self.0 >> 14 & 7
    }
    /// Slot or result that it makes.
    #[inline(always)]
    pub const fn out(self) -> u32 {
        self.0 >> 17 & 7
    }
    /// What it does: the number of a [`Kind`].
    #[inline(always)]
    pub const fn kind(self) -> u32 {
        self.0 >> 20 & 0xF
    }
    /// When it is done: the number of a [`When`].
    #[inline(always)]
    pub const fn when(self) -> u32 {
        self.0 >> 24 & 7
    }
    /// The integers of its slots.
    #[inline(always)]
    pub const fn integer(self) -> u32 {
        self.0 >> 27 & 3
    }
    /// How many numbers follow.
    #[inline(always)]
    pub const fn numbers(self) -> u32 {
        self.0 >> 29
    }
}

/// Arguments of the kernel `functions` before those of operands: their places.
pub mod arg {
    /// Number of runs (may be 0).
    pub const RUNS: u32 = 0;
    /// Iterations of a run, at least 1.
    pub const ITERATIONS: u32 = 1;
    /// Iterations of a row of them, at least 1, for [`super::When`].
    pub const COLUMNS: u32 = 2;
    /// [`super::flag`].
    pub const FLAGS: u32 = 3;
    /// Operands, results, and words of the program.
    pub const OPERANDS: u32 = 4;
    /// See [`OPERANDS`].
    pub const RESULTS: u32 = 5;
    /// See [`OPERANDS`].
    pub const WORDS: u32 = 6;
    /// Seed of random numbers.
    pub const SEED: u32 = 7;
    /// The first operand: number of its circular buffer, format, for how many iterations a page
    /// stays (at least 1), and how many of these are left of the first page. Behind the operands
    /// follow the results, each the number of its circular buffer and format, and the program.
    pub const FIRST: u32 = 8;
    /// Arguments of an operand.
    pub const EACH_OPERAND: u32 = 4;
    /// Arguments of a result.
    pub const EACH_RESULT: u32 = 2;
}

/// Flags of the kernels `functions` and `pair`.
pub mod flag {
    /// Dst has elements of 32 bits.
    pub const WIDE: u32 = 1 << 0;
    /// Each iteration stores for itself; else slots stay from iteration to iteration, and what is
    /// stored is stored after the last one.
    pub const EACH: u32 = 1 << 1;
    /// Of `pair` alone: only cores that have a number take part
    /// ([`walk::number`](crate::walk::number)).
    pub const NUMBERED: u32 = 1 << 2;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_numbered_one_after_the_other() {
        for (i, &function) in (0..).zip(Function::ALL) {
            assert_eq!((function as u32, Function::of(i)), (i, Some(function)), "{}", function.name());
            assert!(function.numbers() <= NUMBERS);
            assert!(Function::ALL.iter().filter(|other| other.name() == function.name()).count() == 1);
        }
        assert_eq!(Function::of(Function::ALL.len().try_into().unwrap()), None);
    }

    #[test]
    fn words_are_what_was_encoded() {
        let times = [When::Always, When::First, When::NotFirst, When::Last, When::LastColumn, When::LastRow];
        for &function in Function::ALL {
            for (i, when) in (0..).zip(times) {
                let word = Word(Step::new(function).of(i, 7 - i, 5 - i).to(i + 2).when(when).integers(i & 3).encode());
                assert!(word.is(function) && word.function() == Some(function));
                assert_eq!(word.kind(), function.kind() as u32);
                assert_eq!([word.a(), word.b(), word.c(), word.out()], [i, 7 - i, 5 - i, i + 2]);
                assert_eq!([word.when(), word.integer(), word.numbers()], [i, i & 3, function.numbers()]);
            }
        }
        assert_eq!(Word(0xFF).function(), None);
    }
}
