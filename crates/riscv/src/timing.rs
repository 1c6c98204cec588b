//! The timing model of the core, in one place. Sources: `BabyRISCV/README.md` and
//! `BabyRISCV/MemoryOrdering.md` of `tenstorrent/tt-isa-documentation`, folder
//! `BlackholeA0/TensixTile`. Times are cycles at which instructions enter EX1.
//!
//! Modelled: one instruction per cycle; waiting for operands; load latency (from the bus);
//! multiply, divide, mispredicted branches; `fence`, atomics and CSR instructions waiting for
//! earlier instructions; a full store queue (from the bus).
//!
//! Not modelled, and so a program may run a little faster here than on the chip: instruction
//! cache misses, the capacity of the eight-entry retire queue, one retirement per cycle. A
//! little slower: fusing up to four adjacent `.ttinsn` into one cycle (the coprocessor takes one
//! a cycle in any case). The branch predictor of the chip is not documented; the static one
//! below stands in for it.
//!
//! If two instructions in flight write one register, the consumer waits for the slower one. README,
//! "Retire Unit", says that forwarding may be impossible from either in that case.

/// EX1 occupancy of most instructions. README, "EX1".
pub const ISSUE: u64 = 1;

/// Bubble after a mispredicted branch, on top of [`ISSUE`]. README, "EX1": "four cycle
/// pipeline bubble".
pub const MISPREDICT: u64 = 4;

/// Latency of the multiply result: one cycle in EX1, one in EX2. README, "EX2".
pub const MUL_LATENCY: u64 = 2;

/// From a CSR instruction's entry into EX1 to the next instruction's: EX1, then retirement. README,
/// "EX1": an instruction enters only when all previous CSR instructions have retired. With
/// `cfg0.DisCsrSync` it is [`ISSUE`].
pub const CSR: u64 = 2;

/// From a fence's entry into the Load/Store Unit to the next instruction's entry into EX1: EX1,
/// Load/Store Unit, and retirement with it. The wait for loads and for the store queue comes
/// before. MemoryOrdering, "Fences".
pub const FENCE: u64 = 2;

/// EX1 occupancy of a division by zero or one, and of the signed overflow. README, "EX1".
pub const DIV_SHORT: u64 = 2;

/// The least EX1 occupancy of any other division. README, "EX1".
pub const DIV_MIN: u64 = 6;

/// EX1 occupancy of `divu` and `remu`.
///
/// README gives two cycles when the divisor is zero or one and otherwise six to 33 "dependent upon
/// the magnitude of the dividend", without the formula. Assumed here: one cycle per significant bit
/// of the dividend plus one, at least six; that reaches exactly 33 for a full 32-bit dividend.
#[inline]
pub const fn divide_unsigned(dividend: u32, divisor: u32) -> u64 {
    if divisor <= 1 {
        return DIV_SHORT;
    }
    let bits = (u32::BITS - dividend.leading_zeros()) as u64;
    if bits + 1 < DIV_MIN { DIV_MIN } else { bits + 1 }
}

/// EX1 occupancy of `div` and `rem`: as [`divide_unsigned`] with the dividend's absolute value; a
/// division of -2<sup>31</sup> by -1 takes two cycles.
#[inline]
pub const fn divide_signed(dividend: i32, divisor: i32) -> u64 {
    if divisor == 0 || divisor == 1 || (divisor == -1 && dividend == i32::MIN) {
        return DIV_SHORT;
    }
    divide_unsigned(dividend.unsigned_abs(), 2)
}

/// The assumed static predictor for a conditional branch: backward taken, forward not taken.
///
/// `jal` is always predicted; `jalr` is predicted when it jumps through `ra` without linking (a
/// return) and mispredicted otherwise. With `cfg0.DisBp` the frontend runs straight on, so that
/// every taken transfer costs the bubble.
#[inline]
pub const fn predicts_taken(offset: i32) -> bool {
    offset < 0
}
