//! Functions of the vector unit: element by element on tiles of Dst.
//!
//! Follows BlackholeA0/TensixTile/TensixCoprocessor/VectorUnit.md and the pages of its
//! instructions. An instruction works on 32 elements, so a tile takes 32 rounds of one body: load,
//! compute, store. Constants stay in registers from one tile to the next.

mod binary;
mod exponential;
mod flash;
mod integer;
mod inverse;
mod power;
mod quotient;
mod random;
mod round;
mod rows;
mod special;
mod spread;
mod statistic;
mod ternary;
mod topk;
mod trig;
mod typecast;
mod words;

pub use binary::SfpuBinary;
pub(crate) use flash::{divided, init_weights, masked, weights};
pub(crate) use integer::init as integer_init;
pub use integer::{Integer, IntegerBinary, IntegerUnary};
pub(crate) use random::seed;
pub use round::Test;
pub use rows::{Cumulative, Reduction};
pub(crate) use rows::{cumulative, reduce_columns, start_welford, welford, welford_results};
pub use spread::Fold;
pub(crate) use spread::{
    broadcast_column, broadcast_row, broadcast_scalar, exchange_faces, fold, mask, numbers, update,
};
pub use statistic::Statistic;
pub(crate) use statistic::{init_small_exp, small_exp};
pub use ternary::Ternary;
pub use topk::{Order, Sequences};
pub(crate) use topk::{indices, local_sort, merge, rebuild};
pub(crate) use typecast::typecast;

use crate::addr_mod::{AddrMod, Step};
use crate::push::{block, push, stall, until};
use crate::ttinsn;
use power::Base;
use round::To;
use tilework_abi::tensix::insn::{Sfpload, Sfpstore};
use words::*;

/// A function of one argument. Numbers are given as the bits of an f32. Errors are the largest ones
/// over all bfloat16 arguments in the range, with a Dst of 32 bits; results below 2^-124 may be
/// zero. A Dst of 16 bits gets the result rounded to the nearest bfloat16, ties away from zero.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unary {
    /// e^x, to 2^-19 of the value. Zero below -87.3, infinite from 88.8 on and for NaN.
    Exp,
    /// 2^x, to 2^-22. Zero below -126, infinite from 128 on and for NaN.
    Exp2,
    /// e^x - 1, to 2^-19 also next to zero. -1 below -87, infinite from 88.8 on and for NaN.
    Expm1,
    /// 1 / (1 + e^-x), to 2^-19 from -72 on, to 2^-7 down to -87, and zero below -88. 1 for NaN.
    Sigmoid,
    /// x / (1 + e^-x), as [`Unary::Sigmoid`]. Minus infinity gives NaN.
    Silu,
    /// x times the normal distribution at x: to 6.1e-6, and to 2^-10.8 of the value from -4 on.
    /// Minus infinity gives NaN.
    Gelu,
    /// x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2, to 2^-18 of the value from -6 on, and to
    /// 4.6e-7. Minus infinity gives NaN.
    GeluTanh,
    /// The hyperbolic tangent, to 2^-20 of the value.
    Tanh,
    /// x, or the number times e^x - 1, to 2^-20, where x is negative.
    Elu(u32),
    /// 1 / x, to 2^-23 of the value up to 2^104, to 2^-7 up to 2^126, and zero beyond. Zero gives
    /// infinity.
    Reciprocal,
    /// 1 / sqrt(x + the number), to 2^-22. Zero gives 4.5e19, infinity 5.3e-20, what is
    /// negative NaN.
    Rsqrt(u32),
    /// sqrt(x), to 2^-22. What is negative gives NaN.
    Sqrt,
    /// The natural logarithm, to 2^-20. Zero gives minus infinity, what is negative NaN.
    Log,
    /// The logarithm to base 2, otherwise as [`Unary::Log`]; exact for powers of two.
    Log2,
    /// The logarithm to base 10, otherwise as [`Unary::Log`].
    Log10,
    /// The natural logarithm of 1 + x, to 2^-20 also next to zero. -1 gives minus infinity, what is
    /// below NaN.
    Log1p,
    /// The natural logarithm of 1 + e^x, to 2^-18 and 2e-38.
    Softplus,
    /// The error function, to 2^-20. NaN counts as infinity with its sign.
    Erf,
    /// 1 less the error function, to 2^-16; zero from 9.3 on. NaN likewise.
    Erfc,
    /// The hyperbolic sine, to 2^-17.
    Sinh,
    /// The hyperbolic cosine, to 2^-17.
    Cosh,
    /// The cube root, to 2^-21.
    Cbrt,
    /// The tangent, to 2^-20 of the value up to 10000.
    Tan,
    /// The arc tangent, to 2^-21.
    Atan,
    /// The arc sine, to 2^-20. NaN beyond -1 and 1.
    Asin,
    /// The arc cosine, to 2^-20. NaN beyond -1 and 1.
    Acos,
    /// x to the power of an integer, which is given as such: a product of squares, each rounded.
    Power(u32),
    /// The sine, to 2^-23 of the value up to 10000.
    Sin,
    /// The cosine, to 2^-23 of the value up to 10000.
    Cos,
    /// x x, rounded once.
    Square,
    /// The larger of the argument and zero.
    Relu,
    /// x, or the product with the number where x is negative.
    LeakyRelu(u32),
    /// The larger of x and the first number, then the smaller of that and the second.
    Clamp(u32, u32),
    /// The product with the number, rounded once.
    Scale(u32),
    /// The sum with the number, rounded once.
    Shift(u32),
    /// The magnitude.
    Abs,
    /// -x.
    Negative,
    /// 1, -1, or 0 for zeros.
    Sign,
    /// The nearest integer; the even one of two.
    Round,
    /// The next integer below.
    Floor,
    /// The next integer above.
    Ceil,
    /// The next integer towards zero.
    Trunc,
    /// 1 where the test holds, else 0.
    Test(Test),
    /// x / 6 + 1/2, kept between 0 and 1.
    HardSigmoid,
    /// x times [`Unary::HardSigmoid`].
    HardSwish,
    /// The number, whatever was there.
    Fill(u32),
    /// A random number from the first number on, in a range as wide as the second: 2^23 values,
    /// equally likely. `Compute::rand_tile_init` chooses the sequence, which goes on from tile to
    /// tile.
    Uniform(u32, u32),
    /// 0 with a probability in units of 2^-31, else the product with the number. Random as
    /// [`Unary::Uniform`].
    Dropout(u32, u32),
}

