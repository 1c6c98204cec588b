//! The interpreter of programs.

use super::error::{ProgramError, ProgramProblem};
use super::settings::{Bindings, Effect, Launch, ResolvedSettings};
use super::variables::{Parameters, Variables};
use std::collections::BTreeMap;
use std::ops::Range;
use tilework_netlist::types::{InstructionKind, Netlist, Position, Program, QueueId, VarOp};

/// Values of static variables between the runs of a program.
pub type Statics = BTreeMap<String, i64>;

/// Bounds of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The most instructions; every iteration of a loop counts.
    pub instructions: u64,
    /// The deepest nesting of loops.
    pub depth: usize,
}

impl Default for Limits {
    /// A hundred million instructions, loops 64 deep: far beyond every netlist of the
    /// public repository.
    fn default() -> Self {
        Self { instructions: 100_000_000, depth: 64 }
    }
}

/// An effect that an instruction asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// A variable has a new value.
    Changed {
        /// How it changed.
        op: VarOp,
        /// Pointers that follow it.
        effects: Vec<Effect>,
    },
    /// Queues are allocated.
    Allocate(Vec<QueueId>),
    /// Queues are deallocated.
    Deallocate(Vec<QueueId>),
    /// A loop begins.
    LoopStart(LoopBody),
    /// An iteration of the innermost loop is over.
    LoopTurn {
        /// Whether it was the last.
        last: bool,
    },
    /// A graph runs.
    Execute(Launch),
}

/// A loop that begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoopBody {
    /// Number of iterations.
    pub count: u64,
    /// Its instructions, by index in the program.
    pub body: Range<usize>,
}

/// A running program.
#[derive(Debug)]
pub struct Interpreter<'n> {
    netlist: &'n Netlist,
    program: &'n Program,
    parameters: &'n Parameters,
    kept: Statics,
    variables: Variables,
    bindings: Bindings,
    /// Index of the next instruction.
    next: usize,
    loops: Vec<Turns>,
    limits: Limits,
    spent: u64,
}

#[derive(Debug)]
struct Turns {
    /// Index of the first instruction of the body.
    body: usize,
    /// Iterations after this one.
    left: u64,
}

impl<'n> Interpreter<'n> {
    /// Starts a program. `kept` are the static variables of its last run.
    pub fn new(
        netlist: &'n Netlist,
        program: &'n Program,
        parameters: &'n Parameters,
        kept: Statics,
        limits: Limits,
    ) -> Self {
        let (variables, bindings, loops) = (Variables::default(), Bindings::default(), Vec::new());
        Self { netlist, program, parameters, kept, variables, bindings, next: 0, loops, limits, spent: 0 }
    }

    /// The variables as they are.
    pub fn variables(&self) -> &Variables {
        &self.variables
    }

    /// Static variables for the next run, including those that this run did not reach.
    pub fn into_statics(mut self) -> Statics {
        self.kept.extend(self.variables.statics().map(|(name, value)| (name.to_string(), value)));
        self.kept
    }

    /// Runs up to the next instruction with an effect; `None` at the end of the program.
    pub fn step(&mut self) -> Result<Option<Step>, ProgramError> {
        while let Some(instruction) = self.program.instructions.get(self.next) {
            let at = instruction.at;
            self.next += 1;
            self.spent += 1;
            if self.spent > self.limits.instructions {
                return Err(self.error(ProgramProblem::Budget(self.limits.instructions), at));
            }
            if matches!(instruction.kind, InstructionKind::EndProgram) {
                self.next = self.program.instructions.len();
                break;
            }
            let step = self.perform(&instruction.kind, at).map_err(|problem| self.error(problem, at))?;
            if step.is_some() {
                return Ok(step);
            }
        }
        match self.loops.last() {
            None => Ok(None),
            Some(open) => {
                let at = self.program.instructions[open.body - 1].at;
                Err(self.error(ProgramProblem::LoopWithoutEnd, at))
            }
        }
    }

