//! Tokens of a mixture of experts between the devices of a mesh: to the devices that have their
//! experts, and back (tt-mlir `ccl.fbs`; the definitions are those of `ttnn.all_to_all_dispatch`,
//! `ttnn.all_to_all_combine` and `ttnn.moe_expert_token_remap`).
//!
//! Tokens travel among the devices of a group, those that differ only in one coordinate of the
//! mesh. Each device knows which device has which expert: a flag for each expert and device, whose
//! devices are those of the mesh in their order, or those of a group.
//!
//! Rows of a result that no device fills are garbage on the device. Here they are zeros.

use crate::error::{OpError, Reason, Within};
use crate::mesh::Mesh;
use crate::tensor::{Native, Tensor, with_storage};
use crate::{DType, Shape, concat};

/// Rows of a table in a new order; zeros where there is none.
fn rows(table: &Tensor, width: usize, order: &[Option<usize>], shape: Shape) -> Tensor {
    fn pick<T: Native>(values: &[T], width: usize, order: &[Option<usize>]) -> crate::Storage {
        let mut picked = vec![T::default(); order.len() * width];
        for (to, from) in picked.chunks_mut(width.max(1)).zip(order) {
            if let Some(row) = from {
                to.copy_from_slice(&values[row * width..(row + 1) * width]);
            }
        }
        T::store(picked)
    }
    Tensor::wrap(table.dtype(), shape, with_storage!(table.storage(), |values| pick(values, width, order)))
}

/// Which device has an expert.
struct Owners<'a> {
    op: &'static str,
    mapping: &'a Tensor,
    flags: Vec<bool>,
    experts: usize,
    columns: usize,
}

impl<'a> Owners<'a> {
    /// Reads the flags `[1, 1, experts, devices]`.
    fn of(op: &'static str, mapping: &'a Tensor) -> Result<Self, OpError> {
        let [1, 1, experts, columns] = *mapping.shape().dims() else {
            return Err(Reason::shape(mapping.shape(), "[1 x 1 x experts x devices]").of(op, &[mapping]));
        };
        let flags = mapping.to_f32().into_iter().map(|flag| flag != 0.0).collect();
        Ok(Self { op, mapping, flags, experts, columns })
    }

    /// The column of a device, which is the `place`th of a group of `count`.
    fn column(&self, mesh: Mesh, device: usize, (place, count): (usize, usize)) -> Result<usize, OpError> {
        match self.columns {
            all if all == mesh.devices() => Ok(device),
            group if group == count => Ok(place),
            _ => {
                let wanted = format!("{} devices", mesh.devices());
                Err(Reason::shape(self.mapping.shape(), wanted).of(self.op, &[self.mapping]))
            }
        }
    }

    /// The experts of the device in that column, in order.
    fn experts_in(&self, column: usize) -> Vec<usize> {
        (0..self.experts).filter(|expert| self.flags[expert * self.columns + column]).collect()
    }

    /// An expert's number from a tensor.
    fn expert(&self, number: i64) -> Result<usize, OpError> {
        usize::try_from(number)
            .ok()
            .filter(|&expert| expert < self.experts)
            .ok_or_else(|| Reason::Index { index: number, bound: self.experts }.of(self.op, &[self.mapping]))
    }
}

/// Checks that there is one tensor for each device, all of one shape.
fn one_each(op: &'static str, mesh: Mesh, axis: usize, lists: &[&[Tensor]]) -> Result<Vec<Vec<usize>>, OpError> {
    let mut groups = Vec::new();
    for shards in lists {
        groups = mesh.checked(op, shards, axis)?;
    }
    Ok(groups)
}

/// How the tokens of a group's devices lie in a result: `outer` blocks, in each the tokens of all
/// devices one after the other.
#[derive(Clone, Copy)]
struct Order {
    outer: usize,
    devices: usize,
    tokens: usize,
}

