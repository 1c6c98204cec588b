//! Functions of three tiles of Dst.

use super::words::*;

/// A function of three tiles of Dst.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ternary {
    /// a b + c, rounded once.
    MultiplyAdd,
    /// a + b c, times the number (the bits of an f32), each product and the sum rounded once.
    AddProduct(u32),
    /// a + b / c times the number. 1 / c as `Unary::Reciprocal` has it.
    AddQuotient(u32),
    /// a + c (b - a): the difference is rounded, then the sum with the product once.
    Lerp,
}

impl Ternary {
    /// Prepares the function.
    #[inline(always)]
    pub(crate) fn init(self) {
        super::init();
        if let Self::AddProduct(number) | Self::AddQuotient(number) = self {
            kept_constant(C12, number);
        }
    }

    /// Register 0 becomes the function of registers 0 to 2.
    #[inline(always)]
    pub(super) fn body(self) {
        match self {
            Self::MultiplyAdd => vector! { mad(0, 1, 2, 0); },
            Self::AddProduct(_) => vector! {
                mul(1, C12, 1);
                mad(1, 2, 0, 0);
            },
            Self::AddQuotient(_) => {
                vector! {
                    mul(1, C12, 5);
                    mov(0, 4);
                    mov(2, 0);
                }
                super::power::reciprocal();
                vector! { mad(5, 0, 4, 0); }
            }
            Self::Lerp => vector! {
                sub(1, 0, 1);
                mad(1, 2, 0, 0);
            },
        }
    }
}
