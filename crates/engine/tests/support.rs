//! The list of supported kinds in the documentation, and a file with every kind.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use tilework_engine::{Engine, Options, Reason, Support, support};
use tilework_model::Model;
use tilework_model::ttnn::OpKind;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The table of `docs/operations.md`: a row for each kind, by family.
fn table() -> String {
    let mut rows = BTreeMap::new();
    for &kind in OpKind::ALL {
        let answer = match support(kind) {
            Support::Yes => "yes".to_owned(),
            Support::No(because) => format!("no: {because}"),
        };
        rows.insert((kind.family(), kind.name()), answer);
    }
    let rows = rows.iter().map(|((family, name), answer)| format!("| {family} | `{name}` | {answer} |\n"));
    format!("| family | operation | native engine |\n|---|---|---|\n{}", rows.collect::<String>())
}

#[test]
fn the_documentation_lists_every_kind_as_it_is() {
    let file = root().join("docs/operations.md");
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
