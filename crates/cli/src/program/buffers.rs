//! The buffers of a program: every one gets its element type, shape, order, pages and place.

use super::check::{MAX_BUFFERS, MAX_PAGE_SIZE, Planner};
use super::plan::{Home, PlannedBuffer, Shards};
use super::schema::{
    BufferDecl, CoreItem, Layout, Location, Memory, Orientation, ProgramFile, ShardBy, ShardDecl, Use,
};
use super::storage;
use super::wrong::consequence;
use crate::array::{self, Array, shape_text};
use crate::failure::Outcome;
use std::collections::BTreeMap;
use std::ops::Range;
use tilework_abi::{DRAM_ALIGN, L1_ALIGN};
use tilework_dtype::DType;
use tilework_runtime::memory::{
    BufferType, CoreCoord, CoreGrid, CoreRange, CoreRangeSet, ShardOrientation, ShardSpec, ShardSpecBuffer,
    TensorMemoryLayout,
};
use tilework_runtime::tensor::{Extent, PageLayout};
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
        let each_core = decl.location == Some(Location::L1);
        if usage != Use::Scratch && each_core {
            return self.fail(
                decl.usage.span(),
                format!("buffer \"{label}\": only scratch buffers can be in L1 by location; memory has other places"),
            );
        }
        let division = self.division(label, decl)?;
        let (dtype, shape) = self.geometry(label, span.clone(), decl, earlier, input)?;
        let layout = self.layout(label, decl, earlier, dtype, &shape)?;
        let row_width = division.as_ref().filter(|_| layout == Layout::Row).map(|(_, spec)| spec.shape[1] as usize);
        let elements = storage::pages(dtype, layout, &shape, row_width).ok();
        let Some(elements) = elements.filter(|elements| elements.bytes() as u64 <= array::MAX_FILE_BYTES) else {
            let message = format!(
                "buffer \"{label}\" of shape {} is larger than {} bytes",
                shape_text(&shape),
                array::MAX_FILE_BYTES
            );
            return self.fail(span, message);
        };
        let (page_size, page_span) = self.page_size(label, span, decl, &elements, division.is_some(), layout)?;
        let home = match division {
            Some((by, spec)) => Home::Sharded(shards(by, spec, &elements)),
            None if each_core => Home::EachCore,
            None if decl.memory.as_ref().is_some_and(|memory| *memory.get_ref() == Memory::L1) => {
                Home::Interleaved(BufferType::L1)
            }
            None => Home::Interleaved(BufferType::Dram),
        };
        let align = u64::from(if home.is_dram() { DRAM_ALIGN } else { L1_ALIGN });
        if !page_size.is_multiple_of(align) {
            let message = format!("buffer \"{label}\": page_size is {page_size}; expected a multiple of {align}");
            return self.fail(page_span, message);
        }
        let bytes = elements.bytes() as u64;
        let (Ok(pages), Ok(page_size)) = (u32::try_from(bytes.div_ceil(page_size)), u32::try_from(page_size)) else {
            return self.fail(page_span, format!("buffer \"{label}\" has more than 2^32 pages"));
        };
        let (name, span) = (label.clone(), decl_span);
        Ok(PlannedBuffer { name, usage, dtype, layout, shape, bytes, page_size, pages, elements, home, span })
    }

    /// The bytes of a page, and where the file says so. That of tiles and of rows of shards follows
    /// from the elements.
    fn page_size(
        &self,
        label: &str,
        span: Range<usize>,
        decl: &BufferDecl,
        elements: &PageLayout,
        sharded: bool,
        layout: Layout,
    ) -> Outcome<(u64, Range<usize>)> {
        let usual = match (layout, sharded) {
            (Layout::Tile, _) => Some(("tiles is a tile", elements.page_bytes() as u64)),
            (Layout::Row, true) => Some(("shards is a row of a shard", elements.page_bytes() as u64)),
            (Layout::Row, false) => None,
        };
        let own = decl.page_size.as_ref();
        let own = own.map(|own| Ok((self.number("page_size", own, 1..=MAX_PAGE_SIZE)?, own.span()))).transpose()?;
        match (own, usual) {
            (Some((own, span)), Some((what, usual))) if own != usual => {
                self.fail(span, format!("buffer \"{label}\": page_size is {own}; a page of {what}, {usual}"))
            }
            (Some(own), _) => Ok(own),
            (None, Some((_, usual))) => Ok((usual, span)),
            (None, None) => {
                self.fail(span, format!("buffer \"{label}\" has no page_size; only tiles and shards have a usual one"))
            }
        }
    }

    /// How a buffer is divided into shards, if it is.
    fn division(&self, label: &str, decl: &BufferDecl) -> Outcome<Option<(TensorMemoryLayout, ShardSpec)>> {
        let memory = decl.memory.as_ref().map(|memory| (*memory.get_ref(), memory.span()));
        match (&memory, decl.location, &decl.shard) {
            (Some((_, span)), Some(_), _) => {
                self.fail(span.clone(), format!("buffer \"{label}\" has a memory and a location; give one of them"))
            }
            (Some((Memory::Sharded, span)), None, None) => {
                let needs = "shard = { by = ..., shape = [rows, columns], grid = [...] }";
                self.fail(span.clone(), format!("buffer \"{label}\" is sharded; give {needs}"))
            }
            (Some((Memory::Sharded, _)), None, Some(shard)) => self.shard_spec(label, shard.get_ref()).map(Some),
            (_, _, Some(shard)) => {
                self.fail(shard.span(), format!("buffer \"{label}\" has shards; give memory = \"sharded\""))
            }
            (_, _, None) => Ok(None),
        }
    }

    fn shard_spec(&self, label: &str, shard: &ShardDecl) -> Outcome<(TensorMemoryLayout, ShardSpec)> {
        let side = |value| {
            let side = self.number("a side of a shard", value, 1..=i64::from(u32::MAX))?;
            Ok(u32::try_from(side).unwrap_or(u32::MAX))
        };
        let shape = match shard.shape.get_ref().as_slice() {
            [rows, columns] => [side(rows)?, side(columns)?],
            other => {
                let found = other.len();
                let message = format!("buffer \"{label}\": a shard of {found} dimensions, expected [rows, columns]");
                return self.fail(shard.shape.span(), message);
            }
        };
        let ranges = shard.grid.get_ref().iter().map(|item| self.core_range(label, *item, shard.grid.span()));
        let grid = CoreRangeSet::new(ranges.collect::<Outcome<Vec<_>>>()?);
        let grid = match grid {
            Ok(grid) => grid,
            Err(_) => return self.fail(shard.grid.span(), format!("buffer \"{label}\": cores of its grid overlap")),
        };
        let layout = match shard.by {
            ShardBy::Height => TensorMemoryLayout::HeightSharded,
            ShardBy::Width => TensorMemoryLayout::WidthSharded,
            ShardBy::Block => TensorMemoryLayout::BlockSharded,
        };
        let orientation = match shard.orientation {
            Orientation::Row => ShardOrientation::RowMajor,
            Orientation::Column => ShardOrientation::ColMajor,
        };
        Ok((layout, ShardSpec { grid, shape, orientation }))
    }

    /// The cores of an item of a grid by their logical coordinates, which leave out the columns
    /// without workers.
    fn core_range(&self, label: &str, item: CoreItem, span: Range<usize>) -> Outcome<CoreRange> {
        let (a, b) = match item {
            CoreItem::One(core) => (core, core),
            CoreItem::Rectangle(a, b) => (a, b),
        };
        let core = |[x, y]: [u64; 2]| {
            let worker =
                self.board.workers().into_iter().find(|worker| (u64::from(worker.x), u64::from(worker.y)) == (x, y));
            match worker.and_then(|worker| CoreGrid::new(self.board.board).core(worker)) {
                Some(core) => Ok(core),
                None => {
                    let board = self.board.board.name();
                    let message = format!("buffer \"{label}\": core ({x}, {y}) of its grid is no worker of a {board}");
                    self.fail(span.clone(), message)
                }
            }
        };
        let (a, b) = (core(a)?, core(b)?);
        let start = CoreCoord::new(a.x.min(b.x), a.y.min(b.y));
        Ok(CoreRange::new(start, CoreCoord::new(a.x.max(b.x), a.y.max(b.y))))
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

/// The shards of a buffer of these elements.
fn shards(layout: TensorMemoryLayout, tensor_shard_spec: ShardSpec, elements: &PageLayout) -> Shards {
    // What has more pages is refused.
    let sides = |Extent { height, width }| [height, width].map(|n| u32::try_from(n).unwrap_or(u32::MAX));
    let (page_shape, tensor2d_shape_in_pages) = (sides(elements.page()), sides(elements.pages_by_side()));
    Shards { layout, spec: ShardSpecBuffer { tensor_shard_spec, page_shape, tensor2d_shape_in_pages } }
}
