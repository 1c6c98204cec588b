//! Programs: in which order graphs execute, and with which pointers of queues.

use super::{GraphId, Position, QueueId};

/// A program.
#[derive(Debug, Clone, PartialEq)]
pub struct Program {
    /// Its name.
    pub name: String,
    /// Where the file defines it.
    pub at: Position,
    /// Instructions; an end of the program is implied after the last.
    pub instructions: Vec<Instruction>,
}

/// An instruction and where it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Instruction {
    /// Where.
    pub at: Position,
    /// What.
    pub kind: InstructionKind,
}

/// A variable's name, with its `$`.
pub type Variable = String;

/// A number or a variable.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Value {
    /// A number; true is 1.
    Immediate(i64),
    /// A variable.
    Variable(Variable),
}

/// What an instruction does.
#[derive(Debug, Clone, PartialEq)]
pub enum InstructionKind {
    /// Declares variables; a list gives them zero.
    Var(Vec<(Variable, i64)>),
    /// Declares variables that outlive the run.
    StaticVar(Vec<(Variable, i64)>),
    /// Declares parameters.
    Param(Vec<Variable>),
    /// Changes a variable.
    VarInst {
        /// Which.
        out: Variable,
        /// How.
        op: VarOp,
        /// With what.
        args: Vec<Value>,
    },
    /// Begins the life of dynamic queues.
    AllocateQueue(Vec<QueueId>),
    /// Ends it.
    DeallocateQueue(Vec<QueueId>),
    /// Repeats up to the matching end.
    Loop(Value),
    /// End of a loop.
    EndLoop,
    /// Runs a graph.
    Execute {
        /// Which.
        graph: GraphId,
        /// Settings of its queues.
        settings: Vec<QueueSettings>,
    },
    /// End of the program.
    EndProgram,
}

/// How a variable changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum VarOp {
    /// out = a.
    Set,
    /// out = a + b.
    Add,
    /// out = a * b.
    Mul,
    /// out = out + a.
    Inc,
    /// out = (out + a) mod b.
    IncWrap,
}

/// Settings of a queue for one execution. What is absent has its default, which depends on the
/// kind of queue.
#[derive(Debug, Clone, PartialEq)]
pub struct QueueSettings {
    /// Which queue.
    pub queue: QueueId,
    /// Where.
    pub at: Position,
    /// `prologue`: the entry is read once, before the first input.
    pub prologue: bool,
    /// `epilogue`: the entry is written once, after the last input.
    pub epilogue: bool,
    /// `zero`: the accumulator starts from zero.
    pub zero: Option<Value>,
    /// `rd_ptr_local`.
    pub rd_ptr_local: Option<Value>,
    /// `rd_ptr_global`.
    pub rd_ptr_global: Option<Value>,
    /// `wr_ptr_global`.
    pub wr_ptr_global: Option<Value>,
    /// `rd_ptr_autoinc`.
    pub rd_ptr_autoinc: Option<Value>,
    /// `global_rdptr_autoinc`.
    pub global_rdptr_autoinc: Option<Value>,
    /// `global_wrptr_autoinc`.
    pub global_wrptr_autoinc: Option<Value>,
    /// `read_only`: a view that never moves the write pointer.
    pub read_only: Option<Value>,
}
