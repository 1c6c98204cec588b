//! Go messages, which dispatcher and subordinate send the same way (seed 001 section 6.3).

use tilework_abi::cq::count::StreamCount;
use tilework_abi::cq::layout::{DONE_STREAM, WORKER_SEMS};
use tilework_abi::noc::init;
use tilework_abi::stream;
use tilework_rt::niu::Initiator;
use tilework_rt::reg::{fence, publish, read, wait_reg, write};

/// Waits until the count of `stream` has reached `count`.
#[inline(always)]
pub fn wait_stream(stream_id: u32, count: u32) {
    let count = StreamCount::new(count);
    wait_reg(stream::reg_addr(stream_id, stream::SPACE_AVAILABLE), |word| StreamCount::new(word).wrap_ge(count));
}

/// Subtracts the current count of `stream` from it: the register only accumulates (seed 001 section
/// 6.2). Increments that arrive in between are kept. Returns what was subtracted.
pub fn clear_stream(stream_id: u32) -> u32 {
    let count = read(stream::reg_addr(stream_id, stream::SPACE_AVAILABLE));
    let back = count.wrapping_neg() & stream::COUNTER_MASK;
    write(stream::reg_addr(stream_id, stream::SPACE_AVAILABLE_UPDATE), back << stream::UPDATE_INC_SHIFT);
    // The next look at the count is a load of another register of the same memory: it must not
    // leave the core before this store does (BabyRISCV/MemoryOrdering.md, "Fences").
    fence();
    count & stream::COUNTER_MASK
}

/// Clears the worker-completion streams at the start.
pub fn clear_worker_streams() {
    for i in 0..WORKER_SEMS {
        clear_stream(DONE_STREAM + i);
    }
}

/// Puts the go message into the 16 bytes at `command`, which it is sent from, and returns the
/// source address for a message at `to`. The page stays taken until the message has left, so no
/// other buffer is needed. Source and destination must agree in their low four bits. Overwrites the
/// command's fields.
#[inline(always)]
pub fn stage(command: u32, word: u32, to: u32) -> u32 {
    let from = command + (to & 0xC);
    write(from, word);
    publish(from);
    from
}

/// Stores what go messages from `from` to address `to` have in common. The initiator was set up for
/// writes.
#[inline(always)]
pub fn prepare(through: Initiator, from: u32, to: u32) {
    through.wait_ready();
    through.set(init::TARG_ADDR_LO, from);
    through.set(init::RET_ADDR_LO, to);
    through.set(init::AT_LEN_BE, 4);
}

/// Sends the prepared go message to `xy`, a tile or a rectangle.
#[inline(always)]
pub fn send(through: Initiator, my_xy: u32, xy: u32) {
    through.wait_ready();
    through.set(init::TARG_ADDR_HI, my_xy);
    through.set(init::RET_ADDR_HI, xy);
    through.start();
}

/// Address of go message `offset` on a worker whose first is at `go`.
#[inline(always)]
pub const fn multicast_address(go: u32, offset: u8) -> u32 {
    go + 4 * offset as u32
}