    fn error(&self, problem: ProgramProblem, at: Position) -> ProgramError {
        problem.at(self.program, at)
    }

    fn perform(&mut self, kind: &'n InstructionKind, at: Position) -> Result<Option<Step>, ProgramProblem> {
        match kind {
            InstructionKind::Var(names) => {
                names.iter().try_for_each(|(name, value)| self.variables.declare(name, *value))?;
            }
            InstructionKind::StaticVar(names) => {
                for (name, first) in names {
                    self.variables.declare_static(name, *first, self.kept.get(name).copied())?;
                }
            }
            InstructionKind::Param(names) => self.parameters(names)?,
            InstructionKind::VarInst { out, op, args } => {
                let value = self.variables.change(out, *op, args)?;
                return Ok(Some(Step::Changed { op: *op, effects: self.bindings.effects(out, value) }));
            }
            InstructionKind::AllocateQueue(queues) => return Ok(Some(Step::Allocate(queues.clone()))),
            InstructionKind::DeallocateQueue(queues) => return Ok(Some(Step::Deallocate(queues.clone()))),
            InstructionKind::Loop(count) => {
                let count = self.variables.value(count)?;
                return self.begin(count).map(|body| Some(Step::LoopStart(body)));
            }
            InstructionKind::EndLoop => return self.turn().map(|last| Some(Step::LoopTurn { last })),
            InstructionKind::Execute { graph, settings } => {
                let resolve = |settings| ResolvedSettings::resolve(self.netlist, settings, &self.variables);
                let launch =
                    Launch { graph: *graph, at, settings: settings.iter().map(resolve).collect::<Result<_, _>>()? };
                settings.iter().for_each(|settings| self.bindings.bind(settings));
                return Ok(Some(Step::Execute(launch)));
            }
            InstructionKind::EndProgram => {}
        }
        Ok(None)
    }

    fn parameters(&mut self, names: &[String]) -> Result<(), ProgramProblem> {
        let missing: Vec<&str> =
            names.iter().filter(|name| !self.parameters.contains_key(*name)).map(String::as_str).collect();
        if !missing.is_empty() {
            return Err(ProgramProblem::MissingParameters(missing.join(", ")));
        }
        names.iter().try_for_each(|name| self.variables.declare_parameter(name, self.parameters[name]))
    }

    fn begin(&mut self, count: i64) -> Result<LoopBody, ProgramProblem> {
        let count = u64::try_from(count).ok().filter(|count| *count > 0).ok_or(ProgramProblem::LoopCount(count))?;
        if self.loops.len() >= self.limits.depth {
            return Err(ProgramProblem::Depth(self.limits.depth));
        }
        self.loops.push(Turns { body: self.next, left: count - 1 });
        let end = matching_end(&self.program.instructions[self.next..]).ok_or(ProgramProblem::LoopWithoutEnd)?;
        Ok(LoopBody { count, body: self.next..self.next + end })
    }

    /// Continues with the next iteration or after the loop; returns whether it was the
    /// last iteration.
    fn turn(&mut self) -> Result<bool, ProgramProblem> {
        let turns = self.loops.last_mut().ok_or(ProgramProblem::EndWithoutLoop)?;
        if turns.left == 0 {
            self.loops.pop();
            return Ok(true);
        }
        turns.left -= 1;
        self.next = turns.body;
        Ok(false)
    }
}

/// Index of the `endloop` of the loop whose body begins here.
fn matching_end(instructions: &[tilework_netlist::types::Instruction]) -> Option<usize> {
    let mut depth = 0;
    instructions.iter().position(|instruction| {
        match instruction.kind {
            InstructionKind::Loop(_) => depth += 1,
            InstructionKind::EndLoop if depth == 0 => return true,
            InstructionKind::EndLoop => depth -= 1,
            _ => {}
        }
        false
    })
}
