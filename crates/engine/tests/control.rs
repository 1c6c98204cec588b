//! Calls of other programs: functions, kept results, branches, loops, traces, and what they
//! change in place.

use crate::common::build::{
    add, binary, call, deallocate, f32, full, list, model, multiply, on_host, operation, program, tensor, values,
};
use tilework_engine::{Engine, Event, Observer, Options, Reason, RunResult, Session, Value};
use tilework_model::Model;
use tilework_model::common::DataType;
use tilework_model::ttnn::ops::control::{CaseOp, LoadCachedOp, LoopBound, WhileLoopOp};
use tilework_model::ttnn::ops::creation::{CopyOp, EmptyOp};
use tilework_model::ttnn::ops::eltwise::EltwiseBinaryOpType;
use tilework_model::ttnn::ops::kv_cache::FillCacheOp;
use tilework_model::ttnn::ops::layout::WriteTensorOp;
use tilework_model::ttnn::ops::trace::{
    BeginTraceCaptureOp, CaptureOrExecuteTraceOp, EndTraceCaptureOp, ExecuteTraceOp,
};
use tilework_model::ttnn::{Op, Operation, TensorRef};
use tilework_ops::{DType, Shape, Tensor};

/// Counts operations by program.
#[derive(Default)]
struct Count(Vec<usize>);

impl Count {
    fn of(&self, program: usize) -> usize {
        self.0.iter().filter(|&&index| index == program).count()
    }
}

impl Observer for Count {
    fn before(&mut self, event: &Event<'_>) {
        self.0.push(event.program);
    }
}

fn session(model: &Model) -> Session<'_> {
    Engine::native(Options::default()).session(model).unwrap()
}

fn run(model: &Model, inputs: &[&Tensor]) -> RunResult {
    let inputs = inputs.iter().map(|&tensor| tensor.clone().into()).collect();
    session(model).run(0, inputs, &mut ()).unwrap_or_else(|error| panic!("{error}"))
}

fn numbers(value: &Value) -> Vec<f32> {
    value.single().unwrap().to_f32()
}

fn integer(number: i64) -> Tensor {
    Tensor::from_i64(DType::I32, Shape::scalar(), &[number]).unwrap()
}

fn cached(program_idx: u32, hash: &str, inputs: &[&TensorRef], out: &TensorRef) -> Operation {
    operation(Op::LoadCached(LoadCachedOp {
        inputs: list(inputs),
        callee_name: "constants".into(),
        program_idx,
        outputs: list(&[out]),
        program_hash: hash.into(),
    }))
}

/// Inputs x and w; `x + w * w`, the square from a program whose results are kept.
fn with_constant() -> Model {
    let [x, w, square, out] = [0, 1, 2, 9].map(|id| f32(id, &[2]));
    let operations = vec![cached(1, "h", &[&w], &square), add(&x, &square, &out), deallocate(&square), deallocate(&w)];
    let main = program("main", &[&x, &w], &[&out], operations);
    model(vec![main, program("constants", &[&w], &[&out], vec![multiply(&w, &w, &out)])])
}

#[test]
fn results_of_constants_are_kept_while_the_same_tensors_come() {
    let model = with_constant();
    let mut session = session(&model);
    let mut times = |x: f32, w: &Tensor| {
        let mut count = Count::default();
        let inputs = vec![values(&[2], &[x; 2]).into(), w.clone().into()];
        let result = session.run(0, inputs, &mut count).unwrap();
        (count.of(1), numbers(&result.outputs[0]))
    };
    let first = values(&[2], &[2.0, 3.0]);
    assert_eq!(times(1.0, &first), (1, vec![5.0, 10.0]));
    assert_eq!(times(2.0, &first), (0, vec![6.0, 11.0]));
    // The same values in another tensor are another version.
    let second = values(&[2], &[2.0, 3.0]);
    assert_eq!(times(1.0, &second), (1, vec![5.0, 10.0]));
    assert_eq!(times(1.0, &second).0, 0);
    // One set of inputs is kept at a time.
    assert_eq!(times(1.0, &first).0, 1);
    // A tensor that was dropped cannot be mistaken for a later one at the same address.
    drop(first);
    for number in 0..100 {
        let weight = values(&[2], &[number as f32; 2]);
        assert_eq!(times(0.0, &weight), (1, vec![(number * number) as f32; 2]));
    }
}

