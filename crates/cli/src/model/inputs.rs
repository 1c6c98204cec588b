//! The inputs of a run: arrays of files, or random numbers.

use super::args::Axes;
use super::engine::Session;
use super::tensors;
use crate::args::{ArraySource, Input};
use crate::failure::{Failure, Outcome};
use crate::inputs::{open, wrong};
use tilework_engine::inputs::{Given, Key};
use tilework_engine::sharding::placements;
use tilework_engine::{InputInfo, Value};
use tilework_model::common::DataType;
use tilework_ops::mesh::Mesh;
use tilework_ops::{DType, Shape, Tensor, rand};

/// Integers of random inputs are below this: indices into small tables stay inside.
const RANDOM_INTEGERS: f32 = 8.0;

/// The values of all inputs of a program, in its order. For a program for several devices an input
/// is one array that is split, one for each device, or one for all.
pub fn read(session: &Session<'_>, program: usize, given: &[Input], shards: &[Axes]) -> Outcome<Vec<Value>> {
    let infos = session.inputs(program).map_err(super::run::refusal)?;
    let mesh = session.mesh(program).map_err(super::run::refusal)?;
    let mut reader = Reader { session, program, infos, mesh, values: Vec::new(), parts: Vec::new() };
    let mut used = vec![false; shards.len()];
    for input in given {
        let (key, part) = reader.meant(&input.name);
        match part {
            Part::Whole => {
                let at = shards.iter().position(|shard| reader.meant(&shard.name).0 == key);
                at.into_iter().for_each(|at| used[at] = true);
                reader.whole(input, key, at.map(|at| &shards[at]))?;
            }
            Part::All => {
                let all = vec![reader.tensor(input, &key, 0)?; mesh.devices()];
                reader.values.extend(Value::shards(all).map(|value| Given { key, value }));
            }
            Part::Device(device) => reader.part(input, key, device)?,
        }
    }
    if let Some(shard) = shards.iter().zip(&used).find(|(_, used)| !**used).map(|(shard, _)| shard) {
        return Err(Failure::option("--shard", format_args!(" {}: no such input is given whole", shard.name)));
    }
    let values = reader.joined()?;
    session.bind(program, values).map_err(super::run::refusal)
}

/// What of an input an array is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    /// All of it.
    Whole,
    /// The part of one device.
    Device(usize),
    /// The part of each device.
    All,
}

/// Reads the arrays of a program's inputs.
struct Reader<'s, 'm> {
    session: &'s Session<'m>,
    program: usize,
    infos: Vec<InputInfo>,
    mesh: Mesh,
    values: Vec<Given>,
    /// The parts of inputs that are given for each device, in the order of the devices.
    parts: Vec<(Key, Vec<Option<Tensor>>)>,
}

impl Reader<'_, '_> {
    /// The input and part that a name means: `0`, `x`, `0_dev1`, `x_all`.
    fn meant(&self, name: &str) -> (Key, Part) {
        let key = |text: &str| match text.parse() {
            Ok(position) => Key::Position(position),
            Err(_) => self.position(text).map_or_else(|| Key::Name(text.to_owned()), Key::Position),
        };
        if self.position(name).is_some() {
            return (key(name), Part::Whole);
        }
        match name.rsplit_once('_') {
            Some((of, "all")) => (key(of), Part::All),
            Some((of, device)) => match device.strip_prefix("dev").and_then(|number| number.parse().ok()) {
                Some(device) => (key(of), Part::Device(device)),
                None => (key(name), Part::Whole),
            },
            None => (key(name), Part::Whole),
        }
    }

    /// The position of the only input of that name.
    fn position(&self, name: &str) -> Option<usize> {
        let mut found = self.infos.iter().filter(|info| info.name.as_deref() == Some(name));
        found.next().filter(|_| found.next().is_none()).map(|info| info.position)
    }

    fn info(&self, key: &Key) -> Option<&InputInfo> {
        self.infos.iter().find(|info| matches!(key, Key::Position(position) if info.position == *position))
    }

    /// An array of a file, or random numbers of an input's shape, others for each device.
    fn tensor(&self, input: &Input, key: &Key, device: usize) -> Outcome<Tensor> {
        match &input.source {
            ArraySource::File { path, key } => {
                let array = open(path, key.as_deref())?;
                tensors::tensor(&array).map_err(|what| Failure::file(path, what))
            }
            ArraySource::Random(seed) => {
                let seed = seed.wrapping_add(u32::try_from(device).unwrap_or(0));
                random(self.info(key), key, seed).map_err(|failure| failure.with("input", &input.name))
            }
        }
    }

