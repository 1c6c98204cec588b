//! Arrays of the host that it brings to the device in the form that programs take: their elements
//! in another order, as weights of convolutions.
//!
//! An array in the host's memory does not change. What was made of it is kept on the device as long
//! as the array is there, so that later runs and other operations with the same weights find it.

use tilework_driver::HostLink;
use tilework_engine::{Held, Work};
use tilework_ops::{self as ops, Shape, Tensor as Array};
use tilework_runtime::RuntimeError;
use tilework_runtime::tensor::{Tensor, TensorDesc};

use crate::machine::{OnChip, Stopped};
use crate::placed::{Place, Placed, PlacedMark};
use crate::recipe::{Prepared, Recipe};
use crate::record::Stage;

/// What was made of arrays that may still be there.
#[derive(Default)]
pub(crate) struct Keeper(Vec<Kept>);

/// What was made of an array.
struct Kept {
    array: PlacedMark,
    by: Prepared,
    desc: TensorDesc,
    made: Placed,
}

impl Keeper {
    /// What was made of an array before; forgets those of arrays that are gone.
    fn find(&mut self, array: &Placed, by: &Prepared, desc: &TensorDesc) -> Option<Placed> {
        self.0.retain(|kept| !Placed::gone(&kept.array));
        // Which scratch tensor it is does not matter.
        let same = |kept: &&Kept| {
            let of = Prepared { operand: by.operand, scratch: by.scratch, ..kept.by.clone() };
            array.is(&kept.array) && of == *by && kept.desc == *desc
        };
        self.0.iter().find(same).map(|kept| kept.made.clone())
    }
}

impl<C: HostLink> OnChip<C> {
    /// The operands that the host prepares for a recipe, in order.
    pub(crate) fn prepare_all(&mut self, recipe: &Recipe, work: &Work<'_, Placed>) -> Result<Vec<Placed>, Stopped> {
        recipe.prepared.iter().map(|by| self.prepare(by, &recipe.scratch[by.scratch], work)).collect()
    }

    fn prepare(&mut self, by: &Prepared, desc: &TensorDesc, work: &Work<'_, Placed>) -> Result<Placed, Stopped> {
        let operand = work.operands[by.operand];
        if let Some(made) = self.prepared.find(operand, by, desc) {
            let kept = Stage::transfer("kept");
            self.under_way.iter_mut().for_each(|record| record.stages.push(kept.clone()));
            return Ok(made);
        }
        let array = match operand.place() {
            Place::Host(array) => gathered(array, by, &desc.shape)?,
            Place::Device(tensor) => gathered(&self.read(tensor)?, by, &desc.shape)?,
        };
        let made = self.put(&array, desc, "prepared")?;
        self.prepared.0.push(Kept { array: operand.mark(), by: by.clone(), desc: desc.clone(), made: made.clone() });
        Ok(made)
    }

    /// The scratch tensors of a recipe: new memory, or what the host has prepared.
    pub(crate) fn create_scratch(
        &mut self,
        recipe: &Recipe,
        ready: &[Placed],
    ) -> Result<(Vec<Tensor>, Vec<Placed>), RuntimeError> {
        let prepared = |i: usize| recipe.prepared.iter().zip(ready).find(|(by, _)| by.scratch == i);
        let all = recipe.scratch.iter().enumerate().map(|(i, desc)| {
            let there = prepared(i).and_then(|(_, placed)| Some((placed.on_device()?.clone(), placed.clone())));
            there.map_or_else(|| self.create(desc, "scratch"), Ok)
        });
        Ok(all.collect::<Result<Vec<_>, _>>()?.into_iter().unzip())
    }
}

/// Elements of an array as a recipe says.
fn gathered(array: &Array, by: &Prepared, dims: &[usize]) -> Result<Array, Stopped> {
    let size = array.dtype().bytes().unwrap_or(1);
    let (bytes, mut made) = (array.to_le_bytes(), Vec::with_capacity(array.bytes()));
    let count: usize = dims.iter().product();
    let mut at = vec![0; dims.len()];
    let mut from = by.base;
    for _ in 0..count {
        let first = usize::try_from(from).unwrap_or(usize::MAX).saturating_mul(size);
        let element = bytes.get(first..first.saturating_add(size));
        let missing = || Stopped::Reason(tilework_engine::Reason::Value("weights of other sides".into()));
        made.extend_from_slice(element.ok_or_else(missing)?);
        for k in (0..dims.len()).rev() {
            at[k] += 1;
            from += by.steps[k];
            if at[k] < dims[k] {
                break;
            }
            from -= by.steps[k] * dims[k] as i64;
            at[k] = 0;
        }
    }
    let stopped = |reason| {
        let operands = ops::Operands::default();
        Stopped::Reason(tilework_engine::Reason::Op(ops::OpError { op: "conv2d", operands, reason }))
    };
    let shape = Shape::new(dims.to_vec()).map_err(stopped)?;
    Array::from_le_bytes(array.dtype(), shape, &made)
        .map_err(|error| Stopped::Reason(tilework_engine::Reason::Op(error)))
}
