//! Everything that is wrong with a program file, told at once.

use crate::failure::{Failure, Outcome};

/// Failures that are told one by one; others are counted.
const TOLD: usize = 100;

/// The failures that were found so far, each once.
#[derive(Default, Debug)]
pub struct Wrong {
    found: Vec<Failure>,
    left_out: usize,
}

impl Wrong {
    /// Keeps a failure. One without a message is a consequence of another, which is kept already.
    pub fn add(&mut self, failure: Failure) {
        let message = failure.to_string();
        if message.is_empty() || self.found.iter().any(|known| known.to_string() == message) {
            return;
        }
        if self.found.len() < TOLD {
            self.found.push(failure);
        } else {
            self.left_out += 1;
        }
    }

    /// The value of an outcome, whose failure is kept.
    pub fn keep<T>(&mut self, outcome: Outcome<T>) -> Option<T> {
        outcome.map_err(|failure| self.add(failure)).ok()
    }

    /// Keeps all failures of another list.
    pub fn join(&mut self, more: Self) {
        more.found.into_iter().for_each(|failure| self.add(failure));
        self.left_out += more.left_out;
    }

    /// Whether nothing is wrong.
    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// All failures as one, in the order of the file.
    pub fn outcome(self) -> Outcome<()> {
        let left_out = self.left_out;
        match (self.found.is_empty(), left_out) {
            (true, _) => Ok(()),
            (false, 0) => Err(Failure::all(self.found)),
            (false, _) => {
                let all = Failure::all(self.found);
                Err(all.map(|message| format!("{message}\nand {left_out} more mistakes")).with("left_out", left_out))
            }
        }
    }
}

/// A failure that follows from another one, which is told instead.
pub fn consequence() -> Failure {
    Failure::usage("")
}
