//! Compiled programs of the project's own, with inputs and expected outputs that JAX made
//! (`data/expected.py`): these need nothing besides the checkout.

use crate::common;
use std::path::Path;

use tilework_engine::{Comparison, Engine, Options, Tolerance, Value};
use tilework_model::Model;

#[test]
fn own_programs_give_what_jax_gives() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let mut folders: Vec<_> =
        std::fs::read_dir(tests.join("data")).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.retain(|folder| folder.is_dir());
    folders.sort();
    assert!(folders.len() >= 14, "{folders:?}");
    for folder in folders {
        let case = folder.file_name().unwrap().to_string_lossy().into_owned();
        let (version, name) = case.split_once('-').unwrap();
        let model = Model::open(tests.join(format!("../../model/tests/data/{version}/{name}.ttnn"))).unwrap();
        let mut session = Engine::native(Options::default()).session(&model).unwrap();
        let inputs = common::arrays(&folder, "in").into_iter().map(Value::from).collect();
        let ran = session.run(0, inputs, &mut ()).unwrap_or_else(|error| panic!("{case}: {error}"));
        let expected = common::arrays(&folder, "out");
        assert!(!expected.is_empty() && ran.outputs.len() == expected.len(), "{case}");
        for (index, (found, expected)) in ran.outputs.iter().zip(&expected).enumerate() {
            let tolerance = Tolerance::of(&model.programs()[0], index);
            let comparison = Comparison::of(found.single().unwrap(), expected, tolerance).unwrap();
            println!("{case} {index}: {comparison}");
            assert!(comparison.passes(), "{case} {index}: {comparison}");
        }
    }
}
