//! The buffers of a program: every one gets its element type, shape, order, pages and place.

use super::check::{MAX_BUFFERS, MAX_PAGE_SIZE, Planner};
use super::plan::PlannedBuffer;
use super::schema::{BufferDecl, Layout, Location, ProgramFile, Use};
use super::storage;
use super::wrong::consequence;
use crate::array::{self, Array, shape_text};
use crate::failure::Outcome;
use std::collections::BTreeMap;
use std::ops::Range;
use tilework_abi::{DRAM_ALIGN, L1_ALIGN};
use tilework_dtype::DType;
use toml::Spanned;

impl Planner<'_> {
    /// All buffers that nothing is wrong with; names of the others are broken.
    pub(super) fn buffers(&mut self, file: &ProgramFile, inputs: &BTreeMap<String, Array>) -> Vec<PlannedBuffer> {
        let mut planned: Vec<PlannedBuffer> = Vec::new();
        for broken in &file.broken.buffers {
            self.globals.set_broken(broken);
        }
        if let Some((name, _)) = file.buffers.0.get(MAX_BUFFERS) {
            self.wrong.add(self.source.error(name.span(), format!("more than {MAX_BUFFERS} buffers")));
        }
        for (name, decl) in file.buffers.0.iter().take(MAX_BUFFERS) {
            let buffer = match self.globals.is_broken(name.get_ref()) {
                // Its array is missing, which is told already.
                true => Err(consequence()),
                false => self
                    .check_name("buffer", name)
                    .and_then(|()| self.buffer(name, decl, &planned, inputs.get(name.get_ref()))),
            };
            let Some(buffer) = self.wrong.keep(buffer) else {
                self.globals.set_broken(name.get_ref());
                // What is wrong with the pages does not depend on the rest.
                if let Some(own) = &decl.get_ref().page_size {
                    let page_size = self.number("page_size", own, 1..=MAX_PAGE_SIZE);
                    self.wrong.keep(page_size);
                }
                continue;
            };
            for (field, value) in storage::numbers(&buffer) {
                self.globals.set(format!("{}.{field}", buffer.name), value);
            }
            planned.push(buffer);
        }
        planned
    }

    fn buffer(
        &self,
        name: &Spanned<String>,
        decl: &Spanned<BufferDecl>,
        earlier: &[PlannedBuffer],
        input: Option<&Array>,
    ) -> Outcome<PlannedBuffer> {
        let (label, span, decl) = (name.get_ref(), name.span(), decl.get_ref());
        let decl_span = span.clone();
        let usage = *decl.usage.get_ref();
        if usage != Use::Scratch && decl.location == Location::L1 {
            return self.fail(
                decl.usage.span(),
                format!("buffer \"{label}\": only scratch buffers can be in L1; inputs and outputs are in DRAM"),
            );
        }
        let (dtype, shape) = self.geometry(label, span.clone(), decl, earlier, input)?;
        let layout = self.layout(label, decl, earlier, dtype, &shape)?;
        let bytes = storage::bytes(dtype, layout, &shape);
        let Some(bytes) = bytes.filter(|&n| n <= array::MAX_FILE_BYTES) else {
            let message = format!(
                "buffer \"{label}\" of shape {} is larger than {} bytes",
                shape_text(&shape),
                array::MAX_FILE_BYTES
            );
            return self.fail(span, message);
        };
        let tile = dtype.tile_bytes() as u64;
        let (page_size, page_span) = match (&decl.page_size, layout) {
            (Some(own), _) => (self.number("page_size", own, 1..=MAX_PAGE_SIZE)?, own.span()),
            (None, Layout::Tile) => (tile, span.clone()),
            (None, Layout::Row) => {
                return self.fail(span, format!("buffer \"{label}\" has no page_size; only tiles have a usual one"));
            }
        };
        if layout == Layout::Tile && page_size != tile {
            let message = format!("buffer \"{label}\": page_size is {page_size}; a page of tiles is a tile, {tile}");
            return self.fail(page_span, message);
        }
        let align = u64::from(if decl.location == Location::Dram { DRAM_ALIGN } else { L1_ALIGN });
        if !page_size.is_multiple_of(align) {
            let message = format!("buffer \"{label}\": page_size is {page_size}; expected a multiple of {align}");
            return self.fail(page_span, message);
        }
        let (Ok(pages), Ok(page_size)) = (u32::try_from(bytes.div_ceil(page_size)), u32::try_from(page_size)) else {
            return self.fail(page_span, format!("buffer \"{label}\" has more than 2^32 pages"));
        };
        let (name, location) = (label.clone(), decl.location);
        let span = decl_span;
        Ok(PlannedBuffer { name, usage, dtype, layout, shape, bytes, page_size, pages, location, span })
    }

    /// The order of a buffer's elements: its own, or that of the buffer it is like.
    fn layout(
        &self,
        label: &str,
        decl: &BufferDecl,
        earlier: &[PlannedBuffer],
        dtype: DType,
        shape: &[u64],
    ) -> Outcome<Layout> {
        let model = decl.like.as_ref().and_then(|like| earlier.iter().find(|b| b.name == *like.get_ref()));
        let (layout, span) = match (&decl.layout, &decl.like) {
            (Some(own), _) => (*own.get_ref(), own.span()),
            (None, Some(like)) => (model.map_or(Layout::Row, |model| model.layout), like.span()),
            (None, None) => (Layout::Row, decl.usage.span()),
        };
        match storage::refuse(dtype, layout, shape) {
            Some(why) => self.fail(span, format!("buffer \"{label}\": {why}")),
            None => Ok(layout),
        }
    }

    /// The element type and shape of a buffer: its own, those of the buffer it is like, or those of
    /// the input array.
    fn geometry(
        &self,
        label: &str,
        span: Range<usize>,
        decl: &BufferDecl,
        earlier: &[PlannedBuffer],
        input: Option<&Array>,
    ) -> Outcome<(DType, Vec<u64>)> {
        let (mut dtype, mut shape) = (None, None);
        if let Some(like) = &decl.like {
            let Some(model) = earlier.iter().find(|b| b.name == *like.get_ref()) else {
                if self.globals.is_broken(like.get_ref()) {
                    return Err(consequence());
                }
                let known: Vec<_> = earlier.iter().map(|b| b.name.as_str()).collect();
                let message = format!(
                    "buffer \"{label}\" is like \"{}\", which is no earlier buffer; earlier ones: {}",
                    like.get_ref(),
                    if known.is_empty() { "none".into() } else { known.join(", ") }
                );
                return self.fail(like.span(), message);
            };
            (dtype, shape) = (Some(model.dtype), Some(model.shape.clone()));
        }
        if let Some(own) = &decl.dtype {
            dtype = Some(own.get_ref().0);
        }
        if let Some(own) = &decl.shape {
            if own.get_ref().len() > array::MAX_DIMENSIONS {
                return self.fail(own.span(), format!("more than {} dimensions", array::MAX_DIMENSIONS));
            }
            let dimension = |d| self.number("a dimension", d, 0..=i64::MAX);
            shape = Some(own.get_ref().iter().map(dimension).collect::<Outcome<Vec<_>>>()?);
        }
        let Some(dtype) = dtype else {
            return self
                .fail(span, format!("buffer \"{label}\" has no dtype; give dtype, or like = an earlier buffer"));
        };
        if let Some(array) = input {
            if array.dtype != storage::array_dtype(dtype) {
                let (found, wanted) = (array.dtype.name(), storage::array_dtype(dtype).name());
                let message = format!("input \"{label}\": the array has dtype {found}, the program expects {wanted}");
                return self.fail(span, message);
            }
            let expected = shape.get_or_insert_with(|| array.shape.clone());
            if *expected != array.shape {
                let message = format!(
                    "input \"{label}\": the array has shape {}, the program expects {}",
                    shape_text(&array.shape),
                    shape_text(expected)
                );
                return self.fail(span, message);
            }
        }
        match shape {
            Some(shape) => Ok((dtype, shape)),
            None => {
                self.fail(span, format!("buffer \"{label}\" has no shape; give shape, or like = an earlier buffer"))
            }
        }
    }
}
