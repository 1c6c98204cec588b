//! Files of the real compiler, against the text of the same programs that the compiler wrote
//! beside them.
//!
//! The text of the files that are committed is the one inside them. The text is the compiler's own
//! rendering of what it serialized: names, shapes, element types and layouts of every operand, and
//! the arguments. Nothing here is compared with other output of the reader itself.

mod common;

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use common::mlir::{self, Function};
use serde_json::Value;
use tilework_model::common::BufferType;
use tilework_model::ttnn::types::{StorageType, TensorMemoryLayout};
use tilework_model::ttnn::{OpKind, Operation, Program, TensorDesc};
use tilework_model::{Contents, Direction, Model, Options, Reason};

/// A tensor as the text writes it: shape and element type, layout (row-major or tile), memory.
fn written(desc: &TensorDesc) -> String {
    let memory = &desc.layout.memory_desc;
    let shape: String = desc.shape.iter().map(|size| format!("{size}x")).collect();
    let tile = (memory.tile_shape.y, memory.tile_shape.x);
    let place = match (&memory.storage_type, &memory.memory_config) {
        (StorageType::Host, _) => "system_memory".to_owned(),
        (StorageType::Device, Some(config)) => {
            let buffer = match config.buffer_type {
                BufferType::DRAM => "dram",
                BufferType::L1 => "l1",
                other => other.name(),
            };
            let spread = match config.tensor_memory_layout {
                TensorMemoryLayout::Interleaved => "interleaved",
                TensorMemoryLayout::HeightSharded => "height_sharded",
                TensorMemoryLayout::WidthSharded => "width_sharded",
                TensorMemoryLayout::BlockSharded => "block_sharded",
                TensorMemoryLayout::NDSharded => "nd_sharded",
            };
            format!("{buffer} {spread}")
        }
        (StorageType::Device, None) => "device without memory config".to_owned(),
    };
    format!("{shape}{} {}x{} {place}", mlir::element_type(memory.data_type), tile.0, tile.1)
}

fn sorted(mut texts: Vec<String>) -> Vec<String> {
    texts.sort();
    texts
}

/// Operands of one direction, with those that are changed in place among the inputs.
fn operands(operation: &Operation, out: bool) -> Vec<String> {
    let operands = operation.operands();
    let wanted = operands.iter().filter(|operand| (operand.direction == Direction::Out) == out);
    sorted(wanted.map(|operand| written(&operand.tensor.desc)).collect())
}

fn open(path: &Path) -> Model {
    Model::open(path).unwrap_or_else(|error| panic!("{error}"))
}

/// A file's name, its content and its text.
fn programs() -> Vec<(String, Model, String)> {
    let committed =
        common::committed_files().into_iter().filter(|path| path.extension().is_some_and(|end| end == "ttnn"));
    let committed = committed.map(|path| {
        let model = open(&path);
        let text = model.mlir().unwrap().source.clone();
        (path.display().to_string(), model, text)
    });
    let real = common::shared::real_programs().into_iter().map(|folder| {
        let text = std::fs::read_to_string(folder.join("ttnn.mlir")).unwrap();
        (folder.display().to_string(), open(&folder.join("program.ttnn")), text)
    });
    committed.chain(real).collect()
}

#[test]
fn operations_are_those_of_the_text_with_shapes_types_and_layouts() {
    let (mut files, mut compared) = (0, 0);
    for (name, model, text) in programs() {
        let functions = mlir::functions(&text);
        assert_eq!(model.programs().len(), functions.len(), "{name}");
        for program in model.programs() {
            let function = functions.iter().find(|function| function.name == program.name).unwrap();
            compared += compare(program, function, &format!("{name}: {}", program.name));
        }
        files += 1;
    }
    println!("{files} files, {compared} operations");
}

fn compare(program: &Program, function: &Function, at: &str) -> usize {
    assert_eq!(program.private, function.private, "{at}");
    let names: Vec<_> = program.operations.iter().map(|operation| operation.name().unwrap_or_default()).collect();
    let expected: Vec<_> = function.operations.iter().map(|operation| operation.name.as_str()).collect();
    assert_eq!(names, expected, "{at}");
    for (index, (operation, expected)) in program.operations.iter().zip(&function.operations).enumerate() {
        let at = format!("{at}, operation {index}, {}", expected.name);
        let (inputs, outputs) = (operands(operation, false), operands(operation, true));
        let expected = (sorted(expected.inputs.clone()), sorted(expected.outputs.clone()));
        if expected.1.is_empty() {
            // An operation that writes into an existing tensor has it among its inputs in the text.
            assert_eq!(sorted([inputs, outputs].concat()), expected.0, "{at}");
        } else {
            assert_eq!((inputs, outputs), expected, "{at}");
        }
    }
    let tensors = |tensors: &[tilework_model::ttnn::TensorRef]| -> Vec<_> {
        tensors.iter().map(|tensor| written(&tensor.desc)).collect()
    };
    assert_eq!(tensors(&program.inputs), function.inputs, "inputs of {at}");
    assert_eq!(tensors(&program.outputs), function.outputs, "outputs of {at}");
    program.operations.len()
}

