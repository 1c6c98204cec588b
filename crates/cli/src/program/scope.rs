//! What the names in expressions mean.

use super::expr::{Scope, common_function};
use crate::board_option::BoardLayout;
use std::collections::{BTreeMap, BTreeSet};
use tilework_abi::noc::NocXy;

/// Names that have one value for the whole program.
#[derive(Clone, Debug)]
pub struct Globals {
    values: BTreeMap<String, i64>,
    /// Names of which something is wrong that is told already, or what stands before their dot.
    broken: BTreeSet<String>,
}

impl Globals {
    /// What is known before anything of the program: the board.
    pub fn new(board: impl Into<BoardLayout>) -> Self {
        let board = board.into();
        let mut globals = Self { values: BTreeMap::new(), broken: BTreeSet::new() };
        globals.set("board.workers", board.workers().len());
        globals.set("dram.banks", board.board.dram().banks().len());
        globals
    }

    /// Defines a name. Values above the range of expressions are cut to its end, where any use of
    /// them overflows.
    pub fn set(&mut self, name: impl Into<String>, value: impl TryInto<i64>) {
        self.values.insert(name.into(), value.try_into().unwrap_or(i64::MAX));
    }

    /// Takes note that something is wrong with what `name` means: a name, or the part of names
    /// before their dot. Its use is an error without a message.
    pub fn set_broken(&mut self, name: impl Into<String>) {
        self.broken.insert(name.into());
    }

    /// Whether something is wrong with what a name means.
    pub fn is_broken(&self, name: &str) -> bool {
        self.broken.contains(name) || name.split_once('.').is_some_and(|(thing, _)| self.broken.contains(thing))
    }

    fn known(&self) -> String {
        self.values.keys().cloned().collect::<Vec<_>>().join(", ")
    }
}

/// Names per core, for messages and for the check that common arguments do not use them.
const PER_CORE: [&str; 14] = [
    "core.index",
    "core.count",
    "core.x",
    "core.y",
    "core.xy",
    "next.x",
    "next.y",
    "next.xy",
    "prev.x",
    "prev.y",
    "prev.xy",
    "first.xy",
    "last.xy",
    "split",
];

impl Scope for Globals {
    fn name(&self, name: &str) -> Result<i64, String> {
        self.values.get(name).copied().ok_or_else(|| {
            if self.is_broken(name) {
                String::new()
            } else if PER_CORE.contains(&name) {
                format!("\"{name}\" differs from core to core; it can be used in args only")
            } else if name.starts_with("launch.") && !self.values.contains_key("launch.index") {
                format!("\"{name}\" differs from launch to launch; it can be used in args and common_args")
            } else if name.ends_with(".addr") {
                format!("\"{name}\" is no buffer's address here; addresses can be used in args and common_args")
            } else {
                format!("unknown name \"{name}\"; known here: {}", self.known())
            }
        })
    }

    fn call(&self, function: &str, arguments: &[i64]) -> Result<i64, String> {
        match function {
            "split.start" | "split.count" => {
                Err(format!("\"{function}\" differs from core to core; it can be used in args only"))
            }
            _ => common_function(function, arguments),
        }
    }
}

/// A count as an expression has it; a chip has a few hundred cores.
fn number(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// The names as one core of a role sees them.
pub struct CoreScope<'a> {
    /// The names of the whole program.
    pub globals: &'a Globals,
    /// The cores of the role, in order.
    pub cores: &'a [NocXy],
    /// This core's position among them.
    pub index: usize,
}

impl CoreScope<'_> {
    /// The core that is `steps` further around the role's cores.
    fn at(&self, steps: usize) -> NocXy {
        self.cores[(self.index + steps) % self.cores.len()]
    }

    /// This core's share of `n` items: its first item and their number. The first cores take one
    /// more when it does not come out even.
    fn split(&self, n: i64) -> Result<(i64, i64), String> {
        let (index, count) = (number(self.index), number(self.cores.len()));
        if n < 0 {
            return Err(format!("cannot split {n} items; expected a number of at least 0"));
        }
        let (each, more) = (n / count, n % count);
        Ok((index * each + index.min(more), each + i64::from(index < more)))
    }
}

