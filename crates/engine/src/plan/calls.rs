//! The call graph: called programs exist and match their callers, there is no recursion, and calls
//! are no deeper than allowed.

use std::collections::HashMap;

use tilework_model::ttnn::TensorRef;

use super::{Plan, Planned, Step};
use crate::describe::Stated;
use crate::error::{Reason, RunError, Subject};
use crate::lower::{Action, Call, LoopCount};
use crate::session::Options;

/// Checks the calls of a plan.
pub(super) fn check(plan: &Plan<'_>, main: usize, options: &Options, errors: &mut Vec<RunError>) {
    for planned in plan.all() {
        for step in &planned.steps {
            if let Action::Call(call) = &step.action
                && let Err(what) = fits(plan, step, call)
            {
                errors.push(RunError::new(Subject::Operation(planned.place(step)), Reason::Malformed(what)));
            }
        }
    }
    if errors.is_empty() {
        let mut depths = Depths { plan, limit: options.call_depth(), known: HashMap::new(), path: Vec::new() };
        errors.extend(depths.of(main).err());
    }
}

/// Call depth by program.
struct Depths<'p, 'm> {
    plan: &'p Plan<'m>,
    limit: usize,
    known: HashMap<usize, usize>,
    path: Vec<usize>,
}

impl Depths<'_, '_> {
    /// The depth of the calls that begin with this program. Found by recursion, which the
    /// limit bounds.
    fn of(&mut self, program: usize) -> Result<usize, RunError> {
        if let Some(&depth) = self.known.get(&program) {
            return Ok(depth);
        }
        let Some(planned) = self.plan.get(program) else { return Ok(0) };
        self.path.push(program);
        let mut deepest = 0;
        for step in &planned.steps {
            let Action::Call(call) = &step.action else { continue };
            for target in call.targets() {
                let failed = |reason| RunError::new(Subject::Operation(planned.place(step)), reason);
                if self.path.contains(&target) {
                    return Err(failed(Reason::Malformed(format!("program {target} calls itself"))));
                }
                if self.path.len() > self.limit {
                    let limit = self.limit as u64;
                    return Err(failed(Reason::Budget { what: "nested calls", limit }));
                }
                deepest = deepest.max(1 + self.of(target)?);
                if self.path.len() + deepest > self.limit + 1 {
                    let limit = self.limit as u64;
                    return Err(failed(Reason::Budget { what: "nested calls", limit }));
                }
            }
        }
        self.path.pop();
        self.known.insert(program, deepest);
        Ok(deepest)
    }
}

/// Checks that the operands of an operation match the inputs of the called programs, and its
/// results their outputs.
fn fits(plan: &Plan<'_>, step: &Step<'_>, call: &Call<'_>) -> Result<(), String> {
    let program =
        |index: usize| plan.get(index).ok_or_else(|| format!("it calls program {index}, which does not exist"));
    let reads = &step.reads[..];
    let made: Vec<&TensorRef> = step.writes.iter().map(|write| write.tensor).collect();
    match call {
        Call::Function { program: target } | Call::Cached { program: target, .. } => {
            whole(program(*target)?, reads, &made)
        }
        Call::Case { branches } => {
            let inputs = reads.get(1..).unwrap_or_default();
            branches.iter().try_for_each(|&branch| whole(program(branch)?, inputs, &made))
        }
        Call::Loop(by) => {
            let state = &reads[..by.state];
            whole(program(by.body)?, reads, state)?;
            if let LoopCount::While(condition) = by.count {
                let condition = program(condition)?;
                same(condition, "inputs", reads, &condition.program.inputs)?;
                if condition.program.outputs.len() != 1 {
                    return Err(format!("{} returns {} results", name(condition), condition.program.outputs.len()));
                }
            }
            let results: Vec<&TensorRef> = by.outputs.iter().map(|&index| state[index]).collect();
            agree("the loop's state", &results, &made)
        }
        Call::Traced(by) => {
            let (allocate, capture) = (program(by.allocate)?, program(by.capture)?);
            let of = |device: bool| {
                reads.iter().zip(&by.on_device).filter(move |(_, on)| **on == device).map(|(tensor, _)| *tensor)
            };
            let slots: Vec<&TensorRef> = reads.iter().chain(&made).copied().collect();
            let taken: Vec<&TensorRef> = of(false).chain(slots.iter().copied()).collect();
            same(allocate, "inputs", &of(true).collect::<Vec<_>>(), &allocate.program.inputs)?;
            // The element type of a slot can differ from that of the values written into it.
            alike(allocate, "results", &slots, &allocate.program.outputs)?;
            alike(capture, "inputs", &taken, &capture.program.inputs)
        }
    }
}

fn name(planned: &Planned<'_>) -> String {
    format!("program {} ({})", planned.index, planned.program.name)
}

fn whole(target: &Planned<'_>, inputs: &[&TensorRef], outputs: &[&TensorRef]) -> Result<(), String> {
    same(target, "inputs", inputs, &target.program.inputs)?;
    same(target, "results", outputs, &target.program.outputs)
}

/// Checks that two lists of tensors have the same shapes.
fn alike(target: &Planned<'_>, what: &str, here: &[&TensorRef], there: &[TensorRef]) -> Result<(), String> {
    let same = here.len() == there.len() && here.iter().zip(there).all(|(a, b)| a.desc.shape == b.desc.shape);
    if same { Ok(()) } else { Err(format!("{what} of {} have other shapes here", name(target))) }
}

fn same(target: &Planned<'_>, what: &str, here: &[&TensorRef], there: &[TensorRef]) -> Result<(), String> {
    agree(&format!("{what} of {}", name(target)), here, &there.iter().collect::<Vec<_>>())
}

/// Checks that two lists of tensors have the same element types and shapes.
fn agree(what: &str, here: &[&TensorRef], there: &[&TensorRef]) -> Result<(), String> {
    if here.len() != there.len() {
        return Err(format!("{what}: {} here, {} there", here.len(), there.len()));
    }
    for (index, (here, there)) in here.iter().zip(there).enumerate() {
        if let (Ok(here), Ok(there)) = (Stated::of(&here.desc), Stated::of(&there.desc))
            && here != there
        {
            return Err(format!("{what}: number {index} is {here} here, {there} there"));
        }
    }
    Ok(())
}
