//! The expressions of a program file: integers, names, four operations and a few functions. They
//! always end: there are no loops and no definitions, and length and nesting are limited.
//!
//! ```text
//! sum     = product { ("+" | "-") product }
//! product = atom { ("*" | "/" | "%") atom }
//! atom    = integer | name | name "(" sum { "," sum } ")" | "(" sum ")" | "-" atom
//! name    = word { "." word }
//! ```
//!
//! Values are 64-bit signed integers and an operation that leaves their range is an error. Division
//! rounds down and both operands of `/` and `%` must not be negative.

use std::fmt;
use std::ops::Range;

/// Budget of an expression in bytes.
pub const MAX_BYTES: usize = 512;
/// Budget of nested parentheses, calls and signs.
pub const MAX_DEPTH: usize = 32;

/// What is wrong with an expression, and where in its text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExprError {
    /// Byte range in the expression.
    pub at: Range<usize>,
    /// What was found and what was expected.
    pub message: String,
}

impl fmt::Display for ExprError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// Where names and functions get their values.
pub trait Scope {
    /// The value of a name; an error says why it has none.
    fn name(&self, name: &str) -> Result<i64, String>;
    /// The value of a function; an error says why it has none.
    fn call(&self, function: &str, arguments: &[i64]) -> Result<i64, String> {
        common_function(function, arguments)
    }
}

/// The functions that every scope has: `min`, `max`, `ceil_div` and `align_up`.
pub fn common_function(function: &str, arguments: &[i64]) -> Result<i64, String> {
    match (function, arguments) {
        ("min", &[a, b]) => Ok(a.min(b)),
        ("max", &[a, b]) => Ok(a.max(b)),
        ("ceil_div", &[a, b]) if a >= 0 && b > 0 => Ok(a / b + i64::from(a % b != 0)),
        ("align_up", &[a, b]) if a >= 0 && b > 0 => {
            (a / b + i64::from(a % b != 0)).checked_mul(b).ok_or_else(|| format!("align_up({a}, {b}) is out of range"))
        }
        ("ceil_div" | "align_up", &[a, b]) => {
            Err(format!("{function}({a}, {b}): expected a value of at least 0 and a step of at least 1"))
        }
        ("min" | "max" | "ceil_div" | "align_up", other) => {
            Err(format!("{function} takes 2 values, found {}", other.len()))
        }
        _ => Err(format!(
            "unknown function \"{function}\"; there are min, max, ceil_div, align_up, and in kernel arguments split.start and split.count"
        )),
    }
}

/// A parsed expression.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Expr {
    node: Node,
    at: Range<usize>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Node {
    Integer(i64),
    Name(String),
    Call(String, Vec<Expr>),
    Negate(Box<Expr>),
    Binary(char, Box<Expr>, Box<Expr>),
}

impl Expr {
    /// An integer that was not written as an expression.
    pub fn integer(value: i64) -> Self {
        Self { node: Node::Integer(value), at: 0..0 }
    }

    /// Parses an expression.
    pub fn parse(text: &str) -> Result<Self, ExprError> {
        if text.len() > MAX_BYTES {
            return Err(ExprError {
                at: 0..text.len(),
                message: format!("the expression is longer than {MAX_BYTES} bytes"),
            });
        }
        let mut parser = Parser { text, position: 0, depth: 0 };
        let expr = parser.sum()?;
        match parser.peek() {
            None => Ok(expr),
            Some(_) => Err(parser.unexpected("an operator or the end of the expression")),
        }
    }

    /// The value in a scope.
    pub fn value(&self, scope: &dyn Scope) -> Result<i64, ExprError> {
        let fail = |message| ExprError { at: self.at.clone(), message };
        match &self.node {
            Node::Integer(value) => Ok(*value),
            Node::Name(name) => scope.name(name).map_err(fail),
            Node::Call(function, arguments) => {
                let values = arguments.iter().map(|a| a.value(scope)).collect::<Result<Vec<_>, _>>()?;
                scope.call(function, &values).map_err(fail)
            }
            Node::Negate(inner) => {
                let value = inner.value(scope)?;
                value.checked_neg().ok_or_else(|| fail(format!("-({value}) is out of range")))
            }
            Node::Binary(operator, left, right) => {
                let (a, b) = (left.value(scope)?, right.value(scope)?);
                binary(*operator, a, b).map_err(fail)
            }
        }
    }
}

