//! Conversions between integer types that say what happens to a value that does not fit.
//!
//! The `..._of` functions are for values whose bound was checked before or follows from a type: a
//! value that does not fit is a defect of the caller, which fails the evaluation of a constant and
//! panics elsewhere. [`low32`] and [`high32`] take a word apart. Values from outside go through
//! `try_from` instead and become errors with a name.
#![expect(clippy::cast_possible_truncation, reason = "each function checks or masks the value first")]

/// `value` in 8 bits.
#[track_caller]
pub const fn u8_of(value: u32) -> u8 {
    assert!(value <= u8::MAX as u32, "the value needs more than 8 bits");
    value as u8
}

/// `value` in 16 bits.
#[track_caller]
pub const fn u16_of(value: u32) -> u16 {
    assert!(value <= u16::MAX as u32, "the value needs more than 16 bits");
    value as u16
}

/// `value`, a count or an offset in memory, in 32 bits.
#[track_caller]
pub const fn u32_of(value: usize) -> u32 {
    assert!(value as u64 <= u32::MAX as u64, "the value needs more than 32 bits");
    value as u32
}

/// `value`, an address of a 32-bit space, in 32 bits.
#[track_caller]
pub const fn addr32_of(value: u64) -> u32 {
    assert!(value <= u32::MAX as u64, "the address needs more than 32 bits");
    value as u32
}

/// `value` as a length in this machine's memory.
#[track_caller]
pub const fn usize_of(value: u64) -> usize {
    assert!(value <= usize::MAX as u64, "the length needs more bits than this machine has");
    value as usize
}

/// The low half of a word of 64 bits.
pub const fn low32(value: u64) -> u32 {
    (value & u32::MAX as u64) as u32
}

/// The lowest 32 bits of `value`.
pub const fn low32_of_128(value: u128) -> u32 {
    (value & u32::MAX as u128) as u32
}

/// The high half of a word of 64 bits.
pub const fn high32(value: u64) -> u32 {
    (value >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_is_kept() {
        assert_eq!((u8_of(255), u16_of(0xFFFF), u32_of(7)), (255, 0xFFFF, 7));
        assert_eq!((addr32_of(0xFFFF_FFFF), usize_of(9)), (u32::MAX, 9));
        assert_eq!((low32(0x1_0000_0002), high32(0x1_0000_0002)), (2, 1));
    }

    #[test]
    #[should_panic(expected = "more than 16 bits")]
    fn what_does_not_fit_is_a_defect() {
        u16_of(0x1_0000);
    }
}
