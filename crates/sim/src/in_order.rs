//! Queues that are kept in order.

use std::collections::VecDeque;

/// What goes before fewer than so many others is put in its place step by step, which is quicker
/// than to move memory.
const SOON: usize = 4;

/// Adds `item` to a queue in the order of keys, behind its equals. Mostly it is the last one or
/// one of the first.
#[inline]
pub(crate) fn insert<T, K: Ord>(queue: &mut VecDeque<T>, item: T, key_of: impl Fn(&T) -> K) {
    let key = key_of(&item);
    let is_before = |other: &T| key_of(other) <= key;
    if queue.back().is_none_or(is_before) {
        queue.push_back(item);
        return;
    }
    let place = queue.iter().take(SOON).take_while(|&other| is_before(other)).count();
    if place < SOON {
        queue.push_front(item);
        (0..place).for_each(|i| queue.swap(i, i + 1));
    } else {
        let place = queue.partition_point(is_before);
        queue.insert(place, item);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_is_sorted_and_equals_keep_their_order() {
        let mut queue = VecDeque::new();
        let items: Vec<(u32, usize)> = (0..200).map(|i: usize| ((i * 37 % 53) as u32 / 2, i)).collect();
        for &item in &items {
            insert(&mut queue, item, |&(key, _)| key);
        }
        let mut sorted = items;
        sorted.sort_by_key(|&(key, _)| key);
        assert_eq!(Vec::from(queue), sorted);
    }
}