#[test]
fn kept_results_are_told_apart_by_program_and_hash() {
    let [a, b, c, out] = [1, 2, 3, 9].map(|id| f32(id, &[1]));
    let operations = vec![
        cached(1, "one", &[], &a),
        cached(2, "one", &[], &b),
        add(&a, &b, &c),
        cached(1, "two", &[], &f32(4, &[1])),
        add(&c, &f32(4, &[1]), &out),
    ];
    let constant = |value| program("constant", &[], &[&out], vec![full(value, &out)]);
    let model = model(vec![program("main", &[], &[&out], operations), constant(1.0), constant(10.0)]);
    let mut count = Count::default();
    let mut session = session(&model);
    let result = session.run(0, Vec::new(), &mut count).unwrap();
    assert_eq!((numbers(&result.outputs[0]), count.of(1), count.of(2)), (vec![12.0], 2, 1));
    let mut count = Count::default();
    session.run(0, Vec::new(), &mut count).unwrap();
    assert_eq!((count.of(0), count.of(1), count.of(2)), (5, 0, 0));
}

#[test]
fn a_branch_is_chosen_by_its_index_and_the_last_one_by_all_others() {
    let [x, out] = [0, 9].map(|id| f32(id, &[1]));
    let index = tensor(1, DataType::Int32, &[]);
    let op =
        CaseOp { branch_program_ids: vec![1, 2, 3], index: index.clone(), inputs: list(&[&x]), outputs: list(&[&out]) };
    let scaled = |by: f32| {
        let factor = f32(5, &[1]);
        program("branch", &[&x], &[&out], vec![full(by, &factor), multiply(&x, &factor, &out)])
    };
    let main = program("main", &[&x, &index], &[&out], vec![operation(Op::Case(op))]);
    let model = model(vec![main, scaled(2.0), scaled(3.0), scaled(4.0)]);
    for (index, expected) in [(0, 2.0), (1, 3.0), (2, 4.0), (3, 4.0), (-1, 4.0), (i64::from(i32::MAX), 4.0)] {
        let result = run(&model, &[&values(&[1], &[1.0]), &integer(index)]);
        assert_eq!(numbers(&result.outputs[0]), [expected], "{index}");
    }
}

/// Inputs: x, a number n, a constant. State: x and a counter; each iteration doubles x and adds 1
/// to the counter.
fn looped(condition: Option<u32>, bounds: [Option<LoopBound>; 3]) -> Model {
    let [x, one, x2, y] = [0, 2, 3, 8].map(|id| f32(id, &[1]));
    let (n, count, count2) = (f32(1, &[1]), f32(4, &[1]), f32(7, &[1]));
    let [initial, limit, step] = bounds;
    let op = WhileLoopOp {
        body_program_id: 1,
        condition_program_id: condition,
        initial,
        limit,
        step,
        state_count: 2,
        output_indices: vec![1, 0],
        inputs: list(&[&x, &count, &n, &one]),
        outputs: list(&[&count2, &y]),
    };
    let operations = vec![full(0.0, &count), operation(Op::WhileLoop(op))];
    let main = program("main", &[&x, &n, &one], &[&y, &count2], operations);
    let body = vec![add(&x, &x, &x2), add(&count, &one, &count2), deallocate(&x), deallocate(&count), deallocate(&n)];
    let body = program("body", &[&x, &count, &n, &one], &[&x2, &count2], body);
    let less = vec![binary(EltwiseBinaryOpType::LessThan, &count, &n, &y)];
    let condition = program("condition", &[&x, &count, &n, &one], &[&y], less);
    model(vec![main, body, condition])
}

fn number(constant: i64) -> Option<LoopBound> {
    Some(LoopBound { constant, input_index: None })
}

