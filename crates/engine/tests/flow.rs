//! Errors that are found before anything runs: tensors that do not exist, calls that do not fit,
//! kinds that are not supported.

use std::time::Duration;

use crate::common::build::{add, call, deallocate, f32, full, model, operation, program, tensor, values};

use tilework_engine::{Engine, Event, NativeHost, Observer, Options, Reason, RunError, Value};
use tilework_model::Model;
use tilework_model::common::DataType;
use tilework_model::ttnn::ops::control::CpuOp;
use tilework_model::ttnn::ops::debug::LoadTensorOp;
use tilework_model::ttnn::{Op, OpKind, Operation, TensorRef};

/// Counts operations that begin.
#[derive(Default)]
struct Count(usize);

impl Observer for Count {
    fn before(&mut self, _: &Event<'_>) {
        self.0 += 1;
    }
}

/// The errors of the first program; none of it runs.
fn refused(model: &Model, options: Options) -> Vec<RunError> {
    let mut session = Engine::native(options).session(model).unwrap();
    let mut count = Count::default();
    let inputs = session.inputs(0).unwrap().iter().map(|_| Value::from(values(&[2], &[0.0; 2]))).collect();
    let error = session.run(0, inputs, &mut count).unwrap_err();
    assert_eq!(count.0, 0, "{error}");
    session.check(0).unwrap_err()
}

/// The only error of a program with inputs 0 and 1, output 9 and these operations.
fn wrong(operations: Vec<Operation>) -> RunError {
    let [a, b, out] = [0, 1, 9].map(|id| f32(id, &[2]));
    let mut errors = refused(&model(vec![program("main", &[&a, &b], &[&out], operations)]), Options::default());
    assert_eq!(errors.len(), 1, "{errors:?}");
    errors.remove(0)
}

fn tensors<const N: usize>(ids: [u32; N]) -> [TensorRef; N] {
    ids.map(|id| f32(id, &[2]))
}

#[test]
fn a_tensor_that_nothing_made_is_unknown() {
    let [a, x, out] = tensors([0, 5, 9]);
    let error = wrong(vec![add(&a, &x, &out)]);
    assert_eq!(*error.reason(), Reason::Unknown { id: 5, role: "rhs".into() });
    assert_eq!(error.place().map(|place| (place.program, place.operation)), Some((0, 0)));
    let text = error.to_string();
    assert!(
        text.starts_with("test.ttnn: program 0 (main), operation 0, EltwiseBinaryOp, loc(\"here\"): tensor 5"),
        "{text}"
    );
}

#[test]
fn a_tensor_that_was_deallocated_cannot_be_used_or_deallocated_again() {
    let [a, b, out] = tensors([0, 1, 9]);
    let error = wrong(vec![deallocate(&a), add(&b, &a, &out)]);
    assert_eq!(*error.reason(), Reason::Freed { id: 0, role: "rhs".into(), by: 0 });
    let error = wrong(vec![add(&b, &a, &out), deallocate(&a), deallocate(&a)]);
    assert_eq!(*error.reason(), Reason::Freed { id: 0, role: "in".into(), by: 1 });
    let error = wrong(vec![add(&b, &a, &out), deallocate(&out)]);
    assert_eq!(*error.reason(), Reason::Freed { id: 9, role: "outputs[0]".into(), by: 1 });
}

/// Operations take the type of their result from the file: a type that tensors do not have must be
/// refused before it reaches arithmetic.
#[test]
fn element_types_that_tensors_do_not_have_are_refused() {
    use DataType::{BFP_BFloat2, BFP_Float2, BFP_Float4, BFP_Float8, Float64, Int8, Int16, Int64, UInt64};
    for data_type in [BFP_BFloat2, BFP_Float2, BFP_Float4, BFP_Float8, Float64, Int8, Int16, Int64, UInt64] {
        let [a, b, out] = tensors([0, 1, 9]);
        let made = tensor(5, data_type, &[2]);
        for operation in [full(1.0, &made), add(&a, &b, &made)] {
            let error = wrong(vec![operation, add(&a, &b, &out)]);
            assert_eq!(*error.reason(), Reason::Unsupported(format!("tensors of {data_type}")));
        }
    }
}

#[test]
fn a_tensor_cannot_be_made_twice() {
    let [a, b, out] = tensors([0, 1, 9]);
    let error = wrong(vec![add(&a, &b, &out), add(&a, &b, &out)]);
    assert_eq!(*error.reason(), Reason::Duplicate { id: 9, role: "out".into(), by: "operation 0 made it".into() });
    let error = wrong(vec![add(&a, &b, &a), add(&a, &b, &out)]);
    assert_eq!(*error.reason(), Reason::Duplicate { id: 0, role: "out".into(), by: "it is an input".into() });
}

