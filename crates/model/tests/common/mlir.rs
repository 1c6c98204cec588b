//! The parts of the compiler's text that the tests compare.
//!
//! Lines like `%2 = "ttnn.add"(%0, %1) <{activation = "relu"}> : (tensor<32x64xbf16, #layout>,
//! ...) -> tensor<...> loc(...)`, in functions, with the layouts defined at the beginning.

use std::collections::HashMap;

use serde_json::{Value, json};
use tilework_model::common::DataType;

/// A function of the text.
pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) private: bool,
    pub(crate) inputs: Vec<String>,
    pub(crate) outputs: Vec<String>,
    pub(crate) operations: Vec<Operation>,
}

/// An operation of the text, its tensors as [`tensors`] writes them.
pub(crate) struct Operation {
    pub(crate) name: String,
    pub(crate) inputs: Vec<String>,
    pub(crate) outputs: Vec<String>,
}

/// All functions.
pub(crate) fn functions(text: &str) -> Vec<Function> {
    let layouts: HashMap<_, _> = text.lines().filter_map(|line| line.split_once(" = #ttnn.ttnn_layout<")).collect();
    let mut functions: Vec<Function> = Vec::new();
    let mut inside = false;
    for line in text.lines().map(str::trim) {
        if let Some(head) = line.strip_prefix("func.func ") {
            let (private, head) = match head.strip_prefix("private ") {
                Some(head) => (true, head),
                None => (false, head.strip_prefix("public ").unwrap_or(head)),
            };
            let name = head.trim_start_matches('@').split('(').next().unwrap().to_owned();
            // Attributes of an argument repeat its type without a layout, which
            // `tensors` leaves out.
            let (inputs, outputs) = head.split_once(") -> ").unwrap_or((head, ""));
            let outputs = outputs.split(" attributes {").next().unwrap();
            let (inputs, outputs) = (tensors(inputs, &layouts), tensors(outputs, &layouts));
            functions.push(Function { name, private, inputs, outputs, operations: Vec::new() });
            inside = true;
        } else if line.starts_with("} loc(") || line == "}" {
            inside = false;
        } else if inside && !line.starts_with("return") {
            let (_, types) = line.split_once(" : (").unwrap();
            let (inputs, outputs) = types.split_once(") -> ").unwrap();
            let operation = line.strip_prefix('%').map_or(line, |results| results.split_once(" = ").unwrap().1);
            let name = operation.trim_start_matches('"').split(['"', '(', ' ']).next().unwrap();
            let name = if name == "call" { "func.call" } else { name }.to_owned();
            let (inputs, outputs) = (tensors(inputs, &layouts), tensors(outputs, &layouts));
            functions.last_mut().unwrap().operations.push(Operation { name, inputs, outputs });
        }
    }
    functions
}

/// The tensors of a list of types, each as `2x3xbf16 32x32 dram interleaved`.
fn tensors(types: &str, layouts: &HashMap<&str, &str>) -> Vec<String> {
    let mut found = Vec::new();
    for part in types.split("tensor<").skip(1) {
        let Some((shape, rest)) = part.split_once(", #") else { continue };
        if shape.contains('>') {
            continue;
        }
        // Signless integers, which were booleans, are stored as signed ones.
        let signless = shape.ends_with("xi32") || shape == "i32";
        let shape = if signless { format!("{}si32", shape.trim_end_matches("i32")) } else { shape.to_owned() };
        if rest.starts_with("ttnn.trace_id") {
            found.push(format!("{shape} 1x1 system_memory"));
            continue;
        }
        let layout = layouts[format!("#{}", rest.split('>').next().unwrap()).as_str()];
        let tile = if layout.contains("!ttcore.tile<") {
            layout.split("!ttcore.tile<").nth(1).unwrap().split(',').next().unwrap()
        } else {
            "1x1"
        };
        let memory = layout.split(", #").nth(1).unwrap().split('>').next().unwrap();
        let place = match memory {
            "system_memory" => memory.to_owned(),
            // After the memory comes how the tensor is distributed: `, <interleaved>>` or
            // `, <width_sharded>, core_ranges = ...`.
            device => {
                let (_, spread) = layout.rsplit_once(">, <").unwrap();
                format!("{device} {}", spread.split('>').next().unwrap())
            }
        };
        found.push(format!("{shape} {tile} {place}"));
    }
    found
}

/// How the text writes an element type.
pub(crate) fn element_type(data_type: DataType) -> &'static str {
    match data_type {
        DataType::Float32 => "f32",
        DataType::Float16 => "f16",
        DataType::BFloat16 => "bf16",
        DataType::Int32 => "si32",
        DataType::UInt32 => "ui32",
        DataType::UInt16 => "ui16",
        DataType::UInt8 => "ui8",
        other => panic!("{other} does not occur"),
    }
}

/// What numpy calls an element type.
pub(crate) fn numpy_type(element: &str) -> &str {
    match element {
        "f32" => "float32",
        "bf16" => "bfloat16",
        "si32" => "int32",
        "ui32" => "uint32",
        other => other,
    }
}

/// The arguments `name = value` in the first `<{...}>`.
pub(crate) fn attributes(text: &str) -> Vec<(String, String)> {
    let Some((_, attributes)) = text.split_once("<{") else { return Vec::new() };
    let (mut depth, mut start, mut parts) = (0, 0, Vec::new());
    for (at, character) in attributes.char_indices() {
        match character {
            '<' | '[' | '{' | '(' => depth += 1,
            '}' if depth == 0 => {
                parts.push(&attributes[start..at]);
                break;
            }
            '>' | ']' | '}' | ')' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&attributes[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    let pairs = parts.iter().filter_map(|part| part.split_once(" = "));
    pairs.map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned())).collect()
}

/// A number, flag, text, list of numbers, or names of a list of fused functions; `None` for
/// anything else.
pub(crate) fn value(text: &str) -> Option<Value> {
    let bare = text.split(" : ").next().unwrap();
    if let Some(elements) = text.strip_prefix("array<").and_then(|array| array.strip_suffix('>')) {
        let (_, elements) = elements.split_once(':').unwrap_or((elements, ""));
        return list(elements);
    }
    if let Some(elements) = text.strip_prefix("#ttnn.shape<").and_then(|shape| shape.strip_suffix('>')) {
        return list(&elements.replace('x', ","));
    }
    if text.contains("unary_with_param") {
        let functions = text.split("op_type = ").skip(1).map(|rest| rest.split(['>', ',']).next().unwrap());
        return Some(functions.map(|name| json!(name)).collect());
    }
    if let Some(elements) = text.strip_prefix('[').and_then(|list| list.strip_suffix(']')) {
        return list(elements);
    }
    if let Some(text) = bare.strip_prefix('"').and_then(|text| text.strip_suffix('"')) {
        return Some(json!(text));
    }
    scalar(bare)
}

fn list(elements: &str) -> Option<Value> {
    let elements = elements.split(',').map(str::trim).filter(|element| !element.is_empty());
    elements.map(|element| scalar(element.split(" : ").next().unwrap())).collect::<Option<Vec<_>>>().map(Value::Array)
}

fn scalar(text: &str) -> Option<Value> {
    match text {
        "true" => Some(json!(true)),
        "false" => Some(json!(false)),
        number => {
            number.parse::<i64>().map(|number| json!(number)).or(number.parse::<f64>().map(|number| json!(number))).ok()
        }
    }
}