#[test]
fn a_loop_counts_from_below_to_the_limit() {
    let one = values(&[1], &[1.0]);
    let cases = [([0, 5, 1], 5), ([3, 50, 3], 16), ([0, 0, 1], 0), ([7, 3, 1], 0), ([-2, 1, 2], 2)];
    for ([initial, limit, step], expected) in cases {
        let model = looped(None, [number(initial), number(limit), number(step)]);
        let result = run(&model, &[&one, &one, &one]);
        assert_eq!(numbers(&result.outputs[0]), [2_f32.powi(expected)], "{initial} {limit} {step}");
        assert_eq!(numbers(&result.outputs[1]), [expected as f32]);
    }
}

#[test]
fn a_loops_limit_can_be_an_input() {
    let from_input = Some(LoopBound { constant: 0, input_index: Some(2) });
    let model = looped(None, [number(1), from_input, number(1)]);
    let result = run(&model, &[&values(&[1], &[3.0]), &values(&[1], &[4.0]), &values(&[1], &[1.0])]);
    assert_eq!(numbers(&result.outputs[0]), [24.0]);
}

#[test]
fn a_loop_goes_on_while_its_condition_holds() {
    let model = looped(Some(2), [None, None, None]);
    for (limit, expected) in [(6.0, 64.0), (0.0, 1.0), (0.5, 2.0)] {
        let result = run(&model, &[&values(&[1], &[1.0]), &values(&[1], &[limit]), &values(&[1], &[1.0])]);
        assert_eq!(numbers(&result.outputs[0]), [expected]);
    }
}

#[test]
fn a_loop_without_end_runs_out_of_operations() {
    let one = values(&[1], &[1.0]);
    let endless = [looped(Some(2), [None, None, None]), looped(None, [number(i64::MIN), number(i64::MAX), number(1)])];
    for model in &endless {
        let options = Options { max_operations: 10_000, ..Options::default() };
        let mut session = Engine::native(options).session(model).unwrap();
        let inputs = vec![one.clone().into(), values(&[1], &[f32::INFINITY]).into(), one.clone().into()];
        let error = session.run(0, inputs, &mut ()).unwrap_err();
        assert!(matches!(error.reason(), Reason::Budget { limit: 10_000, .. }), "{error}");
        assert!(error.to_string().contains("WhileLoopOp"), "{error}");
    }
}

#[test]
fn a_loop_that_does_not_advance_is_an_error() {
    let one = values(&[1], &[1.0]);
    let model = looped(None, [number(0), number(5), number(0)]);
    let inputs = vec![one.clone().into(), one.clone().into(), one.into()];
    let error = session(&model).run(0, inputs, &mut ()).unwrap_err();
    assert_eq!(*error.reason(), Reason::Value("a loop that counts in steps of 0".into()));
}

#[test]
fn what_a_called_program_changes_in_place_changes_for_all_callers() {
    let (cache, new) = (f32(0, &[1, 1, 3, 2]), f32(1, &[1, 1, 1, 2]));
    let out = f32(9, &[1, 1, 3, 2]);
    let fill = FillCacheOp { cache: cache.clone(), input: new.clone(), batch_offset: 0 };
    let inner = program("inner", &[&new, &cache], &[], vec![operation(Op::FillCache(fill))]);
    let middle = program("middle", &[&cache, &new], &[], vec![call(2, &[&new, &cache], &[]), deallocate(&cache)]);
    let operations = vec![call(1, &[&cache, &new], &[]), add(&cache, &cache, &out)];
    let model = model(vec![program("main", &[&cache, &new], &[&out], operations), middle, inner]);
    let (before, line) = (values(&[1, 1, 3, 2], &[0.0, 0.0, 1.0, 1.0, 2.0, 2.0]), values(&[1, 1, 1, 2], &[7.0, 8.0]));
    let result = run(&model, &[&before, &line]);
    assert_eq!(numbers(&result.outputs[0]), [14.0, 16.0, 2.0, 2.0, 4.0, 4.0]);
    let [(0, changed)] = &result.changed[..] else { panic!("{:?}", result.changed) };
    assert_eq!(numbers(changed), [7.0, 8.0, 1.0, 1.0, 2.0, 2.0]);
    assert_eq!(before.to_f32(), [0.0, 0.0, 1.0, 1.0, 2.0, 2.0]);
}