impl Order {
    /// The order in which tokens `[b, s, 1, ..]` (or `[b, 1, s, ..]`) become `[1, x, y, ..]`: one
    /// device after the other along the batch, or along the sequence if the batch stays as it is.
    fn of(op: &'static str, input: &Tensor, devices: usize, out: &Shape) -> Result<Self, OpError> {
        let ([b, s0, s1, _], [1, x, y, _]) = (input.shape().dims(), out.dims()) else {
            return Err(Reason::shape(input.shape(), "four dimensions, as the result has").of(op, &[input]));
        };
        let tokens = b * s0 * s1;
        if x * y != tokens * devices {
            let wanted = format!("as many tokens as {devices} devices have, {}", tokens * devices);
            return Err(Reason::shape(out, wanted).of(op, &[input]));
        }
        let along_sequence = *x == *b && *b > 1;
        Ok(Self { outer: if along_sequence { *b } else { 1 }, devices, tokens })
    }

    /// Device and its token, for each row of the result.
    fn rows(self) -> impl Iterator<Item = (usize, usize)> {
        let each = self.tokens / self.outer.max(1);
        let Self { outer, devices, .. } = self;
        (0..outer).flat_map(move |o| (0..devices).flat_map(move |d| (0..each).map(move |t| (d, o * each + t))))
    }
}

/// Shapes of the results of [`all_to_all_dispatch`].
#[derive(Debug, Clone)]
pub struct Dispatched {
    /// Tokens, `[1, b * devices, s, hidden]` or `[1, b, s * devices, hidden]`.
    pub tokens: Shape,
    /// The same with the experts of each token in the last dimension.
    pub metadata: Shape,
}

/// Each device gets the tokens of its group that chose one of its experts, and the choices of all
/// tokens. Tokens are `[b, s, 1, hidden]`, their experts `[b, s, 1, k]` on each device.
pub fn all_to_all_dispatch(
    input: &[Tensor],
    chosen: &[Tensor],
    mapping: &Tensor,
    (mesh, axis): (Mesh, usize),
    shapes: &Dispatched,
) -> Result<(Vec<Tensor>, Vec<Tensor>), OpError> {
    const OP: &str = "all_to_all_dispatch";
    let owners = Owners::of(OP, mapping)?;
    let groups = one_each(OP, mesh, axis, &[input, chosen])?;
    let (mut tokens, mut metadata) = (input.to_vec(), chosen.to_vec());
    for group in groups {
        let order = Order::of(OP, &input[0], group.len(), &shapes.tokens)?;
        let (all, choices) = (joined(input, &group)?, joined(chosen, &group)?);
        let (width, k) = (all.shape().last(), choices.shape().last());
        let experts = numbers(&owners, &choices)?;
        let at = |(device, token): (usize, usize)| device * order.tokens + token;
        if choices.elements() != order.tokens * group.len() * k {
            return Err(Reason::shape(chosen[0].shape(), input[0].shape().to_string()).of(OP, &[&input[0], &chosen[0]]));
        }
        let gathered: Vec<Option<usize>> = order.rows().map(|row| Some(at(row))).collect();
        let every = fitting(OP, &shapes.metadata, gathered.len() * k, &choices)?;
        for (place, &device) in group.iter().enumerate() {
            let own = owners.experts_in(owners.column(mesh, device, (place, group.len()))?);
            let wanted = |row: usize| experts[row * k..(row + 1) * k].iter().any(|expert| own.contains(expert));
            let sent: Vec<Option<usize>> = order.rows().map(at).map(|row| wanted(row).then_some(row)).collect();
            let shape = fitting(OP, &shapes.tokens, sent.len() * width, &all)?;
            tokens[device] = rows(&all, width, &sent, shape);
            metadata[device] = rows(&choices, k, &gathered, every.clone());
        }
    }
    Ok((tokens, metadata))
}

/// The tensors of a group, one after the other.
fn joined(shards: &[Tensor], group: &[usize]) -> Result<Tensor, OpError> {
    concat(&group.iter().map(|&device| &shards[device]).collect::<Vec<_>>(), 0)
}

/// The experts' numbers in a tensor.
fn numbers(owners: &Owners<'_>, choices: &Tensor) -> Result<Vec<usize>, OpError> {
    choices.to_i64().into_iter().map(|number| owners.expert(number)).collect()
}

