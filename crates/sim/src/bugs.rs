//! Documented bugs of the hardware, by name.
//!
//! The chip has all of them. A [`ChipConfig`](crate::ChipConfig) can leave some out, so that a
//! program's author sees whether a wrong result is the program's or the chip's. What the chip would
//! do instead is what its pages say was meant. Bugs whose pages do not say that, and those of what
//! is not simulated, cannot be left out (docs/card.md).

use std::fmt;

/// Declares [`Bug`]: a name, what the chip does, and the page that says so, for each.
macro_rules! bugs {
    ($($bug:ident $name:literal $what:literal $page:literal,)+) => {
        /// A documented bug.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum Bug {
            $(#[doc = concat!($what, " (", $page, ").")] $bug,)+
        }

        impl Bug {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$bug),+];

            /// Its name for options.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$bug => $name),+ }
            }
            /// What the chip does.
            pub const fn what(self) -> &'static str {
                match self { $(Self::$bug => $what),+ }
            }
            /// The page of the public ISA documentation that says so.
            pub const fn page(self) -> &'static str {
                match self { $(Self::$bug => $page),+ }
            }
        }
    };
}

bugs! {
    MopCount "mop-count"
        "A MOP of template 1 whose one outer iteration has nothing but an end instruction runs it 129 times"
        "WormholeB0/TensixTile/TensixCoprocessor/MOPExpander.md",
    StochasticRounding "stochastic-rounding"
        "SFP_STOCH_RND rounds up a little too often, also what needs no rounding, and sometimes when it should cut off"
        "BlackholeA0/TensixTile/TensixCoprocessor/SFPSTOCHRND_FloatFloat.md",
    RoundingBelowHalf "rounding-below-half"
        "SFP_STOCH_RND makes integers of numbers below one half without chance: always zero"
        "BlackholeA0/TensixTile/TensixCoprocessor/SFPSTOCHRND_FloatInt.md",
    LutTarget "lut-target"
        "SFPLUTFP32 with three entries of 16 bits writes to the register that register 7 names"
        "BlackholeA0/TensixTile/TensixCoprocessor/SFPLUTFP32.md",
    VectorStalls "vector-stalls"
        "The vector unit does not stall some instructions that read a result one cycle too early"
        "BlackholeA0/TensixTile/TensixCoprocessor/SFPMAD.md",
    DstWindowInt8 "dst-window-int8"
        "A TRISC's store of a negative int8 to Dst has a wrong magnitude"
        "BlackholeA0/TensixTile/TensixCoprocessor/Dst.md",
    TdmaParameters "tdma-parameters"
        "TDMA-RISC does not wait for room for a third queued command with parameters, which is undefined"
        "WormholeB0/TensixTile/TDMA-RISC.md",
}

impl Bug {
    /// The bug of a name.
    ///
    /// # Errors
    /// A name that is none, with all that are, as text.
    pub fn named(name: &str) -> Result<Self, String> {
        let found = Self::ALL.iter().copied().find(|bug| bug.name() == name);
        found.ok_or_else(|| {
            let names: Vec<_> = Self::ALL.iter().map(|bug| bug.name()).collect();
            format!("{name:?} is no bug; expected one of {}", names.join(", "))
        })
    }
}

impl fmt::Display for Bug {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The bugs that a chip has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bugs {
    /// A bit for each that is left out.
    left_out: u32,
}

impl Bugs {
    /// All documented ones, as the chip.
    pub const AS_CHIP: Self = Self { left_out: 0 };

    /// These, less `bug`.
    #[must_use]
    pub const fn without(self, bug: Bug) -> Self {
        Self { left_out: self.left_out | 1 << bug as u32 }
    }

    /// Whether the chip has `bug`.
    #[inline]
    pub const fn has(self, bug: Bug) -> bool {
        self.left_out >> bug as u32 & 1 == 0
    }
}

impl Default for Bugs {
    fn default() -> Self {
        Self::AS_CHIP
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chip_has_all_bugs_but_those_left_out() {
        for &bug in Bug::ALL {
            assert_eq!(Bug::named(bug.name()), Ok(bug));
            assert!(bug.page().ends_with(".md") && !bug.what().ends_with('.'));
            let bugs = Bugs::default().without(bug);
            assert!(Bug::ALL.iter().all(|&other| bugs.has(other) == (other != bug)));
            assert!(Bugs::AS_CHIP.has(bug));
        }
        let error = Bug::named("shiftxa").unwrap_err();
        assert!(error.contains("\"shiftxa\"") && error.contains("mop-count") && error.contains("tdma-parameters"));
    }
}
