//! Operations of all devices whose work programs of each chip do, but for what chips exchange: an
//! RMS norm of rows that lie on several chips. Each chip has the mean of the squares of its part of
//! a row, the host the mean of all of these, and each chip divides its part by the root.

use tilework_driver::HostLink;
use tilework_engine::{How, Reason, Together, Value, Wanted, Work};
use tilework_model::ttnn::ops::normalization::DistributedRMSNormOp;
use tilework_ops::{DType, Tensor as Array};
use tilework_runtime::tensor::{TensorDesc, TensorSpec};

use crate::chips::{Chips, PlacedOn};
use crate::describe::{self, Wanted as Place};
use crate::families::{in_any_form, split};
use crate::machine::{OnChip, Stopped};
use crate::placed::{self, Placed};
use crate::plan::{rows_of, spec_of};
use crate::recipe::{Planned, Recipe, Task};
use crate::shards;

impl<C: HostLink> OnChip<C> {
    /// The recipe for a result of these tensors, in interleaved DRAM.
    fn recipe(&mut self, operands: &[Placed], result: &TensorDesc, plan: impl Fn(&Task<'_>) -> Planned) -> Planned {
        self.look_at_l1();
        let flat = |spec: &TensorSpec| shards::flat(spec).map(|(_, flat)| flat);
        let specs = operands.iter().map(|placed| flat(&spec_of(placed).ok_or("an operand without a form")?));
        let specs = specs.collect::<Result<Vec<_>, String>>()?;
        let made = [flat(&TensorSpec::new(result).map_err(|e| e.to_string())?)?];
        let task = Task { operands: &specs.iter().collect::<Vec<_>>(), on_host: &[], results: &made, site: &self.site };
        in_any_form(&task, plan)
    }

    /// The tensor that a recipe makes of these.
    fn made(
        &mut self,
        recipe: &Recipe,
        desc: TensorDesc,
        operands: &[Placed],
        (work, device): (&Together<'_, PlacedOn>, usize),
    ) -> Result<Placed, Stopped> {
        let (event, results, how) = (work.event, work.results.clone(), How::Pass(DType::F32));
        let work = Work { event, device, reads: &[], operands: operands.iter().collect(), results, how };
        let mut made = self.follow(recipe, &[desc], &work)?;
        made.pop().ok_or_else(|| Stopped::Reason(Reason::Value("no result".into())))
    }
}

/// The tensors of one device.
struct Own {
    /// The part, and what is added to it.
    part: Vec<Placed>,
    weight: Option<Placed>,
}

/// The norm, or nothing if the chips have no programs for it.
pub(crate) fn rms_norm<C: HostLink>(
    chips: &mut Chips<C>,
    op: &DistributedRMSNormOp,
    work: &Together<'_, PlacedOn>,
) -> Result<Option<Vec<Value<PlacedOn>>>, Reason> {
    let (devices, axis) = (work.mesh.devices(), op.cluster_axis as usize);
    let [Wanted { tensor, dtype, .. }] = work.results[..] else { return Ok(None) };
    let Ok(Place::Device(result)) = describe::wanted(&tensor.desc, dtype) else { return Ok(None) };
    let Some((_, rows)) = result.shape.split_last().filter(|_| axis < 2 && chips.each().count() == devices) else {
        return Ok(None);
    };
    let squares = rows_of(DType::F32, &[rows, &[1]].concat());
    let given = [op.residual.is_some(), op.weight.is_some()];
    let Some(own) = (0..devices).map(|device| own(work, device, given)).collect::<Option<Vec<_>>>() else {
        return Ok(None);
    };
    let mut means = Vec::with_capacity(devices);
    for (device, own) in own.iter().enumerate() {
        let chip = chips.on(device)?;
        let Ok(recipe) = chip.recipe(&own.part, &squares, |task| split::mean_squares(given[0], task)) else {
            return Ok(None);
        };
        let made = chip.made(&recipe, squares.clone(), &own.part, (work, device));
        let array = made.and_then(|made| chip.array(&made, None)).map_err(|why| chip.stopped(why))?;
        means.push(array.to_f32());
    }
    let mut results = Vec::with_capacity(devices);
    let groups = work.mesh.groups(axis);
    for (device, own) in own.into_iter().enumerate() {
        let group = groups.iter().find(|group| group.contains(&device)).map_or(&[][..], Vec::as_slice);
        let of_all = |row: usize| group.iter().map(|&of| means[of][row]).sum::<f32>() / group.len() as f32;
        let mean: Vec<f32> = (0..means[device].len()).map(of_all).collect();
        let shape = tilework_ops::Shape::new([rows, &[1]].concat()).map_err(|e| Reason::Value(e.to_string()))?;
        let mean = Array::from_f32(DType::F32, shape, &mean)?;
        let chip = chips.on(device)?;
        let mean = Placed::new(placed::Place::Host(mean), &chip.freed);
        let operands: Vec<Placed> = own.part.into_iter().chain(own.weight).chain([mean]).collect();
        let plan = |task: &Task<'_>| split::by_mean_squares(op.epsilon, given, task);
        let recipe = chip.recipe(&operands, &result, plan).map_err(Reason::Unsupported)?;
        let made = chip.made(&recipe, result.clone(), &operands, (work, device));
        results.push(PlacedOn::new(device, made.map_err(|why| chip.stopped(why))?));
    }
    Ok(Value::shards(results).map(|value| vec![value]))
}

/// The operands that lie on a device, or in the host's memory.
fn own(work: &Together<'_, PlacedOn>, device: usize, [residual, weight]: [bool; 2]) -> Option<Own> {
    let on = |i: usize| work.operands.get(i).and_then(|value| value.on(device).own(device)).cloned();
    let added = residual.then(|| on(1 + usize::from(weight)));
    let weight = if weight { Some(on(1)?) } else { None };
    let mut part = vec![on(0)?];
    if let Some(added) = added {
        part.push(added?);
    }
    Some(Own { part, weight })
}
