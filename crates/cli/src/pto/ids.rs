//! `tilework pto ids`: the cores of a chip and their clusters.

use super::args::IdsArgs;
use crate::answer::Answer;
use crate::failure::{Failure, Outcome};
use serde::Serialize;
use std::io::Write;
use tilework_pto::Arch;
use tilework_pto::ids::{self, CoreEntry, CoreKind, IdError, PhysicalCube, PhysicalVector};

/// The cores. The fields are those of the JSON form, in their order.
#[derive(Serialize)]
struct ClusterCores {
    arch: &'static str,
    cores: Vec<ClusterCore>,
}

/// A core in the JSON form.
#[derive(Serialize)]
struct ClusterCore {
    core_id: u32,
    kind: &'static str,
    /// None for a Cube.
    subblock: Option<u32>,
    cluster: u32,
}

/// Lists the cores.
pub fn list(args: &IdsArgs) -> Outcome<Answer> {
    let arch = args.arch.value;
    let entries = match args.core {
        None => ids::table(arch),
        Some(core_id) => {
            let refused = |error: IdError| Failure::usage(error.to_string()).with("option", "--core");
            check(arch, core_id, args.subblock).map_err(refused)?;
            ids::table(arch).into_iter().filter(|entry| entry.core_id == core_id).collect()
        }
    };
    let cores = ClusterCores { arch: args.arch.name, cores: entries.iter().map(core).collect() };
    let one = args.core.is_some();
    Ok(Answer::new(cores, move |cores, out| text(cores, one, out)))
}

fn text(cores: &ClusterCores, one: bool, out: &mut dyn Write) -> std::io::Result<()> {
    let ClusterCores { arch, cores } = cores;
    let count = if one { "core".to_owned() } else { format!("{} cores", cores.len()) };
    writeln!(out, "{count} of {arch}\n  core  kind    subblock  cluster")?;
    for ClusterCore { core_id, kind, subblock, cluster } in cores {
        let subblock = subblock.map_or("-".to_owned(), |subblock| subblock.to_string());
        writeln!(out, "  {core_id:>4}  {kind:<6}  {subblock:>8}  {cluster:>7}")?;
    }
    Ok(())
}

fn core(entry: &CoreEntry) -> ClusterCore {
    let CoreEntry { core_id, kind, cluster } = *entry;
    ClusterCore { core_id, kind: kind.name(), subblock: kind.subblock(), cluster }
}

/// Checks that the core has the subblock that was given.
fn check(arch: Arch, core_id: u32, subblock: Option<u32>) -> Result<(), IdError> {
    match (subblock, CoreKind::of(arch, core_id)?) {
        (Some(subblock), _) => PhysicalVector::new(arch, core_id, subblock).map(drop),
        (None, CoreKind::Cube) => PhysicalCube::new(arch, core_id).map(drop),
        (None, CoreKind::Vector { .. }) => Ok(()),
    }
}