#[test]
fn arguments_are_those_of_the_text() {
    let mut compared: BTreeMap<String, usize> = BTreeMap::new();
    for (file, model, _) in programs() {
        for operation in model.programs().iter().flat_map(|program| &program.operations) {
            let data = serde_json::to_value(&operation.op).unwrap();
            let fields = data.as_object().unwrap();
            for (name, text) in mlir::attributes(&operation.debug_info) {
                let (Some(found), Some(expected)) = (fields.get(&name), mlir::value(&text)) else { continue };
                assert!(same(found, &expected), "{file}: {name} of {}: {found}", operation.debug_info);
                *compared.entry(format!("{} {name}", operation.kind().name())).or_default() += 1;
            }
        }
    }
    println!("{} arguments of {} fields", compared.values().sum::<usize>(), compared.len());
}

/// Equal numbers, flags, text and lists of them.
fn same(found: &Value, expected: &Value) -> bool {
    match (found, expected) {
        (Value::Array(found), Value::Array(expected)) => {
            found.len() == expected.len() && found.iter().zip(expected).all(|(found, expected)| same(found, expected))
        }
        (Value::Number(found), Value::Number(expected)) => {
            // The text writes seven digits of a float.
            let (found, expected) = (found.as_f64().unwrap(), expected.as_f64().unwrap());
            (found - expected).abs() <= expected.abs() * 1e-6
        }
        (Value::Object(function), Value::String(expected)) if function.contains_key("op_type") => {
            function["op_type"] == *expected
        }
        // A number of either kind; an optional number that is absent is written as nothing.
        (Value::Object(number), expected) => number.get("value").is_some_and(|value| same(value, expected)),
        (found, expected) => found == expected,
    }
}

#[test]
fn inputs_and_outputs_are_those_of_the_case() {
    for folder in common::shared::real_programs() {
        let model = open(&folder.join("program.ttnn"));
        let case: Value = serde_json::from_slice(&std::fs::read(folder.join("case.json")).unwrap()).unwrap();
        let main = &model.programs()[0];
        assert!(!main.private);
        for (tensors, described, exact) in
            [(&main.inputs, &case["inputs"], true), (&main.outputs, &case["outputs"], false)]
        {
            let described = described.as_array().unwrap();
            assert_eq!(tensors.len(), described.len(), "{}", folder.display());
            for (tensor, described) in tensors.iter().zip(described) {
                let shape: Vec<_> =
                    described["shape"].as_array().unwrap().iter().map(|size| size.as_i64().unwrap()).collect();
                let found: Vec<_> = tensor.desc.shape.iter().map(|size| i64::from(*size)).collect();
                assert_eq!(found, shape, "{}", folder.display());
                // The expected outputs are stored as float32 whatever the program returns, and as
                // wider integers than it has.
                let kind = mlir::element_type(tensor.desc.layout.memory_desc.data_type);
                let dtype = described["dtype"].as_str().unwrap();
                assert!(!exact || mlir::numpy_type(kind) == dtype, "{}: {kind} and {dtype}", folder.display());
            }
        }
    }
}

#[test]
fn the_machine_is_the_one_of_the_text() {
    for (_, model, text) in programs() {
        let [chip] = &model.system().unwrap().chip_descs[..] else { panic!("one chip") };
        let line = text.lines().find(|line| line.starts_with("#system_desc")).unwrap();
        let written: HashMap<_, _> = mlir::attributes(&line.replacen("{arch", "<{arch", 1)).into_iter().collect();
        let number = |name: &str| written[name].parse::<u64>().unwrap();
        assert_eq!(chip.arch.name().to_lowercase(), written["arch"].trim_matches(['<', '>']));
        assert_eq!(format!("{}x{}", chip.grid_size.y, chip.grid_size.x), written["grid"]);
        assert_eq!(chip.l1_size, number("l1_size"));
        assert_eq!(chip.dram_channel_size, number("dram_channel_size"));
        for (found, name) in [
            (chip.num_dram_channels, "num_dram_channels"),
            (chip.noc_l1_address_align_bytes, "noc_l1_address_align_bytes"),
            (chip.pcie_address_align_bytes, "pcie_address_align_bytes"),
            (chip.noc_dram_address_align_bytes, "noc_dram_address_align_bytes"),
            (chip.l1_unreserved_base, "l1_unreserved_base"),
            (chip.erisc_l1_unreserved_base, "erisc_l1_unreserved_base"),
            (chip.dram_unreserved_base, "dram_unreserved_base"),
            (chip.dram_unreserved_end, "dram_unreserved_end"),
            (chip.dst_physical_size_tiles, "dst_physical_size_tiles"),
            (chip.num_cbs, "num_cbs"),
            (chip.num_compute_threads, "num_compute_threads"),
            (chip.num_datamovement_threads, "num_datamovement_threads"),
        ] {
            assert_eq!(u64::from(found), number(name), "{name}");
        }
        assert_eq!(chip.supported_data_types.len(), 13);
        assert_eq!(chip.supported_tile_sizes.len(), 6);
        let cores = |cores: &[tilework_model::common::Dim2d]| -> String {
            let cores: Vec<_> = cores.iter().map(|core| format!("({}, {})", core.y, core.x)).collect();
            format!("[{}]", cores.join(", "))
        };
        assert_eq!(cores(&chip.dram_bank_to_logical_worker_noc0), written["dram_bank_to_logical_worker_noc0"]);
        assert_eq!(cores(&chip.dram_bank_to_logical_worker_noc1), written["dram_bank_to_logical_worker_noc1"]);
    }
}

