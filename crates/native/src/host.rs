//! The side that has the model: starts a process for a call and takes its answer.

use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use crate::wire::{self, Call};

/// The program in whose process native code runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NativeHost {
    /// The program, which calls [`crate::serve`].
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// How long a call may take.
    pub time: Duration,
}

/// A call of native code that failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// The process could not be started.
    #[error("no process for native code: {0}")]
    Start(#[source] std::io::Error),
    /// The library or function could not be loaded.
    #[error("{0}")]
    Load(String),
    /// It did not return in time; the process was ended.
    #[error("native function {function} did not return within {} s", time.as_secs_f64())]
    Time {
        /// Its name.
        function: String,
        /// The limit.
        time: Duration,
    },
    /// The process ended without an answer.
    #[error("native function {function} ended its process: {}", ending(*status))]
    Ended {
        /// Its name.
        function: String,
        /// How the process ended.
        status: ExitStatus,
    },
    /// The answer makes no sense.
    #[error("native function {function} spoiled its answer: {why}")]
    Answer {
        /// Its name.
        function: String,
        /// What is wrong with it.
        why: std::io::Error,
    },
}

/// How a process ended, in words.
fn ending(status: ExitStatus) -> String {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return format!("signal {signal}");
    }
    status.code().map_or_else(|| "no exit code".to_owned(), |code| format!("exit code {code}"))
}

impl NativeHost {
    /// Calls a function in a process that is started for it, with an empty environment and the
    /// root of the file system as its folder. What it prints goes to the standard error.
    ///
    /// # Errors
    /// A process that cannot be started, or does not answer in time and in full.
    pub fn call(&self, call: Call) -> Result<Vec<Vec<u8>>, CallError> {
        let mut child = Command::new(&self.program)
            .args(&self.arguments)
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(CallError::Start)?;
        let function = call.function.clone();
        let answer = exchange(&mut child, call, self.time);
        // An answer that has come is complete; nothing is waited for after it.
        let killed = child.kill();
        let status = child.wait().and_then(|status| killed.map(|()| status));
        match (answer, status) {
            (Some(Ok(Ok(results))), _) => Ok(results),
            (Some(Ok(Err(why))), _) => Err(CallError::Load(why)),
            (None, _) => Err(CallError::Time { function, time: self.time }),
            (Some(Err(why)), Ok(status)) if why.kind() == std::io::ErrorKind::UnexpectedEof => {
                Err(CallError::Ended { function, status })
            }
            (Some(Err(why)), _) => Err(CallError::Answer { function, why }),
        }
    }
}

/// Sends the call and reads the answer; `None` when the time is up.
fn exchange(child: &mut Child, call: Call, time: Duration) -> Option<std::io::Result<wire::Answer>> {
    let (mut input, mut output) = (child.stdin.take()?, child.stdout.take()?);
    let sizes = call.results.clone();
    // A process that ends before it has read everything is told by its answer.
    std::thread::spawn(move || {
        let mut buffered = std::io::BufWriter::new(&mut input);
        call.write(&mut buffered).and_then(|()| buffered.flush())
    });
    let (sender, receiver) = channel();
    std::thread::spawn(move || sender.send(wire::read_answer(&mut output, &sizes)));
    match receiver.recv_timeout(time) {
        Ok(answer) => Some(answer),
        Err(RecvTimeoutError::Timeout) => None,
        Err(RecvTimeoutError::Disconnected) => Some(Err(std::io::ErrorKind::UnexpectedEof.into())),
    }
}
