//! Flags of arithmetic instructions (Intel SDM 1, 3.4.3), worked out when somebody looks at them:
//! most are overwritten before.

pub(super) const CARRY: u64 = 1;
pub(super) const PARITY: u64 = 1 << 2;
pub(super) const ADJUST: u64 = 1 << 4;
pub(super) const ZERO: u64 = 1 << 6;
pub(super) const SIGN: u64 = 1 << 7;
pub(super) const DIRECTION: u64 = 1 << 10;
pub(super) const OVERFLOW: u64 = 1 << 11;
/// Those that arithmetic sets.
pub(super) const ALL: u64 = CARRY | PARITY | ADJUST | ZERO | SIGN | OVERFLOW;

/// What has set the flags last.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Last {
    /// They are in the word.
    Word,
    /// `a + b`
    Add,
    /// `a - b`
    Sub,
    /// A bitwise operation that gave `a`.
    Logic,
}

/// The word of flags, or what it is worked out from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flags {
    word: u64,
    last: Last,
    bytes: u8,
    /// Operands, cut to their width.
    a: u64,
    b: u64,
}

impl Flags {
    pub(super) const fn new(word: u64) -> Self {
        Self { word, last: Last::Word, bytes: 8, a: 0, b: 0 }
    }

    pub(super) fn word(&self) -> u64 {
        let (a, b, bytes) = (self.a, self.b, self.bytes);
        let set = match self.last {
            Last::Word => return self.word,
            Last::Add => of_sum(a, b, bytes),
            Last::Sub => of_difference(a, b, bytes),
            Last::Logic => of_result(a, bytes),
        };
        self.word & !ALL | set
    }

    fn set(&mut self, last: Last, a: u64, b: u64, bytes: u8) {
        (self.last, self.a, self.b, self.bytes) = (last, a, b, bytes);
    }

    /// The flags of `a + b`, both cut to `bytes` bytes.
    #[inline]
    pub(super) fn set_sum(&mut self, a: u64, b: u64, bytes: u8) {
        self.set(Last::Add, a, b, bytes);
    }

    /// The flags of `a - b`.
    #[inline]
    pub(super) fn set_difference(&mut self, a: u64, b: u64, bytes: u8) {
        self.set(Last::Sub, a, b, bytes);
    }

    /// The flags of a bitwise operation, cut to `bytes` bytes. Processors clear the adjust flag,
    /// which is undefined.
    #[inline]
    pub(super) fn set_logic(&mut self, result: u64, bytes: u8) {
        self.set(Last::Logic, result, 0, bytes);
    }

    /// Sets the flags of a mask.
    pub(super) fn set_masked(&mut self, mask: u64, flags: u64) {
        *self = Self::new(self.word() & !mask | flags & mask);
    }

    /// Whether a condition holds, by its number in `jcc`, `setcc` and `cmovcc` (Intel SDM 2,
    /// B.1.4.7).
    #[inline]
    pub(super) fn hold(&self, condition: u8) -> bool {
        let (a, b) = (self.a, self.b);
        let signed = |value: u64| {
            let empty = 64 - 8 * u32::from(self.bytes);
            (value << empty) as i64
        };
        let positive = match (self.last, condition >> 1) {
            (Last::Sub, 1) => a < b,
            (Last::Sub, 2) => a == b,
            (Last::Sub, 3) => a <= b,
            (Last::Sub, 6) => signed(a) < signed(b),
            (Last::Sub, 7) => signed(a) <= signed(b),
            (Last::Logic, 2) => a == 0,
            (Last::Logic, 4) => signed(a) < 0,
            _ => return hold(condition, self.word()),
        };
        positive != (condition & 1 != 0)
    }
}

/// The low `bytes` bytes of a value.
#[inline]
pub(super) const fn cut(value: u64, bytes: u8) -> u64 {
    if bytes >= 8 { value } else { value & ((1 << (8 * bytes)) - 1) }
}

/// The highest bit of a value of `bytes` bytes.
pub(super) const fn top(value: u64, bytes: u8) -> bool {
    value >> (8 * bytes - 1) & 1 != 0
}

fn when(condition: bool, flag: u64) -> u64 {
    if condition { flag } else { 0 }
}

/// Sign, zero and parity of a result.
pub(super) fn of_result(result: u64, bytes: u8) -> u64 {
    when(result == 0, ZERO)
        | when(top(result, bytes), SIGN)
        | when((result as u8).count_ones().is_multiple_of(2), PARITY)
}

fn of_sum(a: u64, b: u64, bytes: u8) -> u64 {
    let result = cut(a.wrapping_add(b), bytes);
    when(result < a, CARRY)
        | when((a ^ b ^ result) & 0x10 != 0, ADJUST)
        | when(top((a ^ result) & (b ^ result), bytes), OVERFLOW)
        | of_result(result, bytes)
}

fn of_difference(a: u64, b: u64, bytes: u8) -> u64 {
    let result = cut(a.wrapping_sub(b), bytes);
    when(a < b, CARRY)
        | when((a ^ b ^ result) & 0x10 != 0, ADJUST)
        | when(top((a ^ b) & (a ^ result), bytes), OVERFLOW)
        | of_result(result, bytes)
}

fn hold(condition: u8, flags: u64) -> bool {
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
