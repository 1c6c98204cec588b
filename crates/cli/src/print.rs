//! Printing to standard output, where the reader may go away (`tilework board | head`).

use crate::failure::{Failure, Outcome};
use std::io::{ErrorKind, Result, Write};
use tilework_text::{lines, styled_lines};

/// Lets `f` print to standard output, buffered. A closed pipe ends it without a failure.
pub fn to_stdout(f: impl FnOnce(&mut dyn Write) -> Result<()>) -> Outcome<()> {
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    match f(&mut out).and_then(|()| out.flush()) {
        Err(e) if e.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::failed("output", format!("cannot write to standard output: {e}")))
        }
        _ => Ok(()),
    }
}

/// Passes on a text, but escapes what a terminal would obey or hide: a report shows names of files,
/// which say what their authors want.
pub struct Escaped<'a> {
    out: &'a mut dyn Write,
    /// Whether colours stay.
    styled: bool,
    /// The first bytes of a character whose others have not come yet.
    rest: Vec<u8>,
}

impl<'a> Escaped<'a> {
    /// A writer before `out`; a `styled` text keeps its colours.
    pub fn new(out: &'a mut dyn Write, styled: bool) -> Self {
        Self { out, styled, rest: Vec::new() }
    }

    fn pass(&mut self, text: &str) -> Result<()> {
        let shown = if self.styled { styled_lines(text) } else { lines(text) };
        self.out.write_all(shown.as_bytes())
    }
}

impl Write for Escaped<'_> {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        let joined = [std::mem::take(&mut self.rest).as_slice(), bytes].concat();
        let mut left = joined.as_slice();
        while !left.is_empty() {
            match std::str::from_utf8(left) {
                Ok(text) => {
                    self.pass(text)?;
                    break;
                }
                Err(error) => {
                    let (good, bad) = left.split_at(error.valid_up_to());
                    self.pass(std::str::from_utf8(good).unwrap_or_default())?;
                    let Some(length) = error.error_len() else {
                        self.rest = bad.to_vec();
                        break;
                    };
                    self.pass("\u{fffd}")?;
                    left = &bad[length..];
                }
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_obeys_is_escaped_however_it_comes_in_pieces() {
        let text = "größe \u{1b}[31mred\u{9b}2J\n\tend\u{202e}\n";
        for size in 1..text.len() {
            let mut out = Vec::new();
            let mut escaped = Escaped::new(&mut out, false);
            text.as_bytes().chunks(size).for_each(|piece| escaped.write_all(piece).unwrap());
            assert_eq!(
                String::from_utf8(out).unwrap(),
                "größe \\u{1b}[31mred\\u{9b}2J\n\tend\\u{202e}\n",
                "in pieces of {size}"
            );
        }
    }

    #[test]
    fn colours_stay_where_they_are_wanted_and_nothing_else_does() {
        let mut out = Vec::new();
        Escaped::new(&mut out, true).write_all(b"\x1b[1m\x1b[38;5;9mred\x1b[0m \x1b[2J\x1b]0;title\x07\n").unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "\u{1b}[1m\u{1b}[38;5;9mred\u{1b}[0m \\u{1b}[2J\\u{1b}]0;title\\u{7}\n"
        );
    }
}
