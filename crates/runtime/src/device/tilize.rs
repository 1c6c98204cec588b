//! Rows to tiles and back by the chip: workers unpack rows as tiles, or pack tiles as rows.
//!
//! The host still converts and pads; its rows go to DRAM, and the kernel `tilize` with `feed` and
//! `writer` (`firmware/kernels`) brings them to the tensor, or the other way. Each worker takes
//! some rows of tiles. The kernels read and write pages over the DRAM banks and keep a row of tiles
//! in Dst, which has room for eight.

use super::Device;
use crate::memory::{Buffer, BufferType, DType, TensorMemoryLayout};
use crate::prebuilt::kernel_elf;
use crate::tensor::{HostTensor, Layout, Tensor, TensorError, TensorSpec, Tilize};
use crate::{ArgSet, CircularBuffer, Cores, KernelImage, Program, ProgramReport, Role, RuntimeError, UniqueArgs};
use std::sync::Arc;
use tilework_abi::addr::PageCount;
use tilework_abi::convert::u32_of;
use tilework_abi::tensix::Processor;
use tilework_driver::HostLink;

/// Tiles of a row at most: half of Dst, in which the math thread works while the packer has the
/// other half.
const MAX_COLUMNS: u32 = 8;

/// The circular buffers of the kernel: rows in, tiles, rows out.
const ROWS_IN: u32 = 0;
const TILES: u32 = 1;
const ROWS_OUT: u32 = 16;

/// Which way.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    ToTiles,
    ToRows,
}

/// Rows of tiles, tiles of a row, and bytes of a tile.
struct Grid {
    rows: u32,
    columns: u32,
    tile: u32,
}

impl Grid {
    /// The tiles of a tensor that the kernels can work on.
    fn of(spec: &TensorSpec) -> Result<Self, TensorError> {
        let memory = spec.memory();
        let refused = [
            (spec.dtype() != DType::BF16, "elements of another type than bf16"),
            (spec.layout() != Layout::TILE, "no tiles of 32x32"),
            (memory.buffer_type != BufferType::Dram, "another memory than DRAM"),
            (memory.memory_layout != TensorMemoryLayout::Interleaved, "shards"),
        ];
        if let Some((_, why)) = refused.into_iter().find(|(holds, _)| *holds) {
            return Err(TensorError::OnChip(why));
        }
        let [rows, columns] = spec.shape_in_pages();
        if columns > MAX_COLUMNS {
            return Err(TensorError::OnChip("rows of more than 8 tiles"));
        }
        Ok(Self { rows, columns, tile: spec.page_size() })
    }
}

impl<C: HostLink> Device<C> {
    /// As [`Device::write_tensor`], its tiles made by the host or by the chip. The bytes are the
    /// same.
    ///
    /// # Errors
    /// As [`Device::write_tensor`]; on the chip also a tensor that is not of bfloat16 tiles of 32 by
    /// 32 in interleaved DRAM or is more than eight tiles wide, and all errors of a run.
    pub fn write_tensor_by(&mut self, tensor: &Tensor, array: &HostTensor, by: Tilize) -> Result<(), RuntimeError> {
        if by == Tilize::OnHost {
            return self.write_tensor(tensor, array);
        }
        let grid = Grid::of(&tensor.spec)?;
        let rows = tensor.spec.encode_rows(array, 0.0)?;
        if rows.is_empty() {
            return Ok(());
        }
        self.with_rows(tensor, &grid, |device, buffer| {
            device.upload(buffer, &rows)?;
            device.move_tiles(tensor, buffer, &grid, Way::ToTiles).map(|_| ())
        })
    }

    /// As [`Device::read_tensor`], its tiles made rows by the host or by the chip.
    ///
    /// # Errors
    /// As [`Device::read_tensor`]; on the chip as [`Device::write_tensor_by`].
    pub fn read_tensor_by(&mut self, tensor: &Tensor, by: Tilize) -> Result<HostTensor, RuntimeError> {
        if by == Tilize::OnHost || tensor.spec.pages() == 0 {
            return self.read_tensor(tensor);
        }
        let grid = Grid::of(&tensor.spec)?;
        let rows = self.with_rows(tensor, &grid, |device, buffer| {
            device.move_tiles(tensor, buffer, &grid, Way::ToRows)?;
            device.download(buffer)
        })?;
        Ok(tensor.spec.decode_rows(&rows, tensor.spec.host_dtype())?)
    }

