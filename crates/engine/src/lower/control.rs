//! Calls of other programs, branches, loops and traces. Which programs exist and whether they fit
//! is checked by the plan; this module only determines which are called, and how.

use tilework_model::ttnn::ops::control::{CaseOp, FuncCallOp, LoadCachedOp, LoopBound, WhileLoopOp};
use tilework_model::ttnn::ops::trace::{
    BeginTraceCaptureOp, CaptureOrExecuteTraceOp, EndTraceCaptureOp, ExecuteTraceOp,
};
use tilework_model::ttnn::types::StorageType;
use tilework_ops as ops;

use super::*;

/// How other programs run. Unless stated otherwise, they take the operands of the operation and
/// return its results.
#[derive(Clone, Debug)]
pub(crate) enum Call<'m> {
    /// One program, once.
    Function {
        /// Its index.
        program: usize,
    },
    /// One program whose results are kept.
    Cached {
        /// Its index.
        program: usize,
        /// Hash of the program by which the compiler names the results.
        hash: &'m str,
    },
    /// One of several. The first operand selects it; the others are its inputs.
    Case {
        /// Their indices.
        branches: Vec<usize>,
    },
    /// A loop.
    Loop(Loop),
    /// Programs of a trace.
    Traced(TracedCall),
}

/// A loop: the first `state` inputs change from one iteration to the next.
#[derive(Clone, Debug)]
pub(crate) struct Loop {
    /// Takes all inputs, returns the next state.
    pub(crate) body: usize,
    /// When it ends.
    pub(crate) count: LoopCount,
    /// Number of tensors in the state.
    pub(crate) state: usize,
    /// Which of the state are results.
    pub(crate) outputs: Vec<usize>,
}

/// When a loop ends.
#[derive(Clone, Copy, Debug)]
pub(crate) enum LoopCount {
    /// It runs while a program that takes all inputs returns something other than 0.
    While(usize),
    /// It runs once for each number from the first below the second in steps of the third.
    For([Bound; 3]),
}

/// A number, or the input that has it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Bound {
    Number(i64),
    Input(usize),
}

/// A traced call. Its commands are recorded in the first run and replayed later by a machine that
/// can; else the recording program runs each time, as it also computes.
#[derive(Clone, Debug)]
pub(crate) struct TracedCall {
    /// Makes the tensors that the trace works on: takes the inputs that are on the device, returns
    /// slots for all inputs, then for all results.
    pub(crate) allocate: usize,
    /// Runs and records: takes the inputs that are on the host, then all slots. It returns the
    /// trace's id; results are in the slots.
    pub(crate) capture: usize,
    /// Which inputs are on the device.
    pub(crate) on_device: Vec<bool>,
    /// Whether there is a trace for each value of some inputs.
    pub(crate) keyed: bool,
}

impl Call<'_> {
    /// All programs that it may run.
    pub(crate) fn targets(&self) -> Vec<usize> {
        match self {
            Self::Function { program } | Self::Cached { program, .. } => vec![*program],
            Self::Case { branches } => branches.clone(),
            Self::Loop(Loop { body, count: LoopCount::While(condition), .. }) => vec![*condition, *body],
            Self::Loop(Loop { body, .. }) => vec![*body],
            Self::Traced(call) => vec![call.allocate, call.capture],
        }
    }
}

/// Adds the inputs and outputs of a call.
fn called<'m>(
    inputs: &'m [TensorRef],
    outputs: &'m [TensorRef],
    call: Call<'m>,
    lowering: &mut Lowering<'m>,
) -> Lowered<'m> {
    inputs.iter().for_each(|input| _ = lowering.read(input));
    for output in outputs {
        lowering.make(output)?;
    }
    Ok(Action::Call(call))
}

pub(super) fn call<'m>(op: &'m FuncCallOp, lowering: &mut Lowering<'m>) -> Lowered<'m> {
    let call = Call::Function { program: op.program_id as usize };
    called(&op.inputs, &op.outputs, call, lowering)
}

pub(super) fn load_cached<'m>(op: &'m LoadCachedOp, lowering: &mut Lowering<'m>) -> Lowered<'m> {
    let call = Call::Cached { program: op.program_idx as usize, hash: &op.program_hash };
    called(&op.inputs, &op.outputs, call, lowering)
}

