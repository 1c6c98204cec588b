//! The copies of lines that the data caches of cores hold, as a tile keeps them for what it leaves
//! out ([`super::filter`]).

/// Lines of a core's data cache, and their bytes (BabyRISCV/README.md).
pub(super) const LINES: usize = 4;
pub(super) const LINE: u32 = 16;

/// Where a data cache keeps the line around `addr`.
#[inline(always)]
pub(super) const fn slot(addr: u32) -> usize {
    (addr / LINE) as usize % LINES
}

/// What a slot of a data cache was last filled with: the number of the line, and behind it what is
/// known of the copy. In one word each, because those of all cores are looked at whenever something
/// is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Line(pub(super) u32);

impl Line {
    /// It was filled by a load that was left out and has not been made up for.
    pub(super) const HIDDEN: u32 = 1;
    /// Likewise, by one of a word that is polled: other words of the line may not be known.
    pub(super) const POLLED: u32 = 2;
    /// Likewise, where all loads of the line are right.
    pub(super) const WHOLE: u32 = 4;
    /// The observer has been told of it, and nobody has written there since.
    pub(super) const FRESH: u32 = 8;
    /// Bits of these.
    pub(super) const FLAGS: u32 = 4;

    /// No line: L1 has none with this number.
    pub(super) const NONE: Self = Self(u32::MAX << Self::FLAGS);

    #[inline(always)]
    pub(super) const fn new(number: u32, flags: u32) -> Self {
        Self(number << Self::FLAGS | flags)
    }

    #[inline(always)]
    pub(super) const fn number(self) -> u32 {
        self.0 >> Self::FLAGS
    }

    /// Whether any of these is known of it.
    #[inline(always)]
    pub(super) const fn has(self, flags: u32) -> bool {
        self.0 & flags != 0
    }

    /// It is told of.
    #[inline]
    pub(super) fn tell(&mut self, fresh: bool) {
        *self = Self::new(self.number(), if fresh { Self::FRESH } else { 0 });
    }

    /// Whether it is of importance that somebody writes there.
    #[inline]
    pub(super) const fn is_watched(self) -> bool {
        self.has(Self::HIDDEN | Self::POLLED | Self::FRESH)
    }

    /// Whether the observer has not been told of it.
    #[inline]
    pub(super) const fn is_untold(self) -> bool {
        self.has(Self::HIDDEN | Self::POLLED)
    }

    /// Whether it is one of `count` lines from number `first` on, and it is of importance that
    /// somebody writes there.
    #[inline]
    pub(super) const fn is_watched_in(self, first: u32, count: u32) -> bool {
        (self.number().wrapping_sub(first) < count) & self.is_watched()
    }
}
