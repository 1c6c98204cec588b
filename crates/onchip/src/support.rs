//! The table of `docs/operations.md`: who carries out operations of each kind, on either engine.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use tilework_abi::board::Board;
use tilework_engine::{Support, support};
use tilework_model::Model;
use tilework_model::ttnn::{Op, OpKind};
use tilework_runtime::DeviceConfig;
use tilework_runtime::tensor::{TensorDesc, TensorSpec};

use crate::families;
use crate::properties::properties;
use crate::recipe::{Site, Task};

/// Whether a family of programs has something to say about an operation. Its arguments make no
/// sense, so that a refusal for these, or a list that is too short, is an answer, too.
fn has_programs(op: &Op) -> bool {
    let spec = TensorSpec::new(&TensorDesc::new([32, 32])).unwrap();
    let (operands, results) = (vec![&spec; 8], vec![spec.clone(); 3]);
    let site = Site::of(&DeviceConfig::new(Board::P100));
    let task = Task { operands: &operands, on_host: &[], results: &results, site: &site };
    let planned = catch_unwind(AssertUnwindSafe(|| families::plan(op, &task).err()));
    planned.map_or(true, |refused| refused.is_none_or(|why| why != "no device program for this kind of operation"))
}

/// Who carries out an operation that the native engine has, on the chip.
fn carried(op: &Op) -> &'static str {
    let kind = op.kind();
    match (kind.family(), op) {
        (_, Op::Cpu(_)) => "host",
        ("control" | "trace" | "debug", _) => "engine",
        ("ccl", _) => "through the host",
        // What chips exchange of it are numbers of rows.
        (_, Op::DistributedRMSNorm(_)) => "programs",
        (_, Op::ToDevice(_) | Op::FromDevice(_) | Op::WriteTensor(_) | Op::Constant(_) | Op::Copy(_)) => "transfer",
        // One operation follows the other: semaphores have nothing to order.
        (_, Op::Deallocate(_) | Op::GetDevice(_) | Op::CreateGlobalSemaphore(_) | Op::ResetGlobalSemaphore(_)) => {
            "engine"
        }
        (_, op) if has_programs(op) => "programs",
        _ => "host",
    }
}

/// An operation of each kind, of files that have all of the schema, and of those of the compiler in
/// `jax-tt-plugin`.
fn operations() -> BTreeMap<OpKind, Op> {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../model/tests/data");
    let folders = ["flatc", "0.1.0", "0.1.1", "0.1.2", "0.1.3"].map(|folder| data.join(folder));
    let entries = folders.iter().flat_map(|folder| std::fs::read_dir(folder).unwrap());
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|ending| ending == "ttnn"));
    files.sort();
    let mut operations = BTreeMap::new();
    for file in files {
        // Some files are there to be refused.
        let Ok(model) = Model::open(&file) else { continue };
        for operation in model.programs().iter().flat_map(|program| &program.operations) {
            operations.insert(operation.kind(), operation.op.clone());
        }
    }
    operations
}

fn table() -> String {
    let (operations, mut rows) = (operations(), BTreeMap::new());
    let of = |op: Option<&Op>| op.map_or("host", carried);
    let programs: Vec<&str> =
        operations.values().filter(|op| carried(op) == "programs").map(|op| op.kind().name()).collect();
    let properties = properties(&programs);
    for &kind in OpKind::ALL {
        let property = properties.get(kind.name()).map_or(String::new(), |test| format!("`{test}`"));
        let answers = match support(kind) {
            Support::Yes => format!("yes | {} | {property}", of(operations.get(&kind))),
            Support::No(because) => format!("no: {because} | no | {property}"),
        };
        rows.insert((kind.family(), kind.name()), answers);
    }
    let rows = rows.iter().map(|((family, name), answers)| format!("| {family} | `{name}` | {answers} |\n"));
    let head = "| family | operation | native engine | chip | property |\n|---|---|---|---|---|\n";
    format!("{head}{}", rows.collect::<String>())
}

/// What programs of the chip make is compared with host arithmetic over shapes and types.
#[test]
fn every_operation_with_programs_has_a_property() {
    let operations = operations();
    let names: Vec<&str> =
        operations.values().filter(|op| carried(op) == "programs").map(|op| op.kind().name()).collect();
    let properties = properties(&names);
    let without: Vec<&&str> = names.iter().filter(|name| !properties.contains_key(*name)).collect();
    assert!(names.len() > 80 && without.is_empty(), "no property test in crates/onchip/tests for {without:?}");
}

#[test]
fn the_documentation_lists_every_kind_as_it_is() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/operations.md");
    let text = std::fs::read_to_string(&file).unwrap();
    let table = table();
    // With this set the table is brought up to date instead.
    if std::env::var_os("TILEWORK_UPDATE").is_some() {
        let (before, _) = text.split_once("| family |").unwrap();
        std::fs::write(&file, format!("{before}{table}")).unwrap();
    } else {
        assert!(text.ends_with(&table), "{} is not up to date; TILEWORK_UPDATE=1 writes it", file.display());
    }
}
