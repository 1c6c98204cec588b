//! Compiled models: `run` and `check` of `.ttnn` files, `show` of `.ttm` and `.ttsys` files, too.

mod args;
mod bisect;
mod check;
mod compare;
mod engine;
mod inputs;
mod memory;
mod native;
mod on_chip;
mod repeat;
mod run;
mod show;
pub mod tensors;
mod watch;

pub use args::RoundingName;

use crate::answer::Answer;
use crate::args::{CheckArgs, RunArgs, ShowArgs};
use crate::failure::{Failure, Outcome};
use crate::files;
use crate::kinds::{About, Kind, Request};
use args::{ModelCheckArgs, ModelRunArgs, ModelShowArgs, SchemaArgs};
use engine::Session;
use std::collections::BTreeMap;
use std::path::Path;
use tilework_engine::{Machine, Reason, RunError};
use tilework_model::{MAX_FILE_BYTES, Model, Options};
use tilework_text::plain;

/// The kind of compiled models.
pub struct CompiledModel;

impl Kind for CompiledModel {
    const ABOUT: About = About {
        name: "compiled-model",
        word: "model",
        one: "a compiled model",
        many: "compiled models",
        endings: &["ttnn", "ttm", "ttsys"],
        examples: args::examples,
    };
    type Run = ModelRunArgs;
    type Check = ModelCheckArgs;
    type Show = ModelShowArgs;

    fn run(request: &Request<'_, RunArgs, ModelRunArgs>) -> Outcome<Answer> {
        run::run(request.common, &request.own)
    }

    fn check(request: &Request<'_, CheckArgs, ModelCheckArgs>) -> Outcome<Answer> {
        check::check(&request.common.file, &request.own)
    }

    fn show(request: &Request<'_, ShowArgs, ModelShowArgs>) -> Outcome<Answer> {
        show::show(request.common, &request.own)
    }
}

/// Opens a model.
fn open(path: &Path, schema: SchemaArgs) -> Outcome<Model> {
    let options = Options { accept_unknown_schema: schema.any_schema };
    let bytes = files::read_within(path, MAX_FILE_BYTES, "a compiled model")?;
    Model::of_file(path, bytes, options).map_err(|e| Failure::usage(e.to_string()).of_file(path))
}

/// The program to use: by index or name; the first unless given.
fn choose<M: Machine>(session: &tilework_engine::Session<'_, M>, entry: Option<&str>) -> Outcome<usize> {
    let programs = session.programs();
    let Some(entry) = entry else { return Ok(0) };
    let found = match entry.parse::<usize>() {
        Ok(index) => programs.iter().find(|program| program.index == index),
        Err(_) => programs.iter().find(|program| program.name == entry),
    };
    found.map(|program| program.index).ok_or_else(|| {
        let all: Vec<String> = programs.iter().map(|p| format!("{} ({})", p.index, plain(&p.name))).collect();
        Failure::option("--entry", format_args!(" {entry}: the file has the programs {}", all.join(", ")))
    })
}

/// Everything that keeps a program from running, before anything runs.
fn supported(session: &mut Session<'_>, program: usize) -> Outcome<()> {
    session.check(program).map_err(|errors| {
        let (shown, others) = errors.split_at(errors.len().min(SHOWN));
        let mut all: Vec<String> = shown.iter().map(RunError::to_string).collect();
        all.extend(summed_up(others.iter().map(|error| error.place().map_or("program", |place| place.kind.name()))));
        if errors.iter().any(|error| *error.reason() == Reason::NativeCode) {
            all.push("--allow-native-code lets native code of the file run on this machine".to_owned());
        }
        let findings: Vec<_> = shown.iter().map(run::place).collect();
        Failure::usage(all.join("\n")).with("findings", findings).with("left_out", others.len())
    })
}

/// The most findings of one program that are shown; others are counted.
const SHOWN: usize = 100;

/// Findings that are not shown, by the kinds of their operations.
fn summed_up<'k>(others: impl Iterator<Item = &'k str>) -> Option<String> {
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    others.for_each(|kind| *kinds.entry(kind).or_default() += 1);
    let counts: Vec<String> = kinds.iter().map(|(kind, count)| format!("{count} x {kind}")).collect();
    (!kinds.is_empty()).then(|| format!("and {} more: {}", kinds.values().sum::<usize>(), counts.join(", ")))
}

#[cfg(test)]
mod tests {
    #[test]
    fn many_findings_are_one_line() {
        let kinds = (0..200_000).map(|i| if i % 4 == 0 { "ConvOp" } else { "SortOp" });
        assert_eq!(super::summed_up(kinds).unwrap(), "and 200000 more: 50000 x ConvOp, 150000 x SortOp");
        assert_eq!(super::summed_up(std::iter::empty()), None);
    }
}
