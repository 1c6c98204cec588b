//! Tensors in L1: sharded, or interleaved over the workers. Device programs read and write
//! interleaved DRAM, so such a tensor is brought there and back by a program of its own, in which
//! each worker moves the pages that it has (kernel `shards`).

use std::collections::BTreeMap;

use tilework_abi::noc::NocXy;
use tilework_abi::tensix::Processor;
use tilework_runtime::memory::{Bank, BufferType, TensorMemoryLayout};
use tilework_runtime::tensor::{Tensor, TensorDesc, TensorSpec};
use tilework_runtime::{ArgSet, Cores, Program, Role, RuntimeError, UniqueArgs};

use crate::recipe::Kernels;

/// The name of the programs, by which reports count them.
pub(crate) const NAME: &str = "shards";

/// Bytes that pages are multiples of, so that they lie alike in L1 and DRAM.
const ALIGN: u32 = 64;

/// Whether device programs take a tensor as it is.
pub(crate) fn is_flat(spec: &TensorSpec) -> bool {
    let memory = spec.memory();
    memory.buffer_type == BufferType::Dram && memory.memory_layout == TensorMemoryLayout::Interleaved
}

/// The same tensor in interleaved DRAM.
///
/// # Errors
/// Why it cannot be brought there page by page.
pub(crate) fn flat(spec: &TensorSpec) -> Result<(TensorDesc, TensorSpec), String> {
    let desc = TensorDesc::new(spec.logical_shape()).dtype(spec.dtype()).layout(spec.layout());
    let flat = TensorSpec::new(&desc).map_err(|error| error.to_string())?;
    if is_flat(spec) {
        return Ok((desc, flat));
    }
    if spec.memory().buffer_type == BufferType::Dram {
        return Err("a tensor sharded over DRAM".into());
    }
    if (flat.pages(), flat.page_size()) != (spec.pages(), spec.page_size()) {
        return Err("shards that cut rows or need another padding".into());
    }
    if !spec.page_size().is_multiple_of(ALIGN) {
        return Err(format!("pages of {} bytes in L1", spec.page_size()));
    }
    Ok((desc, flat))
}

/// The pages of a worker: rows of pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Rows {
    first: u32,
    next: u32,
    below: u32,
    columns: u32,
    rows: u32,
    at: u32,
    step: u32,
    down: u32,
}

impl Rows {
    /// Pages with their addresses, in order, if they are rows.
    fn of(pages: &[(u32, u32)]) -> Option<Self> {
        let &(first, at) = pages.first()?;
        let (next, step) = pages.get(1).map_or((1, 0), |&(page, address)| (page - first, address.wrapping_sub(at)));
        let alike = |pair: &[(u32, u32)]| pair[1].0 - pair[0].0 == next && pair[1].1.wrapping_sub(pair[0].1) == step;
        let columns = 1 + pages.windows(2).take_while(|pair| alike(pair)).count();
        let (below, down) =
            pages.get(columns).map_or((0, 0), |&(page, address)| (page - first, address.wrapping_sub(at)));
        let rows = pages.len() / columns;
        let (columns, rows) = (u32::try_from(columns).ok()?, u32::try_from(rows).ok()?);
        let all = Self { first, next, below, columns, rows, at, step, down };
        all.pages().eq(pages.iter().copied()).then_some(all)
    }

    fn pages(&self) -> impl Iterator<Item = (u32, u32)> {
        let Self { first, next, below, columns, at, step, down, .. } = *self;
        let page = move |row: u32, column: u32| {
            let address = at.wrapping_add(row.wrapping_mul(down)).wrapping_add(column.wrapping_mul(step));
            (first + row * below + column * next, address)
        };
        (0..self.rows).flat_map(move |row| (0..columns).map(move |column| page(row, column)))
    }
}

/// The program that brings a tensor in L1 to one in DRAM, or the other way.
///
/// # Errors
/// A kernel that cannot be loaded; inside, why there is no such program.
pub(crate) fn program(
    l1: &Tensor,
    dram: &Tensor,
    out: bool,
    kernels: &Kernels,
) -> Result<Result<Program, String>, RuntimeError> {
    let mut banks: BTreeMap<NocXy, Vec<(u32, u32)>> = BTreeMap::new();
    for page in 0..l1.buffer.pages().get() {
        let place = l1.buffer.place(page);
        let Bank::Core(tile) = place.bank else {
            return Ok(Err("a tensor in another memory than L1".into()));
        };
        banks.entry(tile).or_default().push((page, place.address.word()));
    }
    let buffer = [dram.buffer.address.word(), dram.buffer.aligned_page_size(), dram.spec.page_size()];
    let words = |pages: &Vec<(u32, u32)>| {
        let Rows { first, next, below, columns, rows, at, step, down } = Rows::of(pages)?;
        let pages = [first, next, below, columns, rows, at, step, down];
        Some([&[u32::from(out)], &buffer[..], &pages[..]].concat())
    };
    let Some(args) = banks.values().map(words).collect::<Option<Vec<_>>>() else {
        return Ok(Err("shards whose pages are not in rows".into()));
    };
    let role = Role::all().kernel(Processor::Brisc, kernels.get(NAME, Processor::Brisc)?);
    let program = Program::new(NAME, Cores::List(banks.into_keys().collect())).role(role);
    Ok(Ok(program.unique_args(ArgSet::Brisc, UniqueArgs::PerCore(args))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_in_rows_are_found_and_others_are_not() {
        // A block of two by three pages of five a row, 64 bytes each, with room for four a row.
        let block = [(7, 0), (8, 64), (9, 128), (12, 256), (13, 320), (14, 384)];
        let rows = Rows::of(&block).unwrap();
        assert_eq!((rows.first, rows.next, rows.below, rows.columns, rows.rows), (7, 1, 5, 3, 2));
        assert_eq!((rows.at, rows.step, rows.down), (0, 64, 256));
        // Interleaved: every 118th page.
        let rows = Rows::of(&[(3, 0), (121, 2048), (239, 4096)]).unwrap();
        assert_eq!((rows.next, rows.columns, rows.rows), (118, 3, 1));
        assert!(Rows::of(&[(4, 64)]).is_some_and(|rows| (rows.columns, rows.rows) == (1, 1)));
        assert_eq!(Rows::of(&[(0, 0), (1, 64), (5, 128), (7, 192)]), None);
        assert_eq!(Rows::of(&[(0, 0), (1, 64), (5, 128)]), None);
    }
}