/// A stated shape, if it has that many elements.
fn fitting(op: &'static str, shape: &Shape, elements: usize, of: &Tensor) -> Result<Shape, OpError> {
    match shape.elements() == elements {
        true => Ok(shape.clone()),
        false => Err(Reason::shape(shape, format!("{elements} elements")).of(op, &[of])),
    }
}

/// [`all_to_all_dispatch`] with scores sent along. Tokens are `[1, 1, m, hidden]` on each device,
/// choices and scores `[1, 1, m, k]`. The mapping is `[devices, experts]`, each element the number
/// of the device that has the expert. Results are `[1, tokens of the group, ..]`.
pub fn all_to_all_dispatch_metadata(
    input: &[Tensor],
    chosen: &[Tensor],
    scores: &[Tensor],
    mapping: &Tensor,
    (mesh, axis): (Mesh, usize),
) -> Result<[Vec<Tensor>; 3], OpError> {
    const OP: &str = "all_to_all_dispatch_metadata";
    let [devices, experts] = *mapping.shape().dims() else {
        return Err(Reason::shape(mapping.shape(), "[devices x experts]").of(OP, &[mapping]));
    };
    if devices != mesh.devices() {
        return Err(Reason::shape(mapping.shape(), format!("[{} x experts]", mesh.devices())).of(OP, &[mapping]));
    }
    let owner = mapping.to_i64();
    let groups = one_each(OP, mesh, axis, &[input, chosen, scores])?;
    let mut results = [input.to_vec(), chosen.to_vec(), scores.to_vec()];
    for group in groups {
        let lists = [joined(input, &group)?, joined(chosen, &group)?, joined(scores, &group)?];
        let [all, choices, weights] = &lists;
        let k = choices.shape().last();
        let count = choices.elements() / k.max(1);
        let flat = |t: &Tensor| Shape::new([1, count, t.shape().last()]).within(OP, &[t]);
        if all.elements() != count * all.shape().last() || weights.shape() != choices.shape() {
            return Err(Reason::shape(chosen[0].shape(), "a row for each token").of(OP, &[all, choices, weights]));
        }
        let numbers = choices.to_i64();
        if let Some(&index) = numbers.iter().find(|&&n| usize::try_from(n).map_or(true, |n| n >= experts)) {
            return Err(Reason::Index { index, bound: experts }.of(OP, &[choices]));
        }
        for &device in &group {
            let has = |&expert: &i64| owner[device * experts + expert as usize] == device as i64;
            let sent: Vec<Option<usize>> =
                (0..count).map(|row| numbers[row * k..(row + 1) * k].iter().any(has).then_some(row)).collect();
            results[0][device] = rows(all, all.shape().last(), &sent, flat(all)?);
            results[1][device] = choices.reshaped(flat(choices)?);
            results[2][device] = weights.reshaped(flat(weights)?);
        }
    }
    Ok(results)
}

