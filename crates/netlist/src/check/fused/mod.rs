//! Rules of fused operations: the steps in order, with the buffers that are live between them
//! (tt-budabackend, `netlist/netlist_fused_op_info_types.cpp`).

mod used;

use super::Check;
use super::place::step_at;
use crate::code::{self, Code};
use crate::tree::{Node, Span};
use crate::types::{
    BinaryKind, Dim, FusedId, FusedSource, FusedStep, FusedTarget, Matmul, OpKind, ReduceDim, Size, Tm,
};
use std::collections::HashMap;
use used::used_by;

pub(crate) use used::check_arch;

/// The most intermediate buffers that a core has.
const INTERMEDIATES: u32 = 8;

/// Shape of a buffer between steps: mblock and ublock.
type Dims = (Size, Size);

/// A step and where it is in the schedule.
#[derive(Clone, Copy)]
struct StepAt<'a> {
    fused: FusedId,
    schedule: usize,
    index: usize,
    last: bool,
    step: &'a FusedStep,
}

/// Checks the rules that hold on every architecture.
pub(crate) fn check(check: &mut Check<'_, '_>) {
    for index in 0..check.net.fused_ops.len() {
        let id = FusedId(index);
        if !check.src.broken.fused.contains(&id) {
            schedules(check, id);
        } else if complete(check, id) {
            // A step has an error of its own, but which buffers are live is known.
            let mut state = State::default();
            for place in places(check, id) {
                lives(check, place, &mut state);
            }
            left(check, id, &state);
        }
    }
    for (id, op) in check.ops() {
        if let OpKind::Fused(fused) = op.kind
            && !check.src.broken.fused.contains(&fused)
        {
            used_by(check, id, op, fused);
        }
    }
}

fn places<'a>(check: &Check<'a, '_>, fused: FusedId) -> Vec<StepAt<'a>> {
    let net = check.net;
    let mut all = Vec::new();
    for (schedule, steps) in net.fused(fused).schedules.iter().enumerate() {
        for (index, step) in steps.iter().enumerate() {
            all.push(StepAt { fused, schedule, index, last: index + 1 == steps.len(), step });
        }
    }
    all
}

impl Check<'_, '_> {
    fn step_at(&self, place: StepAt<'_>, field: &str) -> Span {
        step_at(self, place.fused, place.schedule, place.index, field)
    }

    fn step_error(&mut self, code: Code, place: StepAt<'_>, field: &str, message: String, help: &str) {
        let at = self.step_at(place, field);
        self.error(code, at, message, help);
    }
}

/// What is live between steps.
#[derive(Default)]
struct State {
    /// Intermediate buffers that hold a value: schedule, blocks, whether a matmul or a reduction
    /// produced it.
    live: HashMap<u32, (usize, Dims, bool)>,
    /// Blocks that the last step of the schedule left in the destination registers; `None` if it
    /// wrote elsewhere or there was no step.
    dest: Option<Dims>,
    /// The schedule of the last step.
    schedule: usize,
}

fn schedules(check: &mut Check<'_, '_>, id: FusedId) {
    let fused = check.net.fused(id);
    let entry = check.src.fused[id.0];
    if fused.intermediates > INTERMEDIATES {
        let message = format!(
            "fused operation {} has {} intermediate buffers, more than {INTERMEDIATES}",
            fused.id, fused.intermediates
        );
        check.error(code::FUSED_OPERAND, super::field_at(entry, "intermediates"), message, "");
    }
    let all = places(check, id);
    if !all.iter().any(|place| place.step.output == FusedTarget::Output) {
        let message = format!("no step of fused operation {} writes to `output`", fused.id);
        check.error(code::FUSED_OUTPUT, entry.at, message, "let the last step write there");
    }
    let mut state = State::default();
    for place in all {
        if place.schedule != state.schedule {
            state.dest = None;
            state.schedule = place.schedule;
        }
        let before = check.sink.errors();
        form(check, place);
        operands(check, place);
        if check.sink.errors() == before {
            destination(check, place, &state);
            broadcasts(check, place, &state);
            dims(check, place, &state);
        }
        lives(check, place, &mut state);
        state.dest = (place.step.output == FusedTarget::Dest).then_some((place.step.mblock, place.step.ublock));
    }
    left(check, id, &state);
}

