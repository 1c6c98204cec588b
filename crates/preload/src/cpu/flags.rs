//! Flags of arithmetic instructions (Intel SDM 1, 3.4.3).

pub(super) const CARRY: u64 = 1;
pub(super) const PARITY: u64 = 1 << 2;
pub(super) const ADJUST: u64 = 1 << 4;
pub(super) const ZERO: u64 = 1 << 6;
pub(super) const SIGN: u64 = 1 << 7;
pub(super) const DIRECTION: u64 = 1 << 10;
pub(super) const OVERFLOW: u64 = 1 << 11;
/// Those that arithmetic sets.
pub(super) const ALL: u64 = CARRY | PARITY | ADJUST | ZERO | SIGN | OVERFLOW;

/// The low `bytes` bytes of a value.
pub(super) const fn cut(value: u64, bytes: usize) -> u64 {
    if bytes >= 8 { value } else { value & ((1 << (8 * bytes)) - 1) }
}

/// The highest bit of a value of `bytes` bytes.
pub(super) const fn top(value: u64, bytes: usize) -> bool {
    value >> (8 * bytes - 1) & 1 != 0
}

fn when(condition: bool, flag: u64) -> u64 {
    if condition { flag } else { 0 }
}

/// Sign, zero and parity of a result.
pub(super) fn of_result(result: u64, bytes: usize) -> u64 {
    let result = cut(result, bytes);
    when(result == 0, ZERO)
        | when(top(result, bytes), SIGN)
        | when((result as u8).count_ones().is_multiple_of(2), PARITY)
}

/// Sum and flags of an addition, with a carry in.
pub(super) fn add(a: u64, b: u64, carry: bool, bytes: usize) -> (u64, u64) {
    let (a, b) = (cut(a, bytes), cut(b, bytes));
    let wide = u128::from(a) + u128::from(b) + u128::from(carry);
    let result = cut(wide as u64, bytes);
    let flags = when(wide >> (8 * bytes) != 0, CARRY)
        | when((a ^ b ^ result) & 0x10 != 0, ADJUST)
        | when(top((a ^ result) & (b ^ result), bytes), OVERFLOW);
    (result, flags | of_result(result, bytes))
}

/// Difference and flags of a subtraction, with a borrow in.
pub(super) fn sub(a: u64, b: u64, borrow: bool, bytes: usize) -> (u64, u64) {
    let (a, b) = (cut(a, bytes), cut(b, bytes));
    let result = cut(a.wrapping_sub(b).wrapping_sub(u64::from(borrow)), bytes);
    let flags = when(u128::from(a) < u128::from(b) + u128::from(borrow), CARRY)
        | when((a ^ b ^ result) & 0x10 != 0, ADJUST)
        | when(top((a ^ b) & (a ^ result), bytes), OVERFLOW);
    (result, flags | of_result(result, bytes))
}

/// Low half of the product of signed numbers, and the two flags that say whether it is all of it.
pub(super) fn multiply(a: u64, b: u64, bytes: usize) -> (u64, u64) {
    let empty = 64 - 8 * bytes as u32;
    let signed = |value: u64| i128::from((value << empty) as i64 >> empty);
    let wide = signed(a) * signed(b);
    let result = cut(wide as u64, bytes);
    (result, when(wide != signed(result), CARRY | OVERFLOW))
}

/// Whether a condition holds, by its number in `jcc`, `setcc` and `cmovcc` (Intel SDM 2, B.1.4.7).
pub(super) fn holds(condition: u8, flags: u64) -> bool {
    let has = |flag| flags & flag != 0;
    let less = has(SIGN) != has(OVERFLOW);
    let positive = match condition >> 1 {
        0 => has(OVERFLOW),
        1 => has(CARRY),
        2 => has(ZERO),
        3 => has(CARRY) || has(ZERO),
        4 => has(SIGN),
        5 => has(PARITY),
        6 => less,
        _ => less || has(ZERO),
    };
    positive != (condition & 1 != 0)
}
