//! A program checked against a board and its input arrays.

use super::expr::{Expr, Scope};
use super::schema::{Layout, Location, Use};
use super::scope::{CoreScope, Globals};
use super::source::Source;
use crate::failure::Outcome;
use std::ops::Range;
use tilework_abi::board::Board;
use tilework_abi::noc::NocXy;
use tilework_abi::tensix::Processor;
use tilework_dtype::DType;

/// A program that can be put on a device.
#[derive(Debug)]
pub struct Plan {
    /// Name.
    pub name: String,
    /// Board.
    pub board: Board,
    /// Buffers in the order of the file.
    pub buffers: Vec<PlannedBuffer>,
    /// Circular buffers.
    pub cbs: Vec<PlannedCb>,
    /// Initial values of the semaphores.
    pub semaphores: Vec<u32>,
    /// Roles.
    pub roles: Vec<PlannedRole>,
    pub(super) common_args: [Vec<Arg>; 3],
    pub(super) source: Source,
    pub(super) globals: Globals,
}

/// A buffer with its geometry.
#[derive(Debug)]
pub struct PlannedBuffer {
    /// Name.
    pub name: String,
    /// Input, output or scratch.
    pub usage: Use,
    /// Element type on the chip.
    pub dtype: DType,
    /// Order of the elements.
    pub layout: Layout,
    /// Shape.
    pub shape: Vec<u64>,
    /// Bytes of all elements on the chip.
    pub bytes: u64,
    /// Bytes of a page.
    pub page_size: u32,
    /// Pages; the last one may be filled in part.
    pub pages: u32,
    /// Where it lives.
    pub location: Location,
}

/// A circular buffer.
#[derive(Debug)]
pub struct PlannedCb {
    /// Index.
    pub index: u8,
    /// Pages.
    pub pages: u32,
    /// Bytes of a page.
    pub page_size: u32,
}

/// A role with its cores.
#[derive(Debug)]
pub struct PlannedRole {
    /// Name.
    pub name: String,
    /// Cores, in the order of the role.
    pub cores: Vec<NocXy>,
    /// Kernels.
    pub kernels: Vec<PlannedKernel>,
}

/// A kernel of a role.
#[derive(Debug)]
pub struct PlannedKernel {
    /// The core of the tile that runs it.
    pub processor: Processor,
    /// What the file calls it.
    pub label: String,
    /// The ELF file.
    pub elf: Vec<u8>,
    pub(super) args: Vec<Arg>,
}

impl PlannedKernel {
    /// Its argument set, an index into [`SETS`].
    pub fn set(&self) -> usize {
        self.processor.index().min(2)
    }
}

/// Names of the argument sets; the three TRISCs have one together.
pub const SETS: [&str; 3] = ["brisc", "ncrisc", "trisc"];

/// The argument words of a program, by argument set: BRISC, NCRISC, TRISC.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Arguments {
    /// One list per core, role after role, each in the order of its cores.
    pub per_core: [Vec<Vec<u32>>; 3],
    /// The lists that all cores share.
    pub common: [Vec<u32>; 3],
}

/// A parsed argument with its place in the file.
#[derive(Debug)]
pub(super) struct Arg {
    pub(super) expr: Expr,
    pub(super) text: String,
    pub(super) span: Range<usize>,
}

impl Plan {
    /// The argument words of every core, once each buffer (in order) has its address.
    pub fn arguments(&self, addresses: &[u64]) -> Outcome<Arguments> {
        let mut globals = self.globals.clone();
        for (buffer, &address) in self.buffers.iter().zip(addresses) {
            globals.set(format!("{}.addr", buffer.name), address);
        }
        let mut out = Arguments::default();
        for (set, list) in self.common_args.iter().enumerate() {
            out.common[set] = self.words(list, &globals, &format!("common_args.{}", SETS[set]))?;
        }
        for role in &self.roles {
            for index in 0..role.cores.len() {
                let scope = CoreScope { globals: &globals, cores: &role.cores, index };
                let mut lists: [Vec<u32>; 3] = Default::default();
                for kernel in role.kernels.iter().filter(|k| !k.args.is_empty()) {
                    let place = format!("role \"{}\", {}, args", role.name, kernel.processor.name());
                    lists[kernel.set()] = self.words(&kernel.args, &scope, &place)?;
                }
                for (all, list) in out.per_core.iter_mut().zip(lists) {
                    all.push(list);
                }
            }
        }
        Ok(out)
    }

    fn words(&self, list: &[Arg], scope: &dyn Scope, place: &str) -> Outcome<Vec<u32>> {
        let word = |(i, arg): (usize, &Arg)| {
            let value = arg.expr.value(scope).map_err(|e| {
                let span = self.source.inside(&arg.span, &arg.text, e.at.clone());
                self.source.error(span, format!("{place}[{i}]: {e}"))
            })?;
            // Negative values are passed as the two's complement that a kernel reads as i32.
            let word = u32::try_from(value).ok().or_else(|| i32::try_from(value).ok().map(i32::cast_unsigned));
            word.ok_or_else(|| {
                let message = format!("{place}[{i}]: {value} does not fit the 32 bits of an argument word");
                self.source.error(arg.span.clone(), message)
            })
        };
        list.iter().enumerate().map(word).collect()
    }

    /// The inputs and outputs of a kind.
    pub fn buffers_for(&self, usage: Use) -> impl Iterator<Item = (usize, &PlannedBuffer)> {
        self.buffers.iter().enumerate().filter(move |(_, b)| b.usage == usage)
    }
}

#[cfg(test)]
mod tests;
