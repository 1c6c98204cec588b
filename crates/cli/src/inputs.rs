//! Input arrays as the command line names them.

use crate::args::{ArraySource, Input};
use crate::array::Array;
use crate::failure::{Failure, Outcome};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Opens an array of a file; a failure names the file in its JSON form, too.
pub fn open(path: &Path, key: Option<&str>) -> Outcome<Array> {
    Array::open(path, key).map_err(|failure| failure.of_file(path))
}

/// The files that inputs come from.
pub fn files(given: &[Input]) -> impl Iterator<Item = PathBuf> {
    given.iter().filter_map(|input| match &input.source {
        ArraySource::File { path, .. } => Some(path.clone()),
        ArraySource::Random(_) => None,
    })
}

/// The array of an input that has to come from a file; `instead` says where random numbers come
/// from, if not from here.
pub fn from_file(input: &Input, instead: &str) -> Outcome<Array> {
    match &input.source {
        ArraySource::File { path, key } => open(path, key.as_deref()),
        ArraySource::Random(_) => Err(wrong(&input.name, format_args!(": {instead}"))),
    }
}

/// The arrays of all inputs by name, each given once.
pub fn by_name(given: &[Input], instead: &str) -> Outcome<BTreeMap<String, Array>> {
    let mut inputs = BTreeMap::new();
    for input in given {
        if inputs.insert(input.name.clone(), from_file(input, instead)?).is_some() {
            return Err(wrong(&input.name, " is given twice"));
        }
    }
    Ok(inputs)
}

/// What is wrong with an input; `message` follows `--input NAME`.
pub fn wrong(name: &str, message: impl std::fmt::Display) -> Failure {
    Failure::usage(format!("--input {name}{message}")).with("option", "--input").with("input", name)
}
