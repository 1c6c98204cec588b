//! What can be wrong with a program, and the checks that need no addresses.

use super::{Cores, MAX_ROLES, Program, UniqueArgs};
use crate::memory::{CoreCoord, MemoryError};
use std::collections::HashMap;
use tilework_abi::addr::PageCount;
use tilework_abi::noc::NocXy;
use tilework_abi::{L1_ALIGN, cb};

/// What is wrong with a program.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("program {program}: {kind}")]
pub struct ProgramError {
    /// The program's name.
    pub program: String,
    /// What is wrong.
    pub kind: ProgramErrorKind,
}

/// What is wrong, without the program's name.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ProgramErrorKind {
    /// No core.
    #[error("found 0 cores, expected at least 1")]
    NoCores,
    /// More cores than workers.
    #[error("found {found} cores, expected at most {workers}: the workers of this board")]
    TooManyCores {
        /// Cores asked for.
        found: usize,
        /// Workers of the board.
        workers: usize,
    },
    /// A core that is no worker.
    #[error("core {core} is not a worker of this board; {why}")]
    NotAWorker {
        /// The core.
        core: NocXy,
        /// What is there, or where the workers are.
        why: String,
    },
    /// A logical coordinate that the board does not have.
    #[error("core {core}: expected one of {columns} columns and {rows} rows")]
    OutsideGrid {
        /// The coordinate.
        core: CoreCoord,
        /// Columns of the board.
        columns: u32,
        /// Its rows.
        rows: u32,
    },
    /// A core named twice.
    #[error("core {core} is named twice in {place}")]
    DuplicateCore {
        /// The core.
        core: NocXy,
        /// Where.
        place: String,
    },
    /// No role, or too many.
    #[error("found {found} roles, expected 1 to {MAX_ROLES}")]
    Roles {
        /// Roles.
        found: usize,
    },
    /// A role's core that the program does not have.
    #[error("role {role}: core {core} is not among the program's cores")]
    ForeignCore {
        /// The role's number.
        role: usize,
        /// The core.
        core: NocXy,
    },
    /// A core without a role.
    #[error("core {core} has no role")]
    NoRole {
        /// The core.
        core: NocXy,
    },
    /// A role that runs nothing.
    #[error("role {role}: no kernel, expected one for at least one processor")]
    NoKernel {
        /// The role's number.
        role: usize,
    },
    /// More circular buffers than a tile has.
    #[error("found {found} circular buffers, expected at most {}", cb::COUNT)]
    TooManyCbs {
        /// Circular buffers.
        found: usize,
    },
    /// An index that no circular buffer has.
    #[error("circular buffer index {index}, expected 0 to {}", cb::COUNT - 1)]
    CbIndex {
        /// The index.
        index: u32,
    },
    /// Two circular buffers with one index.
    #[error("circular buffer {index} is defined twice")]
    DuplicateCb {
        /// The index.
        index: u32,
    },
    /// A circular buffer that holds nothing or whose pages are not aligned.
    #[error(
        "circular buffer {index}: found {pages} pages of {page_size} bytes, expected at least 1 page of a multiple of {L1_ALIGN} bytes"
    )]
    CbPages {
        /// The index.
        index: u32,
        /// Pages.
        pages: PageCount,
        /// Bytes of a page.
        page_size: u32,
    },
    /// Argument lists for another number of cores.
    #[error("{set} arguments: found lists for {found} cores, expected {cores}")]
    ArgLists {
        /// The set's name.
        set: &'static str,
        /// Lists.
        found: usize,
        /// Cores of the program.
        cores: usize,
    },
    /// The kernel configuration space is too small.
    #[error(
        "no room in the kernel configuration space for {part}: found an end at byte {end}, expected at most {size}; the program puts there: {contents}"
    )]
    ConfigSpace {
        /// What did not fit.
        part: String,
        /// Where it would end.
        end: u64,
        /// Bytes of the space.
        size: u32,
        /// What is in the space.
        contents: String,
    },
    /// No room for a circular buffer.
    #[error("{error}")]
    CircularBuffer {
        /// Its index.
        index: u32,
        /// What was asked for, and who has the space.
        error: Box<MemoryError>,
    },
    /// A change that the prepared program has no room for.
    #[error("found {found}, expected {expected}")]
    Prepared {
        /// What was set.
        found: String,
        /// What can be.
        expected: String,
    },
    /// A circular buffer that is larger than the buffer that it lies over.
    #[error("circular buffer {index}: {bytes} bytes over buffer {buffer}, which has {room} on each core")]
    CbOverSize {
        /// Its index.
        index: u32,
        /// Its bytes.
        bytes: u64,
        /// The buffer.
        buffer: String,
        /// Bytes of the buffer on a core.
        room: u32,
    },
    /// A circular buffer over a buffer of which a core has nothing.
    #[error("circular buffer {index}: core {core} has nothing of buffer {buffer}, over which it lies")]
    CbOverCore {
        /// Its index.
        index: u32,
        /// The core.
        core: NocXy,
        /// The buffer.
        buffer: String,
    },
    /// A kernel that cannot be placed.
    #[error("{0}")]
    Kernel(String),
}

