//! Sliding windows: where the taps of a kernel fall on an image, for convolutions and pooling.

use crate::error::Reason;

/// Elements added around an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Padding {
    /// Rows above.
    pub top: usize,
    /// Rows below.
    pub bottom: usize,
    /// Columns to the left.
    pub left: usize,
    /// Columns to the right.
    pub right: usize,
}

impl Padding {
    /// Padding as compiled programs state it: two numbers (rows, columns) for both sides, or four
    /// (top, bottom, left, right).
    pub fn from_list(list: &[i32]) -> Result<Padding, Reason> {
        let n = |v: i32| usize::try_from(v).map_err(|_| Reason::attribute("padding", format!("{v} is negative")));
        match *list {
            [h, w] => Ok(Padding { top: n(h)?, bottom: n(h)?, left: n(w)?, right: n(w)? }),
            [t, b, l, r] => Ok(Padding { top: n(t)?, bottom: n(b)?, left: n(l)?, right: n(r)? }),
            _ => Err(Reason::attribute("padding", format!("{} numbers, not 2 or 4", list.len()))),
        }
    }
}

/// Kernel and movement of a two-dimensional window; pairs are rows and columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// Taps.
    pub kernel: [usize; 2],
    /// Distance between neighbouring windows.
    pub stride: [usize; 2],
    /// Elements around the image.
    pub padding: Padding,
    /// Distance between neighbouring taps.
    pub dilation: [usize; 2],
}

impl Window {
    /// Rows and columns as separate axes.
    pub(crate) fn axes(&self) -> [Axis; 2] {
        let p = self.padding;
        let axis = |i: usize, before, after| Axis {
            kernel: self.kernel[i],
            stride: self.stride[i],
            dilation: self.dilation[i],
            before,
            after,
        };
        [axis(0, p.top, p.bottom), axis(1, p.left, p.right)]
    }
}

/// A window along one axis.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Axis {
    pub kernel: usize,
    pub stride: usize,
    pub dilation: usize,
    pub before: usize,
    pub after: usize,
}

impl Axis {
    /// An axis with one tap that moves by one.
    pub(crate) const UNIT: Axis = Axis { kernel: 1, stride: 1, dilation: 1, before: 0, after: 0 };

    /// Refuses zeros, and numbers that no image has.
    pub(crate) fn check(&self) -> Result<(), Reason> {
        for (name, v) in [("kernel_size", self.kernel), ("stride", self.stride), ("dilation", self.dilation)] {
            if v == 0 || v > 1 << 24 {
                return Err(Reason::attribute(name, format!("{v} is not in 1..=2^24")));
            }
        }
        if self.before > 1 << 24 || self.after > 1 << 24 {
            return Err(Reason::attribute("padding", "more than 2^24 elements"));
        }
        Ok(())
    }

    /// Length of the window with its gaps.
    fn extent(&self) -> usize {
        (self.kernel - 1) * self.dilation + 1
    }

    /// Number of windows on an axis of `length`; `ceil` counts a last one that begins inside but
    /// does not fit.
    pub(crate) fn windows(&self, length: usize, ceil: bool) -> Result<usize, Reason> {
        self.check()?;
        let padded = length + self.before + self.after;
        let Some(room) = padded.checked_sub(self.extent()) else {
            let why = format!("{} elements with padding, a window covers {}", padded, self.extent());
            return Err(Reason::attribute("kernel_size", why));
        };
        if !ceil {
            return Ok(room / self.stride + 1);
        }
        let count = room.div_ceil(self.stride) + 1;
        // A window that would begin in the padding after the axis does not count.
        Ok(if (count - 1) * self.stride >= length + self.before { count - 1 } else { count })
    }

    /// Length that a transposed convolution makes of `length`.
    pub(crate) fn transposed(&self, length: usize, extra: usize) -> Result<usize, Reason> {
        self.check()?;
        let whole = length.saturating_sub(1).saturating_mul(self.stride).saturating_add(self.extent() + extra);
        whole
            .checked_sub(self.before + self.after)
            .filter(|_| length > 0)
            .ok_or_else(|| Reason::attribute("padding", format!("leaves nothing of {length} elements")))
    }

    /// The element that a tap of a window reads, unless it is padding.
    #[inline]
    pub(crate) fn tap(&self, window: usize, tap: usize, length: usize) -> Option<usize> {
        (window * self.stride + tap * self.dilation).checked_sub(self.before).filter(|&i| i < length)
    }

    /// The element that a tap reads for an element of a transposed convolution's result, if any.
    #[inline]
    pub(crate) fn source(&self, result: usize, tap: usize, length: usize) -> Option<usize> {
        let at = (result + self.before).checked_sub(tap * self.dilation)?;
        (at % self.stride == 0).then_some(at / self.stride).filter(|&i| i < length)
    }
}
