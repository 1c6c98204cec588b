//! Compiled models: `run` and `check` of `.ttnn` files, `show` of `.ttm` and `.ttsys` files, too.

mod args;
mod bisect;
mod check;
mod inputs;
mod native;
mod run;
mod show;
pub mod tensors;
mod watch;

pub use args::RoundingName;

use crate::answer::Answer;
use crate::args::{CheckArgs, RunArgs, ShowArgs};
use crate::failure::{Failure, Outcome};
use crate::kinds::{About, Kind, Request};
use args::{ModelArgs, ModelCheckArgs, ModelRunArgs, ModelShowArgs, SchemaArgs};
use std::path::Path;
use tilework_engine::{Engine, Options as EngineOptions, Reason, Rounding, RunError, Session};
use tilework_model::{Model, Options};

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
    Model::open_with(path, options).map_err(|e| Failure::usage(e.to_string()).of_file(path))
}

/// A session of the native engine with a model.
fn session<'m>(model: &'m Model, args: &ModelArgs, rounding: RoundingName) -> Outcome<Session<'m>> {
    let rounding = match rounding {
        RoundingName::Operations => Rounding::Operations,
        RoundingName::Ends => Rounding::Ends,
    };
    let native_code = if args.allow_native_code { Some(native::host(model)?) } else { None };
    let options = EngineOptions { native_code, rounding, ..EngineOptions::default() };
    Engine::native(options).session(model).map_err(run::refusal)
}

/// The program to use: by index or name; the first unless given.
fn choose(session: &Session<'_>, entry: Option<&str>) -> Outcome<usize> {
    let programs = session.programs();
    let Some(entry) = entry else { return Ok(0) };
    let found = match entry.parse::<usize>() {
        Ok(index) => programs.iter().find(|program| program.index == index),
        Err(_) => programs.iter().find(|program| program.name == entry),
    };
    found.map(|program| program.index).ok_or_else(|| {
        let all: Vec<String> = programs.iter().map(|p| format!("{} ({})", p.index, p.name)).collect();
        Failure::option("--entry", format_args!(" {entry}: the file has the programs {}", all.join(", ")))
    })
}

/// Everything that keeps a program from running, before anything runs.
fn supported(session: &mut Session<'_>, program: usize) -> Outcome<()> {
    session.check(program).map_err(|errors| {
        let mut all: Vec<String> = errors.iter().map(RunError::to_string).collect();
        if errors.iter().any(|error| *error.reason() == Reason::NativeCode) {
            all.push("--allow-native-code lets native code of the file run on this machine".to_owned());
        }
        let findings: Vec<_> = errors.iter().map(run::place).collect();
        Failure::usage(all.join("\n")).with("findings", findings)
    })
}
