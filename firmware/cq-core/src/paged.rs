//! Where the pages of an interleaved buffer lie.
//!
//! Page `p` is in bank `p mod n` at `base + p / n * page_size`: round robin over the banks (seed
//! 001 section 4.2, WRITE_PAGED). The host sends page sizes that are multiples of the bank's
//! alignment.

/// Walks the pages of an interleaved buffer in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageWalk {
    bank: u32,
    banks: u32,
    addr: u32,
    page_size: u32,
}

impl PageWalk {
    /// The walk from page `first` of a buffer at `base` of each of `banks` banks. `banks` is not
    /// zero.
    #[inline]
    pub fn new(first: u32, base: u32, page_size: u32, banks: u32) -> Self {
        let row = first / banks;
        Self { bank: first - row * banks, banks, addr: base.wrapping_add(row.wrapping_mul(page_size)), page_size }
    }

    /// Bank of the current page.
    #[inline(always)]
    pub const fn bank(&self) -> u32 {
        self.bank
    }

    /// Address of the current page in its bank.
    #[inline(always)]
    pub const fn addr(&self) -> u32 {
        self.addr
    }

    /// Moves to the next page.
    #[inline(always)]
    pub fn step(&mut self) {
        self.bank += 1;
        if self.bank == self.banks {
            self.bank = 0;
            self.addr = self.addr.wrapping_add(self.page_size);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn stepping_equals_starting_there(first in 0u32..10_000, steps in 0u32..100, banks in 1u32..111, size in 1u32..5000) {
            let mut walk = PageWalk::new(first, 0x1000, size, banks);
            for _ in 0..steps {
                walk.step();
            }
            prop_assert_eq!(walk, PageWalk::new(first + steps, 0x1000, size, banks));
        }
    }
}