impl ProgramErrorKind {
    pub(crate) fn of(self, program: &str) -> ProgramError {
        ProgramError { program: program.to_owned(), kind: self }
    }
}

/// See [`Cores::resolve`]; the error does not know the program's name yet.
pub(super) fn resolve(cores: &Cores, workers: &[NocXy]) -> Result<Vec<NocXy>, ProgramError> {
    let fail = |kind: ProgramErrorKind| Err(kind.of("(unnamed)"));
    let list = match cores {
        Cores::All => workers.to_vec(),
        Cores::Count(n) => match workers.get(..*n) {
            Some(first) => first.to_vec(),
            None => return fail(ProgramErrorKind::TooManyCores { found: *n, workers: workers.len() }),
        },
        Cores::List(list) => list.clone(),
    };
    if list.is_empty() {
        return fail(ProgramErrorKind::NoCores);
    }
    let mut seen = std::collections::HashSet::new();
    for &core in &list {
        if !workers.contains(&core) {
            return fail(ProgramErrorKind::NotAWorker { core, why: describe(workers) });
        }
        if !seen.insert(core) {
            return fail(ProgramErrorKind::DuplicateCore { core, place: "the program's cores".into() });
        }
    }
    Ok(list)
}

/// Where the workers are, in words.
fn describe(workers: &[NocXy]) -> String {
    let mut columns: Vec<u8> = workers.iter().map(|c| c.x).collect();
    columns.sort_unstable();
    columns.dedup();
    let columns: Vec<String> = columns.iter().map(u8::to_string).collect();
    let rows = (workers.iter().map(|c| c.y).min(), workers.iter().map(|c| c.y).max());
    let (Some(first), Some(last)) = rows else { return "there are none".into() };
    format!("workers are in columns {} and rows {first} to {last}, dispatch cores excepted", columns.join(","))
}

/// For each core of `cores` the number of its role.
pub(super) fn roles(program: &Program, cores: &[NocXy]) -> Result<Vec<usize>, ProgramErrorKind> {
    if program.roles.is_empty() || program.roles.len() > MAX_ROLES {
        return Err(ProgramErrorKind::Roles { found: program.roles.len() });
    }
    let index: HashMap<NocXy, usize> = cores.iter().enumerate().map(|(i, &c)| (c, i)).collect();
    let mut role_of = vec![None; cores.len()];
    for (number, role) in program.roles.iter().enumerate() {
        if role.kernels.iter().all(Option::is_none) {
            return Err(ProgramErrorKind::NoKernel { role: number });
        }
        for &core in role.cores.as_deref().unwrap_or(cores) {
            let Some(&i) = index.get(&core) else {
                return Err(ProgramErrorKind::ForeignCore { role: number, core });
            };
            if let Some(other) = role_of[i].replace(number) {
                let place =
                    if other == number { format!("role {number}") } else { format!("roles {other} and {number}") };
                return Err(ProgramErrorKind::DuplicateCore { core, place });
            }
        }
    }
    let role = |(i, role): (usize, Option<usize>)| role.ok_or(ProgramErrorKind::NoRole { core: cores[i] });
    role_of.into_iter().enumerate().map(role).collect()
}

/// Checks that every core has the buffers that circular buffers lie over.
pub(super) fn over(program: &Program, cores: &[NocXy]) -> Result<(), ProgramErrorKind> {
    for (&index, over) in &program.cbs_over {
        if let Some(&core) = cores.iter().find(|&&core| !over.is_on(core)) {
            return Err(ProgramErrorKind::CbOverCore { index, core, buffer: over.name.clone() });
        }
    }
    Ok(())
}

/// Checks indices, sizes and numbers of circular buffers and argument lists.
pub(super) fn parts(program: &Program, cores: usize) -> Result<(), ProgramErrorKind> {
    if program.cbs.len() > cb::COUNT as usize {
        return Err(ProgramErrorKind::TooManyCbs { found: program.cbs.len() });
    }
    let mut mask = 0u32;
    for b in &program.cbs {
        let index = b.index;
        if index >= cb::COUNT {
            return Err(ProgramErrorKind::CbIndex { index });
        }
        if mask >> index & 1 != 0 {
            return Err(ProgramErrorKind::DuplicateCb { index });
        }
        mask |= 1 << index;
        if b.pages.get() == 0 || b.page_size == 0 || !b.page_size.is_multiple_of(L1_ALIGN) {
            return Err(ProgramErrorKind::CbPages { index, pages: b.pages, page_size: b.page_size });
        }
    }
    lists(program, cores)
}

/// Checks that the argument lists are for as many cores as the program has.
pub(super) fn lists(program: &Program, cores: usize) -> Result<(), ProgramErrorKind> {
    for (set, args) in super::ArgSet::ALL.into_iter().zip(&program.args) {
        if let UniqueArgs::PerCore(lists) = args
            && lists.len() != cores
        {
            return Err(ProgramErrorKind::ArgLists { set: set.name(), found: lists.len(), cores });
        }
    }
    Ok(())
}
