//! Windows that slide over images, for pools and convolutions: copies of the image's elements by
//! the kernel `rearrange`, a window's elements one behind the other.

use tilework_ops::DType;

use super::rearrange::Part;
use crate::recipe::{Made, Of, Recipe, Site};

/// Bytes of a row of a padded image that is a page of its own.
const ROW: usize = 32 << 10;

/// A window along one dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Axis {
    /// Elements of the image.
    pub(super) length: usize,
    /// Elements of the window, from one to the next of them, and from window to window.
    pub(super) kernel: usize,
    pub(super) dilation: usize,
    pub(super) stride: usize,
    /// Padding on both sides.
    pub(super) before: usize,
    pub(super) after: usize,
    /// How many windows there are.
    pub(super) output: usize,
}

impl Axis {
    /// A dimension of an image, all of which is one window after the other.
    pub(super) const ONE: Self = Self { length: 1, kernel: 1, dilation: 1, stride: 1, before: 0, after: 0, output: 1 };

    /// With as many windows as fit; `ceil` counts a last one that begins inside but does not fit.
    ///
    /// # Errors
    /// None fits.
    pub(super) fn windows(self, ceil: bool) -> Result<Self, String> {
        let Self { length, kernel, dilation, stride, before, after, .. } = self;
        if kernel == 0 || stride == 0 || dilation == 0 {
            return Err("a window without elements or steps".into());
        }
        let room = (length + before + after).checked_sub((kernel - 1) * dilation + 1);
        let room = room.ok_or("a window that does not fit")?;
        let mut output = if ceil { room.div_ceil(stride) } else { room / stride } + 1;
        // A window that would begin in the padding behind the image does not count.
        if ceil && (output - 1) * stride >= length + before {
            output -= 1;
        }
        Ok(Self { output, ..self })
    }

    /// Elements from the first of the padding to the last of the last window, or of the image.
    pub(super) fn canvas(&self) -> usize {
        let windows = (self.output.max(1) - 1) * self.stride + (self.kernel - 1) * self.dilation + 1;
        windows.max(self.before + self.length)
    }

    /// Whether windows have elements beyond the image.
    pub(super) fn is_padded(&self) -> bool {
        self.canvas() != self.length
    }
}

/// Images of channels over rows and columns.
#[derive(Clone, Copy, Debug)]
pub(super) struct Images {
    pub(super) batch: usize,
    /// Rows, then columns.
    pub(super) axes: [Axis; 2],
    pub(super) channels: usize,
}

impl Images {
    /// The images with their padding, in rows; what is beyond them is `fill`. Channels become
    /// `wide`, the others zeros.
    pub(super) fn padded(
        &self,
        recipe: &mut Recipe,
        (from, wide): (Of<'_>, usize),
        fill: u32,
        site: &Site,
    ) -> Result<Made, String> {
        let [rows, columns] = self.axes;
        let (dtype, channels) = (from.spec.dtype(), self.channels);
        let image = [rows.length * columns.length * channels, columns.length * channels].map(|n| n as i64);
        let size = dtype.bytes().unwrap_or(4);
        if channels == wide && columns.canvas() * channels * size <= ROW {
            let low = [0, rows.before, columns.before * channels];
            let high = [self.batch, rows.before + rows.length, (columns.before + columns.length) * channels];
            let part = Part::between(from, 0, [&low, &high], &[image[0], image[1], 1]);
            let made = recipe.rows(&[self.batch, rows.canvas(), columns.canvas() * channels], dtype)?;
            recipe.rearrange(vec![part], fill, made.of(), site)?;
            return Ok(made);
        }
        let low = [0, rows.before, columns.before, 0];
        let high = [self.batch, rows.before + rows.length, columns.before + columns.length, channels];
        let part = Part::between(from, 0, [&low, &high], &[image[0], image[1], channels as i64, 1]);
        let made = recipe.rows(&[self.batch, rows.canvas(), columns.canvas(), wide], dtype)?;
        recipe.rearrange(vec![part], fill, made.of(), site)?;
        Ok(made)
    }

    /// Windows of padded images in tiles: for each element of the window its elements in all
    /// windows, `[rows, columns of the window, batch, rows, columns, channels]`.
    pub(super) fn taps(&self, recipe: &mut Recipe, from: Of<'_>, site: &Site) -> Result<Made, String> {
        let [rows, columns] = self.axes;
        let dims = [rows.kernel, columns.kernel, self.batch, rows.output, columns.output, self.channels];
        let (line, channels) = (columns.canvas() * self.channels, self.channels);
        let steps = [
            rows.dilation * line,
            columns.dilation * channels,
            rows.canvas() * line,
            rows.stride * line,
            columns.stride * channels,
            1,
        ];
        let made = recipe.tiles(&dims, from.spec.dtype())?;
        let part = Part::whole(from, 0, &dims, &steps.map(|n| n as i64));
        recipe.rearrange(vec![part], 0, made.of(), site)?;
        Ok(made)
    }

    /// Lengths of what windows are made to.
    pub(super) fn output(&self) -> [usize; 4] {
        [self.batch, self.axes[0].output, self.axes[1].output, self.channels]
    }
}

/// A tensor of equal elements, in rows.
pub(super) fn equal(recipe: &mut Recipe, dims: &[usize], value: f32, site: &Site) -> Result<Made, String> {
    let made = recipe.rows(dims, DType::F32)?;
    recipe.rearrange(Vec::new(), value.to_bits(), made.of(), site)?;
    Ok(made)
}
