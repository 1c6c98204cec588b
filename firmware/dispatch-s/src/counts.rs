//! The workers' counts, and waiting.
//!
//! Workers report to the tile whose coordinates are in their go message: the sender's. Next to the
//! dispatcher both read the same streams. On a tile of its own the subordinate adds what has been
//! reported to the dispatcher's streams (tt-metal's `cq_dispatch_subordinate.cpp`), whenever it
//! waits, so that it may clear its own streams and the dispatcher those of its tile.

use tilework_abi::cq::count::StreamCount;
use tilework_abi::cq::layout::{DONE_STREAM, WORKER_SEMS};
use tilework_abi::stream;
use tilework_cq_core::go;
use tilework_cq_core::initiators::dispatch_s::COUNTS;
use tilework_rt::reg::{fence, read, wait, write};

/// The counts of the workers of each worker semaphore.
pub struct Counts {
    my_xy: u32,
    /// The dispatcher's tile.
    dispatch: u32,
    /// What was passed on, as the own streams count it.
    passed: [StreamCount; WORKER_SEMS as usize],
    /// Worker semaphores in use.
    number: u32,
}

impl Counts {
    /// The counts at the start.
    pub fn new(my_xy: u32, dispatch: u32) -> Self {
        if my_xy != dispatch {
            // Next to the dispatcher this is its task.
            go::clear_worker_streams();
        }
        Self { my_xy, dispatch, passed: [StreamCount::new(0); WORKER_SEMS as usize], number: WORKER_SEMS }
    }

    /// Worker semaphores in use.
    pub const fn number(&self) -> u32 {
        self.number
    }

    /// Uses the first `number` worker semaphores, at most [`WORKER_SEMS`].
    pub fn set_number(&mut self, number: u32) {
        self.number = number;
    }

    /// Passes on what was reported since the last time.
    fn pass_on(&mut self) {
        for (i, passed) in (0..self.number).zip(&mut self.passed) {
            let now = count(DONE_STREAM + i);
            let new = now.since(*passed);
            if new != 0 {
                *passed = now;
                let register = stream::reg_addr(DONE_STREAM + i, stream::SPACE_AVAILABLE_UPDATE);
                COUNTS.post_register(self.my_xy, self.dispatch, register, new << stream::UPDATE_INC_SHIFT);
            }
        }
    }

    /// Waits until the word at `addr` of this tile's L1 satisfies `done`.
    pub fn wait(&mut self, addr: u32, done: impl Fn(u32) -> bool) {
        if self.my_xy == self.dispatch {
            wait(addr, done);
            return;
        }
        loop {
            self.pass_on();
            fence();
            if done(read(addr)) {
                return;
            }
        }
    }

    /// Waits until the count of `stream_id` has reached `wanted`.
    pub fn wait_stream(&mut self, stream_id: u32, wanted: u32) {
        if self.my_xy == self.dispatch {
            go::wait_stream(stream_id, wanted);
            return;
        }
        let wanted = StreamCount::new(wanted);
        while !count(stream_id).wrap_ge(wanted) {
            self.pass_on();
        }
    }

    /// Sets the count of `stream_id` to zero.
    pub fn clear(&mut self, stream_id: u32) {
        if self.my_xy == self.dispatch {
            // Sets the count, rather than adding to it (seed 001 section 5).
            write(stream::reg_addr(stream_id, stream::REMOTE_DEST_BUF_SIZE), 0);
            return;
        }
        // What is reported from here on is kept, and what was reported is passed on.
        self.pass_on();
        let cleared = go::clear_stream(stream_id);
        if let Some(passed) = self.passed.get_mut(stream_id.wrapping_sub(DONE_STREAM) as usize) {
            *passed = StreamCount::new(passed.get().wrapping_sub(cleared));
        }
    }
}

/// The count of a stream.
fn count(stream_id: u32) -> StreamCount {
    StreamCount::new(read(stream::reg_addr(stream_id, stream::SPACE_AVAILABLE)))
}
