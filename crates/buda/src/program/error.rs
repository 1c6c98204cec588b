//! Errors of programs.

use thiserror::Error;
use tilework_netlist::types::{Position, Program};

/// A program that cannot continue.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("program {program}, line {}: {problem}", at.line)]
pub struct ProgramError {
    /// The program.
    pub program: String,
    /// The instruction.
    pub at: Position,
    /// What is wrong.
    pub problem: ProgramProblem,
}

/// Why a program cannot continue.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[allow(missing_docs)]
pub enum ProgramProblem {
    #[error("{0} has no value; declare it with var, staticvar or param, or set it first")]
    Uninitialised(String),
    #[error("{0} is declared already, as a variable of another kind")]
    Shadows(String),
    #[error("parameters {0} are not given")]
    MissingParameters(String),
    #[error("{op} takes {wanted} operands, not {found}")]
    Arity { op: &'static str, wanted: usize, found: usize },
    #[error("{out} leaves the range of 64 bits")]
    Overflow { out: String },
    #[error("incwrap of {out} wraps at {wrap}; it must wrap at 1 or more")]
    Wrap { out: String, wrap: i64 },
    #[error("a loop runs {0} times; it must run once at least")]
    LoopCount(i64),
    #[error("endloop without a loop")]
    EndWithoutLoop,
    #[error("a loop that does not end")]
    LoopWithoutEnd,
    #[error("loops are nested more than {0} deep")]
    Depth(usize),
    #[error("more than {0} instructions have run; raise the limit if the loops are meant to be that long")]
    Budget(u64),
    #[error("{variable} is {value}, which is no {wanted}")]
    Setting { variable: String, value: i64, wanted: &'static str },
}

impl ProgramProblem {
    /// Adds the position.
    pub fn at(self, program: &Program, at: Position) -> ProgramError {
        ProgramError { program: program.name.clone(), at, problem: self }
    }
}