/// The programs that the compiler makes of `x + w` with traces (tt-mlir,
/// `test/ttmlir/Dialect/TTNN/trace/scenarios/single_add_no_consteval.mlir`).
#[test]
fn a_traced_call_gives_what_the_program_gives() {
    let (w, x) = (f32(0, &[2]), on_host(f32(1, &[2])));
    let [slot_w, slot_x, slot_out, sum, out] = [10, 11, 12, 13, 9].map(|id| f32(id, &[2]));
    let id = on_host(tensor(20, DataType::UInt32, &[]));
    let traced = CaptureOrExecuteTraceOp {
        device: None,
        capture_program_id: 3,
        execute_program_id: 4,
        allocate_slots_program_id: 2,
        inputs: list(&[&w, &x]),
        outputs: list(&[&out]),
        semaphore_inputs: Vec::new(),
        trace_key_input_indices: Vec::new(),
        device_resident_input_count: 0,
    };
    let copy = operation(Op::Copy(CopyOp { src: sum.clone(), dst: slot_out.clone() }));
    let trace = vec![add(&slot_x, &slot_w, &sum), copy];
    let empty = |out: &TensorRef| {
        let layout = tilework_model::common::TensorLayout::Tile;
        let op =
            EmptyOp { device: None, shape: vec![2], dtype: DataType::Float32, layout, memcfg: None, out: out.clone() };
        operation(Op::Empty(op))
    };
    let write = WriteTensorOp { host_tensor: x.clone(), device_tensor: slot_x.clone(), blocking: false, cq_id: 0 };
    let begin = BeginTraceCaptureOp { device: None, trace_id: id.clone(), cq_id: 0 };
    let end = EndTraceCaptureOp { device: None, trace_id: id.clone(), cq_id: 0 };
    let execute = ExecuteTraceOp { device: None, trace_id: id.clone(), cq_id: 0, blocking: false };
    let again = operation(Op::ExecuteTrace(execute));
    let capture = vec![
        operation(Op::WriteTensor(write)),
        call(1, &[&slot_w, &slot_x, &slot_out], &[]),
        operation(Op::BeginTraceCapture(begin)),
        call(1, &[&slot_w, &slot_x, &slot_out], &[]),
        operation(Op::EndTraceCapture(end)),
        again.clone(),
    ];
    let model = model(vec![
        program("main", &[&w, &x], &[&out], vec![operation(Op::CaptureOrExecuteTrace(traced))]),
        program("trace", &[&slot_w, &slot_x, &slot_out], &[], trace),
        program("allocate", &[&w], &[&w, &slot_x, &slot_out], vec![empty(&slot_x), empty(&slot_out)]),
        program("capture", &[&x, &slot_w, &slot_x, &slot_out], &[&id], capture),
        program("execute", &[&id], &[], vec![again]),
    ]);
    let mut session = session(&model);
    for (w, x) in [(1.0, 2.0), (1.0, 5.0), (4.0, 5.0)] {
        let inputs = vec![values(&[2], &[w; 2]).into(), values(&[2], &[x; 2]).into()];
        let result = session.run(0, inputs, &mut ()).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(numbers(&result.outputs[0]), [w + x; 2]);
        assert!(result.changed.is_empty(), "{:?}", result.changed);
    }
    // By itself, a program that replays a trace has nothing to replay.
    let errors = session.check(4).unwrap_err();
    assert!(matches!(&errors[0].reason(), Reason::Unsupported(what) if what.contains("another program")), "{errors:?}");
}

#[test]
fn memory_is_counted_once_for_each_tensor_and_as_long_as_it_has_a_name() {
    const KIB: i32 = 256;
    let [a, b, c, d, out] = [0, 1, 2, 3, 9].map(|id| f32(id, &[KIB]));
    let operations = vec![
        add(&a, &a, &b),
        deallocate(&a),
        add(&b, &b, &c),
        deallocate(&b),
        call(1, &[&c], &[&d]),
        add(&c, &d, &out),
    ];
    let same = program("same", &[&a], &[&a], Vec::new());
    let model = model(vec![program("main", &[&a], &[&out], operations), same]);
    let result = run(&model, &[&values(&[KIB as usize], &[1.0; KIB as usize])]);
    // At each operation two are alive: an operand and its result. The call only adds another name.
    assert_eq!((result.peak_bytes, result.operations), (2 << 10, 6));
}
