//! Checks the liveness of a program's tensors: each is created once, used only until it is
//! deallocated, and described identically wherever it is named.

use std::collections::HashMap;
use std::sync::Arc;

use tilework_model::Direction;
use tilework_model::schema::Edition;
use tilework_model::ttnn::{OpKind, Operation, Program, TensorRef};

use super::{Mesh, Planned, Step, Written, mesh, place, role};
use crate::describe::Stated;
use crate::error::{Reason, RunError, Subject};
use crate::lower::{Action, Lowering, NativeCode, Setting, Write};
use crate::session::Options;

/// State of a tensor.
struct Known {
    /// The operation that made it; `None` for an input.
    by: Option<(usize, OpKind)>,
    /// The operation that deallocated it.
    freed: Option<usize>,
    /// Element type and shape with which it was made; absent if that was an error itself.
    stated: Option<Stated>,
}

/// The tensors of a program, by global id.
#[derive(Default)]
struct Tensors(HashMap<u32, Known>);

impl Tensors {
    /// Checks a tensor that is used here: it must exist and have its type and shape.
    fn used(&mut self, operation: &Operation, tensor: &TensorRef) -> Result<&mut Known, Reason> {
        let id = tensor.global_id;
        let role = || role(operation, tensor);
        let known = self.0.get_mut(&id).ok_or_else(|| Reason::Unknown { id, role: role() })?;
        if let Some(by) = known.freed {
            return Err(Reason::Freed { id, role: role(), by });
        }
        if let (Some(made), Ok(here)) = (&known.stated, Stated::of(&tensor.desc))
            && *made != here
        {
            let (here, made) = (here.to_string(), made.to_string());
            return Err(Reason::Disagreement { id, role: role(), here, made });
        }
        Ok(known)
    }

    /// Checks a tensor that is made here: it must not exist yet.
    fn made(&mut self, at: usize, operation: &Operation, tensor: &TensorRef) -> Result<(), Reason> {
        let id = tensor.global_id;
        let stated = Stated::of(&tensor.desc).ok();
        let known = Known { by: Some((at, operation.kind())), freed: None, stated };
        let Some(before) = self.0.insert(id, known) else { return Ok(()) };
        let by = match before.by {
            None => "it is an input".to_owned(),
            Some((by, _)) if by == at => "this operation made it before".to_owned(),
            Some((by, _)) => format!("operation {by} made it"),
        };
        Err(Reason::Duplicate { id, role: role(operation, tensor), by })
    }
}

/// Lowers and checks a program.
pub(super) fn plan<'m>(
    index: usize,
    program: &'m Program,
    edition: Edition,
    options: &Options,
    errors: &mut Vec<RunError>,
) -> Planned<'m> {
    let subject = || Subject::Program(index, program.name.clone());
    let mesh = mesh(program).unwrap_or_else(|refusal| {
        errors.push(RunError::new(subject(), refusal.reason()));
        Mesh { rows: 1, columns: 1 }
    });
    let host = options.native_code.clone().map(Arc::new);
    let native = NativeCode { libraries: &program.dylibs, host };
    let setting = Setting { mesh, rounding: options.rounding, edition, native };
    let mut tensors = Tensors::default();
    for (position, input) in program.inputs.iter().enumerate() {
        let role = || format!("inputs[{position}]");
        let stated = Stated::of(&input.desc).map_err(|refusal| {
            let why = Reason::Input(format!("input {position}: {}", refusal.reason()));
            errors.push(RunError::new(subject(), why));
        });
        let known = Known { by: None, freed: None, stated: stated.ok() };
        if tensors.0.insert(input.global_id, known).is_some() {
            let reason = Reason::Duplicate { id: input.global_id, role: role(), by: "it is another input".to_owned() };
            errors.push(RunError::new(subject(), reason));
        }
    }
    let mut steps = Vec::with_capacity(program.operations.len());
    for (at, operation) in program.operations.iter().enumerate() {
        let failed = |reason| RunError::new(Subject::Operation(place(index, program, at, operation)), reason);
        match step(at, operation, &setting, &mut tensors) {
            Ok(step) => steps.push(step),
            Err(reasons) => errors.extend(reasons.into_iter().map(failed)),
        }
    }
    for (position, output) in program.outputs.iter().enumerate() {
        let id = output.global_id;
        let role = format!("outputs[{position}]");
        let reason = match tensors.0.get(&id) {
            None => Reason::Unknown { id, role },
            Some(Known { freed: Some(by), .. }) => Reason::Freed { id, role, by: *by },
            Some(_) => continue,
        };
        errors.push(RunError::new(subject(), reason));
    }
    Planned { index, program, mesh, steps }
}

/// Lowers and checks one operation.
fn step<'m>(
    at: usize,
    operation: &'m Operation,
    setting: &Setting<'m>,
    tensors: &mut Tensors,
) -> Result<Step<'m>, Vec<Reason>> {
    let (lowering, action) = match Lowering::of(&operation.op, setting) {
        Ok(lowered) => lowered,
        Err(refusal) => {
            // Its results count as existing, so that later operations that use them are
            // not reported.
            for operand in operation.operands().iter().filter(|operand| operand.direction == Direction::Out) {
                _ = tensors.made(at, operation, operand.tensor);
            }
            return Err(vec![refusal.reason()]);
        }
    };
    let mut reasons = Vec::new();
    for &tensor in &lowering.reads {
        match tensors.used(operation, tensor) {
            Ok(known) if matches!(action, Action::Free) => known.freed = Some(at),
            Ok(known) => {
                let replayed = operation.kind() == OpKind::ExecuteTrace;
                if replayed && !matches!(known.by, Some((_, OpKind::BeginTraceCapture))) {
                    reasons.push(Reason::Unsupported("replaying a trace that another program recorded".to_owned()));
                }
            }
            Err(reason) => reasons.push(reason),
        }
    }
    let mut writes = Vec::with_capacity(lowering.writes.len());
    for (tensor, how) in lowering.writes {
        let known = match how {
            Write::New => tensors.made(at, operation, tensor),
            Write::Change => tensors.used(operation, tensor).map(|_| ()),
        };
        reasons.extend(known.err());
        match Stated::of(&tensor.desc) {
            Ok(stated) => writes.push(Written { tensor, how, stated: stated.under(setting.rounding) }),
            Err(refusal) => reasons.push(refusal.reason()),
        }
    }
    if let (Action::Pass { .. }, [from], [to]) = (&action, &lowering.reads[..], &writes[..])
        && let Ok(from) = Stated::of(&from.desc)
        && !to.stated.fits(&from.shape)
    {
        let what = format!("a tensor of shape {} is passed on as one of shape {}", from.shape, to.stated.shape);
        reasons.push(Reason::Malformed(what));
    }
    let step = Step { index: at, operation, reads: lowering.reads, writes, action };
    if reasons.is_empty() { Ok(step) } else { Err(reasons) }
}
