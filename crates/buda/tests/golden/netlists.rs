//! Real netlists of one execution, operation by operation, against values from a model that is
//! not ours (`../shared/data/netlists/expected.json`, computed with NumPy in float32, without
//! data formats).

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tilework_buda::format::{self, Options};
use tilework_buda::{Tensor, golden};
use tilework_netlist::types::{
    Graph, GraphId, InstructionKind, Netlist, Op, OpId, Producer, Queue, QueueId, QueueKind, QueueSettings, Source,
};
use tilework_netlist::{DataFormat, read};

/// The folder of real netlists, with a reason printed if there is none.
fn folder() -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/netlists");
    let folder = std::env::var_os("TILEWORK_NETLISTS").map_or(beside, PathBuf::from);
    let there = folder.join("expected.json").is_file();
    if !there {
        println!("left out: no {} (TILEWORK_NETLISTS names the folder)", folder.display());
    }
    there.then_some(folder)
}

/// The stimulus of the data's README: queue k of the file, entry e.
fn stimulus(netlist: &Netlist, id: QueueId, e: usize) -> Tensor {
    let queue = netlist.queue(id);
    let k = id.0;
    let integer = matches!(
        queue.format,
        DataFormat::Int8 | DataFormat::Int32 | DataFormat::UInt8 | DataFormat::UInt16 | DataFormat::RawUInt32
    );
    let shape = queue.blocks.shape();
    let values = (0..shape.t * shape.rows * shape.columns).map(|i| {
        let n = 37 * i + 11 * e + 7 * k;
        if integer { (n % 17) as f32 - 8.0 } else { ((n % 64) + 1) as f32 / 64.0 }
    });
    Tensor::new(shape, queue.blocks.tile, values.collect()).unwrap()
}

/// One execution of a graph with all pointers at zero.
struct Epoch<'a> {
    netlist: &'a Netlist,
    graph: GraphId,
    settings: &'a [QueueSettings],
    /// Rounds in the formats of the queues.
    formats: bool,
}

impl Epoch<'_> {
    fn graph(&self) -> &Graph {
        self.netlist.graph(self.graph)
    }

    /// What input `e` of the epoch reads from a queue: constants and rams give the same
    /// entry each time.
    fn entry(&self, id: QueueId, e: usize) -> Tensor {
        let queue = self.netlist.queue(id);
        let settings = self.settings.iter().find(|s| s.queue == id);
        if queue.producer != Producer::Host {
            // Nobody has written it yet.
            return Tensor::full(queue.blocks.shape(), queue.blocks.tile, 0.0).unwrap();
        }
        let constant = queue.kind == QueueKind::Ram || settings.is_some_and(|s| s.prologue);
        self.rounded(queue, stimulus(self.netlist, id, if constant { 0 } else { e }))
    }

    fn rounded(&self, queue: &Queue, x: Tensor) -> Tensor {
        if self.formats { format::quantise(queue.format, &x, Options::default()) } else { x }
    }

    /// Entries of every queue that the graph writes.
    fn run(&self) -> HashMap<usize, Vec<Tensor>> {
        let mut queues: HashMap<usize, Vec<Tensor>> = HashMap::new();
        for e in 0..self.graph().input_count as usize {
            let mut results = HashMap::new();
            // Operations stand in any order: whoever has all it reads goes next.
            while results.len() < self.graph().ops.len() {
                let before = results.len();
                for (i, op) in self.graph().ops.iter().enumerate() {
                    let inputs: Option<Vec<Tensor>> = op
                        .inputs
                        .iter()
                        .map(|operand| match operand.source {
                            Source::Queue(id) => Some(self.entry(id, e)),
                            Source::Op(OpId { op, .. }) => results.get(&op).cloned(),
                        })
                        .collect();
                    if let (Some(inputs), false) = (inputs, results.contains_key(&i)) {
                        results.insert(i, self.compute(i, op, &inputs, &mut queues));
                    }
                }
                assert!(results.len() > before, "the graph goes in circles");
            }
        }
        queues
    }

    fn compute(&self, index: usize, op: &Op, inputs: &[Tensor], queues: &mut HashMap<usize, Vec<Tensor>>) -> Tensor {
        let inputs: Vec<&Tensor> = inputs.iter().collect();
        let producer = Producer::Op(OpId { graph: self.graph, op: index });
        let mine = self.netlist.queues.iter().position(|q| q.producer == producer);
        let previous = mine.filter(|_| op.gradient_op).and_then(|q| queues.get(&q)).and_then(|e| e.last().cloned());
        let result =
            golden::execute(self.netlist, op, &inputs, previous.as_ref()).unwrap_or_else(|error| panic!("{error}"));
        if let Some(q) = mine {
            let queue = &self.netlist.queues[q];
            let entries = queues.entry(q).or_default();
            if queue.kind == QueueKind::Ram {
                entries.clear();
            }
            entries.push(self.rounded(queue, result.clone()));
        }
        result
    }
}