pub(super) fn case<'m>(op: &'m CaseOp, lowering: &mut Lowering<'m>) -> Lowered<'m> {
    if op.branch_program_ids.is_empty() {
        return Err(Refusal::malformed("no branches"));
    }
    lowering.read(&op.index);
    let branches = op.branch_program_ids.iter().map(|&program| program as usize).collect();
    called(&op.inputs, &op.outputs, Call::Case { branches }, lowering)
}

pub(super) fn while_loop<'m>(op: &'m WhileLoopOp, lowering: &mut Lowering<'m>) -> Lowered<'m> {
    let state = op.state_count as usize;
    if state > op.inputs.len() {
        return Err(Refusal::malformed(format!("a state of {state} tensors, but {} inputs", op.inputs.len())));
    }
    let bound = |name: &str, bound: &Option<LoopBound>| match bound {
        None => Err(Refusal::malformed(format!("neither a condition nor {name}"))),
        Some(LoopBound { constant, input_index: None }) => Ok(Bound::Number(*constant)),
        Some(LoopBound { input_index: Some(index), .. }) => match count(name, *index)? {
            index if index < op.inputs.len() => Ok(Bound::Input(index)),
            index => Err(Refusal::malformed(format!("{name} is input {index} of {}", op.inputs.len()))),
        },
    };
    let count_of = match op.condition_program_id {
        Some(condition) => LoopCount::While(condition as usize),
        None => LoopCount::For([bound("initial", &op.initial)?, bound("limit", &op.limit)?, bound("step", &op.step)?]),
    };
    let outputs: Vec<usize> =
        op.output_indices.iter().map(|&index| count("output_indices", index)).collect::<Result<_, _>>()?;
    if outputs.len() != op.outputs.len() || outputs.iter().any(|&index| index >= state) {
        let what = format!("{} results from {outputs:?} of a state of {state}", op.outputs.len());
        return Err(Refusal::malformed(what));
    }
    let whole = Loop { body: op.body_program_id as usize, count: count_of, state, outputs };
    called(&op.inputs, &op.outputs, Call::Loop(whole), lowering)
}

pub(super) fn traced<'m>(op: &'m CaptureOrExecuteTraceOp, lowering: &mut Lowering<'m>) -> Lowered<'m> {
    // Since jax-tt-plugin 0.1.3 the file says how many of the first inputs are slots themselves;
    // before, the inputs on the device are.
    let counted = count("device_resident_input_count", op.device_resident_input_count)?;
    let on_device = |(position, input): (usize, &TensorRef)| match lowering.edition >= Edition::Plugin013 {
        true => position < counted,
        false => input.desc.storage() == StorageType::Device,
    };
    let call = TracedCall {
        allocate: op.allocate_slots_program_id as usize,
        capture: op.capture_program_id as usize,
        on_device: op.inputs.iter().enumerate().map(on_device).collect(),
        keyed: !op.trace_key_input_indices.is_empty(),
    };
    called(&op.inputs, &op.outputs, Call::Traced(call), lowering)
}

/// Operations between begin and end are computed in place, as the replay that follows would compute
/// them; on a device they are only recorded. The id of a trace is 0.
pub(super) fn begin_trace<'m>(op: &'m BeginTraceCaptureOp, lowering: &mut Lowering<'m>) -> Lowered<'m> {
    let stated = lowering.make_whole(&op.trace_id)?;
    Ok(one(move |_| Ok(ops::zeros(stated.shape.clone(), stated.dtype))))
}

pub(super) fn end_trace<'m>(op: &'m EndTraceCaptureOp, lowering: &mut Lowering<'m>) -> Lowered<'m> {
    lowering.read(&op.trace_id);
    Ok(Action::Nothing)
}

/// The plan allows this only for a trace that the same program recorded, which is computed already.
pub(super) fn execute_trace<'m>(op: &'m ExecuteTraceOp, lowering: &mut Lowering<'m>) -> Lowered<'m> {
    lowering.read(&op.trace_id);
    Ok(Action::Nothing)
}