/// Rounds over a tile, and words of Dst's address from one to the next.
const ROUNDS: u32 = 32;
const STEP: u32 = 2;
/// Rows of Dst that a tile takes.
const TILE_ROWS: u32 = 64;
/// Address modifiers: nothing; to the next round.
const STAY: u32 = 7;
const NEXT: u32 = 6;
/// `SFPLOAD`, `SFPSTORE`: bf16, f32, an integer of 32 bits.
const AS_BF16: u32 = 2;
const AS_F32: u32 = 3;
const AS_INT32: u32 = 4;
/// The same: 16 bits without sign; as the upper half of 32 bits (`SFPSTORE` only).
const AS_UINT16: u32 = 6;
const AS_UPPER: u32 = 9;

/// Half a unit in the last place of bf16, as it lies in an f32.
const HALF_OF_BF16: u32 = 1 << 15;

/// How numbers lie in Dst.
#[inline(always)]
const fn number(wide: bool) -> u32 {
    if wide { AS_F32 } else { AS_BF16 }
}

/// From which tile arguments come, counted from the one that Dst's counter points at, and to which
/// tile results go. A body may load its argument again.
#[derive(Clone, Copy)]
struct Round {
    format: u32,
    from: u32,
    to: u32,
}

impl Round {
    /// Loads the argument to register `vd`.
    #[inline(always)]
    fn load(self, vd: u32) {
        push(load_tile(vd, self.format, self.from));
    }
}

/// Address modifiers, flags, modes of the lanes and the constant -1, which other software may have
/// changed.
#[inline(never)]
pub(crate) fn init() {
    AddrMod::default().set(STAY as usize);
    AddrMod { dst: Step::by(STEP), ..AddrMod::default() }.set(NEXT as usize);
    vector! {
        END_IF;
        SET_MINUS_ONE;
        lane_config(0);
    }
}

