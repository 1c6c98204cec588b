//! Programs: which kernels run where, and with what.
//!
//! A program is a value that can be looked at and changed until it is run; nothing is checked
//! before [`Program::layout`], which every run calls first. Its model is that of the seed (section
//! 8): one set of cores, up to four roles that differ in their kernels, and for the whole program
//! circular buffers, semaphores and run-time arguments.

mod check;
mod layout;
#[cfg(test)]
mod tests;

pub use check::{ProgramError, ProgramErrorKind};
pub use layout::{ArgSpan, CbLayout, Layout, RoleLayout};

use crate::elf::KernelImage;
use crate::memory::{CoreGrid, CoreRangeSet, L1Range, ShardOrientation};
use std::collections::BTreeMap;
use std::sync::Arc;
use tilework_abi::addr::PageCount;
use tilework_abi::convert::u32_of;
use tilework_abi::noc::NocXy;
use tilework_abi::tensix::Processor;

/// Most roles of a program: corner, edges and interior of a grid (seed's system, roles of a
/// program).
pub const MAX_ROLES: usize = 4;

/// The cores of a program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Cores {
    /// Every worker.
    All,
    /// The first workers in the board's order.
    Count(usize),
    /// These, in this order.
    List(Vec<NocXy>),
}

impl Cores {
    /// The cores of a set of logical coordinates, in the order that `orientation` says.
    ///
    /// # Errors
    /// A coordinate outside of `grid`.
    pub fn ranges(set: &CoreRangeSet, grid: &CoreGrid, orientation: ShardOrientation) -> Result<Self, ProgramError> {
        let outside = |core| {
            let (columns, rows) = grid.size();
            ProgramErrorKind::OutsideGrid { core, columns, rows }.of("(unnamed)")
        };
        let tile = |core| grid.tile(core).ok_or_else(|| outside(core));
        Ok(Self::List(set.cores(orientation).map(tile).collect::<Result<_, _>>()?))
    }

    /// The cores, which must be among `workers`, in the program's order.
    ///
    /// # Errors
    /// More cores than there are workers, none at all, one that is no worker, one named twice.
    pub fn resolve(&self, workers: &[NocXy]) -> Result<Vec<NocXy>, ProgramError> {
        check::resolve(self, workers)
    }
}

/// Processors that share a list of run-time arguments: the launch message has one pair of offsets
/// per processor, and the three TRISCs run the parts of one compute kernel, so they share theirs
/// (seed's system, `pack_rta`).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ArgSet {
    /// The BRISC kernel ("writer").
    Brisc,
    /// The NCRISC kernel ("reader").
    Ncrisc,
    /// The three TRISC kernels ("compute").
    Compute,
}

impl ArgSet {
    /// All sets, in the order of their bytes in L1.
    pub const ALL: [Self; 3] = [Self::Brisc, Self::Ncrisc, Self::Compute];
    /// The set of a processor.
    pub const fn of(processor: Processor) -> Self {
        match processor {
            Processor::Brisc => Self::Brisc,
            Processor::Ncrisc => Self::Ncrisc,
            _ => Self::Compute,
        }
    }
    /// Position in [`ArgSet::ALL`].
    pub const fn index(self) -> usize {
        self as usize
    }
    /// The name in messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Brisc => "BRISC",
            Self::Ncrisc => "NCRISC",
            Self::Compute => "TRISC",
        }
    }
}

/// The run-time arguments that may differ from core to core.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum UniqueArgs {
    /// The same on all cores.
    Uniform(Vec<u32>),
    /// One list per core, in the order of the program's cores.
    PerCore(Vec<Vec<u32>>),
}

impl UniqueArgs {
    /// How many there are: one number for all cores, or one for each.
    pub(crate) fn words(&self) -> Vec<u32> {
        match self {
            Self::Uniform(list) => vec![u32_of(list.len())],
            Self::PerCore(lists) => lists.iter().map(|list| u32_of(list.len())).collect(),
        }
    }
}

impl Default for UniqueArgs {
    fn default() -> Self {
        Self::Uniform(Vec::new())
    }
}

/// A circular buffer of every core of a program. Its address is given when the program is laid out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CircularBuffer {
    /// Its index, below 32. Indices 16 and 24 share storage when both exist (the original's
    /// `device.py`).
    pub index: u32,
    /// Bytes of a page, a multiple of 16.
    pub page_size: u32,
    /// Pages.
    pub pages: PageCount,
}

/// Names of a program's circular buffers and semaphores in reports. One without a name is called by
/// its number.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Names {
    /// Of circular buffers, by index.
    pub circular_buffers: BTreeMap<u32, String>,
    /// Of semaphores, by id.
    pub semaphores: BTreeMap<u32, String>,
}

impl Names {
    /// A circular buffer in reports: `5 "tiles"`.
    pub fn circular_buffer(&self, index: u32) -> String {
        numbered(index, self.circular_buffers.get(&index))
    }
    /// A semaphore in reports: `0 "ready"`.
    pub fn semaphore(&self, id: u32) -> String {
        numbered(id, self.semaphores.get(&id))
    }
}

fn numbered(number: u32, name: Option<&String>) -> String {
    name.map_or_else(|| number.to_string(), |name| format!("{number} \"{name}\""))
}

