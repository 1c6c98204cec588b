//! Sets of small numbers, a bit each.

/// The members of a set, in their order.
#[inline]
pub(crate) fn members(set: impl Into<u64>) -> impl Iterator<Item = usize> {
    let mut left = set.into();
    std::iter::from_fn(move || {
        let first = left.trailing_zeros() as usize;
        (left != 0).then(|| {
            left &= left - 1;
            first
        })
    })
}
