//! Names that come from files, as messages and tables show them.
//!
//! A file from outside chooses its names: of programs, operations, queues, functions. A control
//! character in one could move the cursor, break a table's line or recolour what follows, and a
//! character that changes the direction of writing could hide what is there (Unicode technical
//! report 36, section 3.1.1). They are shown as Rust writes them: `\n`, `\u{1b}`.

#![forbid(unsafe_code)]

use std::borrow::Cow;

/// Whether a terminal obeys or hides a character: controls (C0, delete, C1), line and paragraph
/// separators, and those that change the direction of writing (Unicode standard annex 9).
pub fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A text in one line, with all hidden characters escaped.
pub fn plain(text: &str) -> Cow<'_, str> {
    escaped(text, is_hidden)
}

/// A text of several lines: line ends and tabs stay, other hidden characters are escaped.
pub fn lines(text: &str) -> Cow<'_, str> {
    escaped(text, |c| is_hidden(c) && c != '\n' && c != '\t')
}

/// As [`lines`], but colours and weights of a terminal stay (ECMA-48, 8.3.117: SGR).
pub fn styled_lines(text: &str) -> Cow<'_, str> {
    const START: &str = "\u{1b}[";
    let style = |rest: &str| {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != ';')?;
        rest[end..].starts_with('m').then_some(end + 1)
    };
    let mut parts = text.split(START);
    let mut out = lines(parts.next().unwrap_or_default()).into_owned();
    for part in parts {
        let (kept, rest) = part.split_at(style(part).unwrap_or(0));
        out += if kept.is_empty() { "\\u{1b}[" } else { START };
        out += kept;
        out += &lines(rest);
    }
    Cow::Owned(out)
}

fn escaped(text: &str, hidden: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&hidden) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if hidden(c) {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_seen_stays_and_is_not_copied() {
        for text in ["", "matmul_1", "größe 3 x 4", "日本 \\n"] {
            assert!(matches!(plain(text), Cow::Borrowed(same) if same == text), "{text:?}");
        }
    }

    #[test]
    fn what_a_terminal_obeys_is_escaped() {
        assert_eq!(plain("a\u{1b}[31mb\r\n\tc\u{7f}"), "a\\u{1b}[31mb\\r\\n\\tc\\u{7f}");
        assert_eq!(plain("\u{9b}31m\u{0}"), "\\u{9b}31m\\u{0}", "the one-byte form of the same sequence");
        assert_eq!(plain("a\u{202e}b\u{2066}c\u{2028}"), "a\\u{202e}b\\u{2066}c\\u{2028}");
    }

    #[test]
    fn lines_keep_their_ends() {
        assert_eq!(lines("a\n\tb\u{1b}[0m\r\n"), "a\n\tb\\u{1b}[0m\\r\n");
    }
}
