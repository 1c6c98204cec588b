//! When two programs have the same commands but for words that a launch patches.
//!
//! What shapes the bytes: the cores and their order, the roles with their cores and kernels (by
//! content, so that a kernel that was loaded twice is one), circular buffers, the number of
//! semaphores, the length of every argument list, and the number for profilers. The values of
//! arguments and semaphores, and names, are not among it. Nor is what circular buffers lie over:
//! their addresses are patched, and each program that is found is checked for what its own buffers
//! must satisfy ([`Program::check_values`], [`Program::place_cbs`]).

use crate::elf::KernelImage;
use crate::program::{ArgSet, Cores, Program, Role};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// A hash of what shapes the bytes; the same in every process.
pub(super) fn hash(program: &Program) -> u64 {
    let mut h = DefaultHasher::new();
    match &program.cores {
        Cores::All => 0u8.hash(&mut h),
        Cores::Count(n) => n.hash(&mut h),
        Cores::List(list) => (list.len(), list.first(), list.last()).hash(&mut h),
    }
    for role in &program.roles {
        role.cores.as_ref().map(Vec::len).hash(&mut h);
        for kernel in &role.kernels {
            kernel.as_ref().map(|kernel| kernel.digest()).hash(&mut h);
        }
    }
    for b in &program.cbs {
        (b.index, b.page_size, b.pages.get()).hash(&mut h);
    }
    program.semaphores.len().hash(&mut h);
    lengths(program).hash(&mut h);
    program.host_assigned_id.hash(&mut h);
    h.finish()
}

/// Words of each set's unique arguments, padded to the longest list, and of its common ones.
fn lengths(program: &Program) -> [(usize, usize); 3] {
    ArgSet::ALL.map(|set| (program.longest(set), program.common_args[set.index()].len()))
}

/// Whether both programs have the same commands.
pub(super) fn same(a: &Program, b: &Program) -> bool {
    a.cores == b.cores
        && same_roles(&a.roles, &b.roles)
        && a.cbs == b.cbs
        && a.semaphores.len() == b.semaphores.len()
        && a.host_assigned_id == b.host_assigned_id
        && lengths(a) == lengths(b)
}

/// Whether both have the same names in reports.
pub(super) fn same_names(a: &Program, b: &Program) -> bool {
    a.name == b.name && a.names == b.names && a.roles.iter().zip(&b.roles).all(|(a, b)| a.name == b.name)
}

fn same_roles(a: &[Role], b: &[Role]) -> bool {
    a.len() == b.len()
        && a.iter().zip(b).all(|(a, b)| a.cores == b.cores && a.kernels.iter().zip(&b.kernels).all(|(a, b)| is(a, b)))
}

/// Whether both are the same kernel, or none.
pub(super) fn is(a: &Option<Arc<KernelImage>>, b: &Option<Arc<KernelImage>>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => Arc::ptr_eq(a, b) || a.same(b),
        (None, None) => true,
        _ => false,
    }
}
