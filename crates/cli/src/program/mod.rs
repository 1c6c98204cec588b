//! Kernel programs: `program.toml` files. `docs/program.md` describes the format.
//!
//! A file goes through three steps. [`schema`] reads its form. [`plan::Plan::new`] checks it
//! against a board and the arrays of the command line: every buffer gets its shape, every role its
//! cores, every kernel its ELF file. Last, when the device has placed the buffers,
//! [`plan::Plan::arguments`] gives every kernel of every core its argument words. All of it is free
//! of side effects but for reading files, and every refusal points at its place in the file.

mod args;
mod check;
mod compare;
mod cores;
mod expr;
mod failure;
mod firmware;
mod kernels;
mod lower;
mod overview;
mod plan;
mod report;
mod run;
mod schema;
mod scope;
pub mod source;
mod storage;

pub use report::BUILT_IN;

use crate::answer::Answer;
use crate::args::{CheckArgs, RunArgs, ShowArgs};
use crate::failure::Outcome;
use crate::kinds::{About, Kind, Request};
use args::{KernelCheckArgs, KernelPlanArgs, KernelRunArgs};

/// The kind of kernel programs.
pub struct KernelProgram;

impl Kind for KernelProgram {
    const ABOUT: About = About {
        name: "kernel-program",
        word: "program",
        one: "a kernel program",
        many: "kernel programs",
        endings: &["toml"],
        examples: args::examples,
    };
    type Run = KernelRunArgs;
    type Check = KernelCheckArgs;
    type Show = KernelPlanArgs;

    fn run(request: &Request<'_, RunArgs, KernelRunArgs>) -> Outcome<Answer> {
        run::run(request.common, &request.own)
    }

    fn check(request: &Request<'_, CheckArgs, KernelCheckArgs>) -> Outcome<Answer> {
        match &request.own.expect {
            Some(folder) => compare::check(&request.common.file, &request.own, folder),
            None => overview::check(&request.common.file, &request.own.plan),
        }
    }

    fn show(request: &Request<'_, ShowArgs, KernelPlanArgs>) -> Outcome<Answer> {
        overview::show(&request.common.file, &request.own)
    }
}

#[cfg(test)]
mod properties;
