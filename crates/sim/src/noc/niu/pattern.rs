//! Multicasts to part of a rectangle: `NOC_BRCST_EXCLUDE`.
//!
//! A pattern keeps and skips columns and rows in turn and leaves a quadrant out. What it does is
//! described for the host's windows (BlackholeA0/PCIExpressTile/TLBs.md, `strided`); where its
//! fields lie in `NOC_BRCST_EXCLUDE` is in the public firmware (the exclusion in tt-metal's
//! `dataflow_api_common.h`, `EXCLUDE_*`; all of it in tt-zephyr-platforms' `noc2axi.c`, whose
//! register has the same layout). All coordinates are raw ones of the NoC.

use crate::{Fault, FaultClass};
use tilework_abi::noc::NocXy;

const READ: &str = "BlackholeA0/PCIExpressTile/TLBs.md, strided";

/// Keeps some of an axis and skips some, in turn from the start of the rectangle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Stride {
    keep: u8,
    skip: u8,
}

impl Stride {
    /// From 4 bits: two of `keep`, two of `skip`. Both must be non-zero to have an effect.
    fn decode(bits: u32) -> Option<Self> {
        let stride = Self { keep: (bits & 3) as u8, skip: (bits >> 2 & 3) as u8 };
        (stride.keep != 0 && stride.skip != 0).then_some(stride)
    }
    fn keeps(self, start: u8, v: u8) -> bool {
        // In a rectangle that wraps around the edge the period is a power of two, so that the
        // wrapping distance can be taken modulo it: only under this reading does the page's
        // condition make sense.
        v.wrapping_sub(start) % (self.keep + self.skip) < self.keep
    }
}

/// A quadrant that is left out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Quadrant {
    corner: NocXy,
    /// Columns from the corner upwards instead of downwards.
    x_up: bool,
    /// Rows from the corner upwards instead of downwards.
    y_up: bool,
}

impl Quadrant {
    fn has(self, at: NocXy) -> bool {
        let beyond = |v: u8, corner: u8, up: bool| if up { v >= corner } else { v <= corner };
        beyond(at.x, self.corner.x, self.x_up) && beyond(at.y, self.corner.y, self.y_up)
    }
}

/// Which tiles of a rectangle receive a multicast.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Pattern {
    x: Option<Stride>,
    y: Option<Stride>,
    left_out: Option<Quadrant>,
}

impl Pattern {
    /// Decodes `NOC_BRCST_EXCLUDE`. Bit 23 asks the routers for another path, which has the
    /// same receivers.
    pub(super) fn decode(word: u32) -> Self {
        let corner = NocXy::new((word >> 8 & 0x3F) as u8, (word >> 14 & 0x3F) as u8);
        let quadrant = Quadrant { corner, x_up: word >> 20 & 1 != 0, y_up: word >> 21 & 1 != 0 };
        Self {
            x: Stride::decode(word),
            y: Stride::decode(word >> 4),
            left_out: (word >> 22 & 1 != 0).then_some(quadrant),
        }
    }

    /// Checks the pattern against the corners of its rectangle.
    ///
    /// # Errors
    /// A rectangle that wraps around an edge, where the page does not say what the pattern means.
    pub(super) fn check(self, start: NocXy, end: NocXy) -> Result<(), Fault> {
        let fault = |class, what| Err(Fault::new(class, what, READ));
        let wraps = [start.x > end.x, start.y > end.y];
        let uneven = [self.x, self.y].map(|s| s.is_some_and(|s| !(s.keep + s.skip).is_power_of_two()));
        if wraps[0] && uneven[0] || wraps[1] && uneven[1] {
            let what = "NOC_BRCST_EXCLUDE: keep + skip is not a power of two in a rectangle that wraps around the edge";
            return fault(FaultClass::UndefinedBehavior, what);
        }
        if self.left_out.is_some() && (wraps[0] || wraps[1]) {
            let what = "NOC_BRCST_EXCLUDE: a quadrant is left out of a rectangle that wraps around the edge";
            return fault(FaultClass::MissingSpecification, what);
        }
        Ok(())
    }

    /// Whether the tile at `at` of a rectangle that starts at `start` receives.
    pub(super) fn receives(self, start: NocXy, at: NocXy) -> bool {
        self.x.is_none_or(|s| s.keeps(start.x, at.x))
            && self.y.is_none_or(|s| s.keeps(start.y, at.y))
            && self.left_out.is_none_or(|q| !q.has(at))
    }
}