    /// Takes an array as the whole of an input.
    fn whole(&mut self, input: &Input, key: Key, shard: Option<&Axes>) -> Outcome<()> {
        let tensor = self.tensor(input, &key, 0)?;
        let info = self.info(&key).filter(|info| info.sharded);
        let value = match (info, shard, &input.source) {
            (None, None, _) => Value::same(tensor),
            (None, Some(_), _) => {
                let why = format_args!(" {}: all devices get the whole of this input", input.name);
                return Err(Failure::option("--shard", why));
            }
            (Some(_), None, ArraySource::Random(_)) => {
                let all = (0..self.mesh.devices()).map(|device| self.tensor(input, &key, device));
                Value::shards(all.collect::<Outcome<_>>()?).unwrap_or_else(|| Value::same(tensor))
            }
            (Some(info), None, _) => self.split(input, info, &tensor)?,
            (Some(_), Some(shard), _) => {
                let wrong = |why: String| Failure::option("--shard", format_args!(" {}: {why}", shard.name));
                let placements = placements(&shard.axes, self.mesh).map_err(wrong)?;
                self.session.split(self.program, &tensor, placements).map_err(|error| wrong(error.to_string()))?
            }
        };
        self.values.push(Given { key, value });
        Ok(())
    }

    /// Splits an array in the only way that its shape allows.
    fn split(&self, input: &Input, info: &InputInfo, tensor: &Tensor) -> Outcome<Value> {
        let name = &input.name;
        let stated: Vec<usize> = info.shape.iter().map(|&n| usize::try_from(n).unwrap_or(0)).collect();
        if tensor.shape().dims() == stated {
            let last = self.mesh.devices() - 1;
            let why = format!(
                ": shape {} is that of one device's part; --input {name}_dev0=FILE to --input {name}_dev{last}=FILE \
                 give each device its own, --input {name}_all=FILE gives all the same",
                tensor.shape()
            );
            return Err(wrong(name, why));
        }
        self.session.split_input(self.program, info.position, tensor).map_err(|error| {
            let help = format!("--shard {name}=AXES says how it is split");
            wrong(name, format!(": {error}; {help}"))
        })
    }

    /// Takes an array as one device's part of an input.
    fn part(&mut self, input: &Input, key: Key, device: usize) -> Outcome<()> {
        let devices = self.mesh.devices();
        if device >= devices {
            return Err(wrong(&input.name, format!(": the program has {devices} devices, counted from 0")));
        }
        let tensor = self.tensor(input, &key, 0)?;
        let at = self.parts.iter().position(|(known, _)| *known == key).unwrap_or_else(|| {
            self.parts.push((key, vec![None; devices]));
            self.parts.len() - 1
        });
        match self.parts[at].1[device].replace(tensor) {
            None => Ok(()),
            Some(_) => Err(wrong(&input.name, " is given twice")),
        }
    }

    /// All values, those of the devices together.
    fn joined(mut self) -> Outcome<Vec<Given>> {
        for (key, list) in std::mem::take(&mut self.parts) {
            let name = match &key {
                Key::Position(position) => position.to_string(),
                Key::Name(name) => name.clone(),
            };
            let missing: Vec<String> =
                (0..list.len()).filter(|&device| list[device].is_none()).map(|device| device.to_string()).collect();
            if !missing.is_empty() {
                let devices = list.len();
                let why = format!(": not given for device {} of {devices}", missing.join(", "));
                return Err(wrong(&name, why));
            }
            let value = Value::shards(list.into_iter().flatten().collect());
            self.values.extend(value.map(|value| Given { key, value }));
        }
        Ok(self.values)
    }
}

/// Numbers of an input's type and shape: floats from -1 to below 1, integers from 0 to 7,
/// truth values.
fn random(info: Option<&InputInfo>, key: &Key, seed: u32) -> Outcome<Tensor> {
    let unknown = || match key {
        Key::Position(position) => format!("the program has no input {position}"),
        Key::Name(name) => format!("the program has no input named {name:?}"),
    };
    let info = info.ok_or_else(|| Failure::usage(unknown()))?;
    let dims: Vec<usize> = info.shape.iter().map(|&n| usize::try_from(n).unwrap_or(0)).collect();
    let shape = Shape::new(dims).map_err(|reason| Failure::usage(reason.to_string()))?;
    let (low, high) = match info.dtype {
        DataType::Bool => (0.0, 2.0),
        _ if is_integer(info.dtype) => (0.0, RANDOM_INTEGERS),
        _ => (-1.0, 1.0),
    };
    let drawn = rand(shape, DType::F32, low, high, seed);
    let dtype = if is_integer(info.dtype) { DType::I32 } else { DType::F32 };
    Ok(tilework_ops::typecast(&drawn, dtype))
}

fn is_integer(dtype: DataType) -> bool {
    !DType::from(dtype).is_float()
}