/// The only execution of a netlist, if it has one only.
fn single(netlist: &Netlist) -> Option<(GraphId, &[QueueSettings])> {
    let mut found = netlist.programs.iter().flat_map(|p| &p.instructions).filter_map(|i| match &i.kind {
        InstructionKind::Execute { graph, settings } => Some((*graph, settings.as_slice())),
        _ => None,
    });
    let first = found.next();
    if found.next().is_some() { None } else { first }
}

/// Compares entries of an output with the expected sums and probes.
fn compare(name: &str, entry: &Tensor, expected: &Value, tolerance: f64) {
    let shape = entry.shape();
    let wanted: Vec<u64> = expected["shape"].as_array().unwrap().iter().map(|v| v.as_u64().unwrap()).collect();
    assert_eq!([shape.t, shape.rows, shape.columns].map(|n| n as u64).to_vec(), wanted, "{name}");
    let sum = |f: fn(f64) -> f64| entry.values().iter().map(|&v| f(f64::from(v))).sum::<f64>();
    let scale = expected["abs_sum"].as_f64().unwrap();
    for (what, got, want) in [("sum", sum(|v| v), expected["sum"].as_f64().unwrap()), ("abs_sum", sum(f64::abs), scale)]
    {
        assert!((got - want).abs() <= tolerance * scale.max(1.0), "{name}: {what} {got}, not {want}");
    }
    let places = expected["probe_index"].as_array().unwrap();
    let mean = scale / entry.elements() as f64;
    for (place, want) in places.iter().zip(expected["probe"].as_array().unwrap()) {
        let (place, want) = (place.as_u64().unwrap() as usize, want.as_f64().unwrap());
        let got = f64::from(entry.values()[place]);
        assert!((got - want).abs() <= tolerance * (want.abs() + mean), "{name}: value {place} is {got}, not {want}");
    }
}

#[test]
fn netlists_of_one_execution_give_the_expected_values() {
    let Some(folder) = folder() else { return };
    let expected: Value = serde_json::from_slice(&std::fs::read(folder.join("expected.json")).unwrap()).unwrap();
    let mut compared = 0;
    for (file, expected) in expected.as_object().unwrap() {
        if expected["executes"] != 1 {
            continue;
        }
        let text = std::fs::read_to_string(folder.join(file)).unwrap();
        let netlist = read(file, &text).unwrap_or_else(|errors| panic!("{errors}"));
        let Some((graph, settings)) = single(&netlist) else { continue };
        // Without formats the model's own arithmetic; with them, what eight bits of
        // mantissa may lose.
        for (formats, tolerance) in [(false, 2e-5), (true, 3e-2)] {
            let queues = Epoch { netlist: &netlist, graph, settings, formats }.run();
            for (q, entries) in queues {
                let queue = &netlist.queues[q].name;
                let Some(wanted) = expected["outputs"][queue].as_object() else { continue };
                for (e, wanted) in wanted {
                    let Some(entry) = entries.get(e.parse::<usize>().unwrap()) else { continue };
                    compare(&format!("{file} {queue}[{e}]"), entry, wanted, tolerance);
                    compared += 1;
                }
            }
        }
    }
    assert!(compared >= 40, "{compared} entries only");
}
