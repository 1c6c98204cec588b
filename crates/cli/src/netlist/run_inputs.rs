//! What a netlist is run with: the netlist, its programs, the entries of its queues.

use super::args::{ArchName, DriveArgs, StimulusName};
use crate::args::Input;
use crate::array::{Array, shape_text};
use crate::failure::{Failure, Outcome};
use crate::inputs::{from_file, wrong};
use crate::model::tensors;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::Path;
use tilework_buda::Tensor;
use tilework_buda::backend::drive::Inputs;
use tilework_buda::backend::stimulus::{self, StimulusChoice};
use tilework_buda::backend::{Call, parameters};
use tilework_netlist::Checked;
use tilework_netlist::types::{Netlist, QueueId, Shape};

/// Budget of all inputs that a stimulus makes, in bytes.
const MAX_STIMULUS_BYTES: u64 = 8 << 30;

/// Reads a netlist that has no mistakes, for the architecture that is given or any that it names.
pub fn read(path: &Path, arch: Option<ArchName>) -> Outcome<Netlist> {
    let Checked { netlist, diagnostics, .. } = super::checked(path, arch)?;
    netlist.ok_or_else(|| super::refused(path, diagnostics.to_string(), &diagnostics))
}

/// The calls of programs that were asked for, each with its parameters.
pub fn calls(netlist: &Netlist, args: &DriveArgs) -> Outcome<Vec<Call>> {
    let mut chosen: Vec<(&str, BTreeMap<String, i64>)> =
        args.calls.iter().map(|call| (call.name.as_str(), call.parameters.iter().cloned().collect())).collect();
    if chosen.is_empty() {
        chosen = netlist.programs.iter().map(|program| (program.name.as_str(), BTreeMap::new())).collect();
    }
    let mut used = BTreeSet::new();
    let mut calls = Vec::new();
    for (name, own) in chosen {
        let Some(program) = netlist.programs.iter().find(|program| program.name == name) else {
            let known: Vec<&str> = netlist.programs.iter().map(|program| program.name.as_str()).collect();
            let has = format_args!(" {name}: the netlist has {}", known.join(", "));
            return Err(Failure::option("--program", has));
        };
        let mut values = own.clone();
        let mut missing = Vec::new();
        for declared in parameters(program) {
            let given = args.param.iter().rev().find(|(given, _)| given == declared);
            used.extend(given.map(|(given, _)| given.as_str()));
            match own.get(declared).copied().or(given.map(|(_, value)| *value)).or(args.default_param) {
                Some(value) => _ = values.insert(declared.to_string(), value),
                None => missing.push(declared),
            }
        }
        if !missing.is_empty() {
            let missing = missing.join(", ");
            let help = "give --param NAME=V for each, or --default-param V for all";
            return Err(Failure::usage(format!("program {name} needs {missing}: {help}")));
        }
        calls.push(Call { program: name.to_string(), parameters: values });
    }
    match args.param.iter().find(|(name, _)| !used.contains(name.as_str())) {
        Some((name, _)) => {
            Err(Failure::option("--param", format_args!(" {name}: no program that runs has such a parameter")))
        }
        None => Ok(calls),
    }
}

/// Entries of all queues that the host fills: from arrays, and by the stimulus for the others.
pub fn inputs(netlist: &Netlist, args: &DriveArgs, given: &[Input]) -> Outcome<Inputs<Tensor>> {
    let instead = "random numbers come from the netlist's test-config (--stimulus test-config)";
    let mut inputs = Inputs::new();
    for input in given {
        let name = &input.name;
        let queue = queue(netlist, name)?;
        let entries = entries(netlist, queue, &from_file(input, instead)?)
            .map_err(|error| wrong(name, format_args!(": {error}")))?;
        if inputs.insert(queue, entries.into()).is_some() {
            return Err(wrong(name, " is given twice"));
        }
    }
    let choice = match args.stimulus {
        Some(StimulusName::Index) => StimulusChoice::Index,
        Some(StimulusName::TestConfig) | None => StimulusChoice::TestConfig { seed: args.seed.unwrap_or(0) },
    };
    let left: Vec<QueueId> =
        stimulus::host_queues(netlist).into_iter().filter(|queue| !inputs.contains_key(queue)).collect();
    affordable(netlist, args, &left)?;
    for queue in left {
        let count = netlist.queue(queue).entries.min(args.entries.unwrap_or(u32::MAX));
        let entries = (0..count).map(|entry| stimulus::entry(netlist, queue, entry, choice));
        let entries: VecDeque<Tensor> = entries.collect::<Result<_, _>>().map_err(|e| Failure::usage(e.to_string()))?;
        inputs.insert(queue, entries);
    }
    Ok(inputs)
}

fn affordable(netlist: &Netlist, args: &DriveArgs, queues: &[QueueId]) -> Outcome<()> {
    let bytes = queues.iter().map(|queue| {
        let is = netlist.queue(*queue);
        let elements =
            is.blocks.entry_tiles().saturating_mul(u64::from(is.blocks.grid.r) * u64::from(is.blocks.grid.c));
        let tile = u64::from(is.blocks.tile.r) * u64::from(is.blocks.tile.c);
        let entries = u64::from(is.entries.min(args.entries.unwrap_or(u32::MAX)));
        elements.saturating_mul(tile).saturating_mul(4).saturating_mul(entries)
    });
    let bytes = bytes.fold(0, u64::saturating_add);
    match bytes > MAX_STIMULUS_BYTES {
        true => Err(Failure::usage(format!(
            "the stimulus for all entries of all queues needs {} MiB; --entries N makes fewer",
            bytes >> 20
        ))),
        false => Ok(()),
    }
}

/// A queue by name.
pub fn queue(netlist: &Netlist, name: &str) -> Outcome<QueueId> {
    let found = netlist.queues.iter().position(|queue| queue.name == name);
    found.map(QueueId).ok_or_else(|| {
        let host: Vec<&str> =
            stimulus::host_queues(netlist).into_iter().map(|queue| netlist.queue(queue).name.as_str()).collect();
        Failure::usage(format!("there is no queue {name}; the host fills {}", host.join(", ")))
    })
}

/// The entries in an array of shape (entries, t, rows, columns).
pub fn entries(netlist: &Netlist, queue: QueueId, array: &Array) -> Result<Vec<Tensor>, String> {
    let is = netlist.queue(queue);
    let Shape { t, rows, columns } = is.blocks.shape();
    let wanted = [t as u64, rows as u64, columns as u64];
    if array.shape.len() != 4 || array.shape[1..] != wanted {
        let wanted = format!("(entries, {t}, {rows}, {columns})");
        return Err(format!("the array is {}; the queue takes {wanted}", shape_text(&array.shape)));
    }
    let values = tensors::tensor(array)?.to_f32();
    let each = (t * rows * columns).max(1);
    let shape = Shape { t, rows, columns };
    values.chunks(each).map(|one| Tensor::new(shape, is.blocks.tile, one.to_vec()).map_err(|e| e.to_string())).collect()
}

/// The array of entries; an empty one has the queue's shape all the same.
pub fn array(netlist: &Netlist, queue: QueueId, entries: &[Tensor]) -> Array {
    let Shape { t, rows, columns } = netlist.queue(queue).blocks.shape();
    let data = entries.iter().flat_map(Tensor::values).flat_map(|value| value.to_le_bytes()).collect();
    let shape = vec![entries.len() as u64, t as u64, rows as u64, columns as u64];
    Array { dtype: tilework_dtype::DType::F32, shape, data }
}
