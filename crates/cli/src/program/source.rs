//! The text of a program file or memory map, for messages that point at a place in it.

use crate::failure::{Failure, Outcome};
use crate::files::shown;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use tilework_text::plain;

/// Budget of such a file in bytes.
pub const MAX_FILE_BYTES: u64 = 1 << 20;

/// A file as read.
#[derive(Debug)]
pub struct Source {
    path: PathBuf,
    text: String,
    /// The kernels that it names, of a file that did not come with its folder.
    kernels: Option<BTreeMap<String, Vec<u8>>>,
}

impl Source {
    /// Reads a text file within its budget; `what` names its role in messages.
    pub fn read(path: &Path, what: &str) -> Outcome<Self> {
        Self::of_bytes(path, crate::files::read_within(path, MAX_FILE_BYTES, what)?)
    }

    /// The text of a file that was read.
    pub fn of_bytes(path: &Path, bytes: Vec<u8>) -> Outcome<Self> {
        let text = String::from_utf8(bytes).map_err(|e| {
            let at = e.utf8_error().valid_up_to();
            Failure::file(path, format_args!("not UTF-8 text: the first bad byte is at offset {at}"))
        })?;
        Ok(Self { path: path.to_owned(), text, kernels: None })
    }

    /// The same with the kernels that it names: no other file is read for it.
    #[must_use]
    pub fn with_kernels(self, kernels: BTreeMap<String, Vec<u8>>) -> Self {
        Self { kernels: Some(kernels), ..self }
    }

    /// The bytes of a kernel that the file names.
    ///
    /// # Errors
    /// A kernel that is not there, or is no file that can be read.
    pub fn kernel(&self, name: &str) -> Outcome<Vec<u8>> {
        let missing = || Failure::usage(format!("{} came without the kernel {name:?}", shown(&self.path)));
        match &self.kernels {
            Some(kernels) => kernels.get(name).cloned().ok_or_else(missing),
            None => super::kernels::load(self.folder(), name),
        }
    }

    /// A source that is not in a file.
    #[cfg(test)]
    pub fn of(text: &str) -> Self {
        Self { path: "program.toml".into(), text: text.into(), kernels: None }
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What the text says, as TOML.
    pub fn toml<T: serde::de::DeserializeOwned>(&self) -> Outcome<T> {
        toml::from_str(&self.text).map_err(|e| self.toml_error(&e))
    }

    /// An error of TOML at its place.
    pub fn toml_error(&self, error: &toml::de::Error) -> Failure {
        let message = plain(&error.message().trim_end().replace('\n', "; ")).into_owned();
        self.error(error.span().unwrap_or(0..0), message)
    }

    /// The folder that relative paths start from.
    fn folder(&self) -> &Path {
        match self.path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        }
    }

    /// A failure at a byte range: file, line and column, the message, and the line with a mark
    /// under the place.
    pub fn error(&self, span: Range<usize>, message: impl std::fmt::Display) -> Failure {
        let mut start = span.start.min(self.text.len());
        while !self.text.is_char_boundary(start) {
            start -= 1;
        }
        let before = &self.text[..start];
        let line_start = before.rfind('\n').map_or(0, |i| i + 1);
        let line = self.text[line_start..].lines().next().unwrap_or("");
        let number = before.matches('\n').count() + 1;
        let column = before[line_start..].chars().count() + 1;
        let mut out = format!("{}:{number}:{column}: {message}", shown(&self.path));
        if !line.trim().is_empty() && line.len() <= 200 {
            let rest = line.get(start - line_start..).unwrap_or("");
            let marked = rest.get(..span.len().min(rest.len())).unwrap_or(rest).chars().count().max(1);
            let gutter = " ".repeat(number.to_string().len());
            out += &format!("\n{number} | {line}\n{gutter} | {}{}", " ".repeat(column - 1), "^".repeat(marked));
        }
        Failure::usage(out).of_file(&self.path).with("line", number).with("column", column)
    }

    /// The byte range of `part` of a string value that stands at `span`. Exact when the string is
    /// written without escapes on one line; otherwise the whole value.
    pub fn inside(&self, span: &Range<usize>, value: &str, part: Range<usize>) -> Range<usize> {
        let plain = self.text.get(span.clone()).is_some_and(|raw| raw.len() == value.len() + 2);
        if plain { span.start + 1 + part.start..span.start + 1 + part.end } else { span.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_line_and_column_and_marks_the_place() {
        let source = Source::of("a = 1\nbb = \"wrong\"\n");
        let message = source.error(11..18, "no such thing").to_string();
        assert_eq!(message, "program.toml:2:6: no such thing\n2 | bb = \"wrong\"\n  |      ^^^^^^^");
    }

    #[test]
    fn spans_outside_the_text_do_not_panic() {
        let source = Source::of("ä");
        assert!(source.error(1..9, "x").to_string().starts_with("program.toml:1:1: x"));
        assert!(source.error(70..90, "x").to_string().starts_with("program.toml:1:2: x"));
    }
}
