//! Functions of the vector unit: element by element on tiles of Dst.
//!
//! Follows BlackholeA0/TensixTile/TensixCoprocessor/VectorUnit.md and the pages of its
//! instructions. An instruction works on 32 elements, so a tile takes 32 rounds of one body: load,
//! compute, store. Constants stay in registers from one tile to the next.

mod binary;
mod exponential;
mod integer;
mod power;
mod random;
mod round;
mod rows;
mod ternary;
mod topk;
mod trig;
mod typecast;
mod words;

pub use binary::SfpuBinary;
pub(crate) use integer::init as integer_init;
pub use integer::{Integer, IntegerBinary, IntegerUnary};
pub(crate) use random::seed;
pub use round::Test;
pub use rows::{Cumulative, Reduction};
pub(crate) use rows::{cumulative, reduce_columns, start_welford, welford, welford_results};
pub use ternary::Ternary;
pub use topk::{Order, Sequences};
pub(crate) use topk::{indices, local_sort, merge, rebuild};
pub(crate) use typecast::typecast;

use crate::addr_mod::{AddrMod, Step};
use crate::push::{block, push, stall, until};
use crate::ttinsn;
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

/// What a body may do besides: load the argument again.
#[derive(Clone, Copy)]
struct Round {
    format: u32,
}

impl Round {
    /// Loads the argument to register `vd`.
    #[inline(always)]
    fn load(self, vd: u32) {
        push(Sfpload::build().vd(vd).mod0(self.format).addr_mod(STAY).word());
    }
}

/// Address modifiers, flags, modes of the lanes and the constant -1, which other software may have
/// changed.
#[inline(always)]
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
fn map(format: u32, body: impl Fn(Round)) {
    let round = Round { format };
    let store = Sfpstore::build().mod0(format).addr_mod(NEXT).word();
    rounds(|| {
        round.load(0);
        body(round);
        round_to(format);
        push(store);
    });
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
            Self::Log => power::init_log(),
            Self::Sin | Self::Cos => trig::init(),
            Self::LeakyRelu(number) | Self::Scale(number) | Self::Shift(number) => kept_constant(C12, number),
            Self::Clamp(low, high) | Self::Uniform(low, high) | Self::Dropout(low, high) => two_constants(low, high),
            Self::HardSigmoid | Self::HardSwish => kept_constant(C12, (1.0f32 / 6.0).to_bits()),
            Self::Round | Self::Floor | Self::Ceil | Self::Trunc => round::init(),
            _ => {}
        }
    }

    /// Computes the function of the tile that Dst's counter points at.
    #[inline(always)]
    pub(crate) fn tile(self, wide: bool) {
        let format = number(wide);
        macro_rules! with {
            ($body:expr) => {
                map(format, |_| $body)
            };
        }
        match self {
            Self::Exp => with!(exponential::any_power(true)),
            Self::Exp2 => with!(exponential::any_power(false)),
            Self::Expm1 => with!(exponential::expm1()),
            Self::Sigmoid => with!(exponential::sigmoid()),
            Self::Silu => map(format, exponential::silu),
            Self::Gelu => map(format, exponential::gelu),
            Self::GeluTanh => map(format, exponential::gelu_tanh),
            Self::Tanh => map(format, exponential::tanh),
            Self::Elu(alpha) => map(format, |round| exponential::elu(round, alpha)),
            Self::Reciprocal => with!(power::reciprocal()),
            Self::Rsqrt(_) => with!(power::rsqrt()),
            Self::Sqrt => with!(power::sqrt()),
            Self::Log => with!(power::log()),
            Self::Power(n) => with!(power::integer_power(n)),
            Self::Sin => with!(trig::sin()),
            Self::Cos => with!(trig::cos()),
            Self::Square => with!(vector! { mul(0, 0, 0); }),
            Self::Relu => with!(vector! { high(1, 0.0); min_max(1, 0); }),
            Self::LeakyRelu(_) => with!(vector! { if_negative(0); mul(0, C12, 0); END_IF; }),
            Self::Clamp(..) => with!(round::clamp()),
            Self::Scale(_) => with!(vector! { mul(0, C12, 0); }),
            Self::Shift(_) => with!(vector! { add(0, C12, 0); }),
            Self::Abs => with!(vector! { magnitude(0, 0); }),
            Self::Negative => with!(vector! { negative(0, 0); }),
            Self::Sign => with!(round::sign()),
            Self::Round => with!(round::round(To::Nearest)),
            Self::Floor => with!(round::round(To::Down)),
            Self::Ceil => with!(round::round(To::Up)),
            Self::Trunc => with!(round::round(To::Zero)),
            Self::Test(test) => with!(round::test(test)),
            Self::HardSigmoid => with!(round::hard_sigmoid()),
            Self::HardSwish => with!({
                vector! { mov(0, 3); }
                round::hard_sigmoid();
                vector! { mul(0, 3, 0); }
            }),
            Self::Fill(number) => with!(constant(0, number)),
            Self::Uniform(..) => with!(random::uniform()),
            Self::Dropout(..) => with!(random::dropout()),
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
pub(crate) fn binary_tiles(op: SfpuBinary, wide: bool, [a, b, out]: [u32; 3]) {
    let format = number(wide);
    let (a, b, out) = (load_tile(0, format, a), load_tile(1, format, b), store_tile(format, out));
    rounds(|| {
        push(a);
        push(b);
        op.body();
        round_to(format);
        push(out);
    });
}

/// Tile `to` becomes tile `from`, bit by bit.
#[inline(always)]
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

/// Tile `tile` of integers becomes a function of itself.
#[inline(always)]
pub(crate) fn integer_tile(op: IntegerUnary, integer: Integer, wide: bool, tile: u32) {
    let element = integer.element(wide);
    rounds_by_group(|group| {
        push(element.load(0, tile, group));
        op.body();
        push(element.store(tile));
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