/// Each device gets back its own tokens from its experts' devices: `[k, b, s, hidden]`, a row for
/// each choice of each token. The experts' results are `[experts of the device, x, y, hidden]` for
/// the tokens of the whole group, the choices `[1, x, y, k]`. The result is a part of the group's
/// tokens along the batch (`shard_dim` 1) or the sequence (2).
pub fn all_to_all_combine(
    input: &[Tensor],
    metadata: &[Tensor],
    mapping: &Tensor,
    (mesh, axis): (Mesh, usize),
    shard_dim: usize,
) -> Result<Vec<Tensor>, OpError> {
    const OP: &str = "all_to_all_combine";
    let owners = Owners::of(OP, mapping)?;
    let groups = one_each(OP, mesh, axis, &[input, metadata])?;
    let operands = [&input[0], &metadata[0], mapping];
    let ([local, x, y, hidden], [1, mx, my, k]) = (input[0].shape().dims(), metadata[0].shape().dims()) else {
        return Err(Reason::shape(input[0].shape(), "[experts x b x s x hidden]").of(OP, &operands));
    };
    let (local, x, y, hidden, k) = (*local, *x, *y, *hidden, *k);
    if (x, y) != (*mx, *my) {
        return Err(Reason::shape(metadata[0].shape(), format!("[1 x {x} x {y} x k]")).of(OP, &operands));
    }
    let mut results = input.to_vec();
    for group in groups {
        let count = group.len();
        let (b, s) = match shard_dim {
            1 if x.is_multiple_of(count) => (x / count, y),
            2 if y.is_multiple_of(count) => (x, y / count),
            _ => {
                let why = format!("{shard_dim}: {x} by {y} tokens for {count} devices");
                return Err(Reason::attribute("output_shard_dim", why).of(OP, &operands));
            }
        };
        let all = joined(input, &group)?;
        // The row of an expert's results within those of the group.
        let mut first = vec![None; owners.experts];
        for (place, &device) in group.iter().enumerate() {
            let own = owners.experts_in(owners.column(mesh, device, (place, count))?);
            if own.len() != local {
                let why = format!("{} experts of device {device}", own.len());
                return Err(Reason::shape(input[0].shape(), why).of(OP, &operands));
            }
            own.iter().enumerate().for_each(|(at, &expert)| first[expert] = Some((place * local + at) * x * y));
        }
        for (place, &device) in group.iter().enumerate() {
            let experts = numbers(&owners, &metadata[device])?;
            let token = |at: usize| match shard_dim {
                1 => place * b * s + at,
                _ => at / s * y + place * s + at % s,
            };
            let choice = |(k_at, at): (usize, usize)| {
                let token = token(at);
                first[experts[token * k + k_at]].map(|first| first + token)
            };
            let order: Vec<Option<usize>> =
                (0..k).flat_map(|k_at| (0..b * s).map(move |at| (k_at, at))).map(choice).collect();
            results[device] = rows(&all, hidden, &order, Shape::new([k, b, s, hidden]).within(OP, &operands)?);
        }
    }
    Ok(results)
}

/// The scores of a device's own experts, zeros for tokens that did not choose them, and a flag for
/// each run of `chunk` tokens and expert, whether any of the run chose it. Scores are
/// `[1, b, s, experts]`, choices `[1, b, s, k]`; the results are `[1, b, s, experts of the device]`
/// and `[1, 1, runs, experts of the device]`, the flags in type `flag`.
pub fn expert_token_remap(
    scores: &Tensor,
    mapping: &Tensor,
    metadata: &Tensor,
    (mesh, device): (Mesh, usize),
    chunk: usize,
    flag: DType,
) -> Result<(Tensor, Tensor), OpError> {
    const OP: &str = "moe_expert_token_remap";
    let owners = Owners::of(OP, mapping)?;
    let operands = [scores, mapping, metadata];
    let [1, b, s, experts] = *scores.shape().dims() else {
        return Err(Reason::shape(scores.shape(), "[1 x b x s x experts]").of(OP, &operands));
    };
    let k = metadata.shape().last();
    if experts != owners.experts || metadata.elements() != b * s * k || chunk == 0 {
        let wanted = format!("{b} by {s} tokens with their experts");
        return Err(Reason::shape(metadata.shape(), wanted).of(OP, &operands));
    }
    let chosen = numbers(&owners, metadata)?;
    let own = owners.experts_in(owners.column(mesh, device, (device, mesh.devices()))?);
    let mut order = Vec::with_capacity(b * s * own.len());
    let mut any = vec![0_i64; (b * s).div_ceil(chunk) * own.len()];
    for token in 0..b * s {
        for (at, expert) in own.iter().enumerate() {
            let chose = chosen[token * k..(token + 1) * k].contains(expert);
            order.push(chose.then_some(token * experts + expert));
            any[token / chunk * own.len() + at] |= i64::from(chose);
        }
    }
    let shape = Shape::new([1, b, s, own.len()]).within(OP, &operands)?;
    let own_scores = rows(scores, 1, &order, shape);
    let shape = Shape::new([1, 1, (b * s).div_ceil(chunk), own.len()]).within(OP, &operands)?;
    Ok((own_scores, Tensor::from_i64(flag, shape, &any)?))
}