#[test]
fn a_tensor_is_described_alike_wherever_it_is_named() {
    let [a, out] = tensors([0, 9]);
    let error = wrong(vec![add(&a, &tensor(1, DataType::BFloat16, &[2]), &out)]);
    let (here, made) = ("bf16 [2]".into(), "f32 [2]".into());
    assert_eq!(*error.reason(), Reason::Disagreement { id: 1, role: "rhs".into(), here, made });
}

#[test]
fn the_caller_keeps_an_input_that_the_program_deallocates() {
    let [a, b, out] = tensors([0, 1, 9]);
    let operations = vec![add(&a, &b, &out), deallocate(&a), deallocate(&b)];
    let model = model(vec![program("main", &[&a, &b], &[&out], operations)]);
    let mut session = Engine::native(Options::default()).session(&model).unwrap();
    let given = values(&[2], &[1.0, 2.0]);
    for _ in 0..2 {
        let inputs = vec![given.clone().into(), given.clone().into()];
        let result = session.run(0, inputs, &mut ()).unwrap();
        assert_eq!(result.outputs[0].on(0).to_f32(), [2.0, 4.0]);
    }
}

#[test]
fn native_code_is_refused_unless_it_is_allowed_and_there() {
    let [a, out] = tensors([0, 9]);
    let op = CpuOp { ins: vec![a.clone()], outs: vec![out.clone()], func_name: "f".into(), dylib_id: 0 };
    let model = model(vec![program("main", &[&a], &[&out], vec![operation(Op::Cpu(op))])]);
    let host = NativeHost { program: "/nowhere".into(), arguments: Vec::new(), time: Duration::from_secs(1) };
    let missing = Reason::Malformed("no native library 0".into());
    for (native_code, reason) in [(None, Reason::NativeCode), (Some(host), missing)] {
        let errors = refused(&model, Options { native_code, ..Options::default() });
        assert_eq!(errors.len(), 1, "what follows an operation that is not supported is not wrong: {errors:?}");
        assert_eq!(*errors[0].reason(), reason);
        assert_eq!(errors[0].place().map(|place| place.kind), Some(OpKind::Cpu));
    }
}

#[test]
fn what_is_not_supported_is_found_in_every_program_that_is_called() {
    let [a, out] = tensors([0, 9]);
    let load = |out: &TensorRef| {
        operation(Op::LoadTensor(LoadTensorOp { file_path: "/etc/passwd".into(), device: None, out: out.clone() }))
    };
    let main = program("main", &[&a], &[&out], vec![call(1, &[&a], &[&out])]);
    let part = program("part", &[&a], &[&out], vec![load(&tensors([3])[0]), load(&out)]);
    let unused = program("unused", &[], &[&out], vec![load(&out)]);
    let model = model(vec![main, part, unused]);
    let errors = refused(&model, Options::default());
    let places: Vec<_> = errors.iter().filter_map(|error| error.place()).map(|at| (at.program, at.operation)).collect();
    assert_eq!(places, [(1, 0), (1, 1)]);
    let mut session = Engine::native(Options::default()).session(&model).unwrap();
    let text = session.run(0, Vec::new(), &mut ()).unwrap_err().to_string();
    assert!(
        text.contains("program 1 (part), operation 0, LoadTensorOp") && text.ends_with("; and 1 more error"),
        "{text}"
    );
}

#[test]
fn calls_fit_the_programs_that_are_called() {
    let [a, out] = tensors([0, 9]);
    let wide = f32(0, &[3]);
    let other = program("other", &[&wide], &[&wide], Vec::new());
    let calls = [
        (call(1, &[&a], &[&out]), "number 0 is f32 [2] here, f32 [3] there"),
        (call(1, &[], &[&out]), "inputs of program 1 (other): 0 here, 1 there"),
        (call(7, &[&a], &[&out]), "calls program 7, which does not exist"),
    ];
    for (call, expected) in calls {
        let model = model(vec![program("main", &[&a], &[&out], vec![call]), other.clone()]);
        let errors = refused(&model, Options::default());
        assert!(errors.len() == 1 && errors[0].to_string().contains(expected), "{errors:?}");
    }
}

