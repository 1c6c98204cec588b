//! Splitting transfers into packets.
//!
//! A NoC packet holds at most 16 KiB (NoC/README.md), a ring ends somewhere, and available data
//! ends at a block. Every split yields pieces of at least one byte: a request of zero bytes must
//! never be started (tt-metal#52233, field 1.B 20).

use tilework_abi::noc::MAX_PACKET_BYTES;

/// Bytes of the next packet of a transfer of which `left` bytes are to go and `here` are contiguous
/// and present.
#[inline(always)]
pub const fn packet(left: u32, here: u32) -> u32 {
    let n = if left < here { left } else { here };
    if n < MAX_PACKET_BYTES { n } else { MAX_PACKET_BYTES }
}

/// How many whole packets of `size` bytes, `stride` apart, begin in `here` contiguous bytes; at
/// most `count`.
///
/// `size` is not zero and at most `stride`; the padding behind the last packet need not be present.
#[inline(always)]
pub const fn whole_packets(count: u32, size: u32, stride: u32, here: u32) -> u32 {
    if here < size {
        return 0;
    }
    let n = (here - size) / stride + 1;
    if n < count { n } else { count }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn packets_stop_at_each_limit() {
        assert_eq!(packet(10, 100), 10);
        assert_eq!(packet(100, 10), 10);
        assert_eq!(packet(100_000, 100_000), MAX_PACKET_BYTES);
    }

    proptest! {
        #[test]
        fn whole_packets_are_whole_and_all(count in 1u32..200, size in 1u32..4097, here in 0u32..200_000) {
            let stride = size.next_multiple_of(16);
            let n = whole_packets(count, size, stride, here);
            prop_assert!(n <= count);
            if n > 0 {
                prop_assert!((n - 1) * stride + size <= here);
            }
            if n < count {
                prop_assert!(n * stride + size > here);
            }
        }

        #[test]
        fn packets_cover_a_transfer_without_empty_ones(total in 1u32..1_000_000, here in 1u32..200_000) {
            let mut left = total;
            while left != 0 {
                let n = packet(left, here);
                prop_assert!(n > 0 && n <= MAX_PACKET_BYTES);
                left -= n;
            }
        }
    }
}
