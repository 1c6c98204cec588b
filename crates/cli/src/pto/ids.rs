//! `tilework pto ids`: the cores of a chip and their clusters.

use super::args::IdsArgs;
use crate::args::ReportForm;
use crate::failure::{Failure, Outcome};
use crate::print;
use serde::Serialize;
use tilework_pto::Arch;
use tilework_pto::ids::{self, CoreEntry, CoreKind, IdError, PhysicalCube, PhysicalVector};

/// A core in the JSON form.
#[derive(Serialize)]
struct Core {
    core_id: u32,
    kind: &'static str,
    /// None for a Cube.
    subblock: Option<u32>,
    cluster: u32,
}

/// Prints the cores.
pub fn list(args: &IdsArgs) -> Outcome<()> {
    let arch = args.arch.value();
    let entries = match args.core {
        None => ids::table(arch),
        Some(core_id) => {
            check(arch, core_id, args.subblock).map_err(|error| Failure::usage(error.to_string()))?;
            ids::table(arch).into_iter().filter(|entry| entry.core_id == core_id).collect()
        }
    };
    let form = if args.json { ReportForm::Json } else { ReportForm::Text };
    let cores: Vec<_> = entries.iter().map(core).collect();
    print::report(&cores, form, |out| {
        writeln!(
            out,
            "{} of {arch}",
            if args.core.is_some() { "core".to_owned() } else { format!("{} cores", cores.len()) }
        )?;
        writeln!(out, "  core  kind    subblock  cluster")?;
        for Core { core_id, kind, subblock, cluster } in &cores {
            let subblock = subblock.map_or("-".to_owned(), |subblock| subblock.to_string());
            writeln!(out, "  {core_id:>4}  {kind:<6}  {subblock:>8}  {cluster:>7}")?;
        }
        Ok(())
    })
}

fn core(entry: &CoreEntry) -> Core {
    let CoreEntry { core_id, kind, cluster } = *entry;
    Core { core_id, kind: kind.name(), subblock: kind.subblock(), cluster }
}

/// Is the core what it is taken for?
fn check(arch: Arch, core_id: u32, subblock: Option<u32>) -> Result<(), IdError> {
    match (subblock, CoreKind::of(arch, core_id)?) {
        (Some(subblock), _) => PhysicalVector::new(arch, core_id, subblock).map(drop),
        (None, CoreKind::Cube) => PhysicalCube::new(arch, core_id).map(drop),
        (None, CoreKind::Vector { .. }) => Ok(()),
    }
}
