//! Observers: events, messages, profiles and early stops.

use std::collections::HashMap;
use std::time::Duration;

use crate::common::build::{add, call, f32, model, multiply, operation, program, values};
use tilework_engine::{
    Bisect, Candidate, Engine, Event, Flow, Observer, Options, Output, Profile, Reason, Tolerance, Value,
};
use tilework_model::Model;
use tilework_model::ttnn::ops::debug::PrintOp;
use tilework_model::ttnn::{Op, OpKind};
use tilework_ops::Tensor;

/// `(x + x)^2 + x`, the square by a call, and a message.
fn square() -> Model {
    let [x, twice, squared, out] = [0, 1, 2, 9].map(|id| f32(id, &[2]));
    let print = operation(Op::Print(PrintOp { operand: twice.clone(), message: "twice".into() }));
    let operations = vec![add(&x, &x, &twice), print, call(1, &[&twice], &[&squared]), add(&squared, &x, &out)];
    let main = program("main", &[&x], &[&out], operations);
    model(vec![main, program("square", &[&x], &[&out], vec![multiply(&x, &x, &out)])])
}

fn run(observer: &mut dyn Observer) -> Result<Vec<f32>, Reason> {
    let model = square();
    let mut session = Engine::native(Options::default()).session(&model).unwrap();
    let result = session.run(0, vec![values(&[2], &[1.0, 2.0]).into()], observer);
    result.map(|result| result.outputs[0].on(0).to_f32()).map_err(|error| error.reason().clone())
}

/// Records all callbacks.
#[derive(Default)]
struct Log(Vec<String>);

impl Observer for Log {
    fn before(&mut self, event: &Event<'_>) {
        self.0.push(format!(
            "{} begins at depth {}, {} of {}",
            event.label(),
            event.depth,
            event.sequence,
            event.program_len
        ));
    }

    fn after(&mut self, event: &Event<'_>, outputs: &[Output<'_>]) -> Flow {
        let results: Vec<_> =
            outputs.iter().map(|output| (output.tensor.global_id, output.value.on(0).to_f32())).collect();
        self.0.push(format!("{} {results:?}, {} bytes", event.label(), event.live_bytes));
        Flow::Continue
    }

    fn message(&mut self, event: &Event<'_>, text: &str, about: Option<&Value>) {
        self.0.push(format!("{} says {text} of {:?}", event.label(), about.map(|value| value.on(0).to_f32())));
    }
}

#[test]
fn operations_begin_and_end_in_order_with_their_results() {
    let mut log = Log::default();
    assert_eq!(run(&mut log), Ok(vec![5.0, 18.0]));
    let expected = [
        "p0-op0 begins at depth 0, 0 of 4",
        "p0-op0 [(1, [2.0, 4.0])], 16 bytes",
        "p0-op1 begins at depth 0, 1 of 4",
        "p0-op1 says twice of Some([2.0, 4.0])",
        "p0-op1 [], 16 bytes",
        "p0-op2 begins at depth 0, 2 of 4",
        "p1-op0 begins at depth 1, 3 of 1",
        "p1-op0 [(9, [4.0, 16.0])], 24 bytes",
        "p0-op2 [(2, [4.0, 16.0])], 24 bytes",
        "p0-op3 begins at depth 0, 4 of 4",
        "p0-op3 [(9, [5.0, 18.0])], 32 bytes",
    ];
    assert_eq!(log.0, expected);
}

#[test]
fn the_first_result_that_leaves_the_reference_is_named() {
    let mut reference: HashMap<String, Vec<f32>> =
        [("p0-op0", [2.0, 4.0]), ("p1-op0", [4.0, 16.5]), ("p0-op3", [0.0, 0.0])]
            .map(|(label, numbers)| (label.to_owned(), numbers.to_vec()))
            .into();
    let look_up = |reference: &HashMap<String, Vec<f32>>, event: &Event<'_>| -> Option<(Tensor, Tolerance)> {
        reference.get(&event.label()).map(|numbers| (values(&[2], numbers), Tolerance::EXACT))
    };
    let mut bisect = Bisect::new(|event: &Event<'_>, _: Candidate<'_>| look_up(&reference, event));
    assert_eq!(run(&mut bisect), Err(Reason::Stopped));
    let (compared, found) = (bisect.compared, bisect.found.unwrap());
    assert_eq!((compared, found.place.program, found.place.operation, found.output), (2, 1, 0, 0));
    assert_eq!(found.what.unwrap().first.map(|first| (first.index, first.found)), Some((vec![1], 16.0)));
    reference.retain(|label, _| label == "p0-op0");
    let mut bisect = Bisect::new(|event: &Event<'_>, _: Candidate<'_>| look_up(&reference, event));
    assert!(run(&mut bisect).is_ok() && bisect.found.is_none() && bisect.compared == 1);
}

/// Sleeps before each operation.
struct Slow;

impl Observer for Slow {
    fn before(&mut self, _: &Event<'_>) {
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn a_profile_has_each_operation_once_and_not_its_observers_time() {
    let mut profile = Profile::new(Slow);
    run(&mut profile).unwrap();
    let order: Vec<_> = profile.timings.iter().map(|timing| (timing.place.program, timing.place.operation)).collect();
    assert_eq!(order, [(0, 0), (0, 1), (1, 0), (0, 2), (0, 3)]);
    assert!(profile.timings.iter().all(|timing| timing.own < Duration::from_millis(100)));
    let kinds = profile.by_kind();
    let of = |kind| kinds.iter().find(|(found, ..)| *found == kind).map(|(_, count, _)| *count);
    assert_eq!((of(OpKind::EltwiseBinary), of(OpKind::FuncCall), of(OpKind::Print)), (Some(3), Some(1), Some(1)));
}