/// Whether every step of the file was understood.
fn complete(check: &Check<'_, '_>, id: FusedId) -> bool {
    let written = check.src.fused[id.0].value.get("schedules").and_then(|node| node.list()).unwrap_or_default();
    let read = &check.net.fused(id).schedules;
    let same = |(node, steps): (&Node, &Vec<FusedStep>)| node.list().is_some_and(|list| list.len() == steps.len());
    written.len() == read.len() && written.iter().zip(read).all(same)
}

/// Reports intermediate buffers that are still full at the end.
fn left(check: &mut Check<'_, '_>, id: FusedId, state: &State) {
    let (fused, entry) = (check.net.fused(id), check.src.fused[id.0]);
    for (buffer, (schedule, ..)) in sorted(&state.live) {
        let message = format!(
            "`intermed{buffer}`, made in schedule {schedule}, is not freed by the end of fused operation {}",
            fused.id
        );
        check.error(code::FUSED_LEFT, entry.at, message, &format!("pop intermed{buffer} where it is read last"));
    }
}

fn sorted(live: &HashMap<u32, (usize, Dims, bool)>) -> Vec<(u32, (usize, Dims, bool))> {
    let mut all: Vec<_> = live.iter().map(|(buffer, value)| (*buffer, *value)).collect();
    all.sort_by_key(|(buffer, _)| *buffer);
    all
}

fn long(kind: &OpKind) -> bool {
    matches!(kind, OpKind::Matmul(_) | OpKind::Reduce { .. })
}

/// Checks kinds, the number of operands, and the last step.
fn form(check: &mut Check<'_, '_>, place: StepAt<'_>) {
    let step = place.step;
    let name = &step.name;
    let wanted = match &step.kind {
        OpKind::Unary(_) | OpKind::Reduce { .. } => 1,
        OpKind::Binary(_) | OpKind::Quant { .. } | OpKind::Matmul(_) => 2,
        _ => {
            let message = format!("step `{name}` is of a kind that cannot be fused");
            let help = "possible: unary and binary operations, quantisations, matmul, reduce";
            return check.step_error(code::FUSED_NESTING, place, "type", message, help);
        }
    };
    if step.inputs.len() != wanted {
        let message = format!("step `{name}` has {} operands, but its kind takes {wanted}", step.inputs.len());
        check.step_error(code::FUSED_ARITY, place, "inputs", message, "");
    }
    if long(&step.kind) && !place.last {
        let message = format!("step `{name}` is a matmul or reduction, but not the last one of its schedule");
        check.step_error(code::FUSED_LAST, place, "type", message, "begin a new schedule behind it");
    }
    let blocks = match &step.kind {
        OpKind::Matmul(matmul) => matmul.m_k,
        OpKind::Reduce { k: Some((m_k, _)), .. } => *m_k,
        _ => 1,
    };
    if blocks > 1 && !matches!(step.output, FusedTarget::Intermed(_)) {
        let message = format!("step `{name}` has m_k {blocks} and does not write to an intermediate buffer");
        check.step_error(
            code::FUSED_TARGET,
            place,
            "output",
            message,
            "above 1 only intermediate buffers are possible",
        );
    }
    let second = step.inputs.get(1).map(|(source, _)| *source);
    if let (OpKind::Matmul(matmul), Some(FusedSource::Intermed(_))) = (&step.kind, second)
        && matmul.m_k > 1
    {
        let message =
            format!("operand 1 of matmul `{name}` is an intermediate buffer, which holds one micro block of {blocks}");
        check.step_error(code::FUSED_MATMUL_INPUT, place, "inputs", message, "take an input of the fused operation");
    }
}

