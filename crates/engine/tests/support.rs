//! How many kinds are supported, and a file with every kind. The list in the documentation is
//! tested where both engines are known (`tilework-onchip`).

use std::path::{Path, PathBuf};

use tilework_engine::{Engine, Options, Reason, Support, support};
use tilework_model::Model;
use tilework_model::ttnn::OpKind;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn of_every_kind_that_the_schema_has_most_are_supported() {
    let yes = OpKind::ALL.iter().filter(|&&kind| support(kind) == Support::Yes).count();
    assert_eq!((yes, OpKind::ALL.len()), (129, 137));
}

/// The files that the public flatc made of the public schema have every kind, with random
/// arguments: each is checked, none is run, and those that are not supported are among the errors.
#[test]
fn a_program_with_every_kind_and_senseless_arguments_is_refused_in_full() {
    for name in ["all_ttnn.ttnn", "half_ttnn.ttnn"] {
        let model = Model::open(root().join("crates/model/tests/data/flatc").join(name)).unwrap();
        let mut session = Engine::native(Options::default()).session(&model).unwrap();
        for (index, program) in model.programs().iter().enumerate() {
            let errors = session.check(index).unwrap_err();
            let refused = |at: usize| {
                errors.iter().any(|error| {
                    let here = error.place().is_some_and(|place| (place.program, place.operation) == (index, at));
                    here && matches!(error.reason(), Reason::Unsupported(_) | Reason::NativeCode)
                })
            };
            for (at, operation) in program.operations.iter().enumerate() {
                let expected = support(operation.kind()) != Support::Yes;
                assert!(!expected || refused(at), "{name}: {:?}", operation.kind());
            }
        }
    }
}
