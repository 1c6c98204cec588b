//! The status block: progress of a kernel, and its stop at an error.
//!
//! A kernel stops at bytes that it cannot execute. It stores what it found in its status block
//! ([`tilework_abi::cq::status`]) and waits on the error word: the simulator sees a core asleep on
//! that word and reports it with its meaning, a debugger may store zero to let it continue behind
//! the command.

use tilework_abi::cq::status::{Fault, Kernel, word};
use tilework_rt::reg::{wait, write};

/// Writes the status block of one kernel.
#[derive(Clone, Copy, Debug)]
pub struct Status {
    kernel: Kernel,
    commands: u32,
}

impl Status {
    /// Clears the block of `kernel`.
    pub fn new(kernel: Kernel) -> Self {
        for field in [word::ERROR, word::DETAIL, word::ADDRESS, word::COMMANDS] {
            write(kernel.status().get() + field, 0);
        }
        Self { kernel, commands: 0 }
    }

    /// Counts a command that was executed.
    #[inline(always)]
    pub fn count(&mut self) {
        self.commands = self.commands.wrapping_add(1);
        write(self.kernel.status().get() + word::COMMANDS, self.commands);
    }

    /// Records a waypoint (DEBUG commands).
    pub fn waypoint(&self, key: u32) {
        write(self.kernel.status().get() + word::DETAIL, key);
    }

    /// Stops at the command at `address` because of `fault`; `detail` is the value that was wrong.
    #[cold]
    #[inline(never)]
    pub fn halt(&self, fault: Fault, detail: u32, address: u32) {
        let block = self.kernel.status().get();
        write(block + word::DETAIL, detail);
        write(block + word::ADDRESS, address);
        write(block + word::ERROR, self.kernel.error_word(fault));
        wait(block + word::ERROR, |error| error == 0);
    }
}