/// Checks that operands exist and that freed buffers are read.
fn operands(check: &mut Check<'_, '_>, place: StepAt<'_>) {
    let fused = check.net.fused(place.fused);
    let step = place.step;
    let read = step.inputs.iter().map(|(source, _)| *source);
    let written = match step.output {
        FusedTarget::Intermed(buffer) => Some(FusedSource::Intermed(buffer)),
        _ => None,
    };
    for source in read.chain(written) {
        let (kind, index, count) = match source {
            FusedSource::Input(index) => ("input", index, fused.inputs),
            FusedSource::Intermed(index) => ("intermed", index, fused.intermediates),
            FusedSource::Dest => continue,
        };
        if index >= count {
            let message = format!("step `{}` uses `{kind}{index}`, but there are {count}", step.name);
            let field = if written == Some(source) { "output" } else { "inputs" };
            check.step_error(code::FUSED_OPERAND, place, field, message, "");
        }
    }
    for (field, pops) in [("pop", &step.pop), ("pop_last", &step.pop_last)] {
        for source in pops {
            let reason = if !step.inputs.iter().any(|(input, _)| input == source) {
                "what it does not read"
            } else if field == "pop_last" && step.pop.contains(source) {
                "the same operand twice"
            } else if field == "pop_last" && !matches!(source, FusedSource::Intermed(_)) {
                "an operand other than an intermediate buffer at the end"
            } else {
                continue;
            };
            let message = format!("step `{}` frees {reason}", step.name);
            check.step_error(code::FUSED_POP, place, field, message, "");
        }
    }
}

/// Checks uses of the destination registers, which carry a result from one step to the next.
fn destination(check: &mut Check<'_, '_>, place: StepAt<'_>, state: &State) {
    let step = place.step;
    let reads = step.inputs.iter().any(|(source, _)| *source == FusedSource::Dest);
    if reads && state.dest.is_none() {
        let message = format!("step `{}` reads `dest`, but the step before it does not write there", step.name);
        check.step_error(code::FUSED_DEST, place, "inputs", message, "");
    } else if !reads && state.dest.is_some() {
        let message = format!("step `{}` does not read `dest`, where the step before it wrote", step.name);
        check.step_error(
            code::FUSED_DEST,
            place,
            "inputs",
            message,
            "a result in `dest` is there for the next step only",
        );
    }
    let maximum = step.kind == OpKind::Binary(BinaryKind::Maximum);
    if reads && (long(&step.kind) || maximum) {
        let message = format!("step `{}` cannot read `dest`", step.name);
        check.step_error(code::FUSED_DEST_KIND, place, "inputs", message, "a matmul, a reduction and a maximum cannot");
    }
    let vector = maximum || matches!(step.kind, OpKind::Quant { .. });
    if vector && step.output == FusedTarget::Dest {
        let message = format!("step `{}` cannot write to `dest`", step.name);
        check.step_error(code::FUSED_DEST_KIND, place, "output", message, "a maximum and a quantisation cannot");
    }
    if place.last && step.output == FusedTarget::Dest {
        let message = format!("step `{}` is the last one of its schedule and writes to `dest`", step.name);
        check.step_error(code::FUSED_DEST, place, "output", message, "nothing can read it there");
    }
}

/// Returns the blocks of an operand that is produced inside the fused operation.
fn known(source: FusedSource, state: &State) -> Option<Dims> {
    match source {
        FusedSource::Input(_) => None,
        FusedSource::Intermed(buffer) => state.live.get(&buffer).map(|(_, dims, _)| *dims),
        FusedSource::Dest => state.dest,
    }
}

/// Returns how often broadcasts repeat rows and columns.
fn factors(tms: &[Tm]) -> (u64, u64) {
    tms.iter().fold((1, 1), |(r, c), tm| match tm {
        Tm::Broadcast(Dim::R, n) => (r * u64::from(*n), c),
        Tm::Broadcast(Dim::C, n) => (r, c * u64::from(*n)),
        _ => (r, c),
    })
}

