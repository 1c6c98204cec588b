//! Who carries an operation out, and how: by the descriptions of its tensors alone.

use std::collections::BTreeMap;

use tilework_engine::{Outline, Rounding};
use tilework_model::ttnn::{Op, Program, TensorRef};
use tilework_ops::DType;
use tilework_runtime::DeviceConfig;
use tilework_runtime::tensor::{Layout, TensorDesc, TensorSpec};

use crate::describe::{self, Wanted};
use crate::families;
use crate::memory::l1_left;
use crate::placed::{Place, Placed};
use crate::recipe::{Recipe, Site, Task};
use crate::record::Carried;
use crate::shards;

/// Who would carry out the operations of a program on a device that is opened so, with the L1 that
/// tensors of its program, one of the file's `programs`, leave then, where results are rounded so.
/// Where a program is called from is not looked at.
pub fn forecast<'o, 'm>(
    config: &DeviceConfig,
    programs: &[Program],
    outline: &'o [Outline<'m>],
    rounding: Rounding,
) -> Vec<(&'o Outline<'m>, Carried)> {
    let mut site = Site::of(config);
    let mut left: BTreeMap<usize, Vec<u32>> = BTreeMap::new();
    let carried = outline.iter().filter(|outline| outline.carried);
    let foreseen = carried.map(|outline| {
        let (program, operation) = (outline.place.program, outline.place.operation);
        let of = |program| programs.get(program).map_or_else(Vec::new, |program| l1_left(config, program, rounding));
        let left = left.entry(program).or_insert_with(|| of(program));
        site.l1 = left.get(operation).copied().unwrap_or(site.l1);
        (outline, foreseen(outline, &site, rounding))
    });
    foreseen.collect()
}

/// The recipe of an operation and what its results are, or why the host computes it. Without
/// operands, one cannot be brought to the device; `on_host`: which of them lie in the host's
/// memory.
pub(crate) fn plan(
    op: &Op,
    (operands, on_host): (Option<&[&TensorSpec]>, &[bool]),
    results: &[(&TensorRef, DType)],
    site: &Site,
) -> Result<(Recipe, Vec<TensorDesc>), Carried> {
    let absent = |why: String| Carried::Host(why);
    let mut descs = Vec::new();
    for &(tensor, dtype) in results {
        match describe::wanted(&tensor.desc, dtype).map_err(absent)? {
            Wanted::Host => return Err(Carried::Stated),
            Wanted::Device(desc) => descs.push(desc),
        }
    }
    let flat = |spec: &TensorSpec| shards::flat(spec).map(|(_, flat)| flat).map_err(absent);
    let specs = descs.iter().map(|desc| flat(&TensorSpec::new(desc).map_err(|e| absent(e.to_string()))?));
    let specs = specs.collect::<Result<Vec<_>, _>>()?;
    let operands = operands.ok_or_else(|| absent("an operand that the device has no form for".into()))?;
    let operands = operands.iter().map(|spec| flat(spec)).collect::<Result<Vec<_>, _>>()?;
    let operands: Vec<&TensorSpec> = operands.iter().collect();
    if let Op::Constant(_) = op {
        return Err(Carried::Moved);
    }
    let task = Task { operands: &operands, on_host, results: &specs, site };
    Ok((families::plan(op, &task).map_err(absent)?, descs))
}

/// Whether two tensors differ in their memory only, and pages can be moved from one to the other.
pub(crate) fn moves_only(from: &TensorSpec, to: &TensorSpec) -> bool {
    let flat = |spec| shards::flat(spec).ok().map(|(_, flat)| flat);
    flat(from).is_some_and(|from| flat(to) == Some(from))
}

/// How an array of the host is brought to the device: in rows.
pub(crate) fn rows_of(dtype: DType, dims: &[usize]) -> TensorDesc {
    TensorDesc::new(dims.to_vec()).dtype(describe::held(dtype)).layout(Layout::RowMajor)
}

/// What a tensor is on the device, or will be when it is brought there.
pub(crate) fn spec_of(placed: &Placed) -> Option<TensorSpec> {
    match placed.place() {
        Place::Device(tensor) => Some(tensor.spec.clone()),
        Place::Host(array) => TensorSpec::new(&rows_of(array.dtype(), array.shape().dims())).ok(),
    }
}

/// Who will carry an operation out.
fn foreseen(outline: &Outline<'_>, site: &Site, rounding: Rounding) -> Carried {
    let kept = |tensor: &TensorRef| rounding.kept(DType::from(tensor.desc.dtype()));
    let on_device = |tensor: &&TensorRef| match describe::wanted(&tensor.desc, kept(tensor)) {
        Ok(Wanted::Device(desc)) => TensorSpec::new(&desc).ok(),
        Ok(Wanted::Host) | Err(_) => None,
    };
    if outline.passes {
        let first = |list: &[&TensorRef]| list.first().and_then(on_device);
        match (first(&outline.reads), first(&outline.writes)) {
            (None, None) => return Carried::Stated,
            (None, _) | (_, None) => return Carried::Moved,
            (Some(from), Some(to)) if from == to => return Carried::Moved,
            (Some(from), Some(to)) if moves_only(&from, &to) => return Carried::Chip,
            _ => {}
        }
    }
    let brought = |tensor: &&TensorRef| {
        let lengths = tensor.desc.shape.iter().map(|&n| usize::try_from(n));
        let dims = lengths.collect::<Result<Vec<_>, _>>().ok()?;
        TensorSpec::new(&rows_of(kept(tensor), &dims)).ok()
    };
    let reads: Option<Vec<TensorSpec>> =
        outline.reads.iter().map(|tensor| on_device(tensor).or_else(|| brought(tensor))).collect();
    let operands: Option<Vec<&TensorSpec>> = reads.as_ref().map(|specs| specs.iter().collect());
    let on_host: Vec<bool> = outline.reads.iter().map(|tensor| on_device(tensor).is_none()).collect();
    let results: Vec<_> = outline.writes.iter().map(|&tensor| (tensor, kept(tensor))).collect();
    match plan(&outline.operation.op, (operands.as_deref(), &on_host), &results, site) {
        Ok(_) => Carried::Chip,
        Err(carried) => carried,
    }
}
