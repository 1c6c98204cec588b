//! Variables of a running program.
//!
//! Three kinds share one set of names: `var` lives for one run, `staticvar` for all runs of its
//! program, `param` is given by the caller and never changes. A `varinst` into an undeclared name
//! creates a `var` (the original's netlists do that).

use super::error::ProgramProblem;
use std::collections::BTreeMap;
use tilework_netlist::types::{Value, VarOp};

/// Parameters of a run: name, with its `$`, and value.
pub type Parameters = BTreeMap<String, i64>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Var,
    Static,
    Param,
}

/// Variables by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Variables {
    values: BTreeMap<String, (Kind, i64)>,
}

impl Variables {
    /// The value of a variable.
    pub fn get(&self, name: &str) -> Result<i64, ProgramProblem> {
        let value = self.values.get(name).map(|(_, value)| *value);
        value.ok_or_else(|| ProgramProblem::Uninitialised(name.to_string()))
    }

    /// The value of an operand.
    pub fn value(&self, value: &Value) -> Result<i64, ProgramProblem> {
        match value {
            Value::Immediate(value) => Ok(*value),
            Value::Variable(name) => self.get(name),
        }
    }

    /// `var`: declares a variable, or resets it in the next iteration of a loop.
    pub fn declare(&mut self, name: &str, value: i64) -> Result<(), ProgramProblem> {
        self.put(name, Kind::Var, value)
    }

    /// `staticvar`: declares a variable; an existing value stays.
    pub fn declare_static(&mut self, name: &str, first: i64, kept: Option<i64>) -> Result<(), ProgramProblem> {
        let value = match self.values.get(name) {
            Some((Kind::Static, value)) => *value,
            _ => kept.unwrap_or(first),
        };
        self.put(name, Kind::Static, value)
    }

    /// `param`: declares a parameter.
    pub fn declare_parameter(&mut self, name: &str, value: i64) -> Result<(), ProgramProblem> {
        self.put(name, Kind::Param, value)
    }

    fn put(&mut self, name: &str, kind: Kind, value: i64) -> Result<(), ProgramProblem> {
        match self.values.get(name) {
            Some((other, _)) if *other != kind => Err(ProgramProblem::Shadows(name.to_string())),
            _ => {
                self.values.insert(name.to_string(), (kind, value));
                Ok(())
            }
        }
    }

    /// All static variables.
    pub fn statics(&self) -> impl Iterator<Item = (&str, i64)> {
        let statics = self.values.iter().filter(|(_, (kind, _))| *kind == Kind::Static);
        statics.map(|(name, (_, value))| (name.as_str(), *value))
    }

    /// `varinst`: changes a variable; returns the new value.
    pub fn change(&mut self, out: &str, op: VarOp, args: &[Value]) -> Result<i64, ProgramProblem> {
        let (name, wanted) = match op {
            VarOp::Set => ("set", 1),
            VarOp::Add => ("add", 2),
            VarOp::Mul => ("mul", 2),
            VarOp::Inc => ("inc", 1),
            VarOp::IncWrap => ("incwrap", 2),
        };
        if args.len() != wanted {
            return Err(ProgramProblem::Arity { op: name, wanted, found: args.len() });
        }
        let arg = |i: usize| self.value(&args[i]);
        let result = match op {
            VarOp::Set => Some(arg(0)?),
            VarOp::Add => arg(0)?.checked_add(arg(1)?),
            VarOp::Mul => arg(0)?.checked_mul(arg(1)?),
            VarOp::Inc => self.get(out)?.checked_add(arg(0)?),
            VarOp::IncWrap => {
                let (sum, wrap) = (self.get(out)?.checked_add(arg(0)?), arg(1)?);
                if wrap < 1 {
                    return Err(ProgramProblem::Wrap { out: out.to_string(), wrap });
                }
                sum.map(|sum| sum.rem_euclid(wrap))
            }
        };
        let result = result.ok_or_else(|| ProgramProblem::Overflow { out: out.to_string() })?;
        let kind = self.values.get(out).map_or(Kind::Var, |(kind, _)| *kind);
        if kind == Kind::Param {
            return Err(ProgramProblem::Shadows(out.to_string()));
        }
        self.put(out, kind, result)?;
        Ok(result)
    }
}
