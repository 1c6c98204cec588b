//! Polls of pinned memory: a word that the program reads again, and finds as it was, while it does
//! nothing else to the card. The chip then runs to its next write of the host's memory.

use crate::state::{self, State};

/// Words that one loop looks at.
const WORDS: usize = 16;
/// Cycles between two looks whether the device has written and whether somebody waits.
const STEP: u32 = 500;
/// Steps for one read at most: the program may have a limit of its own.
const STEPS: u32 = 40;

/// What the program has read last.
#[derive(Default)]
pub(crate) struct Polls {
    words: [(usize, u64); WORDS],
    next: usize,
    /// There is a word.
    any: bool,
}

impl Polls {
    /// The program has done something: what it reads next, it does not poll yet.
    #[inline]
    pub(crate) fn forget(&mut self) {
        if self.any {
            *self = Self::default();
        }
    }

    /// The program has read `value` at `at`. Whether it found it so before.
    pub(crate) fn read(&mut self, at: usize, value: u64) -> bool {
        match self.words.iter_mut().find(|(word, _)| *word == at) {
            Some((_, seen)) => std::mem::replace(seen, value) == value,
            None => {
                self.any = true;
                self.words[self.next] = (at, value);
                self.next = (self.next + 1) % WORDS;
                false
            }
        }
    }
}

/// Lets the chip run to its next write of the host's memory, or for some time.
pub(crate) fn run_to_write(state: &mut State) {
    let writes = state.device_writes();
    for _ in 0..STEPS {
        if state.is_quiet() {
            return;
        }
        state.clock(STEP);
        if state.device_writes() != writes || state::is_awaited() {
            return;
        }
    }
}