/// Runs `body` for each round over a tile.
#[inline(always)]
fn rounds(body: impl Fn()) {
    ttinsn!(stall(block::SFPU, until::MATH));
    for _ in 0..ROUNDS {
        body();
    }
    ttinsn!(stall(block::MATH | block::CFG, until::SFPU));
}

/// Loads register 0, runs `body` and stores register 0, for each round over a tile.
#[inline(always)]
fn map(round: Round, body: impl Fn(Round)) {
    let store = store_tile(round.format, round.to);
    rounds(|| {
        round.load(0);
        body(round);
        round_to(round.format);
        push(store);
    });
}

/// As [`map`], for longer bodies: the loop is there once, so that images of many functions are
/// small.
#[inline(never)]
fn map_long(round: Round, body: fn(Round)) {
    map(round, body);
}

/// Tiles `a`, `b` and `out`, counted from the one that Dst's counter points at.
#[derive(Clone, Copy)]
struct Two {
    format: u32,
    tiles: [u32; 3],
}

impl Two {
    /// As [`Two::map`], for longer bodies.
    #[inline(never)]
    fn map_long(self, body: fn()) {
        self.map(body);
    }

    /// Loads registers 0 and 1, runs `body` and stores register 0, for each round over a tile.
    #[inline(always)]
    fn map(self, body: impl Fn()) {
        let Self { format, tiles: [a, b, out] } = self;
        let (a, b, out) = (load_tile(0, format, a), load_tile(1, format, b), store_tile(format, out));
        rounds(|| {
            push(a);
            push(b);
            body();
            round_to(format);
            push(out);
        });
    }
}

/// Rounds register 0 to what a store as bf16 keeps of it: to nearest, ties away from zero. Changes
/// register 1.
#[inline(always)]
fn round_to(format: u32) {
    if format == AS_BF16 {
        vector! {
            integer(1, HALF_OF_BF16);
            add_integer(1, 0);
        }
    }
}

/// Sets registers 12 and 13.
#[inline(always)]
fn two_constants(first: u32, second: u32) {
    kept_constant(C12, first);
    kept_constant(C13, second);
}

impl Unary {
    /// Prepares the function.
    #[inline(always)]
    pub(crate) fn init(self) {
        init();
        match self {
            Self::Exp | Self::Expm1 | Self::Elu(_) => exponential::init(exponential::BASE_E),
            Self::Exp2 => exponential::init(1.0),
            Self::Sigmoid | Self::Silu | Self::Gelu | Self::GeluTanh => exponential::init(-exponential::BASE_E),
            Self::Tanh => exponential::init(-2.0 * exponential::BASE_E),
            Self::Rsqrt(added) => power::init_root(added),
            Self::Sqrt => power::init_root(0),
            Self::Log | Self::Log1p | Self::Log2 | Self::Log10 => power::init_log(),
            Self::Softplus | Self::Erf | Self::Erfc => exponential::init(-exponential::BASE_E),
            Self::Sinh | Self::Cosh => exponential::init(exponential::BASE_E),
            Self::Asin | Self::Acos => power::init_root(0),
            Self::Cbrt => special::init_cbrt(),
            Self::Tan => trig::init_tan(),
            Self::Sin | Self::Cos => trig::init(),
            Self::LeakyRelu(number) | Self::Scale(number) | Self::Shift(number) => kept_constant(C12, number),
            Self::Clamp(low, high) | Self::Uniform(low, high) | Self::Dropout(low, high) => two_constants(low, high),
            Self::HardSigmoid | Self::HardSwish => kept_constant(C12, (1.0f32 / 6.0).to_bits()),
            Self::Round | Self::Floor | Self::Ceil | Self::Trunc => round::init(),
            _ => {}
        }
    }

    /// Makes tile `to` of tile `from`, both counted from the one that Dst's counter points at.
    #[inline(always)]
    pub(crate) fn tile(self, wide: bool, tiles: [u32; 2]) {
        if self.is_special() { self.special_tile(wide, tiles) } else { self.tile_of_most(wide, tiles) }
    }

