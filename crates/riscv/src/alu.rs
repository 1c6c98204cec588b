//! Results of the instructions that are more than one Rust operator: M and parts of Zbb, after the
//! ratified RISC-V unprivileged specification (chapters "M" and "B").

/// `mulh`: the high word of signed times signed.
#[inline(never)]
pub const fn mulh(a: u32, b: u32) -> u32 {
    ((a.cast_signed() as i64 * b.cast_signed() as i64) >> 32) as u32
}

/// `mulhsu`: the high word of signed times unsigned.
#[inline(never)]
pub const fn mulhsu(a: u32, b: u32) -> u32 {
    ((a.cast_signed() as i64 * b as i64) >> 32) as u32
}

/// `mulhu`: the high word of unsigned times unsigned.
#[inline(never)]
pub const fn mulhu(a: u32, b: u32) -> u32 {
    ((a as u64 * b as u64) >> 32) as u32
}

/// `div`: by zero gives -1; the overflow gives the dividend.
#[inline]
pub const fn div(a: u32, b: u32) -> u32 {
    if b == 0 { u32::MAX } else { a.cast_signed().wrapping_div(b.cast_signed()).cast_unsigned() }
}

/// `divu`: by zero gives all ones.
#[inline]
pub const fn divu(a: u32, b: u32) -> u32 {
    match a.checked_div(b) {
        Some(quotient) => quotient,
        None => u32::MAX,
    }
}

/// `rem`: by zero gives the dividend; the overflow gives zero.
#[inline]
pub const fn rem(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { a.cast_signed().wrapping_rem(b.cast_signed()).cast_unsigned() }
}

/// `remu`: by zero gives the dividend.
#[inline]
pub const fn remu(a: u32, b: u32) -> u32 {
    match a.checked_rem(b) {
        Some(remainder) => remainder,
        None => a,
    }
}

/// `orc.b`: each byte becomes 0xff unless it is zero.
#[inline]
pub const fn orc_b(a: u32) -> u32 {
    // The top bit of each byte of `any` is set when the byte is not zero.
    let low = a & 0x7f7f_7f7f;
    let any = ((low + 0x7f7f_7f7f) | a) & 0x8080_8080;
    (any >> 7) * 0xff
}
