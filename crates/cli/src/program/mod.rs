//! Kernel programs: `program.toml` files. `docs/program.md` describes the format.
//!
//! A file goes through three steps. [`schema`] reads its form. [`plan::Plan::new`] checks it
//! against a board and the arrays of the command line: every buffer gets its shape, every role its
//! cores, every kernel its ELF file. Last, when the device has placed the buffers,
//! [`plan::Plan::arguments`] gives every kernel of every core its argument words. All of it is free
//! of side effects but for reading files, and every refusal points at its place in the file.

pub mod args;
mod buffers;
mod check;
mod compare;
mod cores;
mod execute;
mod explore;
mod expr;
mod failure;
pub mod findings;
pub mod firmware;
pub mod gdb;
pub mod inspect;
pub mod kernels;
mod launches;
mod look;
mod lower;
mod memory_map;
mod overview;
mod overview_text;
mod plan;
mod prints;
mod profile;
mod report;
pub mod run;
mod schedule;
mod schema;
mod scope;
mod sections;
pub mod source;
mod source_lines;
mod steps;
mod storage;
mod traces;
mod workers;
pub mod wrong;

pub use profile::{ProfileArgs, profile};
pub use report::BUILT_IN;
pub use schedule::Schedule;

use crate::answer::Answer;
use crate::args::{CheckArgs, RunArgs, ShowArgs};
use crate::comparison::ToleranceArgs;
use crate::failure::{Failure, Outcome};
use crate::kinds::{About, Kind, Request};
use args::{KernelCheckArgs, KernelRunArgs, KernelShowArgs};
use inspect::ChecksArgs;

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
    type Show = KernelShowArgs;

    fn run(request: &Request<'_, RunArgs, KernelRunArgs>) -> Outcome<Answer> {
        run::run(request.common, &request.own)
    }

    fn check(request: &Request<'_, CheckArgs, KernelCheckArgs>) -> Outcome<Answer> {
        let (file, own) = (&request.common.file, &request.own);
        let of_runs = request.first_given::<ToleranceArgs>().or_else(|| request.first_given::<ChecksArgs>());
        match of_runs {
            _ if own.expect.is_some() || own.explore.explore.is_some() => compare::check(file, own),
            None => overview::check(file, &own.plan),
            Some(option) => {
                let why = " needs --expect DIR or --explore N: without them a kernel program is not run";
                Err(Failure::option(&option, why))
            }
        }
    }

    fn show(request: &Request<'_, ShowArgs, KernelShowArgs>) -> Outcome<Answer> {
        overview::show(&request.common.file, &request.own)
    }
}

#[cfg(test)]
mod properties;
