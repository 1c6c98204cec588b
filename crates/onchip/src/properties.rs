//! Which property test goes with an operation: read from the sources of `tests`.
//!
//! A property belongs to an operation if it makes it, itself or in a function that it calls.

use std::collections::BTreeMap;
use std::path::Path;

/// Functions by their names.
type Functions<'t> = BTreeMap<&'t str, Vec<&'t str>>;

/// Functions whose first line is indented by so many spaces.
fn functions<'t>(text: &'t str, indent: &str) -> Vec<(&'t str, &'t str)> {
    let end = format!("\n{indent}}}\n");
    let starts = ["fn ", "pub(crate) fn "].map(|word| format!("\n{indent}{word}"));
    let begins = starts.iter().flat_map(|start| text.match_indices(start.as_str()).map(|(at, _)| (at, start.len())));
    let of = |(at, length): (usize, usize)| {
        let rest = &text[at + length..];
        let name = rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default();
        (name, rest.split_once(end.as_str()).map_or(rest, |(body, _)| body))
    };
    begins.map(of).collect()
}

/// The bodies of `proptest!`.
fn blocks(text: &str) -> Vec<&str> {
    let behind = text.split("\nproptest! {").skip(1);
    behind.map(|block| block.split_once("\n}\n").map_or(block, |(block, _)| block)).collect()
}

/// Whether a text has a word, and no longer one that ends so.
fn has(text: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word).any(|(at, _)| !text[..at].ends_with(is_part))
}

/// Whether a function makes the operation, or calls one that does.
fn makes(body: &str, operation: &str, helpers: &Functions<'_>, depth: usize) -> bool {
    let variant = format!("Op::{}(", operation.strip_suffix("Op").unwrap_or(operation));
    if has(body, &variant) || has(body, &format!("{operation} {{")) {
        return true;
    }
    let called = helpers.iter().filter(|(name, _)| depth > 0 && has(body, &format!("{name}(")));
    called.flat_map(|(_, bodies)| bodies).any(|helper| makes(helper, operation, helpers, depth - 1))
}

/// The property test of each of these operations, as its file and name, if there is one.
pub(crate) fn properties<'o>(operations: &[&'o str]) -> BTreeMap<&'o str, String> {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let build = std::fs::read_to_string(tests.join("../../engine/tests/common/build.rs")).unwrap();
    let mut files: Vec<_> = std::fs::read_dir(&tests).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|ending| ending == "rs"));
    files.sort();
    let mut found = BTreeMap::new();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let stem = file.file_stem().unwrap_or_default().to_string_lossy();
        let mut helpers = Functions::new();
        for (name, body) in [functions(&text, ""), functions(&text, "    "), functions(&build, "")].concat() {
            helpers.entry(name).or_default().push(body);
        }
        for (name, body) in blocks(&text).into_iter().flat_map(|block| functions(block, "    ")) {
            for &operation in operations {
                if !found.contains_key(operation) && makes(body, operation, &helpers, 3) {
                    found.insert(operation, format!("{stem}::{name}"));
                }
            }
        }
    }
    found
}

#[test]
fn a_property_is_found_where_a_function_of_it_makes_the_operation() {
    let found = properties(&["MatmulOp", "EltwiseBinaryOp", "NoSuchOp"]);
    assert!(found["MatmulOp"].starts_with("families::products"), "{found:?}");
    assert_eq!(found["EltwiseBinaryOp"], "families::element_wise_functions_with_broadcasts");
    assert!(!found.contains_key("NoSuchOp"));
}