fn broadcasts(check: &mut Check<'_, '_>, place: StepAt<'_>, state: &State) {
    let step = place.step;
    for (index, (source, tms)) in step.inputs.iter().enumerate() {
        let field = format!("input_{index}_tms");
        let (r, c) = (
            tms.iter().any(|tm| matches!(tm, Tm::Broadcast(Dim::R, _))),
            tms.iter().any(|tm| matches!(tm, Tm::Broadcast(Dim::C, _))),
        );
        let vector = matches!(step.kind, OpKind::Quant { .. } | OpKind::Binary(BinaryKind::Maximum));
        let tile = tms.iter().any(|tm| matches!(tm, Tm::TileBroadcast(_)));
        let reason = if tms.iter().any(|tm| matches!(tm, Tm::Broadcast(Dim::Z, _))) {
            "matrices cannot be repeated inside a fused operation"
        } else if tms.iter().any(|tm| !matches!(tm, Tm::Broadcast(..) | Tm::TileBroadcast(_))) {
            "inside a fused operation there are only broadcasts"
        } else if tile && (index != 1 || vector || !matches!(step.kind, OpKind::Binary(_))) {
            "`tile_broadcast` is for operand 1 of add, subtract and multiply"
        } else if !r && !c {
            continue;
        } else if !matches!(source, FusedSource::Intermed(_)) {
            "only intermediate buffers can be broadcast"
        } else if r && c {
            "rows and columns cannot both be repeated"
        } else if vector {
            "a quantisation or a maximum cannot repeat its operands"
        } else if r && matches!(step.kind, OpKind::Matmul(_)) {
            "a matmul cannot repeat rows"
        } else if let Some(reason) = known(*source, state).and_then(|dims| fits(step, index, dims, r)) {
            reason
        } else {
            continue;
        };
        let message = format!("operand {index} of step `{}`: {reason}", step.name);
        check.step_error(code::FUSED_BROADCAST, place, &field, message, "");
    }
}

/// Returns why a broadcast of an intermediate buffer is not possible.
fn fits(step: &FusedStep, index: usize, (mblock, ublock): Dims, rows: bool) -> Option<&'static str> {
    match &step.kind {
        OpKind::Matmul(matmul) => {
            let good = index == 0 && (mblock.c == 1 || mblock.c == matmul.m_k);
            (!good).then_some("a matmul repeats columns of operand 0 only, of one block or of m_k")
        }
        _ if rows && (mblock.r, ublock.r) != (1, 1) => Some("rows are repeated only of a buffer with one row of tiles"),
        _ if rows && step.mblock.r != 1 && mblock.c != 1 => {
            Some("rows of blocks are repeated only of one column of blocks")
        }
        _ if !rows && (mblock.c, ublock.c) != (1, 1) => {
            Some("columns are repeated only of a buffer with one column of tiles")
        }
        _ => None,
    }
}

/// Checks the blocks of a step against those of its operands.
fn dims(check: &mut Check<'_, '_>, place: StepAt<'_>, state: &State) {
    let step = place.step;
    for (index, (source, tms)) in step.inputs.iter().enumerate() {
        let Some((mblock, ublock)) = known(*source, state) else { continue };
        let (rows, columns) = factors(tms);
        let good = match &step.kind {
            OpKind::Matmul(matmul) => product(step, matmul, index, (mblock, ublock), columns),
            OpKind::Reduce { dim, k, .. } => reduction(step, *dim, *k, (mblock, ublock)),
            _ => elementwise(step, (mblock, ublock), rows, columns),
        };
        if !good {
            let message = format!(
                "operand {index} of step `{}` has mblock [{}, {}], ublock [{}, {}], which does not fit mblock [{}, {}], ublock [{}, {}]",
                step.name,
                mblock.r,
                mblock.c,
                ublock.r,
                ublock.c,
                step.mblock.r,
                step.mblock.c,
                step.ublock.r,
                step.ublock.c
            );
            let help = match &step.kind {
                OpKind::Matmul(matmul) => inner_blocks(matmul.m_k, matmul.u_kt),
                OpKind::Reduce { k: Some((m_k, u_kt)), .. } => inner_blocks(*m_k, *u_kt),
                _ => String::new(),
            };
            check.step_error(code::FUSED_DIMS, place, "ublock", message, &help);
        }
    }
    if let OpKind::Reduce { dim, .. } = step.kind {
        let one = match dim {
            ReduceDim::R => (step.mblock.r, step.ublock.r) == (1, 1),
            ReduceDim::C => (step.mblock.c, step.ublock.c) == (1, 1),
            ReduceDim::Rc | ReduceDim::Z => false,
        };
        if !one {
            let message = format!("step `{}` must reduce to one row or one column of tiles", step.name);
            check.step_error(code::FUSED_DIMS, place, "ublock", message, "fused reductions have dim r or c");
        }
    }
}

