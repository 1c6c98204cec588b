//! Queue settings with values and defaults resolved, and the pointers that variables move.
//!
//! Defaults (tt-budabackend, `docs/public/netlist.md`, section Queue Settings): local read stride,
//! global read stride, global write stride are 1, 0, 1 for a queue and 0, 0, 0 for a ram. A
//! `varinst` has side effects: each queue whose global pointer was bound to the variable in the
//! queue's latest settings gets the new value (`runtime/runtime.cpp`, `push_queue_side_effects`).

use super::error::ProgramProblem;
use super::variables::Variables;
use std::collections::BTreeMap;
use tilework_netlist::types::{GraphId, Netlist, Position, QueueId, QueueKind, QueueSettings, Value};

/// A global pointer of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Pointer {
    /// `rd_ptr_global`.
    Read,
    /// `wr_ptr_global`.
    Write,
}

/// A pointer that follows a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Effect {
    /// The queue.
    pub queue: QueueId,
    /// Which pointer.
    pub pointer: Pointer,
    /// Its new value.
    pub value: i64,
}

/// An execution of a graph with the values of its settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launch {
    /// The graph.
    pub graph: GraphId,
    /// The instruction.
    pub at: Position,
    /// Settings, in the file's order.
    pub settings: Vec<ResolvedSettings>,
}

/// Settings of a queue for one execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResolvedSettings {
    /// The queue.
    pub queue: QueueId,
    /// Where.
    pub at: Position,
    /// Its entry is read once, before the first input.
    pub prologue: bool,
    /// Its entry is written once, after the last input.
    pub epilogue: bool,
    /// It is cleared before the first input.
    pub zero: bool,
    /// Where reading begins. Default: the global read pointer.
    pub rd_ptr_local: Option<i64>,
    /// New global read pointer.
    pub rd_ptr_global: Option<i64>,
    /// New global write pointer.
    pub wr_ptr_global: Option<i64>,
    /// By how much the local read pointer moves with each input.
    pub rd_ptr_autoinc: i64,
    /// By how much the global read pointer moves with each input.
    pub global_rdptr_autoinc: i64,
    /// By how much the global write pointer moves with each input.
    pub global_wrptr_autoinc: i64,
    /// Whether the write pointer never moves.
    pub read_only: bool,
}

impl ResolvedSettings {
    /// Default settings of a queue.
    pub fn default_of(netlist: &Netlist, queue: QueueId, at: Position) -> Self {
        let strides = match netlist.queue(queue).kind {
            QueueKind::Queue => (1, 0, 1),
            QueueKind::Ram => (0, 0, 0),
        };
        Self {
            queue,
            at,
            prologue: false,
            epilogue: false,
            zero: false,
            rd_ptr_local: None,
            rd_ptr_global: None,
            wr_ptr_global: None,
            rd_ptr_autoinc: strides.0,
            global_rdptr_autoinc: strides.1,
            global_wrptr_autoinc: strides.2,
            read_only: false,
        }
    }

    /// Replaces variables by their values.
    pub fn resolve(netlist: &Netlist, settings: &QueueSettings, variables: &Variables) -> Result<Self, ProgramProblem> {
        let default = Self::default_of(netlist, settings.queue, settings.at);
        let number = |value: &Option<Value>| value.as_ref().map(|value| variables.value(value)).transpose();
        let flag = |value: &Option<Value>| match number(value)? {
            None | Some(0) => Ok(false),
            Some(1) => Ok(true),
            Some(other) => Err(no_flag(value, other)),
        };
        Ok(Self {
            prologue: settings.prologue,
            epilogue: settings.epilogue,
            zero: flag(&settings.zero)?,
            rd_ptr_local: number(&settings.rd_ptr_local)?,
            rd_ptr_global: number(&settings.rd_ptr_global)?,
            wr_ptr_global: number(&settings.wr_ptr_global)?,
            rd_ptr_autoinc: number(&settings.rd_ptr_autoinc)?.unwrap_or(default.rd_ptr_autoinc),
            global_rdptr_autoinc: number(&settings.global_rdptr_autoinc)?.unwrap_or(default.global_rdptr_autoinc),
            global_wrptr_autoinc: number(&settings.global_wrptr_autoinc)?.unwrap_or(default.global_wrptr_autoinc),
            read_only: flag(&settings.read_only)?,
            ..default
        })
    }
}

fn no_flag(value: &Option<Value>, number: i64) -> ProgramProblem {
    let variable = match value {
        Some(Value::Variable(name)) => name.clone(),
        _ => "the setting".into(),
    };
    ProgramProblem::Setting { variable, value: number, wanted: "flag: give 0 or 1" }
}

/// Which variable each global pointer follows.
#[derive(Debug, Clone, Default)]
pub(super) struct Bindings {
    bound: BTreeMap<(QueueId, Pointer), String>,
}

impl Bindings {
    /// The latest settings of a queue replace earlier ones.
    pub(super) fn bind(&mut self, settings: &QueueSettings) {
        for (pointer, value) in [(Pointer::Read, &settings.rd_ptr_global), (Pointer::Write, &settings.wr_ptr_global)] {
            match value {
                Some(Value::Variable(name)) => self.bound.insert((settings.queue, pointer), name.clone()),
                _ => self.bound.remove(&(settings.queue, pointer)),
            };
        }
    }

    /// The pointers that follow a variable's new value.
    pub(super) fn effects(&self, variable: &str, value: i64) -> Vec<Effect> {
        let bound = self.bound.iter().filter(|(_, name)| *name == variable);
        bound.map(|((queue, pointer), _)| Effect { queue: *queue, pointer: *pointer, value }).collect()
    }
}
