//! Buffers: arrays in DRAM whose pages are interleaved over the banks, and ranges of every
//! worker's L1.
//!
//! Page `p` is in logical bank `p % banks`, at the buffer's address plus `p / banks` pages (seed's
//! system, DRAM buffers; the firmware's `rt::dram` computes the same). Any element type that stands
//! alone can be stored; block formats, which have no bytes of their own, are refused.

use super::MemoryError;
use std::ops::Range;
use tilework_abi::DRAM_ALIGN;
use tilework_abi::addr::{DramAddr, L1Addr, PageCount};
use tilework_abi::convert::u32_of;

pub use tilework_dtype::DType;

/// An array in DRAM, its pages interleaved over the banks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Buffer {
    /// Its name in messages.
    pub name: String,
    /// Elements in each dimension.
    pub shape: Vec<usize>,
    /// Type of the elements.
    pub dtype: DType,
    /// Bytes of a page, a multiple of 64.
    pub page_size: u32,
    /// Address of the first page in each bank.
    pub address: DramAddr,
    /// Logical banks.
    pub banks: u32,
    bytes: usize,
}

impl Buffer {
    /// Bytes that the array occupies in each bank.
    pub fn bytes_per_bank(&self) -> u64 {
        PageCount::new(self.pages().get().div_ceil(self.banks)).bytes(self.page_size)
    }
    /// A buffer that has no address yet.
    pub(crate) fn layout(
        name: &str,
        shape: &[usize],
        dtype: DType,
        page_size: u32,
        banks: u32,
    ) -> Result<Self, MemoryError> {
        let max = u64::from(u32::MAX / DRAM_ALIGN * DRAM_ALIGN);
        let align = u64::from(DRAM_ALIGN);
        if page_size == 0 || !page_size.is_multiple_of(DRAM_ALIGN) {
            let found = u64::from(page_size);
            return Err(MemoryError::PageSize { name: name.to_owned(), found, align, max });
        }
        let Some(element) = dtype.bytes() else {
            return Err(MemoryError::Type { name: name.to_owned(), dtype: dtype.name() });
        };
        let bytes = shape
            .iter()
            .try_fold(element, |n, &d| n.checked_mul(d))
            .filter(|&n| u32::try_from(n.div_ceil(page_size as usize)).is_ok());
        let Some(bytes) = bytes else {
            return Err(MemoryError::Shape { name: name.to_owned(), shape: shape.to_vec() });
        };
        let (name, shape) = (name.to_owned(), shape.to_vec());
        Ok(Self { name, shape, dtype, page_size, address: DramAddr::default(), banks, bytes })
    }
    /// Bytes of the array.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
    /// Elements of the array.
    pub fn elements(&self) -> usize {
        self.bytes / (self.dtype.bits() as usize / 8)
    }
    /// Pages of the array; the last may be partly used.
    pub fn pages(&self) -> PageCount {
        // Checked when the buffer was laid out.
        PageCount::new(u32_of(self.bytes.div_ceil(self.page_size as usize)))
    }
    /// Logical bank of page `page` and its address there.
    pub fn page(&self, page: u32) -> (u32, DramAddr) {
        let rows = PageCount::new(page / self.banks);
        (page % self.banks, self.address.offset(rows.bytes(self.page_size)))
    }
    /// The bytes of the array that page `page` holds.
    pub fn page_bytes(&self, page: u32) -> Range<usize> {
        let start = (page as usize).saturating_mul(self.page_size as usize).min(self.bytes);
        start..(start + self.page_size as usize).min(self.bytes)
    }
    /// The bytes of `data` that lie in `bank`, in the order of the addresses there; the last page
    /// is padded with zeros.
    pub(crate) fn gather(&self, data: &[u8], bank: u32) -> Vec<u8> {
        let mut out = Vec::new();
        for page in (bank..self.pages().get()).step_by(self.banks.max(1) as usize) {
            out.extend_from_slice(&data[self.page_bytes(page)]);
            let used = out.len().next_multiple_of(self.page_size as usize);
            out.resize(used, 0);
        }
        out
    }
    /// The inverse of [`Buffer::gather`].
    pub(crate) fn scatter(&self, bank_data: &[u8], bank: u32, data: &mut [u8]) {
        let pages = (bank..self.pages().get()).step_by(self.banks.max(1) as usize);
        for (page, chunk) in pages.zip(bank_data.chunks(self.page_size as usize)) {
            let range = self.page_bytes(page);
            let n = range.len();
            data[range].copy_from_slice(&chunk[..n]);
        }
    }
}

/// A range of L1 that every worker has at the same address.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct L1Buffer {
    /// Its name in messages.
    pub name: String,
    /// First byte.
    pub address: L1Addr,
    /// Bytes.
    pub bytes: u32,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn pages_go_round_the_banks() {
        let mut b = Buffer::layout("x", &[3, 100], DType::U32, 64, 7).unwrap();
        b.address = DramAddr::new(0x40);
        assert_eq!((b.bytes(), b.elements(), b.pages()), (1200, 300, PageCount::new(19)));
        assert_eq!(b.page(0), (0, DramAddr::new(0x40)));
        assert_eq!(b.page(6), (6, DramAddr::new(0x40)));
        assert_eq!(b.page(7), (0, DramAddr::new(0x80)));
        assert_eq!(b.page(18), (4, DramAddr::new(0xC0)));
        assert_eq!(b.page_bytes(18), 1152..1200);
        assert_eq!(b.bytes_per_bank(), 3 * 64);
    }

    #[test]
    fn bad_layouts_are_refused() {
        let page = Buffer::layout("x", &[1], DType::U8, 100, 7).unwrap_err().to_string();
        assert_eq!(page, "buffer x: page size 100, expected a multiple of 64 from 64 to 4294967232");
        let shape = Buffer::layout("x", &[usize::MAX, 2], DType::U8, 64, 7).unwrap_err().to_string();
        assert!(shape.starts_with("buffer x: shape [18446744073709551615, 2] has too many elements"));
    }

    #[test]
    fn block_formats_are_refused() {
        for dtype in DType::ALL.iter().copied().filter(|dtype| dtype.is_block()) {
            let refused = Buffer::layout("x", &[32, 32], dtype, 64, 7).unwrap_err().to_string();
            let name = dtype.name();
            assert_eq!(refused, format!("buffer x: elements of type {name} share exponents and have no bytes alone"));
        }
    }

    proptest! {
        #[test]
        fn gather_and_scatter_are_inverse(bytes in 0usize..3000, page in 1u32..6, banks in 1u32..9) {
            let b = Buffer::layout("x", &[bytes], DType::U8, page * 64, banks).unwrap();
            let data: Vec<u8> = (0..bytes).map(|i| (i * 7 + i / 251) as u8).collect();
            let mut back = vec![0; bytes];
            for bank in 0..banks {
                let part = b.gather(&data, bank);
                prop_assert!(part.len() as u64 <= b.bytes_per_bank());
                b.scatter(&part, bank, &mut back);
            }
            prop_assert_eq!(back, data);
        }
    }
}
