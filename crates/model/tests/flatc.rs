//! Files with every kind of operation and command, written by the public `flatc` from the public
//! schema (`data/flatc/generate.py`): an independent implementation of that schema: fields, their
//! order, types and defaults.

mod common;

use std::path::{Path, PathBuf};

use serde_json::Value;
use tilework_model::data::name as name_in_data;
use tilework_model::ttnn::OpKind;
use tilework_model::{Contents, Direction, Model};

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/flatc").join(name)
}

fn expected(name: &str) -> Value {
    ours(serde_json::from_slice(&std::fs::read(data(name)).unwrap()).unwrap())
}

/// The schema's names of values and members, which begin with a capital as nothing else does, in
/// the spelling of `tilework_model::data`.
fn ours(value: Value) -> Value {
    let of_schema = |name: &str| name.starts_with(|c: char| c.is_ascii_uppercase());
    match value {
        Value::String(name) if of_schema(&name) => Value::String(name_in_data(&name)),
        Value::Array(elements) => elements.into_iter().map(ours).collect(),
        Value::Object(fields) => {
            let fields = fields.into_iter().map(|(name, value)| (name, ours(value)));
            let member = |name: String, value: Value| match value {
                Value::Object(fields) if of_schema(&name) => {
                    [("kind".to_owned(), Value::String(name_in_data(&name)))].into_iter().chain(fields).collect()
                }
                value => vec![(name, value)],
            };
            fields.flat_map(|(name, value)| member(name, value)).collect::<serde_json::Map<_, _>>().into()
        }
        value => value,
    }
}

/// A field that compilers write, but whose name no published schema has.
const NEWER: &str = "fp32_exact";

/// Compares what was read with what was written, and returns the number of values compared.
fn compare(found: &Value, expected: &Value, file: &[u8], at: &str) -> usize {
    match (found, expected) {
        (Value::Object(found), Value::Object(expected)) if expected.contains_key("bytes") => {
            let place = |name: &str| found[name].as_u64().unwrap() as usize;
            let bytes: Vec<_> =
                expected["bytes"].as_array().unwrap().iter().map(|byte| byte.as_u64().unwrap() as u8).collect();
            assert_eq!(file[place("offset")..place("offset") + place("size")], bytes, "{at}");
            1
        }
        (Value::Object(found), Value::Object(expected)) => {
            // Of tensor references only the id was kept.
            let reference =
                found.contains_key("global_id") && found.contains_key("desc") && !expected.contains_key("desc");
            // The schema that the file was written by does not have this flag.
            assert!(found.get(NEWER).is_none_or(|flag| flag == false), "{at}");
            let names = |object: &serde_json::Map<String, Value>| {
                let names = object.keys().filter(|name| !(reference && *name == "desc") && *name != NEWER);
                names.cloned().collect::<Vec<_>>()
            };
            assert_eq!(names(found), names(expected), "{at}");
            expected.iter().map(|(name, value)| compare(&found[name], value, file, &format!("{at}.{name}"))).sum()
        }
        (Value::Array(found), Value::Array(expected)) => {
            assert_eq!(found.len(), expected.len(), "{at}");
            let pairs = found.iter().zip(expected).enumerate();
            pairs.map(|(index, (found, expected))| compare(found, expected, file, &format!("{at}[{index}]"))).sum()
        }
        (Value::Number(found), Value::Number(expected)) => {
            // Defaults like 1e-12 are the nearest float32.
            let (found, expected) = (found.as_f64().unwrap(), expected.as_f64().unwrap());
            assert!((found - expected).abs() <= 1e-7 * expected.abs(), "{at}: {found} and {expected}");
            1
        }
        _ => {
            assert_eq!(found, expected, "{at}");
            1
        }
    }
}

#[test]
fn all_kinds_of_operations_are_read_field_by_field() {
    for name in ["all", "half"] {
        let file = data(&format!("{name}_ttnn.ttnn"));
        let model = Model::open(&file).unwrap_or_else(|error| panic!("{error}"));
        let Contents::Ttnn(root) = &model.contents else { panic!("operations") };
        let kinds: Vec<_> = root.programs[0].operations.iter().map(|operation| operation.kind()).collect();
        // All but those that the public schema does not have.
        assert_eq!((kinds.len(), OpKind::ALL.len()), (131, 131 + 6));
        let bytes = std::fs::read(&file).unwrap();
        let compared =
            compare(&serde_json::to_value(root).unwrap(), &expected(&format!("{name}_ttnn.json")), &bytes, name);
        println!("{name}: {compared} values of {} operations", kinds.len());
        assert!(compared > 2000, "{compared}");
    }
}

#[test]
fn all_commands_are_read_field_by_field() {
    for name in ["all", "half"] {
        let file = data(&format!("{name}_ttm.ttm"));
        let model = Model::open(&file).unwrap_or_else(|error| panic!("{error}"));
        let root = model.metal().unwrap();
        assert_eq!(root.programs[0].device_programs[0].command_queues[0].commands.len(), 17);
        let bytes = std::fs::read(&file).unwrap();
        let compared =
            compare(&serde_json::to_value(root).unwrap(), &expected(&format!("{name}_ttm.json")), &bytes, name);
        println!("{name}: {compared} values of 17 commands");
        assert!(compared > 200, "{compared}");
    }
}

#[test]
fn native_libraries_are_listed_by_program_and_size() {
    let model = Model::open(data("all_ttnn.ttnn")).unwrap();
    let expected = expected("all_ttnn.json");
    let written = &expected["programs"][0]["dylibs"][0];
    let [(Some(program), library)] = model.dylibs()[..] else { panic!("one library of a program") };
    assert_eq!(program, expected["programs"][0]["name"].as_str().unwrap());
    assert_eq!(u64::from(library.dylib_id), written["dylib_id"].as_u64().unwrap());
    assert_eq!(library.raw_file.len(), written["raw_file"]["bytes"].as_array().unwrap().len());
}

/// Operands that `TTNNOps.td` (tt-mlir at commit 19c86fca45) marks as written by their operation;
/// those of `CopyOp`, `WriteTensorOp` and `PointToPointOp` are overwritten as a whole. Custom
/// kernels may write any operand.
const WRITTEN: &[(&str, &[&str])] = &[
    ("AdamWOp", &["param", "exp_avg", "exp_avg_sq", "max_exp_avg_sq"]),
    ("BatchNormTrainingOp", &["running_mean", "running_var"]),
    ("FillCacheOp", &["cache"]),
    ("GenericOp", &["io_tensors[0]"]),
    ("PagedFillCacheOp", &["cache"]),
    ("PagedUpdateCacheOp", &["cache"]),
    ("UpdateCacheOp", &["cache"]),
];

#[test]
fn tensors_changed_in_place_are_those_that_the_compiler_marks() {
    let model = Model::open(data("all_ttnn.ttnn")).unwrap();
    let mut found = Vec::new();
    for operation in &model.programs()[0].operations {
        let operands = operation.operands();
        let changed = operands.iter().filter(|operand| operand.direction == Direction::InOut);
        let roles: Vec<_> = changed.map(|operand| operand.role.clone()).collect();
        if !roles.is_empty() {
            found.push((operation.kind().name(), roles));
        }
    }
    found.sort();
    let expected: Vec<_> =
        WRITTEN.iter().map(|(kind, roles)| (*kind, roles.iter().map(|role| (*role).to_owned()).collect())).collect();
    assert_eq!(found, expected);
}