    /// Whether it is a function of [`Unary::special_tile`].
    #[inline(always)]
    pub(crate) const fn is_special(self) -> bool {
        matches!(
            self,
            Self::Log1p
                | Self::Log2
                | Self::Log10
                | Self::Softplus
                | Self::Erf
                | Self::Erfc
                | Self::Tan
                | Self::Atan
                | Self::Asin
                | Self::Acos
                | Self::Sinh
                | Self::Cosh
                | Self::Cbrt
                | Self::Power(_)
                | Self::Sin
                | Self::Cos
                | Self::Elu(_)
                | Self::Expm1
        )
    }

    /// [`Unary::tile`] for functions that are not special.
    #[inline(always)]
    pub(crate) fn tile_of_most(self, wide: bool, tiles: [u32; 2]) {
        if self.is_further() { self.further_tile(wide, tiles) } else { self.common_tile(wide, tiles) }
    }

    /// [`Unary::tile`] for what images of all kinds have.
    #[inline(always)]
    pub(crate) fn common_tile(self, wide: bool, tiles: [u32; 2]) {
        if matches!(self, Self::Exp | Self::Sigmoid | Self::Reciprocal | Self::Sqrt | Self::Log) {
            self.curve_tile(wide, tiles);
        } else {
            self.plain_tile(wide, tiles);
        }
    }

    /// Whether it is a function of [`Unary::further_tile`].
    #[inline(always)]
    const fn is_further(self) -> bool {
        matches!(
            self,
            Self::Exp2
                | Self::Silu
                | Self::Gelu
                | Self::Tanh
                | Self::Rsqrt(_)
                | Self::Uniform(..)
                | Self::Dropout(..)
                | Self::Round
                | Self::Floor
                | Self::Ceil
                | Self::Trunc
                | Self::GeluTanh
                | Self::HardSigmoid
                | Self::HardSwish
        )
    }

    /// [`Unary::tile`] for sums, products, signs and tests.
    #[inline(always)]
    pub(crate) fn plain_tile(self, wide: bool, [from, to]: [u32; 2]) {
        let round = Round { format: number(wide), from, to };
        macro_rules! with {
            ($body:expr) => {
                map_long(round, |_| $body)
            };
        }
        macro_rules! short {
            ($body:expr) => {
                map(round, |_| $body)
            };
        }
        match self {
            Self::Square => short!(vector! { mul(0, 0, 0); }),
            Self::Relu => short!(vector! { high(1, 0.0); min_max(1, 0); }),
            Self::LeakyRelu(_) => short!(vector! { if_negative(0); mul(0, C12, 0); END_IF; }),
            Self::Clamp(..) => with!(round::clamp()),
            Self::Scale(_) => short!(vector! { mul(0, C12, 0); }),
            Self::Shift(_) => short!(vector! { add(0, C12, 0); }),
            Self::Abs => short!(vector! { magnitude(0, 0); }),
            Self::Negative => short!(vector! { negative(0, 0); }),
            Self::Sign => with!(round::sign()),
            Self::Test(test) => short!(round::test(test)),
            Self::Fill(number) => short!(constant(0, number)),
            _ => {}
        }
    }

    /// [`Unary::tile`] for exponentials, roots and logarithms.
    #[inline(always)]
    fn curve_tile(self, wide: bool, [from, to]: [u32; 2]) {
        let round = Round { format: number(wide), from, to };
        macro_rules! with {
            ($body:expr) => {
                map_long(round, |_| $body)
            };
        }
        match self {
            Self::Exp => with!(exponential::any_power(true)),
            Self::Sigmoid => with!(exponential::sigmoid()),
            Self::Reciprocal => with!(power::reciprocal()),
            Self::Sqrt => with!(power::sqrt()),
            Self::Log => with!(power::log(Base::E, None)),
            _ => {}
        }
    }

