//! Processes that do not answer as they should: programs of the system stand in for them.

use std::time::{Duration, Instant};

use tilework_native::{Call, CallError, NativeHost, Operand};

fn call(program: &str, arguments: &[&str], time: Duration) -> CallError {
    let host = NativeHost { program: program.into(), arguments: arguments.iter().map(Into::into).collect(), time };
    let operand = Operand { shape: vec![1 << 18], bytes: vec![7; 1 << 20] };
    let call = Call { library: vec![1; 1 << 20], function: "f".into(), operands: vec![operand], results: vec![8] };
    host.call(call).unwrap_err()
}

#[test]
fn a_process_that_does_not_end_is_ended_in_time() {
    let started = Instant::now();
    let error = call("/bin/sleep", &["100"], Duration::from_millis(200));
    assert!(matches!(error, CallError::Time { .. }), "{error}");
    assert_eq!(error.to_string(), "native function f did not return within 0.2 s");
    assert!(started.elapsed() < Duration::from_secs(20));
}

#[test]
fn how_a_process_failed_is_told() {
    let long = Duration::from_secs(60);
    let error = call("/nowhere/at/all", &[], long);
    assert!(matches!(error, CallError::Start(_)), "{error}");
    let error = call("/bin/false", &[], long);
    assert_eq!(error.to_string(), "native function f ended its process: exit code 1");
    let error = call("/bin/sh", &["-c", "kill -SEGV $$"], long);
    assert_eq!(error.to_string(), "native function f ended its process: signal 11");
    let error = call("/bin/sh", &["-c", "echo this is no answer at all"], long);
    assert!(error.to_string().starts_with("native function f spoiled its answer: an answer of kind"), "{error}");
}
