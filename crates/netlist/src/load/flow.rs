//! Joins brackets that extend over several lines.
//!
//! Netlists are written for readers that ignore the indentation inside `{ }` and `[ ]`; the YAML
//! standard and the parser used here do not. A line end inside brackets means no more than a blank,
//! so it is replaced by one before the text is parsed, and so are comments there. No character
//! moves: indices into the new text are valid in the old one.

use crate::types::Position;
use std::borrow::Cow;

/// Returns the text with every bracket closed on the line where it is opened; unchanged if a
/// bracket is not closed.
pub fn on_one_line(text: &str) -> Cow<'_, str> {
    // If a bracket is not closed, everything after it would be one line; the unchanged text gives a
    // better message.
    closed(text).unwrap_or(Cow::Borrowed(text))
}

/// Returns the text with every bracket closed on the line where it is opened; `None` if a bracket
/// is not closed.
pub fn closed(text: &str) -> Option<Cow<'_, str>> {
    let mut scan = Scan { depth: 0, start: true, quote: None, escaped: false, blank: true };
    let mut comment = false;
    let mut out = String::new();
    let mut copied = 0;
    // All special characters are ASCII, and no byte of a longer UTF-8 sequence is.
    for (at, byte) in text.bytes().enumerate() {
        let blank = if comment && byte != b'\n' {
            scan.depth > 0
        } else if scan.quote.is_none() && byte == b'#' && scan.blank {
            comment = true;
            scan.depth > 0
        } else {
            comment = false;
            let inside = scan.depth > 0;
            scan.take(byte);
            inside && scan.quote.is_none() && matches!(byte, b'\n' | b'\r' | b'\t')
        };
        if blank {
            out.push_str(text.get(copied..at).unwrap_or_default());
            copied = at + 1;
            // One blank for a character, whatever its length.
            if text.is_char_boundary(at) {
                out.push(' ');
            }
        }
    }
    if scan.depth > 0 {
        return None;
    }
    if copied == 0 {
        return Some(Cow::Borrowed(text));
    }
    out.push_str(text.get(copied..).unwrap_or_default());
    Some(Cow::Owned(out))
}

struct Scan {
    /// Number of open brackets.
    depth: usize,
    /// A value may start here.
    start: bool,
    /// In quotes of this kind.
    quote: Option<u8>,
    /// Behind a backslash in double quotes.
    escaped: bool,
    /// The last character was a blank or the start of a line.
    blank: bool,
}

impl Scan {
    fn take(&mut self, c: u8) {
        let before = std::mem::replace(&mut self.blank, c.is_ascii_whitespace());
        if let Some(quote) = self.quote {
            match c {
                _ if self.escaped => self.escaped = false,
                b'\\' if quote == b'"' => self.escaped = true,
                // A doubled quote closes the string and reopens it, with the same result.
                _ if c == quote => self.quote = None,
                _ => {}
            }
            return;
        }
        match c {
            b'\n' if self.depth == 0 => self.start = true,
            b'[' | b'{' if self.start || self.depth > 0 => {
                self.depth += 1;
                self.start = true;
            }
            b']' | b'}' if self.depth > 0 => {
                self.depth -= 1;
                self.start = self.depth > 0;
            }
            b'\'' | b'"' if self.start => {
                self.quote = Some(c);
                self.start = false;
            }
            b',' if self.depth > 0 => self.start = true,
            b':' | b'?' => self.start = true,
            b'-' if before && self.start => self.start = true,
            c if c.is_ascii_whitespace() => {}
            _ => self.start = false,
        }
    }
}

/// Lines and columns of indices of characters.
pub struct Lines {
    /// Index of the first character of each line.
    starts: Vec<usize>,
    /// The line of the last index that was looked up; most lookups are in order.
    line: usize,
}

impl Lines {
    pub fn of(text: &str) -> Self {
        let mut starts = vec![0];
        if text.is_ascii() {
            starts.extend(text.match_indices('\n').map(|(at, _)| at + 1));
        } else {
            starts.extend(text.chars().enumerate().filter(|(_, c)| *c == '\n').map(|(at, _)| at + 1));
        }
        Self { starts, line: 1 }
    }

    pub fn position(&mut self, index: usize) -> Position {
        let begins = |line: usize| self.starts.get(line).is_none_or(|start| *start > index);
        if self.starts[self.line - 1] > index || !begins(self.line) && !begins(self.line + 1) {
            self.line = self.starts.partition_point(|start| *start <= index).max(1);
        } else if !begins(self.line) {
            self.line += 1;
        }
        let small = |value: usize| u32::try_from(value).unwrap_or(u32::MAX - 1);
        Position { line: small(self.line), column: small(index - self.starts[self.line - 1]) + 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_line_ends_and_comments_inside_brackets_become_blanks() {
        for (text, wanted) in [
            ("a: {b: 1,\nc: 2}\nd: 3\n", "a: {b: 1, c: 2}\nd: 3\n"),
            ("a: [1, # one\n\t2]\n# b: [\nc: 1", "a: [1,        2]\n# b: [\nc: 1"),
            ("a: x[0]\nb: 'it''s [ #'\nc: \"\\\"[\"\n", "a: x[0]\nb: 'it''s [ #'\nc: \"\\\"[\"\n"),
            ("- [a,\n  {b: c}]\n- d\n", "- [a,   {b: c}]\n- d\n"),
            ("a: {b: 1\nc: 2\n", "a: {b: 1\nc: 2\n"),
            ("a: {b: 'x\ny',\nc: d}", "a: {b: 'x\ny', c: d}"),
            ("a: it's\nb: {c: d}\n", "a: it's\nb: {c: d}\n"),
            ("a: [1, # ä[\n2] # ä\n", "a: [1,      2] # ä\n"),
        ] {
            assert_eq!(on_one_line(text), wanted);
            assert_eq!(on_one_line(text).chars().count(), text.chars().count());
        }
    }

    #[test]
    fn positions_count_characters_from_one() {
        let mut lines = Lines::of("äb\nc\n");
        let mut at = |index| (lines.position(index).line, lines.position(index).column);
        assert_eq!([at(0), at(1), at(2), at(3), at(5)], [(1, 1), (1, 2), (1, 3), (2, 1), (3, 1)]);
        assert_eq!([at(5), at(0), at(3), at(5), at(4)], [(3, 1), (1, 1), (2, 1), (3, 1), (2, 2)]);
    }
}