    /// [`Unary::tile`] for further activations, rounding and random numbers.
    #[inline(always)]
    fn further_tile(self, wide: bool, [from, to]: [u32; 2]) {
        let round = Round { format: number(wide), from, to };
        macro_rules! with {
            ($body:expr) => {
                map_long(round, |_| $body)
            };
        }
        match self {
            Self::Round => with!(round::round(To::Nearest)),
            Self::Floor => with!(round::round(To::Down)),
            Self::Ceil => with!(round::round(To::Up)),
            Self::Trunc => with!(round::round(To::Zero)),
            Self::Exp2 => with!(exponential::any_power(false)),
            Self::Silu => map_long(round, exponential::silu),
            Self::Gelu => map_long(round, exponential::gelu),
            Self::Tanh => map_long(round, exponential::tanh),
            Self::Rsqrt(_) => with!(power::rsqrt()),
            Self::Uniform(..) => with!(random::uniform()),
            Self::Dropout(..) => with!(random::dropout()),
            Self::GeluTanh => map_long(round, exponential::gelu_tanh),
            Self::HardSigmoid => with!(round::hard_sigmoid()),
            Self::HardSwish => with!({
                vector! { mov(0, 3); }
                round::hard_sigmoid();
                vector! { mul(0, 3, 0); }
            }),
            _ => {}
        }
    }

    /// [`Unary::tile`] for those that images of most functions have no room for.
    #[inline(always)]
    pub(crate) fn special_tile(self, wide: bool, [from, to]: [u32; 2]) {
        let round = Round { format: number(wide), from, to };
        macro_rules! with {
            ($body:expr) => {
                map_long(round, |_| $body)
            };
        }
        match self {
            Self::Log2 => with!(power::log(Base::Two, None)),
            Self::Log10 => with!(power::log(Base::Ten, None)),
            Self::Log1p => map_long(round, |round| power::log(Base::E, Some(round))),
            Self::Power(n) => map(round, |_| power::integer_power(n)),
            Self::Softplus => map_long(round, special::softplus),
            Self::Erf => map_long(round, |round| special::erf(round, false)),
            Self::Erfc => map_long(round, |round| special::erf(round, true)),
            Self::Sinh => map_long(round, special::sinh),
            Self::Cosh => with!(special::cosh()),
            Self::Cbrt => map_long(round, special::cbrt),
            Self::Tan => with!(trig::tan()),
            Self::Atan => map_long(round, inverse::atan),
            Self::Asin => map_long(round, inverse::asin),
            Self::Acos => map_long(round, inverse::acos),
            Self::Expm1 => with!(exponential::expm1()),
            Self::Elu(alpha) => map(round, |round| exponential::elu(round, alpha)),
            Self::Sin => with!(trig::sin()),
            Self::Cos => with!(trig::cos()),
            _ => {}
        }
    }
}

/// The word that loads register `vd` from tile `tile`, counted from the one that Dst's counter
/// points at.
#[inline(always)]
const fn load_tile(vd: u32, format: u32, tile: u32) -> u32 {
    Sfpload::build().vd(vd).mod0(format).addr_mod(STAY).imm10(tile * TILE_ROWS).word()
}
/// The word that stores register 0 to tile `tile`, and goes to the next round.
#[inline(always)]
const fn store_tile(format: u32, tile: u32) -> u32 {
    Sfpstore::build().mod0(format).addr_mod(NEXT).imm10(tile * TILE_ROWS).word()
}

/// How elements of tiles lie in Dst. Tiles are counted from Dst's first one that math may use.
///
/// Integers of 16 bits are the upper halves of a wide Dst's elements. They are read through the
/// view of Dst as rows of 16 bits, in which eight rows of upper halves and eight of lower halves
/// follow one another (Dst.md). That moves from SrcA and the packer have them there is not
/// documented; the field's kernels rely on it.
#[derive(Clone, Copy)]
struct Element {
    load: u32,
    store: u32,
    upper: bool,
}

/// Rows that follow one another in both views of Dst.
const GROUP: u32 = 8;
const GROUPS: u32 = TILE_ROWS / GROUP;

impl Element {
    const INT32: Self = Self { load: AS_INT32, store: AS_INT32, upper: false };

