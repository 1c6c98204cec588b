//! How a command ends when it does not end well: an exit code, a message, and the same as data.

use crate::files::shown;
use serde::Serialize;
use serde_json::{Map, Value};
use std::fmt;
use std::path::Path;

/// Who has to do something about a failure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Status {
    /// Wrong use: bad arguments, a missing or malformed file, a program that does not fit the
    /// board. Exit code 2.
    Refused,
    /// The work itself failed: a fault, a deadlock, a broken capture, an output that cannot be
    /// written. Exit code 1.
    Failed,
}

impl Status {
    /// The name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::Failed => "failed",
        }
    }
}

/// A failure with the exit code that belongs to it.
///
/// As JSON: `class`, `message`, and whatever else is known of this class, as docs/report.md lists
/// it.
#[derive(Debug, Serialize)]
pub struct Failure {
    #[serde(skip)]
    status: Status,
    class: &'static str,
    message: String,
    #[serde(flatten)]
    details: Map<String, Value>,
}

impl Failure {
    fn new(status: Status, class: &'static str, message: impl Into<String>) -> Self {
        Self { status, class, message: message.into(), details: Map::new() }
    }

    /// A wrong use.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(Status::Refused, "refused", message)
    }

    /// A wrong use of a file: a message that begins with its path.
    pub fn file(path: &Path, message: impl fmt::Display) -> Self {
        Self::usage(format!("{}: {message}", shown(path))).of_file(path)
    }

    /// A wrong use of an option: a message that begins with it.
    pub fn option(option: &str, message: impl fmt::Display) -> Self {
        Self::usage(format!("{option}{message}")).with("option", option)
    }

    /// A failed run. The class is a word of docs/report.md: `fault`, `deadlock`, `output`.
    pub fn failed(class: &'static str, message: impl Into<String>) -> Self {
        Self::new(Status::Failed, class, message)
    }

    /// Several wrong uses as one, in the order of their places: a line each, or more, and as data
    /// in `findings`. One of them stays as it is.
    pub fn all(mut failures: Vec<Self>) -> Self {
        let place = |failure: &Self| {
            let number = |key: &str| failure.details.get(key).and_then(Value::as_u64).unwrap_or(0);
            (number("line"), number("column"))
        };
        failures.sort_by_key(place);
        let message = failures.iter().map(Self::to_string).collect::<Vec<_>>().join("\n");
        let findings: Vec<Value> = failures.iter().filter_map(|failure| serde_json::to_value(failure).ok()).collect();
        match (failures.len(), failures.into_iter().next()) {
            (1, Some(only)) => only,
            (_, first) => first.unwrap_or_else(|| Self::usage("")).map(|_| message).with("findings", findings),
        }
    }

    /// The same with one more value of the JSON form.
    #[must_use]
    pub fn with(mut self, key: &'static str, value: impl Serialize) -> Self {
        // A value that cannot be written as JSON is left out; the message has it all the same.
        if let Ok(value) = serde_json::to_value(value) {
            self.details.insert(key.to_owned(), value);
        }
        self
    }

    /// The same with all fields of a value in the JSON form.
    #[must_use]
    pub fn with_all(mut self, fields: impl Serialize) -> Self {
        if let Ok(Value::Object(fields)) = serde_json::to_value(fields) {
            self.details.extend(fields);
        }
        self
    }

    /// The same, about a file.
    #[must_use]
    pub fn of_file(self, path: &Path) -> Self {
        self.with("file", path.display().to_string())
    }

    /// The same with another message.
    #[must_use]
    pub fn map(mut self, message: impl FnOnce(String) -> String) -> Self {
        self.message = message(self.message);
        self
    }

    /// This failure, followed by the message of another that came with it; class and exit code
    /// stay.
    #[must_use]
    pub fn and(self, other: &Self) -> Self {
        self.map(|message| format!("{message}\n{other}")).with("also", other)
    }

    /// The class, a word of docs/report.md.
    pub fn class(&self) -> &'static str {
        self.class
    }

    /// Refused or failed.
    pub fn status(&self) -> Status {
        self.status
    }

    /// The process's exit code.
    pub fn exit_code(&self) -> u8 {
        match self.status {
            Status::Failed => 1,
            Status::Refused => 2,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// The result of a step of a command.
pub type Outcome<T> = Result<T, Failure>;