#[test]
fn the_embedded_text_is_the_text_beside() {
    for folder in common::shared::real_programs() {
        let model = open(&folder.join("program.ttnn"));
        let text = std::fs::read_to_string(folder.join("ttnn.mlir")).unwrap();
        assert_eq!(model.mlir().unwrap().source.trim(), text.trim(), "{}", folder.display());
    }
}

#[test]
fn a_machines_file_describes_the_machine_of_the_programs() {
    let (mut systems, mut programs) = (HashMap::new(), Vec::new());
    for path in common::committed_files() {
        let model = open(&path);
        match &model.contents {
            Contents::System(root) => drop(systems.insert(path.parent().unwrap().to_owned(), root.system_desc.clone())),
            _ => programs.push((path.parent().unwrap().to_owned(), model)),
        }
    }
    assert_eq!(systems.len(), 4);
    for (folder, model) in programs {
        assert_eq!(model.system(), systems.get(&folder), "{}", folder.display());
    }
}

#[test]
fn versions_are_told_by_their_schemas() {
    for path in common::committed_files() {
        let version = path.parent().unwrap().file_name().unwrap().to_str().unwrap();
        let model = open(&path);
        assert_eq!(model.schema_name, Some(format!("jax-tt-plugin {version}").as_str()), "{}", path.display());
        let numbers = model.version().map(|version| (version.major, version.minor, version.patch));
        assert_eq!((numbers, model.compiler_git_hash()), (Some((0, 0, 0)), "unknown"));
        assert!(model.dylibs().is_empty());
    }
}

#[test]
fn files_of_an_unknown_schema_are_read_by_names_with_the_layouts_that_fit() {
    for path in common::committed_files() {
        let known = open(&path);
        let (hash, other) = (known.schema_hash().to_owned(), "e5".repeat(32));
        let mut bytes = std::fs::read(&path).unwrap();
        let at = bytes.windows(64).position(|window| window == hash.as_bytes()).unwrap();
        bytes[at..at + 64].copy_from_slice(other.as_bytes());
        assert!(matches!(
            Model::from_bytes(bytes.clone(), Options::default()).unwrap_err().reason(),
            Reason::UnknownSchema { .. }
        ));
        let read = Model::from_bytes(bytes, Options { accept_unknown_schema: true });
        let read = read.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert_eq!((read.programs(), read.system(), read.schema_name), (known.programs(), known.system(), None));
    }
}

#[test]
fn a_programs_counts_are_those_of_its_operations() {
    let (_, model, _) = programs().into_iter().find(|(name, ..)| name.ends_with("0.1.2/softplus.ttnn")).unwrap();
    let program = &model.programs()[0];
    let counts = program.counts();
    assert_eq!(counts.iter().map(|(.., count)| count).sum::<usize>(), program.operations.len());
    let added = program.operations.iter().filter(|operation| operation.name() == Some("ttnn.add")).count();
    assert!(added > 0 && counts.contains(&(OpKind::EltwiseBinary, Some("Add"), added)), "{counts:?}");
}

#[test]
fn called_programs_are_those_that_the_text_names() {
    let mut calls = 0;
    for (name, model, _) in programs() {
        for operation in model.programs().iter().flat_map(|program| &program.operations) {
            // `@main_const_eval_0` and the like, in the order of the arguments' names.
            let words = operation.debug_info.split('@').skip(1);
            let mut named: Vec<_> =
                words.map(|word| word.split([',', ' ', '(', ')', ']', '>']).next().unwrap()).collect();
            named.retain(|word| model.programs().iter().any(|program| program.name == *word));
            let callees = operation.op.callees();
            let found: Vec<_> = callees.iter().map(|index| model.programs()[*index as usize].name.as_str()).collect();
            assert_eq!(found, named, "{name}: {}", operation.debug_info);
            calls += found.len();
        }
    }
    assert!(calls > 20, "{calls}");
}
