//! What goes wrong while a netlist runs, as a failure of the command. docs/report.md lists the
//! keys.

use crate::failure::Failure;
use serde::Serialize;
use tilework_buda::backend::{BackendError, Status};
use tilework_buda::epoch::EpochError;
use tilework_buda::program::{ProgramError, ProgramProblem};
use tilework_buda::queue::Wait;

/// How to raise the limit of a run.
const RAISE: &str = "--max-steps sets the limit";

/// A failed call of the backend, with the code that the call would return in tt-budabackend.
pub fn failure(error: BackendError) -> Failure {
    let (name, code) = match error.status() {
        Status::TimeoutError => ("TimeoutError", 2),
        Status::RuntimeError | Status::Success => ("RuntimeError", 1),
    };
    let message = format!("{error} [{name} ({code})]");
    let failure = match &error {
        BackendError::Stuck(stuck) | BackendError::Epoch(EpochError::Stuck(stuck)) => {
            let ended: Vec<String> = stuck.done.iter().map(ToString::to_string).collect();
            Failure::failed("deadlock", message).with("waiting", all(&stuck.waits)).with("ended", ended)
        }
        BackendError::TimedOut(wait) | BackendError::Epoch(EpochError::TimedOut(wait)) => {
            Failure::failed("timeout", message).with("waiting", [WaitData::of(wait)])
        }
        BackendError::Epoch(EpochError::OutOfTime(limit)) => {
            Failure::failed("timeout", message).with("seconds", limit.as_secs_f64())
        }
        BackendError::Epoch(EpochError::Budget(operations)) => {
            Failure::failed("budget", format!("{message}; {RAISE}")).with("operations", operations)
        }
        BackendError::Program(ProgramError { problem: ProgramProblem::Budget(instructions), .. }) => {
            Failure::failed("budget", format!("{message}; {RAISE}")).with("instructions", instructions)
        }
        BackendError::Thread(_) => Failure::failed("threads", message),
        _ => Failure::failed("program", message),
    };
    failure.with("code", code)
}

/// A thread that waits at a queue.
#[derive(Serialize)]
struct WaitData<'a> {
    who: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    on_behalf: Option<&'a str>,
    queue: &'a str,
    entries: u32,
    rd: u32,
    wr: u32,
    what: String,
}

impl<'a> WaitData<'a> {
    fn of(wait: &'a Wait) -> Self {
        Self {
            who: wait.role.to_string(),
            on_behalf: wait.on_behalf.as_deref(),
            queue: &wait.name,
            entries: wait.entries,
            rd: wait.rd,
            wr: wait.wr,
            what: wait.to_string(),
        }
    }
}

fn all(waits: &[Wait]) -> Vec<WaitData<'_>> {
    waits.iter().map(WaitData::of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_thread_is_not_the_programs_fault() {
        let failure = failure(BackendError::Thread("no more of them".into()));
        assert_eq!(
            serde_json::to_value(&failure).ok().and_then(|json| json.get("class").cloned()),
            Some("threads".into())
        );
    }
}