impl Scope for CoreScope<'_> {
    fn name(&self, name: &str) -> Result<i64, String> {
        let (thing, field) = name.split_once('.').unwrap_or((name, ""));
        let core = match (thing, field) {
            ("core", "index") => return Ok(number(self.index)),
            ("core", "count") => return Ok(number(self.cores.len())),
            ("core", _) => self.at(0),
            ("next", _) => self.at(1),
            ("prev", _) => self.at(self.cores.len() - 1),
            ("first", _) => self.cores[0],
            ("last", _) => self.cores[self.cores.len() - 1],
            _ => {
                return self.globals.name(name).map_err(|message| {
                    if message.starts_with("unknown") { format!("{message}, {}", PER_CORE.join(", ")) } else { message }
                });
            }
        };
        match field {
            "x" => Ok(core.x.into()),
            "y" => Ok(core.y.into()),
            "xy" => Ok(core.encode().into()),
            _ => Err(format!("unknown name \"{name}\"; \"{thing}\" has x, y and xy, \"core\" also index and count")),
        }
    }

    fn call(&self, function: &str, arguments: &[i64]) -> Result<i64, String> {
        match (function, arguments) {
            ("split.start", &[n]) => self.split(n).map(|s| s.0),
            ("split.count", &[n]) => self.split(n).map(|s| s.1),
            ("split.start" | "split.count", other) => Err(format!("{function} takes 1 value, found {}", other.len())),
            _ => common_function(function, arguments),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::expr::Expr;
    use tilework_abi::board::Board;

    fn value(text: &str, cores: usize, index: usize) -> Result<i64, String> {
        let mut globals = Globals::new(Board::P100);
        globals.set("x.pages", 10u32);
        let cores: Vec<_> = Board::P100.workers().take(cores).collect();
        let scope = CoreScope { globals: &globals, cores: &cores, index };
        Expr::parse(text).and_then(|e| e.value(&scope)).map_err(|e| e.message)
    }

    #[test]
    fn a_split_covers_everything_once_and_differs_by_at_most_one() {
        for cores in 1..=118 {
            let mut next = 0;
            for index in 0..cores {
                assert_eq!(value("split.start(x.pages)", cores, index), Ok(next));
                let count = value("split.count(x.pages)", cores, index).unwrap();
                assert!(count == 10 / cores as i64 || count == 10 / cores as i64 + 1);
                next += count;
            }
            assert_eq!(next, 10);
        }
    }

    #[test]
    fn neighbours_close_the_ring() {
        assert_eq!(value("next.xy", 3, 2), value("first.xy", 3, 0));
        assert_eq!(value("prev.xy", 3, 0), value("last.xy", 3, 0));
        assert_eq!(value("next.xy", 1, 0), value("core.xy", 1, 0));
        assert_eq!(value("core.xy", 1, 0), Ok(2 << 6 | 1));
        assert_eq!(value("core.y * 100 + core.x", 2, 1), Ok(301));
    }

    #[test]
    fn unknown_names_are_answered_with_the_known_ones() {
        let message = value("y.pages", 1, 0).unwrap_err();
        assert!(
            message.starts_with("unknown name \"y.pages\"; known here: board.workers, dram.banks, x.pages, core.index"),
            "{message}"
        );
        assert!(value("core.z", 1, 0).unwrap_err().contains("has x, y and xy"));
        assert!(value("split.count(0 - 1)", 1, 0).unwrap_err().contains("cannot split -1 items"));
        let globals = Globals::new(Board::P150);
        let error = |text: &str| Expr::parse(text).unwrap().value(&globals).unwrap_err().message;
        assert!(error("core.index").contains("differs from core to core"));
        assert!(error("split.count(3)").contains("differs from core to core"));
        assert!(error("x.addr").contains("addresses can be used in args"));
    }
}
