//! Tables in local RAM, filled from commands.
//!
//! A load from local RAM costs two cycles and one from L1 eight, so what is read once per worker is
//! copied first (seed 001 figure 7). The tables are statics: they would take most of the kernel's 2
//! KiB of stack.

use core::cell::UnsafeCell;
use tilework_rt::reg::{compiler_fence, read};

/// `N` words of local RAM.
pub struct Table<const N: usize>(UnsafeCell<[u32; N]>);

// SAFETY: a kernel is the only thread of its core, and local RAM belongs to one core.
unsafe impl<const N: usize> Sync for Table<N> {}

impl<const N: usize> Table<N> {
    /// All zero.
    pub const fn new() -> Self {
        Self(UnsafeCell::new([0; N]))
    }

    /// Copies `words` words from L1 at `from` to the table from `start` on; what does not fit is
    /// left out. `&mut` is not asked for, so: no slice of [`words`](Self::words) may be alive.
    #[inline]
    pub fn fill(&self, start: usize, from: u32, words: usize) {
        compiler_fence();
        let words = words.min(N.saturating_sub(start));
        let put = |i: usize, word: u32| {
            // SAFETY: `i` is below `words`, so `start + i` is below `N`; no reference into the
            // table is alive (see above), and nobody else has access.
            unsafe { self.0.get().cast::<u32>().add(start + i).write(word) };
        };
        let mut i = 0;
        // Four loads before their first use: the first of a cache line takes eight cycles, the
        // others follow in its shadow.
        while i + 4 <= words {
            let at = from + 4 * i as u32;
            let (a, b, c, d) = (read(at), read(at + 4), read(at + 8), read(at + 12));
            put(i, a);
            put(i + 1, b);
            put(i + 2, c);
            put(i + 3, d);
            i += 4;
        }
        while i < words {
            put(i, read(from + 4 * i as u32));
            i += 1;
        }
    }

    /// The `len` words from `start` on, cut off at `N`.
    #[inline(always)]
    pub fn words(&self, start: usize, len: usize) -> &[u32] {
        // SAFETY: the array is initialised, and only `fill` writes it, while no slice is alive.
        let all = unsafe { &*self.0.get() };
        let end = (start + len).min(N);
        &all[start.min(end)..end]
    }
}

impl<const N: usize> Default for Table<N> {
    fn default() -> Self {
        Self::new()
    }
}