    #[inline(always)]
    const fn number(wide: bool) -> Self {
        let format = number(wide);
        Self { load: format, store: format, upper: false }
    }
    #[inline(always)]
    const fn uint16(wide: bool) -> Self {
        Self { load: AS_UINT16, store: if wide { AS_UPPER } else { AS_UINT16 }, upper: wide }
    }
    /// The word that loads register `vd` from tile `tile`, in group `group` of its rows.
    #[inline(always)]
    const fn load(self, vd: u32, tile: u32, group: u32) -> u32 {
        let row = if self.upper { 2 * tile * TILE_ROWS + group * GROUP } else { tile * TILE_ROWS };
        // Dst's counter is at the row within the tile.
        Sfpload::build().vd(vd).mod0(self.load).addr_mod(STAY).imm10(row).word()
    }
    /// Where row `row` of tile `tile` is loaded from.
    #[inline(always)]
    const fn row(self, tile: u32, row: u32) -> u32 {
        if self.upper { 2 * tile * TILE_ROWS + row + row / GROUP * GROUP } else { tile * TILE_ROWS + row }
    }
    /// The word that stores register 0 to tile `tile`, and goes to the next round.
    #[inline(always)]
    const fn store(self, tile: u32) -> u32 {
        store_tile(self.store, tile)
    }
}

/// Runs `body` for each round over a tile, with the group of rows.
#[inline(always)]
fn rounds_by_group(body: impl Fn(u32)) {
    ttinsn!(stall(block::SFPU, until::MATH));
    for group in 0..GROUPS {
        for _ in 0..ROUNDS / GROUPS {
            body(group);
        }
    }
    ttinsn!(stall(block::MATH | block::CFG, until::SFPU));
}

/// Tile `out` becomes the function of tiles `a` and `b`, all counted from Dst's counter.
#[inline(always)]
pub(crate) fn binary_tiles(op: SfpuBinary, wide: bool, tiles: [u32; 3]) {
    if op.is_special() { special_tiles(op, wide, tiles) } else { tiles_of_most(op, wide, tiles) }
}

/// [`binary_tiles`] for functions that are not special.
#[inline(always)]
pub(crate) fn tiles_of_most(op: SfpuBinary, wide: bool, tiles: [u32; 3]) {
    op.of(Two { format: number(wide), tiles });
}

/// [`binary_tiles`] for those that are.
#[inline(always)]
pub(crate) fn special_tiles(op: SfpuBinary, wide: bool, tiles: [u32; 3]) {
    op.special(Two { format: number(wide), tiles });
}

/// Tile `to` becomes tile `from`, bit by bit.
pub(crate) fn copy_tile(wide: bool, [from, to]: [u32; 2]) {
    let element = if wide { Element::INT32 } else { Element::uint16(false) };
    rounds(|| {
        push(element.load(0, from, 0));
        push(element.store(to));
    });
}

/// Tile `out` becomes the function of integer tiles `a` and `b`.
#[inline(always)]
pub(crate) fn integer_tiles(op: IntegerBinary, integer: Integer, wide: bool, [a, b, out]: [u32; 3]) {
    let element = integer.element(wide);
    rounds_by_group(|group| {
        push(element.load(0, a, group));
        push(element.load(1, b, group));
        op.body(integer);
        push(element.store(out));
    });
}

/// Tile `to` of integers becomes a function of tile `from`.
#[inline(always)]
pub(crate) fn integer_tile(op: IntegerUnary, integer: Integer, wide: bool, [from, to]: [u32; 2]) {
    let element = integer.element(wide);
    rounds_by_group(|group| {
        push(element.load(0, from, group));
        op.body();
        push(element.store(to));
    });
}

/// Tile `out` becomes the function of tiles `a`, `b` and `c`, all counted from Dst's counter.
#[inline(always)]
pub(crate) fn ternary_tiles(op: Ternary, wide: bool, [a, b, c, out]: [u32; 4]) {
    let format = number(wide);
    let words = [load_tile(0, format, a), load_tile(1, format, b), load_tile(2, format, c)];
    let out = store_tile(format, out);
    rounds(|| {
        words.into_iter().for_each(push);
        op.body();
        round_to(format);
        push(out);
    });
}

/// Tile `out` becomes tile `a` where `condition` is not zero, else `b`; all counted from Dst's
/// counter. Bits are moved as they are, in a wide Dst of integers as well.
#[inline(always)]
pub(crate) fn where_tiles(wide: bool, [condition, a, b, out]: [u32; 4]) {
    // Loads and stores of integers change no bit.
    let format = if wide { AS_INT32 } else { AS_BF16 };
    let words = [load_tile(0, format, condition), load_tile(1, format, a), load_tile(2, format, b)];
    let out = store_tile(format, out);
    rounds(|| {
        words.into_iter().for_each(push);
        binary::select();
        push(out);
    });
}
