//! The Sync Unit: eight semaphores and four mutexes.
//!
//! Follows BlackholeA0/TensixTile/TensixCoprocessor/{SyncUnit,ATGETM}.md and
//! WormholeB0/TensixTile/TensixCoprocessor/{SEMINIT,SEMPOST,SEMGET, ATRELM}.md (the same on
//! Blackhole).

/// Semaphores of a tile.
pub(super) const SEMAPHORES: usize = 8;
/// Largest value of a semaphore.
const MAX: u8 = 15;
/// Mutex indices up to this exist, except 1.
const LAST_MUTEX: usize = 4;

/// One semaphore.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Semaphore {
    value: u8,
    max: u8,
}

impl Semaphore {
    /// The value, 0..15.
    pub(super) fn value(self) -> u32 {
        u32::from(self.value)
    }
    /// `Value >= Max`.
    pub(super) fn is_full(self) -> bool {
        self.value >= self.max
    }
    /// Whether a post would change nothing.
    pub(super) fn loses_post(self) -> bool {
        self.value == MAX
    }
    /// `SEMINIT`.
    pub(super) fn init(&mut self, value: u8, max: u8) {
        *self = Self { value, max };
    }
    /// `SEMPOST`.
    pub(super) fn post(&mut self) {
        self.value = (self.value + 1).min(MAX);
    }
    /// `SEMGET`.
    pub(super) fn get(&mut self) {
        self.value = self.value.saturating_sub(1);
    }
    /// A store of a T core: an odd value is `SEMGET`, an even one `SEMPOST`.
    pub(super) fn store(&mut self, value: u32) {
        if value & 1 != 0 {
            self.get();
        } else {
            self.post();
        }
    }
}

/// One mutex.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Mutex {
    /// The thread that holds it.
    holder: Option<usize>,
    /// Free, but promised to this thread: both others waited when it was released.
    promised: Option<usize>,
}

/// The mutexes of a tile.
#[derive(Clone, Debug, Default)]
pub(super) struct Mutexes([Mutex; LAST_MUTEX + 1]);

/// The mutex that the operand of an `ATGETM` or `ATRELM` names, if there is one.
pub(super) fn mutex_index(index: u32) -> Option<usize> {
    let index = index as usize;
    (index <= LAST_MUTEX && index != 1).then_some(index)
}

impl Mutexes {
    /// `thread` acquires. `false`: another thread holds the mutex, or goes first.
    pub(super) fn acquire(&mut self, index: usize, thread: usize) -> bool {
        let mutex = &mut self.0[index];
        let free = mutex.holder.is_none() && mutex.promised.is_none_or(|t| t == thread);
        if free {
            *mutex = Mutex { holder: Some(thread), promised: None };
        }
        free || mutex.holder == Some(thread)
    }
    /// `thread` releases; `waits` says which threads stand at their wait gates for this mutex.
    pub(super) fn release(&mut self, index: usize, thread: usize, waits: [bool; 3]) {
        let mutex = &mut self.0[index];
        if mutex.holder != Some(thread) {
            return;
        }
        let [next, after] = [(thread + 1) % 3, (thread + 2) % 3];
        *mutex = Mutex { holder: None, promised: (waits[next] && waits[after]).then_some(next) };
    }
    /// The thread that holds a mutex.
    pub(super) fn holder(&self, index: usize) -> Option<usize> {
        self.0[index].holder
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_semaphore_saturates_at_both_ends() {
        let mut s = Semaphore::default();
        s.store(1);
        assert_eq!(s.value(), 0);
        for want in (1..=15).chain([15]) {
            s.store(0xFFFF_FFFE);
            assert_eq!(s.value(), want);
        }
        s.store(0xFFFF_FFFF);
        assert_eq!(s.value(), 14);
    }

    #[test]
    fn max_does_not_limit_posts() {
        let mut s = Semaphore::default();
        s.init(1, 2);
        assert!(!s.is_full());
        s.post();
        assert!(s.is_full());
        s.post();
        assert_eq!(s.value(), 3);
        assert!(s.is_full(), "Value >= Max");
    }

    #[test]
    fn there_are_four_mutexes() {
        let exist: Vec<u32> = (0..=0xFFFF).filter(|&w| mutex_index(w).is_some()).collect();
        assert_eq!(exist, [0, 2, 3, 4]);
    }

    #[test]
    fn a_mutex_goes_round_when_all_want_it() {
        let mut m = Mutexes::default();
        assert!(m.acquire(2, 1) && m.acquire(2, 1) && !m.acquire(2, 0));
        m.release(2, 0, [false; 3]);
        assert_eq!(m.holder(2), Some(1), "only the holder releases");
        m.release(2, 1, [true, false, true]);
        assert!(!m.acquire(2, 0), "thread (1 + 1) % 3 goes first");
        assert!(m.acquire(2, 2) && !m.acquire(2, 0));
        m.release(2, 2, [true, false, false]);
        assert!(m.acquire(2, 0));
    }
}