/// Says which blocks a step adds up.
fn inner_blocks(m_k: u32, u_kt: u32) -> String {
    format!("m_k {m_k} and u_kt {u_kt} are the mblock and the ublock of its operands in the direction of the sums")
}

fn elementwise(step: &FusedStep, (mblock, ublock): Dims, rows: u64, columns: u64) -> bool {
    let side = |m: u32, u: u32, factor: u64, to_m: u32, to_u: u32| {
        u64::from(m) * u64::from(u) * factor == u64::from(to_m) * u64::from(to_u) && to_m >= m && to_u >= u
    };
    side(mblock.r, ublock.r, rows, step.mblock.r, step.ublock.r)
        && side(mblock.c, ublock.c, columns, step.mblock.c, step.ublock.c)
}

fn product(step: &FusedStep, matmul: &Matmul, index: usize, (mblock, ublock): Dims, columns: u64) -> bool {
    let k = u64::from(matmul.m_k) * u64::from(matmul.u_kt);
    if index == 0 {
        let inner = if columns == 1 {
            (mblock.c, ublock.c) == (matmul.m_k, matmul.u_kt)
        } else {
            u64::from(mblock.c) * u64::from(ublock.c) * columns == k
        };
        return inner && (mblock.r, ublock.r) == (step.mblock.r, step.ublock.r);
    }
    (mblock.r, ublock.r) == (matmul.m_k, matmul.u_kt) && (mblock.c, ublock.c) == (step.mblock.c, step.ublock.c)
}

fn reduction(step: &FusedStep, dim: ReduceDim, k: Option<(u32, u32)>, (mblock, ublock): Dims) -> bool {
    let inner = |m: u32, u: u32| k.is_none_or(|k| k == (m, u));
    match dim {
        ReduceDim::R => inner(mblock.r, ublock.r) && (mblock.c, ublock.c) == (step.mblock.c, step.ublock.c),
        ReduceDim::C => inner(mblock.c, ublock.c) && (mblock.r, ublock.r) == (step.mblock.r, step.ublock.r),
        ReduceDim::Rc | ReduceDim::Z => true,
    }
}

/// Follows the contents of the intermediate buffers through a step.
fn lives(check: &mut Check<'_, '_>, place: StepAt<'_>, state: &mut State) {
    let step = place.step;
    let fused = check.net.fused(place.fused);
    for (source, _) in &step.inputs {
        let FusedSource::Intermed(buffer) = *source else { continue };
        let Some((schedule, (mblock, _), whole)) = state.live.get(&buffer).copied() else {
            let message = format!("step `{}` reads `intermed{buffer}`, which holds nothing", step.name);
            check.step_error(code::FUSED_LIVE, place, "inputs", message, "a step before it must write there");
            continue;
        };
        let ends_long =
            fused.schedules.get(schedule).and_then(|steps| steps.last()).is_some_and(|last| long(&last.kind));
        if schedule != place.schedule && ends_long && !whole && (mblock.r, mblock.c) != (1, 1) {
            let message = format!(
                "step `{}` reads `intermed{buffer}` of another schedule, which holds more than one block",
                step.name
            );
            let help = "across schedules go results of matmul and reduce, and single blocks";
            check.step_error(code::FUSED_ACROSS, place, "inputs", message, help);
        }
    }
    for source in step.pop.iter().chain(&step.pop_last) {
        let FusedSource::Intermed(buffer) = source else { continue };
        let read = step.inputs.iter().any(|(input, _)| input == source);
        if state.live.remove(buffer).is_none() && !read {
            let message = format!("step `{}` frees `intermed{buffer}`, which holds nothing", step.name);
            check.step_error(code::FUSED_LIVE, place, "pop", message, "");
        }
    }
    if let FusedTarget::Intermed(buffer) = step.output {
        if state.live.contains_key(&buffer) {
            let message = format!("step `{}` writes `intermed{buffer}`, which is still full", step.name);
            let help = format!("pop intermed{buffer} where it is read last");
            check.step_error(code::FUSED_LIVE, place, "output", message, &help);
        }
        state.live.insert(buffer, (place.schedule, (step.mblock, step.ublock), long(&step.kind)));
    }
}