#[test]
fn programs_do_not_call_themselves() {
    let [a, out] = tensors([0, 9]);
    let calls = |target| program("p", &[&a], &[&out], vec![call(target, &[&a], &[&out])]);
    let errors = refused(&model(vec![calls(1), calls(2), calls(1)]), Options::default());
    assert!(errors.len() == 1 && errors[0].to_string().contains("program 1 calls itself"), "{errors:?}");
    assert_eq!(errors[0].place().map(|place| place.program), Some(2));
}

/// A chain of programs, each of which calls the next one twice: deep, and exponential if it ran.
fn chain(length: u32) -> Model {
    let [a, x, out] = tensors([0, 1, 9]);
    let twice = |next| vec![call(next, &[&a], &[&x]), call(next, &[&x], &[&out])];
    let mut programs: Vec<_> = (1..length).map(|next| program("link", &[&a], &[&out], twice(next))).collect();
    programs.push(program("last", &[&a], &[&out], vec![add(&a, &a, &out)]));
    model(programs)
}

#[test]
fn calls_are_no_deeper_than_allowed() {
    let options = |max_call_depth| Options { max_call_depth, ..Options::default() };
    let model = chain(11);
    assert!(Engine::native(options(10)).session(&model).unwrap().check(0).is_ok());
    let errors = refused(&model, options(9));
    assert_eq!(*errors[0].reason(), Reason::Budget { what: "nested calls", limit: 9 });
    // However many are allowed, a chain that would overflow the stack is refused.
    let errors = refused(&chain(10_000), options(usize::MAX));
    assert_eq!(*errors[0].reason(), Reason::Budget { what: "nested calls", limit: Options::DEEPEST as u64 });
}

#[test]
fn the_deepest_calls_fit_on_a_threads_stack() {
    let [a, out] = tensors([0, 9]);
    let link = |next| program("link", &[&a], &[&out], vec![call(next, &[&a], &[&out])]);
    let deepest = Options::DEEPEST as u32;
    let mut programs: Vec<_> = (1..=deepest).map(link).collect();
    programs.push(program("last", &[&a], &[&out], vec![add(&a, &a, &out)]));
    let model = model(programs);
    let mut session =
        Engine::native(Options { max_call_depth: usize::MAX, ..Options::default() }).session(&model).unwrap();
    let result = session.run(0, vec![values(&[2], &[1.0, 2.0]).into()], &mut ()).unwrap();
    assert_eq!((result.outputs[0].on(0).to_f32(), result.operations), (vec![2.0, 4.0], u64::from(deepest) + 1));
}

#[test]
fn a_run_has_so_many_operations() {
    let model = chain(40);
    let mut session = Engine::native(Options { max_operations: 1000, ..Options::default() }).session(&model).unwrap();
    let error = session.run(0, vec![values(&[2], &[1.0, 2.0]).into()], &mut ()).unwrap_err();
    assert_eq!(*error.reason(), Reason::Budget { what: "operations and loop iterations", limit: 1000 });
    assert_eq!(error.callers().len(), error.place().unwrap().program);
}

#[test]
fn tensors_that_are_larger_than_allowed_are_not_made() {
    let [big, out] = [f32(3, &[1 << 20]), f32(9, &[1 << 20])];
    let model = model(vec![program("main", &[], &[&out], vec![full(1.0, &big), add(&big, &big, &out)])]);
    let run = |max_bytes| {
        let mut session = Engine::native(Options { max_bytes, ..Options::default() }).session(&model).unwrap();
        session.run(0, Vec::new(), &mut ())
    };
    assert_eq!(run(8 << 20).unwrap().peak_bytes, 8 << 20);
    let error = run((8 << 20) - 1).unwrap_err();
    assert_eq!(*error.reason(), Reason::Budget { what: "bytes of tensors", limit: (8 << 20) - 1 });
    assert_eq!(error.place().map(|place| place.operation), Some(1));
}

#[test]
fn a_result_of_another_shape_than_stated_is_an_error_with_both() {
    let [a, out] = [f32(0, &[2]), f32(9, &[3])];
    let model = model(vec![program("main", &[&a], &[&out], vec![add(&a, &a, &out)])]);
    let mut session = Engine::native(Options::default()).session(&model).unwrap();
    let error = session.run(0, vec![values(&[2], &[1.0, 2.0]).into()], &mut ()).unwrap_err();
    let (expected, found) = ("[3]".into(), "[2]".into());
    assert_eq!(*error.reason(), Reason::Shape { role: "out".into(), expected, found });
}
