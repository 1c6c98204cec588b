//! Compiled models on the command line: `run`, `check` and `show` of `.ttnn` files (and `show` of `.ttm` and `.ttsys`).

mod check;
mod inputs;
mod run;
mod show;
pub mod tensors;
mod watch;

pub use check::check;
pub use run::run;
pub use show::show;

use crate::args::{ModelArgs, RoundingName};
use crate::failure::{Failure, Outcome};
use std::path::Path;
use tilework_engine::{Engine, Options as EngineOptions, Rounding, Session};
use tilework_model::{Model, Options};

/// Whether a file's name is that of a compiled model.
pub fn is_model(path: &Path) -> bool {
    matches!(path.extension().and_then(|e| e.to_str()), Some("ttnn" | "ttm" | "ttsys"))
}

/// Opens a model. `any_schema`: also one of a compiler that is not known.
fn open(path: &Path, any_schema: bool) -> Outcome<Model> {
    Model::open_with(path, Options { accept_unknown_schema: any_schema }).map_err(|e| Failure::usage(e.to_string()))
}

/// A session of the native engine with a model.
fn session<'m>(model: &'m Model, args: &ModelArgs, rounding: RoundingName) -> Outcome<Session<'m>> {
    let rounding = match rounding {
        RoundingName::Operations => Rounding::Operations,
        RoundingName::Ends => Rounding::Ends,
    };
    let options = EngineOptions { allow_native_code: args.allow_native_code, rounding, ..EngineOptions::default() };
    Engine::native(options).session(model).map_err(|e| Failure::usage(e.to_string()))
}

/// The program that is meant: by index or name; the first one unless it is said.
fn choose(session: &Session<'_>, entry: Option<&str>) -> Outcome<usize> {
    let programs = session.programs();
    let Some(entry) = entry else { return Ok(0) };
    let found = match entry.parse::<usize>() {
        Ok(index) => programs.iter().find(|program| program.index == index),
        Err(_) => programs.iter().find(|program| program.name == entry),
    };
    found.map(|program| program.index).ok_or_else(|| {
        let all: Vec<String> = programs.iter().map(|p| format!("{} ({})", p.index, p.name)).collect();
        Failure::usage(format!("--entry {entry}: the file has the programs {}", all.join(", ")))
    })
}

/// Everything that keeps a program from running, before anything runs.
fn supported(session: &mut Session<'_>, program: usize) -> Outcome<()> {
    session.check(program).map_err(|errors| {
        let all: Vec<String> = errors.iter().map(ToString::to_string).collect();
        Failure::usage(all.join("\n"))
    })
}