fn binary(operator: char, a: i64, b: i64) -> Result<i64, String> {
    let value = match operator {
        '+' => a.checked_add(b),
        '-' => a.checked_sub(b),
        '*' => a.checked_mul(b),
        _ if b == 0 => return Err(format!("{a} {operator} 0: division by zero")),
        _ if a < 0 || b < 0 => return Err(format!("{a} {operator} {b}: expected operands that are not negative")),
        '/' => a.checked_div(b),
        _ => a.checked_rem(b),
    };
    value.ok_or_else(|| format!("{a} {operator} {b} is out of range"))
}

struct Parser<'a> {
    text: &'a str,
    position: usize,
    depth: usize,
}

impl Parser<'_> {
    fn peek(&mut self) -> Option<char> {
        let rest = &self.text[self.position..];
        let trimmed = rest.trim_start_matches([' ', '\t']);
        self.position += rest.len() - trimmed.len();
        trimmed.chars().next()
    }

    fn eat(&mut self, wanted: char) -> bool {
        let found = self.peek() == Some(wanted);
        if found {
            self.position += wanted.len_utf8();
        }
        found
    }

    fn unexpected(&mut self, expected: &str) -> ExprError {
        match self.peek() {
            Some(c) => {
                let at = self.position..self.position + c.len_utf8();
                ExprError { at, message: format!("found \"{c}\", expected {expected}") }
            }
            None => ExprError {
                at: self.position..self.position,
                message: format!("the expression ends too early, expected {expected}"),
            },
        }
    }

    fn operators(
        &mut self,
        operators: &[char],
        operand: fn(&mut Self) -> Result<Expr, ExprError>,
    ) -> Result<Expr, ExprError> {
        let mut left = operand(self)?;
        while let Some(operator) = self.peek().filter(|c| operators.contains(c)) {
            self.position += 1;
            let right = operand(self)?;
            let at = left.at.start..right.at.end;
            left = Expr { node: Node::Binary(operator, Box::new(left), Box::new(right)), at };
        }
        Ok(left)
    }

    fn sum(&mut self) -> Result<Expr, ExprError> {
        self.operators(&['+', '-'], Self::product)
    }

    fn product(&mut self) -> Result<Expr, ExprError> {
        self.operators(&['*', '/', '%'], Self::atom)
    }

    fn atom(&mut self) -> Result<Expr, ExprError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            let at = self.position..self.position;
            return Err(ExprError { at, message: format!("nested deeper than {MAX_DEPTH} levels") });
        }
        let found = self.peek();
        let start = self.position;
        let node = match found {
            Some('0'..='9') => self.number()?,
            Some('a'..='z' | 'A'..='Z' | '_') => self.name()?,
            Some('(') => {
                self.position += 1;
                let inner = self.sum()?;
                if !self.eat(')') {
                    return Err(self.unexpected("an operator or \")\""));
                }
                inner.node
            }
            Some('-') => {
                self.position += 1;
                Node::Negate(Box::new(self.atom()?))
            }
            _ => return Err(self.unexpected("an integer, a name or \"(\"")),
        };
        self.depth -= 1;
        Ok(Expr { node, at: start..self.position })
    }

    fn word(&mut self) -> &str {
        let rest = &self.text[self.position..];
        let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(rest.len());
        self.position += end;
        &rest[..end]
    }

    fn number(&mut self) -> Result<Node, ExprError> {
        let start = self.position;
        let word = self.word().replace('_', "");
        let (digits, radix) = match word.strip_prefix("0x") {
            Some(hex) => (hex, 16),
            None => (word.as_str(), 10),
        };
        let value = i64::from_str_radix(digits, radix).map_err(|_| ExprError {
            at: start..self.position,
            message: format!("found \"{}\", expected an integer such as 64 or 0x40", &self.text[start..self.position]),
        })?;
        Ok(Node::Integer(value))
    }

    fn name(&mut self) -> Result<Node, ExprError> {
        let start = self.position;
        self.word();
        while self.text[self.position..].starts_with('.') {
            self.position += 1;
            if self.word().is_empty() {
                return Err(self.unexpected("a name after \".\""));
            }
        }
        let name = self.text[start..self.position].to_owned();
        if !self.eat('(') {
            return Ok(Node::Name(name));
        }
        let mut arguments = Vec::new();
        loop {
            arguments.push(self.sum()?);
            if self.eat(')') {
                return Ok(Node::Call(name, arguments));
            }
            if !self.eat(',') {
                return Err(self.unexpected("\",\" or \")\""));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Test;
    impl Scope for Test {
        fn name(&self, name: &str) -> Result<i64, String> {
            match name {
                "x.pages" => Ok(7),
                "one" => Ok(1),
                _ => Err(format!("unknown name \"{name}\"")),
            }
        }
    }

    fn value(text: &str) -> Result<i64, (Range<usize>, String)> {
        Expr::parse(text).and_then(|e| e.value(&Test)).map_err(|e| (e.at, e.message))
    }

    #[test]
    fn operations_have_the_usual_order() {
        assert_eq!(value("1 + 2 * 3 - 4"), Ok(3));
        assert_eq!(value("(1 + 2) * -3"), Ok(-9));
        assert_eq!(value("100 / 7 % 5"), Ok(4));
        assert_eq!(value("0x40*x.pages"), Ok(448));
        assert_eq!(value("10 - 3 - 2"), Ok(5));
        assert_eq!(value("4_096"), Ok(4096));
    }

    #[test]
    fn functions() {
        assert_eq!(value("min(x.pages, 3) + max(one, 2)"), Ok(5));
        assert_eq!(value("ceil_div(x.pages, 2)"), Ok(4));
        assert_eq!(value("align_up(x.pages * 4, 64)"), Ok(64));
        assert_eq!(value("align_up(0, 64)"), Ok(0));
    }

    #[test]
    fn errors_say_where_and_what_was_expected() {
        let fail = |at, message: &str| Err((at, message.to_owned()));
        assert_eq!(value("1 + y"), fail(4..5, "unknown name \"y\""));
        assert_eq!(value("1 +"), fail(3..3, "the expression ends too early, expected an integer, a name or \"(\""));
        assert_eq!(value("(1 2"), fail(3..4, "found \"2\", expected an operator or \")\""));
        assert_eq!(value("1 ~ 2"), fail(2..3, "found \"~\", expected an operator or the end of the expression"));
        assert_eq!(value("x."), fail(2..2, "the expression ends too early, expected a name after \".\""));
        assert_eq!(value("12ab"), fail(0..4, "found \"12ab\", expected an integer such as 64 or 0x40"));
        assert_eq!(value("8 / (2 - 2)"), fail(0..11, "8 / 0: division by zero"));
        assert_eq!(value("min(1)"), fail(0..6, "min takes 2 values, found 1"));
        assert_eq!(value("9223372036854775807 + 1"), fail(0..23, "9223372036854775807 + 1 is out of range"));
        assert!(value("sqrt(4)").is_err_and(|e| e.1.starts_with("unknown function \"sqrt\"")));
        assert!(value("").is_err());
    }

    #[test]
    fn hostile_expressions_stay_within_their_budgets() {
        assert!(value(&"(".repeat(500)).is_err_and(|e| e.1.contains("deeper than 32")));
        assert!(value(&"-".repeat(500)).is_err_and(|e| e.1.contains("deeper than 32")));
        assert!(value(&"1+".repeat(400)).is_err_and(|e| e.1.contains("longer than 512")));
        assert!(value("ä").is_err());
        assert!(value("-(0 - 9223372036854775807 - 1)").is_err_and(|e| e.1.contains("out of range")));
        assert!(value("ceil_div(1, 0)").is_err());
    }
}
