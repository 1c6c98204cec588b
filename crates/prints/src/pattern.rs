//! The language of texts: literal text with places for values, a subset of Rust's `format!`.
//!
//! A place is `{` `}`, or `{:` spec `}` where spec is `[#][0][width][.precision][kind]` and kind is
//! nothing, `?`, `x`, `X`, `b`, `o` or `e`. `{{` and `}}` are braces. There are no names,
//! positions, fill characters or alignments.

/// Largest width and precision: a line stays a line.
const MAX_NUMBER: usize = 200;

/// How a value is shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Style {
    /// `{}` and `{:?}`.
    #[default]
    Plain,
    /// `{:?}`: floats keep a point, characters have quotes.
    Debug,
    /// `{:x}`.
    LowerHex,
    /// `{:X}`.
    UpperHex,
    /// `{:b}`.
    Binary,
    /// `{:o}`.
    Octal,
    /// `{:e}`.
    Exponent,
}

/// A place for a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Spec {
    /// `#`: a prefix in front of hexadecimal, binary and octal numbers.
    pub alternate: bool,
    /// `0`: zeros fill the width, behind sign and prefix.
    pub zeros: bool,
    /// Least number of characters.
    pub width: usize,
    /// Digits behind the point, for floats.
    pub precision: Option<usize>,
    /// How.
    pub style: Style,
}

/// A part of a text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Piece {
    /// Literal text.
    Literal(String),
    /// A place.
    Place(Spec),
}

/// What is wrong with a text.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PatternError {
    /// A place that does not end, or an end without a place.
    #[error("a single `{0}`; `{0}{0}` is the character")]
    Brace(char),
    /// What stands in a place is not known.
    #[error("`{{{0}}}`: a place is `{{}}` or `{{:[#][0][width][.precision][?xXboe]}}`")]
    Spec(String),
    /// A width or a precision that is too large.
    #[error("`{{{0}}}`: width and precision are at most {MAX_NUMBER}")]
    Number(String),
}

/// A text, taken apart.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Pattern {
    pieces: Vec<Piece>,
}

impl Pattern {
    /// Takes a text apart.
    ///
    /// # Errors
    /// A text that is not of this language.
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        let mut pieces = Vec::new();
        let mut literal = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}']) {
            literal.push_str(&rest[..at]);
            let brace = if rest[at..].starts_with('{') { '{' } else { '}' };
            rest = &rest[at + 1..];
            if let Some(behind) = rest.strip_prefix(brace) {
                literal.push(brace);
                rest = behind;
                continue;
            }
            let end = rest.find(['{', '}']).filter(|&end| brace == '{' && rest[end..].starts_with('}'));
            let Some(end) = end else { return Err(PatternError::Brace(brace)) };
            if !literal.is_empty() {
                pieces.push(Piece::Literal(std::mem::take(&mut literal)));
            }
            pieces.push(Piece::Place(Spec::parse(&rest[..end])?));
            rest = &rest[end + 1..];
        }
        literal.push_str(rest);
        if !literal.is_empty() {
            pieces.push(Piece::Literal(literal));
        }
        Ok(Self { pieces })
    }

    /// Number of places.
    pub fn places(&self) -> usize {
        self.pieces.iter().filter(|piece| matches!(piece, Piece::Place(_))).count()
    }

    /// Its parts.
    pub(crate) fn pieces(&self) -> &[Piece] {
        &self.pieces
    }
}

impl Spec {
    fn parse(inside: &str) -> Result<Self, PatternError> {
        let wrong = || PatternError::Spec(inside.to_owned());
        let mut spec = Self::default();
        if inside.is_empty() {
            return Ok(spec);
        }
        let mut rest = inside.strip_prefix(':').ok_or_else(wrong)?;
        if let Some(behind) = rest.strip_prefix('#') {
            (spec.alternate, rest) = (true, behind);
        }
        if let Some(behind) = rest.strip_prefix('0') {
            (spec.zeros, rest) = (true, behind);
        }
        let number = |digits: &str| match digits.parse::<usize>() {
            Ok(n) if n <= MAX_NUMBER => Ok(n),
            _ => Err(PatternError::Number(inside.to_owned())),
        };
        let (width, behind) = digits(rest);
        if !width.is_empty() {
            spec.width = number(width)?;
        }
        rest = behind;
        if let Some(behind) = rest.strip_prefix('.') {
            let (precision, behind) = digits(behind);
            if precision.is_empty() {
                return Err(wrong());
            }
            spec.precision = Some(number(precision)?);
            rest = behind;
        }
        spec.style = match rest {
            "" => Style::Plain,
            "?" => Style::Debug,
            "x" => Style::LowerHex,
            "X" => Style::UpperHex,
            "b" => Style::Binary,
            "o" => Style::Octal,
            "e" => Style::Exponent,
            _ => return Err(wrong()),
        };
        Ok(spec)
    }
}

/// The digits at the start of a text, and what is behind them.
fn digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_and_braces_are_told_apart() {
        for (text, places) in
            [("", 0), ("plain", 0), ("{}", 1), ("{{}}", 0), ("{{{}}}", 1), ("a {:#010x} b {:8.3e}", 2)]
        {
            assert_eq!(Pattern::parse(text).unwrap().places(), places, "{text}");
        }
        let whole = Pattern::parse("{{{:#010x}}}").unwrap();
        let spec = Spec { alternate: true, zeros: true, width: 10, precision: None, style: Style::LowerHex };
        let literal = |text: &str| Piece::Literal(text.to_owned());
        assert_eq!(whole.pieces(), [literal("{"), Piece::Place(spec), literal("}")]);
    }

    #[test]
    fn what_is_no_place_is_refused() {
        for text in ["{", "}", "a { b", "{0}", "{name}", "{:>8}", "{:.}", "{:y}", "{:#?x}", "{:{}}", "{}}"] {
            assert!(Pattern::parse(text).is_err(), "{text}");
        }
        assert_eq!(Pattern::parse("{:999}"), Err(PatternError::Number(":999".to_owned())));
        assert_eq!(
            Pattern::parse("{:99999999999999999999999}"),
            Err(PatternError::Number(":99999999999999999999999".to_owned()))
        );
    }
}
