//! A plan: a program and all programs that it may call, lowered and checked before anything runs.
//!
//! Programs are straight-line code, so the tensors that exist at each operation ([`flow`]) and the
//! call graph ([`calls`]) are known before the run. Errors are collected: a run reports the first
//! with the number of the others, and a check can show all.

mod calls;
mod flow;

use tilework_model::Model;
use tilework_model::ttnn::{Operation, Program, TensorRef};
use tilework_ops::mesh::Mesh;

use crate::describe::Stated;
use crate::error::{OperationPlace, Reason, RunError, Subject};
use crate::lower::{Action, Refusal, Write};
use crate::session::Options;

/// Devices that a mesh may have. The largest machines that these compilers know have 128
/// (four Galaxies).
const MAX_DEVICES: usize = 256;

/// A tensor that an operation writes.
pub(crate) struct Written<'m> {
    pub(crate) tensor: &'m TensorRef,
    pub(crate) how: Write,
    pub(crate) stated: Stated,
}

/// An operation, lowered.
pub(crate) struct Step<'m> {
    pub(crate) index: usize,
    pub(crate) operation: &'m Operation,
    pub(crate) reads: Vec<&'m TensorRef>,
    pub(crate) writes: Vec<Written<'m>>,
    pub(crate) action: Action<'m>,
}

/// A program, lowered.
pub(crate) struct Planned<'m> {
    pub(crate) index: usize,
    pub(crate) program: &'m Program,
    pub(crate) mesh: Mesh,
    pub(crate) steps: Vec<Step<'m>>,
}

/// A program and all that it may call.
pub(crate) struct Plan<'m> {
    /// By index in the file; those that are not called are absent.
    programs: Vec<Option<Planned<'m>>>,
}

impl<'m> Plan<'m> {
    /// Plans a program.
    pub(crate) fn of(model: &'m Model, main: usize, options: &Options) -> Result<Self, Vec<RunError>> {
        let programs = model.programs();
        let mut plan = Self { programs: programs.iter().map(|_| None).collect() };
        let mut errors = Vec::new();
        let mut waiting = vec![main];
        while let Some(index) = waiting.pop() {
            if plan.get(index).is_some() {
                continue;
            }
            let Some(program) = programs.get(index) else {
                // Calls of programs that do not exist are reported at the call.
                let reason = Reason::NoProgram { index, count: programs.len() };
                errors.push(RunError::new(Subject::Model, reason));
                continue;
            };
            let planned = flow::plan(index, program, model.edition, options, &mut errors);
            let targets = planned.steps.iter().filter_map(|step| match &step.action {
                Action::Call(call) => Some(call.targets()),
                _ => None,
            });
            waiting.extend(targets.flatten().filter(|&target| target < programs.len()));
            plan.programs[index] = Some(planned);
        }
        if errors.is_empty() {
            calls::check(&plan, main, options, &mut errors);
        }
        if errors.is_empty() { Ok(plan) } else { Err(errors) }
    }

    /// A program of the plan.
    pub(crate) fn get(&self, index: usize) -> Option<&Planned<'m>> {
        self.programs.get(index)?.as_ref()
    }

    /// All programs of the plan, in the order of the file.
    fn all(&self) -> impl Iterator<Item = &Planned<'m>> {
        self.programs.iter().flatten()
    }
}

/// An operation of a plan, for those who want to know beforehand what a machine will do.
#[derive(Clone, Debug)]
pub struct Outline<'m> {
    /// Where it is.
    pub place: OperationPlace,
    /// The operation.
    pub operation: &'m Operation,
    /// The tensors that it reads.
    pub reads: Vec<&'m TensorRef>,
    /// The tensors that it makes or changes.
    pub writes: Vec<&'m TensorRef>,
    /// Whether a machine carries it out ([`Machine::operate`](crate::Machine::operate)); calls,
    /// names that end and messages are the engine's own.
    pub carried: bool,
    /// Whether it passes its operand on as it is.
    pub passes: bool,
}

impl<'m> Plan<'m> {
    /// All operations, program by program.
    pub(crate) fn outline(&self) -> Vec<Outline<'m>> {
        let of = |planned: &Planned<'m>, step: &Step<'m>| Outline {
            place: planned.place(step),
            operation: step.operation,
            reads: step.reads.clone(),
            writes: step.writes.iter().map(|write| write.tensor).collect(),
            carried: matches!(step.action, Action::Compute(_) | Action::OnEach(_) | Action::Pass { .. }),
            passes: matches!(step.action, Action::Pass { .. }),
        };
        self.all().flat_map(|planned| planned.steps.iter().map(move |step| of(planned, step))).collect()
    }
}

impl Planned<'_> {
    /// The place of one of its operations.
    pub(crate) fn place(&self, step: &Step<'_>) -> OperationPlace {
        place(self.index, self.program, step.index, step.operation)
    }

    /// The program as the subject of an error.
    pub(crate) fn subject(&self) -> Subject {
        Subject::Program(self.index, self.program.name.clone())
    }
}

fn place(program: usize, of: &Program, index: usize, operation: &Operation) -> OperationPlace {
    OperationPlace {
        program,
        program_name: of.name.clone(),
        operation: index,
        kind: operation.kind(),
        name: operation.name().map(str::to_owned),
        loc: operation.loc_info.clone(),
    }
}

/// The role of a tensor in an operation.
pub(crate) fn role(operation: &Operation, tensor: &TensorRef) -> String {
    let operands = operation.operands();
    let found = operands.into_iter().find(|operand| std::ptr::eq(operand.tensor, tensor));
    found.map_or_else(|| "tensor".to_owned(), |operand| operand.role)
}

/// The devices that a program runs on: one, unless it says otherwise.
fn mesh(program: &Program) -> Result<Mesh, Refusal> {
    let Some(shape) = program.mesh_shape else { return Ok(Mesh { rows: 1, columns: 1 }) };
    match (usize::try_from(shape.y), usize::try_from(shape.x)) {
        (Ok(rows @ 1..=MAX_DEVICES), Ok(columns @ 1..=MAX_DEVICES)) if rows * columns <= MAX_DEVICES => {
            Ok(Mesh { rows, columns })
        }
        _ => Err(Refusal::malformed(format!("a mesh of {} by {} devices", shape.y, shape.x))),
    }
}
