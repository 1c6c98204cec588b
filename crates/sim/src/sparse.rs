//! Copies of large memories of which little has been written.

/// Bytes that are looked at together: a page of the machine.
const BLOCK: usize = 4096;

/// A copy of `memory`. What is zero is not touched in the copy, so that memory for it is not
/// committed.
pub(crate) fn copy_of(memory: &[u8]) -> Vec<u8> {
    let mut copy = vec![0; memory.len()];
    for (to, from) in copy.chunks_mut(BLOCK).zip(memory.chunks(BLOCK)) {
        if from.iter().any(|&byte| byte != 0) {
            to.copy_from_slice(from);
        }
    }
    copy
}
