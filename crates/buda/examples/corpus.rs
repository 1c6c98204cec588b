//! Runs every netlist below a folder that the checker accepts; reports how many finish and why the
//! others do not.
//!
//! `cargo run --release -p tilework-buda --example corpus -- DIR [MILLIONS]`. Queues are filled by
//! the index stimulus, every program runs once with parameters of 1. Netlists that touch more than
//! MILLIONS million elements (default 12) are skipped, so that thousands take a minute.

use std::collections::BTreeMap;
use std::io::{Result, Write};
use std::path::{Path, PathBuf};
use tilework_buda::backend::drive::{self, Popping};
use tilework_buda::backend::stimulus::{StimulusChoice, entry, host_queues};
use tilework_buda::backend::{Backend, BackendError, BackendOptions, Call, parameters};
use tilework_buda::epoch::Golden;
use tilework_netlist::types::{Blocks, Netlist, Op, OpKind};

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let Some(folder) = args.next() else {
        eprintln!("usage: corpus DIR [MILLIONS]");
        std::process::exit(2);
    };
    let most = args.next().and_then(|millions| millions.parse().ok()).unwrap_or(12.0) * 1e6;
    let mut files = Vec::new();
    collect(Path::new(&folder), &mut files)?;
    files.sort();
    let (mut accepted, mut large, mut warned, mut ended) = (0, 0, 0, 0);
    let mut failed: BTreeMap<String, String> = BTreeMap::new();
    for path in &files {
        let name = path.strip_prefix(&folder).unwrap_or(path).display().to_string();
        let text = String::from_utf8_lossy(&std::fs::read(path)?).into_owned();
        let Ok(netlist) = tilework_netlist::read(&name, &text) else { continue };
        accepted += 1;
        if elements(&netlist) > most {
            large += 1;
            continue;
        }
        let backend = Backend::new(netlist, Golden::default(), BackendOptions::default());
        match run(&backend) {
            Ok(()) => ended += 1,
            Err(error) => _ = failed.insert(name, error),
        }
        warned += usize::from(!backend.warnings().is_empty());
    }
    let mut out = std::io::stdout().lock();
    writeln!(out, "{} files, {accepted} netlists accepted, {large} left out as too large", files.len())?;
    writeln!(out, "{ended} came to their end, {} did not; {warned} with warnings", failed.len())?;
    failed.iter().try_for_each(|(name, error)| writeln!(out, "{name}: {error}"))
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|end| end == "yaml" || end == "yml") {
            files.push(path);
        }
    }
    Ok(())
}

/// Elements of all inputs and, times the depth of products, of all results of one epoch
/// of each graph.
fn elements(netlist: &Netlist) -> f64 {
    let size = |blocks: &Blocks| {
        let shape = blocks.shape();
        shape.t as f64 * shape.rows as f64 * shape.columns as f64
    };
    let depth = |op: &Op| match &op.kind {
        OpKind::Matmul(product) => 4.0 * f64::from(product.m_k) * f64::from(product.u_kt),
        _ => 1.0,
    };
    let epoch = |ops: &[Op]| ops.iter().map(|op| size(&op.blocks) * depth(op)).sum::<f64>();
    let results = netlist.graphs.iter().map(|graph| f64::from(graph.input_count) * epoch(&graph.ops));
    let inputs = host_queues(netlist).into_iter().map(|queue| netlist.queue(queue));
    results.sum::<f64>() + inputs.map(|queue| f64::from(queue.entries) * size(&queue.blocks)).sum::<f64>()
}

fn run(backend: &Backend) -> std::result::Result<(), String> {
    let netlist = backend.netlist();
    let mut inputs = drive::Inputs::new();
    for queue in host_queues(netlist) {
        let entries = (0..netlist.queue(queue).entries).map(|at| entry(netlist, queue, at, StimulusChoice::Index));
        inputs.insert(queue, entries.collect::<std::result::Result<_, _>>().map_err(|error| error.to_string())?);
    }
    let calls = netlist.programs.iter().map(|program| Call {
        program: program.name.clone(),
        parameters: parameters(program).into_iter().map(|name| (name.to_string(), 1)).collect(),
    });
    let calls: Vec<Call> = calls.collect();
    let said = |error: BackendError| error.to_string();
    backend.initialize().map_err(said)?;
    drive::sequential(backend, inputs, &calls, Popping::Never).map_err(said)?;
    backend.finish().map_err(said)
}