    /// Calls `f` with a buffer for the rows of a tensor, and frees it.
    fn with_rows<T>(
        &mut self,
        tensor: &Tensor,
        grid: &Grid,
        f: impl FnOnce(&mut Self, &Buffer) -> Result<T, RuntimeError>,
    ) -> Result<T, RuntimeError> {
        let name = format!("rows of {}", tensor.buffer.name);
        let buffer = self.alloc_dram(&name, &[tensor.spec.bytes()], DType::U8, grid.tile)?;
        let result = f(self, &buffer);
        self.free_dram(&buffer)?;
        result
    }

    fn move_tiles(
        &mut self,
        tensor: &Tensor,
        rows: &Buffer,
        grid: &Grid,
        way: Way,
    ) -> Result<Option<ProgramReport>, RuntimeError> {
        let cores = self.workers().len().min(grid.rows as usize);
        let program = program(tensor, rows, grid, way, cores)?;
        let mut report = self.run(&[program])?;
        Ok(report.programs.pop())
    }
}

/// The program that brings rows to tiles or back on so many workers.
fn program(tensor: &Tensor, rows: &Buffer, grid: &Grid, way: Way, cores: usize) -> Result<Program, RuntimeError> {
    let Grid { columns, tile, .. } = *grid;
    let (from, to, source, target) = match way {
        Way::ToTiles => (rows, &tensor.buffer, ROWS_IN, TILES),
        Way::ToRows => (&tensor.buffer, rows, TILES, ROWS_OUT),
    };
    let (from, to) = (from.address.word(), to.address.word());
    let flags = [way == Way::ToTiles, way == Way::ToRows].map(u32::from);
    let (mut feed, mut compute, mut write) = (Vec::new(), Vec::new(), Vec::new());
    let mut first = 0;
    for core in 0..u32_of(cores) {
        let cores = u32_of(cores);
        let count = grid.rows / cores + u32::from(core < grid.rows % cores);
        let (pages, start) = (count * columns, first * columns);
        feed.push(vec![pages, 1, from, start, 0, tile, source]);
        compute.push(vec![count, columns, flags[0], flags[1], ROWS_IN, TILES, ROWS_OUT]);
        write.push(vec![to, start, pages, tile, target]);
        first += count;
    }
    let role = Role::all()
        .named("tilize")
        .kernel(Processor::Ncrisc, kernel("feed", Processor::Ncrisc)?)
        .kernel(Processor::Trisc0, kernel("tilize-unpack", Processor::Trisc0)?)
        .kernel(Processor::Trisc1, kernel("tilize-math", Processor::Trisc1)?)
        .kernel(Processor::Trisc2, kernel("tilize-pack", Processor::Trisc2)?)
        .kernel(Processor::Brisc, kernel("writer", Processor::Brisc)?);
    let cb = |index, rows| CircularBuffer { index, page_size: tile, pages: PageCount::new(rows * columns) };
    Ok(Program::new("tilize", Cores::Count(cores))
        .role(role)
        .circular_buffer(cb(ROWS_IN, 2))
        .circular_buffer(cb(TILES, 1))
        .circular_buffer(cb(ROWS_OUT, 1))
        .unique_args(ArgSet::Ncrisc, UniqueArgs::PerCore(feed))
        .unique_args(ArgSet::Compute, UniqueArgs::PerCore(compute))
        .unique_args(ArgSet::Brisc, UniqueArgs::PerCore(write)))
}

fn kernel(name: &str, processor: Processor) -> Result<Arc<KernelImage>, RuntimeError> {
    Ok(Arc::new(KernelImage::load(name, kernel_elf(name).unwrap_or_default(), processor)?))
}
