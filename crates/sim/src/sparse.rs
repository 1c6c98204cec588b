//! Copies of large memories of which little has been written.

/// Bytes that are looked at together: a page of the machine.
const BLOCK: usize = 4096;
/// What a block holds that was never written.
static ZEROS: [u8; BLOCK] = [0; BLOCK];

/// A copy of `memory`. What is zero is not touched in the copy, so that memory for it is not
/// committed.
pub(crate) fn copy_of(memory: &[u8]) -> Vec<u8> {
    let mut copy = vec![0; memory.len()];
    for (to, from) in copy.chunks_mut(BLOCK).zip(memory.chunks(BLOCK)) {
        // A comparison of slices is one of the machine's fastest loops, in every build.
        if *from != ZEROS[..from.len()] {
            to.copy_from_slice(from);
        }
    }
    copy
}