/// A set of cores with the kernels they run.
#[derive(Clone, Debug, Default)]
pub struct Role {
    /// Its name in reports.
    pub name: Option<String>,
    /// The cores; `None` means all of the program.
    pub cores: Option<Vec<NocXy>>,
    /// Kernels in the order of [`Processor::ALL`].
    pub kernels: [Option<Arc<KernelImage>>; 5],
}

impl Role {
    /// A role for all cores of the program, without kernels.
    pub fn all() -> Self {
        Self::default()
    }
    /// A role for some of the program's cores, without kernels.
    pub fn on(cores: Vec<NocXy>) -> Self {
        Self { cores: Some(cores), ..Self::default() }
    }
    /// The role with a name for reports.
    #[must_use]
    pub fn named(self, name: impl Into<String>) -> Self {
        Self { name: Some(name.into()), ..self }
    }
    /// The role with a kernel for `processor`.
    #[must_use]
    pub fn kernel(mut self, processor: Processor, image: Arc<KernelImage>) -> Self {
        self.kernels[processor.index()] = Some(image);
        self
    }
}

/// A program.
#[derive(Clone, Debug)]
pub struct Program {
    /// Its name in reports.
    pub name: String,
    /// Where it runs.
    pub cores: Cores,
    /// What runs there; at least one and at most [`MAX_ROLES`], which cover every core exactly
    /// once.
    pub roles: Vec<Role>,
    /// Circular buffers.
    pub cbs: Vec<CircularBuffer>,
    /// Those that lie over a buffer, by index: where. The others get an address when the program is
    /// laid out.
    pub cbs_over: BTreeMap<u32, L1Range>,
    /// Initial values of the semaphores; semaphore `i` is 16 bytes behind semaphore `i - 1`.
    pub semaphores: Vec<u32>,
    /// Unique run-time arguments, in the order of [`ArgSet::ALL`].
    pub args: [UniqueArgs; 3],
    /// Common run-time arguments, in the order of [`ArgSet::ALL`].
    pub common_args: [Vec<u32>; 3],
    /// Names of its parts in reports.
    pub names: Names,
    /// A number for profilers, handed to the kernels.
    pub host_assigned_id: u32,
}

impl Program {
    /// A program on `cores` without kernels.
    pub fn new(name: impl Into<String>, cores: Cores) -> Self {
        Self {
            name: name.into(),
            cores,
            roles: Vec::new(),
            cbs: Vec::new(),
            cbs_over: BTreeMap::new(),
            semaphores: Vec::new(),
            args: Default::default(),
            common_args: Default::default(),
            names: Names::default(),
            host_assigned_id: 0,
        }
    }
    /// Adds a role.
    #[must_use]
    pub fn role(mut self, role: Role) -> Self {
        self.roles.push(role);
        self
    }
    /// Adds a circular buffer.
    #[must_use]
    pub fn circular_buffer(mut self, cb: CircularBuffer) -> Self {
        self.cbs.push(cb);
        self
    }
    /// Adds a circular buffer that lies over a buffer: [`Buffer::local`](crate::Buffer::local) of a
    /// sharded one, so that a kernel finds the core's shard in it, or
    /// [`L1Buffer::local`](crate::L1Buffer::local).
    ///
    /// ```
    /// use tilework_abi::{addr::PageCount, board::Board, l1::WORKER};
    /// use tilework_runtime::{CircularBuffer, Cores, MemorySpace, Program};
    ///
    /// let mut memory = MemorySpace::new(Board::P100, &WORKER);
    /// let slots = memory.alloc_l1("slots", 8 * 2048)?;
    /// let cb = CircularBuffer { index: 3, page_size: 2048, pages: PageCount::new(8) };
    /// let program = Program::new("p", Cores::All).circular_buffer_over(cb, slots.local());
    /// assert_eq!(program.cbs_over[&3].address, slots.address);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn circular_buffer_over(mut self, cb: CircularBuffer, buffer: L1Range) -> Self {
        self.cbs_over.insert(cb.index, buffer);
        self.circular_buffer(cb)
    }
    /// Adds a semaphore with its initial value.
    #[must_use]
    pub fn semaphore(mut self, initial: u32) -> Self {
        self.semaphores.push(initial);
        self
    }
    /// Sets the unique arguments of a set.
    #[must_use]
    pub fn unique_args(mut self, set: ArgSet, args: UniqueArgs) -> Self {
        self.args[set.index()] = args;
        self
    }
    /// Sets the names of its parts in reports.
    #[must_use]
    pub fn names(mut self, names: Names) -> Self {
        self.names = names;
        self
    }
    /// The words of its arguments, for what they may point to.
    pub(crate) fn argument_words(&self) -> Vec<u32> {
        let mut out: Vec<u32> = self.common_args.concat();
        for args in &self.args {
            match args {
                UniqueArgs::Uniform(list) => out.extend(list),
                UniqueArgs::PerCore(lists) => out.extend(lists.iter().flatten()),
            }
        }
        out
    }
    /// Role number `number` in reports: its name in quotes, or the number.
    pub(crate) fn role_name(&self, number: usize) -> String {
        let name = self.roles.get(number).and_then(|role| role.name.as_ref());
        name.map_or_else(|| number.to_string(), |name| format!("\"{name}\""))
    }
    /// Sets the common arguments of a set.
    #[must_use]
    pub fn common_args(mut self, set: ArgSet, args: Vec<u32>) -> Self {
        self.common_args[set.index()] = args;
        self
    }
}
